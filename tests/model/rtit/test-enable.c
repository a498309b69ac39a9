// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * RTIT Programming Reference: the effects of writes to RTIT_CTL, 3.3.2; FUP.PGE 4.2.7 and FUP.PGD
 * 4.2.8 with their causes; TraceStop 4.2.11; re-enabling, Appendix B; scenarios of Appendix A.
 */
#include "tests/model/rtit/rig.h"

#define IN    0x401000
#define LIMIT 0x402000
#define OUT   0x300000
#define STOP  0x500000

/* ---- 3.3.2 ---- */

/* TriggerEn becomes 1: a PSB, and FUP.PGE if PacketEn is 1; in the recommended order */
START_TEST(enable)
{
	wr_at(CTL, BOTH | DEST | TRACE_EN, 0x401000);
	expect_nothing;
	ck_assert_uint_eq(status() & TRIGGER_EN, 0);
	wr_at(CTL, BOTH | DEST | TRACE_EN | TRACE_ACTIVE, 0x401002);
	expect_bytes("c0 00 00 00 00 00 00 00 00 85 02 10 40 00");
	ck_assert_uint_eq(status(), FILTER_EN | CONTEXT_EN | TRIGGER_EN);
	ck_assert(rig.unit.packet_en && rig.unit.trigger_en && rig.unit.context_en &&
		  rig.unit.filter_en);
}
END_TEST

/* Both in one write: "undefined behavior may result", but it must be a valid trace. */
START_TEST(enable_at_once)
{
	wr_at(CTL, BOTH | DEST | TRACE_EN | TRACE_ACTIVE, 0x401002);
	ck_assert_uint_eq(status() & TRIGGER_EN, TRIGGER_EN);
	ck_assert_int_eq(strncmp(rig_text(), "PSB", 3), 0);
	jmp_ind(0x401004, 0x5000);
	expect("TIP 5000");
	wr_at(CTL, BOTH | DEST, 0x401002);
	rig_skip();
	jmp_ind(0x401004, 0x5000);
	expect_nothing;
}
END_TEST

/* Nothing before CTL has been read. */
START_TEST(ctl_unread)
{
	u64 value;

	vmpt_rtit_unit_reset(&rig.unit);
	ck_assert_int_eq(vmpt_rtit_unit_wrmsr(&rig.unit, CTL, TRACE_EN, NEXT), VMPT_GP);
	ck_assert_int_eq(vmpt_rtit_unit_rdmsr(&rig.unit, STATUS, &value), VMPT_GP);
	ck_assert_int_eq(vmpt_rtit_unit_rdmsr(&rig.unit, CTL, &value), 0);
	ck_assert_uint_eq(value, 0);
	ck_assert_int_eq(vmpt_rtit_unit_wrmsr(&rig.unit, CTL, 1 << 5, NEXT), VMPT_GP);
	ck_assert_int_eq(vmpt_rtit_unit_wrmsr(&rig.unit, TNT_BUFF, 0, NEXT), VMPT_GP);
	ck_assert_int_eq(vmpt_rtit_unit_wrmsr(&rig.unit, CTL, TRACE_EN, NEXT), 0);
	ck_assert_int_eq(vmpt_rtit_unit_wrmsr(&rig.unit, 0x10, 0, NEXT), -VMPT_E_INVAL);
	ck_assert_int_eq(vmpt_rtit_unit_rdmsr(&rig.unit, 0x10, &value), -VMPT_E_INVAL);
}
END_TEST

/* A write that causes #GP makes no packet. */
START_TEST(refused_write)
{
	on(BOTH);
	ck_assert_int_eq(vmpt_rtit_unit_wrmsr(&rig.unit, CTL, 1 << 16, NEXT), VMPT_GP);
	expect_nothing;
	ck_assert_uint_eq(status(), FILTER_EN | CONTEXT_EN | TRIGGER_EN);
}
END_TEST

/* "An MSR write to RTIT_CTL that causes PacketEn to become 0 (e.g. by clearing OS …)" */
START_TEST(packet_en_lost_and_won)
{
	wr(CR3_MATCH, 0x2000);
	on(BOTH);
	jccs("TN");
	wr_at(CTL, rd(CTL) & ~(u64)OS, 0x401002);
	expect("TNT TN, FUP.PGD 401002");
	wr_at(CTL, rd(CTL) | OS, 0x401004);
	expect("FUP.PGE 401004");
	wr_at(CTL, rd(CTL) | CR3_EN, 0x401006);
	expect("FUP.PGD 401006");
	wr_at(CTL, rd(CTL) & ~(u64)CR3_EN, 0x401008);
	expect("FUP.PGE 401008");
}
END_TEST

