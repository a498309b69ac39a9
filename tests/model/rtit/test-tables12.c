// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * RTIT Programming Reference: Table 1 (which address a Flow Update has), Table 2 (which packets an
 * instruction makes), 4.3.2 (in and out of the region).
 */
#include "tests/model/rtit/rig.h"

#define IN    RIG_IN
#define LIMIT RIG_LIMIT
#define OUT   RIG_OUT

/* ---- Table 1 ---- */

START_TEST(far_transfer_next_ip)
{
	on(BOTH);
	far(0x401007, 0x500000); /* JMP FAR of 7 bytes at 401000H */
	expect("FUP.Far 401007, TIP 500000");
}
END_TEST

START_TEST(exception_current_ip)
{
	on(BOTH);
	jmp_ind(0x401002, 0x402000);
	far(0x402000, 0x500000); /* the first instruction there faults */
	expect("TIP 402000, FUP.Far 402000, TIP 500000");
}
END_TEST

/* Between two events: where the next instruction is, be it BLIP or NLIP */
START_TEST(interrupt_next_ip)
{
	on(BOTH);
	jcc(true, 0x401002, 0x401080);
	far(0x401080, 0x500000);
	expect("TNT T, FUP.Far 401080, TIP 500000");
}
END_TEST

/* INIT: a far transfer like others; it clears no MSR (3.3.1). */
START_TEST(init_sipi)
{
	static const u32 msrs[] = { LIP0,   LIP1,      LIP2,	   LIP3,      CTL,     STATUS,
				    EVENTS, BASE_ADDR, LIMIT_MASK, CR3_MATCH, TNT_BUFF };
	const struct vmpt_rtit_mode real = { 0 };
	struct vmpt_rtit_far f = { .ip = 0x401040, .target = 0xfffffff0, .mode = real };
	u64 before[VMPT_ARRAY_SIZE(msrs)];
	size_t i;

	range0(0x1000, 0x2000);
	range1(0x3000, 0x4000);
	wr(CR3_MATCH, 0x7000);
	on(BOTH);
	for (i = 0; i < VMPT_ARRAY_SIZE(msrs); i++)
		before[i] = rd(msrs[i]);
	vmpt_rtit_unit_far(&rig.unit, &f);
	expect("FUP.Far 401040, TIP fffffff0");
	for (i = 0; i < VMPT_ARRAY_SIZE(msrs); i++)
		ck_assert_uint_eq(rd(msrs[i]), before[i]);
}
END_TEST

START_TEST(walking_out_next_ip)
{
	rig_inside(BOTH);
	step(LIMIT);
	expect("FUP.PGD 402000");
}
END_TEST

/* "Non-far transfer that changes ContextEn to 0" */
START_TEST(context_lost_next_ip)
{
	wr(CR3_MATCH, 0x1000);
	on(BOTH | CR3_EN);
	mov_cr3(0x401033, 0x2000);
	expect("FUP.PGD 401033");
	mov_cr3(0x401036, 0x1000);
	expect("FUP.PGE 401036");
	wr_at(CTL, rd(CTL) & ~(u64)OS, 0x401040);
	expect("FUP.PGD 401040");
	wr_at(CTL, rd(CTL) | OS, 0x401044);
	expect("FUP.PGE 401044");
	wr_at(CR3_MATCH, 0x3000, 0x401048);
	expect("FUP.PGD 401048");
	wr_at(CR3_MATCH, 0x1000, 0x40104c);
	expect("FUP.PGE 40104c");
}
END_TEST

START_TEST(near_jump_out_next_ip)
{
	rig_inside(BOTH);
	jmp(IN + 0x85, OUT);
	expect("FUP.PGD 401085");
}
END_TEST

START_TEST(asynchronous_next_ip)
{
	on(BOTH | CYCLE_ACC);
	vmpt_rtit_unit_overflow(&rig.unit);
	vmpt_rtit_unit_overflow_resolve(&rig.unit, 0x401050);
	expect("FUP.BuffOvf 401050 +0");
	cycles(0x200000);
	step(0x401054);
	expect("FUP.PCC 401054 +2097152");
}
END_TEST

START_TEST(packet_en_where_entered)
{
	rig_outside(BOTH);
	jmp(OUT + 5, IN + 0x10);
	expect("FUP.PGE 401010");
	jmp(IN + 0x15, OUT);
	rig_skip();
	step(IN);
	expect("FUP.PGE 401000");
}
END_TEST

