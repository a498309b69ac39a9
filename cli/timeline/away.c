// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The time from an exit to the next entry of the same vCPU, by what the CPU that it exited on did
 * meanwhile (docs/timeline.md, "The time out of the guest"). Each CPU has running sums, so memory
 * and work do not depend on how long a vCPU is out or how many are.
 */
#include <string.h>

#include "cli/timeline/internal.h"

static enum timeline_part part_of(const struct vmpt_span *span)
{
	switch (span->kind) {
	case VMPT_SPAN_HOST:
		return TIMELINE_HOST;
	case VMPT_SPAN_GUEST:
		return TIMELINE_WAIT;
	}
	return TIMELINE_UNTRACED;
}

static u64 bound(const struct vmpt_time *time, u32 side)
{
	return time->tsc == VMPT_TIME_NONE || side == VMPT_TIME_OPEN ? 0 : side;
}

static bool is_open(const struct vmpt_time *time)
{
	return time->tsc == VMPT_TIME_NONE || time->early == VMPT_TIME_OPEN ||
	       time->late == VMPT_TIME_OPEN;
}

void timeline_sums_add(struct timeline_sums *sums, const struct vmpt_span *span, u64 start, u64 end)
{
	enum timeline_part p = part_of(span);

	sums->part[p].ticks += end - start;
	sums->part[p].early += bound(&span->start, span->start.late);
	sums->part[p].early += bound(&span->end, span->end.early);
	sums->part[p].late += bound(&span->start, span->start.early);
	sums->part[p].late += bound(&span->end, span->end.late);
	sums->part[p].opens += is_open(&span->start) + is_open(&span->end);
}

/* The CPU's @last span goes on after @s starts: take the rest of it out of the sums. */
static void cut_last(struct timeline_sums *sums, const struct timeline_span *s,
		     const struct vmpt_span *last, u64 start, u64 end)
{
	const struct vmpt_time *at = &s->span->start;
	enum timeline_part p = part_of(last);

	if (end <= s->start)
		return;
	sums->part[p].ticks -= end - (start < s->start ? s->start : start);
	sums->part[p].early += bound(at, at->early);
	sums->part[p].early -= bound(&last->end, last->end.early);
	sums->part[p].late += bound(at, at->late);
	sums->part[p].late -= bound(&last->end, last->end.late);
	sums->part[p].opens += is_open(at);
	sums->part[p].opens -= is_open(&last->end);
}

/* What no span covers (the CPU's trace has ended) is not traced; what spans cover twice is cut. */
static void make_fit(struct timeline_span *s, u64 out)
{
	static const u8 order[] = { TIMELINE_HOST, TIMELINE_WAIT, TIMELINE_UNTRACED };
	u64 rest = out;
	size_t i;

	for (i = 0; i < VMPT_ARRAY_SIZE(order); i++) {
		struct timeline_part_time *part = &s->out[order[i]];

		part->ticks = part->ticks < rest ? part->ticks : rest;
		rest -= part->ticks;
	}
	if (!rest)
		return;
	s->out[TIMELINE_UNTRACED].ticks += rest;
	s->out[TIMELINE_UNTRACED].early += s->out_early;
	s->out[TIMELINE_UNTRACED].late += s->out_late;
	s->out[TIMELINE_UNTRACED].open |= !s->out_bounded;
}

/* No part is negative or longer than the whole. */
static void limit(struct timeline_span *s, u64 out)
{
	unsigned int p;

	for (p = 0; p < TIMELINE_PARTS; p++) {
		struct timeline_part_time *part = &s->out[p];
		u64 most = out + s->out_late - part->ticks;

		part->early = part->early < part->ticks ? part->early : part->ticks;
		if (s->out_bounded)
			part->late = part->late < most ? part->late : most;
	}
}

/*
 * An exit whose reason is a guess, or unknown, may be a halt or not: then all of it is halted, or
 * nothing; if the code at its IP is known, only if that halts. So may a further exit that was not
 * traced. The bounds hold either way.
 */
static void add_doubt(struct timeline_span *s, u64 out)
{
	unsigned int p;

	for (p = 0; p < TIMELINE_PARTS; p++) {
		struct timeline_part_time *part = &s->out[p];

		part->guessed = part->ticks || part->late;
		part->early = part->ticks;
	}
	if (s->left.halted)
		return;
	s->out[TIMELINE_HALTED] = (struct timeline_part_time){
		.late = out + s->out_late,
		.open = !s->out_bounded,
		.guessed = true,
	};
}

/* The exit was a halt, or is taken for one. */
static void make_halted(struct timeline_span *s, u64 out)
{
	unsigned int p;

	for (p = 0; p < TIMELINE_PARTS; p++) {
		struct timeline_part_time *part = &s->out[p];

		if (!s->in_doubt)
			memset(part, 0, sizeof(*part));
		else
			part->late += part->ticks;
		part->ticks = part->early = 0;
	}
	s->out[TIMELINE_HALTED] = (struct timeline_part_time){
		.ticks = out,
		.early = s->out_early,
		.late = s->out_late,
		.open = !s->out_bounded,
	};
}

void timeline_away(struct timeline_span *s, const struct timeline_sums *from,
		   const struct timeline_sums *to, const struct vmpt_span *last, u64 start, u64 end)
{
	struct timeline_sums now = *to;
	u64 out = s->start - s->left_at;
	unsigned int p;

	cut_last(&now, s, last, start, end);
	for (p = 0; p < TIMELINE_PARTS; p++) {
		struct timeline_part_time *part = &s->out[p];
		/* Clocks that disagree can make the cut larger than the sums. */
		bool valid = now.part[p].ticks >= from->part[p].ticks;

		part->ticks = valid ? now.part[p].ticks - from->part[p].ticks : 0;
		part->early = now.part[p].early - from->part[p].early;
		part->late = now.part[p].late - from->part[p].late;
		part->open = !valid || now.part[p].opens != from->part[p].opens;
	}
	make_fit(s, out);
	limit(s, out);
	/* While tracing was off it may have run, and exited for another reason. */
	s->in_doubt =
		(!timeline_proved(&s->left) && !s->left.no_halt) || s->out[TIMELINE_UNTRACED].ticks;
	if (s->left.halted)
		make_halted(s, out);
	if (s->in_doubt)
		add_doubt(s, out);
}

void timeline_away_unknown(struct timeline_span *s)
{
	s->out[TIMELINE_UNTRACED] = (struct timeline_part_time){
		.ticks = s->start - s->left_at,
		.early = s->out_early,
		.late = s->out_late,
		.open = !s->out_bounded,
	};
}

void timeline_part_add(struct timeline_part_time *sum, const struct timeline_part_time *part)
{
	sum->ticks += part->ticks;
	sum->early += part->early;
	sum->late += part->late;
	sum->open |= part->open;
	sum->guessed |= part->guessed;
}

struct timeline_part_time timeline_exited(const struct timeline_span *s)
{
	u64 out = s->start - s->left_at;
	struct timeline_part_time all = {
		.early = s->out_early,
		.late = s->out_late,
		.open = !s->out_bounded,
	};

	if (s->left.halted)
		all.early = all.late = all.open = 0;
	else
		all.ticks = out;
	if (s->in_doubt) {
		all.guessed = true;
		all.early = all.ticks;
		all.late = out - all.ticks + s->out_late;
		all.open = !s->out_bounded;
	}
	return all;
}
