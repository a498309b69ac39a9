// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* Times of calls for pictures; see spread.h. */
#include <stdlib.h>

#include "cli/calls/spread.h"
#include "util/array.h"

/* Items that wait for the next time; more are spread over a part of it. */
#define ITEMS_MAX 65536

static int reserve(struct calls_spread *s, u32 stream)
{
	return vmpt_reserve_zeroed(&s->stream, &s->streams, stream + 1ULL) ? -1 : 0;
}

int calls_spread_edge(struct calls_spread *s, u32 stream, const struct calls_edge *edge)
{
	struct calls_spread_stream *of;

	if (reserve(s, stream))
		return -1;
	of = &s->stream[stream];
	if (vmpt_reserve(&of->edge, &of->edge_room, of->edges + 1))
		return -1;
	of->edge[of->edges++] = *edge;
	return 0;
}

const struct calls_edge *calls_spread_before(const struct calls_spread *s, u32 stream)
{
	const struct calls_spread_stream *of = &s->stream[stream];

	return of->next ? &of->edge[of->next - 1] : NULL;
}

/* @time, within the edge before @item and the one after it. */
static u64 between_edges(struct calls_spread_stream *s, const struct vmpt_call_item *item, u64 time)
{
	while (s->next < s->edges && s->edge[s->next].offset <= item->offset)
		s->next++;
	if (s->next < s->edges && time > s->edge[s->next].time)
		time = s->edge[s->next].time;
	if (s->next && time < s->edge[s->next - 1].time)
		time = s->edge[s->next - 1].time;
	return time;
}

static u64 ticks_of(const struct calls_spread *s, u64 tsc)
{
	return tsc > s->zero ? tsc - s->zero : 0;
}

/* Take the items of a stream that wait, up to the time that they all were before, or to the middle
 * of that if there will be more. */
static int flush(struct calls_spread *s, u32 stream, bool more)
{
	struct calls_spread_stream *of = &s->stream[stream];
	const struct vmpt_call_item *first = of->item;
	u64 from = of->from, to;
	const size_t n = of->items;
	size_t i;
	int err = 0;

	if (!n)
		return 0;
	if (first->tsc != VMPT_TIME_NONE && ticks_of(s, first->tsc) > from)
		from = ticks_of(s, first->tsc);
	to = first->tsc_end == VMPT_TIME_NONE ? from : ticks_of(s, first->tsc_end);
	if (to < from)
		to = from;
	if (more)
		to -= (to - from) / 2;
	of->items = 0;
	for (i = 0; i < n && !err; i++) {
		u64 part = (u64)((unsigned __int128)(to - from) * (i + 1) / (n + 1));

		err = s->take(s->opaque, &of->item[i],
			      between_edges(of, &of->item[i], from + part));
	}
	of->from = more ? to : from;
	if (to > s->last)
		s->last = to;
	return err;
}

/* A task that came from another CPU: what it did there was before. */
static int follow_task(struct calls_spread *s, const struct vmpt_call_item *item)
{
	u32 before;

	if (item->what == VMPT_CALL_GAP)
		return 0;
	if (vmpt_reserve_zeroed(&s->task_stream, &s->tasks, item->task + 1ULL))
		return -1;
	before = s->task_stream[item->task];
	s->task_stream[item->task] = item->stream + 1;
	return before && before != item->stream + 1 ? flush(s, before - 1, true) : 0;
}

int calls_spread_add(struct calls_spread *s, const struct vmpt_call_item *item)
{
	struct calls_spread_stream *of;
	bool same;

	if (reserve(s, item->stream) || follow_task(s, item))
		return -1;
	of = &s->stream[item->stream];
	same = of->items && of->item->tsc == item->tsc && of->item->tsc_end == item->tsc_end;
	if ((!same || of->items >= ITEMS_MAX) && flush(s, item->stream, same))
		return -1;
	if (vmpt_reserve(&of->item, &of->item_room, of->items + 1))
		return -1;
	of->item[of->items++] = *item;
	return 0;
}

int calls_spread_end(struct calls_spread *s)
{
	u32 i;
	int err = 0;

	for (i = 0; i < s->streams && !err; i++)
		err = flush(s, i, false);
	return err;
}

void calls_spread_close(struct calls_spread *s)
{
	size_t i;

	for (i = 0; i < s->streams; i++) {
		free(s->stream[i].edge);
		free(s->stream[i].item);
	}
	free(s->stream);
	free(s->task_stream);
	*s = (struct calls_spread){ 0 };
}
