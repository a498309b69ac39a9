// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The items of one stream for its lane: the clock is fed those that it needs, and gives the time
 * where a span begins or ends. The facts needed to explain a guest's exit are collected on the way.
 */
#include "decoder/timeline/timeline.h"
#include "util/search.h"

static bool bounded(const struct vmpt_time *t)
{
	return t->tsc != VMPT_TIME_NONE && t->early != VMPT_TIME_OPEN && t->late != VMPT_TIME_OPEN;
}

/* ---- packets ---- */

/* The kernel's and user's page tables of a process differ in bit 12 and below. */
#define CR3_PROCESS 0x000fffffffffe000ULL

static void on_pip(struct timeline_lane *lane, const struct vmpt_item *item)
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
static void on_target(struct timeline_lane *lane, const struct vmpt_item *item)
{
	lane->has_fup = false;
	lane->stopped = false;
	if (lane->has_entry || lane->in_psb)
		return;
	lane->has_entry = true;
	lane->entry = item->payload;
	if (lane_span(lane, lane->next - 1)->kind == VMPT_SPAN_GUEST)
		vmpt_lane_exit_entry(lane, lane->next - 1, item->aux != 0, item->payload);
}

static void on_evd(struct timeline_lane *lane, const struct vmpt_item *item)
{
	if (item->aux == VMPT_EVD_VMXR) {
		lane->has_reason = true;
		lane->reason = (u16)item->payload;
	} else if (item->aux == VMPT_EVD_VMXQ) {
		lane->has_qualification = true;
		lane->qualification = item->payload;
	}
}

