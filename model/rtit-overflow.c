// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* Buffer overflow (4.2.5) and TraceStop (4.2.11), which an overflow holds back, in an RTIT unit. */
#include "model/rtit-emit.h"

/* ---- TraceStop ---- */

/* In an overflow. E4: the packet comes at once, one per overflow, and nothing else of it. */
static void held(struct vmpt_rtit_unit *unit)
{
	if (!rtit_erratum(unit, 4))
		unit->stop_pending = true;
	else if (!unit->stop_tried)
		vmpt_model_rtit_put_trace_stop(unit);
	unit->stop_tried = true;
}

void vmpt_model_rtit_trace_stop(struct vmpt_rtit_unit *unit)
{
	if (!vmpt_model_rtit_ready(unit)) {
		held(unit);
		return;
	}
	unit->regs.ctl &= ~VMPT_RTIT_CTL_TRACE_ACTIVE;
	unit->filter_en = false;
	unit->stop_pending = false;
	vmpt_model_rtit_update(unit);
	vmpt_model_rtit_put_trace_stop(unit);
}

static void pending_stop(struct vmpt_rtit_unit *unit)
{
	if (unit->stop_pending && unit->trigger_en)
		vmpt_model_rtit_trace_stop(unit);
}

/* ---- overflow ---- */

void vmpt_model_rtit_overflow_begins(struct vmpt_rtit_unit *unit)
{
	unit->overflow_branch = false;
	unit->stop_tried = false;
	unit->plain = false;
}

void vmpt_rtit_unit_overflow(struct vmpt_rtit_unit *unit)
{
	if (!unit->trigger_en || rtit_in_overflow(unit))
		return;
	unit->regs.status |= VMPT_RTIT_STATUS_OVERFLOW;
	vmpt_model_rtit_overflow_begins(unit);
}

void vmpt_model_rtit_lost_tip(struct vmpt_rtit_unit *unit, u64 target)
{
	if (!rtit_in_overflow(unit))
		return;
	unit->overflow_branch = true;
	unit->overflow_target = target & VMPT_RTIT_LIP_MASK;
}

/* The delayed PSB comes when software ends the overflow, or never if TriggerEn is 0. */
void vmpt_model_rtit_held_psb(struct vmpt_rtit_unit *unit)
{
	if (unit->psb_held && unit->trigger_en)
		vmpt_model_rtit_psb(unit);
	else
		unit->psb_held = false;
}

void vmpt_model_rtit_held_stop(struct vmpt_rtit_unit *unit)
{
	pending_stop(unit);
	unit->stop_pending &= unit->trigger_en;
}

void vmpt_rtit_unit_overflow_resolve(struct vmpt_rtit_unit *unit, u64 ip)
{
	if (!rtit_in_overflow(unit) || !unit->trigger_en || !unit->context_en)
		return;
	vmpt_rtit_unit_drain(unit);
	if (unit->used)
		return;
	unit->regs.status &= ~VMPT_RTIT_STATUS_OVERFLOW;
	if (unit->psb_held)
		vmpt_model_rtit_psb(unit);
	/* Branches before the overflow, including a full TNT that caused it. */
	vmpt_model_rtit_send_tnt(unit);
	unit->regs.last_lip = 0;
	unit->regs.last_call_nlip = 0;
	unit->late = 0;
	unit->overflows++;
	vmpt_model_rtit_lip(unit, VMPT_RTIT_BUFF_OVF, ip);
	/* E5: only where tracing resumes at that branch's target. */
	if (rtit_erratum(unit, 5) && unit->overflow_branch &&
	    unit->overflow_target == (ip & VMPT_RTIT_LIP_MASK))
		vmpt_model_rtit_lip(unit, VMPT_RTIT_TIP, ip);
	unit->overflow_branch = false;
	vmpt_model_rtit_update(unit);
	pending_stop(unit);
}
