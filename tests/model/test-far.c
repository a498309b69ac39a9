// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* model/far.c: Table 33-55 row by row (for near branches, TSX and VMX see the other tests). */
#include <stdio.h>

#include "tests/model/rig.h"

#define IP 0x402000
#define TO 0x403000

/* A far transfer with PacketEn before and after. */
static void plain(unsigned int kind, u64 ip, u64 target)
{
	struct vmpt_far far = far_to(kind, ip, target);

	rig_far(&far);
}

/* Rows 26 and 27 as printed, by an option. */
static void as_printed(void)
{
	rig.config.options.uintr_fup_alone = true;
	rig_init();
	rig_on(CTL);
}

static const struct {
	const char *row;
	u8 kind;
	bool cs, printed;    /* CS changes, too; as_printed() */
	u64 ip, target, cr3; /* 0: as it is */
	const char *want;
} rows[] = {
	{ "8, far branch", VMPT_FAR_BRANCH, false, false, IP, TO, 0, "TIP(0x403000)" },
	{ "9, CR3", VMPT_FAR_TASK, false, false, IP, TO, 0x5000, "PIP(0x5000), TIP(0x403000)" },
	{ "10, CR3 and CS", VMPT_FAR_BRANCH, true, false, IP, TO, 0x5000,
	  "PIP(0x5000), MODE.Exec(32), TIP(0x403000)" },
	{ "11, interrupt", VMPT_FAR_INTERRUPT, false, false, IP, TO, 0,
	  "FUP(0x402000), TIP(0x403000)" },
	{ "12, CR3 and CS", VMPT_FAR_INTERRUPT, true, false, IP, TO, 0x5000,
	  "FUP(0x402000), PIP(0x5000), MODE.Exec(32), TIP(0x403000)" },
	{ "13, exception", VMPT_FAR_EXCEPTION, false, false, IP, TO, 0,
	  "FUP(0x402000), TIP(0x403000)" },
	{ "13, INT n", VMPT_FAR_SOFT_INT, false, false, TO + 4, IP, 0,
	  "FUP(0x403004), TIP(0x402000)" },
	{ "17, EENTER", VMPT_FAR_EENTER, false, false, IP, TO, 0, "FUP(0x402000), TIP(0x403000)" },
	{ "17, EEXIT", VMPT_FAR_EEXIT, false, false, IP, TO, 0, "FUP(0x402000), TIP(0x403000)" },
	{ "17, AEX", VMPT_FAR_AEX, false, false, IP, TO, 0, "FUP(0x402000), TIP(0x403000)" },
	{ "22, INIT of the BSP", VMPT_FAR_INIT, false, false, IP, 0xfffffff0, 0,
	  "FUP(0x402000), TIP(0xfffffff0)" },
	{ "26, as printed", VMPT_FAR_UINTR, false, true, IP, TO, 0, "FUP(0x402000)" },
	{ "27, as printed", VMPT_FAR_UIRET, false, true, IP, TO, 0, "FUP(0x402000)" },
	/* They leave out the TIP that all far transfers have (33.2.1.3). */
	{ "26, UINTR", VMPT_FAR_UINTR, false, false, IP, TO, 0, "FUP(0x402000), TIP(0x403000)" },
	{ "27, UIRET", VMPT_FAR_UIRET, false, false, TO + 4, IP, 0,
	  "FUP(0x403004), TIP(0x402000)" },
};

START_TEST(t55_row)
{
	struct vmpt_far far;
	const char *text;

	if (rows[_i].printed)
		as_printed();
	else
		rig_on(CTL);
	far = far_to(rows[_i].kind, rows[_i].ip, rows[_i].target);
	if (rows[_i].cr3) {
		far.cr3_written = true;
		far.mode.cr3 = rows[_i].cr3;
	}
	if (rows[_i].cs) {
		far.mode.cs_l = false;
		far.mode.cs_d = true;
	}
	rig_far(&far);
	text = rig_text();
	ck_assert_msg(!strcmp(text, rows[_i].want), "row %s: %s", rows[_i].row, text);
}
END_TEST

