// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Reads lists of tasks. A process is what a task line begins, up to the line of another one with
 * the same page tables; its name may change. Of what it maps to execute, all that was read in its
 * life counts for all of it: a library is read some time after its code begins to run.
 */
#include "cli/symbols/tasks-read.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "util/array.h"

#define MAPS_MAX 1024u /* of a process */

/* A line of maps. */
struct seen {
	u64 cr3, tsc;
	size_t order;
	u32 tgid;
	struct tasks_maps maps;
};

struct reader {
	struct cli *cli;
	struct json_line line;
	struct tasks_machine *m;
	struct seen *seen;
	size_t seens;
};

/* ---- lines ---- */

/* A copy that stays; NULL: there is none, or no memory, with *@code set then. */
static const char *keep(struct reader *r, const char *s, int *code)
{
	struct tasks_machine *m = r->m;
	u64 hash = s ? vmpt_fnv1a(VMPT_FNV1A, s, strlen(s)) : 0;
	u32 n = s ? vmpt_hash_find(&m->by_text, hash, i, !strcmp(m->text[i], s)) : 0;

	if (!s)
		return NULL;
	if (n != VMPT_HASH_NONE)
		return m->text[n];
	if (vmpt_grow(&m->text, m->texts) || vmpt_hash_add(&m->by_text, hash, (u32)m->texts)) {
		*code = cli_no_memory(r->cli);
		return NULL;
	}
	m->text[m->texts] = strdup(s);
	if (!m->text[m->texts])
		*code = cli_no_memory(r->cli);
	return m->text[m->texts++];
}

static const char *text_of(const json_t *o, const char *key)
{
	return json_string_value(json_object_get(o, key));
}

static u32 number_of(const json_t *o, const char *key)
{
	json_int_t n = json_integer_value(json_object_get(o, key));

	return n < 0 || n > UINT32_MAX ? 0 : (u32)n;
}

static u64 hex_of(const json_t *o, const char *key)
{
	const char *text = text_of(o, key);

	return text ? strtoull(text, NULL, 16) : 0;
}

static int take_task(struct reader *r, const json_t *o, u64 tsc)
{
	const char *comm = text_of(o, "comm");
	struct tasks_state s = { .cr3 = hex_of(o, "cr3") & TASKS_CR3,
				 .tsc = tsc,
				 .order = r->line.number };
	int code = CLI_OK;

	/* A thread of the kernel has no space of its own. */
	if (!s.cr3)
		return CLI_OK;
	if (!comm)
		return json_line_bad(&r->line, "a task without \"comm\"");
	s.task.cr3 = s.cr3;
	s.task.tgid = number_of(o, "tgid");
	s.task.pid = number_of(o, "pid");
	s.task.parent = number_of(o, "parent");
	s.task.start = hex_of(o, "start_ns");
	snprintf(s.task.comm, sizeof(s.task.comm), "%s", comm);
	s.task.program = keep(r, text_of(o, "program"), &code);
	if (code || vmpt_grow(&r->m->state, r->m->states))
		return code ? code : cli_no_memory(r->cli);
	r->m->state[r->m->states++] = s;
	return CLI_OK;
}

/* "0a1b…" as bytes that stay. An id may have zeros in it: it is no text of keep(). */
static const u8 *keep_id(struct reader *r, const char *hex, size_t *size, int *code)
{
	size_t i, n = hex ? strlen(hex) / 2 : 0;
	unsigned int byte;
	u8 *id;

	*size = 0;
	if (!n || n > 64 || strspn(hex, "0123456789abcdef") != 2 * n)
		return NULL;
	id = malloc(n);
	if (!id || vmpt_grow(&r->m->id, r->m->ids)) {
		free(id);
		*code = cli_no_memory(r->cli);
		return NULL;
	}
	for (i = 0; i < n && sscanf(hex + 2 * i, "%2x", &byte) == 1; i++)
		id[i] = (u8)byte;
	r->m->id[r->m->ids++] = id;
	*size = n;
	return id;
}

