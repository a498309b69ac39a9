// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The MSRs of Intel PT as a processor keeps them (SDM 3 33.2.8): what a read gives, what a
 * write leaves behind, reset. Whether a write is legal is asked of check() first, so a
 * #GP changes nothing.
 */
#include "arch/pt-regs.h"

static const char *const reasons[VMPT_GP_REASONS] = {
	[VMPT_GP_NONE] = "no fault",
	[VMPT_GP_NO_PT] = "the processor has no Intel PT",
	[VMPT_GP_ABSENT] = "the processor does not have this MSR of Intel PT",
	[VMPT_GP_TRACING] = "written while TraceEn is 1",
	[VMPT_GP_RESERVED] = "a reserved bit is set",
	[VMPT_GP_ENCODING] = "an encoding that the processor does not support",
	[VMPT_GP_OUTPUT] = "an output scheme that the processor does not have",
	[VMPT_GP_NOT_CANONICAL] = "the address is not canonical",
	[VMPT_GP_VMX] = "IA32_RTIT_CTL written in VMX operation without IA32_VMX_MISC[14]",
	[VMPT_GP_CTL_UNREAD] = "RTIT_CTL has not been read since RESET",
	[VMPT_GP_TNT_ZERO] = "RTIT_TNT_BUFF written 0",
};

const char *vmpt_gp_reason(enum vmpt_gp_reason why)
{
	return (unsigned int)why < VMPT_GP_REASONS ? reasons[why] : "unknown reason";
}

/* 580H to 587H: ADDR0_A, ADDR0_B, ADDR1_A, … */
static bool is_addr(u32 msr)
{
	return msr >= VMPT_MSR_RTIT_ADDR0_A && msr <= VMPT_MSR_RTIT_ADDR3_B;
}

static const u64 *find(const struct vmpt_pt_regs *regs, u32 msr)
{
	if (is_addr(msr))
		return &regs->addr[msr - VMPT_MSR_RTIT_ADDR0_A];
	switch (msr) {
	case VMPT_MSR_RTIT_OUTPUT_BASE:
		return &regs->output_base;
	case VMPT_MSR_RTIT_OUTPUT_MASK_PTRS:
		return &regs->output_mask_ptrs;
	case VMPT_MSR_RTIT_CTL:
		return &regs->ctl;
	case VMPT_MSR_RTIT_STATUS:
		return &regs->status;
	case VMPT_MSR_RTIT_CR3_MATCH:
		return &regs->cr3_match;
	default:
		return NULL;
	}
}

u64 *vmpt_pt_reg(struct vmpt_pt_regs *regs, u32 msr)
{
	return (u64 *)find(regs, msr);
}

bool vmpt_pt_is_msr(u32 msr)
{
	return is_addr(msr) || msr == VMPT_MSR_RTIT_OUTPUT_BASE ||
	       msr == VMPT_MSR_RTIT_OUTPUT_MASK_PTRS ||
	       (msr >= VMPT_MSR_RTIT_CTL && msr <= VMPT_MSR_RTIT_CR3_MATCH);
}

/* ---- what a processor has ---- */

/* Bits of CTL that one capability each unlocks (Table 33-6, Table 33-11). */
static const struct {
	u64 bits;
	u8 cap; /* enum vmpt_pt_cap */
} ctl_caps[] = {
	{ VMPT_CTL_CYC_EN, VMPT_CAP_PSB_CYC },
	{ VMPT_CTL_PWR_EVT_EN, VMPT_CAP_POWER },
	{ VMPT_CTL_FUP_ON_PTW | VMPT_CTL_PTW_EN, VMPT_CAP_PTWRITE },
	{ VMPT_CTL_FABRIC_EN, VMPT_CAP_FABRIC },
	{ VMPT_CTL_CR3_FILTER, VMPT_CAP_CR3_FILTER },
	{ VMPT_CTL_TOPA, VMPT_CAP_TOPA },
	{ VMPT_CTL_MTC_EN, VMPT_CAP_MTC },
	{ VMPT_CTL_EVENT_EN, VMPT_CAP_EVENT },
	{ VMPT_CTL_DIS_TNT, VMPT_CAP_TNT_DISABLE },
	{ VMPT_CTL_INJECT, VMPT_CAP_PRESERVE },
};

#define CTL_ALWAYS                                                                               \
	(VMPT_CTL_TRACE_EN | VMPT_CTL_OS | VMPT_CTL_USER | VMPT_CTL_TSC_EN | VMPT_CTL_DIS_RETC | \
	 VMPT_CTL_BRANCH_EN)

