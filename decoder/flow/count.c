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
