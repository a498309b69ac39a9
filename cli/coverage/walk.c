// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The flow of each stream, counted by its blocks. Without edges and times the decoder itself
 * counts, at full speed; else its blocks are walked.
 */
#include <stdlib.h>

#include "cli/coverage/coverage.h"
#include "util/array.h"

/* Where a block was followed by which: two successors of each are at hand. */
struct successors {
	u32 block[2]; /* COVERAGE_NONE: none */
	u32 pair[2];
};

struct pair {
	u32 from, to; /* blocks */
	u64 count;
};

/* A stream. */
struct walk {
	struct cli *cli;
	struct coverage *d;
	struct vmpt_flow *flow;
	size_t stream;
	u32 *space; /* of the flow's spaces; COVERAGE_NONE: not wanted */
	/* Of runs, where the decoder does not count */
	bool counts;
	u64 *whole;
	size_t wholes;
	struct vmpt_flow_left *left; /* by block */
	size_t lefts;
	struct vmpt_hash left_of;
	/* Edges */
	struct successors *after;
	size_t afters;
	struct pair *pair;
	size_t pairs;
	struct vmpt_hash pair_of;
	u32 last; /* the block before, of which the branch was executed; COVERAGE_NONE */
};

/* ---- edges ---- */

static u32 find_pair(struct walk *w, u32 from, u32 to)
{
	u64 hash = vmpt_mix64(w->d->seed ^ from ^ (u64)to << 32);
	u32 n = vmpt_hash_find(&w->pair_of, hash, i,
			       w->pair[i].from == from && w->pair[i].to == to);

	if (n != VMPT_HASH_NONE)
		return n;
	n = (u32)w->pairs;
	if (n >= VMPT_HASH_ENTRIES || vmpt_grow(&w->pair, w->pairs) ||
	    vmpt_hash_add(&w->pair_of, hash, n))
		return COVERAGE_NONE;
	w->pair[w->pairs++] = (struct pair){ .from = from, .to = to };
	return n;
}

/* The slower half: a block that was not there, or another successor. */
static int count_new_pair(struct walk *w, u32 from, u32 to)
{
	size_t i = w->afters;
	struct successors *s;
	u32 n;

	if (vmpt_reserve(&w->after, &w->afters, from + (size_t)1))
		return -VMPT_E_NOMEM;
	for (; i < w->afters; i++)
		w->after[i] = (struct successors){ { COVERAGE_NONE, COVERAGE_NONE }, { 0, 0 } };
	n = find_pair(w, from, to);
	if (n == COVERAGE_NONE)
		return -VMPT_E_NOMEM;
	w->pair[n].count++;
	s = &w->after[from];
	s->block[1] = s->block[0];
	s->pair[1] = s->pair[0];
	s->block[0] = to;
	s->pair[0] = n;
	return 0;
}

static inline int count_pair(struct walk *w, u32 from, u32 to)
{
	const struct successors *s = &w->after[from];

	if (from < w->afters && s->block[0] == to)
		w->pair[s->pair[0]].count++;
	else if (from < w->afters && s->block[1] == to)
		w->pair[s->pair[1]].count++;
	else
		return count_new_pair(w, from, to);
	return 0;
}

static int take_edges(struct walk *w, const struct vmpt_flow_batch *b)
{
	struct vmpt_flow_block block;
	u32 from = w->last;
	size_t i;
	int ret = 0;

	if (from != COVERAGE_NONE)
		ret = count_pair(w, from, b->blocks[0]);
	for (i = 1; i < b->count && !ret; i++)
		ret = count_pair(w, b->blocks[i - 1], b->blocks[i]);
	w->last = b->blocks[b->count - 1];
	vmpt_flow_block(w->flow, w->last, &block);
	if (b->last < block.instructions)
		w->last = COVERAGE_NONE;
	return ret;
}

/* Whether the branch of @from leads to @ip. */
static bool leads_to(const struct vmpt_flow_block *from, u64 ip)
{
	switch (from->end) {
	case VMPT_FLOW_COND:
		return ip == from->target || ip == from->next;
	case VMPT_FLOW_JMP:
	case VMPT_FLOW_CALL:
		return ip == from->target;
	default:
		return from->end != VMPT_FLOW_NEXT && from->end != VMPT_FLOW_MOV_CR3;
	}
}

/* An edge to @ip, where the flow went by the branch of block @id @count times. */
static int add_edge(struct walk *w, u32 id, u64 ip, u64 count)
{
	struct vmpt_flow_block from;
	struct vmpt_space space;
	u32 n;

	vmpt_flow_block(w->flow, id, &from);
	vmpt_flow_space(w->flow, from.space, &space, NULL);
	if (!leads_to(&from, ip) || !traced_wanted(w->cli, &space))
		return 0;
	n = coverage_space(w->d, &space);
	if (n == COVERAGE_NONE)
		return -VMPT_E_NOMEM;
	return coverage_add_edge(w->d, &(struct coverage_edge){ .from = from.end_ip,
								.to = ip,
								.count = count,
								.space = n,
								.end = from.end });
}

