// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Random sequences of all calls that change a vCPU, on guests of random capabilities. After
 * each call the state satisfies every rule of SDM 3 33.2.8 by an oracle of its own, a #GP
 * changed nothing, and no call did more work than its bound. VMPT_SOAK=seconds goes on
 * with other seeds for three times as long; that of a minute and more also to 10
 * million sequences, and fails if four times its seconds are too few.
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "tests/vmm-lib/bed.h"

#define SEQUENCES      100000u
#define STEPS	       48u
#define LONGER	       3	 /* shares of a soak: there is much to meet */
#define SOAK_SEQUENCES 10000000u /* what a soak of a minute must reach */
/* From here on a table and its regions that do not change. */
#define GOOD_PAGE 24u

static struct bed bed;
static struct test_rng rng;
static u64 seed;

/* What happened, to show that the test reaches it. */
static struct {
	u64 enables, faults, restores, entries, pips, pmis, rings;
} met;

static u64 any(u64 below)
{
	return test_random(&rng) % below;
}

static bool one_in(u64 n)
{
	return !any(n);
}

/* ---- the oracle: Tables 33-6 to 33-9, 33-11, 33-12 from CPUID's raw bits ---- */

static bool cpuid_bit(unsigned int leaf, char reg, unsigned int bit)
{
	const struct vmpt_cpuid_regs *r = &bed.shown.cpuid.leaf14[leaf];
	u32 value = reg == 'a' ? r->eax : reg == 'b' ? r->ebx : r->ecx;

	return value >> bit & 1;
}

static unsigned int ranges(void)
{
	return cpuid_bit(0, 'b', 2) ? bed.shown.cpuid.leaf14[1].eax & 7 : 0;
}

static bool there(u32 msr)
{
	if (!bed.shown.cpuid.present)
		return false;
	if (msr >= 0x580)
		return msr - 0x580 < 2 * ranges();
	if (msr == 0x572)
		return cpuid_bit(0, 'b', 0);
	if (msr == 0x560 || msr == 0x561)
		return cpuid_bit(0, 'c', 0) || cpuid_bit(0, 'c', 2);
	return msr == 0x570 || msr == 0x571;
}

/* Bits of CTL and the bit of leaf 14H.0 that allows them. */
static const struct {
	u64 bits;
	char reg;
	u8 bit;
} ctl_bits[] = {
	{ 0x1ULL << 1 | 0xfULL << 19 | 0xfULL << 24, 'b', 1 },
	{ 0x1ULL << 4, 'b', 5 },
	{ 0x1ULL << 5 | 0x1ULL << 12, 'b', 4 },
	{ 0x1ULL << 7, 'b', 0 },
	{ 0x1ULL << 8, 'c', 0 },
	{ 0x1ULL << 9 | 0xfULL << 14, 'b', 3 },
	{ 0x1ULL << 31, 'b', 7 },
	{ 0x1ULL << 55, 'b', 8 },
	{ 0x1ULL << 56, 'b', 6 },
};

/* An encoding that 14H.1 does not list; 0 of a feature that is off is not one. */
static bool unlisted(u64 encoding, bool on, char reg, unsigned int first)
{
	return (encoding || on) && !cpuid_bit(1, reg, first + (unsigned int)encoding);
}

static const char *bad_ctl(u64 ctl)
{
	u64 allowed = 0x2c0dULL; /* TraceEn, OS, User, TSCEn, DisRETC, BranchEn */
	unsigned int i;

	for (i = 0; i < VMPT_ARRAY_SIZE(ctl_bits); i++)
		if (cpuid_bit(0, ctl_bits[i].reg, ctl_bits[i].bit))
			allowed |= ctl_bits[i].bits;
	for (i = 0; i < ranges(); i++) {
		allowed |= 0xfULL << (32 + 4 * i);
		if ((ctl >> (32 + 4 * i) & 0xf) > 2)
			return "ADDRn_CFG";
	}
	if (ctl & ~allowed)
		return "a reserved bit of CTL";
	if (unlisted(ctl >> 14 & 0xf, ctl & 1 << 9, 'a', 16))
		return "MTCFreq";
	if (unlisted(ctl >> 19 & 0xf, ctl & 1 << 1, 'b', 0))
		return "CycThresh";
	if (unlisted(ctl >> 24 & 0xf, cpuid_bit(0, 'b', 1) && ctl & 1, 'b', 16))
		return "PSBFreq";
	if (ctl & 1 && !(ctl & 0x100) && !cpuid_bit(0, 'c', 2))
		return "no single-range output";
	return NULL;
}

