// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * vmpt_vcpu_tsc_adjust: guests that change their tables and positions, and the bound on its work.
 */
#include "tests/support/support.h"
#include "tests/vmm-lib/tsc-rig.h"

#define ONE (1ULL << 48)

static const u8 tsc[8] = { 0x19, 0x10 };
static const u8 psb[16] = {
	2, 0x82, 2, 0x82, 2, 0x82, 2, 0x82, 2, 0x82, 2, 0x82, 2, 0x82, 2, 0x82
};
static const struct vmpt_tsc_change plus_one = { .multiplier = ONE, .offset = 1 };

/* ---- guests that change their tables ---- */

/* Not found: nothing is changed, the position is the current one, a PSB is searched for. */
static void check_lost(struct tsc_rig *r, u64 reads_max)
{
	u64 writes = r->guest.writes, maps = r->guest.maps;
	u64 base = r->v.regs.output_base, ptrs = r->v.regs.output_mask_ptrs;

	r->guest.reads = 0;
	r->v.traced = 1ULL << 32;
	ck_assert_int_eq(vmpt_vcpu_tsc_adjust(&r->v, &plus_one, NULL), -VMPT_E_LIMIT);
	ck_assert_uint_le(r->guest.reads, reads_max);
	ck_assert_uint_eq(r->guest.writes, writes);
	ck_assert_uint_eq(r->guest.maps, maps);
	ck_assert_uint_eq(r->v.scan.lost, 1);
	ck_assert_uint_eq(r->v.scan_base, base);
	ck_assert_uint_eq(r->v.scan_mask_ptrs, ptrs);
}

/* A hostile guest's changes to its first table: entries 0 to 2, and its position. */
static const struct hostile {
	const char *name;
	u64 entry[3];
	u64 base, ptrs;
	u64 reads;
} hostiles[] = {
	{ "a loop that leads nowhere", { 0x20000, TSC_TABLE(0) | 1 }, 0x9000, 0x7f, 16384 },
	{ "END in entry 0", { TSC_TABLE(0) | 1 }, 0x9000, 0x7f, 1 },
	{ "a reserved bit", { 0x20000 | 2 }, 0x9000, 0x7f, 1 },
	{ "no memory at the next table", { 0x20000, 0x40000000 | 1 }, 0x9000, 0x7f, 3 },
	{ "a table beyond MAXPHYADDR", { 0x20000, 1ULL << 50 | 1 }, 0x9000, 0x7f, 2 },
	{ "a table that is not aligned",
	  { 0x20000, TSC_TABLE(1) | 1 },
	  TSC_TABLE(1) + 0x80,
	  0x7f,
	  16384 },
	{ "a region that became too small",
	  { 0x20000, TSC_TABLE(0) | 1 },
	  TSC_TABLE(0),
	  5000ULL << 32 | 0x7f,
	  1 },
	/* 128 MiB each turn: 4 GiB are 32 turns of two entries */
	{ "too many bytes", { 0xfULL << 6, TSC_TABLE(0) | 1 }, 0x9000, 0x7f, 66 },
};

START_TEST(hostile_tables)
{
	static const u8 sizes[2] = { 0, 0 };
	const struct hostile *h = &hostiles[_i];
	struct tsc_rig r;
	unsigned int i;

	tsc_rig_init(&r, true);
	tsc_rig_topa(&r, sizes, 2, 1);
	tsc_rig_start(&r);
	for (i = 0; i < 3; i++)
		guest_put64(&r.guest, TSC_TABLE(0) + 8 * i, h->entry[i]);
	r.v.regs.output_base = h->base;
	r.v.regs.output_mask_ptrs = h->ptrs;
	check_lost(&r, h->reads);
	guest_free(&r.guest);
}
END_TEST

/* The path changes between the two passes: bounded, and lost too. */
static int swap_read(void *opaque, u64 gpa, void *buf, size_t len)
{
	struct tsc_rig *r = opaque;
	int err = guest_read(&r->guest, gpa, buf, len);

	/* Entry 1 is valid once. */
	if (gpa == TSC_TABLE(0) + 8 && r->failing++)
		memset(buf, 0xff, len);
	return err;
}

