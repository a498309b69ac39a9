// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * What a hostile guest, or its VMM's author by accident, once got past the rules; all of it
 * goes through more than one file of vmm-lib.
 */
#include "tests/vmm-lib/bed.h"
#include "tests/vmm-lib/handover-rig.h"

static struct bed bed;

static void setup(void)
{
	bed_init(&bed);
}

static void teardown(void)
{
	bed_free(&bed);
}

/* ---- a plan for another processor: the guest's addresses would be the host's ---- */

static const struct {
	bool shadow, lists;
	u32 lacks;	   /* VMPT_VMX_... of the host */
	const char *field; /* NULL: it will do */
} plans[] = {
	{ false, false, 0, NULL },
	{ true, false, VMPT_VMX_USE_GPA, NULL },
	{ true, true, ~(u32)VMPT_VMX_PT, NULL },
	{ false, false, VMPT_VMX_USE_GPA,
	  "secondary control 24 (PT uses guest physical addresses)" },
	{ false, true, VMPT_VMX_USE_GPA,
	  "secondary control 24 (PT uses guest physical addresses)" },
	{ true, false, VMPT_VMX_LOAD_CTL, "VM-entry control 18 (load IA32_RTIT_CTL)" },
	{ true, false, VMPT_VMX_CLEAR_CTL, "VM-exit control 25 (clear IA32_RTIT_CTL)" },
};

START_TEST(foreign_plan)
{
	int err;

	if (plans[_i].shadow)
		bed_shadow(&bed);
	bed.plan.lists = plans[_i].lists;
	bed.host.vmx &= ~plans[_i].lacks;
	err = vmpt_vcpu_init(&bed.v, &bed.config, &bed.why);
	ck_assert_int_eq(err, plans[_i].field ? -VMPT_E_CONTROLS : 0);
	if (plans[_i].field)
		ck_assert_str_eq(bed.why.field, plans[_i].field);
}
END_TEST

/* ---- TSC adjustment after the guest took its output elsewhere ---- */

/*
 * With TraceEn = 0 the bytes between the old place and the new one are no trace of now: TSCs
 * of an earlier lap, which were adjusted then, or anything.
 */
START_TEST(moved_output)
{
	const struct vmpt_tsc_change change = { .multiplier = 1ULL << 48, .offset = 1 };
	const u8 old[8] = { 0x19, 1, 2, 3, 4, 5, 6, 7 };
	/* CTL.ToPA, OUTPUT_BASE */
	u8 area[VMPT_XSAVE_SIZE] = { [1] = 1, [9] = BED_TABLE >> 8 }, now[8];

	bed.config.xsave = true;
	bed_start(&bed);
	bed_trace(&bed, BED_CTL);
	guest_put(&bed.guest, BED_OUTPUT + 0x1008, old, 8);
	bed.v.regs.output_mask_ptrs = vmpt_pt_mask_ptrs(1, 8);
	ck_assert_int_eq(vmpt_vcpu_tsc_adjust(&bed.v, &change, NULL), 0);
	bed_wrmsr(&bed, VMPT_MSR_RTIT_CTL, BED_CTL & ~1ULL);
	if (_i == 0)
		bed_wrmsr(&bed, VMPT_MSR_RTIT_OUTPUT_MASK_PTRS, 0);
	else if (_i == 1)
		bed_set(&bed, VMPT_MSR_RTIT_OUTPUT_MASK_PTRS, 0);
	else
		ck_assert_int_eq(vmpt_vcpu_xrstors(&bed.v, area), 0);
	ck_assert_uint_eq(bed.v.regs.output_base, BED_TABLE);
	ck_assert_uint_eq(bed.v.regs.output_mask_ptrs, 0x7f);
	ck_assert_int_eq(vmpt_vcpu_tsc_adjust(&bed.v, &change, NULL), 0);
	guest_get(&bed.guest, BED_OUTPUT + 0x1008, now, 8);
	ck_assert_mem_eq(now, old, 8);
	/* Who writes what is there already has not moved: what waits will be adjusted. */
	bed.v.scan_mask_ptrs = vmpt_pt_mask_ptrs(3, 8);
	bed_wrmsr(&bed, VMPT_MSR_RTIT_OUTPUT_MASK_PTRS, 0);
	bed_set(&bed, VMPT_MSR_RTIT_OUTPUT_MASK_PTRS, 0);
	ck_assert_uint_eq(bed.v.scan_mask_ptrs, vmpt_pt_mask_ptrs(3, 8));
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("traps");
	TCase *tcase = tcase_create("traps");

	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_add_loop_test(tcase, foreign_plan, 0, VMPT_ARRAY_SIZE(plans));
	tcase_add_loop_test(tcase, moved_output, 0, 3);
	suite_add_tcase(suite, tcase);
	return test_main(suite);
}
