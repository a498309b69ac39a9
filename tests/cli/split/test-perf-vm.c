// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * vmpt split --per-vm: of one perf.data perf script prints all that a VM executed on all CPUs, in
 * the order of time. VM db of demo.trace is on CPU 1 and CPU 0 by turns, which the script's sync
 * puts in order: of N loops 2 * N - 1 moves.
 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "tests/cli/perf-demo.h"

#define RATES "--tsc-ratio=84 --mtc-freq=3 "
/* What a loop has at least, and less than twice that: 8 * (5 * 160 + 70) runs of code, 4 * 180. */
#define LOOP_CPU0 1000
#define LOOP_CPU1 10000

/* An instruction of "perf script -F tid,cpu,time,ip": "    1 [001]     0.268435776:  401000". */
struct printed {
	unsigned int tid, cpu;
	u64 ns, ip;
};

static FILE *script(const char *file)
{
	char line[512];
	FILE *f;

	snprintf(line, sizeof(line),
		 "perf script -f -k db --itrace=i1ie --ns -F tid,cpu,time,ip -i out/%s", file);
	f = popen(line, "r");
	ck_assert_ptr_nonnull(f);
	return f;
}

static bool next(FILE *f, struct printed *p)
{
	unsigned long long s, ns, ip;
	char line[512];

	if (!fgets(line, sizeof(line), f))
		return false;
	ck_assert_msg(sscanf(line, "%u [%u] %llu.%9llu: %llx", &p->tid, &p->cpu, &s, &ns, &ip) == 5,
		      "not an instruction: %s", line);
	ck_assert_uint_lt(p->cpu, 2);
	p->ns = s * 1000000000 + ns;
	p->ip = ip;
	return true;
}

/* Runs of one CPU's instructions. */
struct turns {
	u64 count, small, large; /* of the runs after the first three */
	u64 now;
	unsigned int cpu;
};

static void turn_ends(struct turns *t)
{
	u64 least = t->cpu ? LOOP_CPU1 : LOOP_CPU0;

	/* Until the first PSB+ of the stream's own perf has no TMA to count MTCs from. */
	if (t->count > 3) {
		t->small += t->now < least;
		t->large += t->now >= 2 * least;
	}
	t->now = 0;
}

static void turn(struct turns *t, unsigned int cpu)
{
	if (t->now && cpu != t->cpu)
		turn_ends(t);
	t->count += !t->now;
	t->cpu = cpu;
	t->now++;
}

START_TEST(all_cpus_in_order)
{
	unsigned int loops = (unsigned int)test_rounds(100, 20);
	struct count got[2] = { count_none, count_none }, want;
	struct turns turns = { 0 };
	struct printed p;
	const struct run *r;
	u64 last = 0;
	FILE *f;

	make_traces(loops, "");
	make_code();
	r = vmpt("split --per-vm " RATES "--kernel=db --image=web -o out d.cpu0.pt d.cpu1.pt");
	ck_assert_int_eq(r->code, 0);
	ck_has(r->out, "out/" DB ".perf.data: 2 streams\n");
	ck_has(r->out, "out/" WEB ".perf.data: 1 stream\n");
	f = script(DB ".perf.data");
	while (next(f, &p)) {
		ck_assert_msg(p.ns >= last, "time goes back to %llu", (unsigned long long)p.ns);
		last = p.ns;
		ck_assert_uint_eq(p.tid, 1);
		count_one(&got[p.cpu], p.ip);
		turn(&turns, p.cpu);
	}
	ck_assert_int_eq(pclose(f), 0);
	turn_ends(&turns);
	want = truth_of("db", 0);
	ck_same_count("db on CPU 0", &got[0], &want);
	want = truth_of("db", 1);
	ck_same_count("db on CPU 1", &got[1], &want);
	ck_assert_uint_eq(turns.count, 2 * loops);
	ck_assert_uint_eq(turns.small, 0);
	ck_assert_uint_eq(turns.large, 0);
}
END_TEST

