// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* vmpt dump: options and output of the packets. For Intel PT and RTIT: struct dump_ops. */
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "cli/sideinfo/sideinfo.h"
#include "cli/dump/dump.h"

/* ---- options ---- */

/* Words that mean several kinds. */
static u64 kind_group(const char *word)
{
	u64 kinds = 0;
	unsigned int i;

	for (i = 0; i < VMPT_PT_KINDS; i++) {
		unsigned int c = vmpt_pt_table[i].classes;
		const char *name = vmpt_pt_name(i);

		if ((!strcasecmp(word, "timing") && (c & VMPT_PT_TIMING)) ||
		    (!strcasecmp(word, "ip") && (c & VMPT_PT_HAS_IP)) ||
		    (!strcasecmp(word, "tnt") && !strncmp(name, "TNT", 3)) ||
		    (!strcasecmp(word, "mode") && !strncmp(name, "MODE", 4)) ||
		    !strcasecmp(word, name))
			kinds |= 1ULL << i;
	}
	return strcasecmp(word, "lost") ? kinds : DUMP_LOSS_BIT;
}

static u64 rtit_kind_group(const char *word)
{
	u64 kinds = 0;
	unsigned int i;

	for (i = 0; i < VMPT_RTIT_KINDS; i++) {
		unsigned int c = vmpt_rtit_table[i].classes;
		const char *name = vmpt_rtit_name(i);

		if ((!strcasecmp(word, "timing") && (c & VMPT_RTIT_TIMING)) ||
		    (!strcasecmp(word, "ip") && (c & VMPT_RTIT_HAS_LIP)) ||
		    (!strcasecmp(word, "fup") && !strncmp(name, "FUP", 3)) ||
		    !strcasecmp(word, name))
			kinds |= 1ULL << i;
	}
	return strcasecmp(word, "lost") ? kinds : DUMP_LOSS_BIT;
}

/* All names of kinds, Intel PT's first. */
static const char *kind_word(unsigned int i)
{
	if (i < VMPT_PT_KINDS)
		return vmpt_pt_name(i);
	i -= VMPT_PT_KINDS;
	return i < VMPT_RTIT_KINDS ? vmpt_rtit_name(i) : NULL;
}

static int take_kind(struct cli *cli, void *to, const char *word)
{
	u64 kinds = kind_group(word), rtit_kinds = rtit_kind_group(word), *by_isa = to;
	unsigned int i;

	by_isa[VMPT_ISA_PT] |= kinds;
	by_isa[VMPT_ISA_RTIT] |= rtit_kinds;
	if (kinds || rtit_kinds)
		return 0;
	cli_usage(cli, "--kinds: no packet is called '%s'", word);
	fprintf(stderr, "Kinds:");
	for (i = 0; i < VMPT_PT_KINDS; i++)
		fprintf(stderr, " %s", vmpt_pt_name(i));
	fprintf(stderr, "\nRTIT:");
	for (i = 0; i < VMPT_RTIT_KINDS; i++)
		fprintf(stderr, " %s", vmpt_rtit_name(i));
	fprintf(stderr, "\nGroups: ip mode tnt fup timing; lost\n");
	return -1;
}

/* ---- the walk ---- */

bool dump_too_early(const struct dump *d, u64 offset, u64 size)
{
	return offset < d->start && offset + size <= d->start;
}

bool dump_enough(struct cli *cli)
{
	const struct dump *d = cli->data;

	return (d->head && d->lines == d->head) || cli_output_failed(cli);
}

/* So that names do not shift the columns. */
static void widen_owner(struct cli *cli, u64 number)
{
	struct vmpt_owner owner = { .kind = VMPT_OWNER_VM, .vmcs = number };
	struct dump *d = cli->data;
	char buf[CLI_WHO];
	int columns = (int)cli_columns(cli_who(cli, &owner, buf));

	if (columns > d->style.owner_width)
		d->style.owner_width = columns;
}

void dump_start(struct cli *cli, size_t i, const struct dump_style *style)
{
	const struct cli_side_record *r = cli_side(cli)->record;
	struct dump *d = cli->data;
	char name[32];
	size_t k;
	u64 size;

	d->style = *style;
	d->style.bytes = !d->no_bytes;
	d->style.offset_width = 8;
	d->style.owner_width = 10;
	for (k = 0; r && k < r->vcpus; k++)
		widen_owner(cli, k + 1);
	for (size = cli->stream[i]->size; size >> 4 * d->style.offset_width;)
		d->style.offset_width++;
	if (!cli->json && cli->streams > 1)
		printf("%s%s%s%s\n", i ? "\n" : "", cli_paint(cli, CLI_BOLD),
		       cli_stream_name(cli->stream[i], name), cli_paint(cli, CLI_PLAIN));
	if (!cli->json)
		dump_header(cli, &d->style);
}

static int dump_all(struct cli *cli)
{
	const struct dump *d = cli->data;
	int ret = 0;
	size_t i;

	if (cli->json)
		cli_json_print(cli, cli_json_document(cli), stdout, true);
	/* On a terminal the lines themselves show the progress. */
	if (!cli->stdout_tty)
		cli_progress_start(cli, 1);
	for (i = 0; i < cli->streams && !ret && !dump_enough(cli); i++) {
		cli_progress_stream(cli, i);
		ret = d->ops->stream(cli, i);
	}
	cli_progress_end(cli);
	if (ret < 0)
		cli_error(cli, "%s: %s", cli->file[0], vmpt_strerror(ret));
	if (!ret && cli->json) {
		json_t *end = json_object();

		cli_json_end(cli, end);
		cli_json_print(cli, end, stdout, true);
	}
	return ret ? CLI_FAILED : CLI_OK;
}

