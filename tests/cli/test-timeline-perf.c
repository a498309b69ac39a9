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

#define ck_has(text, word)   ck_assert_msg(strstr(text, word) != NULL, "no '%s' in: %s", word, text)
#define ck_lacks(text, word) ck_assert_msg(!strstr(text, word), "'%s' in: %s", word, text)

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
static void write_events(void)
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
		writer_kvm_entry(&w, 0, run[i].entry_ip, &in);
		writer_kvm_exit(&w, &exit, &out);
		writer_switch(&w, true, false, &out);
	}
}

static void setup(void)
{
	static const struct tl_options o = {
		.cpus = 2, .guests = 2, .runs = 400, .seed = 15, .cyc = true
	};
	unsigned int cpu;

	cli_setup();
	m = tl_new(&o);
	tl_go(m);
	run = tl_runs(m, &runs);
	writer_start_kvm(&w, false);
	writer_info(&w, false, WRITER_PRIVS);
	write_events();
	for (cpu = 0; cpu < o.cpus; cpu++) {
		const struct vmpt_stream *s = tl_stream(m, cpu);

		writer_aux(&w, (int)cpu, -1, 0, s->size, 0);
		writer_auxtrace(&w, (int)cpu, -1, 0, s->data, s->size);
	}
	writer_finish(&w);
	write_file("perf.data", w.buf, w.size);
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
	json_t *doc = run_json(vmpt("timeline --json -q " RATES " perf.data")), *o;
	size_t i, guests = 0, told = 0;

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
		told++;
		ck_assert_str_eq(json_text(o, "exit/source"), "event");
		ck_assert_uint_eq(json_u64(o, "exit/reason"), r->reason);
	}
	ck_assert_uint_eq(guests, runs);
	ck_assert_uint_eq(told, runs);
	json_decref(doc);
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
	ck_has(r->out, " us");
	ck_lacks(r->out, "unknown");
	ck_lacks(r->out, "?");
	ck_lacks(r->err, "frequency");
}
END_TEST

/* The writer's AUXTRACE_INFO has the rates of another processor. */
START_TEST(rates_of_the_file_that_are_not_so)
{
	const struct run *r = vmpt("clocks perf.data");

	ck_has(r->err, "warning: the file's TSC ratio ");
	ck_has(r->err, ": the trace's packets say 100/1, and that is taken");
	ck_has(r->out, "100/1 TSC ticks, found in the trace; an MTC each 8 (MTCFreq 3)");
	ck_lacks(vmpt("clocks " RATES " perf.data")->err, "that is taken");
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
		ck_has(r->err, "the trace itself, or of it");
		ck_assert_uint_eq(size_of(out), before);
	}
	ck_assert_int_eq(unlink("rec/perf.data") | unlink("rec/record.jsonl") | rmdir("rec"), 0);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("timeline-perf");
	TCase *tc = tcase_create("perf");

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, reasons_and_names);
	tcase_add_test(tc, rates_of_the_file_that_are_not_so);
	tcase_add_test(tc, times_of_perf);
	tcase_add_test(tc, exits_of_perf);
	tcase_add_test(tc, recording_is_not_overwritten);
	tcase_set_timeout(tc, 60);
	suite_add_tcase(s, tc);
	return test_main(s);
}
