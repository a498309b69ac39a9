/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The time of an RTIT packet (RTIT Programming Reference 4.2.12 to 4.2.15): the hardware TSC, by
 * STS (40 bits, exact), MTC (8 bits of it, selected by RNG) and, in cycle accurate mode, cycle
 * counts between them. Wraps of both are handled. The hardware TSC includes neither the per-core
 * (IA32_TSC_OFFSET) nor the VMCS offset: the side record has both.
 */
#ifndef VMPT_RTIT_CLOCK_H
#define VMPT_RTIT_CLOCK_H

#include "decoder/vmpt-decode.h"

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

/*
 * The bound assumes that no 256 MTCs in a row are lost in one overflow (4.2.12) and that two STSs
 * are less than 2^40 ticks apart. Where tracing was off, so that no MTC could come, and where
 * bytes are lost, there is no bound (error is ~0) until the next STS.
 */
struct vmpt_rtit_clock {
	/* For the caller: read after each packet, and again after its CYC if it has one. */
	u64 tsc;   /* estimate for the last packet fed; goes back only with went_back */
	u64 error; /* the time is in [tsc - error, tsc + error]; ~0: not known */
	/*
	 * The packet came at this tick or later. If a packet has no CYC of its own though others
	 * do (partial TNT, PSB), its bounds are this and the bound of the next one, which sent it.
	 */
	u64 lo;
	u64 since;	/* core cycles since the last STS or MTC; cycle accurate mode */
	u32 bus_ratio;	/* TSC ticks per bus clock, given or measured; 0: not known yet */
	bool known;	/* an STS has come: tsc is valid */
	bool went_back; /* tsc is less than before: the estimate was ahead, the TSC was reset, or
			   two traces were concatenated */
	u64 contradictions; /* how often cycles contradicted an MTC or STS, which took precedence:
			       bus_ratio, even if given, is measured again */

	/* private */
	u64 window;	   /* the last packet came before this tick, by MTCs; ~0: not known */
	u64 mtc;	   /* tick of the last MTC */
	u64 floor;	   /* and of the last MTC or STS */
	u64 base, base_hi; /* first and last possible start tick of cycles[]; ~0: not known */
	u64 base_tsc;	   /* the estimate there */
	u64 cycles[2];	   /* since then, at least and at most (E6) */
	u64 span, span_hi; /* the same for the span over which the ratio is measured */
	u64 span_cycles[2];
	u64 ratio[2]; /* ticks per bus clock times 2^16, at least and at most; 0: not known */
	u8 acbr, ecbr, rng;
	u8 on;		   /* PacketEn: 0, 1, or 2: not known */
	bool mtc_known;	   /* rng is valid, MTCs are sent */
	bool mtc_last;	   /* no STS since the last MTC */
	bool mtc_cycles;   /* an MTC's CYC is next */
	bool sts_cycles;   /* an STS's CYC is next */
	bool stray_cycles; /* the next CYC counts from an unknown point */
	bool counting;	   /* the counter has run since the last CYC */
	bool acbr_trusted; /* no STS can have been lost since the last */
	bool spanning;	   /* span is valid */
	bool silent;	   /* the last packet came when MTCs may have been held back */
	bool lost;	   /* no bound until the next STS */
	bool doubt;	   /* the same, if LESS_PKTS is 1 */
	bool less_clear;   /* LESS_PKTS is 0: there were MTCs or STSs while PacketEn was 0 */
	bool extended;	   /* window was extended: an overflow dropped MTCs */
	bool restarted;	   /* and no MTC since */
	bool after_psb;	   /* the last packet was a PSB */
	bool given;	   /* bus_ratio was given, and nothing contradicted it */
	bool whole_counts; /* payloads of CYCs may be exact (no E6) */
};

/* The number that the call below compares with the library's: see VMPT_ABI_VERSION. */
#define VMPT_RTIT_CLOCK_ABI VMPT_ABI2(struct vmpt_rtit_clock, struct vmpt_packet)

/*
 * @tsc_ratio: TSC ticks per bus clock (the guaranteed ratio); 0: not known, measure it. 0 or
 * -VMPT_E_VERSION.
 */
int vmpt_rtit_clock_init_abi(struct vmpt_rtit_clock *clock, u32 tsc_ratio, u64 abi);
#define vmpt_rtit_clock_init(clock, tsc_ratio) \
	vmpt_rtit_clock_init_abi(clock, tsc_ratio, VMPT_RTIT_CLOCK_ABI)

/* Feed the stream's next packet, in order; CYC items too. Those marked VMPT_RTIT_AUX_IGNORE are
 * ignored (E7). Nonzero payloads of CYCs are one too low (E6): 1 is added to each. */
void vmpt_rtit_clock_feed(struct vmpt_rtit_clock *clock, const struct vmpt_packet *pkt);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#endif
