// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * arch/pt-packet.c: every packet of pt-cases.c decoded and encoded, cut at every length, and what a
 * list cannot cover: all TNT lengths, random values, values that encode must refuse, the block
 * context.
 */
#include "tests/arch/pt-cases.h"
#include "tests/support/support.h"

static void check_same(const struct vmpt_pt_packet *p, const struct pt_case *c)
{
	int i;

	ck_assert_msg(p->kind == c->kind, "%s: kind %s", pt_case_name(c), vmpt_pt_name(p->kind));
	ck_assert_msg(p->size == c->size, "%s: size %u", pt_case_name(c), p->size);
	ck_assert_msg(p->flags == c->flags, "%s: flags %x", pt_case_name(c), p->flags);
	for (i = 0; i < VMPT_PT_VALUES; i++)
		ck_assert_msg(p->val[i] == c->val[i], "%s: value %d is %llx", pt_case_name(c), i,
			      (unsigned long long)p->val[i]);
}

/* Arbitrary bytes follow the packet: they must not be read into it. */
static void check_decode(const struct pt_case *c)
{
	static const u8 after[] = { 0x00, 0xff, 0x5a };
	struct vmpt_pt_packet p;
	u8 buf[2 * VMPT_PT_SIZE_MAX];
	size_t i;

	memset(&p, 0xaa, sizeof(p));
	ck_assert_msg(!vmpt_pt_decode(&p, c->wire, c->size, c->block), "%s", pt_case_name(c));
	check_same(&p, c);
	for (i = 0; i < sizeof(after); i++) {
		memset(buf, after[i], sizeof(buf));
		memcpy(buf, c->wire, c->size);
		ck_assert_msg(!vmpt_pt_decode(&p, buf, sizeof(buf), c->block), "%s",
			      pt_case_name(c));
		check_same(&p, c);
	}
}

static void check_encode(const struct pt_case *c)
{
	struct vmpt_pt_packet p = { .kind = c->kind };
	u8 buf[VMPT_PT_SIZE_MAX + 1];
	int size;

	/* A long TNT without a branch cannot be sent. */
	if (c->kind == VMPT_PT_TNT_64 && !c->val[1])
		return;
	memset(buf, 0x5a, sizeof(buf));
	memcpy(p.val, c->val, sizeof(p.val));
	size = vmpt_pt_encode(&p, buf, sizeof(buf), c->block);
	ck_assert_msg(size == c->size, "%s: encoded size %d", pt_case_name(c), size);
	ck_assert_uint_eq(p.size, c->size);
	ck_assert_msg(!memcmp(buf, c->wire, c->size), "%s", pt_case_name(c));
	ck_assert_uint_eq(buf[size], 0x5a);

	for (size = 0; size < c->size; size++)
		ck_assert_msg(vmpt_pt_encode(&p, buf, (size_t)size, c->block) == -VMPT_E_SPACE,
			      "%s into %d bytes", pt_case_name(c), size);
}

static void check_cut(const struct pt_case *c)
{
	struct vmpt_pt_packet p;
	u8 buf[VMPT_PT_SIZE_MAX];
	size_t len;
	int err;

	for (len = 0; len < c->size; len++) {
		/* Bytes after the cut must not matter. */
		memset(buf, 0xff, sizeof(buf));
		memcpy(buf, c->wire, len);
		err = vmpt_pt_decode(&p, buf, len, c->block);
		ck_assert_msg(err == -VMPT_E_TRUNCATED, "%s cut at %zu: %d", pt_case_name(c), len,
			      err);
	}
}

START_TEST(every_case_decodes_to_its_values)
{
	size_t i;

	for (i = 0; i < pt_case_count; i++)
		check_decode(&pt_cases[i]);
}
END_TEST

START_TEST(every_case_encodes_to_its_bytes)
{
	size_t i;

	for (i = 0; i < pt_case_count; i++)
		check_encode(&pt_cases[i]);
}
END_TEST

