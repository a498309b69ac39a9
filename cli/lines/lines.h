/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Source lines of code by DWARF, which libdw reads: a module of its own that is loaded only when
 * lines are asked for.
 */
#ifndef VMPT_CLI_LINES_H
#define VMPT_CLI_LINES_H

#include <stdbool.h>

#include "decoder/vmpt-decode.h"

/* The file of the module, and its table of functions: */
#define VMPT_LINES_MODULE "vmpt-lines.so"
#define VMPT_LINES_OPS	  "vmpt_lines_ops"

/* Consecutive code of one line; addresses are as in the ELF file. */
struct vmpt_line {
	const char *file; /* as its compiler named it, any bytes; valid until the file is closed */
	u32 line;	  /* 1 or more */
	u64 start, end;	  /* [start, end) */
	u64 unit;	  /* the same for all lines of one compile unit */
};

struct vmpt_lines;

struct vmpt_lines_ops {
	/*
	 * Lines of the ELF file @fd, which is not closed and may be after the call. @alt: a file
	 * with what several have in common (.gnu_debugaltlink, made by dwz), or -1. NULL: it has
	 * none, or no memory.
	 */
	struct vmpt_lines *(*open)(int fd, int alt);
	/* The line of @address; false: it has none. */
	bool (*find)(struct vmpt_lines *lines, u64 address, struct vmpt_line *line);
	/*
	 * All lines of the compile unit that has @address, by address, until @take returns nonzero;
	 * returns that, else 0.
	 */
	int (*unit)(struct vmpt_lines *lines, u64 address,
		    int (*take)(void *opaque, const struct vmpt_line *line), void *opaque);
	void (*close)(struct vmpt_lines *lines); /* NULL is allowed */
	/* The build id of the file that @fd needs as @alt, and its size; 0: none. */
	size_t (*alt)(int fd, u8 id[64]);
};

#endif
