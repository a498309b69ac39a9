// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * How packets leave an RTIT unit: TNT_BUFF (4.2.2), LIP compression (4.2.3.1), cycle counts
 * (4.2.15), Pkt_Cnt and the PSB it makes due (3.3.9), the buffer and the circular output (2.3).
 */
#include "model/rtit-emit.h"

/* ---- the buffer ---- */

/*
 * LIMIT_MASK need not be one run of ones: then the run from bit 0 is what is written to before
 * the offset wraps. It has 6 bits at least, so the calls are bounded.
 */
int vmpt_rtit_unit_drain(struct vmpt_rtit_unit *unit)
{
	const struct vmpt_rtit_sink *sink = unit->config.sink;
	u64 mask = (unit->regs.limit_mask & VMPT_RTIT_OFFSET_MASK) | VMPT_RTIT_LIMIT_ONES;
	u64 run = ~mask & (mask + 1), offset, n;
	size_t done = 0;
	int err = 0;

	while (done < unit->used) {
		offset = unit->regs.offset & mask;
		n = run - (offset & (run - 1));
		if (n > unit->used - done)
			n = unit->used - done;
		err = sink->write(sink->opaque, (unit->regs.base_addr & ~mask) + offset,
				  unit->buffer + done, (size_t)n);
		if (err < 0)
			break;
		unit->regs.offset = (offset + n) & mask;
		done += (size_t)n;
	}
	if (done && done < unit->used)
		memmove(unit->buffer, unit->buffer + done, unit->used - done);
	unit->used = (u16)(unit->used - done);
	unit->bytes += done;
	return err < 0 ? err : 0;
}

static inline bool has_room(struct vmpt_rtit_unit *unit)
{
	if (unit->used + VMPT_RTIT_SIZE_MAX > VMPT_RTIT_UNIT_BUFFER)
		vmpt_rtit_unit_drain(unit);
	return unit->used + VMPT_RTIT_SIZE_MAX <= VMPT_RTIT_UNIT_BUFFER;
}

bool rtit_ready(struct vmpt_rtit_unit *unit)
{
	if (rtit_in_overflow(unit))
		return false;
	if (has_room(unit))
		return true;
	vmpt_rtit_unit_overflow(unit);
	return false;
}

/* ---- Pkt_Cnt, PSB ---- */

static void clear_compression(struct vmpt_rtit_unit *unit)
{
	unit->regs.last_lip = 0;
	unit->regs.last_call_nlip = 0;
	unit->late = 0;
}

/* Bytes that were generated; whether the bit that Pkt_Mask watches came up (3.3.9). */
static inline bool add_bytes(struct vmpt_rtit_unit *unit, unsigned int n)
{
	u64 count = (unit->regs.pkt_cnt & VMPT_RTIT_PKT_CNT_MASK) + n;

	unit->regs.pkt_cnt &= ~VMPT_RTIT_PKT_CNT_MASK;
	unit->regs.pkt_cnt |= count & VMPT_RTIT_PKT_CNT_MASK;
	return count & vmpt_rtit_psb_period(&unit->regs);
}

/* The bytes of a PSB. Pkt_Cnt becomes 0, then has the PSB's own 9 bytes. */
static void store_psb(struct vmpt_rtit_unit *unit)
{
	u8 *to = unit->buffer + unit->used;

	memset(to, 0, VMPT_RTIT_PSB_SIZE);
	to[0] = vmpt_rtit_table[VMPT_RTIT_PSB].header;
	unit->used = (u16)(unit->used + VMPT_RTIT_PSB_SIZE);
	unit->psb_late = false;
	unit->regs.pkt_cnt &= ~VMPT_RTIT_PKT_CNT_MASK;
	add_bytes(unit, VMPT_RTIT_PSB_SIZE);
}

/* Before packets that are not in the list of 4.2.2. */
static bool tnt_first(struct vmpt_rtit_unit *unit)
{
	return !unit->config.options.tnt_before_all || rtit_send_tnt(unit);
}

/* What Pkt_Mask wants. Without room it stays due. */
static void pkt_mask_psb(struct vmpt_rtit_unit *unit)
{
	unit->psb_late = true;
	if (!unit->trigger_en || !tnt_first(unit) || !rtit_ready(unit))
		return;
	/* That of the TNT may have settled it. */
	if (!unit->psb_late)
		return;
	store_psb(unit);
	unit->late = unit->config.options.psb_clears_late;
	if (!unit->late)
		clear_compression(unit);
}

void rtit_check_psb(struct vmpt_rtit_unit *unit)
{
	if (unit->trigger_en && !rtit_in_overflow(unit) &&
	    unit->regs.pkt_cnt & VMPT_RTIT_PKT_CNT_MASK & vmpt_rtit_psb_period(&unit->regs))
		pkt_mask_psb(unit);
}

void rtit_psb(struct vmpt_rtit_unit *unit)
{
	tnt_first(unit);
	clear_compression(unit);
	unit->psb_held = !has_room(unit);
	if (unit->psb_held)
		vmpt_rtit_unit_overflow(unit);
	else
		store_psb(unit);
}

