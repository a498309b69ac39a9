/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The MSRs of Intel PT (SDM 3 33.2.8): fields, reset values, and whether a read or a
 * write is legal. The same for a processor (model/) and for a VMM that stands in for
 * one (vmm-lib/). Pure functions on the caller's struct.
 *
 * Choices where the manual is silent:
 * - An encoding 0 of MTCFreq, CycThresh or PSBFreq that the bitmap of CPUID.14H.1 does
 *   not list is #GP only when MTCEn, CYCEn or TraceEn is set by the same write: 0 is
 *   the fields' reset value.
 * - Canonical means: for the processor's linear-address width (CPUID.80000008H).
 * - A read of STATUS gives TriggerEn as 33.2.6.2 defines it; ContextEn and FilterEn are
 *   what was stored last.
 */
#ifndef VMPT_ARCH_PT_REGS_H
#define VMPT_ARCH_PT_REGS_H

#include "arch/error.h"
#include "arch/pt-cpuid.h"
#include "arch/types.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Numbers of the MSRs (33.2.8); ADDR0_B to ADDR3_A are between ADDR0_A and ADDR3_B. */
#define VMPT_MSR_RTIT_OUTPUT_BASE      0x560
#define VMPT_MSR_RTIT_OUTPUT_MASK_PTRS 0x561
#define VMPT_MSR_RTIT_CTL	       0x570
#define VMPT_MSR_RTIT_STATUS	       0x571
#define VMPT_MSR_RTIT_CR3_MATCH	       0x572
#define VMPT_MSR_RTIT_ADDR0_A	       0x580
#define VMPT_MSR_RTIT_ADDR3_B	       0x587
/* Neighbours that PT touches */
#define VMPT_MSR_PLATFORM_INFO	    0xce
#define VMPT_MSR_PERF_GLOBAL_STATUS 0x38e
#define VMPT_MSR_PERF_GLOBAL_RESET  0x390 /* IA32_PERF_GLOBAL_STATUS_RESET */
#define VMPT_MSR_PERF_GLOBAL_SET    0x391 /* IA32_PERF_GLOBAL_STATUS_SET */

/* IA32_RTIT_CTL (Table 33-6) */
#define VMPT_CTL_TRACE_EN	  (1ULL << 0)
#define VMPT_CTL_CYC_EN		  (1ULL << 1)
#define VMPT_CTL_OS		  (1ULL << 2)
#define VMPT_CTL_USER		  (1ULL << 3)
#define VMPT_CTL_PWR_EVT_EN	  (1ULL << 4)
#define VMPT_CTL_FUP_ON_PTW	  (1ULL << 5)
#define VMPT_CTL_FABRIC_EN	  (1ULL << 6)
#define VMPT_CTL_CR3_FILTER	  (1ULL << 7)
#define VMPT_CTL_TOPA		  (1ULL << 8)
#define VMPT_CTL_MTC_EN		  (1ULL << 9)
#define VMPT_CTL_TSC_EN		  (1ULL << 10)
#define VMPT_CTL_DIS_RETC	  (1ULL << 11)
#define VMPT_CTL_PTW_EN		  (1ULL << 12)
#define VMPT_CTL_BRANCH_EN	  (1ULL << 13)
#define VMPT_CTL_MTC_FREQ_SHIFT	  14
#define VMPT_CTL_CYC_THRESH_SHIFT 19
#define VMPT_CTL_PSB_FREQ_SHIFT	  24
#define VMPT_CTL_MTC_FREQ	  (0xfULL << VMPT_CTL_MTC_FREQ_SHIFT)
#define VMPT_CTL_CYC_THRESH	  (0xfULL << VMPT_CTL_CYC_THRESH_SHIFT)
#define VMPT_CTL_PSB_FREQ	  (0xfULL << VMPT_CTL_PSB_FREQ_SHIFT)
#define VMPT_CTL_EVENT_EN	  (1ULL << 31)
#define VMPT_CTL_ADDR_SHIFT(n)	  (32 + 4 * (n))
#define VMPT_CTL_ADDR(n)	  (0xfULL << VMPT_CTL_ADDR_SHIFT(n))
#define VMPT_CTL_DIS_TNT	  (1ULL << 55)
#define VMPT_CTL_INJECT		  (1ULL << 56) /* InjectPsbPmiOnEnable */

