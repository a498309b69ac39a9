// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Bochs's branches, interrupts and other events as events of the trace unit (model/). Near
 * branches come only while TraceEn is 1; the unit's state that they would have maintained is set
 * when TraceEn is set (msr.cc, vmx.cc).
 */
#include "pc.h"

void vmpt_jcc(unsigned int cpu, bool taken)
{
	struct pc_cpu *pc = pc_of(cpu);

	pc_time(pc);
	vmpt_unit_jcc(&pc->unit, taken, pc_next(pc));
	pc_after(pc);
}

void vmpt_near(unsigned int cpu, unsigned int what, bx_address next_ip)
{
	struct pc_cpu *pc = pc_of(cpu);
	struct vmpt_unit *unit = &pc->unit;
	u64 target = pc_next(pc);

	pc_time(pc);
	switch (what) {
	case BX_INSTR_IS_JMP:
		vmpt_unit_jmp(unit, target);
		break;
	case BX_INSTR_IS_JMP_INDIRECT:
		vmpt_unit_jmp_indirect(unit, target);
		break;
	case BX_INSTR_IS_CALL:
		vmpt_unit_call(unit, pc_lip(pc, next_ip), target);
		break;
	case BX_INSTR_IS_CALL_INDIRECT:
		vmpt_unit_call_indirect(unit, pc_lip(pc, next_ip), target);
		break;
	case BX_INSTR_IS_RET:
		vmpt_unit_ret(unit, target);
		break;
	default:
		break;
	}
	pc_after(pc);
}

void vmpt_control_register(unsigned int cpu, unsigned int what)
{
	struct pc_cpu *pc = pc_of(cpu);
	struct vmpt_mode mode;

	switch (what) {
	case BX_INSTR_MOV_CR3:
		pc_mode(pc, &mode);
		pc_time(pc);
		vmpt_unit_mov_cr3(&pc->unit, pc_next(pc), &mode);
		pc_after(pc);
		break;
	case BX_INSTR_MOV_CR0:
	case BX_INSTR_MOV_CR4:
		/* No packet, but PAE paging and EFER.LMA may have changed. */
		pc_mode(pc, &pc->unit.mode);
		break;
	case BX_INSTR_TASK_SWITCH:
		pc->task_switch = true;
		break;
	default:
		break;
	}
}

void vmpt_if(unsigned int cpu)
{
	struct pc_cpu *pc = pc_of(cpu);
	bool rflags_if = pc->cpu->get_IF() != 0;

	if (pc->unit.mode.rflags_if == rflags_if)
		return;
	pc_time(pc);
	vmpt_unit_set_if(&pc->unit, pc_place(pc), rflags_if);
	pc_after(pc);
}

bool vmpt_has_ptwrite(unsigned int cpu)
{
	return vmpt_pt_cap(&pc_of(cpu)->unit.config.cpuid, VMPT_CAP_PTWRITE);
}

void vmpt_ptwrite(unsigned int cpu, Bit64u payload, unsigned int size)
{
	struct pc_cpu *pc = pc_of(cpu);

	pc_time(pc);
	vmpt_unit_ptwrite(&pc->unit, pc_place(pc), payload, size);
	pc_after(pc);
}

/* ---- far transfers ---- */

void vmpt_far_origin(unsigned int cpu)
{
	struct pc_cpu *pc = pc_of(cpu);

	pc->origin = pc_place(pc);
	pc->task_switch = false;
}

/* @far has kind, ip and special fields; the rest is the processor's state. */
static void report(struct pc_cpu *pc, struct vmpt_far *far)
{
	far->target = pc_next(pc);
	pc_mode(pc, &far->mode);
	pc_time(pc);
	vmpt_unit_far(&pc->unit, far);
	pc_after(pc);
	pc_watch(pc);
}

