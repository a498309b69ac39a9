// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Handling of each packet of the source for its owner's stream: copy, re-encode or drop
 * (docs/vm-tracking.md).
 */
#include "decoder/streams/internal.h"

/* Whether the next packet from @at on is TIP.PGE, ignoring timing packets, MODE and PAD. */
static bool pge_follows(const struct extract *x, u64 at, u64 end)
{
	unsigned int size;
	int kind;

	for (; at < end; at += size) {
		kind = vmpt_head_at(x->stream->data, at, end, &size);
		if (kind < 0)
			return false;
		if (kind != VMPT_PT_PAD && kind != VMPT_PT_MODE_EXEC && kind != VMPT_PT_MODE_TSX &&
		    !(vmpt_pt_table[kind].classes & VMPT_PT_TIMING))
			return kind == VMPT_PT_TIP_PGE;
	}
	return false;
}

/*
 * A PSB+ of the source. Its FUP sets PacketEn. With PacketEn 0 and a TIP.PGE next the FUP is
 * dropped: otherwise tracing would begin twice for a decoder.
 */
static int on_psb(struct extract *x, u64 at)
{
	u64 end = vmpt_extract_region_end(x, at);
	struct out_stream *out = x->out;
	struct vmpt_psb_plus psb;

	vmpt_psb_plus_scan(x->stream->data, at, end, &psb);
	x->psb_end = psb.end;
	if (!out)
		return 0;
	x->drop_psb_fup = psb.has_fup && !out->packet_en && pge_follows(x, psb.end, end);
	/* Without a PSBEND it is not known whether the FUP was lost. */
	out->packet_unknown = !psb.complete && !psb.has_fup && !out->packet_en;
	if (psb.complete || psb.has_fup)
		out->packet_en = psb.has_fup && !x->drop_psb_fup;
	out->last_ip = 0;
	out->needs_head = false;
	out->lacks_calls = false;
	return vmpt_extract_copy(x, at, vmpt_pt_table[VMPT_PT_PSB].size);
}

/* The IP is relative to the source's Last IP: copy it if the stream's gives the same. */
static int put_ip(struct extract *x, u64 at, const struct vmpt_item *item)
{
	struct out_stream *out = x->out;
	struct vmpt_pt_packet pkt;

	if (!item->aux)
		return vmpt_extract_copy(x, at, item->size);
	if (vmpt_pt_decode(&pkt, x->stream->data + at, item->size, 0))
		return -VMPT_E_INVAL;
	if (vmpt_pt_ip_expand(out->last_ip, item->aux, pkt.ip.ip) == item->payload) {
		out->last_ip = item->payload;
		return vmpt_extract_copy(x, at, item->size);
	}
	out->last_ip = item->payload;
	x->done.ips_reencoded++;
	pkt.ip.ipbytes = vmpt_pt_ip_full(item->payload);
	pkt.ip.ip = vmpt_pt_ip_payload(item->payload, (unsigned int)pkt.ip.ipbytes);
	return vmpt_extract_put(x, out, &pkt);
}

/* FUP: of a PSB+, consumed by a packet before it, of an OVF, or of an event. */
static int on_fup(struct extract *x, u64 at, const struct vmpt_item *item)
{
	bool consumed = x->source.consumer, after_ovf = x->source.after_ovf;
	struct out_stream *out = x->out;

	x->source.consumer = false;
	if (at < x->psb_end) {
		if (!out || !x->drop_psb_fup)
			return out ? put_ip(x, at, item) : 0;
		x->done.fups_dropped++;
		return vmpt_extract_flush(x);
	}
	if (!consumed)
		x->source.after_ovf = false;
	if (!out)
		return 0;
	if (x->drop_fup && consumed) {
		x->drop_fup = false;
		x->done.concealed++;
		return vmpt_extract_flush(x);
	}
	if (!consumed && after_ovf) {
		out->packet_en = true;
		out->packet_unknown = false;
	}
	return put_ip(x, at, item);
}

