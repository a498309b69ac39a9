// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * vmm-lib/handover: the steps with their owners, what they cost, and what is not restored.
 */
#include "tests/vmm-lib/handover-rig.h"

static const u32 processors[] = { RIG_FULL, RIG_NO_GPA, RIG_LISTS };

#define PROCESSORS ((int)VMPT_ARRAY_SIZE(processors))

/* ---- the steps ---- */

struct expected {
	u8 step, owner;
};

static void check_steps(struct rig *rig, const struct expected *want, u32 n)
{
	u32 i;

	ck_assert_uint_eq(rig->stepped, n);
	for (i = 0; i < n; i++)
		if (rig->steps[i] != want[i].step || rig->owners[i] != want[i].owner)
			ck_abort_msg("step %u is %u by %u, not %u by %u", i, rig->steps[i],
				     rig->owners[i], want[i].step, want[i].owner);
}

/* enum vmpt_step, with the owners that its comments name. */
static const struct expected guest_steps[] = {
	{ VMPT_STEP_ENTER_BEGIN, VMPT_OWNED_TO_GUEST },
	{ VMPT_STEP_HOST_CLEARED, VMPT_OWNED_TO_GUEST },
	{ VMPT_STEP_HOST_VERIFIED, VMPT_OWNED_TO_GUEST },
	{ VMPT_STEP_HOST_PMI_TAKEN, VMPT_OWNED_TO_GUEST },
	{ VMPT_STEP_HOST_SAVED, VMPT_OWNED_TO_GUEST },
	{ VMPT_STEP_GUEST_LOADED, VMPT_OWNED_TO_GUEST },
	{ VMPT_STEP_GUEST_OWNS, VMPT_OWNED_BY_GUEST },
	{ VMPT_STEP_GUEST_CTL, VMPT_OWNED_BY_GUEST },
	{ VMPT_STEP_ENTER_END, VMPT_OWNED_BY_GUEST },
	{ VMPT_STEP_EXIT_BEGIN, VMPT_OWNED_BY_GUEST },
	{ VMPT_STEP_EXIT_VERIFIED, VMPT_OWNED_BY_GUEST },
	{ VMPT_STEP_GUEST_SAVED, VMPT_OWNED_BY_GUEST },
	{ VMPT_STEP_GUEST_PMI_TAKEN, VMPT_OWNED_BY_GUEST },
	{ VMPT_STEP_TO_HOST, VMPT_OWNED_TO_HOST },
	{ VMPT_STEP_HOST_LOADED, VMPT_OWNED_TO_HOST },
	{ VMPT_STEP_HOST_OWNS, VMPT_OWNED_BY_HOST },
	{ VMPT_STEP_HOST_CTL, VMPT_OWNED_BY_HOST },
	{ VMPT_STEP_EXIT_END, VMPT_OWNED_BY_HOST },
};

/* A guest that does not trace, or has no PT while the host traces only itself. */
static const struct expected host_steps[] = {
	{ VMPT_STEP_ENTER_BEGIN, VMPT_OWNED_TO_GUEST },
	{ VMPT_STEP_HOST_CLEARED, VMPT_OWNED_TO_GUEST },
	{ VMPT_STEP_HOST_VERIFIED, VMPT_OWNED_TO_GUEST },
	{ VMPT_STEP_HOST_PMI_TAKEN, VMPT_OWNED_TO_GUEST },
	{ VMPT_STEP_HOST_SAVED, VMPT_OWNED_TO_GUEST },
	{ VMPT_STEP_GUEST_CTL, VMPT_OWNED_TO_GUEST },
	{ VMPT_STEP_ENTER_END, VMPT_OWNED_TO_GUEST },
	{ VMPT_STEP_EXIT_BEGIN, VMPT_OWNED_TO_GUEST },
	{ VMPT_STEP_EXIT_VERIFIED, VMPT_OWNED_TO_GUEST },
	{ VMPT_STEP_TO_HOST, VMPT_OWNED_TO_HOST },
	{ VMPT_STEP_HOST_LOADED, VMPT_OWNED_TO_HOST },
	{ VMPT_STEP_HOST_OWNS, VMPT_OWNED_BY_HOST },
	{ VMPT_STEP_HOST_CTL, VMPT_OWNED_BY_HOST },
	{ VMPT_STEP_EXIT_END, VMPT_OWNED_BY_HOST },
};

