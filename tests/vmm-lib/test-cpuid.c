// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* vmm-lib/cpuid.c: each leaf that PT affects, and that others are not changed. */
#include "tests/support/support.h"
#include "tests/vmm-lib/guest.h"

/* A guest with everything in guest_full_caps(); only CPUID is called. */
static void vcpu_init(struct vmpt_vcpu *vcpu)
{
	memset(vcpu, 0, sizeof(*vcpu));
	guest_full_caps(&vcpu->guest);
	vcpu->guest.vmx = 0;
}

static struct vmpt_cpuid_regs ask(const struct vmpt_vcpu *vcpu, u32 leaf, u32 subleaf,
				  struct vmpt_cpuid_regs regs)
{
	vmpt_vcpu_cpuid(vcpu, leaf, subleaf, &regs);
	return regs;
}

static void expect(const struct vmpt_vcpu *vcpu, u32 leaf, u32 subleaf, struct vmpt_cpuid_regs in,
		   struct vmpt_cpuid_regs out)
{
	struct vmpt_cpuid_regs regs = ask(vcpu, leaf, subleaf, in);

	ck_assert_msg(!memcmp(&regs, &out, sizeof(out)),
		      "%#x.%u: %#x %#x %#x %#x instead of %#x %#x %#x %#x", leaf, subleaf, regs.eax,
		      regs.ebx, regs.ecx, regs.edx, out.eax, out.ebx, out.ecx, out.edx);
}

#define REGS(a, b, c, d) ((struct vmpt_cpuid_regs){ a, b, c, d })
#define ZEROS		 REGS(0, 0, 0, 0)
#define ONES		 REGS(~0u, ~0u, ~0u, ~0u)

START_TEST(with_pt)
{
	struct vmpt_vcpu vcpu;
	u32 subleaf;

	vcpu_init(&vcpu);
	expect(&vcpu, 7, 0, ZEROS, REGS(0, 1u << 25, 0, 0));
	expect(&vcpu, 7, 0, ONES, ONES);
	expect(&vcpu, 7, 1, ZEROS, ZEROS);
	expect(&vcpu, 7, 1, ONES, ONES);
	expect(&vcpu, 0x14, 0, ONES, REGS(1, 0x1ff, 0x80000007, 0));
	expect(&vcpu, 0x14, 1, ONES, REGS(0xffff0004, 0xffffffff, 0, 0));
	for (subleaf = 2; subleaf != ~0u; subleaf = subleaf << 1 | 1)
		expect(&vcpu, 0x14, subleaf, ONES, ZEROS);
	/* no subleaf 1 */
	vcpu.guest.cpuid.leaf14[0].eax = 0;
	expect(&vcpu, 0x14, 0, ONES, REGS(0, 0x1ff, 0x80000007, 0));
	expect(&vcpu, 0x14, 1, ONES, ZEROS);
	/* more subleaves than there are */
	vcpu.guest.cpuid.leaf14[0].eax = 9;
	expect(&vcpu, 0x14, 2, ONES, ZEROS);
}
END_TEST

/* As in system-wide use (33.5.2.1): the guest's data may be present but is not shown. */
START_TEST(without_pt)
{
	struct vmpt_vcpu vcpu;

	vcpu_init(&vcpu);
	vcpu.guest.cpuid.present = 0;
	vcpu.xsave = true;
	vcpu.tsc_multiplier = 1ULL << 47;
	expect(&vcpu, 7, 0, ONES, REGS(~0u, ~(1u << 25), ~0u, ~0u));
	expect(&vcpu, 0x14, 0, ONES, ZEROS);
	expect(&vcpu, 0x14, 1, ONES, ZEROS);
	expect(&vcpu, 0xd, 1, ONES, REGS(~0u, ~0u, ~0x100u, ~0u));
	expect(&vcpu, 0xd, 8, ONES, ZEROS);
	expect(&vcpu, 0x15, 0, ONES, ONES);
	expect(&vcpu, 0x15, 0, ZEROS, ZEROS);
}
END_TEST

