// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Entering and leaving nodes. A node counts as executed when it is entered; what was not is taken
 * back when it is left. The ordered hash and the results have it only once it is left.
 */
#include "decoder/flow/engine.h"

/* ---- the stack of return addresses ---- */

void vmpt_flow_push_calls(struct engine *e, const struct node *n)
{
	struct returns_stack *s = &e->s;
	u32 i;

	s->before = s->depth;
	for (i = 0; i < n->call_count; i++)
		s->slot[s->top++] = e->returns[n->calls + i];
	s->depth += n->call_count;
	if (s->depth > DEPTH)
		s->depth = DEPTH;
}

/* The last @n of the current node's calls were not executed. */
static void take_back_calls(struct engine *e, const struct node *node, u32 n)
{
	struct returns_stack *s = &e->s;
	u32 depth = s->before + node->call_count - n;

	s->top = (u8)(s->top - n);
	s->depth = (u16)(depth > DEPTH ? DEPTH : depth);
}

/* ---- entering ---- */

int vmpt_flow_enter_in(struct engine *e, u32 space, u64 ip)
{
	u32 id;

	if (e->space[space].id.exec != 64)
		ip &= 0xffffffff;
	e->c.handle = vmpt_flow_node_at(e, space, ip);
	if (!e->c.handle)
		return e->error;
	id = e->c.handle >> HANDLE_SHIFT;
	e->c.place = RUNNING;
	e->node_hits[id] += e->weight;
	if (!e->quiet && e->blocks)
		vmpt_flow_log(e, id);
	if (e->stack && e->c.handle & HANDLE_PUSH)
		vmpt_flow_push_calls(e, &e->nodes[id]);
	return 0;
}

int vmpt_flow_enter(struct engine *e, u64 ip)
{
	if (e->c.space == NONE)
		e->c.space = vmpt_flow_space_now(e);
	if (e->c.space == NONE)
		return e->error;
	return vmpt_flow_enter_in(e, e->c.space, ip);
}

/* ---- leaving ---- */

static void charge(struct engine *e, struct hashes h)
{
	e->h.hash = e->h.hash * h.pow + h.hash;
	e->h.pow *= h.pow;
}

void vmpt_flow_leave_whole(struct engine *e)
{
	u32 id = e->c.handle >> HANDLE_SHIFT;

	if (e->hash && id)
		charge(e, e->node_hashes[id]);
	e->c.handle = 0;
}

/* Take @b back, but for @insns. */
static void take_back(struct engine *e, struct block *b, u32 insns)
{
	b->whole -= e->weight;
	b->partial += insns * e->weight;
	if (e->options.left && insns && e->weight &&
	    vmpt_flow_left_add(&e->left, e->seed, (u32)(b - e->block), insns, e->weight))
		e->error = -VMPT_E_NOMEM;
}

void vmpt_flow_leave(struct engine *e, u32 blocks, u32 insns)
{
	const struct node *n = &e->nodes[e->c.handle >> HANDLE_SHIFT];
	const u32 *list = e->lists + n->list;
	u32 i, calls = 0;

	if (blocks < n->count && insns == e->block[list[blocks]].insns) {
		blocks++;
		insns = 0;
	}
	if (blocks == n->count) {
		vmpt_flow_leave_whole(e);
		return;
	}
	for (i = blocks; i < n->count; i++) {
		take_back(e, &e->block[list[i]], i == blocks ? insns : 0);
		calls += vmpt_flow_pushes(&e->block[list[i]]);
	}
	if (e->hash) {
		for (i = 0; i < blocks; i++)
			charge(e, (struct hashes){ e->block[list[i]].hash,
						   vmpt_flow_pow(e->block[list[i]].insns) });
		if (insns)
			charge(e, vmpt_flow_block_hash(e, &e->block[list[blocks]], insns));
	}
	if (e->stack && calls)
		take_back_calls(e, n, calls);
	if (e->blocks && !e->quiet)
		vmpt_flow_close_batch(e, blocks + !!insns,
				      insns    ? insns
				      : blocks ? e->block[list[blocks - 1]].insns
					       : 0,
				      false);
	e->c.handle = 0;
}

void vmpt_flow_leave_undone(struct engine *e)
{
	vmpt_flow_leave(e, 0, 0);
}

/*
 * Code that is missing, or a loop, comes after what was executed; only a branch waits for a packet.
 * Of too many instructions nothing is proven.
 */
void vmpt_flow_leave_open(struct engine *e)
{
	const struct node *n = &e->nodes[e->c.handle >> HANDLE_SHIFT];

	if (n->end == END_ENDLESS)
		vmpt_flow_leave_undone(e);
	else if (!n->count || n->end >= VMPT_INSN_CLASSES)
		vmpt_flow_leave_whole(e);
	else
		vmpt_flow_leave(e, n->count - 1u,
				e->block[e->lists[n->list + n->count - 1u]].insns - 1u);
}

bool vmpt_flow_leave_at(struct engine *e, u64 ip)
{
	const struct node *n = &e->nodes[e->c.handle >> HANDLE_SHIFT];
	const struct block *b;
	int insns;
	u32 i;

	if (e->space[n->space].id.exec != 64)
		ip &= 0xffffffff;
	for (i = 0; i < n->count; i++) {
		b = &e->block[e->lists[n->list + i]];
		if (ip < b->ip || ip > b->end_ip)
			continue;
		insns = vmpt_flow_block_find(e, b, ip);
		if (insns >= 0) {
			vmpt_flow_leave(e, i, (u32)insns);
			return true;
		}
	}
	if (n->end < VMPT_INSN_CLASSES || n->next_ip != ip)
		return false;
	vmpt_flow_leave_whole(e);
	return true;
}

