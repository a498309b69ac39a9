// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Output to a guest's own memory: the position in the vCPU's registers, the VMM's memory callbacks,
 * and the VMM's policy if a guest points at something that is not memory (33.2.7.4 leaves that to
 * the implementation).
 */
#include "vmm-lib/internal.h"

/* Apply the vCPU's policy to a positive result of guest_read or guest_write. */
static int by_policy(const struct vmpt_vcpu *vcpu, int kind)
{
	/* A result that is no enum vmpt_guest_mem is not taken for memory. */
	u8 policy = kind < VMPT_MEMS ? vcpu->on_mem[kind] : VMPT_ON_MEM_ERROR;

	switch (policy) {
	case VMPT_ON_MEM_DROP:
		return VMPT_OUTPUT_DROPPED;
	case VMPT_ON_MEM_RETRY:
		return -VMPT_E_RETRY;
	default:
		return VMPT_OUTPUT_FAULT;
	}
}

static int read_entry(void *opaque, u64 pa, u64 *entry)
{
	const struct vmpt_vcpu *vcpu = opaque;
	int kind = vcpu->ops->guest_read(vcpu->opaque, pa, entry, sizeof(*entry));

	if (kind <= 0)
		return kind;
	/* A table cannot be dropped (Table 33-5), but the VMM may provide the memory later. */
	if (kind == VMPT_MEM_UNBACKED && by_policy(vcpu, kind) < 0)
		return -VMPT_E_RETRY;
	return VMPT_OUTPUT_FAULT;
}

static int write_bytes(void *opaque, u64 pa, const u8 *bytes, size_t len)
{
	struct vmpt_vcpu *vcpu = opaque;
	int kind = vcpu->ops->guest_write(vcpu->opaque, pa, bytes, len);

	vcpu->traced += len;
	return kind > 0 ? by_policy(vcpu, kind) : kind;
}

void vmpt_guest_output_init(struct vmpt_guest_output *guest, struct vmpt_vcpu *vcpu)
{
	guest->memory.read_entry = read_entry;
	guest->memory.write = write_bytes;
	guest->memory.opaque = vcpu;
	guest->base = vcpu->regs.output_base;
	guest->index = vmpt_pt_topa_index(&vcpu->regs);
	vmpt_output_init(&guest->out, &vcpu->rules, &vcpu->regs, &guest->memory);
}

void vmpt_guest_output_done(struct vmpt_guest_output *guest, struct vmpt_vcpu *vcpu)
{
	const struct vmpt_output *out = &guest->out;
	struct vmpt_pt_regs *regs = &vcpu->regs;

	/* The base and mask of a single range do not change, so this concerns tables only. */
	if (guest->base != regs->output_base || guest->index != vmpt_pt_topa_index(regs))
		vcpu->shadow.stale = true;
	if (out->events & VMPT_OUTPUT_STOP)
		vcpu->events |= VMPT_EVENT_STOP;
	if (out->events & VMPT_OUTPUT_ERROR) {
		vcpu->events |= VMPT_EVENT_ERROR;
		vcpu->output_why = out->why;
	}
	if (out->lost || out->dropped)
		vcpu->events |= VMPT_EVENT_LOST;
	if (out->events & VMPT_OUTPUT_INT) {
		/*
		 * PMI preservation (33.2.7.2); vmpt_vcpu_pmi() keeps the next entry from pending it
		 * again.
		 */
		if (regs->ctl & VMPT_CTL_INJECT)
			regs->status |= VMPT_STATUS_PEND_PMI;
		vmpt_vcpu_pmi(vcpu);
	}
}
