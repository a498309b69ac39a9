// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * RTIT Programming Reference: MTC 4.2.12, STS 4.2.13, cycle counts 4.2.14 and 4.2.15, FUP.PCC
 * 4.2.6, RTIT_CNTP 3.3.4, sleep states (Appendix B).
 */
#include <stdio.h>

#include "tests/model/rtit/rig.h"

/* ---- MTC ---- */

static const struct {
	u64 step, ctl;
} ranges[] = { { 1 << 7, MTC_RANGE(0) },
	       { 1 << 9, MTC_RANGE(1) },
	       { 1 << 11, MTC_RANGE(2) },
	       { 1 << 13, MTC_RANGE(3) } };

/* Three times around the 8 bits, from the middle of a period on */
START_TEST(mtc_range)
{
	u64 period = ranges[_i].step, n;
	char want[40];

	tsc(0x123400000 + period / 2);
	on(BOTH | MTC_EN | ranges[_i].ctl);
	for (n = 1; n < 3 * 256; n++) {
		tsc(0x123400000 + n * period - 1);
		expect_nothing;
		tsc(0x123400000 + n * period);
		snprintf(want, sizeof(want), "MTC %d:%02x", _i, (unsigned int)(n & 0xff));
		expect(want);
		tsc(0x123400000 + n * period + period / 2);
		expect_nothing;
	}
}
END_TEST

/* Figure 11 by hand: TSC[14:7] of 5a80H is b5H, and so on. */
START_TEST(mtc_bytes)
{
	static const char *const want[] = { "c4 b5", "c5 2d", "c6 0b", "c7 02" };

	tsc(0x5a80 - ranges[_i].step);
	on(BOTH | MTC_EN | ranges[_i].ctl);
	tsc(0x5a80);
	expect_bytes(want[_i]);
}
END_TEST

/*
 * "Whenever that 8-bit range being watched changes, an MTC packet will be sent out": time that is
 * reported late has as many changes.
 */
START_TEST(mtc_each_change)
{
	tsc(0x7f);
	on(BOTH | MTC_EN);
	tsc(0x234);
	expect("MTC 0:01, MTC 0:02, MTC 0:03, MTC 0:04");
}
END_TEST

START_TEST(mtc_not_enabled)
{
	on(BOTH);
	tsc(0x100000);
	expect_nothing;
}
END_TEST

/* ---- STS ---- */

/* Figure 12: ACBR 45 = 101101b, ECBR 6 = 000110b */
START_TEST(sts_bytes)
{
	on(BOTH | STS_EN);
	tsc(0xfedcba9876543210);
	vmpt_rtit_unit_frequency(&rig.unit, 45, 6);
	expect_bytes("db 46 10 32 54 76 98");
	ck_assert_uint_eq(rig.unit.acbr, 45);
	ck_assert_uint_eq(rig.unit.ecbr, 6);
}
END_TEST

/* Bits beyond the ratios' 6 are dropped, the packet is not lost. */
START_TEST(sts_wide_ratios)
{
	on(BOTH | STS_EN);
	tsc(0x1000);
	vmpt_rtit_unit_frequency(&rig.unit, 0xc0 + 45, 0x40 + 6);
	expect("STS 45/6 1000");
}
END_TEST

/* Frequency, clock modulation (only the effective ratio changes), wakeup, MOV CR3 */
START_TEST(sts_causes)
{
	on(BOTH | STS_EN | STS_ON_CR3);
	tsc(0x1000);
	vmpt_rtit_unit_frequency(&rig.unit, 30, 30);
	expect("STS 30/30 1000");
	vmpt_rtit_unit_frequency(&rig.unit, 30, 15);
	expect("STS 30/15 1000");
	tsc(0x2000);
	vmpt_rtit_unit_wake(&rig.unit, &rig.unit.now);
	expect("STS 30/15 2000");
	mov_cr3(0x401003, 0x3000);
	expect("PIP 3000 PG, STS 30/15 2000");
	/* No cause: time, another CR0, other branches */
	tsc(0x9000000);
	cycles(1000000);
	vmpt_rtit_unit_mov_cr0(&rig.unit, 0x401003, false);
	far_cr3(0x401003, 0x402000, 0x5000);
	expect("PIP 3000, FUP.Far 401003, TIP 402000");
}
END_TEST

/* "STS packets should only be sent out when RTIT_CTL[STS_EN] is set." */
START_TEST(sts_not_enabled)
{
	on(BOTH | STS_ON_CR3 | CR3_EN);
	vmpt_rtit_unit_frequency(&rig.unit, 30, 15);
	vmpt_rtit_unit_wake(&rig.unit, &rig.unit.now);
	mov_cr3(0x401003, 0x3000);
	expect_nothing;
}
END_TEST

