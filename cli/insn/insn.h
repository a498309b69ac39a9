/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* vmpt insn: what was executed: counted by address space (count.c), or listed (list.c, rows.c). */
#ifndef VMPT_CLI_INSN_H
#define VMPT_CLI_INSN_H

#include "cli/sideinfo/sideinfo.h"
#include "cli/symbols/symbols.h"
#include "decoder/vmpt-flow.h"
#include "util/hash.h"

/* A SOURCE of --code. */
struct insn_image {
	struct vmpt_image *image;
	const struct code_given *given;
	bool used;		  /* its VM has a name here, or it is of all */
	bool traced;		  /* one of .owner is in the trace */
	struct vmpt_owner *owner; /* of which it is; none: of all */
	size_t owners;
};

/* What the trace's code is (code.c). */
struct insn_code {
	struct code_files files;
	struct insn_image *image; /* files.count */
	size_t count;
	struct vmpt_code *code;
};

/* An address space of any stream. */
struct insn_row {
	struct vmpt_space space;
	struct vmpt_flow_counts counts;
};

/* The first gap of a reason. */
struct insn_gap {
	bool seen;
	size_t stream;
	u64 offset, ip;
	struct vmpt_space space;
};

struct insn {
	/* Options */
	struct cli_strings source, symbols;
	bool count, hash, branches, calls, lines;
	u8 paging; /* enum vmpt_paging */
	u64 head;
	const char *around;

	struct insn_code code;
	struct code_names code_names; /* when instructions are listed */
	struct cli_clocks clocks;
	struct cli_times when;
	struct cli_vm_names names;
	bool timed; /* the trace has times */

	struct insn_row *row; /* as first seen; by owner, CR3, mode once all streams are done */
	size_t rows;
	struct vmpt_hash row_of;
	struct insn_stream {
		struct vmpt_flow_counts counts;
		u64 hash;
	} * stream, total;
	struct insn_gap gap[VMPT_FLOW_REASONS];
	/* Of --around: an offset, or a host TSC */
	bool around_offset;
	u64 place;
	u64 listed; /* rows: instructions and gaps */
	bool list;  /* instructions, not counts */
};

/* ---- code.c ---- */

/* Open all images, for their VMs. 0, or an exit code after a message; close in either case. */
int insn_code_open(struct cli *cli);
void insn_code_close(struct insn *d);
/* The names of the code, of images and --symbols. 0, or an exit code after a message. */
int insn_code_names(struct cli *cli);
/* Note which images' owners are in @flow, at its end. */
void insn_code_note(struct insn *d, struct vmpt_flow *flow);
/* At the end: warn of what does not fit the trace. */
void insn_code_warn(struct cli *cli);

/* ---- count.c ---- */

/* Whether the filters, times aside, want the instructions of @space; if so something fits them. */
bool insn_wanted(struct cli *cli, const struct vmpt_space *space);
/* The row of @space; NULL: no memory. */
struct insn_row *insn_row(struct insn *d, const struct vmpt_space *space);
/* Add the spaces of a stream whose flow was followed to its end. 0 or a negative error. */
int insn_count(struct cli *cli, struct vmpt_flow *flow, size_t i);
void insn_note_gap(struct insn *d, struct vmpt_flow *flow, const struct vmpt_flow_batch *b,
		   size_t i);
void insn_add_counts(struct vmpt_flow_counts *to, const struct vmpt_flow_counts *from);
/* The ordered hash of the streams one after the other: h * P^n + h2. */
u64 insn_hash_append(u64 hash, u64 hash2, u64 n);
/* An owner's name: that of a VM with its vCPU, else its VMCS. Safe for a terminal. */
const char *insn_who(struct cli *cli, const struct vmpt_owner *owner, char buf[CLI_WHO]);
void insn_print(struct cli *cli);
void insn_json(struct cli *cli);
/* The members of an address space: whose it is, its CR3 and mode. */
void insn_json_space(struct cli *cli, json_t *o, const struct vmpt_space *space);

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

/* In the order of enum vmpt_flow_reason: words for people, and for JSON. */
extern const char *const insn_reason_text[VMPT_FLOW_REASONS];
extern const char *const insn_reason_key[VMPT_FLOW_REASONS];

#endif
