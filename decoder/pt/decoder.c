// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Packets with their owners: the items of a source, split into batches at the
 * marks of the VM tracker.
 */
#include <stdlib.h>

#include "decoder/pt/parts.h"
#include "decoder/pt/pt.h"
#include "decoder/pt/slicer.h"
#include "decoder/vmpt-parts.h"
#include "util/array.h"

/* An owner that holds from an offset on. */
struct change {
	u64 offset;
	size_t item; /* of the piece: the first at or after offset */
	struct vmpt_owner owner;
};

/* A mark that the slicer has not taken yet. */
struct later {
	struct vmpt_mark mark;
	bool given; /* vmpt_tracker.given then */
};

/* Slices of the same packets. */
struct slices {
	struct vmpt_slicer slicer;
	struct later *later; /* [first, count) */
	size_t first, count, room;
	bool end, finished; /* of the stream; of the slicer */
};

struct pt_decoder {
	struct vmpt_decoder base;
	struct vmpt_source *source;
	struct vmpt_parts *parts; /* NULL: the stream is whole */
	const struct vmpt_stream *stream;
	struct vmpt_piece piece;
	size_t item;
	struct change *changes; /* of this piece, and those beyond its end */
	size_t change, change_count, change_max;
	struct vmpt_owner owner;
	struct vmpt_item part; /* the head of a run that a change splits */
	struct vmpt_tracker tracker;
	struct slices *slices; /* NULL: none wanted */
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
	vmpt_pt_decoder_slices(dec, false);
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

/* Marks that the slicer has taken make room. */
static void drop_marks(struct slices *s)
{
	if (s->first)
		memmove(s->later, s->later + s->first, (s->count - s->first) * sizeof(*s->later));
	s->count -= s->first;
	s->first = 0;
}

/* The token's marks, for the slicer. */
static int keep_marks(struct pt_decoder *d)
{
	struct slices *s = d->slices;
	unsigned int i;
	int err;

	err = vmpt_reserve(&s->later, &s->room, s->count + d->tracker.mark_count);
	for (i = 0; !err && i < d->tracker.mark_count; i++, s->count++) {
		s->later[s->count].mark = d->tracker.marks[i];
		s->later[s->count].given = d->tracker.given;
	}
	return err;
}

static int track(struct pt_decoder *d)
{
	struct vmpt_mark *m;
	size_t i = 0;
	int err = reserve(d);

	if (err)
		return err;
	d->tracker.data = d->stream->data; /* parts: it moves */
	if (d->slices)
		drop_marks(d->slices);
	/* Changes that lay beyond the last piece. */
	for (i = 0; i < d->change_count; i++)
		d->changes[i].item = item_from(d, 0, d->changes[i].offset);
	i = 0;
	while (vmpt_tracker_take(&d->tracker, &d->piece, &i)) {
		if (d->slices)
			err = keep_marks(d);
		if (err)
			return err;
		for (m = d->tracker.marks; m < d->tracker.marks + d->tracker.mark_count; m++)
			if (m->kind == VMPT_MARK_OWNER || m->kind == VMPT_MARK_LOSS)
				add_change(d, m);
	}
	/* The look that is put off reads from there. */
	if (d->parts && !vmpt_parts_keep(d->parts, d->tracker.pause ? d->tracker.pause : ~0ULL))
		vmpt_tracker_settle(&d->tracker, d->piece.region_end);
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
			if (!ret && d->slices)
				d->slices->end = true;
			return ret;
		}
		d->item = 0;
		ret = track(d);
		if (ret)
			return ret;
	}
	return 1;
}

/* ---- slices along with items ---- */

int vmpt_pt_decoder_slices(struct vmpt_decoder *dec, bool wanted)
{
	struct pt_decoder *d = (struct pt_decoder *)dec;

	if (d->slices)
		free(d->slices->later);
	free(d->slices);
	d->slices = NULL;
	if (!wanted)
		return 0;
	d->slices = calloc(1, sizeof(*d->slices));
	if (!d->slices)
		return -VMPT_E_NOMEM;
	vmpt_slicer_init(&d->slices->slicer, d->stream, &d->tracker.owner);
	return 0;
}

bool vmpt_pt_decoder_slice(struct vmpt_decoder *dec, struct vmpt_slice *slice, bool *whole)
{
	struct pt_decoder *d = (struct pt_decoder *)dec;
	struct slices *s = d->slices;
	struct vmpt_slicer *slicer = &s->slicer;
	u64 end = d->piece.end;

	for (; !slicer->ready_count && s->first < s->count; s->first++)
		vmpt_slicer_take(slicer, &s->later[s->first].mark, s->later[s->first].given);
	if (!slicer->ready_count && s->end && !s->finished) {
		vmpt_slicer_finish(slicer, d->tracker.given);
		s->finished = true;
	}
	*whole = vmpt_slicer_next(slicer, slice);
	if (*whole || s->finished)
		return *whole;
	/* No packet from here on can change the owner before. */
	if (slicer->doubting && slicer->doubt.offset < end)
		end = slicer->doubt.offset;
	if (end <= slicer->slice.offset)
		return false;
	*slice = slicer->slice;
	slice->size = end - slice->offset;
	return true;
}

/* ---- a trace that comes in parts ---- */

int vmpt_decoder_open_parts_abi(struct vmpt_decoder **dec, const struct vmpt_options *options,
				u64 abi)
{
	static const struct vmpt_options defaults;
	struct vmpt_options used;
	struct vmpt_parts *parts;
	struct pt_decoder *d;
	int err;

	if (abi != VMPT_DECODE_ABI)
		return -VMPT_E_VERSION;
	used = options ? *options : defaults;
	err = vmpt_parts_open(&parts, &used);
	if (err)
		return err;
	used.scalar = true;
	err = open_decoder(dec, vmpt_parts_stream(parts), &used);
	if (err) {
		vmpt_parts_close(parts);
		return err;
	}
	d = (struct pt_decoder *)*dec;
	d->base.ops = &vmpt_pt_decoder_ops;
	d->parts = parts;
	vmpt_source_take_parts(d->source, parts);
	return 0;
}

/* NULL if @dec does not come in parts. */
static struct vmpt_parts *parts_of(struct vmpt_decoder *dec)
{
	return dec->ops == &vmpt_pt_decoder_ops ? ((struct pt_decoder *)dec)->parts : NULL;
}

int vmpt_decoder_add(struct vmpt_decoder *dec, const u8 *bytes, size_t size)
{
	struct vmpt_parts *parts = parts_of(dec);

	return parts ? vmpt_parts_add(parts, bytes, size) : -VMPT_E_STATE;
}

int vmpt_decoder_end(struct vmpt_decoder *dec)
{
	struct vmpt_parts *parts = parts_of(dec);

	return parts ? vmpt_parts_end(parts) : -VMPT_E_STATE;
}

const struct vmpt_decoder_ops vmpt_pt_decoder_ops = {
	.open = open_decoder,
	.next = next_batch,
	.close = close_decoder,
	.time_only = time_only,
};
