// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * arch/pt-regs.c: what depends on the state or changes it as a whole: TraceEn, reset,
 * restore, TriggerEn and ContextEn.
 */
#include "arch/pt-regs.h"
#include "tests/arch/regs-oracle.h"
#include "tests/support/support.h"

static struct vmpt_pt_cpuid full;
static struct vmpt_pt_rules all; /* of full */

static u64 read_msr(const struct vmpt_pt_regs *regs, u32 msr)
{
	u64 value = 0xdead;

	ck_assert_int_eq(vmpt_pt_rdmsr(&all, regs, msr, &value, NULL), 0);
	return value;
}

/* ---- TraceEn = 1 ---- */

/* Every MSR but CTL is #GP, even with the value it has; reads work. */
START_TEST(writes_while_tracing)
{
	const struct vmpt_pt_regs tracing = {
		.ctl = 0x2501, .status = 4, .output_mask_ptrs = 0x7f, .cr3_match = 0x1000
	};
	u32 msr = oracle_msrs[_i];
	const u64 values[] = { read_msr(&tracing, msr), 0, ~0ULL };
	size_t i;

	if (msr == 0x570)
		return;
	for (i = 0; i < VMPT_ARRAY_SIZE(values); i++) {
		struct vmpt_pt_regs regs = tracing;
		enum vmpt_gp_reason why;

		ck_assert_int_eq(vmpt_pt_wrmsr(&all, &regs, msr, values[i], &why), VMPT_GP);
		ck_assert_int_eq(why, VMPT_GP_TRACING);
		ck_assert(!memcmp(&regs, &tracing, sizeof(regs)));
	}
}
END_TEST

/* ---- reset, SMI, VMXON ---- */

static const struct vmpt_pt_regs busy = {
	.ctl = 0x0100000100002501ULL,
	.status = 0x00001234000000d7ULL, /* PacketByteCnt, PendTopaPMI, PendPSB, Error, … */
	.output_base = 0x123000,
	.output_mask_ptrs = 0x4567000000ffULL,
	.cr3_match = 0x89a000,
	.addr = { 1, 2, 3, 4, 5, 6, 7, 8 },
};

static void check_cold(const struct vmpt_pt_regs *regs)
{
	size_t i;

	for (i = 0; i < ORACLE_MSRS; i++)
		ck_assert_uint_eq(read_msr(regs, oracle_msrs[i]),
				  oracle_msrs[i] == 0x561 ? 0x7f : 0);
}

START_TEST(reset_cold)
{
	struct vmpt_pt_regs regs = busy;

	vmpt_pt_reset_cold(&regs);
	check_cold(&regs);
	ck_assert_uint_eq(regs.output_mask_ptrs, 0x7f);
}
END_TEST

static void check_only_trace_en_cleared(const struct vmpt_pt_regs *regs)
{
	struct vmpt_pt_regs want = busy;

	want.ctl = 0x0100000100002500ULL;
	want.status = 0x00001234000000d3ULL; /* TriggerEn follows */
	ck_assert(!memcmp(regs, &want, sizeof(want)));
}

/* 33.2.8.1 and Table 33-11, EBX[2] (c): with IP filtering only TraceEn is cleared. */
START_TEST(reset_warm)
{
	struct vmpt_pt_cpuid c = full;
	struct vmpt_pt_regs regs = busy;
	struct vmpt_pt_rules rules;

	vmpt_pt_reset_warm(&all, &regs);
	check_only_trace_en_cleared(&regs);

	c.leaf14[0].ebx &= ~4u;
	vmpt_pt_rules_init(&rules, &c);
	regs = busy;
	vmpt_pt_reset_warm(&rules, &regs);
	check_cold(&regs);
	ck_assert_uint_eq(regs.output_mask_ptrs, 0x7f);
}
END_TEST

START_TEST(clear_trace_en)
{
	struct vmpt_pt_regs regs = busy;

	vmpt_pt_clear_trace_en(&regs);
	check_only_trace_en_cleared(&regs);
	vmpt_pt_clear_trace_en(&regs);
	check_only_trace_en_cleared(&regs);
}
END_TEST

/* ---- restore ---- */

/* The state of a guest that traces, with the read-only bits of STATUS. */
static const struct {
	u32 msr;
	u64 value;
} state[] = {
	{ 0x570, 0x0100000200002589ULL },
	{ 0x571, 0x00000123000000c7ULL },
	{ 0x560, 0x200000 },
	{ 0x561, 0x000000400000017fULL },
	{ 0x572, 0x345000 },
	{ 0x580, 0xffff800000001000ULL },
	{ 0x581, 0xffff800000002000ULL },
};

