// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * RTIT packets (RTIT Programming Reference, chapter 4): bytes worked out by hand from the manual's
 * figures, all headers of Figure 2, all lengths cut, Table 18 row by row.
 */
#include "arch/rtit-packet.h"
#include "tests/support/support.h"

struct row {
	u8 bytes[12];
	u8 size;
	const char *text;
	bool cycle_acc;
};

static const struct row rows[] = {
	/* Figure 4: the leading one, then branches, the oldest first */
	{ { 0x02 }, 1, "TNT N", false },
	{ { 0x03 }, 1, "TNT T", false },
	{ { 0x06 }, 1, "TNT TN", false },
	{ { 0x0b }, 1, "TNT NTT", false },
	{ { 0x18 }, 1, "TNT TNNN", false },
	{ { 0x35 }, 1, "TNT TNTNT", false },
	{ { 0x6a }, 1, "TNT TNTNTN", false },
	/* Figure 8: event in bits 5:3, Zext bit 2, CNT bits 1:0 */
	{ { 0x80, 0x34, 0x12 }, 3, "FUP.PGE cnt=0 lip=0x1234", false },
	{ { 0x84, 0x34, 0x12 }, 3, "FUP.PGE cnt=0 zext lip=0x1234", false },
	{ { 0x8d, 0x78, 0x56, 0x34, 0x12 }, 5, "FUP.PGD cnt=1 zext lip=0x12345678", false },
	{ { 0x92, 1, 2, 3, 4, 5, 0x80 }, 7, "FUP.BuffOvf cnt=2 lip=0x800504030201", false },
	{ { 0x98, 0, 0 }, 3, "FUP.PCC cnt=0 lip=0x0", false },
	{ { 0xb1, 0xff, 0xff, 0xff, 0xff }, 5, "TIP cnt=1 lip=0xffffffff", false },
	{ { 0xba, 0, 0, 0, 0, 0xff, 0xff }, 7, "FUP.Far cnt=2 lip=0xffff00000000", false },
	/* Figures 3, 10, 9, 11, 12 */
	{ { 0xc0 }, 9, "PSB", false },
	{ { 0xc1 }, 1, "TraceSTOP", false },
	{ { 0xc2, 0x00, 0x10, 0x20, 0x30, 0x40 }, 6, "PIP cr3=0x4030201000", false },
	{ { 0xc3, 0x00, 0xf0, 0, 0, 0 }, 6, "PIP pg cr3=0xf000", false },
	{ { 0xc6, 0x5a }, 2, "MTC rng=2 tsc=0x5a", false },
	/* ACBR 101101b: 1011b in the header, 01b above ECBR 000110b */
	{ { 0xdb, 0x46, 1, 2, 3, 4, 5 }, 7, "STS acbr=45 ecbr=6 tsc=0x504030201", false },
	/* Figure 13: CCNT bits 1:0, count 5:0 in bits 7:2, then 8 bits per byte */
	{ { 0x6a, 0xfd }, 2, "TNT TNTNTN +63", true },
	{ { 0x84, 0x34, 0x12, 0x02, 0x01 }, 5, "FUP.PGE cnt=0 zext lip=0x1234 +64", true },
	{ { 0xc6, 0x5a, 0x07, 0x00, 0x01 }, 5, "MTC rng=2 tsc=0x5a +16385", true },
	{ { 0xc3, 0, 0, 0, 0, 0, 0xff, 0xff, 0xff }, 9, "PIP pg cr3=0x0 +4194303", true },
	{ { 0xd0, 0, 0, 0, 0, 0, 0, 0x01 }, 8, "STS acbr=0 ecbr=0 tsc=0x0 +0", true },
	/* None after these (4.2.15) */
	{ { 0x35 }, 1, "TNT TNTNT", true },
	{ { 0xc1 }, 1, "TraceSTOP", true },
	{ { 0xc0 }, 9, "PSB", true },
};

