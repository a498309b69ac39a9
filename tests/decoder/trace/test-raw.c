// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* decoder/trace/raw.c, file-map.c and the parts of trace.c that all readers share. */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "decoder/trace/trace.h"
#include "tests/support/support.h"

static const char *dir;
static char *tmpdir;
static int own_stdin;

static void setup(void)
{
	const char *now = getenv("TMPDIR");

	tmpdir = now ? strdup(now) : NULL;
	own_stdin = dup(STDIN_FILENO);
	ck_assert_int_ge(own_stdin, 0);
	dir = test_dir_make();
	ck_assert_int_eq(setenv("TMPDIR", dir, 1), 0);
}

static void teardown(void)
{
	test_dir_remove();
	ck_assert_int_eq(dup2(own_stdin, STDIN_FILENO), STDIN_FILENO);
	close(own_stdin);
	ck_assert_int_eq(tmpdir ? setenv("TMPDIR", tmpdir, 1) : unsetenv("TMPDIR"), 0);
	free(tmpdir);
}

static bool dir_is_empty(void)
{
	struct dirent **names;
	int n = scandir(dir, &names, NULL, NULL);

	ck_assert_int_ge(n, 0);
	for (int i = 0; i < n; i++)
		free(names[i]);
	free(names);
	return n == 2; /* "." and ".." */
}

static void check_stream(const struct vmpt_stream *s, const void *bytes, size_t n, int cpu)
{
	ck_assert_uint_eq(s->size, n);
	ck_assert_mem_eq(s->data, bytes, n);
	ck_assert_int_eq(s->cpu, cpu);
	ck_assert_int_eq(s->tid, -1);
	ck_assert_uint_eq(s->gap_count, 0);
	ck_assert_uint_eq(vmpt_stream_file_offset(s, 0), 0);
	ck_assert_uint_eq(vmpt_stream_file_offset(s, n), n);
}

START_TEST(files_are_streams_of_their_cpus)
{
	struct vmpt_trace *t;
	struct vmpt_diag diag;

	ck_assert_int_eq(vmpt_trace_open(&t, test_dir_file("a", "\2\202abc", 5), 3, &diag), 0);
	ck_assert_str_eq(diag.text, "");
	ck_assert_int_eq(vmpt_trace_add_raw(t, test_dir_file("b", "wxyz", 4), 1, &diag), 0);
	ck_assert_int_eq(vmpt_trace_add_raw(t, test_dir_file("c", "", 0), -7, &diag), 0);
	ck_assert_uint_eq(vmpt_trace_streams(t), 3);
	check_stream(vmpt_trace_stream(t, 0), "\2\202abc", 5, 3);
	check_stream(vmpt_trace_stream(t, 1), "wxyz", 4, 1);
	check_stream(vmpt_trace_stream(t, 2), "", 0, -1);
	ck_assert_ptr_null(vmpt_trace_stream(t, 3));
	ck_assert_int_eq(vmpt_trace_info(t)->format, VMPT_TRACE_RAW);
	ck_assert(!vmpt_trace_info(t)->has_time_conv);
	vmpt_trace_close(t);
}
END_TEST

START_TEST(an_empty_file_is_an_empty_stream)
{
	struct vmpt_trace *t;

	ck_assert_int_eq(vmpt_trace_open(&t, test_dir_file("a", "", 0), 0, NULL), 0);
	ck_assert_uint_eq(vmpt_trace_streams(t), 1);
	check_stream(vmpt_trace_stream(t, 0), "", 0, 0);
	ck_assert_ptr_nonnull(vmpt_trace_stream(t, 0)->data);
	vmpt_trace_close(t);
}
END_TEST

/* Longer than a pipe holds and than one read takes */
START_TEST(a_pipe_is_copied_and_leaves_no_file)
{
	enum { SIZE = 300001 };
	struct test_rng rng = { 1 };
	struct vmpt_trace *t;
	char path[64];
	u8 *bytes = malloc(SIZE);
	int fds[2], stdin_too;
	size_t i;

	for (i = 0; i < SIZE; i++)
		bytes[i] = (u8)test_random(&rng);
	for (stdin_too = 0; stdin_too < 2; stdin_too++) {
		ck_assert_int_eq(pipe(fds), 0);
		if (!fork()) {
			for (i = 0; i < SIZE;) {
				ssize_t n = write(fds[1], bytes + i, SIZE - i);

				if (n < 0)
					_exit(1);
				i += (size_t)n;
			}
			_exit(0);
		}
		close(fds[1]);
		snprintf(path, sizeof(path), "/dev/fd/%d", fds[0]);
		if (stdin_too) {
			ck_assert_int_eq(dup2(fds[0], 0), 0);
			strcpy(path, "-");
		}
		ck_assert_int_eq(vmpt_trace_open(&t, path, 5, NULL), 0);
		ck_assert_msg(dir_is_empty(), "a temporary file was left");
		check_stream(vmpt_trace_stream(t, 0), bytes, SIZE, 5);
		vmpt_trace_close(t);
		close(fds[0]);
	}
	free(bytes);
}
END_TEST

