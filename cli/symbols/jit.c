// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Names of code that just-in-time compilers made: perf's map files ("START SIZE NAME" in hex), and
 * jitdumps, as tools/perf/Documentation of Linux has both. Code replaces what was at its place:
 * what was written last counts, or with times that are TSCs what was there then.
 */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/symbols/names.h"
#include "util/array.h"
#include "util/hash.h"
#include "util/search.h"

#define SYMBOLS_MAX 4000000
#define FILES_MAX   4096
#define LINE_BYTES  4096
#define RECORD_MAX  (16u << 20) /* of a jitdump */
#define BACK_MAX    64		/* functions that may lie over one address */

#define JITDUMP_MAGIC 0x4a695444u

enum {
	HEADER = 40,
	HEADER_SIZE = 8,
	HEADER_PID = 20,
	HEADER_FLAGS = 32, /* bit 0: times are TSCs */
	RECORD = 16,	   /* u32 id, total_size, u64 timestamp */
	LOAD = 0,	   /* u32 pid, tid, u64 vma, code_addr, code_size, code_index, name */
	LOAD_ADDR = RECORD + 16,
	LOAD_SIZE = RECORD + 24,
	LOAD_INDEX = RECORD + 32,
	LOAD_NAME = RECORD + 40,
	MOVE = 1, /* u32 pid, tid, u64 vma, old_code_addr, new_code_addr, code_size, code_index */
	MOVE_NEW = RECORD + 24,
	MOVE_INDEX = RECORD + 40,
	MOVE_END = RECORD + 48,
};

/* A function, from when to when; without times the number of its record, ~0: to the end. */
struct jit_symbol {
	u64 start, end, from, to;
	u64 index;  /* of a jitdump */
	char *name; /* safe for a terminal */
};

struct names_jit {
	char *path;
	size_t given; /* of the files; SIZE_MAX: one in a folder, of a process of the host */
	long pid;     /* -1: not known */
	bool read, timed;
	struct jit_symbol *symbol; /* by .start, then .from */
	size_t count;
};

/* ---- which files ---- */

/* The number in "perf-12.map", "jit-12.dump"; -1: it is no such name. */
static long pid_of(const char *path)
{
	const char *base = strrchr(path, '/');
	char end[8] = "";
	long pid;

	base = base ? base + 1 : path;
	if (sscanf(base, "perf-%9ld%7s", &pid, end) == 2 && !strcmp(end, ".map"))
		return pid;
	if (sscanf(base, "jit-%9ld%7s", &pid, end) == 2 && !strcmp(end, ".dump"))
		return pid;
	return -1;
}

/* "7f0012340000 1c2 name", where a list of symbols has one letter. */
static bool is_map_line(const char *line)
{
	const size_t n = strspn(line, "0123456789abcdefABCDEF");
	const char *size = line + n + 1;
	const size_t m =
		n && n <= 16 && line[n] == ' ' ? strspn(size, "0123456789abcdefABCDEF") : 0;

	return m && m <= 16 && size[m] == ' ' && (m > 1 || isdigit((unsigned char)*size));
}

bool names_is_jit(const char *path, const char *head, size_t size)
{
	u32 magic = 0;

	if (size >= sizeof(magic))
		memcpy(&magic, head, sizeof(magic));
	return magic == JITDUMP_MAGIC || is_map_line(head) || (!size && pid_of(path) >= 0);
}

int names_jit_add(struct cli *cli, struct code_names *n, const char *path, size_t given)
{
	struct names_jit *j;
	size_t i;

	if (given == SIZE_MAX && pid_of(path) < 0)
		return CLI_OK;
	/* Children have their parent's map of it. */
	for (i = 0; i < n->jits && given == SIZE_MAX; i++)
		if (!strcmp(n->jit[i].path, path))
			return CLI_OK;
	if (n->jits == FILES_MAX)
		return CLI_OK;
	if (vmpt_grow(&n->jit, n->jits))
		return cli_no_memory(cli);
	j = &n->jit[n->jits];
	*j = (struct names_jit){ .path = strdup(path), .given = given, .pid = pid_of(path) };
	if (!j->path)
		return cli_no_memory(cli);
	n->jits++;
	return CLI_OK;
}

