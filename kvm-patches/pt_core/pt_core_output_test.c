// SPDX-License-Identifier: GPL-2.0-only
/*
 * KUnit tests of pt_core.c: output through ToPA tables (Intel SDM Vol. 3, 33.2.7) and the PIP
 * that KVM writes in the processor's place (33.5.2.3, Table 33-24). What is expected stands in
 * the manual and is worked out by hand.
 */
#include <kunit/test.h>

#include <linux/align.h>
#include <linux/array_size.h>
#include <linux/bits.h>
#include <linux/errno.h>
#include <linux/string.h>

#include "pt_core.h"

#define TABLE	0x10000ull /* a ToPA table ... */
#define TABLE_2 0x11000ull
#define OUT_A	0x20000ull /* ... and two pages that output goes to, side by side */
#define OUT_B	0x21000ull

#define TOPA_END  BIT_ULL(0)
#define TOPA_INT  BIT_ULL(2)
#define TOPA_STOP BIT_ULL(4)

/* A guest's memory, its vCPU's registers, and an output there. */
struct bed {
	u64 table[4], table_2[4];
	u8 a[4096], b[4096];
	int fail_read, fail_write; /* what the callbacks return there */
	u64 fail_pa;
	int wrong; /* accesses that may not be */
	struct pt_core_cpuid cpuid;
	struct pt_core_rules rules;
	struct pt_core_regs regs;
	struct pt_core_output_memory memory;
	struct pt_core_output out;
};

static int read_entry(void *opaque, u64 pa, u64 *entry)
{
	struct bed *bed = opaque;

	if (!IS_ALIGNED(pa, 8))
		bed->wrong++;
	if (bed->fail_read && pa == bed->fail_pa)
		return bed->fail_read;
	if (pa >= TABLE && pa < TABLE + sizeof(bed->table))
		*entry = bed->table[(pa - TABLE) / 8];
	else if (pa >= TABLE_2 && pa < TABLE_2 + sizeof(bed->table_2))
		*entry = bed->table_2[(pa - TABLE_2) / 8];
	else
		return PT_CORE_OUTPUT_FAULT;
	return 0;
}

static int write_bytes(void *opaque, u64 pa, const u8 *bytes, size_t len)
{
	struct bed *bed = opaque;
	u64 page = ALIGN_DOWN(pa, 4096);

	if (!len || pa + len > page + 4096)
		bed->wrong++;
	if (bed->fail_write && page == bed->fail_pa)
		return bed->fail_write;
	if (page != OUT_A && page != OUT_B)
		return PT_CORE_OUTPUT_FAULT;
	memcpy((page == OUT_A ? bed->a : bed->b) + (pa - page), bytes, len);
	return 0;
}

/* Output to OUT_A at @offset, then to OUT_B, then again; the guest traces its kernel. */
static struct bed *make_bed(struct kunit *test, u32 offset)
{
	struct bed *bed = kunit_kzalloc(test, sizeof(*bed), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, bed);
	bed->table[0] = OUT_A;
	bed->table[1] = OUT_B;
	bed->table[2] = TABLE | TOPA_END;
	bed->cpuid = (struct pt_core_cpuid){
		.present = 1,
		.maxphyaddr = 39,
		.linear_bits = 48,
		.leaf14 = { { .eax = 1, .ebx = 0x1ff, .ecx = 0x7 },
			    { .eax = 0x02490004, .ebx = 0x003f0fff } },
	};
	pt_core_rules_init(&bed->rules, &bed->cpuid);
	pt_core_reset_cold(&bed->regs);
	bed->regs.ctl = BIT_ULL(0) | BIT_ULL(2) | BIT_ULL(8) | BIT_ULL(13);
	bed->regs.status = 0x4;
	bed->regs.output_base = TABLE;
	bed->regs.output_mask_ptrs = (u64)offset << 32 | 0x7f;
	bed->memory.read_entry = read_entry;
	bed->memory.write = write_bytes;
	bed->memory.opaque = bed;
	pt_core_output_init(&bed->out, &bed->rules, &bed->regs, &bed->memory);
	return bed;
}

/* ---- Table 33-3, Figure 33-2, "ToPA Errors": an entry and what is wrong with it ---- */

