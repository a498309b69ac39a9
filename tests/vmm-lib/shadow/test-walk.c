// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* vmm-lib/shadow/walk.c: the guest's regions in order, and the host's parts of them. */
#include "tests/support/support.h"
#include "tests/vmm-lib/shadow-rig.h"
#include "vmm-lib/shadow/walk.h"

#define SIZE(n) ((u64)(n) << VMPT_TOPA_SIZE_SHIFT)
#define END	VMPT_TOPA_END
#define INT	VMPT_TOPA_INT
#define STOP	VMPT_TOPA_STOP
#define TABLE	0x1000ULL
#define OTHER	0x2000ULL /* a second table */
#define HOLE	0x9000ULL /* a page without memory */

static struct rig rig;
static struct vmpt_walk walk;

static void setup(void)
{
	rig_init(&rig, 64, 1);
	guest_set_kind(&rig.guest, HOLE / GUEST_PAGE, 1, VMPT_MEM_UNBACKED);
}

static void teardown(void)
{
	rig_free(&rig);
}

/* The end of a walk. */
struct stop_row {
	const char *name;
	u64 entry[3]; /* of TABLE */
	u64 other;    /* entry 0 of OTHER */
	u64 base;     /* where it starts; 0: TABLE */
	u32 index;
	u32 steps; /* vmpt_walk_next() */
	/* expected: the table and index of the last place */
	int result;
	u64 table;
	u32 at;
	u64 region; /* or why */
	u64 reads;
};

static const struct stop_row stop_rows[] = {
	{ "first", { 0x10000 }, 0, 0, 0, 0, 0, TABLE, 0, 0x10000, 1 },
	{ "second", { 0x10000, 0x12000 | SIZE(1) }, 0, 0, 0, 1, 0, TABLE, 1, 0x12000, 2 },
	{ "start at the second", { 0, 0x12000 }, 0, 0, 1, 0, 0, TABLE, 1, 0x12000, 1 },
	{ "END back", { 0x10000, TABLE | END }, 0, 0, 0, 1, 0, TABLE, 0, 0x10000, 3 },
	{ "END on", { 0x10000, OTHER | END }, 0x14000, 0, 0, 1, 0, OTHER, 0, 0x14000, 3 },
	{ "start at END", { 0x10000, OTHER | END }, 0x14000, 0, 1, 0, 0, OTHER, 0, 0x14000, 2 },
	{ "END ignores Size",
	  { 0x10000, OTHER | END | SIZE(9) },
	  0x14000,
	  0,
	  0,
	  1,
	  0,
	  OTHER,
	  0,
	  0x14000,
	  3 },
	{ "INT and STOP", { 0x10000 | INT | STOP }, 0, 0, 0, 0, 0, TABLE, 0, 0x10000, 1 },
	/* 33.2.7.2 "ToPA Errors" */
	{ "1", { 0x10000 | 2 }, 0, 0, 0, 0, 1, TABLE, 0, VMPT_OUTPUT_RESERVED, 1 },
	{ "1, END",
	  { 0x10000, OTHER | END | 8 },
	  0x14000,
	  0,
	  0,
	  1,
	  1,
	  TABLE,
	  1,
	  VMPT_OUTPUT_RESERVED,
	  2 },
	{ "2a",
	  { 0x10000 },
	  0,
	  TABLE + 0x80,
	  0,
	  0,
	  1,
	  TABLE + 0x80,
	  0,
	  VMPT_OUTPUT_TABLE_ALIGN,
	  0 },
	{ "2b", { 0x11000 | SIZE(1) }, 0, 0, 0, 0, 1, TABLE, 0, VMPT_OUTPUT_REGION_ALIGN, 1 },
	{ "2c", { 1ULL << 46 }, 0, 0, 0, 0, 1, TABLE, 0, VMPT_OUTPUT_PHYSADDR, 1 },
	{ "2c, END",
	  { 0x10000, 1ULL << 50 | END },
	  0,
	  0,
	  0,
	  1,
	  1,
	  TABLE,
	  1,
	  VMPT_OUTPUT_PHYSADDR,
	  2 },
	{ "2c, base", { 0 }, 0, 1ULL << 46, 0, 0, 1, 1ULL << 46, 0, VMPT_OUTPUT_PHYSADDR, 0 },
	{ "2c, above the last address",
	  { 0 },
	  0,
	  (1ULL << 46) - 4096,
	  512,
	  0,
	  1,
	  (1ULL << 46) - 4096,
	  512,
	  VMPT_OUTPUT_PHYSADDR,
	  0 },
	{ "4a INT",
	  { 0x10000, OTHER | END | INT },
	  0,
	  0,
	  0,
	  1,
	  1,
	  TABLE,
	  1,
	  VMPT_OUTPUT_END_FLAGS,
	  2 },
	{ "4a STOP",
	  { 0x10000, OTHER | END | STOP },
	  0,
	  0,
	  0,
	  1,
	  1,
	  TABLE,
	  1,
	  VMPT_OUTPUT_END_FLAGS,
	  2 },
	{ "4b", { OTHER | END }, 0x14000, 0, 0, 0, 1, TABLE, 0, VMPT_OUTPUT_END_FIRST, 1 },
	{ "4b, of the next table",
	  { 0x10000, OTHER | END },
	  TABLE | END,
	  0,
	  0,
	  1,
	  1,
	  OTHER,
	  0,
	  VMPT_OUTPUT_END_FIRST,
	  3 },
	{ "table in a hole",
	  { 0x10000, HOLE | END },
	  0,
	  0,
	  0,
	  1,
	  1,
	  HOLE,
	  0,
	  VMPT_OUTPUT_TABLE_MEMORY,
	  3 },
	{ "start in a hole", { 0 }, 0, HOLE, 7, 0, 1, HOLE, 7, VMPT_OUTPUT_TABLE_MEMORY, 1 },
};

