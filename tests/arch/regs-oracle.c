// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* The rules of the PT MSRs, bit by bit: see regs-oracle.h. */
#include "tests/arch/regs-oracle.h"

const u32 oracle_msrs[ORACLE_MSRS] = { 0x560, 0x561, 0x570, 0x571, 0x572, 0x580, 0x581,
				       0x582, 0x583, 0x584, 0x585, 0x586, 0x587 };

void oracle_full(struct vmpt_pt_cpuid *cpuid)
{
	memset(cpuid, 0, sizeof(*cpuid));
	cpuid->present = 1;
	cpuid->maxphyaddr = 46;
	cpuid->linear_bits = 48;
	cpuid->leaf14[0] = (struct vmpt_cpuid_regs){ .eax = 1, .ebx = 0x1ff, .ecx = 0x8000000f };
	cpuid->leaf14[1] = (struct vmpt_cpuid_regs){ .eax = 0xffff0004, .ebx = 0xffffffff };
}

enum { BASE, PTRS, CTL, STATUS, CR3_MATCH, ADDR };

/* Table 33-6: the bits of CTL that are one flag each, and the bit of leaf 14H.0 they need. */
static const struct {
	u8 bit;
	char reg; /* 'b' EBX, 'c' ECX, '-' nothing */
	u8 at;
} flags[] = {
	{ 0, '-', 0 },	/* TraceEn */
	{ 1, 'b', 1 },	/* CYCEn */
	{ 2, '-', 0 },	/* OS */
	{ 3, '-', 0 },	/* User */
	{ 4, 'b', 5 },	/* PwrEvtEn */
	{ 5, 'b', 4 },	/* FUPonPTW */
	{ 6, 'c', 3 },	/* FabricEn */
	{ 7, 'b', 0 },	/* CR3Filter */
	{ 8, 'c', 0 },	/* ToPA */
	{ 9, 'b', 3 },	/* MTCEn */
	{ 10, '-', 0 }, /* TSCEn */
	{ 11, '-', 0 }, /* DisRETC */
	{ 12, 'b', 4 }, /* PTWEn */
	{ 13, '-', 0 }, /* BranchEn */
	{ 31, 'b', 7 }, /* EventEn */
	{ 55, 'b', 8 }, /* DisTNT */
	{ 56, 'b', 6 }, /* InjectPsbPmiOnEnable */
};

static bool bit(u64 value, unsigned int n)
{
	return value >> n & 1;
}

static bool ebx(const struct vmpt_pt_cpuid *c, unsigned int n)
{
	return bit(c->leaf14[0].ebx, n);
}

static bool ecx(const struct vmpt_pt_cpuid *c, unsigned int n)
{
	return bit(c->leaf14[0].ecx, n);
}

static bool flag_ok(const struct vmpt_pt_cpuid *c, unsigned int n)
{
	size_t i;

	for (i = 0; i < VMPT_ARRAY_SIZE(flags); i++)
		if (flags[i].bit == n)
			return flags[i].reg == '-' ||
			       (flags[i].reg == 'b' ? ebx(c, flags[i].at) : ecx(c, flags[i].at));
	return false;
}

/* Whether bit @n of CTL belongs to a field of more than one bit. */
static bool in_field(unsigned int n)
{
	return (n >= 14 && n <= 17) || (n >= 19 && n <= 22) || (n >= 24 && n <= 27) ||
	       (n >= 32 && n <= 47);
}

/* @map: the bitmap of subleaf 1; @on: the field is in use, so 0 is an encoding too. */
static bool encoding_ok(unsigned int value, bool supported, u32 map, bool on)
{
	if (!supported)
		return value == 0;
	if (value == 0 && !on)
		return true;
	return bit(map, value);
}

static unsigned int ranges(const struct vmpt_pt_cpuid *c)
{
	unsigned int n = c->leaf14[1].eax & 7;

	if (!ebx(c, 2) || c->leaf14[0].eax < 1)
		return 0;
	return n > 4 ? 4 : n;
}

bool oracle_ctl_ok(const struct vmpt_pt_cpuid *c, u64 ctl)
{
	bool sub1 = c->leaf14[0].eax >= 1;
	u32 eax1 = sub1 ? c->leaf14[1].eax : 0, ebx1 = sub1 ? c->leaf14[1].ebx : 0;
	unsigned int n;

	for (n = 0; n < 64; n++)
		if (bit(ctl, n) && !in_field(n) && !flag_ok(c, n))
			return false;
	if (!encoding_ok(ctl >> 14 & 15, ebx(c, 3), eax1 >> 16, bit(ctl, 9)))
		return false;
	if (!encoding_ok(ctl >> 19 & 15, ebx(c, 1), ebx1 & 0xffff, bit(ctl, 1)))
		return false;
	if (!encoding_ok(ctl >> 24 & 15, ebx(c, 1), ebx1 >> 16, bit(ctl, 0)))
		return false;
	for (n = 0; n < 4; n++)
		if ((ctl >> (32 + 4 * n) & 15) > (n < ranges(c) ? 2 : 0))
			return false;
	/* Enabled without ToPA and FabricEn: that is single range. */
	return !(bit(ctl, 0) && !bit(ctl, 8) && !bit(ctl, 6) && !ecx(c, 2));
}