static void topa_rows(struct kunit *test)
{
	static const struct {
		u64 entry;
		u8 index;
		enum pt_core_output_error why;
	} rows[] = {
		{ OUT_A, 0, PT_CORE_OUTPUT_OK },
		{ OUT_A | TOPA_INT | TOPA_STOP, 0, PT_CORE_OUTPUT_OK },
		{ TABLE_2 | TOPA_END, 1, PT_CORE_OUTPUT_OK },
		{ TABLE_2 | TOPA_END | 0x3c0, 1, PT_CORE_OUTPUT_OK }, /* its size is ignored */
		{ OUT_A | BIT_ULL(1), 0, PT_CORE_OUTPUT_RESERVED },
		{ OUT_A | BIT_ULL(3), 0, PT_CORE_OUTPUT_RESERVED },
		{ OUT_A | BIT_ULL(5), 0, PT_CORE_OUTPUT_RESERVED },
		{ OUT_A | BIT_ULL(10), 0, PT_CORE_OUTPUT_RESERVED },
		{ OUT_A | BIT_ULL(11), 0, PT_CORE_OUTPUT_RESERVED },
		{ OUT_A | BIT_ULL(52), 0, PT_CORE_OUTPUT_RESERVED },
		{ OUT_A | BIT_ULL(63), 0, PT_CORE_OUTPUT_RESERVED },
		{ BIT_ULL(38), 0, PT_CORE_OUTPUT_OK },
		{ BIT_ULL(39), 0, PT_CORE_OUTPUT_PHYSADDR }, /* 2c */
		{ BIT_ULL(39) | TOPA_END, 1, PT_CORE_OUTPUT_PHYSADDR },
		{ TABLE | TOPA_END | TOPA_INT, 1, PT_CORE_OUTPUT_END_FLAGS }, /* 4a */
		{ TABLE | TOPA_END | TOPA_STOP, 1, PT_CORE_OUTPUT_END_FLAGS },
		{ TABLE | TOPA_END, 0, PT_CORE_OUTPUT_END_FIRST }, /* 4b */
	};
	struct bed *bed = make_bed(test, 0);
	int i;

	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		u64 entry = rows[i].entry;
		u32 index = rows[i].index;

		KUNIT_EXPECT_EQ_MSG(test, pt_core_topa_check(&bed->rules, entry, index, TABLE),
				    rows[i].why, "row %d", i);
	}
	/* 2b: sizes 4K to 128M, aligned to themselves */
	for (i = 0; i < 16; i++) {
		u64 size = 4096ull << i, entry = (u64)i << 6;

		KUNIT_EXPECT_EQ(test, pt_core_topa_check(&bed->rules, size | entry, 0, TABLE),
				PT_CORE_OUTPUT_OK);
		if (i)
			KUNIT_EXPECT_EQ(test,
					pt_core_topa_check(&bed->rules, size / 2 | entry, 0, TABLE),
					PT_CORE_OUTPUT_REGION_ALIGN);
	}
	/* 2a, 2c: the table */
	KUNIT_EXPECT_EQ(test, pt_core_topa_check_base(&bed->rules, TABLE), PT_CORE_OUTPUT_OK);
	KUNIT_EXPECT_EQ(test, pt_core_topa_check_base(&bed->rules, TABLE | 0x800),
			PT_CORE_OUTPUT_TABLE_ALIGN);
	KUNIT_EXPECT_EQ(test, pt_core_topa_check_base(&bed->rules, BIT_ULL(39)),
			PT_CORE_OUTPUT_PHYSADDR);
	/* 4c: processors with one output entry */
	bed->rules.topa_multi = 0;
	KUNIT_EXPECT_EQ(test, pt_core_topa_check(&bed->rules, OUT_A, 0, TABLE), PT_CORE_OUTPUT_OK);
	KUNIT_EXPECT_EQ(test, pt_core_topa_check(&bed->rules, TABLE | TOPA_END, 1, TABLE),
			PT_CORE_OUTPUT_OK);
	KUNIT_EXPECT_EQ(test, pt_core_topa_check(&bed->rules, OUT_B, 1, TABLE),
			PT_CORE_OUTPUT_ONE_NO_END);
	KUNIT_EXPECT_EQ(test, pt_core_topa_check(&bed->rules, TABLE_2 | TOPA_END, 1, TABLE),
			PT_CORE_OUTPUT_ONE_BASE);
}

