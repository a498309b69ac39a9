// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * vmm-lib/handover: a host tracer whose NMI handler runs at every step. Who owns the PMI, what the
 * handler may access, and what the host gets back at the exit.
 */
#include "tests/vmm-lib/handover-rig.h"

static const u32 processors[] = { RIG_FULL, RIG_NO_GPA, RIG_LISTS };

#define PROCESSORS ((int)VMPT_ARRAY_SIZE(processors))
#define ALL_STEPS  ((1u << VMPT_STEPS) - 1)

/* ---- the NMI handler ---- */

/* D1: a host that traces at the entry; the entry works, and its stream continues afterwards. */
START_TEST(host_traces)
{
	struct rig rig;
	u32 i;

	rig_init(&rig, processors[_i], RIG_SHOWN);
	rig_host_on(&rig);
	rig.host_runs = 50;
	for (i = 0; i < 100; i++) {
		if (i == 30)
			rig_guest_on(&rig, 0);
		machine_run(&rig.m, 100);
		ck_assert_int_eq(rig_round(&rig, 40), 0);
		ck_assert(rig.m.regs.ctl & VMPT_CTL_TRACE_EN);
		rig_guest_ack(&rig);
	}
	ck_assert_uint_gt(rig.m.host_bytes, 10000);
	/* 70 times an enable, 40 packets, a disable, and one PSB+. */
	ck_assert_uint_ge(rig.m.logged, 70 * (7 + 1) + 18);
	ck_assert_uint_eq(rig.host_tracer.pmis, rig.m.pended[BY_HOST]);
	ck_assert_uint_eq(rig.guest.pmis, rig.m.pended[BY_GUEST]);
	ck_assert_uint_gt(rig.m.pended[BY_HOST], 0);
	ck_assert_uint_gt(rig.m.pended[BY_GUEST], 0);
	rig_check_host(&rig);
	rig_check_streams(&rig);
	rig_free(&rig);
}
END_TEST

/* What perf's handler does: stop, read the buffer, start again. */
static void stop_and_start(struct rig *rig)
{
	if (!rig->host_tracer.wants)
		return;
	rig_host_off(rig);
	rig_host_on(rig);
}

/* D2: an NMI at every step, whose handler restarts PT whenever it is allowed to. */
START_TEST(nmi_everywhere)
{
	struct rig rig;
	u32 i;

	rig_init(&rig, processors[_i], RIG_SHOWN);
	rig_host_on(&rig);
	rig_guest_on(&rig, 0);
	rig.host_tracer.hands_on = stop_and_start;
	rig.nmi_steps = ALL_STEPS;
	rig.host_runs = 7;
	for (i = 0; i < 200; i++) {
		ck_assert_int_eq(rig_round(&rig, 30), 0);
		rig_check_host(&rig);
		rig_guest_ack(&rig);
	}
	ck_assert_uint_ge(rig.host_tracer.nmis, 200 * VMPT_STEPS);
	ck_assert_uint_eq(rig.host_tracer.pmis, rig.m.pended[BY_HOST]);
	ck_assert_uint_eq(rig.guest.pmis, rig.m.pended[BY_GUEST]);
	rig_check_streams(&rig);
	rig_free(&rig);
}
END_TEST

/* D4: the guest's PMI is pending at the exit, and NMIs come at each step before it is taken. */
START_TEST(guest_pmi_at_exit)
{
	int step = _i / PROCESSORS;
	struct rig rig;

	rig_init(&rig, processors[_i % PROCESSORS], RIG_SHOWN);
	rig_host_on(&rig);
	rig_guest_on(&rig, 0);
	rig.nmi_steps = 1u << step;
	ck_assert_int_eq(rig_round(&rig, 2 * GUEST_PAGE / 8), 0);
	ck_assert_uint_eq(rig.m.pended[BY_GUEST], 1);
	ck_assert_uint_eq(rig.guest.pmis, 1);
	ck_assert_uint_eq(rig.host_tracer.pmis, 0);
	ck_assert(rig.v.global_status);
	ck_assert_uint_eq(rig.m.global_status, 0);
	rig_check_host(&rig);
	rig_free(&rig);
}
END_TEST

