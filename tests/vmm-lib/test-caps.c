// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* vmm-lib/caps.c: reading made-up processors, and what a guest is offered of a host. */
#include "tests/support/support.h"
#include "tests/vmm-lib/guest.h"

#define FAIL (-VMPT_E_IO)

/* A processor: CPUID and MSRs in tables, and what was read. */
struct cpu {
	struct vmpt_cpuid_regs leaf0, leaf1, leaf7, leaf14[2], leaf15, ext0, ext8;
	u64 msr[0x11]; /* 480H up */
	u32 no_msrs;   /* bit n: 480H + n cannot be read */
	u32 fail_leaf, fail_subleaf;
	bool fails;
	unsigned int asked, msrs_read, secondary_read, subleaf1_asked;
};

static int cpu_cpuid(void *opaque, u32 leaf, u32 subleaf, struct vmpt_cpuid_regs *regs)
{
	struct cpu *cpu = opaque;

	cpu->asked++;
	if (cpu->fails && leaf == cpu->fail_leaf && subleaf == cpu->fail_subleaf)
		return FAIL;
	switch (leaf) {
	case 0:
		*regs = cpu->leaf0;
		return 0;
	case 1:
		*regs = cpu->leaf1;
		return 0;
	case 7:
		*regs = cpu->leaf7;
		return 0;
	case 0x14:
		ck_assert_uint_le(subleaf, 1);
		cpu->subleaf1_asked += subleaf;
		*regs = cpu->leaf14[subleaf];
		return 0;
	case 0x15:
		*regs = cpu->leaf15;
		return 0;
	case 0x80000000:
		*regs = cpu->ext0;
		return 0;
	case 0x80000008:
		*regs = cpu->ext8;
		return 0;
	default:
		ck_abort_msg("leaf %#x was read", leaf);
	}
}

static int cpu_rdmsr(void *opaque, u32 msr, u64 *value)
{
	struct cpu *cpu = opaque;

	ck_assert(msr >= 0x480 && msr <= 0x490);
	cpu->msrs_read++;
	cpu->secondary_read += msr == 0x48b;
	if (cpu->no_msrs >> (msr - 0x480) & 1)
		return FAIL;
	*value = cpu->msr[msr - 0x480];
	return 0;
}

/* Controls that may be 1 are in the high half. */
#define MAY(bit)       (1ULL << (32 + (bit)))
#define SECONDARY_BITS (MAY(1) | MAY(19) | MAY(24) | MAY(25))

/* Has everything; the plain capability MSRs allow nothing for PT, the TRUE ones do. */
static void cpu_full(struct cpu *cpu)
{
	*cpu = (struct cpu){
		.leaf0 = { .eax = 0x16 },
		.leaf1 = { .eax = 0x000606a6, .ecx = 1u << 5 },
		.leaf7 = { .ebx = 1u << 25 },
		.leaf14 = { { 1, 0x1ff, 0x8000000f, 0 }, { 0xfffe0004, 0xfffdfffb, 0, 0 } },
		.leaf15 = { 2, 168, 24000000, 0 },
		.ext0 = { .eax = 0x80000008 },
		.ext8 = { .eax = 57u << 8 | 46 },
	};

	cpu->msr[0x00] = 1ULL << 55;
	cpu->msr[0x05] = 1u << 14;
	cpu->msr[0x0b] = SECONDARY_BITS;
	cpu->msr[0x0e] = MAY(31);
	cpu->msr[0x0f] = MAY(24) | MAY(25);
	cpu->msr[0x10] = MAY(17) | MAY(18);
}

#define ALL_VMX 0x1ff

static u32 read_vmx_of(struct cpu *cpu)
{
	struct vmpt_cpu_reader reader = { cpu_cpuid, cpu_rdmsr, cpu };
	struct vmpt_caps caps;

	ck_assert_int_eq(vmpt_caps_read(&caps, &reader), 0);
	return caps.vmx;
}

