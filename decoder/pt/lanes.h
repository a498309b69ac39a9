/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The lane loop of the fast source, inline for its two users, tokens.c and packets.c.
 * Finding the next packet is one chain of dependent loads; several lanes, each in its
 * own chunk, hide its latency. A lane's only state is its place: stage 2 interprets the
 * packets.
 *
 * A user defines, before including this file:
 *   LANES_ITEMS     1: all packets are wanted, 0: tokens only
 *   LANES_STEP_MAX  maximum bytes of one step
 *   LANES_ENTRY     type of its table's entries
 * and after including it lanes_table(), lanes_step() and lanes_skip(): see tokens.c.
 */
#ifndef VMPT_DECODER_LANES_H
#define VMPT_DECODER_LANES_H

#include "decoder/pt/fast.h"

/*
 * Raw entries. Index: a packet's offset in the stream, or a whole token (or the
 * second half of a loss) marked by the top bit. Items: offset << 8 | row.
 */
#define RAW_DONE (1ULL << 63)

/* State that changes with each step, kept in registers. */
struct scan_place {
	u64 at;
	u64 *raw;
};

struct scan_lane {
	struct scan_place now;
	u64 end; /* of fast decoding: VMPT_FAST_GUARD bytes after it can be read */
	u64 *raw_start, *raw_end;
	struct vmpt_scan_state first; /* at the chunk's start */
	unsigned int block;
	struct vmpt_chunk *chunk;
};

#define likely(x)     __builtin_expect(!!(x), 1)
#define unlikely(x)   __builtin_expect(!!(x), 0)
#define always_inline inline __attribute__((always_inline))

/* ---- cases that a step does not handle ---- */

/* Bytes of a valid CYC of three bytes or more whose first 16 can be read, or 0. */
static always_inline unsigned int long_cyc(const u8 *p)
{
	u64 stop = ~vmpt_load64(p + 1) & 0x0101010101010101ULL;

	if ((p[0] & 0x07) != 0x07 || !stop)
		return 0;
	return 2 + ((unsigned int)__builtin_ctzll(stop) >> 3);
}

static always_inline bool is_kind(const u8 *p, unsigned int kind)
{
	const struct vmpt_pt_desc *d = &vmpt_pt_table[kind];

	return (p[0] & d->mask[0]) == d->header[0] && (p[1] & d->mask[1]) == d->header[1];
}

static void lane_loss(const struct vmpt_fast *f, struct scan_lane *l, int err)
{
	u64 next = vmpt_psb_find(f->data, l->now.at + 1, l->chunk->span.region_end);

	if (LANES_ITEMS) {
		*l->now.raw++ = l->now.at << 8 | VMPT_ROW_LOSS;
		*l->now.raw++ = next - l->now.at;
		*l->now.raw++ = (unsigned int)-err;
	} else {
		*l->now.raw++ = RAW_DONE | VMPT_TOKEN(l->now.at, VMPT_TOKEN_LOSS);
		*l->now.raw++ = RAW_DONE | (next - l->now.at) << 6 | (unsigned int)-err;
	}
	l->block = 0;
	l->now.at = next;
}

static always_inline unsigned int bip_row(u8 header, unsigned int item_size)
{
	return (item_size == 4 ? VMPT_ROW_BIP4 : VMPT_ROW_BIP8) + (header >> 3);
}

/* Add the raw entry of the packet at @p, which is in the table. */
static always_inline void lane_put(struct scan_lane *l, const u8 *p)
{
	if (LANES_ITEMS)
		*l->now.raw++ = l->now.at << 8 | vmpt_packet_table.step[vmpt_packet_key(p)] >> 8;
}

/* One packet of any kind, or a loss: the slow path. */
static void lane_any(const struct vmpt_fast *f, struct scan_lane *l)
{
	const u8 *p = f->data + l->now.at;
	struct vmpt_pt_packet pkt;
	unsigned int row;
	int err;

	err = vmpt_pt_decode(&pkt, p, l->chunk->span.region_end - l->now.at, l->block);
	if (err == -VMPT_E_PSB) {
		/* In a block. Stage 2 refuses it, as it does outside. */
		if (LANES_ITEMS)
			lane_put(l, p);
		else
			*l->now.raw++ = l->now.at;
		l->block = 0;
		l->now.at += VMPT_PT_SIZE_MAX;
		return;
	}
	if (err) {
		lane_loss(f, l, err);
		return;
	}
	if (LANES_ITEMS) {
		row = vmpt_packet_table.step[vmpt_packet_key(p)] >> 8;
		if (pkt.kind == VMPT_PT_BIP)
			row = bip_row(p[0], pkt.size - 1u);
		*l->now.raw = l->now.at << 8 | row;
		l->now.raw += row != VMPT_ROW_RUN;
	} else if (vmpt_token_wanted(&pkt)) {
		*l->now.raw++ = RAW_DONE | VMPT_TOKEN(l->now.at, pkt.kind);
	}
	l->block = vmpt_pt_block_after(&pkt, l->block);
	l->now.at += pkt.size;
}

