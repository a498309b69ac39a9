// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* vmpt hot, for people. */
#include "cli/hot/hot.h"

#define VALUE 48

/* "1,234,567"; seconds as "0.123456789". */
static const char *value_text(const struct hot_tree *t, unsigned int by, u64 value, char buf[VALUE])
{
	const u64 ns = by == HOT_TIME && t->hertz > 0 ? hot_ns(t, value) : 0;

	if (by != HOT_TIME || t->hertz <= 0)
		return cli_number(value, buf);
	snprintf(buf, VALUE, "%llu.%09llu", (unsigned long long)(ns / 1000000000),
		 (unsigned long long)(ns % 1000000000));
	return buf;
}

static const char *unit(const struct hot_tree *t, unsigned int by)
{
	return by != HOT_TIME ? "" : t->hertz > 0 ? " (s)" : " (ticks)";
}

static void cell_value(struct cli_table *table, const struct hot_tree *t, unsigned int by,
		       u64 value)
{
	char buf[VALUE];

	cli_cell(table, CLI_PLAIN, "%s", value_text(t, by, value, buf));
}

static void cell_share(struct cli_table *table, u64 value, u64 all)
{
	cli_cell(table, CLI_DIM, "%.1f", all ? 100.0 * (double)value / (double)all : 0.0);
}

static void cells_who(struct cli_table *table, const struct hot_tree *t, const struct hot_row *row,
		      unsigned int per)
{
	const struct hot_process *p = &t->process[row->group];

	if (per != HOT_PER_TRACE)
		cli_cell(table, CLI_PLAIN, "%s", p->vm);
	if (per == HOT_PER_PROCESS)
		cli_cell(table, CLI_PLAIN, "%s", p->name);
	cli_cell(table, row->function ? CLI_PLAIN : CLI_DIM, "%s", t->function[row->function].text);
}

static void print_sum(struct cli_table *table, const struct hot_tree *t,
		      const struct hot_rows *rows, const struct hot_show *show)
{
	cli_cell(table, CLI_BOLD, "total");
	if (show->per != HOT_PER_TRACE)
		cli_cell(table, CLI_PLAIN, "%s", "");
	if (show->per == HOT_PER_PROCESS)
		cli_cell(table, CLI_PLAIN, "%s", "");
	cell_value(table, t, show->by, rows->sum.self[show->by]);
	cli_row_end(table);
}

static void print_more(const struct hot_show *show, size_t count)
{
	char buf[32];

	if (show->top && count > show->top)
		printf("and %s more: --top=0 shows all\n", cli_number(count - show->top, buf));
}

void hot_print(struct cli *cli, const struct hot_tree *t, const struct hot_rows *rows,
	       const struct hot_show *show)
{
	struct cli_column column[8];
	char self[32], total[32];
	struct cli_table *table;
	size_t i, n = 0;

	snprintf(self, sizeof(self), "SELF%s", unit(t, show->by));
	snprintf(total, sizeof(total), "TOTAL%s", unit(t, show->by));
	if (show->per != HOT_PER_TRACE)
		column[n++] = (struct cli_column){ "VM", CLI_NAMES };
	if (show->per == HOT_PER_PROCESS)
		column[n++] = (struct cli_column){ "PROCESS", CLI_NAMES };
	column[n++] = (struct cli_column){ "FUNCTION", CLI_NAMES };
	column[n++] = (struct cli_column){ self, true };
	column[n++] = (struct cli_column){ "%", true };
	column[n++] = (struct cli_column){ total, true };
	column[n++] = (struct cli_column){ "%", true };
	column[n++] = (struct cli_column){ "CALLS", true };
	table = cli_table_new(cli, column, n);
	for (i = 0; i < rows->count && (!show->top || i < show->top); i++) {
		const struct hot_row *row = &rows->row[i];

		cells_who(table, t, row, show->per);
		cell_value(table, t, show->by, row->self[show->by]);
		cell_share(table, row->self[show->by], rows->sum.self[show->by]);
		cell_value(table, t, show->by, row->total[show->by]);
		cell_share(table, row->total[show->by], rows->sum.self[show->by]);
		cli_cell_number(table, row->function != 0, row->calls);
	}
	print_sum(table, t, rows, show);
	cli_table_print(table, "");
	print_more(show, rows->count);
}

/* ---- comparison ---- */

