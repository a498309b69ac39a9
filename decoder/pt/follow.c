// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Slices along with a reader's own packets; see follow.h. Tokens of the reader go through tracker
 * and slicer as the splitter's do. TSCs are left out: they matter only while the owner is in doubt,
 * when packets are read ahead by the plain loop.
 */
#include <stdlib.h>

#include "decoder/pt/follow.h"

/* Bytes that are read ahead to settle a doubt, and at once. */
#define AHEAD  4096u
#define STEP   32u
#define TOKENS (2 * STEP)

/* Apply the token, and the second word of a loss. Whether it made marks. */
static bool take(struct vmpt_follow *f, const u64 *tokens, size_t count)
{
	struct vmpt_piece piece = {
		.region_end = f->stream->size,
		.tokens = tokens,
		.token_count = count,
	};
	size_t n = 0;

	return vmpt_tracker_take(&f->tracker, &piece, &n);
}

static void slice_marks(struct vmpt_follow *f)
{
	unsigned int i;

	for (i = 0; i < f->tracker.mark_count; i++)
		vmpt_slicer_take(&f->slicer, &f->tracker.marks[i], f->tracker.given);
}

static void take_loss(struct vmpt_follow *f, u64 at, u64 end, unsigned int err)
{
	u64 tokens[] = { VMPT_TOKEN(at, VMPT_TOKEN_LOSS), (end - at) << 6 | err };

	if (take(f, tokens, 2))
		slice_marks(f);
	f->seen = end;
}

static void finish(struct vmpt_follow *f)
{
	vmpt_slicer_finish(&f->slicer, f->tracker.given);
	f->finished = true;
	f->seen = ~0ULL;
}

/* Read packets from @at on until there is no doubt. False: they are too many. */
static bool settle(struct vmpt_follow *f, u64 at, unsigned int block)
{
	u64 end = f->stream->size, stop = end - at < AHEAD ? end : at + AHEAD;
	struct vmpt_scan_state state = { .block = block };
	u64 tokens[TOKENS];
	size_t i, n;

	while (at < stop) {
		struct vmpt_scan_out out = { .tokens = tokens, .token_max = TOKENS };

		at = vmpt_scalar_scan(f->stream->data, at, stop - at < STEP ? stop : at + STEP, end,
				      at, &state, &out);
		for (i = 0; i < out.token_count; i += n) {
			n = vmpt_token_kind(tokens[i]) == VMPT_TOKEN_LOSS ? 2 : 1;
			if (take(f, &tokens[i], n))
				slice_marks(f);
			f->seen = vmpt_token_offset(tokens[i]) + 1;
			if (n == 2)
				f->seen += (tokens[i + 1] >> 6) - 1;
			if (!f->slicer.doubting)
				return true;
		}
	}
	if (at < end)
		return false;
	finish(f);
	return true;
}

/* From @at on slices are the splitter's. */
static u64 give_up(struct vmpt_follow *f, u64 at)
{
	if (!f->splitter && !f->part &&
	    vmpt_pt_splitter_ops.open(&f->splitter, f->stream, &f->options))
		f->splitter = NULL;
	f->splits = f->splitter;
	f->stuck = f->part;
	f->slicer.ready_count = 0;
	f->finished = true;
	f->seen = ~0ULL;
	f->end = at;
	return at;
}

static bool is_now(const struct vmpt_follow *f, const struct vmpt_slice *s)
{
	return s->begin != VMPT_BEGIN_LOSS && s->offset == f->now.offset &&
	       vmpt_owner_same(&s->owner, &f->now.owner);
}

/* What the marks of the packet at @at did to the slice that the reader is in. */
static u64 end_now(struct vmpt_follow *f, u64 at)
{
	const struct vmpt_slicer *s = &f->slicer;
	const struct vmpt_slice *first = &s->ready[s->ready_first];

	if (s->ready_count)
		f->end = is_now(f, first) ? first->offset + first->size : at;
	else if (!is_now(f, &s->slice))
		f->end = at; /* it would have been empty */
	return f->end;
}