#define STATES VMPT_ARRAY_SIZE(state)

static unsigned int factorial(unsigned int n)
{
	return n ? n * factorial(n - 1) : 1;
}

/* All 5040 orders, CTL with TraceEn first among them. */
START_TEST(restore_in_any_order)
{
	unsigned int order, i;

	for (order = 0; order < factorial(STATES); order++) {
		struct vmpt_pt_regs regs;
		unsigned int left[STATES], rest = order;

		vmpt_pt_reset_cold(&regs);
		for (i = 0; i < STATES; i++)
			left[i] = i;
		for (i = (unsigned int)STATES; i; i--) {
			unsigned int k = rest % i, at = left[k];

			rest /= i;
			left[k] = left[i - 1];
			if (vmpt_pt_restore_msr(&all, &regs, state[at].msr, state[at].value, NULL))
				ck_abort_msg("order %u, MSR %x", order, state[at].msr);
		}
		for (i = 0; i < STATES; i++)
			if (*vmpt_pt_reg(&regs, state[i].msr) != state[i].value)
				ck_abort_msg("order %u, MSR %x", order, state[i].msr);
	}
}
END_TEST

/* A restore keeps all rules that do not depend on whether the processor traces. */
START_TEST(restore_checks_values)
{
	static const struct {
		u32 msr;
		u64 value;
		enum vmpt_gp_reason why;
	} rows[] = {
		{ 0x570, 1ULL << 18, VMPT_GP_RESERVED },
		{ 0x570, 3ULL << 32, VMPT_GP_ENCODING },
		{ 0x571, 1ULL << 3, VMPT_GP_RESERVED },
		{ 0x571, 1ULL << 49, VMPT_GP_RESERVED },
		{ 0x560, 0x40, VMPT_GP_RESERVED },
		{ 0x560, 1ULL << 46, VMPT_GP_RESERVED },
		{ 0x572, 0x10, VMPT_GP_RESERVED },
		{ 0x580, 1ULL << 47, VMPT_GP_NOT_CANONICAL },
	};
	size_t i;

	for (i = 0; i < VMPT_ARRAY_SIZE(rows); i++) {
		struct vmpt_pt_regs regs = busy;
		enum vmpt_gp_reason why;

		ck_assert_int_eq(vmpt_pt_restore_msr(&all, &regs, rows[i].msr, rows[i].value, &why),
				 VMPT_GP);
		ck_assert_int_eq(why, rows[i].why);
		ck_assert(!memcmp(&regs, &busy, sizeof(regs)));
	}
}
END_TEST

/* Values that no write can set are computed, not trusted: TriggerEn and LowerMask. */
START_TEST(restore_computes)
{
	struct vmpt_pt_regs regs;

	vmpt_pt_reset_cold(&regs);
	ck_assert_int_eq(vmpt_pt_restore_msr(&all, &regs, 0x571, 7, NULL), 0);
	ck_assert_uint_eq(regs.status, 3);
	ck_assert_int_eq(vmpt_pt_restore_msr(&all, &regs, 0x570, 0x2501, NULL), 0);
	ck_assert_uint_eq(regs.status, 7);
	ck_assert_int_eq(vmpt_pt_restore_msr(&all, &regs, 0x571, 0x14, NULL), 0);
	ck_assert_uint_eq(regs.status, 0x10);
	ck_assert_int_eq(vmpt_pt_restore_msr(&all, &regs, 0x561, 0, NULL), 0);
	ck_assert_uint_eq(regs.output_mask_ptrs, 0x7f);
	ck_assert_uint_eq(vmpt_pt_restore_msr(&all, &regs, 0x570, 0x2400, NULL), 0);
	ck_assert_uint_eq(regs.ctl, 0x2400);
}
END_TEST

/* ---- TriggerEn, ContextEn and small things ---- */

/* 33.2.6.2: TriggerEn is TraceEn and neither Error nor Stopped, whatever is stored. */
START_TEST(trigger_en)
{
	unsigned int n;

	for (n = 0; n < 16; n++) {
		struct vmpt_pt_regs regs = {
			.ctl = 0x2500 | (n & 1),
			.status = (n & 2 ? 0x10 : 0) | (n & 4 ? 0x20 : 0) | (n & 8 ? 4 : 0) | 3,
		};
		u64 want = (regs.status & ~4ULL) | ((n & 7) == 1 ? 4 : 0);

		ck_assert_int_eq(vmpt_pt_trigger_en(&regs), (n & 7) == 1);
		ck_assert_uint_eq(read_msr(&regs, 0x571), want);
	}
}
END_TEST

