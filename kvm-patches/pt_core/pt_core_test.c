// SPDX-License-Identifier: GPL-2.0-only
/*
 * KUnit tests of pt_core.c, the rules of Intel Processor Trace, row by row of the tables in the
 * Intel SDM Vol. 3, chapter 33. What is expected stands in those tables and is worked out by hand.
 *
 *	tools/testing/kunit/kunit.py run --kunitconfig=arch/x86/kvm
 */
#include <kunit/test.h>

#include <linux/array_size.h>
#include <linux/bits.h>
#include <linux/errno.h>
#include <linux/minmax.h>
#include <linux/string.h>

#include "pt_core.h"

/*
 * A processor with all of Tables 33-11 and 33-12 but FabricEn and LIP: 4 ranges, MTC periods
 * 0, 3, 6 and 9, cycle thresholds 0 to 11, PSB frequencies 0 to 5.
 */
static const struct pt_core_cpuid whole = {
	.present = 1,
	.maxphyaddr = 39,
	.linear_bits = 48,
	.leaf14 = { { .eax = 1, .ebx = 0x1ff, .ecx = 0x7 },
		    { .eax = 0x02490004, .ebx = 0x003f0fff } },
};

#define EBX(n)            \
	{                 \
		0, 1, (n) \
	}
#define ECX(n)            \
	{                 \
		0, 2, (n) \
	}

/* A bit of leaf 14H: subleaf, register, bit. */
struct cap_bit {
	u8 subleaf, reg, bit;
};

static struct pt_core_cpuid without(const struct cap_bit *cap)
{
	struct pt_core_cpuid cpuid = whole;
	struct pt_core_cpuid_regs *regs = &cpuid.leaf14[cap->subleaf];
	u32 *reg[] = { &regs->eax, &regs->ebx, &regs->ecx, &regs->edx };

	*reg[cap->reg] &= ~(1u << cap->bit);
	return cpuid;
}

/* WRMSR by a guest with @cpuid after RESET. */
static int wrmsr_reset(const struct pt_core_cpuid *cpuid, u32 msr, u64 value)
{
	struct pt_core_rules rules;
	struct pt_core_regs regs;

	pt_core_rules_init(&rules, cpuid);
	pt_core_reset_cold(&regs);
	return pt_core_wrmsr(&rules, &regs, msr, value, NULL);
}

static int wrmsr_ctl(const struct pt_core_cpuid *cpuid, u64 value)
{
	return wrmsr_reset(cpuid, MSR_IA32_RTIT_CTL, value);
}

/* ---- Table 33-6: IA32_RTIT_CTL ---- */

static void ctl_bits(struct kunit *test)
{
	/* "This bit is reserved if ..." */
	static const struct {
		u8 bit;
		struct cap_bit cap;
	} rows[] = {
		{ 1, EBX(1) }, { 4, EBX(5) },  { 5, EBX(4) },  { 7, EBX(0) },  { 8, ECX(0) },
		{ 9, EBX(3) }, { 12, EBX(4) }, { 31, EBX(7) }, { 55, EBX(8) }, { 56, EBX(6) },
	};
	static const u8 always[] = { 0, 2, 3, 10, 11, 13 };
	/* MTCFreq, CycThresh, PSBFreq and ADDRn_CFG have tests of their own. */
	u64 reserved = BIT_ULL(6) | BIT_ULL(18) | BIT_ULL(23) | GENMASK_ULL(30, 28) |
		       GENMASK_ULL(54, 48) | GENMASK_ULL(63, 57);
	struct pt_core_cpuid cpuid;
	int i;

	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		u64 ctl = BIT_ULL(rows[i].bit);

		cpuid = without(&rows[i].cap);
		KUNIT_EXPECT_EQ_MSG(test, wrmsr_ctl(&whole, ctl), 0, "bit %d", rows[i].bit);
		KUNIT_EXPECT_EQ_MSG(test, wrmsr_ctl(&cpuid, ctl), PT_CORE_GP, "bit %d",
				    rows[i].bit);
	}
	cpuid = whole;
	cpuid.leaf14[0].ebx = 0;
	for (i = 0; i < ARRAY_SIZE(always); i++)
		KUNIT_EXPECT_EQ_MSG(test, wrmsr_ctl(&cpuid, BIT_ULL(always[i])), 0, "bit %d",
				    always[i]);
	for (i = 0; i < 64; i++)
		if (reserved & BIT_ULL(i))
			KUNIT_EXPECT_EQ_MSG(test, wrmsr_ctl(&whole, BIT_ULL(i)), PT_CORE_GP,
					    "bit %d", i);
	/* FabricEn of a processor that has it */
	cpuid = whole;
	cpuid.leaf14[0].ecx |= BIT(3);
	KUNIT_EXPECT_EQ(test, wrmsr_ctl(&cpuid, BIT_ULL(6)), 0);
}

