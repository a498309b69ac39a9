/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Generated programs (tests/programs) through the RTIT unit and back: execute.c is a tiny
 * processor that executes one and drives the unit, enables.c determines independently when packets
 * are enabled, compare.c decodes the trace and compares with what was executed.
 */
#ifndef VMPT_TESTS_RTIT_PROGRAM_H
#define VMPT_TESTS_RTIT_PROGRAM_H

#include "model/vmpt-rtit.h"
#include "tests/programs/machine.h"
#include "tests/rtit/flow.h"

/* ---- how a program is executed and traced ---- */

struct rtit_settings {
	unsigned int steps;
	u64 ctl; /* with both of TriggerEn */
	u64 cr3_match, events, lip[4];
	u64 pkt_mask, limit_mask;
	struct vmpt_rtit_unit_options options;
	/* Once per this many instructions, 0: never. */
	unsigned int interrupts, smis, exits, overflows;
	unsigned int refusals; /* the sink takes nothing for a while, once per this many writes */
	bool overflow_nlip;    /* FUP.BuffOvf has NLIP, even if never executed (4.2.5) */
	bool reset_tnt;	       /* TNT_BUFF is read and reset where tracing is enabled again */
	bool clear_trace_en;   /* with TraceActive */
	bool edges;	       /* only the steps that the unit must know are reported */
};

void rtit_settings_make(struct rtit_settings *s, const struct program *program,
			struct test_rng *rng);

/* ---- when packets are enabled (2.1, 2.4, 3.3.5) ---- */

struct rtit_enables {
	bool trace_en, active, context, filter;
};

/* What ContextEn depends on, besides CTL. */
struct rtit_context {
	unsigned int cpl;
	u64 cr3;
	bool smm, root;
};

static inline bool rtit_enables_packet(const struct rtit_enables *e)
{
	return e->trace_en && e->active && e->context && e->filter;
}

bool rtit_enables_context(const struct rtit_settings *s, const struct rtit_context *now);
/*
 * An instruction or event ends at @ip, @taken: it led there. True: TraceStop strikes, which is
 * left to the caller.
 */
bool rtit_enables_decide(struct rtit_enables *e, const struct rtit_settings *s,
			 const struct rtit_context *now, bool taken, u64 ip);
/* Whether walking from one instruction to the next at @ip may matter. */
bool rtit_enables_edge(const struct rtit_settings *s, u64 ip);

/* ---- what was executed ---- */

/*
 * What the flow decoder must report: its own kinds of events, without QUIETs. @at: the number of
 * instructions executed before it; the decoder may have found as few as @sure.
 */
struct rtit_truth_event {
	u8 kind;       /* enum rtit_flow_event_kind */
	bool optional; /* an overflow began with it */
	bool passes;   /* the decoder need not have found @at instructions yet */
	u8 slack;      /* E1: bytes that from may be lower */
	size_t at, sure;
	size_t quiets; /* before it */
	u64 from, to, cr3;
};

/*
 * Packets were disabled without a packet: the decoder reports it before anything else that it
 * finds executed, but perhaps after events of the time when they were disabled.
 */
struct rtit_truth_quiet {
	bool unsure; /* the decoder may miss it, or not know the place */
	size_t at;
	u64 from;
};

struct rtit_execution {
	u64 *insn; /* IPs that were executed while packets were enabled */
	size_t insns;
	struct rtit_truth_event *event;
	size_t events;
	struct rtit_truth_quiet *quiet;
	size_t quiets;
	size_t sure; /* of all instructions */
	u8 *trace;   /* the whole stream */
	size_t size, max;
	u8 *memory; /* the circular buffer at the end, limit_mask + 1 bytes */
	struct rtit_flow_tnt *tnt;
	size_t tnts;
	u64 overflows, stops;
};

void rtit_execute(struct rtit_execution *done, const struct program *program,
		  const struct rtit_settings *settings, struct test_rng *rng);
void rtit_execution_free(struct rtit_execution *done);

/* ---- decoding ---- */

/* What was compared. */
struct rtit_sums {
	u64 insns, bytes, overflows, stops, wrapped, middle;
	u64 errata[VMPT_RTIT_ERRATA + 1]; /* correct workarounds */
	u64 events[RTIT_FLOW_ERRATUM + 1];
};

/* If the trace does not show what was executed, the test fails with @what. */
void rtit_compare(const struct program *program, const struct rtit_settings *settings,
		  const struct rtit_execution *done, const char *what, struct rtit_sums *sums);

#endif
