// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * From packets to bytes: the TNT buffer, Last IP, CYC before eligible packets,
 * packets dropped by an overflow; each packet is noted in the truth.
 */
#include <stdlib.h>

#include "tests/tracegen/internal.h"
#include "util/array.h"

bool tg_context_en(const struct tracegen *g, unsigned int cpl, u64 cr3)
{
	if (g->set.cr3_filter && (cr3 ^ g->set.cr3_filter) >> 12)
		return false;
	return cpl ? g->set.user : g->set.os;
}

bool tg_trigger_en(const struct tg_cpu *p)
{
	return p->trace_en && !p->stopped;
}

bool tg_cpu_context_en(const struct tracegen *g, const struct tg_cpu *p)
{
	return tg_trigger_en(p) && tg_context_en(g, p->cur->cpl, p->cur->cr3);
}

bool tg_packet_en(const struct tracegen *g, const struct tg_cpu *p)
{
	return g->set.branch_en && p->filter_en && tg_cpu_context_en(g, p);
}

u64 tg_clock(const struct tg_cpu *p, const struct tg_ctx *c)
{
	if (c->owner == TRACEGEN_HOST)
		return p->now;
	return (u64)(((unsigned __int128)p->now * c->tsc_mult) >> 48) + c->tsc_offset;
}

void tg_emit_bytes(struct tracegen *g, struct tg_cpu *p, const u8 *bytes, size_t n, int owner)
{
	if (p->drop) {
		p->lost_packets++;
		return;
	}
	if (vmpt_reserve(&p->out.data, &p->data_max, p->out.size + n)) {
		tg_fail(g, "out of memory");
		return;
	}
	memcpy(p->out.data + p->out.size, bytes, n);
	tg_truth_bytes(g, p, p->out.size, n, owner);
	p->out.size += n;
}

/* Encode, write and note one packet; nothing else. */
static void put(struct tracegen *g, struct tg_cpu *p, struct vmpt_pt_packet *pkt)
{
	u8 buf[VMPT_PT_SIZE_MAX];
	u64 at = p->out.size;
	struct tg_ctx *who = p->cur;
	int n = vmpt_pt_encode(pkt, buf, sizeof(buf), p->block);

	if (n < 0) {
		tg_fail(g, "%s: a value does not fit", vmpt_pt_name(pkt->kind));
		return;
	}
	if (p->left && (pkt->kind == VMPT_PT_CYC || pkt->kind == VMPT_PT_TIP_PGD))
		who = p->left;
	if (pkt->kind != VMPT_PT_CYC)
		p->left = NULL;
	tg_emit_bytes(g, p, buf, (size_t)n, who->owner);
	p->psb_bytes += (u64)n;
	p->block = vmpt_pt_block_after(pkt, p->block);
	if (p->drop)
		return;
	tg_truth_packet(g, p, at, (u64)n, pkt->kind, who, who->owner,
			p->in_psb ? TRACEGEN_IN_PSB : 0);
}

/* 33.3.6, and MWAIT (33.4.2.23). */
static bool cyc_eligible(unsigned int kind)
{
	switch (kind) {
	case VMPT_PT_TNT_8:
	case VMPT_PT_TNT_64:
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

static void cycles(struct tracegen *g, struct tg_cpu *p)
{
	struct vmpt_pt_packet pkt = { .kind = VMPT_PT_CYC };

	pkt.cyc.cycles = p->now - p->cyc_sent;
	if (!pkt.cyc.cycles || pkt.cyc.cycles < g->set.cyc_thresh)
		return;
	put(g, p, &pkt);
	p->cyc_sent = p->now;
}

void tg_emit(struct tracegen *g, struct tg_cpu *p, struct vmpt_pt_packet *pkt)
{
	if (!tg_trigger_en(p))
		return;
	if (pkt->kind != VMPT_PT_TNT_8 && pkt->kind != VMPT_PT_TNT_64)
		tg_tnt_flush(g, p);
	if (p->overflow) {
		p->lost_packets++;
		return;
	}
	if (g->set.cyc && cyc_eligible(pkt->kind))
		cycles(g, p);
	if (pkt->kind == VMPT_PT_CYC)
		p->cyc_sent = p->now;
	put(g, p, pkt);
}

void tg_emit0(struct tracegen *g, struct tg_cpu *p, unsigned int kind)
{
	tg_emit3(g, p, kind, 0, 0, 0);
}

void tg_emit1(struct tracegen *g, struct tg_cpu *p, unsigned int kind, u64 v0)
{
	tg_emit3(g, p, kind, v0, 0, 0);
}

void tg_emit2(struct tracegen *g, struct tg_cpu *p, unsigned int kind, u64 v0, u64 v1)
{
	tg_emit3(g, p, kind, v0, v1, 0);
}

void tg_emit3(struct tracegen *g, struct tg_cpu *p, unsigned int kind, u64 v0, u64 v1, u64 v2)
{
	struct vmpt_pt_packet pkt = { .kind = (u8)kind, .val = { v0, v1, v2 } };

	tg_emit(g, p, &pkt);
}

void tg_emit_ip(struct tracegen *g, struct tg_cpu *p, unsigned int kind, u64 ip)
{
	struct vmpt_pt_packet pkt = { .kind = (u8)kind };

	if (!tg_trigger_en(p))
		return;
	tg_tnt_flush(g, p);
	pkt.ip.ipbytes = p->full_ip ? vmpt_pt_ip_full(ip) : vmpt_pt_ip_compress(p->last_ip, ip);
	pkt.ip.ip = vmpt_pt_ip_payload(ip, (unsigned int)pkt.ip.ipbytes);
	if (!p->overflow) {
		p->last_ip = ip;
		p->full_ip = false;
	}
	tg_emit(g, p, &pkt);
}

void tg_emit_no_ip(struct tracegen *g, struct tg_cpu *p, unsigned int kind)
{
	tg_emit0(g, p, kind);
}

void tg_tnt_flush(struct tracegen *g, struct tg_cpu *p)
{
	struct vmpt_pt_packet pkt = { 0 };
	size_t i;

	if (!p->tnt_count)
		return;
	pkt.kind = p->tnt_count > 6 ? VMPT_PT_TNT_64 : VMPT_PT_TNT_8;
	pkt.tnt.bits = p->tnt_bits;
	pkt.tnt.count = p->tnt_count;
	p->tnt_count = 0;
	p->tnt_bits = 0;
	tg_emit(g, p, &pkt);
	if (p->drop)
		p->out.ret_count -= p->tnt_rets;
	else
		for (i = p->out.ret_count - p->tnt_rets; i < p->out.ret_count; i++)
			p->out.rets[i].offset = p->out.size - pkt.size;
	p->tnt_rets = 0;
}

void tg_tnt(struct tracegen *g, struct tg_cpu *p, bool taken)
{
	if (!tg_packet_en(g, p))
		return;
	if (p->overflow) {
		p->lost_packets++;
		return;
	}
	p->tnt_bits = p->tnt_bits << 1 | taken;
	if (++p->tnt_count == (g->set.tnt == 64 ? 47 : 6))
		tg_tnt_flush(g, p);
}

void tg_forget_calls(struct tg_cpu *p)
{
	p->stack_count = 0;
}
