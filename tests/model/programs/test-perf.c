// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * A sample of the generated programs, decoded by perf script: perf, whose decoder is not libipt's,
 * must list exactly the instructions that were executed in user mode. VMPT_SEED=n: only program n.
 */
#include <check.h>
#include <stdlib.h>

#include "tests/model/programs/perf.h"

/* Programs per check; there are four checks. */
#define SHARE 10u

/* Like settings.c, limited to what perf 6.1 supports: user code, all of it, nothing lost. */
static void user_settings(struct program_settings *set, const struct program *program,
			  struct test_rng *rng)
{
	unsigned int n;

	program_settings(set, program, rng);
	for (n = 0; n < VMPT_PT_RANGES_MAX; n++)
		set->ctl &= ~(0xfULL << VMPT_CTL_ADDR_SHIFT(n));
	set->ctl &= ~(VMPT_CTL_OS | VMPT_CTL_CR3_FILTER);
	set->ctl |= VMPT_CTL_USER;
	set->overflows = 0;
	set->refusals = 0;
	/* perf pops an entry from its stack at every RET, as 33.4.2.2 says. */
	set->options.careful_retc = false;
}

static void check_instructions(struct perf_run *run, const struct execution *done, u64 seed)
{
	size_t at = 0;
	u64 ip;

	while (perf_next(run, &ip)) {
		if (at == done->insns || done->insn[at].ip != ip)
			ck_abort_msg("VMPT_SEED=%llu: instruction %zu of %zu: executed %#llx, "
				     "perf has %#llx (%s)",
				     (unsigned long long)seed, at, done->insns,
				     at < done->insns ? (unsigned long long)done->insn[at].ip : 0,
				     (unsigned long long)ip, run->dir);
		at++;
	}
	if (at != done->insns)
		ck_abort_msg("VMPT_SEED=%llu: perf ends after %zu of %zu instructions (%s)",
			     (unsigned long long)seed, at, done->insns, run->dir);
}

/* Instructions in user mode; some programs never leave the kernel. */
static size_t run(u64 seed)
{
	struct test_rng rng = { .state = seed };
	static struct program program;
	struct program_settings settings;
	struct execution done;
	struct perf_run perf = { 0 };
	size_t insns;

	program_generate(&program, &rng);
	user_settings(&settings, &program, &rng);
	program_execute(&done, &program, &settings, &rng);
	perf_start(&perf, &program, &settings, &done);
	check_instructions(&perf, &done, seed);
	ck_assert_int_eq(perf_end(&perf), 0);
	insns = done.insns;
	execution_free(&done);
	return insns;
}

START_TEST(test_perf)
{
	const char *chosen = getenv("VMPT_SEED");
	u64 first = (100ULL + (u64)_i) << 32, seed;
	size_t insns = 0;

	if (!perf_available()) {
		test_skip("perf does not run (package linux-perf)");
		return;
	}
	if (chosen) {
		run(strtoull(chosen, NULL, 0));
		return;
	}
	for (seed = first; seed < first + SHARE; seed++)
		insns += run(seed);
	ck_assert_uint_gt(insns, 1000 * SHARE);
	printf("%u programs, %zu instructions\n", SHARE, insns);
}
END_TEST

TEST_SUITE()
{
	Suite *suite = suite_create("model/programs-perf");
	TCase *tc = tcase_create("perf");

	tcase_add_loop_test(tc, test_perf, 0, getenv("VMPT_SEED") ? 1 : 4);
	suite_add_tcase(suite, tc);
	return suite;
}
