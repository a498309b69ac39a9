// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Items of RTIT: bytes written out from Figure 2 and 4.2, and the results of decoder and splitter.
 */
#include "decoder/vmpt-decode.h"
#include "tests/decoder/rtit-check.h"

START_TEST(every_kind)
{
	static const u8 bytes[] = {
		PSB,					  /* 0 */
		0x80, 0x34, 0x12,			  /* 9: PGE, CNT 0 */
		0x82, 0x56, 0x34, 0x12, 0xaa, 0xbb, 0xcc, /* 12: PGE, CNT 2 */
		0x8c, 0x78, 0x56,			  /* 19: PGD, Zext, CNT 0 */
		0x95, 0x11, 0x22, 0x33, 0x44,		  /* 22: BuffOvf, Zext, CNT 1 */
		0x98, 0x99, 0x88,			  /* 27: PCC, CNT 0 */
		0xb1, 0x01, 0x02, 0x03, 0x04,		  /* 30: TIP, CNT 1 */
		0xba, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, /* 35: Far, CNT 2 */
		0x02, 0x07, 0x0a, 0x1f, 0x20, 0x7f,	  /* 42: TNTs of 1 to 6 */
		0xc1,					  /* 48: TraceSTOP */
		0xc3, 0x01, 0x20, 0x30, 0x40, 0x50,	  /* 49: PIP, PG */
		0xc2, 0x00, 0xf0, 0x00, 0x00, 0xff,	  /* 55: PIP */
		0xc6, 0xab,				  /* 61: MTC, RNG 2 */
		0xd5, 0x8f, 0x11, 0x22, 0x33, 0x44, 0x55, /* 63: STS, ACBR 010110b, ECBR 15 */
	};

	CHECK(bytes, PLAIN, { 0, 0, 9, K(PSB), 0 }, { 9, 0x1234, 3, K(PGE), NO_LIP },
	      { 12, 0xccbbaa123456, 7, K(PGE), 2 }, { 19, 0x5678, 3, K(PGD), 4 },
	      { 22, 0x44332211, 5, K(BUFF_OVF), 5 }, { 27, 0x44338899, 3, K(PCC), 0 },
	      { 30, 0x04030201, 5, K(TIP), 1 }, { 35, 0xffffffffffff, 7, K(FAR), 2 },
	      { 42, 0x02, 1, K(TNT), 0 }, { 43, 0x07, 1, K(TNT), 0 }, { 44, 0x0a, 1, K(TNT), 0 },
	      { 45, 0x1f, 1, K(TNT), 0 }, { 46, 0x20, 1, K(TNT), 0 }, { 47, 0x7f, 1, K(TNT), 0 },
	      { 48, 0, 1, K(TRACESTOP), 0 }, { 49, 0x10000000000ULL | 0x5040302001, 6, K(PIP), 0 },
	      { 55, 0xff0000f000, 6, K(PIP), 0 }, { 61, 0x2ab, 2, K(MTC), IGNORE(7) },
	      { 63, 0x5544332211ULL | 22ULL << 40 | 15ULL << 46, 7, K(STS), 0 });
}
END_TEST

START_TEST(cycle_counts)
{
	static const u8 bytes[] = {
		PSB,					     /* 0 */
		0x82, 1,    2,	  3,	4,    5,    6, 0x01, /* 9: PGE, +0 */
		0x0a,					     /* 17: TNT of 3: none */
		0x40, 0x05,				     /* 18: TNT of 6: +1 */
		0xb0, 0x07, 0x08, 0xff, 0xff, 0xff,	     /* 20: TIP: all 22 bits */
		0xc4, 0x01, 0x06, 0x02,			     /* 26: MTC: 1 | 2 << 6 */
		0xc1,					     /* 30: TraceSTOP: none */
	};

	CHECK(bytes, CYCLES, { 0, 0, 9, K(PSB), 0 }, { 9, 0x060504030201, 7, K(PGE), 2 },
	      { 16, 0, 1, CYC, 0 }, { 17, 0x0a, 1, K(TNT), 0 }, { 18, 0x40, 1, K(TNT), 0 },
	      { 19, 1, 1, CYC, BY(6) }, { 20, 0x060504030807, 3, K(TIP), 0 },
	      { 23, 0x3fffff, 3, CYC, BY(6) }, { 26, 0x001, 2, K(MTC), IGNORE(7) },
	      { 28, 1 | 2 << 6, 2, CYC, BY(6) }, { 30, 0, 1, K(TRACESTOP), 0 });
}
END_TEST

