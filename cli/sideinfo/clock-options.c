// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * --tsc-ratio, --mtc-freq, --nominal-ratio, --skz84 and --vm; and the warnings when a value given
 * by any source contradicts the trace.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cli/sideinfo/clock-options.h"

/* A whole number at *@s, decimal or 0x…; *@s moves past it. False if there is none. */
static bool number(const char **s, u64 *value)
{
	char *end;

	if (**s < '0' || **s > '9')
		return false;
	errno = 0;
	*value = strtoull(*s, &end, 0);
	*s = end;
	return !errno;
}

static int take_tsc_ratio(struct cli *cli, void *to, const char *arg)
{
	struct vmpt_rates *rates = to;
	const char *s = arg;
	u64 num, den = 1;
	bool good = number(&s, &num);

	if (good && *s == '/') {
		s++;
		good = number(&s, &den);
	}
	if (!good || *s) {
		cli_usage(cli, "--tsc-ratio: '%s' is not a ratio like 176/2 or 84", arg);
		return -1;
	}
	if (!num || !den || num >> 32 || den >> 32) {
		cli_usage(cli, "--tsc-ratio: both numbers are from 1 to 4294967295");
		return -1;
	}
	rates->tsc_num = (u32)num;
	rates->tsc_den = (u32)den;
	return 0;
}

/* "VMCS:offset[,multiplier]" */
static bool parse_vm(const char *arg, struct vmpt_given *given)
{
	const char *s;
	char *end;
	bool minus;

	if (!((*arg >= '0' && *arg <= '9') || (*arg >= 'a' && *arg <= 'f') ||
	      (*arg >= 'A' && *arg <= 'F')))
		return false;
	errno = 0;
	given->vmcs = strtoull(arg, &end, 16);
	if (errno || *end != ':')
		return false;
	s = end + 1;
	minus = *s == '-';
	s += minus || *s == '+';
	if (!number(&s, &given->map.offset))
		return false;
	if (minus)
		given->map.offset = -given->map.offset;
	given->map.multiplier = VMPT_TSC_UNSCALED;
	if (*s == ',') {
		s++;
		if (!number(&s, &given->map.multiplier) || !given->map.multiplier)
			return false;
	}
	return !*s;
}

static int take_vm(struct cli *cli, void *to, const char *arg)
{
	struct cli_clock *c = to;
	struct vmpt_given given = { .source = VMPT_MAP_USER };
	size_t i;

	if (!parse_vm(arg, &given)) {
		cli_usage(cli,
			  "--vm: '%s' is not VMCS:OFFSET[,MULTIPLIER]: the VMCS in hex, offset and "
			  "multiplier (2^48: none) decimal or with 0x",
			  arg);
		return -1;
	}
	for (i = 0; i < c->given_count; i++)
		if (c->given[i].vmcs == given.vmcs) {
			cli_usage(cli, "--vm: VMCS %llx is given twice",
				  (unsigned long long)given.vmcs);
			return -1;
		}
	if (c->given_count == CLI_CLOCK_VMS) {
		cli_usage(cli, "--vm: more than %d", CLI_CLOCK_VMS);
		return -1;
	}
	c->given[c->given_count++] = given;
	return 0;
}

static const struct cli_option options[] = {
	{ "tsc-ratio", 0, CLI_OTHER, "NUM/DEN",
	  "TSC ticks per tick of the crystal clock, CPUID.15H EBX and EAX; RTIT: N, TSC ticks per bus "
	  "clock (MSR CEH, bits 15:8); default: from the file, or measured",
	  CLI_AT(struct cli_clock, rates), .take = take_tsc_ratio },
	{ "mtc-freq", 0, CLI_NUMBER, "N",
	  "IA32_RTIT_CTL.MTCFreq; default: from the file, or measured", .max = 15,
	  CLI_AT(struct cli_clock, rates.mtc_freq),
	  CLI_GIVEN(struct cli_clock, rates.has_mtc_freq) },
	{ "nominal-ratio", 0, CLI_NUMBER, "N", "the maximum non-turbo ratio, MSR CEH bits 15:8",
	  .min = 1, .max = 255, CLI_AT(struct cli_clock, rates.nominal) },
	{ "skz84", 0, CLI_WORD, "WHEN",
	  "erratum SKZ84, TMAs of guests are corrupt; auto: determined from the trace", "auto",
	  "auto, no, yes", CLI_AT(struct cli_clock, rates.skz84) },
	{ "vm", 0, CLI_OTHER, "VMCS:OFFSET",
	  "the guest's TSC is the host's plus OFFSET; with ,MULTIPLIER the host's is first multiplied "
	  "by that and shifted right by 48; once for each VMCS",
	  .take = take_vm },
	{ 0 },
};

const struct cli_group cli_clock_group = {
	.title = "Options for times",
	.option = options,
	.common = true,
	.size = sizeof(struct cli_clock),
};

bool cli_clock_given(const struct cli *cli)
{
	const struct vmpt_rates *r = &cli_clock(cli)->rates;

	return r->tsc_num || r->has_mtc_freq || r->nominal || r->skz84 ||
	       cli_clock(cli)->given_count;
}

