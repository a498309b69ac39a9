// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * PSB+ by the rules of docs/flow.md: the flow is set to what it says at its end. One that repeats
 * an earlier one, as an idle processor's do, is compared with it and not parsed.
 */
#include "decoder/flow/psb.h"
#include "decoder/flow/steps.h"
#include "decoder/pt/pt.h"

/* What ran before the PSB has no time of the PSB+, nor later ones. */
static void end_times(struct engine *e)
{
	if (!e->times || e->quiet)
		return;
	vmpt_flow_close_batch(e, 0, 0, false);
	e->c.pending &= (u8)~PENDING_PSB;
	e->batch_from = e->c.at;
}

/* The PSB+ says that the flow is at the FUP's IP. */
static int sync_at(struct engine *e, u64 at, bool doubt, bool weak)
{
	const struct need need = { .kind = NEED_IP, .at = at, .ip = e->c.psb_ip };

	if (e->c.place == RUNNING) {
		if (weak)
			vmpt_flow_leave_undone(e);
		else if (!vmpt_flow_leave_at(e, e->c.psb_ip)) {
			if (doubt)
				vmpt_flow_leave_undone(e);
			else if (!vmpt_flow_other_code(e, &need) ||
				 !vmpt_flow_leave_at(e, e->c.psb_ip))
				vmpt_flow_lose(e, at);
		}
	}
	end_times(e);
	vmpt_flow_choices_clear(e);
	vmpt_flow_stack_clear(&e->s);
	e->c.pending |= e->c.psb_tsx ? PENDING_DOUBT : PENDING_WEAK;
	return vmpt_flow_enter(e, e->c.psb_ip);
}

/* No FUP: PacketEn is 0, or it was lost with the PSBEND. */
static void sync_nowhere(struct engine *e, u64 at, bool doubt, bool complete)
{
	if (e->c.place == RUNNING) {
		if (doubt)
			vmpt_flow_leave_undone(e);
		else
			vmpt_flow_lose(e, at);
	}
	end_times(e);
	vmpt_flow_choices_clear(e);
	vmpt_flow_stack_clear(&e->s);
	e->c.place = complete ? DISABLED : LOST;
}

/*
 * Nothing in a PSB+ is applied before its end; no state outlives it (33.3.7). At a PSB+ the flow is
 * always set to what it says: so a stream may be decoded from any on.
 */
int vmpt_flow_psbend(struct engine *e, bool complete)
{
	u64 at = e->c.psb_at - vmpt_pt_table[VMPT_PT_PSB].size;
	bool weak = e->c.pending & PENDING_WEAK;
	bool doubt = weak || e->c.pending & PENDING_DOUBT;
	int ret = 0;

	e->c.pending &= PENDING_OVF | PENDING_PSB;
	if (!e->times || e->quiet)
		e->c.pending &= PENDING_OVF;
	if (e->c.psb_pip)
		vmpt_flow_set_cr3(e, e->c.psb_cr3);
	if (e->c.psb_exec)
		vmpt_flow_set_exec(e, e->c.psb_exec);
	if (e->c.psb_fup)
		ret = sync_at(e, at, doubt, weak);
	else
		sync_nowhere(e, at, doubt, complete);
	vmpt_flow_anchors_forget(e);
	if (!ret)
		vmpt_flow_stack_from(e);
	return ret;
}

/* With code that changes. */
void vmpt_flow_tsc(struct engine *e, u64 tsc)
{
	e->c.tsc = e->c.psb_tsc = tsc;
	vmpt_flow_time(e);
}

/* The memo that PSB+ of the same bytes as that at @at have; NULL at the end of the bytes. */
static struct psb_memo *psb_memo_at(struct engine *e, u64 at)
{
	const u8 *p = e->data + at;
	u64 x;

	if (e->limit - at < 32)
		return NULL;
	x = (vmpt_load64(p) ^ vmpt_load64(p + 16) << 1) * 0x9e3779b97f4a7c15ULL;
	x += (vmpt_load64(p + 8) ^ vmpt_load64(p + 24) << 1) * 0xbf58476d1ce4e5b9ULL;
	return &e->psb_memo[(x ^ x >> 32) >> 20 & (PSB_MEMOS - 1)];
}

