/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Inside the flow: how a block ended (end.c). @done is the block, vcpu->delta its place.
 */
#ifndef VMPT_QEMU_PLUGIN_FLOW_END_H
#define VMPT_QEMU_PLUGIN_FLOW_END_H

#include "qemu-plugin/flow/vcpu.h"

/* A far transfer or event; vcpu->mode holds behind it. */
void end_tell_far(struct vcpu *vcpu, unsigned int kind, u64 from, u64 to);
/* The branch at the end of @done went to @ip; vcpu->mode holds behind it. */
void end_tell(struct vcpu *vcpu, const struct block *done, u64 ip);
/* Read the mode behind an instruction of enum insn_kind @kind that may change it. */
void end_take_mode(struct vcpu *vcpu, unsigned int kind);

/* Whether an instruction at @ip follows @done without any branch: the block was cut there. */
bool end_follows(const struct vcpu *vcpu, const struct block *done, u64 ip);
/* Whether execution at @ip shows that the direct branch at the end of @done has executed. */
bool end_shown(const struct vcpu *vcpu, const struct block *done, u64 ip);
/* Whether the branch at the end of @done can lead to @block at @ip. */
bool end_leads(const struct vcpu *vcpu, const struct block *done, const struct block *block,
	       u64 ip);
/*
 * The branch at the end of @done has executed, but where it led is not where execution is now:
 * tell it as far as it is known, and return where execution was when it was lost. A JCC is told
 * as not taken; an indirect branch, whose target nobody knows, as not executed (vcpu->undone).
 */
u64 end_lost(struct vcpu *vcpu, const struct block *done);

static inline void push_ret(struct vcpu *vcpu, u64 next)
{
	vcpu->ret_top = (u8)((vcpu->ret_top + 1) % VCPU_RETS);
	vcpu->rets[vcpu->ret_top] = next;
}

/* Where a RET should go. */
static inline u64 pop_ret(struct vcpu *vcpu)
{
	u64 next = vcpu->rets[vcpu->ret_top];

	vcpu->ret_top = (u8)((vcpu->ret_top + VCPU_RETS - 1) % VCPU_RETS);
	return next;
}

#endif