/* 33.2.7.1, "Single-Range Output Errors" */
static void single_range(struct kunit *test)
{
	static const struct {
		u64 base, mask_ptrs;
		enum pt_core_output_error why;
	} rows[] = {
		{ OUT_A, 0x7f, PT_CORE_OUTPUT_OK },
		{ OUT_A, 0xfff, PT_CORE_OUTPUT_OK },
		{ OUT_A, 0xfff00000fff, PT_CORE_OUTPUT_OK },
		{ OUT_A, 0x100000000fff, PT_CORE_OUTPUT_RANGE_OFFSET },
		{ OUT_A, 0xf7f, PT_CORE_OUTPUT_MASK },
		{ OUT_A | 0x800, 0xfff, PT_CORE_OUTPUT_OVERLAP },
		{ 0, 0xffffffff, PT_CORE_OUTPUT_OK },
	};
	struct pt_core_regs regs = { 0 };
	int i;

	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		regs.output_base = rows[i].base;
		regs.output_mask_ptrs = rows[i].mask_ptrs;
		KUNIT_EXPECT_EQ_MSG(test, pt_core_single_range_check(&regs), rows[i].why, "row %d",
				    i);
	}
}

/* ---- Table 33-24: the PIP ---- */

static void pip_bytes(struct kunit *test)
{
	static const struct {
		u64 cr3;
		bool pae, nr;
		u8 pip[8];
	} rows[] = {
		{ 0, 0, 0, { 0x02, 0x43 } },
		{ 0, 0, 1, { 0x02, 0x43, 0x01 } },
		{ 0x123456000, 0, 0, { 0x02, 0x43, 0x00, 0x56, 0x34, 0x12 } },
		/* PCID, or PWT and PCD: none of the address */
		{ 0x123456fff, 0, 1, { 0x02, 0x43, 0x01, 0x56, 0x34, 0x12 } },
		{ 0x123456fff, 1, 0, { 0x02, 0x43, 0xfe, 0x56, 0x34, 0x12 } },
		{ 0x800000a5c7e39000, 0, 0, { 0x02, 0x43, 0x00, 0x39, 0x7e, 0x5c, 0x0a } },
		{ 0xffffffffffffffff, 0, 1, { 0x02, 0x43, 0x01, 0xff, 0xff, 0xff, 0xff, 0xff } },
	};
	u8 pip[PT_CORE_PIP_SIZE];
	int i;

	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		struct pt_core_cr3_write write = { .new_cr3 = rows[i].cr3,
						   .pae_after = rows[i].pae };

		pt_core_pip_bytes(&write, rows[i].nr, pip);
		KUNIT_EXPECT_EQ_MSG(test, memcmp(pip, rows[i].pip, sizeof(pip)), 0, "row %d", i);
	}
}

