// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * vmpt coverage --lcov: a tracefile of lcov (geninfo(1)): of each source file the lines that have
 * code, its functions, and the conditional branches that ran. Lines that did not run are those of
 * compile units of which anything ran.
 */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "cli/coverage/coverage.h"
#include "util/array.h"
#include "util/search.h"

/* A compile unit in an address space, of which all lines are taken once. */
struct unit {
	const void *from;
	u64 unit;
	u32 space;
};

struct line {
	u32 file, line;
	u64 count; /* of other units and spaces */
	u64 most;  /* of unit number .unit so far */
	u32 unit;
};

struct function {
	char *name;
	u32 file, line;
	u64 count;
};

/* A conditional branch. */
struct branch {
	const char *module;
	u64 offset; /* in the module */
	u32 file, line;
	u64 way[2]; /* not taken, taken */
};

struct lcov {
	struct cli *cli;
	struct coverage *d;
	int error;
	char **file;
	size_t files;
	struct vmpt_hash file_of;
	struct unit *unit;
	size_t units;
	struct vmpt_hash unit_of;
	struct line *line;
	size_t lines;
	struct vmpt_hash line_of;
	struct function *function;
	size_t functions;
	struct vmpt_hash function_of;
	struct branch *branch;
	size_t branches;
	struct vmpt_hash branch_of;
	u32 space; /* of the unit that is taken */
};

/* ---- what is there ---- */

static u32 file_of(struct lcov *l, const char *name)
{
	u64 hash = vmpt_mix64(vmpt_fnv1a(l->d->seed, name, strlen(name)));
	u32 n = vmpt_hash_find(&l->file_of, hash, i, !strcmp(l->file[i], name));

	if (n != VMPT_HASH_NONE)
		return n;
	n = (u32)l->files;
	if (vmpt_grow(&l->file, l->files) || !(l->file[n] = strdup(name)))
		return COVERAGE_NONE;
	l->files++;
	return vmpt_hash_add(&l->file_of, hash, n) ? COVERAGE_NONE : n;
}

static struct line *line_of(struct lcov *l, u32 file, u32 line)
{
	u64 hash = vmpt_mix64(l->d->seed ^ file ^ (u64)line << 32);
	u32 n = vmpt_hash_find(&l->line_of, hash, i,
			       l->line[i].file == file && l->line[i].line == line);

	if (n != VMPT_HASH_NONE)
		return &l->line[n];
	n = (u32)l->lines;
	if (vmpt_grow(&l->line, l->lines) || vmpt_hash_add(&l->line_of, hash, n))
		return NULL;
	l->line[l->lines++] = (struct line){ .file = file, .line = line };
	return &l->line[n];
}

/* Whether it is new. */
static bool add_unit(struct lcov *l, const struct names_line *line)
{
	u64 hash =
		vmpt_mix64((uintptr_t)line->from ^ line->unit ^ (u64)l->space << 40 ^ l->d->seed);
	u32 n = vmpt_hash_find(&l->unit_of, hash, i,
			       l->unit[i].from == line->from && l->unit[i].unit == line->unit &&
				       l->unit[i].space == l->space);

	if (n != VMPT_HASH_NONE)
		return false;
	n = (u32)l->units;
	if (vmpt_grow(&l->unit, l->units) || vmpt_hash_add(&l->unit_of, hash, n)) {
		l->error = -VMPT_E_NOMEM;
		return false;
	}
	l->unit[l->units++] =
		(struct unit){ .from = line->from, .unit = line->unit, .space = l->space };
	return true;
}

static int add_function(struct lcov *l, const char *name, u32 file, u32 line, u64 count)
{
	u64 hash = vmpt_mix64(vmpt_fnv1a(l->d->seed ^ file ^ (u64)line << 32, name, strlen(name)));
	u32 n = vmpt_hash_find(&l->function_of, hash, i,
			       l->function[i].file == file && l->function[i].line == line &&
				       !strcmp(l->function[i].name, name));

	if (n != VMPT_HASH_NONE) {
		l->function[n].count += count;
		return 0;
	}
	n = (u32)l->functions;
	if (vmpt_grow(&l->function, l->functions) || vmpt_hash_add(&l->function_of, hash, n))
		return -VMPT_E_NOMEM;
	l->function[n] = (struct function){
		.name = strdup(name), .file = file, .line = line, .count = count
	};
	l->functions += l->function[n].name != NULL;
	return l->function[n].name ? 0 : -VMPT_E_NOMEM;
}

