// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Which guest accesses to an MSR must exit. One rule underlies the table in docs/vmm-lib/vcpu.md:
 * an access may pass through only while the processor holds the guest's own value of that MSR and
 * would respond as the guest's processor does.
 */
#include "vmm-lib/internal.h"

#define BOTH (VMPT_INTERCEPT_READ | VMPT_INTERCEPT_WRITE)

/*
 * The guest traces, so its values are in the processor. Then a write of any value to any MSR but
 * CTL is #GP (33.2.8.1): differences between the guest's rules and the processor's do not show, and
 * the guest cannot clear TraceEn without an exit. Processors that need MSR lists are old; there
 * every access exits, for simplicity. The same in SMM: tracing there lasts until RSM, which is a
 * shutdown if it is still on (33.2.9.3).
 */
static bool in_processor(const struct vmpt_vcpu *vcpu)
{
	return vcpu->regs.ctl & VMPT_CTL_TRACE_EN && !vcpu->plan.lists && !vcpu->lost &&
	       !vcpu->in_smm;
}

unsigned int vmpt_vcpu_intercepts(const struct vmpt_vcpu *vcpu, u32 msr)
{
	bool shadowed = vmpt_vcpu_shadowed(vcpu);

	/* The processor has all that the guest has: vmpt_caps_check(). */
	if (!vmpt_pt_msr_exists(&vcpu->rules, msr) || !in_processor(vcpu))
		return BOTH;
	switch (msr) {
	case VMPT_MSR_RTIT_CTL:
		/* A shadow may be a ToPA table where the guest chose a single range. */
		return shadowed ? BOTH : VMPT_INTERCEPT_WRITE;
	case VMPT_MSR_RTIT_STATUS:
		/*
		 * A shadow's own STOP sets Stopped. Under PMI preservation, STATUS is loaded
		 * without a PendTopaPMI that was already delivered. And STATUS counts bytes even
		 * for a guest that was not shown PacketByteCnt.
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