/* "TriggerEn && ContextEn && IA32_RTIT_CTL.OS", and by what changed CR3 */
static void pip_due(struct kunit *test)
{
	const u64 on = BIT_ULL(0) | BIT_ULL(2), filter = BIT_ULL(7), user = BIT_ULL(3);
	const struct {
		u64 ctl, status;
		struct pt_core_cr3_write write; /* old, new, cause, CPLs */
		bool due;
	} rows[] = {
		{ on, 0, { 0x1000, 0x2000, PT_CORE_CR3_MOV }, true },
		{ on, 0, { 0x1000, 0x1000, PT_CORE_CR3_MOV }, true },
		{ on, 0, { 0x1000, 0x2000, PT_CORE_CR3_NESTED }, true },
		{ on, 0, { 0x1000, 0x2000, PT_CORE_CR3_INIT }, true },
		{ on, 0, { 0x1000, 0x2000, PT_CORE_CR3_TASK_SWITCH }, true },
		{ on, 0, { 0x1000, 0x1000, PT_CORE_CR3_TASK_SWITCH }, false },
		{ on, 0, { 0x1000, 0x8000000000001000, PT_CORE_CR3_TASK_SWITCH }, false },
		{ on, 0, { 0x1000, 0x2000, PT_CORE_CR3_SMM }, false }, /* 33.2.9.3 */
		{ on & ~1ull, 0, { 0x1000, 0x2000, PT_CORE_CR3_MOV }, false },
		{ on, BIT_ULL(4), { 0x1000, 0x2000, PT_CORE_CR3_MOV }, false },
		{ on, BIT_ULL(5), { 0x1000, 0x2000, PT_CORE_CR3_MOV }, false },
		{ BIT_ULL(0) | user, 0, { 0x1000, 0x2000, PT_CORE_CR3_MOV }, false },
		{ on | user, 0, { 0x1000, 0x2000, PT_CORE_CR3_TASK_SWITCH, 3, 3 }, true },
		{ on, 0, { 0x1000, 0x2000, PT_CORE_CR3_TASK_SWITCH, 3, 3 }, false },
		{ on, 0, { 0x1000, 0x2000, PT_CORE_CR3_TASK_SWITCH, 3, 0 }, true },
		/* CR3_MATCH is 3000H: into and out of the process, and past it */
		{ on | filter, 0, { 0x1000, 0x3000, PT_CORE_CR3_MOV }, true },
		{ on | filter, 0, { 0x3000, 0x1000, PT_CORE_CR3_MOV }, true },
		{ on | filter, 0, { 0x1000, 0x2000, PT_CORE_CR3_MOV }, false },
		{ on | filter, 0, { 0x1000, 0x3fff, PT_CORE_CR3_MOV }, true },
		{ on | filter, 0, { 0x1000, 0x3fe0, PT_CORE_CR3_MOV, 0, 0, true, true }, false },
		{ on | filter, 0, { 0x1000, 0x301f, PT_CORE_CR3_MOV, 0, 0, true, true }, true },
	};
	struct pt_core_regs regs = { .cr3_match = 0x3000 };
	int i;

	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		regs.ctl = rows[i].ctl;
		regs.status = rows[i].status;
		KUNIT_EXPECT_EQ_MSG(test, pt_core_pip_due(&regs, &rows[i].write), rows[i].due,
				    "row %d", i);
	}
}

/* ---- the PIP in a guest's tables ---- */

static const struct pt_core_cr3_write to_2000 = { 0x1000, 0x2000, PT_CORE_CR3_MOV };
static const u8 pip_2000[] = { 0x02, 0x43, 0x00, 0x02, 0x00, 0x00, 0x00, 0x00 };

/* A byte more each time: the PIP lies in one page, across both, in the other. */
static void pip_across(struct kunit *test)
{
	u32 offset;

	for (offset = 4080; offset < 4096; offset++) {
		u8 *both = kunit_kzalloc(test, 2 * 4096, GFP_KERNEL);
		struct bed *bed = make_bed(test, offset);
		u32 end = offset + 8;

		KUNIT_ASSERT_NOT_NULL(test, both);
		KUNIT_EXPECT_EQ(test, pt_core_pip_append(&bed->out, &to_2000, false), 1);
		memcpy(both, bed->a, 4096);
		memcpy(both + 4096, bed->b, 4096);
		KUNIT_EXPECT_EQ_MSG(test, memcmp(both + offset, pip_2000, 8), 0, "%u", offset);
		memset(both + offset, 0, 8);
		KUNIT_EXPECT_NULL_MSG(test, memchr_inv(both, 0, 2 * 4096), "%u", offset);
		KUNIT_EXPECT_EQ_MSG(test, bed->regs.output_mask_ptrs,
				    end < 4096 ? (u64)end << 32 | 0x7f
					       : (u64)(end - 4096) << 32 | 0xff,
				    "%u", offset);
		KUNIT_EXPECT_EQ(test, bed->regs.output_base, TABLE);
		KUNIT_EXPECT_EQ(test, bed->wrong, 0);
		KUNIT_EXPECT_LE(test, bed->out.reads, 4);
	}
}

