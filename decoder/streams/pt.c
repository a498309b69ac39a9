// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The stream writer's walk over PT: slices from the splitter along with packets from the decoder.
 * Adjacent unchanged bytes are written at once.
 */
#include <stdlib.h>

#include "decoder/streams/internal.h"
#include "decoder/streams/streams.h"
#include "util/array.h"
#include "util/search.h"

/* ---- writing ---- */

/* Write the bytes in the stream's buffer. */
static int put_pending(struct extract *x, struct out_stream *out)
{
	size_t n = out->pending_size;

	out->pending_size = 0;
	return n ? x->ops->write(x->opaque, out->id, out->pending, n) : 0;
}

static int put_bytes(struct extract *x, struct out_stream *out, const u8 *bytes, size_t n)
{
	int err = put_pending(x, out);

	out->size += n;
	return err ? err : x->ops->write(x->opaque, out->id, bytes, n);
}

int vmpt_extract_flush(struct extract *x)
{
	u64 from = x->copy_from, to = x->copy_to;

	x->copy_from = x->copy_to = 0;
	if (from == to || !x->out)
		return 0;
	return put_bytes(x, x->out, x->stream->data + from, to - from);
}

int vmpt_extract_put(struct extract *x, struct out_stream *out, struct vmpt_pt_packet *pkt)
{
	u8 wire[VMPT_PT_SIZE_MAX];
	int err = out == x->out ? vmpt_extract_flush(x) : 0;
	int n;

	if (err)
		return err;
	n = vmpt_pt_encode(pkt, wire, sizeof(wire), 0);
	return n < 0 ? n : put_bytes(x, out, wire, (size_t)n);
}

/* Copy the packet unchanged. */
int vmpt_extract_copy(struct extract *x, u64 at, u64 size)
{
	int err = 0;

	if (!x->out)
		return 0;
	if (at != x->copy_to || x->copy_from == x->copy_to) {
		err = vmpt_extract_flush(x);
		x->copy_from = at;
	}
	x->copy_to = at + size;
	return err;
}

/* ---- streams ---- */

static int find_stream(struct extract *x, const struct vmpt_owner *owner, struct out_stream **out)
{
	struct out_stream *s;
	bool known;
	int i;
	u64 who;

	*out = NULL;
	if (owner->kind == VMPT_OWNER_UNKNOWN)
		return 0;
	known = vmpt_extract_clock_who(x, owner, &who);
	/* Last one first: a VMCS at an unknown time has its latest owner. */
	for (i = x->stream_count - 1; i >= 0; i--) {
		s = &x->streams[i];
		if (!vmpt_owner_same(owner, &s->owner) || (known && s->who_known && s->who != who))
			continue;
		if (known)
			s->who = who;
		s->who_known |= known;
		*out = s;
		return 0;
	}
	if (x->stream_count == VMPT_EXTRACT_STREAMS_MAX)
		return 0;
	if (vmpt_grow(&x->streams, (size_t)x->stream_count))
		return -VMPT_E_NOMEM;
	s = &x->streams[x->stream_count];
	*s = (struct out_stream){
		.owner = *owner,
		.who = who,
		.who_known = known,
		.id = x->stream_count,
		.needs_head = true,
		.cbr = -1,
		.tsx = -1,
	};
	x->stream_count++;
	*out = s;
	return x->ops->stream(x->opaque, s->id, owner);
}

/*
 * Others' timing: MTC and CBR stay in the stream while its PacketEn is 0, CYC as a sum; TSC and TMA
 * are of another clock and stay if that is known (clock.c). They are buffered: writing two bytes to
 * each of many streams for each MTC would cost more than all else.
 */
