// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* RTIT Programming Reference: LIP compression, 4.2.3.1 and Table 18; RTIT_LAST_LIP, 3.3.7. */
#include <stdio.h>

#include "tests/model/rtit/rig.h"

#define VALID (1ULL << 32)

/* Table 9: LIP[47:32] in 31:16, LIP[31:16] in 15:0 */
#define LAST(lip) (VALID | ((u64)(lip) >> 16 & 0xffffffff))

/* Table 18. -1 is X. */
static const struct row {
	int cnt, zext, match_high, match_mid, high_zero, mid_zero;
} rows[] = {
	{ 0, 0, 1, 1, 0, -1 }, { 0, 0, 1, 1, 1, 0 },  { 0, 1, -1, -1, 1, 1 }, { 1, 0, 1, 0, 0, -1 },
	{ 1, 1, -1, 0, 1, 0 }, { 1, 1, 0, -1, 1, 0 }, { 2, 0, 0, -1, 0, -1 },
};

static bool is(int want, unsigned int bit)
{
	return want < 0 || want == (int)bit;
}

/* Header and payload of @lip for a row, by Figures 5 and 8. */
static size_t bytes_of(const struct row *row, unsigned int event, u64 lip, char *text, size_t size)
{
	size_t n, i;

	n = (size_t)snprintf(text, size, "%02x",
			     0x80u | event << 3 | (unsigned int)row->zext << 2 |
				     (unsigned int)row->cnt);
	for (i = 0; i < 2 + 2 * (size_t)row->cnt; i++)
		n += (size_t)snprintf(text + n, size - n, " %02x",
				      (unsigned int)(lip >> 8 * i & 0xff));
	return n;
}

/*
 * Loop number: the combination of the four columns, bit 0 "match of 47:32" to bit 3 "LIP[31:16]
 * is all 0s". An upper part that is not 0 has its highest bit set or not.
 */
static void table_18(int combination, u64 high, u64 mid)
{
	unsigned int c = (unsigned int)combination, mh = c & 1, mm = c >> 1 & 1, zh = c >> 2 & 1,
		     zm = c >> 3 & 1, found = 0;
	u64 last, lip;
	char want[64];
	size_t i;

	high = zh ? 0 : high;
	mid = zm ? 0 : mid;
	lip = high << 32 | mid << 16 | 0x5678;
	last = (mh ? high : high ^ 0x8001) << 32 | (mm ? mid : mid ^ 0x0100) << 16;
	on(BOTH);
	for (i = 0; i < VMPT_ARRAY_SIZE(rows); i++) {
		const struct row *row = &rows[i];

		if (!is(row->match_high, mh) || !is(row->match_mid, mm) ||
		    !is(row->high_zero, zh) || !is(row->mid_zero, zm))
			continue;
		found++;
		/* a Target IP, event 110b, */
		wr(LAST_LIP, LAST(last));
		jmp_ind(0x401002, lip);
		bytes_of(row, 6, lip, want, sizeof(want));
		expect_bytes(want);
		/* "updated with the full LIP, even if that packet did not send out that" */
		ck_assert_uint_eq(rd(LAST_LIP), LAST(lip));
		/* and a Flow Update, PGD, event 001b. */
		wr(LAST_LIP, LAST(last));
		vmpt_rtit_unit_smi(&rig.unit, lip);
		bytes_of(row, 1, lip, want, sizeof(want));
		expect_bytes(want);
		ck_assert_uint_eq(rd(LAST_LIP), LAST(lip));
		vmpt_rtit_unit_rsm(&rig.unit, lip, &rig.unit.mode);
		rig_skip();
	}
	ck_assert_uint_ge(found, 1);
}

START_TEST(table_18_low)
{
	table_18(_i, 0x7fff, 0x1234);
}
END_TEST

START_TEST(table_18_high)
{
	table_18(_i, 0xffff, 0x8000);
}
END_TEST

/* Without a valid Last LIP there is no match: like the rows where both are 0. */
START_TEST(not_valid)
{
	on(BOTH);
	wr(LAST_LIP, LAST(0x7fff12345678) & ~VALID);
	jmp_ind(0x401002, 0x7fff12345678);
	expect_bytes("b2 78 56 34 12 ff 7f");
	wr(LAST_LIP, LAST(0x12345678) & ~VALID);
	jmp_ind(0x401002, 0x12345678);
	expect_bytes("b5 78 56 34 12");
	wr(LAST_LIP, 0);
	jmp_ind(0x401002, 0x5678);
	expect_bytes("b4 78 56");
}
END_TEST

/* 1: "the first LIP to be inserted … can't be compressed" */
static void first_lip(void)
{
	wr_at(CTL, BOTH | DEST | TRACE_EN, 0x7fff12340000);
	wr_at(CTL, BOTH | DEST | TRACE_EN | TRACE_ACTIVE, 0x7fff12340000);
	expect_bytes("c0 00 00 00 00 00 00 00 00 82 00 00 34 12 ff 7f");
	ck_assert_uint_eq(rd(LAST_LIP), LAST(0x7fff12340000));
}

START_TEST(scenario_1)
{
	first_lip();
}
END_TEST

/* 2 */
START_TEST(scenario_2)
{
	first_lip();
	jmp_ind(0x7fff12340002, 0x7fff12349876);
	expect_bytes("b0 76 98");
	jmp_ind(0x7fff12349878, 0x7fff22340000);
	expect_bytes("b1 00 00 34 22");
	jmp_ind(0x7fff22340002, 0x7ffe22340000);
	expect_bytes("b2 00 00 34 22 fe 7f");
}
END_TEST