START_TEST(every_case_cut_anywhere_is_truncated)
{
	size_t i;

	for (i = 0; i < pt_case_count; i++)
		check_cut(&pt_cases[i]);
}
END_TEST

START_TEST(the_cases_hold_every_kind)
{
	bool seen[VMPT_PT_KINDS] = { false };
	size_t i;

	for (i = 0; i < pt_case_count; i++)
		seen[pt_cases[i].kind] = true;
	for (i = 0; i < VMPT_PT_KINDS; i++)
		ck_assert_msg(seen[i], "no case of %s", vmpt_pt_name((unsigned int)i));
}
END_TEST

/* Table 33-16: a one above the oldest branch, in 7 places of byte 0 or 48 of bytes 2 to 7. */
static void check_tnt(unsigned int kind, unsigned int count, u64 bits)
{
	u64 sent = (1ULL << count) | bits;
	u8 wire[8] = { 0x02, 0xa3 }, out[8];
	struct vmpt_pt_packet p = { .kind = (u8)kind };
	size_t i, size = kind == VMPT_PT_TNT_8 ? 1 : 8;

	if (size == 1)
		wire[0] = (u8)(sent << 1);
	else
		for (i = 0; i < 6; i++)
			wire[2 + i] = (u8)(sent >> (8 * i));

	p.tnt.bits = bits;
	p.tnt.count = count;
	ck_assert_uint_eq(vmpt_pt_encode(&p, out, sizeof(out), 0), size);
	ck_assert_mem_eq(out, wire, size);
	ck_assert_int_eq(vmpt_pt_decode(&p, wire, size, 0), 0);
	ck_assert_uint_eq(p.kind, kind);
	ck_assert_uint_eq(p.tnt.count, count);
	ck_assert_uint_eq(p.tnt.bits, bits);
}

START_TEST(tnt_of_every_length)
{
	unsigned int n;

	for (n = 1; n <= 47; n++) {
		u64 all = (1ULL << n) - 1;
		u64 patterns[] = { 0, all, 1, 1ULL << (n - 1), all & 0x2b6d5a96d3b1ULL };
		size_t i;

		for (i = 0; i < VMPT_ARRAY_SIZE(patterns); i++) {
			if (n <= 6)
				check_tnt(VMPT_PT_TNT_8, n, patterns[i]);
			check_tnt(VMPT_PT_TNT_64, n, patterns[i]);
		}
	}
}
END_TEST

START_TEST(every_id_of_a_block_item)
{
	struct vmpt_pt_packet p;
	u8 wire[9] = { 0, 0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88 };
	unsigned int id;

	for (id = 0; id < 32; id++) {
		wire[0] = (u8)(id * 8 + 4);
		ck_assert_int_eq(vmpt_pt_decode(&p, wire, 9, VMPT_PT_BLOCK(0, 0x10)), 0);
		ck_assert_uint_eq(p.kind, VMPT_PT_BIP);
		ck_assert_uint_eq(p.size, 9);
		ck_assert_uint_eq(p.bip.id, id);
		ck_assert_uint_eq(p.bip.payload, 0x8877665544332211);
		ck_assert_int_eq(vmpt_pt_decode(&p, wire, 9, VMPT_PT_BLOCK(1, 0x10)), 0);
		ck_assert_uint_eq(p.size, 5);
		ck_assert_uint_eq(p.bip.id, id);
		ck_assert_uint_eq(p.bip.payload, 0x44332211);
		/* Outside a block the same byte is a TNT: 4 is 0000 0100b. */
		ck_assert_int_eq(vmpt_pt_decode(&p, wire, 9, 0), 0);
		ck_assert_uint_eq(p.kind, VMPT_PT_TNT_8);
		ck_assert_uint_eq(p.size, 1);
	}
}
END_TEST