/* MTCFreq 17:14, CycThresh 22:19, PSBFreq 27:24, with MTCEn, CYCEn and TraceEn. */
static void ctl_encodings(struct kunit *test)
{
	static const struct {
		u8 shift;
		u64 enable;
		u16 legal;
		struct cap_bit cap;
	} rows[] = {
		{ 14, BIT_ULL(9), 0x0249, EBX(3) },
		{ 19, BIT_ULL(1), 0x0fff, EBX(1) },
		{ 24, BIT_ULL(0), 0x003f, EBX(1) },
	};
	int i;
	u64 n;

	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		struct pt_core_cpuid lacks = without(&rows[i].cap);

		for (n = 0; n < 16; n++) {
			u64 ctl = n << rows[i].shift;
			int gp = rows[i].legal >> n & 1 ? 0 : PT_CORE_GP;

			KUNIT_EXPECT_EQ_MSG(test, wrmsr_ctl(&whole, ctl), gp, "%llx", ctl);
			ctl |= rows[i].enable;
			KUNIT_EXPECT_EQ_MSG(test, wrmsr_ctl(&whole, ctl), gp, "%llx", ctl);
			ctl = n << rows[i].shift;
			KUNIT_EXPECT_EQ_MSG(test, wrmsr_ctl(&lacks, ctl), n ? PT_CORE_GP : 0,
					    "%llx", ctl);
		}
	}
}

/*
 * Encoding 0 where the processor does not list it: all three fields are 0 after RESET, so that
 * it counts only where the field is in use.
 */
static void ctl_encoding_0(struct kunit *test)
{
	struct pt_core_cpuid cpuid = whole;

	cpuid.leaf14[1].eax &= ~BIT(16);
	cpuid.leaf14[1].ebx &= ~(BIT(0) | BIT(16));
	KUNIT_EXPECT_EQ(test, wrmsr_ctl(&cpuid, 0), 0);
	KUNIT_EXPECT_EQ(test, wrmsr_ctl(&cpuid, BIT_ULL(2)), 0);
	KUNIT_EXPECT_EQ(test, wrmsr_ctl(&cpuid, BIT_ULL(9)), PT_CORE_GP);
	KUNIT_EXPECT_EQ(test, wrmsr_ctl(&cpuid, BIT_ULL(1)), PT_CORE_GP);
	KUNIT_EXPECT_EQ(test, wrmsr_ctl(&cpuid, BIT_ULL(0)), PT_CORE_GP);
	KUNIT_EXPECT_EQ(test, wrmsr_ctl(&cpuid, BIT_ULL(0) | 1ull << 24), 0);
}

/* "0 ... 2; 3..15: Reserved (#GP)"; "reserved if RANGECNT < n + 1" */
static void ctl_addr_cfg(struct kunit *test)
{
	struct pt_core_cpuid cpuid = whole;
	u64 cfg;
	int ranges, n;

	for (ranges = 0; ranges <= 4; ranges++) {
		cpuid.leaf14[1].eax = 0x02490000 | ranges;
		for (n = 0; n < 4; n++)
			for (cfg = 0; cfg < 16; cfg++)
				KUNIT_EXPECT_EQ_MSG(test, wrmsr_ctl(&cpuid, cfg << (32 + 4 * n)),
						    !cfg || (n < ranges && cfg <= 2) ? 0
										     : PT_CORE_GP,
						    "RANGECNT %d ADDR%d_CFG %llu", ranges, n, cfg);
	}
}

