// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* vmm-lib/xsave.c: state component 8. */
#include "tests/vmm-lib/bed.h"

static struct bed bed;

static void setup(void)
{
	bed_init(&bed);
	bed.config.xsave = true;
}

static void teardown(void)
{
	bed_free(&bed);
}

/* The order in the area: CTL, OUTPUT_BASE, OUTPUT_MASK_PTRS, STATUS, CR3_MATCH, ADDR0_A,
 * ADDR0_B, ADDR1_A, ADDR1_B; 72 bytes. */
static const struct {
	u8 offset;
	u32 msr;
	u64 value;
} layout[] = {
	{ 0, 0x570, 0x210c },		{ 8, 0x560, 0x123000 },
	{ 16, 0x561, 0x45600000ffULL }, { 24, 0x571, 0x12300000020ULL },
	{ 32, 0x572, 0x7000 },		{ 40, 0x580, 0x400000 },
	{ 48, 0x581, 0x400fff },	{ 56, 0x582, 0x500000 },
	{ 64, 0x583, 0x500fff },
};

static void put(u8 *area, unsigned int offset, u64 value)
{
	unsigned int i;

	for (i = 0; i < 8; i++)
		area[offset + i] = (u8)(value >> 8 * i);
}

static u64 get(const u8 *area, unsigned int offset)
{
	u64 value = 0;
	unsigned int i;

	for (i = 0; i < 8; i++)
		value |= (u64)area[offset + i] << 8 * i;
	return value;
}

static void fill(u8 *area)
{
	size_t i;

	memset(area, 0, VMPT_XSAVE_SIZE);
	for (i = 0; i < VMPT_ARRAY_SIZE(layout); i++)
		put(area, layout[i].offset, layout[i].value);
}

START_TEST(put_get)
{
	struct vmpt_pt_regs regs, back;
	u8 area[VMPT_XSAVE_SIZE];
	size_t i;

	memset(&regs, 0, sizeof(regs));
	for (i = 0; i < VMPT_ARRAY_SIZE(layout); i++)
		*vmpt_pt_reg(&regs, layout[i].msr) = layout[i].value;
	regs.addr[4] = 0x1234; /* ADDR2_A is not in it */
	memset(area, 0xff, sizeof(area));
	vmpt_xsave_put(&regs, area);
	for (i = 0; i < VMPT_ARRAY_SIZE(layout); i++)
		ck_assert_uint_eq(get(area, layout[i].offset), layout[i].value);
	for (i = 72; i < VMPT_XSAVE_SIZE; i++)
		ck_assert_uint_eq(area[i], 0);
	memset(&back, 0xee, sizeof(back));
	vmpt_xsave_get(&back, area);
	for (i = 0; i < VMPT_ARRAY_SIZE(layout); i++)
		ck_assert_uint_eq(*vmpt_pt_reg(&back, layout[i].msr), layout[i].value);
	ck_assert_uint_eq(back.addr[4], 0xeeeeeeeeeeeeeeeeULL);
}
END_TEST

/* 33.2.8.1: XSAVES clears TraceEn, after it is in the area. */
START_TEST(xsaves)
{
	u8 area[VMPT_XSAVE_SIZE];

	bed_start(&bed);
	bed_wrmsr(&bed, 0x572, 0x7000);
	bed_trace(&bed, BED_CTL);
	ck_assert_int_eq(vmpt_vcpu_xsaves(&bed.v, area), 0);
	ck_assert_uint_eq(get(area, 0), BED_CTL);
	ck_assert_uint_eq(get(area, 8), BED_TABLE);
	ck_assert_uint_eq(get(area, 16), 0x7f);
	ck_assert_uint_eq(get(area, 24), 4);
	ck_assert_uint_eq(get(area, 32), 0x7000);
	ck_assert_uint_eq(bed_rdmsr(&bed, 0x570), BED_CTL & ~1ULL);
	ck_assert_uint_eq(bed_rdmsr(&bed, 0x571), 0);
	/* and back: tracing continues where it was */
	bed_wrmsr(&bed, 0x560, 0x5000);
	ck_assert_int_eq(vmpt_vcpu_xrstors(&bed.v, area), 0);
	ck_assert_uint_eq(bed_rdmsr(&bed, 0x570), BED_CTL);
	ck_assert_uint_eq(bed_rdmsr(&bed, 0x560), BED_TABLE);
	ck_assert_uint_eq(bed_rdmsr(&bed, 0x571), 4);
}
END_TEST

