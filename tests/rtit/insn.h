/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* Classes of x86 instructions for the flow of an RTIT trace (Tables 1 and 2). Zydis decodes. */
#ifndef VMPT_TESTS_RTIT_INSN_H
#define VMPT_TESTS_RTIT_INSN_H

#include "arch/types.h"

enum rtit_insn_kind {
	RTIT_INSN_OTHER, /* continues at the next instruction */
	RTIT_INSN_JCC,	 /* Jcc, LOOP, JrCXZ */
	RTIT_INSN_JMP,
	RTIT_INSN_CALL,
	RTIT_INSN_JMP_INDIRECT,
	RTIT_INSN_CALL_INDIRECT,
	RTIT_INSN_RET,
	RTIT_INSN_FAR,	  /* far JMP, CALL, RET; IRET, INT, SYSCALL, SYSENTER and back */
	RTIT_INSN_PAGING, /* MOV to CR3 or CR0 and the like: may make a PIP */
	RTIT_INSN_WRMSR,  /* may switch tracing off without a packet */
	RTIT_INSN_KINDS
};

struct rtit_insn {
	u64 target; /* of a direct branch */
	u8 kind;    /* enum rtit_insn_kind */
	u8 len;
};

/* Linear addresses are 48 bits in RTIT: sign-extend bit 47, as in a processor. */
static inline u64 rtit_canonical(u64 lip)
{
	return lip >> 47 & 1 ? lip | ~0ULL << 48 : lip & ~(~0ULL << 48);
}

/*
 * The instruction at @ip, of which @size bytes may be read, in code of @bits: 16, 32 or 64. CS
 * begins at linear address 0. False: there is none.
 */
bool rtit_insn_decode(struct rtit_insn *insn, u64 ip, const u8 *bytes, size_t size,
		      unsigned int bits);

/* "Jcc" … */
const char *rtit_insn_name(unsigned int kind);

#endif
