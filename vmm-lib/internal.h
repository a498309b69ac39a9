/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* Shared between the files at the top of vmm-lib and with the rooms above them. */
#ifndef VMPT_VMM_INTERNAL_H
#define VMPT_VMM_INTERNAL_H

#include "vmm-lib/vmpt.h"

/* ---- guest-memory.c ---- */

/* Output to a guest's own memory: struct vmpt_output under the VMM's policy. */
struct vmpt_guest_output {
	struct vmpt_output out;
	struct vmpt_output_memory memory;
	u64 base;  /* OUTPUT_BASE … */
	u32 index; /* … and entry of the first byte: if the entry changes, a shadow is stale */
};

/* Start at the vCPU's position; writes change the vCPU's registers. */
void vmpt_guest_output_init(struct vmpt_guest_output *guest, struct vmpt_vcpu *vcpu);

/*
 * Apply the effects of @guest's output: events, output_why, the PMI (vmpt_vcpu_pmi(), and
 * STATUS.PendTopaPMI under InjectPsbPmiOnEnable). Call once, after the last write.
 */
void vmpt_guest_output_done(struct vmpt_guest_output *guest, struct vmpt_vcpu *vcpu);

/* ---- pip.c ---- */

/* CR3_MATCH for the processor: the guest's, or one that has its effect on the VMM's CR3. */
u64 vmpt_vcpu_cr3_match(const struct vmpt_vcpu *vcpu);

/* ---- vcpu.c ---- */

/* Clear TraceEn as SMI, VMXON and XSAVES do; a shadow is rebuilt at the next enable. */
void vmpt_vcpu_clear_trace_en(struct vmpt_vcpu *vcpu);

/* ---- msr.c ---- */

/* The guest set TraceEn (WRMSR, XRSTORS, RSM): shadow, pending PMI, scan. */
void vmpt_vcpu_trace_enabled(struct vmpt_vcpu *vcpu);

/* The output position was written, it was @old's: the TSC adjuster continues at the new one. */
void vmpt_vcpu_output_moved(struct vmpt_vcpu *vcpu, const struct vmpt_pt_regs *old);

/* ---- pmi.c: bit 55 of 38EH, 390H and 391H; 0 or VMPT_GP where the guest has no ToPA ---- */

/* RDMSR of 38EH by the guest: bit 55 of *value; the guest has now seen it. */
void vmpt_pmi_read_status(struct vmpt_vcpu *vcpu, u64 *value);
/*
 * The same for the VMM, and its write: a restored bit counts as seen, so there may be one PMI too
 * many but never one too few.
 */
void vmpt_pmi_get_status(const struct vmpt_vcpu *vcpu, u64 *value);
int vmpt_pmi_set_status(struct vmpt_vcpu *vcpu, u64 value);
/* WRMSR of 390H and 391H by the guest. */
int vmpt_pmi_write_reset(struct vmpt_vcpu *vcpu, u64 value);
int vmpt_pmi_write_set(struct vmpt_vcpu *vcpu, u64 value);

/* Whether a shadow describes the guest's output to the processor. */
static inline bool vmpt_vcpu_shadowed(const struct vmpt_vcpu *vcpu)
{
	return vcpu->plan.guest_pt && vcpu->plan.shadow;
}

#endif
