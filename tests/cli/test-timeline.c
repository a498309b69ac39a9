// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * vmpt timeline and vmpt exits on traces of machines of which it is known what ran when
 * (tests/decoder/timeline-machine.h): totals, percentiles and IPs are computed here from that.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/cli/cli-run.h"
#include "tests/decoder/timeline-machine.h"

#define ck_has(text, word)   ck_assert_msg(strstr(text, word) != NULL, "no '%s' in: %s", word, text)
#define ck_lacks(text, word) ck_assert_msg(!strstr(text, word), "'%s' in: %s", word, text)

#define RATES "--tsc-ratio=100 --mtc-freq=3"
#define KHZ   "--tsc-khz=2000000"
#define FILES "a.cpu0.pt a.cpu1.pt a.cpu2.pt"

static struct tl_machine *m;
static size_t runs;
static const struct tl_run *run;

/* Guests 0 and 1 are vCPUs of web, 2 is db's; the others have no name. */
static void write_record(const char *name)
{
	char text[1024];
	int n = 0, g;

	for (g = 0; g < 3; g++)
		n += snprintf(text + n, sizeof(text) - (size_t)n,
			      "{\"vm\":\"%s\",\"vcpu\":%d,\"vmcs\":\"0x%llx\"}\n",
			      g < 2 ? "web" : "db", g % 2,
			      (unsigned long long)tl_vmcs((unsigned)g));
	write_file(name, text, (size_t)n);
}

static void write_machine(const struct tl_options *o)
{
	const struct vmpt_stream *s;
	char name[32];
	unsigned int i;

	m = tl_new(o);
	tl_go(m);
	run = tl_runs(m, &runs);
	for (i = 0; i < o->cpus; i++) {
		snprintf(name, sizeof(name), "a.cpu%u.pt", i);
		s = tl_stream(m, i);
		write_file(name, s->data, s->size);
	}
	write_record("vms.jsonl");
}

static void setup(void)
{
	/* With cycles all times are exact to a tick. */
	static const struct tl_options o = {
		.cpus = 3,
		.guests = 5,
		.runs = 1500,
		.seed = 4711,
		.cyc = true,
		.evd = true,
		.halts = true,
	};

	cli_setup();
	write_machine(&o);
}

static void teardown(void)
{
	tl_free(m);
	cli_clean();
}

/* ---- the truth, computed here ---- */

/* With cycles a time is exact to a tick: a length is to two. */
#define TICKS 2

static void check_ticks(u64 got, u64 want, u64 count)
{
	ck_assert_msg(got + TICKS * count >= want && got <= want + TICKS * count,
		      "%llu ticks, not %llu", (unsigned long long)got, (unsigned long long)want);
}

static const char *vm_of(unsigned int guest, char buf[32])
{
	if (guest < 3)
		return guest < 2 ? "web" : "db";
	snprintf(buf, 32, "%llx", (unsigned long long)tl_vmcs(guest));
	return buf;
}

static int by_entry(const void *a, const void *b)
{
	const struct tl_run *const *x = a, *const *y = b;

	return (*x)->entry < (*y)->entry ? -1 : (*x)->entry > (*y)->entry;
}

/* The runs of @guest by time. */
static size_t runs_of(unsigned int guest, const struct tl_run **list)
{
	size_t i, n = 0;

	for (i = 0; i < runs; i++)
		if (run[i].guest == guest)
			list[n++] = &run[i];
	qsort(list, n, sizeof(*list), by_entry);
	return n;
}

struct truth {
	u64 running, exited, halted, exits, halts, moves;
};

static void add_truth(struct truth *t, unsigned int guest)
{
	const struct tl_run *list[2000];
	size_t n = runs_of(guest, list), i;

	for (i = 0; i < n; i++) {
		t->running += list[i]->exit - list[i]->entry;
		t->exits++;
		t->halts += list[i]->reason == 12;
		if (i && list[i]->cpu != list[i - 1]->cpu)
			t->moves++;
		if (!i)
			continue;
		if (list[i - 1]->reason == 12)
			t->halted += list[i]->entry - list[i - 1]->exit;
		else
			t->exited += list[i]->entry - list[i - 1]->exit;
	}
}

/* ---- tables ---- */

/* Columns of the longest line. */
static size_t widest(const char *text)
{
	size_t wide = 0, n = 0;

	for (; *text; text++) {
		if (*text == '\n')
			n = 0;
		else if (((unsigned char)*text & 0xc0) != 0x80 && ++n > wide)
			wide = n;
	}
	return wide;
}

