// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * vmm-lib/handover: entries that fail (SDM 3 33.5.2.5, Table 33-54), VMX abort (33.5.2.6), hosts
 * that ignore the owner, MSR accesses that fail, callbacks that fail, and calls out of order.
 */
#include <errno.h>

#include "tests/vmm-lib/handover-rig.h"

static const u32 processors[] = { RIG_FULL, RIG_NO_GPA, RIG_LISTS };

#define PROCESSORS ((int)VMPT_ARRAY_SIZE(processors))
#define ALL_STEPS  ((1u << VMPT_STEPS) - 1)

/* The guest did not run: its registers are unchanged, the host continues, a retry works. */
START_TEST(failed_entry)
{
	bool late = _i & 1, hosts = _i & 2, inject = _i & 4;
	struct vmpt_pt_regs before;
	struct rig rig;
	size_t logged;
	u64 bytes;

	rig_init(&rig, processors[_i / 8], RIG_SHOWN);
	rig_guest_on(&rig, inject ? VMPT_CTL_INJECT : 0);
	if (hosts)
		rig_host_on(&rig);
	ck_assert_int_eq(rig_round(&rig, 10), 0);
	rig.v.ran = false;
	before = rig.v.regs;
	logged = rig.m.logged;
	bytes = rig.m.host_bytes;
	rig.nmi_steps = ALL_STEPS;
	rig.m.fail_early = !late;
	rig.m.fail_late = late;
	ck_assert_int_eq(rig_round(&rig, 10), 0);
	ck_assert_int_eq(memcmp(&before, &rig.v.regs, sizeof(before)), 0);
	ck_assert_uint_eq(rig.m.logged, logged); /* Table 33-54, "VM Only": none */
	ck_assert(!rig.v.ran && !rig.v.entered);
	ck_assert_uint_eq(rig.v.events, 0);
	rig_check_host(&rig);
	rig.m.fail_early = false;
	rig.m.fail_late = false;
	ck_assert_int_eq(rig_round(&rig, 10), 0);
	ck_assert_uint_gt(rig.m.logged, logged);
	ck_assert(rig.v.ran);
	machine_run(&rig.m, 10);
	ck_assert_uint_eq(rig.m.host_bytes, bytes + (hosts ? 10 : 0));
	rig_check_streams(&rig);
	rig_free(&rig);
}
END_TEST

/* Entries that fail because of the guest's CTL: a reserved bit is a late failure. */
START_TEST(failed_by_ctl)
{
	struct rig rig;

	rig_init(&rig, processors[_i], RIG_SHOWN);
	rig_guest_on(&rig, 0);
	ck_assert_int_eq(vmpt_vcpu_enter(&rig.v), 0);
	rig.m.guest_ctl |= 1ULL << 60;
	rig.m.lists.entry_load[0].value |= 1ULL << 60;
	ck_assert_int_eq(machine_enter(&rig.m), VMPT_EXIT_FAILED_LATE);
	ck_assert_int_eq(vmpt_vcpu_exit(&rig.v, VMPT_EXIT_FAILED_LATE), 0);
	rig_check_host(&rig);
	rig_free(&rig);
}
END_TEST

/* A PMI that appears after an entry that failed early is not the guest's. */
START_TEST(pmi_after_early_failure)
{
	struct rig rig;

	rig_init(&rig, processors[_i], RIG_SHOWN);
	rig_guest_on(&rig, 0);
	ck_assert_int_eq(vmpt_vcpu_enter(&rig.v), 0);
	rig.m.global_status = VMPT_GLOBAL_TOPA_PMI;
	rig.m.pmi_of = BY_HOST;
	ck_assert_int_eq(vmpt_vcpu_exit(&rig.v, VMPT_EXIT_FAILED_EARLY), 0);
	ck_assert_uint_eq(rig.host_tracer.pmis, 1);
	ck_assert_uint_eq(rig.guest.pmis, 0);
	ck_assert_uint_eq(rig.m.global_status, 0);
	rig_free(&rig);
}
END_TEST