int vmpt_extract_others_timing(struct extract *x, const struct vmpt_item *item, const u8 *bytes)
{
	struct out_stream *s;
	u8 wire[VMPT_PT_SIZE_MAX];
	const u8 *from;
	int i, err;

	for (i = 0; i < x->stream_count; i++) {
		s = &x->streams[i];
		from = bytes;
		if (s == x->out || s->needs_head || s->packet_en)
			continue;
		switch (item->kind) {
		case VMPT_PT_CYC:
			s->cycles += item->payload;
			s->others_cycles += item->payload;
			s->others_cyc++;
			continue;
		case VMPT_PT_TSC:
		case VMPT_PT_TMA:
			if (!vmpt_extract_clock_other(x, s, item, wire)) {
				s->others_tsc++;
				continue;
			}
			from = wire;
			s->others_tsc_kept++;
			break;
		case VMPT_PT_CBR:
			s->cbr = (int)item->payload;
			s->others_cbr++;
			break;
		default:
			s->others_mtc++;
		}
		if (s->pending_size + item->size > sizeof(s->pending)) {
			err = put_pending(x, s);
			if (err)
				return err;
		}
		memcpy(s->pending + s->pending_size, from, item->size);
		s->pending_size = (u16)(s->pending_size + item->size);
		s->size += item->size;
	}
	return 0;
}

u64 vmpt_extract_region_end(const struct extract *x, u64 at)
{
	const struct vmpt_gap *gaps = x->stream->gaps;
	size_t n = vmpt_search(i, 0, x->stream->gap_count, gaps[i].offset <= at);

	return n < x->stream->gap_count ? gaps[n].offset : x->stream->size;
}

/* ---- one slice ---- */

/* Read the group at @at; a group is walked only once, however many slices it makes. */
static void read_group(struct extract *x, u64 at, struct vmpt_group *g)
{
	const u8 *p = x->stream->data + at;
	struct vmpt_pt_packet pkt;

	if (at >= x->alone) {
		vmpt_group_scan(x->stream->data, at, vmpt_extract_region_end(x, at), g);
		if (!g->bound)
			x->alone = g->end;
	} else {
		memset(g, 0, sizeof(*g));
	}
	/* Not bound: only the packet that begins the slice matters. */
	if (!g->bound && !vmpt_pt_decode(&pkt, p, x->stream->size - at, 0)) {
		g->pips = pkt.kind == VMPT_PT_PIP;
		g->cr3 = pkt.pip.cr3;
		g->nr = g->pips && pkt.pip.nr;
	}
}

/* The group that begins the slice: the facts at its start; those after it come later. */
static int begin_by_group(struct extract *x, u64 at)
{
	struct out_stream *out = x->out;
	struct vmpt_group g;
	int err = 0;

	read_group(x, at, &g);
	x->group_paging = x->source.paging;
	if (g.pips)
		x->group_paging = (struct paging){ true, g.nr, g.cr3 };
	if (out->needs_head)
		err = vmpt_extract_head(x, out, &x->group_paging);
	if (!err)
		err = vmpt_extract_cycles(x, out);
	if (g.bound)
		x->group_end = g.end + g.last_size;
	return err;
}

/* A slice of @owner is not wanted: its streams start again after it. */
static void leave_out(struct extract *x, const struct vmpt_owner *owner)
{
	int i;

	for (i = 0; i < x->stream_count; i++)
		if (vmpt_owner_same(owner, &x->streams[i].owner)) {
			x->streams[i].needs_head = x->streams[i].lacks_calls = true;
			x->streams[i].cycles = 0;
			x->streams[i].others_cyc = x->streams[i].others_cycles = 0;
		}
}

