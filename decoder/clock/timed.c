// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * A decoder whose batches have a time for each item: vmpt_clock along with vmpt_batch_next(), or
 * for RTIT the RTIT clock, whose time is the hardware TSC.
 */
#include <stdlib.h>

#include "decoder/clock/state.h"
#include "decoder/vmpt-rtit-clock.h"
#include "util/array.h"

struct vmpt_timed {
	struct vmpt_decoder *dec;
	const struct vmpt_stream *stream;
	/* of PT or RTIT: fill .time of all items, .back and .back_item. */
	void (*time_batch)(struct vmpt_timed *t, struct vmpt_timed_batch *batch);
	struct vmpt_time *time;
	size_t room;
	struct vmpt_clock clock;
	struct vmpt_rtit_clock rtit;
};

/* ---- PT ---- */

static void pt_batch(struct vmpt_timed *t, struct vmpt_timed_batch *batch)
{
	batch->back = (u8)vmpt_clock_batch(&t->clock, t->stream, &batch->batch, t->time,
					   &batch->back_item);
}

/* ---- RTIT ---- */

static struct vmpt_time rtit_time(const struct vmpt_rtit_clock *c)
{
	struct vmpt_time time = { VMPT_TIME_NONE, VMPT_TIME_OPEN, VMPT_TIME_OPEN };
	u32 error = c->error < VMPT_TIME_OPEN ? (u32)c->error : VMPT_TIME_OPEN;

	if (!c->known)
		return time;
	time = (struct vmpt_time){ c->tsc, error, error };
	if (c->lo <= c->tsc && c->tsc - c->lo < time.early)
		time.early = (u32)(c->tsc - c->lo);
	return time;
}

/* @item's packets, one by one; @time is the first one's. */
static bool rtit_item(struct vmpt_timed *t, const struct vmpt_batch *b, size_t i,
		      struct vmpt_time *time)
{
	const struct vmpt_item *item = &b->items[i];
	struct vmpt_packet pkt = {
		.offset = b->base + item->offset,
		.payload = item->payload,
		.size = item->size,
		.kind = item->kind,
		.aux = item->aux,
		.owner = b->owner,
	};
	u32 packets = 1, k;
	bool back = false;

	if (item->kind == VMPT_ITEM_RTIT_RUN) {
		pkt.kind = VMPT_ITEM_RTIT + VMPT_RTIT_TNT;
		pkt.size = 1;
		packets = item->size;
	}
	for (k = 0; k < packets; k++) {
		if (packets > 1)
			pkt.payload = b->data[item->offset + k];
		vmpt_rtit_clock_feed(&t->rtit, &pkt);
		back |= t->rtit.went_back;
		if (!k)
			*time = rtit_time(&t->rtit);
		pkt.offset++;
	}
	return back;
}

static void rtit_batch(struct vmpt_timed *t, struct vmpt_timed_batch *batch)
{
	struct vmpt_clock_counts *counts = &t->clock.counts;
	size_t i;

	for (i = 0; i < batch->batch.count; i++) {
		u8 kind = batch->batch.items[i].kind;

		counts->tscs += kind == VMPT_ITEM_RTIT + VMPT_RTIT_STS;
		counts->mtcs += kind == VMPT_ITEM_RTIT + VMPT_RTIT_MTC;
		counts->cycs += kind == VMPT_ITEM_RTIT_CYC;
		counts->ovfs += kind == VMPT_ITEM_RTIT + VMPT_RTIT_BUFF_OVF;
		if (!rtit_item(t, &batch->batch, i, &t->time[i]))
			continue;
		counts->backs++;
		if (batch->back)
			continue;
		/* An STS is exact; if it is far below the last one, the TSC was written. */
		batch->back = kind == VMPT_ITEM_RTIT + VMPT_RTIT_STS ? VMPT_BACK_TSC_RESET
								     : VMPT_BACK_CONTRADICTION;
		batch->back_item = i;
	}
	counts->contradictions = t->rtit.contradictions;
}

/* ---- both ---- */

static void (*const time_batch[])(struct vmpt_timed *t, struct vmpt_timed_batch *batch) = {
	[VMPT_ISA_PT] = pt_batch,
	[VMPT_ISA_RTIT] = rtit_batch,
};

int vmpt_timed_open(struct vmpt_timed **timed, const struct vmpt_clocks *clocks, size_t stream,
		    const struct vmpt_options *options)
{
	struct vmpt_clock_options how = { 0 };
	struct vmpt_timed *t;
	int ret;

	*timed = NULL;
	t = calloc(1, sizeof(*t));
	if (!t)
		return -VMPT_E_NOMEM;
	t->stream = vmpt_clocks_stream(clocks, stream);
	if (!t->stream) {
		free(t);
		return -VMPT_E_INVAL;
	}
	t->time_batch = time_batch[t->stream->isa];
	ret = vmpt_decoder_open(&t->dec, t->stream, options);
	if (ret) {
		free(t);
		return ret;
	}
	vmpt_clocks_clock_options(clocks, stream, &how);
	vmpt_clock_init(&t->clock, &how);
	vmpt_rtit_clock_init(&t->rtit, how.rates.nominal);
	*timed = t;
	return 0;
}

void vmpt_timed_close(struct vmpt_timed *t)
{
	if (!t)
		return;
	vmpt_decoder_close(t->dec);
	free(t->time);
	free(t);
}

int vmpt_timed_next(struct vmpt_timed *t, struct vmpt_timed_batch *batch)
{
	int ret = vmpt_batch_next(t->dec, &batch->batch);

	batch->back = VMPT_BACK_NOT;
	batch->back_item = 0;
	if (ret <= 0)
		return ret;
	ret = vmpt_reserve(&t->time, &t->room, batch->batch.count);
	if (ret)
		return ret;
	t->time_batch(t, batch);
	batch->time = t->time;
	return 1;
}

const struct vmpt_clock_counts *vmpt_timed_counts(const struct vmpt_timed *timed)
{
	return &timed->clock.counts;
}
