/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * libvmpt-model: the trace unit of one logical processor. Events in, packets out, exactly
 * by SDM 3 chapter 33. The executing side (an emulator, a simulator, a test) reports to the
 * unit each event that could make a packet; the unit handles filters, enables, compression,
 * PSB cadence and output. The same events give the same bytes.
 *
 * Memory is the caller's; no allocation, no globals. Only one thread may use a unit at a time.
 *
 * Order: an event is reported when it retires, with the state that holds after it. State of the
 * processor that no event changes is not reported again.
 *
 * Where the manual leaves a choice, it is an option (struct vmpt_unit_options) or fixed as follows:
 * - The PSB+ is PSB, timing (TSC, TMA, CBR), PIP, VMCS, MODE.TSX, MODE.Exec, FUP, PSBEND.
 * - A PSB+ that has become due comes after the packets of the event that made it due, with
 *   the IP where execution goes on; never inside a compound event or a block.
 * - Packets stay in the unit until its buffer is full, TraceEn is cleared or the caller calls
 *   vmpt_unit_flush(). TNT bits stay until their packet is full or must be sent.
 */
#ifndef VMPT_MODEL_VMPT_MODEL_H
#define VMPT_MODEL_VMPT_MODEL_H

#include "arch/output.h"
#include "arch/pt-packet.h"
#include "arch/pt-regs.h"

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

/* ---- the executing side ---- */

/* The processor's mode, as far as packets and filters depend on it. */
struct vmpt_mode {
	u64 cr3;
	u8 cpl;
	bool pae;	 /* PAE paging: CR3[11:5] count (33.2.5.2) */
	bool cs_l, cs_d; /* CS.L & EFER.LMA, CS.D (Table 33-26) */
	bool rflags_if;	 /* in MODE.Exec if CPUID.14H.0:EBX[7] is 1 (Table 33-26) */
	bool enclave;	 /* in a production (opt-out) enclave: no context; false in a debug one */
};

/* Clocks. Set by the caller whenever time has passed; only tsc may go back. */
struct vmpt_now {
	u64 tsc;    /* as root operation's RDTSC reads it */
	u64 art;    /* core crystal clock */
	u64 cycles; /* core clock cycles */
	u32 fast;   /* TMA.FastCounter: TSC ticks since the last crystal clock edge */
	u8 cbr;	    /* core:bus ratio */
};

/* Where packets go. */
struct vmpt_sink {
	/* Take all of @len bytes. Negative: impossible (a full disk), which is an overflow. */
	int (*write)(void *opaque, const u8 *bytes, size_t len);
	void *opaque;
};

/* Choices that the manual leaves to the processor. */
struct vmpt_unit_options {
	bool deferred_tips; /* 33.4.2.3 */
	bool long_tnt;	    /* TNTs of up to 47 bits */
	bool no_ip_compression;
	/* A PIP at a transition with ContextEn = 0 before and after (the manual is silent). */
	bool pip_without_context;
	/* MODE.Exec only where it differs from the last one sent (33.4.2.8: "may opt"). */
	bool suppress_same_mode;
	/*
	 * After a RET that does not return to its CALL, compress no RET whose CALL was
	 * before it: 33.4.2.2 takes an entry off the decoder's stack for each RET, and so
	 * does perf; libipt does so only for a compressed one, and goes wrong.
	 */
	bool careful_retc;
	/*
	 * UINTR and UIRET with a FUP alone, as in rows 26 and 27 of Table 33-55. All other
	 * text (33.2.1.3) gives them the TIP of every far transfer, without which no decoder
	 * can follow them; that is the default.
	 */
	bool uintr_fup_alone;
};

/* What vmpt_unit_init() makes a unit of. */
struct vmpt_unit_config {
	struct vmpt_pt_cpuid cpuid;
	struct vmpt_unit_options options;
	/* Exactly one: packets as a stream, or to physical memory by the OUTPUT MSRs. */
	const struct vmpt_sink *sink;
	const struct vmpt_output_memory *memory;
	/* Optional: a ToPA PMI is pended (GLOBAL_STATUS[55] and the LVT are the caller's). */
	void (*pmi)(void *opaque);
	void *opaque;
};