/* A BBP: its block follows. */
static always_inline void lane_bbp(struct scan_lane *l, const u8 *p)
{
	lane_put(l, p);
	l->block = VMPT_PT_BLOCK(p[2] >> 7, p[2]);
	l->now.at += vmpt_pt_table[VMPT_PT_BBP].size;
}

/* The rest of a packet block. It may end with the lane; the context is kept then. */
static void lane_block(const struct vmpt_fast *f, struct scan_lane *l)
{
	unsigned int item;
	const u8 *p;

	while (l->block && l->now.at < l->end && l->now.raw < l->raw_end) {
		p = f->data + l->now.at;
		item = vmpt_pt_block_item_size(l->block);
		if (likely((p[0] & vmpt_pt_table[VMPT_PT_BIP].mask[0]) ==
			   vmpt_pt_table[VMPT_PT_BIP].header[0])) {
			if (LANES_ITEMS)
				*l->now.raw++ = l->now.at << 8 | bip_row(p[0], item);
			l->now.at += 1 + item;
		} else if (is_kind(p, VMPT_PT_BEP)) {
			lane_put(l, p);
			l->now.at += vmpt_pt_table[VMPT_PT_BEP].size;
			l->block = 0;
		} else if (is_kind(p, VMPT_PT_BBP)) {
			lane_bbp(l, p);
		} else {
			lane_any(f, l);
		}
	}
}

/* Step over a long CYC, if it is one, in not more than LANES_STEP_MAX bytes. */
static always_inline bool step_long_cyc(const u8 *data, struct scan_place *l)
{
	unsigned int n = long_cyc(data + l->at);

	if (LANES_ITEMS)
		*l->raw = l->at << 8 | VMPT_ROW_CYC;
	l->raw += LANES_ITEMS && n;
	l->at += n;
	return n;
}

/* The table does not have the size of the packet at the lane's place, and it is no long CYC. */
static __attribute__((noinline)) void lane_slow(const struct vmpt_fast *f, struct scan_lane *l)
{
	const u8 *p = f->data + l->now.at;

	if (is_kind(p, VMPT_PT_BBP)) {
		lane_bbp(l, p);
	} else {
		lane_any(f, l);
	}
	lane_block(f, l);
}

/* ---- the loop ---- */

/* The user's table; one step by it (entries of size 0 are left to lane_slow()); and the number of
 * bytes that lane_end() skips before each step. */
static always_inline const LANES_ENTRY *lanes_table(const struct vmpt_fast *f);
static always_inline unsigned int lanes_step(const u8 *data, const LANES_ENTRY *table,
					     struct scan_place *l, bool runs);
static always_inline unsigned int lanes_skip(const u8 *p);

/* Steps that can be done without checking the lane's end or its room. */
static always_inline u64 lane_steps(const struct scan_lane *l, const struct scan_place *now)
{
	u64 bytes = now->at < l->end ? (l->end - now->at) / LANES_STEP_MAX : 0;
	u64 room = now->raw < l->raw_end ? (u64)(l->raw_end - now->raw) : 0;

	return bytes < room ? bytes : room;
}

/* A lane with fewer steps left only keeps the others from doing many at once. */
#define LANES_FEW 4

#define EACH_LANE(n, op)       \
	do {                   \
		op(0);         \
		if ((n) > 1)   \
			op(1); \
		if ((n) > 2)   \
			op(2); \
		if ((n) > 3)   \
			op(3); \
		if ((n) > 4)   \
			op(4); \
		if ((n) > 5)   \
			op(5); \
		if ((n) > 6)   \
			op(6); \
		if ((n) > 7)   \
			op(7); \
	} while (0)

#define LANE_TAKE(i) now[i] = lanes[i].now
#define LANE_GIVE(i) lanes[i].now = now[i]
#define LANE_COUNT(i)                                    \
	do {                                             \
		u64 s_ = lane_steps(&lanes[i], &now[i]); \
		steps = s_ < steps ? s_ : steps;         \
	} while (0)
#define LANE_STEP(i)                                                     \
	do {                                                             \
		if (unlikely(!lanes_step(data, table, &now[i], runs)) && \
		    !step_long_cyc(data, &now[i])) {                     \
			lanes[i].now = now[i];                           \
			lane_slow(f, &lanes[i]);                         \
			now[i] = lanes[i].now;                           \
			if (lane_steps(&lanes[i], &now[i]) < steps)      \
				goto again;                              \
		}                                                        \
	} while (0)

/*
 * Run @n lanes, a constant, until one is near its end or out of room. All of now[] stays
 * in registers: its indexes are constants and its address is not taken.
 */
