// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * vmm-lib/shadow/topa.c: the contents of the host's table, entry by entry, and what invalidates it.
 */
#include <stdlib.h>

#include "tests/support/support.h"
#include "tests/vmm-lib/shadow-rig.h"

#define SIZE(n) ((u64)(n) << VMPT_TOPA_SIZE_SHIFT)
#define END	VMPT_TOPA_END
#define INT	VMPT_TOPA_INT
#define STOP	VMPT_TOPA_STOP
#define POISON	(END | INT)
#define TABLE	0x1000ULL
#define OTHER	0x2000ULL
#define HPA	GUEST_HPA
#define LINK(n) (RIG_PAGE_HPA(n) | END)

static struct rig rig;

static void setup(void)
{
	rig_init(&rig, 1024, 1);
	rig_at(&rig, TABLE, 0, 0);
}

static void teardown(void)
{
	rig_free(&rig);
}

/* Frames for @count pages, without their contents. */
static void map(u32 page, u32 count, u32 frame)
{
	while (count--)
		rig.guest.frame[page++] = frame++;
}

static void build(enum vmpt_shadow_end end, u32 used)
{
	const struct vmpt_shadow *shadow = &rig.vcpu.shadow;

	ck_assert_int_eq(vmpt_shadow_build(&rig.vcpu), 0);
	ck_assert_int_eq(shadow->end, end);
	ck_assert_uint_eq(shadow->used, used);
	ck_assert(!shadow->stale);
}

static void want(const u64 *entries, u32 n)
{
	u32 i;

	for (i = 0; i < n; i++)
		ck_assert_msg(rig_host_entry(&rig, 0, i) == entries[i],
			      "entry %u: %#llx, not %#llx", i,
			      (unsigned long long)rig_host_entry(&rig, 0, i),
			      (unsigned long long)entries[i]);
}

static void origin(u32 slot, u64 table, u32 index, u32 offset, u64 gpa)
{
	const struct vmpt_shadow_origin *o = &rig.memory.origin[slot];

	ck_assert_msg(o->table == table && o->index == index && o->offset == offset &&
			      o->gpa == gpa,
		      "slot %u: %#llx %u %#x %#llx", slot, (unsigned long long)o->table, o->index,
		      o->offset, (unsigned long long)o->gpa);
}

/* 64 KiB at 20000H in pieces of the host; computed by hand. */
static void scatter_64k(void)
{
	map(32, 4, 100); /* 64000H: aligned to 16 KiB: one part */
	map(36, 4, 105); /* 69000H: 4 KiB, 6A000H: 8 KiB, 6C000H: 4 KiB */
	map(40, 8, 112); /* 70000H: 32 KiB */
}

static const u64 scattered_64k[] = {
	(HPA + 0x64000) | SIZE(2), (HPA + 0x69000),	      (HPA + 0x6a000) | SIZE(1),
	(HPA + 0x6c000),	   (HPA + 0x70000) | SIZE(3),
};

START_TEST(one_part)
{
	const u64 entries[] = { (HPA + 0x20000) | SIZE(4), LINK(0) };

	rig_entry(&rig, TABLE, 0, 0x20000 | SIZE(4));
	rig_entry(&rig, TABLE, 1, TABLE | END);
	build(VMPT_SHADOW_RING, 1);
	want(entries, 2);
	origin(0, TABLE, 0, 0, 0x20000);
	ck_assert_uint_eq(rig.vcpu.shadow.reads, 3);
	ck_assert_uint_eq(rig.vcpu.shadow.translations, 1);
}
END_TEST

/* INT and STOP of the region are set in its last part. */
START_TEST(split)
{
	static const u64 flags[] = { 0, INT, STOP, INT | STOP };
	u64 entries[6], f = flags[_i];

	scatter_64k();
	rig_entry(&rig, TABLE, 0, 0x20000 | SIZE(4) | f);
	rig_entry(&rig, TABLE, 1, TABLE | END);
	memcpy(entries, scattered_64k, sizeof(scattered_64k));
	entries[4] |= f;
	entries[5] = LINK(0);
	build(f & STOP ? VMPT_SHADOW_STOP : VMPT_SHADOW_RING, 5);
	want(entries, 6);
	origin(0, TABLE, 0, 0, 0x20000);
	origin(1, TABLE, 0, 0x4000, 0x24000);
	origin(2, TABLE, 0, 0x5000, 0x25000);
	origin(3, TABLE, 0, 0x7000, 0x27000);
	origin(4, TABLE, 0, 0x8000, 0x28000);
	ck_assert_uint_eq(rig.vcpu.shadow.half, ~0U);
}
END_TEST

