/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* vmpt insn: what was executed: counted by address space (count.c), or listed (list.c, rows.c). */
#ifndef VMPT_CLI_INSN_H
#define VMPT_CLI_INSN_H

#include "cli/sideinfo/sideinfo.h"
#include "cli/symbols/symbols.h"
#include "decoder/vmpt-flow.h"
#include "util/hash.h"

/* An address space of any stream. */
struct insn_row {
	struct vmpt_space space;
	struct vmpt_flow_counts counts;
};

struct insn {
	/* Options */
	bool count, hash, branches, calls;
	u64 head;
	const char *around;

	struct traced t; /* with names when instructions are listed */

	struct insn_row *row; /* as first seen; by owner, CR3, mode once all streams are done */
	size_t rows;
	struct vmpt_hash row_of;
	struct insn_stream {
		struct vmpt_flow_counts counts;
		u64 hash;
	} * stream, total;
	/* Of --around: an offset, or a host TSC */
	bool around_offset;
	u64 place;
	u64 listed; /* rows: instructions and gaps */
	bool list;  /* instructions, not counts */
};

/* ---- count.c ---- */

/* The row of @space; NULL: no memory. */
struct insn_row *insn_row(struct insn *d, const struct vmpt_space *space);
/* Add the spaces of a stream whose flow was followed to its end. 0 or a negative error. */
int insn_count(struct cli *cli, struct vmpt_flow *flow, size_t i);
/* The ordered hash of the streams one after the other: h * P^n + h2. */
u64 insn_hash_append(u64 hash, u64 hash2, u64 n);
void insn_print(struct cli *cli);
void insn_json(struct cli *cli);
/* ---- list.c ---- */

/*
 * Follow stream @i block by block: print its instructions, as text or as JSON, or only count those
 * that the filters want. 0 or a negative error.
 */
int insn_walk(struct cli *cli, size_t i, struct vmpt_flow *flow, bool print);

/* Rows before the place of --around, and after it. */
#define INSN_AROUND 32

/* ---- rows.c ---- */

/* Part of the list. */
struct insn_part {
	u64 tsc;    /* VMPT_TIME_NONE: not known */
	u64 offset; /* of the packet */
	u64 ip;	    /* of the block, or the gap */
	u32 space;  /* its index; ~0: a gap without one */
	bool gap;
	u8 reason;   /* GAP: enum vmpt_flow_reason */
	bool branch; /* only the last instruction of these is listed */
	/* Instructions of a block */
	u32 block, count;
	u8 end; /* enum vmpt_flow_end */
	/* A branch's */
	bool went;							 /* it is known where */
	enum { INSN_TAKEN_NOT_KNOWN, INSN_TAKEN, INSN_NOT_TAKEN } taken; /* a conditional one */
	u64 to;
	u32 to_space;
};

struct insn_rows;

/* NULL: no memory. */
struct insn_rows *insn_rows_open(struct cli *cli, size_t stream, struct vmpt_flow *flow);
void insn_rows_close(struct insn_rows *r);
void insn_rows_title(const struct cli *cli);
/* Print @rows rows of @part from the one with the number @first on. 0 or a negative error. */
int insn_rows_print(struct insn_rows *r, const struct insn_part *part, u32 first, u32 rows);
/* Whether rows are branches, with where they went. */
static inline bool insn_only_branches(const struct insn *d)
{
	return d->branches || d->calls;
}

#endif
