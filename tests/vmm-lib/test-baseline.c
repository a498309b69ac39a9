// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * vmm-lib/baseline.c: pools by hand, and random pools: each host supports the baseline, and no
 * additional bit would be possible.
 */
#include <stdlib.h>
#include <time.h>

#include "tests/support/support.h"
#include "tests/vmm-lib/guest.h"

static void set_leaves(struct vmpt_caps *caps, u32 ebx, u32 ecx, u32 eax1, u32 ebx1)
{
	caps->cpuid.leaf14[0] = (struct vmpt_cpuid_regs){ .eax = 1, .ebx = ebx, .ecx = ecx };
	caps->cpuid.leaf14[1] = (struct vmpt_cpuid_regs){ .eax = eax1, .ebx = ebx1 };
}

static void expect_leaves(const struct vmpt_caps *caps, u32 eax, u32 ebx, u32 ecx, u32 eax1,
			  u32 ebx1)
{
	const struct vmpt_cpuid_regs *r = caps->cpuid.leaf14;

	ck_assert_uint_eq(r[0].eax, eax);
	ck_assert_uint_eq(r[0].ebx, ebx);
	ck_assert_uint_eq(r[0].ecx, ecx);
	ck_assert_uint_eq(r[1].eax, eax1);
	ck_assert_uint_eq(r[1].ebx, ebx1);
	ck_assert(!r[0].edx && !r[1].ecx && !r[1].edx);
}

/* Three generations: the smallest of each field. */
START_TEST(three_hosts)
{
	struct vmpt_caps hosts[3];
	struct vmpt_baseline pool;
	struct vmpt_refusal why;
	size_t which, i;

	for (i = 0; i < 3; i++)
		guest_full_caps(&hosts[i]);
	set_leaves(&hosts[0], 0x01f, 0xf, 0x02490002, 0x003f1fff);
	set_leaves(&hosts[1], 0x03f, 0x7, 0xffff0004, 0x003f0fff);
	set_leaves(&hosts[2], 0x1cf, 0x3, 0x02480003, 0x00ff3fff);
	hosts[1].cpuid.maxphyaddr = 39;
	hosts[2].cpuid.linear_bits = 57;
	ck_assert_int_eq(
		vmpt_baseline_make(&pool, "rack 7", hosts, 3, &vmpt_policy_all, &why, &which), 0);
	ck_assert_str_eq(pool.name, "rack 7");
	ck_assert_uint_eq(pool.guest.cpuid.present, 1);
	ck_assert_uint_eq(pool.guest.vmx, 0);
	ck_assert_uint_eq(pool.guest.cpuid.maxphyaddr, 39);
	ck_assert_uint_eq(pool.guest.cpuid.linear_bits, 48);
	ck_assert_uint_eq(pool.guest.cpuid.tsc_numerator, 168);
	expect_leaves(&pool.guest, 1, 0x00f, 0x3, 0x02480002, 0x003f0fff);
	for (i = 0; i < 3; i++)
		ck_assert_int_eq(vmpt_caps_check(&hosts[i], &pool.guest, &why), 0);
	/* One host: its own offer. */
	ck_assert_int_eq(
		vmpt_baseline_make(&pool, "one", hosts + 2, 1, &vmpt_policy_all, NULL, NULL), 0);
	expect_leaves(&pool.guest, 1, 0x1cf, 0x3, 0x02480003, 0x00ff3fff);
}
END_TEST