/* From the middle of a table through another one and back: a ring that starts there. */
START_TEST(ring_from_the_middle)
{
	const u64 entries[] = { HPA + 0x12000, (HPA + 0x13000) | INT, HPA + 0x10000, HPA + 0x11000,
				LINK(0) };

	rig_entry(&rig, TABLE, 0, 0x10000);
	rig_entry(&rig, TABLE, 1, 0x11000);
	rig_entry(&rig, TABLE, 2, 0x12000);
	rig_entry(&rig, TABLE, 3, OTHER | END);
	rig_entry(&rig, OTHER, 0, 0x13000 | INT);
	rig_entry(&rig, OTHER, 1, TABLE | END);
	rig_at(&rig, TABLE, 2, 0x800);
	build(VMPT_SHADOW_RING, 4);
	want(entries, 5);
	origin(0, TABLE, 2, 0, 0x12000);
	origin(1, OTHER, 0, 0, 0x13000);
	origin(2, TABLE, 0, 0, 0x10000);
	ck_assert_uint_eq(rig.vcpu.shadow.offset, 0x800);
}
END_TEST

/* A chain whose loop does not come back to the start (a rho) is a window. */
START_TEST(rho)
{
	u32 i;

	rig_entry(&rig, TABLE, 0, 0x10000);
	rig_entry(&rig, TABLE, 1, OTHER | END);
	rig_entry(&rig, OTHER, 0, 0x11000);
	rig_entry(&rig, OTHER, 1, OTHER | END);
	build(VMPT_SHADOW_WINDOW, 511);
	ck_assert_uint_eq(rig_host_entry(&rig, 0, 0), HPA + 0x10000);
	for (i = 1; i < 510; i++)
		ck_assert_uint_eq(rig_host_entry(&rig, 0, i),
				  (HPA + 0x11000) | (i == 255 ? INT : 0));
	ck_assert_uint_eq(rig_host_entry(&rig, 0, 510), (HPA + 0x11000) | INT | STOP);
	ck_assert_uint_eq(rig_host_entry(&rig, 0, 511), LINK(0));
	ck_assert_uint_eq(rig.vcpu.shadow.next.table, OTHER);
	ck_assert_uint_eq(rig.vcpu.shadow.next.index, 0);
	/* from inside the loop it is a ring */
	rig_at(&rig, OTHER, 0, 0);
	build(VMPT_SHADOW_RING, 1);
}
END_TEST

/* @n entries of a page each, and END to the first. */
static void long_table(u32 n)
{
	u32 i;

	for (i = 0; i < n; i++)
		rig_entry(&rig, TABLE, i, 0x100000 + (u64)i % 256 * 0x1000);
	rig_entry(&rig, TABLE, n, TABLE | END);
}

/* A ring of exactly as many entries as fit, and of one more. */
START_TEST(full_ring)
{
	rig_free(&rig);
	rig_init(&rig, 1024, 3);
	rig_at(&rig, TABLE, 0, 0);
	long_table(3 * 511);
	build(VMPT_SHADOW_RING, 3 * 511);
	ck_assert_uint_eq(rig_host_entry(&rig, 0, 511), LINK(1));
	ck_assert_uint_eq(rig_host_entry(&rig, 1, 511), LINK(2));
	ck_assert_uint_eq(rig_host_entry(&rig, 2, 511), LINK(0));
	ck_assert_uint_eq(rig_host_entry(&rig, 1, 0), HPA + 0x1ff000); /* entry 511 */
	long_table(3 * 511 + 1);
	build(VMPT_SHADOW_WINDOW, 3 * 511);
	ck_assert_uint_eq(rig.vcpu.shadow.half, 766);
	ck_assert_uint_eq(rig.vcpu.shadow.next.index, 3 * 511);
	long_table(2 * 511);
	build(VMPT_SHADOW_RING, 2 * 511);
	ck_assert_uint_eq(rig_host_entry(&rig, 1, 511), LINK(0));
	long_table(511 + 1);
	build(VMPT_SHADOW_RING, 512);
	ck_assert_uint_eq(rig_host_entry(&rig, 1, 1), LINK(0));
}
END_TEST

