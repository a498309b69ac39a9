// SPDX-License-Identifier: GPL-2.0-only
/*
 * Compare pt_core.c with the sources that it is made from: the same programs of MSR accesses,
 * leaves of CPUID and PIPs must give the same results. The script's changes to names and constants
 * must not change a rule. VMPT_SOAK=seconds: duration.
 */
#include <kunit/test.h>
#include <stdio.h>
#include <time.h>

#include "pt_core.h"

#define VMPT_NO_TYPES
#include "arch/pt-regs.h"
#include "util/hash.h"
#include "vmm-lib/caps-leaf.h"
#include "vmm-lib/pip-write.h"

#define STEPS	48
#define MEMORY	(1 << 16)
#define SAME(a) ((u64)(theirs.a) == (u64)(ours.a))

/* What the programs reached: they test little if all is #GP. */
static u64 legal, faults, pips, stops, errors, ints, leaves;

/* splitmix64 */
static u64 seed;

static u64 next(void)
{
	return vmpt_mix64(seed += 0x9e3779b97f4a7c15ull);
}

/* Values that are all bits, few bits, one bit, none. */
static u64 value(void)
{
	u64 v = next();

	switch (next() & 3) {
	case 0:
		return v;
	case 1:
		return v & next() & next();
	case 2:
		return 1ull << (v & 63);
	default:
		return v & 0x3109;
	}
}

/* The kernel's structs lack some fields. */
static void make_cpuid(struct vmpt_pt_cpuid *theirs, struct pt_core_cpuid *ours)
{
	u32 *word = (u32 *)theirs->leaf14;
	int i;

	/* One call per statement: the order within an expression is unspecified. */
	memset(theirs, 0, sizeof(*theirs));
	theirs->present = (next() & 15) != 0;
	theirs->maxphyaddr = (u8)(30 + next() % 30);
	theirs->linear_bits = next() & 1 ? 48 : 57;
	for (i = 0; i < 6; i++)
		word[i] = (u32)value();
	theirs->leaf14[0].eax &= 3;
	theirs->leaf14[0].ecx |= 5;
	theirs->leaf14[0].edx &= 1;
	theirs->leaf14[1].ebx |= (u32)next();
	if (next() & 3) {
		theirs->leaf14[0].eax = 1;
		theirs->leaf14[0].ebx |= 0x1ff;
		theirs->leaf14[0].ecx |= 2;
		theirs->leaf14[1].eax |= 0x00010000;
		theirs->leaf14[1].ebx |= 0x00010001;
	}
	if (next() & 1) {
		theirs->leaf14[0].ebx &= 0x1ff;
		theirs->leaf14[0].ecx &= 0x8000000f;
		theirs->leaf14[0].edx = 0;
		theirs->leaf14[1].eax &= 0xffff0007;
	}
	ours->present = theirs->present;
	ours->maxphyaddr = theirs->maxphyaddr;
	ours->linear_bits = theirs->linear_bits;
	_Static_assert(sizeof(ours->leaf14) == sizeof(theirs->leaf14), "");
	memcpy(ours->leaf14, theirs->leaf14, sizeof(ours->leaf14));
}

static u32 any_msr(void)
{
	static const u32 msrs[] = { 0x560, 0x561, 0x570, 0x570, 0x571, 0x572 };
	u64 n = next();

	if (n % 16 == 0)
		return (u32)(0x550 + (n >> 8) % 0x50);
	return n % 3 ? msrs[(n >> 8) % ARRAY_SIZE(msrs)] : 0x580 + (u32)(n >> 8 & 7);
}

static bool same_regs(const struct vmpt_pt_regs *theirs, const struct pt_core_regs *ours)
{
	_Static_assert(sizeof(*theirs) == sizeof(*ours), "");
	return !memcmp(theirs, ours, sizeof(*ours));
}

/* Both must return the same: 0, #GP with its reason, or an error. */
static void one_access(struct kunit *test, const struct vmpt_pt_rules *rules,
		       const struct pt_core_rules *core, struct vmpt_pt_regs *theirs,
		       struct pt_core_regs *ours)
{
	enum vmpt_gp_reason why = VMPT_GP_NONE;
	enum pt_core_gp_reason core_why = PT_CORE_GP_NONE;
	u32 msr = any_msr();
	u64 v = value(), a = 0;
	u64 kind = next() % 8;
	u64 b = 0;
	int r, s;

