/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * For those who follow a program's flow by an RTIT trace: what of it needs the code. The
 * decoder does the other errata (vmpt-decode.h, VMPT_RTIT_AUX_ERRATUM).
 */
#ifndef VMPT_RTIT_FLOW_H
#define VMPT_RTIT_FLOW_H

#include "arch/rtit-packet.h"

/*
 * Where a FUP.Far that was sent for the far transfer instruction of @size bytes at @insn comes
 * from: @lip, or by E1, when @lip lies inside the instruction, the LIP of the next one; *@e1 (may
 * be NULL) says whether. @lip equal to @insn is a fault of that instruction and stays. A FUP.PGD
 * that stands for a FUP.Far (4.2.9) is asked for the same way. LIPs have 48 bits; of @insn the
 * others do not count.
 */
static inline u64 vmpt_rtit_far_source(u64 lip, u64 insn, unsigned int size, bool *e1)
{
	u64 inside = (lip - insn) & vmpt_mask64(VMPT_RTIT_LIP_BITS);
	bool wrong = inside && inside < size;

	if (e1)
		*e1 = wrong;
	return (wrong ? insn + size : lip) & vmpt_mask64(VMPT_RTIT_LIP_BITS);
}

#endif
