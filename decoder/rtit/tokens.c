// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * RTIT's tokens only: stage 1 steps over one packet at a time and keeps those that are tokens,
 * stage 2 makes tokens of them.
 */
#include "decoder/rtit/fast.h"

struct place {
	u64 at;
	struct vmpt_rtit_index_raw *raw;
	u32 prev_size, cycles;
};

#define RTIT_STEP_MAX VMPT_RTIT_SIZE_MAX
#define RTIT_RAW      struct vmpt_rtit_index_raw
#define RTIT_RAW_MAX  VMPT_RTIT_INDEX_RAW
#include "decoder/rtit/lanes.h"

/* The entry is stored always and kept if it counts. */
static always_inline bool lane_step(const struct vmpt_rtit_fast *f, struct place *l,
				    const bool cycles)
{
	const u8 *p = f->data + l->at;
	unsigned int step = f->index_step[*p], size = step & VMPT_RTIT_STEP_SIZE, n = 0;
	u32 bytes;

	*l->raw = (struct vmpt_rtit_index_raw){ l->at, l->prev_size, l->cycles };
	l->raw += step / VMPT_RTIT_STEP_KEEP;
	if (cycles) {
		bytes = vmpt_load32(p + size);
		n = bytes & step / (VMPT_RTIT_STEP_CYCLES / 3) & 3;
		l->cycles += (bytes & count_mask[n]) != 0;
	}
	l->prev_size = size + n;
	l->at += size + n;
	return cycles ? n | (step & VMPT_RTIT_STEP_PLAIN) : step;
}

static always_inline unsigned int lane_skip(const u8 *p, const bool cycles)
{
	(void)p;
	(void)cycles;
	return 0;
}

static void lane_finish(const struct vmpt_rtit_fast *f, struct lane *l)
{
	const struct vmpt_rtit_index_raw *raw = l->raw_start;
	struct vmpt_rtit_chunk *c = l->chunk;
	struct vmpt_rtit_token *token = c->sink.tokens;
	const u8 *p;

	c->prev_size = l->now.prev_size;
	c->sink.cycles = l->now.cycles;
	for (; raw < l->now.raw; raw++, token++) {
		p = f->data + raw->at;
		if (unlikely(*p == 0xc0 && vmpt_load64(p + 1))) {
			c->at = raw->at;
			c->refused = true;
			c->prev_size = raw->prev_size;
			c->sink.cycles = raw->cycles;
			break;
		}
		*token = (struct vmpt_rtit_token){
			.at = raw->at,
			.size = *p == 0xc0 ? raw->prev_size : 0,
			.cycles = raw->cycles,
			.kind = f->rows[*p].kind,
		};
	}
	c->sink.token_count = (size_t)(token - c->sink.tokens);
}

void vmpt_rtit_index_decode(const struct vmpt_rtit_fast *f, struct vmpt_rtit_chunk *chunks,
			    unsigned int count, struct vmpt_rtit_index_raw *raw)
{
	lanes_decode(f, chunks, count, raw);
}
