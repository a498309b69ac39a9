// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * vmpt_vcpu_tsc_adjust: random traces in random ToPA tables and single ranges, in steps, with and
 * without guest_map, with callbacks that fail in between; guests that change their tables; missing
 * memory.
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "tests/support/support.h"
#include "tests/vmm-lib/tsc-oracle.h"
#include "tests/vmm-lib/tsc-rig.h"

#define ONE (1ULL << 48)

/* ---- random traces ---- */

static u64 draw(struct test_rng *rng, u64 n)
{
	return test_random(rng) % n;
}

static void random_layout(struct tsc_rig *r, struct test_rng *rng)
{
	u8 sizes[TSC_REGIONS];
	unsigned int i, n = 1 + (unsigned int)draw(rng, TSC_REGIONS);

	for (i = 0; i < n; i++)
		sizes[i] = (u8)(draw(rng, 3) ? 0 : draw(rng, 3));
	if (draw(rng, 3))
		tsc_rig_topa(r, sizes, n, 1 + (unsigned int)draw(rng, 5));
	else
		tsc_rig_range(r, 128u << draw(rng, 10));
}

/* One call, repeated while callbacks fail or work is left. */
static void adjust(struct tsc_rig *r, struct test_rng *rng, const struct vmpt_tsc_change *change,
		   const struct vmpt_position *to, u64 seed)
{
	int err;

	do {
		r->fail_in = draw(rng, 3) ? 0 : 1 + draw(rng, 30);
		err = vmpt_vcpu_tsc_adjust(&r->v, change, to);
	} while (err == -VMPT_E_IO || err == VMPT_MORE);
	r->fail_in = 0;
	if (err)
		ck_abort_msg("seed %llu: %d", (unsigned long long)seed, err);
}

/* A trace of several times the ring, adjusted in steps of less than a ring. */
static void random_round(u64 seed)
{
	static const struct tsc_mix mix = { .psb = 5, .tsc = 80, .block = 10, .tsc_bytes = true };
	static const struct tsc_mix bad = { .psb = 9, .tsc = 40, .block = 10, .error = 2 };
	struct test_rng rng = { seed };
	struct vmpt_tsc_change change = { .high = (u8)test_random(&rng) };
	struct tsc_oracle sum = { 0 };
	struct tsc_rig r;
	u64 at = 0, len, n, middle, stream_rng = test_random(&rng) | 1;
	struct vmpt_position to;
	u8 *in, *want;

	tsc_rig_init(&r, draw(&rng, 2));
	r.v.adjust_budget = draw(&rng, 3) ? 0 : draw(&rng, 20000);
	random_layout(&r, &rng);
	guest_shuffle(&r.guest, seed);
	tsc_rig_start(&r);
	len = draw(&rng, 3 * r.ring < 60000 ? 3 * r.ring : 60000) + 1;
	in = malloc(len);
	want = malloc(len);
	ck_assert(in && want);
	tsc_stream(in, len, draw(&rng, 4) ? &mix : &bad, &stream_rng);
	memcpy(want, in, len);
	while (at < len) {
		/* A cut packet before it must not be overwritten. */
		n = draw(&rng, draw(&rng, 2) ? 20 : r.ring - VMPT_PT_SIZE_MAX);
		n = n < len - at ? n : len - at;
		tsc_rig_put(&r, at, in + at, n);
		tsc_rig_go(&r, at + n);
		/* The clock may change in between: the caller says where. */
		middle = draw(&rng, n + 1);
		to = tsc_rig_position(&r, at + middle);
		change.multiplier = test_random(&rng) >> 14;
		change.offset = test_random(&rng);
		adjust(&r, &rng, &change, &to, seed);
		tsc_oracle(&sum, &change, in, want, at, at + middle);
		change.offset += 1000;
		adjust(&r, &rng, &change, NULL, seed);
		tsc_oracle(&sum, &change, in, want, at + middle, at + n);
		at += n;
		tsc_rig_check(&r, want, at, seed);
		if (draw(&rng, 8) == 0)
			at = at + n < len ? at : len; /* enough of this one */
	}
	free(in);
	free(want);
	guest_free(&r.guest);
}

