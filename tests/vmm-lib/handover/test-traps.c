// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Cases in which a hostile guest, or its VMM's author by accident, once evaded the rules; each
 * involves more than one file of vmm-lib.
 */
#include "tests/vmm-lib/bed.h"
#include "tests/vmm-lib/handover-rig.h"
#include "vmm-lib/caps-rules.h"

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
	const char *field; /* NULL: it is accepted */
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
 * With TraceEn = 0 the bytes between the old position and the new one are not current trace: TSCs
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
	bed.v.traced = 4096 + 8;
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
	/* Writing the current value moves nothing: waiting bytes will be adjusted. */
	bed.v.scan_mask_ptrs = vmpt_pt_mask_ptrs(3, 8);
	bed_wrmsr(&bed, VMPT_MSR_RTIT_OUTPUT_MASK_PTRS, 0);
	bed_set(&bed, VMPT_MSR_RTIT_OUTPUT_MASK_PTRS, 0);
	ck_assert_uint_eq(bed.v.scan_mask_ptrs, vmpt_pt_mask_ptrs(3, 8));
}
END_TEST

/* ---- what the guest traced, by its positions at entries and exits ---- */

static u8 big[GUEST_PAGE];
static u64 touched;

static int big_map(void *opaque, u64 gpa, u8 **host, size_t *size)
{
	u64 rest = GUEST_PAGE - gpa % GUEST_PAGE;

	(void)opaque;
	*host = big + gpa % GUEST_PAGE;
	*size = *size < rest ? *size : rest;
	touched += *size;
	return 0;
}

/*
 * A guest traces into 31 regions of 4 KiB. _i 0: then its table names 128 MiB in each of them.
 * Exits within one region count what they prove, others what the VMM says, here 16 KiB. _i 1: a
 * guest that does not lie is adjusted.
 */
START_TEST(g3_table_lies)
{
	const struct vmpt_tsc_change change = { .multiplier = 1ULL << 48, .offset = 1 };
	u32 calls = 0, crossed = 0, i, lie = !_i;
	struct rig rig;
	u64 ptrs;
	int err;

	rig_init(&rig, RIG_FULL, RIG_SHOWN);
	rig.v.adjust_traced = 16384;
	rig.regions = 31;
	rig_guest_on(&rig, 0);
	for (i = 0; i < 40; i++) {
		ptrs = rig.v.regs.output_mask_ptrs;
		ck_assert_int_eq(rig_round(&rig, 200), 0);
		crossed += (u32)ptrs != (u32)rig.v.regs.output_mask_ptrs;
		rig_guest_ack(&rig);
	}
	ck_assert_uint_ge(crossed, 5);
	ck_assert_uint_lt(rig.m.logged, 31 * GUEST_PAGE);
	for (i = 0; lie && i < 31; i++)
		guest_put64(&rig.guest, RIG_TABLE + 8 * i, 1ULL << 27 | 0xf << 6);
	rig.ops.guest_map = big_map;
	touched = 0;
	do {
		err = vmpt_vcpu_tsc_adjust(&rig.v, &change, NULL);
	} while (err == VMPT_MORE && ++calls < 100);
	ck_assert_int_eq(err, lie ? -VMPT_E_LIMIT : 0);
	ck_assert_uint_eq(touched, lie ? 0 : rig.m.logged);
	/* Nothing is left over: from here on within one region, exactly what was traced. */
	ptrs = rig.v.regs.output_mask_ptrs;
	ck_assert_int_eq(rig_round(&rig, 3), 0);
	ck_assert_uint_eq((u32)ptrs, (u32)rig.v.regs.output_mask_ptrs);
	touched = 0;
	ck_assert_int_eq(vmpt_vcpu_tsc_adjust(&rig.v, &change, NULL), 0);
	ck_assert_uint_eq(touched, (rig.v.regs.output_mask_ptrs - ptrs) >> 32);
	rig_free(&rig);
}
END_TEST

/* ---- fields that the guest was not shown, but the processor has ---- */

static void hide(struct vmpt_caps *caps, enum vmpt_pt_cap cap)
{
	vmpt_pt_cap_set(&caps->cpuid, cap, 0);
	vmpt_leaf_close(&caps->cpuid);
}

static const u32 processors[] = { RIG_FULL, RIG_NO_GPA, RIG_LISTS };

static void start(struct rig *rig, u32 vmx, enum vmpt_pt_cap hidden)
{
	memset(rig, 0, sizeof(*rig));
	guest_full_caps(&rig->host);
	rig->host.vmx = vmx;
	rig->caps = rig->host;
	hide(&rig->caps, hidden);
	rig_init_caps(rig, RIG_SHOWN);
}

/*
 * A guest without ToPA has no ToPA PMI, but it can set PendTopaPMI, and each VM entry is an
 * enable, at which the processor pends one.
 */
