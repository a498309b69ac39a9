// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Nodes: blocks in a row over direct jumps and calls, up to what waits for a packet; the table by
 * IP that leads to them; and the memory of all tables.
 */
#include "decoder/flow/engine.h"

#define IPS_MIN	  4096u
#define MEMOS_MIN 4096u

/*
 * Room at first, with the default memory: arrays that grow from nothing are copied, and the pages
 * of each copy cost more than what goes into them. What is not used costs nothing.
 */
static size_t first_room(const struct engine *e, unsigned int shift)
{
	return (e->options.memory < 64u << 20 ? e->options.memory : 64u << 20) >> shift;
}

void vmpt_flow_memory(struct engine *e, size_t from, size_t to)
{
	e->memory += to - from;
	if (e->memory > e->options.memory)
		e->full = true;
}

/* As vmpt_reserve(), with the memory counted. */
#define reserve(e, array, room, want)                                                            \
	({                                                                                       \
		size_t before_ = *(room);                                                        \
		int ret_ = vmpt_reserve((array), (room), (want));                                \
                                                                                                 \
		vmpt_flow_memory((e), before_ * sizeof(**(array)), *(room) * sizeof(**(array))); \
		ret_;                                                                            \
	})

int vmpt_flow_lists_room(struct engine *e, size_t n)
{
	if (e->list_count + n > NONE)
		return -VMPT_E_NOMEM;
	return reserve(e, &e->lists, &e->list_room, e->list_count + n + LISTS_AHEAD);
}

static int nodes_room(struct engine *e)
{
	size_t room, want = e->node_room ? e->node_count + 1 : first_room(e, 14);
	int ret = 0;

	if (want > NODES_MAX)
		return -VMPT_E_NOMEM;
	if (want <= e->node_room)
		return 0;
	room = e->node_room;
	ret |= vmpt_reserve(&e->node_hashes, &room, want);
	room = e->node_room;
	ret |= vmpt_reserve_zeroed(&e->node_hits, &room, want);
	if (ret)
		return -VMPT_E_NOMEM;
	room = e->node_room;
	ret = reserve(e, &e->nodes, &e->node_room, want);
	vmpt_flow_memory(e, room * 3 * sizeof(u64), e->node_room * 3 * sizeof(u64));
	return ret;
}

static int ips_grow(struct engine *e)
{
	u32 slots = e->ip_mask + 1, i, at;
	struct ip_slot *more = calloc(2 * (size_t)slots, sizeof(*more));
	u32 mask = 2 * slots - 1;

	if (!more)
		return -VMPT_E_NOMEM;
	e->ip_count = 0;
	for (i = 0; i < slots; i++) {
		if (!e->ips[i].handle || e->ips[i].space == NONE)
			continue;
		e->ip_count++;
		at = (u32)vmpt_flow_ip_hash(e, e->ips[i].space, e->ips[i].ip) & mask;
		while (more[at].handle)
			at = (at + 1) & mask;
		more[at] = e->ips[i];
	}
	free(e->ips);
	e->ips = more;
	e->ip_mask = mask;
	vmpt_flow_memory(e, slots * sizeof(*more), 2 * slots * sizeof(*more));
	return 0;
}

static int ip_add(struct engine *e, u32 space, u64 ip, u32 handle)
{
	u32 i;

	if (2 * e->ip_count > e->ip_mask && ips_grow(e))
		return -VMPT_E_NOMEM;
	i = (u32)vmpt_flow_ip_hash(e, space, ip) & e->ip_mask;
	while (e->ips[i].handle && e->ips[i].space != NONE)
		i = (i + 1) & e->ip_mask;
	e->ip_count += !e->ips[i].handle;
	e->ips[i] = (struct ip_slot){ ip, space, handle };
	return 0;
}

/* Where the flow goes on after @b without a packet; false: it does not. */
static bool goes_on(const struct block *b, u64 *ip)
{
	switch (b->class) {
	case VMPT_INSN_OTHER:
	case VMPT_INSN_MOV_CR3:
		*ip = b->next;
		return true;
	case VMPT_INSN_JMP:
	case VMPT_INSN_CALL:
		*ip = b->target;
		return true;
	default:
		return false;
	}
}

/* Without a packet between, a block that runs twice runs for ever. */
static bool has_block(const struct engine *e, const struct node *n, u32 id)
{
	u32 i;

	for (i = 0; i < n->count; i++)
		if (e->lists[n->list + i] == id)
			return true;
	return false;
}