/* After a VMX abort nothing is known, and nothing is accessed until RESET. */
START_TEST(vmx_abort)
{
	static const unsigned int uses[] = { RIG_SHOWN, VMPT_USE_SYSTEM, VMPT_USE_HOST };
	struct rig rig;

	rig_init(&rig, RIG_FULL, uses[_i]);
	if (rig.plan.guest_pt)
		rig_guest_on(&rig, 0);
	ck_assert_int_eq(vmpt_vcpu_enter(&rig.v), 0);
	rig.unchecked = true; /* the guest's values stay in a dead processor */
	rig_forget(&rig);
	ck_assert_int_eq(vmpt_vcpu_exit(&rig.v, VMPT_EXIT_ABORT), 0);
	ck_assert_uint_eq(rig.m.reads + rig.m.writes, 0);
	ck_assert(rig.v.lost && !rig.v.entered);
	ck_assert_int_eq(vmpt_vcpu_pmi_owner(&rig.v), VMPT_OWNED_BY_HOST);
	ck_assert_int_eq(vmpt_vcpu_enter(&rig.v), -VMPT_E_STATE);
	ck_assert_int_eq(vmpt_vcpu_exit(&rig.v, VMPT_EXIT_NORMAL), -VMPT_E_STATE);
	ck_assert_uint_eq(rig.m.reads + rig.m.writes, 0);
	vmpt_vcpu_reset(&rig.v, false);
	ck_assert_int_eq(vmpt_vcpu_enter(&rig.v), 0);
	ck_assert_int_eq(vmpt_vcpu_exit(&rig.v, VMPT_EXIT_NORMAL), 0);
	rig_free(&rig);
}
END_TEST

START_TEST(out_of_order)
{
	static const unsigned int uses[] = { RIG_SHOWN, VMPT_USE_SYSTEM, VMPT_USE_HOST };
	struct rig rig;

	rig_init(&rig, RIG_FULL, uses[_i]);
	ck_assert_int_eq(vmpt_vcpu_exit(&rig.v, VMPT_EXIT_NORMAL), -VMPT_E_STATE);
	ck_assert_int_eq(vmpt_vcpu_enter(&rig.v), 0);
	ck_assert_int_eq(vmpt_vcpu_enter(&rig.v), -VMPT_E_STATE);
	ck_assert_int_eq(vmpt_vcpu_exit(&rig.v, VMPT_EXIT_ABORT + 1), -VMPT_E_INVAL);
	ck_assert(rig.v.entered);
	ck_assert_int_eq(vmpt_vcpu_exit(&rig.v, VMPT_EXIT_NORMAL), 0);
	/* A VMM without MSRs to switch must not enter; one with nothing to switch may. */
	rig.ops.hw_rdmsr = NULL;
	ck_assert_int_eq(vmpt_vcpu_enter(&rig.v), uses[_i] == VMPT_USE_SYSTEM ? 0 : -VMPT_E_INVAL);
	rig_free(&rig);
}
END_TEST

/* ---- hosts that do not ask ---- */

/* D2: TraceEn is set again at every opportunity: the guest is not entered, after bounded work. */
START_TEST(rude_always)
{
	struct rig rig;

	rig_init(&rig, processors[_i], RIG_SHOWN);
	rig_guest_on(&rig, 0);
	rig_host_on(&rig);
	rig.host_tracer.rude = true;
	rig.nmi_steps = ALL_STEPS;
	rig_forget(&rig);
	ck_assert_int_eq(vmpt_vcpu_enter(&rig.v), -VMPT_E_HOST_TRACING);
	ck_assert(!rig.v.entered);
	ck_assert_uint_le(rig.m.reads, 12);
	ck_assert_uint_le(rig.m.writes, 20);
	/* The host's values never left the MSRs. */
	rig_check_host(&rig);
	machine_run(&rig.m, 100);
	rig_check_streams(&rig);
	/* A host that eventually stops. */
	rig.host_tracer.rude = false;
	ck_assert_int_eq(rig_round(&rig, 10), 0);
	rig_check_host(&rig);
	rig_free(&rig);
}
END_TEST

/*
 * One NMI that does not check the owner, at any step: what it does to the two streams is its own
 * fault, but the guest is entered with TraceEn = 0 or not at all, and the host has its MSRs
 * afterwards.
 */
START_TEST(rude_once)
{
	struct rig rig;
	int err;

	rig_init(&rig, processors[_i % PROCESSORS], RIG_SHOWN);
	rig_guest_on(&rig, 0);
	rig_host_on(&rig);
	rig.host_tracer.rude = true;
	rig.unchecked = true;
	rig.nmi_steps = 1u << _i / PROCESSORS;
	err = rig_round(&rig, 10);
	if (err && err != -VMPT_E_HOST_TRACING && err != -VMPT_E_CONTROLS)
		ck_abort_msg("step %d: error %d", _i / PROCESSORS, err);
	rig.nmi_steps = 0;
	rig.host_tracer.rude = false;
	rig.m.faults = 0;
	rig.m.leaks = 0;
	rig.m.mixed = 0;
	rig.unchecked = false;
	rig_check_host(&rig);
	ck_assert_int_eq(rig_round(&rig, 10), 0);
	rig_check_host(&rig);
	ck_assert(machine_host_stream_ok(&rig.m));
	rig_free(&rig);
}
END_TEST

