/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* Shared by the two halves of the hand-over: handover.c (entry), exit.c (exit). */
#ifndef VMPT_VMM_HANDOVER_H
#define VMPT_VMM_HANDOVER_H

#include "vmm-lib/internal.h"
#include "vmm-lib/shadow/shadow.h"

/* Attempts to clear a TraceEn that is set again, or to follow a host that changes its wishes. */
#define VMPT_HANDOVER_TRIES 8

/* The MSRs that are switched besides CTL; the rules say which of them exist. */
#define VMPT_HANDOVER_MSRS 12
extern const u16 vmpt_handover_msrs[VMPT_HANDOVER_MSRS];

static inline int vmpt_hw_read(struct vmpt_vcpu *vcpu, u32 msr, u64 *value)
{
	return vcpu->ops->hw_rdmsr(vcpu->opaque, msr, value) ? -VMPT_E_HARDWARE : 0;
}

static inline int vmpt_hw_write(struct vmpt_vcpu *vcpu, u32 msr, u64 value)
{
	return vcpu->ops->hw_wrmsr(vcpu->opaque, msr, value) ? -VMPT_E_HARDWARE : 0;
}

/* CTL, from the VMM if it knows it. */
static inline int vmpt_hw_ctl(struct vmpt_vcpu *vcpu, u64 *ctl)
{
	if (vcpu->ops->host_ctl)
		return vcpu->ops->host_ctl(vcpu->opaque, ctl);
	return vmpt_hw_read(vcpu, VMPT_MSR_RTIT_CTL, ctl);
}

static inline void vmpt_hand_step(struct vmpt_vcpu *vcpu, enum vmpt_step step)
{
	if (vcpu->ops->step)
		vcpu->ops->step(vcpu->opaque, step);
}

/* An NMI on this processor reads it: the compiler must not move the store. */
static inline void vmpt_hand_owner(struct vmpt_vcpu *vcpu, enum vmpt_msr_owner owner)
{
	__atomic_store_n(&vcpu->owner, (u8)owner, __ATOMIC_SEQ_CST);
}

/* Whether both the guest and the processor have @msr. */
static inline bool vmpt_hand_shared(const struct vmpt_vcpu *vcpu, u32 msr)
{
	return vmpt_pt_msr_exists(&vcpu->rules, msr) && vmpt_pt_msr_exists(&vcpu->host_rules, msr);
}

/*
 * Whether a tracer with @ctl uses @msr: output and STATUS (33.2.7, 33.2.8.4), CR3_MATCH with
 * CR3Filter (33.2.5.2), ADDRn_A and ADDRn_B with ADDRn_CFG (33.2.5.3).
 */
static inline bool vmpt_hand_uses(u64 ctl, u32 msr)
{
	if (msr == VMPT_MSR_RTIT_CR3_MATCH)
		return ctl & VMPT_CTL_CR3_FILTER;
	if (msr < VMPT_MSR_RTIT_ADDR0_A)
		return true;
	return ctl >> (32 + 4 * ((msr - VMPT_MSR_RTIT_ADDR0_A) / 2)) & 0xf;
}

/* Read the host's MSRs into host_regs, all but CTL; without restore_host those that it uses. */
int vmpt_hand_save_host(struct vmpt_vcpu *vcpu);

/*
 * Clear TraceEn and read back until it is clear; *found: CTL as last seen with TraceEn = 1, or
 * as it was if that was clear. -VMPT_E_HOST_TRACING, -VMPT_E_HARDWARE, or host_ctl's result.
 */
int vmpt_hand_clear(struct vmpt_vcpu *vcpu, u64 *found);

/* GLOBAL_STATUS[55]: read, and clear it if it was set. */
int vmpt_hand_take_pmi(struct vmpt_vcpu *vcpu, bool *pmi);

/* A pending ToPA PMI belongs to the host. */
int vmpt_hand_host_pmi(struct vmpt_vcpu *vcpu);

/*
 * Give the MSRs to the host, from TO_HOST to HOST_CTL; TraceEn is 0. @switched: the guest's values
 * are in the MSRs. The owner is the host afterwards in any case.
 */
int vmpt_hand_host_back(struct vmpt_vcpu *vcpu, bool switched);

#endif
