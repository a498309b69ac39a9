// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The spans of one stream: slices (who, slices.c) walked along with packets and their times (when,
 * items.c). A stretch with tracing off is cut out of its slice.
 */
#include <string.h>

#include "decoder/pt/pt.h"
#include "decoder/timeline/timeline.h"

/* ---- begin and end of spans ---- */

static u8 span_kind(const struct vmpt_slice *s)
{
	if (s->begin == VMPT_BEGIN_LOSS)
		return VMPT_SPAN_LOST;
	switch (s->owner.kind) {
	case VMPT_OWNER_HOST:
		return VMPT_SPAN_HOST;
	case VMPT_OWNER_VM:
	case VMPT_OWNER_VM_ANY:
		return VMPT_SPAN_GUEST;
	default:
		return VMPT_SPAN_UNKNOWN;
	}
}

/* The edge at the beginning of a slice. */
static u8 edge_of(const struct vmpt_slice *s)
{
	switch (s->begin) {
	case VMPT_BEGIN_ENTRY:
		return VMPT_EDGE_ENTRY;
	case VMPT_BEGIN_EXIT:
		return VMPT_EDGE_EXIT;
	case VMPT_BEGIN_SWITCH:
		return VMPT_EDGE_SWITCH;
	default:
		return VMPT_EDGE_UNKNOWN;
	}
}

static struct vmpt_span *push(struct timeline_lane *lane, u8 kind, u8 began, u64 offset,
			      const struct vmpt_time *start)
{
	struct vmpt_span *span = lane_span(lane, lane->next);

	lane->of_slice[lane->next++ % LANE_RING] = false;
	memset(span, 0, sizeof(*span));
	span->stream = lane->index;
	span->kind = kind;
	span->began = began;
	span->offset = offset;
	span->start = *start;
	span->exit.reason = VMPT_REASON_UNKNOWN;
	lane->open = true;
	return span;
}

/* Begin the current slice's span, or the rest of it, at @offset. */
static void begin(struct timeline_lane *lane, u8 began, u64 offset, const struct vmpt_time *start)
{
	struct vmpt_span *span = push(lane, span_kind(&lane->slice), began, offset, start);

	lane->of_slice[(lane->next - 1) % LANE_RING] = true;
	span->owner = lane->slice.owner;
	span->loss = lane->slice.loss;
	lane->has_fup = lane->has_entry = lane->has_reason = lane->has_qualification = false;
	lane->cr3 = 0;
	lane->host_idle = lane->has_host_cr3 = false;
	if (span->kind == VMPT_SPAN_LOST || span->kind == VMPT_SPAN_UNKNOWN)
		vmpt_lane_exits_give_up(lane);
}

static void fill_exit(struct timeline_lane *lane, struct vmpt_span *span)
{
	struct vmpt_exit *e = &span->exit;

	e->has_ip = lane->has_fup;
	e->ip = lane->has_fup ? lane->fup : 0;
	e->cr3 = lane->cr3;
	if (lane->has_reason) {
		e->reason = lane->reason;
		e->source = VMPT_REASON_EVD;
		e->has_qualification = lane->has_qualification;
		e->qualification = lane->qualification;
	}
	vmpt_lane_exit_begin(lane, lane->next - 1);
}

static void end(struct timeline_lane *lane, u8 ended, u64 offset, const struct vmpt_time *time)
{
	struct vmpt_span *span = lane_span(lane, lane->next - 1);

	if (!lane->open)
		return;
	lane->open = false;
	lane->settling = SETTLED;
	span->ended = ended;
	span->end = *time;
	span->size = offset - span->offset;
	if (span->kind == VMPT_SPAN_GUEST && ended == VMPT_EDGE_EXIT)
		fill_exit(lane, span);
	if (span->kind == VMPT_SPAN_HOST && lane->host_idle)
		vmpt_lane_exits_idle(lane);
}

/* ---- tracing off ---- */

/*
 * After a TIP.PGD come the packets that setting TraceEn makes, a CBR or a TSC (Table 33-56, cases 1
 * and 2), or its PSB+: between the two nothing was traced.
 */
