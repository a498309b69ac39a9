// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The slices of a Perfetto trace while it is made. They are kept in memory, since which ones are
 * too short for the limit is known only at the end: when there are too many, the shortest quarter
 * is folded, and from then on whatever is as short. A slice is never shorter than those in it, so
 * what is folded has nothing in it that is kept.
 */
#include <stdlib.h>
#include <string.h>

#include "cli/perfetto/perfetto.h"
#include "util/array.h"

void perfetto_log_open(struct perfetto_log *log, u64 limit, u32 depth_max)
{
	log->limit = limit;
	log->depth_max = depth_max;
}

void perfetto_log_close(struct perfetto_log *log)
{
	size_t i;

	for (i = 0; i < log->tracks; i++) {
		free(log->track[i].name);
		free(log->track[i].stack);
	}
	for (i = 0; i < log->names; i++)
		free(log->name[i]);
	free(log->track);
	free(log->name);
	vmpt_hash_free(&log->name_of);
	free(log->slice);
	free(log->mark);
	*log = (struct perfetto_log){ 0 };
}

u32 perfetto_track(struct perfetto_log *log, enum perfetto_track_kind kind, u32 process,
		   const char *name)
{
	char *copy = strdup(name);
	u32 number = (u32)log->tracks;

	if (!copy || log->tracks >= PERFETTO_NONE - 1 || vmpt_grow(&log->track, log->tracks)) {
		free(copy);
		return PERFETTO_NONE;
	}
	log->track[log->tracks++] =
		(struct perfetto_track){ .name = copy,
					 .kind = (u8)kind,
					 .process = kind == PERFETTO_PROCESS ? number : process };
	return number;
}

u32 perfetto_process(struct perfetto_log *log, const char *name)
{
	u32 i;

	for (i = 0; i < log->tracks; i++)
		if (log->track[i].kind == PERFETTO_PROCESS && !strcmp(log->track[i].name, name))
			return i;
	return perfetto_track(log, PERFETTO_PROCESS, 0, name);
}

u32 perfetto_name(struct perfetto_log *log, const char *name)
{
	const u64 hash = vmpt_mix64(vmpt_fnv1a(VMPT_FNV1A, name, strlen(name)));
	u32 i = vmpt_hash_find(&log->name_of, hash, k, !strcmp(log->name[k], name));
	char *copy;

	if (i != VMPT_HASH_NONE)
		return i;
	copy = strdup(name);
	if (!copy || vmpt_grow(&log->name, log->names) ||
	    vmpt_hash_add(&log->name_of, hash, (u32)log->names)) {
		free(copy);
		return PERFETTO_NONE;
	}
	log->name[log->names] = copy;
	return (u32)log->names++;
}

u64 perfetto_depth(const struct perfetto_log *log, u32 track)
{
	return log->track[track].depth + log->track[track].over;
}

/* ---- too many ---- */

/* Bins of a length: eight per octave, up to 8 ticks one each. */
#define BINS 496

static u32 bin_of(u64 ticks)
{
	const u32 log2 = ticks < 8 ? 0 : 63 - (u32)__builtin_clzll(ticks);

	return ticks < 8 ? (u32)ticks : (log2 - 2) * 8 + (u32)(ticks >> (log2 - 3) & 7);
}

static u64 first_of(u32 bin)
{
	return bin < 8 ? bin : (8 + (bin & 7ULL)) << (bin / 8 - 1);
}

/* The length from which on at most three quarters of the limit remain. */
static u64 choose(const struct perfetto_log *log)
{
	u64 count[BINS] = { 0 }, sum = 0;
	size_t i;
	u32 bin;

	for (i = 0; i < log->slices; i++) {
		const struct perfetto_slice *s = &log->slice[i];

		if (s->open)
			sum++;
		else if (!s->dropped)
			count[bin_of(s->end - s->start)]++;
	}
	for (bin = BINS; bin > 0; bin--) {
		sum += count[bin - 1];
		if (sum > log->limit / 4 * 3)
			break;
	}
	return bin ? first_of(bin) : 0;
}

static bool is_short(const struct perfetto_log *log, const struct perfetto_slice *s)
{
	return !s->open && s->end - s->start < log->shortest;
}

static void fold(struct perfetto_log *log, const struct perfetto_slice *s)
{
	log->folded++;
	if (s->parent != PERFETTO_NONE)
		log->slice[s->parent].folded += s->folded + 1;
}

/* Take out what is folded; numbers of slices change. 0, or -1: no memory. */
static int compact(struct perfetto_log *log)
{
	u32 *to = calloc(log->slices + 1, sizeof(*to));
	size_t i, k, n = 0;

	if (!to)
		return -1;
	/* A slice comes after the one around it. */
	for (i = log->slices; i-- > 0;) {
		struct perfetto_slice *s = &log->slice[i];

		if (!s->dropped && is_short(log, s)) {
			fold(log, s);
			s->dropped = true;
		}
	}
	for (i = 0; i < log->slices; i++) {
		struct perfetto_slice *s = &log->slice[i];

		to[i] = (u32)n;
		if (s->dropped) {
			to[i] = PERFETTO_NONE;
			continue;
		}
		if (s->parent != PERFETTO_NONE)
			s->parent = to[s->parent];
		log->slice[n++] = *s;
	}
	log->slices = n;
	for (i = n = 0; i < log->marks; i++) {
		struct perfetto_mark m = log->mark[i];

		if (to[m.slice] == PERFETTO_NONE)
			continue;
		m.slice = to[m.slice] & (PERFETTO_SLICES_MAX * 2 - 1);
		log->mark[n++] = m;
	}
	log->marks = n;
	for (i = 0; i < log->tracks; i++)
		for (k = 0; k < log->track[i].depth; k++)
			log->track[i].stack[k] = to[log->track[i].stack[k]];
	free(to);
	return 0;
}

