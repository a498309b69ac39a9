// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* vmpt calls: from calls, returns and switches of tasks to lines of each CPU or task. */
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

#include "cli/tree/tree.h"
#include "util/array.h"

/* Calls of one task that are open: far beyond what a stack holds. */
#define FRAMES_MAX (1u << 20)

/* Switches of tasks that are looked at for who ran meanwhile. */
#define OTHERS_STEPS 64

static struct tree_when when_of(const struct tree *d, const struct vmpt_call_item *item)
{
	if (!d->timed)
		return (struct tree_when){ item->instructions, item->instructions, true };
	if (item->tsc == VMPT_TIME_NONE)
		return (struct tree_when){ 0 };
	return (struct tree_when){ item->tsc,
				   item->tsc_end == VMPT_TIME_NONE ? item->tsc : item->tsc_end,
				   true };
}

/* Times are those of the packets before, as everywhere; both may be later. */
static struct tree_length length_of(const struct tree_when *from, const struct tree_when *to)
{
	const u64 a = from->to - from->from, b = to->to - to->from;

	return (struct tree_length){
		.ticks = to->from > from->from ? to->from - from->from : 0,
		.error = a > b ? a : b,
		.known = from->known && to->known,
	};
}

/* ---- tasks ---- */

/* NULL: no memory. */
static struct tree_task *find_task(struct cli *cli, u32 number)
{
	struct tree *d = cli->data;
	struct vmpt_call_node root;
	struct vmpt_call_task task;
	struct tree_task *t;

	if (vmpt_reserve_zeroed(&d->task, &d->tasks, (size_t)number + 1))
		return NULL;
	t = &d->task[number];
	vmpt_calls_task(d->source.calls, number, &task);
	if (t->known && t->root == task.root)
		return t;
	if (!t->known) {
		if (vmpt_reserve_zeroed(&t->frame, &t->room, 1))
			return NULL;
		t->frames = 1;
		tree_place_init(&t->frame->place, TREE_NOWHERE);
	}
	vmpt_calls_node(d->source.calls, task.root, &root);
	t->vm = task.vm;
	t->root = task.root;
	t->process = calls_root_process(&d->source, &root);
	t->wanted = calls_wanted(&d->source, t->process);
	t->known = true;
	return t;
}

/* ---- calls ---- */

static bool matches(struct cli *cli, u32 function)
{
	struct tree *d = cli->data;
	size_t i, n = d->matched;

	if (function >= d->source.functions || vmpt_reserve_zeroed(&d->matches, &n, function + 1))
		return false;
	d->matched = n;
	if (!d->matches[function])
		d->matches[function] = 1;
	else
		return d->matches[function] == 2;
	for (i = 0; i < d->function.count; i++)
		if (!fnmatch(d->function.s[i], d->source.function[function].name, 0) ||
		    !fnmatch(d->function.s[i], d->source.function[function].text, 0))
			d->matches[function] = 2;
	return d->matches[function] == 2;
}

/* Whether a frame at the top of @t is shown; its depth from where the lines begin. */
static bool is_shown(const struct tree *d, const struct tree_task *t, u32 *depth)
{
	*depth = (u32)(t->frames - 1 - (t->inside ? t->inside : 1));
	return t->wanted && (!d->function.count || t->inside) && (!d->depth || *depth < d->depth);
}

/* The end of the top frame was not seen. */
static void drop(struct tree_task *t)
{
	t->frames--;
	if (t->inside == t->frames)
		t->inside = 0;
}