/* Table 33-6, bit 8: the two notes; rows are ECX[0], ECX[2], ToPA, #GP of TraceEn = 1 */
static void ctl_output(struct kunit *test)
{
	static const struct {
		u8 topa, single, bit8;
		int gp;
	} rows[] = {
		{ 1, 1, 0, 0 },		 { 1, 1, 1, 0 },	  { 1, 0, 0, PT_CORE_GP },
		{ 1, 0, 1, 0 },		 { 0, 1, 0, 0 },	  { 0, 1, 1, PT_CORE_GP },
		{ 0, 0, 0, PT_CORE_GP }, { 0, 0, 1, PT_CORE_GP },
	};
	struct pt_core_cpuid cpuid = whole;
	int i;

	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		cpuid.leaf14[0].ecx = rows[i].topa | rows[i].single << 2;
		KUNIT_EXPECT_EQ_MSG(test, wrmsr_ctl(&cpuid, BIT_ULL(0) | (u64)rows[i].bit8 << 8),
				    rows[i].gp, "row %d", i);
	}
}

/* ---- Table 33-7: IA32_RTIT_STATUS ---- */

static void status_bits(struct kunit *test)
{
	static const struct cap_bit preserve = EBX(6), psb_cyc = EBX(1);
	struct pt_core_cpuid no_preserve = without(&preserve), no_psb_cyc = without(&psb_cyc);
	u64 reserved = BIT_ULL(3) | GENMASK_ULL(31, 8) | GENMASK_ULL(63, 49);
	int i;

	for (i = 0; i < 64; i++) {
		u64 bit = BIT_ULL(i);
		int gp = reserved & bit ? PT_CORE_GP : 0;

		KUNIT_EXPECT_EQ_MSG(test, wrmsr_reset(&whole, MSR_IA32_RTIT_STATUS, bit), gp,
				    "bit %d", i);
		gp = reserved & bit || i == 6 || i == 7 ? PT_CORE_GP : 0;
		KUNIT_EXPECT_EQ_MSG(test, wrmsr_reset(&no_preserve, MSR_IA32_RTIT_STATUS, bit), gp,
				    "bit %d", i);
		gp = reserved & bit || (i >= 32 && i <= 48) ? PT_CORE_GP : 0;
		KUNIT_EXPECT_EQ_MSG(test, wrmsr_reset(&no_psb_cyc, MSR_IA32_RTIT_STATUS, bit), gp,
				    "bit %d", i);
	}
}

/* FilterEn, ContextEn, TriggerEn: "Writes are ignored"; the others are stored. */
static void status_value(struct kunit *test)
{
	struct pt_core_rules rules;
	struct pt_core_regs regs;
	u64 value;

	pt_core_rules_init(&rules, &whole);
	pt_core_reset_cold(&regs);
	value = 0x1ffff000000f7;
	KUNIT_EXPECT_EQ(test, pt_core_wrmsr(&rules, &regs, MSR_IA32_RTIT_STATUS, value, NULL), 0);
	KUNIT_EXPECT_EQ(test, pt_core_rdmsr(&rules, &regs, MSR_IA32_RTIT_STATUS, &value, NULL), 0);
	KUNIT_EXPECT_EQ(test, value, 0x1ffff000000f0);
	/* 33.2.6.2: TriggerEn follows TraceEn, Error and Stopped. */
	regs.status = 0;
	KUNIT_EXPECT_EQ(test, pt_core_wrmsr(&rules, &regs, MSR_IA32_RTIT_CTL, 1, NULL), 0);
	KUNIT_EXPECT_EQ(test, pt_core_rdmsr(&rules, &regs, MSR_IA32_RTIT_STATUS, &value, NULL), 0);
	KUNIT_EXPECT_EQ(test, value, 0x4);
	pt_core_clear_trace_en(&regs);
	KUNIT_EXPECT_EQ(test, regs.ctl, 0);
	KUNIT_EXPECT_EQ(test, regs.status, 0);
}

/* ---- Tables 33-8 and 33-9, 33.2.8.5, 33.2.8.6: the other MSRs ---- */

