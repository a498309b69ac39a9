// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * CPUID leaf 14H (SDM 3 33.3.1): the table of its fields and three accessors. All that
 * the rest of the project knows about where a capability stands is in this table.
 */
#include "arch/pt-cpuid.h"

enum { EAX, EBX, ECX };

#define CAP(id, what, leaf, r, low, bits, at, parent)  \
	[VMPT_CAP_##id] = {                            \
		.name = (what),                        \
		.place = "CPUID.14H." #leaf ":" #r at, \
		.subleaf = (leaf),                     \
		.reg = (r),                            \
		.bit = (low),                          \
		.width = (bits),                       \
		.needs = VMPT_CAP_##parent,            \
	}

/* Tables 33-11 (subleaf 0) and 33-12 (subleaf 1). A field that is needed needs nothing. */
const struct vmpt_pt_cap_desc vmpt_pt_cap_table[VMPT_CAPS] = {
	CAP(MAX_SUBLEAF, "last subleaf", 0, EAX, 0, 32, "", MAX_SUBLEAF),
	CAP(CR3_FILTER, "CR3 filtering", 0, EBX, 0, 1, "[0]", CR3_FILTER),
	CAP(PSB_CYC, "configurable PSB and cycle-accurate mode", 0, EBX, 1, 1, "[1]", PSB_CYC),
	CAP(IP_FILTER, "IP filtering and TraceStop", 0, EBX, 2, 1, "[2]", IP_FILTER),
	CAP(MTC, "MTC", 0, EBX, 3, 1, "[3]", MTC),
	CAP(PTWRITE, "PTWRITE", 0, EBX, 4, 1, "[4]", PTWRITE),
	CAP(POWER, "power event trace", 0, EBX, 5, 1, "[5]", POWER),
	CAP(PRESERVE, "PSB and PMI preservation", 0, EBX, 6, 1, "[6]", PRESERVE),
	CAP(EVENT, "Event Trace", 0, EBX, 7, 1, "[7]", EVENT),
	CAP(TNT_DISABLE, "TNT disable", 0, EBX, 8, 1, "[8]", TNT_DISABLE),
	CAP(TOPA, "ToPA output", 0, ECX, 0, 1, "[0]", TOPA),
	CAP(TOPA_MULTI, "ToPA tables of several output entries", 0, ECX, 1, 1, "[1]", TOPA),
	CAP(SINGLE_RANGE, "single-range output", 0, ECX, 2, 1, "[2]", SINGLE_RANGE),
	CAP(FABRIC, "output to the trace transport subsystem", 0, ECX, 3, 1, "[3]", FABRIC),
	CAP(LIP, "IP payloads are LIPs", 0, ECX, 31, 1, "[31]", LIP),
	CAP(RANGES, "address ranges (RANGECNT)", 1, EAX, 0, 3, "[2:0]", IP_FILTER),
	CAP(MTC_PERIODS, "MTC period encodings", 1, EAX, 16, 16, "[31:16]", MTC),
	CAP(CYC_THRESHOLDS, "cycle threshold encodings", 1, EBX, 0, 16, "[15:0]", PSB_CYC),
	CAP(PSB_FREQS, "PSB frequency encodings", 1, EBX, 16, 16, "[31:16]", PSB_CYC),
};

/* No field stands in EDX: it is reserved in both subleaves. */
static const u32 *find(const struct vmpt_pt_cpuid *cpuid, const struct vmpt_pt_cap_desc *desc)
{
	const struct vmpt_cpuid_regs *regs = &cpuid->leaf14[desc->subleaf];

	switch (desc->reg) {
	case EAX:
		return &regs->eax;
	case EBX:
		return &regs->ebx;
	default:
		return &regs->ecx;
	}
}

u32 vmpt_pt_cap(const struct vmpt_pt_cpuid *cpuid, enum vmpt_pt_cap cap)
{
	const struct vmpt_pt_cap_desc *desc = &vmpt_pt_cap_table[cap];

	return *find(cpuid, desc) >> desc->bit & (u32)vmpt_mask64(desc->width);
}

void vmpt_pt_cap_set(struct vmpt_pt_cpuid *cpuid, enum vmpt_pt_cap cap, u32 value)
{
	const struct vmpt_pt_cap_desc *desc = &vmpt_pt_cap_table[cap];
	u32 mask = (u32)vmpt_mask64(desc->width) << desc->bit;
	u32 *reg = (u32 *)find(cpuid, desc);

	*reg = (*reg & ~mask) | (value << desc->bit & mask);
}

u32 vmpt_pt_cap_effective(const struct vmpt_pt_cpuid *cpuid, enum vmpt_pt_cap cap)
{
	const struct vmpt_pt_cap_desc *desc = &vmpt_pt_cap_table[cap];
	u32 value;

	if (!cpuid->present || desc->subleaf > cpuid->leaf14[0].eax)
		return 0;
	if (desc->needs != cap && !vmpt_pt_cap(cpuid, (enum vmpt_pt_cap)desc->needs))
		return 0;
	value = vmpt_pt_cap(cpuid, cap);
	if (cap == VMPT_CAP_RANGES && value > VMPT_PT_RANGES_MAX)
		return VMPT_PT_RANGES_MAX;
	return value;
}
