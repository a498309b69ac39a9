// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * arch/topa.c: each error of SDM 3 33.2.7.1 and 33.2.7.2 by its number, and cases without errors.
 */
#include "arch/topa.h"
#include "tests/support/support.h"

#define END   0x1ULL
#define INT   0x4ULL
#define STOP  0x10ULL
#define TABLE 0x12345000ULL

struct entry_row {
	const char *what;
	u64 entry;
	u32 index;
	u8 multi, maxphyaddr;
	enum vmpt_output_error want;
};

/* Bits by Figure 33-2: END 0, INT 2, STOP 4, Size 9:6, base MAXPHYADDR-1:12. */
static const struct entry_row entry_rows[] = {
	{ "plain", 0x1000, 0, 1, 46, VMPT_OUTPUT_OK },
	{ "base 0", 0, 0, 1, 46, VMPT_OUTPUT_OK },
	{ "INT", 0x1000 | INT, 0, 1, 46, VMPT_OUTPUT_OK },
	{ "STOP", 0x1000 | STOP, 7, 1, 46, VMPT_OUTPUT_OK },
	{ "INT and STOP", 0x1000 | INT | STOP, 7, 1, 46, VMPT_OUTPUT_OK },
	{ "END", 0x7000 | END, 1, 1, 46, VMPT_OUTPUT_OK },
	{ "END, Size is ignored", 0x7000 | END | 0x3c0, 1, 1, 46, VMPT_OUTPUT_OK },
	{ "last entry", 0x1000, (1u << 25) - 1, 1, 46, VMPT_OUTPUT_OK },
	{ "highest address", 0x3ffffffff000, 0, 1, 46, VMPT_OUTPUT_OK },
	{ "highest address of 52 bits", 0xffffffffff000, 0, 1, 52, VMPT_OUTPUT_OK },
	/* 1: reserved bits */
	{ "1: bit 1", 0x1000 | 0x2, 0, 1, 46, VMPT_OUTPUT_RESERVED },
	{ "1: bit 3", 0x1000 | 0x8, 0, 1, 46, VMPT_OUTPUT_RESERVED },
	{ "1: bit 5", 0x1000 | 0x20, 0, 1, 46, VMPT_OUTPUT_RESERVED },
	{ "1: bit 10", 0x1000 | 0x400, 0, 1, 46, VMPT_OUTPUT_RESERVED },
	{ "1: bit 11", 0x1000 | 0x800, 0, 1, 46, VMPT_OUTPUT_RESERVED },
	{ "1: bit 52", 0x1000 | 1ULL << 52, 0, 1, 52, VMPT_OUTPUT_RESERVED },
	{ "1: bit 63", 0x1000 | 1ULL << 63, 0, 1, 46, VMPT_OUTPUT_RESERVED },
	{ "1: END, bit 5", 0x1000 | END | 0x20, 1, 1, 46, VMPT_OUTPUT_RESERVED },
	{ "1: END, bit 11", 0x1000 | END | 0x800, 1, 1, 46, VMPT_OUTPUT_RESERVED },
	{ "1: all bits (what an SMRR reads as)", ~0ULL & ~END, 0, 1, 46, VMPT_OUTPUT_RESERVED },
	/* 2b: alignment to the size */
	{ "2b: 8K at 4K", 0x1000 | 1 << 6, 0, 1, 46, VMPT_OUTPUT_REGION_ALIGN },
	{ "2b: 2M, bit 12", 0x200000 | 1 << 12 | 9 << 6, 0, 1, 46, VMPT_OUTPUT_REGION_ALIGN },
	{ "2b: 2M, bit 20", 0x200000 | 1 << 20 | 9 << 6, 0, 1, 46, VMPT_OUTPUT_REGION_ALIGN },
	{ "2M", 0x200000 | 9 << 6, 0, 1, 46, VMPT_OUTPUT_OK },
	{ "2b: 128M at 64M", 0x4000000 | 15 << 6, 0, 1, 46, VMPT_OUTPUT_REGION_ALIGN },
	{ "128M", 0x8000000 | 15 << 6, 0, 1, 46, VMPT_OUTPUT_OK },
	/* 2c: address bits */
	{ "2c: bit 46 of 46", 1ULL << 46, 0, 1, 46, VMPT_OUTPUT_PHYSADDR },
	{ "2c: bit 51 of 46", 1ULL << 51, 0, 1, 46, VMPT_OUTPUT_PHYSADDR },
	{ "2c: bit 32 of 32", 1ULL << 32, 0, 1, 32, VMPT_OUTPUT_PHYSADDR },
	{ "bit 31 of 32", 1ULL << 31, 0, 1, 32, VMPT_OUTPUT_OK },
	{ "2c: END", 1ULL << 46 | END, 1, 1, 46, VMPT_OUTPUT_PHYSADDR },
	/* 4a, 4b */
	{ "4a: INT", 0x7000 | END | INT, 1, 1, 46, VMPT_OUTPUT_END_FLAGS },
	{ "4a: STOP", 0x7000 | END | STOP, 1, 1, 46, VMPT_OUTPUT_END_FLAGS },
	{ "4a: both", 0x7000 | END | INT | STOP, 1, 1, 46, VMPT_OUTPUT_END_FLAGS },
	{ "4b", 0x7000 | END, 0, 1, 46, VMPT_OUTPUT_END_FIRST },
	{ "4b: one entry", TABLE | END, 0, 0, 46, VMPT_OUTPUT_END_FIRST },
	/* 4c: a processor with a single output entry */
	{ "one: entry 0", 0x1000 | INT | STOP, 0, 0, 46, VMPT_OUTPUT_OK },
	{ "one: END to itself", TABLE | END, 1, 0, 46, VMPT_OUTPUT_OK },
	{ "4c i", 0x1000, 1, 0, 46, VMPT_OUTPUT_ONE_NO_END },
	{ "4c i: entry 2", 0x1000, 2, 0, 46, VMPT_OUTPUT_ONE_NO_END },
	{ "4c ii", 0x7000 | END, 1, 0, 46, VMPT_OUTPUT_ONE_BASE },
	{ "4c ii: entry 3", 0x7000 | END, 3, 0, 46, VMPT_OUTPUT_ONE_BASE },
	/* which comes first: 4a, 4b, 4c, 1, 2c, 2b */
	{ "4a before 4b", END | INT, 0, 1, 46, VMPT_OUTPUT_END_FLAGS },
	{ "4b before 1", END | 0x20, 0, 1, 46, VMPT_OUTPUT_END_FIRST },
	{ "4a before 4c", 0x7000 | END | INT, 1, 0, 46, VMPT_OUTPUT_END_FLAGS },
	{ "4c before 1", 0x1000 | 0x20, 1, 0, 46, VMPT_OUTPUT_ONE_NO_END },
	{ "1 before 2c", 1ULL << 50 | 0x20, 0, 1, 46, VMPT_OUTPUT_RESERVED },
	{ "2c before 2b", 1ULL << 50 | 0x1000 | 1 << 6, 0, 1, 46, VMPT_OUTPUT_PHYSADDR },
};

