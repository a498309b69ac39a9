// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * G5: an input that becomes shorter while vmpt reads it, at every moment: vmpt runs under ptrace,
 * and the input is cut when its main thread has made the Nth system call after opening it. Threads
 * are not traced, so that they run on.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/cli/cli-run.h"
#include "tests/decoder/perf-writer.h"
#include "tests/support/support.h"

#define WORDS	16
#define CALLS	2000	  /* system calls after the opening, at most: a run has fewer */
#define SIZE	(1 << 20) /* of a trace: several chunks for each thread */
#define SHORTER "became shorter while it was read"

static char folder[4096];

static void setup(void)
{
	cli_setup();
	ck_assert_ptr_nonnull(getcwd(folder, sizeof(folder)));
}

/* Whether process @pid has @path open, or mapped. */
static bool has_open(pid_t pid, const char *path)
{
	char link[64], to[4096];
	ssize_t n;
	int fd;

	for (fd = 3; fd < 8; fd++) {
		snprintf(link, sizeof(link), "/proc/%d/fd/%d", pid, fd);
		n = readlink(link, to, sizeof(to) - 1);
		to[n < 0 ? 0 : n] = '\0';
		if (!strcmp(to, path))
			return true;
	}
	return false;
}

static pid_t start(const char *args)
{
	char text[1024], *argv[WORDS] = { "vmpt" };
	int n = 1;
	pid_t pid = fork();

	ck_assert_int_ge(pid, 0);
	if (pid)
		return pid;
	snprintf(text, sizeof(text), "%s", args);
	argv[n] = strtok(text, " ");
	while (n < WORDS - 1 && argv[n])
		argv[++n] = strtok(NULL, " ");
	/* LeakSanitizer does not work under ptrace. */
	setenv("ASAN_OPTIONS", "detect_leaks=0", 1);
	if (!freopen(".out", "w", stdout) || !freopen(".err", "w", stderr) ||
	    ptrace(PTRACE_TRACEME, 0, 0, 0))
		_exit(126);
	execv(getenv("VMPT"), argv);
	_exit(127);
}

/*
 * Run vmpt and cut @name to @size bytes after system call @calls since it was opened. Its exit
 * code;
 * @cut says whether it came so far.
 */
static int run_cut(const char *args, const char *name, off_t size, int calls, bool *cut)
{
	char path[4096 + 64];
	bool opened = false;
	int status, number = 0, stops = 0, give;
	pid_t pid = start(args);

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	*cut = false;
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 126)
		return -1;
	ck_assert(WIFSTOPPED(status));
	ptrace(PTRACE_SETOPTIONS, pid, 0, PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL);
	for (;;) {
		give = WSTOPSIG(status);
		if (give == SIGTRAP || give == (SIGTRAP | 0x80))
			give = 0;
		/* The rest runs free: its signals are its own. It fails while the process ends. */
		ptrace(*cut ? PTRACE_CONT : PTRACE_SYSCALL, pid, 0, give);
		ck_assert_int_eq(waitpid(pid, &status, 0), pid);
		if (!WIFSTOPPED(status))
			break;
		/* It stops before each system call and after it. */
		if (*cut || WSTOPSIG(status) != (SIGTRAP | 0x80) || stops++ % 2)
			continue;
		opened |= has_open(pid, path);
		if (opened && number++ == calls) {
			ck_assert_int_eq(truncate(name, size), 0);
			*cut = true;
		}
	}
	ck_assert_msg(!WIFSIGNALED(status), "%s: signal %d after call %d", args, WTERMSIG(status),
		      calls);
	return WEXITSTATUS(status);
}

/* Cut it after every few system calls; @make makes it. Returns how often the sentence came. */
static int check_all(const char *args, const char *name, off_t size, void (*make)(const char *))
{
	/* All moments in a soak; the sanitizers are slow. */
	int step = getenv("VMPT_SANITIZED") ? 61 : 11, calls, code, sentences = 0;
	bool cut = true;
	char *err;
	size_t n;

	for (calls = 0; calls < CALLS; calls += test_rounds(1, step)) {
		make(name);
		code = run_cut(args, name, size, calls, &cut);
		if (code < 0) {
			test_skip("ptrace is not allowed here");
			return -1;
		}
		err = (char *)test_read_file(".err", &n);
		err[n] = '\0';
		if (!cut) {
			/* A whole run: there is nothing to say. */
			ck_assert_msg(code == 0 && !strstr(err, SHORTER), "%s: code %d: %s", args,
				      code, err);
			free(err);
			break;
		}
		if (strstr(err, SHORTER)) {
			sentences++;
			ck_has(err, name);
			ck_assert_msg(code == 1, "%s: code %d after call %d: %s", args, code, calls,
				      err);
		} else {
			/* Before it was mapped, after all was read; or another sentence. */
			ck_assert_msg(code == 0 || strstr(err, name),
				      "%s: code %d after call %d: %s", args, code, calls, err);
		}
		free(err);
	}
	ck_assert_msg(!cut, "%s: more than %d system calls", args, CALLS);
	return sentences;
}