/* RET compression (33.4.2.2) */
#define VMPT_RET_STACK 64

/* Limit of bytes pending in a unit: TNTs, deferred TIPs, bytes that a sink refused. */
#define VMPT_UNIT_BUFFER 1024
#define VMPT_UNIT_TIPS	 16

/* VMX state that packets depend on (33.5). */
struct vmpt_unit_vmx {
	bool on; /* in VMX operation */
	bool nonroot;
	bool conceal_exec, conceal_exit, conceal_entry;
	u64 vmcs;			/* current VMCS pointer, VMPT_PT_VMCS_NONE: none */
	u64 tsc_offset, tsc_multiplier; /* in use in non-root; multiplier 0 or 1 << 48: none */
};

/* A trace unit. Fields are the model's; "to read" ones are for the caller too. */
struct vmpt_unit {
	struct vmpt_unit_config config;
	struct vmpt_pt_rules rules;

	/* to read */
	struct vmpt_pt_regs regs;
	struct vmpt_mode mode;
	struct vmpt_unit_vmx vmx;
	struct vmpt_now now;
	u64 bytes;     /* passed to the sink or to memory since init */
	u64 overflows; /* OVFs */
	u8 output_why; /* enum vmpt_output_error of the last STATUS.Error */

	/* enables (33.2.6); PacketEn = all of them */
	bool trigger_en, context_en, filter_en, branch_en, packet_en;
	bool ranged; /* an ADDRn_CFG is not 0 */

	/* pending TNT bits and TIPs */
	u64 tnt_bits;
	u8 tnt_count, tnt_max;
	u8 tip_count;
	u64 tips[VMPT_UNIT_TIPS];

	u64 last_ip;
	u64 ret_stack[VMPT_RET_STACK];
	u8 ret_top, ret_depth;

	u64 since_psb; /* bytes since the last PSB+ */
	bool psb_due;
	bool in_overflow, in_tx;
	u32 tx_nested;	   /* transactions that began inside this one */
	bool lost_pip;	   /* an overflow dropped a PIP that no PSB+ has replaced since */
	u8 block;	   /* block context (33.4.1.1) */
	u8 last_exec;	   /* MODE.Exec that was sent last, 0xff: none */
	bool whole_ip;	   /* the next IP is sent in full: Last IP is not the decoder's */
	bool smm_trace_en; /* TraceEn as saved by SMI */
	bool entry_pip;	   /* the current enable is by a VM entry that is not concealed */
	bool rsm;	   /* the current enable is by RSM: CFE.RSM goes before its packets */
	bool rest;	   /* pending bytes go before the packets of the next enable */

	/* time */
	u64 cyc_at; /* cycles at the last CYC */
	u64 mtc_at; /* ART >> MTCFreq that was sent last */

	struct vmpt_output output;
	u8 buffer[VMPT_UNIT_BUFFER];
	u16 used;
};

/* The number that the call below compares with the library's: see VMPT_ABI_VERSION. */
#define VMPT_UNIT_ABI                                                                             \
	VMPT_ABI_ADD(                                                                             \
		VMPT_ABI_ADD(VMPT_ABI_ADD4(VMPT_ABI4(struct vmpt_unit, struct vmpt_unit_config,   \
						     struct vmpt_sink, struct vmpt_unit_options), \
					   struct vmpt_far, struct vmpt_unit_item,                \
					   struct vmpt_unit_entry, struct vmpt_unit_exit),        \
			     struct vmpt_unit_rest),                                              \
		struct vmpt_output_memory)

/*
 * The state after a cold reset, in real mode (mode all 0). -VMPT_E_INVAL: neither or both of
 * sink and memory. @config is copied; what it points to is owned by the caller.
 */
int vmpt_unit_init_abi(struct vmpt_unit *unit, const struct vmpt_unit_config *config, u64 abi);
#define vmpt_unit_init(unit, config) vmpt_unit_init_abi(unit, config, VMPT_UNIT_ABI)

/* ---- MSRs ---- */

