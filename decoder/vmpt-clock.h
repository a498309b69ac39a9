/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The time of a packet (docs/time.md), on the host's clock and on its guest's.
 *
 * The time line is the host's TSC, unadjusted, in ticks (SDM 3 33.8.3.1). In non-root operation a
 * TSC packet has the guest's TSC, (host TSC * multiplier >> 48) + offset; MTC, TMA's CTC, CYC and
 * CBR are not adjusted (33.5.2.1, 33.8.3.3). Three layers:
 *
 *	vmpt_clock	one stream: a time for each packet, without look-ahead
 *	vmpt_clocks	a whole trace: maps from each VMCS's TSC to the host's, given or inferred
 *	vmpt_timed	a decoder whose batches have a time for each item
 */
#ifndef VMPT_CLOCK_H
#define VMPT_CLOCK_H

#include "decoder/vmpt-decode.h"

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

/* ---- a time and its bound ---- */

#define VMPT_TIME_OPEN (~0u)   /* no bound on that side */
#define VMPT_TIME_NONE (~0ULL) /* .tsc: nothing is known of the time yet */

/* The packet was made in [tsc - early, tsc + late], host ticks. */
struct vmpt_time {
	u64 tsc;
	u32 early, late;
};

/* Why the time of a stream went back. Without one of these reasons it never does. */
enum vmpt_back {
	VMPT_BACK_NOT,
	VMPT_BACK_GAP,	     /* bytes were lost before it: the clock was estimated too far ahead */
	VMPT_BACK_TSC_RESET, /* a TSC packet far below the time before: the TSC was written, or
				reset */
	VMPT_BACK_MAP,	     /* the offset or multiplier of the guest's TSC changed here */
	VMPT_BACK_CONTRADICTION, /* TSC and MTC disagree: the TSC wins */
};

/* ---- rates of the processor's clocks ---- */

/* Whether guests' TMAs are corrupt (erratum SKZ84); AUTO: as the trace shows. */
enum vmpt_skz84 { VMPT_SKZ84_AUTO, VMPT_SKZ84_NO, VMPT_SKZ84_YES };

/* 0: not known. Unknown values are derived from the trace where possible. */
struct vmpt_rates {
	u32 tsc_num, tsc_den; /* CPUID.15H EBX, EAX: TSC ticks per crystal clock tick (P) */
	u32 nominal;	      /* the maximum non-turbo ratio, in the units of CBR */
	u8 mtc_freq;	      /* IA32_RTIT_CTL.MTCFreq, valid if has_mtc_freq */
	bool has_mtc_freq;
	bool found; /* tsc_num / tsc_den or mtc_freq came from the trace's packets themselves */
	u8 skz84;   /* enum vmpt_skz84: guests' TMAs are corrupt with TSC offsetting or scaling */
};

/* From a perf.data's AUXTRACE_INFO. */
void vmpt_rates_from_info(struct vmpt_rates *rates, const struct vmpt_trace_info *info);

/*
 * Fill unknown @rates from the stream's TSC, TMA, MTC and CBR packets. Returns 1 if P and
 * MTCFreq are known afterwards, 0 if not, or a negative error.
 */
int vmpt_rates_find(struct vmpt_rates *rates, const struct vmpt_stream *stream,
		    const struct vmpt_options *options);

/* Given rates that the packets clearly contradict; the packets' values were used instead. */
struct vmpt_rates_wrong {
	bool tsc_ratio, mtc_freq; /* which of .given */
	struct vmpt_rates given;
};

/*
 * As vmpt_rates_find(), but checks the given @rates, too. Returns 1 if P and MTCFreq follow from
 * the packets:
 * @rates then has the packets' values, and @wrong the given ones that they contradict. Returns 0 if
 * they do not: the given values stay. Or a negative error.
 */
int vmpt_rates_check(struct vmpt_rates *rates, const struct vmpt_stream *stream,
		     const struct vmpt_options *options, struct vmpt_rates_wrong *wrong);

/* ---- how a guest's TSC follows from the host's ---- */

/* The multiplier without TSC scaling: 1, with 48 bits of fraction. */
#define VMPT_TSC_UNSCALED (1ULL << 48)

