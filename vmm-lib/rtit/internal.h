/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* What vmm-lib/rtit*.c use of each other and no VMM calls. */
#ifndef VMPT_VMM_RTIT_INTERNAL_H
#define VMPT_VMM_RTIT_INTERNAL_H

#include "vmm-lib/rtit.h"

/* Where output can go: BASE_ADDR has bits 35:6 (Table 12). */
#define VMPT_RTIT_PHYS_END (1ULL << 36)

/* Whether @byte may be a PSB's byte @i. */
static inline bool vmpt_rtit_is_psb(unsigned int i, u8 byte)
{
	return byte == (i ? 0 : vmpt_rtit_table[VMPT_RTIT_PSB].header);
}

/* ---- rtit-hw.c: the processor's MSRs, in root operation, where ContextEn is 0 ---- */

/* One MSR; what it cannot hold is made what it can, and told as an event. -VMPT_E_HARDWARE. */
int vmpt_rtit_hw_read(struct vmpt_rtit_vcpu *vcpu, u32 msr, u64 *value);
int vmpt_rtit_hw_write(struct vmpt_rtit_vcpu *vcpu, u32 msr, u64 value);

/* What the processor gets for @msr of a guest's @regs; not for CTL. */
u64 vmpt_rtit_hw_value(const struct vmpt_rtit_regs *regs, u32 msr);

/* LAST_LIP and LAST_CALL_NLIP as the PSB makes them that TraceActive is about to bring. */
int vmpt_rtit_hw_forget(struct vmpt_rtit_vcpu *vcpu);

/* Take notice of a TraceStop: TraceActive went off in the processor. */
int vmpt_rtit_hw_refresh(struct vmpt_rtit_vcpu *vcpu);
/* The registers that packets change, into vcpu->regs; OFFSET is not among them. */
int vmpt_rtit_hw_fetch(struct vmpt_rtit_vcpu *vcpu);
/* @msr as hw_fetch() reads it. */
bool vmpt_rtit_is_live(u32 msr);

/*
 * CTL from what it is to @ctl in the legal order (3.3.2): TraceActive goes off before and comes
 * on after all else. One write at least, so that it drains.
 */
int vmpt_rtit_hw_set_ctl(struct vmpt_rtit_vcpu *vcpu, u64 ctl);
/* CTL as the processor should have it for the guest. */
u64 vmpt_rtit_hw_ctl(const struct vmpt_rtit_vcpu *vcpu, bool quiet);
/* Nothing comes out from here to the thaw, and all that came is in memory. */
int vmpt_rtit_freeze(struct vmpt_rtit_vcpu *vcpu);
int vmpt_rtit_thaw(struct vmpt_rtit_vcpu *vcpu);

/* ---- rtit-output.c ---- */

/* Where @regs' output would go, and for VMPT_RTIT_PATH_DIRECT where that is. */
struct vmpt_rtit_plan {
	u8 path;
	u64 hpa, gpa, size;
};

/* 0 or what a callback returned, -VMPT_E_RETRY; nothing is held then. */
int vmpt_rtit_plan_output(struct vmpt_rtit_vcpu *vcpu, const struct vmpt_rtit_regs *regs,
			  struct vmpt_rtit_plan *plan);
/* Give up what @plan holds. */
void vmpt_rtit_plan_drop(struct vmpt_rtit_vcpu *vcpu, const struct vmpt_rtit_plan *plan);
/* BASE_ADDR, LIMIT_MASK and OFFSET for @plan, while TraceActive = 0; it is the vCPU's then. What
 * it had before is given up in any case. */
int vmpt_rtit_plan_apply(struct vmpt_rtit_vcpu *vcpu, const struct vmpt_rtit_regs *regs,
			 const struct vmpt_rtit_plan *plan);
/* The vCPU's output has no place any more; TraceActive is 0. */
void vmpt_rtit_output_end(struct vmpt_rtit_vcpu *vcpu);

/* Frozen or stopped: bring regs.offset up to the processor's, in the bounce buffer by
 * copying. -VMPT_E_HARDWARE, or vmpt_rtit_copy_out()'s. */
int vmpt_rtit_collect(struct vmpt_rtit_vcpu *vcpu);
/* Copy what waits in the bounce buffer, and the head of a packet too if @all. */
int vmpt_rtit_copy_out(struct vmpt_rtit_vcpu *vcpu, bool all);

/* A place in the guest's output, moved by writing. */
struct vmpt_rtit_position {
	u64 offset;
	u64 done; /* bytes taken, of these … */
	u64 lost; /* … dropped by policy */
};

/* Write @len bytes there. 0, or an error of memory with @at where that is. */
int vmpt_rtit_put(struct vmpt_rtit_vcpu *vcpu, struct vmpt_rtit_position *at, const u8 *bytes,
		  size_t len);
/* @at is the guest's. */
void vmpt_rtit_put_done(struct vmpt_rtit_vcpu *vcpu, const struct vmpt_rtit_position *at);

#endif
