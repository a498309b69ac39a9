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
	e->parked_frames -= e->parked[i]->room;
	memmove(e->parked + i, e->parked + i + 1, (e->parks - i - 1) * sizeof(*e->parked));
	e->parks--;
}

void vmpt_calls_park(struct vmpt_calls *e, struct context *c)
{
	const u32 max = e->options.stacks_max ? e->options.stacks_max : STACKS_DEFAULT;
	struct stack *s = c->stack;
	struct frame *less;

	c->stack = NULL;
	s->left = ++e->counts.switches;
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
	e->parked_frames += s->room;
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
	struct stack *candidate[CANDIDATES];
	size_t count;
	struct {
		u64 ret;
		bool entry;
	} frame[LOOK_DEPTH];
	u32 depth;
	u32 under; /* frames of the candidates that have ended */
	u8 how;
	u64 from;
	bool done;
};

static u32 next_frame(const struct look *l, const struct stack *s)
{
	return s->depth > l->under ? s->depth - 1 - l->under : NONE;
}

/* Those of which the next frame returns to @ip stay. */
static void filter_return(struct look *l, u64 ip)
{
	size_t i, n = 0;

	for (i = 0; i < l->count; i++) {
		struct stack *s = l->candidate[i];
		u32 at = next_frame(l, s);

		/* One that nothing is known of fits all. */
		if (at == NONE || (!s->frame[at].ret && s->frame[at].kind <= VMPT_CALL_CALL) ||
		    (s->frame[at].kind == VMPT_CALL_CALL && s->frame[at].ret == ip))
			l->candidate[n++] = s;
	}
	l->count = n;
	l->under++;
	l->done |= !n;
}

/* The kernel is left: those whose entry came from @ip, in this address space, stay. */
static void filter_exit(struct look *l, const struct code *to)
{
	const struct vmpt_space *in = &l->e->space[to->space];
	size_t i, n = 0;
	u32 at;

	for (i = 0; i < l->count; i++) {
		struct stack *s = l->candidate[i];

		for (at = next_frame(l, s); at != NONE && s->frame[at].kind == VMPT_CALL_CALL; at--)
			;
		if (at == NONE || s->frame[at].kind == VMPT_CALL_UNKNOWN ||
		    (s->frame[at].ret == to->ip && (s->cr3 == ~0ULL || s->cr3 == in->cr3)))
			l->candidate[n++] = s;
	}
	/* A signal, or execve(): the address space has to do. */
	if (!n && !is_kernel(in, to->ip)) {
		for (i = 0; i < l->count; i++)
			if (l->candidate[i]->cr3 == in->cr3)
				l->candidate[n++] = l->candidate[i];
	}
	l->count = n;
	l->done = true;
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
static void look_at(struct look *l, const struct code *to, bool away)
{
	const u8 how = l->how;

	l->how = HOW_NEXT;
	if (to->role == VMPT_ROLE_SWITCH && how == HOW_CALL) {
		l->done = true;
		return;
	}
	if (how == HOW_CALL && to->ip != l->from)
		look_push(l, l->from, false);
	else if (how == HOW_ENTRY && to->ip != l->from)
		look_push(l, l->from, true);
	else if (how == HOW_EVENT && to->ip != l->from && !away)
		look_push(l, l->from, true);
	else if (how == HOW_RET)
		look_back(l, to, false);
	else if (how == HOW_EXIT)
		look_back(l, to, true);
}

static bool ours(const struct look *l, const struct context *c, u32 space)
{
	return space != NONE && vmpt_owner_same(&l->e->space[space].owner, &c->owner);
}

/* Blocks of part @p from number @from on. */
static void look_part(struct look *l, struct feed *f, const struct context *c, size_t part,
		      u32 from, bool *away)
{
	const struct part p = f->part[part];
	const struct code *code;
	u32 i;

	if (p.kind == VMPT_FLOW_GAP) {
		l->done = true;
		return;
	}
	if (p.kind == VMPT_FLOW_EVENT) {
		struct code at;
		u32 space = vmpt_calls_space_of(l->e, f, p.space);

		if (!ours(l, c, space))
			return;
		vmpt_calls_code_at(l->e, space, p.ip, &at);
		if (l->how)
			look_at(l, &at, *away);
		l->how = HOW_EVENT;
		l->from = p.ip;
		*away = false;
		return;
	}
	for (i = from; p.kind == VMPT_FLOW_BLOCKS && i < p.count && !l->done; i++) {
		code = vmpt_calls_code(l->e, f, f->ids[p.first + i]);
		if (!code)
			return;
		if (!ours(l, c, code->space)) {
			*away = true;
			continue;
		}
		if (l->how && !l->done)
			look_at(l, code, *away);
		*away = false;
		if (i + 1 < p.count || p.last == code->insns) {
			l->how = vmpt_calls_how[code->branch];
			l->from = code->next;
		}
	}
}

static int look_ahead(struct look *l, struct feed *f, const struct context *c, u32 at)
{
	size_t n = 0, blocks = 0;
	bool away = false;
	int ret = 1;

	while (!l->done && !l->e->error && l->count && blocks < LOOK_BLOCKS) {
		ret = vmpt_calls_feed_ahead(f, n);
		if (ret <= 0)
			break;
		look_part(l, f, c, f->part_at + n, n ? 0 : at, &away);
		blocks += f->part[f->part_at + n].count + 1;
		n++;
	}
	return ret < 0 ? ret : 0;
}

/* ---- switches ---- */

static void candidates(struct look *l, const struct context *c)
{
	const struct vmpt_calls *e = l->e;
	size_t i;

	for (i = e->parks; i-- > 0 && l->count < CANDIDATES;)
		if (e->parked[i]->vm == c->vm)
			l->candidate[l->count++] = e->parked[i];
}

/* Of several the one that waits longest: the list has the last ones first. */
static struct stack *choose(struct vmpt_calls *e, const struct look *l)
{
	struct vmpt_call_task *t;
	struct stack *s;

	if (!l->count)
		return NULL;
	s = take(e, l->candidate[l->count - 1]);
	if (l->count == 1)
		return s;
	t = &e->task[s->task];
	e->counts.ambiguous++;
	if (t->one_of < l->count)
		t->one_of = (u32)l->count;
	return s;
}

void vmpt_calls_switch(struct vmpt_calls *e, struct feed *f, struct context *c, u32 at,
		       const struct code *to)
{
	struct look *l = calloc(1, sizeof(*l));
	struct stack *next;
	int ret;

	if (!l) {
		e->error = -VMPT_E_NOMEM;
		return;
	}
	l->e = e;
	candidates(l, c);
	ret = look_ahead(l, f, c, at);
	if (ret)
		e->error = ret;
	next = choose(e, l);
	free(l);
	vmpt_calls_park(e, c);
	c->stack = next;
	if (next)
		return;
	c->stack = vmpt_calls_stack_new(e, c, to->space);
	if (!c->stack)
		return;
	vmpt_calls_push(e, f, c->stack, VMPT_CALL_UNKNOWN, to, 0, true);
	vmpt_calls_push(e, f, c->stack, VMPT_CALL_CALL, to, 0, true);
}
