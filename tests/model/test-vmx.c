// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * model/vmx.c: Tables 33-52 and 33-53, rows 13 to 16 of 33-59, VMXON, VMPTRLD; all eight
 * settings of the conceal controls.
 */
#include <stdio.h>

#include "tests/model/rig.h"

#define HOST_CR3  0x1000
#define GUEST_CR3 0x7000
#define LAUNCH	  0x402000 /* VMLAUNCH */
#define HOST	  0x403000 /* host RIP of the VMCS */
#define GUEST	  0x10000  /* guest RIP */
#define VMCS	  0x55000

static struct vmpt_unit_entry entry(void)
{
	struct vmpt_unit_entry e = { .ip = LAUNCH, .target = GUEST, .mode = mode64(0, GUEST_CR3) };

	return e;
}

static struct vmpt_unit_exit leave(void)
{
	struct vmpt_unit_exit x = { .ip = GUEST + 0x20,
				    .target = HOST,
				    .mode = mode64(0, HOST_CR3),
				    .reason = 10,
				    .qualification = 0x1234 };

	return x;
}

static void root(u64 ctl)
{
	vmpt_unit_vmxon(&rig.unit, true, 0x400000);
	vmpt_unit_vmptrld(&rig.unit, VMCS);
	if (ctl)
		rig_on(ctl);
}

static void enter(const struct vmpt_unit_entry *e)
{
	vmpt_unit_vmentry(&rig.unit, e);
}

static void quit(const struct vmpt_unit_exit *x)
{
	vmpt_unit_vmexit(&rig.unit, x);
}

/* ---- Table 33-53, system-wide; Table 33-55, rows 15 and 16 refer to it ---- */

START_TEST(t53_vm_entry_and_t55_row_16)
{
	struct vmpt_unit_entry e = entry();

	root(CTL);
	enter(&e);
	expect("PIP(0x7000,NR), TIP(0x10000)");
}
END_TEST

START_TEST(t53_vm_exit_and_t55_row_15)
{
	struct vmpt_unit_entry e = entry();
	struct vmpt_unit_exit x = leave();

	root(CTL);
	enter(&e);
	rig_skip();
	quit(&x);
	expect("FUP(0x10020), PIP(0x1000), TIP(0x403000)");
}
END_TEST

START_TEST(t53_with_mode_exec)
{
	struct vmpt_unit_entry e = entry();
	struct vmpt_unit_exit x = leave();

	e.mode.cs_l = false;
	root(CTL);
	enter(&e);
	expect("PIP(0x7000,NR), MODE.Exec(16), TIP(0x10000)");
	quit(&x);
	expect("FUP(0x10020), PIP(0x1000), MODE.Exec(64), TIP(0x403000)");
}
END_TEST

START_TEST(t53_with_event_en)
{
	struct vmpt_unit_entry e = entry();
	struct vmpt_unit_exit x = leave();

	root(CTL | VMPT_CTL_EVENT_EN);
	enter(&e);
	expect("CFE.VMENTRY(IP,0), FUP(0x402000), PIP(0x7000,NR), TIP(0x10000)");
	quit(&x);
	expect("EVD.VMXR(0xa), EVD.VMXQ(0x1234), CFE.VMEXIT(0), FUP(0x10020), PIP(0x1000), "
	       "TIP(0x403000)");
}
END_TEST

/* PIP does not depend on BranchEn (33.2.6.4). */
START_TEST(t53_without_branch_en)
{
	struct vmpt_unit_entry e = entry();
	struct vmpt_unit_exit x = leave();

	root(VMPT_CTL_OS | VMPT_CTL_USER | VMPT_CTL_EVENT_EN);
	enter(&e);
	expect("CFE.VMENTRY(IP,0), FUP(0x402000), PIP(0x7000,NR)");
	quit(&x);
	expect("EVD.VMXR(0xa), EVD.VMXQ(0x1234), CFE.VMEXIT(IP,0), FUP(0x10020), PIP(0x1000)");
}
END_TEST

/* ---- Table 33-59, rows 13 to 16 ---- */

#define EVENTS (VMPT_CTL_OS | VMPT_CTL_USER | VMPT_CTL_EVENT_EN)

