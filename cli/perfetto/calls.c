// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * vmpt perfetto: calls as slices, on a track for each task, with the process of its VM; on another
 * one for each CPU, which task it ran. A trace has a time every few hundred calls: what happened
 * between two of them is spread evenly, in its order.
 */
#include <stdlib.h>
#include <string.h>

#include "cli/perfetto/command.h"
#include "util/array.h"

/* Items that wait for the next time; more are spread over a part of it. */
#define ITEMS_MAX 65536

struct perfetto_task {
	bool known;
	bool wanted; /* by the filters */
	u32 vm;	     /* of .source */
	u32 track, name;
	u32 stream; /* of its last item */
	u64 instructions;
};

struct perfetto_node {
	u32 name; /* + 1; 0: not asked for so far */
	u8 category;
	bool handles; /* exits: the host's dispatcher */
};

struct walk {
	struct cli *cli;
	struct perfetto *d;
	struct vmpt_calls *calls;
};

static const enum perfetto_category category_of[VMPT_CALL_KINDS] = {
	[VMPT_CALL_ROOT] = PERFETTO_UNKNOWN,	    [VMPT_CALL_UNKNOWN] = PERFETTO_UNKNOWN,
	[VMPT_CALL_CALL] = PERFETTO_CALL,	    [VMPT_CALL_SYSTEM] = PERFETTO_SYSTEM,
	[VMPT_CALL_INTERRUPT] = PERFETTO_INTERRUPT, [VMPT_CALL_SIGNAL] = PERFETTO_SIGNAL,
};

/* ---- what numbers stand for ---- */

/* NULL: no memory. */
static struct perfetto_node *node_of(struct walk *w, u32 number)
{
	struct perfetto *d = w->d;
	struct perfetto_node *n;
	struct vmpt_call_node node;
	const char *name;
	u32 function;

	if (vmpt_reserve_zeroed(&d->node, &d->nodes, number + 1ULL))
		return NULL;
	n = &d->node[number];
	if (n->name)
		return n;
	vmpt_calls_node(w->calls, number, &node);
	function = calls_function(&d->source, &node);
	if (function >= d->source.functions)
		return NULL;
	name = d->source.function[function].text;
	n->handles = strstr(name, "handle_exit") != NULL;
	n->category = (u8)(node.kind < VMPT_CALL_KINDS ? category_of[node.kind] : PERFETTO_CALL);
	n->name = perfetto_name(&d->log, name) + 1;
	return n->name ? n : NULL;
}

/* "109 bash", "109 bash: one of 3"; the process of threads is not known apart. */
static int name_task(struct walk *w, struct perfetto_task *t, const struct vmpt_call_task *task)
{
	struct perfetto *d = w->d;
	struct vmpt_call_node root;
	char name[2 * CLI_WHO + 64];
	const struct calls_process *p;
	u32 process, number;

	vmpt_calls_node(w->calls, task->root, &root);
	number = calls_root_process(&d->source, &root);
	if (number >= d->source.processes)
		return -1;
	p = &d->source.process[number];
	t->vm = p->vm;
	t->wanted = calls_wanted(&d->source, number);
	if (!t->wanted)
		return 0;
	process = perfetto_process(&d->log, d->source.vm[p->vm].name);
	if (process == PERFETTO_NONE)
		return -1;
	if (task->one_of > 1)
		snprintf(name, sizeof(name), "%s: one of %u", p->name, task->one_of);
	else
		snprintf(name, sizeof(name), "%s", p->name);
	t->track = perfetto_track(&d->log, PERFETTO_THREAD, process, name);
	snprintf(name, sizeof(name), "%s: %s", d->source.vm[p->vm].name, p->name);
	t->name = perfetto_name(&d->log, name);
	return t->track == PERFETTO_NONE || t->name == PERFETTO_NONE ? -1 : 0;
}

/* NULL: no memory. */
static struct perfetto_task *task_of(struct walk *w, const struct vmpt_call_item *item)
{
	struct perfetto *d = w->d;
	struct perfetto_task *t;
	struct vmpt_call_task task;

