// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* The plain tree that all outputs are made of, wherever it is from. */
#include <stdlib.h>
#include <string.h>

#include "cli/hot/hot.h"

u64 hot_ns(const struct hot_tree *t, u64 ticks)
{
	return (u64)((double)ticks * 1e9 / t->hertz + 0.5);
}

u64 hot_value(const struct hot_tree *t, unsigned int by, u64 value)
{
	return by == HOT_TIME && t->hertz > 0 ? hot_ns(t, value) : value;
}

int hot_tree_link(struct hot_tree *t)
{
	u32 i;

	t->first = calloc(t->nodes, sizeof(*t->first));
	t->next = calloc(t->nodes, sizeof(*t->next));
	if (!t->first || !t->next)
		return -VMPT_E_NOMEM;
	for (i = (u32)t->nodes - 1; i > 0; i--) {
		t->next[i] = t->first[t->node[i].parent];
		t->first[t->node[i].parent] = i;
	}
	return 0;
}

void hot_tree_free(struct hot_tree *t)
{
	free(t->node);
	free(t->first);
	free(t->next);
	free(t->process);
	memset(t, 0, sizeof(*t));
}