/* ---- cycle counts ---- */

/* 4.2.14, at the limits of 1, 2 and 3 bytes; Figure 13 by hand after "MTC 0:01" */
static const struct {
	u64 cycles;
	const char *bytes;
} lengths[] = {
	{ 0, "c4 01 01" },
	{ 1, "c4 01 05" },
	{ 63, "c4 01 fd" },
	{ 64, "c4 01 02 01" },
	{ 16383, "c4 01 fe ff" },
	{ 16384, "c4 01 03 00 01" },
	{ 4194303, "c4 01 ff ff ff" },
	{ 0x2aaaaa, "c4 01 ab aa aa" },
};

START_TEST(lengths_of_counts)
{
	struct vmpt_rtit_clocks now;

	on(BOTH | CYCLE_ACC | MTC_EN);
	wr(CNTP, 0);
	now = rig.unit.now;
	now.cycles += lengths[_i].cycles;
	now.tsc = 0x80;
	vmpt_rtit_unit_time(&rig.unit, &now);
	expect_bytes(lengths[_i].bytes);
	/* "every time a Cycle Count packet is sent, RTIT_CNTP[CNTP] is reset" */
	ck_assert_uint_eq(rd(CNTP), 0);
}
END_TEST

/* 4.2.15's list, each with one count */
START_TEST(cycle_accurate_packets)
{
	on(BOTH | CYCLE_ACC | MTC_EN | STS_EN);
	cycles(1);
	jccs("TNTNTN");
	expect("TNT TNTNTN +1");
	cycles(2);
	jmp_ind(0x401002, 0x5000);
	expect("TIP 5000 +2");
	cycles(3);
	far(0x5002, 0x6000);
	expect("FUP.Far 5002 +3, TIP 6000 +0");
	cycles(4);
	mov_cr3(0x6003, 0x2000);
	expect("PIP 2000 PG +4");
	cycles(5);
	tsc(0x80);
	expect("MTC 0:01 +5");
	cycles(6);
	vmpt_rtit_unit_wake(&rig.unit, &rig.unit.now);
	expect("STS 20/10 80 +6");
}
END_TEST

/* CNTP's MSB alone makes no FUP.PCC, and must not disable the fast path. */
START_TEST(msb_without_pcc)
{
	on(BOTH);
	wr(CNTP, 0);
	jcc(true, 0x401002, 0x401000);
	ck_assert(rig.unit.plain);
	cycles(0x200000);
	ck_assert_uint_eq(rd(CNTP), 0x200000);
	ck_assert(rig.unit.plain);
	ctl_set(CYCLE_ACC);
	cycles(1);
	ck_assert(!rig.unit.plain);
	step(0x401004);
	expect("TNT T, FUP.PCC 401004 +2097153");
}
END_TEST

/* "not appended to partial TNT packets, TraceSTOP, or" PSB */
START_TEST(not_appended)
{
	range1(0x500000, 0x501000);
	wr(EVENTS, EVENT(ALWAYS, RANGE1));
	on(BOTH | CYCLE_ACC);
	wr(CNTP, 0);
	jccs("T");
	cycles(3);
	wr(PKT_CNT, 0x800);
	expect_bytes("c0 00 00 00 00 00 00 00 00");
	ck_assert_uint_eq(rd(CNTP), 3);
	mov_cr3(0x401003, 0x2000);
	expect_bytes("03 c3 00 20 00 00 00 0d");
	cycles(4);
	step(0x500000);
	expect_bytes("c1");
}
END_TEST

START_TEST(not_in_other_modes)
{
	on(BOTH | MTC_EN | STS_EN);
	cycles(1000);
	jmp_ind(0x401002, 0x5000);
	tsc(0x80);
	vmpt_rtit_unit_wake(&rig.unit, &rig.unit.now);
	expect_bytes("b4 00 50 c4 01 d5 0a 80 00 00 00 00");
}
END_TEST

/* ---- RTIT_CNTP and FUP.PCC ---- */

START_TEST(cntp_counts)
{
	on(BOTH | CYCLE_ACC);
	wr(CNTP, 5);
	cycles(10);
	ck_assert_uint_eq(rd(CNTP), 15);
	cycles(0x1000);
	ck_assert_uint_eq(rd(CNTP), 0x100f);
	jmp_ind(0x401002, 0x5000);
	ck_assert_uint_eq(rd(CNTP), 0);
}
END_TEST

/* "reset back to 22'b0, when … CNTP overflows" */
START_TEST(cntp_overflows)
{
	on(BOTH);
	wr(CNTP, 0x3ffff0);
	cycles(15);
	ck_assert_uint_eq(rd(CNTP), 0x3fffff);
	cycles(1);
	ck_assert_uint_eq(rd(CNTP), 0);
}
END_TEST

