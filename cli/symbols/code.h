/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * A guest's code and the names of its functions, from ELF files and lists of kernel symbols.
 * Addresses are the guest's.
 */
#ifndef VMPT_CLI_ELF_CODE_H
#define VMPT_CLI_ELF_CODE_H

#include "cli/symbols/given.h"

/* Bytes of a file at [@start, @start + @size). */
struct elf_piece {
	u64 start, size;
	const struct code_given *given;
	u8 *bytes;
};

struct elf_code {
	struct elf_piece *piece;
	size_t count;
	bool by_vm; /* some are of one VM only */
};

/* Add the code of a file, which must outlive it; none of symbols. 0, or an exit code. */
int elf_code_add(struct cli *cli, struct elf_code *code, const struct code_given *given);
void elf_code_free(struct elf_code *code);

/* Up to @n bytes at @ip of VM @vm (NULL: not known) into @buf: how many there are. */
size_t elf_code_read(const struct elf_code *code, const char *vm, u64 ip, u8 *buf, size_t n);

/* ---- modules ---- */

/* The file @name, in @folder of a build or installed, of dlopen(); NULL: vmpt was built without. */
void *code_module(const char *folder, const char *name);
/* Whether kdump-compressed dumps can be read. */
bool code_has_kdump(void);

/* ---- symbols ---- */

struct elf_symbol {
	u64 address, size; /* size 0: up to the next one */
	char *name;	   /* safe for a terminal */
	u32 file;	   /* the number of the file */
};

struct elf_symbols {
	struct elf_symbol *symbol; /* by file, then address */
	size_t count;
	u32 files;
};

/* Add the functions of the next file. Only --symbols must have some. 0, or an exit code. */
int elf_symbols_add(struct cli *cli, struct elf_symbols *symbols, const struct code_given *given);
/* After the last one was added. */
void elf_symbols_sort(struct elf_symbols *symbols);
void elf_symbols_free(struct elf_symbols *symbols);
/* The function of file number @file that has @ip, and the offset in it; NULL: none. */
const char *elf_symbols_find(const struct elf_symbols *symbols, u32 file, u64 ip, u64 *into);

#endif
