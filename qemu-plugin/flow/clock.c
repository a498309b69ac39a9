// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * One tick of the TSC is one nanosecond, one of the crystal is 40.
 */
#include <time.h>

#include "qemu-plugin/flow/clock.h"

static u64 monotonic_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (u64)t.tv_sec * 1000000000 + (u64)t.tv_nsec;
}

void clock_start(struct clock *clock)
{
	clock->start = 0;
}

void clock_read(const struct clock *clock, struct vmpt_now *now)
{
	u64 ratio = CLOCK_NUMERATOR / CLOCK_DENOMINATOR;

	now->tsc = monotonic_ns() - clock->start;
	now->art = now->tsc / ratio;
	now->fast = (u32)(now->tsc % ratio);
	now->cycles = now->tsc;
	now->cbr = CLOCK_TSC_KHZ / 100000;
}
