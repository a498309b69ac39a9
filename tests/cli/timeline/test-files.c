// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* vmpt timeline: files that it writes, and what is wrong with its input. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/cli/cli-run.h"
#include "tests/cli/timeline/files.h"

/* ---- bad input ---- */

START_TEST(what_is_wrong_is_said)
{
	static const struct {
		const char *args;
		int code;
		const char *err;
	} cases[] = {
		{ "timeline --head=0 a.cpu0.pt", 2, "'0' is not a number of at least 1" },
		{ "timeline --tsc-khz=0 a.cpu0.pt", 2, "'0' is not a number from 1 to" },
		{ "timeline --from=x a.cpu0.pt", 2, "not a time" },
		{ "timeline --from=-1 a.cpu0.pt", 2, "not a time" },
		{ "timeline --from=5 --to=4 a.cpu0.pt", 2, "must be after" },
		{ "timeline --from=tsc:1 --to=tsc:2 a.cpu0.pt", 0, "nothing in the trace fits" },
		{ "timeline --perf-time a.cpu0.pt", 2, "perf's time" },
		{ "timeline --summary --head=3 a.cpu0.pt", 2, "--head" },
		{ "timeline --chrome=a.cpu0.pt a.cpu0.pt", 2, "a.cpu0.pt is an input" },
		{ "timeline --chrome=no/such/place a.cpu0.pt", 1, "no/such/place" },
		{ "timeline --owner=nobody a.cpu0.pt", 2,
		  "no VM has a name here: 'nobody' is not" },
		{ "timeline --side-record=none a.cpu0.pt", 1, "none" },
		{ "timeline --side-record=a.cpu0.pt a.cpu0.pt", 1, "line 1" },
		{ "timeline --format=rtit a.cpu0.pt", 1, "RTIT" },
		{ "exits --format=rtit a.cpu0.pt", 1, "RTIT" },
		{ "exits --top=x a.cpu0.pt", 2, "--top: 'x' is not a number from 0 to 262144" },
		{ "exits --top=-1 a.cpu0.pt", 2, "'-1' is not a number from 0 to 262144" },
		{ "exits --top=262145 a.cpu0.pt", 2, "is not a number from 0 to 262144" },
		{ "exits --top=99999999999999999999 a.cpu0.pt", 2, "from 0 to 262144" },
		{ "exits --symbols=x:syms --side-record=twice.jsonl a.cpu0.pt", 0,
		  "--symbols: no VM 'x' in the trace: syms is not used" },
		{ "timeline --symbols=y:syms --side-record=other.jsonl a.cpu0.pt", 0,
		  "--symbols: no VM 'y' in the trace: syms is not used" },
		{ "timeline --side-record=other.jsonl a.cpu0.pt", 0, "same recording" },
		{ "timeline --side-record=twice.jsonl a.cpu0.pt", 0, "twice" },
		{ "timeline --side-record=one.jsonl " FILES, 0, "two CPUs at once" },
		{ "timeline mixed.pt", 0, "no TSC packets" },
		{ "timeline --from=1 mixed.pt", 2, "has no times" },
	};
	char text[512];
	size_t i;

	snprintf(text, sizeof(text), "{\"vm\":\"x\",\"vcpu\":0,\"vmcs\":\"0x5000\"}\n");
	write_file("other.jsonl", text, strlen(text));
	snprintf(text, sizeof(text),
		 "{\"vm\":\"x\",\"vcpu\":0,\"vmcs\":\"0x%llx\"}\n"
		 "{\"vm\":\"y\",\"vcpu\":0,\"vmcs\":\"0x%llx\"}\n",
		 (unsigned long long)tl_vmcs(0), (unsigned long long)tl_vmcs(0));
	write_file("twice.jsonl", text, strlen(text));
	snprintf(text, sizeof(text),
		 "{\"vm\":\"x\",\"vcpu\":0,\"vmcs\":\"0x%llx\"}\n"
		 "{\"vm\":\"x\",\"vcpu\":0,\"vmcs\":\"0x%llx\"}\n",
		 (unsigned long long)tl_vmcs(0), (unsigned long long)tl_vmcs(1));
	write_file("one.jsonl", text, strlen(text));
	write_mixed("mixed.pt");
	write_file("syms", "1000 T a\n", 9);
	ck_lacks(vmpt("exits --symbols=y:syms --side-record=twice.jsonl a.cpu0.pt")->err,
		 "--symbols");
	ck_assert_int_eq(vmpt("exits --top=262144 a.cpu0.pt")->code, 0);
	for (i = 0; i < VMPT_ARRAY_SIZE(cases); i++) {
		const struct run *r = vmpt("%s", cases[i].args);

		ck_assert_msg(r->code == cases[i].code && strstr(r->err, cases[i].err),
			      "%s: %d: %s", cases[i].args, r->code, r->err);
	}
}
END_TEST

