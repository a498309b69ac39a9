// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* RTIT Programming Reference: 4.2.5, buffer overflow, sentence by sentence. */
#include "tests/model/rtit/rig.h"

#define IN    0x401000
#define LIMIT 0x402000
#define OUT   0x300000

static void overflow(void)
{
	vmpt_rtit_unit_overflow(&rig.unit);
}

static void resolve(u64 ip)
{
	vmpt_rtit_unit_overflow_resolve(&rig.unit, ip);
}

/* Events that would make packets of every kind. */
static void busy(void)
{
	jccs("TNTNTNTN");
	call(0x401005, 0x402000);
	jmp_ind(0x402002, 0x7fff12345678);
	ret(0x7fff12345679, 0x401005);
	far(0x401007, 0x500000);
	mov_cr3(0x500003, 0x9000);
	vmpt_rtit_unit_mov_cr0(&rig.unit, 0x500006, false);
	vmpt_rtit_unit_mov_cr0(&rig.unit, 0x500009, true);
	vmpt_rtit_unit_frequency(&rig.unit, 30, 15);
	vmpt_rtit_unit_wake(&rig.unit, &rig.unit.now);
	tsc(rig.unit.now.tsc + 0x200000);
	cycles(1000);
	vmpt_rtit_unit_smi(&rig.unit, 0x500010);
	vmpt_rtit_unit_rsm(&rig.unit, 0x500010, &rig.unit.mode);
}

#define ALL (BOTH | MTC_EN | STS_EN | STS_ON_CR3 | CMPRS_RET)

/* "the Buffer_Overflow bit … will be set" */
START_TEST(bit_is_set)
{
	on(BOTH);
	ck_assert_uint_eq(status() & BUFFER_OVERFLOW, 0);
	overflow();
	ck_assert_uint_eq(status() & BUFFER_OVERFLOW, BUFFER_OVERFLOW);
	resolve(0x401000);
	ck_assert_uint_eq(status() & BUFFER_OVERFLOW, 0);
	ck_assert_uint_eq(rig.unit.overflows, 1);
}
END_TEST

/* a) and b) */
START_TEST(no_packets)
{
	u64 last_lip, last_call, pkt_cnt;

	on(ALL);
	call(0x401105, 0x402000);
	jmp_ind(0x402002, 0x7fff12340000);
	jccs("TN");
	rig_skip();
	last_lip = rd(LAST_LIP);
	last_call = rd(LAST_CALL_NLIP);
	pkt_cnt = rd(PKT_CNT);
	overflow();
	busy();
	expect_nothing;
	ck_assert_uint_eq(rd(LAST_LIP), last_lip);
	ck_assert_uint_eq(rd(LAST_CALL_NLIP), last_call);
	ck_assert_uint_eq(rd(PKT_CNT), pkt_cnt);
	expect_tnt(6);
}
END_TEST

/* "If there are taken/not taken indications …, then they will be sent out before" */
START_TEST(tnt_bits_come_first)
{
	on(ALL);
	jccs("TN");
	overflow();
	busy();
	resolve(0x401234);
	expect("TNT TN, FUP.BuffOvf 401234");
	expect_tnt(1);
}
END_TEST

/* "… the RTIT_TNT_BUFF was completely full with 6 branches …: the full TNT … not be dropped" */
START_TEST(full_tnt)
{
	on(BOTH | CYCLE_ACC);
	overflow();
	wr(TNT_BUFF, 0x6a);
	cycles(77);
	resolve(0x401234);
	/* counted up to the end of the overflow; the FUP's count is 0 */
	expect("TNT TNTNTN +77, FUP.BuffOvf 401234 +0");
	expect_tnt(1);
}
END_TEST

/* c) and "will not be generated … until after the buffer overflow has cleared out" */
START_TEST(no_pcc)
{
	on(BOTH | CYCLE_ACC);
	wr(CNTP, 0);
	overflow();
	cycles(0x200000);
	step(0x401004);
	expect_nothing;
	ck_assert_uint_eq(rd(CNTP), 0x200000);
	cycles(5);
	step(0x401008);
	expect_nothing;
	/* "can cause the cycle counter to be reset without any FUP.PCC being needed" */
	resolve(0x40100c);
	step(0x401010);
	expect("FUP.BuffOvf 40100c +2097157");
	ck_assert_uint_eq(rd(CNTP), 0);
}
END_TEST

