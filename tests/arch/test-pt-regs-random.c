// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * arch/pt-regs.c: random sequences of accesses, resets and mode changes on random capabilities,
 * step by step against the oracle. VMPT_SOAK=seconds: run for that long.
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "tests/arch/regs-walk.h"
#include "tests/support/support.h"

#define STEPS 64

static void fill(struct test_rng *rng, u8 *data, size_t size)
{
	size_t i;

	for (i = 0; i + 8 <= size; i += 8) {
		u64 v = test_random(rng);

		memcpy(data + i, &v, 8);
	}
}

START_TEST(random_sequences)
{
	const char *soak = getenv("VMPT_SOAK");
	const time_t end = time(NULL) + (soak ? atoi(soak) : 0);
	struct walk w = { 0 };
	u8 data[(WALK_HEAD + STEPS * WALK_STEP + 7) / 8 * 8];
	u64 seed;

	for (seed = 1; seed <= 10000 || time(NULL) < end; seed++) {
		struct test_rng rng = { seed };

		fill(&rng, data, sizeof(data));
		/* Every other processor has all output schemes; otherwise it would rarely trace. */
		if (seed & 1)
			data[6] |= 5;
		regs_walk(&w, data, sizeof(data));
		if (w.wrong)
			ck_abort_msg("seed %llu, step %zu: MSR %x, %llx: %s",
				     (unsigned long long)seed, w.step, w.msr,
				     (unsigned long long)w.value, w.wrong);
	}
	printf("%llu sequences: %llu legal accesses, %llu #GP, %llu steps with TraceEn\n",
	       (unsigned long long)seed - 1, (unsigned long long)w.legal,
	       (unsigned long long)w.faults, (unsigned long long)w.enabled);
	/* The sequences reach something. */
	ck_assert_uint_ge(w.legal, seed * STEPS / 8);
	ck_assert_uint_ge(w.faults, seed * STEPS / 8);
	ck_assert_uint_ge(w.enabled, seed * STEPS / 20);
}
END_TEST

START_TEST(short_input)
{
	const u8 data[WALK_HEAD + WALK_STEP] = { 0 };
	struct walk w = { 0 };
	size_t n;

	for (n = 0; n <= sizeof(data); n++) {
		regs_walk(&w, data, n);
		ck_assert_ptr_null(w.wrong);
		ck_assert_uint_eq(w.step, n == sizeof(data));
	}
}
END_TEST

TEST_SUITE()
{
	Suite *suite = suite_create("pt-regs-random");
	TCase *tc = tcase_create("random");

	tcase_add_test(test_random_case(suite), random_sequences);
	tcase_add_test(tc, short_input);
	suite_add_tcase(suite, tc);
	return suite;
}
