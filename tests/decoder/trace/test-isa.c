// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* decoder/trace/isa.c and its use when opening: whether raw files are of Intel PT or RTIT. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "decoder/trace/trace.h"
#include "tests/decoder/perf-writer.h"
#include "tests/support/support.h"

#define PT_PSB	 "\x02\x82\x02\x82\x02\x82\x02\x82\x02\x82\x02\x82\x02\x82\x02\x82"
#define RTIT_PSB "\xc0\0\0\0\0\0\0\0\0"
/* FUP.PGE 401000H, TIP 401020H, TNT; without and with cycle counts of one byte */
#define PLAIN  "\x85\x00\x10\x40\x00\xb5\x20\x10\x40\x00\x43"
#define PLAIN6 PLAIN PLAIN PLAIN PLAIN PLAIN PLAIN
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
	HEAD("RTIT after the end of a packet", "\0\0\0\0" RTIT_PSB PLAIN, VMPT_ISA_RTIT),
	HEAD("RTIT, cut", RTIT_PSB PLAIN "\x86\x00\x10", VMPT_ISA_RTIT),
	HEAD("RTIT, then other bytes", RTIT_PSB PLAIN6 RTIT_PSB PLAIN "\xff\xff", VMPT_ISA_RTIT),
	HEAD("RTIT after other bytes", "\xc0\0\0\0\0\0\0\0\0\0\xff" RTIT_PSB PLAIN6 RTIT_PSB,
	     VMPT_ISA_RTIT),
	HEAD("a PSB that a damaged packet swallowed", RTIT_PSB PLAIN "\xb6\x11\x22" RTIT_PSB PLAIN,
	     VMPT_ISA_RTIT),
	HEAD("RTIT, damaged after the first packets", RTIT_PSB PLAIN6 "\xff\xff" RTIT_PSB "\x43",
	     VMPT_ISA_RTIT),
	HEAD("a whole file of one packet", RTIT_PSB "\xc1", VMPT_ISA_RTIT),
	/* Nothing proves these. */
	HEAD("RTIT's PSB and no more", RTIT_PSB, -1),
	HEAD("RTIT's PSB and a piece of a packet", RTIT_PSB "\x86\x00\x10", -1),
	HEAD("RTIT's PSBs alone", RTIT_PSB RTIT_PSB RTIT_PSB RTIT_PSB, -1),
	HEAD("some packets after one PSB, then other bytes", "x" RTIT_PSB PLAIN6 "\xff\xff", -1),
	HEAD("few after one at the start, then other bytes", RTIT_PSB PLAIN PLAIN "\xff\xff", -1),
	HEAD("two packets after one PSB", "x" RTIT_PSB "\xc5\x07\xc5\x08", -1),
	HEAD("text after RTIT's PSB", RTIT_PSB "Text is like TNTs to the end of a file.", -1),
	HEAD("text between RTIT's PSBs", RTIT_PSB "Text is like TNTs" RTIT_PSB "Text is like TNTs",
	     -1),
	/* The PSB of PT cannot be there by chance. */
	HEAD("RTIT's packets before PT", RTIT_PSB PLAIN6 RTIT_PSB PLAIN6 PT_PSB, VMPT_ISA_PT),
	HEAD("PT before RTIT", PT_PSB RTIT_PSB PLAIN, VMPT_ISA_PT),
	/* A PIP's last byte is C0H, padding follows. */
	HEAD("PT with padding", "\x02\x43\0\0\0\0\0\xc0\0\0\0\0\0\0\0\0" PT_PSB, VMPT_ISA_PT),
	HEAD("PT with more padding", "\xc0\0\0\0\0\0\0\0\0\0\0\0" PT_PSB, VMPT_ISA_PT),
	HEAD("RTIT's PSB, then other bytes", RTIT_PSB "\xff\xff", -1),
	HEAD("RTIT, damaged after the first", RTIT_PSB "\xff" RTIT_PSB PLAIN, VMPT_ISA_RTIT),
#undef HEAD
};

START_TEST(files_prove_their_isa)
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
#define PROVEN RTIT_PSB PLAIN6 RTIT_PSB
	const size_t window = 4u << 20, size = window + 128;
	u8 *bytes = malloc(size);

	memset(bytes, 0xaa, size);
	memcpy(bytes + window - 9, PROVEN, sizeof(PROVEN) - 1);
	ck_assert_int_eq(vmpt_isa_detect(bytes, size), VMPT_ISA_RTIT);
	memset(bytes, 0xaa, size);
	memcpy(bytes + window - 8, PROVEN, sizeof(PROVEN) - 1);
	ck_assert_int_eq(vmpt_isa_detect(bytes, size), -1);
	free(bytes);
}
END_TEST

/* PSBs further apart than RTIT can send them. */
START_TEST(a6_psbs_far_apart_prove_nothing)
{
	static const u8 damage[] = { 0xb8, 0x11, 0x22 };
	const size_t max = 64u << 10;
	u8 *bytes = malloc(max);
	size_t apart, at, step;

	for (apart = 16u << 10; apart <= 32u << 10; apart *= 2) {
		for (at = 0; at < max; at += step) {
			bool psb = at % apart == 1; /* no file begins with it */

			step = psb ? sizeof(RTIT_PSB) - 1 : 1;
			/* TNTs, and a FUP.Far with no byte of LIP but two */
			memcpy(bytes + at, psb ? RTIT_PSB : "\x43", step);
		}
		memcpy(bytes + 100, damage, sizeof(damage));
		ck_assert_int_eq(vmpt_isa_detect(bytes, max),
				 apart == 16u << 10 ? VMPT_ISA_RTIT : -1);
	}
	free(bytes);
}
END_TEST

