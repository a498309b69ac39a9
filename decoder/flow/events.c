// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Packets one by one, by the rules of docs/flow.md: what a FUP belongs to, where a TIP.PGD stops
 * the flow, overflows, and what changes the address space.
 */
#include "decoder/flow/psb.h"
#include "decoder/flow/steps.h"
#include "decoder/pt/pt.h"

/* ---- address spaces ---- */

void vmpt_flow_owner(struct engine *e, const struct vmpt_owner *owner)
{
	if (vmpt_owner_same(&e->owner, owner))
		return;
	if (!e->stack && !e->quiet) {
		if (vmpt_grow(&e->owners, e->owner_count)) {
			e->error = -VMPT_E_NOMEM;
			return;
		}
		e->owners[e->owner_count++] = (struct owner_change){ e->c.at, *owner };
	}
	e->owner = *owner;
	e->c.space = NONE;
}

/* Table 33-26 */
static u8 exec_of(const struct vmpt_pt_packet *pkt)
{
	return pkt->exec.cs_l ? 64 : pkt->exec.cs_d ? 32 : 16;
}

/* ---- FUPs ---- */

/* An event at the FUP's IP: what comes after it in the node was not executed. */
static void leave_at_fup(struct engine *e, u64 offset, bool off)
{
	const struct need need = { .kind = NEED_IP, .at = offset, .ip = e->c.fup_ip };

	e->c.pending &= (u8)~PENDING_FUP;
	if (e->c.place == RUNNING && !vmpt_flow_leave_at(e, e->c.fup_ip) &&
	    (!vmpt_flow_other_code(e, &need) || !vmpt_flow_leave_at(e, e->c.fup_ip)))
		vmpt_flow_lose(e, offset);
	if (e->options.events)
		vmpt_flow_mark(e, offset, VMPT_FLOW_EVENT, off, e->c.fup_space, e->c.fup_ip);
}

/* The space in which the flow is; for a batch of its own, also where it is not known where. */
static u32 space_here(struct engine *e)
{
	u32 space = vmpt_flow_in(e);

	if (space != NONE)
		return space;
	if (e->c.space == NONE)
		e->c.space = vmpt_flow_space_now(e);
	return e->c.space;
}

static int on_fup(struct engine *e, const struct vmpt_pt_packet *pkt)
{
	u8 pending = e->c.pending;

	e->c.pending &= (u8) ~(PENDING_BOUND | PENDING_EXEC);
	if (pending & PENDING_PSB) {
		e->c.psb_fup = pkt->ip.ipbytes != 0;
		e->c.psb_ip = e->c.last_ip;
		return 0;
	}
	if (pending & PENDING_BOUND || !pkt->ip.ipbytes)
		return 0;
	/* After an OVF, where tracing goes on (33.3.8); a PSB+ between has said so already. */
	if (pending & PENDING_OVF && (e->c.place != RUNNING || e->c.psb_ip == e->c.last_ip)) {
		e->c.pending &= (u8)~PENDING_OVF;
		if (e->c.place == RUNNING)
			return 0;
		vmpt_flow_stack_clear(&e->s);
		if (!vmpt_flow_enter(e, e->c.last_ip))
			vmpt_flow_stack_from(e);
		return e->error;
	}
	if (pending & PENDING_EXEC)
		return 0;
	e->c.pending |= PENDING_FUP;
	e->c.fup_ip = e->c.last_ip;
	if (e->options.events || e->options.switches)
		e->c.fup_space = space_here(e);
	return e->error;
}

/* ---- TIP, TIP.PGE, TIP.PGD ---- */

