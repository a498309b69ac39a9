// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * vmm-lib/handover: random uses, processors, entries that fail, NMIs at random steps and hosts that
 * change their mind. VMPT_SOAK=seconds: run for that long.
 */
#include <stdlib.h>
#include <time.h>

#include "tests/vmm-lib/handover-rig.h"

#define ROUNDS 60

static const struct {
	u32 vmx;
	unsigned int use;
} setups[] = {
	{ RIG_FULL, RIG_SHOWN },	  { RIG_NO_GPA, RIG_SHOWN },
	{ RIG_LISTS, RIG_SHOWN },	  { RIG_FULL, VMPT_USE_GUEST },
	{ 0x1dd, VMPT_USE_GUEST },	  { RIG_FULL, VMPT_USE_HOST },
	{ VMPT_VMX_PT, VMPT_USE_HOST },	  { RIG_FULL, VMPT_USE_SYSTEM },
	{ VMPT_VMX_PT, VMPT_USE_SYSTEM }, { RIG_FULL, VMPT_USE_NONE },
};

/* One run; the rig is its first member, for the callbacks of the host's tracer. */
struct run {
	struct rig rig;
	struct test_rng rng;
	bool bit;	 /* the guest's GLOBAL_STATUS[55] */
	u64 pended, due; /* PMIs of the guest: seen by the model, and to be injected */
	u32 page;	 /* missing, or 0 */
};

static u32 below(struct run *run, u32 n)
{
	return (u32)(test_random(&run->rng) >> 20) % n;
}

static void stop_or_start(struct rig *rig)
{
	struct run *run = (struct run *)rig;

	switch (below(run, 4)) {
	case 0:
		if (rig->host_tracer.wants)
			rig_host_off(rig);
		else
			rig_host_on(rig);
		break;
	case 1:
		if (!rig->host_tracer.wants)
			break;
		rig_host_off(rig);
		rig_host_on(rig);
		break;
	default:
		break;
	}
}

static void decide(struct rig *rig)
{
	if (!below((struct run *)rig, 3))
		rig->host_tracer.wants = !rig->host_tracer.wants;
}

static void wrong(const struct run *run, const char *what)
{
	ck_abort_msg("seed %llu, entry %llu: %s", (unsigned long long)run->rig.seed,
		     (unsigned long long)run->rig.m.entries, what);
}

/* The guest gets one more PMI, as in 33.2.7.2. */
static void guest_pmi_due(struct run *run)
{
	run->due += !run->bit;
	run->bit = true;
}

static void guest_acts(struct run *run)
{
	struct rig *rig = &run->rig;
	u64 ctl = rig->v.regs.ctl;

	if (!below(run, 3)) {
		rig_guest_ack(rig);
		run->bit = false;
	}
	if (!below(run, 5))
		vmpt_vcpu_vmptrld(&rig->v);
	if (below(run, 6))
		return;
	if (!(ctl & VMPT_CTL_TRACE_EN) && ctl & VMPT_CTL_INJECT &&
	    rig->v.regs.status & VMPT_STATUS_PEND_PMI)
		guest_pmi_due(run);
	if (vmpt_vcpu_wrmsr(&rig->v, VMPT_MSR_RTIT_CTL, ctl ^ VMPT_CTL_TRACE_EN))
		wrong(run, "the guest's WRMSR");
	if (!below(run, 2) && rig->plan.shadow)
		vmpt_shadow_invalidate(&rig->v, RIG_REGIONS, GUEST_PAGE);
}

/* A page of the guest's output is removed or restored. */
static void memory_acts(struct run *run)
{
	struct rig *rig = &run->rig;

	if (rig->plan.shadow || !rig->plan.guest_pt)
		return;
	if (run->page) {
		guest_set_kind(&rig->guest, run->page, 1, VMPT_MEM_OK);
		run->page = 0;
	} else if (!below(run, 4)) {
		run->page = RIG_REGIONS / GUEST_PAGE + below(run, 4);
		guest_set_kind(&rig->guest, run->page, 1, VMPT_MEM_UNBACKED);
	}
}

static void one_round(struct run *run)
{
	struct rig *rig = &run->rig;
	u32 n = below(run, 2) ? below(run, 20) : below(run, 900);

	/* At a quarter of the steps. */
	rig->nmi_steps = (u32)test_random(&run->rng);
	rig->nmi_steps &= (u32)test_random(&run->rng);
	rig->host_runs = below(run, 3) ? below(run, 30) : below(run, 300);
	rig->m.fail_early = !below(run, 10);
	rig->m.fail_late = !below(run, 10);
	if (rig->plan.guest_pt)
		guest_acts(run);
	memory_acts(run);
	if (rig_round(rig, n))
		wrong(run, "an error");
	rig_check_host(rig);
	if (rig->m.pended[BY_GUEST] != run->pended)
		guest_pmi_due(run);
	run->pended = rig->m.pended[BY_GUEST];
	if (rig->guest.pmis != run->due || rig->v.global_status != run->bit)
		wrong(run, "PMIs of the guest");
	if (rig->host_tracer.pmis != rig->m.pended[BY_HOST])
		wrong(run, "PMIs of the host");
	/* Time passes in the host. */
	machine_run(&rig->m, below(run, 200));
	if (rig->m.nmi)
		rig_nmi(rig);
}

static void one_run(u64 seed)
{
	struct run run = { .rng = { seed } };
	u32 setup = below(&run, (u32)VMPT_ARRAY_SIZE(setups)), i;

	rig_init(&run.rig, setups[setup].vmx, setups[setup].use);
	run.rig.seed = seed;
	run.rig.host_tracer.hands_on = stop_or_start;
	run.rig.host_tracer.hands_off = decide;
	if (run.rig.plan.guest_pt)
		rig_guest_on(&run.rig, below(&run, 2) ? VMPT_CTL_INJECT : 0);
	if (below(&run, 2))
		rig_host_on(&run.rig);
	for (i = 0; i < ROUNDS; i++)
		one_round(&run);
	if (run.page)
		guest_set_kind(&run.rig.guest, run.page, 1, VMPT_MEM_OK);
	rig_check_streams(&run.rig);
	rig_free(&run.rig);
}

START_TEST(random_runs)
{
	const char *soak = getenv("VMPT_SOAK");
	const time_t end = time(NULL) + (soak ? atoi(soak) : 0);
	const u64 runs = (u64)test_rounds(3000, 500);
	u64 seed;

	for (seed = 1; seed <= runs || time(NULL) < end; seed++)
		one_run(seed);
}
END_TEST

TEST_SUITE()
{
	Suite *suite = suite_create("handover-random");
	TCase *tc = test_random_case(suite);

	tcase_add_test(tc, random_runs);
	return suite;
}
