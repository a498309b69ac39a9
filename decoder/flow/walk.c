// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * TNT bits: walking them from node to node, and memos of runs of TNT-8 packets that were walked,
 * with what they do to the stack of return addresses.
 */
#include "decoder/flow/engine.h"

/* Bits of 8 TNT-8 packets, at most */
#define RUN_BITS 48

/* ---- what a path does to the stack ---- */

void vmpt_flow_track_begin(struct track *t)
{
	t->level = t->low = t->peak = 0;
	t->guarded = 0;
	t->any = t->off = t->clear = false;
	t->compressed = 0;
}

static void track_push(struct track *t)
{
	t->any = true;
	if (++t->level > t->peak)
		t->peak = t->level;
}

/* @value was popped; @guarded: the flow went there. */
static void track_pop(struct track *t, u64 value, bool guarded)
{
	t->any = true;
	if (t->clear && t->level <= t->low)
		return; /* nothing is left */
	if (t->level == t->low) {
		if (t->low <= -(s32)DEPTH) {
			t->off = true;
			return;
		}
		t->guards[-t->low] = value;
		if (guarded)
			t->guarded |= 1ULL << -t->low;
		t->low--;
	}
	t->level--;
}

static void track_clear(struct track *t)
{
	t->any = t->clear = true;
	t->level = t->low;
}

/* A part of the path did what @part says. */
static void track_part(struct track *t, const struct track *part)
{
	s32 i;

	if (t->level + part->peak > t->peak)
		t->peak = t->level + part->peak;
	for (i = 0; i < -part->low; i++)
		track_pop(t, part->guards[i], part->guarded >> i & 1);
	if (part->clear)
		track_clear(t);
	for (i = part->low; i < part->level; i++)
		track_push(t);
	t->any |= part->any;
	t->compressed = (u8)(t->compressed + part->compressed);
	t->off |= part->off;
}

/* ---- the stack ---- */

static u64 pop(struct returns_stack *s)
{
	if (!s->depth)
		return 0;
	s->depth--;
	return s->slot[--s->top];
}

void vmpt_flow_stack_reset(struct engine *e)
{
	vmpt_flow_stack_clear(&e->s);
	if (e->recording)
		track_clear(&e->track);
}

void vmpt_flow_pop(struct engine *e)
{
	u64 value = pop(&e->s);

	if (e->recording)
		track_pop(&e->track, value, false);
}

static void push_calls(struct engine *e, const struct node *n, struct track *track)
{
	u32 i;

	vmpt_flow_push_calls(e, n);
	for (i = 0; i < n->call_count; i++)
		track_push(track);
}

static bool fits(const struct engine *e, const struct effect *fx)
{
	const struct returns_stack *s = &e->s;
	const u64 *guards = e->values + fx->values;
	u32 i;

	/* Where the stack might overflow the walk counts for itself. */
	if (0u + s->depth + fx->pops + fx->peak > DEPTH)
		return false;
	for (i = 0; i < fx->pops; i++)
		if (fx->guarded >> i & 1 &&
		    (s->depth <= i || s->slot[(u8)(s->top - 1 - i)] != guards[i]))
			return false;
	return true;
}

const struct effect *vmpt_flow_effect(const struct engine *e, u32 first)
{
	u32 i;

	for (i = first; i; i = e->effects[i].next)
		if (fits(e, &e->effects[i]))
			return &e->effects[i];
	return NULL;
}

void vmpt_flow_apply(struct engine *e, const struct effect *fx)
{
	struct returns_stack *s = &e->s;
	const u64 *pushed = e->values + fx->values + fx->pops;
	u32 i, pops = fx->pops < s->depth ? fx->pops : s->depth;

	e->c.compressed += fx->compressed;

	s->top = (u8)(s->top - pops);
	if (fx->clear)
		pops = s->depth;
	for (i = 0; i < fx->pushes; i++)
		s->slot[s->top++] = pushed[i];
	s->depth = (u16)(s->depth - pops + fx->pushes);
	s->before = s->depth - fx->end_pushes;
}

/* ---- making memos ---- */

