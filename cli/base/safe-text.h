/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Foreign texts, such as VMs' names, for a terminal or a page: control characters, those
 * that change the direction of text, and bytes that are not UTF-8 are shown as "\u202e", "\xff".
 */
#ifndef VMPT_CLI_SAFE_TEXT_H
#define VMPT_CLI_SAFE_TEXT_H

#include "arch/types.h"

#define CLI_SAFE_CHAR 8 /* bytes, at most */

/* The next character of *@text, which is not at its end, into @buf; returns its bytes. */
size_t cli_safe_char(const char **text, char buf[CLI_SAFE_CHAR]);

/*
 * All of @text into @buf of @len bytes (at least 16); returns its length. Text longer than @limit
 * bytes, or than the room, is cut at the start of a character, with "…" added.
 */
size_t cli_safe_text(const char *text, char *buf, size_t len, size_t limit);

#endif
