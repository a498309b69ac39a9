// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The workarounds of RTIT's errata (Appendix E), the owners in the side record, and the counts of
 * slices, with bytes written out.
 */
#include "decoder/vmpt-decode.h"
#include "decoder/vmpt-rtit-flow.h"
#include "tests/decoder/rtit-check.h"

static const struct vmpt_owner host = { .kind = VMPT_OWNER_HOST, .sure = VMPT_ASSUMED };

/* The whole is one slice of the host's, with these in it. */
static void check_counts(const u8 *bytes, size_t size, const struct vmpt_options *o,
			 struct vmpt_slice want)
{
	struct vmpt_stream stream = rtit_stream(bytes, size);

	want.size = size;
	want.owner = host;
	rtit_check_slices(&stream, o, &want, 1);
}

#define COUNTS(bytes, options, ...) \
	check_counts(bytes, sizeof(bytes), &options, (struct vmpt_slice)__VA_ARGS__)

START_TEST(e1_far_inside)
{
	bool e1;

	/* A far transfer of 5 bytes at 0x1000. */
	ck_assert_uint_eq(vmpt_rtit_far_source(0x1005, 0x1000, 5, &e1), 0x1005);
	ck_assert(!e1);
	ck_assert_uint_eq(vmpt_rtit_far_source(0x1001, 0x1000, 5, &e1), 0x1005);
	ck_assert(e1);
	ck_assert_uint_eq(vmpt_rtit_far_source(0x1004, 0x1000, 5, &e1), 0x1005);
	ck_assert(e1);
	/* Its own fault; an interrupt somewhere else. */
	ck_assert_uint_eq(vmpt_rtit_far_source(0x1000, 0x1000, 5, &e1), 0x1000);
	ck_assert(!e1);
	ck_assert_uint_eq(vmpt_rtit_far_source(0xfff, 0x1000, 5, NULL), 0xfff);
	/* The upper half, and where 48 bits end. */
	ck_assert_uint_eq(vmpt_rtit_far_source(0xffff81000002, 0xffffffff81000000, 4, &e1),
			  0xffff81000004);
	ck_assert(e1);
	ck_assert_uint_eq(vmpt_rtit_far_source(1, 0xfffffffffffffffe, 5, &e1), 3);
	ck_assert(e1);
}
END_TEST

START_TEST(e2_extra_pgd)
{
	static const u8 bytes[] = {
		PSB,	      /* 0 */
		0xb4, 1,   0, /* 9: TIP: tracing was on before the stream */
		0x8c, 2,   0, /* 12: PGD */
		0xc1, PSB,    /* 15, 16: enabled anew, and still no PGE */
		0x8c, 3,   0, /* 25: extra */
		0x84, 4,   0, /* 28: PGE */
		0x8c, 5,   0, /* 31: PGD */
		0x94, 6,   0, /* 34: BuffOvf: a PGE may be lost */
		0x8c, 7,   0, /* 37: PGD */
		0x8c, 8,   0, /* 40: extra */
	};

	CHECK(bytes, PLAIN, { 0, 0, 9, K(PSB), 0 }, { 9, 1, 3, K(TIP), 4 }, { 12, 2, 3, K(PGD), 4 },
	      { 15, 0, 1, K(TRACESTOP), 0 }, { 16, 0, 9, K(PSB), 0 },
	      { 25, 3, 3, K(PGD), 4 | IGNORE(2) }, { 28, 4, 3, K(PGE), 4 }, { 31, 5, 3, K(PGD), 4 },
	      { 34, 6, 3, K(BUFF_OVF), 4 }, { 37, 7, 3, K(PGD), 4 },
	      { 40, 8, 3, K(PGD), 4 | IGNORE(2) });
	COUNTS(bytes, PLAIN,
	       { .enables = 1, .disables = 3, .overflows = 1, .errata = { [2] = 2 } });
}
END_TEST

