/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The clocks of a processor that has none: TSC, core crystal clock (ART) and cycles, from the
 * host's monotonic clock.
 */
#ifndef VMPT_QEMU_PLUGIN_FLOW_CLOCK_H
#define VMPT_QEMU_PLUGIN_FLOW_CLOCK_H

#include "model/vmpt-model.h"

/* CPUID.15H: TSC = crystal × numerator / denominator; 1 GHz = 25 MHz × 40 / 1. */
#define CLOCK_CRYSTAL	  25000000U
#define CLOCK_NUMERATOR	  40U
#define CLOCK_DENOMINATOR 1U
#define CLOCK_TSC_KHZ	  (CLOCK_CRYSTAL / 1000 * CLOCK_NUMERATOR / CLOCK_DENOMINATOR)

struct clock {
	u64 start; /* ns of the host's monotonic clock at which the TSC was 0 */
};

/* Counts from the host's boot, so that several QEMUs on one host agree. */
void clock_start(struct clock *clock);
void clock_read(const struct clock *clock, struct vmpt_now *now);

#endif