/* XSAVE component 8: hidden unless the VMM emulates XSAVES and XRSTORS of it. */
START_TEST(xsave)
{
	struct vmpt_vcpu vcpu;

	vcpu_init(&vcpu);
	expect(&vcpu, 0xd, 1, ONES, REGS(~0u, ~0u, ~0x100u, ~0u));
	expect(&vcpu, 0xd, 1, ZEROS, ZEROS);
	expect(&vcpu, 0xd, 8, ONES, ZEROS);
	vcpu.xsave = true;
	expect(&vcpu, 0xd, 1, ONES, ONES);
	expect(&vcpu, 0xd, 1, ZEROS, REGS(0, 0, 0x100, 0));
	expect(&vcpu, 0xd, 8, ONES, REGS(128, 0, 1, 0));
	expect(&vcpu, 0xd, 0, ONES, ONES);
	expect(&vcpu, 0xd, 2, ONES, ONES);
	expect(&vcpu, 0xd, 9, ONES, ONES);
}
END_TEST

/* D24: a guest with PT has a TSC ratio, and it is that of its TSC. */
START_TEST(tsc)
{
	struct vmpt_vcpu vcpu;
	struct vmpt_cpuid_regs none = { 0, 0, 0, 0x77 };

	vcpu_init(&vcpu);
	/* 168/2 of a 24 MHz crystal. The VMM enumerates none, or only a part. */
	expect(&vcpu, 0x15, 0, none, REGS(2, 168, 24000000, 0x77));
	expect(&vcpu, 0x15, 0, REGS(2, 0, 5, 0), REGS(2, 168, 5, 0));
	expect(&vcpu, 0x15, 0, REGS(0, 3, 0, 0), REGS(2, 168, 24000000, 0));
	/* The VMM knows better. */
	expect(&vcpu, 0x15, 0, REGS(3, 250, 0, 0), REGS(3, 250, 0, 0));
	/* A multiplier of 1 is none. */
	vcpu.tsc_multiplier = 1ULL << 48;
	expect(&vcpu, 0x15, 0, REGS(3, 250, 0, 0), REGS(3, 250, 0, 0));
	expect(&vcpu, 0x15, 0, none, REGS(2, 168, 24000000, 0x77));
	/* Scaled: 84 × 3/4 = 63, whatever the VMM says. */
	vcpu.tsc_multiplier = 3ULL << 46;
	expect(&vcpu, 0x15, 0, REGS(2, 168, 24000000, 0), REGS(1, 63, 24000000, 0));
	expect(&vcpu, 0x15, 0, none, REGS(1, 63, 24000000, 0x77));
	/* A ratio out of range is not enumerated. */
	vcpu.tsc_multiplier = ~0ULL;
	vcpu.guest.cpuid.tsc_numerator = ~0u;
	vcpu.guest.cpuid.tsc_denominator = 1;
	expect(&vcpu, 0x15, 0, REGS(2, 168, 24000000, 0), REGS(0, 0, 24000000, 0));
	/* A host that enumerates none: the ratio is unknown. */
	vcpu.guest.cpuid.tsc_denominator = 0;
	expect(&vcpu, 0x15, 0, REGS(2, 168, 24000000, 0), REGS(2, 168, 24000000, 0));
	vcpu.guest.cpuid.tsc_denominator = 2;
	vcpu.guest.cpuid.tsc_numerator = 0;
	expect(&vcpu, 0x15, 0, none, none);
}
END_TEST

START_TEST(other_leaves)
{
	static const u32 others[] = { 0,    1,	  6,	      8,	  0xc,	     0xe,
				      0x13, 0x16, 0x80000000, 0x80000008, 0x40000000 };
	struct vmpt_vcpu vcpu;
	size_t i;

	vcpu_init(&vcpu);
	vcpu.tsc_multiplier = 1ULL << 47;
	for (i = 0; i < VMPT_ARRAY_SIZE(others); i++) {
		expect(&vcpu, others[i], 0, ONES, ONES);
		expect(&vcpu, others[i], 1, ZEROS, ZEROS);
	}
}
END_TEST

TEST_SUITE()
{
	Suite *suite = suite_create("cpuid");
	TCase *tcase = tcase_create("cpuid");

	tcase_add_test(tcase, with_pt);
	tcase_add_test(tcase, without_pt);
	tcase_add_test(tcase, xsave);
	tcase_add_test(tcase, tsc);
	tcase_add_test(tcase, other_leaves);
	suite_add_tcase(suite, tcase);
	return suite;
}
