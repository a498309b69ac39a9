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
	u64 top;
	struct exits exits;
};

/* ---- options ---- */

static const struct cli_option options[] = {
	{ "top", 0, CLI_NUMBER, "N", "show the N IPs with the most exits, for each row", "3",
	  .max = EXITS_IPS_MAX, CLI_AT(struct exits_options, top) },
	{ 0 },
};

static const struct cli_group group = { .option = options };

/* ---- words ---- */

static const char *row_vm(const struct timeline *t, const struct exits_row *row)
{
	return row->vm == TIMELINE_NONE ? "others" : t->vm[row->vm].name;
}

static struct vmpt_exit row_exit(const struct exits_row *row)
{
	return (struct vmpt_exit){
		.reason = row->reason,
		.source = row->reason == VMPT_REASON_UNKNOWN ? VMPT_REASON_NONE
			  : row->guessed		     ? VMPT_REASON_CODE
							     : VMPT_REASON_EVD,
	};
}

/* "do_idle+0x1f", or nothing. */
static const char *symbol(const struct exits_options *own, const struct timeline *t,
			  const struct exits_row *row, u64 ip, char *buf, size_t len)
{
	return timeline_symbol(&own->given, row_vm(t, row), ip, buf, len) ? buf : "";
}

/* ---- the table ---- */

static void cell_length(struct cli_table *table, const struct timeline *t,
			const struct exits_row *row, u64 ticks)
{
	char buf[TIMELINE_TIME];

	if (row->out.count)
		cli_cell(table, CLI_PLAIN, "%s", timeline_short(t, ticks, buf));
	else
		cli_cell(table, CLI_DIM, "–");
}

/* The worst-case error of the sum. */
static void cell_error(struct cli_table *table, const struct timeline *t,
		       const struct exits_row *row)
{
	char buf[TIMELINE_TIME];

	if (!row->out.count)
		cli_cell(table, CLI_DIM, "%s", "");
	else if (row->bounds.open)
		cli_cell(table, CLI_DIM, "±?");
	else
		cli_cell(table, CLI_DIM, "±%s",
			 timeline_short(t, timeline_error(&row->bounds), buf));
}

static void print_row(struct cli_table *table, const struct timeline *t,
		      const struct exits_row *row, bool first)
{
	struct vmpt_exit e = row_exit(row);
	char why[96];

	cli_cell(table, CLI_GREEN, "%s", first ? row_vm(t, row) : "");
	cli_cell(table, row->halted ? CLI_DIM : CLI_PLAIN, "%s",
		 row->others ? "others" : timeline_why(&e, why, sizeof(why), 22));
	cli_cell_number(table, true, row->exits);
	cli_cell_number(table, true, row->unsure);
	cell_length(table, t, row, row->out.sum);
	cell_error(table, t, row);
	cell_length(table, t, row, histogram_at(&row->out, 500));
	cell_length(table, t, row, histogram_at(&row->out, 950));
	cell_length(table, t, row, histogram_at(&row->out, 990));
	cell_length(table, t, row, row->out.max);
}

/* Explain ±. The error of a percentile is at most that of the worst exit. */
static void print_errors(const struct exits_options *own, const struct timeline *t)
{
	bool open = false, bounded = false;
	u64 count = 0, one = 0;
	char buf[TIMELINE_TIME];
	size_t i;

	for (i = 0; i < own->exits.rows; i++) {
		const struct exits_row *row = &own->exits.row[i];

		count += row->out.count;
		open |= row->bounds.open;
		if (row->bounds.open || !row->out.count)
			continue;
		bounded = true;
		one = row->one_error > one ? row->one_error : one;
	}
	if (!count)
		return;
	cli_print("±: worst-case error of TOTAL%s\n", open ? "; ±?: unbounded" : "");
	if (bounded)
		cli_print("each of P50 to MAX can be off by %s%s\n", timeline_short(t, one, buf),
			  open ? ", except in rows with ±?" : "");
}

