// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * A tracing guest moves between hosts of a pool that differ in capabilities, in VMX controls
 * (guest-physical output, a shadow ToPA, MSR lists) and in the location of its pages. It is saved
 * and restored in the middle of its trace, with PMIs pending: no byte and no PMI is lost, and
 * libipt reads the whole buffer.
 */
#include <intel-pt.h>
#include <stdlib.h>
#include <time.h>

#include "tests/support/support.h"
#include "tests/vmm-lib/handover-rig.h"

#define HOSTS	3
#define REGIONS 110u
#define BUFFER	(REGIONS * GUEST_PAGE)

struct pool {
	struct rig *rig[HOSTS];
	size_t logged[HOSTS]; /* of each machine's log: bytes already in ours */
	u8 *log;	      /* the guest's stream across all hosts */
	size_t n;
	struct vmpt_baseline baseline;
	u64 pending; /* moves with a PMI that the handler has not taken */
	u32 at;	     /* the host where the guest is */
	u64 seed;
};

/* Three generations: full controls; no output by guest-physical address; MSR lists only. */
static void make_host(struct vmpt_caps *host, u32 i)
{
	static const u32 vmx[HOSTS] = { RIG_FULL, RIG_NO_GPA, RIG_LISTS };
	static const struct vmpt_cpuid_regs sub0[HOSTS] = { { 1, 0x1ff, 0x80000007, 0 },
							    { 1, 0x04f, 0x80000007, 0 },
							    { 1, 0x08f, 0x80000003, 0 } };
	static const struct vmpt_cpuid_regs sub1[HOSTS] = { { 0xffff0004, 0xffffffff, 0, 0 },
							    { 0x02490002, 0x003f1fff, 0, 0 },
							    { 0x02490003, 0x00ff0fff, 0, 0 } };

	guest_full_caps(host);
	host->vmx = vmx[i];
	host->cpuid.leaf14[0] = sub0[i];
	host->cpuid.leaf14[1] = sub1[i];
	host->cpuid.maxphyaddr = (u8)(46 - 3 * i);
}

static void pool_init(struct pool *pool, u64 seed)
{
	struct vmpt_caps hosts[HOSTS];
	u32 i;

	memset(pool, 0, sizeof(*pool));
	pool->seed = seed;
	for (i = 0; i < HOSTS; i++)
		make_host(&hosts[i], i);
	ck_assert_int_eq(vmpt_baseline_make(&pool->baseline, "pool", hosts, HOSTS, &vmpt_policy_all,
					    NULL, NULL),
			 0);
	pool->log = calloc(1, BUFFER);
	ck_assert_ptr_nonnull(pool->log);
	for (i = 0; i < HOSTS; i++) {
		pool->rig[i] = calloc(1, sizeof(*pool->rig[i]));
		ck_assert_ptr_nonnull(pool->rig[i]);
		pool->rig[i]->host = hosts[i];
		pool->rig[i]->caps = pool->baseline.guest;
		rig_init_caps(pool->rig[i], RIG_SHOWN);
		guest_shuffle(&pool->rig[i]->guest, seed + i);
		pool->rig[i]->regions = REGIONS;
		pool->rig[i]->line = true;
		pool->rig[i]->seed = seed;
	}
}

static void pool_free(struct pool *pool)
{
	u32 i;

	for (i = 0; i < HOSTS; i++) {
		rig_free(pool->rig[i]);
		free(pool->rig[i]);
	}
	free(pool->log);
}

/* The guest's packets, from the machine that made them. */
static void collect(struct pool *pool)
{
	const struct machine *m = &pool->rig[pool->at]->m;
	size_t from = pool->logged[pool->at], n = m->logged - from;

	if (n > BUFFER - pool->n)
		n = BUFFER - pool->n;
	memcpy(pool->log + pool->n, m->log + from, n);
	pool->n += n;
	pool->logged[pool->at] = m->logged;
}

static void migrate(struct pool *pool, u32 to)
{
	struct rig *source = pool->rig[pool->at], *target = pool->rig[to];
	struct vmpt_refusal why = { "", "", 0, 0 };
	u8 state[VMPT_STATE_MAX], page[GUEST_PAGE];
	int n = vmpt_vcpu_save(&source->v, state, sizeof(state));
	u64 before = 0, after = 0;
	u32 i;

	if (n < 0 || vmpt_vcpu_restore(&target->v, state, (size_t)n, &why))
		ck_abort_msg("seed %lu: %d, %s: %s", pool->seed, n, why.field, why.rule);
	ck_assert_int_eq(vmpt_vcpu_get_msr(&source->v, VMPT_MSR_PERF_GLOBAL_STATUS, &before), 0);
	ck_assert_int_eq(vmpt_vcpu_get_msr(&target->v, VMPT_MSR_PERF_GLOBAL_STATUS, &after), 0);
	/* A shadow from the last stay here is no longer valid. */
	ck_assert(before == after && target->v.shadow.stale == target->plan.shadow);
	pool->pending += before != 0;
	for (i = 0; i < RIG_PAGES; i++) {
		guest_get(&source->guest, (u64)i * GUEST_PAGE, page, GUEST_PAGE);
		guest_put(&target->guest, (u64)i * GUEST_PAGE, page, GUEST_PAGE);
	}
	/* Whatever the source still does to its copy, that is no longer the guest. */
	for (i = 0; i < RIG_PAGES; i++)
		guest_put(&source->guest, (u64)i * GUEST_PAGE, memset(page, 0xee, GUEST_PAGE),
			  GUEST_PAGE);
	pool->at = to;
}

