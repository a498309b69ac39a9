/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Bochs's calls into the library: Bochs's own instrumentation macros and those that
 * the patches in bochs/patches/ add. All of Bochs's files include this one; it includes nothing,
 * so that a change of the library does not rebuild Bochs.
 *
 * The macros are used inside methods of BX_CPU_C: its fields and "i", the instruction, are in
 * scope.
 */
#ifndef VMPT_BOCHS_INSTRUMENT_H
#define VMPT_BOCHS_INSTRUMENT_H

#if BX_INSTRUMENTATION

class bxInstruction_c;
struct cpuid_function_t;

#define VMPT_BOCHS_CPUS 8

/* Why a processor's events are wanted; 0: nothing is called for most of them. */
#define VMPT_WATCH_PT	 1 /* TraceEn is 1 */
#define VMPT_WATCH_TRUTH 2 /* executed instructions are recorded */
#define VMPT_WATCH_IF	 4 /* TraceEn is 1, MODE.Exec has RFLAGS.IF: changes of it count */
extern Bit8u vmpt_watch[VMPT_BOCHS_CPUS];

/* PT features of the processor in VMX operation, see vmpt_vmx_has(). */
enum vmpt_vmx_part {
	VMPT_VMX_MISC_PT,	/* IA32_VMX_MISC[14] */
	VMPT_VMX_CONCEAL,	/* the three conceal controls */
	VMPT_VMX_PT_LOAD_CLEAR, /* load and clear IA32_RTIT_CTL */
	VMPT_VMX_PT_GPA,	/* PT uses guest physical addresses */
};

/* ---- the run (run.cc) ---- */
void vmpt_initialize(unsigned int cpu);
void vmpt_exit(unsigned int cpu);
void vmpt_environment_exit(void);
/* OUT of @len bytes to @port (port.cc). */
void vmpt_outp(Bit16u port, unsigned int len, Bit32u value);

/* ---- near branches, MOV CR3, RFLAGS.IF (events.cc); CS:RIP is where execution goes on ---- */
void vmpt_jcc(unsigned int cpu, bool taken);
/* @what: BX_INSTR_IS_JMP …; @next_ip: RIP after the instruction. */
void vmpt_near(unsigned int cpu, unsigned int what, bx_address next_ip);
void vmpt_control_register(unsigned int cpu, unsigned int what);
void vmpt_if(unsigned int cpu);
void vmpt_ptwrite(unsigned int cpu, Bit64u payload, unsigned int size);
bool vmpt_has_ptwrite(unsigned int cpu);

/* ---- far transfers and events (events.cc) ---- */
/* A far branch begins: CS:prev_rip is its address. */
void vmpt_far_origin(unsigned int cpu);
/* It has come to its target. @what: BX_INSTR_IS_CALL … */
void vmpt_far(unsigned int cpu, unsigned int what);
/* Delivery of an interrupt or exception begins at CS:RIP, or at CS:prev_rip for INT n. */
void vmpt_event_origin(unsigned int cpu, int type);
void vmpt_event_delivered(unsigned int cpu, Bit8u vector, unsigned int type);
void vmpt_uintr(unsigned int cpu, unsigned int vector);
void vmpt_smi(unsigned int cpu);
void vmpt_rsm(unsigned int cpu);
/* BX_RESET_SOFTWARE is INIT. */
void vmpt_reset(unsigned int cpu, unsigned int source);
void vmpt_sipi(unsigned int cpu, unsigned int vector);
/* Enter activity state @state, and leave it; @reason as in PWRX (Table 33-44). */
#define BX_INSTR_WAKE_INTERRUPT 1
#define BX_INSTR_WAKE_TIMER	2
#define BX_INSTR_WAKE_STORE	4
#define BX_INSTR_WAKE_HW	8
void vmpt_sleep(unsigned int cpu, unsigned int state);
void vmpt_wake(unsigned int cpu, unsigned int reason);
/* MWAIT, UMWAIT and TPAUSE that do wait; vmpt_sleep() follows. @request: bit 0 asks for C0.1
 * instead of C0.2, which may be forbidden. */
void vmpt_mwait(unsigned int cpu, Bit32u hints, Bit32u ext);
void vmpt_umwait(unsigned int cpu, Bit32u request, bool no_c02);

/* ---- MSRs and CPUID (msr.cc) ---- */
/* 0: not one of our MSRs; 1: done; -1: #GP. */
int vmpt_rdmsr(unsigned int cpu, Bit32u index, Bit64u *value);
int vmpt_wrmsr(unsigned int cpu, Bit32u index, Bit64u value);
void vmpt_cpuid(unsigned int cpu, Bit32u leaf, Bit32u subleaf, struct cpuid_function_t *result);

