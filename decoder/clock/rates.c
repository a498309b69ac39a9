// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The rates of the clocks: given by a perf.data, or derived from a trace's packets (SDM 3 33.8.3).
 *
 * TMAs have 16 bits of CTC, and the MTCs between two of them show how often it wrapped, if MTCFreq
 * is right: the MTC after a TMA is the next after its CTC, and they count up to the CTC of the next
 * TMA. The value that fits most TMAs is used. P is then the TSC ticks between two TMAs divided by
 * those of CTC, to a few ticks in total: the fraction with the smallest denominator within that
 * range, as in CPUID.15H.
 */
#include <stdlib.h>

#include "arch/pt-regs.h"
#include "decoder/vmpt-clock.h"

/* Records that are enough, and the limit of the search. */
#define RECORDS 1024
#define BYTES	(64ULL << 20)
/* Minimum number of CTCs to derive P from */
#define CTCS_MIN 64
/* TMAs for which P must hold before a different given value is wrong */
#define SPANS_MIN 3
/* Maximum scaling of a guest's TSC, up or down; beyond it the given P is wrong */
#define SCALE_MAX 16
#define FAST_MAX  0x1ff

void vmpt_rates_from_info(struct vmpt_rates *rates, const struct vmpt_trace_info *info)
{
	if (info->tsc_ctc_numerator && info->tsc_ctc_denominator) {
		rates->tsc_num = info->tsc_ctc_numerator;
		rates->tsc_den = info->tsc_ctc_denominator;
	}
	if (info->max_nonturbo_ratio && info->max_nonturbo_ratio < 256)
		rates->nominal = info->max_nonturbo_ratio;
	if (info->has_config && info->config & VMPT_CTL_MTC_EN && info->mtc_freq_bits_shift < 61) {
		rates->mtc_freq = info->config >> info->mtc_freq_bits_shift & 0xf;
		rates->has_mtc_freq = true;
	}
}

/* A TSC with its TMA, and the MTCs since the one before. */
struct record {
	u64 tsc;
	u64 who; /* owner of the TSC: 0 the host, else a VMCS with bit 0 set */
	u16 ctc, fast;
	u32 mtcs;   /* MTCs from the first to the last */
	u8 first;   /* payload, if any */
	bool any;   /* there are MTCs */
	bool whole; /* no MTC can have been lost since the record before, if that is .prev */
};

struct finder {
	struct record *record;
	size_t count;
	struct record next; /* being filled */
	u8 mtc;		    /* payload of the last one */
	bool in_psb, tsc_last, cyc_last, counting;
	u64 cbr, cycles;
	/* between MTCs with CYCs right before them, and the same CBR: sums */
	u64 sum_cbr, sum_cycles, sum_mtcs;
};

/* ---- collecting records ---- */

static void lose(struct finder *f)
{
	f->next.whole = f->counting = false;
}

static void see_mtc(struct finder *f, u8 payload)
{
	u8 later = (u8)(payload - f->mtc);

	if (f->next.any)
		f->next.mtcs += later;
	else
		f->next.first = payload;
	f->next.any = true;
	f->mtc = payload;
	if (f->counting && f->cyc_last && later == 1 && f->cycles >> 40 == 0) {
		f->sum_cbr += f->cbr;
		f->sum_cycles += f->cycles;
		f->sum_mtcs++;
	}
	f->counting = f->cyc_last && f->cbr;
	f->cycles = 0;
}

static void see_tsc(struct finder *f, u64 tsc, const struct vmpt_owner *owner)
{
	/* Outside a PSB+ clocks may have stood still (33.4.2.11). */
	if (!f->in_psb)
		lose(f);
	f->next.tsc = tsc;
	f->next.who = owner->kind == VMPT_OWNER_VM ? owner->vmcs | 1 : 0;
	f->tsc_last = owner->kind != VMPT_OWNER_VM_ANY;
}

static void see_tma(struct finder *f, u64 payload)
{
	f->next.ctc = payload & 0xffff;
	f->next.fast = payload >> 24 & FAST_MAX;
	f->record[f->count++] = f->next;
	f->next = (struct record){ .whole = true };
}

