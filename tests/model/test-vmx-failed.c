// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * model/vmx.c: Table 33-54, VM entries that fail early and late, and what a late failure leaves
 * in IA32_RTIT_CTL.
 */
#include "tests/model/rig.h"

#define LAUNCH 0x402000 /* VMLAUNCH */
#define HOST   0x403000 /* host RIP of the VMCS */
#define VMCS   0x55000

static void root(u64 ctl)
{
	vmpt_unit_vmxon(&rig.unit, true, 0x400000);
	vmpt_unit_vmptrld(&rig.unit, VMCS);
	if (ctl)
		rig_on(ctl);
}

static void failed_early(const char *want)
{
	vmpt_unit_vmentry_failed(&rig.unit, LAUNCH + 3);
	expect(want);
}

#define NONE (~0ULL)

/* @entry_ctl, @exit_ctl: what the lists, or the entry's control, load; @clear: the exit's. */
static void failed_late(u64 entry_ctl, bool clear, u64 exit_ctl, const char *want)
{
	struct vmpt_unit_entry e = { .ip = LAUNCH, .mode = mode64(0, 0x7000) };
	struct vmpt_unit_exit x = { .target = HOST, .mode = mode64(0, 0x1000) };

	e.load_ctl = entry_ctl != NONE;
	e.ctl = entry_ctl;
	x.clear_ctl = clear;
	x.load_ctl = exit_ctl != NONE;
	x.ctl = exit_ctl;
	vmpt_unit_vmentry_failed_late(&rig.unit, &e, &x);
	expect(want);
}

START_TEST(t54_system_wide_early)
{
	root(CTL | VMPT_CTL_EVENT_EN);
	failed_early("TIP(0x402003)");
	rig.unit.psb_due = true;
	failed_early("TIP(0x402003), PSB, CBR(20), PIP(0x1000), VMCS(0x55000), MODE.TSX(), "
		     "MODE.Exec(64), FUP(0x402003), PSBEND");
}
END_TEST

START_TEST(t54_system_wide_late)
{
	root(CTL);
	failed_late(NONE, false, NONE, "PIP(0x7000,NR), PIP(0x1000), TIP(0x403000)");
	rig_setup();
	root(CTL | VMPT_CTL_EVENT_EN);
	failed_late(NONE, false, NONE,
		    "CFE.VMENTRY(IP,0), FUP(0x402000), PIP(0x7000,NR), PIP(0x1000), TIP(0x403000)");
}
END_TEST

START_TEST(t54_vmm_only_early)
{
	root(CTL);
	failed_early("TIP(0x402003)");
}
END_TEST

#define ON (CTL | VMPT_CTL_TRACE_EN)

START_TEST(t54_vmm_only_late)
{
	root(CTL);
	failed_late(CTL, false, ON, "TIP(0x403000)");
	ck_assert_uint_eq(rig_rdmsr(VMPT_MSR_RTIT_CTL), ON);
	/* The clear finds TraceEn 0. */
	failed_late(CTL, true, ON, "TIP(0x403000)");
	ck_assert_uint_eq(rig_rdmsr(VMPT_MSR_RTIT_CTL), ON);
}
END_TEST

START_TEST(t54_vm_only)
{
	root(0);
	failed_early("");
	failed_late(ON, true, NONE, "");
	ck_assert_uint_eq(rig_rdmsr(VMPT_MSR_RTIT_CTL), 0);
	failed_late(ON, false, CTL, "");
	ck_assert_uint_eq(rig_rdmsr(VMPT_MSR_RTIT_CTL), CTL);
}
END_TEST

/* The host's state and its list are loaded as by a VM exit. */
START_TEST(late_failure_ends_a_trace)
{
	root(CTL);
	failed_late(NONE, true, NONE, "FUP(0x402000), PIP(0x7000,NR), TIP.PGD()");
	ck_assert_uint_eq(rig_rdmsr(VMPT_MSR_RTIT_CTL), 0);
	rig_setup();
	root(CTL);
	failed_late(NONE, false, CTL, "FUP(0x402000), PIP(0x7000,NR), PIP(0x1000), TIP.PGD()");
	ck_assert_uint_eq(rig_rdmsr(VMPT_MSR_RTIT_CTL), CTL);
	rig_setup();
	root(CTL);
	failed_late(CTL, false, NONE, "FUP(0x402000), TIP.PGD()");
	ck_assert_uint_eq(rig_rdmsr(VMPT_MSR_RTIT_CTL), CTL);
}
END_TEST

START_TEST(late_failure_begins_a_trace)
{
	root(0);
	failed_late(NONE, false, ON,
		    "PSB, CBR(20), PIP(0x1000), VMCS(0x55000), MODE.TSX(), PSBEND, MODE.Exec(64), "
		    "TIP.PGE(0x403000)");
	ck_assert_uint_eq(rig_rdmsr(VMPT_MSR_RTIT_CTL), ON);
	rig_setup();
	root(CTL);
	failed_late(NONE, true, ON,
		    "FUP(0x402000), PIP(0x7000,NR), TIP.PGD(), CBR(20), MODE.Exec(64), "
		    "TIP.PGE(0x403000)");
	ck_assert_uint_eq(rig_rdmsr(VMPT_MSR_RTIT_CTL), ON);
}
END_TEST

START_TEST(failed_entry_out_of_context)
{
	root(CTL & ~VMPT_CTL_OS);
	failed_early("");
	failed_late(NONE, false, NONE, "");
}
END_TEST

RIG_SUITE("vmx-failed", t54_system_wide_early, t54_system_wide_late, t54_vmm_only_early,
	  t54_vmm_only_late, t54_vm_only, late_failure_ends_a_trace, late_failure_begins_a_trace,
	  failed_entry_out_of_context)
