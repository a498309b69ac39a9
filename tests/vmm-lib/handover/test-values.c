// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* vmm-lib/handover: which MSR values each processor and each guest gets, and what its trace shows.
 */
#include "tests/vmm-lib/handover-rig.h"

static const u32 processors[] = { RIG_FULL, RIG_NO_GPA, RIG_LISTS };

#define PROCESSORS ((int)VMPT_ARRAY_SIZE(processors))

/* D3, D8: processors and guests with fewer MSRs; no access to a missing one. */
START_TEST(fewer_msrs)
{
	u32 hosts = (u32)_i & 7, guests;

	for (guests = 0; guests < 8; guests++) {
		struct rig rig;
		u32 n;

		if (guests & ~hosts)
			continue;
		memset(&rig, 0, sizeof(rig));
		guest_full_caps(&rig.host);
		rig.host.vmx = processors[_i >> 3];
		vmpt_pt_cap_set(&rig.host.cpuid, VMPT_CAP_CR3_FILTER, hosts & 1);
		vmpt_pt_cap_set(&rig.host.cpuid, VMPT_CAP_RANGES, hosts & 2 ? 4 : 1);
		vmpt_pt_cap_set(&rig.host.cpuid, VMPT_CAP_PSB_CYC, hosts >> 2);
		rig.caps = rig.host;
		vmpt_pt_cap_set(&rig.caps.cpuid, VMPT_CAP_CR3_FILTER, guests & 1);
		vmpt_pt_cap_set(&rig.caps.cpuid, VMPT_CAP_RANGES, guests & 2 ? 4 : 0);
		vmpt_pt_cap_set(&rig.caps.cpuid, VMPT_CAP_PSB_CYC, guests >> 2);
		for (n = 0; n < 2; n++) {
			struct vmpt_caps *caps = n ? &rig.host : &rig.caps;

			if (!vmpt_pt_cap(&caps->cpuid, VMPT_CAP_RANGES))
				vmpt_pt_cap_set(&caps->cpuid, VMPT_CAP_IP_FILTER, 0);
			if (vmpt_pt_cap(&caps->cpuid, VMPT_CAP_PSB_CYC))
				continue;
			vmpt_pt_cap_set(&caps->cpuid, VMPT_CAP_CYC_THRESHOLDS, 0);
			vmpt_pt_cap_set(&caps->cpuid, VMPT_CAP_PSB_FREQS, 0);
		}
		rig_init_caps(&rig, RIG_SHOWN);
		rig_guest_on(&rig, 0);
		rig_host_on(&rig);
		rig.host_runs = 3;
		for (n = 0; n < 20; n++)
			ck_assert_int_eq(rig_round(&rig, 100), 0);
		ck_assert_uint_eq(rig.m.faults, 0);
		rig_check_host(&rig);
		rig_check_streams(&rig);
		rig_free(&rig);
	}
}
END_TEST

/* D3: user space says 7 ranges, and so may a processor: at most four are ever accessed. */
START_TEST(seven_ranges)
{
	static const u8 reads[] = { 12 + 3, 3 + 3, 3 + 1 };
	struct vmpt_refusal why;
	struct rig rig;
	u32 i;

	memset(&rig, 0, sizeof(rig));
	guest_full_caps(&rig.host);
	rig.caps = rig.host;
	rig_init_caps(&rig, RIG_SHOWN);
	vmpt_pt_cap_set(&rig.caps.cpuid, VMPT_CAP_RANGES, 7);
	ck_assert_int_eq(vmpt_vcpu_init(&rig.v, &rig.config, &why), -VMPT_E_CAPS);
	rig_free(&rig);

	memset(&rig, 0, sizeof(rig));
	guest_full_caps(&rig.host);
	rig.caps = rig.host;
	vmpt_pt_cap_set(&rig.host.cpuid, VMPT_CAP_RANGES, 7);
	rig_init_caps(&rig, RIG_SHOWN);
	rig_guest_on(&rig, 0);
	rig_host_on(&rig);
	rig_forget(&rig);
	ck_assert_int_eq(vmpt_vcpu_enter(&rig.v), 0);
	/* 12 MSRs saved, or the three that it uses; CTL twice, 38EH; 12 loaded, CTL once. */
	ck_assert_uint_eq(rig.m.reads, reads[rig_mode()]);
	ck_assert_uint_eq(rig.m.writes, 12 + 1);
	for (i = 0; i < 8; i++)
		ck_assert_uint_eq(rig.m.regs.addr[i], rig.v.regs.addr[i]);
	rig_free(&rig);
}
END_TEST

