// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * From the guest to the host: the PT MSRs after a VM exit or a failed VM entry (SDM 3 33.5.2,
 * 33.5.2.5, 33.5.2.6). GLOBAL_STATUS[55] at this point belongs to the guest, whoever took the
 * interrupt. The host gets what its tracer wants now, not what it had at the entry, and CTL last.
 */
#include "vmm-lib/handover/handover.h"

/*
 * Report the first error, but continue until the state is consistent. -VMPT_E_HOST_TRACING gives
 * way: it is the only one after which a VM may go on.
 */
static void keep(int *first, int err)
{
	if (!*first || (err && *first == -VMPT_E_HOST_TRACING))
		*first = err;
}

/* ---- the guest's part ---- */

/*
 * CTL and the MSRs that a guest with CTL passed through may have written after it cleared TraceEn.
 * Values that its capabilities do not allow are not accepted.
 */
static int take_ctl(struct vmpt_vcpu *vcpu)
{
	u64 ctl, value;
	size_t i;
	int err;

	if (vcpu->ops->get_guest_ctl(vcpu->opaque, &ctl))
		return -VMPT_E_HARDWARE;
	if (vmpt_vcpu_shadowed(vcpu))
		ctl = (ctl & ~VMPT_CTL_TOPA) | (vcpu->regs.ctl & VMPT_CTL_TOPA);
	if (ctl == vcpu->regs.ctl)
		return 0;
	for (i = 0; i < VMPT_HANDOVER_MSRS; i++) {
		u32 msr = vmpt_handover_msrs[i];

		if (msr < VMPT_MSR_RTIT_CR3_MATCH || !vmpt_hand_shared(vcpu, msr) ||
		    (msr == VMPT_MSR_RTIT_CR3_MATCH && vcpu->cr3_given))
			continue;
		err = vmpt_hw_read(vcpu, msr, &value);
		if (err)
			return err;
		(void)vmpt_pt_restore_msr(&vcpu->rules, &vcpu->regs, msr, value, NULL);
	}
	if (!vmpt_pt_restore_msr(&vcpu->rules, &vcpu->regs, VMPT_MSR_RTIT_CTL, ctl, NULL))
		return 0;
	/* The guest wrote an illegal value: CTL should have been intercepted. */
	vmpt_pt_clear_trace_en(&vcpu->regs);
	return -VMPT_E_CONTROLS;
}

/*
 * STATUS, OUTPUT_BASE, OUTPUT_MASK_PTRS: the processor's, translated to the guest's. *controls:
 * TraceEn was still 1.
 */
static int take_position(struct vmpt_vcpu *vcpu, u64 *status, bool *pmi, bool *controls)
{
	u64 base = vcpu->regs.output_base, mask_ptrs = vcpu->regs.output_mask_ptrs;
	int err;

	err = vmpt_hw_read(vcpu, VMPT_MSR_RTIT_STATUS, status);
	/* TriggerEn goes with TraceEn (33.2.6.2): where CTL was not read, it shows the same. */
	if (!err && *status & VMPT_STATUS_TRIGGER_EN) {
		*controls = true;
		err = vmpt_hw_write(vcpu, VMPT_MSR_RTIT_CTL, 0);
		if (!err)
			err = vmpt_hw_read(vcpu, VMPT_MSR_RTIT_STATUS, status);
	}
	if (!err && vmpt_hand_shared(vcpu, VMPT_MSR_RTIT_OUTPUT_BASE))
		err = vmpt_hw_read(vcpu, VMPT_MSR_RTIT_OUTPUT_BASE, &base);
	if (!err && vmpt_hand_shared(vcpu, VMPT_MSR_RTIT_OUTPUT_MASK_PTRS))
		err = vmpt_hw_read(vcpu, VMPT_MSR_RTIT_OUTPUT_MASK_PTRS, &mask_ptrs);
	if (err)
		return err;
	if (!vmpt_vcpu_shadowed(vcpu)) {
		vcpu->regs.output_base = base;
		vcpu->regs.output_mask_ptrs = mask_ptrs;
		return 0;
	}
	return vmpt_shadow_take_back(vcpu, base, mask_ptrs, status, pmi);
}

