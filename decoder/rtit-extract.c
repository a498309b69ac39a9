// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * One owner's stream out of a trace of RTIT. Slices stay as they are, byte by byte, but for what
 * leans on another owner's: a LIP that was compressed against the other's last one is written in
 * full. At each cut stands a PSB, for time went by that the stream does not have. A PSB says
 * nothing else, so it is wrong nowhere.
 */
#include <stdlib.h>

#include "decoder/rtit-extract.h"
#include "decoder/rtit.h"
#include "decoder/vm-tracker.h"

/* No packet begins with it (Figure 2). */
#define NO_PACKET 0xff

struct out_stream {
	struct vmpt_owner owner;
	int id;
	u64 size;
	u64 source_end;			/* of the last slice */
	struct vmpt_rtit_last_lip last; /* of who decodes it */
	bool cut;			/* a PSB was put, and no LIP came since */
};

struct extract {
	const struct vmpt_stream *stream;
	const struct vmpt_extract_options *options;
	const struct vmpt_extract_ops *ops;
	void *opaque;
	struct vmpt_splitter *split;
	struct vmpt_decoder *decoder;
	struct vmpt_batch batch;
	size_t item;
	u16 used; /* bytes of the run at work */
	struct out_stream *streams;
	int stream_count, stream_max;
	/* the slice at work */
	struct out_stream *out; /* NULL: written nowhere */
	struct vmpt_extracted done;
	u64 copy_from, copy_to; /* bytes of the source to be written as they are */
};

/* ---- writing ---- */

static int put_bytes(struct extract *x, const u8 *bytes, size_t n)
{
	x->out->size += n;
	return x->ops->write(x->opaque, x->out->id, bytes, n);
}

static int flush(struct extract *x)
{
	u64 from = x->copy_from, to = x->copy_to;

	x->copy_from = x->copy_to = 0;
	return from == to ? 0 : put_bytes(x, x->stream->data + from, to - from);
}

static int copy(struct extract *x, u64 at, u64 size)
{
	int err = 0;

	if (at != x->copy_to || x->copy_from == x->copy_to) {
		err = flush(x);
		x->copy_from = at;
	}
	x->copy_to = at + size;
	return err;
}

static int put_psb(struct extract *x)
{
	static const u8 psb[VMPT_RTIT_PSB_SIZE] = { 0xc0 };

	x->out->cut = true;
	return put_bytes(x, psb, sizeof(psb));
}

static int put_full_lip(struct extract *x, struct vmpt_rtit_packet *pkt, u64 lip)
{
	u8 wire[VMPT_RTIT_SIZE_MAX];
	int err = flush(x), n;

	if (err)
		return err;
	pkt->ip.cnt = 2;
	pkt->ip.zext = 0;
	pkt->ip.lip = lip;
	n = vmpt_rtit_encode(pkt, wire, sizeof(wire));
	x->done.ips_reencoded++;
	return n < 0 ? n : put_bytes(x, wire, (size_t)n);
}

/*
 * The source does not know this LIP, but who decodes the stream would make one up from the
 * owner's last slice. Bytes are lost here: so say it, by one that is no packet.
 */
static int put_loss(struct extract *x)
{
	static const u8 no_packet = NO_PACKET;
	int err = flush(x);

	if (!err)
		err = put_bytes(x, &no_packet, 1);
	if (!err)
		err = put_psb(x);
	x->out->last.valid = x->out->cut = false;
	x->done.lips_unknown++;
	return err;
}

/* ---- packets ---- */

static int lip_packet(struct extract *x, u64 at, const struct vmpt_item *item)
{
	struct out_stream *out = x->out;
	struct vmpt_rtit_packet pkt;
	u64 lip;
	int err;

	err = vmpt_rtit_decode(&pkt, x->stream->data + at, item->size, false);
	if (err)
		return err;
	/* It starts anew here, in the source and for who decodes the stream. */
	if (pkt.kind == VMPT_RTIT_BUFF_OVF)
		out->last.valid = out->cut = false;
	if (item->aux & VMPT_RTIT_AUX_NO_LIP) {
		err = out->last.valid ? put_loss(x) : 0;
		return err ? err : copy(x, at, item->size);
	}
	/* Behind a PSB some may forget the last one, others may not (3.3.9). */
	if (out->cut && pkt.ip.cnt < 2 && !pkt.ip.zext)
		out->last.valid = false;
	out->cut = false;
	if (vmpt_rtit_lip_expand(&out->last, &pkt, &lip) && lip == item->payload)
		return copy(x, at, item->size);
	out->last.lip = item->payload;
	out->last.valid = true;
	return put_full_lip(x, &pkt, item->payload);
}

static int put_item(struct extract *x, u64 at, const struct vmpt_item *item)
{
	unsigned int kind = item->kind - (unsigned int)VMPT_ITEM_RTIT;

	if (!x->out || item->kind == VMPT_ITEM_LOSS)
		return 0;
	if (kind < VMPT_RTIT_KINDS && vmpt_rtit_table[kind].classes & VMPT_RTIT_HAS_LIP)
		return lip_packet(x, at, item);
	return copy(x, at, item->size);
}

