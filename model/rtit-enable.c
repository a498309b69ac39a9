// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The enables of an RTIT unit (2.1, 2.4): TriggerEn, ContextEn, FilterEn by event IDs and ranges
 * (3.3.5), and the packets of a change of PacketEn (4.2.7, 4.2.8, 4.3.2).
 *
 * FilterEn and TraceStop depend on the state after an instruction: Appendix E2 has instructions
 * that set ContextEn or TriggerEn and at the same time clear FilterEn or stop the trace.
 */
#include "model/rtit-emit.h"

static void read_event(const struct vmpt_rtit_unit *unit, u64 id, struct vmpt_rtit_event *event)
{
	unsigned int n;

	event->ranges = id <= VMPT_RTIT_EVENT_RANGES;
	event->on = id == VMPT_RTIT_EVENT_ON;
	for (n = 0; n < 2; n++) {
		bool used = id == n || id == VMPT_RTIT_EVENT_RANGES;

		event->base[n] = used ? unit->regs.lip[n] : ~0ULL;
		event->limit[n] = used ? unit->regs.lip[n + 2] : ~0ULL;
	}
}

/* No branch or step changes FilterEn or stops the trace. */
static bool constant(const struct vmpt_rtit_unit *unit)
{
	return !unit->filter.ranges && !unit->stop.ranges && !unit->stop.on &&
	       unit->filter_en == unit->filter.on;
}

void vmpt_model_rtit_update(struct vmpt_rtit_unit *unit)
{
	u64 status = unit->regs.status & VMPT_RTIT_STATUS_OVERFLOW;

	unit->trigger_en = vmpt_rtit_trigger_en(&unit->regs);
	unit->context_en = !unit->smm && !unit->vmx_root &&
			   vmpt_rtit_context_en(&unit->regs, unit->mode.cpl, unit->mode.cr3);
	unit->packet_en = unit->trigger_en && unit->context_en && unit->filter_en;
	if (unit->filter_en)
		status |= VMPT_RTIT_STATUS_FILTER_EN;
	if (unit->context_en)
		status |= VMPT_RTIT_STATUS_CONTEXT_EN;
	if (unit->trigger_en)
		status |= VMPT_RTIT_STATUS_TRIGGER_EN;
	unit->regs.status = status;
	read_event(unit, unit->regs.events & 7, &unit->filter);
	read_event(unit, unit->regs.events >> VMPT_RTIT_EVENTS_STOP_SHIFT & 7, &unit->stop);
	unit->walk = unit->context_en && unit->regs.ctl & VMPT_RTIT_CTL_TRACE_EN &&
		     (unit->filter.ranges || (unit->trigger_en && unit->stop.ranges));
	unit->plain =
		unit->packet_en && !rtit_in_overflow(unit) && constant(unit) && !rtit_pcc_due(unit);
}

void vmpt_model_rtit_begin(const struct vmpt_rtit_unit *unit, struct rtit_change *c)
{
	*c = (struct rtit_change){
		.packet = unit->packet_en,
		.context = unit->context_en,
		.filter = unit->filter_en,
	};
}

void vmpt_model_rtit_decide_no_filter(struct vmpt_rtit_unit *unit, struct rtit_change *c)
{
	vmpt_model_rtit_update(unit);
	c->after = unit->packet_en;
}

void vmpt_model_rtit_decide(struct vmpt_rtit_unit *unit, struct rtit_change *c, bool taken, u64 ip)
{
	vmpt_model_rtit_update(unit);
	/* Frozen otherwise (2.1.3); for TraceStop see 4.2.11. */
	if (unit->context_en && unit->regs.ctl & VMPT_RTIT_CTL_TRACE_EN) {
		unit->filter_en = rtit_event(&unit->filter, unit->filter_en, taken, ip);
		c->stop = unit->trigger_en && rtit_event(&unit->stop, false, taken, ip);
		vmpt_model_rtit_update(unit);
	}
	c->after = unit->packet_en && (!c->stop || rtit_in_overflow(unit));
}

/* E2: PacketEn is 0 before and after it. */
static bool extra_pgd(const struct vmpt_rtit_unit *unit, const struct rtit_change *c)
{
	if (!rtit_erratum(unit, 2) || c->packet || c->after || !unit->trigger_en)
		return false;
	return ((c->filter && !unit->filter_en) || c->stop) &&
	       ((!c->context && unit->context_en) || c->enabled);
}

void vmpt_model_rtit_finish_rest(struct vmpt_rtit_unit *unit, const struct rtit_change *c, u64 nlip,
				 u64 ip)
{
	if (!c->packet && c->after)
		vmpt_model_rtit_lip(unit, VMPT_RTIT_PGE, ip);
	else if (extra_pgd(unit, c))
		vmpt_model_rtit_lip(unit, VMPT_RTIT_PGD, nlip);
	if (c->stop)
		vmpt_model_rtit_trace_stop(unit);
}

void vmpt_model_rtit_finish(struct vmpt_rtit_unit *unit, const struct rtit_change *c, u64 nlip,
			    u64 ip)
{
	/* Not where TriggerEn becomes 0 with it (4.2.8). */
	if (c->packet && !c->after && rtit_makes_pgd(unit, c) && !c->disabled)
		vmpt_model_rtit_lip(unit, VMPT_RTIT_PGD, nlip);
	vmpt_model_rtit_finish_rest(unit, c, nlip, ip);
}
