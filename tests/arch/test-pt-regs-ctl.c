// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * arch/pt-regs.c: every field of IA32_RTIT_CTL under every set of capabilities that affects it,
 * against the oracle (regs-oracle.h) and, for the encodings, against the rule itself.
 */
#include "arch/pt-regs.h"
#include "tests/arch/regs-oracle.h"
#include "tests/support/support.h"

/* Leaf 14H.0: EBX[8:0] and ECX[3:0] are what CTL depends on. */
#define CAP_SETS (1u << 13)

static void set_caps(struct vmpt_pt_cpuid *c, unsigned int set)
{
	oracle_full(c);
	c->leaf14[0].ebx = set & 0x1ff;
	c->leaf14[0].ecx = set >> 9;
}

/* Write @ctl with TraceEn clear: the result is that of the oracle. */
static void check_ctl(const struct vmpt_pt_rules *rules, const struct vmpt_pt_cpuid *c, u64 ctl)
{
	struct vmpt_pt_regs regs = { .output_mask_ptrs = 0x7f }, before = regs;
	enum vmpt_gp_reason why = VMPT_GP_REASONS;
	int got = vmpt_pt_wrmsr(rules, &regs, 0x570, ctl, &why);
	bool ok = oracle_ctl_ok(c, ctl);

	if (got != (ok ? 0 : VMPT_GP) || (why == VMPT_GP_NONE) != ok)
		ck_abort_msg("ctl %llx: %d (%s); EBX %x ECX %x, subleaf 1 EAX %x EBX %x",
			     (unsigned long long)ctl, got, vmpt_gp_reason(why), c->leaf14[0].ebx,
			     c->leaf14[0].ecx, c->leaf14[1].eax, c->leaf14[1].ebx);
	if (ok ? regs.ctl != ctl || regs.status != (ctl & 1) << 2
	       : memcmp(&regs, &before, sizeof(regs)) != 0)
		ck_abort_msg("ctl %llx: stored %llx, status %llx", (unsigned long long)ctl,
			     (unsigned long long)regs.ctl, (unsigned long long)regs.status);
}

/* Every bit alone and with TraceEn, under all 8192 sets. */
START_TEST(every_bit_under_every_set)
{
	struct vmpt_pt_rules rules;
	struct vmpt_pt_cpuid c;
	unsigned int set, bit;

	for (set = 0; set < CAP_SETS; set++) {
		set_caps(&c, set);
		vmpt_pt_rules_init(&rules, &c);
		for (bit = 0; bit < 64; bit++) {
			check_ctl(&rules, &c, 1ULL << bit);
			check_ctl(&rules, &c, 1ULL << bit | 1);
			check_ctl(&rules, &c, 1ULL << bit | 0x101);
		}
	}
}
END_TEST

/* Every pair of bits, with one capability alone, and with all but one. */
START_TEST(every_pair_of_bits)
{
	const unsigned int one = 1u << _i;
	const unsigned int sets[] = { one, (CAP_SETS - 1) & ~one };
	struct vmpt_pt_rules rules;
	struct vmpt_pt_cpuid c;
	unsigned int a, b, i;

	for (i = 0; i < VMPT_ARRAY_SIZE(sets); i++) {
		set_caps(&c, sets[i]);
		vmpt_pt_rules_init(&rules, &c);
		for (a = 0; a < 64; a++)
			for (b = a; b < 64; b++)
				check_ctl(&rules, &c, 1ULL << a | 1ULL << b);
	}
}
END_TEST

/* Table 33-6 in words: these bits and no other can be set on a processor with everything. */
START_TEST(reserved_bits_with_all_capabilities)
{
	static const u8 reserved[] = { 18, 23, 28, 29, 30, 48, 49, 50, 51, 52,
				       53, 54, 57, 58, 59, 60, 61, 62, 63 };
	struct vmpt_pt_rules rules;
	struct vmpt_pt_cpuid c;
	enum vmpt_gp_reason why;
	unsigned int bit;
	size_t i;

	oracle_full(&c);
	vmpt_pt_rules_init(&rules, &c);
	for (bit = 0; bit < 64; bit++) {
		struct vmpt_pt_regs regs = { 0 };
		bool is_reserved = false, bad_cfg = bit >= 32 && bit < 48 && bit % 4 >= 2;

		for (i = 0; i < sizeof(reserved); i++)
			is_reserved |= reserved[i] == bit;
		ck_assert_msg(!vmpt_pt_wrmsr(&rules, &regs, 0x570, 1ULL << bit, &why) ==
				      !(is_reserved || bad_cfg),
			      "bit %u: %s", bit, vmpt_gp_reason(why));
		ck_assert_msg(why == (is_reserved ? VMPT_GP_RESERVED
				      : bad_cfg	  ? VMPT_GP_ENCODING
						  : VMPT_GP_NONE),
			      "bit %u: %s", bit, vmpt_gp_reason(why));
	}
}
END_TEST

