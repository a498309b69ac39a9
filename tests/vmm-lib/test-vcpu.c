// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* vmm-lib/vcpu.c: RESET, SMI and RSM, VMXON. */
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

/* ---- RESET, INIT ---- */

/* A state in which nothing has its reset value. */
static void make_dirty(void)
{
	u32 msr;

	bed_start(&bed);
	bed_wrmsr(&bed, VMPT_MSR_RTIT_OUTPUT_BASE, BED_TABLE);
	bed_wrmsr(&bed, VMPT_MSR_RTIT_OUTPUT_MASK_PTRS, 0x1230000017fULL);
	bed_wrmsr(&bed, VMPT_MSR_RTIT_CR3_MATCH, 0x5000);
	for (msr = VMPT_MSR_RTIT_ADDR0_A; msr <= VMPT_MSR_RTIT_ADDR3_B; msr++)
		bed_wrmsr(&bed, msr, 0x400000 + msr);
	/* PacketByteCnt 64, PendTopaPMI, PendPSB, Stopped */
	bed_wrmsr(&bed, VMPT_MSR_RTIT_STATUS, 0x40000000e0ULL);
	bed_wrmsr(&bed, VMPT_MSR_RTIT_CTL, BED_CTL | VMPT_CTL_INJECT);
	ck_assert_uint_eq(bed.guest.pmis, 1);
	bed_rdmsr(&bed, VMPT_MSR_PERF_GLOBAL_STATUS);
	vmpt_vcpu_pmi(&bed.v);
	ck_assert(bed.v.pmi_again && bed.v.held_pend_pmi && bed.v.force_psb);
	bed.v.lost = true;
	bed.v.ran = true;
	bed.v.scan.lost = 1;
	bed.v.cut_len[1] = 2;
	ck_assert_int_eq(vmpt_vcpu_smi(&bed.v), 0);
	vmpt_vcpu_vmxon(&bed.v);
}

/* Everything except the MSRs is as after init. */
static void check_reset(void)
{
	const struct vmpt_vcpu *v = &bed.v;

	ck_assert(!v->global_status && !v->pmi_seen && !v->pmi_again && !v->held_pend_pmi);
	ck_assert(!v->in_smm && !v->smm_trace_en && !v->vmx_operation && !v->rules.no_ctl_writes);
	ck_assert(!v->force_psb && !v->lost && !v->ran && !v->scan_set && !v->scan.lost);
	ck_assert(!v->cut_len[0] && !v->cut_len[1]);
	ck_assert_int_eq(vmpt_vcpu_rsm(&bed.v), -VMPT_E_STATE);
}

START_TEST(reset_cold)
{
	u32 msr;

	make_dirty();
	vmpt_vcpu_reset(&bed.v, false);
	for (msr = 0x560; msr <= 0x587; msr++)
		if (vmpt_pt_is_msr(msr))
			ck_assert_uint_eq(bed_rdmsr(&bed, msr), msr == 0x561 ? 0x7f : 0);
	ck_assert_uint_eq(bed_rdmsr(&bed, VMPT_MSR_PERF_GLOBAL_STATUS), 0);
	check_reset();
}
END_TEST

/* 33.2.8.1, 33.3.4: EBX[2] = 1: only TraceEn is cleared. */
START_TEST(reset_warm_kept)
{
	u32 msr;

	make_dirty();
	/* as if it traced: SMI and VMXON have cleared TraceEn */
	bed.v.regs.ctl |= VMPT_CTL_TRACE_EN;
	vmpt_vcpu_reset(&bed.v, true);
	ck_assert_uint_eq(bed_rdmsr(&bed, 0x570), (BED_CTL | VMPT_CTL_INJECT) & ~1ULL);
	ck_assert_uint_eq(bed_rdmsr(&bed, 0x571), 0x40000000e0ULL);
	ck_assert_uint_eq(bed_rdmsr(&bed, 0x560), BED_TABLE);
	ck_assert_uint_eq(bed_rdmsr(&bed, 0x561), 0x1230000017fULL);
	ck_assert_uint_eq(bed_rdmsr(&bed, 0x572), 0x5000);
	for (msr = VMPT_MSR_RTIT_ADDR0_A; msr <= VMPT_MSR_RTIT_ADDR3_B; msr++)
		ck_assert_uint_eq(bed_rdmsr(&bed, msr), 0x400000 + msr);
	check_reset();
}
END_TEST

