// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The time of RTIT packets, kept as bounds: STSs are exact, an MTC gives the step of its 8 bits in
 * which it was sent, and cycles extend that at a rate given by ACBR and the TSC's ratio.
 * docs/decoder.md lists what can break each of them.
 */
#include "decoder/vmpt-rtit-clock.h"

#define NONE	  (~0ULL)
#define STS_RANGE (1ULL << 40)
/* An STS less than this (about 30 s) before the known time is no wrap. */
#define STS_BACK   (1ULL << 36)
#define RATIO_MAX  63 /* ACBR has 6 bits */
#define RATIO_BITS 16 /* fraction bits of ratio[] */
#define MIN	   0
#define MAX	   1

enum { OFF, ON, MAYBE };

int vmpt_rtit_clock_init_abi(struct vmpt_rtit_clock *clock, u32 tsc_ratio, u64 abi)
{
	if (abi != VMPT_RTIT_CLOCK_ABI)
		return -VMPT_E_VERSION;
	*clock = (struct vmpt_rtit_clock){
		.error = NONE,
		.window = NONE,
		.base_hi = NONE,
		.bus_ratio = tsc_ratio,
		.given = tsc_ratio,
		.ratio = { (u64)tsc_ratio << RATIO_BITS, (u64)tsc_ratio << RATIO_BITS },
		.on = MAYBE,
		.restarted = true,
	};
	return 0;
}

static u64 min_u64(u64 a, u64 b)
{
	return a < b ? a : b;
}

static u64 max_u64(u64 a, u64 b)
{
	return a > b ? a : b;
}

static u64 add(u64 a, u64 b)
{
	return a > NONE - b ? NONE : a + b;
}

/* a * b / c, rounded up if @up; NONE if it does not fit. */
static u64 scale(u64 a, u64 b, u64 c, bool up)
{
	unsigned __int128 v = (unsigned __int128)a * b;

	v = (v + (up ? c - 1 : 0)) / c;
	return v > NONE ? NONE : (u64)v;
}

static u64 step_of(const struct vmpt_rtit_clock *c)
{
	return 1ULL << (7 + 2 * c->rng);
}

/* ---- cycles ---- */

/*
 * Whether the core runs at ACBR, as in the last STS, and the ratio of the TSC to it is known. While
 * PacketEn is 0 LESS_PKTS may hold back STSs.
 */
static bool rate_is_known(const struct vmpt_rtit_clock *c)
{
	return c->acbr_trusted && !c->doubt && c->ratio[MAX] && (c->counting || c->less_clear);
}

/* Minimum ticks of the cycles: at the fastest possible core, if its rate is not known. */
static u64 ticks_min(const struct vmpt_rtit_clock *c)
{
	u64 core = rate_is_known(c) ? max_u64(c->acbr, c->ecbr) : RATIO_MAX;

	return scale(c->cycles[MIN], c->ratio[MIN], core << RATIO_BITS, false);
}

/* Maximum ticks. While clock modulation (ECBR) stops the core no cycles are counted: unknown. */
static u64 ticks_max(const struct vmpt_rtit_clock *c)
{
	if (!rate_is_known(c) || c->acbr != c->ecbr)
		return NONE;
	return scale(c->cycles[MAX], c->ratio[MAX], (u64)c->acbr << RATIO_BITS, true);
}

/* Probable ticks, rather too few: an estimate that was ahead would have to go back. */
static u64 ticks_about(const struct vmpt_rtit_clock *c)
{
	u64 core = c->ecbr ? c->ecbr : c->acbr;

	if (!core || !c->ratio[MAX])
		return 0;
	return scale(c->cycles[MIN], c->ratio[MIN], core << RATIO_BITS, false);
}

/* Count from here on; the tick here is at most @hi. */
static void start_cycles(struct vmpt_rtit_clock *c, u64 hi)
{
	c->base = c->lo;
	c->base_hi = hi;
	c->base_tsc = c->tsc;
	c->cycles[MIN] = c->cycles[MAX] = 0;
}

/*
 * Cycles contradict an STS or MTC: it came at tick @lo or later and at @hi at most. Drop the cycles
 * and the ratio, even if given. @fast: there were too many cycles, so the counts may be exact (no
 * E6).
 */
static void contradict(struct vmpt_rtit_clock *c, u64 lo, u64 hi, bool fast)
{
	c->contradictions++;
	c->whole_counts |= fast;
	c->given = c->spanning = false;
	c->ratio[MIN] = c->ratio[MAX] = c->bus_ratio = 0;
	c->lo = lo;
	if (c->tsc > hi) {
		c->tsc = lo;
		c->went_back = true;
	}
	start_cycles(c, hi);
}

