// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The guest's RDMSR and WRMSR, and the VMM's own reads and writes for save and restore.
 * arch/pt-regs.c decides whether an access is legal; this file has its effects: a write that sets
 * TraceEn (SDM 3 33.2.8.3) starts output, and may pend the PMI that PMI preservation kept
 * (33.2.7.2).
 */
#include "vmm-lib/internal.h"
#include "vmm-lib/shadow/shadow.h"

/*
 * The TSC adjuster starts where output starts. If tracing was only interrupted it continues as
 * before: the stream has no break there.
 */
static void start_scan(struct vmpt_vcpu *vcpu)
{
	struct vmpt_tsc_scan *scan = &vcpu->scan;
	const struct vmpt_pt_regs *regs = &vcpu->regs;

	if (vcpu->scan_set && vcpu->scan_base == regs->output_base &&
	    vcpu->scan_mask_ptrs == regs->output_mask_ptrs)
		return;
	scan->cut_size = 0;
	scan->block = 0;
	scan->lost = 0;
	scan->patched = 0;
	vcpu->cut_len[0] = 0;
	vcpu->cut_len[1] = 0;
	vcpu->traced = 0;
	vcpu->adjust_more = false;
	vcpu->scan_base = regs->output_base;
	vcpu->scan_mask_ptrs = regs->output_mask_ptrs;
	vcpu->scan_set = true;
}

/*
 * The bytes between the end of the guest's output and its new position are not trace of this run:
 * they may be anything, even trace that was already adjusted.
 */
void vmpt_vcpu_output_moved(struct vmpt_vcpu *vcpu, const struct vmpt_pt_regs *old)
{
	if (vcpu->scan_set && (vcpu->regs.output_base != old->output_base ||
			       vcpu->regs.output_mask_ptrs != old->output_mask_ptrs))
		start_scan(vcpu);
}

static bool preserved(const struct vmpt_pt_regs *regs, u64 status_bit)
{
	return regs->ctl & VMPT_CTL_INJECT && regs->status & status_bit;
}

/*
 * PendTopaPMI pends its PMI once for each enable by the guest. Each VM entry is an enable to the
 * processor too: the hold keeps it from pending the same PMI there again.
 */
void vmpt_vcpu_trace_enabled(struct vmpt_vcpu *vcpu)
{
	start_scan(vcpu);
	/* Without memory for a shadow (init refuses that) the next entry tries again and fails. */
	if (vmpt_vcpu_shadowed(vcpu) && vmpt_shadow_build(vcpu))
		vcpu->shadow.stale = true;
	vcpu->held_pend_pmi = false;
	if (preserved(&vcpu->regs, VMPT_STATUS_PEND_PSB))
		vcpu->force_psb = true;
	if (preserved(&vcpu->regs, VMPT_STATUS_PEND_PMI))
		vmpt_vcpu_pmi(vcpu); /* which sets the hold again */
}

/* MSR_PLATFORM_INFO for a guest that traces under TSC scaling (33.5.2.4). */
static u64 platform_info(const struct vmpt_vcpu *vcpu, u64 value)
{
	if (!vcpu->plan.guest_pt || !vcpu->tsc_multiplier)
		return value;
	return vmpt_platform_info(value, vcpu->tsc_multiplier);
}

int vmpt_vcpu_rdmsr(struct vmpt_vcpu *vcpu, u32 msr, u64 *value)
{
	enum vmpt_gp_reason why = VMPT_GP_NONE;
	int ret;

	if (vcpu->entered)
		return -VMPT_E_STATE;
	switch (msr) {
	case VMPT_MSR_PLATFORM_INFO:
		*value = platform_info(vcpu, *value);
		return 0;
	case VMPT_MSR_PERF_GLOBAL_STATUS:
		vmpt_pmi_read_status(vcpu, value);
		return 0;
	default:
		ret = vmpt_pt_rdmsr(&vcpu->rules, &vcpu->regs, msr, value, &why);
		vcpu->gp_why = (u8)why;
		return ret;
	}
}

/* Effects of a legal write by the guest. */
static void written(struct vmpt_vcpu *vcpu, u32 msr, const struct vmpt_pt_regs *old)
{
	u64 changed = old->ctl ^ vcpu->regs.ctl;

	vmpt_vcpu_output_moved(vcpu, old);
	if (msr == VMPT_MSR_RTIT_STATUS)
		vcpu->held_pend_pmi = false;
	if (vmpt_vcpu_shadowed(vcpu) && !(vcpu->regs.ctl & VMPT_CTL_TRACE_EN))
		vcpu->shadow.stale = true;
	if (changed & vcpu->regs.ctl & VMPT_CTL_TRACE_EN)
		vmpt_vcpu_trace_enabled(vcpu);
}

