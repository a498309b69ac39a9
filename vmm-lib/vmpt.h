/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * libvmpt: Intel PT for guests. What a VMM links, or a kernel builds in, to give its guests
 * Processor Trace as SDM 3 chapter 33 has it. docs/vmm-guide.md explains it step by step, in the
 * order in which a VMM needs it.
 *
 * A vCPU is the caller's memory; nothing is allocated, nothing is global. Calls for one vCPU must
 * not run concurrently, except vmpt_vcpu_pmi_owner(), which an NMI handler may call at any time on
 * the processor that runs the vCPU.
 *
 * Results: 0, or a negative enum vmpt_error. What the guest sees is positive: VMPT_GP is #GP(0),
 * VMPT_SHUTDOWN a shutdown. A negative result of a callback is returned unchanged; the codes from
 * VMPT_E_CAPS to VMPT_E_RETRY are above all errno values, so -VMPT_E_RETRY is never ambiguous. The
 * other codes are small numbers, like errno.
 *
 * Guest memory is hostile: each entry is read once, checked, then used; the work of a call is
 * bounded, and the comment on each call gives its bound.
 */
#ifndef VMPT_VMM_VMPT_H
#define VMPT_VMM_VMPT_H

#include "arch/output.h"
#include "arch/pt-regs.h"
#include "vmm-lib/caps.h"
#include "vmm-lib/pip-write.h"
#include "vmm-lib/shadow-topa.h"
#include "vmm-lib/tsc.h"
#include "vmm-lib/vmx.h"

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

/* Not an error: the guest's processor goes into shutdown. */
#define VMPT_SHUTDOWN 2
/* Not for the guest: work is left, call again. */
#define VMPT_MORE 3

/* ---- the VMM's callbacks ---- */

/*
 * Results of the guest memory callbacks, besides 0. A negative result ends the call and is returned
 * unchanged.
 */
enum vmpt_guest_mem {
	VMPT_MEM_OK,
	VMPT_MEM_UNBACKED,   /* no memory there */
	VMPT_MEM_MMIO,	     /* a device */
	VMPT_MEM_APIC,	     /* the page of IA32_APIC_BASE */
	VMPT_MEM_RESTRICTED, /* protected by an SMRR (33.2.7.4) */
	VMPT_MEMS
};

/*
 * What the library does with such a result. The manual leaves it open; this is the VMM's policy and
 * not the processor's: it applies to what the library writes itself and to a shadow ToPA. Where the
 * processor writes by guest-physical addresses, missing memory is an EPT violation, see
 * vmpt_vcpu_ept_violation(). A table in such memory is an error; in unbacked memory under RETRY it
 * is -VMPT_E_RETRY.
 */
enum vmpt_mem_policy {
	VMPT_ON_MEM_ERROR, /* STATUS.Error, as an operational error (33.3.10) */
	VMPT_ON_MEM_DROP,  /* the bytes are dropped, tracing continues (a shadow ToPA: as ERROR) */
	VMPT_ON_MEM_RETRY, /* -VMPT_E_RETRY: the VMM provides memory and calls again */
};