/* ---- ratio of TSC and bus clock, if not given ---- */

/* Measure from here on; the tick here is from @lo to @hi. */
static void start_span(struct vmpt_rtit_clock *c, u64 lo, u64 hi)
{
	c->spanning = !c->given && c->acbr_trusted && !c->doubt && !c->lost && c->acbr &&
		      c->acbr == c->ecbr;
	c->span = lo;
	c->span_hi = hi;
	c->span_cycles[MIN] = c->span_cycles[MAX] = 0;
}

/* An MTC that came from tick @lo to @hi ends a span. Both ends are truncated to whole ticks. */
static void measure(struct vmpt_rtit_clock *c, u64 lo, u64 hi)
{
	u64 min = 0, max = NONE, core = (u64)c->acbr << RATIO_BITS;

	if (c->span_cycles[MAX] && lo > c->span_hi + 1)
		min = scale(lo - c->span_hi - 1, core, c->span_cycles[MAX], false);
	if (c->span_cycles[MIN] && hi >= c->span)
		max = scale(hi - c->span + 1, core, c->span_cycles[MIN], true);
	if (c->ratio[MAX]) {
		min = max_u64(min, c->ratio[MIN]);
		max = min_u64(max, c->ratio[MAX]);
	}
	if (max == NONE)
		return;
	/* The earlier or the current measurement is wrong: start again. */
	if (min > max) {
		contradict(c, lo, hi, max < c->ratio[MAX]);
		start_span(c, lo, hi);
		return;
	}
	/* The ratio is a whole number. */
	if (min >> RATIO_BITS != max >> RATIO_BITS && max - min < 1u << RATIO_BITS)
		min = max = max >> RATIO_BITS << RATIO_BITS;
	c->ratio[MIN] = min;
	c->ratio[MAX] = max;
	c->bus_ratio = min == max ? (u32)(min >> RATIO_BITS) : 0;
}

/* MTCs that did not come may have been held back: the window of the last one has ended. */
static u64 window_of(const struct vmpt_rtit_clock *c)
{
	return c->silent || c->doubt ? NONE : c->window;
}

/* ---- interruptions ---- */

/* Tracing was off, or bytes are lost: time has passed, all else is unknown. */
static void restart(struct vmpt_rtit_clock *c)
{
	c->restarted = c->stray_cycles = true;
	c->lost = c->known;
	c->doubt = c->less_clear = c->mtc_known = c->mtc_last = c->extended = false;
	c->acbr_trusted = c->counting = c->spanning = c->mtc_cycles = c->sts_cycles = false;
	c->window = NONE;
	start_cycles(c, NONE);
}

static void feed_pge(struct vmpt_rtit_clock *c)
{
	/* PacketEn becomes 0 without a FUP.PGD only if TriggerEn becomes 0 (4.2.8). */
	if (c->on == ON)
		restart(c);
	/* With LESS_PKTS neither MTCs nor STSs come while PacketEn is 0. */
	if (c->known && !c->less_clear && !c->doubt) {
		c->doubt = true;
		start_cycles(c, NONE);
	}
	c->on = ON;
	c->counting = c->spanning = false;
}

/* MTCs were dropped, possibly also an STS, FUP.PGDs and FUP.PGEs. */
static void feed_overflow(struct vmpt_rtit_clock *c)
{
	/* Such a PSB may mean that TriggerEn became 0 and 1 in the overflow. */
	if (c->after_psb)
		restart(c);
	else if (c->known && c->on != ON && !c->less_clear)
		c->doubt = true;
	if (c->window != NONE && !c->extended) {
		c->window += 255 * step_of(c);
		c->extended = true;
	}
	c->on = MAYBE;
	c->acbr_trusted = c->counting = c->spanning = false;
	start_cycles(c, NONE);
}

/* ---- STS and MTC ---- */

static void prove_less_clear(struct vmpt_rtit_clock *c)
{
	if (c->on != OFF)
		return;
	c->less_clear = true;
	c->doubt = false;
}

