// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * model/clock.c: Table 33-13, Examples 33-1 and 33-2, Table 33-55 row 25, MTC at every
 * frequency, TSC and TMA, thresholds. VMX: test-vmx.c.
 */
#include <stdio.h>

#include "tests/model/rig.h"

#define CYCLES (CTL | VMPT_CTL_CYC_EN)

static void at(u64 cycles)
{
	rig_time(cycles, 0, 0);
}

static void jmp(u64 target)
{
	vmpt_unit_jmp_indirect(&rig.unit, target);
}

static void mov_cr3(void)
{
	struct vmpt_mode mode = rig.unit.mode;

	vmpt_unit_mov_cr3(&rig.unit, 0x402000, &mode);
}

/* ---- Table 33-13 ---- */

static const struct {
	unsigned int thresh; /* as CTL has it; in cycles after the row */
	const char *want[8];
} table_13[] = {
	{ 0,
	  { "CYC(100), TIP(0x402000)", "CYC(9), TIP(0x402000)", "CYC(6), TIP(0x402000)",
	    "CYC(15), TIP(0x402000)", "CYC(8), PIP(0x1000)", "CYC(8), TIP(0x402000)",
	    "CYC(18), TIP(0x402000)", "CYC(7), TIP(0x402000)" } }, /* 0 */
	{ 5,
	  { "CYC(100), TIP(0x402000)", "TIP(0x402000)", "TIP(0x402000)", "CYC(30), TIP(0x402000)",
	    "PIP(0x1000)", "CYC(16), TIP(0x402000)", "CYC(18), TIP(0x402000)",
	    "TIP(0x402000)" } }, /* 16 */
	{ 6,
	  { "CYC(100), TIP(0x402000)", "TIP(0x402000)", "TIP(0x402000)", "TIP(0x402000)",
	    "CYC(38), PIP(0x1000)", "TIP(0x402000)", "TIP(0x402000)",
	    "CYC(33), TIP(0x402000)" } }, /* 32 */
	{ 7,
	  { "CYC(100), TIP(0x402000)", "TIP(0x402000)", "TIP(0x402000)", "TIP(0x402000)",
	    "PIP(0x1000)", "TIP(0x402000)", "CYC(64), TIP(0x402000)", "TIP(0x402000)" } }, /* 64 */
};

START_TEST(t13_row)
{
	static const unsigned int times[] = { 0, 9, 15, 30, 38, 46, 64, 71 };
	unsigned int i;

	/* x: long enough after the last CYC, that is, after enabling */
	rig_on(CYCLES | (u64)table_13[_i].thresh << VMPT_CTL_CYC_THRESH_SHIFT);
	for (i = 0; i < VMPT_ARRAY_SIZE(times); i++) {
		at(100 + times[i]);
		if (times[i] == 38)
			mov_cr3();
		else
			jmp(0x402000);
		expect(table_13[_i].want[i]);
	}
}
END_TEST

/* N = 2^(CycThresh - 1) (Table 33-6): no CYC one cycle before, one at N. */
START_TEST(every_threshold)
{
	char want[60];
	unsigned int t;

	for (t = 1; t < 16; t++) {
		u64 n = 1ULL << (t - 1);

		rig_setup();
		rig_on(CYCLES | (u64)t << VMPT_CTL_CYC_THRESH_SHIFT);
		at(n - 1);
		jmp(0x402000);
		expect("TIP(0x402000)");
		at(n);
		jmp(0x402000);
		snprintf(want, sizeof(want), "CYC(%llu), TIP(0x402000)", (unsigned long long)n);
		expect(want);
		jmp(0x402000);
		expect("TIP(0x402000)"); /* one a cycle */
	}
}
END_TEST

/* ---- Examples 33-1 and 33-2 ---- */

#define X 77

