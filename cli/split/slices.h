/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* slices.gz: the slices of a split in columns (docs/split-index.md). */
#ifndef VMPT_CLI_SLICES_H
#define VMPT_CLI_SLICES_H

#include <stdio.h>

#include "decoder/vmpt-decode.h"

#define SLICES_FILE "slices.gz"

/* The columns, in the file's order; one is predicted from those before it. */
enum slices_column {
	SLICES_CPU,   /* index in "cpus" */
	SLICES_OWNER, /* index in "owners" */
	SLICES_FLAGS,
	SLICES_BEGIN, /* enum vmpt_begin */
	SLICES_LOST,  /* index in "errors" plus 1 */
	SLICES_OFFSET,
	SLICES_SIZE,
	SLICES_FIRST_TSC,
	SLICES_LAST_TSC,
	SLICES_CR3S,	    /* their number; they follow all columns */
	SLICES_FILE_NUMBER, /* index in "streams" plus 1 */
	SLICES_OUT_OFFSET,
	SLICES_OUT_SIZE,
	SLICES_COUNTS, /* the first of the rarely used: slices_count_name() */
	SLICES_ERRATA = SLICES_COUNTS + 20,
	SLICES_COLUMNS = SLICES_ERRATA + VMPT_RTIT_ERRATA
};

enum {
	SLICES_SURE = 3, /* bits of enum vmpt_sure */
	SLICES_CONCEALED = 1 << 2,
	SLICES_HAS_TSC = 1 << 3,
	SLICES_MORE_CR3S = 1 << 4,
	SLICES_FLAG_NAMES = 5, /* from this bit on: slices_flag_name() */
};

struct slices_row {
	u64 v[SLICES_COLUMNS];
	u64 cr3[VMPT_SLICE_CR3S];
};

/* Keys in JSON; NULL: there are no more. */
const char *slices_count_name(unsigned int i);
const char *slices_flag_name(unsigned int bit);

struct slices;

/* @fd: written or read, and closed by slices_close(). NULL: no memory. */
struct slices *slices_open(int fd, bool write);
/* 0, or -1 by errno. */
int slices_write(struct slices *slices, const struct slices_row *row);
/* 1, 0 at the end, -EINVAL: not such a file, or -ENOMEM. @owners, @files: how many there are. */
int slices_read(struct slices *slices, size_t owners, size_t files, struct slices_row *row);
/* 0, or -1 by errno: all was not written. */
int slices_close(struct slices *slices);

#endif