static void output_msrs(struct kunit *test)
{
	static const u8 widths[] = { 32, 36, 39, 46, 52 };
	struct pt_core_cpuid cpuid = whole;
	struct pt_core_rules rules;
	struct pt_core_regs regs;
	u64 value;
	int i, bit;

	for (i = 0; i < ARRAY_SIZE(widths); i++) {
		cpuid.maxphyaddr = widths[i];
		for (bit = 0; bit < 64; bit++) {
			int gp = bit < 7 || bit >= widths[i] ? PT_CORE_GP : 0;

			KUNIT_EXPECT_EQ_MSG(test, wrmsr_reset(&cpuid, 0x560, BIT_ULL(bit)), gp,
					    "MAXPHYADDR %d, bit %d", widths[i], bit);
		}
	}
	/* LowerMask: "Forced to 1, writes are ignored" */
	pt_core_rules_init(&rules, &whole);
	pt_core_reset_cold(&regs);
	KUNIT_EXPECT_EQ(test, regs.output_mask_ptrs, 0x7f);
	value = 0x1234567890abcd00;
	KUNIT_EXPECT_EQ(test, pt_core_wrmsr(&rules, &regs, 0x561, value, NULL), 0);
	KUNIT_EXPECT_EQ(test, pt_core_rdmsr(&rules, &regs, 0x561, &value, NULL), 0);
	KUNIT_EXPECT_EQ(test, value, 0x1234567890abcd7f);
}

static void cr3_and_addr(struct kunit *test)
{
	struct pt_core_cpuid cpuid = whole;
	int bit;

	for (bit = 0; bit < 64; bit++)
		KUNIT_EXPECT_EQ_MSG(test,
				    wrmsr_reset(&whole, MSR_IA32_RTIT_CR3_MATCH, BIT_ULL(bit)),
				    bit < 5 ? PT_CORE_GP : 0, "bit %d", bit);
	for (cpuid.linear_bits = 48; cpuid.linear_bits <= 57; cpuid.linear_bits += 9) {
		u64 top = BIT_ULL(cpuid.linear_bits - 1);

		KUNIT_EXPECT_EQ(test, wrmsr_reset(&cpuid, MSR_IA32_RTIT_ADDR3_B, top - 1), 0);
		KUNIT_EXPECT_EQ(test, wrmsr_reset(&cpuid, MSR_IA32_RTIT_ADDR0_A, top), PT_CORE_GP);
		KUNIT_EXPECT_EQ(test, wrmsr_reset(&cpuid, MSR_IA32_RTIT_ADDR0_A, -top), 0);
		KUNIT_EXPECT_EQ(test, wrmsr_reset(&cpuid, MSR_IA32_RTIT_ADDR0_A, -top - 1),
				PT_CORE_GP);
	}
}

static const u32 all_msrs[] = {
	0x560, 0x561, 0x570, 0x571, 0x572, 0x580, 0x581, 0x582, 0x583, 0x584, 0x585, 0x586, 0x587,
};

/* Which MSRs are there; "RDMSR or WRMSR ... will cause #GP" where they are not. */
static void existence(struct kunit *test)
{
	struct pt_core_cpuid cpuid = whole;
	struct pt_core_rules rules;
	struct pt_core_regs regs;
	int i, ranges;
	u64 value;

	pt_core_reset_cold(&regs);
	for (ranges = -1; ranges <= 7; ranges++) {
		cpuid.present = ranges >= 0;
		cpuid.leaf14[1].eax = 0x02490000 | (ranges & 7);
		cpuid.leaf14[0].ebx = ranges & 1 ? 0x1ff : 0x1fe;
		cpuid.leaf14[0].ecx = ranges == 0 ? 0 : ranges == 1 ? BIT(2) : BIT(0);
		pt_core_rules_init(&rules, &cpuid);
		for (i = 0; i < ARRAY_SIZE(all_msrs); i++) {
			u32 msr = all_msrs[i];
			bool is = cpuid.present;

			if (msr >= 0x580)
				is = is && (int)(msr - 0x580) / 2 < min(ranges, 4);
			else if (msr == 0x572)
				is = is && ranges & 1;
			else if (msr < 0x570)
				is = is && ranges;
			KUNIT_EXPECT_EQ_MSG(test, pt_core_rdmsr(&rules, &regs, msr, &value, NULL),
					    is ? 0 : PT_CORE_GP, "%x, %d", msr, ranges);
			KUNIT_EXPECT_EQ_MSG(test, pt_core_wrmsr(&rules, &regs, msr, 0, NULL),
					    is ? 0 : PT_CORE_GP, "%x, %d", msr, ranges);
			KUNIT_EXPECT_EQ(test, pt_core_msr_exists(&rules, msr), is);
		}
	}
	pt_core_rules_init(&rules, &whole);
	for (i = 0x550; i < 0x5a0; i++) {
		bool is = i == 0x560 || i == 0x561 || (i >= 0x570 && i <= 0x572) ||
			  (i >= 0x580 && i <= 0x587);

		KUNIT_EXPECT_EQ_MSG(test, pt_core_is_msr(i), is, "%x", i);
		KUNIT_EXPECT_EQ_MSG(test, pt_core_rdmsr(&rules, &regs, i, &value, NULL),
				    is ? 0 : -EINVAL, "%x", i);
	}
}

