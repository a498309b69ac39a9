/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * A vCPU with a shadow ToPA, and the part of a processor that writes trace through it: arch/output
 * over host-physical memory, which contains only the shadow's pages and the guest's frames.
 */
#ifndef VMPT_TESTS_SHADOW_RIG_H
#define VMPT_TESTS_SHADOW_RIG_H

#include "tests/vmm-lib/guest.h"
#include "vmm-lib/internal.h"
#include "vmm-lib/shadow/shadow.h"

/* Host-physical address of page @n of the shadow: not contiguous. */
#define RIG_PAGE_HPA(n) (0x7700000000ULL + (u64)((n) ^ 1) * 0x10000)

struct rig {
	struct guest guest;
	struct vmpt_vcpu vcpu;
	struct vmpt_shadow_memory memory;

	/* the processor */
	struct vmpt_pt_rules rules;
	struct vmpt_pt_regs hw;
	struct vmpt_output out;
	struct vmpt_output_memory hw_memory;
	bool entered;
	u64 strays; /* accesses that are neither the shadow's nor the guest's */

	bool pmi; /* the last exits had a PMI of the guest; cleared by its reader */
	u64 ours; /* exits with a PMI that was not the guest's */
};

/* @guest_pages of RAM, @shadow_pages of shadow, ToPA output, tracing, position 0. */
void rig_init(struct rig *rig, u32 guest_pages, u32 shadow_pages);
void rig_free(struct rig *rig);

/* The guest's position. */
void rig_at(struct rig *rig, u64 base, u32 index, u32 offset);
/* Single-range output instead. */
void rig_range(struct rig *rig, u64 base, u32 mask, u32 offset);

/* An entry of the guest's table at @table. */
void rig_entry(struct rig *rig, u64 table, u32 index, u64 entry);

/* What vmpt_vcpu_enter() and vmpt_vcpu_exit() do for output. */
int rig_enter(struct rig *rig);
int rig_exit(struct rig *rig);

/* The guest makes @len bytes of trace; returns how many were lost. */
u64 rig_trace(struct rig *rig, const u8 *bytes, size_t len);

/* The shadow's entry in a slot, and the target of a page's link or of an entry after the last. */
u64 rig_host_entry(const struct rig *rig, u32 page, u32 index);

#endif