START_TEST(read_full)
{
	struct cpu cpu;
	struct vmpt_cpu_reader reader = { cpu_cpuid, cpu_rdmsr, &cpu };
	struct vmpt_caps caps;

	cpu_full(&cpu);
	ck_assert_int_eq(vmpt_caps_read(&caps, &reader), 0);
	ck_assert_uint_eq(caps.cpuid.present, 1);
	ck_assert_uint_eq(caps.cpuid.maxphyaddr, 46);
	ck_assert_uint_eq(caps.cpuid.linear_bits, 57);
	ck_assert_mem_eq(caps.cpuid.leaf14, cpu.leaf14, sizeof(cpu.leaf14));
	ck_assert_uint_eq(caps.cpuid.tsc_denominator, 2);
	ck_assert_uint_eq(caps.cpuid.tsc_numerator, 168);
	ck_assert_uint_eq(caps.cpuid.crystal_hz, 24000000);
	ck_assert_uint_eq(caps.vmx, ALL_VMX);
}
END_TEST

/* One control bit missing: what is left, by 33.5.1 and the rule for the GPA control. */
static const struct {
	u8 msr; /* 480H + */
	u64 gone;
	u32 vmx;
} missing_controls[] = {
	{ 0x05, 1u << 14,
	  ALL_VMX & ~(VMPT_VMX_PT | VMPT_VMX_CONCEAL_EXEC | VMPT_VMX_CONCEAL_EXIT |
		      VMPT_VMX_CONCEAL_ENTRY) },
	{ 0x0b, MAY(1), ALL_VMX & ~(VMPT_VMX_EPT | VMPT_VMX_USE_GPA) },
	{ 0x0b, MAY(19), ALL_VMX & ~VMPT_VMX_CONCEAL_EXEC },
	{ 0x0b, MAY(24), ALL_VMX & ~VMPT_VMX_USE_GPA },
	{ 0x0b, MAY(25), ALL_VMX & ~VMPT_VMX_TSC_SCALING },
	{ 0x0f, MAY(24), ALL_VMX & ~VMPT_VMX_CONCEAL_EXIT },
	{ 0x0f, MAY(25), ALL_VMX & ~(VMPT_VMX_CLEAR_CTL | VMPT_VMX_USE_GPA) },
	{ 0x10, MAY(17), ALL_VMX & ~VMPT_VMX_CONCEAL_ENTRY },
	{ 0x10, MAY(18), ALL_VMX & ~(VMPT_VMX_LOAD_CTL | VMPT_VMX_USE_GPA) },
	/* no secondary controls at all */
	{ 0x0e, MAY(31),
	  VMPT_VMX_PT | VMPT_VMX_CONCEAL_EXIT | VMPT_VMX_CONCEAL_ENTRY | VMPT_VMX_CLEAR_CTL |
		  VMPT_VMX_LOAD_CTL },
	/* no TRUE controls: the plain MSRs, which have nothing */
	{ 0x00, 1ULL << 55, VMPT_VMX_PT },
};

START_TEST(missing_control)
{
	struct cpu cpu;

	cpu_full(&cpu);
	cpu.msr[missing_controls[_i].msr] &= ~missing_controls[_i].gone;
	ck_assert_uint_eq(read_vmx_of(&cpu), missing_controls[_i].vmx);
	/* A bit of the low half, "must be 1", does not mean that it may be 1. */
	cpu_full(&cpu);
	cpu.msr[missing_controls[_i].msr] &= ~missing_controls[_i].gone;
	if (missing_controls[_i].gone >> 32 && missing_controls[_i].msr)
		cpu.msr[missing_controls[_i].msr] |= missing_controls[_i].gone >> 32;
	ck_assert_uint_eq(read_vmx_of(&cpu), missing_controls[_i].vmx);
}
END_TEST

START_TEST(plain_controls)
{
	struct cpu cpu;

	cpu_full(&cpu);
	cpu.msr[0x00] = 0;
	cpu.msr[0x02] = cpu.msr[0x0e];
	cpu.msr[0x03] = cpu.msr[0x0f];
	cpu.msr[0x04] = cpu.msr[0x10];
	cpu.msr[0x0e] = cpu.msr[0x0f] = cpu.msr[0x10] = 0;
	cpu.no_msrs = 1u << 0x0e | 1u << 0x0f | 1u << 0x10;
	ck_assert_uint_eq(read_vmx_of(&cpu), ALL_VMX);
}
END_TEST