START_TEST(stops)
{
	const struct stop_row *row = &stop_rows[_i];
	u32 i;
	int err;

	for (i = 0; i < 3; i++)
		rig_entry(&rig, TABLE, i, row->entry[i]);
	rig_entry(&rig, OTHER, 0, row->other);
	rig_at(&rig, row->base ? row->base : TABLE, row->index, 0);
	err = vmpt_walk_start(&walk, &rig.vcpu);
	for (i = 0; i < row->steps && !err; i++)
		err = vmpt_walk_next(&walk);
	ck_assert_msg(err == row->result, "%s: %d", row->name, err);
	ck_assert_msg(walk.table == row->table && walk.index == row->at, "%s: %#llx %u", row->name,
		      (unsigned long long)walk.table, walk.index);
	ck_assert_msg((err ? walk.why : walk.region) == row->region, "%s: region or why",
		      row->name);
	ck_assert_msg(walk.reads == row->reads && rig.guest.reads == row->reads, "%s: reads",
		      row->name);
}
END_TEST

/* The last entry of the largest table is followed by the first (offset 0FFFFFF8H). */
static int wrap_read(void *opaque, u64 gpa, void *buf, size_t len)
{
	u64 entry = gpa == TABLE ? 0x10000 : 0x11000;

	(void)opaque;
	ck_assert_uint_eq(len, 8);
	memcpy(buf, &entry, len);
	return 0;
}

START_TEST(wraps)
{
	struct vmpt_ops ops = guest_memory_ops;

	ops.guest_read = wrap_read;
	rig.vcpu.ops = &ops;
	rig_at(&rig, TABLE, VMPT_TOPA_ENTRIES_MAX - 1, 0);
	ck_assert_int_eq(vmpt_walk_start(&walk, &rig.vcpu), 0);
	ck_assert_uint_eq(walk.region, 0x11000);
	ck_assert_int_eq(vmpt_walk_next(&walk), 0);
	ck_assert_uint_eq(walk.index, 0);
	ck_assert_uint_eq(walk.table, TABLE);
	ck_assert_uint_eq(walk.region, 0x10000);
}
END_TEST

/* A guest that is shown a processor with one output entry (33.2.7.2, rule 4c). */
START_TEST(single_entry)
{
	rig.vcpu.rules.topa_multi = 0;
	rig_entry(&rig, TABLE, 0, 0x10000);
	rig_at(&rig, TABLE, 0, 0);
	rig_entry(&rig, TABLE, 1, TABLE | END);
	ck_assert_int_eq(vmpt_walk_start(&walk, &rig.vcpu), 0);
	ck_assert_int_eq(vmpt_walk_next(&walk), 0);
	ck_assert_uint_eq(walk.index, 0);
	rig_entry(&rig, TABLE, 1, OTHER | END);
	ck_assert_int_eq(vmpt_walk_next(&walk), VMPT_WALK_POISON);
	ck_assert_int_eq(walk.why, VMPT_OUTPUT_ONE_BASE);
	rig_entry(&rig, TABLE, 1, 0x11000);
	ck_assert_int_eq(vmpt_walk_start(&walk, &rig.vcpu), 0);
	ck_assert_int_eq(vmpt_walk_next(&walk), VMPT_WALK_POISON);
	ck_assert_int_eq(walk.why, VMPT_OUTPUT_ONE_NO_END);
}
END_TEST

