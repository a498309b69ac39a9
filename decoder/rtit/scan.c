// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* The loop over RTIT's packets: tokens of those that the tracker needs, items of all. */
#include "decoder/rtit/rtit.h"

u64 vmpt_rtit_psb_find(const u8 *data, u64 from, u64 end)
{
	static const u8 psb[VMPT_RTIT_PSB_SIZE] = { 0xc0 };
	const u8 *p;

	if (from >= end)
		return end;
	p = memmem(data + from, end - from, psb, sizeof(psb));
	return p ? (u64)(p - data) : end;
}

void vmpt_rtit_put_loss(struct vmpt_rtit_scan_out *sink, struct vmpt_rtit_state *state, u64 at,
			u64 size, unsigned int err, u64 base)
{
	sink->tokens[sink->token_count++] = (struct vmpt_rtit_token){
		.at = at,
		.size = size,
		.item = (u32)sink->item_count,
		.cycles = sink->cycles,
		.kind = VMPT_RTIT_TOKEN_LOSS,
		.err = (u8)err,
		.last = state->last,
	};
	*state = (struct vmpt_rtit_state){ 0 };
	if (sink->items)
		sink->items[sink->item_count++] = (struct vmpt_item){
			.offset = (u32)(at - base),
			.kind = VMPT_ITEM_LOSS,
			.aux = (u8)err,
			.payload = size,
		};
}

static void put_token(struct vmpt_rtit_scan_out *sink, const struct vmpt_rtit_packet *pkt, u64 at,
		      const struct vmpt_rtit_state *state)
{
	sink->tokens[sink->token_count++] = (struct vmpt_rtit_token){
		.at = at,
		.size = pkt->kind == VMPT_RTIT_PSB ? state->prev_size : 0,
		.item = (u32)sink->item_count,
		.cycles = sink->cycles,
		.kind = pkt->kind,
		.last = state->last,
	};
}

/* Replace the sent part of the LIP by the whole; if it is not known @last is not valid. */
static void complete_lip(struct vmpt_rtit_packet *pkt, struct vmpt_rtit_last_lip *last)
{
	u64 lip;

	/* The processor clears its own before it sends this one (4.2.5). */
	if (pkt->kind == VMPT_RTIT_BUFF_OVF)
		last->valid = false;
	vmpt_rtit_lip_expand(last, pkt, &lip);
	pkt->ip.lip = lip;
}

/* Payload and aux of the packet at @buf, whose LIP is complete. */
static void fill_item(struct vmpt_item *item, const struct vmpt_rtit_packet *pkt, const u8 *buf,
		      bool lip_known)
{
	switch (pkt->kind) {
	case VMPT_RTIT_TNT:
		item->payload = buf[0];
		break;
	case VMPT_RTIT_PIP:
		item->payload = pkt->pip.cr3 | pkt->pip.pg << 40;
		break;
	case VMPT_RTIT_MTC:
		item->payload = pkt->mtc.tsc | pkt->mtc.rng << 8;
		break;
	case VMPT_RTIT_STS:
		item->payload = pkt->sts.tsc | pkt->sts.acbr << 40 | pkt->sts.ecbr << 46;
		break;
	case VMPT_RTIT_PSB:
	case VMPT_RTIT_TRACESTOP:
		break;
	default:
		item->payload = pkt->ip.lip;
		item->aux = buf[0] & (VMPT_RTIT_AUX_CNT | VMPT_RTIT_AUX_ZEXT);
		if (!lip_known)
			item->aux |= VMPT_RTIT_AUX_NO_LIP;
	}
}

/* Bytes of a packet without its cycle count. */
static unsigned int body_size(const struct vmpt_rtit_packet *pkt)
{
	const struct vmpt_rtit_desc *d = &vmpt_rtit_table[pkt->kind];

	return d->classes & VMPT_RTIT_HAS_LIP ? 3 + 2 * (unsigned int)pkt->ip.cnt : d->size;
}

/* A TNT without a cycle count extends the run before it. */
static void put_in_run(struct vmpt_rtit_scan_out *sink, u32 offset)
{
	struct vmpt_item *last = sink->item_count ? &sink->items[sink->item_count - 1] : NULL;

	if (last && last->kind == VMPT_ITEM_RTIT_RUN && last->size < 65535 &&
	    last->offset + last->size == offset) {
		last->size++;
		return;
	}
	sink->items[sink->item_count++] =
		(struct vmpt_item){ .offset = offset, .size = 1, .kind = VMPT_ITEM_RTIT_RUN };
}

static void put_items(struct vmpt_rtit_scan_out *sink, const struct vmpt_rtit_packet *pkt,
		      const u8 *buf, u32 offset, bool lip_known)
{
	struct vmpt_item item = { .offset = offset, .kind = (u8)(VMPT_ITEM_RTIT + pkt->kind) };

	if (pkt->kind == VMPT_RTIT_TNT && !(pkt->flags & VMPT_RTIT_CYCLES)) {
		put_in_run(sink, offset);
		return;
	}
	fill_item(&item, pkt, buf, lip_known);
	item.size = (u16)body_size(pkt);
	sink->items[sink->item_count++] = item;
	if (pkt->flags & VMPT_RTIT_CYCLES)
		sink->items[sink->item_count++] = (struct vmpt_item){
			.offset = offset + item.size,
			.size = (u16)(pkt->size - item.size),
			.kind = VMPT_ITEM_RTIT_CYC,
			.payload = pkt->cycles,
			/* E6: one too low, unless it is 0. */
			.aux = pkt->cycles ? VMPT_RTIT_AUX_BY(6) : 0,
		};
}

u64 vmpt_rtit_scan(const u8 *data, bool cycle_acc, u64 at, u64 stop, u64 region_end, u64 base,
		   struct vmpt_rtit_state *state, struct vmpt_rtit_scan_out *sink)
{
	struct vmpt_rtit_packet pkt;
	u64 next;
	int err;

	while (at < stop && at < region_end &&
	       sink->token_count + VMPT_RTIT_PUT_TOKENS <= sink->token_max &&
	       (!sink->items || sink->item_count + VMPT_RTIT_PUT_ITEMS <= sink->item_max)) {
		/* Most of a trace: decoding them all in full is a fifth slower. */
		if (!cycle_acc && data[at] >= 2 && data[at] < 0x80) {
			if (sink->items)
				put_in_run(sink, (u32)(at - base));
			state->prev_size = 1;
			at++;
			continue;
		}
		err = vmpt_rtit_packet_at(&pkt, data, at, region_end, cycle_acc, &next);
		if (err) {
			if (err != -VMPT_E_CUT)
				next = vmpt_rtit_psb_find(data, at + 1, region_end);
			vmpt_rtit_put_loss(sink, state, at, next - at, (unsigned int)-err, base);
			at = next;
			continue;
		}
		if (vmpt_rtit_token_wanted(pkt.kind))
			put_token(sink, &pkt, at, state);
		if (vmpt_rtit_table[pkt.kind].classes & VMPT_RTIT_HAS_LIP)
			complete_lip(&pkt, &state->last);
		if (sink->items)
			put_items(sink, &pkt, data + at, (u32)(at - base), state->last.valid);
		sink->cycles += pkt.flags & VMPT_RTIT_CYCLES && pkt.cycles;
		state->prev_size = pkt.size;
		at += pkt.size;
	}
	return at;
}
