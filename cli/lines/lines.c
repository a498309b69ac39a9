// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Source lines by libdw. Only what is asked for is read: first where the code of each compile unit
 * is, then a unit's table of lines. Files are hostile: what they make libdw read and keep is
 * bounded by their size, and the number of ranges by RANGES_MAX.
 */
#include <dwarf.h>
#include <elfutils/libdw.h>
#include <elfutils/libdwelf.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/lines/lines.h"
#include "util/array.h"
#include "util/hash.h"
#include "util/search.h"

#define RANGES_MAX (1u << 22)
#define STEPS_MAX  (1u << 24)

/* Code of a unit. */
struct range {
	u64 start, end;
	Dwarf_Off die;
};

/* An ELF file with its DWARF; all 0: none. */
struct file {
	int fd;
	Elf *elf;
	Dwarf *dwarf;
};

/* A name that is relative to where its unit was compiled, and the whole of it. */
struct name {
	const char *from; /* libdw's */
	Dwarf_Off unit;
	char *path;
};

struct vmpt_lines {
	struct file file, alt;
	struct range *range; /* by .start */
	size_t ranges, steps;
	struct name *name;
	size_t names;
	struct vmpt_hash name_of;
};

static bool open_file(struct file *f, int fd)
{
	*f = (struct file){ .fd = fcntl(fd, F_DUPFD_CLOEXEC, 1) };
	if (f->fd < 0)
		return false;
	elf_version(EV_CURRENT);
	/* Not mapped: the file may become shorter while it is read. */
	f->elf = elf_begin(f->fd, ELF_C_READ, NULL);
	f->dwarf = f->elf ? dwarf_begin_elf(f->elf, DWARF_C_READ, NULL) : NULL;
	return f->dwarf != NULL;
}

static void close_file(struct file *f)
{
	if (f->dwarf)
		dwarf_end(f->dwarf);
	if (f->elf)
		elf_end(f->elf);
	if (f->fd > 0)
		close(f->fd);
}

/* ---- where units are ---- */

static int by_start(const void *x, const void *y)
{
	const struct range *a = x, *b = y;

	if (a->start != b->start)
		return a->start < b->start ? -1 : 1;
	return a->end < b->end ? -1 : a->end > b->end;
}

static bool add_ranges(struct vmpt_lines *l, Dwarf_Die *die)
{
	Dwarf_Addr base = 0, start, end;
	ptrdiff_t at = 0;

	while ((at = dwarf_ranges(die, at, &base, &start, &end)) > 0) {
		/* Units may have the same list, so it is not the file's size that limits this. */
		if (l->steps++ == STEPS_MAX)
			return false;
		/* The linker left out code at 0. */
		if (!start || end <= start)
			continue;
		if (l->ranges == RANGES_MAX || vmpt_grow(&l->range, l->ranges))
			return false;
		l->range[l->ranges++] = (struct range){ start, end, dwarf_dieoffset(die) };
	}
	return true;
}

static void read_units(struct vmpt_lines *l)
{
	Dwarf_CU *unit = NULL;
	Dwarf_Die die;
	u8 type;

	while (!dwarf_get_units(l->file.dwarf, unit, &unit, NULL, &type, &die, NULL))
		if ((type == DW_UT_compile || type == DW_UT_skeleton) && !add_ranges(l, &die))
			break;
	if (l->ranges)
		qsort(l->range, l->ranges, sizeof(*l->range), by_start);
}

static void close_lines(struct vmpt_lines *l)
{
	if (!l)
		return;
	close_file(&l->file);
	close_file(&l->alt);
	free(l->range);
	while (l->names)
		free(l->name[--l->names].path);
	free(l->name);
	vmpt_hash_free(&l->name_of);
	free(l);
}

/*
 * libdw itself would open whatever path a file names as what it shares with others, so a file whose
 * other one is not given is not used.
 */
static bool set_alt(struct vmpt_lines *l, int alt)
{
	const void *id;
	const char *name;

	if (dwelf_dwarf_gnu_debugaltlink(l->file.dwarf, &name, &id) <= 0)
		return true;
	if (alt < 0 || !open_file(&l->alt, alt))
		return false;
	dwarf_setalt(l->file.dwarf, l->alt.dwarf);
	return true;
}

static struct vmpt_lines *open_lines(int fd, int alt)
{
	struct vmpt_lines *l = calloc(1, sizeof(*l));

	if (l && open_file(&l->file, fd) && set_alt(l, alt))
		read_units(l);
	if (l && l->ranges)
		return l;
	close_lines(l);
	return NULL;
}