void vmpt_far(unsigned int cpu, unsigned int what)
{
	struct pc_cpu *pc = pc_of(cpu);
	struct vmpt_far far = {};

	switch (what) {
	case BX_INSTR_IS_INT:
		return; /* vmpt_event_delivered() was called */
	case BX_INSTR_IS_IRET:
		far.kind = VMPT_FAR_IRET;
		break;
	case BX_INSTR_IS_UIRET:
		far.kind = VMPT_FAR_UIRET;
		break;
	default:
		far.kind = VMPT_FAR_BRANCH;
		break;
	}
	if (pc->task_switch) {
		far.kind = VMPT_FAR_TASK;
		far.cr3_written = true;
	}
	far.ip = pc->origin;
	report(pc, &far);
}

static bool is_software(int type)
{
	return type == BX_SOFTWARE_INTERRUPT || type == BX_PRIVILEGED_SOFTWARE_INTERRUPT ||
	       type == BX_SOFTWARE_EXCEPTION;
}

void vmpt_event_origin(unsigned int cpu, int type)
{
	struct pc_cpu *pc = pc_of(cpu);

	pc->origin = is_software(type) ? pc_place(pc) : pc_next(pc);
	pc->task_switch = false;
	pc_truth_origin(pc);
}

void vmpt_event_delivered(unsigned int cpu, Bit8u vector, unsigned int type)
{
	struct pc_cpu *pc = pc_of(cpu);
	struct vmpt_far far = {};

	pc_truth_event(pc, pc->origin, pc_next(pc));
	if (!(vmpt_watch[cpu] & VMPT_WATCH_PT))
		return;
	far.kind = is_software((int)type)	   ? VMPT_FAR_SOFT_INT
		   : type == BX_HARDWARE_EXCEPTION ? VMPT_FAR_EXCEPTION
						   : VMPT_FAR_INTERRUPT;
	far.vector = vector;
	far.cr3_written = pc->task_switch;
	far.page_fault = type == BX_HARDWARE_EXCEPTION && vector == BX_PF_EXCEPTION;
	far.pf_address = pc->cpu->cr2;
	far.ip = pc->origin;
	report(pc, &far);
}

void vmpt_uintr(unsigned int cpu, unsigned int vector)
{
	struct pc_cpu *pc = pc_of(cpu);
	struct vmpt_far far = {};

	pc_truth_origin(pc); /* the state is not changed */
	pc_truth_event(pc, pc->origin, pc_next(pc));
	if (!(vmpt_watch[cpu] & VMPT_WATCH_PT))
		return;
	far.kind = VMPT_FAR_UINTR;
	far.vector = (u8)vector;
	far.ip = pc->origin;
	report(pc, &far);
}

void vmpt_smi(unsigned int cpu)
{
	struct pc_cpu *pc = pc_of(cpu);
	struct vmpt_far far = {};

	/* VMX operation is left; RSM goes back (SDM 3 33.2.9.3). */
	pc->smm_on = pc->unit.vmx.on;
	pc->smm_nonroot = pc->unit.vmx.nonroot;
	pc_truth_smm(pc, true, pc->origin);
	far.kind = VMPT_FAR_SMI;
	far.ip = pc->origin;
	report(pc, &far);
	pc_memory_leave(pc);
	pc->unit.vmx.on = pc->unit.vmx.nonroot = false;
}

void vmpt_rsm(unsigned int cpu)
{
	struct pc_cpu *pc = pc_of(cpu);
	struct vmpt_far far = {};

	pc->unit.vmx.on = pc->smm_on;
	pc->unit.vmx.nonroot = pc->smm_nonroot;
	far.kind = VMPT_FAR_RSM;
	far.ip = pc->origin;
	pc_time_now(pc);
	pc_memory_enter(pc);
	report(pc, &far);
	pc_truth_smm(pc, false, pc_next(pc));
	pc_flush(pc);
	pc_watch(pc);
}

