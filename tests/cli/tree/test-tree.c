// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * vmpt calls: the tree of a guest whose script says what it calls (machine.h), with repeats folded
 * and not; what each option leaves out; and what must hold of real traces.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/cli/cli-run.h"
#include "tests/cli/tree/machine.h"
#include "tests/support/support.h"

static json_t *lines(const char *code, const char *more)
{
	return run_json(vmpt("calls --json -q %s%s m.pt", code, more));
}

static u64 member(const json_t *o, const char *key)
{
	const json_t *n = json_object_get(o, key);

	ck_assert_msg(json_is_integer(n), "%s", key);
	return (u64)json_integer_value(n);
}

static bool is(const json_t *o, const char *key, const char *want)
{
	const char *value = json_string_value(json_object_get(o, key));

	return value && !strcmp(value, want);
}

/* Calls of @function that the lines stand for, and the sum of @key of all. */
static u64 calls_of(json_t *doc, const char *function, const char *key, u64 *sum)
{
	json_t *o;
	u64 n = 0;
	size_t i;

	*sum = 0;
	json_array_foreach(json_at(doc, "calls"), i, o)
	{
		if (!is(o, "function", function) || is(o, "what", "enter") || is(o, "what", "run"))
			continue;
		n += member(o, "count");
		*sum += member(o, key);
	}
	return n;
}

/* Each function's own instructions and those of what it calls, by the script. */
static const struct {
	const char *function;
	u64 calls, instructions;
} truth[] = {
	/* NOPs, one that exits, the RET */
	{ "0x400100", 10, 5 + 5 + 1 },
	{ "0x400200", 5, 5 + 3 + 1 },
	{ "0x400300", 4, 1 },
	/* NOPs; 3 loops of CALL and Jcc, 7 of them; RET */
	{ "0x400400", 6, 10 + 3 * (2 + 4 + 1 + 2 + 1 + 1) + 7 * (2 + 1 + 1) + 1 },
};

/* Without folding: with --function each call is at the top, and differs from none. */
START_TEST(counts_and_instructions)
{
	const char *code = machine_write(_i, 1);
	char option[64];
	json_t *doc;
	size_t i;
	u64 n, sum;

	for (i = 0; i < VMPT_ARRAY_SIZE(truth); i++) {
		snprintf(option, sizeof(option), "--vm=" MACHINE_VM " --function=%s%s",
			 truth[i].function, _i ? " " MACHINE_RATE : "");
		doc = lines(code, option);
		n = calls_of(doc, truth[i].function, "instructions", &sum);
		ck_assert_msg(n == truth[i].calls, "%s: %llu calls", truth[i].function,
			      (unsigned long long)n);
		/* The instruction that exits is executed after the entry, or not at all. */
		ck_assert_msg(sum >= n * truth[i].instructions &&
				      sum <= n * (truth[i].instructions + 1),
			      "%s: %llu instructions", truth[i].function, (unsigned long long)sum);
		json_decref(doc);
	}
}
END_TEST

/* The text, whole: what the script's loops are. */
START_TEST(folded)
{
	static const char want[] = "INSTRUCTIONS  CALL\n"
				   "--- trace: 12345000, CR3 5000 ---\n"
				   "              0x400400() {\n"
				   "                0x400500() {\n"
				   "           3      0x400600();\n"
				   "           9    }\n"
				   "          18    0x400500() { … } × 2 more\n"
				   "          14    0x400700(); × 7\n"
				   "          72  }\n"
				   "         360  0x400400() { … } × 5 more\n";
	const struct run *r;

	r = vmpt("calls -q %s --per=%s --function=0x400400 --vm=" MACHINE_VM " m.pt",
		 machine_write(0, 1), _i ? "task" : "cpu");
	ck_assert_int_eq(r->code, 0);
	ck_assert_str_eq(r->out, want);
}
END_TEST

/* With times: the time out of the guest, by the exit, between the lines of the call. */
START_TEST(exits)
{
	/* With the host's code, and without: then nothing but the spans say that it ran. */
	json_t *doc = lines(machine_write(1, _i), "--vm=" MACHINE_VM " " MACHINE_RATE), *o;
	static const struct {
		const char *exit;
		u64 count, ticks;
	} want[] = {
		{ "I/O instruction", 10, 10 * 1000 },
		{ "HLT", 5, 5 * 5000 },
		{ "EPT violation", 4, 4 * 7500 },
	};
	u64 count[3] = { 0 }, ticks[3] = { 0 };
	u64 folds = 1;
	size_t i, k;

	/* The first of a folded call is shown with its exit, for all of them. */
	json_array_foreach(json_at(doc, "calls"), i, o)
	{
		for (k = 0; k < 3; k++) {
			if (!is(o, "what", "out") || !is(o, "exit", want[k].exit))
				continue;
			count[k] += member(o, "count");
			ticks[k] += member(o, "time_ticks");
		}
	}
	for (k = 0; k < 3; k++) {
		folds = want[k].count / (count[k] ? count[k] : 1);
		ck_assert_msg(count[k] && folds >= 1, "%s", want[k].exit);
		/* Each of the host's instructions takes 3 ticks. */
		ck_assert_uint_ge(ticks[k] * folds, want[k].ticks);
		ck_assert_uint_le(ticks[k] * folds, want[k].ticks + want[k].count * 60);
	}
	json_decref(doc);
}
END_TEST

