// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* Code of guests from ELF files: copies of their executable segments. */
#include <errno.h>
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
	*piece = (struct elf_piece){ segment->p_vaddr + shift, segment->p_filesz, NULL };
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

static int add(struct cli *cli, struct elf_code *code, const char *what, const char *arg,
	       int (*find_shift)(struct cli *cli, const struct elf_file *f, u64 *shift))
{
	struct elf_file f;
	u64 shift = 0;
	int ret = elf_file_open(cli, what, arg, &f);

	if (!ret)
		ret = find_shift(cli, &f, &shift);
	if (!ret)
		ret = add_segments(cli, code, &f, shift);
	elf_file_close(&f);
	return ret;
}

int elf_code_kernel(struct cli *cli, struct elf_code *code, const char *arg)
{
	return add(cli, code, "--kernel", arg, elf_file_kernel_shift);
}

int elf_code_image(struct cli *cli, struct elf_code *code, const char *arg)
{
	return add(cli, code, "--image", arg, elf_file_image_shift);
}

void elf_code_free(struct elf_code *code)
{
	size_t i;

	for (i = 0; i < code->count; i++)
		free(code->piece[i].bytes);
	free(code->piece);
	memset(code, 0, sizeof(*code));
}

size_t elf_code_read(const struct elf_code *code, u64 ip, u8 *buf, size_t n)
{
	size_t i;

	for (i = 0; i < code->count; i++) {
		const struct elf_piece *p = &code->piece[i];

		if (ip - p->start >= p->size)
			continue;
		if (n > p->size - (ip - p->start))
			n = p->size - (ip - p->start);
		memcpy(buf, p->bytes + (ip - p->start), n);
		return n;
	}
	return 0;
}

int elf_take_kernel(struct cli *cli, void *to, const char *arg)
{
	(void)arg;
	if (!*(const char **)to)
		return 0;
	cli_usage(cli, "--kernel: a guest has only one");
	return -1;
}
