// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * vmm-lib/rtit/hw.c, rtit.c: a processor that fails, or returns values that no such MSR can hold.
 */
#include "tests/vmm-lib/rtit/rig.h"

static struct rig rig;

static void setup(void)
{
	rig_init(&rig, VMPT_RTIT_CONTIGUOUS, 0);
}

static void teardown(void)
{
	rig_free(&rig);
}

static void load(void)
{
	ck_assert_int_eq(vmpt_rtit_vcpu_load(&rig.v), 0);
}

static void unload(void)
{
	ck_assert_int_eq(vmpt_rtit_vcpu_unload(&rig.v), 0);
}

/*
 * Each access in turn: the order is violated only by the missing write, nothing is pinned twice,
 * and an error is reported.
 */
START_TEST(failing_load)
{
	u32 n;

	rig_program(&rig, 0x10000, 0xffff, RIG_ON);
	rig_host_on(&rig, RIG_ON);
	for (n = 1;; n++) {
		int ret;

		rig_forget(&rig);
		rig.fail_at = n;
		ret = vmpt_rtit_vcpu_load(&rig.v);
		rig.fail_at = 0;
		if (!ret)
			break;
		ck_assert_int_eq(ret, -VMPT_E_HARDWARE);
		ck_assert(!rig.v.loaded);
		ck_assert_uint_eq(rig.pins[0x10], 0);
		/* Nothing of the guest continues to trace. */
		ck_assert(!vmpt_rtit_trigger_en(&rig.unit.regs) ||
			  rig.unit.regs.base_addr == RIG_HOST_HPA);
	}
	/* CTL, stop, its check, 15 to save, 15 to load, Trace_En, TraceActive */
	ck_assert_uint_eq(n, 1 + 2 + 1 + 15 + 15 + 2 + 1);
	unload();
}
END_TEST

START_TEST(failing_unload)
{
	u32 n;

	rig_program(&rig, 0x10000, 0xffff, RIG_ON);
	for (n = 1;; n++) {
		int ret;

		rig_host_on(&rig, RIG_ON);
		load();
		rig_forget(&rig);
		rig.fail_at = n;
		ret = vmpt_rtit_vcpu_unload(&rig.v);
		rig.fail_at = 0;
		ck_assert(!rig.v.loaded);
		if (!ret)
			break;
		ck_assert_int_eq(ret, -VMPT_E_HARDWARE);
		/* If it could not be stopped it keeps writing: its memory stays pinned. */
		if (rig.unit.regs.base_addr != RIG_HOST_HPA && vmpt_rtit_trigger_en(&rig.unit.regs))
			ck_assert_uint_eq(rig.pins[0x10], 1);
		else if (n > 3)
			ck_assert_uint_eq(rig.pins[0x10], 0);
		rig.v.direct_size = 0;
		memset(rig.pins, 0, sizeof(rig.pins));
		rig_new_processor(&rig);
	}
	ck_assert_uint_gt(n, 20);
}
END_TEST

START_TEST(failing_msrs)
{
	u64 value;
	u32 n;

	rig_program(&rig, 0x10000, 0xffff, RIG_ON | VMPT_RTIT_CTL_MTC_EN);
	load();
	rig.fail_msr = 0x769;
	ck_assert_int_eq(vmpt_rtit_vcpu_rdmsr(&rig.v, 0x769, false, &value), -VMPT_E_HARDWARE);
	ck_assert_int_eq(vmpt_rtit_vcpu_wrmsr(&rig.v, 0x769, 0), -VMPT_E_HARDWARE);
	rig.fail_msr = 0x772;
	ck_assert_int_eq(vmpt_rtit_vcpu_rdmsr(&rig.v, 0x772, false, &value), -VMPT_E_HARDWARE);
	ck_assert_int_eq(vmpt_rtit_vcpu_sync(&rig.v), -VMPT_E_HARDWARE);
	rig.fail_msr = 0x768;
	ck_assert_int_eq(vmpt_rtit_vcpu_rdmsr(&rig.v, 0x768, false, &value), -VMPT_E_HARDWARE);
	ck_assert_int_eq(vmpt_rtit_vcpu_wrmsr(&rig.v, 0x768, RIG_ON), -VMPT_E_HARDWARE);
	ck_assert_int_eq(vmpt_rtit_vcpu_quiet(&rig.v, true), -VMPT_E_HARDWARE);
	ck_assert_int_eq(vmpt_rtit_vcpu_sync(&rig.v), -VMPT_E_HARDWARE);
	rig.fail_msr = 0;
	ck_assert_int_eq(vmpt_rtit_vcpu_quiet(&rig.v, false), 0);
	/* Output moves: each access fails once, none violates the order. */
	for (n = 1; n < 40; n++) {
		int ret;

		rig_forget(&rig);
		rig.fail_at = n;
		ret = vmpt_rtit_vcpu_wrmsr(&rig.v, 0x770, n & 1 ? 0x20000 : 0x10000);
		rig.fail_at = 0;
		ck_assert(!ret || ret == -VMPT_E_HARDWARE);
	}
}
END_TEST

