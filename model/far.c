// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Far transfers and events (SDM 3 33.2.1.3, Tables 33-23, 33-55, 33-56, 33-59): FUP, PIP,
 * MODE.Exec and the TIP, TIP.PGD or TIP.PGE at the end; CFE and EVD before them.
 */
#include "model/emit.h"

void vmpt_model_emit_pip(struct vmpt_unit *unit, u64 cr3, bool pae, bool nr)
{
	struct vmpt_pt_packet pkt = { .kind = VMPT_PT_PIP };

	/* CR3[11:5] only with PAE paging, else 0 (Table 33-24). */
	pkt.pip.cr3 = cr3 & vmpt_mask64(52) & (pae ? ~0x1fULL : ~0xfffULL);
	pkt.pip.nr = nr;
	unit->lost_pip = false; /* again true if it is lost in an overflow */
	vmpt_model_emit(unit, &pkt);
}

#define EXEC_IF 4

/* IF depends on the processor; EventEn only makes a change of it an event (Table 33-26). */
static u8 exec_bits(const struct vmpt_unit *unit)
{
	const struct vmpt_mode *mode = &unit->mode;
	bool has_if = vmpt_pt_cap(&unit->config.cpuid, VMPT_CAP_EVENT);

	return (u8)(mode->cs_l | mode->cs_d << 1 | (has_if && mode->rflags_if ? EXEC_IF : 0));
}

void vmpt_model_emit_exec(struct vmpt_unit *unit)
{
	struct vmpt_pt_packet pkt = { .kind = VMPT_PT_MODE_EXEC };
	u8 bits = exec_bits(unit);

	pkt.exec.cs_l = bits & 1;
	pkt.exec.cs_d = bits >> 1 & 1;
	pkt.exec.rflags_if = bits >> 2;
	vmpt_model_emit(unit, &pkt);
	if (!unit->in_overflow)
		unit->last_exec = bits;
}

void vmpt_model_sync_exec(struct vmpt_unit *unit, bool pge)
{
	u8 changed = exec_bits(unit) ^ unit->last_exec;

	/* A TIP.PGE may go without it only if all bits are as they were sent (Table 33-26). */
	if (!pge && !(unit->regs.ctl & VMPT_CTL_EVENT_EN))
		changed &= (u8)~EXEC_IF;
	if (changed || (pge && !unit->config.options.suppress_same_mode))
		vmpt_model_emit_exec(unit);
}

void vmpt_model_emit_cfe(struct vmpt_unit *unit, unsigned int type, unsigned int vector, bool ip)
{
	struct vmpt_pt_packet pkt = { .kind = VMPT_PT_CFE };

	pkt.cfe.type = type;
	pkt.cfe.vector = vector;
	pkt.cfe.ip = ip;
	vmpt_model_emit(unit, &pkt);
}

void vmpt_model_emit_evd(struct vmpt_unit *unit, unsigned int type, u64 payload)
{
	struct vmpt_pt_packet pkt = { .kind = VMPT_PT_EVD };

	pkt.evd.type = type;
	pkt.evd.payload = payload;
	vmpt_model_emit(unit, &pkt);
}

void vmpt_model_emit_end(struct vmpt_unit *unit, bool before, u64 target)
{
	if (before && unit->packet_en)
		vmpt_model_tip(unit, target, false);
	else if (before && unit->context_en)
		vmpt_model_emit_ip(unit, VMPT_PT_TIP_PGD, target);
	else if (before)
		vmpt_model_emit_no_ip(unit, VMPT_PT_TIP_PGD);
	else if (unit->packet_en)
		vmpt_model_emit_ip(unit, VMPT_PT_TIP_PGE, target);
}

void vmpt_model_emit_target(struct vmpt_unit *unit, bool before, u64 target)
{
	if (unit->packet_en)
		vmpt_model_sync_exec(unit, !before);
	vmpt_model_emit_end(unit, before, target);
}

/* ---- properties of each kind, by Tables 33-23, 33-50, 33-55 and 33-59 ---- */

