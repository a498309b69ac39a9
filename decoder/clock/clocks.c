// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * A whole trace's clocks (docs/time.md). Streams are walked without any map, given or not: in a
 * stream with TSC packets of the host, guests' packets are measured by those, so that given maps
 * can be proved wrong. Streams without any (guest-only tracing) are walked again with the maps
 * known by then: a guest with a known map replaces the host, and others are measured by it.
 */
#include <stdlib.h>
#include <string.h>

#include "decoder/clock/clocks.h"
#include "decoder/parallel/parallel.h"

/* Walks over streams without TSCs of the host: each may make VMCSs known for the next. */
#define WALKS 4

struct vmpt_clocks {
	const struct vmpt_stream *const *streams;
	size_t count;
	struct vmpt_clocks_options options;
	struct vmpt_given *given; /* options.given, sorted */
	struct vmpt_rates rates;
	struct vmpt_rates_wrong rates_wrong;
	enum vmpt_time_base base;
	u64 base_vmcs;
	struct vmpt_clock_counts *counts; /* by stream */
	struct vmpt_epoch_table table;
	struct vmpt_given_list wrong;
};

/* Streams being walked. */
struct walks {
	struct vmpt_clocks *clocks;
	struct vmpt_pairs *pairs; /* by stream */
	bool *wanted;		  /* by stream: walk it */
	int *err;
	size_t *job; /* streams by slot of the pool */
	unsigned int inner;
	bool mapped; /* the clocks know the maps found so far */
};

static const struct vmpt_epoch *find_map(void *opaque, u64 vmcs, u64 near)
{
	const struct vmpt_clocks *c = opaque;

	return vmpt_epoch_table_at(&c->table, vmcs, near);
}

/* ---- walks ---- */

static void run_walk(void *owner, unsigned int slot, unsigned int worker)
{
	struct walks *w = owner;
	struct vmpt_clocks *c = w->clocks;
	size_t i = w->job[slot];
	struct vmpt_options decode = c->options.decode;
	struct vmpt_clock_options options;

	(void)worker;
	vmpt_clocks_clock_options(c, i, &options);
	if (!w->mapped)
		options.map = NULL;
	decode.threads = w->inner;
	/* The caller's progress callback is for one thread. */
	decode.progress = NULL;
	w->err[i] = vmpt_pairs_collect(&w->pairs[i], c->streams[i], (u32)i, &decode, &options,
				       VMPT_CLOCKS_PAIRS);
}

/* Walk the wanted streams; earlier results of them are dropped. */
static int walk(struct walks *w)
{
	struct vmpt_clocks *c = w->clocks;
	unsigned int threads = c->options.decode.threads ? c->options.decode.threads : 1;
	unsigned int workers, slots;
	struct vmpt_pool *pool;
	size_t i, todo = 0;
	int slot, err;

	for (i = 0; i < c->count; i++)
		todo += w->wanted[i];
	if (!todo)
		return 0;
	workers = threads < todo ? threads : (unsigned int)todo;
	slots = 2 * workers;
	w->inner = threads / workers;
	w->job = calloc(slots, sizeof(*w->job));
	if (!w->job)
		return -VMPT_E_NOMEM;
	err = vmpt_pool_open(&pool, workers, slots, run_walk, w);
	for (i = 0; !err && i < c->count; i++) {
		if (!w->wanted[i])
			continue;
		vmpt_pairs_free(&w->pairs[i]);
		while ((slot = vmpt_pool_free_slot(pool)) < 0) {
			vmpt_pool_take(pool);
			vmpt_pool_drop(pool);
		}
		w->job[slot] = i;
		vmpt_pool_put(pool);
	}
	while (!err && vmpt_pool_take(pool) >= 0)
		vmpt_pool_drop(pool);
	if (!err)
		vmpt_pool_close(pool);
	free(w->job);
	for (i = 0; !err && i < c->count; i++)
		err = w->err[i];
	return err;
}

/* ---- from pairs to epochs ---- */