static int on_tip(struct engine *e, u64 at, const struct vmpt_pt_packet *pkt)
{
	const struct need need = { .kind = NEED_TIP, .at = at };
	u8 pending = e->c.pending;

	e->c.pending = 0;
	if (!(pending & PENDING_FUP) && e->c.place == RUNNING && !(e->c.handle & HANDLE_TIP) &&
	    pkt->ip.ipbytes)
		vmpt_flow_other_code(e, &need);
	e->c.rejoin = REJOIN_NONE;
	if (pending & PENDING_FUP) {
		e->c.pending = pending & PENDING_FUP;
		leave_at_fup(e, at, false);
	} else if (e->c.handle & HANDLE_TIP && pkt->ip.ipbytes) {
		if (e->stack && e->c.handle & HANDLE_RET &&
		    e->options.returns != VMPT_FLOW_RETURNS_LIBIPT)
			vmpt_flow_pop(e);
		vmpt_flow_leave_whole(e);
	} else if (e->c.place == RUNNING) {
		vmpt_flow_lose(e, at);
	}
	e->c.place = LOST;
	return pkt->ip.ipbytes ? vmpt_flow_enter(e, e->c.last_ip) : 0;
}

static int on_pge(struct engine *e, u64 at, const struct vmpt_pt_packet *pkt)
{
	u8 pending = e->c.pending;

	e->c.pending = 0;
	e->c.rejoin = REJOIN_NONE;
	if (e->c.place == RUNNING) {
		/* The FUP of a PSB+ that was sent while PacketEn was 0 (erratum BDM70). */
		if (pending & (PENDING_DOUBT | PENDING_WEAK))
			vmpt_flow_leave_undone(e);
		else
			vmpt_flow_lose(e, at);
	}
	e->c.place = LOST;
	if (e->options.switches)
		vmpt_flow_mark(e, at, VMPT_FLOW_ON, false, space_here(e),
			       pkt->ip.ipbytes ? e->c.last_ip : 0);
	if (!pkt->ip.ipbytes)
		return 0;
	vmpt_flow_stack_clear(&e->s);
	if (vmpt_flow_enter(e, e->c.last_ip))
		return e->error;
	vmpt_flow_stack_from(e);
	return 0;
}

/*
 * With an IP, at the first direct branch to it, else at the node's end; without one, at the first
 * MOV CR3 or the node's end (Table 33-21).
 */
bool vmpt_flow_pgd(struct engine *e, u64 offset, bool has_ip)
{
	const struct node *n = &e->nodes[e->c.handle >> HANDLE_SHIFT];
	const struct block *b;
	bool whole;
	u32 i;

	for (i = 0; i < n->count; i++) {
		b = &e->block[e->lists[n->list + i]];
		if (has_ip ? (b->class == VMPT_INSN_JMP || b->class == VMPT_INSN_CALL) &&
				     b->target == e->c.last_ip
			   : b->class == VMPT_INSN_MOV_CR3) {
			vmpt_flow_leave(e, i + 1, 0);
			e->c.place = DISABLED;
			return i + 1 == n->count;
		}
	}
	whole = e->c.handle & (HANDLE_COND | HANDLE_TIP);
	if (whole)
		vmpt_flow_leave_whole(e);
	else
		vmpt_flow_lose(e, offset);
	e->c.place = DISABLED;
	return whole;
}

static void on_pgd(struct engine *e, u64 at, const struct vmpt_pt_packet *pkt)
{
	u8 pending = e->c.pending;
	u32 space = e->c.fup_space;

	if (e->options.switches && !(pending & PENDING_FUP))
		space = space_here(e);
	e->c.pending = 0;
	if (pending & PENDING_FUP) {
		e->c.pending = pending & PENDING_FUP;
		leave_at_fup(e, at, true);
	} else if (e->c.place == RUNNING) {
		vmpt_flow_pgd(e, at, pkt->ip.ipbytes != 0);
	}
	e->c.place = DISABLED;
	if (e->options.switches)
		vmpt_flow_mark(e, at, VMPT_FLOW_OFF, false, space,
			       pkt->ip.ipbytes ? e->c.last_ip : 0);
}

/* ---- others ---- */

/*
 * After a MOV CR3 the flow goes on without a TIP: in the new space from there on. Else it is part
 * of a branch or an event, and the space is that of the TIP's IP (Table 33-24).
 */