/* guest TSC = (host TSC * multiplier >> 48) + offset, modulo 2^64 (TSC packets: modulo 2^56). */
struct vmpt_tsc_map {
	u64 multiplier, offset;
};

/* The guest's TSC at host TSC @host, 64 bits (SDM 3 33.5.2.1). */
u64 vmpt_tsc_to_guest(const struct vmpt_tsc_map *map, u64 host);
/*
 * The first host TSC that maps to @guest, of those nearest to @near (56 bits of @guest count).
 * ~0 if it does not fit 64 bits; @near if the multiplier is 0.
 */
u64 vmpt_tsc_to_host(const struct vmpt_tsc_map *map, u64 guest, u64 near);

/* Source of a map. The first one, in this order, that does not contradict the trace is used. */
enum vmpt_map_source {
	VMPT_MAP_NONE,
	VMPT_MAP_RECORD,   /* a side record */
	VMPT_MAP_KVM,	   /* KVM's debugfs, as vmpt record saved it */
	VMPT_MAP_USER,	   /* --vm */
	VMPT_MAP_INFERRED, /* the trace itself */
};

/* One stretch of host time over which one map of a VMCS holds. */
struct vmpt_epoch {
	u64 from, to; /* host ticks: the first and last packet for which it was seen to hold */
	struct vmpt_tsc_map map;
	u64 offset_error;      /* ±, ticks, of the offset at .from .. .to; ~0: not known */
	double multiplier_ppm; /* ± of the multiplier; negative: not known */
	u8 source;	       /* enum vmpt_map_source */
	bool scaled;	       /* the multiplier is certainly not 1 */
	u32 pairs;	       /* TSC packets of the guest that agree */
	u32 outliers;	       /* that do not */
};

/* A given map that is contradicted. */
struct vmpt_given_wrong {
	u64 vmcs;
	u8 source; /* of .given: enum vmpt_map_source */
	u8 by;	   /* source of .found; VMPT_MAP_INFERRED: the trace itself */
	struct vmpt_tsc_map given, found;
	/* host ticks of the first packet that contradicts; VMPT_TIME_NONE: only .by does */
	u64 at;
};

/* A given map of a VMCS, from host tick .from on (0: from the start). */
struct vmpt_given {
	u64 vmcs;
	struct vmpt_tsc_map map;
	u64 from;
	u8 source;
};

/* Counts of packets and events that a clock has seen. */
struct vmpt_clock_counts {
	u64 tscs, guest_tscs;
	u64 unmapped; /* guest_tscs without a map */
	u64 tmas, tmas_bad;
	u64 mtcs, mtcs_lost, cycs, cbrs, ovfs;
	u64 backs; /* the time went back */
	u64 contradictions;
	struct vmpt_losses lost; /* vmpt_clocks_counts() only */
};

/* ---- a whole trace ---- */

struct vmpt_clocks;

/* All 0 is the default: nothing is given. */
struct vmpt_clocks_options {
	struct vmpt_options decode; /* .threads: streams decoded in parallel */
	struct vmpt_rates rates;
	/* In any order; owned by the caller, must outlive the clocks. */
	const struct vmpt_given *given;
	size_t given_count;
	u64 near_tsc; /* approximate host TSC of the trace, for bits 63:56; 0: those are 0 */
};

/* The number that the call below compares with the library's: see VMPT_ABI_VERSION. */
#define VMPT_CLOCK_ABI                                                                            \
	VMPT_ABI_ADD(                                                                             \
		VMPT_ABI_ADD(VMPT_ABI_ADD(VMPT_ABI4(struct vmpt_clocks_options,                   \
						    struct vmpt_timed_batch,                      \
						    struct vmpt_clock_counts, struct vmpt_epoch), \
					  struct vmpt_given),                                     \
			     struct vmpt_given_wrong),                                            \
		struct vmpt_rates_wrong)

/*
 * Walk all @count @streams once and determine rates, pairs and epochs. The streams and the trace
 * must outlive the clocks. 0 with *@clocks, which vmpt_clocks_close() frees; -VMPT_E_NOMEM,
 * -VMPT_E_INVAL, -VMPT_E_VERSION.
 */
