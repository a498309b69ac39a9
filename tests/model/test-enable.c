// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * model/enable.c: the enables of 33.2.6, filters by CPL, CR3 and IP, TraceStop; Table 33-2
 * and Table 33-56 cases 1 to 10 (VMX: test-vmx.c).
 */
#include "tests/model/rig.h"

#define ADDR_A(n) (VMPT_MSR_RTIT_ADDR0_A + 2 * (n))
#define ADDR_B(n) (ADDR_A(n) + 1)
#define FILTER(n) (1ULL << VMPT_CTL_ADDR_SHIFT(n))
#define STOP(n)	  (2ULL << VMPT_CTL_ADDR_SHIFT(n))

#define BASE  0x410000
#define LIMIT 0x41ffff

static void range(unsigned int n, u64 base, u64 limit)
{
	rig_wrmsr(ADDR_A(n), base);
	rig_wrmsr(ADDR_B(n), limit);
}

static void far_cpl(unsigned int kind, unsigned int cpl)
{
	struct vmpt_far far = far_to(kind, 0x402000, 0x403000);

	far.mode.cpl = (u8)cpl;
	rig_far(&far);
}

static u64 enables(void)
{
	return rig_rdmsr(VMPT_MSR_RTIT_STATUS) & VMPT_STATUS_READ_ONLY;
}

/* ---- Table 33-2 ---- */

START_TEST(t2_ip_filtering)
{
	range(0, BASE, LIMIT);
	rig_on(CTL | FILTER(0));
	vmpt_unit_jmp(&rig.unit, BASE);
	/* the table leaves out the mode, which the first TIP.PGE of a trace gives (33.4.2.8) */
	expect("MODE.Exec(64), TIP.PGE(0x410000)");
	vmpt_unit_jcc(&rig.unit, false, BASE + 4);
	vmpt_unit_jmp(&rig.unit, LIMIT + 1);
	expect("TNT(N), TIP.PGD(0x420000)");
	vmpt_unit_jcc(&rig.unit, true, LIMIT + 0x100);
	expect("");
}
END_TEST

/* ---- Table 33-56 ---- */

#define TIMED (CTL | VMPT_CTL_TSC_EN | VMPT_CTL_MTC_EN)

/* TraceEn was set once: the PSB+, which the table leaves out, is already sent. */
static void enabled_before(u64 ctl)
{
	rig_time(0, 0x1234, 0x5600);
	rig_on(ctl);
	rig_off(0x400100);
	rig_skip();
}

/*
 * The row has a MODE.Exec too, and PacketEn 1 where ContextEn is 0. Neither is possible (33.2.6.1,
 * 33.2.6.3): there is no IP packet for it to precede (33.4.2.8). The TIP.PGE has it.
 */
START_TEST(t56_case_1_enable_out_of_context)
{
	rig.unit.mode.cpl = 3;
	enabled_before(TIMED & ~VMPT_CTL_USER);
	rig_on_shown(TIMED & ~VMPT_CTL_USER);
	expect("TSC(0x1234), TMA(0x5600,0), CBR(20)");
	far_cpl(VMPT_FAR_BRANCH, 0);
	expect("MODE.Exec(64), TIP.PGE(0x403000)");
}
END_TEST

START_TEST(t56_case_2_enable)
{
	enabled_before(TIMED);
	rig_on_shown(TIMED);
	expect("TSC(0x1234), TMA(0x5600,0), CBR(20), MODE.Exec(64), TIP.PGE(0x401000)");
	rig_setup();
	enabled_before(CTL);
	rig_on_shown(CTL);
	expect("CBR(20), MODE.Exec(64), TIP.PGE(0x401000)");
}
END_TEST

START_TEST(t56_case_3_disable)
{
	rig_on(CTL);
	rig_off(0x402000);
	expect("FUP(0x402000), TIP.PGD()");
	ck_assert_uint_eq(rig_rdmsr(VMPT_MSR_RTIT_CTL), CTL);
	ck_assert(!rig.unit.packet_en);
}
END_TEST

