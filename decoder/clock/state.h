/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Inside the decoder: the clock of one stream, which gives each packet its time on the host's time
 * line (vmpt-clock.h; the rules are at the head of clock.c), and its interface to vmpt_clocks and
 * vmpt_timed.
 */
#ifndef VMPT_DECODER_CLOCK_STATE_H
#define VMPT_DECODER_CLOCK_STATE_H

#include "decoder/vmpt-clock.h"

/* A TSC packet of a guest, and its host time by MTC, CYC and CTC alone. */
struct vmpt_tsc_pair {
	u64 vmcs;  /* of the owner; VMPT_OWNER_VM only */
	u64 guest; /* as in the packet, 56 bits */
	struct vmpt_time host;
	u64 offset; /* of the packet in its stream */
	u32 stream; /* the stream's index, filled by vmpt_clocks */
};

/*
 * Find the map of a VMCS at about host time @near; NULL: not known. Only .map and .offset_error of
 * the epoch are used. While no host time is known @near is VMPT_TIME_NONE: return the first one.
 */
typedef const struct vmpt_epoch *vmpt_map_find(void *opaque, u64 vmcs, u64 near);

/* What a clock of one stream is made of. */
struct vmpt_clock_options {
	struct vmpt_rates rates;
	vmpt_map_find *map; /* NULL: no map is known; guests' TSC packets then give no time */
	void *map_opaque;
	/*
	 * Called for each TSC packet of a VM whose host time is known without it, in order; .late
	 * may be open. At the latest, called at the next TSC packet. May be NULL.
	 */
	void (*pair)(void *opaque, const struct vmpt_tsc_pair *pair);
	void *pair_opaque;
	u64 near_tsc; /* approximate host TSC of the stream, for bits 63:56; 0: those are 0 */
};

/*
 * The relation of crystal clock and TSC: the tick at which MTC number @mtc was due is in [edge +
 * rem / den, + slack].
 */
struct vmpt_crystal {
	u64 mtc;       /* unwrapped number of the last MTC that was due; from an arbitrary start */
	u64 edge;      /* host tick */
	u64 rem;       /* fraction of a tick, in 1 / den */
	u64 slack;     /* ticks */
	bool counted;  /* mtc is valid */
	bool tied;     /* edge is valid */
	bool low_only; /* MTCFreq > 8: only the bits of mtc that TMA has */
};

struct vmpt_clock {
	/* to be read after each item */
	struct vmpt_time now;  /* of the item fed last */
	struct vmpt_time next; /* of the next items, while they are no time items */
	u8 back;	       /* enum vmpt_back of the item fed last */
	struct vmpt_clock_counts counts;

	/* private */
	struct vmpt_clock_options options;
	u64 step, step_rem; /* ticks per MTC: integer part, and fraction in 1 / den */
	u64 tick;	    /* TSC ticks per crystal clock tick, rounded up */
	u64 cycle;	    /* maximum ticks per core cycle: an MTC comes at its end */
	bool rated;	    /* P and MTCFreq are known */

	struct vmpt_crystal crystal;
	u64 lo, hi;   /* packets from here on came in this range; hi ~0: open */
	u64 est;      /* the last reported time */
	bool known;   /* lo and est are valid */
	bool assumed; /* they come from a TSC of an unknown owner */
	bool exact;   /* a TSC came since the last MTC */
	bool doubt;   /* 256 or more MTCs may have been lost: lo is a bound, hi is not known */
	bool lossy;   /* MTCs may have been lost since the last one: an OVF */
	bool gap;     /* bytes were lost since the last TSC */
	bool off;     /* tracing may have been off since the last TSC */
	bool in_psb;  /* between PSB and PSBEND */

	/* cycles */
	u64 base;	       /* tick of the last CYC, estimated */
	u64 base_part;	       /* fraction of it, in 2^-24 */
	u64 ratio;	       /* ticks per cycle, in 2^-24; 0: not known */
	u64 span, span_cycles; /* the span over which the ratio is measured, from this tick on */
	bool cyc_last;	       /* the last packet was a CYC */
	bool cycs;	       /* there are some */
	bool spanning;	       /* span is valid */
	u8 cbr;		       /* 0: not known */

	/* the TSC whose TMA is due */
	u64 tsc, tsc_late; /* host ticks: in [tsc, tsc_late] */
	u8 tsc_is;	   /* enum clock_tsc in core.h */
	bool tsc_last;	   /* no other time packet came since */
	bool pairing;	   /* pair is to be reported */
	struct vmpt_tsc_pair pair;
	u32 skz_good, skz_bad; /* TMAs of guests that fit the line, and that do not */

	size_t gap_next; /* index of the stream's next gap */
};

/* @options is copied; what it points to is owned by the caller. */
void vmpt_clock_init(struct vmpt_clock *clock, const struct vmpt_clock_options *options);

/* Bytes of the stream were lost here. Not needed for items VMPT_ITEM_LOSS. */
void vmpt_clock_gap(struct vmpt_clock *clock);

/* The stream's next item of PT, at @offset in the stream. */
void vmpt_clock_feed(struct vmpt_clock *clock, const struct vmpt_item *item, u64 offset,
		     const struct vmpt_owner *owner);

/*
 * Feed all items of the stream's next batch, with the gaps of @stream before and in it. @times:
 * NULL, or @batch->count times, which are filled. A CYC has the time of the packet right after it,
 * to which it belongs; at the batch's end its own, with late open. @back_item: index of the first
 * item that went back, if the return value is not VMPT_BACK_NOT; may be NULL. Without @times it is
 * always VMPT_BACK_NOT.
 */
enum vmpt_back vmpt_clock_batch(struct vmpt_clock *clock, const struct vmpt_stream *stream,
				const struct vmpt_batch *batch, struct vmpt_time *times,
				size_t *back_item);

/* The stream's end: report a pair that waits for its TMA. */
void vmpt_clock_end(struct vmpt_clock *clock);

/* ---- clocks.c for timed.c ---- */

/* The options for a clock of stream @stream. Valid while @clocks is open. */
void vmpt_clocks_clock_options(const struct vmpt_clocks *clocks, size_t stream,
			       struct vmpt_clock_options *options);
/* The stream; NULL: no such index. */
const struct vmpt_stream *vmpt_clocks_stream(const struct vmpt_clocks *clocks, size_t stream);

#endif