static int on_pip(struct engine *e, u64 cr3)
{
	const struct node *n = &e->nodes[e->c.handle >> HANDLE_SHIFT];
	const struct block *b;
	u64 next;
	u32 i;

	if (e->c.pending & PENDING_PSB) {
		e->c.psb_pip = true;
		e->c.psb_cr3 = cr3;
		return 0;
	}
	if (e->c.place != RUNNING || e->c.pending & PENDING_FUP || !n->mov_cr3) {
		vmpt_flow_set_cr3(e, cr3);
		return 0;
	}
	for (i = 0;; i++) {
		b = &e->block[e->lists[n->list + i]];
		if (b->class == VMPT_INSN_MOV_CR3)
			break;
	}
	next = b->next;
	e->c.pending &= (u8) ~(PENDING_DOUBT | PENDING_WEAK);
	vmpt_flow_leave(e, i + 1, 0);
	vmpt_flow_set_cr3(e, cr3);
	return vmpt_flow_enter(e, next);
}

static void on_mode_exec(struct engine *e, const struct vmpt_pt_packet *pkt)
{
	if (e->c.pending & PENDING_PSB) {
		e->c.psb_exec = exec_of(pkt);
		return;
	}
	vmpt_flow_set_exec(e, exec_of(pkt));
	/* A FUP may follow, which is its own: IF changed, or a far branch's MODE.Exec before a TIP.
	 */
	e->c.pending |= PENDING_EXEC;
}

static void on_ovf(struct engine *e, u64 at)
{
	u32 space = vmpt_flow_in(e);

	e->c.pending = PENDING_OVF;
	if (e->c.place == RUNNING)
		vmpt_flow_leave_undone(e);
	if (e->blocks && !e->quiet)
		vmpt_flow_close_batch(e, 0, 0, false);
	vmpt_flow_gap(e, at, VMPT_FLOW_OVERFLOW, space, 0);
	vmpt_flow_stack_clear(&e->s);
	e->c.place = LOST;
	e->c.rejoin = REJOIN_NONE;
	e->c.psb_ip = ~0ULL;
}

static int apply(struct engine *e, u64 at, const struct vmpt_pt_packet *pkt)
{
	u32 known;

	switch (pkt->kind) {
	case VMPT_PT_TNT_8:
	case VMPT_PT_TNT_64:
		return vmpt_flow_bits_at(e, at, pkt->tnt.bits, (unsigned int)pkt->tnt.count);
	case VMPT_PT_TIP:
		return on_tip(e, at, pkt);
	case VMPT_PT_TIP_PGE:
		return on_pge(e, at, pkt);
	case VMPT_PT_TIP_PGD:
		on_pgd(e, at, pkt);
		return 0;
	case VMPT_PT_FUP:
		return on_fup(e, pkt);
	case VMPT_PT_PIP:
		return on_pip(e, pkt->pip.cr3);
	case VMPT_PT_MODE_EXEC:
		on_mode_exec(e, pkt);
		return 0;
	case VMPT_PT_MODE_TSX:
		if (e->c.pending & PENDING_PSB)
			e->c.psb_tsx = true;
		else if (!pkt->tsx.txabort)
			e->c.pending |= PENDING_BOUND;
		return 0;
	case VMPT_PT_PTW:
		e->c.pending |= pkt->ptw.ip ? PENDING_BOUND : 0;
		return 0;
	case VMPT_PT_EXSTOP:
		e->c.pending |= pkt->exstop.ip ? PENDING_BOUND : 0;
		return 0;
	case VMPT_PT_BEP:
		e->c.pending |= pkt->bep.ip ? PENDING_BOUND : 0;
		return 0;
	case VMPT_PT_CFE:
		e->c.pending |= pkt->cfe.ip ? PENDING_BOUND : 0;
		return 0;
	case VMPT_PT_TRIG:
		e->c.pending |= pkt->trig.ip ? PENDING_BOUND : 0;
		return 0;
	case VMPT_PT_TSC:
		if (e->timed)
			vmpt_flow_tsc(e, pkt->tsc.tsc);
		return e->error;
	case VMPT_PT_OVF:
		on_ovf(e, at);
		return 0;
	case VMPT_PT_PSB:
		vmpt_flow_psb(e);
		e->c.psb_at = e->c.at;
		known = vmpt_flow_psb_known(e, e->c.at);
		e->c.at += known;
		if (!known)
			return 0;
		if (!vmpt_flow_psb_idle(e))
			return vmpt_flow_psbend(e, true);
		vmpt_flow_psb_skip(e, at);
		return 0;
	case VMPT_PT_PSBEND:
		if (!(e->c.pending & PENDING_PSB))
			return 0;
		vmpt_flow_psb_keep(e, e->c.at);
		return vmpt_flow_psbend(e, true);
	default:
		return 0;
	}
}

