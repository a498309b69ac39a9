// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The items of decoder/vmpt-decode.h, kind by kind: bytes, payload and aux written by hand from
 * that header's list. Reserved bits are set where possible: no item may have them.
 */
#include "decoder/pt/source.h"
#include "tests/support/support.h"

struct row {
	u8 kind, size, wire[11];
	u64 payload;
	u8 aux;
};

#define WIRE(...) .size = sizeof((const u8[]){ __VA_ARGS__ }), .wire = { __VA_ARGS__ }
#define K(k)	  .kind = VMPT_PT_##k

/* clang-format off */
static const struct row rows[] = {
	/* the full IP: Last IP is carried from row to row; aux IPBytes */
	{ K(TIP), WIRE(0x2d, 0x34, 0x12), .payload = 0x1234, .aux = 1 },
	{ K(FUP), WIRE(0x7d, 1, 2, 3, 4, 5, 0x86), .payload = 0xffff860504030201, .aux = 3 },
	{ K(TIP_PGD), WIRE(0x01), .payload = 0xffff860504030201, .aux = 0 },
	{ K(TIP_PGE), WIRE(0x51, 9, 8, 7, 6), .payload = 0xffff860506070809, .aux = 2 },
	{ K(TIP), WIRE(0x8d, 1, 2, 3, 4, 5, 6), .payload = 0xffff060504030201, .aux = 4 },
	{ K(TIP_PGD), WIRE(0xc1, 1, 2, 3, 4, 5, 6, 7, 8), .payload = 0x0807060504030201, .aux = 6 },
	{ K(TIP), WIRE(0x2d, 0xff, 0xff), .payload = 0x080706050403ffff, .aux = 1 },
	/* CR3, bit 0 NR; the pointer */
	{ K(PIP), WIRE(0x02, 0x43, 0x01, 0x8b, 0x62, 0x01, 0, 0), .payload = 0x1628b001 },
	{ K(PIP), WIRE(0x02, 0x43, 0xfe, 0xff, 0xff, 0xff, 0xff, 0xff),
	  .payload = 0xfffffffffffe0 },
	{ K(VMCS), WIRE(0x02, 0xc8, 0xff, 0xff, 0xff, 0xff, 0xff), .payload = 0xffffffffff000 },
	/* the 48 bits as sent; byte 1 */
	{ K(TNT_64), WIRE(0x02, 0xa3, 1, 2, 3, 4, 5, 0x86), .payload = 0x860504030201 },
	{ K(MODE_EXEC), WIRE(0x99, 0x1d), .payload = 0x05 },
	{ K(MODE_TSX), WIRE(0x99, 0x3e), .payload = 0x22 },
	/* the value */
	{ K(TSC), WIRE(0x19, 1, 2, 3, 4, 5, 6, 0xf7), .payload = 0xf7060504030201 },
	{ K(MTC), WIRE(0x59, 0xfe), .payload = 0xfe },
	{ K(CBR), WIRE(0x02, 0x03, 0xfd, 0xff), .payload = 0xfd },
	{ K(CYC), WIRE(0xfb), .payload = 31 },
	{ K(CYC), WIRE(0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x0e),
	  .payload = 0xffffffffffffffff },
	/* CTC, FastCounter from bit 24 on */
	{ K(TMA), WIRE(0x02, 0x73, 0x34, 0x12, 0xff, 0x56, 0xfe), .payload = 0x56001234 },
	{ K(TMA), WIRE(0x02, 0x73, 0xff, 0xff, 0xff, 0xff, 0xff), .payload = 0x1ff00ffff },
	/* the payload; aux byte 1 */
	{ K(PTW), WIRE(0x02, 0x92, 1, 2, 3, 0x84), .payload = 0x84030201, .aux = 0x92 },
	{ K(PTW), WIRE(0x02, 0x32, 1, 2, 3, 4, 5, 6, 7, 0x88), .payload = 0x8807060504030201,
	  .aux = 0x32 },
	{ K(EXSTOP), WIRE(0x02, 0xe2), .aux = 0xe2 },
	{ K(EXSTOP), WIRE(0x02, 0x62), .aux = 0x62 },
	/* byte 2, then the blocks' items: the payload; aux the header byte */
	{ K(BBP), WIRE(0x02, 0x63, 0xe1), .payload = 0x81 },
	{ K(BIP), WIRE(0x8c, 1, 2, 3, 0x84), .payload = 0x84030201, .aux = 0x8c },
	{ K(BBP), WIRE(0x02, 0x63, 0x70), .payload = 0x10 },
	{ K(BIP), WIRE(0xfc, 1, 2, 3, 4, 5, 6, 7, 0x88), .payload = 0x8807060504030201,
	  .aux = 0xfc },
	{ K(BEP), WIRE(0x02, 0xb3), .aux = 0xb3 },
	{ K(BEP), WIRE(0x02, 0x33), .aux = 0x33 },
	/* bytes 2 and 3; the payload, aux the type */
	{ K(CFE), WIRE(0x02, 0x13, 0xe9, 0xfb), .payload = 0xfb89 },
	{ K(EVD), WIRE(0x02, 0x53, 0xc2, 1, 2, 3, 4, 5, 6, 7, 0x88),
	  .payload = 0x8807060504030201, .aux = 0x02 },
	{ K(MNT), WIRE(0x02, 0xc3, 0x88, 1, 2, 3, 4, 5, 6, 7, 0x88),
	  .payload = 0x8807060504030201 },
	/* bytes 2 to 9; 2 and 3; 2 to 6 */
	{ K(MWAIT), WIRE(0x02, 0xc2, 0x91, 0xff, 0xff, 0xff, 0xfe, 0xff, 0xff, 0xff),
	  .payload = 0x200000091 },
	{ K(PWRE), WIRE(0x02, 0x22, 0xff, 0xa5), .payload = 0xa580 },
	{ K(PWRX), WIRE(0x02, 0xa2, 0xa5, 0xfc, 0xff, 0xff, 0xff), .payload = 0x0ca5 },
	/* bytes 2 to 4, aux byte 1 */
	{ K(TRIG), WIRE(0xd9, 0xff, 0x81, 0x34, 0xf2), .payload = 0xf23481, .aux = 0xe0 },
	{ K(TRIG), WIRE(0xd9, 0x9f, 0x42), .payload = 0x42, .aux = 0x80 },
	{ K(TRIG), WIRE(0xd9, 0x40, 0x01, 0x19, 0x02), .payload = 0x021901, .aux = 0x40 },
	/* others 0 */
	{ K(TRACESTOP), WIRE(0x02, 0x83) },
	{ K(OVF), WIRE(0x02, 0xf3) },
	{ K(PSBEND), WIRE(0x02, 0x23) },
};
/* clang-format on */

