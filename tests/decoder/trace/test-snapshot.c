// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* decoder/trace/snapshot.c: two snapshots of one ring buffer, joined again. */
#include <stdlib.h>

#include "decoder/trace/trace.h"
#include "tests/support/support.h"

#define TRACE	  16384
#define PSB_EVERY 512

enum kind { WITH_TSC, WITHOUT_TSC, ONE_LOOP };

static size_t put(u8 *buf, size_t at, size_t size, struct vmpt_pt_packet pkt)
{
	u8 bytes[VMPT_PT_SIZE_MAX];
	int n = vmpt_pt_encode(&pkt, bytes, sizeof(bytes), 0);

	ck_assert_int_gt(n, 0);
	memcpy(buf + at, bytes, size - at < (size_t)n ? size - at : (size_t)n);
	return size - at < (size_t)n ? size : at + (size_t)n;
}

/* A PSB+ about every PSB_EVERY bytes; in a loop the bytes between are all the same. */
static void make_trace(u8 *buf, size_t size, enum kind kind, u64 seed)
{
	struct test_rng rng = { seed };
	size_t at = 0, psb = 0;
	u64 tsc = 1000;

	while (at < size) {
		struct vmpt_pt_packet p = { .kind = VMPT_PT_TNT_8 };

		if (at >= psb) {
			psb = at + PSB_EVERY;
			at = put(buf, at, size, (struct vmpt_pt_packet){ .kind = VMPT_PT_PSB });
			p = (struct vmpt_pt_packet){ .kind = VMPT_PT_TSC };
			p.tsc.tsc = tsc += 1000;
			if (kind != WITHOUT_TSC)
				at = put(buf, at, size, p);
			at = put(buf, at, size, (struct vmpt_pt_packet){ .kind = VMPT_PT_PSBEND });
			continue;
		}
		p.tnt.count = 6;
		p.tnt.bits = kind == ONE_LOOP ? 0x2b : test_random(&rng) & 0x3f;
		at = put(buf, at, size, p);
	}
}

/* Snapshots [a0, a1) and [b0, b1) of @t: joined they are [a0, b1). */
static void check_join(const u8 *t, size_t a0, size_t a1, size_t b0, size_t b1, size_t padding,
		       u64 hint)
{
	u8 *a = calloc(1, TRACE + 8), *joined = calloc(1, TRACE + 8);
	struct vmpt_overlap o = { 99999, 99999 };
	size_t a_size = a1 - a0 + padding, kept;

	memcpy(a, t + a0, a1 - a0);
	ck_assert_msg(vmpt_snapshot_overlap(a, a_size, t + b0, b1 - b0, hint, &o),
		      "no overlap of [%zu, %zu) and [%zu, %zu)", a0, a1, b0, b1);
	ck_assert_uint_le(o.trim, padding);
	ck_assert_uint_le(o.drop, b1 - b0);
	kept = a_size - o.trim;
	memcpy(joined, a, kept);
	memcpy(joined + kept, t + b0 + o.drop, b1 - b0 - o.drop);
	ck_assert_uint_eq(kept + b1 - b0 - o.drop, b1 - a0);
	ck_assert_mem_eq(joined, t + a0, b1 - a0);
	free(a);
	free(joined);
}

START_TEST(snapshots_of_a_ring_join)
{
	static u8 t[TRACE];
	struct test_rng rng = { 11 };
	int i;

	make_trace(t, TRACE, (enum kind)_i, 5);
	for (i = 0; i < 500; i++) {
		size_t a0 = test_random(&rng) % 4000, a1 = a0 + 3000 + test_random(&rng) % 4000;
		/* At least one PSB+ in common, and b may reach back before a */
		size_t common = 3 * PSB_EVERY + test_random(&rng) % 6000;
		size_t b0 = a1 > common ? a1 - common : 0;
		size_t b1 = a1 + test_random(&rng) % (TRACE - a1);

		if (b0 < a0)
			b0 = a0;
		check_join(t, a0, a1, b0, b1, test_random(&rng) % 8, 0);
	}
}
END_TEST

START_TEST(offsets_help_where_there_is_no_psb)
{
	static u8 t[TRACE];

	make_trace(t, TRACE, WITH_TSC, 5);
	check_join(t, 100, 300, 260, 480, 0, 40);
	check_join(t, 100, 300, 260, 480, 4, 44); /* as with perf: padding counts */
	/* Wrong ones do no harm. */
	check_join(t, 0, 4000, 2000, 8000, 0, 1900);
	check_join(t, 0, 4000, 2000, 8000, 0, ~0ULL);
}
END_TEST