/*
 * What the guest can have traced while its position went from @base and @mask_ptrs to where it is
 * now: TSC adjustment does no more.
 */
static void count_traced(struct vmpt_vcpu *vcpu, u64 base, u64 mask_ptrs)
{
	u64 n = vcpu->adjust_traced ? vcpu->adjust_traced : VMPT_ADJUST_TRACED;
	u64 was = mask_ptrs >> VMPT_OFFSET_SHIFT, now = vmpt_pt_output_offset(&vcpu->regs);

	if (base == vcpu->regs.output_base && (u32)mask_ptrs == (u32)vcpu->regs.output_mask_ptrs) {
		if (!(vcpu->regs.ctl & VMPT_CTL_TOPA))
			n = (now - was) & ((u32)mask_ptrs | VMPT_LOWER_MASK);
		else if (now >= was)
			n = now - was;
	}
	vcpu->traced = n < ~vcpu->traced ? vcpu->traced + n : ~0ULL;
}

/* STATUS as the guest sees it, and the events it implies. */
static void take_status(struct vmpt_vcpu *vcpu, u64 status, bool pmi)
{
	u64 set = status & ~vcpu->loaded_status;

	/* It was withheld at the entry, so it was not cleared there either. */
	if (vcpu->held_pend_pmi)
		status |= VMPT_STATUS_PEND_PMI;
	/*
	 * Set without an interrupt (TraceEn was cleared first): the next enable pends it
	 * (33.2.7.2). vmpt_vcpu_pmi() holds one that is being delivered.
	 */
	if (set & VMPT_STATUS_PEND_PMI && !pmi)
		vcpu->held_pend_pmi = false;
	/* To a guest that was not shown PacketByteCnt it is a reserved field. */
	vcpu->regs.status = status & vcpu->rules.status_mask;
	if (set & VMPT_STATUS_STOPPED)
		vcpu->events |= VMPT_EVENT_STOP;
	if (set & VMPT_STATUS_ERROR) {
		vcpu->events |= VMPT_EVENT_ERROR;
		if (vmpt_vcpu_shadowed(vcpu))
			vcpu->output_why = vcpu->shadow.why;
	}
}

/* After an entry that loaded the guest's state and may have run it. */
static int take_guest(struct vmpt_vcpu *vcpu, bool ran)
{
	u64 base = vcpu->regs.output_base, mask_ptrs = vcpu->regs.output_mask_ptrs;
	u64 status = vcpu->loaded_status;
	bool pmi, controls = false;
	int err = vmpt_hand_take_pmi(vcpu, &pmi);

	/* The enable has made its PSB+; the shadow may ask for another one. */
	if (ran && !(vcpu->loaded_status & (VMPT_STATUS_ERROR | VMPT_STATUS_STOPPED)))
		vcpu->force_psb = false;
	keep(&err, take_position(vcpu, &status, &pmi, &controls));
	if (!err) {
		count_traced(vcpu, base, mask_ptrs);
		take_status(vcpu, status, pmi);
	} else {
		/* What was written since will be overwritten from the old position on. */
		vcpu->events |= VMPT_EVENT_LOST;
		vcpu->force_psb = true;
		vcpu->shadow.stale = vmpt_vcpu_shadowed(vcpu);
	}
	if (ran && vcpu->ops->get_guest_ctl)
		keep(&err, take_ctl(vcpu));
	if (controls)
		keep(&err, ran ? -VMPT_E_CONTROLS : -VMPT_E_HOST_TRACING);
	vmpt_hand_step(vcpu, VMPT_STEP_GUEST_SAVED);
	if (pmi)
		vmpt_vcpu_pmi(vcpu);
	vmpt_hand_step(vcpu, VMPT_STEP_GUEST_PMI_TAKEN);
	return err;
}

/* ---- the host's part ---- */

/*
 * Whether @want says all that a tracer uses. A host that traced at the entry of a guest that did
 * not finds what it left out in the MSRs.
 */
