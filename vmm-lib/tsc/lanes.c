// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Long pieces of trace. Finding the next packet is a chain of dependent loads; several lanes, each
 * from a PSB to the start of the next lane, hide its latency. Lanes only note where TSC and TMA
 * packets are: a PSB found by its bytes may be inside a payload. If every lane ends where the next
 * one began, all of them were right and the packets are rewritten, in order; if not, nothing was
 * changed and the plain loop processes the window. A lane continues from page to page, wherever
 * they are. All data is on the stack, which is small in a kernel: 1 KiB.
 */
#include "vmm-lib/tsc/scan.h"

#define LANES	   8
#define NOTES	   28
#define WINDOW_MAX (LANES << 16)
/* Bytes of the longest step in the table. */
#define STEP_MAX 11

#define step_inline inline __attribute__((__always_inline__))
#define rarely(x)   __builtin_expect(!!(x), 0)
/* Keep these out of the frame of vmpt_tsc_lanes(). */
#define own_frame __attribute__((__noinline__))

struct tsc_lane {
	u8 *at, *end; /* in page @page; @end: of the lane, or near the end of the page */
	size_t start; /* in the view */
	u16 page;
	u8 block, notes;
	bool stuck;	 /* something that the plain loop must handle, or no more room */
	u16 note[NOTES]; /* offsets from start; a TMA directly after a TSC has no note */
};

struct window {
	const struct vmpt_tsc_view *view;
	struct tsc_lane lane[LANES];
	unsigned int lanes;
	size_t end; /* roughly where the last lane must stop; the others stop at the next one's
		       start */
	/* The sum of all steps' table entries; number and bytes of packets that were decoded. */
	u64 sum, decoded, decoded_bytes;
};

/* ---- places ---- */

static size_t page_size(const struct vmpt_tsc_view *view)
{
	return (size_t)1 << view->shift;
}

static u8 *place(const struct vmpt_tsc_view *view, size_t at)
{
	return view->page[at >> view->shift] + (at & (page_size(view) - 1));
}

/* Where @l is in the view. It may be in a page before its own, if they are adjacent. */
static size_t lane_at(const struct window *w, const struct tsc_lane *l)
{
	return ((size_t)l->page << w->view->shift) + (size_t)(l->at - w->view->page[l->page]);
}

static bool is_last(const struct window *w, const struct tsc_lane *l)
{
	return l == &w->lane[w->lanes - 1];
}

static size_t lane_goal(const struct window *w, const struct tsc_lane *l)
{
	return is_last(w, l) ? w->end : l[1].start;
}

/* Whether @l must continue in another page when it is at its end. */
static bool crosses(const struct window *w, const struct tsc_lane *l)
{
	return l->page != lane_goal(w, l) >> w->view->shift;
}

/* How far @l can go without checking where its page is. */
static void lane_aim(const struct window *w, struct tsc_lane *l)
{
	const struct vmpt_tsc_view *view = w->view;
	size_t goal = lane_goal(w, l), size = page_size(view);

	while (l->page < goal >> view->shift &&
	       view->page[l->page + 1] == view->page[l->page] + size)
		l->page++;
	l->end = crosses(w, l) ? view->page[l->page] + size - VMPT_TSC_READABLE : place(view, goal);
}

/* ---- one lane ---- */

/*
 * How many steps of the table, of at most 11 bytes, can be done: before the last one
 * VMPT_TSC_READABLE bytes must be readable. @end is far enough from the memory's end that nothing
 * is read beyond it.
 */
static step_inline u64 steps_left(const u8 *at, const u8 *end)
{
	return at + VMPT_TSC_READABLE <= end
		       ? (size_t)(end - at - (VMPT_TSC_READABLE - STEP_MAX)) / STEP_MAX
		       : 0;
}

/* Note that @found is at @at. False: no more room. */
static bool lane_note(const struct window *w, struct tsc_lane *l, size_t at,
		      enum vmpt_tsc_found found)
{
	const struct vmpt_pt_desc *tsc = &vmpt_pt_table[VMPT_PT_TSC];