START_TEST(trigger_en_follows_writes)
{
	struct vmpt_pt_regs regs;

	vmpt_pt_reset_cold(&regs);
	ck_assert_int_eq(vmpt_pt_wrmsr(&all, &regs, 0x570, 0x2501, NULL), 0);
	ck_assert_uint_eq(regs.status, 4);
	ck_assert_int_eq(vmpt_pt_wrmsr(&all, &regs, 0x570, 0x2500, NULL), 0);
	ck_assert_uint_eq(regs.status, 0);
	/* Stopped and not cleared: enabling does not trigger. */
	ck_assert_int_eq(vmpt_pt_wrmsr(&all, &regs, 0x571, 0x20, NULL), 0);
	ck_assert_int_eq(vmpt_pt_wrmsr(&all, &regs, 0x570, 0x2501, NULL), 0);
	ck_assert_uint_eq(regs.status, 0x20);
}
END_TEST

/* 33.2.6.3, 33.2.5.2: OS × User × CPL × CR3Filter × match. */
START_TEST(context_en)
{
	static const struct {
		u64 cr3, match;
		bool equal, equal_pae;
	} cr3[] = {
		{ 0x5000, 0x5000, true, true },
		{ 0x5000, 0x6000, false, false },
		{ 0x5fff, 0x5fe0, true, true },
		{ 0x5018, 0x5000, true, true },
		{ 0x5020, 0x5000, true, false },
		{ 0x5800, 0x5000, true, false },
		{ 0x800000005000, 0x5000, false, false },
		{ 0x8000000000005000, 0x5000, false, false },
	};
	unsigned int n, cpl;
	size_t i;

	for (n = 0; n < 16; n++)
		for (cpl = 0; cpl < 4; cpl++)
			for (i = 0; i < VMPT_ARRAY_SIZE(cr3); i++) {
				bool pae = n & 8, filter = n & 4;
				struct vmpt_pt_regs regs = {
					.ctl = (n & 3) << 2 | (filter ? 0x80 : 0),
					.cr3_match = cr3[i].match,
				};
				bool want = cpl ? n & 2 : n & 1;

				if (filter)
					want &= pae ? cr3[i].equal_pae : cr3[i].equal;
				ck_assert_msg(vmpt_pt_context_en(&regs, cpl, cr3[i].cr3, pae) ==
						      want,
					      "CTL %llx, CPL %u, CR3 %zu",
					      (unsigned long long)regs.ctl, cpl, i);
			}
}
END_TEST

/* Table 33-6: 0 is 2K … 15 is 64M. */
START_TEST(psb_period)
{
	u32 n;

	for (n = 0; n < 16; n++) {
		struct vmpt_pt_regs regs = { .ctl = ~0xf000000ULL | (u64)n << 24 };

		ck_assert_uint_eq(vmpt_pt_psb_period(&regs), 0x800ULL << n);
	}
}
END_TEST

START_TEST(reasons)
{
	int a, b;

	for (a = 0; a < VMPT_GP_REASONS; a++) {
		ck_assert_ptr_nonnull(vmpt_gp_reason((enum vmpt_gp_reason)a));
		for (b = 0; b < a; b++)
			ck_assert_str_ne(vmpt_gp_reason((enum vmpt_gp_reason)a),
					 vmpt_gp_reason((enum vmpt_gp_reason)b));
	}
	ck_assert_str_eq(vmpt_gp_reason(VMPT_GP_REASONS), "unknown reason");
}
END_TEST

TEST_SUITE()
{
	Suite *suite = suite_create("pt-regs-state");
	TCase *tc = tcase_create("state");

	oracle_full(&full);
	vmpt_pt_rules_init(&all, &full);
	tcase_add_loop_test(tc, writes_while_tracing, 0, ORACLE_MSRS);
	tcase_add_test(tc, reset_cold);
	tcase_add_test(tc, reset_warm);
	tcase_add_test(tc, clear_trace_en);
	tcase_add_test(tc, restore_in_any_order);
	tcase_add_test(tc, restore_checks_values);
	tcase_add_test(tc, restore_computes);
	tcase_add_test(tc, trigger_en);
	tcase_add_test(tc, trigger_en_follows_writes);
	tcase_add_test(tc, context_en);
	tcase_add_test(tc, psb_period);
	tcase_add_test(tc, reasons);
	suite_add_tcase(suite, tc);
	return suite;
}
