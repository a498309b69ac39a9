// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Packets with their owners: the items of a source, split into batches at the
 * marks of the VM tracker.
 */
#include <stdlib.h>

#include "decoder/pt/tracker.h"
#include "util/array.h"

/* An owner that holds from an offset on. */
struct change {
	u64 offset;
	size_t item; /* of the piece: the first at or after offset */
	struct vmpt_owner owner;
};

struct pt_decoder {
	struct vmpt_decoder base;
	struct vmpt_source *source;
	const struct vmpt_stream *stream;
	struct vmpt_piece piece;
	size_t item;
	struct change *changes; /* of this piece, and those beyond its end */
	size_t change, change_count, change_max;
	struct vmpt_owner owner;
	struct vmpt_item part; /* the head of a run that a change splits */
	struct vmpt_tracker tracker;
};

static int open_decoder(struct vmpt_decoder **dec, const struct vmpt_stream *stream,
			const struct vmpt_options *options)
{
	struct pt_decoder *d = calloc(1, sizeof(*d));
	int err;

	if (!d)
		return -VMPT_E_NOMEM;
	err = vmpt_source_open(&d->source, stream, options, true);
	if (err) {
		free(d);
		return err;
	}
	d->stream = stream;
	vmpt_tracker_init(&d->tracker, stream->data, options, true);
	d->owner = d->tracker.owner;
	*dec = &d->base;
	return 0;
}

static void close_decoder(struct vmpt_decoder *dec)
{
	struct pt_decoder *d = (struct pt_decoder *)dec;

	vmpt_source_close(d->source);
	free(d->changes);
	free(d);
}

static void time_only(struct vmpt_decoder *dec)
{
	vmpt_source_time_only(((struct pt_decoder *)dec)->source);
}

/* Room for all changes that the piece's tokens can make, after those left over. */
static int reserve(struct pt_decoder *d)
{
	size_t left = d->change_count - d->change;
	size_t want = left + d->piece.token_count * 3;

	if (left)
		memmove(d->changes, d->changes + d->change, left * sizeof(*d->changes));
	d->change = 0;
	d->change_count = left;
	return vmpt_reserve(&d->changes, &d->change_max, want);
}

/* The first item at or after @offset, from item @i on. */
static size_t item_from(const struct pt_decoder *d, size_t i, u64 offset)
{
	u64 rel = offset - d->piece.start;

	if (offset >= d->piece.end)
		return d->piece.item_count;
	while (i < d->piece.item_count && d->piece.items[i].offset < rel)
		i++;
	return i;
}

static void add_change(struct pt_decoder *d, const struct vmpt_mark *m)
{
	struct change *c = &d->changes[d->change_count++];

	c->offset = m->offset;
	c->owner = m->owner;
	if (m->kind == VMPT_MARK_LOSS)
		c->owner.sure = VMPT_UNKNOWN;
	c->item = item_from(d, d->piece.token_items[d->tracker.token], m->offset);
}

static int track(struct pt_decoder *d)
{
	struct vmpt_mark *m;
	size_t i = 0;
	int err = reserve(d);

	if (err)
		return err;
	/* Changes that lay beyond the last piece. */
	for (i = 0; i < d->change_count; i++)
		d->changes[i].item = item_from(d, 0, d->changes[i].offset);
	i = 0;
	while (vmpt_tracker_take(&d->tracker, &d->piece, &i))
		for (m = d->tracker.marks; m < d->tracker.marks + d->tracker.mark_count; m++)
			if (m->kind == VMPT_MARK_OWNER || m->kind == VMPT_MARK_LOSS)
				add_change(d, m);
	return 0;
}

/* The run before item @i extends past @offset: return its head as a batch of its own. */
static void cut_run(struct pt_decoder *d, size_t i, u64 offset, struct vmpt_batch *b)
{
	struct vmpt_item *run = &d->piece.items[i];
	u16 head = (u16)(offset - d->piece.start - run->offset);

	d->part = *run;
	d->part.size = head;
	run->offset += head;
	run->size = (u16)(run->size - head);
	b->items = &d->part;
	b->count = 1;
}

static void fill(struct pt_decoder *d, struct vmpt_batch *b, size_t end)
{
	b->items = d->piece.items + d->item;
	b->count = end - d->item;
	d->item = end;
}

/* Items up to the next change of owner. False if there are none. */
static bool next_of_piece(struct pt_decoder *d, struct vmpt_batch *b)
{
	size_t end = d->piece.item_count;
	struct vmpt_item *last;
	u64 cut;

	/* Changes at the next item hold from here on. */
	while (d->change < d->change_count && d->item < end &&
	       d->changes[d->change].offset <= d->piece.start + d->piece.items[d->item].offset)
		d->owner = d->changes[d->change++].owner;
	if (d->item >= end)
		return false;
	b->base = d->piece.start;
	b->data = d->stream->data + d->piece.start;
	b->owner = d->owner;
	if (d->change == d->change_count) {
		fill(d, b, end);
		return true;
	}
	cut = d->changes[d->change].offset;
	end = d->changes[d->change].item;
	last = &d->piece.items[end - 1];
	if (last->kind == VMPT_ITEM_RUN && d->piece.start + last->offset + last->size > cut) {
		if (end - 1 > d->item) {
			fill(d, b, end - 1);
			return true;
		}
		cut_run(d, end - 1, cut, b);
		return true;
	}
	fill(d, b, end);
	return true;
}

static int next_batch(struct vmpt_decoder *dec, struct vmpt_batch *batch)
{
	struct pt_decoder *d = (struct pt_decoder *)dec;
	int ret;

	while (!next_of_piece(d, batch)) {
		ret = vmpt_source_next(d->source, &d->piece);
		if (ret <= 0) {
			d->piece.item_count = d->item = 0;
			return ret;
		}
		d->item = 0;
		ret = track(d);
		if (ret)
			return ret;
	}
	return 1;
}

const struct vmpt_decoder_ops vmpt_pt_decoder_ops = {
	.open = open_decoder,
	.next = next_batch,
	.close = close_decoder,
	.time_only = time_only,
};
