/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* A vCPU that traces into guest memory, for the tests of PIPs; and a PIP's bytes by hand. */
#ifndef VMPT_TESTS_PIP_BED_H
#define VMPT_TESTS_PIP_BED_H

#include "tests/support/support.h"
#include "tests/vmm-lib/guest.h"
#include "vmm-lib/internal.h"

#define PIP_SIZE 8u
#define PAGES	 64u
#define TABLE	 0x1000ULL /* page 1 */
#define TABLE2	 0x2000ULL
#define OUTPUT	 0x10000ULL /* page 16 */

struct pip_bed {
	struct guest guest;
	struct vmpt_ops ops;
	struct vmpt_vcpu v;
	/* One callback fails: the access counted down to 0. */
	int fail, fail_with;
	u64 accesses;
};

/* All capabilities, MAXPHYADDR 46; tracing by ToPA at TABLE, entry 0, offset 0. */
void pip_bed_init(struct pip_bed *bed);
void pip_bed_free(struct pip_bed *bed);

/* Set the position. */
void pip_bed_at(struct pip_bed *bed, u64 table, u32 index, u32 offset);

/* MOV CR3 at CPL 0 without PAE. */
int pip_mov(struct pip_bed *bed, u64 cr3);

/* Table 33-24: 02H 43H, NR, CR3[51:5]. */
void pip_bytes(u8 bytes[PIP_SIZE], u64 cr3, bool nr);

#endif