static bool canonical(u64 value)
{
	return value < 1ULL << 47 || value >= ~0ULL << 47;
}

static const char *bad_regs(const struct vmpt_pt_regs *r)
{
	u64 status = 0x37;
	unsigned int i;

	if (there(0x570) ? bad_ctl(r->ctl) : r->ctl ? "CTL" : NULL)
		return there(0x570) ? bad_ctl(r->ctl) : "CTL of a guest without PT";
	if (cpuid_bit(0, 'b', 6))
		status |= 0xc0;
	if (cpuid_bit(0, 'b', 1))
		status |= 0x1ffffULL << 32;
	if (r->status & ~(there(0x571) ? status : 0))
		return "STATUS";
	if (r->output_base & (~0ULL << bed.shown.cpuid.maxphyaddr | 0x7f))
		return "OUTPUT_BASE";
	if (!there(0x560) && (r->output_base || r->output_mask_ptrs != 0x7f))
		return "OUTPUT_* that is not there";
	if ((r->output_mask_ptrs & 0x7f) != 0x7f)
		return "LowerMask";
	if (r->cr3_match & 0x1f || (!there(0x572) && r->cr3_match))
		return "CR3_MATCH";
	for (i = 0; i < 8; i++)
		if (!canonical(r->addr[i]) || (!there(0x580 + i) && r->addr[i]))
			return "ADDRn";
	return NULL;
}

static const char *bad_vcpu(const struct vmpt_vcpu *v)
{
	bool tracing = v->regs.ctl & 1;
	u64 status = 0;
	u32 msr;

	if (bad_regs(&v->regs))
		return bad_regs(&v->regs);
	if (tracing && v->vmx_operation)
		return "TraceEn in VMX operation";
	if (v->smm_trace_en && (!v->in_smm || v->vmx_operation))
		return "TraceEn of SMM without SMM";
	if ((v->pmi_seen || v->pmi_again) && !v->global_status)
		return "a PMI that waits for bit 55, which is clear";
	if (v->global_status && !cpuid_bit(0, 'c', 0))
		return "bit 55 without ToPA";
	if (v->entered)
		return NULL;
	if (v->owner != VMPT_OWNED_BY_HOST)
		return "the MSRs are not the host's";
	if (there(0x571) && (vmpt_vcpu_get_msr(v, 0x571, &status) ||
			     !!(status & 4) != (tracing && !(status & 0x30))))
		return "TriggerEn";
	for (msr = 0x560; msr <= 0x587; msr++)
		if (vmpt_vcpu_intercepts(v, msr) != 3 && !(tracing && there(msr)))
			return "an access passes through";
	return NULL;
}

/* ---- the processor, as far as a hand-over needs one ---- */

static u64 hw[0x600];

static int hw_rdmsr(void *opaque, u32 msr, u64 *value)
{
	(void)opaque;
	*value = hw[msr];
	return 0;
}

static int hw_wrmsr(void *opaque, u32 msr, u64 value)
{
	(void)opaque;
	hw[msr] = value;
	return 0;
}

static int set_ctl(void *opaque, u64 ctl)
{
	(void)opaque, (void)ctl;
	return 0;
}

/* ---- values ---- */