/* A count may be sent with more bytes than it needs: all its bits are 0 then. */
START_TEST(cyc_may_be_longer_than_needed)
{
	static const u8 long_one[] = { 0x0f, 0x01, 0x01, 0x00 };
	static const u8 longest[] = { 0xff, 1, 1, 1, 1, 1, 1, 1, 1, 0 };
	struct vmpt_pt_packet p;

	ck_assert_int_eq(vmpt_pt_decode(&p, long_one, sizeof(long_one), 0), 0);
	ck_assert_uint_eq(p.size, 4);
	ck_assert_uint_eq(p.cyc.cycles, 1);
	ck_assert_int_eq(vmpt_pt_decode(&p, longest, sizeof(longest), 0), 0);
	ck_assert_uint_eq(p.size, 10);
	ck_assert_uint_eq(p.cyc.cycles, 31);
}
END_TEST

struct refused {
	u8 kind, block;
	u64 val[VMPT_PT_VALUES];
};

static const struct refused refused[] = {
	{ VMPT_PT_KINDS, 0, { 0 } },
	{ 255, 0, { 0 } },
	{ VMPT_PT_TNT_8, 0, { 0, 0 } },
	{ VMPT_PT_TNT_8, 0, { 0, 7 } },
	{ VMPT_PT_TNT_8, 0, { 4, 2 } },
	{ VMPT_PT_TNT_8, 0, { 0, 1ULL << 32 | 1 } },
	{ VMPT_PT_TNT_64, 0, { 0, 0 } },
	{ VMPT_PT_TNT_64, 0, { 0, 48 } },
	{ VMPT_PT_TNT_64, 0, { 0, 64 } },
	{ VMPT_PT_TNT_64, 0, { 1ULL << 47, 47 } },
	{ VMPT_PT_TIP, 0, { 0, 1 } },
	{ VMPT_PT_TIP, 0, { 1, 0x10000 } },
	{ VMPT_PT_TIP_PGE, 0, { 2, 1ULL << 32 } },
	{ VMPT_PT_TIP_PGD, 0, { 3, 1ULL << 48 } },
	{ VMPT_PT_FUP, 0, { 4, 1ULL << 48 } },
	{ VMPT_PT_TIP, 0, { 5, 0 } },
	{ VMPT_PT_FUP, 0, { 7, 0 } },
	{ VMPT_PT_TIP, 0, { 8, 0 } },
	{ VMPT_PT_TIP, 0, { 1ULL << 32 | 6, 0 } },
	{ VMPT_PT_MTC, 0, { 0x100 } },
	{ VMPT_PT_TSC, 0, { 1ULL << 56 } },
	{ VMPT_PT_MODE_EXEC, 0, { 2, 0, 0 } },
	{ VMPT_PT_MODE_EXEC, 0, { 0, 2, 0 } },
	{ VMPT_PT_MODE_EXEC, 0, { 0, 0, 2 } },
	{ VMPT_PT_MODE_TSX, 0, { 2, 0 } },
	{ VMPT_PT_MODE_TSX, 0, { 0, 2 } },
	{ VMPT_PT_PIP, 0, { 0x10, 0 } },
	{ VMPT_PT_PIP, 0, { 1ULL << 52, 0 } },
	{ VMPT_PT_PIP, 0, { 0, 2 } },
	{ VMPT_PT_CBR, 0, { 0x100 } },
	{ VMPT_PT_TMA, 0, { 0x10000, 0 } },
	{ VMPT_PT_TMA, 0, { 0, 0x200 } },
	{ VMPT_PT_VMCS, 0, { 0x800 } },
	{ VMPT_PT_VMCS, 0, { 1ULL << 52 } },
	{ VMPT_PT_PTW, 0, { 2, 0, 0 } },
	{ VMPT_PT_PTW, 0, { 3, 0, 0 } },
	{ VMPT_PT_PTW, 0, { 0, 2, 0 } },
	{ VMPT_PT_PTW, 0, { 0, 0, 1ULL << 32 } },
	{ VMPT_PT_EXSTOP, 0, { 2 } },
	{ VMPT_PT_MWAIT, 0, { 0x100, 0 } },
	{ VMPT_PT_MWAIT, 0, { 0, 4 } },
	{ VMPT_PT_PWRE, 0, { 2, 0, 0 } },
	{ VMPT_PT_PWRE, 0, { 0, 16, 0 } },
	{ VMPT_PT_PWRE, 0, { 0, 0, 16 } },
	{ VMPT_PT_PWRX, 0, { 16, 0, 0 } },
	{ VMPT_PT_PWRX, 0, { 0, 16, 0 } },
	{ VMPT_PT_PWRX, 0, { 0, 0, 16 } },
	{ VMPT_PT_BBP, 0, { 2, 0 } },
	{ VMPT_PT_BBP, 0, { 0, 32 } },
	{ VMPT_PT_BIP, 0, { 0, 0 } },
	{ VMPT_PT_BIP, VMPT_PT_BLOCK(0, 1), { 32, 0 } },
	{ VMPT_PT_BIP, VMPT_PT_BLOCK(1, 1), { 0, 1ULL << 32 } },
	{ VMPT_PT_BEP, 0, { 2 } },
	{ VMPT_PT_CFE, 0, { 2, 0, 0 } },
	{ VMPT_PT_CFE, 0, { 0, 32, 0 } },
	{ VMPT_PT_CFE, 0, { 0, 0, 0x100 } },
	{ VMPT_PT_EVD, 0, { 64, 0 } },
	{ VMPT_PT_TRIG, 0, { 2, 0, 0, 0, 0 } },
	{ VMPT_PT_TRIG, 0, { 0, 2, 0, 0, 0 } },
	{ VMPT_PT_TRIG, 0, { 0, 0, 2, 0, 0 } },
	{ VMPT_PT_TRIG, 0, { 0, 0, 0, 0x100, 0 } },
	{ VMPT_PT_TRIG, 0, { 0, 1, 0, 0, 0x10000 } },
	{ VMPT_PT_TRIG, 0, { 0, 0, 0, 0, 1 } }, /* a count without ICNTV */
};