/* After an enable PacketEn was 0 (3b of E2), unless a packet shows that there was none. */
START_TEST(e2_after_enable)
{
	static const u8 bytes[] = {
		PSB,			  /* 0: begins the stream */
		0xc4, 1,		  /* 9: MTC */
		0x8c, 1,   0,		  /* 11: the stream may be cut there */
		0x84, 2,   0,		  /* 14: PGE */
		0xc1, PSB,		  /* 17, 18 */
		0x8c, 3,   0,		  /* 27: extra */
		0x84, 4,   0,		  /* 30: PGE, and TriggerEn ends without a FUP.PGD */
		PSB,			  /* 33 */
		0x8c, 5,   0,		  /* 42: extra */
		0x84, 6,   0,		  /* 45: PGE */
		PSB,			  /* 48: whyever */
		0xb4, 6,   0,		  /* 57: TIP: it was no enable's */
		0x8c, 7,   0,		  /* 60: PGD */
		0x84, 8,   0, 0x94, 8, 0, /* 63, 66: PGE, BuffOvf */
		PSB,			  /* 69: an enable's, and its PGE may be lost */
		0x8c, 9,   0,		  /* 78: PGD */
	};

	CHECK(bytes, PLAIN, { 0, 0, 9, K(PSB), 0 }, { 9, 1, 2, K(MTC), IGNORE(7) },
	      { 11, 1, 3, K(PGD), 4 }, { 14, 2, 3, K(PGE), 4 }, { 17, 0, 1, K(TRACESTOP), 0 },
	      { 18, 0, 9, K(PSB), 0 }, { 27, 3, 3, K(PGD), 4 | IGNORE(2) }, { 30, 4, 3, K(PGE), 4 },
	      { 33, 0, 9, K(PSB), 0 }, { 42, 5, 3, K(PGD), 4 | IGNORE(2) }, { 45, 6, 3, K(PGE), 4 },
	      { 48, 0, 9, K(PSB), 0 }, { 57, 6, 3, K(TIP), 4 }, { 60, 7, 3, K(PGD), 4 },
	      { 63, 8, 3, K(PGE), 4 }, { 66, 8, 3, K(BUFF_OVF), 4 }, { 69, 0, 9, K(PSB), 0 },
	      { 78, 9, 3, K(PGD), 4 });
	COUNTS(bytes, PLAIN,
	       { .enables = 4, .disables = 3, .overflows = 1, .errata = { [2] = 2, [7] = 1 } });
}
END_TEST

/* @tnts bytes after a PSB, a packet of @last bytes, and the next PSB. */
static u8 e3_of(size_t tnts, size_t last, bool cycles)
{
	static const u8 mtc[3] = { 0xc4, 1, 5 }, tip[3] = { 0xb4, 1, 2 };
	static const u8 whole[7] = { 0xb2, 1, 2, 3, 4, 5, 6 };
	static u8 bytes[20000];
	struct vmpt_options o = cycles ? CYCLES : PLAIN;
	struct vmpt_cursor at = { 0 };
	struct vmpt_stream stream;
	struct vmpt_decoder *dec;
	struct vmpt_packet pkt;
	size_t n = 0;
	u8 aux = 0xff;

	memset(bytes, 0, sizeof(bytes));
	bytes[n] = 0xc0;
	n += 9;
	memset(bytes + n, 0x02, tnts);
	n += tnts;
	if (last == 3)
		memcpy(bytes + n, cycles ? mtc : tip, sizeof(mtc));
	else if (last == 7)
		memcpy(bytes + n, whole, sizeof(whole));
	n += last;
	bytes[n] = 0xc0;
	n += 9;
	stream = rtit_stream(bytes, n);
	ck_assert_int_eq(vmpt_decoder_open(&dec, &stream, &o), 0);
	while (vmpt_packet_next(dec, &at, &pkt) == 1)
		if (pkt.kind == K(PSB) && pkt.offset)
			aux = pkt.aux;
	vmpt_decoder_close(dec);
	return aux;
}