static u32 any_msr(void)
{
	static const u32 msrs[] = { 0x560, 0x561, 0x570, 0x570, 0x570, 0x571, 0x572, 0x580,
				    0x581, 0x584, 0x587, 0x38e, 0x390, 0x391, 0xce,  0x573 };

	return msrs[any(VMPT_ARRAY_SIZE(msrs))];
}

static u64 any_ctl(void)
{
	u64 ctl = 0x2c0d & test_random(&rng);
	unsigned int i;

	for (i = 0; i < VMPT_ARRAY_SIZE(ctl_bits); i++)
		if (cpuid_bit(0, ctl_bits[i].reg, ctl_bits[i].bit) && one_in(3))
			ctl |= ctl_bits[i].bits & test_random(&rng);
	if (cpuid_bit(0, 'c', 0) && !one_in(4))
		ctl |= 0x100;
	if (one_in(2))
		ctl &= 0xffffffff ^ 0xf78c000;
	if (one_in(8))
		ctl |= any(4) << (32 + 4 * any(4));
	if (one_in(16))
		ctl ^= 1ULL << any(64);
	return ctl;
}

static u64 any_value(u32 msr)
{
	switch (any(8)) {
	case 0:
		return test_random(&rng);
	case 1:
		return 0;
	case 2:
		return 1ULL << any(64);
	}
	switch (msr) {
	case 0x560:
		return any(BED_PAGES + 2) << 12 | (one_in(8) ? 0x80 : 0);
	case 0x561:
		return any(600) << 7 | any(0x1100) << 32;
	case 0x570:
		return any_ctl();
	case 0x571:
		return (any(256) & 0xf7) | any(0x20000) << 32;
	case 0x572:
		return any(1 << 20) << 12;
	case 0x38e:
	case 0x390:
	case 0x391:
		return VMPT_GLOBAL_TOPA_PMI;
	default:
		return any(1ULL << 47);
	}
}

static u64 any_entry(void)
{
	static const u64 flags[] = { 0, 0, 4, 16, 20, 1, 1, 0x40, 2 };
	u64 entry = any(BED_PAGES + 2) << 12 | flags[any(VMPT_ARRAY_SIZE(flags))];

	return one_in(16) ? test_random(&rng) : entry;
}

/* ---- one step; a failure is #GP or an error, and then nothing has changed ---- */

static void poke(void)
{
	u64 entry = any_entry();

	guest_write(&bed.guest, any(GOOD_PAGE) * 4096 + 8 * any(one_in(4) ? 512 : 8), &entry, 8);
}

static int write_cr3(void)
{
	struct vmpt_cr3_write w = {
		.old_cr3 = any(16) << 12,
		.new_cr3 = any(16) << 12 | any(4096),
		.cause = (u8)any(8),
		.cpl_before = (u8)(3 * any(2)),
		.cpl_after = (u8)(3 * any(2)),
		.pae_before = one_in(2),
		.pae_after = one_in(2),
	};

	/* A STATUS.Error is a change, and 0 or 1 are not failures. */
	met.pips += vmpt_vcpu_cr3_write(&bed.v, &w) == 1;
	return 0;
}

static u8 area[VMPT_XSAVE_SIZE];

static int xrstors(void)
{
	if (one_in(8))
		return vmpt_vcpu_xrstors(&bed.v, NULL);
	if (one_in(4))
		area[any(80)] ^= (u8)(1 << any(8));
	return vmpt_vcpu_xrstors(&bed.v, area);
}

static u8 state[VMPT_STATE_MAX];
static int state_size;

static int restore(void)
{
	u8 copy[VMPT_STATE_MAX];
	struct vmpt_refusal why;
	int err;

	memcpy(copy, state, sizeof(copy));
	if (state_size > 0 && one_in(2))
		copy[any((u64)state_size)] ^= (u8)(1 << any(8));
	err = vmpt_vcpu_restore(&bed.v, copy, state_size > 0 ? (size_t)state_size : 0, &why);
	met.restores += !err;
	return err;
}

