// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * vmm-lib/state.c: the bytes themselves, round trips, and targets that differ from the source.
 * Invalid bytes: test-state-bad.c.
 */
#include <stdlib.h>
#include <time.h>

#include "tests/support/support.h"
#include "tests/vmm-lib/state-rig.h"

START_TEST(golden_bytes)
{
	struct vmpt_vcpu vcpu, back;
	struct vmpt_caps shown;
	u8 buf[SAVED_MAX];
	size_t n, i;

	state_make_full(&vcpu, &shown);
	state_fill(&vcpu);
	n = state_save(&vcpu, buf);
	for (i = 0; i < n && i < sizeof(state_golden); i++)
		ck_assert_msg(buf[i] == state_golden[i], "byte %zu is %#x, not %#x", i, buf[i],
			      state_golden[i]);
	ck_assert_uint_eq(n, sizeof(state_golden));
	state_make(&back, &shown);
	ck_assert_int_eq(vmpt_vcpu_restore(&back, state_golden, sizeof(state_golden), NULL), 0);
	n = state_save(&back, buf);
	ck_assert(n == sizeof(state_golden) && !memcmp(buf, state_golden, n));
	ck_assert_uint_eq(back.traced, 0x1234567);
	/* A state of a version that did not count what was traced has no such field. */
	n = sizeof(state_golden) - 12;
	memcpy(buf, state_golden, n);
	buf[8] = (u8)n;
	ck_assert_int_eq(vmpt_vcpu_restore(&back, buf, n, NULL), 0);
	ck_assert_uint_eq(back.traced, VMPT_ADJUST_TRACED);
}
END_TEST

START_TEST(each_field_comes_back)
{
	struct vmpt_vcpu from, to;
	struct vmpt_caps shown;
	u8 buf[SAVED_MAX];
	size_t n;

	state_make_full(&from, &shown);
	state_fill(&from);
	n = state_save(&from, buf);
	state_make(&to, &shown);
	to.ran = true;
	to.lost = true;
	to.cr3_given = true;
	ck_assert_int_eq(vmpt_vcpu_restore(&to, buf, n, NULL), 0);
	ck_assert_mem_eq(&to.regs, &from.regs, sizeof(to.regs));
	ck_assert(to.global_status && to.pmi_seen && to.pmi_again && !to.held_pend_pmi);
	ck_assert(!to.vmx_operation && to.in_smm && !to.smm_trace_en && to.force_psb);
	ck_assert(!to.ran && !to.lost && !to.cr3_given && !to.entered && !to.shadow.stale);
	/* The host's tracer is not part of it. */
	ck_assert_uint_eq(to.events, VMPT_EVENT_PMI | VMPT_EVENT_LOST);
	ck_assert_uint_eq(to.output_why, from.output_why);
	ck_assert(to.scan_set && to.scan_base == from.scan_base);
	ck_assert_uint_eq(to.scan_mask_ptrs, from.scan_mask_ptrs);
	ck_assert_mem_eq(to.scan.cut, from.scan.cut, sizeof(to.scan.cut));
	ck_assert_uint_eq(to.scan.last, from.scan.last);
	ck_assert_mem_eq(to.cut_gpa, from.cut_gpa, sizeof(to.cut_gpa));
	ck_assert_mem_eq(to.cut_len, from.cut_len, sizeof(to.cut_len));
	/* Nothing is delivered again: the PMI was delivered before. */
	ck_assert_uint_eq(to.pmis, 0);
}
END_TEST

/* Whatever place a VMM asks for, what is saved then can be restored. */
START_TEST(g10_saved_place)
{
	static const struct vmpt_tsc_change change = { .multiplier = 1ULL << 48 };
	const struct vmpt_position to = { _i ? 1ULL << 46 : 0x41, 0x7f };
	struct vmpt_vcpu from, back;
	struct vmpt_refusal why;
	struct vmpt_caps shown;
	u8 buf[SAVED_MAX];
	size_t n;
	int err;

	state_make_full(&from, &shown);
	vmpt_vcpu_tsc_adjust(&from, &change, &to);
	n = state_save(&from, buf);
	state_make(&back, &shown);
	err = vmpt_vcpu_restore(&back, buf, n, &why);
	if (err)
		ck_abort_msg("%d: %s", err, why.field);
}
END_TEST

