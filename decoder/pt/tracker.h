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
	u8 size; /* 0: this entry is free */
	u8 tokens;
	u8 pip, vmcs, tsc; /* their offsets; 0: none */
	bool has_fup;
};

struct vmpt_psb_shapes {
	struct vmpt_psb_shape shape[VMPT_PSB_SHAPES];
	unsigned int next; /* the entry to be replaced next */
	unsigned int last; /* the entry that the last PSB+ had */
};

/* Whether the PSB+ at @p has this shape. The PSB itself is known: the first two words. */
static inline bool vmpt_psb_fits(const struct vmpt_psb_shape *shape, const u8 *p)
{
	u64 differ = 0;
	unsigned int i;

	/*
	 * All words, with an empty mask after the PSB+: a loop of constant length is a few
	 * vector instructions.
	 */
	for (i = 2; i < VMPT_PSB_SHAPE_WORDS; i++)
		differ |= (vmpt_load64(p + 8 * i) ^ shape->bytes[i]) & shape->mask[i];
	return !differ;
}

/* The only shape that the PSB+ at @p can have by its first word after the PSB, if any. */
static inline const struct vmpt_psb_shape *vmpt_psb_guess(const struct vmpt_psb_shapes *shapes,
							  const u8 *p)
{
	u64 word = vmpt_load64(p + 16);
	unsigned int n = 1u << (VMPT_PSB_SHAPES - 1);
	const struct vmpt_psb_shape *s = shapes->shape;

	_Static_assert(VMPT_PSB_SHAPES == 4, "each is compared, without a branch");
	n |= (unsigned int)!((word ^ s[0].bytes[2]) & s[0].mask[2]);
	n |= (unsigned int)!((word ^ s[1].bytes[2]) & s[1].mask[2]) << 1;
	n |= (unsigned int)!((word ^ s[2].bytes[2]) & s[2].mask[2]) << 2;
	return &s[__builtin_ctz(n)];
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

/*
 * The last PSB+ stated all facts, and since then nothing changed one but PIPs with the same NR:
 * those change CR3 alone, and a PSB+ that states the same says nothing new.
 */
struct vmpt_known {
	bool valid;
	u64 pip;  /* the last PIP, all its bytes */
	u64 vmcs; /* the VMCS packet's 7 bytes, in the high ones */
};

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
	bool no_cr3s;	  /* marks of CR3 are not wanted now; the reader of marks sets it */
	size_t token;	  /* index of the token applied last */
	unsigned int mark_count;
	struct vmpt_mark marks[VMPT_TRACKER_MARKS]; /* of the last token, by offset */
	struct vmpt_psb_shapes shapes;
	struct vmpt_known known;
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

/*
 * Whether a packet of a group (Table 33-14) is the last of it, by the 8 bytes after it: after at
 * most seven PADs there is what neither a packet of a group nor one of time begins with, an even
 * byte (TNT-8) but the escape byte, a packet with an IP, or a PSB. False: it may be.
 */
static inline bool vmpt_group_ends(u64 next)
{
	const u32 first = 0x55555555u | 1u << 0x0d | 1u << 0x11 | 1u << 0x01 | 1u << 0x1d;
	/* If there are PADs only, two is 0. */
	unsigned int pads = (unsigned int)__builtin_ctzll(next | 1ULL << 63) & ~7u;
	unsigned int two = next >> pads & 0xffff, ends;

	ends = first >> (two & 31) & (two != 0);
	return ends & (((two & 0xff) != VMPT_PT_ESCAPE) | (two == 0x8202));
}

/*
 * Whether the PIP at @at changes at most CR3, and is a group of its own or with one MODE.Exec,
 * which says nothing: then it makes no difference whether a TIP packet ends the group.
 */
static inline bool vmpt_pip_is_cr3(const struct vmpt_tracker *t, u64 at, u64 end)
{
	const u8 *p = t->data + at, *next = p + vmpt_pt_table[VMPT_PT_PIP].size;
	const struct vmpt_pt_desc *exec = &vmpt_pt_table[VMPT_PT_MODE_EXEC];
	u64 bytes;

	if (!t->known.valid || end - at < 40 || vmpt_pip_nr(p) != t->nr.value)
		return false;
	bytes = vmpt_load64(next);
	if (vmpt_group_ends(bytes))
		return true;
	next += (unsigned int)__builtin_ctzll(bytes | 1ULL << 63) / 8;
	return next[0] == exec->header[0] && (next[1] & exec->mask[1]) == exec->header[1] &&
	       vmpt_group_ends(vmpt_load64(next + exec->size));
}

/*
 * Whether the PSB+ at @p has this shape and states nothing new. If the shape has no PIP or no VMCS,
 * what is compared are bytes of the PSB or the one before; there is one, since facts are known.
 */
static inline bool vmpt_psb_is_known(const struct vmpt_tracker *t,
				     const struct vmpt_psb_shape *shape, const u8 *p)
{
	return vmpt_load64(p + shape->pip) == t->known.pip &&
	       vmpt_load64(p + shape->vmcs - 1) >> 8 == t->known.vmcs &&
	       !(shape->tsc && !t->owners_only) && vmpt_psb_fits(shape, p);
}

/* Returns the index of the first token from @i on that is to be applied, or their number. */
static inline size_t vmpt_tracker_skip(struct vmpt_tracker *t, const struct vmpt_piece *piece,
				       size_t i)
{
	const struct vmpt_psb_shape *shape;
	const u64 *tokens = piece->tokens;
	unsigned int kind;
	u64 at, pip;

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
			if (piece->region_end - at < 10 ||
			    !vmpt_group_ends(vmpt_load64(t->data + at +
							 vmpt_pt_table[VMPT_PT_MODE_EXEC].size)))
				return i;
			continue;
		case VMPT_PT_PIP:
			if (!vmpt_pip_is_cr3(t, at, piece->region_end))
				return i;
			pip = vmpt_load64(t->data + at);
			if (pip != t->known.pip && !t->no_cr3s)
				return i;
			t->known.pip = pip;
			t->cr3.value = vmpt_pip_cr3(t->data + at);
			continue;
		case VMPT_PT_PSB:
			if (!t->known.valid || piece->region_end - at < 8 * VMPT_PSB_SHAPE_WORDS)
				return i;
			shape = &t->shapes.shape[t->shapes.last];
			if (!vmpt_psb_is_known(t, shape, t->data + at)) {
				shape = vmpt_psb_guess(&t->shapes, t->data + at);
				if (!vmpt_psb_is_known(t, shape, t->data + at))
					return i;
				t->shapes.last = (unsigned int)(shape - t->shapes.shape);
			}
			t->skip = at + shape->size;
			/* If the piece ends before, skip is used. */
			if (shape->tokens < piece->token_count - i)
				i += shape->tokens;
			continue;
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
	u64 token;

	while ((*i = vmpt_tracker_skip(t, piece, *i)) < piece->token_count) {
		t->token = *i;
		token = tokens[(*i)++];
		t->skip_tokens = 0;
		if (vmpt_token_kind(token) == VMPT_TOKEN_LOSS)
			vmpt_tracker_apply(t, token, tokens[(*i)++], piece->region_end);
		else
			vmpt_tracker_apply(t, token, 0, piece->region_end);
		/* If the piece ends before, skip is used. */
		if (t->skip_tokens <= piece->token_count - *i)
			*i += t->skip_tokens;
		if (t->mark_count)
			return true;
	}
	return false;
}

#endif