/* TIP, TIP.PGE, TIP.PGD */
static int on_tip(struct extract *x, u64 at, const struct vmpt_item *item)
{
	struct out_stream *out = x->out;

	x->source.after_ovf = false;
	if (!out)
		return 0;
	out->packet_unknown = false;
	out->packet_en = item->kind != VMPT_PT_TIP_PGD;
	return put_ip(x, at, item);
}

/*
 * Flow that a stream with PacketEn = 0 cannot have: its owner was proved in the middle of it, by a
 * PIP that no TIP follows. It is dropped and counted until a TIP gives the IP.
 */
static bool is_homeless(const struct extract *x, u64 at, const struct vmpt_item *item)
{
	const u8 *bytes = x->stream->data + at;
	u16 i;

	if (!x->out || x->out->packet_en || x->out->packet_unknown)
		return false;
	switch (item->kind) {
	case VMPT_PT_TNT_64:
	case VMPT_PT_TIP:
	case VMPT_PT_TIP_PGD:
		return true;
	case VMPT_PT_FUP:
		return at >= x->psb_end && !x->source.consumer && !x->source.after_ovf;
	case VMPT_ITEM_RUN:
		for (i = 0; i < item->size; i++)
			if (bytes[i])
				return true;
		return false;
	default:
		return false;
	}
}

static int drop_homeless(struct extract *x, u64 at, const struct vmpt_item *item)
{
	const u8 *bytes = x->stream->data + at;
	int err = vmpt_extract_flush(x);
	u16 i;

	x->source.after_ovf = false;
	if (err)
		return err;
	if (item->kind == VMPT_PT_TIP && item->aux) {
		x->done.tips_enabling++;
		return vmpt_extract_enable(x, x->out, item->payload);
	}
	if (item->kind != VMPT_ITEM_RUN) {
		x->done.flow_dropped++;
		return 0;
	}
	for (i = 0; i < item->size; i++)
		x->done.flow_dropped += bytes[i] != 0;
	return 0;
}

/* Conceal: whether the packet is dropped or rewritten. */
static bool conceal(struct extract *x, const struct vmpt_item *item, int *err)
{
	struct vmpt_pt_packet pip = { .kind = VMPT_PT_PIP };
	unsigned int cfe = item->payload & 0x1f;

	*err = 0;
	switch (item->kind) {
	case VMPT_PT_VMCS:
		break;
	case VMPT_PT_PIP:
		if (!(item->payload & 1))
			return false;
		pip.pip.cr3 = item->payload & ~1ULL;
		*err = vmpt_extract_put(x, x->out, &pip);
		break;
	case VMPT_PT_EVD:
		if (item->aux != VMPT_EVD_VMXQ && item->aux != VMPT_EVD_VMXR)
			return false;
		break;
	case VMPT_PT_CFE:
		if (cfe != VMPT_CFE_VMENTRY && cfe != VMPT_CFE_VMEXIT &&
		    cfe != VMPT_CFE_VMEXIT_INTR)
			return false;
		/* With BranchEn the exit has its FUP anyway (Table 33-53). */
		if (item->payload & 0x80) {
			x->drop_fup = cfe == VMPT_CFE_VMENTRY || !x->out->packet_en;
			x->source.consumer = x->drop_fup;
		}
		break;
	default:
		return false;
	}
	x->done.concealed++;
	return true;
}

static void note(struct extract *x, const struct vmpt_item *item)
{
	if (item->kind == VMPT_PT_PIP)
		x->source.paging =
			(struct paging){ true, item->payload & 1, item->payload & ~1ULL };
	else if (item->kind == VMPT_PT_MODE_EXEC)
		x->source.exec = (int)item->payload;
	else if (item->kind == VMPT_PT_MODE_TSX)
		x->source.tsx = (int)item->payload;
	else if (item->kind == VMPT_PT_CBR)
		x->source.cbr = (int)item->payload;
}

