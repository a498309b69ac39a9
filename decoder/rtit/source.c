// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* The source of an RTIT decoder: the regions of a stream in order, by scan.c. */
#include <stdlib.h>

#include "decoder/rtit/rtit.h"

#define PIECE_TOKENS 4096
#define PIECE_ITEMS  8192
#define PIECE_BYTES  (1u << 20)

struct vmpt_rtit_source {
	struct vmpt_options options;
	const struct vmpt_stream *stream;
	bool cycle_acc;
	u64 at, region_end;
	size_t gap; /* the next one */
	bool at_head;
	struct vmpt_rtit_state state;
	struct vmpt_rtit_scan_out sink;
};

static u64 next_region_end(const struct vmpt_rtit_source *s)
{
	const struct vmpt_stream *t = s->stream;
	u64 end = t->size;

	if (s->gap < t->gap_count && t->gaps[s->gap].offset < end)
		end = t->gaps[s->gap].offset;
	return end < s->at ? s->at : end;
}

int vmpt_rtit_source_open(struct vmpt_rtit_source **src, const struct vmpt_stream *stream,
			  const struct vmpt_options *options, bool items)
{
	struct vmpt_rtit_source *s = calloc(1, sizeof(*s));

	if (!s)
		return -VMPT_E_NOMEM;
	s->options = *options;
	s->stream = stream;
	s->cycle_acc = vmpt_rtit_has_cycles(stream, options);
	s->region_end = next_region_end(s);
	s->at_head = true;
	s->sink.token_max = PIECE_TOKENS;
	s->sink.tokens = calloc(PIECE_TOKENS, sizeof(*s->sink.tokens));
	s->sink.item_max = PIECE_ITEMS;
	if (items)
		s->sink.items = calloc(PIECE_ITEMS, sizeof(*s->sink.items));
	if (!s->sink.tokens || (items && !s->sink.items)) {
		vmpt_rtit_source_close(s);
		return -VMPT_E_NOMEM;
	}
	*src = s;
	return 0;
}

void vmpt_rtit_source_close(struct vmpt_rtit_source *s)
{
	if (!s)
		return;
	free(s->sink.tokens);
	free(s->sink.items);
	free(s);
}

bool vmpt_rtit_source_cycles(const struct vmpt_rtit_source *s)
{
	return s->cycle_acc;
}

/* The head of a region: the bytes lost before its first packet. */
static u64 start_region(struct vmpt_rtit_source *s)
{
	u64 from = s->at, psb;

	s->at_head = false;
	if (s->gap)
		vmpt_rtit_put_loss(&s->sink, &s->state, from, 0, VMPT_E_GAP, from);
	if (s->options.headless)
		return from;
	psb = vmpt_rtit_psb_find(s->stream->data, from, s->region_end);
	if (psb > from)
		vmpt_rtit_put_loss(&s->sink, &s->state, from, psb - from, VMPT_E_SYNC, from);
	return psb;
}

int vmpt_rtit_source_next(struct vmpt_rtit_source *s, struct vmpt_rtit_piece *piece)
{
	u64 at;

	while (s->at == s->region_end) {
		if (s->region_end >= s->stream->size)
			return 0;
		s->gap++;
		s->region_end = next_region_end(s);
		s->at_head = true;
	}
	s->sink.token_count = s->sink.item_count = s->sink.cycles = 0;
	at = s->at_head ? start_region(s) : s->at;
	/* A long loss is a piece of its own: items' offsets have 32 bits. */
	if (at - s->at < PIECE_BYTES)
		at = vmpt_rtit_scan(s->stream->data, s->cycle_acc, at, s->at + PIECE_BYTES,
				    s->region_end, s->at, &s->state, &s->sink);
	*piece = (struct vmpt_rtit_piece){
		.start = s->at,
		.end = at,
		.region_end = s->region_end,
		.tokens = s->sink.tokens,
		.token_count = s->sink.token_count,
		.items = s->sink.items,
		.item_count = s->sink.item_count,
		.cycles = s->sink.cycles,
	};
	s->at = at;
	if (s->options.progress)
		s->options.progress(s->options.progress_opaque, at);
	return 1;
}
