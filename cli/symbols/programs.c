// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* Programs in folders, by their build ids; their symbols are read when one is needed. */
#include <fcntl.h>
#include <fts.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/symbols/file.h"
#include "cli/symbols/names.h"
#include "util/array.h"
#include "util/hash.h"
#include "util/search.h"

#define PROGRAMS_MAX 100000
#define SEGMENTS_MAX 64

struct names_program {
	u8 id[64];
	size_t size; /* of it */
	char *path;
	char *fetched; /* by debuginfod; NULL: .path is the file */
	bool read;
	/* What of the file is where; in the order of the file. */
	struct {
		u64 offset, size, address;
	} segment[SEGMENTS_MAX];
	size_t segments;
	struct elf_symbols symbols;
	struct names_debug debug;
};

static size_t id_of_section(Elf *elf, Elf_Scn *section, u8 id[64])
{
	Elf_Data *data = elf_getdata(section, NULL);
	size_t at = 0, name, desc;
	GElf_Nhdr note;

	(void)elf;
	while (data && (at = gelf_getnote(data, at, &note, &name, &desc)) > 0)
		if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 && note.n_descsz <= 64 &&
		    !memcmp((const char *)data->d_buf + name, "GNU", 4)) {
			memcpy(id, (const u8 *)data->d_buf + desc, note.n_descsz);
			return note.n_descsz;
		}
	return 0;
}

size_t names_build_id(Elf *elf, u8 id[64])
{
	Elf_Scn *section = NULL;
	GElf_Shdr header;
	size_t n;

	while ((section = elf_nextscn(elf, section)) != NULL) {
		if (!gelf_getshdr(section, &header) || header.sh_type != SHT_NOTE)
			continue;
		n = id_of_section(elf, section, id);
		if (n)
			return n;
	}
	return 0;
}

/* ---- folders ---- */

static size_t id_of_file(const char *path, u8 id[64])
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK | O_NOFOLLOW);
	char magic[SELFMAG];
	size_t n = 0;
	Elf *elf;

	if (fd >= 0 && pread(fd, magic, SELFMAG, 0) == SELFMAG && !memcmp(magic, ELFMAG, SELFMAG)) {
		elf_version(EV_CURRENT);
		elf = elf_begin(fd, ELF_C_READ, NULL);
		n = elf ? names_build_id(elf, id) : 0;
		elf_end(elf);
	}
	if (fd >= 0)
		close(fd);
	return n;
}

/* Of x86; others are in such folders, too. */
static bool is_regular_elf(const char *path)
{
	int fd = names_open_regular(path);
	Elf64_Half machine;
	u8 head[20] = { 0 };
	bool is = fd >= 0 && pread(fd, head, sizeof(head), 0) == sizeof(head) &&
		  !memcmp(head, ELFMAG, SELFMAG);

	if (fd >= 0)
		close(fd);
	memcpy(&machine, head + offsetof(Elf64_Ehdr, e_machine), sizeof(machine));
	return is && (machine == EM_X86_64 || machine == EM_386);
}

static int add_file(struct cli *cli, struct code_names *n, const char *path)
{
	struct names_program *p;
	u8 id[64];
	size_t size;

	/* Those without a build id may be found by their code. */
	if (!is_regular_elf(path) || n->programs == PROGRAMS_MAX)
		return CLI_OK;
	size = id_of_file(path, id);
	if (vmpt_grow(&n->program, n->programs))
		return cli_no_memory(cli);
	p = &n->program[n->programs];
	*p = (struct names_program){ .size = size, .path = strdup(path) };
	if (!p->path)
		return cli_no_memory(cli);
	memcpy(p->id, id, size);
	n->programs++;
	return CLI_OK;
}

int names_programs_add(struct cli *cli, struct code_names *n, const char *folder)
{
	char *path = strdup(folder), *paths[] = { path, NULL };
	FTS *walk = path ? fts_open(paths, FTS_PHYSICAL | FTS_NOCHDIR, NULL) : NULL;
	int code = walk ? CLI_OK : cli_no_memory(cli);
	FTSENT *e;

	while (!code && (e = fts_read(walk)) != NULL)
		if (e->fts_info == FTS_F) {
			code = add_file(cli, n, e->fts_path);
			if (!code)
				code = names_jit_add(cli, n, e->fts_path, SIZE_MAX);
		}
	if (walk)
		fts_close(walk);
	free(path);
	return code;
}

static int compare(const u8 *a, size_t n, const u8 *b, size_t m)
{
	int order = memcmp(a, b, n < m ? n : m);

	return order ? order : n < m ? -1 : n > m;
}

