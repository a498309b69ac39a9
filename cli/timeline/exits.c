// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * vmpt exits: for each VM and reason how often it exits, how long the host takes, and from
 * where in the guest.
 */
#include <stdlib.h>
#include <string.h>

#include "cli/timeline/exits.h"
#include "cli/timeline/options.h"

struct exits_options {
	struct timeline_given given; /* the first: options.h */
	bool top_given;
	struct exits exits;
};

/* ---- options ---- */

static const struct cli_option options[] = {
	{ "by", 0, CLI_WORD, "KEY",
	  "a row for each; cpu: of the exit; port: of I/O instructions; gpa: of EPT violations",
	  "reason", .words = "reason, ip, vcpu, cpu, port, msr, gpa, cr3",
	  CLI_AT(struct exits_options, exits.by) },
	{ "sort", 0, CLI_WORD, "KEY",
	  "rows of all VMs in one order, the largest first; of key the smallest; default: VM by VM, "
	  "each by total, halts last",
	  .words = "total, count, min, mean, p50, p95, p99, max, host, wait, halted, untraced, key",
	  CLI_GIVEN(struct exits_options, exits.sorted), CLI_AT(struct exits_options, exits.sort) },
	{ "part", 0, CLI_WORD, "PART",
	  "MIN to MAX, and the order, of a part of the time out of the guest; all: the whole",
	  "all", .words = "host, wait, halted, untraced, all",
	  CLI_AT(struct exits_options, exits.time) },
	{ "top", 0, CLI_NUMBER, "N",
	  "show the N IPs with the most exits, for each row [3]; with --by=ip: the first N rows of "
	  "each VM [20, JSON: all]",
	  .max = EXITS_IPS_MAX, CLI_GIVEN(struct exits_options, top_given),
	  CLI_AT(struct exits_options, exits.top) },
	{ 0 },
};

static const struct cli_group group = { .option = options };

/* ---- words ---- */

/* "do_idle+0x1f", or nothing. */
static const char *symbol(void *opaque, const struct timeline *t, const struct exits_row *row,
			  u64 ip, char *buf, size_t len)
{
	const struct exits_options *own = opaque;

	return timeline_symbol(&own->given, exits_row_vm(t, row), ip, buf, len) ? buf : "";
}

/* ---- the tables ---- */

#define KEY_COLUMNS 18
#define IPS_SHOWN   3
#define ROWS_SHOWN  20 /* by IP */

static void cell_length(struct cli_table *table, const struct timeline *t,
			const struct exits_row *row, u64 ticks)
{
	char buf[TIMELINE_TIME];

	if (row->time[EXITS_OUT].each.count)
		cli_cell(table, CLI_PLAIN, "%s", timeline_short(t, ticks, buf));
	else
		cli_cell(table, CLI_DIM, TIMELINE_UNTOLD);
}

/* "12.3 ms? ±1.2 us" */
static void cell_part(struct cli_table *table, const struct timeline *t,
		      const struct exits_row *row, unsigned int p)
{
	const struct timeline_part_time *sum = &row->time[p].sum;
	char buf[TIMELINE_TIME], error[TIMELINE_TIME];

	if (!row->time[EXITS_OUT].each.count)
		cli_cell(table, CLI_DIM, TIMELINE_UNTOLD);
	else if (!sum->ticks && !sum->open && !timeline_part_error(sum))
		cli_cell(table, CLI_DIM, "0");
	else
		cli_cell(table, CLI_PLAIN, "%s%s ±%s", timeline_short(t, sum->ticks, buf),
			 sum->guessed ? "?" : "",
			 sum->open ? "?" : timeline_short(t, timeline_part_error(sum), error));
}

/* The columns that name a row. */
static void print_names(struct cli_table *table, const struct exits *x, const struct timeline *t,
			size_t i)
{
	const struct exits_row *row = &x->row[i];
	bool first = !i || x->sorted || row->vm != x->row[i - 1].vm || i == x->vm_rows;
	char why[CLI_WHO + 96];

	cli_cell(table, CLI_GREEN, "%s", first ? exits_row_vm(t, row) : "");
	cli_cell(table, row->key.halted ? CLI_DIM : CLI_PLAIN, "%s",
		 exits_row_name(x, t, row, why, sizeof(why),
				cli_room(t->cli) ? KEY_COLUMNS : TIMELINE_WHOLE));
	if (x->by != EXITS_BY_IP)
		return;
	if (row->kind == EXITS_OTHERS || row->kind == EXITS_TOTAL || !row->key.known)
		cli_cell(table, CLI_PLAIN, "%s", "");
	else
		cli_cell(table, CLI_PLAIN, "%s",
			 x->symbol(x->opaque, t, row, row->key.value, why, sizeof(why)));
}

