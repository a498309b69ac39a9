/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* What the files at the top of vmm-lib share with each other and with the rooms after them. */
#ifndef VMPT_VMM_INTERNAL_H
#define VMPT_VMM_INTERNAL_H

#include "vmm-lib/vmpt.h"

/* ---- guest-memory.c ---- */

/* Output to a guest's own memory: struct vmpt_output with the VMM's policy behind it. */
struct vmpt_guest_output {
	struct vmpt_output out;
	struct vmpt_output_memory memory;
	u64 base;  /* OUTPUT_BASE … */
	u32 index; /* … and entry of the first byte: a shadow is stale behind another one */
};

/* At the vCPU's position. The vCPU's registers are what changes. */
void vmpt_guest_output_init(struct vmpt_guest_output *guest, struct vmpt_vcpu *vcpu);

/*
 * What @guest's output brought about: events, output_why, the PMI (vmpt_vcpu_pmi(), and
 * STATUS.PendTopaPMI under InjectPsbPmiOnEnable). Once, after the last write.
 */
void vmpt_guest_output_done(struct vmpt_guest_output *guest, struct vmpt_vcpu *vcpu);

/* ---- pip.c ---- */

/* CR3_MATCH for the processor: the guest's, or what does its work on the CR3 of the VMM. */
u64 vmpt_vcpu_cr3_match(const struct vmpt_vcpu *vcpu);

/* ---- vcpu.c ---- */

/* Clear TraceEn as SMI, VMXON and XSAVES do; a shadow is built anew at the next enable. */
void vmpt_vcpu_clear_trace_en(struct vmpt_vcpu *vcpu);

/* ---- msr.c ---- */

/* TraceEn went from 0 to 1 by the guest (WRMSR, XRSTORS, RSM): shadow, pending PMI, scan. */
void vmpt_vcpu_trace_enabled(struct vmpt_vcpu *vcpu);

/* The output's position was written, it was @old's: the TSC adjuster goes on from the new one. */
void vmpt_vcpu_output_moved(struct vmpt_vcpu *vcpu, const struct vmpt_pt_regs *old);

/* ---- pmi.c: bit 55 of 38EH, 390H and 391H; 0 or VMPT_GP where the guest has no ToPA ---- */

/* RDMSR of 38EH by the guest: bit 55 of *value; the guest has seen it now. */
void vmpt_pmi_read_status(struct vmpt_vcpu *vcpu, u64 *value);
/* The same for the VMM, and its write: a bit that is restored counts as seen, so that a
 * PMI may be one too many but not one too few. */
void vmpt_pmi_get_status(const struct vmpt_vcpu *vcpu, u64 *value);
int vmpt_pmi_set_status(struct vmpt_vcpu *vcpu, u64 value);
/* WRMSR of 390H and 391H by the guest. */
int vmpt_pmi_write_reset(struct vmpt_vcpu *vcpu, u64 value);
int vmpt_pmi_write_set(struct vmpt_vcpu *vcpu, u64 value);

/* Whether the guest's output is described by a shadow in the processor. */
static inline bool vmpt_vcpu_shadowed(const struct vmpt_vcpu *vcpu)
{
	return vcpu->plan.guest_pt && vcpu->plan.shadow;
}

#endif