START_TEST(change_in_between)
{
	static const u8 sizes[3] = { 0, 0, 0 };
	struct tsc_rig r;

	tsc_rig_init(&r, true);
	tsc_rig_topa(&r, sizes, 3, 3);
	tsc_rig_start(&r);
	r.ops.guest_read = swap_read;
	tsc_rig_go(&r, 9000);
	ck_assert_int_eq(vmpt_vcpu_tsc_adjust(&r.v, &plus_one, NULL), -VMPT_E_LIMIT);
	ck_assert_uint_eq(r.v.scan.lost, 1);
	/* It continues after the next PSB; A2: the TSC before it does not stay. */
	r.ops.guest_read = tsc_rig_read;
	tsc_rig_put(&r, 9000, tsc, 8);
	tsc_rig_put(&r, 9008, psb, 16);
	tsc_rig_put(&r, 9024, tsc, 8);
	tsc_rig_go(&r, 9100);
	ck_assert_int_eq(vmpt_vcpu_tsc_adjust(&r.v, &plus_one, NULL), 0);
	ck_assert_uint_eq(tsc_rig_byte(&r, 9001), 0);
	ck_assert_uint_eq(tsc_rig_byte(&r, 9025), 0x11);
	guest_free(&r.guest);
}
END_TEST

/* A cut packet's region is different at each call, a byte further: no third place. */
START_TEST(cut_moves)
{
	static const u8 sizes[1] = { 0 };
	struct tsc_rig r;
	u64 i;

	tsc_rig_init(&r, false);
	tsc_rig_topa(&r, sizes, 1, 1);
	tsc_rig_start(&r);
	for (i = 0; i < 5; i++) {
		guest_put64(&r.guest, TSC_TABLE(0), 0x20000 + 0x1000 * i);
		guest_put(&r.guest, 0x20000 + 0x1000 * i, tsc, 8);
		tsc_rig_go(&r, i + 1);
		ck_assert_int_eq(vmpt_vcpu_tsc_adjust(&r.v, &plus_one, NULL), 0);
		ck_assert_uint_eq(!r.v.scan.lost, i <= 1);
		ck_assert_uint_le(r.v.cut_len[0] + r.v.cut_len[1], 2);
	}
	guest_free(&r.guest);
}
END_TEST

/* A table of the largest size, 256 MiB, of which only the last entry and the first are read. */
static int wrap_read(void *opaque, u64 gpa, void *buf, size_t len)
{
	u64 last = TSC_TABLE(0) + 8 * (VMPT_TOPA_ENTRIES_MAX - 1ULL);
	u64 entry = gpa == last ? 0x20000 : 0x30000;

	if (gpa != last && gpa != TSC_TABLE(0))
		return tsc_rig_read(opaque, gpa, buf, len);
	ck_assert_uint_eq(len, sizeof(entry));
	memcpy(buf, &entry, sizeof(entry));
	return 0;
}

/* After entry 2^25 - 1 (offset 0FFFFFF8H) comes the first one, with a TSC across the two. */
START_TEST(wraps)
{
	struct tsc_rig r;
	u8 byte[2];

	tsc_rig_init(&r, _i);
	r.topa = true;
	r.v.regs.ctl = VMPT_CTL_TOPA | VMPT_CTL_TRACE_EN;
	r.ops.guest_read = wrap_read;
	r.v.scan_base = TSC_TABLE(0);
	r.v.scan_mask_ptrs = vmpt_pt_mask_ptrs(VMPT_TOPA_ENTRIES_MAX - 1, 4000);
	r.v.scan_set = true;
	guest_put(&r.guest, 0x20000 + 4095, tsc, 1);
	guest_put(&r.guest, 0x30000, tsc + 1, 7);
	guest_put(&r.guest, 0x30000 + 7, tsc, 8);
	r.v.regs.output_base = TSC_TABLE(0);
	r.v.regs.output_mask_ptrs = vmpt_pt_mask_ptrs(0, 20);
	r.v.traced = 96 + 20;
	ck_assert_int_eq(vmpt_vcpu_tsc_adjust(&r.v, &plus_one, NULL), 0);
	guest_get(&r.guest, 0x30000, byte, 1);
	guest_get(&r.guest, 0x30000 + 8, byte + 1, 1);
	ck_assert_uint_eq(byte[0], 0x11);
	ck_assert_uint_eq(byte[1], 0x11);
	ck_assert_uint_eq(r.v.scan.tscs, 2);
	guest_free(&r.guest);
}
END_TEST

/* Single ranges that do not fit the old one: another base, mask, offset. */
START_TEST(hostile_range)
{
	static const struct vmpt_position to[] = {
		{ 0x20000, 0x100000fff },
		{ 0x10000, 0x1000007ff },
		{ 0x10000, 0x100000000fff },
		{ 0x10000, 0x100000f7f },
	};
	struct tsc_rig r;

	tsc_rig_init(&r, true);
	tsc_rig_range(&r, 4096);
	tsc_rig_start(&r);
	r.v.regs.output_base = to[_i].output_base;
	r.v.regs.output_mask_ptrs = to[_i].output_mask_ptrs;
	check_lost(&r, 0);
	guest_free(&r.guest);
}
END_TEST

