// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Long pieces of trace. Finding the next packet is one chain of dependent loads; several
 * lanes, each from a PSB to the next lane's, hide its latency. Lanes only note where TSC
 * and TMA packets are: a PSB found by its bytes may stand inside a payload. If every lane
 * ends where the next one began, all of them were right and the packets are rewritten, in
 * order; if not, nothing was touched and the plain loop does the window. All of it is on the
 * stack, of which a kernel has little: 1 KiB.
 */
#include "vmm-lib/tsc-scan.h"

#define LANES	   8
#define NOTES	   28
#define WINDOW_MAX (LANES << 16)

#define step_inline inline __attribute__((__always_inline__))
#define rarely(x)   __builtin_expect(!!(x), 0)

struct lane {
	u8 *at, *end;
	u8 *start;
	u8 block, notes;
	bool stuck;	 /* something that the plain loop must see, or no more room */
	bool exact;	 /* @end is the next lane's start; else about where to stop */
	u16 note[NOTES]; /* from start; a TMA right behind a TSC has none of its own */
};

struct window {
	struct lane lane[LANES];
	unsigned int lanes;
	/* The sum of all steps' table entries; packets that were looked at, their bytes. */
	u64 sum, looked, looked_bytes;
};

/* ---- one lane ---- */

/* Whether a step can be done. @end is so far from the memory's end that it reads no further. */
static step_inline u64 steps_left(const u8 *at, const u8 *end)
{
	return at < end ? (u64)(end - at) / VMPT_TSC_LOOK : 0;
}

/* Keep in mind that @found is at @l->at. False: no more room. */
static bool lane_note(struct lane *l, enum vmpt_tsc_found found)
{
	const struct vmpt_pt_desc *tsc = &vmpt_pt_table[VMPT_PT_TSC];
	size_t at = (size_t)(l->at - l->start);

	if (found == VMPT_TSC_TMA && l->notes && l->note[l->notes - 1] + tsc->size == at &&
	    l->at[-tsc->size] == tsc->header[0])
		return true;
	if (l->notes == NOTES || at > (u16)-1)
		return false;
	l->note[l->notes++] = (u16)at;
	return true;
}

/* The packet at @l->at, which is not for a step, and the rest of the block if it begins one. */
static __attribute__((__noinline__)) void lane_look(struct window *w, struct lane *l)
{
	unsigned int block = l->block;
	enum vmpt_tsc_found found;
	int size;

	do {
		size = vmpt_tsc_look(l->at, &block, &found);
		if (size < 0 || (found != VMPT_TSC_OTHER && !lane_note(l, found))) {
			l->stuck = true;
			l->end = l->at;
			return;
		}
		w->looked++;
		w->looked_bytes += (unsigned int)size;
		l->at += size;
	} while (block && l->at < l->end);
	l->block = (u8)block;
}

/* The lane's last bytes. No step over two packets takes a PSB with it, where it must end. */
static void lane_finish(struct window *w, struct lane *l)
{
	unsigned int step;

	while (l->at < l->end) {
		step = l->block ? 0 : vmpt_tsc_next(l->at);
		if (!step) {
			lane_look(w, l);
			continue;
		}
		w->sum += step;
		l->at += step & VMPT_TSC_SIZE;
	}
}

/* ---- the loop ---- */

#define EACH_LANE(n, op)       \
	do {                   \
		op(0);         \
		if ((n) > 1)   \
			op(1); \
		if ((n) > 2)   \
			op(2); \
		if ((n) > 3)   \
			op(3); \
		if ((n) > 4)   \
			op(4); \
		if ((n) > 5)   \
			op(5); \
		if ((n) > 6)   \
			op(6); \
		if ((n) > 7)   \
			op(7); \
	} while (0)

