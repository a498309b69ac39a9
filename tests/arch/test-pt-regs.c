// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * arch/pt-regs.c: which MSRs exist, and what STATUS, OUTPUT_*, CR3_MATCH and ADDRn accept and keep.
 * The fields of CTL are in test-pt-regs-ctl.c.
 */
#include "arch/pt-regs.h"
#include "tests/arch/regs-oracle.h"
#include "tests/support/support.h"

static struct vmpt_pt_cpuid full;
static struct vmpt_pt_rules all; /* of full */

static void setup(void)
{
	oracle_full(&full);
	vmpt_pt_rules_init(&all, &full);
}

static u64 read_msr(const struct vmpt_pt_rules *rules, const struct vmpt_pt_regs *regs, u32 msr)
{
	u64 value = 0xdead;

	ck_assert_int_eq(vmpt_pt_rdmsr(rules, regs, msr, &value, NULL), 0);
	return value;
}

/* Write to a copy of @before; the reason, NONE if it was legal. Nothing changes on #GP. */
static enum vmpt_gp_reason try_write(const struct vmpt_pt_rules *rules,
				     const struct vmpt_pt_regs *before, u32 msr, u64 value,
				     struct vmpt_pt_regs *after)
{
	struct vmpt_pt_regs regs = *before;
	enum vmpt_gp_reason why = VMPT_GP_REASONS;
	int got = vmpt_pt_wrmsr(rules, &regs, msr, value, &why);

	if (got != (why == VMPT_GP_NONE ? 0 : VMPT_GP))
		ck_abort_msg("MSR %x: %d with reason %d", msr, got, why);
	if (got && memcmp(&regs, before, sizeof(regs)))
		ck_abort_msg("MSR %x, %llx: #GP, but something changed", msr,
			     (unsigned long long)value);
	if (after)
		*after = regs;
	return why;
}

/* ---- which MSRs there are ---- */

START_TEST(msr_numbers)
{
	struct vmpt_pt_regs regs;
	u64 value = 1, *seen[ORACLE_MSRS];
	u32 msr, n = 0, i;

	vmpt_pt_reset_cold(&regs);
	for (msr = 0; msr < 0x2000; msr++) {
		bool is = oracle_index(msr) >= 0;
		u64 *reg = vmpt_pt_reg(&regs, msr);

		ck_assert_msg(vmpt_pt_is_msr(msr) == is, "%x", msr);
		ck_assert_msg(!reg == !is, "%x", msr);
		if (is) {
			for (i = 0; i < n; i++)
				ck_assert_ptr_ne(seen[i], reg);
			seen[n++] = reg;
			continue;
		}
		ck_assert(!vmpt_pt_msr_exists(&all, msr));
		ck_assert_int_eq(vmpt_pt_rdmsr(&all, &regs, msr, &value, NULL), -VMPT_E_INVAL);
		ck_assert_int_eq(vmpt_pt_wrmsr(&all, &regs, msr, 0, NULL), -VMPT_E_INVAL);
		ck_assert_int_eq(vmpt_pt_restore_msr(&all, &regs, msr, 0, NULL), -VMPT_E_INVAL);
	}
	ck_assert_uint_eq(n, ORACLE_MSRS);
	ck_assert_uint_eq(value, 1);
}
END_TEST

START_TEST(registers_by_name)
{
	struct vmpt_pt_regs regs;

	ck_assert_ptr_eq(vmpt_pt_reg(&regs, 0x560), &regs.output_base);
	ck_assert_ptr_eq(vmpt_pt_reg(&regs, 0x561), &regs.output_mask_ptrs);
	ck_assert_ptr_eq(vmpt_pt_reg(&regs, 0x570), &regs.ctl);
	ck_assert_ptr_eq(vmpt_pt_reg(&regs, 0x571), &regs.status);
	ck_assert_ptr_eq(vmpt_pt_reg(&regs, 0x572), &regs.cr3_match);
	ck_assert_ptr_eq(vmpt_pt_reg(&regs, 0x580), &regs.addr[0]);
	ck_assert_ptr_eq(vmpt_pt_reg(&regs, 0x587), &regs.addr[7]);
}
END_TEST