/* D4, the other way: the host's region is filled while the entry begins. */
START_TEST(host_pmi_at_entry)
{
	u32 before;

	for (before = 1; before < 60; before += 10) {
		struct rig rig;

		rig_init(&rig, processors[_i], RIG_SHOWN);
		rig_host_on(&rig);
		rig_guest_on(&rig, 0);
		machine_run(&rig.m, 2 * GUEST_PAGE - before);
		rig.host_runs = 60;
		ck_assert_int_eq(rig_round(&rig, 10), 0);
		ck_assert_uint_eq(rig.m.pended[BY_HOST], 1);
		ck_assert_uint_eq(rig.host_tracer.pmis, 1);
		ck_assert_uint_eq(rig.guest.pmis, 0);
		ck_assert(!rig.v.global_status);
		rig_check_streams(&rig);
		rig_free(&rig);
	}
}
END_TEST

/* D16: no event of the host, no handler, no host_state: the guest has its PMIs. */
START_TEST(guest_pmi_without_host)
{
	struct rig rig;
	u32 i;

	rig_init(&rig, processors[_i], RIG_SHOWN);
	rig.ops.host_state = NULL;
	rig.ops.host_pmi = NULL;
	rig.ops.step = NULL;
	rig_guest_on(&rig, 0);
	for (i = 0; i < 40; i++) {
		ck_assert_int_eq(rig_round(&rig, 200), 0);
		rig_guest_ack(&rig);
	}
	/* About 7 KiB per turn of 16 KiB, with two INTs in each. */
	ck_assert_uint_ge(rig.m.pended[BY_GUEST], rig.m.logged / (2 * GUEST_PAGE));
	ck_assert_uint_gt(rig.m.pended[BY_GUEST], 5);
	ck_assert_uint_eq(rig.guest.pmis, rig.m.pended[BY_GUEST]);
	rig_check_host(&rig);
	rig_free(&rig);
}
END_TEST

/* PMIs while GLOBAL_STATUS[55] is set become one (33.2.7.2); the processor's bit is free again. */
START_TEST(guest_pmis_coalesce)
{
	struct rig rig;
	u32 i;

	rig_init(&rig, processors[_i], RIG_SHOWN);
	rig_guest_on(&rig, 0);
	for (i = 0; i < 4; i++)
		ck_assert_int_eq(rig_round(&rig, 2 * GUEST_PAGE / 8), 0);
	ck_assert_uint_eq(rig.m.pended[BY_GUEST], 4);
	ck_assert_uint_eq(rig.guest.pmis, 1);
	rig_guest_ack(&rig);
	ck_assert_int_eq(rig_round(&rig, 2 * GUEST_PAGE / 8), 0);
	ck_assert_uint_eq(rig.guest.pmis, 2);
	rig_free(&rig);
}
END_TEST

/* ---- D18: what the host wants at the exit ---- */

static void toggle(struct rig *rig)
{
	rig->host_tracer.wants = !rig->host_tracer.wants;
	rig->nmi_steps = 0; /* once */
}

static void toggle_in_msrs(struct rig *rig)
{
	rig->nmi_steps = 0;
	if (rig->host_tracer.wants)
		rig_host_off(rig);
	else
		rig_host_on(rig);
}

/* An NMI at one step stops or starts the event: that decision stands. */
START_TEST(host_changes_its_mind)
{
	int step = _i / 4;
	struct rig rig;

	rig_init(&rig, RIG_FULL, RIG_SHOWN);
	if (_i & 2)
		rig_guest_on(&rig, 0);
	if (_i & 1)
		rig_host_on(&rig);
	rig.nmi_steps = 1u << step;
	rig.host_tracer.hands_off = toggle;
	rig.host_tracer.hands_on = toggle_in_msrs;
	rig.host_runs = 5;
	ck_assert_int_eq(rig_round(&rig, 10), 0);
	rig_check_host(&rig);
	if (rig.host_tracer.nmis)
		ck_assert_int_eq(rig.host_tracer.wants, !(_i & 1));
	machine_run(&rig.m, 10);
	rig_check_streams(&rig);
	rig_free(&rig);
}
END_TEST

static void move(struct rig *rig)
{
	rig->host_tracer.wants = true;
	rig->host_tracer.moved = true;
	rig->host_tracer.mask_ptrs = 0x10000017fULL; /* entry 2, one byte in */
}

