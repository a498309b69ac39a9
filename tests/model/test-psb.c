// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* model/psb.c: the packets of a PSB+ under all settings (33.3.7), and when it comes (33.4.2.17). */
#include <stdio.h>

#include "tests/model/rig.h"

/* One combination of the settings that affect a PSB+, and what 33.3.7 requires. */
static void one(unsigned int i)
{
	bool tsc = i & 1, mtc = i & 2, os = i & 4, context = i & 8, branch = i & 16;
	bool filter = i & 32, nonroot = i & 64, conceal = i & 128, vmx = i & 256;
	bool packet = context && filter && branch, nr = vmx && nonroot && !conceal;
	struct vmpt_unit *u = &rig.unit;
	char want[300];
	u64 ctl;

	ctl = VMPT_CTL_USER | (os ? VMPT_CTL_OS : 0) | (tsc ? VMPT_CTL_TSC_EN : 0) |
	      (mtc ? VMPT_CTL_MTC_EN : 0) | (branch ? VMPT_CTL_BRANCH_EN : 0) |
	      VMPT_CTL_CR3_FILTER | 1ULL << VMPT_CTL_ADDR_SHIFT(0);
	rig_setup();
	u->mode.cpl = 3;
	u->in_tx = i & 512;
	if (vmx)
		vmpt_unit_vmxon(u, true, 0);
	vmpt_unit_vmptrld(u, 0x5000);
	u->vmx.nonroot = vmx && nonroot;
	u->vmx.conceal_exec = conceal;
	rig_wrmsr(VMPT_MSR_RTIT_CR3_MATCH, context ? 0x1000 : 0x2000);
	rig_wrmsr(VMPT_MSR_RTIT_ADDR0_A, filter ? ON_NEXT : 0x800000);
	rig_wrmsr(VMPT_MSR_RTIT_ADDR0_A + 1, 0x900000);
	rig_time(0, 0x77, 0x88);
	rig_on(ctl);
	u->psb_due = true;
	vmpt_unit_jmp(u, filter ? ON_NEXT : 0x700000);
	if (u->psb_due) /* where PacketEn = 0: with the next timing packet */
		rig_time(0, 0x77, 0x88);
	snprintf(want, sizeof(want), "PSB, %s%sCBR(20), %s%s%s%s%sPSBEND", tsc ? "TSC(0x77), " : "",
		 tsc && mtc ? "TMA(0x88,0), " : "",
		 !(context && os) ? ""
		 : nr		  ? "PIP(0x1000,NR), "
				  : "PIP(0x1000), ",
		 vmx && (!nonroot || !conceal) ? "VMCS(0x5000), " : "",
		 !(context && branch) ? ""
		 : i & 512	      ? "MODE.TSX(InTX), "
				      : "MODE.TSX(), ",
		 packet ? "MODE.Exec(64), " : "", packet ? "FUP(0x401000), " : "");
	expect(want);
}

START_TEST(contents_under_all_settings)
{
	unsigned int i;

	for (i = 0; i < 1024; i++)
		one(i);
}
END_TEST

/* TraceEn 0 to 1: PSB+ if PacketByteCnt = 0, else timing only (33.2.8.3). */
START_TEST(at_enabling)
{
	rig_on_shown(CTL | VMPT_CTL_TSC_EN);
	expect("PSB, TSC(0x0), CBR(20), PIP(0x1000), MODE.TSX(), PSBEND, MODE.Exec(64), "
	       "TIP.PGE(0x401000)");
	rig_off(0x402000);
	rig_skip();
	rig_on_shown(CTL | VMPT_CTL_TSC_EN);
	expect("TSC(0x0), CBR(20), MODE.Exec(64), TIP.PGE(0x401000)");
	rig_off(0x402000);
	rig_skip();
	rig_wrmsr(VMPT_MSR_RTIT_STATUS, 0);
	rig_on_shown(CTL);
	expect("PSB, CBR(20), PIP(0x1000), MODE.TSX(), PSBEND, MODE.Exec(64), TIP.PGE(0x401000)");
}
END_TEST

/* A processor without PacketByteCnt: always. */
START_TEST(at_enabling_without_byte_count)
{
	vmpt_pt_cap_set(&rig.config.cpuid, VMPT_CAP_PSB_CYC, 0);
	rig_init();
	rig_on(CTL);
	rig_off(0x402000);
	rig_skip();
	rig_on_shown(CTL);
	expect("PSB, CBR(20), PIP(0x1000), MODE.TSX(), PSBEND, MODE.Exec(64), TIP.PGE(0x401000)");
	ck_assert_uint_eq(vmpt_pt_packet_bytes(&rig.unit.regs), 0);
}
END_TEST

