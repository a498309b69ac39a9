// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Text tables: columns as wide as their widest cell, separated by two blanks. Where a terminal is
 * too narrow, columns of names are cut; the names stay different.
 */
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "cli/base/cli.h"
#include "cli/base/text.h"
#include "util/array.h"

#define COLUMNS_MAX 16
#define CUT_MIN	    12 /* columns that are left of a name */

struct cell {
	char *text;
	enum cli_paint paint;
};

struct cli_table {
	struct cli *cli;
	struct cli_column column[COLUMNS_MAX];
	size_t columns;
	struct cell *cell;
	size_t cells;
};

struct cli_table *cli_table_new(struct cli *cli, const struct cli_column *column, size_t columns)
{
	struct cli_table *t = calloc(1, sizeof(*t));

	if (!t || columns > COLUMNS_MAX) {
		cli->out_of_memory = true;
		free(t);
		return NULL;
	}
	t->cli = cli;
	t->columns = columns;
	memcpy(t->column, column, columns * sizeof(*column));
	return t;
}

void cli_cell(struct cli_table *t, enum cli_paint paint, const char *fmt, ...)
{
	char *text = NULL, *local = NULL;
	va_list args;
	int n;

	if (!t || t->cli->out_of_memory)
		return;
	va_start(args, fmt);
	n = vasprintf(&text, fmt, args);
	va_end(args);
	if (n >= 0)
		local = cli_local(text);
	if (!local || vmpt_grow(&t->cell, t->cells)) {
		if (local)
			cli_local_free(local, text);
		free(n < 0 ? NULL : text);
		t->cli->out_of_memory = true;
		return;
	}
	if (local != text)
		free(text);
	text = local;
	t->cell[t->cells++] = (struct cell){ .text = text, .paint = paint };
}

void cli_cell_number(struct cli_table *t, bool valid, u64 value)
{
	char buf[32];

	if (valid)
		cli_cell(t, CLI_PLAIN, "%s", cli_number(value, buf));
	else
		cli_cell(t, CLI_DIM, "–");
}

void cli_row_end(struct cli_table *t)
{
	while (t && !t->cli->out_of_memory && t->cells % t->columns)
		cli_cell(t, CLI_PLAIN, "%s", "");
}

static void print_cell(const struct cli_table *t, size_t i, const char *text, enum cli_paint paint,
		       size_t wide)
{
	int pad = (int)(wide - cli_columns(text));
	bool last = i + 1 == t->columns;

	if (i)
		printf("  ");
	if (t->column[i].align == CLI_RIGHT)
		printf("%*s", pad, "");
	if (paint)
		printf("%s%s%s", cli_paint(t->cli, paint), text, cli_paint(t->cli, CLI_PLAIN));
	else
		printf("%s", text);
	if (t->column[i].align != CLI_RIGHT && !last)
		printf("%*s", pad, "");
}

/* Trailing empty cells are not printed. */
static size_t row_length(const struct cli_table *t, const struct cell *row)
{
	size_t n = t->columns;

	while (n && !row[n - 1].text[0])
		n--;
	return n;
}

/* Cut the names of a column. */
static void cut_column(struct cli_table *t, size_t column, size_t columns)
{
	size_t rows = t->cells / t->columns, i;
	const char **name = calloc(rows + 1, sizeof(*name));
	char **label = calloc(rows + 1, sizeof(*label));
	bool good = name && label;

	for (i = 0; good && i < rows; i++)
		name[i] = t->cell[i * t->columns + column].text;
	if (!good || cli_labels(name, rows, columns, label))
		t->cli->out_of_memory = true;
	for (i = 0; good && i < rows && label[i]; i++) {
		free(t->cell[i * t->columns + column].text);
		t->cell[i * t->columns + column].text = label[i];
	}
	free(name);
	free(label);
}

/* The widest of the columns that may be cut further; .columns: none. */
static size_t widest_cut(const struct cli_table *t, const size_t *wide)
{
	size_t i, best = t->columns;

	for (i = 0; i < t->columns; i++)
		if (t->column[i].align == CLI_NAMES && wide[i] > CUT_MIN &&
		    (best == t->columns || wide[i] > wide[best]))
			best = i;
	return best;
}

/* Fit the table to the terminal, if stdout is one. */
static void fit(struct cli_table *t, size_t *wide, size_t used)
{
	size_t room = cli_room(t->cli), i, was[COLUMNS_MAX];

	memcpy(was, wide, sizeof(was));
	for (i = 0; i < t->columns; i++)
		used += wide[i] + (i ? 2 : 0);
	for (; room && used > room && (i = widest_cut(t, wide)) < t->columns; used--)
		wide[i]--;
	for (i = 0; i < t->columns; i++)
		if (wide[i] < was[i])
			cut_column(t, i, wide[i]);
}

/* The titles as the locale has them. */
static void set_titles(struct cli_table *t, char **title)
{
	size_t i;

	for (i = 0; i < t->columns; i++) {
		title[i] = cli_local(t->column[i].title);
		if (!title[i]) {
			t->cli->out_of_memory = true;
			title[i] = (char *)t->column[i].title;
		}
	}
}

void cli_table_print(struct cli_table *t, const char *indent)
{
	size_t wide[COLUMNS_MAX] = { 0 }, i, at;
	char *title[COLUMNS_MAX];

	if (!t)
		return;
	set_titles(t, title);
	for (i = 0; i < t->columns; i++)
		wide[i] = cli_columns(title[i]);
	for (i = 0; i < t->cells; i++) {
		size_t w = cli_columns(t->cell[i].text), *col = &wide[i % t->columns];

		*col = w > *col ? w : *col;
	}
	if (!t->cli->out_of_memory)
		fit(t, wide, strlen(indent));
	if (!t->cli->out_of_memory) {
		printf("%s", indent);
		for (i = 0; i < t->columns; i++)
			print_cell(t, i, title[i], CLI_BOLD, wide[i]);
		printf("\n");
	}
	for (i = 0; i < t->columns; i++)
		cli_local_free(title[i], t->column[i].title);
	for (at = 0; at < t->cells && !t->cli->out_of_memory; at += t->columns) {
		size_t n = row_length(t, &t->cell[at]);

		printf("%s", indent);
		for (i = 0; i < n; i++)
			print_cell(t, i, t->cell[at + i].text, t->cell[at + i].paint, wide[i]);
		printf("\n");
	}
	for (i = 0; i < t->cells; i++)
		free(t->cell[i].text);
	free(t->cell);
	free(t);
}
