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
	INSN_SOFT_INT, /* INT n, INT1, INT3, INTO: delivered, a discontinuity */
	INSN_RSM,
	INSN_MOV_CR3,
	INSN_MODE, /* other moves to CRs, LMSW, WRMSR: paging or mode may change behind it */
	INSN_REP,  /* a string instruction that comes back to itself */
};

/*
 * Whether execution that is at an instruction of @kind again, without an event, has left it:
 * RET in a recursion may go to itself. Others have been stopped and start anew, as QEMU does
 * where they write to code of their own page.
 */
static inline bool insn_repeats(unsigned int kind)
{
	return kind == INSN_JCC || kind == INSN_JMP || kind == INSN_JMP_IND || kind == INSN_RET;
}

/* For whom an instruction is stopped at. */
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
	HOOK_BEHIND_CPUID, /* the instruction that follows a CPUID in its block */
	HOOK_RESET,	   /* the one at the reset vector */
};

struct insn {
	u8 kind; /* enum insn_kind */
	u8 hook; /* enum insn_hook */
	u8 size;
	s64 relative; /* of a direct branch: target - next */
};

/*
 * @bytes of an instruction that QEMU found to be @size long: the mode is the one in which it
 * is (64, 32 or 16 bits), for QEMU does not tell it. What cannot be decoded is PLAIN.
 */
void insn_classify(struct insn *insn, const u8 *bytes, size_t size);

/* What an IN, OUT, INS or OUTS does. */
struct insn_io {
	u8 width; /* of an access, in bytes: 1, 2 or 4 */
	bool in, string, rep;
	bool immediate; /* the port is in the instruction: @port; else in DX */
	u16 port;
};

/* Where code is of @bits: 16, 32 or 64. false: @bytes are none of the four. */
bool insn_io(struct insn_io *io, const u8 *bytes, size_t size, unsigned int bits);

#endif
