// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* vmpt wait: who waited for whom: what its CPU did while a vCPU was out of the guest. */
#include "cli/sideinfo/sideinfo.h"
#include "cli/wait/wait.h"

struct wait_options {
	struct timeline_given given; /* the first: cli/timeline/options.h */
	u64 top;
	struct wait wait;
};

static const struct cli_option options[] = {
	{ "top", 0, CLI_NUMBER, "N", "show the N longest rows of each vCPU; 0: all", "5",
	  CLI_AT(struct wait_options, top) },
	{ 0 },
};

static const struct cli_group group = { .option = options };

static enum cli_paint paint_of(const struct wait_row *row)
{
	switch (row->kind) {
	case WAIT_HOST:
		return CLI_BLUE;
	case WAIT_VCPU:
		return CLI_GREEN;
	}
	return CLI_DIM;
}

static void print_row(struct cli_table *table, const struct timeline *t, const struct wait_row *row,
		      u64 all, bool first)
{
	const struct timeline_part_time *time = &row->time;
	char buf[TIMELINE_TIME];

	cli_cell(table, CLI_PLAIN, "%s", first ? t->vcpu[row->vcpu].name : "");
	cli_cell(table, paint_of(row), "%s", wait_whom(t, row));
	cli_cell(table, CLI_PLAIN, "%s%s", timeline_short(t, time->ticks, buf),
		 time->guessed ? "?" : "");
	cli_cell(table, CLI_DIM, "±%s",
		 time->open ? "?" : timeline_short(t, timeline_part_error(time), buf));
	cli_cell(table, CLI_PLAIN, "%.1f", all ? 100.0 * (double)time->ticks / (double)all : 0.0);
	cli_cell_number(table, row->kind != WAIT_OTHERS, row->times);
	if (row->kind == WAIT_OTHERS)
		cli_cell(table, CLI_DIM, TIMELINE_UNTOLD);
	else
		cli_cell(table, CLI_PLAIN, "%s", timeline_short(t, row->longest.ticks, buf));
	if (row->kind == WAIT_VCPU)
		cli_cell(table, CLI_DIM, "%s", timeline_short(t, row->host, buf));
	else
		cli_cell(table, CLI_DIM, "%s", "");
}

/* The time of @vcpu out of the guest. */
static u64 out_of(const struct timeline *t, u32 vcpu)
{
	u64 sum = 0;
	unsigned int p;

	for (p = 0; p < TIMELINE_PARTS; p++)
		sum += t->vcpu[vcpu].totals.out[p].ticks;
	return sum;
}

static void print_table(const struct wait_options *own, const struct timeline *t)
{
	static const struct cli_column column[] = {
		{ "VCPU", CLI_NAMES }, { "WAITED FOR", CLI_NAMES },
		{ "TIME", true },      { "", true },
		{ "%", true },	       { "TIMES", true },
		{ "LONGEST", true },   { "HOST BETWEEN", true },
	};
	const struct wait *w = &own->wait;
	struct cli_table *table = cli_table_new(t->cli, column, VMPT_ARRAY_SIZE(column));
	bool guessed = false, open = false;
	size_t i, n = 0;

	for (i = 0; i < w->rows; i++) {
		const struct wait_row *row = &w->row[i];

		n = i && row->vcpu == w->row[i - 1].vcpu ? n + 1 : 0;
		if (own->top && n >= own->top)
			continue;
		print_row(table, t, row, out_of(t, row->vcpu), !n);
		guessed |= row->time.guessed;
		open |= row->time.open;
	}
	cli_table_print(table, "");
	cli_print("±: worst-case error%s%s\n", open ? "; ±?: unbounded" : "",
		  guessed ? "; ?: by guessed or unknown reasons, ± covers them" : "");
}

