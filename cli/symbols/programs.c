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
#include "util/search.h"

#define PROGRAMS_MAX 100000
#define SEGMENTS_MAX 64

struct names_program {
	u8 id[64];
	size_t size; /* of it */
	char *path;
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

static int add_file(struct cli *cli, struct code_names *n, const char *path)
{
	struct names_program *p;
	u8 id[64];
	size_t size = id_of_file(path, id);

	if (!size || n->programs == PROGRAMS_MAX)
		return CLI_OK;
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
		if (e->fts_info == FTS_F)
			code = add_file(cli, n, e->fts_path);
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

void names_programs_free(struct code_names *n)
{
	while (n->programs) {
		struct names_program *p = &n->program[--n->programs];

		elf_symbols_free(&p->symbols);
		if (p->debug.lines)
			n->ops->close(p->debug.lines);
		free(p->path);
	}
	free(n->program);
}

/* ---- symbols ---- */

static void read_program(struct cli *cli, struct names_program *p)
{
	const struct code_given given = { .path = p->path, .kind = CODE_IMAGE };
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

const char *names_programs_find(struct cli *cli, const struct code_names *n, const u8 *id,
				size_t size, u64 offset, u64 *into)
{
	size_t i;

	for (i = first_of(n, id, size); is_of(n, i, id, size); i++) {
		const char *name = NULL;
		u64 address;

		if (!n->program[i].read)
			read_program(cli, &n->program[i]);
		if (address_of(&n->program[i], offset, &address))
			name = elf_symbols_find(&n->program[i].symbols, 0, address, into);
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

struct vmpt_lines *names_programs_lines(struct cli *cli, const struct code_names *n, const u8 *id,
					size_t size, size_t nth, u64 offset, u64 *address)
{
	size_t i;

	for (i = first_of(n, id, size); is_of(n, i, id, size); i++) {
		struct names_program *p = &n->program[i];

		if (address && !p->read)
			read_program(cli, p);
		if (!p->debug.tried)
			p->debug.lines = names_lines_read(n, p->path);
		p->debug.tried = true;
		if (p->debug.lines && (!address || address_of(p, offset, address)) && !nth--)
			return p->debug.lines;
	}
	return NULL;
}