/* Points of the hand-over, in order; owner: VMPT_OWNED_… of enum vmpt_msr_owner. */
enum vmpt_step {
	VMPT_STEP_ENTER_BEGIN,	  /* owner: TO_GUEST; nothing touched yet */
	VMPT_STEP_HOST_CLEARED,	  /* host TraceEn cleared by WRMSR */
	VMPT_STEP_HOST_VERIFIED,  /* read back, or host_ctl asked again: it is clear */
	VMPT_STEP_HOST_PMI_TAKEN, /* a pending ToPA PMI of the host went to its owner */
	VMPT_STEP_HOST_SAVED,	  /* the host's MSRs are read, as far as it traces */
	VMPT_STEP_GUEST_LOADED,	  /* the guest's MSRs, except CTL, are in the processor */
	VMPT_STEP_GUEST_OWNS,	  /* owner: BY_GUEST */
	VMPT_STEP_GUEST_CTL,	  /* guest CTL is where the VM entry loads it from */
	VMPT_STEP_ENTER_END,
	VMPT_STEP_EXIT_BEGIN,	   /* the processor cleared TraceEn at the exit */
	VMPT_STEP_EXIT_VERIFIED,   /* it is clear, as far as CTL or host_ctl says */
	VMPT_STEP_GUEST_SAVED,	   /* STATUS, OUTPUT_* and the others are read */
	VMPT_STEP_GUEST_PMI_TAKEN, /* GLOBAL_STATUS[55] was the guest's; it is cleared */
	VMPT_STEP_TO_HOST,	   /* owner: TO_HOST */
	VMPT_STEP_HOST_LOADED,	   /* the host's MSRs, except CTL, as the host wants them now */
	VMPT_STEP_HOST_OWNS,	   /* owner: BY_HOST */
	VMPT_STEP_HOST_CTL,	   /* host CTL, as the host wants it now */
	VMPT_STEP_EXIT_END,
	VMPT_STEPS
};

/*
 * Callbacks not marked optional are required wherever they are used. They return 0 or a negative
 * errno or enum vmpt_error unless stated otherwise.
 */
struct vmpt_ops {
	/*
	 * Guest-physical memory; address and length are the guest's and may be anything. 0, or an
	 * enum vmpt_guest_mem with nothing done. 8 bytes at an aligned address are one access.
	 */
	int (*guest_read)(void *opaque, u64 gpa, void *buf, size_t len);
	int (*guest_write)(void *opaque, u64 gpa, const void *buf, size_t len);
	/*
	 * Optional, to speed up vmpt_vcpu_tsc_adjust(): the memory itself. *size: in: bytes wanted,
	 * out: bytes usable from *host on, at least 1. Valid until the call that asked for it
	 * returns.
	 */
	int (*guest_map)(void *opaque, u64 gpa, u8 **host, size_t *size);
	/*
	 * For a shadow ToPA: the host-physical address of @gpa and how many bytes from there are
	 * contiguous and stay in place until vmpt_shadow_invalidate(). Pages are at least 4 KiB. Or
	 * an enum vmpt_guest_mem.
	 */
	int (*guest_translate)(void *opaque, u64 gpa, u64 *hpa, u64 *size);

	/*
	 * Deliver a performance-monitoring interrupt through the guest's LVT PMI entry. While that
	 * is masked the VMM keeps one pending and delivers it when the guest clears the mask
	 * (33.2.7.2, "PMI Preservation"): a dropped one is not injected again.
	 */
	void (*inject_pmi)(void *opaque);

	/*
	 * The processor's MSRs, on the processor that runs the vCPU, preemption off. These and
	 * set_guest_ctl are all present or all absent: absent in a VMM that is the processor itself
	 * and never calls vmpt_vcpu_enter(), which returns -VMPT_E_INVAL then. A plan that stops
	 * the host's tracing for a guest without PT needs them.
	 */
	int (*hw_rdmsr)(void *opaque, u32 msr, u64 *value);
	int (*hw_wrmsr)(void *opaque, u32 msr, u64 value);
	/* The guest's CTL for the next entry: VMCS field 2814H, or the MSR lists of the plan. */
	int (*set_guest_ctl)(void *opaque, u64 ctl);
	/* Optional: the guest's CTL after an exit, where CTL writes are not intercepted. */
	int (*get_guest_ctl)(void *opaque, u64 *ctl);