/* ---- VMX (vmx.cc) ---- */
bool vmpt_vmx_has(enum vmpt_vmx_part part);
void vmpt_vmxon(unsigned int cpu);
void vmpt_vmxoff(unsigned int cpu);
/* VMPTRLD; VMCLEAR of the current one: BX_INVALID_VMCSPTR */
void vmpt_vmptrld(unsigned int cpu, Bit64u vmcs);
/* VMLAUNCH or VMRESUME begins; fails early (VMfail); has loaded the guest's state. */
void vmpt_vmentry_begin(unsigned int cpu);
void vmpt_vmentry_failed(unsigned int cpu);
void vmpt_vmentry(unsigned int cpu);
/* A VM exit, or late failure of a VM entry (bit 31 of @reason); RIP is as it will be saved;
 * the host's state is loaded. */
void vmpt_vmexit(unsigned int cpu, Bit32u reason, Bit64u qualification);
void vmpt_vmexit_begin(unsigned int cpu);
void vmpt_vmexit_done(unsigned int cpu);
/* TraceEn is 1; whether a VM entry may load @ctl; IA32_RTIT_CTL */
bool vmpt_pt_traces(unsigned int cpu);
bool vmpt_pt_ctl_valid(unsigned int cpu, Bit64u ctl);
Bit64u vmpt_pt_ctl(unsigned int cpu);
/* At an instruction boundary after BX_EVENT_VMX_PT_OUTPUT (memory.cc). */
void vmpt_pt_output_exit(unsigned int cpu);
/* Whether the current VM exit is one of these. */
bool vmpt_pt_output_exits(unsigned int cpu);

/* ---- what is executed (truth.cc) ---- */
void vmpt_truth_insn(unsigned int cpu, bxInstruction_c *i);

#define VMPT_IF(cpu, bits, call)              \
	do {                                  \
		if (vmpt_watch[cpu] & (bits)) \
			call;                 \
	} while (0)

/* Bochs's own */
/* Each instruction holds its bytes as they were decoded, for the truth. */
#define BX_INSTR_STORE_OPCODE_BYTES
#define BX_INSTR_INIT_ENV()
#define BX_INSTR_EXIT_ENV()	    vmpt_environment_exit()
#define BX_INSTR_INITIALIZE(cpu)    vmpt_initialize(cpu)
#define BX_INSTR_EXIT(cpu)	    vmpt_exit(cpu)
#define BX_INSTR_RESET(cpu, source) vmpt_reset(cpu, source)
#define BX_INSTR_HLT(cpu)
#define BX_INSTR_MWAIT(cpu, addr, len, flags) vmpt_mwait(cpu, EAX, flags)
#define BX_INSTR_DEBUG_PROMPT()
#define BX_INSTR_DEBUG_CMD(cmd)
#define BX_INSTR_CNEAR_BRANCH_TAKEN(cpu, from, to) VMPT_IF(cpu, VMPT_WATCH_PT, vmpt_jcc(cpu, true))
#define BX_INSTR_CNEAR_BRANCH_NOT_TAKEN(cpu, from) VMPT_IF(cpu, VMPT_WATCH_PT, vmpt_jcc(cpu, false))
#define BX_INSTR_UCNEAR_BRANCH(cpu, what, from, to) \
	VMPT_IF(cpu, VMPT_WATCH_PT, vmpt_near(cpu, what, (from) + i->ilen()))
#define BX_INSTR_FAR_BRANCH(cpu, what, prev_cs, prev_eip, new_cs, new_eip) \
	VMPT_IF(cpu, VMPT_WATCH_PT, vmpt_far(cpu, what))
#define BX_INSTR_OPCODE(cpu, i, opcode, len, is32, is64)
#define BX_INSTR_INTERRUPT(cpu, vector)
#define BX_INSTR_EXCEPTION(cpu, vector, error_code)
#define BX_INSTR_HWINTERRUPT(cpu, vector, cs, eip)
#define BX_INSTR_TLB_CNTRL(cpu, what, new_cr3) \
	VMPT_IF(cpu, VMPT_WATCH_PT, vmpt_control_register(cpu, what))