static bool complete(const struct vmpt_vcpu *vcpu, struct vmpt_pt_regs *want, bool switched)
{
	size_t i;

	if (!(want->ctl & VMPT_CTL_TRACE_EN) || vcpu->restore_host ||
	    (!switched && vcpu->host_regs.ctl & VMPT_CTL_TRACE_EN))
		return true;
	for (i = 0; i < VMPT_HANDOVER_MSRS; i++) {
		u32 msr = vmpt_handover_msrs[i];

		if (vmpt_hand_uses(want->ctl, msr) && vmpt_pt_msr_exists(&vcpu->host_rules, msr) &&
		    *vmpt_pt_reg(want, msr) == VMPT_HOST_UNKNOWN)
			return false;
	}
	return true;
}

/* What the host's tracer wants now. Without a tracer: the old values, but not tracing. */
static int host_wants(struct vmpt_vcpu *vcpu, struct vmpt_pt_regs *want, bool switched)
{
	int err = 0;

	*want = vcpu->host_regs;
	if (vcpu->ops->host_state)
		err = vcpu->ops->host_state(vcpu->opaque, want);
	/* It starts tracing, and the other MSRs have not been read from the processor yet. */
	if (!err && vcpu->ops->host_state && vcpu->restore_host && !vcpu->host_saved &&
	    want->ctl & VMPT_CTL_TRACE_EN) {
		err = vmpt_hand_save_host(vcpu);
		*want = vcpu->host_regs;
		if (!err)
			err = vcpu->ops->host_state(vcpu->opaque, want);
	}
	if (!err && !complete(vcpu, want, switched))
		err = -VMPT_E_HOST_TRACING;
	if (err || !vcpu->ops->host_state) {
		*want = vcpu->host_regs;
		want->ctl &= ~VMPT_CTL_TRACE_EN;
	}
	return err;
}

/* Whether all MSRs but CTL are the same. */
static bool same_others(const struct vmpt_vcpu *vcpu, struct vmpt_pt_regs *a,
			struct vmpt_pt_regs *b)
{
	size_t i;

	if (vcpu->restore_host && !vcpu->host_saved)
		return true;
	for (i = 0; i < VMPT_HANDOVER_MSRS; i++) {
		u32 msr = vmpt_handover_msrs[i];

		if (vmpt_pt_msr_exists(&vcpu->host_rules, msr) &&
		    *vmpt_pt_reg(a, msr) != *vmpt_pt_reg(b, msr))
			return false;
	}
	return true;
}

/* Load all MSRs but CTL; without @all only those that differ from what the processor held. */
static int load_host(struct vmpt_vcpu *vcpu, struct vmpt_pt_regs *want, bool all)
{
	size_t i;
	int err;

	if (vcpu->restore_host && !vcpu->host_saved)
		return 0;
	for (i = 0; i < VMPT_HANDOVER_MSRS; i++) {
		u32 msr = vmpt_handover_msrs[i];
		u64 value = *vmpt_pt_reg(want, msr);

		if (!vmpt_pt_msr_exists(&vcpu->host_rules, msr) || value == VMPT_HOST_UNKNOWN ||
		    (!all && value == *vmpt_pt_reg(&vcpu->host_regs, msr)))
			continue;
		err = vmpt_hw_write(vcpu, msr, value);
		if (err)
			return err;
	}
	return 0;
}

/* What clear_triggers() took. */
static int load_triggers(struct vmpt_vcpu *vcpu)
{
	unsigned int i;
	int err;

	for (i = 0; i < vcpu->triggers; i++) {
		if (!(vcpu->triggers_cleared >> i & 1))
			continue;
		err = vmpt_hw_write(vcpu, vcpu->trigger_msrs[i], vcpu->trigger[i]);
		if (err)
			return err;
		vcpu->triggers_cleared &= (u8) ~(1u << i);
	}
	return 0;
}

/*
 * The host's CTL. The owner is the host: its NMI handler may start or stop PT between any two lines
 * here, and its decision is final. 0: done; 1: other MSRs must be loaded again; or an error.
 */