static void take_item(struct timeline_lane *lane, const struct vmpt_item *item, u64 offset,
		      const struct vmpt_time *time)
{
	struct vmpt_span *span = lane_span(lane, lane->next - 1);

	switch (item->kind) {
	case VMPT_PT_PSB:
		lane->in_psb = true;
		if (lane->stopped)
			vmpt_lane_resume(lane, offset, time);
		break;
	case VMPT_PT_PSBEND:
		lane->in_psb = false;
		break;
	case VMPT_PT_TSC:
	case VMPT_PT_CBR:
		if (lane->stopped)
			vmpt_lane_resume(lane, offset, time);
		break;
	case VMPT_PT_FUP:
		if (!lane->in_psb) {
			lane->has_fup = item->aux != 0;
			lane->fup = item->payload;
		}
		break;
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
static bool is_early(const struct timeline_lane *lane, const struct vmpt_item *item,
		     const struct vmpt_time *time)
{
	if (item->kind == VMPT_PT_PAD || time->tsc == VMPT_TIME_NONE)
		return true;
	/* In a group (VMPTRLD's VMCS may be its first) the PIP has the time. */
	if (lane->settling == SETTLE_GROUP)
		return item->kind == VMPT_PT_VMCS || item->kind == VMPT_PT_MODE_EXEC ||
		       (item->kind < VMPT_PT_KINDS &&
			vmpt_pt_table[item->kind].classes & VMPT_PT_TIMING);
	/* After a loss a PSB+ begins with the old time; the new one comes in it or soon after. */
	return item->kind == VMPT_PT_PSB || !bounded(time);
}

static void settle(struct timeline_lane *lane, const struct vmpt_item *item,
		   const struct vmpt_time *time)
{
	struct vmpt_span *span = lane_span(lane, lane->next - 1);

	if (is_early(lane, item, time)) {
		lane->executed |= !lane->in_psb && item->kind != VMPT_PT_PAD;
		return;
	}
	span->start = *time;
	/* Code already ran when the time became known. */
	if (lane->settling == SETTLE_PSB && lane->executed)
		span->start.early = VMPT_TIME_OPEN;
	if (lane->next >= lane->first + 2)
		lane_span(lane, lane->next - 2)->end = span->start;
	lane->settling = SETTLED;
}

/* ---- the walk ---- */

/* The time of the batch's last item, for the last item before a stream's end. */
static void end_batch(struct timeline_lane *lane)
{
	const struct vmpt_batch *b = &lane->batch;
	const struct vmpt_item *last;

	vmpt_clock_batch_end(&lane->clock, b);
	if (!b->count)
		return;
	last = &b->items[b->count - 1];
	lane->time = clock_is_timed(last) ? lane->clock.now : lane->clock.next;
	if (last->kind == VMPT_PT_CYC)
		lane->time.late = VMPT_TIME_OPEN;
}

int vmpt_lane_have_item(struct timeline_lane *lane)
{
	int ret;

	while (!lane->items_done && lane->item >= lane->batch.count) {
		end_batch(lane);
		ret = vmpt_lane_next_batch(lane);
		if (ret <= 0)
			lane->batch.count = 0;
		if (ret < 0)
			return ret;
		lane->item = lane->gap = 0;
		lane->items_done = !ret;
	}
	return !lane->items_done;
}

/* What an item matters for. */
enum {
	TIMED = 1,  /* for the clock */
	WANTED = 2, /* for take_item() */
	FLOW = 4,   /* TNTs: code executed */
	TARGET = 8, /* TIP: the same, with an IP; for on_target() if it is the span's first */
};

void vmpt_lane_item_classes(struct timeline_lane *lane)
{
	/* Without TIMED */
	static const u8 class_of[256] = {
		[VMPT_ITEM_RUN] = FLOW,	    [VMPT_PT_TNT_64] = FLOW,   [VMPT_PT_TIP] = TARGET,
		[VMPT_PT_TSC] = WANTED,	    [VMPT_PT_CBR] = WANTED,    [VMPT_PT_OVF] = WANTED,
		[VMPT_PT_PSB] = WANTED,	    [VMPT_PT_PSBEND] = WANTED, [VMPT_PT_TIP_PGD] = WANTED,
		[VMPT_PT_TIP_PGE] = WANTED, [VMPT_PT_PWRE] = WANTED,   [VMPT_PT_PWRX] = WANTED,
		[VMPT_PT_FUP] = WANTED,	    [VMPT_PT_PIP] = WANTED,    [VMPT_PT_EVD] = WANTED,
		[VMPT_PT_MWAIT] = WANTED,   [VMPT_ITEM_LOSS] = WANTED,
	};
	unsigned int kind;

	for (kind = 0; kind < VMPT_ARRAY_SIZE(class_of); kind++) {
		lane->class_of[kind] = class_of[kind] | (vmpt_time_kinds[kind] ? TIMED : 0);
		lane->looked_at[kind] = (lane->class_of[kind] & (TIMED | WANTED)) != 0;
	}
}

/*
 * @clock has been fed item @i, a CYC: its time is that of the packet right after it. There is no
 * gap before item @gap.
 */
static void cyc_time(const struct timeline_lane *lane, struct vmpt_clock *clock, size_t i,
		     size_t gap, struct vmpt_time *time)
{
	const struct vmpt_batch *b = &lane->batch;

	*time = clock->now;
	if (i + 1 == b->count) {
		time->late = VMPT_TIME_OPEN;
	} else if (i + 1 < gap && clock_is_timed(&b->items[i + 1])) {
		clock_feed(clock, b, i + 1);
		if (!clock->back)
			*time = clock->now;
	}
}

/* Item @i has been fed to the clock: its time is the span's, if that waits for one. */
static void settle_at(struct timeline_lane *lane, size_t i, const struct vmpt_time *time)
{
	const struct vmpt_item *item = &lane->batch.items[i];
	struct vmpt_clock ahead;
	struct vmpt_time cyc;

	if (item->kind == VMPT_PT_CYC) {
		ahead = lane->clock;
		cyc_time(lane, &ahead, i, lane->gap, &cyc);
		time = &cyc;
	}
	settle(lane, item, time);
}

/* Item @i, of class @class. */
static inline void take_one(struct timeline_lane *lane, size_t i, u8 class)
{
	const struct vmpt_item *item = &lane->batch.items[i];
	const struct vmpt_time *time = &lane->clock.next;

	if (class & TIMED) {
		clock_feed(&lane->clock, &lane->batch, i);
		time = &lane->clock.now;
		if (lane->clock.back && !lane_span(lane, lane->next - 1)->back)
			lane_span(lane, lane->next - 1)->back = lane->clock.back;
	}
	/* TraceEn is 1 then: only the current context is not traced. */
	lane->stopped &= item->kind != VMPT_PT_MTC;
	if (class & TARGET)
		on_target(lane, item);
	if (class & WANTED)
		take_item(lane, item, lane->batch.base + item->offset, time);
	if (lane->settling)
		settle_at(lane, i, time);
}

/* Whether the span's start waits for a time that the next item may have. */
static inline bool is_settling(const struct timeline_lane *lane)
{
	/* While no time is known, only a time item has one. */
	return lane->settling != SETTLED &&
	       !(lane->executed && lane->clock.next.tsc == VMPT_TIME_NONE);
}

/*
 * TNTs and TIPs are the most frequent items by far, in unpredictable order: they are handled
 * without a branch on the kind. True: done.
 */
static inline bool is_light(struct timeline_lane *lane, u8 class)
{
	bool heavy = class & (TIMED | WANTED);

	lane->has_fup &= !(class & (FLOW | TARGET));
	lane->has_entry |= (class & FLOW) != 0;
	lane->stopped &= !(class & TARGET);
	heavy |= ((class & TARGET) != 0) & !(lane->has_entry | lane->in_psb);
	return !(heavy | is_settling(lane));
}

/* Whether the next TNT or TIP, or for a time any item, changes anything. */
static inline bool is_waiting(const struct timeline_lane *lane)
{
	return lane->has_fup | !lane->has_entry | lane->stopped | is_settling(lane);
}

/*
 * Items [@i, @to), at most CLOCK_BLOCK and without a gap. Returns the first for which there is no
 * room.
 */
static size_t take_block(struct timeline_lane *lane, size_t i, size_t to)
{
	const struct vmpt_item *items = lane->batch.items;
	u32 at[CLOCK_BLOCK + 1];
	size_t k = 0, n;

	n = clock_find(items, i, to, lane->looked_at, at);
	at[n] = (u32)to;
	for (;; i++, k++) {
		for (; i < at[k] && is_waiting(lane); i++)
			if (!is_light(lane, lane->class_of[items[i].kind]))
				take_one(lane, i, lane->class_of[items[i].kind]);
		i = at[k];
		if (k == n)
			return to;
		if (items[i].kind == VMPT_PT_CYC && !is_waiting(lane)) {
			k = clock_take_cycs(&lane->clock, items, at, k, n) - 1;
			i = at[k];
			continue;
		}
		if (lane->class_of[items[i].kind] & WANTED && lane_is_full(lane))
			return i;
		take_one(lane, i, lane->class_of[items[i].kind]);
	}
}

/* Items of the batch up to number @end, or while there is room. */
static void take_some(struct timeline_lane *lane, size_t end)
{
	size_t i = lane->item, to, reached;

	while (i < end) {
		if (i >= lane->gap)
			lane->gap = vmpt_clock_gaps(&lane->clock, lane->stream, &lane->batch, i);
		to = end < lane->gap ? end : lane->gap;
		to = to - i < CLOCK_BLOCK ? to : i + CLOCK_BLOCK;
		reached = take_block(lane, i, to);
		lane->item = reached;
		if (reached < to)
			return;
		i = to;
	}
}

/* Number of the batch's items before @limit, including those of the loss that the slice is. */
static size_t items_before(const struct timeline_lane *lane, u64 limit)
{
	const struct vmpt_batch *b = &lane->batch;
	bool lost = lane->slice.begin == VMPT_BEGIN_LOSS;
	size_t n = b->count;

	if (b->base + b->items[n - 1].offset < limit)
		return n;
	n = vmpt_search(i, lane->item, n, b->base + b->items[i].offset < limit);
	/* A loss may have no bytes. */
	while (lost && n < b->count && b->items[n].kind == VMPT_ITEM_LOSS &&
	       b->base + b->items[n].offset == lane->slice.offset)
		n++;
	return n;
}

/* Take the items up to @limit. 1: all taken, 0: the ring is full, or an error. */
int vmpt_lane_take_items(struct timeline_lane *lane, u64 limit)
{
	size_t end;
	int ret;

	while ((ret = vmpt_lane_have_item(lane)) > 0) {
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
int vmpt_lane_boundary_time(struct timeline_lane *lane, struct vmpt_time *time)
{
	const struct vmpt_item *item;
	struct vmpt_clock ahead;
	int ret = vmpt_lane_have_item(lane);
	size_t gap = lane->gap;

	*time = lane->time;
	if (ret <= 0)
		return ret;
	item = &lane->batch.items[lane->item];
	*time = lane->clock.next;
	if (lane->item < lane->gap && !clock_is_timed(item))
		return 0;
	ahead = lane->clock;
	if (lane->item >= lane->gap)
		gap = vmpt_clock_gaps(&ahead, lane->stream, &lane->batch, lane->item);
	*time = ahead.next;
	if (!clock_is_timed(item))
		return 0;
	clock_feed(&ahead, &lane->batch, lane->item);
	*time = ahead.now;
	if (item->kind == VMPT_PT_CYC)
		cyc_time(lane, &ahead, lane->item, gap, time);
	return 0;
}
