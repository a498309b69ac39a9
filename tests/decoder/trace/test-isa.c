// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* decoder/trace/isa.c and its use when opening: whether raw files are of Intel PT or RTIT. */
#include <stdio.h>
#include <stdlib.h>

#include "decoder/trace/trace.h"
#include "tests/support/support.h"

#define PT_PSB	 "\x02\x82\x02\x82\x02\x82\x02\x82\x02\x82\x02\x82\x02\x82\x02\x82"
#define RTIT_PSB "\xc0\0\0\0\0\0\0\0\0"
/* FUP.PGE 401000H, TIP 401020H, TNT; without and with cycle counts of one byte */
#define PLAIN  "\x85\x00\x10\x40\x00\xb5\x20\x10\x40\x00\x43"
#define CYCLED "\x85\x00\x10\x40\x00\xf1\xb5\x20\x10\x40\x00\xf1\x43\xf1"

static void setup(void)
{
	(void)test_dir_make();
}

#define FILE_OF(name, literal) test_dir_file(name, literal, sizeof(literal) - 1)

static const struct {
	const char *what, *bytes;
	size_t size;
	int isa;
} heads[] = {
#define HEAD(what, bytes, isa)                      \
	{                                           \
		what, bytes, sizeof(bytes) - 1, isa \
	}
	HEAD("nothing", "", -1),
	HEAD("no PSB", "abcdefghij", -1),
	HEAD("PT", PT_PSB "\x02\x23", VMPT_ISA_PT),
	HEAD("PT after other bytes", "xyz" PT_PSB "\x02\x23", VMPT_ISA_PT),
	HEAD("RTIT", RTIT_PSB PLAIN, VMPT_ISA_RTIT),
	HEAD("RTIT with cycle counts", RTIT_PSB CYCLED, VMPT_ISA_RTIT),
	HEAD("RTIT past the end of a packet", "\0\0\0\0" RTIT_PSB PLAIN, VMPT_ISA_RTIT),
	HEAD("RTIT's PSB and no more", RTIT_PSB, VMPT_ISA_RTIT),
	HEAD("RTIT, cut", RTIT_PSB "\x86\x00\x10", VMPT_ISA_RTIT),
	HEAD("RTIT before PT", RTIT_PSB PLAIN PLAIN PLAIN PLAIN PLAIN PLAIN PT_PSB, VMPT_ISA_RTIT),
	HEAD("PT before RTIT", PT_PSB RTIT_PSB PLAIN, VMPT_ISA_PT),
	/* A PIP's last byte is C0H, padding follows. */
	HEAD("PT with padding", "\x02\x43\0\0\0\0\0\xc0\0\0\0\0\0\0\0\0" PT_PSB, VMPT_ISA_PT),
	HEAD("PT with more padding", "\xc0\0\0\0\0\0\0\0\0\0\0\0" PT_PSB, VMPT_ISA_PT),
	HEAD("RTIT, damaged after its PSB", RTIT_PSB "\xff\xff", VMPT_ISA_RTIT),
	HEAD("RTIT, damaged after the first", RTIT_PSB "\xff" RTIT_PSB PLAIN, VMPT_ISA_RTIT),
#undef HEAD
};

START_TEST(the_first_psb_decides)
{
	struct vmpt_trace *t;
	int isa = heads[_i].isa;

	ck_assert_msg(vmpt_isa_detect((const u8 *)heads[_i].bytes, heads[_i].size) == isa,
		      "%s: not %d", heads[_i].what, isa);
	ck_assert_int_eq(
		vmpt_trace_open(&t, test_dir_file("a", heads[_i].bytes, heads[_i].size), 0, NULL),
		0);
	/* Without a PSB it is PT. */
	ck_assert_int_eq((int)vmpt_trace_info(t)->isa, isa < 0 ? VMPT_ISA_PT : isa);
	ck_assert_int_eq(vmpt_trace_stream(t, 0)->isa, isa < 0 ? VMPT_ISA_PT : isa);
	vmpt_trace_close(t);
}
END_TEST

/* 4 MiB are searched, and not a byte more. */
START_TEST(the_search_is_bounded)
{
	const size_t window = 4u << 20, size = window + 64;
	u8 *bytes = malloc(size);

	memset(bytes, 0xaa, size);
	memcpy(bytes + window - 9, RTIT_PSB PLAIN, sizeof(RTIT_PSB PLAIN) - 1);
	ck_assert_int_eq(vmpt_isa_detect(bytes, size), VMPT_ISA_RTIT);
	memset(bytes, 0xaa, size);
	memcpy(bytes + window - 8, RTIT_PSB PLAIN, sizeof(RTIT_PSB PLAIN) - 1);
	ck_assert_int_eq(vmpt_isa_detect(bytes, size), -1);
	free(bytes);
}
END_TEST

