// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The enables of an RTIT unit (2.1, 2.4): TriggerEn, ContextEn, FilterEn by event IDs and ranges
 * (3.3.5), and what a change of PacketEn leaves in the trace (4.2.7, 4.2.8, 4.3.2).
 *
 * FilterEn and TraceStop look at the state behind an instruction: Appendix E2 has instructions
 * that set ContextEn or TriggerEn and clear FilterEn or stop the trace at once.
 */
#include "model/rtit-emit.h"

static inline unsigned int filter_id(const struct vmpt_rtit_unit *unit)
{
	return (unsigned int)unit->regs.events & 7;
}

static inline unsigned int stop_id(const struct vmpt_rtit_unit *unit)
{
	return (unsigned int)(unit->regs.events >> VMPT_RTIT_EVENTS_STOP_SHIFT) & 7;
}

/* Whether range @n is a part of event @id (Table 7). */
static inline bool uses_range(unsigned int id, unsigned int n)
{
	return id == n || id == VMPT_RTIT_EVENT_RANGES;
}

static inline bool is_ranges(unsigned int id)
{
	return id <= VMPT_RTIT_EVENT_RANGES;
}

/* vmpt_rtit_in_range(), inline: with ranges this is asked at each branch. */
static inline bool in_range(const struct vmpt_rtit_unit *unit, unsigned int n, u64 lip)
{
	return lip >= unit->regs.lip[n] && lip < unit->regs.lip[n + 2];
}

static inline bool in_ranges(const struct vmpt_rtit_unit *unit, unsigned int id, u64 ip)
{
	return (uses_range(id, 0) && in_range(unit, 0, ip)) ||
	       (uses_range(id, 1) && in_range(unit, 1, ip));
}

static inline bool is_edge(const struct vmpt_rtit_unit *unit, unsigned int n, u64 ip)
{
	return ip == unit->regs.lip[n] || ip == unit->regs.lip[n + 2];
}

/* Whether @ip is a base or a limit of the event's ranges. */
static inline bool at_edge(const struct vmpt_rtit_unit *unit, unsigned int id, u64 ip)
{
	return (uses_range(id, 0) && is_edge(unit, 0, ip)) ||
	       (uses_range(id, 1) && is_edge(unit, 1, ip));
}

/*
 * What becomes of an event's condition, @was before (3.3.5): a branch's target decides; who walks
 * changes it at a base or limit only.
 */
static inline bool condition(const struct vmpt_rtit_unit *unit, unsigned int id, bool was,
			     bool taken, u64 ip)
{
	if (!is_ranges(id))
		return id == VMPT_RTIT_EVENT_ON;
	ip &= VMPT_RTIT_LIP_MASK;
	return taken || at_edge(unit, id, ip) ? in_ranges(unit, id, ip) : was;
}

/* A FUP.PCC is due and sent in this mode (4.2.6). */
static bool pcc_due(const struct vmpt_rtit_unit *unit)
{
	u64 ctl = unit->regs.ctl;

	return unit->regs.cntp & VMPT_RTIT_CNTP_MSB && ctl & VMPT_RTIT_CTL_CYCLE_ACC &&
	       unit->trigger_en && unit->context_en &&
	       (unit->filter_en || !(ctl & VMPT_RTIT_CTL_LESS_PKTS));
}

/* No branch or step changes FilterEn or stops the trace. */
static bool constant(const struct vmpt_rtit_unit *unit)
{
	unsigned int filter = filter_id(unit), stop = stop_id(unit);

	return !is_ranges(filter) && !is_ranges(stop) && stop != VMPT_RTIT_EVENT_ON &&
	       unit->filter_en == (filter == VMPT_RTIT_EVENT_ON);
}

void rtit_update(struct vmpt_rtit_unit *unit)
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
	unit->walk = unit->context_en && unit->regs.ctl & VMPT_RTIT_CTL_TRACE_EN &&
		     (is_ranges(filter_id(unit)) || (unit->trigger_en && is_ranges(stop_id(unit))));
	unit->plain =
		unit->packet_en && !rtit_in_overflow(unit) && constant(unit) && !pcc_due(unit);
}

void rtit_pcc(struct vmpt_rtit_unit *unit, u64 next_ip)
{
	if (pcc_due(unit) && !rtit_in_overflow(unit))
		rtit_lip(unit, VMPT_RTIT_PCC, next_ip);
}

void rtit_begin(const struct vmpt_rtit_unit *unit, struct rtit_change *c)
{
	*c = (struct rtit_change){
		.packet = unit->packet_en,
		.context = unit->context_en,
		.filter = unit->filter_en,
	};
}

bool rtit_unchanged(const struct vmpt_rtit_unit *unit, bool taken, u64 ip)
{
	return unit->walk &&
	       condition(unit, filter_id(unit), unit->filter_en, taken, ip) == unit->filter_en &&
	       !(unit->trigger_en && condition(unit, stop_id(unit), false, taken, ip));
}

void rtit_decide_no_filter(struct vmpt_rtit_unit *unit, struct rtit_change *c)
{
	rtit_update(unit);
	c->after = unit->packet_en;
}

void rtit_decide(struct vmpt_rtit_unit *unit, struct rtit_change *c, bool taken, u64 ip)
{
	rtit_update(unit);
	/* Frozen otherwise (2.1.3); for TraceStop see 4.2.11. */
	if (unit->context_en && unit->regs.ctl & VMPT_RTIT_CTL_TRACE_EN) {
		unit->filter_en = condition(unit, filter_id(unit), unit->filter_en, taken, ip);
		c->stop = unit->trigger_en && condition(unit, stop_id(unit), false, taken, ip);
		rtit_update(unit);
	}
	c->after = unit->packet_en && (!c->stop || rtit_in_overflow(unit));
}

/* E2: PacketEn is 0 before and behind it. */
static bool extra_pgd(const struct vmpt_rtit_unit *unit, const struct rtit_change *c)
{
	if (!rtit_erratum(unit, 2) || c->packet || c->after || !unit->trigger_en)
		return false;
	return ((c->filter && !unit->filter_en) || c->stop) &&
	       ((!c->context && unit->context_en) || c->enabled);
}

void rtit_finish_told(struct vmpt_rtit_unit *unit, const struct rtit_change *c, u64 nlip, u64 ip)
{
	if (!c->packet && c->after)
		rtit_lip(unit, VMPT_RTIT_PGE, ip);
	else if (extra_pgd(unit, c))
		rtit_lip(unit, VMPT_RTIT_PGD, nlip);
	if (c->stop)
		rtit_trace_stop(unit);
}

void rtit_finish(struct vmpt_rtit_unit *unit, const struct rtit_change *c, u64 nlip, u64 ip)
{
	/* Not where TriggerEn becomes 0 with it (4.2.8). */
	if (c->packet && !c->after && rtit_stop_tells(unit, c) && !c->disabled)
		rtit_lip(unit, VMPT_RTIT_PGD, nlip);
	rtit_finish_told(unit, c, nlip, ip);
}
