// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* RTIT Programming Reference, Appendix E: each erratum switched off and on. */
#include <stdio.h>

#include "tests/model/rtit/rig.h"

#define IN    0x401000
#define LIMIT 0x402000
#define OUT   0x300000
#define STOP  0x500000

static void filtered(u64 ctl)
{
	range0(IN, LIMIT);
	range1(STOP, STOP + 0x1000);
	wr(EVENTS, EVENT(RANGE0, RANGE1));
	wr_at(CTL, ctl | DEST | TRACE_EN, OUT);
	wr_at(CTL, ctl | DEST | TRACE_EN | TRACE_ACTIVE, OUT);
	rig_skip();
}

/* ---- E1 ---- */

static void far_insn(u64 insn, unsigned int prefixes, u64 next, u64 target)
{
	struct vmpt_rtit_far f = { .ip = next,
				   .target = target,
				   .mode = rig.unit.mode,
				   .is_insn = true,
				   .insn = insn,
				   .prefixes = (u8)prefixes };

	vmpt_rtit_unit_far(&rig.unit, &f);
}

START_TEST(e1_off)
{
	on(BOTH);
	far_insn(IN, 5, IN + 12, STOP);
	expect("FUP.Far 40100c, TIP 500000");
}
END_TEST

START_TEST(e1_on)
{
	unsigned long long lip = 0;
	int end = 0;

	rig_erratum(1);
	on(BOTH);
	/* "far transfer instructions with more than 3 prefixes" */
	far_insn(IN, 3, IN + 10, STOP);
	expect("FUP.Far 40100a, TIP 500000");
	far_insn(IN, 0, IN + 7, STOP);
	expect("FUP.Far 401007, TIP 500000");
	/* an interrupt, a fault */
	far(IN + 4, STOP);
	expect("FUP.Far 401004, TIP 500000");
	far_insn(IN, 4, IN + 11, STOP);
	ck_assert_int_eq(sscanf(rig_text(), "FUP.Far %llx, TIP 500000%n", &lip, &end), 1);
	ck_assert_int_gt(end, 0);
	/* "between the first byte of the far transfer instruction and the last byte" */
	ck_assert_uint_ge(lip, IN);
	ck_assert_uint_lt(lip, IN + 11);
}
END_TEST

/* An instruction may be at address 0. */
START_TEST(far_insn_at_0)
{
	unsigned long long lip = 0;

	rig_erratum(1);
	on(BOTH | CYCLE_ACC);
	wr(CNTP, 0);
	rig_skip();
	cycles(0x200000);
	far_insn(0, 4, 11, STOP);
	ck_assert_int_eq(
		sscanf(rig_text(), "FUP.PCC b +2097152, FUP.Far %llx +0, TIP 500000 +0", &lip), 1);
	ck_assert_uint_lt(lip, 11);
}
END_TEST

/* It affects FUP.FAR only: a FUP.PGD in its place is correct. */
START_TEST(e1_on_pgd)
{
	rig_erratum(1);
	filtered(BOTH);
	jmp(OUT + 5, IN);
	rig_skip();
	far_insn(IN, 5, IN + 12, OUT);
	expect("FUP.PGD 40100c, TIP 300000");
}
END_TEST

/* ---- E2 ---- */

/* 2a and 3a: ContextEn 0 to 1, FilterEn 1 to 0 */
static void e2_context_and_filter(void)
{
	filtered(BOTH);
	jmp(OUT + 5, IN);
	wr_at(CTL, (rd(CTL) & ~(u64)OS), IN + 4);
	ck_assert_uint_eq(status(), FILTER_EN | TRIGGER_EN);
	rig_skip();
	far_cpl(IN + 8, OUT, 3);
	ck_assert_uint_eq(status(), CONTEXT_EN | TRIGGER_EN);
}

/* 2b and 3a: ContextEn 0 to 1, TraceStop */
static void e2_context_and_stop(void)
{
	filtered(USER);
	ck_assert_uint_eq(status(), TRIGGER_EN);
	far_cpl(OUT + 2, STOP, 3);
	ck_assert_uint_eq(rd(CTL) & TRACE_ACTIVE, 0);
}

/* 2a and 3b: a WRMSR that sets TriggerEn, FilterEn 1 to 0 */
static void e2_trigger_and_filter(void)
{
	range0(IN, LIMIT);
	wr(EVENTS, EVENT(RANGE0, NEVER));
	wr_at(CTL, BOTH | DEST | TRACE_EN, OUT);
	jmp(OUT + 5, IN);
	ck_assert_uint_eq(status(), FILTER_EN | CONTEXT_EN);
	wr_at(CTL, BOTH | DEST | TRACE_EN | TRACE_ACTIVE, LIMIT);
	ck_assert_uint_eq(status(), CONTEXT_EN | TRIGGER_EN);
}