static const u8 psb[16] = {
	2, 0x82, 2, 0x82, 2, 0x82, 2, 0x82, 2, 0x82, 2, 0x82, 2, 0x82, 2, 0x82
};

static void check_items(const struct vmpt_options *options)
{
	u8 data[sizeof(psb) + sizeof(rows)];
	struct vmpt_stream stream = { .data = data, .cpu = -1, .tid = -1 };
	struct vmpt_source *source;
	struct vmpt_piece piece;
	size_t i, at = 0, n = 0;

	memcpy(data, psb, sizeof(psb));
	stream.size = sizeof(psb);
	for (i = 0; i < VMPT_ARRAY_SIZE(rows); i++) {
		memcpy(data + stream.size, rows[i].wire, rows[i].size);
		stream.size += rows[i].size;
	}
	ck_assert_int_eq(vmpt_source_open(&source, &stream, options, true), 0);
	while (vmpt_source_next(source, &piece) == 1)
		for (i = 0; i < piece.item_count; i++) {
			const struct vmpt_item *item = &piece.items[i];
			const struct row *r = &rows[n ? n - 1 : 0];

			ck_assert_uint_eq(piece.start + item->offset, at);
			if (!n++) {
				ck_assert_uint_eq(item->kind, VMPT_PT_PSB);
				ck_assert_uint_eq(item->payload, 0);
				at += sizeof(psb);
				continue;
			}
			ck_assert_uint_le(n - 1, VMPT_ARRAY_SIZE(rows));
			ck_assert_msg(item->kind == r->kind && item->size == r->size &&
					      item->payload == r->payload && item->aux == r->aux,
				      "row %zu, %s: %s %u %#llx %#x", n - 2, vmpt_pt_name(r->kind),
				      vmpt_pt_name(item->kind), item->size,
				      (unsigned long long)item->payload, item->aux);
			at += r->size;
		}
	vmpt_source_close(source);
	ck_assert_uint_eq(n, 1 + VMPT_ARRAY_SIZE(rows));
	ck_assert_uint_eq(at, stream.size);
}

START_TEST(items_of_the_scalar_source)
{
	check_items(&(struct vmpt_options){ .scalar = true });
}
END_TEST

START_TEST(items_of_the_default_source)
{
	check_items(NULL);
}
END_TEST

START_TEST(the_rows_hold_every_kind_but_runs_and_psb)
{
	bool seen[VMPT_PT_KINDS] = {
		[VMPT_PT_PAD] = true, [VMPT_PT_TNT_8] = true, [VMPT_PT_PSB] = true
	};
	size_t i;

	for (i = 0; i < VMPT_ARRAY_SIZE(rows); i++)
		seen[rows[i].kind] = true;
	for (i = 0; i < VMPT_PT_KINDS; i++)
		ck_assert_msg(seen[i], "no row of %s", vmpt_pt_name((unsigned int)i));
}
END_TEST

TEST_SUITE()
{
	Suite *s = suite_create("decoder/items");
	TCase *t = tcase_create("items");

	tcase_add_test(t, items_of_the_scalar_source);
	tcase_add_test(t, items_of_the_default_source);
	tcase_add_test(t, the_rows_hold_every_kind_but_runs_and_psb);
	suite_add_tcase(s, t);
	return s;
}