/* INT of the guest where the window has its own: the owner is known. */
START_TEST(window_ints)
{
	bool half = _i & 1, last = _i & 2;

	long_table(600);
	rig_entry(&rig, TABLE, 255, 0x180000 | (half ? INT : 0));
	rig_entry(&rig, TABLE, 510, 0x190000 | (last ? INT : 0));
	build(VMPT_SHADOW_WINDOW, 511);
	ck_assert_uint_eq(rig_host_entry(&rig, 0, 255), (HPA + 0x180000) | INT);
	ck_assert_uint_eq(rig_host_entry(&rig, 0, 510), (HPA + 0x190000) | INT | STOP);
	ck_assert(rig.vcpu.shadow.half_ours == !half && rig.vcpu.shadow.last_ours == !last);
	ck_assert_uint_eq(rig.vcpu.shadow.next.table, TABLE);
	ck_assert_uint_eq(rig.vcpu.shadow.next.index, 511);
}
END_TEST

/* 2 MiB of single pages in a window of 511: with their beginning only up to half of it. */
START_TEST(start_in_a_large_region)
{
	static const struct {
		u32 at, slot, offset, first;
		u32 half;
	} rows[] = {
		{ 0, 0, 0, 0, 255 },
		{ 0x1234, 1, 0x234, 0, 255 },
		{ 255 * 0x1000, 255, 0, 0, 382 },
		{ 255 * 0x1000 + 0xfff, 255, 0xfff, 0, 382 },
		{ 256 * 0x1000, 0, 0, 256 * 0x1000, 127 },
		{ 300 * 0x1000 + 5, 0, 5, 300 * 0x1000, 105 },
	};
	const struct vmpt_shadow *shadow = &rig.vcpu.shadow;
	u32 i, used;

	for (i = 0; i < 512; i++)
		rig.guest.frame[512 + i] = 1023 - i;
	rig_entry(&rig, TABLE, 0, 0x200000 | SIZE(9));
	rig_entry(&rig, TABLE, 1, 0x10000 | STOP);
	rig_at(&rig, TABLE, 0, rows[_i].at);
	used = rows[_i].first ? 512 - rows[_i].first / 0x1000 + 1 : 511;
	build(rows[_i].first ? VMPT_SHADOW_STOP : VMPT_SHADOW_WINDOW, used);
	ck_assert_uint_eq(shadow->slot, rows[_i].slot);
	ck_assert_uint_eq(shadow->offset, rows[_i].offset);
	origin(0, TABLE, 0, rows[_i].first, 0x200000 + rows[_i].first);
	ck_assert_uint_eq(rig_host_entry(&rig, 0, 0),
			  HPA + (1023 - rows[_i].first / 0x1000) * 0x1000ULL);
	if (shadow->end == VMPT_SHADOW_WINDOW) {
		ck_assert_uint_eq(shadow->half, rows[_i].half);
		ck_assert_uint_eq(shadow->next.index, 0);
		ck_assert_uint_eq(shadow->next.offset, 511 * 0x1000);
	}
}
END_TEST

