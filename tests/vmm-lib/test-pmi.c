// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* vmm-lib/pmi.c and PendTopaPMI in msr.c (SDM 3 33.2.7.2). */
#include "tests/vmm-lib/bed.h"

#define BIT	 VMPT_GLOBAL_TOPA_PMI
#define STATUS_R 0x38e
#define RESET_W	 0x390
#define SET_W	 0x391

static struct bed bed;

static void setup(void)
{
	bed_init(&bed);
}

static void teardown(void)
{
	bed_free(&bed);
}

/* ---- sequences: each letter is one step, followed by the number of PMIs injected so far ---- */

/*
 * p: a PMI is pended. r: the guest reads 38EH. c: it clears bit 55 through 390H.
 * s: it sets bit 55 through 391H. g: the VMM reads 38EH for itself.
 */
static const struct {
	const char *name;
	const char *steps;
	unsigned int pmis;
	bool bit; /* 38EH[55] at the end */
} sequences[] = {
	{ "nothing", "", 0, false },
	{ "one", "p", 1, true },
	{ "handled", "prc", 1, false },
	{ "two, each handled", "prcprc", 2, false },
	{ "two before the first is taken", "pprc", 1, false },
	{ "a hundred before the first is taken", "ppppppppprc", 1, false },
	{ "the second while the first is handled", "prpc", 2, true },
	{ "and that one handled", "prpcrc", 2, false },
	{ "many while the first is handled", "prppppc", 2, true },
	{ "and as many again", "prpppcrpppcrpppcrc", 4, false },
	{ "after the bit was cleared", "prcp", 2, true },
	{ "a handler that reads twice", "prrprrc", 2, true },
	{ "a handler that clears first", "pcprc", 2, false },
	{ "cleared without being set", "cc", 0, false },
	{ "set by software: no interrupt", "s", 0, true },
	{ "set by software, then a PMI", "spc", 1, true },
	{ "set by software over a PMI", "psc", 1, false },
	{ "the VMM's own read is not the guest's", "pgpc", 1, false },
	{ "a read before the PMI does not count", "rpprc", 1, false },
	{ "a second one is forgotten when the bit goes", "prpcrcpc", 3, false },
};

static void step(char c)
{
	u64 value = 0;

	switch (c) {
	case 'p':
		vmpt_vcpu_pmi(&bed.v);
		break;
	case 'r':
		bed_rdmsr(&bed, STATUS_R);
		break;
	case 'c':
		bed_wrmsr(&bed, RESET_W, BIT);
		break;
	case 's':
		bed_wrmsr(&bed, SET_W, BIT);
		break;
	case 'g':
		ck_assert_int_eq(vmpt_vcpu_get_msr(&bed.v, STATUS_R, &value), 0);
		break;
	}
}

START_TEST(sequence)
{
	const char *s;

	bed_start(&bed);
	for (s = sequences[_i].steps; *s; s++)
		step(*s);
	ck_assert_msg(bed.guest.pmis == sequences[_i].pmis, "%s: %llu injected", sequences[_i].name,
		      (unsigned long long)bed.guest.pmis);
	ck_assert_msg(bed.v.pmis == bed.guest.pmis, "%s: the count differs", sequences[_i].name);
	ck_assert_msg(!!(bed_rdmsr(&bed, STATUS_R) & BIT) == sequences[_i].bit, "%s: bit 55",
		      sequences[_i].name);
	ck_assert_uint_eq(bed.v.events, bed.guest.pmis ? VMPT_EVENT_PMI : 0);
}
END_TEST

/*
 * A processor and a guest next to it, by the manual's words: the LVT's interrupt stays pending once
 * (an IRR bit); a handler reads 38EH, serves, writes 390H. Random fills of INT regions: each of
 * them precedes or is during a handler that began after it ("none lost"), and no handler runs
 * without a fill since the last one began ("none doubled").
 */
START_TEST(none_lost_none_doubled)
{
	u64 seed = 55 + (u64)_i, injected = 0;
	struct test_rng rng = { seed };
	u64 fills = 0, served = 0, began = 0;
	bool irr = false, in_handler = false;
	unsigned int i, handlers = 0;

	bed_start(&bed);
	for (i = 0; i < 20000; i++) {
		u32 dice = (u32)(test_random(&rng) % 4);

		if (dice == 0) {
			fills++;
			vmpt_vcpu_pmi(&bed.v);
		} else if (!in_handler && irr) {
			irr = false;
			in_handler = true;
			handlers++;
			if (!(bed_rdmsr(&bed, STATUS_R) & BIT))
				ck_abort_msg("seed %llu: a PMI without bit 55",
					     (unsigned long long)seed);
			if (fills == began)
				ck_abort_msg("seed %llu: a PMI for nothing",
					     (unsigned long long)seed);
			served = began = fills;
		} else if (in_handler && dice == 1) {
			in_handler = false;
			bed_wrmsr(&bed, RESET_W, BIT);
		}
		if (bed.guest.pmis - injected > 1)
			ck_abort_msg("two injections at once");
		irr = irr || bed.guest.pmis != injected;
		injected = bed.guest.pmis;
		if (!in_handler && !irr && fills != served)
			ck_abort_msg("seed %llu: step %u: a fill that is not reported",
				     (unsigned long long)seed, i);
	}
	ck_assert_uint_gt(handlers, 1000);
	ck_assert_uint_le(bed.guest.pmis, handlers + 1);
}
END_TEST

