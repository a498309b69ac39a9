// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * RTIT's items of all packets: stage 1 steps over a run of TNTs and one packet at a time and
 * keeps where that packet is; stage 2 makes the items by the rows of their headers, the runs
 * between them and the tokens. With cycle counts hardly a TNT follows another: no runs then.
 */
#include "decoder/rtit/fast.h"

#ifdef __SSE2__
#include <emmintrin.h>
#define RUN_MAX 16
#else
#define RUN_MAX 8
#endif

struct place {
	u64 at;
	u32 *raw; /* offsets in the stream, low 32 bits */
};

#define RTIT_STEP_MAX (RUN_MAX + VMPT_RTIT_SIZE_MAX)
#define RTIT_RAW      u32
#define RTIT_RAW_MAX  VMPT_RTIT_PACKETS_RAW
#include "decoder/rtit/lanes.h"

/* How many of the bytes at @p are TNTs: 2 to 7FH. */
static always_inline unsigned int run_length(const u8 *p)
{
#ifdef __SSE2__
	__m128i v = _mm_loadu_si128((const __m128i *)p);
	__m128i tnt = _mm_cmpgt_epi8(v, _mm_set1_epi8(1));

	return (unsigned int)__builtin_ctz(~(unsigned int)_mm_movemask_epi8(tnt));
#else
	u64 v = vmpt_load64(p), ones = 0x0101010101010101ULL;
	/* 0 and 1 may set bits above their own, but never below. */
	u64 other = (v | (v - 2 * ones)) & ones << 7;

	return other ? (unsigned int)__builtin_ctzll(other) >> 3 : RUN_MAX;
#endif
}

static always_inline bool lane_step(const struct vmpt_rtit_fast *f, struct place *l,
				    const bool cycles)
{
	u64 at = l->at + (cycles ? 0 : run_length(f->data + l->at));
	const u8 *p = f->data + at;
	unsigned int step = f->packet_step[*p], size = step & VMPT_RTIT_STEP_SIZE, n = 0;

	*l->raw = (u32)at;
	l->raw += cycles ? 1 : step / VMPT_RTIT_STEP_KEEP;
	if (cycles)
		n = p[size] & step / (VMPT_RTIT_STEP_CYCLES / 3) & 3;
	l->at = at + size + n;
	return cycles ? n | (step & VMPT_RTIT_STEP_PLAIN) : step;
}

/* A step's run may end where the chunk does: its packet is the next chunk's then. */
static always_inline unsigned int lane_skip(const u8 *p, const bool cycles)
{
	return cycles ? 0 : run_length(p);
}

/* ---- stage 2 ---- */

static always_inline void put(struct vmpt_item *item, u64 payload, u64 meta)
{
	/* Both halves at once: little-endian, as all builds (arch/types.h). */
	u64 half[2] = { payload, meta };

	_Static_assert(sizeof(*item) == sizeof(half), "an item is 16 bytes");
	memcpy(item, half, sizeof(half));
}

#define META(offset, size, kind, aux) \
	((u64)(aux) << 56 | (u64)(kind) << 48 | (u64)(size) << 32 | (offset))

/* A run too long for one item. Returns the item behind it. */
static __attribute__((noinline)) struct vmpt_item *put_long_run(struct vmpt_item *item, u64 from,
								u64 to)
{
	u64 n;

	for (; from < to; from += n) {
		n = to - from < 65535 ? to - from : 65535;
		put(item++, 0, META(from, n, VMPT_ITEM_RTIT_RUN, 0));
	}
	return item;
}

/* What stands between two packets: a run or nothing. Returns the item behind it. */
static always_inline struct vmpt_item *put_run(struct vmpt_item *item, u64 from, u64 to)
{
	u64 n = to - from;

	if (unlikely(n > 65535))
		return put_long_run(item, from, to);
	put(item, 0, META(from, n, VMPT_ITEM_RTIT_RUN, 0));
	return item + (n != 0);
}

/* STS: bytes 1 to 6, and ACBR[5:2] of the header. */
static always_inline u64 sts_payload(u64 body, u64 fixed)
{
	return fixed | (body >> 8 & vmpt_mask64(40)) | (body >> 6 & 3) << 40 | (body & 0x3f) << 46;
}