START_TEST(t56_case_4_branch_out_of_range)
{
	range(0, 0x401000, LIMIT);
	rig_on(CTL | FILTER(0));
	vmpt_unit_jmp_indirect(&rig.unit, LIMIT + 1);
	expect("TIP.PGD(0x420000)");
}
END_TEST

START_TEST(t56_case_5_into_the_range)
{
	struct vmpt_far far;

	range(0, BASE, LIMIT);
	rig_on(CTL | FILTER(0));
	vmpt_unit_jmp_indirect(&rig.unit, LIMIT);
	expect("MODE.Exec(64), TIP.PGE(0x41ffff)"); /* the first since the enable (33.4.2.8) */
	vmpt_unit_jmp(&rig.unit, 0x401000);
	rig_skip();
	far = far_to(VMPT_FAR_INTERRUPT, 0x401004, BASE);
	rig_far(&far);
	expect("TIP.PGE(0x410000)");
	vmpt_unit_jmp(&rig.unit, 0x401000);
	rig_skip();
	far = far_to(VMPT_FAR_EEXIT, 0x401004, BASE + 1);
	rig_far(&far);
	expect("TIP.PGE(0x410001)");
	vmpt_unit_jmp(&rig.unit, 0x401000);
	rig_skip();
	vmpt_unit_jcc(&rig.unit, true, BASE);
	expect("TIP.PGE(0x410000)");
}
END_TEST

START_TEST(t56_case_6_far_branch_out_of_context)
{
	struct vmpt_far far;

	rig_on(CTL & ~VMPT_CTL_USER);
	far_cpl(VMPT_FAR_BRANCH, 3);
	expect("TIP.PGD()");
	far_cpl(VMPT_FAR_BRANCH, 0);
	expect("TIP.PGE(0x403000)");
	/* an enclave that opted out: its entry has a FUP, as cases 7 and 8 */
	far = far_to(VMPT_FAR_EENTER, 0x403010, 0x7000);
	far.mode.enclave = true;
	rig_far(&far);
	expect("FUP(0x403010), TIP.PGD()");
}
END_TEST

START_TEST(t56_case_7_interrupt_out_of_context)
{
	rig.unit.mode.cpl = 3;
	rig_on(CTL & ~VMPT_CTL_OS);
	far_cpl(VMPT_FAR_INTERRUPT, 0);
	expect("FUP(0x402000), TIP.PGD()");
}
END_TEST

START_TEST(t56_case_8_fault_out_of_context)
{
	rig.unit.mode.cpl = 3;
	rig_on(CTL & ~VMPT_CTL_OS);
	far_cpl(VMPT_FAR_EXCEPTION, 0);
	expect("FUP(0x402000), TIP.PGD()");
	far_cpl(VMPT_FAR_IRET, 3);
	expect("TIP.PGE(0x403000)");
	far_cpl(VMPT_FAR_SOFT_INT, 0);
	expect("FUP(0x402000), TIP.PGD()");
}
END_TEST

START_TEST(t56_case_9_smi)
{
	rig_on(CTL);
	far_cpl(VMPT_FAR_SMI, 0);
	expect("FUP(0x402000), TIP.PGD()");
}
END_TEST

START_TEST(t56_case_10_rsm)
{
	rig_on(TIMED);
	far_cpl(VMPT_FAR_SMI, 0);
	rig_skip();
	far_cpl(VMPT_FAR_RSM, 0);
	expect("TSC(0x0), TMA(0x0,0), CBR(20), MODE.Exec(64), TIP.PGE(0x403000)");
}
END_TEST

/* ---- 33.2.6: all enables ---- */

