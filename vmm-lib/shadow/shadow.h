/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * A vCPU's shadow ToPA for the rest of vmm-lib: build it, make sure before an entry that it is
 * current, load it, translate the position back after an exit. The interface to a VMM is in
 * vmm-lib/shadow-topa.h.
 */
#ifndef VMPT_VMM_SHADOW_H
#define VMPT_VMM_SHADOW_H

#include "vmm-lib/vmpt.h"

/*
 * Build the shadow for the position in the vCPU's OUTPUT MSRs; CTL.ToPA says whether they describe
 * a table or a range. 0; -VMPT_E_STATE without memory for it; -VMPT_E_RETRY or the result of a
 * callback if not even the memory at the position is available (the shadow is stale then). A
 * guest's mistake is no error: it goes into the shadow. Afterwards vmpt_shadow_regs() gives the
 * values for the processor.
 */
int vmpt_shadow_build(struct vmpt_vcpu *vcpu);

/*
 * Called by vmpt_vcpu_enter() before each entry: builds the shadow if it is stale, was never built,
 * or does not contain the vCPU's position (a restore, an inserted packet). Errors as for
 * vmpt_shadow_build().
 */
int vmpt_shadow_ready(struct vmpt_vcpu *vcpu);

/*
 * What to load into the processor: OUTPUT_BASE, OUTPUT_MASK_PTRS and CTL.ToPA. If the shadow is not
 * built: a position at which the processor signals an error and writes nothing.
 */
void vmpt_shadow_regs(const struct vmpt_vcpu *vcpu, u64 *base, u64 *mask_ptrs, bool *topa);

/*
 * Translate the processor's OUTPUT MSRs and STATUS back after an exit: the guest's position goes to
 * the vCPU's registers; our own STOP is removed and our own INT is distinguished from the guest's.
 * Sets stale if the window must move. If our STOP may have lost bytes of the guest: VMPT_EVENT_LOST
 * and force_psb. @status: of the processor, in and out. @pmi: in: a ToPA PMI came; out: it is the
 * guest's. -VMPT_E_HARDWARE: the position is outside the shadow (nothing is changed).
 */
int vmpt_shadow_take_back(struct vmpt_vcpu *vcpu, u64 base, u64 mask_ptrs, u64 *status, bool *pmi);

#endif
