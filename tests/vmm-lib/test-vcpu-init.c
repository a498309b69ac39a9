// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* vmm-lib/vcpu.c: what vmpt_vcpu_init() refuses and what it keeps. */
#include "tests/vmm-lib/bed.h"

static struct bed bed;

static void setup(void)
{
	bed_init(&bed);
}

static void teardown(void)
{
	bed_free(&bed);
}

static void ok(void)
{
}

static void no_host(void)
{
	bed.config.host = NULL;
}

static void no_guest(void)
{
	bed.config.guest = NULL;
}

static void no_plan(void)
{
	bed.config.plan = NULL;
}

static void no_ops(void)
{
	bed.config.ops = NULL;
}

static void no_read(void)
{
	bed.ops.guest_read = NULL;
}

static void no_write(void)
{
	bed.ops.guest_write = NULL;
}

static void no_pmi(void)
{
	bed.ops.inject_pmi = NULL;
}

static int hw_rdmsr(void *opaque, u32 msr, u64 *value)
{
	(void)opaque, (void)msr;
	*value = 0;
	return 0;
}

static int hw_wrmsr(void *opaque, u32 msr, u64 value)
{
	(void)opaque, (void)msr, (void)value;
	return 0;
}

static int set_ctl(void *opaque, u64 ctl)
{
	(void)opaque, (void)ctl;
	return 0;
}

static void all_hw(void)
{
	bed.ops.hw_rdmsr = hw_rdmsr;
	bed.ops.hw_wrmsr = hw_wrmsr;
	bed.ops.set_guest_ctl = set_ctl;
}

static void hw_no_rdmsr(void)
{
	all_hw();
	bed.ops.hw_rdmsr = NULL;
}

static void hw_no_wrmsr(void)
{
	all_hw();
	bed.ops.hw_wrmsr = NULL;
}

static void hw_no_ctl(void)
{
	all_hw();
	bed.ops.set_guest_ctl = NULL;
}

static void host_only_hw(void)
{
	bed_no_pt(&bed, VMPT_USE_HOST);
	all_hw();
	bed.ops.set_guest_ctl = NULL;
}

static void host_only_no_hw(void)
{
	bed_no_pt(&bed, VMPT_USE_HOST);
	bed.plan.stop_host = true;
}

static void shadow_good(void)
{
	bed_shadow(&bed);
}

static void shadow_none(void)
{
	bed_shadow(&bed);
	bed.config.shadow = NULL;
}

static void shadow_no_pages(void)
{
	bed_shadow(&bed);
	bed.shadow.pages = 0;
}

static void shadow_many_pages(void)
{
	bed_shadow(&bed);
	bed.shadow.pages = VMPT_SHADOW_PAGES_MAX + 1;
}

static void shadow_no_page(void)
{
	bed_shadow(&bed);
	bed.shadow.page[BED_SHADOW_PAGES - 1] = NULL;
}

static void shadow_unaligned(void)
{
	bed_shadow(&bed);
	bed.shadow.page_hpa[1] += 8;
}

static void shadow_no_origin(void)
{
	bed_shadow(&bed);
	bed.shadow.origin = NULL;
}

static void shadow_no_translate(void)
{
	bed_shadow(&bed);
	bed.ops.guest_translate = NULL;
}

static void none(void)
{
	bed_no_pt(&bed, VMPT_USE_NONE);
}

static void system_wide(void)
{
	bed_no_pt(&bed, VMPT_USE_SYSTEM);
}

static void no_pt_no_callbacks(void)
{
	bed_no_pt(&bed, VMPT_USE_SYSTEM);
	memset(&bed.ops, 0, sizeof(bed.ops));
}

static void system_with_pt(void)
{
	bed.plan = (struct vmpt_vmx_plan){ .use = VMPT_USE_SYSTEM };
}

static void host_with_pt(void)
{
	bed.plan = (struct vmpt_vmx_plan){ .use = VMPT_USE_HOST };
}

static void guest_without_pt(void)
{
	bed_no_pt(&bed, VMPT_USE_NONE);
	bed.plan = (struct vmpt_vmx_plan){ .use = VMPT_USE_GUEST, .guest_pt = true };
}

static void use_unknown(void)
{
	bed.plan.use = VMPT_USES;
}

static void plan_by_hand(void)
{
	bed.plan.guest_pt = false;
}

static void bad_unbacked(void)
{
	bed.config.on_unbacked = 3;
}

static void bad_mmio(void)
{
	bed.config.on_mmio = 3;
}

static void bad_apic(void)
{
	bed.config.on_apic = 3;
}

static void bad_restricted(void)
{
	bed.config.on_restricted = 3;
}

static void maxphyaddr_over(void)
{
	bed.shown.cpuid.maxphyaddr = 47;
}

static void seven_ranges(void)
{
	vmpt_pt_cap_set(&bed.shown.cpuid, VMPT_CAP_RANGES, 7);
}