/* The bytes since the last PSB are counted from its first (3.3.9). */
START_TEST(e3_late_psb)
{
	/* 2,048 are reached by the last packet: in time. */
	ck_assert_uint_eq(e3_of(2048 - 9, 0, false), 0);
	ck_assert_uint_eq(e3_of(2047 - 9, 3, false), 0);
	ck_assert_uint_eq(e3_of(2045 - 9, 3, false), 0);
	ck_assert_uint_eq(e3_of(2041 - 9, 7, false), 0);
	ck_assert_uint_eq(e3_of(2046 - 9, 3, true), 0);
	/* They were reached before it: late. */
	ck_assert_uint_eq(e3_of(2049 - 9, 0, false), BY(3));
	ck_assert_uint_eq(e3_of(2048 - 9, 3, false), BY(3));
	ck_assert_uint_eq(e3_of(2054 - 9, 7, false), BY(3));
	ck_assert_uint_eq(e3_of(2048 - 9, 3, true), BY(3));
	/* By the other Pkt_Masks. */
	ck_assert_uint_eq(e3_of(4095 - 9, 7, false), 0);
	ck_assert_uint_eq(e3_of(4096 - 9, 7, false), BY(3));
	ck_assert_uint_eq(e3_of(8191 - 9, 3, false), 0);
	ck_assert_uint_eq(e3_of(8192 - 9, 3, false), BY(3));
	ck_assert_uint_eq(e3_of(16383 - 9, 3, false), 0);
	ck_assert_uint_eq(e3_of(16384 - 9, 3, false), BY(3));
	/* It came for another reason. */
	ck_assert_uint_eq(e3_of(100, 3, false), 0);
	ck_assert_uint_eq(e3_of(3000, 3, false), 0);
}
END_TEST

START_TEST(e4_goes_on)
{
	static const u8 bytes[] = {
		PSB,			/* 0 */
		0x94, 1,    0,	  0xc1, /* 9, 12: BuffOvf, and then the TraceSTOP held back: right
					 */
		PSB,			/* 13: enabled anew */
		0xc1, 0x02,		/* 22, 23 */
		0x94, 2,    0,		/* 24: goes on */
		0x94, 3,    0,		/* 27: as any other */
		0xc1, PSB,  0x94, 4,	0, /* 30, 31, 40: a new enable */
	};

	CHECK(bytes, PLAIN, { 0, 0, 9, K(PSB), 0 }, { 9, 1, 3, K(BUFF_OVF), 4 },
	      { 12, 0, 1, K(TRACESTOP), 0 }, { 13, 0, 9, K(PSB), 0 }, { 22, 0, 1, K(TRACESTOP), 0 },
	      { 23, 2, 1, K(TNT), 0 }, { 24, 2, 3, K(BUFF_OVF), 4 | BY(4) },
	      { 27, 3, 3, K(BUFF_OVF), 4 }, { 30, 0, 1, K(TRACESTOP), 0 }, { 31, 0, 9, K(PSB), 0 },
	      { 40, 4, 3, K(BUFF_OVF), 4 });
	COUNTS(bytes, PLAIN, { .overflows = 4, .errata = { [4] = 1 } });
}
END_TEST

START_TEST(e5_tip_behind_overflow)
{
	static const u8 bytes[] = {
		PSB,				 /* 0 */
		0x95, 1, 0, 0x40, 0, 0xb0, 1, 0, /* 9, 14: the same LIP */
		0xb0, 1, 0,			 /* 17: not directly after */
		0x95, 2, 0, 0x40, 0, 0xb0, 3, 0, /* 20, 25: another LIP */
		0x95, 4, 0, 0x40, 0, PSB,	 /* 28, 33: its own bytes' PSB between */
		0xb5, 4, 0, 0x40, 0,		 /* 42 */
		0x95, 5, 0, 0x40, 0, 0x02,	 /* 47, 52: a TNT between */
		0xb0, 5, 0,			 /* 53 */
		0x90, 6, 0, 0xb0, 6, 0,		 /* 56, 59: no LIP to be the same */
		0x94, 7, 0, 0xb8, 7, 0,		 /* 62, 65: no TIP */
	};

	CHECK(bytes, PLAIN, { 0, 0, 9, K(PSB), 0 }, { 9, 0x400001, 5, K(BUFF_OVF), 5 },
	      { 14, 0x400001, 3, K(TIP), IGNORE(5) }, { 17, 0x400001, 3, K(TIP), 0 },
	      { 20, 0x400002, 5, K(BUFF_OVF), 5 }, { 25, 0x400003, 3, K(TIP), 0 },
	      { 28, 0x400004, 5, K(BUFF_OVF), 5 }, { 33, 0, 9, K(PSB), 0 },
	      { 42, 0x400004, 5, K(TIP), 5 | IGNORE(5) }, { 47, 0x400005, 5, K(BUFF_OVF), 5 },
	      { 52, 2, 1, K(TNT), 0 }, { 53, 0x400005, 3, K(TIP), 0 },
	      { 56, 6, 3, K(BUFF_OVF), NO_LIP }, { 59, 6, 3, K(TIP), NO_LIP },
	      { 62, 7, 3, K(BUFF_OVF), 4 }, { 65, 7, 3, K(FAR), 0 });
	COUNTS(bytes, PLAIN, { .overflows = 6, .errata = { [5] = 2 } });
}
END_TEST