/* In VMX operation without VMX_MISC[14], and in SMM with a TraceEn to be restored. */
START_TEST(modes_come_back)
{
	struct vmpt_vcpu from, to;
	struct vmpt_caps shown;
	u8 buf[SAVED_MAX];
	size_t n;

	state_make_full(&from, &shown);
	vmpt_vcpu_vmxon(&from);
	n = state_save(&from, buf);
	state_make(&to, &shown);
	ck_assert_int_eq(vmpt_vcpu_restore(&to, buf, n, NULL), 0);
	ck_assert(to.vmx_operation && !to.scan_set);
	ck_assert_int_eq(vmpt_vcpu_wrmsr(&to, VMPT_MSR_RTIT_CTL, VMPT_CTL_OS), VMPT_GP);
	ck_assert_int_eq(to.gp_why, VMPT_GP_VMX);
	/* and out of it again */
	vmpt_vcpu_reset(&from, false);
	n = state_save(&from, buf);
	ck_assert_int_eq(vmpt_vcpu_restore(&to, buf, n, NULL), 0);
	ck_assert_int_eq(vmpt_vcpu_wrmsr(&to, VMPT_MSR_RTIT_CTL, VMPT_CTL_OS), 0);

	from.in_smm = true;
	from.smm_trace_en = true;
	n = state_save(&from, buf);
	ck_assert_int_eq(vmpt_vcpu_restore(&to, buf, n, NULL), 0);
	ck_assert_int_eq(vmpt_vcpu_rsm(&to), 0);
	ck_assert(to.regs.ctl & VMPT_CTL_TRACE_EN);
}
END_TEST

START_TEST(without_pt)
{
	struct vmpt_vcpu from, to;
	struct vmpt_caps shown;
	struct vmpt_refusal why;
	u8 buf[SAVED_MAX];
	size_t n;

	guest_full_caps(&state_host);
	state_make(&from, NULL);
	n = state_save(&from, buf);
	state_make(&to, NULL);
	ck_assert_int_eq(vmpt_vcpu_restore(&to, buf, n, NULL), 0);
	ck_assert_uint_eq(to.regs.output_mask_ptrs, VMPT_LOWER_MASK);
	state_make_full(&to, &shown);
	ck_assert_int_eq(vmpt_vcpu_restore(&to, buf, n, &why), -VMPT_E_CAPS);
	ck_assert_str_eq(why.field, "CPUID.7.0:EBX[25] Intel PT");
	n = state_save(&to, buf);
	state_make(&from, NULL);
	ck_assert_int_eq(vmpt_vcpu_restore(&from, buf, n, &why), -VMPT_E_CAPS);
	ck_assert_str_eq(why.field, "CPUID.7.0:EBX[25] Intel PT");
}
END_TEST

START_TEST(not_now)
{
	struct vmpt_vcpu vcpu;
	struct vmpt_caps shown;
	u8 buf[SAVED_MAX];
	size_t n, len;

	state_make_full(&vcpu, &shown);
	state_fill(&vcpu);
	n = state_save(&vcpu, buf);
	for (len = 0; len < n; len++)
		ck_assert_int_eq(vmpt_vcpu_save(&vcpu, buf, len), -VMPT_E_SPACE);
	ck_assert_int_eq(vmpt_vcpu_save(&vcpu, buf, n), (int)n);
	vcpu.entered = true;
	ck_assert_int_eq(vmpt_vcpu_save(&vcpu, buf, sizeof(buf)), -VMPT_E_STATE);
	ck_assert_int_eq(vmpt_vcpu_restore(&vcpu, buf, n, NULL), -VMPT_E_STATE);
	vcpu.entered = false;
	vcpu.lost = true;
	ck_assert_int_eq(vmpt_vcpu_save(&vcpu, buf, sizeof(buf)), -VMPT_E_STATE);
	ck_assert_int_eq(vmpt_vcpu_restore(&vcpu, buf, n, NULL), 0);
}
END_TEST

/* ---- another guest than the one that was saved ---- */

