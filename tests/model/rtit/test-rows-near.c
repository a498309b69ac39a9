// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* RTIT Programming Reference, Table 19, rows 1 to 26, one test each: all but far transfers. */
#include "tests/model/rtit/rig.h"

#define IN    RIG_IN /* the filter's range */
#define LIMIT RIG_LIMIT
#define OUT   RIG_OUT

/* ---- 1 to 5: normal non-jump operation ---- */

START_TEST(row_1)
{
	rig_inside(BOTH);
	step(IN + 0x84);
	expect_nothing;
	jccs("TN");
	step(IN + 0x84);
	expect_nothing;
	expect_tnt(6);
	ck_assert(rig.unit.packet_en);
}
END_TEST

START_TEST(row_2)
{
	rig_outside(BOTH);
	step(OUT + 4);
	expect_nothing;
	ck_assert(!rig.unit.packet_en);
}
END_TEST

START_TEST(row_3)
{
	rig_inside(BOTH);
	step(LIMIT);
	expect("FUP.PGD 402000");
	ck_assert(!rig.unit.packet_en);
}
END_TEST

START_TEST(row_4)
{
	rig_inside(BOTH);
	jccs("TNN");
	step(LIMIT);
	expect("TNT TNN, FUP.PGD 402000");
	expect_tnt(1);
}
END_TEST

START_TEST(row_5)
{
	rig_outside(BOTH);
	step(IN);
	expect("FUP.PGE 401000");
	expect_tnt(1);
	ck_assert(rig.unit.packet_en);
}
END_TEST

/* ---- 6 to 10: unconditional direct jump, and CALL ---- */

static void (*const direct[])(u64 next, u64 target) = { jmp, call };

START_TEST(row_6)
{
	rig_inside(BOTH);
	direct[_i](IN + 0x85, IN + 0x90);
	expect_nothing;
	jccs("N");
	direct[_i](IN + 0x85, IN);
	expect_nothing;
	expect_tnt(2);
}
END_TEST

START_TEST(row_7)
{
	rig_outside(BOTH);
	direct[_i](OUT + 5, OUT + 0x100);
	/* Its NLIP is not executed, so it is not walked into the range either. */
	direct[_i](IN, OUT);
	expect_nothing;
}
END_TEST

START_TEST(row_8)
{
	rig_inside(BOTH);
	direct[_i](IN + 0x85, OUT);
	expect("FUP.PGD 401085");
}
END_TEST

START_TEST(row_9)
{
	rig_inside(BOTH);
	jccs("TT");
	direct[_i](IN + 0x85, OUT);
	expect("TNT TT, FUP.PGD 401085");
	expect_tnt(1);
}
END_TEST

START_TEST(row_10)
{
	rig_outside(BOTH);
	direct[_i](OUT + 5, IN + 0x10);
	expect("FUP.PGE 401010");
	expect_tnt(1);
}
END_TEST

/* ---- 11: conditional taken, "same as direct jump"; 4.3.2 for the TNT buffer ---- */

START_TEST(row_11)
{
	rig_inside(BOTH);
	jcc(true, IN + 0x82, IN + 0x90);
	expect_nothing;
	expect_tnt(3);
	jcc(true, IN + 0x92, OUT);
	expect("TNT TT, FUP.PGD 401092");
	jcc(true, OUT + 2, OUT + 0x40);
	expect_nothing;
	expect_tnt(1);
	jcc(true, OUT + 2, IN + 0x20);
	expect("FUP.PGE 401020");
	expect_tnt(1);
	jcc(true, IN + 0x22, OUT);
	expect("TNT T, FUP.PGD 401022");
}
END_TEST

/* ---- 12: conditional not taken, "same as normal non-jump operation" ---- */

START_TEST(row_12)
{
	rig_inside(BOTH);
	jcc(false, IN + 0x82, OUT);
	expect_nothing;
	expect_tnt(2);
	jcc(false, LIMIT, IN);
	expect("TNT NN, FUP.PGD 402000");
	jcc(false, OUT + 2, IN);
	expect_nothing;
	expect_tnt(1);
	jcc(false, IN, OUT);
	expect("FUP.PGE 401000");
	expect_tnt(1);
}
END_TEST

/* ---- 13 to 20: the sixth ---- */

START_TEST(row_13)
{
	rig_inside(BOTH);
	jccs("TNTNT");
	expect_nothing;
	jcc(true, IN + 0x82, IN);
	expect("TNT TNTNTT");
	expect_tnt(1);
}
END_TEST

/* Nothing is in the buffer outside, and nothing gets there. */
static void stays_empty(bool taken)
{
	unsigned int i;

	rig_inside(BOTH);
	jccs("TNTNT");
	jmp(IN + 5, OUT);
	expect("TNT TNTNT, FUP.PGD 401005");
	for (i = 0; i < 20; i++) {
		expect_tnt(1);
		jcc(taken, OUT + 2, OUT + 0x10);
	}
	expect_nothing;
}

START_TEST(row_14_impossible)
{
	stays_empty(true);
}
END_TEST

