// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * SIGKILL at random moments: a command's output is that of before or the new one, whole; or it is a
 * leftover which the next run replaces.
 */
#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/cli/cli-run.h"
#include "tests/support/support.h"

static struct test_rng rng = { 0x6b696c6c };

static u64 now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (u64)t.tv_sec * 1000000000 + (u64)t.tv_nsec;
}

#define NEVER (~0ULL)

/* Run vmpt and kill it after @ns. Whether it was still running. */
static bool killed(char *const *argv, u64 ns)
{
	const struct timespec wait = { (time_t)(ns / 1000000000), (long)(ns % 1000000000) };
	pid_t pid = fork();
	int status;

	ck_assert_int_ge(pid, 0);
	if (!pid) {
		if (!freopen("/dev/null", "w", stdout) || !freopen("/dev/null", "w", stderr))
			_exit(126);
		execv(getenv("VMPT"), argv);
		_exit(127);
	}
	if (ns != NEVER) {
		nanosleep(&wait, NULL);
		kill(pid, SIGKILL);
	}
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_msg(WIFSIGNALED(status) || !WEXITSTATUS(status), "exit code %d",
		      WEXITSTATUS(status));
	return WIFSIGNALED(status);
}

/* How long the command takes when nothing kills it. */
static u64 duration(char *const *argv)
{
	u64 start = now_ns();

	ck_assert(!killed(argv, NEVER));
	return now_ns() - start;
}

static unsigned int entries(const char *dir)
{
	DIR *d = opendir(dir);
	const struct dirent *e;
	unsigned int n = 0;

	ck_assert_ptr_nonnull(d);
	while ((e = readdir(d)) != NULL)
		n += e->d_name[0] != '.';
	closedir(d);
	return n;
}

static bool same_file(const char *a, const char *b)
{
	size_t m, n;
	u8 *x = test_read_file(a, &m), *y = test_read_file(b, &n);
	bool same = m == n && !memcmp(x, y, n);

	free(x);
	free(y);
	return same;
}

/* Whether @dir holds the streams of split @want, all of them, and no others. */
static bool is_split(const char *dir, const char *want)
{
	static const char *const name[] = { "host.pt", "vmcs-a000.pt", "vmcs-b000.pt",
					    "slices.gz" };
	char a[64], b[64];
	unsigned int i;

	for (i = 0; i < VMPT_ARRAY_SIZE(name); i++) {
		snprintf(a, sizeof(a), "%s/%s", dir, name[i]);
		snprintf(b, sizeof(b), "%s/%s", want, name[i]);
		if (access(a, F_OK) || !same_file(a, b))
			return false;
	}
	return entries(dir) == VMPT_ARRAY_SIZE(name) + 1;
}

START_TEST(split_is_the_old_or_the_new)
{
	static const char *const trace[] = { "a.pt", "b.pt" }, *const want[] = { "a", "b" };
	int i, kills = test_rounds(200, 5), cut = 0;
	u64 most;

	write_mixed_times("a.pt", 2000, 0);
	write_mixed_times("b.pt", 3000, 5);
	ck_assert_int_eq(vmpt("split -o a a.pt")->code, 0);
	ck_assert_int_eq(vmpt("split -o b b.pt")->code, 0);
	ck_assert_int_eq(vmpt("split -o out a.pt")->code, 0);
	most = duration((char *[]){ "vmpt", "split", "-fo", "out", "b.pt", NULL });
	for (i = 0; cut < kills && i < 20 * kills; i++) {
		const char *next = trace[i & 1];

		cut += killed((char *[]){ "vmpt", "split", "-fo", "out", (char *)next, NULL },
			      test_random(&rng) % most);
		if (!access("out/index.json", F_OK))
			ck_assert_msg(is_split("out", want[0]) || is_split("out", want[1]),
				      "round %d: neither split is whole", i);
		else
			ck_assert_int_eq(access("out/.vmpt-split/index.json", F_OK), 0);
		ck_assert_int_eq(vmpt("split -q -fo out %s", next)->code, 0);
		ck_assert(is_split("out", want[i & 1]));
		ck_assert_int_ne(access("out/.vmpt-split", F_OK), 0);
	}
	ck_assert_int_eq(cut, kills);
}
END_TEST

START_TEST(a_page_is_the_old_or_the_new)
{
	static const char *const trace[] = { "a.pt", "b.pt" }, *const want[] = { "a", "b" };
	int i, kills = test_rounds(200, 5), cut = 0;
	u64 most;

	write_mixed_times("a.pt", 200, 0);
	write_mixed_times("b.pt", 300, 5);
	ck_assert_int_eq(vmpt("timeline -q --html=a a.pt")->code, 0);
	ck_assert_int_eq(vmpt("timeline -q --html=b b.pt")->code, 0);
	most = duration((char *[]){ "vmpt", "timeline", "-q", "--html=page", "a.pt", NULL });
	for (i = 0; cut < kills && i < 20 * kills; i++) {
		const char *next = trace[i & 1];

		cut += killed(
			(char *[]){ "vmpt", "timeline", "-q", "--html=page", (char *)next, NULL },
			test_random(&rng) % most);
		ck_assert_msg(same_file("page", want[0]) || same_file("page", want[1]),
			      "round %d: the page is neither", i);
		ck_assert_int_eq(vmpt("timeline -q --html=page %s", next)->code, 0);
		ck_assert(same_file("page", want[i & 1]));
		ck_assert_int_ne(access(".page.vmpt-new", F_OK), 0);
	}
	ck_assert_int_eq(cut, kills);
}
END_TEST

TEST_SUITE()
{
	Suite *suite = suite_create("cli kill");
	TCase *tc = test_long_case(suite);

	tcase_add_checked_fixture(tc, cli_setup, cli_clean);
	tcase_add_test(tc, split_is_the_old_or_the_new);
	tcase_add_test(tc, a_page_is_the_old_or_the_new);
	return suite;
}