/* What the target's guest is not shown, and the field that is reported then. */
static const struct {
	u32 hide;
	u8 ranges_max, maxphyaddr, linear_bits;
	bool no_xsave;
	const char *field;
} others[] = {
	{ HIDE(CR3_FILTER), 4, 46, 57, false, "CPUID.14H.0:EBX[0] CR3 filtering" },
	{ HIDE(PSB_CYC), 4, 46, 57, false, "CPUID.14H.0:EBX[1] configurable PSB and CYC" },
	{ HIDE(IP_FILTER), 4, 46, 57, false, "CPUID.14H.0:EBX[2] IP filtering" },
	{ HIDE(MTC), 4, 46, 57, false, "CPUID.14H.0:EBX[3] MTC" },
	{ HIDE(PTWRITE), 4, 46, 57, false, "CPUID.14H.0:EBX[4] PTWRITE" },
	{ HIDE(POWER), 4, 46, 57, false, "CPUID.14H.0:EBX[5] power events" },
	{ HIDE(PRESERVE), 4, 46, 57, false, "CPUID.14H.0:EBX[6] PSB and PMI preservation" },
	{ HIDE(EVENT), 4, 46, 57, false, "CPUID.14H.0:EBX[7] Event Trace" },
	{ HIDE(TNT_DISABLE), 4, 46, 57, false, "CPUID.14H.0:EBX[8] TNT disable" },
	{ HIDE(TOPA), 4, 46, 57, false, "CPUID.14H.0:ECX[0] ToPA" },
	{ HIDE(TOPA_MULTI), 4, 46, 57, false, "CPUID.14H.0:ECX[1] ToPA of many entries" },
	{ HIDE(SINGLE_RANGE), 4, 46, 57, false, "CPUID.14H.0:ECX[2] single-range output" },
	{ 0, 3, 46, 57, false, "CPUID.14H.1:EAX[2:0] RANGECNT" },
	{ HIDE(MAX_SUBLEAF), 4, 46, 57, false, "CPUID.14H.0:EAX last subleaf" },
	{ 0, 4, 45, 57, false, "CPUID.80000008H:EAX[7:0] MAXPHYADDR" },
	{ 0, 4, 46, 48, false, "CPUID.80000008H:EAX[15:8] linear-address width" },
	{ 0, 4, 46, 57, true, "CPUID.0DH.1:ECX[8] XSAVE component 8" },
};

static void make_other(struct vmpt_vcpu *vcpu, unsigned int i)
{
	struct vmpt_policy policy = { .hide = others[i].hide, .ranges_max = others[i].ranges_max };
	struct vmpt_caps shown;

	ck_assert_int_eq(vmpt_caps_offer(&state_host, &policy, &shown, NULL), 0);
	shown.cpuid.maxphyaddr = others[i].maxphyaddr;
	shown.cpuid.linear_bits = others[i].linear_bits;
	state_make(vcpu, &shown);
	vcpu->xsave = !others[i].no_xsave;
}

static void refused(struct vmpt_vcpu *to, const struct vmpt_vcpu *from, const char *field,
		    const char *rule)
{
	struct vmpt_refusal why;
	u8 buf[SAVED_MAX];
	size_t n = state_save(from, buf);

	ck_assert_int_eq(state_try(to, buf, n, &why), -VMPT_E_CAPS);
	ck_assert_str_eq(why.field, field);
	if (rule)
		ck_assert_str_eq(why.rule, rule);
}

/* The target lacks something, or has something more: the guest would notice either. */
START_TEST(other_guest)
{
	struct vmpt_vcpu full, less;
	struct vmpt_caps shown;

	guest_full_caps(&state_host);
	state_host.cpuid.linear_bits = 57;
	ck_assert_int_eq(vmpt_caps_offer(&state_host, &vmpt_policy_all, &shown, NULL), 0);
	state_make(&full, &shown);
	full.xsave = true;
	make_other(&less, (unsigned int)_i);
	refused(&less, &full, others[_i].field, NULL);
	refused(&full, &less, others[_i].field, "the guest would see it change");
}
END_TEST

