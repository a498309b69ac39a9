// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* RTIT on the command line: what is said of bytes that were lost, and of what to do about it. */
#include <string.h>

#include "tests/cli/rtit-streams.h"
#include "tests/support/support.h"

#define ck_has(text, word)   ck_assert_msg(strstr(text, word) != NULL, "no '%s' in: %s", word, text)
#define ck_lacks(text, word) ck_assert_msg(!strstr(text, word), "'%s' in: %s", word, text)

static void setup(void)
{
	cli_setup();
	write_all();
}

START_TEST(no_psb_asks_for_the_format_in_use)
{
	const struct run *r;

	/* Without the PSB that it begins with. */
	write_file("bare", plain + 9, SIZE - 9);
	write_file("bare.rtit", plain + 9, SIZE - 9);
	write_mixed("x.pt");
	r = vmpt("stat --format=rtit bare");
	ck_assert_int_eq(r->code, 3);
	ck_has(r->err, "is this a trace of RTIT? If it only lacks PSBs, try --headless");
	r = vmpt("stat bare");
	ck_assert_int_eq(r->code, 3);
	ck_has(r->err, "is this an Intel PT trace? If it only lacks PSBs, try --headless");
	/* Taken for PT's, but so called */
	r = vmpt("stat bare.rtit");
	ck_assert_int_eq(r->code, 3);
	ck_has(r->err, "try --format=rtit --headless");
	/* The other's PSB */
	ck_has(vmpt("stat --format=rtit x.pt")->err,
	       "there is a PSB of Intel PT in it: try --format=pt");
	ck_has(vmpt("stat --format=pt x.cpu0.rtit")->err,
	       "there is a PSB of RTIT in it: try --format=rtit");
}
END_TEST

/* Full TNTs without cycle counts, read as if they had some: 04H is CCNT 00b. */
START_TEST(a_reserved_cycle_count_asks_for_cycle_acc)
{
	static const u8 trace[] = { PSB, 0x40, 0x04, 0x07, PSB, 0x40, 0x04, PSB, 0x43, 0x05 };
	const struct run *r;

	write_file("no-counts.rtit", trace, sizeof(trace));
	r = vmpt("dump --cycle-acc=yes no-counts.rtit");
	ck_assert_int_eq(r->code, 3);
	ck_has(r->out, "LOST      3 bytes: reserved cycle count (CCNT 00b)\n");
	ck_lacks(r->out, "CYC");
	ck_has(r->err, "was Cycle_Acc 0 when it was recorded? Try --cycle-acc=no");
	ck_has(vmpt("stat --cycle-acc=yes no-counts.rtit")->out,
	       "lost: reserved cycle count (CCNT 00b)");
	ck_assert_int_eq(vmpt("dump --cycle-acc=no no-counts.rtit")->code, 0);
}
END_TEST

START_TEST(a_loss_up_to_the_end_says_so)
{
	static const u8 trace[] = { PSB, 0x03, 0x83, 0x01, 0x02 };
	const struct run *r;

	write_file("end.rtit", trace, sizeof(trace));
	r = vmpt("dump end.rtit");
	ck_assert_int_eq(r->code, 3);
	ck_has(r->out, "LOST      3 bytes: reserved size of a LIP (CNT 11b) in 83\n");
	ck_has(r->err, "nothing behind it could be decoded");
	ck_lacks(r->err, "next PSB");
	r = vmpt("dump damaged.cpu0.rtit");
	ck_has(r->out, "LOST      2 bytes: unknown opcode in e3\n");
	ck_has(r->err, "decoding went on at the next PSB");
}
END_TEST

int main(void)
{
	Suite *s = suite_create("cli rtit-advice");
	TCase *t = tcase_create("advice");

	tcase_add_checked_fixture(t, setup, cli_clean);
	tcase_set_timeout(t, 60);
	tcase_add_test(t, no_psb_asks_for_the_format_in_use);
	tcase_add_test(t, a_reserved_cycle_count_asks_for_cycle_acc);
	tcase_add_test(t, a_loss_up_to_the_end_says_so);
	suite_add_tcase(s, t);
	return test_main(s);
}