START_TEST(random_traces)
{
	const char *soak = getenv("VMPT_SOAK");
	time_t end = time(NULL) + (soak ? atoi(soak) : 0);
	u64 seed;

	for (seed = 0; seed < 60 || time(NULL) < end; seed++)
		random_round(seed);
}
END_TEST

/* ---- by hand ---- */

static const u8 tsc[8] = { 0x19, 0x10 };
static const u8 psb[16] = {
	2, 0x82, 2, 0x82, 2, 0x82, 2, 0x82, 2, 0x82, 2, 0x82, 2, 0x82, 2, 0x82
};
static const struct vmpt_tsc_change plus_one = { .multiplier = ONE, .offset = 1 };

/* A TSC at each border between the trace's regions, cut after 1 to 7 bytes. */
START_TEST(across_regions)
{
	static const u8 sizes[3] = { 0, 1, 0 };
	unsigned int map, first, cut;
	struct tsc_rig r;

	for (map = 0; map < 2; map++) {
		for (first = 1; first < 8; first++) {
			tsc_rig_init(&r, map);
			tsc_rig_topa(&r, sizes, 3, 1);
			tsc_rig_start(&r);
			for (cut = 0; cut < 2; cut++)
				tsc_rig_put(&r, (cut ? 12288 : 4096) - first, tsc, 8);
			/* One call that ends inside the second TSC, one for the rest. */
			tsc_rig_go(&r, 12288 + 2);
			ck_assert_int_eq(vmpt_vcpu_tsc_adjust(&r.v, &plus_one, NULL), 0);
			ck_assert_uint_eq(tsc_rig_byte(&r, 4096 - first + 1), 0x11);
			ck_assert_uint_eq(tsc_rig_byte(&r, 12288 - first + 1),
					  first > 5 ? 0x11 : 0x10);
			tsc_rig_go(&r, 12288 + 20);
			ck_assert_int_eq(vmpt_vcpu_tsc_adjust(&r.v, &plus_one, NULL), 0);
			ck_assert_uint_eq(tsc_rig_byte(&r, 12288 - first + 1), 0x11);
			ck_assert_uint_eq(r.v.scan.tscs, 2);
			guest_free(&r.guest);
		}
	}
}
END_TEST

/* After STOP OutputOffset is the region's size; an END entry may be current too. */
START_TEST(places)
{
	static const u8 sizes[2] = { 0, 0 };
	struct tsc_rig r;

	tsc_rig_init(&r, true);
	tsc_rig_topa(&r, sizes, 2, 2);
	tsc_rig_start(&r);
	tsc_rig_put(&r, 100, tsc, 8);
	tsc_rig_put(&r, 4096 + 100, tsc, 8);
	r.v.regs.output_mask_ptrs = 4096ULL << 32 | 0x7f;
	r.v.traced = 4096;
	ck_assert_int_eq(vmpt_vcpu_tsc_adjust(&r.v, &plus_one, NULL), 0);
	ck_assert_uint_eq(tsc_rig_byte(&r, 101), 0x11);
	/* From the end of the first region to the END entry, which is index 2. */
	r.v.regs.output_mask_ptrs = 2 << 7 | 0x7f;
	r.v.traced = 4096;
	ck_assert_int_eq(vmpt_vcpu_tsc_adjust(&r.v, &plus_one, NULL), 0);
	ck_assert_uint_eq(tsc_rig_byte(&r, 4096 + 101), 0x11);
	/* And on from there, across the ring's end. */
	tsc_rig_put(&r, 50, tsc, 8);
	tsc_rig_go(&r, 60);
	r.v.scan.lost = 0;
	ck_assert_int_eq(vmpt_vcpu_tsc_adjust(&r.v, &plus_one, NULL), 0);
	ck_assert_uint_eq(tsc_rig_byte(&r, 51), 0x11);
	ck_assert_uint_eq(tsc_rig_byte(&r, 101), 0x11);
	guest_free(&r.guest);
}
END_TEST

