// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * TSC and TMA packets of the host and of guests (SDM 3 33.4.2.11, 33.4.2.13, 33.8.3).
 *
 * A TSC of the host is exact. Its TMA has CTC, and in FastCounter the number of ticks since CTC
 * counted last (at least 1FFH, if it is that); so the tick of that count is known to ±1 tick.
 *
 * A guest's TSC is converted by the guest's map, if known; CTC is not adjusted (33.5.2.1), so a
 * guest's TMA gives the host's time, too, once CTC is tied to the host's TSC: with 16 bits, which
 * is enough while MTCs come. A TSC outside a PSB+ means that clocks may have stood still: then CTC
 * may have wrapped, and the TMA of an unmapped guest gives only the earliest time. Where map and
 * CTC disagree, CTC is right.
 *
 * Erratum SKZ84: TMAs of guests with TSC offset or scaling are corrupt. This is given by the model,
 * or detected: such a TMA is beyond the next MTC though MTCs come, or its FastCounter is longer
 * than a tick of the crystal clock. It is not used, and if most do not fit, no TMA of a guest is.
 */
#include "decoder/clock/core.h"

#define TSC_MASK vmpt_mask64(56)

/*
 * A wrap of 56 bits is only accepted across fewer ticks (days): else one wrong bit would look like
 * one.
 */
#define WRAP_MAX (1ULL << 50)

/* @tsc has 56 bits: the possible value nearest to @near, else the one without a wrap. */
static u64 widen(u64 tsc, u64 near)
{
	u64 ahead = (tsc - near) & TSC_MASK, behind = (near - tsc) & TSC_MASK;

	if (ahead < WRAP_MAX)
		return near + ahead;
	if (behind < WRAP_MAX && behind <= near)
		return near - behind;
	return (near & ~TSC_MASK) | tsc;
}

static u64 near_now(const struct vmpt_clock *c)
{
	return c->known ? c->est : c->options.near_tsc;
}

void vmpt_clock_pair_flush(struct vmpt_clock *c)
{
	if (!c->pairing)
		return;
	c->pairing = false;
	if (c->pair.host.tsc != VMPT_TIME_NONE && c->pair.host.early != VMPT_TIME_OPEN)
		c->options.pair(c->options.pair_opaque, &c->pair);
}

/* ---- TSC ---- */

/* The MTCs that were due up to @tsc are in the past, whether or not they came. */
static void catch_up(struct vmpt_clock *c, u64 tsc)
{
	const struct vmpt_rates *r = &c->options.rates;
	struct vmpt_crystal *x = &c->crystal;
	unsigned __int128 since;

	if (!x->tied || tsc <= x->edge)
		return;
	since = (unsigned __int128)(tsc - x->edge) * r->tsc_den - x->rem;
	since /= (u64)r->tsc_num << r->mtc_freq;
	if (since)
		clock_advance(c, (u64)since);
}

/* The time is certainly in [@lo, @hi]; forget all before. */
static void anchor(struct vmpt_clock *c, u64 lo, u64 hi)
{
	u64 mid = lo + (hi - lo) / 2;

	catch_up(c, lo);
	c->lo = lo;
	c->hi = CLOCK_OPEN;
	c->known = c->exact = true;
	c->doubt = c->lossy = c->gap = c->off = false;
	if (!c->in_psb)
		c->spanning = false;
	c->base = mid;
	c->base_part = 0;
	clock_report(c, &c->now, lo, hi, mid);
	c->tsc = lo;
	c->tsc_late = hi;
}

/* The TSC is before all possible times. */
static void back_to(struct vmpt_clock *c, u64 tsc, enum vmpt_back small)
{
	enum vmpt_back why = small;

	if (c->gap)
		why = VMPT_BACK_GAP;
	else if (small == VMPT_BACK_CONTRADICTION && (!c->rated || c->lo - tsc > 16 * c->step))
		why = VMPT_BACK_TSC_RESET;
	if (why == VMPT_BACK_CONTRADICTION)
		c->counts.contradictions++;
	clock_step_back(c, why);
	c->crystal.tied = false;
}

