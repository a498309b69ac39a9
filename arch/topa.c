// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* Malformed ToPA entries, tables and single ranges (SDM 3 33.2.7.1, 33.2.7.2). */
#include "arch/topa.h"

static const char *const sentences[VMPT_OUTPUT_ERRORS] = {
	[VMPT_OUTPUT_OK] = "no error",
	[VMPT_OUTPUT_RESERVED] = "a reserved bit of the ToPA entry is 1",
	[VMPT_OUTPUT_TABLE_ALIGN] = "the ToPA table is not aligned to 4 KiB",
	[VMPT_OUTPUT_REGION_ALIGN] = "the output region is not aligned to its size",
	[VMPT_OUTPUT_PHYSADDR] = "an address has bits that the processor lacks",
	[VMPT_OUTPUT_OFFSET] = "OutputOffset is not below the size of the region",
	[VMPT_OUTPUT_END_FLAGS] = "INT or STOP in an END entry",
	[VMPT_OUTPUT_END_FIRST] = "the first entry of the table is END",
	[VMPT_OUTPUT_ONE_NO_END] = "the second entry is not END on a one-entry processor",
	[VMPT_OUTPUT_ONE_BASE] = "END leads to another table on a one-entry processor",
	[VMPT_OUTPUT_MASK] = "the mask of the single range is not contiguous",
	[VMPT_OUTPUT_OVERLAP] = "base and mask of the single range overlap",
	[VMPT_OUTPUT_RANGE_OFFSET] = "OutputOffset is above the mask",
	[VMPT_OUTPUT_TABLE_MEMORY] = "the ToPA table is in memory that output may not use",
	[VMPT_OUTPUT_MEMORY] = "the output region is in memory that output may not use",
	[VMPT_OUTPUT_FABRIC] = "FabricEn, but there is no trace transport",
};

const char *vmpt_output_error(enum vmpt_output_error err)
{
	if ((unsigned int)err >= VMPT_OUTPUT_ERRORS)
		return "unknown output error";
	return sentences[err];
}

/* Rules 4a to 4c: fields that may not go together. */
static enum vmpt_output_error check_fields(const struct vmpt_pt_rules *rules, u64 entry, u32 index,
					   u64 table_base)
{
	bool end = entry & VMPT_TOPA_END;

	if (end && entry & (VMPT_TOPA_INT | VMPT_TOPA_STOP))
		return VMPT_OUTPUT_END_FLAGS;
	if (end && !index)
		return VMPT_OUTPUT_END_FIRST;
	/*
	 * The manual names entry 1. Later ones can only be current by a write to
	 * MASK_PTRS; a table has one output entry there, so they are held to the same.
	 */
	if (!rules->topa_multi && index) {
		if (!end)
			return VMPT_OUTPUT_ONE_NO_END;
		if (vmpt_topa_base(entry) != table_base)
			return VMPT_OUTPUT_ONE_BASE;
	}
	return VMPT_OUTPUT_OK;
}

enum vmpt_output_error vmpt_topa_check(const struct vmpt_pt_rules *rules, u64 entry, u32 index,
				       u64 table_base)
{
	/* Figure 33-2; the address bits above MAXPHYADDR are rule 2c's */
	const u64 known =
		VMPT_TOPA_END | VMPT_TOPA_INT | VMPT_TOPA_STOP | VMPT_TOPA_SIZE | VMPT_TOPA_BASE;
	enum vmpt_output_error err = check_fields(rules, entry, index, table_base);
	u64 base = vmpt_topa_base(entry);

	if (err)
		return err;
	if (entry & ~known)
		return VMPT_OUTPUT_RESERVED;
	if (base & ~vmpt_mask64(rules->maxphyaddr))
		return VMPT_OUTPUT_PHYSADDR;
	/* Size is ignored with END (Table 33-3) */
	if (!(entry & VMPT_TOPA_END) && base & (vmpt_topa_size(entry) - 1))
		return VMPT_OUTPUT_REGION_ALIGN;
	return VMPT_OUTPUT_OK;
}

enum vmpt_output_error vmpt_topa_check_base(const struct vmpt_pt_rules *rules, u64 base)
{
	if (base & 0xfff)
		return VMPT_OUTPUT_TABLE_ALIGN;
	if (base & ~vmpt_mask64(rules->maxphyaddr))
		return VMPT_OUTPUT_PHYSADDR;
	return VMPT_OUTPUT_OK;
}

enum vmpt_output_error vmpt_single_range_check(const struct vmpt_pt_regs *regs)
{
	u64 mask = (u32)regs->output_mask_ptrs | VMPT_LOWER_MASK;

	if (mask & (mask + 1))
		return VMPT_OUTPUT_MASK;
	if (regs->output_base & mask)
		return VMPT_OUTPUT_OVERLAP;
	if (vmpt_pt_output_offset(regs) > mask)
		return VMPT_OUTPUT_RANGE_OFFSET;
	return VMPT_OUTPUT_OK;
}
