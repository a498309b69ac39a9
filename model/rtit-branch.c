// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Near branches and other instructions (Table 19, rows 1 to 26): TNT, TIP, RET
 * compression (4.2.3.2). PacketEn before the instruction decides about its own packets (4.3.2).
 */
#include "model/rtit-emit.h"

enum rtit_cofi { COFI_NONE, COFI_TNT, COFI_TIP };

static inline void own_packet(struct vmpt_rtit_unit *unit, enum rtit_cofi cofi, bool taken,
			      u64 target)
{
	switch (cofi) {
	case COFI_NONE:
		break;
	case COFI_TNT:
		vmpt_model_rtit_tnt(unit, taken);
		break;
	case COFI_TIP:
		vmpt_model_rtit_lip(unit, VMPT_RTIT_TIP, target);
		break;
	}
}

static void slow(struct vmpt_rtit_unit *unit, enum rtit_cofi cofi, bool taken, u64 next_ip,
		 u64 target)
{
	u64 ip = taken ? target : next_ip;
	struct rtit_change c;

	if (unit->packet_en) {
		if (cofi == COFI_TIP)
			vmpt_model_rtit_lost_tip(unit, target);
		own_packet(unit, cofi, taken, target);
	}
	if (rtit_unchanged(unit, taken, ip))
		return;
	vmpt_model_rtit_begin(unit, &c); /* the packet above changed no enable */
	vmpt_model_rtit_decide(unit, &c, taken, ip);
	vmpt_model_rtit_finish(unit, &c, next_ip, ip);
}

static inline void branch(struct vmpt_rtit_unit *unit, enum rtit_cofi cofi, bool taken, u64 next_ip,
			  u64 target)
{
	if (unit->plain || (unit->packet_en && !rtit_in_overflow(unit) &&
			    rtit_unchanged(unit, taken, taken ? target : next_ip)))
		own_packet(unit, cofi, taken, target);
	else if (unit->regs.ctl & VMPT_RTIT_CTL_TRACE_EN && unit->context_en)
		slow(unit, cofi, taken, next_ip, target);
}

/* The packet before all others: a FUP.PCC. */
static inline void begin(struct vmpt_rtit_unit *unit, u64 next_ip)
{
	if (!unit->plain)
		rtit_pcc(unit, next_ip);
}

/* Only a CALL that starts with PacketEn is remembered (4.2.3.2), none in an overflow (4.2.5). */
static inline void remember_call(struct vmpt_rtit_unit *unit, u64 next_ip)
{
	if (unit->packet_en && unit->regs.ctl & VMPT_RTIT_CTL_CMPRS_RET && !rtit_in_overflow(unit))
		unit->regs.last_call_nlip = (next_ip & VMPT_RTIT_LIP_MASK) | VMPT_RTIT_NLIP_VALID;
}

/* ---- public ---- */

void vmpt_rtit_unit_step(struct vmpt_rtit_unit *unit, u64 next_ip)
{
	begin(unit, next_ip);
	branch(unit, COFI_NONE, false, next_ip, next_ip);
}

void vmpt_rtit_unit_jcc(struct vmpt_rtit_unit *unit, bool taken, u64 next_ip, u64 target)
{
	begin(unit, next_ip);
	branch(unit, COFI_TNT, taken, next_ip, target);
}

void vmpt_rtit_unit_jmp(struct vmpt_rtit_unit *unit, u64 next_ip, u64 target)
{
	begin(unit, next_ip);
	branch(unit, COFI_NONE, true, next_ip, target);
}

void vmpt_rtit_unit_call(struct vmpt_rtit_unit *unit, u64 next_ip, u64 target)
{
	begin(unit, next_ip);
	remember_call(unit, next_ip);
	branch(unit, COFI_NONE, true, next_ip, target);
}

void vmpt_rtit_unit_jmp_indirect(struct vmpt_rtit_unit *unit, u64 next_ip, u64 target)
{
	begin(unit, next_ip);
	branch(unit, COFI_TIP, true, next_ip, target);
}

void vmpt_rtit_unit_call_indirect(struct vmpt_rtit_unit *unit, u64 next_ip, u64 target)
{
	begin(unit, next_ip);
	/* Before its TIP: a PSB caused by that clears it, as a decoder does. */
	remember_call(unit, next_ip);
	branch(unit, COFI_TIP, true, next_ip, target);
}

void vmpt_rtit_unit_ret(struct vmpt_rtit_unit *unit, u64 next_ip, u64 target)
{
	bool compressed;

	begin(unit, next_ip);
	compressed =
		unit->regs.ctl & VMPT_RTIT_CTL_CMPRS_RET &&
		unit->regs.last_call_nlip == ((target & VMPT_RTIT_LIP_MASK) | VMPT_RTIT_NLIP_VALID);
	branch(unit, compressed ? COFI_TNT : COFI_TIP, true, next_ip, target);
}
