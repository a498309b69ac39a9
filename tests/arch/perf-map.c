// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Our packets in perf's terms. Where perf keeps raw bytes, including reserved bits, the masks omit
 * those.
 */
#include "tests/arch/perf-map.h"

static int with_pads(size_t size, const u8 *buf, size_t len)
{
	while (size < 8 && size < len && !buf[size])
		size++;
	return (int)size;
}

static enum intel_pt_pkt_type type_of(const struct vmpt_pt_packet *p)
{
	static const u8 type[VMPT_PT_KINDS] = {
		[VMPT_PT_PAD] = INTEL_PT_PAD,
		[VMPT_PT_BIP] = INTEL_PT_BIP,
		[VMPT_PT_TNT_8] = INTEL_PT_TNT,
		[VMPT_PT_TIP] = INTEL_PT_TIP,
		[VMPT_PT_TIP_PGE] = INTEL_PT_TIP_PGE,
		[VMPT_PT_TIP_PGD] = INTEL_PT_TIP_PGD,
		[VMPT_PT_FUP] = INTEL_PT_FUP,
		[VMPT_PT_CYC] = INTEL_PT_CYC,
		[VMPT_PT_MTC] = INTEL_PT_MTC,
		[VMPT_PT_TSC] = INTEL_PT_TSC,
		[VMPT_PT_MODE_EXEC] = INTEL_PT_MODE_EXEC,
		[VMPT_PT_MODE_TSX] = INTEL_PT_MODE_TSX,
		[VMPT_PT_TNT_64] = INTEL_PT_TNT,
		[VMPT_PT_PIP] = INTEL_PT_PIP,
		[VMPT_PT_TRACESTOP] = INTEL_PT_TRACESTOP,
		[VMPT_PT_CBR] = INTEL_PT_CBR,
		[VMPT_PT_TMA] = INTEL_PT_TMA,
		[VMPT_PT_VMCS] = INTEL_PT_VMCS,
		[VMPT_PT_OVF] = INTEL_PT_OVF,
		[VMPT_PT_PSB] = INTEL_PT_PSB,
		[VMPT_PT_PSBEND] = INTEL_PT_PSBEND,
		[VMPT_PT_MNT] = INTEL_PT_MNT,
		[VMPT_PT_PTW] = INTEL_PT_PTWRITE,
		[VMPT_PT_EXSTOP] = INTEL_PT_EXSTOP,
		[VMPT_PT_MWAIT] = INTEL_PT_MWAIT,
		[VMPT_PT_PWRE] = INTEL_PT_PWRE,
		[VMPT_PT_PWRX] = INTEL_PT_PWRX,
		[VMPT_PT_BBP] = INTEL_PT_BBP,
		[VMPT_PT_BEP] = INTEL_PT_BEP,
		[VMPT_PT_CFE] = INTEL_PT_CFE,
		[VMPT_PT_EVD] = INTEL_PT_EVD,
	};

	/* Newer than perf of Linux 6.12. */
	if (p->kind == VMPT_PT_TRIG)
		return INTEL_PT_BAD;
	/* The IP bit is a separate type. */
	if (p->kind == VMPT_PT_PTW && p->ptw.ip)
		return INTEL_PT_PTWRITE_IP;
	if (p->kind == VMPT_PT_EXSTOP && p->exstop.ip)
		return INTEL_PT_EXSTOP_IP;
	if (p->kind == VMPT_PT_BEP && p->bep.ip)
		return INTEL_PT_BEP_IP;
	if (p->kind == VMPT_PT_CFE && p->cfe.ip)
		return INTEL_PT_CFE_IP;
	return type[p->kind];
}

/* Branches are at the top, the oldest in bit 63; below those of a long TNT is its header. */
static void view_tnt(struct perf_view *v, const struct vmpt_pt_packet *p)
{
	v->pkt.count = (int)p->tnt.count;
	v->pkt.payload = p->tnt.count ? p->tnt.bits << (64 - p->tnt.count) : 0;
	if (p->kind == VMPT_PT_TNT_64)
		v->payload_mask = ~vmpt_mask64((unsigned int)(64 - p->tnt.count));
}

static void view_mode_exec(struct perf_view *v, const struct vmpt_pt_packet *p)
{
	/* The whole byte 1, reserved bits 4:3 with it */
	v->pkt.count = (int)(p->exec.cs_l | p->exec.cs_d << 1 | p->exec.rflags_if << 2);
	v->count_mask = 0x07;
	v->pkt.payload = p->exec.cs_l ? 64 : p->exec.cs_d ? 32 : 16;
	/* Both bits: not defined, perf refuses it; a reserved value for us. */
	if (p->exec.cs_l && p->exec.cs_d)
		v->pkt.type = INTEL_PT_BAD;
}