#define BX_INSTR_CACHE_CNTRL(cpu, what)
#define BX_INSTR_PREFETCH_HINT(cpu, what, seg, offset)
#define BX_INSTR_CLFLUSH(cpu, laddr, paddr)
#define BX_INSTR_BEFORE_EXECUTION(cpu, i) VMPT_IF(cpu, VMPT_WATCH_TRUTH, vmpt_truth_insn(cpu, i))
#define BX_INSTR_AFTER_EXECUTION(cpu, i)
#define BX_INSTR_REPEAT_ITERATION(cpu, i)
#define BX_INSTR_INP(addr, len)
#define BX_INSTR_INP2(addr, len, val)
#define BX_INSTR_OUTP(addr, len, val)              \
	do {                                       \
		if (((addr) & ~7) == 0x560)        \
			vmpt_outp(addr, len, val); \
	} while (0)
#define BX_INSTR_LIN_ACCESS(cpu, lin, phy, len, memtype, rw)
#define BX_INSTR_PHY_ACCESS(cpu, phy, len, memtype, rw)
#define BX_INSTR_WRMSR(cpu, index, value)	    vmpt_wrmsr(cpu, index, value)
#define BX_INSTR_VMEXIT(cpu, reason, qualification) vmpt_vmexit(cpu, reason, qualification)

/* Those of the patches */
#define BX_INSTR_RDMSR(cpu, index, value)	   vmpt_rdmsr(cpu, index, value)
#define BX_INSTR_CPUID(cpu, leaf, subleaf, result) vmpt_cpuid(cpu, leaf, subleaf, result)
#define BX_INSTR_FAR_ORIGIN(cpu)		   VMPT_IF(cpu, 0xff, vmpt_far_origin(cpu))
#define BX_INSTR_EVENT_ORIGIN(cpu)		   VMPT_IF(cpu, 0xff, vmpt_event_origin(cpu, -1))
#define BX_INSTR_EVENT(cpu, vector, type)	   VMPT_IF(cpu, 0xff, vmpt_event_origin(cpu, (int)(type)))
#define BX_INSTR_EVENT_DELIVERED(cpu, vector, type) \
	VMPT_IF(cpu, 0xff, vmpt_event_delivered(cpu, vector, type))
#define BX_INSTR_UINTR(cpu, vector)	      VMPT_IF(cpu, 0xff, vmpt_uintr(cpu, vector))
#define BX_INSTR_SMI(cpu)		      vmpt_smi(cpu)
#define BX_INSTR_RSM(cpu)		      vmpt_rsm(cpu)
#define BX_INSTR_SIPI(cpu, vector)	      vmpt_sipi(cpu, vector)
#define BX_INSTR_SLEEP(cpu, state)	      vmpt_sleep(cpu, state)
#define BX_INSTR_WAKE(cpu, reason)	      vmpt_wake(cpu, reason)
#define BX_INSTR_UMWAIT(cpu, request, no_c02) vmpt_umwait(cpu, request, no_c02)
#define BX_INSTR_SET_IF(cpu)		      VMPT_IF(cpu, VMPT_WATCH_IF, vmpt_if(cpu))
#define BX_INSTR_PTWRITE(cpu, payload, size) \
	VMPT_IF(cpu, VMPT_WATCH_PT, vmpt_ptwrite(cpu, payload, size))
#define BX_INSTR_HAS_PTWRITE(cpu)	vmpt_has_ptwrite(cpu)
#define BX_INSTR_VMX_HAS(part)		vmpt_vmx_has(VMPT_VMX_##part)
#define BX_INSTR_VMXON(cpu)		vmpt_vmxon(cpu)
#define BX_INSTR_VMXOFF(cpu)		vmpt_vmxoff(cpu)
#define BX_INSTR_VMPTRLD(cpu, vmcs)	vmpt_vmptrld(cpu, vmcs)
#define BX_INSTR_VMENTRY_BEGIN(cpu)	vmpt_vmentry_begin(cpu)
#define BX_INSTR_VMENTRY_FAILED(cpu)	vmpt_vmentry_failed(cpu)
#define BX_INSTR_VMENTRY(cpu)		vmpt_vmentry(cpu)
#define BX_INSTR_VMEXIT_BEGIN(cpu)	vmpt_vmexit_begin(cpu)
#define BX_INSTR_VMEXIT_DONE(cpu)	vmpt_vmexit_done(cpu)
#define BX_INSTR_PT_TRACES(cpu)		vmpt_pt_traces(cpu)
#define BX_INSTR_PT_CTL_VALID(cpu, ctl) vmpt_pt_ctl_valid(cpu, ctl)
#define BX_INSTR_PT_CTL(cpu)		vmpt_pt_ctl(cpu)
#define BX_INSTR_PT_OUTPUT_EXIT(cpu)	vmpt_pt_output_exit(cpu)
#define BX_INSTR_PT_OUTPUT_EXITS(cpu)	vmpt_pt_output_exits(cpu)

#endif /* BX_INSTRUMENTATION */
#endif
