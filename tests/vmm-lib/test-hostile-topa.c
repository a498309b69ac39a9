// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * A hostile guest and vmm-lib's output to its memory: a thread that rewrites ToPA entries while the
 * library walks them, tables at every boundary, in memory of every kind. Nothing outside the guest
 * is accessed (its memory is allocated with its exact size, for ASan), work is bounded, and the
 * position is always one that a processor could have. VMPT_SOAK=seconds: run for that long.
 */
#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#include "tests/vmm-lib/pip-bed.h"

#define CR3    0x123456789000ULL
#define TABLES 8u /* pages 1 to 8 */

/* Most accesses that one PIP may cost: four entries, and two stores around a region's end. */
#define READS  4u
#define STORES 2u

static u64 hostile_entry(struct test_rng *rng)
{
	u64 r = test_random(rng), page = (r >> 8) % (PAGES + 8);

	switch (r % 8) {
	case 0: /* END, to a table or to anywhere */
		return (r >> 63 ? page : 1 + page % TABLES) << 12 | VMPT_TOPA_END;
	case 1: /* anything */
		return test_random(rng);
	case 2: /* a big region: it may reach beyond the guest's memory */
		return (r >> 32 & 0xf) << 6;
	case 3: /* high addresses */
		return (r >> 20 << 12 & 0x3ffffffff000) | (r >> 3 & 0x14);
	default:
		return page << 12 | (r >> 40 & 0x14) | (r >> 60 ? 0 : 0x40);
	}
}

/* ---- the thread ---- */

struct writer {
	struct guest *g;
	struct test_rng rng;
	bool stop;
	u64 stores;
	pthread_t thread;
};

static void store_entry(struct guest *g, u64 gpa, u64 entry)
{
	u8 *at = g->host + (u64)g->frame[gpa / GUEST_PAGE] * GUEST_PAGE + gpa % GUEST_PAGE;

	__atomic_store_n((u64 *)(void *)at, entry, __ATOMIC_RELAXED);
}

static void *rewrite(void *opaque)
{
	struct writer *w = opaque;

	while (!__atomic_load_n(&w->stop, __ATOMIC_RELAXED)) {
		/* mostly the first entries of a table, where the walk is */
		u64 r = test_random(&w->rng), index = r >> 62 ? (r >> 8) % 4 : (r >> 8) % 512;

		store_entry(w->g, TABLE + (r >> 20) % TABLES * 4096 + index * 8,
			    hostile_entry(&w->rng));
		__atomic_fetch_add(&w->stores, 1, __ATOMIC_RELAXED);
	}
	return NULL;
}

/* ---- one call of the library ---- */

static void hostile_position(struct pip_bed *bed, struct test_rng *rng)
{
	struct vmpt_pt_regs *regs = &bed->v.regs;
	u64 r = test_random(rng);
	u32 index = r >> 61 ? (u32)(r >> 8) % 4 : (u32)(r >> 8) % VMPT_TOPA_ENTRIES_MAX;
	u32 offset = 4096 - (u32)(r >> 40) % 12;

	regs->ctl |= VMPT_CTL_TOPA;
	regs->status = 100ULL << VMPT_STATUS_BYTES_SHIFT;
	pip_bed_at(bed, TABLE + (r >> 32) % TABLES * 4096, index, offset);
	if (r % 16 == 0) /* any value that WRMSR accepts */
		regs->output_base = test_random(rng) & vmpt_mask64(46) & ~0x7fULL;
	if (r % 16 == 1)
		regs->output_mask_ptrs = test_random(rng) | 0x7f;
	if (r % 16 == 2) {
		regs->ctl &= ~VMPT_CTL_TOPA;
		regs->output_base = (r >> 32) % (2 * PAGES) << 12;
		regs->output_mask_ptrs = 4090ULL << 32 | 0xfff;
	}
	bed->v.rules.topa_multi = r >> 60 != 1;
}

/* What is wrong with a position after the call, NULL: nothing. */
static const char *bad_position(const struct vmpt_pt_regs *regs)
{
	u32 offset = vmpt_pt_output_offset(regs);

	if (regs->status & VMPT_STATUS_ERROR)
		return NULL;
	if (!(regs->ctl & VMPT_CTL_TOPA))
		return offset > ((u32)regs->output_mask_ptrs | 0x7f) ? "beyond the range" : NULL;
	if (regs->output_base & 0xfff || regs->output_base >> 46)
		return "no table";
	/* 128 MiB, and its end after a STOP */
	if (offset > 1u << 27 || (offset == 1u << 27 && !(regs->status & VMPT_STATUS_STOPPED)))
		return "beyond any region";
	return NULL;
}

