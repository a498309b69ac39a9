// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* vmpt calls: who called whom, by time. */
#include <stdlib.h>
#include <string.h>

#include "cli/tree/tree.h"

static const struct cli_option options[] = {
	TRACED_OPTIONS(struct tree, source.t.o),
	{ "per", 0, CLI_WORD, "WHAT",
	  "lines of one CPU, with the switches of tasks, or of one task follow each other", "cpu",
	  "cpu, task", CLI_AT(struct tree, per) },
	{ "function", 0, CLI_STRING, "NAME",
	  "only calls of NAME, or MODULE:NAME, and what they called; a shell pattern",
	  CLI_AT(struct tree, function) },
	{ "depth", 0, CLI_NUMBER, "N", "only N levels of calls, from the first that is shown", NULL,
	  CLI_AT(struct tree, depth), .min = 1, .max = 1u << 20 },
	{ "min", 0, CLI_STRING, "DURATION",
	  "leave out calls that are shorter: \"10us\", \"1ms\"; ticks where the TSC's frequency is "
	  "not known; instructions where there are no times",
	  CLI_AT(struct tree, min) },
	{ "head", 0, CLI_NUMBER, "N", "only the first N lines", NULL, CLI_AT(struct tree, head),
	  .min = 1 },
	{ 0 },
};

static const struct cli_group group = { .option = options };

int tree_min(struct cli *cli)
{
	struct tree *d = cli->data;
	const struct cli_times *when = &d->source.t.when;
	u64 tsc = 0;
	char why[160];

	if (!d->min)
		return CLI_OK;
	if (!d->timed)
		return cli_parse_u64(cli, "--min", d->min, &d->min_ticks) ? CLI_USAGE : CLI_OK;
	/* The text of a time from the start. */
	if (strchr(d->min, ':') || cli_when_parse(when, d->min, &tsc, why))
		return cli_usage(cli, "--min=%s: no duration: give \"10us\" or \"1ms\"", d->min);
	d->min_ticks = tsc - when->zero;
	return CLI_OK;
}

static int show(struct cli *cli)
{
	struct tree *d = cli->data;
	json_t *doc;
	int code;

	if (cli->json) {
		doc = cli_json_document(cli);
		cli_json_hertz(cli, doc, d->source.t.when.hz);
		cli_json_string(cli, doc, "per", d->per == TREE_PER_CPU ? "cpu" : "task");
		cli_json_list_open(cli, doc, "calls", stdout);
	}
	code = tree_walk(cli);
	if (!code && !(d->head && d->printed >= d->head))
		code = calls_end(&d->source, NULL);
	if (d->timed)
		cli_when_tell_ticks(cli, &d->source.t.when);
	if (cli->json && !code)
		cli_json_list_close(cli, stdout);
	return code;
}

static int run(struct cli *cli)
{
	static const struct vmpt_calls_options more = { .items = true };
	struct tree *d = cli->data;
	int code = calls_open(cli, &d->source, &more);

	d->timed = !code && d->source.t.timed;
	if (!code)
		code = tree_min(cli);
	if (!code && d->timed)
		code = spans_open(cli, d->source.t.clocks.clocks, &d->spans);
	if (!code)
		code = show(cli);
	tree_close(d);
	return code;
}

static const char *const csv_calls[] = {
	"what",	  "cpu",      "tid",	      "offset",	 "host_tsc", "task",   "depth",
	"module", "function", "kind",	      "assumed", "count",    "time_*", "time_error_*",
	"min_*",  "max_*",    "instructions", "exit",	 "owner",    "vmcs",   "vm",
	"vcpu",	  "cr3",      "tgid",	      "comm",	 NULL,
};

static const struct cli_csv csv[] = {
	{ "calls", NULL, csv_calls },
	{ 0 },
};

const struct cli_command cli_calls = {
	.name = "calls",
	.title = "show who called whom, by time, for how long",
	.about =
		"Show calls and returns as they came, indented, with how long each took, in the\n"
		"form of ftrace's function_graph: of the host and of each VM, its kernel and its\n"
		"processes. Calls that repeat with all that they called are one line. A call that\n"
		"began before the trace, or did not end by a return, is marked. Without times in\n"
		"the trace the lengths are instructions.",
	.examples =
		"  vmpt calls --vm=web --from 1s --to 1.001s trace      a millisecond of one VM\n"
		"  vmpt calls --per=task --function='vfs_*' trace       the calls of some functions\n"
		"  vmpt calls --cpu=0 --depth=3 --min=10us trace        long calls only\n",
	.group = { &group, &cli_filter_group, &cli_when_group, &cli_clock_group, &cli_input_group,
		   &cli_side_group, &cli_output_group },
	.csv = csv,
	.data_size = sizeof(struct tree),
	.run = run,
};