/* An invalid entry becomes one that is invalid for every processor, after the valid ones. */
START_TEST(poison)
{
	const u64 entries[] = { HPA + 0x10000, POISON, LINK(0) };

	rig_entry(&rig, TABLE, 0, 0x10000);
	rig_entry(&rig, TABLE, 1, 0x11000 | 2);
	build(VMPT_SHADOW_POISON, 2);
	want(entries, 3);
	origin(1, TABLE, 1, 0, 0);
	ck_assert_int_eq(rig.vcpu.shadow.why, VMPT_OUTPUT_RESERVED);
	/* at the start, with whatever offset */
	rig_at(&rig, TABLE, 1, 0x123);
	build(VMPT_SHADOW_POISON, 1);
	want(entries + 1, 2);
	origin(0, TABLE, 1, 0x123, 0);
	/* rule 3 */
	rig_at(&rig, TABLE, 0, 0x1000);
	build(VMPT_SHADOW_POISON, 1);
	origin(0, TABLE, 0, 0x1000, 0);
	ck_assert_int_eq(rig.vcpu.shadow.why, VMPT_OUTPUT_OFFSET);
	rig_at(&rig, TABLE, 0, 0xfff);
	build(VMPT_SHADOW_POISON, 2);
	/* END at the start takes OutputOffset away */
	rig_entry(&rig, TABLE, 2, OTHER | END);
	rig_at(&rig, TABLE, 2, 0x1000);
	rig_entry(&rig, OTHER, 0, 0x10000 | STOP);
	build(VMPT_SHADOW_STOP, 1);
	ck_assert_uint_eq(rig.vcpu.shadow.offset, 0);
	rig_entry(&rig, OTHER, 0, OTHER | END);
	build(VMPT_SHADOW_POISON, 1);
	origin(0, OTHER, 0, 0, 0);
}
END_TEST

/* A hole in a region: poison in its place; before the position it does not matter. */
START_TEST(hole)
{
	const u64 entries[] = { (HPA + 0x20000) | SIZE(1), POISON };
	const u64 after[] = { HPA + 0x23000, (HPA + 0x20000) | SIZE(1), POISON };

	guest_set_kind(&rig.guest, 0x22, 1, VMPT_MEM_MMIO);
	rig_entry(&rig, TABLE, 0, 0x20000 | SIZE(2));
	rig_entry(&rig, TABLE, 1, TABLE | END);
	build(VMPT_SHADOW_POISON, 2);
	want(entries, 2);
	origin(1, TABLE, 0, 0x2000, 0);
	ck_assert_int_eq(rig.vcpu.shadow.why, VMPT_OUTPUT_MEMORY);
	rig_at(&rig, TABLE, 0, 0x2004);
	build(VMPT_SHADOW_POISON, 1);
	want(entries + 1, 1);
	origin(0, TABLE, 0, 0x2004, 0);
	/* after the hole: no ring, but round to it */
	rig_at(&rig, TABLE, 0, 0x3004);
	build(VMPT_SHADOW_POISON, 3);
	want(after, 3);
	ck_assert_uint_eq(rig.vcpu.shadow.slot, 0);
	ck_assert_uint_eq(rig.vcpu.shadow.offset, 4);
}
END_TEST

/* Memory that comes later ends the window; at the position there is none. */
START_TEST(retry)
{
	rig.guest.retry = _i;
	rig.vcpu.on_mem[VMPT_MEM_UNBACKED] = VMPT_ON_MEM_RETRY;
	guest_set_kind(&rig.guest, 0x22, 1, VMPT_MEM_UNBACKED);
	rig_entry(&rig, TABLE, 0, 0x20000 | SIZE(2));
	rig_entry(&rig, TABLE, 1, TABLE | END);
	build(VMPT_SHADOW_WINDOW, 1);
	ck_assert_uint_eq(rig_host_entry(&rig, 0, 0), (HPA + 0x20000) | SIZE(1) | INT | STOP);
	ck_assert_uint_eq(rig.vcpu.shadow.half, 0);
	ck_assert_uint_eq(rig.vcpu.shadow.next.index, 0);
	ck_assert_uint_eq(rig.vcpu.shadow.next.offset, 0x2000);
	rig_at(&rig, TABLE, 0, 0x2000);
	ck_assert_int_eq(vmpt_shadow_build(&rig.vcpu), -VMPT_E_RETRY);
	ck_assert(rig.vcpu.shadow.stale && rig.vcpu.shadow.end == VMPT_SHADOW_NONE);
	/* the table itself */
	rig_at(&rig, 0x22000, 0, 0);
	ck_assert_int_eq(vmpt_shadow_build(&rig.vcpu), -VMPT_E_RETRY);
	/* the next table */
	rig_entry(&rig, OTHER, 0, 0x10000);
	rig_entry(&rig, OTHER, 1, 0x22000 | END);
	rig_at(&rig, OTHER, 0, 0);
	build(VMPT_SHADOW_WINDOW, 1);
	ck_assert_uint_eq(rig.vcpu.shadow.next.table, 0x22000);
	/* then it is available */
	guest_set_kind(&rig.guest, 0x22, 1, VMPT_MEM_OK);
	rig_at(&rig, TABLE, 0, 0x2000);
	build(VMPT_SHADOW_RING, 1);
}
END_TEST