/* ---- what is not RTIT ---- */

static const char *const programs[] = { "/usr/bin/perf", "/lib/x86_64-linux-gnu/libc.so.6" };

/* The isa that a file opens with. */
static enum vmpt_isa isa_of(const char *path)
{
	struct vmpt_trace *t;
	enum vmpt_isa isa;

	ck_assert_int_eq(vmpt_trace_open(&t, path, 0, NULL), 0);
	isa = vmpt_trace_info(t)->isa;
	vmpt_trace_close(t);
	return isa;
}

static bool exists(const char *path)
{
	return !access(path, R_OK);
}

START_TEST(a6_programs_are_no_rtit)
{
	if (exists(programs[_i]))
		ck_assert_int_eq((int)isa_of(programs[_i]), VMPT_ISA_PT);
}
END_TEST

/*
 * A page image of over 4 MiB, as a fuzzer's log may have at its head: tables of C0H, zeros and
 * text, code, then PT.
 */
START_TEST(a6_page_images_before_pt_are_no_rtit)
{
	static const char record[] = "\xc0\0\0\0\0\0\0\0\0\x48\x89\xe5 text and more of it";
	const size_t head = 5u << 20, size = head + 64;
	static const char pt[] = PT_PSB "\x02\x23", rtit[] = RTIT_PSB PLAIN6;
	struct test_rng rng = { 6 };
	u8 *bytes = malloc(size);
	size_t at = 0, n;

	while (at < head) {
		n = sizeof(record) - 1;
		n = head - at < n ? head - at : n;
		memcpy(bytes + at, record, n);
		at += n;
		for (n = test_random(&rng) % 64; n && at < head; n--)
			bytes[at++] = (u8)test_random(&rng);
	}
	memset(bytes + head, 0, size - head);
	memcpy(bytes + head, pt, sizeof(pt) - 1);
	ck_assert_int_eq((int)isa_of(test_dir_file("log.pt", bytes, size)), VMPT_ISA_PT);
	/* Even if all of it reads as RTIT. */
	for (at = 0; at + sizeof(rtit) - 1 <= head; at += sizeof(rtit) - 1)
		memcpy(bytes + at, rtit, sizeof(rtit) - 1);
	memset(bytes + at, 0x43, head - at);
	ck_assert_int_eq((int)isa_of(test_dir_file("log.pt", bytes, size)), VMPT_ISA_PT);
	ck_assert_int_eq((int)isa_of(test_dir_file("log.pt", bytes, head)), VMPT_ISA_RTIT);
	free(bytes);
}
END_TEST

/* A magic with one wrong byte, or none left. */
START_TEST(a6_a_perf_data_with_a_damaged_magic_is_an_error)
{
	struct perf_writer w;
	struct vmpt_trace *t;
	struct vmpt_diag diag;
	unsigned int i;
	u8 was;

	writer_start(&w, _i);
	writer_info(&w, false, WRITER_PRIVS);
	writer_auxtrace(&w, 0, -1, 0, (const u8 *)PT_PSB "\x02\x23", 18);
	writer_finish(&w);
	ck_assert_int_eq(vmpt_trace_open(&t, test_dir_file("p", w.buf, w.size), 0, NULL), 0);
	vmpt_trace_close(t);
	for (i = 0; i <= 8; i++) {
		was = w.buf[i % 8];
		w.buf[i % 8] ^= 1;
		if (i == 8)
			memcpy(w.buf, RTIT_PSB, 8);
		ck_assert_int_eq(vmpt_trace_open(&t, test_dir_file("p", w.buf, w.size), 0, &diag),
				 -VMPT_E_FORMAT);
		ck_assert_str_eq(diag.text, "a perf.data with a damaged magic: it does not start "
					    "with PERFILE2");
		ck_assert_ptr_null(t);
		w.buf[i % 8] = was;
	}
	/* Not asked for by someone who says that it is a raw trace. */
	ck_assert_int_eq(vmpt_trace_open_raw(&t, test_dir_file("p", w.buf, w.size), 0, NULL), 0);
	vmpt_trace_close(t);
	writer_free(&w);
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
	tcase_add_loop_test(t, files_prove_their_isa, 0, VMPT_ARRAY_SIZE(heads));
	tcase_add_test(t, the_search_is_bounded);
	tcase_add_test(t, a6_psbs_far_apart_prove_nothing);
	tcase_add_loop_test(t, a6_programs_are_no_rtit, 0, VMPT_ARRAY_SIZE(programs));
	tcase_add_test(t, a6_page_images_before_pt_are_no_rtit);
	tcase_add_loop_test(t, a6_a_perf_data_with_a_damaged_magic_is_an_error, 0, 2);
	tcase_add_test(t, a_trace_is_of_one_isa);
	tcase_add_test(t, files_without_a_psb_follow_the_others);
	tcase_add_test(t, the_caller_may_know_better);
	suite_add_tcase(s, t);
	return s;
}
