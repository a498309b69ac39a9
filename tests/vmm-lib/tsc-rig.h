/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* A vCPU whose trace the test writes itself, for the tests of vmpt_vcpu_tsc_adjust(). */
#ifndef VMPT_TESTS_TSC_RIG_H
#define VMPT_TESTS_TSC_RIG_H

#include "tests/vmm-lib/guest.h"

#define TSC_REGIONS  12u
#define TSC_TABLE(n) (0x1000ULL * (1 + (n)))

/* A guest with an output buffer of regions, in order; the buffer is a ring. */
struct tsc_rig {
	struct guest guest;
	struct vmpt_ops ops;
	struct vmpt_vcpu v;
	bool topa;
	unsigned int regions, per_table;
	u64 gpa[TSC_REGIONS];
	u32 size[TSC_REGIONS];
	u64 ring;	      /* bytes in all */
	u64 fail_in, failing; /* the n-th callback fails, and how many did */
};

/* No output yet. @map: the VMM has guest_map. The guest's memory is that of rig.guest. */
void tsc_rig_init(struct tsc_rig *r, bool map);
/* Regions of 4096 << @sizes[i], page after page but in reverse order, @per_table in a table. */
void tsc_rig_topa(struct tsc_rig *r, const u8 *sizes, unsigned int n, unsigned int per_table);
void tsc_rig_range(struct tsc_rig *r, u32 size);
/* The trace begins: what vmpt_vcpu_wrmsr() does when TraceEn is set. */
void tsc_rig_start(struct tsc_rig *r);

/*
 * The OUTPUT MSRs for byte @at of the trace; set them in the vCPU, which counts a ring as traced: a
 * test that moves the position otherwise sets v.traced itself.
 */
struct vmpt_position tsc_rig_position(const struct tsc_rig *r, u64 at);
void tsc_rig_go(struct tsc_rig *r, u64 at);

/* Bytes of the trace; the first one is @at. */
void tsc_rig_put(struct tsc_rig *r, u64 at, const u8 *bytes, size_t len);
u8 tsc_rig_byte(struct tsc_rig *r, u64 at);
/* Check all that is in the buffer against @want, a trace of @len bytes. */
void tsc_rig_check(struct tsc_rig *r, const u8 *want, u64 len, u64 seed);

/* The callback, for tests that replace it. */
int tsc_rig_read(void *opaque, u64 gpa, void *buf, size_t len);

#endif