START_TEST(arguments)
{
	static const u8 sizes[2] = { 0, 0 };
	struct tsc_rig r;

	tsc_rig_init(&r, true);
	tsc_rig_topa(&r, sizes, 2, 2);
	/* Never enabled here: start now. */
	tsc_rig_go(&r, 50);
	tsc_rig_put(&r, 40, tsc, 8);
	tsc_rig_put(&r, 50, tsc, 8);
	ck_assert_int_eq(vmpt_vcpu_tsc_adjust(&r.v, &plus_one, NULL), 0);
	ck_assert(r.v.scan_set);
	tsc_rig_go(&r, 60);
	ck_assert_int_eq(vmpt_vcpu_tsc_adjust(&r.v, &plus_one, NULL), 0);
	ck_assert_uint_eq(tsc_rig_byte(&r, 41), 0x10);
	ck_assert_uint_eq(tsc_rig_byte(&r, 51), 0x11);
	ck_assert_int_eq(vmpt_vcpu_tsc_adjust(&r.v, NULL, NULL), -VMPT_E_INVAL);
	r.v.entered = true;
	ck_assert_int_eq(vmpt_vcpu_tsc_adjust(&r.v, &plus_one, NULL), -VMPT_E_STATE);
	guest_free(&r.guest);
}
END_TEST

/* A PIP that the VMM appended is one packet among the others. */
START_TEST(after_pip)
{
	static const u8 sizes[2] = { 0, 0 };
	struct vmpt_cr3_write write = { .old_cr3 = 0x1000,
					.new_cr3 = 0x1900,
					.cause = VMPT_CR3_MOV };
	struct tsc_rig r;

	tsc_rig_init(&r, true);
	tsc_rig_topa(&r, sizes, 2, 2);
	r.v.plan.guest_pt = true;
	r.v.regs.ctl |= VMPT_CTL_OS | VMPT_CTL_USER | VMPT_CTL_BRANCH_EN;
	r.v.regs.status = VMPT_STATUS_TRIGGER_EN | VMPT_STATUS_CONTEXT_EN;
	tsc_rig_start(&r);
	/* A TSC, the PIP across the regions' border, a TSC. */
	tsc_rig_go(&r, 4092);
	tsc_rig_put(&r, 4084, tsc, 8);
	ck_assert_int_eq(vmpt_vcpu_cr3_write(&r.v, &write), 1);
	tsc_rig_put(&r, 4100, tsc, 8);
	tsc_rig_go(&r, 4108);
	ck_assert_int_eq(vmpt_vcpu_tsc_adjust(&r.v, &plus_one, NULL), 0);
	ck_assert_uint_eq(tsc_rig_byte(&r, 4085), 0x11);
	ck_assert_uint_eq(tsc_rig_byte(&r, 4092), 0x02);
	ck_assert_uint_eq(tsc_rig_byte(&r, 4093), 0x43);
	ck_assert_uint_eq(tsc_rig_byte(&r, 4101), 0x11);
	/* 4084 PADs before them */
	ck_assert_uint_eq(r.v.scan.packets, 4084 + 3);
	guest_free(&r.guest);
}
END_TEST

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

/* ---- memory that is not there ---- */

START_TEST(no_memory)
{
	static const u8 sizes[1] = { 2 };
	struct tsc_rig r;
	unsigned int page;

	tsc_rig_init(&r, _i);
	tsc_rig_topa(&r, sizes, 1, 1);
	tsc_rig_start(&r);
	page = (unsigned int)(r.gpa[0] >> 12) + 1;
	tsc_rig_put(&r, 10, tsc, 8);
	tsc_rig_put(&r, 4096 + 10, tsc, 8);
	tsc_rig_put(&r, 8192 + 10, tsc, 8);
	tsc_rig_put(&r, 8192 + 100, psb, 16);
	tsc_rig_put(&r, 8192 + 116, tsc, 8);
	tsc_rig_go(&r, 10000);
	guest_set_kind(&r.guest, page, 1, VMPT_MEM_UNBACKED);
	/* The VMM will provide it: nothing after it is done before. */
	r.v.on_mem[VMPT_MEM_UNBACKED] = VMPT_ON_MEM_RETRY;
	ck_assert_int_eq(vmpt_vcpu_tsc_adjust(&r.v, &plus_one, NULL), -VMPT_E_RETRY);
	ck_assert_uint_eq(tsc_rig_byte(&r, 11), 0x11);
	ck_assert_uint_eq(r.v.scan_mask_ptrs >> 32, 4096);
	ck_assert_uint_eq(r.v.scan.errors, 0);
	/* It will not: A2: what follows is overwritten, from the next PSB on it is done. */
	r.v.on_mem[VMPT_MEM_UNBACKED] = VMPT_ON_MEM_DROP;
	ck_assert_int_eq(vmpt_vcpu_tsc_adjust(&r.v, &plus_one, NULL), 0);
	ck_assert_uint_eq(r.v.scan.errors, 1);
	ck_assert_uint_eq(tsc_rig_byte(&r, 11), 0x11);
	ck_assert_uint_eq(tsc_rig_byte(&r, 8192), VMPT_TSC_LOST_MARK);
	ck_assert_uint_eq(tsc_rig_byte(&r, 8192 + 10), 0);
	ck_assert_uint_eq(tsc_rig_byte(&r, 8192 + 11), 0);
	ck_assert_uint_eq(r.v.events, VMPT_EVENT_LOST);
	ck_assert_uint_eq(tsc_rig_byte(&r, 8192 + 117), 0x11);
	guest_set_kind(&r.guest, page, 1, VMPT_MEM_OK);
	ck_assert_uint_eq(tsc_rig_byte(&r, 4096 + 11), 0x10);
	guest_free(&r.guest);
}
END_TEST

