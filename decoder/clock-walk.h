/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Walking a clock over a batch without a time for each item: the items that are the most are dealt
 * with here, inline, and who walks asks for the time where it needs it.
 */
#ifndef VMPT_DECODER_CLOCK_WALK_H
#define VMPT_DECODER_CLOCK_WALK_H

#include "decoder/clock-core.h"

/* Kinds that say something of time, or of where clocks may stop. All others have the clock's next
 * time, and are not fed. */
#define CLOCK_KIND(kind) (1ULL << (kind))
#define CLOCK_TIMED                                                                           \
	(CLOCK_KIND(VMPT_PT_CYC) | CLOCK_KIND(VMPT_PT_MTC) | CLOCK_KIND(VMPT_PT_TSC) |        \
	 CLOCK_KIND(VMPT_PT_TMA) | CLOCK_KIND(VMPT_PT_CBR) | CLOCK_KIND(VMPT_PT_OVF) |        \
	 CLOCK_KIND(VMPT_PT_PSB) | CLOCK_KIND(VMPT_PT_PSBEND) | CLOCK_KIND(VMPT_PT_TIP_PGD) | \
	 CLOCK_KIND(VMPT_PT_TIP_PGE) | CLOCK_KIND(VMPT_PT_TRACESTOP) |                        \
	 CLOCK_KIND(VMPT_PT_EXSTOP) | CLOCK_KIND(VMPT_PT_PWRE) | CLOCK_KIND(VMPT_ITEM_LOSS))

static inline bool clock_is_timed(const struct vmpt_item *item)
{
	return item->kind < 64 && CLOCK_TIMED >> item->kind & 1;
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

/* The MTC that was due, in its plainest case: true, and all is done. */
static inline bool clock_plain_mtc(struct vmpt_clock *c, u8 payload)
{
	struct vmpt_crystal *x = &c->crystal;
	u64 edge, due;

	if (!x->tied || (u8)(x->mtc + 1) != payload || x->low_only || c->doubt || c->cycs)
		return false;
	edge = x->edge + c->step + (x->rem + c->step_rem >= c->options.rates.tsc_den);
	due = edge + c->step + c->cycle + 1 + x->slack;
	if (c->lo > due)
		return false;
	c->counts.mtcs++;
	clock_advance(c, 1);
	c->back = VMPT_BACK_NOT;
	c->exact = c->lossy = c->tsc_last = c->cyc_last = false;
	if (c->lo < edge)
		c->lo = edge;
	c->hi = due;
	c->base = edge + x->slack / 2;
	c->base_part = 0;
	clock_settle(c, c->base);
	return true;
}

/* Items that are the most. True: that is all. */
static inline bool clock_plain(struct vmpt_clock *c, const struct vmpt_item *item)
{
	switch (item->kind) {
	case VMPT_PT_CYC:
		c->back = VMPT_BACK_NOT;
		c->cyc_last = true;
		c->tsc_last = false;
		clock_copy(&c->now, &c->next);
		clock_cyc(c, item->payload);
		return true;
	case VMPT_PT_MTC:
		return clock_plain_mtc(c, (u8)item->payload);
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

/* A CYC is before item @i, with items of no time between: whether it still belongs to that one. */
void vmpt_clock_part_cyc(struct vmpt_clock *clock, const struct vmpt_batch *batch, size_t i);
/* All of the batch has been fed. */
void vmpt_clock_batch_end(struct vmpt_clock *clock, const struct vmpt_batch *batch);
/*
 * Tell the clock of the gaps of @stream before item @i. Returns the item up to which there is no
 * other one.
 */
size_t vmpt_clock_gaps(struct vmpt_clock *clock, const struct vmpt_stream *stream,
		       const struct vmpt_batch *batch, size_t i);

/* Item @i of the batch, which clock_is_timed(). Its time is then .now, later ones have .next. */
static inline __attribute__((always_inline)) void clock_feed(struct vmpt_clock *c,
							     const struct vmpt_batch *b, size_t i)
{
	const struct vmpt_item *item = &b->items[i];

	if (clock_plain(c, item))
		return;
	if (c->cyc_last)
		vmpt_clock_part_cyc(c, b, i);
	vmpt_clock_feed(c, item, b->base + item->offset, &b->owner);
}

#endif