static void feed_sts(struct vmpt_rtit_clock *c, u64 payload)
{
	u64 tick = payload & (STS_RANGE - 1);

	prove_less_clear(c);
	c->went_back = c->lo >> 63;
	if (c->known && !c->went_back) {
		tick |= c->lo & ~(STS_RANGE - 1);
		if (tick < c->lo && c->lo - tick >= STS_BACK)
			tick += STS_RANGE;
		else if (tick >= STS_RANGE && tick - STS_RANGE < c->lo &&
			 c->lo - (tick - STS_RANGE) < STS_BACK)
			tick -= STS_RANGE;
		c->went_back = tick < c->lo || tick < c->tsc;
	}
	if (c->known && tick < c->lo && tick >= c->floor)
		contradict(c, tick, tick, true);
	c->known = c->acbr_trusted = true;
	c->lost = c->doubt = c->mtc_last = c->extended = c->mtc_cycles = false;
	c->acbr = payload >> 40 & 63;
	c->ecbr = payload >> 46 & 63;
	c->acbr_trusted = c->acbr;
	c->lo = c->tsc = c->floor = tick;
	c->window = c->mtc_known ? (tick | (step_of(c) - 1)) + 1 : NONE;
	c->since = 0;
	c->sts_cycles = true;
	start_cycles(c, tick);
	start_span(c, tick, tick);
}

/* The first tick, @from or later, that an MTC of @value can mean. */
static u64 mtc_from(const struct vmpt_rtit_clock *c, u64 value, u64 from)
{
	u64 step = step_of(c), range = step << 8, tick;

	if (c->mtc_last)
		from = max_u64(from, c->mtc + step);
	tick = (from & ~(range - 1)) | value * step;
	return tick + step - 1 < from ? tick + range : tick;
}

/*
 * The tick of an MTC of @value. If by the cycles it is already past, either they are wrong or more
 * than half a round of MTCs is missing.
 */
static u64 mtc_tick(struct vmpt_rtit_clock *c, u64 value)
{
	u64 step = step_of(c), range = step << 8;
	u64 tick = mtc_from(c, value, c->lo);

	if (mtc_from(c, value, c->floor) == tick || tick - c->lo <= range / 2)
		return tick;
	tick -= range;
	contradict(c, max_u64(tick, c->floor), tick + step - 1, true);
	c->lost = true;
	return tick;
}

static void feed_mtc(struct vmpt_rtit_clock *c, const struct vmpt_packet *pkt)
{
	u8 rng = pkt->payload >> 8 & 3;
	u64 tick, step;

	/* The first after a start of the trace (E7): it shows the start, but gives no time. */
	if (pkt->aux & VMPT_RTIT_AUX_IGNORE) {
		if (!c->restarted)
			restart(c);
		return;
	}
	/* RTIT_CTL was written, so tracing was off. */
	if (c->mtc_known && rng != c->rng)
		restart(c);
	prove_less_clear(c);
	c->rng = rng;
	step = step_of(c);
	if (c->known) {
		tick = mtc_tick(c, pkt->payload & 0xff);
		/* Later than the next that was due, or it could be this one or the next round's. */
		if (c->window != NONE && (tick > c->window || c->window >= tick + (step << 8)))
			c->lost = true;
		c->lo = max_u64(c->lo, tick);
		c->mtc = tick;
		c->floor = max_u64(c->floor, tick);
		c->window = c->lost ? NONE : tick + step;
		c->mtc_last = true;
	}
	c->extended = c->restarted = false;
	c->mtc_known = c->mtc_cycles = true;
	c->since = 0;
}

/* ---- cycle counts ---- */

/* By the cycles since the base the tick here is at most @hi. */
static u64 lead_on(struct vmpt_rtit_clock *c)
{
	u64 lo, hi, about, from_mtc = c->window - 1;

	if (!c->known)
		return NONE;
	if (window_of(c) != NONE && c->mtc_cycles && c->spanning)
		measure(c, c->mtc, from_mtc);
	lo = add(c->base, ticks_min(c));
	hi = c->base_hi == NONE ? NONE : add(c->base_hi, ticks_max(c));
	about = add(c->base_tsc, ticks_about(c));
	if (window_of(c) == NONE) {
		c->lo = max_u64(c->lo, lo);
		c->tsc = max_u64(c->tsc, min_u64(about, hi));
		return hi;
	}
	/*
	 * An MTC takes precedence over cycles that contradict it: its whole step remains possible.
	 */
	if (lo > from_mtc || hi < c->lo) {
		contradict(c, c->floor, from_mtc, lo > from_mtc);
		return from_mtc;
	}
	c->lo = max_u64(c->lo, lo);
	c->tsc = max_u64(c->tsc, min_u64(about, min_u64(hi, from_mtc)));
	if (from_mtc < hi || c->lo > lo) {
		hi = min_u64(hi, from_mtc);
		c->tsc = max_u64(c->tsc, c->lo);
		start_cycles(c, hi);
	}
	return hi;
}

