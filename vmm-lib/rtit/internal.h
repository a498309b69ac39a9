/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* Shared by the files of vmm-lib/rtit/; not called by a VMM. */
#ifndef VMPT_VMM_RTIT_INTERNAL_H
#define VMPT_VMM_RTIT_INTERNAL_H

#include "vmm-lib/rtit.h"

/* Where output can go: BASE_ADDR has bits 35:6 (Table 12). */
#define VMPT_RTIT_PHYS_END (1ULL << 36)

/* Whether @byte may be byte @i of a PSB. */
static inline bool vmpt_rtit_is_psb(unsigned int i, u8 byte)
{
	return byte == (i ? 0 : vmpt_rtit_table[VMPT_RTIT_PSB].header);
}

/* ---- hw.c: the processor's MSRs, in root operation, where ContextEn is 0 ---- */

/*
 * Read one MSR; bits that it cannot hold are corrected and reported as an event. -VMPT_E_HARDWARE.
 */
int vmpt_rtit_hw_read(struct vmpt_rtit_vcpu *vcpu, u32 msr, u64 *value);
int vmpt_rtit_hw_write(struct vmpt_rtit_vcpu *vcpu, u32 msr, u64 value);

/* The processor's value for @msr of a guest's @regs; not for CTL. */
u64 vmpt_rtit_hw_value(const struct vmpt_rtit_regs *regs, u32 msr);

/* Set LAST_LIP and LAST_CALL_NLIP as the PSB will that TraceActive is about to make. */
int vmpt_rtit_hw_forget(struct vmpt_rtit_vcpu *vcpu);

/* Detect a TraceStop: the processor cleared TraceActive. */
int vmpt_rtit_hw_refresh(struct vmpt_rtit_vcpu *vcpu);
/* Read the registers that packets change into vcpu->regs, except OFFSET. */
int vmpt_rtit_hw_fetch(struct vmpt_rtit_vcpu *vcpu);
/* Whether hw_fetch() reads @msr. */
bool vmpt_rtit_is_live(u32 msr);

/*
 * Change CTL to @ctl in the legal order (3.3.2): TraceActive is cleared first and set last. At
 * least one write, so that it drains.
 */
int vmpt_rtit_hw_set_ctl(struct vmpt_rtit_vcpu *vcpu, u64 ctl);
/* The value of CTL that the processor needs for the guest. */
u64 vmpt_rtit_hw_ctl(const struct vmpt_rtit_vcpu *vcpu, bool quiet);
/* No output is made from here to the thaw, and all that was made is in memory. */
int vmpt_rtit_freeze(struct vmpt_rtit_vcpu *vcpu);
int vmpt_rtit_thaw(struct vmpt_rtit_vcpu *vcpu);

/* ---- output.c ---- */

/* Where the output for @regs would go, and for VMPT_RTIT_PATH_DIRECT its address. */
struct vmpt_rtit_plan {
	u8 path;
	u64 hpa, gpa, size;
};

/* 0, or the result of a callback, -VMPT_E_RETRY; then nothing is pinned. */
int vmpt_rtit_plan_output(struct vmpt_rtit_vcpu *vcpu, const struct vmpt_rtit_regs *regs,
			  struct vmpt_rtit_plan *plan);
/* Release what @plan pins. */
void vmpt_rtit_plan_drop(struct vmpt_rtit_vcpu *vcpu, const struct vmpt_rtit_plan *plan);
/*
 * Write BASE_ADDR, LIMIT_MASK and OFFSET for @plan while TraceActive = 0; the plan is the vCPU's
 * then. What it had before is released in any case.
 */
int vmpt_rtit_plan_apply(struct vmpt_rtit_vcpu *vcpu, const struct vmpt_rtit_regs *regs,
			 const struct vmpt_rtit_plan *plan);
/* The vCPU's output has no place any more; TraceActive is 0. */
void vmpt_rtit_output_end(struct vmpt_rtit_vcpu *vcpu);

/*
 * Frozen or stopped: bring regs.offset up to the processor's, in the bounce buffer by copying.
 * -VMPT_E_HARDWARE, or the result of vmpt_rtit_copy_out().
 */
int vmpt_rtit_collect(struct vmpt_rtit_vcpu *vcpu);
/* Copy the waiting bytes of the bounce buffer; with @all also the head of a packet. */
int vmpt_rtit_copy_out(struct vmpt_rtit_vcpu *vcpu, bool all);

/* A position in the guest's output, advanced by writing. */
struct vmpt_rtit_position {
	u64 offset;
	u64 done; /* bytes consumed, including … */
	u64 lost; /* … those dropped by policy */
};

/* Write @len bytes there. 0, or an error of memory with @at where it occurred. */
int vmpt_rtit_put(struct vmpt_rtit_vcpu *vcpu, struct vmpt_rtit_position *at, const u8 *bytes,
		  size_t len);
/* Make @at the guest's position. */
void vmpt_rtit_put_done(struct vmpt_rtit_vcpu *vcpu, const struct vmpt_rtit_position *at);

#endif
