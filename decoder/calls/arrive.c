// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * What a branch, an event or a gap did to the stack, seen from where the flow came to: the rules of
 * docs/calls.md.
 */
#include "decoder/calls/engine.h"

/* Frames that a search looks at. */
#define SEARCH 1024u

static bool is_entry(const struct frame *f)
{
	return f->kind == VMPT_CALL_SYSTEM || f->kind == VMPT_CALL_INTERRUPT;
}

static u32 lowest(const struct stack *s)
{
	return s->depth > SEARCH ? s->depth - SEARCH : 0;
}

/* Code before the trace: its callers are not known. */
static void start(struct vmpt_calls *e, struct feed *f, struct stack *s, const struct code *to)
{
	const struct frame *top = vmpt_calls_top(s);

	if (!top || top->kind != VMPT_CALL_UNKNOWN)
		vmpt_calls_push(e, f, s, VMPT_CALL_UNKNOWN, to, 0, true);
	vmpt_calls_push(e, f, s, VMPT_CALL_CALL, to, 0, true);
}

/* What was on top may have ended: it is known again where a frame below is returned to. */
static void lost(struct vmpt_calls *e, struct feed *f, struct stack *s, const struct code *to)
{
	u32 i, low = lowest(s);

	if (!is_kernel(&e->space[to->space], to->ip))
		while (s->depth && vmpt_calls_top(s)->kernel)
			vmpt_calls_pop_to(e, f, s, s->depth - 1);
	for (i = s->depth; i-- > low && !is_entry(&s->frame[i]);)
		if (s->frame[i].kind == VMPT_CALL_UNKNOWN) {
			vmpt_calls_pop_to(e, f, s, i + 1);
			break;
		}
	start(e, f, s, to);
}

/* The flow is in @to's function, as it should be. */
static void settle(struct vmpt_calls *e, struct feed *f, struct stack *s, const struct code *to)
{
	struct frame *top = vmpt_calls_top(s);

	if (!top)
		start(e, f, s, to);
	else if (to->function)
		top->function = to->function;
}

/* ---- jumps ---- */

/* The frame below the top that runs @function, up to an entry; NONE. */
static u32 find_function(const struct stack *s, u64 function)
{
	u32 i, low = lowest(s);

	for (i = s->depth; i-- > low;) {
		if (i + 1 < s->depth && s->frame[i].function == function)
			return i;
		if (is_entry(&s->frame[i]))
			break;
	}
	return NONE;
}

/* To a function's start: a tail call. Into one further down: longjmp(), an exception of C++. */
static void jumped(struct vmpt_calls *e, struct feed *f, struct stack *s, const struct code *to)
{
	struct frame *top = vmpt_calls_top(s);
	u32 i;

	if (!top || top->kind == VMPT_CALL_UNKNOWN) {
		start(e, f, s, to);
		return;
	}
	if (!to->function || to->function == top->function)
		return;
	if (to->ip == to->function || top->thunk) {
		vmpt_calls_replace(e, f, s, to);
		return;
	}
	i = find_function(s, to->function);
	if (i != NONE)
		vmpt_calls_pop_to(e, f, s, i + 1);
	else
		top->function = to->function;
}

/* ---- near returns ---- */

/* The frame that returns to @ip, up to an entry; NONE. */
static u32 find_return(const struct stack *s, u64 ip)
{
	u32 i, low = lowest(s);

	for (i = s->depth; i-- > low && !is_entry(&s->frame[i]);)
		if (s->frame[i].ret == ip && s->frame[i].kind == VMPT_CALL_CALL)
			return i;
	return NONE;
}

/* No frame says so: code of a task that was left, an unwinder's landing pad, or nothing known. */
static void returned_elsewhere(struct vmpt_calls *e, struct feed *f, struct context *c,
			       const struct code *to)
{
	struct stack *s = c->stack, *other;
	struct frame *top = vmpt_calls_top(s);
	u32 i;

	/* A signal's handler returns to code that asks the kernel to end it. */
	if (top->kind == VMPT_CALL_SIGNAL) {
		settle(e, f, s, to);
		return;
	}
	if (top->local && to->function && to->ip == to->function) {
		vmpt_calls_pop_to(e, f, s, s->depth - 1);
		jumped(e, f, s, to);
		return;
	}
	if (vmpt_calls_exchange(e, s, to)) {
		vmpt_calls_pop_to(e, f, s, s->depth - 1);
		settle(e, f, s, to);
		return;
	}
	/* "push; ret", as retpolines do: a jump. */
	if (to->function && to->ip == to->function) {
		if (top->local)
			vmpt_calls_pop_to(e, f, s, s->depth - 1);
		jumped(e, f, s, to);
		return;
	}
	i = to->function ? find_function(s, to->function) : NONE;
	if (i != NONE) {
		vmpt_calls_pop_to(e, f, s, i + 1);
		return;
	}
	other = vmpt_calls_parked_at(e, c, e->space[to->space].cr3, to->ip);
	if (other) {
		vmpt_calls_say(e, f, s, VMPT_CALL_RUN, NULL, s->depth);
		vmpt_calls_park(e, c);
		c->stack = other;
		vmpt_calls_say(e, f, other, VMPT_CALL_RUN, NULL, other->depth);
		vmpt_calls_pop_to(e, f, other, other->depth - 1);
		settle(e, f, other, to);
		return;
	}
	e->counts.unmatched++;
	lost(e, f, s, to);
}