/* "-" is the standard output; two outputs or an output and an input are never one file. */
START_TEST(where_outputs_go)
{
	static const struct {
		const char *args, *err;
	} cases[] = {
		{ "--chrome=x --html=x", "both are x" },
		{ "--chrome=x --html=./x", "both are x" },
		{ "--chrome=y --html=z", "both are y" },
		{ "--chrome=- --html=-", "both are -" },
		{ "--chrome=- --json", "standard output" },
		{ "--html=- --summary", "standard output" },
		{ "--html=./a.cpu0.pt", "./a.cpu0.pt is an input" },
		{ "--html=vms.jsonl --side-record=vms.jsonl", "vms.jsonl is an input" },
		{ "--chrome=vms.jsonl --symbols=vms.jsonl@16", "vms.jsonl is an input" },
	};
	const struct run *r;
	json_t *doc;
	size_t i;

	write_file("z", "", 0);
	ck_assert_int_eq(symlink("z", "y"), 0);
	for (i = 0; i < VMPT_ARRAY_SIZE(cases); i++) {
		r = vmpt("timeline %s " RATES " a.cpu0.pt", cases[i].args);
		ck_assert_msg(r->code == 2 && strstr(r->err, cases[i].err), "%s: %d: %s",
			      cases[i].args, r->code, r->err);
		ck_assert_str_eq(r->out, "");
	}
	ck_assert_int_ne(access("x", F_OK), 0);
	r = vmpt("timeline -q --chrome=- " RATES " a.cpu0.pt");
	ck_assert_int_eq(r->code, 0);
	doc = json_loads(r->out, 0, NULL);
	ck_assert_uint_gt(json_array_size(json_at(doc, "traceEvents")), 100);
	json_decref(doc);
	r = vmpt("timeline -q --html=- --chrome=t.json " RATES " a.cpu0.pt");
	ck_assert_int_eq(r->code, 0);
	ck_assert_int_eq(strncasecmp(r->out, "<!doctype html", 14), 0);
	ck_has(r->out, "</html>");
	ck_assert_int_ne(access("-", F_OK), 0);
}
END_TEST

/* G1, G6, G7: a file of a user's, a link, a FIFO; a leftover; who may read the page. */
START_TEST(g7_only_what_vmpt_wrote_is_overwritten)
{
	static const char *const left[] = { "", "{\"otherData\":{\"writer\":\"vmpt 0.1.0" };
	static const char *const option[] = { "--html", "--chrome" };
	const mode_t mask = umask(022);
	const struct run *r;
	struct stat st;
	unsigned int i;
	size_t n;
	u8 *text;

	for (i = 0; i < 2; i++) {
		write_file("own", "my notes\n", 9);
		r = vmpt("timeline %s=own " RATES " a.cpu0.pt", option[i]);
		ck_assert_int_eq(r->code, 1);
		ck_has(r->err, "own exists, and vmpt did not write it");
		ck_assert_int_eq(symlink("own", "link"), 0);
		r = vmpt("timeline %s=link " RATES " a.cpu0.pt", option[i]);
		ck_assert_int_eq(r->code, 1);
		ck_has(r->err, "link is a symbolic link");
		text = test_read_file("own", &n);
		ck_assert(n == 9 && !memcmp(text, "my notes\n", 9));
		free(text);
		ck_assert_int_eq(mkfifo("fifo", 0600), 0);
		r = vmpt("timeline %s=fifo " RATES " a.cpu0.pt", option[i]);
		ck_assert_int_eq(r->code, 1);
		ck_has(r->err, "fifo is a FIFO that no process reads");
		ck_assert_int_eq(
			vmpt("timeline -q %s=/dev/null " RATES " a.cpu0.pt", option[i])->code, 0);
		/* Somebody's file, and an input, under the temporary name. */
		write_file(".out.vmpt-new", "my notes\n", 9);
		r = vmpt("timeline -q %s=out " RATES " a.cpu0.pt", option[i]);
		ck_assert_int_eq(r->code, 1);
		ck_has(r->err, ".out.vmpt-new exists, and vmpt did not write it");
		text = test_read_file(".out.vmpt-new", &n);
		ck_assert(n == 9 && !memcmp(text, "my notes\n", 9));
		free(text);
		ck_assert_int_eq(rename("a.cpu0.pt", ".out.vmpt-new"), 0);
		r = vmpt("timeline -q %s=out " RATES " .out.vmpt-new", option[i]);
		ck_assert_int_eq(r->code, 2);
		ck_has(r->err, ".out.vmpt-new is an input");
		ck_assert_int_eq(stat(".out.vmpt-new", &st), 0);
		ck_assert_int_gt(st.st_size, 0);
		ck_assert_int_eq(rename(".out.vmpt-new", "a.cpu0.pt"), 0);
		/* A run that was killed left it. */
		write_file(".out.vmpt-new", left[i], strlen(left[i]));
		ck_assert_int_eq(vmpt("timeline -q %s=out " RATES " a.cpu0.pt", option[i])->code,
				 0);
		ck_assert_int_ne(access(".out.vmpt-new", F_OK), 0);
		ck_assert_int_eq(stat("out", &st), 0);
		ck_assert_uint_eq(st.st_mode & 07777, 0600);
		r = vmpt("timeline -q --mode=644 %s=out " RATES " a.cpu0.pt", option[i]);
		ck_assert_msg(r->code == 0, "%s", r->err);
		ck_assert_int_eq(stat("out", &st), 0);
		ck_assert_uint_eq(st.st_mode & 07777, 0644);
		ck_assert_int_eq(unlink("out") | unlink("link") | unlink("fifo"), 0);
	}
	umask(mask);
}
END_TEST

