// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * arch/pt-packet.c: what the manual reserves. Encodings are refused, by a list of all headers that
 * is written here by hand; bits are ignored; values are kept and flagged.
 */
#include <stdio.h>

#include "tests/arch/pt-cases.h"
#include "tests/support/support.h"

/* ---- encodings: every two bytes that a packet can begin with ---- */

/* The kind of two bytes, followed by zeros; the first row that matches applies. */
struct head {
	u8 b0, m0, b1, m1;
	int result; /* a kind or a negative error */
	u8 size;
};

#define ESC(b1, kind, size)                                \
	{                                                  \
		0x02, 0xff, b1, 0xff, VMPT_PT_##kind, size \
	}
#define ONE(b0, m0, kind, size)                    \
	{                                          \
		b0, m0, 0, 0, VMPT_PT_##kind, size \
	}
#define IPS(op, kind)                                                             \
	ONE(0x00 | (op), 0xff, kind, 1), ONE(0x20 | (op), 0xff, kind, 3),         \
		ONE(0x40 | (op), 0xff, kind, 5), ONE(0x60 | (op), 0xff, kind, 7), \
		ONE(0x80 | (op), 0xff, kind, 7), ONE(0xc0 | (op), 0xff, kind, 9), \
		{ 0xa0 | (op), 0xff, 0, 0, -VMPT_E_IPBYTES, 0 },                  \
	{                                                                         \
		0xe0 | (op), 0xff, 0, 0, -VMPT_E_IPBYTES, 0                       \
	}

/* clang-format off */
static const struct head heads[] = {
	/* The escape byte */
	ESC(0x03, CBR, 4), ESC(0x13, CFE, 4), ESC(0x23, PSBEND, 2), ESC(0x33, BEP, 2),
	ESC(0x43, PIP, 8), ESC(0x53, EVD, 11), ESC(0x63, BBP, 3), ESC(0x73, TMA, 7),
	ESC(0x83, TRACESTOP, 2), ESC(0xa3, TNT_64, 8), ESC(0xb3, BEP, 2), ESC(0xf3, OVF, 2),
	ESC(0xc8, VMCS, 7),
	ESC(0x22, PWRE, 4), ESC(0x62, EXSTOP, 2), ESC(0xa2, PWRX, 7), ESC(0xc2, MWAIT, 10),
	ESC(0xe2, EXSTOP, 2),
	ESC(0x12, PTW, 6), ESC(0x32, PTW, 10), ESC(0x92, PTW, 6), ESC(0xb2, PTW, 10),
	{ 0x02, 0xff, 0x52, 0xff, -VMPT_E_PTW_SIZE, 0 },
	{ 0x02, 0xff, 0x72, 0xff, -VMPT_E_PTW_SIZE, 0 },
	{ 0x02, 0xff, 0xd2, 0xff, -VMPT_E_PTW_SIZE, 0 },
	{ 0x02, 0xff, 0xf2, 0xff, -VMPT_E_PTW_SIZE, 0 },
	{ 0x02, 0xff, 0x82, 0xff, -VMPT_E_PSB, 0 },
	{ 0x02, 0xff, 0, 0, -VMPT_E_OPCODE, 0 }, /* C3H without 88H among them */
	/* Even bytes: padding, then short TNT */
	ONE(0x00, 0xff, PAD, 1), ONE(0x00, 0x01, TNT_8, 1),
	/* 11b: CYC, with Exp in bit 2, then in bit 0 */
	ONE(0x03, 0x07, CYC, 1),
	{ 0x07, 0x07, 0x00, 0x01, VMPT_PT_CYC, 2 },
	{ 0x07, 0x07, 0x01, 0x01, VMPT_PT_CYC, 3 },
	/* 01b: IP packets and the 11001b family */
	IPS(0x0d, TIP), IPS(0x11, TIP_PGE), IPS(0x01, TIP_PGD), IPS(0x1d, FUP),
	ONE(0x19, 0xff, TSC, 8), ONE(0x59, 0xff, MTC, 2),
	{ 0x99, 0xff, 0x00, 0xe0, VMPT_PT_MODE_EXEC, 2 },
	{ 0x99, 0xff, 0x20, 0xe0, VMPT_PT_MODE_TSX, 2 },
	{ 0x99, 0xff, 0, 0, -VMPT_E_MODE_LEAF, 0 },
	/* TRIG: bit 6 of byte 1 is ICNTV */
	{ 0xd9, 0xff, 0x00, 0x40, VMPT_PT_TRIG, 3 },
	{ 0xd9, 0xff, 0x40, 0x40, VMPT_PT_TRIG, 5 },
	/* 05H, 09H, 15H with any upper bits, and 39H, 79H, B9H, F9H */
	{ 0x05, 0x1f, 0, 0, -VMPT_E_OPCODE, 0 },
	{ 0x09, 0x1f, 0, 0, -VMPT_E_OPCODE, 0 },
	{ 0x15, 0x1f, 0, 0, -VMPT_E_OPCODE, 0 },
	{ 0x19, 0x1f, 0, 0, -VMPT_E_OPCODE, 0 },
};
/* clang-format on */