/* Room for one more. 0, -1: no memory, 1: all that there are have to stay. */
static int make_room(struct perfetto_log *log)
{
	u64 shortest;

	if (log->slices >= log->limit) {
		shortest = choose(log);
		if (shortest > log->shortest)
			log->shortest = shortest;
		if (compact(log))
			return -1;
		if (log->slices >= log->limit)
			return 1;
	}
	return vmpt_reserve(&log->slice, &log->slice_room, log->slices + 1) ||
			       vmpt_reserve(&log->mark, &log->mark_room, log->marks + 2)
		       ? -1
		       : 0;
}

/* ---- slices ---- */

static void put_mark(struct perfetto_log *log, u64 time, u32 slice, bool end)
{
	log->mark[log->marks++] = (struct perfetto_mark){
		.time = time, .slice = slice & (PERFETTO_SLICES_MAX * 2 - 1), .end = end
	};
}

/* The time on a track, where it never goes back. */
static u64 advance(struct perfetto_track *t, u64 time)
{
	if (time > t->last)
		t->last = time;
	return t->last;
}

struct perfetto_slice *perfetto_begin(struct perfetto_log *log, u32 track, u64 time, u32 name,
				      enum perfetto_category category, int *err)
{
	struct perfetto_track *t = &log->track[track];
	struct perfetto_slice *s;
	int ret;

	*err = 0;
	time = advance(t, time);
	if (t->over || t->depth >= log->depth_max) {
		t->over++;
		return NULL;
	}
	ret = make_room(log);
	if (ret > 0) {
		t->over++;
		return NULL;
	}
	if (ret || vmpt_reserve(&t->stack, &t->room, t->depth + 1)) {
		*err = -1;
		return NULL;
	}
	s = &log->slice[log->slices];
	*s = (struct perfetto_slice){
		.start = time,
		.end = time,
		.track = track,
		.name = name,
		.parent = t->depth ? t->stack[t->depth - 1] : PERFETTO_NONE,
		.category = (u8)category,
		.open = true,
	};
	put_mark(log, time, (u32)log->slices, false);
	t->stack[t->depth++] = (u32)log->slices++;
	return s;
}

struct perfetto_slice *perfetto_end(struct perfetto_log *log, u32 track, u64 time, int *err)
{
	struct perfetto_track *t = &log->track[track];
	struct perfetto_slice *s;
	u32 number;

	*err = 0;
	time = advance(t, time);
	if (t->over) {
		t->over--;
		log->folded++;
		if (t->depth)
			log->slice[t->stack[t->depth - 1]].folded++;
		return NULL;
	}
	if (!t->depth)
		return NULL;
	number = t->stack[--t->depth];
	s = &log->slice[number];
	s->end = time;
	s->open = false;
	if (!is_short(log, s)) {
		if (vmpt_reserve(&log->mark, &log->mark_room, log->marks + 1)) {
			*err = -1;
			return NULL;
		}
		put_mark(log, time, number, true);
		return s;
	}
	fold(log, s);
	s->dropped = true;
	/* Nothing else came in between: it leaves no trace. */
	if (number + 1 == log->slices && log->mark[log->marks - 1].slice == number) {
		log->marks--;
		log->slices--;
	}
	return NULL;
}

static int by_time(const void *x, const void *y)
{
	const struct perfetto_mark *a = x, *b = y;

	if (a->time != b->time)
		return a->time < b->time ? -1 : 1;
	return a->order < b->order ? -1 : a->order > b->order;
}

/* A flow leads from a slice to another one. */
static int trim_flows(struct perfetto_log *log)
{
	u8 *count = calloc(log->flows + 1ULL, 1);
	size_t i;

	if (!count)
		return -1;
	for (i = 0; i < log->slices; i++)
		count[log->slice[i].flow] |= count[log->slice[i].flow] ? 2 : 1;
	for (i = 0; i < log->slices; i++)
		if (count[log->slice[i].flow] < 2)
			log->slice[i].flow = 0;
	free(count);
	return 0;
}

int perfetto_log_finish(struct perfetto_log *log, u64 time)
{
	bool ordered = true;
	size_t i;
	int err = 0;

	for (i = 0; i < log->tracks; i++) {
		struct perfetto_track *t = &log->track[i];

		while (!err && (t->depth || t->over)) {
			if (!t->over)
				log->slice[t->stack[t->depth - 1]].cut = true;
			perfetto_end(log, (u32)i, time, &err);
		}
	}
	if (err || compact(log) || trim_flows(log))
		return -1;
	for (i = 0; i < log->marks; i++) {
		log->mark[i].order = (u32)i;
		ordered &= !i || log->mark[i - 1].time <= log->mark[i].time;
	}
	if (!ordered)
		qsort(log->mark, log->marks, sizeof(*log->mark), by_time);
	return 0;
}