void names_jit_free(struct code_names *n)
{
	while (n->jits) {
		struct names_jit *j = &n->jit[--n->jits];

		while (j->count)
			free(j->symbol[--j->count].name);
		free(j->symbol);
		free(j->path);
	}
	free(n->jit);
}

/* ---- reading: what is damaged ends it ---- */

static bool add(struct names_jit *j, u64 start, u64 size, u64 from, u64 index, const char *name)
{
	char safe[CLI_WHO];

	if (j->count == SYMBOLS_MAX || !size || start > ~0ULL - size)
		return j->count < SYMBOLS_MAX;
	if (vmpt_grow(&j->symbol, j->count))
		return false;
	cli_safe_name(name, safe);
	j->symbol[j->count] = (struct jit_symbol){
		.start = start,
		.end = start + size,
		.from = from,
		.to = ~0ULL,
		.index = index,
		.name = strdup(safe),
	};
	return j->symbol[j->count].name && ++j->count;
}

static void read_map(struct names_jit *j, FILE *file)
{
	char line[LINE_BYTES], *end, *name;
	u64 start, size, number = 0;

	while (cli_getline(line, sizeof(line), file) > 0) {
		if (!is_map_line(line))
			continue;
		start = strtoull(line, &end, 16);
		size = strtoull(end, &name, 16);
		name += *name == ' ';
		name[strcspn(name, "\r\n")] = '\0';
		if (!add(j, start, size, number++, 0, name))
			return;
	}
}

static u64 load(const u8 *at, size_t size)
{
	u64 value = 0;

	memcpy(&value, at, size);
	return value;
}

struct dump {
	struct names_jit *jit;
	struct vmpt_hash last; /* by code index: where it was put last */
	u32 *at;	       /* by symbol: the last one of its index, for the first one */
	u64 number;
};

/* The newest symbol of @index; VMPT_HASH_NONE. */
static u32 newest(const struct dump *d, u64 index, u32 *first)
{
	*first = vmpt_hash_find(&d->last, vmpt_mix64(index), k, d->jit->symbol[k].index == index);
	return *first == VMPT_HASH_NONE ? VMPT_HASH_NONE : d->at[*first];
}

static bool take_load(struct dump *d, const u8 *rec, u32 size, u64 from)
{
	const u64 index = load(rec + LOAD_INDEX, 8);
	const size_t n = d->jit->count;
	u32 first;

	if (!memchr(rec + LOAD_NAME, 0, size - LOAD_NAME))
		return true;
	if (!add(d->jit, load(rec + LOAD_ADDR, 8), load(rec + LOAD_SIZE, 8), from, index,
		 (const char *)rec + LOAD_NAME))
		return false;
	if (d->jit->count == n)
		return true;
	if (vmpt_grow(&d->at, n))
		return false;
	d->at[n] = (u32)n;
	if (newest(d, index, &first) != VMPT_HASH_NONE) {
		d->at[first] = (u32)n;
		return true;
	}
	return !vmpt_hash_add(&d->last, vmpt_mix64(index), (u32)n);
}

/* From then on it is elsewhere, and nothing is known of where it was. */
static bool take_move(struct dump *d, const u8 *rec, u64 from)
{
	const u64 index = load(rec + MOVE_INDEX, 8);
	const size_t n = d->jit->count;
	u32 first, last = newest(d, index, &first);
	struct jit_symbol *old;

	if (last == VMPT_HASH_NONE)
		return true;
	old = &d->jit->symbol[last];
	old->to = from;
	if (!add(d->jit, load(rec + MOVE_NEW, 8), old->end - old->start, from, index, old->name))
		return false;
	if (d->jit->count == n)
		return true;
	if (vmpt_grow(&d->at, n))
		return false;
	d->at[n] = d->at[first] = (u32)n;
	return true;
}