static const struct head *find_head(unsigned int b0, unsigned int b1)
{
	size_t i;

	for (i = 0; i < VMPT_ARRAY_SIZE(heads); i++)
		if ((b0 & heads[i].m0) == heads[i].b0 && (b1 & heads[i].m1) == heads[i].b1)
			return &heads[i];
	ck_abort_msg("%02x %02x is not in the list", b0, b1);
	return NULL;
}

static void check_head(unsigned int b0, unsigned int b1, unsigned int block)
{
	const struct head *h = find_head(b0, b1);
	int want = h->result, want_size = h->size, got;
	struct vmpt_pt_packet p;
	u8 buf[VMPT_PT_SIZE_MAX] = { (u8)b0, (u8)b1 };

	if (block && (b0 & 7) == 4) {
		want = VMPT_PT_BIP;
		want_size = block & 0x20 ? 5 : 9;
	}
	got = vmpt_pt_decode(&p, buf, sizeof(buf), block);
	if (want < 0 ? got != want : got || p.kind != want || p.size != want_size)
		ck_abort_msg("%02x %02x in block %x: decode %d, kind %u, size %u", b0, b1, block,
			     got, p.kind, p.size);
}

START_TEST(all_two_byte_heads)
{
	static const unsigned int blocks[] = { 0, VMPT_PT_BLOCK(0, 1), VMPT_PT_BLOCK(1, 1) };
	unsigned int head, i;

	for (i = 0; i < VMPT_ARRAY_SIZE(blocks); i++)
		for (head = 0; head < 0x10000; head++)
			check_head(head >> 8, head & 0xff, blocks[i]);
}
END_TEST

START_TEST(three_byte_headers_but_88_are_unknown)
{
	u8 buf[VMPT_PT_SIZE_MAX] = { 0x02, 0xc3 };
	struct vmpt_pt_packet p;
	unsigned int b;

	for (b = 0; b < 256; b++) {
		buf[2] = (u8)b;
		ck_assert_int_eq(vmpt_pt_decode(&p, buf, sizeof(buf), 0),
				 b == 0x88 ? 0 : -VMPT_E_OPCODE);
	}
}
END_TEST

/* A reserved encoding is detected from its own bytes, however little follows. */
START_TEST(reserved_encodings_at_the_end_of_a_trace)
{
	static const struct {
		u8 len, bytes[3];
		int err;
	} rows[] = {
		{ 1, { 0xad }, VMPT_E_IPBYTES },	 { 1, { 0x05 }, VMPT_E_OPCODE },
		{ 1, { 0xf9 }, VMPT_E_OPCODE },		 { 2, { 0xd9, 0x00 }, VMPT_E_TRUNCATED },
		{ 2, { 0x02, 0x00 }, VMPT_E_OPCODE },	 { 2, { 0x02, 0x52 }, VMPT_E_PTW_SIZE },
		{ 2, { 0x99, 0x40 }, VMPT_E_MODE_LEAF }, { 3, { 0x02, 0xc3, 0x00 }, VMPT_E_OPCODE },
		{ 3, { 0x02, 0x82, 0x00 }, VMPT_E_PSB },
	};
	struct vmpt_pt_packet p;
	size_t i;

	for (i = 0; i < VMPT_ARRAY_SIZE(rows); i++)
		ck_assert_int_eq(vmpt_pt_decode(&p, rows[i].bytes, rows[i].len, 0), -rows[i].err);
}
END_TEST

START_TEST(a_psb_must_be_whole)
{
	struct vmpt_pt_packet p;
	u8 buf[16];
	int i;

	for (i = 2; i < 16; i++) {
		int k;

		for (k = 0; k < 16; k++)
			buf[k] = k & 1 ? 0x82 : 0x02;
		buf[i] ^= 0x80;
		ck_assert_int_eq(vmpt_pt_decode(&p, buf, 16, 0), -VMPT_E_PSB);
		/* Cut before the wrong byte it may still become valid. */
		ck_assert_int_eq(vmpt_pt_decode(&p, buf, (size_t)i, 0), -VMPT_E_TRUNCATED);
	}
}
END_TEST