	if (kind < 2) {
		r = vmpt_pt_rdmsr(rules, theirs, msr, &a, &why);
		s = pt_core_rdmsr(core, ours, msr, &b, &core_why);
	} else if (kind < 6) {
		r = vmpt_pt_wrmsr(rules, theirs, msr, v, &why);
		s = pt_core_wrmsr(core, ours, msr, v, &core_why);
	} else if (kind == 6) {
		r = vmpt_pt_restore_msr(rules, theirs, msr, v, &why);
		s = pt_core_restore_msr(core, ours, msr, v, &core_why);
	} else {
		vmpt_pt_clear_trace_en(theirs);
		pt_core_clear_trace_en(ours);
		r = 0;
		s = 0;
	}
	legal += !r;
	faults += r == VMPT_GP;
	if (r == -VMPT_E_INVAL)
		r = -EINVAL;
	KUNIT_EXPECT_EQ_MSG(test, r, s, "MSR %x, %llx", msr, v);
	KUNIT_EXPECT_EQ_MSG(test, why, core_why, "MSR %x, %llx", msr, v);
	KUNIT_EXPECT_EQ_MSG(test, a, b, "MSR %x, %llx", msr, v);
	KUNIT_EXPECT_EQ_MSG(test, same_regs(theirs, ours), true, "MSR %x, %llx", msr, v);
}

/* Guest memory of both sides: what is read, and where bytes went. */
struct memory {
	u8 bytes[MEMORY];
};

static int read_entry(void *opaque, u64 pa, u64 *entry)
{
	struct memory *memory = opaque;

	if (pa > MEMORY - 8)
		return pa & 0x10000 ? -EAGAIN : 2;
	memcpy(entry, memory->bytes + pa, 8);
	return 0;
}

static int write_bytes(void *opaque, u64 pa, const u8 *bytes, size_t len)
{
	struct memory *memory = opaque;

	if (pa > MEMORY - len)
		return pa & 0x20000 ? -EAGAIN : (int)(pa >> 12 & 1) + 1;
	memcpy(memory->bytes + pa, bytes, len);
	return 0;
}

/* A table of small regions with any flags at the registers' position. */
static void make_table(struct memory *memory, struct vmpt_pt_regs *regs)
{
	u64 i;

	for (i = 0; i < 8; i++) {
		u64 entry = next() % 16 ? next() & 0xf000 : value();

		if (next() % 2)
			entry |= 1ull << 2 * (next() % 3); /* END, INT, STOP */
		memcpy(memory->bytes + 0x1000 + 8 * i, &entry, 8);
	}
	regs->ctl |= VMPT_CTL_TRACE_EN | VMPT_CTL_OS | VMPT_CTL_USER;
	regs->status &= VMPT_STATUS_BYTES | (next() % 8 ? 0 : ~0ull);
	if (next() % 4) {
		regs->ctl = (regs->ctl & ~VMPT_CTL_FABRIC_EN) | VMPT_CTL_TOPA;
		regs->output_base = 0x1000;
		i = next() % 4 ? 4090 + next() % 6 : next() % 4096;
		regs->output_mask_ptrs = i << 32 | (next() & 0x380) | 0x7f;
	}
}

static void one_pip(struct kunit *test, const struct vmpt_pt_rules *rules,
		    const struct pt_core_rules *core, struct vmpt_pt_regs *theirs,
		    struct pt_core_regs *ours)
{
	static struct memory memory, core_memory;
	const struct vmpt_output_memory callbacks = { read_entry, write_bytes, &memory };
	const struct pt_core_output_memory core_callbacks = { read_entry, write_bytes,
							      &core_memory };
	u64 old_cr3 = value(), n = next();
	const struct vmpt_cr3_write write = {
		.old_cr3 = old_cr3,
		.new_cr3 = n * 0x100,
		.cause = n % 6,
		.cpl_before = n >> 8 & 3,
		.cpl_after = n >> 10 & 3,
		.pae_before = n >> 12 & 1,
		.pae_after = n >> 13 & 1,
	};
	struct pt_core_cr3_write core_write;
	struct pt_core_output core_out;
	struct vmpt_output out;
	int r, s;

	_Static_assert(sizeof(write) == sizeof(core_write), "");
	memcpy(&core_write, &write, sizeof(write));
	make_table(&memory, theirs);
	memcpy(&core_memory, &memory, sizeof(memory));
	memcpy(ours, theirs, sizeof(*ours));
	vmpt_output_init(&out, rules, theirs, &callbacks);
	pt_core_output_init(&core_out, core, ours, &core_callbacks);
	r = vmpt_pip_append(&out, &write, n >> 14 & 1);
	s = pt_core_pip_append(&core_out, &core_write, n >> 14 & 1);
	pips += r == 1;
	stops += out.events & VMPT_OUTPUT_STOP ? 1 : 0;
	errors += out.events & VMPT_OUTPUT_ERROR ? 1 : 0;
	ints += out.events & VMPT_OUTPUT_INT ? 1 : 0;
	KUNIT_EXPECT_EQ(test, r, s);
	KUNIT_EXPECT_EQ(test, same_regs(theirs, ours), true);
	KUNIT_EXPECT_EQ(test, memcmp(&memory, &core_memory, sizeof(memory)), 0);
	KUNIT_EXPECT_EQ(test, out.events, core_out.events);
	KUNIT_EXPECT_EQ(test, out.why, core_out.why);
	KUNIT_EXPECT_EQ(test, out.lost, core_out.lost);
}

