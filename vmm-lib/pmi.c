// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The ToPA PMI of a guest and bit 55 (Trace_ToPA_PMI) of its IA32_PERF_GLOBAL_STATUS
 * (SDM 3 33.2.7.2, "ToPA PMI"). The rule, from the manual's two cases of a second PMI:
 *
 * - pended before the first is taken, only one is taken: the two coalesce;
 * - pended after that, "it will be taken when the handler for the first completes": it is
 *   injected when the guest resets bit 55, and the bit is set again.
 *
 * A handler has taken the first once it has read bit 55 as 1: that is how it distinguishes a ToPA
 * PMI from others. So there is at most one injection per guest write to 390H, and none between the
 * first and that write.
 */
#include "vmm-lib/internal.h"

void vmpt_vcpu_pmi(struct vmpt_vcpu *vcpu)
{
	const struct vmpt_pt_regs *regs = &vcpu->regs;

	/*
	 * Bit 7 of STATUS stands for this PMI: no VM entry may pend it again. A guest that was not
	 * shown ToPA can write that bit too; it gets no PMI, otherwise one would come at each
	 * entry.
	 */
	if (regs->ctl & VMPT_CTL_INJECT && regs->status & VMPT_STATUS_PEND_PMI)
		vcpu->held_pend_pmi = true;
	if (!vcpu->rules.topa)
		return;
	if (vcpu->global_status) {
		vcpu->pmi_again = vcpu->pmi_again || vcpu->pmi_seen;
		return;
	}
	vcpu->global_status = true;
	vcpu->pmi_seen = false;
	vcpu->pmi_again = false;
	vcpu->events |= VMPT_EVENT_PMI;
	vcpu->pmis++;
	vcpu->ops->inject_pmi(vcpu->opaque);
}

/* #GP: the bit is reserved where there is no ToPA. */
static int reserved(struct vmpt_vcpu *vcpu)
{
	vcpu->gp_why = VMPT_GP_RESERVED;
	return VMPT_GP;
}

/* 38EH: the library owns bit 55 for every guest; it reads 0 for a guest that was shown no ToPA. */
void vmpt_pmi_read_status(struct vmpt_vcpu *vcpu, u64 *value)
{
	vmpt_pmi_get_status(vcpu, value);
	vcpu->pmi_seen = vcpu->global_status;
}

void vmpt_pmi_get_status(const struct vmpt_vcpu *vcpu, u64 *value)
{
	*value &= ~VMPT_GLOBAL_TOPA_PMI;
	if (vcpu->global_status)
		*value |= VMPT_GLOBAL_TOPA_PMI;
}

int vmpt_pmi_set_status(struct vmpt_vcpu *vcpu, u64 value)
{
	bool set = value & VMPT_GLOBAL_TOPA_PMI;

	if (set && !vcpu->rules.topa)
		return reserved(vcpu);
	vcpu->global_status = set;
	vcpu->pmi_seen = set;
	vcpu->pmi_again = false;
	return 0;
}

/* 390H: write 1 to clear. */
int vmpt_pmi_write_reset(struct vmpt_vcpu *vcpu, u64 value)
{
	bool again = vcpu->pmi_again;

	if (!(value & VMPT_GLOBAL_TOPA_PMI))
		return 0;
	if (!vcpu->rules.topa)
		return reserved(vcpu);
	vcpu->global_status = false;
	vcpu->pmi_seen = false;
	vcpu->pmi_again = false;
	if (again)
		vmpt_vcpu_pmi(vcpu);
	return 0;
}

/* 391H: write 1 to set; no interrupt. A guest that sets the bit has seen it. */
int vmpt_pmi_write_set(struct vmpt_vcpu *vcpu, u64 value)
{
	if (!(value & VMPT_GLOBAL_TOPA_PMI))
		return 0;
	if (!vcpu->rules.topa)
		return reserved(vcpu);
	vcpu->global_status = true;
	vcpu->pmi_seen = true;
	return 0;
}