/* Single ranges (33.2.7.1). */
struct range_row {
	const char *name;
	u64 base;
	u32 mask, offset;
	int why;
	u64 size;
};

static const struct range_row range_rows[] = {
	{ "128 bytes", 0x10080, 0x7f, 0x7f, 0, 128 },
	{ "64 KiB", 0x10000, 0xffff, 0, 0, 0x10000 },
	{ "4 GiB", 0x100000000, 0xffffffff, 0xffffffff, 0, 1ULL << 32 },
	{ "mask with a gap", 0x10000, 0x17f, 0, VMPT_OUTPUT_MASK, 0 },
	{ "base overlaps", 0x11000, 0x1fff, 0, VMPT_OUTPUT_OVERLAP, 0 },
	{ "offset above the mask", 0x10000, 0xfff, 0x1000, VMPT_OUTPUT_RANGE_OFFSET, 0 },
	{ "base above MAXPHYADDR", 1ULL << 46, 0xfff, 0, VMPT_OUTPUT_PHYSADDR, 0 },
};

START_TEST(ranges)
{
	const struct range_row *row = &range_rows[_i];
	int err;

	rig_range(&rig, row->base, row->mask, row->offset);
	err = vmpt_walk_start(&walk, &rig.vcpu);
	ck_assert_msg(err == !!row->why && walk.why == row->why, "%s: %d", row->name, walk.why);
	ck_assert_msg(walk.table == row->base && !walk.index && !walk.reads, "%s", row->name);
	if (err)
		return;
	ck_assert_msg(walk.region == row->base && walk.size == row->size, "%s", row->name);
	ck_assert_int_eq(vmpt_walk_next(&walk), 0);
	ck_assert_msg(walk.region == row->base && walk.size == row->size, "%s: next", row->name);
}
END_TEST

/* Results of guest_translate, and the part that follows from them. */
static struct {
	int ret;
	u64 gpa, hpa, size;
} answer;

static int fake_translate(void *opaque, u64 gpa, u64 *hpa, u64 *size)
{
	(void)opaque;
	ck_assert_uint_eq(gpa, answer.gpa);
	if (!answer.ret) {
		*hpa = answer.hpa;
		*size = answer.size;
	}
	return answer.ret;
}

struct part_row {
	const char *name;
	u64 region, bytes, offset; /* the guest's region */
	u64 hpa, size;		   /* the host's answer */
	u64 part;		   /* expected; 0: -VMPT_E_INVAL */
};

#define MB (1ULL << 20)

static const struct part_row part_rows[] = {
	{ "a page", 0x10000, 0x1000, 0, 0x5000, 0x1000, 0x1000 },
	{ "more than the region", 0x10000, 0x1000, 0, 0x5000, 0x100000, 0x1000 },
	{ "less than the region", 0x10000, 0x10000, 0, 0x10000, 0x1000, 0x1000 },
	{ "not a power of two", 0x10000, 0x10000, 0, 0x10000, 0x7000, 0x4000 },
	{ "not aligned", 0x10000, 0x10000, 0, 0x12000, 0x10000, 0x2000 },
	{ "aligned to a page", 0x10000, 0x10000, 0, 0x11000, 0x10000, 0x1000 },
	{ "rest of the region", 0x10000, 0x10000, 0xc000, 0x40000, 0x10000, 0x4000 },
	{ "three quarters", 0x10000, 0x10000, 0x4000, 0x40000, 0x10000, 0x8000 },
	{ "address 0", 0x10000, 0x10000, 0, 0, 0x10000, 0x10000 },
	{ "128 MiB", 0, 128 * MB, 0, 128 * MB, 128 * MB, 128 * MB },
	{ "256 MiB", 0, 256 * MB, 0, 256 * MB, 256 * MB, 128 * MB },
	{ "larger than an entry", 0, 4096 * MB, 0, 4096 * MB, 4096 * MB, 128 * MB },
	{ "a piece of a page more", 0x10000, 0x10000, 0, 0x10000, 0x1800, 0x1000 },
	{ "not the address of a page", 0x10000, 0x10000, 0, 0x10800, 0x10000, 0 },
	{ "less than a page", 0x10000, 0x10000, 0, 0x10000, 0xfff, 0 },
	{ "over the end", 0x10000, 0x10000, 0, ~0xfffULL, 0x2000, 0 },
};