/*
 * A decoder takes at most 4096 tokens at a time. @_i PIPs and a PSB come before the FUP.BuffOvf:
 * the TIP, or the PSB before it, is among the next tokens.
 */
START_TEST(e5_across_pieces)
{
	static const u8 pip[6] = { 0xc2 },
			end[] = { 0x95, 4, 0, 0x40, 0, PSB, 0xb5, 4, 0, 0x40, 0 };
	static u8 bytes[9 + 4100 * sizeof(pip) + sizeof(end)] = { PSB };
	struct vmpt_cursor at = { 0 };
	struct vmpt_stream stream;
	struct vmpt_decoder *dec;
	struct vmpt_packet pkt;
	size_t n = 9;
	int i;

	for (i = 0; i < _i; i++, n += sizeof(pip))
		memcpy(bytes + n, pip, sizeof(pip));
	memcpy(bytes + n, end, sizeof(end));
	n += sizeof(end);
	stream = rtit_stream(bytes, n);
	ck_assert_int_eq(vmpt_decoder_open(&dec, &stream, &PLAIN), 0);
	while (vmpt_packet_next(dec, &at, &pkt) == 1)
		ck_assert_uint_eq(VMPT_RTIT_AUX_ERRATUM(pkt.aux), pkt.kind == K(TIP) ? 5 : 0);
	ck_assert_uint_eq(pkt.kind, K(TIP));
	ck_assert_uint_eq(pkt.aux, 5 | IGNORE(5));
	vmpt_decoder_close(dec);
	check_counts(bytes, n, &PLAIN,
		     (struct vmpt_slice){ .overflows = 1, .errata = { [5] = 1 } });
}
END_TEST

/* Counts that are one too low are marked; 0 may be 0 or 1. */
START_TEST(e6_cycle_counts)
{
	static const u8 bytes[] = {
		PSB, 0x42, 0x01, 0x43, 0x05, 0x44, 0x02, 0x01, 0x45, 0x03, 0, 0
	};

	CHECK(bytes, CYCLES, { 0, 0, 9, K(PSB), 0 }, { 9, 0x42, 1, K(TNT), 0 },
	      { 10, 0, 1, CYC, 0 }, { 11, 0x43, 1, K(TNT), 0 }, { 12, 1, 1, CYC, BY(6) },
	      { 13, 0x44, 1, K(TNT), 0 }, { 14, 0x40, 2, CYC, BY(6) }, { 16, 0x45, 1, K(TNT), 0 },
	      { 17, 0, 3, CYC, 0 });
	COUNTS(bytes, CYCLES, { .errata = { [6] = 2 } });
}
END_TEST