/* By a side record both VMCSs are vCPUs of one VM; its name cannot stand in a file's as it is. */
START_TEST(vcpus_of_a_vm)
{
	static const char record[] = "{\"vm\":\"w/b\",\"vcpu\":0,\"vmcs\":\"0x12f7a4000\"}\n"
				     "{\"vm\":\"w/b\",\"vcpu\":1,\"vmcs\":\"0x13b2c9000\"}\n";
	static const char file[] = "vm-w_b+0.perf.data";
	struct count got[3] = { count_none, count_none, count_none }, want;
	const struct run *r;
	struct printed p;
	u64 last = 0;
	FILE *f;
	json_t *doc;

	make_traces(8, "");
	make_code();
	write_file("vms.jsonl", record, strlen(record));
	ck_assert_int_eq(vmpt("split --per-vm -o out d.cpu0.pt d.cpu1.pt")->code, 0);
	ck_assert_int_eq(access("out/" DB ".perf.data", F_OK), 0);
	r = vmpt("split --json -f --per-vm --side-record=vms.jsonl " RATES
		 "--kernel=db --image=web -o out d.cpu0.pt d.cpu1.pt");
	doc = run_json(r);
	ck_assert_uint_eq(json_array_size(json_at(doc, "vms")), 1);
	ck_assert_str_eq(json_text(doc, "vms/0/file"), file);
	ck_assert_str_eq(json_text(doc, "vms/0/vm"), "w/b");
	ck_assert(json_is_true(json_at(doc, "vms/0/times")));
	ck_assert_uint_eq(json_array_size(json_at(doc, "vms/0/streams")), 3);
	/* Each is in it, and nowhere else. */
	check_members("streams", doc,
		      "streams/1/file='vm-w_b+0.perf.data'|streams/1/part=0|"
		      "vms/0/streams/0=1|streams/0/file='host.cpu0.perf.data'");
	ck_assert_int_ne(access("out/" WEB ".cpu0.perf.data", F_OK), 0);
	json_decref(doc);
	/* Those of the split before are gone. */
	ck_assert_int_ne(access("out/" DB ".perf.data", F_OK), 0);
	doc = json_load_file("out/index.json", 0, NULL);
	ck_assert_str_eq(json_text(doc, "vms/0/file"), file);
	ck_assert_str_eq(json_text(doc, "stream_clock"), "host");
	json_decref(doc);
	f = script(file);
	while (next(f, &p)) {
		ck_assert_uint_ge(p.ns, last);
		last = p.ns;
		ck_assert(p.tid == 1 || (p.tid == 2 && p.cpu < 2));
		count_one(&got[p.tid == 1 ? 0 : 1 + p.cpu], p.ip);
	}
	ck_assert_int_eq(pclose(f), 0);
	want = truth_of("web", 0);
	ck_same_count("vCPU 0", &got[0], &want);
	want = truth_of("db", 0);
	ck_same_count("vCPU 1 on CPU 0", &got[1], &want);
	want = truth_of("db", 1);
	ck_same_count("vCPU 1 on CPU 1", &got[2], &want);
	perf_run("perf script -f -k db --itrace=b -F comm -i out/%s | sort -u | tr -d ' ' >names",
		 file);
	perf_run("printf 'w_b-vcpu0\\nw_b-vcpu1\\n' | cmp - names");
}
END_TEST

/* perf's output for @file, between @first and @last. Returns the number of instructions. */
static u64 add_script(const char *file, struct count got[2], u64 *first, u64 *last)
{
	FILE *f = script(file);
	struct printed p;
	u64 n = 0;

	for (; next(f, &p); n++) {
		*first = n ? *first : p.ns;
		*last = p.ns;
		count_one(&got[p.cpu], p.ip);
	}
	ck_assert_int_eq(pclose(f), 0);
	return n;
}

/*
 * A VMCS's page is freed, and another VM's VMCS is there from then on: what each of them executed
 * is in its own perf.data, and nothing is lost between them.
 */
