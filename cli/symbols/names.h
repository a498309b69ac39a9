/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Whose code an address is: the function, and the process. Names are, in this order, of the files
 * that were given (--symbols), of the kernel in the VM's memory image or in the recording, and of
 * programs with the build ids that processes have mapped, from the folders that were given.
 * Processes are those of the recording at that time, else of the image.
 */
#ifndef VMPT_CLI_SYMBOLS_NAMES_H
#define VMPT_CLI_SYMBOLS_NAMES_H

#include <gelf.h>

#include "cli/symbols/code.h"
#include "cli/symbols/tasks.h"
#include "decoder/vmpt-guest.h"

/* A guest, in the image @given. */
struct names_guest {
	const struct code_given *given;
	struct vmpt_guest *guest;
	struct vmpt_guest_kernel kernel;
};

struct names_program;

struct code_names {
	struct code_files files; /* of --symbols */
	struct elf_symbols symbols;
	struct names_guest *guest;
	size_t guests;
	struct names_program *program; /* of the folders, by build id */
	size_t programs;
	struct code_tasks *tasks; /* of the recording; NULL: none */
};

/* An address space, to be asked for once: code_names_space(). */
struct names_space {
	const char *vm;			    /* NULL: not known */
	const struct names_guest *guest;    /* NULL: no image of this VM's memory is known */
	const struct code_tasks *tasks;	    /* of the recording, or NULL */
	const struct vmpt_guest_task *task; /* NULL: not known */
	const struct vmpt_guest_map *map;   /* of .task */
	size_t maps;
	u64 from, to; /* TSC: it is to be asked for again outside of [from, to) */
};

struct names_found {
	const char *name;   /* safe for a terminal */
	const char *module; /* or the program's file; NULL: the kernel, or a given file; not safe */
	u64 offset;	    /* in the function; in the file if .name is NULL */
	char safe[CLI_WHO]; /* where .name may be */
};

/* The row of --symbols. */
#define CODE_SYMBOLS_OPTION(type, field)                                                         \
	{                                                                                        \
		"symbols", 0, CLI_FILE, "[VM:]FILE[@ADDR]",                                      \
			"names of functions: an ELF file, a list like System.map; or a folder, " \
			"in which programs are found by their build ids",                        \
			CLI_AT(type, field)                                                      \
	}

/* Read the files and folders of --symbols. 0, or an exit code after a message; close in any case.
 */
int code_names_open(struct cli *cli, const struct cli_strings *list, struct code_names *n);
/*
 * Look for a guest in @image, which must stay open longer than @n; that it has none is no error.
 * Symbols that were given for this VM must be of its kernel: CLI_FAILED if their build id is
 * another.
 */
int code_names_add_image(struct cli *cli, struct code_names *n, const struct code_given *given,
			 struct vmpt_image *image);
void code_names_close(struct code_names *n);
/* Whether any name may be known. */
bool code_names_any(const struct code_names *n);
/* @vm: its name, its VMCS as tables have it, "host", or NULL; it must stay. */
void code_names_space(const struct code_names *n, const char *vm, bool has_cr3, u64 cr3,
		      struct names_space *space);
/* The same at a TSC of the trace; ~0: at its end. */
void code_names_space_at(const struct code_names *n, const char *vm, bool has_cr3, u64 cr3, u64 tsc,
			 struct names_space *space);
/* The function at @ip; false: not even the file is known. */
bool code_names_find(struct cli *cli, const struct code_names *n, const struct names_space *space,
		     u64 ip, struct names_found *found);

/* ---- programs.c ---- */

/* Add the ELF files in @folder that have a build id. 0, or an exit code after a message. */
int names_programs_add(struct cli *cli, struct code_names *n, const char *folder);
void names_programs_sort(const struct code_names *n);
void names_programs_free(struct code_names *n);
/* The function at @offset of the file with this build id, and the offset in it; NULL: not known. */
const char *names_programs_find(struct cli *cli, const struct code_names *n, const u8 *id,
				size_t size, u64 offset, u64 *into);
/* The build id of an ELF file; its size, 0: none. */
size_t names_build_id(Elf *elf, u8 id[64]);

#endif
