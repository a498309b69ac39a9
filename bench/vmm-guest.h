/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* The measured VMM: a vCPU and its guest's memory, contiguous from GPA 0 on. */
#ifndef VMPT_BENCH_VMM_GUEST_H
#define VMPT_BENCH_VMM_GUEST_H

#include "bench/vmm.h"
#include "vmm-lib/vmpt.h"

#define VMM_SHADOW_PAGES VMPT_SHADOW_PAGES_MAX

struct vmm {
	struct vmpt_vcpu vcpu;
	struct vmpt_ops ops;
	struct vmpt_shadow_memory shadow;
	u64 (*tables)[VMPT_SHADOW_PER_PAGE];
	struct vmpt_shadow_origin *origin;
	u8 *memory;
	size_t size;
	size_t map_max; /* bytes that guest_map returns at once */
	u64 pmis;
};

void vmm_put64(struct vmm *vmm, u64 gpa, u64 value);
/* Write an MSR as the guest; -1 after a message if it fails. */
int vmm_wrmsr(struct vmm *vmm, u32 msr, u64 value);

#endif