/* A table with the columns of print_names(), then @column. */
static struct cli_table *new_table(const struct exits *x, const struct timeline *t,
				   const struct cli_column *column, size_t columns)
{
	struct cli_column all[16] = {
		{ "VM", CLI_NAMES },
		{ exits_by_title(x->by), x->by == EXITS_BY_VCPU ? CLI_NAMES : CLI_LEFT },
		{ "SYMBOL", CLI_NAMES },
	};
	size_t names = x->by == EXITS_BY_IP ? 3 : 2;

	memcpy(all + names, column, columns * sizeof(*column));
	return cli_table_new(t->cli, all, names + columns);
}

/* Of one VM the rows of all would be the same again. */
static bool is_shown(const struct exits *x, size_t i)
{
	size_t k;

	if (x->row[i].hidden)
		return false;
	if (i < x->vm_rows || i + 1 == x->rows)
		return true;
	for (k = 1; k < x->vm_rows; k++)
		if (x->row[k].vm != x->row[0].vm)
			return true;
	return false;
}

/* "12.3", of the exits of the same VM. */
static void cell_percent(struct cli_table *table, const struct exits *x,
			 const struct exits_row *row)
{
	u64 all = exits_of(x, row);

	cli_cell(table, CLI_PLAIN, "%.1f", all ? 100.0 * (double)row->exits / (double)all : 0.0);
}

static void print_rows(const struct exits *x, const struct timeline *t)
{
	const struct cli_column column[] = {
		{ "COUNT", true },    { "%", true },	    { "MIN", CLI_SPARE }, { "MEAN", true },
		{ "P50", CLI_SPARE }, { "P95", CLI_SPARE }, { "P99", true },	  { "MAX", true },
	};
	struct cli_table *table = new_table(x, t, column, VMPT_ARRAY_SIZE(column));
	size_t i;

	for (i = 0; i < x->rows; i++) {
		const struct exits_row *row = &x->row[i];
		const struct histogram *h = &row->time[x->time].each;

		if (!is_shown(x, i))
			continue;
		print_names(table, x, t, i);
		cli_cell_number(table, true, row->exits);
		cell_percent(table, x, row);
		cell_length(table, t, row, h->min);
		cell_length(table, t, row, histogram_mean(h));
		cell_length(table, t, row, histogram_at(h, 500));
		cell_length(table, t, row, histogram_at(h, 950));
		cell_length(table, t, row, histogram_at(h, 990));
		cell_length(table, t, row, h->max);
	}
	cli_table_print(table, "");
}

/* Where the time went. */
static void print_parts(const struct exits *x, const struct timeline *t)
{
	const struct exits_row *all = &x->row[x->rows - 1];
	const struct cli_column column[] = {
		{ "TOTAL", true },  { "HOST", true },	  { "WAIT", true },
		{ "HALTED", true }, { "UNTRACED", true },
	};
	bool untraced = all->time[TIMELINE_UNTRACED].each.sum;
	struct cli_table *table = new_table(x, t, column, VMPT_ARRAY_SIZE(column) - !untraced);
	size_t i;

	for (i = 0; i < x->rows; i++) {
		const struct exits_row *row = &x->row[i];

		if (!is_shown(x, i))
			continue;
		print_names(table, x, t, i);
		cell_length(table, t, row, row->time[EXITS_OUT].each.sum);
		cell_part(table, t, row, TIMELINE_HOST);
		cell_part(table, t, row, TIMELINE_WAIT);
		cell_part(table, t, row, TIMELINE_HALTED);
		if (untraced)
			cell_part(table, t, row, TIMELINE_UNTRACED);
	}
	cli_table_print(table, "");
}

/* The longest exit of each row, and where it is. */
static void print_longest(const struct exits *x, const struct timeline *t)
{
	char title[CLI_WHEN], buf[CLI_WHEN];
	const struct cli_column column[] = {
		{ "LONGEST", true },   { cli_when_title(&t->times, title), true },
		{ "CPU", true },       { "OFFSET", true },
		{ "VCPU", CLI_NAMES },
	};
	struct cli_table *table = new_table(x, t, column, VMPT_ARRAY_SIZE(column));
	size_t i, k;

	for (i = 0; i < x->rows; i++) {
		const struct timeline_longest *longest = &x->row[i].time[x->time].longest;

		if (!is_shown(x, i))
			continue;
		print_names(table, x, t, i);
		if (!longest->given) {
			for (k = 0; k < VMPT_ARRAY_SIZE(column); k++)
				cli_cell(table, CLI_DIM, TIMELINE_UNTOLD);
			continue;
		}
		cli_cell(table, CLI_PLAIN, "%s", timeline_short(t, longest->ticks, buf));
		cli_cell(table, CLI_PLAIN, "%s", timeline_longest_at(t, longest, buf));
		cli_cell(table, CLI_PLAIN, "%s",
			 cli_stream_cpu(t->cli->stream[longest->stream], buf));
		cli_cell(table, CLI_PLAIN, "0x%llx", (unsigned long long)longest->offset);
		cli_cell(table, CLI_GREEN, "%s", t->vcpu[longest->vcpu].name);
	}
	cli_table_print(table, "");
}

