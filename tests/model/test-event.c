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

#define PAGE_FAULT 14

static const struct {
	const char *row;
	u8 kind;
	bool before, after; /* ContextEn */
	u8 vector;
	const char *want;
} rows[] = {
	{ "1, IRET", VMPT_FAR_IRET, true, false, 0x33, "CFE.IRET(IP,0), FUP(0x402000)" },
	{ "1, IRET", VMPT_FAR_IRET, true, true, 0x33, "CFE.IRET(IP,0), FUP(0x402000)" },
	{ "2, IRET into the context", VMPT_FAR_IRET, false, true, 0x33, "CFE.IRET(0)" },
	{ "3, interrupt", VMPT_FAR_INTERRUPT, true, true, 0x33, "CFE.INTR(IP,51), FUP(0x402000)" },
	{ "3, interrupt", VMPT_FAR_INTERRUPT, true, false, 0x33, "CFE.INTR(IP,51), FUP(0x402000)" },
	{ "5, INT n", VMPT_FAR_SOFT_INT, true, false, 0x33, "CFE.INTR(IP,51), FUP(0x402000)" },
	{ "5, fault", VMPT_FAR_EXCEPTION, true, true, 0x33, "CFE.INTR(IP,51), FUP(0x402000)" },
	{ "6, page fault", VMPT_FAR_EXCEPTION, true, false, PAGE_FAULT,
	  "EVD.PFA(0xffff888012345678), CFE.INTR(IP,14), FUP(0x402000)" },
	{ "6, page fault", VMPT_FAR_EXCEPTION, true, true, PAGE_FAULT,
	  "EVD.PFA(0xffff888012345678), CFE.INTR(IP,14), FUP(0x402000)" },
	{ "7, page fault out of the context", VMPT_FAR_EXCEPTION, false, false, PAGE_FAULT, "" },
	{ "7, page fault out of the context", VMPT_FAR_EXCEPTION, false, true, PAGE_FAULT, "" },
	{ "12, shutdown", VMPT_FAR_SHUTDOWN, true, true, 0, "CFE.SHUTDOWN(IP,0), FUP(0x402000)" },
	/* Only a debug enclave has context. */
	{ "17, AEX stays out", VMPT_FAR_AEX, false, false, 0x33, "" },
	{ "18, AEX into the context", VMPT_FAR_AEX, false, true, 0x33, "CFE.INTR(0)" },
	{ "19, AEX of a debug enclave", VMPT_FAR_AEX, true, false, 0x33,
	  "CFE.INTR(IP,51), FUP(0x402000)" },
	{ "19, AEX of a debug enclave", VMPT_FAR_AEX, true, true, 0x33,
	  "CFE.INTR(IP,51), FUP(0x402000)" },
	{ "20, INIT", VMPT_FAR_INIT, true, true, 0, "CFE.INIT(IP,0), FUP(0x402000)" },
	/* Table 33-50: UINTR has its vector and NLIP, UIRET neither vector nor another's IP. */
	{ "UINTR", VMPT_FAR_UINTR, true, true, 0x33, "CFE.UINTR(IP,51), FUP(0x402000)" },
	{ "UIRET", VMPT_FAR_UIRET, true, true, 0, "CFE.UIRET(IP,0), FUP(0x402000)" },
	{ "far branch", VMPT_FAR_BRANCH, true, true, 0x33, "" },
	{ "task switch", VMPT_FAR_TASK, true, true, 0x33, "" },
	/* A type whose vector is invalid has none, whatever the caller passed. */
	{ "INIT with a vector", VMPT_FAR_INIT, true, true, 0x33, "CFE.INIT(IP,0), FUP(0x402000)" },
	{ "UIRET with a vector", VMPT_FAR_UIRET, true, true, 0x33,
	  "CFE.UIRET(IP,0), FUP(0x402000)" },
	{ "SHUTDOWN with a vector", VMPT_FAR_SHUTDOWN, true, true, 0x33,
	  "CFE.SHUTDOWN(IP,0), FUP(0x402000)" },
	{ "SMI with a vector", VMPT_FAR_SMI, true, true, 0x33, "CFE.SMI(IP,0), FUP(0x402000)" },
};

START_TEST(t59_row)
{
	struct vmpt_far far = event(rows[_i].kind, rows[_i].before, rows[_i].after);
	const char *text;

	if (rows[_i].kind == VMPT_FAR_AEX) {
		rig_setup();
		rig.unit.mode = mode64(3, 0x1000);
		rig.unit.mode.enclave = !rows[_i].before;
		rig_on(USER_EVENTS);
		far.mode = mode64(rows[_i].after ? 3 : 0, 0x1000);
	}
	far.vector = rows[_i].vector;
	far.page_fault = far.vector == PAGE_FAULT;
	far.pf_address = far.page_fault ? 0xffff888012345678 : 0;
	rig_far(&far);
	text = rig_text();
	ck_assert_msg(!strcmp(text, rows[_i].want), "row %s, context %d to %d: %s", rows[_i].row,
		      rows[_i].before, rows[_i].after, text);
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

RIG_TABLE_SUITE("event", t59_row, VMPT_ARRAY_SIZE(rows), t59_row_4_shared_fup, t59_row_10_smi,
		t59_row_11_rsm, t59_row_21_sipi, t59_row_22_interrupt_flag,
		interrupt_flag_without_event_en_or_context)
