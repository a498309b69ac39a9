// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Whether a host can carry what a guest's CPUID says (SDM 3 33.3.1, Tables 33-11 and
 * 33-12). Whoever made that CPUID up may be hostile: each field has a rule, each reserved
 * bit is looked at, and a refusal names the field.
 */
#include "vmm-lib/caps-rules.h"

/* How a guest's field stands to the host's. */
enum rule {
	RULE_FLAG,   /* not more than the host has */
	RULE_COUNT,  /* not greater than the host's */
	RULE_BITMAP, /* a subset of the host's encodings */
	RULE_EQUAL,  /* the packets are as they are */
	RULE_NEVER,  /* not virtualized */
};

struct cap_rule {
	const char *field;
	u8 rule;
};

#define LEAF0(name) "CPUID.14H.0:" name
#define LEAF1(name) "CPUID.14H.1:" name

static const struct cap_rule rules[VMPT_CAPS] = {
	[VMPT_CAP_MAX_SUBLEAF] = { LEAF0("EAX last subleaf"), RULE_COUNT },
	[VMPT_CAP_CR3_FILTER] = { LEAF0("EBX[0] CR3 filtering"), RULE_FLAG },
	[VMPT_CAP_PSB_CYC] = { LEAF0("EBX[1] configurable PSB and CYC"), RULE_FLAG },
	[VMPT_CAP_IP_FILTER] = { LEAF0("EBX[2] IP filtering"), RULE_FLAG },
	[VMPT_CAP_MTC] = { LEAF0("EBX[3] MTC"), RULE_FLAG },
	[VMPT_CAP_PTWRITE] = { LEAF0("EBX[4] PTWRITE"), RULE_FLAG },
	[VMPT_CAP_POWER] = { LEAF0("EBX[5] power events"), RULE_FLAG },
	[VMPT_CAP_PRESERVE] = { LEAF0("EBX[6] PSB and PMI preservation"), RULE_FLAG },
	[VMPT_CAP_EVENT] = { LEAF0("EBX[7] Event Trace"), RULE_FLAG },
	[VMPT_CAP_TNT_DISABLE] = { LEAF0("EBX[8] TNT disable"), RULE_FLAG },
	[VMPT_CAP_TOPA] = { LEAF0("ECX[0] ToPA"), RULE_FLAG },
	[VMPT_CAP_TOPA_MULTI] = { LEAF0("ECX[1] ToPA of many entries"), RULE_FLAG },
	[VMPT_CAP_SINGLE_RANGE] = { LEAF0("ECX[2] single-range output"), RULE_FLAG },
	/* Output through it leaves the processor unseen by EPT. */
	[VMPT_CAP_FABRIC] = { LEAF0("ECX[3] trace transport"), RULE_NEVER },
	[VMPT_CAP_LIP] = { LEAF0("ECX[31] LIP"), RULE_EQUAL },
	[VMPT_CAP_RANGES] = { LEAF1("EAX[2:0] RANGECNT"), RULE_COUNT },
	[VMPT_CAP_MTC_PERIODS] = { LEAF1("EAX[31:16] MTC periods"), RULE_BITMAP },
	[VMPT_CAP_CYC_THRESHOLDS] = { LEAF1("EBX[15:0] cycle thresholds"), RULE_BITMAP },
	[VMPT_CAP_PSB_FREQS] = { LEAF1("EBX[31:16] PSB frequencies"), RULE_BITMAP },
};

/* A feature of subleaf 0 that is nothing without values in subleaf 1 (Table 33-11). */
struct feature {
	u8 cap, values;
};

static const struct feature features[] = {
	{ VMPT_CAP_IP_FILTER, VMPT_CAP_RANGES },
	{ VMPT_CAP_MTC, VMPT_CAP_MTC_PERIODS },
	{ VMPT_CAP_PSB_CYC, VMPT_CAP_CYC_THRESHOLDS },
	{ VMPT_CAP_PSB_CYC, VMPT_CAP_PSB_FREQS },
};

const char *vmpt_cap_field(enum vmpt_pt_cap cap)
{
	return rules[cap].field;
}

