// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* vmpt latency: of a guest whose script says how long its calls take, and why (machine.h). */
#include <stdlib.h>
#include <string.h>

#include "tests/cli/cli-run.h"
#include "tests/cli/tree/machine.h"
#include "tests/support/support.h"

static json_t *latency(const char *code, const char *function, const char *more)
{
	return run_json(vmpt("latency %s --json -q %s%s m.pt", function, code, more));
}

static bool is(const json_t *o, const char *key, const char *want)
{
	const char *value = json_string_value(json_object_get(o, key));

	return value && !strcmp(value, want);
}

/* The ticks of a part; 0: there is none. */
static u64 part(json_t *doc, const char *kind, const char *key, const char *value)
{
	json_t *o;
	size_t i;

	json_array_foreach(json_at(doc, "functions/0/parts"), i,
			   o) if (is(o, "kind", kind) &&
				  (!key || is(o, key, value))) return json_u64(o, "time_ticks");
	return 0;
}

static void check_part(json_t *doc, const char *kind, const char *key, const char *value, u64 want,
		       u64 more)
{
	const u64 ticks = part(doc, kind, key, value);

	ck_assert_msg(ticks >= want && ticks <= want + more, "%s %s: %llu", kind,
		      value ? value : "", (unsigned long long)ticks);
}

/* All parts together are all the calls' time. */
static void check_sum(json_t *doc)
{
	u64 sum = 0;
	json_t *o;
	size_t i;

	json_array_foreach(json_at(doc, "functions/0/parts"), i, o) sum +=
		json_u64(o, "time_ticks");
	ck_assert_uint_eq(sum, json_u64(doc, "functions/0/sum_ticks"));
}

/* What the script's "advance" says, and at most 20 instructions of 3 ticks of the host a call. */
START_TEST(parts)
{
	const char *code = machine_write(1, _i);
	json_t *doc;

	doc = latency(code, "0x400100", "--vm=" MACHINE_VM " " MACHINE_RATE);
	ck_assert_uint_eq(json_u64(doc, "functions/0/count"), 10);
	check_part(doc, "exit", "reason", "I/O instruction", 10 * 1000, 10 * 60);
	check_part(doc, "run", NULL, NULL, 10 * 5 * 3, 10 * 60);
	ck_assert_uint_eq(json_array_size(json_at(doc, "functions/0/parts")), 2);
	check_sum(doc);
	json_decref(doc);
	doc = latency(code, "0x400200", "--vm=" MACHINE_VM " " MACHINE_RATE);
	ck_assert_uint_eq(json_u64(doc, "functions/0/count"), 5);
	check_part(doc, "halted", NULL, NULL, 5 * 5000, 5 * 60);
	ck_assert_uint_eq(json_array_size(json_at(doc, "functions/0/parts")), 2);
	check_sum(doc);
	json_decref(doc);
	doc = latency(code, "0x400300", "--vm=" MACHINE_VM " " MACHINE_RATE);
	ck_assert_uint_eq(json_u64(doc, "functions/0/count"), 4);
	check_part(doc, "exit", "reason", "EPT violation", 4 * 500, 4 * 60);
	check_part(doc, "vm", "for_vm", "23456000", 4 * 7000, 4 * 60);
	ck_assert_uint_eq(json_array_size(json_at(doc, "functions/0/parts")), 3);
	check_sum(doc);
	json_decref(doc);
}
END_TEST

/* Of the host's point of view the guests are what its loop waits for; and percentiles are in order.
 */
