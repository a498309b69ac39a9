// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * model/other.c: Table 33-10 and rows 18 to 21 of 33-55 (TSX), Tables 33-57 and 33-58 (the manual
 * swaps their captions: here a row is named after the caption printed over its body), P-state
 * changes (Table 33-41), blocks, MNT.
 */
#include "tests/model/rig.h"

#define IP 0x402000

/* ---- Table 33-10 ---- */

START_TEST(t10_begin)
{
	rig_on(CTL);
	vmpt_unit_tx_begin(&rig.unit, IP);
	expect("MODE.TSX(InTX), FUP(0x402000)");
}
END_TEST

START_TEST(t10_commit)
{
	rig_on(CTL);
	vmpt_unit_tx_begin(&rig.unit, IP);
	rig_skip();
	vmpt_unit_tx_commit(&rig.unit, IP + 8);
	expect("MODE.TSX(), FUP(0x402008)");
}
END_TEST

START_TEST(t10_abort)
{
	rig_on(CTL);
	vmpt_unit_tx_begin(&rig.unit, IP);
	rig_skip();
	vmpt_unit_tx_abort(&rig.unit, IP + 8, 0x403000);
	expect("MODE.TSX(TXAbort), FUP(0x402008), TIP(0x403000)");
}
END_TEST

/* "None. No change to TSX mode bits": nested XBEGIN, XEND that is not the outermost. */
START_TEST(t10_other)
{
	rig_on(CTL);
	vmpt_unit_tx_begin(&rig.unit, IP);
	rig_skip();
	vmpt_unit_tx_begin(&rig.unit, IP + 4);
	vmpt_unit_tx_begin(&rig.unit, IP + 8);
	vmpt_unit_tx_commit(&rig.unit, IP + 12);
	vmpt_unit_tx_commit(&rig.unit, IP + 16);
	expect("");
	ck_assert(rig.unit.in_tx);
	vmpt_unit_tx_commit(&rig.unit, IP + 20);
	expect("MODE.TSX(), FUP(0x402014)");
	ck_assert(!rig.unit.in_tx);
}
END_TEST

START_TEST(t55_row_18_does_not_begin_or_end_a_transaction)
{
	rig_on(CTL);
	/* an XRELEASE without elision */
	vmpt_unit_tx_commit(&rig.unit, IP);
	expect("");
	vmpt_unit_tx_begin(&rig.unit, IP + 4);
	rig_skip();
	vmpt_unit_tx_begin(&rig.unit, IP + 8);
	vmpt_unit_tx_commit(&rig.unit, IP + 12);
	expect("");
}
END_TEST

/* An abort ends all levels; the next XBEGIN is the outermost again. So it is after a RESET. */
START_TEST(an_abort_ends_nested_transactions)
{
	int reset;

	for (reset = 0; reset < 2; reset++) {
		rig_setup();
		rig_on(CTL);
		vmpt_unit_tx_begin(&rig.unit, IP);
		vmpt_unit_tx_begin(&rig.unit, IP + 4);
		if (reset) {
			vmpt_unit_reset(&rig.unit, false);
			rig.unit.mode = mode64(0, 0x1000);
			rig_on(CTL);
		} else {
			rig_skip();
			vmpt_unit_tx_abort(&rig.unit, IP + 8, IP + 16);
			expect("MODE.TSX(TXAbort), FUP(0x402008), TIP(0x402010)");
		}
		vmpt_unit_tx_begin(&rig.unit, IP + 16);
		vmpt_unit_tx_commit(&rig.unit, IP + 20);
		expect("MODE.TSX(InTX), FUP(0x402010), MODE.TSX(), FUP(0x402014)");
	}
}
END_TEST