static void host_tsc(struct vmpt_clock *c, u64 tsc, bool assumed)
{
	if (c->known && c->assumed && !assumed) {
		/* Assumptions made before do not count. */
		if (tsc < c->lo)
			back_to(c, tsc, VMPT_BACK_MAP);
		c->crystal.tied = false;
	} else if (c->known && tsc < c->lo) {
		back_to(c, tsc, VMPT_BACK_CONTRADICTION);
	}
	c->assumed = assumed;
	c->tsc_is = CLOCK_TSC_HOST;
	anchor(c, tsc, tsc);
	if (c->crystal.tied && !c->counts.tmas && tsc - c->crystal.edge < c->crystal.slack)
		c->crystal.slack = tsc - c->crystal.edge + 1;
	/* A TMA is next, if MTCs are enabled. */
	clock_report(c, &c->next, c->lo, c->hi, c->base);
}

/* Clocks may have stood still for any time. */
static void unmapped(struct vmpt_clock *c)
{
	if (c->in_psb || !c->known)
		return;
	c->doubt = true;
	c->hi = CLOCK_OPEN;
	c->spanning = false;
	clock_settle(c, c->est);
}

/* [@lo, @hi] by the map, and MTCs count. */
static void mapped(struct vmpt_clock *c, u64 lo, u64 hi)
{
	u64 item_lo, item_hi;

	c->tsc = lo;
	c->tsc_late = hi;
	c->tsc_is = CLOCK_TSC_MAPPED;
	if (!c->known || c->assumed || (hi < c->lo && !c->crystal.tied)) {
		if (c->known && hi < c->lo)
			back_to(c, hi, VMPT_BACK_MAP);
		c->assumed = false;
		anchor(c, lo, hi);
		clock_report(c, &c->next, c->lo, c->hi, c->base);
		return;
	}
	if (hi < c->lo || (lo > c->hi && c->in_psb)) {
		c->counts.contradictions++;
		c->tsc_is = CLOCK_TSC_UNFIT;
		unmapped(c);
		return;
	}
	if (c->hi == CLOCK_OPEN || lo > c->hi) {
		/* A TMA confirms or refutes it. Without MTCs there is nothing else. */
		if (c->crystal.tied && c->counts.tmas) {
			c->tsc_is = CLOCK_TSC_JUMP;
			c->hi = CLOCK_OPEN;
			clock_settle(c, c->est);
			return;
		}
		anchor(c, lo < c->lo ? c->lo : lo, hi);
		clock_report(c, &c->next, c->lo, c->hi, c->base);
		return;
	}
	item_lo = lo > c->lo ? lo : c->lo;
	item_hi = hi < c->hi ? hi : c->hi;
	c->lo = item_lo;
	c->base = item_lo + (item_hi - item_lo) / 2;
	c->base_part = 0;
	clock_report(c, &c->now, item_lo, item_hi, c->base);
	clock_report(c, &c->next, c->lo, c->hi, c->base);
}

static void guest_tsc(struct vmpt_clock *c, u64 payload, u64 offset, u64 vmcs)
{
	const struct vmpt_epoch *e = NULL;
	u64 tsc, wide, error;

	c->counts.guest_tscs++;
	if (c->options.pair) {
		c->pairing = true;
		c->pair = (struct vmpt_tsc_pair){
			.vmcs = vmcs, .guest = payload, .host = c->next, .offset = offset
		};
		/* CTC corrects this to less, if it comes. */
		if (!c->in_psb || c->assumed)
			c->pair.host.late = VMPT_TIME_OPEN;
	}
	if (c->options.map)
		e = c->options.map(c->options.map_opaque, vmcs, c->known ? c->est : VMPT_TIME_NONE);
	if (!e || e->offset_error == ~0ULL || e->offset_error >> 48 || !e->map.multiplier) {
		c->counts.unmapped++;
		c->tsc_is = CLOCK_TSC_UNMAPPED;
		unmapped(c);
		return;
	}
	tsc = vmpt_tsc_to_host(&e->map, payload, near_now(c));
	/* Number of host ticks in one tick of the guest. */
	wide = e->map.multiplier < VMPT_TSC_UNSCALED ? VMPT_TSC_UNSCALED / e->map.multiplier : 0;
	error = e->offset_error;
	mapped(c, tsc > error ? tsc - error : 0, tsc + wide + error);
}