START_TEST(t55_row_14_mov_cr3)
{
	struct vmpt_mode mode = mode64(0, 0x7fff000);

	rig_on(CTL);
	vmpt_unit_mov_cr3(&rig.unit, IP, &mode);
	expect("PIP(0x7fff000)");
	rig.unit.vmx.on = true;
	rig.unit.vmx.nonroot = true;
	vmpt_unit_mov_cr3(&rig.unit, IP, &mode);
	expect("PIP(0x7fff000,NR)");
	rig.unit.vmx.conceal_exec = true;
	vmpt_unit_mov_cr3(&rig.unit, IP, &mode);
	expect("PIP(0x7fff000)");
}
END_TEST

START_TEST(t55_row_23_init_ap)
{
	struct vmpt_far far;

	rig_on(CTL);
	far = far_to(VMPT_FAR_INIT, IP, 0);
	far.waits = true;
	rig_far(&far);
	expect("FUP(0x402000)");
	/* INIT writes CR3: 0 unless it was 0 (Table 33-24's scenarios) */
	rig_setup();
	rig_on(CTL);
	far.cr3_written = true;
	far.mode.cr3 = 0;
	rig_far(&far);
	expect("FUP(0x402000), PIP(0x0)");
}
END_TEST

START_TEST(t55_row_24_sipi)
{
	struct vmpt_far far;

	rig_on(CTL);
	far = far_to(VMPT_FAR_INIT, IP, 0);
	far.waits = true;
	rig_far(&far);
	rig_skip();
	plain(VMPT_FAR_SIPI, 0, 0x9f000);
	expect("TIP.PGE(0x9f000)");
}
END_TEST

/* Only those two kinds, and only where PacketEn is set before and after, as the table says. */
START_TEST(fup_alone_is_no_more_than_the_rows)
{
	struct vmpt_far far;

	as_printed();
	plain(VMPT_FAR_INTERRUPT, IP, TO);
	expect("FUP(0x402000), TIP(0x403000)");
	rig_init();
	rig.unit.mode = mode64(3, 0x1000);
	rig_wrmsr(VMPT_MSR_RTIT_ADDR0_A, 0x400000);
	rig_wrmsr(VMPT_MSR_RTIT_ADDR0_A + 1, 0x4fffff);
	rig_on(CTL | 1ULL << VMPT_CTL_ADDR_SHIFT(0));
	far = far_to(VMPT_FAR_UINTR, IP, 0x500000);
	rig_far(&far);
	expect("FUP(0x402000), TIP.PGD(0x500000)");
	plain(VMPT_FAR_UIRET, 0x500004, IP);
	expect("TIP.PGE(0x402000)");
}
END_TEST

/* ---- 33.2.9.3: SMI and RSM ---- */

START_TEST(smi_and_rsm_toggle_trace_en_without_pip)
{
	struct vmpt_far far;

	rig_on(CTL);
	far = far_to(VMPT_FAR_SMI, IP, 0x38000);
	far.mode.cr3 = 0x9000;
	far.cr3_written = true;
	rig_far(&far);
	expect("FUP(0x402000), TIP.PGD()");
	ck_assert_uint_eq(rig_rdmsr(VMPT_MSR_RTIT_CTL), CTL);
	vmpt_unit_jmp_indirect(&rig.unit, 0x38010);
	expect("");
	far = far_to(VMPT_FAR_RSM, 0x38010, IP);
	far.mode = mode64(0, 0x1000);
	far.cr3_written = true;
	rig_far(&far);
	expect("CBR(20), MODE.Exec(64), TIP.PGE(0x402000)");
	ck_assert_uint_eq(rig_rdmsr(VMPT_MSR_RTIT_CTL), CTL | VMPT_CTL_TRACE_EN);
}
END_TEST

START_TEST(rsm_evaluates_context_anew)
{
	struct vmpt_far far;

	rig.unit.mode = mode64(3, 0x1000);
	rig_on(CTL & ~VMPT_CTL_OS);
	far = far_to(VMPT_FAR_SMI, IP, 0x38000);
	rig_far(&far);
	rig_skip();
	far = far_to(VMPT_FAR_RSM, 0, IP);
	far.mode.cpl = 0;
	rig_far(&far);
	expect("CBR(20)");
}
END_TEST

