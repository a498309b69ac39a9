// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * vmpt timeline and vmpt exits of a perf.data: reasons by kvm:kvm_exit, names of VMs by who runs,
 * times as perf has them.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/cli/cli-run.h"
#include "tests/decoder/perf-writer.h"
#include "tests/decoder/timeline-machine.h"

#define RATES "--tsc-ratio=100 --mtc-freq=3 --nominal-ratio=20"

static struct tl_machine *m;
static const struct tl_run *run;
static size_t runs;
static struct perf_writer w;

/* As tools/perf has it: time_zero + tsc * time_mult >> time_shift. */
static u64 perf_time(u64 tsc)
{
	u64 quot = tsc >> WRITER_SHIFT, rem = tsc & ((1ULL << WRITER_SHIFT) - 1);

	return WRITER_ZERO + quot * WRITER_MULT + (rem * WRITER_MULT >> WRITER_SHIFT);
}

static struct writer_at at(const struct tl_run *r, u64 tsc)
{
	return (struct writer_at){ 700 + r->guest, 700 + r->guest, r->cpu, perf_time(tsc) };
}

/* Guest n is a process of its own, 700 + n. */
static void write_events(bool kvm)
{
	size_t i;
	u32 g;

	for (g = 0; g < 2; g++) {
		struct writer_at start = { 700 + g, 700 + g, 0, perf_time(TL_START - 900) };

		writer_comm(&w, true, g ? "beta" : "alpha", 700 + g, 700 + g, &start);
	}
	for (i = 0; i < runs; i++) {
		struct writer_exit exit = { 0, run[i].reason, 1, run[i].ip, 0, 0 };
		struct writer_at in = at(&run[i], run[i].entry - 150);
		struct writer_at out = at(&run[i], run[i].exit + 150);

		writer_switch(&w, false, false, &in);
		if (kvm)
			writer_kvm_entry(&w, 0, run[i].entry_ip, &in);
		if (kvm)
			writer_kvm_exit(&w, &exit, &out);
		writer_switch(&w, true, false, &out);
	}
}

/* perf's list of events and their CPUs: intel_pt (id 101) on CPUs 0 and 1. */
static void write_index(void)
{
	static const u64 index[] = { 2, 101, 0, 0, ~0ULL, 101, 1, 1, ~0ULL };

	writer_record(&w, 69, index, sizeof(index));
}

/* With the traces of CPUs below @cpus only. */
static void write_perf(const char *name, bool kvm, unsigned int cpus)
{
	unsigned int cpu;

	if (kvm)
		writer_start_kvm(&w, false);
	else
		writer_start(&w, false);
	writer_info(&w, false, WRITER_PRIVS);
	write_events(kvm);
	for (cpu = 0; cpu < cpus; cpu++) {
		const struct vmpt_stream *s = tl_stream(m, cpu);

		writer_aux(&w, (int)cpu, -1, 0, s->size, 0);
		writer_auxtrace(&w, (int)cpu, -1, 0, s->data, s->size);
	}
	writer_finish(&w);
	write_file(name, w.buf, w.size);
}

/* Exits of four kinds in turn: OUT to port 3f8h, WRMSR with and RDMSR without its event, a fault or
 * @fourth.
 */
static void write_kinds(const char *name, u32 fourth)
{
	const u32 reason[] = { 30, 32, 31, fourth };
	unsigned int cpu;
	size_t i;

	writer_start_kvm_more(&w, false);
	writer_info(&w, false, WRITER_PRIVS);
	for (i = 0; i < runs; i++) {
		u64 info1 = i % 4 ? 0x181 : 0x03f80000;
		struct writer_exit exit = { 0, reason[i % 4], 1, run[i].ip, info1, 0 };
		struct writer_at in = at(&run[i], run[i].entry - 150);
		struct writer_at out = at(&run[i], run[i].exit + 150);
		/* Another thread of that CPU, which is handling an exit of its own. */
		struct writer_at other = { 900, 900, run[i].cpu, out.time };

		writer_kvm_entry(&w, 0, run[i].entry_ip, &in);
		writer_kvm_exit(&w, &exit, &out);
		writer_kvm_msr(&w, 1, 0xbad, &other);
		if (i % 4 == 1)
			writer_kvm_msr(&w, 1, 0x6e0, &out);
		if (i % 4 == 3)
			writer_kvm_page_fault(&w, 0xfee00300, &out);
	}
	for (cpu = 0; cpu < 2; cpu++) {
		const struct vmpt_stream *stream = tl_stream(m, cpu);

		writer_aux(&w, (int)cpu, -1, 0, stream->size, 0);
		writer_auxtrace(&w, (int)cpu, -1, 0, stream->data, stream->size);
	}
	writer_finish(&w);
	write_file(name, w.buf, w.size);
}