/*
 * The host's triggers are 0 while a guest traces, and as they were afterwards; only then, and only
 * those that the VMM names.
 */
START_TEST(a2_triggers_are_the_hosts)
{
	static const u32 msrs[3] = { MACHINE_TRIGGER, MACHINE_TRIGGER + 1, MACHINE_TRIGGER + 2 };
	static const u64 host[4] = { 0x1234, 0, 0x5678, 0x9abc };
	static const u64 cleared[4] = { 0, 0, 0, 0x9abc };
	struct rig rig;
	int n, err;

	rig_init(&rig, processors[_i], RIG_SHOWN);
	rig.config.trigger_msrs = msrs;
	rig.config.triggers = 3;
	ck_assert_int_eq(vmpt_vcpu_init(&rig.v, &rig.config, NULL), 0);
	memcpy(rig.m.trigger, host, sizeof(host));
	rig_host_on(&rig);
	/* The guest does not trace: nothing to keep out of its trace. */
	ck_assert_int_eq(vmpt_vcpu_enter(&rig.v), 0);
	ck_assert_mem_eq(rig.m.trigger, host, sizeof(host));
	ck_assert_int_eq(vmpt_vcpu_exit(&rig.v, VMPT_EXIT_FAILED_EARLY), 0);
	rig_guest_on(&rig, 0);
	ck_assert_int_eq(vmpt_vcpu_enter(&rig.v), 0);
	ck_assert_mem_eq(rig.m.trigger, cleared, sizeof(cleared));
	ck_assert_int_eq(machine_enter(&rig.m), VMPT_EXIT_NORMAL);
	machine_run(&rig.m, 3);
	machine_exit(&rig.m);
	ck_assert_int_eq(vmpt_vcpu_exit(&rig.v, VMPT_EXIT_NORMAL), 0);
	ck_assert_mem_eq(rig.m.trigger, host, sizeof(host));
	rig_check_host(&rig);
	rig_check_streams(&rig);
	/* The n-th access fails: the host has its triggers back in any case. */
	for (n = 0; n < 60; n++) {
		rig.m.fail_access = n;
		err = vmpt_vcpu_enter(&rig.v);
		if (!err) {
			ck_assert_mem_eq(rig.m.trigger, cleared, sizeof(cleared));
			(void)vmpt_vcpu_exit(&rig.v, VMPT_EXIT_FAILED_LATE);
		}
		rig.m.fail_access = -1;
		ck_assert_msg(!memcmp(rig.m.trigger, host, sizeof(host)), "access %d", n);
	}
	ck_assert_uint_gt(rig.m.failed, 30);
	rig_free(&rig);
}
END_TEST

START_TEST(a2_triggers_that_cannot_be)
{
	static const u32 msrs[VMPT_TRIGGERS_MAX + 1] = { 0 };
	struct vmpt_refusal why;
	struct rig rig;

	rig_init(&rig, RIG_FULL, VMPT_USE_GUEST);
	rig.config.triggers = 1;
	ck_assert_int_eq(vmpt_vcpu_init(&rig.v, &rig.config, &why), -VMPT_E_INVAL);
	ck_assert_str_eq(why.field, "trigger_msrs");
	rig.config.trigger_msrs = msrs;
	rig.config.triggers = VMPT_TRIGGERS_MAX + 1;
	ck_assert_int_eq(vmpt_vcpu_init(&rig.v, &rig.config, &why), -VMPT_E_INVAL);
	ck_assert_str_eq(why.field, "triggers");
	rig_free(&rig);
}
END_TEST

