// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The walk of the stream writer: slices from the splitter, packets from the
 * decoder, side by side. Runs of bytes that stay as they are, are written as
 * one piece.
 */
#include <stdlib.h>

#include "decoder/extract-internal.h"

/* ---- writing ---- */

static int put_bytes(struct extract *x, struct out_stream *out, const u8 *bytes, size_t n)
{
	out->size += n;
	return x->ops->write(x->opaque, out->id, bytes, n);
}

int extract_flush(struct extract *x)
{
	u64 from = x->copy_from, to = x->copy_to;

	x->copy_from = x->copy_to = 0;
	if (from == to || !x->out)
		return 0;
	return put_bytes(x, x->out, x->stream->data + from, to - from);
}

int extract_put(struct extract *x, struct out_stream *out, struct vmpt_pt_packet *pkt)
{
	u8 wire[VMPT_PT_SIZE_MAX];
	int err = out == x->out ? extract_flush(x) : 0;
	int n;

	if (err)
		return err;
	n = vmpt_pt_encode(pkt, wire, sizeof(wire), 0);
	return n < 0 ? n : put_bytes(x, out, wire, (size_t)n);
}

/* The packet stays as it is. */
static int copy(struct extract *x, u64 at, u64 size)
{
	int err = 0;

	if (!x->out)
		return 0;
	if (at != x->copy_to || x->copy_from == x->copy_to) {
		err = extract_flush(x);
		x->copy_from = at;
	}
	x->copy_to = at + size;
	return err;
}

/* ---- streams ---- */

static int find_stream(struct extract *x, const struct vmpt_owner *owner, struct out_stream **out)
{
	struct out_stream *s;
	int i, max;

	*out = NULL;
	if (owner->kind == VMPT_OWNER_UNKNOWN)
		return 0;
	for (i = 0; i < x->stream_count; i++) {
		if (vmpt_owner_same(owner, &x->streams[i].owner)) {
			*out = &x->streams[i];
			return 0;
		}
	}
	if (x->stream_count == VMPT_EXTRACT_STREAMS_MAX)
		return 0;
	if (x->stream_count == x->stream_max) {
		max = x->stream_max ? 2 * x->stream_max : 8;
		s = realloc(x->streams, (size_t)max * sizeof(*s));
		if (!s)
			return -VMPT_E_NOMEM;
		x->streams = s;
		x->stream_max = max;
	}
	s = &x->streams[x->stream_count];
	*s = (struct out_stream){
		.owner = *owner, .id = x->stream_count, .needs_head = true, .cbr = -1, .tsx = -1
	};
	x->stream_count++;
	*out = s;
	return x->ops->stream(x->opaque, s->id, owner);
}

/*
 * Others' timing: MTC and CBR stay in the stream while its PacketEn is 0, CYC as
 * a sum; TSC and TMA are another clock's.
 */
static int others_timing(struct extract *x, const struct vmpt_item *item, const u8 *bytes)
{
	struct out_stream *s;
	int i, err;

	for (i = 0; i < x->stream_count; i++) {
		s = &x->streams[i];
		if (s == x->out || !s->begun || s->needs_head || s->packet_en)
			continue;
		switch (item->kind) {
		case VMPT_PT_CYC:
			s->cycles += item->payload;
			s->others_cycles += item->payload;
			s->others_cyc++;
			continue;
		case VMPT_PT_TSC:
		case VMPT_PT_TMA:
			s->others_tsc++;
			continue;
		case VMPT_PT_CBR:
			s->cbr = (int)item->payload;
			s->others_cbr++;
			break;
		default:
			s->others_mtc++;
		}
		err = put_bytes(x, s, bytes, item->size);
		if (err)
			return err;
	}
	return 0;
}

/* ---- one packet ---- */

static u64 region_end(const struct extract *x, u64 at)
{
	size_t low = 0, high = x->stream->gap_count;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (x->stream->gaps[mid].offset <= at)
			low = mid + 1;
		else
			high = mid;
	}
	return low < x->stream->gap_count ? x->stream->gaps[low].offset : x->stream->size;
}