/* 2b and 3b */
static void e2_trigger_and_stop(void)
{
	range1(STOP, STOP + 0x1000);
	wr(EVENTS, EVENT(NEVER, RANGE1));
	wr_at(CTL, BOTH | DEST | TRACE_EN, OUT);
	wr_at(CTL, BOTH | DEST | TRACE_EN | TRACE_ACTIVE, STOP);
	ck_assert_uint_eq(rd(CTL) & TRACE_ACTIVE, 0);
}

static const struct {
	void (*happen)(void);
	bool psb, stop;
	u64 lip;
} e2[] = {
	{ e2_context_and_filter, false, false, IN + 8 },
	{ e2_context_and_stop, false, true, OUT + 2 },
	{ e2_trigger_and_filter, true, false, LIMIT },
	{ e2_trigger_and_stop, true, true, STOP },
};

START_TEST(e2_off)
{
	e2[_i].happen();
	expect(e2[_i].psb && e2[_i].stop ? "PSB, TraceSTOP"
	       : e2[_i].psb		 ? "PSB"
	       : e2[_i].stop		 ? "TraceSTOP"
					 : "");
}
END_TEST

/* The extra packet comes once, after the trace's first PSB and before its final TraceSTOP. */
START_TEST(e2_on)
{
	char want[60];

	rig_erratum(2);
	e2[_i].happen();
	snprintf(want, sizeof(want), "%sFUP.PGD %llx%s", e2[_i].psb ? "PSB, " : "",
		 (unsigned long long)e2[_i].lip, e2[_i].stop ? ", TraceSTOP" : "");
	expect(want);
}
END_TEST

/* Not if one of the conditions is missing */
START_TEST(e2_on_not_met)
{
	rig_erratum(2);
	filtered(BOTH);
	/* 1 and 3a only: ContextEn 1, 0 and 1 again outside */
	wr_at(CTL, rd(CTL) & ~(u64)OS, OUT + 4);
	wr_at(CTL, rd(CTL) | OS, OUT + 8);
	expect_nothing;
	/* PacketEn was 1: only the regular FUP.PGD */
	jmp(OUT + 5, IN);
	jmp(IN + 5, OUT);
	expect("FUP.PGE 401000, FUP.PGD 401005");
	/* 2b without 3 */
	jmp(OUT + 5, STOP);
	expect("TraceSTOP");
}
END_TEST

/* ---- E3 ---- */

START_TEST(e3_off)
{
	on(BOTH);
	wr(PKT_CNT, 0x7fd);
	jmp_ind(IN + 2, 0x5000);
	jmp_ind(0x5002, 0x6000);
	expect("TIP 5000, PSB, TIP 6000");
}
END_TEST

/* "the PSB packet may be delayed by one packet" */
START_TEST(e3_on)
{
	rig_erratum(3);
	rig.state.keep = true;
	on(BOTH);
	wr(PKT_CNT, 0x7fd);
	jmp_ind(IN + 2, 0x5000);
	expect("TIP 5000");
	jmp_ind(0x5002, 0x6000);
	expect("TIP 6000, PSB");
	jmp_ind(0x6002, 0x7000);
	expect("TIP 7000");
	/* With the erratum, the example of 3.3.9 is: */
	wr(LAST_LIP, 0);
	wr(PKT_CNT, 0x10ffc);
	far(0x7fff12345678, 0x89abcdef);
	expect("FUP.Far 7fff12345678, TIP 89abcdef, PSB");
}
END_TEST

/* A write to PKT_CNT while a PSB is delayed restarts the count (docs/rtit/model.md). */
START_TEST(e3_on_written)
{
	rig_erratum(3);
	rig.state.keep = true;
	on(BOTH);
	wr(PKT_CNT, 0x7fd);
	jmp_ind(IN + 2, 0x5000);
	wr(PKT_CNT, 0x100);
	jmp_ind(0x5002, 0x6000);
	jmp_ind(0x6002, 0x7000);
	expect("TIP 5000, TIP 6000, TIP 7000");
	ck_assert_uint_eq(rd(PKT_CNT), 0x106);
}
END_TEST

/* The PSB of enabling is not due to Pkt_Mask. */
START_TEST(e3_on_enabling)
{
	rig_erratum(3);
	on_shown(BOTH);
	expect("PSB, FUP.PGE 600000");
}
END_TEST

/* ---- E4 ---- */

