// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Random programs of accesses to PT's MSRs: see programs.h. Values are near the manual's limits.
 * While a program traces, its output goes to memory: other output addresses are not tested here.
 */
#include "tests/arch/regs-oracle.h"

#include "programs.h"
#include "random.h"

#define BIT(n) (1ull << (n))

static struct random rng;

static u64 next(void)
{
	return random_next(&rng);
}

static u32 below(u32 n)
{
	return random_below(&rng, n);
}

static bool one_in(u32 n)
{
	return random_one_in(&rng, n);
}

/* ---- CPUID ---- */

static void take_from(u32 *word, u32 mask)
{
	u32 random = (u32)(next() >> 32);

	/* A few bits, or about half. */
	*word &= ~(mask & random & (one_in(2) ? ~0u : (u32)(next() >> 32)));
}

static void copy(struct vmpt_cpuid_regs *to, const struct kvm_cpuid_entry2 *from)
{
	*to = (struct vmpt_cpuid_regs){ from->eax, from->ebx, from->ecx, from->edx };
}

/* Details of a feature that is not offered are cleared, as on a processor. */
static void settle(struct kvm_cpuid_entry2 *leaf, struct kvm_cpuid_entry2 *sub)
{
	if (!(leaf->ebx & BIT(1)))
		sub->ebx = 0;
	if (!(leaf->ebx & BIT(2)))
		sub->eax &= ~7u;
	if (!(leaf->ebx & BIT(3)))
		sub->eax &= 0xffff;
	if (!(leaf->ecx & BIT(0)))
		leaf->ecx &= ~2u;
}

static void make_cpuid(struct program *p, struct scene *s)
{
	struct kvm_cpuid_entry2 *sizes = scene_leaf(s, 0x80000008, 0);
	struct kvm_cpuid_entry2 *leaf = scene_leaf(s, 0x14, 0), *sub = scene_leaf(s, 0x14, 1);
	u32 ranges = sub->eax & 7;

	if (one_in(12)) {
		scene_leaf(s, 7, 0)->ebx &= ~BIT(25);
	} else if (!one_in(4)) {
		take_from(&leaf->ebx, 0x1ff);
		/* At least one output scheme must be left. */
		if (one_in(3))
			leaf->ecx &= ~(one_in(2) ? 4u : 3u);
		take_from(&sub->eax, 0xffff0000);
		take_from(&sub->ebx, 0xffffffff);
		sub->eax = (sub->eax & ~7u) | below(ranges + 1);
		if (!one_in(8))
			settle(leaf, sub);
	}
	if (one_in(3))
		sizes->eax = (sizes->eax & ~0xffu) | (32 + below((sizes->eax & 0xff) - 31));
	p->cpuid = (struct vmpt_pt_cpuid){
		.present = scene_leaf(s, 7, 0)->ebx >> 25 & 1,
		.maxphyaddr = (u8)sizes->eax,
		.linear_bits = (u8)(sizes->eax >> 8),
	};
	copy(&p->cpuid.leaf14[0], leaf);
	copy(&p->cpuid.leaf14[1], sub);
}

/* ---- values ---- */

/* Any of the bits allowed in the guest's CTL, few others. */
static u64 ctl_value(const struct vmpt_pt_cpuid *c)
{
	static const u8 flags[] = { 1, 2, 3, 4, 5, 7, 8, 9, 10, 11, 12, 13, 31, 55, 56 };
	u64 value = 0;
	u32 i;

	for (i = 0; i < VMPT_ARRAY_SIZE(flags); i++) {
		u64 bit = one_in(3) ? BIT(flags[i]) : 0;

		if (oracle_ctl_ok(c, bit) || one_in(20))
			value |= bit;
	}
	if (value & VMPT_CTL_MTC_EN || one_in(8))
		value |= (u64)below(16) << 14;
	if (value & VMPT_CTL_CYC_EN || one_in(8))
		value |= (u64)below(16) << 19;
	if (one_in(3))
		value |= (u64)below(16) << 24;
	for (i = 0; i < 4; i++) {
		if (i < (c->leaf14[1].eax & 7) ? one_in(3) : one_in(30))
			value |= (u64)below(one_in(8) ? 16 : 3) << (32 + 4 * i);
	}
	if (one_in(12))
		value |= BIT(below(64));
	if (one_in(3))
		value |= VMPT_CTL_TRACE_EN;
	return value;
}

