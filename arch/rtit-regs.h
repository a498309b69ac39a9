/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The MSRs of RTIT (RTIT Programming Reference, March 2015, 3.3): fields, reset values, and whether
 * a read or a write is legal. The same for a processor (model/) and for a VMM (vmm-lib/). Pure
 * functions on the caller's struct; freestanding.
 *
 * Rules (3.3.1):
 * - Until CTL (768H) has been read once, every write of an RTIT MSR and every read of another RTIT
 *   MSR is #GP.
 * - A write that would change a reserved bit is #GP. That is a 1 in "reserved as 0" and a 0 in
 *   LIMIT_MASK's "reserved as 1". Registers described with 32 bits or fewer have reserved bits
 *   above them.
 * - A write of 0 to TNT_BUFF is #GP (3.3.13).
 * - STATUS.ContextEn and .TriggerEn are read-only: a write does not change them, without #GP
 *   (3.3.3).
 * - INIT clears nothing.
 *
 * Choices where the manual is silent or contradicts itself:
 * - LIPn[63:48] reads 0, as the note below Table 8 says; with rules.lip_sign_extended it reads
 *   as bit 47, as the table says. A write ignores these bits.
 * - The reserved event IDs 3 to 5 are not reserved bits: a write stores them, and they are never
 *   true, like "always off".
 * - Trace_En and TraceActive that change in one write: "undefined behavior may result" (3.3.2);
 *   here the write is legal, and Trace_En is treated as written first on enable, last on disable.
 * - OFFSET is stored as written; LIMIT_MASK is applied when it is used.
 */
#ifndef VMPT_ARCH_RTIT_REGS_H
#define VMPT_ARCH_RTIT_REGS_H

#include "arch/pt-regs.h" /* VMPT_GP, enum vmpt_gp_reason */