static int memos_grow(struct engine *e)
{
	u32 slots = e->memo_mask + 1, i;
	struct memo *old = e->memos, *more = calloc(2 * (size_t)slots, sizeof(*more));

	if (!more)
		return -VMPT_E_NOMEM;
	e->memos = more;
	e->memo_mask = 2 * slots - 1;
	e->memo_count = 0;
	for (i = 0; i < slots; i++)
		if (old[i].start && old[i].start != NONE) {
			*vmpt_flow_memo_slot(e, old[i].start, old[i].bytes) = old[i];
			e->memo_count++;
		}
	free(old);
	vmpt_flow_memory(e, slots * sizeof(*more), 2 * slots * sizeof(*more));
	return 0;
}

/* A walk so far. */
struct walk {
	struct hashes h; /* of the nodes left */
	struct track track;
	u32 unit[RUN_BITS];
	u32 count;
};

u32 vmpt_flow_path_add(struct engine *e, struct hashes h, const u32 *units, u32 count)
{
	size_t room = e->path_room;

	if (e->path_count >= UNIT_PATH || vmpt_flow_lists_room(e, count) ||
	    vmpt_reserve(&e->paths, &e->path_room, e->path_count + 1))
		return 0;
	vmpt_flow_memory(e, room * sizeof(*e->paths), e->path_room * sizeof(*e->paths));
	e->paths[e->path_count] =
		(struct path){ .h = h, .list = (u32)e->list_count, .count = count };
	if (count)
		memcpy(e->lists + e->list_count, units, count * sizeof(*units));
	e->list_count += count;
	if (e->versions && vmpt_flow_link_path(e, (u32)e->path_count))
		return 0;
	return (u32)e->path_count++;
}

u32 vmpt_flow_effect_add(struct engine *e, const struct track *track, u32 path, u32 next)
{
	u32 pops = (u32)-track->low, pushes = (u32)(track->level - track->low), i;
	const struct node *end = &e->nodes[e->c.handle >> HANDLE_SHIFT];
	size_t effect_room = e->effect_room, value_room = e->value_room;

	if (vmpt_reserve(&e->effects, &e->effect_room, e->effect_count + 1) ||
	    vmpt_reserve(&e->values, &e->value_room, e->value_count + pops + pushes))
		return 0;
	vmpt_flow_memory(e, effect_room * sizeof(*e->effects) + value_room * sizeof(*e->values),
			 e->effect_room * sizeof(*e->effects) + e->value_room * sizeof(*e->values));
	e->effects[e->effect_count] = (struct effect){
		.next = next,
		.end = e->c.handle,
		.path = path,
		.values = (u32)e->value_count,
		.guarded = track->guarded,
		.pops = (u8)pops,
		.pushes = (u8)pushes,
		.peak = (u8)track->peak,
		.clear = track->clear,
		.compressed = track->compressed,
		.end_pushes = end->call_count,
	};
	if (pops)
		memcpy(e->values + e->value_count, track->guards, pops * sizeof(u64));
	e->value_count += pops;
	for (i = 0; i < pushes; i++)
		e->values[e->value_count++] = e->s.slot[(u8)(e->s.top - pushes + i)];
	return (u32)e->effect_count++;
}

void vmpt_flow_track_effect(struct engine *e, const struct effect *fx)
{
	struct track part = {
		.level = fx->pushes - fx->pops,
		.low = -fx->pops,
		.peak = fx->peak,
		.guarded = fx->guarded,
		.clear = fx->clear,
		.compressed = fx->compressed,
		.any = true,
	};

	if (fx->pops)
		memcpy(part.guards, e->values + fx->values, fx->pops * sizeof(u64));
	track_part(&e->track, &part);
}

void vmpt_flow_track_calls(struct engine *e, u32 calls)
{
	for (; calls; calls--)
		track_push(&e->track);
}