	at -= l->start;
	if (found == VMPT_TSC_TMA && l->notes && l->note[l->notes - 1] + tsc->size == at &&
	    *place(w->view, l->start + at - tsc->size) == tsc->header[0])
		return true;
	if (l->notes == NOTES || at > (u16)-1)
		return false;
	l->note[l->notes++] = (u16)at;
	return true;
}

/* Block items at @l->at: they come in long runs. */
static step_inline void lane_items(struct window *w, struct tsc_lane *l, unsigned int block)
{
	const struct vmpt_pt_desc *bip = &vmpt_pt_table[VMPT_PT_BIP];
	unsigned int size = 1 + vmpt_pt_block_item_size(block);
	u8 *start = l->at;

	while (l->at < l->end && (*l->at & bip->mask[0]) == bip->header[0]) {
		w->decoded++;
		l->at += size;
	}
	w->decoded_bytes += (u64)(l->at - start);
}

/*
 * The packet at @l->at, which the table does not cover, and the rest of the block if it begins one.
 * A TMA follows most TSCs.
 */
static own_frame void lane_decode(struct window *w, struct tsc_lane *l)
{
	unsigned int block = l->block;
	enum vmpt_tsc_found found;
	int size;

	do {
		if (block) {
			lane_items(w, l, block);
			if (l->at >= l->end)
				break;
		}
		size = vmpt_tsc_decode(l->at, &block, &found);
		if (size < 0 ||
		    (found != VMPT_TSC_OTHER && !lane_note(w, l, lane_at(w, l), found))) {
			l->stuck = true;
			l->end = l->at;
			return;
		}
		w->decoded++;
		w->decoded_bytes += (unsigned int)size;
		l->at += size;
	} while ((block || found == VMPT_TSC_TSC) && l->at < l->end);
	l->block = (u8)block;
}

/* The packets of a lane that cross the end of its page, and on into the next page. */
static own_frame void lane_cross(struct window *w, struct tsc_lane *l)
{
	const struct vmpt_tsc_view *view = w->view;
	size_t base = (((size_t)l->page + 1) << view->shift) - VMPT_TSC_READABLE;
	size_t at = lane_at(w, l) - base;
	u8 seam[2 * VMPT_TSC_READABLE];
	unsigned int block = l->block, step;
	enum vmpt_tsc_found found;
	int size;

	__builtin_memcpy(seam, place(view, base), VMPT_TSC_READABLE);
	__builtin_memcpy(seam + VMPT_TSC_READABLE, view->page[l->page + 1], VMPT_TSC_READABLE);
	while (at < VMPT_TSC_READABLE) {
		step = block ? 0 : vmpt_tsc_next(seam + at);
		if (step) {
			w->sum += step;
			at += step & VMPT_TSC_SIZE;
			continue;
		}
		size = vmpt_tsc_decode(seam + at, &block, &found);
		if (size < 0 || (found != VMPT_TSC_OTHER && !lane_note(w, l, base + at, found))) {
			l->stuck = true;
			return;
		}
		w->decoded++;
		w->decoded_bytes += (unsigned int)size;
		at += (size_t)size;
	}
	l->at = view->page[++l->page] + at - VMPT_TSC_READABLE;
	l->block = (u8)block;
	lane_aim(w, l);
	if (block && l->at < l->end)
		lane_decode(w, l);
}

/*
 * The last bytes up to the lane's end. A step over two packets must not include a PSB, which is
 * where the lane must end.
 */
static void lane_finish(struct window *w, struct tsc_lane *l)
{
	unsigned int step;

	while (l->at < l->end) {
		step = l->block ? 0 : vmpt_tsc_next(l->at);
		if (!step) {
			lane_decode(w, l);
			continue;
		}
		w->sum += step;
		l->at += step & VMPT_TSC_SIZE;
	}
}

/* @l is near its end. Returns whether it is done. */
static bool lane_over(struct window *w, struct tsc_lane *l)
{
	while (!l->stuck) {
		if (steps_left(l->at, l->end))
			return false;
		if (is_last(w, l) && !crosses(w, l))
			return true;
		lane_finish(w, l);
		if (!crosses(w, l))
			return true;
		if (!l->stuck)
			lane_cross(w, l);
	}
	return true;
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
		sum += s_;                                        \
		at[i] += s_ & VMPT_TSC_SIZE;                      \
		if (rarely(!s_)) {                                \
			s_ = vmpt_tsc_next_rare(at[i]);           \
			sum += s_;                                \
			at[i] += s_ & VMPT_TSC_SIZE;              \
			if (!s_) {                                \
				l[i]->at = at[i];                 \
				lane_decode(w, l[i]);             \
				at[i] = l[i]->at;                 \
			}                                         \
			if (steps_left(at[i], l[i]->end) < steps) \
				goto again;                       \
		}                                                 \
	} while (0)

