// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * One owner's stream from a trace of RTIT. Slices are copied byte by byte, except where they depend
 * on another owner's: a LIP compressed against the other's last one is written in full. A PSB is
 * put at each cut, since the stream lacks the time between. A PSB has no other meaning, so it is
 * never wrong.
 */
#include <stdlib.h>

#include "decoder/rtit/rtit.h"
#include "decoder/streams/streams.h"
#include "util/array.h"

/* No packet begins with it (Figure 2). */
#define NO_PACKET 0xff

struct rtit_out_stream {
	struct vmpt_owner owner;
	int id;
	u64 size;
	u64 source_end;			/* of the last slice */
	struct vmpt_rtit_last_lip last; /* at its end, as decoded from the stream */
	bool cut;			/* others came between, no LIP since */
	bool settled;			/* from here on Last LIP is the same as the source's */
};

struct rtit_extract {
	const struct vmpt_extract_options *options;
	const struct vmpt_stream *stream;
	const struct vmpt_extract_ops *ops;
	void *opaque;
	struct vmpt_splitter *split;
	bool cycle_acc;
	struct rtit_out_stream *streams;
	int stream_count;
	struct vmpt_rtit_last_lip last; /* at the end of the slice before, in the source */
	bool lost;			/* that slice was a loss */
	/* the current slice */
	struct rtit_out_stream *out; /* NULL: not written */
	struct vmpt_extracted done;
};

/* ---- writing ---- */

static int put_bytes(struct rtit_extract *x, const u8 *bytes, size_t n)
{
	x->out->size += n;
	return x->ops->write(x->opaque, x->out->id, bytes, n);
}

static int copy(struct rtit_extract *x, u64 from, u64 to)
{
	return from == to ? 0 : put_bytes(x, x->stream->data + from, to - from);
}

static int put_psb(struct rtit_extract *x)
{
	static const u8 psb[VMPT_RTIT_PSB_SIZE] = { 0xc0 };

	return put_bytes(x, psb, sizeof(psb));
}

static int put_full_lip(struct rtit_extract *x, struct vmpt_rtit_packet *pkt, u64 lip)
{
	u8 wire[VMPT_RTIT_SIZE_MAX];
	int n;

	pkt->ip.cnt = 2;
	pkt->ip.zext = 0;
	pkt->ip.lip = lip;
	n = vmpt_rtit_encode(pkt, wire, sizeof(wire));
	x->done.ips_reencoded++;
	return n < 0 ? n : put_bytes(x, wire, (size_t)n);
}

/*
 * The source does not have this LIP, but a decoder of the stream would derive a wrong one from the
 * owner's last slice. Mark the loss of bytes with a byte that is no packet.
 */
static int put_loss(struct rtit_extract *x)
{
	static const u8 no_packet = NO_PACKET;
	int err = put_bytes(x, &no_packet, 1);

	if (!err)
		err = put_psb(x);
	x->done.lips_unknown++;
	return err;
}

/* ---- the first LIP of a slice ---- */

/*
 * The packet at @at is the first with a LIP since a cut or a loss: after it Last LIP is the same
 * for the source and for a decoder of the stream, or neither has one.
 */
static int first_lip(struct rtit_extract *x, struct vmpt_rtit_packet *pkt, u64 at)
{
	bool leans = pkt->ip.cnt < 2 && !pkt->ip.zext, cut = x->out->cut, known;
	struct vmpt_rtit_last_lip last = { 0 };
	u64 lip;
	int err = 0;

	/* Last LIP starts again here, in the source and for a decoder of the stream. */
	if (leans && pkt->kind != VMPT_RTIT_BUFF_OVF)
		last = x->last;
	known = vmpt_rtit_lip_expand(&last, pkt, &lip);
	if (!known && pkt->kind != VMPT_RTIT_BUFF_OVF && x->out->last.valid)
		err = put_loss(x);
	x->out->settled = true;
	x->out->cut = false;
	if (err)
		return err;
	/* After a PSB some decoders clear the last LIP, others do not (3.3.9). */
	if (known && leans && cut)
		return put_full_lip(x, pkt, lip);
	return copy(x, at, at + pkt->size);
}

