// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * RTIT Programming Reference, Table 17: what makes each packet in each of the eight states of
 * TriggerEn, ContextEn and FilterEn, with LESS_PKTS 0 and 1. Loop numbers: bit 0 TriggerEn, bit 1
 * ContextEn, bit 2 FilterEn, bit 3 LESS_PKTS.
 */
#include "tests/model/rtit/rig.h"

#define IN    0x401000
#define LIMIT 0x402000
#define OUT   0x300000
#define STOP  0x500000

static bool trigger, context, filter, less;
static u64 here; /* an address inside or outside the filter, as the state requires */

/* Enter state @n with @ctl: first FilterEn, which needs Trace_En and ContextEn, then the others. */
static void enter_shown(int n, u64 ctl)
{
	trigger = n & 1;
	context = n & 2;
	filter = n & 4;
	less = n & 8;
	here = filter ? IN + 0x100 : OUT;
	range0(IN, LIMIT);
	range1(STOP, STOP + 0x1000);
	wr(EVENTS, EVENT(RANGE0, NEVER));
	ctl |= DEST | TRACE_EN | (less ? LESS_PKTS : 0);
	wr_at(CTL, ctl | OS, OUT);
	jmp(OUT + 5, here);
	ctl |= context ? OS : USER; /* CPL is 0 */
	wr_at(CTL, ctl, here + 2);
	expect_nothing;
	if (trigger)
		wr_at(CTL, ctl | TRACE_ACTIVE, here + 4);
	ck_assert_uint_eq(status(), (trigger ? TRIGGER_EN : 0) | (context ? CONTEXT_EN : 0) |
					    (filter ? FILTER_EN : 0));
}

static void enter(int n, u64 ctl)
{
	enter_shown(n, ctl);
	rig_skip();
}

/* The PSB of the enabling itself, and FUP.PGE if all three become 1 */
START_TEST(fup_pge)
{
	enter_shown(_i, 0);
	if (trigger && context && filter)
		expect("PSB, FUP.PGE 401104");
	else
		expect(trigger ? "PSB" : "");
}
END_TEST

START_TEST(tnt)
{
	enter(_i, 0);
	for (int k = 0; k < 6; k++)
		jcc(k & 1, here + 2, here + 0x10);
	expect(trigger && context && filter ? "TNT NTNTNT" : "");
	jcc(true, here + 2, here + 0x10);
	expect_tnt(trigger && context && filter ? 3 : 1);
}
END_TEST

START_TEST(tip)
{
	enter(_i, 0);
	jmp_ind(here + 2, here + 0x10);
	call_ind(here + 0x12, here + 0x20);
	ret(here + 0x22, here + 0x30);
	expect(trigger && context && filter ? "TIP 401110, TIP 401120, TIP 401130" : "");
}
END_TEST

START_TEST(fup_far)
{
	enter(_i, 0);
	far(here + 2, here + 0x10);
	expect(trigger && context && filter ? "FUP.Far 401102, TIP 401110" : "");
}
END_TEST

/* From the last state into each other one; "may not be generated when TriggerEn becomes 0". */
START_TEST(fup_pgd)
{
	int n = _i & 7;

	enter(7 | (_i & 8), 0);
	if (!(n & 1)) {
		wr_at(CTL, rd(CTL) & ~(u64)TRACE_ACTIVE, here + 6);
		expect_nothing;
	} else if (!(n & 2)) {
		wr_at(CTL, (rd(CTL) & ~(u64)OS) | USER, here + 6);
		expect("FUP.PGD 401106");
	} else if (!(n & 4)) {
		jmp(here + 6, OUT);
		expect("FUP.PGD 401106");
	} else {
		jmp(here + 6, here);
		expect_nothing;
	}
}
END_TEST

/* "Clearing of TriggerEn": 4.2.11 requires TriggerEn and ContextEn. */
START_TEST(trace_stop)
{
	const char *text;

	enter(_i, 0);
	wr_at(EVENTS, EVENT(RANGE0, RANGE1), here + 6);
	rig_skip();
	jmp(here + 8, STOP);
	text = rig_text();
	ck_assert_msg(!strstr(text, "TraceSTOP") == !(trigger && context), "%s", text);
	if (trigger && context)
		ck_assert_uint_eq(rd(CTL) & (TRACE_ACTIVE | TRACE_EN), TRACE_EN);
	else
		ck_assert_uint_eq(rd(CTL) & TRACE_ACTIVE, trigger ? TRACE_ACTIVE : 0);
}
END_TEST

