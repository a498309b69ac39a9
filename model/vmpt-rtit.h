/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The RTIT unit of one logical processor of the 2013-15 Atoms: events in, packets out, by the
 * RTIT Programming Reference (March 2015). The executing side reports to the unit each event that
 * could make a packet. The same events give the same bytes. Memory is the caller's; no allocation,
 * no globals, freestanding.
 *
 * Order: an event is reported when it retires, with the state that holds after it. "next_ip" is
 * NLIP, the address after the instruction, taken or not; "target" is where execution goes on. IPs
 * are linear; bits 63:48 are ignored.
 *
 * Instructions that are no branches must be reported (vmpt_rtit_unit_step()) only while unit->walk
 * is set, when execution can walk into or out of a filter or TraceStop range, and only those whose
 * next_ip is a base or a limit in use; others do no harm.
 *
 * For the choices that the manual leaves open see docs/rtit/model.md.
 */
#ifndef VMPT_MODEL_VMPT_RTIT_H
#define VMPT_MODEL_VMPT_RTIT_H

#include "arch/rtit-packet.h"
#include "arch/rtit-regs.h"

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

/* ---- the executing side ---- */

/* The processor's mode, as far as packets and filters depend on it. */
struct vmpt_rtit_mode {
	u64 cr3;
	u8 cpl;
	bool paging; /* CR0.PG */
};

/* Clocks, set by the caller whenever time has passed. */
struct vmpt_rtit_clocks {
	u64 tsc;    /* the hardware's, without per-core and VMCS offset (4.2.12, 4.2.13) */
	u64 cycles; /* core clock cycles that were not slept through */
};

/* Where packets go: to physical memory by the MSRs, or as a stream. */
struct vmpt_rtit_sink {
	/*
	 * Take all of @len bytes at @pa, inside one circular buffer; a stream ignores @pa.
	 * Negative: not possible now, they stay pending.
	 */
	int (*write)(void *opaque, u64 pa, const u8 *bytes, size_t len);
	void *opaque;
};

/* Errata of Appendix E, each of which can be enabled. */
#define VMPT_RTIT_ERRATUM(n) (1u << (n))

/* Choices that the manual leaves open, and errata; all 0 is what docs/rtit/model.md has as the
 * default. */
struct vmpt_rtit_unit_options {
	u32 errata; /* VMPT_RTIT_ERRATUM(1) … (7) */
	/*
	 * 3.3.9: a PSB of Pkt_Mask clears LAST_LIP and LAST_CALL_NLIP only this many packets
	 * later, 0 to 4.
	 */
	u8 psb_clears_late;
	/* 4.2.8: a TriggerEn that is cleared by WRMSR "may not" make a FUP.PGD: here it does. */
	bool pgd_at_disable;
	/* The same for a TraceStop: FUP.PGD, then TraceSTOP; not if an overflow delayed it. */
	bool pgd_at_stop;
	/*
	 * 4.2.2: a partial TNT goes out "if any other packet needs to be sent", MTC, STS and PSB
	 * too; without this option only before those in the list there.
	 */
	bool tnt_before_all;
	/* Table 17's last two rows exchanged: with LESS_PKTS cycles count in PacketEn only. */
	bool cycle_rows_exchanged;
	struct vmpt_rtit_rules rules;
};

/* What vmpt_rtit_unit_init() makes a unit of. */
struct vmpt_rtit_unit_config {
	struct vmpt_rtit_unit_options options;
	const struct vmpt_rtit_sink *sink;
};

/* The meaning of an event ID of RTIT_EVENTS (Table 7). */
struct vmpt_rtit_event {
	bool ranges; /* by ranges; base and limit of unused ones match no address */
	bool on;     /* without ranges: always this */
	u64 base[2], limit[2];
};

/* Limit of bytes pending in a unit. */
#define VMPT_RTIT_UNIT_BUFFER 1024

/* A unit. Fields are the model's; "to read" ones are for the caller too. */
struct vmpt_rtit_unit {
	struct vmpt_rtit_unit_config config;