/* Read, write and restore of a missing MSR are #GP, of the others not. */
static void check_access(const struct vmpt_pt_cpuid *c, u32 msr)
{
	struct vmpt_pt_regs regs = { 0 };
	enum vmpt_gp_reason why[3], want = c->present ? VMPT_GP_ABSENT : VMPT_GP_NO_PT;
	struct vmpt_pt_rules rules;
	bool there = oracle_exists(c, msr);
	u64 value = 0xdead;
	int got[3], i;

	vmpt_pt_rules_init(&rules, c);
	got[0] = vmpt_pt_rdmsr(&rules, &regs, msr, &value, &why[0]);
	got[1] = vmpt_pt_wrmsr(&rules, &regs, msr, 0, &why[1]);
	got[2] = vmpt_pt_restore_msr(&rules, &regs, msr, 0, &why[2]);
	for (i = 0; i < 3; i++)
		if (got[i] != (there ? 0 : VMPT_GP) || why[i] != (there ? VMPT_GP_NONE : want))
			ck_abort_msg("MSR %x, access %d: %d, %s", msr, i, got[i],
				     vmpt_gp_reason(why[i]));
	if (vmpt_pt_msr_exists(&rules, msr) != there || (!there && value != 0xdead))
		ck_abort_msg("MSR %x", msr);
}

/* Every MSR with all sets of the bits it may depend on: EBX[0], EBX[2], ECX[2:0], RANGECNT. */
START_TEST(existence)
{
	u32 msr = oracle_msrs[_i], set, count;
	int present;

	for (present = 0; present < 2; present++)
		for (set = 0; set < 0x40; set++)
			for (count = 0; count < 8; count++) {
				struct vmpt_pt_cpuid c = full;

				c.present = (u8)present;
				c.leaf14[0].eax = set >> 5;
				c.leaf14[0].ebx = 0x1fa | (set & 1) | (set & 2) << 1;
				c.leaf14[0].ecx = set >> 2 & 7;
				c.leaf14[1].eax = 0xffff0000 | count;
				check_access(&c, msr);
			}
}
END_TEST

/* A guest that is shown no PT cannot reach anything, whatever leaf 14H says. */
START_TEST(nothing_without_pt)
{
	struct vmpt_pt_cpuid c = full;
	struct vmpt_pt_regs regs = { 0 };
	struct vmpt_pt_rules rules;
	enum vmpt_gp_reason why;
	size_t i;

	c.present = 0;
	vmpt_pt_rules_init(&rules, &c);
	ck_assert_uint_eq(rules.ctl_mask | rules.status_mask | rules.base_mask, 0);
	for (i = 0; i < ORACLE_MSRS; i++) {
		why = try_write(&rules, &regs, oracle_msrs[i], 0, NULL);
		ck_assert_int_eq(why, VMPT_GP_NO_PT);
	}
}
END_TEST

/* ---- STATUS ---- */

/* EBX[1] and EBX[6] decide; the three read-only bits are kept. */
START_TEST(status_bits)
{
	const bool psb_cyc = _i & 1, preserve = _i & 2;
	struct vmpt_pt_cpuid c = full;
	struct vmpt_pt_rules rules;
	unsigned int a, b;

	c.leaf14[0].ebx = 0x1bd | (psb_cyc ? 2 : 0) | (preserve ? 0x40 : 0);
	vmpt_pt_rules_init(&rules, &c);
	for (a = 0; a < 64; a++)
		for (b = a; b < 64; b++) {
			struct vmpt_pt_regs before = { .status = (a + b) & 3 }, after;
			u64 value = 1ULL << a | 1ULL << b;
			bool ok = oracle_value_ok(&c, 0x571, value);
			enum vmpt_gp_reason why = try_write(&rules, &before, 0x571, value, &after);

			if (why != (ok ? VMPT_GP_NONE : VMPT_GP_RESERVED))
				ck_abort_msg("bits %u and %u: %s", a, b, vmpt_gp_reason(why));
			if (ok && after.status != ((value & ~7ULL) | before.status))
				ck_abort_msg("bits %u and %u: %llx", a, b,
					     (unsigned long long)after.status);
		}
}
END_TEST

