/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Intel PT for the guests of a VMM that runs in user space on KVM: what such a VMM can do. KVM
 * switches the MSRs at VM entry and exit; the VMM chooses what the guest is shown, and moves its
 * state to another host. docs/hypervisors.md has which KVM offers PT to guests at all.
 */
#ifndef VMPT_EXAMPLE_KVM_PT_H
#define VMPT_EXAMPLE_KVM_PT_H

#include <linux/kvm.h>

#include <vmpt/caps.h>

/* A file descriptor of KVM, or a model of one: /dev/kvm, or a vCPU. As ioctl(). */
struct kvm {
	int (*ioctl)(void *opaque, unsigned long request, void *arg);
	void *opaque;
};

#define PT_MSRS		 13
#define PT_CPUID_ENTRIES 256

/* What is sent to another host. A VMM gives it the format of its other state. */
struct pt_state {
	struct vmpt_caps guest;
	struct kvm_msr_entry msr[PT_MSRS];
	unsigned int count;
};

/* What KVM can offer on this host: CPUID as KVM_GET_SUPPORTED_CPUID has it, in @cpuid too. */
int pt_host(const struct kvm *kvm, struct kvm_cpuid2 *cpuid, struct vmpt_caps *host);
/* Put the guest's PT into @cpuid, before KVM_SET_CPUID2. */
int pt_set_cpuid(struct kvm_cpuid2 *cpuid, const struct vmpt_caps *guest);
/* Between two KVM_RUN. 0 or -1. */
int pt_save(const struct kvm *kvm, const struct kvm *vcpu, const struct vmpt_caps *guest,
	    struct pt_state *state);
/*
 * Into a vCPU with the CPUID of @state->guest. 0; or -1 with the reason in @why: the host lacks
 * something, a value is not one that a guest can have, or KVM refuses it. Before the last of these
 * nothing is written.
 */
int pt_restore(const struct kvm *vcpu, const struct vmpt_caps *host, const struct pt_state *state,
	       char why[200]);

#endif
