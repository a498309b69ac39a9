/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* Names of others in JSON, for code that cannot use stdio (text.h). */
#ifndef VMPT_ARCH_JSON_TEXT_H
#define VMPT_ARCH_JSON_TEXT_H

#include "arch/text.h"

/*
 * Bytes of the character at @s, 0 if that is not UTF-8 (Unicode 3.9, Table 3-7: no
 * surrogates, no longer form than needed, nothing above U+10FFFF).
 */
static inline unsigned int utf8_size(const u8 *s)
{
	unsigned int size = s[0] >= 0xf0 ? 4 : s[0] >= 0xe0 ? 3 : 2, i;
	u8 low = 0x80, high = 0xbf;

	if (s[0] < 0x80)
		return 1;
	if (s[0] < 0xc2 || s[0] > 0xf4)
		return 0;
	if (s[0] == 0xe0)
		low = 0xa0;
	if (s[0] == 0xed)
		high = 0x9f;
	if (s[0] == 0xf0)
		low = 0x90;
	if (s[0] == 0xf4)
		high = 0x8f;
	/* The final NUL is not a continuation byte, so nothing after it is read. */
	for (i = 1; i < size; i++, low = 0x80, high = 0xbf)
		if (s[i] < low || s[i] > high)
			return 0;
	return size;
}

/*
 * @s, NULL: none, as the inside of a string of JSON (RFC 8259). Each byte that is not UTF-8 becomes
 * U+FFFD, so it is always valid.
 */
static inline void put_json(struct text *t, const char *text)
{
	const u8 *s = (const u8 *)(text ? text : "");

	while (*s) {
		unsigned int size = utf8_size(s);

		if (!size) {
			put_str(t, "\\ufffd");
			s++;
		} else if (*s < 0x20 || *s == 0x7f) {
			put_str(t, "\\u");
			put_number(t, *s++, 16, 4);
		} else {
			if (*s == '"' || *s == '\\')
				put_char(t, '\\');
			while (size--)
				put_char(t, (char)*s++);
		}
	}
}

#endif
