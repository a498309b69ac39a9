// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * CPUID as a guest sees it: the leaves of PT itself (SDM 3 33.3.1), those of XSAVE state
 * component 8 (SDM 1 13.5.6, IA32_XSS[8]) and the TSC's ratio (33.5.2.4).
 */
#include "vmm-lib/vmpt.h"

#define LEAF7_EBX_PT (1u << 25)
/* The bit of component 8 in IA32_XSS, of which CPUID.0DH.1:ECX shows the low half. */
#define XSS_PT (1u << 8)
/* CPUID.0DH.8:ECX[0]: enabled through IA32_XSS, not XCR0. */
#define SUPERVISOR_STATE 1
/* A multiplier of 1. */
#define NO_SCALING (1ULL << 48)

static void show_leaf14(const struct vmpt_vcpu *vcpu, u32 subleaf, struct vmpt_cpuid_regs *regs)
{
	const struct vmpt_pt_cpuid *pt = &vcpu->guest.cpuid;

	*regs = (struct vmpt_cpuid_regs){ 0 };
	if (pt->present && subleaf < VMPT_PT_SUBLEAVES && subleaf <= pt->leaf14[0].eax)
		*regs = pt->leaf14[subleaf];
}

static void show_xsave(bool shown, u32 subleaf, struct vmpt_cpuid_regs *regs)
{
	if (subleaf == 1)
		regs->ecx = shown ? regs->ecx | XSS_PT : regs->ecx & ~XSS_PT;
	if (subleaf != 8)
		return;
	*regs = (struct vmpt_cpuid_regs){ 0 };
	if (shown) {
		regs->eax = VMPT_XSAVE_SIZE;
		regs->ecx = SUPERVISOR_STATE;
	}
}

/* A ratio that cannot be represented is not enumerated: none is better than a wrong one. */
static void show_tsc(const struct vmpt_vcpu *vcpu, struct vmpt_cpuid_regs *regs)
{
	const struct vmpt_pt_cpuid *pt = &vcpu->guest.cpuid;
	u32 numerator = pt->tsc_numerator, denominator = pt->tsc_denominator;
	bool scaled = vcpu->tsc_multiplier && vcpu->tsc_multiplier != NO_SCALING;

	if (!pt->present || !numerator || !denominator)
		return;
	if (!scaled && regs->eax && regs->ebx)
		return;
	if (scaled && vmpt_tsc_ratio(pt->tsc_numerator, pt->tsc_denominator, vcpu->tsc_multiplier,
				     &numerator, &denominator))
		numerator = denominator = 0;
	regs->eax = denominator;
	regs->ebx = numerator;
	if (!regs->ecx)
		regs->ecx = pt->crystal_hz;
}

void vmpt_vcpu_cpuid(const struct vmpt_vcpu *vcpu, u32 leaf, u32 subleaf,
		     struct vmpt_cpuid_regs *regs)
{
	bool present = vcpu->guest.cpuid.present;

	if (leaf == 7 && subleaf == 0)
		regs->ebx = present ? regs->ebx | LEAF7_EBX_PT : regs->ebx & ~LEAF7_EBX_PT;
	else if (leaf == 0x14)
		show_leaf14(vcpu, subleaf, regs);
	else if (leaf == 0xd)
		show_xsave(present && vcpu->xsave, subleaf, regs);
	else if (leaf == 0x15)
		show_tsc(vcpu, regs);
}
