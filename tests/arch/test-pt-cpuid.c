// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * arch/pt-cpuid.c: the position of every field, written from SDM 3 Tables 33-11 and 33-12, and
 * which value counts.
 */
#include "arch/pt-cpuid.h"
#include "tests/support/support.h"

/* NONE: the field needs no other. */
#define NONE VMPT_CAPS

static const struct row {
	enum vmpt_pt_cap cap;
	const char *place;
	unsigned int subleaf, reg, low, high;
	enum vmpt_pt_cap needs;
} rows[] = {
	{ VMPT_CAP_MAX_SUBLEAF, "CPUID.14H.0:EAX", 0, 0, 0, 31, NONE },
	{ VMPT_CAP_CR3_FILTER, "CPUID.14H.0:EBX[0]", 0, 1, 0, 0, NONE },
	{ VMPT_CAP_PSB_CYC, "CPUID.14H.0:EBX[1]", 0, 1, 1, 1, NONE },
	{ VMPT_CAP_IP_FILTER, "CPUID.14H.0:EBX[2]", 0, 1, 2, 2, NONE },
	{ VMPT_CAP_MTC, "CPUID.14H.0:EBX[3]", 0, 1, 3, 3, NONE },
	{ VMPT_CAP_PTWRITE, "CPUID.14H.0:EBX[4]", 0, 1, 4, 4, NONE },
	{ VMPT_CAP_POWER, "CPUID.14H.0:EBX[5]", 0, 1, 5, 5, NONE },
	{ VMPT_CAP_PRESERVE, "CPUID.14H.0:EBX[6]", 0, 1, 6, 6, NONE },
	{ VMPT_CAP_EVENT, "CPUID.14H.0:EBX[7]", 0, 1, 7, 7, NONE },
	{ VMPT_CAP_TNT_DISABLE, "CPUID.14H.0:EBX[8]", 0, 1, 8, 8, NONE },
	{ VMPT_CAP_TOPA, "CPUID.14H.0:ECX[0]", 0, 2, 0, 0, NONE },
	{ VMPT_CAP_TOPA_MULTI, "CPUID.14H.0:ECX[1]", 0, 2, 1, 1, VMPT_CAP_TOPA },
	{ VMPT_CAP_SINGLE_RANGE, "CPUID.14H.0:ECX[2]", 0, 2, 2, 2, NONE },
	{ VMPT_CAP_FABRIC, "CPUID.14H.0:ECX[3]", 0, 2, 3, 3, NONE },
	{ VMPT_CAP_LIP, "CPUID.14H.0:ECX[31]", 0, 2, 31, 31, NONE },
	{ VMPT_CAP_RANGES, "CPUID.14H.1:EAX[2:0]", 1, 0, 0, 2, VMPT_CAP_IP_FILTER },
	{ VMPT_CAP_MTC_PERIODS, "CPUID.14H.1:EAX[31:16]", 1, 0, 16, 31, VMPT_CAP_MTC },
	{ VMPT_CAP_CYC_THRESHOLDS, "CPUID.14H.1:EBX[15:0]", 1, 1, 0, 15, VMPT_CAP_PSB_CYC },
	{ VMPT_CAP_PSB_FREQS, "CPUID.14H.1:EBX[31:16]", 1, 1, 16, 31, VMPT_CAP_PSB_CYC },
};

/* Register @reg (0 EAX … 3 EDX) of a subleaf. */
static u32 *reg_of(struct vmpt_pt_cpuid *c, unsigned int subleaf, unsigned int reg)
{
	struct vmpt_cpuid_regs *r = &c->leaf14[subleaf];
	u32 *const regs[] = { &r->eax, &r->ebx, &r->ecx, &r->edx };

	return regs[reg];
}

static u32 field_max(const struct row *r)
{
	return r->high - r->low == 31 ? ~0u : (1u << (r->high - r->low + 1)) - 1;
}

/* Everything present, with values that differ from field to field. */
static struct vmpt_pt_cpuid full(void)
{
	struct vmpt_pt_cpuid c = { .present = 1, .maxphyaddr = 46, .linear_bits = 48 };

	c.leaf14[0] = (struct vmpt_cpuid_regs){ .eax = 1, .ebx = 0x1ff, .ecx = 0x8000000f };
	c.leaf14[1] = (struct vmpt_cpuid_regs){ .eax = 0x02490002, .ebx = 0x003f3fff };
	return c;
}

START_TEST(every_field_is_listed_once)
{
	size_t i;

	ck_assert_uint_eq(VMPT_ARRAY_SIZE(rows), VMPT_CAPS);
	for (i = 0; i < VMPT_CAPS; i++)
		ck_assert_uint_eq(rows[i].cap, i);
}
END_TEST

START_TEST(places)
{
	const struct row *r = &rows[_i];
	const struct vmpt_pt_cap_desc *d = &vmpt_pt_cap_table[r->cap];
	int i;

	ck_assert_str_eq(d->place, r->place);
	ck_assert_uint_eq(d->subleaf, r->subleaf);
	ck_assert_uint_eq(d->reg, r->reg);
	ck_assert_uint_eq(d->bit, r->low);
	ck_assert_uint_eq(d->width, r->high - r->low + 1);
	ck_assert_uint_eq(d->needs, r->needs == NONE ? r->cap : r->needs);
	ck_assert(*d->name);
	for (i = 0; i < _i; i++)
		ck_assert_str_ne(d->name, vmpt_pt_cap_table[i].name);
}
END_TEST

