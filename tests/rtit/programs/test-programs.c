// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Generated programs through the RTIT unit and back: the flow decoder must find in the trace
 * exactly the instructions that were executed while packets were enabled. 1,000 programs in four
 * runs, VMPT_SHARE=0 to 3; VMPT_SOAK=seconds: 10,000 in four, and more until that time has passed.
 * VMPT_SEED=n: only program n, VMPT_TRACE=file: its trace.
 */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "tests/rtit/programs/program.h"

#define SHARES	   4u
#define SHARE	   250u
#define SOAK_SHARE 2500u

static u64 share;

static void describe(char *text, size_t size, u64 seed, const struct rtit_settings *s)
{
	snprintf(
		text, size,
		"VMPT_SEED=%#llx: CTL %#llx, EVENTS %#llx, errata %#x, PSB mask %llu late %u,%s%s%s%s%s "
		"interrupts 1/%u, SMIs 1/%u, VM exits 1/%u, overflows 1/%u, refusals 1/%u",
		(unsigned long long)seed, (unsigned long long)s->ctl, (unsigned long long)s->events,
		s->options.errata, (unsigned long long)s->pkt_mask, s->options.psb_clears_late,
		s->options.pgd_at_disable ? " PGD at disable," : "",
		s->options.pgd_at_stop ? " PGD at stop," : "",
		s->options.tnt_before_all ? " TNT before all," : "",
		s->overflow_nlip ? " NLIP after overflows," : "",
		s->reset_tnt ? " TNT_BUFF read," : "", s->interrupts, s->smis, s->exits,
		s->overflows, s->refusals);
}

/* To examine a program that failed. */
static void save(const char *path, const struct rtit_execution *done)
{
	FILE *f = path ? fopen(path, "wb") : NULL;

	if (f) {
		fwrite(done->trace, 1, done->size, f);
		fclose(f);
	}
}

static void run(u64 seed, struct rtit_sums *sums)
{
	struct test_rng rng = { .state = seed };
	static struct program program;
	struct rtit_settings settings;
	struct rtit_execution done;
	char what[400];

	program.prefixes = true;
	program_generate(&program, &rng);
	rtit_settings_make(&settings, &program, &rng);
	describe(what, sizeof(what), seed, &settings);
	rtit_execute(&done, &program, &settings, &rng);
	save(getenv("VMPT_TRACE"), &done);
	rtit_compare(&program, &settings, &done, what, sums);
	rtit_execution_free(&done);
}

/* A test that compares nothing must fail. */
static void check_sums(const struct rtit_sums *s, u64 n)
{
	static const unsigned int expected[] = { 1, 2, 5 };
	unsigned int i;

	ck_assert_uint_gt(s->insns, 1000 * n);
	ck_assert_uint_gt(s->middle, 500 * n);
	ck_assert_uint_gt(s->bytes, 500 * n);
	ck_assert_uint_gt(s->overflows, n);
	ck_assert_uint_gt(s->stops, n / 10);
	ck_assert_uint_gt(s->wrapped, n / 50);
	for (i = 0; i <= RTIT_FLOW_ERRATUM; i++)
		if (i != RTIT_FLOW_LOST)
			ck_assert_uint_gt(s->events[i], n / 20);
	for (i = 0; i < VMPT_ARRAY_SIZE(expected); i++)
		ck_assert_msg(s->errata[expected[i]] > n / 50, "E%u: %llu times", expected[i],
			      (unsigned long long)s->errata[expected[i]]);
}

START_TEST(test_programs)
{
	const char *seed = getenv("VMPT_SEED"), *soak = getenv("VMPT_SOAK");
	u64 n = soak ? SOAK_SHARE : SHARE, i;
	struct rtit_sums sums = { 0 };
	time_t end = time(NULL) + (soak ? atoi(soak) : 0);

	if (seed) {
		run(strtoull(seed, NULL, 0), &sums);
		return;
	}
	for (i = 0; i < n || time(NULL) < end; i++)
		run(share << 32 | i, &sums);
	check_sums(&sums, n);
	printf("%llu programs, %llu instructions, %llu bytes, %llu enables, %llu far transfers, "
	       "%llu overflows, %llu TraceStops, %llu silent disables, %llu, %llu and %llu times "
	       "E1, E2 and E5, %llu wrapped buffers, %llu decoded from the middle\n",
	       (unsigned long long)i, (unsigned long long)sums.insns,
	       (unsigned long long)sums.bytes, (unsigned long long)sums.events[RTIT_FLOW_ENABLED],
	       (unsigned long long)sums.events[RTIT_FLOW_FAR], (unsigned long long)sums.overflows,
	       (unsigned long long)sums.stops, (unsigned long long)sums.events[RTIT_FLOW_QUIET],
	       (unsigned long long)sums.errata[1], (unsigned long long)sums.errata[2],
	       (unsigned long long)sums.errata[5], (unsigned long long)sums.wrapped,
	       (unsigned long long)sums.middle);
}
END_TEST

TEST_SUITE()
{
	const char *which = getenv("VMPT_SHARE");
	Suite *suite = suite_create("rtit/programs");
	TCase *tc = test_random_case(suite);

	share = which ? strtoull(which, NULL, 0) % SHARES : 0;
	tcase_add_test(tc, test_programs);
	return suite;
}