/* A line of the unit added last. */
static int take_line(void *opaque, const struct names_line *from)
{
	struct lcov *l = opaque;
	struct coverage *d = l->d;
	u32 file = file_of(l, from->file), unit = (u32)l->units;
	u64 count = coverage_count(d, l->space, from->start, from->end);
	struct names_found f;
	struct line *line;

	line = file == COVERAGE_NONE ? NULL : line_of(l, file, from->line);
	if (!line)
		return l->error = -VMPT_E_NOMEM;
	if (line->unit != unit) {
		line->count += line->most;
		line->most = 0;
		line->unit = unit;
	}
	if (count > line->most)
		line->most = count;
	if (!code_names_find(l->cli, &d->t.names, coverage_names(d, l->space), from->start, &f) ||
	    !f.name || f.offset)
		return 0;
	/* Its first instruction: how often it was called. */
	count = coverage_count(d, l->space, from->start, from->start + 1);
	return l->error = add_function(l, f.name, file, from->line, count);
}

static int add_branch(struct lcov *l, const struct coverage_edge *e, const struct names_line *line)
{
	const struct coverage_module *m = coverage_module_at(l->d, e->space, e->from);
	const struct coverage_block *b = coverage_block_at(l->d, e->space, e->from);
	u32 file = file_of(l, line->file), n;
	u64 offset, hash;

	if (!m || file == COVERAGE_NONE)
		return -VMPT_E_NOMEM;
	offset = e->from - m->base;
	hash = vmpt_mix64(l->d->seed ^ offset);
	n = vmpt_hash_find(&l->branch_of, hash, i,
			   l->branch[i].offset == offset && !strcmp(l->branch[i].module, m->name));
	if (n == VMPT_HASH_NONE) {
		n = (u32)l->branches;
		if (vmpt_grow(&l->branch, l->branches) || vmpt_hash_add(&l->branch_of, hash, n))
			return -VMPT_E_NOMEM;
		l->branch[l->branches++] = (struct branch){
			.module = m->name, .offset = offset, .file = file, .line = line->line
		};
	}
	/* A branch ends its basic block: what follows that is the way that is not taken. */
	l->branch[n].way[!b || e->to != b->ip + b->size] += e->count;
	return 0;
}

/* ---- collecting ---- */

static int collect_lines(struct lcov *l)
{
	struct coverage *d = l->d;
	struct names_line line = { 0 };
	u64 ip, end;
	size_t i;

	for (i = 0; i < d->block_count && !l->error; i++) {
		const struct names_space *names = coverage_names(d, d->block[i].space);

		l->space = d->block[i].space;
		ip = d->block[i].ip;
		end = ip + d->block[i].size;
		if (!names_lines_find(l->cli, &d->t.names, names, ip, &line) || end < ip ||
		    !add_unit(l, &line))
			continue;
		names_lines_unit(l->cli, &d->t.names, names, ip, take_line, l);
	}
	return l->error;
}

static int collect_branches(struct lcov *l)
{
	struct coverage *d = l->d;
	struct names_line line;
	size_t i;
	int ret = 0;

	for (i = 0; i < d->edge_count && !ret; i++)
		if (d->edge[i].end == VMPT_FLOW_COND &&
		    names_lines_find(l->cli, &d->t.names, coverage_names(d, d->edge[i].space),
				     d->edge[i].from, &line))
			ret = add_branch(l, &d->edge[i], &line);
	return ret;
}

/* ---- writing ---- */

static int by_line(const void *x, const void *y)
{
	const struct line *a = x, *b = y;

	if (a->file != b->file)
		return a->file < b->file ? -1 : 1;
	return a->line < b->line ? -1 : a->line > b->line;
}

static int by_function(const void *x, const void *y)
{
	const struct function *a = x, *b = y;

	if (a->file != b->file)
		return a->file < b->file ? -1 : 1;
	if (a->line != b->line)
		return a->line < b->line ? -1 : 1;
	return strcmp(a->name, b->name);
}

static int by_branch(const void *x, const void *y)
{
	const struct branch *a = x, *b = y;

	if (a->file != b->file)
		return a->file < b->file ? -1 : 1;
	if (a->line != b->line)
		return a->line < b->line ? -1 : 1;
	if (a->offset != b->offset)
		return a->offset < b->offset ? -1 : 1;
	return strcmp(a->module, b->module);
}

