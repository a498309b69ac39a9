// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Where the flow is after a loss, from the TNT bits that follow it. Until the next TIP it can only
 * be where direct branches lead from the places known before the loss. All of these are taken as
 * possible and follow the bits; most end at a branch that has no TNT bit, others meet. Once one
 * place is left, the flow goes on there. This assumes that no TIP was lost and that RETs are not
 * compressed. No state is kept over a PSB, and none depends on memos, so that a stream may be
 * decoded from any PSB on, and in any variant.
 */
#include "decoder/flow/engine.h"

/* Bits that a place must have followed, and how many of each kind. */
#define PROOF_BITS 12u
#define PROOF_EACH 3u
/* The same where several places are left. */
#define GUESS_BITS 48u
/* Damage makes fewer RETs look compressed between two PSBs. */
#define COMPRESSED 8u
/* Bound on the work between two PSBs: nodes looked at. */
#define STEPS_MAX (1u << 15)

/* Set of the nodes that were added. */
static bool is_new(struct rejoin *r, u32 handle)
{
	u32 i = handle * 0x9e3779b1u >> 16;
	u64 *slot;

	for (;; i++) {
		slot = &r->seen[i % VMPT_ARRAY_SIZE(r->seen)];
		if (*slot >> 32 != r->round) {
			*slot = (u64)r->round << 32 | handle;
			return true;
		}
		if ((u32)*slot == handle)
			return false;
	}
}

static void new_round(struct rejoin *r)
{
	r->count = 0;
	if (!++r->round) {
		memset(r->seen, 0, sizeof(r->seen));
		r->round = 1;
	}
}

/* The flow may be at @handle if that waits for a packet. */
static void add(struct rejoin *r, u32 handle)
{
	if (handle & (HANDLE_COND | HANDLE_TIP) && r->count < REJOIN_NODES && is_new(r, handle))
		r->node[r->count++] = handle;
}

/* ---- where the flow was ---- */

/* The last packet with an IP before @at, from @from on: its end, and its IP in @ip; 0: none. */
static u64 last_ip_packet(struct engine *e, u64 from, u64 at, u64 *ip)
{
	struct vmpt_pt_packet pkt;
	unsigned int block = 0;
	u64 last = *ip, end = 0;

	for (; from < at; from += pkt.size) {
		if (vmpt_pt_decode(&pkt, e->data + from, at - from, block))
			break;
		block = vmpt_pt_block_after(&pkt, block);
		if (!(vmpt_pt_table[pkt.kind].classes & VMPT_PT_HAS_IP) || !pkt.ip.ipbytes)
			continue;
		last = vmpt_pt_ip_expand(last, (unsigned int)pkt.ip.ipbytes, pkt.ip.ip);
		*ip = last;
		end = from + pkt.size;
	}
	return end;
}

/*
 * Walk from @handle at @from to @at: where the flow was at each of the last REJOIN_BACK TNT packets
 * and at the end, in @ring. Returns how many there were.
 */
static u32 walk_again(struct engine *e, u64 from, u64 at, u32 handle, u32 *ring)
{
	struct vmpt_pt_packet pkt;
	u32 n = 0, bit;

	for (; from < at && !e->error; from += pkt.size) {
		if (vmpt_pt_decode(&pkt, e->data + from, at - from, 0))
			break;
		if (pkt.kind != VMPT_PT_TNT_8 && pkt.kind != VMPT_PT_TNT_64)
			continue;
		ring[n++ % REJOIN_BACK] = handle;
		for (bit = (u32)pkt.tnt.count; bit-- && handle & HANDLE_COND;)
			handle = vmpt_flow_child(e, handle, pkt.tnt.bits >> bit & 1);
		if (!(handle & HANDLE_COND))
			break;
	}
	ring[n++ % REJOIN_BACK] = handle;
	return n;
}

static void anchor_add(struct engine *e, u32 space, u64 ip)
{
	struct cursor *c = &e->c;

	memmove(c->anchors + 1, c->anchors, sizeof(c->anchors) - sizeof(*c->anchors));
	c->anchors[0] = (struct anchor){ ip, space, true };
	c->rejoin = REJOIN_READY;
}

void vmpt_flow_anchor(struct engine *e, u64 at)
{
	const struct node *n = &e->nodes[e->c.handle >> HANDLE_SHIFT];
	u64 here = n->ip, from, ip = 0;
	u32 space = n->space, ring[REJOIN_BACK], count, i;

	from = e->c.psb_at;
	if (e->c.cut_at > from) {
		from = e->c.cut_at;
		ip = e->c.cut_ip;
	}
	anchor_add(e, space, here);
	if (at < from || at - from > REJOIN_WINDOW || e->c.spent >= STEPS_MAX)
		return;
	e->c.spent += (u32)(at - from) / 8;
	from = last_ip_packet(e, from, at, &ip);
	if (!from)
		return;
	ip = vmpt_flow_wrap(e, space, ip);
	count = walk_again(e, from, at, vmpt_flow_node_at(e, space, ip), ring);
	anchor_add(e, space, ip);
	/* The oldest is last, and is looked at first: it is most likely from before the damage. */
	for (i = 1; i <= REJOIN_BACK && i <= count && !e->error; i *= 2)
		anchor_add(e, space, e->nodes[ring[(count - i) % REJOIN_BACK] >> HANDLE_SHIFT].ip);
}

