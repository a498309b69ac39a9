// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * One walk over a stream: pairs of guests' TSC packets and the host's time, each with its run (from
 * VM entry to VM exit, as far as the packets show it): a VMM changes a map between two runs.
 */
#include <stdlib.h>

#include "decoder/clock/quick.h"
#include "decoder/clock/clocks.h"
#include "util/array.h"

/* A guest's TSC packet whose pair may still come, and its run. */
struct seen {
	u64 offset;
	u64 run_from, run_to; /* run_to ~0: it goes on */
	bool assumed;	      /* the owner is */
};

struct collector {
	struct vmpt_pairs *pairs;
	size_t limit;
	u32 index;
	int err;
	struct vmpt_clock clock;
	/* the current run */
	struct vmpt_owner owner;
	u64 run_from, last; /* last: estimate of the item before */
	size_t run_first;   /* pairs from here on are of it, or their run is not known yet */
	size_t placed;	    /* pairs whose run is known */
	size_t open;	    /* no pair before this one has an open end that can still be closed */
	/* TSC packets of this batch, and the last one before it: a pair comes late */
	struct seen *seen;
	size_t seen_count, seen_room, seen_open;
	u64 vmcs_used; /* 1 + the index in pairs->vmcs[] used last; 0: none */
	struct vmpt_losses lost;
	struct vmpt_hash by_vmcs; /* of pairs->vmcs[] */
};

void vmpt_pairs_free(struct vmpt_pairs *pairs)
{
	free(pairs->at);
	free(pairs->vmcs);
	*pairs = (struct vmpt_pairs){ 0 };
}

/* ---- thinning ---- */

/* Drop every other pair; its weight is added to its neighbour's. */
static size_t halve(struct vmpt_fit_pair *at, size_t n)
{
	size_t i, left = 0;

	for (i = 0; i + 1 < n; i += 2) {
		at[left] = at[i];
		at[left++].weight = at[i].weight + at[i + 1].weight;
	}
	if (i < n)
		at[left++] = at[i];
	return left;
}

/* Only between runs: indices into the array do not survive. */
static void thin(struct collector *c)
{
	struct vmpt_pairs *p = c->pairs;
	size_t i, n, left = 0;

	qsort(p->at, p->count, sizeof(*p->at), vmpt_fit_compare);
	for (i = 0; i < p->count; i += n) {
		long kept;
		size_t j;

		for (n = 1; i + n < p->count && p->at[i + n].pair.vmcs == p->at[i].pair.vmcs; n++)
			;
		kept = vmpt_fit_thin(&p->at[i], n);
		if (kept < 0) {
			c->err = (int)kept;
			return;
		}
		for (j = 0; j < (size_t)kept; j++)
			p->at[left++] = p->at[i + j];
	}
	while (left > c->limit / 2)
		left = halve(p->at, left);
	p->count = left;
}

/* ---- pairs and runs ---- */

static void on_pair(void *opaque, const struct vmpt_tsc_pair *pair)
{
	struct collector *c = opaque;
	struct vmpt_pairs *p = c->pairs;
	struct vmpt_fit_pair *at;

	/* A run with this many TSC packets has enough. */
	if (p->count >= 2 * c->limit || c->err)
		return;
	c->err = vmpt_reserve(&p->at, &p->room, p->count + 1);
	if (c->err)
		return;
	at = &p->at[p->count++];
	*at = (struct vmpt_fit_pair){ .pair = *pair, .weight = 1 };
	at->pair.stream = c->index;
	/* Bits 63:56 are undefined. */
	at->pair.guest &= (1ULL << 56) - 1;
}

/* A guest's TSC packet at @offset. */
static void see(struct collector *c, u64 offset)
{
	int err = vmpt_reserve(&c->seen, &c->seen_room, c->seen_count + 1);

	if (err) {
		c->err = err;
		return;
	}
	c->seen[c->seen_count++] =
		(struct seen){ offset, c->run_from, ~0ULL, c->owner.sure != VMPT_KNOWN };
}

