// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The source of a trace that comes in parts. It walks over the bytes twice: the first walk finds up
 * to where nothing that follows can change packets or owners, the second makes the items and tokens
 * up to there.
 *
 * The tracker looks ahead over a PSB+, a group, a CFE's unit and a pause (units.c, tracker.c). Each
 * of these looks ends at a packet that is none of theirs; before such a packet a piece may end.
 */
#include <stdlib.h>

#include "decoder/pt/parts.h"

#define PIECE_TOKENS 4096
#define PIECE_ITEMS  8192
#define PIECE_BYTES  VMPT_PARTS_HELD
/* Bytes that decide whether there is a packet: its own, and a PSB that cuts it. */
#define MARGIN 64
/* Bytes before a packet that are kept: vmpt_psb_is_known() reads one. */
#define BEFORE 16
/* Bytes after the last that may be read: 8 at a time. */
#define AFTER 16

struct vmpt_parts {
	struct vmpt_stream stream;
	u8 *buf;
	size_t room;
	u64 start; /* buf[0] is the byte of the stream at this offset */
	u64 keep;  /* see vmpt_parts_keep() */
	bool ended;

	u64 at;	  /* packets before this were returned */
	u64 used; /* bytes before this are in no piece that is still read */
	struct vmpt_scan_state state;
	struct vmpt_scan_out sink;

	/* the first walk */
	u64 walked, safe; /* at <= safe <= walked */
	unsigned int block;
	bool paused; /* after a TIP.PGD(), and no packet since that ends every look */

	/* bytes from .safe on are no packets up to the next PSB, which is not before .seen */
	bool lost;
	u8 why;
	u64 seen;
};

int vmpt_parts_open(struct vmpt_parts **parts, const struct vmpt_options *options)
{
	struct vmpt_parts *s = calloc(1, sizeof(*s));

	if (!s)
		return -VMPT_E_NOMEM;
	s->sink.token_max = PIECE_TOKENS;
	s->sink.item_max = PIECE_ITEMS;
	s->sink.tokens = calloc(PIECE_TOKENS, sizeof(*s->sink.tokens));
	s->sink.token_items = calloc(PIECE_TOKENS, sizeof(*s->sink.token_items));
	s->sink.items = calloc(PIECE_ITEMS, sizeof(*s->sink.items));
	if (!s->sink.tokens || !s->sink.token_items || !s->sink.items) {
		vmpt_parts_close(s);
		return -VMPT_E_NOMEM;
	}
	s->stream.cpu = s->stream.tid = -1;
	s->keep = ~0ULL;
	s->lost = !options || !options->headless;
	s->why = VMPT_E_SYNC;
	*parts = s;
	return 0;
}

void vmpt_parts_close(struct vmpt_parts *s)
{
	if (!s)
		return;
	free(s->buf);
	free(s->sink.tokens);
	free(s->sink.token_items);
	free(s->sink.items);
	free(s);
}

const struct vmpt_stream *vmpt_parts_stream(const struct vmpt_parts *s)
{
	return &s->stream;
}

bool vmpt_parts_keep(struct vmpt_parts *s, u64 offset)
{
	s->keep = offset;
	return offset >= s->at || s->at - offset <= VMPT_PARTS_HELD;
}

/* ---- bytes ---- */

/* Drop what is not needed any more. */
static void drop(struct vmpt_parts *s)
{
	u64 from = s->keep < s->used ? s->keep : s->used;

	if (from < s->start + BEFORE)
		return;
	from -= BEFORE;
	memmove(s->buf, s->buf + (from - s->start), s->stream.size - from);
	s->start = from;
}

/* Twice what is needed: then bytes are seldom moved. */
static int make_room(struct vmpt_parts *s, size_t used, size_t size)
{
	u8 *buf;

	if (size > SIZE_MAX / 4)
		return -VMPT_E_NOMEM;
	if (used + size <= s->room / 2)
		return 0;
	buf = realloc(s->buf, 2 * (used + size) + AFTER);
	if (!buf)
		return -VMPT_E_NOMEM;
	s->buf = buf;
	s->room = 2 * (used + size);
	return 0;
}

int vmpt_parts_add(struct vmpt_parts *s, const u8 *bytes, size_t size)
{
	size_t used = s->stream.size - s->start;
	int err;

	if (s->ended)
		return -VMPT_E_STATE;
	if (size > s->room - used) {
		drop(s);
		used = s->stream.size - s->start;
		err = make_room(s, used, size);
		if (err)
			return err;
	}
	if (size)
		memcpy(s->buf + used, bytes, size);
	if (s->buf)
		memset(s->buf + used + size, 0, AFTER);
	s->stream.size += size;
	/* Only offsets from .start on are used. */
	s->stream.data = (const u8 *)((uintptr_t)s->buf - s->start);
	return 0;
}

int vmpt_parts_end(struct vmpt_parts *s)
{
	if (s->ended)
		return -VMPT_E_STATE;
	s->ended = true;
	return 0;
}

