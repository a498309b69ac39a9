// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* Times in text: to text and back, every clock, clocks that were set, bad text. */
#include <check.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cli/sideinfo/when.h"
#include "tests/support/support.h"

#define NS_S 1000000000ULL

/* 2 GHz; 2026-01-31T23:59:50Z when the TSC was 4e9, then a reading each 10 s. */
#define REAL 1769903990ULL
static struct cli_clock_pair pair[] = {
	{ 4000000000, 2 * NS_S, REAL *NS_S },
	{ 24000000000, 12 * NS_S, (REAL + 10) * NS_S },
	{ 44000000000, 22 * NS_S, (REAL + 20) * NS_S },
};

static struct cli_times times_of(unsigned int clock)
{
	return (struct cli_times){
		.zero = 5000000000, .hz = 2e9, .pair = pair, .pairs = 3, .clock = (u8)clock
	};
}

static void zone(const char *tz)
{
	setenv("TZ", tz, 1);
	tzset();
}

static u64 parsed(const struct cli_times *t, const char *text)
{
	char why[160] = "";
	u64 tsc = 0;

	ck_assert_msg(!cli_when_parse(t, text, &tsc, why), "%s: %s", text, why);
	return tsc;
}

START_TEST(b10_forms_of_times)
{
	/* By hand: the start is at 5e9, two ticks a ns. */
	static const struct {
		const char *text;
		u64 tsc;
	} cases[] = {
		{ "0", 5000000000 },
		{ "1", 7000000000 },
		{ "12.5s", 30000000000 },
		{ "12.5ms", 5025000000 },
		{ "12.5us", 5000025000 },
		{ "12.5µs", 5000025000 },
		{ "12ns", 5000000023 },
		{ "0.000000012", 5000000023 },
		{ "tsc:0x12a05f200", 5000000000 },
		{ "tsc:7000000000", 7000000000 },
		{ "tsc:07000000000", 7000000000 },
		/* 23:59:50.5 is half a second after the first reading. */
		{ "2026-01-31T23:59:50.5Z", 5000000000 - 1 + 1 },
		{ "2026-02-01T00:59:50.5+01:00", 5000000000 },
		{ "2026-01-31T18:29:51-05:30", 6000000000 },
		{ "unix:1769903991", 6000000000 },
		{ "unix:1769903991000000000ns", 6000000000 },
		/* A time of day on the recording's day; after midnight on the next. */
		{ "23:59:51", 6000000000 },
		{ "00:00:01", 26000000000 },
		{ "2026-02-01 00:00:01", 26000000000 },
	};
	struct cli_times t = times_of(CLI_WHEN_START);
	s64 ns;
	size_t i;

	zone("UTC");
	for (i = 0; i < VMPT_ARRAY_SIZE(cases); i++) {
		u64 tsc = parsed(&t, cases[i].text);

		/* The first tick that is printed so: at most half a ns earlier. */
		ck_assert_msg(tsc <= cases[i].tsc + 1 && tsc + 2 >= cases[i].tsc, "%s: %llu",
			      cases[i].text, (unsigned long long)tsc);
	}
	ck_assert(cli_when_ns(&t, CLI_WHEN_WALL, 4000000000, &ns, NULL));
	ck_assert_int_eq(ns, (s64)(REAL * NS_S));
}
END_TEST

/* The other direction; Paris is an hour ahead in January. */
START_TEST(b6_wall_clock_in_text)
{
	struct cli_times t = times_of(CLI_WHEN_WALL);
	char buf[CLI_WHEN];

	zone("UTC");
	ck_assert_str_eq(cli_when_text(&t, 5000000002, buf), "23:59:50.500000001");
	ck_assert_str_eq(cli_when_whole(&t, 5000000002, buf),
			 "2026-01-31T23:59:50.500000001+00:00");
	ck_assert_str_eq(cli_when_title(&t, buf), "TIME (UTC)");
	zone("CET-1");
	ck_assert_str_eq(cli_when_text(&t, 5000000002, buf), "00:59:50.500000001");
	ck_assert_str_eq(cli_when_whole(&t, 5000000002, buf),
			 "2026-02-01T00:59:50.500000001+01:00");
	ck_assert_str_eq(cli_when_title(&t, buf), "TIME (CET)");
	ck_assert_uint_eq(parsed(&t, "2026-02-01T00:59:51"), parsed(&t, "2026-01-31T23:59:51Z"));
	/* Before the first reading and after the last one */
	ck_assert_str_eq(cli_when_text(&t, 2000000000, buf), "00:59:49.000000000");
	ck_assert_str_eq(cli_when_text(&t, 46000000000, buf), "01:00:11.000000000");
}
END_TEST