/* Encodings: a field of 16 bits that differs in one. */
START_TEST(other_encodings)
{
	static const struct {
		u8 cap;
		const char *field;
	} bitmaps[] = {
		{ VMPT_CAP_MTC_PERIODS, "CPUID.14H.1:EAX[31:16] MTC periods" },
		{ VMPT_CAP_CYC_THRESHOLDS, "CPUID.14H.1:EBX[15:0] cycle thresholds" },
		{ VMPT_CAP_PSB_FREQS, "CPUID.14H.1:EBX[31:16] PSB frequencies" },
	};
	struct vmpt_vcpu full, less;
	struct vmpt_caps shown;
	unsigned int bit;
	size_t i;

	state_make_full(&full, &shown);
	for (i = 0; i < VMPT_ARRAY_SIZE(bitmaps); i++) {
		for (bit = 0; bit < 16; bit++) {
			vmpt_pt_cap_set(&shown.cpuid, bitmaps[i].cap, 0xffff ^ 1u << bit);
			state_make(&less, &shown);
			refused(&less, &full, bitmaps[i].field, "an encoding that the host lacks");
			refused(&full, &less, bitmaps[i].field, "the guest would see it change");
		}
		vmpt_pt_cap_set(&shown.cpuid, bitmaps[i].cap, 0xffff);
	}
}
END_TEST

/* LIP cannot be hidden: two kinds of processors. */
START_TEST(other_ips)
{
	struct vmpt_vcpu lip, rip;
	struct vmpt_caps shown;

	state_make_full(&lip, &shown);
	state_host.cpuid.leaf14[0].ecx &= 0x7fffffff;
	ck_assert_int_eq(vmpt_caps_offer(&state_host, &vmpt_policy_all, &shown, NULL), 0);
	state_make(&rip, &shown);
	refused(&rip, &lip, "CPUID.14H.0:ECX[31] LIP", "differs from the host's packets");
	refused(&lip, &rip, "CPUID.14H.0:ECX[31] LIP", "differs from the host's packets");
}
END_TEST

/* Flags that a guest without the related capability cannot have. */
START_TEST(other_flags)
{
	struct vmpt_policy policy = { .hide = HIDE(TOPA) | HIDE(PRESERVE), .ranges_max = 4 };
	struct vmpt_vcpu from, to;
	struct vmpt_caps shown;
	struct vmpt_refusal why;
	u8 buf[SAVED_MAX];
	size_t n;

	guest_full_caps(&state_host);
	ck_assert_int_eq(vmpt_caps_offer(&state_host, &policy, &shown, NULL), 0);
	state_make(&from, &shown);
	state_make(&to, &shown);
	from.global_status = true;
	n = state_save(&from, buf);
	ck_assert_int_eq(state_try(&to, buf, n, &why), -VMPT_E_INVAL);
	ck_assert_str_eq(why.field, "IA32_PERF_GLOBAL_STATUS[55]");
	from.global_status = false;
	from.held_pend_pmi = true;
	n = state_save(&from, buf);
	ck_assert_int_eq(state_try(&to, buf, n, &why), -VMPT_E_INVAL);
	ck_assert_str_eq(why.field, "held PendTopaPMI");
	from.held_pend_pmi = false;
	from.regs.status = VMPT_STATUS_PEND_PMI;
	n = state_save(&from, buf);
	ck_assert_int_eq(state_try(&to, buf, n, &why), -VMPT_E_INVAL);
	ck_assert_str_eq(why.field, "IA32_RTIT_STATUS");
}
END_TEST

/* An MSR that the guest has is missing; one that it lacks is present. */
START_TEST(other_msrs)
{
	static const u8 range[] = { 0x87, 5, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 };
	struct vmpt_policy policy = { .ranges_max = 3 };
	struct vmpt_vcpu from, to;
	struct vmpt_caps shown;
	struct vmpt_refusal why;
	u8 buf[SAVED_MAX], more[SAVED_MAX];
	size_t n;

	guest_full_caps(&state_host);
	ck_assert_int_eq(vmpt_caps_offer(&state_host, &policy, &shown, NULL), 0);
	state_make(&from, &shown);
	state_make(&to, &shown);
	n = state_save(&from, buf);
	/* three ranges: 11 MSRs. One less: */
	ck_assert_uint_eq(buf[MSRS_AT + 2], 132);
	memcpy(more, buf, n);
	memmove(more + MSRS_AT + 4 + 120, buf + MSRS_AT + 4 + 132, n - (MSRS_AT + 4 + 132));
	more[MSRS_AT + 2] = 120;
	more[8] = (u8)(n - 12);
	more[9] = (u8)((n - 12) >> 8);
	ck_assert_int_eq(state_try(&to, more, n - 12, &why), -VMPT_E_INVAL);
	ck_assert_str_eq(why.field, "IA32_RTIT_ADDR2_B");
	/* and one more: */
	memcpy(more, buf, n);
	memcpy(more + MSRS_AT + 4 + 132, range, 12);
	memcpy(more + MSRS_AT + 4 + 144, buf + MSRS_AT + 4 + 132, n - (MSRS_AT + 4 + 132));
	more[MSRS_AT + 2] = 144;
	more[8] = (u8)(n + 12);
	more[9] = (u8)((n + 12) >> 8);
	ck_assert_int_eq(state_try(&to, more, n + 12, &why), -VMPT_E_INVAL);
	ck_assert_str_eq(why.field, "IA32_RTIT_ADDR3_B");
}
END_TEST