/* Bytes between two PSBs: 2K << PSBFreq and not a TIP more, at the highest frequencies. */
START_TEST(cadence)
{
	unsigned int f, n;

	for (f = 0; f < 8; f++) {
		size_t period = 2048u << f, total = 0, sent = 0, psb = 0;

		rig_setup();
		rig_on(CTL | (u64)f << VMPT_CTL_PSB_FREQ_SHIFT);
		for (n = 0; n < 4 * period && psb < 2; n++) {
			rig.size = 0;
			vmpt_unit_jmp_indirect(&rig.unit, n & 1 ? 0x402000 : 0x7fff00000000);
			vmpt_unit_flush(&rig.unit);
			total += rig.size;
			if (rig.size < 20)
				continue;
			/* from PSB to PSB, the PSB+ being as long each time */
			if (psb++) {
				ck_assert_uint_ge(total - sent, period);
				ck_assert_uint_lt(total - sent, period + 7);
			}
			sent = total;
		}
		ck_assert_uint_eq(psb, 2);
	}
}
END_TEST

/* PacketByteCnt counts all bytes from the PSB on, the PSB included, modulo 2^17. */
START_TEST(packet_byte_cnt)
{
	rig_on(CTL);
	/* PSB 16, CBR 4, PIP 8, MODE.TSX 2, PSBEND 2, MODE.Exec 2, TIP.PGE with 32 bits 5 */
	ck_assert_uint_eq(rig.size, 39);
	ck_assert_uint_eq(vmpt_pt_packet_bytes(&rig.unit.regs), 39);
	vmpt_unit_overflow(&rig.unit);
	vmpt_unit_jmp_indirect(&rig.unit, 0x500000);
	ck_assert_uint_eq(vmpt_pt_packet_bytes(&rig.unit.regs), 39); /* 33.3.8.1 */
}
END_TEST

/* The next enabling keeps PacketByteCnt. */
START_TEST(cadence_goes_on_over_disabling)
{
	rig_wrmsr(VMPT_MSR_RTIT_STATUS, 2040ULL << 32);
	rig_on_shown(CTL);
	expect("CBR(20), MODE.Exec(64), TIP.PGE(0x401000)");
	vmpt_unit_jmp(&rig.unit, 0x402000);
	expect("PSB, CBR(20), PIP(0x1000), MODE.TSX(), MODE.Exec(64), FUP(0x402000), PSBEND");
}
END_TEST

/* PendPSB (33.2.8.4): set when due, cleared by the PSB+, which a later enabling makes. */
START_TEST(pend_psb)
{
	u64 ctl = CTL | VMPT_CTL_INJECT;

	rig_wrmsr(VMPT_MSR_RTIT_STATUS, 2046ULL << 32);
	rig_on(ctl); /* 4 + 2 + 7 bytes: due, but no branch that it could follow */
	ck_assert_uint_ne(rig_rdmsr(VMPT_MSR_RTIT_STATUS) & VMPT_STATUS_PEND_PSB, 0);
	rig_off(0x402000);
	ck_assert_uint_ne(rig_rdmsr(VMPT_MSR_RTIT_STATUS) & VMPT_STATUS_PEND_PSB, 0);
	rig_skip();
	rig_on_shown(ctl);
	expect("PSB, CBR(20), PIP(0x1000), MODE.TSX(), PSBEND, MODE.Exec(64), TIP.PGE(0x401000)");
	ck_assert_uint_eq(rig_rdmsr(VMPT_MSR_RTIT_STATUS) & VMPT_STATUS_PEND_PSB, 0);
	/* not without InjectPsbPmiOnEnable either */
	rig_off(0x402000);
	rig_wrmsr(VMPT_MSR_RTIT_STATUS, 2046ULL << 32);
	rig_on(CTL);
	rig_off(0x402000);
	ck_assert_uint_eq(rig_rdmsr(VMPT_MSR_RTIT_STATUS) & VMPT_STATUS_PEND_PSB, 0);
	rig_wrmsr(VMPT_MSR_RTIT_STATUS, VMPT_STATUS_PEND_PSB | 40ULL << 32);
	rig_skip();
	rig_on_shown(CTL);
	expect("CBR(20), MODE.Exec(64), TIP.PGE(0x401000)");
}
END_TEST

static bool pends(void)
{
	return rig_rdmsr(VMPT_MSR_RTIT_STATUS) & VMPT_STATUS_PEND_PSB;
}

