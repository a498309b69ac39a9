/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Whose code an address is: the function, the source line, and the process. Names are, in this
 * order, of the files that were given (--symbols), of the kernel in the VM's memory image or in the
 * recording, or of the host as perf recorded it, of programs with the build ids that processes have
 * mapped, of code made at run time, and of files that have the same code. Processes are those of
 * the recording at that time, else of the image.
 */
#ifndef VMPT_CLI_SYMBOLS_NAMES_H
#define VMPT_CLI_SYMBOLS_NAMES_H

#include <gelf.h>

#include "cli/lines/lines.h"
#include "cli/symbols/code.h"
#include "cli/symbols/tasks.h"
#include "decoder/vmpt-guest.h"
#include "decoder/vmpt-host.h"

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
	bool mangled; /* set before code_names_open(): names as in the symbol tables */
	struct names_demangler *demangler;
	bool ask; /* set before code_names_open(): ask servers for debugging information */
	struct names_debuginfod *server;
	const struct cli_strings *given; /* --symbols */
	struct code_files files;	 /* of it and of the recording */
	struct elf_symbols symbols;
	struct names_guest *guest;
	size_t guests;
	struct names_program *program; /* of the folders, by build id */
	size_t programs;
	struct names_match *match; /* programs by their code; NULL: not wanted */
	struct names_paths *paths; /* programs of this machine, by their paths */
	struct names_jit *jit;	   /* code that compilers made at run time */
	size_t jits;
	struct code_tasks *tasks; /* of the recording; NULL: none */
	struct names_vdso **vdso; /* that were read */
	size_t vdsos;
	struct vmpt_host *host; /* NULL: nothing is known of it */
	struct vmpt_host_kernel host_kernel;
	void *module;			  /* that reads lines; NULL: lines are not wanted */
	const struct vmpt_lines_ops *ops; /* of it */
	struct names_debug *debug;	  /* of the first .debugs of .files */
	size_t debugs;
};

/* An address space, to be asked for once: code_names_space(). */
struct names_space {
	const char *vm;			 /* NULL: not known */
	const struct names_guest *guest; /* NULL: no image of this VM's memory is known */
	const struct code_tasks *tasks;	 /* of the recording; NULL: none of this VM */
	bool has_cr3;
	u64 cr3, from, to;		    /* .task is that of TSCs in [from, to) */
	const struct vmpt_guest_task *task; /* NULL: not known */
	const struct vmpt_guest_map *map;   /* of .task */
	size_t maps;
	bool host; /* by records of perf: .process may be known */
	bool sure; /* by its CR3 */
	const struct vmpt_host_process *process;
	u64 kernel_text; /* where the host's kernel has _text; 0: not known */
	u64 tsc;	 /* when; ~0: not known */
	bool known;	 /* .in is: code_names_in() */
	struct vmpt_space in;
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
/*
 * Look for the host in the trace, if it is a perf.data; @clocks is of all streams of @cli, or NULL:
 * then processes are found by code_names_at() only. Call it after code_names_open().
 */
int code_names_add_host(struct cli *cli, struct code_names *n, const struct vmpt_clocks *clocks);
void code_names_close(struct code_names *n);
/* Whether any name may be known. */
bool code_names_any(const struct code_names *n);
/* @vm: its name, its VMCS as tables have it, "host", or NULL; it must stay. */
void code_names_space(const struct code_names *n, const char *vm, bool has_cr3, u64 cr3,
		      struct names_space *space);
/*
 * Which process it is at host TSC @tsc (VMPT_TIME_NONE: not known) on the CPU or the thread of
 * @stream, where its CR3 does not say it: a process of the host by context switches. True: .task is
 * another than before.
 */
bool code_names_at(const struct code_names *n, struct names_space *space,
		   const struct vmpt_stream *stream, u64 tsc);
/*
 * Find programs whose build ids are not known by their code, too, of which @code has what was
 * traced; it must outlive @n. Only spaces that code_names_in() was called for. After
 * code_names_open().
 */
int code_names_by_code(struct cli *cli, struct code_names *n, struct vmpt_code *code);
/* Say which address space of the trace @space is; after code_names_space(). */
void code_names_in(struct names_space *space, const struct vmpt_space *in);
/* The function at @ip; false: not even the file is known. */
bool code_names_find(struct cli *cli, const struct code_names *n, const struct names_space *space,
		     u64 ip, struct names_found *found);

/* ---- demangle.c ---- */

/* The row of --no-demangle. */
#define CODE_MANGLED_OPTION(type, field)                                                   \
	{                                                                                  \
		"no-demangle", 0, CLI_FLAG, NULL,                                          \
			"names of C++ and Rust as in the symbol tables; else c++filt has " \
			"them as in the sources, without parameters",                      \
			CLI_AT(type, field)                                                \
	}

/* @name as in its source, safe for a terminal; @name itself if it is not mangled, or not known. */
const char *names_demangle(struct cli *cli, const struct code_names *n, const char *name);
void names_demangler_free(struct code_names *n);

/* ---- debuginfod.c ---- */

/* The row of --debuginfod. */
#define CODE_DEBUGINFOD_OPTION(type, field)                                                   \
	{                                                                                     \
		"debuginfod", 0, CLI_FLAG, NULL,                                              \
			"ask the servers of $DEBUGINFOD_URLS for debugging information that " \
			"no file has",                                                        \
			CLI_AT(type, field)                                                   \
	}

/* Exit code, after a message. */
int names_debuginfod_open(struct cli *cli, struct code_names *n);
void names_debuginfod_close(struct code_names *n);
/* The file with this build id, to be freed; NULL: no server has it. */
char *names_debuginfod_find(struct cli *cli, const struct code_names *n, const u8 *id, size_t size);

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
	const struct vmpt_guest_map *map;
	bool here; /* .path is of this machine, or was when it was traced */
};

