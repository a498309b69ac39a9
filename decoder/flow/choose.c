// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Code that does not fit the packets, where images have several versions of a page at one time: two
 * dumps, or patches about whose time the trace is not exact. The current node is made again of each
 * of them. One that fits is chosen up to the next PSB: so what is chosen depends only on what comes
 * after the last one, and a stream may be decoded from any PSB on.
 */
#include "decoder/flow/engine.h"

/* Pages of a node that are tried. */
#define PAGES_MAX 8u
/* How far it looks ahead, in TNT bits and in packets. */
#define AHEAD_BITS    64u
#define AHEAD_PACKETS 64u

/* ---- what is chosen ---- */

static u8 chosen(const struct choice *list, u32 count, u32 page)
{
	u32 i;

	for (i = 0; i < count; i++)
		if (list[i].page == page)
			return (u8)list[i].version;
	return 0;
}

/* Pages are as the cursor says. */
static void apply(struct engine *e)
{
	struct choice before[CHOICES];
	u32 i, n = e->choices;

	memcpy(before, e->choice, n * sizeof(*before));
	e->choices = e->c.choices;
	memcpy(e->choice, e->c.choice, e->choices * sizeof(*before));
	for (i = 0; i < n; i++)
		vmpt_flow_page_prefer(e, before[i].page,
				      chosen(e->choice, e->choices, before[i].page));
	for (i = 0; i < e->choices; i++)
		vmpt_flow_page_prefer(e, e->choice[i].page, (u8)e->choice[i].version);
}

void vmpt_flow_choices_clear(struct engine *e)
{
	e->c.choices = 0;
	if (e->choices)
		apply(e);
}

void vmpt_flow_choice_forget(struct engine *e, u32 page)
{
	u32 i, n = 0;

	for (i = 0; i < e->c.choices; i++)
		if (e->c.choice[i].page != page)
			e->c.choice[n++] = e->c.choice[i];
	e->c.choices = e->choices = (u8)n;
	memcpy(e->choice, e->c.choice, n * sizeof(*e->choice));
}

void vmpt_flow_cursor_set(struct engine *e, const struct cursor *c)
{
	vmpt_flow_choices_clear(e);
	e->c = *c;
	e->c.choices = 0;
	vmpt_flow_time(e);
	e->c.choices = c->choices;
	if (c->choices)
		apply(e);
}

/* False: there are too many. */
static bool note(struct engine *e, u32 page, u8 version)
{
	u32 i;

	for (i = 0; i < e->c.choices && e->c.choice[i].page != page; i++)
		;
	if (i == CHOICES)
		return false;
	e->c.choice[i] = (struct choice){ page, version };
	if (i == e->c.choices)
		e->c.choices++;
	e->choices = e->c.choices;
	memcpy(e->choice, e->c.choice, e->choices * sizeof(*e->choice));
	return true;
}

/* ---- whether a node fits ---- */

static bool has_ip(struct engine *e, u32 handle, u64 ip)
{
	const struct node *n = &e->nodes[handle >> HANDLE_SHIFT];
	const struct block *b;
	u32 i;

	if (e->space[n->space].id.exec != 64)
		ip &= 0xffffffff;
	for (i = 0; i < n->count; i++) {
		b = &e->block[e->lists[n->list + i]];
		if (ip >= b->ip && ip <= b->end_ip && vmpt_flow_block_find(e, b, ip) >= 0)
			return true;
	}
	return false;
}

/* Whether the node has a return address to pop, if it is entered instead of the current one. */
static bool can_return(const struct engine *e, u32 handle)
{
	u32 depth = e->c.handle & HANDLE_PUSH ? e->s.before : e->s.depth;

	return e->stack && depth + e->nodes[handle >> HANDLE_SHIFT].call_count;
}

enum ahead { AHEAD_BITS_OF_TNT, AHEAD_TIP, AHEAD_OTHER };

/* The next packet of the flow from *@at on. */
static enum ahead next_packet(const struct engine *e, u64 *at, struct vmpt_pt_packet *pkt)
{
	u32 i;

	for (i = 0; i < AHEAD_PACKETS && *at < e->limit; i++, *at += pkt->size) {
		if (vmpt_pt_decode(pkt, e->data + *at, e->limit - *at, 0))
			break;
		switch (pkt->kind) {
		case VMPT_PT_PAD:
		case VMPT_PT_TSC:
		case VMPT_PT_TMA:
		case VMPT_PT_MTC:
		case VMPT_PT_CYC:
		case VMPT_PT_CBR:
			continue;
		case VMPT_PT_TNT_8:
		case VMPT_PT_TNT_64:
			*at += pkt->size;
			return AHEAD_BITS_OF_TNT;
		case VMPT_PT_TIP:
			return AHEAD_TIP;
		default:
			return AHEAD_OTHER;
		}
	}
	return AHEAD_OTHER;
}