static int take_map(struct reader *r, const json_t *o, struct tasks_maps *maps)
{
	struct vmpt_guest_map map = { .start = hex_of(o, "start"),
				      .end = hex_of(o, "end"),
				      .offset = hex_of(o, "offset"),
				      .read = true,
				      .exec = true };
	int code = CLI_OK;

	map.file = keep(r, text_of(o, "file"), &code);
	if (code || !map.file || map.start >= map.end)
		return code ? code : json_line_bad(&r->line, "a map without a file, or of no size");
	map.build_id = keep_id(r, text_of(o, "build_id"), &map.build_id_size, &code);
	if (code || vmpt_grow(&maps->map, maps->count))
		return code ? code : cli_no_memory(r->cli);
	maps->map[maps->count++] = map;
	return CLI_OK;
}

static int take_maps(struct reader *r, const json_t *o, u64 tsc)
{
	const json_t *list = json_object_get(o, "maps");
	struct seen s = { .cr3 = hex_of(o, "cr3") & TASKS_CR3,
			  .tsc = tsc,
			  .order = r->line.number,
			  .tgid = number_of(o, "tgid") };
	size_t i, n = json_array_size(list);
	int code = CLI_OK;

	for (i = 0; i < n && i < MAPS_MAX && !code; i++)
		code = take_map(r, json_array_get(list, i), &s.maps);
	if (!code && vmpt_grow(&r->seen, r->seens))
		code = cli_no_memory(r->cli);
	if (code)
		free(s.maps.map);
	else
		r->seen[r->seens++] = s;
	return code;
}

static void drop_seen(struct reader *r)
{
	while (r->seens)
		free(r->seen[--r->seens].maps.map);
}

/* All before is of an earlier machine. */
static void take_machine(struct reader *r)
{
	r->m->states = r->m->resets = 0;
	drop_seen(r);
}

static int take_object(struct reader *r, const json_t *o)
{
	const char *kind = text_of(o, "kind");
	u64 tsc;
	int code = json_line_u64(&r->line, o, "tsc", ~0ULL, &tsc);

	if (code || !kind)
		return code;
	if (!strcmp(kind, "task"))
		return take_task(r, o, tsc);
	if (!strcmp(kind, "maps"))
		return take_maps(r, o, tsc);
	if (!strcmp(kind, "machine"))
		take_machine(r);
	if (strcmp(kind, "kernel") != 0)
		return CLI_OK;
	if (vmpt_grow(&r->m->reset, r->m->resets))
		return cli_no_memory(r->cli);
	r->m->reset[r->m->resets++] = tsc;
	return CLI_OK;
}

static int read_lines(struct reader *r, FILE *f)
{
	char *line = malloc(JSON_LINE_ROOM);
	int code = line ? CLI_OK : cli_no_memory(r->cli);
	size_t n;

	while (!code && (n = cli_getline(line, JSON_LINE_ROOM, f)) > 0) {
		json_t *o = NULL;

		r->line.number++;
		if (n > JSON_LINE_BYTES)
			json_line_bad(&r->line, "longer than %d bytes", JSON_LINE_BYTES);
		/* QEMU was killed, or the disk is full. */
		else if (line[n - 1] != '\n')
			cli_warn(r->cli, "%s: line %zu is truncated", r->line.file, r->line.number);
		else
			o = json_line_parse(&r->line, line, n);
		code = o ? take_object(r, o) : CLI_OK;
		json_decref(o);
		if (code == JSON_LINE_SKIPPED)
			code = CLI_OK;
	}
	free(line);
	cli_warn_lines(r->cli, r->line.file, r->line.skipped);
	return code;
}

/* ---- processes ---- */

static int by_state(const void *x, const void *y)
{
	const struct tasks_state *a = x, *b = y;

	if (a->cr3 != b->cr3)
		return a->cr3 < b->cr3 ? -1 : 1;
	if (a->tsc != b->tsc)
		return a->tsc < b->tsc ? -1 : 1;
	return a->order < b->order ? -1 : a->order > b->order;
}

static int by_seen(const void *x, const void *y)
{
	const struct seen *a = x, *b = y;

	if (a->cr3 != b->cr3)
		return a->cr3 < b->cr3 ? -1 : 1;
	if (a->tsc != b->tsc)
		return a->tsc < b->tsc ? -1 : 1;
	return a->order < b->order ? -1 : a->order > b->order;
}

