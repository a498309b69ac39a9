// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Generated programs through the model: libipt's instruction decoder must find in the trace exactly
 * the instructions that were executed. 300 programs; VMPT_SOAK=seconds: 10,000, and more until that
 * time has passed. VMPT_SEED=n: only program n, VMPT_TRACE=file: its trace.
 */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "tests/model/programs/program.h"

/* Programs per check; there are ten checks. */
#define SHARE	   30u
#define SOAK_SHARE 1000u

static void describe(char *text, size_t size, u64 seed, const struct program_settings *s)
{
	snprintf(
		text, size,
		"VMPT_SEED=%llu: CTL %#llx, output %u,%s%s%s interrupts 1/%u, overflows 1/%u, refusals 1/%u",
		(unsigned long long)seed, (unsigned long long)s->ctl, s->output,
		s->options.deferred_tips ? " deferred TIPs," : "",
		s->options.long_tnt ? " long TNTs," : "",
		s->options.no_ip_compression ? " whole IPs," : "", s->interrupts, s->overflows,
		s->refusals);
}

/* To examine a program that failed. */
static void save(const char *path, const struct execution *done)
{
	FILE *f = path ? fopen(path, "wb") : NULL;

	if (f) {
		fwrite(done->trace, 1, done->size, f);
		fclose(f);
	}
}

/* What was compared, so that a test that compares nothing fails. */
struct sums {
	u64 insns, bytes, overflows;
};

static void run(u64 seed, struct sums *sums)
{
	struct test_rng rng = { .state = seed };
	static struct program program;
	struct program_settings settings;
	struct execution done;
	char what[256];

	program_generate(&program, &rng);
	program_settings(&settings, &program, &rng);
	describe(what, sizeof(what), seed, &settings);
	program_execute(&done, &program, &settings, &rng);
	save(getenv("VMPT_TRACE"), &done);
	program_check(&program, &done, what);
	sums->insns += done.insns;
	sums->bytes += done.size;
	sums->overflows += done.overflows;
	execution_free(&done);
}

START_TEST(test_programs)
{
	const char *seed = getenv("VMPT_SEED"), *soak = getenv("VMPT_SOAK");
	u64 first = (u64)_i << 32, n = soak ? SOAK_SHARE : SHARE, i;
	struct sums sums = { 0 };
	time_t end = time(NULL) + (soak ? atoi(soak) / 10 : 0);

	if (seed) {
		run(strtoull(seed, NULL, 0), &sums);
		return;
	}
	for (i = 0; i < n || time(NULL) < end; i++)
		run(first + i, &sums);
	ck_assert_uint_gt(sums.insns, 1000 * n);
	ck_assert_uint_gt(sums.bytes, 1000 * n);
	ck_assert_uint_gt(sums.overflows, n);
	printf("%llu programs, %llu instructions, %llu bytes, %llu overflows\n",
	       (unsigned long long)i, (unsigned long long)sums.insns,
	       (unsigned long long)sums.bytes, (unsigned long long)sums.overflows);
}
END_TEST

TEST_SUITE()
{
	Suite *suite = suite_create("model/programs");
	TCase *tc = test_random_case(suite);

	tcase_add_loop_test(tc, test_programs, 0, getenv("VMPT_SEED") ? 1 : 10);
	return suite;
}
