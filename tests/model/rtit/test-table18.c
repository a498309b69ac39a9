// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * RTIT Programming Reference, Table 18, a test for each row: a TIP and a FUP.PGD whose bytes are
 * written out by hand, for both values of each X. test-lip.c has all 16 combinations.
 */
#include <stdio.h>

#include "tests/model/rtit/rig.h"

#define VALID (1ULL << 32)

/* Table 9 */
static void last_lip(u64 lip)
{
	wr(LAST_LIP, VALID | (lip >> 16 & 0xffffffff));
}

/*
 * @lip with @last as Last LIP is @payload behind a header with @low in bits 2:0: Zext, CNT. Last
 * LIP is @lip then.
 */
static void check(u64 last, u64 lip, unsigned int low, const char *payload)
{
	char want[64];

	if (!(rig.unit.regs.ctl & TRACE_ACTIVE))
		on(BOTH);
	last_lip(last);
	jmp_ind(0x401002, lip);
	snprintf(want, sizeof(want), "%02x %s", 0xb0 | low, payload);
	expect_bytes(want);
	ck_assert_uint_eq(rd(LAST_LIP), VALID | lip >> 16);
	last_lip(last);
	vmpt_rtit_unit_smi(&rig.unit, lip);
	snprintf(want, sizeof(want), "%02x %s", 0x88 | low, payload);
	expect_bytes(want);
	ck_assert_uint_eq(rd(LAST_LIP), VALID | lip >> 16);
	vmpt_rtit_unit_rsm(&rig.unit, 0x401000, &rig.unit.mode);
	rig_skip();
}

/* 2 bytes: both match, 47:32 is not 0 */
START_TEST(row_1)
{
	check(0x7fff12340000, 0x7fff12345678, 0, "78 56");
	check(0x7fff00000000, 0x7fff00005678, 0, "78 56");
}
END_TEST

/* 2 bytes: both match, 47:32 is 0, 31:16 is not */
START_TEST(row_2)
{
	check(0x000012340000, 0x000012345678, 0, "78 56");
}
END_TEST

/* 2 bytes, Zext: both are 0, whatever they match */
START_TEST(row_3)
{
	check(0x000000000000, 0x5678, 4, "78 56");
	check(0x000012340000, 0x5678, 4, "78 56");
	check(0x7fff00000000, 0x5678, 4, "78 56");
	check(0x7fff12340000, 0x5678, 4, "78 56");
}
END_TEST

/* 4 bytes: 47:32 matches and is not 0, 31:16 does not match */
START_TEST(row_4)
{
	check(0x7fff43210000, 0x7fff12345678, 1, "78 56 34 12");
	check(0x7fff43210000, 0x7fff00005678, 1, "78 56 00 00");
}
END_TEST

/* 4 bytes, Zext: 47:32 is 0, 31:16 is not and does not match */
START_TEST(row_5)
{
	check(0x000043210000, 0x000012345678, 5, "78 56 34 12");
	check(0x7fff43210000, 0x000012345678, 5, "78 56 34 12");
}
END_TEST

/* 4 bytes, Zext: 47:32 is 0 and does not match, 31:16 is not 0 */
START_TEST(row_6)
{
	check(0x7fff12340000, 0x000012345678, 5, "78 56 34 12");
	check(0x7fff43210000, 0x000012345678, 5, "78 56 34 12");
}
END_TEST

/* 6 bytes: 47:32 does not match and is not 0 */
START_TEST(row_7)
{
	check(0x000043210000, 0x7fff12345678, 2, "78 56 34 12 ff 7f");
	check(0x000012340000, 0x7fff12345678, 2, "78 56 34 12 ff 7f");
	check(0x000043210000, 0x7fff00005678, 2, "78 56 00 00 ff 7f");
	check(0x7ffe00000000, 0x7fff00005678, 2, "78 56 00 00 ff 7f");
}
END_TEST

RIG_SUITE("table18", row_1, row_2, row_3, row_4, row_5, row_6, row_7)
