// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * model/branch.c and the TNT and TIP of model/emit.c: Table 33-55 rows 1 to 7, Table 33-19,
 * RET compression (33.4.2.2), TNTs short, long and partial, DisTNT.
 */
#include "tests/model/rig.h"

static void jccs(const char *bits)
{
	for (; *bits; bits++)
		vmpt_unit_jcc(&rig.unit, *bits == 'T', 0x401100);
}

static void jmp(u64 target)
{
	vmpt_unit_jmp_indirect(&rig.unit, target);
}

/* ---- Table 33-55 ---- */

/* With everything enabled, other instructions could send only time, which has not changed. */
START_TEST(t55_row_1_no_jump)
{
	rig_on(CTL | VMPT_CTL_CYC_EN | VMPT_CTL_TSC_EN | VMPT_CTL_MTC_EN | VMPT_CTL_EVENT_EN |
	       VMPT_CTL_PWR_EVT_EN | VMPT_CTL_PTW_EN | 15ULL << VMPT_CTL_MTC_FREQ_SHIFT);
	rig_time(5000, 5000, 50);
	expect("");
}
END_TEST

/* The same for instructions that make packets only if CTL enables them. */
START_TEST(t55_row_1_not_enabled)
{
	rig_on(CTL);
	vmpt_unit_ptwrite(&rig.unit, 0x401000, 1, 8);
	vmpt_unit_set_if(&rig.unit, 0x401005, true);
	vmpt_unit_mwait(&rig.unit, 0x401006, 0x20, 1, 3, 0);
	rig_time(5000, 5000, 50);
	expect("");
}
END_TEST

START_TEST(t55_row_2_sixth_branch)
{
	rig_on(CTL);
	jccs("TNTTNN");
	expect("TNT(TNTTNN)");
}
END_TEST

START_TEST(t55_row_3_five_branches)
{
	rig_on(CTL);
	jccs("TNTTN");
	expect("");
}
END_TEST

START_TEST(t55_row_4_indirect)
{
	rig_on(CTL);
	jmp(0x402000);
	expect("TIP(0x402000)");
	vmpt_unit_call_indirect(&rig.unit, 0x402004, 0x403000);
	expect("TIP(0x403000)");
}
END_TEST

START_TEST(t55_row_5_direct)
{
	rig_on(CTL);
	vmpt_unit_jmp(&rig.unit, 0x402000);
	vmpt_unit_call(&rig.unit, 0x402004, 0x403000);
	expect("");
}
END_TEST

START_TEST(t55_row_6_ret_uncompressed)
{
	rig_on(CTL);
	vmpt_unit_ret(&rig.unit, 0x402000);
	expect("TIP(0x402000)");
}
END_TEST

START_TEST(t55_row_7_ret_compressed_sixth)
{
	rig_on(CTL);
	vmpt_unit_call(&rig.unit, 0x402004, 0x403000);
	jccs("NNNNN");
	vmpt_unit_ret(&rig.unit, 0x402004);
	expect("TNT(NNNNNT)");
}
END_TEST

/* ---- Table 33-19 ---- */

static void table_19(void)
{
	struct vmpt_far far;

	rig_on(CTL);
	jccs("N");
	jmp(0x1308);
	jccs("NTN");
	jmp(0x1100);
	jccs("N");
	far = far_to(VMPT_FAR_INTERRUPT, 0x110c, 0xcc00);
	rig_far(&far);
}

START_TEST(t19_non_deferred)
{
	table_19();
	expect("TNT(N), TIP(0x1308), TNT(NTN), TIP(0x1100), TNT(N), FUP(0x110c), TIP(0xcc00)");
}
END_TEST

START_TEST(t19_deferred)
{
	rig.config.options.deferred_tips = true;
	rig_init();
	table_19();
	expect("TNT(NNTNN), TIP(0x1308), TIP(0x1100), FUP(0x110c), TIP(0xcc00)");
}
END_TEST

