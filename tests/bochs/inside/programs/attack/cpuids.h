/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * CPUIDs that a hostile VMM could give its vCPU, and what of PT is in one.
 */
#ifndef CPUIDS_H
#define CPUIDS_H

#include "kvm.h"
#include "random.h"

/* Changes what stands in @cpuid, a little or much: leaves 0, 7, 14H, 15H and 80000008H. */
void cpuid_spoil(struct cpuid *cpuid, struct random *rng);

/* Is PT in it? Then: is it no more than is in @offered? What is too much goes to *what. */
bool cpuid_has_pt(const struct cpuid *cpuid);
bool cpuid_is_part(const struct cpuid *cpuid, const struct cpuid *offered, const char **what);

#endif