START_TEST(e7_first_mtc)
{
	static const u8 bytes[] = {
		PSB,  0xc4, 1,	  0xc4, 2,	 /* 0: tracing begins with the stream */
		0xc1, PSB,  0xc4, 3,	0xc4, 4, /* 13, 14: and again after a TraceSTOP */
		PSB,  0x02, 0xc4, 5,	0xc4, 6, /* 27: too soon to be any but an enable's */
		0xff,				 /* 41 */
		PSB,  0xc4, 7,			 /* 42: found again, not begun */
	};

	CHECK(bytes, PLAIN, { 0, 0, 9, K(PSB), 0 }, { 9, 1, 2, K(MTC), IGNORE(7) },
	      { 11, 2, 2, K(MTC), 0 }, { 13, 0, 1, K(TRACESTOP), 0 }, { 14, 0, 9, K(PSB), 0 },
	      { 23, 3, 2, K(MTC), IGNORE(7) }, { 25, 4, 2, K(MTC), 0 }, { 27, 0, 9, K(PSB), 0 },
	      { 36, 2, 1, K(TNT), 0 }, { 37, 5, 2, K(MTC), IGNORE(7) }, { 39, 6, 2, K(MTC), 0 },
	      { 41, 1, 0, VMPT_ITEM_LOSS, VMPT_E_OPCODE }, { 42, 0, 9, K(PSB), 0 },
	      { 51, 7, 2, K(MTC), 0 });
}
END_TEST

/* A PSB caused by the bytes begins nothing: the MTC after it is a good one. */
START_TEST(e7_periodic_psb)
{
	struct vmpt_options o = { .headless = true, .cycle_acc = VMPT_CYCLE_ACC_NO };
	/* Bytes from PSB to PSB, and whether the second is an enable's. */
	static const struct {
		size_t bytes;
		bool enable;
	} row[] = { { 2047, true },   { 2048, false }, { 2049, false }, { 2067, false },
		    { 2068, true },   { 4095, true },  { 4096, false }, { 16384, false },
		    { 16403, false }, { 16404, true }, { 32768, true } };
	static u8 bytes[40000];
	struct vmpt_slice want;
	size_t i, n;

	for (i = 0; i < VMPT_ARRAY_SIZE(row); i++) {
		memset(bytes, 0x02, sizeof(bytes));
		n = row[i].bytes + 1;
		/* The first is not at the stream's start. */
		memcpy(bytes + 1, (const u8[]){ PSB }, 9);
		memcpy(bytes + n, (const u8[]){ PSB, 0xc4, 0 }, 11);
		want = (struct vmpt_slice){ .errata = { [7] = row[i].enable } };
		/* The packet before is a TNT: from the second byte over the limit on it is late. */
		want.errata[3] = !row[i].enable && (row[i].bytes & 2047);
		check_counts(bytes, n + 11, &o, want);
	}
}
END_TEST

/* ---- owners ---- */

#define VM(n)                                      \
	{                                          \
		.kind = VMPT_OWNER_VM, .vmcs = (n) \
	}

START_TEST(runs_by_offset)
{
	static const u8 bytes[] = {
		PSB,			   /* 0 */
		0x84, 1, 0,		   /* 9: PGE */
		0xd0, 0, 0x11, 0, 0, 0, 0, /* 12: STS */
		0x8c, 1, 0,		   /* 19: PGD: VM exit */
		0xc4, 9, PSB,		   /* 22, 24: after it all is VM 7's */
		0x84, 2, 0,		   /* 33: PGE */
		0xc3, 0, 0x10, 0, 0, 0,	   /* 36: PIP */
		0xc2, 0, 0x20, 0, 0, 0,	   /* 42: PIP, CR0.PG = 0: no address space */
		0x8c, 2, 0,		   /* 48 */
		0x84, 3, 0,		   /* 51: VM 8 */
		0xd0, 0, 0x22, 0, 0, 0, 0, /* 54 */
		0xd0, 0, 0x33, 0, 0, 0, 0, /* 61 */
		0x8c, 3, 0,		   /* 68 */
		0x84, 4, 0,		   /* 71: VM 8 once more */
		0x8c, 4, 0,		   /* 74 */
		0x84, 5, 0,		   /* 77: the host */
	};
	const struct vmpt_run runs[] = {
		{ .at = 20, .owner = VM(7) },
		{ .at = 50, .owner = VM(9) },
		{ .at = 51, .owner = VM(8) },
		{ .at = 71, .owner = VM(8) },
		{ .at = 76, .owner = { .kind = VMPT_OWNER_HOST } },
	};
	const struct vmpt_slice want[] = {
		{ .size = 22,
		  .owner = host,
		  .has_tsc = true,
		  .first_tsc = 0x11,
		  .last_tsc = 0x11,
		  .enables = 1,
		  .disables = 1 },
		{ .offset = 22,
		  .size = 29,
		  .owner = VM(7),
		  .begin = VMPT_BEGIN_ENTRY,
		  .cr3 = { 0x1000 },
		  .cr3_count = 1,
		  .enables = 1,
		  .disables = 1,
		  .errata = { [7] = 1 } },
		{ .offset = 51,
		  .size = 26,
		  .owner = VM(8),
		  .begin = VMPT_BEGIN_SWITCH,
		  .has_tsc = true,
		  .first_tsc = 0x22,
		  .last_tsc = 0x33,
		  .enables = 2,
		  .disables = 2 },
		{ .offset = 77,
		  .size = 3,
		  .owner = { .kind = VMPT_OWNER_HOST },
		  .begin = VMPT_BEGIN_EXIT,
		  .enables = 1 },
	};
	struct vmpt_options o = { .cycle_acc = VMPT_CYCLE_ACC_NO, .runs = runs, .run_count = 5 };
	struct vmpt_stream stream = rtit_stream(bytes, sizeof(bytes));

	rtit_check_slices(&stream, &o, want, VMPT_ARRAY_SIZE(want));
}
END_TEST

