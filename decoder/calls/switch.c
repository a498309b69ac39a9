// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Tasks. Each that is left keeps its stack. Where one goes on is not in the trace, so what comes
 * up to the next switch is looked at first: the stacks that its returns fit are candidates.
 */
#include "decoder/calls/engine.h"

#define STACKS_DEFAULT 16384u
#define FRAMES_MAX     (4u << 20) /* of all stacks that were left */

#define LOOK_BLOCKS (256u << 10)
#define LOOK_DEPTH  256u
#define CANDIDATES  1024u

/* ---- stacks that were left ---- */

static void drop(struct vmpt_calls *e, size_t i)
{
	e->parked_frames -= e->parked[i]->depth;
	memmove(e->parked + i, e->parked + i + 1, (e->parks - i - 1) * sizeof(*e->parked));
	e->parks--;
}

void vmpt_calls_park(struct vmpt_calls *e, struct context *c)
{
	const u32 max = e->options.stacks_max ? e->options.stacks_max : STACKS_DEFAULT;
	struct stack *s = c->stack;
	struct frame *less;

	c->stack = NULL;
	e->counts.switches++;
	while (e->parks && (e->parks >= max || e->parked_frames + s->depth > FRAMES_MAX)) {
		struct stack *old = e->parked[0];

		drop(e, 0);
		vmpt_calls_stack_free(old);
	}
	less = s->depth ? realloc(s->frame, s->depth * sizeof(*s->frame)) : NULL;
	if (less) {
		s->frame = less;
		s->room = s->depth;
	}
	if (vmpt_grow(&e->parked, e->parks)) {
		vmpt_calls_stack_free(s);
		e->error = -VMPT_E_NOMEM;
		return;
	}
	e->parked_frames += s->depth;
	e->parked[e->parks++] = s;
}

static struct stack *take(struct vmpt_calls *e, struct stack *s)
{
	size_t i;

	for (i = 0; i < e->parks; i++)
		if (e->parked[i] == s) {
			drop(e, i);
			break;
		}
	e->counts.resumed++;
	return s;
}

struct stack *vmpt_calls_parked_at(struct vmpt_calls *e, const struct context *c, u64 cr3, u64 ip)
{
	size_t i, low = e->parks > CANDIDATES ? e->parks - CANDIDATES : 0;

	for (i = e->parks; i-- > low;) {
		struct stack *s = e->parked[i];

		if (s->vm == c->vm && (s->cr3 == ~0ULL || s->cr3 == cr3) && s->depth &&
		    s->frame[s->depth - 1].ret == ip)
			return take(e, s);
	}
	return NULL;
}

/* ---- what comes up to the next switch ---- */

struct look {
	struct vmpt_calls *e;
	struct candidate {
		struct stack *stack;
		u32 left; /* frames that have not ended yet, of .lower if there is one */
		/* One that it could be: its frames below .lower_cut are those below .cut here */
		struct stack *lower;
		u32 cut, lower_cut;
		bool any; /* what is not known of it fitted */
	} candidate[CANDIDATES];
	size_t count;
	struct {
		u64 ret;
		bool entry;
	} frame[LOOK_DEPTH];
	u32 depth;
	u8 how;
	u64 from, function; /* of the block before */
	u32 space;	    /* of the event */
	bool exited;	    /* to a program */
	bool done;
};

static const struct frame *next_frame(const struct candidate *c)
{
	return c->left ? &(c->lower ? c->lower : c->stack)->frame[c->left - 1] : NULL;
}

/*
 * The next frame of @c does not return to @ip. If the stack may be another one, does that one have
 * such a frame that does?
 */
static bool is_other(const struct look *l, struct candidate *c, u64 ip)
{
	const struct frame *want = next_frame(c), *f;
	size_t i;
	u32 k;

	for (i = l->e->parks + l->e->contexts; i-- > 0 && c->stack->group && !c->lower;) {
		struct stack *o = vmpt_calls_stack_number(l->e, i);

		if (!o || o->group != c->stack->group || o == c->stack)
			continue;
		for (k = o->depth; k-- > 0;) {
			f = &o->frame[k];
			if (f->ret != ip || f->kind != want->kind || f->function != want->function)
				continue;
			c->cut = c->left;
			c->lower_cut = c->left = k + 1;
			c->lower = o;
			return true;
		}
	}
	return false;
}

/* Those of which the next frame returns to @ip stay. One of which nothing is known fits all. */
static void filter_return(struct look *l, u64 ip)
{
	size_t i, n = 0;

	for (i = 0; i < l->count; i++) {
		struct candidate c = l->candidate[i];
		const struct frame *f = next_frame(&c);
		const bool any = !f || f->kind == VMPT_CALL_UNKNOWN;

		/* To code that asks the kernel to end the signal. */
		if (!any && f->kind == VMPT_CALL_SIGNAL) {
			l->candidate[n++] = c;
			continue;
		}
		if (!any &&
		    (f->kind != VMPT_CALL_CALL || (f->ret && f->ret != ip && !is_other(l, &c, ip))))
			continue;
		c.left -= !any;
		c.any |= any || !f->ret;
		l->candidate[n++] = c;
	}
	l->count = n;
}

