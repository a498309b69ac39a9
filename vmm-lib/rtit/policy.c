// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* What a guest with RTIT is shown: RTIT has no CPUID, only family, model and stepping. */
#include "vmm-lib/rtit.h"

#define LEAF7_EBX_PT (1u << 25)
#define XSS_PT	     (1u << 8)
/* CPUID.1:EAX: the type and reserved bits are kept. */
#define EAX_KEPT 0xf000f000u

/* 1.2 */
static const struct vmpt_rtit_signature signatures[] = {
	/* Silvermont */
	{ 0x6, 0x37, 0x8 },
	{ 0x6, 0x5d, 0x0 },
	{ 0x6, 0x5d, 0x1 },
	{ 0x6, 0x4a, 0x8 },
	{ 0x6, 0x4d, 0x8 },
	{ 0x6, 0x5a, 0x0 },
	/* Airmont */
	{ 0x6, 0x4c, 0x3 },
};

const struct vmpt_rtit_signature *vmpt_rtit_signatures(unsigned int *n)
{
	*n = VMPT_ARRAY_SIZE(signatures);
	return signatures;
}

/*
 * SDM 2A, CPUID, "Version Information": the extended family counts from family 0FH on, the extended
 * model also for family 6.
 */
static u32 version(const struct vmpt_rtit_signature *s)
{
	u32 family = s->family < 0xf ? s->family : 0xf;
	u32 extended = (u32)(s->family - family);
	u32 model = s->model & 0xfu;

	if (family == 6 || family == 0xf)
		model |= (u32)(s->model >> 4) << 12;
	return extended << 20 | family << 8 | model << 4 | (s->stepping & 0xfu);
}

void vmpt_rtit_cpuid(const struct vmpt_rtit_signature *signature, u32 leaf, u32 subleaf,
		     struct vmpt_cpuid_regs *regs)
{
	if (leaf == 1)
		regs->eax = (regs->eax & EAX_KEPT) | version(signature);
	else if (leaf == 7 && subleaf == 0)
		regs->ebx &= ~LEAF7_EBX_PT;
	else if (leaf == 0xd && subleaf == 1)
		regs->ecx &= ~XSS_PT;
	else if (leaf == 0x14 || (leaf == 0xd && subleaf == 8))
		*regs = (struct vmpt_cpuid_regs){ 0 };
}
