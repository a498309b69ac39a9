// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * arch/rtit-regs.c: combined meaning of the RTIT MSRs: ContextEn (2.1.2), ranges (3.3.5), output
 * addresses (2.3, 3.3.10), PSB frequency (3.3.9). Values from the manual.
 */
#include "arch/rtit-regs.h"
#include "tests/support/support.h"

static const struct vmpt_rtit_rules plain;

/* After RESET, with CTL read. */
static struct vmpt_rtit_regs fresh(void)
{
	struct vmpt_rtit_regs r;
	u64 value;

	vmpt_rtit_reset(&r);
	ck_assert_int_eq(vmpt_rtit_rdmsr(&plain, &r, 0x768, &value, NULL), 0);
	return r;
}

static u64 get(struct vmpt_rtit_regs *r, u32 msr)
{
	u64 value = 0xdead;

	ck_assert_int_eq(vmpt_rtit_rdmsr(&plain, r, msr, &value, NULL), 0);
	return value;
}

static void set(struct vmpt_rtit_regs *r, u32 msr, u64 value)
{
	ck_assert_int_eq(vmpt_rtit_wrmsr(&plain, r, msr, value, NULL), 0);
}

/* ---- 2.1.2 ---- */

/* Every row of the part of the formula that MSRs, CPL and CR3 decide. */
START_TEST(context_en)
{
	static const struct {
		bool os, user, cr3_en, match, kernel, application;
	} rows[] = {
		{ 0, 0, 0, 0, 0, 0 }, { 0, 0, 0, 1, 0, 0 }, { 0, 0, 1, 0, 0, 0 },
		{ 0, 0, 1, 1, 0, 0 }, { 0, 1, 0, 0, 0, 1 }, { 0, 1, 0, 1, 0, 1 },
		{ 0, 1, 1, 0, 0, 0 }, { 0, 1, 1, 1, 0, 1 }, { 1, 0, 0, 0, 1, 0 },
		{ 1, 0, 0, 1, 1, 0 }, { 1, 0, 1, 0, 0, 0 }, { 1, 0, 1, 1, 1, 0 },
		{ 1, 1, 0, 0, 1, 1 }, { 1, 1, 0, 1, 1, 1 }, { 1, 1, 1, 0, 0, 0 },
		{ 1, 1, 1, 1, 1, 1 },
	};
	struct vmpt_rtit_regs r = fresh();
	unsigned int cpl;
	size_t i;

	set(&r, 0x777, 0x123456000);
	for (i = 0; i < VMPT_ARRAY_SIZE(rows); i++) {
		u64 cr3 = rows[i].match ? 0x123456000 : 0x123457000;

		set(&r, 0x768,
		    (rows[i].os ? 1u << 2 : 0) | (rows[i].user ? 1u << 3 : 0) |
			    (rows[i].cr3_en ? 1u << 7 : 0));
		ck_assert(vmpt_rtit_context_en(&r, 0, cr3) == rows[i].kernel);
		for (cpl = 1; cpl <= 3; cpl++)
			ck_assert(vmpt_rtit_context_en(&r, cpl, cr3) == rows[i].application);
	}
}
END_TEST

/* Table 10: bits 35:5 of CR3 are matched, others are not. */
START_TEST(cr3_bits)
{
	struct vmpt_rtit_regs r = fresh();
	unsigned int bit;

	set(&r, 0x777, 0x955555540);
	set(&r, 0x768, 1 << 2 | 1 << 3 | 1 << 7);
	for (bit = 0; bit < 64; bit++) {
		bool counts = bit >= 5 && bit <= 35;

		ck_assert(vmpt_rtit_context_en(&r, 0, 0x955555540 ^ 1ULL << bit) == !counts);
		ck_assert(vmpt_rtit_context_en(&r, 3, 0x955555540 ^ 1ULL << bit) == !counts);
	}
}
END_TEST

/* ---- 3.3.5, 2.3, 3.3.9 ---- */