static int chain(struct engine *e, struct node *n)
{
	const struct block *b;
	u64 ip = n->ip;
	u32 insns = 0;
	u32 id;
	int ret;

	do {
		n->next_ip = ip;
		id = vmpt_flow_block_at(e, n->space, ip, &n->end);
		if (e->error)
			return e->error;
		if (id == NONE)
			return 0;
		b = &e->block[id];
		insns += b->insns;
		if (n->count == NODE_BLOCKS || insns > e->options.no_packet_max ||
		    n->call_count == NODE_PUSHES || has_block(e, n, id)) {
			n->end = has_block(e, n, id) ? END_LOOP : END_ENDLESS;
			return 0;
		}
		ret = vmpt_flow_lists_room(e, 1);
		ret = ret ? ret : reserve(e, &e->returns, &e->return_room, e->return_count + 1);
		if (ret)
			return ret;
		e->lists[e->list_count++] = id;
		n->count++;
		if (b->class == VMPT_INSN_MOV_CR3)
			n->mov_cr3 = true;
		if (vmpt_flow_pushes(b)) {
			e->returns[e->return_count++] = b->next;
			n->call_count++;
		}
	} while (goes_on(b, &ip));
	n->next_ip = b->next;
	n->end = b->class;
	return 0;
}

static u32 flags_of(const struct node *n)
{
	u32 flags = 0;

	switch (n->end) {
	case VMPT_INSN_COND:
		flags = HANDLE_COND;
		break;
	case VMPT_INSN_RET:
		flags = HANDLE_TIP | HANDLE_RET;
		break;
	case VMPT_INSN_JMP_IND:
	case VMPT_INSN_CALL_IND:
	case VMPT_INSN_FAR:
		flags = HANDLE_TIP;
		break;
	}
	if (n->call_count)
		flags |= HANDLE_PUSH;
	if (n->count > 1)
		flags |= HANDLE_MULTI;
	return flags;
}

static struct hashes node_hash(const struct engine *e, const struct node *n)
{
	struct hashes h = { 0, 1 };
	const struct block *b;
	u64 pow;
	u32 i;

	for (i = 0; i < n->count; i++) {
		b = &e->block[e->lists[n->list + i]];
		pow = vmpt_flow_pow(b->insns);
		h.hash = h.hash * pow + b->hash;
		h.pow *= pow;
	}
	return h;
}

u32 vmpt_flow_node_at(struct engine *e, u32 space, u64 ip)
{
	u32 handle = vmpt_flow_ip_find(e, space, ip);
	struct node n = { .ip = ip, .space = space };
	u32 id = (u32)e->node_count;
	int ret;

	if (handle)
		return handle;
	n.list = (u32)e->list_count;
	n.calls = (u32)e->return_count;
	ret = nodes_room(e);
	ret = ret ? ret : chain(e, &n);
	handle = id << HANDLE_SHIFT | flags_of(&n);
	ret = ret ? ret : ip_add(e, space, ip, handle);
	if (ret) {
		e->error = ret;
		return 0;
	}
	e->nodes[id] = n;
	e->node_hits[id] = 0;
	if (e->hash)
		e->node_hashes[id] = node_hash(e, &n);
	if (e->versions && vmpt_flow_link_node(e, id)) {
		e->error = -VMPT_E_NOMEM;
		return 0;
	}
	e->node_count++;
	return handle;
}

u32 vmpt_flow_child_new(struct engine *e, u32 handle, unsigned int taken)
{
	u32 id = handle >> HANDLE_SHIFT, child;
	const struct node *n = &e->nodes[id];
	u64 ip = taken ? e->block[e->lists[n->list + n->count - 1u]].target : n->next_ip;

	child = vmpt_flow_node_at(e, n->space, ip);
	e->nodes[id].child[taken] = child;
	return child;
}

/* ---- all tables ---- */

int vmpt_flow_tables_init(struct engine *e)
{
	e->ips = calloc(IPS_MIN, sizeof(*e->ips));
	e->memos = calloc(MEMOS_MIN, sizeof(*e->memos));
	e->ip_mask = IPS_MIN - 1;
	e->memo_mask = MEMOS_MIN - 1;
	vmpt_flow_memory(e, 0, IPS_MIN * sizeof(*e->ips) + MEMOS_MIN * sizeof(*e->memos));
	/* Node 0, effect 0 and path 0 are none. */
	e->raw_seen = calloc(RAW_SEEN, sizeof(*e->raw_seen));
	if (!e->ips || !e->memos || !e->raw_seen || nodes_room(e) ||
	    vmpt_flow_lists_room(e, first_room(e, 10) - LISTS_AHEAD) ||
	    reserve(e, &e->returns, &e->return_room, 1) ||
	    reserve(e, &e->values, &e->value_room, 1) ||
	    reserve(e, &e->effects, &e->effect_room, 1) ||
	    reserve(e, &e->paths, &e->path_room, first_room(e, 14)))
		return -VMPT_E_NOMEM;
	if (!(e->options.off & VMPT_FLOW_NO_RAW_MEMO) && vmpt_flow_raw_grow(e))
		return -VMPT_E_NOMEM;
	memset(&e->nodes[0], 0, sizeof(e->nodes[0]));
	memset(&e->paths[0], 0, sizeof(e->paths[0]));
	memset(&e->effects[0], 0, sizeof(e->effects[0]));
	e->node_hits[0] = 0;
	e->node_count = e->effect_count = e->path_count = 1;
	return 0;
}

