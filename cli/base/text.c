// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* Text for locales and terminals; see text.h. */
#include <langinfo.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>

#include "cli/base/text.h"

/* Room of an escaped character, "\U0001f600". */
#define ESCAPED 11

bool cli_utf8(void)
{
	return !strcmp(nl_langinfo(CODESET), "UTF-8");
}

/* ---- columns ---- */

/* The character at @s: its bytes (at least 1); its columns. */
static size_t next_char(const char *s, size_t *columns)
{
	mbstate_t state = { 0 };
	wchar_t wide;
	size_t n;
	int w;

	*columns = 1;
	if (!((u8)*s & 0x80))
		return 1;
	n = mbrtowc(&wide, s, strlen(s), &state);
	if (!n || n > 8)
		return 1;
	w = wcwidth(wide);
	/* A character that the C library does not know, yet, is shown somehow. */
	*columns = w < 0 ? 1 : (size_t)w;
	return n;
}

size_t cli_columns(const char *text)
{
	size_t all = 0, columns;

	while (*text) {
		text += next_char(text, &columns);
		all += columns;
	}
	return all;
}

size_t cli_columns_bytes(const char *text, size_t columns)
{
	const char *s = text;
	size_t n, one, used = 0;

	while (*s) {
		n = next_char(s, &one);
		if (used + one > columns)
			break;
		used += one;
		s += n;
	}
	return (size_t)(s - text);
}

/* The longest end of @text that fits @columns; never one that begins with a combining character. */
static const char *end_of(const char *text, size_t columns)
{
	size_t left = cli_columns(text), one, n;

	while (*text) {
		n = next_char(text, &one);
		if (left <= columns && one)
			break;
		left -= one;
		text += n;
	}
	return text;
}

/* ---- the locale ---- */

/* The character at *@s, valid UTF-8 or not, in ASCII; *@s is moved past it. */
static size_t ascii(const char **s, char buf[ESCAPED])
{
	static const struct {
		const char *utf8, *ascii;
	} known[] = {
		{ "±", "+-" }, { "–", "-" }, { "…", "..." }, { "×", "x" }, { "µ", "u" },
	};
	const u8 *at = (const u8 *)*s;
	u32 value;
	size_t i, n;

	for (i = 0; i < VMPT_ARRAY_SIZE(known); i++) {
		n = strlen(known[i].utf8);
		if (strncmp(*s, known[i].utf8, n) != 0)
			continue;
		*s += n;
		strcpy(buf, known[i].ascii);
		return strlen(buf);
	}
	n = *at >= 0xf0 ? 4 : *at >= 0xe0 ? 3 : *at >= 0xc0 ? 2 : 1;
	value = n == 1 ? *at : *at & (0xffu >> (n + 1));
	for (i = 1; i < n && (at[i] & 0xc0) == 0x80; i++)
		value = value << 6 | (at[i] & 0x3f);
	*s += i;
	if (i < n || n == 1)
		return (size_t)snprintf(buf, ESCAPED, "\\x%02x", *at);
	return (size_t)snprintf(buf, ESCAPED, value > 0xffff ? "\\U%08x" : "\\u%04x", value);
}

static bool is_ascii(const char *s)
{
	while (*s && !((u8)*s & 0x80))
		s++;
	return !*s;
}

char *cli_local(const char *text)
{
	char *local, *to;

	if (is_ascii(text) || cli_utf8())
		return (char *)text;
	local = to = calloc(strlen(text) + 1, ESCAPED - 1);
	if (!local)
		return NULL;
	while (*text) {
		if (*text & 0x80)
			to += ascii(&text, to);
		else
			*to++ = *text++;
	}
	*to = '\0';
	return local;
}

void cli_local_free(char *local, const char *text)
{
	if (local != text)
		free(local);
}

void cli_print(const char *fmt, ...)
{
	char *text, *local;
	va_list args;
	int n;

	va_start(args, fmt);
	n = vasprintf(&text, fmt, args);
	va_end(args);
	if (n < 0)
		return;
	local = cli_local(text);
	if (local)
		fputs(local, stdout);
	cli_local_free(local, text);
	free(text);
}

