// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The PIPs that a guest's trace lacks when its CR3 was changed by the VMM and not by the
 * processor (SDM 3 33.5.2.3), and CR3_MATCH where the VMM gives another CR3.
 */
#include "arch/pt-packet.h"
#include "vmm-lib/internal.h"

/* MOV CR3's "no flush"; CR3 itself never holds it. */
#define CR3_NO_FLUSH (1ULL << 63)
#define BYTES_MOD    0x20000u /* PacketByteCnt has 17 bits */

static bool cause_makes_pip(const struct vmpt_vcpu *vcpu, const struct vmpt_cr3_write *write)
{
	bool same = !((write->old_cr3 ^ write->new_cr3) & ~CR3_NO_FLUSH);

	switch (write->cause) {
	case VMPT_CR3_SMM: /* TraceEn is 0 when CR3 changes (33.2.9.3) */
		return false;
	case VMPT_CR3_TASK_SWITCH: /* Table 33-24: "CR3 is not modified, no PIP" */
		return !same;
	case VMPT_CR3_RESTORE:
		return vcpu->pip_on_restore && vcpu->ran && !same;
	default:
		return true;
	}
}

/*
 * TriggerEn && ContextEn && OS (Table 33-24). Under CR3 filtering ContextEn may change with
 * the write; a PIP is due if it is 1 on either side: the one that leaves the filtered
 * process tells the decoder so, the one that enters it is what the trace goes on with.
 */
static bool pip_is_due(const struct vmpt_vcpu *vcpu, const struct vmpt_cr3_write *w)
{
	const struct vmpt_pt_regs *regs = &vcpu->regs;

	if (!vcpu->plan.guest_pt || !vmpt_pt_trigger_en(regs) || !(regs->ctl & VMPT_CTL_OS))
		return false;
	return vmpt_pt_context_en(regs, w->cpl_before, w->old_cr3 & ~CR3_NO_FLUSH, w->pae_before) ||
	       vmpt_pt_context_en(regs, w->cpl_after, w->new_cr3 & ~CR3_NO_FLUSH, w->pae_after);
}

static int make_pip(const struct vmpt_vcpu *vcpu, const struct vmpt_cr3_write *write, u8 *buf,
		    size_t len)
{
	u64 low = write->pae_after ? 5 : 12; /* CR3[11:5] with PAE paging, else 0 */
	struct vmpt_pt_packet pkt = {
		.kind = VMPT_PT_PIP,
		.pip = { .cr3 = write->new_cr3 & vmpt_mask64(52) & ~vmpt_mask64((unsigned int)low),
			 .nr = !vcpu->plan.conceal },
	};

	return vmpt_pt_encode(&pkt, buf, len, 0);
}

/*
 * PacketByteCnt has grown by @n bytes (Table 33-7). 0 asks for a PSB+ at the next enable,
 * so it is left at 0 if one is asked for already and else made 0 only when the period's
 * end was crossed; under InjectPsbPmiOnEnable PendPSB asks for it.
 */
static void count_bytes(struct vmpt_vcpu *vcpu, u32 n)
{
	struct vmpt_pt_regs *regs = &vcpu->regs;
	u32 count = vmpt_pt_packet_bytes(regs), sum = count + n;
	u64 period = vmpt_pt_psb_period(regs);

	if (!vcpu->rules.psb_cyc || !count || !n)
		return;
	if (count % period + n < period) {
		/* Of a period above 128 KiB the count tells nothing when it wraps: no PSB. */
		count = sum % BYTES_MOD ? sum % BYTES_MOD : n;
	} else if (regs->ctl & VMPT_CTL_INJECT) {
		regs->status |= VMPT_STATUS_PEND_PSB;
		count = sum % BYTES_MOD ? sum % BYTES_MOD : n;
	} else {
		count = 0;
	}
	regs->status = (regs->status & ~VMPT_STATUS_BYTES) | (u64)count << VMPT_STATUS_BYTES_SHIFT;
}

int vmpt_vcpu_cr3_write(struct vmpt_vcpu *vcpu, const struct vmpt_cr3_write *write)
{
	struct vmpt_pt_regs *regs = &vcpu->regs;
	struct vmpt_guest_output guest;
	u64 base, mask_ptrs;
	u8 pip[VMPT_PT_SIZE_MAX];
	size_t done;
	int size, err;

	if (vcpu->entered || vcpu->lost)
		return -VMPT_E_STATE;
	if (write->cause > VMPT_CR3_SMM)
		return -VMPT_E_INVAL;
	if (!cause_makes_pip(vcpu, write) || !pip_is_due(vcpu, write))
		return 0;
	size = make_pip(vcpu, write, pip, sizeof(pip));
	if (size < 0)
		return size;

	/*
	 * All or nothing: until the last byte is in, the position stays where it was, and
	 * bytes behind it are no trace. A call that is repeated writes over them. (STATUS
	 * only changes where output ends, and nothing can fail after that.)
	 */
	base = regs->output_base;
	mask_ptrs = regs->output_mask_ptrs;
	vmpt_guest_output_init(&guest, vcpu);
	err = vmpt_output_write(&guest.out, pip, (size_t)size, &done);
	if (err) {
		regs->output_base = base;
		regs->output_mask_ptrs = mask_ptrs;
		return err;
	}
	count_bytes(vcpu, (u32)((u64)size - guest.out.lost));
	vmpt_guest_output_done(&guest, vcpu);
	return 1;
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
	/* One that differs in a bit that counts in each paging mode */
	if ((vcpu->cr3_guest ^ vcpu->regs.cr3_match) & compared)
		match ^= 1ULL << 12;
	return match;
}
