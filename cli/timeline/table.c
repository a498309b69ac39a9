// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * vmpt timeline's tables: one line per span, and the totals. The former has columns of fixed width,
 * as it is as long as the trace; with usual values no line is wider than 100 columns.
 */
#include <stdlib.h>
#include <string.h>

#include "cli/timeline/internal.h"

#define WHEN_COLUMNS 13
#define WHO_COLUMNS  14
#define WHY_COLUMNS  21
#define ROW_COLUMNS  100

struct timeline_table {
	struct cli *cli;
	u64 head, lines;
	size_t when;	      /* columns of a time */
	bool headed;	      /* the header line is printed */
	char **name, **label; /* of vCPUs; a label is NULL where names are whole */
	size_t names;
	size_t last; /* of them */
	size_t who;  /* columns */
};

/* ---- spans ---- */

/* @text in a field of @columns on a terminal. */
static void field(const char *text, int columns, bool right)
{
	cli_print_padded(text, (size_t)columns, right);
}

/* The names that may come, of the vCPUs that are known: how wide they are, and their labels. */
static int open_names(struct timeline_table *table, const struct timeline *t)
{
	const struct timeline_names *n = t->names;
	size_t room = cli_room(table->cli), wide = WHO_COLUMNS, i;

	table->name = calloc(n->count + 1, sizeof(*table->name));
	table->label = calloc(n->count + 1, sizeof(*table->label));
	if (!table->name || !table->label)
		return cli_no_memory(table->cli);
	for (i = 0; i < n->count; i++) {
		const struct timeline_name *of = &n->name[i];
		int ret = of->vcpu == TIMELINE_NONE
				  ? asprintf(&table->name[i], "%s", of->shown)
				  : asprintf(&table->name[i], "%s vcpu %u", of->shown, of->vcpu);

		if (ret < 0) {
			table->name[i] = NULL;
			return cli_no_memory(table->cli);
		}
		table->names = i + 1;
		if (cli_columns(table->name[i]) > wide)
			wide = cli_columns(table->name[i]);
	}
	/* What a wider terminal has to spare is for names. */
	if (room && wide > WHO_COLUMNS)
		wide = room > ROW_COLUMNS && room - ROW_COLUMNS < wide - WHO_COLUMNS
			       ? WHO_COLUMNS + room - ROW_COLUMNS
		       : room > ROW_COLUMNS ? wide
					    : WHO_COLUMNS;
	table->who = wide;
	if (room && cli_labels((const char *const *)table->name, n->count, wide, table->label))
		return cli_no_memory(table->cli);
	return CLI_OK;
}

/* @name as it is shown. */
static const char *label(struct timeline_table *table, const char *name)
{
	size_t i;

	if (cli_columns(name) <= table->who)
		return name;
	if (table->last < table->names && !strcmp(table->name[table->last], name))
		return table->label[table->last] ? table->label[table->last] : name;
	for (i = 0; i < table->names; i++) {
		if (strcmp(table->name[i], name) != 0)
			continue;
		table->last = i;
		return table->label[i] ? table->label[i] : name;
	}
	return name;
}

static void print_titles(const struct timeline_table *table, const struct timeline *t)
{
	char title[CLI_WHEN];

	printf("%s", cli_paint(table->cli, CLI_BOLD));
	field(cli_when_title(&t->times, title), (int)table->when, true);
	printf("  ");
	field("CPU", 3, true);
	printf("  ");
	field("WHO", (int)table->who, false);
	printf("  ");
	field("FOR", 10, true);
	printf("  ");
	field("± MAX", 7, true);
	printf("  ");
	field("OFFSET", 10, true);
	printf("  ENDED BY, AT%s\n", cli_paint(table->cli, CLI_PLAIN));
}

static enum cli_paint paint_of(const struct vmpt_span *span)
{
	static const enum cli_paint paint[] = {
		[VMPT_SPAN_HOST] = CLI_BLUE,	  [VMPT_SPAN_GUEST] = CLI_GREEN,
		[VMPT_SPAN_UNKNOWN] = CLI_YELLOW, [VMPT_SPAN_LOST] = CLI_RED,
		[VMPT_SPAN_OFF] = CLI_DIM,
	};