START_TEST(example_1)
{
	rig_on(CYCLES);
	at(X);
	vmpt_unit_call_indirect(&rig.unit, 0x402002, 0x403000);
	expect("CYC(77), TIP(0x403000)");
	at(X + 2);
	vmpt_unit_call_indirect(&rig.unit, 0x403002, 0x404000);
	expect("CYC(2), TIP(0x404000)");
	at(X + 8);
	vmpt_unit_jcc(&rig.unit, false, 0x404002);
	expect("CYC(6)");
	at(X + 9);
	vmpt_unit_ret(&rig.unit, 0x403002);
	at(X + 12);
	vmpt_unit_jcc(&rig.unit, true, 0x403010);
	expect("");
	at(X + 16);
	vmpt_unit_ret(&rig.unit, 0x999999);
	expect("TNT(NTT), CYC(8), TIP(0x999999)");
	at(X + 4111);
	vmpt_unit_cyc(&rig.unit);
	expect("CYC(4095)");
	at(X + 12305);
	vmpt_unit_cyc(&rig.unit);
	expect("CYC(8194)");
	at(X + 16332);
	mov_cr3();
	expect("CYC(4027), PIP(0x1000)");
}
END_TEST

/* The sizes that the example's comments give. */
START_TEST(example_1_sizes)
{
	static const struct {
		u64 cycles, size;
	} row[] = { { 2, 1 }, { 6, 1 }, { 8, 1 }, { 4095, 2 }, { 8194, 3 }, { 4027, 2 } };
	size_t i;

	for (i = 0; i < VMPT_ARRAY_SIZE(row); i++) {
		rig_setup();
		rig_on(CYCLES);
		at(row[i].cycles);
		vmpt_unit_cyc(&rig.unit);
		ck_assert_uint_eq(rig.unit.used, row[i].size);
	}
}
END_TEST

/*
 * Packets, their order and their payloads are the example's. Its last time is not: PIP and
 * MODE.Exec have 10 and 20 cycles, which is x + 22 and x + 42, but it says x + 32.
 */
START_TEST(example_2_by_order)
{
	struct vmpt_now times[VMPT_FAR_TIMES] = {
		[VMPT_AT_PIP] = { .cycles = X + 22 },
		[VMPT_AT_EXEC] = { .cycles = X + 42 },
		[VMPT_AT_TARGET] = { .cycles = X + 42 },
	};
	struct vmpt_far far;

	rig_on(CYCLES);
	vmpt_unit_call(&rig.unit, 0x402004, 0x403000);
	at(X);
	vmpt_unit_jcc(&rig.unit, false, 0x403002);
	expect("CYC(77)");
	at(X + 2);
	vmpt_unit_ret(&rig.unit, 0x402004);
	at(X + 8);
	vmpt_unit_jcc(&rig.unit, true, 0x402008);
	at(X + 9);
	jmp(0x404000);
	expect("TNT(NTT), CYC(9), TIP(0x404000)");
	at(X + 12);
	vmpt_unit_jcc(&rig.unit, false, 0x404002);
	expect("CYC(3)");
	far = far_to(VMPT_FAR_SOFT_INT, 0x404002, 0x8000);
	far.cr3_written = true;
	far.mode.cr3 = 0x9000;
	far.mode.cs_l = false;
	far.times = times;
	rig_far(&far);
	expect("TNT(N), FUP(0x404002), CYC(10), PIP(0x9000), CYC(20), MODE.Exec(16), TIP(0x8000)");
}
END_TEST

/* A far transfer that begins 10 cycles from now and ends 20 later; ART ticks once per step. */
static void slow(unsigned int kind, bool cr3, bool cs)
{
	u64 cycles = rig.unit.now.cycles, art = rig.unit.now.art;
	struct vmpt_now times[VMPT_FAR_TIMES] = {
		[VMPT_AT_PIP] = { .cycles = cycles + 15, .art = art + 1 },
		[VMPT_AT_EXEC] = { .cycles = cycles + 22, .art = art + 2 },
		[VMPT_AT_TARGET] = { .cycles = cycles + 30, .art = art + 3 },
	};
	struct vmpt_far far = far_to(kind, 0x404002, 0x8000);

	far.cr3_written = cr3;
	far.mode.cr3 = cr3 ? 0x9000 : far.mode.cr3;
	far.mode.cs_l = !cs;
	far.times = times;
	rig_time(cycles + 10, 0, art);
	rig_far(&far);
	ck_assert_uint_eq(rig.unit.now.cycles, cycles + 30);
	ck_assert_uint_eq(rig.unit.now.art, art + 3);
}