int vmpt_vcpu_wrmsr(struct vmpt_vcpu *vcpu, u32 msr, u64 value)
{
	enum vmpt_gp_reason why = VMPT_GP_NONE;
	struct vmpt_pt_regs old = vcpu->regs;
	int ret;

	if (vcpu->entered)
		return -VMPT_E_STATE;
	switch (msr) {
	case VMPT_MSR_PERF_GLOBAL_RESET:
		return vmpt_pmi_write_reset(vcpu, value);
	case VMPT_MSR_PERF_GLOBAL_SET:
		return vmpt_pmi_write_set(vcpu, value);
	default:
		ret = vmpt_pt_wrmsr(&vcpu->rules, &vcpu->regs, msr, value, &why);
		vcpu->gp_why = (u8)why;
		if (!ret)
			written(vcpu, msr, &old);
		return ret;
	}
}

/* ---- the VMM's own accesses ---- */

int vmpt_vcpu_get_msr(const struct vmpt_vcpu *vcpu, u32 msr, u64 *value)
{
	if (vcpu->entered)
		return -VMPT_E_STATE;
	if (msr == VMPT_MSR_PERF_GLOBAL_STATUS) {
		vmpt_pmi_get_status(vcpu, value);
		return 0;
	}
	if (vmpt_pt_is_msr(msr) && !vmpt_pt_msr_exists(&vcpu->rules, msr)) {
		*value = 0;
		return 0;
	}
	return vmpt_pt_rdmsr(&vcpu->rules, &vcpu->regs, msr, value, NULL);
}

static bool moves_output(u32 msr)
{
	return msr == VMPT_MSR_RTIT_CTL || msr == VMPT_MSR_RTIT_OUTPUT_BASE ||
	       msr == VMPT_MSR_RTIT_OUTPUT_MASK_PTRS;
}

/*
 * Called after each write, so the order of a restore does not matter: while TraceEn is set, the
 * position is where output continues, and PendTopaPMI was delivered before the state was saved (the
 * interrupt itself is in the state of the VMM's APIC).
 */
static void restored(struct vmpt_vcpu *vcpu, u32 msr, const struct vmpt_pt_regs *old)
{
	bool tracing = vcpu->regs.ctl & VMPT_CTL_TRACE_EN;

	vmpt_vcpu_output_moved(vcpu, old);
	vcpu->ran = false;
	vcpu->held_pend_pmi = tracing && preserved(&vcpu->regs, VMPT_STATUS_PEND_PMI);
	if (tracing && preserved(&vcpu->regs, VMPT_STATUS_PEND_PSB))
		vcpu->force_psb = true;
	if (vmpt_vcpu_shadowed(vcpu))
		vcpu->shadow.stale = true;
	if (tracing && moves_output(msr))
		start_scan(vcpu);
}

int vmpt_vcpu_set_msr(struct vmpt_vcpu *vcpu, u32 msr, u64 value)
{
	enum vmpt_gp_reason why = VMPT_GP_NONE;
	struct vmpt_pt_regs old = vcpu->regs;
	int ret;

	if (vcpu->entered)
		return -VMPT_E_STATE;
	if (msr == VMPT_MSR_PERF_GLOBAL_STATUS)
		return vmpt_pmi_set_status(vcpu, value);
	if (!value && vmpt_pt_is_msr(msr) && !vmpt_pt_msr_exists(&vcpu->rules, msr))
		return 0;
	ret = vmpt_pt_restore_msr(&vcpu->rules, &vcpu->regs, msr, value, &why);
	vcpu->gp_why = (u8)why;
	if (!ret)
		restored(vcpu, msr, &old);
	return ret;
}

u32 vmpt_vcpu_msr_list(const struct vmpt_vcpu *vcpu, unsigned int index)
{
	static const u32 first[] = {
		VMPT_MSR_RTIT_STATUS,
		VMPT_MSR_RTIT_OUTPUT_BASE,
		VMPT_MSR_RTIT_OUTPUT_MASK_PTRS,
		VMPT_MSR_RTIT_CR3_MATCH,
	};
	unsigned int i;
	u32 msr;

	for (i = 0; i < VMPT_ARRAY_SIZE(first); i++)
		if (vmpt_pt_msr_exists(&vcpu->rules, first[i]) && !index--)
			return first[i];
	for (msr = VMPT_MSR_RTIT_ADDR0_A; msr <= VMPT_MSR_RTIT_ADDR3_B; msr++)
		if (vmpt_pt_msr_exists(&vcpu->rules, msr) && !index--)
			return msr;
	/* CTL last: a VMM that restores by plain writes then meets no TraceEn = 1. */
	return vcpu->rules.present && !index ? VMPT_MSR_RTIT_CTL : 0;
}