START_TEST(t55_rows_19_to_21_tsx)
{
	rig_on(CTL);
	vmpt_unit_tx_begin(&rig.unit, IP);
	vmpt_unit_tx_commit(&rig.unit, IP + 4);
	vmpt_unit_tx_begin(&rig.unit, IP + 8);
	vmpt_unit_tx_abort(&rig.unit, IP + 12, IP + 16);
	expect("MODE.TSX(InTX), FUP(0x402000), MODE.TSX(), FUP(0x402004), MODE.TSX(InTX), "
	       "FUP(0x402008), MODE.TSX(TXAbort), FUP(0x40200c), TIP(0x402010)");
}
END_TEST

/* Out of the filter without FUP (33.2.9.2); not without context or BranchEn. */
START_TEST(tsx_and_filters)
{
	rig_wrmsr(VMPT_MSR_RTIT_ADDR0_A, 0x410000);
	rig_wrmsr(VMPT_MSR_RTIT_ADDR0_A + 1, 0x41ffff);
	rig_on(CTL | 1ULL << VMPT_CTL_ADDR_SHIFT(0));
	vmpt_unit_tx_begin(&rig.unit, IP);
	expect("MODE.TSX(InTX)");
	vmpt_unit_tx_abort(&rig.unit, IP, 0x403000);
	expect("MODE.TSX(TXAbort)");
	rig_off(0);
	rig_on(CTL & ~VMPT_CTL_OS);
	vmpt_unit_tx_begin(&rig.unit, IP);
	expect("");
	rig_off(0);
	rig_on(CTL & ~VMPT_CTL_BRANCH_EN);
	vmpt_unit_tx_commit(&rig.unit, IP);
	expect("");
	rig_off(0);
	vmpt_unit_tx_begin(&rig.unit, IP);
	expect("");
}
END_TEST

/* ---- PTWRITE: the body under Table 33-58's caption ---- */

static void ptw(u64 ctl, unsigned int size, const char *want)
{
	rig_setup();
	rig_on(ctl);
	vmpt_unit_ptwrite(&rig.unit, IP, 0x1122334455667788, size);
	expect(want);
}

#define PTW (CTL | VMPT_CTL_PTW_EN)

START_TEST(t58_row_1_ptwrite_out_of_context)
{
	ptw(PTW & ~VMPT_CTL_OS, 8, "");
	/* ContextEn && FilterEn */
	rig_setup();
	rig_wrmsr(VMPT_MSR_RTIT_ADDR0_A, 0x410000);
	rig_wrmsr(VMPT_MSR_RTIT_ADDR0_A + 1, 0x41ffff);
	rig_on(PTW | 1ULL << VMPT_CTL_ADDR_SHIFT(0));
	vmpt_unit_ptwrite(&rig.unit, IP, 1, 4);
	expect("");
}
END_TEST

START_TEST(t58_row_2_ptwrite_32)
{
	ptw(PTW, 4, "PTW(4B,0x55667788)");
	ptw(PTW | VMPT_CTL_FUP_ON_PTW, 4, "PTW(IP,4B,0x55667788), FUP(0x402000)");
}
END_TEST

START_TEST(t58_row_3_ptwrite_64)
{
	ptw(PTW, 8, "PTW(8B,0x1122334455667788)");
	ptw(PTW | VMPT_CTL_FUP_ON_PTW, 8, "PTW(IP,8B,0x1122334455667788), FUP(0x402000)");
}
END_TEST

START_TEST(ptwrite_enables)
{
	ptw(CTL | VMPT_CTL_FUP_ON_PTW, 8, "");
	ptw(PTW & ~VMPT_CTL_BRANCH_EN, 4, "PTW(4B,0x55667788)");
	rig_off(IP);
	vmpt_unit_ptwrite(&rig.unit, IP, 1, 4);
	expect("");
}
END_TEST

/* ---- power events: the body under Table 33-57's caption ---- */

#define PWR	 (CTL | VMPT_CTL_PWR_EVT_EN)
#define PWR_USER (VMPT_CTL_USER | VMPT_CTL_BRANCH_EN | VMPT_CTL_PWR_EVT_EN)

