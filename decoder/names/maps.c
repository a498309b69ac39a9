// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * What a process has mapped: from 6.1 on a maple tree (Documentation/core-api/maple_tree.rst) of
 * struct vm_area_struct, before that a list of them.
 */
#include <stdio.h>
#include <stdlib.h>

#include "decoder/names/guest.h"

#define LEVELS_MAX 16
#define VM_READ	   0x1u
#define VM_WRITE   0x2u
#define VM_EXEC	   0x4u
#define VM_SHARED  0x8u
#define SLOTS_MAX  64

/* Bits 6:3 of a pointer to a node. */
enum node_type { NODE_DENSE, NODE_LEAF, NODE_RANGE, NODE_ARANGE };

struct walk {
	struct vmpt_guest *g;
	const struct vmpt_guest_task *task;
	struct guest_maps *maps;
	struct guest_seen seen;
	u64 brk, start_brk, stack, vdso;
};

/* ---- one of them ---- */

struct source {
	struct vmpt_guest *g;
	u64 file;
};

static bool read_file(void *opaque, u64 offset, void *to, size_t size)
{
	const struct source *s = opaque;

	return vmpt_guest_file_read(s->g, s->file, offset, to, size);
}

static int find_id(struct vmpt_guest *g, u64 file, struct vmpt_guest_map *map)
{
	struct source s = { g, file };
	u8 id[64];
	size_t n = vmpt_guest_build_id(read_file, &s, id);

	if (!n)
		return 0;
	map->build_id = vmpt_guest_keep(&g->listed, id, n);
	map->build_id_size = n;
	return map->build_id ? 0 : -VMPT_E_NOMEM;
}

/* What the kernel maps itself: [vdso], [vvar]. */
static bool special_name(const struct walk *w, u64 vma, char *name, size_t room)
{
	struct vmpt_guest *g = w->g;
	u64 ops, mapping, at;

	return vmpt_guest_field64(g, vma, VMA_OPS, &ops) && ops == g->special_ops && ops &&
	       vmpt_guest_field64(g, vma, VMA_PRIVATE, &mapping) &&
	       vmpt_guest_field64(g, mapping, SPECIAL_NAME, &at) &&
	       vmpt_guest_string(g, at, name, room);
}

static bool name_of(const struct walk *w, u64 vma, u64 file, const struct vmpt_guest_map *map,
		    char *name, size_t room)
{
	if (file)
		return vmpt_guest_path(w->g, file, name, room);
	if (special_name(w, vma, name, room))
		return true;
	if (w->vdso && map->start == w->vdso)
		snprintf(name, room, "[vdso]");
	else if (w->brk && map->start < w->brk && map->end > w->start_brk)
		snprintf(name, room, "[heap]");
	else if (map->start <= w->stack && map->end >= w->stack)
		snprintf(name, room, "[stack]");
	else
		return false;
	return true;
}

/* Files come in several parts, one after the other. */
static bool same_file(const struct walk *w, const struct vmpt_guest_map *map, const char *name)
{
	return w->maps->count && map->file && !strcmp(map->file, name);
}

/* 1; 0: it is not in the image, or is nothing of that kind; or -VMPT_E_NOMEM. */
static int add_map(struct walk *w, u64 vma)
{
	struct vmpt_guest *g = w->g;
	struct guest_maps *m = w->maps;
	const struct vmpt_guest_map *last = m->count ? &m->map[m->count - 1] : NULL;
	struct vmpt_guest_map map = { 0 };
	char name[VMPT_PAGE + 16];
	u64 flags, file, offset;

	if (!vmpt_guest_field64(g, vma, VMA_START, &map.start) ||
	    !vmpt_guest_field64(g, vma, VMA_END, &map.end) ||
	    !vmpt_guest_field64(g, vma, VMA_FLAGS, &flags) || map.start >= map.end ||
	    (last && map.start < last->end))
		return 0;
	map.read = flags & VM_READ;
	map.write = flags & VM_WRITE;
	map.exec = flags & VM_EXEC;
	map.shared = flags & VM_SHARED;
	vmpt_guest_field64(g, vma, VMA_FILE, &file);
	if (file && vmpt_guest_field64(g, vma, VMA_OFFSET, &offset))
		map.offset = offset * VMPT_PAGE;
	if (name_of(w, vma, file, &map, name, sizeof(name))) {
		if (last && same_file(w, last, name)) {
			map.file = last->file;
			map.build_id = last->build_id;
			map.build_id_size = last->build_id_size;
		} else {
			map.file = vmpt_guest_keep_string(&g->listed, name);
			if (!map.file || (file && find_id(g, file, &map)))
				return -VMPT_E_NOMEM;
		}
	}
	if (vmpt_grow(&m->map, m->count))
		return -VMPT_E_NOMEM;
	m->map[m->count++] = map;
	return 1;
}

/* ---- the tree ---- */

static u64 load(const u8 *bytes, size_t size, u64 at)
{
	return at + 8 <= size ? vmpt_load64(bytes + at) : 0;
}

static int walk_node(struct walk *w, u64 entry, u64 max, unsigned int depth);

