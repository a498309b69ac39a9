// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * CS from its selector: real and virtual-8086 mode by shifting, else by the descriptor.
 */
#include <string.h>

#include "qemu-plugin/mode.h"
#include "qemu-plugin/plugin.h"

#define CR0_PE	   0x1ULL
#define CR0_PG	   0x80000000ULL
#define CR4_PAE	   0x20ULL
#define EFER_LMA   0x400ULL
#define EFLAGS_VM  0x20000ULL
#define EFLAGS_IF  0x200ULL
#define SEGMENT_TI 0x4U
#define SEGMENTS   4 /* remembered */

struct segment {
	u64 base;
	bool l, d;
};

/* A descriptor's base, L and D (SDM 3 figure 3-8). */
static bool descriptor(struct vcpu *vcpu, u32 cs, struct segment *seg)
{
	u64 word;

	if (!(cs & ~7U) || cs & SEGMENT_TI ||
	    !qemu_read_linear(vcpu->regs, vcpu->cpu.gdt + (cs & 0xfff8), &word, sizeof(word)))
		return false;
	seg->base = (word >> 16 & 0xffffff) | (word >> 56 & 0xff) << 24;
	seg->l = word >> 53 & 1;
	seg->d = word >> 54 & 1;
	return true;
}

/* In protected mode. A descriptor that was read is believed until the next LGDT. */
static void protected_segment(struct vcpu *vcpu, u32 cs, struct segment *seg)
{
	struct cpu_mode *cpu = &vcpu->cpu;
	unsigned int i;

	for (i = 0; i < SEGMENTS && cpu->seen[i].cs; i++) {
		if (cpu->seen[i].cs == cs) {
			seg->base = cpu->seen[i].base;
			seg->l = cpu->seen[i].l;
			seg->d = cpu->seen[i].d;
			return;
		}
	}
	if (!descriptor(vcpu, cs, seg)) {
		/* In an LDT, or its table cannot be read: a flat segment of the widest kind. */
		seg->base = 0;
		seg->l = cpu->efer & EFER_LMA;
		seg->d = !seg->l;
		return;
	}
	i %= SEGMENTS;
	cpu->seen[i].cs = cs;
	cpu->seen[i].base = seg->base;
	cpu->seen[i].l = seg->l;
	cpu->seen[i].d = seg->d;
}

static void segment_of(struct vcpu *vcpu, u32 cs, u64 eflags, struct segment *seg)
{
	if (!(vcpu->cpu.cr0 & CR0_PE) || eflags & EFLAGS_VM) {
		*seg = (struct segment){ .base = (u64)cs << 4 };
		return;
	}
	protected_segment(vcpu, cs, seg);
	if (!(vcpu->cpu.efer & EFER_LMA))
		seg->l = false;
	if (seg->l)
		seg->base = 0;
}

void mode_of_cs(struct vcpu *vcpu, u32 cs, struct vmpt_mode *mode)
{
	struct segment seg;

	*mode = vcpu->mode;
	segment_of(vcpu, cs, 0, &seg);
	mode->cpl = vcpu->cpu.cr0 & CR0_PE ? cs & 3 : 0;
	mode->cs_l = seg.l;
	mode->cs_d = seg.d;
}

void mode_far(struct vcpu *vcpu)
{
	struct cpu_mode *cpu = &vcpu->cpu;
	u64 eflags = 0;
	struct segment seg;

	cpu->cs = (u32)qemu_read_reg(vcpu->regs, QREG_CS);
	/* In long mode there is no virtual-8086 mode, and IF is of interest to CFE alone. */
	if (!(cpu->efer & EFER_LMA) || vcpu->plugin->events)
		eflags = qemu_read_reg(vcpu->regs, QREG_EFLAGS);
	segment_of(vcpu, cpu->cs, eflags, &seg);
	cpu->cs_base = seg.base;
	cpu->cs_l = vcpu->mode.cs_l = seg.l;
	cpu->cs_d = vcpu->mode.cs_d = seg.d;
	vcpu->mode.cpl = !(cpu->cr0 & CR0_PE) ? 0 : eflags & EFLAGS_VM ? 3 : cpu->cs & 3;
	vcpu->mode.rflags_if = eflags & EFLAGS_IF;
}

void mode_control(struct vcpu *vcpu)
{
	struct cpu_mode *cpu = &vcpu->cpu;

	cpu->cr0 = qemu_read_reg(vcpu->regs, QREG_CR0);
	cpu->cr4 = qemu_read_reg(vcpu->regs, QREG_CR4);
	cpu->efer = qemu_read_reg(vcpu->regs, QREG_EFER);
	vcpu->mode.cr3 = qemu_read_reg(vcpu->regs, QREG_CR3);
	vcpu->mode.pae = cpu->cr0 & CR0_PG && cpu->cr4 & CR4_PAE && !(cpu->efer & EFER_LMA);
	mode_far(vcpu);
}

void mode_gdt(struct vcpu *vcpu, u64 base)
{
	vcpu->cpu.gdt = base;
	memset(vcpu->cpu.seen, 0, sizeof(vcpu->cpu.seen));
}