static void print_rows(const struct exits_options *own, const struct timeline *t)
{
	static const struct cli_column column[] = {
		{ "VM", CLI_NAMES }, { "EXIT", false }, { "COUNT", true }, { "UNSURE", true },
		{ "TOTAL", true },   { "", true },	{ "P50", true },   { "P95", true },
		{ "P99", true },     { "MAX", true },
	};
	struct cli_table *table = cli_table_new(t->cli, column, VMPT_ARRAY_SIZE(column));
	const struct exits *x = &own->exits;
	size_t i;

	for (i = 0; i < x->rows; i++)
		print_row(table, t, &x->row[i], !i || x->row[i].vm != x->row[i - 1].vm);
	cli_table_print(table, "");
	print_errors(own, t);
}

static void print_ips(const struct exits_options *own, const struct timeline *t)
{
	static const struct cli_column column[] = {
		{ "VM", CLI_NAMES }, { "EXIT", false },	      { "COUNT", true },
		{ "IP", true },	     { "SYMBOL", CLI_NAMES },
	};
	struct cli_table *table = cli_table_new(t->cli, column, VMPT_ARRAY_SIZE(column));
	const struct exits *x = &own->exits;
	char why[96], name[CLI_WHO + 32];
	size_t i, k, n;

	for (i = 0; i < x->rows; i++) {
		const struct exits_row *row = &x->row[i];
		const struct exits_ip *ip = exits_ips(x, i, &n);
		struct vmpt_exit e = row_exit(row);

		for (k = 0; k < n && k < own->top; k++) {
			cli_cell(table, CLI_GREEN, "%s", k ? "" : row_vm(t, row));
			cli_cell(table, CLI_PLAIN, "%s",
				 k	       ? ""
				 : row->others ? "others"
					       : timeline_why(&e, why, sizeof(why), 22));
			cli_cell_number(table, true, ip[k].count);
			cli_cell(table, CLI_PLAIN, "%llx", (unsigned long long)ip[k].ip);
			cli_cell(table, CLI_PLAIN, "%s",
				 symbol(own, t, row, ip[k].ip, name, sizeof(name)));
		}
	}
	cli_table_print(table, "");
}

/* ---- JSON ---- */

static void set_length(struct cli *cli, const struct timeline *t, json_t *o, const char *key,
		       u64 ticks)
{
	char name[32];

	snprintf(name, sizeof(name), "%s_%s", key, t->hz > 0 ? "ns" : "ticks");
	if (t->hz > 0)
		cli_json_set(cli, o, name, json_real(timeline_seconds(t, ticks) * 1e9));
	else
		cli_json_number(cli, o, name, ticks);
}

/* Null where an exit of the row has no bound. */
static void set_error(struct cli *cli, const struct timeline *t, json_t *o, const char *key,
		      const struct exits_row *row, u64 ticks)
{
	char name[32];

	if (!row->bounds.open) {
		set_length(cli, t, o, key, ticks);
		return;
	}
	snprintf(name, sizeof(name), "%s_%s", key, t->hz > 0 ? "ns" : "ticks");
	cli_json_set(cli, o, name, json_null());
}

static json_t *json_ips(struct cli *cli, const struct exits_options *own, const struct timeline *t,
			size_t i)
{
	json_t *ips = json_array();
	char name[CLI_WHO + 32];
	size_t n, k;
	const struct exits_ip *ip = exits_ips(&own->exits, i, &n);

	for (k = 0; k < n && k < own->top; k++) {
		json_t *o = json_object();
		const char *s = symbol(own, t, &own->exits.row[i], ip[k].ip, name, sizeof(name));

		cli_json_hex(cli, o, "ip", ip[k].ip);
		cli_json_number(cli, o, "count", ip[k].count);
		if (*s)
			cli_json_string(cli, o, "symbol", s);
		cli_json_add(cli, ips, o);
	}
	return ips;
}