#define LANE_TAKE(i) at[i] = l[i]->at
#define LANE_GIVE(i) l[i]->at = at[i]
#define LANE_COUNT(i)                                  \
	do {                                           \
		u64 s_ = steps_left(at[i], l[i]->end); \
		steps = s_ < steps ? s_ : steps;       \
	} while (0)
#define LANE_STEP(i)                                              \
	do {                                                      \
		unsigned int s_ = vmpt_tsc_next(at[i]);           \
		if (rarely(!s_))                                  \
			s_ = vmpt_tsc_next_rare(at[i]);           \
		if (rarely(!s_)) {                                \
			l[i]->at = at[i];                         \
			lane_look(w, l[i]);                       \
			at[i] = l[i]->at;                         \
			if (steps_left(at[i], l[i]->end) < steps) \
				goto again;                       \
		} else {                                          \
			sum += s_;                                \
			at[i] += s_ & VMPT_TSC_SIZE;              \
		}                                                 \
	} while (0)

/* Run @n lanes, a constant, until one is near its end. at[] stays in registers. */
static step_inline void run_n(struct window *w, struct lane *const *l, const unsigned int n)
{
	u64 steps, sum = 0;
	u8 *at[LANES];

	EACH_LANE(n, LANE_TAKE);
again:
	for (;;) {
		steps = ~0ULL;
		EACH_LANE(n, LANE_COUNT);
		if (!steps)
			break;
		do
			EACH_LANE(n, LANE_STEP);
		while (--steps);
	}
	EACH_LANE(n, LANE_GIVE);
	w->sum += sum;
}

#define VARIANT(n)                                                                                 \
	static __attribute__((__noinline__)) void run_##n(struct window *w, struct lane *const *l) \
	{                                                                                          \
		run_n(w, l, n);                                                                    \
	}
VARIANT(1)
VARIANT(2)
VARIANT(3)
VARIANT(4)
VARIANT(5)
VARIANT(6)
VARIANT(7)
VARIANT(8)

static void (*const run[LANES])(struct window *, struct lane *const *) = {
	run_1, run_2, run_3, run_4, run_5, run_6, run_7, run_8,
};

static void run_all(struct window *w)
{
	struct lane *active[LANES];
	unsigned int i, n = w->lanes;

	for (i = 0; i < n; i++)
		active[i] = &w->lane[i];
	while (n) {
		run[n - 1](w, active);
		for (i = n; i-- > 0;) {
			if (steps_left(active[i]->at, active[i]->end))
				continue;
			if (active[i]->exact)
				lane_finish(w, active[i]);
			active[i] = active[--n];
		}
	}
}

/* ---- windows ---- */

/* The first thing between @from and @end that looks like a PSB, or NULL. */
static u8 *find_psb(u8 *from, u8 *end)
{
	u8 *p, *s;

	/* Any PSB holds one of these words whole; @end is readable 16 bytes further. */
	for (p = from; p < end; p += 8) {
		u64 v = vmpt_load64(p);

		if (v != VMPT_TSC_PSB && v != (VMPT_TSC_PSB >> 8 | VMPT_TSC_PSB << 56))
			continue;
		s = v == VMPT_TSC_PSB ? p : p + 1;
		while (s >= from + 2 && vmpt_load16(s - 2) == (u16)VMPT_TSC_PSB)
			s -= 2;
		if (vmpt_tsc_is_psb(s))
			return s;
	}
	return NULL;
}

static void lane_init(struct window *w, u8 *start)
{
	struct lane *l = &w->lane[w->lanes++];

	if (w->lanes > 1) {
		l[-1].end = start;
		l[-1].exact = true;
	}
	l->at = l->start = start;
	l->block = l->notes = 0;
	l->stuck = l->exact = false;
}

