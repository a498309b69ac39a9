// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The PIPs that a guest's trace lacks when the VMM rather than the processor changed its CR3 (SDM 3
 * 33.5.2.3), and CR3_MATCH if the VMM runs the guest on a different CR3.
 */
#include "vmm-lib/internal.h"

/* MOV CR3's "no flush"; CR3 itself never holds it. */
#define CR3_NO_FLUSH (1ULL << 63)

int vmpt_vcpu_cr3_write(struct vmpt_vcpu *vcpu, const struct vmpt_cr3_write *write)
{
	struct vmpt_guest_output guest;
	int ret;

	if (vcpu->entered || vcpu->lost)
		return -VMPT_E_STATE;
	if (write->cause > VMPT_CR3_SMM)
		return -VMPT_E_INVAL;
	if (!vcpu->plan.guest_pt)
		return 0;
	if (write->cause == VMPT_CR3_RESTORE && !(vcpu->pip_on_restore && vcpu->ran))
		return 0;
	vmpt_guest_output_init(&guest, vcpu);
	ret = vmpt_pip_append(&guest.out, write, !vcpu->plan.conceal);
	if (ret > 0)
		vmpt_guest_output_done(&guest, vcpu);
	return ret;
}

int vmpt_vcpu_cr3_given(struct vmpt_vcpu *vcpu, bool given, u64 guest, u64 hw, bool pae)
{
	if (vcpu->entered)
		return -VMPT_E_STATE;
	vcpu->cr3_given = given;
	vcpu->cr3_guest = guest & ~CR3_NO_FLUSH;
	vcpu->cr3_hw = hw & ~CR3_NO_FLUSH;
	vcpu->cr3_pae = pae;
	return 0;
}

u64 vmpt_vcpu_cr3_match(const struct vmpt_vcpu *vcpu)
{
	u64 compared = vcpu->cr3_pae ? ~0x1fULL : ~0xfffULL; /* 33.2.5.2 */
	u64 match = vcpu->cr3_hw & ~0x1fULL;		     /* bits 4:0 are reserved */

	if (!vcpu->cr3_given)
		return vcpu->regs.cr3_match;
	/* One that differs in a bit that is compared in every paging mode */
	if ((vcpu->cr3_guest ^ vcpu->regs.cr3_match) & compared)
		match ^= 1ULL << 12;
	return match;
}