static u64 address_value(void)
{
	static const u64 values[] = {
		0,	 0x7fffffffffff,     0x800000000000, 0xffff800000000000,
		~0ull,	 0xffff7fffffffffff, GUEST_BLOB,     GUEST_BLOB + 0xfff,
		BIT(63), 0xff00000000000000, 0x1000,	     0xffffffff,
	};

	return values[below(VMPT_ARRAY_SIZE(values))];
}

static u64 value_of(const struct vmpt_pt_cpuid *c, u32 msr)
{
	switch (msr) {
	case VMPT_MSR_RTIT_OUTPUT_BASE:
		return one_in(2)   ? (next() >> below(64)) & ~0x7full
		       : one_in(3) ? BIT(below(64))
				   : BIT(c->maxphyaddr - 1 - below(6)) | (one_in(4) ? 0x40 : 0);
	case VMPT_MSR_RTIT_OUTPUT_MASK_PTRS:
		return next() >> below(64);
	case VMPT_MSR_RTIT_CTL:
		return ctl_value(c);
	case VMPT_MSR_RTIT_STATUS:
		return one_in(2) ? BIT(below(64)) : next() & 0x1ffff000000f7ull;
	case VMPT_MSR_RTIT_CR3_MATCH:
		return one_in(2) ? next() & ~0x1full : next();
	default:
		return address_value();
	}
}

/* ---- steps ---- */

static void step(struct program *p, struct oracle *o, enum guest_opcode code, u32 msr, u64 value)
{
	p->ops[p->n++] = (struct guest_op){ .code = code, .arg = msr, .value = value };
	if (code == OP_WRMSR)
		(void)oracle_write(o, msr, value);
}

/*
 * Before a trace begins: output as scene_topa() has it, without INT; STATUS is sometimes cleared.
 */
static void aim(struct program *p, struct oracle *o, u64 ctl)
{
	if (!oracle_exists(o->cpuid, VMPT_MSR_RTIT_OUTPUT_BASE))
		return;
	step(p, o, OP_WRMSR, VMPT_MSR_RTIT_OUTPUT_BASE,
	     ctl & VMPT_CTL_TOPA ? TOPA_TABLE : TOPA_PAGES);
	step(p, o, OP_WRMSR, VMPT_MSR_RTIT_OUTPUT_MASK_PTRS,
	     ctl & VMPT_CTL_TOPA ? 0x7f : PAGE_SIZE - 1);
	if (one_in(2))
		step(p, o, OP_WRMSR, VMPT_MSR_RTIT_STATUS, 0);
}

static void random_step(struct program *p, struct oracle *o)
{
	u32 msr = oracle_msrs[one_in(3) ? 2 : below(ORACLE_MSRS)];
	bool tracing = o->value[2] & VMPT_CTL_TRACE_EN;
	u64 value;

	if (one_in(3)) {
		step(p, o, OP_RDMSR, msr, 0);
		return;
	}
	value = value_of(&p->cpuid, msr);
	/* The trace ends, usually the way software does it. */
	if (tracing && msr == VMPT_MSR_RTIT_CTL && !one_in(4))
		value = o->value[2] & ~VMPT_CTL_TRACE_EN;
	if (!tracing && msr == VMPT_MSR_RTIT_CTL && value & VMPT_CTL_TRACE_EN) {
		struct oracle then = *o;

		if (oracle_write(&then, msr, value))
			aim(p, o, value);
	}
	step(p, o, OP_WRMSR, msr, value);
	if (o->value[2] & VMPT_CTL_TRACE_EN && one_in(2))
		step(p, o, OP_WORK, 1 + below(20), 0);
}

void program_make(struct program *p, u64 seed, struct scene *s)
{
	struct oracle o;

	random_seed(&rng, seed);
	p->seed = seed;
	p->n = 0;
	make_cpuid(p, s);
	oracle_init(&o, &p->cpuid);
	while (p->n < PROGRAM_STEPS)
		random_step(p, &o);
}
