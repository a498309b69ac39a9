/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* Shared by the scenarios of the conformance suite. */
#ifndef VMPT_VMM_CONFORMANCE_RUN_H
#define VMPT_VMM_CONFORMANCE_RUN_H

#include "arch/topa.h"
#include "vmm-lib/conformance.h"

#define VMPT_CONFORMANCE_RAM (128u * 1024)

/* One run of the suite. */
struct conformance {
	const struct vmpt_conformance_ops *ops;
	void *opaque;
	struct vmpt_pt_cpuid cpuid; /* what the guest is shown */
	struct vmpt_pt_rules rules;
	struct vmpt_pt_regs regs; /* what the guest's registers should hold */
	struct vmpt_conformance_result *result;
	int error; /* of a callback; ends the run */
};

/* A scenario returns one of these. */
#define DONE   0
#define WRONG  1 /* result has the details */
#define SKIP   2 /* result->wrong has the reason */
#define BROKEN 3 /* error is set */

struct conformance_scenario {
	const char *name, *section;
	int (*run)(struct conformance *c);
	bool without_pt; /* also for a guest without PT */
};

extern const struct conformance_scenario vmpt_conformance_cpuid[], vmpt_conformance_msrs[],
	vmpt_conformance_modes[], vmpt_conformance_output[];

/* Record an error; WRONG. */
int vmpt_conformance_wrong(struct conformance *c, const char *wrong, const char *at_name, u64 at);
int vmpt_conformance_differs(struct conformance *c, const char *wrong, const char *at_name, u64 at,
			     u64 want, u64 got);
int vmpt_conformance_skip(struct conformance *c, const char *why);
/* A callback returned @err, which no guest can see; BROKEN. */
int vmpt_conformance_broken(struct conformance *c, int err);

/* Power on and start with the registers of a cold reset. */
int vmpt_conformance_power_on(struct conformance *c);

/* The guest writes @value; the result and all registers must be as the manual says. */
int vmpt_conformance_write(struct conformance *c, u32 msr, u64 value);
/* The guest writes @value and must not get #GP: setup for a scenario. */
int vmpt_conformance_set(struct conformance *c, u32 msr, u64 value);
int vmpt_conformance_read(struct conformance *c, u32 msr, u64 *value);
/* All existing MSRs hold what they should. */
int vmpt_conformance_compare(struct conformance *c);

/* TraceEn went to 0: accept what the processor wrote until then. */
int vmpt_conformance_stopped(struct conformance *c);

/*
 * A circular trace buffer of 32 KiB in the suite's RAM, by ToPA if available. Sets OUTPUT_*; @ctl
 * gets the bits that CTL needs with it: ToPA, OS, USER, BranchEn.
 */
int vmpt_conformance_buffer(struct conformance *c, u64 *ctl);

#define CHECK(call)                       \
	do {                              \
		int check_ret = (call);   \
		if (check_ret)            \
			return check_ret; \
	} while (0)

#endif