/* Whether all that the packet at @at did is to begin a slice there, which it then has. */
static bool begins_slice(struct vmpt_follow *f, u64 at)
{
	const struct vmpt_mark *m = &f->tracker.marks[0];
	struct vmpt_slice *s = &f->slicer.slice;

	if (f->tracker.mark_count != 1 || m->kind != VMPT_MARK_OWNER || m->offset != at ||
	    m->owner.sure == VMPT_UNCERTAIN || f->slicer.doubting || f->slicer.ready_count)
		return false;
	s->offset = f->now.offset = at;
	s->owner = f->now.owner = m->owner;
	s->begin = f->now.begin = m->cause;
	return true;
}

u64 vmpt_follow_packet(struct vmpt_follow *f, u64 at, unsigned int kind, unsigned int size,
		       unsigned int block, const struct vmpt_owner **owner)
{
	u64 token = VMPT_TOKEN(at, kind);

	if (at < f->seen)
		return f->end;
	f->seen = at + 1;
	if (!take(f, &token, 1))
		return f->end;
	if (begins_slice(f, at)) {
		*owner = &f->now.owner;
		return f->end;
	}
	slice_marks(f);
	if (f->slicer.doubting && !settle(f, at + size, block))
		return give_up(f, at);
	return end_now(f, at);
}

u64 vmpt_follow_error(struct vmpt_follow *f, u64 at, int err)
{
	if (at < f->seen)
		return f->end;
	take_loss(f, at, vmpt_psb_find(f->stream->data, at + 1, f->stream->size),
		  (unsigned int)-err);
	return end_now(f, at);
}

bool vmpt_follow_same_psb(const struct vmpt_follow *f, u64 at)
{
	return f->splits || (f->seen == at + 1 && f->tracker.known.valid);
}

/* ---- slices ---- */

/* Whether some of @s comes at or after @at, to which it is cut. */
static bool cut(struct vmpt_slice *s, u64 at)
{
	if (s->begin == VMPT_BEGIN_LOSS && s->offset >= at)
		return true;
	if (s->offset + s->size <= at)
		return false;
	if (s->offset < at) {
		s->size -= at - s->offset;
		s->offset = at;
	}
	return true;
}

static int next_of_splitter(struct vmpt_follow *f, u64 at, struct vmpt_slice *slice)
{
	int ret = 1;

	/* The last one again, if the reader was elsewhere and came back. */
	*slice = f->split;
	if (f->split.begin == VMPT_BEGIN_LOSS || !cut(slice, at))
		do {
			ret = vmpt_pt_splitter_ops.next(f->splitter, slice);
			if (ret > 0)
				f->split = *slice;
		} while (ret > 0 && !cut(slice, at));
	if (ret > 0)
		f->end = slice->offset + slice->size;
	return ret;
}

int vmpt_follow_next(struct vmpt_follow *f, u64 at, struct vmpt_slice *slice)
{
	if (f->splits)
		return next_of_splitter(f, at, slice);
	if (at >= f->stream->size && !f->finished)
		finish(f);
	while (vmpt_slicer_next(&f->slicer, slice)) {
		f->now = *slice;
		f->end = slice->offset + slice->size;
		if (cut(slice, at))
			return 1;
	}
	if (f->finished)
		return at < f->stream->size ? -VMPT_E_NOMEM : 0;
	f->now = *slice = f->slicer.slice;
	f->end = f->stream->size;
	slice->size = f->end - slice->offset;
	cut(slice, at);
	return 1;
}

/* ---- opening ---- */

/* The head of the stream, as the splitter's source has it. */
static void begin(struct vmpt_follow *f)
{
	const struct vmpt_stream *s = f->stream;
	u64 psb;

	if (f->options.headless)
		return;
	psb = vmpt_psb_find(s->data, 0, s->size);
	if (psb)
		take_loss(f, 0, psb, VMPT_E_SYNC);
}

static void reset(struct vmpt_follow *f)
{
	vmpt_tracker_init(&f->tracker, f->stream->data, &f->options, true);
	vmpt_slicer_init(&f->slicer, f->stream, &f->tracker.owner);
	f->now = f->slicer.slice;
	f->splits = f->finished = f->stuck = false;
}

int vmpt_follow_open(struct vmpt_follow **follow, const struct vmpt_stream *stream,
		     const struct vmpt_options *options)
{
	struct vmpt_follow *f;

	if (options->guest_only > VMPT_GUEST_ONLY_NO ||
	    (options->host_only && options->guest_only == VMPT_GUEST_ONLY_YES))
		return -VMPT_E_INVAL;
	f = calloc(1, sizeof(*f));
	if (!f)
		return -VMPT_E_NOMEM;
	f->stream = stream;
	f->options = *options;
	reset(f);
	if (stream->gap_count)
		give_up(f, 0);
	else
		begin(f);
	*follow = f;
	return 0;
}