/* A field that no two hosts have in common removes its feature. */
START_TEST(features_lost)
{
	struct vmpt_caps hosts[2];
	struct vmpt_baseline pool;

	guest_full_caps(&hosts[0]);
	guest_full_caps(&hosts[1]);
	/* no MTC period, no cycle threshold in common; no filter on one */
	set_leaves(&hosts[0], 0x00f, 0x7, 0x00090002, 0x000300ff);
	set_leaves(&hosts[1], 0x00b, 0x5, 0x02400000, 0x000dff00);
	ck_assert_int_eq(vmpt_baseline_make(&pool, "", hosts, 2, &vmpt_policy_all, NULL, NULL), 0);
	expect_leaves(&pool.guest, 1, 0x001, 0x5, 0, 0);
	/* one has no subleaf 1 */
	hosts[1].cpuid.leaf14[0] = (struct vmpt_cpuid_regs){ .ebx = 0x1d, .ecx = 0x7 };
	ck_assert_int_eq(vmpt_baseline_make(&pool, "", hosts, 2, &vmpt_policy_all, NULL, NULL), 0);
	expect_leaves(&pool.guest, 0, 0x001, 0x7, 0, 0);
	/* a different clock: none is enumerated */
	hosts[1].cpuid.tsc_numerator = 250;
	ck_assert_int_eq(vmpt_baseline_make(&pool, "", hosts, 2, &vmpt_policy_all, NULL, NULL), 0);
	ck_assert(!pool.guest.cpuid.tsc_numerator && !pool.guest.cpuid.tsc_denominator &&
		  !pool.guest.cpuid.crystal_hz);
	hosts[1].cpuid.tsc_numerator = 168;
	hosts[1].cpuid.crystal_hz = 25000000;
	set_leaves(&hosts[1], 0x00f, 0x7, 0x00090002, 0x0003ffff);
	ck_assert_int_eq(vmpt_baseline_make(&pool, "", hosts, 2, &vmpt_policy_all, NULL, NULL), 0);
	ck_assert(!pool.guest.cpuid.tsc_numerator && !pool.guest.cpuid.crystal_hz);
}
END_TEST

START_TEST(policy)
{
	struct vmpt_policy policy = { .hide = 1u << VMPT_CAP_PTWRITE, .ranges_max = 1 };
	struct vmpt_caps hosts[2];
	struct vmpt_baseline pool;

	guest_full_caps(&hosts[0]);
	guest_full_caps(&hosts[1]);
	ck_assert_int_eq(vmpt_baseline_make(&pool, "p", hosts, 2, &policy, NULL, NULL), 0);
	expect_leaves(&pool.guest, 1, 0x1ef, 0x80000007, 0xffff0001, 0xffffffff);
}
END_TEST

static void expect_none(struct vmpt_caps hosts[3], const struct vmpt_policy *policy, size_t at,
			const char *field, const char *rule)
{
	struct vmpt_baseline pool;
	struct vmpt_refusal why;
	size_t which = 99;

	ck_assert_int_eq(vmpt_baseline_make(&pool, "n", hosts, 3, policy, &why, &which),
			 -VMPT_E_CAPS);
	ck_assert_uint_eq(which, at);
	ck_assert_str_eq(why.field, field);
	ck_assert_str_eq(why.rule, rule);
	ck_assert_uint_eq(pool.guest.cpuid.present, 0);
	ck_assert_int_eq(vmpt_baseline_make(&pool, "n", hosts, 3, policy, NULL, NULL),
			 -VMPT_E_CAPS);
}

START_TEST(none)
{
	struct vmpt_policy no_pt = { .no_pt = true };
	struct vmpt_caps hosts[3];
	struct vmpt_baseline pool;
	size_t i;

	for (i = 0; i < 3; i++)
		guest_full_caps(&hosts[i]);
	ck_assert_int_eq(vmpt_baseline_make(&pool, "n", hosts, 0, &vmpt_policy_all, NULL, NULL),
			 -VMPT_E_INVAL);
	expect_none(hosts, &no_pt, 0, "CPUID.7.0:EBX[25] Intel PT", "hidden by the policy");
	hosts[1].cpuid.leaf14[0].ecx = 7;
	expect_none(hosts, &vmpt_policy_all, 1, "CPUID.14H.0:ECX[31] LIP",
		    "differs within the pool");
	hosts[1].cpuid.leaf14[0].ecx = 0x80000001;
	hosts[2].cpuid.leaf14[0].ecx = 0x80000004;
	expect_none(hosts, &vmpt_policy_all, 2, "CPUID.14H.0:ECX[2,0] output schemes",
		    "no output scheme is common to the pool");
	hosts[2].vmx = 0;
	expect_none(hosts, &vmpt_policy_all, 2, "IA32_VMX_MISC[14]",
		    "the host cannot trace in VMX operation");
	hosts[1].cpuid.present = 0;
	expect_none(hosts, &vmpt_policy_all, 1, "CPUID.7.0:EBX[25] Intel PT", "the host has no PT");
}
END_TEST

