// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* model/: overflow of the internal buffer (33.3.8), by injection and by a sink that refuses. */
#include "tests/model/rig.h"

static void jmp(u64 target)
{
	vmpt_unit_jmp_indirect(&rig.unit, target);
}

static void resolve(u64 ip)
{
	vmpt_unit_overflow_resolve(&rig.unit, ip);
}

START_TEST(with_packet_en)
{
	rig_on(CTL);
	vmpt_unit_jcc(&rig.unit, true, 0x402000); /* pending, is lost */
	vmpt_unit_overflow(&rig.unit);
	jmp(0x403000);
	vmpt_unit_jcc(&rig.unit, true, 0x404000);
	expect("");
	resolve(0x404000);
	expect("OVF, FUP(0x404000)");
	jmp(0x405000);
	expect("TIP(0x405000)");
	ck_assert_uint_eq(rig.unit.overflows, 1);
}
END_TEST

/* The first IP after it is whole: what went before may be lost (33.3.8). */
START_TEST(ip_after_it_is_whole)
{
	rig_on(CTL);
	vmpt_unit_overflow(&rig.unit);
	resolve(0x401000);
	expect("OVF, FUP(0x401000)");
	/* OVF 2 bytes, FUP 7 */
	ck_assert_uint_eq(rig.bytes[rig.size - 7], 0x7d);
}
END_TEST

START_TEST(waiting_bits_are_lost)
{
	rig_on(CTL);
	vmpt_unit_jcc(&rig.unit, true, 0x402000);
	vmpt_unit_overflow(&rig.unit);
	resolve(0x402000);
	expect("OVF, FUP(0x402000)");
}
END_TEST

START_TEST(without_packet_en)
{
	struct vmpt_far far;

	rig_on(CTL & ~VMPT_CTL_USER);
	vmpt_unit_overflow(&rig.unit);
	far = far_to(VMPT_FAR_BRANCH, 0x402000, 0x403000);
	far.mode.cpl = 3;
	rig_far(&far);
	resolve(0x403000);
	expect("OVF");
	far.mode.cpl = 0;
	rig_far(&far);
	expect("TIP.PGE(0x403000)");
}
END_TEST

START_TEST(without_branch_en)
{
	rig_on(CTL & ~VMPT_CTL_BRANCH_EN);
	vmpt_unit_overflow(&rig.unit);
	resolve(0x403000);
	expect("OVF");
}
END_TEST

/* The enables still change; a PSB+ has the state that the decoder missed (CR3, mode, VMCS, TSX). */
START_TEST(lost_state_is_sent)
{
	struct vmpt_mode mode = mode64(0, 0x9000);
	struct vmpt_far far;
	unsigned int i;

	for (i = 0; i < 4; i++) {
		const char *text;

		rig_setup();
		rig_on(CTL);
		vmpt_unit_overflow(&rig.unit);
		if (i == 0) {
			vmpt_unit_mov_cr3(&rig.unit, 0x402000, &mode);
		} else if (i == 1) {
			far = far_to(VMPT_FAR_BRANCH, 0x402000, 0x403000);
			far.mode.cs_l = false;
			rig_far(&far);
		} else if (i == 2) {
			vmpt_unit_vmptrld(&rig.unit, 0x5000);
		} else {
			vmpt_unit_tx_begin(&rig.unit, 0x402000);
		}
		resolve(0x403000);
		text = rig_text();
		if (i == 0)
			ck_assert_str_eq(text, "OVF, FUP(0x403000), PSB, CBR(20), PIP(0x9000), "
					       "MODE.TSX(), MODE.Exec(64), FUP(0x403000), PSBEND");
		else if (i == 1)
			ck_assert_str_eq(text, "OVF, FUP(0x403000), PSB, CBR(20), PIP(0x1000), "
					       "MODE.TSX(), MODE.Exec(16), FUP(0x403000), PSBEND");
		else if (i == 2)
			ck_assert_ptr_nonnull(strstr(text, "PSB, "));
		else
			ck_assert_ptr_nonnull(strstr(text, "MODE.TSX(InTX)"));
	}
}
END_TEST

