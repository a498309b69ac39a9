// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The contestants: vmpt's splitter and decoder, used as a caller would, and the limits of memory
 * itself. libipt's is in contest-libipt.c.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/bench.h"
#include "decoder/clock/clock.h"
#include "decoder/vmpt-extract.h"
#include "decoder/vmpt-timeline.h"
#include "util/array.h"

/* Bytes between two calls of tick(). */
#define TICK_BYTES (1u << 20)

static struct vmpt_stream stream_of(const struct bench_input *in)
{
	return (struct vmpt_stream){
		.data = in->vmpt.data,
		.size = in->vmpt.size,
		.cpu = -1,
		.tid = -1,
		.isa = (u8)in->isa,
	};
}

static struct vmpt_options options_of(const struct bench_input *in, const struct bench_contest *c)
{
	return (struct vmpt_options){
		.threads = c->threads,
		.runs = (const struct vmpt_run *)in->runs.data,
		.run_count = in->run_count,
	};
}

static int failed(const struct bench_input *in, const struct bench_contest *c, int err)
{
	fprintf(stderr, "vmpt-bench: %s of %s failed: %s\n", c->title, in->name,
		vmpt_strerror(err));
	return -1;
}

/* Call @tick once for every TICK_BYTES passed. */
static inline void tick_at(u64 offset, u64 *next, void (*tick)(void))
{
	if (tick && offset >= *next) {
		tick();
		*next = offset + TICK_BYTES;
	}
}

static int run_split(const struct bench_input *in, const struct bench_contest *c,
		     struct bench_count *out, void (*tick)(void))
{
	struct vmpt_options options = options_of(in, c);
	struct vmpt_stream stream = stream_of(in);
	struct vmpt_splitter *split;
	struct vmpt_slice slice;
	u64 next = 0;
	int ret;

	ret = vmpt_splitter_open(&split, &stream, &options);
	if (ret)
		return failed(in, c, ret);
	while ((ret = vmpt_split_next(split, &slice)) > 0) {
		out->items++;
		out->losses += slice.begin == VMPT_BEGIN_LOSS;
		out->sum += slice.size + slice.owner.kind + slice.owner.vmcs + slice.first_tsc;
		tick_at(slice.offset, &next, tick);
	}
	if (tick)
		tick();
	vmpt_splitter_close(split);
	return ret ? failed(in, c, ret) : 0;
}

/*
 * Read everything of a batch's items: kind, size, payload or full IP, owner. No branches: they
 * would measure the branch predictor, not the decoder.
 */
static void consume(const struct vmpt_batch *batch, unsigned int run_kind, struct bench_count *out)
{
	u64 owner = batch->owner.vmcs + batch->owner.kind;
	u64 sum = 0, extra = 0, losses = 0, run;
	const struct vmpt_item *item = batch->items, *end = item + batch->count;

	for (; item < end; item++) {
		run = item->kind == run_kind;
		sum += item->payload + item->size + item->kind + owner;
		extra += (item->size - 1u) & -run; /* a run's packets minus one */
		losses += item->kind == VMPT_ITEM_LOSS;
	}
	out->sum += sum;
	out->packets += batch->count + extra - losses;
	out->losses += losses;
	out->items += batch->count;
}

static int run_batch(const struct bench_input *in, const struct bench_contest *c,
		     struct bench_count *out, void (*tick)(void))
{
	struct vmpt_options options = options_of(in, c);
	unsigned int run_kind = in->isa == VMPT_ISA_RTIT ? VMPT_ITEM_RTIT_RUN : VMPT_ITEM_RUN;
	struct vmpt_stream stream = stream_of(in);
	struct vmpt_decoder *dec;
	struct vmpt_batch batch;
	u64 next = 0;
	int ret;

	ret = vmpt_decoder_open(&dec, &stream, &options);
	if (ret)
		return failed(in, c, ret);
	while ((ret = vmpt_batch_next(dec, &batch)) > 0) {
		consume(&batch, run_kind, out);
		tick_at(batch.base, &next, tick);
	}
	if (tick)
		tick();
	vmpt_decoder_close(dec);
	return ret ? failed(in, c, ret) : 0;
}