START_TEST(as_in_the_figures)
{
	const struct row *row = &rows[_i];
	struct vmpt_rtit_packet pkt;
	char text[80];
	u8 bytes[12];

	ck_assert_int_eq(vmpt_rtit_decode(&pkt, row->bytes, row->size, row->cycle_acc), 0);
	ck_assert_uint_eq(pkt.size, row->size);
	ck_assert_uint_eq(vmpt_rtit_print(&pkt, text, sizeof(text)), strlen(row->text));
	ck_assert_str_eq(text, row->text);
	/* Bytes after the packet are not read; anything shorter is truncated. */
	ck_assert_int_eq(vmpt_rtit_decode(&pkt, row->bytes, sizeof(row->bytes), row->cycle_acc), 0);
	for (size_t len = 0; len < row->size; len++)
		ck_assert_int_eq(vmpt_rtit_decode(&pkt, row->bytes, len, row->cycle_acc),
				 -VMPT_E_TRUNCATED);
	ck_assert_int_eq(vmpt_rtit_decode(&pkt, row->bytes, row->size, row->cycle_acc), 0);
	pkt.size = 0;
	ck_assert_int_eq(vmpt_rtit_encode(&pkt, bytes, row->size), row->size);
	ck_assert_uint_eq(pkt.size, row->size);
	ck_assert_mem_eq(bytes, row->bytes, row->size);
	ck_assert_int_eq(vmpt_rtit_encode(&pkt, bytes, row->size - 1u), -VMPT_E_SPACE);
	/* The text is truncated, too. */
	ck_assert_uint_eq(vmpt_rtit_print(&pkt, text, 3), strlen(row->text));
	ck_assert_uint_eq(strlen(text), 2);
}
END_TEST

/* Figure 2: which headers are packets. */
static int kind_of(unsigned int byte)
{
	if (byte < 2)
		return -1;
	if (byte < 0x80)
		return VMPT_RTIT_TNT;
	if (byte < 0xc0) {
		static const int events[8] = {
			VMPT_RTIT_PGE, VMPT_RTIT_PGD, VMPT_RTIT_BUFF_OVF, VMPT_RTIT_PCC, -1, -1,
			VMPT_RTIT_TIP, VMPT_RTIT_FAR
		};

		return events[byte >> 3 & 7];
	}
	if (byte == 0xc0)
		return VMPT_RTIT_PSB;
	if (byte == 0xc1)
		return VMPT_RTIT_TRACESTOP;
	if (byte < 0xc4)
		return VMPT_RTIT_PIP;
	if (byte < 0xc8)
		return VMPT_RTIT_MTC;
	return byte >= 0xd0 && byte < 0xe0 ? VMPT_RTIT_STS : -1;
}

START_TEST(every_header)
{
	u8 bytes[12] = { (u8)_i };
	struct vmpt_rtit_packet pkt;
	int kind = kind_of((unsigned int)_i),
	    ret = vmpt_rtit_decode(&pkt, bytes, sizeof(bytes), false);

	if (kind < 0) {
		ck_assert_int_eq(ret, -VMPT_E_OPCODE);
	} else if (_i >= 0x80 && _i < 0xc0 && (_i & 3) == 3) {
		ck_assert_int_eq(ret, -VMPT_E_IPBYTES);
	} else {
		ck_assert_int_eq(ret, 0);
		ck_assert_int_eq(pkt.kind, kind);
	}
}
END_TEST

/* ---- decoding compared with vmpt_rtit_table ---- */

static u64 field_of(const struct vmpt_rtit_field *f, const u8 *bytes, unsigned int size)
{
	unsigned int i, top;
	u64 v = 0;

	for (i = 0; i < f->width && f->bit + i < 8 * size; i++)
		v |= (u64)(bytes[(f->bit + i) / 8] >> (f->bit + i) % 8 & 1) << i;
	for (top = 7; top && !(v >> top); top--)
		;
	switch (f->coding) {
	case VMPT_RTIT_STOP_BIT:
		return v ^ 1u << top;
	case VMPT_RTIT_COUNT:
		return top;
	case VMPT_RTIT_ACBR:
		return (bytes[0] & 0xfu) << 2 | bytes[1] >> 6;
	default:
		return v;
	}
}

static int kind_in_table(u8 byte)
{
	int kind;

	for (kind = 0; kind < VMPT_RTIT_KINDS && byte >= 2; kind++)
		if ((byte & vmpt_rtit_table[kind].mask) == vmpt_rtit_table[kind].header)
			return kind;
	return -1;
}

