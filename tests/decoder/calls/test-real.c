// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* Calls of real traces: what must hold whatever the code is. */
#include <stdlib.h>

#include "decoder/vmpt-calls.h"
#include "tests/decoder/flow-run.h"
#include "tests/support/support.h"

/* Frames of a task that are open. */
struct open_frames {
	u32 node[1 << 16];
	u32 depth;
};

static void check_items(const struct vmpt_calls *calls, const struct vmpt_call_batch *b,
			struct open_frames *task, u32 tasks)
{
	struct vmpt_call_node n;
	size_t i;

	for (i = 0; i < b->count; i++) {
		const struct vmpt_call_item *it = &b->items[i];
		struct open_frames *t = &task[it->task];

		ck_assert_uint_lt(it->task, tasks);
		vmpt_calls_node(calls, it->node, &n);
		if (it->what == VMPT_CALL_ENTER) {
			ck_assert_uint_eq(n.parent && t->depth ? t->node[t->depth - 1] : 0,
					  n.parent && t->depth ? n.parent : 0);
			t->node[t->depth++] = it->node;
		} else if (it->what == VMPT_CALL_LEAVE) {
			ck_assert_uint_gt(t->depth, 0);
			ck_assert_uint_eq(t->node[--t->depth], it->node);
			ck_assert_uint_le(it->enter_instructions, it->instructions);
		}
	}
}

static void check_trace(const char *name)
{
	const struct vmpt_calls_options o = { .items = true };
	const struct vmpt_stream *streams[1];
	struct vmpt_call_batch b;
	struct vmpt_calls *calls;
	struct vmpt_flow_counts flow;
	struct vmpt_calls_counts c;
	struct vmpt_call_node n;
	struct open_frames *task = calloc(64, sizeof(*task));
	struct flow_real r;
	u64 sum = 0;
	u32 i;
	int ret;

	if (!flow_real_open(&r, name))
		return;
	streams[0] = &r.stream;
	ck_assert_int_eq(vmpt_calls_open(&calls, streams, 1, NULL, r.code, &o), 0);
	while ((ret = vmpt_calls_next(calls, &b)) > 0) {
		ck_assert_uint_le(vmpt_calls_tasks(calls), 64);
		check_items(calls, &b, task, vmpt_calls_tasks(calls));
	}
	ck_assert_int_eq(ret, 0);
	vmpt_calls_total(calls, &c);
	vmpt_calls_flow(calls, 0, &flow);
	for (i = 0; i < vmpt_calls_nodes(calls); i++) {
		vmpt_calls_node(calls, i, &n);
		sum += n.instructions;
	}
	ck_assert_uint_eq(sum, flow.instructions);
	ck_assert_uint_eq(c.instructions, flow.instructions);
	vmpt_calls_close(calls);
	flow_real_close(&r);
	free(task);
}

static const char *const traces[] = { "guest-two-vmcs", "guest-mruby", "guest-unzip" };

START_TEST(holds)
{
	check_trace(traces[_i]);
}
END_TEST

TEST_SUITE()
{
	Suite *suite = suite_create("decoder/calls/real");
	TCase *tcase = test_long_case(suite);

	tcase_add_loop_test(tcase, holds, 0, 3);
	return suite;
}
