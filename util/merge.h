/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Merging of sorted lists: a heap with the key of each list's head. The caller takes from the first
 * list, .head[0].list, and says what that list's head is next:
 *
 *	vmpt_merge_add(&m, key, list)		for each list that has one
 *	while (m.count) {
 *		... the head of list m.head[0].list ...
 *		vmpt_merge_next(&m, key) or vmpt_merge_end(&m)
 *	}
 *
 * Of equal keys the list with the smaller number comes first.
 */
#ifndef VMPT_UTIL_MERGE_H
#define VMPT_UTIL_MERGE_H

#include "util/array.h"

struct vmpt_merge_head {
	u64 key;
	size_t list;
};

/* All 0: no lists. */
struct vmpt_merge {
	struct vmpt_merge_head *head; /* the first is [0] */
	size_t count;
};

static inline bool vmpt_merge_before(const struct vmpt_merge_head *a,
				     const struct vmpt_merge_head *b)
{
	return a->key != b->key ? a->key < b->key : a->list < b->list;
}

/* List @list has head @key. 0, or -VMPT_E_NOMEM with the heap unchanged. */
static inline int vmpt_merge_add(struct vmpt_merge *m, u64 key, size_t list)
{
	const struct vmpt_merge_head new = { key, list };
	size_t at = m->count, parent;
	int ret = vmpt_grow(&m->head, m->count);

	if (ret)
		return ret;
	m->count++;
	for (; at; at = parent) {
		parent = (at - 1) / 2;
		if (!vmpt_merge_before(&new, &m->head[parent]))
			break;
		m->head[at] = m->head[parent];
	}
	m->head[at] = new;
	return 0;
}

static inline void vmpt_merge_sink(struct vmpt_merge *m, struct vmpt_merge_head first)
{
	size_t at = 0, child;

	for (; (child = 2 * at + 1) < m->count; at = child) {
		if (child + 1 < m->count && vmpt_merge_before(&m->head[child + 1], &m->head[child]))
			child++;
		if (!vmpt_merge_before(&m->head[child], &first))
			break;
		m->head[at] = m->head[child];
	}
	m->head[at] = first;
}

/* The next head of the first list is @key. */
static inline void vmpt_merge_next(struct vmpt_merge *m, u64 key)
{
	vmpt_merge_sink(m, (struct vmpt_merge_head){ key, m->head[0].list });
}

/* The first list is at its end. */
static inline void vmpt_merge_end(struct vmpt_merge *m)
{
	if (--m->count)
		vmpt_merge_sink(m, m->head[m->count]);
}

static inline void vmpt_merge_free(struct vmpt_merge *m)
{
	free(m->head);
	*m = (struct vmpt_merge){ 0 };
}

#endif