static void stop_in_overflow(void)
{
	range1(STOP, STOP + 0x1000);
	wr(EVENTS, EVENT(ALWAYS, RANGE1));
	on(BOTH);
	vmpt_rtit_unit_overflow(&rig.unit);
	jmp(IN + 5, STOP);
	vmpt_rtit_unit_overflow_resolve(&rig.unit, STOP + 4);
}

START_TEST(e4_off)
{
	stop_in_overflow();
	expect("FUP.BuffOvf 500004, TraceSTOP");
	ck_assert_uint_eq(rd(CTL) & TRACE_ACTIVE, 0);
}
END_TEST

/* "tracing will continue …; evident if the TraceStop packet is inserted before overflow is
 * resolved" */
START_TEST(e4_on)
{
	rig_erratum(4);
	stop_in_overflow();
	expect("TraceSTOP, FUP.BuffOvf 500004");
	ck_assert_uint_eq(rd(CTL) & TRACE_ACTIVE, TRACE_ACTIVE);
	jmp_ind(STOP + 6, 0x600000);
	expect("TIP 600000");
}
END_TEST

/* One TraceSTOP per overflow, however often a branch enters the range. */
START_TEST(e4_on_twice)
{
	rig_erratum(4);
	stop_in_overflow();
	expect("TraceSTOP, FUP.BuffOvf 500004");
	vmpt_rtit_unit_overflow(&rig.unit);
	jmp(STOP + 5, STOP);
	jmp(STOP + 5, STOP + 8);
	far(STOP + 10, STOP);
	vmpt_rtit_unit_overflow_resolve(&rig.unit, STOP + 4);
	expect("TraceSTOP, FUP.BuffOvf 500004");
	/* Software may begin and end an overflow, too. */
	wr(STATUS, FILTER_EN | BUFFER_OVERFLOW);
	jmp(STOP + 5, STOP);
	jmp(STOP + 5, STOP + 8);
	wr_at(STATUS, FILTER_EN, STOP + 12);
	expect("TraceSTOP");
}
END_TEST

/* Without an overflow tracing stops. */
START_TEST(e4_on_without_overflow)
{
	rig_erratum(4);
	range1(STOP, STOP + 0x1000);
	wr(EVENTS, EVENT(ALWAYS, RANGE1));
	on(BOTH);
	jmp(IN + 5, STOP);
	expect("TraceSTOP");
	ck_assert_uint_eq(rd(CTL) & TRACE_ACTIVE, 0);
}
END_TEST

/* ---- E5 ---- */

static void branch_in_overflow(void)
{
	on(BOTH);
	vmpt_rtit_unit_overflow(&rig.unit);
	jmp_ind(IN + 2, 0x5000);
	vmpt_rtit_unit_overflow_resolve(&rig.unit, 0x5000);
}

START_TEST(e5_off)
{
	branch_in_overflow();
	expect("FUP.BuffOvf 5000");
}
END_TEST

/* "The IP payload of this FUP.TIP will be the LIP of the instruction upon which tracing resumes."
 */
START_TEST(e5_on)
{
	rig_erratum(5);
	branch_in_overflow();
	expect("FUP.BuffOvf 5000, TIP 5000");
	jmp_ind(0x5002, 0x6000);
	expect("TIP 6000");
	/* No branch in the overflow, no TIP */
	vmpt_rtit_unit_overflow(&rig.unit);
	step(0x6004);
	vmpt_rtit_unit_overflow_resolve(&rig.unit, 0x6004);
	expect("FUP.BuffOvf 6004");
	/* No TIP either if a branch's target is not where tracing resumes */
	vmpt_rtit_unit_overflow(&rig.unit);
	jmp_ind(0x6006, 0x7000);
	step(0x7004);
	vmpt_rtit_unit_overflow_resolve(&rig.unit, 0x7004);
	expect("FUP.BuffOvf 7004");
}
END_TEST

/* A far transfer that ends where ContextEn is 0 makes no TIP (row 32), nor does the return. */
START_TEST(e5_on_row_32)
{
	rig_erratum(5);
	on(OS);
	vmpt_rtit_unit_overflow(&rig.unit);
	far_cpl(IN + 2, 0x5000, 3);
	far_cpl(0x5002, 0x5000, 0);
	vmpt_rtit_unit_overflow_resolve(&rig.unit, 0x5000);
	expect("FUP.BuffOvf 5000");
	vmpt_rtit_unit_overflow(&rig.unit);
	far_cpl(IN + 2, 0x6000, 0);
	vmpt_rtit_unit_overflow_resolve(&rig.unit, 0x6000);
	expect("FUP.BuffOvf 6000, TIP 6000");
}
END_TEST

/* ---- E6 ---- */