/* What the processor holds when the guest is entered. */
START_TEST(values)
{
	struct rig rig;

	rig_init(&rig, RIG_FULL, RIG_SHOWN);
	rig_guest_on(&rig, VMPT_CTL_CR3_FILTER | VMPT_CTL_TSC_EN);
	ck_assert_int_eq(vmpt_vcpu_enter(&rig.v), 0);
	ck_assert_uint_eq(rig.m.regs.output_base, RIG_TABLE);
	ck_assert_uint_eq(rig.m.regs.cr3_match, 0x2222000);
	ck_assert_uint_eq(rig.m.regs.ctl & VMPT_CTL_TRACE_EN, 0);
	/* By the VM entry only. */
	ck_assert_uint_eq(rig.set_ctl, 0x258d);
	ck_assert_int_eq(machine_enter(&rig.m), VMPT_EXIT_NORMAL);
	ck_assert_uint_eq(rig.m.regs.ctl, 0x258d);
	machine_run(&rig.m, 3);
	machine_exit(&rig.m);
	ck_assert_int_eq(vmpt_vcpu_exit(&rig.v, VMPT_EXIT_NORMAL), 0);
	/* PSB+, TIP.PGE, three times TIP and TNT, TIP.PGD. */
	ck_assert_uint_eq(rig.v.regs.output_mask_ptrs, (18 + 7 + 24 + 1ULL) << 32 | 0x7f);
	ck_assert_uint_eq(rig.v.regs.status >> 32, 18 + 7 + 24 + 1);
	rig_free(&rig);
}
END_TEST

/* The shadow's ToPA bit and addresses are the processor's only. */
START_TEST(values_shadow)
{
	struct rig rig;

	rig_init(&rig, RIG_NO_GPA, RIG_SHOWN);
	rig_guest_on(&rig, 0);
	rig_guest_off(&rig);
	/* A single range of two pages, whose frames are not adjacent. */
	ck_assert_int_eq(vmpt_vcpu_wrmsr(&rig.v, VMPT_MSR_RTIT_OUTPUT_BASE, 0x10000), 0);
	ck_assert_int_eq(vmpt_vcpu_wrmsr(&rig.v, VMPT_MSR_RTIT_OUTPUT_MASK_PTRS, 0x1fff), 0);
	ck_assert_int_eq(vmpt_vcpu_wrmsr(&rig.v, VMPT_MSR_RTIT_CTL, 0x2005), 0);
	ck_assert_int_eq(vmpt_vcpu_enter(&rig.v), 0);
	ck_assert_uint_eq(rig.set_ctl, 0x2105);
	ck_assert_uint_eq(rig.m.regs.output_base, 0x280000000);
	ck_assert_int_eq(machine_enter(&rig.m), VMPT_EXIT_NORMAL);
	machine_run(&rig.m, 1000);
	machine_exit(&rig.m);
	ck_assert_int_eq(vmpt_vcpu_exit(&rig.v, VMPT_EXIT_NORMAL), 0);
	ck_assert_uint_eq(rig.v.regs.ctl, 0x2005);
	ck_assert_uint_eq(rig.v.regs.output_base, 0x10000);
	ck_assert_uint_eq(rig.v.regs.output_mask_ptrs, rig.m.logged << 32 | 0x1fff);
	rig.regions = 2;
	rig_check_streams(&rig);
	rig_free(&rig);
}
END_TEST