START_TEST(page_used_again)
{
	struct count got[2] = { count_none, count_none }, want;
	u64 first, last, when, later, begins[2], ends[2], n[2];
	char record[400], when_hex[32];
	json_t *doc;

	make_traces(10, "");
	make_code();
	ck_assert_int_eq(
		vmpt("split --per-vm " RATES "--kernel=db -o out d.cpu0.pt d.cpu1.pt")->code, 0);
	add_script(DB ".perf.data", got, &first, &last);
	got[0] = got[1] = count_none;
	/* Of a raw trace a tick of the TSC is a nanosecond. */
	when = first + (last - first) / 2;
	later = when + (last - when) / 2;
	snprintf(when_hex, sizeof(when_hex), "0x%llx", (unsigned long long)when);
	snprintf(record, sizeof(record),
		 "{\"vm\":\"old\",\"vcpu\":0,\"vmcs\":\"0x13b2c9000\"}\n"
		 "{\"vm\":\"new\",\"vcpu\":0,\"vmcs\":\"0x13b2c9000\",\"since\":\"%s\"}\n"
		 "{\"vm\":\"new\",\"vcpu\":0,\"vmcs\":\"0x13b2c9000\",\"since\":\"0x%llx\"}\n",
		 when_hex, (unsigned long long)later);
	write_file("vms.jsonl", record, strlen(record));
	doc = run_json(vmpt("split --json -f --per-vm --side-record=vms.jsonl " RATES
			    "--kernel=db -o out d.cpu0.pt d.cpu1.pt"));
	ck_assert_uint_eq(json_array_size(json_at(doc, "vms")), 3);
	ck_assert_str_eq(json_text(doc, "vms/0/file"), "vm-new.perf.data");
	ck_assert_str_eq(json_text(doc, "vms/1/file"), "vm-old.perf.data");
	ck_assert_uint_eq(json_array_size(json_at(doc, "vms/0/streams")), 2);
	ck_assert_uint_eq(json_array_size(json_at(doc, "vms/1/streams")), 2);
	json_decref(doc);
	n[0] = add_script("vm-old.perf.data", got, &begins[0], &ends[0]);
	n[1] = add_script("vm-new.perf.data", got, &begins[1], &ends[1]);
	/* A run in which the page is reused belongs to its first owner; a loop has many. */
	ck_assert_uint_eq(begins[0], first);
	ck_assert_uint_gt(ends[0], when - (last - first) / 10);
	ck_assert_uint_lt(ends[0], when + (last - first) / 10);
	ck_assert_uint_ge(begins[1], ends[0]);
	ck_assert_uint_eq(ends[1], last);
	ck_assert_uint_gt(n[0], (n[0] + n[1]) / 4);
	ck_assert_uint_gt(n[1], (n[0] + n[1]) / 4);
	want = truth_of("db", 0);
	ck_same_count("db on CPU 0", &got[0], &want);
	want = truth_of("db", 1);
	ck_same_count("db on CPU 1", &got[1], &want);
	/* The files of that split are known as such, and gone. */
	ck_assert_int_eq(vmpt("split -f --per-vm -o out d.cpu0.pt d.cpu1.pt")->code, 0);
	ck_assert_int_ne(access("out/" DB "-2.cpu1.perf.data", F_OK), 0);
}
END_TEST

/* Without times there is no order: reported, and each instruction is there. */
START_TEST(without_times)
{
	struct count got[2] = { count_none, count_none }, want;
	char line[512];
	FILE *f;

	make_traces(10, "s/tsc=1 mtc=1/tsc=0 mtc=0/");
	make_code();
	ck_has(vmpt("split --per-vm --kernel=db -o out d.cpu0.pt d.cpu1.pt")->out,
	       "out/" DB ".perf.data: 2 streams, not ordered: without times\n");
	f = popen("perf script -f -k db --itrace=i1ie -F cpu,ip -i out/" DB ".perf.data", "r");
	ck_assert_ptr_nonnull(f);
	while (fgets(line, sizeof(line), f)) {
		unsigned long long ip;
		unsigned int cpu;

		ck_assert_msg(sscanf(line, " [%u] %llx", &cpu, &ip) == 2 && cpu < 2, "%s", line);
		count_one(&got[cpu], ip);
	}
	ck_assert_int_eq(pclose(f), 0);
	want = truth_of("db", 0);
	ck_same_count("db on CPU 0", &got[0], &want);
	want = truth_of("db", 1);
	ck_same_count("db on CPU 1", &got[1], &want);
}
END_TEST

TEST_SUITE()
{
	Suite *suite = suite_create("cli perf-vm");
	TCase *tc = tcase_create("perf-vm");

	if (system("perf --version >/dev/null 2>&1")) {
		test_skip("perf is not there (package linux-perf)");
		return NULL;
	}
	tcase_add_checked_fixture(tc, cli_setup, cli_clean);
	tcase_add_test(tc, without_times);
	suite_add_tcase(suite, tc);
	/* perf and the reading of what it prints take nearly all of the time. */
	if (getenv("VMPT_SANITIZED"))
		return suite;
	tcase_add_test(tc, vcpus_of_a_vm);
	tcase_add_test(tc, page_used_again);
	tc = test_long_case(suite);
	tcase_add_checked_fixture(tc, cli_setup, cli_clean);
	tcase_add_test(tc, all_cpus_in_order);
	return suite;
}
