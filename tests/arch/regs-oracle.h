/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * A second implementation of the rules of the PT MSRs, for the tests of arch/pt-regs.c: from SDM 3
 * Tables 33-6 to 33-9, 33-11 and 33-12 bit by bit, slow and plain, with numbers and without the
 * masks or names of the code under test. It does not use Check: the fuzz target uses it too.
 */
#ifndef VMPT_TESTS_REGS_ORACLE_H
#define VMPT_TESTS_REGS_ORACLE_H

#include "arch/pt-cpuid.h"

/* 560H, 561H, 570H, 571H, 572H, 580H … 587H */
#define ORACLE_MSRS 13
extern const u32 oracle_msrs[ORACLE_MSRS];

/* Everything in this version of the manual; 46 and 48 address bits. */
void oracle_full(struct vmpt_pt_cpuid *cpuid);

struct oracle {
	const struct vmpt_pt_cpuid *cpuid;
	bool no_ctl_writes;
	u64 value[ORACLE_MSRS]; /* in the order of oracle_msrs */
};

/* A processor with no PT state at all: the values after a cold reset. */
void oracle_init(struct oracle *o, const struct vmpt_pt_cpuid *cpuid);

/* Index of @msr in oracle_msrs, -1 if it is not there. */
int oracle_index(u32 msr);

bool oracle_exists(const struct vmpt_pt_cpuid *cpuid, u32 msr);
bool oracle_ctl_ok(const struct vmpt_pt_cpuid *cpuid, u64 ctl);
/* Whether @msr can hold @value at all; for CTL, as oracle_ctl_ok(). */
bool oracle_value_ok(const struct vmpt_pt_cpuid *cpuid, u32 msr, u64 value);

/* Do the access; false: #GP, nothing changed. @msr is one of oracle_msrs. */
bool oracle_read(const struct oracle *o, u32 msr, u64 *value);
bool oracle_write(struct oracle *o, u32 msr, u64 value);
bool oracle_restore(struct oracle *o, u32 msr, u64 value);

#endif
