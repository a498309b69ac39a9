// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The table of options, and parsing "name=value" by it.
 */
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "arch/pt-regs.h"
#include "arch/rtit-regs.h"
#include "qemu-plugin/options.h"

enum option_type { OPT_FLAG, OPT_TEXT, OPT_NUMBER, OPT_CPUS, OPT_CHOICE, OPT_MODE };
/* The view that an option needs to have an effect … */
enum option_view {
	ANY_VIEW = 0,
	HOST_VIEW = 1,
	GUEST_VIEW = 2,
	/* … and the kind of trace */
	PT = 4,
	RTIT = 8,
	/* … or a code stream */
	CODE = 16,
	/* … or a list of tasks */
	TASKS = 32
};

struct option {
	const char *name;
	u8 type;
	u8 needs;	   /* of enum option_view */
	size_t at;	   /* in struct options */
	const char *value; /* syntax of the value; of a choice its words, the first is 0 */
	const char *help;
	u64 min, max;
};

#define AT(field) offsetof(struct options, field)

static const struct option table[] = {
	{ "help", OPT_FLAG, ANY_VIEW, AT(help), "1", "print the options and end QEMU", 0, 0 },
	{ "isa", OPT_CHOICE, ANY_VIEW, AT(rtit), "pt|rtit",
	  "the kind of trace: Intel PT, or RTIT of the Atoms of 2013 to 2015", 0, 0 },
	{ "errata", OPT_NUMBER, RTIT, AT(errata), "BITS",
	  "with isa=rtit: the processor's errata, bit n is En, 1 to 7 (0)", 0, 0xfe },
	{ "host-view", OPT_TEXT, ANY_VIEW, AT(host_view), "DIR",
	  "trace the guest from outside: one stream per host CPU in DIR/cpuN.pt,\n"
	  "and the side record DIR/vms.jsonl; several QEMUs may share DIR",
	  0, 0 },
	{ "perf-data", OPT_TEXT, HOST_VIEW | PT, AT(perf_data), "FILE",
	  "with host-view: the streams in a perf.data in place of cpuN.pt", 0, 0 },
	{ "vm", OPT_TEXT, HOST_VIEW, AT(vm), "NAME", "the guest's name in the side record (vm-PID)",
	  0, 0 },
	{ "vmcs", OPT_NUMBER, HOST_VIEW | PT, AT(vmcs), "ADDR",
	  "VMCS pointer of vCPU 0, 4-KiB aligned, followed by the other vCPUs' (by name)", 4096,
	  0xffffffffff000 },
	{ "cpus", OPT_CPUS, HOST_VIEW, AT(cpus), "N[:N...]",
	  "host CPU of vCPU 0, 1, …; further vCPUs count on from the last (0)", 0, 0 },
	{ "host", OPT_CHOICE, HOST_VIEW | PT, AT(synthetic), "none|synthetic",
	  "what executes between runs: nothing, or a host's VMRESUME loop", 0, 0 },
	{ "slice-us", OPT_NUMBER, HOST_VIEW, AT(slice_us), "N",
	  "longest run in µs of host time (10000)", 1, 10000000 },
	{ "tsc-offset", OPT_NUMBER, HOST_VIEW, AT(tsc_offset), "N", "TSC offset in the VMCSs (0)",
	  0, ~0ULL },
	{ "tsc-multiplier", OPT_NUMBER, HOST_VIEW | PT, AT(tsc_multiplier), "N",
	  "TSC multiplier in the VMCSs, 48 bits of fraction (1 << 48: none)", 1, ~0ULL },
	{ "ctl", OPT_NUMBER, HOST_VIEW, AT(ctl), "BITS",
	  "IA32_RTIT_CTL of the host's trace, without TraceEn and ToPA;\n"
	  "with isa=rtit RTIT_CTL, without Trace_En, TraceActive and Dest",
	  0, ~0ULL },
	{ "code", OPT_TEXT, HOST_VIEW, AT(code), "FILE",
	  "with host-view: write the code that the guest executes to FILE", 0, 0 },
	{ "code-limit", OPT_NUMBER, CODE, AT(code_limit), "MIB", "largest size of that file (256)",
	  1, 1 << 20 },
	{ "tasks", OPT_TEXT, HOST_VIEW, AT(tasks), "FILE",
	  "with host-view: write the processes of a Linux guest to FILE", 0, 0 },
	{ "symbols", OPT_TEXT, TASKS, AT(symbols), "FILE",
	  "with tasks: write the functions of its kernel to FILE", 0, 0 },
	{ "guest-view", OPT_FLAG, ANY_VIEW, AT(guest_view), "1",
	  "the guest's processor has PT, or RTIT", 0, 0 },
	{ "pt", OPT_TEXT, GUEST_VIEW | PT, AT(cpu), "NAME",
	  "with guest-view: the PT it has, a baseline of vmm-lib or full (qemu-icelake)", 0, 0 },
	{ "rtit", OPT_TEXT, GUEST_VIEW | RTIT, AT(signature), "MODEL-STEPPING",
	  "with guest-view: the processor of family 6 that it is (37-8)", 0, 0 },
	{ "rdtsc", OPT_CHOICE, GUEST_VIEW, AT(rdtsc_qemu), "emulate|qemu",
	  "with guest-view: who executes RDTSC; QEMU's does not agree with TSC packets", 0, 0 },
	{ "counters", OPT_CHOICE, GUEST_VIEW | PT, AT(counters), "still|count",
	  "with guest-view: whether its performance counters count", 0, 0 },
	{ "truth", OPT_TEXT, ANY_VIEW, AT(truth), "PREFIX",
	  "write which blocks were executed to PREFIX.vCPU", 0, 0 },
	{ "mode", OPT_MODE, ANY_VIEW, AT(mode), "MODE",
	  "permissions of the files that are made, in octal (600)", 0600, 0777 },
};