/* 33.2.8.1, 33.2.8.3: writes while TraceEn is 1 */
static void tracing(struct kunit *test)
{
	const u64 ctl = BIT_ULL(0) | BIT_ULL(2) | BIT_ULL(13);
	struct pt_core_rules rules;
	struct pt_core_regs regs, before;
	int i;

	pt_core_rules_init(&rules, &whole);
	pt_core_reset_cold(&regs);
	KUNIT_EXPECT_EQ(test, pt_core_wrmsr(&rules, &regs, 0x570, ctl, NULL), 0);
	before = regs;
	for (i = 0; i < ARRAY_SIZE(all_msrs); i++)
		if (all_msrs[i] != 0x570)
			KUNIT_EXPECT_EQ_MSG(test,
					    pt_core_wrmsr(&rules, &regs, all_msrs[i], 0, NULL),
					    PT_CORE_GP, "%x", all_msrs[i]);
	KUNIT_EXPECT_EQ(test, pt_core_wrmsr(&rules, &regs, 0x570, ctl, NULL), 0);
	KUNIT_EXPECT_EQ(test, pt_core_wrmsr(&rules, &regs, 0x570, ctl | BIT_ULL(3), NULL),
			PT_CORE_GP);
	KUNIT_EXPECT_EQ(test, memcmp(&regs, &before, sizeof(regs)), 0);
	/* One write may clear TraceEn and change others, but not to what is reserved. */
	KUNIT_EXPECT_EQ(test, pt_core_wrmsr(&rules, &regs, 0x570, BIT_ULL(18), NULL), PT_CORE_GP);
	KUNIT_EXPECT_EQ(test, pt_core_wrmsr(&rules, &regs, 0x570, BIT_ULL(3), NULL), 0);
	KUNIT_EXPECT_EQ(test, regs.ctl, BIT_ULL(3));
	/* 33.2.9.4: VMX operation without IA32_VMX_MISC[14] */
	rules.no_ctl_writes = 1;
	KUNIT_EXPECT_EQ(test, pt_core_wrmsr(&rules, &regs, 0x570, 0, NULL), PT_CORE_GP);
	KUNIT_EXPECT_EQ(test, pt_core_wrmsr(&rules, &regs, 0x571, 0, NULL), 0);
	KUNIT_EXPECT_EQ(test, pt_core_restore_msr(&rules, &regs, 0x570, 1, NULL), PT_CORE_GP);
	KUNIT_EXPECT_EQ(test, pt_core_restore_msr(&rules, &regs, 0x570, 4, NULL), 0);
}

/* A restore comes in any order, and what is reserved stays so. */
static void restore(struct kunit *test)
{
	static const u64 values[] = {
		0x123456000, 0x10000007f, 0x2105, 0x30000000040, 0x1000, 1, 2, 3, 4, 5, 6, 7, 8,
	};
	const int n = ARRAY_SIZE(all_msrs);
	struct pt_core_rules rules;
	struct pt_core_regs regs;
	int first, i;
	u64 value;

	pt_core_rules_init(&rules, &whole);
	for (first = 0; first < n; first++) {
		pt_core_reset_cold(&regs);
		for (i = first; i < first + n; i++)
			KUNIT_EXPECT_EQ(test,
					pt_core_restore_msr(&rules, &regs, all_msrs[i % n],
							    values[i % n], NULL),
					0);
		for (i = 0; i < n; i++) {
			pt_core_rdmsr(&rules, &regs, all_msrs[i], &value, NULL);
			/* TriggerEn is 1 now. */
			KUNIT_EXPECT_EQ_MSG(test, value, values[i] | (all_msrs[i] == 0x571 ? 4 : 0),
					    "%x", all_msrs[i]);
		}
	}
	KUNIT_EXPECT_EQ(test, pt_core_restore_msr(&rules, &regs, 0x570, BIT_ULL(6), NULL),
			PT_CORE_GP);
	KUNIT_EXPECT_EQ(test, pt_core_restore_msr(&rules, &regs, 0x571, BIT_ULL(3), NULL),
			PT_CORE_GP);
	KUNIT_EXPECT_EQ(test, pt_core_restore_msr(&rules, &regs, 0x572, BIT_ULL(4), NULL),
			PT_CORE_GP);
	KUNIT_EXPECT_EQ(test, pt_core_restore_msr(&rules, &regs, 0x38f, 0, NULL), -EINVAL);
}