/* Without memory there is no memo: nothing depends on it. */
static void add_memo(struct engine *e, u32 start, u64 bytes, const struct walk *w)
{
	struct memo *m = vmpt_flow_memo(e, start, bytes);
	u32 path, effect = 0;

	if (w->track.off || w->track.peak + -w->track.low > (s32)DEPTH)
		return;
	path = vmpt_flow_path_add(e, w->h, w->unit, w->count);
	if (!path)
		return;
	if (e->stack && (w->track.any || m->effect)) {
		effect = vmpt_flow_effect_add(e, &w->track, path, m->effect);
		if (!effect)
			return;
	}
	if (e->versions)
		vmpt_flow_link_memo(e, path, vmpt_flow_memo_hash(start, bytes), false);
	if (m->start) {
		m->effect = effect;
		return;
	}
	m = vmpt_flow_memo_slot(e, start, bytes);
	e->memo_count += !m->start;
	*m = (struct memo){ bytes, start, e->c.handle, path, effect };
	if (2 * e->memo_count > e->memo_mask && memos_grow(e))
		e->full = true;
}

/* ---- walking ---- */

/* The node after the current one by a TNT bit; 0: there is none. */
static u32 next_node(struct engine *e, unsigned int bit, struct track *track)
{
	u32 handle = e->c.handle, space;
	u64 ip;

	if (handle & HANDLE_COND)
		return vmpt_flow_child(e, handle, bit);
	if (!(handle & HANDLE_RET) || !bit || !e->stack || !e->s.depth)
		return 0;
	ip = pop(&e->s);
	track_pop(track, ip, true);
	track->compressed++;
	e->c.compressed++;
	space = e->nodes[handle >> HANDLE_SHIFT].space;
	if (e->space[space].id.exec != 64)
		ip &= 0xffffffff;
	return vmpt_flow_node_at(e, space, ip);
}

static bool step(struct engine *e, unsigned int bit, struct walk *w)
{
	u32 left = e->c.handle >> HANDLE_SHIFT, handle = next_node(e, bit, &w->track), id;

	if (!handle)
		return false;
	id = handle >> HANDLE_SHIFT;
	if (e->hash) {
		struct hashes h = e->node_hashes[left];

		e->h.hash = e->h.hash * h.pow + h.hash;
		e->h.pow *= h.pow;
		w->h.hash = w->h.hash * h.pow + h.hash;
		w->h.pow *= h.pow;
	}
	e->c.handle = handle;
	e->node_hits[id] += e->weight;
	if (e->blocks && !e->quiet)
		vmpt_flow_log(e, id);
	if (e->stack && handle & HANDLE_PUSH)
		push_calls(e, &e->nodes[id], &w->track);
	w->unit[w->count++] = id;
	return true;
}

unsigned int vmpt_flow_bits(u64 bytes)
{
	unsigned int n = 0;

	for (; bytes; bytes >>= 8)
		n += 31u - (unsigned int)__builtin_clz((u8)bytes) - 1;
	return n;
}

unsigned int vmpt_flow_walk(struct engine *e, u64 bytes)
{
	unsigned int done = 0, bit;
	u32 start = e->c.handle;
	struct walk w;
	u64 rest;

	/* Not the arrays: they are filled as far as they are used. */
	w.h = (struct hashes){ 0, 1 };
	w.count = 0;
	vmpt_flow_track_begin(&w.track);
	for (rest = bytes; rest; rest >>= 8) {
		u8 byte = (u8)rest;

		/* Below the stop bit, the oldest is the highest one; bit 0 is the header. */
		for (bit = 1u << (31 - __builtin_clz(byte)) >> 1; bit > 1; bit >>= 1, done++)
			if (!step(e, !!(byte & bit), &w)) {
				e->recording = false;
				return done;
			}
	}
	if (!(e->options.off & VMPT_FLOW_NO_MEMO))
		add_memo(e, start, bytes, &w);
	e->recording = false;
	return done;
}

/* ---- the rest of a TNT packet ---- */

