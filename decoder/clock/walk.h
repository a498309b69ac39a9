/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Walking a clock over a batch without a time for each item: the most frequent items are handled
 * here, inline, and the caller reads the time where it needs it.
 */
#ifndef VMPT_DECODER_CLOCK_WALK_H
#define VMPT_DECODER_CLOCK_WALK_H

#include "decoder/clock/core.h"
#include "decoder/pt/pt.h"

/* All others have the clock's next time, and are not fed. */
static inline bool clock_is_timed(const struct vmpt_item *item)
{
	return vmpt_time_kinds[item->kind];
}

/* Whether only PADs are between item @i and the CYC before it. */
bool vmpt_clock_pads_after_cyc(const struct vmpt_batch *batch, size_t i);

/* Item @i is the first time item after a CYC: whether the CYC belongs to it. */
static inline bool clock_is_after_cyc(const struct vmpt_batch *b, size_t i)
{
	const struct vmpt_item *before = &b->items[i] - 1;
	bool run;

	if (!i)
		return true;
	/* The item before is unpredictable, except that it is seldom a PAD: branch on that. */
	run = before->kind == VMPT_ITEM_RUN;
	if (__builtin_expect(
		    (before->kind == VMPT_PT_PAD) | (run & !b->data[run ? before->offset : 0]), 0))
		return vmpt_clock_pads_after_cyc(b, i);
	return before->kind == VMPT_PT_CYC;
}

static inline void clock_cyc(struct vmpt_clock *c, u64 cycles)
{
	u64 part;

	c->counts.cycs++;
	c->cycs = true;
	if (cycles >> 31)
		cycles = 1u << 31;
	part = c->base_part + cycles * c->ratio;
	c->base += part >> CLOCK_RATIO_BITS;
	c->base_part = part & vmpt_mask64(CLOCK_RATIO_BITS);
	c->span_cycles += cycles;
	clock_settle(c, c->base < c->hi ? c->base : c->hi - 1);
}

/*
 * Take item @i, an MTC, if it is later than the last and nothing contradicts it: true, and all is
 * done.
 */
static inline __attribute__((always_inline)) bool
clock_take_mtc(struct vmpt_clock *c, const struct vmpt_batch *b, size_t i)
{
	struct vmpt_crystal *x = &c->crystal, was = *x;
	u64 later = (u8)(b->items[i].payload - x->mtc), due, mid;
	bool behind_cyc;

	if (!c->known || !x->tied || x->low_only || !later || later >= CLOCK_STALE)
		return false;
	clock_advance(c, later);
	due = c->doubt ? CLOCK_OPEN : clock_due(c);
	if (__builtin_expect(c->lo > due, 0)) {
		*x = was;
		return false;
	}
	mid = x->edge + x->slack / 2;
	behind_cyc = clock_is_after_cyc(b, i);
	if (c->cyc_last & behind_cyc) {
		if (later != 1 || c->doubt)
			c->spanning = false;
		vmpt_clock_measure(c, mid);
		c->base = mid;
		c->base_part = 0;
	} else if (!c->cycs || c->doubt) {
		c->base = mid;
		c->base_part = 0;
	} else {
		c->base = c->base > mid ? mid : c->base;
	}
	c->lo = c->lo < x->edge ? x->edge : c->lo;
	c->hi = due;
	c->counts.mtcs++;
	c->counts.mtcs_lost += later - 1;
	c->back = VMPT_BACK_NOT;
	c->exact = c->lossy = c->tsc_last = c->cyc_last = false;
	clock_settle(c, c->base < due ? c->base : due - 1);
	return true;
}

/* Take item @i if it is of the most frequent kinds. True: done. */
static inline bool clock_plain(struct vmpt_clock *c, const struct vmpt_batch *b, size_t i)
{
	const struct vmpt_item *item = &b->items[i];

	switch (item->kind) {
	case VMPT_PT_CYC:
		c->back = VMPT_BACK_NOT;
		c->cyc_last = true;
		c->tsc_last = false;
		clock_copy(&c->now, &c->next);
		clock_cyc(c, item->payload);
		return true;
	case VMPT_PT_MTC:
		return clock_take_mtc(c, b, i);
	case VMPT_PT_PSBEND:
		c->in_psb = c->cyc_last = c->tsc_last = false;
		clock_copy(&c->now, &c->next);
		c->back = VMPT_BACK_NOT;
		return true;
	case VMPT_PT_TIP_PGD:
	case VMPT_PT_TIP_PGE:
		c->off = item->kind == VMPT_PT_TIP_PGD;
		c->cyc_last = c->tsc_last = false;
		clock_copy(&c->now, &c->next);
		c->back = VMPT_BACK_NOT;
		return true;
	default:
		return false;
	}
}

/* All of the batch has been fed. */
void vmpt_clock_batch_end(struct vmpt_clock *clock, const struct vmpt_batch *batch);
/*
 * Pass the gaps of @stream before item @i to the clock. Returns the item up to which there are no
 * others.
 */
size_t vmpt_clock_gaps(struct vmpt_clock *clock, const struct vmpt_stream *stream,
		       const struct vmpt_batch *batch, size_t i);

/* Item @i of the batch, a clock_is_timed() one. Its time is then .now, later ones have .next. */
static inline __attribute__((always_inline)) void clock_feed(struct vmpt_clock *c,
							     const struct vmpt_batch *b, size_t i)
{
	const struct vmpt_item *item = &b->items[i];

	if (clock_plain(c, b, i))
		return;
	if (c->cyc_last && item->kind == VMPT_PT_MTC)
		c->cyc_last = clock_is_after_cyc(b, i);
	vmpt_clock_feed(c, item, b->base + item->offset, &b->owner);
}

#endif
