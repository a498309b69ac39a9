/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Internal to the guest view: what its files share. vmm-lib's vCPU decides what the guest sees and
 * may do, the trace unit is the processor that does it, and qemu.h gives access to the guest's
 * registers and memory.
 */
#ifndef VMPT_QEMU_PLUGIN_GUEST_INTERNAL_H
#define VMPT_QEMU_PLUGIN_GUEST_INTERNAL_H

#include "qemu-plugin/flow/flow.h"
#include "vmm-lib/rtit.h"
#include "vmm-lib/vmpt.h"

#define LOW32(x) ((x)&0xffffffffULL)

struct guest_view {
	struct vmpt_caps host; /* everything the unit can do */
	struct vmpt_caps caps; /* what the guest is shown */
	struct vmpt_vmx_plan plan;
	const struct vmpt_rtit_signature *signature; /* with isa=rtit, in place of the caps */
	bool not_intel, no_ram, no_port;	     /* already warned of */
};

/* A performance monitoring unit of version 2 (SDM 3 19.2). */
#define PMU_COUNTERS 4
#define PMU_FIXED    3

struct guest_pmu {
	u64 counter[PMU_COUNTERS], select[PMU_COUNTERS], fixed[PMU_FIXED];
	u64 fixed_ctrl, global_ctrl, global_status;
	struct hot_counts from[2]; /* hot.counts when the counters were last up to date */
};

/* What a PMI needs of the local APIC (SDM 3 11.5.1). */
struct guest_apic {
	u32 id;	      /* from CPUID; in xAPIC mode it is read from the APIC */
	u32 lvt;      /* in x2APIC mode: LVT performance counter register */
	bool init;    /* atomic: an INIT has masked it */
	bool waiting; /* a PMI is pending because the LVT entry is masked */
	u32 polls;    /* of the mask */
	bool warned;  /* that PMIs do not reach this vCPU */
};

/* What an instruction writes to registers. */
struct guest_result {
	u8 count;
	u8 reg[4]; /* enum qemu_reg */
	u64 value[4];
};

/* In place of vmm, unit and memory below with isa=rtit. */
struct guest_rtit {
	struct vmpt_rtit_vcpu vmm;
	struct vmpt_rtit_unit unit;
	struct vmpt_rtit_sink sink;
	bool dram; /* RTIT_CTL.Dest for what the sink gets now */
};

struct guest_vcpu {
	struct vcpu *vcpu;
	struct vmpt_vcpu vmm;
	struct vmpt_unit unit;
	struct vmpt_output_memory memory;
	struct guest_rtit rtit;
	u64 tsc_adjust; /* IA32_TSC_ADJUST */
	bool reset;	/* atomic: the machine was reset, and this vCPU has not executed since */

	/* a CPUID whose result is patched after it has retired */
	struct {
		bool pending;
		u32 leaf, subleaf;
		u64 next;
	} cpuid;
	u32 max_leaf; /* QEMU's; 0: not asked yet */

	/* IA32_TSC_AUX; while a WRMSR is pending QEMU may still refuse it */
	struct {
		u32 now, before;
		bool pending;
		u64 ip;
	} aux;

	/* registers to write after an instruction that QEMU executes as well: the guest steps */
	struct {
		bool pending;
		u64 next;
		struct guest_result result;
	} step;

	/* registers to restore when the #GP that QEMU raises for us is delivered */
	struct {
		bool pending;
		u64 ip, rax, rcx, rdx;
	} fault;

	/* the read that faults in place of a PTWRITE's; see ptwrite.c */
	struct {
		bool pending;
		u64 ip, at; /* of the PTWRITE; of the opcode byte that executes instead */
		u64 rdi;
	} probe;

	struct guest_pmu pmu;
	struct guest_apic apic;
};

/* ---- view.c ---- */

/* Linear address of the next instruction. */
u64 guest_next(const struct guest_vcpu *guest, const struct site *site);
/* Create the vCPU and its unit with the capabilities of the view. -1: printed why. */
int guest_make(struct guest_vcpu *guest);
/*
 * The plugin has done the instruction's work: write @result and continue after the instruction. If
 * the guest steps (RFLAGS.TF), QEMU executes the instruction as well, to raise the #DB, and @result
 * is written then: this function returns, and so must the callback.
 */
void guest_skip(struct guest_vcpu *guest, const struct site *site,
		const struct guest_result *result);
/* EDX:EAX */
struct guest_result guest_edx_eax(u64 value);
/* Make QEMU raise #GP(0) for the RDMSR (@write: WRMSR) at @site after the callback returns. */
void guest_fault(struct guest_vcpu *guest, const struct site *site, bool write);

/* ---- caps.c ---- */

/* Set host, caps and plan from the option pt=NAME. -1: printed why. */
int guest_caps(struct guest_view *view, const struct options *options);

