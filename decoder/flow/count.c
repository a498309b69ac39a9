// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* Counts: each hit of a path is one of all its units, each hit of a node one of its blocks. */
#include "decoder/flow/engine.h"

static void spread_path(struct engine *e, const struct path *p)
{
	const u32 *list = e->lists + p->list, *end = list + p->count;
	u64 *node_hits = e->node_hits, hits = p->hits;

	for (; list < end; list++) {
		/* A path is made after those that are in it. */
		if (*list & UNIT_PATH)
			e->paths[*list & ~UNIT_PATH].hits += hits;
		else
			node_hits[*list] += hits;
	}
}

int vmpt_flow_left_add(struct left_list *l, u64 seed, u32 id, u32 insns, u64 count)
{
	u64 hash = vmpt_mix64(seed ^ id ^ (u64)insns << 32);
	u32 n = vmpt_hash_find(&l->index, hash, i,
			       l->left[i].block == id && l->left[i].instructions == insns);

	if (n == VMPT_HASH_NONE) {
		n = (u32)l->count;
		if (vmpt_grow(&l->left, l->count) || vmpt_hash_add(&l->index, hash, n))
			return -VMPT_E_NOMEM;
		l->left[l->count++] = (struct vmpt_flow_left){ .block = id, .instructions = insns };
	}
	l->left[n].count += count;
	return 0;
}

void vmpt_flow_spread(struct engine *e)
{
	const struct node *n;
	size_t id;
	u32 i;

	vmpt_flow_raw_spread(e);
	for (id = e->path_count; id--;) {
		if (e->paths[id].hits)
			spread_path(e, &e->paths[id]);
		e->paths[id].hits = 0;
	}
	for (id = 0; id < e->node_count; id++) {
		n = &e->nodes[id];
		for (i = 0; i < n->count; i++)
			e->block[e->lists[n->list + i]].whole += e->node_hits[id];
		e->node_hits[id] = 0;
	}
}