/* Pairs of all streams, sorted. */
static int gather(const struct walks *w, struct vmpt_fit_pair **all, size_t *count)
{
	size_t i, n = 0;

	for (i = 0; i < w->clocks->count; i++)
		n += w->pairs[i].count;
	*all = calloc(n + 1, sizeof(**all));
	if (!*all)
		return -VMPT_E_NOMEM;
	*count = 0;
	for (i = 0; i < w->clocks->count; i++) {
		if (w->pairs[i].count)
			memcpy(*all + *count, w->pairs[i].at, w->pairs[i].count * sizeof(**all));
		*count += w->pairs[i].count;
	}
	qsort(*all, n, sizeof(**all), vmpt_fit_compare);
	return 0;
}

/* Set the VMCS's epochs, unless it has some already. */
static int set_epochs(struct vmpt_clocks *c, u64 vmcs, const struct vmpt_fit_pair *pairs, size_t n)
{
	struct vmpt_vmcs_map *map = vmpt_epoch_table_find(&c->table, vmcs);
	struct vmpt_fit fit;
	int err;

	if (!map || map->count)
		return 0;
	err = vmpt_fit_epochs(&fit, pairs, n);
	map->epochs = fit.epochs;
	map->count = fit.count;
	return err ? err
		   : vmpt_given_weigh(map, c->given, c->options.given_count, pairs, n, &c->wrong);
}

static int fit_pairs(struct walks *w)
{
	struct vmpt_clocks *c = w->clocks;
	struct vmpt_fit_pair *all;
	size_t n, i, k;
	int err = gather(w, &all, &n);

	for (i = 0; !err && i < n; i += k) {
		for (k = 1; i + k < n && all[i + k].pair.vmcs == all[i].pair.vmcs; k++)
			;
		err = set_epochs(c, all[i].pair.vmcs, all + i, k);
	}
	free(all);
	return err;
}

/* Take given maps of VMCSs without any pair. */
static int take_given(struct vmpt_clocks *c)
{
	size_t i;
	int err = 0;

	for (i = 0; i < c->table.count && !err; i++)
		if (!c->table.map[i].count)
			err = vmpt_given_weigh(&c->table.map[i], c->given, c->options.given_count,
					       NULL, 0, &c->wrong);
	return err;
}

/* ---- the steps in order ---- */

static int make_table(struct walks *w)
{
	struct vmpt_clocks *c = w->clocks;
	struct vmpt_vmcs_map *map;
	size_t i, k;

	for (i = 0; i < c->options.given_count; i++)
		vmpt_epoch_table_add(&c->table, c->options.given[i].vmcs);
	for (i = 0; i < c->count; i++) {
		for (k = 0; k < w->pairs[i].vmcss; k++) {
			map = vmpt_epoch_table_add(&c->table, w->pairs[i].vmcs[k].vmcs);
			if (map)
				map->tscs += w->pairs[i].vmcs[k].tscs;
		}
	}
	return vmpt_epoch_table_index(&c->table);
}

static bool has_host_tsc(const struct vmpt_pairs *p)
{
	return p->counts.tscs > p->counts.guest_tscs;
}

/* No TSC of the host and no map: the guest with most TSC packets replaces the host. */
static int set_base(struct walks *w)
{
	struct vmpt_clocks *c = w->clocks;
	struct vmpt_vmcs_map *best = NULL;
	size_t i;

	c->base = VMPT_BASE_HOST;
	for (i = 0; i < c->count; i++)
		if (has_host_tsc(&w->pairs[i]))
			return 0;
	for (i = 0; i < c->table.count; i++) {
		if (c->table.map[i].count)
			return 0;
		if (c->table.map[i].tscs && (!best || c->table.map[i].tscs > best->tscs))
			best = &c->table.map[i];
	}
	c->base = best ? VMPT_BASE_GUEST : VMPT_BASE_NONE;
	if (!best)
		return 0;
	c->base_vmcs = best->vmcs;
	best->epochs = calloc(1, sizeof(*best->epochs));
	if (!best->epochs)
		return -VMPT_E_NOMEM;
	best->count = 1;
	best->epochs[0] = (struct vmpt_epoch){
		.to = ~0ULL,
		.map.multiplier = VMPT_TSC_UNSCALED,
		.source = VMPT_MAP_INFERRED,
	};
	return 0;
}