/* The handler prepares another buffer while it may not access the MSRs. */
START_TEST(host_moves)
{
	int step = _i / 4;
	struct rig rig;

	rig_init(&rig, RIG_FULL, RIG_SHOWN);
	if (_i & 2)
		rig_guest_on(&rig, 0);
	if (_i & 1)
		rig_host_on(&rig);
	rig.nmi_steps = 1u << step;
	rig.host_tracer.hands_off = move;
	ck_assert_int_eq(rig_round(&rig, 10), 0);
	rig_check_host(&rig);
	if (rig.host_tracer.moved)
		ck_assert_uint_eq(rig.m.regs.output_mask_ptrs, 0x10000017f);
	rig_free(&rig);
}
END_TEST

/* An NMI in the middle of host_state: the handler moves and starts PT itself. */
static int start_meanwhile(void *opaque, struct vmpt_pt_regs *regs)
{
	struct rig *rig = opaque;
	struct machine *m = &rig->m;

	regs->ctl = rig->host_tracer.ctl;
	regs->output_mask_ptrs = 0x10000017fULL;
	if (vmpt_vcpu_pmi_owner(&rig->v) != VMPT_OWNED_BY_HOST || rig->host_tracer.asked++)
		return 0;
	/* The MSRs were loaded with an older result. */
	ck_assert_int_eq(machine_wrmsr(m, VMPT_MSR_RTIT_OUTPUT_MASK_PTRS, 0x10000017f), 0);
	ck_assert_int_eq(machine_wrmsr(m, VMPT_MSR_RTIT_CTL, rig->host_tracer.ctl), 0);
	/* What it wanted when it was called. */
	regs->output_mask_ptrs = 0x20000017fULL;
	regs->ctl &= ~VMPT_CTL_TRACE_EN;
	return 0;
}

START_TEST(host_starts_meanwhile)
{
	struct rig rig;

	rig_init(&rig, processors[_i], RIG_SHOWN);
	rig_guest_on(&rig, 0);
	rig_host_on(&rig);
	rig.ops.host_state = start_meanwhile;
	rig.host_tracer.moved = true;
	ck_assert_int_eq(rig_round(&rig, 10), 0);
	/* Its decision was the last, and no write of ours met its TraceEn. */
	ck_assert_uint_eq(rig.m.faults, 0);
	ck_assert_uint_eq(rig.m.regs.output_mask_ptrs, 0x10000017f);
	rig_check_host(&rig);
	rig_free(&rig);
}
END_TEST

/* host_pmi may end the event. */
START_TEST(host_pmi_stops)
{
	struct rig rig;

	rig_init(&rig, RIG_FULL, RIG_SHOWN);
	rig_guest_on(&rig, 0);
	rig_host_on(&rig);
	rig.host_runs = 10;
	rig.stop_by_host_pmi = true;
	machine_run(&rig.m, 2 * GUEST_PAGE - 1);
	ck_assert_int_eq(rig_round(&rig, 10), 0);
	ck_assert_uint_eq(rig.host_tracer.pmis, 1);
	ck_assert(!rig.host_tracer.wants);
	rig_check_host(&rig);
	rig_free(&rig);
}
END_TEST

TEST_SUITE()
{
	Suite *suite = suite_create("handover-nmi");
	TCase *tc = tcase_create("handover");

	tcase_add_loop_test(tc, host_traces, 0, PROCESSORS);
	tcase_add_loop_test(tc, nmi_everywhere, 0, PROCESSORS);
	tcase_add_loop_test(tc, guest_pmi_at_exit, 0, VMPT_STEPS * PROCESSORS);
	tcase_add_loop_test(tc, host_pmi_at_entry, 0, PROCESSORS);
	tcase_add_loop_test(tc, guest_pmi_without_host, 0, PROCESSORS);
	tcase_add_loop_test(tc, guest_pmis_coalesce, 0, PROCESSORS);
	tcase_add_loop_test(tc, host_changes_its_mind, 0, 4 * VMPT_STEPS);
	tcase_add_loop_test(tc, host_moves, 0, 4 * VMPT_STEPS);
	tcase_add_loop_test(tc, host_starts_meanwhile, 0, PROCESSORS);
	tcase_add_test(tc, host_pmi_stops);
	suite_add_tcase(suite, tc);
	return suite;
}
