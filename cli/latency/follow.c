// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* vmpt latency: the calls of the wanted functions, from calls, returns and switches of tasks. */
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

#include "cli/latency/latency.h"
#include "util/array.h"
#include "util/hash.h"

#define FRAMES_MAX (1u << 20)

/* ---- which functions ---- */

/* One of the words between commas; a pattern, or an address. */
static bool is_named(const struct latency *d, const struct calls_function *f, u64 address)
{
	const char *at = d->functions;

	while (*at) {
		const size_t n = strcspn(at, ",");
		char word[CLI_WHO];
		char *end;

		if (n < sizeof(word)) {
			memcpy(word, at, n);
			word[n] = '\0';
			if (!fnmatch(word, f->name, 0) || !fnmatch(word, f->text, 0))
				return true;
			if (!strncmp(word, "0x", 2) && strtoull(word, &end, 16) == address && !*end)
				return true;
		}
		at += n + (at[n] == ',');
	}
	return false;
}

static u32 find_row(struct latency *d, u32 vm, u32 function)
{
	const u64 hash = vmpt_mix64((u64)vm << 32 | function);
	const u32 i = vmpt_hash_find(&d->row_by_name, hash, k,
				     d->row[k].vm == vm && d->row[k].function == function);

	if (i != VMPT_HASH_NONE)
		return i;
	if (vmpt_grow(&d->row, d->rows) || vmpt_hash_add(&d->row_by_name, hash, (u32)d->rows))
		return LATENCY_NONE;
	d->row[d->rows] = (struct latency_row){ .vm = vm, .function = function };
	return (u32)d->rows++;
}

/* The row of a node, as called by tasks of @vm; LATENCY_NONE: none. */
static u32 row_of(struct latency *d, u32 number, u32 vm)
{
	struct vmpt_call_node node;
	u32 function, *row;

	if (vmpt_reserve_zeroed(&d->row_of, &d->nodes, (size_t)number + 1))
		return LATENCY_NONE;
	row = &d->row_of[number];
	if (*row)
		return *row == LATENCY_NONE ? LATENCY_NONE : *row - 1;
	*row = LATENCY_NONE;
	vmpt_calls_node(d->source.calls, number, &node);
	if (node.kind == VMPT_CALL_UNKNOWN || node.kind == VMPT_CALL_ROOT)
		return LATENCY_NONE;
	function = calls_function(&d->source, &node);
	if (function >= d->source.functions ||
	    !is_named(d, &d->source.function[function], node.function))
		return LATENCY_NONE;
	function = find_row(d, vm, function);
	if (function != LATENCY_NONE)
		d->row_of[number] = function + 1;
	return function;
}

/* ---- tasks ---- */

static struct latency_task *find_task(struct latency *d, u32 number)
{
	struct vmpt_call_node root;
	struct vmpt_call_task task;
	struct latency_task *t;

	if (vmpt_reserve_zeroed(&d->task, &d->tasks, (size_t)number + 1))
		return NULL;
	t = &d->task[number];
	vmpt_calls_task(d->source.calls, number, &task);
	if (t->known && t->root == task.root)
		return t;
	if (!t->known)
		t->handler = LATENCY_NONE;
	vmpt_calls_node(d->source.calls, task.root, &root);
	t->root = task.root;
	t->host = task.owner.kind == VMPT_OWNER_HOST;
	t->process = calls_root_process(&d->source, &root);
	t->vm = d->source.process[t->process].vm;
	t->wanted = calls_wanted(&d->source, t->process);
	t->known = true;
	return t;
}

/* Times are those of the packets before, as everywhere; *@to: the latest that is possible.
 * Instructions where there are no times. */
static void when_of(const struct latency *d, const struct vmpt_call_item *item, u64 *from, u64 *to)
{
	*from = d->timed ? item->tsc : item->instructions;
	*to = d->timed ? item->tsc_end : item->instructions;
	if (*to == VMPT_TIME_NONE)
		*to = *from;
}

/* ---- calls ---- */

static struct latency_open *open_of(struct latency_task *t, u32 row)
{
	size_t i;

	for (i = 0; i < t->opens; i++)
		if (t->open[i].call.row == row)
			return &t->open[i];
	return NULL;
}

