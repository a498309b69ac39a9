// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The public interface of the calls, and the loop over blocks: streams in the order of their times,
 * each block counts for the function that its task is in.
 */
#include "decoder/calls/engine.h"

/* What is taken at once. */
#define ITEMS  4096u
#define BLOCKS (1u << 20)

/* ---- opening ---- */

static void take_options(struct vmpt_calls *e, const struct vmpt_calls_options *o, size_t count)
{
	if (o)
		e->options = *o;
	if (e->options.flow)
		e->flow = *e->options.flow;
	if (e->flow.trace)
		e->trace = *e->flow.trace;
	if (e->trace.threads > 1)
		e->trace.threads = e->trace.threads / (unsigned int)count + 1;
	e->options.flow = NULL;
	e->flow.trace = &e->trace;
	e->flow.blocks = e->flow.events = true;
	e->flow.times = e->clocks != NULL;
	e->flow.by_packet = e->flow.hash = e->flow.switches = false;
	e->counting = true;
}

static int open_feeds(struct vmpt_calls *e, const struct vmpt_stream *const *streams, size_t count,
		      struct vmpt_code *code)
{
	int ret = vmpt_calls_tree_open(e);

	e->feeds = calloc(count ? count : 1, sizeof(*e->feeds));
	if (!e->feeds)
		return -VMPT_E_NOMEM;
	for (; e->feed_count < count && !ret; e->feed_count++) {
		struct feed *f = &e->feeds[e->feed_count];

		f->index = (u32)e->feed_count;
		f->now.tsc = f->tsc = f->tsc_end = VMPT_TIME_NONE;
		ret = vmpt_calls_feed_open(e, f, streams[e->feed_count], code);
	}
	return ret;
}

int vmpt_calls_open_abi(struct vmpt_calls **calls, const struct vmpt_stream *const *streams,
			size_t count, const struct vmpt_clocks *clocks, struct vmpt_code *code,
			const struct vmpt_calls_options *options, u64 abi)
{
	struct vmpt_calls *e;
	int ret;

	if (abi != VMPT_CALLS_ABI)
		return -VMPT_E_VERSION;
	if (options && (options->from || options->to) && !clocks)
		return -VMPT_E_INVAL;
	e = calloc(1, sizeof(*e));
	if (!e)
		return -VMPT_E_NOMEM;
	e->clocks = clocks;
	e->code = code;
	take_options(e, options, count ? count : 1);
	ret = open_feeds(e, streams, count, code);
	if (ret) {
		vmpt_calls_close(e);
		return ret;
	}
	*calls = e;
	return 0;
}

void vmpt_calls_close(struct vmpt_calls *calls)
{
	size_t i;

	if (!calls)
		return;
	for (i = 0; i < calls->feed_count; i++)
		vmpt_calls_feed_close(&calls->feeds[i]);
	for (i = 0; i < calls->contexts; i++) {
		vmpt_calls_stack_free(calls->context[i]->stack);
		free(calls->context[i]);
	}
	for (i = 0; i < calls->parks; i++)
		vmpt_calls_stack_free(calls->parked[i]);
	free(calls->feeds);
	free(calls->context);
	free(calls->parked);
	free(calls->space);
	vmpt_hash_free(&calls->space_of);
	free(calls->zone);
	vmpt_hash_free(&calls->zone_of);
	free(calls->near);
	free(calls->node);
	vmpt_hash_free(&calls->node_of);
	free(calls->root);
	vmpt_hash_free(&calls->root_of);
	free(calls->task);
	free(calls->segment);
	free(calls->item);
	free(calls);
}

/* ---- what runs ---- */

static struct context *context_of(struct vmpt_calls *e, struct feed *f, u32 space)
{
	const struct vmpt_owner *owner = &e->space[space].owner;
	const u32 stream = owner->kind == VMPT_OWNER_VM ? NONE : f->index;
	struct context *c;
	size_t i;

