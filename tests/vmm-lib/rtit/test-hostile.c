// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * A hostile guest: random WRMSRs and RDMSRs while it runs, is swapped and its CR3 is written. A
 * second implementation, the model's unit alone, has the same MSRs written: what the guest reads
 * back and which accesses fault must agree. The rig checks each store of the processor against the
 * memory that it was given, and each WRMSR against the order of 3.3.2; here the guest's memory
 * outside its buffers must not change.
 */
#include <stdlib.h>

#include "tests/vmm-lib/rtit/rig.h"

#define CLEAN 0xee
/* Guest memory that no buffer here can reach: BASE and the masks are below it. */
#define FENCE_PAGE 1100u

static struct rig rig;
static struct vmpt_rtit_unit native;
static struct test_rng rng;

static int native_store(void *opaque, u64 pa, const u8 *bytes, size_t len)
{
	(void)opaque, (void)pa, (void)bytes, (void)len;
	return 0;
}

static const struct vmpt_rtit_sink native_sink = { native_store, NULL };

static const u32 msrs[] = {
	0x760, 0x761, 0x762, 0x763, 0x768, 0x768, 0x768, 0x768, 0x769, 0x769, 0x76b, 0x76c,
	0x76e, 0x76f, 0x770, 0x770, 0x771, 0x771, 0x772, 0x772, 0x777, 0x77c, 0x77d, 0x773,
};

static u64 pick(u64 n)
{
	return test_random(&rng) % n;
}

/* Values with few invalid bits, so that most are accepted. */
static u64 value_for(u32 msr)
{
	u64 v = test_random(&rng);

	if (!pick(16))
		return v;
	switch (msr) {
	case 0x768:
		v &= 0xff9f;
		return pick(4) ? v | (pick(2) ? 0x2101 : 0x2001) : v;
	case 0x769:
		return v & 0xf;
	case 0x76b:
	case 0x772:
		return v & 0x3fffff;
	case 0x76c:
		return v & 0x3f;
	case 0x76e:
		return v & 0x1ffffffff;
	case 0x76f:
		return v & 0x1ffffffffffff;
	case 0x770:
		return pick(8) ? v & 0x7fffc0 : v & 0xfffffffc0;
	case 0x771:
		return pick(4) ? ((64ULL << pick(17)) - 1) | 0x3f : (v & 0x3fffc0) | 0x3f;
	case 0x777:
		return v & 0xfffffffe0;
	case 0x77c:
		return v & 0x33fff;
	case 0x77d:
		return v & 0x7f;
	default:
		return v;
	}
}

/* What the guest itself sets: packets change the others. */
static bool is_steady(u32 msr)
{
	return msr <= 0x763 || msr == 0x76c || msr == 0x770 || msr == 0x771 || msr == 0x777;
}

/* Registers of the guest always have values that a processor can hold. */
static void check_regs(void)
{
	const struct vmpt_rtit_regs *regs = &rig.v.regs;
	unsigned int i;

	for (i = 0; i < VMPT_RTIT_MSRS; i++) {
		const struct vmpt_rtit_reg_desc *d = &vmpt_rtit_reg_table[i];
		u64 value = *vmpt_rtit_reg((struct vmpt_rtit_regs *)regs, d->msr);

		ck_assert_msg(!(value & ~(d->fields | d->ones | d->ignored)), "%s", d->name);
		ck_assert((value & d->ones) == d->ones);
	}
	ck_assert(regs->tnt_buff);
}

static void write_one(void)
{
	u32 msr = msrs[pick(VMPT_ARRAY_SIZE(msrs))];
	u64 value = value_for(msr), a = 0, b = 0;
	int ret = vmpt_rtit_vcpu_wrmsr(&rig.v, msr, value);

	if (ret == -VMPT_E_RETRY) {
		/* The VMM finds a solution, and the guest executes it again. */
		ck_assert(rig.config.on_unbacked == VMPT_ON_MEM_RETRY);
		rig.v.config.on_unbacked = VMPT_ON_MEM_DROP;
		ret = vmpt_rtit_vcpu_wrmsr(&rig.v, msr, value);
		rig.v.config.on_unbacked = VMPT_ON_MEM_RETRY;
	}
	ck_assert_msg(ret == vmpt_rtit_unit_wrmsr(&native, msr, value, 0), "WRMSR %x, %llx", msr,
		      (unsigned long long)value);
	if (ret || !is_steady(msr))
		return;
	ck_assert_int_eq(vmpt_rtit_vcpu_rdmsr(&rig.v, msr, false, &a), 0);
	ck_assert_int_eq(vmpt_rtit_unit_rdmsr(&native, msr, &b), 0);
	ck_assert_uint_eq(a, b);
}

