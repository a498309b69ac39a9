// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Code that changes. What is executed at a time is the code that images have for that time,
 * wherever in the trace the decoder came from. So once the time has left that of a page, the page
 * is asked for again; blocks with other bytes now are old, and with them all nodes, paths and memos
 * that have one: they are found by links, which are made only where code changes. Old ones keep
 * their indices and counts; no lookup returns them.
 */
#include "decoder/flow/engine.h"

/* ---- pages ---- */

void vmpt_flow_page_answered(struct engine *e, struct page *p, const struct vmpt_page *answer)
{
	u64 now = vmpt_flow_now(e), from = answer->from, to = answer->to;
	u32 index = (u32)(p - e->page);

	if (from > now || to <= now) {
		/* A version of another time */
		if (p->count)
			return;
		/* An image that contradicts itself is asked at each TSC packet. */
		from = now;
		to = now + 1;
	}
	if (from > p->from)
		p->from = from;
	if (to < p->to)
		p->to = to;
	if (p->from > e->good_from)
		e->good_from = p->from;
	if (p->to < e->good_to)
		e->good_to = p->to;
	if (p->to == ~0ULL || p->ending)
		return;
	if (vmpt_grow(&e->ending, e->ending_count)) {
		e->error = -VMPT_E_NOMEM;
		return;
	}
	e->ending[e->ending_count++] = index;
	p->ending = true;
}

static void forget(struct engine *e, u32 index)
{
	struct page *p = &e->page[index];

	if (vmpt_grow(&e->renewed, e->renewed_count)) {
		e->error = -VMPT_E_NOMEM;
		return;
	}
	e->renewed[e->renewed_count++] = index;
	p->from = 0;
	p->to = ~0ULL;
	p->count = 0;
	p->complete = false;
	if (p->prefer)
		vmpt_flow_choice_forget(e, index);
	p->prefer = 0;
}

/* Forget what pages had at another time than @now. */
static void forget_pages(struct engine *e, u64 now)
{
	size_t i, n = 0;
	struct page *p;

	if (now < e->good_from) {
		e->good_from = 0;
		for (i = 0; i < e->page_count; i++) {
			p = &e->page[i];
			if (p->from > now)
				forget(e, (u32)i);
			else if (p->from > e->good_from)
				e->good_from = p->from;
		}
	}
	e->good_to = ~0ULL;
	for (i = 0; i < e->ending_count; i++) {
		p = &e->page[e->ending[i]];
		if (p->to <= now)
			forget(e, e->ending[i]);
		if (p->to < e->good_to)
			e->good_to = p->to;
		if (p->to != ~0ULL)
			e->ending[n++] = e->ending[i];
		else
			p->ending = false;
	}
	e->ending_count = n;
}

/* ---- links ---- */

static int link_to(struct engine *e, u32 *list, u32 unit)
{
	size_t room = e->link_room;

	if (!e->link_count)
		e->link_count = 1; /* 0 is none */
	if (e->link_count >= NONE || vmpt_reserve(&e->links, &e->link_room, e->link_count + 1))
		return -VMPT_E_NOMEM;
	vmpt_flow_memory(e, room * sizeof(*e->links), e->link_room * sizeof(*e->links));
	e->links[e->link_count] = (struct link){ unit, *list };
	*list = (u32)e->link_count++;
	return 0;
}

/* A block's element in the list of its first or second page. */
static void list_block(struct engine *e, u32 id, unsigned int nth)
{
	const struct block *b = &e->block[id];
	struct block_life *life = &e->block_life[id];
	u32 page;

	if (life->listed[nth])
		return;
	page = vmpt_flow_page(e, b->space, (b->ip & ~(VMPT_PAGE - 1ULL)) + nth * VMPT_PAGE);
	if (page == NONE)
		return;
	life->next[nth] = e->page[page].blocks;
	life->listed[nth] = true;
	e->page[page].blocks = (id << 1 | nth) + 1;
}