static void put_text(const char *text, FILE *f)
{
	for (; *text; text++)
		fputc(iscntrl((unsigned char)*text) ? '_' : *text, f);
}

static void put_functions(const struct lcov *l, u32 file, FILE *f)
{
	size_t from = vmpt_search(i, 0, l->functions, l->function[i].file < file), i;
	size_t hit = 0;

	for (i = from; i < l->functions && l->function[i].file == file; i++) {
		fprintf(f, "FN:%u,", l->function[i].line);
		put_text(l->function[i].name, f);
		fputc('\n', f);
	}
	for (i = from; i < l->functions && l->function[i].file == file; i++) {
		fprintf(f, "FNDA:%llu,", (unsigned long long)l->function[i].count);
		put_text(l->function[i].name, f);
		fputc('\n', f);
		hit += l->function[i].count != 0;
	}
	fprintf(f, "FNF:%zu\nFNH:%zu\n", i - from, hit);
}

static void put_branches(const struct lcov *l, u32 file, FILE *f)
{
	size_t i = vmpt_search(k, 0, l->branches, l->branch[k].file < file), found = 0, hit = 0;
	u32 number = 0;

	for (; i < l->branches && l->branch[i].file == file; i++, found += 2) {
		const struct branch *b = &l->branch[i];

		number = found && b[-1].line == b->line ? number + 1 : 0;
		fprintf(f, "BRDA:%u,%u,0,%llu\nBRDA:%u,%u,1,%llu\n", b->line, number,
			(unsigned long long)b->way[0], b->line, number,
			(unsigned long long)b->way[1]);
		hit += (b->way[0] != 0) + (b->way[1] != 0);
	}
	fprintf(f, "BRF:%zu\nBRH:%zu\n", found, hit);
}

static void put_lines(const struct lcov *l, u32 file, FILE *f)
{
	size_t from = vmpt_search(i, 0, l->lines, l->line[i].file < file), i, hit = 0;

	for (i = from; i < l->lines && l->line[i].file == file; i++) {
		u64 count = l->line[i].count + l->line[i].most;

		fprintf(f, "DA:%u,%llu\n", l->line[i].line, (unsigned long long)count);
		hit += count != 0;
	}
	fprintf(f, "LF:%zu\nLH:%zu\n", i - from, hit);
}

static void write_all(struct lcov *l, FILE *f)
{
	u32 file;

	if (l->lines)
		qsort(l->line, l->lines, sizeof(*l->line), by_line);
	if (l->functions)
		qsort(l->function, l->functions, sizeof(*l->function), by_function);
	if (l->branches)
		qsort(l->branch, l->branches, sizeof(*l->branch), by_branch);
	for (file = 0; file < l->files; file++) {
		fprintf(f, "TN:vmpt\nSF:");
		put_text(l->file[file], f);
		fputc('\n', f);
		put_functions(l, file, f);
		put_branches(l, file, f);
		put_lines(l, file, f);
		fprintf(f, "end_of_record\n");
	}
}

static void drop(struct lcov *l)
{
	while (l->files)
		free(l->file[--l->files]);
	while (l->functions)
		free(l->function[--l->functions].name);
	free(l->file);
	free(l->unit);
	free(l->line);
	free(l->function);
	free(l->branch);
	vmpt_hash_free(&l->file_of);
	vmpt_hash_free(&l->unit_of);
	vmpt_hash_free(&l->line_of);
	vmpt_hash_free(&l->function_of);
	vmpt_hash_free(&l->branch_of);
}

int coverage_lcov(struct cli *cli)
{
	struct lcov l = { .cli = cli, .d = cli->data };
	struct cli_file file;
	int code = cli_file_create(cli, l.d->lcov, "TN:vmpt\n", &file);

	if (code)
		return code;
	if (collect_lines(&l) || collect_branches(&l)) {
		code = cli_no_memory(cli);
		cli_file_drop(&file);
	} else {
		write_all(&l, file.f);
		code = cli_file_commit(cli, &file);
		if (!l.lines)
			cli_warn(cli,
				 "%s: no source lines: give the programs, with debugging "
				 "information, by --symbols",
				 l.d->lcov);
	}
	drop(&l);
	return code;
}