static void one_call(struct pip_bed *bed, struct test_rng *rng, u64 n)
{
	u64 reads = bed->guest.reads, writes = bed->guest.writes;
	struct vmpt_pt_regs before;
	const char *bad;
	int ret;

	hostile_position(bed, rng);
	before = bed->v.regs;
	bed->v.events = 0;
	ret = pip_mov(bed, CR3);
	if (ret != 1 && ret != -VMPT_E_RETRY)
		ck_abort_msg("call %llu: %d", (unsigned long long)n, ret);
	if (ret != 1 && memcmp(&before, &bed->v.regs, sizeof(before)))
		ck_abort_msg("call %llu: moved", (unsigned long long)n);
	bad = ret == 1 ? bad_position(&bed->v.regs) : NULL;
	if (bad)
		ck_abort_msg("call %llu: %s", (unsigned long long)n, bad);
	if (bed->guest.reads - reads > READS || bed->guest.writes - writes > STORES)
		ck_abort_msg("call %llu: %llu reads, %llu writes", (unsigned long long)n,
			     (unsigned long long)(bed->guest.reads - reads),
			     (unsigned long long)(bed->guest.writes - writes));
}

static void fill_tables(struct guest *g, struct test_rng *rng)
{
	u32 i;

	for (i = 0; i < TABLES * 512; i++)
		store_entry(g, TABLE + i * 8, hostile_entry(rng));
}

/* Pages of all kinds, with a mark in those that must not be written. */
static void set_kinds(struct guest *g)
{
	static const enum vmpt_guest_mem kinds[] = { VMPT_MEM_UNBACKED, VMPT_MEM_MMIO,
						     VMPT_MEM_APIC, VMPT_MEM_RESTRICTED };
	u32 i;

	for (i = 0; i < 4; i++) {
		memset(g->host + (u64)g->frame[56 + i] * GUEST_PAGE, 0xa5, GUEST_PAGE);
		guest_set_kind(g, 56 + i, 1, kinds[i]);
	}
}

static void check_marks(const struct guest *g)
{
	u32 i, j;

	for (i = 56; i < 60; i++) {
		for (j = 0; j < GUEST_PAGE; j++) {
			if (g->host[(u64)g->frame[i] * GUEST_PAGE + j] != 0xa5)
				ck_abort_msg("page %u was written", i);
		}
	}
}

START_TEST(a_thread_rewrites_the_tables)
{
	const char *soak = getenv("VMPT_SOAK");
	time_t end = time(NULL) + (soak ? atoi(soak) : 0);
	struct test_rng rng = { 0x4057 };
	struct writer w = { .rng = { 0x71e } };
	struct pip_bed bed;
	u64 n, errors = 0, stops = 0, retries = 0, pmis;

	pip_bed_init(&bed);
	guest_shuffle(&bed.guest, 3);
	set_kinds(&bed.guest);
	fill_tables(&bed.guest, &rng);
	w.g = &bed.guest;
	ck_assert_int_eq(pthread_create(&w.thread, NULL, rewrite, &w), 0);
	/* On a busy machine the thread may start late. */
	for (n = 0; n < 100000 || __atomic_load_n(&w.stores, __ATOMIC_RELAXED) < 1000 ||
		    (soak && time(NULL) < end);
	     n++) {
		u32 kind = 1 + (u32)(n >> 8) % 4;

		bed.v.on_mem[kind] = (u8)((n >> 10) % 3);
		bed.v.global_status = false;
		one_call(&bed, &rng, n);
		errors += !!(bed.v.regs.status & VMPT_STATUS_ERROR);
		stops += !!(bed.v.regs.status & VMPT_STATUS_STOPPED);
		retries += !bed.v.events && !(vmpt_pt_packet_bytes(&bed.v.regs) - 100);
	}
	__atomic_store_n(&w.stop, true, __ATOMIC_RELAXED);
	ck_assert_int_eq(pthread_join(w.thread, NULL), 0);
	ck_assert_uint_ge(w.stores, 1000);
	pmis = bed.guest.pmis;
	check_marks(&bed.guest);
	pip_bed_free(&bed);
	/* All of it occurred; most of the guest's values are invalid: many errors. */
	ck_assert_msg(errors > 1000 && errors < n && stops > 100 && retries > 100 && pmis > 1000,
		      "%llu errors, %llu stops, %llu retries, %llu PMIs",
		      (unsigned long long)errors, (unsigned long long)stops,
		      (unsigned long long)retries, (unsigned long long)pmis);
}
END_TEST

/* ---- boundaries, each with each kind of memory and policy ---- */

struct boundary {
	const char *what;
	u64 base;
	u32 index;
};