static int enter(struct cli *cli, const struct vmpt_call_item *item)
{
	struct tree *d = cli->data;
	struct tree_task *t = &d->task[item->task];
	struct tree_line line = { .what = TREE_CALL, .assumed = item->assumed, .count = 1 };
	struct vmpt_call_node node;
	struct tree_frame *f;

	while (t->frames > 1 && tree_top(t)->depth >= item->depth)
		drop(t);
	if (t->frames >= FRAMES_MAX || vmpt_reserve_zeroed(&t->frame, &t->room, t->frames + 1))
		return -VMPT_E_NOMEM;
	vmpt_calls_node(d->source.calls, item->node, &node);
	f = &t->frame[t->frames++];
	*f = (struct tree_frame){
		.when = when_of(d, item),
		.depth = item->depth,
		.function = calls_function(&d->source, &node),
		.kind = node.kind,
		.assumed = item->assumed,
	};
	tree_place_init(&f->place, TREE_NOWHERE);
	if (d->function.count && !t->inside && t->wanted && matches(cli, f->function))
		t->inside = t->frames - 1;
	if (!is_shown(d, t, &line.depth))
		return 0;
	line.function = f->function;
	line.kind = f->kind;
	line.instructions = item->instructions;
	return tree_add(cli, item, &line, &f->place.start);
}

/* The top frame of its task, which is shown, ends. */
static int end_frame(struct cli *cli, const struct vmpt_call_item *item, const struct tree_frame *f,
		     struct tree_line *line)
{
	struct tree *d = cli->data;
	struct tree_lane *lane = tree_lane_of(d, item);
	const u64 start = f->place.start;
	u64 n;

	if (!lane)
		return -VMPT_E_NOMEM;
	if (!tree_lane_has(lane, start)) {
		line->far = true;
		return tree_add(cli, item, line, NULL);
	}
	if (d->min_ticks && line->length.known && line->length.ticks < d->min_ticks) {
		d->lines -= lane->base + lane->count - start;
		tree_lane_cut(lane, start);
		return 0;
	}
	if (start + 1 == lane->base + lane->count) {
		struct tree_line *call = tree_lane_line(lane, start);

		line->what = TREE_LEAF;
		line->tsc = call->tsc;
		line->offset = call->offset;
		line->task = call->task;
		line->stream = call->stream;
		*call = *line;
	} else {
		int ret = tree_add(cli, item, line, &n);

		if (ret)
			return ret;
	}
	return tree_fold(cli, item, start,
			 tree_hash(tree_hash(f->place.hash, f->function), f->kind), line);
}

/* A call that began before --from ends. */
static int leave_unseen(struct cli *cli, const struct vmpt_call_item *item)
{
	struct tree *d = cli->data;
	struct tree_task *t = &d->task[item->task];
	struct tree_line line = { .what = TREE_END, .count = 1, .far = true, .assumed = true };
	struct vmpt_call_node node;

	if (!t->wanted || d->function.count)
		return 0;
	vmpt_calls_node(d->source.calls, item->node, &node);
	line.function = calls_function(&d->source, &node);
	line.kind = node.kind;
	line.instructions = item->instructions - item->enter_instructions;
	return tree_add(cli, item, &line, NULL);
}

static int leave(struct cli *cli, const struct vmpt_call_item *item)
{
	struct tree *d = cli->data;
	struct tree_task *t = &d->task[item->task];
	const struct tree_when when = when_of(d, item);
	struct tree_line line = { .what = TREE_END, .count = 1 };
	struct tree_frame f;
	bool shown;

	/* Of frames that ended after --to nothing was said. */
	while (t->frames > 1 && tree_top(t)->depth > item->depth)
		drop(t);
	if (t->frames < 2 || tree_top(t)->depth < item->depth)
		return leave_unseen(cli, item);
	f = *tree_top(t);
	shown = f.place.start != TREE_NOWHERE;
	is_shown(d, t, &line.depth);
	t->frames--;
	if (t->inside == t->frames)
		t->inside = 0;
	line.function = f.function;
	line.kind = f.kind;
	line.assumed = f.assumed || item->assumed;
	line.length = length_of(&f.when, &when);
	line.min = line.max = line.length.ticks;
	line.instructions = item->instructions - item->enter_instructions;
	return shown ? end_frame(cli, item, &f, &line) : 0;
}

/* ---- what is between them ---- */

/* Who ran on the CPU since @t left it: up to three processes, the first ones. */
static void note_others(const struct tree *d, const struct tree_task *t, u64 offset,
			struct tree_line *line)
{
	const struct spans_runs *runs = d->spans.runs ? &d->spans.runs[t->out_stream] : NULL;
	size_t i = t->out_run, n;