	/*
	 * The host's tracer. host_state: what it wants in the MSRs now, including CTL; on entry
	 * *regs holds what they held at the VM entry, and the callback changes what it wants to be
	 * different. It is called several times in a hand-over and must have no side effects.
	 * Optional: without it the values saved at entry are loaded again, with TraceEn = 0.
	 *
	 * Without config.restore_host only the MSRs that a tracing host uses are saved; the others
	 * are VMPT_HOST_UNKNOWN in *regs. If TraceEn is 0 in *regs, the host was idle, and they may
	 * hold the guest's values, of this entry or of one before: a tracer that sets TraceEn must
	 * then set all that it uses, OUTPUT_BASE, OUTPUT_MASK_PTRS, STATUS, with CR3Filter
	 * CR3_MATCH, with an ADDR_CFG the two addresses. If it leaves one of these unknown, it is
	 * not started (-VMPT_E_HOST_TRACING). If TraceEn is 1, what is unknown is still its own,
	 * unless it now uses a filter that it did not use before.
	 *
	 * host_ctl, optional: what CTL holds now, without reading it: what was last written there,
	 * be it by the host's tracer, its NMI handler, or through hw_wrmsr. It saves two RDMSR.
	 *
	 * host_pmi, optional: a ToPA PMI of the host was pending when the guest was entered.
	 * GLOBAL_STATUS[55] has been cleared; it must not touch the PT MSRs.
	 */
	int (*host_state)(void *opaque, struct vmpt_pt_regs *regs);
	int (*host_ctl)(void *opaque, u64 *ctl);
	void (*host_pmi)(void *opaque);

	/* Optional: called at each point of the hand-over; tests inject an NMI there. */
	void (*step)(void *opaque, enum vmpt_step step);
};

/* An MSR that was not saved, in host_state: no MSR can be read as this. */
#define VMPT_HOST_UNKNOWN 0x5ead5ead5ead5e15ULL

/* Who owns the PT MSRs and a pending ToPA PMI (GLOBAL_STATUS[55]). */
enum vmpt_msr_owner {
	VMPT_OWNED_BY_HOST,  /* the host's handler may run and may touch the MSRs */
	VMPT_OWNED_TO_GUEST, /* the host's, but must not be touched: the hand-over takes over */
	VMPT_OWNED_BY_GUEST, /* the guest's: must not be touched */
	VMPT_OWNED_TO_HOST,  /* the host's, but must not be touched: not all are restored yet */
};

/* ---- the vCPU ---- */

/* What vmpt_vcpu_init() makes a vCPU of. All 0 is the default of what is not a pointer. */
struct vmpt_config {
	const struct vmpt_caps *host;		 /* read during init only */
	const struct vmpt_caps *guest;		 /* as offered and checked; read during init only */
	const struct vmpt_vmx_plan *plan;	 /* copied */
	const struct vmpt_ops *ops;		 /* owned by the caller */
	void *opaque;				 /* given to all callbacks */
	const struct vmpt_shadow_memory *shadow; /* for a plan with shadow; owned by the caller */
	u8 on_unbacked, on_mmio, on_apic, on_restricted; /* enum vmpt_mem_policy for output */
	/*
	 * Offer XSAVE state component 8 to a guest with PT. Only for a VMM that sets bit 8 of the
	 * XSS-exiting bitmap and emulates XSAVES and XRSTORS of it with vmpt_vcpu_xsaves/xrstors:
	 * XRSTORS writes the PT MSRs without an MSR exit.
	 */
	bool xsave;
	bool pip_on_restore; /* a register restore may append a PIP */
	/*
	 * The host's tracer relies on MSRs that it does not load each time before it sets TraceEn,
	 * for example on OUTPUT_BASE being what it last wrote: save and restore all of them around
	 * each guest that traces, also while the host is idle. Without this flag **the MSRs of an
	 * idle host hold what the guest had there, and such a tracer would write to addresses that
	 * the guest chose**.
	 */
	bool restore_host;
	/*
	 * Multiplier of the guest's TSC, 48 bits of fraction; 0: no scaling. For CPUID.15H and
	 * MSR_PLATFORM_INFO: a VMM that emulates RDTSC sets it too, so the host need not have
	 * VMPT_VMX_TSC_SCALING.
	 */
	u64 tsc_multiplier;
	/*
	 * Trigger Tracing (arch/pt-cpuid.h): the addresses of the processor's
	 * IA32_RTIT_TRIGGERx_CFG, vmpt_pt_triggers(&host->cpuid) of them. The library does not know
	 * them: they are in no manual that it follows. No guest has these MSRs; the host's would
	 * put TRIGs into a guest's trace. So while a guest traces they are 0, and vmpt_vcpu_exit()
	 * loads what the entry found. NULL and 0: they stay as they are. Owned by the caller.
	 */
	const u32 *trigger_msrs;
	u8 triggers; /* 0 to VMPT_TRIGGERS_MAX */
	/*
	 * For vmpt_vcpu_tsc_adjust(): the work of one call, in bytes, at least 4096; and the most
	 * bytes that the processor may write between an entry and its exit. 0: the defaults,
	 * VMPT_ADJUST_BUDGET and VMPT_ADJUST_TRACED.
	 */
	u64 adjust_budget, adjust_traced;
};

