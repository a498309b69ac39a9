// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* util/: each container against the simplest model of it, and out of memory. */
#include <stdlib.h>

#include "tests/support/support.h"
#include "util/array.h"
#include "util/hash.h"
#include "util/merge.h"
#include "util/search.h"

/* ---- an allocator that fails: the linker redirects all calls of this program here ---- */

static bool no_memory;
static unsigned int calls;

void *__real_realloc(void *old, size_t size);
void *__real_calloc(size_t count, size_t size);
void *__wrap_realloc(void *old, size_t size);
void *__wrap_calloc(size_t count, size_t size);

void *__wrap_realloc(void *old, size_t size)
{
	calls++;
	return no_memory ? NULL : __real_realloc(old, size);
}

void *__wrap_calloc(size_t count, size_t size)
{
	calls++;
	return no_memory ? NULL : __real_calloc(count, size);
}

static void reset(void)
{
	no_memory = false;
	calls = 0;
}

/* ---- arrays ---- */

/* Three words: no power of two. */
struct triple {
	u64 a, b, c;
};

START_TEST(array_keeps_what_was_added)
{
	struct triple *all = NULL;
	size_t count;

	for (count = 0; count < 5000; count++) {
		ck_assert_int_eq(vmpt_grow(&all, count), 0);
		all[count] = (struct triple){ count, ~(u64)count, count * count };
	}
	/* Room for 2, then for each power of two up to 8,192. */
	ck_assert_uint_eq(calls, 13);
	for (size_t i = 0; i < count; i++)
		ck_assert(all[i].a == i && all[i].b == ~(u64)i && all[i].c == i * i);
	free(all);
}
END_TEST

/*
 * Remove from the end and add again, on both sides of each power of two: the sanitizer checks it.
 */
START_TEST(array_shrinks_and_grows)
{
	struct test_rng rng = { 17 };
	size_t count = 0, i, want;
	u16 *all = NULL;

	for (i = 0; i < 200; i++) {
		want = test_random(&rng) % 600;
		for (; count < want; count++) {
			ck_assert_int_eq(vmpt_grow(&all, count), 0);
			all[count] = (u16)count;
		}
		count = want;
		for (want = 0; want < count; want++)
			ck_assert_uint_eq(all[want], want);
	}
	free(all);
}
END_TEST

START_TEST(array_is_as_it_was_without_memory)
{
	u64 *all = NULL, *before;
	size_t room = 0;

	no_memory = true;
	ck_assert_int_eq(vmpt_grow(&all, 0), -VMPT_E_NOMEM);
	ck_assert_int_eq(vmpt_reserve(&all, &room, 1), -VMPT_E_NOMEM);
	ck_assert(!all && !room);

	no_memory = false;
	ck_assert_int_eq(vmpt_reserve_zeroed(&all, &room, 4), 0);
	all[3] = 4711;
	before = all;
	no_memory = true;
	ck_assert_int_eq(vmpt_reserve(&all, &room, 5), -VMPT_E_NOMEM);
	ck_assert_int_eq(vmpt_grow(&all, 4), -VMPT_E_NOMEM);
	ck_assert_int_eq(vmpt_reserve(&all, &room, 4), 0);
	ck_assert(all == before && room == 4 && all[3] == 4711 && !all[0]);
	free(all);
}
END_TEST

/* Sizes that overflow size_t: the truncated size is never allocated. */
START_TEST(array_is_never_too_large)
{
	const size_t top = (size_t)1 << 63;
	struct triple *all = NULL;
	size_t room = 0;

	ck_assert_int_eq(vmpt_grow(&all, top), -VMPT_E_NOMEM);
	ck_assert_int_eq(vmpt_grow(&all, top / 2), -VMPT_E_NOMEM);
	ck_assert_int_eq(vmpt_grow(&all, top / 16), -VMPT_E_NOMEM);
	ck_assert_int_eq(vmpt_reserve(&all, &room, SIZE_MAX), -VMPT_E_NOMEM);
	ck_assert_int_eq(vmpt_reserve(&all, &room, top), -VMPT_E_NOMEM);
	/* 24 times 2^61 is three times 2^64. */
	ck_assert_int_eq(vmpt_reserve(&all, &room, top / 4), -VMPT_E_NOMEM);
	ck_assert(!all && !room);
	room = top;
	ck_assert_int_eq(vmpt_reserve(&all, &room, top + 1), -VMPT_E_NOMEM);
	ck_assert(!all && room == top);
	ck_assert_uint_eq(calls, 0);
}
END_TEST

