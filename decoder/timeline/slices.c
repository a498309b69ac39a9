// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The slices of one stream for its lane, from the same decoder as the items. At the end of a chunk
 * an owner may be in doubt: then items are held back until later packets decide. Where that takes
 * more than LANE_HELD items, or the ring is full, a splitter runs ahead.
 */
#include <stdlib.h>
#include <string.h>

#include "decoder/pt/pt.h"
#include "decoder/timeline/timeline.h"
#include "util/array.h"

/* ---- batches ---- */

/* @batch with a copy of its items, which outlives the decoder's next batch. 0 or -VMPT_E_NOMEM. */
static int copy(struct lane_held *to, const struct vmpt_batch *batch)
{
	size_t bytes = batch->count * sizeof(*to->items);

	to->items = malloc(bytes + 1);
	if (!to->items)
		return -VMPT_E_NOMEM;
	memcpy(to->items, batch->items, bytes);
	to->batch = *batch;
	to->batch.items = to->items;
	return 0;
}

static void use(struct timeline_lane *lane, const struct lane_held *held)
{
	lane->batch = held->batch;
	lane->copy = held->items;
}

static int hold_current(struct timeline_lane *lane)
{
	struct lane_held held;
	int ret = copy(&held, &lane->batch);

	if (!ret)
		use(lane, &held);
	return ret;
}

/* Decode one more batch, after all that are held back. 0 or an error. */
static int hold_next(struct timeline_lane *lane)
{
	struct vmpt_batch batch;
	int ret;

	if (lane->held_first)
		memmove(lane->held, lane->held + lane->held_first,
			(lane->held_count - lane->held_first) * sizeof(*lane->held));
	lane->held_count -= lane->held_first;
	lane->held_first = 0;
	ret = vmpt_grow(&lane->held, lane->held_count);
	if (ret)
		return ret;
	ret = vmpt_batch_next(lane->dec, &batch);
	lane->decoded |= !ret;
	if (ret <= 0)
		return ret;
	ret = copy(&lane->held[lane->held_count], &batch);
	if (ret)
		return ret;
	lane->held_count++;
	lane->held_items += batch.count;
	return 0;
}

int vmpt_lane_next_batch(struct timeline_lane *lane)
{
	const struct lane_held *h;
	int ret;

	free(lane->copy);
	lane->copy = NULL;
	if (lane->held_first < lane->held_count) {
		h = &lane->held[lane->held_first++];
		use(lane, h);
		lane->held_items -= h->batch.count;
		return 1;
	}
	ret = lane->decoded ? 0 : vmpt_batch_next(lane->dec, &lane->batch);
	lane->decoded |= !ret;
	return ret;
}

void vmpt_lane_free_batches(struct timeline_lane *lane)
{
	for (; lane->held_first < lane->held_count; lane->held_first++)
		free(lane->held[lane->held_first].items);
	free(lane->held);
	free(lane->copy);
}

/* ---- slices ---- */

/* 1: @slice is filled, 0: nothing is known of it, or there is none; or an error. */
static int next_slice(struct timeline_lane *lane, struct vmpt_slice *slice, bool *whole)
{
	int ret;

	if (lane->split) {
		ret = vmpt_split_next(lane->split, slice);
		*whole = true;
	} else {
		ret = vmpt_pt_decoder_slice(lane->dec, slice, whole);
	}
	lane->slices += ret > 0 && *whole;
	return ret;
}

/* A splitter for the slices from the current place on; their items are decoded as before. */
static int start_splitter(struct timeline_lane *lane)
{
	struct vmpt_slice slice;
	u64 i;
	int ret = vmpt_splitter_open(&lane->split, lane->stream, &lane->decode);

	for (i = 0; ret >= 0 && i < lane->slices; i++)
		ret = vmpt_split_next(lane->split, &slice);
	return ret < 0 ? ret : vmpt_pt_decoder_slices(lane->dec, false);
}

/* Decode more, for what it says about slices. 0 or an error. */
static int look_ahead(struct timeline_lane *lane)
{
	int ret;

	if (lane->item >= lane->batch.count) {
		ret = vmpt_lane_have_item(lane);
		return ret < 0 ? ret : 0;
	}
	if (lane->held_items >= LANE_HELD)
		return start_splitter(lane);
	ret = lane->copy ? 0 : hold_current(lane);
	return ret ? ret : hold_next(lane);
}

int vmpt_lane_peek_slice(struct timeline_lane *lane)
{
	bool end;
	int ret;

	lane->peeked = true;
	for (;;) {
		end = lane->decoded;
		ret = next_slice(lane, &lane->next_slice, &lane->next_whole);
		lane->has_next = ret > 0;
		if (ret || lane->split || end)
			return ret < 0 ? ret : 0;
		ret = look_ahead(lane);
		if (ret)
			return ret;
	}
}

int vmpt_lane_grow_slice(struct timeline_lane *lane)
{
	u64 size = lane->slice.size;
	int ret;

	for (;;) {
		ret = next_slice(lane, &lane->slice, &lane->slice_whole);
		if (ret < 0)
			return ret;
		if (lane->slice_whole || lane->slice.size > size)
			return 0;
		ret = look_ahead(lane);
		if (ret)
			return ret;
	}
}

int vmpt_lane_look_far(struct timeline_lane *lane)
{
	int ret = lane->split ? 0 : start_splitter(lane);

	return ret ? ret : vmpt_lane_grow_slice(lane);
}