/* Table 33-7 by hand: { value, EBX, result }. */
START_TEST(status_rows)
{
	static const struct {
		u64 value;
		u32 ebx;
		bool ok;
	} rows[] = {
		{ 1 << 3, 0x1ff, false },
		{ 1 << 4, 0, true },
		{ 1 << 5, 0, true },
		{ 1 << 6, 0x1bf, false },
		{ 1 << 6, 0x040, true },
		{ 1 << 7, 0x1bf, false },
		{ 1 << 7, 0x040, true },
		{ 1 << 8, 0x1ff, false },
		{ 1ULL << 31, 0x1ff, false },
		{ 1ULL << 32, 0x1fd, false },
		{ 1ULL << 32, 0x002, true },
		{ 1ULL << 48, 0x002, true },
		{ 1ULL << 48, 0x1fd, false },
		{ 1ULL << 49, 0x1ff, false },
		{ 1ULL << 63, 0x1ff, false },
		{ 0x1ffff000000f7, 0x1ff, true },
		{ 0x1ffff000000ff, 0x1ff, false },
	};
	size_t i;

	for (i = 0; i < VMPT_ARRAY_SIZE(rows); i++) {
		struct vmpt_pt_regs regs = { 0 };
		struct vmpt_pt_cpuid c = full;
		struct vmpt_pt_rules rules;

		c.leaf14[0].ebx = rows[i].ebx;
		vmpt_pt_rules_init(&rules, &c);
		ck_assert_msg(!vmpt_pt_wrmsr(&rules, &regs, 0x571, rows[i].value, NULL) ==
				      rows[i].ok,
			      "row %zu", i);
		ck_assert_uint_eq(regs.status, rows[i].ok ? rows[i].value & ~7ULL : 0);
	}
}
END_TEST

/* All 131072 values of PacketByteCnt. */
START_TEST(status_packet_byte_cnt)
{
	struct vmpt_pt_regs regs = { 0 };
	u32 n;

	for (n = 0; n < 0x20000; n++) {
		int got = vmpt_pt_wrmsr(&all, &regs, 0x571, (u64)n << 32, NULL);

		if (got || vmpt_pt_packet_bytes(&regs) != n || regs.status != (u64)n << 32)
			ck_abort_msg("%x: %d", n, got);
	}
}
END_TEST

/* ---- OUTPUT_BASE, OUTPUT_MASK_PTRS ---- */

/* Bits 6:0 and from MAXPHYADDR up are reserved (Table 33-8), for every MAXPHYADDR. */
START_TEST(output_base)
{
	const struct vmpt_pt_regs before = { .output_base = 0x80 };
	struct vmpt_pt_cpuid c = full;
	struct vmpt_pt_rules rules;
	struct vmpt_pt_regs after;
	unsigned int a, b;

	c.maxphyaddr = (u8)_i;
	vmpt_pt_rules_init(&rules, &c);
	for (a = 0; a < 64; a++)
		for (b = a; b < 64; b++) {
			u64 value = 1ULL << a | 1ULL << b;
			bool ok = a >= 7 && b < (unsigned int)_i;
			enum vmpt_gp_reason why = try_write(&rules, &before, 0x560, value, &after);

			if (why != (ok ? VMPT_GP_NONE : VMPT_GP_RESERVED) ||
			    (ok && after.output_base != value))
				ck_abort_msg("MAXPHYADDR %d, %llx: %s", _i,
					     (unsigned long long)value, vmpt_gp_reason(why));
		}
	/* A table that is not 4K-aligned is an operational error, no #GP (33.2.8.7). */
	ck_assert_int_eq(try_write(&rules, &before, 0x560, 0xf80, NULL), VMPT_GP_NONE);
}
END_TEST

