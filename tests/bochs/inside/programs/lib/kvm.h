/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * A VMM's basis over /dev/kvm: VMs, vCPUs, memory, CPUID, MSRs. What cannot go wrong in a test
 * ends the program with a message (die()); what is tested returns its errno.
 */
#ifndef KVM_H
#define KVM_H

#include <linux/kvm.h>

#include "arch/types.h"

/* In asm/msr-index.h these are the kernel's only. */
#define MSR_TSC_ADJUST	     0x3b
#define MSR_PLATFORM_INFO    0xce
#define MSR_GLOBAL_STATUS    0x38e
#define MSR_GLOBAL_CTRL	     0x38f
#define MSR_GLOBAL_OVF_CTRL  0x390
#define MSR_RTIT_OUTPUT_BASE 0x560
#define MSR_RTIT_OUTPUT_MASK 0x561
#define MSR_RTIT_CTL	     0x570
#define MSR_RTIT_STATUS	     0x571
#define MSR_RTIT_CR3_MATCH   0x572
#define MSR_RTIT_ADDR0_A     0x580
#define MSR_X2APIC_LVTPC     0x834

#define CTL_TRACEEN	 (1ull << 0)
#define CTL_CYCEN	 (1ull << 1)
#define CTL_OS		 (1ull << 2)
#define CTL_USER	 (1ull << 3)
#define CTL_FABRICEN	 (1ull << 6)
#define CTL_CR3FILTER	 (1ull << 7)
#define CTL_TOPA	 (1ull << 8)
#define CTL_TSCEN	 (1ull << 10)
#define CTL_DISRETC	 (1ull << 11)
#define CTL_BRANCHEN	 (1ull << 13)
#define CTL_EVENTEN	 (1ull << 31)
#define CTL_DISTNT	 (1ull << 55)
#define CTL_INJECTPSBPMI (1ull << 56)

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
/* Back memory of the host's at a guest-physical address, in slot 2 or above; NULL removes it. */
void vm_map(struct vm *vm, u32 slot, u64 gpa, size_t size, void *memory);

void vcpu_open(struct vcpu *vcpu, struct vm *vm, unsigned int id);
void vcpu_close(struct vcpu *vcpu);
/* KVM_RUN; EINTR is no error. Returns 0 or an errno. */
int vcpu_run(struct vcpu *vcpu);
/* One MSR: 0, or EIO if KVM refuses it. */
int vcpu_set_msr(struct vcpu *vcpu, u32 index, u64 value);
int vcpu_get_msr(struct vcpu *vcpu, u32 index, u64 *value);

/* What KVM supports, with a leaf of the guests' own (GUEST_CPUID_LEAF). */
void cpuid_supported(const struct vm *vm, struct cpuid *cpuid);
struct kvm_cpuid_entry2 *cpuid_find(struct cpuid *cpuid, u32 function, u32 index);
int vcpu_set_cpuid(struct vcpu *vcpu, struct cpuid *cpuid);

/* A counter of KVM_GET_STATS_FD ("exits", "io_exits", …); 0 if there is none of that name. */
u64 vcpu_stat(const struct vcpu *vcpu, const char *name);

/* A module's parameter as text, "" if there is none. */
const char *kvm_parameter(const char *module, const char *name);

#endif