	for (i = 0; i < e->contexts; i++) {
		c = e->context[i];
		if (c->stream == stream && vmpt_owner_same(&c->owner, owner))
			return c;
	}
	c = calloc(1, sizeof(*c));
	if (!c || vmpt_grow(&e->context, e->contexts)) {
		free(c);
		e->error = -VMPT_E_NOMEM;
		return NULL;
	}
	*c = (struct context){ .owner = *owner, .stream = stream, .how = HOW_START };
	/* The host's tasks go from CPU to CPU; what is not known stays where it is. */
	if (owner->kind == VMPT_OWNER_HOST)
		c->vm = VMPT_CALLS_HOST;
	else if (owner->kind != VMPT_OWNER_VM || !e->options.vm)
		c->vm = (u32)e->contexts | 1u << 30;
	else
		c->vm = e->options.vm(e->options.opaque, owner);
	e->context[e->contexts++] = c;
	return c;
}

/* Code of another address space comes: of another owner perhaps. */
static struct context *enter_space(struct vmpt_calls *e, struct feed *f, u32 space)
{
	struct context *c = f->context;

	if (c && vmpt_owner_same(&c->owner, &e->space[space].owner))
		return c;
	c = f->context = context_of(e, f, space);
	if (c && !c->stack)
		c->stack = vmpt_calls_stack_new(e, c, space);
	if (!c || !c->stack)
		return NULL;
	vmpt_calls_say(e, f, c->stack, VMPT_CALL_RUN, NULL, c->stack->depth);
	return c;
}

/* ---- counting ---- */

/* @insns were executed since the stack changed. */
static void count(struct vmpt_calls *e, struct stack *s, u64 insns)
{
	const u32 node = vmpt_calls_node_now(s);

	s->instructions += insns;
	if (!e->counting || !insns)
		return;
	e->counts.instructions += insns;
	e->node[node].instructions += insns;
	if (!e->clocks)
		return;
	if (vmpt_grow(&e->segment, e->segments)) {
		e->error = -VMPT_E_NOMEM;
		return;
	}
	e->segment[e->segments++] = (struct segment){ .node = node, .instructions = insns };
}

/* The time of the part, by the instructions of each. */
static void share_time(struct vmpt_calls *e, const struct feed *f)
{
	u64 all = 0, ticks, rest, part;
	size_t i;

	for (i = 0; i < e->segments; i++)
		all += e->segment[i].instructions;
	rest = ticks =
		f->now.tsc != VMPT_TIME_NONE && f->tsc != VMPT_TIME_NONE && f->now.tsc > f->tsc
			? f->now.tsc - f->tsc
			: 0;
	for (i = 0; i < e->segments && rest; i++) {
		part = i + 1 == e->segments
			       ? rest
			       : (u64)((double)ticks * (double)e->segment[i].instructions /
				       (double)all);
		part = part > rest ? rest : part;
		e->node[e->segment[i].node].time += part;
		rest -= part;
	}
	e->segments = 0;
}

/* ---- parts ---- */

/* The stack may change: @to comes otherwise than straight on, or is another function's. */
static void arrive(struct vmpt_calls *e, struct feed *f, struct context *c, const struct code *to)
{
	const bool called = c->how == HOW_CALL;

	vmpt_calls_arrive(e, f, c, to);
	if (called && to->role == VMPT_ROLE_SWITCH && to->ip == to->function && !e->error) {
		vmpt_calls_switch(e, f, c, f->at, to);
		if (c->stack)
			vmpt_calls_say(e, f, c->stack, VMPT_CALL_RUN, NULL, c->stack->depth);
	}
}

static u64 function_now(struct stack *s)
{
	const struct frame *top = vmpt_calls_top(s);

	return top ? top->function : 0;
}

/* Block @id was executed: how the next one comes. */
static void go_on(struct context *c, const struct feed *f, u32 id)
{
	const u8 how = f->block[id].how;

	c->space = NONE;
	c->from = f->place[id].next;
	/* A guest's VMCALL and the like are VM exits by an instruction. */
	c->how = how == HOW_VMX && c->owner.kind == VMPT_OWNER_VM ? HOW_EVENT : how;
}

/*
 * Block number @at of the part comes, in another zone than the one before, or not straight on.
 * The context, or NULL after an error.
 */
static struct context *turn(struct vmpt_calls *e, struct feed *f, u32 at)
{
	const u32 id = f->ids[f->part[f->part_at].first + at];
	struct context *c;
	struct code to;

