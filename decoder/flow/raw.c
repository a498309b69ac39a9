// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Raw memos: bytes of the trace as they stand, by which a stretch of packets is taken without
 * parsing them. One is made when its bytes come a second time.
 */
#include "decoder/flow/engine.h"

#define RAWS_MIN 1024u

void vmpt_flow_raw_clear(struct engine *e)
{
	if (e->raws)
		memset(e->raws, 0, (e->raw_mask + 1) * sizeof(*e->raws));
	e->raw_count = 0;
}

bool vmpt_flow_raw_seen(struct engine *e, u64 hash)
{
	u16 *seen = &e->raw_seen[(hash >> 32) % RAW_SEEN], tag = (u16)(hash >> 48 | 1);
	bool before = *seen == tag;

	*seen = tag;
	return before;
}

void vmpt_flow_raw_begin(struct engine *e)
{
	e->recording = true;
	e->trail_count = 0;
	e->h.pow = 1;
	e->track.level = e->track.low = e->track.peak = 0;
	e->track.guarded = 0;
	e->track.any = e->track.off = e->track.clear = false;
}

static struct raw_memo *slot_of(struct engine *e, const struct raw_memo *m)
{
	return vmpt_flow_raw(e, vmpt_flow_raw_hash(m->start, m->last_ip, m->bytes[0], m->bytes[1]),
			     m->start, m->last_ip, m->bytes[0], m->bytes[1]);
}

int vmpt_flow_raw_grow(struct engine *e)
{
	size_t slots = e->raws ? 2 * ((size_t)e->raw_mask + 1) : RAWS_MIN, i;
	struct raw_memo *old = e->raws, *more = aligned_alloc(64, slots * sizeof(*more));
	size_t before = old ? e->raw_mask + 1 : 0;

	if (!more)
		return -VMPT_E_NOMEM;
	memset(more, 0, slots * sizeof(*more));
	e->raws = more;
	e->raw_mask = (u32)slots - 1;
	for (i = 0; i < before; i++)
		if (old[i].start)
			*slot_of(e, &old[i]) = old[i];
	free(old);
	vmpt_flow_memory(e, before * sizeof(*more), slots * sizeof(*more));
	return 0;
}

/* Without memory there is no memo: nothing depends on it. */
void vmpt_flow_raw_add(struct engine *e, u64 at, u32 size, u32 start, u64 last_ip, u64 hash)
{
	struct raw_memo m = {
		.last_ip = last_ip,
		.next_last_ip = e->c.last_ip,
		.start = start,
		.end = e->c.handle,
		.size = (u8)size,
	};
	struct hashes h = { e->h.hash - hash * e->h.pow, e->h.pow };
	struct raw_memo *slot;

	e->recording = false;
	if (e->track.off || e->track.peak - e->track.low > (s32)DEPTH)
		return;
	if (2 * e->raw_count >= e->raw_mask && vmpt_flow_raw_grow(e))
		return;
	memcpy(m.bytes, e->data + at, sizeof(m.bytes));
	slot = slot_of(e, &m);
	m.path = vmpt_flow_path_add(e, h, e->trail, e->trail_count);
	if (!m.path)
		return;
	if (e->stack && (e->track.any || slot->effect)) {
		m.effect = vmpt_flow_effect_add(e, &e->track, m.path, slot->effect);
		if (!m.effect)
			return;
	}
	e->raw_count += !slot->start;
	*slot = m;
}
