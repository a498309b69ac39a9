// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* vmpt insn: which instructions were executed, by the packets and images of the code. */
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>

#include "cli/insn/insn.h"

static const struct cli_option options[] = {
	TRACED_OPTIONS(struct insn, t.o),
	CODE_LINES_OPTION(struct insn, t.o.lines),
	CODE_DEBUGINFOD_OPTION(struct insn, t.names.ask),
	CODE_MANGLED_OPTION(struct insn, t.names.mangled),
	{ "count", 0, CLI_FLAG, NULL, "count per VM and address space, and do not list",
	  CLI_AT(struct insn, count) },
	{ "hash", 0, CLI_FLAG, NULL,
	  "count, and add the ordered hash of all instructions, to compare decoders",
	  CLI_AT(struct insn, hash) },
	{ "branches", 0, CLI_FLAG, NULL,
	  "list only branches, with the address at which the flow went on, and whether conditional "
	  "ones were taken",
	  CLI_AT(struct insn, branches) },
	{ "calls", 0, CLI_FLAG, NULL, "the same of near calls and returns only",
	  CLI_AT(struct insn, calls) },
	{ "around", 0, CLI_STRING, "TIME|OFFSET",
	  "list the 32 rows before this time (as for --from), or this byte of the stream (0x...), "
	  "and the 32 from there on",
	  NULL, CLI_AT(struct insn, around) },
	{ "head", 0, CLI_NUMBER, "N", "list only the first N instructions and gaps", NULL,
	  CLI_AT(struct insn, head), .min = 1 },
	{ 0 },
};

static const struct cli_group group = { .option = options };

/* ---- streams ---- */

/* Without filters of times the decoder itself counts. */
static int count_stream(struct cli *cli, size_t i, struct vmpt_flow *flow)
{
	struct vmpt_flow_batch batch;
	int ret;

	while ((ret = vmpt_flow_next(flow, &batch)) > 0)
		if (batch.kind == VMPT_FLOW_GAP)
			traced_note_gap(&((struct insn *)cli->data)->t, flow, &batch, i);
	return ret < 0 ? ret : insn_count(cli, flow, i);
}

static int run_stream(struct cli *cli, size_t i)
{
	struct insn *d = cli->data;
	struct insn_stream *s = &d->stream[i];
	const struct cli_filter *f = cli_filter(cli);
	struct vmpt_options trace = cli_stream_options(cli, i);
	const struct vmpt_flow_options options = {
		.trace = &trace,
		.hash = d->hash,
		.blocks = d->list || f->from || f->to,
		/* In JSON each instruction has its packet's offset. */
		.by_packet = d->list && (cli->json || d->around_offset),
		.times = d->list || f->from || f->to,
		.events = insn_only_branches(d),
		.switches = insn_only_branches(d),
	};
	struct vmpt_flow *flow;
	char name[32];
	int ret;

	/* Little is wanted: nothing is decoded ahead. */
	if (d->head)
		trace.threads = 1;
	ret = vmpt_flow_open(&flow, cli->stream[i], d->t.code, &options);
	if (ret)
		return ret;
	if (d->list && !cli->json && cli->streams > 1)
		printf("%s%s:\n", i ? "\n" : "", cli_stream_name(cli->stream[i], name));
	if (options.blocks)
		ret = insn_walk(cli, i, flow, d->list);
	else
		ret = count_stream(cli, i, flow);
	traced_note(&d->t, flow);
	vmpt_flow_close(flow);
	if (!ret && s->counts.gaps[VMPT_FLOW_LOSS])
		ret = traced_losses(cli, i);
	d->total.hash = insn_hash_append(d->total.hash, s->hash, s->counts.instructions);
	traced_add_counts(&d->total.counts, &s->counts);
	return ret;
}

/* The last line. */
static void end_list(struct cli *cli)
{
	json_t *end = json_object();

	cli_json_end(cli, end);
	cli_json_print(cli, end, stdout, true);
}