void vmpt_reset(unsigned int cpu, unsigned int source)
{
	struct pc_cpu *pc = pc_of(cpu);
	struct vmpt_far far = {};

	if (!pc)
		return;
	if (source != BX_RESET_SOFTWARE) {
		vmpt_unit_reset(&pc->unit, pc->was_reset);
		pc->was_reset = true;
		pc->global_status = 0;
		pc->in_entry = pc->in_exit = pc->list_ctl = false;
		pc->c_state = 0;
		pc->waits = false;
		pc_memory_reset(pc);
		pc_mode(pc, &pc->unit.mode);
		pc_truth_reset(pc);
		pc_watch(pc);
		return;
	}
	/* INIT leaves PT as it is (Table 33-55, rows 22 to 24) and VMX operation. */
	pc->unit.vmx.on = pc->unit.vmx.nonroot = false;
	pc->unit.vmx.vmcs = VMPT_PT_VMCS_NONE;
	far.kind = VMPT_FAR_INIT;
	far.ip = pc->origin;
	far.cr3_written = true;
	far.waits = pc->cpu->activity_state == BX_CPU_C::BX_ACTIVITY_STATE_WAIT_FOR_SIPI;
	report(pc, &far);
}

void vmpt_sipi(unsigned int cpu, unsigned int vector)
{
	struct pc_cpu *pc = pc_of(cpu);
	struct vmpt_far far = {};

	far.kind = VMPT_FAR_SIPI;
	far.vector = (u8)vector;
	report(pc, &far);
}

/* ---- sleep (33.2.3, Table 33-57's body) ---- */

static void sleeps(struct pc_cpu *pc, u64 ip)
{
	pc_time(pc);
	pc->c_state = 1;
	vmpt_unit_sleep(&pc->unit, ip, false, pc->c_state, 0);
	pc_after(pc);
	pc_time_sleep(pc);
}

/* HLT is C1; so is shutdown. MWAIT was reported, and waiting for SIPI is no power event. */
void vmpt_sleep(unsigned int cpu, unsigned int state)
{
	struct pc_cpu *pc = pc_of(cpu);
	struct vmpt_far far = {};

	/* A VM entry to an inactive guest: its state is not loaded yet. */
	if (!(vmpt_watch[cpu] & VMPT_WATCH_PT) || pc->in_entry)
		return;
	switch (state) {
	case BX_CPU_C::BX_ACTIVITY_STATE_HLT:
		sleeps(pc, pc_place(pc));
		break;
	case BX_CPU_C::BX_ACTIVITY_STATE_SHUTDOWN:
		far.kind = VMPT_FAR_SHUTDOWN;
		far.ip = pc_place(pc);
		report(pc, &far);
		sleeps(pc, pc_place(pc));
		break;
	default:
		break;
	}
}

void pc_sleep_entered(struct pc_cpu *pc)
{
	u32 state = pc->cpu->activity_state;

	if (vmpt_watch[pc->id] & VMPT_WATCH_PT && (state == BX_CPU_C::BX_ACTIVITY_STATE_HLT ||
						   state == BX_CPU_C::BX_ACTIVITY_STATE_SHUTDOWN))
		sleeps(pc, pc_next(pc));
}

/* @state and @sub_state as in PWRE; 0 with 0 or 1 is C0 or C0.1, which makes no packet. */
static void waits(struct pc_cpu *pc, u32 hints, u32 ext, u8 state, u8 sub_state)
{
	if (!(vmpt_watch[pc->id] & VMPT_WATCH_PT) || (!state && sub_state <= 1))
		return;
	pc_time(pc);
	/* C0.2 is not a C-state of the core. */
	pc->c_state = state;
	pc->waits = true;
	vmpt_unit_mwait(&pc->unit, pc_place(pc), hints, ext, state, sub_state);
	pc_after(pc);
	pc_time_sleep(pc);
}

void vmpt_mwait(unsigned int cpu, Bit32u hints, Bit32u ext)
{
	waits(pc_of(cpu), hints, ext, (u8)(((hints >> 4) + 1) & 0xf), (u8)(hints & 0xf));
}

void vmpt_umwait(unsigned int cpu, Bit32u request, bool no_c02)
{
	waits(pc_of(cpu), 0, request, 0, request & 1 || no_c02 ? 1 : 2);
}

void vmpt_wake(unsigned int cpu, unsigned int reason)
{
	struct pc_cpu *pc = pc_of(cpu);
	u8 state = pc->c_state;

	if (!state && !pc->waits)
		return;
	pc->c_state = 0;
	pc->waits = false;
	pc_time_wake(pc);
	vmpt_unit_wake(&pc->unit, state, state, (u8)reason);
	pc_after(pc);
}