/* Without --kinds all are wanted. 0, or an exit code. */
static int check_kinds(struct cli *cli)
{
	struct dump *d = cli->data;

	if (!d->kinds[VMPT_ISA_PT] && !d->kinds[VMPT_ISA_RTIT])
		memset(d->kinds, 0xff, sizeof(d->kinds));
	d->wanted = d->kinds[d->ops->isa];
	if (d->wanted)
		return CLI_OK;
	return cli_usage(cli, "--kinds: %s has no such packets", d->ops->name);
}

static int check_usage(struct cli *cli)
{
	const struct dump *d = cli->data;
	int code = cli_filter_check(cli, 0, NULL);

	/* Without filters nothing of Intel PT shows names. */
	if (!code && !cli_filter_any(cli))
		code = cli_side_rtit_only(cli);
	if (code)
		return code;
	if (d->end && d->end <= d->start)
		return cli_usage(cli, "--end must be after --start");
	if (d->no_pad && d->expand_pad)
		return cli_usage(cli, "--no-pad and --expand-pad exclude each other");
	code = d->ops->check(cli);
	return code ? code : check_kinds(cli);
}

static int run(struct cli *cli)
{
	struct dump *d = cli->data;
	int code;

	d->ops = cli_is_rtit(cli) ? &dump_rtit : &dump_pt;
	code = check_usage(cli);
	if (!code && d->ops->open)
		code = d->ops->open(cli);
	if (!code)
		code = dump_all(cli);
	if (!code)
		cli_filter_warn(cli);
	cli_when_close(&d->when);
	cli_clocks_close(&d->clocks);
	return code;
}

static const struct cli_option options[] = {
	{ "start", 0, CLI_NUMBER, "OFFSET", "start at this offset of the stream",
	  CLI_AT(struct dump, start) },
	{ "end", 0, CLI_NUMBER, "OFFSET", "stop at this offset", .min = 1,
	  CLI_AT(struct dump, end) },
	{ "head", 'n', CLI_NUMBER, "N", "stop after N lines", .min = 1, CLI_AT(struct dump, head) },
	{ "kinds", 0, CLI_LIST, "LIST",
	  "only these packets, by name, like psb,tip.pge, or by group: ip, mode, tnt, fup, timing; "
	  "lost for losses",
	  .words = "ip, mode, tnt, fup, timing, lost", .word = kind_word,
	  CLI_AT(struct dump, kinds), .take = take_kind },
	{ "time", 0, CLI_WORD, "CLOCK",
	  "the time of each packet; tsc, or no CLOCK: in ticks of the host's TSC, with its error bounds "
	  "(…: not known), and on its guest's clock; else as other commands print it; always shown with "
	  "RTIT",
	  .words = "tsc, start, perf, wall", .without = "tsc", CLI_AT(struct dump, clock),
	  CLI_GIVEN(struct dump, time) },
	{ "no-bytes", 0, CLI_FLAG, NULL, "leave the raw bytes out", CLI_AT(struct dump, no_bytes) },
	{ "no-pad", 0, CLI_FLAG, NULL, "leave PADs out", CLI_AT(struct dump, no_pad) },
	{ "expand-pad", 0, CLI_FLAG, NULL, "a line for each PAD; else one for a run of them",
	  CLI_AT(struct dump, expand_pad) },
	{ 0 },
};

static const struct cli_group group = { .option = options };

const struct cli_command cli_dump = {
	.name = "dump",
	.title = "print the packets, with full IPs and owners",
	.about =
		"Print packets: offset in the stream, owner, raw bytes, name and payload. Packets\n"
		"with an IP show the full IP and IPBytes. After an owner, ~ means assumed,\n"
		"? means uncertain. --json prints one JSON object a line, of\n"
		"the document, of each packet, and last the warnings and losses.\n"
		"--time: a < after a time means that it went back there; --json has the reason.\n"
		"RTIT packets also have the hardware TSC, as far as it is known, with a bound.",
	.examples = "  vmpt dump --time --guest-tsc 3b56ee000:-81923 trace.pt\n"
		    "  vmpt dump --head 40 trace.pt           the first lines\n"
		    "  vmpt dump --start 0x1000 --end 0x1100 trace.pt\n"
		    "  vmpt dump --owner 3b56ee000 --kinds ip,tnt trace.pt\n"
		    "  vmpt dump --cpu 0 --from 12.5ms --to 12.6ms --time=start perf.data\n"
		    "  vmpt dump --kinds pip,vmcs --no-bytes --cpu 2 perf.data\n"
		    "  vmpt dump --side-record vms.jsonl --owner web cpu0.rtit\n"
		    "  vmpt dump --json trace.pt | jq -r 'select(.packet == \"PIP\").cr3'\n",
	.group = { &group, &cli_filter_group, &cli_clock_group, &cli_input_group, &cli_side_group,
		   &cli_output_group },
	.data_size = sizeof(struct dump),
	.run = run,
};