/* False: no file is mapped there. */
bool names_file_at(const struct code_names *n, const struct names_space *space, u64 ip,
		   struct names_file *file);
/* Whether a map's file is one, not "[heap]" or "//anon". */
bool names_is_path(const char *path);
/* @ip in the addresses of the file @given: a kernel of the trace's VM runs where KASLR put it. */
u64 names_moved(const struct names_space *space, const struct code_given *given, u64 ip);

/* ---- programs.c ---- */

/* Add the ELF files in @folder that have a build id. 0, or an exit code after a message. */
int names_programs_add(struct cli *cli, struct code_names *n, const char *folder);
void names_programs_sort(const struct code_names *n);
/* From now on also programs of this machine, by their paths. */
int names_programs_here(struct cli *cli, struct code_names *n);
void names_programs_free(struct code_names *n);
/* Whether the build id of the ELF file is another than this; then its hex digits are in @has. */
bool names_other_id(struct cli *cli, const struct code_given *given, const u8 *id, size_t size,
		    char has[2 * 64 + 1]);
void names_hex(const u8 *bytes, size_t size, char text[2 * 64 + 1]);

/* The path of program number @i of the folders. */
char *names_program_path(const struct code_names *n, size_t i);
/* Whether two of them are the same by their build ids. */
bool names_programs_same(const struct code_names *n, size_t a, size_t b);
/* The function at @address of program number @i, or of one that is the same. */
const char *names_program_symbol(struct cli *cli, const struct code_names *n, size_t i, u64 address,
				 u64 *into);
/* Lines of number @nth of those that are the same as number @i; NULL: no more. */
struct vmpt_lines *names_program_lines(const struct code_names *n, size_t i, size_t nth);

/* ---- match.c ---- */

/* Which program of the folders has the code at @ip, and @ip's address in it. */
bool names_match_find(struct cli *cli, const struct code_names *n, const struct names_space *space,
		      u64 ip, size_t *program, u64 *address);
void names_match_free(struct code_names *n);

/* ---- jit.c ---- */

/* Whether a file is a map of perf's or a jitdump; @head: its first @size bytes, and a 0. */
bool names_is_jit(const char *path, const char *head, size_t size);
/* Add it, .files number @given; SIZE_MAX: the host's, if its name is as perf has it. Exit code. */
int names_jit_add(struct cli *cli, struct code_names *n, const char *path, size_t given);
void names_jit_free(struct code_names *n);
bool names_jit_find(const struct code_names *n, const struct names_space *space, u64 ip,
		    struct names_found *found);

/* ---- vdso.c ---- */

/* The function at @ip of the vdso at @map, and the offset in it; NULL: not known. */
const char *names_vdso_find(struct cli *cli, const struct code_names *n,
			    const struct names_space *space, const struct vmpt_guest_map *map,
			    u64 ip, u64 *into);
void names_vdso_free(struct code_names *n);

/* ---- host.c ---- */

/* code_names_at() of a VM whose processes the recording has. */
bool names_tasks_at(struct names_space *space, u64 tsc);
void names_host_space(const struct code_names *n, bool has_cr3, u64 cr3, struct names_space *space);
bool names_host_find(const struct code_names *n, const struct names_space *space, u64 ip,
		     struct names_found *found);

/* The function at @file->offset, and the offset in it; NULL: not known. */
const char *names_programs_find(struct cli *cli, const struct code_names *n,
				const struct names_file *file, u64 *into);
/*
 * Files that have lines of @file, one after the other: @nth 0, 1, ...; *@address, unless it is
 * NULL, is that of @file->offset in them. NULL: no more.
 */
struct vmpt_lines *names_programs_lines(struct cli *cli, const struct code_names *n,
					const struct names_file *file, size_t nth, u64 *address);
/* File number @nth with this build id, open; -1: there is none. */
int names_programs_open(const struct code_names *n, const u8 *id, size_t size, size_t nth);
/* The build id of an ELF file; its size, 0: none. */
size_t names_build_id(Elf *elf, u8 id[64]);

#endif