/* When the longest time of each row began, and where. */
static void print_longest(const struct wait_options *own, const struct timeline *t)
{
	char title[CLI_WHEN], buf[CLI_WHEN];
	const struct cli_column column[] = {
		{ "VCPU", CLI_NAMES }, { "WAITED FOR", CLI_NAMES },
		{ "LONGEST", true },   { cli_when_title(&t->times, title), true },
		{ "CPU", true },       { "OFFSET", true },
	};
	const struct wait *w = &own->wait;
	struct cli_table *table = cli_table_new(t->cli, column, VMPT_ARRAY_SIZE(column));
	size_t i, n = 0;

	for (i = 0; i < w->rows; i++) {
		const struct wait_row *row = &w->row[i];
		const struct timeline_longest *longest = &row->longest;

		n = i && row->vcpu == w->row[i - 1].vcpu ? n + 1 : 0;
		if ((own->top && n >= own->top) || !longest->given)
			continue;
		cli_cell(table, CLI_PLAIN, "%s", t->vcpu[row->vcpu].name);
		cli_cell(table, paint_of(row), "%s", wait_whom(t, row));
		cli_cell(table, CLI_PLAIN, "%s", timeline_short(t, longest->ticks, buf));
		cli_cell(table, CLI_PLAIN, "%s", timeline_longest_at(t, longest, buf));
		cli_cell(table, CLI_PLAIN, "%s",
			 cli_stream_cpu(t->cli->stream[longest->stream], buf));
		cli_cell(table, CLI_PLAIN, "0x%llx", (unsigned long long)longest->offset);
	}
	cli_table_print(table, "");
}

static int take_span(void *opaque, const struct timeline *t, const struct timeline_span *s)
{
	struct wait_options *own = opaque;

	return wait_span(&own->wait, t, s);
}

static void print_tables(const struct wait_options *own, const struct timeline *t)
{
	print_table(own, t);
	printf("\n");
	print_longest(own, t);
}

static int show(void *opaque, const struct timeline *t)
{
	struct wait_options *own = opaque;

	if (wait_finish(&own->wait, t))
		return CLI_FAILED;
	if (t->cli->json)
		wait_json(&own->wait, t, own->top);
	else if (!t->timed)
		printf("The trace has no times.\n");
	else if (own->wait.rows)
		print_tables(own, t);
	else
		printf("No vCPU that left the guest came back in this trace%s.\n",
		       cli_filter(t->cli)->from || cli_filter(t->cli)->to
			       ? ", and was out at that time"
			       : "");
	timeline_tell_ticks(t);
	return CLI_OK;
}

static int run(struct cli *cli)
{
	struct wait_options *own = cli->data;
	const struct timeline_sink sink = {
		.span = take_span, .end = show, .opaque = own, .all = true, .outs = true
	};
	int ret = cli_filter_check(cli, CLI_FILTER_CR3, "a vCPU waits, whatever its CR3");

	own->given.wants.clock = cli_when_clock(cli);
	if (!ret)
		ret = timeline_given_open(cli, &own->given);
	if (!ret)
		ret = timeline_run(cli, &own->given.wants, &sink, 1);
	wait_free(&own->wait);
	timeline_given_close(&own->given);
	return ret;
}

static const char *const csv_waits[] = {
	"owner",	"vmcs",		  "vm",		 "vcpu",	   "kind",
	"for_owner",	"for_vmcs",	  "for_vm",	 "for_vcpu",	   "time_*",
	"time_error_*", "host_between_*", "guessed",	 "times",	   "longest/length_*",
	"longest/at_*", "longest/tsc",	  "longest/cpu", "longest/offset", NULL,
};

static const struct cli_csv csv[] = {
	{ "vcpus", "waits", csv_waits },
	{ 0 },
};

const struct cli_command cli_wait = {
	.name = "wait",
	.title = "show who waited for whom: what a vCPU's CPU did while it was out",
	.about = "Show for each vCPU what the CPU that it exited on did until its next entry:\n"
		 "ran another vCPU, by name, or the host, or was not traced; or the vCPU was idle\n"
		 "(halted). The vCPU that waited longest for others comes first. TIMES: exits\n"
		 "after which it happened. HOST BETWEEN: of the host's row, what lies between two\n"
		 "runs of that vCPU. A '?' marks what rests on a guessed or unknown reason.",
	.examples =
		"  vmpt wait perf.data                        who waits most, and for whom\n"
		"  vmpt wait --owner web perf.data            the neighbours of one VM\n"
		"  vmpt wait --time=wall perf.data            and at what time it waited longest\n"
		"  vmpt wait --from 0.5 --to 0.6 perf.data    a tenth of a second\n",
	.group = { &group, &timeline_code_group, &cli_filter_group, &cli_when_group,
		   &cli_clock_group, &cli_input_group, &cli_side_group, &cli_output_group },
	.csv = csv,
	.data_size = sizeof(struct wait_options),
	.run = run,
};
