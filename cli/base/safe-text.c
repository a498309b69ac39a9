// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Make names and texts from guests, hosts and files safe for a terminal or a page: escape
 * characters that control it or change the direction of the text next to them.
 */
#include <stdio.h>
#include <string.h>

#include "cli/base/safe-text.h"

/* How many bytes the character at @s takes, 0: it is not UTF-8 (RFC 3629). */
static size_t utf8(const unsigned char *s, u32 *value)
{
	static const u32 least[] = { 0, 0, 0x80, 0x800, 0x10000 };
	size_t n = s[0] < 0x80			 ? 1
		   : s[0] >= 0xf0 && s[0] < 0xf8 ? 4
		   : s[0] >= 0xe0 && s[0] < 0xf0 ? 3
		   : s[0] >= 0xc2 && s[0] < 0xe0 ? 2
						 : 0;
	size_t i;

	*value = n < 2 ? s[0] : s[0] & (0xffu >> (n + 1));
	for (i = 1; i < n; i++) {
		if ((s[i] & 0xc0) != 0x80)
			return 0;
		*value = *value << 6 | (s[i] & 0x3f);
	}
	return n && (*value < least[n] || *value > 0x10ffff || *value >> 11 == 0x1b) ? 0 : n;
}

/*
 * Control characters of ASCII and of ISO 8859; ends of lines and paragraphs; marks, embeddings,
 * overrides and isolates of text of either direction (UAX #9).
 */
static bool is_unsafe(u32 c)
{
	return c < 0x20 || (c >= 0x7f && c < 0xa0) || c == 0x61c || c == 0x200e || c == 0x200f ||
	       (c >= 0x2028 && c <= 0x202e) || (c >= 0x2066 && c <= 0x2069);
}

size_t cli_safe_char(const char **text, char buf[CLI_SAFE_CHAR])
{
	const unsigned char *s = (const unsigned char *)*text;
	u32 value;
	size_t n = utf8(s, &value);

	*text += n ? n : 1;
	if (!n)
		return (size_t)snprintf(buf, CLI_SAFE_CHAR, "\\x%02x", *s);
	if (is_unsafe(value))
		return (size_t)snprintf(buf, CLI_SAFE_CHAR, "\\u%04x", value);
	memcpy(buf, s, n);
	return n;
}

size_t cli_safe_text(const char *text, char *buf, size_t len, size_t limit)
{
	char one[CLI_SAFE_CHAR];
	size_t used = 0, n;

	while (*text) {
		if (used >= limit || used + CLI_SAFE_CHAR + sizeof("…") > len) {
			strcpy(buf + used, "…");
			return used + strlen("…");
		}
		n = cli_safe_char(&text, one);
		memcpy(buf + used, one, n);
		used += n;
	}
	buf[used] = '\0';
	return used;
}
