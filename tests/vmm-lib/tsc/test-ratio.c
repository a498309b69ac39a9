// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * vmm-lib/tsc/ratio.c. The oracle for the nearest fraction tries every denominator, without
 * continued fractions.
 */
#include <stdlib.h>
#include <time.h>

#include "tests/support/support.h"
#include "vmm-lib/caps.h"

#define ONE (1ULL << 48)
#define MAX 0xffffffffu

static const struct {
	u32 n, d;
	u64 multiplier;
	int err;
	u32 scaled_n, scaled_d;
} ratios[] = {
	{ 168, 2, ONE, 0, 84, 1 },
	{ 168, 2, ONE / 2, 0, 42, 1 },
	{ 168, 2, 3 * (ONE / 4), 0, 63, 1 },
	{ 84, 1, ONE * 2, 0, 168, 1 },
	{ 1, 3, ONE, 0, 1, 3 },
	{ 216, 2, ONE / 1024, 0, 27, 256 },
	/* exact at the limits */
	{ MAX, 1, ONE, 0, MAX, 1 },
	{ 1, MAX, ONE, 0, 1, MAX },
	{ MAX, MAX, ONE, 0, 1, 1 },
	{ MAX, MAX - 1, ONE, 0, MAX, MAX - 1 },
	{ 1, 1, ONE + (ONE >> 31), 0, 0x80000001u, 0x80000000u },
	{ 1, 1, ONE >> 31, 0, 1, 0x80000000u },
	/*
	 * 1 + 2^-32: the two nearest with 32 bits are 1/1 and FFFFFFFFH/FFFFFFFEH. The first
	 * is 2^-32 away, the second 1/(2^32 - 2) - 2^-32, which is about 2^-63.
	 */
	{ 1, 1, ONE + (ONE >> 32), 0, MAX, MAX - 1 },
	/* 1 + 2^-33 is slightly nearer to 1: 2^-33 against 2^-32 + 2^-63 - 2^-33 */
	{ 1, 1, ONE + (ONE >> 33), 0, 1, 1 },
	{ 1, 1, ONE + 1, 0, 1, 1 },
	{ 1, 1, ONE - 1, 0, 1, 1 },
	/* 2^32 and more, 2^-32 and less: neither is replaced by something else */
	{ 1, 1, ~0ULL, 0, 65536, 1 }, /* 65535.99…: 2^-48 below 65536 */
	{ 65536, 1, ~0ULL, 0, MAX, 1 },
	{ 65537, 1, ~0ULL, -VMPT_E_INVAL, 0, 0 },
	{ MAX, 1, ~0ULL, -VMPT_E_INVAL, 0, 0 },
	{ MAX, 1, ONE + (1 << 17), -VMPT_E_INVAL, 0, 0 },
	{ MAX, 1, ONE + (1 << 16), 0, MAX, 1 },
	{ 1, MAX, 1, -VMPT_E_INVAL, 0, 0 },
	{ 1, 1, ONE >> 32, -VMPT_E_INVAL, 0, 0 },
	{ 1, 1, (ONE >> 32) + 1, 0, 1, 0xffff0001u },
	/* 0 is invalid */
	{ 0, 1, ONE, -VMPT_E_INVAL, 0, 0 },
	{ 1, 0, ONE, -VMPT_E_INVAL, 0, 0 },
	{ 1, 1, 0, -VMPT_E_INVAL, 0, 0 },
};

START_TEST(by_hand)
{
	u32 n = 0, d = 0;

	ck_assert_int_eq(vmpt_tsc_ratio(ratios[_i].n, ratios[_i].d, ratios[_i].multiplier, &n, &d),
			 ratios[_i].err);
	ck_assert_msg(n == ratios[_i].scaled_n && d == ratios[_i].scaled_d, "%#x/%#x", n, d);
}
END_TEST

/* |x - n/d| for x = a/b, as a fraction of a common denominator b: times d. */
static unsigned __int128 distance(unsigned __int128 a, unsigned __int128 b, u64 n, u64 d)
{
	unsigned __int128 x = a * d, y = b * n;

	return x > y ? x - y : y - x;
}

/* a.dist / a.d < b.dist / b.d; each half of a distance is cut to 64 bits */
static bool nearer(unsigned __int128 dist_a, u64 d_a, unsigned __int128 dist_b, u64 d_b)
{
	unsigned __int128 low = (dist_a & ~0ULL) * d_b, high = (dist_a >> 64) * d_b + (low >> 64);
	unsigned __int128 low2 = (dist_b & ~0ULL) * d_a,
			  high2 = (dist_b >> 64) * d_a + (low2 >> 64);

	return high != high2 ? high < high2 : (u64)low < (u64)low2;
}

/*
 * No fraction whose denominator is @d is nearer than the result. (All denominators of 32 bits would
 * take hours: the small ones, the large ones and some between.)
 */
static void check_denominator(u32 host_n, u32 host_d, u64 m, u32 n, u32 d, u64 other_d, u64 seed)
{
	unsigned __int128 a = (unsigned __int128)host_n * m;
	unsigned __int128 b = (unsigned __int128)host_d << 48;
	unsigned __int128 found = distance(a, b, n, d), whole = a * other_d / b;
	u64 other_n, last;

	if (whole > MAX)
		whole = MAX;
	last = (u64)whole < MAX ? (u64)whole + 1 : MAX;
	for (other_n = whole ? (u64)whole : 1; other_n <= last; other_n++)
		if (nearer(distance(a, b, other_n, other_d), other_d, found, d))
			ck_abort_msg("seed %lu: %u/%u × %#lx: %lu/%lu is nearer than %u/%u", seed,
				     host_n, host_d, m, other_n, other_d, n, d);
}

