// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * vmm-lib/shadow against a malicious guest: memory full of random values, and a thread that
 * rewrites the tables while they are walked. The processor only ever accesses the guest's own
 * frames, and the work is bounded.
 */
#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#include "tests/support/support.h"
#include "tests/vmm-lib/shadow-rig.h"

#define PAGES	    512u
#define TABLES	    8u
#define FIRST_DATA  16u
#define THREAD_RUNS 300u

static struct rig rig;
static struct test_rng rng;
static u64 seed;

static u32 pick(u32 n)
{
	return (u32)(test_random(&rng) % n);
}

static void wrong(const char *what)
{
	ck_abort_msg("seed %#llx: %s", (unsigned long long)seed, what);
}

/* A guest's table entry; @clear: output does not overlap the tables. */
static u64 any_entry(struct test_rng *random, bool clear)
{
	u64 v = test_random(random), page = v >> 8 & 0x1ff, order = v >> 20 & 3;

	if (clear && page < FIRST_DATA)
		page += FIRST_DATA;
	switch (v & 0xf) {
	case 0:
	case 1:
	case 2:
		return (v >> 8 & (TABLES - 1)) << 12 | VMPT_TOPA_END;
	case 3:
		return page << 12 | VMPT_TOPA_STOP;
	case 4:
		return page << 12 | VMPT_TOPA_INT;
	case 5:
		return page << 12 | order << VMPT_TOPA_SIZE_SHIFT; /* mostly not aligned */
	case 6:
		return clear ? v | 1ULL << 63 : v;
	case 7: /* beyond the end of memory */
		return (PAGES - 4ULL) << 12 | 4ULL << VMPT_TOPA_SIZE_SHIFT;
	case 8:
		return clear ? 0x3fULL << 40 : (v & 0xfff) << 34;
	default:
		page = clear ? page | 1 << order : page;
		return (page >> order << order) << 12 | order << VMPT_TOPA_SIZE_SHIFT;
	}
}

static void any_position(void)
{
	u32 table = pick(TABLES);

	switch (pick(8)) {
	case 0:
		rig_at(&rig, test_random(&rng), pick(VMPT_TOPA_ENTRIES_MAX),
		       (u32)test_random(&rng));
		break;
	case 1:
		rig_range(&rig, test_random(&rng) % (PAGES * 8192ULL), (u32)test_random(&rng),
			  (u32)test_random(&rng));
		break;
	case 2:
		rig_range(&rig, (u64)pick(PAGES) << 12, (128u << pick(13)) - 1, pick(4096));
		break;
	default:
		rig_at(&rig, (u64)table << 12, pick(512), pick(2) ? 0 : pick(8192));
		break;
	}
	rig.vcpu.regs.status = 0;
}

static void check_bounds(void)
{
	if (rig.vcpu.shadow.reads > VMPT_SHADOW_READS)
		wrong("too many reads");
	if (rig.vcpu.shadow.translations > 3ULL * rig.memory.pages * VMPT_SHADOW_PER_PAGE / 2)
		wrong("too many translations");
	if (rig.strays)
		wrong("an access outside the guest");
}

/* Enter, some trace, exit: 0, or the result of the entry. */
static int one_entry(void)
{
	static const u8 bytes[8192] = { 1 };
	int err = rig_enter(&rig);

	check_bounds();
	if (err)
		return err;
	rig_trace(&rig, bytes, 1 + pick(sizeof(bytes)));
	if (rig_exit(&rig))
		wrong("exit");
	check_bounds();
	return 0;
}

static void garbage(u64 n)
{
	struct vmpt_vcpu *vcpu = &rig.vcpu;
	u32 i;
	int err;

	seed = rng.state = n;
	rig_init(&rig, PAGES, 1 + pick(4));
	guest_shuffle(&rig.guest, test_random(&rng));
	for (i = 0; i < TABLES * 512; i++)
		rig_entry(&rig, 0, i, any_entry(&rng, false));
	for (i = 0; i < 40; i++)
		guest_set_kind(&rig.guest, TABLES + pick(PAGES - TABLES), 1, pick(VMPT_MEMS));
	for (i = 1; i < VMPT_MEMS; i++)
		vcpu->on_mem[i] = (u8)pick(3);
	vcpu->rules.topa_multi = pick(8) > 0;
	vcpu->host_rules.topa_multi = rig.rules.topa_multi = pick(8) > 0;
	vcpu->host_rules.single_range = pick(8) > 0;
	for (i = 0; i < 60; i++) {
		if (!pick(4)) {
			any_position();
			vcpu->shadow.stale = true;
		}
		err = one_entry();
		if (err && err != -VMPT_E_RETRY)
			wrong("an invalid error code");
		vmpt_shadow_invalidate(vcpu, test_random(&rng) % (PAGES * 8192ULL), 1 + pick(8192));
	}
	rig_free(&rig);
}

/* VMPT_SOAK: run for that many seconds. */
static time_t soak_end(void)
{
	const char *seconds = getenv("VMPT_SOAK");

	return seconds ? time(NULL) + atoi(seconds) / 2 : 0;
}

START_TEST(any_memory)
{
	time_t end = soak_end();
	u64 n, rounds = (u64)test_rounds(200, 60);

	for (n = 0; n < rounds || time(NULL) < end; n++)
		garbage(0x6a40 + n);
}
END_TEST

static bool over;

/* Another processor of the guest. */
static void *rewrite(void *opaque)
{
	struct test_rng random = { 0x7e4 };
	u64 *tables = opaque;

	while (!__atomic_load_n(&over, __ATOMIC_RELAXED)) {
		u64 at = test_random(&random) % (TABLES * 512);

		__atomic_store_n(&tables[at], any_entry(&random, true), __ATOMIC_RELAXED);
	}
	return NULL;
}

START_TEST(rewritten)
{
	time_t end = soak_end();
	pthread_t thread;
	u32 i, runs = (u32)test_rounds(THREAD_RUNS, THREAD_RUNS / 3);

	seed = rng.state = 0x7e5;
	rig_init(&rig, PAGES, 2);
	for (i = 0; i < TABLES * 512; i++)
		rig_entry(&rig, 0, i, any_entry(&rng, true));
	/* frames in order: the tables are at the beginning of the host's memory */
	ck_assert_int_eq(pthread_create(&thread, NULL, rewrite, rig.guest.host), 0);
	for (i = 0; i < runs || time(NULL) < end; i++) {
		if (rig.vcpu.regs.status || !pick(8)) {
			rig_at(&rig, (u64)pick(TABLES) << 12, pick(512), 0);
			rig.vcpu.regs.status = 0;
		}
		rig.vcpu.shadow.stale = true;
		if (one_entry())
			wrong("entry");
	}
	__atomic_store_n(&over, true, __ATOMIC_RELAXED);
	ck_assert_int_eq(pthread_join(thread, NULL), 0);
	rig_free(&rig);
}
END_TEST

TEST_SUITE()
{
	Suite *suite = suite_create("hostile-shadow");
	TCase *tcase = test_random_case(suite);

	tcase_add_test(tcase, any_memory);
	tcase_add_test(tcase, rewritten);
	return suite;
}