static void fabric(void)
{
	vmpt_pt_cap_set(&bed.host.cpuid, VMPT_CAP_FABRIC, 1);
	vmpt_pt_cap_set(&bed.shown.cpuid, VMPT_CAP_FABRIC, 1);
}

static void pt_for_nested(void)
{
	bed.shown.vmx = VMPT_VMX_PT;
}

static void no_pt_nested(void)
{
	bed_no_pt(&bed, VMPT_USE_NONE);
	bed.shown.vmx = VMPT_VMX_PT;
}

static const struct {
	const char *name;
	void (*change)(void);
	int err;
	const char *field; /* NULL: not checked, from caps-check */
} inits[] = {
	{ "as it is", ok, 0, NULL },
	{ "all callbacks of hardware", all_hw, 0, NULL },
	{ "a good shadow", shadow_good, 0, NULL },
	{ "no PT, no one traces", none, 0, NULL },
	{ "no PT, system-wide", system_wide, 0, NULL },
	{ "no PT needs no callbacks", no_pt_no_callbacks, 0, NULL },
	{ "host-only sets no guest CTL", host_only_hw, 0, NULL },
	{ "host-only without hw_rdmsr", host_only_no_hw, -VMPT_E_INVAL, "ops.hw_rdmsr" },
	{ "no PT, and none for L2 guests", no_pt_nested, 0, NULL },
	{ "no host", no_host, -VMPT_E_INVAL, "host" },
	{ "no guest", no_guest, -VMPT_E_INVAL, "guest" },
	{ "no plan", no_plan, -VMPT_E_INVAL, "plan" },
	{ "no ops", no_ops, -VMPT_E_INVAL, "ops" },
	{ "no guest_read", no_read, -VMPT_E_INVAL, "ops.guest_read" },
	{ "no guest_write", no_write, -VMPT_E_INVAL, "ops.guest_write" },
	{ "no inject_pmi", no_pmi, -VMPT_E_INVAL, "ops.inject_pmi" },
	{ "no hw_rdmsr with others", hw_no_rdmsr, -VMPT_E_INVAL, "ops.hw_rdmsr" },
	{ "no hw_wrmsr with others", hw_no_wrmsr, -VMPT_E_INVAL, "ops.hw_wrmsr" },
	{ "no set_guest_ctl with others", hw_no_ctl, -VMPT_E_INVAL, "ops.set_guest_ctl" },
	{ "shadow without memory", shadow_none, -VMPT_E_INVAL, "shadow" },
	{ "shadow of 0 pages", shadow_no_pages, -VMPT_E_INVAL, "shadow.pages" },
	{ "shadow of 17 pages", shadow_many_pages, -VMPT_E_INVAL, "shadow.pages" },
	{ "a page of the shadow missing", shadow_no_page, -VMPT_E_INVAL, "shadow.page" },
	{ "a page of the shadow unaligned", shadow_unaligned, -VMPT_E_INVAL, "shadow.page_hpa" },
	{ "shadow without origins", shadow_no_origin, -VMPT_E_INVAL, "shadow.origin" },
	{ "shadow, no guest_translate", shadow_no_translate, -VMPT_E_INVAL, "ops.guest_translate" },
	{ "PT shown under system-wide use", system_with_pt, -VMPT_E_CONTROLS,
	  "CPUID.7.0:EBX[25] Intel PT" },
	{ "PT shown under host-only use", host_with_pt, -VMPT_E_CONTROLS,
	  "CPUID.7.0:EBX[25] Intel PT" },
	{ "PT planned and not shown", guest_without_pt, -VMPT_E_CONTROLS,
	  "CPUID.7.0:EBX[25] Intel PT" },
	{ "no such use", use_unknown, -VMPT_E_CONTROLS, "plan.use" },
	{ "a plan that contradicts itself", plan_by_hand, -VMPT_E_CONTROLS, "plan.use" },
	{ "policy of unbacked memory", bad_unbacked, -VMPT_E_INVAL, "on_unbacked" },
	{ "policy of MMIO", bad_mmio, -VMPT_E_INVAL, "on_mmio" },
	{ "policy of the APIC's page", bad_apic, -VMPT_E_INVAL, "on_apic" },
	{ "policy of SMRR memory", bad_restricted, -VMPT_E_INVAL, "on_restricted" },
	{ "MAXPHYADDR over the host's", maxphyaddr_over, -VMPT_E_CAPS, NULL },
	{ "RANGECNT 7", seven_ranges, -VMPT_E_CAPS, NULL },
	{ "FabricEn", fabric, -VMPT_E_CAPS, NULL },
	{ "PT shown to L2 guests", pt_for_nested, -VMPT_E_CAPS, NULL },
};