START_TEST(ranges)
{
	static const struct {
		u64 lip;
		bool in0, in1;
	} rows[] = {
		{ 0x0ff, 0, 0 },
		{ 0x100, 1, 0 }, /* RANGE0 is [LIP0..LIP2-1] */
		{ 0x10f, 1, 0 },
		{ 0x110, 0, 0 },
		{ 0x7fffffffffff, 0, 0 },
		{ 0x800000000000, 0, 1 }, /* RANGE1 is [LIP1..LIP3-1] */
		{ 0xffff800000000000, 0, 1 },
		{ 0xffff800000000fff, 0, 1 },
		{ 0xffff800000001000, 0, 0 },
		{ 0x800000001000, 0, 0 },
		{ 0, 0, 0 },
	};
	struct vmpt_rtit_regs r = fresh();
	size_t i;

	/* All 0: empty */
	ck_assert(!vmpt_rtit_in_range(&r, 0, 0) && !vmpt_rtit_in_range(&r, 1, 0));
	set(&r, 0x760, 0x100);
	set(&r, 0x762, 0x110);
	set(&r, 0x761, 0xffff800000000000);
	set(&r, 0x763, 0xffff800000001000);
	for (i = 0; i < VMPT_ARRAY_SIZE(rows); i++) {
		ck_assert(vmpt_rtit_in_range(&r, 0, rows[i].lip) == rows[i].in0);
		ck_assert(vmpt_rtit_in_range(&r, 1, rows[i].lip) == rows[i].in1);
	}
}
END_TEST

START_TEST(output_address)
{
	static const struct {
		u64 base, mask, offset, address, size;
	} rows[] = {
		/* the reset values: 128 bytes at FDC00000H */
		{ 0xfdc00000, 0x7f, 0, 0xfdc00000, 128 },
		{ 0xfdc00000, 0x7f, 0x7f, 0xfdc0007f, 128 },
		{ 0xfdc00000, 0x7f, 0x80, 0xfdc00000, 128 },
		{ 0xfdc00000, 0x7f, 0x85, 0xfdc00005, 128 },
		/* 3.3.10: a bit in both counts as 0 in the base */
		{ 0x10000040, 0x7f, 0x05, 0x10000005, 128 },
		{ 0x10000040, 0x7f, 0x45, 0x10000045, 128 },
		{ 0xfffffffc0, 0x3fffff, 0, 0xfffc00000, 4 << 20 },
		{ 0xfffffffc0, 0x3fffff, 0x3fffff, 0xfffffffff, 4 << 20 },
		{ 0x100040, 0x3f, 0x3fffff, 0x10007f, 64 },
		{ 0x0, 0xfff, 0x12345, 0x345, 4096 },
	};
	size_t i;

	for (i = 0; i < VMPT_ARRAY_SIZE(rows); i++) {
		struct vmpt_rtit_regs r = fresh();

		set(&r, 0x770, rows[i].base);
		set(&r, 0x771, rows[i].mask);
		set(&r, 0x772, rows[i].offset);
		ck_assert_uint_eq(vmpt_rtit_output_address(&r), rows[i].address);
		ck_assert_uint_eq(vmpt_rtit_output_size(&r), rows[i].size);
		/* They read as they were written. */
		ck_assert_uint_eq(get(&r, 0x770), rows[i].base);
		ck_assert_uint_eq(get(&r, 0x772), rows[i].offset);
	}
}
END_TEST

START_TEST(psb_period)
{
	struct vmpt_rtit_regs r = fresh();

	ck_assert_uint_eq(vmpt_rtit_psb_period(&r), 1 << 13); /* after RESET */
	set(&r, 0x77c, 0x03fff);
	ck_assert_uint_eq(vmpt_rtit_psb_period(&r), 1 << 11);
	set(&r, 0x77c, 0x10000);
	ck_assert_uint_eq(vmpt_rtit_psb_period(&r), 1 << 12);
	set(&r, 0x77c, 0x23fff);
	ck_assert_uint_eq(vmpt_rtit_psb_period(&r), 1 << 13);
	set(&r, 0x77c, 0x30001);
	ck_assert_uint_eq(vmpt_rtit_psb_period(&r), 1 << 14);
}
END_TEST

TEST_SUITE()
{
	const TTest *const tests[] = { context_en, cr3_bits, ranges, output_address, psb_period };
	Suite *suite = suite_create("rtit-regs-use");
	TCase *tc = tcase_create("rtit-regs-use");
	size_t i;

	for (i = 0; i < VMPT_ARRAY_SIZE(tests); i++)
		tcase_add_test(tc, tests[i]);
	suite_add_tcase(suite, tc);
	return suite;
}