START_TEST(msrs_that_are_not_read)
{
	struct cpu cpu;
	struct vmpt_cpu_reader reader = { cpu_cpuid, NULL, &cpu };
	struct vmpt_caps caps;

	/* no VMX: none of its MSRs exists */
	cpu_full(&cpu);
	cpu.leaf1.ecx = 0;
	ck_assert_uint_eq(read_vmx_of(&cpu), 0);
	ck_assert_uint_eq(cpu.msrs_read, 0);
	/* no secondary controls: 48BH does not exist */
	cpu_full(&cpu);
	cpu.msr[0x0e] = 0;
	read_vmx_of(&cpu);
	ck_assert_uint_eq(cpu.secondary_read, 0);
	/* a reader without rdmsr */
	cpu_full(&cpu);
	ck_assert_int_eq(vmpt_caps_read(&caps, &reader), 0);
	ck_assert_uint_eq(caps.vmx, 0);
	/* all fail */
	cpu_full(&cpu);
	cpu.no_msrs = ~0u;
	ck_assert_uint_eq(read_vmx_of(&cpu), 0);
	/* without PT in CPUID, VMX_MISC[14] says nothing, and EPT still counts */
	cpu_full(&cpu);
	cpu.leaf7.ebx = 0;
	ck_assert_uint_eq(read_vmx_of(&cpu) & (VMPT_VMX_PT | VMPT_VMX_CONCEAL_EXIT), 0);
	ck_assert_uint_eq(read_vmx_of(&cpu) & VMPT_VMX_EPT, VMPT_VMX_EPT);
}
END_TEST

/* 33.3.1.2, and neighbours that are not in the list. */
static const struct {
	u32 signature;
	bool no_lbr;
} models[] = {
	{ 0x000306d4, true },  /* 06_3DH */
	{ 0x00040671, true },  /* 06_47H */
	{ 0x000406e3, true },  /* 06_4EH */
	{ 0x000406f1, true },  /* 06_4FH */
	{ 0x00050663, true },  /* 06_56H */
	{ 0x000506e3, true },  /* 06_5EH */
	{ 0x000306c3, false }, /* 06_3CH */
	{ 0x00050654, false }, /* 06_55H */
	{ 0x000506c9, false }, /* 06_5CH */
	{ 0x000606a6, false }, /* 06_6AH */
	{ 0x00030fd4, false }, /* family 0FH */
};

START_TEST(lbr_models)
{
	struct cpu cpu;

	cpu_full(&cpu);
	cpu.leaf1.eax = models[_i].signature;
	ck_assert_uint_eq(read_vmx_of(&cpu), ALL_VMX | (models[_i].no_lbr ? VMPT_VMX_NO_LBR : 0));
	cpu.leaf7.ebx = 0;
	ck_assert_uint_eq(read_vmx_of(&cpu) & VMPT_VMX_NO_LBR, 0);
}
END_TEST

START_TEST(leaves_that_are_not_there)
{
	struct cpu cpu;
	struct vmpt_cpu_reader reader = { cpu_cpuid, NULL, &cpu };
	struct vmpt_caps caps;
	static const u32 last_without[] = { 0, 1, 6, 7, 0x13 };
	size_t i;

	/* leaf 7 or 14H above the last one: no PT, and the leaf is not read */
	for (i = 0; i < VMPT_ARRAY_SIZE(last_without); i++) {
		cpu_full(&cpu);
		cpu.leaf0.eax = last_without[i];
		ck_assert_int_eq(vmpt_caps_read(&caps, &reader), 0);
		ck_assert_uint_eq(caps.cpuid.present, 0);
		ck_assert_uint_eq(caps.cpuid.leaf14[0].ebx, 0);
	}
	cpu_full(&cpu);
	cpu.leaf0.eax = 0x14;
	ck_assert_int_eq(vmpt_caps_read(&caps, &reader), 0);
	ck_assert_uint_eq(caps.cpuid.present, 1);
	ck_assert_uint_eq(caps.cpuid.tsc_numerator, 0);
	/* subleaf 1 above the last one */
	cpu_full(&cpu);
	cpu.leaf14[0].eax = 0;
	ck_assert_int_eq(vmpt_caps_read(&caps, &reader), 0);
	ck_assert_uint_eq(cpu.subleaf1_asked, 0);
	ck_assert_uint_eq(caps.cpuid.leaf14[1].eax, 0);
	/* subleaves of a later processor: not read (cpu_cpuid() would fail), but counted */
	cpu_full(&cpu);
	cpu.leaf14[0].eax = ~0u;
	ck_assert_int_eq(vmpt_caps_read(&caps, &reader), 0);
	ck_assert_uint_eq(cpu.subleaf1_asked, 1);
	ck_assert_uint_eq(caps.cpuid.leaf14[0].eax, ~0u);
	/* no 80000008H; the second: a processor without any extended leaf */
	cpu_full(&cpu);
	cpu.ext0.eax = 0x80000007;
	ck_assert_int_eq(vmpt_caps_read(&caps, &reader), 0);
	ck_assert(caps.cpuid.maxphyaddr == 36 && caps.cpuid.linear_bits == 48);
	cpu.ext0.eax = 0x12345678;
	ck_assert_int_eq(vmpt_caps_read(&caps, &reader), 0);
	ck_assert(caps.cpuid.maxphyaddr == 36 && caps.cpuid.linear_bits == 48);
}
END_TEST