START_TEST(init)
{
	int err;

	inits[_i].change();
	memset(&bed.v, 0xa5, sizeof(bed.v));
	err = vmpt_vcpu_init(&bed.v, &bed.config, &bed.why);
	ck_assert_msg(err == inits[_i].err, "%s: %d", inits[_i].name, err);
	if (!err) {
		/* a vCPU after a cold reset, whatever its memory held */
		ck_assert_uint_eq(bed.v.regs.ctl | bed.v.regs.status | bed.v.events, 0);
		ck_assert_uint_eq(bed.v.regs.output_mask_ptrs, 0x7f);
		ck_assert_uint_eq(bed.v.owner, VMPT_OWNED_BY_HOST);
		ck_assert_uint_eq(bed.v.guest.vmx, 0);
		return;
	}
	ck_assert(bed.why.field && bed.why.rule);
	if (inits[_i].field)
		ck_assert_str_eq(bed.why.field, inits[_i].field);
	ck_assert_int_eq(vmpt_vcpu_init(&bed.v, &bed.config, NULL), err);
}
END_TEST

START_TEST(init_null)
{
	ck_assert_int_eq(vmpt_vcpu_init(NULL, &bed.config, &bed.why), -VMPT_E_INVAL);
	ck_assert_int_eq(vmpt_vcpu_init(&bed.v, NULL, NULL), -VMPT_E_INVAL);
}
END_TEST

START_TEST(init_keeps)
{
	bed.config.on_unbacked = VMPT_ON_MEM_RETRY;
	bed.config.on_mmio = VMPT_ON_MEM_DROP;
	bed.config.on_restricted = VMPT_ON_MEM_DROP;
	bed.config.xsave = true;
	bed.config.pip_on_restore = true;
	bed.config.tsc_multiplier = 1ULL << 47;
	bed_start(&bed);
	ck_assert_uint_eq(bed.v.on_mem[VMPT_MEM_UNBACKED], VMPT_ON_MEM_RETRY);
	ck_assert_uint_eq(bed.v.on_mem[VMPT_MEM_MMIO], VMPT_ON_MEM_DROP);
	ck_assert_uint_eq(bed.v.on_mem[VMPT_MEM_APIC], VMPT_ON_MEM_ERROR);
	ck_assert_uint_eq(bed.v.on_mem[VMPT_MEM_RESTRICTED], VMPT_ON_MEM_DROP);
	ck_assert(bed.v.xsave && bed.v.pip_on_restore);
	ck_assert_uint_eq(bed.v.tsc_multiplier, 1ULL << 47);
	ck_assert_uint_eq(bed.v.guest.vmx, 0);
	ck_assert_ptr_null(bed.v.shadow.memory);
	/* component 8 is meaningless without PT */
	bed_no_pt(&bed, VMPT_USE_NONE);
	bed_start(&bed);
	ck_assert(!bed.v.xsave);
}
END_TEST

/* D8: it is known what the processor lacks, so that it is never switched. */
START_TEST(host_rules)
{
	vmpt_pt_cap_set(&bed.host.cpuid, VMPT_CAP_CR3_FILTER, 0);
	vmpt_pt_cap_set(&bed.host.cpuid, VMPT_CAP_RANGES, 1);
	bed_hide(&bed, VMPT_CAP_CR3_FILTER);
	vmpt_pt_cap_set(&bed.shown.cpuid, VMPT_CAP_RANGES, 1);
	bed_start(&bed);
	ck_assert(!vmpt_pt_msr_exists(&bed.v.host_rules, VMPT_MSR_RTIT_CR3_MATCH));
	ck_assert(vmpt_pt_msr_exists(&bed.v.host_rules, 0x581));
	ck_assert(!vmpt_pt_msr_exists(&bed.v.host_rules, 0x582));
	ck_assert(vmpt_pt_msr_exists(&bed.v.host_rules, VMPT_MSR_RTIT_OUTPUT_BASE));
	/* the guest cannot access it either */
	ck_assert_int_eq(vmpt_vcpu_wrmsr(&bed.v, VMPT_MSR_RTIT_CR3_MATCH, 0), VMPT_GP);
	ck_assert_int_eq(vmpt_vcpu_wrmsr(&bed.v, 0x582, 0), VMPT_GP);
	/* a guest cannot be shown more than that */
	vmpt_pt_cap_set(&bed.shown.cpuid, VMPT_CAP_CR3_FILTER, 1);
	ck_assert_int_eq(vmpt_vcpu_init(&bed.v, &bed.config, NULL), -VMPT_E_CAPS);
}
END_TEST

TEST_SUITE()
{
	Suite *suite = suite_create("vcpu-init");
	TCase *tcase = tcase_create("vcpu-init");

	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_add_loop_test(tcase, init, 0, VMPT_ARRAY_SIZE(inits));
	tcase_add_test(tcase, init_null);
	tcase_add_test(tcase, init_keeps);
	tcase_add_test(tcase, host_rules);
	suite_add_tcase(suite, tcase);
	return suite;
}