/* 33.3.6.2: a CYC before each CYC-eligible packet of an event; the FUP is not eligible. */
START_TEST(time_passes_inside_an_event)
{
	rig_on(CYCLES);
	slow(VMPT_FAR_EXCEPTION, true, true);
	expect("FUP(0x404002), CYC(15), PIP(0x9000), CYC(7), MODE.Exec(16), CYC(8), TIP(0x8000)");
	/* time passes where a packet is missing, too */
	rig_setup();
	rig_on(CYCLES);
	slow(VMPT_FAR_EXCEPTION, false, false);
	expect("FUP(0x404002), CYC(30), TIP(0x8000)");
	/* 16 cycles between two CYCs (33.3.6.3) */
	rig_setup();
	rig_on(CYCLES | 5ULL << VMPT_CTL_CYC_THRESH_SHIFT);
	slow(VMPT_FAR_EXCEPTION, true, true);
	expect("FUP(0x404002), PIP(0x9000), CYC(22), MODE.Exec(16), TIP(0x8000)");
}
END_TEST

/* 33.4.1: timing packets may stand anywhere; a PSB+ waits until the event has ended. */
START_TEST(mtc_inside_an_event)
{
	rig_on(CTL | VMPT_CTL_MTC_EN);
	rig.unit.psb_due = true;
	slow(VMPT_FAR_EXCEPTION, true, true);
	expect("FUP(0x404002), MTC(1), PIP(0x9000), MTC(2), MODE.Exec(16), MTC(3), TIP(0x8000), "
	       "PSB, CBR(0), PIP(0x9000), MODE.TSX(), MODE.Exec(16), FUP(0x8000), PSBEND");
	/* the same where PacketEn is 0 after it: that PSB+ has no FUP */
	rig_setup();
	rig_wrmsr(VMPT_MSR_RTIT_ADDR0_A, 0x400000);
	rig_wrmsr(VMPT_MSR_RTIT_ADDR0_A + 1, 0x4fffff);
	rig_on(CTL | 1ULL << VMPT_CTL_ADDR_SHIFT(0));
	rig.unit.psb_due = true;
	slow(VMPT_FAR_EXCEPTION, true, true);
	expect("FUP(0x404002), PIP(0x9000), TIP.PGD(0x8000), PSB, CBR(0), PIP(0x9000), "
	       "MODE.TSX(), PSBEND");
}
END_TEST

/* Events with other packets, or none: the time is that of the event. */
START_TEST(time_of_other_kinds)
{
	struct vmpt_far far;

	rig_on(CYCLES);
	slow(VMPT_FAR_SMI, false, false);
	expect("FUP(0x404002), CYC(30), TIP.PGD()");
	slow(VMPT_FAR_RSM, false, false);
	expect("CBR(0), MODE.Exec(64), TIP.PGE(0x8000)");
	slow(VMPT_FAR_SHUTDOWN, false, false);
	expect("");
	rig_off(0x8000);
	rig_skip();
	slow(VMPT_FAR_BRANCH, false, false);
	expect("");
	rig_setup();
	rig_on(CYCLES);
	far = far_to(VMPT_FAR_INIT, 0x404002, 0);
	far.waits = true;
	far.cr3_written = true;
	far.mode.cr3 = 0;
	far.times = (const struct vmpt_now[VMPT_FAR_TIMES]){ { .cycles = 5 },
							     { .cycles = 6 },
							     { .cycles = 7 } };
	rig_far(&far);
	expect("FUP(0x404002), CYC(5), PIP(0x0)");
	ck_assert_uint_eq(rig.unit.now.cycles, 7);
}
END_TEST

