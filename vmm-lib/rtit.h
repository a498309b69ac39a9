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
 * of a callback for memory is handed on as it is. Guest memory is hostile: all work is bounded.
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

/* The processors of 1.2 in its order; count in *@n. Static memory. */
const struct vmpt_rtit_signature *vmpt_rtit_signatures(unsigned int *n);

/*
 * CPUID for the guest: in leaf 1 EAX the signature replaces family, model and stepping. Of Intel
 * PT nothing is left: leaf 7 EBX[25], leaf 14H, 0DH.1 ECX[8] and 0DH.8 become 0. Other leaves are
 * left alone.
 */
void vmpt_rtit_cpuid(const struct vmpt_rtit_signature *signature, u32 leaf, u32 subleaf,
		     struct vmpt_cpuid_regs *regs);

/* ---- the VMM's callbacks ---- */

struct vmpt_rtit_ops {
	/*
	 * The processor's RTIT MSRs, on the processor that runs the vCPU, preemption off. Both or
	 * none: none in a VMM that is the processor itself. 0; all else is a failure.
	 */
	int (*hw_rdmsr)(void *opaque, u32 msr, u64 *value);
	int (*hw_wrmsr)(void *opaque, u32 msr, u64 value);
	/*
	 * Guest-physical memory for the guest's output, any address; never across 4 KiB. 0 or an
	 * enum vmpt_guest_mem with nothing done.
	 */
	int (*guest_write)(void *opaque, u64 gpa, const void *buf, size_t len);
	/*
	 * VMPT_RTIT_CONTIGUOUS: host-physical address of @gpa. *size: in: bytes wanted; out: how
	 * many of them are contiguous from there, 1 at least. They stay where they are until a
	 * guest_release() with them. Or an enum vmpt_guest_mem. At most 1,025 calls for a buffer.
	 *
	 * The processor stores there past EPT and the host's page tables (2.3). So give only RAM
	 * that this guest may write at that moment, that is its own (no page shared with another
	 * guest, merged or copy-on-write) and is pinned; VMPT_MEM_RESTRICTED for a ROM or a page
	 * that is write-protected.
	 */
	int (*guest_translate)(void *opaque, u64 gpa, u64 *hpa, u64 *size);
	/* What guest_translate() gave for these bytes is not in use any more; several answers of
	 * it may be taken together. Holds must be counted: while output moves the new place is held
	 * before the old one is released, and both may have the same pages. Optional. */
	void (*guest_release)(void *opaque, u64 gpa, u64 size);
	/* Output with CTL.Dest = 0, which never comes to a real port (2.3.1). Optional: without
	 * it these bytes go nowhere. @pa: where the guest sent them. */
	void (*debug_port)(void *opaque, u64 pa, const u8 *bytes, size_t len);
	/* The hardware TSC, and the core/bus ratios an STS carries; for STSs that the library
	 * inserts. Optional: without it none is. */
	void (*clock)(void *opaque, u64 *tsc, u8 *acbr, u8 *ecbr);
};

enum vmpt_rtit_output {
	VMPT_RTIT_CONTIGUOUS, /* the processor writes to guest memory; through the bounce buffer
				 where that is not contiguous, if there is one */
	VMPT_RTIT_BOUNCE,     /* always through the host's buffer */
};

/*
 * A buffer of the host's, for one vCPU: @size a power of 2, 128 bytes to 4 MiB, @hpa aligned to
 * it and below 64 GiB. If it is as large as the guest's own, a guest that fills it between two
 * calls of vmpt_rtit_vcpu_sync() loses nothing: its own buffer would have wrapped as well.
 * vmpt_rtit_vcpu_init() clears it.
 * The processor's stores are USWC, whatever the MTRRs say (2.3): map @bytes write-combining or
 * uncached. A stale line of a write-back mapping is taken for the trace, or hides a wrap.
 */
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
	 * record has the offsets. true: they get both offsets added on their way out, as
	 * vmpt_rtit_clock_rewrite() does. Wants VMPT_RTIT_BOUNCE: in memory that a guest reads
	 * while the processor writes there is no moment to do it.
	 */
	bool rewrite_clock;
	/*
	 * enum vmpt_mem_policy for output to memory that answers so. DROP: the bytes vanish;
	 * ERROR is the same, for RTIT has no bit to tell one. RETRY: -VMPT_E_RETRY.
	 */
	u8 on_unbacked, on_mmio, on_apic, on_restricted;
};

