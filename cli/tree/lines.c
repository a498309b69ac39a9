// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Lines of one CPU or task that wait to be printed, so that a call that repeats becomes one line.
 * Calls are equal if their functions are, and what they called, in its order.
 */
#include <stdlib.h>

#include "cli/tree/tree.h"
#include "util/array.h"
#include "util/hash.h"

void tree_place_init(struct tree_place *p, u64 start)
{
	*p = (struct tree_place){ .start = start, .last = TREE_NOWHERE, .end = TREE_NOWHERE };
}

u64 tree_hash(u64 hash, u64 value)
{
	return vmpt_mix64(hash * 0x9e3779b97f4a7c15ULL + value + 1);
}

u64 tree_lane_add(struct tree_lane *lane, const struct tree_line *line)
{
	if (vmpt_reserve(&lane->line, &lane->room, lane->count + 1))
		return TREE_NOWHERE;
	lane->line[lane->count] = *line;
	return lane->base + lane->count++;
}

bool tree_lane_has(const struct tree_lane *lane, u64 n)
{
	return n != TREE_NOWHERE && n >= lane->base && n >= lane->barrier;
}

struct tree_line *tree_lane_line(struct tree_lane *lane, u64 n)
{
	return &lane->line[n - lane->base];
}

void tree_lane_cut(struct tree_lane *lane, u64 n)
{
	lane->count = (size_t)(n - lane->base);
}

void tree_lane_clear(struct tree_lane *lane)
{
	lane->base += lane->count;
	lane->count = 0;
}

/* One more of what @line counts. */
static void add_one(struct tree_line *line, const struct tree_line *one)
{
	const u64 ticks = one->length.ticks;

	line->count++;
	line->min = ticks < line->min ? ticks : line->min;
	line->max = ticks > line->max ? ticks : line->max;
	line->length.ticks += ticks;
	line->length.error += one->length.error;
	line->length.known &= one->length.known;
	line->instructions += one->instructions;
	line->assumed |= one->assumed;
}

int tree_lane_fold(struct tree_lane *lane, struct tree_place *p, u64 start, u64 hash,
		   const struct tree_line *one)
{
	struct tree_line more = *one, *last;

	p->hash = tree_hash(p->hash, hash);
	if (p->last_hash != hash || p->end != start || !tree_lane_has(lane, p->last)) {
		p->last = start;
		p->end = lane->base + lane->count;
		p->last_hash = hash;
		p->more = false;
		return 0;
	}
	tree_lane_cut(lane, start);
	last = tree_lane_line(lane, start - 1);
	if (p->more || last->what != TREE_END) {
		add_one(last, one);
		return 0;
	}
	more.what = TREE_MORE;
	more.count = 1;
	more.min = more.max = one->length.ticks;
	if (tree_lane_add(lane, &more) == TREE_NOWHERE)
		return -VMPT_E_NOMEM;
	p->end++;
	p->more = true;
	return 0;
}
