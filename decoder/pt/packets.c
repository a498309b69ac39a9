// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Items of all packets. Each step of stage 1 goes over a run of TNT-8 and PAD and one
 * packet, and records that packet's offset and row; stage 2 makes the items by their
 * rows, the runs between them and the tokens.
 */
#include "decoder/pt/fast.h"

#ifdef __SSE2__
#include <emmintrin.h>
#define RUN_MAX 16
#else
#define RUN_MAX 8
#endif

#define LANES_ITEMS    1
#define LANES_STEP_MAX (RUN_MAX + VMPT_PT_SIZE_MAX)
#define LANES_ENTRY    u16
#include "decoder/pt/lanes.h"

/* Number of leading bytes at @p that are TNT-8 or PAD: even and not the escape byte. */
static always_inline unsigned int run_length(const u8 *p)
{
#ifdef __SSE2__
	__m128i v = _mm_loadu_si128((const __m128i *)p);
	__m128i other = _mm_or_si128(_mm_slli_epi16(v, 7),
				     _mm_cmpeq_epi8(v, _mm_set1_epi8(VMPT_PT_ESCAPE)));

	return (unsigned int)__builtin_ctz((unsigned int)_mm_movemask_epi8(other) | 1u << RUN_MAX);
#else
	u64 v = vmpt_load64(p), ones = 0x0101010101010101ULL;
	u64 no_escape = v ^ ones * VMPT_PT_ESCAPE;
	/* A zero byte may set bits above its own, but never below. */
	u64 other = v << 7 | ((no_escape - ones) & ~no_escape);

	other &= ones << 7;
	return other ? (unsigned int)__builtin_ctzll(other) >> 3 : RUN_MAX;
#endif
}

static always_inline const u16 *lanes_table(const struct vmpt_fast *f)
{
	return f->steps;
}

/* Without @runs a run is stepped over byte by byte. */
static always_inline unsigned int lanes_step(const u8 *data, const u16 *table, struct scan_place *l,
					     bool runs)
{
	u64 at = l->at + (runs ? run_length(data + l->at) : 0);
	unsigned int step = table[vmpt_packet_key(data + at)];

	*l->raw = at << 8 | step >> 8;
	l->raw += step / VMPT_STEP_TOKEN & 1;
	l->at = at + (step & VMPT_STEP_SIZE);
	return step & VMPT_STEP_SIZE;
}

/* A step's run may end where the chunk does: then its packet is the next chunk's. */
static always_inline unsigned int lanes_skip(const u8 *p)
{
	return run_length(p);
}

/* ---- stage 2 ---- */

/*
 * Offsets are those of items, relative to the chunk's start. The state of the loop
 * over a chunk (next item, Last IP, end of the last packet) is in separate variables:
 * a struct would not stay in registers.
 */
static always_inline void put(struct vmpt_item *item, u64 payload, u64 meta)
{
	/* Both halves at once: all builds are little-endian (arch/types.h). */
	u64 half[2] = { payload, meta };

	_Static_assert(sizeof(*item) == sizeof(half), "an item is 16 bytes");
	memcpy(item, half, sizeof(half));
}

#define META(offset, size, kind) ((u64)(kind) << 48 | (u64)(size) << 32 | (offset))

/* A run too long for one item. Returns the next free item. */
static __attribute__((noinline)) struct vmpt_item *put_long_run(struct vmpt_item *item, u64 from,
								u64 to)
{
	u64 n;

	for (; from < to; from += n) {
		n = to - from < 65535 ? to - from : 65535;
		put(item++, 0, META(from, n, VMPT_ITEM_RUN));
	}
	return item;
}

/* The run between two packets, if any. Returns the next free item. */
static always_inline struct vmpt_item *put_run(struct vmpt_item *item, u64 from, u64 to)
{
	u64 n = to - from;

	if (unlikely(n > 65535))
		return put_long_run(item, from, to);
	put(item, 0, META(from, n, VMPT_ITEM_RUN));
	return item + (n != 0);
}