/* "at the beginning of an instruction when the MSB … is set", with the NLIP */
START_TEST(pcc)
{
	on(BOTH | CYCLE_ACC);
	wr(CNTP, 0);
	cycles(0x1fffff);
	step(0x401004);
	expect_nothing;
	cycles(1);
	expect_nothing;
	step(0x401008);
	expect("FUP.PCC 401008 +2097152");
	ck_assert_uint_eq(rd(CNTP), 0);
	step(0x40100c);
	expect_nothing;
}
END_TEST

START_TEST(pcc_written)
{
	on(BOTH | CYCLE_ACC);
	wr(CNTP, 0x3abcde);
	rig_skip();
	step(0x401008);
	expect("FUP.PCC 401008 +3849438");
}
END_TEST

/* "the cycle count is enabled (RTIT_CTL[CYCLE_ACC]==1)" */
START_TEST(pcc_cycle_acc_only)
{
	on(BOTH);
	wr(CNTP, 0x200000);
	step(0x401008);
	jmp(0x40100d, 0x401020);
	expect_nothing;
}
END_TEST

/* With another packet "it may be delayed": the whole count is sent once. */
START_TEST(pcc_and_another)
{
	const char *text;

	on(BOTH | CYCLE_ACC);
	wr(CNTP, 0);
	cycles(0x200000);
	jmp_ind(0x401002, 0x5000);
	text = rig_text();
	ck_assert_msg(!strcmp(text, "TIP 5000 +2097152") ||
			      !strcmp(text, "FUP.PCC 401002 +2097152, TIP 5000 +0"),
		      "%s", text);
}
END_TEST

/* With bits in the TNT buffer: a FUP sends them out. */
START_TEST(pcc_and_tnt)
{
	on(BOTH | CYCLE_ACC);
	wr(CNTP, 0);
	jccs("TN");
	cycles(0x200000);
	step(0x401008);
	expect("TNT TN, FUP.PCC 401008 +2097152");
}
END_TEST

static void wake_at(u64 tsc)
{
	struct vmpt_rtit_clocks now = { .tsc = tsc, .cycles = rig.unit.now.cycles };

	vmpt_rtit_unit_wake(&rig.unit, &now);
}

/* The end of a sleep: an STS, and the cycles of the sleep are not counted (4.2.14). */
START_TEST(sleep_states)
{
	on(BOTH | CYCLE_ACC | STS_EN);
	wr(CNTP, 0);
	cycles(10);
	wake_at(0x100000); /* slept: no cycles */
	expect("STS 20/10 100000 +10");
}
END_TEST

/* "MiniTime counter packets will not be issued" (Appendix B 4.1), however short the sleep is. */
START_TEST(sleep_without_mtcs)
{
	static const u64 steps[] = { 1, 3, 254, 255, 256, 300, 0x10001 };
	char want[40];
	size_t i;
	u64 now = 0x100000;

	on(BOTH | MTC_EN | STS_EN);
	tsc(now);
	rig_skip();
	for (i = 0; i < VMPT_ARRAY_SIZE(steps); i++) {
		now += 0x80 * steps[i];
		wake_at(now + 3);
		snprintf(want, sizeof(want), "STS 20/10 %llx", (unsigned long long)now + 3);
		expect(want);
		tsc(now + 0x7f);
		expect_nothing;
		now += 0x80;
		tsc(now);
		snprintf(want, sizeof(want), "MTC 0:%02llx", (unsigned long long)now >> 7 & 0xff);
		expect(want);
	}
}
END_TEST

TEST_SUITE()
{
	const TTest *const once[] = {
		mtc_not_enabled,    mtc_each_change,
		sts_bytes,	    sts_causes,
		sts_not_enabled,    cycle_accurate_packets,
		not_appended,	    cntp_counts,
		cntp_overflows,	    pcc,
		not_in_other_modes, pcc_written,
		pcc_and_tnt,	    sleep_states,
		sleep_without_mtcs, msb_without_pcc,
		pcc_and_another,    pcc_cycle_acc_only,
		sts_wide_ratios,
	};
	Suite *suite = suite_create("time");
	TCase *tc = tcase_create("time");
	size_t i;

	tcase_add_checked_fixture(tc, rig_setup, NULL);
	tcase_add_loop_test(tc, mtc_range, 0, 4);
	tcase_add_loop_test(tc, mtc_bytes, 0, 4);
	tcase_add_loop_test(tc, lengths_of_counts, 0, VMPT_ARRAY_SIZE(lengths));
	for (i = 0; i < VMPT_ARRAY_SIZE(once); i++)
		tcase_add_test(tc, once[i]);
	suite_add_tcase(suite, tc);
	return suite;
}