/* ---- the first walk ---- */

/* Whether every look ahead ends at a packet of this kind, whatever is before it. */
static bool ends_looks(const struct vmpt_parts *s, unsigned int kind)
{
	switch (kind) {
	case VMPT_PT_PSB:
		return !s->paused;
	case VMPT_PT_PSBEND: /* the PADs after it belong to the PSB+ */
	case VMPT_PT_EXSTOP: /* this one and the others may stand in a pause */
	case VMPT_PT_MWAIT:
	case VMPT_PT_PWRE:
	case VMPT_PT_PWRX:
		return false;
	default:
		return !(vmpt_pt_table[kind].classes &
			 (VMPT_PT_IN_PSB | VMPT_PT_GROUP | VMPT_PT_TIMING));
	}
}

static void walk(struct vmpt_parts *s)
{
	const u8 *data = s->stream.data;
	u64 end = s->stream.size;
	struct vmpt_pt_packet pkt;
	unsigned int size;
	int kind, err;
	u64 psb;

	while (!s->lost && end - s->walked >= MARGIN) {
		/* The tables know most packets; not whether a PSB is whole, and a BBP opens a
		 * block. */
		kind = s->block ? -1 : vmpt_head_at(data, s->walked, end, &size);
		if (kind >= 0 && kind != VMPT_PT_PSB && kind != VMPT_PT_BBP) {
			if (ends_looks(s, (unsigned int)kind)) {
				s->safe = s->walked;
				s->paused = kind == VMPT_PT_TIP_PGD && size == 1;
			}
			s->walked += size;
			continue;
		}
		err = vmpt_pt_decode(&pkt, data + s->walked, end - s->walked, s->block);
		psb = err ? s->walked + 1 : vmpt_psb_inside(data, s->walked, pkt.size, end);
		if (psb) {
			s->lost = true;
			s->why = err ? (u8)-err : VMPT_E_CUT;
			s->safe = s->walked;
			s->seen = psb;
			return;
		}
		if (ends_looks(s, pkt.kind)) {
			s->safe = s->walked;
			s->paused = pkt.kind == VMPT_PT_TIP_PGD && !pkt.ip.ipbytes;
		}
		s->block = vmpt_pt_block_after(&pkt, s->block);
		s->walked += pkt.size;
	}
	if (!s->lost && s->walked - s->safe > VMPT_PARTS_HELD)
		s->safe = s->walked;
}

/* ---- pieces ---- */

static void fill(struct vmpt_parts *s, struct vmpt_piece *piece, u64 end)
{
	*piece = (struct vmpt_piece){
		.start = s->at,
		.end = end,
		.region_end = s->stream.size,
		.tokens = s->sink.tokens,
		.token_items = s->sink.token_items,
		.token_count = s->sink.token_count,
		.items = s->sink.items,
		.item_count = s->sink.item_count,
	};
	s->at = end;
}

/* The bytes from s->at up to the next PSB are lost. 1: a piece of them, or 0. */
static int next_loss(struct vmpt_parts *s, struct vmpt_piece *piece)
{
	u64 end = s->stream.size;
	u64 psb = vmpt_psb_find(s->stream.data, s->seen, end), size = psb - s->at;

	if (psb == end && !s->ended) {
		/* It may have begun. */
		if (end - s->seen >= MARGIN)
			s->seen = end - MARGIN;
		s->used = s->seen;
		return 0;
	}
	s->lost = false;
	s->sink.token_items[0] = s->sink.token_items[1] = 0;
	s->sink.tokens[0] = VMPT_TOKEN(s->at, VMPT_TOKEN_LOSS);
	s->sink.tokens[1] = size << 6 | s->why;
	s->sink.items[0] =
		(struct vmpt_item){ .kind = VMPT_ITEM_LOSS, .aux = s->why, .payload = size };
	s->sink.token_count = size ? 2 : 0;
	s->sink.item_count = size ? 1 : 0;
	s->state = (struct vmpt_scan_state){ 0 };
	s->walked = s->safe = psb;
	s->block = 0;
	s->paused = false;
	fill(s, piece, psb);
	return 1;
}

int vmpt_parts_next(struct vmpt_parts *s, struct vmpt_piece *piece)
{
	u64 safe;

	s->used = s->at;
	if (!s->ended)
		walk(s);
	if (s->at == s->safe && s->lost)
		return next_loss(s, piece);
	/* A loss is a piece of its own: some of its bytes may be gone. */
	safe = s->ended && !s->lost ? s->stream.size : s->safe;
	if (s->at == safe)
		return 0;
	s->sink.token_count = 0;
	s->sink.item_count = 0;
	if (safe - s->at > PIECE_BYTES)
		safe = s->at + PIECE_BYTES;
	fill(s, piece,
	     vmpt_scalar_scan(s->stream.data, s->at, safe, s->stream.size, s->at, &s->state,
			      &s->sink));
	return 1;
}
