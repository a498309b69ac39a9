// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* Conformance: what CPUID shows of PT, by itself and together with the MSRs (33.3.1). */
#include "vmm-lib/caps-rules.h"
#include "vmm-lib/conformance/run.h"

static int ask(struct conformance *c, u32 leaf, u32 subleaf, struct vmpt_cpuid_regs *regs)
{
	int ret;

	memset(regs, 0, sizeof(*regs));
	ret = c->ops->cpuid(c->opaque, leaf, subleaf, regs);
	return ret ? vmpt_conformance_broken(c, ret < 0 ? ret : -VMPT_E_STATE) : DONE;
}

static u32 any(const struct vmpt_cpuid_regs *regs)
{
	return regs->eax | regs->ebx | regs->ecx | regs->edx;
}

/* Leaf 14H is consistent in itself: checked against a host with the same leaf. */
static int consistent(struct conformance *c)
{
	struct vmpt_caps guest = { .cpuid = c->cpuid }, host = guest;
	struct vmpt_refusal why = { 0 };

	host.vmx = VMPT_VMX_PT;
	/* No VMM may show them: the library has no MSRs of them. */
	vmpt_caps_no_triggers(&host);
	if (!vmpt_caps_check(&host, &guest, &why))
		return DONE;
	return vmpt_conformance_differs(c, why.rule, why.field, 0, why.host, why.guest);
}

/* All subleaves above the last one are 0; without PT the whole leaf is. */
static int beyond(struct conformance *c)
{
	static const u32 subleaves[] = { 2, 3, 0x100, 0xffffffff };
	u32 first = c->cpuid.present ? c->cpuid.leaf14[0].eax + 1 : 0;
	struct vmpt_cpuid_regs regs;
	size_t i;

	for (; first < 2; first++) {
		CHECK(ask(c, 0x14, first, &regs));
		if (any(&regs))
			return vmpt_conformance_differs(c, "this subleaf must be 0",
							"CPUID.14H subleaf", first, 0, any(&regs));
	}
	for (i = 0; i < VMPT_ARRAY_SIZE(subleaves); i++) {
		if (subleaves[i] < first)
			continue;
		CHECK(ask(c, 0x14, subleaves[i], &regs));
		if (any(&regs))
			return vmpt_conformance_differs(c, "this subleaf must be 0",
							"CPUID.14H subleaf", subleaves[i], 0,
							any(&regs));
	}
	return DONE;
}

/* XSAVE component 8: hidden, or a supervisor component of 128 bytes (33.3.5.2). */
static int component8(struct conformance *c)
{
	struct vmpt_cpuid_regs list, regs;

	CHECK(ask(c, 0xd, 1, &list));
	CHECK(ask(c, 0xd, 8, &regs));
	if (!(list.ecx & 1u << 8)) {
		if (any(&regs))
			return vmpt_conformance_differs(c,
							"component 8 is described but not listed",
							"CPUID.0DH subleaf", 8, 0, any(&regs));
		return DONE;
	}
	if (!c->cpuid.present)
		return vmpt_conformance_wrong(c, "component 8 is listed without PT",
					      "CPUID.0DH subleaf", 1);
	if (regs.eax != 128 || regs.ebx || !(regs.ecx & 1))
		return vmpt_conformance_differs(c, "component 8 must be 128 bytes, supervisor",
						"CPUID.0DH subleaf", 8, 128, regs.eax);
	return DONE;
}

/* With MTC or a TSC packet a decoder needs the ratio of the clocks (33.5.2.4, 33.8.3). */
static int clocks(struct conformance *c)
{
	u64 value = 0;
	int ret;

	if (!vmpt_pt_cap_effective(&c->cpuid, VMPT_CAP_MTC))
		return vmpt_conformance_skip(c, "the guest has no MTC");
	if (!c->cpuid.tsc_numerator || !c->cpuid.tsc_denominator)
		return vmpt_conformance_wrong(c, "MTC without the TSC/crystal ratio", "CPUID leaf",
					      0x15);
	ret = c->ops->rdmsr(c->opaque, VMPT_MSR_PLATFORM_INFO, &value);
	if (ret < 0)
		return vmpt_conformance_broken(c, ret);
	if (ret || !(value >> 8 & 0xff))
		return vmpt_conformance_wrong(c, "no maximum non-turbo ratio in bits 15:8", "MSR",
					      VMPT_MSR_PLATFORM_INFO);
	return DONE;
}

const struct conformance_scenario vmpt_conformance_cpuid[] = {
	{ "cpuid-consistent", "33.3.1", consistent, false },
	{ "cpuid-beyond", "33.3.1", beyond, true },
	{ "cpuid-component-8", "33.3.5.2", component8, true },
	{ "cpuid-clocks", "33.5.2.4", clocks, false },
	{ 0 }
};