static int by_time(const void *x, const void *y)
{
	const u64 *a = x, *b = y;

	return *a < *b ? -1 : *a > *b;
}

u64 tasks_reset_before(const struct tasks_machine *m, u64 tsc)
{
	size_t i = vmpt_search(k, 0, m->resets, m->reset[k] <= tsc);

	return i ? m->reset[i - 1] : 0;
}

size_t tasks_state_at(const struct tasks_machine *m, u64 cr3, u64 tsc)
{
	size_t i = vmpt_search(k, 0, m->states,
			       m->state[k].cr3 < cr3 ||
				       (m->state[k].cr3 == cr3 && m->state[k].tsc <= tsc));

	return i && m->state[i - 1].cr3 == cr3 ? i : 0;
}

/* Where nothing is yet. 0 or -VMPT_E_NOMEM. */
static int add_map(struct tasks_maps *maps, const struct vmpt_guest_map *map)
{
	size_t i = vmpt_search(k, 0, maps->count, maps->map[k].end <= map->start);

	if ((i < maps->count && maps->map[i].start < map->end) || maps->count == MAPS_MAX)
		return 0;
	if (vmpt_grow(&maps->map, maps->count))
		return -VMPT_E_NOMEM;
	memmove(maps->map + i + 1, maps->map + i, (maps->count - i) * sizeof(*maps->map));
	maps->map[i] = *map;
	maps->count++;
	return 0;
}

/* @now is of the same process as @last, whose other threads have lines at the end, too. */
static bool continues(const struct tasks_machine *m, const struct tasks_state *last,
		      const struct tasks_state *now)
{
	return last->cr3 == now->cr3 && last->task.tgid == now->task.tgid &&
	       (last->task.start == now->task.start || now->task.pid != now->task.tgid) &&
	       tasks_reset_before(m, last->tsc) == tasks_reset_before(m, now->tsc);
}

/* Number processes; lines that say nothing new are dropped. 0 or -VMPT_E_NOMEM. */
static int number_states(struct tasks_machine *m)
{
	size_t i, n = 0;

	for (i = 0; i < m->states; i++) {
		struct tasks_state s = m->state[i], *last = n ? &m->state[n - 1] : NULL;

		if (last && continues(m, last, &s)) {
			if (s.task.pid != s.task.tgid ||
			    !memcmp(s.task.comm, last->task.comm, sizeof(s.task.comm)))
				continue;
			s.process = last->process;
			s.task.program = s.task.program ? s.task.program : last->task.program;
		} else {
			if (vmpt_grow(&m->process, m->processes))
				return -VMPT_E_NOMEM;
			m->process[m->processes] = (struct tasks_maps){ 0 };
			s.process = m->processes++;
		}
		m->state[n++] = s;
	}
	m->states = n;
	return 0;
}

static int finish(struct reader *r)
{
	struct tasks_machine *m = r->m;
	size_t i, k, at;

	if (m->states)
		qsort(m->state, m->states, sizeof(*m->state), by_state);
	if (r->seens)
		qsort(r->seen, r->seens, sizeof(*r->seen), by_seen);
	if (m->resets)
		qsort(m->reset, m->resets, sizeof(*m->reset), by_time);
	if (number_states(m))
		return cli_no_memory(r->cli);
	for (i = 0; i < r->seens; i++) {
		const struct seen *s = &r->seen[i];

		at = tasks_state_at(m, s->cr3, s->tsc);
		if (!at || m->state[at - 1].task.tgid != s->tgid)
			continue;
		for (k = 0; k < s->maps.count; k++)
			if (add_map(&m->process[m->state[at - 1].process], &s->maps.map[k]))
				return cli_no_memory(r->cli);
	}
	return CLI_OK;
}

int tasks_read(struct cli *cli, struct tasks_machine *m, const char *path, FILE *f)
{
	struct reader r = { .cli = cli,
			    .line = { .cli = cli, .file = path, .left_out = true },
			    .m = m };
	int code = read_lines(&r, f);

	if (!code && ferror(f)) {
		cli_error(cli, "%s: %s", path, strerror(errno));
		code = CLI_FAILED;
	}
	if (!code)
		code = finish(&r);
	drop_seen(&r);
	free(r.seen);
	return code;
}