/* The three fields whose encodings CPUID.14H.1 lists; @use is the bit that makes 0 count. */
static const struct field {
	const char *name;
	unsigned int shift;
	u64 use;
	u32 parent; /* CPUID.14H.0:EBX */
	bool ebx;   /* where the bitmap is: subleaf 1 EBX or EAX … */
	u8 map;	    /* … from this bit on */
} fields[] = {
	{ "MTCFreq", 14, 1 << 9, 1 << 3, false, 16 },
	{ "CycThresh", 19, 1 << 1, 1 << 1, true, 0 },
	{ "PSBFreq", 24, 1 << 0, 1 << 1, true, 16 },
};

static void set_map(struct vmpt_pt_cpuid *c, const struct field *f, u32 map)
{
	u32 *reg = f->ebx ? &c->leaf14[1].ebx : &c->leaf14[1].eax;

	*reg = (*reg & ~(0xffffu << f->map)) | map << f->map;
}

/* All 16 encodings × all 65536 bitmaps × the field in use or not. */
START_TEST(every_encoding_under_every_bitmap)
{
	const struct field *f = &fields[_i];
	struct vmpt_pt_rules rules;
	struct vmpt_pt_cpuid c;
	u32 map, encoding;
	int use;

	oracle_full(&c);
	for (map = 0; map < 0x10000; map++) {
		set_map(&c, f, map);
		vmpt_pt_rules_init(&rules, &c);
		for (encoding = 0; encoding < 16; encoding++)
			for (use = 0; use < 2; use++) {
				u64 ctl = (u64)encoding << f->shift | (use ? f->use : 0);
				bool ok = map >> encoding & 1 || (!encoding && !use);
				struct vmpt_pt_regs regs = { 0 };
				enum vmpt_gp_reason why;

				vmpt_pt_wrmsr(&rules, &regs, 0x570, ctl, &why);
				if (why != (ok ? VMPT_GP_NONE : VMPT_GP_ENCODING) ||
				    regs.ctl != (ok ? ctl : 0))
					ck_abort_msg("%s %u, bitmap %x, use %d: %s", f->name,
						     encoding, map, use, vmpt_gp_reason(why));
			}
	}
}
END_TEST

/* Without its capability a field is reserved to 0, whatever the bitmap says (Table 33-12). */
START_TEST(encodings_without_the_capability)
{
	const struct field *f = &fields[_i];
	const u32 maps[] = { 0, 1, 0xfffe, 0xffff };
	struct vmpt_pt_rules rules;
	struct vmpt_pt_cpuid c;
	enum vmpt_gp_reason why;
	u32 encoding;
	size_t i;

	for (i = 0; i < VMPT_ARRAY_SIZE(maps); i++) {
		oracle_full(&c);
		c.leaf14[0].ebx &= ~f->parent;
		set_map(&c, f, maps[i]);
		vmpt_pt_rules_init(&rules, &c);
		for (encoding = 0; encoding < 16; encoding++) {
			struct vmpt_pt_regs regs = { 0 };

			vmpt_pt_wrmsr(&rules, &regs, 0x570, (u64)encoding << f->shift, &why);
			ck_assert_msg(why == (encoding ? VMPT_GP_RESERVED : VMPT_GP_NONE),
				      "%s %u: %s", f->name, encoding, vmpt_gp_reason(why));
		}
		/* TraceEn with the field 0: independent of its bitmap. */
		check_ctl(&rules, &c, 1);
	}
}
END_TEST

/* The bitmaps are in subleaf 1: without it, no encoding is listed. */
START_TEST(encodings_without_subleaf_1)
{
	const struct field *f = &fields[_i];
	struct vmpt_pt_rules rules;
	struct vmpt_pt_cpuid c;
	u32 encoding;

	oracle_full(&c);
	c.leaf14[0].eax = 0;
	vmpt_pt_rules_init(&rules, &c);
	for (encoding = 0; encoding < 16; encoding++) {
		struct vmpt_pt_regs regs = { 0 };

		ck_assert_int_eq(
			vmpt_pt_wrmsr(&rules, &regs, 0x570, (u64)encoding << f->shift, NULL),
			encoding ? VMPT_GP : 0);
		check_ctl(&rules, &c, (u64)encoding << f->shift | f->use);
	}
}
END_TEST

