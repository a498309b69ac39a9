/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Which files have the guests' code and the names of its functions: --code and its older names, and
 * images/ and symbols/ of the trace's recording.
 */
#ifndef VMPT_CLI_CODE_GIVEN_H
#define VMPT_CLI_CODE_GIVEN_H

#include "cli/base/base.h"

/* Dumps of guests' memory that recording.json lists. */
#define CODE_MEMORY CLI_FOLDER_IMAGES "/memory"

enum code_kind {
	CODE_KERNEL,  /* an ELF file with the symbol _text; ADDR: where that is */
	CODE_IMAGE,   /* another; ADDR: where its first page is */
	CODE_SYMBOLS, /* a list like /proc/kallsyms or System.map; ADDR is added */
	CODE_JIT,     /* a map of perf's, or a jitdump: names of code made at run time */
	CODE_RAW,     /* bytes at ADDR */
	CODE_SOURCE,  /* vmpt-image.h finds out */
};

/* "[VM:]FILE[@ADDR]" */
struct code_given {
	const char *option; /* "--code"; NULL: of the recording */
	char *vm;	    /* NULL: of all VMs */
	char *path;
	u64 address;
	bool has_address;
	bool only_names; /* --symbols */
	enum code_kind kind;
	u64 text;      /* of a KERNEL: where its _text is; 0: not known */
	bool not_host; /* of a KERNEL: the host's is another */
};

struct code_files {
	struct code_given *given; /* of two that have an address the first counts */
	size_t count;
};

/* The values of the options. */
struct code_options {
	struct cli_strings code, symbols, image;
	const char *kernel;
};

/* Their rows; "WITH" is put before the help of each. */
/* NOLINTBEGIN(bugprone-macro-parentheses): a type, a member, a string */
#define CODE_OPTIONS(type, field, with)                                                        \
	{ "code",                                                                              \
	  0,                                                                                   \
	  CLI_FILE,                                                                            \
	  "[VM:]FILE[@ADDR]",                                                                  \
	  with "the guests' code, and names of functions: an ELF file, a list like "           \
	       "/proc/kallsyms, or raw bytes; at ADDR if it was moved or is raw; VM: of this " \
	       "one only; default: images and symbols of a recording",                         \
	  CLI_AT(type, field.code),                                                            \
	  .take = code_take },                                                                 \
		{ "kernel",                                                                    \
		  0,                                                                           \
		  CLI_FILE,                                                                    \
		  "FILE[@ADDR]",                                                               \
		  "older name of --code, for a kernel",                                        \
		  CLI_AT(type, field.kernel),                                                  \
		  .take = code_take_kernel },                                                  \
	{                                                                                      \
		"image", 0, CLI_FILE, "FILE[@ADDR]", "older name of --code, for a program",    \
			CLI_AT(type, field.image)                                              \
	}
/* NOLINTEND(bugprone-macro-parentheses) */

/* [VM:] is no part of the name of the file that is read. */
int code_take(struct cli *cli, void *to, const char *arg);
/* It is given only once. */
int code_take_kernel(struct cli *cli, void *to, const char *arg);

/* Find out what each file is. 0, or an exit code after a message; free them in either case. */
int code_files_open(struct cli *cli, const struct code_options *options, struct code_files *files);
/*
 * The same of memory images, with those of the recording, and the code that it lists after them:
 * the names are read, not the files.
 */
int code_sources_open(struct cli *cli, const struct cli_strings *list, struct code_files *files);
/* The images of @list, "[VM:]IMAGE", and of the recording's images/. */
int code_images_open(struct cli *cli, const struct cli_strings *list, struct code_files *files);
/* The files of --symbols, but for folders, and those of the recording's symbols/. */
int code_symbols_open(struct cli *cli, const struct cli_strings *list, struct code_files *files);
void code_files_close(struct code_files *files);
/* Whether @given is for the VM of this name; NULL: not known. */
bool code_is_for(const struct code_given *given, const char *vm);

#endif
