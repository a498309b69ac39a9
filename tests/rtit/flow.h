/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The flow in an RTIT trace (RTIT Programming Reference, March 2015): from packets and code to each
 * instruction that was executed. Only instructions that a packet confirms are reported: a Jcc's TNT
 * confirms all before it and itself, a FUP all before its LIP. LIPs are 48 bits here, returned
 * addresses are canonical.
 *
 * The packets alone do not distinguish a near jump that left the filtered region from one that did
 * not and reached, without a packet, the address after itself, where something else disabled
 * packets: if the options have RTIT_EVENTS and the ranges, these decide; otherwise the jump left.
 */
#ifndef VMPT_TESTS_RTIT_FLOW_H
#define VMPT_TESTS_RTIT_FLOW_H

#include "arch/rtit-regs.h"
#include "tests/rtit/insn.h"

enum rtit_flow_event_kind {
	RTIT_FLOW_ENABLED,  /* to: FUP.PGE */
	RTIT_FLOW_DISABLED, /* from: FUP.PGD, where execution was */
	RTIT_FLOW_QUIET,    /* disabled without a packet, at from; known from later packets */
	RTIT_FLOW_FAR,	    /* from, to: a far transfer, an event too */
	RTIT_FLOW_LEFT,	    /* to: target of the far transfer after a DISABLED */
	RTIT_FLOW_OVERFLOW, /* to: FUP.BuffOvf, execution resumes there; packets may be disabled */
	RTIT_FLOW_STOP,	    /* TraceStop */
	RTIT_FLOW_PAGING,   /* PIP: cr3, paging */
	RTIT_FLOW_LOST,	    /* the flow is lost until the next packet with a LIP; no_lip */
	RTIT_FLOW_ERRATUM,  /* number: a workaround of Appendix E applied */
};

struct rtit_flow_event {
	u8 kind;    /* enum rtit_flow_event_kind */
	u64 offset; /* of the packet */
	u64 from, to;
	u64 cr3;
	bool paging;
	bool no_lip; /* LOST: bits of a LIP were before the first PSB; false: a CALL was */
	unsigned int number;
};

struct rtit_flow_ops {
	/* The instruction at @ip into @insn; false: there is no code. */
	bool (*insn)(void *opaque, u64 ip, struct rtit_insn *insn);
	/* The packet at @offset shows that the one at @ip was executed. False: stop. */
	bool (*executed)(void *opaque, u64 ip, u64 offset);
	/* May be NULL. False: stop. */
	bool (*event)(void *opaque, const struct rtit_flow_event *event);
	void *opaque;
};

/* RTIT_TNT_BUFF as software read it when the stream was @offset bytes long (4.2.2). */
struct rtit_flow_tnt {
	u64 offset;
	u8 value;
};

struct rtit_flow_options {
	bool cycle_acc;
	/* From the first PSB at or after this offset. */
	size_t from;
	bool middle; /* that is not where tracing began: RETs may be compressed to CALLs before it
		      */
	/*
	 * insn() has only the code of executed instructions, in order: where packets ended without
	 * one, the last executed instruction is not searched for.
	 */
	bool in_order;
	/*
	 * A FUP.BuffOvf's LIP is the address after an instruction, taken jump or not (4.2.5): the
	 * flow is lost until a TIP or another FUP. Else it is where execution goes on (Table 1).
	 */
	bool overflow_nlip;
	/* RTIT_EVENTS and the ranges, or NULL: not known. */
	const struct vmpt_rtit_regs *regs;
	const struct rtit_flow_tnt *tnt; /* by offset */
	size_t tnts;
};

struct rtit_flow_result {
	u64 insns, packets;
	u64 flows; /* packets other than PSB, FUP.PCC, MTC, STS */
	u64 events[RTIT_FLOW_ERRATUM + 1];
	char error[240]; /* "": none */
};

/* False: result->error has the place and the reason; "" if one of @ops stopped it. */
bool rtit_flow_run(const u8 *trace, size_t size, const struct rtit_flow_options *options,
		   const struct rtit_flow_ops *ops, struct rtit_flow_result *result);

#endif
