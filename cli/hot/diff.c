// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* Two sums by function, side by side: before and after, or one VM and another. */
#include <stdlib.h>
#include <string.h>

#include "cli/hot/hot.h"
#include "util/array.h"
#include "util/hash.h"

/* What a row is compared by. */
struct name {
	const char *vm, *process, *function;
};

static struct name name_of(const struct hot_tree *t, const struct hot_row *row, unsigned int per,
			   bool vms)
{
	const struct hot_process *p = &t->process[row->group];

	return (struct name){
		.vm = vms || per == HOT_PER_TRACE ? "" : p->vm,
		.process = per == HOT_PER_PROCESS ? p->comm : "",
		.function = t->function[row->function].text,
	};
}

static int by_name(const struct name *a, const struct name *b)
{
	int order = strcmp(a->function, b->function);

	if (!order)
		order = strcmp(a->vm, b->vm);
	return order ? order : strcmp(a->process, b->process);
}

static u64 hash_name(const struct name *n)
{
	u64 hash = vmpt_fnv1a(VMPT_FNV1A, n->vm, strlen(n->vm) + 1);

	hash = vmpt_fnv1a(hash, n->process, strlen(n->process) + 1);
	return vmpt_mix64(vmpt_fnv1a(hash, n->function, strlen(n->function)));
}

static struct name name_of_change(const struct hot_change *c, unsigned int per, bool vms)
{
	const unsigned int i = c->row[0] ? 0 : 1;

	return name_of(c->tree[i], c->row[i], per, vms);
}

static void add_row(struct hot_row *to, const struct hot_row *from)
{
	unsigned int by;

	to->calls += from->calls;
	for (by = 0; by < HOT_BYS; by++) {
		to->self[by] += from->self[by];
		to->total[by] += from->total[by];
	}
}

struct joiner {
	struct hot_diff *diff;
	unsigned int per;
	struct vmpt_hash of;
};

/* Several processes may have one name. */
static int add(struct joiner *j, unsigned int side, const struct hot_row *row)
{
	struct hot_diff *d = j->diff;
	const struct name name = name_of(d->tree[side], row, j->per, d->vms);
	const u64 hash = hash_name(&name);
	struct hot_change *c;
	u32 i = vmpt_hash_find(&j->of, hash, k, ({
		struct name n = name_of_change(&d->change[k], j->per, d->vms);
		!by_name(&n, &name);
	}));

	if (i == VMPT_HASH_NONE) {
		i = (u32)d->count;
		if (vmpt_grow(&d->change, d->count) || vmpt_hash_add(&j->of, hash, i))
			return -VMPT_E_NOMEM;
		d->change[d->count++] = (struct hot_change){ .tree = { d->tree[0], d->tree[1] } };
	}
	c = &d->change[i];
	if (!c->row[side]) {
		c->row[side] = calloc(1, sizeof(*row));
		if (!c->row[side])
			return -VMPT_E_NOMEM;
		c->row[side]->group = row->group;
		c->row[side]->function = row->function;
	}
	add_row(c->row[side], row);
	return 0;
}

int hot_diff_make(const struct hot_tree *const tree[2], const struct hot_rows *const rows[2],
		  unsigned int per, bool vms, struct hot_diff *diff)
{
	struct joiner j = { .diff = diff, .per = per };
	unsigned int side, by;
	int ret = 0;
	size_t i;

	*diff = (struct hot_diff){ .tree = { tree[0], tree[1] }, .vms = vms };
	for (side = 0; side < 2; side++) {
		for (i = 0; i < rows[side]->count && !ret; i++)
			ret = add(&j, side, &rows[side]->row[i]);
		for (by = 0; by < HOT_BYS; by++)
			diff->sum[side][by] = rows[side]->sum.self[by];
	}
	vmpt_hash_free(&j.of);
	return ret;
}

void hot_diff_free(struct hot_diff *diff)
{
	while (diff->count) {
		struct hot_change *c = &diff->change[--diff->count];

		free(c->row[0]);
		free(c->row[1]);
	}
	free(diff->change);
	memset(diff, 0, sizeof(*diff));
}

/* ---- order ---- */

struct order {
	unsigned int per, sort, by;
	bool vms;
};

u64 hot_change_value(const struct hot_change *c, unsigned int side, unsigned int sort,
		     unsigned int by)
{
	const struct hot_row *row = c->row[side];

	if (!row)
		return 0;
	return sort == HOT_SORT_CALLS
		       ? row->calls
		       : hot_value(c->tree[side], by,
				   sort == HOT_SORT_TOTAL ? row->total[by] : row->self[by]);
}

static int compare(const void *x, const void *y, void *opaque)
{
	const struct hot_change *a = x, *b = y;
	const struct order *o = opaque;
	const struct name p = name_of_change(a, o->per, o->vms),
			  q = name_of_change(b, o->per, o->vms);
	u64 change[2] = { 0 }, both[2] = { 0 }, before, after;
	unsigned int i;

	for (i = 0; i < 2 && o->sort != HOT_SORT_NAME; i++) {
		before = hot_change_value(i ? b : a, 0, o->sort, o->by);
		after = hot_change_value(i ? b : a, 1, o->sort, o->by);
		change[i] = before > after ? before - after : after - before;
		both[i] = before + after;
	}
	if (change[0] != change[1])
		return change[0] > change[1] ? -1 : 1;
	if (both[0] != both[1])
		return both[0] > both[1] ? -1 : 1;
	return by_name(&p, &q);
}

void hot_diff_sort(const struct hot_diff *diff, unsigned int per, unsigned int sort,
		   unsigned int by)
{
	struct order o = { per, sort, by, diff->vms };

	if (diff->count)
		qsort_r(diff->change, diff->count, sizeof(*diff->change), compare, &o);
}
