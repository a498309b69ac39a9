/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * A trace against what was executed: libipt's instruction decoder is given only the code of the
 * truth's next instructions, and must request them one after the other. Where it deviates from the
 * manual on compressed RETs, it is corrected (returns.h).
 */
#ifndef VMPT_TESTS_FLOW_H
#define VMPT_TESTS_FLOW_H

#include "tests/flow/truth-reader.h"

struct flow_options {
	bool allow_overflow; /* resume after an OVF where its IP comes next in the truth */
	bool shared_returns; /* CALLs and RETs of other owners are on the processor's stack, too */
	u64 tail;	     /* this many instructions of the truth may be missing at the end */
};

struct flow_counts {
	u64 insns;	 /* that were equal */
	u64 blocks;	 /* of the truth, parts too */
	u64 events;	 /* interrupts and exceptions, equal */
	u64 astray;	 /* events in the trace that are a block elsewhere in the truth */
	u64 runs;	 /* that began */
	u64 merged;	 /* iterations of REP that are one instruction to the trace */
	u64 emulated;	 /* instructions between two runs: I/O */
	u64 silent;	 /* iterations of a JMP to itself before an event */
	u64 soft_ints;	 /* INT n and others in the truth: the trace has only their event */
	u64 compressed;	 /* RETs */
	u64 led;	 /* of these: libipt would have gone elsewhere */
	u64 shared;	 /* of these: with the stack shifted by other owners */
	u64 entries;	 /* VM entries in the truth: the trace has only their FUP */
	u64 disables;	 /* WRMSRs that clear TraceEn: the trace ends before them */
	u64 overflows;	 /* OVFs */
	u64 lost;	 /* instructions without packets */
	u64 searches;	 /* failed ones after OVFs: the flow was elsewhere */
	u64 tail;	 /* instructions at the end of the truth that are not in the trace */
	u64 definitions; /* of blocks */
};

/*
 * Compare all of @trace with the truth of @reader. False: they differ, or one of them is broken;
 * the reason and the place are on stderr.
 */
bool flow_check(struct truth_reader *reader, const u8 *trace, size_t size,
		const struct flow_options *options, struct flow_counts *counts);

#endif
