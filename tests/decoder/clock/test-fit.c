// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * decoder/clock/fit.c: pairs made from a known map, and the epochs found. The truth is the
 * definition of vmpt_tsc_map, computed here.
 */
#include <stdlib.h>
#include <string.h>

#include "decoder/clock/fit.h"
#include "tests/support/support.h"

#define MASK56 ((1ULL << 56) - 1)
#define MANY   100000

static struct vmpt_fit_pair pairs[MANY];
static u64 truth[MANY]; /* the host's TSC of each */
static size_t count;
static struct vmpt_fit fit;

static void setup(void)
{
	count = 0;
	memset(&fit, 0, sizeof(fit));
}

static void teardown(void)
{
	free(fit.epochs);
	fit.epochs = NULL;
}

static u64 guest_of(const struct vmpt_tsc_map *map, u64 host)
{
	return ((u64)((unsigned __int128)host * map->multiplier >> 48) + map->offset) & MASK56;
}

/* A pair at @host by @map; its bounds hold, and its estimate is anywhere in them. */
static void add(struct test_rng *rng, const struct vmpt_tsc_map *map, u64 host, u32 width)
{
	struct vmpt_fit_pair *p = &pairs[count];
	u32 early = width ? (u32)(test_random(rng) % (width + 1)) : 0;

	truth[count++] = host;
	*p = (struct vmpt_fit_pair){ .weight = 1 };
	p->pair.vmcs = 0x1000;
	p->pair.guest = guest_of(map, host);
	p->pair.host = (struct vmpt_time){ host - width + early, width, width };
	p->pair.host.tsc = host + early;
	p->pair.host.early = early;
	p->pair.host.late = width - early;
	p->run_from = p->pair.host.tsc - 10;
	p->run_to = p->pair.host.tsc + 10;
}

static void find(void)
{
	ck_assert_int_eq(vmpt_fit_epochs(&fit, pairs, count), 0);
}

/* Pairs [from, to) are true to the epoch, within its stated error. */
static void check_truth(const struct vmpt_epoch *e, size_t from, size_t to)
{
	size_t i;

	for (i = from; i < to; i++) {
		u64 guest = guest_of(&e->map, truth[i]);
		s64 off = (s64)((guest - pairs[i].pair.guest) << 8) >> 8;

		ck_assert_msg((u64)llabs(off) <= e->offset_error + 1,
			      "pair %zu: off by %lld of %llu", i, (long long)off,
			      (unsigned long long)e->offset_error);
	}
}

#define OFFSET (0x00ff123456789abcULL & MASK56)
#define START  0x123456789abcULL

START_TEST(a_constant_offset_is_exact)
{
	struct vmpt_tsc_map map = { VMPT_TSC_UNSCALED, -(u64)0x123450000000ULL };
	struct test_rng rng = { 1 };
	size_t i;

	for (i = 0; i < 200; i++)
		add(&rng, &map, START + i * 5000000, 4);
	find();
	ck_assert_uint_eq(fit.count, 1);
	ck_assert_uint_eq(fit.epochs[0].map.multiplier, VMPT_TSC_UNSCALED);
	ck_assert(!fit.epochs[0].scaled);
	ck_assert_int_le(llabs((s64)(fit.epochs[0].map.offset - map.offset)), 2);
	ck_assert_uint_le(fit.epochs[0].offset_error, 4);
	ck_assert_uint_eq(fit.epochs[0].pairs, 200);
	ck_assert_uint_eq(fit.epochs[0].outliers, 0);
	ck_assert_int_eq(fit.epochs[0].source, VMPT_MAP_INFERRED);
	/* 1 s, bounds of 4 ticks: 8 of 10^9. */
	ck_assert(fit.epochs[0].multiplier_ppm >= 0 && fit.epochs[0].multiplier_ppm < 0.05);
	check_truth(&fit.epochs[0], 0, count);
}
END_TEST

/* A guest at 1.25 of the host's clock; bounds as with an MTC each 2^12 ticks. */
START_TEST(a_scaled_guest_is_found)
{
	struct vmpt_tsc_map map = { VMPT_TSC_UNSCALED / 4 * 5 + 12345, OFFSET };
	struct test_rng rng = { 2 };
	double ppm;
	size_t i;

	for (i = 0; i < 120; i++)
		add(&rng, &map, START + i * 10000000, 4096);
	find();
	ck_assert_uint_eq(fit.count, 1);
	ck_assert(fit.epochs[0].scaled);
	ppm = 1e6 * ((double)fit.epochs[0].map.multiplier / (double)map.multiplier - 1);
	ck_assert_msg(ppm < 10 && ppm > -10, "%f ppm", ppm);
	ck_assert(fit.epochs[0].multiplier_ppm < 10);
	ck_assert(ppm <= fit.epochs[0].multiplier_ppm && -ppm <= fit.epochs[0].multiplier_ppm);
	ck_assert_uint_le(fit.epochs[0].offset_error, 4096 * 5 / 4 + 8);
	check_truth(&fit.epochs[0], 0, count);
}
END_TEST

