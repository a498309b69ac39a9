// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* decoder/parallel/pool.c: each job once, results in order, and an end at any moment. */
#include <stdlib.h>

#include "decoder/parallel/parallel.h"
#include "tests/support/support.h"

#define WORKERS 4
#define SLOTS	7
#define JOBS	2000

struct jobs {
	u32 number[SLOTS]; /* of the job in a slot */
	u32 result[SLOTS];
	u32 runs[JOBS];
	int busy[WORKERS]; /* by worker: it runs a job */
	unsigned int workers, run;
};

static u32 work(u32 number)
{
	u32 i, x = number;

	for (i = 0; i < number % 50; i++)
		x = x * 1664525 + 1013904223;
	return x;
}

static void run(void *owner, unsigned int slot, unsigned int worker)
{
	struct jobs *j = owner;

	ck_assert_uint_lt(slot, SLOTS);
	ck_assert_uint_lt(worker, j->workers);
	/* A worker has memory of its own: never two at once. */
	ck_assert_int_eq(__atomic_fetch_add(&j->busy[worker], 1, __ATOMIC_SEQ_CST), 0);
	j->runs[j->number[slot]]++;
	j->result[slot] = work(j->number[slot]);
	__atomic_fetch_add(&j->run, 1, __ATOMIC_SEQ_CST);
	__atomic_fetch_sub(&j->busy[worker], 1, __ATOMIC_SEQ_CST);
}

/* The owner puts in as many as fit, at random fewer, and takes some out. */
START_TEST(in_order)
{
	unsigned int workers = 1 + (unsigned int)_i % WORKERS, slots = _i < WORKERS ? SLOTS : 1;
	struct test_rng rng = { (u64)_i + 1 };
	struct jobs *j = calloc(1, sizeof(*j));
	struct vmpt_pool *pool;
	u32 put = 0, taken = 0, i;
	int slot;

	j->workers = workers;
	ck_assert_int_eq(vmpt_pool_open(&pool, workers, slots, run, j), 0);
	ck_assert_int_eq(vmpt_pool_take(pool), -1);
	while (taken < JOBS) {
		for (i = (u32)test_random(&rng) % (2 * SLOTS); i && put < JOBS; i--) {
			slot = vmpt_pool_free_slot(pool);
			ck_assert_int_eq(slot, put - taken < slots ? (int)(put % slots) : -1);
			if (slot < 0)
				break;
			j->number[slot] = put++;
			vmpt_pool_put(pool);
		}
		if (test_random(&rng) % 8 == 0) {
			vmpt_pool_wait(pool);
			ck_assert_uint_eq(j->run, put);
		}
		for (i = (u32)test_random(&rng) % (2 * SLOTS); i; i--) {
			slot = vmpt_pool_take(pool);
			ck_assert_int_eq(slot, put > taken ? (int)(taken % slots) : -1);
			if (slot < 0)
				break;
			ck_assert_uint_eq(j->number[slot], taken);
			ck_assert_uint_eq(j->result[slot], work(taken));
			vmpt_pool_drop(pool);
			taken++;
		}
	}
	vmpt_pool_close(pool);
	for (i = 0; i < JOBS; i++)
		ck_assert_uint_eq(j->runs[i], 1);
	free(j);
}
END_TEST

/* Without threads nothing runs before it is asked for. */
START_TEST(alone)
{
	struct jobs j = { .workers = 1 };
	struct vmpt_pool *pool;

	ck_assert_int_eq(vmpt_pool_open(&pool, 1, SLOTS, run, &j), 0);
	for (; j.number[0] < 3; j.number[0]++)
		vmpt_pool_put(pool);
	j.number[0] = 0;
	ck_assert_uint_eq(j.run, 0);
	ck_assert_int_eq(vmpt_pool_take(pool), 0);
	ck_assert_uint_eq(j.run, 1);
	/* Asked for again, it is not run again. */
	ck_assert_int_eq(vmpt_pool_take(pool), 0);
	ck_assert_uint_eq(j.run, 1);
	/* The two others never run. */
	vmpt_pool_close(pool);
	ck_assert_uint_eq(j.run, 1);
}
END_TEST

/* Closed with jobs in it: none runs afterwards, and none twice. */
START_TEST(closed_early)
{
	struct jobs *j = calloc(1, sizeof(*j));
	struct vmpt_pool *pool;
	u32 round, i;

	j->workers = WORKERS;
	for (round = 0; round < 100; round++) {
		memset(j->runs, 0, sizeof(j->runs));
		ck_assert_int_eq(vmpt_pool_open(&pool, WORKERS, SLOTS, run, j), 0);
		for (i = 0; i < round % (SLOTS + 1); i++) {
			j->number[i] = i;
			vmpt_pool_put(pool);
		}
		vmpt_pool_close(pool);
		for (i = 0; i < SLOTS; i++)
			ck_assert_uint_le(j->runs[i], 1);
	}
	vmpt_pool_close(NULL);
	free(j);
}
END_TEST

TEST_SUITE()
{
	Suite *s = suite_create("decoder/pool");
	TCase *t = tcase_create("threads");

	tcase_add_loop_test(t, in_order, 0, 2 * WORKERS);
	tcase_add_test(t, alone);
	tcase_add_test(t, closed_early);
	suite_add_tcase(s, t);
	return s;
}