static json_t *json_row(struct cli *cli, const struct exits_options *own, const struct timeline *t,
			size_t i)
{
	const struct exits_row *row = &own->exits.row[i];
	struct vmpt_exit e = row_exit(row);
	json_t *o = json_object();
	char buf[32];

	if (row->vm == TIMELINE_NONE)
		cli_json_string(cli, o, "vm", row_vm(t, row));
	else
		timeline_json_vm(cli, o, "vm", &t->vm[row->vm]);
	cli_json_string(cli, o, "name", row->others ? "others" : timeline_reason(&e, buf));
	if (row->others || row->reason == VMPT_REASON_UNKNOWN)
		cli_json_set(cli, o, "reason", json_null());
	else
		cli_json_number(cli, o, "reason", row->reason);
	cli_json_set(cli, o, "guessed", json_boolean(row->guessed));
	cli_json_set(cli, o, "halted", json_boolean(row->halted));
	cli_json_number(cli, o, "count", row->exits);
	cli_json_number(cli, o, "unsure", row->unsure);
	if (row->out.count) {
		set_length(cli, t, o, "total", row->out.sum);
		set_error(cli, t, o, "total_error", row, timeline_error(&row->bounds));
		set_error(cli, t, o, "one_error", row, row->one_error);
		set_length(cli, t, o, "p50", histogram_at(&row->out, 500));
		set_length(cli, t, o, "p95", histogram_at(&row->out, 950));
		set_length(cli, t, o, "p99", histogram_at(&row->out, 990));
		set_length(cli, t, o, "max", row->out.max);
	}
	cli_json_set(cli, o, "ips", json_ips(cli, own, t, i));
	return o;
}

static void print_json(struct cli *cli, const struct exits_options *own, const struct timeline *t)
{
	json_t *doc = cli_json_document(cli);
	size_t i;

	if (t->timed)
		cli_json_hex(cli, doc, "start_tsc", t->zero);
	else
		cli_json_set(cli, doc, "start_tsc", json_null());
	cli_json_set(cli, doc, "tsc_hz", t->hz > 0 ? json_real(t->hz) : json_null());
	cli_json_number(cli, doc, "ips_left_out", own->exits.ips_left_out);
	cli_json_list_open(cli, doc, "exits", stdout);
	for (i = 0; i < own->exits.rows && !cli_output_failed(cli); i++)
		cli_json_list_add(cli, json_row(cli, own, t, i), !i, stdout);
	cli_json_list_close_warned(cli, stdout);
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
	const struct timeline_wants *w = &own->given.wants;
	const char *where = w->from || w->to ? "this part of the trace" : "the trace";
	u64 runs = 0;
	char buf[32];
	size_t i;

	for (i = 0; i < t->vms; i++)
		runs += t->vm[i].totals.spans;
	if (!runs)
		printf("No VM runs in %s.\n", where);
	else if (w->vm)
		cli_print("There is no VM exit of %s in %s.\n", w->vm, where);
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
		print_json(t->cli, own, t);
		return CLI_OK;
	}
	if (own->exits.rows)
		print_rows(own, t);
	else
		print_none(own, t);
	if (own->top && own->exits.ips) {
		printf("\n");
		print_ips(own, t);
	}
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

	if (!ret)
		ret = timeline_run(cli, &own->given.wants, &sink, 1);
	exits_free(&own->exits);
	timeline_given_close(&own->given);
	return ret;
}

const struct cli_command cli_exits = {
	.name = "exits",
	.title = "show why VMs exit, how often and for how long",
	.about = "Show each VM's exits by reason: how many, the host's time from an exit to\n"
		 "the next entry of the same vCPU on whatever CPU (in all, and percentiles), and\n"
		 "the guest's IPs that exit most. A '?' marks a guessed reason. Halts (idle time)\n"
		 "come after the others. UNSURE: exits whose return is not seen.",
	.examples = "  vmpt exits perf.data                            of a host\n"
		    "  vmpt exits --symbols vmlinux perf.data          with names of functions\n"
		    "  vmpt exits --owner web --side-record vms.jsonl cpu0.pt cpu1.pt\n"
		    "  vmpt exits --json perf.data | jq '.exits[] | {vm, name, count, p99_ns}'\n",
	.group = { &group, &timeline_part_group, &timeline_code_group, &cli_clock_group,
		   &cli_input_group, &cli_side_group, &cli_output_group },
	.data_size = sizeof(struct exits_options),
	.run = run,
};