/* Rules of 33.4.2.3: a full TNT and an uncompressed RET force deferred TIPs out. */
START_TEST(deferred_tips_forced_out)
{
	unsigned int i;

	rig.config.options.deferred_tips = true;
	rig_init();
	rig_on(CTL);
	jmp(0x402000);
	expect("TIP(0x402000)"); /* nothing is pending: nothing to gain */
	jccs("T");
	jmp(0x403000);
	jccs("NNNN");
	expect("");
	jccs("T");
	expect("TNT(TNNNNT), TIP(0x403000)");
	jccs("T");
	jmp(0x404000);
	vmpt_unit_ret(&rig.unit, 0x405000);
	expect("TNT(T), TIP(0x404000), TIP(0x405000)");
	jccs("T");
	for (i = 0; i < VMPT_UNIT_TIPS; i++)
		jmp(0x404000 + i);
	expect("TNT(T), TIP(0x404000), TIP(0x404001), TIP(0x404002), TIP(0x404003), "
	       "TIP(0x404004), TIP(0x404005), TIP(0x404006), TIP(0x404007), TIP(0x404008), "
	       "TIP(0x404009), TIP(0x40400a), TIP(0x40400b), TIP(0x40400c), TIP(0x40400d), "
	       "TIP(0x40400e), TIP(0x40400f)");
}
END_TEST

/* ---- TNT ---- */

START_TEST(long_tnt)
{
	unsigned int i;

	rig.config.options.long_tnt = true;
	rig_init();
	rig_on(CTL);
	for (i = 0; i < 46; i++)
		jccs(i % 3 ? "N" : "T");
	expect("");
	jccs("T");
	expect("TNT(TNNTNNTNNTNNTNNTNNTNNTNNTNNTNNTNNTNNTNNTNNTNNTT)");
	jccs("TNTNTNT");
	jmp(0x402000);
	expect("TNT(TNTNTNT), TIP(0x402000)");
	jccs("TN");
	jmp(0x402000);
	expect("TNT(TN), TIP(0x402000)");
}
END_TEST

START_TEST(partial_tnts_of_every_length)
{
	static const char *const want[] = {
		"TNT(T), TIP(0x402000)",    "TNT(TN), TIP(0x402000)",	 "TNT(TNN), TIP(0x402000)",
		"TNT(TNNN), TIP(0x402000)", "TNT(TNNNN), TIP(0x402000)",
	};
	size_t i, j;

	rig_on(CTL);
	for (i = 0; i < VMPT_ARRAY_SIZE(want); i++) {
		jccs("T");
		for (j = 0; j < i; j++)
			jccs("N");
		jmp(0x402000);
		expect(want[i]);
	}
}
END_TEST

START_TEST(tnt_disable)
{
	rig_on(CTL | VMPT_CTL_DIS_TNT);
	jccs("TTTTTTNNNNNN");
	vmpt_unit_call(&rig.unit, 0x402004, 0x403000);
	vmpt_unit_ret(&rig.unit, 0x402004); /* compressed: its result is lost (33.3.9) */
	expect("");
	jmp(0x402000);
	expect("TIP(0x402000)");
	rig_off(0x402000);
	rig_on(CTL | VMPT_CTL_DIS_TNT | VMPT_CTL_DIS_RETC);
	vmpt_unit_call(&rig.unit, 0x402004, 0x403000);
	vmpt_unit_ret(&rig.unit, 0x402004);
	expect("TIP(0x402004)");
}
END_TEST

/* ---- RET compression ---- */

static void call(u64 next)
{
	vmpt_unit_call(&rig.unit, next, 0x500000);
}

static void ret(u64 to)
{
	vmpt_unit_ret(&rig.unit, to);
}

/* Check the packet of a RET to @to; a JMP makes a TNT bit visible. */
static void ret_is(u64 to, bool compressed)
{
	rig_skip();
	ret(to);
	jmp(0x600000);
	if (compressed)
		expect("TNT(T), TIP(0x600000)");
	else
		ck_assert_ptr_null(strstr(rig_text(), "TNT"));
}