START_TEST(vm_exit_guest_rip)
{
	on(BOTH);
	vmpt_rtit_unit_vmxon(&rig.unit, 0x401003);
	vmpt_rtit_unit_vmentry(&rig.unit, 0x8000, &rig.unit.mode);
	rig_skip();
	vmpt_rtit_unit_vmexit(&rig.unit, 0x8012, &rig.unit.mode);
	expect("FUP.PGD 8012");
}
END_TEST

/* ---- Table 2 ---- */

START_TEST(jcc_makes_tnt)
{
	on(BOTH);
	jccs("TNTTNN");
	expect("TNT TNTTNN");
}
END_TEST

START_TEST(near_indirect_makes_tip)
{
	on(BOTH);
	jmp_ind(0x401002, 0x402000);
	call_ind(0x402002, 0x403000);
	ret(0x403001, 0x402002);
	expect("TIP 402000, TIP 403000, TIP 402002");
}
END_TEST

START_TEST(far_makes_fup_and_tip)
{
	on(BOTH);
	far_cpl(0x401002, 0x402000, 3);
	far_cpl(0x402004, 0x403000, 0);
	expect("FUP.Far 401002, TIP 402000, FUP.Far 402004, TIP 403000");
}
END_TEST

/* 2.2.2.2 */
START_TEST(direct_makes_none)
{
	on(BOTH);
	jmp(0x401005, 0x402000);
	call(0x402005, 0x403000);
	expect_nothing;
	expect_tnt(1);
}
END_TEST

/* ---- 4.3.2 ---- */

START_TEST(jcc_in)
{
	rig_outside(BOTH);
	jcc(true, OUT + 2, IN + 0x10);
	expect("FUP.PGE 401010");
	expect_tnt(1);
}
END_TEST

START_TEST(jcc_out)
{
	rig_inside(BOTH);
	jcc(true, IN + 0x82, OUT);
	expect("TNT T, FUP.PGD 401082");
	expect_tnt(1);
}
END_TEST

START_TEST(ret_in)
{
	rig_outside(BOTH | CMPRS_RET);
	wr(LAST_CALL_NLIP, (1ULL << 48) | (IN + 0x10));
	ret(OUT + 1, IN + 0x10);
	expect("FUP.PGE 401010");
	expect_tnt(1);
}
END_TEST

/* "does send out the TIP or updates the TNT buffer" */
START_TEST(ret_out)
{
	rig_inside(BOTH | CMPRS_RET);
	ret(IN + 0x81, OUT + 5);
	expect("TIP 300005, FUP.PGD 401081");
	jmp(OUT + 10, IN + 0x80);
	rig_skip();
	wr(LAST_CALL_NLIP, (1ULL << 48) | (OUT + 5));
	ret(IN + 0x81, OUT + 5);
	expect("TNT T, FUP.PGD 401081");
}
END_TEST

START_TEST(indirect_in_and_out)
{
	rig_outside(BOTH);
	jmp_ind(OUT + 2, IN + 4);
	expect("FUP.PGE 401004");
	jmp_ind(IN + 6, OUT);
	expect("TIP 300000, FUP.PGD 401006");
}
END_TEST

START_TEST(far_in_and_out)
{
	rig_outside(BOTH);
	far(OUT + 2, IN + 4);
	expect("FUP.PGE 401004");
	far(IN + 6, OUT);
	expect("FUP.PGD 401006, TIP 300000");
}
END_TEST

START_TEST(call_in)
{
	rig_outside(BOTH | CMPRS_RET);
	call(OUT + 5, IN + 4);
	ck_assert_uint_eq(rd(LAST_CALL_NLIP), 0);
	jmp(IN + 9, OUT);
	call_ind(OUT + 5, IN + 4);
	ck_assert_uint_eq(rd(LAST_CALL_NLIP), 0);
}
END_TEST

START_TEST(call_out)
{
	rig_inside(BOTH | CMPRS_RET);
	call(IN + 0x85, OUT);
	ck_assert_uint_eq(rd(LAST_CALL_NLIP), (1ULL << 48) | (IN + 0x85));
	jmp(OUT + 5, IN + 0x90);
	call_ind(IN + 0x92, OUT);
	ck_assert_uint_eq(rd(LAST_CALL_NLIP), (1ULL << 48) | (IN + 0x92));
}
END_TEST

RIG_SUITE("tables12", far_transfer_next_ip, exception_current_ip, interrupt_next_ip, init_sipi,
	  walking_out_next_ip, context_lost_next_ip, near_jump_out_next_ip, asynchronous_next_ip,
	  packet_en_where_entered, vm_exit_guest_rip, jcc_makes_tnt, near_indirect_makes_tip,
	  far_makes_fup_and_tip, direct_makes_none, jcc_in, jcc_out, ret_in, ret_out,
	  indirect_in_and_out, far_in_and_out, call_in, call_out)