static int follow(struct cli *cli)
{
	struct insn *d = cli->data;
	size_t i;
	int ret = 0;

	d->stream = calloc(cli->streams, sizeof(*d->stream));
	if (!d->stream)
		return cli_no_memory(cli);
	if (d->list && cli->json)
		cli_json_print(cli, cli_json_document(cli), stdout, true);
	/* On a terminal the list itself shows the progress. */
	if (!d->list || !cli->stdout_tty)
		cli_progress_start(cli, 1);
	for (i = 0; i < cli->streams && !ret && (!d->head || d->listed < d->head); i++) {
		cli_progress_stream(cli, i);
		ret = run_stream(cli, i);
	}
	cli_progress_end(cli);
	if (ret) {
		cli_error(cli, "%s: %s", cli->file[0], vmpt_strerror(ret));
		return CLI_FAILED;
	}
	/* A part of the trace does not say whether images fit. */
	if (!d->t.images || (!d->around && (!d->head || d->listed < d->head)))
		traced_warn(cli, &d->t, &d->total.counts);
	if (d->list && cli->json)
		end_list(cli);
	else if (cli->json)
		insn_json(cli);
	else if (!d->list)
		insn_print(cli);
	cli_filter_warn(cli);
	return CLI_OK;
}

static int check(struct cli *cli)
{
	const struct insn *d = cli->data;

	if (d->hash && cli_filter_any(cli))
		return cli_usage(cli, "--hash is of all instructions: filter by --cpu only");
	if (!d->list && (d->head || d->around || insn_only_branches(d)))
		return cli_usage(cli, "--%s is for the list: not with --count, --hash or --csv",
				 d->head     ? "head"
				 : d->around ? "around"
				 : d->calls  ? "calls"
					     : "branches");
	if (d->branches && d->calls)
		return cli_usage(cli, "--branches has the calls of --calls: give one of them");
	return CLI_OK;
}

/* The place of --around. */
static int take_around(struct cli *cli)
{
	struct insn *d = cli->data;
	char why[160], *end;

	if (!d->around)
		return CLI_OK;
	if (!strncmp(d->around, "0x", 2) && isxdigit((unsigned char)d->around[2])) {
		errno = 0;
		d->place = strtoull(d->around, &end, 16);
		d->around_offset = true;
		return !errno && !*end ? CLI_OK
				       : cli_usage(cli, "--around: '%s' is no offset", d->around);
	}
	if (vmpt_clocks_base(d->t.clocks.clocks) == VMPT_BASE_NONE)
		return cli_usage(cli, "--around: %s has no times", cli->file[0]);
	if (!cli_when_parse(&d->t.when, d->around, &d->place, why))
		return CLI_OK;
	return cli_usage(cli, "--around: '%s': %s", d->around, why);
}

static int run(struct cli *cli)
{
	struct insn *d = cli->data;
	int ret;

	d->list = !d->count && !d->hash && !cli->csv;
	ret = check(cli);
	if (ret)
		return ret;
	d->t.little = d->head;
	ret = traced_open(cli, &d->t);
	if (!ret)
		ret = take_around(cli);
	if (!ret && d->list)
		ret = traced_names_open(cli, &d->t);
	if (!ret)
		ret = follow(cli);
	traced_close(&d->t);
	vmpt_hash_free(&d->row_of);
	free(d->row);
	free(d->stream);
	return ret;
}

static const char *const csv_spaces[] = {
	"owner",
	"vmcs",
	"vm",
	"vcpu",
	"cr3",
	"bits",
	"instructions",
	"branches",
	"calls",
	"gaps/no_code",
	"gaps/bad_code",
	"gaps/impossible",
	"gaps/endless",
	"gaps/overflow",
	"gaps/loss",
	"gaps/no_tnt",
	NULL,
};

static const struct cli_csv csv[] = {
	{ "spaces", NULL, csv_spaces },
	{ 0 },
};

const struct cli_command cli_insn = {
	.name = "insn",
	.title = "show what was executed: list instructions, or count them",
	.about =
		"Follow the trace through images of the code: list each instruction that was\n"
		"executed, with its owner and time, or count them per VM and address space. Where\n"
		"the code is not known, or does not fit, there is a gap with its reason; the flow\n"
		"goes on at the next packet with an address. --json prints an object a line;\n"
		"with --count it is one document.",
	.examples =
		"  vmpt insn --code=web:ram.img --head=20 perf.data     the first instructions\n"
		"  vmpt insn --code=guest.addr --count guest.pt         from a set of pages\n"
		"  vmpt insn --code=web:web.core --code=host:/proc/kcore --count perf.data\n"
		"  vmpt insn --code=vmlinux@0xffffffff9a000000 --from 1s --to 1.001s trace\n",
	.group = { &group, &cli_filter_group, &cli_when_group, &cli_clock_group, &cli_input_group,
		   &cli_side_group, &cli_output_group },
	.csv = csv,
	.data_size = sizeof(struct insn),
	.run = run,
};