static const struct {
	u8 cfe;	    /* enum vmpt_pt_cfe, 0: none */
	bool fup;   /* BranchEn makes a FUP: a decoder cannot derive it from the binary */
	bool no_ip; /* CFE.IP is never set */
	bool vector;
} kinds[VMPT_FAR_KINDS] = {
	[VMPT_FAR_BRANCH] = { 0, false, false, false },
	[VMPT_FAR_IRET] = { VMPT_CFE_IRET, false, false, false },
	[VMPT_FAR_SOFT_INT] = { VMPT_CFE_INTR, true, false, true },
	[VMPT_FAR_EXCEPTION] = { VMPT_CFE_INTR, true, false, true },
	[VMPT_FAR_INTERRUPT] = { VMPT_CFE_INTR, true, false, true },
	[VMPT_FAR_TASK] = { 0, false, false, false },
	[VMPT_FAR_INIT] = { VMPT_CFE_INIT, true, false, false },
	[VMPT_FAR_SIPI] = { VMPT_CFE_SIPI, false, true, true },
	[VMPT_FAR_SMI] = { VMPT_CFE_SMI, true, false, false },
	[VMPT_FAR_RSM] = { VMPT_CFE_RSM, false, true, false },
	[VMPT_FAR_SHUTDOWN] = { VMPT_CFE_SHUTDOWN, false, false, false },
	[VMPT_FAR_UINTR] = { VMPT_CFE_UINTR, true, false, true },
	[VMPT_FAR_UIRET] = { VMPT_CFE_UIRET, true, false, false },
	[VMPT_FAR_EENTER] = { 0, true, false, false },
	[VMPT_FAR_EEXIT] = { 0, true, false, false },
	[VMPT_FAR_AEX] = { VMPT_CFE_INTR, true, false, true },
};

/* CFE and EVD of an event (33.4.2.29): in context before it, or, but for #PF, after it. */
static void event_trace(struct vmpt_unit *unit, const struct vmpt_far *far, bool context_after)
{
	bool before = unit->context_en, ip, vector;

	if (!(unit->regs.ctl & VMPT_CTL_EVENT_EN) || !kinds[far->kind].cfe)
		return;
	if (!before && (!context_after || far->page_fault))
		return;
	if (far->page_fault)
		vmpt_model_emit_evd(unit, VMPT_EVD_PFA, far->pf_address);
	ip = before && !kinds[far->kind].no_ip && !(unit->packet_en && kinds[far->kind].fup);
	/* A processor that waits for SIPI has no context here, but the vector is its own. */
	vector = kinds[far->kind].vector && (before || far->kind == VMPT_FAR_SIPI);
	vmpt_model_emit_cfe(unit, kinds[far->kind].cfe, vector ? far->vector : 0, ip);
	if (ip)
		vmpt_model_emit_ip(unit, VMPT_PT_FUP, far->ip);
}

/* ---- the transfer itself ---- */

static void pass(struct vmpt_unit *unit, const struct vmpt_far *far, unsigned int at)
{
	if (far->times)
		vmpt_model_pass_time(unit, &far->times[at]);
}

/* Rows 26 and 27 of Table 33-55 as printed; they assume PacketEn = 1 before and after. */
static bool fup_alone(const struct vmpt_unit *unit, const struct vmpt_far *far, bool before)
{
	return unit->config.options.uintr_fup_alone && before && unit->packet_en &&
	       (far->kind == VMPT_FAR_UINTR || far->kind == VMPT_FAR_UIRET);
}

static void arrive(struct vmpt_unit *unit, const struct vmpt_far *far, bool before)
{
	pass(unit, far, VMPT_AT_EXEC);
	if (unit->packet_en)
		vmpt_model_sync_exec(unit, !before);
	pass(unit, far, VMPT_AT_TARGET);
	vmpt_model_emit_end(unit, before, far->target);
}

static void transfer(struct vmpt_unit *unit, const struct vmpt_far *far)
{
	bool was = unit->context_en, before = unit->packet_en;
	bool context = vmpt_model_context(unit, &far->mode), stop = false;

	event_trace(unit, far, context);
	if (before && kinds[far->kind].fup)
		vmpt_model_emit_ip(unit, VMPT_PT_FUP, far->ip);
	unit->mode = far->mode;
	unit->context_en = context;
	if (context) {
		stop = unit->ranged && vmpt_model_in_stop(unit, far->target);
		unit->filter_en = !stop && vmpt_model_filter(unit, far->target);
	}
	vmpt_model_update(unit);
	pass(unit, far, VMPT_AT_PIP);
	if (far->cr3_written && unit->regs.ctl & VMPT_CTL_OS &&
	    (was || context || unit->config.options.pip_without_context))
		vmpt_model_emit_pip(unit, far->mode.cr3, far->mode.pae,
				    unit->vmx.nonroot && !unit->vmx.conceal_exec);
	if (!fup_alone(unit, far, before))
		arrive(unit, far, before);
	if (stop)
		vmpt_model_trace_stop(unit);
	unit_after(unit, far->target);
}

