/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Inside the guest view: what its files share. vmm-lib's vCPU decides what the guest
 * sees and may do, the trace unit is the processor that does it, and the guest's registers and
 * memory are reached through qemu.h.
 */
#ifndef VMPT_QEMU_PLUGIN_GUEST_H
#define VMPT_QEMU_PLUGIN_GUEST_H

#include "qemu-plugin/flow/flow.h"
#include "vmm-lib/rtit.h"
#include "vmm-lib/vmpt.h"

#define LOW32(x) ((x)&0xffffffffULL)

/* Guest-physical RAM: from 0 up to @low without the hole for VGA and ROMs, from 4 GiB to @high. */
struct guest_ram {
	u8 *host;   /* atomic: where address 0 is in QEMU; NULL: not known yet … */
	u64 proven; /* … and an address of RAM that told it */
	u32 tries;  /* to find out … */
	bool known; /* atomic: … what follows, which does not change any more */
	u64 low, high;
};

struct guest_view {
	struct vmpt_caps host; /* all that the unit can do */
	struct vmpt_caps caps; /* what the guest is shown */
	struct vmpt_vmx_plan plan;
	struct guest_ram ram;
	const struct vmpt_rtit_signature *signature; /* with isa=rtit, in place of the caps */
	bool not_intel, no_ram, no_port;	     /* said already */
};

/* The performance monitoring unit (SDM 3 19.2), version 2. Its counters stand still. */
#define PMU_COUNTERS 4
#define PMU_FIXED    3

struct guest_pmu {
	u64 counter[PMU_COUNTERS], select[PMU_COUNTERS], fixed[PMU_FIXED];
	u64 fixed_ctrl, global_ctrl, global_status;
};

/* The local APIC, as far as a PMI needs it (SDM 3 11.5.1). */
struct guest_apic {
	u32 id;	      /* of CPUID; in xAPIC mode it is read */
	u32 lvt;      /* in x2APIC mode: LVT performance counter register */
	bool init;    /* atomic: an INIT has masked it */
	bool waiting; /* a PMI while it was masked */
	u32 polls;    /* whether it still is */
	bool said;    /* that PMIs do not reach it */
};

/* What an instruction leaves in registers. */
struct guest_result {
	u8 count;
	u8 reg[4]; /* enum qemu_reg */
	u64 value[4];
};

/* With isa=rtit in place of vmm, unit and memory below. */
struct guest_rtit {
	struct vmpt_rtit_vcpu vmm;
	struct vmpt_rtit_unit unit;
	struct vmpt_rtit_sink sink;
	bool dram; /* RTIT_CTL.Dest of what comes to the sink now */
};

struct guest_vcpu {
	struct vcpu *vcpu;
	struct vmpt_vcpu vmm;
	struct vmpt_unit unit;
	struct vmpt_output_memory memory;
	struct guest_rtit rtit;
	u64 tsc_adjust; /* IA32_TSC_ADJUST */
	bool reset;	/* atomic: vCPU 0 has begun anew, this one has not noticed yet */

	/* a CPUID whose result is patched when it has retired */
	struct {
		bool pending;
		u32 leaf, subleaf;
		u64 next;
	} cpuid;
	u32 max_leaf; /* QEMU's; 0: not asked yet */

	/* IA32_TSC_AUX, which QEMU may not have taken: the WRMSR is still to retire */
	struct {
		u32 now, before;
		bool pending;
		u64 ip;
	} aux;

	/* registers for an instruction that QEMU executes, too: the guest steps */
	struct {
		bool pending;
		u64 next;
		struct guest_result result;
	} step;

	/* a #GP that QEMU raises for us: registers to restore then */
	struct {
		bool pending;
		u64 ip, rax, rcx, rdx;
	} fault;

	struct guest_pmu pmu;
	struct guest_apic apic;
};

/* ---- view.c ---- */

/* Linear address of the next instruction. */
u64 guest_next(const struct guest_vcpu *guest, const struct site *site);
/* The vCPU and its unit anew with the capabilities of the view. -1: printed why. */
int guest_make(struct guest_vcpu *guest);
/*
 * The instruction's work is done by us, but for @result: go on behind it. A guest that steps
 * (RFLAGS.TF) has QEMU execute it all the same, for its #DB, and gets @result then: this
 * returns, and so must the callback.
 */
void guest_skip(struct guest_vcpu *guest, const struct site *site,
		const struct guest_result *result);