/* The MWAIT makes no power event, its fault or exit makes packets: with and without PwrEvtEn. */
START_TEST(t57_row_1_mwait_that_faults_or_exits)
{
	struct vmpt_far far;
	struct vmpt_unit_exit x = { .ip = IP, .target = 0x8000, .mode = mode64(0, 0x1000) };

	rig_on(PWR);
	far = far_to(VMPT_FAR_EXCEPTION, IP, 0x403000);
	rig_far(&far);
	expect("FUP(0x402000), TIP(0x403000)");
	rig.unit.vmx.on = true;
	rig.unit.vmx.nonroot = true;
	vmpt_unit_vmexit(&rig.unit, &x);
	expect("FUP(0x402000), PIP(0x1000), TIP(0x8000)");
}
END_TEST

START_TEST(t57_row_2_mwait_stays_in_c0)
{
	unsigned int sub_state;

	for (sub_state = 0; sub_state < 2; sub_state++) {
		rig_setup();
		rig_on(PWR);
		vmpt_unit_mwait(&rig.unit, IP, 0xf0, 1, 0, (u8)sub_state);
		expect("");
		rig_setup();
		rig_on(PWR_USER);
		vmpt_unit_mwait(&rig.unit, IP, 0xf0, 1, 0, (u8)sub_state);
		expect("");
	}
}
END_TEST

/* Rows 3 and 4 are for states deeper than C0.1: C0.2 is one. */
START_TEST(mwait_to_c0_2)
{
	rig_on(PWR);
	vmpt_unit_mwait(&rig.unit, IP, 0xf0, 0, 0, 2);
	expect("MWAIT(0xf0,0), PWRE(0,2), EXSTOP(IP), FUP(0x402000)");
	rig_setup();
	rig_on(PWR_USER);
	vmpt_unit_mwait(&rig.unit, IP, 0xf0, 0, 0, 2);
	expect("PWRE(0,2), EXSTOP()");
}
END_TEST

START_TEST(t57_row_3_mwait_out_of_context)
{
	rig_on(PWR_USER);
	vmpt_unit_mwait(&rig.unit, IP, 0x20, 1, 3, 2);
	expect("PWRE(3,2), EXSTOP()");
}
END_TEST

START_TEST(t57_row_4_mwait)
{
	rig_on(PWR);
	vmpt_unit_mwait(&rig.unit, IP, 0xffffff20, 0xfffffff1, 3, 2);
	expect("MWAIT(0x20,1), PWRE(3,2), EXSTOP(IP), FUP(0x402000)");
}
END_TEST

START_TEST(t57_row_5_hlt)
{
	rig_on(PWR);
	vmpt_unit_sleep(&rig.unit, IP, false, 1, 0);
	expect("PWRE(1,0), EXSTOP(IP), FUP(0x402000)");
}
END_TEST

START_TEST(t57_row_6_hardware_duty_cycling)
{
	rig_on(PWR | VMPT_CTL_TSC_EN | VMPT_CTL_MTC_EN);
	vmpt_unit_sleep(&rig.unit, IP, true, 6, 0);
	vmpt_unit_wake(&rig.unit, 6, 6, 8);
	expect("PWRE(HW,6,0), EXSTOP(IP), FUP(0x402000), TSC(0x0), TMA(0x0,0), CBR(20), "
	       "PWRX(6,6,0x8)");
}
END_TEST

START_TEST(t57_row_7_wake)
{
	rig_on(PWR | VMPT_CTL_TSC_EN);
	vmpt_unit_wake(&rig.unit, 3, 6, 1);
	expect("TSC(0x0), CBR(20), PWRX(3,6,0x1)");
	rig_off(IP);
	rig_on(PWR_USER);
	vmpt_unit_wake(&rig.unit, 3, 6, 1);
	expect("CBR(20), PWRX(3,6,0x1)");
}
END_TEST