/* A run from 0 on holds from the first byte; lost bytes have the owner that came meanwhile. */
START_TEST(runs_and_losses)
{
	static const u8 bytes[] = {
		PSB,  0x02,    /* 0 */
		0xff, 0,    0, /* 10: lost, VM 2's PGE in it */
		PSB,  0x03,    /* 13 */
		0x84, 2,    0, /* 23: VM 3 */
	};
	const struct vmpt_run runs[] = {
		{ .at = 0, .owner = VM(1) },
		{ .at = 11, .owner = VM(2) },
		{ .at = 13, .owner = VM(3) },
	};
	const struct vmpt_slice want[] = {
		{ .size = 10, .owner = VM(1) },
		{ .offset = 10,
		  .size = 3,
		  .owner = { .sure = VMPT_UNKNOWN },
		  .begin = VMPT_BEGIN_LOSS,
		  .loss = VMPT_E_OPCODE },
		{ .offset = 13,
		  .size = 10,
		  .owner = { .kind = VMPT_OWNER_VM, .vmcs = 2, .sure = VMPT_ASSUMED } },
		{ .offset = 23,
		  .size = 3,
		  .owner = VM(3),
		  .begin = VMPT_BEGIN_SWITCH,
		  .enables = 1 },
	};
	struct vmpt_options o = { .cycle_acc = VMPT_CYCLE_ACC_NO, .runs = runs, .run_count = 3 };
	struct vmpt_stream stream = rtit_stream(bytes, sizeof(bytes));

	rtit_check_slices(&stream, &o, want, VMPT_ARRAY_SIZE(want));
}
END_TEST