/* No CPUID can make more than 52 bits of address legal. */
START_TEST(output_base_silly_maxphyaddr)
{
	const struct vmpt_pt_regs before = { 0 };
	struct vmpt_pt_cpuid c = full;
	struct vmpt_pt_rules rules;
	unsigned int width;

	for (width = 53; width < 256; width++) {
		c.maxphyaddr = (u8)width;
		vmpt_pt_rules_init(&rules, &c);
		ck_assert_int_eq(try_write(&rules, &before, 0x560, 1ULL << 51, NULL), VMPT_GP_NONE);
		ck_assert_int_eq(try_write(&rules, &before, 0x560, 1ULL << 52, NULL),
				 VMPT_GP_RESERVED);
	}
	c.maxphyaddr = 0;
	vmpt_pt_rules_init(&rules, &c);
	ck_assert_int_eq(try_write(&rules, &before, 0x560, 0, NULL), VMPT_GP_NONE);
	ck_assert_int_eq(try_write(&rules, &before, 0x560, 0x80, NULL), VMPT_GP_RESERVED);
}
END_TEST

/* LowerMask reads 1 and ignores writes; nothing else is reserved (Table 33-9). */
START_TEST(output_mask_ptrs)
{
	const struct vmpt_pt_regs zero = { 0 };
	struct vmpt_pt_regs after;
	unsigned int a, b;

	ck_assert_uint_eq(read_msr(&all, &zero, 0x561), 0x7f);
	for (a = 0; a < 64; a++)
		for (b = a; b < 64; b++) {
			u64 value = 1ULL << a | 1ULL << b;

			if (try_write(&all, &zero, 0x561, value, &after) ||
			    after.output_mask_ptrs != (value | 0x7f))
				ck_abort_msg("%llx: %llx", (unsigned long long)value,
					     (unsigned long long)after.output_mask_ptrs);
		}
	ck_assert_int_eq(try_write(&all, &zero, 0x561, 0xfffff0000000007e, &after), 0);
	ck_assert_uint_eq(after.output_mask_ptrs, 0xfffff0000000007f);
}
END_TEST

/* Output goes to memory by ToPA or by single range alone: both MSRs exist for either. */
START_TEST(output_position)
{
	struct vmpt_pt_regs regs = { .output_mask_ptrs = 0x89abcdef01234567 | 0x7f };

	ck_assert_uint_eq(vmpt_pt_output_offset(&regs), 0x89abcdef);
	ck_assert_uint_eq(vmpt_pt_topa_index(&regs), 0x01234567 >> 7);
	ck_assert_uint_eq(vmpt_pt_mask_ptrs(0x01234567 >> 7, 0x89abcdef), regs.output_mask_ptrs);
	/* Bits 27:3 of the offset: the last entry of a table of 256 MB. */
	ck_assert_uint_eq(vmpt_pt_mask_ptrs((1u << 25) - 1, 0), 0xffffffff);
	regs.output_mask_ptrs = ~0ULL;
	ck_assert_uint_eq(vmpt_pt_topa_index(&regs), (1u << 25) - 1);
	ck_assert_uint_eq(vmpt_pt_output_offset(&regs), 0xffffffff);
}
END_TEST

/* ---- CR3_MATCH, ADDRn ---- */

START_TEST(cr3_match)
{
	const struct vmpt_pt_regs before = { .cr3_match = 0x1000 };
	struct vmpt_pt_regs after;
	unsigned int bit, low;

	for (bit = 0; bit < 64; bit++) {
		enum vmpt_gp_reason why = try_write(&all, &before, 0x572, 1ULL << bit, &after);

		ck_assert_int_eq(why, bit < 5 ? VMPT_GP_RESERVED : VMPT_GP_NONE);
		ck_assert_uint_eq(after.cr3_match, bit < 5 ? 0x1000 : 1ULL << bit);
	}
	for (low = 0; low < 32; low++)
		ck_assert_int_eq(try_write(&all, &before, 0x572, 0xabcdef000 | low, NULL),
				 low ? VMPT_GP_RESERVED : VMPT_GP_NONE);
	ck_assert_int_eq(try_write(&all, &before, 0x572, ~0x1fULL, NULL), VMPT_GP_NONE);
}
END_TEST