static void exit_event(bool guest_context, bool host_context, bool intr, const char *want)
{
	struct vmpt_unit_entry e = entry();
	struct vmpt_unit_exit x = leave();

	rig_setup();
	rig.unit.mode.cpl = 3; /* no packet of the entry */
	root(VMPT_CTL_USER | VMPT_CTL_EVENT_EN);
	e.mode.cpl = guest_context ? 3 : 0;
	enter(&e);
	rig_skip();
	x.mode.cpl = host_context ? 3 : 0;
	x.intr = intr;
	x.vector = 14;
	quit(&x);
	expect(want);
}

START_TEST(t59_row_13_vm_exit_by_an_event)
{
	const char *want = "EVD.VMXR(0xa), EVD.VMXQ(0x1234), CFE.VMEXIT_INTR(IP,14), FUP(0x10020)";

	exit_event(true, false, true, want);
	exit_event(true, true, true, want);
}
END_TEST

START_TEST(t59_row_14_vm_exit)
{
	const char *want = "EVD.VMXR(0xa), EVD.VMXQ(0x1234), CFE.VMEXIT(IP,0), FUP(0x10020)";

	exit_event(true, false, false, want);
	exit_event(true, true, false, want);
}
END_TEST

/*
 * By Table 33-49, where CFE.VMEXIT depends only on ContextEn before the exit, there is none. The
 * row is followed (docs/model.md); it has no vector and no EVD, also where an event caused the
 * exit.
 */
START_TEST(t59_row_15_vm_exit_into_context)
{
	exit_event(false, true, false, "CFE.VMEXIT(0)");
	exit_event(false, true, true, "CFE.VMEXIT(0)");
	exit_event(false, false, false, "");
	exit_event(false, false, true, "");
}
END_TEST

START_TEST(t59_row_16_vm_entry)
{
	struct vmpt_unit_entry e = entry();

	rig.unit.mode.cpl = 3;
	root(VMPT_CTL_USER | VMPT_CTL_EVENT_EN);
	enter(&e);
	expect("CFE.VMENTRY(IP,0), FUP(0x402000)");
	/* concealed */
	rig_setup();
	root(EVENTS);
	e.vmx.conceal_entry = true;
	enter(&e);
	expect("");
}
END_TEST

/* ---- Table 33-52: the conceal controls ---- */

static void set_conceal(struct vmpt_unit_vmx *vmx, unsigned int i)
{
	vmx->conceal_exec = i & 1;
	vmx->conceal_exit = i & 2;
	vmx->conceal_entry = i & 4;
}

START_TEST(t52_all_settings_system_wide)
{
	struct vmpt_mode mode = mode64(0, 0x8000);
	unsigned int i;

	for (i = 0; i < 8; i++) {
		struct vmpt_unit_entry e = entry();
		struct vmpt_unit_exit x = leave();
		char want[200];

		rig_setup();
		root(CTL | VMPT_CTL_EVENT_EN);
		set_conceal(&e.vmx, i);
		enter(&e);
		expect(i & 4 ? "TIP(0x10000)"
			     : "CFE.VMENTRY(IP,0), FUP(0x402000), PIP(0x7000,NR), TIP(0x10000)");
		vmpt_unit_mov_cr3(&rig.unit, 0x10010, &mode);
		expect(i & 1 ? "PIP(0x8000)" : "PIP(0x8000,NR)");
		rig.unit.psb_due = true;
		vmpt_unit_jmp(&rig.unit, 0x10018);
		snprintf(want, sizeof(want),
			 "PSB, CBR(20), PIP(0x8000%s), %sMODE.TSX(), MODE.Exec(64), "
			 "FUP(0x10018), PSBEND",
			 i & 1 ? "" : ",NR", i & 1 ? "" : "VMCS(0x55000), ");
		expect(want);
		quit(&x);
		expect(i & 2 ? "FUP(0x10020), TIP(0x403000)"
			     : "EVD.VMXR(0xa), EVD.VMXQ(0x1234), CFE.VMEXIT(0), FUP(0x10020), "
			       "PIP(0x1000), TIP(0x403000)");
		/* In root operation nothing is concealed. */
		rig.unit.psb_due = true;
		vmpt_unit_jmp(&rig.unit, 0x403010);
		expect("PSB, CBR(20), PIP(0x1000), VMCS(0x55000), MODE.TSX(), MODE.Exec(64), "
		       "FUP(0x403010), PSBEND");
	}
}
END_TEST