/* The PSB+ at @at as one that came before; its size, or 0. */
u32 vmpt_flow_psb_known(struct engine *e, u64 at)
{
	const struct psb_memo *m = psb_memo_at(e, at);

	if (!m || !m->size || m->size > e->stop - at || memcmp(e->data + at, m->bytes, m->size) ||
	    e->options.off & VMPT_FLOW_NO_PSB_MEMO)
		return 0;
	e->c.psb_ip = m->ip;
	e->c.psb_cr3 = m->cr3;
	e->c.psb_exec = m->exec;
	e->c.psb_fup = m->fup;
	e->c.psb_pip = m->pip;
	e->c.psb_tsx = m->tsx;
	e->c.last_ip = m->last_ip;
	if (m->tsc)
		vmpt_flow_tsc(e, m->tsc);
	return m->size;
}

/* PacketEn is and stays 0, and nothing changes. */
bool vmpt_flow_psb_idle(struct engine *e)
{
	const struct cursor *c = &e->c;
	bool idle = c->place == DISABLED && !c->psb_fup && c->pending == PENDING_PSB &&
		    (!c->psb_pip || (!c->no_cr3 && c->cr3 == c->psb_cr3)) &&
		    (!c->psb_exec || c->psb_exec == c->exec);

	if (idle) {
		e->c.pending = 0;
		vmpt_flow_choices_clear(e);
	}
	return idle;
}

/* An idle processor repeats its PSB+: those that equal the one at @at, after which the cursor is.
 */
void vmpt_flow_psb_skip(struct engine *e, u64 at)
{
	const u8 *first = e->data + at, *end = e->data + e->stop, *p = e->data + e->c.at;
	size_t size = (size_t)(p - first);
	u64 next;

	if (e->followed && !e->quiet && !vmpt_follow_same_psb(e->follow, at))
		return;
	for (;;) {
		while (end - p >= 8 && !(next = vmpt_load64(p)))
			p += 8;
		if (end - p < 8)
			break;
		p += (unsigned int)__builtin_ctzll(next) / 8;
		if ((size_t)(end - p) < size || memcmp(p, first, size))
			break;
		e->c.psb_at = (u64)(p - e->data) + vmpt_pt_table[VMPT_PT_PSB].size;
		p += size;
	}
	e->c.at = (u64)(p - e->data);
	if (e->times && !e->quiet)
		e->batch_from = e->c.at;
}

void vmpt_flow_psb_keep(struct engine *e, u64 end)
{
	struct psb_memo *m = psb_memo_at(e, e->c.psb_at);
	const struct cursor *c = &e->c;

	if (!m || end - e->c.psb_at > PSB_MEMO_BYTES)
		return;
	*m = (struct psb_memo){
		.ip = c->psb_ip,
		.cr3 = c->psb_cr3,
		.tsc = c->psb_tsc,
		.last_ip = c->last_ip,
		.size = (u8)(end - e->c.psb_at),
		.exec = c->psb_exec,
		.fup = c->psb_fup,
		.pip = c->psb_pip,
		.tsx = c->psb_tsx,
	};
	memcpy(m->bytes, e->data + e->c.psb_at, m->size);
}

void vmpt_flow_psb(struct engine *e)
{
	/* A compound event is complete before a PSB. */
	e->c.pending &= PENDING_OVF | PENDING_DOUBT | PENDING_WEAK;
	e->c.pending |= PENDING_PSB;
	e->c.last_ip = 0;
	e->c.psb_fup = e->c.psb_pip = e->c.psb_tsx = false;
	e->c.psb_exec = 0;
	e->c.psb_ip = ~0ULL;
	e->c.psb_tsc = 0;
	/* No state outlives a PSB. */
	vmpt_flow_anchors_forget(e);
	e->c.spent = 0;
	e->c.compressed = 0;
}