/* What has to be told to a caller, added up until it clears them. */
#define VMPT_RTIT_EVENT_LOST   0x1 /* bytes of the guest's trace were lost: see lost */
#define VMPT_RTIT_EVENT_PARKED 0x2 /* no memory for output: the guest is not traced now */
#define VMPT_RTIT_EVENT_HARDWARE                                        \
	0x4 /* the processor answered what no such MSR can hold, or its \
	     * OFFSET went back */

/* Where the processor's output goes while the guest's MSRs are in it. */
enum vmpt_rtit_path {
	VMPT_RTIT_PATH_NONE,   /* TriggerEn = 0 since they were loaded: there is none */
	VMPT_RTIT_PATH_DIRECT, /* to the guest's memory */
	VMPT_RTIT_PATH_BOUNCE,
	VMPT_RTIT_PATH_PARKED, /* there is no place: TraceActive is 0 in the processor */
};

struct vmpt_rtit_vcpu {
	/* set by init */
	struct vmpt_rtit_config config;

	/*
	 * To read: the guest's registers as the guest sees them. While they are loaded CNTP, LIPs,
	 * PKT_CNT, TNT_BUFF, STATUS, TraceActive and OFFSET are in the processor: rdmsr has them.
	 */
	struct vmpt_rtit_regs regs;
	u32 events;
	u64 lost;    /* bytes, as far as they can be counted */
	u8 gp_why;   /* enum vmpt_gp_reason of the last #GP */
	bool loaded; /* its MSRs are in the processor */
	u8 path;     /* enum vmpt_rtit_path */

	/* the library's own */
	u64 tsc_offset, core_offset;	 /* vmpt_rtit_vcpu_clock() */
	bool quiet;			 /* vmpt_rtit_vcpu_quiet() */
	bool held;			 /* vmpt_rtit_vcpu_hold() */
	u64 hw_ctl;			 /* as written last */
	struct vmpt_rtit_regs host_regs; /* what the processor held */
	u64 direct_gpa, direct_size;	 /* what guest_translate() gave */
	/* The bounce buffer: from pos on, used bytes wait; of these the last unseen ones were not
	 * rewritten, for they are the head of a packet. */
	u32 pos, used, unseen;
	u32 mark;  /* where a pattern ends that the processor writes over if it wraps */
	bool over; /* it wrapped, and was at end then */
	u32 end;
	bool sync_lost; /* where packets begin is not known until a PSB */
};

/* After RESET. -VMPT_E_INVAL: a callback is missing, a bounce buffer is not as said, or
 * rewrite_clock without VMPT_RTIT_BOUNCE. */
int vmpt_rtit_vcpu_init(struct vmpt_rtit_vcpu *vcpu, const struct vmpt_rtit_config *config);
/* RESET of the virtual processor; INIT changes nothing and has no call. -VMPT_E_STATE: loaded. */
int vmpt_rtit_vcpu_reset(struct vmpt_rtit_vcpu *vcpu);

/* ---- MSRs ---- */

/*
 * RDMSR and WRMSR of the guest, which always exit. While the guest's MSRs are in the processor
 * they are read from and written to it, in the only legal order. 0, VMPT_GP (see gp_why),
 * -VMPT_E_INVAL (not one of RTIT), -VMPT_E_HARDWARE; -VMPT_E_RETRY or a callback's error: it was
 * not done to its end, let the guest execute it again.
 * @context_en: what the processor's STATUS would show for the guest (2.1.2), out of SMM
 * vmpt_rtit_context_en(&vcpu->regs, 0, cr3); the processor itself is in root operation, shows 0.
 * While vmpt_rtit_vcpu_hold() it is 0 whatever is said.
 */