/* After a batch: each reported pair gets the run of its TSC packet. */
static void place_pairs(struct collector *c)
{
	struct vmpt_pairs *p = c->pairs;
	size_t i = 0;

	for (; c->placed < p->count; c->placed++) {
		struct vmpt_fit_pair *at = &p->at[c->placed];

		while (i < c->seen_count && c->seen[i].offset < at->pair.offset)
			i++;
		at->run_from = at->run_to = at->pair.host.tsc;
		if (i < c->seen_count && c->seen[i].offset == at->pair.offset) {
			at->run_from = c->seen[i].run_from;
			at->run_to = c->seen[i].run_to;
			at->assumed = c->seen[i].assumed;
		}
	}
	if (c->seen_count > 1) {
		c->seen[0] = c->seen[c->seen_count - 1];
		c->seen_count = 1;
	}
	c->seen_open = c->seen_count && c->seen[0].run_to == ~0ULL ? 0 : c->seen_count;
}

/* A run ends and another begins. */
static void end_run(struct collector *c)
{
	struct vmpt_pairs *p = c->pairs;

	for (; c->seen_open < c->seen_count; c->seen_open++)
		c->seen[c->seen_open].run_to = c->last;
	for (; c->run_first < c->placed; c->run_first++)
		if (p->at[c->run_first].run_to == ~0ULL)
			p->at[c->run_first].run_to = c->last;
	c->run_from = c->last;
}

/* The time is bounded again: a pair before it was made earlier. */
static void close_pairs(struct collector *c, u64 offset, u64 latest)
{
	struct vmpt_pairs *p = c->pairs;
	struct vmpt_time *t;

	for (; c->open < p->count && p->at[c->open].pair.offset < offset; c->open++) {
		t = &p->at[c->open].pair.host;
		if (t->late == VMPT_TIME_OPEN && latest >= t->tsc &&
		    latest - t->tsc < VMPT_TIME_OPEN)
			t->late = (u32)(latest - t->tsc);
	}
}

static void count_tsc(struct collector *c, u64 vmcs)
{
	struct vmpt_pairs *p = c->pairs;
	u64 hash = vmpt_mix64(vmcs);
	u32 found;

	if (c->vmcs_used && p->vmcs[c->vmcs_used - 1].vmcs == vmcs) {
		p->vmcs[c->vmcs_used - 1].tscs++;
		return;
	}
	found = vmpt_hash_find(&c->by_vmcs, hash, i, p->vmcs[i].vmcs == vmcs);
	if (found == VMPT_HASH_NONE) {
		if (p->vmcss == VMPT_CLOCKS_VMCSS)
			return;
		found = (u32)p->vmcss;
		if (vmpt_grow(&p->vmcs, p->vmcss) || vmpt_hash_add(&c->by_vmcs, hash, found)) {
			c->err = -VMPT_E_NOMEM;
			return;
		}
		p->vmcs[p->vmcss++] = (struct vmpt_vmcs_tscs){ .vmcs = vmcs };
	}
	c->vmcs_used = found + 1;
	p->vmcs[found].tscs++;
}

/* Item @i is a time item, and the clock has been fed with it. */
static void on_item(struct collector *c, const struct vmpt_batch *batch, size_t i)
{
	const struct vmpt_item *item = &batch->items[i];
	const struct vmpt_time *t = &c->clock.now;
	u64 at = batch->base + item->offset;

	if (c->open < c->pairs->count) {
		if (t->late == VMPT_TIME_OPEN)
			t = &c->clock.next;
		if (t->tsc != VMPT_TIME_NONE && t->late != VMPT_TIME_OPEN)
			close_pairs(c, at, t->tsc + t->late);
	}
	if (item->kind == VMPT_PT_TSC && batch->owner.kind == VMPT_OWNER_VM) {
		count_tsc(c, batch->owner.vmcs);
		see(c, at);
	} else if (item->kind == VMPT_PT_TIP_PGD) {
		if (c->clock.now.tsc != VMPT_TIME_NONE)
			c->last = c->clock.now.tsc;
		end_run(c);
	} else if (item->kind == VMPT_ITEM_LOSS) {
		vmpt_losses_add(&c->lost, at, item->payload, item->aux);
	}
}