/* Whether the next packet from @at on, timing, MODE and PAD aside, is TIP.PGE. */
static bool pge_follows(const struct extract *x, u64 at, u64 end)
{
	unsigned int size;
	int kind;

	for (; at < end; at += size) {
		kind = vmpt_head_at(x->stream->data, at, end, &size);
		if (kind < 0)
			return false;
		if (kind != VMPT_PT_PAD && kind != VMPT_PT_MODE_EXEC && kind != VMPT_PT_MODE_TSX &&
		    !(vmpt_pt_table[kind].classes & VMPT_PT_TIMING))
			return kind == VMPT_PT_TIP_PGE;
	}
	return false;
}

/*
 * A PSB+ of the source. Its FUP sets PacketEn; with PacketEn 0 and a TIP.PGE next
 * it is dropped: a decoder would be told twice that tracing begins.
 */
static int on_psb(struct extract *x, u64 at)
{
	u64 end = region_end(x, at);
	struct vmpt_psb_plus psb;

	vmpt_psb_plus_scan(x->stream->data, at, end, &psb);
	x->psb_end = psb.end;
	if (!x->out)
		return 0;
	x->drop_psb_fup = psb.has_fup && !x->out->packet_en && pge_follows(x, psb.end, end);
	x->out->packet_en = psb.has_fup && !x->drop_psb_fup;
	x->out->last_ip = 0;
	x->out->needs_head = false;
	x->out->lacks_calls = false;
	return copy(x, at, vmpt_pt_table[VMPT_PT_PSB].size);
}

/* TIP, TIP.PGE, TIP.PGD, FUP. Copied if the stream's Last IP gives the same IP. */
static int on_ip(struct extract *x, u64 at, const struct vmpt_item *item)
{
	struct vmpt_pt_packet pkt;
	bool fup = item->kind == VMPT_PT_FUP, after_ovf = x->source.after_ovf;

	x->source.after_ovf = false;
	if (!x->out)
		return 0;
	if (fup && at < x->psb_end && x->drop_psb_fup) {
		x->done.fups_dropped++;
		return extract_flush(x);
	}
	if (fup && x->drop_fup) {
		x->drop_fup = false;
		x->done.concealed++;
		return extract_flush(x);
	}
	if (item->kind == VMPT_PT_TIP_PGE || (fup && after_ovf))
		x->out->packet_en = true;
	else if (item->kind == VMPT_PT_TIP_PGD)
		x->out->packet_en = false;
	if (!item->aux)
		return copy(x, at, item->size);
	if (vmpt_pt_decode(&pkt, x->stream->data + at, item->size, 0))
		return -VMPT_E_INVAL;
	if (vmpt_pt_ip_expand(x->out->last_ip, item->aux, pkt.ip.ip) == item->payload) {
		x->out->last_ip = item->payload;
		return copy(x, at, item->size);
	}
	x->out->last_ip = item->payload;
	x->done.ips_reencoded++;
	pkt.ip.ipbytes = vmpt_pt_ip_full(item->payload);
	pkt.ip.ip = vmpt_pt_ip_payload(item->payload, (unsigned int)pkt.ip.ipbytes);
	return extract_put(x, x->out, &pkt);
}

/* Conceal: whether the packet is dropped or written in another form. */
static bool conceal(struct extract *x, const struct vmpt_item *item, int *err)
{
	struct vmpt_pt_packet pip = { .kind = VMPT_PT_PIP };
	unsigned int cfe = item->payload & 0x1f;

	*err = 0;
	switch (item->kind) {
	case VMPT_PT_VMCS:
		break;
	case VMPT_PT_PIP:
		if (!(item->payload & 1))
			return false;
		pip.pip.cr3 = item->payload & ~1ULL;
		*err = extract_put(x, x->out, &pip);
		break;
	case VMPT_PT_EVD:
		if (item->aux != VMPT_EVD_VMXQ && item->aux != VMPT_EVD_VMXR)
			return false;
		break;
	case VMPT_PT_CFE:
		if (cfe != VMPT_CFE_VMENTRY && cfe != VMPT_CFE_VMEXIT &&
		    cfe != VMPT_CFE_VMEXIT_INTR)
			return false;
		/* With BranchEn the exit has its FUP anyway (Table 33-53). */
		if (item->payload & 0x80)
			x->drop_fup = cfe == VMPT_CFE_VMENTRY || !x->out->packet_en;
		break;
	default:
		return false;
	}
	x->done.concealed++;
	return true;
}