void vmpt_clock_tsc(struct vmpt_clock *c, u64 payload, u64 offset, const struct vmpt_owner *owner)
{
	u64 tsc;

	vmpt_clock_pair_flush(c);
	c->counts.tscs++;
	c->tsc_last = true;
	if (owner->kind == VMPT_OWNER_VM) {
		guest_tsc(c, payload, offset, owner->vmcs);
		return;
	}
	tsc = widen(payload, near_now(c));
	if (owner->kind == VMPT_OWNER_HOST) {
		host_tsc(c, tsc, false);
	} else if (owner->kind == VMPT_OWNER_UNKNOWN && (!c->known || c->assumed)) {
		host_tsc(c, tsc, true);
	} else if (c->known && c->hi != CLOCK_OPEN && tsc >= c->lo && tsc <= c->hi) {
		host_tsc(c, tsc, c->assumed);
	} else {
		c->tsc_is = CLOCK_TSC_NOBODY;
		unmapped(c);
	}
}

/* ---- TMA ---- */

struct tma {
	u64 ctc;	      /* 16 bits */
	u64 fast_lo, fast_hi; /* ticks since CTC counted */
};

static struct tma payload_of(const struct vmpt_clock *c, u64 payload)
{
	struct tma t = { .ctc = payload & 0xffff };

	t.fast_lo = t.fast_hi = payload >> 24 & 0x1ff;
	if (t.fast_lo == 0x1ff && c->tick > 0x1ff)
		t.fast_hi = c->tick;
	return t;
}

static u64 ctc_of_mtc(const struct vmpt_clock *c)
{
	return c->crystal.mtc << c->options.rates.mtc_freq;
}

/* Unwrapped CTC from its low @bits: the first at or after the last MTC. */
static u64 ctc_after(const struct vmpt_clock *c, u64 bits)
{
	u64 from = ctc_of_mtc(c);

	return from + ((bits - from) & 0xffff);
}

/* Unwrapped CTC from its low @bits: the one nearest to tick @tsc. */
static u64 ctc_near(const struct vmpt_clock *c, u64 bits, u64 tsc, u64 *apart)
{
	const struct vmpt_rates *r = &c->options.rates;
	u64 ctc = ctc_of_mtc(c), ahead;

	if (tsc > c->crystal.edge)
		ctc += (u64)((unsigned __int128)(tsc - c->crystal.edge) * r->tsc_den / r->tsc_num);
	ahead = (bits - ctc) & 0xffff;
	*apart = ahead < 0x8000 ? ahead : 0x10000 - ahead;
	return ahead < 0x8000 ? ctc + ahead : ctc - *apart;
}

/* Counting of CTC begins, or resumes, with a TMA. Returns it, unwrapped. */
static u64 begin_count(struct vmpt_clock *c, u64 bits)
{
	struct vmpt_crystal *x = &c->crystal;
	u64 ctc = x->counted ? ctc_after(c, bits) : (1ULL << 55) + bits;

	x->mtc = ctc >> c->options.rates.mtc_freq;
	x->counted = true;
	x->low_only = c->options.rates.mtc_freq > 8;
	return ctc;
}

/* After a TSC of the host, or by a trusted map. */
static void tie_by(struct vmpt_clock *c, const struct tma *t)
{
	struct vmpt_crystal *x = &c->crystal;
	u64 ctc, apart;

	if (x->counted && x->tied) {
		ctc = ctc_near(c, t->ctc, c->tsc, &apart);
		if (apart >
		    2 + (x->slack + c->tsc_late - c->tsc) / (c->tick - 1 ? c->tick - 1 : 1)) {
			c->counts.contradictions++;
			x->tied = false;
			x->low_only = c->options.rates.mtc_freq > 8;
		}
	} else {
		ctc = begin_count(c, t->ctc);
		x->tied = false;
	}
	vmpt_clock_tie(c, ctc, c->tsc - t->fast_hi - 1, c->tsc_late - t->fast_lo + 1);
	c->hi = clock_due(c);
	clock_report(c, &c->next, c->lo, c->hi, c->base);
	/* It is of the same moment as its TSC. */
	clock_report(c, &c->now, c->tsc > c->lo ? c->lo : c->tsc, c->tsc_late, c->base);
}

