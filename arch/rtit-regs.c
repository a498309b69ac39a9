// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* The MSRs of RTIT: one table, and the checks that use it. */
#include "arch/rtit-regs.h"

#define CTL_FIELDS                                                                                 \
	(VMPT_RTIT_CTL_TRIGGER | VMPT_RTIT_CTL_CYCLE_ACC | VMPT_RTIT_CTL_OS | VMPT_RTIT_CTL_USER | \
	 VMPT_RTIT_CTL_STS_ON_CR3 | VMPT_RTIT_CTL_CR3_EN | VMPT_RTIT_CTL_DEST |                    \
	 VMPT_RTIT_CTL_MTC_EN | VMPT_RTIT_CTL_STS_EN | VMPT_RTIT_CTL_CMPRS_RET |                   \
	 VMPT_RTIT_CTL_LESS_PKTS | VMPT_RTIT_CTL_MTC_RANGE)
#define STATUS_FIELDS (VMPT_RTIT_STATUS_FILTER_EN | VMPT_RTIT_STATUS_OVERFLOW)
#define SIGN_EXT      (~VMPT_RTIT_LIP_MASK)
#define PHYS_BITS     0xfffffffffULL /* 35:0 */

#define LIP_ROW(n)                                                                           \
	{                                                                                    \
		VMPT_RTIT_MSR_LIP0 + (n), "RTIT_LIP" #n, VMPT_RTIT_LIP_MASK, SIGN_EXT, 0, 0, \
			"3.3.6"                                                              \
	}

const struct vmpt_rtit_reg_desc vmpt_rtit_reg_table[VMPT_RTIT_MSRS] = {
	LIP_ROW(0),
	LIP_ROW(1),
	LIP_ROW(2),
	LIP_ROW(3),
	{ VMPT_RTIT_MSR_CTL, "RTIT_CTL", CTL_FIELDS, 0, 0, 0, "3.3.2" },
	{ VMPT_RTIT_MSR_STATUS, "RTIT_STATUS", STATUS_FIELDS, VMPT_RTIT_STATUS_READ_ONLY, 0, 0,
	  "3.3.3" },
	{ VMPT_RTIT_MSR_CNTP, "RTIT_CNTP", VMPT_RTIT_CNTP_MASK, 0, 0, 0, "3.3.4" },
	{ VMPT_RTIT_MSR_EVENTS, "RTIT_EVENTS", 0x3f, 0, 0, 0, "3.3.5" },
	{ VMPT_RTIT_MSR_LAST_LIP, "RTIT_LAST_LIP", 0x1ffffffffULL, 0, 0, 0, "3.3.7" },
	{ VMPT_RTIT_MSR_LAST_CALL_NLIP, "RTIT_LAST_CALL_NLIP", 0x1ffffffffffffULL, 0, 0, 0,
	  "3.3.14" },
	{ VMPT_RTIT_MSR_BASE_ADDR, "RTIT_BASE_ADDR", PHYS_BITS & ~0x3fULL, 0, 0,
	  VMPT_RTIT_RESET_BASE_ADDR, "3.3.10" },
	{ VMPT_RTIT_MSR_LIMIT_MASK, "RTIT_LIMIT_MASK", 0x3fffc0, 0, VMPT_RTIT_LIMIT_ONES,
	  VMPT_RTIT_RESET_LIMIT_MASK, "3.3.11" },
	{ VMPT_RTIT_MSR_OFFSET, "RTIT_OFFSET", VMPT_RTIT_OFFSET_MASK, 0, 0, 0, "3.3.12" },
	{ VMPT_RTIT_MSR_CR3_MATCH, "RTIT_CR3_MATCH", PHYS_BITS & ~0x1fULL, 0, 0, 0, "3.3.8" },
	{ VMPT_RTIT_MSR_PKT_CNT, "RTIT_PKT_CNT", 0x33fff, 0, 0, VMPT_RTIT_RESET_PKT_CNT, "3.3.9" },
	{ VMPT_RTIT_MSR_TNT_BUFF, "RTIT_TNT_BUFF", 0x7f, 0, 0, VMPT_RTIT_RESET_TNT_BUFF, "3.3.13" },
};

static const struct vmpt_rtit_reg_desc *find(u32 msr)
{
	unsigned int i;

	for (i = 0; i < VMPT_RTIT_MSRS; i++)
		if (vmpt_rtit_reg_table[i].msr == msr)
			return &vmpt_rtit_reg_table[i];
	return NULL;
}

bool vmpt_rtit_is_msr(u32 msr)
{
	return find(msr);
}