/* SMM code may trace itself (33.8.1): in its own mode, and RSM restores the interrupted one. */
START_TEST(smm_traces_itself)
{
	struct vmpt_far far;

	rig_on(CTL);
	far = far_to(VMPT_FAR_SMI, IP, 0x38000);
	far.mode.cs_l = false;
	rig_far(&far);
	rig_skip();
	rig_on_shown(CTL);
	expect("CBR(20), MODE.Exec(16), TIP.PGE(0x401000)");
	rig_off(0x38010);
	rig_skip();
	far = far_to(VMPT_FAR_RSM, 0x38010, IP);
	far.mode.cs_l = true;
	rig_far(&far);
	expect("CBR(20), MODE.Exec(64), TIP.PGE(0x402000)");
}
END_TEST

START_TEST(smi_without_trace_leaves_rsm_nothing)
{
	struct vmpt_far far = far_to(VMPT_FAR_SMI, IP, 0x38000);

	rig_far(&far);
	far = far_to(VMPT_FAR_RSM, 0x38000, IP);
	rig_far(&far);
	expect("");
	ck_assert_uint_eq(rig_rdmsr(VMPT_MSR_RTIT_CTL), 0);
}
END_TEST

START_TEST(without_trigger_only_the_mode_is_noted)
{
	struct vmpt_far far = far_to(VMPT_FAR_INTERRUPT, IP, TO);

	far.mode.cpl = 3;
	rig_far(&far);
	expect("");
	rig_on_shown(CTL & ~VMPT_CTL_USER);
	expect("PSB, CBR(20), PSBEND");
}
END_TEST

/* Table 33-24: CR3[11:5] only with PAE paging, bits above 51 never. */
START_TEST(pip_payload)
{
	struct vmpt_mode mode = mode64(0, 0x800fffffffffffffULL);

	rig_on(CTL);
	vmpt_unit_mov_cr3(&rig.unit, IP, &mode);
	expect("PIP(0xffffffffff000)");
	mode.pae = true;
	vmpt_unit_mov_cr3(&rig.unit, IP, &mode);
	expect("PIP(0xfffffffffffe0)");
}
END_TEST

/* The manual leaves open a PIP at a transition without context on either side. */
START_TEST(pip_without_context)
{
	struct vmpt_mode mode = mode64(0, 0x5000);
	int i;

	for (i = 0; i < 2; i++) {
		rig_setup();
		rig.config.options.pip_without_context = i;
		rig_init();
		rig.unit.mode.cpl = 0;
		rig_wrmsr(VMPT_MSR_RTIT_CR3_MATCH, 0x7000);
		rig_on(CTL | VMPT_CTL_CR3_FILTER);
		vmpt_unit_mov_cr3(&rig.unit, IP, &mode);
		expect(i ? "PIP(0x5000)" : "");
	}
}
END_TEST

static void switch_task(void)
{
	struct vmpt_far far = far_to(VMPT_FAR_TASK, IP, TO);

	far.cr3_written = true;
	far.mode.cr3 = 0x5000;
	rig_far(&far);
}

/* A task switch that writes CR3: as MOV CR3, a PIP with OS only, and where there is context. */
START_TEST(task_switch_pip_needs_os_and_context)
{
	int i;

	rig.unit.mode = mode64(3, 0x1000);
	rig_on(CTL & ~VMPT_CTL_OS);
	switch_task();
	expect("TIP(0x403000)");
	for (i = 0; i < 2; i++) {
		rig_setup();
		rig.config.options.pip_without_context = i;
		rig_init();
		rig_wrmsr(VMPT_MSR_RTIT_CR3_MATCH, 0x7000);
		rig_on(CTL | VMPT_CTL_CR3_FILTER);
		switch_task();
		expect(i ? "PIP(0x5000)" : "");
	}
}
END_TEST

/* A change of RFLAGS.IF makes a MODE.Exec with EventEn only (Table 33-26). */
START_TEST(interrupt_flag_changes_mode_exec)
{
	struct vmpt_far far;

	rig.unit.mode.rflags_if = true;
	rig_on(CTL);
	far = far_to(VMPT_FAR_INTERRUPT, IP, TO);
	far.mode.rflags_if = false;
	rig_far(&far);
	expect("FUP(0x402000), TIP(0x403000)");
	rig_setup();
	rig.unit.mode.rflags_if = true;
	rig_on(CTL | VMPT_CTL_EVENT_EN);
	rig_far(&far);
	expect("CFE.INTR(0), FUP(0x402000), MODE.Exec(64), TIP(0x403000)");
}
END_TEST

static void set_event_trace(bool has)
{
	vmpt_pt_cap_set(&rig.config.cpuid, VMPT_CAP_EVENT, has);
	rig_init();
}

