// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The enables (SDM 3 33.2.5, 33.2.6): context, IP filter, TraceStop, and what happens when
 * TraceEn changes (33.2.8.3, Table 33-56).
 */
#include "model/emit.h"

static unsigned int range_cfg(const struct vmpt_unit *unit, unsigned int n)
{
	return (unsigned int)(unit->regs.ctl >> VMPT_CTL_ADDR_SHIFT(n)) & 0xf;
}

/* Base and limit are inclusive (33.2.5.3). */
static bool in_range(const struct vmpt_unit *unit, unsigned int n, u64 ip)
{
	return ip >= unit->regs.addr[2 * n] && ip <= unit->regs.addr[2 * n + 1];
}

bool vmpt_model_filter(const struct vmpt_unit *unit, u64 ip)
{
	bool any = false;
	unsigned int n;

	for (n = 0; n < unit->rules.ranges; n++) {
		if (range_cfg(unit, n) != VMPT_ADDR_FILTER)
			continue;
		if (in_range(unit, n, ip))
			return true;
		any = true;
	}
	return !any;
}

bool vmpt_model_in_stop(const struct vmpt_unit *unit, u64 ip)
{
	unsigned int n;

	for (n = 0; n < unit->rules.ranges; n++) {
		if (range_cfg(unit, n) == VMPT_ADDR_TRACESTOP && in_range(unit, n, ip))
			return true;
	}
	return false;
}

bool vmpt_model_context(const struct vmpt_unit *unit, const struct vmpt_mode *mode)
{
	return !mode->enclave && vmpt_pt_context_en(&unit->regs, mode->cpl, mode->cr3, mode->pae);
}

void vmpt_model_update(struct vmpt_unit *unit)
{
	u64 status = unit->regs.status & ~VMPT_STATUS_READ_ONLY;
	bool packets = unit->trigger_en && unit->context_en && unit->filter_en && unit->branch_en;

	/* A RET is never compressed across PacketEn = 0 (33.4.2.2). */
	if (!packets)
		unit->ret_depth = 0;
	unit->packet_en = packets;
	/* A PSB+ without context has no PIP (33.3.7): one more is due where there is context. */
	if (unit->lost_pip && unit->context_en && unit->regs.ctl & VMPT_CTL_OS)
		unit->psb_due = true;
	if (unit->trigger_en)
		status |= VMPT_STATUS_TRIGGER_EN;
	if (unit->context_en)
		status |= VMPT_STATUS_CONTEXT_EN;
	if (unit->filter_en)
		status |= VMPT_STATUS_FILTER_EN;
	unit->regs.status = status;
}

static bool wants_psb(const struct vmpt_unit *unit)
{
	const struct vmpt_pt_regs *regs = &unit->regs;

	if (!unit->rules.psb_cyc || !vmpt_pt_packet_bytes(regs))
		return true;
	return regs->ctl & VMPT_CTL_INJECT && regs->status & VMPT_STATUS_PEND_PSB;
}

/* Reload what depends on the MSRs. */
static void load(struct vmpt_unit *unit)
{
	const u64 ctl = unit->regs.ctl;
	unsigned int freq = (unsigned int)(ctl >> VMPT_CTL_MTC_FREQ_SHIFT) & 0xf, n;

	unit->branch_en = ctl & VMPT_CTL_BRANCH_EN;
	unit->tnt_max = unit->config.options.long_tnt ? 47 : 6;
	unit->ranged = false;
	for (n = 0; n < unit->rules.ranges; n++)
		unit->ranged = unit->ranged || range_cfg(unit, n);
	if (vmpt_pt_psb_period(&unit->regs) <= 0x20000)
		unit->since_psb = vmpt_pt_packet_bytes(&unit->regs);
	unit->mtc_at = unit->now.art >> freq;
	unit->cyc_at = unit->now.cycles; /* reset when TriggerEn was cleared (33.3.6.1) */
	unit->last_exec = 0xff;
	/*
	 * Bytes that a sink has not taken yet stay in front; in memory the position changed, except
	 * for bytes that were given back.
	 */
	if (unit->config.memory && !unit->rest) {
		unit->used = 0;
		unit->in_overflow = false;
	}
	unit->rest = false;
	unit->tnt_bits = 0;
	unit->tnt_count = 0;
	unit->tip_count = 0;
	unit->psb_due = false;
	unit->whole_ip = true;
}