/* Of two files the one with more symbols is not known yet: the larger path, any, is second. */
static int by_id(const void *x, const void *y)
{
	const struct names_program *a = x, *b = y;
	int order = compare(a->id, a->size, b->id, b->size);

	return order ? order : strcmp(a->path, b->path);
}

void names_programs_sort(const struct code_names *n)
{
	if (n->programs)
		qsort(n->program, n->programs, sizeof(*n->program), by_id);
}

/* ---- symbols ---- */

static char *path_of(const struct names_program *p)
{
	return p->fetched ? p->fetched : p->path;
}

static void read_program(struct cli *cli, struct names_program *p)
{
	const struct code_given given = { .path = path_of(p), .kind = CODE_IMAGE };
	struct elf_file f;
	GElf_Phdr segment;
	size_t i;

	p->read = true;
	if (!elf_file_open_named(cli, &given, &f))
		for (i = 0; i < f.segments && p->segments < SEGMENTS_MAX; i++) {
			if (!elf_file_loaded(&f, i, &segment))
				continue;
			/* In files with debugging information only, .p_filesz may be 0. */
			p->segment[p->segments].offset = segment.p_offset;
			p->segment[p->segments].size = segment.p_memsz;
			p->segment[p->segments++].address = segment.p_vaddr;
		}
	elf_file_close(&f);
	if (p->segments && !elf_symbols_add(cli, &p->symbols, &given))
		elf_symbols_sort(&p->symbols);
}

/* The address of the byte at @offset, as the file has it. */
static bool address_of(const struct names_program *p, u64 offset, u64 *address)
{
	size_t i;

	for (i = 0; i < p->segments; i++)
		if (offset - p->segment[i].offset < p->segment[i].size) {
			*address = p->segment[i].address + offset - p->segment[i].offset;
			return true;
		}
	return false;
}

/* The first of the files with this build id: the program itself, and its debugging information. */
static size_t first_of(const struct code_names *n, const u8 *id, size_t size)
{
	return vmpt_search(k, 0, n->programs,
			   compare(n->program[k].id, n->program[k].size, id, size) < 0);
}

static bool is_of(const struct code_names *n, size_t i, const u8 *id, size_t size)
{
	return i < n->programs && !compare(n->program[i].id, n->program[i].size, id, size);
}

/* ---- programs of this machine ---- */

struct names_paths {
	struct names_program *program;
	size_t count;
	struct vmpt_hash of; /* by path and build id */
};

static bool is_path(const struct names_program *p, const struct names_file *file)
{
	return !strcmp(p->path, file->path) &&
	       (p->size ? file->build_id &&
				  !compare(p->id, p->size, file->build_id, file->build_id_size)
			: !file->build_id);
}

/* The program of @file by another way than folders, named @path; NULL: no memory. */
static struct names_program *named(const struct code_names *n, const struct names_file *file,
				   bool *added)
{
	struct names_paths *all = n->paths;
	const u64 hash =
		vmpt_mix64(vmpt_fnv1a(vmpt_fnv1a(VMPT_FNV1A, file->path, strlen(file->path)),
				      file->build_id ? file->build_id : (const u8 *)"",
				      file->build_id ? file->build_id_size : 0));
	struct names_program *p;
	u32 i = vmpt_hash_find(&all->of, hash, k, is_path(&all->program[k], file));

	*added = false;
	if (i != VMPT_HASH_NONE)
		return &all->program[i];
	if (all->count == PROGRAMS_MAX || vmpt_grow(&all->program, all->count))
		return NULL;
	p = &all->program[all->count];
	*p = (struct names_program){ .path = strdup(file->path) };
	if (!p->path || vmpt_hash_add(&all->of, hash, (u32)all->count)) {
		free(p->path);
		return NULL;
	}
	all->count++;
	if (file->build_id) {
		p->size = file->build_id_size;
		memcpy(p->id, file->build_id, p->size);
	}
	*added = true;
	return p;
}

/* The recorded path, if it still has the recorded build id; else it has no symbols. */
static struct names_program *by_path(const struct code_names *n, const struct names_file *file)
{
	struct names_program *p;
	bool added;
	u8 id[64];

	if (!file->here || !names_is_path(file->path))
		return NULL;
	p = named(n, file, &added);
	if (p && added)
		p->read = p->debug.tried = !is_regular_elf(p->path) ||
					   (p->size && (id_of_file(p->path, id) != p->size ||
							memcmp(id, p->id, p->size) != 0));
	return p;
}

/* What a server has. It is asked once for each. */
static struct names_program *by_server(struct cli *cli, const struct code_names *n,
				       const struct names_file *file)
{
	struct names_file asked = *file;
	struct names_program *p;
	bool added;

	if (!n->server || !file->build_id)
		return NULL;
	asked.path = "";
	p = named(n, &asked, &added);
	if (p && added) {
		p->fetched = names_debuginfod_find(cli, n, p->id, p->size);
		p->read = p->debug.tried = !p->fetched;
	}
	return p;
}

