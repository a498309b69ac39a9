// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Text tables: columns as wide as their widest cell, separated by two blanks. Where a terminal is
 * too narrow, columns of names are cut; the names stay different. And CSV.
 */
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "cli/base/cli.h"
#include "cli/base/safe-text.h"
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
	bool hidden[COLUMNS_MAX];
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
	bool right = t->column[i].align == CLI_RIGHT || t->column[i].align == CLI_SPARE;

	if (t->hidden[i])
		return;
	if (i)
		printf("  ");
	if (right)
		printf("%*s", pad, "");
	if (paint && *text)
		printf("%s%s%s", cli_paint(t->cli, paint), text, cli_paint(t->cli, CLI_PLAIN));
	else
		printf("%s", text);
	if (!right && !last)
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
	size_t room = cli_room(t->cli), i, next = 0, was[COLUMNS_MAX];

	memcpy(was, wide, sizeof(was));
	for (i = 0; i < t->columns; i++)
		used += wide[i] + (i ? 2 : 0);
	while (room && used > room) {
		i = widest_cut(t, wide);
		if (i < t->columns) {
			wide[i]--;
			used--;
			continue;
		}
		while (next < t->columns && t->column[next].align != CLI_SPARE)
			next++;
		if (next == t->columns)
			break;
		t->hidden[next] = true;
		used -= wide[next++] + 2;
		/* There is more room for names. */
		for (i = 0; i < t->columns; i++) {
			used += was[i] - wide[i];
			wide[i] = was[i];
		}
	}
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

/* ---- CSV ---- */

#define PATH_MAX_BYTES 64

/* "total_ns" of "total_*". */
static const char *key_of(const char *column, bool ns, char key[PATH_MAX_BYTES])
{
	size_t n = strlen(column);

	if (column[n - 1] != '*')
		return column;
	snprintf(key, PATH_MAX_BYTES, "%.*s%s", (int)(n - 1), column, ns ? "ns" : "ticks");
	return key;
}

void cli_csv_header(const struct cli_csv *csv, bool ns, FILE *out)
{
	char key[PATH_MAX_BYTES];
	size_t i;

	for (i = 0; csv->column[i]; i++)
		fprintf(out, "%s%s", i ? "," : "", key_of(csv->column[i], ns, key));
	fputc('\n', out);
}

static const json_t *at_path(const json_t *o, const char *path)
{
	char text[PATH_MAX_BYTES], *at = text, *key;

	snprintf(text, sizeof(text), "%s", path);
	while (o && (key = strsep(&at, "/")) != NULL)
		o = json_object_get(o, key);
	return o;
}

/* Names must not control a terminal. */
static void put_text(const char *text, FILE *out)
{
	bool quoted = text[strcspn(text, ",\"\r\n")];
	char one[CLI_SAFE_CHAR];
	size_t n;

	if (quoted)
		fputc('"', out);
	while (*text) {
		n = cli_safe_char(&text, one);
		if (n == 1 && *one == '"')
			fputc('"', out);
		fwrite(one, 1, n, out);
	}
	if (quoted)
		fputc('"', out);
}

static void put_value(const json_t *value, FILE *out)
{
	char text[32];
	json_t *one;
	size_t i;

	if (json_is_string(value))
		put_text(json_string_value(value), out);
	else if (json_is_integer(value))
		fprintf(out, "%lld", (long long)json_integer_value(value));
	else if (json_is_real(value)) {
		snprintf(text, sizeof(text), "%.9g", json_real_value(value));
		put_text(text, out);
	} else if (json_is_boolean(value)) {
		fputs(json_is_true(value) ? "true" : "false", out);
	}
	/* Strings, as in "cr3s" */
	json_array_foreach(value, i, one)
	{
		fprintf(out, "%s%s", i ? " " : "", json_string_value(one));
	}
}

/* @key: of @o in its object, or NULL; what it lacks is @parent's. */
static void put_row(const struct cli_csv *csv, const char *key, const json_t *o,
		    const json_t *parent, bool ns, FILE *out)
{
	char room[PATH_MAX_BYTES];
	const json_t *value;
	size_t i;

	for (i = 0; csv->column[i]; i++) {
		const char *column = key_of(csv->column[i], ns, room);

		if (i)
			fputc(',', out);
		if (key && !strcmp(column, "key")) {
			put_text(key, out);
			continue;
		}
		value = at_path(o, column);
		put_value(value ? value : at_path(parent, column), out);
	}
	fputc('\n', out);
}

void cli_csv_rows(const struct cli_csv *csv, const json_t *o, bool ns, FILE *out)
{
	json_t *list = csv->each ? json_object_get(o, csv->each) : NULL, *one;
	const char *key;
	size_t i;

	if (!csv->each)
		put_row(csv, NULL, o, NULL, ns, out);
	json_array_foreach(list, i, one)
	{
		put_row(csv, NULL, one, o, ns, out);
	}
	if (json_is_object(list))
		json_object_foreach(list, key, one)
		{
			put_row(csv, key, one, o, ns, out);
		}
}
