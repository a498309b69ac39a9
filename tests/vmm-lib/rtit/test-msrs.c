// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * vmm-lib/rtit/rtit.c without a processor: initialization of a vCPU, RESET, RDMSR and WRMSR (3.3).
 */
#include "tests/support/support.h"
#include "vmm-lib/rtit.h"

static u8 bytes[0x400000];

static int guest_write(void *opaque, u64 gpa, const void *buf, size_t len)
{
	(void)opaque, (void)gpa, (void)buf, (void)len;
	return 0;
}

static int guest_translate(void *opaque, u64 gpa, u64 *hpa, u64 *size)
{
	(void)opaque, (void)gpa, (void)hpa, (void)size;
	return VMPT_MEM_UNBACKED;
}

static int hw_rdmsr(void *opaque, u32 msr, u64 *value)
{
	(void)opaque, (void)msr, (void)value;
	return -1;
}

static int hw_wrmsr(void *opaque, u32 msr, u64 value)
{
	(void)opaque, (void)msr, (void)value;
	return -1;
}

static struct vmpt_rtit_ops ops;
static struct vmpt_rtit_config config;
static struct vmpt_rtit_vcpu vcpu;

static void setup(void)
{
	ops = (struct vmpt_rtit_ops){ .guest_write = guest_write };
	config = (struct vmpt_rtit_config){ .ops = &ops };
	ck_assert_int_eq(vmpt_rtit_vcpu_init(&vcpu, &config), 0);
}

static void hardware(void)
{
	ops.hw_rdmsr = hw_rdmsr;
	ops.hw_wrmsr = hw_wrmsr;
	ops.guest_translate = guest_translate;
	config.bounce = (struct vmpt_rtit_bounce){ bytes, 0xffffff000, 4096 };
}

static void expect_init(int ret)
{
	ck_assert_int_eq(vmpt_rtit_vcpu_init(&vcpu, &config), ret);
}

START_TEST(init_callbacks)
{
	setup();
	config.ops = NULL;
	expect_init(-VMPT_E_INVAL);
	ck_assert_int_eq(vmpt_rtit_vcpu_init(&vcpu, NULL), -VMPT_E_INVAL);
	config.ops = &ops;
	ops.guest_write = NULL;
	expect_init(-VMPT_E_INVAL);
	ops.guest_write = guest_write;
	ops.hw_rdmsr = hw_rdmsr;
	expect_init(-VMPT_E_INVAL);
	hardware();
	expect_init(0);
	ops.guest_translate = NULL;
	expect_init(-VMPT_E_INVAL);
	config.output = VMPT_RTIT_BOUNCE;
	expect_init(0);
	ops.hw_rdmsr = NULL;
	expect_init(-VMPT_E_INVAL);
}
END_TEST

START_TEST(init_bounce)
{
	hardware();
	expect_init(0);
	config.bounce.size = 3072;
	expect_init(-VMPT_E_INVAL);
	config.bounce.size = 64;
	expect_init(-VMPT_E_INVAL);
	config.bounce.size = 8192; /* not aligned to that */
	expect_init(-VMPT_E_INVAL);
	config.bounce.hpa = 0x800000;
	config.bounce.size = 0x800000;
	expect_init(-VMPT_E_INVAL);
	config.bounce.size = 0x400000;
	expect_init(0);
	config.bounce.hpa = 1ULL << 36;
	expect_init(-VMPT_E_INVAL);
	config.bounce.bytes = NULL; /* none */
	expect_init(0);
	config.output = VMPT_RTIT_BOUNCE;
	expect_init(-VMPT_E_INVAL);
}
END_TEST

START_TEST(init_values)
{
	hardware();
	config.output = VMPT_RTIT_BOUNCE + 1;
	expect_init(-VMPT_E_INVAL);
	config.output = VMPT_RTIT_BOUNCE;
	config.rewrite_clock = true;
	expect_init(0);
	config.output = VMPT_RTIT_CONTIGUOUS;
	expect_init(-VMPT_E_INVAL);
	config.rewrite_clock = false;
	config.on_unbacked = VMPT_ON_MEM_RETRY + 1;
	expect_init(-VMPT_E_INVAL);
	config.on_unbacked = 0;
	config.on_mmio = 9;
	expect_init(-VMPT_E_INVAL);
	config.on_mmio = VMPT_ON_MEM_RETRY;
	config.on_apic = 9;
	expect_init(-VMPT_E_INVAL);
	config.on_apic = 0;
	config.on_restricted = 9;
	expect_init(-VMPT_E_INVAL);
	config.on_restricted = 0;
	expect_init(0);
}
END_TEST

/* The manual's numbers and reset values, 3.3.2 to 3.3.14. */
static const struct {
	u32 msr;
	u64 reset;
} all[] = {
	{ 0x760, 0 }, { 0x761, 0 }, { 0x762, 0 },	   { 0x763, 0 },
	{ 0x768, 0 }, { 0x769, 0 }, { 0x76b, 0 },	   { 0x76c, 0 },
	{ 0x76e, 0 }, { 0x76f, 0 }, { 0x770, 0xfdc00000 }, { 0x771, 0x7f },
	{ 0x772, 0 }, { 0x777, 0 }, { 0x77c, 0x20000 },	   { 0x77d, 1 },
};

static u64 rd(u32 msr)
{
	u64 value = 0xdead;

	ck_assert_int_eq(vmpt_rtit_vcpu_rdmsr(&vcpu, msr, false, &value), 0);
	return value;
}

