// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * model/far.c: Event Trace, Table 33-59 row by row (13 to 16: test-vmx.c; rows 8 and 9 are
 * missing in the manual's text). BranchEn = 0 unless the row has it: only EventEn makes packets.
 */
#include "tests/model/rig.h"

#define IP     0x402000
#define TO     0x403000
#define EVENTS (VMPT_CTL_OS | VMPT_CTL_USER | VMPT_CTL_EVENT_EN)
/* Context at CPL 3 only. */
#define USER_EVENTS (VMPT_CTL_USER | VMPT_CTL_EVENT_EN)

/* ContextEn @before and @after an event of @kind. */
static struct vmpt_far event(unsigned int kind, bool before, bool after)
{
	struct vmpt_far far;

	rig_setup();
	rig.unit.mode = mode64(before ? 3 : 0, 0x1000);
	rig_on(USER_EVENTS);
	far = far_to(kind, IP, TO);
	far.mode.cpl = after ? 3 : 0;
	far.vector = 0x33;
	return far;
}

static void check(unsigned int kind, bool before, bool after, const char *want)
{
	struct vmpt_far far = event(kind, before, after);

	rig_far(&far);
	expect(want);
}

START_TEST(t59_row_1_iret)
{
	check(VMPT_FAR_IRET, true, false, "CFE.IRET(IP,0), FUP(0x402000)");
	check(VMPT_FAR_IRET, true, true, "CFE.IRET(IP,0), FUP(0x402000)");
}
END_TEST

START_TEST(t59_row_2_iret_into_context)
{
	check(VMPT_FAR_IRET, false, true, "CFE.IRET(0)");
}
END_TEST

START_TEST(t59_row_3_interrupt)
{
	check(VMPT_FAR_INTERRUPT, true, true, "CFE.INTR(IP,51), FUP(0x402000)");
	check(VMPT_FAR_INTERRUPT, true, false, "CFE.INTR(IP,51), FUP(0x402000)");
}
END_TEST

START_TEST(t59_row_4_shared_fup)
{
	struct vmpt_far far;

	rig_on(EVENTS | VMPT_CTL_BRANCH_EN);
	far = far_to(VMPT_FAR_INTERRUPT, IP, TO);
	far.vector = 0x33;
	rig_far(&far);
	expect("CFE.INTR(51), FUP(0x402000), TIP(0x403000)");
}
END_TEST

START_TEST(t59_row_5_software_interrupt_fault)
{
	check(VMPT_FAR_SOFT_INT, true, false, "CFE.INTR(IP,51), FUP(0x402000)");
	check(VMPT_FAR_EXCEPTION, true, true, "CFE.INTR(IP,51), FUP(0x402000)");
}
END_TEST

static void page_fault(bool before, bool after, const char *want)
{
	struct vmpt_far far = event(VMPT_FAR_EXCEPTION, before, after);

	far.page_fault = true;
	far.pf_address = 0xffff888012345678;
	far.vector = 14;
	rig_far(&far);
	expect(want);
}

START_TEST(t59_row_6_page_fault)
{
	const char *want = "EVD.PFA(0xffff888012345678), CFE.INTR(IP,14), FUP(0x402000)";

	page_fault(true, false, want);
	page_fault(true, true, want);
}
END_TEST

START_TEST(t59_row_7_page_fault_out_of_context)
{
	page_fault(false, false, "");
	page_fault(false, true, "");
}
END_TEST

START_TEST(t59_row_10_smi)
{
	struct vmpt_far far = event(VMPT_FAR_SMI, true, false);

	far.vector = 0;
	rig_far(&far);
	expect("CFE.SMI(IP,0), FUP(0x402000)");
	/* and with BranchEn the FUP is shared */
	rig_setup();
	rig_on(EVENTS | VMPT_CTL_BRANCH_EN);
	rig_far(&far);
	expect("CFE.SMI(0), FUP(0x402000), TIP.PGD()");
}
END_TEST

START_TEST(t59_row_11_rsm)
{
	struct vmpt_far far = event(VMPT_FAR_SMI, true, false);

	rig_far(&far);
	rig_skip();
	far = far_to(VMPT_FAR_RSM, 0x38000, IP);
	far.mode = mode64(3, 0x1000);
	rig_far(&far);
	expect("CBR(20), CFE.RSM(0)");
	/* with BranchEn before the TIP.PGE, where it stands alone (Table 33-49) */
	rig_setup();
	rig_on(EVENTS | VMPT_CTL_BRANCH_EN);
	far = far_to(VMPT_FAR_SMI, IP, 0x38000);
	rig_far(&far);
	rig_skip();
	far = far_to(VMPT_FAR_RSM, 0x38000, IP);
	rig_far(&far);
	expect("CBR(20), CFE.RSM(0), MODE.Exec(64), TIP.PGE(0x402000)");
}
END_TEST