/* Behind each packet of @n bytes: the late clearing of an earlier PSB, then a PSB that is due. */
static inline void stored(struct vmpt_rtit_unit *unit, unsigned int n)
{
	bool due = add_bytes(unit, n);

	unit->used = (u16)(unit->used + n);
	if (unit->late && !--unit->late)
		clear_compression(unit);
	if (unit->psb_late || (due && !rtit_erratum(unit, 3)))
		pkt_mask_psb(unit);
	else if (due)
		unit->psb_late = true;
}

/* ---- cycle counts ---- */

/* The count in CNTP, which is 0 behind it; its bytes. */
static unsigned int store_cycles(struct vmpt_rtit_unit *unit, u8 *to)
{
	u32 cycles = (u32)(unit->regs.cntp & VMPT_RTIT_CNTP_MASK);

	if (cycles && rtit_erratum(unit, 6))
		cycles--;
	unit->regs.cntp = 0;
	return vmpt_rtit_put_cycles(to, cycles);
}

static inline bool cycle_acc(const struct vmpt_rtit_unit *unit)
{
	return unit->regs.ctl & VMPT_RTIT_CTL_CYCLE_ACC;
}

/* ---- TNT ---- */

bool rtit_send_tnt(struct vmpt_rtit_unit *unit)
{
	u8 tnt = (u8)(unit->regs.tnt_buff & 0x7f), *to;
	unsigned int n = 1;

	if (tnt <= 1)
		return true;
	if (!rtit_ready(unit))
		return false;
	to = unit->buffer + unit->used;
	to[0] = tnt;
	if (tnt >> VMPT_RTIT_TNT_FULL && cycle_acc(unit))
		n += store_cycles(unit, to + 1);
	unit->regs.tnt_buff = VMPT_RTIT_RESET_TNT_BUFF;
	stored(unit, n);
	return true;
}

void rtit_tnt(struct vmpt_rtit_unit *unit, bool taken)
{
	if (rtit_in_overflow(unit))
		return;
	/* A full one that was written to the MSR, or left by an overflow that software ended. */
	if (unit->regs.tnt_buff >> VMPT_RTIT_TNT_FULL && !rtit_send_tnt(unit))
		return;
	unit->regs.tnt_buff = unit->regs.tnt_buff << 1 | taken;
	if (unit->regs.tnt_buff >> VMPT_RTIT_TNT_FULL)
		rtit_send_tnt(unit);
}

/* ---- LIP packets ---- */

/* RTIT_LAST_LIP is the one copy of the last LIP (Table 9). */
static void compress(struct vmpt_rtit_unit *unit, struct vmpt_rtit_packet *pkt, u64 lip)
{
	struct vmpt_rtit_last_lip last = {
		.lip = (unit->regs.last_lip & 0xffffffff) << 16,
		.valid = unit->regs.last_lip & VMPT_RTIT_LAST_LIP_VALID,
	};

	vmpt_rtit_lip_compress(&last, lip, pkt);
	/* Not updated by the buffer overflow packet (4.2.3.1). */
	if (pkt->kind != VMPT_RTIT_BUFF_OVF)
		unit->regs.last_lip = (lip >> 16 & 0xffffffff) | VMPT_RTIT_LAST_LIP_VALID;
}

void rtit_lip(struct vmpt_rtit_unit *unit, unsigned int kind, u64 lip)
{
	struct vmpt_rtit_packet pkt = { .kind = (u8)kind };
	unsigned int n;
	u8 *to;

	if (!rtit_send_tnt(unit) || !rtit_ready(unit))
		return;
	compress(unit, &pkt, lip);
	to = unit->buffer + unit->used;
	to[0] = (u8)(vmpt_rtit_table[kind].header | pkt.ip.zext << 2 | pkt.ip.cnt);
	n = vmpt_rtit_lip_size((unsigned int)pkt.ip.cnt);
	vmpt_rtit_put_bytes(to + 1, pkt.ip.lip, n);
	n++;
	if (cycle_acc(unit))
		n += store_cycles(unit, to + n);
	stored(unit, n);
}

/* ---- all others ---- */

void rtit_put(struct vmpt_rtit_unit *unit, struct vmpt_rtit_packet *pkt)
{
	bool first = pkt->kind == VMPT_RTIT_PIP ? rtit_send_tnt(unit) : tnt_first(unit);
	unsigned int n;
	u8 *to;
	int size;

	if (!first || !rtit_ready(unit))
		return;
	to = unit->buffer + unit->used;
	size = vmpt_rtit_encode(pkt, to, VMPT_RTIT_SIZE_MAX);
	if (size <= 0)
		return;
	n = (unsigned int)size;
	if (cycle_acc(unit) && vmpt_rtit_table[pkt->kind].classes & VMPT_RTIT_CYCLED)
		n += store_cycles(unit, to + n);
	stored(unit, n);
}

void rtit_put_trace_stop(struct vmpt_rtit_unit *unit)
{
	if (!has_room(unit))
		return;
	unit->buffer[unit->used] = vmpt_rtit_table[VMPT_RTIT_TRACESTOP].header;
	stored(unit, 1);
}
