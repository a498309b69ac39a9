/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Entries of the Table of Physical Addresses (SDM 3 33.2.7.2, Table 33-3, Figure 33-2)
 * and what makes one malformed. Pure functions.
 */
#ifndef VMPT_ARCH_TOPA_H
#define VMPT_ARCH_TOPA_H

#include "arch/pt-regs.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Fields of an entry (Table 33-3). */
#define VMPT_TOPA_END	     (1ULL << 0)
#define VMPT_TOPA_INT	     (1ULL << 2)
#define VMPT_TOPA_STOP	     (1ULL << 4)
#define VMPT_TOPA_SIZE_SHIFT 6
#define VMPT_TOPA_SIZE	     (0xfULL << VMPT_TOPA_SIZE_SHIFT)
#define VMPT_TOPA_BASE	     0x000ffffffffff000ULL
/* Tables have at most this many entries: offsets 0 to 0FFFFFF8H. */
#define VMPT_TOPA_ENTRIES_MAX (1u << 25)

/* What is wrong with an output configuration: STATUS.Error and this is why. */
enum vmpt_output_error {
	VMPT_OUTPUT_OK,
	VMPT_OUTPUT_RESERVED,	  /* ToPA 1: a reserved bit of an entry */
	VMPT_OUTPUT_TABLE_ALIGN,  /* ToPA 2a: table base not 4K-aligned */
	VMPT_OUTPUT_REGION_ALIGN, /* ToPA 2b: region not aligned to its size */
	VMPT_OUTPUT_PHYSADDR,	  /* ToPA 2c: address bits the processor has not */
	VMPT_OUTPUT_OFFSET,	  /* ToPA 3: OutputOffset not below the region's size */
	VMPT_OUTPUT_END_FLAGS,	  /* ToPA 4a: INT or STOP with END */
	VMPT_OUTPUT_END_FIRST,	  /* ToPA 4b: END in entry 0 */
	VMPT_OUTPUT_ONE_NO_END,	  /* ToPA 4c i: single-entry processor, entry 1 without END */
	VMPT_OUTPUT_ONE_BASE,	  /* ToPA 4c ii: its END goes elsewhere */
	VMPT_OUTPUT_MASK,	  /* single range: mask not contiguous */
	VMPT_OUTPUT_OVERLAP,	  /* single range: base and mask overlap */
	VMPT_OUTPUT_RANGE_OFFSET, /* single range: OutputOffset above the mask */
	VMPT_OUTPUT_TABLE_MEMORY, /* the table is in memory that output may not use (33.2.7.4) */
	VMPT_OUTPUT_MEMORY,	  /* the region is in such memory */
	VMPT_OUTPUT_FABRIC,	  /* FabricEn: there is no transport here */
	VMPT_OUTPUT_ERRORS
};

/* A short sentence; static memory, never NULL. */
const char *vmpt_output_error(enum vmpt_output_error err);

/* Bytes of the region of an entry with END = 0: 4 KiB to 128 MiB. */
static inline u64 vmpt_topa_size(u64 entry)
{
	return 4096ULL << (entry >> VMPT_TOPA_SIZE_SHIFT & 0xf);
}

/* The address in an entry: of its region, with END of the next table. */
static inline u64 vmpt_topa_base(u64 entry)
{
	return entry & VMPT_TOPA_BASE;
}

/*
 * Check entry @index of the table at @table_base by rules 1, 2b, 2c, 4a–4c, in this order
 * of precedence: 4a, 4b, 4c, 1, 2c, 2b.
 */
enum vmpt_output_error vmpt_topa_check(const struct vmpt_pt_rules *rules, u64 entry, u32 index,
				       u64 table_base);

/* Check a table's base by rules 2a and 2c. */
enum vmpt_output_error vmpt_topa_check_base(const struct vmpt_pt_rules *rules, u64 base);

/* Check the three rules of single-range output (33.2.7.1). */
enum vmpt_output_error vmpt_single_range_check(const struct vmpt_pt_regs *regs);

#ifdef __cplusplus
}
#endif

#endif