/* A bit of the two subleaves is seen by its field and by no other. */
START_TEST(each_bit_belongs_to_one_field)
{
	unsigned int subleaf, reg, bit;
	const struct row *r = &rows[_i];

	for (subleaf = 0; subleaf < VMPT_PT_SUBLEAVES; subleaf++)
		for (reg = 0; reg < 4; reg++)
			for (bit = 0; bit < 32; bit++) {
				struct vmpt_pt_cpuid c = { 0 };
				u32 want = 0;

				*reg_of(&c, subleaf, reg) = 1u << bit;
				if (subleaf == r->subleaf && reg == r->reg && bit >= r->low &&
				    bit <= r->high)
					want = 1u << (bit - r->low);
				if (vmpt_pt_cap(&c, r->cap) != want)
					ck_abort_msg("%s: subleaf %u, register %u, bit %u",
						     r->place, subleaf, reg, bit);
			}
}
END_TEST

/* Setting a field to any value changes its bits and no other; too large a value is truncated. */
START_TEST(set_changes_only_its_field)
{
	const struct row *r = &rows[_i];
	u32 max = field_max(r), v, step = max > 0xffff ? 0x01010101 : 1;
	int ones;

	for (ones = 0; ones < 2; ones++) {
		for (v = 0; v <= max - step + 1; v += step) {
			struct vmpt_pt_cpuid c, want;

			memset(&c, ones ? 0xff : 0, sizeof(c));
			want = c;
			*reg_of(&want, r->subleaf, r->reg) &= ~(max << r->low);
			*reg_of(&want, r->subleaf, r->reg) |= v << r->low;
			/* bits above the field's width must not get into the next field */
			vmpt_pt_cap_set(&c, r->cap, max == ~0u ? v : v | ~max);
			if (memcmp(c.leaf14, want.leaf14, sizeof(c.leaf14)) ||
			    vmpt_pt_cap(&c, r->cap) != v)
				ck_abort_msg("%s: value %x", r->place, v);
			if (v == max)
				break;
		}
	}
}
END_TEST

START_TEST(effective_is_the_value_where_all_is_there)
{
	static const u32 want[VMPT_CAPS] = { 1, 1, 1, 1, 1, 1, 1,     1,      1,   1,
					     1, 1, 1, 1, 1, 2, 0x249, 0x3fff, 0x3f };
	struct vmpt_pt_cpuid c = full();

	ck_assert_uint_eq(vmpt_pt_cap_effective(&c, rows[_i].cap), want[_i]);
}
END_TEST

START_TEST(effective_is_0_without_pt)
{
	struct vmpt_pt_cpuid c = full();

	c.present = 0;
	ck_assert_uint_eq(vmpt_pt_cap_effective(&c, rows[_i].cap), 0);
	ck_assert_uint_ne(vmpt_pt_cap(&c, rows[_i].cap), 0);
}
END_TEST

/* Removing one capability removes those that depend on it, and no others. */
START_TEST(effective_is_0_without_what_it_needs)
{
	unsigned int other;

	for (other = VMPT_CAP_CR3_FILTER; other < VMPT_CAPS; other++) {
		struct vmpt_pt_cpuid c = full();
		bool gone = other == rows[_i].cap || other == rows[_i].needs;

		vmpt_pt_cap_set(&c, (enum vmpt_pt_cap)other, 0);
		ck_assert_msg(!vmpt_pt_cap_effective(&c, rows[_i].cap) == gone, "%s without %s",
			      rows[_i].place, rows[other].place);
	}
}
END_TEST

START_TEST(effective_is_0_beyond_the_last_subleaf)
{
	struct vmpt_pt_cpuid c = full();

	c.leaf14[0].eax = 0;
	if (rows[_i].cap != VMPT_CAP_MAX_SUBLEAF)
		ck_assert_int_eq(!!vmpt_pt_cap_effective(&c, rows[_i].cap), !rows[_i].subleaf);
	/* A later processor with more of them. */
	c.leaf14[0].eax = 7;
	ck_assert_uint_ne(vmpt_pt_cap_effective(&c, rows[_i].cap), 0);
}
END_TEST

/* Table 33-12: no processor has more than 4 (so arrays of 4 pairs are enough). */
START_TEST(rangecnt_is_cut_at_4)
{
	struct vmpt_pt_cpuid c = full();
	u32 n;

	for (n = 0; n < 8; n++) {
		vmpt_pt_cap_set(&c, VMPT_CAP_RANGES, n);
		ck_assert_uint_eq(vmpt_pt_cap(&c, VMPT_CAP_RANGES), n);
		ck_assert_uint_eq(vmpt_pt_cap_effective(&c, VMPT_CAP_RANGES), n < 4 ? n : 4);
	}
}
END_TEST

TEST_SUITE()
{
	Suite *suite = suite_create("pt-cpuid");
	TCase *tc = tcase_create("fields");
	const int n = VMPT_ARRAY_SIZE(rows);

	tcase_add_test(tc, every_field_is_listed_once);
	tcase_add_loop_test(tc, places, 0, n);
	tcase_add_loop_test(tc, each_bit_belongs_to_one_field, 0, n);
	tcase_add_loop_test(tc, set_changes_only_its_field, 0, n);
	suite_add_tcase(suite, tc);

	tc = tcase_create("effective");
	tcase_add_loop_test(tc, effective_is_the_value_where_all_is_there, 0, n);
	tcase_add_loop_test(tc, effective_is_0_without_pt, 0, n);
	tcase_add_loop_test(tc, effective_is_0_without_what_it_needs, 0, n);
	tcase_add_loop_test(tc, effective_is_0_beyond_the_last_subleaf, 0, n);
	tcase_add_test(tc, rangecnt_is_cut_at_4);
	suite_add_tcase(suite, tc);
	return suite;
}