/* EDX:EAX */
struct guest_result guest_edx_eax(u64 value);
/* Let QEMU raise #GP(0) for the RDMSR (@write: WRMSR) at @site. Return from the callback. */
void guest_fault(struct guest_vcpu *guest, const struct site *site, bool write);

/* ---- caps.c ---- */

/* Sets host, caps and plan by the option pt=NAME. -1: printed why. */
int guest_caps(struct guest_view *view, const struct options *options);

/* ---- rtit.c: all with isa=rtit ---- */

/* Sets signature by the option rtit=NAME. -1: printed why. */
int guest_rtit_find(struct guest_view *view, const struct options *options);
/* vCPU and unit after RESET. -1: printed why. */
int guest_rtit_make(struct guest_vcpu *guest);
void guest_rtit_reset(struct guest_vcpu *guest);
/* Time has passed. */
void guest_rtit_tick(struct guest_vcpu *guest);
/* QEMU's answer in @regs becomes that of the processor that is shown. */
void guest_rtit_cpuid(const struct guest_vcpu *guest, u32 leaf, u32 subleaf,
		      struct vmpt_cpuid_regs *regs);
/* RDMSR and WRMSR at linear address @ip: 0 or VMPT_GP. */
int guest_rtit_read(struct guest_vcpu *guest, u32 msr, u64 ip, u64 *value);
int guest_rtit_write(struct guest_vcpu *guest, u32 msr, u64 value, u64 ip, u64 next);

/* ---- cpuid.c ---- */

/* Before a CPUID: may not return. */
void guest_cpuid(struct guest_vcpu *guest, const struct site *site);
/* It has retired, nothing has executed since. */
void guest_cpuid_patch(struct guest_vcpu *guest);

/* ---- msr.c ---- */

/* Before an RDMSR or WRMSR at CPL 0: may not return. */
void guest_rdmsr(struct guest_vcpu *guest, const struct site *site);
void guest_wrmsr(struct guest_vcpu *guest, const struct site *site);
/* The unit's output MSRs and STATUS become the vCPU's. */
void guest_sync(struct guest_vcpu *guest);
/* Take the unit out of the flow if it cannot make packets any more. */
void guest_follow(struct guest_vcpu *guest);

/* ---- tsc.c ---- */

/* The guest's clocks now. */
void guest_clocks(const struct guest_vcpu *guest, struct vmpt_now *now);
u64 guest_tsc(const struct guest_vcpu *guest);
void guest_tsc_set(struct guest_vcpu *guest, u64 value);
void guest_rdtsc(struct guest_vcpu *guest, const struct site *site);

/* ---- pmu.c: RDMSR, WRMSR: false: not an MSR of the PMU; RDPMC may not return ---- */

void guest_pmu_reset(struct guest_pmu *pmu);
void guest_pmu_cpuid(struct vmpt_cpuid_regs *regs);
bool guest_pmu_read(const struct guest_pmu *pmu, u32 msr, u64 *value);
/* *gp: #GP, nothing is written. */
bool guest_pmu_write(struct guest_pmu *pmu, u32 msr, u64 value, bool *gp);
void guest_rdpmc(struct guest_vcpu *guest, const struct site *site);

/* ---- apic.c ---- */

/* vmpt_ops.inject_pmi */
void guest_inject_pmi(void *opaque);
/* The guest is about to write an MSR of the APIC. */
void guest_apic_write(struct guest_vcpu *guest, u32 msr, u64 value);
/* In x2APIC mode the LVT performance counter register is ours. */
bool guest_apic_read(struct guest_vcpu *guest, u32 msr, u64 *value);
/* A PMI waits: is the entry unmasked now? */
void guest_apic_poll(struct guest_vcpu *guest);

/* ---- memory.c ---- */

/* guest_ops.translates */
void guest_translates(struct plugin *plugin, u64 linear, const void *host);
/* Finds out where RAM is if that is not known yet and can be now: early in the guest's life. */
void guest_find_ram(struct vcpu *vcpu);

/* vmpt_ops.guest_read, guest_write */
int guest_read(void *opaque, u64 gpa, void *buf, size_t len);
int guest_write(void *opaque, u64 gpa, const void *buf, size_t len);
/* vmpt_output_memory */
int guest_read_entry(void *opaque, u64 pa, u64 *entry);
int guest_write_output(void *opaque, u64 pa, const u8 *bytes, size_t len);

/* ---- ptwrite.c ---- */

/* Before what may be a PTWRITE: may not return. */
void guest_ptwrite(struct guest_vcpu *guest, const struct site *site);

#endif
