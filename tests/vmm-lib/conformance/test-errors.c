// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * vmm-lib/conformance.h if the VMM's callbacks fail, return #GP for everything, or return random
 * results: the n-th call does so, for every n. The suite ends with the error, or finds something
 * wrong, and is never misled by what it reads.
 */
#include <stdlib.h>

#include "tests/support/support.h"
#include "tests/vmm-lib/vmm.h"

enum how {
	ERROR,	 /* the call fails */
	FAULT,	 /* a positive result: #GP, or missing guest memory */
	GARBAGE, /* the call works, but what it reads is wrong */
	HOWS
};

struct faulty {
	struct vmm vmm; /* first: passed to the VMM's callbacks */
	struct test_rng rng;
	u32 calls, bad; /* the call that goes wrong, from 1 on */
	u32 for_how_many;
	u8 how;
	unsigned int reports;
	unsigned int wrong[3]; /* verdicts */
};

static int faulty_answer(struct faulty *f, int ret)
{
	f->calls++;
	if (f->calls < f->bad || f->calls - f->bad >= f->for_how_many || f->how == GARBAGE)
		return ret;
	return f->how == ERROR ? -VMPT_E_IO : VMPT_GP;
}

static bool faulty_read(const struct faulty *f)
{
	return f->how == GARBAGE && f->calls >= f->bad && f->calls - f->bad < f->for_how_many;
}

#define EVENT(name)                                                             \
	static int f_##name(void *opaque)                                       \
	{                                                                       \
		return faulty_answer(opaque, vmm_conformance_ops.name(opaque)); \
	}
EVENT(power_on)
EVENT(warm_reset)
EVENT(init)
EVENT(smi)
EVENT(rsm)
EVENT(vmxon)
EVENT(vmxoff)
EVENT(migrate)

static int f_cpuid(void *opaque, u32 leaf, u32 subleaf, struct vmpt_cpuid_regs *regs)
{
	struct faulty *f = opaque;
	int ret = faulty_answer(f, vmm_conformance_ops.cpuid(opaque, leaf, subleaf, regs));

	if (faulty_read(f)) {
		regs->eax ^= (u32)test_random(&f->rng);
		regs->ebx ^= (u32)test_random(&f->rng);
		regs->ecx ^= (u32)test_random(&f->rng);
		regs->edx ^= (u32)test_random(&f->rng);
	}
	return ret;
}

static int f_rdmsr(void *opaque, u32 msr, u64 *value)
{
	struct faulty *f = opaque;
	int ret = faulty_answer(f, vmm_conformance_ops.rdmsr(opaque, msr, value));

	if (faulty_read(f))
		*value ^= 1ULL << (test_random(&f->rng) & 63);
	return ret;
}

static int f_wrmsr(void *opaque, u32 msr, u64 value)
{
	return faulty_answer(opaque, vmm_conformance_ops.wrmsr(opaque, msr, value));
}

static int f_set_msr(void *opaque, u32 msr, u64 value)
{
	return faulty_answer(opaque, vmm_conformance_ops.set_msr(opaque, msr, value));
}

static int f_mem_read(void *opaque, u64 gpa, void *buf, size_t len)
{
	struct faulty *f = opaque;
	int ret = faulty_answer(f, vmm_conformance_ops.mem_read(opaque, gpa, buf, len));
	u8 *bytes = buf;
	size_t i;

	for (i = 0; faulty_read(f) && i < len; i++)
		bytes[i] = (u8)test_random(&f->rng);
	return ret;
}

static int f_mem_write(void *opaque, u64 gpa, const void *buf, size_t len)
{
	return faulty_answer(opaque, vmm_conformance_ops.mem_write(opaque, gpa, buf, len));
}

static int f_run(void *opaque, u32 bytes)
{
	return faulty_answer(opaque, vmm_conformance_ops.run(opaque, bytes));
}

static int f_mov_cr3(void *opaque, u64 cr3)
{
	return faulty_answer(opaque, vmm_conformance_ops.mov_cr3(opaque, cr3));
}

static int f_pmis(void *opaque, u64 *count)
{
	struct faulty *f = opaque;
	int ret = faulty_answer(f, vmm_conformance_ops.pmis(opaque, count));

	if (faulty_read(f))
		*count += 1 + test_random(&f->rng);
	return ret;
}

