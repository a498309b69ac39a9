// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* vmpt perfetto: spans, calls and counters of host and guests for the Perfetto UI. */
#include <stdlib.h>

#include "cli/base/base.h"
#include "cli/perfetto/command.h"

static const struct cli_option options[] = {
	{ "output", 'o', CLI_OUTPUT, "FILE", "write FILE; -: print it; default: vmpt.pftrace",
	  CLI_AT(struct perfetto, path) },
	TRACED_OPTIONS(struct perfetto, source.t.o),
	{ "slices", 0, CLI_NUMBER, "N",
	  "at most N slices: the shortest are folded into their callers", "2000000", .min = 16,
	  .max = 100000000, CLI_AT(struct perfetto, slices) },
	{ "depth", 0, CLI_NUMBER, "N", "fold calls that are more than N deep", "128", .min = 1,
	  .max = 65536, CLI_AT(struct perfetto, depth) },
	{ "spans", 0, CLI_FLAG, NULL, "only who ran when and why it stopped: no calls",
	  CLI_AT(struct perfetto, spans_only) },
	{ 0 },
};

static const struct cli_group group = { .option = options };

static int follow_calls(struct cli *cli, struct perfetto *d)
{
	const struct vmpt_calls_options items = { .items = true };
	int code = calls_open(cli, &d->source, &items);

	if (!code && !d->source.t.images) {
		cli_warn(cli, "no code is known, so there are no calls: give memory images by "
			      "--code");
		return CLI_OK;
	}
	if (!code)
		code = perfetto_calls(cli, d);
	return code ? code : calls_end(&d->source, NULL);
}

static int write_file(struct cli *cli, struct perfetto *d, struct cli_file *file)
{
	const struct perfetto_facts facts = {
		.hz = d->hz, .start_ns = d->start_ns, .writer = "vmpt " VMPT_VERSION, .out = file->f
	};
	char folded[32];

	if (perfetto_log_finish(&d->log, d->last) || perfetto_encode(&d->log, &d->rates, &facts))
		return cli_no_memory(cli);
	if (!(d->hz > 0))
		cli_warn(cli, "the TSC's frequency is not known: a tick is shown as a ns");
	if (d->log.folded)
		cli_note(cli, "%s slices are folded into their callers: --slices and --depth",
			 cli_number(d->log.folded, folded));
	return cli_file_commit(cli, file);
}

static void close_all(struct perfetto *d)
{
	calls_spread_close(&d->spread);
	free(d->stream);
	free(d->vm);
	free(d->vcpu);
	free(d->task);
	free(d->node);
	free(d->instructions);
	perfetto_rates_close(&d->rates);
	perfetto_log_close(&d->log);
}

static int run(struct cli *cli)
{
	struct perfetto *d = cli->data;
	struct cli_file file = { 0 };
	int code;

	d->follows = !d->spans_only;
	d->stream = calloc(cli->streams, sizeof(*d->stream));
	if (!d->stream)
		return cli_no_memory(cli);
	perfetto_log_open(&d->log, d->slices, (u32)d->depth);
	code = cli_filter_check(cli, 0, NULL);
	if (!code)
		code = cli_file_create(cli, d->path ? d->path : "vmpt.pftrace", PERFETTO_MARKS,
				       &file);
	if (!code)
		code = perfetto_spans(cli, d);
	if (!code && d->follows)
		code = follow_calls(cli, d);
	if (!code)
		code = write_file(cli, d, &file);
	cli_file_drop(&file);
	if (d->follows)
		calls_close(&d->source);
	close_all(d);
	return code;
}

const struct cli_command cli_perfetto = {
	.name = "perfetto",
	.title = "write a trace for the Perfetto UI: spans, calls, counters",
	.about = "Write FILE for the Perfetto UI (ui.perfetto.dev), in its own format: when each\n"
		 "vCPU ran and why it stopped, the calls of each task of host and guests, which\n"
		 "host code handled an exit, and rates of exits and instructions. Calls need the\n"
		 "code, as for vmpt insn.",
	.examples = "  vmpt perfetto -o web.pftrace --vm=web trace         one VM of a recording\n"
		    "  vmpt perfetto --from 0.5 --to 0.6 perf.data         a tenth of a second\n"
		    "  vmpt perfetto --spans -o spans.pftrace perf.data    without calls\n",
	.group = { &group, &cli_filter_group, &cli_when_group, &cli_clock_group, &cli_input_group,
		   &cli_side_group, &cli_mode_group, NULL },
	.data_size = sizeof(struct perfetto),
	.run = run,
};