START_TEST(packet_en_is_all_four)
{
	unsigned int i;

	for (i = 0; i < 16; i++) {
		bool trigger = i & 1, context = i & 2, filter = i & 4, branch = i & 8;
		bool all = trigger && context && filter && branch;
		u64 ctl = VMPT_CTL_OS | FILTER(0) | (branch ? VMPT_CTL_BRANCH_EN : 0);

		rig_setup();
		range(0, filter ? 0x401000 : BASE, LIMIT);
		rig.unit.mode.cpl = context ? 0 : 3;
		if (!trigger)
			rig_wrmsr(VMPT_MSR_RTIT_STATUS, VMPT_STATUS_STOPPED);
		rig_on(ctl);
		vmpt_unit_jmp_indirect(&rig.unit, filter ? 0x401010 : 0x500000);
		expect(all ? "TIP(0x401010)" : "");
		ck_assert_uint_eq(rig.unit.packet_en, all);
		if (trigger)
			ck_assert_uint_eq(enables(),
					  VMPT_STATUS_TRIGGER_EN |
						  (context ? VMPT_STATUS_CONTEXT_EN : 0) |
						  (filter ? VMPT_STATUS_FILTER_EN : 0));
		else
			ck_assert_uint_eq(enables(), 0);
	}
}
END_TEST

/* ContextEn is left alone while TriggerEn = 0 (33.2.6.3). */
START_TEST(context_en_stays_without_trigger_en)
{
	struct vmpt_mode mode = mode64(3, 0x1000);

	rig_on(CTL & ~VMPT_CTL_USER);
	rig_off(0x402000);
	vmpt_unit_mov_cr3(&rig.unit, 0x402000, &mode);
	ck_assert_uint_eq(enables(), VMPT_STATUS_CONTEXT_EN | VMPT_STATUS_FILTER_EN);
	rig_wrmsr(VMPT_MSR_RTIT_STATUS, VMPT_STATUS_ERROR);
	rig_on(CTL & ~VMPT_CTL_USER);
	ck_assert_uint_eq(enables(), VMPT_STATUS_CONTEXT_EN | VMPT_STATUS_FILTER_EN);
}
END_TEST

/* Without BranchEn: PIP and VMCS still, and timing (33.2.6.4). */
START_TEST(without_branch_en)
{
	struct vmpt_mode mode = mode64(0, 0x2000);

	rig_on_shown(VMPT_CTL_OS | VMPT_CTL_TSC_EN);
	expect("PSB, TSC(0x0), CBR(20), PIP(0x1000), PSBEND");
	vmpt_unit_jcc(&rig.unit, true, 0x401100);
	vmpt_unit_call(&rig.unit, 0x401104, 0x401200);
	vmpt_unit_ret(&rig.unit, 0x401104);
	far_cpl(VMPT_FAR_INTERRUPT, 0);
	vmpt_unit_tx_begin(&rig.unit, 0x403000);
	expect("");
	vmpt_unit_mov_cr3(&rig.unit, 0x403000, &mode);
	vmpt_unit_vmptrld(&rig.unit, 0x5000);
	expect("PIP(0x2000), VMCS(0x5000)");
	rig_off(0x403000);
	expect("");
}
END_TEST

/* ---- CPL and CR3 ---- */

START_TEST(cpl_filter)
{
	rig.unit.mode.cpl = 0;
	rig_on(VMPT_CTL_USER | VMPT_CTL_BRANCH_EN);
	vmpt_unit_jmp_indirect(&rig.unit, 0x401010);
	expect("");
	far_cpl(VMPT_FAR_BRANCH, 1); /* CPL > 0 is "user" */
	expect("MODE.Exec(64), TIP.PGE(0x403000)");
	vmpt_unit_jmp_indirect(&rig.unit, 0x401010);
	expect("TIP(0x401010)");
	/* SYSCALL: the kernel's IP is not sent (33.2.5.1) */
	far_cpl(VMPT_FAR_BRANCH, 0);
	expect("TIP.PGD()");
}
END_TEST

static void mov_cr3(u64 cr3, bool pae, const char *want)
{
	struct vmpt_mode mode = mode64(0, cr3);

	mode.pae = pae;
	vmpt_unit_mov_cr3(&rig.unit, 0x402000, &mode);
	expect(want);
}