START_TEST(only_the_youngest_64)
{
	u64 i;

	rig_on(CTL);
	for (i = 0; i < 65; i++)
		call(0x402000 + i);
	for (i = 65; i-- > 1;)
		ret_is(0x402000 + i, true);
	ret_is(0x402000, false); /* the oldest fell off */
}
END_TEST

START_TEST(zero_length_call_is_not_pushed)
{
	rig_on(CTL);
	call(0x402004);
	vmpt_unit_call(&rig.unit, 0x500005, 0x500005);
	ret_is(0x402004, true);
	/* an indirect CALL to the next instruction is (only direct ones are excluded) */
	vmpt_unit_call_indirect(&rig.unit, 0x500005, 0x500005);
	ret_is(0x500005, true);
}
END_TEST

START_TEST(mismatch_pops)
{
	rig_on(CTL);
	call(0x402004);
	call(0x402008);
	ret(0x777777);
	expect("TIP(0x777777)");
	ret_is(0x402004, true);
	call(0x402004);
	ret(0x402008);
	expect("TIP(0x402008)");
	ret_is(0x402004, false);
}
END_TEST

START_TEST(dis_retc)
{
	rig_on(CTL | VMPT_CTL_DIS_RETC);
	call(0x402004);
	ret(0x402004);
	expect("TIP(0x402004)");
}
END_TEST

START_TEST(psb_empties_the_stack)
{
	rig_on(CTL);
	call(0x402004);
	rig.unit.psb_due = true;
	jmp(0x500010);
	ret_is(0x402004, false);
	/* also of a CALL directly before the PSB */
	rig.unit.psb_due = true;
	call(0x402004);
	ret_is(0x402004, false);
	rig.unit.psb_due = true;
	vmpt_unit_call_indirect(&rig.unit, 0x402004, 0x500000);
	ret_is(0x402004, false);
}
END_TEST

START_TEST(packet_en_0_empties_the_stack)
{
	struct vmpt_far far;

	rig_on(CTL & ~VMPT_CTL_USER);
	call(0x402004);
	far = far_to(VMPT_FAR_BRANCH, 0x402010, 0x403000);
	far.mode.cpl = 3;
	rig_far(&far);
	call(0x402008); /* out of context */
	far.mode.cpl = 0;
	rig_far(&far);
	ret_is(0x402008, false);
	ret_is(0x402004, false);
	/* TraceEn */
	call(0x402004);
	rig_off(0x402020);
	rig_on(CTL);
	ret_is(0x402004, false);
}
END_TEST

START_TEST(overflow_empties_the_stack)
{
	rig_on(CTL);
	call(0x402004);
	vmpt_unit_overflow(&rig.unit);
	call(0x402008); /* the decoder does not see this CALL */
	vmpt_unit_overflow_resolve(&rig.unit, 0x500010);
	ret_is(0x402008, false);
	ret_is(0x402004, false);
}
END_TEST

START_TEST(calls_out_of_a_range_are_not_pushed)
{
	rig_wrmsr(VMPT_MSR_RTIT_ADDR0_A, 0x400000);
	rig_wrmsr(VMPT_MSR_RTIT_ADDR0_A + 1, 0x4fffff);
	rig_on(CTL | 1ULL << VMPT_CTL_ADDR_SHIFT(0));
	call(0x402004);
	ret(0x402004);
	expect("TIP.PGD(0x500000), TIP.PGE(0x402004)");
	ret_is(0x402004, false);
}
END_TEST

RIG_SUITE("branch", t55_row_1_no_jump, t55_row_1_not_enabled, t55_row_2_sixth_branch,
	  t55_row_3_five_branches, t55_row_4_indirect, t55_row_5_direct, t55_row_6_ret_uncompressed,
	  t55_row_7_ret_compressed_sixth, t19_non_deferred, t19_deferred, deferred_tips_forced_out,
	  long_tnt, partial_tnts_of_every_length, tnt_disable, only_the_youngest_64,
	  zero_length_call_is_not_pushed, mismatch_pops, dis_retc, psb_empties_the_stack,
	  packet_en_0_empties_the_stack, overflow_empties_the_stack,
	  calls_out_of_a_range_are_not_pushed)
