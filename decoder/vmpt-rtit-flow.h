/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * For users who follow a program's flow by an RTIT trace: the erratum that needs the program's
 * code. The decoder handles the others (vmpt-decode.h, VMPT_RTIT_AUX_ERRATUM).
 */
#ifndef VMPT_RTIT_FLOW_H
#define VMPT_RTIT_FLOW_H

#include "arch/rtit-packet.h"

/*
 * Source address of a FUP.Far sent for the far transfer instruction of @size bytes at @insn: @lip,
 * or with E1, if @lip lies inside the instruction, the LIP of the next one; *@e1 (may be NULL)
 * says whether E1 applied. If @lip equals @insn the instruction faulted, and @lip is right. Works
 * for a FUP.PGD that replaces a FUP.Far (4.2.9), too. LIPs have 48 bits; higher bits of @insn are
 * ignored.
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
