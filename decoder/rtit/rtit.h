/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Inside the decoder, RTIT: a source decodes a stream in order, piece by piece, as
 * decoder/pt/source.h does for PT. For each piece it returns the tokens that the tracker needs and,
 * if requested, the items of all packets.
 *
 * - Gaps divide a stream into regions. Each but the first begins with a LOSS of VMPT_E_GAP, size 0.
 * - A region starts at its first PSB; bytes before it are a LOSS with VMPT_E_SYNC. With
 *   options.headless it starts at its first byte.
 * - A decode error at e is a LOSS from e to the next PSB at or after e + 1, or to the region's end,
 *   with the error's code.
 * - A packet inside which a PSB begins that ends after it has lost its last bytes: it is a LOSS up
 *   to that PSB with VMPT_E_CUT. No whole packet is like that: a byte 00H would follow it, which
 *   begins none (4.2).
 * - Last LIP is not known at a region's start, after a loss and before a FUP.BuffOvf. It is kept
 *   over a PSB: the processor may clear its own up to four packets later (3.3.9).
 */
#ifndef VMPT_DECODER_RTIT_H
#define VMPT_DECODER_RTIT_H

#include "decoder/isa.h"
#include "decoder/vmpt-rtit-clock.h"

/*
 * Tokens are made for PGE, PGD, BuffOvf, PCC, PSB, TraceSTOP, PIP, MTC and STS, and for losses: all
 * that may come while PacketEn is 0, except a TIP that belongs to the FUP.PGD before it.
 */
#define VMPT_RTIT_TOKEN_LOSS 63u

struct vmpt_rtit_token {
	u64 at;	    /* in the stream */
	u64 size;   /* of a loss: its bytes; of a PSB: of the packet before it, 0: not known */
	u32 item;   /* index of its item, if there are items */
	u32 cycles; /* nonzero cycle counts in the piece before it */
	u8 kind;    /* enum vmpt_rtit_kind, VMPT_RTIT_TOKEN_LOSS */
	u8 err;	    /* of a loss: enum vmpt_error */
	struct vmpt_rtit_last_lip last; /* before it */
};

/* A stretch of whole packets; empty if it only reports a gap. */
struct vmpt_rtit_piece {
	u64 start, end; /* a piece starts where the last ended */
	u64 region_end; /* bytes up to here may be read */
	const struct vmpt_rtit_token *tokens;
	size_t token_count;
	struct vmpt_item *items; /* NULL unless requested; the reader may change them */
	size_t item_count;
	u32 cycles; /* nonzero cycle counts */
};

/* State between packets. */
struct vmpt_rtit_state {
	struct vmpt_rtit_last_lip last;
	u32 prev_size; /* of the packet before, with its cycle count; 0: not known */
};

/* Room for the results. */
struct vmpt_rtit_scan_out {
	struct vmpt_rtit_token *tokens;
	size_t token_count, token_max;
	struct vmpt_item *items; /* NULL: none wanted */
	size_t item_count, item_max;
	u32 cycles;
};

/* Maximum output of a packet: a token; an item and that of its cycle count. */
#define VMPT_RTIT_PUT_TOKENS 1
#define VMPT_RTIT_PUT_ITEMS  2

static inline bool vmpt_rtit_token_wanted(unsigned int kind)
{
	return kind != VMPT_RTIT_TNT && kind != VMPT_RTIT_TIP && kind != VMPT_RTIT_FAR;
}

/* Offset of the first complete PSB in [@from, @end) of @data, or @end. */
u64 vmpt_rtit_psb_find(const u8 *data, u64 from, u64 end);

/* vmpt_rtit_decode() of the packet at @at of @data, or -VMPT_E_CUT if a PSB cuts it; *@psb: there.
 */
static inline int vmpt_rtit_packet_at(struct vmpt_rtit_packet *pkt, const u8 *data, u64 at, u64 end,
				      bool cycle_acc, u64 *psb)
{
	int err = vmpt_rtit_decode(pkt, data + at, end - at, cycle_acc);
	u64 after;

	*psb = end;
	if (err)
		return err;
	after = at + pkt->size;
	if (__builtin_expect(after == end || data[after], 1))
		return 0;
	*psb = vmpt_rtit_psb_find(data, at + 1, after + 8 < end ? after + 8 : end);
	return *psb < after ? -VMPT_E_CUT : 0;
}

/*
 * Decode packets of [@at, @region_end) until the position is at or after @stop, or the sink has no
 * room for one more packet. Item offsets are relative to @base. Returns the position: the start of
 * the next packet, or @region_end.
 */
u64 vmpt_rtit_scan(const u8 *data, bool cycle_acc, u64 at, u64 stop, u64 region_end, u64 base,
		   struct vmpt_rtit_state *state, struct vmpt_rtit_scan_out *sink);

/* A loss of @size bytes at @at; its item's offset is @at - @base. The state after it is unknown. */
void vmpt_rtit_put_loss(struct vmpt_rtit_scan_out *sink, struct vmpt_rtit_state *state, u64 at,
			u64 size, unsigned int err, u64 base);

