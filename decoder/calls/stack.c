// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* The frames of one stack, and what is returned of their begin and end. */
#include "decoder/calls/engine.h"

/* Deeper calls are counted only: endless recursion is a guest's to choose. */
#define DEPTH_MAX 16384u

struct stack *vmpt_calls_stack_new(struct vmpt_calls *e, struct context *c, u32 space)
{
	const struct vmpt_space *in = &e->space[space];
	struct stack *s = calloc(1, sizeof(*s));

	if (!s || vmpt_grow(&e->task, e->tasks)) {
		free(s);
		e->error = -VMPT_E_NOMEM;
		return NULL;
	}
	s->vm = c->vm;
	s->cr3 = ~0ULL;
	s->task = (u32)e->tasks;
	s->root = vmpt_calls_root(e, s->vm, ~0ULL, space);
	e->task[e->tasks++] = (struct vmpt_call_task){
		.vm = s->vm,
		.root = s->root,
		.space = space,
		.owner = in->owner,
	};
	return s;
}

void vmpt_calls_stack_free(struct stack *s)
{
	if (s)
		free(s->frame);
	free(s);
}

struct frame *vmpt_calls_top(struct stack *s)
{
	return s->depth ? &s->frame[s->depth - 1] : NULL;
}

u32 vmpt_calls_node_now(const struct stack *s)
{
	return s->depth ? s->frame[s->depth - 1].node : s->root;
}

/* ---- what is returned ---- */

void vmpt_calls_say(struct vmpt_calls *e, struct feed *f, const struct stack *s, u8 what,
		    const struct frame *frame, u32 depth)
{
	struct vmpt_call_item *i;

	if (!e->options.items || !e->counting)
		return;
	if (vmpt_grow(&e->item, e->items)) {
		e->error = -VMPT_E_NOMEM;
		return;
	}
	i = &e->item[e->items++];
	*i = (struct vmpt_call_item){
		.tsc = f->tsc,
		.tsc_end = f->tsc_end,
		.offset = f->part[f->part_at].offset,
		.instructions = s->instructions,
		.stream = f->index,
		.task = s->task,
		.node = frame ? frame->node : vmpt_calls_node_now(s),
		.depth = depth,
		.what = what,
		.enter_tsc = VMPT_TIME_NONE,
	};
	if (!frame)
		return;
	i->assumed = frame->assumed;
	i->enter_tsc = frame->tsc;
	i->enter_instructions = frame->instructions;
}

/* ---- frames ---- */

static u64 function_of(const struct code *to)
{
	return to->function ? to->function : to->ip;
}

/* The first frame of a program, or of the kernel, says whose stack it is. */
static void take_root(struct vmpt_calls *e, struct stack *s, const struct code *to)
{
	const struct vmpt_space *in = &e->space[to->space];
	const bool kernel = is_kernel(in, to->ip);

	s->cr3 = kernel || in->no_cr3 ? ~0ULL : in->cr3;
	s->root = vmpt_calls_root(e, s->vm, s->cr3, to->space);
	if (!kernel)
		e->task[s->task].root = s->root;
}

void vmpt_calls_push(struct vmpt_calls *e, struct feed *f, struct stack *s, u8 kind,
		     const struct code *to, u64 ret, bool assumed)
{
	const struct frame *under;
	struct frame *frame;
	u32 parent;

	if (s->depth >= DEPTH_MAX) {
		s->over += s->over < NONE;
		return;
	}
	if (!s->depth)
		take_root(e, s, to);
	if (vmpt_reserve(&s->frame, &s->room, s->depth + 1u)) {
		e->error = -VMPT_E_NOMEM;
		return;
	}
	parent = vmpt_calls_node_now(s);
	under = vmpt_calls_top(s);
	frame = &s->frame[s->depth];
	*frame = (struct frame){
		.ret = ret,
		.function = to->function,
		.tsc = f->tsc,
		.instructions = s->instructions,
		.kind = kind,
		.kernel = is_kernel(&e->space[to->space], to->ip),
		.thunk = to->role == VMPT_ROLE_THUNK && kind == VMPT_CALL_CALL,
		.local = kind == VMPT_CALL_CALL && under && to->function &&
			 under->function == to->function && to->ip != to->function,
		.assumed = assumed,
	};
	frame->node = frame->thunk ? parent
		      : kind == VMPT_CALL_UNKNOWN
			      ? vmpt_calls_child(e, parent, kind, 0, to->space)
			      : vmpt_calls_child(e, parent, kind, function_of(to), to->space);
	s->depth++;
	if (frame->thunk)
		return;
	if (e->counting && !assumed)
		e->node[frame->node].calls++;
	if (kind != VMPT_CALL_UNKNOWN)
		vmpt_calls_say(e, f, s, VMPT_CALL_ENTER, frame, s->depth);
}

void vmpt_calls_pop_to(struct vmpt_calls *e, struct feed *f, struct stack *s, u32 depth)
{
	bool over = false;

	s->over = 0;
	while (s->depth > depth) {
		struct frame *frame = &s->frame[s->depth - 1];

		over |= s->depth > depth + 1;
		if (!frame->thunk && frame->kind != VMPT_CALL_UNKNOWN) {
			frame->assumed |= over && s->depth > depth + 1;
			vmpt_calls_say(e, f, s, VMPT_CALL_LEAVE, frame, s->depth);
		}
		s->depth--;
	}
}

void vmpt_calls_replace(struct vmpt_calls *e, struct feed *f, struct stack *s,
			const struct code *to)
{
	struct frame *frame = vmpt_calls_top(s);
	struct frame old;

	if (!frame) {
		vmpt_calls_push(e, f, s, VMPT_CALL_CALL, to, 0, true);
		return;
	}
	/* A thunk's own code counts for who jumped to it. */
	if (to->role == VMPT_ROLE_THUNK) {
		frame->function = to->function;
		return;
	}
	old = *frame;
	if (!old.thunk && old.kind != VMPT_CALL_UNKNOWN)
		vmpt_calls_say(e, f, s, VMPT_CALL_LEAVE, frame, s->depth);
	s->depth--;
	vmpt_calls_push(e, f, s, old.kind == VMPT_CALL_UNKNOWN ? VMPT_CALL_CALL : old.kind, to,
			old.ret, old.assumed && !old.thunk);
}