/* A single range within one page needs no table even on the host. */
START_TEST(values_direct)
{
	struct rig rig;

	rig_init(&rig, RIG_NO_GPA, RIG_SHOWN);
	ck_assert_int_eq(vmpt_vcpu_wrmsr(&rig.v, VMPT_MSR_RTIT_OUTPUT_BASE, 0x10000), 0);
	ck_assert_int_eq(vmpt_vcpu_wrmsr(&rig.v, VMPT_MSR_RTIT_OUTPUT_MASK_PTRS, 0xfff), 0);
	ck_assert_int_eq(vmpt_vcpu_wrmsr(&rig.v, VMPT_MSR_RTIT_CTL, 0x2005), 0);
	ck_assert_int_eq(vmpt_vcpu_enter(&rig.v), 0);
	ck_assert_uint_eq(rig.set_ctl, 0x2005);
	ck_assert_ptr_nonnull(guest_at_hpa(&rig.guest, rig.m.regs.output_base));
	ck_assert_int_eq(machine_enter(&rig.m), VMPT_EXIT_NORMAL);
	machine_run(&rig.m, 300);
	machine_exit(&rig.m);
	ck_assert_int_eq(vmpt_vcpu_exit(&rig.v, VMPT_EXIT_NORMAL), 0);
	ck_assert_uint_eq(rig.v.regs.output_mask_ptrs, rig.m.logged << 32 | 0xfff);
	rig.regions = 1;
	rig_check_streams(&rig);
	rig_free(&rig);
}
END_TEST

/* A processor without ToPA has no bit 55 to check. */
START_TEST(values_without_topa)
{
	struct rig rig;

	memset(&rig, 0, sizeof(rig));
	guest_full_caps(&rig.host);
	vmpt_pt_cap_set(&rig.host.cpuid, VMPT_CAP_TOPA, 0);
	vmpt_pt_cap_set(&rig.host.cpuid, VMPT_CAP_TOPA_MULTI, 0);
	rig.caps = rig.host;
	rig_init_caps(&rig, RIG_SHOWN);
	rig.host_tracer.ctl &= ~VMPT_CTL_TOPA;
	rig.m.regs.ctl &= ~VMPT_CTL_TOPA;
	rig.m.global_status = VMPT_GLOBAL_TOPA_PMI; /* some other meaning */
	ck_assert_int_eq(vmpt_vcpu_wrmsr(&rig.v, VMPT_MSR_RTIT_OUTPUT_BASE, 0x10000), 0);
	ck_assert_int_eq(vmpt_vcpu_wrmsr(&rig.v, VMPT_MSR_RTIT_OUTPUT_MASK_PTRS, 0x3fff), 0);
	for (u32 i = 0; i < 8; i++)
		ck_assert_int_eq(vmpt_vcpu_wrmsr(&rig.v, VMPT_MSR_RTIT_ADDR0_A + i, 0x1000), 0);
	ck_assert_int_eq(vmpt_vcpu_wrmsr(&rig.v, VMPT_MSR_RTIT_CTL, 0x2005), 0);
	ck_assert_int_eq(rig_round(&rig, 300), 0);
	ck_assert_uint_eq(rig.v.regs.output_mask_ptrs, rig.m.logged << 32 | 0x3fff);
	ck_assert_uint_eq(rig.guest.pmis, 0);
	ck_assert_uint_eq(rig.m.global_status, VMPT_GLOBAL_TOPA_PMI);
	rig_free(&rig);
}
END_TEST

/* A guest that runs on a CR3 other than its own filters by its own. */
START_TEST(values_cr3_given)
{
	struct rig rig;

	rig_init(&rig, RIG_FULL, RIG_SHOWN);
	rig_guest_on(&rig, VMPT_CTL_CR3_FILTER);
	vmpt_vcpu_cr3_given(&rig.v, true, 0x2222000, 0x9999000, false);
	ck_assert_int_eq(vmpt_vcpu_enter(&rig.v), 0);
	ck_assert_uint_eq(rig.m.regs.cr3_match, 0x9999000);
	ck_assert_int_eq(vmpt_vcpu_exit(&rig.v, VMPT_EXIT_FAILED_EARLY), 0);
	ck_assert_uint_eq(rig.v.regs.cr3_match, 0x2222000);
	rig_free(&rig);
}
END_TEST

