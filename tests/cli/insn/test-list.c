// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* The list of vmpt insn: it is what is counted, as text and as JSON, with filters. */
#include <stdio.h>
#include <stdlib.h>

#include "tests/cli/cli-run.h"
#include "tests/cli/insn/insn-run.h"
#include "tests/support/support.h"

START_TEST(lists_are_what_is_counted)
{
	const struct run *r;
	size_t lines = 0;
	char *at;

	if (!link_real(&reals[2]))
		return;
	r = vmpt("insn -q --code=x.addr x.pt");
	for (at = r->out; (at = strchr(at, '\n')); at++)
		lines++;
	ck_assert_uint_eq(lines, reals[2].instructions + 1);
	r = vmpt("insn -q --code=x.addr --head=3 x.pt");
	ck_assert_str_eq(r->out,
			 "VM                          IP  BYTES             INSTRUCTION\n"
			 "20ce5b000               41ac60  4157              push %r15\n"
			 "20ce5b000               41ac62  4156              push %r14\n"
			 "20ce5b000               41ac64  4189ff            mov %edi, %r15d\n");
}
END_TEST

/* Without code there are gaps alone: of these, too, --head lists N. */
START_TEST(gaps_are_rows)
{
	const struct run *r;
	json_t *lines;
	size_t n;

	if (!link_real(&reals[2]))
		return;
	r = vmpt("insn --head=3 x.pt");
	lines_with(r->out, "", &n);
	ck_has(r->err, "no code is known");
	ck_assert_uint_eq(n, 3);
	lines = run_packets(vmpt("insn --json -q --head=3 x.pt"));
	ck_assert_uint_eq(json_array_size(lines), 3);
	ck_assert_str_eq(json_text(json_array_get(lines, 0), "gap"), "no_code");
	json_decref(lines);
}
END_TEST

/* The list as JSON lines: the same instructions; gaps are among them. */
START_TEST(lists_as_json)
{
	const struct run *r;
	json_t *lines, *o;
	const char *line;
	u64 gaps = 0;
	size_t i;

	if (!link_real(&reals[2]))
		return;
	lines = run_packets(vmpt("insn --json -q --head=2000 --code=x.addr x.pt"));
	ck_assert_uint_eq(json_array_size(lines), 2000);
	r = vmpt("insn -q --head=2000 --code=x.addr x.pt");
	line = strchr(r->out, '\n') + 1;
	json_array_foreach(lines, i, o)
	{
		unsigned long long ip;

		ck_assert_int_eq(sscanf(line, "%*s %llx", &ip), 1);
		ck_assert_uint_eq(strtoull(json_text(o, "ip"), NULL, 16), ip);
		line = strchr(line, '\n') + 1;
	}
	o = json_array_get(lines, 2);
	ck_assert_str_eq(json_text(o, "ip"), "0x41ac64");
	ck_assert_str_eq(json_text(o, "bytes"), "4189ff");
	ck_assert_str_eq(json_text(o, "text"), "mov %edi, %r15d");
	ck_assert_str_eq(json_text(o, "vmcs"), "0x20ce5b000");
	ck_assert_str_eq(json_text(o, "cr3"), "0x1ee4a000");
	json_decref(lines);
	lines = run_packets(vmpt("insn --json -q x.pt"));
	json_array_foreach(lines, i, o) gaps += !strcmp(json_text(o, "gap"), "no_code");
	ck_assert_uint_gt(gaps, 0);
	json_decref(lines);
}
END_TEST

/* On a terminal a line shows how far it is, as that of other long commands does; -q: none. */
START_TEST(progress)
{
	if (!link_real(&reals[0]))
		return;
	setenv("VMPT_PROGRESS_AFTER", "0", 1);
	ck_has(vmpt_terminal_err("insn --count --code=x.addr x.pt")->out, " of 2.1 MB  ");
	ck_lacks(vmpt_terminal_err("insn -q --count --code=x.addr x.pt")->out, " MB");
	ck_lacks(vmpt_terminal("insn --head=90000 --code=x.addr x.pt")->out, " MB");
	unsetenv("VMPT_PROGRESS_AFTER");
}
END_TEST

#define NOTHING "nothing in the trace fits the filters"

/* What fits the filters is found by the flow, in lists and counts. */
START_TEST(filters_that_match)
{
	if (!link_real(&reals[2]))
		return;
	ck_lacks(vmpt("insn --count --vm=20ce5b000 --code=x.addr x.pt")->err, NOTHING);
	ck_lacks(vmpt("insn --head=3 --cr3=0x1ee4a000 --code=x.addr x.pt")->err, NOTHING);
	ck_has(vmpt("insn --count --vm=20ce5c000 --code=x.addr x.pt")->err, NOTHING);
	ck_has(vmpt("insn --head=3 --cr3=0x2000 --code=x.addr x.pt")->err, NOTHING);
}
END_TEST