/* MODE.Exec has RFLAGS.IF if CPUID.14H.0:EBX[7] is 1, whatever EventEn is (Table 33-26). */
START_TEST(da_mode_exec_has_if_by_cpuid)
{
	static const struct {
		bool event_trace, event_en, rflags_if;
		const char *want;
	} row[] = {
		{ false, false, false, "64" }, { false, false, true, "64" },
		{ true, false, false, "64" },  { true, false, true, "64,IF" },
		{ true, true, false, "64" },   { true, true, true, "64,IF" },
	};
	char want[200];
	size_t i;

	for (i = 0; i < VMPT_ARRAY_SIZE(row); i++) {
		rig_setup();
		set_event_trace(row[i].event_trace);
		rig.unit.mode.rflags_if = row[i].rflags_if;
		rig_on_shown(CTL | (row[i].event_en ? VMPT_CTL_EVENT_EN : 0));
		snprintf(want, sizeof(want),
			 "PSB, CBR(20), PIP(0x1000), MODE.TSX(), PSBEND, MODE.Exec(%s), "
			 "TIP.PGE(0x401000)",
			 row[i].want);
		expect(want);
		/* the same in a PSB+ */
		rig.unit.psb_due = true;
		vmpt_unit_jmp(&rig.unit, TO);
		snprintf(want, sizeof(want),
			 "PSB, CBR(20), PIP(0x1000), MODE.TSX(), MODE.Exec(%s), FUP(0x403000), "
			 "PSBEND",
			 row[i].want);
		expect(want);
	}
}
END_TEST

/* EventEn = 0: a change of IF makes none; one for CS.L or CS.D has the IF of its IP packet. */
START_TEST(da_if_without_event_en)
{
	struct vmpt_far far;

	rig_on(CTL);
	vmpt_unit_set_if(&rig.unit, IP, true);
	expect("");
	far = far_to(VMPT_FAR_BRANCH, IP, TO);
	far.mode.cs_l = false;
	rig_far(&far);
	expect("MODE.Exec(16,IF), TIP(0x403000)");
	far.kind = VMPT_FAR_INTERRUPT;
	far.mode.rflags_if = false;
	rig_far(&far);
	expect("FUP(0x402000), TIP(0x403000)");
	far.kind = VMPT_FAR_IRET;
	far.mode.cs_l = true;
	rig_far(&far);
	expect("MODE.Exec(64), TIP(0x403000)");
}
END_TEST

/*
 * "Any TIP.PGE scenario, such that any of the mode bits tracked may have changed since the last
 * MODE.Exec": it may be left out only where the mode, IF included, is that of the last one.
 */
START_TEST(da_if_before_a_tip_pge)
{
	struct vmpt_far out, in;
	int i;

	for (i = 0; i < 2; i++) {
		rig_setup();
		set_event_trace(i);
		rig_on(CTL & ~VMPT_CTL_USER);
		out = far_to(VMPT_FAR_BRANCH, IP, TO);
		in = out;
		out.mode.cpl = 3;
		out.mode.rflags_if = true;
		rig_far(&out);
		rig_far(&in);
		expect("TIP.PGD(), TIP.PGE(0x403000)");
		rig_far(&out);
		in.mode.rflags_if = true;
		rig_far(&in);
		expect(i ? "TIP.PGD(), MODE.Exec(64,IF), TIP.PGE(0x403000)"
			 : "TIP.PGD(), TIP.PGE(0x403000)");
		rig_far(&out);
		rig_far(&in);
		expect("TIP.PGD(), TIP.PGE(0x403000)");
	}
}
END_TEST

RIG_TABLE_SUITE("far", t55_row, VMPT_ARRAY_SIZE(rows), t55_row_14_mov_cr3, t55_row_23_init_ap,
		t55_row_24_sipi, fup_alone_is_no_more_than_the_rows,
		smi_and_rsm_toggle_trace_en_without_pip, smm_traces_itself,
		rsm_evaluates_context_anew, smi_without_trace_leaves_rsm_nothing,
		without_trigger_only_the_mode_is_noted, pip_payload, pip_without_context,
		task_switch_pip_needs_os_and_context, interrupt_flag_changes_mode_exec,
		da_mode_exec_has_if_by_cpuid, da_if_without_event_en, da_if_before_a_tip_pge)
