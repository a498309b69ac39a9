// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The guest's ToPA tables or its single range (SDM 3 33.2.7.1, 33.2.7.2), walked as the processor
 * would. The guest wrote all of it and may change it at any time: an entry is read once, checked,
 * then used.
 */
#include "vmm-lib/shadow/walk.h"

#define PAGE_BYTES 4096ULL
#define PART_MAX   (128ULL << 20)

static int poison(struct vmpt_walk *walk, enum vmpt_output_error why)
{
	walk->why = (u8)why;
	return VMPT_WALK_POISON;
}

static int read_entry(struct vmpt_walk *walk, u64 *entry)
{
	const struct vmpt_vcpu *vcpu = walk->vcpu;
	u64 at = walk->table + 8ULL * walk->index;
	int err;

	/* A table must not reach beyond the physical address space either. */
	if (at & ~vmpt_mask64(vcpu->rules.maxphyaddr))
		return poison(walk, VMPT_OUTPUT_PHYSADDR);
	walk->reads++;
	*entry = 0;
	err = vcpu->ops->guest_read(vcpu->opaque, at, entry, sizeof(*entry));
	if (err <= 0)
		return err;
	/* Table 33-5 has an error for tables; but the VMM may provide the memory later. */
	if (err == VMPT_MEM_UNBACKED && vcpu->on_mem[err] == VMPT_ON_MEM_RETRY)
		return -VMPT_E_RETRY;
	return poison(walk, VMPT_OUTPUT_TABLE_MEMORY);
}

/*
 * Load the region of the current entry, through an END. This terminates, because END in entry 0 is
 * an error (rule 4b).
 */
static int load_region(struct vmpt_walk *walk)
{
	enum vmpt_output_error why;
	u64 entry;
	int err;

	for (;;) {
		err = read_entry(walk, &entry);
		if (err)
			return err;
		why = vmpt_topa_check(&walk->vcpu->rules, entry, walk->index, walk->table);
		if (why)
			return poison(walk, why);
		if (!(entry & VMPT_TOPA_END))
			break;
		walk->table = vmpt_topa_base(entry);
		walk->index = 0;
	}
	walk->entry = entry;
	walk->region = vmpt_topa_base(entry);
	walk->size = vmpt_topa_size(entry);
	return 0;
}

static int start_range(struct vmpt_walk *walk)
{
	const struct vmpt_pt_regs *regs = &walk->vcpu->regs;
	enum vmpt_output_error why = vmpt_single_range_check(regs);

	walk->table = regs->output_base;
	if (!why && regs->output_base & ~vmpt_mask64(walk->vcpu->rules.maxphyaddr))
		why = VMPT_OUTPUT_PHYSADDR;
	if (why)
		return poison(walk, why);
	walk->region = regs->output_base;
	walk->size = ((u64)(u32)regs->output_mask_ptrs | VMPT_LOWER_MASK) + 1;
	return 0;
}

int vmpt_walk_start(struct vmpt_walk *walk, const struct vmpt_vcpu *vcpu)
{
	enum vmpt_output_error why;

	memset(walk, 0, sizeof(*walk));
	walk->vcpu = vcpu;
	walk->topa = vcpu->regs.ctl & VMPT_CTL_TOPA;
	if (!walk->topa)
		return start_range(walk);
	walk->table = vcpu->regs.output_base;
	walk->index = vmpt_pt_topa_index(&vcpu->regs);
	why = vmpt_topa_check_base(&vcpu->rules, walk->table);
	return why ? poison(walk, why) : load_region(walk);
}

int vmpt_walk_next(struct vmpt_walk *walk)
{
	if (!walk->topa)
		return 0;
	/* A table without END wraps after its last possible entry (33.2.7.2). */
	walk->index = (walk->index + 1) % VMPT_TOPA_ENTRIES_MAX;
	return load_region(walk);
}

/* Look up the host memory for @gpa, the address of a page. */
static int translate(struct vmpt_walk *walk, u64 gpa)
{
	const struct vmpt_vcpu *vcpu = walk->vcpu;
	u64 hpa = 0, bytes = 0;
	int err;

	walk->translations++;
	walk->bytes = 0;
	err = vcpu->ops->guest_translate(vcpu->opaque, gpa, &hpa, &bytes);
	if (err < 0)
		return err;
	if (err) {
		if (err < VMPT_MEMS && vcpu->on_mem[err] == VMPT_ON_MEM_RETRY)
			return -VMPT_E_RETRY;
		return poison(walk, VMPT_OUTPUT_MEMORY);
	}
	if (hpa % PAGE_BYTES || bytes < PAGE_BYTES || hpa + bytes < hpa)
		return -VMPT_E_INVAL;
	walk->gpa = gpa;
	walk->hpa = hpa;
	walk->bytes = bytes;
	return 0;
}

int vmpt_walk_part(struct vmpt_walk *walk, u64 offset, u64 *hpa, u64 *size)
{
	u64 gpa = walk->region + offset, left, align;
	int err;

	/* The contiguous piece found for an earlier address may end inside this page. */
	if (gpa < walk->gpa || gpa - walk->gpa + PAGE_BYTES > walk->bytes) {
		err = translate(walk, gpa);
		if (err)
			return err;
	}
	*hpa = walk->hpa + (gpa - walk->gpa);
	left = walk->bytes - (gpa - walk->gpa);
	if (left > walk->size - offset)
		left = walk->size - offset;
	align = *hpa & -*hpa; /* 0 for address 0: any */
	*size = 1ULL << (63 - __builtin_clzll(left));
	if (align && *size > align)
		*size = align;
	if (*size > PART_MAX)
		*size = PART_MAX;
	return 0;
}

int vmpt_walk_direct(struct vmpt_walk *walk, u64 *hpa)
{
	u64 in_page = walk->region % PAGE_BYTES;
	int err = translate(walk, walk->region - in_page);

	if (walk->size >= PAGE_BYTES) {
		if (err || walk->bytes < walk->size || walk->hpa & (walk->size - 1))
			return VMPT_WALK_PARTS;
	} else if (err) {
		return err;
	}
	*hpa = walk->hpa + in_page;
	return 0;
}