START_TEST(array_has_the_room_asked_for)
{
	u32 *all = NULL;
	size_t room = 0, i;

	ck_assert_int_eq(vmpt_reserve(&all, &room, 0), 0);
	ck_assert(!all && !room);
	ck_assert_int_eq(vmpt_reserve_zeroed(&all, &room, 3), 0);
	ck_assert_uint_eq(room, 4);
	all[2] = 9;
	all[3] = 8;
	/* Only new elements are 0. */
	ck_assert_int_eq(vmpt_reserve_zeroed(&all, &room, 4), 0);
	ck_assert_int_eq(vmpt_reserve_zeroed(&all, &room, 5), 0);
	ck_assert_uint_eq(room, 8);
	ck_assert_int_eq(vmpt_reserve_zeroed(&all, &room, 100), 0);
	ck_assert_uint_eq(room, 128);
	for (i = 0; i < room; i++)
		ck_assert_uint_eq(all[i], i == 2 ? 9 : i == 3 ? 8 : 0);
	ck_assert_int_eq(vmpt_reserve(&all, &room, 128), 0);
	ck_assert_uint_eq(calls, 3);
	free(all);
}
END_TEST

/* ---- search ---- */

/* Every list of up to seven small numbers in order, with and without equal ones. */
START_TEST(search_finds_the_first)
{
	u32 list[7] = { 0 }, key, code, rest;
	size_t n, i, from, below, upto;

	for (code = 0; code < 4 * 4 * 4 * 4 * 4 * 4 * 4; code++) {
		for (n = 0, rest = code; n < 7; n++, rest /= 4)
			list[n] = rest % 4 * 2 + (n ? list[n - 1] : 0);
		for (n = 0; n <= 7; n++) {
			key = code % 23;
			from = n ? code % n : 0;
			for (below = from; below < n && list[below] < key; below++)
				;
			for (upto = from; upto < n && list[upto] <= key; upto++)
				;
			ck_assert_uint_eq(vmpt_search(at, from, n, list[at] < key), below);
			ck_assert_uint_eq(vmpt_search(k, from, n, list[k] <= key), upto);
		}
	}
	i = vmpt_search(k, 5, 5, true);
	ck_assert_uint_eq(i, 5);
}
END_TEST

/* No sum of two indices wraps. */
START_TEST(search_takes_any_index)
{
	ck_assert_uint_eq(vmpt_search(i, 0, SIZE_MAX, i < SIZE_MAX - 3), SIZE_MAX - 3);
	ck_assert_uint_eq(vmpt_search(i, SIZE_MAX - 9, SIZE_MAX, true), SIZE_MAX);
}
END_TEST

/* ---- hash ---- */

#define KEYS 3000

struct keys {
	u64 key[KEYS];
	u32 count;
};

static u32 find_plain(const struct keys *k, u64 key)
{
	for (u32 i = 0; i < k->count; i++)
		if (k->key[i] == key)
			return i;
	return VMPT_HASH_NONE;
}

/* Many equal keys, hashed to only @spread different values. */
static void compare_hash(u64 spread)
{
	struct test_rng rng = { spread };
	struct vmpt_hash h = { 0 };
	struct keys k = { .count = 0 };
	u32 found, want, round, i;
	u64 key, hash;

	for (round = 0; round < 2; round++) {
		for (i = 0; i < KEYS; i++) {
			key = test_random(&rng) % KEYS;
			hash = vmpt_mix64(key) % spread;
			want = find_plain(&k, key);
			found = vmpt_hash_find(&h, hash, n, k.key[n] == key);
			if (found != want)
				ck_abort_msg("spread %llu, round %u, key %llu: %u, not %u",
					     (unsigned long long)spread, round,
					     (unsigned long long)key, found, want);
			if (found != VMPT_HASH_NONE)
				continue;
			k.key[k.count] = key;
			ck_assert_int_eq(vmpt_hash_add(&h, hash, k.count), 0);
			k.count++;
		}
		ck_assert_uint_eq(h.count, k.count);
		ck_assert(h.slots >= 2 * h.count && !(h.slots & (h.slots - 1)));
		ck_assert_uint_gt(k.count, KEYS / 2);
		vmpt_hash_clear(&h);
		k.count = 0;
	}
	vmpt_hash_free(&h);
	ck_assert(!h.slot && !h.slots && !h.count);
}