START_TEST(steps_guest)
{
	struct rig rig;

	rig_init(&rig, processors[_i], RIG_SHOWN);
	rig_guest_on(&rig, 0);
	rig_host_on(&rig);
	rig_forget(&rig);
	ck_assert_int_eq(rig_round(&rig, 5), 0);
	check_steps(&rig, guest_steps, VMPT_ARRAY_SIZE(guest_steps));
	ck_assert(rig.v.ran && !rig.v.entered);
	rig_check_host(&rig);
	rig_check_streams(&rig);
	ck_assert_uint_gt(rig.m.logged, 40);
	rig_free(&rig);
}
END_TEST

START_TEST(steps_guest_off)
{
	struct rig rig;

	rig_init(&rig, processors[_i], RIG_SHOWN);
	rig_host_on(&rig);
	rig_forget(&rig);
	ck_assert_int_eq(rig_round(&rig, 5), 0);
	check_steps(&rig, host_steps, VMPT_ARRAY_SIZE(host_steps));
	ck_assert(rig.v.ran);
	rig_check_host(&rig);
	ck_assert_uint_eq(rig.m.logged, 0);
	rig_free(&rig);
}
END_TEST

START_TEST(steps_host)
{
	static const u32 hosts[] = { RIG_FULL, VMPT_VMX_PT };
	struct rig rig;

	rig_init(&rig, hosts[_i], VMPT_USE_HOST);
	rig_host_on(&rig);
	machine_run(&rig.m, 100);
	rig_forget(&rig);
	ck_assert_int_eq(rig_round(&rig, 5), 0);
	check_steps(&rig, host_steps, VMPT_ARRAY_SIZE(host_steps));
	/* The guest is not in the host's stream. */
	ck_assert_uint_eq(rig.m.host_bytes, 100);
	rig_check_host(&rig);
	machine_run(&rig.m, 100);
	rig_check_streams(&rig);
	rig_free(&rig);
}
END_TEST

/* D29, and D17 for system-wide tracing: no PT MSR and no GLOBAL_STATUS is accessed. */
START_TEST(steps_none)
{
	static const unsigned int uses[] = { VMPT_USE_NONE, VMPT_USE_SYSTEM };
	struct rig rig;
	u32 i;

	rig_init(&rig, RIG_FULL, uses[_i]);
	rig_host_on(&rig);
	machine_run(&rig.m, 2 * GUEST_PAGE - 3); /* the next bytes fill a region with INT */
	rig_forget(&rig);
	ck_assert_int_eq(vmpt_vcpu_enter(&rig.v), 0);
	ck_assert_int_eq(machine_enter(&rig.m), VMPT_EXIT_NORMAL);
	machine_run(&rig.m, 10);
	/* The PMI came in the guest and is the host's. */
	ck_assert_int_eq(vmpt_vcpu_pmi_owner(&rig.v), VMPT_OWNED_BY_HOST);
	machine_exit(&rig.m);
	ck_assert(rig.m.nmi);
	ck_assert_int_eq(vmpt_vcpu_exit(&rig.v, VMPT_EXIT_NORMAL), 0);
	ck_assert_uint_eq(rig.m.reads + rig.m.writes, 0);
	ck_assert_uint_eq(rig.guest.pmis, 0);
	/* It was still set for the handler, at the first step after the exit. */
	ck_assert_uint_eq(rig.host_tracer.pmis, 1);
	for (i = 0; i < rig.stepped; i++)
		ck_assert_uint_eq(rig.owners[i], VMPT_OWNED_BY_HOST);
	ck_assert_uint_eq(rig.m.host_bytes, 2 * GUEST_PAGE + 7);
	rig_check_host(&rig);
	rig_check_streams(&rig);
	rig_free(&rig);
}
END_TEST

/*
 * D29: a host that does not trace costs a guest that does not either two reads at entry (CTL,
 * 38EH) and one at exit (CTL), with restore_host a second one there (after the owner is the host),
 * with host_ctl only that of 38EH, and no write of an MSR.
 */