START_TEST(e6_off)
{
	on(BOTH | CYCLE_ACC);
	wr(CNTP, 0);
	cycles(10);
	jmp_ind(IN + 2, 0x5000);
	expect("TIP 5000 +10");
}
END_TEST

/* "a payload value that is one less …; of 0, the correct value may be 0 or 1" */
START_TEST(e6_on)
{
	rig_erratum(6);
	on(BOTH | CYCLE_ACC);
	wr(CNTP, 0);
	cycles(10);
	jmp_ind(IN + 2, 0x5000);
	expect("TIP 5000 +9");
	cycles(1);
	jmp_ind(IN + 2, 0x5000);
	expect("TIP 5000 +0");
	jmp_ind(IN + 2, 0x5000);
	expect("TIP 5000 +0");
	cycles(64);
	far(0x5002, 0x5000);
	expect_bytes("bc 02 50 fd b4 00 50 01"); /* 63 and 0 */
}
END_TEST

/* ---- E7 ---- */

/*
 * Time passes in small steps from 1000H on; an MTC is due at each 80H. Returns how many came at a
 * wrong time or had a wrong value; @first: whether the first one did.
 */
static unsigned int wrong_mtcs(bool *first, unsigned int *all)
{
	unsigned int wrong = 0;
	char want[20];
	u64 now;

	*all = 0;
	*first = false;
	for (now = 0x1001; now < 0x1000 + 20 * 0x80; now++) {
		const char *text;

		tsc(now);
		text = rig_text();
		snprintf(want, sizeof(want), "MTC 0:%02x", (unsigned int)(now >> 7 & 0xff));
		if (!*text)
			continue;
		(*all)++;
		if (now % 0x80 == 0 && !strcmp(text, want))
			continue;
		wrong++;
		*first |= *all == 1;
	}
	return wrong;
}

START_TEST(e7_off)
{
	unsigned int all;
	bool first;

	tsc(0x1000);
	on(BOTH | MTC_EN);
	ck_assert_uint_eq(wrong_mtcs(&first, &all), 0);
	ck_assert_uint_eq(all, 19);
}
END_TEST

/* "the first MTC … packet may be sent at the wrong time", after each enabling */
START_TEST(e7_on)
{
	unsigned int all, n;
	bool first;

	rig_erratum(7);
	for (n = 0; n < 3; n++) {
		tsc(0x1000);
		on(BOTH | MTC_EN);
		ck_assert_uint_eq(wrong_mtcs(&first, &all), 1);
		ck_assert(first);
		ck_assert_uint_ge(all, 19);
		off();
	}
}
END_TEST

/* ---- each erratum leaves the others' behaviour alone ---- */

START_TEST(one_by_one)
{
	unsigned int n = (unsigned int)_i + 1;

	rig_erratum(n);
	on_shown(BOTH);
	expect("PSB, FUP.PGE 600000");
	jccs("TN");
	far(0x600002, 0x7000);
	jmp_ind(0x7002, 0x8000);
	jccs("TTTTTT");
	mov_cr3(0x8003, 0x2000);
	expect("TNT TN, FUP.Far 600002, TIP 7000, TIP 8000, TNT TTTTTT, PIP 2000 PG");
	vmpt_rtit_unit_overflow(&rig.unit);
	vmpt_rtit_unit_overflow_resolve(&rig.unit, 0x8010);
	jmp_ind(0x8012, 0x9000);
	expect("FUP.BuffOvf 8010, TIP 9000");
}
END_TEST

TEST_SUITE()
{
	const TTest *const once[] = {
		e1_off,	     e1_on,	    e2_on_not_met, e3_off,    e3_on,
		e4_off,	     e4_on,	    e5_off,	   e5_on,     e3_on_enabling,
		e6_off,	     e6_on,	    e7_off,	   e7_on,     e4_on_without_overflow,
		e4_on_twice, far_insn_at_0, e5_on_row_32,  e1_on_pgd, e3_on_written,
	};
	Suite *suite = suite_create("errata");
	TCase *tc = tcase_create("errata");
	size_t i;

	tcase_add_checked_fixture(tc, rig_setup, NULL);
	for (i = 0; i < VMPT_ARRAY_SIZE(once); i++)
		tcase_add_test(tc, once[i]);
	tcase_add_loop_test(tc, e2_off, 0, VMPT_ARRAY_SIZE(e2));
	tcase_add_loop_test(tc, e2_on, 0, VMPT_ARRAY_SIZE(e2));
	tcase_add_loop_test(tc, one_by_one, 0, VMPT_RTIT_ERRATA);
	suite_add_tcase(suite, tc);
	return suite;
}
