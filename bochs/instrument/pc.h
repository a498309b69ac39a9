/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The PC's processors as the library sees them: for each one a trace unit (model/), the state of
 * the current transition, and what is recorded. For the library's own files.
 */
#ifndef VMPT_BOCHS_PC_H
#define VMPT_BOCHS_PC_H

#include "bochs.h"
#include "cpu/cpu.h"
#include "cpu/cpuid.h"
#include "cpu/apic.h"
#include "gui/siminterface.h"
#include "memory/memory-bochs.h"
#include "pc_system.h"

#include "model/vmpt-model.h"

/* Which PT the processors have; words of VMPT_BOCHS_PT, see options.cc. */
struct pc_options {
	bool pt;	 /* there is PT at all */
	bool vmx_pt;	 /* IA32_VMX_MISC[14] */
	bool conceal;	 /* the conceal controls */
	bool load_clear; /* load and clear IA32_RTIT_CTL */
	bool gpa;	 /* PT uses guest physical addresses */
	struct vmpt_pt_cpuid cpuid;
	struct vmpt_unit_options unit;
};

extern struct pc_options pc_options;

/* Read the environment once. Ends the process with a message if a word is unknown. */
void pc_options_read(void);

struct pc_counts;
struct pc_msr_counts;
struct truth;
struct pc_times;

/* The VM exit that an access by PT's output causes; reason 0: none. */
struct ept_exit {
	u32 reason;
	u64 qualification;
	bool has_gpa; /* the guest-physical address goes into the VMCS */
	u64 gpa;
};

/* Interrupts at one instruction after the other, see walk.cc. */
#define PC_WALK_STOP  0x10000 /* begin: where the host clears TraceEn; else an exit reason */
#define PC_WALK_PMI   1	      /* flags: bit 55 of the status, if TraceEn is 1 then */
#define PC_WALK_LATE  2	      /* bit 55 from the window's begin on */
#define PC_WALK_WORDS 6

struct pc_walk {
	bool on, inside, late, guest_traced;
	u32 begin, at, stride, flags;
	u64 status;
	u32 count;  /* instructions of this window so far */
	u32 misses; /* consecutive windows that ended too soon */
	u32 windows, interrupts, idle, masked;
};

struct pc_cpu {
	unsigned int id;
	BX_CPU_C *cpu;
	struct vmpt_unit unit;
	struct vmpt_output_memory memory;
	u64 global_status; /* our bits of IA32_PERF_GLOBAL_STATUS */
	u64 last_ticks;	   /* time that was set last, never goes back */
	u64 slept;	   /* ticks without a core clock, and since when it is off now */
	u64 slept_at;

	/* The source of the current transfer or event, a linear address. */
	u64 origin;
	bool task_switch; /* it loaded CR3 */

	/* The C-state of a PWRE that no PWRX has ended. C0.2 is 0, but waits. */
	u8 c_state;
	bool waits;

	/* the current VM entry or exit */
	bool in_entry, in_exit;
	struct vmpt_unit_entry entry;
	u64 entry_next; /* after VMLAUNCH or VMRESUME */
	struct vmpt_unit_exit exit;
	bool exit_late;	    /* a VM entry that fails late */
	bool exit_reported; /* it was already reported to the unit */
	bool list_ctl;	    /* an MSR list wrote IA32_RTIT_CTL: */
	u64 list_ctl_value;
	bool smm_on, smm_nonroot; /* VMX operation that SMI left */
	bool was_reset;		  /* the first RESET is the cold one */

	struct {
		bool on;	      /* the guest's PT uses guest physical addresses */
		bool exits;	      /* the current VM exit is by its output */
		struct ept_exit exit; /* due at the next instruction boundary */
	} ept;
	struct pc_counts *counts;	  /* log.cc */
	struct pc_msr_counts *msr_counts; /* msr-count.cc */
	struct truth *truth;
	struct pc_times *times;
	struct pc_walk walk;
};

extern struct pc_cpu *pc_cpus[VMPT_BOCHS_CPUS];

static inline struct pc_cpu *pc_of(unsigned int cpu)
{
	return pc_cpus[cpu];
}

/* ---- the processor's state ---- */

/* Linear address of offset @rip in the code segment. */
static inline u64 pc_lip(const struct pc_cpu *pc, u64 rip)
{
	return pc->cpu->get_laddr(BX_SEG_REG_CS, (bx_address)rip);
}

static inline u64 pc_rip(const struct pc_cpu *pc)
{
	return pc->cpu->gen_reg[BX_64BIT_REG_RIP].rrx;
}

/* Where execution goes on. */
static inline u64 pc_next(const struct pc_cpu *pc)
{
	return pc_lip(pc, pc_rip(pc));
}

/* The address of the current instruction. */
static inline u64 pc_place(const struct pc_cpu *pc)
{
	return pc_lip(pc, pc->cpu->prev_rip);
}

void pc_mode(const struct pc_cpu *pc, struct vmpt_mode *mode);

/* ---- around each event ---- */

/* Set the unit's time, if a packet could need it (clock.cc). */
void pc_time(struct pc_cpu *pc);
/* Set it in any case. */
void pc_time_now(struct pc_cpu *pc);
/*
 * The core clock stops; it goes on, after which the wake is reported to the unit. The time between
 * shows in the TSC of the wake, not in MTCs and cycles (33.3.6.1).
 */