START_TEST(cr3_filter)
{
	rig_wrmsr(VMPT_MSR_RTIT_CR3_MATCH, 0x7000);
	rig_on(CTL | VMPT_CTL_CR3_FILTER);
	mov_cr3(0x2000, false, "");
	mov_cr3(0x701f, false, "PIP(0x7000), MODE.Exec(64), TIP.PGE(0x402000)");
	mov_cr3(0x7fff, false, "PIP(0x7000)");		 /* bits 11:0 */
	mov_cr3(0x701f, true, "PIP(0x7000)");		 /* PAE: 4:0 */
	mov_cr3(0x7020, true, "PIP(0x7020), TIP.PGD()"); /* PAE: 11:5 count */
	mov_cr3(0x8000000000007000, false, "");		 /* bit 63 counts */
	mov_cr3(0x7000, false, "PIP(0x7000), TIP.PGE(0x402000)");
	mov_cr3(0x9000, false, "PIP(0x9000), TIP.PGD()");
}
END_TEST

START_TEST(cr3_filter_without_os_has_no_pip)
{
	struct vmpt_far far;

	rig_wrmsr(VMPT_MSR_RTIT_CR3_MATCH, 0x7000);
	rig.unit.mode = mode64(3, 0x7000);
	rig_on(VMPT_CTL_USER | VMPT_CTL_BRANCH_EN | VMPT_CTL_CR3_FILTER);
	far = far_to(VMPT_FAR_BRANCH, 0x402000, 0x403000);
	far.mode = mode64(3, 0x2000);
	far.cr3_written = true;
	rig_far(&far);
	expect("TIP.PGD()");
	far.mode = mode64(3, 0x7000);
	rig_far(&far);
	expect("TIP.PGE(0x403000)");
}
END_TEST

/* ---- IP ranges ---- */

START_TEST(ranges_are_inclusive_and_add_up)
{
	range(0, BASE, LIMIT);
	range(3, 0x430000, 0x430000);
	rig_on(CTL | FILTER(0) | FILTER(3));
	vmpt_unit_jmp(&rig.unit, BASE - 1);
	expect("");
	vmpt_unit_jmp(&rig.unit, LIMIT);
	expect("MODE.Exec(64), TIP.PGE(0x41ffff)");
	vmpt_unit_jmp(&rig.unit, 0x430000);
	expect("");
	vmpt_unit_jmp(&rig.unit, 0x430001);
	expect("TIP.PGD(0x430001)");
	vmpt_unit_jmp(&rig.unit, 0x430000);
	expect("TIP.PGE(0x430000)");
}
END_TEST

/* The packets of each kind of branch at the range's edge (33.4.2.5). */
START_TEST(leaving_a_range)
{
	range(0, 0x401000, LIMIT);
	rig_on(CTL | FILTER(0));
	vmpt_unit_jcc(&rig.unit, true, 0x500000);
	expect("TIP.PGD()");
	vmpt_unit_jmp(&rig.unit, BASE);
	vmpt_unit_call(&rig.unit, BASE + 5, 0x500000);
	expect("TIP.PGE(0x410000), TIP.PGD(0x500000)");
	vmpt_unit_ret(&rig.unit, BASE + 5);
	expect("TIP.PGE(0x410005)");
	vmpt_unit_call_indirect(&rig.unit, BASE + 7, 0x500000);
	expect("TIP.PGD(0x500000)");
	vmpt_unit_jmp(&rig.unit, BASE);
	vmpt_unit_call(&rig.unit, 0x500000, BASE + 0x100); /* its RET goes out of the range */
	rig_skip();
	vmpt_unit_ret(&rig.unit, 0x500000);
	expect("TIP.PGD(0x500000)");
	vmpt_unit_jmp(&rig.unit, BASE);
	rig_skip();
	far_cpl(VMPT_FAR_BRANCH, 0);
	vmpt_unit_jmp(&rig.unit, 0x500000);
	expect("TIP(0x403000), TIP.PGD(0x500000)");
}
END_TEST

