// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Two tasks of a group, of which one was taken for the other, change places: what is below the
 * place where they could not be distinguished.
 */
#include "decoder/calls/engine.h"

struct stack *vmpt_calls_stack_number(const struct vmpt_calls *e, size_t i)
{
	return i < e->parks ? e->parked[i] : e->context[i - e->parks]->stack;
}

/* Where @s runs now; NULL: it was left. */
static struct context *runs_in(const struct vmpt_calls *e, const struct stack *s)
{
	size_t i;

	for (i = 0; i < e->contexts; i++)
		if (e->context[i]->stack == s)
			return e->context[i];
	return NULL;
}

/* What runs @s now and how many instructions it has executed, on whichever stream. */
static void say_runs(struct vmpt_calls *e, const struct stack *s)
{
	const struct context *c = runs_in(e, s);
	size_t i;

	for (i = 0; c && i < e->feed_count; i++) {
		struct feed *f = &e->feeds[i];

		if (f->context == c && f->part_at < f->parts)
			vmpt_calls_say(e, f, s, VMPT_CALL_RUN, NULL, s->depth);
	}
}

/* Frames of @s from @n on have other callers than before, and the task of @s counts on from @old.
 */
static void set_callers(struct vmpt_calls *e, struct stack *s, u32 n, u64 old)
{
	u32 i, parent = n ? s->frame[n - 1].node : s->root;

	for (i = n; i < s->depth; i++) {
		struct frame *f = &s->frame[i];
		const struct vmpt_call_node node = e->node[f->node];
		const u64 since = old - f->instructions;

		f->instructions = s->instructions > since ? s->instructions - since : 0;
		if (f->thunk)
			f->node = parent;
		else
			parent = f->node =
				vmpt_calls_child(e, parent, node.kind, node.function, node.space);
	}
}

void vmpt_calls_exchange_at(struct vmpt_calls *e, struct stack *a, u32 n, struct stack *b, u32 m)
{
	const u32 above = a->depth - n, above_b = b->depth - m;
	struct frame *fa = malloc((m + above + 1) * sizeof(*fa));
	struct frame *fb = malloc((n + above_b + 1) * sizeof(*fb));
	const struct stack old = *a, old_b = *b;

	if (!fa || !fb) {
		free(fa);
		free(fb);
		e->error = -VMPT_E_NOMEM;
		return;
	}
	say_runs(e, a);
	say_runs(e, b);
	memcpy(fa, b->frame, m * sizeof(*fa));
	memcpy(fa + m, a->frame + n, above * sizeof(*fa));
	memcpy(fb, a->frame, n * sizeof(*fb));
	memcpy(fb + n, b->frame + m, above_b * sizeof(*fb));
	free(a->frame);
	free(b->frame);
	*a = old_b;
	a->frame = fa;
	a->depth = m + above;
	a->room = m + above + 1;
	a->over = old.over;
	*b = old;
	b->frame = fb;
	b->depth = n + above_b;
	b->room = n + above_b + 1;
	b->over = old_b.over;
	e->parked_frames += runs_in(e, a) ? 0 : (u64)a->depth - old.depth;
	e->parked_frames += runs_in(e, b) ? 0 : (u64)b->depth - old_b.depth;
	set_callers(e, a, m, old.instructions);
	set_callers(e, b, n, old_b.instructions);
	say_runs(e, a);
	say_runs(e, b);
}

bool vmpt_calls_exchange(struct vmpt_calls *e, struct stack *s, const struct code *to)
{
	const struct frame *top = vmpt_calls_top(s);
	size_t i;
	u32 k;

	if (!s->group || !top)
		return false;
	for (i = e->parks + e->contexts; i-- > 0;) {
		struct stack *other = vmpt_calls_stack_number(e, i);

		if (!other || other == s || other->group != s->group)
			continue;
		for (k = other->depth; k-- > 0;) {
			const struct frame *f = &other->frame[k];

			if (f->ret != to->ip || f->kind != top->kind ||
			    f->function != top->function)
				continue;
			vmpt_calls_exchange_at(e, s, s->depth, other, k + 1);
			return !e->error;
		}
	}
	return false;
}