bool oracle_exists(const struct vmpt_pt_cpuid *c, u32 msr)
{
	if (!c->present)
		return false;
	switch (msr) {
	case 0x560:
	case 0x561:
		return ecx(c, 0) || ecx(c, 2);
	case 0x570:
	case 0x571:
		return true;
	case 0x572:
		return ebx(c, 0);
	default:
		return msr >= 0x580 && msr < 0x580 + 2 * ranges(c);
	}
}

static bool status_ok(const struct vmpt_pt_cpuid *c, u64 value)
{
	unsigned int n;

	for (n = 0; n < 64; n++) {
		bool ok = n <= 2 || n == 4 || n == 5 || ((n == 6 || n == 7) && ebx(c, 6)) ||
			  (n >= 32 && n <= 48 && ebx(c, 1));

		if (bit(value, n) && !ok)
			return false;
	}
	return true;
}

static bool base_ok(const struct vmpt_pt_cpuid *c, u64 value)
{
	unsigned int n;

	for (n = 0; n < 64; n++)
		if (bit(value, n) && (n < 7 || n >= c->maxphyaddr))
			return false;
	return true;
}

/* All bits from the top one of the linear address up are the same. */
static bool canonical(const struct vmpt_pt_cpuid *c, u64 value)
{
	unsigned int n;

	for (n = c->linear_bits; n < 64; n++)
		if (bit(value, n) != bit(value, c->linear_bits - 1u))
			return false;
	return true;
}

bool oracle_value_ok(const struct vmpt_pt_cpuid *c, u32 msr, u64 value)
{
	switch (msr) {
	case 0x560:
		return base_ok(c, value);
	case 0x561:
		return true;
	case 0x570:
		return oracle_ctl_ok(c, value);
	case 0x571:
		return status_ok(c, value);
	case 0x572:
		return value % 32 == 0;
	default:
		return canonical(c, value);
	}
}

int oracle_index(u32 msr)
{
	int i;

	for (i = 0; i < ORACLE_MSRS; i++)
		if (oracle_msrs[i] == msr)
			return i;
	return -1;
}

void oracle_init(struct oracle *o, const struct vmpt_pt_cpuid *cpuid)
{
	memset(o, 0, sizeof(*o));
	o->cpuid = cpuid;
	o->value[PTRS] = 0x7f;
}

/* TriggerEn (33.2.6.2): TraceEn, and neither Error nor Stopped. */
static void set_trigger_en(struct oracle *o)
{
	bool on = bit(o->value[CTL], 0) && !bit(o->value[STATUS], 4) && !bit(o->value[STATUS], 5);

	o->value[STATUS] = (o->value[STATUS] & ~4ULL) | (on ? 4 : 0);
}

static void put(struct oracle *o, u32 msr, u64 value)
{
	int i = oracle_index(msr);

	o->value[i] = i == PTRS ? value | 0x7f : value;
	set_trigger_en(o);
}

bool oracle_read(const struct oracle *o, u32 msr, u64 *value)
{
	if (!oracle_exists(o->cpuid, msr))
		return false;
	*value = o->value[oracle_index(msr)];
	return true;
}

bool oracle_write(struct oracle *o, u32 msr, u64 value)
{
	u64 ctl = o->value[CTL];

	if (!oracle_exists(o->cpuid, msr) || !oracle_value_ok(o->cpuid, msr, value))
		return false;
	if (msr == 0x570 && o->no_ctl_writes)
		return false;
	if (bit(ctl, 0) && !(msr == 0x570 && (value == ctl || !bit(value, 0))))
		return false;
	put(o, msr, msr == 0x571 ? (value & ~7ULL) | (o->value[STATUS] & 7) : value);
	return true;
}

bool oracle_restore(struct oracle *o, u32 msr, u64 value)
{
	if (!oracle_exists(o->cpuid, msr) || !oracle_value_ok(o->cpuid, msr, value))
		return false;
	if (msr == 0x570 && o->no_ctl_writes && bit(value, 0))
		return false;
	put(o, msr, value);
	return true;
}
