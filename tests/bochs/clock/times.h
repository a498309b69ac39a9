/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Truth of times (model/times-format.h) in memory: the TSC at which each byte of a trace was made,
 * and the VM entries and exits.
 */
#ifndef TIMES_H
#define TIMES_H

#include <stddef.h>

#include "arch/types.h"

/* The bytes from the previous run's .end to this one's were made at .tsc. */
struct made {
	u64 end, tsc;
};

/* A VM entry or exit; its packets begin at byte .at. */
struct move {
	u64 at, tsc, vmcs;
	u64 offset, multiplier; /* of an entry, and of the exit that follows it */
	u32 reason;		/* of an exit */
	bool entry, traced;	/* TraceEn was 1 */
	unsigned int cpu;
};

struct times {
	struct made *made;
	size_t made_count;
	struct move *moves;
	size_t move_count;
	u64 size; /* bytes */
	u64 ctl;  /* IA32_RTIT_CTL while TraceEn was last 1 */
};

/* Reads file @path, of processor @cpu. Returns NULL or an error message. @times is freed by
 * times_free() in either case. */
const char *times_read(struct times *times, const char *path, unsigned int cpu);
void times_free(struct times *times);

/*
 * When the byte at @position was made; for one after the end, when the last byte was. @hint: an
 * index near it, 0 at first.
 */
u64 times_at(const struct times *times, u64 position, size_t *hint);

#endif