#define OPTIONS (sizeof(table) / sizeof(table[0]))

static int bad(const struct option *opt, const char *value)
{
	fprintf(stderr, "vmpt: %s=%s: expected %s; help=1 explains the options\n", opt->name, value,
		opt->value);
	return -1;
}

static int parse_number(const struct option *opt, const char *value, int base, u64 *out)
{
	char *end;

	errno = 0;
	*out = strtoull(value, &end, base);
	if (errno || end == value || *end || *value == '-' || *out < opt->min || *out > opt->max)
		return bad(opt, value);
	return 0;
}

static int parse_flag(const struct option *opt, const char *value, bool *out)
{
	if (!strcmp(value, "1") || !strcmp(value, "on"))
		*out = true;
	else if (!strcmp(value, "0") || !strcmp(value, "off"))
		*out = false;
	else
		return bad(opt, value);
	return 0;
}

/* One of two words, which a bar separates. */
static int parse_choice(const struct option *opt, const char *value, bool *out)
{
	size_t first = strcspn(opt->value, "|");

	if (strlen(value) == first && !strncmp(value, opt->value, first))
		*out = false;
	else if (!strcmp(value, opt->value + first + 1))
		*out = true;
	else
		return bad(opt, value);
	return 0;
}

static int parse_cpus(const struct option *opt, const char *value, struct options *options)
{
	const char *p = value;
	unsigned long cpu;
	char *end;

	for (options->cpu_count = 0; options->cpu_count < OPTION_CPUS; p = end + 1) {
		cpu = strtoul(p, &end, 10);
		if (end == p || *p < '0' || *p > '9' || cpu > 65535)
			return bad(opt, value);
		options->cpus[options->cpu_count++] = (u32)cpu;
		if (!*end)
			return 0;
		if (*end != ':')
			return bad(opt, value);
	}
	return bad(opt, value);
}

static int parse_one(struct options *options, const struct option *opt, const char *value)
{
	void *at = (char *)options + opt->at;

	switch (opt->type) {
	case OPT_FLAG:
		return parse_flag(opt, value, at);
	case OPT_NUMBER:
		return parse_number(opt, value, 0, at);
	case OPT_MODE:
		return parse_number(opt, value, 8, at);
	case OPT_CHOICE:
		return parse_choice(opt, value, at);
	case OPT_CPUS:
		return parse_cpus(opt, value, options);
	default:
		if (!*value)
			return bad(opt, value);
		*(const char **)at = strdup(value);
		return 0;
	}
}

