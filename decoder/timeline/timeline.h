/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Inside the timeline: a lane makes the spans of one stream (lane.c) from its slices (slices.c) and
 * items (items.c), its exits wait for their reasons (exits.c), and timeline.c merges lanes.
 */
#ifndef VMPT_DECODER_TIMELINE_H
#define VMPT_DECODER_TIMELINE_H

#include "decoder/clock/clock.h"
#include "decoder/vmpt-timeline.h"

/* Spans that wait for later packets. */
#define LANE_RING 256
/* Items that are held back until it is known whose they are; beyond that see vmpt_lane_look_far().
 */
#define LANE_HELD 24576
/* Exits that wait for the next entry of their vCPU. */
#define LANE_WAITING 16

/* An exit without a reason, until its vCPU resumes. */
struct lane_exit {
	u64 span; /* its number in the lane */
	struct vmpt_owner owner;
	bool idle;
};

/* The KVM exits of this CPU, from the events. */
struct lane_events {
	const struct vmpt_event *event;
	const u32 *index; /* of this CPU's events, by time */
	size_t count;
	size_t at; /* those before it are used */
};

/* A batch that is held back; the items are a copy. */
struct lane_held {
	struct vmpt_batch batch;
	struct vmpt_item *items;
};

enum {
	SETTLED,
	SETTLE_PSB,   /* for a time that is bounded, in a PSB+ */
	SETTLE_GROUP, /* for the PIP of a group */
};

struct timeline_lane {
	const struct vmpt_timeline_options *options;
	const struct vmpt_stream *stream;
	u32 index;
	struct vmpt_options decode;
	struct vmpt_decoder *dec;
	struct vmpt_clock clock; /* fed up to .item */

	/*
	 * The current slice and the next one, if .has_next. A slice that is not .whole may get
	 * longer, and its facts are not final: until then its spans stay in the ring.
	 */
	struct vmpt_slice slice, next_slice;
	bool slice_whole, next_whole;
	bool peeked; /* .has_next is valid */
	bool has_next;
	u64 slice_span; /* number of the current slice's first span */
	bool done;
	bool decoded;		     /* the decoder has no more batches */
	u64 slices;		     /* whole slices got so far */
	struct vmpt_splitter *split; /* of vmpt_lane_look_far(), else NULL */

	struct vmpt_batch batch;
	struct vmpt_item *copy; /* of .batch's items, if it was held back */
	/* Batches after it, [first, count), and how many items they have */
	struct lane_held *held;
	size_t held_first, held_count, held_items;
	size_t item; /* the next one of .batch */
	size_t gap; /* items before this one have no gap before them that the clock has not been fed
		     */
	bool items_done;

	/* Spans by number; [first, next) are in the ring, the last may still grow. */
	struct vmpt_span ring[LANE_RING];
	bool of_slice[LANE_RING]; /* it has its slice's owner */
	u64 first, next;
	bool open;	       /* the last span is the current one */
	u8 settling;	       /* the current one's start waits for a better time: see the enum */
	bool executed;	       /* code ran while .settling */
	bool after_loss;       /* the slice before was a loss */
	struct vmpt_time time; /* of the last item of the batch before */

	/* Of the current guest span: facts needed for an exit */
	bool has_fup, has_entry, has_reason, has_qualification;
	u64 fup, entry, cr3, qualification;
	u16 reason;
	/* Of the host: signs that it did not resume the guest directly */
	u64 host_cr3;
	bool has_host_cr3, host_idle;

	bool in_psb;
	bool stopped; /* after a TIP.PGD, nothing executed since */
	u64 stop_offset;
	struct vmpt_time stop_time;

	struct lane_exit waiting[LANE_WAITING];
	unsigned int waiting_count;
	struct lane_events events;

	/* By kind of item: what it is to a lane, see items.c; 1: of time, or for the lane,
	 * so that it is looked at, whatever the lane waits for */
	u8 class_of[256], looked_at[256];
};

int vmpt_lane_open(struct timeline_lane *lane, const struct vmpt_clocks *clocks,
		   const struct vmpt_stream *stream, size_t index,
		   const struct vmpt_timeline_options *options, unsigned int threads);
void vmpt_lane_close(struct timeline_lane *lane);

/* The next finished span. 1, 0 at the end, or a negative error. */
int vmpt_lane_next(struct timeline_lane *lane, struct vmpt_span *span);

static inline struct vmpt_span *lane_span(struct timeline_lane *lane, u64 number)
{
	return &lane->ring[number % LANE_RING];
}

/* A packet makes at most two spans. */
static inline bool lane_is_full(const struct timeline_lane *lane)
{
	return lane->next - lane->first > LANE_RING - 4;
}

/* Tracing, which was off, resumes at the packet at @offset. */
void vmpt_lane_resume(struct timeline_lane *lane, u64 offset, const struct vmpt_time *time);

/* ---- slices.c ---- */

/* Fill .next_slice and .has_next. 0 or an error. */
int vmpt_lane_peek_slice(struct timeline_lane *lane);
/* More of the current slice, which is not whole. 0 or an error. */
int vmpt_lane_grow_slice(struct timeline_lane *lane);
/* Whatever the rest of the stream says: the current slice becomes whole. 0 or an error. */
int vmpt_lane_look_far(struct timeline_lane *lane);
/* The next batch: 1: .batch is filled, 0: the end, or an error. */
int vmpt_lane_next_batch(struct timeline_lane *lane);
void vmpt_lane_free_batches(struct timeline_lane *lane);

/* ---- items.c ---- */

/* Fill .class_of and .looked_at. */
void vmpt_lane_item_classes(struct timeline_lane *lane);
/* 1: .batch has an item at .item, 0: the end, or an error. */
int vmpt_lane_have_item(struct timeline_lane *lane);
/* Take the items up to @limit. 1: all taken, 0: the ring is full, or an error. */
int vmpt_lane_take_items(struct timeline_lane *lane, u64 limit);
/* The time at the next item, without taking it. 0 or an error. */
int vmpt_lane_boundary_time(struct timeline_lane *lane, struct vmpt_time *time);

/* ---- exits.c ---- */

/* The guest's span @number, the last one, has ended with an exit. */
void vmpt_lane_exit_begin(struct timeline_lane *lane, u64 number);
/* The vCPU of span @number resumes, at @ip if @has_ip. */
void vmpt_lane_exit_entry(struct timeline_lane *lane, u64 number, bool has_ip, u64 ip);
/* The CPU slept or ran something else. */
void vmpt_lane_exits_idle(struct timeline_lane *lane);
/* No later packet can explain the waiting exits. */
void vmpt_lane_exits_give_up(struct timeline_lane *lane);
/* Give up on exits before span @number: the ring is full. */
void vmpt_lane_exits_give_up_before(struct timeline_lane *lane, u64 number);
/* The first span that must not be returned yet. */
u64 vmpt_lane_exits_oldest(const struct timeline_lane *lane);

#endif