/* "MSR writes to RTIT_CTL will cause an RTIT drain": the bytes are there when it ends. */
START_TEST(ctl_drains)
{
	u64 value;

	on(BOTH);
	jmp_ind(0x401002, 0x5000);
	wr(CTL, rig.unit.regs.ctl & ~(u64)TRACE_ACTIVE);
	ck_assert_uint_eq(rig.bytes[rig.size - 3], 0xb4);
	ck_assert_uint_eq(rig.unit.used, 0);
	ck_assert_int_eq(vmpt_rtit_unit_rdmsr(&rig.unit, OFFSET, &value), 0);
	ck_assert_uint_eq(value, rig.size);
}
END_TEST

/* ---- 4.2.7 d); other causes: test-filter, test-rows-far, test-modes, test-tables12 ---- */

/* In the range when TriggerEn becomes 1: FilterEn was set while Trace_En was 1. */
START_TEST(pge_by_trigger_en)
{
	range0(IN, LIMIT);
	wr(EVENTS, EVENT(RANGE0, NEVER));
	wr_at(CTL, BOTH | DEST | TRACE_EN, OUT);
	jmp(OUT + 5, IN + 0x10);
	expect_nothing;
	wr_at(CTL, BOTH | DEST | TRACE_EN | TRACE_ACTIVE, IN + 0x14);
	expect("PSB, FUP.PGE 401014");
}
END_TEST

/* a) by the WRMSR itself: the instruction after it is the base */
START_TEST(pge_by_walking_from_wrmsr)
{
	range0(IN, LIMIT);
	wr(EVENTS, EVENT(RANGE0, NEVER));
	wr_at(CTL, BOTH | DEST | TRACE_EN, OUT);
	wr_at(CTL, BOTH | DEST | TRACE_EN | TRACE_ACTIVE, IN);
	expect("PSB, FUP.PGE 401000");
}
END_TEST

/* Otherwise a WRMSR is walked over like any instruction. */
START_TEST(pgd_by_walking_from_wrmsr)
{
	range0(IN, LIMIT);
	wr(EVENTS, EVENT(RANGE0, NEVER));
	on(BOTH);
	jmp(OUT + 5, IN);
	expect("FUP.PGE 401000");
	wr_at(CNTP, 0, LIMIT);
	expect("FUP.PGD 402000");
}
END_TEST

/* ---- 4.2.8 ---- */

/* "A FUP.PGD may not be generated when TriggerEn becomes 0": the TNT bits stay, too. */
START_TEST(no_pgd_at_disable)
{
	on(BOTH);
	jccs("TN");
	wr_at(CTL, rd(CTL) & ~(u64)TRACE_ACTIVE, 0x401002);
	expect_nothing; /* no TraceSTOP either (Table 4, bit 13) */
	expect_tnt(6);
	ck_assert_uint_eq(status() & TRIGGER_EN, 0);
	/* "This could lead to a partial TNT on the next FUP.PGE" */
	wr_at(CTL, rd(CTL) | TRACE_ACTIVE, 0x401010);
	expect("PSB, TNT TN, FUP.PGE 401010");
	wr_at(CTL, rd(CTL) & ~(u64)TRACE_EN, 0x401012);
	expect_nothing;
}
END_TEST

START_TEST(pgd_at_disable)
{
	rig.config.options.pgd_at_disable = true;
	rig_init();
	on(BOTH);
	jccs("TN");
	wr_at(CTL, rd(CTL) & ~(u64)TRACE_ACTIVE, 0x401002);
	expect("TNT TN, FUP.PGD 401002");
	expect_tnt(1);
	wr_at(CTL, rd(CTL) | TRACE_ACTIVE, 0x401010);
	expect("PSB, FUP.PGE 401010");
	wr_at(CTL, rd(CTL) & ~(u64)TRACE_EN, 0x401012);
	expect("FUP.PGD 401012");
}
END_TEST

/* While disabled nothing is sent. */
START_TEST(disabled)
{
	off();
	on(BOTH | MTC_EN | STS_EN);
	off();
	rig_skip();
	jmp_ind(0x401002, 0x5000);
	jccs("TNTNTNT");
	far(0x401002, 0x5000);
	mov_cr3(0x401003, 0x7000);
	tsc(0x100000);
	vmpt_rtit_unit_wake(&rig.unit, &rig.unit.now);
	step(0x401000);
	expect_nothing;
	expect_tnt(1);
}
END_TEST