static size_t alt_id(int fd, u8 id[64])
{
	struct file f;
	const void *bytes;
	const char *name;
	ssize_t n = open_file(&f, fd) ? dwelf_dwarf_gnu_debugaltlink(f.dwarf, &name, &bytes) : 0;

	if (n > 0 && n <= 64)
		memcpy(id, bytes, (size_t)n);
	close_file(&f);
	return n > 0 && n <= 64 ? (size_t)n : 0;
}

/* ---- lines ---- */

/* The lines of the unit that has @address, *@count of them; NULL: none. */
static Dwarf_Lines *lines_at(struct vmpt_lines *l, u64 address, size_t *count, u64 *unit)
{
	size_t i = vmpt_search(k, 0, l->ranges, l->range[k].start <= address);
	Dwarf_Lines *lines;
	Dwarf_Die die;

	if (!i || l->range[i - 1].end <= address ||
	    !dwarf_offdie(l->file.dwarf, l->range[i - 1].die, &die) ||
	    dwarf_getsrclines(&die, &lines, count) || !*count)
		return NULL;
	*unit = l->range[i - 1].die;
	return lines;
}

static u64 address_of(Dwarf_Lines *lines, size_t i)
{
	Dwarf_Addr address = 0;

	dwarf_lineaddr(dwarf_onesrcline(lines, i), &address);
	return address;
}

/* The folder in which a unit was compiled; NULL: it does not say. */
static const char *folder_of(const struct vmpt_lines *l, Dwarf_Off unit)
{
	Dwarf_Attribute attr;
	Dwarf_Die die;

	if (!dwarf_offdie(l->file.dwarf, unit, &die) || !dwarf_attr(&die, DW_AT_comp_dir, &attr))
		return NULL;
	return dwarf_formstring(&attr);
}

/* A relative name with its unit's folder before it; once for each. */
static const char *whole(struct vmpt_lines *l, const char *file, Dwarf_Off unit)
{
	const u64 hash = vmpt_mix64((u64)(uintptr_t)file ^ vmpt_mix64(unit));
	u32 i = vmpt_hash_find(&l->name_of, hash, k,
			       l->name[k].from == file && l->name[k].unit == unit);
	const char *folder;
	struct name *n;

	if (!file || file[0] == '/')
		return file;
	if (i != VMPT_HASH_NONE)
		return l->name[i].path;
	folder = folder_of(l, unit);
	if (!folder || vmpt_grow(&l->name, l->names))
		return file;
	n = &l->name[l->names];
	*n = (struct name){ file, unit, NULL };
	if (asprintf(&n->path, "%s/%s", folder, file) < 0)
		return file;
	if (vmpt_hash_add(&l->name_of, hash, (u32)l->names)) {
		free(n->path);
		return file;
	}
	return l->name[l->names++].path;
}

/* Row @i, up to row @next, the first that is not at its address. False: it is no line. */
static bool row(struct vmpt_lines *in, Dwarf_Lines *lines, size_t i, size_t next, u64 unit,
		struct vmpt_line *line)
{
	Dwarf_Line *l = dwarf_onesrcline(lines, i);
	bool end = true;
	int number = 0;

	if (dwarf_lineendsequence(l, &end) || end || dwarf_lineno(l, &number) || number < 1)
		return false;
	*line = (struct vmpt_line){ .file = whole(in, dwarf_linesrc(l, NULL, NULL), unit),
				    .line = (u32)number,
				    .start = address_of(lines, i),
				    .end = address_of(lines, next),
				    .unit = unit };
	return line->file && line->start < line->end;
}

/* The last row at or before @address is that of the line: those before it have no code. */
static bool find_line(struct vmpt_lines *l, u64 address, struct vmpt_line *line)
{
	size_t count = 0, i, next;
	u64 unit;
	Dwarf_Lines *lines = lines_at(l, address, &count, &unit);

	if (!lines)
		return false;
	next = vmpt_search(k, 0, count, address_of(lines, k) <= address);
	i = next;
	return i && next < count && row(l, lines, i - 1, next, unit, line);
}

static int each_line(struct vmpt_lines *l, u64 address,
		     int (*take)(void *opaque, const struct vmpt_line *line), void *opaque)
{
	size_t count = 0, i;
	u64 unit;
	Dwarf_Lines *lines = lines_at(l, address, &count, &unit);
	struct vmpt_line line;
	int ret = 0;

	for (i = 0; lines && i + 1 < count && !ret; i++)
		if (row(l, lines, i, i + 1, unit, &line))
			ret = take(opaque, &line);
	return ret;
}

__attribute__((visibility("default"))) extern const struct vmpt_lines_ops vmpt_lines_ops;
const struct vmpt_lines_ops vmpt_lines_ops = {
	.open = open_lines,
	.find = find_line,
	.unit = each_line,
	.close = close_lines,
	.alt = alt_id,
};
