// SPDX-License-Identifier: GPL-2.0-only OR MIT
#include <stdarg.h>
#include <stdio.h>

#include "decoder/vmpt-rtit-flow.h"
#include "tests/rtit/flow-walk.h"

/* More instructions than this without a packet are an endless loop. */
#define SILENT_MAX 1000000u

/* ---- reports ---- */

bool rtit_walk_fail(struct flow *f, const char *fmt, ...)
{
	char *text = f->result->error;
	size_t size = sizeof(f->result->error);
	va_list args;
	int n;

	if (*text || f->probe || f->ended)
		return false;
	n = snprintf(text, size, "offset %#llx, at %#llx: ", (unsigned long long)f->pkt.offset,
		     (unsigned long long)rtit_canonical(f->ip));
	va_start(args, fmt);
	vsnprintf(text + n, size - (size_t)n, fmt, args);
	va_end(args);
	return false;
}

bool rtit_walk_report(struct flow *f, struct rtit_flow_event *event)
{
	if (f->probe)
		return true;
	event->offset = f->pkt.offset;
	event->from = rtit_canonical(event->from);
	event->to = rtit_canonical(event->to);
	f->result->events[event->kind]++;
	if (!f->ops->event || f->ops->event(f->ops->opaque, event))
		return true;
	f->ended = true;
	return false;
}

bool rtit_walk_report_at(struct flow *f, unsigned int kind, u64 from, u64 to)
{
	struct rtit_flow_event event = { .kind = (u8)kind, .from = from, .to = to };

	return rtit_walk_report(f, &event);
}

bool rtit_walk_erratum(struct flow *f, unsigned int number)
{
	struct rtit_flow_event event = { .kind = RTIT_FLOW_ERRATUM, .number = number };

	return rtit_walk_report(f, &event);
}

bool rtit_walk_lose(struct flow *f, bool no_lip)
{
	struct rtit_flow_event event = { .kind = RTIT_FLOW_LOST, .from = f->ip, .no_lip = no_lip };

	f->state = LOST;
	return rtit_walk_report(f, &event);
}

/* ---- ranges, as far as the options know them (3.3.5) ---- */

static bool in_event(const struct vmpt_rtit_regs *regs, u64 id, u64 lip)
{
	switch (id) {
	case VMPT_RTIT_EVENT_RANGE0:
	case VMPT_RTIT_EVENT_RANGE1:
		return lip >= regs->lip[id] && lip < regs->lip[id + 2];
	case VMPT_RTIT_EVENT_RANGES:
		return in_event(regs, VMPT_RTIT_EVENT_RANGE0, lip) ||
		       in_event(regs, VMPT_RTIT_EVENT_RANGE1, lip);
	default:
		return id == VMPT_RTIT_EVENT_ON;
	}
}

static bool is_base(const struct vmpt_rtit_regs *regs, u64 id, u64 lip)
{
	return in_event(regs, id, lip) && ((id != VMPT_RTIT_EVENT_RANGE1 && lip == regs->lip[0]) ||
					   (id != VMPT_RTIT_EVENT_RANGE0 && lip == regs->lip[1]));
}

/* Whether a near branch to @lip, from where packets are enabled, leaves the filter's region. */
static bool leaves(const struct flow *f, u64 lip)
{
	const struct vmpt_rtit_regs *regs = f->options->regs;

	return !regs || !in_event(regs, regs->events & 7, lip);
}

/* Execution goes on at @ip; @branch: a taken branch or an event led there. */
void rtit_walk_arrive(struct flow *f, u64 ip, bool branch)
{
	const struct vmpt_rtit_regs *regs = f->options->regs;

	f->ip = ip & VMPT_RTIT_LIP_MASK;
	f->branched = false;
	f->from_unknown = false;
	f->stop_hit = false;
	if (regs) {
		u64 id = regs->events >> VMPT_RTIT_EVENTS_STOP_SHIFT & 7;

		f->stop_hit = branch ? in_event(regs, id, f->ip) : is_base(regs, id, f->ip);
	}
}

/* ---- instructions ---- */

static u64 next_lip(const struct flow *f)
{
	return (f->ip + f->insn.len) & VMPT_RTIT_LIP_MASK;
}

static bool fetch(struct flow *f)
{
	if (f->silent++ > SILENT_MAX)
		return rtit_walk_fail(f, "a loop that makes no packet");
	if (f->ops->insn(f->ops->opaque, rtit_canonical(f->ip), &f->insn))
		return true;
	return rtit_walk_fail(f, "no code");
}

/* The instruction was executed. */
static bool executed(struct flow *f)
{
	if (f->insn.kind == RTIT_INSN_CALL || f->insn.kind == RTIT_INSN_CALL_INDIRECT) {
		f->call_valid = true;
		f->call_nlip = next_lip(f);
	}
	if (f->probe) {
		f->over_wrmsr |= f->wrmsr;
		f->wrmsr = f->insn.kind == RTIT_INSN_WRMSR;
		return true;
	}
	f->result->insns++;
	if (f->ops->executed(f->ops->opaque, rtit_canonical(f->ip), f->pkt.offset))
		return true;
	f->ended = true;
	return false;
}