static always_inline void lanes_run_n(const struct vmpt_fast *f, struct scan_lane *lanes,
				      const unsigned int n, const bool runs)
{
	const LANES_ENTRY *table = lanes_table(f);
	const u8 *data = f->data;
	struct scan_place now[VMPT_LANES_MAX];
	u64 steps;

	EACH_LANE(n, LANE_TAKE);
again:
	for (;;) {
		steps = ~0ULL;
		EACH_LANE(n, LANE_COUNT);
		if (steps < LANES_FEW)
			break;
		do
			EACH_LANE(n, LANE_STEP);
		while (--steps);
	}
	EACH_LANE(n, LANE_GIVE);
}

#define LANES_VARIANT(name, n, runs)                                             \
	static __attribute__((noinline)) void name##n(const struct vmpt_fast *f, \
						      struct scan_lane *lanes)   \
	{                                                                        \
		lanes_run_n(f, lanes, n, runs);                                  \
	}
#define LANES_VARIANTS(name, runs)   \
	LANES_VARIANT(name, 1, runs) \
	LANES_VARIANT(name, 2, runs) \
	LANES_VARIANT(name, 3, runs) \
	LANES_VARIANT(name, 4, runs) \
	LANES_VARIANT(name, 5, runs) \
	LANES_VARIANT(name, 6, runs) \
	LANES_VARIANT(name, 7, runs) \
	LANES_VARIANT(name, 8, runs)
#define LANES_LIST(name)                                                               \
	{                                                                              \
		name##1, name##2, name##3, name##4, name##5, name##6, name##7, name##8 \
	}

LANES_VARIANTS(lanes_run_, true)
#if LANES_ITEMS
LANES_VARIANTS(lanes_plain_, false)
#endif

static void (*const lanes_run[LANES_ITEMS + 1][VMPT_LANES_MAX])(const struct vmpt_fast *,
								struct scan_lane *) = {
	LANES_LIST(lanes_run_),
#if LANES_ITEMS
	LANES_LIST(lanes_plain_),
#endif
};

/* ---- chunks ---- */

static void lane_begin(const struct vmpt_fast *f, struct scan_lane *l, struct vmpt_chunk *c,
		       u64 *raw, size_t raw_max)
{
	u64 safe = c->span.region_end > VMPT_FAST_GUARD ? c->span.region_end - VMPT_FAST_GUARD : 0;

	*l = (struct scan_lane){
		.now = { .at = c->span.start, .raw = raw },
		.end = c->span.end < safe ? c->span.end : safe,
		.raw_start = raw,
		.raw_end = raw + raw_max,
		.first = c->state,
		.block = c->state.block,
		.chunk = c,
	};
	lane_block(f, l);
}

/* The last steps of a chunk, one by one: none may step over the PSB at its end. */
static void lane_end(const struct vmpt_fast *f, struct scan_lane *l)
{
	while (l->now.at < l->end && l->now.raw < l->raw_end) {
		l->now.at += lanes_skip(f->data + l->now.at);
		if (l->now.at < l->end && !lanes_step(f->data, lanes_table(f), &l->now, true) &&
		    !step_long_cyc(f->data, &l->now))
			lane_slow(f, l);
	}
}

/*
 * True if a PSB cuts the packet before c->at, or the one before that. A lane does not know where
 * they start: the results end at the last PSB before them, or where the chunk starts.
 */
static bool chunk_rewind(const struct vmpt_fast *f, struct scan_lane *l)
{
	struct vmpt_chunk *c = l->chunk;
	struct vmpt_scan_out *sink = &c->sink;
	size_t i, n = 0;

	if (!vmpt_psb_across(f->data, c->span.start, c->at, c->span.region_end))
		return false;
	c->at = c->span.start;
	c->state = l->first;
	sink->item_count = 0;
	for (i = 0; i < sink->token_count; i++) {
		if (vmpt_token_kind(sink->tokens[i]) == VMPT_TOKEN_LOSS) {
			i++;
		} else if (vmpt_token_kind(sink->tokens[i]) == VMPT_PT_PSB) {
			n = i;
			c->at = vmpt_token_offset(sink->tokens[i]);
			c->state = (struct vmpt_scan_state){ 0 };
			sink->item_count = LANES_ITEMS ? sink->token_items[i] : 0;
		}
	}
	sink->token_count = n;
	return true;
}

/*
 * Stage 2 is done with the lane's raw entries: decode the rest of the chunk with the plain
 * loop: the region's last bytes, or all from the first packet that stage 2 refused.
 */
static void chunk_end(const struct vmpt_fast *f, struct scan_lane *l, bool refused)
{
	struct vmpt_chunk *c = l->chunk;

	if (!chunk_rewind(f, l) && !refused && l->now.at < l->end)
		return;
	if (c->at < c->span.end)
		c->at = vmpt_scalar_scan(f->data, c->at, c->span.end, c->span.region_end,
					 c->span.start, &c->state, &c->sink);
}

#endif
