// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* vmm-lib/intercepts.c: the pass-through table of docs/vmm-lib/vcpu.md, row by row. */
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

/* ---- situations: how a vCPU got into each ---- */

static void direct(void)
{
	bed_start(&bed);
	bed_trace(&bed, BED_CTL);
}

static void idle(void)
{
	bed_start(&bed);
	bed_wrmsr(&bed, 0x570, BED_CTL & ~1ULL);
}

static void inject(void)
{
	bed_start(&bed);
	bed_trace(&bed, BED_CTL | VMPT_CTL_INJECT);
}

static void shadow(void)
{
	bed_shadow(&bed);
	bed_start(&bed);
	bed_trace(&bed, BED_CTL);
}

static void lists(void)
{
	bed.plan.lists = true;
	bed_start(&bed);
	bed_trace(&bed, BED_CTL);
}

static void concealed(void)
{
	bed.plan.use = VMPT_USE_GUEST;
	bed.plan.conceal = true;
	bed_start(&bed);
	bed_trace(&bed, BED_CTL);
}

static void given(void)
{
	direct();
	vmpt_vcpu_cr3_given(&bed.v, true, 0x5000, 0x6000, false);
}

static void no_longer_given(void)
{
	given();
	vmpt_vcpu_cr3_given(&bed.v, false, 0, 0, false);
}

static void hidden(void)
{
	bed_hide(&bed, VMPT_CAP_CR3_FILTER);
	bed_hide(&bed, VMPT_CAP_IP_FILTER);
	direct();
}

static void no_pt(void)
{
	bed_no_pt(&bed, VMPT_USE_NONE);
	bed_start(&bed);
}

static void system_wide(void)
{
	bed_no_pt(&bed, VMPT_USE_SYSTEM);
	bed_start(&bed);
}

static void host_only(void)
{
	bed_no_pt(&bed, VMPT_USE_HOST);
	bed_start(&bed);
}

static void smm(void)
{
	direct();
	ck_assert_int_eq(vmpt_vcpu_smi(&bed.v), 0);
}

/* SMM that traces itself. */
static void smm_traces(void)
{
	smm();
	bed_wrmsr(&bed, 0x570, BED_CTL);
}

static void after_rsm(void)
{
	smm();
	ck_assert_int_eq(vmpt_vcpu_rsm(&bed.v), 0);
}

static void vmx(void)
{
	direct();
	vmpt_vcpu_vmxon(&bed.v);
}

static void aborted(void)
{
	direct();
	bed.v.lost = true;
}

static void stopped(void)
{
	bed_start(&bed);
	bed_wrmsr(&bed, 0x571, VMPT_STATUS_STOPPED);
	bed_trace(&bed, BED_CTL);
}

/* What exits: R, W, RW or - for CTL, STATUS, OUTPUT_BASE, OUTPUT_MASK_PTRS, CR3_MATCH, ADDRn. */
#define R  VMPT_INTERCEPT_READ
#define W  VMPT_INTERCEPT_WRITE
#define RW (R | W)
#define ALL6                           \
	{                              \
		RW, RW, RW, RW, RW, RW \
	}

static const struct {
	const char *name;
	void (*make)(void);
	u8 exits[6];
} rows[] = {
	{ "tracing, direct", direct, { W, 0, 0, 0, 0, 0 } },
	{ "tracing, concealed", concealed, { W, 0, 0, 0, 0, 0 } },
	{ "tracing, stopped by ToPA", stopped, { W, 0, 0, 0, 0, 0 } },
	{ "TraceEn = 0", idle, ALL6 },
	{ "PMI preservation", inject, { W, RW, 0, 0, 0, 0 } },
	{ "shadow ToPA", shadow, { RW, RW, RW, RW, 0, 0 } },
	{ "MSR lists", lists, ALL6 },
	{ "another CR3 is given", given, { W, 0, 0, 0, RW, 0 } },
	{ "and no longer", no_longer_given, { W, 0, 0, 0, 0, 0 } },
	{ "no CR3 filter, no ranges", hidden, { W, 0, 0, 0, RW, RW } },
	{ "no PT", no_pt, ALL6 },
	{ "system-wide", system_wide, ALL6 },
	{ "host-only", host_only, ALL6 },
	{ "in SMM", smm, ALL6 },
	{ "in SMM, which traces", smm_traces, ALL6 },
	{ "after RSM", after_rsm, { W, 0, 0, 0, 0, 0 } },
	{ "in VMX operation", vmx, ALL6 },
	{ "after a VMX abort", aborted, ALL6 },
};

static void check(const char *name, u32 msr, unsigned int expected)
{
	unsigned int exits = vmpt_vcpu_intercepts(&bed.v, msr);

	ck_assert_msg(exits == expected, "%s, %xH: %x", name, msr, exits);
}

START_TEST(table)
{
	static const u32 msrs[5] = { 0x570, 0x571, 0x560, 0x561, 0x572 };
	static const u32 others[] = { 0xce,  0x10,  0x38e, 0x390, 0x391, 0xda0, 0x55f,
				      0x562, 0x573, 0x57f, 0x588, 0,	 ~0u };
	size_t i;

	rows[_i].make();
	for (i = 0; i < 5; i++)
		check(rows[_i].name, msrs[i], rows[_i].exits[i]);
	for (i = 0; i < 8; i++)
		check(rows[_i].name, 0x580 + (u32)i, rows[_i].exits[5]);
	/* MSRs that PT shares belong to the VMM: it calls vmpt_vcpu_rdmsr() in its handler */
	for (i = 0; i < VMPT_ARRAY_SIZE(others); i++)
		check(rows[_i].name, others[i], RW);
}
END_TEST

/* Ranges that the guest has pass through, those after them do not. */
START_TEST(some_ranges)
{
	u32 n;

	vmpt_pt_cap_set(&bed.shown.cpuid, VMPT_CAP_RANGES, 2);
	direct();
	for (n = 0; n < 8; n++)
		check("two ranges", 0x580 + n, n < 4 ? 0 : RW);
}
END_TEST

/*
 * An access may pass through if the processor responds as the guest would see it: a write that
 * passes is #GP by the guest's own rules, whatever is written, and a read returns the loaded value.
 */
START_TEST(passing_writes_fault)
{
	static const u64 values[] = { 0, 1, 0x7f, 0x1000, ~0ULL, 1ULL << 46 };
	u32 msr;
	size_t i;

	rows[_i].make();
	for (msr = 0x560; msr <= 0x587; msr++)
		for (i = 0; i < VMPT_ARRAY_SIZE(values); i++)
			if (!(vmpt_vcpu_intercepts(&bed.v, msr) & W) &&
			    vmpt_vcpu_wrmsr(&bed.v, msr, values[i]) != VMPT_GP)
				ck_abort_msg("%s: a write to %xH passes", rows[_i].name, msr);
}
END_TEST

TEST_SUITE()
{
	Suite *suite = suite_create("intercepts");
	TCase *tcase = tcase_create("intercepts");

	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_add_loop_test(tcase, table, 0, VMPT_ARRAY_SIZE(rows));
	tcase_add_test(tcase, some_ranges);
	tcase_add_loop_test(tcase, passing_writes_fault, 0, VMPT_ARRAY_SIZE(rows));
	suite_add_tcase(suite, tcase);
	return suite;
}
