// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* RTIT Programming Reference: IP filtering, 2.1.3, 2.4.3 and 3.3.5. */
#include "tests/model/rtit/rig.h"

#define IN	0x401000
#define IN_END	0x402000
#define OUT	0x300000
#define IN1	0x7f0000001000
#define IN1_END 0x7f0000002000

/* Enable after @next_ip with filter @id. The packets are not shown. */
static void filter(unsigned int id, u64 next_ip)
{
	range0(IN, IN_END);
	range1(IN1, IN1_END);
	wr(EVENTS, EVENT(id, NEVER));
	wr_at(CTL, BOTH | DEST | TRACE_EN, next_ip);
	wr_at(CTL, BOTH | DEST | TRACE_EN | TRACE_ACTIVE, next_ip);
	rig_skip();
}

/* 3.3.5: "executes an instruction at the base IP … at the limit IP" */
START_TEST(walk_in_and_out)
{
	filter(RANGE0, OUT);
	step(IN - 8);
	expect_nothing;
	ck_assert_uint_eq(status() & FILTER_EN, 0);
	step(IN);
	expect("FUP.PGE 401000");
	ck_assert_uint_eq(status() & FILTER_EN, FILTER_EN);
	step(IN + 4);
	step(IN_END - 1);
	expect_nothing;
	step(IN_END);
	expect("FUP.PGD 402000");
	ck_assert_uint_eq(status() & FILTER_EN, 0);
}
END_TEST

/* "a taken branch … whose target is within the range", first and last byte */
START_TEST(branch_in_and_out)
{
	filter(RANGE0, OUT);
	jmp(OUT + 5, IN - 1);
	expect_nothing;
	jmp(OUT + 5, IN);
	expect("FUP.PGE 401000");
	jmp(IN + 5, IN_END - 1);
	expect_nothing;
	jmp(IN + 5, IN_END);
	expect("FUP.PGD 401005");
	jmp(OUT + 5, IN_END - 1);
	expect("FUP.PGE 401fff");
	jmp(IN + 5, IN - 1);
	expect("FUP.PGD 401005");
	/* A Jcc that is not taken is walked over. */
	jcc(false, IN - 2, IN + 0x10);
	expect_nothing;
	jcc(false, IN, OUT);
	expect("FUP.PGE 401000");
}
END_TEST

/* "if RTIT is enabled from within RANGE0 …, the CPU will not trigger" */
START_TEST(enabled_from_within)
{
	filter(RANGE0, IN + 0x100);
	ck_assert_uint_eq(status() & FILTER_EN, 0);
	step(IN + 0x104);
	jcc(false, IN + 0x106, IN + 0x200);
	expect_nothing;
	/* "If neither of these occurs before … the limit …, no triggering will occur." */
	step(IN_END);
	expect_nothing;
	jmp(IN_END + 5, IN + 0x10);
	expect("FUP.PGE 401010");
}
END_TEST

START_TEST(enabled_from_within_then_a_branch)
{
	filter(RANGE0, IN + 0x100);
	jmp(IN + 0x105, IN + 0x180);
	expect("FUP.PGE 401180");
}
END_TEST

/* Table 7 */
START_TEST(event_range1)
{
	filter(RANGE1, OUT);
	jmp(OUT + 5, IN);
	expect_nothing;
	jmp(OUT + 5, IN1_END - 1);
	expect("FUP.PGE 7f0000001fff");
	jmp(IN1 + 5, IN1_END);
	expect("FUP.PGD 7f0000001005");
	step(IN1);
	expect("FUP.PGE 7f0000001000");
	step(IN1_END);
	expect("FUP.PGD 7f0000002000");
	/* Bits 63:48 of an address do not count. */
	jmp(OUT + 5, 0xffff000000000000 | IN1);
	expect("FUP.PGE 7f0000001000");
}
END_TEST

START_TEST(event_both_ranges)
{
	filter(RANGES, OUT);
	jmp(OUT + 5, IN);
	expect("FUP.PGE 401000");
	jmp(IN + 5, IN1);
	expect_nothing;
	jmp(IN1 + 5, OUT);
	expect("FUP.PGD 7f0000001005");
	step(IN1);
	expect("FUP.PGE 7f0000001000");
	step(IN1_END);
	expect("FUP.PGD 7f0000002000");
}
END_TEST

/* The limit of one is the base of the other: walking over it never leaves the filter. */
START_TEST(event_both_ranges_side_by_side)
{
	range0(IN, IN_END);
	range1(IN_END, IN_END + 0x100);
	wr(EVENTS, EVENT(RANGES, NEVER));
	on(BOTH);
	step(IN);
	expect("FUP.PGE 401000");
	step(IN_END);
	expect_nothing;
	step(IN_END + 0x100);
	expect("FUP.PGD 402100");
}
END_TEST