/* What is printed is found again: the same text, not after the time it was printed for. */
START_TEST(b10_printed_times_are_pasted)
{
	const struct vmpt_trace_info info = {
		.has_time_conv = true, .time_shift = 31, .time_mult = 1073741824, .time_zero = 12345
	};
	struct test_rng rng = { 1 };
	unsigned int clock, i;

	zone("CET-1");
	for (clock = 0; clock < CLI_WHENS; clock++)
		for (i = 0; i < 2000; i++) {
			struct cli_times t = times_of(clock);
			u64 tsc = 5000000000 + test_random(&rng) % 40000000000, back;
			char text[CLI_WHEN], again[CLI_WHEN], whole[CLI_WHEN];

			t.info = &info;
			t.hz = 1e9 + (double)(i * 1234567);
			cli_when_whole(&t, tsc, whole);
			cli_when_text(&t, tsc, text);
			back = parsed(&t, whole);
			ck_assert_uint_le(back, tsc);
			ck_assert_str_eq(cli_when_text(&t, back, again), text);
			ck_assert_str_ne(cli_when_text(&t, back - 1, again), text);
			if (clock == CLI_WHEN_WALL)
				ck_assert_uint_eq(parsed(&t, text), back);
		}
}
END_TEST

/* The clock was set back by an hour between the second and the third reading: times there say so.
 */
START_TEST(b10_clock_that_was_set)
{
	struct cli_clock_pair set[3];
	struct cli_times t = times_of(CLI_WHEN_WALL);
	char buf[CLI_WHEN];
	bool doubt;
	s64 ns;

	zone("UTC");
	memcpy(set, pair, sizeof(set));
	set[2].real_ns -= 3600 * NS_S;
	t.pair = set;
	ck_assert_str_eq(cli_when_text(&t, 14000000000, buf), "23:59:55.000000000");
	ck_assert_str_eq(cli_when_text(&t, 26000000000, buf), "00:00:01.000000000?");
	ck_assert_str_eq(cli_when_text(&t, 42000000000, buf), "23:00:09.000000000?");
	ck_assert_str_eq(cli_when_text(&t, 46000000000, buf), "23:00:11.000000000");
	ck_assert(cli_when_ns(&t, CLI_WHEN_WALL, 42000000000, &ns, &doubt) && doubt);
	ck_assert(cli_when_ns(&t, CLI_WHEN_WALL, 14000000000, &ns, &doubt) && !doubt);
	/* Also given with the mark */
	ck_assert_uint_eq(parsed(&t, "00:00:01.000000000?"), parsed(&t, "00:00:01"));
	ck_assert_uint_le(parsed(&t, "2026-01-31T23:00:09Z"), 42000000000);
	ck_assert_uint_ge(parsed(&t, "2026-01-31T23:00:09Z"), 41999999990);
	/* Slewing is no setting: 500 ppm of 10 s. */
	set[2].real_ns = pair[2].real_ns + 5000000;
	ck_assert(cli_when_ns(&t, CLI_WHEN_WALL, 42000000000, &ns, &doubt) && !doubt);
}
END_TEST

START_TEST(b10_bad_times)
{
	static const char *const bad[] = {
		"",
		"x",
		"-1",
		"+1",
		"1e3",
		"1.",
		".5",
		"1 s",
		"1m",
		"1h",
		"inf",
		"nan",
		"0x10",
		"perf:",
		"perf:-1",
		"perf:x",
		"unix:",
		"tsc:",
		"tsc:zz",
		"24:00:00",
		"12:60",
		"12:00:61",
		"12:",
		"12:00:00 ",
		"12:00:00Z",
		"2026-02-01",
		"2026-02-01T",
		"2026-13-01T00:00:00Z",
		"2026-02-32T00:00:00Z",
		"2026-02-29T00:00:00Z",
		"2026-02-30T00:00:00",
		"2026-04-31T00:00:00+01:00",
		"2026-02-00T00:00:00Z",
		"2026-02-01T00:00:00+1",
		"2026-02-01T00:00:00+01:60",
		"1969-01-01T00:00:00Z",
		"99999999999999999999",
		"99999999999s",
		"tsc:0xffffffffffffffff",
	};
	struct cli_times t = times_of(CLI_WHEN_START);
	char why[160];
	size_t i;
	u64 tsc;

	zone("UTC");
	for (i = 0; i < VMPT_ARRAY_SIZE(bad); i++) {
		why[0] = '\0';
		ck_assert_msg(cli_when_parse(&t, bad[i], &tsc, why), "'%s' is taken for %llu",
			      bad[i], (unsigned long long)tsc);
		ck_assert_msg(why[0], "'%s': not a word", bad[i]);
	}
	/* Clocks that the trace does not have */
	ck_assert_int_ne(cli_when_parse(&t, "perf:1", &tsc, why), 0);
	ck_assert_ptr_nonnull(strstr(why, "perf's time"));
	t.pairs = 0;
	ck_assert_int_ne(cli_when_parse(&t, "12:00:00", &tsc, why), 0);
	ck_assert_ptr_nonnull(strstr(why, "wall clock"));
	t.hz = 0;
	ck_assert_int_ne(cli_when_parse(&t, "1s", &tsc, why), 0);
	ck_assert_ptr_nonnull(strstr(why, "--tsc-khz"));
	ck_assert_uint_eq(parsed(&t, "17"), 5000000017);
}
END_TEST

TEST_SUITE()
{
	Suite *s = suite_create("when");
	TCase *tc = tcase_create("times");

	tcase_add_test(tc, b10_forms_of_times);
	tcase_add_test(tc, b6_wall_clock_in_text);
	tcase_add_test(tc, b10_printed_times_are_pasted);
	tcase_add_test(tc, b10_clock_that_was_set);
	tcase_add_test(tc, b10_bad_times);
	suite_add_tcase(s, tc);
	return s;
}
