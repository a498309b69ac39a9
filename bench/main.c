// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* vmpt-bench: vmpt and libipt over the same inputs in one go, RTIT alone. docs/performance.md */
#include <getopt.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "bench/bench.h"

enum { EXIT_USAGE = 2 };

struct args {
	unsigned int rounds, size_mib, shape_mib, divide, goals;
	bool input[BENCH_INPUTS];
	bool check;
	char json[PATH_MAX];
};

static const char help_begin[] =
	"usage: vmpt-bench [options]\n"
	"Run vmpt and libipt over the same traces and compare them. docs/performance.md\n"
	"describes what is measured and how.\n"
	"\n"
	"  --rounds N    rounds, of which the best counts (default 5)\n"
	"  --size MIB    size of the synthetic streams in MiB, 1 to 65536 (default 256, and\n"
	"                64 for each shape)\n"
	"  --input NAME  this input only; may be given again (default all):";
static const char help_end[] =
	"\n"
	"  --quick       16 MiB, an eighth of the copies of the real traces, 2 rounds; the\n"
	"                options above override this if they come later\n"
	"  --json FILE   JSON output file (default: bench.json next to the program)\n"
	"  --check       exit 1 if a goal is missed, and name it on stderr\n"
	"  --goals PCT   judge by this percentage of each goal, 1 to 1000000 (default 100)\n"
	"  --help        this text\n"
	"\n"
	"Real traces are read from $VMPT_DATA, or from ../shared/data/real next to the\n"
	"checkout, and skipped if missing.\n"
	"Exit: 0 done, 1 something failed (counts that differ too), 2 wrong usage.\n"
	"\n"
	"examples:\n"
	"  vmpt-bench --quick\n"
	"  vmpt-bench --input synth --rounds 10 --check\n";

static void print_help(void)
{
	int column = INT_MAX;
	unsigned int i;

	fputs(help_begin, stdout);
	for (i = 0; i < BENCH_INPUTS; i++) {
		if (column > 66)
			column = printf("\n%15s", "") - 1;
		column += printf(" %s%s", bench_input_name(i), i < BENCH_INPUTS - 1 ? "," : "");
	}
	fputs(help_end, stdout);
}

/* Next to the program: build/bench/bench.json. */
static void default_json(char *out, size_t size)
{
	ssize_t n = readlink("/proc/self/exe", out, size);
	char *slash;

	if (n <= 0 || (size_t)n >= size - sizeof("bench.json")) {
		snprintf(out, size, "bench.json");
		return;
	}
	out[n] = '\0';
	slash = strrchr(out, '/');
	snprintf(slash + 1, size - (size_t)(slash + 1 - out), "bench.json");
}

static bool parse_number(const char *text, unsigned int max, unsigned int *out)
{
	char *end;
	unsigned long v = strtoul(text, &end, 10);

	if (*text < '0' || *text > '9' || *end || !v || v > max)
		return false;
	*out = (unsigned int)v;
	return true;
}

static bool parse_input(const char *name, struct args *a)
{
	unsigned int i;

	for (i = 0; i < BENCH_INPUTS; i++) {
		if (!strcmp(name, bench_input_name(i))) {
			a->input[i] = true;
			return true;
		}
	}
	return false;
}

/* One option; false after a message if its argument is wrong. */
static bool parse_option(int c, struct args *a)
{
	bool ok = true;

	switch (c) {
	case 'r':
		ok = parse_number(optarg, 1000, &a->rounds);
		break;
	case 's':
		ok = parse_number(optarg, 65536, &a->size_mib);
		a->shape_mib = a->size_mib;
		break;
	case 'i':
		ok = parse_input(optarg, a);
		break;
	case 'j':
		ok = *optarg && strlen(optarg) < sizeof(a->json);
		if (ok)
			strcpy(a->json, optarg);
		break;
	case 'g':
		ok = parse_number(optarg, 1000000, &a->goals);
		break;
	case 'q':
		a->size_mib = a->shape_mib = 16;
		a->rounds = 2;
		a->divide = 8;
		break;
	case 'c':
		a->check = true;
		break;
	}
	if (!ok)
		fprintf(stderr, "vmpt-bench: not a value for this option: %s\n", optarg);
	return ok;
}