/* Canonical for 48 and 57 bits: from the top bit of the linear address up all are the same. */
START_TEST(addr_canonical)
{
	static const struct {
		u8 bits;
		u64 value;
		bool ok;
	} rows[] = {
		{ 48, 0, true },
		{ 48, ~0ULL, true },
		{ 48, 0x00007fffffffffff, true },
		{ 48, 0x0000800000000000, false },
		{ 48, 0xffff800000000000, true },
		{ 48, 0xffff7fffffffffff, false },
		{ 48, 0x7fff800000000000, false },
		{ 48, 0x0001000000000000, false },
		{ 48, 0x8000000000000000, false },
		{ 57, 0x00ffffffffffffff, true },
		{ 57, 0x0100000000000000, false },
		{ 57, 0xff00000000000000, true },
		{ 57, 0xfeffffffffffffff, false },
		{ 57, 0xffff800000000000, true },
		{ 57, 0x0000800000000000, true },
		{ 0, 0x0000800000000000, false }, /* not enumerated: as 48 */
		{ 255, 0x0100000000000000, false },
	};
	const struct vmpt_pt_regs before = { .addr = { 1, 2, 3, 4, 5, 6, 7, 8 } };
	struct vmpt_pt_regs after;
	size_t i;

	for (i = 0; i < VMPT_ARRAY_SIZE(rows); i++) {
		struct vmpt_pt_cpuid c = full;
		struct vmpt_pt_rules rules;
		enum vmpt_gp_reason why;

		c.linear_bits = rows[i].bits;
		vmpt_pt_rules_init(&rules, &c);
		why = try_write(&rules, &before, 0x580 + (u32)_i, rows[i].value, &after);
		ck_assert_msg(why == (rows[i].ok ? VMPT_GP_NONE : VMPT_GP_NOT_CANONICAL),
			      "ADDR MSR %d, row %zu: %s", _i, i, vmpt_gp_reason(why));
		ck_assert_uint_eq(after.addr[_i], rows[i].ok ? rows[i].value : (u64)_i + 1);
	}
}
END_TEST

START_TEST(addr_every_bit)
{
	const struct vmpt_pt_regs before = { 0 };
	const u8 widths[] = { 48, 57 };
	size_t i;
	unsigned int bit;

	for (i = 0; i < 2; i++) {
		struct vmpt_pt_cpuid c = full;
		struct vmpt_pt_rules rules;

		c.linear_bits = widths[i];
		vmpt_pt_rules_init(&rules, &c);
		for (bit = 0; bit < 64; bit++) {
			bool ok = bit < widths[i] - 1u;

			ck_assert_int_eq(!try_write(&rules, &before, 0x587, 1ULL << bit, NULL), ok);
			ck_assert_int_eq(!try_write(&rules, &before, 0x587, ~(1ULL << bit), NULL),
					 ok);
		}
	}
}
END_TEST

TEST_SUITE()
{
	Suite *suite = suite_create("pt-regs");
	TCase *tc = tcase_create("there or not");

	setup();
	tcase_add_test(tc, msr_numbers);
	tcase_add_test(tc, registers_by_name);
	tcase_add_loop_test(tc, existence, 0, ORACLE_MSRS);
	tcase_add_test(tc, nothing_without_pt);
	suite_add_tcase(suite, tc);

	tc = tcase_create("values");
	tcase_add_loop_test(tc, status_bits, 0, 4);
	tcase_add_test(tc, status_rows);
	tcase_add_test(tc, status_packet_byte_cnt);
	tcase_add_loop_test(tc, output_base, 32, 53);
	tcase_add_test(tc, output_base_silly_maxphyaddr);
	tcase_add_test(tc, output_mask_ptrs);
	tcase_add_test(tc, output_position);
	tcase_add_test(tc, cr3_match);
	tcase_add_loop_test(tc, addr_canonical, 0, 8);
	tcase_add_test(tc, addr_every_bit);
	suite_add_tcase(suite, tc);

	return suite;
}
