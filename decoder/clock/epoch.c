// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* Epochs by VMCS, for lookups by many threads: read-only once the hash is made. */
#include <stdlib.h>
#include <string.h>

#include "decoder/clock/clocks.h"
#include "util/array.h"
#include "util/search.h"

struct vmpt_vmcs_map *vmpt_epoch_table_add(struct vmpt_epoch_table *t, u64 vmcs)
{
	size_t at = vmpt_search(i, 0, t->count, t->map[i].vmcs < vmcs);
	struct vmpt_vmcs_map *map;

	if (at < t->count && t->map[at].vmcs == vmcs)
		return &t->map[at];
	if (t->count == VMPT_CLOCKS_VMCSS || vmpt_grow(&t->map, t->count))
		return NULL;
	map = &t->map[at];
	memmove(map + 1, map, (t->count - at) * sizeof(*map));
	*map = (struct vmpt_vmcs_map){ .vmcs = vmcs };
	t->count++;
	return map;
}

int vmpt_epoch_table_index(struct vmpt_epoch_table *t)
{
	int ret = 0;
	u32 i;

	vmpt_hash_clear(&t->by_vmcs);
	for (i = 0; !ret && i < t->count; i++)
		ret = vmpt_hash_add(&t->by_vmcs, vmpt_mix64(t->map[i].vmcs), i);
	return ret;
}

void vmpt_epoch_table_free(struct vmpt_epoch_table *t)
{
	size_t i;

	for (i = 0; i < t->count; i++)
		free(t->map[i].epochs);
	free(t->map);
	vmpt_hash_free(&t->by_vmcs);
	*t = (struct vmpt_epoch_table){ 0 };
}

struct vmpt_vmcs_map *vmpt_epoch_table_find(const struct vmpt_epoch_table *t, u64 vmcs)
{
	u32 found = vmpt_hash_find(&t->by_vmcs, vmpt_mix64(vmcs), i, t->map[i].vmcs == vmcs);

	return found == VMPT_HASH_NONE ? NULL : &t->map[found];
}

static const struct vmpt_epoch *known(const struct vmpt_epoch *e)
{
	return e->source == VMPT_MAP_NONE ? NULL : e;
}

const struct vmpt_epoch *vmpt_epoch_table_at(const struct vmpt_epoch_table *t, u64 vmcs, u64 at)
{
	const struct vmpt_vmcs_map *m = vmpt_epoch_table_find(t, vmcs);
	size_t n;

	if (!m || !m->count)
		return NULL;
	/* No time is known yet: the first one. */
	if (at == VMPT_TIME_NONE)
		return known(&m->epochs[0]);
	/* The last one that begins at or before @at. */
	n = vmpt_search(i, 1, m->count, m->epochs[i].from <= at) - 1;
	/* Between two: the nearer one. */
	if (n + 1 < m->count && at > m->epochs[n].to &&
	    m->epochs[n + 1].from - at < at - m->epochs[n].to)
		n++;
	return known(&m->epochs[n]);
}