/* Each header followed by any bytes, of any length: as the table says. */
START_TEST(as_in_the_table)
{
	struct test_rng rng = { (u64)_i };
	const struct vmpt_rtit_desc *d;
	struct vmpt_rtit_packet pkt;
	int kind = kind_in_table((u8)_i), want, got;
	unsigned int n, i, size, len;
	u8 bytes[16];

	for (n = 0; n < 2000; n++) {
		for (i = 0; i < sizeof(bytes); i++)
			bytes[i] = kind == VMPT_RTIT_PSB ? 0 : (u8)test_random(&rng);
		bytes[0] = (u8)_i;
		len = 1 + n % 12;
		d = &vmpt_rtit_table[kind < 0 ? 0 : kind];
		size = d->size + (d->classes & VMPT_RTIT_HAS_LIP ? 2 + 2 * (_i & 3u) : 0);
		want = kind < 0					    ? -VMPT_E_OPCODE
		       : d->classes & VMPT_RTIT_HAS_LIP && size > 7 ? -VMPT_E_IPBYTES
		       : size > len				    ? -VMPT_E_TRUNCATED
								    : 0;
		memset(&pkt, 0xa5, sizeof(pkt));
		got = vmpt_rtit_decode(&pkt, bytes, len, false);
		if (got != want)
			ck_abort_msg("%02x, %u bytes: %d, want %d", _i, len, got, want);
		if (got)
			continue;
		if (pkt.kind != kind || pkt.size != size || pkt.flags || pkt.cycles)
			ck_abort_msg("%02x: kind %u, size %u", _i, pkt.kind, pkt.size);
		for (i = 0; i < VMPT_RTIT_VALUES; i++)
			if (pkt.val[i] != (i < d->fields ? field_of(&d->field[i], bytes, size) : 0))
				ck_abort_msg("%02x: field %u is %llx", _i, i,
					     (unsigned long long)pkt.val[i]);
	}
}
END_TEST

START_TEST(broken)
{
	u8 psb[9] = { 0xc0 }, no_ccnt[] = { 0xc4, 0, 0xfc };
	struct vmpt_rtit_packet pkt;

	for (unsigned int i = 1; i < 9; i++) {
		psb[i] = 1;
		ck_assert_int_eq(vmpt_rtit_decode(&pkt, psb, 9, false), -VMPT_E_PSB);
		psb[i] = 0;
	}
	ck_assert_int_eq(vmpt_rtit_decode(&pkt, psb, 9, false), 0);
	ck_assert_int_eq(vmpt_rtit_decode(&pkt, no_ccnt, 3, true), -VMPT_E_CCNT);
	ck_assert_int_eq(vmpt_rtit_decode(&pkt, no_ccnt, 3, false), 0);
	ck_assert_uint_eq(pkt.size, 2);
}
END_TEST

/* Values that a field cannot hold. */
static const struct vmpt_rtit_packet unfit[] = {
	{ .kind = VMPT_RTIT_KINDS },
	{ .kind = VMPT_RTIT_TNT, .tnt = { 0, 0 } },
	{ .kind = VMPT_RTIT_TNT, .tnt = { 0, 7 } },
	{ .kind = VMPT_RTIT_TNT, .tnt = { 2, 1 } },
	{ .kind = VMPT_RTIT_TNT, .tnt = { 1, 5 }, .flags = VMPT_RTIT_CYCLES },
	{ .kind = VMPT_RTIT_TIP, .ip = { 3, 0, 0 } },
	{ .kind = VMPT_RTIT_TIP, .ip = { 0, 2, 0 } },
	{ .kind = VMPT_RTIT_TIP, .ip = { 0, 0, 0x10000 } },
	{ .kind = VMPT_RTIT_TIP, .ip = { 2, 0, 1ULL << 48 } },
	{ .kind = VMPT_RTIT_PIP, .pip = { 1, 1ULL << 40 } },
	{ .kind = VMPT_RTIT_MTC, .mtc = { 4, 0 } },
	{ .kind = VMPT_RTIT_MTC, .mtc = { 0, 0 }, .flags = VMPT_RTIT_CYCLES, .cycles = 1u << 22 },
	{ .kind = VMPT_RTIT_STS, .sts = { 64, 0, 0 } },
	{ .kind = VMPT_RTIT_STS, .sts = { 0, 0, 1ULL << 40 } },
	{ .kind = VMPT_RTIT_PSB, .flags = VMPT_RTIT_CYCLES },
	{ .kind = VMPT_RTIT_TRACESTOP, .flags = VMPT_RTIT_CYCLES },
};

