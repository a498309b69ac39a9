// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* What becomes of a command's output: terminals, closed pipes, full disks, progress. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include "tests/cli/cli-run.h"
#include "tests/support/support.h"

/* B3: combining characters have no column, wide ones have two: the next column stays in line. */
START_TEST(b3_columns_of_names)
{
	static const char record[] = "{\"vm\":\"%s\",\"vcpu\":0,\"vmcs\":\"0x%s000\"}\n";
	/* e and a combining acute: 4 columns; two wide characters: 4. */
	static const char *const name[] = { "cafe\u0301", "\u6771\u4eac" };
	char text[256];
	const char *out;
	int n;

	n = snprintf(text, sizeof(text), record, name[0], "a");
	n += snprintf(text + n, sizeof(text) - (size_t)n, record, name[1], "b");
	write_mixed("x.pt");
	write_file("vms.jsonl", text, (size_t)n);
	out = vmpt("vms --side-record=vms.jsonl x.pt")->out;
	ck_has(out, "  cafe\u0301 vcpu 0  –  ");
	ck_has(out, "  \u6771\u4eac vcpu 0  –  ");
}
END_TEST

/* B3: 18 VMs that differ in one character have 18 labels on a terminal, and whole names in a pipe.
 */
START_TEST(b3_names_stay_different)
{
	static const char psb_plus[] =
		"\x02\x82\x02\x82\x02\x82\x02\x82\x02\x82\x02\x82\x02\x82\x02\x82";
	char record[4096], label[18][64], bytes[18 * 33], *line;
	size_t used = 0, seen = 0, i, k;
	const struct run *r;
	int n = 0;

	for (i = 0; i < 18; i++) {
		/* PSB, PIP 2000 NR=1, VMCS (i + 1) << 12, PSBEND */
		/* NOLINTBEGIN(bugprone-not-null-terminated-result): bytes */
		memcpy(bytes + used, psb_plus, 16);
		memcpy(bytes + used + 16, "\x02\x43\x01\x02\0\0\0\0", 8);
		memcpy(bytes + used + 24, "\x02\xc8\x01\0\0\0\0", 7);
		bytes[used + 26] = (char)(i + 1);
		memcpy(bytes + used + 31, "\x02\x23", 2);
		/* NOLINTEND(bugprone-not-null-terminated-result) */
		used += 33;
		n += snprintf(
			record + n, sizeof(record) - (size_t)n,
			"{\"vm\":\"production-%c-europe-west-frontend-of-the-shop-with-a-very-long-"
			"name-that-no-terminal-has-room-for\",\"vcpu\":0,\"vmcs\":\"0x%x000\"}\n",
			'a' + (int)i, (unsigned int)i + 1);
	}
	write_file("x.pt", bytes, used);
	write_file("vms.jsonl", record, (size_t)n);
	r = vmpt("vms --headless --side-record=vms.jsonl x.pt");
	ck_has(r->out,
	       "production-c-europe-west-frontend-of-the-shop-with-a-very-long-name-that-no-");
	r = vmpt_terminal("vms -q --color=never --side-record=vms.jsonl x.pt");
	for (line = strtok(r->out, "\r\n"); line; line = strtok(NULL, "\r\n")) {
		char *vm = strstr(line, "prod");

		if (!vm)
			continue;
		ck_assert_uint_lt(seen, 18);
		snprintf(label[seen], sizeof(label[seen]), "%.*s", (int)strcspn(vm, " "), vm);
		for (k = 0; k < seen; k++)
			ck_assert_str_ne(label[k], label[seen]);
		seen++;
	}
	ck_assert_uint_eq(seen, 18);
}
END_TEST