/* Whether a BBP of this slice is open after @item. */
static bool block_after(const struct extract *x, const struct vmpt_item *item, const u8 *bytes)
{
	u16 i;

	if (item->kind == VMPT_PT_BBP)
		return true;
	if (!x->in_block || item->kind == VMPT_ITEM_LOSS)
		return false;
	if (item->kind != VMPT_ITEM_RUN)
		return !(vmpt_pt_table[item->kind].classes & VMPT_PT_ENDS_BLOCK);
	for (i = 0; i < item->size; i++)
		if (bytes[i])
			return false; /* a TNT */
	return true;
}

/* Note packets that consume the FUP after them: it is not of an event or OVF then. */
static void note_consumer(struct extract *x, u64 at, const struct vmpt_item *item)
{
	switch (item->kind) {
	case VMPT_PT_CFE:
		x->source.consumer = item->payload & 0x80;
		break;
	case VMPT_PT_PTW:
	case VMPT_PT_EXSTOP:
	case VMPT_PT_BEP:
	case VMPT_PT_TRIG:
		x->source.consumer = item->aux & 0x80;
		break;
	case VMPT_PT_MODE_TSX:
	case VMPT_PT_MODE_EXEC:
		x->source.consumer = at >= x->psb_end;
		break;
	default:
		x->source.consumer = false;
		x->drop_fup = false;
	}
}

static bool is_flow_free(const struct vmpt_item *item)
{
	return item->kind < VMPT_PT_KINDS &&
	       (vmpt_pt_table[item->kind].classes & VMPT_PT_TIMING || item->kind == VMPT_PT_FUP);
}

/* Packets that only need to be noted in the stream's state. */
static int on_other(struct extract *x, u64 at, const struct vmpt_item *item)
{
	switch (item->kind) {
	case VMPT_PT_OVF:
		x->source.after_ovf = x->source.saw_ovf = true;
		if (x->out)
			x->out->packet_en = x->out->packet_unknown = false;
		break;
	case VMPT_PT_BIP:
		if (!x->in_block) {
			x->done.dropped++;
			return vmpt_extract_flush(x);
		}
		break;
	case VMPT_PT_CBR:
		if (x->out)
			x->out->cbr = (int)item->payload;
		break;
	case VMPT_PT_MODE_TSX:
		if (x->out)
			x->out->tsx = (int)item->payload;
		break;
	case VMPT_PT_TSC:
	case VMPT_PT_TMA:
		return vmpt_extract_clock_own(x, at, item);
	case VMPT_ITEM_LOSS:
		return 0;
	}
	return vmpt_extract_copy(x, at, item->size);
}

int vmpt_extract_item(struct extract *x, u64 at, const struct vmpt_item *item)
{
	const u8 *bytes = x->stream->data + at;
	bool timing =
		item->kind < VMPT_PT_KINDS && vmpt_pt_table[item->kind].classes & VMPT_PT_TIMING;
	int err = 0;

	note(x, item);
	x->in_block = block_after(x, item, bytes);
	vmpt_extract_clock_read(x, item);
	if (timing && x->stream_count > (x->out ? 1 : 0)) {
		err = vmpt_extract_others_timing(x, item, bytes);
		if (err)
			return err;
	}
	/* The packets of the group at the slice's head: the return replaces them. */
	if (at < x->group_end && !timing && item->kind != VMPT_ITEM_RUN)
		return vmpt_extract_flush(x);
	if (item->kind != VMPT_ITEM_RUN && !is_flow_free(item))
		note_consumer(x, at, item);
	if (x->options->conceal && x->out && conceal(x, item, &err))
		return err ? err : vmpt_extract_flush(x);
	if (is_homeless(x, at, item))
		return drop_homeless(x, at, item);

	switch (item->kind) {
	case VMPT_PT_TIP:
	case VMPT_PT_TIP_PGE:
	case VMPT_PT_TIP_PGD:
		return on_tip(x, at, item);
	case VMPT_PT_FUP:
		return on_fup(x, at, item);
	case VMPT_PT_PSB:
		return on_psb(x, at);
	}
	return on_other(x, at, item);
}
