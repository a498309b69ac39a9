/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The position of a comparison in the truth: the next instruction expected from the trace.
 * Iterations of a REP instruction are merged here. Instructions that no run has, because one run
 * ends before them and the next begins after them (I/O), are left out.
 */
#ifndef VMPT_TESTS_TRUTH_CURSOR_H
#define VMPT_TESTS_TRUTH_CURSOR_H

#include "tests/flow/truth-reader.h"

#define CURSOR_PAST 16u
#define CURSOR_RUNS 64u

/* Begin or end of a run. */
struct cursor_run {
	enum truth_kind kind;
	u64 ip;
};

struct cursor {
	struct truth_reader *reader;
	struct truth_item item, next;
	bool peeked; /* next is valid */
	/* The next instruction, if at < insns: */
	u64 ip;
	u32 at, insns; /* in item.block */
	u32 code;      /* its offset in the block's code */
	u64 merged, blocks, emulated, begun;
	/* Begins and ends that were passed and not taken; they may come before their block. */
	struct cursor_run run[CURSOR_RUNS];
	unsigned int runs, first_run;
	u64 ended; /* IP of an END whose BEGIN has not come yet, 0: none */
	struct {
		u64 ip, next;
	} skip[CURSOR_RUNS]; /* of the next block: instructions left out */
	unsigned int skips, skipped;
	/* The last ones that were passed. */
	u64 past[CURSOR_PAST];
	u64 passed;
};

/* Nothing has been read yet. */
void cursor_init(struct cursor *c, struct truth_reader *reader);

/* Whether the next instruction is within the item. */
static inline bool cursor_in_block(const struct cursor *c)
{
	return c->at < c->insns;
}

/* The length of the next instruction. */
static inline u8 cursor_length(const struct cursor *c)
{
	return c->item.block->lengths[c->at];
}

static inline const u8 *cursor_code(const struct cursor *c)
{
	return c->item.block->code + c->code;
}

/* Skip emulated instructions. */
void cursor_skip(struct cursor *c);

/* Step over the next instruction; cursor_in_block() must be true. */
static inline void cursor_pass(struct cursor *c)
{
	u8 length = cursor_length(c);

	c->past[c->passed++ % CURSOR_PAST] = c->ip;
	c->at++;
	c->code += length;
	c->ip += length;
	if (c->skipped < c->skips)
		cursor_skip(c);
}

/* To the next item. False: the reader has an error. Not after the end of the file. */
bool cursor_next(struct cursor *c);
/* The item after the current one. NULL: the reader has an error. */
const struct truth_item *cursor_peek(struct cursor *c);
/* Take the oldest begin or end. False: there is none. */
bool cursor_take_run(struct cursor *c, struct cursor_run *run);
/* JMP to itself: no packet shows how often. */
bool cursor_is_self_jump(const u8 *code, u8 length);
/* INT n, INT3, INTO, INT1 */
bool cursor_is_soft_int(const u8 *code, u8 length);
/* VMLAUNCH, VMRESUME */
bool cursor_is_vmentry(const u8 *code, u8 length);
bool cursor_is_wrmsr(const u8 *code, u8 length);
/* A string instruction with REP, REPE, REPNE. */
bool cursor_is_rep(const u8 *code, u8 length);

#endif