/* A region of two pages: memory is written page by page. */
static void pip_pages(struct kunit *test)
{
	struct bed *bed = make_bed(test, 4093);

	bed->table[0] |= 1 << 6;
	KUNIT_EXPECT_EQ(test, pt_core_pip_append(&bed->out, &to_2000, false), 1);
	KUNIT_EXPECT_EQ(test, memcmp(bed->a + 4093, pip_2000, 3), 0);
	KUNIT_EXPECT_EQ(test, memcmp(bed->b, pip_2000 + 3, 5), 0);
	KUNIT_EXPECT_EQ(test, bed->regs.output_mask_ptrs, 0x10050000007f);
	KUNIT_EXPECT_EQ(test, bed->wrong, 0);
}

/* END leads to another table; INT tells the caller of a PMI. */
static void pip_end_and_int(struct kunit *test)
{
	struct bed *bed = make_bed(test, 4092);

	bed->table[0] |= TOPA_INT;
	bed->table[1] = TABLE_2 | TOPA_END;
	bed->table_2[0] = OUT_B;
	KUNIT_EXPECT_EQ(test, pt_core_pip_append(&bed->out, &to_2000, false), 1);
	KUNIT_EXPECT_EQ(test, memcmp(bed->a + 4092, pip_2000, 4), 0);
	KUNIT_EXPECT_EQ(test, memcmp(bed->b, pip_2000 + 4, 4), 0);
	KUNIT_EXPECT_EQ(test, bed->regs.output_base, TABLE_2);
	KUNIT_EXPECT_EQ(test, bed->regs.output_mask_ptrs, 0x40000007f);
	KUNIT_EXPECT_EQ(test, bed->out.events, PT_CORE_OUTPUT_INT);
	KUNIT_EXPECT_EQ(test, bed->regs.status, 0x4);
}

/* STOP: output ends with the region, the packet is cut, Stopped is set, TriggerEn is not. */
static void pip_stop(struct kunit *test)
{
	struct bed *bed = make_bed(test, 4093);

	bed->table[0] |= TOPA_STOP;
	KUNIT_EXPECT_EQ(test, pt_core_pip_append(&bed->out, &to_2000, false), 1);
	KUNIT_EXPECT_EQ(test, memcmp(bed->a + 4093, pip_2000, 3), 0);
	KUNIT_EXPECT_NULL(test, memchr_inv(bed->b, 0, sizeof(bed->b)));
	KUNIT_EXPECT_EQ(test, bed->regs.status, 0x20);
	KUNIT_EXPECT_EQ(test, bed->regs.output_mask_ptrs, 0x10000000007f);
	KUNIT_EXPECT_EQ(test, bed->out.events, PT_CORE_OUTPUT_STOP);
	KUNIT_EXPECT_EQ(test, pt_core_pip_append(&bed->out, &to_2000, false), 0);
}

/* STOP and INT: both happen, the STOP first. */
static void pip_stop_and_int(struct kunit *test)
{
	struct bed *bed = make_bed(test, 4088);

	bed->table[0] |= TOPA_STOP | TOPA_INT;
	KUNIT_EXPECT_EQ(test, pt_core_pip_append(&bed->out, &to_2000, false), 1);
	KUNIT_EXPECT_EQ(test, bed->out.events, PT_CORE_OUTPUT_STOP | PT_CORE_OUTPUT_INT);
	KUNIT_EXPECT_EQ(test, bed->regs.status, 0x20);
	KUNIT_EXPECT_EQ(test, bed->regs.output_base, TABLE);
}

/* A processor with one output entry signals INT before the region is full. */
static void pip_early_int(struct kunit *test)
{
	struct bed *bed = make_bed(test, 4096 - PT_CORE_OUTPUT_EARLY - 9);

	bed->rules.topa_multi = 0;
	bed->table[0] |= TOPA_INT;
	bed->table[1] = TABLE | TOPA_END;
	KUNIT_EXPECT_EQ(test, pt_core_pip_append(&bed->out, &to_2000, false), 1);
	KUNIT_EXPECT_EQ(test, bed->out.events, 0);
	KUNIT_EXPECT_EQ(test, pt_core_pip_append(&bed->out, &to_2000, false), 1);
	KUNIT_EXPECT_EQ(test, bed->out.events, PT_CORE_OUTPUT_INT);
	/* Once, and the region is written again from its start. */
	bed->out.events = 0;
	bed->regs.output_mask_ptrs = 0xffc0000007f;
	KUNIT_EXPECT_EQ(test, pt_core_pip_append(&bed->out, &to_2000, false), 1);
	KUNIT_EXPECT_EQ(test, bed->out.events, 0);
	KUNIT_EXPECT_EQ(test, memcmp(bed->a, pip_2000 + 4, 4), 0);
	KUNIT_EXPECT_EQ(test, bed->regs.output_mask_ptrs, 0x40000007f);
}

