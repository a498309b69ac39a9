// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Items of RTIT: bytes written out from Figure 2 and 4.2, and what the decoder and the
 * splitter make of them. Both ways, the plain loop and the fast source, must agree.
 */
#include <stdlib.h>

#include "decoder/vmpt-decode.h"
#include "tests/decoder/streams.h"

#define K(kind) (VMPT_ITEM_RTIT + VMPT_RTIT_##kind)
#define PSB	0xc0, 0, 0, 0, 0, 0, 0, 0, 0

struct want {
	u64 offset, payload;
	u32 size;
	u8 kind, aux;
};

static const struct vmpt_owner host = { .kind = VMPT_OWNER_HOST, .sure = VMPT_ASSUMED };

static void check_packets(const struct vmpt_stream *stream, const struct vmpt_options *options,
			  const struct want *want, size_t n)
{
	struct vmpt_cursor at = { 0 };
	struct vmpt_decoder *dec;
	struct vmpt_packet pkt;
	size_t i;
	int ret;

	ck_assert_int_eq(vmpt_decoder_open(&dec, stream, options), 0);
	for (i = 0; (ret = vmpt_packet_next(dec, &at, &pkt)) == 1; i++) {
		must(i < n, "packet %zu: more than %zu", i, n);
		must(pkt.offset == want[i].offset && pkt.payload == want[i].payload &&
			     pkt.size == want[i].size && pkt.kind == want[i].kind &&
			     pkt.aux == want[i].aux,
		     "packet %zu (scalar %d): at 0x%llx size %u kind %u aux 0x%x payload 0x%llx, "
		     "want at 0x%llx size %u kind %u aux 0x%x payload 0x%llx",
		     i, options->scalar, (unsigned long long)pkt.offset, pkt.size, pkt.kind,
		     pkt.aux, (unsigned long long)pkt.payload, (unsigned long long)want[i].offset,
		     want[i].size, want[i].kind, want[i].aux, (unsigned long long)want[i].payload);
		if (pkt.kind == VMPT_ITEM_LOSS)
			must(pkt.owner.sure == VMPT_UNKNOWN, "a loss has an owner");
		else
			must(pkt.owner.kind == host.kind && pkt.owner.sure == host.sure,
			     "packet %zu: owner %u", i, pkt.owner.kind);
	}
	ck_assert_int_eq(ret, 0);
	ck_assert_uint_eq(i, n);
	vmpt_decoder_close(dec);
}

/* @bytes as a stream that ends where nothing can be read behind it. */
static void check(const u8 *bytes, size_t size, struct vmpt_options o, const struct want *want,
		  size_t n)
{
	struct vmpt_stream stream = { .size = size, .cpu = -1, .tid = -1, .isa = VMPT_ISA_RTIT };
	struct room room;

	room_copy(&room, bytes, size);
	stream.data = room.data;
	for (o.scalar = true;; o.scalar = false) {
		check_packets(&stream, &o, want, n);
		if (!o.scalar)
			break;
	}
	room_close(&room);
}

#define CHECK(bytes, options, ...)                                               \
	do {                                                                     \
		const struct want want_[] = { __VA_ARGS__ };                     \
		check(bytes, sizeof(bytes), (struct vmpt_options)options, want_, \
		      VMPT_ARRAY_SIZE(want_));                                   \
	} while (0)

#define PLAIN                                  \
	{                                      \
		.cycle_acc = VMPT_CYCLE_ACC_NO \
	}
#define CYCLES                                  \
	{                                       \
		.cycle_acc = VMPT_CYCLE_ACC_YES \
	}

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

	CHECK(bytes, PLAIN, { 0, 0, 9, K(PSB), 0 }, { 9, 0x1234, 3, K(PGE), VMPT_RTIT_AUX_NO_LIP },
	      { 12, 0xccbbaa123456, 7, K(PGE), 2 }, { 19, 0x5678, 3, K(PGD), 4 },
	      { 22, 0x44332211, 5, K(BUFF_OVF), 5 }, { 27, 0x44338899, 3, K(PCC), 0 },
	      { 30, 0x04030201, 5, K(TIP), 1 }, { 35, 0xffffffffffff, 7, K(FAR), 2 },
	      { 42, 0x02, 1, K(TNT), 0 }, { 43, 0x07, 1, K(TNT), 0 }, { 44, 0x0a, 1, K(TNT), 0 },
	      { 45, 0x1f, 1, K(TNT), 0 }, { 46, 0x20, 1, K(TNT), 0 }, { 47, 0x7f, 1, K(TNT), 0 },
	      { 48, 0, 1, K(TRACESTOP), 0 }, { 49, 0x10000000000ULL | 0x5040302001, 6, K(PIP), 0 },
	      { 55, 0xff0000f000, 6, K(PIP), 0 },
	      { 61, 0x2ab, 2, K(MTC), 7 << 5 | VMPT_RTIT_AUX_IGNORE },
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
	      { 16, 0, 1, VMPT_ITEM_RTIT_CYC, 0 }, { 17, 0x0a, 1, K(TNT), 0 },
	      { 18, 0x40, 1, K(TNT), 0 }, { 19, 1, 1, VMPT_ITEM_RTIT_CYC, 6 << 5 },
	      { 20, 0x060504030807, 3, K(TIP), 0 }, { 23, 0x3fffff, 3, VMPT_ITEM_RTIT_CYC, 6 << 5 },
	      { 26, 0x001, 2, K(MTC), 7 << 5 | VMPT_RTIT_AUX_IGNORE },
	      { 28, 1 | 2 << 6, 2, VMPT_ITEM_RTIT_CYC, 6 << 5 }, { 30, 0, 1, K(TRACESTOP), 0 });
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
		{ { 0x00 }, false, VMPT_E_OPCODE },	    { { 0x01 }, false, VMPT_E_OPCODE },
		{ { 0xa0 }, false, VMPT_E_OPCODE },	    { { 0xaf }, false, VMPT_E_OPCODE },
		{ { 0xc8 }, false, VMPT_E_OPCODE },	    { { 0xcf }, false, VMPT_E_OPCODE },
		{ { 0xe0 }, false, VMPT_E_OPCODE },	    { { 0xff }, false, VMPT_E_OPCODE },
		{ { 0x83 }, false, VMPT_E_IPBYTES },	    { { 0xb7 }, false, VMPT_E_IPBYTES },
		{ { 0xc0, 0, 1 }, false, VMPT_E_PSB },	    { { 0x40, 0x04 }, true, VMPT_E_CYC },
		{ { 0xc4, 0x00, 0x00 }, true, VMPT_E_CYC },
	};
	u8 bytes[] = { 0x7f, PSB, 0x02, 0, 0, 0, PSB, 0x03 };
	size_t i;

	for (i = 0; i < VMPT_ARRAY_SIZE(row); i++) {
		const struct want want[] = {
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
		check(bytes, sizeof(bytes), o, want, VMPT_ARRAY_SIZE(want));
	}
}
END_TEST

int main(void)
{
	Suite *s = suite_create("decoder/rtit-items");
	TCase *t = tcase_create("items");

	tcase_add_test(t, every_kind);
	tcase_add_test(t, cycle_counts);
	tcase_add_test(t, errors);
	suite_add_tcase(s, t);
	return test_main(s);
}