START_TEST(pmi_without_topa)
{
	struct rig rig;
	unsigned int i;

	start(&rig, processors[_i], VMPT_CAP_TOPA);
	ck_assert_int_eq(vmpt_vcpu_wrmsr(&rig.v, VMPT_MSR_RTIT_OUTPUT_BASE, RIG_REGIONS), 0);
	ck_assert_int_eq(vmpt_vcpu_wrmsr(&rig.v, VMPT_MSR_RTIT_OUTPUT_MASK_PTRS, 0xfff), 0);
	ck_assert_int_eq(vmpt_vcpu_wrmsr(&rig.v, VMPT_MSR_RTIT_STATUS, VMPT_STATUS_PEND_PMI), 0);
	ck_assert_int_eq(vmpt_vcpu_wrmsr(&rig.v, VMPT_MSR_RTIT_CTL,
					 VMPT_CTL_TRACE_EN | VMPT_CTL_OS | VMPT_CTL_BRANCH_EN |
						 VMPT_CTL_INJECT),
			 0);
	for (i = 0; i < 20; i++)
		ck_assert_int_eq(rig_round(&rig, 1), 0);
	ck_assert_uint_eq(rig.m.pended[BY_GUEST], 0);
	ck_assert_uint_eq(rig.v.pmis, 0);
	rig_free(&rig);
}
END_TEST

/*
 * Without EBX[1] PacketByteCnt is reserved: the processor counts there, but the guest must not see
 * it, or it could not write back what it reads and its state could not be restored.
 */
START_TEST(bytes_not_shown)
{
	struct vmpt_refusal why;
	u8 state[VMPT_STATE_MAX];
	struct rig rig;
	u64 status;
	int n;

	start(&rig, processors[_i], VMPT_CAP_PSB_CYC);
	rig_guest_on(&rig, 0);
	ck_assert_int_eq(rig_round(&rig, 5), 0);
	ck_assert(rig.m.regs.status & VMPT_STATUS_BYTES || _i);
	/* A read from the processor would show it as well. */
	ck_assert_uint_eq(vmpt_vcpu_intercepts(&rig.v, VMPT_MSR_RTIT_STATUS),
			  VMPT_INTERCEPT_READ | VMPT_INTERCEPT_WRITE);
	ck_assert_int_eq(vmpt_vcpu_rdmsr(&rig.v, VMPT_MSR_RTIT_STATUS, &status), 0);
	ck_assert_uint_eq(status & VMPT_STATUS_BYTES, 0);
	n = vmpt_vcpu_save(&rig.v, state, sizeof(state));
	ck_assert_int_gt(n, 0);
	ck_assert_int_eq(vmpt_vcpu_restore(&rig.v, state, (size_t)n, &why), 0);
	ck_assert_int_eq(vmpt_vcpu_set_msr(&rig.v, VMPT_MSR_RTIT_STATUS, status), 0);
	rig_guest_off(&rig);
	ck_assert_int_eq(vmpt_vcpu_wrmsr(&rig.v, VMPT_MSR_RTIT_STATUS, status), 0);
	rig_free(&rig);
}
END_TEST

/* ---- a guest that moves MSR by MSR ---- */

/* A PMI is in flight: its handler must find bit 55, which is not in the list of PT's MSRs. */
START_TEST(pmi_moves_along)
{
	u64 values[16], status = 0;
	unsigned int i, n;

	bed_start(&bed);
	bed_trace(&bed, BED_CTL);
	vmpt_vcpu_pmi(&bed.v);
	for (n = 0; vmpt_vcpu_msr_list(&bed.v, n); n++)
		ck_assert_int_eq(
			vmpt_vcpu_get_msr(&bed.v, vmpt_vcpu_msr_list(&bed.v, n), &values[n]), 0);
	ck_assert_int_eq(vmpt_vcpu_get_msr(&bed.v, VMPT_MSR_PERF_GLOBAL_STATUS, &status), 0);
	bed_start(&bed);
	for (i = 0; i < n; i++)
		bed_set(&bed, vmpt_vcpu_msr_list(&bed.v, i), values[i]);
	bed_set(&bed, VMPT_MSR_PERF_GLOBAL_STATUS, status);
	ck_assert_uint_eq(bed_rdmsr(&bed, VMPT_MSR_PERF_GLOBAL_STATUS), VMPT_GLOBAL_TOPA_PMI);
	/* The interrupt itself moves in the VMM's APIC. */
	ck_assert_uint_eq(bed.guest.pmis, 1);
}
END_TEST

TEST_SUITE()
{
	Suite *suite = suite_create("traps");
	TCase *tcase = tcase_create("traps");

	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_add_loop_test(tcase, foreign_plan, 0, VMPT_ARRAY_SIZE(plans));
	tcase_add_loop_test(tcase, g3_table_lies, 0, 2);
	tcase_add_loop_test(tcase, moved_output, 0, 3);
	tcase_add_loop_test(tcase, pmi_without_topa, 0, VMPT_ARRAY_SIZE(processors));
	tcase_add_loop_test(tcase, bytes_not_shown, 0, VMPT_ARRAY_SIZE(processors));
	tcase_add_test(tcase, pmi_moves_along);
	suite_add_tcase(suite, tcase);
	return suite;
}
