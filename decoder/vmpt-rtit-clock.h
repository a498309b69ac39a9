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

struct vmpt_rtit_clock {
	/* to read, after each packet */
	u64 tsc;	/* estimate for the last packet fed; never goes back but where said */
	u64 error;	/* it lies in [tsc - error, tsc + error]; ~0: not known yet */
	u64 since;	/* core cycles since the last STS or MTC; cycle accurate mode */
	bool known;	/* an STS has come */
	bool went_back; /* this packet's time is before the one fed last: a wrap or a reset */

	/* the clock's own */
	u64 anchor, anchor_cycles, cycles, ticks, ticks_cycles, last_mtc;
	u32 bus_ratio; /* TSC ticks per bus clock; 0: measured from MTCs and STSs */
	u8 acbr, ecbr, rng, lost;
	bool mtc_known, skip_mtc;
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
