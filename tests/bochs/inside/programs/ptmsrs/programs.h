/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Random programs of accesses to PT's MSRs, and the random CPUID of the guests that run them.
 */
#ifndef PROGRAMS_H
#define PROGRAMS_H

#include "arch/pt-cpuid.h"

#include "scene.h"

#define PROGRAM_STEPS 100

struct program {
	u64 seed;
	struct vmpt_pt_cpuid cpuid; /* the guest's */
	u32 n;
	struct guest_op ops[PROGRAM_STEPS + 8];
};

/*
 * Makes the program of @seed, and removes from the scene's CPUID, which is what KVM supports, what
 * its guest lacks.
 */
void program_make(struct program *p, u64 seed, struct scene *s);

#endif
