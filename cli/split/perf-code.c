// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* Segments of ELF files for perf's mmap records. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cli/symbols/symbols.h"
#include "cli/split/perf-code.h"
#include "util/array.h"

#define PAGE 4096ULL

static struct perf_map *new_map(struct cli *cli, struct perf_code *code)
{
	struct perf_map *map;

	if (vmpt_grow(&code->map, code->count)) {
		cli_no_memory(cli);
		return NULL;
	}
	map = &code->map[code->count++];
	memset(map, 0, sizeof(*map));
	return map;
}

static u64 page_up(u64 address)
{
	return (address + PAGE - 1) & ~(PAGE - 1);
}

static u64 page_down(u64 address)
{
	return address & ~(PAGE - 1);
}

/*
 * From _text to the end of the last executable segment: perf reads the sections' addresses from
 * the file itself, and moves them as far as _text was moved.
 */
static int add_kernel(struct cli *cli, struct perf_code *code, const struct elf_file *f)
{
	u64 text, end = 0;
	struct perf_map *map;
	GElf_Phdr segment;
	size_t i;

	if (!elf_file_text(f, &text)) {
		cli_error(cli, "%s: no symbol _text, by which perf finds the kernel", f->path);
		fprintf(stderr, "  use a vmlinux that is not stripped\n");
		return CLI_FAILED;
	}
	for (i = 0; i < f->segments; i++)
		if (elf_file_loaded(f, i, &segment) && segment.p_flags & PF_X &&
		    segment.p_vaddr + segment.p_memsz > end)
			end = segment.p_vaddr + segment.p_memsz;
	if (end <= text) {
		cli_error(cli, "%s: no code after _text", f->path);
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

/* perf would use the code of one for both. @before: maps of other images. */
static int check_overlap(struct cli *cli, const struct perf_code *code, size_t before,
			 const struct code_given *given)
{
	const struct perf_map *map = &code->map[code->count - 1];
	size_t i;

	for (i = 0; i < before; i++) {
		const struct perf_map *other = &code->map[i];

		if (other->kernel ||
		    (given->vm && other->given->vm && strcmp(given->vm, other->given->vm) != 0))
			continue;
		if (map->start >= other->start + other->size ||
		    other->start >= map->start + map->size)
			continue;
		cli_error(cli, "%s and %s are both at 0x%llx", other->file, map->file,
			  (unsigned long long)(map->start > other->start ? map->start
									 : other->start));
		fprintf(stderr, "  to perf a VM is one process: give only one of them, or link one"
				" to another address\n");
		return CLI_FAILED;
	}
	return CLI_OK;
}

static int add_image(struct cli *cli, struct perf_code *code, const struct elf_file *f,
		     const struct code_given *given)
{
	size_t i, before = code->count;
	struct perf_map *map;
	GElf_Phdr segment;
	u64 shift = 0;

	if (elf_file_image_shift(cli, f, &shift))
		return CLI_FAILED;
	if (f->has_address && f->address % PAGE) {
		cli_error(cli, "%s: 0x%llx is not the start of a page", f->path,
			  (unsigned long long)f->address);
		return CLI_FAILED;
	}
	for (i = 0; i < f->segments; i++) {
		if (!elf_file_loaded(f, i, &segment) || !(segment.p_flags & PF_X) ||
		    !segment.p_filesz)
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
		if (check_overlap(cli, code, before, given))
			return CLI_FAILED;
	}
	if (code->count > before)
		return CLI_OK;
	cli_error(cli, "%s: has no code", f->path);
	return CLI_FAILED;
}

/* Of two kernels of a VM the first counts, if it is an option's. */
static bool has_kernel(const struct perf_code *code, const struct code_given *given)
{
	size_t i;

	for (i = 0; i < code->count; i++)
		if (code->map[i].kernel && (!code->map[i].given->vm || !given->vm ||
					    !strcmp(code->map[i].given->vm, given->vm)))
			return true;
	return false;
}

int perf_code_add(struct cli *cli, struct perf_code *code, const struct code_given *given)
{
	size_t i = code->count;
	struct elf_file f;
	int ret;

	if (given->kind == CODE_RAW && given->option) {
		cli_error(cli, "%s: perf reads no raw bytes: give an ELF file", given->path);
		return CLI_FAILED;
	}
	if (given->kind == CODE_RAW || given->kind == CODE_SYMBOLS || given->kind == CODE_JIT)
		return CLI_OK;
	if (given->kind == CODE_KERNEL && has_kernel(code, given)) {
		if (!given->option)
			return CLI_OK;
		return cli_usage(cli, "%s: a guest has only one kernel", given->option);
	}
	ret = elf_file_open(cli, given, &f);
	if (!ret)
		ret = given->kind == CODE_KERNEL ? add_kernel(cli, code, &f)
						 : add_image(cli, code, &f, given);
	for (; i < code->count; i++)
		code->map[i].given = given;
	code->by_vm |= given->vm != NULL;
	elf_file_close(&f);
	return ret;
}

void perf_code_free(struct perf_code *code)
{
	size_t i;

	for (i = 0; i < code->count; i++)
		free(code->map[i].file);
	free(code->map);
	*code = (struct perf_code){ 0 };
}