static void setup(void)
{
	static const struct tl_options o = {
		.cpus = 2, .guests = 2, .runs = 400, .seed = 15, .cyc = true
	};

	cli_setup();
	m = tl_new(&o);
	tl_go(m);
	run = tl_runs(m, &runs);
	write_perf("perf.data", true, o.cpus);
}

static void teardown(void)
{
	writer_free(&w);
	tl_free(m);
	cli_clean();
}

/* The run that began at @tsc or a tick beside it. */
static const struct tl_run *run_at(u64 tsc)
{
	size_t i;

	for (i = 0; i < runs; i++)
		if (run[i].entry <= tsc + 1 && tsc <= run[i].entry + 1)
			return &run[i];
	ck_abort_msg("no run at %llx", (unsigned long long)tsc);
}

START_TEST(reasons_and_names)
{
	json_t *doc = run_spans(vmpt("timeline --json -q " RATES " perf.data")), *o;
	size_t i, guests = 0, given = 0;

	json_array_foreach(json_at(doc, "spans"), i, o)
	{
		const struct tl_run *r;

		if (strcmp(json_text(o, "kind"), "guest"))
			continue;
		guests++;
		r = run_at(strtoull(json_text(o, "tsc"), NULL, 16));
		ck_assert_msg(strstr(json_text(o, "vm"), r->guest ? "beta" : "alpha") != NULL, "%s",
			      json_text(o, "vm"));
		if (!strcmp(json_text(o, "exit/source"), "none"))
			continue;
		given++;
		ck_assert_str_eq(json_text(o, "exit/source"), "event");
		ck_assert_uint_eq(json_u64(o, "exit/reason"), r->reason);
	}
	ck_assert_uint_eq(guests, runs);
	ck_assert_uint_eq(given, runs);
	json_decref(doc);
}
END_TEST

/* B5: perf's times in JSON and Chrome's file, too; and they can be given to --from. */
START_TEST(b5_perf_time_everywhere)
{
	char from[80], first[64];
	const struct run *r;
	json_t *doc;
	u64 start;

	doc = run_json(vmpt("timeline --json --perf-time -q " RATES " perf.data"));
	ck_assert_str_eq(json_text(doc, "clock"), "perf");
	start = json_u64(doc, "spans/5/start_ns");
	ck_assert_uint_eq(start, perf_time(strtoull(json_text(doc, "spans/5/tsc"), NULL, 16)));
	json_decref(doc);
	doc = run_json(vmpt("timeline --chrome=- --time=perf -q " RATES " perf.data"));
	ck_assert_str_eq(json_text(doc, "otherData/clock"), "perf");
	ck_assert_int_eq(strncmp(json_text(doc, "otherData/start"), "perf:", 5), 0);
	json_decref(doc);
	snprintf(first, sizeof(first), "%llu.%09llu", (unsigned long long)(start / 1000000000),
		 (unsigned long long)(start % 1000000000));
	snprintf(from, sizeof(from), "--from=perf:%s", first);
	r = vmpt("timeline --time=perf -q -n 1 %s " RATES " perf.data", from);
	ck_assert_int_eq(r->code, 0);
	ck_assert_msg(strstr(r->out, first) != NULL, "no %s in: %.400s", first, r->out);
}
END_TEST

