// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* From RTIT's tokens to slices: maximal runs of bytes of one owner. */
#include <stdlib.h>

#include "decoder/isa.h"
#include "decoder/rtit/rtit.h"

/* Slices that one token can finish: the one before a loss, and the loss. */
#define READY_MAX 2

static const struct vmpt_rtit_last_lip not_known;

struct rtit_splitter {
	struct vmpt_splitter base;
	struct vmpt_rtit_source *source;
	const struct vmpt_stream *stream;
	struct vmpt_rtit_piece piece;
	size_t token;
	bool done;
	struct vmpt_slice slice; /* size is not set yet */
	struct vmpt_slice ready[READY_MAX];
	struct vmpt_rtit_last_lip ready_last[READY_MAX]; /* at their ends */
	unsigned int ready_first, ready_count;
	struct vmpt_rtit_tracker tracker;
};

static void begin(struct rtit_splitter *s, u64 at, enum vmpt_begin cause)
{
	s->slice = (struct vmpt_slice){ .offset = at, .begin = (u8)cause };
	s->slice.owner = s->tracker.owner;
}

static int open_splitter(struct vmpt_splitter **split, const struct vmpt_stream *stream,
			 const struct vmpt_options *options)
{
	struct rtit_splitter *s = calloc(1, sizeof(*s));
	int err;

	if (!s)
		return -VMPT_E_NOMEM;
	err = vmpt_rtit_source_open(&s->source, stream, options, vmpt_rtit_by_time(options));
	if (err) {
		free(s);
		return err;
	}
	s->stream = stream;
	vmpt_rtit_tracker_init(&s->tracker, stream->data, vmpt_rtit_source_cycles(s->source),
			       options);
	begin(s, 0, VMPT_BEGIN_START);
	*split = &s->base;
	return 0;
}

static void close_splitter(struct vmpt_splitter *split)
{
	struct rtit_splitter *s = (struct rtit_splitter *)split;

	vmpt_rtit_source_close(s->source);
	free(s);
}

static void emit(struct rtit_splitter *s, const struct vmpt_slice *slice, u64 end,
		 struct vmpt_rtit_last_lip last)
{
	unsigned int i = s->ready_first + s->ready_count;

	/* An empty stretch has no owner; an empty loss is a gap to be reported. */
	if (end == slice->offset && slice->begin != VMPT_BEGIN_LOSS)
		return;
	s->ready[i] = *slice;
	s->ready[i].size = end - slice->offset;
	s->ready_last[i] = last;
	s->ready_count++;
}

/* The tracker's counts belong to the open slice. */
static void take_errata(struct rtit_splitter *s)
{
	unsigned int i;

	for (i = 0; i <= VMPT_RTIT_ERRATA; i++) {
		s->slice.errata[i] += s->tracker.errata[i];
		s->tracker.errata[i] = 0;
	}
}

static void on_loss(struct rtit_splitter *s, const struct vmpt_rtit_token *token)
{
	emit(s, &s->slice, token->at, token->last);
	begin(s, token->at, VMPT_BEGIN_LOSS);
	s->slice.owner = (struct vmpt_owner){ .sure = VMPT_UNKNOWN };
	s->slice.loss = token->err;
	emit(s, &s->slice, token->at + token->size, not_known);
	begin(s, token->at + token->size, VMPT_BEGIN_START);
}

static enum vmpt_begin begin_of(const struct vmpt_owner *from, const struct vmpt_owner *to)
{
	bool was = from->kind == VMPT_OWNER_VM || from->kind == VMPT_OWNER_VM_ANY;
	bool is = to->kind == VMPT_OWNER_VM || to->kind == VMPT_OWNER_VM_ANY;

	return was == is ? VMPT_BEGIN_SWITCH : is ? VMPT_BEGIN_ENTRY : VMPT_BEGIN_EXIT;
}

static void on_owner(struct rtit_splitter *s, const struct vmpt_rtit_token *token)
{
	struct vmpt_owner from = s->slice.owner;

	if (vmpt_owner_same(&from, &s->tracker.owner)) {
		if (s->tracker.owner.sure > from.sure)
			s->slice.owner.sure = s->tracker.owner.sure;
		return;
	}
	emit(s, &s->slice, token->at, token->last);
	begin(s, token->at, begin_of(&from, &s->tracker.owner));
}

/* Payloads of packets that are known to be complete; 8 bytes need not be readable. */
static u64 bytes_at(const u8 *p, unsigned int n)
{
	u64 v = 0;

	memcpy(&v, p, n);
	return v;
}

static void count(struct rtit_splitter *s, const struct vmpt_rtit_token *token)
{
	const u8 *p = s->stream->data + token->at;

	switch (token->kind) {
	case VMPT_RTIT_PGE:
		s->slice.enables++;
		break;
	case VMPT_RTIT_PGD:
		s->slice.disables += !s->tracker.ignored;
		break;
	case VMPT_RTIT_BUFF_OVF:
		s->slice.overflows++;
		break;
	case VMPT_RTIT_PSB:
		s->slice.last_psb = token->at;
		break;
	case VMPT_RTIT_PIP:
		if (p[0] & 1)
			slice_add_cr3(&s->slice, bytes_at(p + 1, 5));
		break;
	case VMPT_RTIT_STS:
		slice_add_tsc(&s->slice, bytes_at(p + 2, 5));
		break;
	}
}

static void take_token(struct rtit_splitter *s)
{
	const struct vmpt_rtit_token *token = &s->piece.tokens[s->token++];
	bool changed = vmpt_rtit_tracker_take(&s->tracker, &s->piece, token);

	/* E6 is of the packets before the token: it counts for their owner. */
	s->slice.errata[6] += s->tracker.errata[6];
	s->tracker.errata[6] = 0;
	if (token->kind == VMPT_RTIT_TOKEN_LOSS) {
		on_loss(s, token);
		return;
	}
	if (changed)
		on_owner(s, token);
	take_errata(s);
	count(s, token);
}

/* One more token, or the next piece. 0: done; or a negative error. */
static int step(struct rtit_splitter *s)
{
	int ret;

	if (s->token < s->piece.token_count) {
		take_token(s);
		return 1;
	}
	vmpt_rtit_tracker_end(&s->tracker, &s->piece);
	take_errata(s);
	ret = vmpt_rtit_source_next(s->source, &s->piece);
	s->token = 0;
	if (ret > 0) {
		vmpt_rtit_tracker_piece(&s->tracker, &s->piece);
	} else {
		s->piece = (struct vmpt_rtit_piece){ 0 };
		s->done = true;
	}
	if (!ret)
		emit(s, &s->slice, s->stream->size, not_known);
	return ret;
}

static int next_slice(struct vmpt_splitter *split, struct vmpt_slice *slice)
{
	struct rtit_splitter *s = (struct rtit_splitter *)split;
	int ret = 1;

	if (!s->ready_count)
		s->ready_first = 0;
	while (!s->ready_count) {
		if (s->done)
			return 0;
		ret = step(s);
		if (ret < 0)
			return ret;
	}
	*slice = s->ready[s->ready_first++];
	s->ready_count--;
	return 1;
}

const struct vmpt_rtit_last_lip *vmpt_rtit_split_last_lip(const struct vmpt_splitter *split)
{
	const struct rtit_splitter *s = (const struct rtit_splitter *)split;

	return &s->ready_last[s->ready_first - 1];
}

const struct vmpt_splitter_ops vmpt_rtit_splitter_ops = {
	.open = open_splitter,
	.next = next_slice,
	.close = close_splitter,
};
