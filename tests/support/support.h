/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* What every Check test of the project uses: its main, skipping, real traces. */
#ifndef VMPT_TESTS_SUPPORT_H
#define VMPT_TESTS_SUPPORT_H

#include <check.h>

#include "arch/types.h"

/* Run @suite, print Check's summary; the exit code for main(). */
int test_main(Suite *suite);

/*
 * Say on stdout that (a part of) a test is skipped and why; the runner counts
 * the line "skipped: …", once per check ("and skipped: …" tells further parts).
 * A check that skipped a part counts as skipped.
 */
void test_skip(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/*
 * Path of a real trace ("guest-mruby.pt"), or NULL after test_skip() when the folder
 * of shared data is not there. $VMPT_DATA, else ../shared/data/real beside the
 * checkout. Static memory, overwritten by the next call.
 */
const char *test_data(const char *name);

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