/* Explain ± and ?. The error of a percentile is at most that of the worst exit. */
static void print_errors(const struct exits *x, const struct timeline *t)
{
	const struct exits_row *all = &x->row[x->rows - 1];
	const struct exits_time *out = &all->time[EXITS_OUT];
	bool open = false, guessed = false;
	char buf[TIMELINE_TIME];
	unsigned int p;

	if (all->unsure)
		printf("%s of the exits: return not seen, so without a time\n",
		       cli_number(all->unsure, buf));

	if (x->no_exits)
		printf("%s run%s ended without an exit: vmpt timeline --summary has the time after "
		       "%s\n",
		       cli_number(x->no_exits, buf), x->no_exits == 1 ? "" : "s",
		       x->no_exits == 1 ? "it" : "them");
	for (p = 0; p < EXITS_TIMES; p++) {
		open |= all->time[p].sum.open;
		guessed |= all->time[p].sum.guessed;
	}
	if (!out->each.count)
		return;
	cli_print("±: worst-case error%s%s\n", open ? "; ±?: unbounded" : "",
		  guessed ? "; ?: by guessed or unknown reasons, ± covers them" : "");
	if (x->time == EXITS_OUT && (!out->sum.open || out->one_error))
		cli_print("each of MIN to MAX can be off by %s%s\n",
			  timeline_short(t, out->one_error, buf),
			  out->sum.open ? ", if it has a bound" : "");
}

static void print_ips(const struct exits *x, const struct timeline *t)
{
	const struct cli_column column[] = {
		{ "VM", CLI_NAMES },
		{ exits_by_title(x->by), x->by == EXITS_BY_VCPU ? CLI_NAMES : CLI_LEFT },
		{ "COUNT", true },
		{ "IP", true },
		{ "SYMBOL", CLI_NAMES },
	};
	struct cli_table *table = cli_table_new(t->cli, column, VMPT_ARRAY_SIZE(column));
	char name[CLI_WHO + 32];
	size_t i, k, n;

	for (i = 0; i < x->vm_rows; i++) {
		const struct exits_row *row = &x->row[i];
		const struct exits_ip *ip = exits_ips(x, i, &n);

		for (k = 0; k < n && k < x->top; k++) {
			if (k)
				cli_cell(table, CLI_PLAIN, "%s", "");
			else
				print_names(table, x, t, i);
			if (k)
				cli_cell(table, CLI_PLAIN, "%s", "");
			cli_cell_number(table, true, ip[k].count);
			cli_cell(table, CLI_PLAIN, "%llx", (unsigned long long)ip[k].ip);
			cli_cell(table, CLI_PLAIN, "%s",
				 x->symbol(x->opaque, t, row, ip[k].ip, name, sizeof(name)));
		}
	}
	cli_table_print(table, "");
}

static void print_tables(const struct exits_options *own, const struct timeline *t)
{
	const struct exits *x = &own->exits;
	char buf[32];

	print_rows(x, t);
	printf("\n");
	print_parts(x, t);
	print_errors(x, t);
	if (x->rows_hidden)
		printf("%s rows of VMs are left out: --top=N shows more\n",
		       cli_number(x->rows_hidden, buf));
	if (x->left_out)
		printf("%s other exits are not counted\n", cli_number(x->left_out, buf));
	if (x->row[x->rows - 1].time[x->time].longest.given) {
		printf("\n");
		print_longest(x, t);
	}
	if (x->top && x->ips) {
		printf("\n");
		print_ips(x, t);
	}
}

/* ---- the command ---- */

static int take_span(void *opaque, const struct timeline *t, const struct timeline_span *s)
{
	struct exits_options *own = opaque;

	return exits_span(&own->exits, t, s);
}