static void read_one(void)
{
	u32 msr = msrs[pick(VMPT_ARRAY_SIZE(msrs))];
	u64 a = 0, b = 0;
	int ret = vmpt_rtit_vcpu_rdmsr(&rig.v, msr, pick(2), &a);

	if (ret == -VMPT_E_RETRY) {
		ck_assert(rig.config.on_unbacked == VMPT_ON_MEM_RETRY);
		return;
	}
	ck_assert_int_eq(ret, vmpt_rtit_unit_rdmsr(&native, msr, &b));
	if (!ret && is_steady(msr))
		ck_assert_uint_eq(a, b);
	/* TraceActive may have been stopped in one and not in the other. */
	if (!ret && msr == 0x768)
		ck_assert_uint_eq((a ^ b) & ~VMPT_RTIT_CTL_TRACE_ACTIVE, 0);
}

static void execute(void)
{
	u64 n = pick(40);

	rig.in.cpl = 0;
	rig_enter(&rig, test_random(&rng));
	while (n--) {
		u64 a = test_random(&rng), b = test_random(&rng);

		switch (pick(6)) {
		case 0:
			vmpt_rtit_unit_jcc(&rig.unit, a & 1, a, b);
			break;
		case 1:
			vmpt_rtit_unit_call_indirect(&rig.unit, a, b);
			break;
		case 2:
			vmpt_rtit_unit_ret(&rig.unit, a, b);
			break;
		case 3:
			rig_time(&rig, a % 5000);
			break;
		case 4:
			vmpt_rtit_unit_overflow(&rig.unit);
			break;
		default:
			vmpt_rtit_unit_overflow_resolve(&rig.unit, a);
			break;
		}
	}
	rig_exit(&rig, test_random(&rng));
}

static void cr_write(void)
{
	struct vmpt_rtit_cr_write w = { test_random(&rng), pick(2), pick(2) };
	int ret = vmpt_rtit_vcpu_cr_write(&rig.v, &w);

	ck_assert(ret == 0 || ret == 1 || ret == -VMPT_E_RETRY);
	ret = vmpt_rtit_vcpu_wake(&rig.v, pick(2));
	ck_assert(ret == 0 || ret == 1 || ret == -VMPT_E_RETRY);
}

static void swap(void)
{
	int ret;

	if (rig.v.loaded) {
		ret = vmpt_rtit_vcpu_unload(&rig.v);
		ck_assert(!rig.v.loaded && (!ret || ret == -VMPT_E_RETRY));
	} else {
		ret = vmpt_rtit_vcpu_load(&rig.v);
		ck_assert(!ret || (ret == -VMPT_E_RETRY && !rig.v.loaded));
	}
}

static void step(void)
{
	int ret;

	switch (pick(12)) {
	case 0:
		swap();
		break;
	case 1:
		ret = vmpt_rtit_vcpu_sync(&rig.v);
		ck_assert(!ret || ret == -VMPT_E_RETRY);
		break;
	case 2:
		ck_assert_int_eq(vmpt_rtit_vcpu_quiet(&rig.v, pick(2)), 0);
		ck_assert_int_eq(vmpt_rtit_vcpu_hold(&rig.v, pick(2)), 0);
		break;
	case 3:
		cr_write();
		break;
	case 4:
	case 5:
		if (rig.v.loaded || !vmpt_rtit_vcpu_wanted(&rig.v))
			execute();
		break;
	case 6:
		ret = vmpt_rtit_vcpu_clock(&rig.v, test_random(&rng), 5);
		ck_assert(!ret || ret == -VMPT_E_RETRY);
		break;
	case 7:
		read_one();
		break;
	default:
		write_one();
		break;
	}
	check_regs();
}