START_TEST(psb)
{
	enter(_i, 0);
	wr_at(PKT_CNT, 0x00800, here + 6);
	expect(trigger ? "PSB" : "");
	/* And after 2 KiB of packets */
	if (trigger && context && filter) {
		wr_at(PKT_CNT, 0x007ff, here + 6);
		jmp_ind(here + 2, here + 0x10);
		expect("TIP 401110, PSB");
	}
}
END_TEST

/* ---- rows with LESS_PKTS: loop numbers are the eight states only ---- */

#define LESS	   8
#define TRIGGER(n) ((n)&1)
#define CONTEXT(n) (((n)&3) == 3)
#define PACKET(n)  (((n)&7) == 7)

static void check_sts(int n, bool want)
{
	enter(n, STS_EN);
	tsc(0x9876543210);
	vmpt_rtit_unit_frequency(&rig.unit, 12, 6);
	expect(want ? "STS 12/6 9876543210" : "");
	tsc(0x9876543333);
	vmpt_rtit_unit_frequency(&rig.unit, 12, 3);
	expect(want ? "STS 12/3 9876543333" : "");
}

START_TEST(sts_less_pkts_set)
{
	check_sts(_i | LESS, PACKET(_i));
}
END_TEST

START_TEST(sts_less_pkts_clear)
{
	check_sts(_i, TRIGGER(_i));
}
END_TEST

static void check_mtc(int n, bool want)
{
	enter(n, MTC_EN);
	tsc(0x7f);
	expect_nothing;
	tsc(0x80);
	expect(want ? "MTC 0:01" : "");
	tsc(0x100);
	expect(want ? "MTC 0:02" : "");
}

START_TEST(mtc_less_pkts_set)
{
	check_mtc(_i | LESS, PACKET(_i));
}
END_TEST

START_TEST(mtc_less_pkts_clear)
{
	check_mtc(_i, TRIGGER(_i));
}
END_TEST

static void check_pcc(int n, bool want)
{
	enter(n, CYCLE_ACC);
	wr_at(CNTP, 0x200000, here + 8);
	rig_skip();
	step(here + 10);
	expect(!want ? "" : filter ? "FUP.PCC 40110a +2097152" : "FUP.PCC 30000a +2097152");
}

START_TEST(fup_pcc_less_pkts_set)
{
	check_pcc(_i | LESS, PACKET(_i));
}
END_TEST

START_TEST(fup_pcc_less_pkts_clear)
{
	check_pcc(_i, CONTEXT(_i));
}
END_TEST

static void check_counter(int n, bool want)
{
	enter(n, CYCLE_ACC);
	wr_at(CNTP, 0, here + 8);
	cycles(100);
	ck_assert_uint_eq(rd(CNTP), want ? 100 : 0);
}

START_TEST(cycle_counter_less_pkts_set)
{
	check_counter(_i | LESS, CONTEXT(_i));
}
END_TEST

START_TEST(cycle_counter_less_pkts_clear)
{
	check_counter(_i, PACKET(_i));
}
END_TEST

/* ---- the last row ---- */

START_TEST(fup_buff_ovf)
{
	bool want;

	enter(_i, 0);
	want = trigger && context;
	wr_at(STATUS, BUFFER_OVERFLOW | (filter ? FILTER_EN : 0), here + 8);
	rig_skip();
	vmpt_rtit_unit_overflow(&rig.unit);
	vmpt_rtit_unit_overflow_resolve(&rig.unit, here + 10);
	expect(!want ? "" : filter ? "FUP.BuffOvf 40110a" : "FUP.BuffOvf 30000a");
	ck_assert_uint_eq(status() & BUFFER_OVERFLOW, want ? 0 : BUFFER_OVERFLOW);
}
END_TEST

TEST_SUITE()
{
	const TTest *const tests[] = { fup_pge, tnt,	    tip, fup_far,
				       fup_pgd, trace_stop, psb, fup_buff_ovf };
	const TTest *const rows[] = {
		sts_less_pkts_set,	     sts_less_pkts_clear,	    mtc_less_pkts_set,
		mtc_less_pkts_clear,	     fup_pcc_less_pkts_set,	    fup_pcc_less_pkts_clear,
		cycle_counter_less_pkts_set, cycle_counter_less_pkts_clear,
	};
	Suite *suite = suite_create("table17");
	TCase *tc = tcase_create("table17");
	size_t i;

	tcase_add_checked_fixture(tc, rig_setup, NULL);
	for (i = 0; i < VMPT_ARRAY_SIZE(tests); i++)
		tcase_add_loop_test(tc, tests[i], 0, 16);
	for (i = 0; i < VMPT_ARRAY_SIZE(rows); i++)
		tcase_add_loop_test(tc, rows[i], 0, 8);
	suite_add_tcase(suite, tc);
	return suite;
}