static const struct option *find(const char *arg)
{
	size_t n = strcspn(arg, "=");

	for (size_t i = 0; i < OPTIONS; i++) {
		if (strlen(table[i].name) == n && !strncmp(table[i].name, arg, n))
			return &table[i];
	}
	return NULL;
}

/* An option that would have no effect is a mistake. */
static int check_view(const struct options *options, const struct option *opt, const char *arg)
{
	const char *why = NULL;

	if (opt->needs & HOST_VIEW && !options->host_view)
		why = "needs the host view: add host-view=DIR";
	else if (opt->needs & GUEST_VIEW && !options->guest_view)
		why = "needs the guest view: add guest-view=1";
	else if (opt->needs & CODE && !options->code)
		why = "needs a code stream: add code=FILE";
	else if (opt->needs & TASKS && !options->tasks)
		why = "needs a list of tasks: add tasks=FILE";
	else if (opt->needs & PT && options->rtit)
		why = "is of Intel PT, not of RTIT";
	else if (opt->needs & RTIT && !options->rtit)
		why = "is of RTIT: add isa=rtit";
	if (!why)
		return 0;
	fprintf(stderr, "vmpt: %s %s\n", arg, why);
	return -1;
}

static int check(const struct options *options, int argc, char **argv)
{
	for (int i = 0; i < argc; i++) {
		if (check_view(options, find(argv[i]), argv[i]))
			return -1;
	}
	if (options->errata & 1) {
		fputs("vmpt: errata=BITS: only bits 1 to 7 stand for errata\n", stderr);
		return -1;
	}
	if (options->vmcs & 0xfff) {
		fputs("vmpt: vmcs=ADDR is not 4-KiB aligned\n", stderr);
		return -1;
	}
	return 0;
}

/* As perf's default for intel_pt//, but an MTC every 512 crystal ticks, as TCG is slow. */
#define CTL_PT                                                             \
	(VMPT_CTL_OS | VMPT_CTL_USER | VMPT_CTL_TSC_EN | VMPT_CTL_MTC_EN | \
	 9ULL << VMPT_CTL_MTC_FREQ_SHIFT | 3ULL << VMPT_CTL_PSB_FREQ_SHIFT | VMPT_CTL_BRANCH_EN)
/* The same: MTC every 8192 ticks of the TSC. */
#define CTL_RTIT                                                                               \
	(VMPT_RTIT_CTL_OS | VMPT_RTIT_CTL_USER | VMPT_RTIT_CTL_MTC_EN | VMPT_RTIT_CTL_STS_EN | \
	 VMPT_RTIT_CTL_STS_ON_CR3 | VMPT_RTIT_CTL_CMPRS_RET | VMPT_RTIT_CTL_MTC_RANGE)

/* Looked up first, because defaults depend on it. */
static bool wants_rtit(int argc, char **argv)
{
	for (int i = 0; i < argc; i++) {
		if (!strcmp(argv[i], "isa=rtit"))
			return true;
	}
	return false;
}

int options_parse(struct options *options, int argc, char **argv)
{
	*options = (struct options){
		.slice_us = 10000,
		.tsc_multiplier = 1ULL << 48,
		.ctl = wants_rtit(argc, argv) ? CTL_RTIT : CTL_PT,
		.mode = 0600,
		.code_limit = 256,
	};
	for (int i = 0; i < argc; i++) {
		const struct option *opt = find(argv[i]);
		const char *value = strchr(argv[i], '=');

		if (!opt) {
			fprintf(stderr, "vmpt: option %s is not known; help=1 lists the options\n",
				argv[i]);
			return -1;
		}
		if (parse_one(options, opt, value ? value + 1 : ""))
			return -1;
	}
	return options->help ? 0 : check(options, argc, argv);
}

void options_print_help(void)
{
	puts("vmpt-plugin: Processor Trace for TCG guests. Options:");
	for (size_t i = 0; i < OPTIONS; i++) {
		const char *line = table[i].help, *end;

		printf("  %s=%s\n", table[i].name, table[i].value);
		for (; line; line = *end ? end + 1 : NULL) {
			end = strchrnul(line, '\n');
			printf("      %.*s\n", (int)(end - line), line);
		}
	}
	fflush(stdout);
}
