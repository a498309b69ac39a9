/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * What CPUID says of Intel PT (SDM 3 33.3.1, Tables 33-11 and 33-12): leaf 14H as
 * it stands, and one table that names every field of it. Pure functions.
 */
#ifndef VMPT_ARCH_PT_CPUID_H
#define VMPT_ARCH_PT_CPUID_H

#include "arch/types.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The four registers of one CPUID (sub)leaf. */
struct vmpt_cpuid_regs {
	u32 eax, ebx, ecx, edx;
};

/* Leaf 14H has subleaves 0 and 1 in this version of the manual. */
#define VMPT_PT_SUBLEAVES 2
/* "Currently, no processors support more than 4 address ranges" (Table 33-12). */
#define VMPT_PT_RANGES_MAX 4

/* All that CPUID says of one processor's PT. */
struct vmpt_pt_cpuid {
	u8 present;	/* CPUID.7.0:EBX[25] */
	u8 maxphyaddr;	/* CPUID.80000008H:EAX[7:0], 32 to 52 */
	u8 linear_bits; /* CPUID.80000008H:EAX[15:8], 48 or 57 */
	struct vmpt_cpuid_regs leaf14[VMPT_PT_SUBLEAVES];
	u32 tsc_denominator, tsc_numerator; /* CPUID.15H:EAX, EBX; 0: not enumerated */
	u32 crystal_hz;			    /* CPUID.15H:ECX; 0: not enumerated */
};

/* The fields of leaf 14H, in the order of Tables 33-11 and 33-12. */
enum vmpt_pt_cap {
	VMPT_CAP_MAX_SUBLEAF,	 /* 0:EAX */
	VMPT_CAP_CR3_FILTER,	 /* 0:EBX[0] */
	VMPT_CAP_PSB_CYC,	 /* 0:EBX[1] configurable PSB and cycle-accurate mode */
	VMPT_CAP_IP_FILTER,	 /* 0:EBX[2] also: MSRs kept over warm reset */
	VMPT_CAP_MTC,		 /* 0:EBX[3] */
	VMPT_CAP_PTWRITE,	 /* 0:EBX[4] */
	VMPT_CAP_POWER,		 /* 0:EBX[5] */
	VMPT_CAP_PRESERVE,	 /* 0:EBX[6] PSB and PMI preservation */
	VMPT_CAP_EVENT,		 /* 0:EBX[7] Event Trace */
	VMPT_CAP_TNT_DISABLE,	 /* 0:EBX[8] */
	VMPT_CAP_TOPA,		 /* 0:ECX[0] */
	VMPT_CAP_TOPA_MULTI,	 /* 0:ECX[1] more than one output entry a table */
	VMPT_CAP_SINGLE_RANGE,	 /* 0:ECX[2] */
	VMPT_CAP_FABRIC,	 /* 0:ECX[3] trace transport subsystem */
	VMPT_CAP_LIP,		 /* 0:ECX[31] IP payloads are LIPs */
	VMPT_CAP_RANGES,	 /* 1:EAX[2:0] RANGECNT */
	VMPT_CAP_MTC_PERIODS,	 /* 1:EAX[31:16], a bit an encoding */
	VMPT_CAP_CYC_THRESHOLDS, /* 1:EBX[15:0] */
	VMPT_CAP_PSB_FREQS,	 /* 1:EBX[31:16] */
	VMPT_CAPS
};

/* Where a field stands. */
struct vmpt_pt_cap_desc {
	const char *name;  /* "CR3 filtering" */
	const char *place; /* "CPUID.14H.0:EBX[0]" */
	u8 subleaf, reg;   /* reg: 0 EAX … 3 EDX */
	u8 bit, width;	   /* lowest bit, bits */
	u8 needs;	   /* only means something with this cap; itself: nothing needed */
};

/* By enum vmpt_pt_cap. */
extern const struct vmpt_pt_cap_desc vmpt_pt_cap_table[VMPT_CAPS];

/*
 * Trigger Tracing (TRIG packets, IA32_RTIT_TRIGGERx_CFG), newer than the two tables. Second-hand:
 * from a vendor's KVM, not from Intel's Architecture Instruction Set Extensions reference
 * (319433-052) itself. The bits are known by name, but are no fields above: nothing here can offer
 * them.
 */
#define VMPT_TRIGGER_0_EBX 0x00000200u /* 0:EBX[9] Trigger Tracing */
#define VMPT_TRIGGER_1_EAX 0x00000700u /* 1:EAX[10:8] the number of trigger MSRs */
#define VMPT_TRIGGER_1_ECX 0x00008003u /* 1:ECX[0], [1], [15] further properties */
#define VMPT_TRIGGERS_MAX  7

/* The number of IA32_RTIT_TRIGGERx_CFG of a processor. */
static inline unsigned int vmpt_pt_triggers(const struct vmpt_pt_cpuid *cpuid)
{
	if (!cpuid->present || !cpuid->leaf14[0].eax ||
	    !(cpuid->leaf14[0].ebx & VMPT_TRIGGER_0_EBX))
		return 0;
	return (cpuid->leaf14[1].eax & VMPT_TRIGGER_1_EAX) >> 8;
}

/* The value of a field, as it stands in the registers (no dependency is looked at). */
u32 vmpt_pt_cap(const struct vmpt_pt_cpuid *cpuid, enum vmpt_pt_cap cap);

/* Set a field; @value is cut to its width. */
void vmpt_pt_cap_set(struct vmpt_pt_cpuid *cpuid, enum vmpt_pt_cap cap, u32 value);

/*
 * The value that counts: 0 where PT is not present, where the field's subleaf is
 * beyond the last one, or where the field it needs is 0. RANGECNT is cut at 4.
 */
u32 vmpt_pt_cap_effective(const struct vmpt_pt_cpuid *cpuid, enum vmpt_pt_cap cap);

#ifdef __cplusplus
}
#endif

#endif