void cli_clock_settings(const struct cli *cli, struct vmpt_clocks_options *options)
{
	const struct vmpt_rates *given = &cli_clock(cli)->rates;
	struct vmpt_rates *r = &options->rates;

	memset(options, 0, sizeof(*options));
	options->decode = cli->options;
	vmpt_rates_from_info(r, vmpt_trace_info(cli->trace));
	if (given->tsc_num) {
		r->tsc_num = given->tsc_num;
		r->tsc_den = given->tsc_den;
	}
	if (given->has_mtc_freq) {
		r->mtc_freq = given->mtc_freq;
		r->has_mtc_freq = true;
	}
	if (given->nominal)
		r->nominal = given->nominal;
	/* The only ratio of RTIT. */
	if (cli_is_rtit(cli) && given->tsc_num)
		r->nominal = given->tsc_num;
	r->skz84 = given->skz84;
	options->given = cli_clock(cli)->given;
	options->given_count = cli_clock(cli)->given_count;
}

static void warn_rates(const struct cli *cli, const struct vmpt_clocks *clocks)
{
	const struct vmpt_rates_wrong *wrong = vmpt_clocks_rates_wrong(clocks);
	const struct vmpt_rates *found = vmpt_clocks_rates(clocks);
	const struct vmpt_trace_info *info = vmpt_trace_info(cli->trace);
	struct vmpt_rates file = { 0 };

	vmpt_rates_from_info(&file, info);
	if (wrong && wrong->tsc_ratio) {
		/* In order of precedence */
		const char *who = cli_clock(cli)->rates.tsc_num ? "--tsc-ratio"
				  : info->tsc_ctc_numerator && info->tsc_ctc_denominator
					  ? "the file's TSC ratio"
					  : "the recording's TSC ratio";

		cli_warn(cli, "%s %u/%u: the given value contradicts the trace: %u/%u is used", who,
			 wrong->given.tsc_num, wrong->given.tsc_den, found->tsc_num,
			 found->tsc_den);
	}
	if (wrong && wrong->mtc_freq)
		cli_warn(cli, "%s %u: the given value contradicts the trace: %u is used",
			 cli_clock(cli)->rates.has_mtc_freq ? "--mtc-freq"
			 : file.has_mtc_freq		    ? "the file's MTCFreq"
							    : "the recording's MTCFreq",
			 wrong->given.mtc_freq, found->mtc_freq);
}

const char *cli_clocks_source(unsigned int source)
{
	static const char *const name[] = {
		[VMPT_MAP_NONE] = "none", [VMPT_MAP_RECORD] = "record",	 [VMPT_MAP_KVM] = "kvm",
		[VMPT_MAP_USER] = "user", [VMPT_MAP_INFERRED] = "trace",
	};

	return source < VMPT_ARRAY_SIZE(name) ? name[source] : "?";
}

static void warn_map(const struct cli *cli, const struct vmpt_given_wrong *w)
{
	static const char *const who[] = {
		[VMPT_MAP_RECORD] = "the side record",
		[VMPT_MAP_KVM] = "KVM",
		[VMPT_MAP_USER] = "--vm",
	};
	char says[120], other[80], from[40] = "";

	snprintf(says, sizeof(says), "%s says TSC offset %lld, multiplier 0x%llx", who[w->source],
		 (long long)w->given.offset, (unsigned long long)w->given.multiplier);
	snprintf(other, sizeof(other), "%lld, 0x%llx", (long long)w->found.offset,
		 (unsigned long long)w->found.multiplier);
	if (w->at != VMPT_TIME_NONE)
		snprintf(from, sizeof(from), " from host TSC 0x%llx on", (unsigned long long)w->at);
	if (w->by == VMPT_MAP_INFERRED)
		cli_warn(cli, "VMCS %llx: %s; the trace has %s%s, which is used",
			 (unsigned long long)w->vmcs, says, other, from);
	else if (from[0])
		cli_warn(cli, "VMCS %llx: %s; the trace has another%s; %s says %s, which is used",
			 (unsigned long long)w->vmcs, says, from, who[w->by], other);
	else
		cli_warn(cli, "VMCS %llx: %s; %s says %s, which is used",
			 (unsigned long long)w->vmcs, says, who[w->by], other);
}

/* Given values that contradict the trace: the trace wins. */
static void warn_maps(const struct cli *cli, const struct vmpt_clocks *clocks)
{
	const struct vmpt_given_wrong *wrong;
	size_t i, n;

	wrong = vmpt_clocks_wrong(clocks, &n);
	for (i = 0; i < n && i < 20; i++)
		warn_map(cli, &wrong[i]);
	if (n > i)
		cli_warn(cli, "%zu more such contradictions", n - i);
}

static void warn_absent(const struct cli *cli, const struct vmpt_clocks *clocks)
{
	size_t i, k, n = vmpt_clocks_vmcs_count(clocks);

	for (i = 0; i < cli_clock(cli)->given_count; i++)
		for (k = 0; k < n; k++)
			if (vmpt_clocks_vmcs(clocks, k) == cli_clock(cli)->given[i].vmcs &&
			    !vmpt_clocks_vmcs_tscs(clocks, k))
				cli_warn(cli, "--vm: the trace has no TSC packet of VMCS %llx",
					 (unsigned long long)cli_clock(cli)->given[i].vmcs);
}

void cli_clock_warn(const struct cli *cli, const struct vmpt_clocks *clocks)
{
	warn_rates(cli, clocks);
	warn_maps(cli, clocks);
	warn_absent(cli, clocks);
}