static const u32 failing[][2] = { { 0, 0 },    { 1, 0 },    { 7, 0 },	       { 0x14, 0 },
				  { 0x14, 1 }, { 0x15, 0 }, { 0x80000000, 0 }, { 0x80000008, 0 } };

START_TEST(reader_missing)
{
	struct vmpt_cpu_reader reader = { NULL, cpu_rdmsr, NULL };
	struct vmpt_caps caps, before;

	memset(&caps, 0xa5, sizeof(caps));
	before = caps;
	ck_assert_int_eq(vmpt_caps_read(&caps, &reader), -VMPT_E_INVAL);
	ck_assert_int_eq(vmpt_caps_read(&caps, NULL), -VMPT_E_INVAL);
	ck_assert_mem_eq(&caps, &before, sizeof(caps));
	reader.cpuid = cpu_cpuid;
	ck_assert_int_eq(vmpt_caps_read(NULL, &reader), -VMPT_E_INVAL);
}
END_TEST

START_TEST(cpuid_fails)
{
	struct cpu cpu;
	struct vmpt_cpu_reader reader = { cpu_cpuid, cpu_rdmsr, &cpu };
	struct vmpt_caps caps;

	cpu_full(&cpu);
	cpu.fails = true;
	cpu.fail_leaf = failing[_i][0];
	cpu.fail_subleaf = failing[_i][1];
	ck_assert_int_eq(vmpt_caps_read(&caps, &reader), FAIL);
}
END_TEST

START_TEST(policy_all)
{
	ck_assert_uint_eq(vmpt_policy_all.ranges_max, 4);
	ck_assert(!vmpt_policy_all.hide && !vmpt_policy_all.no_pt);
}
END_TEST

#define HIDE(cap) (1u << VMPT_CAP_##cap)

/* D-d: leaf 14H.0 EBX[4] and [5] of the host, what the policy hides, and what it does not say. */
static const struct {
	u32 ebx, hide;
	bool no_pt;
	const char *note[2];
} notes[] = {
	{ 0x30, 0, false, { "C-states" } },
	{ 0x30, HIDE(POWER), false, { NULL } },
	{ 0x30, HIDE(PTWRITE), false, { "PTWRITE", "C-states" } },
	{ 0x30, HIDE(PTWRITE) | HIDE(POWER), false, { "PTWRITE" } },
	{ 0x30, 0, true, { "PTWRITE" } },
	{ 0x20, HIDE(PTWRITE), false, { "C-states" } },
	{ 0x10, 0, false, { NULL } },
	{ 0x00, HIDE(PTWRITE), false, { NULL } },
};

START_TEST(dd_notes)
{
	struct vmpt_policy policy = { .hide = notes[_i].hide, .no_pt = notes[_i].no_pt };
	struct vmpt_caps host = { .cpuid.present = 1 };
	const char *note;
	unsigned int i;

	host.cpuid.leaf14[0].ebx = notes[_i].ebx;
	for (i = 0; i < 2 && notes[_i].note[i]; i++) {
		note = vmpt_policy_note(&host, &policy, i);
		ck_assert(note && strstr(note, notes[_i].note[i]));
	}
	ck_assert_ptr_null(vmpt_policy_note(&host, &policy, i));
	host.cpuid.present = 0;
	ck_assert_ptr_null(vmpt_policy_note(&host, &policy, 0));
}
END_TEST