static void read_by_libipt(struct pool *pool, u8 *buffer)
{
	struct pt_config config;
	struct pt_packet_decoder *decoder;
	struct pt_packet pkt;
	u64 packets = 0;
	int ret;

	pt_config_init(&config);
	config.begin = buffer;
	config.end = buffer + pool->n;
	decoder = pt_pkt_alloc_decoder(&config);
	ck_assert_ptr_nonnull(decoder);
	ck_assert_int_eq(pt_pkt_sync_set(decoder, 0), 0);
	while ((ret = pt_pkt_next(decoder, &pkt, sizeof(pkt))) > 0)
		packets++;
	if (ret != -pte_eos || packets < pool->n / 16)
		ck_abort_msg("seed %lu: libipt returns %d after %lu packets", pool->seed, ret,
			     packets);
	pt_pkt_free_decoder(decoder);
}

/* The buffer holds the stream; every second region has INT. */
static void check(struct pool *pool)
{
	struct rig *rig = pool->rig[pool->at];
	u8 *buffer = malloc(BUFFER);
	u64 pmis = 0;
	size_t i;

	ck_assert_ptr_nonnull(buffer);
	guest_get(&rig->guest, RIG_REGIONS, buffer, BUFFER);
	for (i = 0; i < pool->n; i++)
		if (buffer[i] != pool->log[i])
			ck_abort_msg("seed %lu: byte %zu of %zu", pool->seed, i, pool->n);
	for (i = 0; i < HOSTS; i++) {
		pmis += pool->rig[i]->guest.pmis;
		ck_assert_uint_eq(pool->rig[i]->m.leaks, 0);
	}
	if (pmis != pool->n / (2 * GUEST_PAGE))
		ck_abort_msg("seed %lu: %lu PMIs for %zu bytes", pool->seed, pmis, pool->n);
	read_by_libipt(pool, buffer);
	free(buffer);
}

static void trip(u64 seed)
{
	struct test_rng rng = { seed };
	struct pool pool;
	u32 moves = 0;

	pool_init(&pool, seed);
	pool.at = (u32)(test_random(&rng) % HOSTS);
	rig_guest_on(pool.rig[pool.at], VMPT_CTL_MTC_EN | VMPT_CTL_TSC_EN);
	while (pool.n < BUFFER - 2 * GUEST_PAGE) {
		u32 to = (u32)(test_random(&rng) % HOSTS);
		int err = rig_round(pool.rig[pool.at], 1 + (u32)(test_random(&rng) % 200));

		if (err)
			ck_abort_msg("seed %lu: a round returned %d", seed, err);
		collect(&pool);
		if (to != pool.at) {
			migrate(&pool, to);
			moves++;
		}
		/* The handler runs on the target. */
		rig_guest_ack(pool.rig[pool.at]);
	}
	if (moves < 20 || pool.pending < 5)
		ck_abort_msg("seed %lu: %u moves, %lu with a PMI", seed, moves, pool.pending);
	check(&pool);
	pool_free(&pool);
}

START_TEST(trips)
{
	const char *soak = getenv("VMPT_SOAK");
	time_t end = time(NULL) + (soak ? atoi(soak) : 0);
	u64 seed, seeds = (u64)test_rounds(3, 1);

	for (seed = 1; seed <= seeds || (soak && time(NULL) < end); seed++)
		trip(seed);
}
END_TEST

/*
 * A guest with all of the full host's features cannot move to the others: the first field says why.
 */
START_TEST(too_much)
{
	struct vmpt_caps hosts[HOSTS], shown;
	struct vmpt_refusal why;

	make_host(&hosts[0], 0);
	make_host(&hosts[1], 1);
	ck_assert_int_eq(vmpt_caps_offer(&hosts[0], &vmpt_policy_all, &shown, NULL), 0);
	ck_assert_int_eq(vmpt_caps_check(&hosts[0], &shown, &why), 0);
	ck_assert_int_eq(vmpt_caps_check(&hosts[1], &shown, &why), -VMPT_E_CAPS);
	ck_assert_str_eq(why.field, "CPUID.80000008H:EAX[7:0] MAXPHYADDR");
	shown.cpuid.maxphyaddr = 43;
	ck_assert_int_eq(vmpt_caps_check(&hosts[1], &shown, &why), -VMPT_E_CAPS);
	ck_assert_str_eq(why.field, "CPUID.14H.0:EBX[4] PTWRITE");
}
END_TEST

TEST_SUITE()
{
	Suite *suite = suite_create("migrate");
	TCase *tcase = tcase_create("migrate");

	tcase_add_test(test_random_case(suite), trips);
	tcase_add_test(tcase, too_much);
	suite_add_tcase(suite, tcase);
	return suite;
}