START_TEST(xrstors)
{
	u8 area[VMPT_XSAVE_SIZE];
	size_t i;

	bed_start(&bed);
	bed_wrmsr(&bed, 0x584, 0x1234);
	fill(area);
	memset(area + 72, 0xa5, 56); /* reserved: no MSR there */
	ck_assert_int_eq(vmpt_vcpu_xrstors(&bed.v, area), 0);
	for (i = 0; i < VMPT_ARRAY_SIZE(layout); i++)
		ck_assert_uint_eq(bed_rdmsr(&bed, layout[i].msr), layout[i].value);
	ck_assert_uint_eq(bed_rdmsr(&bed, 0x584), 0x1234);
	/* NULL: the initial state of the component */
	ck_assert_int_eq(vmpt_vcpu_xrstors(&bed.v, NULL), 0);
	for (i = 0; i < VMPT_ARRAY_SIZE(layout); i++)
		ck_assert_uint_eq(bed_rdmsr(&bed, layout[i].msr),
				  layout[i].msr == 0x561 ? 0x7f : 0);
	ck_assert_uint_eq(bed_rdmsr(&bed, 0x584), 0x1234);
}
END_TEST

/* One wrong value, the other eight valid: #GP, and nothing is changed. */
static const struct {
	const char *rule;
	u8 offset;
	u64 value;
	u8 why;
} hostile[] = {
	{ "CTL[18]", 0, 1 << 18, VMPT_GP_RESERVED },
	{ "FabricEn", 0, 1 << 6, VMPT_GP_RESERVED },
	{ "ADDR0_CFG 3", 0, 3ULL << 32, VMPT_GP_ENCODING },
	{ "BASE above MAXPHYADDR", 8, 1ULL << 46, VMPT_GP_RESERVED },
	{ "BASE[6]", 8, 0x40, VMPT_GP_RESERVED },
	{ "STATUS[3]", 24, 8, VMPT_GP_RESERVED },
	{ "STATUS[63]", 24, 1ULL << 63, VMPT_GP_RESERVED },
	{ "MATCH[4:0]", 32, 0x1f, VMPT_GP_RESERVED },
	{ "ADDR0_A", 40, 1ULL << 47, VMPT_GP_NOT_CANONICAL },
	{ "ADDR1_B", 64, 1ULL << 63, VMPT_GP_NOT_CANONICAL },
};

START_TEST(xrstors_hostile)
{
	u8 area[VMPT_XSAVE_SIZE];
	struct vmpt_vcpu before;

	bed_start(&bed);
	bed_wrmsr(&bed, 0x571, VMPT_STATUS_PEND_PMI);
	fill(area);
	put(area, hostile[_i].offset, hostile[_i].value);
	before = bed.v;
	ck_assert_msg(vmpt_vcpu_xrstors(&bed.v, area) == VMPT_GP, "%s", hostile[_i].rule);
	ck_assert_msg(bed.v.gp_why == hostile[_i].why, "%s: %s", hostile[_i].rule,
		      vmpt_gp_reason(bed.v.gp_why));
	before.gp_why = bed.v.gp_why;
	ck_assert_mem_eq(&before, &bed.v, sizeof(before));
}
END_TEST

/* 33.2.8.1: XRSTORS is a write of the MSRs: TraceEn must be 0, whatever is written. */
START_TEST(xrstors_tracing)
{
	u8 area[VMPT_XSAVE_SIZE];
	struct vmpt_vcpu before;

	bed_start(&bed);
	bed_trace(&bed, BED_CTL);
	vmpt_xsave_put(&bed.v.regs, area);
	before = bed.v;
	before.gp_why = VMPT_GP_TRACING;
	ck_assert_int_eq(vmpt_vcpu_xrstors(&bed.v, area), VMPT_GP);
	ck_assert_mem_eq(&before, &bed.v, sizeof(before));
	ck_assert_int_eq(vmpt_vcpu_xrstors(&bed.v, NULL), VMPT_GP);
	ck_assert_mem_eq(&before, &bed.v, sizeof(before));
}
END_TEST