/* ---- the walk ---- */

/* 1: there is an item at the cursor, 0: the end, or a negative error. */
static int fill(struct extract *x)
{
	int ret;

	while (x->item >= x->batch.count) {
		ret = vmpt_batch_next(x->decoder, &x->batch);
		if (ret <= 0)
			return ret;
		x->item = 0;
		x->used = 0;
	}
	return 1;
}

/* The packets of [.., @end), which belong to the slice at work. */
static int walk_slice(struct extract *x, u64 end)
{
	struct vmpt_item item;
	u64 at, left;
	int ret;

	for (;;) {
		ret = fill(x);
		if (ret <= 0)
			return ret;
		item = x->batch.items[x->item];
		at = x->batch.base + item.offset + x->used;
		/* A loss of size 0 stands at the start of what follows it. */
		if (at >= end && !(item.kind == VMPT_ITEM_LOSS && at == end && !item.payload))
			return 0;
		left = item.size - x->used;
		if (item.kind == VMPT_ITEM_RTIT_RUN && left > end - at) {
			item.size = (u16)(end - at);
			x->used = (u16)(x->used + item.size);
		} else {
			item.size = (u16)left;
			x->item++;
			x->used = 0;
		}
		ret = put_item(x, at, &item);
		if (ret)
			return ret;
	}
}

static int find_stream(struct extract *x, const struct vmpt_owner *owner)
{
	struct out_stream *s;
	int i;

	x->out = NULL;
	if (owner->kind == VMPT_OWNER_UNKNOWN)
		return 0;
	for (i = 0; i < x->stream_count; i++) {
		x->out = &x->streams[i];
		if (vmpt_owner_same(owner, &x->out->owner))
			return 0;
	}
	x->out = NULL;
	if (x->stream_count == VMPT_EXTRACT_STREAMS_MAX)
		return 0;
	if (x->stream_count == x->stream_max) {
		int max = x->stream_max ? 2 * x->stream_max : 8;

		s = realloc(x->streams, (size_t)max * sizeof(*s));
		if (!s)
			return -VMPT_E_NOMEM;
		x->streams = s;
		x->stream_max = max;
	}
	x->out = &x->streams[x->stream_count];
	*x->out = (struct out_stream){ .owner = *owner, .id = x->stream_count++ };
	return x->ops->stream(x->opaque, x->out->id, owner);
}

static int begin_slice(struct extract *x, const struct vmpt_slice *slice)
{
	u64 head = slice->size < VMPT_RTIT_PSB_SIZE ? slice->size : VMPT_RTIT_PSB_SIZE;
	struct out_stream *out;
	int err;

	memset(&x->done, 0, sizeof(x->done));
	x->done.slice = *slice;
	x->done.stream = -1;
	err = find_stream(x, &slice->owner);
	out = x->out;
	if (err || !out)
		return err;
	x->done.stream = out->id;
	x->done.out_offset = out->size;
	if (out->size && out->source_end == slice->offset)
		return 0;
	if (vmpt_rtit_psb_find(x->stream->data, slice->offset, slice->offset + head) ==
		    slice->offset &&
	    head == VMPT_RTIT_PSB_SIZE)
		return 0;
	/* A RET may lean on a CALL, which another owner may have made (4.2.3.2). */
	x->done.head = x->done.lacks_calls = true;
	return put_psb(x);
}

static int end_slice(struct extract *x)
{
	const struct vmpt_slice *slice = &x->done.slice;
	int err = x->out ? flush(x) : 0;

	if (x->out) {
		x->out->source_end = slice->offset + slice->size;
		x->done.out_size = x->out->size - x->done.out_offset;
	}
	if (!err && x->ops->slice)
		err = x->ops->slice(x->opaque, &x->done);
	return err;
}

static int walk(struct extract *x)
{
	struct vmpt_slice slice;
	int ret, err;

	while ((ret = vmpt_split_next(x->split, &slice)) > 0) {
		err = begin_slice(x, &slice);
		if (!err)
			err = walk_slice(x, slice.offset + slice.size);
		if (!err)
			err = end_slice(x);
		if (err)
			return err;
	}
	return ret;
}

int vmpt_rtit_extract(const struct vmpt_stream *stream, const struct vmpt_extract_options *options,
		      const struct vmpt_extract_ops *ops, void *opaque)
{
	struct extract x = { .stream = stream, .options = options, .ops = ops, .opaque = opaque };
	int err = vmpt_splitter_open(&x.split, stream, &options->decode);

	if (!err)
		err = vmpt_decoder_open(&x.decoder, stream, &options->decode);
	if (!err)
		err = walk(&x);
	vmpt_decoder_close(x.decoder);
	vmpt_splitter_close(x.split);
	free(x.streams);
	return err;
}