void vmpt_flow_anchor_last_ip(struct engine *e)
{
	if (e->c.space == NONE)
		e->c.space = vmpt_flow_space_now(e);
	if (e->c.space != NONE)
		anchor_add(e, e->c.space, e->c.last_ip);
}

void vmpt_flow_anchors_forget(struct engine *e)
{
	memset(e->c.anchors, 0, sizeof(e->c.anchors));
	e->c.rejoin = REJOIN_NONE;
}

/* ---- following bits ---- */

/* All that direct branches lead to. */
static void begin(struct engine *e)
{
	struct rejoin *r = &e->rejoin;
	struct anchor *a;
	u32 i, handle;

	r->space = e->c.space;
	r->bits = r->taken = 0;
	new_round(r);
	for (a = e->c.anchors; a < e->c.anchors + VMPT_FLOW_ANCHORS && !e->error; a++)
		if (a->set && a->space == r->space)
			add(r, vmpt_flow_node_at(e, a->space, vmpt_flow_wrap(e, a->space, a->ip)));
	for (i = 0; i < r->count && !e->error; i++) {
		handle = r->node[i];
		if (handle & HANDLE_COND) {
			add(r, vmpt_flow_child(e, handle, 0));
			add(r, vmpt_flow_child(e, handle, 1));
		}
	}
	e->c.spent += r->count;
	e->c.rejoin = REJOIN_ACTIVE;
}

static void follow_bit(struct engine *e, unsigned int bit)
{
	struct rejoin *r = &e->rejoin;
	u32 count = r->count, i;

	e->c.spent += count + 1;
	r->bits++;
	r->taken += bit;
	new_round(r);
	/* No more are added than were looked at. */
	for (i = 0; i < count && !e->error; i++)
		if (r->node[i] & HANDLE_COND)
			add(r, vmpt_flow_child(e, r->node[i], bit));
}

/* Whether the flow was at @ip not long before the loss. */
static bool was_at(const struct engine *e, u64 ip)
{
	const struct anchor *a;

	for (a = e->c.anchors; a < e->c.anchors + VMPT_FLOW_ANCHORS; a++)
		if (a->set && a->ip == ip && a->space == e->rejoin.space)
			return true;
	return false;
}

/*
 * Whether the place is found: its @ip. The only one left is taken if it followed bits of both
 * kinds. In a loop of equal bits that says little: there it must be a place where the flow was
 * shortly before the loss, and several may be left.
 */
static bool is_found(const struct engine *e, u64 *ip)
{
	const struct rejoin *r = &e->rejoin;
	u32 i;

	if (r->bits < PROOF_BITS)
		return false;
	*ip = e->nodes[r->node[0] >> HANDLE_SHIFT].ip;
	if (r->count == 1 && r->taken >= PROOF_EACH && r->bits - r->taken >= PROOF_EACH)
		return true;
	for (i = 0; i < r->count; i++) {
		*ip = e->nodes[r->node[i] >> HANDLE_SHIFT].ip;
		if (was_at(e, *ip))
			return r->count == 1 || r->bits >= GUESS_BITS;
	}
	return false;
}

int vmpt_flow_rejoin(struct engine *e, u64 at, u64 bits, unsigned int count)
{
	struct rejoin *r = &e->rejoin;
	unsigned int done = 0;
	u64 ip;

	if (e->c.space == NONE)
		e->c.space = vmpt_flow_space_now(e);
	while (done < count && !e->error) {
		if (e->c.compressed >= COMPRESSED || e->c.spent >= STEPS_MAX)
			e->c.rejoin = REJOIN_NONE;
		else if (e->c.rejoin == REJOIN_READY || r->space != e->c.space)
			begin(e);
		if (!e->c.rejoin || e->error)
			break;
		follow_bit(e, bits >> (count - ++done) & 1);
		if (!r->count)
			e->c.rejoin = REJOIN_READY;
		if (e->error || !r->count || !is_found(e, &ip))
			continue;
		e->c.rejoin = REJOIN_NONE;
		if (vmpt_flow_enter_in(e, r->space, ip))
			break;
		return vmpt_flow_tnt(e, at, bits, count - done, done);
	}
	return e->error;
}

int vmpt_flow_rejoin_renew(struct engine *e, const u64 *ips)
{
	struct rejoin *r = &e->rejoin;
	u32 i;

	if (e->c.rejoin != REJOIN_ACTIVE)
		r->count = 0;
	for (i = 0; i < r->count && !e->error; i++)
		r->node[i] = vmpt_flow_node_at(e, r->space, ips[i]);
	return e->error;
}

/* A branch that waits for a bit runs after the change. */
void vmpt_flow_rejoin_changed(struct engine *e)
{
	struct rejoin *r = &e->rejoin;
	const struct node *n;
	u32 i;

	for (i = 0; e->c.rejoin == REJOIN_ACTIVE && i < r->count && !e->error; i++) {
		n = &e->nodes[r->node[i] >> HANDLE_SHIFT];
		if (n->old)
			r->node[i] = vmpt_flow_node_at(e, n->space, n->ip);
	}
}
