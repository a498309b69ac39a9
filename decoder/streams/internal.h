/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Shared by extract.c (the walk), extract-packets.c (what becomes of a packet), extract-edges.c
 * (what is synthesized) and extract-clock.c (on whose clock).
 */
#ifndef VMPT_DECODER_EXTRACT_INTERNAL_H
#define VMPT_DECODER_EXTRACT_INTERNAL_H

#include "decoder/pt/pt.h"
#include "decoder/vmpt-extract.h"

/* A stream being written. */
struct out_stream {
	struct vmpt_owner owner;
	u64 who; /* of the options' who() */
	bool who_known;
	int id;
	u64 size;
	u64 last_ip;
	bool packet_en;
	bool packet_unknown; /* a PSB+ without end said nothing of it: flow is copied */
	bool needs_head;     /* nothing written yet, or a loss since */
	bool lacks_calls;
	int cbr, tsx; /* as last written; -1: not yet */
	u64 cycles;   /* of others' CYC, not yet written */
	/* others' timing since the last slice, for the index */
	u64 others_mtc, others_cbr, others_cyc, others_cycles, others_tsc, others_tsc_kept;
	bool lacks_tsc; /* the last TSC was left out: its TMA too */
	bool has_tsc;	/* first_tsc is the first that was written */
	u64 first_tsc;
	/* others' MTC and CBR, not yet written */
	u16 pending_size;
	u8 pending[512];
};

/* A PIP's content. */
struct paging {
	bool known;
	bool nr;
	u64 cr3;
};

/* What the source's packets have said so far, of whatever owner. */
struct source_state {
	struct paging paging;
	int exec; /* MODE.Exec byte; -1: not known */
	int tsx;
	int cbr;
	bool after_ovf; /* a FUP that nothing consumes says where tracing resumed */
	bool saw_ovf;	/* since the last stretch of bytes that were nobody's */
	bool consumer;	/* the last packet takes the FUP behind it */
};

struct extract_clock;

struct extract {
	const struct vmpt_stream *stream;
	const struct vmpt_extract_options *options;
	const struct vmpt_extract_ops *ops;
	void *opaque;
	struct out_stream *streams;
	int stream_count;
	struct source_state source;
	struct extract_clock *clock; /* NULL: TSCs stay as they are */
	/* the slice at work */
	struct out_stream *out; /* NULL: written nowhere */
	struct vmpt_extracted done;
	u64 copy_from, copy_to; /* bytes of the source to be written as they are */
	u64 psb_end;		/* of the PSB+ at work */
	u64 group_end;		/* packets before it are replaced by the return */
	struct paging group_paging;
	u64 alone;	   /* groups that begin before it were walked: no TIP packet ends them */
	bool calls_lost;   /* by an overflow before the slice */
	bool drop_psb_fup; /* in this PSB+ */
	bool drop_fup;	   /* the next FUP served only a concealed CFE */
	bool in_block;	   /* a BBP of this slice is open */
};

/* Write @pkt to @out. */
int extract_put(struct extract *x, struct out_stream *out, struct vmpt_pt_packet *pkt);
/* Write what is to be copied. */
int extract_flush(struct extract *x);
/* The packet stays as it is. */
int extract_copy(struct extract *x, u64 at, u64 size);
/* Where the region of the byte at @at ends: look-ahead goes no further. */
u64 extract_region_end(const struct extract *x, u64 at);
/* A timing packet of this slice, for all streams that are out. */
int extract_others_timing(struct extract *x, const struct vmpt_item *item, const u8 *bytes);

/* ---- extract-clock.c: all but the first two do nothing without a clock ---- */

int extract_clock_open(struct extract *x);
void extract_clock_close(struct extract *x);
/* The next batch; item @i of it is next. */
int extract_clock_batch(struct extract *x, const struct vmpt_batch *batch);
void extract_clock_item(struct extract *x, size_t i);
/* The item is a TSC or TMA of the slice at work: before it goes to any stream. */
void extract_clock_read(struct extract *x, const struct vmpt_item *item);
/* It, for a stream that is not its owner's: bytes in @wire. False: it stays out. */
bool extract_clock_other(struct extract *x, struct out_stream *out, const struct vmpt_item *item,
			 u8 wire[VMPT_PT_SIZE_MAX]);
/* It, for its owner's stream: written or left out. */
int extract_clock_own(struct extract *x, u64 at, const struct vmpt_item *item);
/* Whether host time is known, and whose the owner's VMCS is now by who(); 0 if that is not asked.
 */
bool extract_clock_who(const struct extract *x, const struct vmpt_owner *owner, u64 *who);
/* A TSC of now for a head. */
int extract_clock_head(struct extract *x, struct out_stream *out);

/* ---- extract-packets.c ---- */

/* One packet or run of the slice at work. */
int extract_item(struct extract *x, u64 at, const struct vmpt_item *item);

/* ---- extract-edges.c ---- */

/* PSB, PIP, VMCS, CBR, PSBEND; no FUP. No PIP unless @paging is known. */
int extract_head(struct extract *x, struct out_stream *out, const struct paging *paging);
/* Others' cycles as one CYC. */
int extract_cycles(struct extract *x, struct out_stream *out);
/* PIP, CBR, MODE.Exec, MODE.TSX, TIP.PGE. @ip NULL: PIP and CBR only. */
int extract_return(struct extract *x, struct out_stream *out, const struct paging *paging,
		   const u64 *ip);
/* MODE.Exec, MODE.TSX if it changed, TIP.PGE. */
int extract_enable(struct extract *x, struct out_stream *out, u64 ip);
/* TIP.PGD() if the stream's PacketEn is 1. */
int extract_leave(struct extract *x, struct out_stream *out, bool *left);

#endif
