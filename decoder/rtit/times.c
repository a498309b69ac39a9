// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The time of a token, for runs by time: not before the clock's time, not after the next time in
 * the stream. The STS that has it often comes after the FUP.PGE: hence the look-ahead.
 */
#include "decoder/rtit/rtit.h"

/* Limit of the look-ahead: a clock without a bound in this many bytes is useless. */
#define AHEAD_MAX (1u << 20)

struct time_walk {
	struct vmpt_rtit_clock clock;
	const struct vmpt_rtit_tracker *tracker;
	u64 at, end;
	bool on;       /* after a FUP.PGE */
	bool want_mtc; /* the next MTC is the first after an enable: E7 */
	struct vmpt_rtit_packet pkt;
};

static bool decode(struct time_walk *w)
{
	u64 psb;

	return w->at < w->end && !vmpt_rtit_packet_at(&w->pkt, w->tracker->data, w->at, w->end,
						      w->tracker->cycle_acc, &psb);
}

/* Feed the packet and its cycle count to the clock. */
static void feed(struct time_walk *w)
{
	struct vmpt_packet pkt = { .kind = (u8)(VMPT_ITEM_RTIT + w->pkt.kind) };

	if (w->pkt.kind == VMPT_RTIT_MTC) {
		pkt.payload = w->pkt.mtc.tsc | w->pkt.mtc.rng << 8;
		pkt.aux = w->want_mtc ? VMPT_RTIT_AUX_IGNORE : 0;
		w->want_mtc = false;
	} else if (w->pkt.kind == VMPT_RTIT_STS) {
		pkt.payload = w->pkt.sts.tsc | w->pkt.sts.acbr << 40 | w->pkt.sts.ecbr << 46;
	}
	vmpt_rtit_clock_feed(&w->clock, &pkt);
	if (w->pkt.flags & VMPT_RTIT_CYCLES) {
		pkt = (struct vmpt_packet){ .kind = VMPT_ITEM_RTIT_CYC, .payload = w->pkt.cycles };
		vmpt_rtit_clock_feed(&w->clock, &pkt);
	}
	w->at += w->pkt.size;
}

static u64 latest(const struct time_walk *w)
{
	return w->clock.error == ~0ULL ? ~0ULL : w->clock.tsc + w->clock.error;
}

/* Whether the packet may be of another run than those before it. */
static bool stops(struct time_walk *w)
{
	switch (w->pkt.kind) {
	case VMPT_RTIT_PGE:
		if (w->on)
			return true;
		w->on = true;
		return false;
	case VMPT_RTIT_PSB: /* an enable's? */
		return !w->on;
	case VMPT_RTIT_PGD: /* without a FUP.PGE it is E2's */
		return w->on;
	case VMPT_RTIT_BUFF_OVF:
	case VMPT_RTIT_TRACESTOP:
		return true;
	default:
		return false;
	}
}

/* Look ahead to the first packet with a time; @run: that no other run can have sent. */
static u64 look_ahead(struct time_walk *w, bool run)
{
	while (latest(w) == ~0ULL && decode(w) && !(run && stops(w)))
		feed(w);
	return latest(w);
}

void vmpt_rtit_times(struct vmpt_rtit_tracker *t, const struct vmpt_rtit_piece *piece,
		     const struct vmpt_rtit_token *token, struct vmpt_rtit_times *times)
{
	u64 left = piece->region_end - token->at;
	struct time_walk w = {
		.clock = t->clock,
		.tracker = t,
		.at = token->at,
		.end = token->at + (left < AHEAD_MAX ? left : AHEAD_MAX),
		.on = token->kind == VMPT_RTIT_PGE,
		.want_mtc = t->want_mtc,
	};

	decode(&w);
	feed(&w);
	/* An STS directly after a PIP is of the same instruction (4.2.10). */
	if (token->kind == VMPT_RTIT_PIP && decode(&w) && w.pkt.kind == VMPT_RTIT_STS)
		feed(&w);
	times->known = w.clock.known;
	times->about = w.clock.tsc;
	times->earliest = w.clock.known ? w.clock.lo : 0;
	times->latest = times->before = latest(&w);
	if (times->latest != ~0ULL)
		return;
	/* The result for a token before this one holds up to there. */
	if (token->at >= t->ahead_to) {
		t->ahead = look_ahead(&w, true);
		t->ahead_to = w.at;
	}
	times->latest = times->before = t->ahead;
	if (times->latest != ~0ULL)
		return;
	if (token->at >= t->before_to) {
		t->before = look_ahead(&w, false);
		t->before_to = w.at;
	}
	times->before = t->before;
}