/* @ret is #GP, and gp_why is of this one; it was something else before. */
static void check_reserved(int ret)
{
	ck_assert_int_eq(ret, VMPT_GP);
	ck_assert_uint_eq(bed.v.gp_why, VMPT_GP_RESERVED);
	bed.v.gp_why = VMPT_GP_VMX;
}

/* D27: without ToPA there is no such bit, with PT and without. */
START_TEST(no_topa)
{
	u64 value = ~0ULL;

	if (_i)
		bed_no_pt(&bed, VMPT_USE_NONE);
	else
		bed_hide(&bed, VMPT_CAP_TOPA);
	bed_start(&bed);
	ck_assert_int_eq(vmpt_vcpu_rdmsr(&bed.v, STATUS_R, &value), 0);
	ck_assert_uint_eq(value, ~BIT);
	check_reserved(vmpt_vcpu_wrmsr(&bed.v, RESET_W, BIT));
	check_reserved(vmpt_vcpu_wrmsr(&bed.v, SET_W, BIT));
	check_reserved(vmpt_vcpu_set_msr(&bed.v, STATUS_R, BIT));
	ck_assert_int_eq(vmpt_vcpu_wrmsr(&bed.v, RESET_W, ~BIT), 0);
	ck_assert_int_eq(vmpt_vcpu_wrmsr(&bed.v, SET_W, ~BIT), 0);
	ck_assert_int_eq(vmpt_vcpu_set_msr(&bed.v, STATUS_R, ~BIT), 0);
	vmpt_vcpu_pmi(&bed.v);
	ck_assert_uint_eq(bed.guest.pmis, 0);
	ck_assert(!bed.v.global_status && !bed.v.events);
}
END_TEST

/* The other bits of 38EH are the VMM's, and a stale bit 55 of the host is not visible. */
START_TEST(other_bits)
{
	u64 value = 0x8000000700000003ULL | BIT;

	bed_start(&bed);
	ck_assert_int_eq(vmpt_vcpu_rdmsr(&bed.v, STATUS_R, &value), 0);
	ck_assert_uint_eq(value, 0x8000000700000003ULL);
	vmpt_vcpu_pmi(&bed.v);
	ck_assert_int_eq(vmpt_vcpu_wrmsr(&bed.v, RESET_W, ~BIT), 0);
	ck_assert_int_eq(vmpt_vcpu_rdmsr(&bed.v, STATUS_R, &value), 0);
	ck_assert_uint_eq(value, 0x8000000700000003ULL | BIT);
	ck_assert_int_eq(vmpt_vcpu_wrmsr(&bed.v, RESET_W, ~0ULL), 0);
	ck_assert_int_eq(vmpt_vcpu_rdmsr(&bed.v, STATUS_R, &value), 0);
	ck_assert_uint_eq(value, 0x8000000700000003ULL);
}
END_TEST

/* A restored bit 55: a fill after it is reported to the guest at the reset at the latest. */
START_TEST(restored_bit)
{
	u64 value = 0;

	bed_start(&bed);
	ck_assert_int_eq(vmpt_vcpu_set_msr(&bed.v, STATUS_R, BIT), 0);
	ck_assert_int_eq(vmpt_vcpu_get_msr(&bed.v, STATUS_R, &value), 0);
	ck_assert_uint_eq(value, BIT);
	ck_assert_uint_eq(bed.guest.pmis, 0);
	vmpt_vcpu_pmi(&bed.v);
	ck_assert_uint_eq(bed.guest.pmis, 0);
	bed_wrmsr(&bed, RESET_W, BIT);
	ck_assert_uint_eq(bed.guest.pmis, 1);
	ck_assert_int_eq(vmpt_vcpu_set_msr(&bed.v, STATUS_R, 0), 0);
	ck_assert_uint_eq(bed_rdmsr(&bed, STATUS_R), 0);
	bed_wrmsr(&bed, RESET_W, BIT);
	ck_assert_uint_eq(bed.guest.pmis, 1);
}
END_TEST

/* ---- PMI preservation ---- */

#define INJECT (BED_CTL | VMPT_CTL_INJECT)