START_TEST(row_15)
{
	rig_inside(BOTH);
	jccs("TNTNT");
	jcc(true, IN + 0x82, OUT);
	expect("TNT TNTNTT, FUP.PGD 401082");
	expect_tnt(1);
}
END_TEST

START_TEST(row_16_impossible)
{
	stays_empty(true);
	jcc(true, OUT + 2, IN);
	expect("FUP.PGE 401000");
	expect_tnt(1);
}
END_TEST

START_TEST(row_17)
{
	rig_inside(BOTH);
	jccs("NNNNN");
	expect_nothing;
	jcc(false, IN + 0x82, OUT);
	expect("TNT NNNNNN");
	expect_tnt(1);
}
END_TEST

START_TEST(row_18_impossible)
{
	stays_empty(false);
}
END_TEST

START_TEST(row_19)
{
	rig_inside(BOTH);
	jccs("TTTTT");
	jcc(false, LIMIT, IN);
	expect("TNT TTTTTN, FUP.PGD 402000");
	expect_tnt(1);
}
END_TEST

START_TEST(row_20_impossible)
{
	stays_empty(false);
	jcc(false, IN, OUT);
	expect("FUP.PGE 401000");
	expect_tnt(1);
}
END_TEST

/* Bits that a cleared TriggerEn left (4.2.8) do not become six either. */
START_TEST(rows_14_to_20_disabled)
{
	rig_inside(BOTH);
	jccs("TNTNT");
	wr_at(CTL, BOTH | DEST | TRACE_EN, IN + 0x90);
	rig_skip();
	jccs("TN");
	expect_nothing;
	expect_tnt(0x35);
}
END_TEST

/* ---- 21 to 26: near indirect jump ---- */

static void (*const indirect[])(u64 next, u64 target) = { jmp_ind, call_ind, ret };

START_TEST(row_21)
{
	rig_inside(BOTH);
	indirect[_i](IN + 0x82, IN + 0x100);
	expect("TIP 401100");
}
END_TEST

START_TEST(row_22)
{
	rig_inside(BOTH);
	jccs("NT");
	indirect[_i](IN + 0x82, IN + 0x100);
	expect("TNT NT, TIP 401100");
	expect_tnt(1);
}
END_TEST

START_TEST(row_23)
{
	rig_outside(BOTH);
	indirect[_i](OUT + 2, OUT + 0x100);
	indirect[_i](IN, OUT);
	expect_nothing;
	expect_tnt(1);
}
END_TEST

START_TEST(row_24)
{
	rig_inside(BOTH);
	indirect[_i](IN + 0x82, OUT);
	expect("TIP 300000, FUP.PGD 401082");
}
END_TEST

START_TEST(row_25)
{
	rig_inside(BOTH);
	jccs("NT");
	indirect[_i](IN + 0x82, OUT);
	expect("TNT NT, TIP 300000, FUP.PGD 401082");
	expect_tnt(1);
}
END_TEST

START_TEST(row_26)
{
	rig_outside(BOTH);
	indirect[_i](OUT + 2, IN + 0x100);
	expect("FUP.PGE 401100");
	expect_tnt(1);
}
END_TEST

/* Footnote 3: the first cycle count of an instruction has it all, others are 0. */
START_TEST(footnote_3)
{
	rig_inside(BOTH);
	ctl_set(CYCLE_ACC);
	rig_skip();
	jccs("T");
	cycles(40);
	jmp_ind(IN + 0x82, OUT);
	expect("TNT T, TIP 300000 +40, FUP.PGD 401082 +0");
	cycles(7);
	jmp(OUT + 5, IN);
	rig_skip();
	jccs("TTTTT");
	cycles(50);
	jcc(true, IN + 2, OUT);
	expect("TNT TTTTTT +50, FUP.PGD 401002 +0");
}
END_TEST

TEST_SUITE()
{
	const TTest *const once[] = { row_1,
				      row_2,
				      row_3,
				      row_4,
				      row_5,
				      row_11,
				      row_12,
				      row_13,
				      row_14_impossible,
				      row_15,
				      row_17,
				      row_16_impossible,
				      row_19,
				      row_18_impossible,
				      row_20_impossible,
				      rows_14_to_20_disabled,
				      footnote_3 };
	const TTest *const both[] = { row_6, row_7, row_8, row_9, row_10 };
	const TTest *const three[] = { row_21, row_22, row_23, row_24, row_25, row_26 };
	Suite *suite = suite_create("rows-near");
	TCase *tc = tcase_create("rows-near");
	size_t i;

	tcase_add_checked_fixture(tc, rig_setup, NULL);
	for (i = 0; i < VMPT_ARRAY_SIZE(once); i++)
		tcase_add_test(tc, once[i]);
	for (i = 0; i < VMPT_ARRAY_SIZE(both); i++)
		tcase_add_loop_test(tc, both[i], 0, VMPT_ARRAY_SIZE(direct));
	for (i = 0; i < VMPT_ARRAY_SIZE(three); i++)
		tcase_add_loop_test(tc, three[i], 0, VMPT_ARRAY_SIZE(indirect));
	suite_add_tcase(suite, tc);
	return suite;
}
