// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Epochs from pairs. A pair means that at guest TSC x (exact) the host's TSC was in [lo, hi]. In
 * one epoch a line goes through all these segments except outliers; in most epochs its slope is 1.
 * Epochs are as long as possible: one ends where several consecutive pairs do not fit it but fit
 * each other.
 */
#include <stdlib.h>
#include <string.h>

#include "decoder/clock/fit.h"
#include "decoder/clock/line.h"

/* Ticks added on both sides: the guest's TSC is rounded down, and so may be the clock's bounds. */
#define SLACK	   2
#define LINE_SLACK 4 /* multipliers down to 1/4: a guest's tick is up to 4 of the host's */
#define OPEN	   (1LL << 58)
#define AGREE_LINE 5 /* for a line of any slope, see VMPT_FIT_AGREE */
#define LINE_LEAST 3 /* a line fits any two pairs */
#define RATIO_MAX  16.0

/* A map that some pairs agree with; coordinates are relative to the first one. */
struct map_guess {
	bool scaled; /* a line of any slope; otherwise of slope 1 */
	u64 guest, host;
	size_t first, count;
	s64 lo, hi; /* not scaled: host - guest */
	struct vmpt_fit_line line;
};

/* Result for a stretch of pairs under a guess. */
struct stretch {
	size_t end;
	u64 fit, off; /* pairs, by weight */
};

struct fitting {
	const struct vmpt_fit_pair *pairs;
	size_t n;
	struct map_guess now, next, next_line;
};

int vmpt_fit_compare(const void *a, const void *b)
{
	const struct vmpt_tsc_pair *x = a, *y = b;

	if (x->vmcs != y->vmcs)
		return x->vmcs < y->vmcs ? -1 : 1;
	if (x->host.tsc != y->host.tsc)
		return x->host.tsc < y->host.tsc ? -1 : 1;
	if (x->stream != y->stream)
		return x->stream < y->stream ? -1 : 1;
	return x->offset < y->offset ? -1 : x->offset > y->offset;
}

/* 56 bits as a signed number. */
static s64 signed56(u64 value)
{
	return (s64)(value << 8) >> 8;
}

/* ---- guesses ---- */

static void guess_clear(struct map_guess *g, bool scaled)
{
	g->scaled = scaled;
	g->count = 0;
	if (scaled)
		vmpt_fit_line_clear(&g->line);
}

/* The segment of a pair; false: too far away for the number range. */
static bool segment(const struct map_guess *g, const struct vmpt_tsc_pair *p, s64 slack, s64 *x,
		    s64 *lo, s64 *hi)
{
	s64 y = (s64)(p->host.tsc - g->host);

	*x = signed56(p->guest - g->guest);
	if (y >= OPEN || y <= -OPEN)
		return false;
	*lo = p->host.early == VMPT_TIME_OPEN ? -OPEN : y - (s64)p->host.early - slack;
	*hi = p->host.late == VMPT_TIME_OPEN ? OPEN : y + (s64)p->host.late + slack;
	return true;
}

/* Whether pair @i agrees; if so it counts from now on. */
static bool guess_add(struct map_guess *g, const struct fitting *f, size_t i)
{
	const struct vmpt_tsc_pair *p = &f->pairs[i].pair;
	s64 x, lo, hi;

	if (!g->count) {
		g->first = i;
		g->guest = p->guest;
		g->host = p->host.tsc;
		g->lo = -OPEN;
		g->hi = OPEN;
	}
	if (!segment(g, p, g->scaled ? LINE_SLACK : SLACK, &x, &lo, &hi))
		return false;
	if (g->scaled) {
		if (!vmpt_fit_line_add(&g->line, x, lo, hi, (u32)i))
			return false;
	} else {
		lo -= lo == -OPEN ? 0 : x;
		hi -= hi == OPEN ? 0 : x;
		lo = lo > g->lo ? lo : g->lo;
		hi = hi < g->hi ? hi : g->hi;
		if (lo > hi)
			return false;
		g->lo = lo;
		g->hi = hi;
	}
	g->count++;
	return true;
}

/* A guess for pairs that do not fit: starts again at each that does not fit it either. */
static bool rival_add(struct map_guess *g, const struct fitting *f, size_t i, size_t enough)
{
	if (!guess_add(g, f, i)) {
		guess_clear(g, g->scaled);
		guess_add(g, f, i);
	}
	return g->count >= enough;
}

/*
 * How far one guess holds from pair @from on. It ends before the first of some consecutive pairs
 * that agree with each other and not with it.
 */
static struct stretch reach(struct fitting *f, size_t from, bool scaled)
{
	struct stretch s = { from, 0, 0 };
	u64 off = 0;
	size_t i;

