// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * vmpt perfetto: calls as slices, on a track for each task, with the process of its VM; on another
 * one for each CPU, which task it ran.
 */
#include <stdlib.h>
#include <string.h>

#include "cli/perfetto/command.h"
#include "util/array.h"

struct perfetto_task {
	bool known;
	bool wanted; /* by the filters */
	u32 vm;	     /* of .source */
	u32 track, name;
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

/* The flow from the exit before @item to a call of the host; 0: none. */
static u32 find_flow(const struct walk *w, const struct perfetto_task *t,
		     const struct vmpt_call_item *item, bool handles)
{
	struct perfetto_stream *s = &w->d->stream[item->stream];
	const struct calls_edge *edge = calls_spread_before(&w->d->spread, item->stream);
	bool *seen = handles ? &s->handled : &s->begun;

	if (!edge || w->d->source.vm[t->vm].owner.kind != VMPT_OWNER_HOST)
		return 0;
	if (edge->offset != s->after)
		s->begun = s->handled = false;
	s->after = edge->offset;
	if (*seen)
		return 0;
	*seen = true;
	s->begun = true;
	return edge->flow;
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

static int take(void *opaque, const struct vmpt_call_item *item, u64 time)
{
	struct walk *w = opaque;
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

int perfetto_calls(struct cli *cli, struct perfetto *d)
{
	struct walk w = { .cli = cli, .d = d, .calls = d->source.calls };
	struct vmpt_call_batch batch;
	int ret = 0, err = 0;
	size_t i;

	d->spread.zero = d->zero;
	d->spread.take = take;
	d->spread.opaque = &w;
	for (i = 0; i < cli->streams; i++)
		d->stream[i].tasks = PERFETTO_NONE;
	while (!err && (ret = vmpt_calls_next(w.calls, &batch)) > 0)
		for (i = 0; i < batch.count && !err; i++)
			err = calls_spread_add(&d->spread, &batch.items[i]);
	if (!err)
		err = calls_spread_end(&d->spread);
	if (err || cli->out_of_memory)
		return cli_no_memory(cli);
	if (d->spread.last > d->last)
		d->last = d->spread.last;
	return ret ? calls_failed(&d->source, ret) : CLI_OK;
}
