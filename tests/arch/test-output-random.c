// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * arch/output.c against a second, byte-by-byte implementation of SDM 3 33.2.7: random tables with
 * errors, single ranges, memory that drops, refuses or is late, writes cut anywhere.
 * VMPT_SOAK=seconds: run for that long.
 */
#include <stdlib.h>
#include <time.h>

#include "tests/arch/output-oracle.h"
#include "tests/support/support.h"

/* ---- random set-ups ---- */

static u64 random_entry(struct test_rng *rng, u64 r)
{
	unsigned int size = (unsigned int)(r >> 8 & 7) < 6 ? 0 : (unsigned int)(r >> 16) % 4;
	u64 page = TABLES + (r >> 32) % (PAGES - TABLES);
	u64 e = (page >> size << size) << 12 | size << 6;

	if (r % 4 == 0)
		e |= VMPT_TOPA_INT;
	if (r % 32 == 1)
		e |= VMPT_TOPA_STOP;
	if (r % 4 == 2)
		e = (r >> 40) % TABLES << 12 | VMPT_TOPA_END;
	if (r % 64 == 3) /* any error */
		e ^= 1ULL << test_random(rng) % 64;
	return e;
}

static void random_memory(struct memory *m, struct test_rng *rng)
{
	u32 i;

	memset(m, 0, sizeof(*m));
	for (i = 0; i < TABLES * 512; i++) {
		u64 e = random_entry(rng, test_random(rng));

		if (i % 512 == 0 && e & 1 && test_random(rng) % 16)
			e &= ~1ULL;
		memcpy(m->bytes + 8 * i, &e, 8);
	}
	for (i = 0; i < PAGES; i++) {
		u64 r = test_random(rng) % 64;

		m->kind[i] = r == 0 ? FAULTS : r == 1 && i >= TABLES ? DROPS : RAM;
	}
}

static void random_position(struct vmpt_pt_regs *regs, struct memory *m, bool one,
			    struct test_rng *rng)
{
	u64 r = test_random(rng);

	memset(regs, 0, sizeof(*regs));
	if (r % 4 == 0) { /* a single range, from 128 bytes to 64 KiB */
		u32 mask = (128u << (r >> 8) % 10) - 1;

		regs->output_base = (TABLES * 4096u + (r >> 16) % (MEMORY / 2)) & ~(u64)mask;
		regs->output_mask_ptrs = (r >> 40) % (mask + 1ULL) << 32 | mask;
		if (r >> 60 == 0)
			regs->output_mask_ptrs ^= 1ULL << (7 + (r >> 50) % 57);
		return;
	}
	regs->ctl = VMPT_CTL_TOPA;
	regs->output_base = (r >> 8) % TABLES << 12;
	if (r >> 60 == 0)
		regs->output_base |= 0x80;
	regs->output_mask_ptrs =
		vmpt_pt_mask_ptrs(one ? 0 : (u32)(r >> 16) % 512, (u32)(r >> 32) % 4096);
	if (one) { /* usually a table that such a processor accepts */
		u64 e = regs->output_base | VMPT_TOPA_END;

		memcpy(m->bytes + (regs->output_base & ~0xfffULL) + 8, &e, 8);
	}
}

static void start(struct pair *p, struct test_rng *rng)
{
	u64 r = test_random(rng);
	bool one = r % 4 == 0;

	random_memory(&p->ours, rng);
	random_position(&p->regs, &p->ours, one, rng);
	p->ours.later = r >> 8 & 1 ? 8 : 0;
	p->ours.seed = r;
	p->rules = (struct vmpt_pt_rules){ .maxphyaddr = 36, .topa_multi = !one };
	pair_start(p);
}

static void one_run(struct pair *p, u64 seed)
{
	struct test_rng rng = { seed };
	u8 bytes[20000];
	const char *what;
	size_t i, len;
	int writes;

	start(p, &rng);
	for (i = 0; i < sizeof(bytes); i++)
		bytes[i] = (u8)test_random(&rng);
	for (writes = 0; writes < 24; writes++) {
		u64 r = test_random(&rng);

		len = r % 4 ? 1 + (r >> 8) % 16 : 1 + (r >> 8) % sizeof(bytes);
		what = pair_write(p, bytes, len);
		if (what)
			ck_abort_msg("seed %#llx: %s", (unsigned long long)seed, what);
		if (r >> 60 == 0) {
			vmpt_output_unload(&p->out);
			p->loads++;
		}
	}
	what = pair_differs(p);
	if (what)
		ck_abort_msg("seed %#llx: %s", (unsigned long long)seed, what);
}

START_TEST(random_tables_and_writes)
{
	const char *soak = getenv("VMPT_SOAK");
	time_t end = time(NULL) + (soak ? atoi(soak) : 0);
	struct pair *p = calloc(1, sizeof(*p));
	u64 i, errors = 0, stops = 0, filled = 0, ints = 0, dropped = 0, wraps = 0;

	ck_assert_ptr_nonnull(p);
	for (i = 0; i < 500 || (soak && time(NULL) < end); i++) {
		one_run(p, 0x0a7b0 + i * 0x10001);
		errors += p->o.error;
		stops += p->o.stopped;
		filled += p->o.filled;
		ints += p->ints;
		dropped += p->dropped > 0;
		wraps += p->o.wraps;
	}
	free(p);
	/* Random input must have covered all of it. */
	ck_assert_msg(errors > 50 && stops > 10 && filled > 1000 && ints > 200 && dropped > 10 &&
			      wraps > 100,
		      "%llu errors, %llu stops, %llu filled, %llu ints, %llu drops, %llu wraps",
		      (unsigned long long)errors, (unsigned long long)stops,
		      (unsigned long long)filled, (unsigned long long)ints,
		      (unsigned long long)dropped, (unsigned long long)wraps);
}
END_TEST

TEST_SUITE()
{
	Suite *suite = suite_create("output-random");
	TCase *tc = test_random_case(suite);

	tcase_add_test(tc, random_tables_and_writes);
	return suite;
}