	if (!f->block[id].zone && vmpt_calls_new_block(e, f, id))
		return NULL;
	to = code_of(e, f, id);
	c = enter_space(e, f, to.space);
	if (c && (c->how || (to.function && to.function != function_now(c->stack)))) {
		f->at = at;
		arrive(e, f, c, &to);
	}
	return e->error ? NULL : c;
}

/*
 * The usual call and return, as arrive.c does them: block @id comes after block @before, of the
 * same address space. Without items, where the frame's memory and node are there. False: not this.
 */
static bool quick_call(struct vmpt_calls *e, const struct feed *f, struct stack *s, u32 before,
		       u32 id)
{
	const struct zone *z = &e->zone[f->block[id].zone];
	const u64 ip = f->place[id].ip, ret = f->place[before].next;
	struct frame *top = &s->frame[s->depth - 1];
	u32 node;

	if (ip == ret || z->role != VMPT_ROLE_PLAIN || s->depth >= s->room)
		return false;
	node = child_near(e, top->node, VMPT_CALL_CALL, z->function ? z->function : ip);
	if (!node)
		return false;
	top[1] = (struct frame){
		.ret = ret,
		.function = z->function,
		.tsc = f->tsc,
		.instructions = s->instructions,
		.node = node,
		.kind = VMPT_CALL_CALL,
		.kernel = is_kernel(&e->space[z->space], ip),
		.local = z->function && top->function == z->function && ip != z->function,
	};
	s->depth++;
	e->node[node].calls += e->counting;
	return true;
}

static inline bool quick(struct vmpt_calls *e, const struct feed *f, struct stack *s, u32 before,
			 u32 id)
{
	const struct block *b = &f->block[id], *was = &f->block[before];
	struct frame *top;

	if (e->options.items || !b->zone || s->depth < 2 || s->over ||
	    e->zone[b->zone].space != e->zone[was->zone].space)
		return false;
	if (was->how == HOW_CALL)
		return quick_call(e, f, s, before, id);
	top = &s->frame[s->depth - 1];
	if (was->how != HOW_RET || top->kind != VMPT_CALL_CALL || !top->ret ||
	    top->ret != f->place[id].ip)
		return false;
	s->depth--;
	if (e->zone[b->zone].function)
		top[-1].function = e->zone[b->zone].function;
	return true;
}

static void take_blocks(struct vmpt_calls *e, struct feed *f)
{
	const u32 n = f->part[f->part_at].count, last = f->part[f->part_at].last;
	const u32 *ids = f->ids + f->part[f->part_at].first;
	struct context *c = NULL;
	const struct block *block, *b;
	u32 i, zone = NONE;
	u64 run = 0;

	if (vmpt_calls_blocks(e, f))
		return;
	block = f->block;
	for (i = 0; i < n; i++) {
		b = &block[ids[i]];
		if (b->zone != zone || block[ids[i - 1]].how) {
			if (i && c) {
				count(e, c->stack, run);
				if (quick(e, f, c->stack, ids[i - 1], ids[i])) {
					zone = b->zone;
					run = b->insns;
					continue;
				}
				if (block[ids[i - 1]].how)
					go_on(c, f, ids[i - 1]);
			}
			run = 0;
			c = turn(e, f, i);
			if (!c)
				return;
			/* What was read ahead may have moved the lists. */
			ids = f->ids + f->part[f->part_at].first;
			block = f->block;
			b = &block[ids[i]];
			zone = b->zone;
		}
		run += b->insns;
	}
	if (!c)
		return;
	/* The last one may go on in the next part. */
	b = &block[ids[n - 1]];
	run -= b->insns - last;
	count(e, c->stack, run);
	if (last == b->insns && b->how)
		go_on(c, f, ids[n - 1]);
}

static void take_event(struct vmpt_calls *e, struct feed *f)
{
	const struct part p = f->part[f->part_at];
	u32 space = vmpt_calls_space_of(e, f, p.space);
	struct context *c;
	struct code at;

	if (space == NONE)
		return;
	c = enter_space(e, f, space);
	if (!c)
		return;
	/* The event may come at a branch's target. */
	vmpt_calls_code_at(e, space, p.ip, &at);
	if (c->how || (at.function && at.function != function_now(c->stack))) {
		f->at = 0;
		arrive(e, f, c, &at);
	}
	c->how = HOW_EVENT;
	c->from = p.ip;
	c->space = space;
}