/* ADDRn_CFG */
#define VMPT_ADDR_UNUSED    0
#define VMPT_ADDR_FILTER    1
#define VMPT_ADDR_TRACESTOP 2

/* IA32_RTIT_STATUS (Table 33-7) */
#define VMPT_STATUS_FILTER_EN	(1ULL << 0)
#define VMPT_STATUS_CONTEXT_EN	(1ULL << 1)
#define VMPT_STATUS_TRIGGER_EN	(1ULL << 2)
#define VMPT_STATUS_ERROR	(1ULL << 4)
#define VMPT_STATUS_STOPPED	(1ULL << 5)
#define VMPT_STATUS_PEND_PSB	(1ULL << 6)
#define VMPT_STATUS_PEND_PMI	(1ULL << 7) /* PendTopaPMI */
#define VMPT_STATUS_BYTES_SHIFT 32
#define VMPT_STATUS_BYTES	(0x1ffffULL << VMPT_STATUS_BYTES_SHIFT) /* PacketByteCnt */
/* Bits that a write leaves as they are. */
#define VMPT_STATUS_READ_ONLY \
	(VMPT_STATUS_FILTER_EN | VMPT_STATUS_CONTEXT_EN | VMPT_STATUS_TRIGGER_EN)

/* IA32_RTIT_OUTPUT_MASK_PTRS (Table 33-9) */
#define VMPT_LOWER_MASK	  0x7fULL /* reads 1 */
#define VMPT_MASK_TABLE	  0xffffff80ULL
#define VMPT_OFFSET_SHIFT 32

/* IA32_PERF_GLOBAL_STATUS.Trace_ToPA_PMI */
#define VMPT_GLOBAL_TOPA_PMI (1ULL << 55)

/* A guest-visible fault: the access is #GP(0). Positive, no error of ours. */
#define VMPT_GP 1

/* One logical processor's PT MSRs. After a cold reset all are 0 but LowerMask. */
struct vmpt_pt_regs {
	u64 ctl, status;
	u64 output_base, output_mask_ptrs;
	u64 cr3_match;
	u64 addr[2 * VMPT_PT_RANGES_MAX]; /* ADDR0_A, ADDR0_B, ADDR1_A, … */
};

/* What a write is checked against; made from CPUID once. */
struct vmpt_pt_rules {
	u64 ctl_mask;	 /* bits of CTL that may be 1 (ADDRn_CFG and encodings: besides) */
	u64 status_mask; /* bits of STATUS that may be written 1 or are ignored */
	u64 base_mask;	 /* bits of OUTPUT_BASE that may be 1 */
	u16 mtc_periods, cyc_thresholds, psb_freqs; /* legal encodings */
	u8 ranges;				    /* ADDRn pairs, 0 to 4 */
	u8 maxphyaddr, linear_bits;
	u8 present, cr3_filter, memory_output, topa, topa_multi, single_range, psb_cyc, preserve;
	u8 kept_over_warm_reset; /* Table 33-11, EBX[2] (c) */
	u8 no_ctl_writes;	 /* in VMX operation without VMX_MISC[14] (33.2.9.4); 0 at first */
};

/* Why an access was #GP. */
enum vmpt_gp_reason {
	VMPT_GP_NONE,
	VMPT_GP_NO_PT,	  /* CPUID shows no PT */
	VMPT_GP_ABSENT,	  /* this MSR is not there with these capabilities */
	VMPT_GP_TRACING,  /* TraceEn = 1 */
	VMPT_GP_RESERVED, /* a reserved bit */
	VMPT_GP_ENCODING, /* MTCFreq, CycThresh, PSBFreq or ADDRn_CFG */
	VMPT_GP_OUTPUT,	  /* output scheme that is not there */
	VMPT_GP_NOT_CANONICAL,
	VMPT_GP_VMX, /* CTL written in VMX operation (33.2.9.4) */
	/* RTIT (arch/rtit-regs.h) */
	VMPT_GP_CTL_UNREAD, /* RTIT_CTL (768H) has not been read yet */
	VMPT_GP_TNT_ZERO,   /* RTIT_TNT_BUFF would be 0 */
	VMPT_GP_REASONS
};

/* A short sentence; static memory, never NULL. */
#pragma GCC visibility push(default)
const char *vmpt_gp_reason(enum vmpt_gp_reason why);
#pragma GCC visibility pop

/* Whether @msr is one of 560H, 561H, 570H–572H, 580H–587H. */
bool vmpt_pt_is_msr(u32 msr);