static u32 psbs(const struct rig *rig)
{
	u32 i, n = 0;

	for (i = 1; i < rig->m.logged; i++)
		n += rig->m.log[i - 1] == 2 && rig->m.log[i] == 0x23; /* PSBEND */
	return n;
}

/* A PSB+ at the next entry after VMPTRLD, and at no other. */
START_TEST(psb_after_vmptrld)
{
	struct rig rig;
	u32 i;

	rig_init(&rig, processors[_i], RIG_SHOWN);
	rig_guest_on(&rig, 0);
	for (i = 0; i < 9; i++) {
		if (i % 3 == 2)
			vmpt_vcpu_vmptrld(&rig.v);
		ck_assert_int_eq(rig_round(&rig, 2), 0);
	}
	ck_assert_uint_eq(psbs(&rig), 1 + 3);
	/* If the entry fails, or tracing is stopped, it remains due. */
	vmpt_vcpu_vmptrld(&rig.v);
	rig.m.fail_early = true;
	ck_assert_int_eq(rig_round(&rig, 2), 0);
	rig.m.fail_early = false;
	ck_assert(rig.v.force_psb);
	rig_guest_off(&rig);
	ck_assert_int_eq(rig_round(&rig, 2), 0);
	ck_assert(rig.v.force_psb);
	ck_assert_int_eq(vmpt_vcpu_wrmsr(&rig.v, VMPT_MSR_RTIT_STATUS, VMPT_STATUS_STOPPED), 0);
	ck_assert_int_eq(vmpt_vcpu_wrmsr(&rig.v, VMPT_MSR_RTIT_CTL, RIG_CTL | 1), 0);
	ck_assert_int_eq(rig_round(&rig, 2), 0);
	ck_assert(rig.v.force_psb);
	ck_assert_uint_eq(psbs(&rig), 1 + 3);
	rig_free(&rig);
}
END_TEST

/* The exit's PIP with the host's CR3 is not in the guest's buffer, even with lists. */
START_TEST(no_host_cr3)
{
	static const u8 pip[8] = { 0x02, 0x43, 0x00, 0x67, 0x45, 0x23, 0x01, 0x00 };
	struct rig rig;
	size_t i, n = 0;

	rig_init(&rig, processors[_i], RIG_SHOWN);
	rig_guest_on(&rig, 0);
	for (i = 0; i < 5; i++)
		ck_assert_int_eq(rig_round(&rig, 3), 0);
	/* The model does make one if the control that the plan requires is missing. */
	if (rig.plan.lists) {
		rig.m.exit = 0;
		ck_assert_int_eq(rig_round(&rig, 3), 0);
	}
	for (i = 0; i + 8 <= rig.m.logged; i++)
		n += !memcmp(rig.m.log + i, pip, 7);
	ck_assert_uint_eq(n, rig.plan.lists);
	rig_free(&rig);
}
END_TEST

TEST_SUITE()
{
	Suite *suite = suite_create("handover-values");
	TCase *tc = tcase_create("values");

	tcase_add_loop_test(tc, fewer_msrs, 0, 8 * PROCESSORS);
	tcase_add_test(tc, seven_ranges);
	tcase_add_loop_test(tc, a2_triggers_are_the_hosts, 0, PROCESSORS);
	tcase_add_test(tc, a2_triggers_that_cannot_be);
	tcase_add_test(tc, values);
	tcase_add_test(tc, values_shadow);
	tcase_add_test(tc, values_direct);
	tcase_add_test(tc, values_without_topa);
	tcase_add_test(tc, values_cr3_given);
	tcase_add_loop_test(tc, psb_after_vmptrld, 0, PROCESSORS);
	tcase_add_loop_test(tc, no_host_cr3, 0, PROCESSORS);
	suite_add_tcase(suite, tc);
	return suite;
}