/*
 * RDMSR, WRMSR of a PT MSR at @next_ip, the next instruction's IP. Checks as arch/pt-regs.h;
 * a change of TraceEn makes the packets of Table 33-56, cases 1 to 3 (@ip: CLIP). A write
 * that clears TraceEn flushes; then the OUTPUT MSRs are exact. 0, VMPT_GP, -VMPT_E_INVAL.
 */
int vmpt_unit_rdmsr(struct vmpt_unit *unit, u32 msr, u64 *value);
int vmpt_unit_wrmsr(struct vmpt_unit *unit, u32 msr, u64 value, u64 ip, u64 next_ip);

/*
 * XRSTORS and XSAVES of component 8 (33.2.8.1): like WRMSR of all, CTL last; TraceEn is cleared
 * last. XRSTORS: 0, or VMPT_GP with nothing changed: TraceEn is 1, or an MSR refuses its value.
 */
int vmpt_unit_xrstors(struct vmpt_unit *unit, const struct vmpt_pt_regs *regs, u64 ip, u64 next_ip);
void vmpt_unit_xsaves(struct vmpt_unit *unit, struct vmpt_pt_regs *regs, u64 ip);

/* RESET; INIT is vmpt_unit_far(). */
void vmpt_unit_reset(struct vmpt_unit *unit, bool warm);

/* ---- branches (33.2.1) ---- */

/* A conditional branch; @target: where execution goes on, taken or not. */
void vmpt_unit_jcc(struct vmpt_unit *unit, bool taken, u64 target);
/* Direct JMP. */
void vmpt_unit_jmp(struct vmpt_unit *unit, u64 target);
/* Direct near CALL; @next_ip: where its RET should go. */
void vmpt_unit_call(struct vmpt_unit *unit, u64 next_ip, u64 target);
void vmpt_unit_jmp_indirect(struct vmpt_unit *unit, u64 target);
void vmpt_unit_call_indirect(struct vmpt_unit *unit, u64 next_ip, u64 target);
/* Near RET. */
void vmpt_unit_ret(struct vmpt_unit *unit, u64 target);

/* ---- far transfers and events ---- */

/* Transfers of control that are no near branch (33.2.1.3). */
enum vmpt_far_kind {
	VMPT_FAR_BRANCH, /* far JMP, CALL, RET, SYSCALL, SYSRET, SYSENTER, SYSEXIT */
	VMPT_FAR_IRET,
	VMPT_FAR_SOFT_INT,  /* INT n, INT1, INT3, INTO: ip is CLIP */
	VMPT_FAR_EXCEPTION, /* ip: of the instruction that has not completed */
	VMPT_FAR_INTERRUPT, /* external, NMI: ip is NLIP */
	VMPT_FAR_TASK,	    /* task switch by far JMP, CALL, IRET: no FUP */
	VMPT_FAR_INIT,	    /* target is used on a BSP; an AP waits for SIPI (waits) */
	VMPT_FAR_SIPI,	    /* vector: of the SIPI */
	VMPT_FAR_SMI,	    /* TraceEn is saved and cleared */
	VMPT_FAR_RSM,	    /* TraceEn is restored */
	VMPT_FAR_SHUTDOWN,
	VMPT_FAR_UINTR,
	VMPT_FAR_UIRET,
	VMPT_FAR_EENTER, /* and ERESUME; mode.enclave: into a production enclave */
	VMPT_FAR_EEXIT,
	VMPT_FAR_AEX, /* and EEE: vector */
	VMPT_FAR_KINDS
};

/* Where time may pass inside an event (33.3.6.2, Example 33-2). */
enum vmpt_far_time {
	VMPT_AT_PIP,
	VMPT_AT_EXEC,	/* MODE.Exec */
	VMPT_AT_TARGET, /* TIP, TIP.PGE or TIP.PGD, and the end of the event */
	VMPT_FAR_TIMES
};

