// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * What a guest may be shown of leaf 14H (SDM 3 33.3.1): each field has a rule, each reserved
 * bit is looked at. What a later processor adds to the leaf is never passed on.
 */
#include "vmm-lib/caps-leaf.h"

/* How a guest's field stands to the host's. */
enum leaf_kind {
	KIND_FLAG,   /* not more than the host has */
	KIND_COUNT,  /* not greater than the host's */
	KIND_BITMAP, /* a subset of the host's encodings */
	KIND_EQUAL,  /* the packets are as they are */
	KIND_NEVER,  /* not virtualized */
};

/* All others are flags. */
static const u8 kinds[VMPT_CAPS] = {
	[VMPT_CAP_MAX_SUBLEAF] = KIND_COUNT,
	/* Output through it leaves the processor unseen by EPT. */
	[VMPT_CAP_FABRIC] = KIND_NEVER,
	[VMPT_CAP_LIP] = KIND_EQUAL,
	[VMPT_CAP_RANGES] = KIND_COUNT,
	[VMPT_CAP_MTC_PERIODS] = KIND_BITMAP,
	[VMPT_CAP_CYC_THRESHOLDS] = KIND_BITMAP,
	[VMPT_CAP_PSB_FREQS] = KIND_BITMAP,
};

/* Features of subleaf 0 that are nothing without values in subleaf 1 (Table 33-11). */
static const struct {
	u8 cap, values; /* enum vmpt_pt_cap */
} features[] = {
	{ VMPT_CAP_IP_FILTER, VMPT_CAP_RANGES },
	{ VMPT_CAP_MTC, VMPT_CAP_MTC_PERIODS },
	{ VMPT_CAP_PSB_CYC, VMPT_CAP_CYC_THRESHOLDS },
	{ VMPT_CAP_PSB_CYC, VMPT_CAP_PSB_FREQS },
};

void vmpt_leaf_close(struct vmpt_pt_cpuid *pt)
{
	unsigned int cap;
	size_t i;

	for (i = 0; i < VMPT_ARRAY_SIZE(features); i++)
		if (!vmpt_pt_cap_effective(pt, (enum vmpt_pt_cap)features[i].values))
			vmpt_pt_cap_set(pt, (enum vmpt_pt_cap)features[i].cap, 0);
	for (cap = 0; cap < VMPT_CAPS; cap++)
		vmpt_pt_cap_set(pt, (enum vmpt_pt_cap)cap,
				vmpt_pt_cap_effective(pt, (enum vmpt_pt_cap)cap));
}

static enum vmpt_leaf_rule refuse(struct vmpt_leaf_fault *fault, enum vmpt_leaf_rule rule,
				  unsigned int field, u32 guest, u32 host)
{
	fault->rule = (u8)rule;
	fault->field = (u8)field;
	fault->guest = guest;
	fault->host = host;
	return rule;
}

/* Bits of leaf 14H that no field of Tables 33-11 and 33-12 has. */
static enum vmpt_leaf_rule check_reserved(const struct vmpt_pt_cpuid *guest,
					  struct vmpt_leaf_fault *fault)
{
	u32 known[VMPT_PT_SUBLEAVES][4] = { 0 };
	unsigned int cap, subleaf, reg;

	for (cap = 0; cap < VMPT_CAPS; cap++) {
		const struct vmpt_pt_cap_desc *desc = &vmpt_pt_cap_table[cap];

		known[desc->subleaf][desc->reg] |= (u32)vmpt_mask64(desc->width) << desc->bit;
	}
	for (subleaf = 0; subleaf < VMPT_PT_SUBLEAVES; subleaf++) {
		const struct vmpt_cpuid_regs *regs = &guest->leaf14[subleaf];
		const u32 value[4] = { regs->eax, regs->ebx, regs->ecx, regs->edx };

		for (reg = 0; reg < 4; reg++)
			if (value[reg] & ~known[subleaf][reg])
				return refuse(fault, VMPT_LEAF_RESERVED, subleaf * 4 + reg,
					      value[reg], known[subleaf][reg]);
	}
	return VMPT_LEAF_OK;
}

/* The rule that @guest's value of @cap breaks against @host's. */
static enum vmpt_leaf_rule compare(enum vmpt_pt_cap cap, u32 guest, u32 host)
{
	switch (kinds[cap]) {
	case KIND_FLAG:
		return guest > host ? VMPT_LEAF_FLAG : VMPT_LEAF_OK;
	case KIND_COUNT:
		if (cap == VMPT_CAP_MAX_SUBLEAF && guest > VMPT_PT_SUBLEAVES - 1)
			return VMPT_LEAF_SUBLEAVES;
		if (cap == VMPT_CAP_RANGES && guest > VMPT_PT_RANGES_MAX)
			return VMPT_LEAF_RANGES;
		return guest > host ? VMPT_LEAF_COUNT : VMPT_LEAF_OK;
	case KIND_BITMAP:
		return guest & ~host ? VMPT_LEAF_ENCODING : VMPT_LEAF_OK;
	case KIND_EQUAL:
		return guest != host ? VMPT_LEAF_NOT_EQUAL : VMPT_LEAF_OK;
	default:
		return guest ? VMPT_LEAF_NEVER : VMPT_LEAF_OK;
	}
}

/* What a field that is not 0 needs in the guest itself. */
static enum vmpt_leaf_rule check_needs(const struct vmpt_pt_cpuid *guest, enum vmpt_pt_cap cap)
{
	const struct vmpt_pt_cap_desc *desc = &vmpt_pt_cap_table[cap];