START_TEST(encode_refuses_what_does_not_fit)
{
	const struct refused *r;
	u8 buf[VMPT_PT_SIZE_MAX];
	size_t i;
	int ret;

	for (i = 0; i < VMPT_ARRAY_SIZE(refused); i++) {
		struct vmpt_pt_packet p = { .kind = refused[i].kind };

		r = &refused[i];
		memcpy(p.val, r->val, sizeof(p.val));
		ret = vmpt_pt_encode(&p, buf, sizeof(buf), r->block);
		ck_assert_msg(ret == -VMPT_E_INVAL, "%s %llx %llx %llx: %d", vmpt_pt_name(r->kind),
			      (unsigned long long)r->val[0], (unsigned long long)r->val[1],
			      (unsigned long long)r->val[2], ret);
	}
}
END_TEST

/* Bits of each value on the wire, by hand; TNT, IPs, PTW, BIP and TRIG see random_packet(). */
static const struct {
	u8 width[VMPT_PT_VALUES], shift;
} field_bits[VMPT_PT_KINDS] = {
	[VMPT_PT_CYC] = { { 64 }, 0 },	      [VMPT_PT_MTC] = { { 8 }, 0 },
	[VMPT_PT_TSC] = { { 56 }, 0 },	      [VMPT_PT_MODE_EXEC] = { { 1, 1, 1 }, 0 },
	[VMPT_PT_MODE_TSX] = { { 1, 1 }, 0 }, [VMPT_PT_PIP] = { { 47, 1 }, 5 },
	[VMPT_PT_CBR] = { { 8 }, 0 },	      [VMPT_PT_TMA] = { { 16, 9 }, 0 },
	[VMPT_PT_VMCS] = { { 40 }, 12 },      [VMPT_PT_MNT] = { { 64 }, 0 },
	[VMPT_PT_EXSTOP] = { { 1 }, 0 },      [VMPT_PT_MWAIT] = { { 8, 2 }, 0 },
	[VMPT_PT_PWRE] = { { 1, 4, 4 }, 0 },  [VMPT_PT_PWRX] = { { 4, 4, 4 }, 0 },
	[VMPT_PT_BBP] = { { 1, 5 }, 0 },      [VMPT_PT_BEP] = { { 1 }, 0 },
	[VMPT_PT_CFE] = { { 1, 5, 8 }, 0 },   [VMPT_PT_EVD] = { { 6, 64 }, 0 },
};