/* @cyc, a constant: it may be a CYC's. */
static always_inline u64 payload_of(const u8 *p, const struct vmpt_row *row, bool cyc)
{
	u64 body = vmpt_load64(p + row->from);

	return cyc ? ((body & row->mask) + (body & row->twice)) >> row->shift : body & row->mask;
}

/* A packet whose row has a size. Returns its payload. */
static always_inline u64 put_packet(struct vmpt_item *item, const u8 *p, u64 at,
				    const struct vmpt_row *row, u64 last_ip, bool cyc)
{
	u64 v = payload_of(p, row, cyc);

	v = (v ^ row->sign) - row->sign;
	v |= last_ip & row->keep;
	put(item, v, row->meta + at);
	return v;
}

/* A CYC's count from 8 bytes of it: 5 bits, then 7 of each byte. */
static always_inline u64 cycles_of_8(u64 bytes)
{
	u64 v = bytes >> 3 & 0x1f;

	v |= bytes >> 4 & 0x7fULL << 5;
	v |= bytes >> 5 & 0x7fULL << 12;
	v |= bytes >> 6 & 0x7fULL << 19;
	v |= bytes >> 7 & 0x7fULL << 26;
	v |= bytes >> 8 & 0x7fULL << 33;
	v |= bytes >> 9 & 0x7fULL << 40;
	v |= bytes >> 10 & 0x7fULL << 47;
	return v;
}

/* Returns the size of the packet. */
static __attribute__((noinline)) unsigned int put_longer_cyc(struct vmpt_item *item, const u8 *p,
							     u64 at)
{
	unsigned int i, n = long_cyc(p);
	u64 v;

	if (!n)
		n = VMPT_PT_CYC_MAX;
	v = cycles_of_8(vmpt_load64(p) & vmpt_mask64(8 * n));
	for (i = 8; i < n; i++)
		v |= (u64)(p[i] >> 1) << (7 * i - 2);
	put(item, v, META(at, n, VMPT_PT_CYC));
	return n;
}

/* The same; most have three bytes. */
static always_inline unsigned int put_long_cyc(struct vmpt_item *item, const u8 *p, u64 at)
{
	if (unlikely(p[2] & 1))
		return put_longer_cyc(item, p, at);
	put(item, cycles_of_8(vmpt_load32(p) & 0xffffff), META(at, 3, VMPT_PT_CYC));
	return 3;
}

static __attribute__((noinline)) unsigned int put_evd(struct vmpt_item *item, const u8 *p, u64 at)
{
	unsigned int size = vmpt_pt_table[VMPT_PT_EVD].size;

	put(item, vmpt_load64(p + 3), META(at, size, VMPT_PT_EVD) | (u64)(p[2] & 0x3f) << 56);
	return size;
}

/*
 * Tokens as stage 2 leaves them: the raw entry, with its offset relative to the chunk's
 * start, and in the high bits the item's index and that of the memory's first item, which
 * are a shift of its address. finish_tokens() subtracts the second and makes tokens of them.
 */
#define HALF_TOKEN_ITEM 40

static always_inline u64 half_token_item(const struct vmpt_item *item)
{
	_Static_assert(sizeof(*item) == 16, "malloc() aligns to that");
	return (u64)(uintptr_t)item << (HALF_TOKEN_ITEM - 4);
}

/* A loss, made of three raw entries. Returns its size. */
static __attribute__((noinline)) u64 put_loss(struct vmpt_item *item, u64 *token, const u64 *raw,
					      u64 at)
{
	token[1] = raw[1] << 6 | raw[2];
	put(item, raw[1], META(at, 0, VMPT_ITEM_LOSS) | raw[2] << 56);
	return raw[1];
}