static int load_host_ctl(struct vmpt_vcpu *vcpu, struct vmpt_pt_regs *loaded, bool switched)
{
	struct vmpt_pt_regs now;
	unsigned int tries;
	/* Else it is what was written last: TraceEn is 0 after the exit. */
	bool ask = vcpu->restore_host || vcpu->ops->host_ctl;
	u64 ctl = 0;
	int err = 0;

	for (tries = 0; tries < VMPT_HANDOVER_TRIES; tries++) {
		if (ask)
			err = vmpt_hw_ctl(vcpu, &ctl);
		if (!err)
			err = host_wants(vcpu, &now, switched);
		if (err)
			return err;
		if (now.ctl == ctl ||
		    (!vcpu->restore_host && !((now.ctl | ctl) & VMPT_CTL_TRACE_EN)))
			return 0;
		if (!(ctl & VMPT_CTL_TRACE_EN) && !same_others(vcpu, loaded, &now)) {
			if (ask)
				return 1;
			/* Perhaps the handler changed them and has set TraceEn. */
			ask = true;
			continue;
		}
		err = vmpt_hw_write(vcpu, VMPT_MSR_RTIT_CTL, now.ctl);
		/* #GP if the handler has set TraceEn since: check again. */
		if (err && tries == VMPT_HANDOVER_TRIES - 1)
			return err;
		ask |= err;
		ctl = now.ctl;
	}
	return -VMPT_E_HOST_TRACING;
}

int vmpt_hand_host_back(struct vmpt_vcpu *vcpu, bool switched)
{
	struct vmpt_pt_regs want;
	bool owned = false;
	unsigned int tries;
	u64 ctl = 0;
	int err = 0;

	for (tries = 0; tries < VMPT_HANDOVER_TRIES; tries++) {
		vmpt_hand_owner(vcpu, VMPT_OWNED_TO_HOST);
		vmpt_hand_step(vcpu, VMPT_STEP_TO_HOST);
		/* While it owned the MSRs, the handler may have started PT: then we are done. */
		if (owned && !vmpt_hw_ctl(vcpu, &ctl) && ctl & VMPT_CTL_TRACE_EN) {
			err = 0;
			break;
		}
		/* A write failed: perhaps TraceEn was set by code that did not check the owner. */
		if (tries && !owned)
			(void)vmpt_hand_clear(vcpu, &ctl);
		owned = false;
		err = host_wants(vcpu, &want, switched);
		keep(&err, load_host(vcpu, &want, switched || tries));
		keep(&err, load_triggers(vcpu));
		if (err)
			continue;
		vmpt_hand_step(vcpu, VMPT_STEP_HOST_LOADED);
		vmpt_hand_owner(vcpu, VMPT_OWNED_BY_HOST);
		owned = true;
		vmpt_hand_step(vcpu, VMPT_STEP_HOST_OWNS);
		err = load_host_ctl(vcpu, &want, switched);
		if (err <= 0)
			break;
		err = -VMPT_E_HOST_TRACING;
	}
	if (err)
		vcpu->events |= VMPT_EVENT_HOST;
	vmpt_hand_owner(vcpu, VMPT_OWNED_BY_HOST);
	vmpt_hand_step(vcpu, VMPT_STEP_HOST_CTL);
	return err;
}

/* ---- both ---- */

/*
 * TraceEn must be 0: the clear control or the list did it. If it is not, the host's own
 * instructions have been traced; stop it and report. After a normal exit CTL is not read if the
 * host traced: TriggerEn and a refused WRMSR of the host's values tell.
 */
static int verify(struct vmpt_vcpu *vcpu, bool ran, enum vmpt_exit_kind kind)
{
	u64 found = 0;
	int err = 0;

	if (vcpu->restore_host || vcpu->ops->host_ctl || kind != VMPT_EXIT_NORMAL ||
	    !(vcpu->host_regs.ctl & VMPT_CTL_TRACE_EN))
		err = vmpt_hand_clear(vcpu, &found);
	if (!err && found & VMPT_CTL_TRACE_EN)
		err = ran ? -VMPT_E_CONTROLS : -VMPT_E_HOST_TRACING;
	if (err == -VMPT_E_HOST_TRACING)
		vcpu->events |= VMPT_EVENT_HOST;
	vmpt_hand_step(vcpu, VMPT_STEP_EXIT_VERIFIED);
	return err;
}

