// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * How packets leave a unit: pending TNT bits and deferred TIPs (SDM 3 33.4.2.1, 33.4.2.3),
 * IP compression (33.4.2.2), the byte count, the buffer and its output.
 */
#include "model/emit.h"

/* Packets that a CYC precedes (33.3.6, and 33.4.2.23 for MWAIT). TNT: see vmpt_model_tnt(). */
static bool cyc_eligible(unsigned int kind)
{
	switch (kind) {
	case VMPT_PT_TIP:
	case VMPT_PT_TIP_PGE:
	case VMPT_PT_TIP_PGD:
	case VMPT_PT_MODE_EXEC:
	case VMPT_PT_MODE_TSX:
	case VMPT_PT_PIP:
	case VMPT_PT_VMCS:
	case VMPT_PT_OVF:
	case VMPT_PT_MTC:
	case VMPT_PT_TSC:
	case VMPT_PT_PTW:
	case VMPT_PT_EXSTOP:
	case VMPT_PT_MWAIT:
		return true;
	default:
		return false;
	}
}

/* ---- the buffer ---- */

static void take_output_events(struct vmpt_unit *unit)
{
	u32 events = unit->output.events;

	unit->output.events = 0;
	if (events & VMPT_OUTPUT_INT) {
		if (unit->regs.ctl & VMPT_CTL_INJECT)
			unit->regs.status |= VMPT_STATUS_PEND_PMI;
		if (unit->config.pmi)
			unit->config.pmi(unit->config.opaque);
	}
	if (events & VMPT_OUTPUT_ERROR)
		unit->output_why = unit->output.why;
	if (events & (VMPT_OUTPUT_STOP | VMPT_OUTPUT_ERROR)) {
		/* Buffered bytes are lost; no TIP.PGD (33.2.7.2, 33.3.10). */
		unit->trigger_en = false;
		unit->used = 0;
		unit->tnt_bits = 0;
		unit->tnt_count = 0;
		unit->tip_count = 0;
		vmpt_model_update(unit);
	}
}

int vmpt_unit_flush(struct vmpt_unit *unit)
{
	size_t done = 0;
	u64 stopped;
	int err;

	if (!unit->used)
		return 0;
	if (unit->config.sink) {
		err = unit->config.sink->write(unit->config.sink->opaque, unit->buffer, unit->used);
		done = err < 0 ? 0 : unit->used;
	} else {
		/* Bytes pending at a TraceStop are not lost; those at a ToPA STOP are. */
		stopped = unit->regs.status & VMPT_STATUS_STOPPED;
		unit->regs.status &= ~stopped;
		err = vmpt_output_write(&unit->output, unit->buffer, unit->used, &done);
		unit->regs.status |= stopped;
	}
	unit->bytes += done;
	if (done && done < unit->used)
		memmove(unit->buffer, unit->buffer + done, unit->used - done);
	unit->used = (u16)(unit->used - done);
	if (!unit->config.sink)
		take_output_events(unit);
	return err < 0 ? err : 0;
}

void vmpt_unit_rest_take(struct vmpt_unit *unit, struct vmpt_unit_rest *rest)
{
	memcpy(rest->bytes, unit->buffer, unit->used);
	rest->used = unit->used;
	rest->in_overflow = unit->in_overflow;
	unit->used = 0;
	unit->in_overflow = false;
	unit->rest = false;
}

void vmpt_unit_rest_give(struct vmpt_unit *unit, const struct vmpt_unit_rest *rest)
{
	memcpy(unit->buffer, rest->bytes, rest->used);
	unit->used = rest->used;
	unit->in_overflow = rest->in_overflow;
	unit->rest = true;
	/* The position may have changed since the last call, even to another unit's. */
	if (unit->config.memory)
		vmpt_output_init(&unit->output, &unit->rules, &unit->regs, unit->config.memory);
}

/* PacketByteCnt and the PSB that it makes due (33.4.2.17). */
static void count_bytes(struct vmpt_unit *unit, unsigned int n)
{
	u64 count = vmpt_pt_packet_bytes(&unit->regs) + n;

	unit->since_psb += n;
	if (unit->rules.psb_cyc) {
		unit->regs.status &= ~VMPT_STATUS_BYTES;
		unit->regs.status |= (count & 0x1ffff) << VMPT_STATUS_BYTES_SHIFT;
	}
	if (!unit->psb_due && unit->since_psb >= vmpt_pt_psb_period(&unit->regs)) {
		unit->psb_due = true;
		if (unit->regs.ctl & VMPT_CTL_INJECT)
			unit->regs.status |= VMPT_STATUS_PEND_PSB;
	}
}

/* Drop a packet in an overflow: a PSB+ after it gives the state that the decoder now lacks. */
static void drop(struct vmpt_unit *unit, unsigned int kind)
{
	switch (kind) {
	case VMPT_PT_PIP:
		unit->lost_pip = true;
		unit->psb_due = true;
		break;
	case VMPT_PT_VMCS:
	case VMPT_PT_MODE_EXEC:
	case VMPT_PT_MODE_TSX:
	case VMPT_PT_PSB:
	case VMPT_PT_PSBEND:
		unit->psb_due = true;
		break;
	default:
		break;
	}
}

static bool has_room(struct vmpt_unit *unit, unsigned int bytes)
{
	if (unit->used + bytes > VMPT_UNIT_BUFFER)
		vmpt_unit_flush(unit);
	return unit->used + bytes <= VMPT_UNIT_BUFFER;
}