static const struct boundary boundaries[] = {
	{ "address 0", 0, 0 },
	{ "last entry of a page", TABLE, 511 },
	{ "second page of a table", TABLE, 512 },
	{ "last entry of the memory", (PAGES - 1) * 4096ULL, 511 },
	{ "after the memory", (PAGES - 1) * 4096ULL, 512 },
	{ "not in the memory", PAGES * 4096ULL, 0 },
	{ "last entry of the largest table", TABLE, VMPT_TOPA_ENTRIES_MAX - 1 },
	{ "last page below MAXPHYADDR", 0x3ffffffff000, 0 },
	{ "last entry below MAXPHYADDR", 0x3ffffffff000, 511 },
	{ "above MAXPHYADDR", 0x3ffffffff000, 512 },
	{ "the largest table there", 0x3ffffffff000, VMPT_TOPA_ENTRIES_MAX - 1 },
	{ "above MAXPHYADDR", 1ULL << 46, 0 },
	{ "bit 63", 1ULL << 63, 0 },
	{ "all ones", ~0ULL, VMPT_TOPA_ENTRIES_MAX - 1 },
};

/* Possible places of the next entry, the next table and the regions. */
static const u64 targets[] = { OUTPUT,
			       0,
			       (PAGES - 1) * 4096ULL,
			       PAGES * 4096ULL,
			       56 * 4096ULL,
			       57 * 4096ULL,
			       58 * 4096ULL,
			       59 * 4096ULL,
			       0x3ffffffff000,
			       1ULL << 46 };

START_TEST(tables_at_every_boundary)
{
	const struct boundary *b = &boundaries[_i];
	struct pip_bed bed;
	u32 i, j, policy, fill;

	pip_bed_init(&bed);
	set_kinds(&bed.guest);
	for (i = 0; i < VMPT_ARRAY_SIZE(targets) * VMPT_ARRAY_SIZE(targets); i++) {
		u64 here = targets[i % VMPT_ARRAY_SIZE(targets)];
		u64 next = targets[i / VMPT_ARRAY_SIZE(targets)];

		for (policy = 0; policy < 6; policy++) {
			u64 gpa = b->base + 8ULL * b->index, reads, writes;

			/* If there is memory for them; otherwise the guest has no influence. */
			if (!(gpa % 8) && gpa < 56 * 4096ULL)
				guest_put64(&bed.guest, gpa, here | VMPT_TOPA_INT);
			gpa += 8;
			if (!(gpa % 8) && gpa < 56 * 4096ULL)
				guest_put64(&bed.guest, gpa, next | (policy > 2));
			for (j = 0; j < VMPT_MEMS; j++)
				bed.v.on_mem[j] = (u8)(policy % 3);
			for (fill = 0; fill < 2; fill++) {
				bed.v.regs.status = 0;
				pip_bed_at(&bed, b->base, b->index, fill ? 4092 : 0);
				reads = bed.guest.reads;
				writes = bed.guest.writes;
				pip_mov(&bed, CR3);
				if (bed.guest.reads - reads > READS ||
				    bed.guest.writes - writes > STORES)
					ck_abort_msg("%s: unbounded", b->what);
				if (bad_position(&bed.v.regs) && bed.v.regs.output_base != b->base)
					ck_abort_msg("%s: %s", b->what, bad_position(&bed.v.regs));
			}
		}
	}
	check_marks(&bed.guest);
	pip_bed_free(&bed);
}
END_TEST

/* ---- a loop of tables: each has one region of 4 KiB and END, the minimum ---- */

START_TEST(a_loop_of_tables)
{
	struct pip_bed bed;
	u64 i, n = 10000;

	pip_bed_init(&bed);
	for (i = 0; i < TABLES; i++) {
		store_entry(&bed.guest, TABLE + i * 4096, OUTPUT + i * 4096);
		store_entry(&bed.guest, TABLE + i * 4096 + 8,
			    (TABLE + (i + 1) % TABLES * 4096) | VMPT_TOPA_END);
	}
	for (i = 0; i < n; i++)
		ck_assert_int_eq(pip_mov(&bed, CR3), 1);
	/* one to load for each PIP, two for each 4 KiB that are filled */
	ck_assert_uint_le(bed.guest.reads, n + 2 * (n * PIP_SIZE / 4096));
	/* a table that contains only END has no output to wait for: an error, no loop */
	for (i = 0; i < TABLES; i++)
		store_entry(&bed.guest, TABLE + i * 4096,
			    (TABLE + (i + 1) % TABLES * 4096) | VMPT_TOPA_END);
	bed.guest.reads = 0;
	ck_assert_int_eq(pip_mov(&bed, CR3), 1);
	ck_assert_uint_eq(bed.v.output_why, VMPT_OUTPUT_END_FIRST);
	ck_assert_uint_le(bed.guest.reads, 2);
	pip_bed_free(&bed);
}
END_TEST

TEST_SUITE()
{
	Suite *suite = suite_create("hostile-topa");
	TCase *tc = tcase_create("hostile");

	tcase_add_test(test_random_case(suite), a_thread_rewrites_the_tables);
	tcase_add_loop_test(tc, tables_at_every_boundary, 0, (int)VMPT_ARRAY_SIZE(boundaries));
	tcase_add_test(tc, a_loop_of_tables);
	suite_add_tcase(suite, tc);
	return suite;
}
