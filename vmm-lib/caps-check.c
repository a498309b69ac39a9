// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Whether a host can support what a guest's CPUID shows (SDM 3 33.3.1, Tables 33-11 and 33-12). The
 * CPUID may be hostile: each field has a rule, each reserved bit is checked, and a refusal names
 * the field.
 */
#include "vmm-lib/caps-rules.h"

#define LEAF0(name) "CPUID.14H.0:" name
#define LEAF1(name) "CPUID.14H.1:" name

static const char *const fields[VMPT_CAPS] = {
	[VMPT_CAP_MAX_SUBLEAF] = LEAF0("EAX last subleaf"),
	[VMPT_CAP_CR3_FILTER] = LEAF0("EBX[0] CR3 filtering"),
	[VMPT_CAP_PSB_CYC] = LEAF0("EBX[1] configurable PSB and CYC"),
	[VMPT_CAP_IP_FILTER] = LEAF0("EBX[2] IP filtering"),
	[VMPT_CAP_MTC] = LEAF0("EBX[3] MTC"),
	[VMPT_CAP_PTWRITE] = LEAF0("EBX[4] PTWRITE"),
	[VMPT_CAP_POWER] = LEAF0("EBX[5] power events"),
	[VMPT_CAP_PRESERVE] = LEAF0("EBX[6] PSB and PMI preservation"),
	[VMPT_CAP_EVENT] = LEAF0("EBX[7] Event Trace"),
	[VMPT_CAP_TNT_DISABLE] = LEAF0("EBX[8] TNT disable"),
	[VMPT_CAP_TOPA] = LEAF0("ECX[0] ToPA"),
	[VMPT_CAP_TOPA_MULTI] = LEAF0("ECX[1] ToPA of many entries"),
	[VMPT_CAP_SINGLE_RANGE] = LEAF0("ECX[2] single-range output"),
	[VMPT_CAP_FABRIC] = LEAF0("ECX[3] trace transport"),
	[VMPT_CAP_LIP] = LEAF0("ECX[31] LIP"),
	[VMPT_CAP_RANGES] = LEAF1("EAX[2:0] RANGECNT"),
	[VMPT_CAP_MTC_PERIODS] = LEAF1("EAX[31:16] MTC periods"),
	[VMPT_CAP_CYC_THRESHOLDS] = LEAF1("EBX[15:0] cycle thresholds"),
	[VMPT_CAP_PSB_FREQS] = LEAF1("EBX[31:16] PSB frequencies"),
};

static const char *const reserved[VMPT_PT_SUBLEAVES * 4] = {
	LEAF0("EAX"), LEAF0("EBX"), LEAF0("ECX"), LEAF0("EDX"),
	LEAF1("EAX"), LEAF1("EBX"), LEAF1("ECX"), LEAF1("EDX"),
};

static const char *const sentences[VMPT_LEAF_RULES] = {
	[VMPT_LEAF_OK] = "no error",
	[VMPT_LEAF_RESERVED] = "a reserved bit is set",
	[VMPT_LEAF_FLAG] = "missing on the host",
	[VMPT_LEAF_COUNT] = "more than the host has",
	[VMPT_LEAF_SUBLEAVES] = "more subleaves than are virtualized",
	[VMPT_LEAF_RANGES] = "more than four address ranges",
	[VMPT_LEAF_ENCODING] = "an encoding that the host lacks",
	[VMPT_LEAF_NOT_EQUAL] = "differs from the host's packets",
	[VMPT_LEAF_NEVER] = "never virtualized",
	[VMPT_LEAF_BEYOND] = "its subleaf is beyond the last one",
	[VMPT_LEAF_PARENT] = "the field it belongs to is 0",
	[VMPT_LEAF_NO_VALUE] = "its feature needs at least one value",
	[VMPT_LEAF_NO_SUBLEAF] = "its feature is present, but the subleaf is not",
	[VMPT_LEAF_PSB_0] = "cannot be hidden: the host does not list encoding 0",
	[VMPT_LEAF_OUTPUT] = "neither ToPA nor a single range",
};

const char *vmpt_cap_field(enum vmpt_pt_cap cap)
{
	return fields[cap];
}

int vmpt_leaf_refuse(const struct vmpt_leaf_fault *fault, struct vmpt_refusal *why)
{
	const char *field = fields[fault->field];

	if (fault->rule == VMPT_LEAF_RESERVED)
		field = reserved[fault->field];
	else if (fault->rule == VMPT_LEAF_OUTPUT)
		field = VMPT_FIELD_OUTPUT;
	return vmpt_refuse(why, VMPT_E_CAPS, field, sentences[fault->rule], fault->guest,
			   fault->host);
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
				   "PT is not offered to L2 guests", guest->vmx, host->vmx);
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

/* Whether the host has what @guest says of Trigger Tracing. */
static bool has_triggers(const struct vmpt_pt_cpuid *host, const struct vmpt_pt_cpuid *guest)
{
	const struct vmpt_cpuid_regs *h = host->leaf14, *g = guest->leaf14;

	return !(g[0].ebx & ~h[0].ebx & VMPT_TRIGGER_0_EBX) &&
	       (g[1].eax & VMPT_TRIGGER_1_EAX) <= (h[1].eax & VMPT_TRIGGER_1_EAX) &&
	       !(g[1].ecx & ~h[1].ecx & VMPT_TRIGGER_1_ECX);
}

int vmpt_caps_check(const struct vmpt_caps *host, const struct vmpt_caps *guest,
		    struct vmpt_refusal *why)
{
	struct vmpt_caps shown = *guest;
	struct vmpt_leaf_fault fault;
	int err;

	/* Whatever else its CPUID holds, it is never shown. */
	if (!guest->cpuid.present)
		return 0;
	if (has_triggers(&host->cpuid, &guest->cpuid))
		vmpt_caps_no_triggers(&shown);
	err = check_machine(host, guest, why);
	if (!err && vmpt_leaf_check(&host->cpuid, &shown.cpuid, &fault))
		err = vmpt_leaf_refuse(&fault, why);
	return err;
}