START_TEST(a_snapshot_that_has_nothing_new)
{
	static u8 t[TRACE];

	make_trace(t, TRACE, WITH_TSC, 5);
	check_join(t, 300, 4000, 300, 4000, 0, 0);
	check_join(t, 300, 4000, 2000, 4000, 3, 0);
}
END_TEST

static bool overlaps(const u8 *a, size_t a_size, const u8 *b, size_t b_size)
{
	struct vmpt_overlap o;

	return vmpt_snapshot_overlap(a, a_size, b, b_size, 0, &o);
}

START_TEST(what_does_not_overlap)
{
	static u8 t[TRACE], other[TRACE];

	make_trace(t, TRACE, WITH_TSC, 5);
	make_trace(other, TRACE, WITH_TSC, 6);
	ck_assert(!overlaps(t, 4000, t + 4000, 4000));
	ck_assert(!overlaps(t, 4000, t + 9000, 4000));
	ck_assert(!overlaps(t, 4000, other, 4000));
	ck_assert(!overlaps(t, 4000, t + 20, 100)); /* no PSB */
	ck_assert(!overlaps(t, 0, t, 0));
	/* All PSBs are equal: one at the end of a proves nothing. */
	ck_assert(!overlaps(t, 16, t, 4000));
	/* A loop looks the same everywhere except for its TSCs. */
	make_trace(t, TRACE, ONE_LOOP, 5);
	ck_assert(!overlaps(t, 4096, t + 8192, 4096));
}
END_TEST

/* A few bytes in common are enough if there is a TSC among them, and not otherwise. */
START_TEST(a_tsc_is_proof)
{
	static u8 t[TRACE];
	const size_t common = 60;
	u64 psb;

	make_trace(t, TRACE, WITH_TSC, 5);
	for (psb = 5 * PSB_EVERY; t[psb] != 2 || t[psb + 14] != 2; psb++)
		;
	check_join(t, 0, psb + common, psb, psb + 2000, 0, 0);
	check_join(t, 0, psb + common, psb - 10, psb + 2000, 0, 0);
	make_trace(t, TRACE, WITHOUT_TSC, 5);
	for (psb = 5 * PSB_EVERY; t[psb] != 2 || t[psb + 14] != 2; psb++)
		;
	ck_assert(!overlaps(t, psb + common, t + psb, 2000));
}
END_TEST

START_TEST(all_bytes_must_agree)
{
	static u8 t[TRACE], a[4000];
	size_t i;

	make_trace(t, TRACE, WITH_TSC, 5);
	for (i = 2000; i < 4000; i++) {
		memcpy(a, t, sizeof(a));
		a[i] ^= 0x55;
		ck_assert_msg(!overlaps(a, 4000, t + 2000, 6000), "byte %zu differs", i);
		i += i < 3980 ? 30 : 0;
	}
	ck_assert(overlaps(t, 4000, t + 2000, 6000));
}
END_TEST

/* Many PSBs and runs that nearly match: Check's time limit is the test. */
START_TEST(hostile_snapshots_take_bounded_work)
{
	enum { SIZE = 1 << 20 };
	u8 *a = malloc(SIZE), *b = malloc(SIZE);
	size_t i;

	for (i = 0; i < SIZE; i++)
		a[i] = b[i] = i & 1 ? 0x82 : 0x02;
	b[SIZE / 2] = 0x99;
	ck_assert(!overlaps(a, SIZE, b, SIZE));
	free(a);
	free(b);
}
END_TEST

TEST_SUITE()
{
	Suite *s = suite_create("decoder/snapshot");
	TCase *t = tcase_create("snapshot");

	tcase_add_loop_test(t, snapshots_of_a_ring_join, 0, 3);
	tcase_add_test(t, offsets_help_where_there_is_no_psb);
	tcase_add_test(t, a_snapshot_that_has_nothing_new);
	tcase_add_test(t, what_does_not_overlap);
	tcase_add_test(t, a_tsc_is_proof);
	tcase_add_test(t, all_bytes_must_agree);
	tcase_add_test(t, hostile_snapshots_take_bounded_work);
	suite_add_tcase(s, t);
	return s;
}
