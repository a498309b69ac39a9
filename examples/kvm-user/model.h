/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * A model of KVM's rules for PT, for machines whose KVM offers none: CPUID and MSRs of one host and
 * one vCPU. Nothing runs.
 */
#ifndef VMPT_EXAMPLE_KVM_MODEL_H
#define VMPT_EXAMPLE_KVM_MODEL_H

#include <vmpt/arch/pt-regs.h>
#include "pt.h"

struct model {
	struct vmpt_pt_cpuid host;  /* the processor's */
	struct vmpt_pt_rules rules; /* the guest's, from KVM_SET_CPUID2 */
	struct vmpt_pt_regs regs;
};

/* As ioctl() of /dev/kvm and of the vCPU; @opaque: struct model. -1 with errno set. */
int model_ioctl(void *opaque, unsigned long request, void *arg);

#endif