static void note(struct extract *x, const struct vmpt_item *item)
{
	if (item->kind == VMPT_PT_PIP)
		x->source.paging =
			(struct paging){ true, item->payload & 1, item->payload & ~1ULL };
	else if (item->kind == VMPT_PT_MODE_EXEC)
		x->source.exec = (int)item->payload;
	else if (item->kind == VMPT_PT_MODE_TSX)
		x->source.tsx = (int)item->payload;
	else if (item->kind == VMPT_PT_CBR)
		x->source.cbr = (int)item->payload;
}

/* Whether a BBP of this slice is open behind @item. */
static bool block_after(const struct extract *x, const struct vmpt_item *item, const u8 *bytes)
{
	u16 i;

	if (item->kind == VMPT_PT_BBP)
		return true;
	if (!x->in_block || item->kind == VMPT_ITEM_LOSS)
		return false;
	if (item->kind != VMPT_ITEM_RUN)
		return !(vmpt_pt_table[item->kind].classes & VMPT_PT_ENDS_BLOCK);
	for (i = 0; i < item->size; i++)
		if (bytes[i])
			return false; /* a TNT */
	return true;
}

static int on_item(struct extract *x, u64 at, const struct vmpt_item *item)
{
	const u8 *bytes = x->stream->data + at;
	bool timing =
		item->kind < VMPT_PT_KINDS && vmpt_pt_table[item->kind].classes & VMPT_PT_TIMING;
	int err = 0;

	note(x, item);
	x->in_block = block_after(x, item, bytes);
	if (timing && x->stream_count > (x->out ? 1 : 0)) {
		err = others_timing(x, item, bytes);
		if (err)
			return err;
	}
	/* The packets of the group at the slice's head: the return stands for them. */
	if (at < x->group_end && !timing && item->kind != VMPT_ITEM_RUN)
		return extract_flush(x);
	if (x->options->conceal && x->out && conceal(x, item, &err))
		return err ? err : extract_flush(x);

	switch (item->kind) {
	case VMPT_PT_TIP:
	case VMPT_PT_TIP_PGE:
	case VMPT_PT_TIP_PGD:
	case VMPT_PT_FUP:
		return on_ip(x, at, item);
	case VMPT_PT_PSB:
		return on_psb(x, at);
	case VMPT_PT_OVF:
		x->source.after_ovf = true;
		if (x->out)
			x->out->packet_en = false;
		break;
	case VMPT_PT_BIP:
		if (!x->in_block) {
			x->done.dropped++;
			return extract_flush(x);
		}
		break;
	case VMPT_PT_CBR:
		if (x->out)
			x->out->cbr = (int)item->payload;
		break;
	case VMPT_PT_MODE_TSX:
		if (x->out)
			x->out->tsx = (int)item->payload;
		break;
	case VMPT_ITEM_LOSS:
		return 0;
	}
	return copy(x, at, item->size);
}

/* ---- one slice ---- */

/* What the group at @at says; a group is walked once, however many slices it makes. */
static void read_group(struct extract *x, u64 at, struct vmpt_group *g)
{
	const u8 *p = x->stream->data + at;
	struct vmpt_pt_packet pkt;

	if (at >= x->alone) {
		vmpt_group_scan(x->stream->data, at, region_end(x, at), g);
		if (!g->bound)
			x->alone = g->end;
	} else {
		memset(g, 0, sizeof(*g));
	}
	/* Not bound: only the packet that begins the slice counts. */
	if (!g->bound && !vmpt_pt_decode(&pkt, p, x->stream->size - at, 0)) {
		g->pips = pkt.kind == VMPT_PT_PIP;
		g->cr3 = pkt.pip.cr3;
		g->nr = g->pips && pkt.pip.nr;
	}
}

/* The group that begins the slice: what it says now, what follows it later. */
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
		err = extract_head(x, out, &x->group_paging);
	if (!err)
		err = extract_cycles(x, out);
	if (g.bound)
		x->group_end = g.end + g.last_size;
	return err;
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
	err = find_stream(x, &slice->owner, &x->out);
	if (err || !x->out)
		return err;

	x->done.stream = x->out->id;
	x->done.out_offset = x->out->size;
	x->done.lacks_calls = x->out->lacks_calls;
	x->done.others_mtc = x->out->others_mtc;
	x->done.others_cbr = x->out->others_cbr;
	x->done.others_cyc = x->out->others_cyc;
	x->done.others_cycles = x->out->others_cycles;
	x->done.others_tsc = x->out->others_tsc;
	x->out->others_mtc = x->out->others_cbr = x->out->others_tsc = 0;
	x->out->others_cyc = x->out->others_cycles = 0;
	x->out->begun = true;
	if (slice->by_group)
		return begin_by_group(x, slice->offset);
	psb = vmpt_psb_find(data, slice->offset,
			    slice->offset + (slice->size < 16 ? slice->size : 16)) == slice->offset;
	if (x->out->needs_head && !psb)
		err = extract_head(x, x->out, &unknown);
	return err ? err : extract_cycles(x, x->out);
}