/* No slot for the poison: our own STOP first, the error with the next window. */
START_TEST(poison_without_room)
{
	long_table(511);
	rig_entry(&rig, TABLE, 511, 0x10000 | 2);
	build(VMPT_SHADOW_WINDOW, 511);
	ck_assert_uint_eq(rig.vcpu.shadow.next.index, 511);
	rig_at(&rig, TABLE, 511, 0);
	build(VMPT_SHADOW_POISON, 1);
	rig_at(&rig, TABLE, 1, 0);
	build(VMPT_SHADOW_POISON, 511);
	ck_assert_uint_eq(rig_host_entry(&rig, 0, 510), POISON);
}
END_TEST

/* Single ranges. */
START_TEST(range)
{
	const struct vmpt_shadow *shadow = &rig.vcpu.shadow;

	rig_range(&rig, 0x20000, 0xffff, 0x1234);
	build(VMPT_SHADOW_DIRECT, 0);
	ck_assert_uint_eq(shadow->direct_base, HPA + 0x20000);
	/* in pieces: a ring of them, without the guest's INT or STOP */
	scatter_64k();
	rig_range(&rig, 0x20000, 0xffff, 0x7010);
	build(VMPT_SHADOW_RING, 5);
	want(scattered_64k, 5);
	ck_assert_uint_eq(rig_host_entry(&rig, 0, 5), LINK(0));
	ck_assert_uint_eq(shadow->slot, 3);
	ck_assert_uint_eq(shadow->offset, 0x10);
	origin(3, 0x20000, 0, 0x7000, 0x27000);
	/* a processor without single ranges */
	map(32, 16, 32);
	rig.vcpu.host_rules.single_range = 0;
	build(VMPT_SHADOW_RING, 1);
	ck_assert_uint_eq(rig_host_entry(&rig, 0, 0), (HPA + 0x20000) | SIZE(4));
	rig_range(&rig, 0x20000, 0x7f, 0);
	build(VMPT_SHADOW_POISON, 1);
	rig.vcpu.host_rules.single_range = 1;
	build(VMPT_SHADOW_DIRECT, 0);
	/* wrong ones */
	rig_range(&rig, 0x20000, 0x17f, 0x40);
	build(VMPT_SHADOW_POISON, 1);
	origin(0, 0x20000, 0, 0x40, 0);
	ck_assert_int_eq(shadow->why, VMPT_OUTPUT_MASK);
	guest_set_kind(&rig.guest, 0x20, 1, VMPT_MEM_MMIO);
	rig_range(&rig, 0x20080, 0x7f, 0x10);
	build(VMPT_SHADOW_POISON, 1);
	ck_assert_int_eq(shadow->why, VMPT_OUTPUT_MEMORY);
	rig_range(&rig, 0x20000, 0xffff, 0x8000);
	build(VMPT_SHADOW_POISON, 2); /* the second half, then round to the hole */
	want((const u64[]){ (HPA + 0x28000) | SIZE(3), POISON }, 2);
	rig.vcpu.on_mem[VMPT_MEM_MMIO] = VMPT_ON_MEM_RETRY;
	rig_range(&rig, 0x20080, 0x7f, 0x10);
	ck_assert_int_eq(vmpt_shadow_build(&rig.vcpu), -VMPT_E_RETRY);
}
END_TEST

