// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Packet groups of the trace unit: PSB+ (33.3.7), the start of tracing
 * (33.2.8.3), far transfers with the packets of a context change (33.4.1,
 * Tables 33-14, 33-53, 33-55, 33-56, 33-59), and timing packets (33.8.3).
 */
#include "tests/tracegen/internal.h"

bool tg_pip_wanted(const struct tracegen *g, const struct tg_cpu *p)
{
	return g->set.os && tg_cpu_context_en(g, p);
}

void tg_pip(struct tracegen *g, struct tg_cpu *p)
{
	const struct tg_ctx *c = p->cur;

	tg_emit2(g, p, VMPT_PT_PIP, c->cr3 & 0xfffffffffffe0ULL, c != &p->host && !c->conceal_exec);
}

bool tg_mode_changed(const struct tracegen *g, const struct tg_cpu *p)
{
	return p->mode_sent != p->cur->mode || (g->set.event_en && p->if_sent != p->cur->rflags_if);
}

void tg_mode_exec(struct tracegen *g, struct tg_cpu *p)
{
	const struct tg_ctx *c = p->cur;

	tg_emit3(g, p, VMPT_PT_MODE_EXEC, c->mode == 64, c->mode == 32,
		 g->set.event_en && c->rflags_if);
	if (p->overflow)
		return;
	p->mode_sent = c->mode;
	p->if_sent = c->rflags_if;
}

static u64 crystal(const struct tracegen *g, const struct tg_cpu *p)
{
	return p->now / g->set.tsc_ratio;
}

static void tsc_tma(struct tracegen *g, struct tg_cpu *p)
{
	if (!g->set.tsc)
		return;
	tg_emit1(g, p, VMPT_PT_TSC, tg_clock(p, p->cur) & vmpt_mask64(56));
	if (g->set.mtc)
		tg_emit2(g, p, VMPT_PT_TMA, crystal(g, p) & 0xffff, p->now % g->set.tsc_ratio);
}

void tg_timing(struct tracegen *g, struct tg_cpu *p)
{
	tsc_tma(g, p);
	tg_emit1(g, p, VMPT_PT_CBR, p->cbr);
}

static void psb_modes(struct tracegen *g, struct tg_cpu *p, bool packet_en)
{
	if (packet_en)
		tg_mode_exec(g, p);
	if (g->set.branch_en && tg_cpu_context_en(g, p))
		tg_emit2(g, p, VMPT_PT_MODE_TSX, p->cur->intx, 0);
}

static void psb_context(struct tracegen *g, struct tg_cpu *p)
{
	bool root = p->cur == &p->host;

	if (tg_pip_wanted(g, p))
		tg_pip(g, p);
	if (p->vmx && tg_cpu_context_en(g, p) && (root || !p->cur->conceal_exec))
		tg_emit1(g, p, VMPT_PT_VMCS, p->vmcs);
}

void tg_psb_plus(struct tracegen *g, struct tg_cpu *p, bool packet_en)
{
	if (!tg_trigger_en(p) || p->overflow)
		return;
	tg_tnt_flush(g, p);
	tg_forget_calls(p);
	p->last_ip = 0;
	p->full_ip = false;
	p->psb_bytes = 0;
	p->psb_pending = false;
	p->in_psb = true;
	tg_emit0(g, p, VMPT_PT_PSB);
	tsc_tma(g, p);
	if (g->set.psb_pip_first)
		psb_context(g, p);
	psb_modes(g, p, packet_en);
	if (packet_en)
		tg_emit_ip(g, p, VMPT_PT_FUP, p->cur->ip);
	if (!g->set.psb_pip_first)
		psb_context(g, p);
	tg_emit1(g, p, VMPT_PT_CBR, p->cbr);
	tg_emit0(g, p, VMPT_PT_PSBEND);
	p->in_psb = false;
}

void tg_advance(struct tracegen *g, struct tg_cpu *p, u64 ticks)
{
	u64 period = g->set.tsc_ratio << g->set.mtc_freq;
	u64 end = p->now + ticks;

	if (!g->set.mtc || !tg_trigger_en(p)) {
		p->now = end;
		p->next_mtc = end / period * period + period;
		return;
	}
	for (; p->next_mtc <= end; p->next_mtc += period) {
		p->now = p->next_mtc;
		tg_emit1(g, p, VMPT_PT_MTC, crystal(g, p) >> g->set.mtc_freq & 0xff);
	}
	p->now = end;
}

void tg_step(struct tracegen *g, struct tg_cpu *p)
{
	tg_advance(g, p, g->set.ticks);
	if (g->set.psb_every && p->psb_bytes >= g->set.psb_every && tg_trigger_en(p))
		tg_psb_plus(g, p, tg_packet_en(g, p));
}

/* The OVF at the end of an overflow. */
static void resolve(struct tracegen *g, struct tg_cpu *p)
{
	p->ovf_pending = false;
	tg_forget_calls(p);
	tg_emit0(g, p, VMPT_PT_OVF);
	tg_truth_loss(g, p, true);
	p->full_ip = true;
}

