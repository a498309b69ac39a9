/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Arbitrary bytes as a processor's capabilities and a sequence of accesses to its PT MSRs, executed
 * by arch/pt-regs.c and by the oracle side by side. For a random test and a fuzz target.
 */
#ifndef VMPT_TESTS_REGS_WALK_H
#define VMPT_TESTS_REGS_WALK_H

#include "arch/pt-regs.h"
#include "tests/arch/regs-oracle.h"

/* Bytes of the capabilities, and of each access. */
#define WALK_HEAD 16
#define WALK_STEP 10

struct walk {
	const char *wrong; /* NULL, or what did not agree; static memory */
	size_t step;	   /* the access after which it was detected */
	u32 msr;
	u64 value;

	/* to show that a test reaches something */
	u64 legal, faults, enabled;
};

/* Adds to the counters; fewer bytes than WALK_HEAD do nothing. */
void regs_walk(struct walk *w, const u8 *data, size_t size);

#endif
