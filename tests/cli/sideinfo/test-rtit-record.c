// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* The side record of RTIT: its names where they could do harm, its lines, its CPUs. */
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "tests/cli/rtit-streams.h"
#include "tests/support/support.h"

static void setup(void)
{
	cli_setup();
	write_all();
}

/* Not usable in a file name, or harmful to a terminal */
START_TEST(names_are_made_safe)
{
	static const char names[] =
		"{\"rtit\":1,\"vm\":\"../a b\",\"vcpu\":0,\"cpu\":0,\"offset\":\"0x9\"}\n"
		"{\"rtit\":1,\"vm\":\"..\\u002fa\\tb\",\"vcpu\":0,\"cpu\":0,\"offset\":\"0x28\"}\n"
		"{\"rtit\":1,\"vm\":\"\\u001b[31m\\u009bm\\u00e4\",\"vcpu\":4294967295,\"cpu\":0,"
		"\"offset\":\"0x3d\"}\n";
	const struct run *r;

	write_text("names.jsonl", names);
	r = vmpt("split -o out --side-record=names.jsonl x.cpu0.rtit");
	ck_assert_int_eq(r->code, 0);
	ck_assert_int_eq(access("out/vm-.._a_b+1-vcpu0.cpu0.rtit", F_OK), 0);
	ck_assert_int_eq(access("out/vm-.._a_b+2-vcpu0.cpu0.rtit", F_OK), 0);
	ck_assert_int_eq(access("out/vm-__31m__m__+3-vcpu4294967295.cpu0.rtit", F_OK), 0);
	r = vmpt("vms --side-record=names.jsonl x.cpu0.rtit");
	ck_has(r->out, "\\u001b[31m\\u009bmä vcpu 4294967295 ");
	ck_has(r->out, "../a\\u0009b vcpu 0 ");
	ck_lacks(r->out, "\033");
	ck_lacks(r->out, "\xc2\x9b");
}
END_TEST

#define LINE(vm, cpu, where) "{\"rtit\":1,\"vm\":" vm ",\"vcpu\":0,\"cpu\":" cpu "," where "}\n"
#define GOOD		     LINE("\"web\"", "0", "\"offset\":\"0x9\"")

static const struct {
	const char *text, *message;
} bad[] = {
	{ "", "it has no records" },
	{ "\n \n", "it has no records" },
	{ GOOD "{", "line 2: " },
	{ GOOD "\n[]\n", "line 3: not a JSON object" },
	{ "web\n", "line 1: " },
	{ "{\"vm\":\"a\",\"vcpu\":0,\"vmcs\":\"0x1\"}\n", "line 1: no \"rtit\"" },
	{ "{\"rtit\":2}\n", "line 1: \"rtit\" is not 1" },
	{ "{\"rtit\":1,\"vcpu\":0,\"cpu\":0,\"offset\":0}\n", "line 1: \"vm\" is neither a name" },
	{ LINE("7", "0", "\"offset\":0"), "line 1: \"vm\" is neither a name" },
	{ LINE("\"\"", "0", "\"offset\":0"), "line 1: \"vm\" is an empty name" },
	{ "{\"rtit\":1,\"vm\":\"a\",\"cpu\":0,\"offset\":0}\n",
	  "line 1: \"vcpu\" is not a number" },
	{ LINE("\"a\"", "-1", "\"offset\":0"), "line 1: \"cpu\" is not a number" },
	{ LINE("\"a\"", "65536", "\"offset\":0"), "line 1: \"cpu\" is larger than 65535" },
	{ LINE("\"a\"", "0", "\"ofset\":0"), "line 1: none of \"offset\" and \"tsc\"" },
	{ LINE("\"a\"", "0", "\"offset\":0,\"tsc\":0"), "line 1: both of \"offset\" and \"tsc\"" },
	{ LINE("\"a\"", "0", "\"offset\":\"12\""), "line 1: \"offset\" is not a number" },
	{ LINE("\"a\"", "0", "\"offset\":\"0x\""), "line 1: \"offset\" is not a number" },
	{ LINE("\"a\"", "0", "\"offset\":\"0x1g\""), "line 1: \"offset\" is not a number" },
	{ LINE("\"a\"", "0", "\"offset\":1.5"), "line 1: \"offset\" is not a number" },
	{ LINE("\"a\"", "0", "\"offset\":\"0x10000000000000000\""),
	  "line 1: \"offset\" has more than 64 bits" },
	{ LINE("\"a\"", "0", "\"offset\":1,\"tsc_offset\":[]"),
	  "line 1: \"tsc_offset\" is not a number" },
	{ LINE("\"a\"", "0", "\"offset\":1,\"offset\":2"), "line 1: " },
	{ GOOD LINE("\"b\"", "0", "\"tsc\":\"0x10\""),
	  "line 2: CPU 0 has \"tsc\" here, but \"offset\" in line 1" },
	{ GOOD LINE("\"b\"", "1", "\"offset\":1") LINE("\"b\"", "0", "\"offset\":\"0x8\""),
	  "line 3: CPU 0 is at 0x8 here, but at 0x9 in line 1 already" },
	{ LINE("\"\xff\"", "0", "\"offset\":1"), "line 1: " },
	{ LINE("\"a\\u0000b\"", "0", "\"offset\":1"), "line 1: " },
};