static void init_masks(struct vmpt_pt_rules *rules, const struct vmpt_pt_cpuid *cpuid)
{
	size_t i;

	rules->ctl_mask = CTL_ALWAYS;
	for (i = 0; i < VMPT_ARRAY_SIZE(ctl_caps); i++)
		if (vmpt_pt_cap_effective(cpuid, (enum vmpt_pt_cap)ctl_caps[i].cap))
			rules->ctl_mask |= ctl_caps[i].bits;
	rules->status_mask = VMPT_STATUS_READ_ONLY | VMPT_STATUS_ERROR | VMPT_STATUS_STOPPED;
	if (rules->preserve)
		rules->status_mask |= VMPT_STATUS_PEND_PSB | VMPT_STATUS_PEND_PMI;
	if (rules->psb_cyc)
		rules->status_mask |= VMPT_STATUS_BYTES;
	rules->base_mask = vmpt_mask64(rules->maxphyaddr) & ~VMPT_LOWER_MASK;
}

void vmpt_pt_rules_init(struct vmpt_pt_rules *rules, const struct vmpt_pt_cpuid *cpuid)
{
	memset(rules, 0, sizeof(*rules));
	/* Widths are cut to what the architecture has: nothing behind may shift further. */
	rules->maxphyaddr = cpuid->maxphyaddr > 52 ? 52 : cpuid->maxphyaddr;
	rules->linear_bits = cpuid->linear_bits >= 57 ? 57 : 48;
	if (!cpuid->present)
		return;
	rules->present = 1;
	rules->cr3_filter = (u8)vmpt_pt_cap_effective(cpuid, VMPT_CAP_CR3_FILTER);
	rules->topa = (u8)vmpt_pt_cap_effective(cpuid, VMPT_CAP_TOPA);
	rules->topa_multi = (u8)vmpt_pt_cap_effective(cpuid, VMPT_CAP_TOPA_MULTI);
	rules->single_range = (u8)vmpt_pt_cap_effective(cpuid, VMPT_CAP_SINGLE_RANGE);
	rules->memory_output = rules->topa || rules->single_range;
	rules->psb_cyc = (u8)vmpt_pt_cap_effective(cpuid, VMPT_CAP_PSB_CYC);
	rules->preserve = (u8)vmpt_pt_cap_effective(cpuid, VMPT_CAP_PRESERVE);
	rules->kept_over_warm_reset = (u8)vmpt_pt_cap_effective(cpuid, VMPT_CAP_IP_FILTER);
	rules->ranges = (u8)vmpt_pt_cap_effective(cpuid, VMPT_CAP_RANGES);
	rules->mtc_periods = (u16)vmpt_pt_cap_effective(cpuid, VMPT_CAP_MTC_PERIODS);
	rules->cyc_thresholds = (u16)vmpt_pt_cap_effective(cpuid, VMPT_CAP_CYC_THRESHOLDS);
	rules->psb_freqs = (u16)vmpt_pt_cap_effective(cpuid, VMPT_CAP_PSB_FREQS);
	init_masks(rules, cpuid);
}

bool vmpt_pt_msr_exists(const struct vmpt_pt_rules *rules, u32 msr)
{
	if (!rules->present)
		return false;
	if (is_addr(msr))
		return (msr - VMPT_MSR_RTIT_ADDR0_A) / 2 < rules->ranges;
	switch (msr) {
	case VMPT_MSR_RTIT_OUTPUT_BASE:
	case VMPT_MSR_RTIT_OUTPUT_MASK_PTRS:
		return rules->memory_output;
	case VMPT_MSR_RTIT_CTL:
	case VMPT_MSR_RTIT_STATUS:
		return true;
	case VMPT_MSR_RTIT_CR3_MATCH:
		return rules->cr3_filter;
	default:
		return false;
	}
}

/* ---- whether a write is legal ---- */

/*
 * MTCFreq, CycThresh or PSBFreq at @shift: reserved where @has is 0, else listed in
 * @legal. 0 is the value after reset: where it is not listed it counts only in @use.
 */
static enum vmpt_gp_reason check_encoding(u64 ctl, unsigned int shift, bool has, u16 legal, u64 use)
{
	unsigned int encoding = ctl >> shift & 0xf;

	if (!has)
		return encoding ? VMPT_GP_RESERVED : VMPT_GP_NONE;
	if (legal >> encoding & 1 || (!encoding && !(ctl & use)))
		return VMPT_GP_NONE;
	return VMPT_GP_ENCODING;
}

/* ADDRn_CFG (Table 33-6): beyond RANGECNT reserved, else 0 to 2. */
static enum vmpt_gp_reason check_ranges(const struct vmpt_pt_rules *rules, u64 ctl)
{
	unsigned int n;

