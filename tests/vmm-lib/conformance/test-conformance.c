// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * vmm-lib/conformance.h: the suite passes a correct VMM, whatever its guest is shown, and finds
 * every bug that tests/vmm-lib/vmm.c can be given, in the scenario meant for it.
 */
#include <stdio.h>
#include <stdlib.h>

#include "tests/support/support.h"
#include "tests/vmm-lib/vmm.h"

/* A struct vmm and what the suite reported of it. */
struct run {
	struct vmm vmm;	   /* first: passed to callbacks and report */
	char failed[4096]; /* lines */
	char names[1024];  /* " name " of the scenarios that failed */
	unsigned int reports;
};

static void report(void *opaque, const struct vmpt_conformance_result *result)
{
	struct run *run = opaque;
	size_t at = strlen(run->failed), name = strlen(run->names);

	run->reports++;
	if (result->verdict != VMPT_FAILED)
		return;
	vmpt_conformance_print(result, run->failed + at, sizeof(run->failed) - at - 2);
	strcat(run->failed, "\n");
	snprintf(run->names + name, sizeof(run->names) - name, " %s ", result->scenario);
}

static struct vmpt_conformance_summary suite(struct run *run, const struct vmpt_caps *host,
					     const struct vmpt_policy *policy, enum vmm_bug bug)
{
	struct vmpt_conformance_summary sum;

	run->failed[0] = run->names[0] = 0;
	run->reports = 0;
	vmm_init(&run->vmm, host, policy);
	run->vmm.bug = (u8)bug;
	ck_assert_int_eq(vmpt_conformance_run(&vmm_conformance_ops, run, report, &sum), 0);
	ck_assert_uint_eq(run->reports, sum.passed + sum.failed + sum.skipped);
	vmm_free(&run->vmm);
	return sum;
}

static struct run *new_run(void)
{
	struct run *run = calloc(1, sizeof(*run));

	ck_assert(run);
	return run;
}

START_TEST(right_vmm)
{
	struct vmpt_conformance_summary sum;
	struct run *run = new_run();
	struct vmpt_caps host;

	guest_full_caps(&host);
	sum = suite(run, &host, &vmpt_policy_all, BUG_NONE);
	if (sum.failed)
		ck_abort_msg("%s", run->failed);
	ck_assert_uint_eq(sum.skipped, 0);
	ck_assert_uint_ge(sum.passed, 34);
	free(run);
}
END_TEST

/* Each capability hidden in turn, and several at once. */
START_TEST(right_vmm_with_less)
{
	struct run *run = new_run();
	struct vmpt_caps host;
	u32 hide;

	guest_full_caps(&host);
	for (hide = 0; hide < 1u << VMPT_CAPS; hide = hide < 2 ? hide + 1 : hide << 1) {
		struct vmpt_policy policy = vmpt_policy_all;
		struct vmpt_conformance_summary sum;

		policy.hide = hide & ~(1u << VMPT_CAP_MAX_SUBLEAF | 1u << VMPT_CAP_LIP);
		sum = suite(run, &host, &policy, BUG_NONE);
		if (sum.failed)
			ck_abort_msg("hidden 0x%x: %s", policy.hide, run->failed);
		ck_assert_uint_ge(sum.passed, 12);
	}
	free(run);
}
END_TEST

START_TEST(without_pt)
{
	struct vmpt_policy none = { .no_pt = true };
	struct vmpt_conformance_summary sum;
	struct run *run = new_run();
	struct vmpt_caps host;

	guest_full_caps(&host);
	sum = suite(run, &host, &none, BUG_NONE);
	if (sum.failed)
		ck_abort_msg("%s", run->failed);
	ck_assert_uint_eq(sum.passed, 3); /* cpuid-beyond, cpuid-component-8, msr-existence */
	sum = suite(run, &host, &none, BUG_NO_PT_USABLE);
	ck_assert_uint_eq(sum.failed, 1);
	ck_assert_str_eq(run->names, " msr-existence ");
	free(run);
}
END_TEST