START_TEST(power_events_not_enabled)
{
	rig_on(CTL);
	vmpt_unit_mwait(&rig.unit, IP, 0x20, 1, 3, 2);
	vmpt_unit_sleep(&rig.unit, IP, false, 1, 0);
	expect("");
	vmpt_unit_wake(&rig.unit, 3, 6, 1);
	expect("CBR(20)");
	rig_off(IP);
	rig_skip();
	vmpt_unit_mwait(&rig.unit, IP, 0x20, 1, 3, 2);
	vmpt_unit_wake(&rig.unit, 3, 6, 1);
	expect("");
}
END_TEST

/* ---- P-state changes: Table 33-41, and row 25 of Table 33-55 ---- */

#define TIMES (VMPT_CTL_TSC_EN | VMPT_CTL_MTC_EN)

static const struct {
	const char *row;
	u64 ctl;
	const char *want;
} p_states[] = {
	{ "in context", PWR, "EXSTOP(IP), FUP(0x402000), CBR(40)" },
	{ "TSCEn", PWR | VMPT_CTL_TSC_EN, "EXSTOP(IP), FUP(0x402000), TSC(0x1111), CBR(40)" },
	{ "TSCEn and MTCEn", PWR | TIMES,
	  "EXSTOP(IP), FUP(0x402000), TSC(0x1111), TMA(0x2222,0), CBR(40)" },
	{ "out of context", PWR_USER, "EXSTOP(), CBR(40)" },
	{ "out of context, with time", PWR_USER | TIMES,
	  "EXSTOP(), TSC(0x1111), TMA(0x2222,0), CBR(40)" },
	/* The FUP depends on ContextEn alone. */
	{ "BranchEn = 0", PWR & ~VMPT_CTL_BRANCH_EN, "EXSTOP(IP), FUP(0x402000), CBR(40)" },
	{ "FilterEn = 0", PWR | 1ULL << VMPT_CTL_ADDR_SHIFT(0),
	  "EXSTOP(IP), FUP(0x402000), CBR(40)" },
	{ "PwrEvtEn = 0", CTL, "CBR(40)" },
	{ "PwrEvtEn = 0, with time", CTL | TIMES, "TSC(0x1111), TMA(0x2222,0), CBR(40)" },
	{ "MTCEn without TSCEn", CTL | VMPT_CTL_MTC_EN, "CBR(40)" },
};

START_TEST(da_p_state_change_that_stops_execution)
{
	const struct vmpt_now after = { .tsc = 0x1111, .art = 0x2222, .cbr = 40 };
	const char *text;
	size_t i;

	for (i = 0; i < VMPT_ARRAY_SIZE(p_states); i++) {
		rig_setup();
		rig_on(p_states[i].ctl);
		vmpt_unit_clock_stop(&rig.unit, IP, &after);
		text = rig_text();
		ck_assert_msg(!strcmp(text, p_states[i].want), "%s: %s", p_states[i].row, text);
	}
	/* TriggerEn = 0 */
	rig_off(IP);
	rig_skip();
	vmpt_unit_clock_stop(&rig.unit, IP, &after);
	expect("");
	ck_assert_uint_eq(rig.unit.now.tsc, 0x1111);
}
END_TEST

/* EXSTOP is CYC-eligible; what was pending goes first; no MTC is due for the time between. */
START_TEST(da_p_state_change_and_other_packets)
{
	struct vmpt_now after = { .tsc = 0x1111, .art = 1000, .cycles = 10, .cbr = 40 };

	rig_on(PWR | TIMES | VMPT_CTL_CYC_EN);
	vmpt_unit_jcc(&rig.unit, true, IP);
	rig_time(10, 0, 0);
	vmpt_unit_clock_stop(&rig.unit, IP, &after);
	/* one CYC a cycle: the TSC has none, the core's clock did not count */
	expect("TNT(T), CYC(10), EXSTOP(IP), FUP(0x402000), TSC(0x1111), TMA(0x3e8,0), CBR(40)");
	rig_time(12, 0x1200, 1001);
	expect("CYC(2), MTC(233)");
	/* a PSB+ that is due has the IP where execution goes on */
	rig_setup();
	rig_on(PWR);
	rig.unit.psb_due = true;
	vmpt_unit_clock_stop(&rig.unit, IP, &after);
	expect("EXSTOP(IP), FUP(0x402000), CBR(40), PSB, CBR(40), PIP(0x1000), MODE.TSX(), "
	       "MODE.Exec(64), FUP(0x402000), PSBEND");
}
END_TEST