/* The highest address that was read; entries of one page. */
static u64 highest;

static int top_read(void *opaque, u64 gpa, void *buf, size_t len)
{
	const u64 entry = 0x20000;

	(void)opaque;
	highest = gpa + len > highest ? gpa + len : highest;
	ck_assert_uint_le(len, sizeof(entry));
	memcpy(buf, &entry, len);
	return 0;
}

/* A table in the last page below MAXPHYADDR, 46, has no END and goes on beyond it. */
START_TEST(g10_above_maxphyaddr)
{
	static const u8 sizes[1] = { 0 };
	struct tsc_rig r;

	tsc_rig_init(&r, true);
	tsc_rig_topa(&r, sizes, 1, 1);
	r.v.scan_base = r.v.regs.output_base = (1ULL << 46) - 4096;
	r.v.scan_mask_ptrs = 510 << 7 | 0x7f;
	r.v.regs.output_mask_ptrs = 600 << 7 | 0x7f;
	r.v.scan_set = true;
	r.v.traced = 1 << 20;
	r.ops.guest_read = top_read;
	highest = 0;
	ck_assert_int_eq(vmpt_vcpu_tsc_adjust(&r.v, &plus_one, NULL), -VMPT_E_LIMIT);
	ck_assert_uint_eq(highest, 1ULL << 46);
	guest_free(&r.guest);
}
END_TEST

/* Places that no guest's OUTPUT_BASE can be: refused, nothing is changed. */
START_TEST(g10_malformed_to)
{
	static const u64 bases[] = { 0x41, 0x1040, 1ULL << 46, ~0ULL };
	struct vmpt_position to = { bases[_i / 2], 0x7f };
	struct tsc_rig r;

	tsc_rig_init(&r, true);
	tsc_rig_range(&r, 4096);
	if (_i & 1)
		tsc_rig_start(&r); /* else the first call, which only notes the place */
	ck_assert_int_eq(vmpt_vcpu_tsc_adjust(&r.v, &plus_one, &to), -VMPT_E_INVAL);
	ck_assert_int_eq(r.v.scan_set, _i & 1);
	ck_assert_uint_eq(r.v.scan.lost, 0);
	guest_free(&r.guest);
}
END_TEST

/* ---- what the guest traced bounds the work ---- */

/* Memory of any size for the trace: the same bytes again and again. What is asked is counted. */
static struct {
	u8 bytes[1 << 20];
	u64 touched;
} big;

static int big_map(void *opaque, u64 gpa, u8 **host, size_t *size)
{
	(void)opaque, (void)gpa;
	big.touched += *size;
	*host = big.bytes;
	*size = *size < sizeof(big.bytes) ? *size : sizeof(big.bytes);
	return 0;
}

static int big_write(void *opaque, u64 gpa, const void *buf, size_t len)
{
	(void)opaque, (void)gpa, (void)buf, (void)len;
	return 0;
}

/* Entries, and what a packet cut by the budget needs. */
static int big_read(void *opaque, u64 gpa, void *buf, size_t len)
{
	if (gpa < 1ULL << 27)
		return tsc_rig_read(opaque, gpa, buf, len);
	big.touched += len;
	memset(buf, 0, len);
	return 0;
}

static void big_init(struct tsc_rig *r)
{
	unsigned int i;

	tsc_rig_init(r, true);
	r->topa = true;
	r->v.regs.ctl = VMPT_CTL_TOPA | VMPT_CTL_TRACE_EN;
	r->ops.guest_map = big_map;
	r->ops.guest_read = big_read;
	r->ops.guest_write = big_write;
	for (i = 0; i < 31; i++)
		guest_put64(&r->guest, TSC_TABLE(0) + 8 * i, 1ULL << 27 | 0xf << 6);
	guest_put64(&r->guest, TSC_TABLE(0) + 8 * i, TSC_TABLE(0) | 1);
	r->v.scan_base = r->v.regs.output_base = TSC_TABLE(0);
	r->v.scan_mask_ptrs = 0x7f;
	r->v.scan_set = true;
	memset(&big, 0, sizeof(big));
}