void vmpt_caps_close(struct vmpt_pt_cpuid *pt)
{
	unsigned int cap;
	size_t i;

	for (i = 0; i < VMPT_ARRAY_SIZE(features); i++)
		if (!vmpt_pt_cap_effective(pt, features[i].values))
			vmpt_pt_cap_set(pt, features[i].cap, 0);
	for (cap = 0; cap < VMPT_CAPS; cap++)
		vmpt_pt_cap_set(pt, cap, vmpt_pt_cap_effective(pt, cap));
}

static int check_machine(const struct vmpt_caps *host, const struct vmpt_caps *guest,
			 struct vmpt_refusal *why)
{
	const struct vmpt_pt_cpuid *h = &host->cpuid, *g = &guest->cpuid;

	if (!h->present)
		return vmpt_refuse(why, VMPT_E_CAPS, VMPT_FIELD_PT, "the host has no PT", 1, 0);
	if (!(host->vmx & VMPT_VMX_PT))
		return vmpt_refuse(why, VMPT_E_CAPS, VMPT_FIELD_VMX_MISC,
				   "the host cannot trace in VMX operation", 1, 0);
	if (guest->vmx)
		return vmpt_refuse(why, VMPT_E_CAPS, "VMX controls for PT",
				   "PT is not offered to a guest's own guests", guest->vmx,
				   host->vmx);
	if (g->maxphyaddr < 32 || g->maxphyaddr > 52)
		return vmpt_refuse(why, VMPT_E_CAPS, VMPT_FIELD_MAXPHYADDR, "not 32 to 52",
				   g->maxphyaddr, h->maxphyaddr);
	if (g->maxphyaddr > h->maxphyaddr)
		return vmpt_refuse(why, VMPT_E_CAPS, VMPT_FIELD_MAXPHYADDR,
				   "more address bits than the host has", g->maxphyaddr,
				   h->maxphyaddr);
	if (g->linear_bits != 48 && g->linear_bits != 57)
		return vmpt_refuse(why, VMPT_E_CAPS, VMPT_FIELD_LINEAR, "not 48 or 57",
				   g->linear_bits, h->linear_bits);
	if (g->linear_bits > h->linear_bits)
		return vmpt_refuse(why, VMPT_E_CAPS, VMPT_FIELD_LINEAR,
				   "more address bits than the host has", g->linear_bits,
				   h->linear_bits);
	return 0;
}

/* Bits of leaf 14H that no field of Tables 33-11 and 33-12 has. */
static int check_reserved(const struct vmpt_pt_cpuid *g, struct vmpt_refusal *why)
{
	static const char *const field[VMPT_PT_SUBLEAVES][4] = {
		{ LEAF0("EAX"), LEAF0("EBX"), LEAF0("ECX"), LEAF0("EDX") },
		{ LEAF1("EAX"), LEAF1("EBX"), LEAF1("ECX"), LEAF1("EDX") },
	};
	u32 known[VMPT_PT_SUBLEAVES][4] = { 0 };
	unsigned int cap, subleaf, reg;

	for (cap = 0; cap < VMPT_CAPS; cap++) {
		const struct vmpt_pt_cap_desc *desc = &vmpt_pt_cap_table[cap];

		known[desc->subleaf][desc->reg] |= (u32)vmpt_mask64(desc->width) << desc->bit;
	}
	for (subleaf = 0; subleaf < VMPT_PT_SUBLEAVES; subleaf++) {
		const struct vmpt_cpuid_regs *regs = &g->leaf14[subleaf];
		const u32 value[4] = { regs->eax, regs->ebx, regs->ecx, regs->edx };

		for (reg = 0; reg < 4; reg++)
			if (value[reg] & ~known[subleaf][reg])
				return vmpt_refuse(why, VMPT_E_CAPS, field[subleaf][reg],
						   "a reserved bit is set", value[reg],
						   known[subleaf][reg]);
	}
	return 0;
}