/* ---- random ---- */

static u64 few_bits(struct test_rng *rng)
{
	u64 bits = test_random(rng);

	return bits & test_random(rng);
}

/* A state made by the guest's own accesses, saved and restored: nothing differs. */
static void random_state(u64 seed)
{
	struct test_rng rng = { seed };
	struct vmpt_vcpu from, to;
	struct vmpt_caps shown;
	struct vmpt_policy policy = { .hide = (u32)test_random(&rng) & 0x1ff,
				      .ranges_max = (u8)(test_random(&rng) % 5) };
	u8 buf[SAVED_MAX], again[SAVED_MAX];
	u64 value;
	unsigned int i;
	size_t n;

	guest_full_caps(&state_host);
	policy.hide &= ~(u32)HIDE(MAX_SUBLEAF);
	ck_assert_int_eq(vmpt_caps_offer(&state_host, &policy, &shown, NULL), 0);
	state_make(&from, &shown);
	state_make(&to, &shown);
	for (i = 0; i < 40; i++) {
		value = few_bits(&rng);
		if (test_random(&rng) % 4)
			value &= few_bits(&rng) & 0x0180003fffffffff;
		vmpt_vcpu_wrmsr(&from,
				vmpt_vcpu_msr_list(&from, (unsigned int)(test_random(&rng) % 13)),
				i == 39 ? value | VMPT_CTL_TRACE_EN | VMPT_CTL_TOPA : value);
	}
	if (test_random(&rng) % 2)
		vmpt_vcpu_pmi(&from);
	if (test_random(&rng) % 4 == 0)
		vmpt_vcpu_smi(&from);
	if (test_random(&rng) % 4 == 0)
		vmpt_vcpu_vmxon(&from);
	n = state_save(&from, buf);
	if (vmpt_vcpu_restore(&to, buf, n, NULL))
		ck_abort_msg("seed %lu: refused", seed);
	if (state_save(&to, again) != n || memcmp(buf, again, n) ||
	    memcmp(&from.regs, &to.regs, sizeof(to.regs)) || from.in_smm != to.in_smm ||
	    from.vmx_operation != to.vmx_operation || from.smm_trace_en != to.smm_trace_en ||
	    from.global_status != to.global_status || from.held_pend_pmi != to.held_pend_pmi ||
	    from.rules.no_ctl_writes != to.rules.no_ctl_writes)
		ck_abort_msg("seed %lu: the state differs", seed);
}

START_TEST(random_states)
{
	const char *soak = getenv("VMPT_SOAK");
	time_t end = time(NULL) + (soak ? atoi(soak) : 0);
	u64 seed;

	for (seed = 1; seed <= 20000 || (soak && time(NULL) < end); seed++)
		random_state(seed);
}
END_TEST

TEST_SUITE()
{
	Suite *suite = suite_create("state");
	TCase *tcase = tcase_create("state");

	tcase_add_test(tcase, golden_bytes);
	tcase_add_test(tcase, each_field_comes_back);
	tcase_add_loop_test(tcase, g10_saved_place, 0, 2);
	tcase_add_test(tcase, modes_come_back);
	tcase_add_test(tcase, without_pt);
	tcase_add_test(tcase, not_now);
	tcase_add_loop_test(tcase, other_guest, 0, VMPT_ARRAY_SIZE(others));
	tcase_add_test(tcase, other_encodings);
	tcase_add_test(tcase, other_ips);
	tcase_add_test(tcase, other_flags);
	tcase_add_test(tcase, other_msrs);
	tcase_add_test(test_random_case(suite), random_states);
	suite_add_tcase(suite, tcase);
	return suite;
}
