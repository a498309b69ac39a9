// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The clock of one stream (SDM 3 33.8.3).
 *
 * MTC number m is due when CTC is m << MTCFreq (33.4.2.12). A TSC of the host and its TMA tie CTC
 * to the host's TSC (anchor.c); from then on the tick of each MTC is known, in exact arithmetic.
 * Packets before an MTC came before its tick, those after it at its tick or later: that bounds
 * every packet. The estimate is the last known tick plus, with CYCs, the cycles since; it stays
 * within the bound.
 *
 * MTCs are assumed to depend on TriggerEn only (33.4.2.12), and TriggerEn cannot become 1 without a
 * TSC (33.4.2.11); no packet comes between. A PSB that begins with the trace itself comes before
 * its TSC: after a TIP.PGD, TraceStop or OVF a PSB has no late bound. After PWRE and EXSTOP clocks
 * may stand still (33.2.3): there is no late bound until a TSC, or, in an unmapped guest's time,
 * until the host's. An OVF may drop MTCs, but not 256 in a row (33.3.8.2): there is no late bound
 * until the next one. Where bytes are lost there is none until the next TSC.
 *
 * A CYC belongs to the packet after it (33.3.6.2) and has the cycles up to that. Its ratio to the
 * TSC is P1 / CBR (33.8.3.2) until MTCs with CYCs right before them have measured it (33.8.3.4).
 */
#include "decoder/clock/walk.h"

/* Cycles to measure the ratio by: minimum, and maximum before measuring again. */
#define SPAN_MIN 4096
#define SPAN_MAX 65536
/* Ticks per core cycle, while CBR and P1 are not known */
#define CYCLE 16

void vmpt_clock_init(struct vmpt_clock *clock, const struct vmpt_clock_options *options)
{
	const struct vmpt_rates *r = &options->rates;
	u64 rem;

	memset(clock, 0, sizeof(*clock));
	clock->options = *options;
	clock->next = (struct vmpt_time){ VMPT_TIME_NONE, VMPT_TIME_OPEN, VMPT_TIME_OPEN };
	clock->now = clock->next;
	clock->hi = CLOCK_OPEN;
	clock->off = true;
	clock->cycle = CYCLE;
	if (!r->tsc_num || !r->tsc_den || !r->has_mtc_freq || r->mtc_freq > 15)
		return;
	clock->rated = true;
	clock->step = clock_ticks(clock, 1ULL << r->mtc_freq, &clock->step_rem);
	clock->tick = clock_ticks(clock, 1, &rem) + 1;
}

/* ---- cycles ---- */

static u64 cbr_ratio(const struct vmpt_clock *c)
{
	return c->cbr ? ((u64)c->options.rates.nominal << CLOCK_RATIO_BITS) / c->cbr : 0;
}

void vmpt_clock_measure(struct vmpt_clock *c, u64 edge)
{
	u64 by_cbr, ticks = edge - c->span, ratio;

	if (!c->spanning || c->span_cycles >= SPAN_MAX || ticks >> 38) {
		c->spanning = true;
		c->span = edge;
		c->span_cycles = 0;
		return;
	}
	if (!c->span_cycles || (c->ratio && c->span_cycles < SPAN_MIN))
		return;
	by_cbr = cbr_ratio(c);
	ratio = (ticks << CLOCK_RATIO_BITS) / c->span_cycles;
	/* CBR is rounded; a ratio of 0 or 256 is invalid. */
	if (by_cbr && (ratio > by_cbr + by_cbr / 4 || ratio < by_cbr - by_cbr / 4)) {
		c->spanning = false;
		return;
	}
	if (ratio && ratio >> 32 == 0)
		c->ratio = ratio;
}

static void cbr(struct vmpt_clock *c, u8 ratio)
{
	u8 before = c->cbr;

	c->counts.cbrs++;
	if (ratio == before || !ratio)
		return;
	c->cbr = ratio;
	c->spanning = false;
	if (c->options.rates.nominal) {
		c->ratio = cbr_ratio(c);
		c->cycle = c->options.rates.nominal / ratio + 1;
	} else if (before) {
		c->ratio = c->ratio * before / ratio;
	}
	if (c->ratio >> 32)
		c->ratio = vmpt_mask64(32);
}

/* ---- MTC ---- */

void vmpt_clock_tie(struct vmpt_clock *c, u64 ctc, u64 lo, u64 hi)
{
	struct vmpt_crystal *x = &c->crystal;
	u64 rem, edge, slack = hi - lo, mtc = ctc >> c->options.rates.mtc_freq;
	u64 ticks = clock_ticks(c, ctc - (mtc << c->options.rates.mtc_freq), &rem);

	edge = lo - ticks - (rem != 0);
	rem = rem ? c->options.rates.tsc_den - rem : 0;
	/* The bound known before may be tighter: both hold. */
	if (x->tied && x->mtc == mtc) {
		if (x->edge > edge && x->edge <= edge + slack) {
			slack -= x->edge - edge;
			edge = x->edge;
			rem = x->rem;
		}
		if (x->edge <= edge && x->edge + x->slack >= edge &&
		    x->edge + x->slack < edge + slack)
			slack = x->edge + x->slack - edge;
	}
	x->mtc = mtc;
	x->edge = edge;
	x->rem = rem;
	/* Parts of a tick count as one tick. */
	x->slack = slack ? slack : 1;
	x->tied = x->counted = true;
}

