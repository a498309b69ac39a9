// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* Source lines of code, from the debugging information of the files that names are of. */
#include <dlfcn.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/symbols/file.h"
#include "cli/symbols/names.h"

int names_lines_open(struct cli *cli, struct code_names *n)
{
	n->module = code_module("cli", VMPT_LINES_MODULE);
	n->ops = n->module ? dlsym(n->module, VMPT_LINES_OPS) : NULL;
	if (!n->ops) {
		cli_error(cli, "--lines: this vmpt was built without libdw");
		return CLI_FAILED;
	}
	n->debugs = n->files.count;
	n->debug = n->debugs ? calloc(n->debugs, sizeof(*n->debug)) : NULL;
	return n->debugs && !n->debug ? cli_no_memory(cli) : CLI_OK;
}

void names_lines_close(struct code_names *n)
{
	size_t i;

	for (i = 0; n->debug && i < n->debugs; i++)
		n->ops->close(n->debug[i].lines);
	free(n->debug);
}

int names_open_regular(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	struct stat st;

	if (fd >= 0 && (fstat(fd, &st) || !S_ISREG(st.st_mode))) {
		close(fd);
		fd = -1;
	}
	return fd;
}

/* Closes @fd, which may be -1. */
static struct vmpt_lines *read_lines(const struct code_names *n, int fd)
{
	struct vmpt_lines *lines = NULL;
	int alt = -1;
	u8 id[64];
	size_t size;

	if (fd < 0)
		return NULL;
	size = n->ops->alt(fd, id);
	if (size)
		alt = names_programs_open(n, id, size, 0);
	lines = n->ops->open(fd, alt);
	if (alt >= 0)
		close(alt);
	close(fd);
	return lines;
}

static size_t id_of(int fd, u8 id[64])
{
	Elf *elf = elf_begin(fd, ELF_C_READ, NULL);
	size_t size = elf ? names_build_id(elf, id) : 0;

	elf_end(elf);
	return size;
}

struct vmpt_lines *names_lines_read(const struct code_names *n, const char *path)
{
	int fd = names_open_regular(path), other;
	struct vmpt_lines *lines = read_lines(n, fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, 1));
	u8 id[64];
	size_t i, size = fd < 0 || lines ? 0 : id_of(fd, id);

	/* Debugging information in a file of its own. */
	for (i = 0; size && !lines && (other = names_programs_open(n, id, size, i)) >= 0; i++)
		lines = read_lines(n, other);
	if (fd >= 0 && !lines)
		lines = read_lines(n, names_debuglink_open(n, path, fd));
	if (fd >= 0)
		close(fd);
	return lines;
}

/* ---- where lines may be: a file, and the address in it ---- */

struct place {
	struct vmpt_lines *lines;
	u64 address; /* in the file */
};

/* What a server has of the file @path. */
static struct vmpt_lines *ask(struct cli *cli, const struct code_names *n, const char *path)
{
	int fd = n->server ? names_open_regular(path) : -1;
	struct vmpt_lines *lines = NULL;
	char *fetched;
	u8 id[64];
	size_t size;

	if (fd < 0)
		return NULL;
	size = id_of(fd, id);
	fetched = size ? names_debuginfod_find(cli, n, id, size) : NULL;
	if (fetched)
		lines = names_lines_read(n, fetched);
	free(fetched);
	close(fd);
	return lines;
}

/* How far the addresses of a given file are moved. */
static void read_given(struct cli *cli, const struct code_names *n, size_t i)
{
	const struct code_given *g = &n->files.given[i];
	struct names_debug *d = &n->debug[i];
	struct elf_file f;
	int code;

	d->tried = true;
	if (g->kind != CODE_KERNEL && g->kind != CODE_IMAGE)
		return;
	code = elf_file_open_named(cli, g, &f);
	if (!code && g->has_address)
		code = g->kind != CODE_KERNEL && f.header.e_type == ET_DYN
			       ? elf_file_image_shift(cli, &f, &d->shift)
			       : elf_file_kernel_shift(cli, &f, &d->shift);
	elf_file_close(&f);
	if (!code)
		d->lines = names_lines_read(n, g->path);
	if (!code && !d->lines)
		d->lines = ask(cli, n, g->path);
}