/* 33.2.8.1: EBX[2] = 0: all of them. */
START_TEST(reset_warm_cleared)
{
	bed_hide(&bed, VMPT_CAP_IP_FILTER);
	bed_start(&bed);
	bed_wrmsr(&bed, VMPT_MSR_RTIT_CR3_MATCH, 0x5000);
	bed_trace(&bed, BED_CTL);
	vmpt_vcpu_reset(&bed.v, true);
	ck_assert_uint_eq(bed_rdmsr(&bed, 0x570), 0);
	ck_assert_uint_eq(bed_rdmsr(&bed, 0x560), 0);
	ck_assert_uint_eq(bed_rdmsr(&bed, 0x572), 0);
	check_reset();
}
END_TEST

START_TEST(reset_while_entered)
{
	struct vmpt_vcpu before;

	bed_start(&bed);
	bed_trace(&bed, BED_CTL);
	bed.v.entered = true;
	before = bed.v;
	vmpt_vcpu_reset(&bed.v, false);
	ck_assert_mem_eq(&before, &bed.v, sizeof(before));
}
END_TEST

/*
 * D20: INIT keeps PT's state (Table 33-55 traces across it). A VMM only needs to append the PIP for
 * its change of CR3; that changes nothing in the state but the position.
 */
START_TEST(init_keeps_tracing)
{
	struct vmpt_cr3_write write = { .old_cr3 = 0x9000, .cause = VMPT_CR3_INIT };
	struct vmpt_pt_regs before;

	bed_start(&bed);
	bed_trace(&bed, BED_CTL);
	before = bed.v.regs;
	ck_assert_int_eq(vmpt_vcpu_cr3_write(&bed.v, &write), 1);
	ck_assert_uint_eq(bed.v.regs.output_mask_ptrs, 0x80000007fULL);
	bed.v.regs.output_mask_ptrs = before.output_mask_ptrs;
	ck_assert_mem_eq(&before, &bed.v.regs, sizeof(before));
	ck_assert_uint_eq(bed_rdmsr(&bed, 0x570), BED_CTL);
}
END_TEST

/* ---- SMI, RSM (33.2.9.3) ---- */

START_TEST(smi_rsm_tracing)
{
	u64 status;

	bed_start(&bed);
	bed_trace(&bed, BED_CTL);
	status = bed_rdmsr(&bed, 0x571);
	ck_assert_uint_eq(status, VMPT_STATUS_TRIGGER_EN);
	ck_assert_int_eq(vmpt_vcpu_smi(&bed.v), 0);
	ck_assert_uint_eq(bed_rdmsr(&bed, 0x570), BED_CTL & ~1ULL);
	ck_assert_uint_eq(bed_rdmsr(&bed, 0x571), 0);
	ck_assert_int_eq(vmpt_vcpu_smi(&bed.v), -VMPT_E_STATE);
	/* 33.2.9.3: CR3 changes, and no PIP is made */
	ck_assert_int_eq(
		vmpt_vcpu_cr3_write(&bed.v, &(struct vmpt_cr3_write){ .new_cr3 = 0x8000,
								      .cause = VMPT_CR3_SMM }),
		0);
	ck_assert_int_eq(vmpt_vcpu_rsm(&bed.v), 0);
	ck_assert_uint_eq(bed_rdmsr(&bed, 0x570), BED_CTL);
	ck_assert_uint_eq(bed_rdmsr(&bed, 0x571), status);
	ck_assert_int_eq(vmpt_vcpu_rsm(&bed.v), -VMPT_E_STATE);
	ck_assert_uint_eq(bed.guest.writes, 5); /* the table: no byte of trace */
}
END_TEST

START_TEST(smi_rsm_not_tracing)
{
	bed_start(&bed);
	bed_wrmsr(&bed, 0x570, BED_CTL & ~1ULL);
	ck_assert_int_eq(vmpt_vcpu_smi(&bed.v), 0);
	ck_assert_int_eq(vmpt_vcpu_rsm(&bed.v), 0);
	ck_assert_uint_eq(bed_rdmsr(&bed, 0x570), BED_CTL & ~1ULL);
}
END_TEST