	for (n = 0; n < VMPT_PT_RANGES_MAX; n++) {
		unsigned int cfg = ctl >> VMPT_CTL_ADDR_SHIFT(n) & 0xf;

		if (cfg && n >= rules->ranges)
			return VMPT_GP_RESERVED;
		if (cfg > VMPT_ADDR_TRACESTOP)
			return VMPT_GP_ENCODING;
	}
	return VMPT_GP_NONE;
}

/* The fields that check_encoding() and check_ranges() look at. */
#define CTL_ENCODED                                                                       \
	(VMPT_CTL_MTC_FREQ | VMPT_CTL_CYC_THRESH | VMPT_CTL_PSB_FREQ | VMPT_CTL_ADDR(0) | \
	 VMPT_CTL_ADDR(1) | VMPT_CTL_ADDR(2) | VMPT_CTL_ADDR(3))

/* Whether CTL may hold @ctl, whatever it holds now (33.2.8.2). */
static enum vmpt_gp_reason check_ctl(const struct vmpt_pt_rules *rules, u64 ctl)
{
	enum vmpt_gp_reason why;

	if (ctl & VMPT_CTL_TOPA && !rules->topa)
		return VMPT_GP_OUTPUT;
	if (ctl & ~(rules->ctl_mask | CTL_ENCODED))
		return VMPT_GP_RESERVED;
	why = check_encoding(ctl, VMPT_CTL_MTC_FREQ_SHIFT, rules->ctl_mask & VMPT_CTL_MTC_EN,
			     rules->mtc_periods, VMPT_CTL_MTC_EN);
	if (!why)
		why = check_encoding(ctl, VMPT_CTL_CYC_THRESH_SHIFT, rules->psb_cyc,
				     rules->cyc_thresholds, VMPT_CTL_CYC_EN);
	if (!why)
		why = check_encoding(ctl, VMPT_CTL_PSB_FREQ_SHIFT, rules->psb_cyc, rules->psb_freqs,
				     VMPT_CTL_TRACE_EN);
	if (!why)
		why = check_ranges(rules, ctl);
	if (why)
		return why;
	if (ctl & VMPT_CTL_TRACE_EN && !(ctl & (VMPT_CTL_TOPA | VMPT_CTL_FABRIC_EN)) &&
	    !rules->single_range)
		return VMPT_GP_OUTPUT;
	return VMPT_GP_NONE;
}

static bool canonical(u64 address, unsigned int bits)
{
	s64 top = (s64)address >> (bits - 1);

	return !top || top == -1;
}

/* Whether @msr, which is there, may hold @value. */
static enum vmpt_gp_reason check_value(const struct vmpt_pt_rules *rules, u32 msr, u64 value)
{
	u64 allowed = ~0ULL;

	if (is_addr(msr))
		return canonical(value, rules->linear_bits) ? VMPT_GP_NONE : VMPT_GP_NOT_CANONICAL;
	switch (msr) {
	case VMPT_MSR_RTIT_CTL:
		return check_ctl(rules, value);
	case VMPT_MSR_RTIT_STATUS:
		allowed = rules->status_mask;
		break;
	case VMPT_MSR_RTIT_OUTPUT_BASE:
		allowed = rules->base_mask;
		break;
	case VMPT_MSR_RTIT_CR3_MATCH:
		allowed = ~0x1fULL; /* 33.2.8.6 */
		break;
	}
	return value & ~allowed ? VMPT_GP_RESERVED : VMPT_GP_NONE;
}

/* What TraceEn = 1 and VMX operation forbid to an instruction (33.2.8.1, 33.2.8.3, 33.2.9.4). */
static enum vmpt_gp_reason check_now(const struct vmpt_pt_rules *rules,
				     const struct vmpt_pt_regs *regs, u32 msr, u64 value)
{
	if (msr == VMPT_MSR_RTIT_CTL && rules->no_ctl_writes)
		return VMPT_GP_VMX;
	if (!(regs->ctl & VMPT_CTL_TRACE_EN))
		return VMPT_GP_NONE;
	if (msr == VMPT_MSR_RTIT_CTL && (value == regs->ctl || !(value & VMPT_CTL_TRACE_EN)))
		return VMPT_GP_NONE;
	return VMPT_GP_TRACING;
}

/* ---- reads, writes, reset ---- */

static int result(enum vmpt_gp_reason why, enum vmpt_gp_reason *out)
{
	if (out)
		*out = why;
	return why ? VMPT_GP : 0;
}

