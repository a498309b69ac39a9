// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* vmpt latency as text: percentiles, and of each function bars, the parts and the longest calls. */
#include "cli/latency/latency.h"

#define BAR_COLUMNS 40
#define CALLERS_MAX 6
#define INSIDE_MAX  6

const char *latency_part_name(const struct latency *d, const struct latency_part *part, char *buf,
			      size_t len)
{
	const struct spans_span exit = { .source = VMPT_REASON_EVD, .reason = (u16)part->key };
	char reason[40];

	switch (part->kind) {
	case LATENCY_RUN:
		snprintf(buf, len, "running");
		break;
	case LATENCY_EXIT:
		snprintf(buf, len, "VM exit: %s", spans_reason(&exit, reason));
		break;
	case LATENCY_HALTED:
		snprintf(buf, len, "halted");
		break;
	case LATENCY_VM:
		snprintf(buf, len, "waited: VM %s", d->source.vm[part->key].name);
		break;
	case LATENCY_TASK:
		snprintf(buf, len, "waited: host, %s", d->source.process[part->key].name);
		break;
	case LATENCY_GUEST:
		snprintf(buf, len, "in VM %s", d->source.vm[part->key].name);
		break;
	case LATENCY_SWITCHED:
		snprintf(buf, len, "switched out");
		break;
	default:
		snprintf(buf, len, "not traced");
	}
	return buf;
}

/* A length in ticks, or instructions. */
static const char *length(const struct latency *d, u64 ticks, char buf[CLI_LENGTH])
{
	return d->timed ? cli_when_length(&d->source.t.when, ticks, buf) : cli_number(ticks, buf);
}

static double percent(u64 part, u64 all)
{
	return all ? 100.0 * (double)part / (double)all : 0;
}

static void print_rows(struct cli *cli)
{
	static const unsigned int permille[] = { 0, 500, 900, 990, 1000 };
	const struct latency *d = cli->data;
	const struct cli_column column[] = {
		{ "VM", CLI_NAMES }, { "FUNCTION", CLI_LEFT },	{ "COUNT", true },
		{ "MIN", true },     { "P50", true },		{ "P90", true },
		{ "P99", true },     { "MAX", true },		{ "± MAX", CLI_SPARE },
		{ "TOTAL", true },   { "RECURSED", CLI_SPARE }, { "CUT", CLI_SPARE },
	};
	struct cli_table *table = cli_table_new(cli, column, VMPT_ARRAY_SIZE(column));
	char buf[CLI_LENGTH];
	size_t i, k;

	for (i = 0; i < d->rows; i++) {
		const struct latency_row *row = &d->row[i];

		cli_cell(table, CLI_PLAIN, "%s", d->source.vm[row->vm].name);
		cli_cell(table, CLI_PLAIN, "%s", d->source.function[row->function].text);
		cli_cell_number(table, true, row->count);
		for (k = 0; k < VMPT_ARRAY_SIZE(permille); k++)
			cli_cell(table, CLI_PLAIN, "%s",
				 row->count ? length(d, latency_at(d, row, permille[k]), buf)
					    : "–");
		cli_cell(table, CLI_DIM, "%s",
			 d->timed && row->count ? length(d, row->error, buf) : "–");
		cli_cell(table, CLI_PLAIN, "%s", length(d, row->sum, buf));
		cli_cell_number(table, true, row->recursed);
		cli_cell_number(table, true, row->incomplete);
	}
	cli_table_print(table, "");
}

static void print_bars(struct cli *cli, const struct latency_row *row)
{
	const struct latency *d = cli->data;
	u64 low, high, count, most = 0;
	char from[CLI_LENGTH], to[CLI_LENGTH], n[32];
	size_t i = 0;
	u64 k;

	while (latency_bar(d, row, &i, &low, &high, &count))
		most = count > most ? count : most;
	for (i = 0; latency_bar(d, row, &i, &low, &high, &count);) {
		const u64 bar = (count * BAR_COLUMNS + most - 1) / most;

		cli_print("  ");
		cli_print_padded(length(d, low, from), 10, true);
		cli_print(" – ");
		cli_print_padded(length(d, high, to), 10, true);
		cli_print("  %12s  ", cli_number(count, n));
		for (k = 0; k < bar; k++)
			cli_print("%s", cli_utf8() ? "█" : "#");
		printf("\n");
	}
}

