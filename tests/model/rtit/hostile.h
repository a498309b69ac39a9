/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Drive an RTIT unit with any sequence of MSR accesses and events, encoded in bytes, and check the
 * manual's invariants after each step. For random tests and libFuzzer.
 */
#ifndef VMPT_TESTS_MODEL_RTIT_HOSTILE_H
#define VMPT_TESTS_MODEL_RTIT_HOSTILE_H

#include "model/vmpt-rtit.h"

#define HOSTILE_HEAD 2	/* bytes: errata; late clearing, the other options, sign extension */
#define HOSTILE_STEP 10 /* bytes: what, how, a value of 8 */

struct hostile {
	const char *wrong; /* NULL: no error */
	size_t step;	   /* steps done, or the one that went wrong */

	/* sums over all walks, to check that they are not idle */
	u64 kinds[VMPT_RTIT_KINDS];
	u64 legal, faults, traced;
};

/* Walk on a new unit; add to @h's sums. */
void hostile_walk(struct hostile *h, const u8 *data, size_t size);

#endif