void vmpt_model_enable(struct vmpt_unit *unit, u64 ip, bool mode_exec)
{
	struct vmpt_pt_regs *regs = &unit->regs;
	bool pmi = regs->ctl & VMPT_CTL_INJECT && regs->status & VMPT_STATUS_PEND_PMI, psb, stop;

	load(unit);
	unit->trigger_en = vmpt_pt_trigger_en(regs);
	if (!unit->config.sink && unit->trigger_en) {
		vmpt_output_init(&unit->output, &unit->rules, regs, unit->config.memory);
		vmpt_output_load(&unit->output);
		if (unit->output.events & VMPT_OUTPUT_ERROR) {
			unit->output_why = unit->output.why;
			unit->output.events = 0;
			unit->trigger_en = false;
		}
	}
	/* Without TriggerEn they stay as they were (33.2.6.3). */
	if (unit->trigger_en) {
		unit->context_en = vmpt_model_context(unit, &unit->mode);
		unit->filter_en = vmpt_model_filter(unit, ip);
	}
	/* In a TraceStop region nothing is traced, not even this IP (33.4.2.9). */
	stop = unit->trigger_en && unit->context_en && vmpt_model_in_stop(unit, ip);
	unit->filter_en = unit->filter_en && !stop;
	vmpt_model_update(unit);
	if (unit->trigger_en && unit->in_overflow)
		vmpt_model_end_overflow(unit);
	if (pmi && unit->config.pmi)
		unit->config.pmi(unit->config.opaque);
	if (!unit->trigger_en)
		return;
	psb = wants_psb(unit);
	if (psb) {
		/* Status only: the TIP.PGE says that tracing begins here. */
		bool packets = unit->packet_en;

		unit->packet_en = false;
		vmpt_model_psb(unit, ip);
		unit->packet_en = packets;
	} else {
		vmpt_model_emit_time(unit);
		vmpt_model_emit_cbr(unit);
	}
	/* Table 33-52: each VM entry makes one with NR, unless concealed; a PSB+ may have it. */
	if (unit->entry_pip && (!psb || unit->vmx.conceal_exec) && unit->context_en &&
	    regs->ctl & VMPT_CTL_OS)
		vmpt_model_emit_pip(unit, unit->mode.cr3, unit->mode.pae, true);
	/* Table 33-59, row 11 */
	if (unit->rsm && unit->context_en)
		vmpt_model_emit_cfe(unit, VMPT_CFE_RSM, 0, false);
	/* It binds to the TIP.PGE (33.4.2.8), whatever Table 33-56, case 1 says: docs/model.md */
	if (unit->packet_en) {
		if (mode_exec)
			vmpt_model_emit_exec(unit);
		vmpt_model_emit_ip(unit, VMPT_PT_TIP_PGE, ip);
	}
	if (stop)
		vmpt_model_trace_stop(unit);
}

void vmpt_model_disable(struct vmpt_unit *unit)
{
	vmpt_model_flush_tnt(unit);
	/* The loss is marked now or, if there is no room, when tracing goes on. */
	if (unit->in_overflow)
		vmpt_model_end_overflow(unit);
	vmpt_unit_flush(unit);
	unit->trigger_en = false;
	vmpt_pt_clear_trace_en(&unit->regs);
	unit->packet_en = false;
	unit->ret_depth = 0;
}

void vmpt_model_trace_stop(struct vmpt_unit *unit)
{
	/* Signalled once the overflow has resolved (33.2.5.3): here, and tracing ceases. */
	if (unit->in_overflow)
		vmpt_model_end_overflow(unit);
	vmpt_model_emit_kind(unit, VMPT_PT_TRACESTOP);
	vmpt_unit_flush(unit);
	unit->regs.status |= VMPT_STATUS_STOPPED;
	unit->trigger_en = false;
	unit->filter_en = false;
	vmpt_model_update(unit);
}