void vmpt_flow_tables_free(struct engine *e)
{
	free(e->ips);
	free(e->memos);
	free(e->raws);
	free(e->raw_index);
	free(e->raw_seen);
	free(e->nodes);
	free(e->node_hits);
	free(e->node_hashes);
	free(e->paths);
	free(e->lists);
	free(e->returns);
	free(e->effects);
	free(e->values);
	vmpt_flow_links_clear(e);
	e->ips = NULL;
	e->memos = NULL;
	e->raws = NULL;
	e->raw_index = NULL;
	e->raw_seen = NULL;
	e->nodes = NULL;
	e->node_hits = NULL;
	e->node_hashes = NULL;
	e->paths = NULL;
	e->lists = NULL;
	e->returns = NULL;
	e->effects = NULL;
	e->values = NULL;
	e->node_count = e->node_room = e->path_count = e->path_room = 0;
	e->ip_count = e->memo_count = e->raw_count = e->raw_room = e->raw_mask = 0;
	e->list_count = e->list_room = e->return_count = e->return_room = 0;
	e->effect_count = e->effect_room = e->value_count = e->value_room = 0;
	e->memory = 0;
	e->full = false;
}

/* A cursor's node, while the tables are thrown away. */
struct kept {
	struct node node;
	u32 handle;
	u32 list[NODE_BLOCKS];
	u64 returns[NODE_PUSHES];
};

static void keep(const struct engine *e, const struct cursor *c, struct kept *k)
{
	k->handle = c->handle;
	k->node = e->nodes[c->handle >> HANDLE_SHIFT];
	memcpy(k->list, e->lists + k->node.list, k->node.count * sizeof(*k->list));
	memcpy(k->returns, e->returns + k->node.calls, k->node.call_count * sizeof(*k->returns));
}

/* An old node stays what it was; nothing leads to it. */
static u32 old_again(struct engine *e, const struct kept *k)
{
	u32 id = (u32)e->node_count;
	struct node *n;

	if (nodes_room(e) || vmpt_flow_lists_room(e, k->node.count) ||
	    reserve(e, &e->returns, &e->return_room, e->return_count + k->node.call_count))
		return 0;
	n = &e->nodes[id];
	*n = k->node;
	n->list = (u32)e->list_count;
	n->calls = (u32)e->return_count;
	n->child[0] = n->child[1] = 0;
	memcpy(e->lists + n->list, k->list, n->count * sizeof(*k->list));
	memcpy(e->returns + n->calls, k->returns, n->call_count * sizeof(*k->returns));
	e->list_count += n->count;
	e->return_count += n->call_count;
	e->node_hits[id] = 0;
	if (e->hash)
		e->node_hashes[id] = node_hash(e, n);
	if (vmpt_flow_link_node(e, id))
		return 0;
	e->node_count++;
	return id << HANDLE_SHIFT | (k->handle & ((1u << HANDLE_SHIFT) - 1));
}

/* Look up the node of a cursor after the tables were thrown away. */
static int renew(struct engine *e, struct cursor *c, const struct kept *k)
{
	if (!c->handle)
		return 0;
	c->handle = k->node.old ? old_again(e, k) : vmpt_flow_node_at(e, k->node.space, k->node.ip);
	if (!c->handle && !e->error)
		e->error = -VMPT_E_NOMEM;
	return e->error;
}

int vmpt_flow_flush(struct engine *e)
{
	struct kept now, psb;
	u64 places[REJOIN_NODES];
	u32 i;
	int ret;

	for (i = 0; i < e->rejoin.count; i++)
		places[i] = e->nodes[e->rejoin.node[i] >> HANDLE_SHIFT].ip;
	keep(e, &e->c, &now);
	keep(e, &e->psb, &psb);
	vmpt_flow_spread(e);
	vmpt_flow_tables_free(e);
	ret = vmpt_flow_tables_init(e);
	ret = ret ? ret : renew(e, &e->c, &now);
	ret = ret ? ret : renew(e, &e->psb, &psb);
	ret = ret ? ret : vmpt_flow_rejoin_renew(e, places);
	/* What is held back is the current node. */
	if (e->log_count)
		e->log[0] = e->c.handle >> HANDLE_SHIFT;
	e->full = false;
	return ret;
}