START_TEST(bad_lines_are_named)
{
	const struct run *r;

	write_text("bad.jsonl", bad[_i].text);
	r = vmpt("vms --side-record=bad.jsonl x.cpu0.rtit");
	ck_assert_msg(r->code == 1, "%s: exit code %d", bad[_i].text, r->code);
	ck_assert_str_eq(r->out, "");
	ck_has(r->err, "bad.jsonl: ");
	ck_has(r->err, bad[_i].message);
}
END_TEST

START_TEST(a_record_and_its_cpus)
{
	const struct run *r;

	write_text("two.jsonl", GOOD LINE("\"b\"", "1", "\"offset\":1"));
	write_text("one.jsonl",
		   LINE("null", "7", "\"offset\":0") LINE("\"b\"", "7", "\"offset\":\"0x9\""));
	write_file("x.rtit", plain, SIZE);
	/* Whose is it? */
	r = vmpt("vms --side-record=two.jsonl x.rtit");
	ck_assert_int_eq(r->code, 2);
	ck_has(r->err, "the side record has 2 CPUs");
	ck_has(vmpt("vms --side-record=two.jsonl x.rtit@1")->out, "b vcpu 0  1 ");
	ck_has(vmpt("vms --side-record=one.jsonl x.rtit")->out, "b vcpu 0  – ");
	/* vm null is the host, and known to be. */
	ck_lacks(vmpt("vms --side-record=one.jsonl x.rtit")->out, "bytes assumed");
	r = vmpt("vms --side-record=one.jsonl x.cpu0.rtit");
	ck_assert_int_eq(r->code, 0);
	ck_has(r->err, "it has no line for CPU 0: all of its trace is taken for the host's");
	r = vmpt("vms --side-record=none.jsonl x.cpu0.rtit");
	ck_assert_int_eq(r->code, 1);
	ck_has(r->err, "none.jsonl: No such file");
	ck_assert_int_eq(vmpt("vms --side-record=. x.cpu0.rtit")->code, 1);
}
END_TEST

/* By hardware TSC: the FUP.PGE at 28H is at 1234567080H, the one at 9 before any STS. */
START_TEST(a_record_by_time)
{
	const struct run *r;

	write_text("tsc.jsonl", LINE("\"b\"", "0", "\"tsc\":\"0x1234567050\""));
	r = vmpt("vms --side-record=tsc.jsonl x.cpu0.rtit");
	ck_assert_int_eq(r->code, 0);
	ck_has(r->out, "b vcpu 0  0        1    2    1     35  46.7 %\n");
	ck_has(r->out, "host      0        1    1    1     40  53.3 %\n");
	/* Never */
	write_text("tsc.jsonl", LINE("\"b\"", "0", "\"tsc\":\"0x1234567081\""));
	ck_has(vmpt("vms --side-record=tsc.jsonl x.cpu0.rtit")->out, "host  0        1    3    2");
}
END_TEST

/* Lines that do not fit the trace: each is named, and those that do are not. */
START_TEST(lines_without_effect_are_given)
{
	const struct run *r = vmpt("vms --side-record=vms.jsonl x.cpu0.rtit");

	ck_assert_str_eq(r->err, "");
	write_text("far.jsonl", GOOD LINE("\"b\"", "0", "\"offset\":\"0x100000\""));
	r = vmpt("vms --side-record=far.jsonl x.cpu0.rtit");
	ck_assert_int_eq(r->code, 0);
	ck_has(r->err, "far.jsonl: line 2: offset 0x100000 is after the end, 0x4b; "
		       "1 of 2 lines of CPU 0 took no effect");
	ck_has(vmpt("dump --side-record=far.jsonl x.cpu0.rtit")->err, "line 2: offset 0x100000");
	ck_has(vmpt("split -o out --side-record=far.jsonl x.cpu0.rtit")->err,
	       "line 2: offset 0x100000");
	/* Not known yet. */
	ck_assert_str_eq(vmpt("dump --head=3 --side-record=far.jsonl x.cpu0.rtit")->err, "");
	/* Where the stream ends is where the VMM took it. */
	write_text("end.jsonl", GOOD LINE("null", "0", "\"offset\":\"0x4b\""));
	ck_assert_str_eq(vmpt("vms --side-record=end.jsonl x.cpu0.rtit")->err, "");
}
END_TEST

