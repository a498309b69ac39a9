// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Lanes over scattered pages (vmpt_tsc_rewrite_view): random streams against the oracle, and
 * packets that a page's end cuts.
 */
#include <stdlib.h>
#include <time.h>

#include "tests/support/support.h"
#include "tests/vmm-lib/tsc-oracle.h"
#include "vmm-lib/tsc/scan.h"

#define ONE  (1ULL << 48)
#define PAGE 4096u

/* ---- random streams ---- */

static const struct tsc_mix mixes[] = {
	{ .psb = 2, .tsc = 5, .block = 10 },
	{ .psb = 2, .tsc = 5, .block = 10, .tsc_bytes = true },
	{ .psb = 20, .tsc = 2 },
	{ .psb = 1, .tsc = 1, .block = 100, .tsc_bytes = true },
	{ .psb = 5, .tsc = 300, .block = 2, .tsc_bytes = true },
	{ .psb = 5, .tsc = 20, .block = 20, .error = 1 },
	{ .tsc = 2, .block = 1 }, /* no PSB at all */
};

static void random_round(u64 seed)
{
	struct test_rng rng = { seed };
	u64 stream_rng = test_random(&rng) | 1;
	size_t i, len = 1 + test_random(&rng) % 200000;
	struct vmpt_tsc_change change = {
		.multiplier = test_random(&rng) >> 14,
		.offset = test_random(&rng),
		.high = (u8)test_random(&rng),
	};
	struct vmpt_tsc_scan scan = { 0 };
	struct tsc_oracle sum = { 0 };
	u8 *in = malloc(len), *want = malloc(len), *out = malloc(len);

	ck_assert(in && want && out);
	tsc_stream(in, len, &mixes[seed % VMPT_ARRAY_SIZE(mixes)], &stream_rng);
	memcpy(want, in, len);
	memcpy(out, in, len);
	tsc_oracle(&sum, &change, in, want, 0, len);
	tsc_in_pages(&scan, &change, out, len, &stream_rng);
	for (i = 0; i < len; i++)
		if (out[i] != want[i])
			ck_abort_msg("seed %llu: byte %zu of %zu", (unsigned long long)seed, i,
				     len);
	if (scan.packets != sum.packets || scan.tscs != sum.tscs || scan.tmas != sum.tmas ||
	    scan.errors != sum.errors)
		ck_abort_msg("seed %llu: counts", (unsigned long long)seed);
	free(in);
	free(want);
	free(out);
}

START_TEST(random_streams)
{
	const char *soak = getenv("VMPT_SOAK");
	time_t end = time(NULL) + (soak ? atoi(soak) : 0);
	u64 seed;

	for (seed = 0; seed < 200 || time(NULL) < end; seed++)
		random_round(seed);
}
END_TEST

/* ---- packets across two pages ---- */

static const u8 psb[16] = {
	2, 0x82, 2, 0x82, 2, 0x82, 2, 0x82, 2, 0x82, 2, 0x82, 2, 0x82, 2, 0x82
};

/* TSC 10H and TMA with a FastCounter of 1FEH; both plus 1, and times 5/4. */
static const u8 tsc_tma[15] = { 0x19, 0x10, 0, 0, 0, 0, 0, 0, 0x02, 0x73, 1, 2, 0, 0xfe, 1 };
static const u8 plus_one[15] = { 0x19, 0x11, 0, 0, 0, 0, 0, 0, 0x02, 0x73, 1, 2, 0, 0xfe, 1 };
static const u8 faster[15] = { 0x19, 0x14, 0, 0, 0, 0, 0, 0, 0x02, 0x73, 1, 2, 0, 0xff, 1 };
/* In a block of items of 8 bytes: BBP, a BIP full of TSC headers, TSC and TMA, BEP. */
static const u8 block[12] = {
	0x02, 0x63, 0x01, 0x04, 0x19, 0x19, 0x19, 0x19, 0x19, 0x19, 0x19, 0x19
};
static const u8 bep[2] = { 0x02, 0x33 };

static const struct across {
	const char *name;
	const u8 *head, *want;
	size_t head_len;
	u64 multiplier, offset;
} acrosses[] = {
	{ "plus 1", psb, plus_one, 0, ONE, 1 },
	{ "times 5/4", psb, faster, 0, ONE + ONE / 4, 0 },
	{ "in a block", block, plus_one, sizeof(block), ONE, 1 },
};

