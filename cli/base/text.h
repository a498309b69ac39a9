/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Text as the locale and the terminal need it: display columns (wcwidth), characters beyond ASCII
 * only where the locale's codeset is UTF-8, names cut so that they stay different.
 */
#ifndef VMPT_CLI_TEXT_H
#define VMPT_CLI_TEXT_H

#include <stddef.h>

#include "arch/types.h"

/* Whether the locale's codeset is UTF-8. */
bool cli_utf8(void);

/* Columns of @text on a terminal: 0 of a combining character, 2 of a wide one. */
size_t cli_columns(const char *text);

/* The longest beginning of @text that fits @columns, in bytes: whole characters. */
size_t cli_columns_bytes(const char *text, size_t columns);

/*
 * @text, which is UTF-8, as the locale has it: itself where the codeset is UTF-8, else in ASCII:
 * "+-" for a plus-minus, "-" for a dash, "x", "us", "...", others as "\u00e4". Free the result with
 * cli_local_free(). NULL: no memory.
 */
char *cli_local(const char *text);
void cli_local_free(char *local, const char *text);

/* printf() to stdout, as cli_local(). */
void cli_print(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* Print @text, padded to @columns: blanks before it if @right, else after it. */
void cli_print_padded(const char *text, size_t columns, bool right);

/*
 * Cut @count names of vCPUs, VMs, ... in their middle to @columns (at least 8), so that different
 * names stay different: by another place of the cut, or by a number. NULLs stay NULLs. free() each
 * of @label. 0, or -1: no memory.
 */
int cli_labels(const char *const *name, size_t count, size_t columns, char **label);

#endif