int vmpt_flow_link_block(struct engine *e, u32 id)
{
	const struct block *b = &e->block[id];

	if (vmpt_reserve_zeroed(&e->block_life, &e->block_life_room, id + 1ULL))
		return -VMPT_E_NOMEM;
	list_block(e, id, 0);
	if (b->ip % VMPT_PAGE + b->size > VMPT_PAGE)
		list_block(e, id, 1);
	return e->error;
}

int vmpt_flow_link_node(struct engine *e, u32 id)
{
	const struct node *n = &e->nodes[id];
	u32 i, page;
	int ret;

	ret = vmpt_reserve_zeroed(&e->node_paths, &e->node_paths_room, id + 1ULL);
	for (i = 0; i < n->count && !ret; i++)
		ret = link_to(e, &e->block_life[e->lists[n->list + i]].nodes, id);
	if (n->end != END_NO_CODE && n->end != END_BAD_CODE)
		return ret;
	/* Bytes that it lacks may come; they are in at most two pages. */
	for (i = 0; i < 2 && !ret; i++) {
		page = vmpt_flow_page(e, n->space,
				      (n->next_ip & ~(VMPT_PAGE - 1ULL)) + i * VMPT_PAGE);
		ret = page == NONE ? -VMPT_E_NOMEM : link_to(e, &e->page[page].nodes, id);
	}
	return ret;
}

int vmpt_flow_link_path(struct engine *e, u32 id)
{
	const struct path *p = &e->paths[id];
	u32 i, unit;
	int ret;

	ret = vmpt_reserve_zeroed(&e->path_life, &e->path_life_room, id + 1ULL);
	for (i = 0; i < p->count && !ret; i++) {
		unit = e->lists[p->list + i];
		ret = link_to(e,
			      unit & UNIT_PATH ? &e->path_life[unit & ~UNIT_PATH].paths
					       : &e->node_paths[unit],
			      id);
	}
	return ret;
}

void vmpt_flow_link_memo(struct engine *e, u32 id, u32 key, bool raw)
{
	e->path_life[id].key = key;
	e->path_life[id].raw = raw;
}

void vmpt_flow_links_clear(struct engine *e)
{
	size_t i;

	free(e->links);
	free(e->node_paths);
	free(e->path_life);
	e->links = NULL;
	e->node_paths = NULL;
	e->path_life = NULL;
	e->link_count = e->link_room = e->node_paths_room = e->path_life_room = 0;
	for (i = 0; i < e->block_life_room; i++)
		e->block_life[i].nodes = 0;
	for (i = 0; i < e->page_count; i++)
		e->page[i].nodes = 0;
}

/* ---- what is old ---- */

static bool has_path(const struct engine *e, u32 path, u32 effect, u32 id)
{
	bool has = path == id;

	for (; effect && !has; effect = e->effects[effect].next)
		has = e->effects[effect].path == id;
	return has;
}

static void remove_memo(struct engine *e, u32 id, u32 key)
{
	u32 i;

	for (i = key & e->memo_mask; e->memos[i].start; i = (i + 1) & e->memo_mask)
		if (e->memos[i].start != NONE &&
		    has_path(e, e->memos[i].path, e->memos[i].effect, id)) {
			e->memos[i].start = NONE;
			return;
		}
}

static void remove_raw(struct engine *e, u32 id, u32 key)
{
	struct raw_memo *m;
	u32 i;

	for (i = key & e->raw_mask; e->raw_index[i]; i = (i + 1) & e->raw_mask) {
		m = &e->raws[e->raw_index[i]];
		if (m->start != NONE &&
		    has_path(e, m->path & RAW_EFFECT ? 0 : m->path,
			     m->path & RAW_EFFECT ? m->path & ~RAW_EFFECT : 0, id)) {
			vmpt_flow_raw_remove(e, m);
			return;
		}
	}
}

