// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Last LIP at some packet of a stream, found when it is asked for: stepping over packets for it
 * alone is faster than making items of them.
 */
#include "decoder/rtit/fast.h"

/* A row's body is read as 8 bytes, a cycle count behind it as one. */
#define GUARD (VMPT_RTIT_SIZE_MAX + 8)

/* How far it is known. */
struct lean {
	struct vmpt_rtit_last_lip last; /* valid: its bits in @known are right */
	u64 known;			/* the others lean on what came before */
};

static void lean_on(struct lean *l, const struct vmpt_rtit_row *row, u64 body)
{
	/* The processor clears its own before it sends this one (4.2.5). */
	if (row->kind == VMPT_RTIT_BUFF_OVF) {
		l->last.valid = false;
		l->known = ~0ULL;
	}
	if (!l->last.valid && row->keep && l->known == ~0ULL)
		return;
	l->last.lip = (l->last.lip & row->keep) | (body & row->mask);
	l->last.valid = true;
	l->known |= ~row->keep;
}

static u64 body_of(const u8 *data, u64 at, u64 size)
{
	u64 body = 0;

	memcpy(&body, data + at + 1, size - at - 1 < 8 ? size - at - 1 : 8);
	return body;
}

/* Whole packets are known to stand in [@at, @end). */
static void scan(const struct vmpt_rtit_fast *f, u64 at, u64 end, u64 size, struct lean *l)
{
	const struct vmpt_rtit_row *row;
	unsigned int step;

	for (; at < end && size - at > GUARD; at += step) {
		row = &f->rows[f->data[at]];
		step = row->size;
		if (row->cycles)
			step += f->data[at + step] & 3;
		if (row->lip)
			lean_on(l, row, vmpt_load64(f->data + at + 1));
	}
	for (; at < end; at += step) {
		row = &f->rows[f->data[at]];
		step = row->size;
		if (row->cycles && at + step < size)
			step += f->data[at + step] & 3;
		if (row->lip)
			lean_on(l, row, body_of(f->data, at, size));
		/* It cannot be: what is no packet is in no stretch. */
		if (!step)
			return;
	}
}

struct vmpt_rtit_last_lip vmpt_rtit_last_lip_at(const struct vmpt_rtit_fast *f, u64 size,
						const struct vmpt_rtit_stretch *s)
{
	struct lean l = { .known = 0 };

	if (s->psb > s->from && s->psb < s->end) {
		scan(f, s->psb, s->end, size, &l);
		if (l.known == ~0ULL)
			return l.last;
	}
	l = (struct lean){ .last = s->last, .known = ~0ULL };
	scan(f, s->from, s->end, size, &l);
	return l.last;
}
