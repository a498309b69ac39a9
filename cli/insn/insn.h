/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* vmpt insn: what was executed: counted by address space (count.c), or listed (list.c). */
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
	bool count, hash;
	u64 head;

	struct traced t; /* with names when instructions are listed */

	struct insn_row *row; /* as first seen; by owner, CR3, mode once all streams are done */
	size_t rows;
	struct vmpt_hash row_of;
	struct insn_stream {
		struct vmpt_flow_counts counts;
		u64 hash;
	} * stream, total;
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

#endif
