// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * vmpt timeline: what ran when, of all CPUs by time; totals; files for programs that draw them.
 */
#include <string.h>

#include "cli/timeline/flames.h"
#include "cli/timeline/internal.h"
#include "cli/timeline/options.h"

struct timeline_options {
	struct timeline_given given; /* the first: options.h */
	const char *chrome, *html;
	u64 head;
	bool summary, perf_time, flames;
	struct timeline_flames charts;
};

static const struct cli_option options[] = {
	{ "summary", 0, CLI_FLAG, NULL, "totals of VMs and vCPUs instead of the spans",
	  CLI_AT(struct timeline_options, summary) },
	{ "chrome", 0, CLI_OUTPUT, "FILE",
	  "write FILE for the Perfetto UI (ui.perfetto.dev) or Chrome's tracing page: trace events "
	  "as JSON; -: print",
	  CLI_AT(struct timeline_options, chrome) },
	{ "html", 0, CLI_OUTPUT, "FILE",
	  "write FILE, a page for a browser: zoomable lanes, exits, search by IP; -: print it",
	  CLI_AT(struct timeline_options, html) },
	{ "flames", 0, CLI_FLAG, NULL,
	  "with --html: flame charts of the longest exits, or of the filters' times, and flame graphs "
	  "of all VMs: the calls of host and guests",
	  CLI_AT(struct timeline_options, flames) },
	{ "flame-code", 0, CLI_FILE, "[VM:]SOURCE[@ADDR]",
	  "the code for them, as --code of vmpt insn; default: the images of a recording",
	  CLI_AT(struct timeline_options, charts.source.t.o.source), .take = code_take },
	{ "head", 'n', CLI_NUMBER, "N", "only the first N spans", .min = 1,
	  CLI_AT(struct timeline_options, head) },
	{ "perf-time", 0, CLI_FLAG, NULL, "the old name of --time=perf",
	  CLI_AT(struct timeline_options, perf_time) },
	{ 0 },
};

static const struct cli_group group = { .option = options };

static int check(struct cli *cli, struct timeline_options *own)
{
	if (own->flames && !own->html)
		return cli_usage(cli, "--flames is for --html");
	own->charts.whole = cli_filter(cli)->from && cli_filter(cli)->to;
	if (own->summary && own->head)
		return cli_usage(cli, "--head is for the spans, not for --summary");
	if (own->summary && own->perf_time)
		return cli_usage(cli, "--perf-time is for the spans, not for --summary");
	if (own->summary && cli_filter(cli)->cr3s)
		return cli_usage(cli, "--cr3: totals are of whole vCPUs, so not with --summary");
	return timeline_out_check(cli, own->chrome, own->html, own->summary || cli->json);
}

/* For the page. */
static bool symbol(void *opaque, const char *vm, u64 ip, char *buf, size_t len)
{
	return timeline_symbol(opaque, vm, ip, buf, len);
}

static int run(struct cli *cli)
{
	struct timeline_options *own = cli->data;
	struct timeline_table *table = NULL;
	struct timeline_json *json = NULL;
	struct timeline_chrome *chrome = NULL;
	struct timeline_page *page = NULL;
	struct timeline_sink sink[3];
	size_t sinks = 0;
	int ret = check(cli, own);

	if (!ret)
		ret = timeline_given_open(cli, &own->given);
	if (!ret && own->chrome) {
		ret = timeline_chrome_open(cli, own->chrome, &chrome, &sink[sinks]);
		sinks++;
	}
	if (!ret && own->html) {
		ret = timeline_page_open(cli, own->html, own->flames ? &own->charts : NULL, &page,
					 &sink[sinks]);
		sinks++;
		if (!ret && own->given.symbols.count)
			timeline_page_symbols(page, symbol, &own->given);
	}
	if (!ret && cli->json) {
		ret = timeline_json_open(cli, own->summary, own->head, &json, &sink[sinks]);
		sinks++;
	} else if (!ret && own->summary) {
		timeline_summary_sink(&sink[sinks++]);
	} else if (!ret && !own->chrome && !own->html) {
		ret = timeline_table_open(cli, own->head, &table, &sink[sinks]);
		sinks++;
	}
	own->given.wants.clock = own->perf_time ? CLI_WHEN_PERF : cli_when_clock(cli);
	if (!ret)
		ret = timeline_run(cli, &own->given.wants, sink, sinks);
	if (!ret && own->flames)
		ret = timeline_flames_read(cli, &own->charts, timeline_page_zero(page));
	if (!ret && page)
		ret = timeline_page_write(page);
	timeline_flames_close(&own->charts);
	timeline_table_close(table);
	timeline_json_close(json);
	timeline_chrome_close(chrome);
	timeline_page_close(page);
	timeline_given_close(&own->given);
	return ret;
}

static const char *const csv_spans[] = {
	"kind",	       "cpu",
	"tid",	       "start_*",
	"length_*",    "out_*",
	"unseen_*",    "tsc",
	"end_tsc",     "offset",
	"bytes",       "began",
	"ended",       "vmcs",
	"vm",	       "vcpu",
	"sure",	       "moved_from_cpu",
	"exit/reason", "exit/name",
	"exit/source", "exit/guessed",
	"exit/halted", "exit/ip",
	"exit/cr3",    "exit/qualification",
	"overflows",   "failed_entries",
	"back",	       NULL,
};

static const char *const csv_vcpus[] = {
	"owner",
	"vmcs",
	"vm",
	"vcpu",
	"running_*",
	"running_error_*",
	"exited_*",
	"exited_error_*",
	"exited_guessed",
	"host_*",
	"host_error_*",
	"host_guessed",
	"wait_*",
	"wait_error_*",
	"wait_guessed",
	"halted_*",
	"halted_error_*",
	"halted_guessed",
	"untraced_*",
	"untraced_error_*",
	"untraced_guessed",
	"unseen_*",
	"unseens",
	"entries",
	"exits",
	"guessed",
	"halts",
	"moves",
	"loss_count",
	"unsure",
	"overflows",
	"failed_entries",
	"spans",
	"bytes",
	NULL,
};

static const struct cli_csv csv[] = {
	{ "spans", NULL, csv_spans },
	{ "vms", "vcpus", csv_vcpus },
	{ 0 },
};

const struct cli_command cli_timeline = {
	.name = "timeline",
	.title = "show what ran when, on all CPUs, by time",
	.about = "Show the spans of all CPUs by time: which vCPU ran on which CPU from when, how\n"
		 "long, how exact that is, and why it stopped: by the processor itself (EVD), by\n"
		 "KVM's event in a perf.data, or by a guess, marked with '?'. A vCPU is one line,\n"
		 "on whatever CPU it runs.",
	.examples =
		"  vmpt timeline perf.data                        all spans\n"
		"  vmpt timeline --summary cpu0.pt cpu1.pt        totals of VMs and vCPUs\n"
		"  vmpt timeline --from 0.5 --to 0.6 perf.data    a tenth of a second\n"
		"  vmpt timeline --vm web trace                   one VM of a recording's folder\n"
		"  vmpt timeline --html page.html perf.data       to view in a browser\n"
		"  vmpt timeline --chrome trace.json perf.data    for ui.perfetto.dev\n",
	.group = { &group, &timeline_code_group, &cli_filter_group, &cli_when_group,
		   &cli_clock_group, &cli_input_group, &cli_side_group, &cli_mode_group,
		   &cli_output_group },
	.csv = csv,
	.data_size = sizeof(struct timeline_options),
	.run = run,
};