/* A far transfer or an event, for vmpt_unit_far(). */
struct vmpt_far {
	u8 kind; /* enum vmpt_far_kind */
	u8 vector;
	bool waits;	  /* INIT on an AP: it executes nothing until SIPI */
	bool cr3_written; /* a PIP is due (task switch, INIT, …) */
	bool page_fault;  /* with pf_address: EVD.PFA */
	u64 pf_address;
	u64 ip; /* source, for the FUP: CLIP or NLIP depending on the kind */
	u64 target;
	struct vmpt_mode mode; /* after it */
	/*
	 * VMPT_FAR_TIMES clocks by enum vmpt_far_time, whether or not there is such a packet;
	 * NULL: all of it at once. Packets before them (CFE, EVD, FUP) have the time that
	 * was set last.
	 */
	const struct vmpt_now *times;
};

/* A far transfer or an event: packets by 33.2.1.3 and Tables 33-55, 33-56 and 33-59. */
void vmpt_unit_far(struct vmpt_unit *unit, const struct vmpt_far *far);

/* MOV CR3: @mode after it. */
void vmpt_unit_mov_cr3(struct vmpt_unit *unit, u64 next_ip, const struct vmpt_mode *mode);
/*
 * STI, CLI, POPF at @ip that changed RFLAGS.IF: MODE.Exec and FUP if EventEn is 1. Without EventEn
 * the next MODE.Exec has it.
 */
void vmpt_unit_set_if(struct vmpt_unit *unit, u64 ip, bool rflags_if);

/*
 * TSX (Table 33-10). @ip: CLIP. Nested transactions are reported too and make no packet: each
 * begin and each commit; an abort ends them all. An XRELEASE that ends none is not reported.
 */
void vmpt_unit_tx_begin(struct vmpt_unit *unit, u64 ip);
void vmpt_unit_tx_commit(struct vmpt_unit *unit, u64 ip);
void vmpt_unit_tx_abort(struct vmpt_unit *unit, u64 ip, u64 target);

/* ---- other packets ---- */

/* PTWRITE at @ip, @size 4 or 8 (33.2.2). */
void vmpt_unit_ptwrite(struct vmpt_unit *unit, u64 ip, u64 payload, unsigned int size);

/*
 * Power events (33.2.3, Table 33-57's body). @state, @sub_state: the C-state that is entered,
 * as in PWRE, 0 to 15 each. An MWAIT, UMWAIT or TPAUSE that faults or exits is not reported
 * (row 1). State 0 with sub-state 0 or 1 is C0 or C0.1, or an MWAIT that does not wait
 * (monitor not armed, virtual interrupt): no packets (row 2), and its end is no wake.
 */
void vmpt_unit_mwait(struct vmpt_unit *unit, u64 ip, u32 hints, u32 ext, u8 state, u8 sub_state);
void vmpt_unit_sleep(struct vmpt_unit *unit, u64 ip, bool hw, u8 state, u8 sub_state);
void vmpt_unit_wake(struct vmpt_unit *unit, u8 last, u8 deepest, u8 reason);

/* An item of a block: a BIP (33.4.2.27). */
struct vmpt_unit_item {
	u8 id;
	u64 payload;
};

/*
 * A block of @n items (33.4.1.1): PEBS over PT. @sz: 0 8-byte items, 1 4-byte. @ip: of
 * the FUP after BEP, in context.
 */
void vmpt_unit_block(struct vmpt_unit *unit, unsigned int type, unsigned int sz,
		     const struct vmpt_unit_item *items, size_t n, u64 ip);

/* MNT, for completeness. */
void vmpt_unit_mnt(struct vmpt_unit *unit, u64 payload);

/* ---- VMX (33.5) ---- */

/* VMPTRLD of @vmcs; VMCLEAR of the current one: VMPT_PT_VMCS_NONE. */
void vmpt_unit_vmptrld(struct vmpt_unit *unit, u64 vmcs);
void vmpt_unit_vmxon(struct vmpt_unit *unit, bool misc14, u64 ip);
void vmpt_unit_vmxoff(struct vmpt_unit *unit);

/* A VM entry that succeeds. */
struct vmpt_unit_entry {
	struct vmpt_unit_vmx vmx; /* in use from here on; nonroot is ignored */
	bool load_ctl;		  /* entry control 18, or the list: CTL becomes @ctl */
	u64 ctl;
	u64 ip;	    /* of VMLAUNCH or VMRESUME */
	u64 target; /* guest RIP as LIP */
	struct vmpt_mode mode;
};
/* The packets of Table 33-53; @entry is read during the call only. */
void vmpt_unit_vmentry(struct vmpt_unit *unit, const struct vmpt_unit_entry *entry);