/*
 * Program number @i of those that may be @file: of the folders, then that of its path, then that of
 * a server.
 */
static struct names_program *candidate(struct cli *cli, const struct code_names *n,
				       const struct names_file *file, size_t i)
{
	size_t first = file->build_id ? first_of(n, file->build_id, file->build_id_size) : 0;
	struct names_program *p;
	size_t count = 0;

	while (file->build_id && is_of(n, first + count, file->build_id, file->build_id_size)) {
		if (count == i)
			return &n->program[first + count];
		count++;
	}
	p = by_path(n, file);
	if (p && i == count)
		return p;
	return i == count + (p != NULL) ? by_server(cli, n, file) : NULL;
}

const char *names_programs_find(struct cli *cli, const struct code_names *n,
				const struct names_file *file, u64 *into)
{
	struct names_program *p;
	size_t i;

	for (i = 0; (p = candidate(cli, n, file, i)) != NULL; i++) {
		const char *name = NULL;
		u64 address;

		if (!p->read)
			read_program(cli, p);
		if (address_of(p, file->offset, &address))
			name = elf_symbols_find(&p->symbols, 0, address, into);
		if (name)
			return name;
	}
	return NULL;
}

int names_programs_open(const struct code_names *n, const u8 *id, size_t size, size_t nth)
{
	size_t i = first_of(n, id, size) + nth;

	return is_of(n, i, id, size) ? names_open_regular(n->program[i].path) : -1;
}

struct vmpt_lines *names_programs_lines(struct cli *cli, const struct code_names *n,
					const struct names_file *file, size_t nth, u64 *address)
{
	struct names_program *p;
	size_t i;

	for (i = 0; (p = candidate(cli, n, file, i)) != NULL; i++) {
		if (address && !p->read)
			read_program(cli, p);
		if (!p->debug.tried)
			p->debug.lines = names_lines_read(n, path_of(p));
		p->debug.tried = true;
		if (p->debug.lines && (!address || address_of(p, file->offset, address)) && !nth--)
			return p->debug.lines;
	}
	return NULL;
}

/* ---- by number ---- */

char *names_program_path(const struct code_names *n, size_t i)
{
	return n->program[i].path;
}

bool names_programs_same(const struct code_names *n, size_t a, size_t b)
{
	return a == b || (n->program[a].size && is_of(n, b, n->program[a].id, n->program[a].size));
}

/* Number @nth of those that are the same as @i: itself, if it has no build id. */
static struct names_program *same_as(const struct code_names *n, size_t i, size_t nth)
{
	const struct names_program *p = &n->program[i];
	size_t k = p->size ? first_of(n, p->id, p->size) + nth : i;

	if (!p->size)
		return nth ? NULL : &n->program[i];
	return is_of(n, k, p->id, p->size) ? &n->program[k] : NULL;
}

const char *names_program_symbol(struct cli *cli, const struct code_names *n, size_t i, u64 address,
				 u64 *into)
{
	struct names_program *p;
	const char *name = NULL;
	size_t nth;

	for (nth = 0; !name && (p = same_as(n, i, nth)) != NULL; nth++) {
		if (!p->read)
			read_program(cli, p);
		name = elf_symbols_find(&p->symbols, 0, address, into);
	}
	return name;
}

struct vmpt_lines *names_program_lines(const struct code_names *n, size_t i, size_t nth)
{
	struct names_program *p;
	size_t k;

	for (k = 0; (p = same_as(n, i, k)) != NULL; k++) {
		if (!p->debug.tried)
			p->debug.lines = names_lines_read(n, p->path);
		p->debug.tried = true;
		if (p->debug.lines && !nth--)
			return p->debug.lines;
	}
	return NULL;
}

/* ---- all ---- */

static void drop(const struct code_names *n, struct names_program *p)
{
	elf_symbols_free(&p->symbols);
	if (p->debug.lines)
		n->ops->close(p->debug.lines);
	free(p->path);
	free(p->fetched);
}

int names_programs_here(struct cli *cli, struct code_names *n)
{
	n->paths = calloc(1, sizeof(*n->paths));
	return n->paths ? CLI_OK : cli_no_memory(cli);
}

void names_programs_free(struct code_names *n)
{
	while (n->programs)
		drop(n, &n->program[--n->programs]);
	free(n->program);
	while (n->paths && n->paths->count)
		drop(n, &n->paths->program[--n->paths->count]);
	if (n->paths) {
		free(n->paths->program);
		vmpt_hash_free(&n->paths->of);
	}
	free(n->paths);
}