	if (vmpt_reserve_zeroed(&d->task, &d->tasks, item->task + 1ULL))
		return NULL;
	t = &d->task[item->task];
	if (t->known)
		return t;
	vmpt_calls_task(w->calls, item->task, &task);
	if (name_task(w, t, &task))
		return NULL;
	t->known = true;
	t->stream = item->stream;
	t->instructions = item->instructions;
	return t;
}

/* ---- items ---- */

/* Instructions a microsecond of the VM. */
static int count_instructions(struct walk *w, struct perfetto_task *t,
			      const struct vmpt_call_item *item, u64 time)
{
	struct perfetto *d = w->d;
	const bool hz = d->hz > 0;
	u64 more = item->instructions - t->instructions;
	u32 process;

	if (item->instructions <= t->instructions)
		return 0;
	t->instructions = item->instructions;
	if (vmpt_reserve_zeroed(&d->instructions, &d->instruction_room, t->vm + 1ULL))
		return -1;
	if (!d->instructions[t->vm]) {
		process = perfetto_process(&d->log, d->source.vm[t->vm].name);
		if (process == PERFETTO_NONE)
			return -1;
		d->instructions[t->vm] =
			perfetto_rate(&d->rates, &d->log, process,
				      hz ? "instructions/us" : "instructions a tick",
				      hz ? d->hz / 1e6 : 1) +
			1;
	}
	/* 0 if there are too many rates already */
	if (d->instructions[t->vm])
		perfetto_rate_add(&d->rates, d->instructions[t->vm] - 1, time, more);
	return 0;
}

/*
 * @time, within the entry or exit before @item and the one after it: what comes before an exit is
 * not shown after it.
 */
static u64 between_edges(struct perfetto_stream *s, const struct vmpt_call_item *item, u64 time)
{
	while (s->next < s->edges && s->edge[s->next].offset <= item->offset) {
		s->next++;
		s->begun = s->handled = false;
	}
	if (s->next < s->edges && time > s->edge[s->next].time)
		time = s->edge[s->next].time;
	if (s->next && time < s->edge[s->next - 1].time)
		time = s->edge[s->next - 1].time;
	return time;
}

/* The flow from the exit before @item to a call of the host; 0: none. */
static u32 find_flow(const struct walk *w, const struct perfetto_task *t,
		     const struct vmpt_call_item *item, bool handles)
{
	struct perfetto_stream *s = &w->d->stream[item->stream];
	bool *seen = handles ? &s->handled : &s->begun;

	if (w->d->source.vm[t->vm].owner.kind != VMPT_OWNER_HOST || !s->next || *seen)
		return 0;
	*seen = true;
	s->begun = true;
	return s->edge[s->next - 1].flow;
}

static int enter(struct walk *w, const struct perfetto_task *t, const struct vmpt_call_item *item,
		 u64 time)
{
	struct perfetto *d = w->d;
	const struct perfetto_node *n = node_of(w, item->node);
	struct perfetto_slice *slice;
	int err;

	if (!n)
		return -1;
	slice = perfetto_begin(&d->log, t->track, time, n->name - 1, n->category, &err);
	if (!slice)
		return err;
	slice->cut = item->assumed;
	slice->flow = find_flow(w, t, item, n->handles);
	return 0;
}

static int leave(struct walk *w, const struct perfetto_task *t, const struct vmpt_call_item *item,
		 u64 time)
{
	struct perfetto_slice *slice;
	int err;

	slice = perfetto_end(&w->d->log, t->track, time, &err);
	if (!slice)
		return err;
	slice->cut |= item->assumed;
	slice->has_value = item->instructions >= item->enter_instructions;
	slice->value = item->instructions - item->enter_instructions;
	return 0;
}

/* The CPU runs another task; @t NULL: it is not known which. */
static int run_task(struct walk *w, u32 stream, const struct perfetto_task *t, u32 number, u64 time)
{
	struct perfetto *d = w->d;
	struct perfetto_stream *s = &d->stream[stream];
	char cpu[32], name[48];
	int err = 0;

	if (s->tasks == PERFETTO_NONE) {
		snprintf(name, sizeof(name), "%s tasks",
			 cli_stream_name(w->cli->stream[stream], cpu));
		s->tasks = perfetto_track(&d->log, PERFETTO_THREAD, d->host, name);
		if (s->tasks == PERFETTO_NONE)
			return -1;
	}
	if (perfetto_depth(&d->log, s->tasks)) {
		if (t && s->task == number)
			return 0;
		perfetto_end(&d->log, s->tasks, time, &err);
	}
	s->task = number;
	if (t && !err)
		perfetto_begin(&d->log, s->tasks, time, t->name, PERFETTO_RUN, &err);
	return err;
}

