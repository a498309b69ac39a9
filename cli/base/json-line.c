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
	cli_error(line->cli, "%s: line %zu: %s", line->file, line->number, text);
	return CLI_FAILED;
}

json_t *json_line_parse(struct json_line *line, const char *text, size_t n)
{
	json_error_t error;
	json_t *o = json_loadb(text, n, JSON_REJECT_DUPLICATES, &error);

	if (json_is_object(o))
		return o;
	if (o)
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
