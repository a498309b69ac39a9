/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Generated x86 programs for trace units: random code in a few places, user's and kernel's.
 * tests/model/programs executes it for PT, tests/rtit/programs for RTIT.
 */
#ifndef VMPT_TESTS_PROGRAMS_CODE_H
#define VMPT_TESTS_PROGRAMS_CODE_H

#include "tests/support/support.h"
#include "tests/tracegen/internal.h"

#define PROGRAM_INSNS	  400u
#define PROGRAM_FUNCTIONS 24u
#define PROGRAM_NO_INSN	  0xffffu

struct program_insn {
	u64 ip, target; /* target: of a direct branch */
	u8 kind;	/* enum tg_insn_kind */
	u8 len;		/* with them: */
	u8 prefixes;	/* without effect */
};

/* A contiguous region of code. Direct branches stay in it. */
struct program_region {
	u64 base;
	unsigned int size;	       /* bytes of code */
	unsigned int mode;	       /* 32 or 64 */
	unsigned int insns, functions; /* counts */
	struct program_insn insn[PROGRAM_INSNS];
	u16 entry[PROGRAM_FUNCTIONS]; /* first instructions of functions */
	u8 code[8 * PROGRAM_INSNS];
	u16 at[8 * PROGRAM_INSNS]; /* byte to instruction, PROGRAM_NO_INSN: none begins there */
};

enum { PROGRAM_MAIN, PROGRAM_LIBRARY, PROGRAM_OLD, PROGRAM_KERNEL, PROGRAM_REGIONS };

struct program {
	bool prefixes; /* set before generating: far transfers have up to 5 */
	struct program_region region[PROGRAM_REGIONS];
};

/*
 * Every loop in the code makes a packet: a decoder could not know how often an event's IP
 * was passed in a loop without one.
 */
void program_generate(struct program *program, struct test_rng *rng);

/* The region that holds @ip, or NULL. */
const struct program_region *program_region_at(const struct program *program, u64 ip);

/* A number below @n. */
static inline u64 below(struct test_rng *rng, u64 n)
{
	return test_random(rng) % n;
}

static inline bool once_in(struct test_rng *rng, u64 n)
{
	return n && !below(rng, n);
}

#endif
