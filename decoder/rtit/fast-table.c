// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* The tables of RTIT's fast loops, by a packet's first byte, made from vmpt_rtit_decode(). */
#include "decoder/rtit/fast.h"

/* Payload: which bits come from where (struct vmpt_item). */
static void fill_payload(struct vmpt_rtit_row *row, unsigned int header)
{
	switch (row->kind) {
	case VMPT_RTIT_TNT:
		row->fixed = header;
		break;
	case VMPT_RTIT_PIP:
		row->mask = vmpt_mask64(40);
		row->fixed = (u64)(header & 1) << 40;
		break;
	case VMPT_RTIT_MTC:
		row->mask = 0xff;
		row->fixed = (u64)(header & 3) << 8;
		break;
	case VMPT_RTIT_STS:
		/* ACBR[5:2]; the rest is sts_payload()'s. */
		row->fixed = (u64)(header & 15) << 42;
		break;
	}
}

static void fill_lip(struct vmpt_rtit_row *row, const struct vmpt_rtit_packet *pkt)
{
	row->mask = vmpt_mask64(8 * (row->size - 1u));
	if (!pkt->ip.zext)
		row->keep = vmpt_mask64(VMPT_RTIT_LIP_BITS) & ~row->mask;
	row->lip = ~0ULL;
	row->meta |= (pkt->ip.cnt | pkt->ip.zext << 2) << 56;
}

static void fill_header(struct vmpt_rtit_fast *f, unsigned int header)
{
	u8 bytes[VMPT_RTIT_SIZE_MAX] = { (u8)header };
	struct vmpt_rtit_row *row = &f->rows[header];
	struct vmpt_rtit_packet pkt;
	u8 step;

	/* All zeros behind it: a PSB is whole, a cycle count is an error that tells of itself. */
	if (vmpt_rtit_decode(&pkt, bytes, sizeof(bytes), false))
		return;
	row->kind = pkt.kind;
	row->size = pkt.size;
	row->token = vmpt_rtit_token_wanted(pkt.kind);
	row->meta = (u64)(VMPT_ITEM_RTIT + pkt.kind) << 48 | (u64)pkt.size << 32;
	if (vmpt_rtit_table[pkt.kind].classes & VMPT_RTIT_HAS_LIP)
		fill_lip(row, &pkt);
	else
		fill_payload(row, header);
	step = pkt.size | VMPT_RTIT_STEP_PLAIN;
	if (f->cycle_acc && vmpt_rtit_decode(&pkt, bytes, sizeof(bytes), true) == -VMPT_E_CCNT) {
		step = row->size | VMPT_RTIT_STEP_CYCLES;
		row->cycles = 3;
	}
	f->index_step[header] = row->token ? step | VMPT_RTIT_STEP_KEEP : step;
	f->packet_step[header] = row->kind != VMPT_RTIT_TNT ? step | VMPT_RTIT_STEP_KEEP : step;
}

void vmpt_rtit_fast_tables(struct vmpt_rtit_fast *f)
{
	unsigned int i;

	for (i = 0; i < 256; i++)
		fill_header(f, i);
}