/* What cannot stand in a PSB+ ends it; an OVF loses it. */
static bool ends_psb(const struct engine *e, const struct vmpt_pt_packet *pkt)
{
	return e->c.pending & PENDING_PSB && pkt->kind != VMPT_PT_PSBEND &&
	       pkt->kind != VMPT_PT_OVF && pkt->kind != VMPT_PT_PSB &&
	       !(vmpt_pt_table[pkt->kind].classes & VMPT_PT_IN_PSB);
}

/* Packets with an IP, and PSBs, are most of those that come here. Their payload is not filled in.
 */
static bool head_at(const struct engine *e, u64 at, struct vmpt_pt_packet *pkt)
{
	static const u8 kinds[] = {
		[VMPT_FLOW_TIP >> 4] = VMPT_PT_TIP,
		[VMPT_FLOW_PGE >> 4] = VMPT_PT_TIP_PGE,
		[VMPT_FLOW_PGD >> 4] = VMPT_PT_TIP_PGD,
		[VMPT_FLOW_FUP >> 4] = VMPT_PT_FUP,
	};
	const u64 psb = 0x8202820282028202ULL;
	const u8 *p = e->data + at;
	unsigned int step, key;

	if (e->stop - at < VMPT_PT_SIZE_MAX || e->c.block)
		return false;
	step = vmpt_flow_steps[*p];
	if (step >= VMPT_FLOW_TIP) {
		pkt->kind = kinds[step >> 4];
		pkt->size = vmpt_flow_ips[*p >> 5].size;
		pkt->ip.ipbytes = *p >> 5;
		return true;
	}
	if (vmpt_load64(p) == psb && vmpt_load64(p + 8) == psb) {
		pkt->kind = VMPT_PT_PSB;
		pkt->size = VMPT_PT_SIZE_MAX;
		return true;
	}
	key = vmpt_load16(p);
	pkt->kind = vmpt_head_kind[key];
	pkt->size = vmpt_head_size[key];
	switch (pkt->kind) {
	case VMPT_PT_PIP:
		pkt->pip.cr3 = vmpt_pip_cr3(p);
		return true;
	case VMPT_PT_MODE_EXEC:
		pkt->exec.cs_l = p[1] & 1;
		pkt->exec.cs_d = p[1] >> 1 & 1;
		return true;
	case VMPT_PT_CBR:
	case VMPT_PT_VMCS:
	case VMPT_PT_PSBEND:
	case VMPT_PT_OVF:
		return true;
	default:
		return false;
	}
}

/*
 * Report the packet at @at if it may change the owner, or that there is none: @err. False if the
 * slice ends before it.
 */
static bool follow(struct engine *e, u64 at, const struct vmpt_pt_packet *pkt, int err)
{
	const struct vmpt_owner *owner = NULL;
	unsigned int block = e->c.block;

	if (!err && vmpt_psb_inside(e->data, at, pkt->size, e->limit))
		err = -VMPT_E_CUT;
	if (err) {
		vmpt_flow_slice_end(e, vmpt_follow_error(e->follow, at, err));
	} else if (VMPT_FOLLOW_KINDS >> pkt->kind & 1 &&
		   (pkt->kind != VMPT_PT_TIP_PGD || !pkt->ip.ipbytes)) {
		if (block || pkt->kind == VMPT_PT_PSB)
			block = vmpt_pt_block_after(pkt, block);
		e->c.at = at;
		vmpt_flow_slice_end(
			e, vmpt_follow_packet(e->follow, at, pkt->kind, pkt->size, block, &owner));
		if (owner)
			vmpt_flow_owner(e, owner);
	}
	if (e->stop > at)
		return true;
	e->c.at = e->stop = at;
	return false;
}

