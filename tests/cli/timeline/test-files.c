// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* vmpt timeline: trace events, windows, guesses by code, and what is wrong with its input. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/cli/cli-run.h"
#include "tests/cli/timeline/files.h"

/* ---- Chrome's trace events ---- */

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

static double real(json_t *o, const char *key)
{
	json_t *v = json_object_get(o, key);

	ck_assert_msg(json_is_number(v), "%s", key);
	return json_number_value(v);
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
	ts = real(e, "ts");
	ck_assert_msg(t->named, "an event of a thread without a name");
	if (!strcmp(ph, "X")) {
		double dur = real(e, "dur");

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
		out += real(e, "dur");
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

/* ---- windows and owners ---- */

/* The span of the whole trace that @o is, or is a part of. */
static json_t *whole_of(json_t *spans, json_t *o)
{
	json_t *s;
	size_t i;

	json_array_foreach(spans, i,
			   s) if (json_u64(s, "cpu") == json_u64(o, "cpu") &&
				  json_u64(s, "offset") == json_u64(o, "offset")) return s;
	ck_abort_msg("no span at %llu", (unsigned long long)json_u64(o, "offset"));
}

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

/* Text of a line that is not JSON is repeated in its warning. */
START_TEST(hostile_lines)
{
	static const char text[] = "{\"vm\":\"web\",\"vcpu\":0,\"vmcs\":\"0x1000\"}\n"
				   "{\"vm\" \"\xc2\x9b\xe2\x80\xae\"}\n"
				   "\033]0;title\007\n";
	static const char *const line[] = { "timeline", "exits", "clocks", "vms" };
	size_t i;

	write_file("bad.jsonl", text, strlen(text));
	for (i = 0; i < VMPT_ARRAY_SIZE(line); i++) {
		const struct run *r = vmpt("%s --side-record=bad.jsonl " RATES " " FILES, line[i]);

		ck_has(r->err, "bad.jsonl: line 2: ");
		ck_has(r->err, "\\u202e");
		ck_has(r->err, "bad.jsonl: line 3: ");
		ck_lacks(r->err, "\033");
		ck_lacks(r->err, "\xc2\x9b");
		ck_lacks(r->err, "\xe2\x80\xae");
	}
}
END_TEST

/* Two VMs are two, also where their names look the same when they are shown. */
START_TEST(names_that_look_the_same)
{
	size_t i, given = 0, like = 0;
	json_t *doc, *o;
	char text[256];

	snprintf(text, sizeof(text),
		 "{\"vm\":\"a\\u202eb\",\"vcpu\":0,\"vmcs\":\"0x%llx\"}\n"
		 "{\"vm\":\"a\\\\u202eb\",\"vcpu\":0,\"vmcs\":\"0x%llx\"}\n",
		 (unsigned long long)tl_vmcs(0), (unsigned long long)tl_vmcs(1));
	write_file("two.jsonl", text, strlen(text));
	doc = run_json(
		vmpt("timeline --json -q --summary --side-record=two.jsonl " RATES " " FILES));
	json_array_foreach(json_at(doc, "vms"), i, o)
	{
		given += !strcmp(json_vm(o), "a\xe2\x80\xae"
					     "b");
		like += !strcmp(json_vm(o), "a\\u202eb");
	}
	ck_assert_uint_eq(given, 1);
	ck_assert_uint_eq(like, 1);
	json_decref(doc);
}
END_TEST

/* A cut end says so; another one is as in the whole. */
START_TEST(cut_by_a_window)
{
	json_t *doc = run_spans(vmpt("timeline --json -q " RATES " " FILES));
	json_t *part =
		run_spans(vmpt("timeline --json -q --from=100000 --to=200000 " RATES " " FILES));
	json_t *all = json_at(doc, "spans"), *list = json_at(part, "spans"), *o;
	size_t i, began = 0, ended = 0;

	json_array_foreach(list, i, o)
	{
		json_t *whole = whole_of(all, o);
		double start = real(whole, "start_ticks"),
		       end = start + real(whole, "length_ticks");
		bool before = start<100000, past = end> 200000;

		ck_assert_str_eq(json_text(o, "began"), before ? "cut" : json_text(whole, "began"));
		ck_assert_str_eq(json_text(o, "ended"), past ? "cut" : json_text(whole, "ended"));
		began += before;
		ended += past;
	}
	/* Each CPU's first and last */
	ck_assert_uint_eq(began, 3);
	ck_assert_uint_eq(ended, 3);
	json_decref(doc);
	json_decref(part);
}
END_TEST

START_TEST(a_window)
{
	json_t *doc =
		run_spans(vmpt("timeline --json -q --from=100000 --to=200000 " RATES " " FILES));
	json_t *list = json_at(doc, "spans"), *o;
	double sum[3] = { 0 };
	size_t i;

	json_array_foreach(list, i, o)
	{
		double start = real(o, "start_ticks"), length = real(o, "length_ticks");

		ck_assert(start >= 100000 && start + length <= 200000);
		sum[json_u64(o, "cpu")] += length;
	}
	for (i = 0; i < 3; i++)
		ck_assert_uint_eq((u64)sum[i], 100000);
	json_decref(doc);
	doc = run_spans(vmpt("timeline --json -q --owner=%llx " RATES " " FILES,
			     (unsigned long long)tl_vmcs(3)));
	json_array_foreach(json_at(doc, "spans"), i, o)
		ck_assert_uint_eq(strtoull(json_text(o, "vmcs"), NULL, 16), tl_vmcs(3));
	ck_assert_uint_gt(i, 100);
	json_decref(doc);
}
END_TEST

/* ---- guesses by code ---- */

/* CPUID at a place that is known, in this program. */
__asm__(".text\n.globl test_cpuid_here\ntest_cpuid_here:\n\tcpuid\n\tret\n");
extern const char test_cpuid_here[];
extern const char __ehdr_start[];

START_TEST(guesses)
{
	static const struct tl_options o = { .cpus = 1, .guests = 1, .runs = 300, .seed = 8 };
	u64 offset = (u64)(test_cpuid_here - __ehdr_start);
	char self[4096];
	const struct run *r;
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
	char want[64];
	size_t i;

	ck_assert_int_gt((int)n, 0);
	self[n] = '\0';
	ck_assert_int_eq(symlink(self, "self"), 0); /* a name without a space */
	tl_free(m);
	write_machine(&o);
	for (i = 0; i + 1 < runs && run[i].reason != 10; i++)
		;
	ck_assert_uint_lt(i + 1, runs);
	snprintf(want, sizeof(want), "  CPUID? %llx\n", (unsigned long long)run[i].ip);
	r = vmpt("timeline -q " RATES " --image=self@0x%llx a.cpu0.pt",
		 (unsigned long long)(run[i].ip - offset));
	ck_assert_int_eq(r->code, 0);
	ck_has(r->out, want);
	r = vmpt("timeline -q " RATES " a.cpu0.pt");
	ck_lacks(r->out, "CPUID");
	r = vmpt("timeline -q --image=a.cpu0.pt@0x1000 a.cpu0.pt");
	ck_assert_int_eq(r->code, 1);
	ck_has(r->err, "not a readable ELF file");
}
END_TEST

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

/* No packet has a time: no output may say 0, which is one. */
START_TEST(no_times)
{
	const struct run *r;
	json_t *doc, *o;
	size_t i;

	write_mixed("mixed.pt");
	r = vmpt("timeline mixed.pt");
	ck_assert_int_eq(r->code, 0);
	ck_has(r->out, "\n            –    –  ");
	ck_lacks(r->out, "\n            0 ");
	ck_has(r->err, "vmpt record");
	ck_lacks(r->err, "frequency");
	r = vmpt("timeline --summary mixed.pt");
	ck_has(r->out, "the trace has no times");
	ck_lacks(r->out, "±0");
	ck_lacks(r->out, "0 ticks");
	ck_lacks(r->err, "frequency");
	doc = run_spans(vmpt("timeline --json -q mixed.pt"));
	ck_assert(json_is_null(json_at(doc, "start_tsc")));
	json_array_foreach(json_at(doc, "spans"), i, o)
	{
		ck_assert(json_is_null(json_object_get(o, "start_ticks")));
		ck_assert(json_is_null(json_object_get(o, "length_ticks")));
		if (json_object_get(o, "out_ticks"))
			ck_assert(json_is_null(json_object_get(o, "out_ticks")));
	}
	ck_assert_uint_gt(i, 2);
	json_decref(doc);
	doc = run_json(vmpt("timeline --json --summary -q mixed.pt"));
	ck_assert(json_is_null(json_at(doc, "length_ticks")));
	ck_assert(json_is_null(json_at(doc, "vms/0/running_ticks")));
	ck_assert(json_is_null(json_at(doc, "vms/0/running_error_ticks")));
	ck_assert(json_is_null(json_at(doc, "cpus/0/lost_ticks")));
	json_decref(doc);
	r = vmpt("exits mixed.pt");
	ck_lacks(r->out, " 0  0  0");
	ck_lacks(r->err, "frequency");
	/* Without times there is nothing to draw. */
	r = vmpt("timeline --chrome=t.json mixed.pt");
	ck_has(r->err, "left out");
	doc = json_load_file("t.json", 0, NULL);
	json_array_foreach(json_at(doc, "traceEvents"), i, o)
		ck_assert_str_eq(json_text(o, "ph"), "M");
	json_decref(doc);
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

/* Bytes are gone from the middle: a row says so, and the exit code does. */
START_TEST(a_loss)
{
	const struct vmpt_stream *s = tl_stream(m, 0);
	u8 *bytes = malloc(s->size);
	const struct run *r;
	json_t *doc;

	ck_assert_ptr_nonnull(bytes);
	memcpy(bytes, s->data, s->size);
	memset(bytes + s->size / 2, 0xff, 64);
	write_file("a.cpu0.pt", bytes, s->size);
	free(bytes);
	r = vmpt("timeline " RATES " " KHZ " " FILES);
	ck_assert_int_eq(r->code, 3);
	ck_has(r->out, "  0  lost  ");
	ck_has(r->err, "lost");
	ck_assert_uint_le(widest(r->out), 100);
	r = vmpt("timeline --json --summary -q " RATES " " FILES);
	ck_assert_int_eq(r->code, 3);
	doc = json_loads(r->out, 0, NULL);
	ck_assert_uint_eq(json_u64(doc, "cpus/0/loss_count"), 1);
	ck_assert_uint_eq(json_u64(doc, "cpus/1/loss_count"), 0);
	json_decref(doc);
	r = vmpt("timeline -q --chrome=t.json " RATES " " FILES);
	ck_assert_int_eq(r->code, 3);
	doc = json_load_file("t.json", 0, NULL);
	ck_assert_ptr_nonnull(doc);
	json_decref(doc);
	r = vmpt("exits -q " RATES " " FILES);
	ck_assert_int_eq(r->code, 3);
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
	Suite *s = suite_create("timeline-files");
	TCase *tc = tcase_create("timeline");

	tcase_add_checked_fixture(tc, timeline_setup, timeline_teardown);
	tcase_add_loop_test(tc, trace_events, 0, 2);
	tcase_add_test(tc, b9_chrome_is_small);
	tcase_add_test(tc, hostile_names);
	tcase_add_test(tc, hostile_lines);
	tcase_add_test(tc, names_that_look_the_same);
	tcase_add_test(tc, cut_by_a_window);
	tcase_add_test(tc, a_window);
	tcase_add_test(tc, guesses);
	tcase_add_test(tc, what_is_wrong_is_said);
	tcase_add_test(tc, no_times);
	tcase_add_test(tc, nothing_is_there);
	tcase_add_test(tc, where_outputs_go);
	tcase_add_test(tc, g7_only_what_vmpt_wrote_is_overwritten);
	tcase_add_test(tc, g10_a_limit_on_the_size_of_files);
	tcase_add_test(tc, b12_a_full_disk);
	tcase_add_test(tc, a_loss);
	suite_add_tcase(s, tc);
	return s;
}