/* The packet that ends the group: its IP is where the owner goes on. */
static int finish_group(struct extract *x, const struct vmpt_item *item)
{
	bool go = item->kind != VMPT_PT_TIP_PGD && item->aux;
	int err = extract_flush(x);

	x->group_end = 0;
	x->source.after_ovf = false;
	if (err)
		return err;
	return extract_return(x, x->out, &x->group_paging, go ? &item->payload : NULL);
}

static void on_lost(struct extract *x)
{
	int i;

	for (i = 0; i < x->stream_count; i++)
		x->streams[i].needs_head = true;
	x->source.exec = x->source.tsx = x->source.cbr = -1;
	x->source.paging.known = false;
}

static int end_slice(struct extract *x, const struct vmpt_slice *next)
{
	struct vmpt_pt_packet bep = { .kind = VMPT_PT_BEP };
	int err = extract_flush(x);

	/* Only in a damaged trace: a block does not reach over a transition. */
	if (!err && x->out && next && x->in_block)
		err = extract_put(x, x->out, &bep);
	if (!err && x->out && next)
		err = extract_leave(x, x->out, &x->done.left);
	if (x->out)
		x->done.out_size = x->out->size - x->done.out_offset;
	if (x->out && next && next->begin == VMPT_BEGIN_DOUBT)
		x->out->lacks_calls = true;
	if (x->done.slice.begin == VMPT_BEGIN_LOSS)
		on_lost(x);
	if (!err && x->ops->slice)
		err = x->ops->slice(x->opaque, &x->done);
	return err;
}

/* A place among the decoder's items. */
struct walk {
	struct vmpt_decoder *decoder;
	struct vmpt_batch batch;
	size_t i;
	u16 used; /* bytes of the run at work */
	bool ended;
};

static int walk_fill(struct walk *w)
{
	int ret;

	while (!w->ended && w->i >= w->batch.count) {
		ret = vmpt_batch_next(w->decoder, &w->batch);
		if (ret < 0)
			return ret;
		w->ended = !ret;
		w->i = 0;
		w->used = 0;
	}
	return 0;
}

/* All items of [.., @end), which belong to the slice at work. */
static int walk_slice(struct extract *x, struct walk *w, u64 end)
{
	struct vmpt_item item;
	u64 at, left;
	int err;

	for (;;) {
		err = walk_fill(w);
		if (err || w->ended)
			return err;
		item = w->batch.items[w->i];
		at = w->batch.base + item.offset + w->used;
		/* A loss of size 0 stands at the start of what follows it. */
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
			err = on_item(x, at, &item);
		if (err)
			return err;
	}
}

static int walk_all(struct extract *x, struct vmpt_splitter *split, struct walk *w)
{
	struct vmpt_slice slice, next;
	int more = vmpt_split_next(split, &slice);
	int err;

	while (more > 0) {
		more = vmpt_split_next(split, &next);
		if (more < 0)
			break;
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

int vmpt_extract(const struct vmpt_stream *stream, const struct vmpt_extract_options *options,
		 const struct vmpt_extract_ops *ops, void *opaque)
{
	static const struct vmpt_extract_options defaults;
	struct vmpt_splitter *split = NULL;
	struct walk w = { 0 };
	struct extract *x = calloc(1, sizeof(*x));
	int err;

	if (!x)
		return -VMPT_E_NOMEM;
	x->stream = stream;
	x->options = options ? options : &defaults;
	x->ops = ops;
	x->opaque = opaque;
	x->source = (struct source_state){ .exec = -1, .tsx = -1, .cbr = -1 };
	err = vmpt_splitter_open(&split, stream, &x->options->decode);
	if (!err)
		err = vmpt_decoder_open(&w.decoder, stream, &x->options->decode);
	if (!err)
		err = walk_all(x, split, &w);
	vmpt_decoder_close(w.decoder);
	vmpt_splitter_close(split);
	free(x->streams);
	free(x);
	return err;
}
