// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* Code of guests: copies of ELF files' executable segments, and of raw files. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/symbols/file.h"
#include "util/array.h"

/* Limit for one program's code; anything larger is not a program. */
#define PIECE_MAX (1ULL << 30)

/* All @n bytes at @offset; false: the file has fewer. */
static bool read_at(const struct elf_file *f, u8 *bytes, u64 n, u64 offset)
{
	while (n) {
		ssize_t done = pread(f->fd, bytes, n, (off_t)offset);

		if (done < 0 && errno == EINTR)
			continue;
		if (done <= 0)
			return false;
		bytes += done;
		n -= (u64)done;
		offset += (u64)done;
	}
	return true;
}

static int add_piece(struct cli *cli, struct elf_code *code, const struct elf_file *f,
		     const GElf_Phdr *segment, u64 shift)
{
	struct elf_piece *piece;

	if (vmpt_grow(&code->piece, code->count))
		return cli_no_memory(cli);
	piece = &code->piece[code->count];
	*piece = (struct elf_piece){ segment->p_vaddr + shift, segment->p_filesz, NULL, NULL };
	if (segment->p_filesz <= PIECE_MAX && segment->p_offset <= f->size &&
	    segment->p_filesz <= f->size - segment->p_offset) {
		piece->bytes = malloc(segment->p_filesz);
		if (!piece->bytes)
			return cli_no_memory(cli);
		code->count++;
		if (read_at(f, piece->bytes, piece->size, segment->p_offset))
			return CLI_OK;
	}
	cli_error(cli, "%s: truncated: its code is beyond its end", f->path);
	return CLI_FAILED;
}

static int add_segments(struct cli *cli, struct elf_code *code, const struct elf_file *f, u64 shift)
{
	size_t i, before = code->count;
	GElf_Phdr segment;
	int ret = CLI_OK;

	for (i = 0; i < f->segments && !ret; i++)
		if (elf_file_loaded(f, i, &segment) && segment.p_flags & PF_X && segment.p_filesz)
			ret = add_piece(cli, code, f, &segment, shift);
	if (!ret && code->count == before) {
		cli_error(cli, "%s: has no code", f->path);
		ret = CLI_FAILED;
	}
	return ret;
}

/* All bytes of the file. */
static int add_raw(struct cli *cli, struct elf_code *code, const struct code_given *given)
{
	struct elf_file f = { .path = given->path };
	GElf_Phdr all = { .p_vaddr = given->address };
	struct stat st;
	int ret = CLI_FAILED;

	f.fd = open(given->path, O_RDONLY | O_CLOEXEC);
	if (f.fd < 0 || fstat(f.fd, &st)) {
		cli_error(cli, "cannot open %s: %s", given->path, strerror(errno));
	} else if (!S_ISREG(st.st_mode) || !st.st_size) {
		cli_error(cli, "%s: has no code", given->path);
	} else {
		f.size = all.p_filesz = (u64)st.st_size;
		ret = add_piece(cli, code, &f, &all, 0);
	}
	if (f.fd >= 0)
		close(f.fd);
	return ret;
}

static int add_elf(struct cli *cli, struct elf_code *code, const struct code_given *given)
{
	struct elf_file f;
	u64 shift = 0;
	int ret = elf_file_open(cli, given, &f);

	if (!ret)
		ret = given->kind == CODE_KERNEL ? elf_file_kernel_shift(cli, &f, &shift)
						 : elf_file_image_shift(cli, &f, &shift);
	if (!ret)
		ret = add_segments(cli, code, &f, shift);
	elf_file_close(&f);
	return ret;
}

int elf_code_add(struct cli *cli, struct elf_code *code, const struct code_given *given)
{
	size_t i = code->count;
	int ret;

	if (given->only_names || given->kind == CODE_SYMBOLS || given->kind == CODE_JIT)
		return CLI_OK;
	ret = given->kind == CODE_RAW ? add_raw(cli, code, given) : add_elf(cli, code, given);
	for (; i < code->count; i++)
		code->piece[i].given = given;
	code->by_vm |= given->vm != NULL;
	return ret;
}

void elf_code_free(struct elf_code *code)
{
	size_t i;

	for (i = 0; i < code->count; i++)
		free(code->piece[i].bytes);
	free(code->piece);
	memset(code, 0, sizeof(*code));
}

size_t elf_code_read(const struct elf_code *code, const char *vm, u64 ip, u8 *buf, size_t n)
{
	size_t i;

	for (i = 0; i < code->count; i++) {
		const struct elf_piece *p = &code->piece[i];

		if (ip - p->start >= p->size || !code_is_for(p->given, vm))
			continue;
		if (n > p->size - (ip - p->start))
			n = p->size - (ip - p->start);
		memcpy(buf, p->bytes + (ip - p->start), n);
		return n;
	}
	return 0;
}
