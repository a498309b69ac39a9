// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* The truth: noted byte by byte, packet by packet, while the trace is made. */
#include <stdlib.h>

#include "tests/tracegen/internal.h"

struct tracegen_count *tg_count(struct tg_cpu *p, int owner)
{
	return owner == TRACEGEN_HOST ? &p->out.host : &p->out.vms[owner];
}

void tg_truth_bytes(struct tracegen *g, struct tg_cpu *p, u64 offset, u64 size, int owner)
{
	struct tracegen_stream *s = &p->out;
	struct tracegen_range *last = s->range_count ? &s->ranges[s->range_count - 1] : NULL;

	if (last && last->owner == owner) {
		last->size += size;
		return;
	}
	if (!tg_grow(g, &s->ranges, s->range_count))
		return;
	s->ranges[s->range_count++] =
		(struct tracegen_range){ .offset = offset, .size = size, .owner = owner };
}

void tg_truth_packet(struct tracegen *g, struct tg_cpu *p, u64 offset, u64 size, unsigned int kind,
		     const struct tg_ctx *who, int owner, u8 flags)
{
	struct tracegen_stream *s = &p->out;

	if (!g->opt.packets)
		return;
	if (!tg_grow(g, &s->packets, s->packet_count))
		return;
	s->packets[s->packet_count++] = (struct tracegen_packet){
		.offset = offset,
		.ip = p->last_ip,
		.exec_ip = who->ip,
		.cr3 = who->cr3,
		.vmcs = p->vmcs,
		.tsc = tg_clock(p, who),
		.depth = (u32)who->call_count,
		.owner = owner,
		.size = (u16)size,
		.kind = (u8)kind,
		.flags = flags,
		.nr = who != &p->host,
	};
}

void tg_truth_insn(struct tracegen *g, struct tg_cpu *p, u64 ip)
{
	struct tracegen_stream *s = &p->out;
	struct tracegen_count *count = tg_count(p, p->cur->owner);

	if (p->overflow || p->drop)
		return;
	if (!count->insns)
		count->insn_hash = VMPT_FNV1A;
	count->insns++;
	count->insn_hash = vmpt_fnv1a(count->insn_hash, &ip, sizeof(ip));
	if (!g->opt.insns)
		return;
	if (!tg_grow(g, &s->insns, s->insn_count))
		return;
	s->insns[s->insn_count++] = (struct tracegen_insn){ .ip = ip, .owner = p->cur->owner };
}

void tg_truth_loss(struct tracegen *g, struct tg_cpu *p, bool overflow)
{
	struct tracegen_stream *s = &p->out;

	if (!tg_grow(g, &s->losses, s->loss_count))
		return;
	s->losses[s->loss_count++] = (struct tracegen_loss){
		.offset = s->size - (overflow ? 2 : 0),
		.owner_before = p->lost_owner,
		.owner_after = p->cur->owner,
		.overflow = overflow,
		.packets = p->lost_packets,
	};
	p->lost_packets = 0;
}