/* Times of --perf-time are those that perf itself computes. */
START_TEST(times_of_perf)
{
	const struct run *r = vmpt("timeline --perf-time -q " RATES " perf.data");
	size_t i, found = 0;
	char want[64];

	ck_assert_int_eq(r->code, 0);
	for (i = 0; i < runs; i++) {
		u64 ns = perf_time(run[i].entry);

		snprintf(want, sizeof(want), "%llu.%09llu", (unsigned long long)(ns / 1000000000),
			 (unsigned long long)(ns % 1000000000));
		found += strstr(r->out, want) != NULL;
	}
	/* Some are a tick off: the estimate of cycles. */
	ck_assert_uint_ge(found, runs * 9 / 10);
}
END_TEST

START_TEST(exits_of_perf)
{
	const struct run *r = vmpt("exits " RATES " perf.data");

	ck_assert_int_eq(r->code, 0);
	ck_has(r->out, "alpha");
	ck_has(r->out, "beta");
	ck_has(r->out, "EPT violation");
	ck_has(r->out, " µs");
	ck_lacks(r->out, "unknown");
	ck_lacks(r->out, "?");
	ck_lacks(r->err, "frequency");
}
END_TEST

/* The row of all VMs with @key; NULL: not known. */
static json_t *row_of(json_t *doc, const char *by, const char *key)
{
	json_t *o;
	size_t i;

	json_array_foreach(json_at(doc, "exits"), i, o)
	{
		json_t *v = json_object_get(o, by);

		ck_assert_ptr_nonnull(v);
		if (key ? json_is_string(v) && !strcmp(json_string_value(v), key) : json_is_null(v))
			return o;
	}
	return NULL;
}

static u64 sum_of(json_t *doc)
{
	u64 sum = 0;
	json_t *o;
	size_t i;

	json_array_foreach(json_at(doc, "exits"), i, o) sum += json_u64(o, "count");
	return sum;
}

/* B3: what is no terminal gets the longest reason whole. */
START_TEST(b3_reasons_are_whole)
{
	writer_free(&w);
	write_kinds("kinds.data", 72);
	ck_has(vmpt("exits -q " RATES " kinds.data")->out, " ENQCMD PASID translation failure ");
	ck_has(vmpt("timeline -q " RATES " kinds.data")->out, "ENQCMD PASID translation failure");
}
END_TEST

START_TEST(b14_port_msr_gpa)
{
	json_t *doc;
	const char *args = "exits -q --json --by=%s " RATES " kinds.data";

	writer_free(&w);
	write_kinds("kinds.data", 48);
	doc = run_json(vmpt(args, "port"));
	ck_assert_ptr_nonnull(row_of(doc, "port", "0x3f8"));
	ck_assert_str_eq(json_text(row_of(doc, "port", "0x3f8"), "direction"), "out");
	ck_assert_uint_eq(sum_of(doc), (runs + 3) / 4);
	ck_assert_uint_eq(json_u64(doc, "left_out"), runs - (runs + 3) / 4);
	json_decref(doc);

	/* The MSR of the event of the same thread; without one it is not known. */
	doc = run_json(vmpt(args, "msr"));
	ck_assert_ptr_nonnull(row_of(doc, "msr", "0x6e0"));
	ck_assert_uint_eq(json_u64(row_of(doc, "msr", "0x6e0"), "reason"), 32);
	ck_assert_ptr_null(row_of(doc, "msr", "0xbad"));
	ck_assert_uint_eq(json_u64(row_of(doc, "msr", NULL), "reason"), 31);
	json_decref(doc);

	doc = run_json(vmpt(args, "gpa"));
	ck_assert_ptr_nonnull(row_of(doc, "gpa", "0xfee00300"));
	ck_assert_uint_eq(sum_of(doc), runs / 4);
	json_decref(doc);
	ck_has(vmpt("exits -q --by=port " RATES " kinds.data")->out, "  out 3f8 ");
	ck_has(vmpt("exits -q --by=msr " RATES " kinds.data")->out, "  not known, RDMSR ");
}
END_TEST