/* A mode that changed while the TIP.PGE was lost is sent at the next one. */
START_TEST(lost_mode_out_of_context)
{
	struct vmpt_far far;

	rig_on(CTL & ~VMPT_CTL_USER);
	vmpt_unit_overflow(&rig.unit);
	far = far_to(VMPT_FAR_BRANCH, 0x402000, 0x403000);
	far.mode.cs_l = false;
	far.mode.cpl = 3;
	rig_far(&far);
	resolve(0x403000);
	far.mode.cpl = 0;
	rig_far(&far);
	expect("OVF, MODE.Exec(16), TIP.PGE(0x403000)");
}
END_TEST

/* Timing packets are dropped, the CYC of the OVF gives its length (33.3.8.2). */
START_TEST(timing)
{
	rig_on(CTL | VMPT_CTL_CYC_EN | VMPT_CTL_MTC_EN);
	rig_time(10, 0, 0);
	jmp(0x402000);
	rig_skip();
	vmpt_unit_overflow(&rig.unit);
	rig_time(500, 0, 1);
	vmpt_unit_cyc(&rig.unit);
	jmp(0x402000);
	rig_time(1010, 0, 2);
	resolve(0x402000);
	expect("CYC(1000), OVF, FUP(0x402000)");
	rig_time(1011, 0, 3);
	expect("CYC(1), MTC(3)");
}
END_TEST

/* TraceStop is not dropped but signalled once the overflow has resolved (33.2.5.3). */
START_TEST(tracestop_in_an_overflow)
{
	rig_wrmsr(VMPT_MSR_RTIT_ADDR0_A, 0x410000);
	rig_wrmsr(VMPT_MSR_RTIT_ADDR0_A + 1, 0x41ffff);
	rig_on(CTL | 2ULL << VMPT_CTL_ADDR_SHIFT(0));
	vmpt_unit_overflow(&rig.unit);
	vmpt_unit_jmp(&rig.unit, 0x410000);
	vmpt_unit_jmp(&rig.unit, 0x401000); /* and out again */
	resolve(0x401000);
	expect("OVF, TraceStop");
	ck_assert_uint_ne(rig_rdmsr(VMPT_MSR_RTIT_STATUS) & VMPT_STATUS_STOPPED, 0);
	jmp(0x402000);
	expect("");
}
END_TEST

START_TEST(nothing_to_resolve)
{
	vmpt_unit_overflow(&rig.unit);
	resolve(0x401000);
	rig_on(CTL);
	resolve(0x401000);
	expect("");
	ck_assert_uint_eq(rig.unit.overflows, 0);
}
END_TEST

/* Disabling during the overflow marks the loss, or a later enabling does. */
START_TEST(disabled_in_an_overflow)
{
	rig_on(CTL);
	vmpt_unit_overflow(&rig.unit);
	rig_off(0x402000);
	expect("OVF");
	rig_on_shown(CTL);
	expect("CBR(20), MODE.Exec(64), TIP.PGE(0x401000)");
}
END_TEST

/* ---- a sink that refuses ---- */

/* Fill the buffer until it overflows. */
static void fill(void)
{
	unsigned int i;

	for (i = 0; i < VMPT_UNIT_BUFFER && !rig.unit.in_overflow; i++)
		jmp(i & 1 ? 0x402000 : 0x7fff00000000);
	ck_assert(rig.unit.in_overflow);
}

