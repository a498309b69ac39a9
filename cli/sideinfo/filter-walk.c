// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* Which bytes of a stream fit the filters: a walk over its packets with times, owners and CR3s. */
#include <stdlib.h>

#include "cli/sideinfo/filter.h"
#include "cli/sideinfo/sideinfo.h"

struct cli_filter_walk {
	struct cli *cli;
	bool owners;
	struct vmpt_timed *timed;
	struct vmpt_decoder *decoder;
	struct vmpt_timed_batch batch;
	size_t item;
	bool ended;
	bool cr3_known;
	u64 cr3;
	bool owner_wanted; /* of the batch */
	u64 at;		   /* offset of the next item; at the end, the stream's end */
	u64 size;
	struct cli_filter_part part;
	bool has_part;
};

int cli_filter_walk_open(struct cli *cli, size_t i, bool owners, struct cli_filter_walk **walk)
{
	const struct cli_filter *f = cli_filter(cli);
	struct vmpt_options options = cli_stream_options(cli, i);
	bool times = f->from || f->to;
	struct cli_filter_walk *w;
	int ret;

	*walk = NULL;
	if (!times && !f->cr3s && !(owners && cli_filter_owners(cli)))
		return 0;
	w = calloc(1, sizeof(*w));
	if (!w)
		return -VMPT_E_NOMEM;
	options.progress = NULL;
	options.threads = 1;
	w->cli = cli;
	w->owners = owners && cli_filter_owners(cli);
	w->size = cli->stream[i]->size;
	if (f->clocks)
		ret = vmpt_timed_open(&w->timed, f->clocks->clocks, i, &options);
	else
		ret = vmpt_decoder_open(&w->decoder, cli->stream[i], &options);
	if (ret) {
		free(w);
		return ret;
	}
	*walk = w;
	return 0;
}

void cli_filter_walk_close(struct cli_filter_walk *w)
{
	if (!w)
		return;
	vmpt_timed_close(w->timed);
	vmpt_decoder_close(w->decoder);
	free(w);
}

static u64 item_size(const struct vmpt_item *item)
{
	return item->kind == VMPT_ITEM_LOSS ? item->payload : item->size;
}

static u64 time_of(const struct cli_filter_walk *w)
{
	return w->timed && !w->ended ? w->batch.time[w->item].tsc : VMPT_TIME_NONE;
}

/* To the next item. 1, 0 at the end, or a negative error. */
static int step(struct cli_filter_walk *w)
{
	int ret = 1;

	w->item++;
	while (w->item >= w->batch.batch.count && ret > 0) {
		ret = w->timed ? vmpt_timed_next(w->timed, &w->batch)
			       : vmpt_batch_next(w->decoder, &w->batch.batch);
		w->item = 0;
		if (ret > 0 && w->batch.batch.count)
			w->owner_wanted =
				!w->owners ||
				cli_filter_owner(w->cli, &w->batch.batch.owner, time_of(w));
	}
	w->ended = ret <= 0;
	w->at = w->ended ? w->size : w->batch.batch.base + w->batch.batch.items[w->item].offset;
	return ret;
}

/* Whether the current item is wanted; its CR3 is in force from it on. */
static bool is_wanted(struct cli_filter_walk *w)
{
	const struct vmpt_item *item = &w->batch.batch.items[w->item];

	if (item->kind == VMPT_PT_PIP) {
		w->cr3 = item->payload & ~1ULL;
		w->cr3_known = true;
	} else if (item->kind == VMPT_ITEM_LOSS) {
		w->cr3_known = false;
	}
	return w->owner_wanted && cli_filter_cr3(w->cli, w->cr3_known, w->cr3) &&
	       ((!cli_filter(w->cli)->from && !cli_filter(w->cli)->to) ||
		cli_filter_time(w->cli, time_of(w)));
}

static void add_cr3(struct vmpt_slice *s, u64 cr3)
{
	u32 i;

	for (i = 0; i < s->cr3_count && i < VMPT_SLICE_CR3S; i++)
		if (s->cr3[i] == cr3)
			return;
	if (s->cr3_count < VMPT_SLICE_CR3S)
		s->cr3[s->cr3_count] = cr3;
	if (s->cr3_count <= VMPT_SLICE_CR3S)
		s->cr3_count++;
}