START_TEST(cost_without_trace)
{
	static const u8 entry[] = { 2, 2, 1 }, all[] = { 4, 3, 1 };
	static const unsigned int uses[] = { RIG_SHOWN, VMPT_USE_GUEST, VMPT_USE_HOST };
	struct rig rig;

	rig_init(&rig, RIG_FULL, uses[_i]);
	rig_forget(&rig);
	ck_assert_int_eq(vmpt_vcpu_enter(&rig.v), 0);
	ck_assert_uint_eq(rig.m.reads, entry[rig_mode()]);
	ck_assert_uint_eq(rig.m.writes, 0);
	ck_assert_int_eq(vmpt_vcpu_exit(&rig.v, VMPT_EXIT_NORMAL), 0);
	ck_assert_uint_eq(rig.m.reads, all[rig_mode()]);
	ck_assert_uint_eq(rig.m.writes, 0);
	rig_free(&rig);
}
END_TEST

/*
 * D-b: RDMSR and WRMSR of the PT MSRs for an entry and its exit, without those of GLOBAL_STATUS, if
 * processor and guest have r ranges. With host_ctl; two RDMSR more without it.
 */
static const struct cost {
	bool guest, host;	       /* traces */
	u8 reads, writes, writes_of_r; /* and for each range */
} costs[] = {
	{ true, false, 3, 4, 2 },
	{ true, true, 6, 9, 2 },
	{ false, true, 0, 2, 0 },
	{ false, false, 0, 0, 0 },
};

static void ranges(struct vmpt_caps *caps, u32 r)
{
	vmpt_pt_cap_set(&caps->cpuid, VMPT_CAP_RANGES, r);
	if (!r)
		vmpt_pt_cap_set(&caps->cpuid, VMPT_CAP_IP_FILTER, 0);
}

/* A VMM whose tracer knows CTL. */
static int known_ctl(void *opaque, u64 *ctl)
{
	*ctl = ((struct rig *)opaque)->m.regs.ctl;
	return 0;
}

START_TEST(db_cost)
{
	u32 r = (u32)_i % 5, i;
	bool known = _i / 5 & 1;
	struct rig rig;

	for (i = 0; i < VMPT_ARRAY_SIZE(costs); i++) {
		const struct cost *c = &costs[i];

		memset(&rig, 0, sizeof(rig));
		guest_full_caps(&rig.host);
		rig.host.vmx = processors[_i / 10];
		ranges(&rig.host, r);
		rig.caps = rig.host;
		rig_init_caps(&rig, RIG_SHOWN);
		rig.config.restore_host = false;
		rig.v.restore_host = false;
		rig.ops.host_ctl = known ? known_ctl : NULL;
		if (c->guest)
			rig_guest_on(&rig, 0);
		if (c->host)
			rig_host_on(&rig);
		rig_forget(&rig);
		rig.m.global = 0;
		ck_assert_int_eq(rig_round(&rig, 5), 0);
		ck_assert_uint_le(rig.m.reads - rig.m.global, c->reads + (known ? 0 : 2));
		ck_assert_uint_le(rig.m.writes, c->writes + c->writes_of_r * r);
		rig_check_host(&rig);
		rig_check_streams(&rig);
		rig_free(&rig);
	}
}
END_TEST

/* A host that filters has its filters again, and those that it does not use are not touched. */
static int filters(void *opaque, struct vmpt_pt_regs *regs)
{
	struct rig *rig = opaque;

	regs->ctl = rig->host_tracer.ctl;
	return 0;
}

START_TEST(db_filters)
{
	struct rig rig;

	rig_init(&rig, processors[_i], RIG_SHOWN);
	rig.config.restore_host = false;
	rig.v.restore_host = false;
	rig.ops.host_state = filters;
	rig_guest_on(&rig, 0);
	/* CR3Filter, and ADDR1 and ADDR3 as FilterEn ranges */
	rig.host_tracer.ctl |= 1ULL << 7 | 1ULL << 36 | 1ULL << 44;
	rig_host_on(&rig);
	rig_forget(&rig);
	rig.m.global = 0;
	ck_assert_int_eq(rig_round(&rig, 5), 0);
	ck_assert_uint_eq(rig.m.regs.output_base, MACHINE_HPA);
	ck_assert_uint_eq(rig.m.regs.cr3_match, 0x7777000);
	ck_assert_uint_eq(rig.m.regs.addr[0], 0x400000);
	ck_assert_uint_eq(rig.m.regs.addr[2], 0xffffffff81002000);
	ck_assert_uint_eq(rig.m.regs.addr[3], 0xffffffff81003000);
	ck_assert_uint_eq(rig.m.regs.addr[5], 0x405000);
	ck_assert_uint_eq(rig.m.regs.addr[6], 0xffffffff81006000);
	ck_assert_uint_eq(rig.m.regs.addr[7], 0xffffffff81007000);
	ck_assert_uint_eq(rig.m.regs.ctl, rig.host_tracer.ctl);
	ck_assert_uint_le(rig.m.reads - rig.m.global, 6 + 5 + 2);
	ck_assert_uint_le(rig.m.writes, 9 + 2 * 4 + 5);
	rig_free(&rig);
}
END_TEST