/* Each packet that 33.3.6 lists, and MWAIT (33.4.2.23), has a CYC; others have none. */
START_TEST(cyc_eligible_packets)
{
	struct vmpt_mode mode = mode64(0, 0x3000);
	struct vmpt_unit_item item = { 1, 2 };

	rig_on(CYCLES | VMPT_CTL_PTW_EN | VMPT_CTL_PWR_EVT_EN | VMPT_CTL_TSC_EN);
	at(10);
	vmpt_unit_mov_cr3(&rig.unit, 0x402000, &mode);
	expect("CYC(10), PIP(0x3000)");
	at(20);
	vmpt_unit_tx_begin(&rig.unit, 0x402000);
	expect("CYC(10), MODE.TSX(InTX), FUP(0x402000)");
	at(30);
	vmpt_unit_vmptrld(&rig.unit, 0x5000);
	expect("CYC(10), VMCS(0x5000)");
	at(40);
	vmpt_unit_ptwrite(&rig.unit, 0, 1, 4);
	expect("CYC(10), PTW(4B,0x1)");
	at(50);
	vmpt_unit_mwait(&rig.unit, 0x402000, 0x20, 1, 3, 0);
	expect("CYC(10), MWAIT(0x20,1), PWRE(3,0), EXSTOP(IP), FUP(0x402000)");
	at(60);
	vmpt_unit_sleep(&rig.unit, 0x402000, false, 1, 0);
	expect("PWRE(1,0), CYC(10), EXSTOP(IP), FUP(0x402000)");
	at(70);
	vmpt_unit_wake(&rig.unit, 1, 1, 1);
	expect("CYC(10), TSC(0x0), CBR(20), PWRX(1,1,0x1)");
	at(80);
	vmpt_unit_block(&rig.unit, 4, 0, &item, 1, 0x402000);
	vmpt_unit_mnt(&rig.unit, 7);
	vmpt_unit_frequency(&rig.unit, 30);
	expect("BBP(8B,4), BIP(1,0x2), BEP(IP), FUP(0x402000), MNT(0x7), CBR(30)");
	rig_off(0x402010);
	expect("FUP(0x402010), CYC(10), TIP.PGD()");
	/* reset with TriggerEn (33.3.6.1) */
	at(1000);
	rig_on_shown(CYCLES);
	expect("CBR(30), MODE.Exec(64), TIP.PGE(0x401000)");
	vmpt_unit_cyc(&rig.unit);
	expect("");
}
END_TEST

/* CYC counts and is sent without ContextEn and FilterEn (33.3.6.1). */
START_TEST(cyc_without_context)
{
	rig_on(CYCLES & ~VMPT_CTL_OS);
	at(50);
	vmpt_unit_cyc(&rig.unit);
	expect("CYC(50)");
	rig_off(0);
	vmpt_unit_cyc(&rig.unit);
	rig_on(CTL);
	at(90);
	vmpt_unit_cyc(&rig.unit);
	expect("");
}
END_TEST

START_TEST(cyc_flushes_tnt)
{
	rig_on(CYCLES);
	at(3);
	vmpt_unit_jcc(&rig.unit, true, 0x402000);
	at(9);
	vmpt_unit_cyc(&rig.unit);
	expect("CYC(3), TNT(T), CYC(6)");
}
END_TEST

/* ---- MTC ---- */

START_TEST(mtc_at_every_frequency)
{
	char want[60];
	unsigned int f;

	for (f = 0; f < 16; f++) {
		u64 period = 1ULL << f, start = 250 * period;

		rig_setup();
		rig_time(0, 0, start + period - 1);
		rig_on(CTL | VMPT_CTL_MTC_EN | (u64)f << VMPT_CTL_MTC_FREQ_SHIFT);
		expect("");
		rig_time(0, 0, start + period);
		expect("MTC(251)");
		rig_time(0, 0, start + 2 * period - 1);
		expect("");
		rig_time(0, 0, start + 7 * period);
		snprintf(want, sizeof(want),
			 "MTC(252), MTC(253), MTC(254), MTC(255), MTC(0), "
			 "MTC(1)");
		expect(want);
	}
}
END_TEST