static int nervous_position(void *opaque, struct vmpt_pt_regs *regs)
{
	struct rig *rig = opaque;

	regs->ctl = rig->host_tracer.ctl;
	regs->output_mask_ptrs = vmpt_pt_mask_ptrs(0, (u32)++rig->host_tracer.asked);
	return 0;
}

static int nervous_ctl(void *opaque, struct vmpt_pt_regs *regs)
{
	struct rig *rig = opaque;

	regs->ctl = rig->host_tracer.ctl;
	if (++rig->host_tracer.asked & 1)
		regs->ctl &= ~VMPT_CTL_TRACE_EN;
	return 0;
}

/* A tracer that wants something else at each call: bounded, and reported. */
START_TEST(nervous_host)
{
	struct rig rig;

	rig_init(&rig, RIG_FULL, RIG_SHOWN);
	rig_guest_on(&rig, 0);
	rig.ops.host_state = _i ? nervous_ctl : nervous_position;
	rig.host_tracer.moved = true;
	rig_host_on(&rig);
	ck_assert_int_eq(rig_round(&rig, 10), -VMPT_E_HOST_TRACING);
	ck_assert_uint_le(rig.host_tracer.asked, 40);
	ck_assert_int_eq(vmpt_vcpu_pmi_owner(&rig.v), VMPT_OWNED_BY_HOST);
	ck_assert_uint_eq(rig.m.regs.output_base, MACHINE_HPA);
	rig_free(&rig);
}
END_TEST

/* ---- what fails ---- */

/* One access of an entry or exit fails: an error, or a retry; everything is consistent. */
START_TEST(access_fails)
{
	bool exiting = _i & 1, tracing = _i & 2;
	int n, err = 0, failed = 0;

	for (n = 0; n < 100; n++) {
		struct rig rig;

		rig_init(&rig, processors[_i / 4], RIG_SHOWN);
		if (tracing)
			rig_guest_on(&rig, 0);
		rig_host_on(&rig);
		rig.host_runs = 1;
		if (!exiting)
			rig.m.fail_access = n;
		err = vmpt_vcpu_enter(&rig.v);
		if (exiting) {
			ck_assert_int_eq(err, 0);
			ck_assert_int_eq(machine_enter(&rig.m), VMPT_EXIT_NORMAL);
			machine_run(&rig.m, 10);
			machine_exit(&rig.m);
			rig.m.fail_access = n;
			err = vmpt_vcpu_exit(&rig.v, VMPT_EXIT_NORMAL);
		}
		if (err && err != -VMPT_E_HARDWARE)
			ck_abort_msg("access %d: error %d", n, err);
		failed += !!err;
		if (rig.m.fail_access != -1) {
			rig_free(&rig);
			break;
		}
		if (exiting || err) {
			ck_assert_int_eq(vmpt_vcpu_pmi_owner(&rig.v), VMPT_OWNED_BY_HOST);
			ck_assert(!rig.v.entered);
			/* The host may learn that its tracer was stopped. */
			if (err && !(rig.m.regs.ctl & VMPT_CTL_TRACE_EN))
				rig.host_tracer.wants = false;
			rig_check_host(&rig);
			ck_assert_int_eq(rig_round(&rig, 10), 0);
			rig_check_host(&rig);
		}
		rig_free(&rig);
	}
	ck_assert_int_lt(n, 100);
	/* Without restore_host a guest that does not trace costs an exit one WRMSR, which is
	 * retried. */
	if (rig_mode() == RIG_RESTORE)
		ck_assert_int_gt(failed, exiting ? 1 : 3);
	else if (tracing || !exiting)
		ck_assert_int_gt(failed, 1);
}
END_TEST

