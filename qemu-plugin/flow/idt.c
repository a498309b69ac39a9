// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Gates of long, protected and real mode (SDM 3 6.10, 6.14.1, 17.1.4).
 */
#include "qemu-plugin/flow/idt.h"

#include <string.h>

#include "qemu-plugin/flow/vcpu.h"

#define CR0_PE	 0x1ULL
#define EFER_LMA 0x400ULL

static unsigned int gate_size(const struct cpu_mode *cpu)
{
	return cpu->efer & EFER_LMA ? 16 : cpu->cr0 & CR0_PE ? 8 : 4;
}

/* Where the gate at @gate leads; code segments in protected mode are assumed to be flat. */
static u64 gate_target(const u8 *gate, unsigned int size)
{
	u64 low = vmpt_load64(gate);

	if (size == 4)
		return (low & 0xffff) + (low >> 16 & 0xffff) * 16;
	low = (low & 0xffff) | (low >> 48) << 16;
	return size == 8 ? low : low | (vmpt_load64(gate + 8) & 0xffffffff) << 32;
}

static void read_table(struct vcpu *vcpu)
{
	unsigned int size = gate_size(&vcpu->cpu);
	u8 table[IDT_VECTORS * 16 + 8] = { 0 };

	/* Gates beyond the table's limit are read too: no event goes where they lead. */
	vcpu->idt.read =
		qemu_read_linear(vcpu->regs, vcpu->idt.base, table, (size_t)IDT_VECTORS * size);
	for (unsigned int i = 0; vcpu->idt.read && i < IDT_VECTORS; i++)
		vcpu->idt.target[i] = gate_target(table + i * size, size);
}

void idt_load(struct vcpu *vcpu, u64 base)
{
	vcpu->idt.base = base;
	vcpu->idt.read = false;
}

static int find(const struct idt *idt, u64 to)
{
	for (int i = 0; idt->read && i < IDT_VECTORS; i++) {
		if (idt->target[i] == to)
			return i;
	}
	return -1;
}

int idt_vector(struct vcpu *vcpu, u64 to)
{
	int vector = find(&vcpu->idt, to);

	if (vector >= 0)
		return vector;
	read_table(vcpu);
	return find(&vcpu->idt, to);
}
