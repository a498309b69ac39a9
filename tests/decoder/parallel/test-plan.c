// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * decoder/parallel/plan.c: spans of small streams, worked out by hand. A PSB is one byte, 'P', so
 * that the search for one needs no room of PT or RTIT.
 */
#include "decoder/parallel/parallel.h"
#include "tests/support/support.h"

static u64 find(const u8 *data, u64 from, u64 end)
{
	while (from < end && data[from] != 'P')
		from++;
	return from;
}

#define SPANS 8

/* Where PSBs and gaps are, and the spans: where they begin and end. */
static const struct row {
	const char *name;
	u64 size, psb[4], gap[3]; /* of the stream; ~0 ends a list */
	bool headless;
	struct span {
		u64 start, end;
		char flags; /* f first, g first and after a gap, c carry, 0 none of them */
		u64 head;
	} span[SPANS]; /* a span of which all is 0 ends them */
} rows[] = {
	{ "PSBs that are due",
	  64,
	  { 0, 20, 40, ~0ULL },
	  { ~0ULL },
	  false,
	  { { 0, 20, 'f', 0 }, { 20, 40, 0, 0 }, { 40, 64, 0, 0 } } },
	{ "PSBs that come before one is due",
	  64,
	  { 0, 8, 15, ~0ULL },
	  { ~0ULL },
	  false,
	  { { 0, 64, 'f', 0 } } },
	{ "bytes before the first PSB",
	  40,
	  { 5, 30, ~0ULL },
	  { ~0ULL },
	  false,
	  { { 5, 30, 'f', 0 }, { 30, 40, 0, 0 } } },
	{ "the same, but a packet begins at the first byte",
	  40,
	  { 5, 30, ~0ULL },
	  { ~0ULL },
	  true,
	  { { 0, 30, 'f', 0 }, { 30, 40, 0, 0 } } },
	{ "no PSB: all is lost", 40, { ~0ULL }, { ~0ULL }, false, { { 40, 40, 'f', 0 } } },
	{ "a gap, after which packets begin at a PSB",
	  64,
	  { 0, 33, ~0ULL },
	  { 30, ~0ULL },
	  false,
	  { { 0, 30, 'f', 0 }, { 33, 64, 'g', 30 } } },
	{ "a PSB right at a gap, and two gaps at one place",
	  64,
	  { 0, 30, ~0ULL },
	  { 30, 30, ~0ULL },
	  false,
	  { { 0, 30, 'f', 0 }, { 30, 64, 'g', 30 } } },
	{ "gaps at the start and at the end",
	  20,
	  { 0, ~0ULL },
	  { 0, 20, ~0ULL },
	  false,
	  { { 0, 20, 'g', 0 } } },
	{ "an empty stream", 0, { ~0ULL }, { ~0ULL }, false, { { 0, 0, 0, 0 } } },
};

static void check_span(const struct vmpt_stretch *got, const struct span *want, const char *name)
{
	ck_assert_msg(got->start == want->start && got->end == want->end, "%s: %llu to %llu", name,
		      (unsigned long long)got->start, (unsigned long long)got->end);
	ck_assert_msg(got->first == (want->flags == 'f' || want->flags == 'g'), "%s: first", name);
	ck_assert_msg(got->carry == (want->flags == 'c'), "%s: carry", name);
	if (got->first)
		ck_assert_msg(got->gap == (want->flags == 'g') && got->head == want->head,
			      "%s: after a gap %d, head %llu", name, got->gap,
			      (unsigned long long)got->head);
}

START_TEST(spans)
{
	const struct row *row = &rows[_i];
	struct vmpt_gap gaps[3] = { 0 };
	u8 bytes[64] = { 0 };
	struct vmpt_stream stream = { .data = bytes, .size = row->size, .gaps = gaps };
	struct vmpt_planner plan = {
		.stream = &stream,
		.psb_find = find,
		.size = 16,
		.psb_window = 64,
		.headless = row->headless,
	};
	struct vmpt_stretch span;
	size_t i;

	for (i = 0; row->psb[i] != ~0ULL; i++)
		bytes[row->psb[i]] = 'P';
	for (i = 0; row->gap[i] != ~0ULL; i++)
		gaps[stream.gap_count++].offset = row->gap[i];
	vmpt_plan_start(&plan);
	for (i = 0; row->span[i].end; i++) {
		ck_assert_msg(vmpt_plan_next(&plan, &span), "%s: span %zu", row->name, i);
		check_span(&span, &row->span[i], row->name);
		ck_assert_msg(!vmpt_plan_go_on(&plan, span.end), "%s: span %zu", row->name, i);
	}
	ck_assert_msg(!vmpt_plan_next(&plan, &span), "%s: another span", row->name);
}
END_TEST

/*
 * No PSB within the window after the end that is due: the span ends there, and the next one begins
 * where its last packet ends. A PSB further on is one again.
 */
START_TEST(no_psb_in_the_window)
{
	static const struct span want[] = {
		{ 0, 16, 'f', 0 }, { 18, 34, 'c', 0 }, { 36, 70, 'c', 0 }, { 70, 80, 0, 0 }
	};
	u8 bytes[80] = { [0] = 'P', [70] = 'P' };
	struct vmpt_stream stream = { .data = bytes, .size = sizeof(bytes) };
	struct vmpt_planner plan = {
		.stream = &stream, .psb_find = find, .size = 16, .psb_window = 20
	};
	struct vmpt_stretch span;
	size_t i;

	vmpt_plan_start(&plan);
	for (i = 0; i < VMPT_ARRAY_SIZE(want); i++) {
		ck_assert(vmpt_plan_next(&plan, &span));
		check_span(&span, &want[i], "window");
		if (i < 2) {
			/* Nothing more before all of it is decoded. */
			ck_assert(!vmpt_plan_next(&plan, &span));
			ck_assert(vmpt_plan_go_on(&plan, want[i + 1].start));
		}
		ck_assert(!vmpt_plan_go_on(&plan, 0));
	}
	ck_assert(!vmpt_plan_next(&plan, &span));
}
END_TEST

START_TEST(sizes_have_limits)
{
	static const size_t given[] = { 0, 15, 16, 1 << 20, (1 << 20) + 1, ~(size_t)0 };
	static const size_t want[] = { 16, 16, 16, 1 << 20, 1 << 20, 1 << 20 };
	const struct vmpt_stream stream = { 0 };
	struct vmpt_planner plan = { .stream = &stream, .size = given[_i] };

	vmpt_plan_start(&plan);
	ck_assert_uint_eq(plan.size, want[_i]);
}
END_TEST

TEST_SUITE()
{
	Suite *s = suite_create("decoder/plan");
	TCase *t = tcase_create("plan");

	tcase_add_loop_test(t, spans, 0, VMPT_ARRAY_SIZE(rows));
	tcase_add_test(t, no_psb_in_the_window);
	tcase_add_loop_test(t, sizes_have_limits, 0, 6);
	suite_add_tcase(s, t);
	return s;
}