static size_t known_vmcss(const struct vmpt_clocks *c)
{
	size_t i, n = 0;

	for (i = 0; i < c->table.count; i++)
		n += c->table.map[i].count > 0;
	return n;
}

/* Whether a guest of the stream has TSC packets and no map, and another one has a map. */
static bool can_measure(const struct vmpt_clocks *c, const struct vmpt_pairs *p)
{
	bool known = false, unknown = false;
	size_t i;

	for (i = 0; i < p->vmcss; i++) {
		const struct vmpt_vmcs_map *map = vmpt_epoch_table_find(&c->table, p->vmcs[i].vmcs);

		if (map && map->count)
			known = true;
		else if (map)
			unknown = true;
	}
	return known && unknown;
}

/* Streams without a TSC of the host: by the guests whose map is known. */
static int walk_hostless(struct walks *w)
{
	struct vmpt_clocks *c = w->clocks;
	size_t known = 0, i;
	int round, err = 0;

	w->mapped = true;
	for (round = 1; round < WALKS && !err && known != known_vmcss(c); round++) {
		known = known_vmcss(c);
		for (i = 0; i < c->count; i++)
			w->wanted[i] = !has_host_tsc(&w->pairs[i]) && can_measure(c, &w->pairs[i]);
		err = walk(w);
		if (!err)
			err = fit_pairs(w);
	}
	return err;
}

/* Counts that the last walk did not know. */
static void set_counts(struct walks *w)
{
	struct vmpt_clocks *c = w->clocks;
	const struct vmpt_vmcs_map *map;
	size_t i, k;

	for (i = 0; i < c->count; i++) {
		const struct vmpt_pairs *p = &w->pairs[i];

		c->counts[i] = p->counts;
		c->counts[i].unmapped = p->counts.guest_tscs;
		for (k = 0; k < p->vmcss; k++) {
			map = vmpt_epoch_table_find(&c->table, p->vmcs[k].vmcs);
			if (map && map->count)
				c->counts[i].unmapped -= p->vmcs[k].tscs;
		}
	}
}

static int find_rates(struct vmpt_clocks *c)
{
	size_t i;
	int ret = 0;

	for (i = 0; i < c->count && ret == 0; i++)
		ret = vmpt_rates_check(&c->rates, c->streams[i], &c->options.decode,
				       &c->rates_wrong);
	return ret < 0 ? ret : 0;
}

static int open_pt(struct vmpt_clocks *c)
{
	struct walks w = { .clocks = c };
	size_t i;
	int err = -VMPT_E_NOMEM;

	w.pairs = calloc(c->count, sizeof(*w.pairs));
	w.wanted = calloc(c->count, sizeof(*w.wanted));
	w.err = calloc(c->count, sizeof(*w.err));
	if (w.pairs && w.wanted && w.err) {
		memset(w.wanted, true, c->count * sizeof(*w.wanted));
		err = find_rates(c);
		if (!err)
			err = walk(&w);
		if (!err)
			err = make_table(&w);
		if (!err)
			err = fit_pairs(&w);
		if (!err)
			err = take_given(c);
		if (!err)
			err = set_base(&w);
		if (!err)
			err = walk_hostless(&w);
		if (!err)
			set_counts(&w);
	}
	for (i = 0; w.pairs && i < c->count; i++)
		vmpt_pairs_free(&w.pairs[i]);
	free(w.pairs);
	free(w.wanted);
	free(w.err);
	return err;
}

static bool options_fit(const struct vmpt_stream *const *streams, size_t count,
			const struct vmpt_clocks_options *options)
{
	size_t i;

	for (i = 0; i < options->given_count; i++)
		if (!options->given[i].map.multiplier ||
		    options->given[i].source == VMPT_MAP_NONE ||
		    options->given[i].source > VMPT_MAP_USER)
			return false;
	for (i = 1; i < count; i++)
		if (streams[i]->isa != streams[0]->isa)
			return false;
	return count;
}