/* The same with a time for each item, which is consumed, too. */
static int run_timed(const struct bench_input *in, const struct bench_contest *c,
		     struct bench_count *out, void (*tick)(void))
{
	/* The synthetic traces' MTCs are 4096 ticks apart; others may differ. */
	const struct vmpt_clock_options how = {
		.rates = { .tsc_num = 512,
			   .tsc_den = 1,
			   .mtc_freq = 3,
			   .has_mtc_freq = true,
			   .nominal = 24 },
	};
	struct vmpt_options options = options_of(in, c);
	struct vmpt_stream stream = stream_of(in);
	struct vmpt_time *times = NULL;
	size_t room = 0, i;
	struct vmpt_decoder *dec;
	struct vmpt_batch batch;
	struct vmpt_clock clock;
	u64 next = 0, sum;
	int ret;

	ret = vmpt_decoder_open(&dec, &stream, &options);
	if (ret)
		return failed(in, c, ret);
	vmpt_clock_init(&clock, &how);
	while ((ret = vmpt_batch_next(dec, &batch)) > 0) {
		ret = vmpt_reserve(&times, &room, batch.count);
		if (ret)
			break;
		vmpt_clock_batch(&clock, &stream, &batch, times, NULL);
		consume(&batch, VMPT_ITEM_RUN, out);
		for (i = 0, sum = 0; i < batch.count; i++)
			sum += times[i].tsc + times[i].late;
		out->sum += sum;
		tick_at(batch.base, &next, tick);
	}
	if (tick)
		tick();
	free(times);
	vmpt_decoder_close(dec);
	return ret ? failed(in, c, ret) : 0;
}

/* A whole timeline: rates and maps are determined first, as `vmpt timeline` does. */
static int run_timeline(const struct bench_input *in, const struct bench_contest *c,
			struct bench_count *out, void (*tick)(void))
{
	struct vmpt_clocks_options how = { .decode = options_of(in, c) };
	struct vmpt_timeline_options options = { .decode = options_of(in, c) };
	struct vmpt_stream stream = stream_of(in);
	const struct vmpt_stream *streams = &stream;
	struct vmpt_timeline *timeline = NULL;
	struct vmpt_clocks *clocks;
	struct vmpt_span span;
	int ret;

	ret = vmpt_clocks_open(&clocks, &streams, 1, &how);
	if (ret)
		return failed(in, c, ret);
	ret = vmpt_timeline_open(&timeline, clocks, &streams, 1, &options);
	while (!ret && (ret = vmpt_timeline_next(timeline, &span)) > 0) {
		out->items++;
		out->losses += span.kind == VMPT_SPAN_LOST;
		out->sum += span.size + span.start.tsc + span.end.tsc + span.exit.reason;
		ret = 0;
	}
	if (tick)
		tick();
	vmpt_timeline_close(timeline);
	vmpt_clocks_close(clocks);
	return ret ? failed(in, c, ret) : 0;
}

static int run_packet(const struct bench_input *in, const struct bench_contest *c,
		      struct bench_count *out, void (*tick)(void))
{
	struct vmpt_options options = options_of(in, c);
	struct vmpt_stream stream = stream_of(in);
	struct vmpt_cursor cursor = { 0 };
	struct vmpt_decoder *dec;
	struct vmpt_packet pkt;
	u64 next = 0, packets = 0, losses = 0, sum = 0;
	int ret;

	ret = vmpt_decoder_open(&dec, &stream, &options);
	if (ret)
		return failed(in, c, ret);
	while ((ret = vmpt_packet_next(dec, &cursor, &pkt)) > 0) {
		packets += pkt.kind != VMPT_ITEM_LOSS;
		losses += pkt.kind == VMPT_ITEM_LOSS;
		sum += pkt.payload + pkt.size + pkt.kind + pkt.owner.vmcs + pkt.owner.kind;
		tick_at(pkt.offset, &next, tick);
	}
	vmpt_decoder_close(dec);
	out->packets = out->items = packets;
	out->losses = losses;
	out->sum = sum;
	return ret ? failed(in, c, ret) : 0;
}

/* ---- one owner's streams ---- */

struct written {
	struct bench_count *out;
	u8 buffer[64 << 10];
};