/* An event, or the end of tracing, before the first instruction after a branch: it had led there.
 */
static int take_event(struct walk *w, const struct vmpt_flow_batch *b)
{
	u32 from = w->last;

	w->last = COVERAGE_NONE;
	if (from == COVERAGE_NONE || !b->ip || !w->d->with_edges ||
	    (b->kind != VMPT_FLOW_EVENT && b->kind != VMPT_FLOW_OFF))
		return 0;
	return add_edge(w, from, b->ip, 1);
}

/* ---- counts ---- */

static int count_left(struct walk *w, u32 id, u32 n)
{
	u64 hash = vmpt_mix64(w->d->seed ^ id ^ (u64)n << 32);
	u32 k = vmpt_hash_find(&w->left_of, hash, i,
			       w->left[i].block == id && w->left[i].instructions == n);

	if (k == VMPT_HASH_NONE) {
		k = (u32)w->lefts;
		if (vmpt_grow(&w->left, w->lefts) || vmpt_hash_add(&w->left_of, hash, k))
			return -VMPT_E_NOMEM;
		w->left[w->lefts++] = (struct vmpt_flow_left){ .block = id, .instructions = n };
	}
	w->left[k].count++;
	return 0;
}

static int take_counts(struct walk *w, const struct vmpt_flow_batch *b)
{
	struct vmpt_flow_block block;
	size_t i;
	u32 id;

	if (vmpt_reserve_zeroed(&w->whole, &w->wholes, vmpt_flow_blocks(w->flow) + (size_t)1))
		return -VMPT_E_NOMEM;
	for (i = 0; i + 1 < b->count; i++)
		w->whole[b->blocks[i]]++;
	id = b->blocks[i];
	vmpt_flow_block(w->flow, id, &block);
	if (b->last < block.instructions)
		return count_left(w, id, b->last);
	w->whole[id]++;
	return 0;
}

static int take_gap(struct walk *w, const struct vmpt_flow_batch *b)
{
	const bool space = b->space < vmpt_flow_spaces(w->flow);
	struct vmpt_space s;

	if (space) {
		vmpt_flow_space(w->flow, b->space, &s, NULL);
		if (!traced_wanted(w->cli, &s))
			return 0;
	} else if (cli_filter_owners(w->cli) || cli_filter(w->cli)->cr3s) {
		return 0;
	}
	w->d->total.gaps[b->reason]++;
	traced_note_gap(&w->d->t, w->flow, b, w->stream);
	return 0;
}

static int take(struct walk *w, const struct vmpt_flow_batch *b)
{
	int ret = 0;

	if (b->kind != VMPT_FLOW_BLOCKS) {
		ret = take_event(w, b);
		return ret || b->kind != VMPT_FLOW_GAP ? ret : take_gap(w, b);
	}
	if (w->counts)
		ret = take_counts(w, b);
	if (!ret && w->d->with_edges)
		ret = take_edges(w, b);
	return ret;
}

static int follow(struct walk *w)
{
	struct traced_time time = { 0 };
	struct vmpt_flow_batch batch;
	int ret = 0;

	if (w->counts)
		ret = traced_time_open(w->cli, &w->d->t, w->stream, &time);
	while (!ret && (ret = vmpt_flow_next(w->flow, &batch)) > 0) {
		ret = w->counts ? traced_time_to(&time, batch.offset) : 0;
		if (ret)
			break;
		if (w->counts && !cli_filter_time(w->cli, time.tsc))
			w->last = COVERAGE_NONE;
		else
			ret = take(w, &batch);
	}
	traced_time_close(&time);
	return ret;
}

/* ---- what a stream has, added to all ---- */

/* Runs that were left, by block, those of other flows' numbers aside. */
static int by_block(const void *x, const void *y)
{
	const struct vmpt_flow_left *a = x, *b = y;

	if (a->block != b->block)
		return a->block < b->block ? -1 : 1;
	return a->instructions < b->instructions ? -1 : a->instructions > b->instructions;
}

static int list_lefts(struct walk *w)
{
	struct vmpt_flow_left left;
	u32 i;

	for (i = 0; !w->counts && vmpt_flow_left(w->flow, i, &left); i++) {
		if (vmpt_grow(&w->left, w->lefts))
			return -VMPT_E_NOMEM;
		w->left[w->lefts++] = left;
	}
	if (w->lefts)
		qsort(w->left, w->lefts, sizeof(*w->left), by_block);
	return 0;
}