/* 33.2.7.1: a single range goes on at its base; its base and mask stay. */
static void pip_single_range(struct kunit *test)
{
	struct bed *bed = make_bed(test, 0);

	bed->regs.ctl &= ~BIT_ULL(8);
	bed->regs.output_base = OUT_A + 0x800;
	bed->regs.output_mask_ptrs = 0x7d000007ff;
	KUNIT_EXPECT_EQ(test, pt_core_pip_append(&bed->out, &to_2000, false), 1);
	KUNIT_EXPECT_EQ(test, memcmp(bed->a + 0x800 + 0x7d, pip_2000, 8), 0);
	KUNIT_EXPECT_EQ(test, bed->regs.output_mask_ptrs, 0x85000007ff);
	bed->regs.output_mask_ptrs = 0x7fd000007ff;
	KUNIT_EXPECT_EQ(test, pt_core_pip_append(&bed->out, &to_2000, false), 1);
	KUNIT_EXPECT_EQ(test, memcmp(bed->a + 0xffd, pip_2000, 3), 0);
	KUNIT_EXPECT_EQ(test, memcmp(bed->a + 0x800, pip_2000 + 3, 5), 0);
	KUNIT_EXPECT_EQ(test, bed->regs.output_mask_ptrs, 0x5000007ff);
	KUNIT_EXPECT_EQ(test, bed->regs.output_base, OUT_A + 0x800);
	KUNIT_EXPECT_EQ(test, bed->regs.status, 0x4);
	KUNIT_EXPECT_NULL(test, memchr_inv(bed->b, 0, sizeof(bed->b)));
	KUNIT_EXPECT_EQ(test, bed->out.reads, 0);
}

/* Table 33-5: bytes for restricted memory are dropped, and output goes on behind it. */
static void pip_dropped(struct kunit *test)
{
	struct bed *bed = make_bed(test, 4092);

	bed->fail_write = PT_CORE_OUTPUT_DROPPED;
	bed->fail_pa = OUT_A;
	KUNIT_EXPECT_EQ(test, pt_core_pip_append(&bed->out, &to_2000, false), 1);
	KUNIT_EXPECT_EQ(test, bed->out.dropped, 4);
	KUNIT_EXPECT_NULL(test, memchr_inv(bed->a, 0, sizeof(bed->a)));
	KUNIT_EXPECT_EQ(test, memcmp(bed->b, pip_2000 + 4, 4), 0);
	KUNIT_EXPECT_EQ(test, bed->regs.output_mask_ptrs, 0x4000000ff);
	KUNIT_EXPECT_EQ(test, bed->regs.status, 0x4);
}

