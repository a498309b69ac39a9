// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* RTIT Programming Reference, Table 19, rows 1 to 26, a check each: all but far transfers. */
#include "tests/model/rtit/rig.h"

#define IN    RIG_IN /* the filter's range */
#define LIMIT RIG_LIMIT
#define OUT   RIG_OUT

static void move(u64 next, u64 target)
{
	(void)target;
	step(next);
}

static void taken(u64 next, u64 target)
{
	jcc(true, next, target);
}

static void not_taken(u64 next, u64 target)
{
	jcc(false, next, target);
}

#define INSIDE(row)   RIG_INSIDE(row, BOTH)
#define OUTSIDE(row)  RIG_OUTSIDE(row, BOTH)
#define OP(f, ip, to) RIG_OP(f, ip, to)
#define AT(ip, to)    .next = (ip), .target = (to)

static const struct rig_row rows[] = {
	/* 1 to 5: normal non-jump operation */
	{ INSIDE("1"), OP(move, IN + 0x84, 0), .sent = "" },
	{ .jccs = "TN", OP(move, IN + 0x84, 0), .sent = "", .tnt = 6, .packet_en = RIG_ON },
	{ OUTSIDE("2"), OP(move, OUT + 4, 0), .sent = "", .packet_en = RIG_OFF },
	{ INSIDE("3"), OP(move, LIMIT, 0), .sent = "FUP.PGD 402000", .packet_en = RIG_OFF },
	{ INSIDE("4"), .jccs = "TNN", OP(move, LIMIT, 0), .sent = "TNT TNN, FUP.PGD 402000",
	  .tnt = 1 },
	{ OUTSIDE("5"), OP(move, IN, 0), .sent = "FUP.PGE 401000", .tnt = 1, .packet_en = RIG_ON },
	/* 11: conditional taken, "same as direct jump"; 4.3.2 for the TNT buffer */
	{ INSIDE("11"), OP(taken, IN + 0x82, IN + 0x90), .sent = "", .tnt = 3 },
	{ OP(taken, IN + 0x92, OUT), .sent = "TNT TT, FUP.PGD 401092" },
	{ OP(taken, OUT + 2, OUT + 0x40), .sent = "", .tnt = 1 },
	{ OP(taken, OUT + 2, IN + 0x20), .sent = "FUP.PGE 401020", .tnt = 1 },
	{ OP(taken, IN + 0x22, OUT), .sent = "TNT T, FUP.PGD 401022" },
	/* 12: conditional not taken, "same as normal non-jump operation" */
	{ INSIDE("12"), OP(not_taken, IN + 0x82, OUT), .sent = "", .tnt = 2 },
	{ OP(not_taken, LIMIT, IN), .sent = "TNT NN, FUP.PGD 402000" },
	{ OP(not_taken, OUT + 2, IN), .sent = "", .tnt = 1 },
	{ OP(not_taken, IN, OUT), .sent = "FUP.PGE 401000", .tnt = 1 },
	/* 13 to 20: the sixth. 14, 16, 18 and 20 are below. */
	{ INSIDE("13"), .jccs = "TNTNT", .sent = "" },
	{ OP(taken, IN + 0x82, IN), .sent = "TNT TNTNTT", .tnt = 1 },
	{ INSIDE("15"), .jccs = "TNTNT", OP(taken, IN + 0x82, OUT),
	  .sent = "TNT TNTNTT, FUP.PGD 401082", .tnt = 1 },
	{ INSIDE("17"), .jccs = "NNNNN", .sent = "" },
	{ OP(not_taken, IN + 0x82, OUT), .sent = "TNT NNNNNN", .tnt = 1 },
	{ INSIDE("19"), .jccs = "TTTTT", OP(not_taken, LIMIT, IN),
	  .sent = "TNT TTTTTN, FUP.PGD 402000", .tnt = 1 },
};

START_TEST(row)
{
	rig_run(rows, VMPT_ARRAY_SIZE(rows), _i, NULL);
}
END_TEST

