// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Given maps of a VMCS against its pairs. The sources have an order; the first that the pairs do
 * not contradict is used, since it is exact. If all are contradicted the trace wins. Each
 * contradiction is noted, also for sources after the one that is used.
 */
#include <stdlib.h>

#include "decoder/clock/clocks.h"
#include "util/array.h"
#include "util/search.h"

/* A contradiction needs this many pairs, and a tenth of all. */
#define AGAINST 3

/* By VMCS, source and start; of two that begin together the one that was given last is last. */
static int by_place(const void *x, const void *y)
{
	const struct vmpt_given *const *p = x, *const *q = y;
	const struct vmpt_given *a = *p, *b = *q;

	if (a->vmcs != b->vmcs)
		return a->vmcs < b->vmcs ? -1 : 1;
	if (a->source != b->source)
		return a->source < b->source ? -1 : 1;
	if (a->from != b->from)
		return a->from < b->from ? -1 : 1;
	return a < b ? -1 : a > b;
}

int vmpt_given_sort(const struct vmpt_given *given, size_t count, struct vmpt_given **sorted)
{
	const struct vmpt_given **place = calloc(count + 1, sizeof(*place));
	size_t i;

	*sorted = calloc(count + 1, sizeof(**sorted));
	if (!place || !*sorted) {
		free(place);
		return -VMPT_E_NOMEM;
	}
	for (i = 0; i < count; i++)
		place[i] = &given[i];
	qsort(place, count, sizeof(*place), by_place);
	for (i = 0; i < count; i++)
		(*sorted)[i] = *place[i];
	free(place);
	return 0;
}

/* Of maps of one VMCS that by @source for @at: the latest that begins by then. NULL: none. */
static const struct vmpt_given *given_at(const struct vmpt_given *given, size_t n,
					 unsigned int source, u64 at)
{
	size_t next = vmpt_search(i, 0, n,
				  given[i].source < source ||
					  (given[i].source == source && given[i].from <= at));

	return next && given[next - 1].source == source ? &given[next - 1] : NULL;
}

static int note(struct vmpt_given_list *list, const struct vmpt_given *given,
		const struct vmpt_epoch *found, u64 at)
{
	struct vmpt_given_wrong *w;
	size_t i;

	/* One for each given map is enough; those of a VMCS are together. */
	for (i = list->count; i-- > 0 && list->at[i].vmcs == given->vmcs;) {
		w = &list->at[i];
		if (w->source == given->source && w->given.offset == given->map.offset &&
		    w->given.multiplier == given->map.multiplier)
			return 0;
	}
	if (vmpt_grow(&list->at, list->count))
		return -VMPT_E_NOMEM;
	list->at[list->count++] = (struct vmpt_given_wrong){
		.vmcs = given->vmcs,
		.source = given->source,
		.by = found->source,
		.given = given->map,
		.found = found->map,
		.at = at,
	};
	return 0;
}

/* Number of the epoch's pairs that contradict @map; @first: host tick of the first. */
static u64 against(const struct vmpt_epoch *e, const struct vmpt_tsc_map *map,
		   const struct vmpt_fit_pair *pairs, size_t n, u64 *first)
{
	size_t i = vmpt_search(k, 0, n, pairs[k].pair.host.tsc < e->from);
	u64 count = 0;

	for (; i < n && pairs[i].pair.host.tsc <= e->to; i++) {
		const struct vmpt_tsc_pair *p = &pairs[i].pair;

		if (!vmpt_fit_off(map, p))
			continue;
		if (!count)
			*first = p->host.tsc;
		count += pairs[i].weight;
	}
	return count;
}

static void take(struct vmpt_epoch *e, const struct vmpt_given *given)
{
	e->map = given->map;
	e->source = given->source;
	e->offset_error = 0;
	e->multiplier_ppm = 0;
	e->scaled = given->map.multiplier != VMPT_TSC_UNSCALED;
}

/* Whether to use a map: the pairs do not contradict each other more than they contradict it. */
static int weigh_epoch(struct vmpt_epoch *e, const struct vmpt_given *given, size_t count,
		       const struct vmpt_fit_pair *pairs, size_t n, struct vmpt_given_list *wrong)
{
	u64 limit = e->outliers + e->pairs / 10;
	unsigned int source;
	int err = 0;

	for (source = VMPT_MAP_RECORD; source <= VMPT_MAP_USER && !err; source++) {
		const struct vmpt_given *t = given_at(given, count, source, e->to);
		u64 first = 0, off;

		if (!t)
			continue;
		off = against(e, &t->map, pairs, n, &first);
		if (off >= AGAINST && off >= limit) {
			err = note(wrong, t, e, first);
		} else if (e->source == VMPT_MAP_INFERRED) {
			e->outliers = (u32)off;
			take(e, t);
		}
	}
	return err;
}

/* Note sources after the one that was used unchecked, if they differ. */
static int note_others(const struct vmpt_vmcs_map *map, const struct vmpt_given *given,
		       size_t count, struct vmpt_given_list *wrong)
{
	const struct vmpt_epoch *e = map->epochs;
	size_t i, k;
	int err = 0;

	for (i = 0; i < count && !err; i++) {
		if (given[i].source <= e->source)
			continue;
		for (k = 0; k < map->count && (e[k].map.offset != given[i].map.offset ||
					       e[k].map.multiplier != given[i].map.multiplier);
		     k++)
			;
		if (k == map->count)
			err = note(wrong, &given[i], e, VMPT_TIME_NONE);
	}
	return err;
}

/* Nothing was found: the given maps of the first source hold unchecked. */
static int take_all(struct vmpt_vmcs_map *map, const struct vmpt_given *given, size_t count,
		    struct vmpt_given_list *wrong)
{
	size_t i, n = vmpt_search(k, 0, count, given[k].source == given[0].source);

	free(map->epochs);
	map->count = 0;
	map->epochs = calloc(n, sizeof(*map->epochs));
	if (!map->epochs)
		return -VMPT_E_NOMEM;
	map->count = n;
	for (i = 0; i < n; i++) {
		map->epochs[i].from = given[i].from;
		take(&map->epochs[i], &given[i]);
	}
	for (i = 0; i < n; i++)
		map->epochs[i].to = i + 1 < n ? map->epochs[i + 1].from - 1 : ~0ULL;
	return note_others(map, given, count, wrong);
}

int vmpt_given_weigh(struct vmpt_vmcs_map *map, const struct vmpt_given *given, size_t given_count,
		     const struct vmpt_fit_pair *pairs, size_t n, struct vmpt_given_list *wrong)
{
	size_t i = vmpt_search(k, 0, given_count, given[k].vmcs < map->vmcs);
	int err = 0;

	given += i;
	given_count = vmpt_search(k, 0, given_count - i, given[k].vmcs == map->vmcs);
	if (!given_count)
		return 0;
	/* Fewer pairs than a contradiction needs prove nothing. */
	if (!map->count || (map->count == 1 && map->epochs[0].pairs < AGAINST))
		return take_all(map, given, given_count, wrong);
	for (i = 0; i < map->count && !err; i++)
		if (map->epochs[i].source == VMPT_MAP_INFERRED)
			err = weigh_epoch(&map->epochs[i], given, given_count, pairs, n, wrong);
	return err;
}