int vmpt_rtit_vcpu_rdmsr(struct vmpt_rtit_vcpu *vcpu, u32 msr, bool context_en, u64 *value);
int vmpt_rtit_vcpu_wrmsr(struct vmpt_rtit_vcpu *vcpu, u32 msr, u64 value);

/* ---- the processor ---- */

/*
 * Whether the guest may not run without its MSRs in the processor: Trace_En is 1 (with it 0
 * nothing is traced and FilterEn is frozen, 2.1.3). Ask after each exit that wrote an MSR.
 */
static inline bool vmpt_rtit_vcpu_wanted(const struct vmpt_rtit_vcpu *vcpu)
{
	return vcpu->regs.ctl & VMPT_RTIT_CTL_TRACE_EN;
}

/*
 * Before this vCPU's next VM entry, if its MSRs are not in the processor: stop what traces now
 * (TraceActive off, Trace_En off, the drain that a write of CTL is), save it in host_regs, load
 * the guest's (Trace_En on, then TraceActive on: a PSB comes, 4.2.1). -VMPT_E_STATE: they are
 * there already; -VMPT_E_INVAL: no hw_wrmsr. With the processor's as they were: -VMPT_E_RETRY or a
 * callback's error (there is no memory for output yet), -VMPT_E_HOST_TRACING (Trace_En does not
 * stay clear), -VMPT_E_HARDWARE (then Trace_En may be 0).
 */
int vmpt_rtit_vcpu_load(struct vmpt_rtit_vcpu *vcpu);
/*
 * Before another vCPU or the host needs them, in root operation: stop, drain, save the guest's
 * (LAST_LIP, LAST_CALL_NLIP, TNT_BUFF and CNTP too), copy out, load host_regs again. Goes to its
 * end whatever happens: after each answer but -VMPT_E_STATE they are out. -VMPT_E_HARDWARE; what
 * vmpt_rtit_vcpu_sync() returned: call that again later, out of the processor.
 */
int vmpt_rtit_vcpu_unload(struct vmpt_rtit_vcpu *vcpu);
/*
 * Drain, and copy to the guest what is in the bounce buffer: after each exit, or before it is
 * full. Without a bounce buffer it drains only. -VMPT_E_HARDWARE; -VMPT_E_RETRY or a callback's
 * error: what was not copied waits; do not enter the guest before it is. At most 4 MiB are copied
 * in (size / 4096 + 2) calls of guest_write().
 */
int vmpt_rtit_vcpu_sync(struct vmpt_rtit_vcpu *vcpu);
/*
 * With LESS_PKTS = 0 the processor makes MTCs in root operation too while the guest's MSRs are in
 * it: they tell the guest of time that it did not have, and fill its buffer. true: from here on
 * (behind an exit) none is made; false: before the entry. At most one WRMSR each, and none for
 * guests that would not get such packets. Stays over vmpt_rtit_vcpu_load().
 */
int vmpt_rtit_vcpu_quiet(struct vmpt_rtit_vcpu *vcpu, bool quiet);
/*
 * true: the guest is in an SMM that the VMM emulates, or in the root operation of its own VMX:
 * "RTIT is always disabled" there (2.6), but the processor that runs it in non-root operation knows
 * of neither. Call it at SMI, RSM, VMXON, VMXOFF and a nested entry and exit, in root operation,
 * before the VM entry behind it. The exit's FUP.PGD and the entry's FUP.PGE are those of 2.6 then,
 * and nothing is between them but what comes with ContextEn = 0. -VMPT_E_HARDWARE: do not enter.
 * Stays over load and unload; a RESET ends it; it is in no saved state.
 */
int vmpt_rtit_vcpu_hold(struct vmpt_rtit_vcpu *vcpu, bool held);

/* ---- missing packets (4.2.10, 4.2.13) ---- */