/* What changes with each packet of a chunk, in registers; offsets count from its start. */
struct made {
	struct vmpt_item *item;
	struct vmpt_rtit_token *token;
	u64 end, last_lip;
	u32 prev_size, cycles;
};

/*
 * A packet that makes a token. False if it is none, or a FUP.BuffOvf that leans on a Last LIP
 * that there is not: the chunk's results end here.
 */
static always_inline bool put_token(struct vmpt_rtit_chunk *c, struct made *m,
				    const struct vmpt_rtit_row *row, u64 body, u64 at, bool run)
{
	u64 size = 0;

	if (row->kind == VMPT_RTIT_PSB) {
		if (body)
			return false;
		size = run ? 1 : m->prev_size;
	}
	if (row->kind == VMPT_RTIT_BUFF_OVF && row->keep)
		return false;
	*m->token++ = (struct vmpt_rtit_token){
		.at = c->span.start + at,
		.size = size,
		.item = (u32)(m->item - c->sink.items),
		.cycles = m->cycles,
		.kind = row->kind,
	};
	return true;
}

/* The packet's cycle count, if it has one. Returns its bytes. */
static always_inline unsigned int put_cycles(struct made *m, const u8 *p, u64 at,
					     const struct vmpt_rtit_row *row)
{
	u32 bytes = vmpt_load32(p + row->size);
	unsigned int n = bytes & row->cycles;
	u32 count = (bytes & count_mask[n]) >> 2;

	put(m->item, count,
	    META(at + row->size, n, VMPT_ITEM_RTIT_CYC, count ? VMPT_RTIT_AUX_BY(6) : 0));
	m->item += n != 0;
	m->cycles += count != 0;
	return n;
}

static always_inline void make_items(const struct vmpt_rtit_fast *f, struct lane *l,
				     const bool cycles)
{
	struct vmpt_rtit_chunk *c = l->chunk;
	struct made m = { .item = c->sink.items, .token = c->sink.tokens };
	const u8 *data = f->data + c->span.start, *p;
	const struct vmpt_rtit_row *row;
	u64 at, body, v, to = l->now.at - c->span.start;
	struct vmpt_item *behind;
	const u32 *raw;

	for (raw = l->raw_start; raw < l->now.raw; raw++) {
		at = (u32)(*raw - (u32)c->span.start);
		p = data + at;
		row = &f->rows[*p];
		body = vmpt_load64(p + 1);
		behind = m.item;
		if (!cycles)
			m.item = put_run(m.item, m.end, at);
		v = (body & row->mask) | (m.last_lip & row->keep) | row->fixed;
		if (unlikely(row->token)) {
			if (!put_token(c, &m, row, body, at, m.item != behind)) {
				m.prev_size = m.item != behind ? 1 : m.prev_size;
				m.end = to = at;
				c->refused = true;
				break;
			}
			if (row->kind == VMPT_RTIT_STS)
				v = sts_payload(body, row->fixed);
		}
		put(m.item++, v, row->meta + at);
		m.last_lip ^= (m.last_lip ^ v) & row->lip;
		m.prev_size = row->size;
		if (cycles)
			m.prev_size += put_cycles(&m, p, at, row);
		m.end = at + m.prev_size;
	}
	if (m.end < to)
		m.prev_size = 1;
	m.item = put_run(m.item, m.end, to);
	c->at = c->span.start + to;
	c->last_lip = m.last_lip;
	c->prev_size = m.prev_size;
	c->sink.cycles = m.cycles;
	c->sink.item_count = (size_t)(m.item - c->sink.items);
	c->sink.token_count = (size_t)(m.token - c->sink.tokens);
}

static void lane_finish(const struct vmpt_rtit_fast *f, struct lane *l)
{
	if (f->cycle_acc)
		make_items(f, l, true);
	else
		make_items(f, l, false);
}

void vmpt_rtit_packets_decode(const struct vmpt_rtit_fast *f, struct vmpt_rtit_chunk *chunks,
			      unsigned int count, u32 *raw)
{
	lanes_decode(f, chunks, count, raw);
}
