/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The most common event inline, for callers with hundreds of millions of them: a conditional
 * branch in a unit without IP ranges, CYC and anything due is one more bit.
 */
#ifndef VMPT_MODEL_FAST_H
#define VMPT_MODEL_FAST_H

#include "model/vmpt-model.h"

/* As vmpt_unit_jcc(). */
static inline void vmpt_unit_jcc_fast(struct vmpt_unit *unit, bool taken, u64 target)
{
	if (unit->tnt_count + 1 < unit->tnt_max && unit->tnt_count && unit->packet_en &&
	    !unit->ranged && !unit->psb_due && !unit->in_overflow) {
		unit->tnt_bits = unit->tnt_bits << 1 | taken;
		unit->tnt_count++;
		return;
	}
	vmpt_unit_jcc(unit, taken, target);
}

/* As vmpt_unit_jmp(). */
static inline void vmpt_unit_jmp_fast(struct vmpt_unit *unit, u64 target)
{
	if (unit->ranged || unit->psb_due)
		vmpt_unit_jmp(unit, target);
}

#endif