static void see(struct finder *f, const struct vmpt_item *item, const struct vmpt_owner *owner)
{
	bool tsc_last = f->tsc_last;

	f->tsc_last = false;
	switch (item->kind) {
	case VMPT_PT_CYC:
		f->cycles += item->payload;
		f->cyc_last = true;
		return;
	case VMPT_PT_MTC:
		see_mtc(f, (u8)item->payload);
		break;
	case VMPT_PT_TSC:
		see_tsc(f, item->payload, owner);
		break;
	case VMPT_PT_TMA:
		if (tsc_last)
			see_tma(f, item->payload);
		break;
	case VMPT_PT_CBR:
		if (item->payload != f->cbr)
			f->counting = false;
		f->cbr = item->payload;
		break;
	case VMPT_PT_PSB:
	case VMPT_PT_PSBEND:
		f->in_psb = item->kind == VMPT_PT_PSB;
		break;
	case VMPT_PT_OVF:
		f->in_psb = false;
		lose(f);
		break;
	case VMPT_ITEM_LOSS:
		lose(f);
		break;
	default:
		break;
	}
	f->cyc_last = false;
}

static int collect(struct finder *f, const struct vmpt_stream *stream,
		   const struct vmpt_options *options)
{
	struct vmpt_options how = { 0 };
	struct vmpt_decoder *dec;
	struct vmpt_batch b;
	size_t i, gap = 0;
	int ret;

	if (options)
		how = *options;
	how.progress = NULL;
	how.run_report = NULL;
	ret = vmpt_decoder_open(&dec, stream, &how);
	if (ret)
		return ret;
	while (f->count < RECORDS && (ret = vmpt_batch_next(dec, &b)) > 0 && b.base < BYTES) {
		while (gap < stream->gap_count && b.count &&
		       stream->gaps[gap].offset <= b.base + b.items[b.count - 1].offset) {
			lose(f);
			gap++;
		}
		for (i = 0; i < b.count && f->count < RECORDS; i++)
			see(f, &b.items[i], &b.owner);
	}
	vmpt_decoder_close(dec);
	return ret < 0 ? ret : 0;
}

/* ---- deriving the rates ---- */

/* CTCs from @a to @b with MTCFreq @freq. False: they do not fit it. */
static bool ctcs_between(const struct record *a, const struct record *b, unsigned int freq,
			 u64 *ctcs)
{
	u64 from = a->ctc >> freq, mtcs = 0, low = vmpt_mask64(freq < 8 ? 8 : 16 - freq);

	if (b->any) {
		/* An MTC may come right after a TMA with the same CTC. */
		if (((b->first - from) & low) > 1)
			return false;
		mtcs = b->mtcs + 1;
	}
	*ctcs = (mtcs << freq) + (b->ctc & vmpt_mask64(freq)) - (a->ctc & vmpt_mask64(freq));
	return (*ctcs & 0xffff) == (u16)(b->ctc - a->ctc) && *ctcs >> 48 == 0;
}

struct ratio {
	u64 num, den;
};

static bool less(const struct ratio *a, const struct ratio *b)
{
	return (unsigned __int128)a->num * b->den < (unsigned __int128)b->num * a->den;
}

/* How MTCFreq fits, and the resulting P. */
struct mtc_fit {
	u64 good, bad;
	struct ratio lo, hi; /* of the longest stretch without a loss */
	u64 ctcs;	     /* of that */
	u64 ticks, slack;
	u16 fast; /* the highest that is not saturated */
	bool saturated;
};

static u64 slack_of(const struct record *a, const struct record *b, u64 ticks, u64 ctcs)
{
	if (a->fast < FAST_MAX && b->fast < FAST_MAX)
		return 2;
	/* Each edge is up to one tick of CTC before the TSC. */
	return ctcs ? ticks / ctcs + 2 : ticks;
}

static u64 edge_of(const struct record *r)
{
	return r->tsc - (r->fast < FAST_MAX ? r->fast : 0);
}

