// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* Run by test-runner.sh: three checks, the second of which does what RUNNER_DOES says. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/support/support.h"

static int times;

START_TEST(before)
{
	times++;
}
END_TEST

START_TEST(the_bad_one)
{
	const char *does = getenv("RUNNER_DOES");
	volatile char *memory = malloc(8);
	volatile int at = 8;

	ck_assert_ptr_nonnull(does);
	if (!strcmp(does, "fail"))
		ck_abort_msg("as wanted");
	if (!strcmp(does, "crash"))
		*(volatile char *)(size_t)at = 0;
	while (!strcmp(does, "hang"))
		pause();
	while (!strcmp(does, "loop"))
		times++;
	if (!strcmp(does, "overflow"))
		memory[at] = 0;
	if (!strcmp(does, "leak"))
		memory = NULL;
	if (!strcmp(does, "lean"))
		ck_assert_int_eq(times, 0);
	if (!strcmp(does, "skip"))
		test_skip("as wanted");
	free((void *)memory);
}
END_TEST

START_TEST(after)
{
}
END_TEST

TEST_SUITE()
{
	Suite *suite = suite_create("runner");
	TCase *tc = tcase_create("runner");

	tcase_add_test(tc, before);
	tcase_add_test(tc, the_bad_one);
	tcase_add_test(tc, after);
	suite_add_tcase(suite, tc);
	return suite;
}
