/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Times of calls for pictures. A trace has a time every few hundred calls: what happened between
 * two times is spread evenly, in its order, and never over an entry or exit of a VM.
 */
#ifndef VMPT_CLI_CALLS_SPREAD_H
#define VMPT_CLI_CALLS_SPREAD_H

#include "decoder/vmpt-calls.h"

/* A VM entry or exit of a stream: what comes after .offset was at or after .time. */
struct calls_edge {
	u64 offset;
	u64 time; /* ticks */
	u32 flow; /* the caller's number of an exit; 0 */
};

struct calls_spread_stream {
	struct calls_edge *edge;       /* by offset */
	size_t edges, edge_room, next; /* .next: the first after the last item */
	struct vmpt_call_item *item;   /* between the same two times, not taken yet */
	size_t items, item_room;
	u64 from; /* ticks: time of the last that was taken */
};

/* .zero, .take and .opaque are the caller's; all else 0. */
struct calls_spread {
	u64 zero; /* host TSC of tick 0 */
	/* Each item once, in the order of its stream and of its task. 0, or -1: no memory. */
	int (*take)(void *opaque, const struct vmpt_call_item *item, u64 time);
	void *opaque;
	u64 last; /* ticks: the latest time */

	struct calls_spread_stream *stream;
	size_t streams;
	u32 *task_stream; /* of a task's last item, + 1 */
	size_t tasks;
};

/* An entry or exit of stream @stream, by offset. 0, or -1: no memory. */
int calls_spread_edge(struct calls_spread *s, u32 stream, const struct calls_edge *edge);
/* The last edge at or before the item that is taken; NULL: none. */
const struct calls_edge *calls_spread_before(const struct calls_spread *s, u32 stream);
/* The next item, of vmpt_calls_next(). 0, or -1. */
int calls_spread_add(struct calls_spread *s, const struct vmpt_call_item *item);
/* There are no more. 0, or -1. */
int calls_spread_end(struct calls_spread *s);
void calls_spread_close(struct calls_spread *s);

#endif