/* Execution goes on: CBR alone, with PwrEvtEn too (33.4.2.10). */
START_TEST(da_p_state_change_without_a_stop)
{
	rig_on(PWR | TIMES);
	vmpt_unit_frequency(&rig.unit, 40);
	expect("CBR(40)");
}
END_TEST

/* ---- blocks ---- */

START_TEST(blocks)
{
	static const struct vmpt_unit_item items[] = { { 0, 0x1111111122222222 }, { 33, 0x3 } };

	rig_on(CTL);
	vmpt_unit_jcc(&rig.unit, true, IP);
	vmpt_unit_block(&rig.unit, 4, 0, items, 2, IP);
	expect("TNT(T), BBP(8B,4), BIP(0,0x1111111122222222), BIP(1,0x3), BEP(IP), FUP(0x402000)");
	vmpt_unit_block(&rig.unit, 1, 1, items, 2, IP);
	expect("BBP(4B,1), BIP(0,0x22222222), BIP(1,0x3), BEP(IP), FUP(0x402000)");
	vmpt_unit_block(&rig.unit, 1, 1, items, 0, IP);
	expect("BBP(4B,1), BEP(IP), FUP(0x402000)");
	rig_off(IP);
	rig_skip();
	vmpt_unit_block(&rig.unit, 1, 1, items, 2, IP);
	vmpt_unit_mnt(&rig.unit, 1);
	expect("");
	rig_on(CTL & ~VMPT_CTL_OS);
	vmpt_unit_block(&rig.unit, 1, 1, items, 1, IP);
	vmpt_unit_mnt(&rig.unit, 0x1234567890);
	expect("BBP(4B,1), BIP(0,0x22222222), BEP(), MNT(0x1234567890)");
}
END_TEST

/* A full sink in the middle: the OVF ends the block, the rest of it is lost (33.4.1.1). */
START_TEST(a_block_is_cut_by_an_overflow)
{
	struct vmpt_unit_item items[32];
	const char *text;
	unsigned int i;

	for (i = 0; i < 32; i++) {
		items[i].id = (u8)i;
		items[i].payload = i;
	}
	rig_on(CTL);
	rig.refuse = -1;
	for (i = 0; i < 4; i++)
		vmpt_unit_block(&rig.unit, 4, 0, items, 32, IP);
	ck_assert(rig.unit.in_overflow);
	rig.refuse = 0;
	vmpt_unit_overflow_resolve(&rig.unit, IP);
	text = rig_text();
	ck_assert_str_eq(text + strlen(text) - strlen("), OVF, FUP(0x402000)"),
			 "), OVF, FUP(0x402000)");
}
END_TEST

RIG_SUITE("other", t10_begin, t10_commit, t10_abort, t10_other,
	  t55_row_18_does_not_begin_or_end_a_transaction, an_abort_ends_nested_transactions,
	  t55_rows_19_to_21_tsx, tsx_and_filters, t58_row_1_ptwrite_out_of_context,
	  t58_row_2_ptwrite_32, t58_row_3_ptwrite_64, ptwrite_enables,
	  t57_row_1_mwait_that_faults_or_exits, t57_row_2_mwait_stays_in_c0, mwait_to_c0_2,
	  t57_row_3_mwait_out_of_context, t57_row_4_mwait, t57_row_5_hlt,
	  t57_row_6_hardware_duty_cycling, t57_row_7_wake, power_events_not_enabled, blocks,
	  a_block_is_cut_by_an_overflow, da_p_state_change_that_stops_execution,
	  da_p_state_change_and_other_packets, da_p_state_change_without_a_stop)