START_TEST(an_entry)
{
	const struct entry_row *r = &entry_rows[_i];
	struct vmpt_pt_rules rules = { .topa_multi = r->multi, .maxphyaddr = r->maxphyaddr };
	enum vmpt_output_error got = vmpt_topa_check(&rules, r->entry, r->index, TABLE);

	ck_assert_msg(got == r->want, "%s: %s, wanted %s", r->what, vmpt_output_error(got),
		      vmpt_output_error(r->want));
}
END_TEST

/* 2b for each size and each low bit of the base, by the manual's list of sizes. */
START_TEST(alignment_of_every_size)
{
	static const u32 kib[16] = { 4,	   8,	 16,   32,   64,    128,   256,	  512,
				     1024, 2048, 4096, 8192, 16384, 32768, 65536, 131072 };
	struct vmpt_pt_rules rules = { .topa_multi = 1, .maxphyaddr = 40 };
	unsigned int size, bit;

	for (size = 0; size < 16; size++) {
		ck_assert_uint_eq(vmpt_topa_size(0xabcd000 | size << 6 | 0x14),
				  kib[size] * 1024ULL);
		for (bit = 12; bit < 40; bit++) {
			u64 entry = 1ULL << bit | size << 6;
			bool aligned = (1ULL << bit) / 1024 % kib[size] == 0;

			ck_assert_msg(vmpt_topa_check(&rules, entry, 0, TABLE) ==
					      (aligned ? VMPT_OUTPUT_OK : VMPT_OUTPUT_REGION_ALIGN),
				      "size %u, bit %u", size, bit);
		}
	}
}
END_TEST

struct base_row {
	const char *what;
	u64 base;
	u8 maxphyaddr;
	enum vmpt_output_error want;
};

