/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The base of a VMM over /dev/kvm: VMs, vCPUs, memory, CPUID, MSRs. Calls that should never fail in
 * a test end the program with a message (die()); calls under test return their errno.
 */
#ifndef KVM_H
#define KVM_H

#include <linux/kvm.h>

#include "arch/types.h"

#define KVM_MAX_CPUID 256

struct cpuid {
	struct kvm_cpuid2 head;
	struct kvm_cpuid_entry2 entries[KVM_MAX_CPUID];
};

struct vm {
	int kvm, fd;
	u8 *memory;
	size_t size;
	bool irqchip;
};

struct vcpu {
	struct vm *vm;
	int fd;
	unsigned int id;
	struct kvm_run *run;
};

void die(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));

/* Memory: GUEST_SIZE bytes with a hole for MMIO. */
void vm_open(struct vm *vm, bool irqchip);
void vm_close(struct vm *vm);
void *vm_at(const struct vm *vm, u64 gpa, size_t size);
/* Map host memory at a guest-physical address, in slot 2 or above; NULL removes it. */
void vm_map(struct vm *vm, u32 slot, u64 gpa, size_t size, void *memory);

/* The vCPU must not have a CPUID yet: KVM partly keeps state of a first one. */
void vcpu_open(struct vcpu *vcpu, struct vm *vm, unsigned int id);
void vcpu_close(struct vcpu *vcpu);
/* The guest's TSC: the host's, scaled to @khz (0: as it is), plus @offset. */
void vcpu_set_tsc(struct vcpu *vcpu, u64 offset, u32 khz);
/* KVM_RUN; EINTR is no error. Returns 0 or an errno. */
int vcpu_run(struct vcpu *vcpu);
/* One MSR: 0, or EIO if KVM refuses it. */
int vcpu_set_msr(struct vcpu *vcpu, u32 index, u64 value);
int vcpu_get_msr(struct vcpu *vcpu, u32 index, u64 *value);

/* What KVM supports, with a leaf of the guests' own (GUEST_CPUID_LEAF). */
void cpuid_supported(const struct vm *vm, struct cpuid *cpuid);
struct kvm_cpuid_entry2 *cpuid_find(struct cpuid *cpuid, u32 function, u32 index);
int vcpu_set_cpuid(struct vcpu *vcpu, struct cpuid *cpuid);

/* A counter of KVM_GET_STATS_FD ("exits", "io_exits", …); 0 if there is no such counter. */
u64 vcpu_stat(const struct vcpu *vcpu, const char *name);

/* A module's parameter as text, "" if there is none. */
const char *kvm_parameter(const char *module, const char *name);

#endif
