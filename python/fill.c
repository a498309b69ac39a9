// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* See fill.h. */
#include <stdio.h>
#include <stdlib.h>

#include "fill.h"

struct vmpt_py_reader {
	struct vmpt_decoder *dec;
	struct vmpt_timed *timed; /* instead of dec */
	struct vmpt_cursor at;
	const struct vmpt_time *time; /* of at.batch's items; NULL: not known */
	int err;		      /* 1: go on, 0: the end, or a negative error */
};

int vmpt_py_reader_open(struct vmpt_py_reader **reader, const struct vmpt_stream *stream,
			const struct vmpt_clocks *clocks, size_t i,
			const struct vmpt_options *options)
{
	struct vmpt_py_reader *r = calloc(1, sizeof(*r));
	int ret;

	if (!r)
		return -VMPT_E_NOMEM;
	r->err = 1;
	ret = clocks ? vmpt_timed_open(&r->timed, clocks, i, options)
		     : vmpt_decoder_open(&r->dec, stream, options);
	if (ret) {
		free(r);
		r = NULL;
	}
	*reader = r;
	return ret;
}

void vmpt_py_reader_close(struct vmpt_py_reader *r)
{
	if (!r)
		return;
	vmpt_timed_close(r->timed);
	vmpt_decoder_close(r->dec);
	free(r);
}

/* Whether there is an item at r->at. */
static bool ready(struct vmpt_py_reader *r)
{
	struct vmpt_timed_batch timed;

	while (r->err > 0 && r->at.item >= r->at.batch.count) {
		r->at.item = 0;
		r->at.byte = 0;
		r->at.batch.count = 0;
		if (r->timed) {
			r->err = vmpt_timed_next(r->timed, &timed);
			if (r->err > 0) {
				r->at.batch = timed.batch;
				r->time = timed.time;
			}
		} else {
			r->err = vmpt_batch_next(r->dec, &r->at.batch);
		}
	}
	return r->err > 0;
}

/* The rest of a run of which packets were read. */
static void cut_run(struct vmpt_item *item, u32 *byte)
{
	item->offset += *byte;
	item->size = (u16)(item->size - *byte);
	*byte = 0;
}

long vmpt_py_items(struct vmpt_py_reader *r, size_t n, struct vmpt_item *items,
		   struct vmpt_owner *owners, struct vmpt_time *times, u64 *offsets, u64 *base)
{
	const struct vmpt_batch *b = &r->at.batch;
	size_t done = 0, i, count;
	u64 add;

	while (done < n && ready(r)) {
		const struct vmpt_item *from = b->items + r->at.item;

		if (!done)
			*base = b->base;
		add = b->base - *base;
		/* The last one has the largest offset. */
		if (add + b->items[b->count - 1].offset > 0xffffffff)
			break;
		count = b->count - r->at.item;
		if (count > n - done)
			count = n - done;
		memcpy(items + done, from, count * sizeof(*items));
		if (r->at.byte)
			cut_run(items + done, &r->at.byte);
		if (add)
			for (i = 0; i < count; i++)
				items[done + i].offset += (u32)add;
		if (offsets)
			for (i = 0; i < count; i++)
				offsets[done + i] = *base + items[done + i].offset;
		if (owners)
			for (i = 0; i < count; i++)
				owners[done + i] = b->owner;
		if (times)
			memcpy(times + done, r->time + r->at.item, count * sizeof(*times));
		done += count;
		r->at.item += count;
	}
	return done ? (long)done : r->err < 0 ? r->err : 0;
}

long vmpt_py_packets(struct vmpt_py_reader *r, size_t n, struct vmpt_packet *packets,
		     struct vmpt_time *times)
{
	size_t done = 0;

	while (done < n && ready(r)) {
		if (r->time)
			times[done] = r->time[r->at.item];
		/* There is an item, so no batch is read here. */
		vmpt_packet_next(r->dec, &r->at, packets + done);
		done++;
	}
	return done ? (long)done : r->err < 0 ? r->err : 0;
}