static int go(void)
{
	int err = vmpt_vcpu_enter(&bed.v);

	if (err && err != -VMPT_E_RETRY && !bed.v.lost && !bed.v.entered)
		ck_abort_msg("seed %llu: enter: %d", (unsigned long long)seed, err);
	met.entries += bed.v.entered;
	return 0;
}

/* Calls that refuse with an error code and then change nothing. */
static int call(u64 what)
{
	u32 msr = any_msr();
	u64 value = any_value(msr);

	switch (what) {
	case 0 ... 9:
		return vmpt_vcpu_wrmsr(&bed.v, msr, value);
	case 10 ... 12:
		return vmpt_vcpu_set_msr(&bed.v, msr, value);
	case 13:
		return vmpt_vcpu_get_msr(&bed.v, msr, &value);
	case 14:
		return vmpt_vcpu_rdmsr(&bed.v, msr, &value);
	case 15:
		return vmpt_vcpu_smi(&bed.v);
	case 16:
		return vmpt_vcpu_rsm(&bed.v);
	case 17:
		return vmpt_vcpu_xsaves(&bed.v, area);
	case 18:
		return xrstors();
	case 19:
		state_size = vmpt_vcpu_save(&bed.v, state, sizeof(state));
		return 0;
	case 20:
		return restore();
	default:
		return vmpt_vcpu_wrmsr(&bed.v, 0x570, bed.v.regs.ctl ^ 1);
	}
}

/* It has its own bound: two passes over VMPT_ADJUST_ENTRIES; work that is left may stay so. */
static void adjust(void)
{
	struct vmpt_tsc_change change = { .multiplier = 1ULL << any(64), .offset = any(1 << 20) };
	struct vmpt_position to = { any(BED_PAGES) << 12,
				    any(600) << 7 | any(0x1100) << 32 | 0x7f };
	u64 reads = bed.guest.reads, writes = bed.guest.writes;

	bed.v.traced = any(1 << 24);
	vmpt_vcpu_tsc_adjust(&bed.v, &change, one_in(4) ? &to : NULL);
	if (bed.guest.reads - reads > 2 * VMPT_ADJUST_ENTRIES + VMPT_ADJUST_BUDGET)
		ck_abort_msg("seed %llu: adjusting TSCs never ends", (unsigned long long)seed);
	bed.guest.reads = reads;
	bed.guest.writes = writes;
}

/* As a well-behaved guest does it. If it runs or traces already, all of it is refused. */
static void trace_well(void)
{
	vmpt_vcpu_wrmsr(&bed.v, 0x560, GOOD_PAGE << 12);
	vmpt_vcpu_wrmsr(&bed.v, 0x561, any(3) << 7 | (0xff0 | any(16)) << 32);
	vmpt_vcpu_wrmsr(&bed.v, 0x571, any(256) & 0xc0);
	vmpt_vcpu_wrmsr(&bed.v, 0x570, BED_CTL | (any_ctl() & ~0x80ULL));
}

static void unless_entered(int ret)
{
	if (ret != (bed.v.entered ? -VMPT_E_STATE : 0))
		ck_abort_msg("seed %llu: %d", (unsigned long long)seed, ret);
}

/* Calls that always do something, or are never a failure. */
static void act(u64 what)
{
	switch (what) {
	case 0:
		vmpt_vcpu_pmi(&bed.v);
		break;
	case 1:
		vmpt_shadow_invalidate(&bed.v, any(BED_PAGES + 2) << 12, any(8) << 12);
		break;
	case 2:
		if (one_in(4))
			unless_entered(vmpt_vcpu_vmxon(&bed.v));
		break;
	case 3:
		unless_entered(vmpt_vcpu_vmxoff(&bed.v));
		break;
	case 4:
		vmpt_vcpu_reset(&bed.v, one_in(2));
		break;
	case 5:
		unless_entered(vmpt_vcpu_cr3_given(&bed.v, one_in(2), any(16) << 12, any(16) << 12,
						   one_in(2)));
		break;
	case 6:
	case 7:
		write_cr3();
		break;
	case 8:
		go();
		break;
	case 9 ... 11: /* an abort is rare, or nothing else would happen after it */
		vmpt_vcpu_exit(&bed.v, (enum vmpt_exit_kind)any(one_in(8) ? 5 : 3));
		break;
	case 12:
		trace_well();
		break;
	case 13:
		vmpt_vcpu_vmptrld(&bed.v);
		break;
	case 14:
		vmpt_vcpu_ept_violation(&bed.v, test_random(&rng), any(BED_PAGES + 8) << 12,
					one_in(2));
		break;
	case 15:
		if (one_in(8))
			adjust();
		break;
	default:
		poke();
	}
}