/* A jcc that is not taken, or sequential flow, does not check the ranges (33.2.5.3). */
START_TEST(not_taken_does_not_filter)
{
	range(0, 0x401000, 0x401fff);
	rig_on(CTL | FILTER(0));
	vmpt_unit_jcc(&rig.unit, false, 0x402000);
	vmpt_unit_jcc(&rig.unit, true, 0x401800);
	vmpt_unit_jmp_indirect(&rig.unit, 0x401000);
	expect("TNT(NT), TIP(0x401000)");
	vmpt_unit_jmp(&rig.unit, 0x402000);
	rig_skip();
	vmpt_unit_jcc(&rig.unit, false, 0x401000);
	vmpt_unit_jcc(&rig.unit, true, 0x402000);
	expect("");
}
END_TEST

/* FilterEn toggles only with ContextEn (33.2.6.5). */
START_TEST(filter_waits_for_context)
{
	range(0, BASE, LIMIT);
	rig_on((CTL & ~VMPT_CTL_USER) | FILTER(0));
	far_cpl(VMPT_FAR_BRANCH, 3);
	vmpt_unit_jmp(&rig.unit, BASE);
	expect("");
	ck_assert_uint_eq(enables(), VMPT_STATUS_TRIGGER_EN);
}
END_TEST

START_TEST(mode_exec_before_a_pge)
{
	struct vmpt_far far;
	int i;

	rig.config.options.suppress_same_mode = false;
	rig_init();
	range(0, BASE, LIMIT);
	rig_on(CTL | FILTER(0));
	for (i = 0; i < 2; i++) {
		vmpt_unit_jmp(&rig.unit, BASE);
		expect("MODE.Exec(64), TIP.PGE(0x410000)");
		vmpt_unit_jmp(&rig.unit, 0x401000);
		expect("TIP.PGD(0x401000)");
	}
	rig.config.options.suppress_same_mode = true;
	rig_init();
	range(0, BASE, LIMIT);
	rig_on(CTL | FILTER(0));
	far = far_to(VMPT_FAR_BRANCH, 0x401004, 0x401010);
	far.mode.cs_l = false;
	rig_far(&far);
	expect("");
	vmpt_unit_jmp(&rig.unit, BASE);
	expect("MODE.Exec(16), TIP.PGE(0x410000)");
	vmpt_unit_jmp(&rig.unit, 0x401000);
	vmpt_unit_jmp(&rig.unit, BASE);
	expect("TIP.PGD(0x401000), TIP.PGE(0x410000)");
}
END_TEST

/* ---- TraceStop ---- */

static void stopped(void)
{
	ck_assert_uint_eq(
		rig_rdmsr(VMPT_MSR_RTIT_STATUS) &
			(VMPT_STATUS_STOPPED | VMPT_STATUS_TRIGGER_EN | VMPT_STATUS_FILTER_EN),
		VMPT_STATUS_STOPPED);
	vmpt_unit_jmp_indirect(&rig.unit, 0x401000);
	expect("");
}

START_TEST(tracestop_by_branches)
{
	unsigned int i;

	for (i = 0; i < 5; i++) {
		rig_setup();
		range(1, BASE, LIMIT);
		rig_on(CTL | STOP(1));
		if (i == 0)
			vmpt_unit_jmp(&rig.unit, BASE);
		else if (i == 1)
			vmpt_unit_jmp_indirect(&rig.unit, BASE);
		else if (i == 2)
			vmpt_unit_ret(&rig.unit, BASE);
		else if (i == 3)
			vmpt_unit_call(&rig.unit, 0x401005, BASE);
		else
			vmpt_unit_jcc(&rig.unit, true, BASE);
		expect(i < 4 ? "TIP.PGD(0x410000), TraceStop" : "TIP.PGD(), TraceStop");
		stopped();
	}
}
END_TEST