	guess_clear(&f->now, scaled);
	guess_clear(&f->next, false);
	guess_clear(&f->next_line, true);
	for (i = from; i < f->n; i++) {
		if (guess_add(&f->now, f, i)) {
			s.fit += f->pairs[i].weight;
			s.off += off;
			off = 0;
			guess_clear(&f->next, false);
			guess_clear(&f->next_line, true);
			continue;
		}
		off += f->pairs[i].weight;
		if (rival_add(&f->next, f, i, VMPT_FIT_AGREE)) {
			s.end = f->next.first;
			return s;
		}
		if (rival_add(&f->next_line, f, i, AGREE_LINE)) {
			s.end = f->next_line.first;
			return s;
		}
	}
	s.end = f->n;
	s.off += off;
	return s;
}

static bool plausible(const struct map_guess *g)
{
	double flat, steep;

	if (!vmpt_fit_line_slopes(&g->line, &flat, &steep))
		return false;
	return steep > 1 / RATIO_MAX && flat < RATIO_MAX;
}

/* Choose between slope 1 and any slope for the stretch that begins at pair @from. */
static struct stretch choose(struct fitting *f, size_t from, bool *scaled)
{
	struct stretch one = reach(f, from, false), any, two = { 0 };

	*scaled = false;
	if (one.end == f->n && !one.off)
		return one;
	any = reach(f, from, true);
	if (any.fit <= one.fit || f->now.count < LINE_LEAST || !plausible(&f->now))
		return one;
	/* A change of offset is more likely than another clock, if it explains as much. */
	if (one.end < f->n)
		two = reach(f, one.end, false);
	if (any.fit < one.fit + two.fit)
		return one;
	*scaled = true;
	return any;
}

/* ---- an epoch's figures ---- */

static u64 ticks(double error)
{
	return error < 0 ? 0 : error > 1e18 ? ~0ULL : (u64)error + 1;
}

/* Slope 1; the line only gives its uncertainty. */
static void set_unscaled(struct vmpt_epoch *e, const struct map_guess *g,
			 const struct map_guess *line)
{
	u64 width = (u64)(g->hi - g->lo);
	double flat, steep;

	e->map.multiplier = VMPT_TSC_UNSCALED;
	/* guest - host, in the middle */
	e->map.offset = g->guest - g->host - (u64)(g->lo + (s64)(width / 2));
	e->map.offset = (u64)signed56(e->map.offset);
	e->offset_error = g->lo == -OPEN || g->hi == OPEN ? ~0ULL : width - width / 2;
	e->multiplier_ppm = -1;
	if (!vmpt_fit_line_slopes(&line->line, &flat, &steep) || flat <= 0)
		return;
	flat = 1e6 * (flat < 1 ? 1 / flat - 1 : 1 - 1 / flat);
	steep = 1e6 * (steep > 1 ? 1 - 1 / steep : 1 / steep - 1);
	e->multiplier_ppm = flat > steep ? flat : steep;
}

/* The line is host over guest: the multiplier is 1 / its slope. */
static void set_scaled(struct vmpt_epoch *e, const struct map_guess *g)
{
	s64 middle = g->line.last / 2;
	double slope, y, flat, steep, lo, hi, error;
	u64 host, product;

	vmpt_fit_line_slopes(&g->line, &flat, &steep);
	/* choose() made sure that part of the range is above this. */
	flat = flat > 1 / RATIO_MAX ? flat : 1 / RATIO_MAX;
	steep = steep < RATIO_MAX ? steep : RATIO_MAX;
	slope = (flat + steep) / 2;
	vmpt_fit_line_at(&g->line, middle, &lo, &hi);
	y = (lo + hi) / 2;
	/* Segments are widened by the slack on both sides; rounding is to one side. */
	y -= (slope - 1) / 2;
	e->scaled = true;
	e->map.multiplier = (u64)((double)VMPT_TSC_UNSCALED / slope + 0.5);
	host = g->host + (u64)(s64)y;
	product = (u64)((unsigned __int128)host * e->map.multiplier >> 48);
	e->map.offset = g->guest + (u64)middle - product;
	e->map.offset = (u64)signed56(e->map.offset);
	vmpt_fit_line_at(&g->line, 0, &lo, &hi);
	error = hi - lo;
	vmpt_fit_line_at(&g->line, g->line.last, &lo, &hi);
	error = hi - lo > error ? hi - lo : error;
	e->offset_error = ticks(error / 2 / slope + 1);
	e->multiplier_ppm = 1e6 * (steep - flat) / 2 / slope;
}

