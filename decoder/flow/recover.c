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

/* Whether the owner is another after @pkt, or may be: not if it says what was known. */
static bool may_change_owner(const struct engine *e, const struct vmpt_pt_packet *pkt)
{
	switch (pkt->kind) {
	case VMPT_PT_PIP:
		return e->c.no_cr3 || pkt->pip.cr3 != e->c.cr3;
	case VMPT_PT_VMCS:
		return e->owner.kind != VMPT_OWNER_VM || pkt->vmcs.pointer != e->owner.vmcs;
	case VMPT_PT_PSB:
		return true;
	default:
		return false;
	}
}

/* Where packets from @at on end: at @end, at the first byte that begins none, or at what may change
 * the owner. */
static u64 packets_end(const struct engine *e, u64 at, u64 end, u64 enough)
{
	struct vmpt_pt_packet pkt;
	unsigned int block = 0;

	while (at < end && at < enough) {
		if (vmpt_pt_decode(&pkt, e->data + at, end - at, block) ||
		    may_change_owner(e, &pkt))
			break;
		block = vmpt_pt_block_after(&pkt, block);
		at += pkt.size;
	}
	return at;
}

u64 vmpt_flow_recover(const struct engine *e, u64 *at, u64 end)
{
	u64 from, to, proof;
	u32 i;

	for (i = 1; i <= RECOVER_TRIES && *at + i < end; i++) {
		from = *at + i;
		proof = end - from < RECOVER_PROOF ? end : from + RECOVER_PROOF;
		if (packets_end(e, from, end, proof) < proof)
			continue;
		to = packets_end(e, from, end, end);
		*at = from;
		return to;
	}
	return 0;
}