	return paint[span->kind];
}

static const char *const backs[] = {
	[VMPT_BACK_GAP] = "time went back after a loss",
	[VMPT_BACK_TSC_RESET] = "the TSC was written",
	[VMPT_BACK_MAP] = "the TSC offset changed",
	[VMPT_BACK_CONTRADICTION] = "TSC and MTC disagree",
};

/* Why it ended, where the next line does not show it. */
static void print_end(const struct timeline_table *table, const struct timeline_span *s)
{
	size_t columns = cli_room(table->cli) ? WHY_COLUMNS : TIMELINE_WHOLE;
	const struct vmpt_span *span = s->span;
	char why[96];

	if (span->kind == VMPT_SPAN_LOST) {
		cli_print("  %s",
			  timeline_cut(vmpt_strerror(-(int)span->loss), 34, why, sizeof(why)));
	} else if (span->kind == VMPT_SPAN_GUEST && span->ended == VMPT_EDGE_EXIT) {
		cli_print("  %s", timeline_why(&span->exit, why, sizeof(why), columns));
		if (span->exit.has_ip)
			printf(" %llx", (unsigned long long)span->exit.ip);
	} else if (span->back && span->back < VMPT_ARRAY_SIZE(backs)) {
		printf("  %s", backs[span->back]);
	} else if (span->overflows) {
		printf("  %u overflow%s", span->overflows, span->overflows == 1 ? "" : "s");
	}
	printf("\n");
}

static int table_begin(void *opaque, const struct timeline *t)
{
	struct timeline_table *table = opaque;
	char buf[CLI_WHEN];

	table->when = cli_columns(cli_when_text(&t->times, t->zero, buf));
	if (table->when < WHEN_COLUMNS)
		table->when = WHEN_COLUMNS;
	return open_names(table, t);
}

static int table_span(void *opaque, const struct timeline *t, const struct timeline_span *s)
{
	struct timeline_table *table = opaque;
	const struct vmpt_span *span = s->span;
	char buf[TIMELINE_TIME], when[CLI_WHEN];
	u64 error = s->early > s->late ? s->early : s->late;

	if (table->head && table->lines == table->head)
		return CLI_OK;
	table->lines++;
	if (!table->headed)
		print_titles(table, t);
	table->headed = true;
	field(s->begins ? cli_when_text(&t->times, s->start + t->zero, when) : TIMELINE_UNTOLD,
	      (int)table->when, true);
	printf("  ");
	field(cli_stream_cpu(table->cli->stream[span->stream], buf), 3, true);
	printf("  %s", cli_paint(table->cli, paint_of(span)));
	field(label(table, timeline_who(t, s)), (int)table->who, false);
	printf("%s  ", cli_paint(table->cli, CLI_PLAIN));
	field(s->timed ? timeline_length(t, s->end - s->start, buf) : TIMELINE_UNTOLD, 10, true);
	printf("  ");
	field(!s->timed	   ? TIMELINE_UNTOLD
	      : s->bounded ? timeline_length(t, error, buf)
			   : "?",
	      7, true);
	printf("  ");
	/* Where vmpt dump --cpu --start goes on. */
	snprintf(buf, sizeof(buf), "0x%llx", (unsigned long long)span->offset);
	field(buf, 10, true);
	print_end(table, s);
	return CLI_OK;
}

static int table_end(void *opaque, const struct timeline *t)
{
	struct timeline_table *table = opaque;

	if (!table->headed)
		print_titles(table, t);
	timeline_tell_ticks(t);
	return CLI_OK;
}

int timeline_table_open(struct cli *cli, u64 head, struct timeline_table **table,
			struct timeline_sink *sink)
{
	struct timeline_table *t = calloc(1, sizeof(*t));

	if (!t)
		return cli_no_memory(cli);
	t->cli = cli;
	t->head = head;
	*sink = (struct timeline_sink){
		.begin = table_begin, .span = table_span, .end = table_end, .opaque = t
	};
	*table = t;
	return CLI_OK;
}

