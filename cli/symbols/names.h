/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Whose code an address is: the function, and the process. Names are, in this order, of the files
 * that were given (--symbols), of the kernel in the VM's memory image, and of programs with the
 * build ids that processes in it have mapped, from the folders that were given.
 */
#ifndef VMPT_CLI_SYMBOLS_NAMES_H
#define VMPT_CLI_SYMBOLS_NAMES_H

#include <gelf.h>

#include "cli/lines/lines.h"
#include "cli/symbols/code.h"
#include "decoder/vmpt-guest.h"

/* A guest, in the image @given. */
struct names_guest {
	const struct code_given *given;
	struct vmpt_guest *guest;
	struct vmpt_guest_kernel kernel;
};

struct names_program;

/* The source lines of a file, read when one is asked for. */
struct names_debug {
	bool tried;
	u64 shift; /* added to the file's addresses */
	struct vmpt_lines *lines;
};

struct code_names {
	const struct cli_strings *given; /* --symbols */
	struct code_files files;	 /* of it and of the recording */
	struct elf_symbols symbols;
	struct names_guest *guest;
	size_t guests;
	struct names_program *program; /* of the folders, by build id */
	size_t programs;
	void *module;			  /* that reads lines; NULL: lines are not wanted */
	const struct vmpt_lines_ops *ops; /* of it */
	struct names_debug *debug;	  /* of .files */
};

/* An address space, to be asked for once: names_space(). */
struct names_space {
	const char *vm;			    /* NULL: not known */
	const struct names_guest *guest;    /* NULL: no image of this VM's memory is known */
	const struct vmpt_guest_task *task; /* NULL: not known */
	const struct vmpt_guest_map *map;   /* of .task */
	size_t maps;
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

/*
 * Read the files and folders of --symbols; @list must outlive @n. 0, or an exit code after a
 * message; close in any case.
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
/* The function at @ip; false: not even the file is known. */
bool code_names_find(struct cli *cli, const struct code_names *n, const struct names_space *space,
		     u64 ip, struct names_found *found);

/* ---- lines.c ---- */

/* A line of source, and code that is of it. */
struct names_line {
	const char *file; /* as the compiler named it: not safe; valid until the names are closed */
	u32 line;
	u64 start, end;	  /* code of the address space: [start, end) */
	const void *from; /* with .unit: lines of one compile unit have the same */
	u64 unit;
};

/* The row of --lines. */
#define CODE_LINES_OPTION(type, field)                                                      \
	{                                                                                   \
		"lines", 0, CLI_FLAG, NULL,                                                 \
			"source files and lines, of the debugging information in files of " \
			"--symbols",                                                        \
			CLI_AT(type, field)                                                 \
	}

/*
 * After code_names_open(): lines will be asked for. 0, or an exit code after a message: this vmpt
 * was built without libdw.
 */
int names_lines_open(struct cli *cli, struct code_names *n);
/* The line of @ip; false: not known. Ask once for [.start, .end): it costs two searches. */
bool names_lines_find(struct cli *cli, const struct code_names *n, const struct names_space *space,
		      u64 ip, struct names_line *line);
/*
 * All lines of the compile unit that has @ip, executed or not, until @take returns nonzero; returns
 * that, else 0.
 */
int names_lines_unit(struct cli *cli, const struct code_names *n, const struct names_space *space,
		     u64 ip, int (*take)(void *opaque, const struct names_line *line),
		     void *opaque);
void names_lines_close(struct code_names *n);
/* The lines of the file @path; NULL: it has none, or is no regular file. */
struct vmpt_lines *names_lines_read(const struct code_names *n, const char *path);
/* Open a regular file, whatever else the path has meanwhile become; -1: it is none. */
int names_open_regular(const char *path);

/*
 * The file with the debugging information of @path, which is open as @fd: by the name and the CRC
 * in it, beside it or in a folder of --symbols. -1: none.
 */
int names_debuglink_open(const struct code_names *n, const char *path, int fd);

/* ---- names.c, for the files here ---- */

/* What a process has mapped at an address. */
struct names_file {
	const char *path;
	const u8 *build_id; /* NULL: not known */
	size_t build_id_size;
	u64 offset; /* in the file */
};

/* False: no file is mapped there. */
bool names_file_at(const struct code_names *n, const struct names_space *space, u64 ip,
		   struct names_file *file);
/* @ip in the addresses of the file @given: a kernel of the trace's VM runs where KASLR put it. */
u64 names_moved(const struct names_space *space, const struct code_given *given, u64 ip);

/* ---- programs.c ---- */

/* Add the ELF files in @folder that have a build id. 0, or an exit code after a message. */
int names_programs_add(struct cli *cli, struct code_names *n, const char *folder);
void names_programs_sort(const struct code_names *n);
void names_programs_free(struct code_names *n);
/* The function at @offset of the file with this build id, and the offset in it; NULL: not known. */
const char *names_programs_find(struct cli *cli, const struct code_names *n, const u8 *id,
				size_t size, u64 offset, u64 *into);
/*
 * The files with this build id that have lines, one after the other: @nth 0, 1, ...; *@address,
 * unless it is NULL, is that of @offset in them. NULL: no more.
 */
struct vmpt_lines *names_programs_lines(struct cli *cli, const struct code_names *n, const u8 *id,
					size_t size, size_t nth, u64 offset, u64 *address);
/* File number @nth with this build id, open; -1: there is none. */
int names_programs_open(const struct code_names *n, const u8 *id, size_t size, size_t nth);
/* The build id of an ELF file; its size, 0: none. */
size_t names_build_id(Elf *elf, u8 id[64]);

#endif
