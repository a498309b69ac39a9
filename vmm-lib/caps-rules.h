/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* What the files that check share: the words of a refusal. */
#ifndef VMPT_VMM_CAPS_RULES_H
#define VMPT_VMM_CAPS_RULES_H

#include "vmm-lib/caps.h"
#include "vmm-lib/caps-leaf.h"

/* The words for what more than one file refuses. */
#define VMPT_FIELD_PT	      "CPUID.7.0:EBX[25] Intel PT"
#define VMPT_FIELD_VMX_MISC   "IA32_VMX_MISC[14]"
#define VMPT_FIELD_MAXPHYADDR "CPUID.80000008H:EAX[7:0] MAXPHYADDR"
#define VMPT_FIELD_LINEAR     "CPUID.80000008H:EAX[15:8] linear-address width"
#define VMPT_FIELD_OUTPUT     "CPUID.14H.0:ECX[2,0] output schemes"

/* A field of leaf 14H in full: "CPUID.14H.1:EAX[2:0] RANGECNT". Static memory. */
const char *vmpt_cap_field(enum vmpt_pt_cap cap);

/* The words for @fault, which is one, into @why if there is one; -VMPT_E_CAPS. */
int vmpt_leaf_refuse(const struct vmpt_leaf_fault *fault, struct vmpt_refusal *why);

/* Fill @why, if there is one, and return -@err. */
static inline int vmpt_refuse(struct vmpt_refusal *why, enum vmpt_error err, const char *field,
			      const char *rule, u64 guest, u64 host)
{
	if (why)
		*why = (struct vmpt_refusal){ field, rule, guest, host };
	return -(int)err;
}

#endif