static int begin_slice(struct extract *x, const struct vmpt_slice *slice)
{
	static const struct paging unknown;
	const u8 *data = x->stream->data;
	bool psb;
	int err;

	memset(&x->done, 0, sizeof(x->done));
	x->done.slice = *slice;
	x->done.stream = -1;
	x->copy_from = x->copy_to = x->group_end = 0;
	x->drop_fup = x->in_block = false;
	x->out = NULL;
	if (x->options->wanted) {
		err = x->options->wanted(x->options->wanted_opaque, slice);
		if (err <= 0) {
			leave_out(x, &slice->owner);
			return err;
		}
	}
	err = find_stream(x, &slice->owner, &x->out);
	if (err || !x->out)
		return err;

	x->done.stream = x->out->id;
	x->done.out_offset = x->out->size;
	/* CALLs lost in an overflow may be this owner's. */
	x->out->lacks_calls |= x->calls_lost;
	x->calls_lost = false;
	x->done.lacks_calls = x->out->lacks_calls;
	x->done.others_mtc = x->out->others_mtc;
	x->done.others_cbr = x->out->others_cbr;
	x->done.others_cyc = x->out->others_cyc;
	x->done.others_cycles = x->out->others_cycles;
	x->done.others_tsc = x->out->others_tsc;
	x->done.others_tsc_kept = x->out->others_tsc_kept;
	x->out->others_mtc = x->out->others_cbr = x->out->others_tsc = 0;
	x->out->others_tsc_kept = 0;
	x->out->others_cyc = x->out->others_cycles = 0;
	if (slice->by_group)
		return begin_by_group(x, slice->offset);
	psb = vmpt_psb_find(data, slice->offset,
			    slice->offset + (slice->size < 16 ? slice->size : 16)) == slice->offset;
	if (x->out->needs_head && !psb)
		err = vmpt_extract_head(x, x->out, &unknown);
	return err ? err : vmpt_extract_cycles(x, x->out);
}

/* The packet that ends the group: its IP is where the owner resumes. */
static int finish_group(struct extract *x, const struct vmpt_item *item)
{
	bool go = item->kind != VMPT_PT_TIP_PGD && item->aux;
	int err = vmpt_extract_flush(x);

	x->group_end = 0;
	x->source.after_ovf = x->source.consumer = false;
	if (err)
		return err;
	return vmpt_extract_return(x, x->out, &x->group_paging, go ? &item->payload : NULL);
}

/*
 * Bytes without an owner after an OVF: the code that ran may have made CALLs that later compressed
 * RETs belong to. After a TIP.PGD() there are none (33.4.2.2).
 */
static void on_doubt_lost(struct extract *x)
{
	int i;

	if (!x->source.saw_ovf)
		return;
	x->source.saw_ovf = false;
	x->calls_lost = true;
	for (i = 0; i < x->stream_count; i++)
		x->streams[i].lacks_calls = true;
}

static void on_lost(struct extract *x)
{
	int i;

	/* Others' pending timing is of a time that is lost. */
	for (i = 0; i < x->stream_count; i++) {
		x->streams[i].needs_head = true;
		x->streams[i].cycles = 0;
		x->streams[i].others_cyc = x->streams[i].others_cycles = 0;
	}
	x->source.exec = x->source.tsx = x->source.cbr = -1;
	x->source.paging.known = false;
}

static int end_slice(struct extract *x, const struct vmpt_slice *next)
{
	struct vmpt_pt_packet bep = { .kind = VMPT_PT_BEP };
	int err = vmpt_extract_flush(x);

	/* Only in a damaged trace: a block does not cross a transition. */
	if (!err && x->out && next && x->in_block)
		err = vmpt_extract_put(x, x->out, &bep);
	if (!err && x->out && next)
		err = vmpt_extract_leave(x, x->out, &x->done.left);
	/* The slice's reported part of the stream has been written. */
	if (!err && x->out)
		err = put_pending(x, x->out);
	if (x->out) {
		x->done.out_size = x->out->size - x->done.out_offset;
		x->done.has_tsc = x->out->has_tsc;
		x->done.first_tsc = x->out->first_tsc;
		x->done.who_known = x->out->who_known;
		x->done.who = x->out->who;
	}
	if (x->done.slice.begin == VMPT_BEGIN_DOUBT)
		on_doubt_lost(x);
	if (x->done.slice.begin == VMPT_BEGIN_LOSS)
		on_lost(x);
	if (!err && x->ops->slice)
		err = x->ops->slice(x->opaque, &x->done);
	return err;
}