/* "Any FUP.PGE or FUP.PGD packets that would have been generated will be dropped/lost." */
START_TEST(filter_goes_on)
{
	range0(IN, LIMIT);
	wr(EVENTS, EVENT(RANGE0, NEVER));
	wr_at(CTL, BOTH | DEST | TRACE_EN, OUT);
	wr_at(CTL, BOTH | DEST | TRACE_EN | TRACE_ACTIVE, OUT);
	rig_skip();
	overflow();
	jmp(OUT + 5, IN);
	ck_assert_uint_eq(status() & FILTER_EN, FILTER_EN);
	jmp(IN + 5, OUT);
	ck_assert_uint_eq(status() & FILTER_EN, 0);
	step(IN);
	expect_nothing;
	resolve(IN + 4);
	expect("FUP.BuffOvf 401004");
	jmp_ind(IN + 6, OUT);
	expect("TIP 300000, FUP.PGD 401006");
}
END_TEST

START_TEST(context_goes_on)
{
	on(USER);
	overflow();
	far_cpl(0x401002, 0x500000, 3);
	ck_assert_uint_eq(status() & CONTEXT_EN, CONTEXT_EN);
	far_cpl(0x500002, 0x401000, 0);
	ck_assert_uint_eq(status() & CONTEXT_EN, 0);
	expect_nothing;
}
END_TEST

/* It ends outside the filter: FilterEn is not a condition. */
START_TEST(ends_outside_the_filter)
{
	wr(EVENTS, EVENT(NEVER, NEVER));
	on(BOTH);
	overflow();
	resolve(OUT);
	expect("FUP.BuffOvf 300000");
}
END_TEST

/* "the time value in the first MTC packet after … incremented by more than one" */
START_TEST(mtcs_are_dropped)
{
	on(BOTH | MTC_EN);
	tsc(0x80);
	expect("MTC 0:01");
	overflow();
	tsc(0x100);
	tsc(0x180);
	resolve(0x401000);
	expect("FUP.BuffOvf 401000");
	tsc(0x1ff);
	expect_nothing;
	tsc(0x200);
	expect("MTC 0:04");
}
END_TEST

/* b) "TriggerEn==1 and ContextEn==1 at the beginning of the instruction" */
START_TEST(needs_context)
{
	on(BOTH);
	overflow();
	wr_at(CTL, (rd(CTL) & ~(u64)OS), 0x401000);
	resolve(0x401004);
	expect_nothing;
	ck_assert_uint_eq(status(), FILTER_EN | TRIGGER_EN | BUFFER_OVERFLOW);
	wr_at(CTL, rd(CTL) | OS, 0x401008);
	expect_nothing;
	resolve(0x40100c);
	expect("FUP.BuffOvf 40100c");
}
END_TEST

START_TEST(needs_trigger)
{
	on(BOTH);
	overflow();
	wr_at(CTL, rd(CTL) & ~(u64)TRACE_ACTIVE, 0x401000);
	resolve(0x401004);
	expect_nothing;
	ck_assert_uint_eq(status() & (TRIGGER_EN | BUFFER_OVERFLOW), BUFFER_OVERFLOW);
}
END_TEST

/* Nothing to resolve */
START_TEST(no_overflow)
{
	on(BOTH);
	resolve(0x401004);
	expect_nothing;
	ck_assert_uint_eq(rig.unit.overflows, 0);
}
END_TEST

/* "cleared before the overflow packet is sent, so the FUP.BuffOvf will never contain a last LIP
 * compressed address"; zeros are left out all the same. */
