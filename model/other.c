// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Packets that are no branch: TSX (SDM 3 33.2.9.1), PTWRITE (33.2.2), power events (33.2.3),
 * blocks (33.4.1.1), MNT, and the overflow of the internal buffer (33.3.8).
 */
#include "model/emit.h"

/* ---- TSX, Table 33-10 ---- */

static void emit_tsx(struct vmpt_unit *unit, bool intx, bool abort, u64 ip)
{
	struct vmpt_pt_packet pkt = { .kind = VMPT_PT_MODE_TSX };

	unit->in_tx = intx;
	/* With FilterEn = 0 it is sent too, but without a FUP (33.2.9.2). */
	if (!unit->trigger_en || !unit->context_en || !unit->branch_en)
		return;
	pkt.tsx.intx = intx;
	pkt.tsx.txabort = abort;
	vmpt_model_emit(unit, &pkt);
	if (unit->packet_en)
		vmpt_model_emit_ip(unit, VMPT_PT_FUP, ip);
}

void vmpt_unit_tx_begin(struct vmpt_unit *unit, u64 ip)
{
	if (unit->in_tx)
		unit->tx_nested++;
	else
		emit_tsx(unit, true, false, ip);
}

void vmpt_unit_tx_commit(struct vmpt_unit *unit, u64 ip)
{
	if (unit->tx_nested)
		unit->tx_nested--;
	else if (unit->in_tx)
		emit_tsx(unit, false, false, ip);
}

void vmpt_unit_tx_abort(struct vmpt_unit *unit, u64 ip, u64 target)
{
	struct vmpt_far far = {
		.kind = VMPT_FAR_BRANCH, .ip = ip, .target = target, .mode = unit->mode
	};

	unit->tx_nested = 0;
	emit_tsx(unit, false, true, ip);
	vmpt_unit_far(unit, &far);
}

/* ---- PTWRITE, Table 33-58's body ---- */

void vmpt_unit_ptwrite(struct vmpt_unit *unit, u64 ip, u64 payload, unsigned int size)
{
	struct vmpt_pt_packet pkt = { .kind = VMPT_PT_PTW };
	bool fup = unit->regs.ctl & VMPT_CTL_FUP_ON_PTW;

	if (!unit->trigger_en || !unit->context_en || !unit->filter_en ||
	    !(unit->regs.ctl & VMPT_CTL_PTW_EN))
		return;
	pkt.ptw.payload_bytes = size == 8;
	pkt.ptw.payload = size == 8 ? payload : payload & 0xffffffff;
	pkt.ptw.ip = fup;
	vmpt_model_emit(unit, &pkt);
	if (fup)
		vmpt_model_emit_ip(unit, VMPT_PT_FUP, ip);
	unit_after_no_ip(unit);
}

/* ---- power events, Table 33-57's body ---- */

static bool power(const struct vmpt_unit *unit)
{
	return unit->trigger_en && unit->regs.ctl & VMPT_CTL_PWR_EVT_EN;
}

/* Execution stops at @ip (33.4.2.22); the FUP needs ContextEn only. */
static void exstop(struct vmpt_unit *unit, u64 ip)
{
	struct vmpt_pt_packet pkt = { .kind = VMPT_PT_EXSTOP };

	pkt.exstop.ip = unit->context_en;
	vmpt_model_emit(unit, &pkt);
	if (unit->context_en)
		vmpt_model_emit_ip(unit, VMPT_PT_FUP, ip);
}

void vmpt_unit_sleep(struct vmpt_unit *unit, u64 ip, bool hw, u8 state, u8 sub_state)
{
	struct vmpt_pt_packet pkt = { .kind = VMPT_PT_PWRE };

	if (!power(unit))
		return;
	pkt.pwre.hw = hw;
	pkt.pwre.state = state;
	pkt.pwre.sub_state = sub_state;
	vmpt_model_emit(unit, &pkt);
	exstop(unit, ip);
}

void vmpt_unit_mwait(struct vmpt_unit *unit, u64 ip, u32 hints, u32 ext, u8 state, u8 sub_state)
{
	struct vmpt_pt_packet pkt = { .kind = VMPT_PT_MWAIT };

	/* Row 2; C0.1 makes none of these packets (33.4.2.23 to 33.4.2.25). */
	if (!power(unit) || (!state && sub_state <= 1))
		return;
	pkt.mwait.hints = hints & 0xff;
	pkt.mwait.ext = ext & 3;
	if (unit->context_en)
		vmpt_model_emit(unit, &pkt);
	vmpt_unit_sleep(unit, ip, false, state, sub_state);
}