START_TEST(parts)
{
	const struct part_row *row = &part_rows[_i];
	struct vmpt_ops ops = { .guest_translate = fake_translate };
	u64 hpa = 0, size = 0;
	int err;

	rig.vcpu.ops = &ops;
	walk = (struct vmpt_walk){ .vcpu = &rig.vcpu, .region = row->region, .size = row->bytes };
	answer.ret = 0;
	answer.gpa = row->region + row->offset;
	answer.hpa = row->hpa;
	answer.size = row->size;
	err = vmpt_walk_part(&walk, row->offset, &hpa, &size);
	ck_assert_msg(err == (row->part ? 0 : -VMPT_E_INVAL), "%s: %d", row->name, err);
	ck_assert_msg(err || (hpa == row->hpa && size == row->part), "%s: %#llx", row->name,
		      (unsigned long long)size);
}
END_TEST

/* One result serves all the parts that it covers: 0x11000: 4K, 8K, 16K, 32K, 4K. */
START_TEST(parts_of_one_answer)
{
	static const u64 sizes[] = { 0x1000, 0x2000, 0x4000, 0x8000, 0x1000 };
	struct vmpt_ops ops = { .guest_translate = fake_translate };
	u64 offset = 0, hpa, size;
	u32 i;

	rig.vcpu.ops = &ops;
	walk = (struct vmpt_walk){ .vcpu = &rig.vcpu, .region = 0x40000, .size = 0x10000 };
	answer.ret = 0;
	answer.gpa = 0x40000;
	answer.hpa = 0x11000;
	answer.size = 0x10000;
	for (i = 0; i < 5; i++, offset += size) {
		ck_assert_int_eq(vmpt_walk_part(&walk, offset, &hpa, &size), 0);
		ck_assert_uint_eq(hpa, 0x11000 + offset);
		ck_assert_uint_eq(size, sizes[i]);
	}
	ck_assert_uint_eq(walk.translations, 1);
}
END_TEST

/* Memory that output may not use, by policy (33.2.7.4). */
struct memory_row {
	int answer;
	enum vmpt_mem_policy policy;
	int part; /* expected */
	int read; /* for the same result for a table */
};

static const struct memory_row memory_rows[] = {
	{ VMPT_MEM_UNBACKED, VMPT_ON_MEM_ERROR, 1, 1 },
	{ VMPT_MEM_UNBACKED, VMPT_ON_MEM_DROP, 1, 1 },
	{ VMPT_MEM_UNBACKED, VMPT_ON_MEM_RETRY, -VMPT_E_RETRY, -VMPT_E_RETRY },
	{ VMPT_MEM_MMIO, VMPT_ON_MEM_ERROR, 1, 1 },
	{ VMPT_MEM_MMIO, VMPT_ON_MEM_RETRY, -VMPT_E_RETRY, 1 },
	{ VMPT_MEM_APIC, VMPT_ON_MEM_DROP, 1, 1 },
	{ VMPT_MEM_RESTRICTED, VMPT_ON_MEM_ERROR, 1, 1 },
	{ VMPT_MEM_RESTRICTED, VMPT_ON_MEM_RETRY, -VMPT_E_RETRY, 1 },
	{ VMPT_MEMS, VMPT_ON_MEM_RETRY, 1, 1 }, /* no such result */
	{ -VMPT_E_RETRY, VMPT_ON_MEM_ERROR, -VMPT_E_RETRY, -VMPT_E_RETRY },
	{ -VMPT_E_NOMEM, VMPT_ON_MEM_ERROR, -VMPT_E_NOMEM, -VMPT_E_NOMEM },
};

static int fake_read(void *opaque, u64 gpa, void *buf, size_t len)
{
	(void)opaque;
	(void)gpa;
	(void)buf;
	(void)len;
	return answer.ret;
}