/* Events that calls report in struct vmpt_vcpu. */
#define VMPT_EVENT_PMI	 0x1 /* inject_pmi was called */
#define VMPT_EVENT_STOP	 0x2 /* STATUS.Stopped was set */
#define VMPT_EVENT_ERROR 0x4 /* STATUS.Error was set, see output_why */
#define VMPT_EVENT_LOST	 0x8 /* bytes of the guest's trace were lost */
/*
 * Of vmpt_vcpu_enter() and vmpt_vcpu_exit(), whatever they return: the host does not trace as it
 * wants, or traced meanwhile: notify its tracer. No part of a saved state.
 */
#define VMPT_EVENT_HOST 0x10

/* A vCPU. The fields are private to this library; the caller may read those under "to read". */
struct vmpt_vcpu {
	/* set by init */
	const struct vmpt_ops *ops;
	void *opaque;
	struct vmpt_caps guest;
	struct vmpt_pt_rules rules, host_rules; /* host_rules: which MSRs the processor has */
	struct vmpt_vmx_plan plan;
	u8 on_mem[VMPT_MEMS];
	bool xsave, pip_on_restore, restore_host;
	u64 tsc_multiplier;
	u64 adjust_budget, adjust_traced;

	/* to read: the guest's registers as the guest sees them; stable while it is not entered */
	struct vmpt_pt_regs regs;
	u32 events;    /* VMPT_EVENT_…, accumulated until the caller clears them */
	u8 output_why; /* enum vmpt_output_error of the last STATUS.Error set here */
	u8 gp_why;     /* enum vmpt_gp_reason of the last #GP */

	/* PMI */
	bool global_status; /* the guest's GLOBAL_STATUS[55] */
	bool held_pend_pmi; /* PendTopaPMI was delivered and must not be pended again */
	bool pmi_seen;	    /* the guest has read GLOBAL_STATUS[55] = 1 since it was set */
	bool pmi_again; /* another PMI was pended after that: due when the guest resets the bit */
	u64 pmis;	/* injected, for statistics and tests */

	/* modes of the guest */
	bool vmx_operation; /* in VMX operation, with VMX_MISC[14] = 0 */
	bool in_smm;
	bool smm_trace_en; /* TraceEn saved by SMI */

	/* the hand-over */
	u8 owner;	/* enum vmpt_msr_owner; also read in an NMI */
	bool entered;	/* between enter and exit */
	bool ran;	/* has run since the VMM last wrote the PT state: set_msr, restore, reset */
	bool force_psb; /* a PSB+ is wanted at the next entry */
	bool lost;	/* after a VMX abort: the state is unknown */
	struct vmpt_pt_regs host_regs; /* what the processor held at entry, or unknown */
	bool host_saved;	       /* with restore_host: complete, not only CTL */
	u64 loaded_status;	       /* STATUS as loaded for the guest */
	const u32 *trigger_msrs;
	u8 triggers, triggers_cleared; /* cleared: bit n: trigger[n] is the host's value */
	u64 trigger[VMPT_TRIGGERS_MAX];

	struct vmpt_shadow shadow;

