// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* The files that a command is given: those it cannot read, their CPUs, standard input. */
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/cli/cli-run.h"
#include "tests/support/support.h"

static const char *const commands[] = { "dump", "stat", "vms", "split", "clocks" };

START_TEST(a_file_that_cannot_be_read_is_1)
{
	size_t i;

	ck_assert_int_eq(mkdir("folder", 0700), 0);
	write_file("empty.pt", "", 0);
	write_mixed("x.pt");
	for (i = 0; i < VMPT_ARRAY_SIZE(commands); i++) {
		const char *o = i == 3 ? "-o out" : "";
		const struct run *r = vmpt("%s %s missing.pt", commands[i], o);

		ck_assert_int_eq(r->code, 1);
		ck_has(r->err, "missing.pt");
		ck_has(r->err, "No such file");
		r = vmpt("%s %s folder", commands[i], o);
		ck_assert_int_eq(r->code, 1);
		ck_has(r->err, "folder");
		r = vmpt("%s %s empty.pt", commands[i], o);
		ck_assert_int_eq(r->code, 1);
		ck_has(r->err, "empty.pt");
		r = vmpt("%s %s x.pt missing.pt", commands[i], o);
		ck_assert_int_eq(r->code, 1);
		ck_has(r->err, "missing.pt");
	}
}
END_TEST

START_TEST(a_broken_perf_data_is_1)
{
	u8 head[104] = "PERFILE2";

	write_file("perf.data", head, sizeof(head));
	ck_assert_int_eq(vmpt("vms perf.data")->code, 1);
	ck_has(vmpt("vms perf.data")->err, "perf.data: ");
	write_file("perf.data", head, 20);
	ck_assert_int_eq(vmpt("stat perf.data")->code, 1);
	write_mixed("x.pt");
	ck_assert_int_eq(vmpt("stat x.pt perf.data")->code, 1);
	ck_has(vmpt("stat x.pt perf.data")->err, "alone");
}
END_TEST

/* No PSB at all: everything is lost, and reported as lost. */
START_TEST(no_psb_is_3)
{
	struct test_rng rng = { 1 };
	u8 noise[4096];
	size_t i;

	for (i = 0; i < sizeof(noise); i++)
		noise[i] = (u8)test_random(&rng) | 1;
	write_file("noise.pt", noise, sizeof(noise));
	for (i = 0; i < VMPT_ARRAY_SIZE(commands); i++) {
		const char *o = i == 3 ? "-f -o out" : "";
		const struct run *r = vmpt("%s %s noise.pt", commands[i], o);

		ck_assert_msg(r->code == 3, "%s: %d, %s", commands[i], r->code, r->err);
		ck_has(r->err, "lost 4,096 bytes in 1 place");
		ck_has(r->err, "--headless");
		r = vmpt("%s %s --quiet noise.pt", commands[i], o);
		ck_assert_int_eq(r->code, 3);
		ck_assert_str_eq(r->err, "");
	}
}
END_TEST

START_TEST(cpus_of_files)
{
	static const struct {
		const char *files, *cpus; /* -: not known */
	} line[] = {
		{ "x.pt", "-" },
		{ "x.pt@7", "7" },
		{ "x.cpu3.pt", "3" },
		{ "x.cpu12", "12" },
		{ "x.cpu3.pt@4", "4" },
		{ "x.cpus.pt", "-" },
		{ "x.pt x.cpu12", "0 12" },
		{ "x.pt x.pt x.pt", "0 1 2" },
		{ "x.pt@1 x.pt x.pt x.pt@0", "0 1 2 3" },
		/* Names with an @ of their own */
		{ "y@1", "-" },
		{ "y@1@3", "3" },
		{ "y@1 x.pt@1", "0 1" },
		{ "x@2.cpu7.pt", "7" },
		/* The names of vmpt domain trace */
		{ "cpu2.pt", "2" },
		{ "./cpu10.pt x.pt ./cpu2.pt", "0 2 10" },
		{ "cpu2", "-" },
		{ "acpu2.pt", "-" },
	};
	size_t i, k;

	write_mixed("x.pt");
	write_mixed("x.cpu3.pt");
	write_mixed("x.cpu12");
	write_mixed("x.cpus.pt");
	write_mixed("cpu2.pt");
	write_mixed("cpu10.pt");
	write_mixed("cpu2");
	write_mixed("acpu2.pt");
	write_mixed("y@1");
	write_mixed("x@2.cpu7.pt");
	for (i = 0; i < VMPT_ARRAY_SIZE(line); i++) {
		json_t *doc = run_json(vmpt("stat --json %s", line[i].files));
		json_t *streams = json_at(doc, "streams");
		char cpus[64] = "";

		for (k = 0; k < json_array_size(streams); k++) {
			json_t *cpu = json_at(json_array_get(streams, k), "cpu");
			char *end = cpus + strlen(cpus);

			if (json_is_null(cpu))
				strcpy(end, k ? " -" : "-");
			else
				sprintf(end, "%s%d", k ? " " : "", (int)json_integer_value(cpu));
		}
		ck_assert_str_eq(cpus, line[i].cpus);
		json_decref(doc);
	}
}
END_TEST