START_TEST(no_line_is_wide)
{
	static const char *const line[] = {
		"timeline",
		"timeline " KHZ,
		"timeline --summary",
		"timeline --summary " KHZ,
		"exits",
		"exits " KHZ,
		"timeline --side-record=vms.jsonl " KHZ,
		"timeline --summary --side-record=vms.jsonl",
		"exits --side-record=vms.jsonl",
		"timeline --help",
		"exits --help",
	};
	size_t i;

	for (i = 0; i < VMPT_ARRAY_SIZE(line); i++) {
		const struct run *r = vmpt("%s " RATES " " FILES, line[i]);

		ck_assert_int_eq(r->code, 0);
		ck_assert_msg(widest(r->out) <= 100, "%s: %zu columns", line[i], widest(r->out));
		ck_assert_uint_gt(widest(r->out), 50);
	}
}
END_TEST

static size_t lines_with(const char *text, const char *word)
{
	size_t n = 0;

	for (; (text = strstr(text, word)) != NULL; text++)
		n++;
	return n;
}

START_TEST(the_table)
{
	const struct run *r = vmpt("timeline " RATES " " KHZ " --side-record=vms.jsonl " FILES);
	char name[64];
	size_t n = 0, i;

	ck_assert_int_eq(r->code, 0);
	ck_assert_str_eq(r->err, "");
	ck_has(r->out, "     TIME (s)  CPU  WHO ");
	for (i = 0; i < runs; i++)
		n += run[i].guest == 1;
	ck_assert_uint_eq(lines_with(r->out, "  web vcpu 1 "), n);
	snprintf(name, sizeof(name), "  %llx ", (unsigned long long)tl_vmcs(4));
	ck_assert_uint_gt(lines_with(r->out, name), 100);
	ck_has(r->out, "  HLT 8");
	ck_has(r->out, "  EPT violation 8");
	ck_lacks(r->out, "?  ");

	r = vmpt("timeline -n 7 " RATES " " FILES);
	ck_assert_uint_eq(lines_with(r->out, "\n"), 8);
	ck_has(r->out, "TIME (ticks)");
	ck_has(r->err, "frequency is not known");
}
END_TEST

/* ---- JSON ---- */

static double real(json_t *o, const char *key)
{
	json_t *v = json_object_get(o, key);

	ck_assert_msg(json_is_number(v), "%s", key);
	return json_number_value(v);
}

/* Spans of guests are the truth's runs, with names. */
START_TEST(json_spans)
{
	json_t *doc = run_json(vmpt("timeline --json -q " RATES " --side-record=vms.jsonl " FILES));
	json_t *list = json_at(doc, "spans"), *o;
	u64 zero = strtoull(json_text(doc, "start_tsc"), NULL, 16);
	const struct tl_run *sorted[2000];
	double before = 0;
	size_t i, at = 0;
	char buf[32];

	for (i = 0; i < runs; i++)
		sorted[i] = &run[i];
	qsort(sorted, runs, sizeof(*sorted), by_entry);
	json_array_foreach(list, i, o)
	{
		const char *kind = json_text(o, "kind");
		const struct tl_run *r = sorted[at];

		ck_assert_msg(real(o, "start_ticks") >= before, "not by time");
		before = real(o, "start_ticks");
		if (strcmp(kind, "guest"))
			continue;
		at++;
		check_ticks(strtoull(json_text(o, "tsc"), NULL, 16), r->entry, 1);
		check_ticks((u64)before, r->entry - zero, 1);
		check_ticks(json_u64(o, "length_ticks"), r->exit - r->entry, 1);
		ck_assert_uint_eq(json_u64(o, "cpu"), r->cpu);
		ck_assert_uint_eq(strtoull(json_text(o, "vmcs"), NULL, 16), tl_vmcs(r->guest));
		ck_assert_int_eq(json_object_get(o, "vm") != NULL, r->guest < 3);
		if (r->guest < 3) {
			ck_assert_str_eq(json_text(o, "vm"), vm_of(r->guest, buf));
			ck_assert_uint_eq(json_u64(o, "vcpu"), r->guest % 2);
		}
		ck_assert_str_eq(json_text(o, "began"), "entry");
		ck_assert_str_eq(json_text(o, "ended"), "exit");
		ck_assert_uint_eq(json_u64(o, "exit/reason"), r->reason);
		ck_assert_str_eq(json_text(o, "exit/source"), "evd");
		ck_assert_uint_eq(strtoull(json_text(o, "exit/ip"), NULL, 16), r->ip);
	}
	ck_assert_uint_eq(at, runs);
	json_decref(doc);
}
END_TEST