	/* TSC adjustment: how far it got */
	struct vmpt_tsc_scan scan;
	u64 scan_base, scan_mask_ptrs;
	bool scan_set;
	u64 cut_gpa[2]; /* where the bytes of a cut packet are */
	u8 cut_len[2];
	u64 traced;	  /* the most that the guest can have traced since that place */
	bool adjust_more; /* the last call returned VMPT_MORE, on a path that leads here: */
	u64 adjust_base, adjust_mask_ptrs;

	/* the guest runs on a CR3 other than its own: vmpt_vcpu_cr3_given() */
	bool cr3_given, cr3_pae;
	u64 cr3_guest, cr3_hw;
};

/* The number that the call below compares with the library's: see VMPT_ABI_VERSION. */
#define VMPT_VCPU_ABI                                                                              \
	VMPT_ABI_ADD(                                                                              \
		VMPT_ABI_ADD4(VMPT_ABI_ADD4(VMPT_ABI4(struct vmpt_vcpu, struct vmpt_config,        \
						      struct vmpt_ops, struct vmpt_caps),          \
					    struct vmpt_refusal, struct vmpt_msr_entry,            \
					    struct vmpt_msr_lists, struct vmpt_shadow_memory),     \
			      struct vmpt_cr3_write, struct vmpt_tsc_change, struct vmpt_position, \
			      struct vmpt_vmx_plan),                                               \
		struct vmpt_record)

/*
 * Initialize a vCPU as after a cold reset. Checks its arguments: -VMPT_E_CAPS if the host cannot
 * support the guest, -VMPT_E_CONTROLS if plan and guest disagree (a guest with PT under
 * VMPT_USE_SYSTEM) or the host lacks a control that the plan needs, -VMPT_E_INVAL if a callback
 * that the plan needs is missing.
 */
int vmpt_vcpu_init_abi(struct vmpt_vcpu *vcpu, const struct vmpt_config *config,
		       struct vmpt_refusal *why, u64 abi);
#define vmpt_vcpu_init(vcpu, config, why) vmpt_vcpu_init_abi(vcpu, config, why, VMPT_VCPU_ABI)

/*
 * CPUID for the guest: @regs holds the VMM's answer and is changed where PT requires it: leaf 7
 * EBX[25], 14H whole, 0DH.1 ECX[8] and 0DH.8 (component 8); 15H under scaling, or where the VMM's
 * answer enumerates no ratio (then from the guest's capabilities). Other leaves are not changed.
 * Never fails.
 */
void vmpt_vcpu_cpuid(const struct vmpt_vcpu *vcpu, u32 leaf, u32 subleaf,
		     struct vmpt_cpuid_regs *regs);

/* ---- MSRs ---- */

/*
 * RDMSR and WRMSR of the guest, for the PT MSRs; CEH (read), 38EH (read), 390H and 391H (write)
 * only as far as PT goes: there *value is in and out, and the VMM's own bits are kept. 0, VMPT_GP,
 * -VMPT_E_INVAL (not an MSR that the library handles), -VMPT_E_STATE (the guest is entered). A
 * write that sets TraceEn builds the shadow and may set STATUS.Error; PendTopaPMI with
 * InjectPsbPmiOnEnable injects the PMI.
 */
int vmpt_vcpu_rdmsr(struct vmpt_vcpu *vcpu, u32 msr, u64 *value);
int vmpt_vcpu_wrmsr(struct vmpt_vcpu *vcpu, u32 msr, u64 value);

/*
 * RDMSR and WRMSR for the VMM itself: PT MSRs in any order, as a restore needs, and bit 55 of 38EH.
 * Rules that keep the processor and the host safe still apply; 0, VMPT_GP, or an error as above. An
 * MSR that the guest does not have reads 0 and accepts 0, so one list serves all guests. Setting
 * TraceEn this way injects no PMI: the one of PendTopaPMI was delivered before.
 */
int vmpt_vcpu_set_msr(struct vmpt_vcpu *vcpu, u32 msr, u64 value);
int vmpt_vcpu_get_msr(const struct vmpt_vcpu *vcpu, u32 msr, u64 *value);