u64 vmpt_fit_off(const struct vmpt_tsc_map *map, const struct vmpt_tsc_pair *p)
{
	u64 at = (u64)((unsigned __int128)p->host.tsc * map->multiplier >> 48) + map->offset;
	/* The host's time by the map, relative to the pair's. */
	double scale = (double)VMPT_TSC_UNSCALED / (double)map->multiplier;
	double off = (double)signed56(p->guest - at) * scale;
	double early = p->host.early == VMPT_TIME_OPEN ? 1e18 : (double)p->host.early + LINE_SLACK;
	double late = p->host.late == VMPT_TIME_OPEN ? 1e18 : (double)p->host.late + LINE_SLACK;

	if (off < -early)
		return ticks(-off - early);
	return off > late ? ticks(off - late) : 0;
}

/* ---- all epochs ---- */

/* An epoch under construction: pairs [start, end) except outliers. */
struct part {
	size_t start, end;
	size_t first, last; /* pairs that agree */
	bool scaled;
	struct vmpt_epoch epoch;
};

/* Slope 1 if it fits with a little more slack. */
static bool snap(struct map_guess *g)
{
	double flat, steep, lo, hi;
	s64 middle = g->line.last / 2;

	if (!vmpt_fit_line_slopes(&g->line, &flat, &steep) || flat > 1 || steep < 1)
		return false;
	vmpt_fit_line_at(&g->line, middle, &lo, &hi);
	g->lo = (s64)lo - middle;
	g->hi = (s64)hi - middle + 1;
	return true;
}

static void add_pair(struct part *part, const struct vmpt_fit_pair *p, size_t i)
{
	part->epoch.pairs += p->weight;
	part->first = part->first < i ? part->first : i;
	part->last = part->last > i ? part->last : i;
}

/* Fit the part's pairs once more and fill in the result. */
static void finish(struct fitting *f, struct part *part)
{
	struct vmpt_epoch *e = &part->epoch;
	size_t i;

	*e = (struct vmpt_epoch){ .source = VMPT_MAP_INFERRED };
	part->first = part->end;
	part->last = part->start;
	guess_clear(&f->now, part->scaled);
	guess_clear(&f->next_line, true);
	for (i = part->start; i < part->end; i++) {
		if (!guess_add(&f->now, f, i)) {
			e->outliers += f->pairs[i].weight;
			continue;
		}
		if (!part->scaled)
			guess_add(&f->next_line, f, i);
		add_pair(part, &f->pairs[i], i);
	}
	if (!part->scaled)
		set_unscaled(e, &f->now, &f->next_line);
	else if (snap(&f->now))
		set_unscaled(e, &f->now, &f->now);
	else
		set_scaled(e, &f->now);
}

static bool agrees(const struct part *part, const struct vmpt_fit_pair *p)
{
	return !vmpt_fit_off(&part->epoch.map, &p->pair);
}

/*
 * Pairs before those that made the part begin: the change is at the first that fits it, after the
 * last that fits the part before (@old, or NULL).
 */
static void take_strays(const struct fitting *f, struct part *old, struct part *part)
{
	size_t from = old ? old->last + 1 : 0, i, first = part->start;

	for (i = part->start; i > from && part->start - i < 4096; i--)
		if (agrees(part, &f->pairs[i - 1]))
			first = i - 1;
	for (i = from; i < part->start; i++) {
		const struct vmpt_fit_pair *p = &f->pairs[i];

		if (i < first)
			continue;
		if (old && i < old->end)
			old->epoch.outliers -= p->weight;
		if (agrees(part, p))
			add_pair(part, p, i);
		else
			part->epoch.outliers += p->weight;
	}
	/* Before it and in no part: they count for none. */
	for (i = old ? old->end : 0; i < first; i++)
		(old ? &old->epoch : &part->epoch)->outliers += f->pairs[i].weight;
}

/* The times of the parts; a change is between two runs of the guest if the pairs allow it. */
static void set_times(const struct fitting *f, struct part *part, size_t parts)
{
	size_t i;

	for (i = 0; i < parts; i++) {
		const struct vmpt_fit_pair *first = &f->pairs[part[i].first];
		const struct vmpt_fit_pair *last = &f->pairs[part[i].last];
		struct vmpt_epoch *e = &part[i].epoch;
		u64 before = i ? f->pairs[part[i - 1].last].pair.host.tsc : 0;

		e->from = first->run_from <= first->pair.host.tsc ? first->run_from
								  : first->pair.host.tsc;
		if (i && e->from <= before)
			e->from = first->pair.host.tsc;
		e->to = last->run_to >= last->pair.host.tsc ? last->run_to : last->pair.host.tsc;
		e->to = e->to < e->from ? e->from : e->to;
		if (i && part[i - 1].epoch.to >= e->from)
			part[i - 1].epoch.to = e->from > part[i - 1].epoch.from
						       ? e->from - 1
						       : part[i - 1].epoch.from;
	}
}

