// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Near branches (SDM 3 33.2.1, 33.4.2.1, 33.4.2.2): TNT, TIP, RET compression, and the effect
 * of the IP filter and TraceStop on them (33.2.5.3, Table 33-56 cases 4 and 5).
 */
#include "model/emit.h"

/* The packet of a branch if PacketEn stays 1. */
enum cofi { COFI_NONE, COFI_TNT, COFI_TIP, COFI_RET, COFI_RET_TNT };

static void normal(struct vmpt_unit *unit, enum cofi cofi, bool taken, u64 target)
{
	switch (cofi) {
	case COFI_NONE:
		break;
	case COFI_TNT:
	case COFI_RET_TNT:
		vmpt_model_tnt(unit, taken);
		break;
	case COFI_TIP:
		vmpt_model_tip(unit, target, true);
		break;
	case COFI_RET:
		/* An uncompressed RET is not deferred (33.4.2.2). */
		vmpt_model_tip(unit, target, false);
		break;
	}
}

/* With ranges: PacketEn before and after decide. */
static void ranged(struct vmpt_unit *unit, enum cofi cofi, bool taken, u64 target)
{
	bool before = unit->packet_en, stop;

	if (!unit->context_en)
		return;
	/* Not taken: execution goes on after the branch, filters are not checked (33.2.5.3). */
	if (cofi == COFI_TNT && !taken) {
		if (before)
			vmpt_model_tnt(unit, false);
		return;
	}
	stop = vmpt_model_in_stop(unit, target);
	unit->filter_en = !stop && vmpt_model_filter(unit, target);
	vmpt_model_update(unit);
	if (before && unit->packet_en) {
		normal(unit, cofi, taken, target);
	} else if (before) {
		if (cofi == COFI_TNT)
			vmpt_model_emit_no_ip(unit, VMPT_PT_TIP_PGD);
		else
			vmpt_model_emit_ip(unit, VMPT_PT_TIP_PGD, target);
	} else {
		vmpt_model_emit_target(unit, false, target);
	}
	if (stop)
		vmpt_model_trace_stop(unit);
}

static inline void branch(struct vmpt_unit *unit, enum cofi cofi, bool taken, u64 target)
{
	if (unit->packet_en && !unit->ranged)
		normal(unit, cofi, taken, target);
	else if (unit->trigger_en && unit->ranged)
		ranged(unit, cofi, taken, target);
	else
		return;
	unit_after(unit, target);
}

/*
 * ---- the RET stack (33.4.2.2): the youngest 64 ----
 * A CALL is pushed before its packets: a PSB, an overflow or PacketEn = 0 caused by it
 * empties the stack, and no RET is compressed across them.
 */

static void push(struct vmpt_unit *unit, u64 next_ip)
{
	unit->ret_top = (u8)((unit->ret_top + 1) % VMPT_RET_STACK);
	unit->ret_stack[unit->ret_top] = next_ip;
	if (unit->ret_depth < VMPT_RET_STACK)
		unit->ret_depth++;
}

/* Whether the RET to @target may be a TNT bit. */
static bool pop(struct vmpt_unit *unit, u64 target)
{
	u64 expected;

	if (!unit->ret_depth)
		return false;
	expected = unit->ret_stack[unit->ret_top];
	unit->ret_top = (u8)((unit->ret_top + VMPT_RET_STACK - 1) % VMPT_RET_STACK);
	unit->ret_depth--;
	if (expected != target && unit->config.options.careful_retc)
		unit->ret_depth = 0;
	return expected == target;
}

/* ---- public ---- */

void vmpt_unit_jcc(struct vmpt_unit *unit, bool taken, u64 target)
{
	branch(unit, COFI_TNT, taken, target);
}

void vmpt_unit_jmp(struct vmpt_unit *unit, u64 target)
{
	if (unit->ranged || unit->psb_due)
		branch(unit, COFI_NONE, true, target);
}

void vmpt_unit_call(struct vmpt_unit *unit, u64 next_ip, u64 target)
{
	/* A CALL to the next instruction has no RET (33.4.2.2). */
	if (unit->packet_en && next_ip != target)
		push(unit, next_ip);
	if (unit->ranged || unit->psb_due)
		branch(unit, COFI_NONE, true, target);
}

void vmpt_unit_jmp_indirect(struct vmpt_unit *unit, u64 target)
{
	branch(unit, COFI_TIP, true, target);
}

void vmpt_unit_call_indirect(struct vmpt_unit *unit, u64 next_ip, u64 target)
{
	if (unit->packet_en)
		push(unit, next_ip);
	branch(unit, COFI_TIP, true, target);
}

void vmpt_unit_ret(struct vmpt_unit *unit, u64 target)
{
	bool compressed =
		unit->packet_en && pop(unit, target) && !(unit->regs.ctl & (VMPT_CTL_DIS_RETC));

	branch(unit, compressed ? COFI_RET_TNT : COFI_RET, true, target);
}