u64 *vmpt_rtit_reg(struct vmpt_rtit_regs *regs, u32 msr)
{
	switch (msr) {
	case VMPT_RTIT_MSR_LIP0:
	case VMPT_RTIT_MSR_LIP0 + 1:
	case VMPT_RTIT_MSR_LIP0 + 2:
	case VMPT_RTIT_MSR_LIP3:
		return &regs->lip[msr - VMPT_RTIT_MSR_LIP0];
	case VMPT_RTIT_MSR_CTL:
		return &regs->ctl;
	case VMPT_RTIT_MSR_STATUS:
		return &regs->status;
	case VMPT_RTIT_MSR_CNTP:
		return &regs->cntp;
	case VMPT_RTIT_MSR_EVENTS:
		return &regs->events;
	case VMPT_RTIT_MSR_LAST_LIP:
		return &regs->last_lip;
	case VMPT_RTIT_MSR_LAST_CALL_NLIP:
		return &regs->last_call_nlip;
	case VMPT_RTIT_MSR_BASE_ADDR:
		return &regs->base_addr;
	case VMPT_RTIT_MSR_LIMIT_MASK:
		return &regs->limit_mask;
	case VMPT_RTIT_MSR_OFFSET:
		return &regs->offset;
	case VMPT_RTIT_MSR_CR3_MATCH:
		return &regs->cr3_match;
	case VMPT_RTIT_MSR_PKT_CNT:
		return &regs->pkt_cnt;
	case VMPT_RTIT_MSR_TNT_BUFF:
		return &regs->tnt_buff;
	default:
		return NULL;
	}
}

void vmpt_rtit_reset(struct vmpt_rtit_regs *regs)
{
	unsigned int i;

	for (i = 0; i < VMPT_RTIT_MSRS; i++)
		*vmpt_rtit_reg(regs, vmpt_rtit_reg_table[i].msr) = vmpt_rtit_reg_table[i].reset;
	regs->ctl_read = false;
}

static int fault(enum vmpt_gp_reason reason, enum vmpt_gp_reason *why)
{
	if (why)
		*why = reason;
	return VMPT_GP;
}

/* 3.3.3 */
static void follow_ctl(struct vmpt_rtit_regs *regs)
{
	regs->status &= ~VMPT_RTIT_STATUS_TRIGGER_EN;
	if (vmpt_rtit_trigger_en(regs))
		regs->status |= VMPT_RTIT_STATUS_TRIGGER_EN;
}

int vmpt_rtit_rdmsr(const struct vmpt_rtit_rules *rules, struct vmpt_rtit_regs *regs, u32 msr,
		    u64 *value, enum vmpt_gp_reason *why)
{
	const u64 *reg = vmpt_rtit_reg(regs, msr);

	if (!reg)
		return -VMPT_E_INVAL;
	if (msr == VMPT_RTIT_MSR_CTL)
		regs->ctl_read = true;
	if (!regs->ctl_read)
		return fault(VMPT_GP_CTL_UNREAD, why);
	follow_ctl(regs);
	*value = *reg;
	if (msr <= VMPT_RTIT_MSR_LIP3 && rules->lip_sign_extended && *reg >> 47)
		*value |= SIGN_EXT;
	return 0;
}

static int check(const struct vmpt_rtit_reg_desc *desc, u64 value, enum vmpt_gp_reason *why)
{
	if (value & ~(desc->fields | desc->ignored | desc->ones))
		return fault(VMPT_GP_RESERVED, why);
	if (~value & desc->ones)
		return fault(VMPT_GP_RESERVED, why);
	if (desc->msr == VMPT_RTIT_MSR_TNT_BUFF && !value)
		return fault(VMPT_GP_TNT_ZERO, why);
	return 0;
}

static int check_wrmsr(const struct vmpt_rtit_regs *regs, const struct vmpt_rtit_reg_desc *desc,
		       u64 value, enum vmpt_gp_reason *why)
{
	if (!desc)
		return -VMPT_E_INVAL;
	return regs->ctl_read ? check(desc, value, why) : fault(VMPT_GP_CTL_UNREAD, why);
}

int vmpt_rtit_check_wrmsr(const struct vmpt_rtit_regs *regs, u32 msr, u64 value,
			  enum vmpt_gp_reason *why)
{
	return check_wrmsr(regs, find(msr), value, why);
}

int vmpt_rtit_wrmsr(const struct vmpt_rtit_rules *rules, struct vmpt_rtit_regs *regs, u32 msr,
		    u64 value, enum vmpt_gp_reason *why)
{
	const struct vmpt_rtit_reg_desc *desc = find(msr);
	int ret = check_wrmsr(regs, desc, value, why);
	u64 *reg = vmpt_rtit_reg(regs, msr);

	(void)rules;
	if (ret)
		return ret;
	*reg = (value & (desc->fields | desc->ones)) | (*reg & desc->ignored & ~SIGN_EXT);
	follow_ctl(regs);
	return 0;
}

int vmpt_rtit_restore_msr(const struct vmpt_rtit_rules *rules, struct vmpt_rtit_regs *regs, u32 msr,
			  u64 value, enum vmpt_gp_reason *why)
{
	const struct vmpt_rtit_reg_desc *desc = find(msr);

	(void)rules;
	if (!desc)
		return -VMPT_E_INVAL;
	if (check(desc, value, why))
		return VMPT_GP;
	*vmpt_rtit_reg(regs, msr) =
		value & (desc->fields | desc->ones | (desc->ignored & ~SIGN_EXT));
	follow_ctl(regs);
	return 0;
}

bool vmpt_rtit_context_en(const struct vmpt_rtit_regs *regs, unsigned int cpl, u64 cr3)
{
	u64 ctl = regs->ctl;

	if (!(ctl & (cpl ? VMPT_RTIT_CTL_USER : VMPT_RTIT_CTL_OS)))
		return false;
	/* Table 10: bits 35:5 are compared. */
	return !(ctl & VMPT_RTIT_CTL_CR3_EN) || regs->cr3_match == (cr3 & PHYS_BITS & ~0x1fULL);
}