/* 33.2.9.4: it writes CTL, and that is #GP in VMX operation. */
START_TEST(xrstors_vmx)
{
	u8 area[VMPT_XSAVE_SIZE];

	bed_start(&bed);
	vmpt_vcpu_vmxon(&bed.v);
	ck_assert_int_eq(vmpt_vcpu_xsaves(&bed.v, area), 0);
	ck_assert_int_eq(vmpt_vcpu_xrstors(&bed.v, area), VMPT_GP);
	ck_assert_uint_eq(bed.v.gp_why, VMPT_GP_VMX);
}
END_TEST

/* D26: hidden by default; then neither instruction reaches the MSRs. */
START_TEST(not_offered)
{
	u8 area[VMPT_XSAVE_SIZE], untouched[VMPT_XSAVE_SIZE];
	struct vmpt_vcpu before;

	bed.config.xsave = false;
	bed_start(&bed);
	fill(area);
	memcpy(untouched, area, sizeof(area));
	before = bed.v;
	before.gp_why = VMPT_GP_ABSENT;
	ck_assert_int_eq(vmpt_vcpu_xrstors(&bed.v, area), VMPT_GP);
	ck_assert_uint_eq(bed.v.gp_why, VMPT_GP_ABSENT);
	bed.v.gp_why = VMPT_GP_VMX; /* of an older #GP */
	ck_assert_int_eq(vmpt_vcpu_xsaves(&bed.v, area), VMPT_GP);
	ck_assert_mem_eq(area, untouched, sizeof(area));
	ck_assert_mem_eq(&before, &bed.v, sizeof(before));
	/* CPUID.0DH.1:ECX[8] says the same; a VMM that shows it by itself is corrected */
	{
		struct vmpt_cpuid_regs regs = { .ecx = 0x100 };

		vmpt_vcpu_cpuid(&bed.v, 0xd, 1, &regs);
		ck_assert_uint_eq(regs.ecx & 0x100, 0);
	}
}
END_TEST

START_TEST(while_entered)
{
	u8 area[VMPT_XSAVE_SIZE];

	bed_start(&bed);
	fill(area);
	bed.v.entered = true;
	ck_assert_int_eq(vmpt_vcpu_xsaves(&bed.v, area), -VMPT_E_STATE);
	ck_assert_int_eq(vmpt_vcpu_xrstors(&bed.v, area), -VMPT_E_STATE);
}
END_TEST

/* MSRs that the guest lacks: stored with their reset values, and only those can be restored. */
START_TEST(absent)
{
	u8 area[VMPT_XSAVE_SIZE];

	bed_hide(&bed, VMPT_CAP_CR3_FILTER);
	vmpt_pt_cap_set(&bed.shown.cpuid, VMPT_CAP_RANGES, 1);
	bed_start(&bed);
	bed_trace(&bed, BED_CTL);
	ck_assert_int_eq(vmpt_vcpu_xsaves(&bed.v, area), 0);
	ck_assert_uint_eq(get(area, 32) | get(area, 56), 0);
	ck_assert_int_eq(vmpt_vcpu_xrstors(&bed.v, area), 0);
	ck_assert_uint_eq(bed_rdmsr(&bed, 0x570), BED_CTL);
	ck_assert_int_eq(vmpt_vcpu_xsaves(&bed.v, area), 0);
	put(area, 32, 0x1000);
	ck_assert_int_eq(vmpt_vcpu_xrstors(&bed.v, area), VMPT_GP);
	ck_assert_uint_eq(bed.v.gp_why, VMPT_GP_ABSENT);
	put(area, 32, 0);
	put(area, 56, 0x1000);
	ck_assert_int_eq(vmpt_vcpu_xrstors(&bed.v, area), VMPT_GP);
	/* no output to memory at all: OUTPUT_MASK_PTRS does not exist, and 7FH or 0 for it */
	bed.v.rules.memory_output = 0;
	put(area, 56, 0);
	put(area, 0, 0);
	put(area, 8, 0);
	ck_assert_int_eq(vmpt_vcpu_xrstors(&bed.v, area), 0);
	ck_assert_int_eq(vmpt_vcpu_xrstors(&bed.v, NULL), 0);
	put(area, 16, 0xff);
	ck_assert_int_eq(vmpt_vcpu_xrstors(&bed.v, area), VMPT_GP);
}
END_TEST