/*
 * The output moves, and one of 770H to 772H cannot be written: the others point to no one's memory,
 * so nothing may go there.
 */
START_TEST(failing_move)
{
	u64 mtc = RIG_ON | VMPT_RTIT_CTL_MTC_EN;

	rig_program(&rig, 0x10000, 0xfff, mtc);
	load();
	rig.fail_write = 0x770 + (u32)_i;
	ck_assert_int_eq(vmpt_rtit_vcpu_wrmsr(&rig.v, 0x770, 0x20000), -VMPT_E_HARDWARE);
	rig.fail_write = 0;
	ck_assert(!vmpt_rtit_trigger_en(&rig.unit.regs) && !rig.unit.trigger_en);
	ck_assert_uint_eq(rig.v.path, VMPT_RTIT_PATH_PARKED);
	ck_assert(!rig.pins[0x10] && !rig.pins[0x20]);
	/* Nor with the VMM's next call */
	ck_assert_int_eq(vmpt_rtit_vcpu_quiet(&rig.v, true), 0);
	ck_assert_int_eq(vmpt_rtit_vcpu_quiet(&rig.v, false), 0);
	ck_assert_int_eq(vmpt_rtit_vcpu_sync(&rig.v), 0);
	rig_enter(&rig, 0x1000);
	rig_exit(&rig, 0x1000);
	ck_assert(!rig.unit.trigger_en);
	/* The guest's next try finds a place. */
	rig_wr(&rig, 0x770, 0x20000);
	ck_assert_uint_eq(rig.v.path, VMPT_RTIT_PATH_DIRECT);
	ck_assert_uint_eq(rig.unit.regs.ctl, mtc);
}
END_TEST

START_TEST(nonsense)
{
	static const struct {
		u32 msr;
		u64 fake, want;
	} rows[] = {
		{ 0x77d, 0, 1 },
		{ 0x77d, 0x1ff, 0x7f },
		{ 0x76b, ~0ULL, 0x3fffff },
		{ 0x77c, ~0ULL, 0x33fff },
		{ 0x76e, ~0ULL, 0x1ffffffff },
		{ 0x76f, ~0ULL, 0x1ffffffffffff },
		{ 0x772, ~0ULL, 0x3fffff },
	};
	size_t i;

	rig_program(&rig, 0x10000, 0xffff, RIG_ON);
	for (i = 0; i < VMPT_ARRAY_SIZE(rows); i++) {
		load();
		rig.v.events = 0;
		rig.fake_msr = rows[i].msr;
		rig.fake_value = rows[i].fake;
		ck_assert_uint_eq(rig_rd(&rig, rows[i].msr), rows[i].want);
		ck_assert_uint_eq(rig.v.events, VMPT_RTIT_EVENT_HARDWARE);
		unload();
		rig.fake_msr = 0;
		ck_assert_uint_eq(rig_rd(&rig, rows[i].msr), rows[i].want);
	}
	/* The host's values are restored as far as possible. */
	rig.fake_msr = 0x771;
	rig.fake_value = 0;
	load();
	rig.fake_msr = 0;
	unload();
	ck_assert_uint_eq(rig.unit.regs.limit_mask, 0x3f);
}
END_TEST

TEST_SUITE()
{
	Suite *suite = suite_create("rtit-failing");
	TCase *tc = tcase_create("failing");

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, failing_load);
	tcase_add_test(tc, failing_unload);
	tcase_add_test(tc, failing_msrs);
	tcase_add_loop_test(tc, failing_move, 0, 3);
	tcase_add_test(tc, nonsense);
	suite_add_tcase(suite, tc);
	return suite;
}
