// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* An RTIT unit's beginning, RESET and its MSRs (3.3), with the packets that a write makes. */
#include "model/rtit-emit.h"

int vmpt_rtit_unit_init(struct vmpt_rtit_unit *unit, const struct vmpt_rtit_unit_config *config)
{
	if (!config->sink || config->options.psb_clears_late > 4)
		return -VMPT_E_INVAL;
	memset(unit, 0, sizeof(*unit));
	unit->config = *config;
	vmpt_rtit_reset(&unit->regs);
	rtit_update(unit);
	return 0;
}

/* What waits inside is written as far as it can be, then it is lost. */
void vmpt_rtit_unit_reset(struct vmpt_rtit_unit *unit)
{
	vmpt_rtit_unit_drain(unit);
	unit->used = 0;
	vmpt_rtit_reset(&unit->regs);
	memset(&unit->mode, 0, sizeof(unit->mode));
	unit->filter_en = false;
	unit->smm = false;
	unit->vmx_root = false;
	unit->stop_pending = false;
	unit->stop_given = false;
	unit->psb_held = false;
	unit->psb_late = false;
	unit->mtc_first = false;
	unit->overflow_branch = false;
	unit->late = 0;
	rtit_update(unit);
}

int vmpt_rtit_unit_rdmsr(struct vmpt_rtit_unit *unit, u32 msr, u64 *value)
{
	return vmpt_rtit_rdmsr(&unit->config.options.rules, &unit->regs, msr, value, NULL);
}

/* ---- WRMSR ---- */

/* Before the register changes. */
static void before_write(struct vmpt_rtit_unit *unit, u32 msr, u64 value, u64 next_ip)
{
	switch (msr) {
	case VMPT_RTIT_MSR_CTL:
		if (unit->config.options.pgd_at_disable && unit->packet_en &&
		    (value & VMPT_RTIT_CTL_TRIGGER) != VMPT_RTIT_CTL_TRIGGER)
			rtit_lip(unit, VMPT_RTIT_PGD, next_ip);
		break;
	case VMPT_RTIT_MSR_BASE_ADDR:
	case VMPT_RTIT_MSR_LIMIT_MASK:
	case VMPT_RTIT_MSR_OFFSET:
		/* What was generated goes to where output went until now. */
		vmpt_rtit_unit_drain(unit);
		break;
	default:
		break;
	}
}

/* CTL has its new value, the enables still the old one. */
static void ctl_written(struct vmpt_rtit_unit *unit, u64 was, struct rtit_change *c)
{
	u64 ctl = unit->regs.ctl;

	c->enabled = !unit->trigger_en && vmpt_rtit_trigger_en(&unit->regs);
	c->disabled = unit->trigger_en && !vmpt_rtit_trigger_en(&unit->regs);
	if ((ctl ^ was) & VMPT_RTIT_CTL_MTC_RANGE || c->enabled)
		rtit_mtc_restart(unit);
	if (!c->enabled)
		return;
	unit->mtc_first = true;
	rtit_update(unit);
	rtit_psb(unit);
}

static void write_ctl(struct vmpt_rtit_unit *unit, u64 was, u64 next_ip)
{
	struct rtit_change c;

	rtit_begin(unit, &c);
	ctl_written(unit, was, &c);
	rtit_decide(unit, &c, false, next_ip);
	rtit_finish(unit, &c, next_ip, next_ip);
	vmpt_rtit_unit_drain(unit);
}

/* FilterEn as written stays until the next instruction; see docs/rtit/model.md. */
static void write_status(struct vmpt_rtit_unit *unit, bool was_overflow, u64 next_ip)
{
	bool ended = was_overflow && !rtit_in_overflow(unit);
	struct rtit_change c;

	if (!was_overflow && rtit_in_overflow(unit))
		rtit_overflow_begins(unit);
	rtit_begin(unit, &c);
	unit->filter_en = unit->regs.status & VMPT_RTIT_STATUS_FILTER_EN;
	rtit_decide_no_filter(unit, &c);
	/* The PSB of TriggerEn before all that it makes readable. */
	if (ended)
		rtit_held_psb(unit);
	rtit_finish(unit, &c, next_ip, next_ip);
	if (ended)
		rtit_held_stop(unit);
}

static void write_other(struct vmpt_rtit_unit *unit, u32 msr, u64 next_ip)
{
	struct rtit_change c;

	if (msr == VMPT_RTIT_MSR_PKT_CNT) {
		unit->psb_late = false;
		rtit_check_psb(unit);
	}
	/* A full TNT "should be soon sent out" (3.3.13). */
	if (msr == VMPT_RTIT_MSR_TNT_BUFF && unit->packet_en &&
	    unit->regs.tnt_buff >> VMPT_RTIT_TNT_FULL)
		rtit_send_tnt(unit);
	rtit_begin(unit, &c);
	rtit_decide(unit, &c, false, next_ip);
	rtit_finish(unit, &c, next_ip, next_ip);
}

int vmpt_rtit_unit_wrmsr(struct vmpt_rtit_unit *unit, u32 msr, u64 value, u64 next_ip)
{
	const struct vmpt_rtit_rules *rules = &unit->config.options.rules;
	int ret = vmpt_rtit_check_wrmsr(&unit->regs, msr, value, NULL);
	u64 was;

	if (ret)
		return ret;
	rtit_pcc(unit, next_ip);
	before_write(unit, msr, value, next_ip);
	was = msr == VMPT_RTIT_MSR_STATUS ? unit->regs.status : unit->regs.ctl;
	vmpt_rtit_wrmsr(rules, &unit->regs, msr, value, NULL);
	if (msr == VMPT_RTIT_MSR_CTL)
		write_ctl(unit, was, next_ip);
	else if (msr == VMPT_RTIT_MSR_STATUS)
		write_status(unit, was & VMPT_RTIT_STATUS_OVERFLOW, next_ip);
	else
		write_other(unit, msr, next_ip);
	return 0;
}
