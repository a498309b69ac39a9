/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Shadow ToPA: for processors without "Intel PT uses guest physical addresses", a table of
 * host-physical regions that replaces the guest's table from its current position on (SDM 3
 * 33.2.7.2, 33.5.2.2).
 *
 * - Regions are split where the host's memory is not contiguous or not aligned. INT, STOP and END
 *   of the guest are kept: INT and STOP are set in a region's last part.
 * - The shadow is a window of the guest's walk, bounded by the caller's memory. A walk that comes
 *   back to its start is closed into a ring; otherwise the window has an INT of our own halfway and
 *   a STOP of our own at the end, and moves forward at a VM exit.
 * - A malformed guest entry becomes a malformed host entry: the processor itself signals
 *   STATUS.Error when it becomes current.
 * - OUTPUT_BASE and OUTPUT_MASK_PTRS of the processor are translated back, so that the guest reads
 *   its own positions. A VMM provides the memory (struct vmpt_shadow_memory) and calls
 *   vmpt_shadow_invalidate(); the rest happens in vmpt_vcpu_enter(), vmpt_vcpu_exit() and
 *   vmpt_vcpu_wrmsr(). Bounded: one build visits each shadow entry once, reads at most
 *   VMPT_SHADOW_READS guest entries and follows no END that leads to a table without output.
 */
#ifndef VMPT_VMM_SHADOW_TOPA_H
#define VMPT_VMM_SHADOW_TOPA_H

#include "arch/output.h"

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

/* Entries of a 4-KiB page of a host table; the last one of each page is END. */
#define VMPT_SHADOW_PER_PAGE  512
#define VMPT_SHADOW_PAGES_MAX 16
/* Most guest entries that one build reads. */
#define VMPT_SHADOW_READS (2u * VMPT_SHADOW_PER_PAGE * VMPT_SHADOW_PAGES_MAX)

/* Where a shadow entry comes from. */
struct vmpt_shadow_origin {
	u64 table;  /* guest: base of its ToPA table, or of the single range */
	u64 gpa;    /* guest-physical address of this part; 0 of a poisoned entry */
	u32 index;  /* the entry in the table */
	u32 offset; /* bytes of the guest's region before this part */
};

/* Memory for one vCPU, owned by the caller; no guest may have access to it. */
struct vmpt_shadow_memory {
	u64 *page[VMPT_SHADOW_PAGES_MAX];    /* 4 KiB each, 4-KiB aligned, writable */
	u64 page_hpa[VMPT_SHADOW_PAGES_MAX]; /* their host-physical addresses */
	struct vmpt_shadow_origin *origin;   /* pages × VMPT_SHADOW_PER_PAGE of them */
	u32 pages;			     /* 1 to VMPT_SHADOW_PAGES_MAX */
};

/* How the window ends. */
enum vmpt_shadow_end {
	VMPT_SHADOW_NONE,   /* not built */
	VMPT_SHADOW_RING,   /* back to its first entry */
	VMPT_SHADOW_STOP,   /* at a STOP entry of the guest */
	VMPT_SHADOW_POISON, /* at a malformed entry: STATUS.Error when it is reached */
	VMPT_SHADOW_WINDOW, /* at our own STOP: the walk continues at next */
	VMPT_SHADOW_DIRECT, /* single range that is contiguous on the host: no table */
};

/* The shadow of one vCPU, inside its struct vmpt_vcpu: private to the library, readable for tests.
 */
struct vmpt_shadow {
	const struct vmpt_shadow_memory *memory; /* NULL: this vCPU has no shadow */
	u32 used;				 /* entries in use, END links not counted */
	u32 half;				 /* entry with our own INT, or ~0 */
	u8 end;					 /* enum vmpt_shadow_end */
	u8 why;					 /* enum vmpt_output_error of a poisoned entry */
	bool stale;				 /* must be rebuilt before the next entry */
	struct vmpt_shadow_origin next;		 /* of a window: the first part that did not fit */
	u64 direct_base;  /* of VMPT_SHADOW_DIRECT: its host-physical address */
	u64 reads;	  /* guest entries read by the last build */
	u64 translations; /* and calls of guest_translate */

	/* the processor's position, and the guest position it corresponds to */
	u32 slot, offset;
	u64 base, mask_ptrs;
	u64 low, high;	/* range that contains all guest memory in use */
	bool topa;	/* the guest's CTL.ToPA */
	bool frozen;	/* built while Stopped or Error was set: nothing is written */
	bool half_ours; /* the guest has no INT in the entry at half */
	bool last_ours; /* nor in the last one */
};

struct vmpt_vcpu;

/*
 * As an MMU notifier calls it: guest memory [gpa, gpa + size) moves. True if the vCPU must leave
 * the guest before the memory is released; the shadow is rebuilt at the next entry. The caller
 * makes sure that no other call for this vCPU runs at the same time; the vCPU may be in the guest.
 */
bool vmpt_shadow_invalidate(struct vmpt_vcpu *vcpu, u64 gpa, u64 size);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#endif