START_TEST(a_trace_is_of_one_isa)
{
	struct vmpt_trace *t;
	struct vmpt_diag diag;

	ck_assert_int_eq(vmpt_trace_open(&t, FILE_OF("a", RTIT_PSB PLAIN), 0, &diag), 0);
	ck_assert_int_eq(vmpt_trace_add_raw(t, FILE_OF("b", PT_PSB), 1, &diag), -VMPT_E_INVAL);
	ck_assert_str_eq(diag.text, "its first PSB is of Intel PT, but the files before it are of "
				    "RTIT: a trace is of one of the two");
	ck_assert_uint_eq(vmpt_trace_streams(t), 1);
	ck_assert_int_eq(vmpt_trace_add_raw(t, FILE_OF("c", RTIT_PSB), 2, &diag), 0);
	ck_assert_int_eq(vmpt_trace_add_raw(t, FILE_OF("d", "no PSB"), 3, &diag), 0);
	ck_assert_int_eq(vmpt_trace_stream(t, 1)->isa, VMPT_ISA_RTIT);
	ck_assert_int_eq(vmpt_trace_stream(t, 2)->isa, VMPT_ISA_RTIT);
	vmpt_trace_close(t);
}
END_TEST

/* CPU 0 was idle: its file is empty and does not decide. */
START_TEST(files_without_a_psb_follow_the_others)
{
	struct vmpt_trace *t;

	ck_assert_int_eq(vmpt_trace_open(&t, test_dir_file("a", "", 0), 0, NULL), 0);
	ck_assert_int_eq(vmpt_trace_info(t)->isa, VMPT_ISA_PT);
	ck_assert_int_eq(vmpt_trace_add_raw(t, FILE_OF("b", RTIT_PSB PLAIN), 1, NULL), 0);
	ck_assert_int_eq(vmpt_trace_info(t)->isa, VMPT_ISA_RTIT);
	ck_assert_int_eq(vmpt_trace_stream(t, 0)->isa, VMPT_ISA_RTIT);
	ck_assert_int_eq(vmpt_trace_stream(t, 1)->isa, VMPT_ISA_RTIT);
	vmpt_trace_close(t);
}
END_TEST

START_TEST(the_caller_may_know_better)
{
	struct vmpt_trace *t;

	ck_assert_int_eq(vmpt_trace_open_rtit(&t, FILE_OF("a", PT_PSB), 4, NULL), 0);
	ck_assert_int_eq(vmpt_trace_info(t)->isa, VMPT_ISA_RTIT);
	ck_assert_int_eq(vmpt_trace_stream(t, 0)->isa, VMPT_ISA_RTIT);
	ck_assert_int_eq(vmpt_trace_stream(t, 0)->cpu, 4);
	ck_assert_int_eq(vmpt_trace_add_raw(t, FILE_OF("b", PT_PSB), 1, NULL), 0);
	ck_assert_int_eq(vmpt_trace_stream(t, 1)->isa, VMPT_ISA_RTIT);
	vmpt_trace_close(t);
	ck_assert_int_eq(vmpt_trace_open_raw(&t, FILE_OF("a", RTIT_PSB), 0, NULL), 0);
	ck_assert_int_eq(vmpt_trace_info(t)->isa, VMPT_ISA_PT);
	ck_assert_int_eq(vmpt_trace_add_raw(t, FILE_OF("b", RTIT_PSB), 1, NULL), 0);
	ck_assert_int_eq(vmpt_trace_stream(t, 1)->isa, VMPT_ISA_PT);
	vmpt_trace_close(t);
	/* Set after opening, for all files */
	ck_assert_int_eq(vmpt_trace_open(&t, FILE_OF("a", RTIT_PSB), 0, NULL), 0);
	ck_assert_int_eq(vmpt_trace_set_isa(t, VMPT_ISA_PT), 0);
	ck_assert_int_eq(vmpt_trace_add_raw(t, FILE_OF("b", RTIT_PSB), 1, NULL), 0);
	ck_assert_int_eq(vmpt_trace_info(t)->isa, VMPT_ISA_PT);
	ck_assert_int_eq(vmpt_trace_stream(t, 0)->isa, VMPT_ISA_PT);
	ck_assert_int_eq(vmpt_trace_stream(t, 1)->isa, VMPT_ISA_PT);
	vmpt_trace_close(t);
}
END_TEST

TEST_SUITE()
{
	Suite *s = suite_create("decoder/isa");
	TCase *t = tcase_create("isa");

	tcase_add_checked_fixture(t, setup, test_dir_remove);
	tcase_add_loop_test(t, the_first_psb_decides, 0, VMPT_ARRAY_SIZE(heads));
	tcase_add_test(t, the_search_is_bounded);
	tcase_add_test(t, a_trace_is_of_one_isa);
	tcase_add_test(t, files_without_a_psb_follow_the_others);
	tcase_add_test(t, the_caller_may_know_better);
	suite_add_tcase(s, t);
	return s;
}