/* The rules of a processor with @cpuid. */
void vmpt_pt_rules_init(struct vmpt_pt_rules *rules, const struct vmpt_pt_cpuid *cpuid);

/* Where @msr is kept, NULL if it is none. No rule is looked at. */
u64 *vmpt_pt_reg(struct vmpt_pt_regs *regs, u32 msr);

/* Whether @msr is there (33.2.8, Table 33-11). */
bool vmpt_pt_msr_exists(const struct vmpt_pt_rules *rules, u32 msr);

/*
 * RDMSR. 0 and *value, or VMPT_GP and *why. -VMPT_E_INVAL: not an MSR of PT.
 * @why may be NULL.
 */
int vmpt_pt_rdmsr(const struct vmpt_pt_rules *rules, const struct vmpt_pt_regs *regs, u32 msr,
		  u64 *value, enum vmpt_gp_reason *why);

/*
 * WRMSR: check @value by every rule of 33.2.8 and store what the register then holds
 * (read-only bits kept, LowerMask 1). 0, VMPT_GP with *why and nothing stored, or
 * -VMPT_E_INVAL. What a change of TraceEn brings about is the caller's part, but for
 * STATUS.TriggerEn, which follows it.
 */
int vmpt_pt_wrmsr(const struct vmpt_pt_rules *rules, struct vmpt_pt_regs *regs, u32 msr, u64 value,
		  enum vmpt_gp_reason *why);

/*
 * The same for whoever restores a state and not executes an instruction: in any order,
 * TraceEn or not; STATUS as a whole. All other rules hold.
 */
int vmpt_pt_restore_msr(const struct vmpt_pt_rules *rules, struct vmpt_pt_regs *regs, u32 msr,
			u64 value, enum vmpt_gp_reason *why);

/* RESET (33.2.8.1, 33.3.4). INIT changes nothing and has no function. */
void vmpt_pt_reset_cold(struct vmpt_pt_regs *regs);
void vmpt_pt_reset_warm(const struct vmpt_pt_rules *rules, struct vmpt_pt_regs *regs);

/* Clear TraceEn as SMI, VMXON, XSAVES and a VM exit with "clear IA32_RTIT_CTL" do. */
void vmpt_pt_clear_trace_en(struct vmpt_pt_regs *regs);

/* TriggerEn (33.2.6.2). */
static inline bool vmpt_pt_trigger_en(const struct vmpt_pt_regs *regs)
{
	return regs->ctl & VMPT_CTL_TRACE_EN &&
	       !(regs->status & (VMPT_STATUS_ERROR | VMPT_STATUS_STOPPED));
}

/* ContextEn (33.2.6.3; enclaves are not looked at). @pae: PAE paging is in use. */
bool vmpt_pt_context_en(const struct vmpt_pt_regs *regs, unsigned int cpl, u64 cr3, bool pae);

/* Bytes between two PSBs: 2K << PSBFreq. */
static inline u64 vmpt_pt_psb_period(const struct vmpt_pt_regs *regs)
{
	return 2048ULL << (regs->ctl >> VMPT_CTL_PSB_FREQ_SHIFT & 0xf);
}

/* STATUS.PacketByteCnt: bytes since the last PSB+ (Table 33-7). */
static inline u32 vmpt_pt_packet_bytes(const struct vmpt_pt_regs *regs)
{
	return (u32)(regs->status >> VMPT_STATUS_BYTES_SHIFT) & 0x1ffff;
}

/* The index of the current ToPA entry, 0 to 2^25 - 1 (bits 31:7 are bits 27:3 of the offset). */
static inline u32 vmpt_pt_topa_index(const struct vmpt_pt_regs *regs)
{
	return (u32)regs->output_mask_ptrs >> 7;
}

/* OutputOffset: of the next byte in its region. */
static inline u32 vmpt_pt_output_offset(const struct vmpt_pt_regs *regs)
{
	return (u32)(regs->output_mask_ptrs >> VMPT_OFFSET_SHIFT);
}

/* OUTPUT_MASK_PTRS of a position in a ToPA table: the inverse of the two above. */
static inline u64 vmpt_pt_mask_ptrs(u32 topa_index, u32 output_offset)
{
	return (u64)output_offset << VMPT_OFFSET_SHIFT | (u64)topa_index << 7 | VMPT_LOWER_MASK;
}

#ifdef __cplusplus
}
#endif

#endif