static void check_totals(json_t *o, const struct truth *t)
{
	check_ticks(json_u64(o, "running_ticks"), t->running, t->exits);
	check_ticks(json_u64(o, "exited_ticks"), t->exited, t->exits);
	check_ticks(json_u64(o, "halted_ticks"), t->halted, t->halts);
	ck_assert_uint_eq(json_u64(o, "entries"), t->exits);
	ck_assert_uint_eq(json_u64(o, "exits"), t->exits);
	ck_assert_uint_eq(json_u64(o, "halts"), t->halts);
	ck_assert_uint_eq(json_u64(o, "moves"), t->moves);
	ck_assert_uint_eq(json_u64(o, "unsure"), 0);
	ck_assert_uint_eq(json_u64(o, "guessed"), 0);
	ck_assert_uint_eq(json_u64(o, "losses"), 0);
}

START_TEST(json_summary)
{
	json_t *doc = run_json(
		vmpt("timeline --json --summary -q " RATES " --side-record=vms.jsonl " FILES));
	json_t *list = json_at(doc, "vms"), *o;
	size_t i, seen = 0;
	unsigned int g;
	char buf[32];

	ck_assert_uint_eq(json_array_size(list), 4);
	ck_assert_uint_eq(json_array_size(json_at(doc, "cpus")), 3);
	json_array_foreach(list, i, o)
	{
		struct truth t = { 0 };

		for (g = 0; g < 5; g++)
			if (!strcmp(json_text(o, "name"), vm_of(g, buf)))
				add_truth(&t, g);
		check_totals(o, &t);
		seen++;
		ck_assert_uint_eq(json_array_size(json_at(o, "vcpus")),
				  strcmp(json_text(o, "name"), "web") ? 1 : 2);
	}
	ck_assert_uint_eq(seen, 4);
	json_array_foreach(json_at(doc, "vms"), i, o)
	{
		json_t *v;
		size_t k;

		if (strcmp(json_text(o, "name"), "web"))
			continue;
		json_array_foreach(json_at(o, "vcpus"), k, v)
		{
			struct truth t = { 0 };

			add_truth(&t, (unsigned int)json_u64(v, "vcpu"));
			check_totals(v, &t);
		}
	}
	json_decref(doc);
}
END_TEST

/* ---- exits ---- */

