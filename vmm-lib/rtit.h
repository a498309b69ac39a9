/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * RTIT, the Real Time Instruction Trace of the 2013-15 Atoms, for guests (RTIT Programming
 * Reference, March 2015). docs/vmm-lib/rtit.md explains it step by step.
 *
 * Differences from Intel PT: no CPUID (a guest checks family, model and stepping and tries, 3.1);
 * no VMCS fields or MSR lists are needed: the processor keeps ContextEn = 0 in VMX root operation
 * and makes FUP.PGD and FUP.PGE at VM exit and entry itself (2.6.2); the output address is a
 * platform physical one that EPT does not translate (2.3). So a VMM intercepts the MSRs, swaps them
 * when another vCPU (or the host's own tracing) needs the processor, and directs the guest's output
 * to the guest's own memory.
 *
 * A vCPU is the caller's memory; nothing is allocated, nothing is global; one thread at a time.
 * Results: 0, VMPT_GP (#GP(0) for the guest), or a negative enum vmpt_error. A negative result of a
 * memory callback is returned unchanged. Guest memory is hostile: all work is bounded.
 */
#ifndef VMPT_VMM_RTIT_H
#define VMPT_VMM_RTIT_H

#include "arch/rtit-packet.h"
#include "arch/rtit-regs.h"
#include "vmm-lib/vmpt.h"

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

/* ---- what a guest is shown (1.2, 3.1) ---- */

/* A processor's family, model and stepping, by which software knows that it has RTIT (1.2). */
struct vmpt_rtit_signature {
	u8 family, model, stepping; /* as DisplayFamily, DisplayModel */
};

/* The processors of 1.2 in its order; *@n is their number. Static memory. */
const struct vmpt_rtit_signature *vmpt_rtit_signatures(unsigned int *n);

/*
 * CPUID for the guest: in leaf 1 EAX the signature replaces family, model and stepping. Intel PT is
 * hidden: leaf 7 EBX[25], leaf 14H, 0DH.1 ECX[8] and 0DH.8 become 0. Other leaves are not changed.
 */
void vmpt_rtit_cpuid(const struct vmpt_rtit_signature *signature, u32 leaf, u32 subleaf,
		     struct vmpt_cpuid_regs *regs);

/* ---- the VMM's callbacks ---- */

/* They get the opaque of struct vmpt_rtit_config. Those not marked optional are required. */
struct vmpt_rtit_ops {
	/*
	 * The processor's RTIT MSRs, on the processor that runs the vCPU, preemption off. Both or
	 * neither: neither in a VMM that is the processor itself. 0; anything else is a failure.
	 */
	int (*hw_rdmsr)(void *opaque, u32 msr, u64 *value);
	int (*hw_wrmsr)(void *opaque, u32 msr, u64 value);
	/*
	 * Guest-physical memory for the guest's output, any address; never across a 4-KiB boundary.
	 * 0 or an enum vmpt_guest_mem with nothing done.
	 */
	int (*guest_write)(void *opaque, u64 gpa, const void *buf, size_t len);
	/*
	 * VMPT_RTIT_CONTIGUOUS: host-physical address of @gpa. *size: in: bytes wanted; out: how
	 * many of them are contiguous from there, at least 1. They stay in place until a
	 * guest_release() for them. Or an enum vmpt_guest_mem. At most 1,025 calls per buffer.
	 *
	 * The processor's stores bypass EPT and the host's page tables (2.3). So return only RAM
	 * that this guest may write at that moment, that is private to it (no page shared with
	 * another guest, merged or copy-on-write) and is pinned; VMPT_MEM_RESTRICTED for a ROM or a
	 * write-protected page.
	 */
	int (*guest_translate)(void *opaque, u64 gpa, u64 *hpa, u64 *size);
	/*
	 * What guest_translate() returned for these bytes is no longer in use; one call may cover
	 * several of its results. Pins must be counted: while output moves, the new place is pinned
	 * before the old one is released, and both may contain the same pages. Optional.
	 */
	void (*guest_release)(void *opaque, u64 gpa, u64 size);
	/*
	 * Output with CTL.Dest = 0, which never reaches a real port (2.3.1). Optional: without it
	 * these bytes are dropped. @pa: where the guest sent them.
	 */
	void (*debug_port)(void *opaque, u64 pa, const u8 *bytes, size_t len);
	/*
	 * The hardware TSC, and the core/bus ratios an STS carries; for STSs that the library
	 * inserts. Optional: without it none is inserted.
	 */
	void (*clock)(void *opaque, u64 *tsc, u8 *acbr, u8 *ecbr);
};

/* How output reaches the guest's memory. */
enum vmpt_rtit_output {
	VMPT_RTIT_CONTIGUOUS, /* the processor writes to guest memory; through the bounce buffer
				 where that is not contiguous, if there is one */
	VMPT_RTIT_BOUNCE,     /* always through the host's buffer */
};

/*
 * A buffer in host memory for one vCPU: @size a power of 2, 128 bytes to 4 MiB, @hpa aligned to it
 * and below 64 GiB. If it is as large as the guest's own, a guest that fills it between two calls
 * of vmpt_rtit_vcpu_sync() loses nothing: its own buffer would have wrapped as well.
 * vmpt_rtit_vcpu_init() clears it. The processor's stores are USWC, whatever the MTRRs say (2.3):
 * map @bytes write-combining or uncached. With a write-back mapping, a stale cache line would be
 * taken for trace or hide a wrap.
 */
struct vmpt_rtit_bounce {
	u8 *bytes;
	u64 hpa;
	u32 size;
};

/* What vmpt_rtit_vcpu_init() makes a vCPU of; it is copied. */
struct vmpt_rtit_config {
	const struct vmpt_rtit_ops *ops; /* owned by the caller */
	void *opaque;
	struct vmpt_rtit_rules rules;
	u8 output;			/* enum vmpt_rtit_output */
	struct vmpt_rtit_bounce bounce; /* bytes NULL: none */
	/*
	 * 4.2.13: STS and MTC carry the hardware counter. false: they stay so, and the side record
	 * has the offsets. true: both offsets are added on the way out, as
	 * vmpt_rtit_clock_rewrite() does. Needs VMPT_RTIT_BOUNCE: memory that the guest reads while
	 * the processor writes cannot be rewritten in time.
	 */
	bool rewrite_clock;
	/*
	 * enum vmpt_mem_policy for output to such memory. DROP: the bytes are dropped; ERROR is the
	 * same, because RTIT has no error bit. RETRY: -VMPT_E_RETRY.
	 */
	u8 on_unbacked, on_mmio, on_apic, on_restricted;
};

/* Events for the caller, accumulated until it clears them. */
#define VMPT_RTIT_EVENT_LOST   0x1 /* bytes of the guest's trace were lost: see lost */
#define VMPT_RTIT_EVENT_PARKED 0x2 /* no memory for output: the guest is not traced now */
/* The processor answered what no such MSR can hold, or its OFFSET went back. */
#define VMPT_RTIT_EVENT_HARDWARE 0x4

/* Where the processor's output goes while the guest's MSRs are in it. */
enum vmpt_rtit_path {
	VMPT_RTIT_PATH_NONE,   /* none: TriggerEn = 0 since they were loaded */
	VMPT_RTIT_PATH_DIRECT, /* to the guest's memory */
	VMPT_RTIT_PATH_BOUNCE,
	VMPT_RTIT_PATH_PARKED, /* no place for output: TraceActive is 0 in the processor */
};

/*
 * Where packet boundaries are unknown, an STS cannot be found, and an unadjusted one would show the
 * host's time. So all bytes from there up to the next PSB (4.2.1) are overwritten with this one.
 * RTIT has no PAD; this is a header that Figure 2 reserves, so a guest's decoder reports an error
 * and resumes at that PSB. It is no byte of a PSB, and not the FFH by which a wrap is detected.
 */
#define VMPT_RTIT_LOST_MARK 0xfd

/* State of a rewriter between two calls. All zero: at a packet's start. */
struct vmpt_rtit_rewrite {
	bool lost; /* packet boundaries are unknown until a PSB */
	u64 bytes; /* overwritten, added up */
};

/* A vCPU. The caller may read the fields under "to read". */
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
	u64 hw_ctl;			 /* last value written */
	struct vmpt_rtit_regs host_regs; /* the processor's values before the load */
	u64 direct_gpa, direct_size;	 /* result of guest_translate() */
	/*
	 * The bounce buffer: from pos on, used bytes wait to be copied; the last unseen of these
	 * were not rewritten yet, because they are the head of a packet.
	 */
	u32 pos, used, unseen;
	u32 mark;  /* end of a pattern that the processor overwrites if it wraps */
	bool over; /* it wrapped, and its position then was end */
	u32 end;
	struct vmpt_rtit_rewrite rewrite;
};

/* The number that the call below compares with the library's: see VMPT_ABI_VERSION. */
#define VMPT_RTIT_VCPU_ABI                                                                     \
	VMPT_ABI_ADD(VMPT_ABI_ADD(VMPT_ABI4(struct vmpt_rtit_vcpu, struct vmpt_rtit_config,    \
					    struct vmpt_rtit_ops, struct vmpt_rtit_signature), \
				  struct vmpt_rtit_cr_write),                                  \
		     struct vmpt_rtit_record)

/*
 * After RESET. -VMPT_E_INVAL: a callback is missing, a bounce buffer is not as described, or
 * rewrite_clock without VMPT_RTIT_BOUNCE.
 */
int vmpt_rtit_vcpu_init_abi(struct vmpt_rtit_vcpu *vcpu, const struct vmpt_rtit_config *config,
			    u64 abi);
#define vmpt_rtit_vcpu_init(vcpu, config) vmpt_rtit_vcpu_init_abi(vcpu, config, VMPT_RTIT_VCPU_ABI)
/* RESET of the virtual processor; INIT changes nothing and has no call. -VMPT_E_STATE: loaded. */
int vmpt_rtit_vcpu_reset(struct vmpt_rtit_vcpu *vcpu);

/* ---- MSRs ---- */

/*
 * RDMSR and WRMSR of the guest, which always exit. While the guest's MSRs are in the processor,
 * they are read and written there, in the only legal order. 0, VMPT_GP (see gp_why), -VMPT_E_INVAL
 * (not an MSR of RTIT), -VMPT_E_HARDWARE; -VMPT_E_RETRY or a callback's error: not completed, let
 * the guest execute the instruction again. @context_en: what STATUS would show for the guest
 * (2.1.2), outside SMM vmpt_rtit_context_en(&vcpu->regs, 0, cr3); the processor itself is in root
 * operation and shows 0. Ignored and taken as 0 during vmpt_rtit_vcpu_hold().
 */
int vmpt_rtit_vcpu_rdmsr(struct vmpt_rtit_vcpu *vcpu, u32 msr, bool context_en, u64 *value);
int vmpt_rtit_vcpu_wrmsr(struct vmpt_rtit_vcpu *vcpu, u32 msr, u64 value);

/* ---- the processor ---- */

/*
 * Whether the guest needs its MSRs in the processor to run: Trace_En is 1 (if it is 0, nothing is
 * traced and FilterEn is frozen, 2.1.3). Check after each exit that wrote an MSR.
 */
static inline bool vmpt_rtit_vcpu_wanted(const struct vmpt_rtit_vcpu *vcpu)
{
	return vcpu->regs.ctl & VMPT_RTIT_CTL_TRACE_EN;
}

/*
 * Call before this vCPU's next VM entry, if its MSRs are not in the processor: stops current
 * tracing (TraceActive off, Trace_En off; a write of CTL drains), saves the MSRs in host_regs,
 * loads the guest's (Trace_En on, then TraceActive on, which makes a PSB, 4.2.1). -VMPT_E_STATE:
 * already loaded; -VMPT_E_INVAL: no hw_wrmsr. With the processor's MSRs unchanged: -VMPT_E_RETRY or
 * a callback's error (no memory for output yet), -VMPT_E_HOST_TRACING (Trace_En does not stay
 * clear), -VMPT_E_HARDWARE (then Trace_En may be 0).
 */
int vmpt_rtit_vcpu_load(struct vmpt_rtit_vcpu *vcpu);
/*
 * Call before another vCPU or the host needs the MSRs, in root operation: stops, drains, saves the
 * guest's (including LAST_LIP, LAST_CALL_NLIP, TNT_BUFF and CNTP), copies out, loads host_regs
 * again. Always runs to completion: after every result but -VMPT_E_STATE they are unloaded.
 * -VMPT_E_HARDWARE; or the result of vmpt_rtit_vcpu_sync(): call that again later, while unloaded.
 */
int vmpt_rtit_vcpu_unload(struct vmpt_rtit_vcpu *vcpu);
/*
 * Drain, and copy the contents of the bounce buffer to the guest: after each exit, or before it is
 * full. Without a bounce buffer, only drain. -VMPT_E_HARDWARE; -VMPT_E_RETRY or a callback's error:
 * some bytes are not copied yet; do not enter the guest before they are. At most 4 MiB are copied
 * in (size / 4096 + 2) calls of guest_write().
 */
int vmpt_rtit_vcpu_sync(struct vmpt_rtit_vcpu *vcpu);
/*
 * With LESS_PKTS = 0 the processor also makes MTCs in root operation while the guest's MSRs are
 * loaded: they show the guest time in which it did not run, and fill its buffer. true (after an
 * exit): none are made from here on; false: before the entry. At most one WRMSR each, and none for
 * guests that would not get such packets. Persists across vmpt_rtit_vcpu_load().
 */
int vmpt_rtit_vcpu_quiet(struct vmpt_rtit_vcpu *vcpu, bool quiet);
/*
 * true: the guest is in an SMM that the VMM emulates, or in the root operation of its own VMX:
 * "RTIT is always disabled" there (2.6), but the processor runs it in non-root operation and knows
 * of neither. Call it at SMI, RSM, VMXON, VMXOFF and nested entry and exit, in root operation,
 * before the next VM entry. The exit's FUP.PGD and the entry's FUP.PGE are then those of 2.6, and
 * only packets made with ContextEn = 0 are between them. -VMPT_E_HARDWARE: do not enter. Persists
 * across load and unload; ends with a RESET; not part of the saved state.
 */
int vmpt_rtit_vcpu_hold(struct vmpt_rtit_vcpu *vcpu, bool held);

/* ---- missing packets (4.2.10, 4.2.13) ---- */

/* A write of CR3, or of CR0 that changed CR0.PG: the values after it. */
struct vmpt_rtit_cr_write {
	u64 new_cr3;
	bool new_paging;
	bool was_mov_cr3; /* else MOV CR0 that changed CR0.PG */
};

/*
 * The VMM carried out a guest's MOV CR3, or MOV CR0 that changed CR0.PG (both at CPL 0), after an
 * exit: append what the processor would have made: the PIP if ContextEn, TriggerEn and CR3En = 0,
 * the STS of STS_on_CR3, and before them the partial TNT. 1: appended, 0: none was due.
 * -VMPT_E_HARDWARE; -VMPT_E_RETRY or a callback's error: nothing was done, call again with the same
 * arguments.
 */
int vmpt_rtit_vcpu_cr_write(struct vmpt_rtit_vcpu *vcpu, const struct vmpt_rtit_cr_write *write);
/*
 * The guest's HLT, MWAIT or shutdown exited, the VMM let it sleep, and it now wakes: append the STS
 * of a wakeup (4.2.13), if such packets are sent. A sleeping processor makes no MTC (Appendix B
 * 4.1), so stay quiet from the exit to the entry after this call. @context_en as for
 * vmpt_rtit_vcpu_rdmsr(); results as for cr_write. Not for a sleep that is invisible to the guest.
 */
int vmpt_rtit_vcpu_wake(struct vmpt_rtit_vcpu *vcpu, bool context_en);

/* ---- clocks ---- */

/*
 * The guest's TSC = hardware TSC + @core_offset (IA32_TSC_OFFSET of the processor) + @tsc_offset
 * (of the VMCS), both in ticks, two's complement. Call it at each change. 0; with rewrite_clock it
 * syncs first, and returns the errors of vmpt_rtit_vcpu_sync().
 */
int vmpt_rtit_vcpu_clock(struct vmpt_rtit_vcpu *vcpu, u64 tsc_offset, u64 core_offset);

/*
 * Whether MTCs of @range (0 to 3) can be adjusted by @offset: a multiple of their step, 2^(7 + 2
 * range). Multiples of 2^13 = 8192 fit all ranges.
 */
static inline bool vmpt_rtit_mtc_fits(u64 offset, unsigned int range)
{
	return !(offset & vmpt_mask64(7 + 2 * (range & 3)));
}

/*
 * Add @offset to the clocks of the complete packets in @buf: STSs modulo 2^40; MTCs only if it is a
 * multiple of their step: eight bits from the middle of the TSC cannot represent other offsets, and
 * such MTCs would come at the wrong moments. Bytes that are no packet are overwritten up to the
 * next PSB, see VMPT_RTIT_LOST_MARK. Returns the number of bytes processed: the rest, unchanged, is
 * the head of a packet or possibly of a PSB: the next call begins with it. @cycle_acc:
 * CTL.Cycle_Acc.
 */
size_t vmpt_rtit_clock_rewrite(struct vmpt_rtit_rewrite *state, u8 *buf, size_t len, bool cycle_acc,
			       u64 offset);

/*
 * From byte @offset of processor @cpu's stream on (or from hardware TSC @tsc on), this vCPU runs.
 * Record it after the exit and drain of the previous one, before this one's MSRs are loaded and it
 * is entered: everything after it belongs to this one. Without the drain, the waiting bytes must
 * end with the exit's FUP.PGD.
 */
struct vmpt_rtit_record {
	const char *vm; /* UTF-8; NULL: the host, or no one */
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

/* The version that vmpt_rtit_vcpu_save() writes. */
#define VMPT_RTIT_STATE_VERSION 1
/* Most bytes that vmpt_rtit_vcpu_save() writes. */
#define VMPT_RTIT_STATE_MAX 512
/*
 * Write the state of a vCPU that is not loaded to @buf. Returns the bytes written or -VMPT_E_SPACE,
 * -VMPT_E_STATE (loaded, or output is not copied yet: vmpt_rtit_vcpu_sync()). Little-endian,
 * versioned, the same on every machine.
 */
int vmpt_rtit_vcpu_save(const struct vmpt_rtit_vcpu *vcpu, u8 *buf, size_t len);
/*
 * Load a saved state into a vCPU made by vmpt_rtit_vcpu_init(). Nothing is changed unless
 * everything fits: -VMPT_E_INVAL with @why (may be NULL) naming the field, -VMPT_E_UNSUPPORTED (a
 * newer version), -VMPT_E_FORMAT, -VMPT_E_TRUNCATED, -VMPT_E_STATE (loaded).
 */
int vmpt_rtit_vcpu_restore(struct vmpt_rtit_vcpu *vcpu, const u8 *buf, size_t len,
			   struct vmpt_refusal *why);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#endif
