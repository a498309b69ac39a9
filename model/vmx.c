// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * VMX transitions (SDM 3 33.5, Tables 33-52 to 33-54, 33-56 cases 11 and 12): their packets
 * under the conceal controls, with and without load and clear of TraceEn.
 */
#include "model/emit.h"

void vmpt_unit_vmptrld(struct vmpt_unit *unit, u64 vmcs)
{
	unit->vmx.vmcs = vmcs;
	/* TriggerEn && ContextEn (33.4.2.15); VMCLEAR of the current one makes no packet. */
	if (vmcs != VMPT_PT_VMCS_NONE && unit->trigger_en && unit->context_en)
		vmpt_model_emit_vmcs(unit);
}

void vmpt_unit_vmxon(struct vmpt_unit *unit, bool misc14, u64 ip)
{
	unit->vmx.on = true;
	if (misc14)
		return;
	/* 33.2.9.4: TraceEn is cleared, and CTL cannot be written until VMXOFF */
	if (unit->packet_en) {
		vmpt_model_emit_ip(unit, VMPT_PT_FUP, ip);
		vmpt_model_emit_no_ip(unit, VMPT_PT_TIP_PGD);
	}
	vmpt_model_disable(unit);
	unit->rules.no_ctl_writes = 1;
}

void vmpt_unit_vmxoff(struct vmpt_unit *unit)
{
	unit->vmx.on = false;
	unit->vmx.nonroot = false;
	unit->vmx.vmcs = VMPT_PT_VMCS_NONE;
	unit->rules.no_ctl_writes = 0;
}

/* Set the state of VMX operation by an entry. */
static void enter_nonroot(struct vmpt_unit *unit, const struct vmpt_unit_entry *entry)
{
	u64 vmcs = unit->vmx.vmcs;

	unit->vmx = entry->vmx;
	unit->vmx.vmcs = vmcs;
	unit->vmx.on = true;
	unit->vmx.nonroot = true;
}

/* The end of a transition that leaves TraceEn 1. */
static void arrive(struct vmpt_unit *unit, bool before, u64 target, const struct vmpt_mode *mode,
		   bool was, bool pip, bool nr)
{
	bool stop = false;

	unit->mode = *mode;
	unit->context_en = vmpt_model_context(unit, mode);
	if (unit->context_en) {
		stop = unit->ranged && vmpt_model_in_stop(unit, target);
		unit->filter_en = !stop && vmpt_model_filter(unit, target);
	}
	vmpt_model_update(unit);
	if (pip && unit->regs.ctl & VMPT_CTL_OS &&
	    (was || unit->context_en || unit->config.options.pip_without_context))
		vmpt_model_emit_pip(unit, mode->cr3, mode->pae, nr);
	vmpt_model_emit_target(unit, before, target);
	if (stop)
		vmpt_model_trace_stop(unit);
	unit_after(unit, target);
}

/* CFE.VMENTRY. @fup: BranchEn makes one that they share. */
static void entry_event(struct vmpt_unit *unit, const struct vmpt_unit_entry *entry, bool after,
			bool fup)
{
	bool before = unit->context_en, ip = before && !fup;

	if (!(unit->regs.ctl & VMPT_CTL_EVENT_EN) || entry->vmx.conceal_entry ||
	    (!before && !after))
		return;
	vmpt_model_emit_cfe(unit, VMPT_CFE_VMENTRY, 0, ip);
	if (ip)
		vmpt_model_emit_ip(unit, VMPT_PT_FUP, entry->ip);
}

/* A write that changes nothing does not count (33.2.8.3), and does not affect tracing. */
static bool loads(const struct vmpt_unit *unit, bool load_ctl, u64 ctl)
{
	return load_ctl && (ctl != unit->regs.ctl || !(ctl & VMPT_CTL_TRACE_EN));
}

void vmpt_unit_vmentry(struct vmpt_unit *unit, const struct vmpt_unit_entry *entry)
{
	bool was = unit->context_en, before = unit->packet_en, traced = unit->trigger_en;
	bool load = loads(unit, entry->load_ctl, entry->ctl);
	bool after = !load && vmpt_model_context(unit, &entry->mode), fup = before && !after;

	if (traced) {
		entry_event(unit, entry, after, fup);
		/* Table 33-56, cases 7 to 9 */
		if (fup)
			vmpt_model_emit_ip(unit, VMPT_PT_FUP, entry->ip);
	}
	enter_nonroot(unit, entry);
	if (!load) {
		if (traced)
			arrive(unit, before, entry->target, &entry->mode, was,
			       !entry->vmx.conceal_entry, true);
		else
			unit->mode = entry->mode;
		return;
	}
	/* CTL is loaded: a host that still traces is stopped by an MSR list (33.5.2.2). */
	if (unit->regs.ctl & VMPT_CTL_TRACE_EN) {
		if (before)
			vmpt_model_emit_no_ip(unit, VMPT_PT_TIP_PGD);
		vmpt_model_disable(unit);
	}
	unit->mode = entry->mode;
	unit->regs.ctl = entry->ctl;
	if (entry->ctl & VMPT_CTL_TRACE_EN) {
		unit->entry_pip = !entry->vmx.conceal_entry;
		vmpt_model_enable(unit, entry->target, true);
		unit->entry_pip = false;
	}
}

void vmpt_unit_vmentry_failed(struct vmpt_unit *unit, u64 next_ip)
{
	if (!unit->trigger_en)
		return;
	if (unit->packet_en)
		vmpt_model_tip(unit, next_ip, false);
	unit_after(unit, next_ip);
}