/* SMM traces itself and does not stop: RSM is a shutdown and changes nothing. */
START_TEST(rsm_shutdown)
{
	bed_start(&bed);
	bed_trace(&bed, BED_CTL);
	ck_assert_int_eq(vmpt_vcpu_smi(&bed.v), 0);
	bed_wrmsr(&bed, 0x570, BED_CTL);
	ck_assert_int_eq(vmpt_vcpu_rsm(&bed.v), VMPT_SHUTDOWN);
	ck_assert(bed.v.in_smm);
	/* with TraceEn cleared it works */
	bed_wrmsr(&bed, 0x570, BED_CTL & ~1ULL);
	ck_assert_int_eq(vmpt_vcpu_rsm(&bed.v), 0);
	ck_assert_uint_eq(bed_rdmsr(&bed, 0x570), BED_CTL);
}
END_TEST

/* CTL as SMM left it is illegal with TraceEn. */
START_TEST(rsm_illegal_ctl)
{
	bed_hide(&bed, VMPT_CAP_SINGLE_RANGE);
	bed_start(&bed);
	bed_trace(&bed, BED_CTL);
	ck_assert_int_eq(vmpt_vcpu_smi(&bed.v), 0);
	bed_wrmsr(&bed, 0x570, 0);
	ck_assert_int_eq(vmpt_vcpu_rsm(&bed.v), VMPT_SHUTDOWN);
	ck_assert_uint_eq(bed_rdmsr(&bed, 0x570), 0);
	ck_assert(bed.v.in_smm);
}
END_TEST

START_TEST(smi_while_entered)
{
	bed_start(&bed);
	bed.v.entered = true;
	ck_assert_int_eq(vmpt_vcpu_smi(&bed.v), -VMPT_E_STATE);
	bed.v.entered = false;
	ck_assert_int_eq(vmpt_vcpu_smi(&bed.v), 0);
	bed.v.entered = true;
	ck_assert_int_eq(vmpt_vcpu_rsm(&bed.v), -VMPT_E_STATE);
}
END_TEST

/* RSM sets TraceEn as WRMSR does: a PMI that was preserved is pended. */
START_TEST(rsm_pends_pmi)
{
	bed_start(&bed);
	bed_trace(&bed, BED_CTL | VMPT_CTL_INJECT);
	ck_assert_int_eq(vmpt_vcpu_smi(&bed.v), 0);
	bed_wrmsr(&bed, 0x571, VMPT_STATUS_PEND_PMI);
	ck_assert_uint_eq(bed.guest.pmis, 0);
	ck_assert_int_eq(vmpt_vcpu_rsm(&bed.v), 0);
	ck_assert_uint_eq(bed.guest.pmis, 1);
	ck_assert(bed.v.held_pend_pmi);
}
END_TEST

/* ---- VMXON (33.2.9.4) ---- */

START_TEST(vmxon)
{
	bed_start(&bed);
	bed_trace(&bed, BED_CTL);
	vmpt_vcpu_vmxon(&bed.v);
	ck_assert_uint_eq(bed_rdmsr(&bed, 0x570), BED_CTL & ~1ULL);
	ck_assert_uint_eq(bed_rdmsr(&bed, 0x571), 0);
	/* any attempt to write CTL, even the same value; other MSRs as usual */
	ck_assert_int_eq(vmpt_vcpu_wrmsr(&bed.v, 0x570, BED_CTL), VMPT_GP);
	ck_assert_uint_eq(bed.v.gp_why, VMPT_GP_VMX);
	ck_assert_int_eq(vmpt_vcpu_wrmsr(&bed.v, 0x570, BED_CTL & ~1ULL), VMPT_GP);
	ck_assert_int_eq(vmpt_vcpu_wrmsr(&bed.v, 0x570, 0), VMPT_GP);
	bed_wrmsr(&bed, 0x572, 0x5000);
	vmpt_vcpu_vmxoff(&bed.v);
	/* VMXOFF does not set it again */
	ck_assert_uint_eq(bed_rdmsr(&bed, 0x570), BED_CTL & ~1ULL);
	bed_wrmsr(&bed, 0x570, BED_CTL);
}
END_TEST

