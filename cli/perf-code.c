// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* Segments of ELF files as perf's mmap records want them. */
#include <errno.h>
#include <fcntl.h>
#include <gelf.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/perf-code.h"

#define PAGE 4096ULL

/* An ELF file of the command line. */
struct elf_file {
	char *path; /* without @ADDR */
	bool has_address;
	u64 address;
	int fd;
	Elf *elf;
	GElf_Ehdr header;
	size_t segments;
};

/* ---- opening; each 0, or an exit code after a message ---- */

/* "FILE[@ADDR]"; a file may be called so itself. */
static int parse_name(struct cli *cli, const char *what, const char *arg, struct elf_file *f)
{
	const char *at = access(arg, F_OK) ? strrchr(arg, '@') : NULL;

	f->path = strdup(arg);
	if (!f->path)
		return cli_no_memory(cli);
	if (!at)
		return CLI_OK;
	f->path[at - arg] = '\0';
	f->has_address = true;
	return cli_parse_u64(cli, what, at + 1, &f->address) ? CLI_USAGE : CLI_OK;
}

static int open_elf(struct cli *cli, struct elf_file *f)
{
	f->fd = open(f->path, O_RDONLY | O_CLOEXEC);
	if (f->fd < 0) {
		cli_error(cli, "cannot open %s: %s", f->path, strerror(errno));
		return CLI_FAILED;
	}
	elf_version(EV_CURRENT);
	f->elf = elf_begin(f->fd, ELF_C_READ, NULL);
	if (!f->elf || elf_kind(f->elf) != ELF_K_ELF || !gelf_getehdr(f->elf, &f->header) ||
	    elf_getphdrnum(f->elf, &f->segments)) {
		cli_error(cli, "%s: not an ELF file that can be read", f->path);
		return CLI_FAILED;
	}
	if ((f->header.e_machine != EM_X86_64 && f->header.e_machine != EM_386) ||
	    (f->header.e_type != ET_EXEC && f->header.e_type != ET_DYN)) {
		cli_error(cli, "%s: neither a program nor a library for x86", f->path);
		return CLI_FAILED;
	}
	return CLI_OK;
}

static void close_elf(struct elf_file *f)
{
	elf_end(f->elf);
	if (f->fd >= 0)
		close(f->fd);
	free(f->path);
}

/* ---- maps ---- */

static struct perf_map *new_map(struct cli *cli, struct perf_code *code)
{
	struct perf_map *map = realloc(code->map, (code->count + 1) * sizeof(*map));

	if (!map) {
		cli_no_memory(cli);
		return NULL;
	}
	code->map = map;
	map += code->count++;
	memset(map, 0, sizeof(*map));
	return map;
}

/* Segment @i if it is loaded and has bytes. */
static bool loaded(const struct elf_file *f, size_t i, GElf_Phdr *segment)
{
	return gelf_getphdr(f->elf, (int)i, segment) && segment->p_type == PT_LOAD &&
	       segment->p_memsz;
}

static u64 page_up(u64 address)
{
	return (address + PAGE - 1) & ~(PAGE - 1);
}

static u64 page_down(u64 address)
{
	return address & ~(PAGE - 1);
}

/* Symbol _text in a symbol table; false: there is none. */
static bool find_text(Elf_Scn *section, const GElf_Shdr *header, Elf *elf, u64 *address)
{
	Elf_Data *data = elf_getdata(section, NULL);
	size_t i, n = header->sh_entsize ? header->sh_size / header->sh_entsize : 0;
	GElf_Sym symbol;

	for (i = 0; data && i < n && gelf_getsym(data, (int)i, &symbol); i++) {
		const char *name = elf_strptr(elf, header->sh_link, symbol.st_name);

		if (name && !strcmp(name, "_text")) {
			*address = symbol.st_value;
			return true;
		}
	}
	return false;
}

static bool kernel_text(const struct elf_file *f, u64 *address)
{
	Elf_Scn *section = NULL;
	GElf_Shdr header;

	while ((section = elf_nextscn(f->elf, section)) != NULL)
		if (gelf_getshdr(section, &header) && header.sh_type == SHT_SYMTAB &&
		    find_text(section, &header, f->elf, address))
			return true;
	return false;
}

/*
 * From _text to the end of the last executable segment: perf takes the sections' places from
 * the file itself, moved by what _text was moved.
 */