long vmpt_py_slices(struct vmpt_splitter *split, size_t n, struct vmpt_slice *slices)
{
	size_t done = 0;
	int ret = 1;

	while (done < n && (ret = vmpt_split_next(split, slices + done)) > 0)
		done++;
	return done ? (long)done : ret;
}

long vmpt_py_spans(struct vmpt_timeline *timeline, size_t n, struct vmpt_span *spans)
{
	size_t done = 0;
	int ret = 1;

	while (done < n && (ret = vmpt_timeline_next(timeline, spans + done)) > 0)
		done++;
	return done ? (long)done : ret;
}

/* ---- what was executed ---- */

struct vmpt_py_flow {
	struct vmpt_flow *flow;
	struct vmpt_flow_batch batch;
	size_t at; /* blocks of it that were returned */
	bool more; /* there are others, or it is a gap that was not returned */
	int err;   /* 1: go on, 0: the end, or a negative error */
};

int vmpt_py_flow_open(struct vmpt_py_flow **flow, const struct vmpt_stream *stream,
		      struct vmpt_code *code, const struct vmpt_flow_options *options)
{
	struct vmpt_py_flow *f = calloc(1, sizeof(*f));
	int ret;

	if (!f)
		return -VMPT_E_NOMEM;
	f->err = 1;
	ret = vmpt_flow_open(&f->flow, stream, code, options);
	if (ret) {
		free(f);
		f = NULL;
	}
	*flow = f;
	return ret;
}

void vmpt_py_flow_close(struct vmpt_py_flow *f)
{
	if (!f)
		return;
	vmpt_flow_close(f->flow);
	free(f);
}

struct vmpt_flow *vmpt_py_flow_of(struct vmpt_py_flow *f)
{
	return f->flow;
}

static bool batch_ready(struct vmpt_py_flow *f)
{
	if (!f->more && f->err > 0) {
		f->err = vmpt_flow_next(f->flow, &f->batch);
		f->more = f->err > 0;
		f->at = 0;
	}
	return f->more;
}

int vmpt_py_flow_next(struct vmpt_py_flow *f, struct vmpt_flow_batch *batch)
{
	if (!batch_ready(f))
		return f->err;
	*batch = f->batch;
	if (batch->kind == VMPT_FLOW_BLOCKS) {
		batch->blocks += f->at;
		batch->count -= f->at;
	}
	f->more = false;
	return 1;
}

/* As many of the batch's blocks as there is room for. */
static void take_batch(struct vmpt_py_flow *f, struct vmpt_py_batch *to, u32 first, size_t room,
		       u32 *ids)
{
	const struct vmpt_flow_batch *b = &f->batch;
	struct vmpt_flow_block block;
	size_t n = b->count - f->at;

	*to = (struct vmpt_py_batch){ .offset = b->offset,
				      .end = b->end,
				      .first = first,
				      .kind = b->kind,
				      .reason = b->reason };
	f->more = false;
	if (b->kind != VMPT_FLOW_BLOCKS) {
		to->ip = b->ip;
		to->space = b->space;
		return;
	}
	f->more = n > room;
	n = f->more ? room : n;
	memcpy(ids, b->blocks + f->at, n * sizeof(*ids));
	f->at += n;
	to->count = (u32)n;
	to->last = b->last;
	to->space = ~0u;
	if (f->more) {
		/* A block that is not the last ran completely. */
		vmpt_flow_block(f->flow, ids[n - 1], &block);
		to->last = block.instructions;
	}
}

long vmpt_py_flow_fill(struct vmpt_py_flow *f, size_t n, struct vmpt_py_batch *batches,
		       size_t ids_n, u32 *ids)
{
	size_t done = 0, used = 0;

	while (done < n && batch_ready(f) && (f->batch.kind != VMPT_FLOW_BLOCKS || used < ids_n)) {
		take_batch(f, batches + done, (u32)used, ids_n - used, ids + used);
		used += batches[done++].count;
	}
	return done ? (long)done : f->err < 0 ? f->err : 0;
}