/* The writer's AUXTRACE_INFO has the rates of another processor. */
START_TEST(rates_of_the_file_that_are_not_so)
{
	const struct run *r = vmpt("clocks perf.data");

	ck_has(r->err, "warning: the file's TSC ratio ");
	ck_has(r->err, ": the given value contradicts the trace: 100/1 is used");
	ck_has(r->out, "100/1 TSC ticks, found in the trace; an MTC every 8 (MTCFreq 3)");
	ck_lacks(vmpt("clocks " RATES " perf.data")->err, "contradicts the trace");
	/* Names need times: vms takes the rates, too. */
	ck_has(vmpt("vms perf.data")->err, "warning: the file's TSC ratio ");
	r = vmpt("vms " RATES " perf.data");
	ck_assert_int_eq(r->code, 0);
	ck_assert_str_eq(r->err, "");
	ck_has(r->out, "  alpha");
	ck_has(r->out, "  beta");
}
END_TEST

static int by_entry(const void *a, const void *b)
{
	const struct tl_run *const *x = a, *const *y = b;

	return (*x)->entry < (*y)->entry ? -1 : (*x)->entry > (*y)->entry;
}

/* What is out of guest @g as CPU 0 alone shows it: [0] truly, [1] while it was on CPU 1, too. */
static void truth_of(unsigned int g, u64 sum[2], size_t n[2])
{
	const struct tl_run *list[400] = { NULL }, *last = NULL;
	size_t count = 0, i;
	bool away = false;

	for (i = 0; i < runs; i++)
		if (run[i].guest == g)
			list[count++] = &run[i];
	qsort(list, count, sizeof(*list), by_entry);
	sum[0] = sum[1] = n[0] = n[1] = 0;
	for (i = 0; i < count; i++) {
		if (list[i]->cpu) {
			away = true;
			continue;
		}
		if (last) {
			sum[away] += list[i]->entry - last->exit;
			n[away]++;
		}
		last = list[i];
		away = false;
	}
}

static void check_near(double ns, u64 ticks, size_t parts)
{
	double want = (double)ticks * WRITER_MULT / (double)(1ULL << WRITER_SHIFT);

	ck_assert_msg(ns >= want - (double)parts * 2 && ns <= want + (double)parts * 2,
		      "%f ns, not %f", ns, want);
}

/* CPU 1's trace is not there, its events are: what its guests did there is not out of them. */
static void check_missing(const char *file)
{
	static const char *const given =
		"CPU 1 was recorded, but there is no trace: what ran there is not known";
	const struct run *r = vmpt("timeline --json --summary " RATES " %s", file);
	json_t *doc, *vm, *exits, *o;
	size_t n[2], i, unsure = 0, away = 0;
	u64 sum[2];
	unsigned int g;

	ck_assert_int_eq(r->code, 0);
	ck_has(r->err, given);
	ck_has(r->err, " times a vCPU ran on a CPU that is not in the trace: ");
	doc = run_json(r);
	ck_assert_uint_eq(json_array_size(json_at(doc, "vms")), 2);
	for (g = 0; g < 2; g++) {
		vm = json_at(doc, "vms/0");
		if (!strstr(json_text(vm, "vm"), g ? "beta" : "alpha"))
			vm = json_at(doc, "vms/1");
		truth_of(g, sum, n);
		ck_assert_uint_gt(n[1], 10);
		ck_assert_uint_gt(n[0], 10);
		away += n[1];
		ck_assert_uint_eq(json_u64(vm, "unseens"), n[1]);
		check_near(json_number_value(json_at(vm, "unseen_ns")), sum[1], n[1]);
		check_near(json_number_value(json_at(vm, "exited_ns")) +
				   json_number_value(json_at(vm, "halted_ns")),
			   sum[0], n[0]);
	}
	json_decref(doc);
	/* Nor are they lengths of exits: but the last of each guest they alone are unsure. */
	exits = run_json(vmpt("exits --json -q " RATES " %s", file));
	json_array_foreach(json_at(exits, "exits"), i, o) unsure += json_u64(o, "unsure");
	ck_assert_uint_eq(unsure, away + 2);
	json_decref(exits);
}