/* Tables and regions that cannot be: STATUS.Error and no TriggerEn, nothing is written. */
static void pip_error(struct kunit *test)
{
	static const struct {
		u64 ctl, base, mask_ptrs, entry, entry_1;
		enum pt_core_output_error why;
	} rows[] = {
		{ 0x105, TABLE, 0x7f, OUT_A | BIT_ULL(1), 0, PT_CORE_OUTPUT_RESERVED },
		{ 0x105, TABLE + 0x800, 0x7f, OUT_A, 0, PT_CORE_OUTPUT_TABLE_ALIGN },
		{ 0x105, TABLE, 0x7f, OUT_A | 0x40 | 0x1000, 0, PT_CORE_OUTPUT_REGION_ALIGN },
		{ 0x105, TABLE, 0x10000000007f, OUT_A, 0, PT_CORE_OUTPUT_OFFSET },
		{ 0x105, TABLE, 0x7f, TABLE | TOPA_END, 0, PT_CORE_OUTPUT_END_FIRST },
		/* memory that is none, for the table and for the region */
		{ 0x105, 0x50000, 0x7f, OUT_A, 0, PT_CORE_OUTPUT_TABLE_MEMORY },
		{ 0x105, TABLE, 0x7f, 0x40000, 0, PT_CORE_OUTPUT_MEMORY },
		/* the entry lies beyond MAXPHYADDR */
		{ 0x105, 0x7ffffff000, 0x1007f, OUT_A, 0, PT_CORE_OUTPUT_PHYSADDR },
		{ 0x105, 0x8000000000, 0x7f, OUT_A, 0, PT_CORE_OUTPUT_PHYSADDR },
		/* END, and what is wrong with the first entry there */
		{ 0x105, TABLE, 0xff, OUT_A | BIT_ULL(3), TABLE | TOPA_END,
		  PT_CORE_OUTPUT_RESERVED },
		/* single range */
		{ 0x5, OUT_A, 0xf7f, 0, 0, PT_CORE_OUTPUT_MASK },
		{ 0x5, 0x8000000000, 0xfff, 0, 0, PT_CORE_OUTPUT_PHYSADDR },
		/* FabricEn: a guest has none */
		{ 0x145, TABLE, 0x7f, OUT_A, 0, PT_CORE_OUTPUT_FABRIC },
	};
	int i;

	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		struct bed *bed = make_bed(test, 0);

		bed->regs.ctl = rows[i].ctl;
		bed->regs.output_base = rows[i].base;
		bed->regs.output_mask_ptrs = rows[i].mask_ptrs;
		bed->table[0] = rows[i].entry;
		bed->table[1] = rows[i].entry_1;
		KUNIT_EXPECT_EQ(test, pt_core_pip_append(&bed->out, &to_2000, false), 1);
		KUNIT_EXPECT_EQ_MSG(test, bed->out.why, rows[i].why, "row %d", i);
		KUNIT_EXPECT_EQ_MSG(test, bed->out.events, PT_CORE_OUTPUT_ERROR, "row %d", i);
		KUNIT_EXPECT_EQ_MSG(test, bed->out.lost, 8, "row %d", i);
		KUNIT_EXPECT_EQ_MSG(test, bed->regs.status, 0x10, "row %d", i);
		KUNIT_EXPECT_NULL(test, memchr_inv(bed->a, 0, sizeof(bed->a)));
		KUNIT_EXPECT_EQ(test, bed->wrong, 0);
	}
}

/* The entry behind is bad: the region is filled, then it is the current one. */
static void pip_error_next(struct kunit *test)
{
	struct bed *bed = make_bed(test, 4092);

	bed->table[0] |= TOPA_INT;
	bed->table[1] |= BIT_ULL(63);
	KUNIT_EXPECT_EQ(test, pt_core_pip_append(&bed->out, &to_2000, false), 1);
	KUNIT_EXPECT_EQ(test, bed->regs.status, 0x10);
	KUNIT_EXPECT_EQ(test, memcmp(bed->a + 4092, pip_2000, 4), 0);
	KUNIT_EXPECT_EQ(test, bed->regs.output_mask_ptrs, 0xff);
	KUNIT_EXPECT_EQ(test, bed->out.lost, 4);
	KUNIT_EXPECT_EQ(test, bed->out.events, PT_CORE_OUTPUT_INT | PT_CORE_OUTPUT_ERROR);
}

/* Memory that is not there yet: the position stays and the call can be repeated. */
static void pip_again(struct kunit *test)
{
	static const struct {
		int read, write;
		u64 pa;
	} rows[] = {
		{ -EFAULT, 0, TABLE },
		{ -EFAULT, 0, TABLE + 8 },
		{ 0, -EAGAIN, OUT_A },
		{ 0, -EAGAIN, OUT_B },
	};
	struct pt_core_regs before;
	int i;

	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		struct bed *bed = make_bed(test, 4092);

		before = bed->regs;
		bed->fail_read = rows[i].read;
		bed->fail_write = rows[i].write;
		bed->fail_pa = rows[i].pa;
		KUNIT_EXPECT_EQ_MSG(test, pt_core_pip_append(&bed->out, &to_2000, false),
				    rows[i].read + rows[i].write, "row %d", i);
		KUNIT_EXPECT_EQ_MSG(test, memcmp(&bed->regs, &before, sizeof(before)), 0, "row %d",
				    i);
		bed->fail_read = 0;
		bed->fail_write = 0;
		KUNIT_EXPECT_EQ(test, pt_core_pip_append(&bed->out, &to_2000, false), 1);
		KUNIT_EXPECT_EQ_MSG(test, memcmp(bed->a + 4092, pip_2000, 4), 0, "row %d", i);
		KUNIT_EXPECT_EQ_MSG(test, memcmp(bed->b, pip_2000 + 4, 4), 0, "row %d", i);
		KUNIT_EXPECT_EQ_MSG(test, bed->regs.output_mask_ptrs, 0x4000000ff, "row %d", i);
	}
}

