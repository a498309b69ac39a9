// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Packets among damaged bytes. The splitter takes everything from a byte that begins no packet to
 * the next PSB as lost. Packets after the damage are found again soon, since they are short: a
 * place is taken for the start of one if from there on only packets follow for a while. The flow
 * goes on at the next IP, with the owner and Last IP as they were before; it may be wrong, like any
 * flow of damaged bytes, and the loss is reported.
 */
#include "decoder/flow/engine.h"

/* Packets must follow for this many bytes, or up to the end. */
#define RECOVER_PROOF 48u
/* Places that are tried. */
#define RECOVER_TRIES 24u

/* Where packets from @at on end: at @end, at the first byte that begins none, or at what may change
 * the owner. */
static u64 packets_end(const u8 *data, u64 at, u64 end, u64 enough)
{
	struct vmpt_pt_packet pkt;
	unsigned int block = 0;

	while (at < end && at < enough) {
		if (vmpt_pt_decode(&pkt, data + at, end - at, block))
			break;
		if (pkt.kind == VMPT_PT_PIP || pkt.kind == VMPT_PT_VMCS ||
		    pkt.kind == VMPT_PT_PSB || pkt.kind == VMPT_PT_PSBEND)
			break;
		block = vmpt_pt_block_after(&pkt, block);
		at += pkt.size;
	}
	return at;
}

u64 vmpt_flow_recover(const u8 *data, u64 *at, u64 end)
{
	u64 from, to, proof;
	u32 i;

	for (i = 1; i <= RECOVER_TRIES && *at + i < end; i++) {
		from = *at + i;
		proof = end - from < RECOVER_PROOF ? end : from + RECOVER_PROOF;
		if (packets_end(data, from, end, proof) < proof)
			continue;
		to = packets_end(data, from, end, end);
		*at = from;
		return to;
	}
	return 0;
}