/* Packets that have a time, and what may have some of them in it. */
#define TIMES                                                                                    \
	(1ULL << VMPT_PT_TSC | 1ULL << VMPT_PT_TMA | 1ULL << VMPT_PT_MTC | 1ULL << VMPT_PT_CYC | \
	 1ULL << VMPT_PT_PSB)

int vmpt_flow_event(struct engine *e)
{
	struct vmpt_pt_packet pkt;
	u64 at = e->c.at;
	bool head;
	int err;

	/* PADs change nothing. */
	while (!e->data[at] && at + 1 < e->stop)
		at++;
	head = head_at(e, at, &pkt);
	err = head ? 0 : vmpt_pt_decode(&pkt, e->data + at, e->stop - at, e->c.block);
	if (e->followed && !e->quiet && !follow(e, at, &pkt, err))
		return 0;
	if (err) {
		/* The tracker has found whole packets here. */
		vmpt_flow_cut(e, at, e->slice_end, true);
		return e->error;
	}
	if (ends_psb(e, &pkt)) {
		/* The packet itself comes after that. */
		e->c.at = at;
		return vmpt_flow_psbend(e, false);
	}
	if (e->times && TIMES >> pkt.kind & 1 &&
	    (!(e->c.pending & PENDING_PSB) || pkt.kind == VMPT_PT_PSB))
		vmpt_flow_time_mark(e, at);
	e->c.at = at + pkt.size;
	if (head && vmpt_pt_table[pkt.kind].classes & VMPT_PT_HAS_IP)
		e->c.last_ip = vmpt_flow_ip_at(e->data + at, e->c.last_ip);
	else if (!head && vmpt_pt_table[pkt.kind].classes & VMPT_PT_HAS_IP && pkt.ip.ipbytes)
		e->c.last_ip =
			vmpt_pt_ip_expand(e->c.last_ip, (unsigned int)pkt.ip.ipbytes, pkt.ip.ip);
	if (!head) {
		e->c.block = (u8)vmpt_pt_block_after(&pkt, e->c.block);
		e->c.pending &= (u8)~PENDING_BLOCK;
		if (e->c.block)
			e->c.pending |= PENDING_BLOCK;
	}
	return apply(e, at, &pkt);
}

void vmpt_flow_cut(struct engine *e, u64 at, u64 next, bool loss)
{
	struct cursor *c = &e->c, before;
	u32 space = vmpt_flow_in(e);

	if (c->place == RUNNING && c->handle) {
		/* No state outlives a PSB. */
		if (loss && !(c->pending & PENDING_PSB))
			vmpt_flow_anchor(e, at);
		if (c->pending & PENDING_WEAK)
			vmpt_flow_leave_undone(e);
		else
			vmpt_flow_leave_open(e);
	}
	if (e->blocks && !e->quiet)
		vmpt_flow_close_batch(e, 0, 0, false);
	if (loss)
		vmpt_flow_gap(e, at, VMPT_FLOW_LOSS, space, 0);
	before = *c;
	*c = (struct cursor){ .at = next, .space = NONE, .no_cr3 = true, .exec = 64 };
	c->tsc = before.tsc;
	c->psb_at = before.psb_at;
	if (loss) {
		memcpy(c->anchors, before.anchors, sizeof(c->anchors));
		c->spent = before.spent;
		c->compressed = before.compressed;
		c->cut_at = next;
		c->cut_ip = before.last_ip;
		if (before.place != DISABLED)
			c->rejoin = REJOIN_READY;
	}
	if (!e->quiet)
		e->batch_from = next;
	vmpt_flow_choices_clear(e);
	vmpt_flow_stack_clear(&e->s);
	vmpt_flow_stack_from(e);
}