/* 3.3.1: "Until the RTIT_CTL MSR has been read" all else is #GP, in each vCPU again. */
START_TEST(ctl_first)
{
	u64 value;
	size_t i;

	for (i = 0; i < VMPT_ARRAY_SIZE(all); i++) {
		vcpu.gp_why = VMPT_GP_NONE;
		ck_assert_int_eq(vmpt_rtit_vcpu_wrmsr(&vcpu, all[i].msr, all[i].reset), VMPT_GP);
		ck_assert_uint_eq(vcpu.gp_why, VMPT_GP_CTL_UNREAD);
		if (all[i].msr != 0x768)
			ck_assert_int_eq(vmpt_rtit_vcpu_rdmsr(&vcpu, all[i].msr, true, &value),
					 VMPT_GP);
	}
	ck_assert_uint_eq(rd(0x768), 0);
	for (i = 0; i < VMPT_ARRAY_SIZE(all); i++) {
		ck_assert_uint_eq(rd(all[i].msr), all[i].reset);
		ck_assert_int_eq(vmpt_rtit_vcpu_wrmsr(&vcpu, all[i].msr, all[i].reset), 0);
	}
	ck_assert_int_eq(vmpt_rtit_vcpu_reset(&vcpu), 0);
	ck_assert_int_eq(vmpt_rtit_vcpu_wrmsr(&vcpu, 0x768, 0), VMPT_GP);
}
END_TEST

START_TEST(not_ours)
{
	u64 value;
	u32 msr;
	size_t i;

	rd(0x768);
	for (msr = 0x700; msr < 0x800; msr++) {
		for (i = 0; i < VMPT_ARRAY_SIZE(all) && all[i].msr != msr; i++)
			;
		if (i < VMPT_ARRAY_SIZE(all))
			continue;
		ck_assert_int_eq(vmpt_rtit_vcpu_rdmsr(&vcpu, msr, false, &value), -VMPT_E_INVAL);
		ck_assert_int_eq(vmpt_rtit_vcpu_wrmsr(&vcpu, msr, 0), -VMPT_E_INVAL);
	}
}
END_TEST

/* ContextEn as the VMM says, TriggerEn as CTL does; neither can be written (3.3.3). */
START_TEST(status)
{
	u64 value;

	rd(0x768);
	ck_assert_int_eq(vmpt_rtit_vcpu_wrmsr(&vcpu, 0x769, 0xf), 0);
	ck_assert_uint_eq(rd(0x769), 0x9);
	ck_assert_int_eq(vmpt_rtit_vcpu_rdmsr(&vcpu, 0x769, true, &value), 0);
	ck_assert_uint_eq(value, 0xb);
	ck_assert_int_eq(vmpt_rtit_vcpu_wrmsr(&vcpu, 0x768, 0x1), 0);
	ck_assert_uint_eq(rd(0x769), 0x9);
	ck_assert(vmpt_rtit_vcpu_wanted(&vcpu));
	ck_assert_int_eq(vmpt_rtit_vcpu_wrmsr(&vcpu, 0x768, 0x2001), 0);
	ck_assert_uint_eq(rd(0x769), 0xd);
	ck_assert_int_eq(vmpt_rtit_vcpu_wrmsr(&vcpu, 0x768, 0x2000), 0);
	ck_assert_uint_eq(rd(0x769), 0x9);
	ck_assert(!vmpt_rtit_vcpu_wanted(&vcpu));
	ck_assert_int_eq(vmpt_rtit_vcpu_wrmsr(&vcpu, 0x769, 0x10), VMPT_GP);
	ck_assert_uint_eq(vcpu.gp_why, VMPT_GP_RESERVED);
}
END_TEST

START_TEST(tnt_zero)
{
	rd(0x768);
	ck_assert_int_eq(vmpt_rtit_vcpu_wrmsr(&vcpu, 0x77d, 0x7f), 0);
	ck_assert_int_eq(vmpt_rtit_vcpu_wrmsr(&vcpu, 0x77d, 0), VMPT_GP);
	ck_assert_uint_eq(vcpu.gp_why, VMPT_GP_TNT_ZERO);
	ck_assert_uint_eq(rd(0x77d), 0x7f);
}
END_TEST

START_TEST(sign_extension)
{
	rd(0x768);
	ck_assert_int_eq(vmpt_rtit_vcpu_wrmsr(&vcpu, 0x760, ~0ULL), 0);
	ck_assert_uint_eq(rd(0x760), 0xffffffffffff);
	config.rules.lip_sign_extended = true;
	expect_init(0);
	rd(0x768);
	ck_assert_int_eq(vmpt_rtit_vcpu_wrmsr(&vcpu, 0x763, 0x800000000000), 0);
	ck_assert_uint_eq(rd(0x763), 0xffff800000000000);
}
END_TEST

TEST_SUITE()
{
	Suite *suite = suite_create("rtit-msrs");
	TCase *tc = tcase_create("msrs");

	tcase_add_checked_fixture(tc, setup, NULL);
	tcase_add_test(tc, init_callbacks);
	tcase_add_test(tc, init_bounce);
	tcase_add_test(tc, init_values);
	tcase_add_test(tc, ctl_first);
	tcase_add_test(tc, not_ours);
	tcase_add_test(tc, status);
	tcase_add_test(tc, tnt_zero);
	tcase_add_test(tc, sign_extension);
	suite_add_tcase(suite, tc);
	return suite;
}
