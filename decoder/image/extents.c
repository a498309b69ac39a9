// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* Lists of extents; see image.h. */
#include "decoder/image/image.h"
#include "util/search.h"

int vmpt_extents_add(struct extents *e, u64 at, u64 size, u32 file, u64 offset)
{
	struct extent *last = e->count ? &e->list[e->count - 1] : NULL;

	/* Ends are numbers, too: the last byte of all has no extent. */
	if (size > ~at)
		size = ~at;
	if (!size)
		return 0;
	if (last && last->file == file && last->at + last->size == at &&
	    last->offset + last->size == offset) {
		last->size += size;
		return 0;
	}
	if (vmpt_grow(&e->list, e->count))
		return -VMPT_E_NOMEM;
	e->list[e->count++] = (struct extent){ at, size, offset, file };
	return 0;
}

/* By merging, so that equal ones keep their order and hostile input costs no more. */
static void sort(struct extent *list, struct extent *room, size_t n)
{
	size_t half = n / 2, a = 0, b = half, i;

	if (n < 2)
		return;
	sort(list, room, half);
	sort(list + half, room, n - half);
	for (i = 0; i < n; i++)
		room[i] = b == n || (a < half && list[a].at <= list[b].at) ? list[a++] : list[b++];
	memcpy(list, room, n * sizeof(*list));
}

int vmpt_extents_finish(struct extents *e)
{
	struct extent *room;
	size_t i, n = 0;
	u64 end = 0;

	if (e->count < 2)
		return 0;
	room = calloc(e->count, sizeof(*room));
	if (!room)
		return -VMPT_E_NOMEM;
	sort(e->list, room, e->count);
	free(room);
	for (i = 0; i < e->count; i++) {
		struct extent x = e->list[i];
		u64 cut = x.at < end ? end - x.at : 0;

		if (cut >= x.size)
			continue;
		x.at += cut;
		x.offset += cut;
		x.size -= cut;
		end = x.at + x.size;
		e->list[n++] = x;
	}
	e->count = n;
	return 0;
}

size_t vmpt_extents_find(const struct extents *e, u64 at)
{
	return vmpt_search(i, 0, e->count, e->list[i].at + e->list[i].size <= at);
}
