// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The plain loop over packets: the reference for the fast source, which uses it for
 * tails and all cases that it does not handle itself.
 */
#include "decoder/pt/source.h"

/* At most bytes 2 to 9 of a packet, reserved bits 0, for kinds whose payload is not decoded. */
static u64 raw_bytes(const u8 *buf, unsigned int from, unsigned int n, u64 mask)
{
	u64 v = 0;

	memcpy(&v, buf + from, n);
	return v & mask;
}

void vmpt_item_make(struct vmpt_item *item, const struct vmpt_pt_packet *pkt, const u8 *buf,
		    struct vmpt_scan_state *state)
{
	item->kind = pkt->kind;
	item->size = pkt->size;
	item->aux = 0;
	item->payload = 0;
	switch (pkt->kind) {
	case VMPT_PT_TIP:
	case VMPT_PT_TIP_PGE:
	case VMPT_PT_TIP_PGD:
	case VMPT_PT_FUP:
		state->last_ip = vmpt_pt_ip_expand(state->last_ip, (unsigned int)pkt->ip.ipbytes,
						   pkt->ip.ip);
		item->payload = state->last_ip;
		item->aux = (u8)pkt->ip.ipbytes;
		break;
	case VMPT_PT_PSB:
		state->last_ip = 0;
		break;
	case VMPT_PT_PIP:
		item->payload = pkt->pip.cr3 | pkt->pip.nr;
		break;
	case VMPT_PT_MODE_EXEC:
		item->payload = buf[1] & 0xe7;
		break;
	case VMPT_PT_MODE_TSX:
		item->payload = buf[1] & 0xe3;
		break;
	case VMPT_PT_VMCS:
	case VMPT_PT_TSC:
	case VMPT_PT_MTC:
	case VMPT_PT_CBR:
	case VMPT_PT_CYC:
	case VMPT_PT_MNT:
		item->payload = pkt->val[0];
		break;
	case VMPT_PT_TNT_64:
		item->payload = raw_bytes(buf, 2, 6, ~0ULL);
		break;
	case VMPT_PT_TMA:
		item->payload = raw_bytes(buf, 2, 5, 0x1ff00ffffULL);
		break;
	case VMPT_PT_PTW:
		item->payload = pkt->ptw.payload;
		item->aux = buf[1];
		break;
	case VMPT_PT_EXSTOP:
	case VMPT_PT_BEP:
		item->aux = buf[1];
		break;
	case VMPT_PT_BIP:
		item->payload = pkt->bip.payload;
		item->aux = buf[0];
		break;
	case VMPT_PT_MWAIT:
		item->payload = raw_bytes(buf, 2, 8, 0x3000000ffULL);
		break;
	case VMPT_PT_PWRE:
		item->payload = raw_bytes(buf, 2, 2, 0xff80);
		break;
	case VMPT_PT_PWRX:
		item->payload = raw_bytes(buf, 2, 5, 0x0fff);
		break;
	case VMPT_PT_BBP:
		item->payload = raw_bytes(buf, 2, 1, 0x9f);
		break;
	case VMPT_PT_CFE:
		item->payload = raw_bytes(buf, 2, 2, 0xff9f);
		break;
	case VMPT_PT_TRIG:
		item->payload = pkt->trig.trbv | pkt->trig.icnt << 8;
		item->aux = buf[1] & 0xe0;
		break;
	case VMPT_PT_EVD:
		item->payload = pkt->evd.payload;
		item->aux = buf[2] & 0x3f;
		break;
	}
}

static void put_item(struct vmpt_scan_out *sink, const struct vmpt_item *item)
{
	struct vmpt_item *last;

	if (!sink->items)
		return;
	if (item->kind == VMPT_ITEM_RUN && sink->item_count) {
		last = &sink->items[sink->item_count - 1];
		if (last->kind == VMPT_ITEM_RUN && last->size < 65535 &&
		    last->offset + last->size == item->offset) {
			last->size++;
			return;
		}
	}
	sink->items[sink->item_count++] = *item;
}

/* Add a token for the item that is added next. */
static void put_token(struct vmpt_scan_out *sink, u64 token)
{
	if (sink->token_items)
		sink->token_items[sink->token_count] = (u32)sink->item_count;
	sink->tokens[sink->token_count++] = token;
}

static void put_loss(struct vmpt_scan_out *sink, u64 at, u64 size, int err, u64 base)
{
	struct vmpt_item item = { .offset = (u32)(at - base), .kind = VMPT_ITEM_LOSS };

	put_token(sink, VMPT_TOKEN(at, VMPT_TOKEN_LOSS));
	put_token(sink, size << 6 | (unsigned int)-err);
	item.payload = size;
	item.aux = (u8)-err;
	put_item(sink, &item);
}

u64 vmpt_scalar_scan(const u8 *data, u64 at, u64 stop, u64 region_end, u64 base,
		     struct vmpt_scan_state *state, struct vmpt_scan_out *sink)
{
	struct vmpt_pt_packet pkt;
	struct vmpt_item item;
	u64 next;
	int err;

	while (at < stop && at < region_end && sink->token_count + 4 <= sink->token_max &&
	       (!sink->items || sink->item_count < sink->item_max)) {
		err = vmpt_pt_decode(&pkt, data + at, region_end - at, state->block);
		next = err ? vmpt_psb_find(data, at + 1, region_end)
			   : vmpt_psb_inside(data, at, pkt.size, region_end);
		if (next) {
			err = err ? err : -VMPT_E_CUT;
			put_loss(sink, at, next - at, err, base);
			state->block = 0;
			state->last_ip = 0;
			at = next;
			continue;
		}
		state->block = vmpt_pt_block_after(&pkt, state->block);
		item.offset = (u32)(at - base);
		if (pkt.kind == VMPT_PT_TNT_8 || pkt.kind == VMPT_PT_PAD) {
			item.kind = VMPT_ITEM_RUN;
			item.size = 1;
			item.payload = 0;
			item.aux = 0;
		} else {
			vmpt_item_make(&item, &pkt, data + at, state);
		}
		if (vmpt_token_wanted(&pkt))
			put_token(sink, VMPT_TOKEN(at, pkt.kind));
		put_item(sink, &item);
		at += pkt.size;
	}
	return at;
}