	if (desc->subleaf > vmpt_pt_cap(guest, VMPT_CAP_MAX_SUBLEAF))
		return VMPT_LEAF_BEYOND;
	if (desc->needs != cap && !vmpt_pt_cap(guest, (enum vmpt_pt_cap)desc->needs))
		return VMPT_LEAF_PARENT;
	return VMPT_LEAF_OK;
}

static enum vmpt_leaf_rule check_fields(const struct vmpt_pt_cpuid *host,
					const struct vmpt_pt_cpuid *guest,
					struct vmpt_leaf_fault *fault)
{
	unsigned int i;

	for (i = 0; i < VMPT_CAPS; i++) {
		enum vmpt_pt_cap cap = (enum vmpt_pt_cap)i;
		u32 value = vmpt_pt_cap(guest, cap);
		u32 has = vmpt_pt_cap_effective(host, cap);
		enum vmpt_leaf_rule rule = compare(cap, value, has);

		if (!rule && value)
			rule = check_needs(guest, cap);
		if (rule)
			return refuse(fault, rule, cap, value, has);
	}
	return VMPT_LEAF_OK;
}

static enum vmpt_leaf_rule check_features(const struct vmpt_pt_cpuid *host,
					  const struct vmpt_pt_cpuid *guest,
					  struct vmpt_leaf_fault *fault)
{
	size_t i;

	for (i = 0; i < VMPT_ARRAY_SIZE(features); i++) {
		enum vmpt_pt_cap values = (enum vmpt_pt_cap)features[i].values;

		enum vmpt_leaf_rule rule =
			guest->leaf14[0].eax ? VMPT_LEAF_NO_VALUE : VMPT_LEAF_NO_SUBLEAF;

		if (vmpt_pt_cap(guest, (enum vmpt_pt_cap)features[i].cap) &&
		    !vmpt_pt_cap(guest, values))
			return refuse(fault, rule, values, 0, vmpt_pt_cap_effective(host, values));
	}
	return VMPT_LEAF_OK;
}

/*
 * A guest without EBX[1] traces with PSBFreq 0, which a host with EBX[1] takes only if it
 * lists that encoding: else each VM entry of that guest would fail.
 */
static enum vmpt_leaf_rule check_psb(const struct vmpt_pt_cpuid *host,
				     const struct vmpt_pt_cpuid *guest,
				     struct vmpt_leaf_fault *fault)
{
	u32 freqs = vmpt_pt_cap_effective(host, VMPT_CAP_PSB_FREQS);

	if (vmpt_pt_cap(guest, VMPT_CAP_PSB_CYC) || freqs & 1 ||
	    !vmpt_pt_cap_effective(host, VMPT_CAP_PSB_CYC))
		return VMPT_LEAF_OK;
	return refuse(fault, VMPT_LEAF_PSB_0, VMPT_CAP_PSB_FREQS, 0, freqs);
}

/* A guest must have somewhere to write to. */
static enum vmpt_leaf_rule check_output(const struct vmpt_pt_cpuid *host,
					const struct vmpt_pt_cpuid *guest,
					struct vmpt_leaf_fault *fault)
{
	if (vmpt_pt_cap(guest, VMPT_CAP_TOPA) || vmpt_pt_cap(guest, VMPT_CAP_SINGLE_RANGE))
		return VMPT_LEAF_OK;
	return refuse(fault, VMPT_LEAF_OUTPUT, VMPT_CAP_TOPA, 0, host->leaf14[0].ecx & 5);
}

enum vmpt_leaf_rule vmpt_leaf_check(const struct vmpt_pt_cpuid *host,
				    const struct vmpt_pt_cpuid *guest,
				    struct vmpt_leaf_fault *fault)
{
	enum vmpt_leaf_rule rule = check_reserved(guest, fault);

	if (!rule)
		rule = check_fields(host, guest, fault);
	if (!rule)
		rule = check_features(host, guest, fault);
	if (!rule)
		rule = check_psb(host, guest, fault);
	if (!rule)
		rule = check_output(host, guest, fault);
	return rule;
}

enum vmpt_leaf_rule vmpt_leaf_offer(const struct vmpt_pt_cpuid *host, u32 hide,
				    unsigned int ranges_max, struct vmpt_pt_cpuid *offer,
				    struct vmpt_leaf_fault *fault)
{
	enum vmpt_leaf_rule rule;
	unsigned int cap;

	offer->present = 1;
	memset(offer->leaf14, 0, sizeof(offer->leaf14));
	for (cap = 0; cap < VMPT_CAPS; cap++) {
		u32 value = vmpt_pt_cap_effective(host, (enum vmpt_pt_cap)cap);

		if (kinds[cap] == KIND_NEVER || hide >> cap & 1)
			value = 0;
		if (cap == VMPT_CAP_MAX_SUBLEAF && value > VMPT_PT_SUBLEAVES - 1)
			value = VMPT_PT_SUBLEAVES - 1;
		if (cap == VMPT_CAP_RANGES && value > ranges_max)
			value = ranges_max;
		vmpt_pt_cap_set(offer, (enum vmpt_pt_cap)cap, value);
	}
	vmpt_leaf_close(offer);
	rule = check_output(host, offer, fault);
	return rule ? rule : check_psb(host, offer, fault);
}
