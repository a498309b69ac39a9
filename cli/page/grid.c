// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Shares of time by bucket, for each lane of the page. The length of the trace is known only at its
 * end: buckets begin one tick wide and double, all lanes at once, whenever the time outgrows
 * them. Lanes also share a budget of buckets.
 */
#include <stdlib.h>
#include <string.h>

#include "cli/page/parts.h"
#include "util/array.h"

/* The maximum of all lanes together, and the minimum of one. */
#define ALL_BUCKETS (1u << 17)
#define MIN_BUCKETS 64u

/* The cell of @state; PAGE_OTHER's if there are too many. NULL: no memory. */
static struct page_cell *cell_of(struct page_bucket *bucket, u16 state)
{
	struct page_cell *cell;
	u16 i;

	for (i = 0; i < bucket->cells; i++)
		if (bucket->cell[i].state == state)
			return &bucket->cell[i];
	if (bucket->cells >= PAGE_CELLS - 1 && state != PAGE_OTHER)
		return cell_of(bucket, PAGE_OTHER);
	if (vmpt_grow(&bucket->cell, bucket->cells))
		return NULL;
	cell = &bucket->cell[bucket->cells++];
	*cell = (struct page_cell){ .state = state };
	return cell;
}

/* Without memory the cells of @from are lost: they are only drawn, not summed. */
static void merge(struct page_bucket *to, struct page_bucket *from)
{
	u16 i;

	if (!to->cells) {
		free(to->cell);
		*to = *from;
		*from = (struct page_bucket){ 0 };
		return;
	}
	for (i = 0; i < from->cells; i++) {
		struct page_cell *cell = cell_of(to, from->cell[i].state);

		if (cell) {
			cell->count += from->cell[i].count;
			cell->ticks += from->cell[i].ticks;
		}
	}
	free(from->cell);
	*from = (struct page_bucket){ 0 };
}

void page_grid_widen(struct page_grid *grid, bool halve_count)
{
	size_t lane;
	u32 i;

	for (lane = 0; lane < grid->lanes; lane++) {
		struct page_bucket *bucket = grid->lane[lane].bucket;

		for (i = 0; bucket && i < grid->count; i += 2) {
			if (i) {
				bucket[i / 2] = bucket[i];
				bucket[i] = (struct page_bucket){ 0 };
			}
			merge(&bucket[i / 2], &bucket[i + 1]);
		}
	}
	grid->width *= 2;
	if (halve_count)
		grid->count /= 2;
}

static int add_lane(struct page_grid *grid, size_t lane)
{
	if (vmpt_reserve_zeroed(&grid->lane, &grid->lanes, lane + 1))
		return -1;
	if (!grid->count) {
		grid->count = grid->max;
		grid->width = 1;
	}
	grid->used++;
	while (grid->used * grid->count > ALL_BUCKETS && grid->count > MIN_BUCKETS &&
	       grid->width < 1ULL << 62)
		page_grid_widen(grid, true);
	grid->lane[lane].bucket = calloc(grid->count, sizeof(*grid->lane[lane].bucket));
	return grid->lane[lane].bucket ? 0 : -1;
}

int page_grid_add(struct page_grid *grid, size_t lane, u16 state, u64 start, u64 end)
{
	struct page_cell *cell;
	u64 at, stop, i;

	if ((lane >= grid->lanes || !grid->lane[lane].bucket) && add_lane(grid, lane))
		return -1;
	if (end < start)
		end = start;
	while (end / grid->width >= grid->count)
		page_grid_widen(grid, false);
	for (at = start, i = start / grid->width; at < end || at == start; at = stop, i++) {
		cell = cell_of(&grid->lane[lane].bucket[i], state);
		if (!cell)
			return -1;
		stop = (i + 1) * grid->width;
		if (stop > end)
			stop = end;
		cell->ticks += stop - at;
		cell->count += at == start;
		if (start == end)
			break;
	}
	return 0;
}

int page_grid_move(struct page_grid *grid, size_t lane, u16 from, u16 to,
		   const struct page_run *run)
{
	u64 i, left = run->ticks;

	for (i = run->start / grid->width; left && i * grid->width < run->end; i++) {
		struct page_bucket *bucket = &grid->lane[lane].bucket[i];
		u64 at = i * grid->width, stop = at + grid->width, ticks;
		struct page_cell *cell[2];

		/* Adding one may move the others. */
		if (!cell_of(bucket, to) || !cell_of(bucket, from))
			return -1;
		cell[0] = cell_of(bucket, from);
		cell[1] = cell_of(bucket, to);
		ticks = (stop < run->end ? stop : run->end) - (at > run->start ? at : run->start);
		ticks = ticks < left ? ticks : left;
		ticks = ticks < cell[0]->ticks ? ticks : cell[0]->ticks;
		cell[0]->ticks -= ticks;
		cell[1]->ticks += ticks;
		left -= ticks;
	}
	return 0;
}

void page_grid_put(const struct page_grid *grid, size_t lanes, struct page_bytes *bytes)
{
	static const struct page_lane none;
	size_t lane;
	u32 i, last, filled;
	u16 k;

	for (lane = 0; lane < lanes; lane++) {
		const struct page_bucket *bucket =
			(lane < grid->lanes ? &grid->lane[lane] : &none)->bucket;

		for (i = filled = 0; bucket && i < grid->count; i++)
			filled += bucket[i].cells != 0;
		page_put(bytes, filled);
		for (i = last = 0; bucket && i < grid->count; i++) {
			if (!bucket[i].cells)
				continue;
			page_put(bytes, i - last);
			page_put(bytes, bucket[i].cells);
			for (k = 0; k < bucket[i].cells; k++) {
				page_put(bytes, bucket[i].cell[k].state);
				page_put(bytes, bucket[i].cell[k].count);
				page_put(bytes, bucket[i].cell[k].ticks);
			}
			last = i;
		}
	}
}

void page_grid_free(struct page_grid *grid)
{
	size_t lane;
	u32 i;

	for (lane = 0; lane < grid->lanes; lane++) {
		for (i = 0; grid->lane[lane].bucket && i < grid->count; i++)
			free(grid->lane[lane].bucket[i].cell);
		free(grid->lane[lane].bucket);
	}
	free(grid->lane);
}