	for (n = 0; runs && n < OTHERS_STEPS && i < runs->count && line->outs < 3; n++, i++) {
		const u32 process = d->task[runs->run[i].task].process;
		unsigned int k = 0;

		if (runs->run[i].offset > offset)
			break;
		while (k < line->outs && line->out[k] != process)
			k++;
		if (k == line->outs && process != t->process)
			line->out[line->outs++] = process;
	}
}

/* A line for the time out of the guest, which the task at its top is shown with. */
static int add_out(struct cli *cli, const struct vmpt_call_item *item, struct tree_line *line)
{
	struct tree *d = cli->data;
	u64 start, hash = tree_hash(1, line->exit ? line->exit->reason : ~0u);
	unsigned int i;

	line->min = line->max = line->length.ticks;
	if (d->min_ticks && line->length.known && line->length.ticks < d->min_ticks)
		return 0;
	if (tree_add(cli, item, line, &start))
		return -VMPT_E_NOMEM;
	for (i = 0; i < line->outs; i++)
		hash = tree_hash(hash, line->out[i]);
	return tree_fold(cli, item, start, hash, line);
}

/* The time from the line's exit to the next entry of its vCPU on that CPU, as vmpt exits has it.
 * False: there is none. */
static bool exit_length(const struct tree *d, u32 stream, struct tree_line *line)
{
	const struct spans_stream *of = &d->spans.stream[stream];
	const struct spans_span *span = line->exit + 1, *end = of->span + of->count;

	line->tsc = span->start;
	while (span < end && (span->kind != VMPT_SPAN_GUEST || span->vmcs != line->exit->vmcs))
		span++;
	if (span == end)
		return false;
	line->length =
		(struct tree_length){ span->start - line->tsc, span->error, span->error != ~0u };
	return true;
}

/* Spans of @item's stream that ended before it: where the host's code is not known, exits of the
 * guest that runs are in no item. */
static int pass_exits(struct cli *cli, const struct vmpt_call_item *item)
{
	struct tree *d = cli->data;
	const struct spans_stream *of = &d->spans.stream[item->stream];
	struct tree_task *t = &d->task[item->task];
	struct tree_line line = { .what = TREE_OUT, .count = 1 };
	const bool seen = d->now[item->stream] == item->task;
	const struct spans_span *exit = NULL;
	size_t *at = &d->passed[item->stream];
	int ret = 0;

	for (; *at < of->count && of->span[*at].offset <= item->offset && !ret; (*at)++) {
		const struct spans_span *span = &of->span[*at];

		if (exit && span->kind == VMPT_SPAN_GUEST && span->vmcs == exit->vmcs &&
		    exit[1].offset > d->ran_at[item->stream] && seen &&
		    is_shown(d, t, &line.depth) && t->frames > 1) {
			line.depth++;
			line.exit = exit;
			exit_length(d, item->stream, &line);
			ret = add_out(cli, item, &line);
		}
		if (span->kind == VMPT_SPAN_GUEST)
			exit = span->exits ? span : NULL;
	}
	/* The exit that the guest is not back from, or the span of @item, which may end with one.
	 */
	*at = exit ? (size_t)(exit - of->span) : *at - (*at > 0);
	return ret;
}

/* A task runs again. */
static int back(struct cli *cli, const struct vmpt_call_item *item)
{
	struct tree *d = cli->data;
	struct tree_task *t = &d->task[item->task];
	const struct tree_when when = when_of(d, item);
	struct tree_lane *lane = tree_lane_of(d, item);
	struct tree_line line = { .what = TREE_OUT, .count = 1, .exit = t->exit };

	t->out = false;
	if (!lane)
		return -VMPT_E_NOMEM;
	/* Others' lines show it better, and above all calls there is nothing to say. */
	if (t->frames < 2 || tree_top(t)->place.start == TREE_NOWHERE ||
	    (d->per == TREE_PER_CPU && lane->shown != item->task))
		return 0;
	if (!is_shown(d, t, &line.depth))
		return 0;
	line.depth++;
	if (!line.exit || item->stream != t->out_stream || !exit_length(d, item->stream, &line)) {
		line.length = d->timed ? length_of(&t->out_when, &when) : (struct tree_length){ 0 };
		line.tsc = t->out_when.from;
	}
	note_others(d, t, item->stream == t->out_stream ? item->offset : ~0ULL, &line);
	return add_out(cli, item, &line);
}