/*
 * A packet that the library does not know, whole or in two calls: the loss is reported, a PSB+ is
 * asked for, and the TSCs before it are gone, whatever pieces they are seen in.
 */
START_TEST(a2_an_unknown_packet_in_guest_memory)
{
	static const u8 sizes[3] = { 0, 1, 0 };
	static const u8 unknown[4] = { 0x02, 0x7f, 0x19, 0x02 };
	unsigned int at, i, first = 4096 - 40 + (unsigned int)_i / 2;
	struct tsc_rig r;
	u8 byte;

	tsc_rig_init(&r, _i & 1);
	tsc_rig_topa(&r, sizes, 3, 1);
	tsc_rig_start(&r);
	tsc_rig_put(&r, 8, tsc, 8);
	tsc_rig_put(&r, first, unknown, sizeof(unknown));
	for (at = first + 4; at < first + 60; at += 8)
		tsc_rig_put(&r, at, tsc, 8);
	tsc_rig_put(&r, at, psb, 16);
	tsc_rig_put(&r, at + 16, tsc, 8);
	/* Calls that end in the unknown packet, in a TSC after it, and in the PSB. */
	for (i = 0; i < 4; i++) {
		tsc_rig_go(&r, i == 0	? first + 1
			       : i == 1 ? first + 33
			       : i == 2 ? at + 7
					: at + 30);
		ck_assert_int_eq(vmpt_vcpu_tsc_adjust(&r.v, &plus_one, NULL), 0);
		ck_assert_uint_eq(!r.v.force_psb, i == 0);
		ck_assert_uint_eq(r.v.events, i ? VMPT_EVENT_LOST : 0);
	}
	ck_assert_uint_eq(r.v.scan.errors, 1);
	ck_assert_uint_eq(r.v.scan.lost_bytes, at - first);
	ck_assert_uint_eq(tsc_rig_byte(&r, 9), 0x11);
	ck_assert_uint_eq(tsc_rig_byte(&r, at + 17), 0x11);
	for (i = first; i < at; i++) {
		byte = tsc_rig_byte(&r, i);
		ck_assert_msg(byte == (i == first ? VMPT_TSC_LOST_MARK : 0), "byte %u: %02x",
			      i - first, byte);
	}
	guest_free(&r.guest);
}
END_TEST

/* A trace of 100,000 bytes in 32 scattered pages. */
static void long_trace(struct tsc_rig *r, u8 *in, u8 *want, size_t len)
{
	static const struct tsc_mix mix = { .psb = 5, .tsc = 5, .block = 5, .tsc_bytes = true };
	static const u8 sizes[1] = { 5 };
	struct tsc_oracle sum = { 0 };
	u64 stream_rng = 1;

	tsc_rig_init(r, true);
	tsc_rig_topa(r, sizes, 1, 1);
	guest_shuffle(&r->guest, 1);
	tsc_rig_start(r);
	tsc_stream(in, len, &mix, &stream_rng);
	memcpy(want, in, len);
	tsc_oracle(&sum, &plus_one, in, want, 0, len);
	tsc_rig_put(r, 0, in, len);
	tsc_rig_go(r, len);
	r->guest.maps = 0;
}

