/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* Shared by the files that check: the texts of a refusal. */
#ifndef VMPT_VMM_CAPS_RULES_H
#define VMPT_VMM_CAPS_RULES_H

#include "vmm-lib/caps.h"
#include "vmm-lib/caps-leaf.h"

/* Texts of refusals that more than one file makes. */
#define VMPT_FIELD_PT	      "CPUID.7.0:EBX[25] Intel PT"
#define VMPT_FIELD_VMX_MISC   "IA32_VMX_MISC[14]"
#define VMPT_FIELD_MAXPHYADDR "CPUID.80000008H:EAX[7:0] MAXPHYADDR"
#define VMPT_FIELD_LINEAR     "CPUID.80000008H:EAX[15:8] linear-address width"
#define VMPT_FIELD_OUTPUT     "CPUID.14H.0:ECX[2,0] output schemes"

/* The full name of a field of leaf 14H: "CPUID.14H.1:EAX[2:0] RANGECNT". Static memory. */
const char *vmpt_cap_field(enum vmpt_pt_cap cap);

/* Take Trigger Tracing out of a guest's leaf 14H: it is offered to no guest. */
static inline void vmpt_caps_no_triggers(struct vmpt_caps *guest)
{
	struct vmpt_cpuid_regs *leaf14 = guest->cpuid.leaf14;

	leaf14[0].ebx &= ~VMPT_TRIGGER_0_EBX;
	leaf14[1].eax &= ~VMPT_TRIGGER_1_EAX;
	leaf14[1].ecx &= ~VMPT_TRIGGER_1_ECX;
}

/* Write the text for @fault, which is an error, to @why if not NULL; -VMPT_E_CAPS. */
int vmpt_leaf_refuse(const struct vmpt_leaf_fault *fault, struct vmpt_refusal *why);

/* Fill @why if not NULL and return -@err. */
static inline int vmpt_refuse(struct vmpt_refusal *why, enum vmpt_error err, const char *field,
			      const char *rule, u64 guest, u64 host)
{
	if (why)
		*why = (struct vmpt_refusal){ field, rule, guest, host };
	return -(int)err;
}

#endif
