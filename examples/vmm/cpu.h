/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The example's processor, which a VMM does not write: one with VMX and PT, made of libvmpt-model.
 * It has a VMCS as far as PT goes, runs a guest of indirect jumps, and may lack VMX controls.
 */
#ifndef VMPT_EXAMPLE_CPU_H
#define VMPT_EXAMPLE_CPU_H

#include <vmpt/model.h>
#include <vmpt/vmpt.h>

/* What a processor may lack. */
#define CPU_NO_GPA  0x1 /* "PT uses guest physical addresses" */
#define CPU_NO_LOAD 0x2 /* "load IA32_RTIT_CTL", "clear IA32_RTIT_CTL" */
#define CPU_NO_PT   0x4

struct cpu {
	struct vmpt_unit unit;
	struct vmpt_output_memory output;
	unsigned int lacks;
	u64 global_status;
	u8 *memory;	 /* host-physical 0 up */
	size_t ram, all; /* of these bytes the first @ram are the guest's, at the same addresses */
	bool nonroot_gpa;
	bool fault; /* an EPT violation by PT's output, at @gpa */
	u64 gpa;
	bool (*nmi)(void *opaque); /* where the LVT entry for PMIs leads */
	void *opaque;
};

struct vmcs {
	u32 secondary, exit, entry;	  /* controls */
	u64 guest_rtit_ctl;		  /* field 2814H */
	struct vmpt_msr_lists lists;	  /* the three MSR areas */
	u8 read_exits[8], write_exits[8]; /* MSR bitmaps, from 560H on; here all accesses exit */
};

/* cpu->memory and what follows it are set. */
void cpu_init(struct cpu *cpu);
int cpu_cpuid(void *cpu, u32 leaf, u32 subleaf, struct vmpt_cpuid_regs *regs);
int cpu_rdmsr(struct cpu *cpu, u32 msr, u64 *value);
int cpu_wrmsr(struct cpu *cpu, u32 msr, u64 value);
/*
 * From VMRESUME to the VM exit, which flushes: the guest runs until it has made @bytes of trace, or
 * tracing has ended, or its output faults.
 */
void cpu_run(struct cpu *cpu, struct vmcs *vmcs, u64 cr3, u32 bytes);
/* The host runs and traces itself: what IA32_RTIT_CTL says. */
void cpu_run_host(struct cpu *cpu, u32 bytes);

#endif
