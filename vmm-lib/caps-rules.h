/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* What the files that check share: the words of a refusal, and the dependencies. */
#ifndef VMPT_VMM_CAPS_RULES_H
#define VMPT_VMM_CAPS_RULES_H

#include "vmm-lib/caps.h"

/* The words for what more than one file refuses. */
#define VMPT_FIELD_PT	      "CPUID.7.0:EBX[25] Intel PT"
#define VMPT_FIELD_VMX_MISC   "IA32_VMX_MISC[14]"
#define VMPT_FIELD_MAXPHYADDR "CPUID.80000008H:EAX[7:0] MAXPHYADDR"
#define VMPT_FIELD_LINEAR     "CPUID.80000008H:EAX[15:8] linear-address width"
#define VMPT_FIELD_OUTPUT     "CPUID.14H.0:ECX[2,0] output schemes"

/* A field of leaf 14H in full: "CPUID.14H.1:EAX[2:0] RANGECNT". Static memory. */
const char *vmpt_cap_field(enum vmpt_pt_cap cap);

/*
 * Take out of leaf 14H what has lost what it rests on: a field whose parent is 0 or whose
 * subleaf is not there, and a feature of subleaf 0 that has no value left in subleaf 1.
 */
void vmpt_caps_close(struct vmpt_pt_cpuid *pt);

/*
 * A guest without EBX[1] traces with PSBFreq 0, which a host with EBX[1] takes only if it
 * lists that encoding: else each VM entry of that guest would fail. 0 or -VMPT_E_CAPS.
 */
int vmpt_caps_check_psb(const struct vmpt_pt_cpuid *host, const struct vmpt_pt_cpuid *guest,
			struct vmpt_refusal *why);

/* Fill @why, if there is one, and return -@err. */
static inline int vmpt_refuse(struct vmpt_refusal *why, enum vmpt_error err, const char *field,
			      const char *rule, u64 guest, u64 host)
{
	if (why)
		*why = (struct vmpt_refusal){ field, rule, guest, host };
	return -(int)err;
}

#endif
