/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* Internal to the true stacks. */
#ifndef VMPT_TESTS_CALLS_TRUE_FOLLOW_H
#define VMPT_TESTS_CALLS_TRUE_FOLLOW_H

#include "tests/calls/true-stacks.h"

/* A task with an empty stack. NULL: no memory. */
struct true_task *true_task_new(struct true_stacks *t);
/* The topmost frame; there is always one, the stack's end. */
struct true_frame *true_top(struct true_task *task);
void true_push(struct true_stacks *t, struct true_task *task, const struct true_frame *f);
/* All frames end but the stack's end. */
void true_base(struct true_stacks *t, struct true_task *task, bool kernel, u64 now);
/* The topmost frame has the code of @fn now, at @ip. */
void true_now(struct true_stacks *t, struct true_task *task, const struct symbol *fn, u64 ip);
/* The stack that has @sp, of a task's in the kernel. */
u32 true_region(struct true_task *task, u64 sp);
unsigned int true_pop(struct true_task *task, u64 sp, struct true_frame *last);

#endif