static int on_stream(void *opaque, int stream, const struct vmpt_owner *owner)
{
	(void)opaque;
	(void)stream;
	(void)owner;
	return 0;
}

/* The minimum cost of a file: all bytes are copied. */
static int on_write(void *opaque, int stream, const u8 *bytes, size_t n)
{
	struct written *w = opaque;
	size_t part;

	w->out->sum += n + (u64)stream;
	for (; n; bytes += part, n -= part) {
		part = n < sizeof(w->buffer) ? n : sizeof(w->buffer);
		memcpy(w->buffer, bytes, part);
		w->out->sum += w->buffer[part - 1];
	}
	return 0;
}

static int on_slice(void *opaque, const struct vmpt_extracted *done)
{
	struct written *w = opaque;

	w->out->items++;
	w->out->losses += done->slice.begin == VMPT_BEGIN_LOSS;
	return 0;
}

static int run_extract(const struct bench_input *in, const struct bench_contest *c,
		       struct bench_count *out, void (*tick)(void))
{
	static const struct vmpt_extract_ops ops = { on_stream, on_write, on_slice };
	struct vmpt_extract_options options = { .decode = options_of(in, c) };
	struct vmpt_stream stream = stream_of(in);
	struct written w = { .out = out };
	int ret = vmpt_extract(&stream, &options, &ops, &w);

	if (tick)
		tick();
	return ret ? failed(in, c, ret) : 0;
}

/* The PSBs, by the C library's search: no decoder can start faster. */
static int run_memmem(const struct bench_input *in, const struct bench_contest *c,
		      struct bench_count *out, void (*tick)(void))
{
	static const u8 pt[16] = { 2, 0x82, 2, 0x82, 2, 0x82, 2, 0x82,
				   2, 0x82, 2, 0x82, 2, 0x82, 2, 0x82 };
	static const u8 rtit[VMPT_RTIT_PSB_SIZE] = { 0xc0 };
	const u8 *psb = in->isa == VMPT_ISA_RTIT ? rtit : pt;
	size_t size = in->isa == VMPT_ISA_RTIT ? sizeof(rtit) : sizeof(pt);
	const u8 *p = in->vmpt.data, *end = p + in->vmpt.size;

	(void)c;
	(void)tick;
	while ((p = memmem(p, (size_t)(end - p), psb, size))) {
		out->items++;
		out->sum += (u64)(p - in->vmpt.data);
		p += size;
	}
	return 0;
}

/* Read every byte and do nothing with it. */
static int run_read(const struct bench_input *in, const struct bench_contest *c,
		    struct bench_count *out, void (*tick)(void))
{
	const u8 *p = in->vmpt.data;
	u64 sum[8] = { 0 };
	size_t at, i;

	(void)c;
	(void)tick;
	for (at = 0; at + 64 <= in->vmpt.size; at += 64)
		for (i = 0; i < 8; i++)
			sum[i] += vmpt_load64(p + at + 8 * i);
	for (i = 0; i < 8; i++)
		out->sum += sum[i];
	return 0;
}

const struct bench_contest bench_contests[BENCH_CONTESTS] = {
	[BENCH_LIBIPT] = { "libipt", "libipt packet decoder", 1, false, bench_run_libipt },
	[BENCH_SPLIT] = { "split", "vmpt index + split", 1, true, run_split },
	[BENCH_BATCH] = { "batch", "vmpt full iteration, runs", 1, true, run_batch },
	[BENCH_TIMED] = { "timed", "vmpt full iteration, times", 1, false, run_timed },
	[BENCH_TIMELINE] = { "timeline", "vmpt timeline", 1, false, run_timeline },
	[BENCH_PACKET] = { "packet", "vmpt full iteration, packets", 1, true, run_packet },
	[BENCH_EXTRACT] = { "extract", "vmpt streams by owner", 1, true, run_extract },
	[BENCH_SPLIT_2] = { "split-2", "vmpt index + split, 2 threads", 2, false, run_split },
	[BENCH_BATCH_2] = { "batch-2", "vmpt full iteration, 2 threads", 2, false, run_batch },
	[BENCH_MEMMEM] = { "memmem", "memmem for PSBs", 1, true, run_memmem },
	[BENCH_READ] = { "read", "memory read", 1, true, run_read },
};
