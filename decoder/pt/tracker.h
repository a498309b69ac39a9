/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The owner of each byte of a trace: the only place with ownership rules. It is fed the
 * tokens of one stream in order, and reports from which byte on which owner holds.
 * The rules are in docs/vm-tracking.md, each named where it is applied.
 *
 * Look-ahead (a PSB+, a group) reads the stream's bytes, never beyond the unit that
 * begins at the token: the work is linear.
 */
#ifndef VMPT_DECODER_VM_TRACKER_H
#define VMPT_DECODER_VM_TRACKER_H

#include "decoder/pt/source.h"

/*
 * The PSB+ of a trace mostly have the same packets in the same order. A shape is such
 * an order as bytes to compare, so that a PSB+ is recognized quickly; a few shapes are
 * kept. The results are those of vmpt_psb_plus_scan().
 */
#define VMPT_PSB_SHAPES	     4
#define VMPT_PSB_SHAPE_WORDS 10

struct vmpt_psb_shape {
	u64 mask[VMPT_PSB_SHAPE_WORDS], bytes[VMPT_PSB_SHAPE_WORDS];
	u64 facts[VMPT_PSB_SHAPE_WORDS]; /* mask, and the payloads of PIP and VMCS */
	u8 size;			 /* 0: this entry is free */
	u8 tokens;
	u8 pip, vmcs, tsc; /* their offsets; 0: none */
	bool has_fup;
};

struct vmpt_psb_shapes {
	struct vmpt_psb_shape shape[VMPT_PSB_SHAPES];
	unsigned int next; /* the entry to be replaced next */
};

/* A PSB+ that stated known facts: while nothing changes, an equal one states nothing new. */
struct vmpt_psb_same {
	const struct vmpt_psb_shape *shape; /* NULL: none */
	u64 bytes[VMPT_PSB_SHAPE_WORDS];
};

static inline bool vmpt_psb_is_same(const struct vmpt_psb_same *same, const u8 *p)
{
	u64 differ = 0;
	unsigned int i;

	/* From the third word on: the first two are the PSB. */
	for (i = 2; i < VMPT_PSB_SHAPE_WORDS; i++)
		differ |= (vmpt_load64(p + 8 * i) ^ same->bytes[i]) & same->shape->facts[i];
	return !differ;
}

/* Returns the PSB+'s shape, or NULL if it is not known. */
const struct vmpt_psb_shape *vmpt_psb_plus_read(struct vmpt_psb_shapes *shapes, const u8 *data,
						u64 at, u64 end, struct vmpt_psb_plus *psb);

/*
 * Whether tracing resumes after the TIP.PGD() before @at without TraceEn having been 0: there is
 * neither a CBR nor a TSC up to a TIP.PGE. Setting TraceEn makes one of them (Table 33-56, cases 1
 * and 2).
 */
bool vmpt_pause_scan(const u8 *data, u64 at, u64 end);

/* ---- the tracker ---- */

struct vmpt_fact {
	u64 value;
	u8 sure; /* enum vmpt_sure */
};

enum vmpt_mark_kind {
	VMPT_MARK_OWNER, /* from offset on .owner */
	VMPT_MARK_LOSS,	 /* a loss: .value bytes from offset on, .cause is enum vmpt_error */
	VMPT_MARK_TSC,	 /* .value */
	VMPT_MARK_CR3,	 /* .value */
	VMPT_MARK_OVERFLOW,
	VMPT_MARK_FAILED_ENTRY,
};

struct vmpt_mark {
	u64 offset;
	u64 value;
	struct vmpt_owner owner; /* sure == VMPT_UNCERTAIN: possibly still this one's */
	u8 kind;		 /* enum vmpt_mark_kind */
	u8 cause;		 /* OWNER: enum vmpt_begin */
	bool by_group;
};

#define VMPT_TRACKER_MARKS 12

/* Why NR is in doubt: the worst cause since it was known. */
enum vmpt_doubt {
	VMPT_DOUBT_PAUSE, /* TIP.PGD() to TIP.PGE, TraceEn stayed 1 */
	VMPT_DOUBT_STOP,  /* a TIP.PGD() after which TraceEn may have been 0 */
	VMPT_DOUBT_LOST,  /* OVF */
};

struct vmpt_tracker {
	const u8 *data;
	u64 end; /* of the region: look-ahead stops here */
	struct vmpt_fact nr, vmcs, cr3;
	struct vmpt_owner owner;
	u64 skip;  /* tokens before this offset are part of a unit that was applied */
	u64 alone; /* PIP and VMCS before this offset apply at the packet: no TIP ends their group
		    */
	unsigned int skip_tokens; /* number of such tokens, right after the one applied */
	enum vmpt_guest_only guest_only;
	enum vmpt_doubt doubt;
	/*
	 * After the last TIP.PGD() if it may begin a pause; 0: none. Whether it does is read from
	 * the bytes only when something depends on it: vmpt_tracker_settle().
	 */
	u64 pause;
	bool after_pgd; /* a TIP.PGD() was applied last: another changes no fact */
	bool given;	/* NR is .given_nr wherever no packet says it; a VM ends it if that is 0 */
	bool given_nr;
	bool seen_root;	  /* a PIP with NR = 0 */
	bool cr3_marked;  /* .cr3's value was marked since the owner changed */
	bool owners_only; /* marks of TSC and CR3 are not wanted */
	size_t token;	  /* index of the token applied last */
	unsigned int mark_count;
	struct vmpt_mark marks[VMPT_TRACKER_MARKS]; /* of the last token, by offset */
	struct vmpt_psb_shapes shapes;
	struct vmpt_psb_same same;
};

