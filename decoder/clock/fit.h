/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * From pairs (a guest's TSC packet, the host's time by the unadjusted clocks) to the epochs of one
 * VMCS: the offset and multiplier that hold over each stretch of time. Pure functions on arrays;
 * docs/time.md describes the method.
 */
#ifndef VMPT_DECODER_CLOCK_FIT_H
#define VMPT_DECODER_CLOCK_FIT_H

#include "arch/error.h"
#include "decoder/clock/state.h"

/* A pair, with its run and weight. */
struct vmpt_fit_pair {
	struct vmpt_tsc_pair pair;
	u64 run_from, run_to; /* host ticks: the guest's run (slice) that it was in */
	bool assumed;	      /* the owner is */
	u32 weight; /* number of pairs: itself and those dropped because they add nothing */
};

/*
 * Maximum number of epochs of one VMCS; the time after them is one more, of which nothing is known.
 */
#define VMPT_FIT_EPOCHS 4096

/* Pairs that must agree with each other and not with those before, to begin a new epoch. */
#define VMPT_FIT_AGREE 3

/* The result: allocated with malloc(), freed by the caller. */
struct vmpt_fit {
	struct vmpt_epoch *epochs;
	size_t count;
};

/* By VMCS, then host time, then stream and offset: for qsort(). */
int vmpt_fit_compare(const void *a, const void *b);

/*
 * Find the epochs of @n pairs of one VMCS, sorted by time. 0 or -VMPT_E_NOMEM. Without pairs there
 * are no epochs. Work is linear in @n up to a small factor.
 */
int vmpt_fit_epochs(struct vmpt_fit *fit, const struct vmpt_fit_pair *pairs, size_t n);

/*
 * Drop pairs of one VMCS, sorted, in place: of each stretch through which one line goes, keep only
 * its ends and those that a line can touch. vmpt_fit_epochs() gives the same result. Returns the
 * number of pairs left, or -VMPT_E_NOMEM.
 */
long vmpt_fit_thin(struct vmpt_fit_pair *pairs, size_t n);

/*
 * Distance of the pair from @map: 0 if it agrees; else the host ticks between the bounds of its
 * time and its time by the map.
 */
u64 vmpt_fit_off(const struct vmpt_tsc_map *map, const struct vmpt_tsc_pair *pair);

#endif
