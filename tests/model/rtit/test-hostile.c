// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The RTIT unit under random sequences of MSR accesses and events, checked after each step
 * (see hostile.h). VMPT_SOAK=seconds: duration.
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "tests/model/rtit/hostile.h"
#include "tests/support/support.h"

#define STEPS 400
#define WALKS 30000

static void fill(struct test_rng *rng, u8 *data, size_t size)
{
	size_t i;

	for (i = 0; i + 8 <= size; i += 8) {
		u64 v = test_random(rng);

		memcpy(data + i, &v, 8);
	}
}

/* Start of every second walk, which would seldom trace otherwise: CTL is read, then enabled. */
static const u8 opening[] = {
	4, 0x00, 0, 0, 0, 0, 0, 0, 0, 0, /* RDMSR of CTL */
	0, 0x03, 7, 0, 0, 0, 0, 0, 0, 0, /* EVENTS: filter always on */
	0, 0x40, 0, 0, 0, 0, 0, 0, 0, 0, /* CTL */
};

START_TEST(random_sequences)
{
	static u8 data[(HOSTILE_HEAD + STEPS * HOSTILE_STEP + 7) / 8 * 8];
	const char *soak = getenv("VMPT_SOAK");
	const time_t end = time(NULL) + (soak ? atoi(soak) : 0);
	struct hostile h = { 0 };
	unsigned int kind;
	u64 seed;

	for (seed = 1; seed <= WALKS || time(NULL) < end; seed++) {
		struct test_rng rng = { seed };

		fill(&rng, data, sizeof(data));
		if (seed & 1)
			memcpy(data + HOSTILE_HEAD, opening, sizeof(opening));
		hostile_walk(&h, data, sizeof(data));
		if (h.wrong)
			ck_abort_msg("seed %llu, step %zu: %s", (unsigned long long)seed, h.step,
				     h.wrong);
	}
	printf("%llu walks: %llu legal writes, %llu #GP, %llu steps with PacketEn\n",
	       (unsigned long long)seed - 1, (unsigned long long)h.legal,
	       (unsigned long long)h.faults, (unsigned long long)h.traced);
	/* The walks are not idle. */
	ck_assert_uint_ge(h.legal, seed * STEPS / 20);
	ck_assert_uint_ge(h.faults, seed * STEPS / 20);
	ck_assert_uint_ge(h.traced, seed * STEPS / 50);
	for (kind = 0; kind < VMPT_RTIT_KINDS; kind++)
		ck_assert_msg(h.kinds[kind] >= seed / 50, "%llu %s",
			      (unsigned long long)h.kinds[kind], vmpt_rtit_name(kind));
}
END_TEST

START_TEST(short_input)
{
	const u8 data[HOSTILE_HEAD + HOSTILE_STEP] = { 0 };
	struct hostile h = { 0 };
	size_t n;

	for (n = 0; n <= sizeof(data); n++) {
		hostile_walk(&h, data, n);
		ck_assert_ptr_null(h.wrong);
		ck_assert_uint_eq(h.step, n == sizeof(data));
	}
}
END_TEST

TEST_SUITE()
{
	Suite *suite = suite_create("hostile");
	TCase *tc = tcase_create("hostile");

	tcase_add_test(test_random_case(suite), random_sequences);
	tcase_add_test(tc, short_input);
	suite_add_tcase(suite, tc);
	return suite;
}
