/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* RTIT's STSs one behind the other. */
#ifndef VMPT_CLI_STS_H
#define VMPT_CLI_STS_H

#include "arch/types.h"

/* STSs have 40 bits, which go round in minutes: @last is the one before, the wraps in it. */
static inline u64 cli_follow_sts(u64 *last, u64 tsc)
{
	const u64 range = 1ULL << 40, back = 1ULL << 36;
	u64 at = (*last & ~(range - 1)) | tsc;

	/* As the library's clock has it (vmpt-rtit-clock.h) */
	if (at < *last && *last - at >= back)
		at += range;
	*last = at;
	return at;
}

#endif
