// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The PIP of a CR3 write that the processor did not carry out (SDM 3 33.5.2.3), and any packet
 * that goes to the output by the VMM's hand. All position is in the registers.
 */
#include "vmm-lib/pip-write.h"

/* MOV CR3's "no flush"; CR3 itself never holds it. */
#define CR3_NO_FLUSH (1ULL << 63)
#define BYTES_MOD    0x20000u /* PacketByteCnt has 17 bits */

static bool cause_makes_pip(const struct vmpt_cr3_write *write)
{
	bool same = !((write->old_cr3 ^ write->new_cr3) & ~CR3_NO_FLUSH);

	switch (write->cause) {
	case VMPT_CR3_SMM: /* TraceEn is 0 when CR3 changes (33.2.9.3) */
		return false;
	case VMPT_CR3_TASK_SWITCH: /* Table 33-24: "CR3 is not modified, no PIP" */
	case VMPT_CR3_RESTORE:
		return !same;
	default:
		return true;
	}
}

bool vmpt_pip_due(const struct vmpt_pt_regs *regs, const struct vmpt_cr3_write *write)
{
	if (!cause_makes_pip(write) || !vmpt_pt_trigger_en(regs) || !(regs->ctl & VMPT_CTL_OS))
		return false;
	return vmpt_pt_context_en(regs, write->cpl_before, write->old_cr3 & ~CR3_NO_FLUSH,
				  write->pae_before) ||
	       vmpt_pt_context_en(regs, write->cpl_after, write->new_cr3 & ~CR3_NO_FLUSH,
				  write->pae_after);
}

/* CR3[51:5] and NR, behind a header of two bytes; CR3[11:5] counts with PAE paging only. */
void vmpt_pip_bytes(const struct vmpt_cr3_write *write, bool nr, u8 pip[VMPT_PIP_SIZE])
{
	u64 cr3 = write->new_cr3 & vmpt_mask64(52) & ~vmpt_mask64(write->pae_after ? 5 : 12);
	u64 payload = cr3 >> 4 | (nr ? 1 : 0);
	unsigned int i;

	pip[0] = 0x02;
	pip[1] = 0x43;
	for (i = 2; i < VMPT_PIP_SIZE; i++) {
		pip[i] = (u8)payload;
		payload >>= 8;
	}
}

/*
 * PacketByteCnt has grown by @n bytes (Table 33-7). 0 asks for a PSB+ at the next enable,
 * so it is left at 0 if one is asked for already and else made 0 only when the period's
 * end was crossed; under InjectPsbPmiOnEnable PendPSB asks for it.
 */
static void count_bytes(const struct vmpt_pt_rules *rules, struct vmpt_pt_regs *regs, u32 n)
{
	u32 count = vmpt_pt_packet_bytes(regs), sum = (count + n) % BYTES_MOD;
	u64 period = vmpt_pt_psb_period(regs); /* a power of two */

	if (!rules->psb_cyc || !count || !n)
		return;
	if ((count & (period - 1)) + n < period) {
		/* Of a period above 128 KiB the count tells nothing when it wraps: no PSB. */
		count = sum ? sum : n;
	} else if (regs->ctl & VMPT_CTL_INJECT) {
		regs->status |= VMPT_STATUS_PEND_PSB;
		count = sum ? sum : n;
	} else {
		count = 0;
	}
	regs->status = (regs->status & ~VMPT_STATUS_BYTES) | (u64)count << VMPT_STATUS_BYTES_SHIFT;
}

/*
 * Until the last byte is in, the position stays where it was, and bytes behind it are no
 * trace. A call that is repeated writes over them. (STATUS only changes where output ends,
 * and nothing can fail after that.)
 */
int vmpt_packet_append(struct vmpt_output *out, const u8 *packet, size_t len)
{
	struct vmpt_pt_regs *regs = out->regs;
	u64 base = regs->output_base, mask_ptrs = regs->output_mask_ptrs;
	u64 lost = out->lost;
	size_t done;
	int err;

	err = vmpt_output_write(out, packet, len, &done);
	if (err) {
		regs->output_base = base;
		regs->output_mask_ptrs = mask_ptrs;
		vmpt_output_unload(out);
		return err;
	}
	count_bytes(out->rules, regs, (u32)(len - (out->lost - lost)));
	return 0;
}

int vmpt_pip_append(struct vmpt_output *out, const struct vmpt_cr3_write *write, bool nr)
{
	u8 pip[VMPT_PIP_SIZE];
	int err;

	if (!vmpt_pip_due(out->regs, write))
		return 0;
	vmpt_pip_bytes(write, nr, pip);
	err = vmpt_packet_append(out, pip, sizeof(pip));
	return err ? err : 1;
}