/* As bytes: vmpt_vcpu_init() clears the padding too. */
static bool same(const void *a, const void *b, size_t size)
{
	return !memcmp(a, b, size);
}

static void failed(unsigned int step, const char *what)
{
	ck_abort_msg("seed %llu, step %u: %s", (unsigned long long)seed, step, what);
}

static void one_step(unsigned int step)
{
	struct vmpt_vcpu before = bed.v;
	u64 reads = bed.guest.reads, writes = bed.guest.writes, pmis = bed.guest.pmis;
	u64 translations = bed.guest.translations;
	const char *bad;

	if (one_in(3)) {
		act(any(18));
	} else if (call(any(28))) {
		met.faults++;
		before.gp_why = bed.v.gp_why;
		if (!same(&before, &bed.v, sizeof(before)))
			failed(step, "a refused call changed something");
	}
	met.enables += bed.v.regs.ctl & ~before.regs.ctl & 1;
	met.rings += bed.v.shadow.end == VMPT_SHADOW_RING && before.shadow.end != VMPT_SHADOW_RING;
	met.pmis += bed.guest.pmis - pmis;
	bad = bad_vcpu(&bed.v);
	if (bad)
		failed(step, bad);
	if (bed.guest.reads - reads > VMPT_SHADOW_READS + 8)
		failed(step, "too many reads of guest memory");
	if (bed.guest.writes - writes > 8)
		failed(step, "too many writes of guest memory");
	if (bed.guest.translations - translations > VMPT_SHADOW_READS + 8)
		failed(step, "too many translations");
	if (bed.guest.pmis - pmis > 1)
		failed(step, "two PMIs by one call");
}

/* Only some encodings; none if the feature is hidden. */
static void limit(enum vmpt_pt_cap cap)
{
	u32 all = vmpt_pt_cap(&bed.shown.cpuid, cap), some = all & (u32)test_random(&rng);

	if (some)
		vmpt_pt_cap_set(&bed.shown.cpuid, cap, some);
}

/* A guest with other capabilities and another way to give it PT. */
static void remake(void)
{
	static const u8 hide[] = { VMPT_CAP_CR3_FILTER, VMPT_CAP_PSB_CYC,     VMPT_CAP_IP_FILTER,
				   VMPT_CAP_MTC,	VMPT_CAP_PTWRITE,     VMPT_CAP_POWER,
				   VMPT_CAP_PRESERVE,	VMPT_CAP_EVENT,	      VMPT_CAP_TNT_DISABLE,
				   VMPT_CAP_TOPA,	VMPT_CAP_SINGLE_RANGE };
	size_t i;

	bed.shown = bed.host;
	bed.shown.vmx = 0;
	bed.plan = (struct vmpt_vmx_plan){ .use = VMPT_USE_GUEST, .guest_pt = true };
	bed.plan.conceal = one_in(2);
	bed.plan.lists = one_in(4);
	bed.plan.shadow = one_in(3);
	for (i = 0; i < VMPT_ARRAY_SIZE(hide); i++)
		if (one_in(5) && !(hide[i] == VMPT_CAP_SINGLE_RANGE && !cpuid_bit(0, 'c', 0)))
			bed_hide(&bed, (enum vmpt_pt_cap)hide[i]);
	if (ranges())
		vmpt_pt_cap_set(&bed.shown.cpuid, VMPT_CAP_RANGES, 1 + (u32)any(4));
	limit(VMPT_CAP_MTC_PERIODS);
	limit(VMPT_CAP_CYC_THRESHOLDS);
	limit(VMPT_CAP_PSB_FREQS);
	bed.shown.cpuid.maxphyaddr = (u8)(36 + any(11));
	if (one_in(16))
		bed_no_pt(&bed, VMPT_USE_HOST);
	bed.config.xsave = one_in(2);
	bed.config.shadow = &bed.shadow;
	bed.config.pip_on_restore = one_in(2);
	bed.config.on_unbacked = (u8)any(3);
	bed.config.on_mmio = (u8)any(3);
	bed_start(&bed);
	state_size = 0;
}