/* All accesses fail from one on: an error, the owner is the host, and the call returns. */
START_TEST(accesses_fail)
{
	int n;

	for (n = 0; n < 60; n++) {
		struct rig rig;
		int err;

		rig_init(&rig, processors[_i], RIG_SHOWN);
		rig_guest_on(&rig, 0);
		rig_host_on(&rig);
		rig.unchecked = true;
		rig.m.fail_on = true;
		rig.m.fail_access = n;
		rig_forget(&rig);
		err = rig_round(&rig, 10);
		if (!rig.m.failed)
			ck_assert_int_eq(err, 0);
		else if (err != -VMPT_E_HARDWARE)
			ck_abort_msg("access %d: error %d", n, err);
		ck_assert_int_eq(vmpt_vcpu_pmi_owner(&rig.v), VMPT_OWNED_BY_HOST);
		ck_assert(!rig.v.entered);
		ck_assert_uint_le(rig.m.reads + rig.m.writes, 200);
		rig_free(&rig);
	}
}
END_TEST

/*
 * Without host_state, which is optional: an MSR access of the entry fails while the host traces.
 * The host is stopped or left alone, whichever access it was.
 */
START_TEST(access_fails_without_host_state)
{
	int n, failed = 0;

	for (n = 0; n < 100; n++) {
		struct rig rig;
		int err;

		rig_init(&rig, processors[_i], RIG_SHOWN);
		rig_guest_on(&rig, 0);
		rig_host_on(&rig);
		rig.unchecked = true;
		rig.ops.host_state = NULL;
		rig.m.fail_access = n;
		err = vmpt_vcpu_enter(&rig.v);
		if (rig.m.fail_access != -1) {
			ck_assert_int_eq(err, 0);
			rig_free(&rig);
			break;
		}
		failed += !!err;
		ck_assert(!err || err == -VMPT_E_HARDWARE);
		if (err)
			ck_assert_int_eq(vmpt_vcpu_pmi_owner(&rig.v), VMPT_OWNED_BY_HOST);
		rig_free(&rig);
	}
	ck_assert_int_lt(n, 100);
	ck_assert_int_gt(failed, 1);
}
END_TEST

START_TEST(set_ctl_fails)
{
	struct rig rig;

	rig_init(&rig, processors[_i / 2], RIG_SHOWN);
	if (_i & 1)
		rig_guest_on(&rig, 0);
	rig_host_on(&rig);
	rig.fail_set_ctl = true;
	ck_assert_int_eq(rig_round(&rig, 10), -VMPT_E_HARDWARE);
	rig_check_host(&rig);
	rig.fail_set_ctl = false;
	ck_assert_int_eq(rig_round(&rig, 10), 0);
	rig_check_host(&rig);
	rig_free(&rig);
}
END_TEST

/* A tracer that cannot say what it wants: its values are restored, and it is stopped. */
START_TEST(host_state_fails)
{
	struct rig rig;

	rig_init(&rig, processors[_i], RIG_SHOWN);
	rig_guest_on(&rig, 0);
	rig_host_on(&rig);
	rig.fail_host_state = true;
	ck_assert_int_eq(rig_round(&rig, 10), -VMPT_E_IO);
	rig.host_tracer.wants = false;
	rig_check_host(&rig);
	rig_free(&rig);
}
END_TEST

/* Memory for the shadow is not available yet: nothing has been changed. */
START_TEST(shadow_retry)
{
	struct rig rig;

	rig_init(&rig, RIG_NO_GPA, RIG_SHOWN);
	rig.v.on_mem[VMPT_MEM_UNBACKED] = VMPT_ON_MEM_RETRY;
	rig_guest_on(&rig, 0);
	rig_host_on(&rig);
	rig.guest.retry = true;
	rig.v.shadow.stale = true;
	guest_set_kind(&rig.guest, RIG_REGIONS / GUEST_PAGE, 1, VMPT_MEM_UNBACKED);
	rig_forget(&rig);
	ck_assert_int_eq(rig_round(&rig, 10), -VMPT_E_RETRY);
	ck_assert_uint_eq(rig.m.reads + rig.m.writes + rig.stepped, 0);
	rig_check_host(&rig);
	guest_set_kind(&rig.guest, RIG_REGIONS / GUEST_PAGE, 1, VMPT_MEM_OK);
	ck_assert_int_eq(rig_round(&rig, 10), 0);
	rig_check_streams(&rig);
	rig_free(&rig);
}
END_TEST

static int translate_einval(void *opaque, u64 gpa, u64 *hpa, u64 *size)
{
	(void)opaque, (void)gpa, (void)hpa, (void)size;
	return -EINVAL;
}