/* A host with all registers full, @policy, and leaf 14H of the guest by hand. */
static const struct {
	u32 hide;
	u8 ranges_max;
	struct vmpt_cpuid_regs sub0, sub1;
} offers[] = {
	/* D10, D11: fields that the library does not know, and the fabric, are never offered. */
	{ 0, 4, { 1, 0x1ff, 0x80000007, 0 }, { 0xffff0004, 0xffffffff, 0, 0 } },
	{ 0, 7, { 1, 0x1ff, 0x80000007, 0 }, { 0xffff0004, 0xffffffff, 0, 0 } },
	{ 0, 2, { 1, 0x1ff, 0x80000007, 0 }, { 0xffff0002, 0xffffffff, 0, 0 } },
	{ 0, 0, { 1, 0x1fb, 0x80000007, 0 }, { 0xffff0000, 0xffffffff, 0, 0 } },
	{ HIDE(CR3_FILTER), 4, { 1, 0x1fe, 0x80000007, 0 }, { 0xffff0004, 0xffffffff, 0, 0 } },
	{ HIDE(PSB_CYC), 4, { 1, 0x1fd, 0x80000007, 0 }, { 0xffff0004, 0, 0, 0 } },
	{ HIDE(IP_FILTER), 4, { 1, 0x1fb, 0x80000007, 0 }, { 0xffff0000, 0xffffffff, 0, 0 } },
	{ HIDE(MTC), 4, { 1, 0x1f7, 0x80000007, 0 }, { 0x00000004, 0xffffffff, 0, 0 } },
	{ HIDE(PTWRITE), 4, { 1, 0x1ef, 0x80000007, 0 }, { 0xffff0004, 0xffffffff, 0, 0 } },
	{ HIDE(POWER), 4, { 1, 0x1df, 0x80000007, 0 }, { 0xffff0004, 0xffffffff, 0, 0 } },
	{ HIDE(PRESERVE), 4, { 1, 0x1bf, 0x80000007, 0 }, { 0xffff0004, 0xffffffff, 0, 0 } },
	{ HIDE(EVENT), 4, { 1, 0x17f, 0x80000007, 0 }, { 0xffff0004, 0xffffffff, 0, 0 } },
	{ HIDE(TNT_DISABLE), 4, { 1, 0x0ff, 0x80000007, 0 }, { 0xffff0004, 0xffffffff, 0, 0 } },
	{ HIDE(TOPA), 4, { 1, 0x1ff, 0x80000004, 0 }, { 0xffff0004, 0xffffffff, 0, 0 } },
	{ HIDE(TOPA_MULTI), 4, { 1, 0x1ff, 0x80000005, 0 }, { 0xffff0004, 0xffffffff, 0, 0 } },
	{ HIDE(SINGLE_RANGE), 4, { 1, 0x1ff, 0x80000003, 0 }, { 0xffff0004, 0xffffffff, 0, 0 } },
	{ HIDE(FABRIC), 4, { 1, 0x1ff, 0x80000007, 0 }, { 0xffff0004, 0xffffffff, 0, 0 } },
	{ HIDE(RANGES), 4, { 1, 0x1fb, 0x80000007, 0 }, { 0xffff0000, 0xffffffff, 0, 0 } },
	{ HIDE(MTC_PERIODS), 4, { 1, 0x1f7, 0x80000007, 0 }, { 0x00000004, 0xffffffff, 0, 0 } },
	{ HIDE(CYC_THRESHOLDS), 4, { 1, 0x1fd, 0x80000007, 0 }, { 0xffff0004, 0, 0, 0 } },
	{ HIDE(PSB_FREQS), 4, { 1, 0x1fd, 0x80000007, 0 }, { 0xffff0004, 0, 0, 0 } },
	{ HIDE(MAX_SUBLEAF), 4, { 0, 0x1f1, 0x80000007, 0 }, { 0, 0, 0, 0 } },
};

START_TEST(offered)
{
	struct vmpt_policy policy = { .hide = offers[_i].hide,
				      .ranges_max = offers[_i].ranges_max };
	struct vmpt_caps host, guest;
	struct vmpt_refusal why;

	guest_full_caps(&host);
	memset(host.cpuid.leaf14, 0xff, sizeof(host.cpuid.leaf14));
	ck_assert_int_eq(vmpt_caps_offer(&host, &policy, &guest, &why), 0);
	ck_assert_uint_eq(guest.cpuid.present, 1);
	ck_assert_uint_eq(guest.vmx, 0);
	ck_assert_mem_eq(&guest.cpuid.leaf14[0], &offers[_i].sub0, sizeof(offers[_i].sub0));
	ck_assert_mem_eq(&guest.cpuid.leaf14[1], &offers[_i].sub1, sizeof(offers[_i].sub1));
	ck_assert_uint_eq(guest.cpuid.maxphyaddr, 46);
	ck_assert_uint_eq(guest.cpuid.tsc_numerator, 168);
	ck_assert_int_eq(vmpt_caps_check(&host, &guest, &why), 0);
}
END_TEST

