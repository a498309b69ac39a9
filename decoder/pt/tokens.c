// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Tokens only: stage 1 steps over one or two packets at a time and keeps the offsets
 * of those that may be tokens; stage 2 turns the offsets into tokens in place.
 */
#include "decoder/pt/fast.h"

#define LANES_ITEMS    0
#define LANES_STEP_MAX VMPT_PT_SIZE_MAX
#define LANES_ENTRY    u8
#include "decoder/pt/lanes.h"

static always_inline const u8 *lanes_table(const struct vmpt_fast *f)
{
	(void)f;
	return vmpt_index_table.step;
}

/* Always store the offset, and keep it if it is a token's: only the slow path needs a branch. */
static always_inline unsigned int lanes_step(const u8 *data, const u8 *table, struct scan_place *l,
					     bool runs)
{
	unsigned int step = table[vmpt_load16(data + l->at)];

	(void)runs;
	*l->raw = l->at;
	l->raw += step / VMPT_STEP_TOKEN;
	l->at += step & VMPT_STEP_SIZE;
	return step;
}

/* No step over two packets ends with an escape byte, as a PSB begins with one. */
static always_inline unsigned int lanes_skip(const u8 *p)
{
	(void)p;
	return 0;
}

/* Returns the offset of the first of the @n packets that has a wrong header, or @at. */
static always_inline u64 check(const struct vmpt_fast *f, const u64 *offsets, unsigned int n,
			       u64 at)
{
	unsigned int i;

	for (i = 0; i < n; i++)
		if (unlikely(vmpt_header_wrong(f->data + offsets[i])))
			return offsets[i];
	return at;
}

/*
 * Tokens of [@raw, @stop) to *@token, which moves on. The packets whose header is longer than two
 * bytes go to @long_ones, their number is returned. @many, a constant: a branch for each would
 * often be mispredicted.
 */
static always_inline unsigned int make_some(const u8 *data, const u64 *raw, const u64 *stop,
					    u64 **token, u64 *long_ones, bool many)
{
	unsigned int kind, n = 0;
	u64 offset, *to = *token;

	for (; raw < stop; raw++) {
		offset = *raw;
		if (unlikely(offset & RAW_DONE)) {
			*to++ = offset & ~RAW_DONE;
			continue;
		}
		kind = vmpt_index_table.kind[vmpt_kind_key(data + offset)];
		if (many || unlikely(kind & VMPT_KIND_LONG)) {
			long_ones[n] = offset;
			n += kind / VMPT_KIND_LONG;
		}
		*to = offset << 6 | (kind & 63);
		to += !(kind & VMPT_KIND_SILENT);
	}
	*token = to;
	return n;
}

/* Returns the offset of a packet with a wrong header, which ends the chunk, or @at. */
static u64 make_tokens(const struct vmpt_fast *f, struct vmpt_scan_out *sink, size_t raws, u64 at)
{
	u64 *tokens = sink->tokens, *token = tokens, *raw = tokens, *raw_end = raw + raws, *stop;
	u64 long_ones[VMPT_CHECK_EVERY], wrong;
	unsigned int n = 0;

	for (; raw < raw_end; raw = stop) {
		stop = raw_end - raw < VMPT_CHECK_EVERY ? raw_end : raw + VMPT_CHECK_EVERY;
		n = n > VMPT_CHECK_EVERY / 16
			    ? make_some(f->data, raw, stop, &token, long_ones, true)
			    : make_some(f->data, raw, stop, &token, long_ones, false);
		wrong = check(f, long_ones, n, at);
		if (unlikely(wrong != at)) {
			token = tokens +
				vmpt_tokens_before(tokens, (size_t)(token - tokens), wrong);
			at = wrong;
			break;
		}
	}
	sink->token_count = (size_t)(token - tokens);
	return at;
}

static void lane_finish(const struct vmpt_fast *f, struct scan_lane *l)
{
	struct vmpt_chunk *c = l->chunk;

	lane_end(f, l);
	c->at = make_tokens(f, &c->sink, (size_t)(l->now.raw - l->raw_start), l->now.at);
	/* Tokens do not need Last IP. A refused packet is not in a block. */
	c->state = (struct vmpt_scan_state){ .block = c->at == l->now.at ? l->block : 0 };
	chunk_end(f, l, c->at != l->now.at);
}

void vmpt_index_decode(const struct vmpt_fast *f, struct vmpt_chunk *chunks, unsigned int count)
{
	struct scan_lane lane[VMPT_LANES_MAX];
	unsigned int i, active = 0, next = 0;
	struct vmpt_chunk *c;

	while (active || next < count) {
		while (active < f->lanes && next < count) {
			c = &chunks[next++];
			lane_begin(f, &lane[active++], c, c->sink.tokens, VMPT_INDEX_RAW);
		}
		lanes_run[0][active - 1](f, lane);
		for (i = active; i-- > 0;) {
			if (lane_steps(&lane[i], &lane[i].now) >= LANES_FEW)
				continue;
			lane_finish(f, &lane[i]);
			lane[i] = lane[--active];
		}
	}
}
