// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* A vCPU with a shadow ToPA and a processor that writes through it. */
#include <stdlib.h>

#include "tests/support/support.h"
#include "tests/vmm-lib/shadow-rig.h"

#define ORIGINS(pages) ((size_t)(pages)*VMPT_SHADOW_PER_PAGE)

static int hw_read_entry(void *opaque, u64 pa, u64 *entry)
{
	struct rig *rig = opaque;
	u32 page;

	for (page = 0; page < rig->memory.pages; page++) {
		u64 base = rig->memory.page_hpa[page];

		if (pa >= base && pa - base < GUEST_PAGE) {
			*entry = rig->memory.page[page][(pa - base) / 8];
			return 0;
		}
	}
	rig->strays++;
	return VMPT_OUTPUT_FAULT;
}

static int hw_write(void *opaque, u64 pa, const u8 *bytes, size_t len)
{
	struct rig *rig = opaque;
	u8 *to = guest_at_hpa(&rig->guest, pa);

	if (!to || !guest_at_hpa(&rig->guest, pa + len - 1)) {
		rig->strays++;
		return VMPT_OUTPUT_FAULT;
	}
	/*
	 * A guest's threads may write there at the same time, if one of its regions overlaps its
	 * table.
	 */
	for (size_t i = 0; i < len; i++)
		__atomic_store_n(to + i, bytes[i], __ATOMIC_RELAXED);
	return 0;
}

void rig_init(struct rig *rig, u32 guest_pages, u32 shadow_pages)
{
	struct vmpt_caps caps;
	u32 page;

	memset(rig, 0, sizeof(*rig));
	guest_init(&rig->guest, guest_pages);
	guest_full_caps(&caps);
	vmpt_pt_rules_init(&rig->rules, &caps.cpuid);
	rig->memory.pages = shadow_pages;
	rig->memory.origin = calloc(ORIGINS(shadow_pages), sizeof(*rig->memory.origin));
	ck_assert_ptr_nonnull(rig->memory.origin);
	for (page = 0; page < shadow_pages; page++) {
		rig->memory.page[page] = aligned_alloc(GUEST_PAGE, GUEST_PAGE);
		ck_assert_ptr_nonnull(rig->memory.page[page]);
		memset(rig->memory.page[page], 0xa5, GUEST_PAGE);
		rig->memory.page_hpa[page] = RIG_PAGE_HPA(page);
	}
	rig->vcpu.ops = &guest_memory_ops;
	rig->vcpu.opaque = &rig->guest;
	rig->vcpu.rules = rig->rules;
	rig->vcpu.host_rules = rig->rules;
	rig->vcpu.plan.guest_pt = true;
	rig->vcpu.plan.shadow = true;
	rig->vcpu.shadow.memory = &rig->memory;
	rig->vcpu.regs.ctl = VMPT_CTL_TRACE_EN | VMPT_CTL_TOPA;
	rig->vcpu.regs.output_mask_ptrs = VMPT_LOWER_MASK;
	rig->hw_memory.read_entry = hw_read_entry;
	rig->hw_memory.write = hw_write;
	rig->hw_memory.opaque = rig;
}

void rig_free(struct rig *rig)
{
	u32 page;

	for (page = 0; page < rig->memory.pages; page++)
		free(rig->memory.page[page]);
	free(rig->memory.origin);
	guest_free(&rig->guest);
}

void rig_at(struct rig *rig, u64 base, u32 index, u32 offset)
{
	rig->vcpu.regs.ctl |= VMPT_CTL_TOPA;
	rig->vcpu.regs.output_base = base;
	rig->vcpu.regs.output_mask_ptrs = vmpt_pt_mask_ptrs(index, offset);
}

void rig_range(struct rig *rig, u64 base, u32 mask, u32 offset)
{
	rig->vcpu.regs.ctl &= ~VMPT_CTL_TOPA;
	rig->vcpu.regs.output_base = base;
	rig->vcpu.regs.output_mask_ptrs = (u64)offset << VMPT_OFFSET_SHIFT | mask;
}

void rig_entry(struct rig *rig, u64 table, u32 index, u64 entry)
{
	guest_put64(&rig->guest, table + 8ULL * index, entry);
}

int rig_enter(struct rig *rig)
{
	struct vmpt_vcpu *vcpu = &rig->vcpu;
	bool topa;
	int err = vmpt_shadow_ready(vcpu);

	if (err)
		return err;
	rig->hw = vcpu->regs;
	vmpt_shadow_regs(vcpu, &rig->hw.output_base, &rig->hw.output_mask_ptrs, &topa);
	rig->hw.ctl &= ~VMPT_CTL_TOPA;
	rig->hw.ctl |= topa ? VMPT_CTL_TOPA : 0;
	vcpu->loaded_status = rig->hw.status;
	vmpt_output_init(&rig->out, &rig->rules, &rig->hw, &rig->hw_memory);
	ck_assert_int_eq(vmpt_output_load(&rig->out), 0);
	rig->entered = true;
	return 0;
}

u64 rig_trace(struct rig *rig, const u8 *bytes, size_t len)
{
	u64 lost = rig->out.lost;
	size_t done;

	ck_assert(rig->entered);
	ck_assert_int_eq(vmpt_output_write(&rig->out, bytes, len, &done), 0);
	if (rig->out.events & VMPT_OUTPUT_INT && rig->hw.ctl & VMPT_CTL_INJECT)
		rig->hw.status |= VMPT_STATUS_PEND_PMI;
	return rig->out.lost - lost;
}

int rig_exit(struct rig *rig)
{
	u64 status = rig->hw.status;
	bool pmi = rig->out.events & VMPT_OUTPUT_INT, came = pmi;
	int err;

	rig->entered = false;
	err = vmpt_shadow_take_back(&rig->vcpu, rig->hw.output_base, rig->hw.output_mask_ptrs,
				    &status, &pmi);
	if (err)
		return err;
	rig->vcpu.regs.status = status;
	rig->pmi |= pmi;
	rig->ours += came && !pmi;
	return 0;
}

u64 rig_host_entry(const struct rig *rig, u32 page, u32 index)
{
	return rig->memory.page[page][index];
}