static bool in_given(struct cli *cli, const struct code_names *n, const struct names_space *space,
		     size_t i, u64 ip, struct place *p)
{
	const struct code_given *g = &n->files.given[i];
	struct names_debug *d = &n->debug[i];

	if (!code_is_for(g, space->vm) || (space->host && g->not_host))
		return false;
	if (!d->tried)
		read_given(cli, n, i);
	p->lines = d->lines;
	p->address = names_moved(space, g, ip) - d->shift;
	return p->lines != NULL;
}

/* Place number @i for @ip; 0: there are no more, -1: not this one. */
static int place_of(struct cli *cli, const struct code_names *n, const struct names_space *space,
		    u64 ip, size_t i, struct place *p)
{
	const struct vmpt_guest_kernel *k = space->guest ? &space->guest->kernel : NULL;
	struct names_file file = { 0 };
	size_t program;

	if (i < n->debugs)
		return in_given(cli, n, space, i, ip, p) ? 1 : -1;
	i -= n->debugs;
	if (ip >> 63 && k && k->build_id_size) {
		file.path = "";
		file.build_id = k->build_id;
		file.build_id_size = k->build_id_size;
		p->lines = names_programs_lines(cli, n, &file, i, NULL);
		p->address = ip - k->offset;
	} else if (!(ip >> 63) && names_file_at(n, space, ip, &file) &&
		   (file.build_id || file.here)) {
		p->lines = names_programs_lines(cli, n, &file, i, &p->address);
	} else if (names_match_find(cli, n, space, ip, &program, &p->address)) {
		p->lines = names_program_lines(n, program, i);
	} else {
		return 0;
	}
	return p->lines != NULL;
}

/* From a file's addresses to those of @ip, which is @p->address there. */
static void move(const struct vmpt_line *from, const struct place *p, u64 ip, struct names_line *to)
{
	*to = (struct names_line){ .file = from->file,
				   .line = from->line,
				   .start = from->start + (ip - p->address),
				   .end = from->end + (ip - p->address),
				   .from = p->lines,
				   .unit = from->unit };
}

static bool find(struct cli *cli, const struct code_names *n, const struct names_space *space,
		 u64 ip, struct place *p, struct vmpt_line *line)
{
	size_t i;
	int ret;

	for (i = 0; n->ops && (ret = place_of(cli, n, space, ip, i, p)) != 0; i++)
		if (ret > 0 && n->ops->find(p->lines, p->address, line))
			return true;
	return false;
}

bool names_lines_find(struct cli *cli, const struct code_names *n, const struct names_space *space,
		      u64 ip, struct names_line *line)
{
	struct vmpt_line found;
	struct place p;

	if (!find(cli, n, space, ip, &p, &found))
		return false;
	move(&found, &p, ip, line);
	return true;
}

struct taker {
	int (*take)(void *opaque, const struct names_line *line);
	void *opaque;
	struct place place;
	u64 ip;
};

static int take_line(void *opaque, const struct vmpt_line *from)
{
	const struct taker *t = opaque;
	struct names_line line;

	move(from, &t->place, t->ip, &line);
	return t->take(t->opaque, &line);
}

int names_lines_unit(struct cli *cli, const struct code_names *n, const struct names_space *space,
		     u64 ip, int (*take)(void *opaque, const struct names_line *line), void *opaque)
{
	struct taker t = { .take = take, .opaque = opaque, .ip = ip };
	struct vmpt_line found;

	if (!find(cli, n, space, ip, &t.place, &found))
		return 0;
	return n->ops->unit(t.place.lines, t.place.address, take_line, &t);
}