START_TEST(standard_input_may_be_a_file)
{
	struct vmpt_trace *t;

	ck_assert_ptr_nonnull(freopen(test_dir_file("a", "abcd", 4), "rb", stdin));
	ck_assert_int_eq(vmpt_trace_open_raw(&t, "-", -1, NULL), 0);
	check_stream(vmpt_trace_stream(t, 0), "abcd", 4, -1);
	vmpt_trace_close(t);
	/* Parts read before are not part of the trace. */
	ck_assert_int_eq(lseek(0, 1, SEEK_SET), 1);
	ck_assert_int_eq(vmpt_trace_open_raw(&t, "-", -1, NULL), 0);
	check_stream(vmpt_trace_stream(t, 0), "bcd", 3, -1);
	vmpt_trace_close(t);
}
END_TEST

START_TEST(what_is_no_file_is_an_error)
{
	struct vmpt_trace *t = (void *)1;
	struct vmpt_diag diag;
	char path[4200];

	ck_assert_int_eq(vmpt_trace_open(&t, dir, -1, &diag), -VMPT_E_IO);
	ck_assert_ptr_null(t);
	ck_assert_ptr_nonnull(strstr(diag.text, "directory"));
	snprintf(path, sizeof(path), "%s/none", dir);
	ck_assert_int_eq(vmpt_trace_open_raw(&t, path, -1, &diag), -VMPT_E_IO);
	ck_assert_ptr_nonnull(strstr(diag.text, strerror(ENOENT)));
	ck_assert_int_eq(vmpt_trace_open_raw(&t, path, -1, NULL), -VMPT_E_IO);
}
END_TEST

START_TEST(a_bad_tmpdir_is_named)
{
	struct vmpt_trace *t;
	struct vmpt_diag diag;
	int fds[2];

	ck_assert_int_eq(pipe(fds), 0);
	close(fds[1]);
	ck_assert_int_eq(dup2(fds[0], 0), 0);
	ck_assert_int_eq(setenv("TMPDIR", "/nowhere/at/all", 1), 0);
	ck_assert_int_eq(vmpt_trace_open(&t, "-", -1, &diag), -VMPT_E_IO);
	ck_assert_ptr_nonnull(strstr(diag.text, "/nowhere/at/all"));
}
END_TEST

/* Sparse: 1 TiB, far more than the memory of the machines this runs on */
START_TEST(a_file_may_be_larger_than_memory)
{
	const u64 size = 1ULL << 40;
	const char *path = test_dir_file("a", "", 0);
	struct vmpt_trace *t;
	FILE *f;

	if (truncate(path, (off_t)size)) {
		test_skip("no sparse file of 1 TiB here");
		return;
	}
	f = fopen(path, "r+b");
	ck_assert_int_eq(fseeko(f, -2, SEEK_END), 0);
	fputs("ab", f);
	fclose(f);
	ck_assert_int_eq(vmpt_trace_open(&t, path, -1, NULL), 0);
	ck_assert_uint_eq(vmpt_trace_stream(t, 0)->size, size);
	ck_assert_mem_eq(vmpt_trace_stream(t, 0)->data + size - 2, "ab", 2);
	vmpt_trace_close(t);
}
END_TEST

/* floor(tsc * mult / 2^shift) + zero, in 128 bits */
START_TEST(tsc_becomes_perf_time)
{
	struct test_rng rng = { 3 };
	int i;

	for (i = 0; i < 10000; i++) {
		struct vmpt_trace_info info = { .time_shift = (u16)(test_random(&rng) % 33),
						.time_mult = (u32)test_random(&rng),
						.time_zero = test_random(&rng) };
		u64 tsc = test_random(&rng) >> (test_random(&rng) % 40);
		unsigned __int128 ns = (unsigned __int128)tsc * info.time_mult >> info.time_shift;

		ck_assert_uint_eq(vmpt_tsc_to_perf_time(&info, tsc), (u64)ns + info.time_zero);
	}
}
END_TEST

TEST_SUITE()
{
	Suite *s = suite_create("decoder/reader-raw");
	TCase *t = tcase_create("raw");

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, files_are_streams_of_their_cpus);
	tcase_add_test(t, an_empty_file_is_an_empty_stream);
	tcase_add_test(t, a_pipe_is_copied_and_leaves_no_file);
	tcase_add_test(t, standard_input_may_be_a_file);
	tcase_add_test(t, what_is_no_file_is_an_error);
	tcase_add_test(t, a_bad_tmpdir_is_named);
	tcase_add_test(t, a_file_may_be_larger_than_memory);
	tcase_add_test(t, tsc_becomes_perf_time);
	suite_add_tcase(s, t);
	return s;
}