/* A closed pipe is not an error, a full disk is. */
START_TEST(closed_pipe_and_full_disk)
{
	static const char *const line[] = {
		"dump",	      "dump --json",	 "stat",  "stat --json", "vms",
		"vms --json", "split -f -o out", "--help"
	};
	char args[64];
	size_t i;

	write_mixed_times("x.pt", 10000, 0);
	for (i = 0; i < VMPT_ARRAY_SIZE(line); i++) {
		const struct run *r;
		int fd[2];

		ck_assert_int_eq(pipe(fd), 0);
		close(fd[0]);
		snprintf(args, sizeof(args), "%s x.pt", line[i]);
		r = vmpt_to(fd[1], args);
		ck_assert_msg(r->code == 0, "%s: exit code %d", args, r->code);
		ck_assert_str_eq(r->err, "");
		fd[1] = open("/dev/full", O_WRONLY);
		ck_assert_int_ge(fd[1], 0);
		r = vmpt_to(fd[1], args);
		ck_assert_msg(r->code == 1, "%s: exit code %d", args, r->code);
		ck_has(r->err, "No space left");
	}
}
END_TEST

START_TEST(split_tells_which_file_it_cannot_write)
{
	const struct run *r;

	write_mixed("x.pt");
	r = vmpt("split -o x.pt x.pt");
	ck_assert_int_eq(r->code, 1);
	ck_has(r->err, "x.pt: Not a directory");
	r = vmpt("split -o no/such x.pt");
	ck_assert_int_eq(r->code, 1);
	ck_has(r->err, "no/such: No such file");
}
END_TEST

/* G10: a limit on the size of files is an error with the file's name, and nothing is left. */
START_TEST(g10_split_without_room)
{
	const struct rlimit small = { 50000, RLIM_INFINITY };
	const struct run *r;
	struct rlimit was;

	write_mixed_times("x.pt", 3000, 0);
	ck_assert_int_eq(getrlimit(RLIMIT_FSIZE, &was), 0);
	ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &small), 0);
	r = vmpt("split -o out x.pt");
	ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &was), 0);
	ck_assert_int_eq(r->code, 1);
	ck_has(r->err, ": File too large");
	ck_assert_int_ne(access("out", F_OK), 0);
}
END_TEST

START_TEST(color_on_a_terminal_only)
{
	write_mixed("x.pt");
	ck_lacks(vmpt("vms x.pt")->out, "\033");
	ck_lacks(vmpt("dump x.pt")->out, "\033");
	ck_has(vmpt("dump --color=always x.pt")->out, "\033[");
	ck_lacks(vmpt("dump --color=always --json x.pt")->out, "\033");
	ck_has(vmpt_terminal("vms x.pt")->out, "\033[");
	ck_lacks(vmpt_terminal("vms --color=never x.pt")->out, "\033");
	setenv("TERM", "dumb", 1);
	ck_lacks(vmpt_terminal("vms x.pt")->out, "\033");
	setenv("TERM", "xterm", 1);
	setenv("NO_COLOR", "1", 1);
	ck_lacks(vmpt_terminal("vms x.pt")->out, "\033");
	ck_has(vmpt_terminal("vms --color=always x.pt")->out, "\033[");
}
END_TEST

/* The percentages shown, which only grow: how many there are. */
static unsigned int progress_steps(const char *out, const char *line)
{
	unsigned int n = 0, percent, before = 0;
	double done, all;

	while ((out = strchr(out, '\r')) != NULL) {
		if (sscanf(++out, "%u %% %lf of %lf MB", &percent, &done, &all) != 3)
			continue;
		ck_assert_msg(percent >= before && percent <= 100, "%s: %u %% after %u", line,
			      percent, before);
		n += !n || percent > before;
		before = percent;
	}
	return n;
}