/* 5 + 8 * 7 bits fit nine bytes; of the tenth's seven, three are left of 64. */
START_TEST(cyc_over_64_bits_is_refused)
{
	u8 buf[12] = { 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x0e, 0, 0 };
	struct vmpt_pt_packet p;
	unsigned int bit;

	ck_assert_int_eq(vmpt_pt_decode(&p, buf, sizeof(buf), 0), 0);
	for (bit = 4; bit < 8; bit++) {
		buf[9] = (u8)(1u << bit);
		ck_assert_int_eq(vmpt_pt_decode(&p, buf, sizeof(buf), 0), -VMPT_E_CYC);
		ck_assert_int_eq(vmpt_pt_decode(&p, buf, 10, 0), -VMPT_E_CYC);
	}
	/* An eleventh byte, even one of zeros */
	buf[9] = 0x01;
	ck_assert_int_eq(vmpt_pt_decode(&p, buf, sizeof(buf), 0), -VMPT_E_CYC);
	ck_assert_int_eq(vmpt_pt_decode(&p, buf, 9, 0), -VMPT_E_TRUNCATED);
}
END_TEST

/* ---- bits ---- */

/* Bits that the manual's layouts show as reserved, or as 0 beside values. */
static const struct {
	u8 kind, byte, bits;
} reserved_bits[] = {
	{ VMPT_PT_MODE_EXEC, 1, 0x18 }, { VMPT_PT_MODE_TSX, 1, 0x1c }, /* 33-26, 33-27 */
	{ VMPT_PT_CBR, 3, 0xff },	{ VMPT_PT_TMA, 4, 0xff },      /* 33-29, 33-32 */
	{ VMPT_PT_TMA, 6, 0xfe },	{ VMPT_PT_MWAIT, 3, 0xff },    /* 33-42 */
	{ VMPT_PT_MWAIT, 4, 0xff },	{ VMPT_PT_MWAIT, 5, 0xff },    { VMPT_PT_MWAIT, 6, 0xfc },
	{ VMPT_PT_MWAIT, 7, 0xff },	{ VMPT_PT_MWAIT, 8, 0xff },    { VMPT_PT_MWAIT, 9, 0xff },
	{ VMPT_PT_PWRE, 2, 0x7f },	{ VMPT_PT_PWRX, 3, 0xf0 }, /* 33-43, 33-44 */
	{ VMPT_PT_PWRX, 4, 0xff },	{ VMPT_PT_PWRX, 5, 0xff },     { VMPT_PT_PWRX, 6, 0xff },
	{ VMPT_PT_BBP, 2, 0x60 },				  /* 33-45 */
	{ VMPT_PT_CFE, 2, 0x60 },	{ VMPT_PT_EVD, 2, 0xc0 }, /* 33-49, 33-51 */
	{ VMPT_PT_TRIG, 1, 0x1f },
};

static void check_with_bits(const struct pt_case *c, const u8 *wire)
{
	struct vmpt_pt_packet p;
	u8 out[VMPT_PT_SIZE_MAX];
	int i;

	ck_assert_int_eq(vmpt_pt_decode(&p, wire, c->size, c->block), 0);
	ck_assert_uint_eq(p.kind, c->kind);
	ck_assert_uint_eq(p.size, c->size);
	ck_assert_uint_eq(p.flags, c->flags);
	for (i = 0; i < VMPT_PT_VALUES; i++)
		ck_assert_uint_eq(p.val[i], c->val[i]);
	ck_assert_int_eq(vmpt_pt_encode(&p, out, sizeof(out), c->block), c->size);
	ck_assert_mem_eq(out, c->wire, c->size);
}

/* 33.4.2: they "are not guaranteed to be 0". pt_cases[] has them 0. */
START_TEST(reserved_bits_are_ignored_and_sent_as_0)
{
	unsigned int bit, tried = 0;
	size_t i, k;

	for (i = 0; i < pt_case_count; i++) {
		const struct pt_case *c = &pt_cases[i];
		u8 all[VMPT_PT_SIZE_MAX], one[VMPT_PT_SIZE_MAX];
		bool some = false;

		memcpy(all, c->wire, sizeof(all));
		for (k = 0; k < VMPT_ARRAY_SIZE(reserved_bits); k++) {
			if (reserved_bits[k].kind != c->kind)
				continue;
			some = true;
			all[reserved_bits[k].byte] |= reserved_bits[k].bits;
			for (bit = 0; bit < 8; bit++) {
				if (!(reserved_bits[k].bits & 1u << bit))
					continue;
				memcpy(one, c->wire, sizeof(one));
				one[reserved_bits[k].byte] |= (u8)(1u << bit);
				check_with_bits(c, one);
				tried++;
			}
		}
		if (some)
			check_with_bits(c, all);
	}
	ck_assert_uint_gt(tried, 300);
}
END_TEST

