// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * What a process of the host has mapped in the end: its own records and those that it inherited,
 * later ones over earlier ones. The places between all starts and ends are given away from the last
 * record to the first; those that are taken are skipped.
 */
#include "decoder/names/host.h"

#define LEVELS_MAX 32
#define MAPS_MAX   (1u << 16)

struct settling {
	struct host_map *map;
	size_t maps;
	u64 *edge;  /* sorted */
	u32 *next;  /* of a place: the first at or after it that is free */
	u32 *owner; /* the map that has it, + 1 */
};

static int by_value(const void *x, const void *y)
{
	const u64 *a = x, *b = y;

	return *a < *b ? -1 : *a > *b;
}

/* The records of the process and of those it inherits from, the oldest first. */
static int collect(const struct vmpt_host *h, const struct host_process *p, struct settling *s)
{
	const struct host_process *level[LEVELS_MAX];
	size_t count[LEVELS_MAX], n = 0, i, total = 0;

	level[n] = p;
	count[n++] = p->maps;
	while (p->base != HOST_NONE && n < LEVELS_MAX) {
		count[n] = p->inherited;
		p = &h->process[p->base];
		level[n++] = p;
	}
	for (i = 0; i < n; i++)
		total += count[i] = count[i] < MAPS_MAX - total ? count[i] : MAPS_MAX - total;
	s->map = calloc(total + 1, sizeof(*s->map));
	if (!s->map)
		return -VMPT_E_NOMEM;
	while (n--) {
		if (count[n])
			memcpy(s->map + s->maps, level[n]->map, count[n] * sizeof(*s->map));
		s->maps += count[n];
	}
	return 0;
}

static u32 free_from(struct settling *s, u32 i)
{
	u32 found = i, next;

	while (s->next[found] != found)
		found = s->next[found];
	for (; i != found; i = next) {
		next = s->next[i];
		s->next[i] = found;
	}
	return found;
}

static size_t edge_of(const struct settling *s, size_t edges, u64 at)
{
	return vmpt_search(i, 0, edges, s->edge[i] < at);
}

static void give_away(struct settling *s, size_t edges)
{
	size_t m;
	u32 i;

	for (i = 0; i < edges; i++)
		s->next[i] = i;
	for (m = s->maps; m > 0; m--) {
		const size_t end = edge_of(s, edges, s->map[m - 1].end);

		for (i = free_from(s, (u32)edge_of(s, edges, s->map[m - 1].start)); i < end;
		     i = free_from(s, i)) {
			s->owner[i] = (u32)m;
			s->next[i] = i + 1;
		}
	}
}

static int write_final(const struct vmpt_host *h, struct host_process *p, const struct settling *s,
		       size_t edges)
{
	u32 last = 0;
	size_t i;

	for (i = 0; i + 1 < edges; last = s->owner[i++]) {
		const struct host_map *m = &s->map[s->owner[i] - 1];
		const struct host_file *f;

		if (!s->owner[i])
			continue;
		if (s->owner[i] == last) {
			p->final[p->finals - 1].end = s->edge[i + 1];
			continue;
		}
		if (vmpt_grow(&p->final, p->finals))
			return -VMPT_E_NOMEM;
		f = &h->file[m->file];
		p->final[p->finals++] = (struct vmpt_guest_map){
			.start = s->edge[i],
			.end = s->edge[i + 1],
			.offset = m->offset + (s->edge[i] - m->start),
			.file = f->path,
			.build_id = f->build_id_size ? f->build_id : NULL,
			.build_id_size = f->build_id_size,
			.read = true,
			.exec = true,
		};
	}
	return 0;
}

int vmpt_host_settle(struct vmpt_host *h, struct host_process *p)
{
	struct settling s = { 0 };
	int ret = collect(h, p, &s);
	size_t i, edges = 2 * s.maps;

	if (!ret) {
		s.edge = calloc(edges + 1, sizeof(*s.edge));
		s.next = calloc(edges + 1, sizeof(*s.next));
		s.owner = calloc(edges + 1, sizeof(*s.owner));
		ret = s.edge && s.next && s.owner ? 0 : -VMPT_E_NOMEM;
	}
	if (!ret && edges) {
		for (i = 0; i < s.maps; i++) {
			s.edge[2 * i] = s.map[i].start;
			s.edge[2 * i + 1] = s.map[i].end;
		}
		qsort(s.edge, edges, sizeof(*s.edge), by_value);
		give_away(&s, edges);
		ret = write_final(h, p, &s, edges);
	}
	free(s.map);
	free(s.edge);
	free(s.next);
	free(s.owner);
	p->settled = !ret;
	return ret;
}

int vmpt_host_maps(struct vmpt_host *h, const struct vmpt_host_process *process,
		   const struct vmpt_guest_map **maps, size_t *count)
{
	struct host_process *p = &h->kernel;
	int ret = 0;

	/* It is the first member. */
	if (process)
		p = &h->process[(const struct host_process *)(const void *)process - h->process];
	if (!p->settled)
		ret = vmpt_host_settle(h, p);
	*maps = p->final;
	*count = ret ? 0 : p->finals;
	return ret;
}
