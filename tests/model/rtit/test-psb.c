// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* RTIT Programming Reference: PSB, 4.2.1; RTIT_PKT_CNT, 3.3.9, with the numbers of its example. */
#include "tests/model/rtit/rig.h"

#define FAR_AWAY 0x7fff12340000

/* Pkt_Cnt, without Pkt_Mask */
static u64 count(void)
{
	return rd(PKT_CNT) & 0x3fff;
}

/* "Pkt_Cnt value is 0xffc and Pkt_Mask is 1 and a far transfer then occurs." */
START_TEST(example)
{
	on(BOTH);
	wr(LAST_LIP, 0);
	wr(PKT_CNT, 0x10ffc);
	expect_nothing;
	far(0x7fff12345678, 0x89abcdef);
	/* 7 bytes, 9 bytes, 5 bytes */
	expect_bytes("ba 78 56 34 12 ff 7f c0 00 00 00 00 00 00 00 00 b5 ef cd ab 89");
	ck_assert_uint_eq(rd(PKT_CNT), 0x1000e);
}
END_TEST

/* A PSB counts itself; without cycle counts and with them. */
START_TEST(enabling)
{
	on_shown(BOTH);
	expect("PSB, FUP.PGE 600000");
	ck_assert_uint_eq(rd(PKT_CNT), 0x20000 + 9 + 5);
	jccs("TNTNTN");
	ck_assert_uint_eq(count(), 9 + 5 + 1);
	mov_cr3(0x401003, 0x2000);
	ck_assert_uint_eq(count(), 9 + 5 + 1 + 6);
	/* "since … a PSB packet was last sent out" */
	off();
	wr(CTL, DEST | TRACE_EN);
	wr(CTL, DEST | TRACE_EN | TRACE_ACTIVE);
	ck_assert_uint_eq(count(), 9);
}
END_TEST

START_TEST(cycle_counts_count)
{
	on(BOTH | CYCLE_ACC);
	wr(PKT_CNT, 0);
	cycles(64);
	jmp_ind(0x401002, 0x5000);
	expect_bytes("b4 00 50 02 01");
	ck_assert_uint_eq(count(), 5);
}
END_TEST

/* Only TriggerEn from 0 to 1 makes one, no other write of CTL (4.2.1). */
START_TEST(only_trigger_en)
{
	on(BOTH);
	ctl_set(MTC_EN);
	ctl_clear(OS);
	ctl_set(OS);
	expect("FUP.PGD 600000, FUP.PGE 600000");
	ctl_clear(TRACE_EN);
	rig_skip();
	ctl_set(TRACE_EN);
	expect("PSB, FUP.PGE 600000");
}
END_TEST

/* The table of Pkt_Mask: bit 11, 12, 13, and the carry out of the field */
START_TEST(each_pkt_mask)
{
	const u64 limit = 0x800ULL << _i, mask = (u64)_i << 16;
	u64 sent;

	on(BOTH);
	wr(PKT_CNT, mask | (limit - 4));
	expect_nothing;
	jmp_ind(0x401002, 0x5000); /* 3 bytes: one less than it takes */
	expect("TIP 5000");
	ck_assert_uint_eq(count(), limit - 1);
	jmp_ind(0x401002, 0x5000);
	expect("TIP 5000, PSB");
	ck_assert_uint_eq(rd(PKT_CNT), mask | 9);
	/* A whole period: 9 of the PSB, then 3 for each TIP. */
	for (sent = 9; sent + 3 < limit; sent += 3) {
		jmp_ind(0x401002, 0x5000);
		ck_assert_uint_eq(count(), sent + 3);
	}
	rig_skip();
	jmp_ind(0x401002, 0x5000);
	expect("TIP 5000, PSB");
}
END_TEST

/* "It is evaluated on writes to this MSR" */
START_TEST(on_writes)
{
	on(BOTH);
	wr(PKT_CNT, 0x007ff);
	expect_nothing;
	wr(PKT_CNT, 0x00800);
	expect("PSB");
	ck_assert_uint_eq(rd(PKT_CNT), 9);
	/* Any value "with bit 11 set" */
	wr(PKT_CNT, 0x03fff);
	expect("PSB");
	ck_assert_uint_eq(rd(PKT_CNT), 9);
	wr(PKT_CNT, 0x11000);
	expect("PSB");
	ck_assert_uint_eq(rd(PKT_CNT), 0x10009);
	wr(PKT_CNT, 0x10fff);
	expect_nothing;
	wr(PKT_CNT, 0x23000);
	expect("PSB");
	ck_assert_uint_eq(rd(PKT_CNT), 0x20009);
	wr(PKT_CNT, 0x33fff);
	expect_nothing;
	ck_assert_uint_eq(rd(PKT_CNT), 0x33fff);
}
END_TEST

START_TEST(not_without_trigger_en)
{
	wr(CTL, BOTH | DEST | TRACE_EN);
	wr(PKT_CNT, 0x00800);
	expect_nothing;
}
END_TEST

/* The last packet, TraceSTOP, counts; but "PSB … can be sent out when TriggerEn is set". */
START_TEST(not_after_trace_stop)
{
	range1(0x500000, 0x501000);
	wr(EVENTS, EVENT(ALWAYS, RANGE1));
	on(BOTH);
	wr(PKT_CNT, 0x007ff);
	step(0x500000);
	expect("TraceSTOP");
	wr_at(CTL, rd(CTL) | TRACE_ACTIVE, 0x401000);
	expect("PSB, FUP.PGE 401000");
	ck_assert_uint_eq(count(), 9 + 5);
}
END_TEST