START_TEST(tracestop_by_an_event)
{
	struct vmpt_far far;

	range(0, BASE, LIMIT);
	rig_on(CTL | STOP(0));
	far = far_to(VMPT_FAR_INTERRUPT, 0x401004, BASE);
	rig_far(&far);
	expect("FUP(0x401004), TIP.PGD(0x410000), TraceStop");
	stopped();
}
END_TEST

/* Not without context after the branch; overlapping a filter it wins; from outside of it
 * there is no TIP.PGD. */
START_TEST(tracestop_and_other_filters)
{
	struct vmpt_far far;

	range(0, BASE, LIMIT);
	rig_on((CTL & ~VMPT_CTL_USER) | STOP(0));
	far = far_to(VMPT_FAR_BRANCH, 0x401004, BASE);
	far.mode.cpl = 3;
	rig_far(&far);
	expect("TIP.PGD()");
	rig_setup();
	range(0, BASE, LIMIT);
	range(1, LIMIT, LIMIT);
	rig_on(CTL | FILTER(0) | STOP(1));
	vmpt_unit_jmp(&rig.unit, BASE);
	vmpt_unit_jmp(&rig.unit, 0x401000);
	expect("MODE.Exec(64), TIP.PGE(0x410000), TIP.PGD(0x401000)");
	vmpt_unit_jmp(&rig.unit, LIMIT);
	expect("TraceStop");
	stopped();
}
END_TEST

START_TEST(tracestop_by_mov_cr3)
{
	range(0, 0x402000, 0x402fff);
	rig_on(CTL | STOP(0));
	/* sequential flow into the region is not seen; the MOV CR3 in it is (33.4.2.9) */
	mov_cr3(0x2000, false, "PIP(0x2000), TIP.PGD(), TraceStop");
	stopped();
}
END_TEST

START_TEST(tracestop_by_wrmsr)
{
	range(0, ON_NEXT, ON_NEXT);
	rig_on_shown(CTL | STOP(0));
	expect("PSB, CBR(20), PIP(0x1000), MODE.TSX(), PSBEND, TraceStop");
	stopped();
	/* and after it: TraceEn cleared, Stopped cleared, tracing goes on */
	rig_off(0x401000);
	expect("");
	rig_wrmsr(VMPT_MSR_RTIT_STATUS, 0x1000ULL << 32);
	rig_on_shown(CTL);
	expect("CBR(20), MODE.Exec(64), TIP.PGE(0x401000)");
}
END_TEST

/* What sets TraceEn, so that execution goes on at ON_NEXT. */
enum cause { BY_WRMSR, BY_XRSTORS, BY_RSM, BY_ENTRY, BY_EXIT, BY_FAILED_ENTRY, CAUSES };

static void enable_by(enum cause cause, u64 ctl)
{
	const struct vmpt_mode mode = mode64(0, 0x1000);
	struct vmpt_unit_entry e = { .ip = 0x500000,
				     .target = ON_NEXT,
				     .mode = mode,
				     .load_ctl = true,
				     .ctl = ctl | VMPT_CTL_TRACE_EN };
	struct vmpt_unit_exit x = { .ip = 0x500000, .target = ON_NEXT, .mode = mode };
	struct vmpt_pt_regs regs = rig.unit.regs;
	struct vmpt_far far;

	e.vmx.vmcs = VMPT_PT_VMCS_NONE;
	rig.unit.vmx.on = cause >= BY_ENTRY;
	switch (cause) {
	case BY_WRMSR:
		rig_on_shown(ctl);
		return;
	case BY_XRSTORS:
		regs.ctl = ctl | VMPT_CTL_TRACE_EN;
		ck_assert_int_eq(vmpt_unit_xrstors(&rig.unit, &regs, ON_IP, ON_NEXT), 0);
		return;
	case BY_RSM:
		rig.unit.regs.ctl = ctl;
		rig.unit.smm_trace_en = true;
		far = far_to(VMPT_FAR_RSM, 0x38000, ON_NEXT);
		rig_far(&far);
		return;
	case BY_ENTRY:
		vmpt_unit_vmentry(&rig.unit, &e);
		return;
	case BY_EXIT:
		rig.unit.vmx.nonroot = true;
		x.load_ctl = true;
		x.ctl = ctl | VMPT_CTL_TRACE_EN;
		vmpt_unit_vmexit(&rig.unit, &x);
		return;
	default:
		vmpt_unit_vmentry_failed_late(&rig.unit, &e, &x);
	}
}

