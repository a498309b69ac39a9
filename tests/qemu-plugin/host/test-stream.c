// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Streams of RTIT's host view by themselves: the owners of bytes when runs are lost and when a QEMU
 * is killed. The test has its own side record.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "qemu-plugin/host/record.h"
#include "qemu-plugin/host/stream.h"
#include "tests/support/support.h"

#define RECORDS 8

static struct {
	char dir[64];
	struct options options;
	struct vmpt_unit_config config;
	struct host_stream_settings settings;
	u8 room[HOST_ROOM];
	u64 tsc;
	/* the side record */
	struct vmpt_rtit_record record[RECORDS];
	unsigned int records;
	int refuse;  /* result of adding a line */
	bool killed; /* adding a line ends the process */
} t;

/* ---- in place of host/record.c ---- */

int host_record_run(int fd, const struct vmpt_rtit_record *who)
{
	(void)fd;
	if (t.killed)
		_exit(9);
	if (t.refuse)
		return t.refuse;
	ck_assert_uint_lt(t.records, RECORDS);
	t.record[t.records++] = *who;
	return 0;
}

u64 host_record_key(const struct vmpt_rtit_record *who)
{
	return who->vcpu + 1;
}

/* ---- a folder, runs ---- */

static void setup(void)
{
	snprintf(t.dir, sizeof(t.dir), "/tmp/vmpt-host-stream.XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(t.dir));
	t.options = (struct options){ .rtit = true, .host_view = t.dir, .ctl = 0xc };
	t.settings = (struct host_stream_settings){ .options = &t.options,
						    .config = &t.config,
						    .vm = "test" };
	signal(SIGXFSZ, SIG_IGN);
}

static void teardown(void)
{
	char path[96];

	snprintf(path, sizeof(path), "%s/cpu0.rtit", t.dir);
	unlink(path);
	snprintf(path, sizeof(path), "%s/cpu0.state", t.dir);
	unlink(path);
	rmdir(t.dir);
}

static struct host_stream *open_stream(void)
{
	struct host_stream *stream = host_stream_open(&t.settings, 0);

	ck_assert_ptr_nonnull(stream);
	return stream;
}

/* A run of @vcpu: @n bytes with its number. */
static void run(struct host_stream *stream, u32 vcpu, size_t n)
{
	struct host_run run = { .room = t.room, .used = n };

	memset(t.room + HOST_ROOM_HEAD, (int)vcpu, n);
	run.entry.target = 0x401000;
	run.begin.tsc = t.tsc += 10;
	run.end.tsc = t.tsc += 10;
	run.who.vm = "test";
	run.who.vcpu = vcpu;
	host_stream_append(stream, &run);
}

static size_t size(void)
{
	struct stat st;
	char path[96];

	snprintf(path, sizeof(path), "%s/cpu0.rtit", t.dir);
	ck_assert_int_eq(stat(path, &st), 0);
	return (size_t)st.st_size;
}

static void expect_record(unsigned int n, u32 vcpu, u64 offset)
{
	ck_assert_uint_lt(n, t.records);
	ck_assert_uint_eq(t.record[n].vcpu, vcpu);
	ck_assert_uint_eq(t.record[n].offset, offset);
}

/* A run of @vcpu without room. The limit must not apply to the test's own files. */
static void lose(struct host_stream *stream, u32 vcpu)
{
	struct rlimit limit = { .rlim_cur = 65536, .rlim_max = RLIM_INFINITY };
	int err = setrlimit(RLIMIT_FSIZE, &limit);

	run(stream, vcpu, 100000);
	limit.rlim_cur = RLIM_INFINITY;
	err |= setrlimit(RLIMIT_FSIZE, &limit);
	ck_assert_int_eq(err, 0);
}

/* ---- tests ---- */

START_TEST(runs_are_somebodys)
{
	struct host_stream *stream = open_stream();

	run(stream, 1, 100);
	run(stream, 1, 50);
	run(stream, 2, 30);
	run(stream, 1, 10);
	host_stream_close(stream);
	ck_assert_uint_eq(size(), 190);
	ck_assert_uint_eq(t.records, 3);
	expect_record(0, 1, 0);
	expect_record(1, 2, 150);
	expect_record(2, 1, 180);
}
END_TEST

/* No run comes after the loss: its mark belongs to the vCPU that lost it. */
START_TEST(last_loss)
{
	struct host_stream *stream = open_stream();

	run(stream, 1, 100);
	lose(stream, 2);
	ck_assert_uint_eq(size(), 100);
	host_stream_close(stream);
	ck_assert_uint_gt(size(), 100);
	ck_assert_uint_eq(t.records, 2);
	expect_record(1, 2, 100);
}
END_TEST

/* The mark of a loss whose line cannot be written is not in the stream. */
START_TEST(last_loss_without_a_line)
{
	struct host_stream *stream = open_stream();

	run(stream, 1, 100);
	lose(stream, 2);
	t.refuse = -ENOSPC;
	host_stream_close(stream);
	ck_assert_uint_eq(size(), 100);
	ck_assert_uint_eq(t.records, 1);
	/* The next run marks it, as its own. */
	t.refuse = 0;
	stream = open_stream();
	run(stream, 3, 50);
	host_stream_close(stream);
	ck_assert_uint_gt(size(), 150);
	ck_assert_uint_eq(t.records, 2);
	expect_record(1, 3, 100);
}
END_TEST

/* A kill between a run's bytes and its line: the bytes have no owner and are cut off. */
START_TEST(killed_before_the_line)
{
	struct host_stream *stream = open_stream();
	pid_t child;
	int status;

	run(stream, 1, 100);
	host_stream_close(stream);
	child = fork();
	ck_assert_int_ge(child, 0);
	if (!child) {
		stream = open_stream();
		t.killed = true;
		run(stream, 2, 1000);
		_exit(0);
	}
	ck_assert_int_eq(waitpid(child, &status, 0), child);
	ck_assert(WIFEXITED(status) && WEXITSTATUS(status) == 9);
	ck_assert_uint_eq(size(), 1100);
	stream = open_stream();
	run(stream, 3, 50);
	host_stream_close(stream);
	/* with the mark of a loss */
	ck_assert_uint_gt(size(), 150);
	ck_assert_uint_lt(size(), 250);
	ck_assert_uint_eq(t.records, 2);
	expect_record(1, 3, 100);
}
END_TEST

TEST_SUITE()
{
	Suite *suite = suite_create("qemu-plugin/host-stream");
	TCase *tcase = tcase_create("rtit");

	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_add_test(tcase, runs_are_somebodys);
	tcase_add_test(tcase, last_loss);
	tcase_add_test(tcase, last_loss_without_a_line);
	tcase_add_test(tcase, killed_before_the_line);
	suite_add_tcase(suite, tcase);
	return suite;
}