void vmpt_lane_resume(struct timeline_lane *lane, u64 offset, const struct vmpt_time *time)
{
	struct vmpt_span *span = lane_span(lane, lane->next - 1), *before;

	lane->stopped = false;
	before = lane->next >= lane->first + 2 ? lane_span(lane, lane->next - 2) : NULL;
	if (span->offset == lane->stop_offset) {
		/*
		 * A slice begins at the stop, perhaps of doubt: the time with tracing off comes
		 * first.
		 */
		span->kind = VMPT_SPAN_OFF;
		span->began = VMPT_EDGE_TRACE;
		span->start = lane->stop_time;
		if (before) {
			before->end = lane->stop_time;
			before->ended = VMPT_EDGE_TRACE;
		}
	} else if (span->offset < lane->stop_offset) {
		end(lane, VMPT_EDGE_TRACE, lane->stop_offset, &lane->stop_time);
		push(lane, VMPT_SPAN_OFF, VMPT_EDGE_TRACE, lane->stop_offset, &lane->stop_time);
	} else if (span->offset == offset && before && before->kind == VMPT_SPAN_UNKNOWN &&
		   before->offset == lane->stop_offset) {
		/* A slice begins here: the doubt before it was about the stop. */
		before->kind = VMPT_SPAN_OFF;
		before->began = before->ended = span->began = VMPT_EDGE_TRACE;
		lane->settling = SETTLE_PSB;
		return;
	} else {
		return;
	}
	end(lane, VMPT_EDGE_TRACE, offset, time);
	begin(lane, VMPT_EDGE_TRACE, offset, time);
	lane->settling = SETTLE_PSB;
	lane->executed = false;
}

/* ---- the walk ---- */

/* A PSB+ that states the owner: tracing resumed with it, some time after the last packet. */
static bool begins_with_psb(const struct timeline_lane *lane)
{
	const struct vmpt_slice *s = &lane->slice;

	return !s->by_group &&
	       vmpt_psb_find(lane->stream->data, s->offset,
			     s->offset + (s->size < 16 ? s->size : 16)) == s->offset;
}

/*
 * Whether later packets of the current slice change nothing in its spans. An assumed VM's owner
 * gets no less sure, and VM entries fail in the host. So it is with tracing of guests only, where
 * one slice may have any number of spans.
 */
static bool are_facts_final(const struct timeline_lane *lane)
{
	const struct vmpt_owner *o = &lane->slice.owner;

	return lane->slice_whole || (o->kind == VMPT_OWNER_VM && o->sure == VMPT_ASSUMED);
}

/* The spans of the current slice get what only its end shows, or its last packets. */
static void set_facts(struct timeline_lane *lane)
{
	const struct vmpt_slice *s = &lane->slice;
	struct vmpt_span *span = lane_span(lane, lane->slice_span);
	u64 i;

	/* They were final before. */
	if (lane->slice_span < lane->first)
		return;
	span->failed_entries = s->failed_entries;
	if (s->begin == VMPT_BEGIN_LOSS && !span->losses++)
		span->loss_size = s->size;
	if (vmpt_slice_unproven(s))
		span->unproven = s->size;
	for (i = lane->slice_span; i < lane->next; i++)
		if (lane->of_slice[i % LANE_RING])
			lane_span(lane, i)->owner = s->owner;
}

static int begin_slice(struct timeline_lane *lane)
{
	u8 began = lane->next ? edge_of(&lane->next_slice) : VMPT_EDGE_TRACE;
	struct vmpt_time time;
	int ret = vmpt_lane_boundary_time(lane, &time);

	if (ret)
		return ret;
	lane->slice = lane->next_slice;
	lane->slice_whole = lane->next_whole;
	lane->peeked = false;
	/* A cut packet and the gap after it are one loss. */
	if (lane->slice.begin == VMPT_BEGIN_LOSS && lane->after_loss)
		lane->open = true;
	else
		begin(lane, began, lane->slice.offset, &time);
	/* At the start, after lost bytes or an overflow, a PSB+ gives the time. */
	if (time.tsc == VMPT_TIME_NONE || lane->slice.begin == VMPT_BEGIN_START ||
	    lane->after_loss || begins_with_psb(lane))
		lane->settling = SETTLE_PSB;
	else if (lane->slice.by_group)
		lane->settling = SETTLE_GROUP;
	lane->executed = false;
	lane->after_loss = lane->slice.begin == VMPT_BEGIN_LOSS;
	lane->slice_span = lane->next - 1;
	if (are_facts_final(lane))
		set_facts(lane);
	return 0;
}