static void returned(struct vmpt_calls *e, struct feed *f, struct context *c, const struct code *to)
{
	struct stack *s = c->stack;
	struct frame *top = vmpt_calls_top(s);
	u32 i;

	if (s->over) {
		s->over--;
		return;
	}
	if (!top) {
		start(e, f, s, to);
		return;
	}
	i = find_return(s, to->ip);
	if (i != NONE) {
		vmpt_calls_pop_to(e, f, s, i);
		settle(e, f, s, to);
	} else if (!top->ret && !is_entry(top) && (!to->function || to->ip != to->function)) {
		/* A caller from before the trace shows. */
		if (top->kind != VMPT_CALL_UNKNOWN)
			vmpt_calls_pop_to(e, f, s, s->depth - 1);
		start(e, f, s, to);
	} else {
		returned_elsewhere(e, f, c, to);
	}
}

/* ---- entries of the kernel, interrupts, and their ends ---- */

/* The entry that @to ends, of the topmost ones; NONE. */
static u32 find_entry(const struct stack *s, u64 ip)
{
	u32 i, low = lowest(s);

	for (i = s->depth; i-- > low;) {
		const struct frame *at = &s->frame[i];

		if ((is_entry(at) || at->kind == VMPT_CALL_SIGNAL) && at->ret == ip)
			return i;
	}
	return NONE;
}

static u32 top_entry(const struct stack *s)
{
	u32 i, low = lowest(s);

	for (i = s->depth; i-- > low;)
		if (is_entry(&s->frame[i]))
			return i;
	return NONE;
}

/* To a program that did not come from there: a signal, another program, or the first time. */
static void exited_to_program(struct vmpt_calls *e, struct feed *f, struct stack *s,
			      const struct code *to)
{
	const struct vmpt_space *in = &e->space[to->space];
	struct frame *top;
	bool called = false;
	u64 from = 0;
	u32 entry = NONE;

	/* All of the kernel ends. */
	while (s->depth && (vmpt_calls_top(s)->kernel || is_entry(vmpt_calls_top(s)))) {
		top = vmpt_calls_top(s);
		entry = is_entry(top) ? s->depth - 1 : NONE;
		called = top->kind == VMPT_CALL_SYSTEM;
		from = top->ret;
		vmpt_calls_pop_to(e, f, s, s->depth - 1);
	}
	/* execve() */
	if (s->depth && !in->no_cr3 && s->cr3 != ~0ULL && s->cr3 != in->cr3) {
		vmpt_calls_pop_to(e, f, s, 0);
		vmpt_calls_push(e, f, s, VMPT_CALL_CALL, to, 0, false);
		return;
	}
	top = vmpt_calls_top(s);
	/* A signal's handler may change where the program goes on: after what made it, or again. */
	if (called && top && top->kind == VMPT_CALL_SIGNAL && to->ip - top->ret + 16 <= 32) {
		vmpt_calls_pop_to(e, f, s, s->depth - 1);
		return;
	}
	if (!top || entry == NONE) {
		if (!top || !to->function || top->function != to->function)
			lost(e, f, s, to);
		return;
	}
	/* SYSCALL or INT n is made again, or was interrupted itself; an INT n that was not known to
	 * be one; SYSENTER's landing pad, after an INT 80H; or a restartable sequence was
	 * interrupted. */
	if ((called && from - to->ip <= 2) || to->ip - from <= 2 ||
	    (to->function && top->function == to->function && to->ip != to->function))
		return;
	vmpt_calls_push(e, f, s, VMPT_CALL_SIGNAL, to, from, false);
}