static void add_total(struct coverage *d, const struct vmpt_flow_block *b, u64 whole, u64 more)
{
	struct vmpt_flow_counts *c = &d->total;

	c->instructions += whole * b->instructions + more;
	if (b->end != VMPT_FLOW_NEXT && b->end != VMPT_FLOW_MOV_CR3)
		c->branches += whole;
	if (b->end == VMPT_FLOW_CALL || b->end == VMPT_FLOW_CALL_IND)
		c->calls += whole;
}

static int add_blocks(struct walk *w)
{
	struct coverage_runs runs = { .left = w->left };
	const struct vmpt_flow_left *end = w->left + w->lefts, *l;
	struct vmpt_flow_block block;
	u32 id, n = vmpt_flow_blocks(w->flow);
	u64 more;
	int ret = 0;

	for (id = 0; id < n && !ret; id++, runs.left += runs.lefts) {
		runs.whole = 0;
		if (!w->counts)
			vmpt_flow_executed(w->flow, id, &runs.whole, &more);
		else if (id < w->wholes)
			runs.whole = w->whole[id];
		for (more = 0, l = runs.left; l < end && l->block == id; l++)
			more += l->count * l->instructions;
		runs.lefts = (size_t)(l - runs.left);
		if (!runs.whole && !more)
			continue;
		vmpt_flow_block(w->flow, id, &block);
		if (w->space[block.space] == COVERAGE_NONE)
			continue;
		add_total(w->d, &block, runs.whole, more);
		ret = coverage_add(w->d, w->flow, id, &block, w->space[block.space], &runs);
	}
	return ret;
}

static int open_spaces(struct walk *w)
{
	const u32 n = vmpt_flow_spaces(w->flow);
	struct vmpt_space space;
	u32 i;

	w->space = malloc((n + (size_t)1) * sizeof(*w->space));
	if (!w->space)
		return -VMPT_E_NOMEM;
	for (i = 0; i < n; i++) {
		vmpt_flow_space(w->flow, i, &space, NULL);
		w->space[i] = COVERAGE_NONE;
		if (!traced_wanted(w->cli, &space))
			continue;
		w->space[i] = coverage_space(w->d, &space);
		if (w->space[i] == COVERAGE_NONE)
			return -VMPT_E_NOMEM;
	}
	return 0;
}

static int add_all(struct walk *w)
{
	struct vmpt_flow_block to;
	size_t i;
	int ret = open_spaces(w);

	if (!ret)
		ret = list_lefts(w);
	if (!ret)
		ret = add_blocks(w);
	for (i = 0; i < w->pairs && !ret; i++) {
		vmpt_flow_block(w->flow, w->pair[i].to, &to);
		ret = add_edge(w, w->pair[i].from, to.ip, w->pair[i].count);
	}
	return ret;
}

static int walk_stream(struct cli *cli, size_t i)
{
	struct coverage *d = cli->data;
	const struct cli_filter *f = cli_filter(cli);
	struct vmpt_options trace = cli_stream_options(cli, i);
	struct walk w = {
		.cli = cli,
		.d = d,
		.stream = i,
		.counts = f->from || f->to,
		.last = COVERAGE_NONE,
	};
	const struct vmpt_flow_options options = {
		.trace = &trace,
		.blocks = d->with_edges || w.counts,
		.by_packet = w.counts,
		.events = d->with_edges,
		.left = !w.counts,
	};
	u64 lost = d->total.gaps[VMPT_FLOW_LOSS];
	int ret = vmpt_flow_open(&w.flow, cli->stream[i], d->t.code, &options);

	if (ret)
		return ret;
	ret = follow(&w);
	traced_note(&d->t, w.flow);
	if (!ret)
		ret = add_all(&w);
	vmpt_flow_close(w.flow);
	free(w.space);
	free(w.whole);
	free(w.left);
	free(w.after);
	free(w.pair);
	vmpt_hash_free(&w.left_of);
	vmpt_hash_free(&w.pair_of);
	if (!ret && d->total.gaps[VMPT_FLOW_LOSS] > lost)
		ret = traced_losses(cli, i);
	return ret;
}

int coverage_walk(struct cli *cli)
{
	struct coverage *d = cli->data;
	size_t i;
	int ret = 0;

	cli_progress_start(cli, 1);
	for (i = 0; i < cli->streams && !ret; i++) {
		cli_progress_stream(cli, i);
		ret = walk_stream(cli, i);
	}
	cli_progress_end(cli);
	if (!ret)
		ret = coverage_finish(d);
	if (!ret)
		return CLI_OK;
	cli_error(cli, "%s: %s", cli->file[0], vmpt_strerror(ret));
	return CLI_FAILED;
}