/* Reserved headers, a TNT without a branch, CNT 11b, CCNT 00b: a loss up to the next PSB. */
START_TEST(errors)
{
	static const struct {
		u8 bytes[3];
		bool cycles;
		u8 err;
	} row[] = {
		{ { 0x00 }, false, VMPT_E_OPCODE },	     { { 0x01 }, false, VMPT_E_OPCODE },
		{ { 0xa0 }, false, VMPT_E_OPCODE },	     { { 0xaf }, false, VMPT_E_OPCODE },
		{ { 0xc8 }, false, VMPT_E_OPCODE },	     { { 0xcf }, false, VMPT_E_OPCODE },
		{ { 0xe0 }, false, VMPT_E_OPCODE },	     { { 0xff }, false, VMPT_E_OPCODE },
		{ { 0x83 }, false, VMPT_E_IPBYTES },	     { { 0xb7 }, false, VMPT_E_IPBYTES },
		{ { 0xc0, 0, 1 }, false, VMPT_E_PSB },	     { { 0x40, 0x04 }, true, VMPT_E_CCNT },
		{ { 0xc4, 0x00, 0x00 }, true, VMPT_E_CCNT },
	};
	u8 bytes[] = { 0x7f, PSB, 0x02, 0, 0, 0, PSB, 0x03 };
	struct vmpt_stream stream;
	size_t i;

	for (i = 0; i < VMPT_ARRAY_SIZE(row); i++) {
		const struct rtit_want want[] = {
			{ 0, 1, 0, VMPT_ITEM_LOSS, VMPT_E_SYNC },
			{ 1, 0, 9, K(PSB), 0 },
			{ 10, 0x02, 1, K(TNT), 0 },
			{ 11, 3, 0, VMPT_ITEM_LOSS, row[i].err },
			{ 14, 0, 9, K(PSB), 0 },
			{ 23, 0x03, 1, K(TNT), 0 },
		};
		struct vmpt_options o = { .cycle_acc = row[i].cycles ? VMPT_CYCLE_ACC_YES
								     : VMPT_CYCLE_ACC_NO };

		memcpy(bytes + 11, row[i].bytes, 3);
		stream = rtit_stream(bytes, sizeof(bytes));
		rtit_check(&stream, &o, want, VMPT_ARRAY_SIZE(want));
	}
}
END_TEST

/* A packet's first bytes and a PSB: the packet is lost, and the PSB is not. */
START_TEST(a1_psb_cuts_a_packet)
{
	static const struct {
		u8 bytes[3];
		bool cycles;
	} row[] = {
		{ { 0x03, 0x03, 0xc4 }, false }, /* an MTC of two bytes: one of the PSB */
		{ { 0x03, 0xb2, 0x11 }, false }, /* a TIP of seven: five */
		{ { 0x03, 0xd0, 0x11 }, false }, /* an STS: five */
		{ { 0x03, 0xc2, 0x11 }, false }, /* a PIP of six: four */
		{ { 0x03, 0xb0, 0x11 }, false }, /* a TIP of three: one */
		{ { 0xc4, 0x11, 0x03 }, true },	 /* an MTC with one of three bytes of its count */
	};
	static const u8 lost[] = { 1, 2, 2, 2, 2, 3 };
	u8 bytes[] = { PSB, 0, 0, 0, PSB, 0x03 };
	struct vmpt_stream stream;
	size_t i;

	for (i = 0; i < VMPT_ARRAY_SIZE(row); i++) {
		struct vmpt_options o = { .cycle_acc = row[i].cycles ? VMPT_CYCLE_ACC_YES
								     : VMPT_CYCLE_ACC_NO };
		struct rtit_want want[6] = { { 0, 0, 9, K(PSB), 0 } };
		u8 at = 9;
		size_t n = 1;

		memcpy(bytes + 9, row[i].bytes, 3);
		for (; at < 12 - lost[i]; at++)
			want[n++] = (struct rtit_want){ at, 0x03, 1, K(TNT), 0 };
		want[n++] = (struct rtit_want){ at, lost[i], 0, VMPT_ITEM_LOSS, VMPT_E_CUT };
		want[n++] = (struct rtit_want){ 12, 0, 9, K(PSB), 0 };
		want[n++] = (struct rtit_want){ 21, 0x03, 1, K(TNT), 0 };
		stream = rtit_stream(bytes, sizeof(bytes));
		rtit_check(&stream, &o, want, n);
	}
}
END_TEST