/* What the slices of vmpt_split_next() have of an item. */
static void add_item(struct vmpt_slice *s, const struct vmpt_item *item)
{
	switch (item->kind) {
	case VMPT_PT_TSC:
		if (!s->has_tsc)
			s->first_tsc = item->payload;
		s->last_tsc = item->payload;
		s->has_tsc = true;
		break;
	case VMPT_PT_PIP:
		add_cr3(s, item->payload & ~1ULL);
		break;
	case VMPT_PT_OVF:
		s->overflows++;
		break;
	}
}

/* The next part. 1, 0 at the end, or a negative error. */
static int next_part(struct cli_filter_walk *w)
{
	struct cli_filter_part *p = &w->part;
	int ret = 1;

	w->has_part = false;
	if (w->ended)
		return 0;
	if (!w->batch.batch.items)
		ret = step(w);
	while (ret > 0 && !is_wanted(w))
		ret = step(w);
	if (ret <= 0)
		return ret;
	*p = (struct cli_filter_part){
		.slice = { .offset = w->at, .owner = w->batch.batch.owner },
		.start = time_of(w),
	};
	do {
		const struct vmpt_item *item = &w->batch.batch.items[w->item];

		add_item(&p->slice, item);
		p->slice.size = w->at + item_size(item) - p->slice.offset;
		ret = step(w);
	} while (ret > 0 && vmpt_owner_same(&w->batch.batch.owner, &p->slice.owner) &&
		 is_wanted(w));
	p->end = time_of(w);
	w->has_part = ret >= 0;
	cli_filter(w->cli)->seen |= w->owners || !cli_filter_owners(w->cli);
	return ret < 0 ? ret : 1;
}

const struct cli_filter_part *cli_filter_part(struct cli_filter_walk *w, u64 offset, int *err)
{
	*err = 0;
	/* A part of a loss without bytes covers its offset. */
	while (!w->has_part ||
	       w->part.slice.offset + w->part.slice.size + !w->part.slice.size <= offset) {
		*err = next_part(w);
		if (*err <= 0)
			return NULL;
	}
	*err = 0;
	return &w->part;
}

int cli_filter_at(struct cli_filter_walk *w, u64 offset, u64 *end)
{
	const struct cli_filter_part *p;
	int err;

	*end = ~0ULL;
	if (!w)
		return 1;
	p = cli_filter_part(w, offset, &err);
	if (!p)
		return err;
	if (p->slice.offset > offset) {
		*end = p->slice.offset;
		return 0;
	}
	*end = p->slice.offset + p->slice.size;
	return 1;
}

int cli_filter_slice(struct cli *cli, struct cli_filter_walk *walk, struct vmpt_slice *slice,
		     bool *begins, bool *ends)
{
	u64 at = slice->offset, end = at + slice->size, from, to, last = at;
	const struct cli_filter_part *p;
	struct vmpt_slice cut = *slice;
	int err = 0;
	u32 i;

	*begins = *ends = true;
	if (!cli_filter_vmcs(cli, &slice->owner))
		return 0;
	cli_filter(cli)->seen |= !walk;
	if (!walk)
		return 1;
	cut.size = 0;
	cut.has_tsc = false;
	cut.cr3_count = cut.overflows = cut.failed_entries = 0;
	while ((p = cli_filter_part(walk, at, &err)) != NULL && p->slice.offset < end) {
		from = p->slice.offset > at ? p->slice.offset : at;
		to = p->slice.offset + p->slice.size;
		to = to < end ? to : end;
		if (!cut.size)
			cut.offset = from;
		cut.size += to - from;
		last = to;
		if (p->slice.has_tsc) {
			if (!cut.has_tsc)
				cut.first_tsc = p->slice.first_tsc;
			cut.last_tsc = p->slice.last_tsc;
			cut.has_tsc = true;
		}
		for (i = 0; i < p->slice.cr3_count && i < VMPT_SLICE_CR3S; i++)
			add_cr3(&cut, p->slice.cr3[i]);
		cut.overflows += p->slice.overflows;
		if (to == at)
			break;
		at = to;
	}
	if (err < 0 || !cut.size)
		return err < 0 ? err : 0;
	cli_filter(cli)->seen = true;
	*begins = cut.offset == slice->offset;
	*ends = last == end;
	/* All of it: what the splitter knows is more. */
	if (cut.size < slice->size)
		*slice = cut;
	return 1;
}