void tg_trace_enable(struct tracegen *g, struct tg_cpu *p, bool pip)
{
	bool psb = p->psb_pending || (!p->started && g->set.start_psb);
	bool packet_en;

	p->trace_en = true;
	p->started = true;
	p->cyc_sent = p->now;
	packet_en = tg_packet_en(g, p);
	if (psb && !p->overflow) {
		tg_psb_plus(g, p, packet_en && g->set.psb_fup_at_enable);
	} else {
		tg_timing(g, p);
		if (pip && tg_pip_wanted(g, p))
			tg_pip(g, p);
	}
	if (p->ovf_pending && !p->overflow)
		resolve(g, p);
	if (!packet_en)
		return;
	if (!psb || !g->set.psb_fup_at_enable)
		tg_mode_exec(g, p);
	tg_emit_ip(g, p, VMPT_PT_TIP_PGE, p->cur->ip);
}

static void cfe(struct tracegen *g, struct tg_cpu *p, struct tg_transfer *x)
{
	bool ip;
	unsigned int i;

	if (!x->cfe || !g->set.event_en || !tg_trigger_en(p))
		return;
	if (!x->context_before && !x->context_after)
		return;
	/* Table 33-59 case 7: a page fault outside the context has no packet. */
	if (!x->context_before && x->cfe == VMPT_CFE_INTR && x->vector == 14)
		return;
	ip = x->context_before && x->cfe_ip && !(x->async && x->packet_before);
	for (i = 0; i < x->evds && x->context_before; i++)
		tg_emit2(g, p, VMPT_PT_EVD, x->evd[i].type, x->evd[i].payload);
	tg_emit3(g, p, VMPT_PT_CFE, ip, (u64)x->cfe, x->vector);
	x->shown = !p->overflow && !p->drop;
	if (ip)
		tg_emit_ip(g, p, VMPT_PT_FUP, x->fup_ip);
}

void tg_leave(struct tracegen *g, struct tg_cpu *p, struct tg_transfer *x)
{
	/* Before another owner may take over. */
	tg_tnt_flush(g, p);
	x->context_before = tg_cpu_context_en(g, p);
	x->packet_before = tg_packet_en(g, p);
	x->nr_before = p->cur != &p->host;
	x->cr3_before = p->cur->cr3;
	cfe(g, p, x);
	if (x->async && x->packet_before)
		tg_emit_ip(g, p, VMPT_PT_FUP, x->fup_ip);
	p->left = p->cur;
}

/* Packets between those of a group: timing and PAD are allowed. */
static void between(struct tracegen *g, struct tg_cpu *p)
{
	u64 i;

	if (g->set.mtc_in_group)
		tg_emit1(g, p, VMPT_PT_MTC, crystal(g, p) >> g->set.mtc_freq & 0xff);
	for (i = 0; i < g->set.pad_in_group; i++)
		tg_emit0(g, p, VMPT_PT_PAD);
}

static void group_pip(struct tracegen *g, struct tg_cpu *p, struct tg_transfer *x)
{
	bool nr = p->cur != &p->host, after = tg_cpu_context_en(g, p);

	if (x->no_pip || !g->set.os || !tg_trigger_en(p))
		return;
	if (nr == x->nr_before && p->cur->cr3 == x->cr3_before)
		return;
	if (!(x->context_before && after) && !g->set.pip_when_contexten0)
		return;
	tg_pip(g, p);
	if (nr != x->nr_before && !p->cur->conceal_exec && !p->overflow && !p->drop)
		x->shown = true;
	between(g, p);
}

void tg_arrive(struct tracegen *g, struct tg_cpu *p, struct tg_transfer *x, u64 ip)
{
	bool packet_en = tg_packet_en(g, p);
	bool mode = packet_en && !x->straight && tg_mode_changed(g, p);

	p->cur->ip = ip;
	if (!packet_en && x->packet_before)
		tg_forget_calls(p);
	if (mode && g->set.mode_first) {
		tg_mode_exec(g, p);
		between(g, p);
	}
	group_pip(g, p, x);
	if (x->vmcs && tg_cpu_context_en(g, p)) {
		tg_emit1(g, p, VMPT_PT_VMCS, p->vmcs);
		between(g, p);
	}
	if ((mode && !g->set.mode_first) ||
	    (x->straight && packet_en && !x->packet_before && tg_mode_changed(g, p))) {
		tg_mode_exec(g, p);
		between(g, p);
	}
	if (packet_en && !x->packet_before)
		tg_emit_ip(g, p, VMPT_PT_TIP_PGE, ip);
	else if (packet_en && !x->straight)
		tg_emit_ip(g, p, VMPT_PT_TIP, ip);
	else if (!packet_en && x->packet_before)
		tg_emit_no_ip(g, p, VMPT_PT_TIP_PGD);
	p->left = NULL;
}