START_TEST(a_cpu_is_missing)
{
	const struct run *r;

	writer_free(&w);
	write_perf("one.data", true, 1);
	check_missing("one.data");
	ck_has(vmpt("timeline --chrome=- -q " RATES " one.data")->out, "\"unseen\":true");
	ck_lacks(vmpt("timeline --chrome=- -q " RATES " perf.data")->out, "\"unseen\":true");
	/* Without KVM's events the switches tell. */
	writer_free(&w);
	write_perf("two.data", false, 1);
	check_missing("two.data");
	/* Without any event of CPU 1 only the header's list has it. */
	writer_free(&w);
	writer_start(&w, false);
	write_index();
	writer_info(&w, false, WRITER_PRIVS);
	writer_auxtrace(&w, 0, -1, 0, tl_stream(m, 0)->data, tl_stream(m, 0)->size);
	writer_finish(&w);
	write_file("three.data", w.buf, w.size);
	r = vmpt("timeline --summary " RATES " three.data");
	ck_assert_int_eq(r->code, 0);
	ck_has(r->err, "three.data: CPU 1 was recorded, but there is no trace: ");
	ck_lacks(r->err, "not in the trace");
	/* A trace of a thread is of the CPUs that it was on. */
	writer_free(&w);
	writer_start(&w, false);
	write_index();
	writer_info(&w, false, WRITER_PRIVS);
	writer_auxtrace(&w, 0, 5, 0, tl_stream(m, 0)->data, tl_stream(m, 0)->size);
	writer_finish(&w);
	write_file("four.data", w.buf, w.size);
	ck_lacks(vmpt("timeline --summary " RATES " four.data")->err, "there is no trace");
	/* CPU 1 is in the trace, but not selected. */
	ck_lacks(vmpt("timeline --cpu=0 " RATES " perf.data")->err, "but there is no trace");
	ck_has(vmpt("timeline --cpu=0 " RATES " perf.data")->err, "not in the trace");
	ck_lacks(vmpt("timeline " RATES " perf.data")->err, "the trace: ");
}
END_TEST

static size_t size_of(const char *name)
{
	struct stat st;

	ck_assert_int_eq(stat(name, &st), 0);
	return (size_t)st.st_size;
}

/* A recording's folder is an input, and so is what is read in it. */
START_TEST(recording_is_not_overwritten)
{
	static const char *const name[] = { "rec/perf.data", "rec/record.jsonl" };
	static const char *const file[] = { "rec", "rec/perf.data" };
	static const char *const option[] = { "chrome", "html" };
	unsigned int i;

	ck_assert_int_eq(mkdir("rec", 0700), 0);
	ck_assert_int_eq(rename("perf.data", "rec/perf.data"), 0);
	write_file("rec/record.jsonl", "{}\n", 3);
	for (i = 0; i < 8; i++) {
		const char *out = name[i & 1];
		size_t before = size_of(out);
		const struct run *r =
			vmpt("timeline --%s=%s %s", option[i >> 2], out, file[i >> 1 & 1]);

		ck_assert_int_eq(r->code, 2);
		ck_has(r->err, "is an input: it would be overwritten");
		ck_assert_uint_eq(size_of(out), before);
	}
	ck_assert_int_eq(unlink("rec/perf.data") | unlink("rec/record.jsonl") | rmdir("rec"), 0);
}
END_TEST

/*
 * The same for what perf record --kcore makes, also in the folder of vmpt record; an empty file
 * too, which is nobody's otherwise.
 */