static void walk_stretch(struct collector *c, const struct vmpt_batch *batch, size_t from,
			 size_t to)
{
	size_t i, k, n, end;
	u32 at[CLOCK_BLOCK];

	for (i = from; i < to; i = end) {
		end = to - i < CLOCK_BLOCK ? to : i + CLOCK_BLOCK;
		n = clock_find(batch->items, i, end, vmpt_time_kinds, at);
		for (k = 0; k < n;) {
			/* The most frequent ones, needed only for a waiting pair. */
			if (batch->items[at[k]].kind == VMPT_PT_CYC && c->open == c->pairs->count) {
				k = clock_take_cycs(&c->clock, batch->items, at, k, n);
				continue;
			}
			clock_feed(&c->clock, batch, at[k]);
			on_item(c, batch, at[k++]);
		}
	}
}

static void walk_batch(struct collector *c, const struct vmpt_stream *stream,
		       const struct vmpt_batch *batch)
{
	const struct vmpt_time *last = &c->clock.next;
	size_t i = 0, to;

	for (; i < batch->count; i = to) {
		to = vmpt_clock_gaps(&c->clock, stream, batch, i);
		walk_stretch(c, batch, i, to);
	}
	vmpt_clock_batch_end(&c->clock, batch);
	if (batch->count && clock_is_timed(&batch->items[batch->count - 1]))
		last = &c->clock.now;
	if (last->tsc != VMPT_TIME_NONE)
		c->last = last->tsc;
}

static bool same_owner(const struct vmpt_owner *a, const struct vmpt_owner *b)
{
	return a->kind == b->kind && (a->kind != VMPT_OWNER_VM || a->vmcs == b->vmcs);
}

static int on_batch(struct collector *c, const struct vmpt_stream *stream,
		    const struct vmpt_batch *batch)
{
	if (!same_owner(&batch->owner, &c->owner)) {
		end_run(c);
		if (c->pairs->count >= c->limit) {
			thin(c);
			c->run_first = c->placed = c->open = c->pairs->count;
		}
	}
	c->owner = batch->owner;
	walk_batch(c, stream, batch);
	place_pairs(c);
	return c->err;
}

/*
 * Where several guests run without the host between them, VMPTRLD makes no packet and an owner is
 * assumed (docs/vm-tracking.md): a TSC may be another guest's. Those of proved owners are enough.
 */
static void drop_assumed(struct vmpt_pairs *p)
{
	size_t i, sure = 0;

	for (i = 0; i < p->count; i++)
		sure += !p->at[i].assumed;
	if (p->vmcss < 2 || !sure)
		return;
	for (i = sure = 0; i < p->count; i++)
		if (!p->at[i].assumed)
			p->at[sure++] = p->at[i];
	p->count = sure;
}

int vmpt_pairs_collect(struct vmpt_pairs *pairs, const struct vmpt_stream *stream, u32 index,
		       const struct vmpt_options *decode, const struct vmpt_clock_options *options,
		       size_t limit)
{
	struct vmpt_clock_options clock_options = *options;
	struct vmpt_decoder *dec = NULL;
	struct vmpt_batch batch;
	struct collector *c;
	int ret;

	*pairs = (struct vmpt_pairs){ 0 };
	c = calloc(1, sizeof(*c));
	if (!c)
		return -VMPT_E_NOMEM;
	c->pairs = pairs;
	c->limit = limit;
	c->index = index;
	clock_options.pair = on_pair;
	clock_options.pair_opaque = c;
	vmpt_clock_init(&c->clock, &clock_options);
	ret = vmpt_decoder_open(&dec, stream, decode);
	if (!ret)
		vmpt_decoder_time_only(dec);
	while (!ret && (ret = vmpt_batch_next(dec, &batch)) > 0)
		ret = on_batch(c, stream, &batch);
	if (!ret) {
		vmpt_clock_end(&c->clock);
		place_pairs(c);
		end_run(c);
		drop_assumed(pairs);
		ret = c->err;
	}
	pairs->counts = c->clock.counts;
	pairs->counts.lost = c->lost;
	vmpt_decoder_close(dec);
	free(c->seen);
	vmpt_hash_free(&c->by_vmcs);
	free(c);
	return ret;
}