/* Another offset from pair 70 on: the epochs meet between the runs of pairs 69 and 70. */
START_TEST(a_changed_offset_is_found_at_its_run)
{
	struct vmpt_tsc_map a = { VMPT_TSC_UNSCALED, OFFSET };
	struct vmpt_tsc_map b = { VMPT_TSC_UNSCALED, OFFSET - 123456789 };
	struct test_rng rng = { 3 };
	size_t i;

	for (i = 0; i < 120; i++)
		add(&rng, i < 70 ? &a : &b, START + i * 1000000, 64);
	find();
	ck_assert_uint_eq(fit.count, 2);
	ck_assert_uint_eq(fit.epochs[0].pairs, 70);
	ck_assert_uint_eq(fit.epochs[1].pairs, 50);
	ck_assert_uint_eq(fit.epochs[0].to, pairs[69].run_to);
	ck_assert_uint_eq(fit.epochs[1].from, pairs[70].run_from);
	check_truth(&fit.epochs[0], 0, 70);
	check_truth(&fit.epochs[1], 70, 120);
}
END_TEST

/* Migrated to a host with another frequency: multiplier and offset change. */
START_TEST(a_changed_multiplier_is_found)
{
	struct vmpt_tsc_map a = { VMPT_TSC_UNSCALED, OFFSET };
	struct vmpt_tsc_map b = { VMPT_TSC_UNSCALED / 10 * 9, OFFSET + 1000 };
	struct vmpt_tsc_map c = { VMPT_TSC_UNSCALED / 10 * 11, OFFSET };
	struct test_rng rng = { 4 };
	size_t i;

	for (i = 0; i < 150; i++)
		add(&rng, i < 50 ? &a : i < 100 ? &b : &c, START + i * 1000000, 8);
	find();
	ck_assert_uint_eq(fit.count, 3);
	ck_assert(!fit.epochs[0].scaled);
	ck_assert(fit.epochs[1].scaled);
	ck_assert(fit.epochs[2].scaled);
	ck_assert_uint_eq(fit.epochs[0].pairs, 50);
	ck_assert_uint_eq(fit.epochs[1].from, pairs[50].run_from);
	ck_assert_uint_eq(fit.epochs[2].from, pairs[100].run_from);
	check_truth(&fit.epochs[0], 0, 50);
	check_truth(&fit.epochs[1], 50, 100);
	check_truth(&fit.epochs[2], 100, 150);
}
END_TEST

/* One pair in ten is arbitrary, or agrees with others like it (corrupt TMAs): no change. */
START_TEST(outliers_do_not_break_it)
{
	struct vmpt_tsc_map map = { VMPT_TSC_UNSCALED, OFFSET };
	struct test_rng rng = { 5 };
	u32 bad = 0;
	size_t i;

	for (i = 0; i < 300; i++) {
		add(&rng, &map, START + i * 1000000, 16);
		if (test_random(&rng) % 10)
			continue;
		pairs[i].pair.guest += 100000 + test_random(&rng) % 1000000;
		bad++;
	}
	ck_assert_uint_gt(bad, 10);
	find();
	ck_assert_uint_eq(fit.count, 1);
	ck_assert_uint_eq(fit.epochs[0].outliers, bad);
	ck_assert_uint_eq(fit.epochs[0].pairs, 300 - bad);
	ck_assert_int_le(llabs((s64)((fit.epochs[0].map.offset - map.offset) << 8) >> 8), 16);
}
END_TEST

START_TEST(outliers_do_not_break_a_line)
{
	struct vmpt_tsc_map map = { VMPT_TSC_UNSCALED / 3 * 2, OFFSET };
	struct test_rng rng = { 6 };
	u32 bad = 0;
	size_t i;

	for (i = 0; i < 300; i++) {
		add(&rng, &map, START + i * 1000000, 16);
		if (i % 10 != 7)
			continue;
		pairs[i].pair.guest += 100000 + test_random(&rng) % 1000000;
		bad++;
	}
	find();
	ck_assert_uint_eq(fit.count, 1);
	ck_assert(fit.epochs[0].scaled);
	ck_assert_uint_eq(fit.epochs[0].outliers, bad);
	ck_assert(fit.epochs[0].multiplier_ppm < 1);
}
END_TEST

