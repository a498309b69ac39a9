/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Texts that are not ours, such as VMs' names, for a terminal or a page: control characters, those
 * that change the direction of text, and bytes that are no UTF-8 are shown as "\u202e", "\xff".
 */
#ifndef VMPT_CLI_SAFE_TEXT_H
#define VMPT_CLI_SAFE_TEXT_H

#include "arch/types.h"

#define CLI_SAFE_CHAR 8 /* bytes at the most */

/* The next character of *@text, which is not at its end, into @buf: how many bytes that are. */
size_t cli_safe_char(const char **text, char buf[CLI_SAFE_CHAR]);

/*
 * All of @text into @buf of @len bytes (16 at the least), with its length as the return value; what
 * is longer than @limit bytes or has no room is cut where a character begins, and "…" stands there.
 */
size_t cli_safe_text(const char *text, char *buf, size_t len, size_t limit);

#endif