START_TEST(does_not_fit)
{
	struct vmpt_rtit_packet pkt = unfit[_i];
	u8 bytes[12];

	ck_assert_int_eq(vmpt_rtit_encode(&pkt, bytes, sizeof(bytes)), -VMPT_E_INVAL);
}
END_TEST

/* Table 18. Last LIP is 1111 2222 3333H unless it is invalid. */
static const struct {
	u64 lip;
	u8 cnt, zext;
	bool no_last;
	u64 last;
} table_18[] = {
	{ 0x111122229999, 0, 0, false, 0x111122223333 }, /* both match */
	{ 0x000022229999, 0, 0, false, 0x000022223333 }, /* both match, the upper one zeroes */
	{ 0x000000009999, 0, 1, false, 0x111122223333 }, /* both zeroes */
	{ 0x000000009999, 0, 1, false, 0x000000003333 }, /* the middle one matches */
	{ 0x111144449999, 1, 0, false, 0x111122223333 }, /* the upper one matches */
	{ 0x000044449999, 1, 1, false, 0x000022223333 }, /* and is zeroes */
	{ 0x000022229999, 1, 1, false, 0x111122223333 }, /* zeroes, the middle one matches */
	{ 0x555522229999, 2, 0, false, 0x111122223333 }, /* neither */
	{ 0x555500009999, 2, 0, false, 0x111100003333 },
	/* Last LIP is not valid: nothing matches (4.2.3.1, scenario 1) */
	{ 0x111122229999, 2, 0, true, 0x111122223333 },
	{ 0x000022229999, 1, 1, true, 0x000022223333 },
	{ 0x000000009999, 0, 1, true, 0 },
};

START_TEST(table_18_row)
{
	struct vmpt_rtit_last_lip last = { .lip = table_18[_i].last,
					   .valid = !table_18[_i].no_last };
	struct vmpt_rtit_last_lip decoder = last;
	struct vmpt_rtit_packet pkt = { .kind = VMPT_RTIT_TIP };
	u64 lip;

	vmpt_rtit_lip_compress(&last, table_18[_i].lip, &pkt);
	ck_assert_uint_eq(pkt.ip.cnt, table_18[_i].cnt);
	ck_assert_uint_eq(pkt.ip.zext, table_18[_i].zext);
	ck_assert_uint_eq(pkt.ip.lip,
			  table_18[_i].lip & (0xffffffffffffULL >> (16 * (2 - pkt.ip.cnt))));
	ck_assert(last.valid);
	ck_assert_uint_eq(last.lip, table_18[_i].lip);
	ck_assert(vmpt_rtit_lip_expand(&decoder, &pkt, &lip));
	ck_assert_uint_eq(lip, table_18[_i].lip);
	ck_assert(decoder.valid);
	ck_assert_uint_eq(decoder.lip, lip);
}
END_TEST

START_TEST(no_last_lip)
{
	struct vmpt_rtit_last_lip last = { .lip = 0x111122223333, .valid = false };
	struct vmpt_rtit_packet pkt = { .kind = VMPT_RTIT_TIP, .ip = { 1, 0, 0x44449999 } };
	u64 lip;

	ck_assert(!vmpt_rtit_lip_expand(&last, &pkt, &lip));
	ck_assert_uint_eq(lip, 0x44449999);
	ck_assert(!last.valid);
}
END_TEST

TEST_SUITE()
{
	Suite *s = suite_create("arch/rtit-packet");
	TCase *t = tcase_create("packets");

	tcase_add_loop_test(t, as_in_the_figures, 0, VMPT_ARRAY_SIZE(rows));
	tcase_add_loop_test(t, every_header, 0, 256);
	tcase_add_loop_test(t, as_in_the_table, 0, 256);
	tcase_add_test(t, broken);
	tcase_add_loop_test(t, does_not_fit, 0, VMPT_ARRAY_SIZE(unfit));
	tcase_add_loop_test(t, table_18_row, 0, VMPT_ARRAY_SIZE(table_18));
	tcase_add_test(t, no_last_lip);
	suite_add_tcase(s, t);
	return s;
}