/* Guest-only, by the controls (@list = 0) or by MSR lists; the second entry has no PSB+. */
static void guest_only(unsigned int i, bool list)
{
	struct vmpt_unit_entry e = entry();
	struct vmpt_unit_exit x = leave();
	char want[200];

	rig_setup();
	root(0);
	set_conceal(&e.vmx, i);
	e.load_ctl = true;
	e.ctl = CTL | VMPT_CTL_TRACE_EN;
	x.clear_ctl = !list;
	x.load_ctl = list;
	x.ctl = CTL;
	enter(&e);
	snprintf(want, sizeof(want),
		 "PSB, CBR(20), PIP(0x7000%s), %sPSBEND, %sMODE.Exec(64), TIP.PGE(0x10000)",
		 i & 1 ? "" : ",NR", i & 1 ? "MODE.TSX(), " : "VMCS(0x55000), MODE.TSX(), ",
		 i == 1 || i == 3 ? "PIP(0x7000,NR), " : "");
	expect(want);
	quit(&x);
	/* With a list the host's state, and its PIP, come first. */
	expect(list && !(i & 2) ? "FUP(0x10020), PIP(0x1000), TIP.PGD()"
				: "FUP(0x10020), TIP.PGD()");
	ck_assert_uint_eq(rig_rdmsr(VMPT_MSR_RTIT_CTL), list ? CTL : 0);
	vmpt_unit_jmp_indirect(&rig.unit, 0x403010);
	expect("");
	enter(&e);
	snprintf(want, sizeof(want), "CBR(20), %sMODE.Exec(64), TIP.PGE(0x10000)",
		 i & 4 ? "" : "PIP(0x7000,NR), ");
	expect(want);
}

START_TEST(t52_all_settings_guest_only)
{
	unsigned int i;

	for (i = 0; i < 16; i++)
		guest_only(i & 7, i & 8);
}
END_TEST

/* VMM only: an entry's list clears TraceEn, an exit's list sets it. */
START_TEST(host_only_by_lists)
{
	unsigned int i;

	for (i = 0; i < 8; i++) {
		struct vmpt_unit_entry e = entry();
		struct vmpt_unit_exit x = leave();

		rig_setup();
		root(CTL);
		set_conceal(&e.vmx, i);
		e.load_ctl = true;
		e.ctl = CTL;
		enter(&e);
		/* Table 33-56, row 9 */
		expect("FUP(0x402000), TIP.PGD()");
		vmpt_unit_jmp_indirect(&rig.unit, GUEST + 4);
		expect("");
		x.load_ctl = true;
		x.ctl = CTL | VMPT_CTL_TRACE_EN;
		quit(&x);
		expect("CBR(20), MODE.Exec(64), TIP.PGE(0x403000)");
	}
}
END_TEST

/* A list that loads CTL's current value changes nothing (33.2.8.1). */
START_TEST(lists_that_change_nothing)
{
	struct vmpt_unit_entry e = entry();
	struct vmpt_unit_exit x = leave();

	root(CTL);
	e.load_ctl = true;
	e.ctl = CTL | VMPT_CTL_TRACE_EN;
	enter(&e);
	expect("PIP(0x7000,NR), TIP(0x10000)");
	x.load_ctl = true;
	x.ctl = CTL | VMPT_CTL_TRACE_EN;
	quit(&x);
	expect("FUP(0x10020), PIP(0x1000), TIP(0x403000)");
}
END_TEST

/* Guest and host traced separately: the exit clears the guest's TraceEn and loads the host's. */
START_TEST(clear_and_load)
{
	struct vmpt_unit_entry e = entry();
	struct vmpt_unit_exit x = leave();

	root(0);
	e.load_ctl = true;
	e.ctl = CTL | VMPT_CTL_TRACE_EN;
	enter(&e);
	rig_skip();
	x.clear_ctl = true;
	x.load_ctl = true;
	x.ctl = CTL | VMPT_CTL_TRACE_EN;
	quit(&x);
	expect("FUP(0x10020), TIP.PGD(), CBR(20), MODE.Exec(64), TIP.PGE(0x403000)");
}
END_TEST

/* ---- PacketEn changes, Table 33-56 rows 7 to 10 for VMX ---- */

START_TEST(t56_rows_7_8_vm_exit_out_of_context)
{
	struct vmpt_unit_entry e = entry();
	struct vmpt_unit_exit x = leave();

	root(CTL & ~VMPT_CTL_OS);
	e.mode.cpl = 3;
	enter(&e);
	expect("MODE.Exec(64), TIP.PGE(0x10000)"); /* the first since the enable (33.4.2.8) */
	quit(&x);
	expect("FUP(0x10020), TIP.PGD()");
}
END_TEST