START_TEST(vmxon_in_smm)
{
	bed_start(&bed);
	bed_trace(&bed, BED_CTL);
	ck_assert_int_eq(vmpt_vcpu_smi(&bed.v), 0);
	vmpt_vcpu_vmxon(&bed.v);
	ck_assert_int_eq(vmpt_vcpu_rsm(&bed.v), 0);
	ck_assert_uint_eq(bed_rdmsr(&bed, 0x570), BED_CTL & ~1ULL);
}
END_TEST

/* A VMM restores a vCPU in VMX operation: CTL may be written, but not TraceEn. */
START_TEST(vmxon_restore)
{
	bed_start(&bed);
	vmpt_vcpu_vmxon(&bed.v);
	bed_set(&bed, 0x570, BED_CTL & ~1ULL);
	ck_assert_int_eq(vmpt_vcpu_set_msr(&bed.v, 0x570, BED_CTL), VMPT_GP);
	ck_assert_uint_eq(bed_rdmsr(&bed, 0x570), BED_CTL & ~1ULL);
}
END_TEST

/* What the processor holds while the guest is entered is not changed meanwhile. */
START_TEST(modes_while_entered)
{
	struct vmpt_vcpu before;

	bed_start(&bed);
	if (_i)
		ck_assert_int_eq(vmpt_vcpu_vmxon(&bed.v), 0);
	else
		bed_trace(&bed, BED_CTL);
	bed.v.entered = true;
	before = bed.v;
	ck_assert_int_eq(vmpt_vcpu_vmxon(&bed.v), -VMPT_E_STATE);
	ck_assert_int_eq(vmpt_vcpu_vmxoff(&bed.v), -VMPT_E_STATE);
	ck_assert_int_eq(vmpt_vcpu_cr3_given(&bed.v, true, 0x5000, 0x6000, true), -VMPT_E_STATE);
	ck_assert_mem_eq(&before, &bed.v, sizeof(before));
	bed.v.entered = false;
	ck_assert_int_eq(vmpt_vcpu_vmxon(&bed.v), 0);
	ck_assert_int_eq(vmpt_vcpu_vmxoff(&bed.v), 0);
	ck_assert_int_eq(vmpt_vcpu_cr3_given(&bed.v, true, 0x5000, 0x6000, true), 0);
}
END_TEST

/* A shadow of a guest that stopped tracing is not used again. */
START_TEST(shadow_goes_stale)
{
	bed_shadow(&bed);
	bed_start(&bed);
	ck_assert_ptr_eq(bed.v.shadow.memory, &bed.shadow);
	bed_trace(&bed, BED_CTL);
	ck_assert(!bed.v.shadow.stale);
	ck_assert_int_eq(vmpt_vcpu_smi(&bed.v), 0);
	ck_assert(bed.v.shadow.stale);
	ck_assert_int_eq(vmpt_vcpu_rsm(&bed.v), 0);
	ck_assert(!bed.v.shadow.stale && bed.v.shadow.end == VMPT_SHADOW_RING);
	vmpt_vcpu_vmxon(&bed.v);
	ck_assert(bed.v.shadow.stale);
	vmpt_vcpu_reset(&bed.v, false);
	ck_assert(bed.v.shadow.stale && bed.v.shadow.end == VMPT_SHADOW_NONE);
}
END_TEST

TEST_SUITE()
{
	Suite *suite = suite_create("vcpu");
	TCase *tcase = tcase_create("vcpu");

	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_add_test(tcase, reset_cold);
	tcase_add_test(tcase, reset_warm_kept);
	tcase_add_test(tcase, reset_warm_cleared);
	tcase_add_test(tcase, reset_while_entered);
	tcase_add_test(tcase, init_keeps_tracing);
	tcase_add_test(tcase, smi_rsm_tracing);
	tcase_add_test(tcase, smi_rsm_not_tracing);
	tcase_add_test(tcase, rsm_shutdown);
	tcase_add_test(tcase, rsm_illegal_ctl);
	tcase_add_test(tcase, smi_while_entered);
	tcase_add_test(tcase, rsm_pends_pmi);
	tcase_add_test(tcase, vmxon);
	tcase_add_test(tcase, vmxon_in_smm);
	tcase_add_test(tcase, vmxon_restore);
	tcase_add_loop_test(tcase, modes_while_entered, 0, 2);
	tcase_add_test(tcase, shadow_goes_stale);
	suite_add_tcase(suite, tcase);
	return suite;
}