/*
 * Whether the TNT packet at @at, after its first @done bits, and the packets after it can be those
 * of @handle: up to a RET that is compressed, a TIP or anything but a TNT.
 */
static bool takes_bits(struct engine *e, u32 handle, u64 at, unsigned int done)
{
	struct vmpt_pt_packet pkt;
	unsigned int count, total;
	enum ahead ahead;

	if (next_packet(e, &at, &pkt) != AHEAD_BITS_OF_TNT || (unsigned int)pkt.tnt.count <= done)
		return false;
	count = (unsigned int)pkt.tnt.count - done;
	for (total = 0; total < AHEAD_BITS && handle; total++) {
		unsigned int bit = pkt.tnt.bits >> (count - 1) & 1;

		if (handle & HANDLE_RET)
			return bit && (total || can_return(e, handle));
		if (!(handle & HANDLE_COND))
			return false;
		handle = vmpt_flow_child(e, handle, bit);
		if (--count)
			continue;
		ahead = next_packet(e, &at, &pkt);
		if (ahead == AHEAD_TIP)
			return handle & HANDLE_TIP;
		if (ahead == AHEAD_OTHER)
			return true;
		count = (unsigned int)pkt.tnt.count;
		if (!count)
			return false;
	}
	return handle;
}

static bool fits(struct engine *e, u32 handle, const struct need *need)
{
	switch (need->kind) {
	case NEED_BITS:
		return takes_bits(e, handle, need->at, need->done);
	case NEED_TIP:
		return handle & HANDLE_TIP;
	default:
		return has_ip(e, handle, need->ip);
	}
}

/* ---- trying ---- */

static u32 add_page(u32 pages[PAGES_MAX], u32 n, u32 page)
{
	u32 i;

	for (i = 0; i < n && pages[i] != page; i++)
		;
	if (i == n && n < PAGES_MAX && page != NONE)
		pages[n++] = page;
	return n;
}

/* The pages whose code the current node is of, or lacks. */
static u32 pages_of(struct engine *e, const struct node *n, u32 pages[PAGES_MAX])
{
	u32 i, count = 0;
	u64 at, end;

	for (i = 0; i <= n->count; i++) {
		if (i < n->count) {
			at = e->block[e->lists[n->list + i]].ip;
			end = at + e->block[e->lists[n->list + i]].size - 1;
		} else if (n->end == END_NO_CODE || n->end == END_BAD_CODE) {
			at = n->next_ip;
			end = at + VMPT_INSN_SIZE_MAX - 1;
		} else {
			break;
		}
		count = add_page(pages, count,
				 vmpt_flow_page(e, n->space, at & ~(VMPT_PAGE - 1ULL)));
		if (end / VMPT_PAGE != at / VMPT_PAGE)
			count = add_page(pages, count,
					 vmpt_flow_page(e, n->space, end & ~(VMPT_PAGE - 1ULL)));
	}
	return count;
}

/* With @version of @page the node at the current one's place fits. */
static bool try_version(struct engine *e, const struct node *n, u32 page, u8 version,
			const struct need *need)
{
	u8 before = e->page[page].prefer;
	u32 handle;

	vmpt_flow_page_prefer(e, page, version);
	handle = vmpt_flow_node_at(e, n->space, n->ip);
	if (handle && !e->error && fits(e, handle, need) && note(e, page, version))
		return true;
	if (!e->error)
		vmpt_flow_page_prefer(e, page, before);
	return false;
}

bool vmpt_flow_other_code(struct engine *e, const struct need *need)
{
	struct node n = e->nodes[e->c.handle >> HANDLE_SHIFT];
	u64 from = e->batch_from > need->at ? e->batch_from : need->at;
	u32 pages[PAGES_MAX], count, i, version;

	if (!e->versions || !e->c.handle || e->options.no_tnt)
		return false;
	count = pages_of(e, &n, pages);
	for (i = 0; i < count; i++)
		for (version = 0; version < VMPT_CODE_VERSIONS && !e->error; version++) {
			if (!vmpt_flow_version(e, pages[i], version))
				break;
			if (version == e->page[pages[i]].prefer ||
			    !try_version(e, &n, pages[i], (u8)version, need))
				continue;
			vmpt_flow_leave_undone(e);
			/* A gap may follow at this packet. */
			e->batch_from = from;
			return !vmpt_flow_enter_in(e, n.space, n.ip);
		}
	return false;
}
