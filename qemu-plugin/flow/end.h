/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Internal to the flow: how a block ended. @done is the block; vcpu->delta still belongs to it.
 */
#ifndef VMPT_QEMU_PLUGIN_FLOW_END_H
#define VMPT_QEMU_PLUGIN_FLOW_END_H

#include "qemu-plugin/flow/vcpu.h"

/* A far transfer or event; vcpu->mode is the mode after it. */
void end_report_far(struct vcpu *vcpu, unsigned int kind, u64 from, u64 to);
/* The branch at the end of @done went to @ip; vcpu->mode is the mode after it. */
void end_report(struct vcpu *vcpu, const struct block *done, u64 ip);
/* Read the mode after an instruction of enum insn_kind @kind, which may have changed it. */
void end_take_mode(struct vcpu *vcpu, unsigned int kind);

/* Whether @ip follows @done without a branch, because QEMU cut the block there. */
bool end_follows(const struct vcpu *vcpu, const struct block *done, u64 ip);
/* Whether execution at @ip shows that the direct branch at the end of @done has executed. */
bool end_shown(const struct vcpu *vcpu, const struct block *done, u64 ip);
/* Whether the branch at the end of @done can lead to @block at @ip. */
bool end_leads(const struct vcpu *vcpu, const struct block *done, const struct block *block,
	       u64 ip);
/*
 * The branch at the end of @done has executed, but did not lead to where execution is now. Report
 * what is known of it, and return the last known address. A JCC is reported as not taken; an
 * indirect branch, whose target is unknown, as not executed (vcpu->undone).
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