/* ---- 4.2.11 ---- */

static void stop_at(unsigned int filter, unsigned int id)
{
	range0(IN, LIMIT);
	range1(STOP, STOP + 0x1000);
	wr(EVENTS, EVENT(filter, id));
	on(BOTH);
}

static void stopped(void)
{
	/* clears TraceActive, "also forces FilterEn to 0" */
	ck_assert_uint_eq(rd(CTL) & (TRACE_ACTIVE | TRACE_EN), TRACE_EN);
	ck_assert_uint_eq(status() & (FILTER_EN | TRIGGER_EN), 0);
	ck_assert(!rig.unit.packet_en);
}

START_TEST(trace_stop_walk)
{
	stop_at(ALWAYS, RANGE1);
	step(STOP - 4);
	expect_nothing;
	step(STOP);
	expect_bytes("c1");
	stopped();
	jmp_ind(STOP + 2, IN);
	expect_nothing;
}
END_TEST

START_TEST(trace_stop_branch)
{
	stop_at(ALWAYS, RANGE1);
	jmp(IN + 5, STOP + 0xfff);
	expect("TraceSTOP");
	stopped();
}
END_TEST

/* The instruction started with PacketEn = 1, so its own packets are sent (4.3.2). */
START_TEST(trace_stop_indirect)
{
	stop_at(ALWAYS, RANGE1);
	jmp_ind(IN + 2, STOP + 0x10);
	expect("TIP 500010, TraceSTOP");
	stopped();
}
END_TEST

START_TEST(trace_stop_range0_and_both)
{
	stop_at(ALWAYS, RANGE0);
	jmp(STOP + 5, STOP);
	expect_nothing;
	jmp(STOP + 5, IN);
	expect("TraceSTOP");
	rig_init();
	stop_at(ALWAYS, RANGES);
	jmp(OUT + 5, STOP);
	expect("TraceSTOP");
	rig_init();
	stop_at(ALWAYS, RANGES);
	step(IN);
	expect("TraceSTOP");
}
END_TEST

START_TEST(trace_stop_ids_that_never_come)
{
	static const unsigned int ids[] = { 3, 4, 5, NEVER };
	size_t i;

	for (i = 0; i < VMPT_ARRAY_SIZE(ids); i++) {
		rig_init();
		stop_at(ALWAYS, ids[i]);
		jmp(OUT + 5, STOP);
		step(IN);
		jmp(IN + 5, OUT);
		expect_nothing;
		ck_assert_uint_eq(rd(CTL) & TRACE_ACTIVE, TRACE_ACTIVE);
	}
}
END_TEST

/* 3.3.5: "enabled from within" applies to TraceStop, too. */
START_TEST(trace_stop_from_within)
{
	range1(STOP, STOP + 0x1000);
	wr(EVENTS, EVENT(ALWAYS, RANGE1));
	wr_at(CTL, BOTH | DEST | TRACE_EN, STOP + 0x100);
	wr_at(CTL, BOTH | DEST | TRACE_EN | TRACE_ACTIVE, STOP + 0x102);
	step(STOP + 0x106);
	jcc(false, STOP + 0x108, STOP + 0x200);
	step(STOP + 0x1000);
	expect("PSB, FUP.PGE 500102");
	jmp(STOP + 0x1005, STOP + 0x200);
	expect("TraceSTOP");
	stopped();
}
END_TEST

/* Table 7, "always on": the first instruction that could be traced stops it. */
START_TEST(trace_stop_always)
{
	const char *text;

	stop_at(NEVER, NEVER);
	wr(EVENTS, EVENT(ALWAYS, ALWAYS));
	step(0x600004);
	text = rig_text();
	ck_assert_msg(strstr(text, "TraceSTOP") != NULL, "%s", text);
	ck_assert_uint_eq(rd(CTL) & TRACE_ACTIVE, 0);
	ck_assert(!rig.unit.packet_en);
}
END_TEST

/* "while (RTIT_STATUS[ContextEn] and RTIT_STATUS[TriggerEn] are set)" */
START_TEST(trace_stop_wants_context)
{
	range1(STOP, STOP + 0x1000);
	wr(EVENTS, EVENT(ALWAYS, RANGE1));
	on(USER);
	jmp(IN + 5, STOP);
	expect_nothing;
	ck_assert_uint_eq(rd(CTL) & TRACE_ACTIVE, TRACE_ACTIVE);
}
END_TEST

