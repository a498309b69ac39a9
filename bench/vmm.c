// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* vmpt-bench-vmm: the cost of vmm-lib in a VMM, and the model alone. docs/performance.md */
#include <getopt.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

#include "bench/bench.h"
#include "bench/vmm.h"

enum { EXIT_USAGE = 2, ROUNDS_MAX = 100, ROWS_MAX = 32 };

/* One line of the table: the median of all rounds. */
struct row {
	char name[64];
	const char *unit;
	double round[ROUNDS_MAX], value, least, most;
	double want; /* 0: no goal */
	bool at_least;
};

static struct row rows[ROWS_MAX];
static unsigned int row_count;

static const char help[] =
	"usage: vmpt-bench-vmm [options]\n"
	"Measure the cost of vmm-lib in a VMM: MSR writes, PIPs, shadow ToPA, TSC adjustment; and\n"
	"the model alone. docs/performance.md describes what is measured and how.\n"
	"\n"
	"  --rounds N   rounds, of which the median counts, 1 to 100 (default 9)\n"
	"  --size MIB   size of the synthetic trace in MiB, 1 to 1024 (default 256)\n"
	"  --quick      16 MiB, a sixteenth of the copies of the real traces, 3 rounds\n"
	"  --json FILE  JSON output file (default: none)\n"
	"  --check      exit 1 if a goal is missed\n"
	"  --help       this text\n"
	"\n"
	"Exit: 0 done, 1 something failed, 2 wrong usage.\n";

/* ---- rows ---- */

static struct row *row_for(const char *name, const char *unit, double want, bool at_least)
{
	unsigned int i;

	for (i = 0; i < row_count; i++)
		if (!strcmp(rows[i].name, name))
			return &rows[i];
	if (row_count == ROWS_MAX)
		abort();
	rows[row_count] = (struct row){ .unit = unit, .want = want, .at_least = at_least };
	snprintf(rows[row_count].name, sizeof(rows[0].name), "%s", name);
	return &rows[row_count++];
}