/* ---- rtit.c: with isa=rtit ---- */

/* Set signature from the option rtit=NAME. -1: printed why. */
int guest_rtit_find(struct guest_view *view, const struct options *options);
/* Create vCPU and unit. -1: printed why. */
int guest_rtit_make(struct guest_vcpu *guest);
void guest_rtit_reset(struct guest_vcpu *guest);
/* Time has passed. */
void guest_rtit_tick(struct guest_vcpu *guest);
/* Turn QEMU's answer in @regs into that of the processor that the guest sees. */
void guest_rtit_cpuid(const struct guest_vcpu *guest, u32 leaf, u32 subleaf,
		      struct vmpt_cpuid_regs *regs);
/* RDMSR and WRMSR at linear address @ip: 0 or VMPT_GP. */
int guest_rtit_read(struct guest_vcpu *guest, u32 msr, u64 ip, u64 *value);
int guest_rtit_write(struct guest_vcpu *guest, u32 msr, u64 value, u64 ip, u64 next);

/* ---- cpuid.c ---- */

/* Before a CPUID: may not return. */
void guest_cpuid(struct guest_vcpu *guest, const struct site *site);
/* It has retired, and nothing has executed since. */
void guest_cpuid_patch(struct guest_vcpu *guest);

/* ---- msr.c ---- */

/* Before an RDMSR or WRMSR at CPL 0: may not return. */
void guest_rdmsr(struct guest_vcpu *guest, const struct site *site);
void guest_wrmsr(struct guest_vcpu *guest, const struct site *site);
/* Copy the unit's output MSRs and STATUS to the vCPU. */
void guest_sync(struct guest_vcpu *guest);
/* Attach the unit to the flow while it can make packets, else detach it. */
void guest_attach(struct guest_vcpu *guest);

/* ---- tsc.c ---- */

/* The guest's clocks now. */
void guest_clocks(const struct guest_vcpu *guest, struct vmpt_now *now);
/* The TSC as an instruction of the guest reads it. */
u64 guest_read_tsc(struct guest_vcpu *guest);
void guest_tsc_set(struct guest_vcpu *guest, u64 value);
void guest_rdtsc(struct guest_vcpu *guest, const struct site *site);

/* ---- pmu.c ---- */

void guest_pmu_reset(struct guest_vcpu *guest);
void guest_pmu_cpuid(const struct guest_vcpu *guest, struct vmpt_cpuid_regs *regs);
/* Bring the counters up to date; those that have overflowed set their bit and raise their PMI. */
void guest_pmu_count(struct guest_vcpu *guest);
/* RDMSR and WRMSR. false: not an MSR of the PMU. */
bool guest_pmu_read(struct guest_vcpu *guest, u32 msr, u64 *value);
/* Whether a counter runs after @value is written to @msr. */
bool guest_pmu_starts(const struct guest_vcpu *guest, u32 msr, u64 value);
/* *gp: #GP, and nothing is written. */
bool guest_pmu_write(struct guest_vcpu *guest, u32 msr, u64 value, bool *gp);
/* Before an RDPMC: may not return. */
void guest_rdpmc(struct guest_vcpu *guest, const struct site *site);

/* ---- apic.c ---- */

/* vmpt_ops.inject_pmi */
void guest_inject_pmi(void *opaque);
/* The guest is about to write an MSR of the APIC. */
void guest_apic_write(struct guest_vcpu *guest, u32 msr, u64 value);
/* In x2APIC mode the plugin emulates the LVT performance counter register. */
bool guest_apic_read(struct guest_vcpu *guest, u32 msr, u64 *value);
/* A PMI is pending: deliver it if the entry is unmasked now. */
void guest_apic_poll(struct guest_vcpu *guest);

/* ---- memory.c ---- */

/* vmpt_ops.guest_read, guest_write */
int guest_read(void *opaque, u64 gpa, void *buf, size_t len);
int guest_write(void *opaque, u64 gpa, const void *buf, size_t len);
/* vmpt_output_memory */
int guest_read_entry(void *opaque, u64 pa, u64 *entry);
int guest_write_output(void *opaque, u64 pa, const u8 *bytes, size_t len);

/* ---- ptwrite.c ---- */

/* Before what may be a PTWRITE: may not return. */
void guest_ptwrite(struct guest_vcpu *guest, const struct site *site);
/* An event came from @from while a probe is pending. Returns where the processor has it from. */
u64 guest_probe_faulted(struct guest_vcpu *guest, u64 from);
/* The instruction after a probe: it has not faulted. Does not return if one is pending. */
void guest_probe_passed(struct guest_vcpu *guest, const struct site *site);
/* Whether a block at @linear, translated now on this thread, is a probe. */
bool guest_probes(const struct plugin *plugin, u64 linear);

#endif
