// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* vmpt timeline --chrome: each event, its order, its size, and names that are hostile to JSON. */
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "tests/cli/cli-run.h"
#include "tests/cli/timeline/files.h"

struct track {
	long long pid, tid;
	double x_end; /* of the last X */
	double last;  /* ts of the last event of any kind */
	bool named;
};

static struct track tracks[64];
static size_t track_count;

static struct track *track_of(json_t *e)
{
	long long pid = json_integer_value(json_object_get(e, "pid"));
	long long tid = json_integer_value(json_object_get(e, "tid"));
	size_t i;

	ck_assert(json_is_integer(json_object_get(e, "pid")));
	ck_assert(json_is_integer(json_object_get(e, "tid")));
	for (i = 0; i < track_count; i++)
		if (tracks[i].pid == pid && tracks[i].tid == tid)
			return &tracks[i];
	ck_assert_uint_lt(track_count, 64);
	tracks[track_count] = (struct track){ .pid = pid, .tid = tid };
	return &tracks[track_count++];
}

/* Durations to the 4 digits that are written. */
#define DIGIT 0.00011

static void check_event(json_t *e, size_t *xs)
{
	const char *ph = json_text(e, "ph");
	struct track *t = track_of(e);
	double ts;

	if (!strcmp(ph, "M")) {
		ck_assert(json_is_object(json_object_get(e, "args")));
		t->named |= !strcmp(json_text(e, "name"), "thread_name") ||
			    !strcmp(json_text(e, "name"), "process_name");
		return;
	}
	ts = json_number(e, "ts");
	ck_assert_msg(t->named, "an event of a thread without a name");
	if (!strcmp(ph, "X")) {
		double dur = json_number(e, "dur");

		ck_assert_msg(dur > 0, "an event without a length");
		ck_assert_msg(ts + DIGIT >= t->x_end, "spans overlap on a thread");
		ck_assert(*json_text(e, "name") != '\0');
		t->x_end = ts + dur;
		++*xs;
	} else {
		ck_assert_str_eq(ph, "i");
		ck_assert_str_eq(json_text(e, "s"), "t");
	}
}

START_TEST(trace_events)
{
	const struct run *r = vmpt("timeline -q --chrome=t.json " RATES " %s "
				   "--side-record=vms.jsonl " FILES,
				   _i ? KHZ : "-q");
	json_t *doc = json_load_file("t.json", 0, NULL), *e;
	size_t i, xs = 0, exits = 0, n;
	double out = 0, want = 0, unit = _i ? 2000 : 1; /* ticks of a microsecond, or 1 */

	ck_assert_int_eq(r->code, 0);
	ck_assert_str_eq(r->out, "");
	ck_assert_ptr_nonnull(doc);
	track_count = 0;
	json_array_foreach(json_at(doc, "traceEvents"), i, e)
	{
		check_event(e, &xs);
		if (strcmp(json_text(e, "ph"), "X") || json_u64(e, "pid") == 1)
			continue;
		exits++;
		out += json_number(e, "dur");
	}
	/* Each run on its CPU, each exit on its vCPU, the last one of each up to the trace's end.
	 */
	ck_assert_uint_ge(exits, runs - 5);
	ck_assert_uint_le(exits, runs);
	ck_assert_uint_eq(xs, runs + exits);
	for (n = 0; n < 5; n++) {
		u64 end = 0, last = 0;

		for (i = 0; i < runs; i++) {
			last = run[i].exit > last ? run[i].exit : last;
			if (run[i].guest != n)
				continue;
			want += end ? (double)(run[i].entry - end) : 0;
			end = run[i].exit;
		}
		want += (double)(last - end);
	}
	ck_assert_msg(out * unit >= want - 4 * (double)runs, "%f, not %f", out * unit, want);
	/* The trace goes on a little after the last exit. */
	ck_assert_msg(out * unit <= want + 4 * (double)runs + 5 * 20000, "%f, not %f", out * unit,
		      want);
	/* Processes: CPUs, web, db and two VMCSs; threads: 3 CPUs, 5 vCPUs; each process itself. */
	ck_assert_uint_eq(track_count, 3 + 5 + 5);
	json_decref(doc);
}
END_TEST

/* B9: an exit takes at most 200 bytes, with all that is written for its run. */
START_TEST(b9_chrome_is_small)
{
	struct stat st;

	ck_assert_int_eq(
		vmpt("timeline -q --chrome=t.json " RATES " " KHZ " --side-record=vms.jsonl " FILES)
			->code,
		0);
	ck_assert_int_eq(stat("t.json", &st), 0);
	ck_assert_msg((u64)st.st_size <= 200 * runs, "%lld bytes for %zu exits",
		      (long long)st.st_size, runs);
}
END_TEST

/* Names that would steer a terminal, or turn what stands beside them. */
START_TEST(hostile_names)
{
	static const char *const line[] = { "timeline",
					    "timeline --summary",
					    "timeline --chrome=-",
					    "timeline --html=-",
					    "timeline --json",
					    "exits --json",
					    "exits",
					    "clocks",
					    "clocks --json",
					    "vms",
					    "vms --json",
					    "split -fo o",
					    "split --json -fo o" };
	static const char *const bad[] = { "\033",	   "\xc2\x9b",	   "\xe2\x80\xae",
					   "\xe2\x81\xa6", "\xe2\x80\x8f", "\xd8\x9c" };
	char text[256];
	size_t i, k;

	snprintf(text, sizeof(text),
		 "{\"vm\":\"a\\u202eb\\u2066\\u200f\\u001b[\\u009bc\\u061c\",\"vcpu\":0,"
		 "\"vmcs\":\"0x%llx\"}\n",
		 (unsigned long long)tl_vmcs(0));
	write_file("bad.jsonl", text, strlen(text));
	for (i = 0; i < VMPT_ARRAY_SIZE(line); i++) {
		const struct run *r = vmpt("%s --side-record=bad.jsonl " RATES " " FILES, line[i]);

		ck_assert_int_eq(r->code, 0);
		ck_assert_msg(strstr(r->out, "a\\") != NULL, "%s: %.300s", line[i], r->out);
		for (k = 0; k < VMPT_ARRAY_SIZE(bad); k++)
			ck_assert_msg(!strstr(r->out, bad[k]) && !strstr(r->err, bad[k]), "%s: %zu",
				      line[i], k);
	}
	ck_has(vmpt("timeline --owner=a\\u202eb\\u2066\\u200f\\u001b[\\u009bc\\u061c -n 9 "
		    "--side-record=bad.jsonl -q " RATES " " FILES)
		       ->out,
	       " vcpu 0 ");
}
END_TEST

TEST_SUITE()
{
	Suite *suite = suite_create("cli timeline chrome");
	TCase *tc = tcase_create("timeline chrome");

	tcase_add_checked_fixture(tc, timeline_setup, timeline_teardown);
	tcase_add_test(tc, trace_events);
	tcase_add_test(tc, b9_chrome_is_small);
	tcase_add_test(tc, hostile_names);
	suite_add_tcase(suite, tc);
	return suite;
}
