/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * CPUIDs that a hostile VMM could give its vCPU, and a check of the PT features in one.
 */
#ifndef CPUIDS_H
#define CPUIDS_H

#include "kvm.h"
#include "random.h"

/* Changes leaves 0, 7, 14H, 15H and 80000008H of @cpuid, a little or much. */
void cpuid_spoil(struct cpuid *cpuid, struct random *rng);

/*
 * Returns whether its PT features, if any, are a subset of @offered's. *what: the first one that is
 * not.
 */
bool cpuid_has_pt(const struct cpuid *cpuid);
bool cpuid_is_part(const struct cpuid *cpuid, const struct cpuid *offered, const char **what);

#endif