/* enter returns a callback's errno unchanged and does not take it for "call again". */
START_TEST(shadow_errno)
{
	struct rig rig;

	rig_init(&rig, RIG_NO_GPA, RIG_SHOWN);
	rig_guest_on(&rig, 0);
	rig_host_on(&rig);
	rig.v.shadow.stale = true;
	rig.ops.guest_translate = translate_einval;
	rig_forget(&rig);
	ck_assert_int_eq(rig_round(&rig, 10), -EINVAL);
	ck_assert_int_ne(-EINVAL, -VMPT_E_RETRY);
	ck_assert_uint_eq(rig.m.reads + rig.m.writes + rig.stepped, 0);
	rig_check_host(&rig);
	rig_free(&rig);
}
END_TEST

/* The processor's position is outside the shadow: reported, and not trusted. */
START_TEST(shadow_position)
{
	struct vmpt_pt_regs before;
	struct rig rig;

	rig_init(&rig, RIG_NO_GPA, RIG_SHOWN);
	rig_guest_on(&rig, 0);
	before = rig.v.regs;
	ck_assert_int_eq(vmpt_vcpu_enter(&rig.v), 0);
	rig.m.regs.output_base = RIG_TABLE;
	ck_assert_int_eq(vmpt_vcpu_exit(&rig.v, VMPT_EXIT_NORMAL), -VMPT_E_HARDWARE);
	ck_assert_int_eq(memcmp(&before, &rig.v.regs, sizeof(before)), 0);
	ck_assert(rig.v.events & VMPT_EVENT_LOST && rig.v.shadow.stale && rig.v.force_psb);
	rig_check_host(&rig);
	ck_assert_int_eq(rig_round(&rig, 10), 0);
	rig_free(&rig);
}
END_TEST

/*
 * A VMM that forgot the clear control: the host is stopped, has its MSRs, and the error is
 * reported.
 */
START_TEST(clear_forgotten)
{
	struct rig rig;

	rig_init(&rig, processors[_i + 1], RIG_SHOWN);
	rig_guest_on(&rig, 0);
	ck_assert_int_eq(vmpt_vcpu_enter(&rig.v), 0);
	ck_assert_int_eq(machine_enter(&rig.m), VMPT_EXIT_NORMAL);
	rig.m.exit = 0;
	rig.m.lists.exit_loads = 0;
	machine_exit(&rig.m);
	ck_assert(rig.m.regs.ctl & VMPT_CTL_TRACE_EN);
	rig.unchecked = true;
	ck_assert_int_eq(vmpt_vcpu_exit(&rig.v, VMPT_EXIT_NORMAL), -VMPT_E_CONTROLS);
	rig_check_host(&rig);
	rig_free(&rig);
}
END_TEST

/* Load under a host that traces only itself: an NMI's TraceEn makes the entry fail. */
START_TEST(host_only_fails_early)
{
	struct rig rig;

	rig_init(&rig, RIG_FULL, VMPT_USE_HOST);
	rig_host_on(&rig);
	ck_assert_int_eq(vmpt_vcpu_enter(&rig.v), 0);
	ck_assert_uint_eq(rig.m.guest_ctl, 0);
	rig.host_tracer.rude = true;
	rig_nmi(&rig);
	ck_assert_int_eq(machine_enter(&rig.m), VMPT_EXIT_FAILED_EARLY);
	ck_assert_int_eq(vmpt_vcpu_exit(&rig.v, VMPT_EXIT_FAILED_EARLY), -VMPT_E_HOST_TRACING);
	rig_check_host(&rig);
	rig_free(&rig);
}
END_TEST

/* Two errors at one exit: the VM must be stopped, and the host's tracer must know. */
START_TEST(clear_forgotten_and_host_state_fails)
{
	struct rig rig;

	rig_init(&rig, processors[_i + 1], RIG_SHOWN);
	rig_guest_on(&rig, 0);
	ck_assert_int_eq(vmpt_vcpu_enter(&rig.v), 0);
	ck_assert_int_eq(machine_enter(&rig.m), VMPT_EXIT_NORMAL);
	rig.m.exit = 0;
	rig.m.lists.exit_loads = 0;
	machine_exit(&rig.m);
	rig.unchecked = true;
	rig.fail_host_state = true;
	ck_assert_uint_eq(rig.v.events, 0);
	ck_assert_int_eq(vmpt_vcpu_exit(&rig.v, VMPT_EXIT_NORMAL), -VMPT_E_CONTROLS);
	ck_assert_uint_eq(rig.v.events, VMPT_EVENT_HOST);
	rig_free(&rig);
}
END_TEST

