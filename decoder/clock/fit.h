/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * From pairs (a guest's TSC packet, the host's time by the unadjusted clocks) to the epochs of one
 * VMCS: over which stretch of time which offset and multiplier hold. Pure functions on arrays;
 * docs/time.md has the method.
 */
#ifndef VMPT_DECODER_CLOCK_FIT_H
#define VMPT_DECODER_CLOCK_FIT_H

#include "arch/error.h"
#include "decoder/vmpt-clock.h"

/* A pair, and what it stands for. */
struct vmpt_fit_pair {
	struct vmpt_tsc_pair pair;
	u64 run_from, run_to; /* host ticks: the guest's run (slice) that it was in */
	bool assumed;	      /* whose it is */
	u32 weight;	      /* pairs: itself and those dropped because they say no more */
};

/* Epochs of one VMCS at the most; what comes behind is one more, of which nothing is known. */
#define VMPT_FIT_EPOCHS 4096

/* Pairs that must agree with each other against those before for a new epoch to begin. */
#define VMPT_FIT_AGREE 3

/* What is found: memory is malloc's, the caller frees it. */
struct vmpt_fit {
	struct vmpt_epoch *epochs;
	size_t count;
};

/* By VMCS, then host time, then stream and offset: for qsort(). */
int vmpt_fit_compare(const void *a, const void *b);

/*
 * Find the epochs of @n pairs of one VMCS, sorted by time. 0 or -VMPT_E_NOMEM. No pairs: no epochs.
 * Work is linear in @n but for a small factor.
 */
int vmpt_fit_epochs(struct vmpt_fit *fit, const struct vmpt_fit_pair *pairs, size_t n);

/*
 * Drop pairs of one VMCS, sorted, in place: in each stretch through which one line goes only those
 * stay that a line can touch, and its ends. What vmpt_fit_epochs() finds is the same. Returns how
 * many are left, or -VMPT_E_NOMEM.
 */
long vmpt_fit_thin(struct vmpt_fit_pair *pairs, size_t n);

/*
 * How far the pair is off @map: 0, it agrees; else the ticks of the host between the bounds of its
 * time and where the map has it.
 */
u64 vmpt_fit_off(const struct vmpt_tsc_map *map, const struct vmpt_tsc_pair *pair);

#endif