/* ---- Tables 33-11 and 33-12: what a guest may be shown ---- */

static enum pt_core_leaf_rule check(const struct pt_core_cpuid *host,
				    const struct pt_core_cpuid *guest)
{
	struct pt_core_leaf_fault fault;
	enum pt_core_leaf_rule rule = pt_core_leaf_check(host, guest, &fault);

	return !rule || fault.rule == rule ? rule : PT_CORE_LEAF_RULES;
}

/* Each flag: a guest may lack it (with what rests on it), and may not have what the host lacks. */
static void leaf_flags(struct kunit *test)
{
	/* The flag, and the masks of subleaf 1 that go with it. */
	static const struct {
		struct cap_bit cap;
		u32 eax, ebx;
	} rows[] = {
		{ EBX(0), 0, 0 },	   { EBX(1), 0, ~0u }, { EBX(2), 7, 0 }, { EBX(4), 0, 0 },
		{ EBX(3), 0xffff0000, 0 }, { EBX(5), 0, 0 },   { EBX(6), 0, 0 }, { EBX(7), 0, 0 },
		{ EBX(8), 0, 0 },	   { ECX(1), 0, 0 },   { ECX(2), 0, 0 },
	};
	int i;

	KUNIT_EXPECT_EQ(test, check(&whole, &whole), PT_CORE_LEAF_OK);
	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		struct pt_core_cpuid lacks = without(&rows[i].cap);

		lacks.leaf14[1].eax &= ~rows[i].eax;
		lacks.leaf14[1].ebx &= ~rows[i].ebx;
		KUNIT_EXPECT_EQ_MSG(test, check(&whole, &lacks), PT_CORE_LEAF_OK, "row %d", i);
		KUNIT_EXPECT_EQ_MSG(test, check(&lacks, &whole), PT_CORE_LEAF_FLAG, "row %d", i);
	}
}

/* Each reserved bit, though the host should have it one day. */
static void leaf_reserved(struct kunit *test)
{
	static const u32 known[2][4] = {
		{ ~0u, 0x1ff, 0x8000000f, 0 },
		{ 0xffff0007, ~0u, 0, 0 },
	};
	int subleaf, reg, bit;

	for (subleaf = 0; subleaf < 2; subleaf++)
		for (reg = 0; reg < 4; reg++)
			for (bit = 0; bit < 32; bit++) {
				struct pt_core_cpuid cpuid = whole;
				struct pt_core_cpuid_regs *r = &cpuid.leaf14[subleaf];
				u32 *regs[] = { &r->eax, &r->ebx, &r->ecx, &r->edx };

				if (known[subleaf][reg] >> bit & 1)
					continue;
				*regs[reg] |= 1u << bit;
				KUNIT_EXPECT_EQ_MSG(test, check(&cpuid, &cpuid),
						    PT_CORE_LEAF_RESERVED, "%d:%d[%d]", subleaf,
						    reg, bit);
			}
}