int vmpt_vcpu_exit(struct vmpt_vcpu *vcpu, enum vmpt_exit_kind kind)
{
	bool switched = vcpu->owner == VMPT_OWNED_BY_GUEST;
	int err = 0;

	if (!vcpu->entered)
		return -VMPT_E_STATE;
	if ((unsigned int)kind > VMPT_EXIT_ABORT)
		return -VMPT_E_INVAL;
	vcpu->entered = false;
	vmpt_hand_step(vcpu, VMPT_STEP_EXIT_BEGIN);
	if (kind == VMPT_EXIT_ABORT) {
		/* That processor is in shutdown: nothing can be read or written. */
		vcpu->lost = true;
		vmpt_hand_owner(vcpu, VMPT_OWNED_BY_HOST);
		return 0;
	}
	/* Tracing or not: it may have changed CR3 since its PT state was written. */
	if (kind == VMPT_EXIT_NORMAL)
		vcpu->ran = true;
	if (vcpu->owner != VMPT_OWNED_BY_HOST) {
		err = verify(vcpu, switched && kind != VMPT_EXIT_FAILED_EARLY, kind);
		if (switched && kind == VMPT_EXIT_FAILED_EARLY)
			/* PT was not enabled for the guest: a PMI is not the guest's. */
			keep(&err, vmpt_hand_host_pmi(vcpu));
		else if (switched)
			keep(&err, take_guest(vcpu, kind == VMPT_EXIT_NORMAL));
		keep(&err, vmpt_hand_host_back(vcpu, switched));
	}
	vmpt_hand_step(vcpu, VMPT_STEP_EXIT_END);
	return err;
}

enum vmpt_msr_owner vmpt_vcpu_pmi_owner(const struct vmpt_vcpu *vcpu)
{
	return (enum vmpt_msr_owner)__atomic_load_n(&vcpu->owner, __ATOMIC_SEQ_CST);
}

void vmpt_vcpu_vmptrld(struct vmpt_vcpu *vcpu)
{
	vcpu->force_psb = true;
}

/* Exit qualification of an EPT violation: asynchronous to instruction execution. */
#define EPT_ASYNCHRONOUS (1ULL << 16)

/*
 * Whether the table's memory was missing and not a region's: the page of the current entry, of the
 * next one, which may be read ahead, or the first page, to which END usually leads back. Whether
 * END leads to another table cannot be known without reading it; once it was followed, OUTPUT_BASE
 * is that table.
 */
static bool in_table(const struct vmpt_pt_regs *regs, u64 gpa)
{
	u64 index = vmpt_pt_topa_index(regs), next = (index + 1) % VMPT_TOPA_ENTRIES_MAX;
	u64 base = regs->output_base, page = gpa >> 12;

	return regs->ctl & VMPT_CTL_TOPA && (page == (base + 8 * index) >> 12 ||
					     page == (base + 8 * next) >> 12 || page == base >> 12);
}

enum vmpt_ept_action vmpt_vcpu_ept_violation(struct vmpt_vcpu *vcpu, u64 qualification, u64 gpa,
					     bool backed)
{
	if (!(qualification & EPT_ASYNCHRONOUS))
		return VMPT_EPT_NOT_PT;
	/*
	 * While the guest is entered, its registers are not available: the violation comes again.
	 */
	if (backed || vcpu->entered)
		return VMPT_EPT_RETRY;
	if (!vcpu->plan.guest_pt)
		return VMPT_EPT_ERROR;
	vcpu->regs.status |= VMPT_STATUS_ERROR;
	vcpu->regs.status &= ~VMPT_STATUS_TRIGGER_EN;
	/* The bytes that the processor kept for this page are never written. */
	vcpu->events |= VMPT_EVENT_ERROR | VMPT_EVENT_LOST;
	vcpu->output_why =
		in_table(&vcpu->regs, gpa) ? VMPT_OUTPUT_TABLE_MEMORY : VMPT_OUTPUT_MEMORY;
	return VMPT_EPT_ERROR;
}