static int f_xsaves(void *opaque, u8 area[VMPT_XSAVE_SIZE])
{
	struct faulty *f = opaque;
	int ret = faulty_answer(f, vmm_conformance_ops.xsaves(opaque, area));

	if (faulty_read(f))
		area[test_random(&f->rng) % 24] ^= 1;
	return ret;
}

static int f_xrstors(void *opaque, const u8 area[VMPT_XSAVE_SIZE])
{
	return faulty_answer(opaque, vmm_conformance_ops.xrstors(opaque, area));
}

static void report(void *opaque, const struct vmpt_conformance_result *result)
{
	struct faulty *f = opaque;

	f->reports++;
	f->wrong[result->verdict]++;
}

/* The suite with call @bad and the following @for_how_many - 1 going wrong. */
static int suite(struct faulty *f, u8 how, u32 bad, u32 for_how_many)
{
	struct vmpt_conformance_ops ops = vmm_conformance_ops;
	struct vmpt_caps host;
	int ret;

	ops.power_on = f_power_on;
	ops.warm_reset = f_warm_reset;
	ops.init = f_init;
	ops.smi = f_smi;
	ops.rsm = f_rsm;
	ops.vmxon = f_vmxon;
	ops.vmxoff = f_vmxoff;
	ops.migrate = f_migrate;
	ops.cpuid = f_cpuid;
	ops.rdmsr = f_rdmsr;
	ops.wrmsr = f_wrmsr;
	ops.set_msr = f_set_msr;
	ops.mem_read = f_mem_read;
	ops.mem_write = f_mem_write;
	ops.run = f_run;
	ops.mov_cr3 = f_mov_cr3;
	ops.pmis = f_pmis;
	ops.xsaves = f_xsaves;
	ops.xrstors = f_xrstors;
	memset(f, 0, sizeof(*f));
	f->rng.state = bad;
	f->how = how;
	f->bad = bad;
	f->for_how_many = for_how_many;
	guest_full_caps(&host);
	vmm_init(&f->vmm, &host, &vmpt_policy_all);
	ret = vmpt_conformance_run(&ops, f, report, NULL);
	vmm_free(&f->vmm);
	return ret;
}

/* The number of calls that a run makes if nothing goes wrong. */
static u32 all_calls(struct faulty *f)
{
	ck_assert_int_eq(suite(f, ERROR, ~0u, 1), 0);
	ck_assert_uint_eq(f->wrong[VMPT_FAILED], 0);
	ck_assert_uint_gt(f->calls, 100);
	return f->calls;
}

/* Calls that are tried: all of the first ones, then one of every few. */
static u32 next_call(u32 n, u32 few)
{
	return n < (u32)test_rounds(1000, 100) ? n + 1 : n + (u32)test_rounds((int)few, 31);
}

START_TEST(call_fails)
{
	struct faulty *f = malloc(sizeof(*f));
	u32 n, calls = all_calls(f);
	int ret;

	for (n = 1; n <= calls; n = next_call(n, 1)) {
		ret = suite(f, ERROR, n, 1);
		if (ret != -VMPT_E_IO || f->calls != n)
			ck_abort_msg("call %u of %u failed: the run returned %d after %u calls", n,
				     calls, ret, f->calls);
	}
	free(f);
}
END_TEST

/* Once, and from there on: the run ends; each scenario is reported at most once. */
START_TEST(call_faults_or_lies)
{
	struct faulty *f = malloc(sizeof(*f));
	u32 n, calls = all_calls(f), all = f->reports, found = 0, tried = 0;
	u8 how = (u8)_i;
	int ret;

	for (n = 1; n <= calls; n = next_call(n, 7)) {
		ret = suite(f, how, n, n & 1 ? 1 : ~0u);
		if (ret > 0 || f->reports > all || (!ret && f->reports != all))
			ck_abort_msg("call %u, how %u: returned %d, %u reports of %u", n, how, ret,
				     f->reports, all);
		tried++;
		found += ret || f->wrong[VMPT_FAILED];
	}
	/* Some calls do not matter, such as a write of the same value or an unused read. */
	ck_assert_msg(found > tried / 2, "only %u of %u were found", found, tried);
	free(f);
}
END_TEST

TEST_SUITE()
{
	Suite *s = suite_create("vmm-lib/conformance-errors");
	TCase *t = test_long_case(s);

	tcase_add_test(t, call_fails);
	tcase_add_loop_test(t, call_faults_or_lies, FAULT, HOWS);
	return s;
}