/* 1; 0: cut; or -VMPT_E_NOMEM. */
static int walk_slot(struct walk *w, enum node_type type, u64 slot, u64 max, unsigned int depth)
{
	if (!slot)
		return 1;
	if (type != NODE_LEAF)
		return walk_node(w, slot, max, depth + 1);
	/* A reserved place, not an area. */
	return slot & 3 ? 1 : add_map(w, slot);
}

static int walk_node(struct walk *w, u64 entry, u64 max, unsigned int depth)
{
	struct vmpt_guest *g = w->g;
	enum node_type type = entry >> 3 & 0xf;
	bool gaps = type == NODE_ARANGE;
	u32 pivot = g->field[gaps ? ARANGE_PIVOT : RANGE_PIVOT];
	u32 slot = g->field[gaps ? ARANGE_SLOT : RANGE_SLOT];
	size_t size = g->field[RANGE_SIZE], i, pivots;
	u64 node = entry & ~0xffULL;
	u8 bytes[512];
	int ret, all = 1;

	if (depth > LEVELS_MAX || type < NODE_LEAF || type > NODE_ARANGE || size > sizeof(bytes) ||
	    slot <= pivot || slot > size || w->maps->count >= VMPT_GUEST_MAPS)
		return 0;
	ret = vmpt_guest_see(&w->seen, node);
	if (ret <= 0)
		return ret;
	if (!vmpt_guest_load(g, g->kernel.cr3, node, bytes, size))
		return 0;
	pivots = (slot - pivot) / 8;
	/* A node has one slot more than pivots; the last used one goes up to @max. */
	for (i = 0; i <= pivots; i++) {
		u64 last = i < pivots ? load(bytes, size, pivot + 8 * i) : max;

		if ((!last && i) || last > max)
			last = max;
		ret = walk_slot(w, type, load(bytes, size, slot + 8 * i), last, depth);
		if (ret < 0)
			return ret;
		all &= ret;
		if (last >= max)
			break;
	}
	return all;
}

static int walk_tree(struct walk *w)
{
	u64 root, tree = w->task->mm + w->g->field[MM_TREE];

	if (!vmpt_guest_field64(w->g, tree, TREE_ROOT, &root))
		return 0;
	if (!root)
		return 1;
	return (root & 3) == 2 && root > 4096 ? walk_node(w, root, ~0ULL, 0) : 0;
}

static int walk_list(struct walk *w)
{
	u64 vma;
	bool known = vmpt_guest_field64(w->g, w->task->mm, MM_LIST, &vma);

	while (known && vma) {
		int ret = w->maps->count < VMPT_GUEST_MAPS ? vmpt_guest_see(&w->seen, vma) : 0;

		if (ret > 0)
			ret = add_map(w, vma);
		if (ret <= 0)
			return ret;
		known = vmpt_guest_field64(w->g, vma, VMA_NEXT, &vma);
	}
	return known;
}

/* ---- */

static int read_maps(struct vmpt_guest *g, const struct vmpt_guest_task *task,
		     struct guest_maps *maps)
{
	struct walk w = { .g = g, .task = task, .maps = maps };
	int ret = 0;

	vmpt_guest_field64(g, task->mm, MM_BRK, &w.brk);
	vmpt_guest_field64(g, task->mm, MM_START_BRK, &w.start_brk);
	vmpt_guest_field64(g, task->mm, MM_STACK, &w.stack);
	vmpt_guest_field64(g, task->mm, MM_VDSO, &w.vdso);
	if (guest_has(g, MM_TREE) && guest_has(g, TREE_ROOT) && guest_has(g, RANGE_PIVOT) &&
	    guest_has(g, RANGE_SLOT) && guest_has(g, ARANGE_PIVOT) && guest_has(g, ARANGE_SLOT))
		ret = walk_tree(&w);
	else if (guest_has(g, MM_LIST) && guest_has(g, VMA_NEXT))
		ret = walk_list(&w);
	vmpt_guest_seen_free(&w.seen);
	maps->cut = !ret;
	return ret < 0 ? ret : 0;
}

int vmpt_guest_maps(struct vmpt_guest *g, const struct vmpt_guest_task *task,
		    const struct vmpt_guest_map **maps, size_t *count, bool *cut)
{
	struct guest_maps *m;
	size_t i;
	int ret;

	*maps = NULL;
	*count = 0;
	*cut = false;
	if (!task->mm)
		return 0;
	for (i = 0; i < g->maps_count && g->maps[i].mm != task->mm; i++)
		;
	if (i == g->maps_count) {
		if (vmpt_grow(&g->maps, g->maps_count))
			return -VMPT_E_NOMEM;
		g->maps[g->maps_count] = (struct guest_maps){ .mm = task->mm };
		ret = read_maps(g, task, &g->maps[g->maps_count]);
		if (ret) {
			free(g->maps[g->maps_count].map);
			return ret;
		}
		g->maps_count++;
	}
	m = &g->maps[i];
	*maps = m->map;
	*count = m->count;
	*cut = m->cut;
	return 0;
}
