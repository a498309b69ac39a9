/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The most common events of an RTIT unit inline: in a unit that traces without ranges, overflow
 * and anything due, a conditional branch is one more bit and a direct jump nothing.
 */
#ifndef VMPT_MODEL_RTIT_FAST_H
#define VMPT_MODEL_RTIT_FAST_H

#include "model/vmpt-rtit.h"

/* As vmpt_rtit_unit_jcc(). */
static inline void vmpt_rtit_unit_jcc_fast(struct vmpt_rtit_unit *unit, bool taken, u64 next_ip,
					   u64 target)
{
	u64 tnt = unit->regs.tnt_buff << 1 | taken;

	if (unit->plain && tnt < 1u << VMPT_RTIT_TNT_FULL)
		unit->regs.tnt_buff = tnt;
	else
		vmpt_rtit_unit_jcc(unit, taken, next_ip, target);
}

/* As vmpt_rtit_unit_jmp(). */
static inline void vmpt_rtit_unit_jmp_fast(struct vmpt_rtit_unit *unit, u64 next_ip, u64 target)
{
	if (!unit->plain)
		vmpt_rtit_unit_jmp(unit, next_ip, target);
}

#endif
