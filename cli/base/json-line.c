// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* Lines of JSON; see json-line.h. */
#include "cli/base/json-line.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

int json_line_bad(struct json_line *line, const char *fmt, ...)
{
	char text[240];
	va_list args;

	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	if (line->left_out) {
		cli_warn_line(line->cli, line->file, line->number, text, &line->skipped);
		return JSON_LINE_SKIPPED;
	}
	if (line->number)
		cli_error(line->cli, "%s: line %zu: %s", line->file, line->number, text);
	else
		cli_error(line->cli, "%s: %s", line->file, text);
	return CLI_FAILED;
}

/* How deep arrays and objects are nested. */
static size_t depth_of(const char *text, size_t n)
{
	size_t i, depth = 0, most = 0;
	bool string = false;

	for (i = 0; i < n; i++) {
		if (string && text[i] == '\\')
			i++;
		else if (text[i] == '"')
			string = !string;
		else if (!string && (text[i] == '[' || text[i] == '{'))
			depth++;
		else if (!string && (text[i] == ']' || text[i] == '}'))
			depth -= depth > 0;
		most = depth > most ? depth : most;
	}
	return most;
}

json_t *json_text_load(const char *text, size_t n, size_t max, json_error_t *error)
{
	memset(error, 0, sizeof(*error));
	if (n > max)
		snprintf(error->text, sizeof(error->text), "longer than %zu bytes", max);
	else if (depth_of(text, n) > JSON_LINE_DEPTH)
		snprintf(error->text, sizeof(error->text), "nested more than %d deep",
			 JSON_LINE_DEPTH);
	else
		return json_loadb(text, n, JSON_REJECT_DUPLICATES, error);
	return NULL;
}

json_t *json_line_load(const char *text, size_t n, json_error_t *error)
{
	return json_text_load(text, n, JSON_LINE_BYTES, error);
}

json_t *json_line_parse(struct json_line *line, const char *text, size_t n)
{
	json_error_t error;
	json_t *o = json_line_load(text, n, &error);

	if (json_is_object(o))
		return o;
	if (n > JSON_LINE_BYTES)
		json_line_bad(line, "%s", error.text);
	else if (o)
		json_line_bad(line, "not a JSON object");
	else
		json_line_bad(line, "not JSON: %s", error.text);
	json_decref(o);
	return NULL;
}

int json_line_u64(struct json_line *line, const json_t *object, const char *key, u64 max,
		  u64 *value)
{
	const json_t *v = json_object_get(object, key);
	const char *s = json_string_value(v);

	*value = 0;
	if (json_is_integer(v) && json_integer_value(v) >= 0) {
		*value = (u64)json_integer_value(v);
	} else if (s && s[0] == '0' && s[1] == 'x' && s[2] &&
		   !s[2 + strspn(s + 2, "0123456789abcdefABCDEF")]) {
		errno = 0;
		*value = strtoull(s, NULL, 16);
		if (errno)
			return json_line_bad(line, "\"%s\" has more than 64 bits", key);
	} else {
		return json_line_bad(line, "\"%s\" is not a number, like 3 or \"0x1f\"", key);
	}
	if (*value > max)
		return json_line_bad(line, "\"%s\" is larger than %llu", key,
				     (unsigned long long)max);
	return CLI_OK;
}