START_TEST(t56_rows_7_8_vm_entry_out_of_context)
{
	struct vmpt_unit_entry e = entry();

	rig.unit.mode.cpl = 0;
	root(CTL & ~VMPT_CTL_USER);
	e.mode.cpl = 3;
	enter(&e);
	expect("FUP(0x402000), PIP(0x7000,NR), TIP.PGD()");
}
END_TEST

START_TEST(t56_row_11_vm_exit_guest_only)
{
	struct vmpt_unit_entry e = entry();
	struct vmpt_unit_exit x = leave();

	root(0);
	e.load_ctl = true;
	e.ctl = CTL | VMPT_CTL_TRACE_EN;
	enter(&e);
	rig_skip();
	x.clear_ctl = true;
	quit(&x);
	expect("FUP(0x10020), TIP.PGD()");
}
END_TEST

START_TEST(t56_row_12_vm_entry_guest_only)
{
	struct vmpt_unit_entry e = entry();

	root(0);
	set_conceal(&e.vmx, 7);
	e.load_ctl = true;
	e.ctl = CTL | VMPT_CTL_TRACE_EN;
	enter(&e);
	/* as case 2 on enabling; PSB+ is "not included" in the table */
	expect("PSB, CBR(20), PIP(0x7000), MODE.TSX(), PSBEND, MODE.Exec(64), TIP.PGE(0x10000)");
}
END_TEST

/* The CFE shares the FUP where there is one of both (Table 33-49). */
START_TEST(vm_entry_out_of_context_with_event_en)
{
	struct vmpt_unit_entry e = entry();

	root((CTL & ~VMPT_CTL_USER) | VMPT_CTL_EVENT_EN);
	e.mode.cpl = 3;
	enter(&e);
	expect("CFE.VMENTRY(0), FUP(0x402000), PIP(0x7000,NR), TIP.PGD()");
	rig_setup();
	root(CTL | VMPT_CTL_EVENT_EN);
	e.load_ctl = true;
	e.ctl = CTL;
	enter(&e);
	expect("CFE.VMENTRY(0), FUP(0x402000), TIP.PGD()");
}
END_TEST

/* IP filter and TraceStop at a VM entry's target. */
START_TEST(filters_at_vmx_transitions)
{
	struct vmpt_unit_entry e = entry();
	struct vmpt_unit_exit x = leave();

	rig_wrmsr(VMPT_MSR_RTIT_ADDR0_A, 0x400000);
	rig_wrmsr(VMPT_MSR_RTIT_ADDR0_A + 1, 0x40ffff);
	root(CTL | 1ULL << VMPT_CTL_ADDR_SHIFT(0));
	enter(&e);
	expect("PIP(0x7000,NR), TIP.PGD(0x10000)");
	quit(&x);
	expect("PIP(0x1000), TIP.PGE(0x403000)");
	rig_off(0x403000);
	rig_wrmsr(VMPT_MSR_RTIT_ADDR0_A, GUEST);
	rig_wrmsr(VMPT_MSR_RTIT_ADDR0_A + 1, GUEST);
	rig_on(CTL | 2ULL << VMPT_CTL_ADDR_SHIFT(0));
	enter(&e);
	expect("PIP(0x7000,NR), TIP.PGD(0x10000), TraceStop");
}
END_TEST

/* ---- VMXON, VMPTRLD, VMXOFF ---- */

START_TEST(vmxon_without_misc_14)
{
	rig_on(CTL);
	vmpt_unit_vmxon(&rig.unit, false, 0x402000);
	expect("FUP(0x402000), TIP.PGD()");
	ck_assert_uint_eq(rig_rdmsr(VMPT_MSR_RTIT_CTL), CTL);
	ck_assert_int_eq(vmpt_unit_wrmsr(&rig.unit, VMPT_MSR_RTIT_CTL, CTL, ON_IP, ON_NEXT),
			 VMPT_GP);
	vmpt_unit_vmxoff(&rig.unit);
	rig_on(CTL);
	rig.unit.psb_due = true;
	vmpt_unit_jmp(&rig.unit, 0x402000);
	expect("PSB, CBR(20), PIP(0x1000), MODE.TSX(), MODE.Exec(64), FUP(0x402000), PSBEND");
}
END_TEST

