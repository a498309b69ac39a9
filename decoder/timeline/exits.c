// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Why a guest was left. EVD.VMXR says it; else KVM's own event of that CPU and time; else it is
 * guessed: by the instruction at the exit's IP, or by what the packets look like. A guess needs to
 * know where the vCPU went on, so exits wait for the next entry on the same CPU.
 */
#include <string.h>

#include "decoder/timeline/timeline.h"

/* Basic reasons (SDM 3, Table C-1) of a vCPU that has nothing to do. */
enum { REASON_HLT = 12, REASON_MWAIT = 36, REASON_UMWAIT = 67, REASON_TPAUSE = 68 };

/* The tracepoint kvm:kvm_exit comes that many ticks behind its VM exit, at the most. */
#define EVENT_BEHIND 1000000ULL
/* A time of perf's is in ns: so many ticks it may be off. */
#define EVENT_ROUNDED 16

static bool halts(const struct vmpt_exit *e)
{
	return e->reason == REASON_HLT || e->reason == REASON_MWAIT || e->reason == REASON_UMWAIT ||
	       e->reason == REASON_TPAUSE;
}

static void tell(struct vmpt_exit *e, u16 reason, enum vmpt_reason_source source)
{
	e->reason = reason;
	e->source = (u8)source;
	e->halted = halts(e);
}

/*
 * KVM's event of this exit: the first one behind it on this CPU. Several can be meant if bounds are
 * wide: then that of the exit's IP.
 */
static void ask_events(struct timeline_lane *lane, struct vmpt_span *span)
{
	struct lane_events *ev = &lane->events;
	u64 from = span->end.tsc, until = from + EVENT_BEHIND, bound = span->end.early;
	const struct vmpt_event *best = NULL;
	size_t i;

	if (span->end.tsc == VMPT_TIME_NONE || bound == VMPT_TIME_OPEN)
		return;
	if (span->end.late != VMPT_TIME_OPEN)
		until += span->end.late;
	bound += EVENT_ROUNDED;
	from -= bound < from ? bound : from;
	/* Exits are asked about in nearly their order. */
	while (ev->at && ev->event[ev->index[ev->at - 1]].tsc >= from)
		ev->at--;
	while (ev->at < ev->count && ev->event[ev->index[ev->at]].tsc < from)
		ev->at++;
	for (i = ev->at; i < ev->count && ev->event[ev->index[i]].tsc <= until; i++) {
		const struct vmpt_event *e = &ev->event[ev->index[i]];

		if (!best)
			best = e;
		if (span->exit.has_ip && e->ip == span->exit.ip) {
			best = e;
			break;
		}
	}
	/* An event of another exit, whose own was lost, is no answer. */
	if (!best || (span->exit.has_ip && best->ip && best->ip != span->exit.ip))
		return;
	tell(&span->exit, best->reason, VMPT_REASON_EVENT);
}

/*
 * HLT is the one byte that is left behind while the CPU sleeps or runs another: what waits for a
 * device goes on at once, as far as its vCPU knows.
 */
static bool looks_halted(const struct vmpt_exit *e, const struct vmpt_exit_place *place)
{
	return e->has_ip && place->has_next && place->idle && place->next == e->ip + 1;
}

/* What is known now is all: guess. */
static void settle(struct timeline_lane *lane, const struct lane_exit *w, bool has_next, u64 next)
{
	struct vmpt_exit *e = &lane_span(lane, w->span)->exit;
	struct vmpt_exit_place place = {
		.owner = w->owner,
		.cr3 = e->cr3,
		.ip = e->ip,
		.has_next = has_next,
		.next = next,
		.idle = w->idle,
	};
	u16 reason = VMPT_REASON_UNKNOWN;

	if (e->has_ip && lane->options->guess)
		reason = lane->options->guess(lane->options->guess_opaque, &place);
	if (reason != VMPT_REASON_UNKNOWN)
		tell(e, reason, VMPT_REASON_CODE);
	else if (looks_halted(e, &place))
		tell(e, REASON_HLT, VMPT_REASON_PATTERN);
}

static void forget(struct timeline_lane *lane, unsigned int i)
{
	lane->waiting_count--;
	memmove(&lane->waiting[i], &lane->waiting[i + 1],
		(lane->waiting_count - i) * sizeof(lane->waiting[0]));
}

void lane_exit_begin(struct timeline_lane *lane, u64 number)
{
	struct vmpt_span *span = lane_span(lane, number);

	if (span->exit.source == VMPT_REASON_EVD) {
		span->exit.halted = halts(&span->exit);
		return;
	}
	ask_events(lane, span);
	if (span->exit.source != VMPT_REASON_NONE)
		return;
	if (lane->waiting_count == LANE_WAITING) {
		settle(lane, &lane->waiting[0], false, 0);
		forget(lane, 0);
	}
	lane->waiting[lane->waiting_count++] = (struct lane_exit){
		.span = number,
		.owner = span->owner,
	};
}

void lane_exit_entry(struct timeline_lane *lane, u64 number, bool has_ip, u64 ip)
{
	const struct vmpt_owner *owner = &lane_span(lane, number)->owner;
	unsigned int i;

	for (i = 0; i < lane->waiting_count; i++) {
		struct lane_exit *w = &lane->waiting[i];

		if (owner->kind != VMPT_OWNER_VM || w->owner.kind != VMPT_OWNER_VM ||
		    w->owner.vmcs != owner->vmcs)
			continue;
		settle(lane, w, has_ip, ip);
		forget(lane, i);
		break;
	}
	/* For the others the CPU runs something else. */
	lane_exits_idle(lane);
}

void lane_exits_idle(struct timeline_lane *lane)
{
	unsigned int i;

	for (i = 0; i < lane->waiting_count; i++)
		lane->waiting[i].idle = true;
}

void lane_exits_give_up_before(struct timeline_lane *lane, u64 number)
{
	while (lane->waiting_count && lane->waiting[0].span < number) {
		settle(lane, &lane->waiting[0], false, 0);
		forget(lane, 0);
	}
}

void lane_exits_give_up(struct timeline_lane *lane)
{
	lane_exits_give_up_before(lane, ~0ULL);
}

u64 lane_exits_oldest(const struct timeline_lane *lane)
{
	return lane->waiting_count ? lane->waiting[0].span : lane->next;
}