/* A guest's TMA, at @ctc: CTC is tied, so the host's time follows. */
static void take(struct vmpt_clock *c, const struct tma *t, u64 ctc)
{
	u64 mtc = ctc >> c->options.rates.mtc_freq, rem, lo, hi, ticks;

	if (mtc > c->crystal.mtc)
		clock_advance(c, mtc - c->crystal.mtc);
	ticks = clock_ticks(c, ctc - ctc_of_mtc(c), &rem);
	lo = c->crystal.edge + ticks + t->fast_lo - 1;
	hi = c->crystal.edge + ticks + c->crystal.slack + t->fast_hi + 3;
	if (lo < c->lo)
		lo = c->lo;
	if (hi < lo)
		hi = lo;
	c->exact = true;
	c->lossy = c->off = false;
	c->lo = lo;
	c->hi = clock_window(c);
	c->base = lo + (hi - lo) / 2;
	c->base_part = 0;
	clock_report(c, &c->now, lo, c->doubt ? CLOCK_OPEN : hi, c->base);
	clock_report(c, &c->next, c->lo, c->hi, c->base);
	c->pair.host = c->now;
	if (c->doubt || c->assumed)
		c->pair.host.late = VMPT_TIME_OPEN;
}

static void bad_tma(struct vmpt_clock *c, bool guest)
{
	c->counts.tmas_bad++;
	if (guest)
		c->skz_bad++;
	if (guest && c->tsc_is == CLOCK_TSC_JUMP)
		unmapped(c);
}

/* Whether a guest's TMA cannot be used. */
static bool is_skz84(const struct vmpt_clock *c)
{
	u8 skz84 = c->options.rates.skz84;

	if (skz84 != VMPT_SKZ84_AUTO)
		return skz84 == VMPT_SKZ84_YES;
	return c->skz_bad >= 3 && c->skz_bad > c->skz_good;
}

static void guest_tma(struct vmpt_clock *c, const struct tma *t)
{
	const u64 freq = c->options.rates.mtc_freq;
	u64 from = ctc_of_mtc(c), ctc = ctc_after(c, t->ctc), near, apart = ~0ULL, room;
	bool by_map = c->tsc_is == CLOCK_TSC_JUMP || c->tsc_is == CLOCK_TSC_MAPPED;

	if (!c->doubt && c->hi != CLOCK_OPEN) {
		/* Up to the next MTC, which may be about to come. */
		if (ctc - from < 2ULL << freq || freq > 15) {
			c->skz_good++;
			take(c, t, ctc);
		} else {
			bad_tma(c, true);
		}
		return;
	}
	if (by_map) {
		near = ctc_near(c, t->ctc, c->tsc, &apart);
		room = 2 +
		       (c->crystal.slack + c->tsc_late - c->tsc) / (c->tick - 1 ? c->tick - 1 : 1);
		if (apart <= room && near >= from) {
			c->doubt = c->gap = false;
			take(c, t, near);
			return;
		}
		if (c->tsc_is == CLOCK_TSC_JUMP) {
			c->counts.contradictions++;
			unmapped(c);
		}
	}
	/* MTCs were lost: fewer than 256, or any number. */
	if (c->doubt || ctc - from <= 256ULL << freq)
		take(c, t, ctc);
	else
		bad_tma(c, true);
}

void vmpt_clock_tma(struct vmpt_clock *c, u64 payload)
{
	const struct tma t = payload_of(c, payload);
	/* PADs may be between (as in traces of real processors). */
	u8 is = c->tsc_last ? c->tsc_is : CLOCK_TSC_NONE;
	bool guest = is != CLOCK_TSC_HOST;

	c->counts.tmas++;
	c->tsc_last = false;
	if (is != CLOCK_TSC_NONE && c->rated) {
		if (guest && is_skz84(c))
			bad_tma(c, true);
		else if (t.fast_lo > c->tick && t.fast_lo != 0x1ff)
			bad_tma(c, guest);
		else if (is == CLOCK_TSC_HOST ||
			 (is == CLOCK_TSC_MAPPED && !(c->crystal.counted && c->crystal.tied)))
			tie_by(c, &t);
		else if (c->crystal.counted && c->crystal.tied && c->known)
			guest_tma(c, &t);
		else if (!c->crystal.counted)
			begin_count(c, t.ctc);
	}
	vmpt_clock_pair_flush(c);
}