/* LIPs by Table 18; Last LIP is kept over a PSB (3.3.9) and is the LIP sent, ignored or not. */
START_TEST(lips)
{
	static const u8 bytes[] = {
		PSB,					  /* 0 */
		0xb2, 0x11, 0x22, 0x33, 0x44, 0x55, 0x66, /* 9: all 6 bytes */
		0xb1, 0xaa, 0xbb, 0xcc, 0xdd,		  /* 16: 47:32 of the last */
		0xb0, 0x77, 0x88,			  /* 21: 47:16 of the last */
		PSB,					  /* 24 */
		0x80, 0x99, 0x99,			  /* 33: still of the last */
		0xb5, 0x01, 0x00, 0x40, 0x00,		  /* 36: 47:32 zero */
		0xb8, 0x02, 0x00,			  /* 41: of the last, zero above */
		0xb4, 0x03, 0x00,			  /* 44: 47:16 zero */
		0x88, 0x04, 0x00,			  /* 47: zero as the last */
		0xb6, 0x01, 0x00, 0x02, 0x00, 0x03, 0x00, /* 50: Zext means nothing with CNT 10b */
	};

	CHECK(bytes, PLAIN, { 0, 0, 9, K(PSB), 0 }, { 9, 0x665544332211, 7, K(TIP), 2 },
	      { 16, 0x6655ddccbbaa, 5, K(TIP), 1 }, { 21, 0x6655ddcc8877, 3, K(TIP), 0 },
	      { 24, 0, 9, K(PSB), 0 }, { 33, 0x6655ddcc9999, 3, K(PGE), 0 },
	      { 36, 0x400001, 5, K(TIP), 5 }, { 41, 0x400002, 3, K(FAR), 0 },
	      { 44, 0x3, 3, K(TIP), 4 }, { 47, 0x4, 3, K(PGD), 0 },
	      { 50, 0x300020001, 7, K(TIP), 6 });
}
END_TEST

/* Last LIP is unknown after a sync, a loss, and before a FUP.BuffOvf's own LIP. */
START_TEST(unknown_lips)
{
	static const u8 bytes[] = {
		PSB,					  /* 0 */
		0xb0, 0x11, 0x22,			  /* 9 */
		0xb1, 0x33, 0x44, 0x55, 0x66,		  /* 12 */
		0xb0, 0x77, 0x88,			  /* 17: what 12 sent is not all of a LIP */
		PSB,					  /* 20 */
		0xb0, 0x99, 0x99,			  /* 29 */
		0xb2, 0x01, 0x02, 0x03, 0x04, 0x05, 0x06, /* 32 */
		0x90, 0xaa, 0xaa, /* 39: BuffOvf, which it may not send so */
		0xb0, 0xbb, 0xbb, /* 42 */
		0x94, 0xcc, 0xcc, /* 45: BuffOvf, zeros above */
		0xb0, 0xdd, 0xdd, /* 48 */
		0xff,		  /* 51 */
		PSB,		  /* 52 */
		0xb0, 0xee, 0xee, /* 61 */
	};

	CHECK(bytes, PLAIN, { 0, 0, 9, K(PSB), 0 }, { 9, 0x2211, 3, K(TIP), NO_LIP },
	      { 12, 0x66554433, 5, K(TIP), NO_LIP | 1 }, { 17, 0x8877, 3, K(TIP), NO_LIP },
	      { 20, 0, 9, K(PSB), 0 }, { 29, 0x9999, 3, K(TIP), NO_LIP },
	      { 32, 0x060504030201, 7, K(TIP), 2 }, { 39, 0xaaaa, 3, K(BUFF_OVF), NO_LIP },
	      { 42, 0xbbbb, 3, K(TIP), NO_LIP }, { 45, 0xcccc, 3, K(BUFF_OVF), 4 },
	      { 48, 0xdddd, 3, K(TIP), 0 }, { 51, 1, 0, VMPT_ITEM_LOSS, VMPT_E_OPCODE },
	      { 52, 0, 9, K(PSB), 0 }, { 61, 0xeeee, 3, K(TIP), NO_LIP });
}
END_TEST

