/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Inside the decoder: the clock of one stream, which gives each packet its time on the host's
 * time line (vmpt-clock.h; the rules are at the head of clock.c), and the seam between it,
 * vmpt_clocks and vmpt_timed.
 */
#ifndef VMPT_DECODER_CLOCK_STATE_H
#define VMPT_DECODER_CLOCK_STATE_H

#include "decoder/vmpt-clock.h"

/*
 * Where crystal clock and TSC meet: the tick at which MTC number @mtc was due is in
 * [edge + rem / den, + slack].
 */
struct vmpt_crystal {
	u64 mtc;       /* unwrapped number of the last MTC that was due; from an arbitrary start */
	u64 edge;      /* host tick */
	u64 rem;       /* and this part of one, in 1 / den */
	u64 slack;     /* ticks */
	bool counted;  /* mtc is valid */
	bool tied;     /* edge is valid */
	bool low_only; /* MTCFreq > 8: of mtc only the bits that TMA has are */
};

struct vmpt_clock {
	/* to read, after each item */
	struct vmpt_time now;  /* of the item fed last */
	struct vmpt_time next; /* of those behind it, as far as they say nothing of time */
	u8 back;	       /* enum vmpt_back of the item fed last */
	struct vmpt_clock_counts counts;

	/* the clock's own */
	struct vmpt_clock_options options;
	u64 step, step_rem; /* ticks an MTC, and 1 / den of them */
	u64 tick;	    /* ticks of the TSC a crystal clock, rounded up */
	u64 cycle;	    /* ticks a core cycle at the most: an MTC comes with its end */
	bool rated;	    /* P and MTCFreq are known */

	struct vmpt_crystal crystal;
	u64 lo, hi;   /* packets from here on came in between; hi ~0: open */
	u64 est;      /* what was said last */
	bool known;   /* lo and est mean something */
	bool assumed; /* they come from a TSC of an owner that is not known */
	bool exact;   /* a TSC came since the last MTC */
	bool doubt;   /* MTCs may have been lost, 256 or more: lo is one, hi is not known */
	bool lossy;   /* MTCs may have been lost since the last one: an OVF */
	bool gap;     /* bytes were lost since the last TSC */
	bool off;     /* tracing may have been off since the last TSC */
	bool in_psb;  /* between PSB and PSBEND */

	/* cycles */
	u64 base;	       /* tick of the last CYC, estimated */
	u64 base_part;	       /* 2^-24 of it */
	u64 ratio;	       /* ticks a cycle, 2^-24; 0: not known */
	u64 span, span_cycles; /* what the ratio is measured by: from this tick on */
	bool cyc_last;	       /* the packet before is one */
	bool cycs;	       /* there are some */
	bool spanning;	       /* span is valid */
	u8 cbr;		       /* 0: not known */

	/* the TSC whose TMA is due */
	u64 tsc, tsc_late; /* host ticks: in [tsc, tsc_late] */
	u8 tsc_is;	   /* enum in clock.c */
	bool tsc_last;	   /* no other packet that says something of time came since */
	bool pairing;	   /* pair is to be reported */
	struct vmpt_tsc_pair pair;
	u32 skz_good, skz_bad; /* TMAs of guests that fit the line, that do not */

	size_t gap_next; /* index of the stream's next gap */
};

/* @options is copied; what it points to stays the caller's. */
void vmpt_clock_init(struct vmpt_clock *clock, const struct vmpt_clock_options *options);

/* Bytes of the stream were lost here. Items VMPT_ITEM_LOSS say so themselves. */
void vmpt_clock_gap(struct vmpt_clock *clock);

/* The stream's next item of PT, at @offset in the stream. */
void vmpt_clock_feed(struct vmpt_clock *clock, const struct vmpt_item *item, u64 offset,
		     const struct vmpt_owner *owner);

/*
 * All items of the stream's next batch, with the gaps of @stream before and in it. @times: NULL,
 * or @batch->count of them, filled. A CYC has the time of the packet right behind it, which it
 * belongs to; at the batch's end its own, with late open. @back_item: index of the first item
 * that went back, if the return value is not VMPT_BACK_NOT; may be NULL. Without @times
 * it is always that.
 */
enum vmpt_back vmpt_clock_batch(struct vmpt_clock *clock, const struct vmpt_stream *stream,
				const struct vmpt_batch *batch, struct vmpt_time *times,
				size_t *back_item);

/* The stream's end: a pair that waits for its TMA is reported. */
void vmpt_clock_end(struct vmpt_clock *clock);

/* ---- clocks.c for timed.c ---- */

/* What a clock of stream @stream is to be opened with. Valid while @clocks is open. */
void vmpt_clocks_clock_options(const struct vmpt_clocks *clocks, size_t stream,
			       struct vmpt_clock_options *options);
/* The stream; NULL: there is none of that index. */
const struct vmpt_stream *vmpt_clocks_stream(const struct vmpt_clocks *clocks, size_t stream);

#endif