/* An entry fails early because other code has set TraceEn, and from some MSR access on all fail. */
START_TEST(early_failure_and_accesses_fail)
{
	int n, failed = 0;

	for (n = 0; n < 100; n++) {
		struct rig rig;
		bool all;
		int err;

		rig_init(&rig, processors[_i], RIG_SHOWN);
		rig_guest_on(&rig, 0);
		rig_host_on(&rig);
		ck_assert_int_eq(vmpt_vcpu_enter(&rig.v), 0);
		rig.host_tracer.rude = true;
		rig_nmi(&rig);
		rig.host_tracer.rude = false;
		ck_assert_int_eq(machine_enter(&rig.m), VMPT_EXIT_FAILED_EARLY);
		ck_assert(rig.m.regs.ctl & VMPT_CTL_TRACE_EN);
		rig.unchecked = true;
		rig.m.fail_access = n;
		rig.m.fail_on = true;
		err = vmpt_vcpu_exit(&rig.v, VMPT_EXIT_FAILED_EARLY);
		all = rig.m.failed == 0;
		ck_assert_msg(err == (all ? -VMPT_E_HOST_TRACING : -VMPT_E_HARDWARE),
			      "access %d: error %d", n, err);
		ck_assert_msg(rig.v.events & VMPT_EVENT_HOST, "access %d: no event", n);
		failed += !all;
		rig_free(&rig);
		if (all)
			break;
	}
	ck_assert_int_lt(n, 100);
	ck_assert_int_gt(failed, 3);
}
END_TEST

/* A host that cannot be given back after an entry that failed is reported, too. */
START_TEST(host_back_fails_at_entry)
{
	struct rig rig;

	rig_init(&rig, processors[_i], RIG_SHOWN);
	rig_guest_on(&rig, 0);
	rig_host_on(&rig);
	rig.fail_set_ctl = true;
	ck_assert_int_eq(rig_round(&rig, 10), -VMPT_E_HARDWARE);
	ck_assert_uint_eq(rig.v.events & VMPT_EVENT_HOST, 0);
	rig.fail_host_state = true;
	ck_assert_int_eq(rig_round(&rig, 10), -VMPT_E_HARDWARE);
	ck_assert(rig.v.events & VMPT_EVENT_HOST);
	rig_free(&rig);
}
END_TEST

TEST_SUITE()
{
	Suite *suite = suite_create("handover-fail");
	TCase *tc = tcase_create("handover-fail");

	tcase_add_loop_test(tc, failed_entry, 0, 8 * PROCESSORS);
	tcase_add_loop_test(tc, failed_by_ctl, 0, PROCESSORS);
	tcase_add_loop_test(tc, pmi_after_early_failure, 0, PROCESSORS);
	tcase_add_loop_test(tc, vmx_abort, 0, 3);
	tcase_add_loop_test(tc, out_of_order, 0, 3);
	tcase_add_loop_test(tc, rude_always, 0, PROCESSORS);
	tcase_add_loop_test(tc, rude_once, 0, VMPT_STEPS * PROCESSORS);
	tcase_add_loop_test(tc, nervous_host, 0, 2);
	tcase_add_loop_test(tc, access_fails, 0, 4 * PROCESSORS);
	tcase_add_loop_test(tc, accesses_fail, 0, PROCESSORS);
	tcase_add_loop_test(tc, access_fails_without_host_state, 0, PROCESSORS);
	tcase_add_loop_test(tc, set_ctl_fails, 0, 2 * PROCESSORS);
	tcase_add_loop_test(tc, host_state_fails, 0, PROCESSORS);
	tcase_add_test(tc, shadow_retry);
	tcase_add_test(tc, shadow_errno);
	tcase_add_test(tc, shadow_position);
	tcase_add_loop_test(tc, clear_forgotten, 0, PROCESSORS - 1);
	tcase_add_test(tc, host_only_fails_early);
	tcase_add_loop_test(tc, clear_forgotten_and_host_state_fails, 0, PROCESSORS - 1);
	tcase_add_loop_test(tc, early_failure_and_accesses_fail, 0, PROCESSORS - 1);
	tcase_add_loop_test(tc, host_back_fails_at_entry, 0, PROCESSORS);
	suite_add_tcase(suite, tc);
	return suite;
}