/* Bytes from 2 on, unchanged */
static void view_power(struct perf_view *v, const struct vmpt_pt_packet *p)
{
	switch (p->kind) {
	case VMPT_PT_MWAIT:
		v->pkt.payload = p->mwait.hints | p->mwait.ext << 32;
		v->payload_mask = 0x3000000ff;
		break;
	case VMPT_PT_PWRE:
		v->pkt.payload = p->pwre.hw << 7 | p->pwre.sub_state << 8 | p->pwre.state << 12;
		v->payload_mask = 0xff80;
		break;
	case VMPT_PT_PWRX:
		v->pkt.payload = p->pwrx.deepest | p->pwrx.last << 4 | p->pwrx.wake_reason << 8;
		v->payload_mask = 0x0fff;
		break;
	}
}

static void view_values(struct perf_view *v, const struct vmpt_pt_packet *p)
{
	switch (p->kind) {
	case VMPT_PT_TNT_8:
	case VMPT_PT_TNT_64:
		view_tnt(v, p);
		break;
	case VMPT_PT_MODE_EXEC:
		view_mode_exec(v, p);
		break;
	case VMPT_PT_MODE_TSX:
		v->pkt.payload = p->tsx.intx | p->tsx.txabort << 1;
		if (p->tsx.intx && p->tsx.txabort)
			v->pkt.type = INTEL_PT_BAD;
		break;
	case VMPT_PT_PIP: /* bytes 2 to 7 */
		v->pkt.payload = p->pip.cr3 >> 4 | p->pip.nr;
		break;
	case VMPT_PT_CBR: /* byte 3, reserved, too */
		v->pkt.payload = p->cbr.ratio;
		v->payload_mask = 0xff;
		break;
	case VMPT_PT_TMA:
		v->pkt.count = (int)p->tma.fast_counter;
		v->pkt.payload = p->tma.ctc;
		break;
	case VMPT_PT_VMCS:
		v->pkt.count = 5;
		v->pkt.payload = p->vmcs.pointer >> 12;
		break;
	case VMPT_PT_PTW:
		v->pkt.count = (int)p->ptw.payload_bytes;
		v->pkt.payload = p->ptw.payload;
		break;
	case VMPT_PT_CFE:
		v->pkt.count = (int)p->cfe.type;
		v->pkt.payload = p->cfe.vector;
		break;
	case VMPT_PT_TIP:
	case VMPT_PT_TIP_PGE:
	case VMPT_PT_TIP_PGD:
	case VMPT_PT_FUP:
	case VMPT_PT_BBP: /* sz, type */
	case VMPT_PT_BIP: /* id, payload */
	case VMPT_PT_EVD: /* type, payload */
		v->pkt.count = (int)p->val[0];
		v->pkt.payload = p->val[1];
		break;
	case VMPT_PT_CYC:
	case VMPT_PT_MTC:
	case VMPT_PT_TSC:
	case VMPT_PT_MNT:
		v->pkt.payload = p->val[0];
		break;
	default:
		view_power(v, p);
	}
}

void perf_view_of(struct perf_view *v, const struct vmpt_pt_packet *pkt, const u8 *buf, size_t len)
{
	memset(v, 0, sizeof(*v));
	v->payload_mask = ~0ULL;
	v->count_mask = ~0;
	v->pkt.type = type_of(pkt);
	v->size = with_pads(pkt->size, buf, len);
	view_values(v, pkt);
	if (v->pkt.type == INTEL_PT_BAD)
		v->size = INTEL_PT_BAD_PACKET;
}

bool perf_view_is(const struct perf_view *v, const struct intel_pt_pkt *perf, int size)
{
	if (size != v->size || size < 0)
		return size == v->size;
	return perf->type == v->pkt.type &&
	       (perf->count & v->count_mask) == (v->pkt.count & v->count_mask) &&
	       (perf->payload & v->payload_mask) == (v->pkt.payload & v->payload_mask);
}

unsigned int perf_block_of(enum intel_pt_pkt_ctx ctx)
{
	if (ctx == INTEL_PT_NO_CTX)
		return 0;
	return VMPT_PT_BLOCK(ctx == INTEL_PT_BLK_4_CTX, 0);
}

enum intel_pt_pkt_ctx perf_ctx_of(unsigned int block)
{
	if (!block)
		return INTEL_PT_NO_CTX;
	return vmpt_pt_block_item_size(block) == 4 ? INTEL_PT_BLK_4_CTX : INTEL_PT_BLK_8_CTX;
}
