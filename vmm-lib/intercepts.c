// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Which accesses of a guest to an MSR must exit. One rule stands behind the table in
 * docs/vmm-lib/vcpu.md: an access may pass through only while the processor holds the
 * guest's own value in that MSR and would answer as the guest's processor does.
 */
#include "vmm-lib/internal.h"

#define BOTH (VMPT_INTERCEPT_READ | VMPT_INTERCEPT_WRITE)

/*
 * The guest traces, so that its values are in the processor. A write is #GP then for all but
 * CTL, whatever is written (33.2.8.1): differences between the guest's rules and the
 * processor's do not show, and the guest cannot clear TraceEn without an exit. Processors
 * that need MSR lists are old ones; there every access exits, for simplicity. So does SMM's:
 * its tracing lasts until RSM, which is a shutdown if it is still on (33.2.9.3).
 */
static bool in_processor(const struct vmpt_vcpu *vcpu)
{
	return vcpu->regs.ctl & VMPT_CTL_TRACE_EN && !vcpu->plan.lists && !vcpu->lost &&
	       !vcpu->in_smm;
}

unsigned int vmpt_vcpu_intercepts(const struct vmpt_vcpu *vcpu, u32 msr)
{
	bool shadowed = vmpt_vcpu_shadowed(vcpu);

	/* What the guest has the processor has too: vmpt_caps_check(). */
	if (!vmpt_pt_msr_exists(&vcpu->rules, msr) || !in_processor(vcpu))
		return BOTH;
	switch (msr) {
	case VMPT_MSR_RTIT_CTL:
		/* A shadow may be ToPA where the guest chose a single range. */
		return shadowed ? BOTH : VMPT_INTERCEPT_WRITE;
	case VMPT_MSR_RTIT_STATUS:
		/*
		 * A shadow's own STOP sets Stopped. Under PMI preservation the processor is
		 * given STATUS without a PendTopaPMI that was delivered. And it counts bytes
		 * there for a guest that was not shown PacketByteCnt, too.
		 */
		if (shadowed || vcpu->regs.ctl & VMPT_CTL_INJECT ||
		    vcpu->rules.psb_cyc != vcpu->host_rules.psb_cyc)
			return BOTH;
		return 0;
	case VMPT_MSR_RTIT_OUTPUT_BASE:
	case VMPT_MSR_RTIT_OUTPUT_MASK_PTRS:
		return shadowed ? BOTH : 0;
	case VMPT_MSR_RTIT_CR3_MATCH:
		return vcpu->cr3_given ? BOTH : 0;
	default:
		return 0;
	}
}