/* Find the limits of epochs. Too few pairs make none, unless there is nothing else. */
static size_t find_parts(struct fitting *f, struct part *part)
{
	size_t parts = 0, at = 0;
	struct stretch s = { 0 };
	u64 least = VMPT_FIT_AGREE;

	while (at < f->n && parts < VMPT_FIT_EPOCHS) {
		part[parts].start = at;
		s = choose(f, at, &part[parts].scaled);
		part[parts].end = at = s.end;
		if (s.fit >= least || (at == f->n && !parts))
			parts++;
	}
	return parts;
}

/* After the last epoch that there is room for nothing is known. */
static void add_unknown(const struct fitting *f, struct vmpt_fit *fit, size_t from)
{
	struct vmpt_epoch *e = &fit->epochs[fit->count];

	*e = (struct vmpt_epoch){
		.from = f->pairs[from].pair.host.tsc,
		.to = f->pairs[f->n - 1].pair.host.tsc,
		.offset_error = ~0ULL,
		.multiplier_ppm = -1,
	};
	for (; from < f->n; from++)
		e->outliers += f->pairs[from].weight;
	fit->count++;
}

static int fit_all(struct fitting *f, struct vmpt_fit *fit)
{
	struct part *part = calloc(VMPT_FIT_EPOCHS + 1, sizeof(*part));
	size_t parts, i;

	if (!part)
		return -VMPT_E_NOMEM;
	parts = find_parts(f, part);
	for (i = 0; i < parts; i++) {
		finish(f, &part[i]);
		take_strays(f, i ? &part[i - 1] : NULL, &part[i]);
	}
	set_times(f, part, parts);
	fit->epochs = calloc(parts + 1, sizeof(*fit->epochs));
	if (fit->epochs) {
		for (i = 0; i < parts; i++)
			fit->epochs[i] = part[i].epoch;
		fit->count = parts;
		if (parts == VMPT_FIT_EPOCHS && part[parts - 1].end < f->n)
			add_unknown(f, fit, part[parts - 1].end);
	}
	free(part);
	return fit->epochs ? 0 : -VMPT_E_NOMEM;
}

static int fitting_init(struct fitting *f, const struct vmpt_fit_pair *pairs, size_t n)
{
	*f = (struct fitting){ .pairs = pairs, .n = n };
	return vmpt_fit_line_init(&f->now.line, n) || vmpt_fit_line_init(&f->next_line.line, n)
		       ? -VMPT_E_NOMEM
		       : 0;
}

static void fitting_free(struct fitting *f)
{
	vmpt_fit_line_free(&f->now.line);
	vmpt_fit_line_free(&f->next_line.line);
}

int vmpt_fit_epochs(struct vmpt_fit *fit, const struct vmpt_fit_pair *pairs, size_t n)
{
	struct fitting f;
	int err = 0;

	*fit = (struct vmpt_fit){ 0 };
	if (!n)
		return 0;
	err = fitting_init(&f, pairs, n);
	if (!err)
		err = fit_all(&f, fit);
	fitting_free(&f);
	return err;
}

/* ---- thinning ---- */

static void keep_hull(const struct vmpt_fit_line_hull *hull, bool *keep)
{
	size_t i;

	for (i = hull->start; i < hull->end; i++)
		keep[hull->at[i].tag] = true;
}

/* Which pairs to keep: the ends of each stretch, and those that a line through it can touch. */
static void mark(struct fitting *f, bool *keep)
{
	size_t i;

	guess_clear(&f->now, true);
	for (i = 0; i <= f->n; i++) {
		if (i < f->n && guess_add(&f->now, f, i))
			continue;
		if (i)
			keep[i - 1] = true;
		keep_hull(&f->now.line.upper, keep);
		keep_hull(&f->now.line.lower, keep);
		if (i == f->n)
			break;
		guess_clear(&f->now, true);
		guess_add(&f->now, f, i);
		keep[i] = true;
	}
}

long vmpt_fit_thin(struct vmpt_fit_pair *pairs, size_t n)
{
	bool *keep = calloc(n + 1, sizeof(*keep));
	struct fitting f;
	size_t i, left = 0;
	u32 weight = 0;
	int err = fitting_init(&f, pairs, n);

	if (!keep || err) {
		free(keep);
		fitting_free(&f);
		return -VMPT_E_NOMEM;
	}
	keep[0] = true;
	mark(&f, keep);
	for (i = 0; i < n; i++) {
		weight += pairs[i].weight;
		if (!keep[i])
			continue;
		pairs[left] = pairs[i];
		pairs[left++].weight = weight;
		weight = 0;
	}
	free(keep);
	fitting_free(&f);
	return (long)left;
}