/* Where only a guest's code is known, each of its exits leads to one of the host. */
static void take_gap(struct vmpt_calls *e, struct feed *f)
{
	const u32 space = vmpt_calls_space_of(e, f, f->part[f->part_at].space);
	struct context *c = space == NONE ? f->context : enter_space(e, f, space);

	e->counts.gaps += e->counting;
	if (!c)
		return;
	c->how = HOW_LOST;
	vmpt_calls_say(e, f, c->stack, VMPT_CALL_GAP, NULL, c->stack->depth);
}

static bool wanted(const struct vmpt_calls *e, const struct feed *f)
{
	const struct vmpt_calls_options *o = &e->options;

	if (!o->from && !o->to)
		return true;
	return f->tsc != VMPT_TIME_NONE && f->tsc >= o->from && (!o->to || f->tsc < o->to);
}

/* The stream whose next part is the earliest; NULL: all have ended. */
static struct feed *next_feed(struct vmpt_calls *e)
{
	struct feed *first = NULL;
	size_t i;
	int ret;

	for (i = 0; i < e->feed_count; i++) {
		struct feed *f = &e->feeds[i];

		ret = vmpt_calls_feed_ahead(f, 0);
		if (ret > 0)
			e->error = vmpt_calls_feed_times(f);
		else
			e->error = ret;
		if (e->error)
			return NULL;
		if (ret <= 0)
			continue;
		/* Without a time it is before the first. */
		if (!first || f->tsc + 1 < first->tsc + 1)
			first = f;
		if (!e->clocks)
			break;
	}
	return first;
}

static u32 take_part(struct vmpt_calls *e, struct feed *f)
{
	u32 blocks = f->part[f->part_at].count;

	e->counting = wanted(e, f);
	if (f->part[f->part_at].kind == VMPT_FLOW_GAP)
		take_gap(e, f);
	else if (f->part[f->part_at].kind == VMPT_FLOW_EVENT)
		take_event(e, f);
	else if (f->part[f->part_at].kind == VMPT_FLOW_BLOCKS)
		take_blocks(e, f);
	share_time(e, f);
	vmpt_calls_feed_done(f);
	return blocks;
}

int vmpt_calls_next(struct vmpt_calls *calls, struct vmpt_call_batch *batch)
{
	struct feed *f = NULL;
	u64 blocks = 0;

	calls->items = 0;
	while (!calls->error && calls->items < ITEMS && blocks < BLOCKS) {
		f = next_feed(calls);
		if (!f || calls->error)
			break;
		blocks += take_part(calls, f) + 1u;
	}
	batch->items = calls->item;
	batch->count = calls->items;
	return calls->error ? calls->error : f || calls->items;
}

/* ---- what is known ---- */

u32 vmpt_calls_nodes(const struct vmpt_calls *calls)
{
	return (u32)calls->nodes;
}

void vmpt_calls_node(const struct vmpt_calls *calls, u32 i, struct vmpt_call_node *node)
{
	*node = calls->node[i];
}

u32 vmpt_calls_spaces(const struct vmpt_calls *calls)
{
	return (u32)calls->spaces;
}

void vmpt_calls_space(const struct vmpt_calls *calls, u32 i, struct vmpt_space *space)
{
	*space = calls->space[i];
}

u32 vmpt_calls_tasks(const struct vmpt_calls *calls)
{
	return (u32)calls->tasks;
}

void vmpt_calls_task(const struct vmpt_calls *calls, u32 i, struct vmpt_call_task *task)
{
	*task = calls->task[i];
}

void vmpt_calls_total(const struct vmpt_calls *calls, struct vmpt_calls_counts *counts)
{
	*counts = calls->counts;
}

void vmpt_calls_flow(const struct vmpt_calls *calls, size_t i, struct vmpt_flow_counts *counts)
{
	vmpt_flow_total(calls->feeds[i].flow, counts, NULL);
}
