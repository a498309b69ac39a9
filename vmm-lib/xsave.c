// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * XSAVE state component 8 (SDM 3 33.3.5.2): XSAVES and XRSTORS of a guest that was shown it.
 * XRSTORS writes the PT MSRs without an MSR exit, so a VMM that offers the component intercepts
 * both instructions and calls these functions; the rules are those of WRMSR (33.2.8.1).
 */
#include "vmm-lib/internal.h"

/* In the order of the area, 8 bytes each. */
static const u32 layout[] = {
	VMPT_MSR_RTIT_CTL,	   VMPT_MSR_RTIT_OUTPUT_BASE, VMPT_MSR_RTIT_OUTPUT_MASK_PTRS,
	VMPT_MSR_RTIT_STATUS,	   VMPT_MSR_RTIT_CR3_MATCH,   VMPT_MSR_RTIT_ADDR0_A,
	VMPT_MSR_RTIT_ADDR0_A + 1, VMPT_MSR_RTIT_ADDR0_A + 2, VMPT_MSR_RTIT_ADDR0_A + 3,
};

void vmpt_xsave_put(const struct vmpt_pt_regs *regs, u8 area[VMPT_XSAVE_SIZE])
{
	struct vmpt_pt_regs copy = *regs;
	size_t i;

	memset(area, 0, VMPT_XSAVE_SIZE);
	for (i = 0; i < VMPT_ARRAY_SIZE(layout); i++)
		memcpy(area + 8 * i, vmpt_pt_reg(&copy, layout[i]), 8);
}

void vmpt_xsave_get(struct vmpt_pt_regs *regs, const u8 area[VMPT_XSAVE_SIZE])
{
	size_t i;

	for (i = 0; i < VMPT_ARRAY_SIZE(layout); i++)
		memcpy(vmpt_pt_reg(regs, layout[i]), area + 8 * i, 8);
}

/* #GP: IA32_XSS[8] cannot be set, so there is no component 8. */
static int no_component(struct vmpt_vcpu *vcpu)
{
	vcpu->gp_why = VMPT_GP_ABSENT;
	return VMPT_GP;
}

int vmpt_vcpu_xsaves(struct vmpt_vcpu *vcpu, u8 area[VMPT_XSAVE_SIZE])
{
	struct vmpt_pt_regs shown = vcpu->regs;

	if (vcpu->entered)
		return -VMPT_E_STATE;
	if (!vcpu->xsave)
		return no_component(vcpu);
	/* STATUS as RDMSR shows it: after an exit it lacks TriggerEn. */
	(void)vmpt_pt_rdmsr(&vcpu->rules, &shown, VMPT_MSR_RTIT_STATUS, &shown.status, NULL);
	vmpt_xsave_put(&shown, area);
	vmpt_vcpu_clear_trace_en(vcpu);
	return 0;
}

/* One WRMSR of XRSTORS. An MSR that the guest does not have can only keep its value. */
static int put_back(const struct vmpt_vcpu *vcpu, struct vmpt_pt_regs *regs, u32 msr, u64 value,
		    enum vmpt_gp_reason *why)
{
	if (!value && !vmpt_pt_msr_exists(&vcpu->rules, msr))
		return 0;
	if (msr == VMPT_MSR_RTIT_OUTPUT_MASK_PTRS && !(value & ~VMPT_LOWER_MASK) &&
	    !vmpt_pt_msr_exists(&vcpu->rules, msr))
		return 0;
	return vmpt_pt_wrmsr(&vcpu->rules, regs, msr, value, why);
}

int vmpt_vcpu_xrstors(struct vmpt_vcpu *vcpu, const u8 area[VMPT_XSAVE_SIZE])
{
	struct vmpt_pt_regs from = { .output_mask_ptrs = VMPT_LOWER_MASK };
	struct vmpt_pt_regs to = vcpu->regs, old = vcpu->regs;
	enum vmpt_gp_reason why = VMPT_GP_NONE;
	int ret = 0;
	size_t i;

	if (vcpu->entered)
		return -VMPT_E_STATE;
	if (!vcpu->xsave)
		return no_component(vcpu);
	/* Read memory that may be the guest's only once. */
	if (area)
		vmpt_xsave_get(&from, area);
	/*
	 * CTL, which may set TraceEn, is first in the layout and is written last. While TraceEn = 1
	 * an earlier one fails, STATUS at the latest.
	 */
	for (i = VMPT_ARRAY_SIZE(layout); i-- && !ret;)
		ret = put_back(vcpu, &to, layout[i], *vmpt_pt_reg(&from, layout[i]), &why);
	vcpu->gp_why = (u8)why;
	if (ret)
		return ret;
	vcpu->regs = to;
	vmpt_vcpu_output_moved(vcpu, &old);
	vcpu->held_pend_pmi = false;
	if (vmpt_vcpu_shadowed(vcpu))
		vcpu->shadow.stale = true;
	if (to.ctl & VMPT_CTL_TRACE_EN)
		vmpt_vcpu_trace_enabled(vcpu);
	return 0;
}