/* A VM entry that fails early (Table 33-54): execution goes on at @next_ip. */
void vmpt_unit_vmentry_failed(struct vmpt_unit *unit, u64 next_ip);

/* A VM exit. */
struct vmpt_unit_exit {
	bool clear_ctl; /* exit control 25: CTL becomes 0 */
	bool load_ctl;	/* the MSR-load list sets CTL */
	u64 ctl;
	bool intr; /* caused by an interrupt, fault or SMI: CFE.VMEXIT_INTR */
	u8 vector;
	u32 reason;
	u64 qualification;
	u64 ip;	    /* guest IP as saved in the VMCS */
	u64 target; /* host RIP */
	struct vmpt_mode mode;
};
/* The packets of Table 33-53; @exit is read during the call only. */
void vmpt_unit_vmexit(struct vmpt_unit *unit, const struct vmpt_unit_exit *exit);

/*
 * A VM entry that fails late, and goes to the host like a VM exit. @entry->load_ctl: CTL was loaded
 * before it failed. Of @exit only the host's side is used, and its change of CTL.
 */
void vmpt_unit_vmentry_failed_late(struct vmpt_unit *unit, const struct vmpt_unit_entry *entry,
				   const struct vmpt_unit_exit *exit);

/* ---- time ---- */

/* Time has passed: send MTCs that are due. The cycle counter has 64 bits and does not wrap. */
void vmpt_unit_time(struct vmpt_unit *unit, const struct vmpt_now *now);
/* A standalone CYC, as before the hardware's counter wraps (33.3.6). */
void vmpt_unit_cyc(struct vmpt_unit *unit);
/* A frequency change during which execution goes on: CBR (33.4.2.10). */
void vmpt_unit_frequency(struct vmpt_unit *unit, u8 cbr);
/*
 * A P-state change, or another powerdown of the core's clock that is no C-state (TM1/2, STPCLK#,
 * IA32_CLOCK_MODULATION, Turbo), for which execution stops at @ip, the oldest instruction that has
 * not completed: EXSTOP and its FUP (Table 33-41). It goes on there at @after: TSC, TMA, CBR (Table
 * 33-55, row 25). No MTC is due for the time between.
 */
void vmpt_unit_clock_stop(struct vmpt_unit *unit, u64 ip, const struct vmpt_now *after);
/* Clocks that were stopped run again: TSC, TMA, CBR (Table 33-55, row 25). */
void vmpt_unit_clock_resumed(struct vmpt_unit *unit);

/* ---- overflow and flush ---- */

/*
 * An internal buffer overflow begins; it is resolved at @ip with the next call (33.3.8).
 * One also begins (in_overflow) when sink or memory refuse and the buffer is full; the
 * caller resolves that too, and while there is no room the call does nothing.
 */
void vmpt_unit_overflow(struct vmpt_unit *unit);
void vmpt_unit_overflow_resolve(struct vmpt_unit *unit, u64 ip);

/*
 * Retry bytes that the sink or memory refused by a negative return. 0: nothing is pending;
 * negative: the callback's return value.
 */
int vmpt_unit_flush(struct vmpt_unit *unit);

/*
 * Bytes that memory refused and that are still pending when TraceEn is cleared: they belong to
 * the output that they were meant for. The caller takes them away, and gives them back when the
 * OUTPUT MSRs hold that position again: either before TraceEn is set, then they go before the
 * packets of the enable, or with TraceEn 0, for vmpt_unit_flush(). Bytes that are not taken are
 * lost with the next enable.
 */
struct vmpt_unit_rest {
	u8 bytes[VMPT_UNIT_BUFFER];
	u16 used;
	bool in_overflow; /* packets after them were lost */
};

/* Take the pending bytes away, and give them back: see struct vmpt_unit_rest. */
void vmpt_unit_rest_take(struct vmpt_unit *unit, struct vmpt_unit_rest *rest);
void vmpt_unit_rest_give(struct vmpt_unit *unit, const struct vmpt_unit_rest *rest);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#endif
