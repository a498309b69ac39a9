/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The walk over a guest's output configuration, one region at a time, and one host-contiguous part
 * of a region at a time. Used by the shadow ToPA only.
 */
#ifndef VMPT_VMM_SHADOW_WALK_H
#define VMPT_VMM_SHADOW_WALK_H

#include "vmm-lib/shadow/shadow.h"

/* Result of a step of the walk besides 0 and a negative error: STATUS.Error, see why. */
#define VMPT_WALK_POISON 1

struct vmpt_walk {
	const struct vmpt_vcpu *vcpu;
	bool topa;  /* else a single range, treated as one region that is followed by itself */
	u64 table;  /* of the current region; for a single range: its base */
	u32 index;  /* its entry */
	u64 entry;  /* its INT and STOP are kept; 0 for a single range */
	u64 region; /* guest-physical */
	u64 size;
	u8 why; /* enum vmpt_output_error */

	/* the last result of guest_translate */
	u64 gpa, hpa, bytes;

	u64 reads, translations;
};

/*
 * Start at the position in the vCPU's registers; an END entry found there is followed. 0,
 * VMPT_WALK_POISON with table and index of the invalid entry, or the result of a callback.
 * OutputOffset is checked for a single range only.
 */
int vmpt_walk_start(struct vmpt_walk *walk, const struct vmpt_vcpu *vcpu);

/* Go to the next region. Results as above. Reads at most two entries. */
int vmpt_walk_next(struct vmpt_walk *walk);

/*
 * The part of the region at @offset, a multiple of 4 KiB below its size: *size is the largest power
 * of two that is contiguous and aligned on the host, 4 KiB to 128 MiB. VMPT_WALK_POISON if output
 * may not go there; -VMPT_E_RETRY if the VMM's policy says so; -VMPT_E_INVAL if the callback's
 * result is invalid.
 */
int vmpt_walk_part(struct vmpt_walk *walk, u64 offset, u64 *hpa, u64 *size);

/*
 * A single range as a whole: *hpa is that of its base if the host has it contiguous and aligned,
 * and always if it lies within a page. 0, VMPT_WALK_POISON, negative; or VMPT_WALK_PARTS.
 */
#define VMPT_WALK_PARTS 2
int vmpt_walk_direct(struct vmpt_walk *walk, u64 *hpa);

/* Output entries of a page of the shadow; END after them leads to the next page. */
#define VMPT_SHADOW_OUTPUTS (VMPT_SHADOW_PER_PAGE - 1)

/* A slot is a shadow entry that is not an END link, counted across all pages. */
static inline u64 *vmpt_shadow_entry(const struct vmpt_shadow *shadow, u32 slot)
{
	return &shadow->memory->page[slot / VMPT_SHADOW_OUTPUTS][slot % VMPT_SHADOW_OUTPUTS];
}

/* Whether @slot is the poisoned entry, which is the last one. */
static inline bool vmpt_shadow_poisoned(const struct vmpt_shadow *shadow, u32 slot)
{
	return shadow->end == VMPT_SHADOW_POISON && slot + 1 == shadow->used;
}

#endif