static void cells_change(struct cli_table *table, const struct hot_diff *d,
			 const struct hot_show *show, const u64 value[2])
{
	char buf[32];
	const bool seconds = show->by == HOT_TIME && d->tree[0]->hertz > 0 &&
			     d->tree[1]->hertz > 0 && show->sort != HOT_SORT_CALLS;
	const bool more = value[1] >= value[0];
	const u64 change = more ? value[1] - value[0] : value[0] - value[1];
	unsigned int i;

	for (i = 0; i < 2; i++) {
		if (seconds)
			cli_cell(table, CLI_PLAIN, "%.9f", (double)value[i] / 1e9);
		else
			cli_cell_number(table, true, value[i]);
		if (show->sort != HOT_SORT_CALLS)
			cell_share(table, value[i],
				   hot_value(d->tree[i], show->by, d->sum[i][show->by]));
	}
	if (seconds)
		cli_cell(table, more ? CLI_RED : CLI_GREEN, "%+.9f",
			 (more ? 1 : -1) * (double)change / 1e9);
	else
		cli_cell(table,
			 !change ? CLI_DIM
			 : more	 ? CLI_RED
				 : CLI_GREEN,
			 "%s%s",
			 !change ? ""
			 : more	 ? "+"
				 : "-",
			 cli_number(change, buf));
}

static void print_diff_sum(struct cli_table *table, const struct hot_diff *d,
			   const struct hot_show *show)
{
	const struct hot_show as = { .by = show->by };
	u64 sum[2];
	unsigned int i;

	if (show->sort == HOT_SORT_CALLS) {
		cli_cell(table, CLI_PLAIN, "%s", "");
		cli_row_end(table);
		return;
	}
	for (i = 0; i < 2; i++)
		sum[i] = hot_value(d->tree[i], show->by, d->sum[i][show->by]);
	cli_cell(table, CLI_BOLD, "total");
	if (show->per != HOT_PER_TRACE && !d->vms)
		cli_cell(table, CLI_PLAIN, "%s", "");
	if (show->per == HOT_PER_PROCESS)
		cli_cell(table, CLI_PLAIN, "%s", "");
	cells_change(table, d, &as, sum);
}

void hot_print_diff(struct cli *cli, const struct hot_diff *d, const struct hot_show *show)
{
	static const char *const what[] = {
		[HOT_SORT_SELF] = "SELF",
		[HOT_SORT_TOTAL] = "TOTAL",
		[HOT_SORT_CALLS] = "CALLS",
		[HOT_SORT_NAME] = "SELF",
	};
	const bool shares = show->sort != HOT_SORT_CALLS;
	struct cli_column column[8];
	char title[3][48];
	struct cli_table *table;
	size_t i, k, n = 0;
	u64 value[2];

	for (i = 0; i < 3; i++) {
		static const char *const when[] = { "BEFORE", "AFTER", "CHANGE" };

		snprintf(title[i], sizeof(title[i]), "%s %s%s", what[show->sort], when[i],
			 shares ? unit(d->tree[0], show->by) : "");
	}
	if (show->per != HOT_PER_TRACE && !d->vms)
		column[n++] = (struct cli_column){ "VM", CLI_NAMES };
	if (show->per == HOT_PER_PROCESS)
		column[n++] = (struct cli_column){ "PROCESS", CLI_NAMES };
	column[n++] = (struct cli_column){ "FUNCTION", CLI_NAMES };
	for (i = 0; i < 3; i++) {
		column[n++] = (struct cli_column){ title[i], true };
		if (shares && i < 2)
			column[n++] = (struct cli_column){ "%", true };
	}
	table = cli_table_new(cli, column, n);
	for (i = 0; i < d->count && (!show->top || i < show->top); i++) {
		const struct hot_change *c = &d->change[i];
		const unsigned int side = c->row[1] ? 1 : 0;
		const struct hot_process *p = &c->tree[side]->process[c->row[side]->group];

		if (show->per != HOT_PER_TRACE && !d->vms)
			cli_cell(table, CLI_PLAIN, "%s", p->vm);
		if (show->per == HOT_PER_PROCESS)
			cli_cell(table, CLI_PLAIN, "%s", p->comm);
		cli_cell(table, c->row[side]->function ? CLI_PLAIN : CLI_DIM, "%s",
			 c->tree[side]->function[c->row[side]->function].text);
		for (k = 0; k < 2; k++)
			value[k] = hot_change_value(c, (unsigned int)k, show->sort, show->by);
		cells_change(table, d, show, value);
	}
	print_diff_sum(table, d, show);
	cli_table_print(table, "");
	print_more(show, d->count);
}