/* A bug and the scenario that must find it; others may find it too. */
static const struct {
	enum vmm_bug bug;
	const char *scenario;
} found[] = {
	{ BUG_RESERVED_BITS, "ctl-bits" },
	{ BUG_FABRIC, "cpuid-consistent" },
	{ BUG_TRIGGERS, "cpuid-consistent" },
	{ BUG_EVENT_REFUSED, "ctl-bits" },
	{ BUG_CR3_MATCH, "cr3-match" },
	{ BUG_MAXPHYADDR, "output-msrs" },
	{ BUG_LOWER_MASK, "output-msrs" },
	{ BUG_STATUS_PEND, "status" },
	{ BUG_STOP_AND_CHANGE, "stop-and-change" },
	{ BUG_RESTORE_ORDER, "restore-order" },
	{ BUG_INIT_CLEARS, "init" },
	{ BUG_SMI_IGNORED, "smi-rsm" },
	{ BUG_VMXON_IGNORED, "vmx-operation" },
	{ BUG_NO_PIP, "cr3-pip" },
	{ BUG_TWO_PIPS, "cr3-pip" },
	{ BUG_PIP_WITHOUT_OS, "cr3-pip" },
	{ BUG_NO_PMI, "topa-pmi" },
	{ BUG_PMI_TWICE, "topa-pmi" },
	{ BUG_PMI_BIT, "topa-pmi" },
	{ BUG_NO_RATIO, "cpuid-clocks" },
	{ BUG_SUBLEAF, "cpuid-beyond" },
	{ BUG_COMPONENT_8, "cpuid-component-8" },
	{ BUG_MIGRATE_LOSES, "migrate" },
	{ BUG_NO_ERROR, "topa-errors" },
	{ BUG_HOLE_TO_RAM, "output-hole" },
	{ BUG_OFFSET, "output-position" },
	{ BUG_WRITES_WHILE_TRACING, "locked-while-tracing" },
	{ BUG_ENCODINGS, "ctl-encodings" },
	{ BUG_CANONICAL, "addresses" },
	{ BUG_NOT_RESET, "cold-reset" },
	{ BUG_RANGE_LEFT, "single-range" },
	{ BUG_END_SAME, "topa-end" },
	{ BUG_PMI_LOST, "pmi-preservation" },
	{ BUG_PMI_ALWAYS, "pmi-preservation" },
	{ BUG_FILTER_IGNORED, "cr3-filter" },
	{ BUG_FILTER_NO_PIP, "cr3-filter" },
	{ BUG_XSAVES_KEEPS, "xsave" },
	{ BUG_XSAVES_LAYOUT, "xsave" },
	{ BUG_XRSTORS_TRACING, "xsave" },
	{ BUG_XRSTORS_NOTHING, "xsave" },
	{ BUG_HOST_BELIEVES, "host-starts" },
};

START_TEST(bug_is_found)
{
	struct run *run = new_run();
	struct vmpt_caps host;
	char name[64];

	guest_full_caps(&host);
	/* Not every encoding exists, so that one too many can be detected. */
	host.cpuid.leaf14[1].eax = 0x02490004;
	suite(run, &host, &vmpt_policy_all, found[_i].bug);
	snprintf(name, sizeof(name), " %s ", found[_i].scenario);
	ck_assert_msg(strstr(run->names, name), "bug %d: %s did not fail, but:\n%s", found[_i].bug,
		      found[_i].scenario, run->failed);
	free(run);
}
END_TEST

/* The scenario of component 8 is for guests that are shown it. */
START_TEST(without_component_8)
{
	struct vmpt_conformance_summary sum;
	struct run *run = new_run();
	struct vmpt_caps host;

	guest_full_caps(&host);
	vmm_init(&run->vmm, &host, &vmpt_policy_all);
	run->vmm.config.xsave = false;
	ck_assert_int_eq(vmpt_vcpu_init(&run->vmm.vcpu, &run->vmm.config, NULL), 0);
	ck_assert_int_eq(vmpt_conformance_run(&vmm_conformance_ops, run, report, &sum), 0);
	if (sum.failed)
		ck_abort_msg("%s", run->failed);
	ck_assert_uint_eq(sum.skipped, 1);
	vmm_free(&run->vmm);
	free(run);
}
END_TEST

