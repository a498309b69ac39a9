/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * RTIT, the Real Time Instruction Trace of the 2013-15 Atoms, for guests (RTIT Programming
 * Reference, March 2015). docs/vmm-lib/rtit.md goes through it.
 *
 * What is other than with Intel PT: no CPUID (a guest looks at family, model and stepping and
 * tries, 3.1); no VMCS fields, no lists needed: the processor holds ContextEn = 0 in VMX root
 * operation and makes FUP.PGD and FUP.PGE at VM exit and entry itself (2.6.2); the output address
 * is a platform physical one that no EPT translates (2.3). So a VMM intercepts the MSRs, swaps
 * them when another vCPU (or the host's own tracing) comes to the processor, and gives the guest
 * output that is its own.
 *
 * A vCPU is the caller's memory; nothing is allocated, nothing is global; one thread at a time.
 * Results: 0, VMPT_GP (#GP(0) for the guest), or a negative enum vmpt_error. A negative answer
 * of a callback is handed on as it is. Guest memory is hostile: all work is bounded.
 */
#ifndef VMPT_VMM_RTIT_H
#define VMPT_VMM_RTIT_H

#include "arch/rtit-packet.h"
#include "arch/rtit-regs.h"
#include "vmm-lib/vmpt.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- what a guest is shown (1.2, 3.1) ---- */

struct vmpt_rtit_signature {
	u8 family, model, stepping; /* as DisplayFamily, DisplayModel */
};

/* The processors of 1.2, the oldest first; count in *@n. Static memory. */
const struct vmpt_rtit_signature *vmpt_rtit_signatures(unsigned int *n);

/*
 * CPUID for the guest: in leaf 1 EAX the signature replaces family, model and stepping; leaf 7
 * EBX[25] (Intel PT) becomes 0, leaf 14H 0. Other leaves are left alone.
 */
void vmpt_rtit_cpuid(const struct vmpt_rtit_signature *signature, u32 leaf, u32 subleaf,
		     struct vmpt_cpuid_regs *regs);

/* ---- the VMM's callbacks ---- */

struct vmpt_rtit_ops {
	/* The processor's RTIT MSRs, on the processor that runs the vCPU, preemption off. Both or
	 * none: none in a VMM that is the processor itself. */
	int (*hw_rdmsr)(void *opaque, u32 msr, u64 *value);
	int (*hw_wrmsr)(void *opaque, u32 msr, u64 value);
	/* Guest-physical memory; 0 or an enum vmpt_guest_mem with nothing done. */
	int (*guest_read)(void *opaque, u64 gpa, void *buf, size_t len);
	int (*guest_write)(void *opaque, u64 gpa, const void *buf, size_t len);
	/*
	 * VMPT_RTIT_CONTIGUOUS: host-physical address of @gpa and how many bytes from there are
	 * contiguous and pinned until vmpt_rtit_vcpu_unmap(). Or an enum vmpt_guest_mem.
	 */
	int (*guest_translate)(void *opaque, u64 gpa, u64 *hpa, u64 *size);
	/* The hardware TSC, and the core/bus ratios an STS carries; for STSs that the library
	 * inserts. Optional: without it none is. */
	void (*clock)(void *opaque, u64 *tsc, u8 *acbr, u8 *ecbr);
};

enum vmpt_rtit_output {
	VMPT_RTIT_CONTIGUOUS, /* the processor writes to guest memory; falls back to a bounce
				 buffer where that is not contiguous, if there is one */
	VMPT_RTIT_BOUNCE,     /* always through the host's buffer */
};

/* A buffer of the host's, for one vCPU: @size a power of 2, 128 bytes to 4 MiB, @hpa aligned to
 * it and below 64 GiB. */
struct vmpt_rtit_bounce {
	u8 *bytes;
	u64 hpa;
	u32 size;
};

struct vmpt_rtit_config {
	const struct vmpt_rtit_ops *ops; /* stays the caller's */
	void *opaque;
	struct vmpt_rtit_rules rules;
	u8 output;			/* enum vmpt_rtit_output */
	struct vmpt_rtit_bounce bounce; /* bytes NULL: none */
	/*
	 * 4.2.13: STS and MTC carry the hardware counter. false: so they stay, and the side
	 * record has the offsets. true: copied-out STSs get tsc_offset added (modulo 2^40); MTCs
	 * stay, for 8 bits out of the middle cannot take an offset but a multiple of their step:
	 * the guest gets times that disagree unless it is one (vmpt_rtit_mtc_fits()).
	 */
	bool rewrite_sts;
	u8 on_unbacked, on_mmio; /* enum vmpt_mem_policy for output; RETRY and DROP */
};

/* What has to be told to a caller, added up until it clears them. */
#define VMPT_RTIT_EVENT_LOST 0x1 /* bytes of the guest's trace were lost: see lost */

struct vmpt_rtit_vcpu {
	/* set by init */
	struct vmpt_rtit_config config;

	/* to read: the guest's registers as the guest sees them; stable while it is out */
	struct vmpt_rtit_regs regs;
	u32 events;
	u64 lost;	 /* bytes */
	u8 gp_why;	 /* enum vmpt_gp_reason of the last #GP */
	u64 tsc_offset;	 /* VMCS TSC offset in use */
	u64 core_offset; /* IA32_TSC_OFFSET of the processor, for the side record */

	/* the library's own */
	bool entered; /* its MSRs are in the processor */
	bool bounced; /* output goes to the bounce buffer now */
	bool lost_state;
	u64 hw_base, hw_mask;		 /* output as the processor has it */
	u64 hw_offset;			 /* OFFSET when it was loaded, or last copied out */
	u64 rewritten;			 /* guest OFFSET up to which STSs were rewritten */
	struct vmpt_rtit_regs host_regs; /* what the processor held */
	u8 tail[VMPT_RTIT_SIZE_MAX];	 /* of the output: a packet that was cut */
	u8 tail_len;
};

/* -VMPT_E_INVAL: a callback is missing, a bounce buffer is not as said. After RESET. */
int vmpt_rtit_vcpu_init(struct vmpt_rtit_vcpu *vcpu, const struct vmpt_rtit_config *config);
/* RESET of the virtual processor; INIT changes nothing and has no call. */
void vmpt_rtit_vcpu_reset(struct vmpt_rtit_vcpu *vcpu);

/* ---- MSRs ---- */

/*
 * RDMSR and WRMSR of the guest, which always exit. While the guest's MSRs are in the processor
 * they are read from and written to it, in the only legal order. 0, VMPT_GP, -VMPT_E_INVAL.
 * @context_en: what the processor's STATUS would show for the guest (2.1.2); the processor itself
 * is in root operation now and shows 0.
 */
int vmpt_rtit_vcpu_rdmsr(struct vmpt_rtit_vcpu *vcpu, u32 msr, bool context_en, u64 *value);
int vmpt_rtit_vcpu_wrmsr(struct vmpt_rtit_vcpu *vcpu, u32 msr, u64 value);

/* ---- the processor ---- */

/*
 * Before this vCPU's next VM entry, if its MSRs are not in the processor: stop what traces now
 * (TraceActive off, Trace_En off, the drain that a write of CTL is), save it in host_regs, load
 * the guest's (Trace_En on, then TraceActive on: a PSB comes, 4.2.1). -VMPT_E_STATE: they are
 * there already; -VMPT_E_HARDWARE; -VMPT_E_GUEST_MEM, -VMPT_E_RETRY: by policy.
 */
int vmpt_rtit_vcpu_load(struct vmpt_rtit_vcpu *vcpu);
/*
 * Before another vCPU or the host needs them, in root operation: stop, drain, save the guest's
 * (LAST_LIP, LAST_CALL_NLIP, TNT_BUFF and CNTP too), copy out, load host_regs again.
 */
int vmpt_rtit_vcpu_unload(struct vmpt_rtit_vcpu *vcpu);
/* Copy what the bounce buffer holds out to the guest: after each exit, or before it has wrapped
 * round. Drains first. @wrapped: the VMM knows it was too late: all is lost but the newest. */
int vmpt_rtit_vcpu_sync(struct vmpt_rtit_vcpu *vcpu, bool wrapped);
/* The memory that guest_translate() gave is no more: go on elsewhere at the next load. */
int vmpt_rtit_vcpu_unmap(struct vmpt_rtit_vcpu *vcpu);

/* ---- missing packets (4.2.10) ---- */

struct vmpt_rtit_cr_write {
	u64 new_cr3;
	bool new_paging;
	bool was_mov_cr3; /* else MOV CR0 that changed CR0.PG */
	u8 cpl;
};

/*
 * A guest's CR3 or CR0.PG changed by an exit: append what the processor would have made: the
 * partial TNT, the PIP if ContextEn, TriggerEn and CR3En = 0, the STS of STS_on_CR3. 1: appended,
 * 0: none was due. STATUS.FilterEn is as the processor left it.
 */
int vmpt_rtit_vcpu_cr_write(struct vmpt_rtit_vcpu *vcpu, const struct vmpt_rtit_cr_write *write);

/* ---- clocks ---- */

/* Whether MTCs of @range (0 to 3) stay true under @offset. */
bool vmpt_rtit_mtc_fits(u64 offset, unsigned int range);
/* Rewrite the STSs of whole packets in @buf by @offset; returns the bytes that were looked at: the
 * rest is the head of a packet. @cycle_acc as RTIT_CTL has it. Bytes that are no packets: up to
 * the next PSB they stay. */
size_t vmpt_rtit_sts_rewrite(u8 *buf, size_t len, bool cycle_acc, u64 offset);

/* From byte @offset of processor @cpu's stream on (or from hardware TSC @tsc on), this runs. */
struct vmpt_rtit_record {
	const char *vm; /* UTF-8; NULL: the host, or nobody */
	u32 vcpu, cpu;
	bool by_tsc;
	u64 offset, tsc;
	u64 tsc_offset, core_offset;
};

/*
 * One line of JSON: {"rtit":1,"vm":"name","vcpu":0,"cpu":3,"offset":"0x…","tsc_offset":"0x…",
 * "core_offset":"0x…"}; "tsc" instead of "offset" with by_tsc, "vm":null for the host. As
 * vmpt_record_print().
 */
size_t vmpt_rtit_record_print(const struct vmpt_rtit_record *record, char *buf, size_t len);

/* ---- save and restore, migration ---- */

#define VMPT_RTIT_STATE_VERSION 1
#define VMPT_RTIT_STATE_MAX	512
/* Also while loaded is -VMPT_E_STATE. Little-endian, versioned, the same on every machine. */
int vmpt_rtit_vcpu_save(const struct vmpt_rtit_vcpu *vcpu, u8 *buf, size_t len);
int vmpt_rtit_vcpu_restore(struct vmpt_rtit_vcpu *vcpu, const u8 *buf, size_t len);

#ifdef __cplusplus
}
#endif

#endif