/* The first pair is a bad one, then the second. */
START_TEST(bad_pairs_at_the_start)
{
	struct vmpt_tsc_map map = { VMPT_TSC_UNSCALED, OFFSET };
	struct test_rng rng = { 7 };
	size_t i;

	for (i = 0; i < 50; i++)
		add(&rng, &map, START + i * 1000000, 16);
	pairs[0].pair.guest += 777777;
	pairs[1].pair.guest -= 7777777;
	find();
	ck_assert_uint_eq(fit.count, 1);
	ck_assert_uint_eq(fit.epochs[0].pairs, 48);
	ck_assert_uint_eq(fit.epochs[0].outliers, 2);
	check_truth(&fit.epochs[0], 2, 50);
}
END_TEST

START_TEST(thin_data)
{
	struct vmpt_tsc_map map = { VMPT_TSC_UNSCALED, OFFSET };
	struct test_rng rng = { 8 };

	find();
	ck_assert_uint_eq(fit.count, 0);
	add(&rng, &map, START, 10);
	find();
	ck_assert_uint_eq(fit.count, 1);
	ck_assert(fit.epochs[0].multiplier_ppm < 0);
	ck_assert(!fit.epochs[0].scaled);
	check_truth(&fit.epochs[0], 0, 1);
	teardown();
	add(&rng, &map, START + 1000000, 10);
	find();
	ck_assert_uint_eq(fit.count, 1);
	ck_assert_uint_eq(fit.epochs[0].pairs, 2);
	check_truth(&fit.epochs[0], 0, 2);
}
END_TEST

/* Bounds that are open on one side, or on both. */
START_TEST(open_bounds)
{
	struct vmpt_tsc_map map = { VMPT_TSC_UNSCALED, OFFSET };
	struct test_rng rng = { 9 };
	size_t i;

	for (i = 0; i < 60; i++) {
		add(&rng, &map, START + i * 1000000, 10);
		if (i % 3 == 0)
			pairs[i].pair.host.late = VMPT_TIME_OPEN;
		if (i % 2 == 0)
			pairs[i].pair.host.early = VMPT_TIME_OPEN;
	}
	find();
	ck_assert_uint_eq(fit.count, 1);
	ck_assert_uint_eq(fit.epochs[0].pairs, 60);
	ck_assert_uint_le(fit.epochs[0].offset_error, 10);
	check_truth(&fit.epochs[0], 0, 60);
	teardown();
	for (i = 0; i < 60; i++)
		pairs[i].pair.host.late = pairs[i].pair.host.early = VMPT_TIME_OPEN;
	find();
	ck_assert_uint_eq(fit.count, 1);
	ck_assert_uint_eq(fit.epochs[0].offset_error, ~0ULL);
	ck_assert(fit.epochs[0].multiplier_ppm < 0);
}
END_TEST

/* The guest's 56 bits wrap. */
START_TEST(the_packets_wrap)
{
	struct vmpt_tsc_map map = { VMPT_TSC_UNSCALED, MASK56 - START - 30 * 1000000 };
	struct test_rng rng = { 10 };
	size_t i;

	for (i = 0; i < 60; i++)
		add(&rng, &map, START + i * 1000000, 10);
	find();
	ck_assert_uint_eq(fit.count, 1);
	ck_assert_uint_eq(fit.epochs[0].pairs, 60);
	check_truth(&fit.epochs[0], 0, 60);
}
END_TEST

/* The pairs left by thinning give the same result. */
START_TEST(thinning_loses_nothing)
{
	struct vmpt_tsc_map a = { VMPT_TSC_UNSCALED, OFFSET };
	struct vmpt_tsc_map b = { VMPT_TSC_UNSCALED / 7 * 5, OFFSET };
	struct test_rng rng = { 11 };
	struct vmpt_fit whole;
	u64 weight = 0;
	size_t i;
	long left;

	for (i = 0; i < 40000; i++)
		add(&rng, i < 15000 ? &a : &b, START + i * 10000 + test_random(&rng) % 1000, 50);
	find();
	whole = fit;
	left = vmpt_fit_thin(pairs, count);
	ck_assert_int_gt(left, 4);
	ck_assert_int_lt(left, 2000);
	count = (size_t)left;
	for (i = 0; i < count; i++)
		weight += pairs[i].weight;
	ck_assert_uint_eq(weight, 40000);
	find();
	ck_assert_uint_eq(fit.count, 2);
	ck_assert_uint_eq(whole.count, 2);
	for (i = 0; i < 2; i++) {
		ck_assert_uint_eq(fit.epochs[i].from, whole.epochs[i].from);
		ck_assert_uint_eq(fit.epochs[i].to, whole.epochs[i].to);
		ck_assert_uint_eq(fit.epochs[i].map.multiplier, whole.epochs[i].map.multiplier);
		ck_assert_uint_eq(fit.epochs[i].map.offset, whole.epochs[i].map.offset);
		ck_assert_uint_eq(fit.epochs[i].pairs, whole.epochs[i].pairs);
	}
	free(whole.epochs);
}
END_TEST