static int by_value(const void *a, const void *b)
{
	const u64 *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

/* Nearest rank; what is reported may be up to 1 % over it. */
static void check_rank(const u64 *sorted, size_t n, unsigned int permille, double got)
{
	size_t rank = (n * permille + 999) / 1000;
	double want = (double)sorted[rank - 1];

	ck_assert_msg(got + TICKS >= want && got <= want * 1.01 + TICKS, "%u permille: %f, not %f",
		      permille, got, want);
}

static size_t count_ip(const char *vm, u16 reason, u64 ip)
{
	char buf[32];
	size_t i, n = 0;

	for (i = 0; i < runs; i++)
		n += run[i].ip == ip && run[i].reason == reason &&
		     !strcmp(vm_of(run[i].guest, buf), vm);
	return n;
}

static size_t check_exits(json_t *o)
{
	const struct tl_run *list[2000];
	u16 reason = (u16)json_u64(o, "reason");
	const char *vm = json_text(o, "vm");
	u64 length[2000], sum = 0;
	size_t n = 0, count = 0, i, k;
	unsigned int g;
	char buf[32];
	json_t *ip;

	for (g = 0; g < 5; g++) {
		if (strcmp(vm_of(g, buf), vm))
			continue;
		k = runs_of(g, list);
		for (i = 0; i < k; i++) {
			if (list[i]->reason != reason)
				continue;
			count++;
			if (i + 1 < k)
				sum += length[n++] = list[i + 1]->entry - list[i]->exit;
		}
	}
	qsort(length, n, sizeof(*length), by_value);
	ck_assert_uint_eq(json_u64(o, "count"), count);
	ck_assert_uint_eq(json_u64(o, "unsure"), count - n);
	check_ticks(json_u64(o, "total_ticks"), sum, n);
	check_ticks(json_u64(o, "max_ticks"), length[n - 1], 1);
	check_rank(length, n, 500, real(o, "p50_ticks"));
	check_rank(length, n, 950, real(o, "p95_ticks"));
	check_rank(length, n, 990, real(o, "p99_ticks"));
	ck_assert_int_eq(json_is_true(json_object_get(o, "halted")), reason == 12);
	json_array_foreach(json_at(o, "ips"), i, ip)
		ck_assert_uint_eq(json_u64(ip, "count"),
				  count_ip(vm, reason, strtoull(json_text(ip, "ip"), NULL, 16)));
	return count;
}

START_TEST(json_exits)
{
	json_t *doc = run_json(
		vmpt("exits --json -q --top=1000 " RATES " --side-record=vms.jsonl " FILES));
	json_t *list = json_at(doc, "exits"), *o;
	size_t i, n = 0;

	json_array_foreach(list, i, o) n += check_exits(o);
	ck_assert_uint_eq(n, runs);
	json_decref(doc);
}
END_TEST

/* Names of functions: of one VM's, and from a text. */
START_TEST(symbols)
{
	char text[256];
	const struct run *r;
	u64 ip = 0x800000; /* guest 0's exits are in 800000..800fff, guest 2's 200000 further */

	snprintf(text, sizeof(text), "%llx T do_first\n%llx t do_second\n%llx D data\n",
		 (unsigned long long)ip, (unsigned long long)ip + 0x800,
		 (unsigned long long)ip + 0x801);
	write_file("kallsyms", text, strlen(text));
	r = vmpt("exits --top=5 -q " RATES
		 " --side-record=vms.jsonl --symbols=web:kallsyms " FILES);
	ck_assert_int_eq(r->code, 0);
	ck_has(r->out, "do_first+0x");
	ck_has(r->out, "do_second+0x");
	ck_lacks(r->out, "data");
	r = vmpt("exits --top=5 -q " RATES
		 " --side-record=vms.jsonl --symbols=db:kallsyms@0x200000 "
		 "--owner=db " FILES);
	ck_has(r->out, "do_first+0x");
	ck_lacks(r->out, "web");
	r = vmpt("exits --symbols=db:none " FILES);
	ck_assert_int_eq(r->code, 1);
	ck_has(r->err, "none");
	write_file("bad", "hello\n", 6);
	r = vmpt("exits --symbols=bad " FILES);
	ck_assert_int_eq(r->code, 1);
	ck_has(r->err, "line 1");
	write_file("zeros", "0000000000000000 T a\n", 21);
	r = vmpt("exits --symbols=zeros " FILES);
	ck_assert_int_eq(r->code, 1);
	ck_has(r->err, "without the right");
}
END_TEST

/* ---- Chrome's trace events ---- */

struct track {
	long long pid, tid;
	double x_end; /* of the last X */
	double last;  /* ts of the last event of any kind */
	int open;     /* Bs */
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

static void check_event(json_t *e, double *before, size_t *xs)
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
	ck_assert_msg(ts >= *before, "%f behind %f", ts, *before);
	*before = ts;
	ck_assert_msg(t->named, "an event of a thread without a name");
	if (!strcmp(ph, "X")) {
		double dur = real(e, "dur");

		ck_assert(dur >= 0);
		ck_assert_msg(ts + DIGIT >= t->x_end, "spans overlap on a thread");
		ck_assert_int_eq(t->open, 0);
		ck_assert(*json_text(e, "name") != '\0');
		t->x_end = ts + dur;
		++*xs;
	} else if (!strcmp(ph, "B")) {
		ck_assert_int_eq(t->open, 0);
		ck_assert(ts + DIGIT >= t->x_end);
		ck_assert(*json_text(e, "name") != '\0');
		t->open++;
	} else if (!strcmp(ph, "E")) {
		ck_assert_int_eq(t->open, 1);
		t->open--;
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
	size_t i, xs = 0, guests = 0;
	double before = 0;

	ck_assert_int_eq(r->code, 0);
	ck_assert_str_eq(r->out, "");
	ck_assert_ptr_nonnull(doc);
	track_count = 0;
	json_array_foreach(json_at(doc, "traceEvents"), i, e)
	{
		check_event(e, &before, &xs);
		if (!strcmp(json_text(e, "ph"), "X") && json_u64(e, "pid") > 1)
			guests++;
	}
	for (i = 0; i < track_count; i++)
		ck_assert_int_eq(tracks[i].open, 0);
	/* Each run twice, on its vCPU and on its CPU. */
	ck_assert_uint_eq(guests, runs);
	ck_assert_uint_gt(xs, 2 * runs);
	/* Processes: CPUs, web, db and two VMCSs; threads: 3 CPUs, 5 vCPUs; each process itself. */
	ck_assert_uint_eq(track_count, 3 + 5 + 5);
	json_decref(doc);
}
END_TEST

/* ---- windows and owners ---- */

START_TEST(a_window)
{
	json_t *doc =
		run_json(vmpt("timeline --json -q --from=100000 --to=200000 " RATES " " FILES));
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
	doc = run_json(vmpt("timeline --json -q --owner=%llx " RATES " " FILES,
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
	tl_free(m);
	write_machine(&o);
	for (i = 0; i + 1 < runs && run[i].reason != 10; i++)
		;
	ck_assert_uint_lt(i + 1, runs);
	snprintf(want, sizeof(want), "  CPUID? %llx\n", (unsigned long long)run[i].ip);
	r = vmpt("timeline -q " RATES " --image=%s@0x%llx a.cpu0.pt", self,
		 (unsigned long long)(run[i].ip - offset));
	ck_assert_int_eq(r->code, 0);
	ck_has(r->out, want);
	r = vmpt("timeline -q " RATES " a.cpu0.pt");
	ck_lacks(r->out, "CPUID");
	r = vmpt("timeline -q --image=a.cpu0.pt@0x1000 a.cpu0.pt");
	ck_assert_int_eq(r->code, 1);
	ck_has(r->err, "not an ELF file");
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
		{ "timeline --head=0 a.cpu0.pt", 2, "0 lines" },
		{ "timeline --tsc-khz=0 a.cpu0.pt", 2, "no frequency" },
		{ "timeline --from=x a.cpu0.pt", 2, "not a time" },
		{ "timeline --from=-1 a.cpu0.pt", 2, "not a time" },
		{ "timeline --from=5 --to=4 a.cpu0.pt", 2, "not behind" },
		{ "timeline --perf-time a.cpu0.pt", 2, "perf's time" },
		{ "timeline --summary --head=3 a.cpu0.pt", 2, "--head" },
		{ "timeline --chrome=a.cpu0.pt a.cpu0.pt", 2, "the trace itself" },
		{ "timeline --chrome=no/such/place a.cpu0.pt", 1, "no/such/place" },
		{ "timeline --owner=nobody a.cpu0.pt", 0, "no 'nobody'" },
		{ "timeline --side-record=none a.cpu0.pt", 1, "none" },
		{ "timeline --side-record=a.cpu0.pt a.cpu0.pt", 1, "line 1" },
		{ "timeline --format=rtit a.cpu0.pt", 1, "RTIT" },
		{ "exits --format=rtit a.cpu0.pt", 1, "RTIT" },
		{ "exits --top=x a.cpu0.pt", 2, "--top" },
		{ "timeline --side-record=other.jsonl a.cpu0.pt", 0, "same recording" },
		{ "timeline --side-record=twice.jsonl a.cpu0.pt", 0, "twice" },
		{ "timeline --side-record=one.jsonl " FILES, 0, "two CPUs at once" },
		{ "timeline mixed.pt", 0, "no TSC packets" },
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
	for (i = 0; i < VMPT_ARRAY_SIZE(cases); i++) {
		const struct run *r = vmpt("%s", cases[i].args);

		ck_assert_msg(r->code == cases[i].code && strstr(r->err, cases[i].err),
			      "%s: %d: %s", cases[i].args, r->code, r->err);
	}
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
	ck_assert_uint_eq(json_u64(doc, "cpus/0/losses"), 1);
	ck_assert_uint_eq(json_u64(doc, "cpus/1/losses"), 0);
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

int main(void)
{
	Suite *s = suite_create("timeline");
	TCase *tc = tcase_create("timeline");

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, no_line_is_wide);
	tcase_add_test(tc, the_table);
	tcase_add_test(tc, json_spans);
	tcase_add_test(tc, json_summary);
	tcase_add_test(tc, json_exits);
	tcase_add_test(tc, symbols);
	tcase_add_loop_test(tc, trace_events, 0, 2);
	tcase_add_test(tc, a_window);
	tcase_add_test(tc, guesses);
	tcase_add_test(tc, what_is_wrong_is_said);
	tcase_add_test(tc, a_loss);
	tcase_set_timeout(tc, 120);
	suite_add_tcase(s, tc);
	return test_main(s);
}