static bool exits_to(const struct look *l, struct candidate *c, const struct code *to)
{
	const struct frame *f = next_frame(c);
	const struct stack *s;

	while (f && f->kind == VMPT_CALL_CALL) {
		c->left--;
		f = next_frame(c);
	}
	c->any |= !f || f->kind == VMPT_CALL_UNKNOWN;
	if (!f || f->kind == VMPT_CALL_UNKNOWN)
		return true;
	if (f->ret != to->ip && !is_other(l, c, to->ip))
		return false;
	c->left--;
	s = c->lower ? c->lower : c->stack;
	/* execve() loads CR3 before it has left the kernel. */
	return is_kernel(&l->e->space[to->space], to->ip) || s->cr3 == ~0ULL ||
	       s->cr3 == l->e->space[to->space].cr3;
}

/* The kernel is left: those whose entry came from @to, in this address space, stay. */
static void filter_exit(struct look *l, const struct code *to)
{
	const struct vmpt_space *in = &l->e->space[to->space];
	const size_t all = l->count;
	size_t i, n = 0;

	for (i = 0; i < all; i++) {
		struct candidate c = l->candidate[i];

		if (exits_to(l, &c, to))
			l->candidate[n++] = c;
	}
	l->exited = !is_kernel(in, to->ip);
	l->done = l->exited && n == 1;
	/* A signal, or execve(): the address space has to do. */
	if (!n && l->exited) {
		for (i = 0; i < all; i++)
			if (l->candidate[i].stack->cr3 == in->cr3)
				l->candidate[n++] = l->candidate[i];
		l->done = true;
	}
	/* Of execve() that is new, too; within the kernel it is a fixup or a jump: what the RETs
	 * said has to do. */
	if (!n)
		n = all;
	l->count = n;
}

static void look_push(struct look *l, u64 ret, bool entry)
{
	if (l->depth == LOOK_DEPTH) {
		l->done = true;
		return;
	}
	l->frame[l->depth].ret = ret;
	l->frame[l->depth++].entry = entry;
}

static void look_back(struct look *l, const struct code *to, bool entry)
{
	u32 i;

	for (i = l->depth; i-- > 0;)
		if (l->frame[i].ret == to->ip && l->frame[i].entry == entry) {
			l->depth = i;
			return;
		}
	if (entry)
		filter_exit(l, to);
	else if (!l->depth)
		filter_return(l, to->ip);
	else if (to->function && to->ip == to->function)
		l->depth--; /* a retpoline's own call */
}

/* The flow comes to @to, as l->how says. */
static void look_at(struct look *l, const struct feed *f, const struct code *to)
{
	const u8 how = l->how;

	l->how = HOW_NEXT;
	if (to->role == VMPT_ROLE_SWITCH && how == HOW_CALL && !vmpt_calls_fills(to)) {
		l->done = true;
		return;
	}
	if (how == HOW_CALL && to->ip != l->from && !vmpt_calls_fills(to))
		look_push(l, l->from, false);
	else if (how == HOW_ENTRY && to->ip != l->from)
		look_push(l, l->from, true);
	else if (how == HOW_EVENT && is_handler(to, l->from, l->function))
		look_push(l, l->from + vmpt_calls_soft_int(l->e, f, l->space, l->from), true);
	else if (how == HOW_RET)
		look_back(l, to, false);
	else if (how == HOW_EXIT && (!to->function || to->function != l->function))
		look_back(l, to, true);
}

static bool ours(const struct look *l, const struct context *c, u32 space)
{
	return space != NONE && vmpt_owner_same(&l->e->space[space].owner, &c->owner);
}

/* Blocks of part @p from number @from on. */
static void look_part(struct look *l, struct feed *f, const struct context *c, size_t part,
		      u32 from)
{
	const struct part p = f->part[part];
	struct code to;
	u32 i;

	if (p.kind == VMPT_FLOW_GAP) {
		l->done = true;
		return;
	}
	if (p.kind == VMPT_FLOW_EVENT) {
		u32 space = vmpt_calls_space_of(l->e, f, p.space);

		if (!ours(l, c, space))
			return;
		vmpt_calls_code_at(l->e, space, p.ip, &to);
		if (l->how)
			look_at(l, f, &to);
		l->how = HOW_EVENT;
		l->from = p.ip;
		l->space = space;
		return;
	}
	if (p.kind != VMPT_FLOW_BLOCKS || vmpt_calls_blocks(l->e, f))
		return;
	for (i = from; i < p.count && !l->done; i++) {
		const u32 id = f->ids[p.first + i];

		if (!f->block[id].zone && vmpt_calls_new_block(l->e, f, id))
			return;
		to = code_of(l->e, f, id);
		if (!ours(l, c, to.space))
			continue;
		if (l->how)
			look_at(l, f, &to);
		l->function = to.function;
		if (i + 1 < p.count || p.last == f->block[id].insns) {
			l->how = f->block[id].how;
			l->space = NONE;
			l->from = f->place[id].next;
		}
	}
}