/* Optional callbacks may be missing, the others not. */
START_TEST(missing_callbacks)
{
	struct vmpt_conformance_ops few = vmm_conformance_ops, none = vmm_conformance_ops;
	struct vmpt_conformance_summary all, less;
	struct run *run = new_run();
	struct vmpt_caps host;

	guest_full_caps(&host);
	all = suite(run, &host, &vmpt_policy_all, BUG_NONE);
	few.run = NULL;
	few.mov_cr3 = NULL;
	few.pmis = NULL;
	few.warm_reset = few.init = few.smi = few.rsm = few.vmxon = few.vmxoff = NULL;
	few.migrate = NULL;
	few.host_traces = NULL;
	few.set_msr = NULL;
	few.xsaves = NULL;
	few.hole_gpa = 0;
	vmm_init(&run->vmm, &host, &vmpt_policy_all);
	ck_assert_int_eq(vmpt_conformance_run(&few, run, NULL, &less), 0);
	ck_assert_uint_eq(less.failed, 0);
	ck_assert_uint_eq(less.passed + less.skipped, all.passed);
	ck_assert_uint_eq(less.skipped, 19);
	none.wrmsr = NULL;
	ck_assert_int_eq(vmpt_conformance_run(&none, run, NULL, NULL), -VMPT_E_INVAL);
	few.ram_size = 4096;
	ck_assert_int_eq(vmpt_conformance_run(&few, run, NULL, NULL), -VMPT_E_INVAL);
	ck_assert_int_eq(vmpt_conformance_run(NULL, run, NULL, NULL), -VMPT_E_INVAL);
	vmm_free(&run->vmm);
	free(run);
}
END_TEST

static int broken_rdmsr(void *opaque, u32 msr, u64 *value)
{
	(void)opaque;
	(void)msr;
	(void)value;
	return -VMPT_E_IO;
}

START_TEST(broken_callback)
{
	struct vmpt_conformance_ops ops = vmm_conformance_ops;
	struct vmpt_conformance_summary sum;
	struct run *run = new_run();
	struct vmpt_caps host;

	guest_full_caps(&host);
	vmm_init(&run->vmm, &host, &vmpt_policy_all);
	ops.rdmsr = broken_rdmsr;
	ck_assert_int_eq(vmpt_conformance_run(&ops, run, report, &sum), -VMPT_E_IO);
	ck_assert_uint_eq(sum.failed, 1);
	ck_assert(strstr(run->failed, "the VMM's callback failed"));
	vmm_free(&run->vmm);
	free(run);
}
END_TEST

START_TEST(printed)
{
	struct vmpt_conformance_result r = {
		.scenario = "ctl-bits",
		.section = "33.2.8.2",
		.verdict = VMPT_FAILED,
		.wrong = "too much",
		.at_name = "MSR",
		.at = 0x570,
		.values = true,
		.want = 0,
		.got = 0x40000,
	};
	static const char line[] =
		"FAILED ctl-bits (33.2.8.2): too much, MSR 0x570, want 0x0, got 0x40000";
	char buf[100], small[10];

	ck_assert_uint_eq(vmpt_conformance_print(&r, buf, sizeof(buf)), sizeof(line) - 1);
	ck_assert_str_eq(buf, line);
	ck_assert_uint_eq(vmpt_conformance_print(&r, small, sizeof(small)), sizeof(line) - 1);
	ck_assert_str_eq(small, "FAILED ct");
	ck_assert_uint_eq(vmpt_conformance_print(&r, NULL, 0), sizeof(line) - 1);
	r = (struct vmpt_conformance_result){ .scenario = "init", .section = "33.2.8.1" };
	vmpt_conformance_print(&r, buf, sizeof(buf));
	ck_assert_str_eq(buf, "passed init (33.2.8.1)");
	r.verdict = VMPT_SKIPPED;
	r.wrong = "no init";
	vmpt_conformance_print(&r, buf, sizeof(buf));
	ck_assert_str_eq(buf, "skipped init (33.2.8.1): no init");
}
END_TEST

TEST_SUITE()
{
	Suite *s = suite_create("conformance");
	TCase *tcase = tcase_create("conformance");

	tcase_add_test(tcase, right_vmm);
	tcase_add_test(tcase, right_vmm_with_less);
	tcase_add_test(tcase, without_pt);
	tcase_add_loop_test(tcase, bug_is_found, 0, VMPT_ARRAY_SIZE(found));
	tcase_add_test(tcase, without_component_8);
	tcase_add_test(tcase, missing_callbacks);
	tcase_add_test(tcase, broken_callback);
	tcase_add_test(tcase, printed);
	suite_add_tcase(s, tcase);
	return s;
}