START_TEST(hash_finds_what_a_list_finds)
{
	compare_hash(~0ULL);
	compare_hash(100);
	compare_hash(1); /* all collide */
}
END_TEST

/* All keys hash to the last slot: the search goes on at the first. */
START_TEST(hash_wraps_at_its_end)
{
	struct vmpt_hash h = { 0 };
	u32 i;

	for (i = 0; i < 16; i++)
		ck_assert_int_eq(vmpt_hash_add(&h, ~0ULL - i % 2 * (1ULL << 20), i), 0);
	for (i = 0; i < 16; i++)
		ck_assert_uint_eq(vmpt_hash_find(&h, ~0ULL - i % 2 * (1ULL << 20), n, n == i), i);
	/* Same slot, another hash: the element is not even compared. */
	ck_assert_uint_eq(vmpt_hash_find(&h, ~0ULL ^ 1ULL << 21, n, true), VMPT_HASH_NONE);
	vmpt_hash_free(&h);
}
END_TEST

START_TEST(hash_is_as_it_was_without_memory)
{
	struct vmpt_hash h = { 0 };
	int ret = 0;
	u32 i, count;

	ck_assert_uint_eq(vmpt_hash_find(&h, 1, n, true), VMPT_HASH_NONE);
	vmpt_hash_clear(&h);
	no_memory = true;
	ck_assert_int_eq(vmpt_hash_add(&h, 1, 0), -VMPT_E_NOMEM);
	ck_assert(!h.slot && !h.slots && !h.count);
	no_memory = false;
	ck_assert_int_eq(vmpt_hash_add(&h, vmpt_mix64(0), 0), 0);
	no_memory = true;
	for (count = 1; !ret && count < 100000; count++)
		ret = vmpt_hash_add(&h, vmpt_mix64(count), count);
	count--;
	ck_assert_int_eq(ret, -VMPT_E_NOMEM);
	ck_assert_uint_eq(h.count, count);
	for (i = 0; i < count; i++)
		ck_assert_uint_eq(vmpt_hash_find(&h, vmpt_mix64(i), n, n == i), i);
	no_memory = false;
	ck_assert_int_eq(vmpt_hash_add(&h, vmpt_mix64(count), count), 0);
	ck_assert_uint_eq(vmpt_hash_find(&h, vmpt_mix64(count), n, true), count);
	vmpt_hash_free(&h);
}
END_TEST

/* The first numbers of Vigna's splitmix64 from 0: it mixes multiples of 0x9e3779b97f4a7c15. */
START_TEST(mix_is_that_of_splitmix64)
{
	ck_assert_uint_eq(vmpt_mix64(0x9e3779b97f4a7c15ULL), 0xe220a8397b1dcdafULL);
	ck_assert_uint_eq(vmpt_mix64(2 * 0x9e3779b97f4a7c15ULL), 0x6e789e6aa1b965f4ULL);
	ck_assert_uint_eq(vmpt_mix64(3 * 0x9e3779b97f4a7c15ULL), 0x06c45d188009454fULL);
}
END_TEST

/* Values of the FNV authors' test suite (fnv64 1a). */
START_TEST(fnv1a_is_the_published_one)
{
	ck_assert_uint_eq(vmpt_fnv1a(VMPT_FNV1A, "", 0), 0xcbf29ce484222325ULL);
	ck_assert_uint_eq(vmpt_fnv1a(VMPT_FNV1A, "a", 1), 0xaf63dc4c8601ec8cULL);
	ck_assert_uint_eq(vmpt_fnv1a(VMPT_FNV1A, "foobar", 6), 0x85944171f73967e8ULL);
	ck_assert_uint_eq(vmpt_fnv1a(vmpt_fnv1a(VMPT_FNV1A, "foo", 3), "bar", 3),
			  0x85944171f73967e8ULL);
}
END_TEST