START_TEST(filters)
{
	const struct run *r;
	json_t *doc;

	if (!link_real(&reals[2]))
		return;
	doc = run_json(vmpt("insn --count --json -q --cr3=0x1ee4a000 --code=x.addr x.pt"));
	ck_assert_uint_eq(json_u64(doc, "total/instructions"), reals[2].instructions);
	json_decref(doc);
	doc = run_json(vmpt("insn --count --json -q --cr3=0x2000 --code=x.addr x.pt"));
	ck_assert_uint_eq(json_u64(doc, "total/instructions"), 0);
	ck_assert_uint_eq(json_array_size(json_at(doc, "spaces")), 0);
	json_decref(doc);
	r = vmpt("insn --hash --cr3=0x2000 --code=x.addr x.pt");
	ck_assert_int_eq(r->code, 2);
	r = vmpt("insn --count --head=3 --code=x.addr x.pt");
	ck_assert_int_eq(r->code, 2);
}
END_TEST

#define RATES "--tsc-ratio=84 --mtc-freq=3"

/* What is listed by VM, CPU and time are the instructions of that VM, CPU and time, each once. */
START_TEST(lists_are_filtered)
{
	static const char record[] = "{\"vm\":\"web\",\"vcpu\":0,\"vmcs\":\"0x12345000\"}\n";
	char code[4096], when[32];
	const struct run *r;
	size_t all, some, n, m;

	ck_assert_int_eq(system("\"$TRACEGEN\" -o s.pt --no-packets --code code "
				"\"$SCRIPTS/timing.trace\""),
			 0);
	read_index(code, sizeof(code));
	write_file("v.jsonl", record, strlen(record));
	r = vmpt("insn -q " RATES " --side-record=v.jsonl %s s.pt@3", code);
	n = lines_with(r->out, " web vcpu 0 ", &all);
	ck_assert_uint_gt(n, 0);
	ck_assert_uint_lt(n, all);
	ck_assert_int_eq(sscanf(strchr(r->out + r->out_size / 2, '\n') + 1, "%31s", when), 1);
	r = vmpt("insn -q " RATES " --side-record=v.jsonl --vm=web %s s.pt@3", code);
	ck_assert_uint_eq(lines_with(r->out, " web vcpu 0 ", &some), n);
	ck_assert_uint_eq(some, n);
	r = vmpt("insn -q " RATES " --cpu=3 %s s.pt@3", code);
	lines_with(r->out, "", &some);
	ck_assert_uint_eq(some, all);
	r = vmpt("insn -q " RATES " --cpu=2 %s s.pt@3", code);
	ck_assert_int_ne(r->code, 0);
	r = vmpt("insn -q " RATES " --to=%s %s s.pt@3", when, code);
	lines_with(r->out, "", &some);
	r = vmpt("insn -q " RATES " --from=%s %s s.pt@3", when, code);
	lines_with(r->out, "", &m);
	ck_assert_uint_gt(some, 0);
	ck_assert_uint_gt(m, 0);
	ck_assert_uint_eq(some + m, all);
}
END_TEST

/* With times: halves of a trace add up to all of it. */
START_TEST(halves_by_time)
{
	char code[4096], when[32];
	const struct run *r;
	u64 all, sum = 0;
	json_t *doc;
	int i;

	ck_assert_int_eq(system("\"$TRACEGEN\" -o s.pt --no-packets --code code "
				"\"$SCRIPTS/timing.trace\""),
			 0);
	read_index(code, sizeof(code));
	doc = run_json(vmpt("insn --count --json -q %s s.pt", code));
	all = json_u64(doc, "total/instructions");
	json_decref(doc);
	/* The time in the list's middle. */
	r = vmpt("insn -q " RATES " %s s.pt", code);
	ck_assert_int_eq(sscanf(strchr(r->out + r->out_size / 2, '\n') + 1, "%31s", when), 1);
	for (i = 0; i < 2; i++) {
		doc = run_json(vmpt("insn --count --json -q " RATES " --%s=%s %s s.pt",
				    i ? "from" : "to", when, code));
		ck_assert_uint_lt(json_u64(doc, "total/instructions"), all);
		sum += json_u64(doc, "total/instructions");
		json_decref(doc);
	}
	ck_assert_uint_eq(sum, all);
}
END_TEST

TEST_SUITE()
{
	Suite *suite = suite_create("cli/insn-list");
	TCase *c = tcase_create("list");

	tcase_add_checked_fixture(c, cli_setup, cli_clean);
	tcase_set_timeout(c, 60);
	tcase_add_test(c, lists_are_what_is_counted);
	tcase_add_test(c, gaps_are_rows);
	tcase_add_test(c, lists_as_json);
	tcase_add_test(c, progress);
	tcase_add_test(c, filters_that_match);
	tcase_add_test(c, filters);
	tcase_add_test(c, lists_are_filtered);
	tcase_add_test(c, halves_by_time);
	suite_add_tcase(suite, c);
	return suite;
}
