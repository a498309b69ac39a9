// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * vmpt timeline --flames. A flame chart shows what a CPU executed, guests and host in one: the
 * stack of the task that runs, from the tree of calls, changes with each call, return and switch.
 */
#include <stdlib.h>
#include <string.h>

#include "cli/timeline/flames.h"
#include "util/array.h"

/* Deeper frames are not shown. */
#define DEPTH_MAX 64
/* Frames below this part of a window are not seen. */
#define TOO_SHORT 2000

struct flames_node {
	u32 name;   /* + 1; 0: not asked for so far */
	u32 parent; /* 0: it is a root */
	u8 kind;    /* enum page_frame_kind */
};

/* The stack on a CPU. */
struct flames_stream {
	struct {
		u32 node;
		u64 start;
	} * stack;
	size_t depth, room;
	u64 first, last; /* of its windows */
};

/* ---- windows ---- */

/* The time out before @s, with a part of what was before and after. */
static void set_window(struct timeline_flames *f, size_t i, const struct timeline_span *s, u64 out)
{
	const u64 room = out / 4 + 1;

	f->out[i] = out;
	f->page.window[i] = (struct page_window){
		.line = s->vcpu,
		.stream = s->left_stream,
		.start = s->left_at > room ? s->left_at - room : 0,
		.end = s->start + room,
	};
}

/* The longest times that the host had, and not another vCPU. */
static void choose(struct timeline_flames *f, const struct timeline_span *s)
{
	const u64 out = s->out[TIMELINE_HOST].ticks;
	size_t i, least = 0;

	if (!s->has_left || s->unseen || s->left.halted || s->left_cut || !out ||
	    s->out[TIMELINE_WAIT].ticks > out)
		return;
	if (f->page.windows < PAGE_WINDOWS) {
		set_window(f, f->page.windows++, s, s->start - s->left_at);
		f->out[f->page.windows - 1] = out;
		return;
	}
	for (i = 1; i < PAGE_WINDOWS; i++)
		if (f->out[i] < f->out[least])
			least = i;
	if (out > f->out[least]) {
		set_window(f, least, s, s->start - s->left_at);
		f->out[least] = out;
	}
}

/* --from and --to: what the CPU of each vCPU executed. */
static void choose_all(struct timeline_flames *f, const struct timeline_span *s)
{
	struct page_window *w;
	size_t i;

	for (i = 0; i < f->page.windows; i++) {
		w = &f->page.window[i];
		if (w->line != s->vcpu || w->stream != s->span->stream)
			continue;
		if (s->end > w->end)
			w->end = s->end;
		return;
	}
	if (f->page.windows < PAGE_WINDOWS)
		f->page.window[f->page.windows++] = (struct page_window){
			.line = s->vcpu, .stream = s->span->stream, .start = s->start, .end = s->end
		};
}

int timeline_flames_span(struct timeline_flames *f, const struct timeline *t,
			 const struct timeline_span *s)
{
	struct calls_edge edge = { s->span->offset, s->start, 0 };
	int err;

	(void)t;
	if (!s->timed || s->vcpu >= PAGE_LINES)
		return 0;
	err = calls_spread_edge(&f->spread, s->span->stream, &edge);
	edge.offset += s->span->size;
	edge.time = s->end;
	if (!err && s->span->ended == VMPT_EDGE_EXIT)
		err = calls_spread_edge(&f->spread, s->span->stream, &edge);
	if (f->whole)
		choose_all(f, s);
	else
		choose(f, s);
	return err;
}

/* ---- names ---- */

u32 timeline_flames_name(struct timeline_flames *f, const char *name)
{
	const u64 hash = vmpt_mix64(vmpt_fnv1a(VMPT_FNV1A, name, strlen(name)));
	u32 i = vmpt_hash_find(&f->name_of, hash, k, !strcmp(f->page.name[k], name));
	char *copy;

	if (i != VMPT_HASH_NONE)
		return i;
	copy = strndup(name, 120);
	if (!copy || vmpt_grow(&f->page.name, f->page.names) ||
	    vmpt_hash_add(&f->name_of, hash, (u32)f->page.names)) {
		free(copy);
		f->cli->out_of_memory = true;
		return 0;
	}
	f->page.name[f->page.names] = copy;
	return (u32)f->page.names++;
}

