/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * An RTIT trace against what was executed, from a truth file (model/truth-format.h): the flow
 * decoder gets the code of only those instructions that the truth has next, and must request them
 * one after the other.
 */
#ifndef VMPT_TESTS_RTIT_FLOW_TRUTH_H
#define VMPT_TESTS_RTIT_FLOW_TRUTH_H

#include "tests/flow/truth-reader.h"
#include "tests/rtit/flow.h"

struct rtit_check_options {
	struct rtit_flow_options flow; /* in_order is set here */
	bool allow_overflow;	       /* resume after a FUP.BuffOvf where the truth has its IP */
	unsigned int bits;	       /* of all code: 16, 32, 64; 0: from STATE or the lengths */
	/*
	 * This many instructions of the truth may be missing where packets were disabled, and at
	 * the end. If flow.regs has RANGE0 as the filter: all outside it, and none in it.
	 */
	u64 skip, tail;
};

struct rtit_check_counts {
	struct rtit_flow_result flow;
	u64 blocks;    /* of the truth, parts too */
	u64 events;    /* interrupts and exceptions, equal */
	u64 astray;    /* events of the trace that the truth has as a block elsewhere */
	u64 soft_ints; /* INT n that the truth lists: the trace has only their event */
	u64 merged;    /* iterations of REP that are one instruction to the trace */
	u64 emulated;  /* instructions between two runs: I/O */
	u64 repeated;  /* turns of a JMP to itself before an event */
	u64 skipped;   /* where packets were disabled */
	u64 lost;      /* by overflows */
	u64 searches;  /* failed searches for the place in the truth */
	u64 tail;      /* at the end of the truth, the trace lacks them */
};

/* False: they differ, or one of them is broken; the reason and the place are on stderr. */
bool rtit_flow_check(struct truth_reader *reader, const u8 *trace, size_t size,
		     const struct rtit_check_options *options, struct rtit_check_counts *counts);

#endif