enum { PAGES = 8 };

/*
 * PADs; a PSB in each page at 100; the packets @before each page's end, and the end of a block.
 */
static void across_make(u8 *buf, const struct across *a, const u8 *tsc, size_t before)
{
	u8 *p = buf;
	unsigned int i;

	memset(buf, 0, PAGES * PAGE);
	for (i = 0; i < PAGES; i++) {
		memcpy(buf + i * PAGE + 100, psb, sizeof(psb));
		if (i + 1 == PAGES)
			break;
		p = buf + (i + 1) * PAGE - before;
		memcpy(p, a->head, a->head_len);
		memcpy(p + a->head_len, tsc, sizeof(tsc_tma));
		memcpy(p + a->head_len + sizeof(tsc_tma), bep, sizeof(bep));
	}
}

/* Lanes do it, wherever the page ends; each page is memory of its own, in reverse order. */
static void check_across(const struct across *a, size_t before)
{
	static u8 in[PAGES * PAGE], want[PAGES * PAGE], memory[PAGES + 1][2 * PAGE];
	struct vmpt_tsc_change change = { .multiplier = a->multiplier, .offset = a->offset };
	struct vmpt_tsc_view view = { .shift = 12 };
	size_t window = VMPT_TSC_WINDOW, done;
	struct vmpt_tsc_scan scan = { 0 };
	u8 *page[PAGES];
	unsigned int i;

	across_make(in, a, tsc_tma, before);
	across_make(want, a, a->want, before);
	view.page = page;
	for (i = 0; i < PAGES; i++) {
		page[i] = memory[PAGES - i];
		memcpy(page[i], in + (size_t)i * PAGE, PAGE);
	}
	done = vmpt_tsc_rewrite_view(&scan, &change, &view, 0, sizeof(in), &window);
	if (done < sizeof(in) - 3 * VMPT_TSC_READABLE || scan.tscs != PAGES - 1 ||
	    scan.tmas != PAGES - 1)
		ck_abort_msg("%s, %zu before: %zu bytes, %llu TSCs", a->name, before, done,
			     (unsigned long long)scan.tscs);
	for (i = 0; i < PAGES; i++)
		if (memcmp(page[i], want + (size_t)i * PAGE, PAGE))
			ck_abort_msg("%s, %zu before: page %u", a->name, before, i);
}

START_TEST(across)
{
	size_t before;

	for (before = 0; before < 48; before++)
		check_across(&acrosses[_i], before);
}
END_TEST

/* Nothing is done if a packet is cut or lost, or if there is no room for lanes. */
START_TEST(not_for_lanes)
{
	static u8 memory[2 * PAGE];
	u8 *page[2] = { memory, memory + PAGE };
	const struct vmpt_tsc_view view = { page, 12 };
	const struct vmpt_tsc_change change = { .multiplier = ONE, .offset = 1 };
	struct vmpt_tsc_scan cut = { .cut_size = 1 }, lost = { .lost = 1 }, fine = { 0 };
	size_t window = VMPT_TSC_WINDOW;

	ck_assert_uint_eq(vmpt_tsc_rewrite_view(&cut, &change, &view, 7, 2 * PAGE, &window), 7);
	ck_assert_uint_eq(vmpt_tsc_rewrite_view(&lost, &change, &view, 7, 2 * PAGE, &window), 7);
	ck_assert_uint_eq(vmpt_tsc_rewrite_view(&fine, &change, &view, 7, 2000, &window), 7);
	ck_assert_uint_gt(vmpt_tsc_rewrite_view(&fine, &change, &view, 7, 2 * PAGE, &window), PAGE);
}
END_TEST

TEST_SUITE()
{
	Suite *suite = suite_create("tsc-lanes");
	TCase *tc = tcase_create("tsc-lanes");

	tcase_add_test(test_random_case(suite), random_streams);
	tcase_add_loop_test(tc, across, 0, VMPT_ARRAY_SIZE(acrosses));
	tcase_add_test(tc, not_for_lanes);
	suite_add_tcase(suite, tc);
	return suite;
}
