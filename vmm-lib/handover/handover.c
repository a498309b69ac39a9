// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * From the host to the guest: the PT MSRs before a VM entry (SDM 3 33.5.2). This order is the only
 * legal and safe one: from the first step on, no one else may touch the MSRs; the host's TraceEn is
 * cleared, because until then the other MSRs cannot be written and a VM entry that loads CTL fails;
 * a PMI pending at that point is the host's; the guest's CTL comes last, written by the VM entry
 * itself.
 */
#include "vmm-lib/handover/handover.h"

const u16 vmpt_handover_msrs[VMPT_HANDOVER_MSRS] = {
	VMPT_MSR_RTIT_OUTPUT_BASE,
	VMPT_MSR_RTIT_OUTPUT_MASK_PTRS,
	VMPT_MSR_RTIT_STATUS,
	VMPT_MSR_RTIT_CR3_MATCH, /* ADDR0_A to ADDR3_B: */
	0x580,
	0x581,
	0x582,
	0x583,
	0x584,
	0x585,
	0x586,
	0x587,
};

int vmpt_hand_save_host(struct vmpt_vcpu *vcpu)
{
	size_t i;
	int err;

	for (i = 0; i < VMPT_HANDOVER_MSRS; i++) {
		u32 msr = vmpt_handover_msrs[i];

		if (!vmpt_pt_msr_exists(&vcpu->host_rules, msr) ||
		    (!vcpu->restore_host && !vmpt_hand_uses(vcpu->host_regs.ctl, msr)))
			continue;
		err = vmpt_hw_read(vcpu, msr, vmpt_pt_reg(&vcpu->host_regs, msr));
		if (err)
			return err;
	}
	vcpu->host_saved = true;
	return 0;
}

int vmpt_hand_clear(struct vmpt_vcpu *vcpu, u64 *found)
{
	unsigned int tries;
	u64 ctl;
	int err;

	for (tries = 0; tries < VMPT_HANDOVER_TRIES; tries++) {
		err = vmpt_hw_ctl(vcpu, &ctl);
		if (err)
			return err;
		if (!tries || ctl & VMPT_CTL_TRACE_EN)
			*found = ctl;
		if (!(ctl & VMPT_CTL_TRACE_EN))
			return 0;
		err = vmpt_hw_write(vcpu, VMPT_MSR_RTIT_CTL, ctl & ~VMPT_CTL_TRACE_EN);
		if (err)
			return err;
		if (vcpu->owner == VMPT_OWNED_TO_GUEST)
			vmpt_hand_step(vcpu, VMPT_STEP_HOST_CLEARED);
	}
	err = vmpt_hw_ctl(vcpu, &ctl);
	if (!err && ctl & VMPT_CTL_TRACE_EN)
		err = -VMPT_E_HOST_TRACING;
	return err;
}

int vmpt_hand_take_pmi(struct vmpt_vcpu *vcpu, bool *pmi)
{
	u64 status;
	int err;

	*pmi = false;
	if (!vcpu->host_rules.topa)
		return 0;
	err = vmpt_hw_read(vcpu, VMPT_MSR_PERF_GLOBAL_STATUS, &status);
	if (err || !(status & VMPT_GLOBAL_TOPA_PMI))
		return err;
	*pmi = true;
	return vmpt_hw_write(vcpu, VMPT_MSR_PERF_GLOBAL_RESET, VMPT_GLOBAL_TOPA_PMI);
}

int vmpt_hand_host_pmi(struct vmpt_vcpu *vcpu)
{
	bool pmi;
	int err = vmpt_hand_take_pmi(vcpu, &pmi);

	if (pmi && vcpu->ops->host_pmi)
		vcpu->ops->host_pmi(vcpu->opaque);
	return err;
}

