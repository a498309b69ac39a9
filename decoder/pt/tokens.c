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

/* Returns the offset of a packet with a wrong header, which ends the chunk, or @at. */
static u64 make_tokens(const struct vmpt_fast *f, struct vmpt_scan_out *sink, size_t raws, u64 at)
{
	u64 *tokens = sink->tokens, raw;
	unsigned int kind;
	size_t i, n = 0;
	const u8 *p;

	for (i = 0; i < raws; i++) {
		raw = tokens[i];
		if (unlikely(raw & RAW_DONE)) {
			tokens[n++] = raw & ~RAW_DONE;
			continue;
		}
		p = f->data + raw;
		kind = vmpt_index_table.kind[vmpt_kind_key(p)];
		if (unlikely(vmpt_header_wrong(p, kind))) {
			at = raw;
			break;
		}
		tokens[n] = VMPT_TOKEN(raw, kind);
		n += kind != VMPT_PT_MNT;
	}
	sink->token_count = n;
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