START_TEST(options)
{
	const char *code = machine_write(1, 1);
	const struct run *r;
	json_t *doc, *o;
	size_t i;

	doc = lines(code, "--depth=2 " MACHINE_RATE);
	json_array_foreach(json_at(doc, "calls"), i,
			   o) if (!is(o, "what", "run") && !is(o, "what", "out"))
		ck_assert_uint_lt(member(o, "depth"), 2);
	json_decref(doc);
	doc = lines(code, "--min=4000 --vm=" MACHINE_VM " " MACHINE_RATE);
	json_array_foreach(json_at(doc, "calls"), i, o)
	{
		ck_assert(!is(o, "function", "0x400100") && !is(o, "function", "0x400400"));
		if (is(o, "what", "call"))
			ck_assert_uint_ge(member(o, "time_ticks"), 4000);
	}
	json_decref(doc);
	doc = lines(code, "--head=3 " MACHINE_RATE);
	ck_assert_uint_eq(json_array_size(json_at(doc, "calls")), 3);
	json_decref(doc);
	r = vmpt("calls -q --csv %s" MACHINE_RATE " m.pt", code);
	ck_assert_int_eq(r->code, 0);
	ck_has(r->out, "what,cpu,tid,offset,host_tsc,task,depth,module,function,");
	/* In microseconds, where the frequency is known: 4,000 ticks. */
	r = vmpt("calls -q %s" MACHINE_RATE " --tsc-khz=1000000 --min=4us --vm=" MACHINE_VM " m.pt",
		 code);
	ck_has(r->out, " µs");
	ck_has(r->out, "0x400300");
	ck_lacks(r->out, "0x400700");
	/* Other VMs are no lines. */
	r = vmpt("calls -q %s" MACHINE_RATE " --owner=host m.pt", code);
	ck_lacks(r->out, "0x400");
}
END_TEST

START_TEST(bad_input)
{
	const struct run *r;

	machine_write(1, 1);
	r = vmpt("calls --min=soon m.pt");
	ck_assert_int_eq(r->code, 2);
	ck_has(r->err, "--min=soon: no duration");
	r = vmpt("calls --per=vm m.pt");
	ck_assert_int_eq(r->code, 2);
	r = vmpt("calls m.pt");
	ck_assert_int_eq(r->code, 0);
	ck_has(r->err, "no code is known");
	r = vmpt("calls --json --head=1 m.pt");
	json_decref(run_json(r));
	r = vmpt("calls nothing.pt");
	ck_assert_int_eq(r->code, 1);
}
END_TEST

/* ---- real traces ---- */

static void link_real(const char *name)
{
	static const char *const ends[] = { "pt", "addr", "dump" };
	char file[64], to[16];
	size_t i;

	for (i = 0; i < 3; i++) {
		snprintf(file, sizeof(file), "%s.%s", name, ends[i]);
		snprintf(to, sizeof(to), "x.%s", ends[i]);
		ck_assert_int_eq(symlink(test_data(file), to), 0);
	}
}

/* Lines nest: each END is of the call that began last, and at its depth; a call has at least the
 * instructions of those in it. */
START_TEST(nested)
{
	struct {
		u64 depth, inside;
		char function[64];
	} open[4096] = { 0 };
	json_t *doc, *o;
	size_t i, n = 0;

	if (!test_data("guest-unzip.pt"))
		return;
	link_real("guest-unzip");
	doc = run_json(vmpt("calls -q --json --code=x.addr x.pt"));
	ck_assert_uint_gt(json_array_size(json_at(doc, "calls")), 100);
	json_array_foreach(json_at(doc, "calls"), i, o)
	{
		const char *what = json_text(o, "what");
		u64 all;

		if (!strcmp(what, "run") || !strcmp(what, "gap"))
			continue;
		ck_assert_uint_eq(member(o, "depth"), !strcmp(what, "leave") ? n - 1 : n);
		if (!strcmp(what, "enter")) {
			snprintf(open[n].function, 64, "%s", json_text(o, "function"));
			open[n++].inside = 0;
			ck_assert_uint_lt(n, 4096);
			continue;
		}
		all = member(o, "instructions");
		if (!strcmp(what, "leave")) {
			n--;
			ck_assert_str_eq(json_text(o, "function"), open[n].function);
			ck_assert_uint_ge(all, open[n].inside);
		}
		if (n)
			open[n - 1].inside += all;
	}
	json_decref(doc);
}
END_TEST

TEST_SUITE()
{
	Suite *suite = suite_create("tree");
	TCase *tc = tcase_create("tree");

	tcase_add_checked_fixture(tc, cli_setup, cli_clean);
	tcase_add_loop_test(tc, counts_and_instructions, 0, 2);
	tcase_add_loop_test(tc, folded, 0, 2);
	tcase_add_loop_test(tc, exits, 0, 2);
	tcase_add_test(tc, options);
	tcase_add_test(tc, bad_input);
	tcase_add_test(tc, nested);
	suite_add_tcase(suite, tc);
	return suite;
}