/* Pages of a kind depend on the seed; the table pages at the front remain memory. */
static void change_memory(void)
{
	u32 page = 32 + (u32)(seed / 64 % 32);

	guest_set_kind(&bed.guest, 32, 32, VMPT_MEM_OK);
	guest_set_kind(&bed.guest, page, 1, (enum vmpt_guest_mem)(1 + seed / 64 % 4));
}

static void run(void)
{
	unsigned int step;

	if (seed % 64 == 0)
		change_memory();
	rng.state = seed;
	remake();
	for (step = 0; step < STEPS; step++)
		one_step(step);
}

/* MMIO, the APIC's page, SMRR and holes among the pages; frames in random order. */
static void make_memory(void)
{
	unsigned int i;

	bed_init(&bed);
	bed.ops.hw_rdmsr = hw_rdmsr;
	bed.ops.hw_wrmsr = hw_wrmsr;
	bed.ops.set_guest_ctl = set_ctl;
	bed.shadow.pages = 1;
	rng.state = 1;
	guest_shuffle(&bed.guest, 1);
	for (i = 0; i < 2000; i++)
		poke();
	for (i = 0; i < 3; i++)
		guest_put64(&bed.guest, (GOOD_PAGE << 12) + 8 * i,
			    (GOOD_PAGE + 1 + 2 * i) << 12 | (i == 1 ? VMPT_TOPA_INT : 0));
	guest_put64(&bed.guest, (GOOD_PAGE << 12) + 24, GOOD_PAGE << 12 | VMPT_TOPA_END);
}

/* Run sequences until @seconds are over and at least @least of them are done. */
static void soak(int seconds, u64 least)
{
	time_t start = time(NULL);

	for (; seed <= least || time(NULL) - start < seconds; seed++) {
		if (time(NULL) - start >= 4 * seconds)
			ck_abort_msg("%llu sequences only, in four times %d seconds",
				     (unsigned long long)seed - 1, seconds);
		run();
	}
	printf("note: %llu sequences\n", (unsigned long long)seed - 1);
}

START_TEST(sequences)
{
	const char *soak_seconds = getenv("VMPT_SOAK");
	int seconds = soak_seconds ? LONGER * atoi(soak_seconds) : 0;

	make_memory();
	for (seed = 1; seed <= SEQUENCES; seed++)
		run();
	if (seconds > 0)
		soak(seconds, seconds >= 60 ? SOAK_SEQUENCES : 0);
	bed_free(&bed);
	ck_assert_uint_gt(met.enables, SEQUENCES);
	ck_assert_uint_gt(met.faults, SEQUENCES);
	ck_assert_uint_gt(met.entries, SEQUENCES / 2);
	ck_assert_uint_gt(met.restores, SEQUENCES / 10);
	ck_assert_uint_gt(met.pmis, SEQUENCES / 4);
	ck_assert_uint_gt(met.pips, SEQUENCES / 100);
	ck_assert_uint_gt(met.rings, SEQUENCES / 100);
}
END_TEST

TEST_SUITE()
{
	Suite *suite = suite_create("vcpu-random");
	TCase *tcase = test_random_case(suite);

	tcase_add_test(tcase, sequences);
	return suite;
}