struct vmpt_rtit_cr_write {
	u64 new_cr3;
	bool new_paging;
	bool was_mov_cr3; /* else MOV CR0 that changed CR0.PG */
};

/*
 * A guest's MOV CR3, or MOV CR0 that changed CR0.PG (both at CPL 0), was carried out behind an
 * exit: append what the processor would have made: the PIP if ContextEn, TriggerEn and CR3En = 0,
 * the STS of STS_on_CR3, and before them the partial TNT. 1: appended, 0: none was due.
 * -VMPT_E_HARDWARE; -VMPT_E_RETRY or a callback's error: nothing was done, call again with the
 * same.
 */
int vmpt_rtit_vcpu_cr_write(struct vmpt_rtit_vcpu *vcpu, const struct vmpt_rtit_cr_write *write);
/*
 * The guest's HLT, MWAIT or shutdown exited, the VMM let it sleep, and it wakes now: append the STS
 * of a wakeup (4.2.13), if such packets are sent. No MTC comes in a sleep (Appendix B 4.1), so be
 * quiet from the exit to the entry behind this. @context_en as for vmpt_rtit_vcpu_rdmsr(); results
 * as of cr_write. Not for a sleep that the guest sees nothing of.
 */
int vmpt_rtit_vcpu_wake(struct vmpt_rtit_vcpu *vcpu, bool context_en);

/* ---- clocks ---- */

/*
 * The guest's TSC = hardware TSC + @core_offset (IA32_TSC_OFFSET of the processor) + @tsc_offset
 * (of the VMCS). Call it with each change; with rewrite_clock it syncs first, and its errors are
 * that call's.
 */
int vmpt_rtit_vcpu_clock(struct vmpt_rtit_vcpu *vcpu, u64 tsc_offset, u64 core_offset);

/* Whether MTCs of @range (0 to 3) can take @offset: a multiple of their step, 2^(7 + 2 range). One
 * of 2^13 = 8192 fits all. */
static inline bool vmpt_rtit_mtc_fits(u64 offset, unsigned int range)
{
	return !(offset & vmpt_mask64(7 + 2 * (range & 3)));
}

/*
 * Add @offset to the clocks of the whole packets in @buf: STSs modulo 2^40; MTCs where it is a
 * multiple of their step, else they stay: eight bits out of the middle take no other, nor would
 * they come at the right moments. Returns the bytes that were looked at: the rest is the head of
 * a packet. @cycle_acc as CTL has it. *@lost, in and out: where packets begin is not known; up to
 * the next PSB nothing is rewritten. Bytes that are no packet set it.
 */
size_t vmpt_rtit_clock_rewrite(u8 *buf, size_t len, bool cycle_acc, u64 offset, bool *lost);

/*
 * From byte @offset of processor @cpu's stream on (or from hardware TSC @tsc on), this runs. Taken
 * behind the last one's exit and its drain, before this one's MSRs are loaded and it is entered:
 * all behind it is this one's. Not drained, what waits must end with the exit's FUP.PGD.
 */
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
/*
 * The state of a vCPU that is not loaded, to @buf. Returns the bytes written or -VMPT_E_SPACE,
 * -VMPT_E_STATE (loaded, or output waits: vmpt_rtit_vcpu_sync()). Little-endian, versioned, the
 * same on every machine.
 */
int vmpt_rtit_vcpu_save(const struct vmpt_rtit_vcpu *vcpu, u8 *buf, size_t len);
/*
 * Into a vCPU made by vmpt_rtit_vcpu_init(). Nothing is changed unless all fits: -VMPT_E_INVAL
 * with @why (may be NULL) naming the field, -VMPT_E_UNSUPPORTED (a newer version), -VMPT_E_FORMAT,
 * -VMPT_E_TRUNCATED, -VMPT_E_STATE (loaded).
 */
int vmpt_rtit_vcpu_restore(struct vmpt_rtit_vcpu *vcpu, const u8 *buf, size_t len,
			   struct vmpt_refusal *why);

#ifdef __cplusplus
}
#endif

#endif