int vmpt_clocks_open_abi(struct vmpt_clocks **clocks, const struct vmpt_stream *const *streams,
			 size_t count, const struct vmpt_clocks_options *options, u64 abi)
{
	static const struct vmpt_clocks_options defaults;
	struct vmpt_clocks *c;
	int err = 0;

	if (abi != VMPT_CLOCK_ABI)
		return -VMPT_E_VERSION;
	*clocks = NULL;
	if (!options)
		options = &defaults;
	if (!options_fit(streams, count, options))
		return -VMPT_E_INVAL;
	c = calloc(1, sizeof(*c));
	if (!c)
		return -VMPT_E_NOMEM;
	c->streams = streams;
	c->count = count;
	c->options = *options;
	c->rates = options->rates;
	c->base = VMPT_BASE_HOST;
	c->counts = calloc(count, sizeof(*c->counts));
	if (!c->counts || vmpt_given_sort(options->given, options->given_count, &c->given))
		err = -VMPT_E_NOMEM;
	if (!err && streams[0]->isa != VMPT_ISA_RTIT)
		err = open_pt(c);
	if (err) {
		vmpt_clocks_close(c);
		return err;
	}
	*clocks = c;
	return 0;
}

void vmpt_clocks_close(struct vmpt_clocks *c)
{
	if (!c)
		return;
	vmpt_epoch_table_free(&c->table);
	free(c->given);
	free(c->wrong.at);
	free(c->counts);
	free(c);
}

/* ---- results ---- */

void vmpt_clocks_clock_options(const struct vmpt_clocks *c, size_t stream,
			       struct vmpt_clock_options *options)
{
	(void)stream;
	*options = (struct vmpt_clock_options){
		.rates = c->rates,
		.map = find_map,
		.map_opaque = (void *)c,
		.near_tsc = c->options.near_tsc,
	};
}

const struct vmpt_stream *vmpt_clocks_stream(const struct vmpt_clocks *c, size_t stream)
{
	return stream < c->count ? c->streams[stream] : NULL;
}

enum vmpt_time_base vmpt_clocks_base(const struct vmpt_clocks *c)
{
	return c->base;
}

u64 vmpt_clocks_base_vmcs(const struct vmpt_clocks *c)
{
	return c->base_vmcs;
}

const struct vmpt_rates *vmpt_clocks_rates(const struct vmpt_clocks *c)
{
	return &c->rates;
}

const struct vmpt_rates_wrong *vmpt_clocks_rates_wrong(const struct vmpt_clocks *c)
{
	return c->rates_wrong.tsc_ratio || c->rates_wrong.mtc_freq ? &c->rates_wrong : NULL;
}

const struct vmpt_clock_counts *vmpt_clocks_counts(const struct vmpt_clocks *c, size_t stream)
{
	return stream < c->count ? &c->counts[stream] : NULL;
}

size_t vmpt_clocks_vmcs_count(const struct vmpt_clocks *c)
{
	return c->table.count;
}

u64 vmpt_clocks_vmcs(const struct vmpt_clocks *c, size_t i)
{
	return i < c->table.count ? c->table.map[i].vmcs : 0;
}

u64 vmpt_clocks_vmcs_tscs(const struct vmpt_clocks *c, size_t i)
{
	return i < c->table.count ? c->table.map[i].tscs : 0;
}

const struct vmpt_epoch *vmpt_clocks_epochs(const struct vmpt_clocks *c, size_t i, size_t *count)
{
	*count = i < c->table.count ? c->table.map[i].count : 0;
	return *count ? c->table.map[i].epochs : NULL;
}

const struct vmpt_given_wrong *vmpt_clocks_wrong(const struct vmpt_clocks *c, size_t *count)
{
	*count = c->wrong.count;
	return c->wrong.at;
}

const struct vmpt_epoch *vmpt_clocks_at(const struct vmpt_clocks *c, u64 vmcs, u64 at)
{
	return vmpt_epoch_table_at(&c->table, vmcs, at);
}
