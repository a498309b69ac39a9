// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* RTIT Programming Reference: 2.6.1 system management mode, 2.6.2 VMX; 2.4.1 and 2.4.2. */
#include "tests/model/rtit/rig.h"

#define IN    0x401000
#define LIMIT 0x402000
#define OUT   0x300000

static void smi(u64 ip)
{
	vmpt_rtit_unit_smi(&rig.unit, ip);
}

static void rsm_cpl(u64 target, unsigned int cpl, u64 cr3)
{
	struct vmpt_rtit_mode mode = { .cpl = (u8)cpl, .cr3 = cr3, .paging = true };

	vmpt_rtit_unit_rsm(&rig.unit, target, &mode);
}

static void entry(u64 target, unsigned int cpl, u64 cr3)
{
	struct vmpt_rtit_mode mode = { .cpl = (u8)cpl, .cr3 = cr3, .paging = true };

	vmpt_rtit_unit_vmentry(&rig.unit, target, &mode);
}

static void exit_to(u64 ip, u64 cr3)
{
	struct vmpt_rtit_mode mode = { .cr3 = cr3, .paging = true };

	vmpt_rtit_unit_vmexit(&rig.unit, ip, &mode);
}

/* ---- SMM ---- */

START_TEST(smi_and_rsm)
{
	on(BOTH);
	smi(0x401010);
	expect("FUP.PGD 401010");
	ck_assert_uint_eq(status(), FILTER_EN | TRIGGER_EN);
	/* The handler is traced at no CPL. */
	jccs("TNTNTN");
	jmp_ind(0x38002, 0x38100);
	far_cpl(0x38102, 0x38200, 3);
	far_cpl(0x38202, 0x38300, 0);
	mov_cr3(0x38303, 0x8000);
	expect_nothing;
	expect_tnt(1);
	rsm_cpl(0x401010, 0, 0x1000);
	expect("FUP.PGE 401010");
	ck_assert_uint_eq(status(), FILTER_EN | CONTEXT_EN | TRIGGER_EN);
}
END_TEST

/* "it could change the return address to be outside of the filtered region" */
START_TEST(rsm_out_of_the_region)
{
	range0(IN, LIMIT);
	wr(EVENTS, EVENT(RANGE0, NEVER));
	wr_at(CTL, BOTH | DEST | TRACE_EN, OUT);
	wr_at(CTL, BOTH | DEST | TRACE_EN | TRACE_ACTIVE, OUT);
	rig_skip();
	jmp(OUT + 5, IN);
	smi(IN + 0x10);
	expect("FUP.PGE 401000, FUP.PGD 401010");
	rsm_cpl(OUT, 0, 0x1000);
	expect_nothing;
	ck_assert_uint_eq(status(), CONTEXT_EN | TRIGGER_EN);
	/* and into it */
	smi(OUT + 2);
	expect_nothing;
	rsm_cpl(IN + 0x20, 0, 0x1000);
	expect("FUP.PGE 401020");
}
END_TEST

/* "Or it could change the CR3 value." "RSM re-evaluates" it, and the CPL. */
START_TEST(rsm_elsewhere)
{
	wr(CR3_MATCH, 0x1000);
	on(USER | CR3_EN);
	far_cpl(0x401002, 0x5000, 3);
	expect("FUP.PGE 5000");
	smi(0x5004);
	expect("FUP.PGD 5004");
	rsm_cpl(0x5004, 3, 0x2000);
	expect_nothing;
	smi(0x5004);
	expect_nothing;
	rsm_cpl(0x5004, 0, 0x1000);
	expect_nothing;
	smi(0x5004);
	rsm_cpl(0x5004, 3, 0x1000);
	expect("FUP.PGE 5004");
}
END_TEST

/* Without tracing it makes no packets. */
START_TEST(smi_untraced)
{
	smi(0x401010);
	rsm_cpl(0x401010, 0, 0x1000);
	expect_nothing;
	on(USER);
	smi(0x401010);
	rsm_cpl(0x401010, 0, 0x1000);
	expect_nothing;
}
END_TEST

/* RTIT is off in SMM, whatever is written there. */
START_TEST(enabled_in_smm)
{
	smi(0x401010);
	on_shown(BOTH);
	expect("PSB");
	ck_assert_uint_eq(status() & (CONTEXT_EN | TRIGGER_EN), TRIGGER_EN);
	jmp_ind(0x38002, 0x38100);
	expect_nothing;
	rsm_cpl(0x401010, 0, 0x1000);
	/* FilterEn was frozen; RSM is an event with a target. */
	expect("FUP.PGE 401010");
}
END_TEST

/* Periodic packets go on (2.1.2: "some packets, such as the MTC"), unless LESS_PKTS. */
START_TEST(timing_in_smm)
{
	on(BOTH | MTC_EN | STS_EN);
	smi(0x401010);
	rig_skip();
	tsc(0x80);
	vmpt_rtit_unit_frequency(&rig.unit, 8, 8);
	expect("MTC 0:01, STS 8/8 80");
	ctl_set(LESS_PKTS);
	tsc(0x100);
	vmpt_rtit_unit_frequency(&rig.unit, 9, 9);
	expect_nothing;
}
END_TEST

/* ---- VMX ---- */

/* "always disabled in … root mode" */
START_TEST(root_is_never_traced)
{
	on(BOTH);
	vmpt_rtit_unit_vmxon(&rig.unit, 0x401004);
	expect("FUP.PGD 401004");
	ck_assert_uint_eq(status() & CONTEXT_EN, 0);
	jmp_ind(0x401006, 0x5000);
	jccs("TN");
	far_cpl(0x5002, 0x6000, 3);
	far_cpl(0x6002, 0x5000, 0);
	mov_cr3(0x5003, 0x1000);
	expect_nothing;
	expect_tnt(1);
	vmpt_rtit_unit_vmxoff(&rig.unit, 0x5007);
	expect("FUP.PGE 5007");
	ck_assert_uint_eq(status() & CONTEXT_EN, CONTEXT_EN);
}
END_TEST