/* The reverse: every bit that is not reserved counts. */
START_TEST(no_other_bit_is_ignored)
{
	size_t i, k;
	int bit;

	for (i = 0; i < pt_case_count; i++) {
		const struct pt_case *c = &pt_cases[i];
		struct vmpt_pt_packet p;
		u8 wire[2 * VMPT_PT_SIZE_MAX] = { 0 };

		for (bit = 0; bit < 8 * c->size; bit++) {
			bool ignored = false;

			for (k = 0; k < VMPT_ARRAY_SIZE(reserved_bits); k++)
				if (reserved_bits[k].kind == c->kind &&
				    reserved_bits[k].byte == bit / 8 &&
				    reserved_bits[k].bits & 1 << bit % 8)
					ignored = true;
			/* A stop bit with no branch below it is the same as none. */
			if (c->kind == VMPT_PT_TNT_64 && c->flags && bit == 16)
				ignored = true;
			if (ignored)
				continue;
			memcpy(wire, c->wire, c->size);
			wire[bit / 8] ^= (u8)(1 << bit % 8);
			if (!vmpt_pt_decode(&p, wire, sizeof(wire), c->block) &&
			    p.kind == c->kind && p.size == c->size &&
			    !memcmp(p.val, c->val, sizeof(p.val)))
				ck_abort_msg("%s: bit %d does nothing", pt_case_name(c), bit);
		}
	}
}
END_TEST

/* ---- values ---- */

static void check_flag(const u8 *wire, size_t len, unsigned int block, bool reserved)
{
	struct vmpt_pt_packet p;
	u8 out[VMPT_PT_SIZE_MAX];

	ck_assert_int_eq(vmpt_pt_decode(&p, wire, len, block), 0);
	ck_assert_uint_eq(p.size, len);
	ck_assert_msg(p.flags == (reserved ? VMPT_PT_RESERVED : 0), "%s %02x %02x %02x: flags %x",
		      vmpt_pt_name(p.kind), wire[0], wire[1], wire[2], p.flags);
	/* Decoded unchanged: nothing of the value is lost. */
	ck_assert_int_eq(vmpt_pt_encode(&p, out, sizeof(out), block), (int)len);
	ck_assert_mem_eq(out, wire, len);
}

START_TEST(reserved_cfe_and_evd_types)
{
	u8 cfe[4] = { 0x02, 0x13, 0, 0x77 };
	u8 evd[11] = { 0x02, 0x53, 0, 1, 2, 3, 4, 5, 6, 7, 8 };
	unsigned int type;

	for (type = 0; type < 32; type++) {
		cfe[2] = (u8)type;
		check_flag(cfe, sizeof(cfe), 0, type == 0 || type == 0xb || type > 0xd);
	}
	for (type = 0; type < 64; type++) {
		evd[2] = (u8)type;
		check_flag(evd, sizeof(evd), 0, type > 2);
	}
}
END_TEST

/* Table 33-45 */
static bool bbp_type_known(unsigned int type)
{
	return type == 1 || type == 4 || type == 5 || type == 8 || type == 9 || type == 0xa ||
	       type == 0x10;
}

/* Table 33-47: how many items a block of the type can have. */
static unsigned int bip_count(unsigned int type)
{
	switch (type) {
	case 0x01:
		return 18;
	case 0x04:
		return 3;
	case 0x05:
		return 4;
	default:
		return bbp_type_known(type) ? 32 : 0;
	}
}

START_TEST(reserved_bbp_types_and_bip_ids)
{
	u8 bbp[3] = { 0x02, 0x63, 0 };
	u8 bip[5] = { 0, 1, 2, 3, 4 };
	unsigned int type, id;

	for (type = 0; type < 32; type++) {
		bbp[2] = (u8)type;
		check_flag(bbp, sizeof(bbp), 0, !bbp_type_known(type));
		for (id = 0; id < 32; id++) {
			bip[0] = (u8)(id << 3 | 4);
			check_flag(bip, sizeof(bip), VMPT_PT_BLOCK(1, type), id >= bip_count(type));
		}
	}
}
END_TEST

TEST_SUITE()
{
	Suite *s = suite_create("arch/pt-reserved");
	TCase *t = tcase_create("encodings");

	tcase_add_test(t, all_two_byte_heads);
	tcase_add_test(t, three_byte_headers_but_88_are_unknown);
	tcase_add_test(t, reserved_encodings_at_the_end_of_a_trace);
	tcase_add_test(t, a_psb_must_be_whole);
	tcase_add_test(t, cyc_over_64_bits_is_refused);
	suite_add_tcase(s, t);
	t = tcase_create("bits and values");
	tcase_add_test(t, reserved_bits_are_ignored_and_sent_as_0);
	tcase_add_test(t, no_other_bit_is_ignored);
	tcase_add_test(t, reserved_cfe_and_evd_types);
	tcase_add_test(t, reserved_bbp_types_and_bip_ids);
	suite_add_tcase(s, t);
	return s;
}
