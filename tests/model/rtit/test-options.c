// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Where the manual may be read in two ways (docs/rtit/model.md), the reading that a unit's options
 * enable; all other tests use the default.
 */
#include "tests/model/rtit/rig.h"

#define IN   0x401000
#define STOP 0x500000

/* ---- 4.2.8: a TraceStop with its FUP.PGD ---- */

static void pgd_at_stop(u64 filter, u64 ctl)
{
	rig.config.options.pgd_at_stop = true;
	rig_init();
	range0(IN, IN + 0x1000);
	range1(STOP, STOP + 0x1000);
	wr(EVENTS, EVENT(filter, RANGE1));
	on(BOTH | ctl);
	if (filter == RANGE0) {
		jmp(0x1002, IN);
		expect("FUP.PGE 401000");
	}
}

static void expect_stopped(const char *want)
{
	expect(want);
	ck_assert_uint_eq(rd(CTL) & TRACE_ACTIVE, 0);
}

START_TEST(stop_at_jump)
{
	pgd_at_stop(ALWAYS, 0);
	jccs("TN");
	jmp(IN + 5, STOP);
	expect_stopped("TNT TN, FUP.PGD 401005, TraceSTOP");
	expect_tnt(1);
}
END_TEST

START_TEST(stop_at_step)
{
	pgd_at_stop(RANGE0, 0);
	range1(IN + 8, IN + 16);
	step(IN + 8);
	expect_stopped("FUP.PGD 401008, TraceSTOP");
}
END_TEST

START_TEST(stop_at_indirect)
{
	pgd_at_stop(RANGE0, 0);
	jmp_ind(IN + 2, STOP + 4);
	expect_stopped("TIP 500004, FUP.PGD 401002, TraceSTOP");
}
END_TEST

/* In the place of FUP.FAR (4.2.9), as in row 30. */
START_TEST(stop_at_far)
{
	pgd_at_stop(ALWAYS, 0);
	far(IN + 2, STOP + 4);
	expect_stopped("FUP.PGD 401002, TIP 500004, TraceSTOP");
}
END_TEST

START_TEST(stop_at_mov_cr3)
{
	pgd_at_stop(ALWAYS, 0);
	mov_cr3(STOP, 0x2000);
	expect_stopped("PIP 2000 PG, FUP.PGD 500000, TraceSTOP");
}
END_TEST

/* PacketEn is 0 before. */
START_TEST(stop_outside)
{
	pgd_at_stop(RANGE0, 0);
	jmp(IN + 2, 0x9000);
	expect("FUP.PGD 401002");
	jmp(0x9002, STOP);
	expect_stopped("TraceSTOP");
}
END_TEST

/* For this case see 4.2.5. */
START_TEST(stop_after_overflow)
{
	pgd_at_stop(ALWAYS, 0);
	vmpt_rtit_unit_overflow(&rig.unit);
	jmp(IN + 2, STOP);
	vmpt_rtit_unit_overflow_resolve(&rig.unit, STOP + 4);
	expect_stopped("FUP.BuffOvf 500004, TraceSTOP");
}
END_TEST

/* A WRMSR is not affected. */
START_TEST(stop_is_not_disable)
{
	pgd_at_stop(ALWAYS, 0);
	jccs("TN");
	off();
	expect_nothing;
}
END_TEST

/* ---- 4.2.2: each packet forces a partial TNT out ---- */

static void tnt_before_all(u64 ctl)
{
	rig.config.options.tnt_before_all = true;
	rig_init();
	on(BOTH | ctl);
}

START_TEST(tnt_before_mtc)
{
	tnt_before_all(MTC_EN);
	jccs("TN");
	tsc(0x80);
	expect("TNT TN, MTC 0:01");
	tsc(0x100);
	expect("MTC 0:02");
}
END_TEST

START_TEST(tnt_before_sts)
{
	tnt_before_all(STS_EN | CYCLE_ACC);
	wr(CNTP, 0);
	jccs("TNT");
	cycles(7);
	vmpt_rtit_unit_frequency(&rig.unit, 3, 2);
	expect("TNT TNT, STS 3/2 0 +7");
	jccs("N");
	vmpt_rtit_unit_wake(&rig.unit, &rig.unit.now);
	expect("TNT N, STS 3/2 0 +0");
}
END_TEST

