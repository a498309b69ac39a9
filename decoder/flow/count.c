// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* Counts: each hit of a path is one of all its units, each hit of a node one of its blocks. */
#include "decoder/flow/engine.h"

static void spread_path(struct engine *e, const struct path *p)
{
	u32 unit, i;

	for (i = 0; i < p->count; i++) {
		unit = e->lists[p->list + i];
		/* A path is made after those that are in it. */
		if (unit & UNIT_PATH)
			e->paths[unit & ~UNIT_PATH].hits += p->hits;
		else
			e->node_hits[unit] += p->hits;
	}
}

void vmpt_flow_spread(struct engine *e)
{
	const struct node *n;
	size_t id;
	u32 i;

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
