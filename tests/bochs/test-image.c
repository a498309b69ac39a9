// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Code in memory images, through page tables of all kinds and EPT, all written out by hand.
 */
#include <stdio.h>

#include "model/truth-format.h"
#include "tests/bochs/image.h"
#include "tests/support/support.h"

#define SIZE 0x500000u

static u8 memory[SIZE];
static const struct image image = { memory, SIZE };

static void put64(u64 pa, u64 v)
{
	memcpy(memory + pa, &v, 8);
}

static void put32(u64 pa, u32 v)
{
	memcpy(memory + pa, &v, 4);
}

static void setup(void)
{
	memset(memory, 0, sizeof(memory));
	/* The searched values: each page has its own address at two places. */
	for (u64 at = 0x20000; at < SIZE; at += 0x800)
		put64(at, at);
}

static u64 read_at(const struct truth_now *now, u64 ip)
{
	u64 v;

	ck_assert_msg(image_read(&image, now, ip, (u8 *)&v, 8), "%llx is missing",
		      (unsigned long long)ip);
	return v;
}

static void not_at(const struct truth_now *now, u64 ip)
{
	u8 byte;

	ck_assert_msg(!image_read(&image, now, ip, &byte, 1), "%llx is there",
		      (unsigned long long)ip);
}

START_TEST(no_paging)
{
	struct truth_now now = { .cr3 = 0x1000 };

	ck_assert_uint_eq(read_at(&now, 0x20800), 0x20800);
	not_at(&now, SIZE);
}
END_TEST

START_TEST(four_levels)
{
	struct truth_now now = { .cr3 = 0x1fff, .flags = TRUTH_PAGING | TRUTH_PAE | TRUTH_LONG };
	u8 bytes[16];

	put64(0x1000 + 511 * 8, 0x2063);	      /* ffffff80_00000000 */
	put64(0x2000 + 510 * 8, 0x3063);	      /* ffffffff_80000000 */
	put64(0x3000 + 8 * 8, 0x80000000002001e3ull); /* + 01000000: 2 MB */
	put64(0x3000 + 9 * 8, 0x4063);		      /* + 01200000 */
	put64(0x4000 + 1 * 8, 0x80000000004a0063ull); /* + 00001000 */
	put64(0x4000 + 2 * 8, 0x30062);		      /* not present */
	put64(0x4000 + 3 * 8, 0x600063);	      /* beyond the image */
	put64(0x1000, 0x5063);			      /* 0 */
	put64(0x5000 + 8, 0xe3);		      /* 40000000: 1 GB at 0 */
	ck_assert_uint_eq(read_at(&now, 0xffffffff81012800), 0x212800);
	ck_assert_uint_eq(read_at(&now, 0xffffffff81201800), 0x4a0800);
	ck_assert_uint_eq(read_at(&now, 0x40030000), 0x30000);
	not_at(&now, 0xffffffff81202000);
	not_at(&now, 0xffffffff81203000);
	not_at(&now, 0xffffffff80000000);
	/* Across two pages: the second is missing, then present. */
	ck_assert(!image_read(&image, &now, 0xffffffff81201ffc, bytes, 8));
	put64(0x4000 + 2 * 8, 0x30063);
	ck_assert(image_read(&image, &now, 0xffffffff81201ffc, bytes, 8));
	ck_assert_mem_eq(bytes + 4, memory + 0x30000, 4);
	now.flags |= TRUTH_LA57;
	not_at(&now, 0x40030000);
}
END_TEST

START_TEST(pae)
{
	struct truth_now now = { .cr3 = 0x1020, .flags = TRUTH_PAGING | TRUTH_PAE };

	put64(0x1020 + 3 * 8, 0x2001);	  /* c0000000 */
	put64(0x2000 + 1 * 8, 0x200083);  /* + 200000: 2 MB */
	put64(0x2000 + 2 * 8, 0x3003);	  /* + 400000 */
	put64(0x3000 + 511 * 8, 0x21003); /* + 1ff000 */
	ck_assert_uint_eq(read_at(&now, 0xc0212800), 0x212800);
	ck_assert_uint_eq(read_at(&now, 0xc05ff000), 0x21000);
	not_at(&now, 0xc0000000);
	not_at(&now, 0);
}
END_TEST

START_TEST(two_levels)
{
	struct truth_now now = { .cr3 = 0x1000, .flags = TRUTH_PAGING };

	put32(0x1000 + 768 * 4, 0x00400083); /* c0000000: 4 MB */
	put32(0x1000 + 1 * 4, 0x2003);	     /* 00400000 */
	put32(0x2000 + 1023 * 4, 0x22003);
	ck_assert_uint_eq(read_at(&now, 0xc0030800), 0x430800);
	ck_assert_uint_eq(read_at(&now, 0x7ff800), 0x22800);
	not_at(&now, 0x400000);
}
END_TEST

/* The guest's tables are at guest-physical addresses, too. */
START_TEST(ept)
{
	struct truth_now now = { .eptp = 0x1005e };

	put64(0x10000, 0x11007);
	put64(0x11000, 0x12007);
	put64(0x12000, 0x13007);
	put64(0x13000 + 1 * 8, 0x8001); /* the guest's CR3 1000: readable only */
	put64(0x13000 + 2 * 8, 0x9007); /* its table 2000 */
	put64(0x13000 + 3 * 8, 0x23004);
	put64(0x13000 + 4 * 8, 0xa000);	  /* neither read, write nor execute */
	put64(0x12000 + 1 * 8, 0x4000b7); /* 200000: 2 MB */
	ck_assert_uint_eq(read_at(&now, 0x3800), 0x23800);
	ck_assert_uint_eq(read_at(&now, 0x212000), 0x412000);
	not_at(&now, 0x4000);
	not_at(&now, 0x5000);
	now.cr3 = 0x1000;
	now.flags = TRUTH_PAGING;
	put32(0x8000 + 1 * 4, 0x2003);	 /* 00400000 */
	put32(0x9000 + 5 * 4, 0x3003);	 /* + 5000 */
	put32(0x9000 + 6 * 4, 0x212003); /* + 6000 */
	put32(0x9000 + 7 * 4, 0x4003);	 /* + 7000 */
	ck_assert_uint_eq(read_at(&now, 0x405800), 0x23800);
	ck_assert_uint_eq(read_at(&now, 0x406000), 0x412000);
	not_at(&now, 0x407000);
}
END_TEST

TEST_SUITE()
{
	Suite *suite = suite_create("bochs/image");
	TCase *tc = tcase_create("image");

	tcase_add_checked_fixture(tc, setup, NULL);
	tcase_add_test(tc, no_paging);
	tcase_add_test(tc, four_levels);
	tcase_add_test(tc, pae);
	tcase_add_test(tc, two_levels);
	tcase_add_test(tc, ept);
	suite_add_tcase(suite, tc);
	return suite;
}