/* A place among the decoder's items. */
struct item_walk {
	struct vmpt_decoder *decoder;
	struct vmpt_batch batch;
	size_t i;
	u16 used; /* bytes used of the current run */
	bool ended;
};

static int walk_fill(struct extract *x, struct item_walk *w)
{
	int ret;

	while (!w->ended && w->i >= w->batch.count) {
		ret = vmpt_batch_next(w->decoder, &w->batch);
		if (ret < 0)
			return ret;
		w->ended = !ret;
		w->i = 0;
		w->used = 0;
		ret = ret ? vmpt_extract_clock_batch(x, &w->batch) : 0;
		if (ret)
			return ret;
	}
	if (!w->ended)
		vmpt_extract_clock_item(x, w->i);
	return 0;
}

/* All items up to @end, which belong to the current slice. */
static int walk_slice(struct extract *x, struct item_walk *w, u64 end)
{
	struct vmpt_item item;
	u64 at, left;
	int err;

	for (;;) {
		err = walk_fill(x, w);
		if (err || w->ended)
			return err;
		item = w->batch.items[w->i];
		at = w->batch.base + item.offset + w->used;
		/* A loss of size 0 is at the start of the bytes after it. */
		if (at >= end && !(item.kind == VMPT_ITEM_LOSS && at == end && !item.payload))
			return 0;
		if (item.kind == VMPT_ITEM_RUN) {
			left = item.size - w->used;
			item.size = (u16)(left < end - at ? left : end - at);
			w->used = (u16)(w->used + item.size);
			if (item.size == left) {
				w->i++;
				w->used = 0;
			}
		} else {
			w->i++;
		}
		if (x->group_end && at + item.size == x->group_end)
			err = finish_group(x, &item);
		else
			err = vmpt_extract_item(x, at, &item);
		if (err)
			return err;
	}
}

static int walk_all(struct extract *x, struct vmpt_splitter *split, struct item_walk *w)
{
	struct vmpt_slice slice, next;
	int more = vmpt_split_next(split, &slice);
	int err;

	while (more > 0) {
		more = vmpt_split_next(split, &next);
		if (more < 0)
			break;
		/* Synthesized packets have the time of the next packet. */
		err = walk_fill(x, w);
		if (!err)
			err = begin_slice(x, &slice);
		if (!err)
			err = walk_slice(x, w, slice.offset + slice.size);
		if (!err)
			err = end_slice(x, more ? &next : NULL);
		if (err)
			return err;
		slice = next;
	}
	return more;
}

static int finish_streams(struct extract *x)
{
	int i, err = 0;

	for (i = 0; !err && i < x->stream_count; i++)
		err = put_pending(x, &x->streams[i]);
	return err;
}

int vmpt_pt_extract(const struct vmpt_stream *stream, const struct vmpt_extract_options *options,
		    const struct vmpt_extract_ops *ops, void *opaque)
{
	struct vmpt_splitter *split = NULL;
	struct item_walk w = { 0 };
	struct extract *x;
	int err;

	x = calloc(1, sizeof(*x));
	if (!x)
		return -VMPT_E_NOMEM;
	x->stream = stream;
	x->options = options;
	x->ops = ops;
	x->opaque = opaque;
	x->source = (struct source_state){ .exec = -1, .tsx = -1, .cbr = -1 };
	err = vmpt_extract_clock_open(x);
	if (!err)
		err = vmpt_splitter_open(&split, stream, &x->options->decode);
	if (!err)
		err = vmpt_decoder_open(&w.decoder, stream, &x->options->decode);
	if (!err)
		err = walk_all(x, split, &w);
	if (!err)
		err = finish_streams(x);
	vmpt_decoder_close(w.decoder);
	vmpt_splitter_close(split);
	vmpt_extract_clock_close(x);
	free(x->streams);
	free(x);
	return err;
}
