/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * A trace against what was executed: libipt's instruction decoder is given the code of just
 * those instructions that the truth has next, and must ask for them one after the other. Where it
 * does not do what the manual says of compressed RETs, it is put right (returns.h).
 */
#ifndef VMPT_TESTS_FLOW_H
#define VMPT_TESTS_FLOW_H

#include "tests/flow/truth-reader.h"

struct flow_options {
	bool allow_overflow; /* go on behind an OVF where the truth has its IP next */
	bool shared_returns; /* other owners' CALLs and RETs are on the processor's stack, too */
	u64 tail;	     /* so many instructions of the truth may be missing at the end */
};

struct flow_counts {
	u64 insns;	 /* that were equal */
	u64 blocks;	 /* of the truth, parts too */
	u64 events;	 /* interrupts and exceptions, equal */
	u64 astray;	 /* events in the trace that the truth has as a block elsewhere */
	u64 runs;	 /* that began */
	u64 merged;	 /* iterations of REP that are one instruction to the trace */
	u64 emulated;	 /* instructions between two runs: I/O */
	u64 silent;	 /* turns of a JMP to itself before an event */
	u64 soft_ints;	 /* INT n and such that the truth lists: the trace has their event alone */
	u64 compressed;	 /* RETs */
	u64 led;	 /* of them: libipt would have gone elsewhere */
	u64 shared;	 /* of them: where other owners shifted the stack */
	u64 entries;	 /* VM entries that the truth lists: the trace has their FUP alone */
	u64 overflows;	 /* OVFs */
	u64 lost;	 /* instructions that no packet told of */
	u64 searches;	 /* behind OVFs, in vain: the flow was elsewhere */
	u64 tail;	 /* instructions at the end of the truth that the trace lacks */
	u64 definitions; /* of blocks */
};

/*
 * The whole of @trace against the truth that @reader has. False: they differ, or one of them
 * is broken; why is on stderr, with the place.
 */
bool flow_check(struct truth_reader *reader, const u8 *trace, size_t size,
		const struct flow_options *options, struct flow_counts *counts);

#endif