	/* to read */
	struct vmpt_rtit_regs
		regs; /* STATUS is complete; CNTP and OFFSET are exact after a drain */
	struct vmpt_rtit_mode mode;
	struct vmpt_rtit_clocks now;
	u8 acbr, ecbr; /* core/bus ratios as in STS */
	u64 bytes;     /* passed to the sink since init */
	u64 overflows; /* FUP.BuffOvfs */
	bool packet_en, trigger_en, context_en, filter_en;
	bool walk; /* steps are wanted: see above */
	bool smm, vmx_root;

	/* the rest is internal */
	bool plain; /* PacketEn, and no event changes it or must be checked: fast path */
	struct vmpt_rtit_event filter, stop; /* of RTIT_EVENTS and the LIPs */
	bool stop_pending;		     /* TraceStop in an overflow (4.2.5) */
	bool stop_tried;		     /* E4: its TraceSTOP was tried in this overflow */
	bool psb_held;	      /* PSB of TriggerEn that found no room in an overflow */
	u8 late;	      /* packets until a PSB's clearing takes effect; 0: none is due */
	bool psb_late;	      /* a PSB comes after the next packet (E3, or it found no room) */
	bool mtc_first;	      /* E7: no MTC since TriggerEn was set */
	bool overflow_branch; /* E5: a branch in the overflow would have made a TIP … */
	u64 overflow_target;  /* … to here */
	u64 cycles_at, mtc_at;
	u8 buffer[VMPT_RTIT_UNIT_BUFFER];
	u16 used;
};

/* The number that the call below compares with the library's: see VMPT_ABI_VERSION. */
#define VMPT_RTIT_UNIT_ABI                                                            \
	VMPT_ABI_ADD(VMPT_ABI4(struct vmpt_rtit_unit, struct vmpt_rtit_unit_config,   \
			       struct vmpt_rtit_sink, struct vmpt_rtit_unit_options), \
		     struct vmpt_rtit_far)

/* The state after RESET, in real mode (mode all 0). -VMPT_E_INVAL: no sink, late > 4. @config is
 * copied, the sink is owned by the caller. */
int vmpt_rtit_unit_init_abi(struct vmpt_rtit_unit *unit, const struct vmpt_rtit_unit_config *config,
			    u64 abi);
#define vmpt_rtit_unit_init(unit, config) vmpt_rtit_unit_init_abi(unit, config, VMPT_RTIT_UNIT_ABI)
/* RESET (3.3); INIT is vmpt_rtit_unit_far() and changes no MSR. */
void vmpt_rtit_unit_reset(struct vmpt_rtit_unit *unit);

/* ---- MSRs (3.3) ---- */

/*
 * RDMSR, WRMSR of an RTIT MSR. Checks as in arch/rtit-regs.h. A write of CTL makes the packets of
 * 3.3.2 and 4.2.1 (PSB, FUP.PGE, FUP.PGD) with @next_ip and drains; one of STATUS changes FilterEn
 * and Buffer_Overflow (4.2.5). 0, VMPT_GP, -VMPT_E_INVAL.
 */
int vmpt_rtit_unit_rdmsr(struct vmpt_rtit_unit *unit, u32 msr, u64 *value);
int vmpt_rtit_unit_wrmsr(struct vmpt_rtit_unit *unit, u32 msr, u64 value, u64 next_ip);

/* ---- instructions (Tables 2 and 19) ---- */

/* An instruction that is no branch: rows 1 to 5. */
void vmpt_rtit_unit_step(struct vmpt_rtit_unit *unit, u64 next_ip);
/* Jcc and LOOP; execution goes on at @target if taken, at @next_ip if not: rows 11 to 20. */
void vmpt_rtit_unit_jcc(struct vmpt_rtit_unit *unit, bool taken, u64 next_ip, u64 target);
/* Direct near JMP and CALL: rows 6 to 10. */
void vmpt_rtit_unit_jmp(struct vmpt_rtit_unit *unit, u64 next_ip, u64 target);
void vmpt_rtit_unit_call(struct vmpt_rtit_unit *unit, u64 next_ip, u64 target);
/* Indirect near JMP, CALL; RET: rows 21 to 26. */
void vmpt_rtit_unit_jmp_indirect(struct vmpt_rtit_unit *unit, u64 next_ip, u64 target);
void vmpt_rtit_unit_call_indirect(struct vmpt_rtit_unit *unit, u64 next_ip, u64 target);
void vmpt_rtit_unit_ret(struct vmpt_rtit_unit *unit, u64 next_ip, u64 target);