/* 6 to 10: unconditional direct jump, and CALL */
static const struct rig_row direct[] = {
	{ INSIDE("6"), AT(IN + 0x85, IN + 0x90), .sent = "" },
	{ .jccs = "N", AT(IN + 0x85, IN), .sent = "", .tnt = 2 },
	{ OUTSIDE("7"), AT(OUT + 5, OUT + 0x100), .sent = "" },
	/* Its NLIP is not executed, so it is not walked into the range either. */
	{ AT(IN, OUT), .sent = "" },
	{ INSIDE("8"), AT(IN + 0x85, OUT), .sent = "FUP.PGD 401085" },
	{ INSIDE("9"), .jccs = "TT", AT(IN + 0x85, OUT), .sent = "TNT TT, FUP.PGD 401085",
	  .tnt = 1 },
	{ OUTSIDE("10"), AT(OUT + 5, IN + 0x10), .sent = "FUP.PGE 401010", .tnt = 1 },
};

START_TEST(row_of_direct_jumps)
{
	static void (*const op[])(u64 next, u64 target) = { jmp, call };

	rig_run(direct, VMPT_ARRAY_SIZE(direct), _i / 2, op[_i % 2]);
}
END_TEST

/* 21 to 26: near indirect jump */
static const struct rig_row indirect[] = {
	{ INSIDE("21"), AT(IN + 0x82, IN + 0x100), .sent = "TIP 401100" },
	{ INSIDE("22"), .jccs = "NT", AT(IN + 0x82, IN + 0x100), .sent = "TNT NT, TIP 401100",
	  .tnt = 1 },
	{ OUTSIDE("23"), AT(OUT + 2, OUT + 0x100), .sent = "" },
	{ AT(IN, OUT), .sent = "", .tnt = 1 },
	{ INSIDE("24"), AT(IN + 0x82, OUT), .sent = "TIP 300000, FUP.PGD 401082" },
	{ INSIDE("25"), .jccs = "NT", AT(IN + 0x82, OUT),
	  .sent = "TNT NT, TIP 300000, FUP.PGD 401082", .tnt = 1 },
	{ OUTSIDE("26"), AT(OUT + 2, IN + 0x100), .sent = "FUP.PGE 401100", .tnt = 1 },
};

START_TEST(row_of_indirect_jumps)
{
	static void (*const op[])(u64 next, u64 target) = { jmp_ind, call_ind, ret };

	rig_run(indirect, VMPT_ARRAY_SIZE(indirect), _i / 3, op[_i % 3]);
}
END_TEST

/* 14, 16, 18 and 20: outside nothing is in the buffer, and nothing gets there. */
static const struct {
	bool taken;
	u64 next, target; /* of one more, which enters the range */
} impossible[] = {
	{ true, 0, 0 },
	{ true, OUT + 2, IN },
	{ false, 0, 0 },
	{ false, IN, OUT },
};

START_TEST(impossible_row)
{
	unsigned int i;

	rig_inside(BOTH);
	jccs("TNTNT");
	jmp(IN + 5, OUT);
	expect("TNT TNTNT, FUP.PGD 401005");
	for (i = 0; i < 20; i++) {
		expect_tnt(1);
		jcc(impossible[_i].taken, OUT + 2, OUT + 0x10);
	}
	expect_nothing;
	if (!impossible[_i].next)
		return;
	jcc(impossible[_i].taken, impossible[_i].next, impossible[_i].target);
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
	Suite *suite = suite_create("rows-near");
	TCase *tc = tcase_create("rows-near");

	tcase_add_checked_fixture(tc, rig_setup, NULL);
	tcase_add_loop_test(tc, row, 0, rig_rows(rows, VMPT_ARRAY_SIZE(rows)));
	tcase_add_loop_test(tc, row_of_direct_jumps, 0,
			    2 * rig_rows(direct, VMPT_ARRAY_SIZE(direct)));
	tcase_add_loop_test(tc, row_of_indirect_jumps, 0,
			    3 * rig_rows(indirect, VMPT_ARRAY_SIZE(indirect)));
	tcase_add_loop_test(tc, impossible_row, 0, VMPT_ARRAY_SIZE(impossible));
	tcase_add_test(tc, rows_14_to_20_disabled);
	tcase_add_test(tc, footnote_3);
	suite_add_tcase(suite, tc);
	return suite;
}
