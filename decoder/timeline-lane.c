// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The spans of one stream: slices (who) walked beside packets with their times (when). A stretch
 * with tracing off is cut out of its slice. What a guest's exit needs to be explained is picked up
 * from the packets on the way.
 */
#include <string.h>

#include "decoder/timeline.h"

static bool bounded(const struct vmpt_time *t)
{
	return t->tsc != VMPT_TIME_NONE && t->early != VMPT_TIME_OPEN && t->late != VMPT_TIME_OPEN;
}

/* ---- spans begin and end ---- */

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

/* What the beginning of a slice says of the edge there. */
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

static struct vmpt_span *push(struct lane *lane, u8 kind, u8 began, u64 offset,
			      const struct vmpt_time *start)
{
	struct vmpt_span *span = lane_span(lane, lane->next++);

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

/* The current slice's span, or the rest of it, from @offset on. */
static void begin(struct lane *lane, u8 began, u64 offset, const struct vmpt_time *start)
{
	struct vmpt_span *span = push(lane, span_kind(&lane->slice), began, offset, start);

	span->owner = lane->slice.owner;
	span->loss = lane->slice.loss;
	span->doubt = lane->slice.begin == VMPT_BEGIN_DOUBT && span->kind == VMPT_SPAN_UNKNOWN;
	lane->has_fup = lane->has_entry = lane->has_reason = lane->has_qualification = false;
	lane->cr3 = 0;
	lane->host_idle = lane->has_host_cr3 = false;
	if (span->kind == VMPT_SPAN_LOST || span->kind == VMPT_SPAN_UNKNOWN)
		lane_exits_give_up(lane);
}

static void fill_exit(struct lane *lane, struct vmpt_span *span)
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
	lane_exit_begin(lane, lane->next - 1);
}

static void end(struct lane *lane, u8 ended, u64 offset, const struct vmpt_time *time)
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
		lane_exits_idle(lane);
}

/* ---- tracing off ---- */

/*
 * Behind a TIP.PGD comes what setting TraceEn makes, a CBR or a TSC (Table 33-56, cases 1 and 2),
 * or its PSB+: from the one to the other nothing was traced.
 */