/*
 * Table 33-7, PacketByteCnt: grows by what is written; 0 asks for a PSB+ at the next enable, so
 * that it becomes 0 only when a period (2K here) is over; PendPSB does that under
 * InjectPsbPmiOnEnable.
 */
static void pip_count(struct kunit *test)
{
	static const struct {
		u32 before;
		bool inject;
		u32 after;
		bool pend;
	} rows[] = {
		{ 0, false, 0, false },	      { 100, false, 108, false },
		{ 2039, false, 2047, false }, { 2040, false, 0, false },
		{ 2047, false, 0, false },    { 100, true, 108, false },
		{ 2040, true, 2048, true },
	};
	int i;

	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		struct bed *bed = make_bed(test, 0);

		bed->regs.status |= (u64)rows[i].before << 32;
		if (rows[i].inject)
			bed->regs.ctl |= BIT_ULL(56);
		KUNIT_EXPECT_EQ(test, pt_core_pip_append(&bed->out, &to_2000, false), 1);
		KUNIT_EXPECT_EQ_MSG(test, bed->regs.status,
				    (u64)rows[i].after << 32 | (rows[i].pend ? 0x44 : 0x4),
				    "row %d", i);
	}
}

/* Tables of any content: no access outside of a page, four entries at most, no way to hang. */
static void hostile(struct kunit *test)
{
	u64 seed = 0x5eed;
	int i, n;

	for (i = 0; i < 2000; i++) {
		struct bed *bed = make_bed(test, 0);

		for (n = 0; n < 8; n++) {
			u64 *entry = n < 4 ? &bed->table[n] : &bed->table_2[n - 4];

			seed = seed * 6364136223846793005ull + 1442695040888963407ull;
			*entry = (seed >> 33 & 0x31015) | (seed >> 60 ? 0 : seed);
		}
		bed->regs.output_mask_ptrs = (seed >> 20 & 0x1fff) << 32 | (seed >> 40 & 0x380);
		if (seed & BIT_ULL(50))
			bed->regs.ctl &= ~BIT_ULL(8);
		bed->rules.topa_multi = seed >> 51 & 1;
		KUNIT_EXPECT_EQ(test, pt_core_pip_append(&bed->out, &to_2000, true), 1);
		KUNIT_EXPECT_EQ(test, bed->wrong, 0);
		KUNIT_EXPECT_LE(test, bed->out.reads, 4);
		kunit_kfree(test, bed);
	}
}

static struct kunit_case pt_core_output_cases[] = {
	KUNIT_CASE(topa_rows),	     KUNIT_CASE(single_range),	   KUNIT_CASE(pip_bytes),
	KUNIT_CASE(pip_due),	     KUNIT_CASE(pip_across),	   KUNIT_CASE(pip_pages),
	KUNIT_CASE(pip_end_and_int), KUNIT_CASE(pip_stop),	   KUNIT_CASE(pip_stop_and_int),
	KUNIT_CASE(pip_early_int),   KUNIT_CASE(pip_single_range), KUNIT_CASE(pip_dropped),
	KUNIT_CASE(pip_error),	     KUNIT_CASE(pip_error_next),   KUNIT_CASE(pip_again),
	KUNIT_CASE(pip_count),	     KUNIT_CASE(hostile),	   {},
};

static struct kunit_suite pt_core_output_suite = {
	.name = "kvm-pt-core-output",
	.test_cases = pt_core_output_cases,
};

kunit_test_suite(pt_core_output_suite);