static const struct base_row base_rows[] = {
	{ "0", 0, 46, VMPT_OUTPUT_OK },
	{ "4K", 0x1000, 46, VMPT_OUTPUT_OK },
	{ "highest", 0x3ffffffff000, 46, VMPT_OUTPUT_OK },
	{ "2a: bit 7", 0x1080, 46, VMPT_OUTPUT_TABLE_ALIGN },
	{ "2a: bit 11", 0x1800, 46, VMPT_OUTPUT_TABLE_ALIGN },
	{ "2a: bit 3", 0x1008, 46, VMPT_OUTPUT_TABLE_ALIGN },
	{ "2c: bit 46", 1ULL << 46, 46, VMPT_OUTPUT_PHYSADDR },
	{ "2c: bit 63", 1ULL << 63, 52, VMPT_OUTPUT_PHYSADDR },
	{ "2a before 2c", 1ULL << 46 | 0x80, 46, VMPT_OUTPUT_TABLE_ALIGN },
};

START_TEST(a_table_base)
{
	const struct base_row *r = &base_rows[_i];
	struct vmpt_pt_rules rules = { .topa_multi = 1, .maxphyaddr = r->maxphyaddr };

	ck_assert_msg(vmpt_topa_check_base(&rules, r->base) == r->want, "%s", r->what);
}
END_TEST

struct range_row {
	const char *what;
	u64 base;
	u32 mask, offset;
	enum vmpt_output_error want;
};

static const struct range_row range_rows[] = {
	{ "128 bytes", 0x1080, 0x7f, 0x7f, VMPT_OUTPUT_OK },
	{ "4K", 0x1000, 0xfff, 0, VMPT_OUTPUT_OK },
	{ "4G", 0x100000000, 0xffffffff, 0xffffffff, VMPT_OUTPUT_OK },
	{ "LowerMask not stored", 0x1000, 0xf80, 0xfff, VMPT_OUTPUT_OK },
	{ "mask: hole at bit 7", 0x1000, 0xf7f, 0, VMPT_OUTPUT_MASK },
	{ "mask: hole at bit 30", 0, 0xbfffffff, 0, VMPT_OUTPUT_MASK },
	{ "mask: bit 31 only", 0, 0x8000007f, 0, VMPT_OUTPUT_MASK },
	{ "overlap: bit 7", 0x1080, 0xff, 0, VMPT_OUTPUT_OVERLAP },
	{ "overlap: bit 31", 0x80000000, 0xffffffff, 0, VMPT_OUTPUT_OVERLAP },
	{ "overlap with LowerMask", 0x1040, 0x7f, 0, VMPT_OUTPUT_OVERLAP },
	{ "offset: mask + 1", 0x1000, 0xfff, 0x1000, VMPT_OUTPUT_RANGE_OFFSET },
	{ "offset: 128", 0x1000, 0x7f, 0x80, VMPT_OUTPUT_RANGE_OFFSET },
	{ "offset: highest", 0x1000, 0x7f, 0xffffffff, VMPT_OUTPUT_RANGE_OFFSET },
};

START_TEST(a_single_range)
{
	const struct range_row *r = &range_rows[_i];
	struct vmpt_pt_regs regs = { .output_base = r->base,
				     .output_mask_ptrs = (u64)r->offset << 32 | r->mask };

	ck_assert_msg(vmpt_single_range_check(&regs) == r->want, "%s", r->what);
}
END_TEST

START_TEST(every_error_has_its_sentence)
{
	const char *unknown = vmpt_output_error(VMPT_OUTPUT_ERRORS);
	int i, j;

	for (i = 0; i < VMPT_OUTPUT_ERRORS; i++) {
		const char *s = vmpt_output_error((enum vmpt_output_error)i);

		ck_assert_ptr_nonnull(s);
		ck_assert_str_ne(s, unknown);
		for (j = 0; j < i; j++)
			ck_assert_str_ne(s, vmpt_output_error((enum vmpt_output_error)j));
	}
	ck_assert_str_eq(vmpt_output_error((enum vmpt_output_error) - 1), unknown);
}
END_TEST

TEST_SUITE()
{
	Suite *suite = suite_create("topa");
	TCase *tc = tcase_create("topa");

	tcase_add_loop_test(tc, an_entry, 0, (int)VMPT_ARRAY_SIZE(entry_rows));
	tcase_add_test(tc, alignment_of_every_size);
	tcase_add_loop_test(tc, a_table_base, 0, (int)VMPT_ARRAY_SIZE(base_rows));
	tcase_add_loop_test(tc, a_single_range, 0, (int)VMPT_ARRAY_SIZE(range_rows));
	tcase_add_test(tc, every_error_has_its_sentence);
	suite_add_tcase(suite, tc);
	return suite;
}
