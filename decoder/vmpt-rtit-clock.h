/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The time of an RTIT packet (RTIT Programming Reference 4.2.12 to 4.2.15): the hardware TSC, by
 * STS (40 bits, exact), MTC (8 bits of it, RNG says which) and, in cycle accurate mode, cycle
 * counts between them. Wraps of both are followed. The hardware TSC has neither the per-core
 * (IA32_TSC_OFFSET) nor the VMCS offset in it: the side record has both.
 */
#ifndef VMPT_RTIT_CLOCK_H
#define VMPT_RTIT_CLOCK_H

#include "decoder/vmpt-decode.h"

#ifdef __cplusplus
extern "C" {
#endif

/*
 * What the bound rests on: no 256 MTCs in a row are lost in one overflow (4.2.12), and two STSs
 * are less than 2^40 ticks apart. Where the trace was off so that no MTC could come, and where
 * bytes are lost, there is no bound (error is ~0) until the next STS.
 */
struct vmpt_rtit_clock {
	/* to read, after each packet, and behind the CYC again if it has one */
	u64 tsc;   /* estimate for the last packet fed; never goes back but where said */
	u64 error; /* it lies in [tsc - error, tsc + error]; ~0: not known */
	/*
	 * It came at this tick or later. Where a packet has no CYC of its own though others do
	 * (partial TNT, PSB), that and the bound of the next one, which sent it, are its bound.
	 */
	u64 lo;
	u64 since;	/* core cycles since the last STS or MTC; cycle accurate mode */
	u32 bus_ratio;	/* TSC ticks a bus clock: as given, or measured; 0: not known yet */
	bool known;	/* an STS has come: tsc means something */
	bool went_back; /* tsc is less than before: the estimate was ahead, the TSC was reset, or
			   two traces lie one behind the other */
	u64 contradictions; /* how often cycles said other than an MTC or STS, which went before:
			       bus_ratio, also a given one, is measured anew */

	/* the clock's own */
	u64 window;	   /* the last packet came before this tick, by MTCs; ~0: not known */
	u64 mtc;	   /* tick of the last MTC */
	u64 floor;	   /* and of the last MTC or STS */
	u64 base, base_hi; /* tick at which the cycles below begin, and at most; ~0: not known */
	u64 base_tsc;	   /* the estimate there */
	u64 cycles[2];	   /* since then, at least and at most (E6) */
	u64 span, span_hi; /* the same of what the ratio is measured by */
	u64 span_cycles[2];
	u64 ratio[2]; /* ticks a bus clock times 2^16, at least and at most; 0: not known */
	u8 acbr, ecbr, rng;
	u8 on;		   /* PacketEn: 0, 1, or 2: not known */
	bool mtc_known;	   /* rng is valid, MTCs come */
	bool mtc_last;	   /* no STS since the last MTC */
	bool mtc_cycles;   /* an MTC's CYC is next */
	bool sts_cycles;   /* an STS's CYC is next */
	bool stray_cycles; /* the next CYC may count from anywhere */
	bool counting;	   /* the counter has run since the last CYC */
	bool acbr_trusted; /* no STS can have been lost since the last */
	bool spanning;	   /* span is valid */
	bool silent;	   /* the last packet came when MTCs may have been held back */
	bool lost;	   /* no bound until the next STS */
	bool doubt;	   /* the same, if LESS_PKTS is 1 */
	bool less_clear;   /* LESS_PKTS is 0: there were MTCs or STSs while PacketEn was 0 */
	bool extended;	   /* window is: an overflow dropped MTCs */
	bool restarted;	   /* and no MTC since */
	bool after_psb;	   /* the last packet was one */
	bool given;	   /* bus_ratio was, and nothing spoke against it */
	bool whole_counts; /* payloads of CYCs may be right (no E6) */
};

/* @tsc_ratio: TSC ticks a bus clock (the guaranteed ratio), 0: not known, measure it. */
void vmpt_rtit_clock_init(struct vmpt_rtit_clock *clock, u32 tsc_ratio);

/* The stream's next packet, in order; CYC items too. Those marked VMPT_RTIT_AUX_IGNORE count for
 * nothing (E7). Payloads of CYCs other than 0 are one too few (E6): 1 is added to each. */
void vmpt_rtit_clock_feed(struct vmpt_rtit_clock *clock, const struct vmpt_packet *pkt);

#ifdef __cplusplus
}
#endif

#endif