/* @rec has the head of a record; the rest is read. */
static bool take_record(struct dump *d, FILE *file, const u8 *head, u32 size)
{
	const u32 id = (u32)load(head, 4);
	const u64 from = d->jit->timed ? load(head + 8, 8) : ++d->number;
	u8 *rec;
	bool more = false;

	if (!(id == LOAD && size > LOAD_NAME) && !(id == MOVE && size >= MOVE_END))
		return !fseeko(file, (off_t)(size - RECORD), SEEK_CUR);
	rec = size <= RECORD_MAX ? malloc(size) : NULL;
	if (rec && fread(rec + RECORD, 1, size - RECORD, file) == size - RECORD)
		more = id == LOAD ? take_load(d, rec, size, from) : take_move(d, rec, from);
	free(rec);
	return more;
}

static void read_dump(struct names_jit *j, FILE *file)
{
	struct dump d = { .jit = j };
	u8 head[HEADER];
	u32 size;

	if (fread(head, 1, HEADER, file) != HEADER)
		return;
	if (j->pid < 0)
		j->pid = (long)load(head + HEADER_PID, 4);
	j->timed = head[HEADER_FLAGS] & 1;
	if (fseeko(file, (off_t)load(head + HEADER_SIZE, 4), SEEK_SET))
		return;
	while (fread(head, 1, RECORD, file) == RECORD) {
		size = (u32)load(head + 4, 4);
		if (size < RECORD || !take_record(&d, file, head, size))
			break;
	}
	free(d.at);
	vmpt_hash_free(&d.last);
}

static int by_start(const void *x, const void *y)
{
	const struct jit_symbol *a = x, *b = y;

	if (a->start != b->start)
		return a->start < b->start ? -1 : 1;
	return a->from < b->from ? -1 : a->from > b->from;
}

static void read_jit(struct names_jit *j)
{
	int fd = names_open_regular(j->path);
	FILE *file = fd < 0 ? NULL : fdopen(fd, "r");
	u32 magic = 0;

	j->read = true;
	if (file && fread(&magic, 1, sizeof(magic), file) == sizeof(magic)) {
		rewind(file);
		if (magic == JITDUMP_MAGIC)
			read_dump(j, file);
		else
			read_map(j, file);
	}
	if (file)
		fclose(file);
	else if (fd >= 0)
		close(fd);
	if (j->count)
		qsort(j->symbol, j->count, sizeof(*j->symbol), by_start);
}

/* ---- finding ---- */

/* The one that was put there last, by @tsc if there are times. */
static const struct jit_symbol *find(const struct names_jit *j, u64 ip, u64 tsc)
{
	const struct jit_symbol *s = j->symbol, *best = NULL;
	size_t i = vmpt_search(k, 0, j->count, s[k].start <= ip), steps;
	const bool timed = j->timed && tsc != VMPT_TIME_NONE;

	for (steps = 0; i && steps < BACK_MAX; i--, steps++) {
		const struct jit_symbol *c = &s[i - 1];

		if (c->end <= ip || (timed ? c->from > tsc || c->to <= tsc : c->to != ~0ULL))
			continue;
		if (!best || c->from > best->from)
			best = c;
	}
	return best;
}

/* A process id is in the file's name; of whom it is not known, a file that was given is. */
static bool is_of(const struct names_jit *j, const struct names_space *space)
{
	return j->pid >= 0 && space->task ? (u32)j->pid == space->task->tgid : j->given != SIZE_MAX;
}

bool names_jit_find(const struct code_names *n, const struct names_space *space, u64 ip,
		    struct names_found *found)
{
	const struct jit_symbol *s;
	size_t i;

	for (i = 0; i < n->jits; i++) {
		struct names_jit *j = &n->jit[i];

		if (j->given == SIZE_MAX ? !space->host
					 : !code_is_for(&n->files.given[j->given], space->vm))
			continue;
		/* A jitdump has its process in it. */
		if (!j->read && (j->pid < 0 || is_of(j, space)))
			read_jit(j);
		s = j->read && is_of(j, space) ? find(j, ip, space->tsc) : NULL;
		if (!s)
			continue;
		found->name = s->name;
		found->module = "jit";
		found->offset = ip - s->start;
		return true;
	}
	return false;
}