START_TEST(vmxon_with_misc_14_and_no_context)
{
	rig_on(CTL);
	vmpt_unit_vmxon(&rig.unit, true, 0x402000);
	expect("");
	rig_setup();
	rig_on(CTL & ~VMPT_CTL_OS);
	vmpt_unit_vmxon(&rig.unit, false, 0x402000);
	expect("");
}
END_TEST

START_TEST(vmptrld)
{
	rig_on(CTL);
	vmpt_unit_vmxon(&rig.unit, true, 0x402000);
	vmpt_unit_vmptrld(&rig.unit, 0xabcde000);
	expect("VMCS(0xabcde000)");
	vmpt_unit_vmptrld(&rig.unit, VMPT_PT_VMCS_NONE); /* VMCLEAR */
	expect("");
	rig.unit.psb_due = true;
	vmpt_unit_jmp(&rig.unit, 0x402010);
	expect("PSB, CBR(20), PIP(0x1000), VMCS(none), MODE.TSX(), MODE.Exec(64), FUP(0x402010), "
	       "PSBEND");
	/* TriggerEn && ContextEn (33.4.2.15) */
	rig_off(0x402010);
	vmpt_unit_vmptrld(&rig.unit, 0xabcde000);
	rig_skip();
	rig_on(CTL & ~VMPT_CTL_OS);
	vmpt_unit_vmptrld(&rig.unit, 0xabcde000);
	expect("");
}
END_TEST

START_TEST(without_trace_only_the_mode_changes)
{
	struct vmpt_unit_entry e = entry();
	struct vmpt_unit_exit x = leave();

	root(0);
	enter(&e);
	ck_assert_uint_eq(rig.unit.mode.cr3, GUEST_CR3);
	quit(&x);
	ck_assert_uint_eq(rig.unit.mode.cr3, HOST_CR3);
	expect("");
}
END_TEST

/* 33.8.3.3: TSC packets of non-root operation have offset and multiplier. */
START_TEST(tsc_offset_and_scaling)
{
	struct vmpt_unit_entry e = entry();
	struct vmpt_unit_exit x = leave();

	root(CTL | VMPT_CTL_TSC_EN);
	rig_time(0, 0x100000, 0);
	e.vmx.tsc_offset = (u64)-0x1000;
	e.vmx.tsc_multiplier = 3ULL << 47; /* 1.5 */
	enter(&e);
	rig_skip();
	vmpt_unit_clock_resumed(&rig.unit);
	expect("TSC(0x17f000), CBR(20)");
	quit(&x);
	rig_skip();
	vmpt_unit_clock_resumed(&rig.unit);
	expect("TSC(0x100000), CBR(20)");
	e.vmx.tsc_multiplier = 0;
	enter(&e);
	rig_skip();
	vmpt_unit_clock_resumed(&rig.unit);
	expect("TSC(0xff000), CBR(20)");
	/* the high part of the product counts, and 7 bytes of the sum */
	quit(&x);
	rig_time(0, 0xff00000000000000, 0);
	e.vmx.tsc_multiplier = 1ULL << 48;
	e.vmx.tsc_offset = 0x123;
	enter(&e);
	rig_skip();
	vmpt_unit_clock_resumed(&rig.unit);
	expect("TSC(0x123), CBR(20)");
}
END_TEST

RIG_SUITE("vmx", t53_vm_entry_and_t55_row_16, t53_vm_exit_and_t55_row_15, t53_with_mode_exec,
	  t53_with_event_en, t53_without_branch_en, t59_row_13_vm_exit_by_an_event,
	  t59_row_14_vm_exit, t59_row_15_vm_exit_into_context, t59_row_16_vm_entry,
	  t52_all_settings_system_wide, t52_all_settings_guest_only, host_only_by_lists,
	  lists_that_change_nothing, clear_and_load, t56_rows_7_8_vm_exit_out_of_context,
	  t56_rows_7_8_vm_entry_out_of_context, t56_row_11_vm_exit_guest_only,
	  t56_row_12_vm_entry_guest_only, vm_entry_out_of_context_with_event_en,
	  filters_at_vmx_transitions, vmxon_without_misc_14, vmxon_with_misc_14_and_no_context,
	  vmptrld, without_trace_only_the_mode_changes, tsc_offset_and_scaling)