/*
 * Without EBX[1] a guest traces with PSBFreq 0: a feature that one host lacks may be one that
 * another cannot hide. The pool reports the latter.
 */
START_TEST(psb_freq)
{
	static const char field[] = "CPUID.14H.1:EBX[31:16] PSB frequencies";
	static const char rule[] = "cannot be hidden: the host does not list encoding 0";
	struct vmpt_policy hide = { .hide = 1u << VMPT_CAP_PSB_CYC, .ranges_max = 4 };
	struct vmpt_caps hosts[3];
	struct vmpt_baseline pool;
	size_t i;

	for (i = 0; i < 3; i++) {
		guest_full_caps(&hosts[i]);
		set_leaves(&hosts[i], 0x00f, 0x7, 0x02490002, 0x003f1fff);
	}
	/* All have EBX[1] and something in common: encoding 0 need not be included. */
	hosts[1].cpuid.leaf14[1].ebx = 0x003e1fff;
	ck_assert_int_eq(vmpt_baseline_make(&pool, "", hosts, 3, &vmpt_policy_all, NULL, NULL), 0);
	expect_leaves(&pool.guest, 1, 0x00f, 0x7, 0x02490002, 0x003e1fff);
	expect_none(hosts, &hide, 1, field, rule);
	/* nothing in common, with the host in question before, between and after the others */
	hosts[0].cpuid.leaf14[1].ebx = 0x00011fff;
	expect_none(hosts, &vmpt_policy_all, 1, field, rule);
	hosts[2].cpuid.leaf14[0].ebx = 0x00d;
	hosts[2].cpuid.leaf14[1].ebx = 0;
	hosts[0].cpuid.leaf14[1].ebx = 0x003f1fff;
	expect_none(hosts, &vmpt_policy_all, 1, field, rule);
	hosts[1].cpuid.leaf14[1].ebx = 0x003f1fff;
	hosts[0].cpuid.leaf14[1].ebx = 0x003e1fff;
	expect_none(hosts, &vmpt_policy_all, 0, field, rule);
	/* If all hosts with EBX[1] have encoding 0, the pool works without EBX[1]. */
	hosts[0].cpuid.leaf14[1].ebx = 0x00011fff;
	ck_assert_int_eq(vmpt_baseline_make(&pool, "", hosts, 3, &vmpt_policy_all, NULL, NULL), 0);
	expect_leaves(&pool.guest, 1, 0x00d, 0x7, 0x02490002, 0);
	hosts[2].cpuid.leaf14[0].ebx = 0x00f;
	hosts[2].cpuid.leaf14[1].ebx = 0x00021fff;
	expect_none(hosts, &vmpt_policy_all, 2, field, rule);
}
END_TEST

/* At most 31 bytes, and no UTF-8 character cut in two. */
static const struct {
	const char *name, *kept;
} names[] = {
	{ "", "" },
	{ "0123456789012345678901234567890", "0123456789012345678901234567890" },
	{ "01234567890123456789012345678901", "0123456789012345678901234567890" },
	{ "012345678901234567890123456789\xc3\xbc", "012345678901234567890123456789" },
	{ "01234567890123456789012345678\xc3\xbc", "01234567890123456789012345678\xc3\xbc" },
	{ "01234567890123456789012345678\xc3\xbc+", "01234567890123456789012345678\xc3\xbc" },
	{ "0123456789012345678901234567\xf0\x9f\x98\x80", "0123456789012345678901234567" },
	{ "\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80"
	  "\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80",
	  "" },
};

