/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* Used by every Check test of the project: main, skipping, real traces. */
#ifndef VMPT_TESTS_SUPPORT_H
#define VMPT_TESTS_SUPPORT_H

#include <check.h>
#include <string.h>

#include "arch/types.h"

#define ck_has(text, word)   ck_assert_msg(strstr(text, word) != NULL, "no '%s' in: %s", word, text)
#define ck_lacks(text, word) ck_assert_msg(!strstr(text, word), "'%s' in: %s", word, text)

/*
 * A test file defines its suite, and main.c has main():
 *
 *	TEST_SUITE()
 *	{
 *		Suite *suite = suite_create("arch/topa");
 *		...
 *		return suite;
 *	}
 *
 * A program may hold the suites of many files. It runs those that its arguments name, or all; a
 * suite that cannot run here calls test_skip() with the reason and is NULL. "test-topa.c" has
 * the suite "topa". "--soak" lists those that "make soak" runs.
 */
#define TEST_SUITE()                                                  \
	static Suite *test_suite_make(void);                          \
	__attribute__((constructor)) static void test_suite_add(void) \
	{                                                             \
		test_register(__FILE__, test_suite_make);             \
	}                                                             \
	static Suite *test_suite_make(void)

void test_register(const char *file, Suite *(*make)(void));

/* Every case counts its checks, for test_skip(). */
TCase *test_case(const char *name);
#define tcase_create test_case

/*
 * A new case of @suite for tests of random input: "make test" runs them under the sanitizers only,
 * "make soak" for VMPT_SOAK seconds.
 */
TCase *test_random_case(Suite *suite);

/* A case for tests that test_rounds() shortens in "make test"; "make soak" runs them completely. */
TCase *test_long_case(Suite *suite);

/* How many rounds to do: @all in a soak, else @few. */
int test_rounds(int all, int few);

/*
 * Print that (a part of) a test is skipped and why; the runner counts the line "skipped: …", once
 * per check ("and skipped: …" names further parts). A check that skipped a part counts as skipped.
 */
void test_skip(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/*
 * Path of a real trace ("guest-mruby.pt"), or NULL after test_skip() when the folder of shared data
 * is missing. $VMPT_DATA, else ../shared/data/real beside the checkout. Static memory, overwritten
 * by the next call.
 */
const char *test_data(const char *name);

/* Path of a file of the source tree. Static memory, good for four calls. */
const char *test_source(const char *name);
extern const char *const test_root;

/* A whole file in memory; the test fails if it cannot be read. free() it. */
u8 *test_read_file(const char *path, size_t *size);

/*
 * A new folder in $TMPDIR, else in /tmp. Returns its name: static memory. One at a time.
 * test_dir_remove() removes it with all that is in it.
 */
const char *test_dir_make(void);
void test_dir_remove(void);
/* A new file in it with @n bytes. Returns its path: static memory, good for four calls. */
const char *test_dir_file(const char *name, const void *bytes, size_t n);

/* A deterministic random generator: same seed, same numbers. */
struct test_rng {
	u64 state;
};

u64 test_random(struct test_rng *rng);

#endif