void vmpt_follow_close(struct vmpt_follow *f)
{
	if (f && f->splitter)
		vmpt_pt_splitter_ops.close(f->splitter);
	free(f);
}

/* ---- parts of a stream ---- */

void vmpt_follow_part(struct vmpt_follow *f, u64 at, const struct vmpt_follow_habit *habit)
{
	struct vmpt_tracker *t = &f->tracker;

	reset(f);
	t->seen_root = habit->seen_root;
	if (t->given && habit->has_vm) {
		t->given = false;
		t->nr.sure = VMPT_UNKNOWN;
		t->owner = (struct vmpt_owner){ .kind = VMPT_OWNER_UNKNOWN, .sure = VMPT_UNKNOWN };
	}
	vmpt_slicer_init(&f->slicer, f->stream, &t->owner);
	f->slicer.slice.offset = at;
	f->now = f->slicer.slice;
	f->seen = at;
	f->end = f->stream->size;
	f->part = true;
}

void vmpt_follow_set(struct vmpt_follow *f, const struct vmpt_follow *from)
{
	struct vmpt_splitter *splitter = f->splitter;
	const struct vmpt_slice split = f->split;

	*f = *from;
	f->splitter = splitter;
	f->split = split;
	f->part = false;
	/* @from has one of its own. */
	if (f->splits && !f->splitter &&
	    vmpt_pt_splitter_ops.open(&f->splitter, f->stream, &f->options))
		f->splitter = NULL;
	f->splits = f->splits && f->splitter;
}

bool vmpt_follow_stuck(const struct vmpt_follow *f)
{
	return f->stuck;
}

static bool same_fact(const struct vmpt_fact *a, const struct vmpt_fact *b)
{
	return a->sure == b->sure && (a->value == b->value || a->sure == VMPT_UNKNOWN);
}

/* Nothing is read ahead or held back at @at, and no group or PSB+ goes on there. */
static bool is_even(const struct vmpt_follow *f, u64 at)
{
	const struct vmpt_tracker *t = &f->tracker;

	return f->seen <= at && !f->slicer.doubting && !f->slicer.ready_count && !t->pause &&
	       t->skip <= at && t->alone <= at && !t->after_pgd && t->nr.sure != VMPT_UNCERTAIN &&
	       t->vmcs.sure != VMPT_UNCERTAIN;
}

/* The PSB+ says all that the splitter's tracker may have known, and the rest holds for good. */
static bool same_as_splits(const struct vmpt_follow *a, const struct vmpt_follow *b)
{
	const struct vmpt_tracker *x = &a->tracker, *y = &b->tracker;

	return y->nr.sure == VMPT_KNOWN && y->vmcs.sure == VMPT_KNOWN &&
	       y->cr3.sure == VMPT_KNOWN && vmpt_owner_same(&a->split.owner, &b->now.owner) &&
	       y->seen_root == x->seen_root &&
	       (x->seen_root || a->options.guest_only != VMPT_GUEST_ONLY_AUTO) &&
	       y->given == x->given && (!x->given || x->given_nr);
}

bool vmpt_follow_same(const struct vmpt_follow *a, const struct vmpt_follow *b, u64 at)
{
	const struct vmpt_tracker *x = &a->tracker, *y = &b->tracker;

	if (b->splits || !is_even(b, at))
		return false;
	if (a->splits)
		return same_as_splits(a, b);
	return is_even(a, at) && same_fact(&x->nr, &y->nr) && same_fact(&x->vmcs, &y->vmcs) &&
	       same_fact(&x->cr3, &y->cr3) && x->given == y->given &&
	       x->seen_root == y->seen_root && vmpt_owner_same(&x->owner, &y->owner) &&
	       x->owner.sure == y->owner.sure && vmpt_owner_same(&a->now.owner, &b->now.owner);
}

void vmpt_follow_habit(const struct vmpt_follow *f, struct vmpt_follow_habit *habit)
{
	*habit = (struct vmpt_follow_habit){ f->tracker.seen_root, !f->tracker.given };
}