/* NULL: no memory. */
static struct flames_node *node_of(struct timeline_flames *f, u32 number)
{
	struct flames_node *n;
	struct vmpt_call_node node;
	char name[2 * CLI_WHO];
	u32 i;

	if (vmpt_reserve_zeroed(&f->node, &f->nodes, number + 1ULL))
		return NULL;
	n = &f->node[number];
	if (n->name)
		return n;
	vmpt_calls_node(f->source.calls, number, &node);
	n->parent = node.parent;
	if (node.kind == VMPT_CALL_ROOT) {
		const struct calls_process *p;

		i = calls_root_process(&f->source, &node);
		if (i >= f->source.processes)
			return NULL;
		p = &f->source.process[i];
		snprintf(name, sizeof(name), "%s: %s", f->source.vm[p->vm].name, p->name);
		n->name = timeline_flames_name(f, name) + 1;
		n->kind = PAGE_FRAME_ROOT;
	} else {
		struct vmpt_space space;

		i = calls_function(&f->source, &node);
		if (i >= f->source.functions)
			return NULL;
		vmpt_calls_space(f->source.calls, node.space, &space);
		n->name = timeline_flames_name(f, f->source.function[i].text) + 1;
		n->kind = space.owner.kind == VMPT_OWNER_HOST ? PAGE_FRAME_HOST : PAGE_FRAME_GUEST;
	}
	return n;
}

/* ---- charts ---- */

static int add_frame(struct page_window *w, const struct flames_node *n, size_t depth, u64 start,
		     u64 end)
{
	if (start < w->start)
		start = w->start;
	if (end > w->end)
		end = w->end;
	if (end < start || start >= w->end || end <= w->start)
		return 0;
	if (depth >= DEPTH_MAX || w->frames >= PAGE_FRAMES ||
	    (end - start) * TOO_SHORT < w->end - w->start) {
		w->left_out++;
		return 0;
	}
	if (vmpt_grow(&w->frame, w->frames))
		return -1;
	w->frame[w->frames++] = (struct page_frame){ .start = start,
						     .end = end,
						     .name = n->name - 1,
						     .depth = (u16)depth,
						     .kind = n->kind };
	return 0;
}

static int pop(struct timeline_flames *f, u32 stream, u64 time)
{
	struct flames_stream *s = &f->stream[stream];
	const u64 start = s->stack[--s->depth].start;
	const struct flames_node *n;
	size_t i;
	int err = 0;

	if (time < s->first || start > s->last)
		return 0;
	n = node_of(f, s->stack[s->depth].node);
	if (!n)
		return -1;
	for (i = 0; i < f->page.windows && !err; i++)
		if (f->page.window[i].stream == stream)
			err = add_frame(&f->page.window[i], n, s->depth, start, time);
	return err;
}

static int push(struct flames_stream *s, u32 node, u64 time)
{
	if (vmpt_reserve(&s->stack, &s->room, s->depth + 1))
		return -1;
	s->stack[s->depth].node = node;
	s->stack[s->depth++].start = time;
	return 0;
}

/* The stack becomes that of @node; 0: none. */
static int go_to(struct timeline_flames *f, u32 stream, u32 node, u64 time)
{
	struct flames_stream *s = &f->stream[stream];
	const struct flames_node *n;
	size_t depth = 0, same, i;
	u32 *path = NULL, at;
	int err = 0;

	for (at = node; at; at = n->parent) {
		n = node_of(f, at);
		if (!n || vmpt_grow(&path, depth)) {
			free(path);
			return -1;
		}
		path[depth++] = at;
	}
	for (same = 0; same < s->depth && same < depth; same++)
		if (s->stack[same].node != path[depth - 1 - same])
			break;
	while (s->depth > same && !err)
		err = pop(f, stream, time);
	for (i = same; i < depth && !err; i++)
		err = push(s, path[depth - 1 - i], time);
	free(path);
	return err;
}