START_TEST(standard_input)
{
	json_t *doc;

	write_mixed("x.pt");
	vmpt_stdin = "x.pt";
	doc = run_json(vmpt("stat --json -"));
	ck_assert_uint_eq(json_u64(doc, "total/bytes"), MIXED_SIZE);
	json_decref(doc);
	doc = run_json(vmpt("stat --json -- -@3"));
	ck_assert_uint_eq(json_u64(doc, "streams/0/cpu"), 3);
	json_decref(doc);
	vmpt_stdin = "/dev/null";
	ck_assert_int_eq(vmpt("stat -")->code, 1);
}
END_TEST

START_TEST(cpu_list_chooses)
{
	json_t *doc;

	write_mixed("x.pt");
	doc = run_json(vmpt("stat --json --cpu=0,2-3 x.pt x.pt x.pt@9 x.pt@3"));
	ck_assert_uint_eq(json_array_size(json_at(doc, "streams")), 2);
	ck_assert_uint_eq(json_u64(doc, "streams/1/cpu"), 3);
	ck_assert_uint_eq(json_u64(doc, "total/bytes"), 2 * MIXED_SIZE);
	json_decref(doc);
	ck_assert_int_eq(vmpt("stat --cpu=5 x.pt x.pt")->code, 2);
	ck_has(vmpt("stat --cpu=5 x.pt x.pt")->err, "between 0 and 1");
	ck_assert_int_eq(vmpt("stat --cpu=0 x.pt")->code, 2);
}
END_TEST

/* G10: one trace given twice counts as two CPUs: a sentence, whatever its names are. */
START_TEST(g10_one_trace_given_twice)
{
	static const char *const twice[] = { "x.pt ./x.pt", "x.pt@3 link.pt", "x.pt y.pt hard.pt" };
	size_t i;

	write_mixed("x.pt");
	write_mixed("y.pt");
	ck_assert_int_eq(symlink("x.pt", "link.pt") | link("x.pt", "hard.pt"), 0);
	for (i = 0; i < VMPT_ARRAY_SIZE(twice); i++)
		ck_has(vmpt("stat %s", twice[i])->err,
		       "is the same file as x.pt: its trace counts as");
	ck_lacks(vmpt("stat x.pt y.pt")->err, "same file");
	ck_lacks(vmpt("stat /dev/null x.pt /dev/null")->err, "same file");
}
END_TEST

TEST_SUITE()
{
	Suite *suite = suite_create("cli inputs");
	TCase *tc = tcase_create("inputs");

	tcase_add_checked_fixture(tc, cli_setup, cli_clean);
	tcase_add_test(tc, a_file_that_cannot_be_read_is_1);
	tcase_add_test(tc, a_broken_perf_data_is_1);
	tcase_add_test(tc, no_psb_is_3);
	tcase_add_test(tc, cpus_of_files);
	tcase_add_test(tc, standard_input);
	tcase_add_test(tc, cpu_list_chooses);
	tcase_add_test(tc, g10_one_trace_given_twice);
	suite_add_tcase(suite, tc);
	return suite;
}