static void resume(struct lane *lane, u64 offset, const struct vmpt_time *time)
{
	struct vmpt_span *span = lane_span(lane, lane->next - 1), *before;

	lane->stopped = false;
	before = lane->next >= lane->first + 2 ? lane_span(lane, lane->next - 2) : NULL;
	if (span->offset == lane->stop_offset) {
		/* A slice begins at the stop, of doubt perhaps: first there is the time off. */
		span->kind = VMPT_SPAN_OFF;
		span->doubt = false;
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
		before->doubt = false;
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

/* ---- packets ---- */

/* The kernel's and the program's tables of one process differ in bit 12 and in what is below. */
#define CR3_PROCESS 0x000fffffffffe000ULL

static void on_pip(struct lane *lane, const struct vmpt_item *item)
{
	u64 cr3 = item->payload & ~1ULL;

	if (lane_span(lane, lane->next - 1)->kind == VMPT_SPAN_GUEST) {
		lane->cr3 = cr3;
		return;
	}
	if (lane->has_host_cr3 && (cr3 ^ lane->host_cr3) & CR3_PROCESS)
		lane->host_idle = true;
	lane->host_cr3 = cr3;
	lane->has_host_cr3 = true;
}

/* Something executed. */
static void on_target(struct lane *lane, const struct vmpt_item *item)
{
	lane->has_fup = false;
	lane->stopped = false;
	if (lane->has_entry || lane->in_psb)
		return;
	lane->has_entry = true;
	lane->entry = item->payload;
	if (lane_span(lane, lane->next - 1)->kind == VMPT_SPAN_GUEST)
		lane_exit_entry(lane, lane->next - 1, item->aux != 0, item->payload);
}

static void on_evd(struct lane *lane, const struct vmpt_item *item)
{
	if (item->aux == VMPT_EVD_VMXR) {
		lane->has_reason = true;
		lane->reason = (u16)item->payload;
	} else if (item->aux == VMPT_EVD_VMXQ) {
		lane->has_qualification = true;
		lane->qualification = item->payload;
	}
}

static void take_item(struct lane *lane, const struct vmpt_item *item, u64 offset,
		      const struct vmpt_time *time)
{
	struct vmpt_span *span = lane_span(lane, lane->next - 1);

	switch (item->kind) {
	case VMPT_PT_TNT_64:
		lane->has_fup = false;
		lane->has_entry = true;
		break;
	case VMPT_PT_PSB:
		lane->in_psb = true;
		if (lane->stopped)
			resume(lane, offset, time);
		break;
	case VMPT_PT_PSBEND:
		lane->in_psb = false;
		break;
	case VMPT_PT_MTC:
		/* TraceEn is 1: only the context is not traced. */
		lane->stopped = false;
		break;
	case VMPT_PT_TSC:
	case VMPT_PT_CBR:
		if (lane->stopped)
			resume(lane, offset, time);
		break;
	case VMPT_PT_FUP:
		if (!lane->in_psb) {
			lane->has_fup = item->aux != 0;
			lane->fup = item->payload;
		}
		break;
	case VMPT_PT_TIP:
	case VMPT_PT_TIP_PGE:
		on_target(lane, item);
		break;
	case VMPT_PT_TIP_PGD:
		lane->stopped = true;
		lane->stop_offset = offset + item->size;
		lane->stop_time = *time;
		break;
	case VMPT_PT_PIP:
		on_pip(lane, item);
		break;
	case VMPT_PT_EVD:
		on_evd(lane, item);
		break;
	case VMPT_PT_MWAIT:
	case VMPT_PT_PWRE:
	case VMPT_PT_PWRX:
		lane->host_idle = true;
		break;
	case VMPT_PT_OVF:
		lane->in_psb = lane->has_fup = lane->stopped = false;
		span->overflows++;
		break;
	case VMPT_ITEM_LOSS:
		lane->in_psb = lane->has_fup = lane->stopped = false;
		break;
	}
}

/* Whether the time at @item is not yet that of the span's start. */
static bool is_early(const struct lane *lane, const struct vmpt_item *item,
		     const struct vmpt_time *time)
{
	if (item->kind == VMPT_PT_PAD || time->tsc == VMPT_TIME_NONE)
		return true;
	/* Of a group (VMPTRLD's VMCS may be its first) the PIP says when. */
	if (lane->settling == SETTLE_GROUP)
		return item->kind == VMPT_PT_VMCS || item->kind == VMPT_PT_MODE_EXEC ||
		       item->kind == VMPT_PT_MTC || item->kind == VMPT_PT_TSC ||
		       item->kind == VMPT_PT_TMA || item->kind == VMPT_PT_CYC ||
		       item->kind == VMPT_PT_CBR;
	/* Behind a loss a PSB+ begins with the old time; the new one comes with it or soon. */
	return item->kind == VMPT_PT_PSB || !bounded(time);
}

static void settle(struct lane *lane, const struct vmpt_item *item, const struct vmpt_time *time)
{
	struct vmpt_span *span = lane_span(lane, lane->next - 1);

	if (is_early(lane, item, time)) {
		lane->executed |= !lane->in_psb && item->kind != VMPT_PT_PAD;
		return;
	}
	span->start = *time;
	/* Something ran already when the time became known. */
	if (lane->settling == SETTLE_PSB && lane->executed)
		span->start.early = VMPT_TIME_OPEN;
	if (lane->next >= lane->first + 2)
		lane_span(lane, lane->next - 2)->end = span->start;
	lane->settling = SETTLED;
}

/* ---- the walk ---- */

/* A packet makes two spans at the most. */
static bool is_full(const struct lane *lane)
{
	return lane->next - lane->first > LANE_RING - 4;
}

/* 1: .batch has an item at .item, 0: the end, or an error. */
static int have_item(struct lane *lane)
{
	int ret;

	while (!lane->items_done && lane->item >= lane->batch.batch.count) {
		ret = vmpt_timed_next(lane->timed, &lane->batch);
		if (ret < 0)
			return ret;
		lane->item = 0;
		lane->items_done = !ret;
	}
	return !lane->items_done;
}

/* Kinds of which take_item() wants to know. */
static const bool wanted[256] = {
	[VMPT_PT_TNT_64] = true,  [VMPT_PT_PSB] = true,	   [VMPT_PT_PSBEND] = true,
	[VMPT_PT_MTC] = true,	  [VMPT_PT_TSC] = true,	   [VMPT_PT_CBR] = true,
	[VMPT_PT_FUP] = true,	  [VMPT_PT_TIP] = true,	   [VMPT_PT_TIP_PGE] = true,
	[VMPT_PT_TIP_PGD] = true, [VMPT_PT_PIP] = true,	   [VMPT_PT_EVD] = true,
	[VMPT_PT_MWAIT] = true,	  [VMPT_PT_PWRE] = true,   [VMPT_PT_PWRX] = true,
	[VMPT_PT_OVF] = true,	  [VMPT_ITEM_LOSS] = true,
};

/* Items of the batch up to number @end, or as far as there is room. */
static void take_some(struct lane *lane, size_t end)
{
	const struct vmpt_item *items = lane->batch.batch.items;
	size_t back = lane->batch.back ? lane->batch.back_item : (size_t)-1, i;

	for (i = lane->item; i < end; i++) {
		const struct vmpt_item *item = &items[i];

		if (i == back)
			lane_span(lane, lane->next - 1)->back = lane->batch.back;
		if (item->kind == VMPT_ITEM_RUN) {
			lane->has_fup = false;
			lane->has_entry = true;
		} else if (wanted[item->kind]) {
			if (is_full(lane))
				break;
			take_item(lane, item, lane->batch.batch.base + item->offset,
				  &lane->batch.time[i]);
		}
		if (lane->settling)
			settle(lane, item, &lane->batch.time[i]);
	}
	if (i > lane->item)
		lane->time = lane->batch.time[i - 1];
	lane->item = i;
}

/* How many items of the batch lie before @limit, with those of the loss that the slice is. */
static size_t items_before(const struct lane *lane, u64 limit)
{
	const struct vmpt_batch *b = &lane->batch.batch;
	bool lost = lane->slice.begin == VMPT_BEGIN_LOSS;
	size_t low = lane->item, high = b->count;

	if (b->base + b->items[high - 1].offset < limit)
		return high;
	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (b->base + b->items[mid].offset < limit)
			low = mid + 1;
		else
			high = mid;
	}
	/* A loss may have no bytes. */
	while (lost && low < b->count && b->items[low].kind == VMPT_ITEM_LOSS &&
	       b->base + b->items[low].offset == lane->slice.offset)
		low++;
	return low;
}

/* Take the items up to @limit. 1: that far, 0: the ring is full, or an error. */
static int take_items(struct lane *lane, u64 limit)
{
	size_t end;
	int ret;

	while ((ret = have_item(lane)) > 0) {
		end = items_before(lane, limit);
		if (end == lane->item)
			break;
		take_some(lane, end);
		if (lane->item < end)
			return 0;
	}
	return ret < 0 ? ret : 1;
}

/* The time at the next item, without taking it. */
static int boundary_time(struct lane *lane, struct vmpt_time *time)
{
	int ret = have_item(lane);

	if (ret > 0)
		*time = lane->batch.time[lane->item];
	else
		*time = lane->time;
	return ret < 0 ? ret : 0;
}

/* Fill .next_slice if there is one. */
static int peek_slice(struct lane *lane)
{
	int ret = vmpt_split_next(lane->split, &lane->next_slice);

	lane->has_next = ret > 0;
	return ret < 0 ? ret : 0;
}

static int begin_slice(struct lane *lane)
{
	u8 began = lane->next ? edge_of(&lane->next_slice) : VMPT_EDGE_TRACE;
	struct vmpt_time time;
	int ret = boundary_time(lane, &time);

	lane->slice = lane->next_slice;
	if (!ret)
		ret = peek_slice(lane);
	if (ret)
		return ret;
	/* A packet that is cut and the gap behind it are one loss. */
	if (lane->slice.begin == VMPT_BEGIN_LOSS && lane->after_loss)
		lane->open = true;
	else
		begin(lane, began, lane->slice.offset, &time);
	/* At the start, and behind lost bytes, a PSB+ tells the time. */
	if (time.tsc == VMPT_TIME_NONE || lane->slice.begin == VMPT_BEGIN_START || lane->after_loss)
		lane->settling = SETTLE_PSB;
	else if (lane->slice.by_group)
		lane->settling = SETTLE_GROUP;
	lane->executed = false;
	lane->after_loss = lane->slice.begin == VMPT_BEGIN_LOSS;
	lane_span(lane, lane->next - 1)->failed_entries = lane->slice.failed_entries;
	return 0;
}

static int end_slice(struct lane *lane)
{
	struct vmpt_time time;
	int ret = boundary_time(lane, &time);

	if (!ret)
		end(lane, lane->has_next ? edge_of(&lane->next_slice) : VMPT_EDGE_TRACE,
		    lane->slice.offset + lane->slice.size, &time);
	return ret;
}

/* To the end of a slice, or as far as there is room. 0 or an error. */
static int advance(struct lane *lane)
{
	int ret = 0;

	if (!lane->open) {
		if (!lane->has_next) {
			lane->done = true;
			lane_exits_give_up(lane);
			return 0;
		}
		ret = begin_slice(lane);
	}
	if (!ret)
		ret = take_items(lane, lane->slice.offset + lane->slice.size);
	return ret > 0 ? end_slice(lane) : ret;
}

int lane_next(struct lane *lane, struct vmpt_span *span)
{
	int ret;

	/* The last two may still be changed by what is behind them. */
	while (!lane->done &&
	       (lane->first + 2 >= lane->next || lane_exits_oldest(lane) <= lane->first)) {
		if (is_full(lane)) {
			lane_exits_give_up(lane);
			continue;
		}
		ret = advance(lane);
		if (ret < 0)
			return ret;
	}
	if (lane->first == lane->next)
		return 0;
	*span = *lane_span(lane, lane->first++);
	return 1;
}

int lane_open(struct lane *lane, const struct vmpt_clocks *clocks, const struct vmpt_stream *stream,
	      size_t index, const struct vmpt_timeline_options *options, unsigned int threads)
{
	struct vmpt_options decode = options->decode;
	int ret;

	decode.threads = threads;
	/* The timeline tells how far all of it is. */
	decode.progress = NULL;
	lane->options = options;
	lane->stream = stream;
	lane->index = (u32)index;
	lane->time = (struct vmpt_time){ VMPT_TIME_NONE, VMPT_TIME_OPEN, VMPT_TIME_OPEN };
	ret = vmpt_splitter_open(&lane->split, stream, &decode);
	if (!ret)
		ret = vmpt_timed_open(&lane->timed, clocks, index, &decode);
	if (!ret)
		ret = peek_slice(lane);
	return ret;
}

void lane_close(struct lane *lane)
{
	vmpt_splitter_close(lane->split);
	vmpt_timed_close(lane->timed);
}