/* A processor with one output entry in a table: a region, and END to itself. */
START_TEST(single_entry_processor)
{
	rig.vcpu.host_rules.topa_multi = 0;
	rig_entry(&rig, TABLE, 0, 0x20000 | SIZE(4) | INT);
	rig_entry(&rig, TABLE, 1, TABLE | END);
	build(VMPT_SHADOW_RING, 1);
	want((const u64[]){ (HPA + 0x20000) | SIZE(4) | INT, LINK(0) }, 2);
	scatter_64k();
	build(VMPT_SHADOW_WINDOW, 1);
	want((const u64[]){ (HPA + 0x64000) | SIZE(2) | INT | STOP, LINK(0) }, 2);
	rig_at(&rig, TABLE, 0, 0x7800);
	build(VMPT_SHADOW_WINDOW, 1);
	want((const u64[]){ (HPA + 0x6c000) | INT | STOP, LINK(0) }, 2);
	ck_assert_uint_eq(rig.vcpu.shadow.offset, 0x800);
}
END_TEST

/* While Stopped or Error is set, guest memory is not read. */
START_TEST(frozen)
{
	rig.vcpu.regs.status = _i ? VMPT_STATUS_STOPPED : VMPT_STATUS_ERROR;
	rig_at(&rig, 0x7ffffffff000, 3, 7);
	build(VMPT_SHADOW_POISON, 1);
	ck_assert(rig.vcpu.shadow.frozen);
	ck_assert_uint_eq(rig.guest.reads + rig.guest.translations, 0);
	ck_assert(!vmpt_shadow_invalidate(&rig.vcpu, 0, ~0ULL));
}
END_TEST

START_TEST(no_memory)
{
	struct vmpt_vcpu *vcpu = &rig.vcpu;
	u64 base, mask_ptrs;
	bool topa;

	vcpu->shadow.memory = NULL;
	ck_assert_int_eq(vmpt_shadow_build(vcpu), -VMPT_E_STATE);
	ck_assert_int_eq(vmpt_shadow_ready(vcpu), -VMPT_E_STATE);
	vmpt_shadow_regs(vcpu, &base, &mask_ptrs, &topa);
	ck_assert(topa && mask_ptrs >> 32 == 0xffffffff);
	ck_assert(!vmpt_shadow_invalidate(vcpu, 0, ~0ULL));
	vcpu->shadow.memory = &rig.memory;
	rig.memory.pages = _i ? VMPT_SHADOW_PAGES_MAX + 1 : 0;
	ck_assert_int_eq(vmpt_shadow_build(vcpu), -VMPT_E_STATE);
	rig.memory.pages = 1;
}
END_TEST

/* A table of the most entries, all of them regions: 16 pages of shadow and no more work. */
static int endless_read(void *opaque, u64 gpa, void *buf, size_t len)
{
	u64 entry = 0x10000 + gpa / 8 % 16 * 0x1000;

	(void)opaque;
	/* odd tables: every second entry is END to another table */
	if (gpa & 0x8000000)
		entry = gpa & 8 ? (gpa & ~0xfffULL) + 0x1000 + END : entry;
	memcpy(buf, &entry, len);
	return 0;
}

START_TEST(endless)
{
	struct vmpt_ops ops = guest_memory_ops;

	rig_free(&rig);
	rig_init(&rig, 64, VMPT_SHADOW_PAGES_MAX);
	ops.guest_read = endless_read;
	rig.vcpu.ops = &ops;
	rig_at(&rig, _i ? 0x8000000 : 0x10000000, 0, 0);
	build(VMPT_SHADOW_WINDOW, 16 * 511);
	ck_assert_uint_le(rig.vcpu.shadow.reads, VMPT_SHADOW_READS);
	ck_assert_uint_eq(rig.vcpu.shadow.reads, (_i ? 2 : 1) * 16 * 511 + 1);
	ck_assert_uint_le(rig.guest.translations, 16 * 511 + 1);
}
END_TEST

/* Memory in use: parts of regions, the entries that describe them, and nothing else. */
struct invalid_row {
	u64 gpa, size;
	bool in_use;
};