/* By time, with wraps of STS's 40 bits. After a FUP.PGD an STS shows that the next run began. */
START_TEST(runs_by_time)
{
	static const u8 bytes[] = {
		PSB, /* 0 */
		0xd0, 0,    0x00, 0xf0,
		0xff, 0xff, 0xff, 0x01, /* 9: STS FFFFFFF000H, +0 */
		0x84, 1,    0,	  0x01, /* 17: PGE */
		0x8c, 1,    0,	  0x05, /* 21: PGD */
		0xd0, 0,    0x00, 0x10,
		0,    0,    0,	  0x05, /* 25: STS 1000H of the next 2^40: VM 5 */
		0x84, 2,    0,	  0x01, /* 33: PGE */
		0x8c, 2,    0,	  0x05, /* 37 */
		0xd0, 0,    0x00, 0x20,
		0,    0,    0,	  0x05, /* 41: 2000H */
		0x84, 3,    0,	  0x01, /* 49: PGE: still VM 5 */
		0x8c, 3,    0,	  0x05, /* 53 */
		0xd0, 0,    0x00, 0x30,
		0,    0,    0,	  0x05, /* 57: 3000H: the host */
		0x84, 4,    0,	  0x01, /* 65: PGE */
	};
	const struct vmpt_run runs[] = {
		{ .at = 0x70000000800, .by_tsc = true, .owner = VM(5) },
		{ .at = 0x70000003000, .by_tsc = true, .owner = { .kind = VMPT_OWNER_HOST } },
	};
	const struct vmpt_slice want[] = {
		{ .size = 25,
		  .owner = host,
		  .has_tsc = true,
		  .first_tsc = 0xfffffff000,
		  .last_tsc = 0xfffffff000,
		  .enables = 1,
		  .disables = 1,
		  .errata = { [6] = 1 } },
		{ .offset = 25,
		  .size = 32,
		  .owner = { .kind = VMPT_OWNER_VM, .vmcs = 5, .sure = VMPT_ASSUMED },
		  .begin = VMPT_BEGIN_ENTRY,
		  .has_tsc = true,
		  .first_tsc = 0x1000,
		  .last_tsc = 0x2000,
		  .enables = 2,
		  .disables = 2,
		  .errata = { [6] = 4 } },
		{ .offset = 57,
		  .size = 12,
		  .owner = { .kind = VMPT_OWNER_HOST },
		  .begin = VMPT_BEGIN_EXIT,
		  .has_tsc = true,
		  .first_tsc = 0x3000,
		  .last_tsc = 0x3000,
		  .enables = 1,
		  .errata = { [6] = 1 } },
	};
	struct vmpt_options o = { .cycle_acc = VMPT_CYCLE_ACC_YES, .runs = runs, .run_count = 2 };
	struct vmpt_stream stream = rtit_stream(bytes, sizeof(bytes));

	rtit_check_slices(&stream, &o, want, VMPT_ARRAY_SIZE(want));
}
END_TEST

/* Batches are split where the owner changes. */
START_TEST(batches_of_one_owner)
{
	static const u8 bytes[] = { PSB, 0x02, 0x84, 1, 0, 0x03, 0x84, 2, 0, 0xff };
	static const u8 kinds[] = { VMPT_OWNER_HOST, VMPT_OWNER_VM, VMPT_OWNER_VM,
				    VMPT_OWNER_UNKNOWN };
	static const u64 vms[] = { 0, 1, 2, 0 };
	static const size_t counts[] = { 2, 2, 1, 1 };
	const struct vmpt_run runs[] = { { .at = 1, .owner = VM(1) },
					 { .at = 11, .owner = VM(2) } };
	struct vmpt_options o = { .cycle_acc = VMPT_CYCLE_ACC_NO, .runs = runs, .run_count = 2 };
	struct vmpt_stream stream = rtit_stream(bytes, sizeof(bytes));
	struct vmpt_decoder *dec;
	struct vmpt_batch batch;
	size_t i;

	ck_assert_int_eq(vmpt_decoder_open(&dec, &stream, &o), 0);
	for (i = 0; vmpt_batch_next(dec, &batch) == 1; i++) {
		ck_assert_uint_lt(i, 4);
		ck_assert_uint_eq(batch.owner.kind, kinds[i]);
		ck_assert_uint_eq(batch.owner.vmcs, vms[i]);
		ck_assert_uint_eq(batch.count, counts[i]);
	}
	ck_assert_uint_eq(i, 4);
	vmpt_decoder_close(dec);
}
END_TEST

TEST_SUITE()
{
	Suite *s = suite_create("decoder/rtit-errata");
	TCase *t = tcase_create("errata"), *owners = tcase_create("owners");

	tcase_add_test(t, e1_far_inside);
	tcase_add_test(t, e2_extra_pgd);
	tcase_add_test(t, e2_after_enable);
	tcase_add_test(t, e3_late_psb);
	tcase_add_test(t, e4_goes_on);
	tcase_add_test(t, e5_tip_behind_overflow);
	tcase_add_loop_test(t, e5_across_pieces, 4090, 4098);
	tcase_add_test(t, e6_cycle_counts);
	tcase_add_test(t, e7_first_mtc);
	tcase_add_test(t, e7_periodic_psb);
	tcase_add_test(owners, runs_by_offset);
	tcase_add_test(owners, runs_and_losses);
	tcase_add_test(owners, runs_by_time);
	tcase_add_test(owners, batches_of_one_owner);
	suite_add_tcase(s, t);
	suite_add_tcase(s, owners);
	return s;
}