/* One slice, 11 MB in the file's hole: the line moves all the same. */
START_TEST(progress_inside_a_slice)
{
	static const char *const line[] = { "stat x.pt", "vms x.pt", "dump x.pt",
					    "split -f -o out x.pt", "split -f -o out x.pt y.pt" };
	/* stat alone under the sanitizers */
	size_t lines = getenv("VMPT_SANITIZED") ? 1 : VMPT_ARRAY_SIZE(line);
	size_t i, n;
	u8 *psb;

	write_mixed("x.pt");
	psb = test_read_file("x.pt", &n);
	write_file("x.pt", psb, 33);
	write_file("y.pt", psb, 33);
	free(psb);
	ck_assert_int_eq(truncate("x.pt", 11000000) | truncate("y.pt", 11000000), 0);
	for (i = 0; i < lines; i++) {
		const struct run *r;

		setenv("VMPT_PROGRESS_AFTER", "0", 1);
		r = vmpt_terminal_err(line[i]);
		ck_assert_int_eq(r->code, 0);
		ck_assert_msg(progress_steps(r->out, line[i]) >= 10, "%s: %s", line[i], r->out);
		ck_has(r->out, " of ");
		ck_assert_msg(!strcmp(strrchr(r->out, '\r'), "\r\033[K"), "%s: %s", line[i],
			      r->out);
		ck_lacks(vmpt("%s", line[i])->err, "MB/s");
		/* Long before so much time is over. */
		setenv("VMPT_PROGRESS_AFTER", "1000", 1);
		ck_assert_str_eq(vmpt_terminal_err(line[i])->out, "");
	}
	unsetenv("VMPT_PROGRESS_AFTER");
}
END_TEST

/* Bytes of a host without VMs: "psb exec:64 pip:1000 psbend" and PADs (SDM 3 33.4.2). */
static void write_without_vms(const char *path, off_t size)
{
	static const u8 head[] = "\x02\x82\x02\x82\x02\x82\x02\x82\x02\x82\x02\x82\x02\x82\x02\x82"
				 "\x99\x01\x02\x43\x80\x00\x00\x00\x00\x00\x02\x23";

	write_file(path, head, sizeof(head) - 1);
	ck_assert_int_eq(truncate(path, size), 0);
}

/* A4: the scan for VMs has a progress line of its own; its percentages grow over all CPUs. */
START_TEST(a4_scan_shows_progress)
{
	static const char *const line[] = { "stat x.pt y.pt", "stat --cpu=1 x.pt y.pt",
					    "timeline x.pt y.pt" };
	size_t i;

	write_without_vms("x.pt", 11000000);
	write_without_vms("y.pt", 5000000);
	setenv("VMPT_PROGRESS_AFTER", "0", 1);
	for (i = 0; i < VMPT_ARRAY_SIZE(line); i++) {
		const struct run *r = vmpt_terminal_err(line[i]);
		char *end, scan[1 << 16];

		ck_assert_int_eq(r->code, 0);
		ck_assert_uint_lt(strlen(r->out), sizeof(scan));
		strcpy(scan, r->out);
		end = strstr(scan, "\r\033[K");
		ck_assert_ptr_nonnull(end);
		*end = 0;
		ck_assert_msg(progress_steps(scan, line[i]) >= 10, "%s: %s", line[i], scan);
		ck_has(scan, " of 16.0 MB ");
		ck_has(scan, "looking for VMs\033[K");
		ck_lacks(r->out + (end - scan), "looking for VMs");
		ck_has(r->out + (end - scan), "no packet of a VM");
	}
	/* Nothing is scanned. */
	ck_lacks(vmpt_terminal_err("stat --host-only=no x.pt y.pt")->out, "looking");
	unsetenv("VMPT_PROGRESS_AFTER");
}
END_TEST

TEST_SUITE()
{
	Suite *suite = suite_create("cli output");
	TCase *tc = tcase_create("output");

	tcase_add_checked_fixture(tc, cli_setup, cli_clean);
	tcase_add_test(tc, b3_columns_of_names);
	tcase_add_test(tc, b3_names_stay_different);
	tcase_add_test(tc, closed_pipe_and_full_disk);
	tcase_add_test(tc, split_tells_which_file_it_cannot_write);
	tcase_add_test(tc, g10_split_without_room);
	tcase_add_test(tc, color_on_a_terminal_only);
	tcase_add_test(tc, progress_inside_a_slice);
	tcase_add_test(tc, a4_scan_shows_progress);
	suite_add_tcase(suite, tc);
	return suite;
}
