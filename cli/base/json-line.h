/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* A line of a JSON Lines file that describes a trace. */
#ifndef VMPT_CLI_JSON_LINE_H
#define VMPT_CLI_JSON_LINE_H

#include <jansson.h>

#include "cli/base/cli.h"

struct json_line {
	const struct cli *cli;
	const char *file;
	size_t number;	/* from 1; 0: not of lines */
	bool left_out;	/* a bad line is, with a warning; else it is an error */
	size_t skipped; /* lines that were left out */
};

/*
 * Limits of what is given to jansson, whose values take up to 40 times the bytes of a line, and
 * which does not survive each failing malloc() (2.14). A line of vmpt or of a VMM has some hundred
 * bytes and one level.
 */
#define JSON_LINE_BYTES 65536
#define JSON_LINE_DEPTH 8

/* A buffer for json_line_read(). */
#define JSON_LINE_ROOM (JSON_LINE_BYTES + 2)

/* The line is skipped; the others are used. */
#define JSON_LINE_SKIPPED (-1)

/* A message with file and line. Returns JSON_LINE_SKIPPED or CLI_FAILED. */
int json_line_bad(struct json_line *line, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/* json_loadb() of at most @max bytes and JSON_LINE_DEPTH. NULL: @error->text, or memory is short.
 */
json_t *json_text_load(const char *text, size_t n, size_t max, json_error_t *error);
/* The same of a line. */
json_t *json_line_load(const char *text, size_t n, json_error_t *error);

/* Parse the @n bytes of the line; the caller owns the object. NULL after json_line_bad(). */
json_t *json_line_parse(struct json_line *line, const char *text, size_t n);

/* Member @key, a number: "0x…", or a JSON number of 0 or more. 0, or what json_line_bad() returns.
 */
int json_line_u64(struct json_line *line, const json_t *object, const char *key, u64 max,
		  u64 *value);

#endif
