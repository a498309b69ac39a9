/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Inside the decoder: RTIT's fast source. As fast.h for PT: chunks that start at PSBs are
 * decoded some at once, by the lanes of one loop and by threads, and handed out in order. A
 * chunk that the one before it did not end at exactly is decoded again from where that one
 * ended. What is no packet, and the last bytes of a region, are left to the plain loop.
 */
#ifndef VMPT_DECODER_RTIT_FAST_H
#define VMPT_DECODER_RTIT_FAST_H

#include "decoder/plan.h"
#include "decoder/rtit.h"

#define VMPT_RTIT_LANES_MAX  4
#define VMPT_RTIT_JOB_CHUNKS 8

/* Raw entries of a chunk: packets that may be tokens, or all but runs. */
#define VMPT_RTIT_INDEX_RAW   4096
#define VMPT_RTIT_PACKETS_RAW 16384

/* So many bytes behind a packet's first may be read. */
#define VMPT_RTIT_GUARD 64

/* By the header byte, how a packet is stepped over. */
#define VMPT_RTIT_STEP_SIZE   0x0f /* bytes but the cycle count; 0: no packet */
#define VMPT_RTIT_STEP_CYCLES 0x30 /* 11b: a cycle count follows, whose CCNT is ANDed with it */
#define VMPT_RTIT_STEP_PLAIN  0x40 /* none does: the step is right without one */
#define VMPT_RTIT_STEP_KEEP   0x80 /* stage 2 looks at it */

/* By the header byte, how the item of a packet is made without a branch. */
struct vmpt_rtit_row {
	u64 mask, keep; /* payload bits from the bytes behind the header, from Last LIP */
	u64 lip;	/* ~0: the payload becomes Last LIP */
	u64 fixed;	/* payload bits that the header tells */
	u64 meta;	/* the item's second half: size, kind, aux */
	u8 size, kind;
	u8 cycles; /* 3: a cycle count follows */
	u8 token;  /* it makes a token, or needs more than a row says */
	u8 pad[20];
};

/* What all who decode chunks share; read-only. */
struct vmpt_rtit_fast {
	const u8 *data;
	unsigned int lanes;
	bool cycle_acc;
	u8 index_step[256], packet_step[256];
	struct vmpt_rtit_row rows[256];
};

void vmpt_rtit_fast_tables(struct vmpt_rtit_fast *f);

/* A span and what was found in it. */
struct vmpt_rtit_chunk {
	struct vmpt_stretch span;
	/* Results: all packets of [start, at). */
	u64 at;
	bool refused; /* what stands at @at is for the plain loop */
	u64 last_lip; /* Last LIP at @at, the unknown bits of that at the start taken as 0 */
	u32 prev_size;
	struct vmpt_rtit_scan_out sink;
};

/*
 * Decode @count chunks, @f->lanes at once. @raw: scratch, VMPT_RTIT_LANES_MAX times
 * VMPT_RTIT_PACKETS_RAW or _INDEX_RAW entries. (rtit-index.c, rtit-packets.c)
 */
struct vmpt_rtit_index_raw {
	u64 at;
	u32 prev_size, cycles;
};

void vmpt_rtit_index_decode(const struct vmpt_rtit_fast *f, struct vmpt_rtit_chunk *chunks,
			    unsigned int count, struct vmpt_rtit_index_raw *raw);
void vmpt_rtit_packets_decode(const struct vmpt_rtit_fast *f, struct vmpt_rtit_chunk *chunks,
			      unsigned int count, u32 *raw);

/* ---- Last LIP (rtit-last-lip.c) ---- */

/* Whole packets, with no loss among them. */
struct vmpt_rtit_stretch {
	u64 from, end;
	u64 psb;			/* the last one in it; what is not in it: none is known */
	struct vmpt_rtit_last_lip last; /* at @from */
};

/* At its end. @size: of the stream. */
struct vmpt_rtit_last_lip vmpt_rtit_last_lip_at(const struct vmpt_rtit_fast *f, u64 size,
						const struct vmpt_rtit_stretch *s);

struct vmpt_rtit_fast_source;

int vmpt_rtit_fast_open(struct vmpt_rtit_fast_source **src, const struct vmpt_stream *stream,
			const struct vmpt_options *options, bool cycle_acc, bool items);
int vmpt_rtit_fast_next(struct vmpt_rtit_fast_source *src, struct vmpt_rtit_piece *piece);
void vmpt_rtit_fast_close(struct vmpt_rtit_fast_source *src);

#endif