/* Write a slice's bytes up to and including its first LIP packet. Sets the start of the rest. */
static int put_until_lip(struct rtit_extract *x, u64 *rest)
{
	const struct vmpt_slice *slice = &x->done.slice;
	u64 at = slice->offset, end = at + slice->size;
	struct vmpt_rtit_packet pkt;
	int err = 0;

	for (*rest = at; at < end && !x->out->settled && !err; at = *rest) {
		err = vmpt_rtit_decode(&pkt, x->stream->data + at, end - at, x->cycle_acc);
		if (err)
			return err;
		*rest = at + pkt.size;
		if (vmpt_rtit_table[pkt.kind].classes & VMPT_RTIT_HAS_LIP)
			err = first_lip(x, &pkt, at);
		else
			err = copy(x, at, *rest);
	}
	return err;
}

static int put_slice(struct rtit_extract *x)
{
	u64 end = x->done.slice.offset + x->done.slice.size, rest;
	int err;

	if (!x->out)
		return 0;
	err = put_until_lip(x, &rest);
	return err ? err : copy(x, rest, end);
}

/* ---- the walk ---- */

static int find_stream(struct rtit_extract *x, const struct vmpt_owner *owner)
{
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
	if (vmpt_grow(&x->streams, (size_t)x->stream_count))
		return -VMPT_E_NOMEM;
	x->out = &x->streams[x->stream_count];
	*x->out = (struct rtit_out_stream){ .owner = *owner, .id = x->stream_count++ };
	return x->ops->stream(x->opaque, x->out->id, owner);
}

static int begin_slice(struct rtit_extract *x, const struct vmpt_slice *slice)
{
	u64 head = slice->size < VMPT_RTIT_PSB_SIZE ? slice->size : VMPT_RTIT_PSB_SIZE;
	struct rtit_out_stream *out;
	int err;

	memset(&x->done, 0, sizeof(x->done));
	x->done.slice = *slice;
	x->done.stream = -1;
	x->out = NULL;
	err = x->options->wanted ? x->options->wanted(x->options->wanted_opaque, slice) : 1;
	if (err <= 0)
		return err;
	err = find_stream(x, &slice->owner);
	out = x->out;
	if (err || !out)
		return err;
	x->done.stream = out->id;
	x->done.out_offset = out->size;
	if (x->lost)
		out->settled = false;
	if (out->size && out->source_end == slice->offset)
		return 0;
	/* Its own PSB serves as well as an added one: LIPs may depend on those before it. */
	out->settled = false;
	out->cut = true;
	if (vmpt_rtit_psb_find(x->stream->data, slice->offset, slice->offset + head) ==
		    slice->offset &&
	    head == VMPT_RTIT_PSB_SIZE)
		return 0;
	/* A RET may depend on a CALL that another owner made (4.2.3.2). */
	x->done.head = x->done.lacks_calls = true;
	return put_psb(x);
}

static int end_slice(struct rtit_extract *x)
{
	const struct vmpt_slice *slice = &x->done.slice;

	x->last = *vmpt_rtit_split_last_lip(x->split);
	x->lost = slice->begin == VMPT_BEGIN_LOSS;
	if (x->out) {
		x->out->source_end = slice->offset + slice->size;
		x->done.out_size = x->out->size - x->done.out_offset;
		/* Without a LIP in the slice the stream's last one remains. */
		if (x->out->settled)
			x->out->last = x->last;
	}
	return x->ops->slice ? x->ops->slice(x->opaque, &x->done) : 0;
}

static int walk(struct rtit_extract *x)
{
	struct vmpt_slice slice;
	int ret, err;

	while ((ret = vmpt_split_next(x->split, &slice)) > 0) {
		err = begin_slice(x, &slice);
		if (!err)
			err = put_slice(x);
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
	const struct vmpt_options *o = &options->decode;
	struct rtit_extract x = {
		.stream = stream, .options = options, .ops = ops, .opaque = opaque
	};
	int err = vmpt_splitter_open(&x.split, stream, o);

	x.cycle_acc = vmpt_rtit_has_cycles(stream, o);
	if (!err)
		err = walk(&x);
	vmpt_splitter_close(x.split);
	free(x.streams);
	return err;
}