void pc_time_sleep(struct pc_cpu *pc);
void pc_time_wake(struct pc_cpu *pc);
/* A ToPA PMI (msr.cc). */
void pc_pmi(struct pc_cpu *pc);
/* A VM entry has put the processor to sleep (events.cc). */
void pc_sleep_entered(struct pc_cpu *pc);
/* Update vmpt_watch[]. */
void pc_watch(struct pc_cpu *pc);
/*
 * Send pending bytes now and translate the pages that output reaches; TraceEn was set, a VM
 * entry, or CS:RIP is where execution goes on.
 */
void pc_flush(struct pc_cpu *pc);
/* After an event: send pending bytes before the buffer is full. */
static inline void pc_after(struct pc_cpu *pc)
{
	if (pc->unit.used > VMPT_UNIT_BUFFER / 4 || pc->unit.in_overflow)
		pc_flush(pc);
}

/* ---- output to memory, through EPT where PT uses guest physical addresses (memory.cc) ---- */

void pc_memory_init(struct pc_cpu *pc);
void pc_memory_reset(struct pc_cpu *pc);
/* Before a VM entry or an RSM is reported to the unit; OUTPUT MSRs are the guest's. */
void pc_memory_enter(struct pc_cpu *pc);
/* After a VM exit or an SMI was reported, while those MSRs are still loaded. */
void pc_memory_leave(struct pc_cpu *pc);

/* Report the current exit, as far as it is known (vmx.cc). */
void pc_exit_report(struct pc_cpu *pc);

/* ---- executed instructions (truth.cc); all do nothing while it is off ---- */
/* @traced_only: only while TraceEn is 1. */
void pc_truth_start(struct pc_cpu *pc, bool traced_only);
void pc_truth_stop(struct pc_cpu *pc);
/* Whether instructions are wanted now. */
bool pc_truth_writes(const struct pc_cpu *pc);
/* An interrupt or exception is about to be delivered: state is still the interrupted one. */
void pc_truth_origin(struct pc_cpu *pc);
/* It was delivered: the instruction at @from has not retired, execution goes on at @to. */
void pc_truth_event(struct pc_cpu *pc, u64 from, u64 to);
/* VM entry and exit, once all state is the new owner's; the guest's instruction at @from has not
 * retired. */
void pc_truth_entry(struct pc_cpu *pc, u64 to);
void pc_truth_exit(struct pc_cpu *pc, u64 from, u64 to);
/* SMM begins before the instruction at @ip; or ends, execution goes on at @ip. */
void pc_truth_smm(struct pc_cpu *pc, bool smm, u64 ip);
void pc_truth_reset(struct pc_cpu *pc);
/* WRMSR at @place wrote IA32_RTIT_CTL, which was @old. */
void pc_truth_ctl(struct pc_cpu *pc, u64 old, u64 place, u64 next);
/* Report the files written in the run's log. */
void pc_truth_report(const struct pc_cpu *pc);

/* ---- when each byte of the trace was made (times.cc) ---- */

/* Record into files of that name; ends an earlier recording. */
void pc_times_start(struct pc_cpu *pc, const char *name);
void pc_times_stop(struct pc_cpu *pc);
/* The unit's time is about to be set. */
void pc_times_note(struct pc_cpu *pc);
/* A VM entry, a VM exit, before it is reported to the unit. */
void pc_times_entry(struct pc_cpu *pc);
void pc_times_exit(struct pc_cpu *pc);

/* ---- interrupts on a walk (walk.cc) ---- */

/* Start a walk with PC_WALK_WORDS words, as from the host port; an old one ends, with a line in the
 * log. Stride 0: start none. */
void pc_walk_set(struct pc_cpu *pc, const u32 *words);
void pc_walk_end(struct pc_cpu *pc);
/* An instruction begins. */
void pc_walk_insn(struct pc_cpu *pc);
/* A VM exit begins, is done; a VM entry passed its checks; software wrote IA32_RTIT_CTL. */
void pc_walk_exit_begin(struct pc_cpu *pc);
void pc_walk_exit(struct pc_cpu *pc);
void pc_walk_entry(struct pc_cpu *pc);
void pc_walk_ctl(struct pc_cpu *pc, u64 old);

/* ---- files of the run ---- */

/* The run's output folder: VMPT_BOCHS_OUT or ".". */
const char *pc_folder(void);
/* A line of the run's log (log.cc). */
void pc_log(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* The run's status for vmpt-bochs, "none" if it was switched off without one. */
void pc_status(const char *status);
void pc_count_entry(struct pc_cpu *pc);
void pc_count_exit(struct pc_cpu *pc);
void pc_log_counts(const struct pc_cpu *pc);
/* RDMSR and WRMSR between VM exits and entries; a mark reports them (msr-count.cc). */
void pc_msr_count(struct pc_cpu *pc, u32 index, bool write);
void pc_msr_count_exit(struct pc_cpu *pc);
void pc_msr_count_entry(struct pc_cpu *pc);
void pc_msr_count_report(struct pc_cpu *pc);
/* An image of the memory (image.cc). */
void pc_image(const char *name);
/* A file that is still open ends (port.cc). */
void pc_port_end(void);

#endif