START_TEST(never_last_lip)
{
	on(BOTH);
	jmp_ind(0x401002, 0x7fff12340000);
	rig_skip();
	overflow();
	resolve(0x7fff12345678);
	expect_bytes("92 78 56 34 12 ff 7f");
	overflow();
	resolve(0x12345678);
	expect_bytes("95 78 56 34 12");
	overflow();
	resolve(0x5678);
	expect_bytes("94 78 56");
}
END_TEST

/* "that TraceStop action will be held pending during the buffer overflow and will not be dropped"
 */
START_TEST(trace_stop_pending)
{
	range1(0x500000, 0x501000);
	wr(EVENTS, EVENT(ALWAYS, RANGE1));
	on(BOTH);
	overflow();
	jmp(0x401005, 0x500000);
	ck_assert_uint_eq(rd(CTL) & TRACE_ACTIVE, TRACE_ACTIVE);
	jmp(0x500005, 0x600000); /* "may contain an address reached after" */
	expect_nothing;
	resolve(0x600004);
	expect("FUP.BuffOvf 600004, TraceSTOP");
	ck_assert_uint_eq(rd(CTL) & (TRACE_ACTIVE | TRACE_EN), TRACE_EN);
	jmp_ind(0x600006, 0x401000);
	expect_nothing;
}
END_TEST

/* "the cycle counter will continue running after the filtering logic pended the TraceStop" */
START_TEST(trace_stop_pending_cycles)
{
	range1(0x500000, 0x501000);
	wr(EVENTS, EVENT(ALWAYS, RANGE1));
	on(BOTH | CYCLE_ACC);
	wr(CNTP, 0);
	overflow();
	cycles(10);
	step(0x500000);
	cycles(20);
	resolve(0x500004);
	expect("FUP.BuffOvf 500004 +30, TraceSTOP");
}
END_TEST

/* Software ends the overflow: the action "will not be dropped". */
START_TEST(trace_stop_pending_status_cleared)
{
	range1(0x500000, 0x501000);
	wr(EVENTS, EVENT(ALWAYS, RANGE1));
	on(BOTH);
	overflow();
	jmp(0x401005, 0x500000);
	jmp(0x500005, 0x600000);
	wr(STATUS, FILTER_EN);
	expect("TraceSTOP");
	ck_assert_uint_eq(rd(CTL) & (TRACE_ACTIVE | TRACE_EN), TRACE_EN);
	ck_assert_uint_eq(status() & BUFFER_OVERFLOW, 0);
	/* Once. */
	ctl_set(TRACE_ACTIVE);
	jmp_ind(0x600006, 0x401000);
	expect("PSB, FUP.PGE 600000, TIP 401000");
}
END_TEST

/* The same with TriggerEn = 0: there is nothing to stop, then or later. */
START_TEST(trace_stop_pending_trigger_off)
{
	range1(0x500000, 0x501000);
	wr(EVENTS, EVENT(ALWAYS, RANGE1));
	on(BOTH);
	overflow();
	jmp(0x401005, 0x500000);
	ctl_clear(TRACE_ACTIVE);
	wr(STATUS, FILTER_EN);
	expect_nothing;
	ctl_set(TRACE_ACTIVE);
	expect("PSB, FUP.PGE 600000");
	overflow();
	resolve(0x600004);
	jmp_ind(0x600006, 0x401000);
	expect("FUP.BuffOvf 600004, TIP 401000");
	ck_assert_uint_eq(rd(CTL) & TRACE_ACTIVE, TRACE_ACTIVE);
}
END_TEST

/* "can cause a PSB packet to be generated due to its incrementing of Pkt_Cnt" */
START_TEST(psb_of_its_bytes)
{
	on(BOTH);
	overflow();
	wr(PKT_CNT, 0x7fd);
	expect_nothing;
	resolve(0x5000);
	expect("FUP.BuffOvf 5000, PSB");
	ck_assert_uint_eq(rd(PKT_CNT), 9);
}
END_TEST