/* ---- merge ---- */

#define LISTS 9
#define LONG  40

struct lists {
	u64 key[LISTS][LONG];
	size_t count[LISTS], at[LISTS];
};

/* The list whose head comes next, by comparing all of them; LISTS: none. */
static size_t first_plain(const struct lists *l)
{
	size_t best = LISTS, i;

	for (i = 0; i < LISTS; i++)
		if (l->at[i] < l->count[i] &&
		    (best == LISTS || l->key[i][l->at[i]] < l->key[best][l->at[best]]))
			best = i;
	return best;
}

/* Keys below @keys: the fewer, the more are equal, in a list and between lists. */
static void compare_merge(u64 seed, u64 keys)
{
	struct test_rng rng = { seed };
	struct lists l = { .at = { 0 } };
	struct vmpt_merge m = { 0 };
	size_t i, k, list;

	for (i = 0; i < LISTS; i++) {
		l.count[i] = test_random(&rng) % 4 ? test_random(&rng) % LONG : 0;
		for (k = 0; k < l.count[i]; k++)
			l.key[i][k] = (k ? l.key[i][k - 1] : 0) + test_random(&rng) % keys;
	}
	for (i = LISTS; i-- > 0;)
		if (l.count[i])
			ck_assert_int_eq(vmpt_merge_add(&m, l.key[i][0], i), 0);
	while (m.count) {
		list = m.head[0].list;
		if (list != first_plain(&l) || m.head[0].key != l.key[list][l.at[list]])
			ck_abort_msg("seed %llu: list %zu, not %zu", (unsigned long long)seed, list,
				     first_plain(&l));
		if (++l.at[list] < l.count[list])
			vmpt_merge_next(&m, l.key[list][l.at[list]]);
		else
			vmpt_merge_end(&m);
	}
	ck_assert_uint_eq(first_plain(&l), LISTS);
	vmpt_merge_free(&m);
	ck_assert(!m.head);
}

START_TEST(merge_is_in_order)
{
	for (u64 seed = 1; seed <= 3000; seed++)
		compare_merge(seed, seed % 3 ? 1 + seed % 5 : ~0ULL / LONG);
}
END_TEST

START_TEST(merge_is_as_it_was_without_memory)
{
	struct vmpt_merge m = { 0 };

	no_memory = true;
	ck_assert_int_eq(vmpt_merge_add(&m, 1, 0), -VMPT_E_NOMEM);
	ck_assert(!m.count && !m.head);
	no_memory = false;
	ck_assert_int_eq(vmpt_merge_add(&m, 7, 0), 0);
	ck_assert_int_eq(vmpt_merge_add(&m, 9, 1), 0);
	no_memory = true;
	ck_assert_int_eq(vmpt_merge_add(&m, 1, 2), -VMPT_E_NOMEM);
	ck_assert(m.count == 2 && m.head[0].key == 7);
	vmpt_merge_end(&m);
	ck_assert(m.count == 1 && m.head[0].key == 9 && m.head[0].list == 1);
	vmpt_merge_end(&m);
	ck_assert(!m.count);
	vmpt_merge_free(&m);
}
END_TEST

TEST_SUITE()
{
	Suite *s = suite_create("util");
	TCase *t = tcase_create("util");

	tcase_add_checked_fixture(t, reset, reset);
	tcase_add_test(t, array_keeps_what_was_added);
	tcase_add_test(t, array_shrinks_and_grows);
	tcase_add_test(t, array_is_as_it_was_without_memory);
	tcase_add_test(t, array_is_never_too_large);
	tcase_add_test(t, array_has_the_room_asked_for);
	tcase_add_test(t, search_finds_the_first);
	tcase_add_test(t, search_takes_any_index);
	tcase_add_test(t, hash_finds_what_a_list_finds);
	tcase_add_test(t, hash_wraps_at_its_end);
	tcase_add_test(t, hash_is_as_it_was_without_memory);
	tcase_add_test(t, mix_is_that_of_splitmix64);
	tcase_add_test(t, fnv1a_is_the_published_one);
	tcase_add_test(t, merge_is_in_order);
	tcase_add_test(t, merge_is_as_it_was_without_memory);
	suite_add_tcase(s, t);
	return s;
}