START_TEST(tnt_before_psb)
{
	tnt_before_all(0);
	jccs("TN");
	wr(PKT_CNT, 0x800);
	expect("TNT TN, PSB");
	expect_tnt(1);
}
END_TEST

/* The TNT itself makes a PSB due: only one PSB. */
START_TEST(tnt_and_psb_at_once)
{
	tnt_before_all(MTC_EN);
	wr(PKT_CNT, 0x7ff);
	jccs("TN");
	tsc(0x80);
	expect("TNT TN, PSB, MTC 0:01");
}
END_TEST

/* Bits that earlier tracing left go before the PSB of TriggerEn. */
START_TEST(tnt_before_psb_of_trigger)
{
	tnt_before_all(0);
	jccs("TNN");
	off();
	expect_nothing;
	wr(CTL, BOTH | DEST | TRACE_EN);
	wr(CTL, BOTH | DEST | TRACE_EN | TRACE_ACTIVE);
	expect("TNT TNN, PSB, FUP.PGE 600000");
}
END_TEST

/* In an overflow it cannot: the TNT comes before the FUP.BuffOvf, as always. */
START_TEST(tnt_in_overflow)
{
	tnt_before_all(MTC_EN);
	jccs("TNN");
	vmpt_rtit_unit_overflow(&rig.unit);
	tsc(0x80);
	ctl_clear(TRACE_ACTIVE);
	ctl_set(TRACE_ACTIVE);
	expect("PSB");
	expect_tnt(0xc);
	vmpt_rtit_unit_overflow_resolve(&rig.unit, 0x3000);
	expect("TNT TNN, FUP.BuffOvf 3000");
}
END_TEST

/* "the TNT buffer is not drained on a TraceStop action" */
START_TEST(tnt_not_before_stop)
{
	tnt_before_all(0);
	range1(STOP, STOP + 0x1000);
	wr(EVENTS, EVENT(ALWAYS, RANGE1));
	jccs("TNN");
	jmp(IN + 5, STOP);
	expect("TraceSTOP");
	expect_tnt(0xc);
}
END_TEST

/* ---- Table 17: the rows of the cycle counter exchanged ---- */

static unsigned int counted(bool less, bool context, bool filter)
{
	bool want = less ? context && filter : context;

	rig.config.options.cycle_rows_exchanged = true;
	rig_init();
	if (!filter)
		wr(EVENTS, EVENT(NEVER, NEVER));
	on((context ? BOTH : USER) | CYCLE_ACC | (less ? LESS_PKTS : 0));
	wr(CNTP, 0);
	cycles(10);
	return rd(CNTP) == (want ? 10 : 0);
}

START_TEST(cycle_rows)
{
	unsigned int i;

	for (i = 0; i < 8; i++)
		ck_assert_msg(counted(i & 1, i >> 1 & 1, i >> 2), "case %u", i);
}
END_TEST

/* So a FUP.PCC may come where FilterEn is 0 (4.2.6). */
START_TEST(pcc_outside)
{
	rig.config.options.cycle_rows_exchanged = true;
	rig_init();
	wr(EVENTS, EVENT(NEVER, NEVER));
	on(BOTH | CYCLE_ACC);
	wr(CNTP, 0);
	cycles(0x200000);
	jmp(IN + 2, 0x2000);
	expect("FUP.PCC 401002 +2097152");
}
END_TEST

RIG_SUITE("options", stop_at_jump, stop_at_step, stop_at_indirect, stop_at_far, stop_at_mov_cr3,
	  stop_outside, stop_after_overflow, stop_is_not_disable, tnt_before_mtc, tnt_before_sts,
	  tnt_before_psb, tnt_and_psb_at_once, tnt_before_psb_of_trigger, tnt_in_overflow,
	  tnt_not_before_stop, cycle_rows, pcc_outside)