/* The masks reach 4 MiB from below 8 MiB; guest memory is 1,200 pages, some of it not RAM. */
static void start(u64 seed)
{
	struct vmpt_rtit_unit_config config = { .sink = &native_sink };
	u64 value;

	rng.state = seed;
	rig_init(&rig, pick(2) ? VMPT_RTIT_BOUNCE : VMPT_RTIT_CONTIGUOUS, 128u << pick(8));
	memset(rig.guest.host, CLEAN, (size_t)RIG_PAGES * GUEST_PAGE);
	if (pick(3) == 0)
		guest_shuffle(&rig.guest, seed);
	guest_set_kind(&rig.guest, (u32)pick(600), 300, VMPT_MEM_UNBACKED);
	guest_set_kind(&rig.guest, 900, 3, VMPT_MEM_MMIO);
	guest_set_kind(&rig.guest, FENCE_PAGE, 100, VMPT_MEM_RESTRICTED);
	if (!pick(3))
		rig.config.on_unbacked = VMPT_ON_MEM_RETRY;
	if (rig.config.output == VMPT_RTIT_CONTIGUOUS && pick(2))
		rig.config.bounce.bytes = NULL;
	rig.config.rewrite_clock = rig.config.output == VMPT_RTIT_BOUNCE && pick(2);
	rig.ops.debug_port = NULL;
	rig_again(&rig);
	ck_assert_int_eq(vmpt_rtit_unit_init(&native, &config), 0);
	vmpt_rtit_unit_rdmsr(&native, 0x768, &value);
	if (pick(2))
		rig_host_on(&rig, RIG_ON);
}

/* No RAM, no store: neither by the processor nor by the library. */
static void check_fences(void)
{
	u32 page, i;

	for (page = 0; page < RIG_PAGES; page++) {
		const u8 *at = rig.guest.host + (size_t)rig.guest.frame[page] * GUEST_PAGE;

		if (!rig.guest.kind[page])
			continue;
		for (i = 0; i < GUEST_PAGE && at[i] == CLEAN; i++)
			;
		ck_assert_msg(i == GUEST_PAGE, "page %u was written", page);
	}
}

START_TEST(random_guest)
{
	u32 n;

	start((u64)_i + 1);
	for (n = 0; n < 2500; n++)
		step();
	if (rig.v.loaded) {
		int ret = vmpt_rtit_vcpu_unload(&rig.v);

		ck_assert(!ret || ret == -VMPT_E_RETRY);
	}
	check_fences();
	rig_free(&rig);
}
END_TEST

/* ---- where a scattered buffer would reach ---- */

/*
 * Each mask of few bits with each OFFSET bit: each stored byte is where 2.3 says. The first packet
 * is a PSB: one byte C0H, eight of 0.
 */
START_TEST(scattered)
{
	u64 base = 0x200000, bit, at, i;

	rig_init(&rig, VMPT_RTIT_CONTIGUOUS, 1024);
	for (bit = 6; bit < 22; bit++) {
		u64 mask = 0x3f | 1ULL << bit, offset = 1ULL << bit | 0x3a;
		u8 byte;

		memset(rig.guest.host, CLEAN, (size_t)RIG_PAGES * GUEST_PAGE);
		rig_program(&rig, base, mask, RIG_CTL);
		rig_wr(&rig, 0x772, offset);
		ck_assert_int_eq(vmpt_rtit_vcpu_load(&rig.v), 0);
		rig_wr(&rig, 0x768, RIG_ON);
		ck_assert_uint_eq(rig.v.path,
				  bit == 6 ? VMPT_RTIT_PATH_DIRECT : VMPT_RTIT_PATH_BOUNCE);
		for (i = 0; i < 9; i++) {
			at = (base & ~mask) + (offset & mask & ~0x3fULL) + ((0x3a + i) & 0x3f);
			if (bit == 6)
				at = base + ((0x7a + i) & 0x7f);
			rig_get(&rig, at, &byte, 1);
			ck_assert_msg(byte == (i ? 0 : 0xc0), "bit %u, byte %u", (u32)bit, (u32)i);
			byte = CLEAN;
			guest_put(&rig.guest, at, &byte, 1);
		}
		for (i = 0; i < (u64)RIG_PAGES * GUEST_PAGE && rig.guest.host[i] == CLEAN; i++)
			;
		ck_assert_uint_eq(i, (u64)RIG_PAGES * GUEST_PAGE);
		ck_assert_int_eq(vmpt_rtit_vcpu_unload(&rig.v), 0);
	}
	rig_free(&rig);
}
END_TEST

TEST_SUITE()
{
	Suite *suite = suite_create("rtit-hostile");
	TCase *tc = tcase_create("hostile");

	tcase_add_loop_test(test_random_case(suite), random_guest, 0, test_rounds(80, 6));
	tcase_add_test(tc, scattered);
	suite_add_tcase(suite, tc);
	return suite;
}
