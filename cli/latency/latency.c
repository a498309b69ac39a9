// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* vmpt latency: how long calls of a function took, and why. */
#include <stdlib.h>

#include "cli/latency/latency.h"

static const struct cli_option options[] = {
	TRACED_OPTIONS(struct latency, source.t.o),
	{ "top", 0, CLI_NUMBER, "N", "show the N longest calls of each function", "3",
	  CLI_AT(struct latency, top), .max = 1000 },
	{ 0 },
};

static const struct cli_group group = { .option = options };

/* The first argument is the functions, the others are the trace. */
static int open_trace(struct cli *cli)
{
	struct latency *d = cli->data;

	if (cli->files < 2)
		return cli_usage(cli, "give a function, or several with commas, and the files of "
				      "a trace");
	d->functions = cli->file[0];
	cli->file++;
	cli->files--;
	return cli_open(cli);
}

static int show(struct cli *cli)
{
	struct latency *d = cli->data;
	char name[CLI_WHO], n[32];
	u64 left_out = 0;
	size_t i;
	int code = latency_follow(cli);

	if (!code)
		code = latency_sum(cli);
	if (code)
		return code;
	code = calls_end(&d->source, NULL);
	if (d->timed)
		cli_when_tell_ticks(cli, &d->source.t.when);
	for (i = 0; i < d->rows; i++)
		left_out += d->row[i].left_out;
	if (left_out)
		cli_warn(cli, "%s calls more than %u: they are counted, and in nothing else",
			 cli_number(left_out, n), LATENCY_CALLS_MAX);
	if (!d->rows) {
		cli_safe_name(d->functions, name);
		cli_warn(cli, "no call of %s is in the trace, or of what the filters want of it",
			 name);
	}
	if (cli->json)
		latency_json(cli);
	else
		latency_print(cli);
	return code;
}

static int run(struct cli *cli)
{
	static const struct vmpt_calls_options more = { .items = true };
	struct latency *d = cli->data;
	int code = open_trace(cli);

	if (!code)
		code = calls_open(cli, &d->source, &more);
	d->timed = !code && d->source.t.timed;
	if (!code && d->timed)
		code = spans_open(cli, d->source.t.clocks.clocks, &d->spans);
	if (!code)
		code = show(cli);
	latency_close(d);
	return code;
}

static const char *const csv_functions[] = {
	"owner", "vmcs",  "vm",	   "module", "function", "count", "recursed", "incomplete",
	"min_*", "p50_*", "p90_*", "p99_*",  "max_*",	 "sum_*", "error_*",  NULL,
};

static const struct cli_csv csv[] = {
	{ "functions", NULL, csv_functions },
	{ 0 },
};

const struct cli_command cli_latency = {
	.name = "latency",
	.title = "show how long calls of a function took, and why",
	.args = "FUNCTION[,FUNCTION]... FILE[@CPU]...",
	.lacking = "give a function and the files of a trace",
	.about =
		"Show how long the calls of a function took: percentiles, a histogram, what the\n"
		"longest called, and what the time was spent on: the guest ran, the VM had exited\n"
		"and the host handled that (by the exit's reason), another VM or another task of\n"
		"the host had the CPU, or the guest ran other tasks. FUNCTION is NAME, MODULE:NAME,\n"
		"a shell pattern of these, or an address 0xADDR. A call from within another one of\n"
		"the same function is part of that. All times are of the host's clock.",
	.examples =
		"  vmpt latency vfs_read --vm=web trace             a guest's reads, and their host\n"
		"  vmpt latency 'handle_*' --owner=host trace       handlers of exits\n"
		"  vmpt latency libc.so.6:malloc --top=10 trace     the ten longest\n",
	.group = { &group, &cli_filter_group, &cli_when_group, &cli_clock_group, &cli_input_group,
		   &cli_side_group, &cli_output_group },
	.csv = csv,
	.data_size = sizeof(struct latency),
	.run = run,
};
