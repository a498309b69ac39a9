// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * RTIT Programming Reference, 4.2.6: FUP.PCC comes "at the beginning of an instruction", before all
 * its packets; interrupts, exceptions, SMI and VM exit are not instructions (docs/rtit/model.md).
 */
#include "tests/model/rtit/rig.h"

#define U    (&rig.unit)
#define NLIP 0x401005

static void e_step(void)
{
	step(NLIP);
}

static void e_jcc_taken(void)
{
	jcc(true, NLIP, 0x5000);
}

static void e_jcc(void)
{
	jcc(false, NLIP, 0x5000);
}

static void e_jmp(void)
{
	jmp(NLIP, 0x5000);
}

static void e_call(void)
{
	call(NLIP, 0x5000);
}

static void e_jmp_ind(void)
{
	jmp_ind(NLIP, 0x5000);
}

static void e_call_ind(void)
{
	call_ind(NLIP, 0x5000);
}

static void e_ret(void)
{
	ret(NLIP, 0x5000);
}

static void e_mov_cr3(void)
{
	mov_cr3(NLIP, 0x2000);
}

static void e_mov_cr0(void)
{
	vmpt_rtit_unit_mov_cr0(U, NLIP, false);
}

static void e_wrmsr(void)
{
	wr_at(LIP0, 0x1000, NLIP);
}

static void e_wrmsr_ctl(void)
{
	wr_at(CTL, rig.unit.regs.ctl & ~(u64)OS, NLIP);
}

static void e_wrmsr_off(void)
{
	wr_at(CTL, rig.unit.regs.ctl & ~(u64)TRACE_ACTIVE, NLIP);
}

static void e_vmxon(void)
{
	vmpt_rtit_unit_vmxon(U, NLIP);
}

static void e_far_jmp(void)
{
	struct vmpt_rtit_far f = { .ip = NLIP,
				   .target = 0x5000,
				   .mode = rig.unit.mode,
				   .is_insn = true,
				   .insn = NLIP - 5 };

	vmpt_rtit_unit_far(U, &f);
}

/* An interrupt, an exception: they are reported the same way. */
static void e_interrupt(void)
{
	far(NLIP, 0x5000);
}

static void e_smi(void)
{
	vmpt_rtit_unit_smi(U, NLIP);
}

static void e_vm_exit(void)
{
	vmpt_rtit_unit_vmexit(U, NLIP, &rig.unit.mode);
}

#define PCC "FUP.PCC 401005 +2097152"
static const struct {
	void (*event)(void);
	const char *want;
	u64 tnt;
} events[] = {
	{ e_step, PCC, 1 },
	{ e_jcc_taken, PCC, 3 },
	{ e_jcc, PCC, 2 },
	{ e_jmp, PCC, 1 },
	{ e_call, PCC, 1 },
	{ e_jmp_ind, PCC ", TIP 5000 +0", 1 },
	{ e_call_ind, PCC ", TIP 5000 +0", 1 },
	{ e_ret, PCC ", TIP 5000 +0", 1 },
	{ e_mov_cr3, PCC ", PIP 2000 PG +0", 1 },
	{ e_mov_cr0, PCC ", PIP 1000 +0", 1 },
	{ e_wrmsr, PCC, 1 },
	{ e_wrmsr_ctl, PCC ", FUP.PGD 401005 +0", 1 },
	{ e_wrmsr_off, PCC, 1 },
	{ e_vmxon, PCC ", FUP.PGD 401005 +0", 1 },
	{ e_far_jmp, PCC ", FUP.Far 401005 +0, TIP 5000 +0", 1 },
	/* no instructions */
	{ e_interrupt, "FUP.Far 401005 +2097152, TIP 5000 +0", 1 },
	{ e_smi, "FUP.PGD 401005 +2097152", 1 },
	{ e_vm_exit, "FUP.PGD 401005 +2097152", 1 },
};

static void enter(void)
{
	vmpt_rtit_unit_vmxon(U, 0x401000);
	vmpt_rtit_unit_vmentry(U, 0x401000, &rig.unit.mode);
	on(BOTH | CYCLE_ACC);
	wr(CNTP, 0);
	expect_nothing;
	cycles(0x200000);
	expect_nothing;
}

START_TEST(before_the_event)
{
	enter();
	events[_i].event();
	expect(events[_i].want);
	expect_tnt(events[_i].tnt);
	ck_assert_uint_eq(rd(CNTP), 0);
}
END_TEST

/* Pending bits come before it, not the event's own bit. */
START_TEST(bits_that_wait)
{
	char want[100] = "TNT TN, ";

	enter();
	rig.unit.regs.cntp = 0;
	jccs("TN");
	cycles(0x200000);
	events[_i].event();
	strcat(want, events[_i].want);
	expect(want);
	expect_tnt(events[_i].tnt);
}
END_TEST

/* One cycle earlier there is none. */
START_TEST(not_due)
{
	enter();
	rig.unit.regs.cntp = 0x1fffff;
	events[_i].event();
	ck_assert_ptr_null(strstr(rig_text(), "FUP.PCC"));
}
END_TEST

/* In an overflow it waits, whatever executes. */
START_TEST(in_an_overflow)
{
	enter();
	vmpt_rtit_unit_overflow(U);
	events[_i].event();
	expect_nothing;
	ck_assert_uint_eq(rd(CNTP), 0x200000);
}
END_TEST

TEST_SUITE()
{
	const TTest *const tests[] = { before_the_event, bits_that_wait, not_due, in_an_overflow };
	Suite *suite = suite_create("pcc");
	TCase *tc = tcase_create("pcc");
	size_t i;

	tcase_add_checked_fixture(tc, rig_setup, NULL);
	for (i = 0; i < VMPT_ARRAY_SIZE(tests); i++)
		tcase_add_loop_test(tc, tests[i], 0, VMPT_ARRAY_SIZE(events));
	suite_add_tcase(suite, tc);
	return suite;
}