void cli_print_padded(const char *text, size_t columns, bool right)
{
	char *local = cli_local(text);
	size_t wide = local ? cli_columns(local) : 0;
	int pad = wide < columns ? (int)(columns - wide) : 0;

	if (right)
		printf("%*s", pad, "");
	if (local)
		fputs(local, stdout);
	if (!right)
		printf("%*s", pad, "");
	cli_local_free(local, text);
}

/* ---- labels ---- */

/* @name with @head columns of its start, @mark, and its end; @columns in all. */
static char *cut(const char *name, size_t columns, size_t head, const char *mark)
{
	const char *end;
	size_t n, used;
	char *label;

	if (cli_columns(name) <= columns)
		return strdup(name);
	n = cli_columns_bytes(name, head);
	used = head + cli_columns(mark);
	end = end_of(name + n, columns > used ? columns - used : 0);
	return asprintf(&label, "%.*s%s%s", (int)n, name, mark, end) < 0 ? NULL : label;
}

struct pair {
	const char *name, *label;
};

static int by_label(const void *a, const void *b)
{
	const struct pair *x = a, *y = b;
	int order = strcmp(x->label, y->label);

	return order ? order : strcmp(x->name, y->name);
}

/* Whether one label stands for two names. @pair: room. */
static bool alike(const char *const *name, char *const *label, size_t count, struct pair *pair)
{
	size_t i, n = 0;

	for (i = 0; i < count; i++)
		if (name[i])
			pair[n++] = (struct pair){ name[i], label[i] };
	qsort(pair, n, sizeof(*pair), by_label);
	for (i = 1; i < n; i++)
		if (!strcmp(pair[i].label, pair[i - 1].label) &&
		    strcmp(pair[i].name, pair[i - 1].name) != 0)
			return true;
	return false;
}

static void forget(char **label, size_t count)
{
	while (count--) {
		free(label[count]);
		label[count] = NULL;
	}
}

static int cut_all(const char *const *name, size_t count, size_t columns, size_t head,
		   const char *mark, char **label)
{
	size_t i;

	for (i = 0; i < count; i++) {
		label[i] = name[i] ? cut(name[i], columns, head, mark) : NULL;
		if (name[i] && !label[i]) {
			forget(label, i);
			return -1;
		}
	}
	return 0;
}

static int by_name(const void *a, const void *b)
{
	return strcmp(((const struct pair *)a)->name, ((const struct pair *)b)->name);
}

/* Names that no cut tells apart: each has its number, in alphabetical order. */
static int number(const char *const *name, size_t count, size_t columns, char **label,
		  struct pair *pair)
{
	size_t i, n = 0, low, high, mid, digits;
	char mark[40];

	for (i = 0; i < count; i++)
		if (name[i])
			pair[n++].name = name[i];
	qsort(pair, n, sizeof(*pair), by_name);
	for (i = low = 0; i < n; i++)
		if (!i || strcmp(pair[i].name, pair[low - 1].name) != 0)
			pair[low++] = pair[i];
	n = low;
	for (i = 0; i < count; i++) {
		if (!name[i])
			continue;
		for (low = 0, high = n; low < high;) {
			mid = low + (high - low) / 2;
			if (strcmp(pair[mid].name, name[i]) < 0)
				low = mid + 1;
			else
				high = mid;
		}
		digits = (size_t)snprintf(mark, sizeof(mark), "%s#%zu", cli_utf8() ? "…" : "..",
					  low + 1);
		label[i] = cut(name[i], columns, columns > digits ? columns - digits : 0, mark);
		if (!label[i]) {
			forget(label, i);
			return -1;
		}
	}
	return 0;
}

int cli_labels(const char *const *name, size_t count, size_t columns, char **label)
{
	const char *mark = cli_utf8() ? "…" : "..";
	size_t room = columns - cli_columns(mark), half = room / 2, i;
	struct pair *pair = calloc(count + 1, sizeof(*pair));
	bool same = true;
	int ret = pair ? 0 : -1;

	/* The middle first, then places ever farther from it. */
	for (i = 0; !ret && same && i <= 2 * half; i++) {
		size_t head = i % 2 ? half - (i + 1) / 2 : half + i / 2;

		ret = head <= room ? cut_all(name, count, columns, head, mark, label) : 0;
		same = head > room || (!ret && alike(name, label, count, pair));
		if (same && !ret && head <= room)
			forget(label, count);
	}
	if (!ret && same)
		ret = number(name, count, columns, label, pair);
	free(pair);
	return ret;
}