/* A PIP or VMCS. */
static always_inline void put_special(struct vmpt_item *item, const u8 *p, u64 at,
				      const struct vmpt_row *row)
{
	bool pip = (row->meta >> 48 & 0xff) == VMPT_PT_PIP;

	put(item, pip ? vmpt_pip_cr3(p) | vmpt_pip_nr(p) : vmpt_vmcs_pointer(p), row->meta + at);
}

/*
 * @many_runs, a constant: a branch for each, or for a token, would often be mispredicted.
 * @many_cycs, a constant: the same for CYCs; without, other payloads take fewer steps.
 */
static always_inline void make_items_as(const struct vmpt_fast *f, struct scan_lane *l,
					bool many_runs, bool many_cycs)
{
	const struct vmpt_row *row, *rows = vmpt_packet_table.rows;
	const u64 *raw = l->raw_start, *raw_end = l->now.raw;
	struct vmpt_chunk *c = l->chunk;
	struct vmpt_item *item = c->sink.items;
	u64 at, v, half, start = c->span.start, end = 0, last_ip = c->state.last_ip;
	u64 run_bytes = 0, cycs = 0, packets = (u64)(raw_end - raw);
	const u8 *data = f->data + start;
	u64 *token = c->sink.tokens;

	for (; raw < raw_end; raw++, item++) {
		half = *raw - (start << 8);
		at = half >> 8;
		row = &rows[half & 0xff];
		run_bytes += at - end;
		if (many_runs || at != end)
			item = put_run(item, end, at);
		if (!many_runs && likely(row->plain)) {
			put(item, payload_of(data + at, row, true), row->meta + at);
			end = at + row->size;
			continue;
		}
		*token = half + half_token_item(item);
		if (likely(!(row->rare & (many_cycs ? VMPT_RARE_KIND : 0xff)))) {
			token += row->token;
			v = put_packet(item, data + at, at, row, last_ip, many_cycs);
			last_ip = row->is_ip ? v : last_ip;
			end = at + row->size;
		} else if (!many_cycs && row->rare == VMPT_RARE_CYC) {
			put(item, payload_of(data + at, row, true), row->meta + at);
			cycs++;
			end = at + row->size;
		} else if (likely(row->size)) {
			put_special(item, data + at, at, row);
			end = at + row->size;
			token++;
		} else if ((half & 0xff) == VMPT_ROW_CYC) {
			end = at + put_long_cyc(item, data + at, at);
		} else if ((half & 0xff) == VMPT_ROW_EVD) {
			end = at + put_evd(item, data + at, at);
			token++;
		} else {
			end = at + put_loss(item, token, raw, at);
			last_ip = 0;
			token += 2;
			raw += 2;
		}
	}
	item = put_run(item, end, l->now.at - start);
	c->at = l->now.at;
	c->state.last_ip = last_ip;
	c->state.block = l->block;
	c->sink.item_count = (size_t)(item - c->sink.items);
	c->sink.token_count = (size_t)(token - c->sink.tokens);
	c->few_runs = c->sink.item_count <= packets + packets / 8;
	c->short_runs = run_bytes < packets;
	if (many_cycs)
		c->many_cycs -= c->many_cycs > 0;
	else if (cycs > packets / 16)
		c->many_cycs = 64;
}

static __attribute__((noinline)) void make_items_many_cycs(const struct vmpt_fast *f,
							   struct scan_lane *l)
{
	make_items_as(f, l, true, true);
}

static __attribute__((noinline)) void make_items_many_runs(const struct vmpt_fast *f,
							   struct scan_lane *l)
{
	make_items_as(f, l, true, false);
}

static __attribute__((noinline)) void make_items_few_runs(const struct vmpt_fast *f,
							  struct scan_lane *l)
{
	make_items_as(f, l, false, true);
}