static u64 feed_cycles(struct vmpt_rtit_clock *c, u64 count)
{
	u64 hi = NONE, n = count ? count + !c->whole_counts : 0;

	/* An STS is better than the cycles up to it; RTIT_CNTP may have been written. */
	if (c->sts_cycles) {
		hi = c->lo;
	} else if (!c->stray_cycles) {
		c->since = c->mtc_cycles ? 0 : c->since + n;
		if (!c->counting) {
			c->base_hi = NONE;
			c->spanning = false;
		}
		/* A count of 0 may mean one cycle (E6). */
		c->cycles[MIN] += n;
		c->cycles[MAX] += count + 1;
		c->span_cycles[MIN] += n;
		c->span_cycles[MAX] += count + 1;
		hi = lead_on(c);
	}
	if (c->mtc_cycles && c->counting && !c->spanning && c->window != NONE && c->known)
		start_span(c, c->mtc, c->window - 1);
	c->mtc_cycles = c->sts_cycles = c->stray_cycles = false;
	c->counting = c->on == ON;
	return hi;
}

/* ---- all packets ---- */

/* @hi: the last possible tick. */
static void report(struct vmpt_rtit_clock *c, u64 hi)
{
	u64 below;

	if (window_of(c) != NONE)
		hi = min_u64(hi, c->window - 1);
	if (c->known && hi < c->lo) {
		contradict(c, c->floor, NONE, true);
		c->lost = true;
	}
	c->tsc = max_u64(c->tsc, c->lo);
	c->error = NONE;
	if (!c->known || c->lost || c->doubt || hi == NONE)
		return;
	below = c->tsc - min_u64(c->tsc, c->lo);
	c->error = max_u64(below, hi > c->tsc ? hi - c->tsc : 0);
}

static void feed_kind(struct vmpt_rtit_clock *c, const struct vmpt_packet *pkt, unsigned int kind)
{
	bool ignored = pkt->aux & VMPT_RTIT_AUX_IGNORE;

	switch (kind) {
	case VMPT_RTIT_STS:
		feed_sts(c, pkt->payload);
		break;
	case VMPT_RTIT_MTC:
		feed_mtc(c, pkt);
		break;
	case VMPT_RTIT_PGE:
		feed_pge(c);
		break;
	case VMPT_RTIT_PGD:
		if (!ignored)
			c->on = OFF;
		break;
	case VMPT_RTIT_BUFF_OVF:
		feed_overflow(c);
		break;
	case VMPT_RTIT_PSB:
		/* Caused by RTIT_PKT_CNT, or TriggerEn was 0. */
		if (c->on != ON)
			restart(c);
		break;
	case VMPT_RTIT_TNT:
	case VMPT_RTIT_TIP:
	case VMPT_RTIT_FAR:
		/* After a FUP.PGD a TIP may come (2.2.6). */
		if (c->on == MAYBE && !ignored) {
			c->on = ON;
			c->counting = c->spanning = false;
		}
	}
}

/* Whether this packet may come when MTCs would have been held back. */
static bool is_silent(const struct vmpt_rtit_clock *c, unsigned int kind, bool was_on)
{
	switch (kind) {
	case VMPT_RTIT_STS:
	case VMPT_RTIT_MTC:
	case VMPT_RTIT_BUFF_OVF:
	case VMPT_RTIT_TIP: /* comes with a FUP.PGD (2.2.6) */
		return false;
	case VMPT_RTIT_PSB:
		/* Without a FUP.PGD before it (4.2.8) another start is not recognizable. */
		return true;
	default:
		return !was_on && c->on != ON && !c->less_clear;
	}
}

void vmpt_rtit_clock_feed(struct vmpt_rtit_clock *c, const struct vmpt_packet *pkt)
{
	unsigned int kind = pkt->kind - (unsigned int)VMPT_ITEM_RTIT;
	u64 hi = NONE;
	bool was_on;

	if (pkt->kind == VMPT_ITEM_RTIT_CYC) {
		hi = feed_cycles(c, pkt->payload);
		report(c, hi);
		return;
	}
	c->went_back = false;
	if (pkt->kind == VMPT_ITEM_LOSS || kind >= VMPT_RTIT_KINDS) {
		restart(c);
		c->on = MAYBE;
		report(c, NONE);
		return;
	}
	c->mtc_cycles = c->sts_cycles = false;
	was_on = c->on == ON;
	feed_kind(c, pkt, kind);
	c->silent = is_silent(c, kind, was_on);
	report(c, kind == VMPT_RTIT_STS ? c->lo : NONE);
	c->after_psb = kind == VMPT_RTIT_PSB;
	if (kind == VMPT_RTIT_TRACESTOP) {
		restart(c);
		c->on = MAYBE;
	}
}
