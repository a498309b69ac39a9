// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Reasons of VM exits, from EVD.VMXR; else from KVM's own event on that CPU at that time; else
 * guessed from the instruction at the exit's IP or the packets around it. A guess needs the IP
 * where the vCPU resumed, so exits wait for the next entry on the same CPU.
 */
#include <string.h>

#include "decoder/timeline/timeline.h"

/* Basic reasons (SDM 3, Table C-1) of an idle vCPU. */
enum { REASON_HLT = 12, REASON_MWAIT = 36, REASON_UMWAIT = 67, REASON_TPAUSE = 68 };

/* Maximum delay of the tracepoint kvm:kvm_exit after its VM exit, in ticks. */
#define EVENT_DELAY 1000000ULL
/* perf's times are in ns: maximum rounding error in ticks. */
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
 * KVM's event of this exit: the first one after it on this CPU; its place in .index. With wide
 * bounds several are possible: then the one with the exit's IP. Else .count.
 */
static size_t find_event(struct lane_events *ev, const struct vmpt_span *span)
{
	u64 from = span->end.tsc, until = from + EVENT_DELAY, bound = span->end.early;
	const struct vmpt_event *e;
	size_t best = ev->count, i;

	if (span->end.tsc == VMPT_TIME_NONE || bound == VMPT_TIME_OPEN)
		return ev->count;
	if (span->end.late != VMPT_TIME_OPEN)
		until += span->end.late;
	bound += EVENT_ROUNDED;
	from -= bound < from ? bound : from;
	/* Exits are looked up nearly in order. */
	while (ev->at && ev->event[ev->index[ev->at - 1]].tsc >= from)
		ev->at--;
	while (ev->at < ev->count && ev->event[ev->index[ev->at]].tsc < from)
		ev->at++;
	for (i = ev->at; i < ev->count && ev->event[ev->index[i]].tsc <= until; i++) {
		e = &ev->event[ev->index[i]];
		if (e->kind != VMPT_EVENT_KVM_EXIT)
			continue;
		if (best == ev->count)
			best = i;
		if (span->exit.has_ip && e->ip == span->exit.ip)
			return i;
	}
	if (best == ev->count)
		return best;
	/* The event is another exit's, and this exit's own was lost. */
	e = &ev->event[ev->index[best]];
	return span->exit.has_ip && e->ip && e->ip != span->exit.ip ? ev->count : best;
}

/* Basic reasons with an MSR, which is in RCX, or a guest-physical address. */
enum { REASON_RDMSR = 31, REASON_WRMSR = 32, REASON_EPT_VIOLATION = 48, REASON_EPT_MISCONFIG = 49 };

/* Events after KVM's exit number @at, up to the next one: of the same thread, so of that exit. */
static void add_details(const struct lane_events *ev, size_t at, struct vmpt_exit *exit)
{
	const struct vmpt_event *first = &ev->event[ev->index[at]], *e;
	bool msr = exit->reason == REASON_RDMSR || exit->reason == REASON_WRMSR;
	bool gpa = exit->reason == REASON_EPT_VIOLATION || exit->reason == REASON_EPT_MISCONFIG;
	size_t i;

	if (!msr && !gpa)
		return;
	for (i = at + 1; i < ev->count && !exit->has_msr && !exit->has_gpa; i++) {
		e = &ev->event[ev->index[i]];
		if (e->kind == VMPT_EVENT_KVM_EXIT)
			return;
		if (e->tid != first->tid)
			continue;
		if (msr && e->kind == VMPT_EVENT_KVM_MSR) {
			exit->has_msr = true;
			exit->msr = (u32)e->info1;
		} else if (gpa && e->kind == VMPT_EVENT_KVM_GPA) {
			exit->has_gpa = true;
			exit->gpa = e->info1;
		}
	}
}

/* The reason, if it is not known yet, and what goes with it. */
static void ask_events(struct timeline_lane *lane, struct vmpt_span *span)
{
	struct lane_events *ev = &lane->events;
	size_t at = find_event(ev, span);
	const struct vmpt_event *e;

	if (at == ev->count)
		return;
	e = &ev->event[ev->index[at]];
	if (span->exit.source == VMPT_REASON_NONE) {
		tell(&span->exit, e->reason, VMPT_REASON_EVENT);
		/* KVM's info1 on VMX is the exit qualification; of a failed entry it is another. */
		span->exit.has_qualification = !e->flag;
		span->exit.qualification = e->flag ? 0 : e->info1;
	}
	if (e->reason == span->exit.reason)
		add_details(ev, at, &span->exit);
}

/*
 * HLT is the one-byte instruction after which the CPU sleeps or runs something else before the vCPU
 * resumes; after waiting for a device, the vCPU resumes at the same instruction.
 */
static bool looks_halted(const struct vmpt_exit *e, const struct vmpt_exit_place *place)
{
	return e->has_ip && place->has_next && place->idle && place->next == e->ip + 1;
}

/* No more will be known: guess. */
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
		reason = lane->options->guess(lane->options->guess_opaque, &place, &e->no_halt);
	if (reason != VMPT_REASON_UNKNOWN)
		tell(e, reason, VMPT_REASON_CODE);
	else if (!e->no_halt && looks_halted(e, &place))
		tell(e, REASON_HLT, VMPT_REASON_PATTERN);
}

static void forget(struct timeline_lane *lane, unsigned int i)
{
	lane->waiting_count--;
	memmove(&lane->waiting[i], &lane->waiting[i + 1],
		(lane->waiting_count - i) * sizeof(lane->waiting[0]));
}

void vmpt_lane_exit_begin(struct timeline_lane *lane, u64 number)
{
	struct vmpt_span *span = lane_span(lane, number);

	if (span->exit.source == VMPT_REASON_EVD) {
		span->exit.halted = halts(&span->exit);
		ask_events(lane, span);
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

void vmpt_lane_exit_entry(struct timeline_lane *lane, u64 number, bool has_ip, u64 ip)
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
	/* For other vCPUs the CPU runs something else. */
	vmpt_lane_exits_idle(lane);
}

void vmpt_lane_exits_idle(struct timeline_lane *lane)
{
	unsigned int i;

	for (i = 0; i < lane->waiting_count; i++)
		lane->waiting[i].idle = true;
}

void vmpt_lane_exits_give_up_before(struct timeline_lane *lane, u64 number)
{
	while (lane->waiting_count && lane->waiting[0].span < number) {
		settle(lane, &lane->waiting[0], false, 0);
		forget(lane, 0);
	}
}

void vmpt_lane_exits_give_up(struct timeline_lane *lane)
{
	vmpt_lane_exits_give_up_before(lane, ~0ULL);
}

u64 vmpt_lane_exits_oldest(const struct timeline_lane *lane)
{
	return lane->waiting_count ? lane->waiting[0].span : lane->next;
}
