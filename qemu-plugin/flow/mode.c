// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The hidden part of CS, worked out from its selector when it is loaded: by a shift in real and
 * virtual-8086 mode, else from the descriptor. It stays as loaded, whatever happens to CR0 and
 * the tables (SDM 3 3.4.3).
 */
#include <string.h>

#include "qemu-plugin/flow/mode.h"
#include "qemu-plugin/flow/vcpu.h"

#define CR0_PE	   0x1ULL
#define CR0_PG	   0x80000000ULL
#define CR4_PAE	   0x20ULL
#define EFER_LMA   0x400ULL
#define EFLAGS_VM  0x20000ULL
#define EFLAGS_IF  0x200ULL
#define SEGMENT_TI 0x4U
#define SEGMENTS   4 /* cached */

struct segment {
	u64 base;
	bool l, d;
};

/* A descriptor's base, L and D (SDM 3 figure 3-8), in the GDT or the LDT. */
static bool descriptor(struct vcpu *vcpu, u32 cs, struct segment *seg)
{
	u64 table = cs & SEGMENT_TI ? vcpu->cpu.ldt : vcpu->cpu.gdt, word;

	/* Entry 0 of the GDT is no descriptor, but entry 0 of an LDT is. */
	if (cs & SEGMENT_TI ? !table : !(cs & ~7U))
		return false;
	if (!qemu_read_linear(vcpu->regs, table + (cs & 0xfff8), &word, sizeof(word)))
		return false;
	seg->base = (word >> 16 & 0xffffff) | (word >> 56 & 0xff) << 24;
	seg->l = word >> 53 & 1;
	seg->d = word >> 54 & 1;
	return true;
}

/*
 * In protected mode. The selectors of 64-bit segments in the GDT are cached until the next LGDT:
 * base and D do not matter there. Others are read each time, because a kernel may change them from
 * process to process.
 */
static void protected_segment(struct vcpu *vcpu, u32 cs, struct segment *seg)
{
	struct cpu_mode *cpu = &vcpu->cpu;
	unsigned int i;

	for (i = 0; i < SEGMENTS && cpu->seen[i]; i++) {
		if (cpu->seen[i] == cs) {
			*seg = (struct segment){ .l = true };
			return;
		}
	}
	if (!descriptor(vcpu, cs, seg)) {
		/* The table is not known or cannot be read: a flat segment of the widest kind. */
		seg->base = 0;
		seg->l = cpu->efer & EFER_LMA && !(cs & SEGMENT_TI);
		seg->d = !seg->l;
		return;
	}
	if (seg->l && cpu->efer & EFER_LMA && !(cs & SEGMENT_TI))
		cpu->seen[i % SEGMENTS] = cs;
}

static void segment_of(struct vcpu *vcpu, u32 cs, u64 eflags, struct segment *seg)
{
	if (!(vcpu->cpu.cr0 & CR0_PE) || eflags & EFLAGS_VM)
		*seg = (struct segment){ .base = (u64)cs << 4 };
	else
		protected_segment(vcpu, cs, seg);
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

/* What the hidden part of CS means under the current CR0 and EFER. */
static void apply(struct vcpu *vcpu)
{
	struct cpu_mode *cpu = &vcpu->cpu;

	cpu->cs_l = cpu->hidden_l && cpu->efer & EFER_LMA;
	cpu->cs_d = cpu->hidden_d && !cpu->cs_l;
	cpu->cs_base = cpu->cs_l ? 0 : cpu->hidden_base;
	vcpu->mode.cs_l = cpu->cs_l;
	vcpu->mode.cs_d = cpu->cs_d;
}

void mode_far(struct vcpu *vcpu)
{
	struct cpu_mode *cpu = &vcpu->cpu;
	struct segment seg;
	u64 eflags = 0, cr3;

	cpu->cs = (u32)qemu_read_reg(vcpu->regs, QREG_CS);
	/* Long mode has no virtual-8086 mode, and only Event Trace needs IF. */
	if (!(cpu->efer & EFER_LMA) || vcpu->plugin->events)
		eflags = qemu_read_reg(vcpu->regs, QREG_EFLAGS);
	segment_of(vcpu, cpu->cs, eflags, &seg);
	cpu->hidden_base = seg.base;
	cpu->hidden_l = seg.l;
	cpu->hidden_d = seg.d;
	apply(vcpu);
	vcpu->mode.cpl = !(cpu->cr0 & CR0_PE) ? 0 : eflags & EFLAGS_VM ? 3 : cpu->cs & 3;
	vcpu->mode.rflags_if = eflags & EFLAGS_IF;
	if (cpu->efer & EFER_LMA)
		return;
	/* Any far transfer may be a task switch (SDM 3 8.3). */
	cr3 = qemu_read_reg(vcpu->regs, QREG_CR3);
	cpu->switched = cr3 != vcpu->mode.cr3;
	vcpu->mode.cr3 = cr3;
}

void mode_control(struct vcpu *vcpu)
{
	struct cpu_mode *cpu = &vcpu->cpu;

	cpu->cr0 = qemu_read_reg(vcpu->regs, QREG_CR0);
	cpu->cr4 = qemu_read_reg(vcpu->regs, QREG_CR4);
	cpu->efer = qemu_read_reg(vcpu->regs, QREG_EFER);
	vcpu->mode.cr3 = qemu_read_reg(vcpu->regs, QREG_CR3);
	vcpu->mode.pae = cpu->cr0 & CR0_PG && cpu->cr4 & CR4_PAE && !(cpu->efer & EFER_LMA);
	apply(vcpu);
}

void mode_all(struct vcpu *vcpu, u64 vaddr)
{
	mode_control(vcpu);
	mode_far(vcpu);
	vcpu->cpu.switched = false;
	if (!mode_paged(vcpu))
		mode_place(vcpu, vaddr);
}

void mode_place(struct vcpu *vcpu, u64 vaddr)
{
	u64 base = vaddr - qemu_read_reg(vcpu->regs, QREG_RIP);

	vcpu->cpu.hidden_base = base & 0xffffffff;
	apply(vcpu);
}

bool mode_paged(const struct vcpu *vcpu)
{
	return vcpu->cpu.cr0 & CR0_PG;
}

bool mode_long(const struct vcpu *vcpu)
{
	return vcpu->cpu.efer & EFER_LMA;
}

void mode_gdt(struct vcpu *vcpu, u64 base)
{
	vcpu->cpu.gdt = base;
	memset(vcpu->cpu.seen, 0, sizeof(vcpu->cpu.seen));
}

void mode_ldt(struct vcpu *vcpu, u32 selector)
{
	u64 word[2];

	vcpu->cpu.ldt = 0;
	if (!(selector & ~7U) ||
	    !qemu_read_linear(vcpu->regs, vcpu->cpu.gdt + (selector & 0xfff8), word, sizeof(word)))
		return;
	vcpu->cpu.ldt = (word[0] >> 16 & 0xffffff) | (word[0] >> 56 & 0xff) << 24;
	if (vcpu->cpu.efer & EFER_LMA)
		vcpu->cpu.ldt |= (word[1] & 0xffffffff) << 32;
}
