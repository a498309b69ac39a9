/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Inside the decoder: the fast source. It splits a stream into chunks that start at
 * PSBs, decodes several in parallel, each by a lane of one loop, and hands out the
 * results in order. A chunk starts at the bytes of a PSB, which may be no PSB: its
 * result is used only if the chunk before it ended exactly there.
 */
#ifndef VMPT_DECODER_FAST_H
#define VMPT_DECODER_FAST_H

#include "decoder/pt/fast-table.h"
#include "decoder/parallel/parallel.h"

#define VMPT_LANES_MAX	8
#define VMPT_JOB_CHUNKS 8

/* Tokens of a chunk in index mode; otherwise packets of a chunk, without runs. */
#define VMPT_INDEX_RAW	 32768
#define VMPT_PACKETS_RAW 10240
/* Raw entries that one step may add beyond the lane's limit. */
#define VMPT_RAW_SLACK 8

/* A span, what is known of its start, and what was found in it. */
struct vmpt_chunk {
	struct vmpt_stretch span;
	/* Results: all packets of [start, at); @at >= the span's end unless room ran out. */
	u64 at;
	struct vmpt_scan_state state; /* in: at start, out: at @at */
	struct vmpt_scan_out sink;
	/*
	 * Items: of the last results in this place. Runs were less than an eighth as many as
	 * packets; they had fewer bytes than there were packets. The next are decoded by what is
	 * fastest for such a trace, with the same results.
	 */
	bool few_runs, short_runs;
	/* The same: every sixteenth packet or more was a CYC; the number of chunks to take it for.
	 */
	u8 many_cycs;
};

/* Shared by all lanes and threads; read-only. */
struct vmpt_fast {
	const u8 *data;
	unsigned int lanes;
	const u16 *steps; /* steps for the wanted items */
};

/*
 * Decode @count chunks, @f->lanes at once. @raw: scratch for vmpt_packets_decode(),
 * VMPT_LANES_MAX times VMPT_PACKETS_RAW + VMPT_RAW_SLACK. (tokens.c, packets.c)
 */
void vmpt_index_decode(const struct vmpt_fast *f, struct vmpt_chunk *chunks, unsigned int count);
void vmpt_packets_decode(const struct vmpt_fast *f, struct vmpt_chunk *chunks, unsigned int count,
			 u64 *raw);

/* The fast source under vmpt_source_open() and the other calls. (fast.c) */
struct vmpt_fast_source;

int vmpt_fast_open(struct vmpt_fast_source **src, const struct vmpt_stream *stream,
		   const struct vmpt_options *options, bool items);
int vmpt_fast_next(struct vmpt_fast_source *src, struct vmpt_piece *piece);
void vmpt_fast_time_only(struct vmpt_fast_source *src);
void vmpt_fast_close(struct vmpt_fast_source *src);

#endif