static int end_slice(struct timeline_lane *lane)
{
	struct vmpt_time time;
	int ret = vmpt_lane_peek_slice(lane);

	if (!ret)
		ret = vmpt_lane_boundary_time(lane, &time);
	if (!ret)
		end(lane, lane->has_next ? edge_of(&lane->next_slice) : VMPT_EDGE_TRACE,
		    lane->slice.offset + lane->slice.size, &time);
	return ret;
}

/* The items of the current slice, as far as they are known to be its own: 1, or as below. */
static int take_slice(struct timeline_lane *lane)
{
	int ret;

	for (;;) {
		ret = vmpt_lane_take_items(lane, lane->slice.offset + lane->slice.size);
		if (ret <= 0 || lane->slice_whole)
			return ret;
		ret = vmpt_lane_grow_slice(lane);
		if (ret)
			return ret;
		if (are_facts_final(lane))
			set_facts(lane);
	}
}

/* Advance to the end of a slice, or while there is room. 0 or an error. */
static int advance(struct timeline_lane *lane)
{
	int ret = 0;

	if (!lane->open) {
		if (!lane->peeked)
			ret = vmpt_lane_peek_slice(lane);
		if (ret)
			return ret;
		if (!lane->has_next) {
			lane->done = true;
			vmpt_lane_exits_give_up(lane);
			return 0;
		}
		ret = begin_slice(lane);
	}
	if (!ret)
		ret = take_slice(lane);
	return ret > 0 ? end_slice(lane) : ret;
}

/* The ring is full. 0 or an error. */
static int make_room(struct timeline_lane *lane)
{
	int ret;

	if (vmpt_lane_exits_oldest(lane) <= lane->first) {
		vmpt_lane_exits_give_up(lane);
		return 0;
	}
	ret = vmpt_lane_look_far(lane);
	if (!ret)
		set_facts(lane);
	return ret;
}

/* Whether the first span may still change by later packets; the last two may. */
static bool is_unfinished(const struct timeline_lane *lane)
{
	return lane->first + 2 >= lane->next || vmpt_lane_exits_oldest(lane) <= lane->first ||
	       (lane->first >= lane->slice_span && !are_facts_final(lane));
}

int vmpt_lane_next(struct timeline_lane *lane, struct vmpt_span *span)
{
	int ret;

	while (!lane->done && is_unfinished(lane)) {
		ret = lane_is_full(lane) ? make_room(lane) : advance(lane);
		if (ret < 0)
			return ret;
	}
	if (lane->first == lane->next)
		return 0;
	*span = *lane_span(lane, lane->first++);
	return 1;
}

int vmpt_lane_open(struct timeline_lane *lane, const struct vmpt_clocks *clocks,
		   const struct vmpt_stream *stream, size_t index,
		   const struct vmpt_timeline_options *options, unsigned int threads)
{
	struct vmpt_clock_options how;
	int ret;

	if (!vmpt_clocks_stream(clocks, index))
		return -VMPT_E_INVAL;
	lane->decode = options->decode;
	lane->decode.threads = threads;
	/* The timeline reports the progress of all streams. */
	lane->decode.progress = NULL;
	lane->options = options;
	lane->stream = stream;
	lane->index = (u32)index;
	vmpt_lane_item_classes(lane);
	lane->time = (struct vmpt_time){ VMPT_TIME_NONE, VMPT_TIME_OPEN, VMPT_TIME_OPEN };
	lane->slice_whole = true;
	ret = vmpt_decoder_open(&lane->dec, stream, &lane->decode);
	if (!ret)
		ret = vmpt_pt_decoder_slices(lane->dec, true);
	vmpt_clocks_clock_options(clocks, index, &how);
	vmpt_clock_init(&lane->clock, &how);
	return ret;
}

void vmpt_lane_close(struct timeline_lane *lane)
{
	vmpt_splitter_close(lane->split);
	vmpt_decoder_close(lane->dec);
	vmpt_lane_free_batches(lane);
}