static int take(void *opaque, const struct vmpt_call_item *item, u64 time)
{
	struct timeline_flames *f = opaque;
	struct flames_stream *s = &f->stream[item->stream];
	const struct flames_node *n;

	if (item->what == VMPT_CALL_GAP)
		return go_to(f, item->stream, 0, time);
	if (item->what == VMPT_CALL_RUN)
		return go_to(f, item->stream, item->node, time);
	n = node_of(f, item->node);
	if (!n)
		return -1;
	if (item->what == VMPT_CALL_ENTER && s->depth && s->stack[s->depth - 1].node == n->parent)
		return push(s, item->node, time);
	if (item->what == VMPT_CALL_LEAVE && s->depth && s->stack[s->depth - 1].node == item->node)
		return pop(f, item->stream, time);
	return go_to(f, item->stream, item->what == VMPT_CALL_LEAVE ? n->parent : item->node, time);
}

static int by_start(const void *x, const void *y)
{
	const struct page_frame *a = x, *b = y;

	if (a->start != b->start)
		return a->start < b->start ? -1 : 1;
	return a->depth < b->depth ? -1 : a->depth > b->depth;
}

static int read_charts(struct timeline_flames *f)
{
	struct vmpt_call_batch batch;
	int ret = 0, err = 0;
	size_t i;

	while (!err && (ret = vmpt_calls_next(f->source.calls, &batch)) > 0)
		for (i = 0; i < batch.count && !err; i++)
			err = calls_spread_add(&f->spread, &batch.items[i]);
	if (!err)
		err = calls_spread_end(&f->spread);
	for (i = 0; i < f->cli->streams && !err; i++)
		err = go_to(f, (u32)i, 0, f->spread.last);
	for (i = 0; i < f->page.windows; i++)
		if (f->page.window[i].frames)
			qsort(f->page.window[i].frame, f->page.window[i].frames,
			      sizeof(struct page_frame), by_start);
	if (err || f->cli->out_of_memory)
		return cli_no_memory(f->cli);
	return ret ? calls_failed(&f->source, ret) : CLI_OK;
}

int timeline_flames_read(struct cli *cli, struct timeline_flames *f, u64 zero)
{
	const struct vmpt_calls_options items = { .items = true };
	size_t i;
	int code;

	f->cli = cli;
	cli_filter(cli)->has_last = false; /* of clocks that are closed */
	code = calls_open(cli, &f->source, &items);
	if (!code && !f->source.t.images)
		cli_warn(cli, "--flames: no code is known: give memory images by --flame-code");
	if (code || !f->source.t.images)
		return code;
	f->stream = calloc(cli->streams, sizeof(*f->stream));
	if (!f->stream)
		return cli_no_memory(cli);
	for (i = 0; i < cli->streams; i++)
		f->stream[i].first = ~0ULL;
	for (i = 0; i < f->page.windows; i++) {
		const struct page_window *w = &f->page.window[i];
		struct flames_stream *s = &f->stream[w->stream];

		s->first = w->start < s->first ? w->start : s->first;
		s->last = w->end > s->last ? w->end : s->last;
	}
	f->spread.zero = zero;
	f->spread.take = take;
	f->spread.opaque = f;
	code = read_charts(f);
	if (!code)
		code = timeline_flames_graphs(f);
	return code ? code : calls_end(&f->source, NULL);
}

void timeline_flames_close(struct timeline_flames *f)
{
	size_t i;

	for (i = 0; f->stream && i < f->cli->streams; i++)
		free(f->stream[i].stack);
	free(f->stream);
	for (i = 0; i < f->page.windows; i++)
		free(f->page.window[i].frame);
	for (i = 0; i < f->page.graphs; i++) {
		free(f->page.graph[i].name);
		free(f->page.graph[i].node);
	}
	for (i = 0; i < f->page.names; i++)
		free(f->page.name[i]);
	free(f->page.name);
	free(f->node);
	vmpt_hash_free(&f->name_of);
	calls_spread_close(&f->spread);
	if (f->cli)
		calls_close(&f->source);
}