/* InjectPsbPmiOnEnable = 0: STATUS[6] is ignored (Table 33-6), and stays as software wrote it. */
START_TEST(da_pend_psb_is_ignored_without_inject)
{
	int pending;

	for (pending = 0; pending < 2; pending++) {
		rig_setup();
		rig_wrmsr(VMPT_MSR_RTIT_STATUS, pending ? VMPT_STATUS_PEND_PSB : 0);
		rig_on_shown(CTL); /* PacketByteCnt is 0 */
		expect("PSB, CBR(20), PIP(0x1000), MODE.TSX(), PSBEND, MODE.Exec(64), "
		       "TIP.PGE(0x401000)");
		ck_assert_int_eq(pends(), pending);
		rig.unit.psb_due = true;
		vmpt_unit_jmp(&rig.unit, 0x402000);
		expect("PSB, CBR(20), PIP(0x1000), MODE.TSX(), MODE.Exec(64), FUP(0x402000), "
		       "PSBEND");
		ck_assert_int_eq(pends(), pending);
	}
}
END_TEST

/* PendPSB is cleared "when the PSB+ has been inserted into the trace" (Table 33-7), not before. */
START_TEST(da_pend_psb_until_the_psb_is_stored)
{
	unsigned int i;

	/*
	 * The enabling makes 13 bytes, so after 977 more the PSB+ is due, and 41 bytes do not fit
	 * into what the buffer of 1024 then has left.
	 */
	rig_wrmsr(VMPT_MSR_RTIT_STATUS, (2048ULL - 990) << 32);
	rig_on(CTL | VMPT_CTL_INJECT);
	ck_assert(!pends());
	rig.refuse = -1;
	for (i = 0; i < VMPT_UNIT_BUFFER && !rig.unit.in_overflow; i++)
		vmpt_unit_jmp_indirect(&rig.unit, i & 1 ? 0x402000 : 0x402800);
	ck_assert(rig.unit.in_overflow);
	ck_assert_uint_ge(rig.unit.used, 977 + 16); /* PSB is in the buffer, PSBEND is not */
	ck_assert(pends());
	rig.refuse = 0;
	vmpt_unit_overflow_resolve(&rig.unit, 0x402000);
	ck_assert_ptr_nonnull(strstr(rig_text(), "OVF, FUP(0x402000), PSB, CBR(20), PIP(0x1000), "
						 "MODE.TSX(), MODE.Exec(64), FUP(0x402000), "
						 "PSBEND"));
	ck_assert(!pends());
}
END_TEST

/* The same PSB+ cut off by a ToPA STOP: the next enabling inserts it. */
START_TEST(da_pend_psb_after_a_topa_stop)
{
	const u64 entry = 0x2000 | VMPT_TOPA_STOP, end = 0x1000 | VMPT_TOPA_END;
	u64 ctl = CTL | VMPT_CTL_TOPA | VMPT_CTL_INJECT;
	unsigned int i;

	memcpy(rig.ram + 0x1000, &entry, 8);
	memcpy(rig.ram + 0x1008, &end, 8);
	rig.config.sink = NULL;
	rig.config.memory = &rig.memory;
	rig_init();
	rig_wrmsr(VMPT_MSR_RTIT_OUTPUT_BASE, 0x1000);
	rig_wrmsr(VMPT_MSR_RTIT_OUTPUT_MASK_PTRS, (0x1000ULL - 900) << 32 | 0x7f);
	rig_wrmsr(VMPT_MSR_RTIT_STATUS, (2048ULL - 990) << 32);
	rig_on(ctl); /* 13 of the region's 900 bytes */
	for (i = 0; i < VMPT_UNIT_BUFFER && rig.unit.trigger_en; i++)
		vmpt_unit_jmp_indirect(&rig.unit, i & 1 ? 0x402000 : 0x402800);
	ck_assert_uint_ne(rig_rdmsr(VMPT_MSR_RTIT_STATUS) & VMPT_STATUS_STOPPED, 0);
	ck_assert_uint_eq(rig.size, 900);
	ck_assert(pends());
	rig.shown = rig.size; /* the STOP cut a packet off */
	rig_off(0x402000);
	rig_wrmsr(VMPT_MSR_RTIT_OUTPUT_MASK_PTRS, 0x7f);
	rig_wrmsr(VMPT_MSR_RTIT_STATUS, VMPT_STATUS_PEND_PSB | 40ULL << 32);
	rig_on_shown(ctl);
	expect("PSB, CBR(20), PIP(0x1000), MODE.TSX(), PSBEND, MODE.Exec(64), TIP.PGE(0x401000)");
	ck_assert(!pends());
}
END_TEST

