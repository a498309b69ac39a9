// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* Text tables: columns as wide as their widest cell, separated by two blanks. */
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "cli/base/cli.h"
#include "util/array.h"

#define COLUMNS_MAX 16

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

/* Columns on a terminal: UTF-8 bytes that are not continuation bytes. */
static size_t width(const char *s)
{
	size_t n = 0;

	for (; *s; s++)
		n += ((unsigned char)*s & 0xc0) != 0x80;
	return n;
}

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
	va_list args;
	char *text;
	int n;

	if (!t || t->cli->out_of_memory)
		return;
	va_start(args, fmt);
	n = vasprintf(&text, fmt, args);
	va_end(args);
	if (n < 0 || vmpt_grow(&t->cell, t->cells)) {
		if (n >= 0)
			free(text);
		t->cli->out_of_memory = true;
		return;
	}
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
	int pad = (int)(wide - width(text));
	bool last = i + 1 == t->columns;

	if (i)
		printf("  ");
	if (t->column[i].right)
		printf("%*s", pad, "");
	if (paint)
		printf("%s%s%s", cli_paint(t->cli, paint), text, cli_paint(t->cli, CLI_PLAIN));
	else
		printf("%s", text);
	if (!t->column[i].right && !last)
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

void cli_table_print(struct cli_table *t, const char *indent)
{
	size_t wide[COLUMNS_MAX], i, at;

	if (!t)
		return;
	for (i = 0; i < t->columns; i++)
		wide[i] = width(t->column[i].title);
	for (i = 0; i < t->cells; i++) {
		size_t w = width(t->cell[i].text), *col = &wide[i % t->columns];

		*col = w > *col ? w : *col;
	}
	if (!t->cli->out_of_memory) {
		printf("%s", indent);
		for (i = 0; i < t->columns; i++)
			print_cell(t, i, t->column[i].title, CLI_BOLD, wide[i]);
		printf("\n");
	}
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