/* A far JMP, CALL or RET, IRET, SYSCALL …, an interrupt, exception, INIT or SIPI. */
struct vmpt_rtit_far {
	u64 ip; /* as in Table 1: NLIP; for a fault the faulting instruction's address */
	u64 target;
	struct vmpt_rtit_mode mode; /* after it */
	/*
	 * A far transfer instruction, not an event: a FUP.PCC that is due comes before it. For E1
	 * its first byte and the number of its prefixes.
	 */
	bool is_insn;
	u8 prefixes;
	u64 insn;
};

/* A far transfer or an event: rows 27 to 35. */
void vmpt_rtit_unit_far(struct vmpt_rtit_unit *unit, const struct vmpt_rtit_far *far);

/* MOV CR3, rows 39 to 44; MOV CR0, which makes a PIP if CR0.PG changes (4.2.10). */
void vmpt_rtit_unit_mov_cr3(struct vmpt_rtit_unit *unit, u64 next_ip, u64 cr3);
void vmpt_rtit_unit_mov_cr0(struct vmpt_rtit_unit *unit, u64 next_ip, bool paging);

/* ---- SMM and VMX (2.6): rows 36 to 38; no TIP, no PIP ---- */

/* SMI and RSM: @ip is saved, @target and @mode are what is resumed. */
void vmpt_rtit_unit_smi(struct vmpt_rtit_unit *unit, u64 ip);
void vmpt_rtit_unit_rsm(struct vmpt_rtit_unit *unit, u64 target, const struct vmpt_rtit_mode *mode);
/* VMXON and VMXOFF: enter and leave root operation, which is never traced. */
void vmpt_rtit_unit_vmxon(struct vmpt_rtit_unit *unit, u64 next_ip);
void vmpt_rtit_unit_vmxoff(struct vmpt_rtit_unit *unit, u64 next_ip);
/* @target and @mode are the guest's; @ip: saved in the VMCS; @mode the host's. */
void vmpt_rtit_unit_vmentry(struct vmpt_rtit_unit *unit, u64 target,
			    const struct vmpt_rtit_mode *mode);
void vmpt_rtit_unit_vmexit(struct vmpt_rtit_unit *unit, u64 ip, const struct vmpt_rtit_mode *mode);

/* ---- time (4.2.12 to 4.2.15) ---- */

/* Time has passed: send MTCs that are due, update CNTP. A FUP.PCC comes with the next instruction.
 */
void vmpt_rtit_unit_time(struct vmpt_rtit_unit *unit, const struct vmpt_rtit_clocks *now);
/*
 * Causes of an STS (4.2.13): a new frequency or clock modulation; a wakeup from any sleep, which
 * began when time was last set: there are no MTCs of the time since (Appendix B 4.1).
 */
void vmpt_rtit_unit_frequency(struct vmpt_rtit_unit *unit, u8 acbr, u8 ecbr);
void vmpt_rtit_unit_wake(struct vmpt_rtit_unit *unit, const struct vmpt_rtit_clocks *now);

/* ---- overflow (4.2.5) and drain ---- */

/* The internal buffers are full. */
void vmpt_rtit_unit_overflow(struct vmpt_rtit_unit *unit);
/*
 * They are empty again and an instruction begins; @ip: where execution goes on after it. With
 * TriggerEn and ContextEn the overflow clears naturally; otherwise nothing happens.
 */
void vmpt_rtit_unit_overflow_resolve(struct vmpt_rtit_unit *unit, u64 ip);

/* Send pending bytes to the sink (TNT_BUFF stays). 0, or the sink's return value. */
int vmpt_rtit_unit_drain(struct vmpt_rtit_unit *unit);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#endif