START_TEST(t59_row_12_shutdown)
{
	struct vmpt_far far = event(VMPT_FAR_SHUTDOWN, true, true);

	far.vector = 0;
	rig_far(&far);
	expect("CFE.SHUTDOWN(IP,0), FUP(0x402000)");
}
END_TEST

static void aex(bool debug, bool after_user, const char *want)
{
	struct vmpt_far far;

	rig_setup();
	rig.unit.mode = mode64(3, 0x1000);
	rig.unit.mode.enclave = !debug;
	rig_on(USER_EVENTS);
	far = far_to(VMPT_FAR_AEX, IP, TO);
	far.mode = mode64(after_user ? 3 : 0, 0x1000);
	far.vector = 0x33;
	rig_far(&far);
	expect(want);
}

START_TEST(t59_row_17_aex_stays_out)
{
	aex(false, false, "");
}
END_TEST

START_TEST(t59_row_18_aex_into_context)
{
	aex(false, true, "CFE.INTR(0)");
}
END_TEST

START_TEST(t59_row_19_aex_of_a_debug_enclave)
{
	aex(true, false, "CFE.INTR(IP,51), FUP(0x402000)");
	aex(true, true, "CFE.INTR(IP,51), FUP(0x402000)");
}
END_TEST

START_TEST(t59_row_20_init)
{
	struct vmpt_far far = event(VMPT_FAR_INIT, true, true);

	far.vector = 0;
	rig_far(&far);
	expect("CFE.INIT(IP,0), FUP(0x402000)");
}
END_TEST

START_TEST(t59_row_21_sipi)
{
	struct vmpt_far far;

	rig_on(EVENTS);
	far = far_to(VMPT_FAR_INIT, IP, 0);
	far.waits = true;
	rig_far(&far);
	expect("CFE.INIT(IP,0), FUP(0x402000)");
	far = far_to(VMPT_FAR_SIPI, 0, 0x9f000);
	far.vector = 0x9f;
	rig_far(&far);
	/* The vector is the SIPI's (Table 33-50). */
	expect("CFE.SIPI(159)");
}
END_TEST

START_TEST(t59_row_22_interrupt_flag)
{
	rig_on(EVENTS);
	vmpt_unit_set_if(&rig.unit, IP, true);
	expect("MODE.Exec(64,IF), FUP(0x402000)");
	vmpt_unit_set_if(&rig.unit, IP + 1, false);
	expect("MODE.Exec(64), FUP(0x402001)");
}
END_TEST

START_TEST(interrupt_flag_without_event_en_or_context)
{
	rig_on(CTL);
	vmpt_unit_set_if(&rig.unit, IP, true);
	expect("");
	rig_setup();
	vmpt_unit_set_if(&rig.unit, IP, true);
	rig_on(USER_EVENTS);
	vmpt_unit_set_if(&rig.unit, IP, false);
	expect("");
}
END_TEST

/* Table 33-50: UINTR has its vector and NLIP, UIRET has no vector and its own IP. */
START_TEST(user_interrupts)
{
	struct vmpt_far far;

	check(VMPT_FAR_UINTR, true, true, "CFE.UINTR(IP,51), FUP(0x402000)");
	far = event(VMPT_FAR_UIRET, true, true);
	far.vector = 0;
	rig_far(&far);
	expect("CFE.UIRET(IP,0), FUP(0x402000)");
}
END_TEST

START_TEST(no_event_for_a_far_branch)
{
	check(VMPT_FAR_BRANCH, true, true, "");
	check(VMPT_FAR_TASK, true, true, "");
}
END_TEST

/* A type whose vector is invalid has none, whatever the caller passed. */
START_TEST(vector_only_where_table_50_has_one)
{
	check(VMPT_FAR_INIT, true, true, "CFE.INIT(IP,0), FUP(0x402000)");
	check(VMPT_FAR_UIRET, true, true, "CFE.UIRET(IP,0), FUP(0x402000)");
	check(VMPT_FAR_SHUTDOWN, true, true, "CFE.SHUTDOWN(IP,0), FUP(0x402000)");
	check(VMPT_FAR_SMI, true, true, "CFE.SMI(IP,0), FUP(0x402000)");
}
END_TEST

RIG_SUITE("event", t59_row_1_iret, t59_row_2_iret_into_context, t59_row_3_interrupt,
	  t59_row_4_shared_fup, t59_row_5_software_interrupt_fault, t59_row_6_page_fault,
	  t59_row_7_page_fault_out_of_context, t59_row_10_smi, t59_row_11_rsm, t59_row_12_shutdown,
	  t59_row_17_aex_stays_out, t59_row_18_aex_into_context, t59_row_19_aex_of_a_debug_enclave,
	  t59_row_20_init, t59_row_21_sipi, t59_row_22_interrupt_flag,
	  interrupt_flag_without_event_en_or_context, user_interrupts, no_event_for_a_far_branch,
	  vector_only_where_table_50_has_one)