START_TEST(trace_stop_wants_trigger)
{
	range1(STOP, STOP + 0x1000);
	wr(EVENTS, EVENT(ALWAYS, RANGE1));
	wr(CTL, BOTH | DEST | TRACE_ACTIVE);
	jmp(IN + 5, STOP);
	expect_nothing;
	ck_assert_uint_eq(rd(CTL) & TRACE_ACTIVE, TRACE_ACTIVE);
}
END_TEST

/* FilterEn is not a condition. */
START_TEST(trace_stop_outside_the_filter)
{
	stop_at(NEVER, RANGE1);
	jmp(IN + 5, STOP);
	expect("TraceSTOP");
	stopped();
}
END_TEST

/* "the TNT buffer is not drained on a TraceStop action" */
START_TEST(trace_stop_leaves_tnt)
{
	stop_at(ALWAYS, RANGE1);
	jccs("TNT");
	step(STOP);
	expect("TraceSTOP");
	expect_tnt(0xd);
}
END_TEST

/* ---- Appendix B, 4.2: after a TraceStop ---- */

static void same_configuration(void)
{
	wr(STATUS, 0);
	wr(TNT_BUFF, 1);
	wr(CNTP, 0);
	wr(LAST_LIP, 0);
	wr(LAST_CALL_NLIP, 0);
	expect_nothing;
}

START_TEST(re_enable_same)
{
	stop_at(ALWAYS, RANGE1);
	jccs("TN");
	jmp(IN + 5, STOP);
	expect("TraceSTOP");
	same_configuration();
	wr_at(CTL, rd(CTL) | TRACE_ACTIVE, 0x600010);
	expect("PSB, FUP.PGE 600010");
	jmp_ind(0x600012, 0x7000);
	jmp(0x7005, STOP);
	expect("TIP 7000, TraceSTOP");
}
END_TEST

/* In a pending overflow */
START_TEST(re_enable_same_in_overflow)
{
	on(BOTH);
	vmpt_rtit_unit_overflow(&rig.unit);
	ctl_clear(TRACE_ACTIVE);
	same_configuration();
	ck_assert_uint_eq(status() & BUFFER_OVERFLOW, 0);
	wr_at(CTL, rd(CTL) | TRACE_ACTIVE, 0x600010);
	expect("PSB, FUP.PGE 600010");
}
END_TEST

START_TEST(re_enable_output)
{
	stop_at(ALWAYS, RANGE1);
	jmp(IN + 5, STOP);
	rig_skip();
	same_configuration();
	wr(BASE_ADDR, 0x20000000);
	wr(LIMIT_MASK, 0xffff);
	wr(OFFSET, 0x40);
	wr_at(CTL, rd(CTL) | TRACE_ACTIVE, 0x600010);
	ck_assert_uint_eq(rig.pa[rig.shown], 0x20000040);
	expect("PSB, FUP.PGE 600010");
	ck_assert_uint_eq(rd(OFFSET), 0x40 + 9 + 5);
}
END_TEST

START_TEST(re_enable_region)
{
	stop_at(ALWAYS, RANGE1);
	jmp(IN + 5, STOP);
	rig_skip();
	same_configuration();
	ctl_clear(TRACE_EN);
	range0(0x10000, 0x20000);
	range1(0, 0);
	wr(EVENTS, EVENT(RANGE0, NEVER));
	wr(CR3_MATCH, 0x9000);
	on_shown(USER | CR3_EN);
	expect("PSB");
	far_cr3(0x600004, 0x10100, 0x9000);
	expect_nothing; /* still CPL 0 */
	far_cpl(0x10102, 0x10200, 3);
	expect("FUP.PGE 10200");
	jmp(0x10205, STOP);
	expect("FUP.PGD 10205");
}
END_TEST

/*
 * A context switch by MSRs (3.3.3, 3.3.13): TraceActive off first, on last. TNT bits, FilterEn, an
 * overflow, output and Pkt_Cnt's mask are restored; the PSB clears the rest.
 */