/* Stop the host: clear TraceEn, and take the PMI of a region that it filled just before. */
static int stop_host(struct vmpt_vcpu *vcpu)
{
	size_t i;
	int err;

	vcpu->host_saved = false;
	for (i = 0; i < VMPT_HANDOVER_MSRS; i++)
		*vmpt_pt_reg(&vcpu->host_regs, vmpt_handover_msrs[i]) = VMPT_HOST_UNKNOWN;
	vcpu->host_regs.ctl = 0;
	err = vmpt_hand_clear(vcpu, &vcpu->host_regs.ctl);
	if (err)
		return err;
	vmpt_hand_step(vcpu, VMPT_STEP_HOST_VERIFIED);
	err = vmpt_hand_host_pmi(vcpu);
	if (!err)
		vmpt_hand_step(vcpu, VMPT_STEP_HOST_PMI_TAKEN);
	return err;
}

/* What the processor must hold while the guest runs. */
static void guest_values(struct vmpt_vcpu *vcpu, struct vmpt_pt_regs *hw)
{
	bool topa;

	*hw = vcpu->regs;
	/* Writes of these are ignored; what is read later is the processor's own. */
	hw->status &= ~VMPT_STATUS_READ_ONLY;
	/* Each entry is an enable, which would pend a PMI that the guest already got. */
	if (vcpu->held_pend_pmi)
		hw->status &= ~VMPT_STATUS_PEND_PMI;
	/* An enable at a PacketByteCnt of 0 makes a full PSB+ (33.2.8.3). */
	if (vcpu->force_psb)
		hw->status &= ~VMPT_STATUS_BYTES;
	hw->cr3_match = vmpt_vcpu_cr3_match(vcpu);
	if (!vmpt_vcpu_shadowed(vcpu))
		return;
	vmpt_shadow_regs(vcpu, &hw->output_base, &hw->output_mask_ptrs, &topa);
	hw->ctl = topa ? hw->ctl | VMPT_CTL_TOPA : hw->ctl & ~VMPT_CTL_TOPA;
}

/* Only MSRs that both have: the guest cannot reach the others, and the host may lack some. */
static int load_guest(struct vmpt_vcpu *vcpu, struct vmpt_pt_regs *hw)
{
	size_t i;
	int err;

	for (i = 0; i < VMPT_HANDOVER_MSRS; i++) {
		u32 msr = vmpt_handover_msrs[i];

		if (!vmpt_hand_shared(vcpu, msr))
			continue;
		err = vmpt_hw_write(vcpu, msr, *vmpt_pt_reg(hw, msr));
		if (err)
			return err;
	}
	vcpu->loaded_status = hw->status;
	return 0;
}

/* The host's triggers would fire in the guest. */
static int clear_triggers(struct vmpt_vcpu *vcpu)
{
	unsigned int i;
	int err = 0;

	vcpu->triggers_cleared = 0;
	for (i = 0; !err && i < vcpu->triggers; i++) {
		err = vmpt_hw_read(vcpu, vcpu->trigger_msrs[i], &vcpu->trigger[i]);
		if (err || !vcpu->trigger[i])
			continue;
		vcpu->triggers_cleared |= (u8)(1u << i);
		err = vmpt_hw_write(vcpu, vcpu->trigger_msrs[i], 0);
	}
	return err;
}

/* Load the MSRs of a guest that traces. *touched: from here on they are not the host's. */
static int switch_to_guest(struct vmpt_vcpu *vcpu, bool *touched)
{
	struct vmpt_pt_regs hw;
	int err = 0;

	if (vcpu->restore_host || vcpu->host_regs.ctl & VMPT_CTL_TRACE_EN)
		err = vmpt_hand_save_host(vcpu);
	if (err)
		return err;
	vmpt_hand_step(vcpu, VMPT_STEP_HOST_SAVED);
	guest_values(vcpu, &hw);
	*touched = true;
	err = load_guest(vcpu, &hw);
	if (!err)
		err = clear_triggers(vcpu);
	if (err)
		return err;
	vmpt_hand_step(vcpu, VMPT_STEP_GUEST_LOADED);
	vmpt_hand_owner(vcpu, VMPT_OWNED_BY_GUEST);
	vmpt_hand_step(vcpu, VMPT_STEP_GUEST_OWNS);
	return vcpu->ops->set_guest_ctl(vcpu->opaque, hw.ctl) ? -VMPT_E_HARDWARE : 0;
}

