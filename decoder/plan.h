/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Inside the decoder: the planner of both fast sources. It cuts a stream's regions, what is
 * between gaps, into spans that begin at PSBs. Where no PSB is near, a span ends at any packet:
 * the next one begins where that packet does, which its decoder has to tell.
 */
#ifndef VMPT_DECODER_PLAN_H
#define VMPT_DECODER_PLAN_H

#include "decoder/vmpt-decode.h"

#define VMPT_SPAN_MIN 16u
#define VMPT_SPAN_MAX (1u << 20)

/* A stretch of a region. */
struct vmpt_stretch {
	u64 start, end, region_end;
	bool first; /* of its region */
	bool gap;   /* first, and the region begins behind a gap */
	bool carry; /* it goes on where the one before it ended, at no PSB */
	u64 head;   /* first: where the region begins */
};

struct vmpt_planner {
	/* Set by who uses it, before vmpt_plan_start() */
	const struct vmpt_stream *stream;
	u64 (*psb_find)(const u8 *data, u64 from, u64 end);
	size_t size;	/* of a span, or so; made to fit */
	u64 psb_window; /* where no PSB is in so many bytes behind a due end, it is cut there */
	bool headless;
	/* Where the next span begins. */
	size_t gap; /* the next one */
	u64 at, region_end;
	u64 no_psb; /* none begins in [at, no_psb) that a search has not returned */
	bool at_head;
	bool open;  /* @at is not known before all before it is decoded */
	bool carry; /* the next span's */
};

void vmpt_plan_start(struct vmpt_planner *p);
/* False if there is no further span, or none yet. */
bool vmpt_plan_next(struct vmpt_planner *p, struct vmpt_stretch *span);
/* All that was planned is decoded, up to @at. False if that tells nothing new. */
bool vmpt_plan_go_on(struct vmpt_planner *p, u64 at);

#endif