START_TEST(event_never_and_reserved)
{
	static const unsigned int ids[] = { 3, 4, 5, NEVER };
	size_t i;

	for (i = 0; i < VMPT_ARRAY_SIZE(ids); i++) {
		filter(ids[i], OUT);
		jmp(OUT + 5, IN);
		step(IN + 4);
		jmp_ind(IN + 6, IN1);
		far(IN1 + 8, OUT);
		expect_nothing;
		ck_assert_uint_eq(status(), CONTEXT_EN | TRIGGER_EN);
		off();
		rig_skip();
	}
}
END_TEST

START_TEST(event_always)
{
	filter(ALWAYS, OUT);
	ck_assert_uint_eq(status(), FILTER_EN | CONTEXT_EN | TRIGGER_EN);
	jmp(OUT + 5, IN);
	step(IN_END);
	expect_nothing;
	jmp_ind(IN + 6, IN1);
	expect("TIP 7f0000001000");
}
END_TEST

/* 2.4.3: "FilterEn … will not be changed by the IP when Trace_En is cleared" */
START_TEST(frozen_without_trace_en)
{
	range0(IN, IN_END);
	wr(EVENTS, EVENT(RANGE0, NEVER));
	wr_at(CTL, BOTH | DEST, OUT);
	jmp(OUT + 5, IN);
	step(IN);
	ck_assert_uint_eq(status() & FILTER_EN, 0);
	/* With Trace_En the comparison runs, TraceActive or not. */
	wr_at(CTL, BOTH | DEST | TRACE_EN, OUT);
	jmp(OUT + 5, IN + 0x20);
	ck_assert_uint_eq(status(), FILTER_EN | CONTEXT_EN);
	/* Frozen at 1, too. */
	wr_at(CTL, BOTH | DEST, IN + 0x30);
	jmp(IN + 0x35, OUT);
	ck_assert_uint_eq(status() & FILTER_EN, FILTER_EN);
	expect_nothing;
}
END_TEST

/* 2.1.3: "It is also frozen when either Trace_En or ContextEn are 0." */
START_TEST(frozen_without_context_en)
{
	range0(IN, IN_END);
	wr(EVENTS, EVENT(RANGE0, NEVER));
	wr_at(CTL, USER | DEST | TRACE_EN, OUT); /* CPL is 0 */
	jmp(OUT + 5, IN);
	ck_assert_uint_eq(status(), 0);
	wr_at(CTL, BOTH | DEST | TRACE_EN, IN + 0x10);
	jmp(IN + 0x15, IN + 0x20);
	ck_assert_uint_eq(status(), FILTER_EN | CONTEXT_EN);
	wr_at(CTL, USER | DEST | TRACE_EN, IN + 0x30);
	jmp(IN + 0x35, OUT);
	ck_assert_uint_eq(status(), FILTER_EN);
	expect_nothing;
}
END_TEST

/* Far transfers that leave ContextEn 0, and an SMI with its handler */
START_TEST(frozen_across_far_transfers)
{
	filter(RANGE0, OUT);
	jmp(OUT + 5, IN);
	wr_at(CTL, (rd(CTL) & ~(u64)OS) | USER, IN + 8);
	ck_assert_uint_eq(status(), FILTER_EN | TRIGGER_EN);
	far(IN + 10, OUT);
	ck_assert_uint_eq(status(), FILTER_EN | TRIGGER_EN);
	mov_cr3(IN_END, 0x5000);
	ck_assert_uint_eq(status(), FILTER_EN | TRIGGER_EN);
	vmpt_rtit_unit_smi(&rig.unit, OUT + 2);
	far(0x38002, 0x38100);
	ck_assert_uint_eq(status(), FILTER_EN | TRIGGER_EN);
	far_cpl(0x38102, OUT, 3);
	ck_assert_uint_eq(status(), FILTER_EN | TRIGGER_EN);
}
END_TEST

/* STATUS: FilterEn "can be manipulated" (3.3.3). */
START_TEST(status_write)
{
	filter(RANGE0, OUT);
	wr(STATUS, FILTER_EN);
	ck_assert_uint_eq(status(), FILTER_EN | CONTEXT_EN | TRIGGER_EN);
	rig_skip();
	jmp_ind(OUT + 2, IN + 8);
	expect("TIP 401008");
	wr(STATUS, 0);
	ck_assert_uint_eq(status(), CONTEXT_EN | TRIGGER_EN);
	rig_skip();
	step(IN + 12);
	expect_nothing;
}
END_TEST

RIG_SUITE("filter", walk_in_and_out, branch_in_and_out, enabled_from_within,
	  enabled_from_within_then_a_branch, event_range1, event_both_ranges,
	  event_both_ranges_side_by_side, event_never_and_reserved, event_always,
	  frozen_without_trace_en, frozen_without_context_en, frozen_across_far_transfers,
	  status_write)