/*
 * A guest that does not trace: its MSRs need not be loaded, because all its accesses exit. What the
 * VM entry loads into CTL must still have TraceEn = 0.
 */
static int guest_without_trace(struct vmpt_vcpu *vcpu)
{
	int err = 0;

	/* A host that traced finds its own values at the exit, or asks for others. */
	if (vcpu->host_regs.ctl & VMPT_CTL_TRACE_EN) {
		if (vcpu->restore_host)
			err = vmpt_hand_save_host(vcpu);
		if (err)
			return err;
		vmpt_hand_step(vcpu, VMPT_STEP_HOST_SAVED);
	}
	if (vcpu->plan.guest_pt)
		err = vcpu->ops->set_guest_ctl(vcpu->opaque, vcpu->regs.ctl);
	else if (vcpu->plan.entry.value & VMPT_ENTRY_LOAD_RTIT_CTL && vcpu->ops->set_guest_ctl)
		err = vcpu->ops->set_guest_ctl(vcpu->opaque, 0);
	return err ? -VMPT_E_HARDWARE : 0;
}

/*
 * Undo. A host that traces is left alone if its own values are in the MSRs: nothing was cleared, or
 * it keeps setting TraceEn against all requests. Otherwise it is stopped, because it traces into
 * the guest's memory; its tracing is why a write was refused.
 */
static int give_up(struct vmpt_vcpu *vcpu, bool touched, int err)
{
	u64 ctl = 0;

	if (!touched && !vmpt_hw_ctl(vcpu, &ctl) && ctl & VMPT_CTL_TRACE_EN) {
		vmpt_hand_owner(vcpu, VMPT_OWNED_BY_HOST);
		return err;
	}
	vmpt_hand_owner(vcpu, VMPT_OWNED_TO_HOST);
	ctl = 0;
	(void)vmpt_hand_clear(vcpu, &ctl);
	if (ctl & VMPT_CTL_TRACE_EN)
		err = -VMPT_E_HOST_TRACING;
	(void)vmpt_hand_host_back(vcpu, touched);
	return err;
}

int vmpt_vcpu_enter(struct vmpt_vcpu *vcpu)
{
	bool tracing = vcpu->plan.guest_pt && vcpu->regs.ctl & VMPT_CTL_TRACE_EN, touched = false;
	int err = 0;

	if (vcpu->lost || vcpu->entered || vcpu->adjust_more)
		return -VMPT_E_STATE;
	if ((vcpu->plan.guest_pt || vcpu->plan.stop_host) && !vcpu->ops->hw_rdmsr)
		return -VMPT_E_INVAL;
	/* This reads guest memory: do it while the host still traces. */
	if (tracing && vmpt_vcpu_shadowed(vcpu))
		err = vmpt_shadow_ready(vcpu);
	if (err)
		return err;
	if (vcpu->plan.guest_pt || vcpu->plan.stop_host) {
		vmpt_hand_owner(vcpu, VMPT_OWNED_TO_GUEST);
		vmpt_hand_step(vcpu, VMPT_STEP_ENTER_BEGIN);
		err = stop_host(vcpu);
		if (!err)
			err = tracing ? switch_to_guest(vcpu, &touched) : guest_without_trace(vcpu);
		if (err)
			return give_up(vcpu, touched, err);
		vmpt_hand_step(vcpu, VMPT_STEP_GUEST_CTL);
	}
	vcpu->entered = true;
	vmpt_hand_step(vcpu, VMPT_STEP_ENTER_END);
	return 0;
}
