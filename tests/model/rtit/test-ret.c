// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * RTIT Programming Reference: indirect transfer compression for returns, 4.2.3.2 with the examples
 * of Figures 6 and 7; RTIT_LAST_CALL_NLIP, 3.3.14.
 */
#include "tests/model/rtit/rig.h"

#define VALID (1ULL << 48)

/*
 * Figure 6, without nested calls: _sub at 400H is called at 5, returns at 40cH to 00aH. Figure 7,
 * with nested ones: _sub calls _buffer at 405H, which returns at 502H to 409H.
 */
START_TEST(figure_6)
{
	on(BOTH | CMPRS_RET);
	call(0x00a, 0x400);
	ck_assert_uint_eq(rd(LAST_CALL_NLIP), VALID | 0x00a);
	step(0x402);
	ret(0x40d, 0x00a);
	expect_nothing;
	expect_tnt(3); /* "a Taken indication is added" */
}
END_TEST

START_TEST(figure_7)
{
	on(BOTH | CMPRS_RET);
	call(0x00a, 0x400);
	call(0x409, 0x500);
	ck_assert_uint_eq(rd(LAST_CALL_NLIP), VALID | 0x409);
	ret(0x503, 0x409);
	expect_nothing;
	expect_tnt(3);
	step(0x40c);
	ret(0x40d, 0x00a);
	expect("TNT T, TIP a");
	expect_tnt(1);
}
END_TEST

START_TEST(not_enabled)
{
	on(BOTH);
	call(0x00a, 0x400);
	ck_assert_uint_eq(rd(LAST_CALL_NLIP), 0);
	ret(0x40d, 0x00a);
	expect("TIP a");
	/* An earlier value does not count. */
	wr(LAST_CALL_NLIP, VALID | 0x00a);
	ret(0x40d, 0x00a);
	expect("TIP a");
	ck_assert_uint_eq(rd(LAST_CALL_NLIP), VALID | 0x00a);
}
END_TEST

START_TEST(indirect_call)
{
	on(BOTH | CMPRS_RET);
	call_ind(0x7fff00000007, 0x400);
	expect("TIP 400");
	ck_assert_uint_eq(rd(LAST_CALL_NLIP), VALID | 0x7fff00000007);
	ret(0x40d, 0x7fff00000007);
	expect_nothing;
	expect_tnt(3);
}
END_TEST

/* "the return address on the stack was modified" */
START_TEST(other_address)
{
	static const u64 others[] = { 0xb, 0x1000a, 0x10000000a, 0x80000000000a };
	size_t i;

	on(BOTH | CMPRS_RET);
	call(0x00a, 0x400);
	for (i = 0; i < VMPT_ARRAY_SIZE(others); i++) {
		ret(0x40d, others[i]);
		expect_tnt(1);
	}
	expect("TIP b, TIP 1000a, TIP 10000000a, TIP 80000000000a");
}
END_TEST

START_TEST(not_valid)
{
	on(BOTH | CMPRS_RET);
	ret(0x40d, 0);
	expect("TIP 0");
	wr(LAST_CALL_NLIP, 0x00a);
	ret(0x40d, 0x00a);
	expect("TIP a");
	/* Software may restore it (a context switch). */
	wr(LAST_CALL_NLIP, VALID | 0x00a);
	ret(0x40d, 0x00a);
	expect_tnt(3);
}
END_TEST

/* "if this TNT update completes the six entries …, then a full TNT packet will be generated" */
START_TEST(the_sixth)
{
	on(BOTH | CMPRS_RET);
	call(0x00a, 0x400);
	jccs("NNNNN");
	ret(0x40d, 0x00a);
	expect("TNT NNNNNT");
	expect_tnt(1);
}
END_TEST

/* "Far calls will also not modify" it; neither do jumps. */
START_TEST(others_leave_it)
{
	on(BOTH | CMPRS_RET);
	call(0x00a, 0x400);
	far(0x407, 0x500);
	jmp(0x505, 0x600);
	jmp_ind(0x602, 0x700);
	jccs("TN");
	ck_assert_uint_eq(rd(LAST_CALL_NLIP), VALID | 0x00a);
	rig_skip();
	ret(0x701, 0x00a);
	expect_nothing;
	expect_tnt(0xd);
}
END_TEST

/* Only a PSB and an overflow clear it: a second RET to the same place is compressed, too. */
START_TEST(stays)
{
	on(BOTH | CMPRS_RET);
	call(0x00a, 0x400);
	ret(0x40d, 0x00a);
	ck_assert_uint_eq(rd(LAST_CALL_NLIP), VALID | 0x00a);
	ret(0x40d, 0x00a);
	expect_tnt(7);
}
END_TEST

START_TEST(cleared_by_psb)
{
	on(BOTH | CMPRS_RET);
	call(0x00a, 0x400);
	wr(PKT_CNT, 0x800);
	expect("PSB");
	ck_assert_uint_eq(rd(LAST_CALL_NLIP), 0);
	ret(0x40d, 0x00a);
	expect("TIP a");
}
END_TEST

START_TEST(cleared_by_psb_of_enabling)
{
	wr(LAST_CALL_NLIP, VALID | 0x00a);
	on(BOTH | CMPRS_RET);
	ck_assert_uint_eq(rd(LAST_CALL_NLIP), 0);
}
END_TEST

START_TEST(cleared_by_overflow)
{
	on(BOTH | CMPRS_RET);
	call(0x00a, 0x400);
	vmpt_rtit_unit_overflow(&rig.unit);
	vmpt_rtit_unit_overflow_resolve(&rig.unit, 0x402);
	expect("FUP.BuffOvf 402");
	ck_assert_uint_eq(rd(LAST_CALL_NLIP), 0);
	ret(0x40d, 0x00a);
	expect("TIP a");
}
END_TEST

/* "Only near call instructions that start with PacketEn set" */
START_TEST(call_outside)
{
	range0(0x400, 0x500);
	wr(EVENTS, EVENT(RANGE0, NEVER));
	on(BOTH | CMPRS_RET);
	call(0x410, 0x600); /* its NLIP, or its target, in the region does not help */
	call(0x00a, 0x420);
	expect("FUP.PGE 420");
	ck_assert_uint_eq(rd(LAST_CALL_NLIP), 0);
	call(0x425, 0x600);
	ck_assert_uint_eq(rd(LAST_CALL_NLIP), VALID | 0x425);
	expect("FUP.PGD 425");
	/* back by a RET that starts outside: no TNT bit */
	ret(0x601, 0x425);
	expect("FUP.PGE 425");
	expect_tnt(1);
}
END_TEST

RIG_SUITE("ret", figure_6, figure_7, not_enabled, indirect_call, other_address, not_valid,
	  the_sixth, others_leave_it, stays, cleared_by_psb, cleared_by_psb_of_enabling,
	  cleared_by_overflow, call_outside)