static int open_call(struct latency *d, struct latency_task *t, const struct vmpt_call_item *item,
		     struct latency_frame *f)
{
	const u32 row = t->wanted ? row_of(d, item->node, t->vm) : LATENCY_NONE;
	struct latency_open *o;

	if (row == LATENCY_NONE)
		return 0;
	if (open_of(t, row)) {
		d->row[row].recursed++;
		return 0;
	}
	if (item->assumed || f->from == VMPT_TIME_NONE || t->opens == LATENCY_OPEN_MAX) {
		d->row[row].incomplete++;
		return 0;
	}
	if (vmpt_grow(&t->open, t->opens))
		return -VMPT_E_NOMEM;
	latency_settle(d, t, f->from);
	o = &t->open[t->opens++];
	memset(o, 0, sizeof(*o));
	o->call = (struct latency_call){
		.tsc = item->tsc,
		.offset = item->offset,
		.row = row,
		.stream = item->stream,
		.process = t->process,
		.node = item->node,
	};
	o->from = f->from;
	o->to = f->to;
	o->frame = t->frames;
	f->open = (u32)t->opens;
	return 0;
}

/* The end of the top frame was not seen. */
static void forget(struct latency *d, struct latency_task *t)
{
	const struct latency_frame *f = &t->frame[--t->frames];

	if (!f->open || f->open > t->opens)
		return;
	d->row[t->open[f->open - 1].call.row].incomplete++;
	t->opens = f->open - 1;
}

static int enter(struct latency *d, const struct vmpt_call_item *item)
{
	struct latency_task *t = &d->task[item->task];
	struct latency_frame *f;

	while (t->frames && t->frame[t->frames - 1].depth >= item->depth)
		forget(d, t);
	if (t->frames >= FRAMES_MAX || vmpt_reserve(&t->frame, &t->room, t->frames + 1))
		return -VMPT_E_NOMEM;
	f = &t->frame[t->frames++];
	*f = (struct latency_frame){ .node = item->node, .depth = item->depth };
	when_of(d, item, &f->from, &f->to);
	return open_call(d, t, item, f);
}

/* Keep it if it is one of the longest of its row. */
static int keep_long(struct latency *d, const struct latency_open *o)
{
	struct latency_row *row = &d->row[o->call.row];
	struct latency_long *l;
	size_t i;

	if (!d->top)
		return 0;
	if (row->longs == d->top && row->longest[d->top - 1].call.ticks >= o->call.ticks)
		return 0;
	if (row->longs < d->top && vmpt_grow(&row->longest, row->longs))
		return -VMPT_E_NOMEM;
	i = row->longs < d->top ? row->longs++ : d->top - 1;
	for (; i && row->longest[i - 1].call.ticks < o->call.ticks; i--)
		row->longest[i] = row->longest[i - 1];
	l = &row->longest[i];
	l->call = o->call;
	l->insides = o->insides;
	memcpy(l->inside, o->inside, o->insides * sizeof(*o->inside));
	return 0;
}

static int keep(struct latency *d, struct latency_open *o)
{
	struct latency_row *row = &d->row[o->call.row];
	size_t i;

	row->count++;
	row->sum += o->call.ticks;
	row->error = o->call.error > row->error ? o->call.error : row->error;
	if (d->calls >= LATENCY_CALLS_MAX) {
		row->left_out++;
		return 0;
	}
	o->call.part = (u32)d->parts;
	o->call.parts = (u32)o->parts;
	for (i = 0; i < o->parts; i++) {
		if (vmpt_grow(&d->part, d->parts))
			return -VMPT_E_NOMEM;
		d->part[d->parts++] = o->part[i];
	}
	if (vmpt_grow(&d->call, d->calls))
		return -VMPT_E_NOMEM;
	d->call[d->calls++] = o->call;
	return keep_long(d, o);
}

static int close_call(struct latency *d, struct latency_task *t, const struct vmpt_call_item *item,
		      size_t i, u64 from, u64 to)
{
	struct latency_open *o = &t->open[i];
	const u64 early = o->to - o->from, late = to - from;
	int ret = 0;

	if (from == VMPT_TIME_NONE || item->assumed) {
		d->row[o->call.row].incomplete++;
	} else {
		latency_settle(d, t, from);
		o->call.ticks = from > o->from ? from - o->from : 0;
		o->call.error = early > late ? early : late;
		latency_rest(d, o);
		ret = keep(d, o);
	}
	/* Those after it are of callees, and gone. */
	t->opens = i;
	return ret;
}