/* Run @n lanes (a constant) until one is near its end. at[] stays in registers. */
static step_inline void run_n(struct window *w, struct tsc_lane *const *l, const unsigned int n)
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

#define VARIANT(n)                                                                 \
	static own_frame void run_##n(struct window *w, struct tsc_lane *const *l) \
	{                                                                          \
		run_n(w, l, n);                                                    \
	}
VARIANT(1)
VARIANT(2)
VARIANT(3)
VARIANT(4)
VARIANT(5)
VARIANT(6)
VARIANT(7)
VARIANT(8)

static void (*const run[LANES])(struct window *, struct tsc_lane *const *) = {
	run_1, run_2, run_3, run_4, run_5, run_6, run_7, run_8,
};

static own_frame void run_all(struct window *w)
{
	struct tsc_lane *active[LANES];
	unsigned int i, n = w->lanes;

	for (i = 0; i < n; i++)
		active[i] = &w->lane[i];
	while (n) {
		run[n - 1](w, active);
		for (i = n; i-- > 0;) {
			if (lane_over(w, active[i]))
				active[i] = active[--n];
		}
	}
}

/* ---- windows ---- */

/* The first position between @from and @end that looks like a PSB, or NULL. */
static u8 *find_psb(u8 *from, u8 *end)
{
	u8 *p, *s;

	/* Every PSB contains one of these words; 16 bytes after @end are readable. */
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

/* The same in the view. A lane does not start at a page's end: its PSB is in one page. */
static size_t find_start(const struct vmpt_tsc_view *view, size_t from, size_t end)
{
	size_t stop, size = page_size(view);
	u8 *p, *psb;

	for (; from < end; from = (from | (size - 1)) + 1) {
		stop = (from | (size - 1)) + 1 - 2 * VMPT_TSC_READABLE;
		stop = stop < end ? stop : end;
		if (from >= stop)
			continue;
		p = place(view, from);
		psb = find_psb(p, p + (stop - from));
		if (psb)
			return from + (size_t)(psb - p);
	}
	return end;
}

static void lane_init(struct window *w, size_t start)
{
	struct tsc_lane *l = &w->lane[w->lanes++];

	l->start = start;
	l->at = place(w->view, start);
	l->page = (u16)(start >> w->view->shift);
	l->block = l->notes = 0;
	l->stuck = false;
}

/* Cut [start, end) at PSBs and walk it. */
static void window_run(struct window *w, size_t start, size_t end, unsigned int block)
{
	size_t span = (end - start) / LANES, in_page = end & (page_size(w->view) - 1);
	unsigned int i;
	size_t psb;

	w->lanes = 0;
	w->sum = w->decoded = w->decoded_bytes = 0;
	/* After it, VMPT_TSC_READABLE bytes of its page must be readable. */
	if (in_page > page_size(w->view) - VMPT_TSC_READABLE)
		end -= VMPT_TSC_READABLE;
	w->end = end;
	lane_init(w, start);
	for (i = 1; i < LANES; i++) {
		psb = find_start(w->view, start + i * span, start + (i + 1) * span);
		if (psb < start + (i + 1) * span && psb > w->lane[w->lanes - 1].start)
			lane_init(w, psb);
	}
	for (i = 0; i < w->lanes; i++)
		lane_aim(w, &w->lane[i]);
	w->lane[0].block = (u8)block;
	if (block && w->lane[0].at < w->lane[0].end)
		lane_decode(w, &w->lane[0]);
	run_all(w);
}

/* Whether each lane ended where the next one began. */
static bool window_right(const struct window *w)
{
	unsigned int i;

	for (i = 0; i < w->lanes; i++)
		if (w->lane[i].stuck ||
		    (i + 1 < w->lanes && lane_at(w, &w->lane[i]) != w->lane[i + 1].start))
			return false;
	return true;
}

/*
 * The packet that a lane noted at @p, and the TMA after it, of which the lane has seen at most
 * @left bytes.
 */
static void note_put(struct vmpt_tsc_scan *scan, const struct vmpt_tsc_change *change, u8 *p,
		     size_t left)
{
	const struct vmpt_pt_desc *tsc = &vmpt_pt_table[VMPT_PT_TSC];
	const struct vmpt_pt_desc *tma = &vmpt_pt_table[VMPT_PT_TMA];

	if (p[0] == tsc->header[0]) {
		vmpt_tsc_put(scan, change, p);
		scan->tscs++;
		p += tsc->size;
		/* At the lane's end it belongs to the next lane, or to the next window. */
		if (left <= tsc->size || p[0] != tma->header[0] || p[1] != tma->header[1])
			return;
	}
	vmpt_tma_put(change, p);
	scan->tmas++;
}

/* The same across a page's end: through a copy. Only what changed is written. */
static own_frame void note_put_across(struct vmpt_tsc_scan *scan,
				      const struct vmpt_tsc_change *change,
				      const struct vmpt_tsc_view *view, size_t at, size_t left)
{
	u8 old[VMPT_TSC_READABLE], new[VMPT_TSC_READABLE];
	size_t i;

	for (i = 0; i < sizeof(old); i++)
		old[i] = new[i] = *place(view, at + i);
	note_put(scan, change, new, left);
	for (i = 0; i < sizeof(old); i++)
		if (old[i] != new[i])
			*place(view, at + i) = new[i];
}

/*
 * Packets that the lanes walked over. This saves one addition per step: the part of the sum of all
 * entries that is not bytes is VMPT_TSC_PACKET for each packet.
 */
static u64 window_packets(const struct window *w)
{
	u64 bytes = 0;
	unsigned int i;

	for (i = 0; i < w->lanes; i++)
		bytes += lane_at(w, &w->lane[i]) - w->lane[i].start;
	return w->decoded + (w->sum - (bytes - w->decoded_bytes)) / VMPT_TSC_PACKET;
}

/*
 * Rewrite what the lanes noted, in the order of the trace. Returns the largest number of notes of a
 * lane.
 */
static unsigned int window_put(struct vmpt_tsc_scan *scan, const struct vmpt_tsc_change *change,
			       const struct window *w)
{
	size_t at, end, mask = page_size(w->view) - 1;
	unsigned int i, j, most = 0;
	const struct tsc_lane *l;

	for (i = 0; i < w->lanes; i++) {
		l = &w->lane[i];
		end = lane_at(w, l);
		for (j = 0; j < l->notes; j++) {
			at = l->start + l->note[j];
			if ((at & mask) <= mask + 1 - VMPT_TSC_READABLE)
				note_put(scan, change, place(w->view, at), end - at);
			else
				note_put_across(scan, change, w->view, at, end - at);
		}
		most = l->notes > most ? l->notes : most;
	}
	scan->packets += window_packets(w);
	scan->block = w->lane[w->lanes - 1].block;
	return most;
}

size_t vmpt_tsc_lanes(struct vmpt_tsc_scan *scan, const struct vmpt_tsc_change *change,
		      const struct vmpt_tsc_view *view, size_t at, size_t len, size_t *window)
{
	unsigned int most;
	struct window w;
	size_t size;

	w.view = view;
	while (len - at >= VMPT_TSC_WINDOW_MIN + 2 * VMPT_TSC_READABLE) {
		size = len - at - 2 * VMPT_TSC_READABLE;
		size = size < *window ? size : *window;
		window_run(&w, at, at + size, scan->block);
		if (!window_right(&w)) {
			*window = *window / 4 < VMPT_TSC_WINDOW_MIN ? VMPT_TSC_WINDOW_MIN
								    : *window / 4;
			return at;
		}
		most = window_put(scan, change, &w);
		at = lane_at(&w, &w.lane[w.lanes - 1]);
		if (most <= NOTES / 3 && *window < WINDOW_MAX)
			*window *= 2;
		else if (most > NOTES * 7 / 8 && *window > VMPT_TSC_WINDOW_MIN)
			*window /= 2;
	}
	return at;
}