/* @owners_only: no marks of TSC and CR3. */
void vmpt_tracker_init(struct vmpt_tracker *t, const u8 *data, const struct vmpt_options *options,
		       bool owners_only);

/* Decide whether t->pause is a pause. Look-ahead reads up to @end. */
void vmpt_tracker_settle(struct vmpt_tracker *t, u64 end);

/* Whether NR is known after a CFE. @p: the packet. */
static inline bool vmpt_cfe_gives_nr(const u8 *p)
{
	unsigned int type = p[2] & 0x1f;

	return type >= VMPT_CFE_VMENTRY && type <= VMPT_CFE_VMEXIT_INTR;
}

/*
 * Apply a token at or after t->skip; @loss is the second word of a VMPT_TOKEN_LOSS.
 * Look-ahead reads up to @region_end. Changes are put into t->marks.
 */
void vmpt_tracker_apply(struct vmpt_tracker *t, u64 token, u64 loss, u64 region_end);

/* Whether a group can go on with a token of @kind after its first. */
static inline bool vmpt_token_in_group(unsigned int kind)
{
	return kind < VMPT_PT_KINDS &&
	       vmpt_pt_table[kind].classes & (VMPT_PT_GROUP | VMPT_PT_TIMING);
}

/* Returns the index of the first token from @i on that is to be applied, or their number. */
static inline size_t vmpt_tracker_skip(struct vmpt_tracker *t, const struct vmpt_piece *piece,
				       size_t i)
{
	const u64 *tokens = piece->tokens;
	unsigned int kind;
	u64 at;

	for (; i < piece->token_count; i++) {
		kind = vmpt_token_kind(tokens[i]);
		at = vmpt_token_offset(tokens[i]);
		if (at < t->skip && kind != VMPT_TOKEN_LOSS)
			continue;
		switch (kind) {
		case VMPT_PT_TIP_PGD:
			if (!t->after_pgd)
				return i;
			t->pause = t->given ? 0 : at + 1;
			continue;
		case VMPT_PT_MODE_EXEC:
			/* A group of MODE.Exec alone says nothing. */
			if (i + 1 == piece->token_count ||
			    vmpt_token_in_group(vmpt_token_kind(tokens[i + 1])))
				return i;
			continue;
		case VMPT_PT_PIP:
		case VMPT_PT_PSB:
		case VMPT_TOKEN_LOSS:
			return i;
		}
		/* No pause is known to go on over the others. */
		if (t->pause)
			vmpt_tracker_settle(t, piece->region_end);
		if (kind != VMPT_PT_CBR && kind != VMPT_PT_EVD &&
		    (kind != VMPT_PT_TSC || !t->owners_only) &&
		    (kind != VMPT_PT_CFE || vmpt_cfe_gives_nr(t->data + at)))
			return i;
	}
	return i;
}

/*
 * Apply tokens from @token[*i] on until one makes marks or there are no more. True if
 * t->marks is not empty.
 */
static inline bool vmpt_tracker_take(struct vmpt_tracker *t, const struct vmpt_piece *piece,
				     size_t *i)
{
	const u64 *tokens = piece->tokens;
	u64 token, at;

	while ((*i = vmpt_tracker_skip(t, piece, *i)) < piece->token_count) {
		t->token = *i;
		token = tokens[(*i)++];
		at = vmpt_token_offset(token);
		t->skip_tokens = 0;
		if (vmpt_token_kind(token) == VMPT_TOKEN_LOSS) {
			vmpt_tracker_apply(t, token, tokens[(*i)++], piece->region_end);
		} else if (vmpt_token_kind(token) == VMPT_PT_PSB && t->same.shape &&
			   piece->region_end - at >= 8 * VMPT_PSB_SHAPE_WORDS &&
			   vmpt_psb_is_same(&t->same, t->data + at)) {
			t->skip = at + t->same.shape->size;
			t->skip_tokens = t->same.shape->tokens;
			t->mark_count = 0;
		} else {
			vmpt_tracker_apply(t, token, 0, piece->region_end);
		}
		/* If the piece ends before, skip is used. */
		if (t->skip_tokens <= piece->token_count - *i)
			*i += t->skip_tokens;
		if (t->mark_count)
			return true;
	}
	return false;
}

#endif
