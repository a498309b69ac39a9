// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The clock of one stream over whole batches: quick.h's loop with a time for each item, and the
 * handling of gaps and of CYCs, which belong to the packet after them.
 */
#include "decoder/clock/quick.h"
#include "util/search.h"

static bool only_pads(const struct vmpt_batch *b, const struct vmpt_item *item)
{
	u32 i;

	for (i = 0; item->kind == VMPT_ITEM_RUN && i < item->size; i++)
		if (b->data[item->offset + i])
			return false;
	return item->kind == VMPT_ITEM_RUN || item->kind == VMPT_PT_PAD;
}

bool vmpt_clock_pads_after_cyc(const struct vmpt_batch *b, size_t i)
{
	const struct vmpt_item *item = &b->items[i];

	return only_pads(b, item - 1) && (i < 2 || item[-2].kind == VMPT_PT_CYC);
}

/* Items [from, to) of the batch. */
static enum vmpt_back stretch(struct vmpt_clock *c, const struct vmpt_batch *b, size_t from,
			      size_t to, struct vmpt_time *times, size_t *back_item)
{
	size_t i, k, n, end, room, after_cyc = CLOCK_NO_CYC;
	enum vmpt_back why = VMPT_BACK_NOT;
	bool plain = clock_is_plain(c);
	u32 at[CLOCK_BLOCK + 1];

	for (i = from; i < to; i = end) {
		end = to - i < CLOCK_BLOCK ? to : i + CLOCK_BLOCK;
		/* A condition for a block of one kind of packets need not hold for the next one. */
		plain = plain && (!c->known || clock_is_narrow(c));
		n = clock_find(b->items, i, end, vmpt_time_kinds, at);
		at[n] = (u32)end;
		if (i + CLOCK_PUTS <= b->count)
			clock_put(times, i, 0, at[0], clock_word_of(&c->next));
		else
			clock_put_some(times, i, at[0], clock_word_of(&c->next));
		for (room = n; room && at[room - 1] + CLOCK_PUTS >= b->count; room--)
			;
		for (k = 0; k < n; k++) {
			if (plain && k < room)
				k = clock_take_most(c, b, at, k, room, times, &after_cyc);
			if (k == n)
				break;
			i = at[k];
			if (b->items[i].kind == VMPT_PT_MTC && clock_take_mtc(c, b, i)) {
				plain = clock_is_narrow(c);
			} else {
				clock_feed(c, b, i);
				plain = clock_is_plain(c);
			}
			if (c->back && !why) {
				why = c->back;
				*back_item = i;
			} else if (i == after_cyc) {
				clock_copy(&times[i - 1], &c->now);
			}
			if (k < room)
				clock_put(times, i + 1, 0, at[k + 1], clock_word_of(&c->next));
			else
				clock_put_some(times, i + 1, at[k + 1], clock_word_of(&c->next));
			clock_copy(&times[i], &c->now);
			after_cyc = c->cyc_last ? i + 1 : CLOCK_NO_CYC;
		}
	}
	return why;
}

/* The same without times. */
static void pass(struct vmpt_clock *c, const struct vmpt_batch *b, size_t from, size_t to)
{
	size_t i, k, n, end;
	u32 at[CLOCK_BLOCK];

	for (i = from; i < to; i = end) {
		end = to - i < CLOCK_BLOCK ? to : i + CLOCK_BLOCK;
		n = clock_find(b->items, i, end, vmpt_time_kinds, at);
		for (k = 0; k < n;) {
			if (b->items[at[k]].kind == VMPT_PT_CYC)
				k = clock_take_cycs(c, b->items, at, k, n);
			else
				clock_feed(c, b, at[k++]);
		}
	}
}

size_t vmpt_clock_gaps(struct vmpt_clock *c, const struct vmpt_stream *stream,
		       const struct vmpt_batch *b, size_t i)
{
	u64 next;

	while (c->gap_next < stream->gap_count &&
	       stream->gaps[c->gap_next].offset <= b->base + b->items[i].offset) {
		vmpt_clock_gap(c);
		c->gap_next++;
	}
	if (c->gap_next == stream->gap_count)
		return b->count;
	next = stream->gaps[c->gap_next].offset;
	return vmpt_search(k, i + 1, b->count, b->base + b->items[k].offset < next);
}

void vmpt_clock_batch_end(struct vmpt_clock *c, const struct vmpt_batch *b)
{
	const struct vmpt_item *last;

	if (!b->count)
		return;
	last = &b->items[b->count - 1];
	if (!clock_is_timed(last) && !only_pads(b, last))
		c->cyc_last = false;
}

enum vmpt_back vmpt_clock_batch(struct vmpt_clock *c, const struct vmpt_stream *stream,
				const struct vmpt_batch *b, struct vmpt_time *times,
				size_t *back_item)
{
	enum vmpt_back why = VMPT_BACK_NOT, back;
	size_t i = 0, to, at = 0;

	while (i < b->count) {
		to = vmpt_clock_gaps(c, stream, b, i);
		back = VMPT_BACK_NOT;
		if (times)
			back = stretch(c, b, i, to, times, &at);
		else
			pass(c, b, i, to);
		if (back && !why) {
			why = back;
			if (back_item)
				*back_item = at;
		}
		i = to;
	}
	if (times && b->count && b->items[b->count - 1].kind == VMPT_PT_CYC)
		times[b->count - 1].late = VMPT_TIME_OPEN;
	vmpt_clock_batch_end(c, b);
	return why;
}