/* Any leaf on a host, and what that host offers. */
static void one_leaf(struct kunit *test, const struct vmpt_pt_cpuid *host,
		     const struct pt_core_cpuid *core_host)
{
	struct vmpt_leaf_fault theirs = { 0 };
	struct pt_core_leaf_fault ours = { 0 };
	struct pt_core_cpuid core_guest, core_offer = { 0 };
	struct vmpt_pt_cpuid guest = { 0 }, offer = { 0 };
	u32 hide = next() % 2 ? 0 : (u32)value();
	unsigned int ranges = (unsigned int)(next() % 5);
	u32 bit, *word;

	make_cpuid(&guest, &core_guest);
	if (next() & 1) {
		/* What is offered, perhaps with one bit flipped. */
		vmpt_leaf_offer(host, 0, 4, &guest, &theirs);
		theirs = (struct vmpt_leaf_fault){ 0 };
		bit = next() & 1;
		bit <<= next() & 31;
		word = (u32 *)guest.leaf14 + next() % 8;
		*word ^= bit;
		memcpy(core_guest.leaf14, guest.leaf14, sizeof(guest.leaf14));
	}
	KUNIT_EXPECT_EQ(test, vmpt_leaf_check(host, &guest, &theirs),
			pt_core_leaf_check(core_host, &core_guest, &ours));
	leaves += !theirs.rule;
	KUNIT_EXPECT_EQ(test, SAME(rule) && SAME(field) && SAME(guest) && SAME(host), true);
	KUNIT_EXPECT_EQ(test, vmpt_leaf_offer(host, hide, ranges, &offer, &theirs),
			pt_core_leaf_offer(core_host, hide, ranges, &core_offer, &ours));
	KUNIT_EXPECT_EQ(test, memcmp(offer.leaf14, core_offer.leaf14, sizeof(offer.leaf14)), 0);
}

static void same_as_source(struct kunit *test)
{
	const char *soak = getenv("VMPT_SOAK");
	const time_t end = time(NULL) + (soak ? atoi(soak) : 0);
	struct vmpt_pt_cpuid cpuid = { 0 };
	struct pt_core_cpuid core_cpuid;
	struct vmpt_pt_rules rules;
	struct pt_core_rules core;
	struct vmpt_pt_regs theirs;
	struct pt_core_regs ours;
	u64 program;
	int step;

	for (program = 1; program <= 4000 || time(NULL) < end; program++) {
		seed = program << 32;
		make_cpuid(&cpuid, &core_cpuid);
		vmpt_pt_rules_init(&rules, &cpuid);
		pt_core_rules_init(&core, &core_cpuid);
		rules.no_ctl_writes = core.no_ctl_writes = next() % 16 == 0;
		vmpt_pt_reset_cold(&theirs);
		pt_core_reset_cold(&ours);
		for (step = 0; step < STEPS; step++)
			one_access(test, &rules, &core, &theirs, &ours);
		one_pip(test, &rules, &core, &theirs, &ours);
		one_leaf(test, &cpuid, &core_cpuid);
		if (test->failures) {
			printf("program %llu\n", program);
			return;
		}
	}
	program--;
	printf("%llu programs: %llu accesses, %llu #GP, %llu PIPs (%llu INT, %llu STOP, %llu errors), "
	       "%llu good leaves\n",
	       program, legal, faults, pips, ints, stops, errors, leaves);
	KUNIT_EXPECT_LE(test, program * STEPS / 8, legal);
	KUNIT_EXPECT_LE(test, program * STEPS / 8, faults);
	KUNIT_EXPECT_LE(test, program / 4, pips);
	KUNIT_EXPECT_LE(test, program / 100, ints);
	KUNIT_EXPECT_LE(test, program / 100, stops);
	KUNIT_EXPECT_LE(test, program / 100, errors);
	KUNIT_EXPECT_LE(test, program / 100, leaves);
}

static struct kunit_case cases[] = { KUNIT_CASE(same_as_source), {} };

static struct kunit_suite suite = {
	.name = "differential",
	.test_cases = cases,
};
kunit_test_suite(suite);