/*
 * 33.2.5.3, 33.4.2.9: TraceStop forces FilterEn to 0, so there is no IP packet that a MODE.Exec
 * could precede (33.4.2.8), whatever sets TraceEn, with and without PSB+.
 */
START_TEST(da_enabling_in_a_tracestop_region)
{
	static const struct {
		enum cause cause;
		const char *timing, *psb;
	} row[CAUSES] = {
		{ BY_WRMSR, "CBR(20), TraceStop",
		  "PSB, CBR(20), PIP(0x1000), MODE.TSX(), PSBEND, TraceStop" },
		{ BY_XRSTORS, "CBR(20), TraceStop",
		  "PSB, CBR(20), PIP(0x1000), MODE.TSX(), PSBEND, TraceStop" },
		{ BY_RSM, "CBR(20), TraceStop",
		  "PSB, CBR(20), PIP(0x1000), MODE.TSX(), PSBEND, TraceStop" },
		{ BY_ENTRY, "CBR(20), PIP(0x1000,NR), TraceStop",
		  "PSB, CBR(20), PIP(0x1000,NR), VMCS(none), MODE.TSX(), PSBEND, TraceStop" },
		{ BY_EXIT, "CBR(20), TraceStop",
		  "PSB, CBR(20), PIP(0x1000), VMCS(none), MODE.TSX(), PSBEND, TraceStop" },
		{ BY_FAILED_ENTRY, "CBR(20), TraceStop",
		  "PSB, CBR(20), PIP(0x1000), VMCS(none), MODE.TSX(), PSBEND, TraceStop" },
	};
	const char *text;
	unsigned int i;

	for (i = 0; i < 4 * CAUSES; i++) {
		unsigned int n = i % CAUSES;
		bool psb = i / CAUSES % 2;

		rig_setup();
		rig.config.options.suppress_same_mode = i / CAUSES / 2;
		rig_init();
		range(0, ON_NEXT, ON_NEXT);
		rig_wrmsr(VMPT_MSR_RTIT_STATUS, psb ? 0 : 40ULL << 32);
		enable_by(row[n].cause, CTL | STOP(0));
		text = rig_text();
		ck_assert_msg(!strcmp(text, psb ? row[n].psb : row[n].timing),
			      "cause %u, PSB+ %d: %s", n, psb, text);
		stopped();
	}
}
END_TEST

RIG_SUITE("enable", t2_ip_filtering, t56_case_1_enable_out_of_context, t56_case_2_enable,
	  t56_case_3_disable, t56_case_4_branch_out_of_range, t56_case_5_into_the_range,
	  t56_case_6_far_branch_out_of_context, t56_case_7_interrupt_out_of_context,
	  t56_case_8_fault_out_of_context, t56_case_9_smi, t56_case_10_rsm, packet_en_is_all_four,
	  context_en_stays_without_trigger_en, without_branch_en, cpl_filter, cr3_filter,
	  cr3_filter_without_os_has_no_pip, ranges_are_inclusive_and_add_up, leaving_a_range,
	  not_taken_does_not_filter, filter_waits_for_context, mode_exec_before_a_pge,
	  tracestop_by_branches, tracestop_by_an_event, tracestop_and_other_filters,
	  tracestop_by_mov_cr3, tracestop_by_wrmsr, da_enabling_in_a_tracestop_region)
