// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * vmpt timeline and vmpt exits on traces of machines of which it is known what ran when
 * (tests/decoder/timeline-machine.h): totals, percentiles and IPs are computed here from that.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/cli/cli-run.h"
#include "tests/cli/timeline/files.h"

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

/* Spans of guests are the truth's runs, with names. */
START_TEST(json_spans)
{
	json_t *doc =
		run_spans(vmpt("timeline --json -q " RATES " --side-record=vms.jsonl " FILES));
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

		ck_assert_msg(json_number(o, "start_ticks") >= before, "not by time");
		before = json_number(o, "start_ticks");
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
	ck_assert_uint_eq(json_u64(o, "loss_count"), 0);
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
			if (!strcmp(json_vm(o), vm_of(g, buf)))
				add_truth(&t, g);
		check_totals(o, &t);
		seen++;
		ck_assert_uint_eq(json_array_size(json_at(o, "vcpus")),
				  strcmp(json_vm(o), "web") ? 1 : 2);
	}
	ck_assert_uint_eq(seen, 4);
	json_array_foreach(json_at(doc, "vms"), i, o)
	{
		json_t *v;
		size_t k;

		if (strcmp(json_vm(o), "web"))
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

/* ---- bounds ---- */

static u64 side(json_t *o, const char *key, size_t i)
{
	return (u64)json_integer_value(json_array_get(json_object_get(o, key), i));
}

/* The sums' bounds by hand, from the spans of one vCPU. */
struct bounds {
	u64 running[2], exited[2]; /* too much, too little */
	json_t *last;
};

static void add_part(u64 sum[2], u64 early, u64 late, u64 length)
{
	sum[0] += early < length ? early : length;
	sum[1] += late;
}

static void add_bounds(struct bounds *b, json_t *o)
{
	u64 early = side(o, "tsc_bounds", 0), late = side(o, "tsc_bounds", 1);

	add_part(b->running, side(o, "end_bounds", 0) + late, side(o, "end_bounds", 1) + early,
		 json_u64(o, "length_ticks"));
	if (b->last && !json_is_true(json_at(b->last, "exit/halted")))
		add_part(b->exited, early + side(b->last, "end_bounds", 1),
			 late + side(b->last, "end_bounds", 0), json_u64(b->last, "out_ticks"));
	b->last = o;
}

static u64 distance(u64 a, u64 b)
{
	return a > b ? a - b : b - a;
}

static void check_bounds(json_t *vcpu, const struct bounds *b, const struct truth *t)
{
	u64 running = json_u64(vcpu, "running_error_ticks");
	u64 exited = json_u64(vcpu, "exited_error_ticks");

	ck_assert_uint_eq(running, b->running[0] > b->running[1] ? b->running[0] : b->running[1]);
	ck_assert_uint_eq(exited, b->exited[0] > b->exited[1] ? b->exited[0] : b->exited[1]);
	ck_assert_uint_gt(running, 1000);
	ck_assert_uint_le(distance(json_u64(vcpu, "running_ticks"), t->running), running);
	ck_assert_uint_le(distance(json_u64(vcpu, "exited_ticks"), t->exited), exited);
}

/* Without cycles bounds are wide: they hold, and are no wider than their parts. */
START_TEST(bounds_of_sums)
{
	static const struct tl_options o = {
		.cpus = 2, .guests = 3, .runs = 900, .seed = 5, .evd = true, .halts = true
	};
	json_t *spans, *sums, *s;
	size_t i;
	unsigned int g;

	tl_free(m);
	write_machine(&o);
	spans = run_spans(vmpt("timeline --json -q " RATES " a.cpu0.pt a.cpu1.pt"));
	sums = run_json(vmpt("timeline --json --summary -q " RATES " a.cpu0.pt a.cpu1.pt"));
	for (g = 0; g < 3; g++) {
		struct truth truth = { 0 };
		struct bounds b = { 0 };
		json_t *vcpu = NULL;

		json_array_foreach(json_at(spans, "spans"), i,
				   s) if (json_object_get(s, "vmcs") &&
					  strtoull(json_text(s, "vmcs"), NULL, 16) == tl_vmcs(g))
			add_bounds(&b, s);
		json_array_foreach(json_at(sums, "vms"), i,
				   s) if (strtoull(json_text(s, "vcpus/0/vmcs"), NULL, 16) ==
					  tl_vmcs(g)) vcpu = s;
		ck_assert_ptr_nonnull(vcpu);
		add_truth(&truth, g);
		check_bounds(vcpu, &b, &truth);
	}
	json_decref(spans);
	json_decref(sums);
	ck_has(vmpt("timeline --summary -q " RATES " a.cpu0.pt")->out,
	       "±: worst-case error; ±?: unbounded");
	ck_has(vmpt("timeline -n 1 -q " RATES " a.cpu0.pt")->out, "  ± MAX  ");
}
END_TEST

/* Totals are of the one that is named, as spans are. */
START_TEST(totals_of_one)
{
	const char *args = "--side-record=vms.jsonl " RATES " " FILES;
	const struct run *r = vmpt("timeline --summary -q --owner=db %s", args);
	json_t *doc;

	ck_has(r->out, ", 1 VM\n");
	ck_has(r->out, "\ndb ");
	ck_lacks(r->out, "web");
	r = vmpt("timeline --summary -q --owner=%llx %s", (unsigned long long)tl_vmcs(1), args);
	ck_has(r->out, "\nweb vcpu 1 ");
	ck_lacks(r->out, "vcpu 0");
	ck_lacks(r->out, "\nweb  ");
	doc = run_json(vmpt("timeline --summary --json -q --owner=web %s", args));
	ck_assert_uint_eq(json_array_size(json_at(doc, "vms")), 1);
	ck_assert_str_eq(json_text(doc, "vms/0/vm"), "web");
	ck_assert_uint_eq(json_array_size(json_at(doc, "vms/0/vcpus")), 2);
	json_decref(doc);
	/* As in all commands: a name that no VM has is wrong. */
	r = vmpt("timeline --summary --owner=nobody %s", args);
	ck_assert_int_eq(r->code, 2);
	ck_has(r->err, "--owner: no VM 'nobody' in the trace; it has ");
	r = vmpt("timeline -q --owner=host %s", args);
	ck_has(r->out, "  host  ");
	ck_lacks(r->out, "vcpu");
	r = vmpt("timeline -q --owner=vm %s", args);
	ck_lacks(r->out, "  host  ");
	ck_has(r->out, "  web vcpu 1 ");
}
END_TEST

/* On a terminal names are cut, but not the part that distinguishes vCPUs; elsewhere never. */
START_TEST(long_names)
{
	static const char record[] = "{\"vm\":\"qemu-system-x86/4711\",\"vcpu\":%d,"
				     "\"vmcs\":\"0x%llx\"}\n";
	char text[512];
	const struct run *r;
	int n = 0, g;

	for (g = 0; g < 3; g++)
		n += snprintf(text + n, sizeof(text) - (size_t)n, record, 10 * g,
			      (unsigned long long)tl_vmcs((unsigned)g));
	write_file("long.jsonl", text, (size_t)n);
	/* 14 columns of a terminal of 100: six, "…", seven; by hand. */
	r = vmpt_terminal("timeline -q --color=never " RATES " --side-record=long.jsonl " FILES);
	ck_has(r->out, "  qemu-s… vcpu 0 ");
	ck_has(r->out, "  qemu-s…vcpu 10 ");
	ck_has(r->out, "  qemu-s…vcpu 20 ");
	r = vmpt_terminal("timeline -q --color=never --wide " RATES
			  " --side-record=long.jsonl " FILES);
	ck_has(r->out, "  qemu-system-x86/4711 vcpu 10 ");
	r = vmpt("timeline -q " RATES " --side-record=long.jsonl " FILES);
	ck_has(r->out, "  qemu-system-x86/4711 vcpu 0 ");
	r = vmpt("exits -q " RATES " --side-record=long.jsonl " FILES);
	ck_has(r->out, "\nqemu-system-x86/4711 ");
	r = vmpt("timeline --summary -q " RATES " --side-record=long.jsonl " FILES);
	ck_has(r->out, "\nqemu-system-x86/4711 ");
	ck_has(r->out, "\n  vcpu 20 ");
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
	const char *vm = json_vm(o);
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
	check_rank(length, n, 500, json_number(o, "p50_ticks"));
	check_rank(length, n, 950, json_number(o, "p95_ticks"));
	check_rank(length, n, 990, json_number(o, "p99_ticks"));
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

/* Of one VM and reason, by hand: from the spans, and what was. */
struct exit_bounds {
	u64 sum[2], one; /* too much, too little; the worst of one */
	u64 total, max;	 /* the truth */
	size_t n;
};

static void span_bounds(json_t *spans, const char *vmcs, u64 reason, struct exit_bounds *b)
{
	json_t *s, *last = NULL;
	size_t i;

	json_array_foreach(json_at(spans, "spans"), i, s)
	{
		u64 early, late, out;

		if (!json_object_get(s, "vmcs") || strcmp(json_text(s, "vmcs") + 2, vmcs))
			continue;
		if (last && json_u64(last, "exit/reason") == reason) {
			out = json_u64(last, "out_ticks");
			early = side(s, "tsc_bounds", 0) + side(last, "end_bounds", 1);
			late = side(s, "tsc_bounds", 1) + side(last, "end_bounds", 0);
			add_part(b->sum, early, late, out);
			early = early < out ? early : out;
			b->one = early > b->one ? early : b->one;
			b->one = late > b->one ? late : b->one;
			b->n++;
		}
		last = s;
	}
}

static void true_bounds(const char *vmcs, u64 reason, struct exit_bounds *b)
{
	const struct tl_run *list[2000];
	unsigned int g = 0;
	size_t n, i;

	while (tl_vmcs(g) != strtoull(vmcs, NULL, 16))
		g++;
	n = runs_of(g, list);
	for (i = 0; i + 1 < n; i++) {
		u64 out = list[i + 1]->entry - list[i]->exit;

		if (list[i]->reason != reason)
			continue;
		b->total += out;
		b->max = out > b->max ? out : b->max;
	}
}

START_TEST(bounds_of_exits)
{
	static const struct tl_options o = {
		.cpus = 2, .guests = 3, .runs = 900, .seed = 6, .evd = true, .halts = true
	};
	json_t *spans, *exits, *row;
	size_t i, n = 0;

	tl_free(m);
	write_machine(&o);
	spans = run_spans(vmpt("timeline --json -q " RATES " a.cpu0.pt a.cpu1.pt"));
	exits = run_json(vmpt("exits --json -q " RATES " a.cpu0.pt a.cpu1.pt"));
	json_array_foreach(json_at(exits, "exits"), i, row)
	{
		struct exit_bounds b = { 0 };

		span_bounds(spans, json_vm(row), json_u64(row, "reason"), &b);
		true_bounds(json_vm(row), json_u64(row, "reason"), &b);
		if (!b.n)
			continue;
		n += b.n;
		ck_assert_uint_eq(json_u64(row, "total_error_ticks"),
				  b.sum[0] > b.sum[1] ? b.sum[0] : b.sum[1]);
		ck_assert_uint_eq(json_u64(row, "one_error_ticks"), b.one);
		ck_assert_uint_gt(b.one, 100);
		ck_assert_uint_le(distance(json_u64(row, "total_ticks"), b.total),
				  json_u64(row, "total_error_ticks"));
		ck_assert_uint_le(distance(json_u64(row, "max_ticks"), b.max), b.one);
	}
	ck_assert_uint_gt(n, 800);
	json_decref(spans);
	json_decref(exits);
	ck_has(vmpt("exits -q " RATES " a.cpu0.pt a.cpu1.pt")->out,
	       "\n±: worst-case error\neach of MIN to MAX can be off by ");
}
END_TEST

TEST_SUITE()
{
	Suite *s = suite_create("timeline");
	TCase *tc = tcase_create("timeline");

	tcase_add_checked_fixture(tc, timeline_setup, timeline_teardown);
	tcase_add_test(tc, no_line_is_wide);
	tcase_add_test(tc, the_table);
	tcase_add_test(tc, json_spans);
	tcase_add_test(tc, json_summary);
	tcase_add_test(tc, bounds_of_sums);
	tcase_add_test(tc, bounds_of_exits);
	tcase_add_test(tc, long_names);
	tcase_add_test(tc, totals_of_one);
	tcase_add_test(tc, json_exits);
	tcase_add_test(tc, symbols);
	suite_add_tcase(s, tc);
	return s;
}
