/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What an instruction is to a processor with PT: how it ends a block, and whether the plugin
 * has to see it before it executes. Zydis decodes.
 */
#ifndef VMPT_QEMU_PLUGIN_FLOW_INSN_H
#define VMPT_QEMU_PLUGIN_FLOW_INSN_H

#include "arch/types.h"

enum insn_kind {
	INSN_PLAIN,
	INSN_JCC, /* LOOP and JrCXZ too */
	INSN_JMP,
	INSN_CALL,
	INSN_JMP_IND,
	INSN_CALL_IND,
	INSN_RET,
	INSN_FAR, /* far JMP, CALL, RET; SYSCALL, SYSRET, SYSENTER, SYSEXIT */
	INSN_IRET,
	INSN_SOFT_INT, /* INT n, INT1, INT3, INTO: reported as events */
	INSN_RSM,
	INSN_MOV_CR3,
	INSN_MODE, /* other moves to CRs, LMSW, WRMSR: may change paging or mode */
	INSN_REP,  /* a string instruction that repeats */
};

/*
 * Whether an instruction of @kind that is reached twice in a row, without an event in between, has
 * executed the first time: a RET in a recursion may go to itself. Others were interrupted by QEMU
 * and start again, which happens where they write to code in their own page.
 */
static inline bool insn_repeats(unsigned int kind)
{
	return kind == INSN_JCC || kind == INSN_JMP || kind == INSN_JMP_IND || kind == INSN_RET;
}

/* Whether a counter of branches counts @kind (SDM 3 19.2.1.2: all of them, far ones, too). */
static inline bool insn_is_branch(unsigned int kind)
{
	return kind >= INSN_JCC && kind <= INSN_RSM;
}

/* Why an instruction has a callback. */
enum insn_hook {
	HOOK_NONE,
	HOOK_IO,  /* IN, OUT, INS, OUTS */
	HOOK_HLT, /* HLT, MWAIT */
	HOOK_LGDT,
	HOOK_LIDT,
	HOOK_LLDT,
	HOOK_IF, /* STI, CLI, POPF */
	HOOK_CPUID,
	HOOK_RDMSR,
	HOOK_WRMSR,
	HOOK_RDTSC, /* RDTSC, RDTSCP */
	HOOK_RDPMC,
	HOOK_PTWRITE,
	HOOK_AFTER_CPUID, /* the instruction after a CPUID in the same block */
	HOOK_AFTER_PROBE, /* the second one of a block at a PTWRITE's AE byte */
	HOOK_RESET,	  /* the one at the reset vector */
};

struct insn {
	u8 kind; /* enum insn_kind */
	u8 hook; /* enum insn_hook */
	u8 size;
	s64 relative; /* of a direct branch: target - next */
};

/*
 * @bytes are an instruction that is @size long according to QEMU. QEMU does not report the mode:
 * it is the first of 64, 32 and 16 bits in which the size agrees. INSN_PLAIN if none does.
 */
void insn_classify(struct insn *insn, const u8 *bytes, size_t size);

/*
 * Whether @bytes set RSP (ESP, SP) other than by adding to it: MOV, LEA, POP, XCHG, LEAVE, ENTER.
 * Modes are tried as above.
 */
bool insn_loads_sp(const u8 *bytes, size_t size);

/* What an IN, OUT, INS or OUTS accesses. */
struct insn_io {
	u8 width; /* of an access, in bytes: 1, 2 or 4 */
	bool in, string, rep;
	bool immediate; /* the port is an immediate, in @port; else in DX */
	u16 port;
};

/* In a code segment of @bits: 16, 32 or 64. false: @bytes are none of the four. */
bool insn_io(struct insn_io *io, const u8 *bytes, size_t size, unsigned int bits);

#endif