static const struct invalid_row invalid_rows[] = {
	{ 0x20000, 1, true },	      { 0x1ffff, 1, false },	  { 0x1ffff, 2, true },
	{ 0x2ffff, 1, true },	      { 0x30000, 0x1000, false }, { 0x2f000, 0x2000, true },
	{ 0x40000, 0x1000, true },    { 0x41000, 0x1000, false }, { 0x3f000, 0x1000, false },
	{ TABLE, 0x1000, true },      { TABLE + 0xfff, 1, true }, { TABLE - 1, 1, false },
	{ OTHER, 0x1000, false },     { 0, ~0ULL, true },	  { 0x20000, 0, false },
	{ 0x40000, ~0ULL, true },     { ~0ULL, 1, false },	  { 0x41000, ~0ULL, false },
	{ 0x28000, 0x100000, true },  { 0x5000, 0x1000, false },  { 0x60000, 0x1000, false },
	{ 0x1000000, 0x1000, false },
};

START_TEST(invalidate)
{
	const struct invalid_row *row = &invalid_rows[_i];

	scatter_64k();
	rig_entry(&rig, TABLE, 0, 0x20000 | SIZE(4));
	rig_entry(&rig, TABLE, 1, 0x40000);
	rig_entry(&rig, TABLE, 2, 0x60000 | 2); /* wrong: it is not in use */
	ck_assert(!vmpt_shadow_invalidate(&rig.vcpu, row->gpa, row->size));
	build(VMPT_SHADOW_POISON, 7);
	ck_assert(vmpt_shadow_invalidate(&rig.vcpu, row->gpa, row->size) == row->in_use);
	ck_assert(rig.vcpu.shadow.stale == row->in_use);
	/* again, before the vCPU is out */
	ck_assert(vmpt_shadow_invalidate(&rig.vcpu, row->gpa, row->size) == row->in_use);
	build(VMPT_SHADOW_POISON, 7);
	if (row->gpa < 0x20000 || row->gpa > 0x2ffff || !row->size)
		return;
	/* a range: it has no table */
	rig_range(&rig, 0x20000, 0xffff, 0);
	build(VMPT_SHADOW_RING, 5);
	ck_assert(vmpt_shadow_invalidate(&rig.vcpu, row->gpa, row->size));
	map(32, 16, 32);
	build(VMPT_SHADOW_DIRECT, 0);
	ck_assert(vmpt_shadow_invalidate(&rig.vcpu, row->gpa, row->size));
	ck_assert(!vmpt_shadow_invalidate(&rig.vcpu, 0x30000, 0x1000));
}
END_TEST

/* END in the page after that of its table's last region. */
START_TEST(invalidate_end)
{
	u32 i;

	for (i = 0; i < 512; i++)
		rig_entry(&rig, TABLE, i, 0x10000);
	rig_entry(&rig, TABLE, 512, TABLE | END); /* at OTHER */
	rig_at(&rig, TABLE, 100, 0);
	build(VMPT_SHADOW_WINDOW, 511);
	ck_assert(vmpt_shadow_invalidate(&rig.vcpu, OTHER, 0x1000));
	ck_assert(!vmpt_shadow_invalidate(&rig.vcpu, OTHER + 0x1000, 0x1000));
}
END_TEST

TEST_SUITE()
{
	Suite *suite = suite_create("shadow");
	TCase *tcase = tcase_create("build");

	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_add_test(tcase, one_part);
	tcase_add_loop_test(tcase, split, 0, 4);
	tcase_add_test(tcase, ring_from_the_middle);
	tcase_add_test(tcase, rho);
	tcase_add_test(tcase, full_ring);
	tcase_add_loop_test(tcase, window_ints, 0, 4);
	tcase_add_loop_test(tcase, start_in_a_large_region, 0, 6);
	tcase_add_test(tcase, poison);
	tcase_add_test(tcase, hole);
	tcase_add_loop_test(tcase, retry, 0, 2);
	tcase_add_test(tcase, poison_without_room);
	tcase_add_test(tcase, range);
	tcase_add_test(tcase, single_entry_processor);
	tcase_add_loop_test(tcase, frozen, 0, 2);
	tcase_add_loop_test(tcase, no_memory, 0, 2);
	tcase_add_loop_test(tcase, endless, 0, 2);
	tcase_add_loop_test(tcase, invalidate, 0, VMPT_ARRAY_SIZE(invalid_rows));
	tcase_add_test(tcase, invalidate_end);
	suite_add_tcase(suite, tcase);
	return suite;
}