/* Any two, or a ratio and multiplier as real machines have them. */
static void random_input(struct test_rng *rng, u32 *n, u32 *d, u64 *m)
{
	u64 r = test_random(rng);
	unsigned int bits = 1 + (unsigned int)(test_random(rng) % 32);

	*n = (u32)(r & vmpt_mask64(bits)) | 1;
	*d = (u32)(r >> 32 & vmpt_mask64(1 + (unsigned int)(test_random(rng) % 32))) | 1;
	*m = test_random(rng) >> test_random(rng) % 64;
	if (r >> 62)
		return;
	*n = 50 + (u32)(r % 300);
	*d = 1 + (u32)(r >> 32) % 4;
	*m = ONE / 4 + test_random(rng) % (ONE * 4);
}

static u32 check_random(u64 seed)
{
	struct test_rng rng = { seed };
	u32 host_n, host_d, n = 0, d = 0, i;
	unsigned __int128 a, b;
	u64 m;
	int err;

	random_input(&rng, &host_n, &host_d, &m);
	a = (unsigned __int128)host_n * m;
	b = (unsigned __int128)host_d << 48;
	err = vmpt_tsc_ratio(host_n, host_d, m, &n, &d);
	if (err) {
		if (m && a >> 32 < b && b >> 32 < a)
			ck_abort_msg("seed %lu: %u/%u × %#lx refused", seed, host_n, host_d, m);
		return 0;
	}
	if (!n || !d)
		ck_abort_msg("seed %lu: %u/%u", seed, n, d);
	for (i = 1; i <= 300; i++) {
		check_denominator(host_n, host_d, m, n, d, i, seed);
		check_denominator(host_n, host_d, m, n, d, (u64)MAX - i + 1, seed);
		check_denominator(host_n, host_d, m, n, d, 1 + test_random(&rng) % MAX, seed);
		/* around the result, where a neighbour would be */
		check_denominator(host_n, host_d, m, n, d, 1 + ((u64)d + i) % MAX, seed);
		check_denominator(host_n, host_d, m, n, d, d > i ? d - i : 1, seed);
	}
	return 1;
}

START_TEST(random_ratios)
{
	const char *soak = getenv("VMPT_SOAK");
	time_t end = time(NULL) + (soak ? atoi(soak) : 0);
	u32 given = 0;
	u64 seed;

	for (seed = 1; seed <= 1000 || (soak && time(NULL) < end); seed++)
		given += check_random(seed);
	ck_assert_uint_gt(given, 500);
}
END_TEST

/* The same algorithm's whole range cannot be walked at 32 bits: all fractions to 1/200. */
START_TEST(exact_ones)
{
	u32 host_n, host_d, n, d, k;

	for (host_n = 1; host_n <= 200; host_n++) {
		for (host_d = 1; host_d <= 200; host_d++) {
			for (k = 1; k <= 9; k++) {
				/* × k/8: exact, and in lowest terms by trial */
				u32 a = host_n * k, b = host_d * 8, f;

				for (f = 2; f <= 1600; f++)
					while (a % f == 0 && b % f == 0) {
						a /= f;
						b /= f;
					}
				if (vmpt_tsc_ratio(host_n, host_d, k * (ONE / 8), &n, &d) ||
				    n != a || d != b)
					ck_abort_msg("%u/%u × %u/8", host_n, host_d, k);
			}
		}
	}
}
END_TEST

static const struct {
	u64 value, multiplier, scaled;
} infos[] = {
	/* ratio 35 in bits 15:8, other bits around it */
	{ 0xffffffffffff23ff, ONE, 0xffffffffffff23ff },
	{ 0x80000000f1812300, ONE * 2, 0x80000000f1814600 },
	{ 0x0000000000002300, ONE / 2, 0x0000000000001200 },	 /* 17.5: 18 */
	{ 0x0000000000002300, ONE / 2 - 1, 0x0000000000001100 }, /* below: 17 */
	{ 0x00000000000023ff, ONE / 1000, 0x00000000000001ff },	 /* 0.035: at least 1 */
	{ 0x0000000000002300, ONE * 100, 0x000000000000ff00 },	 /* 3500: at most 255 */
	{ 0x000000000000ff00, ~0ULL, 0x000000000000ff00 },
	{ 0x1234567890ab00cd, ONE * 2, 0x1234567890ab00cd }, /* unknown */
	{ 0x0000000000002300, 0, 0x0000000000002300 },	     /* no scaling */
};

START_TEST(platform_info)
{
	ck_assert_uint_eq(vmpt_platform_info(infos[_i].value, infos[_i].multiplier),
			  infos[_i].scaled);
}
END_TEST

TEST_SUITE()
{
	Suite *suite = suite_create("tsc-ratio");
	TCase *tcase = tcase_create("tsc-ratio");

	tcase_add_loop_test(tcase, by_hand, 0, VMPT_ARRAY_SIZE(ratios));
	tcase_add_test(test_random_case(suite), random_ratios);
	tcase_add_test(tcase, exact_ones);
	tcase_add_loop_test(tcase, platform_info, 0, VMPT_ARRAY_SIZE(infos));
	suite_add_tcase(suite, tcase);
	return suite;
}