/* All 65536 values of the four ADDRn_CFG × RANGECNT 0 to 7 × IP filtering, subleaf 1. */
START_TEST(every_addr_cfg_under_every_rangecnt)
{
	const bool ip_filter = _i & 1, subleaf = _i & 2;
	struct vmpt_pt_rules rules;
	struct vmpt_pt_cpuid c;
	u32 count, cfg, n;

	for (count = 0; count < 8; count++) {
		u32 ranges = !ip_filter || !subleaf ? 0 : count < 4 ? count : 4;

		oracle_full(&c);
		c.leaf14[0].ebx = ip_filter ? 0x1ff : 0x1fb;
		c.leaf14[0].eax = subleaf;
		c.leaf14[1].eax = 0xffff0000 | count;
		vmpt_pt_rules_init(&rules, &c);
		for (cfg = 0; cfg < 0x10000; cfg++) {
			struct vmpt_pt_regs regs = { 0 };
			bool ok = true;

			for (n = 0; n < 4; n++)
				ok &= (cfg >> 4 * n & 15) <= (n < ranges ? 2u : 0u);
			if (vmpt_pt_wrmsr(&rules, &regs, 0x570, (u64)cfg << 32, NULL) !=
				    (ok ? 0 : VMPT_GP) ||
			    regs.ctl != (ok ? (u64)cfg << 32 : 0))
				ck_abort_msg("ADDRn_CFG %x, RANGECNT %u, EBX[2] %d", cfg, count,
					     ip_filter);
		}
	}
}
END_TEST

/* Table 33-6, ToPA and FabricEn: 16 sets of ECX × the three bits. */
START_TEST(output_schemes)
{
	struct vmpt_pt_rules rules;
	struct vmpt_pt_cpuid c;
	enum vmpt_gp_reason why;
	unsigned int ecx, bits;

	for (ecx = 0; ecx < 16; ecx++) {
		bool topa = ecx & 1, single = ecx & 4, fabric = ecx & 8;

		oracle_full(&c);
		c.leaf14[0].ecx = ecx;
		vmpt_pt_rules_init(&rules, &c);
		for (bits = 0; bits < 8; bits++) {
			u64 ctl =
				(bits & 1 ? 1 : 0) | (bits & 2 ? 0x40 : 0) | (bits & 4 ? 0x100 : 0);
			struct vmpt_pt_regs regs = { 0 };
			enum vmpt_gp_reason want = VMPT_GP_NONE;

			if (ctl == 1 && !single)
				want = VMPT_GP_OUTPUT;
			if (ctl & 0x40 && !fabric)
				want = VMPT_GP_RESERVED;
			if (ctl & 0x100 && !topa)
				want = VMPT_GP_OUTPUT;
			vmpt_pt_wrmsr(&rules, &regs, 0x570, ctl, &why);
			ck_assert_msg(why == want, "ECX %x, CTL %llx: %s", ecx,
				      (unsigned long long)ctl, vmpt_gp_reason(why));
		}
	}
}
END_TEST

/* 33.2.8.1, 33.2.8.3: TraceEn is set; writes of CTL that keep it, change it, clear it. */
START_TEST(writes_while_tracing)
{
	const u64 on = 0x2501; /* TraceEn, ToPA, TSCEn, BranchEn */
	const struct vmpt_pt_regs tracing = { .ctl = on, .status = 4, .output_mask_ptrs = 0x7f };
	struct vmpt_pt_rules rules;
	struct vmpt_pt_cpuid c;
	enum vmpt_gp_reason why;
	unsigned int bit;

	oracle_full(&c);
	vmpt_pt_rules_init(&rules, &c);
	for (bit = 1; bit < 64; bit++) {
		struct vmpt_pt_regs regs = tracing;
		u64 off = (on & ~1ULL) ^ 1ULL << bit;

		ck_assert_int_eq(vmpt_pt_wrmsr(&rules, &regs, 0x570, on ^ 1ULL << bit, &why),
				 VMPT_GP);
		ck_assert_int_eq(why, VMPT_GP_TRACING);
		ck_assert(!memcmp(&regs, &tracing, sizeof(regs)));

		/* The same write that clears TraceEn may change it, if that is legal. */
		ck_assert_int_eq(vmpt_pt_wrmsr(&rules, &regs, 0x570, off, &why),
				 oracle_ctl_ok(&c, off) ? 0 : VMPT_GP);
		ck_assert_uint_eq(regs.ctl, oracle_ctl_ok(&c, off) ? off : on);
		ck_assert_uint_eq(regs.status, oracle_ctl_ok(&c, off) ? 0 : 4);
	}
}
END_TEST