bool vmpt_flow_deferred_tip(struct engine *e)
{
	struct vmpt_pt_packet pkt;
	u64 at = e->c.at;

	if ((e->c.handle & (HANDLE_TIP | HANDLE_RET)) != HANDLE_TIP || e->c.block)
		return false;
	while (at < e->stop && !e->data[at])
		at++;
	if (at >= e->stop || vmpt_pt_decode(&pkt, e->data + at, e->stop - at, 0) ||
	    pkt.kind != VMPT_PT_TIP || !pkt.ip.ipbytes)
		return false;
	e->c.last_ip = vmpt_pt_ip_expand(e->c.last_ip, (unsigned int)pkt.ip.ipbytes, pkt.ip.ip);
	e->c.at = at + pkt.size;
	vmpt_flow_leave_whole(e);
	return !vmpt_flow_enter(e, e->c.last_ip);
}

/* Up to 48 of @count bits as the TNT-8 packets that would have them, oldest first. */
static u64 as_run(u64 bits, unsigned int count, unsigned int *taken)
{
	unsigned int shift, n;
	u64 bytes = 0;

	*taken = 0;
	for (shift = 0; shift < 64 && count; shift += 8) {
		n = count < 6 ? count : 6;
		count -= n;
		bytes |= (1ULL << n | (bits >> count & vmpt_mask64(n))) << 1 << shift;
		*taken += n;
	}
	return bytes;
}

/* What a run ends at: a compressed RET that needs a stack, a deferred TIP, else it is impossible.
 */
static int unstick(struct engine *e, u64 at, unsigned int bit, unsigned int done)
{
	const struct need need = { .kind = NEED_BITS, .at = at, .done = done };

	/* Other code may have a RET here. */
	if ((e->c.handle & HANDLE_RET || e->versions) && bit && !e->stack &&
	    e->options.returns != VMPT_FLOW_RETURNS_NONE)
		return vmpt_flow_make_stack(e, at, done);
	if (!vmpt_flow_other_code(e, &need) && !e->error && !vmpt_flow_deferred_tip(e) && !e->error)
		vmpt_flow_lose(e, at);
	return e->error;
}

int vmpt_flow_tnt(struct engine *e, u64 at, u64 bits, unsigned int count, unsigned int done)
{
	unsigned int n, want;
	u64 run;
	u32 end;

	e->recording = false;
	while (count && e->c.handle) {
		run = as_run(bits, count, &want);
		n = want;
		end = vmpt_flow_memo_take(e, e->c.handle, run, e->hash, e->blocks, e->stack, false);
		if (end)
			e->c.handle = end;
		else
			n = vmpt_flow_walk(e, run);
		count -= n;
		done += n;
		if (!e->error && n < want)
			unstick(e, at, bits >> (count - 1) & 1, done);
		if (e->error)
			return e->error;
	}
	return 0;
}

/* TNT bits while the flow is not RUNNING. */
static int bits_astray(struct engine *e, u64 at, u8 pending)
{
	vmpt_flow_stack_clear(&e->s);
	if (e->c.place == DISABLED) {
		/* A TIP.PGE is missing, or the packet that stopped the flow was none. */
		if (e->blocks && !e->quiet) {
			vmpt_flow_close_batch(e, 0, 0, false);
			/* The flow may go on, and be lost again, in this packet. */
			e->batch_from = at;
		}
		vmpt_flow_gap(e, at, VMPT_FLOW_IMPOSSIBLE, NONE, 0);
		e->c.place = LOST;
		vmpt_flow_anchors_forget(e);
		vmpt_flow_anchor_last_ip(e);
	}
	/* No event's FUP, which a TIP follows: that of a damaged PSB+ or other packet. The flow is
	 * there. */
	if (pending & PENDING_FUP)
		return vmpt_flow_enter(e, e->c.fup_ip);
	return 0;
}

int vmpt_flow_bits_at(struct engine *e, u64 at, u64 bits, unsigned int count)
{
	u8 pending = e->c.pending;
	int ret;

	e->c.pending = 0;
	ret = e->c.place == RUNNING ? 0 : bits_astray(e, at, pending);
	if (ret)
		return ret;
	if (e->c.place == RUNNING)
		return vmpt_flow_tnt(e, at, bits, count, 0);
	return e->c.rejoin ? vmpt_flow_rejoin(e, at, bits, count) : 0;
}