/* "The PSB will not be generated in the middle of a packet, but … between the packets" */
START_TEST(between_packets)
{
	on(BOTH);
	wr(PKT_CNT, 0x007ff);
	jccs("TN");
	far(0x401002, 0x5000);
	expect("TNT TN, PSB, FUP.Far 401002, TIP 5000");
	ck_assert_uint_eq(count(), 9 + 5 + 3);
}
END_TEST

/* PSBs do not depend on the filter: MTCs alone make one due. */
START_TEST(outside_the_filter)
{
	unsigned int n;

	wr(EVENTS, EVENT(NEVER, NEVER));
	on(BOTH | MTC_EN);
	wr(PKT_CNT, 9);
	for (n = 1; n < 1020; n++)
		tsc(0x80 * n);
	ck_assert_uint_eq(count(), 2047); /* 9 + 2 * 1019 */
	rig_skip();
	tsc(0x80 * n);
	expect("MTC 0:fc, PSB"); /* 1020 = 3fcH */
	ck_assert_uint_eq(count(), 9);
}
END_TEST

/* ---- "this does not take effect until …": 0 to 4 packets late ---- */

/* TIPs within 4 GiB: 3 bytes while they are compressed against Last LIP. */
START_TEST(clears_late)
{
	u64 target = FAR_AWAY;
	size_t before;
	int n;

	rig.config.options.psb_clears_late = (u8)_i;
	rig_init();
	on(BOTH);
	jmp_ind(0x401002, target);
	wr(PKT_CNT, 0x007fd);
	rig_skip();
	jmp_ind(0x401002, target += 0x10); /* 3 bytes and the PSB */
	expect_bytes("b0 10 00 c0 00 00 00 00 00 00 00 00");
	for (n = 0; n < 8; n++) {
		before = rig.size;
		jmp_ind(0x401002, target += 0x10);
		vmpt_rtit_unit_drain(&rig.unit);
		ck_assert_msg(rig.size - before == (n == _i ? 7 : 3), "late %d: packet %d has %zu",
			      _i, n, rig.size - before);
	}
}
END_TEST

START_TEST(clears_late_call)
{
	int n;

	rig.config.options.psb_clears_late = (u8)_i;
	rig_init();
	on(BOTH | CMPRS_RET);
	call(0x401005, 0x402000);
	wr(PKT_CNT, 0x007fd);
	jmp_ind(0x402002, 0x600000);
	rig_skip();
	for (n = 0; n < _i; n++) {
		ck_assert_uint_ne(rd(LAST_CALL_NLIP), 0);
		jmp_ind(0x402002, 0x600000);
	}
	rig_skip();
	ret(0x402001, 0x401005);
	expect("TIP 401005");
	ck_assert_uint_eq(rd(LAST_CALL_NLIP), 0);
}
END_TEST

/* An overflow clears both at once; nothing is due after it. */
START_TEST(clears_late_overflow)
{
	u64 target = FAR_AWAY;
	size_t before;
	int n;

	rig.config.options.psb_clears_late = (u8)_i;
	rig_init();
	on(BOTH);
	jmp_ind(0x401002, target);
	wr(PKT_CNT, 0x007fd);
	jmp_ind(0x401002, target += 0x10);
	vmpt_rtit_unit_overflow(&rig.unit);
	vmpt_rtit_unit_overflow_resolve(&rig.unit, target);
	for (n = 0; n < 8; n++) {
		vmpt_rtit_unit_drain(&rig.unit);
		before = rig.size;
		jmp_ind(0x401002, target += 0x10);
		vmpt_rtit_unit_drain(&rig.unit);
		ck_assert_msg(rig.size - before == (n ? 3 : 7), "late %d: packet %d has %zu", _i, n,
			      rig.size - before);
	}
}
END_TEST

START_TEST(too_late)
{
	rig.config.options.psb_clears_late = 5;
	ck_assert_int_eq(vmpt_rtit_unit_init(&rig.unit, &rig.config), -VMPT_E_INVAL);
	rig.config.options.psb_clears_late = 4;
	ck_assert_int_eq(vmpt_rtit_unit_init(&rig.unit, &rig.config), 0);
	rig.config.sink = NULL;
	ck_assert_int_eq(vmpt_rtit_unit_init(&rig.unit, &rig.config), -VMPT_E_INVAL);
}
END_TEST

TEST_SUITE()
{
	const TTest *const once[] = { example,
				      enabling,
				      cycle_counts_count,
				      on_writes,
				      not_without_trigger_en,
				      only_trigger_en,
				      too_late,
				      between_packets,
				      outside_the_filter,
				      not_after_trace_stop };
	Suite *suite = suite_create("psb");
	TCase *tc = tcase_create("psb");
	size_t i;

	tcase_add_checked_fixture(tc, rig_setup, NULL);
	for (i = 0; i < VMPT_ARRAY_SIZE(once); i++)
		tcase_add_test(tc, once[i]);
	tcase_add_loop_test(tc, each_pkt_mask, 0, 4);
	tcase_add_loop_test(tc, clears_late, 0, 5);
	tcase_add_loop_test(tc, clears_late_call, 0, 5);
	tcase_add_loop_test(tc, clears_late_overflow, 0, 5);
	suite_add_tcase(suite, tc);
	return suite;
}
