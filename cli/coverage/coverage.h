/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * vmpt coverage: which code ran, per VM and process (docs/coverage.md). walk.c follows the streams
 * and counts the flow's blocks and edges; code.c makes instructions with exact counts of them, and
 * of these the basic blocks that users get; modules.c says of which file they are. The rest is
 * output: show.c (summary, lists), drcov.c, lcov.c, bitmap.c, diff.c.
 */
#ifndef VMPT_CLI_COVERAGE_H
#define VMPT_CLI_COVERAGE_H

#include "cli/symbols/symbols.h"
#include "util/hash.h"

#define COVERAGE_NONE (~0U)

/* An address space, of all vCPUs of a VM. */
struct coverage_space {
	struct vmpt_space id; /* the first of them */
	const char *vm;	      /* as files name it; NULL: not known */
	struct names_space names;
	/* Sums of its blocks */
	u64 blocks, instructions, bytes, executed;
	bool named; /* .names was asked for */
};

/* An instruction, with the code after it up to the end of its block of the flow. */
struct coverage_insn {
	u64 ip;
	u64 starts; /* runs that began here, */
	u64 stops;  /* or were left here, before it */
	u64 count;  /* how often it ran */
	u32 space;
	u32 tail; /* hash of the bytes from here on: other code is another instruction */
	u32 next; /* COVERAGE_NONE: none */
	u8 size;
	bool target;   /* of a direct branch */
	bool led;      /* another one leads here */
	bool page_end; /* the code goes on in the next page */
	bool taken;    /* it is in a basic block */
};

/* A basic block. */
struct coverage_block {
	u64 ip;
	u64 count;	  /* how often its first instruction ran */
	u64 executed;	  /* instructions that ran, in all */
	u32 size;	  /* bytes */
	u32 instructions; /* of these */
	u32 space;
};

/* A branch and where it went. */
struct coverage_edge {
	u64 from, to; /* of the branch, and where it went */
	u64 count;
	u32 space; /* of the branch */
	u8 end;	   /* enum vmpt_flow_end */
};

/* A file, or a part of memory. */
struct coverage_module {
	char *name; /* not safe to show */
	const char *vm;
	u64 base, end;
	u32 space; /* of which it is a part; COVERAGE_NONE: a file */
};

enum coverage_list { COVERAGE_SUMMARY, COVERAGE_BLOCKS, COVERAGE_EDGES, COVERAGE_FUNCTIONS };

struct coverage {
	struct traced t;
	bool blocks, edges, functions; /* lists */
	const char *drcov, *lcov, *bitmap, *diff;
	u64 bitmap_size;

	enum coverage_list list;
	bool with_edges;
	struct vmpt_flow_counts total;

	struct coverage_space *space;
	size_t spaces;
	struct vmpt_hash space_of;
	struct coverage_insn *insn;
	size_t insns;
	struct vmpt_hash insn_of;
	u32 *order;	  /* of instructions, by space and IP; coverage_finish() */
	u64 (*target)[2]; /* of direct branches: space, IP */
	size_t targets;
	struct coverage_block *block; /* by space and IP */
	size_t block_count;
	struct coverage_edge *edge; /* by space, .from and .to */
	size_t edge_count;
	struct vmpt_hash edge_of;
	struct coverage_module *module;
	size_t modules, files; /* the first .files are those of the command line */
	u64 seed;
};

/* ---- walk.c ---- */

/* Follow all streams. 0, or an exit code after a message. */
int coverage_walk(struct cli *cli);

/* ---- code.c ---- */

/* The index of @space of a flow; COVERAGE_NONE: no memory. */
u32 coverage_space(struct coverage *d, const struct vmpt_space *space);
/* What a flow counted of a block; whole runs and, by .left, the others. */
struct coverage_runs {
	u64 whole;
	const struct vmpt_flow_left *left; /* of this block */
	size_t lefts;
};
/* Add block @id of @flow, of the space @space. 0 or a negative error. */
int coverage_add(struct coverage *d, struct vmpt_flow *flow, u32 id,
		 const struct vmpt_flow_block *block, u32 space, const struct coverage_runs *runs);
/* The same of @count edges. */
int coverage_add_edge(struct coverage *d, const struct coverage_edge *edge);
/* All are added: make the basic blocks. 0 or a negative error. */
int coverage_finish(struct coverage *d);
/* How often the instruction of [@start, @end) ran that ran most often. */
u64 coverage_count(const struct coverage *d, u32 space, u64 start, u64 end);
/* The basic block that has @ip; NULL: none. */
const struct coverage_block *coverage_block_at(const struct coverage *d, u32 space, u64 ip);

/* ---- modules.c ---- */

/* Note the ELF files of --code and --symbols. 0, or an exit code after a message. */
int coverage_modules_open(struct cli *cli);
/* The names of a space, asked for once. */
const struct names_space *coverage_names(struct coverage *d, u32 space);
/* The module of @ip; NULL: no memory. */
const struct coverage_module *coverage_module_at(struct coverage *d, u32 space, u64 ip);

/* ---- output: each returns 0, or an exit code after a message ---- */

void coverage_show(struct cli *cli);
int coverage_drcov(struct cli *cli);
int coverage_bitmap(struct cli *cli);
int coverage_lcov(struct cli *cli);
int coverage_diff(struct cli *cli);
/* The VM of a space, safe to show. */
const char *coverage_vm(const struct coverage_space *s, char buf[CLI_WHO]);
/* Its process; "": not known. */
const char *coverage_process(struct coverage *d, u32 space, char buf[CLI_WHO + 16]);

#endif