/* A guest whose XSAVES came before the PMI: it is pended with the enable, once. */
START_TEST(preserved_once)
{
	bed_start(&bed);
	bed_wrmsr(&bed, 0x571, VMPT_STATUS_PEND_PMI);
	ck_assert_uint_eq(bed.guest.pmis, 0);
	bed_trace(&bed, INJECT);
	ck_assert_uint_eq(bed.guest.pmis, 1);
	ck_assert(bed.v.held_pend_pmi);
	/* the guest still reads the bit: only software clears it (Table 33-7) */
	ck_assert_uint_eq(bed_rdmsr(&bed, 0x571) & 0xc0, VMPT_STATUS_PEND_PMI);
	/* writes that are no enable */
	bed_wrmsr(&bed, 0x570, INJECT);
	ck_assert_uint_eq(bed.guest.pmis, 1);
	bed_wrmsr(&bed, 0x570, 0);
	ck_assert_uint_eq(bed.guest.pmis, 1);
	/* a handler that left the bit set gets it again with each of its enables */
	bed_rdmsr(&bed, STATUS_R);
	bed_wrmsr(&bed, RESET_W, BIT);
	bed_wrmsr(&bed, 0x570, INJECT);
	ck_assert_uint_eq(bed.guest.pmis, 2);
	/* an enable that does not check the bit holds nothing */
	bed_wrmsr(&bed, 0x570, 0);
	bed_wrmsr(&bed, 0x570, BED_CTL);
	ck_assert(!bed.v.held_pend_pmi);
}
END_TEST

START_TEST(preserved_cleared)
{
	bed_start(&bed);
	bed_wrmsr(&bed, 0x571, VMPT_STATUS_PEND_PMI);
	bed_trace(&bed, INJECT);
	bed_wrmsr(&bed, 0x570, INJECT & ~1ULL);
	bed_wrmsr(&bed, 0x571, 0);
	ck_assert(!bed.v.held_pend_pmi);
	bed_wrmsr(&bed, RESET_W, BIT);
	bed_wrmsr(&bed, 0x570, INJECT);
	ck_assert_uint_eq(bed.guest.pmis, 1);
	ck_assert(!bed.v.held_pend_pmi);
}
END_TEST

/* Table 33-6: InjectPsbPmiOnEnable = 0: bits 6 and 7 of STATUS are ignored. */
START_TEST(not_preserved)
{
	bed_start(&bed);
	bed_wrmsr(&bed, 0x571, VMPT_STATUS_PEND_PMI);
	bed_trace(&bed, BED_CTL);
	ck_assert_uint_eq(bed.guest.pmis, 0);
	ck_assert(!bed.v.held_pend_pmi);
}
END_TEST

/* No storm: a guest that enables and disables without clearing bit 55 gets one. */
START_TEST(no_storm)
{
	unsigned int i;

	bed_start(&bed);
	bed_wrmsr(&bed, 0x571, VMPT_STATUS_PEND_PMI);
	bed_trace(&bed, INJECT);
	for (i = 0; i < 1000; i++) {
		bed_wrmsr(&bed, 0x570, 0);
		bed_wrmsr(&bed, 0x570, INJECT);
		bed_rdmsr(&bed, STATUS_R);
	}
	ck_assert_uint_eq(bed.guest.pmis, 1);
	bed_wrmsr(&bed, RESET_W, BIT);
	ck_assert_uint_eq(bed.guest.pmis, 2);
}
END_TEST

/*
 * A PMI that the library itself pends (a PIP that fills an INT region): the flag that it sets must
 * not pend the same PMI at the next VM entry.
 */
START_TEST(own_pmi_is_held)
{
	u8 pip[8];

	bed_start(&bed);
	bed_trace(&bed, INJECT);
	bed.v.regs.output_mask_ptrs = 0xff80000007fULL; /* 8 bytes are left */
	ck_assert_int_eq(vmpt_vcpu_cr3_write(&bed.v, &(struct vmpt_cr3_write){ .new_cr3 = 0x8000 }),
			 1);
	ck_assert_uint_eq(bed.guest.pmis, 1);
	ck_assert(bed.v.held_pend_pmi);
	ck_assert_uint_eq(bed_rdmsr(&bed, 0x571) & 0x80, 0x80);
	guest_get(&bed.guest, BED_OUTPUT + 0xff8, pip, 8);
	ck_assert_uint_eq(pip[0], 0x02);
	ck_assert_uint_eq(pip[1], 0x43);
}
END_TEST

TEST_SUITE()
{
	Suite *suite = suite_create("pmi");
	TCase *tcase = tcase_create("pmi");

	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_add_loop_test(tcase, sequence, 0, VMPT_ARRAY_SIZE(sequences));
	tcase_add_loop_test(tcase, none_lost_none_doubled, 0, 8);
	tcase_add_loop_test(tcase, no_topa, 0, 2);
	tcase_add_test(tcase, other_bits);
	tcase_add_test(tcase, restored_bit);
	tcase_add_test(tcase, preserved_once);
	tcase_add_test(tcase, preserved_cleared);
	tcase_add_test(tcase, not_preserved);
	tcase_add_test(tcase, no_storm);
	tcase_add_test(tcase, own_pmi_is_held);
	suite_add_tcase(suite, tcase);
	return suite;
}