/* Number of MTCs from the last to this one; 0: unknown. */
static u64 mtcs_since(struct vmpt_clock *c, u8 payload)
{
	struct vmpt_crystal *x = &c->crystal;
	u64 later = (payload - x->mtc) & 0xff, mask;

	if (x->low_only) {
		/* Bits of the count that no TMA has (33.4.2.13) become known if no MTC was lost. */
		mask = vmpt_mask64(16 - c->options.rates.mtc_freq);
		later = (payload - x->mtc) & mask;
		if (!later && !c->exact)
			later = mask + 1;
		c->doubt |= c->lossy;
		if (c->doubt)
			return later;
		x->mtc += (payload - (x->mtc + later)) & 0xff & ~mask;
		x->low_only = false;
		return later;
	}
	if (later >= CLOCK_STALE && c->exact && !c->lossy && !c->doubt)
		return 0;
	return later;
}

/* Without a TMA: this is the first MTC after the TSC at .lo. */
static void tie_to_tsc(struct vmpt_clock *c)
{
	struct vmpt_crystal *x = &c->crystal;

	if (x->tied || !c->known || !c->exact || c->doubt || c->lossy)
		return;
	x->edge = c->lo;
	x->rem = 0;
	x->slack = c->step + 1;
	x->tied = true;
}

static void first_mtc(struct vmpt_clock *c, u8 payload)
{
	c->crystal.mtc = (1ULL << 40) + payload;
	c->crystal.counted = true;
	tie_to_tsc(c);
}

static void next_mtc(struct vmpt_clock *c, u64 later, bool after_cyc)
{
	struct vmpt_crystal *x = &c->crystal;
	u64 edge;

	c->counts.mtcs_lost += later - 1;
	clock_advance(c, later);
	tie_to_tsc(c);
	if (!x->tied)
		return;
	if (!c->doubt && c->lo > clock_due(c)) {
		/* It was due before the last TSC. */
		c->counts.contradictions++;
		x->edge = c->lo;
		x->slack = c->step + 1;
	}
	edge = x->edge + x->slack / 2;
	if (after_cyc) {
		if (later != 1 || c->doubt)
			c->spanning = false;
		vmpt_clock_measure(c, edge);
	}
	if (after_cyc || !c->cycs || c->doubt) {
		c->base = edge;
		c->base_part = 0;
	} else if (c->base > edge) {
		c->base = edge;
	}
}

static void mtc(struct vmpt_clock *c, u8 payload, bool after_cyc)
{
	struct vmpt_crystal *x = &c->crystal;
	u64 later;

	c->counts.mtcs++;
	if (!c->rated)
		return;
	if (!x->counted) {
		first_mtc(c, payload);
	} else {
		later = mtcs_since(c, payload);
		/* The same MTC again: after an OVF it may be 256 later. */
		if (!later)
			return;
		next_mtc(c, later, after_cyc);
	}
	c->exact = c->lossy = false;
	if (!x->tied)
		return;
	if (c->lo < x->edge)
		c->lo = x->edge;
	c->hi = clock_window(c);
	clock_settle(c, c->base < c->hi ? c->base : c->hi - 1);
}

/* ---- where clocks may have stopped ---- */

static void open(struct vmpt_clock *c)
{
	c->hi = CLOCK_OPEN;
	c->spanning = false;
	clock_settle(c, c->cycs ? c->base : c->lo);
}

void vmpt_clock_gap(struct vmpt_clock *c)
{
	vmpt_clock_pair_flush(c);
	c->gap = c->doubt = c->off = true;
	c->in_psb = false;
	c->cyc_last = c->tsc_last = false;
	open(c);
}

void vmpt_clock_end(struct vmpt_clock *c)
{
	vmpt_clock_pair_flush(c);
}

/* ---- items ---- */

static void psb(struct vmpt_clock *c)
{
	c->in_psb = true;
	if (c->off)
		open(c);
}

static void feed(struct vmpt_clock *c, const struct vmpt_item *item, u64 offset,
		 const struct vmpt_owner *owner)
{
	bool after_cyc = c->cyc_last;

	c->back = VMPT_BACK_NOT;
	clock_copy(&c->now, &c->next);
	c->cyc_last = item->kind == VMPT_PT_CYC;
	if (item->kind != VMPT_PT_TMA)
		c->tsc_last = false;
	switch (item->kind) {
	case VMPT_PT_CYC:
		clock_cyc(c, item->payload);
		break;
	case VMPT_PT_MTC:
		mtc(c, (u8)item->payload, after_cyc);
		break;
	case VMPT_PT_TSC:
		vmpt_clock_tsc(c, item->payload, offset, owner);
		break;
	case VMPT_PT_TMA:
		vmpt_clock_tma(c, item->payload);
		break;
	case VMPT_PT_CBR:
		cbr(c, (u8)item->payload);
		break;
	case VMPT_PT_OVF:
		c->counts.ovfs++;
		c->lossy = c->off = true;
		c->in_psb = false;
		open(c);
		break;
	case VMPT_PT_PSB:
		psb(c);
		break;
	case VMPT_PT_PSBEND:
		c->in_psb = false;
		break;
	case VMPT_PT_TIP_PGD:
	case VMPT_PT_TRACESTOP:
		c->off = true;
		break;
	case VMPT_PT_TIP_PGE:
		c->off = false;
		break;
	case VMPT_PT_EXSTOP:
	case VMPT_PT_PWRE:
		c->doubt = true;
		open(c);
		break;
	case VMPT_ITEM_LOSS:
		vmpt_clock_gap(c);
		break;
	default:
		break;
	}
}

void vmpt_clock_feed(struct vmpt_clock *clock, const struct vmpt_item *item, u64 offset,
		     const struct vmpt_owner *owner)
{
	feed(clock, item, offset, owner);
}