/* Rows: registers of subleaves 0 and 1 of host and guest, and the rule that is broken. */
static void leaf_rows(struct kunit *test)
{
	static const struct {
		u32 host[5], guest[5]; /* 0:EAX, 0:EBX, 0:ECX, 1:EAX, 1:EBX */
		enum pt_core_leaf_rule rule;
	} rows[] = {
		/* FabricEn passes EPT by. */
		{ { 0, 0, 0xf }, { 0, 0, 0xf }, PT_CORE_LEAF_NEVER },
		/* LIP is what the packets hold: neither hidden nor made up. */
		{ { 0, 0, 0x80000007 }, { 0, 0, 0x80000007 }, PT_CORE_LEAF_OK },
		{ { 0, 0, 0x80000007 }, { 0, 0, 7 }, PT_CORE_LEAF_NOT_EQUAL },
		{ { 0, 0, 7 }, { 0, 0, 0x80000007 }, PT_CORE_LEAF_NOT_EQUAL },
		/* A way to memory */
		{ { 0, 0, 7 }, { 0, 0, 0 }, PT_CORE_LEAF_OUTPUT },
		{ { 0, 0, 7 }, { 0, 0, 1 }, PT_CORE_LEAF_OK },
		{ { 0, 0, 7 }, { 0, 0, 4 }, PT_CORE_LEAF_OK },
		/* ECX[1] without ECX[0] */
		{ { 0, 0, 7 }, { 0, 0, 6 }, PT_CORE_LEAF_PARENT },
		/* RANGECNT */
		{ { 1, 4, 7, 2 }, { 1, 4, 7, 1 }, PT_CORE_LEAF_OK },
		{ { 1, 4, 7, 2 }, { 1, 4, 7, 3 }, PT_CORE_LEAF_COUNT },
		{ { 1, 4, 7, 7 }, { 1, 4, 7, 5 }, PT_CORE_LEAF_RANGES },
		{ { 1, 4, 7, 2 }, { 1, 4, 7, 0 }, PT_CORE_LEAF_NO_VALUE },
		{ { 1, 4, 7, 2 }, { 1, 0, 7, 2 }, PT_CORE_LEAF_PARENT },
		{ { 1, 4, 7, 2 }, { 0, 4, 7, 0 }, PT_CORE_LEAF_NO_SUBLEAF },
		{ { 1, 4, 7, 2 }, { 0, 4, 7, 2 }, PT_CORE_LEAF_BEYOND },
		/* Subleaves */
		{ { 5, 4, 7, 2 }, { 1, 4, 7, 2 }, PT_CORE_LEAF_OK },
		{ { 5, 4, 7, 2 }, { 2, 4, 7, 2 }, PT_CORE_LEAF_SUBLEAVES },
		{ { 0, 0, 7 }, { 1, 0, 7 }, PT_CORE_LEAF_COUNT },
		/* What the host has in a subleaf that it does not have */
		{ { 0, 4, 7, 2 }, { 0, 4, 7, 2 }, PT_CORE_LEAF_COUNT },
		/* Bitmaps */
		{ { 1, 8, 7, 0x90000 }, { 1, 8, 7, 0x80000 }, PT_CORE_LEAF_OK },
		{ { 1, 8, 7, 0x90000 }, { 1, 8, 7, 0xa0000 }, PT_CORE_LEAF_ENCODING },
		{ { 1, 8, 7, 0x90000 }, { 1, 8, 7, 0 }, PT_CORE_LEAF_NO_VALUE },
		{ { 1, 2, 7, 0, 0x3000f }, { 1, 2, 7, 0, 0x10001 }, PT_CORE_LEAF_OK },
		{ { 1, 2, 7, 0, 0x3000f }, { 1, 2, 7, 0, 0x10010 }, PT_CORE_LEAF_ENCODING },
		{ { 1, 2, 7, 0, 0x3000f }, { 1, 2, 7, 0, 0x40001 }, PT_CORE_LEAF_ENCODING },
		/* A guest without EBX[1] traces with PSBFreq 0, which this host refuses. */
		{ { 1, 2, 7, 0, 0x2000f }, { 1, 0, 7 }, PT_CORE_LEAF_PSB_0 },
		{ { 1, 2, 7, 0, 0x1000f }, { 1, 0, 7 }, PT_CORE_LEAF_OK },
	};
	struct pt_core_leaf_fault fault = { 0 };
	struct pt_core_cpuid cpuid = whole;
	int i;

	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		const u32 *h = rows[i].host, *g = rows[i].guest;
		const struct pt_core_cpuid host = {
			.present = 1,
			.leaf14 = { { .eax = h[0], .ebx = h[1], .ecx = h[2] },
				    { .eax = h[3], .ebx = h[4] } },
		};
		const struct pt_core_cpuid guest = {
			.present = 1,
			.leaf14 = { { .eax = g[0], .ebx = g[1], .ecx = g[2] },
				    { .eax = g[3], .ebx = g[4] } },
		};

		KUNIT_EXPECT_EQ_MSG(test, check(&host, &guest), rows[i].rule, "row %d", i);
	}
	/* What is told of it */
	cpuid.leaf14[1].eax |= 7;
	pt_core_leaf_check(&whole, &cpuid, &fault);
	KUNIT_EXPECT_EQ(test, fault.field, PT_CORE_CAP_RANGES);
	KUNIT_EXPECT_EQ(test, fault.guest, 7);
	KUNIT_EXPECT_EQ(test, fault.host, 4);
}