/*
 * The PT MSRs that a VMM saves and restores; @index counts from 0, the result is 0 after the last.
 * CTL comes last. They are not the whole state: bit 55 of 38EH must be moved too, and what SMI
 * saved is in no MSR.
 */
u32 vmpt_vcpu_msr_list(const struct vmpt_vcpu *vcpu, unsigned int index);

/*
 * Which accesses of the guest to @msr must exit now: VMPT_INTERCEPT_…; 0: both may pass
 * through. Ask again whenever CTL may have changed: after an exit, and after a reset, SMI, RSM,
 * VMXON, XSAVES, XRSTORS, set_msr and restore; and after vmpt_vcpu_cr3_given().
 */
unsigned int vmpt_vcpu_intercepts(const struct vmpt_vcpu *vcpu, u32 msr);

/*
 * RESET of the virtual processor; does nothing while it is entered. INIT changes nothing and has no
 * call (docs/vmm-lib/vcpu.md).
 */
void vmpt_vcpu_reset(struct vmpt_vcpu *vcpu, bool warm);

/*
 * SMI saves and clears TraceEn; RSM restores it: 0, or VMPT_SHUTDOWN if TraceEn is set.
 * -VMPT_E_STATE: not in SMM, or in it already. Neither makes a PIP (33.2.9.3).
 */
int vmpt_vcpu_smi(struct vmpt_vcpu *vcpu);
int vmpt_vcpu_rsm(struct vmpt_vcpu *vcpu);

/* VMXON and VMXOFF of a guest whose VMX_MISC[14] is 0 (33.2.9.4). 0, or -VMPT_E_STATE: entered. */
int vmpt_vcpu_vmxon(struct vmpt_vcpu *vcpu);
int vmpt_vcpu_vmxoff(struct vmpt_vcpu *vcpu);

/* ---- XSAVE state component 8 (128 bytes, 72 in use) ---- */

/* Bytes of the component's area. */
#define VMPT_XSAVE_SIZE 128

/*
 * XSAVES of component 8: stores the MSRs, then clears TraceEn (33.2.8.1). Both are VMPT_GP
 * without config.xsave: the guest could not have set IA32_XSS[8]. -VMPT_E_STATE: entered.
 */
int vmpt_vcpu_xsaves(struct vmpt_vcpu *vcpu, u8 area[VMPT_XSAVE_SIZE]);
/*
 * XRSTORS; @area NULL: the initial state. VMPT_GP while TraceEn = 1, or if any MSR would #GP; then
 * nothing is changed.
 */
int vmpt_vcpu_xrstors(struct vmpt_vcpu *vcpu, const u8 area[VMPT_XSAVE_SIZE]);
/* Convert between the registers and the area, without side effects or checks. */
void vmpt_xsave_put(const struct vmpt_pt_regs *regs, u8 area[VMPT_XSAVE_SIZE]);
void vmpt_xsave_get(struct vmpt_pt_regs *regs, const u8 area[VMPT_XSAVE_SIZE]);

/* ---- hand-over ---- */

/* How an entry ended. */
enum vmpt_exit_kind {
	VMPT_EXIT_NORMAL,
	VMPT_EXIT_FAILED_EARLY, /* VMfail: the guest did not run, no list was processed */
	VMPT_EXIT_FAILED_LATE,	/* bit 31 of the exit reason: the guest did not run */
	VMPT_EXIT_ABORT,	/* VMX abort: the processor is in shutdown */
};

/*
 * Call before VMLAUNCH or VMRESUME, on the processor that will execute it, preemption off. The
 * steps are those of enum vmpt_step. -VMPT_E_HOST_TRACING: TraceEn keeps being set again;
 * -VMPT_E_RETRY, -VMPT_E_HARDWARE, the result of host_ctl. After each of these the owner is the
 * host again: do not enter. -VMPT_E_STATE: entered already, after a VMX abort, or after VMPT_MORE
 * of vmpt_vcpu_tsc_adjust(); -VMPT_E_INVAL: no hw_rdmsr. Also for guests without PT: the host's
 * tracing is stopped if the plan requires it.
 */