/* The stretch from @first to @last has @ctcs CTCs. */
static void take_way(struct mtc_fit *fit, const struct record *first, const struct record *last,
		     u64 ctcs)
{
	u64 ticks = (edge_of(last) - edge_of(first)) & vmpt_mask64(56);
	u64 slack = slack_of(first, last, ticks, ctcs);

	if (ctcs <= fit->ctcs || ticks >> 50 || ticks <= slack)
		return;
	fit->ctcs = ctcs;
	fit->ticks = ticks;
	fit->slack = slack;
	fit->lo = (struct ratio){ ticks - slack, ctcs };
	fit->hi = (struct ratio){ ticks + slack, ctcs };
}

static void fit_freq(const struct finder *f, u64 who, unsigned int freq, struct mtc_fit *fit)
{
	const struct record *r = f->record;
	size_t i, first = 0;
	u64 ctcs, sum = 0;

	memset(fit, 0, sizeof(*fit));
	for (i = 0; i < f->count; i++) {
		if (r[i].who == who && r[i].fast == FAST_MAX)
			fit->saturated = true;
		else if (r[i].who == who && r[i].fast > fit->fast)
			fit->fast = r[i].fast;
		if (!i)
			continue;
		if (!r[i].whole || !ctcs_between(&r[i - 1], &r[i], freq, &ctcs)) {
			fit->bad += r[i].whole;
			first = i;
			sum = 0;
			continue;
		}
		fit->good += r[i].any;
		sum += ctcs;
		/* A stretch begins and ends with a TSC of the same clock. */
		while (first < i && r[first].who != who) {
			first++;
			if (first < i && ctcs_between(&r[first - 1], &r[first], freq, &ctcs))
				sum -= ctcs;
			else
				sum = 0;
		}
		if (first < i && r[i].who == who)
			take_way(fit, &r[first], &r[i], sum);
	}
}

/* The fraction with the smallest denominator in [@lo, @hi]. */
static struct ratio simplest(struct ratio lo, struct ratio hi)
{
	/* Convergents of the continued fractions, as long as both agree. */
	struct ratio last = { 1, 0 }, before = { 0, 1 }, next;
	u64 whole, rest;

	for (;;) {
		whole = lo.num / lo.den;
		rest = lo.num % lo.den;
		if (!rest || whole < hi.num / hi.den) {
			whole += rest != 0;
			return (struct ratio){ last.num * whole + before.num,
					       last.den * whole + before.den };
		}
		next = (struct ratio){ last.num * whole + before.num,
				       last.den * whole + before.den };
		before = last;
		last = next;
		/* Inverted, the bounds swap. */
		next = (struct ratio){ lo.den, rest };
		lo = (struct ratio){ hi.den, hi.num % hi.den };
		hi = next;
		if (!lo.den || !hi.den)
			return last;
	}
}

/* P from @fit; false: unknown or impossible. */
static bool ratio_of(const struct mtc_fit *fit, struct ratio *p)
{
	if (fit->ctcs < CTCS_MIN || !fit->lo.num || fit->slack > fit->ticks / 1000)
		return false;
	*p = simplest(fit->lo, fit->hi);
	if (!p->num || !p->den || p->num >> 32 || p->den >> 32)
		return false;
	if (less(p, &fit->lo) || less(&fit->hi, p))
		return false;
	/* FastCounter is less than a tick of CTC, and saturates only if that is longer. */
	if (p->num / p->den + 1 < fit->fast)
		return false;
	return !fit->saturated || p->num / p->den >= FAST_MAX;
}

/* Whether the given P agrees with @fit. */
static bool agrees(const struct mtc_fit *fit, const struct vmpt_rates *rates)
{
	struct ratio p = { rates->tsc_num, rates->tsc_den };
	/* A given P may be off by some ppm, being of another unit's clock. */
	u64 room = fit->slack + fit->ticks / 10000;
	struct ratio lo = { fit->ticks > room ? fit->ticks - room : 0, fit->ctcs };
	struct ratio hi = { fit->ticks + room, fit->ctcs };

	return fit->ctcs && !less(&p, &lo) && !less(&hi, &p);
}