/* Cut at every byte: whole packets, and the rest of the last one is a loss. */
START_TEST(cut_ends)
{
	static const u8 bytes[] = {
		PSB, 0x82, 1, 2,    3,	  4, 5, 6, 0x07, 1, 2, 0xc2, 1, 2,
		3,   4,	   5, 0x05, 0xd0, 1, 2, 3, 4,	 5, 6, 0x06, 1, PSB,
	};
	/* Where packets begin. */
	static const u8 starts[] = { 0, 9, 19, 26, 35, 44 };
	struct vmpt_options o = CYCLES;
	struct vmpt_cursor at;
	struct vmpt_packet pkt;
	struct vmpt_decoder *dec;
	struct vmpt_stream stream;
	size_t n, begin, i;

	for (n = 1; n <= sizeof(bytes); n++) {
		for (i = 0; i + 1 < VMPT_ARRAY_SIZE(starts) && starts[i + 1] <= n; i++)
			;
		begin = starts[i];
		stream = rtit_stream(bytes, n);
		memset(&at, 0, sizeof(at));
		memset(&pkt, 0, sizeof(pkt));
		ck_assert_int_eq(vmpt_decoder_open(&dec, &stream, &o), 0);
		while (vmpt_packet_next(dec, &at, &pkt) == 1)
			ck_assert(pkt.offset <= begin);
		vmpt_decoder_close(dec);
		if (n > begin) {
			ck_assert_uint_eq(pkt.offset, begin);
			ck_assert_uint_eq(pkt.kind, VMPT_ITEM_LOSS);
			ck_assert_uint_eq(pkt.payload, n - begin);
			ck_assert_uint_eq(pkt.aux, n < 9 ? VMPT_E_SYNC : VMPT_E_TRUNCATED);
		} else {
			ck_assert_uint_ne(pkt.kind, VMPT_ITEM_LOSS);
		}
	}
}
END_TEST

/* A gap is an empty loss; after it the decoder synchronizes again. */
START_TEST(gaps)
{
	static const u8 bytes[] = {
		PSB,			   /* 0 */
		0xb2, 1,    2, 3, 4, 5, 6, /* 9 */
		0xb0, 7,    8,		   /* 16, a gap at 18 */
		0x55, 0x66,		   /* 19 */
		PSB,			   /* 21 */
		0xb0, 9,    9,		   /* 30 */
	};
	const struct vmpt_gap gaps[] = { { .offset = 18 }, { .offset = 21 } };
	const struct rtit_want want[] = {
		{ 0, 0, 9, K(PSB), 0 },
		{ 9, 0x060504030201, 7, K(TIP), 2 },
		{ 16, 2, 0, VMPT_ITEM_LOSS, VMPT_E_TRUNCATED },
		{ 18, 0, 0, VMPT_ITEM_LOSS, VMPT_E_GAP },
		{ 18, 3, 0, VMPT_ITEM_LOSS, VMPT_E_SYNC },
		{ 21, 0, 0, VMPT_ITEM_LOSS, VMPT_E_GAP },
		{ 21, 0, 9, K(PSB), 0 },
		{ 30, 0x0909, 3, K(TIP), NO_LIP },
	};
	struct vmpt_stream stream = rtit_stream(bytes, sizeof(bytes));

	stream.gaps = gaps;
	stream.gap_count = 2;
	rtit_check(&stream, &PLAIN, want, VMPT_ARRAY_SIZE(want));
}
END_TEST