/* -1: continue, else the exit code. */
static int parse(int argc, char **argv, struct args *a)
{
	static const struct option options[] = {
		{ "rounds", required_argument, NULL, 'r' },
		{ "size", required_argument, NULL, 's' },
		{ "input", required_argument, NULL, 'i' },
		{ "json", required_argument, NULL, 'j' },
		{ "quick", no_argument, NULL, 'q' },
		{ "check", no_argument, NULL, 'c' },
		{ "goals", required_argument, NULL, 'g' },
		{ "help", no_argument, NULL, 'h' },
		{ 0 },
	};
	bool any = false;
	unsigned int i;
	int c;

	while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (c == 'h') {
			print_help();
			return EXIT_SUCCESS;
		}
		if (c == '?' || !parse_option(c, a))
			return EXIT_USAGE;
	}
	if (optind < argc) {
		fprintf(stderr, "vmpt-bench: %s: no such argument, see --help\n", argv[optind]);
		return EXIT_USAGE;
	}
	for (i = 0; i < BENCH_INPUTS; i++)
		any |= a->input[i];
	for (i = 0; i < BENCH_INPUTS && !any; i++)
		a->input[i] = true;
	return -1;
}

/* 0, or -1 if something failed. A missing input is no failure. */
static int run_input(struct bench_result *r, unsigned int i, const struct args *a,
		     unsigned int cores)
{
	unsigned int mib = bench_input_is_shape(i) ? a->shape_mib : a->size_mib;
	int ret = bench_input_open(&r->input, i, (size_t)mib << 20, a->divide);

	if (ret <= 0)
		return ret;
	r->goals = a->goals;
	ret = bench_rounds(r, a->rounds, cores);
	if (!ret)
		bench_report_input(r);
	bench_input_close(&r->input);
	return ret;
}

/* Name the goals that are missed. One that could not be measured is not. */
static bool goals_met(const struct bench_result *r)
{
	bool met = true;
	unsigned int i;

	for (i = 0; i < BENCH_GOALS; i++) {
		if (bench_goal_value(r, i) < 0 || bench_goal_met(r, i))
			continue;
		fprintf(stderr, "vmpt-bench: %s: goal missed: %s: %.2f, not %s %g\n", r->input.name,
			bench_goals[i].name, bench_goal_value(r, i),
			bench_goals[i].measure == BENCH_MEMORY ? "<=" : ">=",
			bench_goal_want(r, i));
		met = false;
	}
	return met;
}

int main(int argc, char **argv)
{
	static struct bench_result results[BENCH_INPUTS];
	struct args a = {
		.rounds = 5, .size_mib = 256, .shape_mib = 64, .divide = 1, .goals = 100
	};
	struct bench_machine machine;
	bool met = true;
	unsigned int i;
	int ret;

	default_json(a.json, sizeof(a.json));
	ret = parse(argc, argv, &a);
	if (ret >= 0)
		return ret;
	bench_machine_facts(&machine);
	bench_report_machine(&machine, a.rounds);
	for (i = 0; i < BENCH_INPUTS; i++) {
		if (!a.input[i])
			continue;
		if (run_input(&results[i], i, &a, machine.cores))
			return EXIT_FAILURE;
		if (a.check && results[i].done)
			met &= goals_met(&results[i]);
	}
	if (bench_report_json(a.json, &machine, a.rounds, results, BENCH_INPUTS))
		return EXIT_FAILURE;
	printf("written: %s\n", a.json);
	return met ? EXIT_SUCCESS : EXIT_FAILURE;
}
