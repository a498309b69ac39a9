// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The source of a decoder: the fast one (fast.c) or, if requested, the plain one, which
 * decodes the regions of a stream in order with the plain loop. It is the reference and
 * shares no code with the fast one.
 */
#include <stdlib.h>

#include "decoder/pt/fast.h"
#include "decoder/pt/parts.h"

#define PIECE_TOKENS 4096
#define PIECE_ITEMS  8192
#define PIECE_BYTES  (1u << 20)

struct vmpt_source {
	struct vmpt_options options;
	struct vmpt_parts *parts;      /* NULL: not in parts; owned */
	struct vmpt_fast_source *fast; /* NULL: the plain source, with the members below */
	const struct vmpt_stream *stream;
	u64 at, region_end;
	size_t gap; /* the next one */
	struct vmpt_scan_state state;
	struct vmpt_scan_out sink;
	bool at_head;
};

static u64 next_region_end(const struct vmpt_source *s)
{
	return s->gap < s->stream->gap_count ? s->stream->gaps[s->gap].offset : s->stream->size;
}

static int open_fast(struct vmpt_source **src, struct vmpt_source *s,
		     const struct vmpt_stream *stream, const struct vmpt_options *options,
		     bool items)
{
	int err = vmpt_fast_open(&s->fast, stream, options, items);

	if (err)
		free(s);
	else
		*src = s;
	return err;
}

int vmpt_source_open(struct vmpt_source **src, const struct vmpt_stream *stream,
		     const struct vmpt_options *options, bool items)
{
	struct vmpt_source *s;

	if (options && (options->guest_only > VMPT_GUEST_ONLY_NO ||
			(options->host_only && options->guest_only == VMPT_GUEST_ONLY_YES)))
		return -VMPT_E_INVAL;
	s = calloc(1, sizeof(*s));
	if (!s)
		return -VMPT_E_NOMEM;
	if (options)
		s->options = *options;
	if (!s->options.scalar)
		return open_fast(src, s, stream, options, items);
	s->stream = stream;
	s->sink.token_max = PIECE_TOKENS;
	s->sink.tokens = calloc(PIECE_TOKENS, sizeof(*s->sink.tokens));
	s->sink.item_max = PIECE_ITEMS;
	if (items) {
		s->sink.items = calloc(PIECE_ITEMS, sizeof(*s->sink.items));
		s->sink.token_items = calloc(PIECE_TOKENS, sizeof(*s->sink.token_items));
	}
	if (!s->sink.tokens || (items && (!s->sink.items || !s->sink.token_items))) {
		vmpt_source_close(s);
		return -VMPT_E_NOMEM;
	}
	s->region_end = next_region_end(s);
	s->at_head = true;
	*src = s;
	return 0;
}

void vmpt_source_time_only(struct vmpt_source *s)
{
	if (s->fast)
		vmpt_fast_time_only(s->fast);
}

void vmpt_source_take_parts(struct vmpt_source *s, struct vmpt_parts *parts)
{
	s->parts = parts;
}

void vmpt_source_close(struct vmpt_source *s)
{
	if (!s)
		return;
	vmpt_fast_close(s->fast);
	vmpt_parts_close(s->parts);
	free(s->sink.tokens);
	free(s->sink.token_items);
	free(s->sink.items);
	free(s);
}

static void put_loss(struct vmpt_source *s, u64 at, u64 size, unsigned int err)
{
	struct vmpt_scan_out *k = &s->sink;

	if (k->token_items)
		k->token_items[k->token_count] = k->token_items[k->token_count + 1] =
			(u32)k->item_count;
	k->tokens[k->token_count++] = VMPT_TOKEN(at, VMPT_TOKEN_LOSS);
	k->tokens[k->token_count++] = size << 6 | err;
	if (k->items)
		k->items[k->item_count++] = (struct vmpt_item){
			.kind = VMPT_ITEM_LOSS, .aux = (u8)err, .payload = size, .offset = 0
		};
}

/* The head of a region: the bytes lost before its first packet. */
static u64 start_region(struct vmpt_source *s)
{
	u64 from = s->at, psb;

	s->at_head = false;
	s->state = (struct vmpt_scan_state){ 0 };
	if (s->gap)
		put_loss(s, from, 0, VMPT_E_GAP);
	if (s->options.headless)
		return from;
	psb = vmpt_psb_find(s->stream->data, from, s->region_end);
	if (psb > from)
		put_loss(s, from, psb - from, VMPT_E_SYNC);
	return psb;
}

static int next_plain(struct vmpt_source *s, struct vmpt_piece *piece)
{
	u64 at;

	while (s->at == s->region_end) {
		if (s->region_end == s->stream->size)
			return 0;
		s->gap++;
		s->region_end = next_region_end(s);
		s->at_head = true;
	}
	s->sink.token_count = 0;
	s->sink.item_count = 0;
	at = s->at_head ? start_region(s) : s->at;
	/* A long loss is a piece of its own: items' offsets have 32 bits. */
	if (at - s->at < PIECE_BYTES)
		at = vmpt_scalar_scan(s->stream->data, at, s->at + PIECE_BYTES, s->region_end,
				      s->at, &s->state, &s->sink);
	*piece = (struct vmpt_piece){
		.start = s->at,
		.end = at,
		.region_end = s->region_end,
		.tokens = s->sink.tokens,
		.token_items = s->sink.token_items,
		.token_count = s->sink.token_count,
		.items = s->sink.items,
		.item_count = s->sink.item_count,
	};
	s->at = at;
	return 1;
}

int vmpt_source_next(struct vmpt_source *s, struct vmpt_piece *piece)
{
	int ret = s->parts  ? vmpt_parts_next(s->parts, piece)
		  : s->fast ? vmpt_fast_next(s->fast, piece)
			    : next_plain(s, piece);

	if (ret > 0 && s->options.progress)
		s->options.progress(s->options.progress_opaque, piece->end);
	return ret;
}