/* 33.2.7.2: a PMI that came after XSAVES is pended with XRSTORS. */
START_TEST(preserved_pmi)
{
	u8 area[VMPT_XSAVE_SIZE];

	bed_start(&bed);
	bed_trace(&bed, BED_CTL | VMPT_CTL_INJECT);
	ck_assert_int_eq(vmpt_vcpu_xsaves(&bed.v, area), 0);
	put(area, 24, VMPT_STATUS_PEND_PMI);
	ck_assert_int_eq(vmpt_vcpu_xrstors(&bed.v, area), 0);
	ck_assert_uint_eq(bed.guest.pmis, 1);
	ck_assert(bed.v.held_pend_pmi);
	ck_assert(bed.v.gp_why == VMPT_GP_NONE);
	ck_assert(bed.v.regs.status & VMPT_STATUS_PEND_PMI);
	/* its handler clears it: XRSTORS of a state without it holds nothing */
	ck_assert_int_eq(vmpt_vcpu_xsaves(&bed.v, area), 0);
	put(area, 24, 0);
	ck_assert_int_eq(vmpt_vcpu_xrstors(&bed.v, area), 0);
	ck_assert(!bed.v.held_pend_pmi);
	ck_assert_uint_eq(bed.guest.pmis, 1);
	/* neither does one that does not trace */
	bed.v.held_pend_pmi = true;
	bed_wrmsr(&bed, 0x570, 0);
	ck_assert_int_eq(vmpt_vcpu_xrstors(&bed.v, NULL), 0);
	ck_assert(!bed.v.held_pend_pmi);
}
END_TEST

START_TEST(shadow)
{
	u8 area[VMPT_XSAVE_SIZE];

	bed_shadow(&bed);
	bed_start(&bed);
	bed_trace(&bed, BED_CTL);
	ck_assert_int_eq(vmpt_vcpu_xsaves(&bed.v, area), 0);
	ck_assert(bed.v.shadow.stale);
	ck_assert_int_eq(vmpt_vcpu_xrstors(&bed.v, area), 0);
	ck_assert(!bed.v.shadow.stale);
	ck_assert_int_eq(vmpt_vcpu_xsaves(&bed.v, area), 0);
	ck_assert_int_eq(vmpt_vcpu_xrstors(&bed.v, NULL), 0);
	ck_assert(bed.v.shadow.stale);
}
END_TEST

/* Any 128 bytes: all or nothing, and what is accepted is legal. */
START_TEST(random_areas)
{
	struct test_rng rng = { 8 };
	u8 area[VMPT_XSAVE_SIZE], again[VMPT_XSAVE_SIZE];
	unsigned int round, taken = 0;

	bed_start(&bed);
	for (round = 0; round < 20000; round++) {
		struct vmpt_pt_regs before = bed.v.regs;
		unsigned int n = (unsigned int)(test_random(&rng) % 3);

		fill(area);
		while (n--)
			area[test_random(&rng) % 72] ^= (u8)(1 << test_random(&rng) % 8);
		if (vmpt_vcpu_xrstors(&bed.v, area)) {
			if (memcmp(&before, &bed.v.regs, sizeof(before)))
				ck_abort_msg("round %u: #GP changed something", round);
			continue;
		}
		taken++;
		if (vmpt_vcpu_xsaves(&bed.v, again))
			ck_abort_msg("round %u: XSAVES", round);
		/* LowerMask reads 1, read-only bits of STATUS are the processor's */
		area[16] |= 0x7f;
		area[24] = (u8)((area[24] & ~7) | (again[24] & 7));
		if (memcmp(area, again, 72))
			ck_abort_msg("round %u: the state differs", round);
	}
	ck_assert_uint_gt(taken, 5000);
	ck_assert_uint_lt(taken, 19000);
}
END_TEST

TEST_SUITE()
{
	Suite *suite = suite_create("xsave");
	TCase *tcase = tcase_create("xsave");

	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_add_test(tcase, put_get);
	tcase_add_test(tcase, xsaves);
	tcase_add_test(tcase, xrstors);
	tcase_add_loop_test(tcase, xrstors_hostile, 0, VMPT_ARRAY_SIZE(hostile));
	tcase_add_test(tcase, xrstors_tracing);
	tcase_add_test(tcase, xrstors_vmx);
	tcase_add_test(tcase, not_offered);
	tcase_add_test(tcase, while_entered);
	tcase_add_test(tcase, absent);
	tcase_add_test(tcase, preserved_pmi);
	tcase_add_test(tcase, shadow);
	tcase_add_test(tcase, random_areas);
	suite_add_tcase(suite, tcase);
	return suite;
}