START_TEST(kcore_folder_is_not_overwritten)
{
	static const char *const name[] = { "data", "kcore_dir/modules", "kcore_dir__7/kallsyms" };
	static const char *const folder[] = { "rec/perf.data", "rec" };
	char out[64];
	unsigned int i;

	ck_assert_int_eq(mkdir("rec", 0700) | mkdir("rec/perf.data", 0700), 0);
	ck_assert_int_eq(mkdir("rec/perf.data/kcore_dir", 0700), 0);
	ck_assert_int_eq(mkdir("rec/perf.data/kcore_dir__7", 0700), 0);
	ck_assert_int_eq(rename("perf.data", "rec/perf.data/data"), 0);
	write_file("rec/perf.data/kcore_dir/modules", "", 0);
	write_file("rec/perf.data/kcore_dir__7/kallsyms", "", 0);
	for (i = 0; i < 2 * VMPT_ARRAY_SIZE(name); i++) {
		const struct run *r;
		size_t before;

		snprintf(out, sizeof(out), "rec/perf.data/%s", name[i >> 1]);
		before = size_of(out);
		r = vmpt("timeline --html=%s %s", out, folder[i & 1]);
		ck_assert_int_eq(r->code, 2);
		ck_has(r->err, "is an input: it would be overwritten");
		ck_assert_uint_eq(size_of(out), before);
	}
	/* Other files in it may be made, and made again. */
	for (i = 0; i < 2; i++)
		ck_assert_str_eq(vmpt("timeline -q " RATES " --html=rec/perf.data/page rec")->err,
				 "");
	ck_assert_int_eq(system("rm -r rec"), 0);
}
END_TEST

/* The lines around an unreadable line of vmpt record are used. */
START_TEST(recording_with_a_bad_line)
{
	static const char whole[] =
		"{\"kind\":\"host\",\"version\":1,\"cpus\":3}\n"
		"{\"kind\":\"vcpu\",\"vm\":\"we\n"
		"{\"kind\":\"vcpu\",\"vm\":\"web\",\"pid\":700,\"tid\":700,\"vcpu\":3,"
		"\"tsc_before\":\"0x1\",\"tsc_after\":\"0x7fffffffffffff\"}\n";
	const struct run *r;

	ck_assert_int_eq(mkdir("rec", 0700), 0);
	ck_assert_int_eq(rename("perf.data", "rec/perf.data"), 0);
	write_file("rec/record.jsonl", whole, strlen(whole));
	r = vmpt("timeline --summary " RATES " rec");
	ck_assert_int_eq(r->code, 0);
	ck_has(r->err, "warning: rec/record.jsonl: line 2: not JSON: ");
	ck_has(r->err, "; skipped\n");
	ck_has(r->err, "vmpt record saw 3 CPUs, but the trace has 2: ");
	ck_has(r->out, "\nweb ");
	ck_has(r->out, "\nbeta");
	write_file("rec/record.jsonl", "{\"kind\":\"host\",\"cpus\":2}\n", 26);
	ck_lacks(vmpt("timeline --summary " RATES " rec")->err, "vmpt record saw");
	/* Named as a side record, also if it begins with the line. */
	write_file("late.jsonl", strchr(whole, '\n') + 1, strlen(strchr(whole, '\n') + 1));
	r = vmpt("timeline --summary --side-record=late.jsonl " RATES " rec/perf.data");
	ck_assert_int_eq(r->code, 0);
	ck_has(r->out, "\nweb ");
	write_file("rec/record.jsonl", "{}\n", 3);
	r = vmpt("timeline --summary " RATES " rec");
	ck_assert_int_eq(r->code, 1);
	ck_has(r->err, "error: rec/record.jsonl: no record in it can be read\n");
	ck_assert_int_eq(unlink("rec/perf.data") | unlink("rec/record.jsonl") | rmdir("rec"), 0);
}
END_TEST

TEST_SUITE()
{
	Suite *s = suite_create("timeline-perf");
	TCase *tc = tcase_create("perf");

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, reasons_and_names);
	tcase_add_test(tc, rates_of_the_file_that_are_not_so);
	tcase_add_test(tc, times_of_perf);
	tcase_add_test(tc, b5_perf_time_everywhere);
	tcase_add_test(tc, exits_of_perf);
	tcase_add_test(tc, b3_reasons_are_whole);
	tcase_add_test(tc, b14_port_msr_gpa);
	tcase_add_test(tc, a_cpu_is_missing);
	tcase_add_test(tc, recording_is_not_overwritten);
	tcase_add_test(tc, kcore_folder_is_not_overwritten);
	tcase_add_test(tc, recording_with_a_bad_line);
	suite_add_tcase(s, tc);
	return s;
}
