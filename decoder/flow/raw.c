// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Raw memos: bytes of the trace as they stand, by which a stretch of packets is taken without
 * parsing them. One is made when its bytes come a second time.
 */
#include "decoder/flow/engine.h"

#define RAWS_MIN 1024u

void vmpt_flow_raw_spread(struct engine *e)
{
	size_t i;

	for (i = 1; i < e->raw_count; i++) {
		if (!(e->raws[i].path & RAW_EFFECT))
			e->paths[e->raws[i].path].hits += e->raws[i].hits;
		e->raws[i].hits = 0;
	}
}

void vmpt_flow_raw_clear(struct engine *e)
{
	if (!e->raws)
		return;
	vmpt_flow_raw_spread(e);
	memset(e->raw_index, 0, (e->raw_mask + 1) * sizeof(*e->raw_index));
	e->raw_count = 1;
}

void vmpt_flow_raw_begin(struct engine *e)
{
	e->recording = true;
	e->trail_count = 0;
	e->h.pow = 1;
	vmpt_flow_track_begin(&e->track);
}

static u64 hash_of(const struct engine *e, const struct raw_memo *m)
{
	return vmpt_flow_raw_hash(e, m->start, m->last_ip, m->bytes[0], m->bytes[1]);
}

static u32 *slot_of(struct engine *e, const struct raw_memo *m)
{
	return vmpt_flow_raw_slot(e, hash_of(e, m), m->start, m->last_ip, m->bytes[0], m->bytes[1]);
}

/* Where @m, of which there is none yet, is to be: also the slot of one that was removed. */
static u32 *free_slot(struct engine *e, const struct raw_memo *m)
{
	u32 i = (u32)hash_of(e, m) & e->raw_mask;

	while (e->raw_index[i] && e->raws[e->raw_index[i]].start != NONE)
		i = (i + 1) & e->raw_mask;
	return &e->raw_index[i];
}

/*
 * Nothing finds @m any more. Memos that it came after may still know it, and compare only its bytes
 * where there is no stack: it gets such that no packet begins with and no trace can foresee.
 */
void vmpt_flow_raw_remove(struct engine *e, struct raw_memo *m)
{
	if (!(m->path & RAW_EFFECT))
		e->paths[m->path].hits += m->hits;
	*m = (struct raw_memo){ .start = NONE };
	m->bytes[0] = (vmpt_mix64(e->seed) & ~0xffffULL) | 0xff02;
	m->bytes[1] = vmpt_mix64(~e->seed);
}

/* A memo is found by a cache line: realloc() would not keep it there. */
int vmpt_flow_raw_grow(struct engine *e)
{
	size_t before = e->raw_room, room = before ? 2 * before : RAWS_MIN, i;
	struct raw_memo *more = aligned_alloc(64, room * sizeof(*more));
	u32 *index = calloc(2 * room, sizeof(*index));

	if (!more || !index || room > UINT32_MAX / 2) {
		free(more);
		free(index);
		return -VMPT_E_NOMEM;
	}
	if (before)
		memcpy(more, e->raws, e->raw_count * sizeof(*more));
	else
		memset(more, 0, sizeof(*more));
	e->raw_count += !before;
	free(e->raws);
	free(e->raw_index);
	e->raws = more;
	e->raw_index = index;
	e->raw_room = room;
	e->raw_mask = (u32)(2 * room) - 1;
	for (i = 1; i < e->raw_count; i++)
		if (more[i].start != NONE)
			*slot_of(e, &more[i]) = (u32)i;
	vmpt_flow_memory(e, before * (sizeof(*more) + 2 * sizeof(*index)),
			 room * (sizeof(*more) + 2 * sizeof(*index)));
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
	struct raw_memo *old;
	u32 *slot, effect, path;

	e->recording = false;
	if (e->track.off || e->track.peak - e->track.low > (s32)DEPTH)
		return;
	if (e->raw_count == e->raw_room && vmpt_flow_raw_grow(e))
		return;
	memcpy(m.bytes, e->data + at, sizeof(m.bytes));
	slot = slot_of(e, &m);
	old = &e->raws[*slot];
	m.path = path = vmpt_flow_path_add(e, h, e->trail, e->trail_count);
	if (!path)
		return;
	effect = old->path & RAW_EFFECT ? old->path & ~RAW_EFFECT : 0;
	if (e->stack && (e->track.any || effect)) {
		effect = vmpt_flow_effect_add(e, &e->track, m.path, effect);
		if (!effect || effect >= RAW_EFFECT)
			return;
		m.path = effect | RAW_EFFECT;
	}
	if (e->versions)
		vmpt_flow_link_memo(e, path, (u32)hash_of(e, &m), true);
	if (*slot) {
		if (!(old->path & RAW_EFFECT))
			e->paths[old->path].hits += old->hits;
		memcpy(m.next, old->next, sizeof(m.next));
	} else {
		slot = free_slot(e, &m);
		*slot = (u32)e->raw_count++;
	}
	e->raws[*slot] = m;
}