START_TEST(context_switch)
{
	static const u32 msrs[] = { LIP0,   LIP1,	    LIP2,     LIP3,	 EVENTS,
				    CNTP,   CR3_MATCH,	    LAST_LIP, BASE_ADDR, LIMIT_MASK,
				    OFFSET, LAST_CALL_NLIP, PKT_CNT,  TNT_BUFF,	 STATUS };
	u64 saved[VMPT_ARRAY_SIZE(msrs)], ctl;
	size_t i;

	stop_at(RANGE0, RANGE1);
	wr(PKT_CNT, 0x10100);
	jmp(OUT + 5, IN);
	jccs("TNT");
	jmp(IN + 5, IN + 0x10);
	rig_skip();
	ctl = rd(CTL);
	wr_at(CTL, ctl & ~(u64)TRACE_ACTIVE, IN + 0x14);
	for (i = 0; i < VMPT_ARRAY_SIZE(msrs); i++)
		saved[i] = rd(msrs[i]);
	/* Another context, without any of this state. */
	vmpt_rtit_unit_reset(&rig.unit);
	rig.unit.mode = (struct vmpt_rtit_mode){ .cr3 = 0x1000, .paging = true };
	ck_assert_uint_eq(rd(CTL), 0);
	for (i = 0; i < VMPT_ARRAY_SIZE(msrs); i++)
		wr_at(msrs[i], saved[i], 0x700000);
	wr_at(CTL, ctl & ~(u64)TRACE_ACTIVE, IN + 0x18);
	ck_assert_uint_eq(status(), FILTER_EN | CONTEXT_EN);
	for (i = 0; i + 1 < VMPT_ARRAY_SIZE(msrs); i++)
		ck_assert_uint_eq(rd(msrs[i]), saved[i]);
	expect_nothing;
	wr_at(CTL, ctl, IN + 0x1c);
	expect("PSB, TNT TNT, FUP.PGE 40101c");
	ck_assert_uint_eq(rd(PKT_CNT), 0x10000 + 9 + 1 + 5);
	jmp_ind(IN + 0x20, STOP);
	expect("TIP 500000, TraceSTOP");
}
END_TEST

/* ---- Appendix A ---- */

START_TEST(scenario_one_application)
{
	range0(0x400000, 0x500000);
	wr(EVENTS, EVENT(RANGE0, NEVER));
	wr(CR3_MATCH, 0x7000);
	on_shown(USER | CR3_EN);
	expect("PSB");
	far_cpl(0x600002, 0x400100, 3); /* another application */
	jmp_ind(0x400102, 0x400200);
	far_cpl(0x400202, 0xffff80001000, 0);
	mov_cr3(0xffff80001003, 0x7000);
	expect_nothing;
	far_cpl(0xffff80001005, 0x400100, 3);
	jmp_ind(0x400102, 0x400200);
	far_cpl(0x400202, 0xffff80001000, 0); /* the kernel */
	expect("FUP.PGE 400100, TIP 400200, FUP.PGD 400202");
}
END_TEST

START_TEST(scenario_all)
{
	on_shown(BOTH);
	expect("PSB, FUP.PGE 600000");
	far_cpl(0x600002, 0x400100, 3);
	far_cpl(0x400102, 0xffff80001000, 0);
	mov_cr3(0xffff80001003, 0x7000);
	expect("FUP.Far 600002, TIP 400100, FUP.Far 400102, TIP ffff80001000, PIP 7000 PG");
}
END_TEST

START_TEST(scenario_driver)
{
	range0(0xffffa0000000, 0xffffa0010000);
	wr(EVENTS, EVENT(RANGE0, NEVER));
	on_shown(OS);
	expect("PSB");
	call(0xffff80001005, 0xffffa0000040);
	ret(0xffffa0000051, 0xffff80001005);
	expect("FUP.PGE ffffa0000040, TIP ffff80001005, FUP.PGD ffffa0000051");
}
END_TEST

RIG_SUITE("enable", enable, enable_at_once, ctl_unread, refused_write, packet_en_lost_and_won,
	  ctl_drains, pge_by_trigger_en, pge_by_walking_from_wrmsr, pgd_by_walking_from_wrmsr,
	  no_pgd_at_disable, pgd_at_disable, disabled, trace_stop_walk, trace_stop_branch,
	  trace_stop_indirect, trace_stop_range0_and_both, trace_stop_ids_that_never_come,
	  trace_stop_from_within, trace_stop_always, trace_stop_wants_context,
	  trace_stop_wants_trigger, trace_stop_outside_the_filter, trace_stop_leaves_tnt,
	  re_enable_same, re_enable_same_in_overflow, re_enable_output, re_enable_region,
	  context_switch, scenario_one_application, scenario_all, scenario_driver)