void vmpt_py_flow_blocks(struct vmpt_py_flow *f, u32 from, u32 n, struct vmpt_flow_block *blocks,
			 u64 *whole, u64 *instructions)
{
	u32 i;

	for (i = 0; i < n; i++) {
		u64 a, b;

		vmpt_flow_block(f->flow, from + i, blocks + i);
		vmpt_flow_executed(f->flow, from + i, &a, &b);
		if (whole)
			whole[i] = a;
		if (instructions)
			instructions[i] = b;
	}
}

static size_t rtit_text(const struct vmpt_stream *stream, const struct vmpt_packet *p, char *buf,
			size_t len)
{
	struct vmpt_rtit_packet pkt;

	if (p->kind == VMPT_ITEM_RTIT_CYC)
		return (size_t)snprintf(buf, len, "CYC %llu", (unsigned long long)p->payload);
	if (vmpt_rtit_decode(&pkt, stream->data + p->offset, stream->size - p->offset, false))
		return (size_t)snprintf(buf, len, "%s", vmpt_rtit_name(p->kind - VMPT_ITEM_RTIT));
	return vmpt_rtit_print(&pkt, buf, len);
}

size_t vmpt_py_text(const struct vmpt_stream *stream, const struct vmpt_packet *p, char *buf,
		    size_t len)
{
	unsigned int block = p->kind == VMPT_PT_BIP ? VMPT_PT_BLOCK(p->size == 5, 0) : 0;
	struct vmpt_pt_packet pkt;

	if (p->kind == VMPT_ITEM_LOSS)
		return (size_t)snprintf(buf, len, "LOST %llu bytes: %s",
					(unsigned long long)p->payload, vmpt_strerror(p->aux));
	if (p->offset >= stream->size)
		return (size_t)snprintf(buf, len, "?");
	if (stream->isa == VMPT_ISA_RTIT)
		return rtit_text(stream, p, buf, len);
	if (vmpt_pt_decode(&pkt, stream->data + p->offset, stream->size - p->offset, block))
		return (size_t)snprintf(buf, len, "%s", vmpt_pt_name(p->kind));
	/* Which items are reserved depends on the block's type, which a packet alone does not give.
	 */
	if (p->kind == VMPT_PT_BIP)
		pkt.flags = 0;
	switch (pkt.kind) {
	case VMPT_PT_TIP:
	case VMPT_PT_TIP_PGE:
	case VMPT_PT_TIP_PGD:
	case VMPT_PT_FUP:
		if (!pkt.ip.ipbytes)
			return (size_t)snprintf(buf, len, "%s no IP 000b", vmpt_pt_name(pkt.kind));
		return (size_t)snprintf(buf, len, "%s 0x%llx %u%u%ub", vmpt_pt_name(pkt.kind),
					(unsigned long long)p->payload,
					(unsigned int)(pkt.ip.ipbytes >> 2 & 1),
					(unsigned int)(pkt.ip.ipbytes >> 1 & 1),
					(unsigned int)(pkt.ip.ipbytes & 1));
	default:
		return vmpt_pt_print(&pkt, buf, len);
	}
}

/* With the right number these calls refuse what else they are given. */
int vmpt_py_version(void)
{
	struct vmpt_names_options options;
	struct vmpt_names *names = NULL;
	struct vmpt_clocks *clocks = NULL;
	struct vmpt_trace *trace = NULL;
	const struct vmpt_stream rtit = { .isa = VMPT_ISA_RTIT };
	struct vmpt_image *image = NULL;
	struct vmpt_flow *flow = NULL;
	int ret[6];
	size_t i;

	memset(&options, 0, sizeof(options));
	ret[0] = vmpt_trace_open_perf(&trace, "", NULL);
	ret[1] = vmpt_clocks_open(&clocks, NULL, 0, NULL);
	ret[2] = vmpt_timeline_open(NULL, NULL, NULL, 0, NULL);
	ret[3] = vmpt_names_open(&names, &options);
	ret[4] = vmpt_image_open(&image, "", NULL, NULL);
	ret[5] = vmpt_flow_open(&flow, &rtit, NULL, NULL);
	vmpt_names_close(names);
	for (i = 0; i < VMPT_ARRAY_SIZE(ret); i++)
		if (ret[i] == -VMPT_E_VERSION)
			return ret[i];
	return 0;
}
