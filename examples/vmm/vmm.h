/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* A VMM with one vCPU, on libvmpt; docs/vmm-guide.md explains it and quotes it. */
#ifndef VMPT_EXAMPLE_VMM_H
#define VMPT_EXAMPLE_VMM_H

#include "cpu.h"

#define VM_RAM	     (1u << 20) /* guest-physical 0 up */
#define VM_HOST	     (1u << 16) /* the host's own pages, after it */
#define SHADOW_PAGES 2

struct vm {
	_Alignas(4096) u8 memory[VM_RAM + VM_HOST];
	struct vmpt_caps host, guest;
	struct vmpt_vmx_plan plan;
	struct vmpt_config config;
	struct vmpt_shadow_memory shadow;
	struct vmpt_shadow_origin origin[SHADOW_PAGES * VMPT_SHADOW_PER_PAGE];
	struct vmpt_vcpu vcpu;
	struct vmpt_tsc_change tsc; /* of an emulated RDTSC; multiplier 0: the processor's */
	struct vmcs vmcs;
	struct cpu cpu;
	u64 cr3; /* the guest's */
	u64 pmis;
	bool log; /* the guest's #GPs */
};

/* Make the VM on vm->cpu; 0 or the error, which is reported. */
int vm_init(struct vm *vm);
/* The guest runs, as cpu_run() does. 0, or an error: the VM must be stopped. */
int vm_run(struct vm *vm, u32 bytes);
/* Exits: 0, VMPT_GP for the guest, or an error: the VM must be stopped. */
int vm_cpuid(struct vm *vm, u32 leaf, u32 subleaf, struct vmpt_cpuid_regs *regs);
int vm_rdmsr(struct vm *vm, u32 msr, u64 *value);
int vm_wrmsr(struct vm *vm, u32 msr, u64 value);
int vm_mov_cr3(struct vm *vm, u64 cr3);
/* From the MMU notifier, and from the NMI vector: true if the NMI is the host's to handle. */
void vm_memory_moves(struct vm *vm, u64 gpa, u64 size);
bool vm_nmi(struct vm *vm);
/* To another host and back. */
int vm_migrate(struct vm *vm);

#endif