/* Arbitrary input: the number of epochs is bounded, and it ends. */
START_TEST(hostile_pairs)
{
	struct test_rng rng = { 12 };
	size_t i, round;

	for (round = 0; round < 6; round++) {
		count = MANY;
		memset(pairs, 0, sizeof(pairs));
		for (i = 0; i < MANY; i++) {
			struct vmpt_tsc_pair *p = &pairs[i].pair;

			pairs[i].weight = 1;
			p->host.tsc = round < 5 ? START + i * 100 : test_random(&rng);
			/* round: number of pairs between changes of the offset */
			p->guest = round ? p->host.tsc + i / (2 + round) * 100000
					 : test_random(&rng) & MASK56;
			p->host.early = round & 1 ? 0 : (u32)test_random(&rng);
			p->host.late = round & 2 ? 0 : (u32)test_random(&rng);
		}
		qsort(pairs, count, sizeof(pairs[0]), vmpt_fit_compare);
		find();
		ck_assert_uint_ge(fit.count, 1);
		ck_assert_uint_le(fit.count, VMPT_FIT_EPOCHS + 1);
		if (fit.count > VMPT_FIT_EPOCHS)
			ck_assert_int_eq(fit.epochs[VMPT_FIT_EPOCHS].source, VMPT_MAP_NONE);
		for (i = 1; i < fit.count; i++)
			ck_assert_uint_ge(fit.epochs[i].from, fit.epochs[i - 1].from);
		teardown();
	}
}
END_TEST

/* A new random guest each time; its changes are known, and each epoch must be true. */
START_TEST(random_guests)
{
	struct test_rng rng = { (u64)_i + 100 };
	struct vmpt_tsc_map map[8];
	size_t start[9], parts = 1 + test_random(&rng) % 8, i, k;
	u32 width = 1u << test_random(&rng) % 10;
	u64 host = START + test_random(&rng) % START, bad = 0;

	for (k = 0; k < parts; k++) {
		size_t n = 20 + test_random(&rng) % 200;
		/* In ppm, clearly different from 1 or exactly 1. */
		u64 ppm = test_random(&rng) % 2 ? 1000000 : 500000 + test_random(&rng) % 2000000;

		map[k].multiplier = (u64)((unsigned __int128)VMPT_TSC_UNSCALED * ppm / 1000000);
		map[k].offset = test_random(&rng) & MASK56;
		start[k] = count;
		for (i = 0; i < n; i++) {
			host += 200000 + test_random(&rng) % 10000000;
			add(&rng, &map[k], host, width);
			/*
			 * Not near a change: there it cannot be distinguished from the change
			 * itself.
			 */
			if (i > 6 && i + 6 < n && !(test_random(&rng) % 40)) {
				pairs[count - 1].pair.guest += 1ULL << 40;
				truth[count - 1] = 0;
				bad++;
			}
		}
	}
	start[parts] = count;
	find();
	ck_assert_msg(fit.count == parts, "seed %d: %zu epochs of %zu", _i, fit.count, parts);
	for (k = 0; k < parts; k++) {
		bad -= fit.epochs[k].outliers;
		ck_assert_msg(fit.epochs[k].from == pairs[start[k]].run_from, "seed %d: epoch %zu",
			      _i, k);
		for (i = start[k]; i < start[k + 1]; i++)
			if (truth[i])
				check_truth(&fit.epochs[k], i, i + 1);
	}
	ck_assert_msg(!bad, "seed %d", _i);
}
END_TEST

TEST_SUITE()
{
	Suite *suite = suite_create("clock-fit");
	TCase *tcase = tcase_create("clock-fit");

	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_add_test(tcase, a_constant_offset_is_exact);
	tcase_add_test(tcase, a_scaled_guest_is_found);
	tcase_add_test(tcase, a_changed_offset_is_found_at_its_run);
	tcase_add_test(tcase, a_changed_multiplier_is_found);
	tcase_add_test(tcase, outliers_do_not_break_it);
	tcase_add_test(tcase, outliers_do_not_break_a_line);
	tcase_add_test(tcase, bad_pairs_at_the_start);
	tcase_add_test(tcase, thin_data);
	tcase_add_test(tcase, open_bounds);
	tcase_add_test(tcase, the_packets_wrap);
	tcase_add_test(tcase, thinning_loses_nothing);
	tcase_add_test(tcase, hostile_pairs);
	tcase_add_loop_test(tcase, random_guests, 0, 300);
	suite_add_tcase(suite, tcase);
	return suite;
}
