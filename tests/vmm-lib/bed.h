/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * A vCPU with everything it needs, for tests: full capabilities, a direct plan, 64 pages of guest
 * memory. A test changes what it tests between bed_init() and bed_start().
 */
#ifndef VMPT_TESTS_BED_H
#define VMPT_TESTS_BED_H

#include "tests/support/support.h"
#include "tests/vmm-lib/guest.h"

#define BED_PAGES	 64u
#define BED_SHADOW_PAGES 4u

struct bed {
	struct guest guest;
	struct vmpt_caps host, shown;
	struct vmpt_vmx_plan plan;
	struct vmpt_ops ops;
	struct vmpt_shadow_memory shadow;
	struct vmpt_config config;
	struct vmpt_refusal why;
	struct vmpt_vcpu v;
	/* the shadow's memory, in the host's part of the address space */
	u64 (*tables)[VMPT_SHADOW_PER_PAGE];
	struct vmpt_shadow_origin *origin;
};

/* The processor's address of the shadow's tables: no guest frame is there. */
#define BED_TABLES_HPA 0x200000000ULL

void bed_init(struct bed *bed);
/* Hide @cap, and whatever needs it, from the guest. */
void bed_hide(struct bed *bed, enum vmpt_pt_cap cap);
/* A processor without "Intel PT uses guest physical addresses". */
void bed_shadow(struct bed *bed);
/* A guest without PT; @use is NONE, SYSTEM or HOST. */
void bed_no_pt(struct bed *bed, enum vmpt_use use);
/* vmpt_vcpu_init(), which must succeed. */
void bed_start(struct bed *bed);
void bed_free(struct bed *bed);

/* WRMSR, RDMSR by the guest and by the VMM that must succeed. */
void bed_wrmsr(struct bed *bed, u32 msr, u64 value);
u64 bed_rdmsr(struct bed *bed, u32 msr);
void bed_set(struct bed *bed, u32 msr, u64 value);

/*
 * A ToPA table at page 1 of the guest: @regions of 4 KiB from page 16 on with @flags each,
 * and END to itself.
 */
#define BED_TABLE  0x1000ULL
#define BED_OUTPUT 0x10000ULL
void bed_table(struct bed *bed, u32 regions, u64 flags);

/* TraceEn, OS, User, ToPA, BranchEn: what most tests trace with. */
#define BED_CTL 0x210dULL

/* A CTL with TraceEn that uses bed_table(). */
void bed_trace(struct bed *bed, u64 ctl);

#endif
