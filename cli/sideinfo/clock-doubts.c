// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* Warnings about unknown or contradictory clocks of a trace. */
#include "cli/sideinfo/clock-options.h"

/* CPUs with a warning of their own. */
#define CPUS_TOLD 8

static void warn_base(const struct cli *cli, const struct vmpt_clocks *clocks)
{
	switch (vmpt_clocks_base(clocks)) {
	case VMPT_BASE_NONE:
		cli_warn(cli,
			 "%s: no TSC packets: each CPU's packets are in order, but the order "
			 "between CPUs is not known",
			 cli->file[0]);
		if (!cli->quiet)
			fprintf(stderr, "  vmpt record makes traces with times\n");
		break;
	case VMPT_BASE_GUEST:
		cli_warn(cli,
			 "%s: no TSC packet of the host: the time is that of the guest with VMCS "
			 "%llx",
			 cli->file[0], (unsigned long long)vmpt_clocks_base_vmcs(clocks));
		break;
	default:
		break;
	}
}

/* Rates are needed only if there are MTCs or cycles. */
static void warn_rates(const struct cli *cli, const struct vmpt_clocks *clocks)
{
	const struct vmpt_rates *r = vmpt_clocks_rates(clocks);
	bool ticks = false;
	size_t i;

	for (i = 0; i < cli->streams; i++) {
		const struct vmpt_clock_counts *n = vmpt_clocks_counts(clocks, i);

		ticks |= n->mtcs || n->cycs || n->tmas;
	}
	if (ticks && (!r->tsc_num || !r->has_mtc_freq))
		cli_warn(
			cli,
			"the rates of the clocks (CPUID leaf 15H, MTCFreq) are neither in the file "
			"nor found from the packets: times are by TSC packets alone; give "
			"--tsc-ratio and --mtc-freq");
}

static const char *times(u64 n, char buf[40])
{
	char number[32];

	if (n == 1)
		return "once";
	snprintf(buf, 40, "%s times", cli_number(n, number));
	return buf;
}

static void warn_stream(const struct cli *cli, const struct vmpt_stream *stream,
			const struct vmpt_clock_counts *n)
{
	char name[32], buf[40];

	if (n->contradictions)
		cli_warn(cli, "%s: TSC and MTC packets contradict each other %s: the TSC is used",
			 cli_stream_name(stream, name), times(n->contradictions, buf));
	if (n->backs)
		cli_warn(cli,
			 "%s: the time steps back %s, after lost bytes or where a TSC was "
			 "written: vmpt dump --time marks it",
			 cli_stream_name(stream, name), times(n->backs, buf));
}

static void warn_streams(const struct cli *cli, const struct vmpt_clocks *clocks)
{
	u64 unmapped = 0;
	size_t i, given = 0;
	char buf[32];

	for (i = 0; i < cli->streams; i++) {
		const struct vmpt_clock_counts *n = vmpt_clocks_counts(clocks, i);

		unmapped += n->unmapped;
		if ((n->contradictions || n->backs) && given++ < CPUS_TOLD)
			warn_stream(cli, cli->stream[i], n);
	}
	if (given > CPUS_TOLD)
		cli_warn(cli, "%zu more CPUs have contradictory clocks: see vmpt clocks",
			 given - CPUS_TOLD);
	if (unmapped && vmpt_clocks_base(clocks) != VMPT_BASE_NONE)
		cli_warn(cli,
			 "%s TSC packet%s of guests give%s no time: their offset is not known; "
			 "give --guest-tsc",
			 cli_number(unmapped, buf), unmapped == 1 ? "" : "s",
			 unmapped == 1 ? "s" : "");
}

void cli_clock_doubts(const struct cli *cli, const struct vmpt_clocks *clocks)
{
	if (cli_is_rtit(cli))
		return;
	warn_base(cli, clocks);
	warn_rates(cli, clocks);
	warn_streams(cli, clocks);
}