START_TEST(percentiles)
{
	static const char *const key[] = { "min", "p50", "p90", "p99", "max" };
	json_t *doc = latency(machine_write(1, 1), "0x4*", MACHINE_RATE), *o, *bar;
	char name[32];
	size_t i, k;

	ck_assert_uint_ge(json_array_size(json_at(doc, "functions")), 7);
	json_array_foreach(json_at(doc, "functions"), i, o)
	{
		u64 last = 0, n = 0;

		for (k = 0; k < VMPT_ARRAY_SIZE(key) && json_u64(o, "count"); k++) {
			snprintf(name, sizeof(name), "%s_ticks", key[k]);
			ck_assert_uint_ge(json_u64(o, name), last);
			last = json_u64(o, name);
		}
		json_array_foreach(json_at(o, "histogram"), k, bar)
		{
			n += json_u64(bar, "count");
			ck_assert_uint_lt(json_u64(bar, "from_ticks"),
					  json_u64(bar, "below_ticks"));
		}
		ck_assert_uint_eq(n, json_u64(o, "count"));
		/* The longest come first. */
		if (json_u64(o, "count"))
			ck_assert_uint_eq(json_u64(o, "longest/0/time_ticks"), last);
	}
	json_decref(doc);
}
END_TEST

/* Without times: instructions, which the script says. */
START_TEST(instructions)
{
	json_t *doc = latency(machine_write(0, 1), "0x400400,0x400600", "");

	ck_assert_str_eq(json_text(doc, "functions/0/function"), "0x400400");
	ck_assert_uint_eq(json_u64(doc, "functions/0/count"), 6);
	ck_assert_uint_eq(json_u64(doc, "functions/0/min_instructions"), 72);
	ck_assert_uint_eq(json_u64(doc, "functions/0/max_instructions"), 72);
	ck_assert_str_eq(json_text(doc, "functions/1/function"), "0x400600");
	ck_assert_uint_eq(json_u64(doc, "functions/1/count"), 18);
	ck_assert_uint_eq(json_u64(doc, "functions/1/sum_instructions"), 18 * 3);
	ck_assert_str_eq(json_text(doc, "functions/1/longest/0/callers/0/function"), "0x400500");
	ck_assert_str_eq(json_text(doc, "functions/1/longest/0/callers/1/function"), "0x400400");
	json_decref(doc);
}
END_TEST

START_TEST(text)
{
	const char *code = machine_write(1, 1);
	const struct run *r;

	r = vmpt("latency 0x400300 --top=1 %s" MACHINE_RATE " m.pt", code);
	ck_assert_int_eq(r->code, 0);
	ck_has(r->out, "waited: VM 23456000");
	ck_has(r->out, "VM exit: EPT violation");
	ck_has(r->out, "called by 0x400000");
	ck_has(r->out, "4,096 –      8,192             4  █");
	ck_has(r->err, "times are in its ticks");
	r = vmpt("latency 0x400300 --csv -q %s" MACHINE_RATE " m.pt", code);
	ck_has(r->out, "\nvm,0x12345000,,,0x400300,4,0,0,");
}
END_TEST

START_TEST(bad_input)
{
	const struct run *r;

	machine_write(1, 1);
	r = vmpt("latency m.pt");
	ck_assert_int_eq(r->code, 2);
	ck_has(r->err, "give a function");
	r = vmpt("latency");
	ck_assert_int_eq(r->code, 2);
	r = vmpt("latency main nothing.pt");
	ck_assert_int_eq(r->code, 1);
	/* No code: no calls, and each lack is said. */
	r = vmpt("latency main m.pt");
	ck_assert_int_eq(r->code, 0);
	ck_has(r->err, "no code is known");
	ck_has(r->err, "no call of main is in the trace");
	json_decref(run_json(vmpt("latency --json -q main m.pt")));
	r = vmpt("latency --top=2000 main m.pt");
	ck_assert_int_eq(r->code, 2);
	/* Names are not trusted. */
	r = vmpt("latency \033[31m m.pt");
	ck_lacks(r->err, "\033[31m ");
}
END_TEST

TEST_SUITE()
{
	Suite *suite = suite_create("latency");
	TCase *tc = tcase_create("latency");

	tcase_add_checked_fixture(tc, cli_setup, cli_clean);
	tcase_add_loop_test(tc, parts, 0, 2);
	tcase_add_test(tc, percentiles);
	tcase_add_test(tc, instructions);
	tcase_add_test(tc, text);
	tcase_add_test(tc, bad_input);
	suite_add_tcase(suite, tc);
	return suite;
}