void vmpt_unit_wake(struct vmpt_unit *unit, u8 last, u8 deepest, u8 reason)
{
	struct vmpt_pt_packet pkt = { .kind = VMPT_PT_PWRX };

	vmpt_unit_clock_resumed(unit);
	if (!power(unit))
		return;
	pkt.pwrx.last = last;
	pkt.pwrx.deepest = deepest;
	pkt.pwrx.wake_reason = reason;
	vmpt_model_emit(unit, &pkt);
}

void vmpt_unit_clock_stop(struct vmpt_unit *unit, u64 ip, const struct vmpt_now *after)
{
	if (power(unit))
		exstop(unit, ip);
	unit->now = *after;
	vmpt_unit_clock_resumed(unit);
	unit_after(unit, ip);
}

/* ---- blocks ---- */

void vmpt_unit_block(struct vmpt_unit *unit, unsigned int type, unsigned int sz,
		     const struct vmpt_unit_item *items, size_t n, u64 ip)
{
	struct vmpt_pt_packet pkt = { .kind = VMPT_PT_BBP };
	size_t i;

	if (!unit->trigger_en)
		return;
	pkt.bbp.sz = sz & 1;
	pkt.bbp.type = type & 0x1f;
	vmpt_model_emit(unit, &pkt);
	unit->block = (u8)VMPT_PT_BLOCK(sz, type);
	for (i = 0; i < n && unit->block; i++) {
		memset(&pkt, 0, sizeof(pkt));
		pkt.kind = VMPT_PT_BIP;
		pkt.bip.id = items[i].id & 0x1f;
		pkt.bip.payload = sz & 1 ? items[i].payload & 0xffffffff : items[i].payload;
		vmpt_model_emit(unit, &pkt);
	}
	unit->block = 0;
	memset(&pkt, 0, sizeof(pkt));
	pkt.kind = VMPT_PT_BEP;
	pkt.bep.ip = unit->context_en;
	vmpt_model_emit(unit, &pkt);
	if (unit->context_en)
		vmpt_model_emit_ip(unit, VMPT_PT_FUP, ip);
	unit_after_no_ip(unit);
}

void vmpt_unit_mnt(struct vmpt_unit *unit, u64 payload)
{
	struct vmpt_pt_packet pkt = { .kind = VMPT_PT_MNT };

	pkt.mnt.payload = payload;
	if (unit->trigger_en)
		vmpt_model_emit(unit, &pkt);
}

/* ---- overflow ---- */

void vmpt_unit_overflow(struct vmpt_unit *unit)
{
	if (!unit->trigger_en)
		return;
	unit->in_overflow = true;
	unit->tnt_bits = 0;
	unit->tnt_count = 0;
	unit->tip_count = 0;
	unit->block = 0;
	/* A decoder, libipt at least, drops a MODE.Exec that waits for its TIP.PGE at the OVF. */
	if (!unit->packet_en)
		unit->last_exec = 0xff;
	unit->ret_depth = 0;
}

/* Room for OVF and the packets after it, so that it does not overflow again at once. */
#define OVERFLOW_ROOM 64

bool vmpt_model_end_overflow(struct vmpt_unit *unit)
{
	vmpt_unit_flush(unit);
	if (!unit->trigger_en || unit->used + OVERFLOW_ROOM > VMPT_UNIT_BUFFER)
		return false;
	unit->in_overflow = false;
	unit->overflows++;
	/* Neither IPs nor RETs are compressed against what was lost (33.3.8). */
	unit->whole_ip = true;
	unit->ret_depth = 0;
	vmpt_model_emit_kind(unit, VMPT_PT_OVF);
	return true;
}

void vmpt_unit_overflow_resolve(struct vmpt_unit *unit, u64 ip)
{
	if (!unit->in_overflow || !vmpt_model_end_overflow(unit))
		return;
	if (unit->packet_en)
		vmpt_model_emit_ip(unit, VMPT_PT_FUP, ip);
	/* A PSB+ has the state that changed meanwhile (mode, CR3, VMCS): see drop(). */
	unit_after(unit, ip);
}