START_TEST(name)
{
	struct vmpt_caps host;
	struct vmpt_baseline pool;

	guest_full_caps(&host);
	memset(&pool, 0xff, sizeof(pool));
	ck_assert_int_eq(
		vmpt_baseline_make(&pool, names[_i].name, &host, 1, &vmpt_policy_all, NULL, NULL),
		0);
	ck_assert_str_eq(pool.name, names[_i].kept);
	ck_assert_int_eq(pool.name[sizeof(pool.name) - 1], 0);
}
END_TEST

/* QEMU's constants for leaf 14H as its source has them. */
START_TEST(builtin)
{
	const struct vmpt_baseline *b = vmpt_baseline_builtin(0);
	struct vmpt_caps host;
	size_t i;

	ck_assert_ptr_nonnull(b);
	ck_assert_str_eq(b->name, "qemu-icelake");
	expect_leaves(&b->guest, 1, 0xf, 0x7, 0x02490002, 0x003f1fff);
	guest_full_caps(&host);
	host.cpuid.leaf14[0].ecx = 0xf;
	for (i = 0; vmpt_baseline_builtin(i); i++) {
		b = vmpt_baseline_builtin(i);
		ck_assert_int_eq(vmpt_caps_check(&host, &b->guest, NULL), 0);
		ck_assert_ptr_eq(vmpt_baseline_find(b->name), b);
	}
	ck_assert_uint_eq(i, 1);
	ck_assert_ptr_null(vmpt_baseline_builtin((size_t)-1));
	ck_assert_ptr_null(vmpt_baseline_find(""));
	ck_assert_ptr_null(vmpt_baseline_find("qemu"));
	ck_assert_ptr_null(vmpt_baseline_find("qemu-icelake-2"));
}
END_TEST

static u64 many_bits(struct test_rng *rng)
{
	u64 bits = test_random(rng);

	return bits | test_random(rng);
}

static void random_host(struct test_rng *rng, struct vmpt_caps *host)
{
	u64 r = test_random(rng), s = many_bits(rng), t = many_bits(rng);

	guest_full_caps(host);
	set_leaves(host, (u32)(s & 0x1ff) | 1, (u32)(s >> 16 & 6) | 1, 0,
		   (u32)t | (r >> 20 & 7 ? 0x10000 : 0));
	host->cpuid.leaf14[1].eax = (u32)(t >> 32 & 0xffff0000) | (u32)(s >> 32 & 7);
	host->cpuid.leaf14[0].eax = r % 16 ? 1 + (r >> 4 & 1) : 0;
	if (!host->cpuid.leaf14[0].eax && r >> 24 & 7)
		host->cpuid.leaf14[0].ebx &= ~2u;
	host->cpuid.maxphyaddr = (u8)(36 + (r >> 8) % 17);
	host->cpuid.linear_bits = r >> 16 & 1 ? 57 : 48;
}

/* @guest with one more field does not fit everywhere in the pool. */
static bool fits_all(const struct vmpt_caps *hosts, size_t n, const struct vmpt_caps *guest)
{
	size_t i;

	for (i = 0; i < n; i++)
		if (vmpt_caps_check(&hosts[i], guest, NULL))
			return false;
	return true;
}