static void print_parts(struct cli *cli, const struct latency_row *row)
{
	static const struct cli_column column[] = {
		{ "TIME SPENT", CLI_LEFT },	{ "CALLS", true }, { "TOTAL", true }, { "%", true },
		{ "SLOWEST 1 %: CALLS", true }, { "TOTAL", true }, { "%", true },
	};
	const struct latency *d = cli->data;
	struct cli_table *table = cli_table_new(cli, column, VMPT_ARRAY_SIZE(column));
	char buf[CLI_WHO + 32];
	size_t i;

	for (i = 0; i < row->parts; i++) {
		const struct latency_sum *sum = &row->part[i];

		cli_cell(table, CLI_PLAIN, "%s",
			 latency_part_name(d, &sum->part, buf, sizeof(buf)));
		cli_cell_number(table, true, sum->calls);
		cli_cell(table, CLI_PLAIN, "%s", length(d, sum->part.ticks, buf));
		cli_cell(table, CLI_PLAIN, "%.1f", percent(sum->part.ticks, row->sum));
		cli_cell_number(table, true, sum->slow_calls);
		cli_cell(table, CLI_PLAIN, "%s", length(d, sum->slow_ticks, buf));
		cli_cell(table, CLI_PLAIN, "%.1f", percent(sum->slow_ticks, row->slow_sum));
	}
	cli_table_print(table, "  ");
}

static const char *name_of(struct latency *d, u32 number)
{
	struct vmpt_call_node node;
	u32 function;

	vmpt_calls_node(d->source.calls, number, &node);
	function = calls_function(&d->source, &node);
	return function < d->source.functions ? d->source.function[function].text : "";
}

static void print_callers(struct latency *d, u32 number)
{
	struct vmpt_call_node node;
	unsigned int i;

	vmpt_calls_node(d->source.calls, number, &node);
	for (i = 0; node.parent; i++) {
		const u32 parent = node.parent;

		vmpt_calls_node(d->source.calls, parent, &node);
		if (node.kind == VMPT_CALL_ROOT)
			break;
		if (i == CALLERS_MAX) {
			cli_print(" < …");
			break;
		}
		cli_print("%s%s", i ? " < " : "    called by ", name_of(d, parent));
	}
	if (i)
		printf("\n");
}

static void print_inside(struct latency *d, const struct latency_long *l)
{
	const struct latency_inside *in;
	u32 parent = l->call.node;
	char buf[CLI_LENGTH];
	unsigned int i;

	for (i = 0; i < INSIDE_MAX && (in = latency_heaviest(d, l, parent)) != NULL; i++) {
		/* What takes a tenth of the call explains nothing. */
		if (in->ticks < l->call.ticks / 10)
			break;
		cli_print("%s%s %s", i ? " > " : "    most in ", name_of(d, in->node),
			  length(d, in->ticks, buf));
		parent = in->node;
	}
	if (i)
		printf("\n");
}

static void print_split(const struct latency *d, const struct latency_call *call)
{
	char buf[CLI_WHO + 32], time[CLI_LENGTH];
	u32 i;

	for (i = 0; i < call->parts; i++) {
		const struct latency_part *part = &d->part[call->part + i];

		cli_print("%s%s %s", i ? "; " : "    ",
			  latency_part_name(d, part, buf, sizeof(buf)),
			  length(d, part->ticks, time));
	}
	if (i)
		printf("\n");
}

static void print_long(struct cli *cli, const struct latency_long *l)
{
	struct latency *d = cli->data;
	char buf[CLI_WHEN], stream[32];

	cli_print("  ");
	cli_print_padded(length(d, l->call.ticks, buf), 10, true);
	if (d->timed)
		cli_print(" ±%s at %s", length(d, l->call.error, stream),
			  cli_when_text(&d->source.t.when, l->call.tsc, buf));
	cli_print(", %s, offset 0x%llx, %s\n", cli_stream_name(cli->stream[l->call.stream], stream),
		  (unsigned long long)l->call.offset, d->source.process[l->call.process].name);
	print_callers(d, l->call.node);
	print_inside(d, l);
	print_split(d, &l->call);
}

void latency_print(struct cli *cli)
{
	struct latency *d = cli->data;
	size_t i, k;

	if (!d->rows)
		return;
	print_rows(cli);
	for (i = 0; i < d->rows && !cli_output_failed(cli); i++) {
		const struct latency_row *row = &d->row[i];

		if (!row->count)
			continue;
		cli_print("\n%s%s in %s%s%s\n", cli_paint(cli, CLI_BOLD),
			  d->source.function[row->function].text, d->source.vm[row->vm].name,
			  d->timed ? "" : ", in instructions", cli_paint(cli, CLI_PLAIN));
		print_bars(cli, row);
		if (row->parts) {
			printf("\n");
			print_parts(cli, row);
		}
		if (row->longs)
			printf("\n");
		for (k = 0; k < row->longs; k++)
			print_long(cli, &row->longest[k]);
	}
}
