// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* Sums by function: by itself, and in total. */
#include <stdlib.h>
#include <string.h>

#include "cli/hot/hot.h"
#include "util/array.h"
#include "util/hash.h"

struct summer {
	const struct hot_tree *t;
	struct hot_rows *rows;
	unsigned int per;
	u32 *group;	       /* of each process */
	u64 (*total)[HOT_BYS]; /* of each node */
	u32 *row;	       /* of each node that is not left yet */
	u32 *active;	       /* of each row: how many such nodes */
	size_t room;	       /* of .active */
	struct vmpt_hash of;
};

static u32 row_of(struct summer *s, u32 group, u32 function)
{
	struct hot_rows *rows = s->rows;
	const u64 hash = vmpt_mix64((u64)group << 32 | function);
	u32 i = vmpt_hash_find(&s->of, hash, k,
			       rows->row[k].group == group && rows->row[k].function == function);

	if (i != VMPT_HASH_NONE)
		return i;
	if (vmpt_grow(&rows->row, rows->count) ||
	    vmpt_reserve_zeroed(&s->active, &s->room, rows->count + 1) ||
	    vmpt_hash_add(&s->of, hash, (u32)rows->count))
		return VMPT_HASH_NONE;
	rows->row[rows->count] = (struct hot_row){ .group = group, .function = function };
	return (u32)rows->count++;
}

/* The processes of a VM are the first one's; those of the trace number 0's. */
static int make_groups(struct summer *s)
{
	const struct hot_tree *t = s->t;
	struct vmpt_hash of = { 0 };
	int ret = 0;
	u32 i, k;

	s->group = calloc(t->processes + 1, sizeof(*s->group));
	if (!s->group)
		return -VMPT_E_NOMEM;
	for (i = 0; i < t->processes && !ret && s->per != HOT_PER_TRACE; i++) {
		const u64 hash = vmpt_mix64(t->process[i].vm_number);

		s->group[i] = i;
		if (s->per == HOT_PER_PROCESS)
			continue;
		k = vmpt_hash_find(&of, hash, j,
				   t->process[j].vm_number == t->process[i].vm_number);
		if (k != VMPT_HASH_NONE)
			s->group[i] = k;
		else
			ret = vmpt_hash_add(&of, hash, i);
	}
	vmpt_hash_free(&of);
	return ret;
}

static void sum_nodes(struct summer *s)
{
	const struct hot_tree *t = s->t;
	unsigned int by;
	size_t i;

	for (i = t->nodes; i-- > 1;)
		for (by = 0; by < HOT_BYS; by++) {
			s->total[i][by] += t->node[i].self[by];
			s->total[t->node[i].parent][by] += s->total[i][by];
		}
}

/* What a process did in no function that is known: [unknown]. */
static int enter(struct summer *s, u32 i, u32 group)
{
	const struct hot_node *n = &s->t->node[i];
	const bool root = !n->parent;
	struct hot_row *row;
	unsigned int by;
	bool outer;

	if (root && !n->self[HOT_INSTRUCTIONS] && !n->self[HOT_TIME]) {
		s->row[i] = VMPT_HASH_NONE;
		return 0;
	}
	s->row[i] = row_of(s, group, root ? 0 : n->what);
	if (s->row[i] == VMPT_HASH_NONE)
		return -VMPT_E_NOMEM;
	row = &s->rows->row[s->row[i]];
	row->calls += root ? 0 : n->calls;
	outer = root ? false : !s->active[s->row[i]]++;
	for (by = 0; by < HOT_BYS; by++) {
		row->self[by] += n->self[by];
		row->total[by] += root ? n->self[by] : outer ? s->total[i][by] : 0;
	}
	if (root)
		s->row[i] = VMPT_HASH_NONE;
	return 0;
}

static int walk(struct summer *s)
{
	u32 i = 0, group = 0;
	bool entered = true;
	int ret = 0;

	while (!ret) {
		entered = hot_step(s->t, &i, entered);
		if (entered) {
			if (!s->t->node[i].parent)
				group = s->group[s->t->node[i].what];
			ret = enter(s, i, group);
			continue;
		}
		if (!i)
			break;
		if (s->row[i] != VMPT_HASH_NONE)
			s->active[s->row[i]]--;
	}
	return ret;
}

int hot_rows_make(const struct hot_tree *t, unsigned int per, struct hot_rows *rows)
{
	struct summer s = { .t = t, .rows = rows, .per = per };
	unsigned int by;
	size_t i;
	int ret;

	memset(rows, 0, sizeof(*rows));
	s.total = calloc(t->nodes, sizeof(*s.total));
	s.row = calloc(t->nodes, sizeof(*s.row));
	ret = s.total && s.row ? make_groups(&s) : -VMPT_E_NOMEM;
	if (!ret) {
		sum_nodes(&s);
		ret = walk(&s);
	}
	for (i = 0; i < rows->count; i++) {
		rows->sum.calls += rows->row[i].calls;
		for (by = 0; by < HOT_BYS; by++)
			rows->sum.self[by] += rows->row[i].self[by];
	}
	free(s.group);
	free(s.total);
	free(s.row);
	free(s.active);
	vmpt_hash_free(&s.of);
	return ret;
}

void hot_rows_free(struct hot_rows *rows)
{
	free(rows->row);
	memset(rows, 0, sizeof(*rows));
}

void hot_rows_keep_vm(const struct hot_tree *t, struct hot_rows *rows, const char *name)
{
	size_t i, n = 0;
	unsigned int by;

	memset(&rows->sum, 0, sizeof(rows->sum));
	for (i = 0; i < rows->count; i++) {
		if (strcmp(t->process[rows->row[i].group].vm, name) != 0)
			continue;
		rows->row[n] = rows->row[i];
		rows->sum.calls += rows->row[n].calls;
		for (by = 0; by < HOT_BYS; by++)
			rows->sum.self[by] += rows->row[n].self[by];
		n++;
	}
	rows->count = n;
}

/* ---- order ---- */

struct order {
	const struct hot_tree *t;
	unsigned int sort, by;
};

static u64 key(const struct hot_row *row, const struct order *o)
{
	switch (o->sort) {
	case HOT_SORT_SELF:
		return row->self[o->by];
	case HOT_SORT_TOTAL:
		return row->total[o->by];
	case HOT_SORT_CALLS:
		return row->calls;
	}
	return 0;
}

static int compare(const void *x, const void *y, void *opaque)
{
	const struct hot_row *a = x, *b = y;
	const struct order *o = opaque;
	const struct hot_process *p = &o->t->process[a->group], *q = &o->t->process[b->group];
	u64 first = key(a, o), second = key(b, o);
	int order;

	if (first != second)
		return first > second ? -1 : 1;
	order = strcmp(o->t->function[a->function].text, o->t->function[b->function].text);
	if (!order)
		order = strcmp(p->vm, q->vm);
	return order ? order : strcmp(p->name, q->name);
}

void hot_rows_sort(const struct hot_tree *t, const struct hot_rows *rows, unsigned int sort,
		   unsigned int by)
{
	struct order o = { t, sort, by };

	if (rows->count)
		qsort_r(rows->row, rows->count, sizeof(*rows->row), compare, &o);
}