static bool branch(struct flow *f, u64 target)
{
	u64 nlip = next_lip(f);

	if (!executed(f))
		return false;
	rtit_walk_arrive(f, target, true);
	f->branched = true;
	f->branch_nlip = nlip;
	return true;
}

static bool fall(struct flow *f)
{
	u64 next = next_lip(f);

	if (!executed(f))
		return false;
	rtit_walk_arrive(f, next, false);
	return true;
}

/* Step over one that needs no packet; @got: the packet that came, for the error. */
static bool silent(struct flow *f, const char *got)
{
	switch (f->insn.kind) {
	case RTIT_INSN_OTHER:
	case RTIT_INSN_PAGING:
	case RTIT_INSN_WRMSR:
		return fall(f);
	case RTIT_INSN_JMP:
	case RTIT_INSN_CALL:
		return branch(f, f->insn.target);
	case RTIT_INSN_JCC:
		return rtit_walk_fail(f, "a Jcc needs a TNT, the trace has %s", got);
	case RTIT_INSN_FAR:
		return rtit_walk_fail(f, "a far transfer needs a FUP with %#llx, the trace has %s",
				      (unsigned long long)next_lip(f), got);
	default:
		return rtit_walk_fail(f, "the %s needs a TIP, the trace has %s",
				      rtit_insn_name(f->insn.kind), got);
	}
}

/* ---- to the place that a packet shows ---- */

/* A compressed RET: to the NLIP of the last CALL (4.2.3.2). */
static bool compressed(struct flow *f, bool taken)
{
	if (!taken)
		return rtit_walk_fail(f, "a RET, but the TNT has N");
	if (f->call_valid)
		return branch(f, f->call_nlip);
	if (!f->options->middle)
		return rtit_walk_fail(f, "the TNT compresses a RET, but no CALL was before it");
	return executed(f) && rtit_walk_lose(f, false);
}

bool rtit_walk_bit(struct flow *f, bool taken)
{
	for (;;) {
		if (!fetch(f))
			return false;
		if (f->insn.kind == RTIT_INSN_JCC)
			return taken ? branch(f, f->insn.target) : fall(f);
		if (f->insn.kind == RTIT_INSN_RET)
			return compressed(f, taken);
		if (!silent(f, "a TNT"))
			return false;
	}
}

bool rtit_walk_tip(struct flow *f, u64 target)
{
	for (;;) {
		if (!fetch(f))
			return false;
		if (f->insn.kind >= RTIT_INSN_JMP_INDIRECT && f->insn.kind <= RTIT_INSN_RET)
			return branch(f, target);
		if (!silent(f, "a TIP"))
			return false;
	}
}

/* To where TraceStop struck, or after the WRMSR that cleared Trace_En or TraceActive (4.2.8). */
bool rtit_walk_to_end(struct flow *f)
{
	bool wrmsr = false;

	f->silent = 0;
	while (!wrmsr && !(f->stopping && f->stop_hit)) {
		if (!fetch(f))
			return false;
		wrmsr = f->insn.kind == RTIT_INSN_WRMSR;
		if (!silent(f, "an end"))
			return false;
	}
	return true;
}

bool rtit_walk_to_paging(struct flow *f)
{
	bool done = false;

	while (!done) {
		if (!fetch(f))
			return false;
		done = f->insn.kind == RTIT_INSN_PAGING;
		if (!silent(f, "a PIP"))
			return false;
	}
	return true;
}

/* Whether the FUP's @lip is that of the far transfer instruction at ip: NLIP (Table 1), E1. */
static bool is_far(const struct flow *f, u64 lip)
{
	return f->insn.kind == RTIT_INSN_FAR &&
	       vmpt_rtit_far_source(lip, f->ip, f->insn.len, NULL) == next_lip(f);
}

/* Whether a near branch directly before @lip led to ip. */
static bool left_from(const struct flow *f, u64 lip)
{
	return f->from_unknown ? f->options->regs != NULL : f->branched && f->branch_nlip == lip;
}

/*
 * To the place of the FUP's @lip: an event before the instruction there, or a far transfer
 * instruction directly before it. @pgd: or a near branch that left the region.
 */
bool rtit_walk_to(struct flow *f, u64 lip, bool pgd, const char *got)
{
	for (;;) {
		if (pgd && left_from(f, lip) && (f->stop_hit || leaves(f, f->ip)))
			return true;
		if (f->ip == lip)
			return true;
		if (!fetch(f))
			return false;
		if (is_far(f, lip))
			break;
		if (!silent(f, got))
			return false;
	}
	if (lip != next_lip(f) && !rtit_walk_erratum(f, 1))
		return false;
	return executed(f);
}