/* EVDs and CFE of a VM exit (Table 33-59, rows 13 to 15). */
static void exit_event(struct vmpt_unit *unit, const struct vmpt_unit_exit *exit, bool conceal,
		       bool after)
{
	bool before = unit->context_en, ip = before && !unit->packet_en;

	if (!(unit->regs.ctl & VMPT_CTL_EVENT_EN) || conceal || (!before && !after))
		return;
	if (before) {
		vmpt_model_emit_evd(unit, VMPT_EVD_VMXR, exit->reason);
		vmpt_model_emit_evd(unit, VMPT_EVD_VMXQ, exit->qualification);
	}
	vmpt_model_emit_cfe(unit, exit->intr && before ? VMPT_CFE_VMEXIT_INTR : VMPT_CFE_VMEXIT,
			    exit->intr && before ? exit->vector : 0, ip);
	if (ip)
		vmpt_model_emit_ip(unit, VMPT_PT_FUP, exit->ip);
}

/* TraceEn 1 to 0 by a VM exit. */
static void exit_disables(struct vmpt_unit *unit, bool before)
{
	if (before)
		vmpt_model_emit_no_ip(unit, VMPT_PT_TIP_PGD);
	vmpt_model_disable(unit);
}

void vmpt_unit_vmexit(struct vmpt_unit *unit, const struct vmpt_unit_exit *exit)
{
	bool was = unit->context_en, before = unit->packet_en, conceal = unit->vmx.conceal_exit;
	bool traced = unit->trigger_en, load;

	if (traced) {
		/* TraceEn cleared by the exit: no context after it. */
		exit_event(unit, exit, conceal,
			   !exit->clear_ctl && vmpt_model_context(unit, &exit->mode));
		if (before)
			vmpt_model_emit_ip(unit, VMPT_PT_FUP, exit->ip);
	}
	/* All of CTL is cleared, not TraceEn alone. Table 33-56, case 11; also where TraceEn is set
	 * but a STOP or an error ended it. */
	if (exit->clear_ctl) {
		exit_disables(unit, before);
		unit->regs.ctl = 0;
	}
	unit->vmx.nonroot = false;
	load = loads(unit, exit->load_ctl, exit->ctl);
	if (load && unit->regs.ctl & VMPT_CTL_TRACE_EN) {
		/* The MSR list comes after the host's state: its PIP is in the guest's trace. */
		if (!conceal && unit->regs.ctl & VMPT_CTL_OS && was)
			vmpt_model_emit_pip(unit, exit->mode.cr3, exit->mode.pae, false);
		exit_disables(unit, before);
	}
	if (unit->trigger_en) {
		arrive(unit, before, exit->target, &exit->mode, was, !conceal, false);
		return;
	}
	unit->mode = exit->mode;
	if (load) {
		unit->regs.ctl = exit->ctl;
		if (exit->ctl & VMPT_CTL_TRACE_EN)
			vmpt_model_enable(unit, exit->target, true);
	}
}

/* CTL after a VM entry that fails late: the loaded value, then the exit's change. */
static u64 failed_ctl(const struct vmpt_unit *unit, const struct vmpt_unit_entry *entry,
		      const struct vmpt_unit_exit *exit)
{
	if (exit->load_ctl)
		return exit->ctl;
	if (exit->clear_ctl)
		return 0;
	return entry->load_ctl ? entry->ctl : unit->regs.ctl;
}

void vmpt_unit_vmentry_failed_late(struct vmpt_unit *unit, const struct vmpt_unit_entry *entry,
				   const struct vmpt_unit_exit *exit)
{
	bool was = unit->context_en, before = unit->packet_en;
	bool load = loads(unit, entry->load_ctl, entry->ctl);
	u64 ctl = failed_ctl(unit, entry, exit);
	/*
	 * "VMM only": TraceEn was 0 meanwhile, there is only the TIP. Any other change of CTL ends
	 * the trace at the instruction, and may begin one in the host.
	 */
	bool vmm_only = load && !(entry->ctl & VMPT_CTL_TRACE_EN) && ctl == unit->regs.ctl;
	bool ends = (load && !vmm_only) || (exit->clear_ctl && !vmm_only) || ctl != unit->regs.ctl;

	if (unit->trigger_en) {
		if (!load)
			entry_event(unit, entry, !ends && vmpt_model_context(unit, &exit->mode),
				    ends && before);
		if (ends && before)
			vmpt_model_emit_ip(unit, VMPT_PT_FUP, entry->ip);
		if (!load && !entry->vmx.conceal_entry && was && unit->regs.ctl & VMPT_CTL_OS)
			vmpt_model_emit_pip(unit, entry->mode.cr3, entry->mode.pae, true);
		/* The MSR list comes after the host's state. */
		if (ends && !load && !exit->clear_ctl && !entry->vmx.conceal_exit && was &&
		    unit->regs.ctl & VMPT_CTL_OS)
			vmpt_model_emit_pip(unit, exit->mode.cr3, exit->mode.pae, false);
		if (!ends) {
			arrive(unit, before, exit->target, &exit->mode, was,
			       !load && !entry->vmx.conceal_exit, false);
			return;
		}
	}
	if (ends && unit->regs.ctl & VMPT_CTL_TRACE_EN)
		exit_disables(unit, before);
	unit->mode = exit->mode;
	if (!ends)
		return;
	unit->regs.ctl = ctl;
	if (ctl & VMPT_CTL_TRACE_EN)
		vmpt_model_enable(unit, exit->target, true);
}
