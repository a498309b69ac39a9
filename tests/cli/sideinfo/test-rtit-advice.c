// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* RTIT on the command line: reports of lost bytes, and times from few timing packets. */
#include <string.h>

#include "tests/cli/rtit-streams.h"
#include "tests/support/support.h"

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
	r = vmpt("dump --format=rtit --cycle-acc=yes no-counts.rtit");
	ck_assert_int_eq(r->code, 3);
	ck_has(r->out, "LOST      3 bytes: reserved cycle count (CCNT 00b)\n");
	ck_lacks(r->out, "CYC");
	ck_has(r->err, "was Cycle_Acc 0 when it was recorded? Try --cycle-acc=no");
	ck_has(vmpt("stat --format=rtit --cycle-acc=yes no-counts.rtit")->out,
	       "lost: reserved cycle count (CCNT 00b)");
	ck_assert_int_eq(vmpt("dump --format=rtit --cycle-acc=no no-counts.rtit")->code, 0);
}
END_TEST

START_TEST(a_loss_up_to_the_end_says_so)
{
	static const u8 trace[] = { PSB, 0x03, 0x83, 0x01, 0x02 };
	const struct run *r;

	write_file("end.rtit", trace, sizeof(trace));
	r = vmpt("dump --format=rtit end.rtit");
	ck_assert_int_eq(r->code, 3);
	ck_has(r->out, "LOST      3 bytes: reserved size of a LIP (CNT 11b) in 83\n");
	ck_has(r->err, "nothing after it could be decoded");
	ck_lacks(r->err, "next PSB");
	r = vmpt("dump damaged.cpu0.rtit");
	ck_has(r->out, "LOST      2 bytes: unknown opcode in e3\n");
	ck_has(r->err, "decoding resumed at the next PSB");
}
END_TEST

/* Before the first STS an MTC shows the time since the first MTC. */
START_TEST(times_by_mtcs_alone)
{
	static const u8 trace[] = {
		PSB,  0xc5, 0x07,			  /* rng 1, 512 ticks a step: E7 */
		0xc5, 0xfe, 0x43, 0xc5, 0x01, 0x43,	  /* the first, 3 steps */
		0xe3, PSB,  0x43, 0xc5, 0x80, 0xc5, 0x82, /* after a loss, anew */
		0xd4, 0x10, 0x00, 0x70, 0x56, 0x34, 0x12, /* STS 1234567000 */
		0xc5, 0x39,
	};
	const struct run *r;
	json_t *o;

	write_file("mtc.rtit", trace, sizeof(trace));
	r = vmpt("dump --cycle-acc=no --no-bytes --kinds=mtc,tnt,sts mtc.rtit");
	ck_has(r->out, "       9  host~       –                 MTC         rng=1 tsc=0x7 (E7");
	ck_has(r->out, "       b  host~       +0                MTC         rng=1 tsc=0xfe\n"
		       "       d  host~       –                 TNT         NNNNTT\n"
		       "       e  host~       +600              MTC         rng=1 tsc=0x1\n");
	ck_has(r->out, "      1e  host~       +400              MTC         rng=1 tsc=0x82\n"
		       "      20  host~       1234567000        STS ");
	ck_lacks(strstr(r->out, "STS"), "+");
	r = vmpt("dump --cycle-acc=no --json --kinds=mtc --start=0xe --head=1 mtc.rtit");
	o = run_packets(r);
	ck_assert_str_eq(json_text(o, "0/since_first_mtc"), "0x600");
	ck_assert_ptr_null(json_object_get(json_at(o, "0"), "host_tsc"));
	json_decref(o);
}
END_TEST

/* PSBs and partial TNTs have no count: the next packet bounds their time. */
START_TEST(packets_without_counts_have_times)
{
	static const u8 trace[] = {
		PSB,  0x82, 0x00, 0x10, 0x00, 0x81, 0xff, 0xff, 0x15, /* 0, 9 FUP.PGE +5 */
		0xd4, 0x10, 0x00, 0x70, 0x56, 0x34, 0x12, 0x1d,	      /* 11 STS +7 */
		0x76, 0x31,					      /* 19 TNT +12 */
		0x06,						      /* 1b TNT: not full */
		PSB,						      /* 1c */
		0xb0, 0x10, 0x20, 0x8e, 0x01,			      /* 25 TIP +99 */
		0x06,						      /* 2a TNT: nothing after it */
	};
	const struct run *r;

	write_file("psb.rtit", trace, sizeof(trace));
	r = vmpt("dump --cycle-acc=yes --no-bytes --tsc-ratio=16 --start=0x19 psb.rtit");
	ck_assert_str_eq(r->out, "  OFFSET  OWNER       TSC               PACKET\n"
				 "      19  host~       123456700d        TNT         TTNTTN +12\n"
				 "      1b  host~       123456700d ±100   TNT         TN\n"
				 "      1c  host~       123456700d ±100   PSB\n"
				 "      25  host~       1234567071        "
				 "TIP         0xffff81002010 cnt=0 +99\n"
				 "      2a  host~       1234567071 ?      TNT         TN\n");
	/* A head of lines does not cut what they wait for. */
	ck_has(vmpt("dump --cycle-acc=yes --tsc-ratio=16 --start=0x1b --head=1 psb.rtit")->out,
	       "123456700d ±100   TNT");
}
END_TEST

TEST_SUITE()
{
	Suite *s = suite_create("cli rtit-advice");
	TCase *t = tcase_create("advice");

	tcase_add_checked_fixture(t, setup, cli_clean);
	tcase_add_test(t, no_psb_asks_for_the_format_in_use);
	tcase_add_test(t, a_reserved_cycle_count_asks_for_cycle_acc);
	tcase_add_test(t, a_loss_up_to_the_end_says_so);
	tcase_add_test(t, times_by_mtcs_alone);
	tcase_add_test(t, packets_without_counts_have_times);
	suite_add_tcase(s, t);
	return s;
}
