/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* ELF files of guests: their contents, and how far they moved. */
#ifndef VMPT_CLI_ELF_FILE_H
#define VMPT_CLI_ELF_FILE_H

#include <gelf.h>

#include "cli/symbols/code.h"

struct elf_file {
	const char *path; /* of the given file, as the address */
	bool has_address;
	u64 address;
	int fd;
	u64 size;
	Elf *elf;
	GElf_Ehdr header;
	size_t segments;
};

/* Open a program or a library; @given must outlive @f. Close it in any case. */
int elf_file_open(struct cli *cli, const struct code_given *given, struct elf_file *f);
/* The same of any kind of ELF file. */
int elf_file_open_named(struct cli *cli, const struct code_given *given, struct elf_file *f);
void elf_file_close(struct elf_file *f);

/* Segment @i if it is loaded. */
bool elf_file_loaded(const struct elf_file *f, size_t i, GElf_Phdr *segment);
/* Where its symbol _text is; false: it has none. */
bool elf_file_text(const struct elf_file *f, u64 *address);
/* What is added to its addresses: as a kernel, by its _text; as a program, by its first page. */
int elf_file_kernel_shift(struct cli *cli, const struct elf_file *f, u64 *shift);
int elf_file_image_shift(struct cli *cli, const struct elf_file *f, u64 *shift);

/* Call @take with each defined symbol until it returns nonzero; returns that. */
int elf_file_symbols(const struct elf_file *f, unsigned int section_type,
		     int (*take)(void *opaque, const char *name, const GElf_Sym *symbol),
		     void *opaque);

#endif