START_TEST(times_that_do_not_fit_are_given)
{
	static const u8 no_time[] = { PSB, 0x85, 0x00, 0x10, 0x40, 0x00, 0x43 };
	const struct run *r;

	write_text("tsc.jsonl", LINE("\"b\"", "0", "\"tsc\":\"0x1234567081\""));
	r = vmpt("vms --side-record=tsc.jsonl x.cpu0.rtit");
	ck_assert_int_eq(r->code, 0);
	ck_has(r->err, "tsc.jsonl: line 1: TSC 0x1234567081 is never reached; "
		       "1 of 1 lines of CPU 0 took no effect");
	/* 12H in the STS's 40 bits: nothing near 5000000000H, whatever is above them. */
	write_text("tsc.jsonl", LINE("\"b\"", "0", "\"tsc\":\"0x5000000000\""));
	r = vmpt("vms --side-record=tsc.jsonl x.cpu0.rtit");
	ck_has(r->err, "tsc.jsonl: line 1: TSC 0x5000000000 is far from the trace's first TSC, "
		       "taken as 0x12");
	write_file("t.cpu0.rtit", no_time, sizeof(no_time));
	r = vmpt("vms --side-record=tsc.jsonl t.cpu0.rtit");
	ck_has(r->err, "tsc.jsonl: the time of CPU 0's trace is unknown: none of its lines took "
		       "effect");
}
END_TEST

static double children_seconds(void)
{
	struct rusage u;

	ck_assert_int_eq(getrusage(RUSAGE_CHILDREN, &u), 0);
	return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
	       (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e6;
}

/* A record of this many VMs, each on its own CPU: CPU seconds used. */
static double seconds_of_vms(int n)
{
	double before = children_seconds();
	FILE *f = fopen("many.jsonl", "w");
	json_t *doc;
	char name[16];
	int i;

	ck_assert_ptr_nonnull(f);
	for (i = 0; i < n; i++)
		fprintf(f, LINE("\"v%d\"", "%d", "\"offset\":0"), i, i);
	ck_assert_int_eq(fclose(f), 0);
	snprintf(name, sizeof(name), "v%d", n - 1);
	doc = run_json(vmpt("vms --json --side-record=many.jsonl x.cpu0.rtit@%d", n - 1));
	ck_assert_str_eq(json_text(doc, "owners/0/vm"), name);
	json_decref(doc);
	return children_seconds() - before;
}

/* Four times the VMs take four times as long, not 16 times. */
START_TEST(many_vms)
{
	double few = seconds_of_vms(16384), many = seconds_of_vms(65536);

	ck_assert_msg(many < 8 * few, "%.3f s for 65,536 VMs, %.3f s for 16,384", many, few);
}
END_TEST

/* The same VM and CPU in many lines */
START_TEST(vms_come_again)
{
	const struct run *r;
	char text[16384] = "";
	int i;

	for (i = 0; i < 120; i++)
		sprintf(text + strlen(text), LINE("\"v%d\"", "0", "\"offset\":%d"), i * 7 % 100,
			i / 2);
	write_text("again.jsonl", text);
	r = vmpt("split -o out --side-record=again.jsonl x.cpu0.rtit");
	ck_assert_int_eq(r->code, 0);
	ck_lacks(r->out, "+");
	/* The last line that holds: i = 119, at the FUP.PGE at 3d. */
	ck_has(vmpt("dump --side-record=again.jsonl --start=0x3d --head=1 x.cpu0.rtit")->out,
	       "v33 vcpu 0");
}
END_TEST

TEST_SUITE()
{
	Suite *s = suite_create("cli rtit-record");
	TCase *t = tcase_create("record");

	tcase_add_checked_fixture(t, setup, cli_clean);
	tcase_add_test(t, names_are_made_safe);
	tcase_add_loop_test(t, bad_lines_are_named, 0, VMPT_ARRAY_SIZE(bad));
	tcase_add_test(t, a_record_and_its_cpus);
	tcase_add_test(t, a_record_by_time);
	tcase_add_test(t, lines_without_effect_are_given);
	tcase_add_test(t, times_that_do_not_fit_are_given);
	tcase_add_test(t, many_vms);
	tcase_add_test(t, vms_come_again);
	suite_add_tcase(s, t);
	return s;
}
