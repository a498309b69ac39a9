// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* Texts for a terminal: the characters of UAX #9 and ISO 6429 by their numbers, UTF-8 by RFC 3629.
 */
#include <string.h>

#include "cli/base/base.h"
#include "tests/support/support.h"

static const char *shown(const char *text)
{
	static char buf[256];

	ck_assert_uint_eq(cli_safe_text(text, buf, sizeof(buf), 200), strlen(buf));
	return buf;
}

START_TEST(what_is_escaped)
{
	static const struct {
		const char *text, *shown;
	} cases[] = {
		{ "", "" },
		{ "web-1 ~", "web-1 ~" },
		{ "\x01\x1b[2J\x1f\x7f", "\\u0001\\u001b[2J\\u001f\\u007f" },
		{ "\xc2\x80\xc2\x9f\xc2\xa0", "\\u0080\\u009f\xc2\xa0" },
		{ "\xd8\x9b\xd8\x9c\xd8\x9d", "\xd8\x9b\\u061c\xd8\x9d" },
		/* 200d is no mark of a direction, 2010 is a hyphen. */
		{ "\xe2\x80\x8d\xe2\x80\x8e\xe2\x80\x8f\xe2\x80\x90",
		  "\xe2\x80\x8d\\u200e\\u200f\xe2\x80\x90" },
		{ "\xe2\x80\xa7\xe2\x80\xa8\xe2\x80\xaa\xe2\x80\xae\xe2\x80\xaf",
		  "\xe2\x80\xa7\\u2028\\u202a\\u202e\xe2\x80\xaf" },
		{ "\xe2\x81\xa5\xe2\x81\xa6\xe2\x81\xa9\xe2\x81\xaa",
		  "\xe2\x81\xa5\\u2066\\u2069\xe2\x81\xaa" },
		{ "J\xc3\xbcrgen \xd7\x90 \xf0\x9f\x90\xa7",
		  "J\xc3\xbcrgen \xd7\x90 \xf0\x9f\x90\xa7" },
		/* Not UTF-8: alone, cut, too long, a surrogate, beyond 10ffff. */
		{ "\x9b\xff", "\\x9b\\xff" },
		{ "a\xe2\x80", "a\\xe2\\x80" },
		{ "\xc0\x9b", "\\xc0\\x9b" },
		{ "\xe0\x82\x9b", "\\xe0\\x82\\x9b" },
		{ "\xed\xa0\x80", "\\xed\\xa0\\x80" },
		{ "\xf4\x90\x80\x80", "\\xf4\\x90\\x80\\x80" },
	};
	size_t i;

	for (i = 0; i < VMPT_ARRAY_SIZE(cases); i++)
		ck_assert_str_eq(shown(cases[i].text), cases[i].shown);
}
END_TEST

/* Never within a character, nor within what stands for one; never over the end. */
START_TEST(cut)
{
	char buf[40];

	memset(buf, '#', sizeof(buf));
	ck_assert_uint_eq(cli_safe_text("abcdef", buf, sizeof(buf), 3), 6);
	ck_assert_str_eq(buf, "abc\xe2\x80\xa6");
	cli_safe_text("ab\xc3\xbc\xc3\xbc", buf, sizeof(buf), 3);
	ck_assert_str_eq(buf, "ab\xc3\xbc\xe2\x80\xa6");
	cli_safe_text("\xe2\x80\xae\xe2\x80\xae\xe2\x80\xae", buf, sizeof(buf), 7);
	ck_assert_str_eq(buf, "\\u202e\\u202e\xe2\x80\xa6");
	memset(buf, '#', sizeof(buf));
	cli_safe_text("\x01\x01\x01\x01\x01\x01\x01\x01", buf, 30, 100);
	ck_assert_str_eq(buf, "\\u0001\\u0001\\u0001\\u0001\xe2\x80\xa6");
	ck_assert_int_eq(buf[30], '#');
}
END_TEST

TEST_SUITE()
{
	Suite *s = suite_create("safe-text");
	TCase *tc = tcase_create("text");

	tcase_add_test(tc, what_is_escaped);
	tcase_add_test(tc, cut);
	suite_add_tcase(s, tc);
	return s;
}
