/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Shared by pt.c (the walk), packets.c (handling of each packet), edges.c (synthesized packets) and
 * clock.c (the streams' clocks).
 */
#ifndef VMPT_DECODER_EXTRACT_INTERNAL_H
#define VMPT_DECODER_EXTRACT_INTERNAL_H

#include "decoder/pt/pt.h"
#include "decoder/vmpt-extract.h"

/* A stream being written. */
struct out_stream {
	struct vmpt_owner owner;
	u64 who; /* from the options' who() */
	bool who_known;
	int id;
	u64 size;
	u64 last_ip;
	bool packet_en;
	bool packet_unknown; /* a PSB+ without end did not determine packet_en: flow is copied */
	bool needs_head;     /* nothing written yet, or a loss since */
	bool lacks_calls;
	int cbr, tsx; /* as written last; -1: not yet */
	u64 cycles;   /* sum of others' CYC, not yet written */
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

/* State of the source by its packets so far, of all owners. */
struct source_state {
	struct paging paging;
	int exec; /* MODE.Exec byte; -1: not known */
	int tsx;
	int cbr;
	bool after_ovf; /* a FUP without a consumer gives the IP where tracing resumed */
	bool saw_ovf;	/* since the last bytes without an owner */
	bool consumer;	/* the last packet consumes the FUP after it */
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
	struct extract_clock *clock; /* NULL: TSCs are not changed */
	/* the current slice */
	struct out_stream *out; /* NULL: not written */
	struct vmpt_extracted done;
	u64 copy_from, copy_to; /* bytes of the source to be copied */
	u64 psb_end;		/* of the current PSB+ */
	u64 group_end;		/* packets before it are replaced by the return */
	struct paging group_paging;
	u64 alone;	   /* groups that begin before it were walked: no TIP packet ends them */
	bool calls_lost;   /* by an overflow before the slice */
	bool drop_psb_fup; /* in this PSB+ */
	bool drop_fup;	   /* the next FUP served only a concealed CFE */
	bool in_block;	   /* a BBP of this slice is open */
};

/* Write @pkt to @out. */
int vmpt_extract_put(struct extract *x, struct out_stream *out, struct vmpt_pt_packet *pkt);
/* Write the bytes that are to be copied. */
int vmpt_extract_flush(struct extract *x);
/* Copy the packet unchanged. */
int vmpt_extract_copy(struct extract *x, u64 at, u64 size);
/* The end of the region that the byte at @at is in: look-ahead stops there. */
u64 vmpt_extract_region_end(const struct extract *x, u64 at);
/* A timing packet of the current slice, for all streams that are out. */
int vmpt_extract_others_timing(struct extract *x, const struct vmpt_item *item, const u8 *bytes);

/* ---- clock.c: all but the first two do nothing without a clock ---- */

int vmpt_extract_clock_open(struct extract *x);
void vmpt_extract_clock_close(struct extract *x);
/* The next batch; item @i of it is next. */
int vmpt_extract_clock_batch(struct extract *x, const struct vmpt_batch *batch);
void vmpt_extract_clock_item(struct extract *x, size_t i);
/* The item is a TSC or TMA of the current slice; called before it goes to any stream. */
void vmpt_extract_clock_read(struct extract *x, const struct vmpt_item *item);
/* Convert it for a stream that is not its owner's, into @wire. False: leave it out. */
bool vmpt_extract_clock_other(struct extract *x, struct out_stream *out,
			      const struct vmpt_item *item, u8 wire[VMPT_PT_SIZE_MAX]);
/* Write it to its owner's stream or leave it out. */
int vmpt_extract_clock_own(struct extract *x, u64 at, const struct vmpt_item *item);
/* Whether host time is known, and the owner of the VMCS now by who(); 0 if there is no who(). */
bool vmpt_extract_clock_who(const struct extract *x, const struct vmpt_owner *owner, u64 *who);
/* A TSC of the current time for a head. */
int vmpt_extract_clock_head(struct extract *x, struct out_stream *out);

/* ---- packets.c ---- */

/* One packet or run of the current slice. */
int vmpt_extract_item(struct extract *x, u64 at, const struct vmpt_item *item);

/* ---- edges.c ---- */

/* PSB, PIP, VMCS, CBR, PSBEND; no FUP. No PIP unless @paging is known. */
int vmpt_extract_head(struct extract *x, struct out_stream *out, const struct paging *paging);
/* Others' cycles as one CYC. */
int vmpt_extract_cycles(struct extract *x, struct out_stream *out);
/* PIP, CBR, MODE.Exec, MODE.TSX, TIP.PGE. @ip NULL: PIP and CBR only. */
int vmpt_extract_return(struct extract *x, struct out_stream *out, const struct paging *paging,
			const u64 *ip);
/* MODE.Exec, MODE.TSX if it changed, TIP.PGE. */
int vmpt_extract_enable(struct extract *x, struct out_stream *out, u64 ip);
/* TIP.PGD() if the stream's PacketEn is 1. */
int vmpt_extract_leave(struct extract *x, struct out_stream *out, bool *left);

#endif