/* Paths in paths are one deep. */
static void path_is_old(struct engine *e, u32 id)
{
	struct path_life *life = &e->path_life[id];
	u32 i;

	if (life->old)
		return;
	life->old = true;
	if (life->raw)
		remove_raw(e, id, life->key);
	else
		remove_memo(e, id, life->key);
	for (i = life->paths; i; i = e->links[i].next)
		path_is_old(e, e->links[i].unit);
}

static void node_is_old(struct engine *e, u32 id)
{
	struct node *n = &e->nodes[id];
	u32 i;

	if (n->old)
		return;
	n->old = true;
	i = (u32)vmpt_flow_ip_hash(e, n->space, n->ip) & e->ip_mask;
	for (; e->ips[i].handle; i = (i + 1) & e->ip_mask)
		if (e->ips[i].handle >> HANDLE_SHIFT == id)
			e->ips[i].space = NONE;
	for (i = e->node_paths[id]; i; i = e->links[i].next)
		path_is_old(e, e->links[i].unit);
}

static void nodes_are_old(struct engine *e, u32 *list)
{
	u32 i;

	for (i = *list; i; i = e->links[i].next)
		node_is_old(e, e->links[i].unit);
	*list = 0;
}

/* ---- blocks ---- */

/* Instruction by instruction, as it was read. */
static bool reads_same(struct engine *e, const struct block *b)
{
	const u8 *code = e->bytes + b->code;
	u8 bytes[VMPT_FLOW_AHEAD];
	struct vmpt_insn insn;
	u64 ip = b->ip;
	u32 at;

	for (at = 0; at < b->size; at += insn.size, ip += insn.size)
		if (vmpt_flow_insn(e, b->space, ip, &insn, bytes) != VMPT_INSN_OK ||
		    memcmp(bytes, code + at, insn.size < b->size - at ? insn.size : b->size - at) !=
			    0)
			return false;
	return at == b->size;
}

static bool is_same(struct engine *e, const struct block *b)
{
	unsigned int at = b->ip % VMPT_PAGE, i;
	u32 page = vmpt_flow_page(e, b->space, b->ip - at);
	const struct vmpt_page *p =
		page == NONE ? NULL : vmpt_flow_version(e, page, e->page[page].prefer);

	if (!p || at + b->size > VMPT_PAGE)
		return reads_same(e, b);
	for (i = 0; i < b->size; i++)
		if (!vmpt_page_knows(p, at + i))
			return reads_same(e, b);
	return !memcmp(p->bytes + at, e->bytes + b->code, b->size);
}

/* The blocks of a page that was forgotten. */
static void check_blocks(struct engine *e, u32 page)
{
	u32 item = e->page[page].blocks, id, nth, next;
	struct block_life *life;

	e->page[page].blocks = 0;
	for (; item; item = next) {
		id = (item - 1) >> 1;
		nth = (item - 1) & 1;
		life = &e->block_life[id];
		next = life->next[nth];
		life->listed[nth] = false;
		if (!e->block[id].old && !is_same(e, &e->block[id])) {
			e->block[id].old = true;
			nodes_are_old(e, &life->nodes);
		}
		if (!e->block[id].old)
			list_block(e, id, nth);
	}
}

static void page_changed(struct engine *e, u32 page)
{
	nodes_are_old(e, &e->page[page].nodes);
	check_blocks(e, page);
}

void vmpt_flow_page_prefer(struct engine *e, u32 page, u8 version)
{
	if (e->page[page].prefer == version)
		return;
	e->page[page].prefer = version;
	page_changed(e, page);
}

void vmpt_flow_time_passed(struct engine *e)
{
	size_t i;

	e->renewed_count = 0;
	forget_pages(e, vmpt_flow_now(e));
	for (i = 0; i < e->renewed_count && !e->error; i++)
		page_changed(e, e->renewed[i]);
	vmpt_flow_rejoin_changed(e);
}