/* Enabled while an overflow lasts, with PacketEn = 0: the PSB+ comes when there is room. */
START_TEST(da_pend_psb_enabled_in_an_overflow)
{
	u64 ctl = (CTL & ~VMPT_CTL_OS) | VMPT_CTL_INJECT;
	unsigned int i;

	rig_on(CTL);
	rig.refuse = -1;
	for (i = 0; i < VMPT_UNIT_BUFFER && !rig.unit.in_overflow; i++)
		vmpt_unit_jmp_indirect(&rig.unit, 0x402000);
	rig_off(0x402000);
	rig_wrmsr(VMPT_MSR_RTIT_STATUS, VMPT_STATUS_PEND_PSB | 40ULL << 32);
	rig_wrmsr(VMPT_MSR_RTIT_CTL, ctl | VMPT_CTL_TRACE_EN);
	ck_assert(rig.unit.in_overflow);
	ck_assert(pends());
	rig.refuse = 0;
	vmpt_unit_overflow_resolve(&rig.unit, 0x402000);
	ck_assert_ptr_nonnull(strstr(rig_text(), "OVF, PSB, CBR(20), PSBEND"));
	ck_assert(!pends());
}
END_TEST

/* A PSB+ without PacketEn needs no IP and comes also when nothing branches. */
START_TEST(with_timing_only)
{
	u64 art;

	rig_on(VMPT_CTL_BRANCH_EN | VMPT_CTL_MTC_EN);
	for (art = 1; art < 1000; art++)
		rig_time(0, 0, art);
	rig_skip();
	for (; art < 1040; art++)
		rig_time(0, 0, art);
	ck_assert_ptr_nonnull(strstr(rig_text(), ", PSB, CBR(20), PSBEND, MTC("));
}
END_TEST

/* Where the next IP is not known a PSB+ waits; it is not put between an event's packets. */
START_TEST(waits_for_an_ip)
{
	rig_on(CTL | VMPT_CTL_PTW_EN | VMPT_CTL_FUP_ON_PTW);
	rig.unit.psb_due = true;
	vmpt_unit_ptwrite(&rig.unit, 0x402000, 5, 4);
	vmpt_unit_tx_begin(&rig.unit, 0x402004);
	expect("PTW(IP,4B,0x5), FUP(0x402000), MODE.TSX(InTX), FUP(0x402004)");
	vmpt_unit_jcc(&rig.unit, true, 0x402010);
	expect("TNT(T), PSB, CBR(20), PIP(0x1000), MODE.TSX(InTX), MODE.Exec(64), FUP(0x402010), "
	       "PSBEND");
	rig.unit.psb_due = true;
	vmpt_unit_tx_abort(&rig.unit, 0x402014, 0x402020);
	expect("MODE.TSX(TXAbort), FUP(0x402014), TIP(0x402020), PSB, CBR(20), PIP(0x1000), "
	       "MODE.TSX(), MODE.Exec(64), FUP(0x402020), PSBEND");
}
END_TEST

/* After a MOV CR3, and without PacketEn after packets that have no next IP. */
START_TEST(after_other_events)
{
	struct vmpt_mode mode = mode64(0, 0x2000);
	u64 ctl = VMPT_CTL_OS | VMPT_CTL_PTW_EN | VMPT_CTL_EVENT_EN;

	rig_on(CTL);
	rig.unit.psb_due = true;
	vmpt_unit_mov_cr3(&rig.unit, 0x402000, &mode);
	expect("PIP(0x2000), PSB, CBR(20), PIP(0x2000), MODE.TSX(), MODE.Exec(64), "
	       "FUP(0x402000), PSBEND");
	rig_off(0x402000);
	rig_on(ctl);
	rig.unit.psb_due = true;
	vmpt_unit_ptwrite(&rig.unit, 0x402000, 5, 4);
	expect("PTW(4B,0x5), PSB, CBR(20), PIP(0x2000), PSBEND");
	rig.unit.psb_due = true;
	vmpt_unit_set_if(&rig.unit, 0x402000, true);
	expect("MODE.Exec(64,IF), FUP(0x402000), PSB, CBR(20), PIP(0x2000), PSBEND");
	rig.unit.psb_due = true;
	vmpt_unit_block(&rig.unit, 1, 0, NULL, 0, 0x402000);
	expect("BBP(8B,1), BEP(IP), FUP(0x402000), PSB, CBR(20), PIP(0x2000), PSBEND");
}
END_TEST

RIG_SUITE("psb", after_other_events, contents_under_all_settings, at_enabling,
	  at_enabling_without_byte_count, cadence, packet_byte_cnt, cadence_goes_on_over_disabling,
	  pend_psb, with_timing_only, waits_for_an_ip, da_pend_psb_is_ignored_without_inject,
	  da_pend_psb_until_the_psb_is_stored, da_pend_psb_after_a_topa_stop,
	  da_pend_psb_enabled_in_an_overflow)