/* Runs of a guest: FUP.PGE at each entry, FUP.PGD at each exit, no TIP, no PIP */
START_TEST(guest_runs)
{
	on(BOTH);
	vmpt_rtit_unit_vmxon(&rig.unit, 0x401004);
	rig_skip();
	entry(0x8000, 0, 0x5000);
	expect("FUP.PGE 8000");
	jmp_ind(0x8002, 0x9000);
	mov_cr3(0x9003, 0x6000);
	expect("TIP 9000, PIP 6000 PG");
	exit_to(0x9003, 0x1000);
	expect("FUP.PGD 9003");
	ck_assert_uint_eq(status() & CONTEXT_EN, 0);
	/* "If the VMCS guest RIP field was not modified …" */
	entry(0x9003, 3, 0x6000);
	expect("FUP.PGE 9003");
	exit_to(0x9010, 0x1000);
	vmpt_rtit_unit_vmxoff(&rig.unit, 0x401010);
	expect("FUP.PGD 9010, FUP.PGE 401010");
}
END_TEST

/* "VM entry will re-evaluate whether CR3 matches RTIT_CR3_MATCH", and the CPL */
START_TEST(guest_that_is_filtered)
{
	wr(CR3_MATCH, 0x6000);
	on(USER | CR3_EN);
	vmpt_rtit_unit_vmxon(&rig.unit, 0x401004);
	entry(0x8000, 3, 0x5000);
	exit_to(0x8001, 0x6000);
	entry(0x8001, 0, 0x6000);
	exit_to(0x8002, 0x6000);
	expect_nothing;
	entry(0x8002, 3, 0x6000);
	exit_to(0x8003, 0x1000);
	expect("FUP.PGE 8002, FUP.PGD 8003");
}
END_TEST

/* Into and out of the region by the guest's RIP */
START_TEST(guest_in_the_region)
{
	range0(IN, LIMIT);
	wr(EVENTS, EVENT(RANGE0, NEVER));
	on(BOTH);
	vmpt_rtit_unit_vmxon(&rig.unit, OUT);
	entry(OUT, 0, 0x5000);
	expect_nothing;
	exit_to(OUT + 2, 0x1000);
	entry(IN + 4, 0, 0x5000);
	expect("FUP.PGE 401004");
	exit_to(IN + 6, 0x1000);
	expect("FUP.PGD 401006");
	entry(OUT, 0, 0x5000);
	expect_nothing;
}
END_TEST

/* SMM while a guest runs, and RSM back to it; SMM in root operation */
START_TEST(smm_and_vmx)
{
	on(BOTH);
	vmpt_rtit_unit_vmxon(&rig.unit, 0x401004);
	rig_skip();
	smi(0x401008);
	rsm_cpl(0x401008, 0, 0x1000);
	expect_nothing;
	entry(0x8000, 0, 0x5000);
	smi(0x8004);
	expect("FUP.PGE 8000, FUP.PGD 8004");
	jmp_ind(0x38000, 0x38100);
	expect_nothing;
	rsm_cpl(0x8004, 0, 0x5000);
	expect("FUP.PGE 8004");
}
END_TEST

/* ---- 2.4.1 ---- */

/* "a page fault which triggers a change of CPL from 3 to 0 will not send out a TIP … if RTIT is
 * configured to only monitor CPL 1/2/3. A FUP packet will still be generated" */
START_TEST(page_fault_example)
{
	on(USER);
	far_cpl(0x401002, 0x5000, 3);
	expect("FUP.PGE 5000");
	jccs("T");
	far_cpl(0x5002, 0xffff80001000, 0);
	expect("TNT T, FUP.PGD 5002");
}
END_TEST

START_TEST(each_cpl)
{
	unsigned int from = (unsigned int)_i & 3, to = (unsigned int)_i >> 2 & 3;
	u64 ctl = (_i & 16 ? OS : 0) | (_i & 32 ? USER : 0);
	bool before = ctl & (from ? USER : OS), after = ctl & (to ? USER : OS);

	rig.unit.mode.cpl = (u8)from;
	on(ctl);
	ck_assert(rig.unit.packet_en == before);
	far_cpl(0x401002, 0x5000, to);
	if (before)
		expect(after ? "FUP.Far 401002, TIP 5000" : "FUP.PGD 401002");
	else
		expect(after ? "FUP.PGE 5000" : "");
	ck_assert_uint_eq(status() & CONTEXT_EN, after ? CONTEXT_EN : 0);
}
END_TEST

TEST_SUITE()
{
	const TTest *const once[] = { smi_and_rsm,
				      rsm_out_of_the_region,
				      rsm_elsewhere,
				      smi_untraced,
				      enabled_in_smm,
				      timing_in_smm,
				      root_is_never_traced,
				      guest_runs,
				      guest_that_is_filtered,
				      guest_in_the_region,
				      smm_and_vmx,
				      page_fault_example };
	Suite *suite = suite_create("modes");
	TCase *tc = tcase_create("modes");
	size_t i;

	tcase_add_checked_fixture(tc, rig_setup, NULL);
	for (i = 0; i < VMPT_ARRAY_SIZE(once); i++)
		tcase_add_test(tc, once[i]);
	tcase_add_loop_test(tc, each_cpl, 0, 64);
	suite_add_tcase(suite, tc);
	return suite;
}
