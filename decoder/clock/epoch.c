// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* Epochs by VMCS, for lookups by many threads: nothing changes once the hash is made. */
#include <stdlib.h>
#include <string.h>

#include "decoder/clock/clocks.h"

struct vmpt_vmcs_map *vmpt_epoch_table_add(struct vmpt_epoch_table *t, u64 vmcs)
{
	size_t low = 0, high = t->count;
	struct vmpt_vmcs_map *map;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (t->map[mid].vmcs < vmcs)
			low = mid + 1;
		else
			high = mid;
	}
	if (low < t->count && t->map[low].vmcs == vmcs)
		return &t->map[low];
	if (t->count == VMPT_CLOCKS_VMCSS)
		return NULL;
	if (t->count == t->room) {
		size_t room = t->room ? 2 * t->room : 16;

		map = realloc(t->map, room * sizeof(*map));
		if (!map)
			return NULL;
		t->map = map;
		t->room = room;
	}
	map = &t->map[low];
	memmove(map + 1, map, (t->count - low) * sizeof(*map));
	*map = (struct vmpt_vmcs_map){ .vmcs = vmcs };
	t->count++;
	return map;
}

static size_t hash_of(const struct vmpt_epoch_table *t, u64 vmcs)
{
	return (size_t)((vmcs >> 12 ^ vmcs << 20) * 0x9e3779b97f4a7c15ULL >> 32) & (t->slots - 1);
}

int vmpt_epoch_table_index(struct vmpt_epoch_table *t)
{
	size_t slots = 16, i, at;

	while (slots < 2 * t->count)
		slots *= 2;
	free(t->slot);
	t->slot = calloc(slots, sizeof(*t->slot));
	t->slots = t->slot ? slots : 0;
	if (!t->slot)
		return -VMPT_E_NOMEM;
	for (i = 0; i < t->count; i++) {
		for (at = hash_of(t, t->map[i].vmcs); t->slot[at]; at = (at + 1) & (slots - 1))
			;
		t->slot[at] = (u32)i + 1;
	}
	return 0;
}

void vmpt_epoch_table_free(struct vmpt_epoch_table *t)
{
	size_t i;

	for (i = 0; i < t->count; i++)
		free(t->map[i].epochs);
	free(t->map);
	free(t->slot);
	*t = (struct vmpt_epoch_table){ 0 };
}

struct vmpt_vmcs_map *vmpt_epoch_table_find(const struct vmpt_epoch_table *t, u64 vmcs)
{
	size_t at;

	if (!t->slots)
		return NULL;
	for (at = hash_of(t, vmcs); t->slot[at]; at = (at + 1) & (t->slots - 1))
		if (t->map[t->slot[at] - 1].vmcs == vmcs)
			return &t->map[t->slot[at] - 1];
	return NULL;
}

static const struct vmpt_epoch *known(const struct vmpt_epoch *e)
{
	return e->source == VMPT_MAP_NONE ? NULL : e;
}

const struct vmpt_epoch *vmpt_epoch_table_at(const struct vmpt_epoch_table *t, u64 vmcs, u64 at)
{
	const struct vmpt_vmcs_map *m = vmpt_epoch_table_find(t, vmcs);
	size_t low = 0, high;

	if (!m || !m->count)
		return NULL;
	/* No time is known yet: the first. */
	if (at == VMPT_TIME_NONE)
		return known(&m->epochs[0]);
	/* The last that begins at or before @at. */
	for (high = m->count; low + 1 < high;) {
		size_t mid = low + (high - low) / 2;

		if (m->epochs[mid].from <= at)
			low = mid;
		else
			high = mid;
	}
	/* Between two: the nearer one. */
	if (low + 1 < m->count && at > m->epochs[low].to &&
	    m->epochs[low + 1].from - at < at - m->epochs[low].to)
		low++;
	return known(&m->epochs[low]);
}