/* Whose TSCs to use: the host's, or those of the guest with the most. */
static u64 choose_clock(const struct finder *f)
{
	u64 best = 0, best_count = 0, count;
	size_t i, j;

	for (i = 0; i < f->count; i++)
		if (!f->record[i].who && ++best_count >= 2)
			return 0;
	/* The most frequent one is among the first ones, too. */
	best_count = 0;
	for (i = 0; i < f->count && i < 64; i++) {
		for (j = 0, count = 0; j < f->count; j++)
			count += f->record[j].who == f->record[i].who;
		if (count > best_count) {
			best = f->record[i].who;
			best_count = count;
		}
	}
	return best;
}

/* TMAs of @who whose ticks since the one before agree with @p, and those that do not. */
struct spans {
	u64 good, bad;
};

static struct spans spans_of(const struct finder *f, u64 who, unsigned int freq,
			     const struct ratio *p)
{
	const struct record *r = f->record, *last = NULL;
	u64 ctcs, ticks, should, apart, sum = 0;
	struct spans spans = { 0 };
	size_t i;

	for (i = 0; i < f->count; i++) {
		if (!i || !r[i].whole || !ctcs_between(&r[i - 1], &r[i], freq, &ctcs))
			last = NULL;
		else
			sum += ctcs;
		if (r[i].who != who)
			continue;
		if (last) {
			ticks = (edge_of(&r[i]) - edge_of(last)) & vmpt_mask64(56);
			should = (u64)((unsigned __int128)sum * p->num / p->den);
			apart = ticks > should ? ticks - should : should - ticks;
			if (apart <= slack_of(last, &r[i], should, sum) + 2 + should / 10000)
				spans.good++;
			else
				spans.bad++;
		}
		last = &r[i];
		sum = 0;
	}
	return spans;
}

/* Whether P is @p between most TMAs of @who; it is not if the TSC was written meanwhile. */
static bool holds_for(const struct finder *f, u64 who, unsigned int freq, const struct ratio *p)
{
	struct spans spans = spans_of(f, who, freq, p);

	return spans.bad * 4 <= spans.good;
}

static bool fits(const struct mtc_fit *fit)
{
	return fit->good >= 2 && fit->bad * 8 <= fit->good;
}

/*
 * Several MTCFreq may fit: use the lowest of those that most records support. False: none fits what
 * @rates has already.
 */
static bool choose_rates(const struct finder *f, u64 who, struct vmpt_rates *rates)
{
	bool lacking = !rates->tsc_num || !rates->has_mtc_freq;
	struct vmpt_rates found = *rates;
	struct ratio p;
	struct mtc_fit fit;
	unsigned int n;
	u64 best = 0;

	for (n = 0; n < 16; n++) {
		if (rates->has_mtc_freq && rates->mtc_freq != n)
			continue;
		fit_freq(f, who, n, &fit);
		if (!fits(&fit) || fit.good <= best)
			continue;
		if (rates->tsc_num ? !agrees(&fit, rates) : !ratio_of(&fit, &p))
			continue;
		if (!rates->tsc_num && !holds_for(f, who, n, &p))
			continue;
		best = fit.good;
		if (!rates->tsc_num) {
			found.tsc_num = (u32)p.num;
			found.tsc_den = (u32)p.den;
		}
		found.mtc_freq = (u8)n;
		found.has_mtc_freq = true;
		found.found = rates->found || lacking;
	}
	*rates = found;
	return best;
}

/*
 * Whether the P of @given differs from @found's, over the whole stretch and by most spans. With a
 * guest's TSC it may: that is scaled, but no processor is that much faster than another.
 */
static bool other_ratio(const struct finder *f, u64 who, const struct vmpt_rates *given,
			const struct vmpt_rates *found)
{
	struct ratio p = { given->tsc_num, given->tsc_den };
	struct ratio high = { (u64)SCALE_MAX * found->tsc_num, found->tsc_den };
	struct ratio low = { found->tsc_num, (u64)SCALE_MAX * found->tsc_den };
	struct mtc_fit fit;

	if (who)
		return less(&high, &p) || less(&p, &low);
	fit_freq(f, who, found->mtc_freq, &fit);
	return !agrees(&fit, given) && !holds_for(f, who, found->mtc_freq, &p);
}