/* TSC and TMA show a decoder a gap of more than 255 periods. */
START_TEST(mtc_after_a_long_gap)
{
	rig_on(CTL | VMPT_CTL_MTC_EN | VMPT_CTL_TSC_EN);
	rig_time(0, 0x999, 256);
	expect("TSC(0x999), TMA(0x100,0)");
	rig_time(0, 0x999, 257);
	expect("MTC(1)");
}
END_TEST

START_TEST(mtc_with_cyc_and_tnt)
{
	rig_on(CYCLES | VMPT_CTL_MTC_EN);
	rig_time(5, 0, 0);
	vmpt_unit_jcc(&rig.unit, true, 0x402000);
	rig_time(9, 0, 1);
	expect("CYC(5), TNT(T), CYC(4), MTC(1)");
}
END_TEST

START_TEST(no_mtc_unless_enabled)
{
	rig_on(CTL);
	rig_time(0, 0, 100);
	expect("");
	rig_off(0x402000);
	rig_on(CTL | VMPT_CTL_MTC_EN);
	rig_off(0x402000);
	rig_skip();
	rig_time(0, 0, 1000);
	expect("");
}
END_TEST

/* ---- TSC, TMA, CBR ---- */

START_TEST(t55_row_25_wake)
{
	rig_on(CTL);
	rig_time(0, 0x1111, 0x2222);
	vmpt_unit_clock_resumed(&rig.unit);
	expect("CBR(20)");
	rig_off(0x402000);
	rig_on(CTL | VMPT_CTL_TSC_EN);
	vmpt_unit_clock_resumed(&rig.unit);
	expect("TSC(0x1111), CBR(20)");
	rig_off(0x402000);
	rig_on(CTL | VMPT_CTL_TSC_EN | VMPT_CTL_MTC_EN);
	vmpt_unit_clock_resumed(&rig.unit);
	expect("TSC(0x1111), TMA(0x2222,0), CBR(20)");
	rig_off(0x402000);
	rig_on(CTL | VMPT_CTL_MTC_EN);
	vmpt_unit_clock_resumed(&rig.unit);
	expect("CBR(20)");
	rig_off(0x402000);
	rig_skip();
	vmpt_unit_clock_resumed(&rig.unit);
	vmpt_unit_frequency(&rig.unit, 8);
	expect("");
	rig_on(CTL);
	vmpt_unit_frequency(&rig.unit, 40);
	expect("CBR(40)");
}
END_TEST

/* 7 bytes of the TSC, 16 bits of ART, 9 of the fast counter. */
START_TEST(payload_widths)
{
	struct vmpt_now now = {
		.tsc = 0xff12345678abcdef, .art = 0x123456789abcd, .fast = 0x1fe, .cbr = 255
	};

	vmpt_unit_time(&rig.unit, &now);
	rig_on(CTL | VMPT_CTL_TSC_EN | VMPT_CTL_MTC_EN);
	vmpt_unit_clock_resumed(&rig.unit);
	expect("TSC(0x12345678abcdef), TMA(0xabcd,510), CBR(255)");
	now.fast = 5000;
	vmpt_unit_time(&rig.unit, &now);
	vmpt_unit_clock_resumed(&rig.unit);
	expect("TSC(0x12345678abcdef), TMA(0xabcd,511), CBR(255)");
}
END_TEST

RIG_TABLE_SUITE("clock", t13_row, VMPT_ARRAY_SIZE(table_13), every_threshold, example_1,
		example_1_sizes, example_2_by_order, time_passes_inside_an_event,
		mtc_inside_an_event, time_of_other_kinds, cyc_eligible_packets, cyc_without_context,
		cyc_flushes_tnt, mtc_at_every_frequency, mtc_after_a_long_gap, mtc_with_cyc_and_tnt,
		no_mtc_unless_enabled, t55_row_25_wake, payload_widths)