/*
 * Pages are mapped ahead. The n-th callback fails: the call returns that, the next one continues.
 */
START_TEST(map_ahead)
{
	static u8 in[100000], want[100000];
	struct tsc_rig r;
	u64 n, seen = 0;
	int err;

	for (n = 0; n < 60; n++) {
		long_trace(&r, in, want, sizeof(in));
		r.fail_in = n;
		err = vmpt_vcpu_tsc_adjust(&r.v, &plus_one, NULL);
		ck_assert_int_eq(err, r.failing ? -VMPT_E_IO : 0);
		seen += r.failing;
		if (err)
			ck_assert_int_eq(vmpt_vcpu_tsc_adjust(&r.v, &plus_one, NULL), 0);
		tsc_rig_check(&r, want, sizeof(in), n);
		/* Each page once, and a few again where lanes stopped. */
		if (!n)
			ck_assert_uint_le(r.guest.maps, 60);
		guest_free(&r.guest);
	}
	ck_assert_uint_ge(seen, 25);
}
END_TEST

/* One of the pages mapped ahead has no memory: what is before it is done. */
START_TEST(no_page_ahead)
{
	static u8 in[100000], want[100000];
	struct tsc_rig r;
	u64 page, i;

	for (page = 1; page < 24; page++) {
		long_trace(&r, in, want, sizeof(in));
		guest_set_kind(&r.guest, (unsigned int)((r.gpa[0] >> 12) + page), 1,
			       VMPT_MEM_UNBACKED);
		r.v.on_mem[VMPT_MEM_UNBACKED] = VMPT_ON_MEM_RETRY;
		ck_assert_int_eq(vmpt_vcpu_tsc_adjust(&r.v, &plus_one, NULL), -VMPT_E_RETRY);
		ck_assert_uint_eq(r.v.scan_mask_ptrs >> 32, page * 4096);
		/* A packet cut by the page's end waits for its rest. */
		for (i = 0; i < page * 4096 - VMPT_PT_SIZE_MAX; i++)
			if (tsc_rig_byte(&r, i) != want[i])
				ck_abort_msg("page %llu: byte %llu", (unsigned long long)page,
					     (unsigned long long)i);
		guest_set_kind(&r.guest, (unsigned int)((r.gpa[0] >> 12) + page), 1, VMPT_MEM_OK);
		ck_assert_int_eq(vmpt_vcpu_tsc_adjust(&r.v, &plus_one, NULL), 0);
		tsc_rig_check(&r, want, sizeof(in), page);
		guest_free(&r.guest);
	}
}
END_TEST

/* A map that returns nothing would be an endless loop. */
static int map_nothing(void *opaque, u64 gpa, u8 **host, size_t *size)
{
	(void)opaque;
	(void)gpa;
	(void)host;
	*size = 0;
	return 0;
}

START_TEST(nothing_mapped)
{
	struct tsc_rig r;

	tsc_rig_init(&r, true);
	tsc_rig_range(&r, 4096);
	tsc_rig_start(&r);
	r.ops.guest_map = map_nothing;
	tsc_rig_go(&r, 100);
	ck_assert_int_eq(vmpt_vcpu_tsc_adjust(&r.v, &plus_one, NULL), -VMPT_E_GUEST_MEM);
	guest_free(&r.guest);
}
END_TEST

TEST_SUITE()
{
	Suite *suite = suite_create("tsc-adjust");
	TCase *tc = tcase_create("tsc-adjust");

	tcase_add_test(test_random_case(suite), random_traces);
	tcase_add_test(tc, across_regions);
	tcase_add_test(tc, places);
	tcase_add_test(tc, arguments);
	tcase_add_test(tc, after_pip);
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
	tcase_add_loop_test(tc, no_memory, 0, 2);
	tcase_add_loop_test(tc, a2_an_unknown_packet_in_guest_memory, 0, 2 * 48);
	tcase_add_test(tc, map_ahead);
	tcase_add_test(tc, no_page_ahead);
	tcase_add_test(tc, nothing_mapped);
	suite_add_tcase(suite, tc);
	return suite;
}
