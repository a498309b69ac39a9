/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * A vCPU's shadow ToPA for the rest of vmm-lib: build it, make sure before an entry that it is
 * current, load it, take the position back after an exit. A VMM's side is in
 * vmm-lib/shadow-topa.h.
 */
#ifndef VMPT_VMM_SHADOW_H
#define VMPT_VMM_SHADOW_H

#include "vmm-lib/vmpt.h"

/*
 * Build the shadow for the position in the vCPU's OUTPUT MSRs; the ToPA bit of its CTL
 * says whether they mean a table or a range. 0; -VMPT_E_STATE without memory for it;
 * -VMPT_E_RETRY or what a callback returned where not even the memory of the position is
 * there (the shadow is stale then). A guest's mistake is no error: it is in the shadow. On
 * return the processor's values can be had from vmpt_shadow_regs().
 */
int vmpt_shadow_build(struct vmpt_vcpu *vcpu);

/*
 * Before each entry, by vmpt_vcpu_enter(): builds the shadow if it is stale, was never built,
 * or the vCPU's position went where the shadow does not know it (a restore, an inserted packet).
 * Errors as vmpt_shadow_build().
 */
int vmpt_shadow_ready(struct vmpt_vcpu *vcpu);

/*
 * What to load into the processor: OUTPUT_BASE, OUTPUT_MASK_PTRS, and whether CTL.ToPA. Of a
 * shadow that is not built: a place where the processor signals an error and writes nothing.
 */
void vmpt_shadow_regs(const struct vmpt_vcpu *vcpu, u64 *base, u64 *mask_ptrs, bool *topa);

/*
 * Take the processor's OUTPUT MSRs and STATUS back after an exit: the guest's position
 * goes to the vCPU's registers; our own STOP is taken away again and our own INT is
 * told apart from the guest's. Sets stale when the window has to move. Where our STOP may
 * have cost the guest bytes: VMPT_EVENT_LOST and force_psb.
 * @status: of the processor, in and out. @pmi: in: a ToPA PMI came; out: it is the guest's.
 * -VMPT_E_HARDWARE: the position is outside the shadow (nothing is changed).
 */
int vmpt_shadow_take_back(struct vmpt_vcpu *vcpu, u64 base, u64 mask_ptrs, u64 *status, bool *pmi);

#endif