/* G10: without room neither an output nor a part of it is left. */
START_TEST(g10_a_limit_on_the_size_of_files)
{
	const struct rlimit small = { 8192, RLIM_INFINITY };
	static const char *const option[] = { "--html", "--chrome" };
	const struct run *r;
	struct rlimit was;
	unsigned int i;

	ck_assert_int_eq(getrlimit(RLIMIT_FSIZE, &was), 0);
	for (i = 0; i < 2; i++) {
		ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &small), 0);
		r = vmpt("timeline -q %s=big " RATES " a.cpu0.pt", option[i]);
		ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &was), 0);
		ck_assert_int_eq(r->code, 1);
		ck_has(r->err, "cannot write big: File too large");
		ck_assert_int_ne(access("big", F_OK), 0);
		ck_assert_int_ne(access(".big.vmpt-new", F_OK), 0);
	}
}
END_TEST

/* Having nothing to show is reported in words. */
START_TEST(nothing_is_there)
{
	static const u8 host[] = { 0x02, 0x82, 0x02, 0x82, 0x02, 0x82, 0x02, 0x82,
				   0x02, 0x82, 0x02, 0x82, 0x02, 0x82, 0x02, 0x82, /* PSB */
				   0x02, 0x23 };				   /* PSBEND */
	const struct run *r;

	write_file("host.pt", host, sizeof(host));
	r = vmpt("exits host.pt");
	ck_assert_int_eq(r->code, 0);
	ck_assert_str_eq(r->out, "No VM runs in the trace.\n");
	r = vmpt("timeline --summary host.pt");
	ck_has(r->out, "0 VMs: none runs");
	r = vmpt("exits --from=1000000000000 " RATES " " FILES);
	ck_assert_str_eq(r->out, "No VM runs in this part of the trace.\n");
	ck_has(r->err, "--from: the trace ends before that, at ");
	r = vmpt("timeline --from=1000 " KHZ " " RATES " " FILES);
	ck_has(r->err, "--from: the trace ends before that, at 0.");
}
END_TEST

/* B12: a full disk is named as such, whichever way the output goes, small or large. */
START_TEST(b12_a_full_disk)
{
	static const char *const file[] = { "timeline --html=/dev/full",
					    "timeline --chrome=/dev/full",
					    "timeline --summary --html=/dev/full" };
	static const char *const out[] = { "timeline --json",
					   "timeline --csv",
					   "timeline --html=-",
					   "timeline --chrome=-",
					   "exits --json",
					   "exits --csv",
					   "wait --json",
					   "wait --csv",
					   "timeline",
					   "wait",
					   "split -f --json -o out",
					   "clocks --json" };
	static const char *const part[] = { "", "--to=0.00001" };
	char args[256];
	size_t i, k;

	for (k = 0; k < 2; k++) {
		for (i = 0; i < VMPT_ARRAY_SIZE(file); i++) {
			const struct run *r =
				vmpt("%s -q %s " RATES " " KHZ " " FILES, file[i], part[k]);

			ck_assert_msg(r->code == 1, "%s: %d", file[i], r->code);
			ck_has(r->err, "cannot write /dev/full: No space left on device");
		}
		for (i = 0; i < VMPT_ARRAY_SIZE(out); i++) {
			const struct run *r;
			int fd = open("/dev/full", O_WRONLY);

			ck_assert_int_ge(fd, 0);
			/* Clocks have no part. */
			snprintf(args, sizeof(args), "%s -q %s " RATES " " KHZ " " FILES, out[i],
				 strncmp(out[i], "clocks", 6) ? part[k] : "");
			r = vmpt_to(fd, args);
			ck_assert_msg(r->code == 1, "%s: %d: %s", args, r->code, r->err);
			ck_has(r->err, "cannot write the output: No space left on device");
		}
	}
}
END_TEST

TEST_SUITE()
{
	Suite *suite = suite_create("cli timeline files");
	TCase *tc = tcase_create("timeline files");

	tcase_add_checked_fixture(tc, timeline_setup, timeline_teardown);
	tcase_add_test(tc, what_is_wrong_is_said);
	tcase_add_test(tc, where_outputs_go);
	tcase_add_test(tc, g7_only_what_vmpt_wrote_is_overwritten);
	tcase_add_test(tc, g10_a_limit_on_the_size_of_files);
	tcase_add_test(tc, nothing_is_there);
	tcase_add_test(tc, b12_a_full_disk);
	suite_add_tcase(suite, tc);
	return suite;
}