/* Cut [start, end) at PSBs and walk it. */
static void window_run(struct window *w, u8 *start, u8 *end, unsigned int block)
{
	size_t span = (size_t)(end - start) / LANES;
	unsigned int i;
	u8 *psb;

	w->lanes = 0;
	w->sum = w->looked = w->looked_bytes = 0;
	lane_init(w, start);
	for (i = 1; i < LANES; i++) {
		psb = find_psb(start + i * span, start + (i + 1) * span);
		if (psb && psb > w->lane[w->lanes - 1].start)
			lane_init(w, psb);
	}
	w->lane[w->lanes - 1].end = end;
	w->lane[0].block = (u8)block;
	if (block)
		lane_look(w, &w->lane[0]);
	run_all(w);
}

/* Whether each lane ended where the next one began. */
static bool window_right(const struct window *w)
{
	unsigned int i;

	for (i = 0; i < w->lanes; i++)
		if (w->lane[i].stuck || (i + 1 < w->lanes && w->lane[i].at != w->lane[i + 1].start))
			return false;
	return true;
}

/* The packet that lane @l noted at @p, and the TMA behind it. */
static void note_put(struct vmpt_tsc_scan *scan, const struct vmpt_tsc_change *change,
		     const struct lane *l, u8 *p)
{
	const struct vmpt_pt_desc *tsc = &vmpt_pt_table[VMPT_PT_TSC];
	const struct vmpt_pt_desc *tma = &vmpt_pt_table[VMPT_PT_TMA];

	if (p[0] == tsc->header[0]) {
		vmpt_tsc_put(scan, change, p);
		scan->tscs++;
		p += tsc->size;
		/* At the lane's end it is the next one's, or that of the next window. */
		if (p >= l->at || p[0] != tma->header[0] || p[1] != tma->header[1])
			return;
	}
	vmpt_tma_put(change, p);
	scan->tmas++;
}

/*
 * Packets that the lanes went over. One addition a step instead of two: of the sum of all
 * entries, what is not bytes is VMPT_TSC_PACKET for each packet.
 */
static u64 window_packets(const struct window *w)
{
	u64 bytes = 0;
	unsigned int i;

	for (i = 0; i < w->lanes; i++)
		bytes += (u64)(w->lane[i].at - w->lane[i].start);
	return w->looked + (w->sum - (bytes - w->looked_bytes)) / VMPT_TSC_PACKET;
}

/* Rewrite what the lanes noted, in the order of the trace. Returns the most notes of a lane. */
static unsigned int window_put(struct vmpt_tsc_scan *scan, const struct vmpt_tsc_change *change,
			       const struct window *w)
{
	unsigned int i, j, most = 0;
	const struct lane *l;

	for (i = 0; i < w->lanes; i++) {
		l = &w->lane[i];
		for (j = 0; j < l->notes; j++)
			note_put(scan, change, l, l->start + l->note[j]);
		most = l->notes > most ? l->notes : most;
	}
	scan->packets += window_packets(w);
	scan->block = w->lane[w->lanes - 1].block;
	return most;
}

size_t vmpt_tsc_lanes(struct vmpt_tsc_scan *scan, const struct vmpt_tsc_change *change, u8 *buf,
		      size_t at, size_t len, size_t *window)
{
	unsigned int most;
	struct window w;
	size_t size;

	while (len - at >= VMPT_TSC_WINDOW_MIN + 2 * VMPT_TSC_LOOK) {
		size = len - at - 2 * VMPT_TSC_LOOK;
		size = size < *window ? size : *window;
		window_run(&w, buf + at, buf + at + size, scan->block);
		if (!window_right(&w)) {
			*window = *window / 4 < VMPT_TSC_WINDOW_MIN ? VMPT_TSC_WINDOW_MIN
								    : *window / 4;
			return at;
		}
		most = window_put(scan, change, &w);
		at = (size_t)(w.lane[w.lanes - 1].at - buf);
		if (most <= NOTES / 3 && *window < WINDOW_MAX)
			*window *= 2;
		else if (most > NOTES * 7 / 8 && *window > VMPT_TSC_WINDOW_MIN)
			*window /= 2;
	}
	return at;
}