/* Whether cycle counts follow packets: as given by the caller, else as detected. */
static inline bool vmpt_rtit_has_cycles(const struct vmpt_stream *stream,
					const struct vmpt_options *o)
{
	enum vmpt_cycle_acc acc = o->cycle_acc;

	if (acc == VMPT_CYCLE_ACC_AUTO)
		acc = vmpt_rtit_cycles_guess(stream, o->headless);
	return acc == VMPT_CYCLE_ACC_YES;
}

struct vmpt_rtit_source;

int vmpt_rtit_source_open(struct vmpt_rtit_source **src, const struct vmpt_stream *stream,
			  const struct vmpt_options *options, bool items);
/* 1: @piece is the next one, valid until the next call; 0: the end; or a negative error. */
int vmpt_rtit_source_next(struct vmpt_rtit_source *src, struct vmpt_rtit_piece *piece);
void vmpt_rtit_source_close(struct vmpt_rtit_source *src);
bool vmpt_rtit_source_cycles(const struct vmpt_rtit_source *src);

/* ---- the tracker (tracker.c): owners, and errata that apply ---- */

/* PacketEn according to the PGEs and PGDs so far. */
enum vmpt_rtit_packets { VMPT_RTIT_UNSURE, VMPT_RTIT_ENABLED, VMPT_RTIT_DISABLED };

struct vmpt_rtit_tracker {
	const u8 *data;
	bool cycle_acc;
	const struct vmpt_run *runs;
	size_t run, run_count;		/* run: index of the next one */
	struct vmpt_run_report *report; /* or NULL */
	struct vmpt_owner owner;
	bool assumed; /* the owner is not certain: the place of the next run is not clear */
	/*
	 * From the tokens so far, by erratum; the reader takes them and sets them to 0. E6 is of
	 * the packets before the token, all others of the token.
	 */
	u32 errata[VMPT_RTIT_ERRATA + 1];
	bool ignored; /* the token was a meaningless PGD: E2 */

	u32 cycles; /* of the piece, counted as E6 */
	enum vmpt_rtit_packets packets;
	u64 begun;  /* probably an enable's PSB, with nothing that needs PacketEn up to here; or ~0
		     */
	bool start; /* no PGE or PGD since a PSB that begins the stream */
	bool overflowed; /* a FUP.BuffOvf, and no PGE, PGD or loss since */
	u64 psb;	 /* offset of the last PSB */
	bool psb_known;	 /* there was one, and no loss since */
	bool fresh;	 /* no loss since the stream's start */
	bool stopped;	 /* a TraceSTOP, and no PSB since */
	bool enable;	 /* the last PSB probably came with an enable */
	bool want_mtc;	 /* the next MTC is the first after an enable */
	u64 mark;	 /* offset of the TIP that E5 marks; ~0: none */

	/* If any run is by time, items are needed: all are fed to the clock. */
	bool by_time;
	bool aligned; /* clock_base, the bits above the 40 of an STS, is known */
	u64 clock_base;
	size_t fed; /* number of the piece's items fed so far */
	/* Tokens before ahead_to came at ahead at the latest, as vmpt_rtit_times.latest has it;
	 * those before before_to, as vmpt_rtit_times.before has it. ~0: not known. */
	u64 ahead, ahead_to, before, before_to;
	struct vmpt_rtit_clock clock;
};

void vmpt_rtit_tracker_init(struct vmpt_rtit_tracker *t, const u8 *data, bool cycle_acc,
			    const struct vmpt_options *options);
/* Before the tokens of a piece. */
void vmpt_rtit_tracker_piece(struct vmpt_rtit_tracker *t, struct vmpt_rtit_piece *piece);
/* True: from this token on (after it, if it is a loss) t->owner is another. Marks items. */
bool vmpt_rtit_tracker_take(struct vmpt_rtit_tracker *t, struct vmpt_rtit_piece *piece,
			    const struct vmpt_rtit_token *token);
/* After the tokens of a piece. */
void vmpt_rtit_tracker_end(struct vmpt_rtit_tracker *t, const struct vmpt_rtit_piece *piece);
/* The time of a token by the stream's clock (times.c). */
struct vmpt_rtit_times {
	u64 earliest;
	u64 latest; /* by packets of the same run; ~0: not known */
	u64 before; /* the same, by any packets; may be much later */
	u64 about;
	bool known; /* about is valid */
};

/* All before the token has been fed to the tracker's clock. */
void vmpt_rtit_times(struct vmpt_rtit_tracker *t, const struct vmpt_rtit_piece *piece,
		     const struct vmpt_rtit_token *token, struct vmpt_rtit_times *times);
/* Whether any run is by time: the tracker then needs all items. */
bool vmpt_rtit_by_time(const struct vmpt_options *options);

/*
 * Last LIP at the end of the slice that vmpt_split_next() returned last, as left by the packets
 * before it; not valid at the stream's end. @split is RTIT's.
 */
const struct vmpt_rtit_last_lip *vmpt_rtit_split_last_lip(const struct vmpt_splitter *split);

#endif