START_TEST(memory)
{
	const struct memory_row *row = &memory_rows[_i];
	struct vmpt_ops ops = { .guest_translate = fake_translate, .guest_read = fake_read };
	u64 hpa, size;
	int kind;

	rig.vcpu.ops = &ops;
	answer.ret = row->answer;
	answer.gpa = 0x40000;
	for (kind = 1; kind < VMPT_MEMS; kind++)
		rig.vcpu.on_mem[kind] = (u8)(kind == row->answer ? row->policy : VMPT_ON_MEM_ERROR);
	walk = (struct vmpt_walk){ .vcpu = &rig.vcpu, .region = 0x40000, .size = 0x10000 };
	ck_assert_int_eq(vmpt_walk_part(&walk, 0, &hpa, &size), row->part);
	if (row->part > 0)
		ck_assert_int_eq(walk.why, VMPT_OUTPUT_MEMORY);
	rig_at(&rig, TABLE, 0, 0);
	ck_assert_int_eq(vmpt_walk_start(&walk, &rig.vcpu), row->read);
	if (row->read > 0)
		ck_assert_int_eq(walk.why, VMPT_OUTPUT_TABLE_MEMORY);
}
END_TEST

/* A single range as a single range. */
struct direct_row {
	const char *name;
	u64 base;
	u32 mask;
	u64 hpa, size; /* the result for the page of the base */
	int ret, result;
	u64 want;
};

static const struct direct_row direct_rows[] = {
	{ "64 KiB", 0x20000, 0xffff, 0x50000, 0x10000, 0, 0, 0x50000 },
	{ "more", 0x20000, 0xffff, 0x50000, 0x20000, 0, 0, 0x50000 },
	{ "not contiguous", 0x20000, 0xffff, 0x50000, 0xf000, 0, VMPT_WALK_PARTS, 0 },
	{ "not aligned", 0x20000, 0xffff, 0x58000, 0x10000, 0, VMPT_WALK_PARTS, 0 },
	{ "128 bytes", 0x20f80, 0x7f, 0x51000, 0x1000, 0, 0, 0x51f80 },
	{ "2 KiB", 0x20800, 0x7ff, 0x51000, 0x1000, 0, 0, 0x51800 },
	{ "64 KiB, no memory at its start", 0x20000, 0xffff, 0, 0, VMPT_MEM_MMIO, VMPT_WALK_PARTS,
	  0 },
	{ "128 bytes, no memory", 0x20f80, 0x7f, 0, 0, VMPT_MEM_MMIO, VMPT_WALK_POISON, 0 },
	{ "128 bytes, later", 0x20f80, 0x7f, 0, 0, -VMPT_E_RETRY, -VMPT_E_RETRY, 0 },
};

START_TEST(direct)
{
	const struct direct_row *row = &direct_rows[_i];
	struct vmpt_ops ops = { .guest_translate = fake_translate };
	u64 hpa = 0;
	int err;

	rig.vcpu.ops = &ops;
	rig_range(&rig, row->base, row->mask, 0);
	answer.ret = row->ret;
	answer.gpa = row->base & ~0xfffULL;
	answer.hpa = row->hpa;
	answer.size = row->size;
	ck_assert_int_eq(vmpt_walk_start(&walk, &rig.vcpu), 0);
	err = vmpt_walk_direct(&walk, &hpa);
	ck_assert_msg(err == row->result, "%s: %d", row->name, err);
	ck_assert_msg(err || hpa == row->want, "%s: %#llx", row->name, (unsigned long long)hpa);
}
END_TEST

TEST_SUITE()
{
	Suite *suite = suite_create("shadow-walk");
	TCase *tcase = tcase_create("walk");

	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_add_loop_test(tcase, stops, 0, VMPT_ARRAY_SIZE(stop_rows));
	tcase_add_test(tcase, wraps);
	tcase_add_test(tcase, single_entry);
	tcase_add_loop_test(tcase, ranges, 0, VMPT_ARRAY_SIZE(range_rows));
	tcase_add_loop_test(tcase, parts, 0, VMPT_ARRAY_SIZE(part_rows));
	tcase_add_test(tcase, parts_of_one_answer);
	tcase_add_loop_test(tcase, memory, 0, VMPT_ARRAY_SIZE(memory_rows));
	tcase_add_loop_test(tcase, direct, 0, VMPT_ARRAY_SIZE(direct_rows));
	suite_add_tcase(suite, tcase);
	return suite;
}
