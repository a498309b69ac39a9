// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * What happens to a true stack: pushes, and what RSP ends.
 */
#include <stdio.h>

#include "tests/calls/true-follow.h"
#include "util/array.h"

#define NO_REGION (~0u)
/* A stack grows down by less between two records of RSP. */
#define GROWS 4096u

/* ---- nodes ---- */

static bool same(const struct true_node *a, const struct true_node *b)
{
	return a->parent == b->parent && a->kind == b->kind && a->optional == b->optional &&
	       a->start == b->start && a->now == b->now;
}

static u32 node_of(struct true_stacks *t, const struct true_node *n)
{
	u64 hash =
		vmpt_mix64(n->now ^ vmpt_mix64(n->start ^ vmpt_mix64((u64)n->parent << 8 |
								     n->kind << 1 | n->optional)));
	u32 id = vmpt_hash_find(&t->node_of, hash, k, same(&t->node[k], n));

	if (id != VMPT_HASH_NONE)
		return id;
	id = (u32)t->nodes;
	if (vmpt_grow(&t->node, t->nodes) || vmpt_hash_add(&t->node_of, hash, id)) {
		t->error = true;
		return 0;
	}
	t->node[t->nodes++] = *n;
	return id;
}

static void name(struct true_stacks *t, struct true_task *task, size_t i)
{
	struct true_frame *f = &task->frame[i];
	struct true_node n = { .parent = i ? task->frame[i - 1].node : 0,
			       .kind = f->kind,
			       .optional = f->optional,
			       .start = f->start,
			       .now = f->now };

	f->node = f->thunk ? n.parent : node_of(t, &n);
}

/* ---- tasks ---- */

struct true_task *true_task_new(struct true_stacks *t)
{
	struct true_task *task = calloc(1, sizeof(*task));

	if (!task || vmpt_grow(&t->task, t->tasks)) {
		t->error = true;
		return NULL;
	}
	task->id = (u32)t->tasks;
	task->cpu = -1;
	t->task[t->tasks++] = task;
	true_push(t, task, &(struct true_frame){ .kind = VMPT_CALL_ROOT });
	return t->error ? NULL : task;
}

struct true_frame *true_top(struct true_task *task)
{
	return &task->frame[task->frames - 1];
}

void true_push(struct true_stacks *t, struct true_task *task, const struct true_frame *f)
{
	if (vmpt_reserve(&task->frame, &task->room, task->frames + 1)) {
		t->error = true;
		return;
	}
	task->frame[task->frames++] = *f;
	name(t, task, task->frames - 1);
}

void true_base(struct true_stacks *t, struct true_task *task, bool kernel, u64 now)
{
	task->frames = 1;
	task->frame[0].kernel = kernel;
	task->frame[0].now = now;
	name(t, task, 0);
}

void true_now(struct true_stacks *t, struct true_task *task, const struct symbol *fn, u64 ip)
{
	struct true_frame *top = true_top(task);

	if (!fn || fn->start == top->now || fn->role == VMPT_ROLE_THUNK)
		return;
	/* Its own calls to itself have ended, though RSP has not been seen since. */
	while (top->optional && fn->start == ip && task->frames > 1) {
		task->frames--;
		top = true_top(task);
	}
	if (fn->start == ip || top->thunk)
		top->start = fn->start;
	top->now = fn->start;
	top->thunk = false;
	name(t, task, task->frames - 1);
}

/* ---- RSP ---- */

/* The region of the task's kernel stacks (its own, an interrupt's, ...) that has @sp. */
static u32 region_of(struct true_task *task, u64 sp)
{
	u32 i;

	for (i = 0; i < task->regions; i++) {
		struct true_region *r = &task->region[i];

		if (sp >= r->min - GROWS && sp <= r->max + 64) {
			if (sp < r->min)
				r->min = sp;
			if (sp > r->max)
				r->max = sp;
			return i;
		}
	}
	if (i == TRUE_REGIONS) {
		task->regions = 0;
		i = 0;
	}
	task->region[task->regions++] = (struct true_region){ sp, sp };
	return i;
}

u32 true_region(struct true_task *task, u64 sp)
{
	return sp >> 63 ? region_of(task, sp) : NO_REGION;
}

static bool below(const struct true_task *task, u32 region)
{
	for (size_t i = task->frames; i-- > 1;)
		if (task->frame[i].region == region)
			return true;
	return false;
}

/*
 * RSP is @sp: what has its return address below it has ended. Frames of another stack end if that
 * was used on top of the one that @sp is in. Returns how many ended; *@last is the last of them.
 */
unsigned int true_pop(struct true_task *task, u64 sp, struct true_frame *last)
{
	const bool kernel = sp >> 63;
	const u32 region = true_region(task, sp);
	unsigned int n = 0;

	while (task->frames > 1) {
		const struct true_frame *top = true_top(task);

		if (top->kernel != kernel || (kernel && top->region == NO_REGION))
			break;
		if (top->region == region ? top->sp >= sp : !below(task, region))
			break;
		*last = *top;
		task->frames--;
		n++;
	}
	return n;
}