static int look_ahead(struct look *l, struct feed *f, const struct context *c, u32 at)
{
	size_t n = 0, blocks = 0;
	int ret = 1;

	while (!l->done && !l->e->error && l->count && blocks < LOOK_BLOCKS) {
		ret = vmpt_calls_feed_ahead(f, n);
		if (ret <= 0)
			break;
		look_part(l, f, c, f->part_at + n, n ? 0 : at);
		blocks += f->part[f->part_at + n].count + 1;
		n++;
	}
	return ret < 0 ? ret : 0;
}

/* ---- switches ---- */

/* All that were left before @last. */
static void candidates(struct look *l, const struct context *c, const struct stack *last)
{
	const struct vmpt_calls *e = l->e;
	size_t i;

	for (i = e->parks; i-- > 0 && l->count < CANDIDATES;)
		if (e->parked[i]->vm == c->vm && e->parked[i] != last)
			l->candidate[l->count++] =
				(struct candidate){ .stack = e->parked[i],
						    .left = e->parked[i]->depth };
}

/* They may be exchanged, as long as nothing says which is which. */
static void group(struct vmpt_calls *e, const struct look *l)
{
	u32 group = 0;
	size_t i;

	for (i = 0; i < l->count && !group; i++)
		group = l->candidate[i].stack->group;
	if (!group)
		group = ++e->groups;
	for (i = 0; i < l->count; i++)
		l->candidate[i].stack->group = group;
}

/* How well a candidate fits: 0 is best. */
static unsigned int doubt(const struct candidate *c)
{
	return c->any ? 2 : c->lower ? 1 : 0;
}

/*
 * Whether @c is of a program in another address space than @in: the kernel has loaded the next
 * task's CR3 when it switches. A program's may differ from its kernel's in bits 12:0 (Linux's
 * page-table isolation). CR3 0 is no program's: the stack began before there was paging.
 */
static bool is_elsewhere(const struct candidate *c, const struct vmpt_space *in)
{
	const u64 cr3 = c->lower ? c->lower->cr3 : c->stack->cr3;

	return cr3 && cr3 != ~0ULL && !in->no_cr3 && (cr3 ^ in->cr3) >> 13;
}

/* Those that fit best stay; of them those that are not of another address space, if there are. */
static void prefer(struct look *l, const struct vmpt_space *in)
{
	unsigned int best = 2;
	size_t i, n = 0, here = 0;

	for (i = 0; i < l->count; i++)
		if (doubt(&l->candidate[i]) < best)
			best = doubt(&l->candidate[i]);
	for (i = 0; i < l->count; i++)
		if (doubt(&l->candidate[i]) == best)
			l->candidate[n++] = l->candidate[i];
	for (i = 0; i < n; i++)
		here += !is_elsewhere(&l->candidate[i], in);
	for (i = 0, l->count = 0; i < n; i++)
		if (!here || !is_elsewhere(&l->candidate[i], in))
			l->candidate[l->count++] = l->candidate[i];
}

/* Of several the one that waits longest: the list has the last ones first. */
static struct stack *choose(struct vmpt_calls *e, struct look *l, const struct vmpt_space *in)
{
	const struct candidate *c;
	struct vmpt_call_task *t;

	prefer(l, in);
	if (!l->count)
		return NULL;
	c = &l->candidate[l->count - 1];
	if (l->count > 1)
		group(e, l);
	if (c->lower)
		vmpt_calls_exchange_at(e, c->stack, c->cut, c->lower, c->lower_cut);
	take(e, c->stack);
	if (l->count > 1) {
		t = &e->task[c->stack->task];
		e->counts.ambiguous++;
		if (t->one_of < l->count)
			t->one_of = (u32)l->count;
	}
	return c->stack;
}

void vmpt_calls_switch(struct vmpt_calls *e, struct feed *f, struct context *c, u32 at,
		       const struct code *to)
{
	struct look *l = calloc(1, sizeof(*l));
	const struct stack *last = c->stack;
	int ret;

	if (!l) {
		e->error = -VMPT_E_NOMEM;
		return;
	}
	l->e = e;
	vmpt_calls_park(e, c);
	candidates(l, c, last);
	ret = look_ahead(l, f, c, at);
	if (ret)
		e->error = ret;
	c->stack = choose(e, l, &e->space[to->space]);
	free(l);
	if (c->stack || e->error)
		return;
	c->stack = vmpt_calls_stack_new(e, c, to->space);
	if (!c->stack)
		return;
	vmpt_calls_push(e, f, c->stack, VMPT_CALL_UNKNOWN, to, 0, true);
	vmpt_calls_push(e, f, c->stack, VMPT_CALL_CALL, to, 0, true);
}