/* A random number of up to @bits bits, small ones as likely as large ones. */
static u64 random_bits(struct test_rng *rng, unsigned int bits)
{
	unsigned int n = bits ? (unsigned int)(test_random(rng) % (bits + 1)) : 0;

	return n ? test_random(rng) >> (64 - n) : 0;
}

static void random_packet(struct test_rng *rng, struct vmpt_pt_packet *p, unsigned int block)
{
	static const u8 ip_bytes[] = { 0, 1, 2, 3, 4, 6 }, ip_bits[] = { 0, 16, 32, 48, 48, 64 };
	unsigned int i;

	memset(p, 0, sizeof(*p));
	do
		p->kind = (u8)(test_random(rng) % VMPT_PT_KINDS);
	while (p->kind == VMPT_PT_BIP && !block);
	switch (p->kind) {
	case VMPT_PT_TNT_8:
	case VMPT_PT_TNT_64:
		p->tnt.count = 1 + test_random(rng) % (p->kind == VMPT_PT_TNT_8 ? 6 : 47);
		p->tnt.bits = test_random(rng) & ((1ULL << p->tnt.count) - 1);
		return;
	case VMPT_PT_TIP:
	case VMPT_PT_TIP_PGE:
	case VMPT_PT_TIP_PGD:
	case VMPT_PT_FUP:
		i = (unsigned int)(test_random(rng) % 6);
		p->ip.ipbytes = ip_bytes[i];
		p->ip.ip = random_bits(rng, ip_bits[i]);
		return;
	case VMPT_PT_PTW:
		p->ptw.payload_bytes = test_random(rng) & 1;
		p->ptw.ip = test_random(rng) & 1;
		p->ptw.payload = random_bits(rng, p->ptw.payload_bytes ? 64 : 32);
		return;
	case VMPT_PT_BIP:
		p->bip.id = test_random(rng) & 31;
		p->bip.payload = random_bits(rng, block & 0x20 ? 32 : 64);
		return;
	case VMPT_PT_TRIG:
		for (i = 0; i < 3; i++)
			p->val[i] = test_random(rng) & 1;
		p->trig.trbv = random_bits(rng, 8);
		p->trig.icnt = p->trig.icntv ? random_bits(rng, 16) : 0;
		return;
	}
	for (i = 0; i < VMPT_PT_VALUES; i++)
		p->val[i] = random_bits(rng, field_bits[p->kind].width[i]);
	p->val[0] <<= field_bits[p->kind].shift;
}

START_TEST(random_packets_come_back_as_they_were)
{
	struct test_rng rng = { 0x0bad5eed };
	struct vmpt_pt_packet in, out;
	u8 buf[VMPT_PT_SIZE_MAX];
	unsigned int n, block;
	int size;

	for (n = 0; n < 200000; n++) {
		block = (unsigned int)(test_random(&rng) & 0x3f) | 0x40;
		if (n & 1)
			block = 0;
		random_packet(&rng, &in, block);
		/* Table 33-15: no TNT inside a block, where 100b would be a BIP. */
		if (in.kind == VMPT_PT_TNT_8)
			block = 0;
		size = vmpt_pt_encode(&in, buf, sizeof(buf), block);
		if (size < 1 || vmpt_pt_decode(&out, buf, (size_t)size, block) ||
		    out.kind != in.kind || out.size != size ||
		    memcmp(out.val, in.val, sizeof(in.val)))
			ck_abort_msg("packet %u: %s %llx %llx %llx: size %d", n,
				     vmpt_pt_name(in.kind), (unsigned long long)in.val[0],
				     (unsigned long long)in.val[1], (unsigned long long)in.val[2],
				     size);
	}
}
END_TEST