START_TEST(refusing_sink)
{
	const char *text;
	u64 taken;

	rig_on(CTL);
	taken = rig.unit.bytes;
	rig.refuse = -VMPT_E_SPACE;
	jmp(0x402000);
	ck_assert_int_eq(vmpt_unit_flush(&rig.unit), -VMPT_E_SPACE);
	ck_assert_uint_eq(rig.unit.bytes, taken);
	rig.refuse = 0;
	expect("TIP(0x402000)"); /* nothing is lost while the buffer holds it */
	rig.refuse = -VMPT_E_SPACE;
	fill();
	jmp(0x402000);
	resolve(0x403000); /* no room yet: the overflow goes on */
	ck_assert(rig.unit.in_overflow);
	ck_assert_uint_eq(rig.unit.overflows, 0);
	rig.refuse = 0;
	resolve(0x403000);
	text = rig_text();
	ck_assert_str_eq(text + strlen(text) - strlen("OVF, FUP(0x403000)"), "OVF, FUP(0x403000)");
	ck_assert_uint_eq(rig.unit.overflows, 1);
	ck_assert_uint_eq(rig.unit.bytes, rig.size);
}
END_TEST

/* The sink refuses across disabling and enabling: one OVF, and all before it is complete. */
START_TEST(refusing_sink_over_disabling)
{
	const char *text;

	rig_on(CTL);
	rig.refuse = -1;
	fill();
	rig_off(0x402000);
	rig_on(CTL);
	jmp(0x403000);
	ck_assert(rig.unit.in_overflow);
	rig.refuse = 0;
	resolve(0x403000);
	text = strstr(rig_text(), "OVF");
	ck_assert_ptr_nonnull(text);
	ck_assert_str_eq(text, "OVF, FUP(0x403000), PSB, CBR(20), PIP(0x1000), MODE.TSX(), "
			       "MODE.Exec(64), FUP(0x403000), PSBEND");
}
END_TEST

START_TEST(sink_recovers_while_disabled)
{
	const char *text;

	rig_on(CTL);
	rig.refuse = -1;
	fill();
	rig_off(0x402000);
	rig.refuse = 0;
	rig_on(CTL);
	jmp(0x403000);
	text = strstr(rig.text, "OVF");
	ck_assert_ptr_nonnull(text);
	ck_assert_str_eq(text, "OVF, CBR(20), MODE.Exec(64), TIP.PGE(0x401000)");
	expect("TIP(0x403000)");
}
END_TEST

/* The sink refuses at disabling only: the bytes come before the next ones. */
START_TEST(bytes_wait_over_disabling)
{
	rig_on(CTL);
	rig.refuse = -1;
	rig_off(0x402000);
	rig.refuse = 0;
	rig_on_shown(CTL);
	expect("FUP(0x402000), TIP.PGD(), CBR(20), MODE.Exec(64), TIP.PGE(0x401000)");
}
END_TEST

/* PSB+ lost in the middle: it comes again after the OVF. */
START_TEST(psb_lost_in_the_middle)
{
	const char *text;

	rig_on(CTL);
	rig.refuse = -1;
	while (rig.unit.used < VMPT_UNIT_BUFFER - 40)
		jmp(rig.unit.used & 1 ? 0x402000 : 0x402800);
	rig.unit.psb_due = true;
	vmpt_unit_jmp(&rig.unit, 0x402000);
	ck_assert(rig.unit.in_overflow);
	rig.refuse = 0;
	resolve(0x402000);
	text = strstr(rig_text(), "OVF");
	ck_assert_ptr_nonnull(text);
	ck_assert_str_eq(text, "OVF, FUP(0x402000), PSB, CBR(20), PIP(0x1000), MODE.TSX(), "
			       "MODE.Exec(64), FUP(0x402000), PSBEND");
}
END_TEST

RIG_SUITE("overflow", with_packet_en, waiting_bits_are_lost, ip_after_it_is_whole,
	  without_packet_en, without_branch_en, lost_state_is_sent, lost_mode_out_of_context,
	  timing, tracestop_in_an_overflow, nothing_to_resolve, disabled_in_an_overflow,
	  refusing_sink, refusing_sink_over_disabling, sink_recovers_while_disabled,
	  bytes_wait_over_disabling, psb_lost_in_the_middle)
