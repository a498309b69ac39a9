// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* Counters of a Perfetto trace: exits a second, instructions a microsecond, in buckets of time. */
#include <stdlib.h>

#include "cli/perfetto/perfetto.h"
#include "util/array.h"

u32 perfetto_rate(struct perfetto_rates *rates, struct perfetto_log *log, u32 process,
		  const char *name, double scale)
{
	u32 track;

	if (rates->count >= PERFETTO_RATES || vmpt_grow(&rates->rate, rates->count))
		return PERFETTO_NONE;
	track = perfetto_track(log, PERFETTO_COUNTER, process, name);
	if (track == PERFETTO_NONE)
		return PERFETTO_NONE;
	rates->rate[rates->count] = (struct perfetto_rate){ .track = track, .scale = scale };
	return (u32)rates->count++;
}

/* Buckets of twice the time. */
static void widen(struct perfetto_rates *rates)
{
	size_t i, k;

	for (i = 0; i < rates->count; i++) {
		u64 *b = rates->rate[i].bucket;

		for (k = 0; k < PERFETTO_BUCKETS; k++) {
			u64 sum = 2 * k < PERFETTO_BUCKETS ? b[2 * k] + b[2 * k + 1] : 0;

			b[k] = sum;
		}
	}
	rates->width *= 2;
}

void perfetto_rate_add(struct perfetto_rates *rates, u32 rate, u64 time, u64 count)
{
	if (rate >= rates->count)
		return;
	if (!rates->width)
		rates->width = 1;
	while (time / rates->width >= PERFETTO_BUCKETS && rates->width < 1ULL << 62)
		widen(rates);
	rates->rate[rate].bucket[time / rates->width % PERFETTO_BUCKETS] += count;
}

void perfetto_rates_close(struct perfetto_rates *rates)
{
	free(rates->rate);
	*rates = (struct perfetto_rates){ 0 };
}
