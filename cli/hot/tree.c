// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* A plain tree of the calls of a trace: functions of one name and processes of several address
 * spaces are one each. */
#include <stdlib.h>
#include <string.h>

#include "cli/hot/hot.h"
#include "util/array.h"
#include "util/hash.h"

struct maker {
	struct calls_source *s;
	struct hot_tree *t;
	u32 *made; /* of each node of the calls; 0: not wanted */
	struct vmpt_hash of;
};

/* The child @what of @parent; 0: no memory. */
static u32 child(struct maker *m, u32 parent, u32 what)
{
	struct hot_tree *t = m->t;
	const u64 hash = vmpt_mix64((u64)parent << 32 | what);
	u32 i = vmpt_hash_find(&m->of, hash, k,
			       t->node[k].parent == parent && t->node[k].what == what);

	if (i != VMPT_HASH_NONE)
		return i;
	if (vmpt_grow(&t->node, t->nodes) || vmpt_hash_add(&m->of, hash, (u32)t->nodes))
		return 0;
	t->node[t->nodes] = (struct hot_node){ .parent = parent, .what = what };
	return (u32)t->nodes++;
}

static int take(struct maker *m, u32 i)
{
	struct vmpt_call_node n;
	struct hot_node *to;
	u32 what;

	vmpt_calls_node(m->s->calls, i, &n);
	if (n.parent) {
		if (!m->made[n.parent])
			return 0;
		what = calls_function(m->s, &n);
	} else {
		what = calls_root_process(m->s, &n);
		if (!calls_wanted(m->s, what))
			return 0;
	}
	m->made[i] = child(m, n.parent ? m->made[n.parent] : 0, what);
	if (!m->made[i])
		return -VMPT_E_NOMEM;
	to = &m->t->node[m->made[i]];
	to->calls += n.calls;
	to->self[HOT_INSTRUCTIONS] += n.instructions;
	to->self[HOT_TIME] += n.time;
	return 0;
}

static int take_processes(struct calls_source *s, struct hot_tree *t)
{
	size_t i;

	t->process = calloc(s->processes + 1, sizeof(*t->process));
	if (!t->process)
		return -VMPT_E_NOMEM;
	t->processes = s->processes;
	for (i = 0; i < s->processes; i++) {
		const struct calls_process *p = &s->process[i];
		const char *comm = p->task ? strchr(p->name, ' ') : NULL;

		t->process[i] = (struct hot_process){
			.vm = s->vm[p->vm].name,
			.name = p->name,
			.comm = comm ? comm + 1 : p->name,
			.vm_number = p->vm,
			.task = p->task,
		};
	}
	return 0;
}

int hot_tree_make(struct calls_source *s, struct hot_tree *t)
{
	const u32 n = vmpt_calls_nodes(s->calls);
	struct maker m = { .s = s, .t = t };
	int ret = 0;
	u32 i;

	memset(t, 0, sizeof(*t));
	m.made = calloc((size_t)n + 1, sizeof(*m.made));
	if (!m.made || vmpt_grow(&t->node, t->nodes))
		ret = -VMPT_E_NOMEM;
	if (!ret)
		t->node[t->nodes++] = (struct hot_node){ 0 };
	/* It becomes number 0. */
	calls_function(s, &(struct vmpt_call_node){ .kind = VMPT_CALL_UNKNOWN });
	for (i = 1; i < n && !ret; i++)
		ret = take(&m, i);
	if (!ret)
		ret = take_processes(s, t);
	t->function = s->function;
	t->functions = s->functions;
	t->timed = s->t.timed;
	t->hertz = s->t.when.hz;
	if (!ret)
		ret = s->cli->out_of_memory ? -VMPT_E_NOMEM : hot_tree_link(t);
	vmpt_hash_free(&m.of);
	free(m.made);
	return ret;
}
