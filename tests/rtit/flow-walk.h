/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The flow decoder's walk: from the current instruction to the place that a packet shows,
 * instruction by instruction. All functions return false if the flow is wrong, with the error in
 * the result, or if one of the ops stopped it; for a probe, if it found no path.
 */
#ifndef VMPT_TESTS_RTIT_FLOW_WALK_H
#define VMPT_TESTS_RTIT_FLOW_WALK_H

#include "tests/rtit/flow.h"
#include "tests/rtit/packets.h"

enum state {
	OFF,   /* PacketEn is 0 */
	ON,    /* PacketEn is 1, execution is at ip */
	DOUBT, /* at ip; the next packet shows whether PacketEn is 1 */
	LOST,
};

struct flow {
	const struct rtit_flow_options *options;
	const struct rtit_flow_ops *ops;
	struct rtit_flow_result *result;
	struct rtit_packets packets;
	struct vmpt_packet pkt;
	size_t tnt; /* index of the next of the options' */

	enum state state;
	u64 ip;
	struct rtit_insn insn; /* at ip, if fetched */
	u64 silent;	       /* instructions since a packet */
	bool call_valid;
	u64 call_nlip;
	bool branched;	   /* a near branch led to ip … */
	u64 branch_nlip;   /* … which had this NLIP */
	bool from_unknown; /* an unknown branch led to ip */
	bool stop_hit;	   /* TraceStop strikes at ip, as far as known */
	bool stopping;	   /* TraceStop: only the content of TNT_BUFF follows */
	bool far;	   /* FUP.FAR came, its TIP is next */
	u64 far_lip;
	bool left;		/* FUP.PGD came, a far transfer's TIP may be next */
	bool fresh;		/* FUP.BuffOvf came, and no packet of the flow since */
	bool psb;		/* one came, and no FUP or TIP since */
	bool probe;		/* instructions are not reported */
	bool wrmsr, over_wrmsr; /* over one, and further */
	bool ended;		/* by one of ops */
};

/* ---- reports ---- */

bool rtit_walk_fail(struct flow *f, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
bool rtit_walk_report(struct flow *f, struct rtit_flow_event *event);
bool rtit_walk_report_at(struct flow *f, unsigned int kind, u64 from, u64 to);
bool rtit_walk_erratum(struct flow *f, unsigned int number);
/* The flow is lost. */
bool rtit_walk_lose(struct flow *f, bool no_lip);

/* ---- the walk ---- */

/* Execution goes on at @ip; @branch: a taken branch or an event led there. */
void rtit_walk_arrive(struct flow *f, u64 ip, bool branch);
/* To the Jcc or RET whose bit this is, and over it. */
bool rtit_walk_bit(struct flow *f, bool taken);
/* To the indirect branch or RET, and to @target. */
bool rtit_walk_tip(struct flow *f, u64 target);
/*
 * To the place of the FUP's @lip: an event before the instruction there, or a far transfer
 * instruction directly before it. @pgd: or a near branch that left the region, or went where
 * TraceStop strikes. @got: the packet that came, for an error.
 */
bool rtit_walk_to(struct flow *f, u64 lip, bool pgd, const char *got);
/* Over the MOV to CR3 or CR0 of a PIP. */
bool rtit_walk_to_paging(struct flow *f);
/* To where TraceStop struck, or after the WRMSR that cleared Trace_En or TraceActive (4.2.8). */
bool rtit_walk_to_end(struct flow *f);

#endif
