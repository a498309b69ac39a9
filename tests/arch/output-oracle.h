/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * A second, byte-by-byte implementation of SDM 3 33.2.7, with which arch/output.c is compared. And
 * the small physical memory that both write to.
 */
#ifndef VMPT_TESTS_ARCH_OUTPUT_ORACLE_H
#define VMPT_TESTS_ARCH_OUTPUT_ORACLE_H

#include "arch/output.h"

#define PAGES  64u
#define TABLES 8u /* the first pages: tables, which no output may overwrite */
#define MEMORY (PAGES * 4096u)

enum kind { RAM, DROPS, FAULTS, KINDS };

/* A small physical memory, and how its callbacks behave. */
struct memory {
	u8 bytes[MEMORY];
	u8 kind[PAGES];
	u32 later; /* one in this many accesses is -VMPT_E_RETRY, 0: none … */
	u64 seed;  /* … by this */
	u32 bad;   /* accesses outside any page */
};

/* The callbacks; opaque is a struct memory. */
extern const struct vmpt_output_memory memory_callbacks;

struct oracle {
	struct memory *m;
	bool topa, one;
	unsigned int maxphyaddr;
	/* proc_trace_table_base, _offset (in entries), _output_offset; or base, mask, offset */
	u64 base, index, offset;
	u64 entry;
	bool current; /* entry was read and is well-formed */
	bool error, stopped;
	bool halted; /* one of them at the start: no event reports it */
	u64 lost, dropped, filled;
	u32 ints, wraps;
};

/* At the position of @regs. */
void oracle_init(struct oracle *o, struct memory *m, const struct vmpt_pt_regs *regs,
		 const struct vmpt_pt_rules *rules);
void oracle_byte(struct oracle *o, u8 byte);

/* ---- the two side by side ---- */

struct pair {
	struct memory ours, theirs;
	struct vmpt_pt_rules rules;
	struct vmpt_pt_regs regs;
	struct vmpt_output_memory callbacks;
	struct vmpt_output out;
	struct oracle o;
	u64 loads;
	u64 lost, dropped, reads, ints; /* of the struct vmpt_output that were discarded */
	u32 events;
};

/* rules and regs are set by the caller: this sets the rest. */
void pair_start(struct pair *p);
/* A new struct vmpt_output at the position of the last one. */
void pair_renew(struct pair *p);
/* One write of ours, with retries, and the same bytes to the oracle. NULL or what is wrong. */
const char *pair_write(struct pair *p, const u8 *bytes, size_t len);
/* What differs now, NULL: nothing. */
const char *pair_differs(struct pair *p);

#endif