/*
 * An idle host starts in the exit and believes that OUTPUT_BASE is what it was: not started, and
 * reported; nothing goes to addresses that the guest chose. With restore_host it is right.
 */
START_TEST(db_host_believes)
{
	bool restore = _i & 1, tracing = _i & 2;
	struct rig rig;
	int err;

	rig_init(&rig, processors[_i / 4], RIG_SHOWN);
	rig.config.restore_host = restore;
	rig.v.restore_host = restore;
	if (tracing)
		rig_guest_on(&rig, 0);
	/* A round before: without restore_host the MSRs hold the guest's values from then on. */
	ck_assert_int_eq(rig_round(&rig, 5), 0);
	ck_assert_uint_eq(rig.m.regs.output_base == MACHINE_HPA, restore || !tracing);
	if (tracing)
		rig_guest_off(&rig);
	ck_assert_int_eq(vmpt_vcpu_enter(&rig.v), 0);
	ck_assert_int_eq(machine_enter(&rig.m), VMPT_EXIT_NORMAL);
	rig.ops.host_state = filters;
	rig.host_tracer.wants = true;
	machine_exit(&rig.m);
	err = vmpt_vcpu_exit(&rig.v, VMPT_EXIT_NORMAL);
	ck_assert_int_eq(err, restore ? 0 : -VMPT_E_HOST_TRACING);
	ck_assert_uint_eq(rig.m.regs.ctl & VMPT_CTL_TRACE_EN, restore);
	machine_run(&rig.m, 1000);
	ck_assert_uint_eq(rig.m.host_bytes, restore ? 1000 : 0);
	rig_check_streams(&rig);
	rig_free(&rig);
}
END_TEST

/* A VMM that forgot the clear control, and whose host_ctl therefore does not know TraceEn. */
static int forgotten_ctl(void *opaque, u64 *ctl)
{
	(void)opaque;
	*ctl = 0;
	return 0;
}

START_TEST(db_clear_forgotten)
{
	struct rig rig;

	rig_init(&rig, processors[_i + 1], RIG_SHOWN);
	rig.config.restore_host = false;
	rig.v.restore_host = false;
	rig.ops.host_ctl = forgotten_ctl;
	rig_guest_on(&rig, 0);
	ck_assert_int_eq(vmpt_vcpu_enter(&rig.v), 0);
	ck_assert_int_eq(machine_enter(&rig.m), VMPT_EXIT_NORMAL);
	rig.m.exit = 0;
	rig.m.lists.exit_loads = 0;
	machine_exit(&rig.m);
	ck_assert(rig.m.regs.ctl & VMPT_CTL_TRACE_EN);
	rig.unchecked = true;
	ck_assert_int_eq(vmpt_vcpu_exit(&rig.v, VMPT_EXIT_NORMAL), -VMPT_E_CONTROLS);
	ck_assert_uint_eq(rig.m.regs.ctl & VMPT_CTL_TRACE_EN, 0);
	rig_free(&rig);
}
END_TEST

TEST_SUITE()
{
	Suite *suite = suite_create("handover");
	TCase *tc = tcase_create("handover");

	tcase_add_loop_test(tc, steps_guest, 0, PROCESSORS);
	tcase_add_loop_test(tc, steps_guest_off, 0, PROCESSORS);
	tcase_add_loop_test(tc, steps_host, 0, 2);
	tcase_add_loop_test(tc, steps_none, 0, 2);
	tcase_add_loop_test(tc, cost_without_trace, 0, 3);
	tcase_add_loop_test(tc, db_cost, 0, 10 * PROCESSORS);
	tcase_add_loop_test(tc, db_filters, 0, PROCESSORS);
	tcase_add_loop_test(tc, db_host_believes, 0, 4 * PROCESSORS);
	tcase_add_loop_test(tc, db_clear_forgotten, 0, PROCESSORS - 1);
	suite_add_tcase(suite, tc);
	return suite;
}