/* Instead of tables: having no exits is no error, but may surprise. */
static void print_none(const struct exits_options *own, const struct timeline *t)
{
	const struct cli_filter *f = cli_filter(t->cli);
	const char *where = f->from || f->to ? "this part of the trace" : "the trace";
	u64 runs = 0;
	char buf[32];
	size_t i;

	for (i = 0; i < t->vms; i++)
		runs += t->vm[i].totals.spans;
	if (!runs)
		printf("No VM runs in %s.\n", where);
	else if (own->exits.left_out)
		printf("None of the %s exits in %s is of that kind.\n",
		       cli_number(own->exits.left_out, buf), where);
	else if (cli_filter_any(t->cli))
		printf("There is no VM exit in %s that fits the filters.\n", where);
	else
		printf("There is no VM exit in %s: %s run%s of VMs end%s in other ways.\n", where,
		       cli_number(runs, buf), runs == 1 ? "" : "s", runs == 1 ? "s" : "");
}

static int show(void *opaque, const struct timeline *t)
{
	struct exits_options *own = opaque;
	char buf[32];

	exits_sort(&own->exits);
	if (t->cli->json) {
		exits_json(t, &own->exits);
		return CLI_OK;
	}
	if (own->exits.rows)
		print_tables(own, t);
	else
		print_none(own, t);
	if (own->exits.ips_left_out)
		cli_warn(t->cli, "%s exits are at more IPs than can be counted",
			 cli_number(own->exits.ips_left_out, buf));
	timeline_tell_ticks(t);
	return CLI_OK;
}

static int run(struct cli *cli)
{
	struct exits_options *own = cli->data;
	const struct timeline_sink sink = { .span = take_span, .end = show, .opaque = own };
	int ret = timeline_given_open(cli, &own->given);

	own->given.wants.clock = cli_when_clock(cli);
	own->exits.symbol = symbol;
	own->exits.opaque = own;
	if (!own->top_given)
		own->exits.top = own->exits.by != EXITS_BY_IP ? IPS_SHOWN
				 : cli->json		      ? EXITS_ROWS_MAX
							      : ROWS_SHOWN;
	if (!ret)
		ret = timeline_run(cli, &own->given.wants, &sink, 1);
	exits_free(&own->exits);
	timeline_given_close(&own->given);
	return ret;
}

static const char *const csv_rows[] = {
	"owner",
	"vmcs",
	"vm",
	"vcpu",
	"others",
	"cpu",
	"ip",
	"symbol",
	"port",
	"direction",
	"msr",
	"gpa",
	"cr3",
	"reason",
	"name",
	"guessed",
	"halted",
	"count",
	"unsure",
	"total_*",
	"total_error_*",
	"one_error_*",
	"min_*",
	"mean_*",
	"p50_*",
	"p95_*",
	"p99_*",
	"max_*",
	"longest/at_*",
	"longest/tsc",
	"longest/cpu",
	"longest/offset",
	"parts/host/total_*",
	"parts/host/total_error_*",
	"parts/wait/total_*",
	"parts/wait/total_error_*",
	"parts/halted/total_*",
	"parts/halted/total_error_*",
	"parts/untraced/total_*",
	"parts/untraced/total_error_*",
	NULL,
};

static const struct cli_csv csv[] = {
	{ "exits", NULL, csv_rows },
	{ 0 },
};

const struct cli_command cli_exits = {
	.name = "exits",
	.title = "show why VMs exit, how often and for how long",
	.about =
		"Show each VM's exits by reason, and those of all VMs: how many, how long from an\n"
		"exit to the next entry of the same vCPU on whatever CPU, and what the CPU that\n"
		"it left did meanwhile: ran the host (HOST) or another vCPU (WAIT); or the vCPU\n"
		"was idle (HALTED); or the CPU was not traced. Then the guest's IPs that exit\n"
		"most. A '?' marks a guess. UNSURE: exits whose return is not seen.",
	.examples =
		"  vmpt exits perf.data                            of a host\n"
		"  vmpt exits --code=vmlinux perf.data             with names of functions\n"
		"  vmpt exits --vm=web trace                       one VM of a recording's folder\n"
		"  vmpt exits --by=vcpu --sort=wait perf.data      who waits most for a CPU\n"
		"  vmpt exits --by=port perf.data                  the I/O ports\n"
		"  vmpt exits --by=ip --top=5 perf.data            the code that exits\n"
		"  vmpt exits --time=wall --sort=max perf.data     when the longest was\n"
		"  vmpt exits --json perf.data | jq '.exits[] | {vm, name, count, p99_ns}'\n",
	.group = { &group, &timeline_code_group, &cli_filter_group, &cli_when_group,
		   &cli_clock_group, &cli_input_group, &cli_side_group, &cli_output_group },
	.csv = csv,
	.data_size = sizeof(struct exits_options),
	.run = run,
};
