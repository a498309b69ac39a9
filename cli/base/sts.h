/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* Consecutive STSs of RTIT. */
#ifndef VMPT_CLI_STS_H
#define VMPT_CLI_STS_H

#include "arch/types.h"

/* STSs have 40 bits, which wrap within minutes: @last is the previous one, with its wraps. */
static inline u64 cli_follow_sts(u64 *last, u64 tsc)
{
	const u64 range = 1ULL << 40, back = 1ULL << 36;
	u64 at = (*last & ~(range - 1)) | tsc;

	/* As the library's clock has it (decoder/vmpt-rtit-clock.h) */
	if (at < *last && *last - at >= back)
		at += range;
	*last = at;
	return at;
}

#endif
