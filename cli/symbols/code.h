/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * A guest's code and the names of its functions, from ELF files and lists of kernel symbols.
 * Addresses are the guest's.
 */
#ifndef VMPT_CLI_ELF_CODE_H
#define VMPT_CLI_ELF_CODE_H

#include "cli/base/base.h"

/* Bytes of a file at [@start, @start + @size). */
struct elf_piece {
	u64 start, size;
	u8 *bytes;
};

struct elf_code {
	struct elf_piece *piece;
	size_t count;
};

/*
 * Add what "FILE[@ADDR]" names: a kernel, with ADDR where its _text is if it was moved; or a
 * program or library, with ADDR where its first page is if it is position independent. 0, or the
 * exit code after a message.
 */
int elf_code_kernel(struct cli *cli, struct elf_code *code, const char *arg);
int elf_code_image(struct cli *cli, struct elf_code *code, const char *arg);
/* For an option that names the kernel: it is given only once. */
int elf_take_kernel(struct cli *cli, void *to, const char *arg);
void elf_code_free(struct elf_code *code);

/* Up to @n bytes at @ip into @buf: how many there are. */
size_t elf_code_read(const struct elf_code *code, u64 ip, u8 *buf, size_t n);

/* ---- symbols ---- */

struct elf_symbol {
	u64 address, size; /* size 0: up to the next one */
	char *name;	   /* safe for a terminal */
	u32 file;	   /* which of the --symbols */
};

struct elf_symbols {
	struct elf_symbol *symbol; /* by file, then address */
	size_t count;
	u32 files;
};

/*
 * Add the functions of "FILE[@ADDR]", an ELF file or a text like /proc/kallsyms or System.map;
 * ADDR is added to the addresses of a file that is position independent.
 */
int elf_symbols_add(struct cli *cli, struct elf_symbols *symbols, const char *arg);
/* After the last one was added. */
void elf_symbols_sort(struct elf_symbols *symbols);
void elf_symbols_free(struct elf_symbols *symbols);
/* The function of file number @file that has @ip, and the offset in it; NULL: none. */
const char *elf_symbols_find(const struct elf_symbols *symbols, u32 file, u64 ip, u64 *into);

#endif
