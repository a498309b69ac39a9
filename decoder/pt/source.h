/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Inside the decoder: a source decodes a stream in order, piece by piece.
 * A piece is a stretch of whole packets (empty if it only reports a gap). For each, a
 * source returns the tokens that the VM tracker needs and, if requested, the items of
 * all packets.
 *
 * Two sources exist and must agree token by token and, runs expanded, item by
 * item: the scalar one (scalar.c), the plain loop and reference, and the fast
 * one (fast.c over lanes.h), which decodes several pieces at once.
 *
 * Both follow these rules:
 * - A stream's gaps divide it into regions. A region is decoded on its own.
 * - Each region but the first begins with a LOSS token of VMPT_E_GAP, size 0.
 * - A region starts at its first PSB; bytes before it are a LOSS with
 *   VMPT_E_SYNC. With options.headless it starts at its first byte.
 * - A decode error at e is a LOSS from e to the next PSB at or after e + 1, or to
 *   the region's end, with the error's code.
 * - A packet that a PSB cuts (vmpt_psb_inside()) is a LOSS from its start to that PSB
 *   with VMPT_E_CUT. What would follow it is a broken PSB, after a TNT-8 (82H) if an odd
 *   number of the PSB's bytes is inside; so nothing else needs to be checked for it.
 * - At a PSB Last IP is 0 and no block is open.
 */
#ifndef VMPT_DECODER_SOURCE_H
#define VMPT_DECODER_SOURCE_H

#include "decoder/isa.h"
#include "decoder/pt/units.h"

/*
 * A token: the packet's offset in the stream << 6 | enum vmpt_pt_kind. Tokens are
 * made for PIP, VMCS, MODE.Exec, PSB, OVF, CFE, EVD, TSC, CBR and for TIP.PGD without
 * IP (all others with IPBytes ≠ 000b make none), in order of offset, and for losses:
 * those have the kind VMPT_TOKEN_LOSS and are followed by one more u64, the size in
 * bytes << 6 | enum vmpt_error.
 */
#define VMPT_TOKEN_LOSS		 63u
#define VMPT_TOKEN(offset, kind) ((u64)(offset) << 6 | (kind))

static inline unsigned int vmpt_token_kind(u64 token)
{
	return token & 63;
}

static inline u64 vmpt_token_offset(u64 token)
{
	return token >> 6;
}

struct vmpt_piece {
	u64 start, end; /* [start, end) of the stream; a piece starts where the last ended */
	u64 region_end; /* bytes up to here may be read */
	const u64 *tokens;
	const u32 *token_items; /* with items: the item of each token, for both words of a loss */
	size_t token_count;
	struct vmpt_item *items; /* NULL unless requested; offsets are relative to start; the reader
				    may change them */
	size_t item_count;
};

struct vmpt_source;

/* @items: make items too. */
int vmpt_source_open(struct vmpt_source **src, const struct vmpt_stream *stream,
		     const struct vmpt_options *options, bool items);
/* 1: @piece is the next one, valid until the next call; 0: the end; or a negative error. */
int vmpt_source_next(struct vmpt_source *src, struct vmpt_piece *piece);
void vmpt_source_close(struct vmpt_source *src);
/*
 * Decode only tokens and the kinds of vmpt_time_wanted(). Other packets may be part of a run, with
 * their bytes unchanged, and Last IP is not kept. Call before the first piece.
 */
void vmpt_source_time_only(struct vmpt_source *src);

/*
 * ---- shared by both sources ----
 */

/* A decoder's state between packets. */
struct vmpt_scan_state {
	u64 last_ip;
	unsigned int block; /* vmpt_pt_block_after() */
};

/* Room for the results. */
struct vmpt_scan_out {
	u64 *tokens;
	u32 *token_items; /* NULL: none wanted */
	size_t token_count, token_max;
	struct vmpt_item *items; /* NULL: none wanted */
	size_t item_count, item_max;
};

/*
 * The plain loop (scalar.c): decode packets of [@at, @region_end) until the position
 * is at or after @stop, or the sink has no room for one more packet (4 tokens, 1
 * item). Item offsets are relative to @base (and must fit into a u32). Losses are
 * cut at @stop only if a PSB is there. Runs: adjacent TNT-8 and PAD make one item,
 * up to 65,535 bytes.
 * Returns the position: the start of the next packet, or @region_end.
 */
u64 vmpt_scalar_scan(const u8 *data, u64 at, u64 stop, u64 region_end, u64 base,
		     struct vmpt_scan_state *state, struct vmpt_scan_out *sink);

/* Make the item of a decoded packet at @buf; updates state->last_ip. Not for TNT-8 and PAD. */
void vmpt_item_make(struct vmpt_item *item, const struct vmpt_pt_packet *pkt, const u8 *buf,
		    struct vmpt_scan_state *state);

/* Whether the packet makes a token. */
static inline bool vmpt_token_wanted(const struct vmpt_pt_packet *pkt)
{
	switch (pkt->kind) {
	case VMPT_PT_PIP:
	case VMPT_PT_VMCS:
	case VMPT_PT_MODE_EXEC:
	case VMPT_PT_PSB:
	case VMPT_PT_OVF:
	case VMPT_PT_CFE:
	case VMPT_PT_EVD:
	case VMPT_PT_TSC:
	case VMPT_PT_CBR:
		return true;
	case VMPT_PT_TIP_PGD:
		return !pkt->ip.ipbytes;
	default:
		return false;
	}
}

#endif