/* TriggerEn 0 and 1 again: a PSB, "possible … to be seen in the trace before" the FUP */
START_TEST(psb_of_enabling)
{
	const char *text;

	on(BOTH);
	overflow();
	ctl_clear(TRACE_ACTIVE);
	ctl_set(TRACE_ACTIVE);
	resolve(0x401004);
	text = rig_text();
	ck_assert_msg(!strcmp(text, "PSB, FUP.BuffOvf 401004") ||
			      !strcmp(text, "FUP.BuffOvf 401004, PSB"),
		      "%s", text);
	jmp_ind(0x401006, 0x5000);
	expect("TIP 5000");
}
END_TEST

/* "if a TraceStop packet was pending when TriggerEn became 0": neither is lost, each comes once;
 * the TraceSTOP "once the buffer overflow packet has been sent". */
START_TEST(psb_of_enabling_trace_stop)
{
	const char *text;

	range1(0x500000, 0x501000);
	wr(EVENTS, EVENT(ALWAYS, RANGE1));
	on(BOTH);
	overflow();
	jmp(0x401005, 0x500000);
	ctl_clear(TRACE_ACTIVE);
	ctl_set(TRACE_ACTIVE);
	resolve(0x600004);
	text = rig_text();
	ck_assert_msg(!strcmp(text, "PSB, FUP.BuffOvf 600004, TraceSTOP") ||
			      !strcmp(text, "FUP.BuffOvf 600004, PSB, TraceSTOP"),
		      "%s", text);
	ck_assert_uint_eq(rd(CTL) & TRACE_ACTIVE, 0);
}
END_TEST

/* "Clearing the bit through an MSR write is not a 'natural' clearing" */
START_TEST(cleared_by_software)
{
	on(BOTH);
	overflow();
	jmp_ind(0x401002, 0x5000);
	wr(STATUS, FILTER_EN);
	expect_nothing;
	ck_assert_uint_eq(status(), FILTER_EN | CONTEXT_EN | TRIGGER_EN);
	resolve(0x401004);
	expect_nothing;
	jmp_ind(0x401006, 0x6000);
	expect("TIP 6000");
	ck_assert_uint_eq(rig.unit.overflows, 0);
}
END_TEST

/* "must have the same effect as if a packet was generated when the buffer was full" */
START_TEST(set_by_software)
{
	on(ALL);
	wr(STATUS, FILTER_EN | BUFFER_OVERFLOW);
	ck_assert_uint_eq(status(), FILTER_EN | CONTEXT_EN | TRIGGER_EN | BUFFER_OVERFLOW);
	busy();
	expect_nothing;
	expect_tnt(1);
	resolve(0x401004);
	expect("FUP.BuffOvf 401004");
	jmp_ind(0x401006, 0x5000);
	expect("TIP 5000");
}
END_TEST

/* "the drain will complete without Buffer_Overflow being cleared" */
START_TEST(drain_leaves_it)
{
	on(BOTH);
	overflow();
	wr(CTL, rd(CTL));
	ck_assert_int_eq(vmpt_rtit_unit_drain(&rig.unit), 0);
	expect_nothing;
	ck_assert_uint_eq(status() & BUFFER_OVERFLOW, BUFFER_OVERFLOW);
	resolve(0x401004);
	expect("FUP.BuffOvf 401004");
}
END_TEST

/* What was in the buffer before it was full is not lost. */
START_TEST(what_came_before)
{
	on(BOTH);
	jmp_ind(0x401002, 0x5000);
	overflow();
	jmp_ind(0x5002, 0x6000);
	resolve(0x6000);
	expect("TIP 5000, FUP.BuffOvf 6000");
}
END_TEST

RIG_SUITE("overflow", bit_is_set, no_packets, tnt_bits_come_first, full_tnt, no_pcc, filter_goes_on,
	  context_goes_on, ends_outside_the_filter, mtcs_are_dropped, needs_context, needs_trigger,
	  no_overflow, never_last_lip, trace_stop_pending, trace_stop_pending_cycles,
	  trace_stop_pending_status_cleared, trace_stop_pending_trigger_off, psb_of_its_bytes,
	  psb_of_enabling, psb_of_enabling_trace_stop, cleared_by_software, set_by_software,
	  drain_leaves_it, what_came_before)