int vmpt_vcpu_enter(struct vmpt_vcpu *vcpu);

/*
 * Call after the VM exit (or failed entry), before preemption is enabled again. Always runs to
 * completion: even after an error the vCPU is out and the owner is the host. 0 or an error:
 * -VMPT_E_CONTROLS: the exit did not clear TraceEn, or the guest wrote a CTL value that should have
 * exited; -VMPT_E_HARDWARE, the result of host_state or host_ctl; -VMPT_E_HOST_TRACING. Of several
 * the first, -VMPT_E_HOST_TRACING after all others; what the others ask for is in events:
 * VMPT_EVENT_LOST, VMPT_EVENT_HOST. With nothing done: -VMPT_E_STATE (not entered), -VMPT_E_INVAL
 * (@kind).
 */
int vmpt_vcpu_exit(struct vmpt_vcpu *vcpu, enum vmpt_exit_kind kind);

/* Who owns a ToPA PMI now. May be called from an NMI at any time. */
enum vmpt_msr_owner vmpt_vcpu_pmi_owner(const struct vmpt_vcpu *vcpu);

/* After VMPTRLD of this vCPU if several vCPUs share one buffer: PSB+ at the next entry. */
void vmpt_vcpu_vmptrld(struct vmpt_vcpu *vcpu);

/* What to do about an EPT violation that PT output caused (qualification bit 16). */
enum vmpt_ept_action {
	VMPT_EPT_NOT_PT, /* bit 16 is clear: the instruction's own violation */
	VMPT_EPT_RETRY,	 /* the VMM mapped or will map the page; resume, nothing is lost */
	VMPT_EPT_ERROR,	 /* no memory: STATUS.Error is now set, resume */
};

/*
 * @backed: the VMM has (or can get) memory at @gpa. Only this decides between RETRY and ERROR:
 * config.on_unbacked and the like do not apply here, because the processor drops no bytes. A VMM
 * that provides memory later passes true. Call it after vmpt_vcpu_exit(); before that, the result
 * is always RETRY. Never emulate the interrupted instruction for a violation with bit 16 set.
 */
enum vmpt_ept_action vmpt_vcpu_ept_violation(struct vmpt_vcpu *vcpu, u64 qualification, u64 gpa,
					     bool backed);

/* ---- PMI ---- */

/*
 * A ToPA PMI for the guest: sets GLOBAL_STATUS[55]; injects the PMI if that bit was clear.
 * Otherwise the two coalesce (33.2.7.2), unless the guest has read 38EH and so taken the first:
 * then one more is injected when the guest resets the bit.
 */
void vmpt_vcpu_pmi(struct vmpt_vcpu *vcpu);

/* ---- missing packets ---- */

/*
 * The guest's CR3 changed without the processor doing it: append the missing PIP if and only if the
 * processor would have made one. 1: appended (or lost to STOP or an error, see events), 0: none was
 * due. Negative: an error, and the guest's position is unchanged: -VMPT_E_STATE (entered, or lost
 * after a VMX abort), -VMPT_E_INVAL (cause), -VMPT_E_RETRY: call again with the same arguments.
 * Reads at most four ToPA entries.
 */
int vmpt_vcpu_cr3_write(struct vmpt_vcpu *vcpu, const struct vmpt_cr3_write *write);

/*
 * The VMM runs the guest on CR3 @hw while the guest assumes @guest (shadow paging): makes the CR3
 * filter work by loading a different CR3_MATCH. @pae: the guest uses PAE paging. Call it whenever
 * one of them changes; guest writes to CR3 and accesses to CR3_MATCH must exit meanwhile. @given
 * false: no longer so; the others are ignored. 0, or -VMPT_E_STATE: entered.
 */
int vmpt_vcpu_cr3_given(struct vmpt_vcpu *vcpu, bool given, u64 guest, u64 hw, bool pae);