int vmpt_clocks_open_abi(struct vmpt_clocks **clocks, const struct vmpt_stream *const *streams,
			 size_t count, const struct vmpt_clocks_options *options, u64 abi);
#define vmpt_clocks_open(clocks, streams, count, options) \
	vmpt_clocks_open_abi(clocks, streams, count, options, VMPT_CLOCK_ABI)
/* Free @clocks and what calls on it returned; NULL is allowed. */
void vmpt_clocks_close(struct vmpt_clocks *clocks);

/* What the time line is. */
enum vmpt_time_base {
	VMPT_BASE_NONE,	 /* no TSC packet at all: no times */
	VMPT_BASE_HOST,	 /* the host's TSC */
	VMPT_BASE_GUEST, /* no TSC of the host in the trace and no map given: one guest's TSC */
};

/* The time line of these clocks, and with VMPT_BASE_GUEST the VMCS whose TSC it is. */
enum vmpt_time_base vmpt_clocks_base(const struct vmpt_clocks *clocks);
u64 vmpt_clocks_base_vmcs(const struct vmpt_clocks *clocks);

/* The rates in use, given or found. Owned by @clocks. */
const struct vmpt_rates *vmpt_clocks_rates(const struct vmpt_clocks *clocks);
/* Given rates that are wrong. NULL: none. Owned by @clocks. */
const struct vmpt_rates_wrong *vmpt_clocks_rates_wrong(const struct vmpt_clocks *clocks);
/* What the clock of stream @stream has seen; an index as in vmpt_clocks_open(). Owned by @clocks.
 */
const struct vmpt_clock_counts *vmpt_clocks_counts(const struct vmpt_clocks *clocks, size_t stream);

/* The VMCSs with a TSC packet or a given map, sorted: how many, and the one at @i, from 0 on. */
size_t vmpt_clocks_vmcs_count(const struct vmpt_clocks *clocks);
u64 vmpt_clocks_vmcs(const struct vmpt_clocks *clocks, size_t i);
/* TSC packets of the VMCS at @i in all streams; 0: given maps cannot be checked. */
u64 vmpt_clocks_vmcs_tscs(const struct vmpt_clocks *clocks, size_t i);
/*
 * The epochs of the VMCS at @i by time, *@count of them. The map changes where one ends and the
 * next begins. Owned by @clocks.
 */
const struct vmpt_epoch *vmpt_clocks_epochs(const struct vmpt_clocks *clocks, size_t i,
					    size_t *count);
/* Given maps that are contradicted, *@count of them. Owned by @clocks. */
const struct vmpt_given_wrong *vmpt_clocks_wrong(const struct vmpt_clocks *clocks, size_t *count);

/* The epoch of @vmcs at host time @at (the nearest one); NULL: there is none. */
const struct vmpt_epoch *vmpt_clocks_at(const struct vmpt_clocks *clocks, u64 vmcs, u64 at);

/* ---- a decoder with times ---- */

struct vmpt_timed;

/* A batch whose items have times. */
struct vmpt_timed_batch {
	struct vmpt_batch batch;
	const struct vmpt_time *time; /* batch.count of them; of a run: its first packet's */
	u8 back; /* enum vmpt_back, of the first item in this batch whose time went back */
	size_t back_item;
};

/*
 * Open a decoder with times of @stream, an index into the streams given to vmpt_clocks_open().
 * @clocks must outlive it. @options may be NULL. 0 with *@timed, which vmpt_timed_close() frees;
 * -VMPT_E_NOMEM or -VMPT_E_INVAL.
 */
int vmpt_timed_open(struct vmpt_timed **timed, const struct vmpt_clocks *clocks, size_t stream,
		    const struct vmpt_options *options);
/* Free @timed and its batches; NULL is allowed. */
void vmpt_timed_close(struct vmpt_timed *timed);
/* The next items of one owner. 1: @batch is filled and valid until the next call, 0: the end, or a
 * negative error. */
int vmpt_timed_next(struct vmpt_timed *timed, struct vmpt_timed_batch *batch);
/* What has been seen so far. Owned by @timed. */
const struct vmpt_clock_counts *vmpt_timed_counts(const struct vmpt_timed *timed);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#endif
