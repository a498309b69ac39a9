// SPDX-License-Identifier: GPL-2.0-only OR MIT
#include <errno.h>
#include <ftw.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/support/support.h"
#include "util/hash.h"

/*
 * Check's time limits are the wall clock's and trip on a busy machine; tests/support/limited has
 * better ones. And perf must not use the user's settings.
 */
__attribute__((constructor)) static void prepare(void)
{
	setenv("CK_DEFAULT_TIMEOUT", "0", 0);
	setenv("CK_TIMEOUT_MULTIPLIER", "0", 0);
	setenv("PERF_CONFIG", "/dev/null", 1);
}

static unsigned int checks;

static void next_check(void)
{
	checks++;
}

#undef tcase_create
TCase *test_case(const char *name)
{
	TCase *tc = tcase_create(name);

	tcase_add_checked_fixture(tc, next_check, NULL);
	return tc;
}

void test_skip(const char *fmt, ...)
{
	/* The runner must count a check once, whether or not it has a process of its own. */
	static unsigned int said_by;
	va_list args;

	va_start(args, fmt);
	printf(said_by == checks ? "and skipped: " : "skipped: ");
	said_by = checks;
	vprintf(fmt, args);
	printf("\n");
	fflush(stdout);
	va_end(args);
}

const char *test_data(const char *name)
{
	static char path[4096];
	const char *dir = getenv("VMPT_DATA");

	if (dir)
		snprintf(path, sizeof(path), "%s/%s", dir, name);
	else
		snprintf(path, sizeof(path), "%s/../shared/data/real/%s", test_root, name);
	if (!access(path, R_OK))
		return path;
	test_skip("%s is missing", name);
	return NULL;
}

const char *test_source(const char *name)
{
	static char paths[4][4096];
	static unsigned int next;
	char *path = paths[next++ % 4];

	snprintf(path, sizeof(paths[0]), "%s/%s", test_root, name);
	return path;
}

static char dir[4096];

const char *test_dir_make(void)
{
	const char *tmp = getenv("TMPDIR");

	snprintf(dir, sizeof(dir), "%s/vmpt-test-XXXXXX", tmp && *tmp ? tmp : "/tmp");
	ck_assert_msg(mkdtemp(dir) != NULL, "%s: %s", dir, strerror(errno));
	return dir;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st;
	(void)type;
	(void)ftw;
	return remove(path);
}

void test_dir_remove(void)
{
	ck_assert_int_eq(nftw(dir, remove_one, 8, FTW_DEPTH | FTW_PHYS), 0);
}

const char *test_dir_file(const char *name, const void *bytes, size_t n)
{
	static char paths[4][sizeof(dir) + 256];
	static unsigned int next;
	char *path = paths[next++ % 4];
	FILE *f;

	snprintf(path, sizeof(paths[0]), "%s/%s", dir, name);
	f = fopen(path, "wb");
	ck_assert_msg(f != NULL, "%s: %s", path, strerror(errno));
	ck_assert_uint_eq(fwrite(bytes, 1, n, f), n);
	ck_assert_int_eq(fclose(f), 0);
	return path;
}

u8 *test_read_file(const char *path, size_t *size)
{
	FILE *f = fopen(path, "rb");
	u8 *buf;
	long n;

	ck_assert_msg(f != NULL, "cannot open %s", path);
	ck_assert_int_eq(fseek(f, 0, SEEK_END), 0);
	n = ftell(f);
	ck_assert_int_ge(n, 0);
	rewind(f);
	buf = malloc((size_t)n + 1);
	ck_assert_ptr_nonnull(buf);
	ck_assert_uint_eq(fread(buf, 1, (size_t)n, f), (size_t)n);
	fclose(f);
	*size = (size_t)n;
	return buf;
}

/* splitmix64 */
u64 test_random(struct test_rng *rng)
{
	return vmpt_mix64(rng->state += 0x9e3779b97f4a7c15ULL);
}