static void exited(struct vmpt_calls *e, struct feed *f, struct context *c, const struct code *to)
{
	struct stack *s = c->stack, *other;
	u32 i = find_entry(s, to->ip);

	if (i != NONE) {
		vmpt_calls_pop_to(e, f, s, i);
		settle(e, f, s, to);
		return;
	}
	if (s->depth && is_entry(vmpt_calls_top(s)) && vmpt_calls_exchange(e, s, to)) {
		vmpt_calls_pop_to(e, f, s, s->depth - 1);
		settle(e, f, s, to);
		return;
	}
	/* A jump that makes the processor see changed code: Linux's iret_to_self(). */
	if (s->depth && !is_entry(vmpt_calls_top(s)) && to->function && to->ip != to->function &&
	    vmpt_calls_top(s)->function == to->function)
		return;
	i = top_entry(s);
	if (i == NONE || s->frame[i].kernel) {
		if (!is_kernel(&e->space[to->space], to->ip)) {
			exited_to_program(e, f, s, to);
			return;
		}
		if (i == NONE) {
			lost(e, f, s, to);
			return;
		}
		/* An exception's fixup; or programs are not traced, and this is the next entry. */
		vmpt_calls_pop_to(e, f, s, i);
		if (s->depth)
			jumped(e, f, s, to);
		else
			vmpt_calls_push(e, f, s, VMPT_CALL_INTERRUPT, to, 0, false);
		return;
	}
	/* A system whose kernel is not in the upper half may switch tasks so. */
	other = vmpt_calls_parked_at(e, c, e->space[to->space].cr3, to->ip);
	vmpt_calls_say(e, f, s, VMPT_CALL_RUN, NULL, s->depth);
	vmpt_calls_park(e, c);
	c->stack = other ? other : vmpt_calls_stack_new(e, c, to->space);
	if (!c->stack)
		return;
	vmpt_calls_say(e, f, c->stack, VMPT_CALL_RUN, NULL, c->stack->depth);
	if (other)
		vmpt_calls_pop_to(e, f, other, other->depth - 1);
	settle(e, f, c->stack, to);
}

/* An event at the instruction at c->from. */
static void event(struct vmpt_calls *e, struct feed *f, struct context *c, const struct code *to)
{
	const struct frame *top = vmpt_calls_top(c->stack);
	u64 size;

	if (!is_handler(to, c->from, top ? top->function : 0))
		return;
	size = vmpt_calls_soft_int(e, f, c->space, c->from);
	vmpt_calls_push(e, f, c->stack, size ? VMPT_CALL_SYSTEM : VMPT_CALL_INTERRUPT, to,
			c->from + size, false);
}

/*
 * A jump or RET from the lower half to the upper one, outside of entries: the kernel boots. What
 * ran before was no program of it, and does not come back.
 */
static bool is_boot(const struct vmpt_calls *e, struct stack *s, const struct code *to)
{
	const struct frame *top = vmpt_calls_top(s);

	return s->cr3 != ~0ULL && top && !top->kernel && is_kernel(&e->space[to->space], to->ip) &&
	       top_entry(s) == NONE;
}

static void boot(struct vmpt_calls *e, struct feed *f, struct stack *s, const struct code *to)
{
	vmpt_calls_pop_to(e, f, s, 0);
	start(e, f, s, to);
	e->task[s->task].root = s->root;
}

void vmpt_calls_arrive(struct vmpt_calls *e, struct feed *f, struct context *c,
		       const struct code *to)
{
	const u8 how = c->how;
	struct stack *s = c->stack;

	c->how = HOW_NEXT;
	if ((how == HOW_RET || how == HOW_JMP) && is_boot(e, s, to)) {
		boot(e, f, s, to);
		return;
	}
	switch (how) {
	case HOW_START:
		start(e, f, s, to);
		break;
	case HOW_LOST:
		lost(e, f, s, to);
		break;
	case HOW_CALL:
		if (to->ip != c->from && !vmpt_calls_fills(to))
			vmpt_calls_push(e, f, s, VMPT_CALL_CALL, to, c->from, false);
		break;
	case HOW_RET:
		returned(e, f, c, to);
		break;
	case HOW_ENTRY:
		/* Where the kernel is not traced the program goes on. */
		if (to->ip != c->from)
			vmpt_calls_push(e, f, s, VMPT_CALL_SYSTEM, to, c->from, false);
		break;
	case HOW_EXIT:
		exited(e, f, c, to);
		break;
	case HOW_EVENT:
		event(e, f, c, to);
		break;
	case HOW_VMX:
		settle(e, f, s, to);
		break;
	default:
		jumped(e, f, s, to);
		break;
	}
}