/* ---- inputs ---- */

static void make_raw(const char *name)
{
	write_mixed_times(name, SIZE / 1024, 1024 - MIXED_SIZE);
}

static void make_perf(const char *name)
{
	static struct perf_writer w;
	char path[WRITER_PATH];
	size_t n;
	u8 *bytes;

	make_raw("raw.pt");
	bytes = test_read_file("raw.pt", &n);
	writer_start(&w, false);
	writer_info(&w, false, WRITER_PRIVS);
	writer_auxtrace(&w, 0, 1, 0, bytes, n / 2);
	writer_auxtrace(&w, 1, 1, 0, bytes + n / 2, n / 4);
	/* Two parts are copied to a temporary file. */
	writer_auxtrace(&w, 1, 1, n / 4, bytes + n / 2 + n / 4, n / 4);
	writer_finish(&w);
	writer_save(&w, path);
	free(bytes);
	bytes = test_read_file(path, &n);
	write_file(name, bytes, n);
	ck_assert_int_eq(unlink(path), 0);
	free(bytes);
	writer_free(&w);
}

static void make_text(const char *name)
{
	FILE *f = fopen(name, "w");
	unsigned int i;

	ck_assert_ptr_nonnull(f);
	for (i = 0; i < 3000; i++)
		fprintf(f, "ffffffff81%06x T function_%u\n", 64 * i, i);
	fclose(f);
}

/* An ELF program. */
static void make_image(const char *name)
{
	size_t n;
	u8 *bytes = test_read_file(getenv("TRACEGEN"), &n);

	write_file(name, bytes, n);
	free(bytes);
}

static const struct {
	const char *args, *name;
	off_t size;
	void (*make)(const char *name);
} input[] = {
	{ "stat in.pt", "in.pt", 4096, make_raw },
	{ "vms --threads=4 in.pt", "in.pt", 4096, make_raw },
	{ "stat in.data", "in.data", 4096, make_perf },
	{ "vms --threads=4 in.data", "in.data", 4096, make_perf },
	/* Within the last page nothing faults. */
	{ "stat in.pt", "in.pt", SIZE - 100, make_raw },
	{ "exits --symbols=in.map x.pt", "in.map", 40, make_text },
	{ "exits --symbols=in.elf x.pt", "in.elf", 4096, make_image },
	{ "exits --image=in.elf@0x400000 x.pt", "in.elf", 4096, make_image },
};

START_TEST(g5_an_input_becomes_shorter)
{
	int sentences;

	write_mixed("x.pt");
	sentences = check_all(input[_i].args, input[_i].name, input[_i].size, input[_i].make);
	ck_assert_msg(sentences || getenv("VMPT_SANITIZED"), "%s: no sentence", input[_i].args);
}
END_TEST

/* A SIGBUS that somebody sends is not an input's. */
START_TEST(g5_a_sent_signal_is_none)
{
	int status, pipes[2];
	pid_t pid;
	char c;

	make_raw("in.pt");
	ck_assert_int_eq(pipe(pipes), 0);
	pid = fork();
	if (!pid) {
		char *argv[] = { "vmpt", "dump", "in.pt", NULL };

		dup2(pipes[1], 1);
		close(pipes[0]);
		close(pipes[1]);
		execv(getenv("VMPT"), argv);
		_exit(127);
	}
	close(pipes[1]);
	/* It waits for the pipe's reader now, or soon. */
	ck_assert_int_eq(read(pipes[0], &c, 1), 1);
	ck_assert_int_eq(kill(pid, SIGBUS), 0);
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGBUS);
	close(pipes[0]);
}
END_TEST

TEST_SUITE()
{
	Suite *s = suite_create("cli/shrink");
	TCase *t = test_long_case(s);

	tcase_add_checked_fixture(t, setup, cli_clean);
	tcase_add_loop_test(t, g5_an_input_becomes_shorter, 0, VMPT_ARRAY_SIZE(input));
	tcase_add_test(t, g5_a_sent_signal_is_none);
	suite_add_tcase(s, t);
	return s;
}