/* What a call in an open one took. */
static void add_inside(struct latency_task *t, const struct latency_frame *f, u64 ticks)
{
	size_t i, k;

	for (i = 0; i < t->opens; i++) {
		struct latency_open *o = &t->open[i];

		if (o->frame >= t->frames + 1)
			continue;
		for (k = 0; k < o->insides && o->inside[k].node != f->node; k++)
			;
		if (k == LATENCY_INSIDE_MAX)
			continue;
		if (k == o->insides)
			o->inside[o->insides++] = (struct latency_inside){ 0, f->node };
		o->inside[k].ticks += ticks;
	}
}

static int leave(struct latency *d, const struct vmpt_call_item *item)
{
	struct latency_task *t = &d->task[item->task];
	struct latency_frame f;
	u64 from, to;
	int ret = 0;

	/* A frame from before --from, or those that ended after --to. */
	while (t->frames && t->frame[t->frames - 1].depth > item->depth)
		forget(d, t);
	if (!t->frames || t->frame[t->frames - 1].depth < item->depth) {
		const u32 row = t->wanted ? row_of(d, item->node, t->vm) : LATENCY_NONE;

		if (row != LATENCY_NONE && !open_of(t, row))
			d->row[row].incomplete++;
		return 0;
	}
	f = t->frame[--t->frames];
	when_of(d, item, &from, &to);
	if (f.open && f.open <= t->opens)
		ret = close_call(d, t, item, f.open - 1, from, to);
	if (t->opens && from != VMPT_TIME_NONE && f.from != VMPT_TIME_NONE)
		add_inside(t, &f, from > f.from ? from - f.from : 0);
	return ret;
}

static int run(struct latency *d, const struct vmpt_call_item *item)
{
	u64 from, to;

	when_of(d, item, &from, &to);
	if (!d->timed || from == VMPT_TIME_NONE)
		return 0;
	return latency_run(d, item, from);
}

static int take(struct latency *d, const struct vmpt_call_item *item)
{
	if (!find_task(d, item->task))
		return -VMPT_E_NOMEM;
	switch (item->what) {
	case VMPT_CALL_ENTER:
		return enter(d, item);
	case VMPT_CALL_LEAVE:
		return leave(d, item);
	case VMPT_CALL_RUN:
		return run(d, item);
	default:
		return 0;
	}
}

/* Calls that the trace's end cut. */
static void end_calls(struct latency *d)
{
	size_t i, k;

	for (i = 0; i < d->tasks; i++)
		for (k = 0; k < d->task[i].opens; k++)
			d->row[d->task[i].open[k].call.row].incomplete++;
}

int latency_follow(struct cli *cli)
{
	struct latency *d = cli->data;
	struct vmpt_call_batch batch;
	size_t i;
	int ret;

	d->host_now = malloc(cli->streams * sizeof(*d->host_now));
	if (!d->host_now)
		return cli_no_memory(cli);
	for (i = 0; i < cli->streams; i++)
		d->host_now[i] = LATENCY_NONE;
	while ((ret = vmpt_calls_next(d->source.calls, &batch)) > 0)
		for (i = 0; i < batch.count; i++) {
			const int err = take(d, &batch.items[i]);

			if (err)
				return calls_failed(&d->source, err);
		}
	if (ret < 0)
		return calls_failed(&d->source, ret);
	end_calls(d);
	return cli->out_of_memory ? cli_no_memory(cli) : CLI_OK;
}

void latency_close(struct latency *d)
{
	size_t i;

	for (i = 0; i < d->tasks; i++) {
		free(d->task[i].frame);
		free(d->task[i].open);
	}
	for (i = 0; i < d->rows; i++) {
		free(d->row[i].longest);
		free(d->row[i].part);
	}
	free(d->task);
	free(d->vcpu);
	free(d->host_now);
	free(d->row_of);
	vmpt_hash_free(&d->row_by_name);
	free(d->row);
	free(d->call);
	free(d->part);
	spans_close(&d->spans);
	calls_close(&d->source);
}
