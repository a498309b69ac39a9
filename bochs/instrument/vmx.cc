// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * VMX operation as events of the trace unit (SDM 3 33.5): the controls in the VMCS, and complete
 * VM entries and exits, in the order in which Bochs loads and saves state.
 */
#include "pc.h"

bool vmpt_vmx_has(enum vmpt_vmx_part part)
{
	pc_options_read();
	switch (part) {
	case VMPT_VMX_MISC_PT:
		return pc_options.vmx_pt;
	case VMPT_VMX_CONCEAL:
		return pc_options.conceal;
	case VMPT_VMX_PT_LOAD_CLEAR:
		return pc_options.load_clear;
	case VMPT_VMX_PT_GPA:
		return pc_options.gpa;
	}
	return false;
}

bool vmpt_pt_traces(unsigned int cpu)
{
	return pc_of(cpu)->unit.regs.ctl & VMPT_CTL_TRACE_EN;
}

/*
 * Reserved bits and encodings, whatever TraceEn is. Without IA32_VMX_MISC[14] no value is legal in
 * VMX operation (33.2.9.4), not even in a list of MSRs.
 */
bool vmpt_pt_ctl_valid(unsigned int cpu, Bit64u ctl)
{
	const struct vmpt_unit *unit = &pc_of(cpu)->unit;
	struct vmpt_pt_regs regs = unit->regs;

	regs.ctl = 0;
	return !vmpt_pt_wrmsr(&unit->rules, &regs, VMPT_MSR_RTIT_CTL, ctl, NULL);
}

Bit64u vmpt_pt_ctl(unsigned int cpu)
{
	return pc_of(cpu)->unit.regs.ctl;
}

void vmpt_vmxon(unsigned int cpu)
{
	struct pc_cpu *pc = pc_of(cpu);

	pc_time(pc);
	vmpt_unit_vmxon(&pc->unit, pc_options.vmx_pt, pc_place(pc));
	pc_watch(pc);
}

void vmpt_vmxoff(unsigned int cpu)
{
	vmpt_unit_vmxoff(&pc_of(cpu)->unit);
}

void vmpt_vmptrld(unsigned int cpu, Bit64u vmcs)
{
	struct pc_cpu *pc = pc_of(cpu);

	pc_time(pc);
	vmpt_unit_vmptrld(&pc->unit, vmcs == BX_INVALID_VMCSPTR ? VMPT_PT_VMCS_NONE : vmcs);
	pc_after(pc);
}

/* ---- VM entry ---- */

void vmpt_vmentry_begin(unsigned int cpu)
{
	struct pc_cpu *pc = pc_of(cpu);

	pc_msr_count_entry(pc);
	pc->entry = {};
	pc->entry.ip = pc_place(pc);
	pc->entry_next = pc_next(pc);
	pc->in_entry = true;
	pc->list_ctl = false;
}

void vmpt_vmentry_failed(unsigned int cpu)
{
	struct pc_cpu *pc = pc_of(cpu);

	pc->in_entry = false;
	if (!(vmpt_watch[cpu] & VMPT_WATCH_PT))
		return;
	pc_time(pc);
	vmpt_unit_vmentry_failed(&pc->unit, pc->entry_next);
	pc_after(pc);
}

/* Read the VMCS's controls of the guest's tracing. */
static void read_controls(struct pc_cpu *pc)
{
	const VMCS_CACHE *vm = &pc->cpu->vmcs;
	struct vmpt_unit_entry *entry = &pc->entry;

	entry->vmx.conceal_exec = vm->vmexec_ctrls2.PTRACE_SUPPRESS_GUEST_VMX_TRACE();
	entry->vmx.conceal_exit = vm->vmexit_ctrls1.PTRACE_SUPPRESS_HOST_VMX_TRACE();
	entry->vmx.conceal_entry = vm->vmentry_ctrls.PTRACE_SUPPRESS_VMX_PACKETS();
	if (vm->vmexec_ctrls1.TSC_OFFSET()) {
		entry->vmx.tsc_offset = pc->cpu->VMread64(VMCS_64BIT_CONTROL_TSC_OFFSET);
		if (vm->vmexec_ctrls2.TSC_SCALING())
			entry->vmx.tsc_multiplier = vm->tsc_multiplier;
	}
	if (vm->vmentry_ctrls.LOAD_GUEST_RTIT_CTRL()) {
		entry->load_ctl = true;
		entry->ctl = pc->cpu->VMread64(VMCS_64BIT_GUEST_IA32_RTIT_CTL);
	}
	/* The list comes after the guest's state. */
	if (pc->list_ctl) {
		entry->load_ctl = true;
		entry->ctl = pc->list_ctl_value;
	}
}