/* Table 33-15, and 33.4.1.1: OVF and BEP end a block, BBP starts another. */
START_TEST(what_ends_a_packet_block)
{
	static const u8 ends[] = {
		VMPT_PT_TNT_8,	 VMPT_PT_TNT_64,    VMPT_PT_TIP,      VMPT_PT_TIP_PGE,
		VMPT_PT_TIP_PGD, VMPT_PT_MODE_EXEC, VMPT_PT_MODE_TSX, VMPT_PT_PIP,
		VMPT_PT_VMCS,	 VMPT_PT_TRACESTOP, VMPT_PT_PSB,      VMPT_PT_PSBEND,
		VMPT_PT_PTW,	 VMPT_PT_MWAIT,	    VMPT_PT_OVF,      VMPT_PT_BEP,
	};
	unsigned int kind, block = VMPT_PT_BLOCK(1, 0x10);

	for (kind = 0; kind < VMPT_PT_KINDS; kind++) {
		struct vmpt_pt_packet p = { .kind = (u8)kind };

		if (kind == VMPT_PT_BBP)
			continue;
		ck_assert_msg(vmpt_pt_block_after(&p, block) ==
				      (memchr(ends, (int)kind, sizeof(ends)) ? 0 : block),
			      "%s", vmpt_pt_name(kind));
		ck_assert_uint_eq(vmpt_pt_block_after(&p, 0), 0);
	}
}
END_TEST

START_TEST(a_bbp_opens_a_block_of_its_size_and_type)
{
	static const u8 wire[] = { 0x02, 0x63, 0x84 };
	struct vmpt_pt_packet p;
	unsigned int block;

	ck_assert_int_eq(vmpt_pt_decode(&p, wire, sizeof(wire), 0), 0);
	block = vmpt_pt_block_after(&p, 0);
	ck_assert_uint_ne(block, 0);
	ck_assert_uint_eq(vmpt_pt_block_item_size(block), 4);
	ck_assert_uint_eq(vmpt_pt_block_type(block), 4);
	p.bbp.sz = 0;
	p.bbp.type = 0;
	block = vmpt_pt_block_after(&p, block);
	ck_assert_uint_ne(block, 0);
	ck_assert_uint_eq(vmpt_pt_block_item_size(block), 8);
	ck_assert_uint_eq(vmpt_pt_block_type(block), 0);
}
END_TEST

TEST_SUITE()
{
	Suite *s = suite_create("arch/pt-packet");
	TCase *t = tcase_create("packets");

	tcase_add_test(t, every_case_decodes_to_its_values);
	tcase_add_test(t, every_case_encodes_to_its_bytes);
	tcase_add_test(t, every_case_cut_anywhere_is_truncated);
	tcase_add_test(t, the_cases_hold_every_kind);
	tcase_add_test(t, tnt_of_every_length);
	tcase_add_test(t, every_id_of_a_block_item);
	tcase_add_test(t, cyc_may_be_longer_than_needed);
	tcase_add_test(t, encode_refuses_what_does_not_fit);
	tcase_add_test(t, random_packets_come_back_as_they_were);
	tcase_add_test(t, what_ends_a_packet_block);
	tcase_add_test(t, a_bbp_opens_a_block_of_its_size_and_type);
	suite_add_tcase(s, t);
	return s;
}