/* Whether the packets of these half tokens have the right headers; else the results end before. */
static bool check(const struct vmpt_fast *f, struct vmpt_chunk *c, const u64 *halves,
		  unsigned int halves_n, size_t n)
{
	struct vmpt_scan_out *sink = &c->sink;
	unsigned int i;
	u64 at;

	for (i = 0; i < halves_n; i++) {
		at = c->span.start + ((halves[i] & vmpt_mask64(HALF_TOKEN_ITEM)) >> 8);
		if (likely(!vmpt_header_wrong(f->data + at)))
			continue;
		sink->token_count = vmpt_tokens_before(sink->tokens, n, at);
		sink->item_count = halves[i] >> HALF_TOKEN_ITEM;
		c->at = at;
		c->state = (struct vmpt_scan_state){ 0 };
		return false;
	}
	return true;
}

/*
 * Make tokens of stage 2's, without the MNTs. The chunk's results end at the first packet
 * with a wrong header: that is an error, which resets all state.
 */
static bool finish_tokens(const struct vmpt_fast *f, struct vmpt_chunk *c)
{
	const struct vmpt_row *rows = vmpt_packet_table.rows;
	u64 at, half, long_ones[VMPT_CHECK_EVERY + 1];
	struct vmpt_scan_out *sink = &c->sink;
	u64 first = half_token_item(sink->items);
	unsigned int kind, row, long_n = 0;
	size_t i, n = 0;

	for (i = 0; i < sink->token_count; i++, n++) {
		half = sink->tokens[i] - first;
		row = half & 0xff;
		at = c->span.start + ((half & vmpt_mask64(HALF_TOKEN_ITEM)) >> 8);
		sink->token_items[n] = (u32)(half >> HALF_TOKEN_ITEM);
		if (unlikely(row == VMPT_ROW_LOSS)) {
			sink->tokens[n++] = VMPT_TOKEN(at, VMPT_TOKEN_LOSS);
			sink->tokens[n] = sink->tokens[++i];
			sink->token_items[n] = sink->token_items[n - 1];
			continue;
		}
		kind = rows[row].meta >> 48 & 0xff;
		long_ones[long_n] = half;
		long_n += kind == VMPT_PT_PSB || kind == VMPT_PT_MNT;
		sink->tokens[n] = VMPT_TOKEN(at, kind);
		n -= kind == VMPT_PT_MNT;
		if (unlikely(long_n == VMPT_CHECK_EVERY)) {
			if (!check(f, c, long_ones, long_n, n + 1))
				return false;
			long_n = 0;
		}
	}
	sink->token_count = n;
	return check(f, c, long_ones, long_n, n);
}

static void lane_finish(const struct vmpt_fast *f, struct scan_lane *l)
{
	lane_end(f, l);
	if (l->chunk->few_runs)
		make_items_few_runs(f, l);
	else if (l->chunk->many_cycs)
		make_items_many_cycs(f, l);
	else
		make_items_many_runs(f, l);
	chunk_end(f, l, !finish_tokens(f, l->chunk));
}

void vmpt_packets_decode(const struct vmpt_fast *f, struct vmpt_chunk *chunks, unsigned int count,
			 u64 *raw)
{
	struct scan_lane lane[VMPT_LANES_MAX], done;
	unsigned int i, active = 0, next = 0;

	for (i = 0; i < f->lanes; i++)
		lane[i].raw_start = raw + i * (VMPT_PACKETS_RAW + VMPT_RAW_SLACK);
	while (active || next < count) {
		while (active < f->lanes && next < count) {
			lane_begin(f, &lane[active], &chunks[next++], lane[active].raw_start,
				   VMPT_PACKETS_RAW);
			active++;
		}
		lanes_run[lane[0].chunk->short_runs][active - 1](f, lane);
		for (i = active; i-- > 0;) {
			if (lane_steps(&lane[i], &lane[i].now) >= LANES_FEW)
				continue;
			/* The next chunk reuses the room of its raw entries. */
			done = lane[i];
			lane_finish(f, &done);
			lane[i] = lane[--active];
			lane[active] = done;
		}
	}
}