void vmpt_vmentry(unsigned int cpu)
{
	struct pc_cpu *pc = pc_of(cpu);

	pc->in_entry = false;
	pc_walk_entry(pc);
	read_controls(pc);
	pc->list_ctl = false;
	pc->entry.target = pc_next(pc);
	pc_mode(pc, &pc->entry.mode);
	pc_count_entry(pc);
	if (pc->entry.load_ctl)
		pc_time_now(pc);
	else
		pc_time(pc);
	pc_memory_enter(pc);
	pc_times_entry(pc);
	vmpt_unit_vmentry(&pc->unit, &pc->entry);
	pc_truth_entry(pc, pc->entry.target);
	pc_watch(pc);
	pc_sleep_entered(pc);
	pc_flush(pc);
}

/* ---- VM exit ---- */

void vmpt_vmexit(unsigned int cpu, Bit32u reason, Bit64u qualification)
{
	struct pc_cpu *pc = pc_of(cpu);

	pc->exit = {};
	pc->exit.reason = reason;
	pc->exit.qualification = qualification;
	pc->exit_late = reason >> 31;
	pc->exit_reported = false;
}

void vmpt_vmexit_begin(unsigned int cpu)
{
	struct pc_cpu *pc = pc_of(cpu);
	const VMCS_CACHE *vm = &pc->cpu->vmcs;
	u32 event;

	/* A late failure by the guest's state has loaded nothing, one by the list everything before
	 * it. */
	if (pc->in_entry) {
		read_controls(pc);
		if ((u16)pc->exit.reason != VMX_VMEXIT_VMENTRY_FAILURE_MSR)
			pc->entry.load_ctl = false;
		pc->entry.mode.cr3 = pc->cpu->VMread64(VMCS_GUEST_CR3);
		pc->in_entry = false;
	}
	pc->list_ctl = false;
	pc_walk_exit_begin(pc);
	pc->exit.ip = pc_next(pc);
	pc->exit.clear_ctl = vm->vmexit_ctrls1.CLEAR_IA32_RTIT_CTRL();
	event = pc->cpu->VMread32(VMCS_32BIT_VMEXIT_INTERRUPTION_INFO);
	/* An interrupt that the exit does not acknowledge has no vector yet. */
	if (!pc->exit_late && (event >> 31 || pc->exit.reason == VMX_VMEXIT_EXTERNAL_INTERRUPT)) {
		pc->exit.intr = true;
		pc->exit.vector = event >> 31 ? (u8)event : 0;
	}
	pc->in_exit = true;
	/* Straight out of HLT or MWAIT */
	if (!pc->exit_late)
		vmpt_wake(cpu, pc->exit.reason == VMX_VMEXIT_VMX_PREEMPTION_TIMER_EXPIRED
				       ? BX_INSTR_WAKE_TIMER
				       : BX_INSTR_WAKE_HW);
	if (!pc->exit_late) {
		pc_time(pc);
		(void)vmpt_unit_flush(&pc->unit);
	}
}

void pc_exit_report(struct pc_cpu *pc)
{
	pc->exit_reported = true;
	if (pc->exit_late) {
		vmpt_unit_vmentry_failed_late(&pc->unit, &pc->entry, &pc->exit);
	} else {
		pc_times_exit(pc);
		vmpt_unit_vmexit(&pc->unit, &pc->exit);
	}
	pc_memory_leave(pc);
}

void vmpt_vmexit_done(unsigned int cpu)
{
	struct pc_cpu *pc = pc_of(cpu);
	/* The list's CTL is for another output, after pending bytes of the guest's are stored. */
	bool list = pc->list_ctl, apart = pc->exit_reported || pc->ept.on;

	pc->in_exit = false;
	pc_count_exit(pc);
	pc_msr_count_exit(pc);
	pc->exit.target = pc_next(pc);
	pc_mode(pc, &pc->exit.mode);
	pc->exit.load_ctl = list && !apart;
	pc->exit.ctl = pc->list_ctl_value;
	pc->list_ctl = false;
	pc_time(pc);
	/* The list's CTL, or the entry's of a late failure, may begin a trace. */
	if (list || (pc->exit_late && pc->entry.load_ctl))
		pc_time_now(pc);
	if (!pc->exit_reported)
		pc_exit_report(pc);
	if (list && apart)
		(void)vmpt_unit_wrmsr(&pc->unit, VMPT_MSR_RTIT_CTL, pc->exit.ctl, pc->exit.target,
				      pc->exit.target);
	if (!pc->exit_late)
		pc_truth_exit(pc, pc->exit.ip, pc->exit.target);
	pc_flush(pc);
	pc_watch(pc);
	pc_walk_exit(pc);
}