START_TEST(same_value_while_tracing)
{
	struct vmpt_pt_regs regs = { .ctl = 0x2501, .status = 4 };
	struct vmpt_pt_rules rules;
	struct vmpt_pt_cpuid c;

	oracle_full(&c);
	vmpt_pt_rules_init(&rules, &c);
	ck_assert_int_eq(vmpt_pt_wrmsr(&rules, &regs, 0x570, 0x2501, NULL), 0);
	ck_assert_uint_eq(regs.ctl, 0x2501);
	ck_assert_uint_eq(regs.status, 4);
	/* Stopped meanwhile: the write does not start it again. */
	regs.status = 0x20;
	ck_assert_int_eq(vmpt_pt_wrmsr(&rules, &regs, 0x570, 0x2501, NULL), 0);
	ck_assert_uint_eq(regs.status, 0x20);
}
END_TEST

/* 33.2.9.4: no write of CTL at all, not even of its current value; all else is as usual. */
START_TEST(no_writes_in_vmx_operation)
{
	const u64 values[] = { 0, 1, 0x2500, 0x2501, ~0ULL };
	struct vmpt_pt_regs regs = { .ctl = 0x2500, .output_mask_ptrs = 0x7f };
	struct vmpt_pt_rules rules;
	struct vmpt_pt_cpuid c;
	enum vmpt_gp_reason why;
	u64 value;
	size_t i;

	oracle_full(&c);
	vmpt_pt_rules_init(&rules, &c);
	ck_assert_uint_eq(rules.no_ctl_writes, 0);
	rules.no_ctl_writes = 1;
	for (i = 0; i < VMPT_ARRAY_SIZE(values); i++) {
		ck_assert_int_eq(vmpt_pt_wrmsr(&rules, &regs, 0x570, values[i], &why), VMPT_GP);
		ck_assert_int_eq(why, VMPT_GP_VMX);
		ck_assert_uint_eq(regs.ctl, 0x2500);
	}
	ck_assert_int_eq(vmpt_pt_rdmsr(&rules, &regs, 0x570, &value, NULL), 0);
	ck_assert_uint_eq(value, 0x2500);
	for (i = 0; i < ORACLE_MSRS; i++)
		if (oracle_msrs[i] != 0x570)
			ck_assert_int_eq(vmpt_pt_wrmsr(&rules, &regs, oracle_msrs[i], 0, NULL), 0);
	/* A restore may set what can be there, and TraceEn cannot. */
	ck_assert_int_eq(vmpt_pt_restore_msr(&rules, &regs, 0x570, 0x2400, &why), 0);
	ck_assert_uint_eq(regs.ctl, 0x2400);
	ck_assert_int_eq(vmpt_pt_restore_msr(&rules, &regs, 0x570, 0x2501, &why), VMPT_GP);
	ck_assert_int_eq(why, VMPT_GP_VMX);
	ck_assert_uint_eq(regs.ctl, 0x2400);
}
END_TEST

TEST_SUITE()
{
	Suite *suite = suite_create("pt-regs-ctl");
	TCase *tc = tcase_create("exhaustive");

	tcase_add_test(tc, every_bit_under_every_set);
	tcase_add_loop_test(tc, every_pair_of_bits, 0, 13);
	tcase_add_test(tc, reserved_bits_with_all_capabilities);
	tcase_add_loop_test(tc, every_encoding_under_every_bitmap, 0, 3);
	tcase_add_loop_test(tc, encodings_without_the_capability, 0, 3);
	tcase_add_loop_test(tc, encodings_without_subleaf_1, 0, 3);
	tcase_add_loop_test(tc, every_addr_cfg_under_every_rangecnt, 0, 4);
	suite_add_tcase(suite, tc);

	tc = tcase_create("rules");
	tcase_add_test(tc, output_schemes);
	tcase_add_test(tc, writes_while_tracing);
	tcase_add_test(tc, same_value_while_tracing);
	tcase_add_test(tc, no_writes_in_vmx_operation);
	suite_add_tcase(suite, tc);
	return suite;
}