void timeline_table_close(struct timeline_table *table)
{
	size_t i;

	for (i = 0; table && i < table->names; i++) {
		free(table->name[i]);
		free(table->label[i]);
	}
	if (table) {
		free(table->name);
		free(table->label);
	}
	free(table);
}

/* ---- totals ---- */

/* "12.3 ms? ±1.2 us"; nothing where @n has no times */
static void cell_time(struct cli_table *table, const struct timeline *t,
		      const struct timeline_totals *n, const struct timeline_part_time *part)
{
	char buf[TIMELINE_TIME], bound[TIMELINE_TIME];

	if (n->spans && !n->timed) {
		cli_cell(table, CLI_DIM, TIMELINE_UNTOLD);
		return;
	}
	timeline_short(t, part->ticks, buf);
	if (part->open)
		cli_cell(table, CLI_PLAIN, "%s%s ±?", buf, part->guessed ? "?" : "");
	else
		cli_cell(table, CLI_PLAIN, "%s%s ±%s", buf, part->guessed ? "?" : "",
			 timeline_short(t, timeline_part_error(part), bound));
}

static struct timeline_part_time running_of(const struct timeline_totals *n)
{
	return (struct timeline_part_time){
		.ticks = n->running,
		.early = n->running_bounds.early,
		.late = n->running_bounds.late,
		.open = n->running_bounds.open,
	};
}

static void time_row(struct cli_table *table, const struct timeline *t, const char *name,
		     enum cli_paint paint, const struct timeline_totals *n)
{
	const struct timeline_part_time running = running_of(n);
	char buf[TIMELINE_TIME];

	cli_cell(table, paint, "%s", name);
	cell_time(table, t, n, &running);
	cell_time(table, t, n, &n->out[TIMELINE_WAIT]);
	cell_time(table, t, n, &n->out[TIMELINE_HOST]);
	cell_time(table, t, n, &n->out[TIMELINE_HALTED]);
	cli_cell(table, CLI_PLAIN, "%s",
		 n->spans && !n->timed ? TIMELINE_UNTOLD
				       : timeline_short(t, n->out[TIMELINE_UNTRACED].ticks, buf));
	cli_row_end(table);
}

static void count_row(struct cli_table *table, const struct timeline *t, const char *name,
		      enum cli_paint paint, const struct timeline_totals *n)
{
	(void)t;
	cli_cell(table, paint, "%s", name);
	cli_cell_number(table, true, n->entries);
	cli_cell_number(table, true, n->exits);
	cli_cell_number(table, true, n->guessed);
	cli_cell_number(table, true, n->halts);
	cli_cell_number(table, true, n->moves);
	cli_cell_number(table, true, n->losses);
	cli_cell_number(table, true, n->unsure);
	cli_row_end(table);
}

typedef void vm_row(struct cli_table *table, const struct timeline *t, const char *name,
		    enum cli_paint paint, const struct timeline_totals *n);

/* A row of each VM, and of its vCPUs if there are several. */
static void print_vms(const struct timeline *t, const struct cli_column *column, size_t columns,
		      vm_row *row)
{
	struct cli_table *table = cli_table_new(t->cli, column, columns);
	char name[CLI_WHO + 8];
	size_t i;
	u32 k;

	for (i = 0; i < t->vms; i++) {
		bool all = t->vm[i].wanted && t->vm[i].wanted == t->vm[i].inside;

		if (all)
			row(table, t, t->vm[i].name, CLI_GREEN, &t->vm[i].totals);
		k = t->vm[i].vcpus > 1 ? t->vm[i].first : TIMELINE_NONE;
		for (; k != TIMELINE_NONE; k = t->vcpu[k].next_of_vm) {
			if (!t->vcpu[k].wanted)
				continue;
			if (!all)
				snprintf(name, sizeof(name), "%s", t->vcpu[k].name);
			else if (t->vcpu[k].number == TIMELINE_NONE)
				snprintf(name, sizeof(name), "  %s", t->vcpu[k].name);
			else
				snprintf(name, sizeof(name), "  vcpu %u", t->vcpu[k].number);
			row(table, t, name, CLI_PLAIN, &t->vcpu[k].totals);
		}
	}
	cli_table_print(table, "");
}