/*
 * Fill unknown @rates. Given values that the packets clearly contradict go to @wrong and are
 * replaced by the packets'. False: the packets do not determine the rates.
 */
static bool judge(const struct finder *f, struct vmpt_rates *rates, struct vmpt_rates_wrong *wrong)
{
	struct vmpt_rates found = { 0 };
	u64 who = choose_clock(f);
	struct ratio p;
	struct mtc_fit fit;

	if (choose_rates(f, who, rates))
		return true;
	if (!wrong)
		return false;
	if (rates->has_mtc_freq) {
		fit_freq(f, who, rates->mtc_freq, &fit);
		found.has_mtc_freq = fits(&fit);
		found.mtc_freq = rates->mtc_freq;
	}
	if (!choose_rates(f, who, &found))
		return false;
	p = (struct ratio){ found.tsc_num, found.tsc_den };
	if (spans_of(f, who, found.mtc_freq, &p).good < SPANS_MIN)
		return false;
	wrong->given = *rates;
	wrong->mtc_freq = rates->has_mtc_freq && rates->mtc_freq != found.mtc_freq;
	wrong->tsc_ratio = rates->tsc_num && other_ratio(f, who, rates, &found);
	if (!rates->tsc_num || wrong->tsc_ratio) {
		rates->tsc_num = found.tsc_num;
		rates->tsc_den = found.tsc_den;
		rates->found = true;
	}
	rates->found |= !rates->has_mtc_freq || wrong->mtc_freq;
	rates->mtc_freq = found.mtc_freq;
	rates->has_mtc_freq = true;
	return true;
}

static void choose_nominal(const struct finder *f, struct vmpt_rates *rates)
{
	unsigned __int128 n;

	if (rates->nominal || f->sum_cycles < 1000 + 100 * f->sum_mtcs || !rates->tsc_num ||
	    !rates->has_mtc_freq)
		return;
	n = ((unsigned __int128)f->sum_cbr * rates->tsc_num << rates->mtc_freq) / rates->tsc_den;
	n = (n + f->sum_cycles / 2) / f->sum_cycles;
	if (n && n < 256)
		rates->nominal = (u32)n;
}

static int find(struct vmpt_rates *rates, const struct vmpt_stream *stream,
		const struct vmpt_options *options, struct vmpt_rates_wrong *wrong, bool *judged)
{
	struct finder f = { 0 };
	int ret;

	f.record = calloc(RECORDS, sizeof(*f.record));
	if (!f.record)
		return -VMPT_E_NOMEM;
	ret = collect(&f, stream, options);
	if (!ret && (wrong || !rates->tsc_num || !rates->has_mtc_freq))
		*judged = judge(&f, rates, wrong);
	if (!ret)
		choose_nominal(&f, rates);
	free(f.record);
	return ret;
}

int vmpt_rates_find(struct vmpt_rates *rates, const struct vmpt_stream *stream,
		    const struct vmpt_options *options)
{
	bool judged;
	int err = 0;

	if (stream->isa != VMPT_ISA_PT)
		return 0;
	if (rates->tsc_num && !rates->tsc_den)
		return -VMPT_E_INVAL;
	if (!rates->tsc_num || !rates->has_mtc_freq || !rates->nominal)
		err = find(rates, stream, options, NULL, &judged);
	return err ? err : rates->tsc_num && rates->has_mtc_freq;
}

int vmpt_rates_check(struct vmpt_rates *rates, const struct vmpt_stream *stream,
		     const struct vmpt_options *options, struct vmpt_rates_wrong *wrong)
{
	bool judged = false;
	int err;

	*wrong = (struct vmpt_rates_wrong){ 0 };
	if (stream->isa != VMPT_ISA_PT)
		return 0;
	if (rates->tsc_num && !rates->tsc_den)
		return -VMPT_E_INVAL;
	err = find(rates, stream, options, wrong, &judged);
	return err ? err : judged;
}