/* The rule that @g breaks against @h, or NULL. */
static const char *broken(enum vmpt_pt_cap cap, u32 g, u32 h)
{
	switch (rules[cap].rule) {
	case RULE_FLAG:
		return g > h ? "the host has not" : NULL;
	case RULE_COUNT:
		if (cap == VMPT_CAP_MAX_SUBLEAF && g > VMPT_PT_SUBLEAVES - 1)
			return "more subleaves than are virtualized";
		if (cap == VMPT_CAP_RANGES && g > VMPT_PT_RANGES_MAX)
			return "more than four address ranges";
		return g > h ? "more than the host has" : NULL;
	case RULE_BITMAP:
		return g & ~h ? "an encoding that the host has not" : NULL;
	case RULE_EQUAL:
		return g != h ? "not as the host's packets are" : NULL;
	default:
		return g ? "never virtualized" : NULL;
	}
}

/* What a field needs in the guest itself. */
static int check_needs(const struct vmpt_pt_cpuid *g, enum vmpt_pt_cap cap, u32 value, u32 host,
		       struct vmpt_refusal *why)
{
	const struct vmpt_pt_cap_desc *desc = &vmpt_pt_cap_table[cap];

	if (!value)
		return 0;
	if (desc->subleaf > vmpt_pt_cap(g, VMPT_CAP_MAX_SUBLEAF))
		return vmpt_refuse(why, VMPT_E_CAPS, rules[cap].field,
				   "its subleaf is beyond the last one", value, host);
	if (desc->needs != cap && !vmpt_pt_cap(g, desc->needs))
		return vmpt_refuse(why, VMPT_E_CAPS, rules[cap].field,
				   "the field it belongs to is 0", value, host);
	return 0;
}

static int check_features(const struct vmpt_pt_cpuid *h, const struct vmpt_pt_cpuid *g,
			  struct vmpt_refusal *why)
{
	size_t i;

	for (i = 0; i < VMPT_ARRAY_SIZE(features); i++) {
		const struct feature *f = &features[i];

		if (!vmpt_pt_cap(g, f->cap) || vmpt_pt_cap(g, f->values))
			continue;
		return vmpt_refuse(why, VMPT_E_CAPS, rules[f->values].field,
				   g->leaf14[0].eax ? "its feature has no value"
						    : "its feature is there, the subleaf is not",
				   0, vmpt_pt_cap_effective(h, f->values));
	}
	return 0;
}

int vmpt_caps_check_psb(const struct vmpt_pt_cpuid *host, const struct vmpt_pt_cpuid *guest,
			struct vmpt_refusal *why)
{
	u32 freqs = vmpt_pt_cap_effective(host, VMPT_CAP_PSB_FREQS);

	if (vmpt_pt_cap(guest, VMPT_CAP_PSB_CYC) || freqs & 1 ||
	    !vmpt_pt_cap_effective(host, VMPT_CAP_PSB_CYC))
		return 0;
	return vmpt_refuse(why, VMPT_E_CAPS, rules[VMPT_CAP_PSB_FREQS].field,
			   "cannot be hidden: the host does not list encoding 0", 0, freqs);
}

int vmpt_caps_check(const struct vmpt_caps *host, const struct vmpt_caps *guest,
		    struct vmpt_refusal *why)
{
	const struct vmpt_pt_cpuid *h = &host->cpuid, *g = &guest->cpuid;
	unsigned int cap;
	int err;

	/* Whatever else it says, it is never shown. */
	if (!g->present)
		return 0;
	err = check_machine(host, guest, why);
	if (!err)
		err = check_reserved(g, why);
	for (cap = 0; !err && cap < VMPT_CAPS; cap++) {
		u32 value = vmpt_pt_cap(g, cap), has = vmpt_pt_cap_effective(h, cap);
		const char *rule = broken(cap, value, has);

		if (rule)
			return vmpt_refuse(why, VMPT_E_CAPS, rules[cap].field, rule, value, has);
		err = check_needs(g, cap, value, has, why);
	}
	if (!err)
		err = check_features(h, g, why);
	if (!err)
		err = vmpt_caps_check_psb(h, g, why);
	if (!err && !(g->leaf14[0].ecx & 5))
		err = vmpt_refuse(why, VMPT_E_CAPS, VMPT_FIELD_OUTPUT,
				  "neither ToPA nor a single range", 0, h->leaf14[0].ecx & 5);
	return err;
}
