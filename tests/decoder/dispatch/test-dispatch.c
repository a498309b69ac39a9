// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* decoder/dispatch/: the stream's isa chooses between PT and RTIT, once, for all calls. */
#include "decoder/isa.h"
#include "tests/support/support.h"

/* PT's PSB and PSBEND (SDM 3 33.4.2.17), then RTIT's PSB and a TNT of one branch (4.2.1, 4.2.2). */
static const u8 both[] = { 0x02, 0x82, 0x02, 0x82, 0x02, 0x82, 0x02, 0x82, 0x02, 0x82,
			   0x02, 0x82, 0x02, 0x82, 0x02, 0x82, 0x02, 0x23, 0xc0, 0x00,
			   0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x03 };

static const struct {
	enum vmpt_isa isa;
	unsigned int kind; /* of the first packet, and where */
	u64 offset;
} rows[] = {
	{ VMPT_ISA_PT, VMPT_PT_PSB, 0 },
	{ VMPT_ISA_RTIT, (unsigned int)VMPT_ITEM_RTIT + VMPT_RTIT_PSB, 18 },
};

/* _i & 2: with options that are all 0, instead of none */
START_TEST(decoder)
{
	const struct vmpt_stream stream = { .data = both,
					    .size = sizeof(both),
					    .isa = (u8)rows[_i & 1].isa };
	const struct vmpt_options none = { 0 };
	struct vmpt_cursor at = { 0 };
	struct vmpt_decoder *dec;
	struct vmpt_packet pkt;
	u64 end = 0;
	int ret;

	ck_assert_int_eq(vmpt_decoder_open(&dec, &stream, _i & 2 ? &none : NULL), 0);
	vmpt_decoder_time_only(dec);
	do
		ret = vmpt_packet_next(dec, &at, &pkt);
	while (ret == 1 && pkt.kind == VMPT_ITEM_LOSS);
	ck_assert_int_eq(ret, 1);
	ck_assert_uint_eq(pkt.kind, rows[_i & 1].kind);
	ck_assert_uint_eq(pkt.offset, rows[_i & 1].offset);
	do
		end = pkt.offset + pkt.size;
	while ((ret = vmpt_packet_next(dec, &at, &pkt)) == 1);
	ck_assert_int_eq(ret, 0);
	ck_assert(_i & 1 ? end == sizeof(both) : end > 18);
	vmpt_decoder_close(dec);
}
END_TEST

START_TEST(splitter)
{
	const struct vmpt_stream stream = { .data = both,
					    .size = sizeof(both),
					    .isa = (u8)rows[_i & 1].isa };
	const struct vmpt_options none = { 0 };
	struct vmpt_splitter *split;
	struct vmpt_slice slice;
	u64 end = 0;
	int ret;

	ck_assert_int_eq(vmpt_splitter_open(&split, &stream, _i & 2 ? &none : NULL), 0);
	while ((ret = vmpt_split_next(split, &slice)) == 1) {
		ck_assert_uint_eq(slice.offset, end);
		/* RTIT's first slice is what is before its PSB. */
		if (!end)
			ck_assert_uint_eq(slice.size == 18, rows[_i & 1].isa == VMPT_ISA_RTIT);
		end += slice.size;
	}
	ck_assert_int_eq(ret, 0);
	ck_assert_uint_eq(end, sizeof(both));
	vmpt_splitter_close(split);
}
END_TEST

START_TEST(nothing_to_close)
{
	vmpt_decoder_close(NULL);
	vmpt_splitter_close(NULL);
}
END_TEST

TEST_SUITE()
{
	Suite *s = suite_create("decoder/dispatch");
	TCase *t = tcase_create("dispatch");

	tcase_add_loop_test(t, decoder, 0, 4);
	tcase_add_loop_test(t, splitter, 0, 4);
	tcase_add_test(t, nothing_to_close);
	suite_add_tcase(s, t);
	return s;
}