static int run(struct cli *cli, const struct vmpt_call_item *item)
{
	struct tree *d = cli->data;
	struct tree_task *t = &d->task[item->task];
	const u32 before = d->now[item->stream];

	if (before != TREE_NO_TASK && before != item->task) {
		struct tree_task *old = &d->task[before];

		old->out = true;
		old->out_stream = item->stream;
		old->out_run = d->spans.runs ? d->spans.runs[item->stream].count : 0;
		old->out_when = when_of(d, item);
		old->exit = old->vm != t->vm && old->vm != VMPT_CALLS_HOST
				    ? spans_exit(&d->spans, item->stream, item->offset, item->tsc)
				    : NULL;
	}
	d->now[item->stream] = item->task;
	d->ran_at[item->stream] = item->offset;
	if (spans_ran(&d->spans, item->stream, item->offset, item->tsc, item->task))
		return -VMPT_E_NOMEM;
	return t->out ? back(cli, item) : 0;
}

static int gap(struct cli *cli, const struct vmpt_call_item *item)
{
	struct tree *d = cli->data;
	struct tree_task *t = &d->task[item->task];
	struct tree_line line = { .what = TREE_GAP, .count = 1 };
	u64 start;

	/* Where no call is known there is none to lose. */
	if (t->frames < 2 || !is_shown(d, t, &line.depth))
		return 0;
	line.depth++;
	if (tree_add(cli, item, &line, &start))
		return -VMPT_E_NOMEM;
	return tree_fold(cli, item, start, 2, &line);
}

static int take(struct cli *cli, const struct vmpt_call_item *item)
{
	struct tree *d = cli->data;
	int ret;

	if (!find_task(cli, item->task))
		return -VMPT_E_NOMEM;
	ret = d->spans.stream ? pass_exits(cli, item) : 0;
	if (ret)
		return ret;
	switch (item->what) {
	case VMPT_CALL_ENTER:
		return enter(cli, item);
	case VMPT_CALL_LEAVE:
		return leave(cli, item);
	case VMPT_CALL_RUN:
		return run(cli, item);
	default:
		return gap(cli, item);
	}
}

static bool is_over(struct cli *cli)
{
	const struct tree *d = cli->data;

	return (d->head && d->printed >= d->head) || cli_output_failed(cli);
}

int tree_walk(struct cli *cli)
{
	struct tree *d = cli->data;
	struct vmpt_call_batch batch;
	size_t i;
	int ret;

	d->now = malloc(cli->streams * sizeof(*d->now));
	d->passed = calloc(cli->streams, sizeof(*d->passed));
	d->ran_at = calloc(cli->streams, sizeof(*d->ran_at));
	if (!d->now || !d->passed || !d->ran_at)
		return cli_no_memory(cli);
	for (i = 0; i < cli->streams; i++)
		d->now[i] = TREE_NO_TASK;
	while (!is_over(cli) && (ret = vmpt_calls_next(d->source.calls, &batch)) != 0) {
		for (i = 0; ret > 0 && i < batch.count && !is_over(cli); i++) {
			const int err = take(cli, &batch.items[i]);

			ret = err ? err : ret;
			tree_limit(cli);
		}
		if (ret < 0)
			return calls_failed(&d->source, ret);
	}
	tree_print_all(cli);
	return cli->out_of_memory ? CLI_FAILED : CLI_OK;
}

void tree_close(struct tree *d)
{
	size_t i;

	for (i = 0; i < d->tasks; i++)
		free(d->task[i].frame);
	for (i = 0; i < d->lanes; i++)
		free(d->lane[i].line);
	free(d->task);
	free(d->lane);
	free(d->now);
	free(d->passed);
	free(d->ran_at);
	free(d->matches);
	spans_close(&d->spans);
	calls_close(&d->source);
}
