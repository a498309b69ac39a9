// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* vmpt calls: which lines wait where, and when they are printed. */
#include "cli/tree/tree.h"
#include "util/array.h"

/* NULL: no memory. */
struct tree_lane *tree_lane_of(struct tree *d, const struct vmpt_call_item *item)
{
	const size_t n = d->per == TREE_PER_CPU ? item->stream : item->task;
	size_t i = d->lanes;

	if (vmpt_reserve_zeroed(&d->lane, &d->lanes, n + 1))
		return NULL;
	for (; i < d->lanes; i++)
		d->lane[i].shown = TREE_NO_TASK;
	return &d->lane[n];
}

/* ---- lines ---- */

static void print_line(struct cli *cli, const struct tree_line *line)
{
	struct tree *d = cli->data;

	if (d->head && d->printed >= d->head)
		return;
	if (cli->json)
		tree_json(cli, line);
	else
		tree_print(cli, line);
	d->printed++;
}

static void print_lane(struct cli *cli, struct tree_lane *lane)
{
	struct tree *d = cli->data;
	size_t i;

	for (i = 0; i < lane->count && !cli_output_failed(cli); i++)
		print_line(cli, &lane->line[i]);
	d->lines -= lane->count;
	tree_lane_clear(lane);
}

void tree_print_all(struct cli *cli)
{
	struct tree *d = cli->data;
	size_t i;

	for (i = 0; i < d->lanes; i++)
		print_lane(cli, &d->lane[i]);
}

/* A task other than that of the lane's last line: a line that says so. */
static int add_run(struct tree *d, struct tree_lane *lane, const struct vmpt_call_item *item)
{
	const struct tree_task *t = &d->task[item->task];
	const struct tree_line line = {
		.what = TREE_RUN,
		.task = item->task,
		.stream = item->stream,
		.tsc = item->tsc,
		.offset = item->offset,
		.count = 1,
		.exit = lane->shown == TREE_NO_TASK || d->task[lane->shown].vm == t->vm
				? NULL
				: d->task[lane->shown].exit,
	};

	if (lane->shown == item->task)
		return 0;
	if (tree_lane_add(lane, &line) == TREE_NOWHERE)
		return -VMPT_E_NOMEM;
	lane->shown = item->task;
	lane->barrier = lane->base + lane->count;
	d->lines++;
	return 0;
}

/* Add @line; its number in *@at (may be NULL). 0 or a negative error. */
int tree_add(struct cli *cli, const struct vmpt_call_item *item, struct tree_line *line, u64 *at)
{
	struct tree *d = cli->data;
	struct tree_lane *lane = tree_lane_of(d, item);
	u64 n;

	if (!lane || add_run(d, lane, item))
		return -VMPT_E_NOMEM;
	line->task = item->task;
	line->stream = item->stream;
	line->offset = item->offset;
	if (!line->tsc)
		line->tsc = item->tsc;
	n = tree_lane_add(lane, line);
	if (n == TREE_NOWHERE)
		return -VMPT_E_NOMEM;
	if (at)
		*at = n;
	d->lines++;
	return 0;
}

/* Enough lines are kept: what is printed cannot fold any more. */
void tree_limit(struct cli *cli)
{
	struct tree *d = cli->data;
	u64 most = d->head && d->head < TREE_LINES_MAX ? d->head : TREE_LINES_MAX;

	if (d->lines > most)
		tree_print_all(cli);
}

/* The line at @start, and those after it, are whole; @one: their sum. */
int tree_fold(struct cli *cli, const struct vmpt_call_item *item, u64 start, u64 hash,
	      const struct tree_line *one)
{
	struct tree *d = cli->data;
	struct tree_lane *lane = tree_lane_of(d, item);
	const size_t before = lane->count;
	int ret = tree_lane_fold(lane, &tree_top(&d->task[item->task])->place, start, hash, one);

	d->lines += lane->count - before;
	return ret;
}
