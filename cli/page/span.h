/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* Spans with their vCPU: made by vmpt timeline, shown by its HTML page. */
#ifndef VMPT_CLI_PAGE_SPAN_H
#define VMPT_CLI_PAGE_SPAN_H

#include "decoder/vmpt-timeline.h"

#define TIMELINE_NONE (~0u) /* no vCPU, no VM, no number */

/*
 * Where a vCPU's time out of the guest went: what the CPU that it exited on did until its next
 * entry (docs/timeline.md, "The time out of the guest").
 */
enum timeline_part {
	TIMELINE_HOST,	   /* the CPU was in VMX root operation */
	TIMELINE_WAIT,	   /* the CPU ran another vCPU */
	TIMELINE_HALTED,   /* all of it, if the exit's reason is one of an idle vCPU */
	TIMELINE_UNTRACED, /* the CPU was not traced */
	TIMELINE_PARTS
};

/* A length: the true one is at most .early shorter or .late longer, unless it is .open. */
struct timeline_part_time {
	u64 ticks, early, late;
	bool open;    /* there is no bound */
	bool guessed; /* .early or .late are wide because a reason is a guess or unknown */
};

/* Where a span is from the part of the trace that --from and --to choose. */
enum timeline_where {
	TIMELINE_INSIDE,
	TIMELINE_BEFORE,
	TIMELINE_AFTER, /* no span, but the time out up to --to of a vCPU that comes back later */
};

/* A span for the sinks. */
struct timeline_span {
	const struct vmpt_span *span; /* until the sink returns */
	u32 vcpu;	 /* index in timeline.vcpu, of a guest's span; else TIMELINE_NONE */
	u32 moved_from;	 /* index of the stream on which the vCPU ran before, or TIMELINE_NONE */
	u64 start, end;	 /* ticks from time 0 on; end >= start */
	u64 early, late; /* bounds of .end - .start: it is at most this much shorter or longer */
	bool bounded;	 /* .early and .late are known */
	u8 where;	 /* enum timeline_where */
	bool begins;	 /* .start is known, else it is 0 or .end */
	bool timed;	 /* so is .end */
	/*
	 * The time out of the guest before this span: from the exit .left, whose span ended at
	 * .left_at, to .start. Of a guest's span that began with an entry, if the exit before it
	 * was seen and nothing was lost between. If the vCPU was on a CPU between that is not in
	 * the trace it is .unseen instead. Without .has_left, .left_at is where the vCPU's span
	 * before this one ended, if .left_timed, and the time between is not traced.
	 */
	bool has_left;
	bool unseen;
	bool left_timed; /* both times are known */
	bool no_exit;	 /* that span ended otherwise */
	bool left_cut;	 /* .left is before --from, which is .left_at */
	bool in_doubt;	 /* whether it was a halt is not proved: .out has bounds for both */
	struct vmpt_exit left;
	u64 left_at;
	u64 left_offset; /* of .left: where the CPU's stream goes on after it */
	u32 left_stream; /* that is */
	/* Bounds of .start - .left_at, as those of the span's length. */
	u64 out_early, out_late;
	bool out_bounded;
	/* If .left_timed: .start - .left_at, by what happened; the parts add up to it. */
	struct timeline_part_time out[TIMELINE_PARTS];
};

#endif