/* The offer of a processor that is all ones: what the tables have, and no more. */
static void leaf_offer(struct kunit *test)
{
	struct pt_core_leaf_fault fault;
	struct pt_core_cpuid host = whole, offer = { 0 };
	u32 hide;

	memset(host.leaf14, 0xff, sizeof(host.leaf14));
	KUNIT_EXPECT_EQ(test, pt_core_leaf_offer(&host, 0, 4, &offer, &fault), PT_CORE_LEAF_OK);
	KUNIT_EXPECT_EQ(test, offer.leaf14[0].eax, 1);
	KUNIT_EXPECT_EQ(test, offer.leaf14[0].ebx, 0x1ff);
	KUNIT_EXPECT_EQ(test, offer.leaf14[0].ecx, 0x80000007);
	KUNIT_EXPECT_EQ(test, offer.leaf14[0].edx, 0);
	KUNIT_EXPECT_EQ(test, offer.leaf14[1].eax, 0xffff0004);
	KUNIT_EXPECT_EQ(test, offer.leaf14[1].ebx, 0xffffffff);
	KUNIT_EXPECT_EQ(test, offer.leaf14[1].ecx | offer.leaf14[1].edx, 0);
	KUNIT_EXPECT_EQ(test, check(&host, &offer), PT_CORE_LEAF_OK);
	KUNIT_EXPECT_EQ(test, pt_core_leaf_offer(&host, 0, 2, &offer, &fault), PT_CORE_LEAF_OK);
	KUNIT_EXPECT_EQ(test, offer.leaf14[1].eax, 0xffff0002);
	KUNIT_EXPECT_EQ(test, check(&host, &offer), PT_CORE_LEAF_OK);
	/* Whatever is hidden (bit n: enum pt_core_cap n), the offer is one or there is none. */
	for (hide = 0; hide < BIT(PT_CORE_CAPS); hide += 0x35b) {
		/* No way to memory is left without both. */
		bool none = hide & BIT(PT_CORE_CAP_TOPA) && hide & BIT(PT_CORE_CAP_SINGLE_RANGE);
		enum pt_core_leaf_rule rule;

		rule = pt_core_leaf_offer(&host, hide & ~BIT(PT_CORE_CAP_LIP), 4, &offer, &fault);
		KUNIT_EXPECT_EQ_MSG(test, rule, none ? PT_CORE_LEAF_OUTPUT : PT_CORE_LEAF_OK, "%x",
				    hide);
		if (!rule)
			KUNIT_EXPECT_EQ_MSG(test, check(&host, &offer), PT_CORE_LEAF_OK, "%x",
					    hide);
	}
}

static struct kunit_case pt_core_cases[] = {
	KUNIT_CASE(ctl_bits),
	KUNIT_CASE(ctl_encodings),
	KUNIT_CASE(ctl_encoding_0),
	KUNIT_CASE(ctl_addr_cfg),
	KUNIT_CASE(ctl_output),
	KUNIT_CASE(status_bits),
	KUNIT_CASE(status_value),
	KUNIT_CASE(output_msrs),
	KUNIT_CASE(cr3_and_addr),
	KUNIT_CASE(existence),
	KUNIT_CASE(tracing),
	KUNIT_CASE(restore),
	KUNIT_CASE(leaf_flags),
	KUNIT_CASE(leaf_reserved),
	KUNIT_CASE(leaf_rows),
	KUNIT_CASE(leaf_offer),
	{},
};

static struct kunit_suite pt_core_suite = {
	.name = "kvm-pt-core",
	.test_cases = pt_core_cases,
};

kunit_test_suite(pt_core_suite);