static bool any_guessed(const struct timeline *t)
{
	size_t i;

	for (i = 0; i < t->vms; i++)
		if (t->vm[i].totals.exited.guessed)
			return true;
	return false;
}

static void print_all_vms(const struct timeline *t)
{
	static const struct cli_column times[] = {
		{ "VM", CLI_NAMES }, { "RUN", true },  { "WAIT", true },
		{ "HOST", true },    { "HALT", true }, { "UNTRACED", true },
	};
	static const struct cli_column counts[] = {
		{ "VM", CLI_NAMES }, { "ENTRIES", true }, { "EXITS", true }, { "GUESSED", true },
		{ "HALTS", true },   { "MOVES", true },	  { "LOST", true },  { "UNSURE", true },
	};

	print_vms(t, times, VMPT_ARRAY_SIZE(times), time_row);
	if (t->timed)
		cli_print("±: worst-case error; ±?: unbounded%s\n",
			  any_guessed(t) ? "; ?: by guessed or unknown reasons, ± covers them"
					 : "");
	printf("\n");
	print_vms(t, counts, VMPT_ARRAY_SIZE(counts), count_row);
}

/* "12.3 ms" */
static void cell_sum(struct cli_table *table, const struct timeline *t,
		     const struct timeline_totals *n, u64 ticks)
{
	char buf[TIMELINE_TIME];
	bool given = n->timed || !n->spans;

	cli_cell(table, given ? CLI_PLAIN : CLI_DIM, "%s",
		 given ? timeline_short(t, ticks, buf) : TIMELINE_UNTOLD);
}

static void print_cpus(const struct timeline *t)
{
	static const struct cli_column column[] = {
		{ "CPU", true },      { "GUESTS", true },    { "ENTRIES", true },
		{ "EXITS", true },    { "GUESSED", true },   { "LOSSES", true },
		{ "LOST FOR", true }, { "OVERFLOWS", true }, { "BYTES", true },
	};
	struct cli_table *table = cli_table_new(t->cli, column, VMPT_ARRAY_SIZE(column));
	char buf[TIMELINE_TIME];
	size_t i;

	for (i = 0; i < t->cli->streams; i++) {
		const struct timeline_totals *n = &t->cpu[i];

		cli_cell(table, CLI_PLAIN, "%s", cli_stream_cpu(t->cli->stream[i], buf));
		cell_sum(table, t, n, n->running);
		cli_cell_number(table, true, n->entries);
		cli_cell_number(table, true, n->exits);
		cli_cell_number(table, true, n->guessed);
		cli_cell_number(table, true, n->losses);
		cell_sum(table, t, n, n->lost);
		cli_cell_number(table, true, n->overflows);
		cli_cell_number(table, true, n->bytes);
	}
	cli_table_print(table, "");
}

static int summary_end(void *opaque, const struct timeline *t)
{
	char buf[TIMELINE_TIME];
	size_t vms = 0, i;

	(void)opaque;
	for (i = 0; i < t->vms; i++)
		vms += t->vm[i].wanted > 0;
	if (t->timed)
		printf("%s%s on ", timeline_short(t, timeline_lasts(t), buf),
		       t->hz > 0 ? "" : " ticks");
	printf("%zu CPU%s, %zu VM%s%s%s\n\n", t->cli->streams, t->cli->streams == 1 ? "" : "s", vms,
	       vms == 1 ? "" : "s", t->vms ? "" : ": none runs",
	       t->timed ? "" : "; the trace has no times");
	if (vms) {
		print_all_vms(t);
		printf("\n");
	}
	print_cpus(t);
	timeline_tell_ticks(t);
	return CLI_OK;
}

void timeline_summary_sink(struct timeline_sink *sink)
{
	*sink = (struct timeline_sink){ .end = summary_end, .outs = true };
}