static int take(struct walk *w, const struct vmpt_call_item *item, u64 time)
{
	struct perfetto_task *t;

	if (item->what == VMPT_CALL_GAP) {
		w->d->log.gaps++;
		return run_task(w, item->stream, NULL, PERFETTO_NONE, time);
	}
	t = task_of(w, item);
	if (!t)
		return -1;
	if (!t->wanted)
		return item->what == VMPT_CALL_RUN
			       ? run_task(w, item->stream, NULL, PERFETTO_NONE, time)
			       : 0;
	if (count_instructions(w, t, item, time))
		return -1;
	switch (item->what) {
	case VMPT_CALL_ENTER:
		return enter(w, t, item, time);
	case VMPT_CALL_LEAVE:
		return leave(w, t, item, time);
	default:
		return run_task(w, item->stream, t, item->task, time);
	}
}

/* ---- times ---- */

static u64 ticks_of(const struct perfetto *d, u64 tsc)
{
	return tsc > d->zero ? tsc - d->zero : 0;
}

/* Add the items of a stream that wait, up to the time that they all were before, or to the middle
 * of that if there will be more. */
static int flush(struct walk *w, struct perfetto_stream *s, bool more)
{
	const struct vmpt_call_item *first = s->item;
	u64 from = s->from, to;
	size_t i, n = s->items;
	int err = 0;

	if (!n)
		return 0;
	if (first->tsc != VMPT_TIME_NONE && ticks_of(w->d, first->tsc) > from)
		from = ticks_of(w->d, first->tsc);
	to = first->tsc_end == VMPT_TIME_NONE ? from : ticks_of(w->d, first->tsc_end);
	if (to < from)
		to = from;
	if (more)
		to -= (to - from) / 2;
	s->items = 0;
	for (i = 0; i < n && !err; i++)
		err = take(w, &s->item[i],
			   between_edges(s, &s->item[i],
					 from + (u64)((unsigned __int128)(to - from) * (i + 1) /
						      (n + 1))));
	s->from = more ? to : from;
	if (to > w->d->last)
		w->d->last = to;
	return err;
}

static int add(struct walk *w, const struct vmpt_call_item *item)
{
	struct perfetto_stream *s = &w->d->stream[item->stream];
	struct perfetto_task *t = item->what == VMPT_CALL_GAP ? NULL : task_of(w, item);
	const bool full = s->items >= ITEMS_MAX;
	int err = 0;

	if (!t && item->what != VMPT_CALL_GAP)
		return -1;
	/* It came from another CPU: what it did there was before. */
	if (t && t->stream != item->stream) {
		err = flush(w, &w->d->stream[t->stream], true);
		t->stream = item->stream;
	}
	if (!err && s->items &&
	    (full || s->item->tsc != item->tsc || s->item->tsc_end != item->tsc_end))
		err = flush(w, s, s->item->tsc == item->tsc && s->item->tsc_end == item->tsc_end);
	if (err || vmpt_reserve(&s->item, &s->item_room, s->items + 1))
		return -1;
	s->item[s->items++] = *item;
	return 0;
}

int perfetto_calls(struct cli *cli, struct perfetto *d)
{
	struct walk w = { .cli = cli, .d = d, .calls = d->source.calls };
	struct vmpt_call_batch batch;
	int ret, err = 0;
	size_t i;

	for (i = 0; i < cli->streams; i++)
		d->stream[i].tasks = PERFETTO_NONE;
	while (!err && (ret = vmpt_calls_next(w.calls, &batch)) > 0)
		for (i = 0; i < batch.count && !err; i++)
			err = add(&w, &batch.items[i]);
	for (i = 0; i < cli->streams && !err; i++)
		err = flush(&w, &d->stream[i], false);
	if (err || cli->out_of_memory)
		return cli_no_memory(cli);
	return ret ? calls_failed(&d->source, ret) : CLI_OK;
}
