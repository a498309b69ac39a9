/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The lane loop of RTIT's fast source, inline for its two users, rtit-index.c and
 * rtit-packets.c: as lanes.h for PT, several chunks at once hide the latency of finding the
 * next packet.
 *
 * A user defines before: RTIT_STEP_MAX, the bytes that one step goes on at the most;
 * RTIT_RAW, the type of a raw entry; RTIT_RAW_MAX of them; struct place, which has at and
 * raw; and behind: lane_step(), lane_skip(), lane_finish().
 */
#ifndef VMPT_DECODER_RTIT_LANES_H
#define VMPT_DECODER_RTIT_LANES_H

#include "decoder/rtit/fast.h"

#define likely(x)     __builtin_expect(!!(x), 1)
#define unlikely(x)   __builtin_expect(!!(x), 0)
#define always_inline inline __attribute__((always_inline))

struct lane {
	struct place now;
	u64 end; /* of fast decoding */
	RTIT_RAW *raw_start, *raw_end;
	bool refused;
	struct vmpt_rtit_chunk *chunk;
};

/* One step; false if no packet stands there: @l is then of no use. */
static always_inline bool lane_step(const struct vmpt_rtit_fast *f, struct place *l,
				    const bool cycles);
/* How far the last step of a chunk may not begin before. */
static always_inline unsigned int lane_skip(const u8 *p, const bool cycles);
/* Stage 2. */
static void lane_finish(const struct vmpt_rtit_fast *f, struct lane *l);

/* By CCNT, the bits of a cycle count in its bytes; none without. */
static const u32 count_mask[4] = { 0, 0xfc, 0xfffc, 0xfffffc };

/* Steps that can be done with no look at the lane's end or its room. */
static always_inline u64 lane_steps(const struct lane *l, const struct place *now)
{
	u64 bytes = now->at < l->end ? (l->end - now->at) / RTIT_STEP_MAX : 0;
	u64 room = (u64)(l->raw_end - now->raw);

	return l->refused ? 0 : bytes < room ? bytes : room;
}

/* With so few steps left a lane only keeps the others from doing many at once. */
#define LANES_FEW 4

#define EACH_LANE(n, op)       \
	do {                   \
		op(0);         \
		if ((n) > 1)   \
			op(1); \
		if ((n) > 2)   \
			op(2); \
		if ((n) > 3)   \
			op(3); \
	} while (0)

#define LANE_TAKE(i) now[i] = lanes[i].now
#define LANE_GIVE(i) lanes[i].now = now[i]
#define LANE_COUNT(i)                                    \
	do {                                             \
		u64 s_ = lane_steps(&lanes[i], &now[i]); \
		steps = s_ < steps ? s_ : steps;         \
	} while (0)
#define LANE_STEP(i)                                           \
	do {                                                   \
		struct place next_ = now[i];                   \
		if (unlikely(!lane_step(f, &next_, cycles))) { \
			lanes[i].refused = true;               \
			goto out;                              \
		}                                              \
		now[i] = next_;                                \
	} while (0)

/* Run @n lanes, a constant, until one is near its end, out of room or stuck. */
static always_inline void lanes_run_n(const struct vmpt_rtit_fast *f, struct lane *lanes,
				      const unsigned int n, const bool cycles)
{
	struct place now[VMPT_RTIT_LANES_MAX];
	u64 steps;

	EACH_LANE(n, LANE_TAKE);
	for (;;) {
		steps = ~0ULL;
		EACH_LANE(n, LANE_COUNT);
		if (steps < LANES_FEW)
			break;
		do
			EACH_LANE(n, LANE_STEP);
		while (--steps);
	}
out:
	EACH_LANE(n, LANE_GIVE);
}

#define LANES_VARIANT(n, cycles)                                        \
	static __attribute__((noinline)) void lanes_run_##n##_##cycles( \
		const struct vmpt_rtit_fast *f, struct lane *lanes)     \
	{                                                               \
		lanes_run_n(f, lanes, n, cycles);                       \
	}
LANES_VARIANT(1, 0)
LANES_VARIANT(2, 0)
LANES_VARIANT(3, 0)
LANES_VARIANT(4, 0)
LANES_VARIANT(1, 1)
LANES_VARIANT(2, 1)
LANES_VARIANT(3, 1)
LANES_VARIANT(4, 1)

static void (*const lanes_run[2][VMPT_RTIT_LANES_MAX])(const struct vmpt_rtit_fast *,
						       struct lane *) = {
	{ lanes_run_1_0, lanes_run_2_0, lanes_run_3_0, lanes_run_4_0 },
	{ lanes_run_1_1, lanes_run_2_1, lanes_run_3_1, lanes_run_4_1 },
};

/* ---- chunks ---- */

static void lane_begin(struct lane *l, struct vmpt_rtit_chunk *c, RTIT_RAW *raw)
{
	u64 safe = c->span.region_end > VMPT_RTIT_GUARD ? c->span.region_end - VMPT_RTIT_GUARD : 0;

	*l = (struct lane){
		.now = { .at = c->span.start, .raw = raw },
		.end = c->span.end < safe ? c->span.end : safe,
		.raw_start = raw,
		.raw_end = raw + RTIT_RAW_MAX,
		.chunk = c,
	};
}

/* The last steps of a chunk, one by one: none may take the PSB at its end. */
static void lane_end(const struct vmpt_rtit_fast *f, struct lane *l)
{
	struct place next;

	while (!l->refused && l->now.at < l->end && l->now.raw < l->raw_end) {
		l->now.at += lane_skip(f->data + l->now.at, f->cycle_acc);
		if (l->now.at >= l->end)
			break;
		next = l->now;
		if (lane_step(f, &next, f->cycle_acc))
			l->now = next;
		else
			l->refused = true;
	}
	/* Behind the fast part the region's last bytes follow. */
	l->refused |= l->now.at >= l->end;
	l->chunk->at = l->now.at;
	l->chunk->refused = l->refused;
}

static void lanes_decode(const struct vmpt_rtit_fast *f, struct vmpt_rtit_chunk *chunks,
			 unsigned int count, RTIT_RAW *raw)
{
	struct lane lane[VMPT_RTIT_LANES_MAX], done;
	unsigned int i, active = 0, next = 0;

	for (i = 0; i < f->lanes; i++)
		lane[i].raw_start = raw + i * RTIT_RAW_MAX;
	while (active || next < count) {
		for (; active < f->lanes && next < count; active++)
			lane_begin(&lane[active], &chunks[next++], lane[active].raw_start);
		lanes_run[f->cycle_acc][active - 1](f, lane);
		for (i = active; i-- > 0;) {
			if (lane_steps(&lane[i], &lane[i].now) >= LANES_FEW)
				continue;
			/* Its raw entries' room goes to the next chunk. */
			done = lane[i];
			lane_end(f, &done);
			lane_finish(f, &done);
			lane[i] = lane[--active];
			lane[active] = done;
		}
	}
}

#endif