u64 vmpt_flow_end_ip(const struct engine *e)
{
	const struct node *n = &e->nodes[e->c.handle >> HANDLE_SHIFT];

	if (!n->count || n->end >= VMPT_INSN_CLASSES)
		return n->next_ip;
	return e->block[e->lists[n->list + n->count - 1u]].end_ip;
}

/* ---- losing the place ---- */

void vmpt_flow_gap(struct engine *e, u64 offset, enum vmpt_flow_reason reason, u32 space, u64 ip)
{
	if (e->quiet)
		return;
	e->results[e->result_count++] = (struct result){
		.offset = offset,
		.end = offset,
		.ip = ip,
		.space = space,
		.log = e->log_count,
		.node = NONE,
		.kind = VMPT_FLOW_GAP,
		.reason = (u8)reason,
	};
}

static enum vmpt_flow_reason reason_of(const struct engine *e)
{
	switch (e->nodes[e->c.handle >> HANDLE_SHIFT].end) {
	case END_NO_CODE:
		return VMPT_FLOW_NO_CODE;
	case END_BAD_CODE:
		return VMPT_FLOW_BAD_CODE;
	case END_LOOP:
	case END_ENDLESS:
		return VMPT_FLOW_ENDLESS;
	case VMPT_INSN_COND:
		return e->options.no_tnt ? VMPT_FLOW_NO_TNT : VMPT_FLOW_IMPOSSIBLE;
	default:
		return VMPT_FLOW_IMPOSSIBLE;
	}
}

void vmpt_flow_lose(struct engine *e, u64 offset)
{
	enum vmpt_flow_reason reason = reason_of(e);
	u64 ip = vmpt_flow_end_ip(e);
	u32 space = vmpt_flow_in(e);

	vmpt_flow_anchor(e, offset);
	/* A packet came, so it is not the code that ran. */
	if (reason == VMPT_FLOW_ENDLESS)
		vmpt_flow_leave_undone(e);
	else
		vmpt_flow_leave_open(e);
	if (e->blocks && !e->quiet)
		vmpt_flow_close_batch(e, 0, 0, false);
	vmpt_flow_gap(e, offset, reason, space, ip);
	e->c.place = LOST;
	vmpt_flow_stack_clear(&e->s);
}

/* ---- a stack, once a RET needs it ---- */

void vmpt_flow_stack_from(struct engine *e)
{
	if (e->quiet || e->stack)
		return;
	e->psb = e->c;
	e->psb_owner = e->owner;
	e->owner_count = 0;
}

/* Go from where the stack was empty to @at again. */
static int replay(struct engine *e, u64 at)
{
	size_t i = 0;
	int ret = 0;

	while (e->c.at < at && !ret) {
		if (i < e->owner_count && e->owners[i].at <= e->c.at)
			vmpt_flow_owner(e, &e->owners[i++].owner);
		e->stop = i < e->owner_count && e->owners[i].at < at ? e->owners[i].at : at;
		ret = vmpt_flow_packets(e);
	}
	for (; i < e->owner_count; i++)
		vmpt_flow_owner(e, &e->owners[i].owner);
	return ret;
}

/* Whether it is the same code: one that was made again has another handle. */
static bool same_node(const struct engine *e, u32 handle, u32 other)
{
	const struct node *a = &e->nodes[handle >> HANDLE_SHIFT];
	const struct node *b = &e->nodes[other >> HANDLE_SHIFT];

	return handle == other ||
	       (handle && other && a->ip == b->ip && a->space == b->space && a->count == b->count &&
		!memcmp(e->lists + a->list, e->lists + b->list, a->count * sizeof(*e->lists)));
}

int vmpt_flow_make_stack(struct engine *e, u64 at, unsigned int done)
{
	struct vmpt_owner owner = e->owner;
	struct cursor now = e->c;
	struct vmpt_pt_packet pkt;
	struct hashes h = e->h;
	u64 stop = e->stop, weight = e->weight;
	int ret;

	/* Memos made without a stack say nothing about it. */
	memset(e->memos, 0, (e->memo_mask + 1) * sizeof(*e->memos));
	e->memo_count = 0;
	vmpt_flow_raw_clear(e);
	e->stack = e->quiet = true;
	e->weight = 0;
	vmpt_flow_cursor_set(e, &e->psb);
	e->owner = e->psb_owner;
	vmpt_flow_stack_clear(&e->s);
	if (e->c.handle & HANDLE_PUSH)
		vmpt_flow_push_calls(e, &e->nodes[e->c.handle >> HANDLE_SHIFT]);
	ret = replay(e, at);
	e->stop = stop;
	if (!ret && !vmpt_pt_decode(&pkt, e->data + at, stop - at, 0)) {
		e->c.at = at + pkt.size;
		ret = vmpt_flow_bits_at(e, at, done ? pkt.tnt.bits >> (pkt.tnt.count - done) : 0,
					done);
	}
	/* A TIP may have come between these bits and the RET. */
	while (!ret && e->c.at < now.at && vmpt_flow_deferred_tip(e))
		;
	if (!same_node(e, e->c.handle, now.handle))
		vmpt_flow_stack_clear(&e->s);
	e->quiet = false;
	e->weight = weight;
	vmpt_flow_cursor_set(e, &now);
	e->h = h;
	e->owner = owner;
	return ret;
}