/* Rows 22 to 24 of Table 33-55: an AP that waits for SIPI leaves a FUP only. */
static void wait_for_sipi(struct vmpt_unit *unit, const struct vmpt_far *far)
{
	event_trace(unit, far, unit->context_en);
	if (unit->packet_en)
		vmpt_model_emit_ip(unit, VMPT_PT_FUP, far->ip);
	pass(unit, far, VMPT_AT_PIP);
	if (far->cr3_written && unit->regs.ctl & VMPT_CTL_OS && unit->context_en)
		vmpt_model_emit_pip(unit, far->mode.cr3, far->mode.pae, false);
	unit->mode = far->mode;
	unit->context_en = false;
	vmpt_model_update(unit);
}

/* SMI saves and clears TraceEn (33.2.9.3; Table 33-56, case 9). No PIP. */
static void smi(struct vmpt_unit *unit, const struct vmpt_far *far)
{
	event_trace(unit, far, false);
	unit->smm_trace_en = unit->regs.ctl & VMPT_CTL_TRACE_EN;
	if (unit->packet_en)
		vmpt_model_emit_ip(unit, VMPT_PT_FUP, far->ip);
	pass(unit, far, VMPT_AT_TARGET);
	if (unit->packet_en)
		vmpt_model_emit_no_ip(unit, VMPT_PT_TIP_PGD);
	vmpt_model_disable(unit);
	unit->mode = far->mode;
}

/* RSM restores TraceEn: as an enable at the target (Table 33-56, case 10). */
static void rsm(struct vmpt_unit *unit, const struct vmpt_far *far)
{
	pass(unit, far, VMPT_AT_TARGET);
	unit->mode = far->mode;
	if (!unit->smm_trace_en)
		return;
	unit->smm_trace_en = false;
	unit->regs.ctl |= VMPT_CTL_TRACE_EN;
	unit->rsm = unit->regs.ctl & VMPT_CTL_EVENT_EN;
	vmpt_model_enable(unit, far->target, true);
	unit->rsm = false;
}

void vmpt_unit_far(struct vmpt_unit *unit, const struct vmpt_far *far)
{
	if (far->kind == VMPT_FAR_SMI) {
		smi(unit, far);
	} else if (far->kind == VMPT_FAR_RSM) {
		rsm(unit, far);
	} else if (!unit->trigger_en) {
		unit->mode = far->mode;
	} else if (far->kind == VMPT_FAR_SHUTDOWN) {
		event_trace(unit, far, unit->context_en); /* nothing executes after it */
	} else if (far->kind == VMPT_FAR_INIT && far->waits) {
		wait_for_sipi(unit, far);
	} else {
		transfer(unit, far);
	}
	pass(unit, far, VMPT_AT_TARGET); /* every kind has ended by then */
}

void vmpt_unit_mov_cr3(struct vmpt_unit *unit, u64 next_ip, const struct vmpt_mode *mode)
{
	bool was = unit->context_en, before = unit->packet_en, context, stop;

	unit->mode = *mode;
	if (!unit->trigger_en)
		return;
	context = vmpt_model_context(unit, mode);
	unit->context_en = context;
	/* No branch: FilterEn stays, except that TraceStop clears it (33.4.2.9). */
	stop = context && unit->ranged && vmpt_model_in_stop(unit, next_ip);
	if (context && !was)
		unit->filter_en = vmpt_model_filter(unit, next_ip);
	unit->filter_en = unit->filter_en && !stop;
	vmpt_model_update(unit);
	if (unit->regs.ctl & VMPT_CTL_OS &&
	    (was || context || unit->config.options.pip_without_context))
		vmpt_model_emit_pip(unit, mode->cr3, mode->pae,
				    unit->vmx.nonroot && !unit->vmx.conceal_exec);
	if (before && !unit->packet_en) {
		vmpt_model_emit_no_ip(unit, VMPT_PT_TIP_PGD);
	} else if (!before && unit->packet_en) {
		vmpt_model_sync_exec(unit, true);
		vmpt_model_emit_ip(unit, VMPT_PT_TIP_PGE, next_ip);
	}
	if (stop)
		vmpt_model_trace_stop(unit);
	unit_after(unit, next_ip);
}

void vmpt_unit_set_if(struct vmpt_unit *unit, u64 ip, bool rflags_if)
{
	unit->mode.rflags_if = rflags_if;
	/* Table 33-59, row 22; an event of its own only with EventEn (Table 33-26). */
	if (!unit->trigger_en || !unit->context_en || !unit->filter_en ||
	    !(unit->regs.ctl & VMPT_CTL_EVENT_EN))
		return;
	vmpt_model_emit_exec(unit);
	vmpt_model_emit_ip(unit, VMPT_PT_FUP, ip);
	unit_after_no_ip(unit);
}