/* A place in the guest's output: the two MSRs. */
struct vmpt_position {
	u64 output_base, output_mask_ptrs;
};

/*
 * Rewrite TSC and TMA packets from where the last call ended (at first: from where tracing was
 * enabled) up to the current position or, with @to, up to there. If the clock changed in between:
 * one call up to that place with the old clock, one from there with the new. Call it often enough
 * that in between the guest fills less than its whole buffer (by 16 bytes: a packet may have been
 * cut), and before a PMI handler can change the tables.
 *
 * The work is bounded by what the guest traced, not by what its tables say. The positions at each
 * entry and exit bound that: their distance if both are in one region, else config.adjust_traced
 * (PacketByteCnt cannot: it restarts at each PSB). One call takes at most config.adjust_budget: a
 * byte counts as one, a ToPA entry as VMPT_ADJUST_ENTRY. The default is 2 ms at 128 MB/s.
 * (Slowest trace measured: 217 MB/s, docs/vmm-lib/tsc.md.)
 *
 * 0: done. VMPT_MORE: the budget is used up; call again with the same arguments, possibly after
 * other work of the host. Until then vmpt_vcpu_enter() returns -VMPT_E_STATE: the guest would see
 * times of both clocks, and could trace faster than it is adjusted. A call with another @to, a
 * reset, and a move of the output by the guest or the VMM (which leaves the rest unadjusted) end
 * this too.
 *
 * -VMPT_E_LIMIT: the position was not reached within what the guest traced, or within
 * VMPT_ADJUST_ENTRIES entries (the guest changed its tables): nothing is rewritten, unless they
 * change during the call, and adjusting resumes from there at the next PSB. Memory that is no
 * longer available is skipped (and counted in scan.errors) unless its policy is RETRY. What is no
 * packet known to the library is overwritten up to the next PSB (VMPT_TSC_LOST_MARK):
 * VMPT_EVENT_LOST is set, and a PSB+ comes with the next entry. Other negative results: that of a
 * callback, -VMPT_E_RETRY; the next call resumes where this one stopped. With nothing done:
 * -VMPT_E_STATE, the guest is entered; -VMPT_E_INVAL, no @change, or
 * @to has an OUTPUT_BASE that the guest cannot have.
 */
#define VMPT_ADJUST_BUDGET  (1ULL << 18)
#define VMPT_ADJUST_TRACED  (1ULL << 24) /* 1.6 GB/s, with an exit each 10 ms */
#define VMPT_ADJUST_ENTRY   16
#define VMPT_ADJUST_ENTRIES 16384
int vmpt_vcpu_tsc_adjust(struct vmpt_vcpu *vcpu, const struct vmpt_tsc_change *change,
			 const struct vmpt_position *to);

/* ---- save and restore ---- */

/* The version that vmpt_vcpu_save() writes. */
#define VMPT_STATE_VERSION 1
/* Most bytes that vmpt_vcpu_save() writes. */
#define VMPT_STATE_MAX 1024

/*
 * Write the whole PT state of a vCPU that is not entered to @buf. Returns the bytes written or
 * -VMPT_E_SPACE, -VMPT_E_STATE (entered, or lost after a VMX abort). Little-endian, versioned, the
 * same on every machine.
 */
int vmpt_vcpu_save(const struct vmpt_vcpu *vcpu, u8 *buf, size_t len);

/*
 * Load a saved state into a vCPU made by vmpt_vcpu_init() with the same guest capabilities. Nothing
 * is changed unless everything fits: -VMPT_E_CAPS or -VMPT_E_INVAL with @why (may be NULL) naming
 * the field, -VMPT_E_UNSUPPORTED (a newer version), -VMPT_E_FORMAT, -VMPT_E_TRUNCATED,
 * -VMPT_E_STATE (entered).
 */
int vmpt_vcpu_restore(struct vmpt_vcpu *vcpu, const u8 *buf, size_t len, struct vmpt_refusal *why);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#endif