#ifdef __cplusplus
extern "C" {
#endif

/* Numbers of the MSRs; LIP1 and LIP2 are between LIP0 and LIP3. */
#define VMPT_RTIT_MSR_LIP0	     0x760
#define VMPT_RTIT_MSR_LIP3	     0x763
#define VMPT_RTIT_MSR_CTL	     0x768
#define VMPT_RTIT_MSR_STATUS	     0x769
#define VMPT_RTIT_MSR_CNTP	     0x76b
#define VMPT_RTIT_MSR_EVENTS	     0x76c
#define VMPT_RTIT_MSR_LAST_LIP	     0x76e
#define VMPT_RTIT_MSR_LAST_CALL_NLIP 0x76f
#define VMPT_RTIT_MSR_BASE_ADDR	     0x770
#define VMPT_RTIT_MSR_LIMIT_MASK     0x771
#define VMPT_RTIT_MSR_OFFSET	     0x772
#define VMPT_RTIT_MSR_CR3_MATCH	     0x777
#define VMPT_RTIT_MSR_PKT_CNT	     0x77c
#define VMPT_RTIT_MSR_TNT_BUFF	     0x77d

/* RTIT_CTL (Table 4) */
#define VMPT_RTIT_CTL_TRACE_EN	      (1ULL << 0)
#define VMPT_RTIT_CTL_CYCLE_ACC	      (1ULL << 1)
#define VMPT_RTIT_CTL_OS	      (1ULL << 2)
#define VMPT_RTIT_CTL_USER	      (1ULL << 3)
#define VMPT_RTIT_CTL_STS_ON_CR3      (1ULL << 4)
#define VMPT_RTIT_CTL_CR3_EN	      (1ULL << 7)
#define VMPT_RTIT_CTL_DEST	      (1ULL << 8) /* to DRAM; 0: to a debug port's MMIO */
#define VMPT_RTIT_CTL_MTC_EN	      (1ULL << 9)
#define VMPT_RTIT_CTL_STS_EN	      (1ULL << 10)
#define VMPT_RTIT_CTL_CMPRS_RET	      (1ULL << 11)
#define VMPT_RTIT_CTL_LESS_PKTS	      (1ULL << 12)
#define VMPT_RTIT_CTL_TRACE_ACTIVE    (1ULL << 13)
#define VMPT_RTIT_CTL_MTC_RANGE_SHIFT 14
#define VMPT_RTIT_CTL_MTC_RANGE	      (3ULL << VMPT_RTIT_CTL_MTC_RANGE_SHIFT)
#define VMPT_RTIT_CTL_TRIGGER	      (VMPT_RTIT_CTL_TRACE_EN | VMPT_RTIT_CTL_TRACE_ACTIVE)

/* RTIT_STATUS (3.3.3) */
#define VMPT_RTIT_STATUS_FILTER_EN  (1ULL << 0)
#define VMPT_RTIT_STATUS_CONTEXT_EN (1ULL << 1) /* read-only */
#define VMPT_RTIT_STATUS_TRIGGER_EN (1ULL << 2) /* read-only */
#define VMPT_RTIT_STATUS_OVERFLOW   (1ULL << 3) /* Buffer_Overflow */
#define VMPT_RTIT_STATUS_READ_ONLY  (VMPT_RTIT_STATUS_CONTEXT_EN | VMPT_RTIT_STATUS_TRIGGER_EN)

/* RTIT_EVENTS (Tables 6 and 7): Filter_Event_ID in 2:0, TraceStop_Event_ID in 5:3 */
#define VMPT_RTIT_EVENTS_STOP_SHIFT 3
#define VMPT_RTIT_EVENT_RANGE0	    0
#define VMPT_RTIT_EVENT_RANGE1	    1
#define VMPT_RTIT_EVENT_RANGES	    2
#define VMPT_RTIT_EVENT_OFF	    6
#define VMPT_RTIT_EVENT_ON	    7

/* Fields of the other registers, and values after RESET (3.3). */
#define VMPT_RTIT_LIP_MASK	   0xffffffffffffULL
#define VMPT_RTIT_LAST_LIP_VALID   (1ULL << 32) /* RTIT_LAST_LIP (Table 9) */
#define VMPT_RTIT_NLIP_VALID	   (1ULL << 48) /* RTIT_LAST_CALL_NLIP (Table 16) */
#define VMPT_RTIT_CNTP_MSB	   (1ULL << 21) /* a FUP.PCC is due (4.2.6) */
#define VMPT_RTIT_CNTP_MASK	   0x3fffffULL
#define VMPT_RTIT_PKT_CNT_MASK	   0x3fffULL
#define VMPT_RTIT_PKT_MASK_SHIFT   16
#define VMPT_RTIT_LIMIT_ONES	   0x3fULL /* LIMIT_MASK[5:0], reserved as 1 */
#define VMPT_RTIT_OFFSET_MASK	   0x3fffffULL
#define VMPT_RTIT_RESET_BASE_ADDR  0xfdc00000ULL
#define VMPT_RTIT_RESET_LIMIT_MASK 0x7fULL
#define VMPT_RTIT_RESET_PKT_CNT	   0x20000ULL
#define VMPT_RTIT_RESET_TNT_BUFF   1ULL

/* One logical processor's RTIT MSRs. */
struct vmpt_rtit_regs {
	u64 ctl, status;
	u64 lip[4];
	u64 cntp, events;
	u64 last_lip, last_call_nlip;
	u64 base_addr, limit_mask, offset;
	u64 cr3_match;
	u64 pkt_cnt;
	u64 tnt_buff;
	bool ctl_read; /* CTL has been read since RESET: the others may be used (3.3.1) */
};

/* Behaviour that differs between processors; all 0 is the manual's. */
struct vmpt_rtit_rules {
	bool lip_sign_extended;
};

/* A register's row in the table that checks and tests use. */
struct vmpt_rtit_reg_desc {
	u32 msr;
	const char *name;    /* "RTIT_CTL" */
	u64 fields;	     /* bits that a write stores */
	u64 ignored;	     /* read-only: a write may have them 0 or 1 and does not change them */
	u64 ones;	     /* bits reserved as 1 */
	u64 reset;	     /* value after RESET */
	const char *section; /* of the manual: "3.3.2" */
};

#define VMPT_RTIT_MSRS 16 /* LIP0 to LIP3 counted singly */
/* The table, by MSR number. */
extern const struct vmpt_rtit_reg_desc vmpt_rtit_reg_table[VMPT_RTIT_MSRS];

/* Whether @msr is one of the above. */
bool vmpt_rtit_is_msr(u32 msr);

/* The field that holds @msr, NULL if it is not an MSR of RTIT. No rule is checked. */
u64 *vmpt_rtit_reg(struct vmpt_rtit_regs *regs, u32 msr);

/* RESET (3.3): all registers, and CTL must be read again. INIT changes nothing. */
void vmpt_rtit_reset(struct vmpt_rtit_regs *regs);

/*
 * RDMSR. 0 and *value (a read of CTL sets regs->ctl_read); VMPT_GP with *why (may be NULL):
 * VMPT_GP_CTL_UNREAD; -VMPT_E_INVAL: not an MSR of RTIT. STATUS.TriggerEn follows CTL here;
 * ContextEn and FilterEn are as last stored.
 */
int vmpt_rtit_rdmsr(const struct vmpt_rtit_rules *rules, struct vmpt_rtit_regs *regs, u32 msr,
		    u64 *value, enum vmpt_gp_reason *why);

/*
 * WRMSR: check every rule of 3.3 and store the value that the register then holds. 0; VMPT_GP with
 * *why and nothing stored: VMPT_GP_CTL_UNREAD, VMPT_GP_RESERVED, VMPT_GP_TNT_ZERO; -VMPT_E_INVAL.
 * The effects of a change (packets, PSB, drain) are left to the caller.
 */
int vmpt_rtit_wrmsr(const struct vmpt_rtit_rules *rules, struct vmpt_rtit_regs *regs, u32 msr,
		    u64 value, enum vmpt_gp_reason *why);

/* Only the checks of a WRMSR, in their order. Results as of vmpt_rtit_wrmsr(). */
int vmpt_rtit_check_wrmsr(const struct vmpt_rtit_regs *regs, u32 msr, u64 value,
			  enum vmpt_gp_reason *why);

/*
 * As vmpt_rtit_wrmsr(), for a restore, which executes no instruction: CTL need not have been read,
 * STATUS is stored as a whole (except reserved bits).
 */
int vmpt_rtit_restore_msr(const struct vmpt_rtit_rules *rules, struct vmpt_rtit_regs *regs, u32 msr,
			  u64 value, enum vmpt_gp_reason *why);

/* TriggerEn (2.1.1) */
static inline bool vmpt_rtit_trigger_en(const struct vmpt_rtit_regs *regs)
{
	return (regs->ctl & VMPT_RTIT_CTL_TRIGGER) == VMPT_RTIT_CTL_TRIGGER;
}

/*
 * ContextEn (2.1.2) as far as CTL, CPL and CR3 determine it: SMM and VMX root operation are left to
 * the caller.
 */
bool vmpt_rtit_context_en(const struct vmpt_rtit_regs *regs, unsigned int cpl, u64 cr3);

/* Whether @lip lies in RANGE0 (@n 0) or RANGE1 (@n 1): [LIP0..LIP2-1], [LIP1..LIP3-1] (3.3.5). */
static inline bool vmpt_rtit_in_range(const struct vmpt_rtit_regs *regs, unsigned int n, u64 lip)
{
	lip &= VMPT_RTIT_LIP_MASK;
	return lip >= regs->lip[n] && lip < regs->lip[n + 2];
}

/* Physical address of the next output byte (2.3): (BASE AND NOT MASK) + (OFFSET AND MASK). */
static inline u64 vmpt_rtit_output_address(const struct vmpt_rtit_regs *regs)
{
	return (regs->base_addr & ~regs->limit_mask) + (regs->offset & regs->limit_mask);
}

/* Bytes of the circular buffer. */
static inline u64 vmpt_rtit_output_size(const struct vmpt_rtit_regs *regs)
{
	return regs->limit_mask + 1;
}

/* Pkt_Cnt at which a PSB is due: 2K << Pkt_Mask (3.3.9). */
static inline u64 vmpt_rtit_psb_period(const struct vmpt_rtit_regs *regs)
{
	return 2048ULL << (regs->pkt_cnt >> VMPT_RTIT_PKT_MASK_SHIFT & 3);
}

#ifdef __cplusplus
}
#endif

#endif