static int add_kernel(struct cli *cli, struct perf_code *code, const struct elf_file *f)
{
	u64 text, end = 0;
	struct perf_map *map;
	GElf_Phdr segment;
	size_t i;

	if (!kernel_text(f, &text)) {
		cli_error(cli, "%s: no symbol _text, by which perf finds the kernel", f->path);
		fprintf(stderr, "  take a vmlinux that is not stripped\n");
		return CLI_FAILED;
	}
	for (i = 0; i < f->segments; i++)
		if (loaded(f, i, &segment) && segment.p_flags & PF_X &&
		    segment.p_vaddr + segment.p_memsz > end)
			end = segment.p_vaddr + segment.p_memsz;
	if (end <= text) {
		cli_error(cli, "%s: no code behind _text", f->path);
		return CLI_FAILED;
	}
	map = new_map(cli, code);
	if (!map)
		return CLI_FAILED;
	map->kernel = true;
	map->size = end - text;
	map->start = map->offset = f->has_address ? f->address : text;
	return CLI_OK;
}

/* How far the file is moved: what is added to its addresses. */
static int image_shift(struct cli *cli, const struct elf_file *f, u64 *shift)
{
	GElf_Phdr segment;
	size_t i;

	*shift = 0;
	if (f->header.e_type == ET_EXEC) {
		if (!f->has_address)
			return CLI_OK;
		cli_error(cli, "%s: has addresses of its own: name it without @ADDR", f->path);
		return CLI_FAILED;
	}
	if (!f->has_address) {
		cli_error(cli,
			  "%s: is position independent: say with @ADDR where its first page is",
			  f->path);
		return CLI_FAILED;
	}
	if (f->address % PAGE) {
		cli_error(cli, "%s: 0x%llx is not the start of a page", f->path,
			  (unsigned long long)f->address);
		return CLI_FAILED;
	}
	for (i = 0; i < f->segments; i++) {
		if (!loaded(f, i, &segment))
			continue;
		*shift = f->address - page_down(segment.p_vaddr);
		return CLI_OK;
	}
	return CLI_OK;
}

/* perf would take the code of one of them for that of both. @before: maps of other images. */
static int check_overlap(struct cli *cli, const struct perf_code *code, size_t before)
{
	const struct perf_map *map = &code->map[code->count - 1];
	size_t i;

	for (i = 0; i < before; i++) {
		const struct perf_map *other = &code->map[i];

		if (other->kernel || map->start >= other->start + other->size ||
		    other->start >= map->start + map->size)
			continue;
		cli_error(cli, "--image: %s and %s are both at 0x%llx", other->file, map->file,
			  (unsigned long long)(map->start > other->start ? map->start
									 : other->start));
		fprintf(stderr, "  to perf a VM is one process: name one of them, or link one"
				" to another address\n");
		return CLI_FAILED;
	}
	return CLI_OK;
}

static int add_image(struct cli *cli, struct perf_code *code, const struct elf_file *f)
{
	size_t i, before = code->count;
	struct perf_map *map;
	GElf_Phdr segment;
	u64 shift;

	if (image_shift(cli, f, &shift))
		return CLI_FAILED;
	for (i = 0; i < f->segments; i++) {
		if (!loaded(f, i, &segment) || !(segment.p_flags & PF_X) || !segment.p_filesz)
			continue;
		map = new_map(cli, code);
		if (!map)
			return CLI_FAILED;
		map->start = page_down(segment.p_vaddr) + shift;
		map->size = page_up(segment.p_vaddr + segment.p_filesz) + shift - map->start;
		map->offset = page_down(segment.p_offset);
		map->file = realpath(f->path, NULL);
		if (!map->file) {
			cli_error(cli, "%s: %s", f->path, strerror(errno));
			return CLI_FAILED;
		}
		if (check_overlap(cli, code, before))
			return CLI_FAILED;
	}
	if (code->count > before)
		return CLI_OK;
	cli_error(cli, "%s: has no code", f->path);
	return CLI_FAILED;
}

static int add(struct cli *cli, struct perf_code *code, const char *what, const char *arg,
	       int (*add_file)(struct cli *cli, struct perf_code *code, const struct elf_file *f))
{
	struct elf_file f = { .fd = -1 };
	int ret = parse_name(cli, what, arg, &f);

	if (!ret)
		ret = open_elf(cli, &f);
	if (!ret)
		ret = add_file(cli, code, &f);
	close_elf(&f);
	return ret;
}

int perf_code_kernel(struct cli *cli, struct perf_code *code, const char *arg)
{
	return add(cli, code, "--kernel", arg, add_kernel);
}

int perf_code_image(struct cli *cli, struct perf_code *code, const char *arg)
{
	return add(cli, code, "--image", arg, add_image);
}

void perf_code_free(struct perf_code *code)
{
	size_t i;

	for (i = 0; i < code->count; i++)
		free(code->map[i].file);
	free(code->map);
	*code = (struct perf_code){ 0 };
}