START_TEST(headless)
{
	static const u8 bytes[] = { 0xb4, 0x01, 0x02, 0x07, PSB, 0x03 };
	struct vmpt_options o = { .headless = true, .cycle_acc = VMPT_CYCLE_ACC_NO };

	CHECK(bytes, o, { 0, 0x0201, 3, K(TIP), 4 }, { 3, 7, 1, K(TNT), 0 }, { 4, 0, 9, K(PSB), 0 },
	      { 13, 3, 1, K(TNT), 0 });
}
END_TEST

/* ---- detection of cycle counts ---- */

START_TEST(cycles_by_bytes)
{
	/* A count of 0 is no packet, one of 5 is a TNT of four branches before another. */
	static const u8 zero[] = { PSB, 0xb4, 1, 2, 0x01, 0x05 };
	static const u8 five[] = { PSB, 0xb4, 1, 2, 0x15, 0x42, 0x15, 0xb4, 3, 4, 0x15 };
	/* Read with counts the first TIP's is CCNT 00b, the second misses the PSB. */
	static const u8 none[] = { PSB, 0xb4, 1, 2, 0xb4, 3, 4 };
	static const u8 over[] = { PSB, 0xb4, 1, 2, 0x02, PSB, 0x02 };
	/* Both readings fit: without counts is chosen. */
	static const u8 either[] = { PSB, 0xb4, 1, 2, 0x05 };
	static const u8 nothing[] = { PSB, 0x05, 0xc1 };
	/*
	 * The cut packet at the end does not count against it: the other reaches the end by TNTs.
	 */
	static const u8 cut[] = { PSB, 0xb4, 1, 2, 0xb2, 1, 2, 3 };

	CHECK(zero, ((struct vmpt_options){ 0 }), { 0, 0, 9, K(PSB), 0 },
	      { 9, 0x201, 3, K(TIP), 4 }, { 12, 0, 1, CYC, 0 }, { 13, 5, 1, K(TNT), 0 });
	CHECK(five, ((struct vmpt_options){ 0 }), { 0, 0, 9, K(PSB), 0 },
	      { 9, 0x201, 3, K(TIP), 4 }, { 12, 5, 1, CYC, BY(6) }, { 13, 0x42, 1, K(TNT), 0 },
	      { 14, 5, 1, CYC, BY(6) }, { 15, 0x403, 3, K(TIP), 4 }, { 18, 5, 1, CYC, BY(6) });
	CHECK(none, ((struct vmpt_options){ 0 }), { 0, 0, 9, K(PSB), 0 },
	      { 9, 0x201, 3, K(TIP), 4 }, { 12, 0x403, 3, K(TIP), 4 });
	CHECK(over, ((struct vmpt_options){ 0 }), { 0, 0, 9, K(PSB), 0 },
	      { 9, 0x201, 3, K(TIP), 4 }, { 12, 2, 1, K(TNT), 0 }, { 13, 0, 9, K(PSB), 0 },
	      { 22, 2, 1, K(TNT), 0 });
	CHECK(either, ((struct vmpt_options){ 0 }), { 0, 0, 9, K(PSB), 0 },
	      { 9, 0x201, 3, K(TIP), 4 }, { 12, 5, 1, K(TNT), 0 });
	CHECK(nothing, ((struct vmpt_options){ 0 }), { 0, 0, 9, K(PSB), 0 }, { 9, 5, 1, K(TNT), 0 },
	      { 10, 0, 1, K(TRACESTOP), 0 });
	CHECK(cut, ((struct vmpt_options){ 0 }), { 0, 0, 9, K(PSB), 0 }, { 9, 0x201, 3, K(TIP), 4 },
	      { 12, 4, 0, VMPT_ITEM_LOSS, VMPT_E_TRUNCATED });
}
END_TEST

TEST_SUITE()
{
	Suite *s = suite_create("decoder/rtit-items");
	TCase *t = tcase_create("items");

	tcase_add_test(t, every_kind);
	tcase_add_test(t, cycle_counts);
	tcase_add_test(t, errors);
	tcase_add_test(t, a1_psb_cuts_a_packet);
	tcase_add_test(t, lips);
	tcase_add_test(t, unknown_lips);
	tcase_add_test(t, cut_ends);
	tcase_add_test(t, gaps);
	tcase_add_test(t, headless);
	tcase_add_test(t, cycles_by_bytes);
	suite_add_tcase(s, t);
	return s;
}