/* Bytes of a packet. A buffer that cannot be emptied overflows (33.3.8). */
static void store(struct vmpt_unit *unit, const struct vmpt_pt_packet *pkt, unsigned int block)
{
	struct vmpt_pt_packet copy = *pkt;
	int size;

	if (!unit->trigger_en)
		return;
	if (!unit->in_overflow && !has_room(unit, VMPT_PT_SIZE_MAX))
		vmpt_unit_overflow(unit);
	if (!unit->trigger_en)
		return;
	if (unit->in_overflow) {
		drop(unit, pkt->kind);
		return;
	}
	size = vmpt_pt_encode(&copy, unit->buffer + unit->used, VMPT_PT_SIZE_MAX, block);
	if (size <= 0)
		return;
	unit->used = (u16)(unit->used + size);
	count_bytes(unit, (unsigned int)size);
}

/* ---- TNT and TIP ---- */

static void put_ip(struct vmpt_unit *unit, unsigned int kind, u64 ip)
{
	struct vmpt_pt_packet pkt = { .kind = (u8)kind };

	pkt.ip.ipbytes = unit->whole_ip || unit->config.options.no_ip_compression
				 ? vmpt_pt_ip_full(ip)
				 : vmpt_pt_ip_compress(unit->last_ip, ip);
	pkt.ip.ip = vmpt_pt_ip_payload(ip, (unsigned int)pkt.ip.ipbytes);
	unit->last_ip = ip;
	unit->whole_ip = false;
	store(unit, &pkt, 0);
}

/* Most bytes of most traces: a TNT-8 without the general encoder. False: not possible. */
static bool store_short_tnt(struct vmpt_unit *unit)
{
	if (unit->tnt_count > 6 || !unit->trigger_en || unit->in_overflow ||
	    unit->used + VMPT_PT_SIZE_MAX > VMPT_UNIT_BUFFER)
		return false;
	/* A stop bit before the bits, the header's 0 after them (Table 33-16). */
	unit->buffer[unit->used++] = (u8)((1U << unit->tnt_count | unit->tnt_bits) << 1);
	unit->tnt_bits = 0;
	unit->tnt_count = 0;
	count_bytes(unit, 1);
	return true;
}

static void send_tnt(struct vmpt_unit *unit)
{
	struct vmpt_pt_packet pkt = { .kind = VMPT_PT_TNT_8 };

	if (!unit->tnt_count || store_short_tnt(unit))
		return;
	if (unit->tnt_count > 6)
		pkt.kind = VMPT_PT_TNT_64;
	pkt.tnt.bits = unit->tnt_bits;
	pkt.tnt.count = unit->tnt_count;
	unit->tnt_bits = 0;
	unit->tnt_count = 0;
	store(unit, &pkt, 0);
}

void vmpt_model_flush_tnt(struct vmpt_unit *unit)
{
	unsigned int i, n = unit->tip_count;

	/* A decoder cannot follow a TNT without all of its TIPs: all of them or none. */
	if (n && !has_room(unit, (n + 1) * VMPT_PT_SIZE_MAX)) {
		vmpt_unit_overflow(unit);
		return;
	}
	send_tnt(unit);
	unit->tip_count = 0;
	for (i = 0; i < n; i++)
		put_ip(unit, VMPT_PT_TIP, unit->tips[i]);
}

void vmpt_model_tnt(struct vmpt_unit *unit, bool taken)
{
	if (unit->regs.ctl & VMPT_CTL_DIS_TNT || unit->in_overflow)
		return;
	/* The CYC of a TNT is the time of its first branch (33.3.6.2). */
	if (!unit->tnt_count && unit->regs.ctl & VMPT_CTL_CYC_EN)
		vmpt_model_cyc(unit);
	unit->tnt_bits = unit->tnt_bits << 1 | taken;
	if (++unit->tnt_count == unit->tnt_max)
		vmpt_model_flush_tnt(unit);
}

/*
 * Deferred only after pending TNT bits (33.4.2.3): without them there is nothing to
 * gain, and with CYC each packet has a time of its own.
 */
void vmpt_model_tip(struct vmpt_unit *unit, u64 target, bool deferrable)
{
	if (deferrable && unit->config.options.deferred_tips && unit->tnt_count &&
	    !(unit->regs.ctl & VMPT_CTL_CYC_EN) && !unit->in_overflow) {
		unit->tips[unit->tip_count++] = target;
		if (unit->tip_count == VMPT_UNIT_TIPS)
			vmpt_model_flush_tnt(unit);
		return;
	}
	vmpt_model_emit_ip(unit, VMPT_PT_TIP, target);
}

/* ---- all others ---- */

static void before(struct vmpt_unit *unit, unsigned int kind)
{
	/* Timing packets may be anywhere (33.4.1), but a CYC gives the time of what follows. */
	if (unit->tnt_count || unit->tip_count)
		vmpt_model_flush_tnt(unit);
	if (unit->regs.ctl & VMPT_CTL_CYC_EN && cyc_eligible(kind))
		vmpt_model_cyc(unit);
}

void vmpt_model_emit(struct vmpt_unit *unit, struct vmpt_pt_packet *pkt)
{
	if (pkt->kind != VMPT_PT_CYC)
		before(unit, pkt->kind);
	store(unit, pkt, unit->block);
}

void vmpt_model_emit_kind(struct vmpt_unit *unit, unsigned int kind)
{
	struct vmpt_pt_packet pkt = { .kind = (u8)kind };

	vmpt_model_emit(unit, &pkt);
}

void vmpt_model_emit_ip(struct vmpt_unit *unit, unsigned int kind, u64 ip)
{
	before(unit, kind);
	if (!unit->in_overflow)
		put_ip(unit, kind, ip);
}

void vmpt_model_emit_no_ip(struct vmpt_unit *unit, unsigned int kind)
{
	struct vmpt_pt_packet pkt = { .kind = (u8)kind };

	vmpt_model_emit(unit, &pkt);
}