/* Entries that all name the same 128 MiB: not a byte more than the guest traced. */
START_TEST(g3_same_memory)
{
	struct tsc_rig r;

	big_init(&r);
	r.v.regs.output_mask_ptrs = 30 << 7 | 0x7f;
	r.v.traced = 5 << 20;
	ck_assert_int_eq(vmpt_vcpu_tsc_adjust(&r.v, &plus_one, NULL), -VMPT_E_LIMIT);
	ck_assert_uint_eq(big.touched, 0);
	/* And it goes on there. */
	r.v.regs.output_mask_ptrs = 5000ULL << 32 | 30 << 7 | 0x7f;
	r.v.traced = 5000;
	ck_assert_int_eq(vmpt_vcpu_tsc_adjust(&r.v, &plus_one, NULL), 0);
	ck_assert_uint_eq(big.touched, 5000);
	guest_free(&r.guest);
}
END_TEST

/* What was traced is done in parts, none above the budget. _i 1: of the VMM's own size. */
START_TEST(g3_budget)
{
	const u64 all = (128ULL << 20) + 12345, most = _i ? 100000 : 1 << 18;
	u64 calls = 0, sum = 0;
	struct tsc_rig r;
	int err;

	big_init(&r);
	r.v.adjust_budget = _i ? 100000 : 0;
	r.v.regs.output_mask_ptrs = 12345ULL << 32 | 1 << 7 | 0x7f;
	r.v.traced = all;
	do {
		big.touched = 0;
		err = vmpt_vcpu_tsc_adjust(&r.v, &plus_one, NULL);
		ck_assert_uint_le(big.touched, most);
		sum += big.touched;
		calls++;
		if (err != VMPT_MORE)
			break;
		/* Not half adjusted, and no further before it is. */
		ck_assert_int_eq(vmpt_vcpu_enter(&r.v), -VMPT_E_STATE);
	} while (calls < 10000);
	ck_assert_int_eq(err, 0);
	ck_assert_uint_eq(sum, all);
	ck_assert_uint_le(calls, all / (most - 2 * VMPT_ADJUST_ENTRY) + 1);
	ck_assert_uint_eq(r.v.scan.errors, 0);
	ck_assert_uint_eq(r.v.scan.packets, all);
	ck_assert_int_ne(vmpt_vcpu_enter(&r.v), -VMPT_E_STATE);
	guest_free(&r.guest);
}
END_TEST

/* The position changes while work is left: what is new is adjusted too, nothing twice. */
START_TEST(g3_other_target)
{
	struct vmpt_position to = { TSC_TABLE(0), 3000000ULL << 32 | 0x7f };
	struct tsc_rig r;
	u64 sum = 0;
	int err;

	big_init(&r);
	r.v.regs.output_mask_ptrs = 4000000ULL << 32 | 0x7f;
	r.v.traced = 4000000;
	ck_assert_int_eq(vmpt_vcpu_tsc_adjust(&r.v, &plus_one, &to), VMPT_MORE);
	do {
		sum += big.touched;
		big.touched = 0;
		err = vmpt_vcpu_tsc_adjust(&r.v, &plus_one, NULL);
	} while (err == VMPT_MORE);
	ck_assert_int_eq(err, 0);
	ck_assert_uint_eq(sum + big.touched, 4000000);
	/* A move of the output ends it. */
	r.v.regs.output_mask_ptrs = 8000000ULL << 32 | 0x7f;
	r.v.traced = 4000000;
	ck_assert_int_eq(vmpt_vcpu_tsc_adjust(&r.v, &plus_one, NULL), VMPT_MORE);
	vmpt_vcpu_reset(&r.v, true);
	ck_assert_int_ne(vmpt_vcpu_enter(&r.v), -VMPT_E_STATE);
	guest_free(&r.guest);
}
END_TEST

TEST_SUITE()
{
	Suite *suite = suite_create("tsc-adjust-hostile");
	TCase *tc = tcase_create("tsc-adjust-hostile");

	tcase_add_loop_test(tc, hostile_tables, 0, VMPT_ARRAY_SIZE(hostiles));
	tcase_add_test(tc, change_in_between);
	tcase_add_test(tc, cut_moves);
	tcase_add_loop_test(tc, wraps, 0, 2);
	tcase_add_loop_test(tc, hostile_range, 0, 4);
	tcase_add_test(tc, g10_above_maxphyaddr);
	tcase_add_loop_test(tc, g10_malformed_to, 0, 8);
	tcase_add_test(tc, g3_same_memory);
	tcase_add_loop_test(tc, g3_budget, 0, 2);
	tcase_add_test(tc, g3_other_target);
	suite_add_tcase(suite, tc);
	return suite;
}