static void put(const char *name, const char *unit, double want, bool at_least, unsigned int round,
		double value)
{
	row_for(name, unit, want, at_least)->round[round] = value;
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

static void medians(unsigned int rounds)
{
	unsigned int i;

	for (i = 0; i < row_count; i++) {
		struct row *r = &rows[i];

		qsort(r->round, rounds, sizeof(*r->round), by_value);
		r->value = r->round[rounds / 2];
		r->least = r->round[0];
		r->most = r->round[rounds - 1];
	}
}

static bool met(const struct row *r)
{
	return r->at_least ? r->value >= r->want : r->value <= r->want;
}

/* ---- measures ---- */

/* Calls of the library; -1 after a message. */
static int round_calls(struct vmm *vmm, struct vmm *shadow, unsigned int i)
{
	double call = vmm_indirect_call(vmm);
	double mix = vmm_wrmsr_mix(vmm);
	double ctl = vmm_wrmsr_ctl(vmm);
	double pip = vmm_pip(vmm);
	double build = vmm_shadow_build(shadow);
	double full = vmm_shadow_full(shadow, false), scattered = vmm_shadow_full(shadow, true);

	put("indirect call", "ns", 0, false, i, call);
	put("WRMSR, a mix of all PT MSRs", "ns", 100, false, i, mix);
	put("WRMSR, in indirect calls", "x", 20, false, i, mix / call);
	put("WRMSR of CTL, TraceEn on and off", "ns", 100, false, i, ctl);
	put("WRMSR of CTL, in indirect calls", "x", 20, false, i, ctl / call);
	put("PIP inserted", "ns", 300, false, i, pip);
	put("shadow of a table of 512 entries", "us", 50, false, i, build);
	put("shadow of 16 pages, whole regions", "us", 0, false, i, full);
	put("shadow of 16 pages, scattered", "us", 0, false, i, scattered);
	put("sizeof(struct vmpt_vcpu)", "bytes", 4096, false, i, (double)vmm_vcpu_size());
	if (call < 0 || mix < 0 || ctl < 0 || pip < 0)
		return -1;
	return build < 0 || full < 0 || scattered < 0 ? -1 : 0;
}

static int measure_calls(unsigned int rounds)
{
	struct vmm *vmm = vmm_open(8u << 20, false), *shadow = vmm_open(8u << 20, true);
	int err = vmm && shadow ? 0 : -1;
	unsigned int i;

	for (i = 0; i < rounds && !err; i++)
		err = round_calls(vmm, shadow, i);
	vmm_close(shadow);
	vmm_close(vmm);
	return err;
}

/* The model: millions of branches per second; RTIT's unit must be as fast as PT's. */
static int measure_model(unsigned int rounds)
{
	double jcc, mix, rtit_jcc, rtit_mix, ranges;
	unsigned int i;

	for (i = 0; i < rounds; i++) {
		jcc = model_branches(MODEL_PT, false);
		mix = model_branches(MODEL_PT, true);
		rtit_jcc = model_branches(MODEL_RTIT, false);
		rtit_mix = model_branches(MODEL_RTIT, true);
		ranges = model_branches(MODEL_RTIT_RANGES, true);
		put("model: conditional branches", "M/s", 50, true, i, jcc);
		put("model: a mix of branches", "M/s", 50, true, i, mix);
		put("RTIT: conditional branches", "M/s", 50, true, i, rtit_jcc);
		put("RTIT: conditional, in PT's", "x", 1, true, i, rtit_jcc / jcc);
		put("RTIT: a mix of branches", "M/s", 50, true, i, rtit_mix);
		put("RTIT: a mix, in PT's", "x", 1, true, i, rtit_mix / mix);
		put("RTIT: a mix, filter by ranges", "M/s", 50, true, i, ranges);
		if (jcc < 0 || mix < 0 || rtit_jcc < 0 || rtit_mix < 0 || ranges < 0)
			return -1;
	}
	return 0;
}

static void put_adjust(const char *input, const char *what, const char *unit, double want,
		       unsigned int round, double value)
{
	char name[64];

	snprintf(name, sizeof(name), "%s: %s", input, what);
	put(name, unit, want, true, round, value);
}

/* Adjusting input @in, at once and page by page. */
static int measure_adjust(const struct bench_input *in, unsigned int rounds)
{
	size_t size = in->vmpt.size;
	/* 4 MiB for the table, and one region that is not filled. */
	struct vmm *vmm = vmm_open(size + (8u << 20), false);
	int err = vmm ? 0 : -1;
	double whole, pages, copy, other;
	unsigned int i;

	for (i = 0; i < rounds && !err; i++) {
		whole = vmm_tsc_adjust(vmm, in->vmpt.data, size, 1ULL << 40, &copy);
		pages = vmm_tsc_adjust(vmm, in->vmpt.data, size, 4096, &other);
		put_adjust(in->name, "memcpy", "GB/s", 0, i, copy);
		put_adjust(in->name, "TSC adjustment", "GB/s", 2, i, whole);
		put_adjust(in->name, "of memcpy", "x", 0.25, i, whole / copy);
		put_adjust(in->name, "mapped page by page", "GB/s", 0, i, pages);
		err = whole < 0 || pages < 0 ? -1 : 0;
	}
	vmm_close(vmm);
	return err;
}

/* The generated trace and the two real guests'. A missing one is no failure. */
static int measure_traces(unsigned int rounds, size_t size, unsigned int divide)
{
	struct bench_input in;
	unsigned int i;
	int ret;

	for (i = 0; i < BENCH_INPUTS; i++) {
		if (!strcmp(bench_input_name(i), "synth-common") || bench_input_is_shape(i))
			continue;
		memset(&in, 0, sizeof(in));
		ret = bench_input_open(&in, i, size, divide);
		/* Only Intel PT has TSC packets. */
		if (ret > 0 && in.isa == VMPT_ISA_PT)
			ret = measure_adjust(&in, rounds);
		bench_input_close(&in);
		if (ret < 0)
			return -1;
	}
	return 0;
}

/* ---- the report ---- */

static void report(const struct bench_machine *m, unsigned int rounds)
{
	unsigned int i;

	printf("%s, %u core%s, Linux %s, %s; median of %u rounds\n", m->cpu, m->cores,
	       m->cores == 1 ? "" : "s", m->kernel, m->compiler, rounds);
	if (!m->pinned)
		printf("warning: could not pin to one core\n");
	if (m->sanitized)
		printf("warning: built with sanitizers, the figures are meaningless\n");
	printf("\n  %-34s %9s %-5s  %19s\n", "", "median", "", "least .. most");
	for (i = 0; i < row_count; i++) {
		const struct row *r = &rows[i];

		printf("  %-34s %9.2f %-5s  %8.2f .. %8.2f", r->name, r->value, r->unit, r->least,
		       r->most);
		if (r->want > 0)
			printf("  goal %s %g: %s", r->at_least ? ">=" : "<=", r->want,
			       met(r) ? "met" : "MISSED");
		printf("\n");
	}
}

static json_t *json_row(const struct row *r)
{
	json_t *goal = json_null();

	if (r->want > 0)
		goal = json_pack("{s:s, s:f, s:b}", "rule", r->at_least ? "at_least" : "at_most",
				 "want", r->want, "met", met(r));
	return json_pack("{s:s, s:s, s:f, s:f, s:f, s:o}", "name", r->name, "unit", r->unit,
			 "value", r->value, "least", r->least, "most", r->most, "goal", goal);
}

static int write_json(const char *path, const struct bench_machine *m, unsigned int rounds)
{
	json_t *list = json_array(), *all;
	unsigned int i;
	int err = -1;

	for (i = 0; i < row_count; i++)
		json_array_append_new(list, json_row(&rows[i]));
	all = json_pack("{s:{s:s, s:I, s:s, s:s, s:b, s:b}, s:I, s:o}", "machine", "cpu", m->cpu,
			"cores", (json_int_t)m->cores, "kernel", m->kernel, "compiler", m->compiler,
			"pinned", m->pinned, "sanitized", m->sanitized, "rounds",
			(json_int_t)rounds, "rows", list);
	if (all)
		err = json_dump_file(all, path, JSON_INDENT(2) | JSON_REAL_PRECISION(9));
	json_decref(all);
	if (err)
		fprintf(stderr, "vmpt-bench-vmm: cannot write %s\n", path);
	return err ? -1 : 0;
}

/* ---- main ---- */

struct args {
	unsigned int rounds, size_mib, divide;
	const char *json;
	bool check;
};

static bool number(const char *text, unsigned int max, unsigned int *out)
{
	char *end;
	unsigned long v = strtoul(text, &end, 10);

	if (*text < '0' || *text > '9' || *end || !v || v > max) {
		fprintf(stderr, "vmpt-bench-vmm: not a value for this option: %s\n", text);
		return false;
	}
	*out = (unsigned int)v;
	return true;
}

/* -1: continue, else the exit code. */
static int parse(int argc, char **argv, struct args *a)
{
	static const struct option options[] = {
		{ "rounds", required_argument, NULL, 'r' },
		{ "size", required_argument, NULL, 's' },
		{ "quick", no_argument, NULL, 'q' },
		{ "json", required_argument, NULL, 'j' },
		{ "check", no_argument, NULL, 'c' },
		{ "help", no_argument, NULL, 'h' },
		{ 0 },
	};
	int c;

	while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (c == 'h') {
			fputs(help, stdout);
			return EXIT_SUCCESS;
		}
		if (c == '?' || (c == 'r' && !number(optarg, ROUNDS_MAX, &a->rounds)) ||
		    (c == 's' && !number(optarg, 1024, &a->size_mib)))
			return EXIT_USAGE;
		if (c == 'j')
			a->json = optarg;
		if (c == 'c')
			a->check = true;
		if (c == 'q') {
			a->rounds = 3;
			a->size_mib = 16;
			a->divide = 16;
		}
	}
	if (optind < argc) {
		fprintf(stderr, "vmpt-bench-vmm: %s: no such argument, see --help\n", argv[optind]);
		return EXIT_USAGE;
	}
	return -1;
}

int main(int argc, char **argv)
{
	struct args a = { .rounds = 9, .size_mib = 256, .divide = 1 };
	struct bench_machine machine;
	bool all_met = true;
	unsigned int i;
	int ret = parse(argc, argv, &a);

	if (ret >= 0)
		return ret;
	bench_machine_facts(&machine);
	bench_pin();
	if (measure_calls(a.rounds) || measure_model(a.rounds) ||
	    measure_traces(a.rounds, (size_t)a.size_mib << 20, a.divide))
		return EXIT_FAILURE;
	medians(a.rounds);
	report(&machine, a.rounds);
	for (i = 0; i < row_count; i++)
		all_met &= rows[i].want <= 0 || met(&rows[i]);
	if (a.json && write_json(a.json, &machine, a.rounds))
		return EXIT_FAILURE;
	return a.check && !all_met ? EXIT_FAILURE : EXIT_SUCCESS;
}