/* Nothing to offer is a valid result, an unusable host is a refusal. */
static void expect_refusal(const struct vmpt_caps *host, u32 hide, const char *field)
{
	struct vmpt_policy policy = { .hide = hide, .ranges_max = 4 };
	struct vmpt_refusal why;
	struct vmpt_caps guest;

	ck_assert_int_eq(vmpt_caps_offer(host, &policy, &guest, &why), -VMPT_E_CAPS);
	ck_assert_str_eq(why.field, field);
	ck_assert_uint_eq(guest.cpuid.present, 0);
	ck_assert_uint_eq(guest.cpuid.leaf14[0].ebx, 0);
	ck_assert_int_eq(vmpt_caps_offer(host, &policy, &guest, NULL), -VMPT_E_CAPS);
}

START_TEST(not_offered)
{
	struct vmpt_policy none = { .no_pt = true, .ranges_max = 4 };
	struct vmpt_caps host, guest;

	guest_full_caps(&host);
	ck_assert_int_eq(vmpt_caps_offer(&host, &none, &guest, NULL), 0);
	ck_assert_uint_eq(guest.cpuid.present, 0);
	host.cpuid.present = 0;
	ck_assert_int_eq(vmpt_caps_offer(&host, &vmpt_policy_all, &guest, NULL), 0);
	ck_assert_uint_eq(guest.cpuid.present, 0);

	guest_full_caps(&host);
	expect_refusal(&host, HIDE(LIP), "CPUID.14H.0:ECX[31] LIP");
	expect_refusal(&host, HIDE(TOPA) | HIDE(SINGLE_RANGE),
		       "CPUID.14H.0:ECX[2,0] output schemes");
	host.vmx &= ~(u32)VMPT_VMX_PT;
	expect_refusal(&host, 0, "IA32_VMX_MISC[14]");
	guest_full_caps(&host);
	host.cpuid.maxphyaddr = 53;
	expect_refusal(&host, 0, "CPUID.80000008H:EAX[7:0] MAXPHYADDR");
	host.cpuid.maxphyaddr = 31;
	expect_refusal(&host, 0, "CPUID.80000008H:EAX[7:0] MAXPHYADDR");
	host.cpuid.maxphyaddr = 52;
	host.cpuid.linear_bits = 49;
	expect_refusal(&host, 0, "CPUID.80000008H:EAX[15:8] linear-address width");
	/* RIPs: nothing to hide */
	guest_full_caps(&host);
	host.cpuid.leaf14[0].ecx = 7;
	none = (struct vmpt_policy){ .hide = HIDE(LIP), .ranges_max = 4 };
	ck_assert_int_eq(vmpt_caps_offer(&host, &none, &guest, NULL), 0);
	ck_assert_uint_eq(guest.cpuid.leaf14[0].ecx, 7);
}
END_TEST

TEST_SUITE()
{
	Suite *suite = suite_create("caps");
	TCase *tcase = tcase_create("caps");

	tcase_add_test(tcase, read_full);
	tcase_add_loop_test(tcase, missing_control, 0, VMPT_ARRAY_SIZE(missing_controls));
	tcase_add_test(tcase, plain_controls);
	tcase_add_test(tcase, msrs_that_are_not_read);
	tcase_add_loop_test(tcase, lbr_models, 0, VMPT_ARRAY_SIZE(models));
	tcase_add_test(tcase, leaves_that_are_not_there);
	tcase_add_test(tcase, reader_missing);
	tcase_add_loop_test(tcase, cpuid_fails, 0, VMPT_ARRAY_SIZE(failing));
	tcase_add_test(tcase, policy_all);
	tcase_add_loop_test(tcase, dd_notes, 0, VMPT_ARRAY_SIZE(notes));
	tcase_add_loop_test(tcase, offered, 0, VMPT_ARRAY_SIZE(offers));
	tcase_add_test(tcase, not_offered);
	suite_add_tcase(suite, tcase);
	return suite;
}
