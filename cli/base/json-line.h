/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* A line of a file of JSON lines: what tells of a trace beside it. */
#ifndef VMPT_CLI_JSON_LINE_H
#define VMPT_CLI_JSON_LINE_H

#include <jansson.h>

#include "cli/base/cli.h"

struct json_line {
	const struct cli *cli;
	const char *file;
	size_t number;	/* from 1 */
	bool left_out;	/* a bad line is, with a warning; else it is an error */
	size_t skipped; /* lines that were left out */
};

/* Of a line that is left out: it is not used, the others are. */
#define JSON_LINE_SKIPPED (-1)

/* A message with file and line. Returns JSON_LINE_SKIPPED or CLI_FAILED. */
int json_line_bad(struct json_line *line, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/* The object that the @n bytes of the line are, the caller's; NULL after json_line_bad(). */
json_t *json_line_parse(struct json_line *line, const char *text, size_t n);

/* Member @key, a number: "0x…", or a JSON number of 0 or more. 0, or what json_line_bad() returns.
 */
int json_line_u64(struct json_line *line, const json_t *object, const char *key, u64 max,
		  u64 *value);

#endif