/* Each bit that is 0 in the baseline, set alone or with what it needs. */
static bool could_have_more(const struct vmpt_caps *hosts, size_t n,
			    const struct vmpt_caps *baseline)
{
	static const u8 value_of[][2] = { { VMPT_CAP_IP_FILTER, VMPT_CAP_RANGES },
					  { VMPT_CAP_MTC, VMPT_CAP_MTC_PERIODS } };
	unsigned int cap, bit, i;

	for (cap = 0; cap < VMPT_CAPS; cap++) {
		for (bit = 0; bit < vmpt_pt_cap_table[cap].width && bit < 16; bit++) {
			struct vmpt_caps more = *baseline;
			u32 value = vmpt_pt_cap(&baseline->cpuid, cap);

			bool count = cap == VMPT_CAP_RANGES || cap == VMPT_CAP_MAX_SUBLEAF;

			if (count ? bit : value >> bit & 1)
				continue;
			value = count ? value + 1 : value | 1u << bit;
			vmpt_pt_cap_set(&more.cpuid, cap, value);
			if (fits_all(hosts, n, &more))
				return true;
			for (i = 0; i < VMPT_ARRAY_SIZE(value_of); i++)
				if (cap == value_of[i][1])
					vmpt_pt_cap_set(&more.cpuid, value_of[i][0], 1);
			if (cap != VMPT_CAP_MAX_SUBLEAF)
				vmpt_pt_cap_set(&more.cpuid, VMPT_CAP_MAX_SUBLEAF, 1);
			if (fits_all(hosts, n, &more))
				return true;
		}
	}
	return false;
}

/* A host that does not support PSBFreq 0, in a pool where EBX[1] is not common. */
static bool needs_psb(const struct vmpt_cpuid_regs h[2])
{
	return h[0].ebx & 2 && !(h[0].eax && h[1].ebx & 0x10000);
}

static bool psb_in_common(const struct vmpt_caps *hosts, size_t n)
{
	u32 common = ~0u;
	size_t i;

	for (i = 0; i < n; i++) {
		const struct vmpt_cpuid_regs *h = hosts[i].cpuid.leaf14;

		common &= h[0].ebx & 2 && h[0].eax ? h[1].ebx : 0;
	}
	return common & 0xffff && common >> 16;
}

/* Whether there was a baseline, as there must be. */
static bool random_pool(u64 seed)
{
	struct test_rng rng = { seed };
	struct vmpt_caps hosts[8];
	struct vmpt_baseline pool;
	size_t n = 1 + test_random(&rng) % 8, i, which;
	bool none = false;
	int err;

	for (i = 0; i < n; i++)
		random_host(&rng, &hosts[i]);
	for (i = 0; i < n && !psb_in_common(hosts, n); i++)
		none |= needs_psb(hosts[i].cpuid.leaf14);
	err = vmpt_baseline_make(&pool, "random", hosts, n, &vmpt_policy_all, NULL, &which);
	if (err != (none ? -VMPT_E_CAPS : 0))
		ck_abort_msg("seed %lu: %d", seed, err);
	if (none && !needs_psb(hosts[which].cpuid.leaf14))
		ck_abort_msg("seed %lu: host %zu is the wrong one", seed, which);
	if (none)
		return false;
	if (!fits_all(hosts, n, &pool.guest))
		ck_abort_msg("seed %lu: a host cannot support the baseline", seed);
	if (could_have_more(hosts, n, &pool.guest))
		ck_abort_msg("seed %lu: the baseline could be larger", seed);
	return true;
}

START_TEST(random_pools)
{
	const char *soak = getenv("VMPT_SOAK");
	time_t end = time(NULL) + (soak ? atoi(soak) : 0);
	u64 seed, made = 0;

	for (seed = 1; seed <= 3000 || (soak && time(NULL) < end); seed++)
		made += random_pool(seed);
	ck_assert_uint_gt(made, 1000);
	ck_assert_uint_lt(made, seed - 100);
}
END_TEST

TEST_SUITE()
{
	Suite *suite = suite_create("baseline");
	TCase *tcase = tcase_create("baseline");

	tcase_add_test(tcase, three_hosts);
	tcase_add_test(tcase, features_lost);
	tcase_add_test(tcase, policy);
	tcase_add_test(tcase, none);
	tcase_add_test(tcase, psb_freq);
	tcase_add_loop_test(tcase, name, 0, VMPT_ARRAY_SIZE(names));
	tcase_add_test(tcase, builtin);
	tcase_add_test(test_random_case(suite), random_pools);
	suite_add_tcase(suite, tcase);
	return suite;
}