/* 3, 4: back to back, each is compressed against the previous one. */
START_TEST(scenario_3)
{
	on(BOTH);
	wr(LAST_LIP, LAST(0x7fff12340000));
	far(0x7fff12345678, 0xffff80001000);
	far(0xffff80001010, 0x7fff12345678);
	expect_bytes("b8 78 56 b2 00 10 00 80 ff ff b8 10 10 b2 78 56 34 12 ff 7f");
	ck_assert_uint_eq(rd(LAST_LIP), LAST(0x7fff12345678));
}
END_TEST

/* 3.3.7: "cleared to 0 … when a PSB packet is generated" */
START_TEST(cleared_by_psb)
{
	on(BOTH);
	jmp_ind(0x401002, 0x7fff12345678);
	rig_skip();
	ck_assert_uint_eq(rd(LAST_LIP), LAST(0x7fff12345678));
	wr(PKT_CNT, 0x800);
	expect("PSB");
	ck_assert_uint_eq(rd(LAST_LIP), 0);
	jmp_ind(0x401002, 0x7fff12345678);
	expect_bytes("b2 78 56 34 12 ff 7f");
}
END_TEST

START_TEST(cleared_by_psb_of_enabling)
{
	wr(LAST_LIP, LAST(0x7fff12340000));
	wr(EVENTS, EVENT(NEVER, NEVER));
	wr(CTL, BOTH | DEST | TRACE_EN);
	wr(CTL, BOTH | DEST | TRACE_EN | TRACE_ACTIVE);
	expect("PSB");
	ck_assert_uint_eq(rd(LAST_LIP), 0);
}
END_TEST

/* … "and when a buffer overflow packet is generated": that packet itself is not compressed. */
START_TEST(cleared_by_overflow)
{
	on(BOTH);
	jmp_ind(0x401002, 0x7fff12345678);
	rig_skip();
	vmpt_rtit_unit_overflow(&rig.unit);
	vmpt_rtit_unit_overflow_resolve(&rig.unit, 0x7fff12345680);
	expect_bytes("92 80 56 34 12 ff 7f");
	ck_assert_uint_eq(rd(LAST_LIP) & VALID, 0);
	jmp_ind(0x7fff12345682, 0x7fff12345690);
	expect_bytes("b2 90 56 34 12 ff 7f");
}
END_TEST

/* "A RET … whose RTIT output is compressed … will not update RTIT_LAST_LIP" */
START_TEST(compressed_ret_leaves_it)
{
	on(BOTH | CMPRS_RET);
	wr(LAST_LIP, LAST(0x7fff12340000));
	call(0x401005, 0x402000);
	ret(0x402001, 0x401005);
	expect_nothing;
	ck_assert_uint_eq(rd(LAST_LIP), LAST(0x7fff12340000));
}
END_TEST

/* Packets without a LIP do not change it. */
START_TEST(others_leave_it)
{
	on(BOTH | MTC_EN | STS_EN);
	wr(LAST_LIP, LAST(0x7fff12340000));
	jccs("TNTNTN");
	mov_cr3(0x401003, 0x2000);
	tsc(0x80);
	vmpt_rtit_unit_wake(&rig.unit, &rig.unit.now);
	expect("TNT TNTNTN, PIP 2000 PG, MTC 0:01, STS 20/10 80");
	ck_assert_uint_eq(rd(LAST_LIP), LAST(0x7fff12340000));
}
END_TEST

/* The event field of each Flow Update, Figure 2 */
START_TEST(each_header)
{
	range0(0x401000, 0x402000);
	wr(EVENTS, EVENT(RANGE0, NEVER));
	on(BOTH | CYCLE_ACC);
	jmp(0x300005, 0x401000);
	expect_bytes("85 00 10 40 00 01");
	jmp(0x401005, 0x300000);
	expect_bytes("88 05 10 01");
	vmpt_rtit_unit_overflow(&rig.unit);
	vmpt_rtit_unit_overflow_resolve(&rig.unit, 0x300010);
	expect_bytes("95 10 00 30 00 01");
	wr(CNTP, 0x200000);
	step(0x300014);
	expect_bytes("9d 14 00 30 00 03 00 80");
	jmp(0x300005, 0x401000);
	rig_skip();
	far(0x401002, 0x401080);
	expect_bytes("b8 02 10 01 b0 80 10 01");
}
END_TEST

TEST_SUITE()
{
	const TTest *const tests[] = {
		not_valid,	 scenario_1,	      scenario_2,
		scenario_3,	 cleared_by_psb,      cleared_by_psb_of_enabling,
		others_leave_it, cleared_by_overflow, compressed_ret_leaves_it,
		each_header
	};
	Suite *suite = suite_create("lip");
	TCase *tc = tcase_create("lip");
	size_t i;

	tcase_add_checked_fixture(tc, rig_setup, NULL);
	tcase_add_loop_test(tc, table_18_low, 0, 16);
	tcase_add_loop_test(tc, table_18_high, 0, 16);
	for (i = 0; i < VMPT_ARRAY_SIZE(tests); i++)
		tcase_add_test(tc, tests[i]);
	suite_add_tcase(suite, tc);
	return suite;
}
