/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Slices for a reader that walks the packets of a stream by itself, as the flow decoder does: it
 * reports those that may change the owner, and no pass of the splitter over the same bytes is
 * needed. Where the owner is in doubt packets are read ahead; if that does not settle it soon, the
 * slices are those of a splitter from there on. The owners are the splitter's at each byte; slices
 * have neither TSCs nor CR3s.
 */
#ifndef VMPT_DECODER_PT_FOLLOW_H
#define VMPT_DECODER_PT_FOLLOW_H

#include "decoder/pt/slicer.h"

struct vmpt_follow {
	const struct vmpt_stream *stream;
	struct vmpt_options options;
	struct vmpt_tracker tracker;
	struct vmpt_slicer slicer;
	struct vmpt_slice now; /* that the reader is in, as far as it is known */
	u64 end;	       /* of it */
	u64 seen;	       /* packets before this offset were taken */
	bool finished;	       /* the stream's last slices are ready */
	bool part, stuck;      /* there is no splitter for it; it needs one */
	bool splits;	       /* slices are the splitter's from now on */
	struct vmpt_splitter *splitter;
	struct vmpt_slice split; /* its last one */
};

/* 0, -VMPT_E_INVAL or -VMPT_E_NOMEM. @stream must outlive it. */
int vmpt_follow_open(struct vmpt_follow **follow, const struct vmpt_stream *stream,
		     const struct vmpt_options *options);
void vmpt_follow_close(struct vmpt_follow *follow);

/*
 * The slice from @at on, up to where the reader has come. 1; 0: the end; or a negative error. Its
 * end may come earlier than its size says: the calls below tell.
 */
int vmpt_follow_next(struct vmpt_follow *follow, u64 at, struct vmpt_slice *slice);

/*
 * A packet of one of VMPT_FOLLOW_KINDS at @at; in a packet block, or after it, if @block is what
 * vmpt_pt_block_after() says. Returns the end of the slice: the reader goes on up to it. If it is
 * @at, the packet is the next slice's. Often the next slice is known at once: then *@owner is its
 * owner, and the end its own.
 */
u64 vmpt_follow_packet(struct vmpt_follow *follow, u64 at, unsigned int kind, unsigned int size,
		       unsigned int block, const struct vmpt_owner **owner);
/* There is no packet at @at: @err is a negative error. The same result. */
u64 vmpt_follow_error(struct vmpt_follow *follow, u64 at, int err);

/*
 * Whether PSB+ with the same bytes as that at @at, the last packet that was given, change nothing
 * if they come right after it: they need not be given.
 */
bool vmpt_follow_same_psb(const struct vmpt_follow *follow, u64 at);

/*
 * ---- parts of a stream ----
 *
 * A reader may begin at any PSB, with a guess of what packets before may have shown for good, and
 * compare later: where two readers are the same they go on the same.
 */

/* What never changes back: there was a PIP with NR = 0; with options.host_only, a VM. */
struct vmpt_follow_habit {
	bool seen_root, has_vm;
};

void vmpt_follow_habit(const struct vmpt_follow *follow, struct vmpt_follow_habit *habit);
/* Begin at the PSB at @at. Its slices are never a splitter's: */
void vmpt_follow_part(struct vmpt_follow *follow, u64 at, const struct vmpt_follow_habit *habit);
/* ... it would need one to go on. */
bool vmpt_follow_stuck(const struct vmpt_follow *follow);
/* Whether both, which have come to @at, go on the same. False if that is not certain. */
bool vmpt_follow_same(const struct vmpt_follow *a, const struct vmpt_follow *b, u64 at);
/* Go on where @from is, a copy of this one or of another's; not a part any more. */
void vmpt_follow_set(struct vmpt_follow *follow, const struct vmpt_follow *from);

/* Of TIP.PGD only those without an IP. */
#define VMPT_FOLLOW_KINDS                                                                        \
	(1ULL << VMPT_PT_PIP | 1ULL << VMPT_PT_VMCS | 1ULL << VMPT_PT_MODE_EXEC |                \
	 1ULL << VMPT_PT_PSB | 1ULL << VMPT_PT_OVF | 1ULL << VMPT_PT_CFE | 1ULL << VMPT_PT_EVD | \
	 1ULL << VMPT_PT_CBR | 1ULL << VMPT_PT_TIP_PGD)

#endif