static enum vmpt_gp_reason check_exists(const struct vmpt_pt_rules *rules, u32 msr)
{
	if (!rules->present)
		return VMPT_GP_NO_PT;
	return vmpt_pt_msr_exists(rules, msr) ? VMPT_GP_NONE : VMPT_GP_ABSENT;
}

static u64 with_trigger_en(const struct vmpt_pt_regs *regs)
{
	u64 status = regs->status & ~VMPT_STATUS_TRIGGER_EN;

	return vmpt_pt_trigger_en(regs) ? status | VMPT_STATUS_TRIGGER_EN : status;
}

int vmpt_pt_rdmsr(const struct vmpt_pt_rules *rules, const struct vmpt_pt_regs *regs, u32 msr,
		  u64 *value, enum vmpt_gp_reason *why)
{
	enum vmpt_gp_reason gp;

	if (!vmpt_pt_is_msr(msr))
		return -VMPT_E_INVAL;
	gp = check_exists(rules, msr);
	if (gp)
		return result(gp, why);
	*value = *find(regs, msr);
	if (msr == VMPT_MSR_RTIT_STATUS)
		*value = with_trigger_en(regs);
	else if (msr == VMPT_MSR_RTIT_OUTPUT_MASK_PTRS)
		*value |= VMPT_LOWER_MASK;
	return result(VMPT_GP_NONE, why);
}

/* @msr gets @value, of which the bits @kept stay as they are. */
static void store(struct vmpt_pt_regs *regs, u32 msr, u64 value, u64 kept)
{
	u64 *reg = vmpt_pt_reg(regs, msr);

	*reg = (*reg & kept) | (value & ~kept);
	if (msr == VMPT_MSR_RTIT_OUTPUT_MASK_PTRS)
		*reg |= VMPT_LOWER_MASK;
	regs->status = with_trigger_en(regs);
}

int vmpt_pt_wrmsr(const struct vmpt_pt_rules *rules, struct vmpt_pt_regs *regs, u32 msr, u64 value,
		  enum vmpt_gp_reason *why)
{
	enum vmpt_gp_reason gp;

	if (!vmpt_pt_is_msr(msr))
		return -VMPT_E_INVAL;
	gp = check_exists(rules, msr);
	if (!gp)
		gp = check_now(rules, regs, msr, value);
	if (!gp)
		gp = check_value(rules, msr, value);
	if (!gp)
		store(regs, msr, value, msr == VMPT_MSR_RTIT_STATUS ? VMPT_STATUS_READ_ONLY : 0);
	return result(gp, why);
}

int vmpt_pt_restore_msr(const struct vmpt_pt_rules *rules, struct vmpt_pt_regs *regs, u32 msr,
			u64 value, enum vmpt_gp_reason *why)
{
	enum vmpt_gp_reason gp;

	if (!vmpt_pt_is_msr(msr))
		return -VMPT_E_INVAL;
	gp = check_exists(rules, msr);
	/* VMXON cleared TraceEn and nothing could set it since: no such state exists. */
	if (!gp && msr == VMPT_MSR_RTIT_CTL && rules->no_ctl_writes && value & VMPT_CTL_TRACE_EN)
		gp = VMPT_GP_VMX;
	if (!gp)
		gp = check_value(rules, msr, value);
	if (!gp)
		store(regs, msr, value, 0);
	return result(gp, why);
}

void vmpt_pt_reset_cold(struct vmpt_pt_regs *regs)
{
	memset(regs, 0, sizeof(*regs));
	regs->output_mask_ptrs = VMPT_LOWER_MASK;
}

void vmpt_pt_reset_warm(const struct vmpt_pt_rules *rules, struct vmpt_pt_regs *regs)
{
	if (rules->kept_over_warm_reset)
		vmpt_pt_clear_trace_en(regs);
	else
		vmpt_pt_reset_cold(regs);
}

void vmpt_pt_clear_trace_en(struct vmpt_pt_regs *regs)
{
	regs->ctl &= ~VMPT_CTL_TRACE_EN;
	regs->status &= ~VMPT_STATUS_TRIGGER_EN;
}

bool vmpt_pt_context_en(const struct vmpt_pt_regs *regs, unsigned int cpl, u64 cr3, bool pae)
{
	u64 compared = pae ? ~0x1fULL : ~0xfffULL; /* 33.2.5.2 */

	if (!(regs->ctl & (cpl ? VMPT_CTL_USER : VMPT_CTL_OS)))
		return false;
	return !(regs->ctl & VMPT_CTL_CR3_FILTER) || !((cr3 ^ regs->cr3_match) & compared);
}
