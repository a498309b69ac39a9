/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Internal to the flow: events for all attached trace units, of Intel PT and of RTIT. Those for
 * Intel PT are inline, because there are hundreds of millions of them; RTIT costs them one test.
 * @done is the block that ended, vcpu->delta still belongs to it, and @ip is where execution went.
 */
#ifndef VMPT_QEMU_PLUGIN_FLOW_UNITS_H
#define VMPT_QEMU_PLUGIN_FLOW_UNITS_H

#include "model/fast.h"
#include "qemu-plugin/flow/rtit.h"
#include "qemu-plugin/flow/vcpu.h"

/* NOLINTNEXTLINE(bugprone-macro-parentheses) */
#define FOR_UNITS(vcpu, u) for (unsigned int u = 0; u < (vcpu)->units; u++)

static inline bool rtit_listens(const struct vcpu *vcpu)
{
	return __builtin_expect(vcpu->rtits, 0);
}

/* For branches that have no inline function here. */
static inline void units_rtit_end(struct vcpu *vcpu, const struct block *done, u64 ip)
{
	if (rtit_listens(vcpu))
		rtit_end(vcpu, done, ip);
}

/* No branch: execution has reached @ip, in the block or at its end. */
static inline void units_step(struct vcpu *vcpu, u64 ip)
{
	if (rtit_listens(vcpu))
		rtit_steps(vcpu, ip);
}

static inline void units_jcc(struct vcpu *vcpu, const struct block *done, u64 ip)
{
	FOR_UNITS (vcpu, u)
		vmpt_unit_jcc_fast(vcpu->unit[u], ip != done->end + vcpu->delta, ip);
	units_rtit_end(vcpu, done, ip);
}

static inline void units_jmp(struct vcpu *vcpu, const struct block *done, u64 ip)
{
	FOR_UNITS (vcpu, u)
		vmpt_unit_jmp_fast(vcpu->unit[u], ip);
	units_rtit_end(vcpu, done, ip);
}

static inline void units_call(struct vcpu *vcpu, const struct block *done, u64 ip)
{
	FOR_UNITS (vcpu, u)
		vmpt_unit_call(vcpu->unit[u], done->end + vcpu->delta, ip);
	units_rtit_end(vcpu, done, ip);
}

static inline void units_ret(struct vcpu *vcpu, const struct block *done, u64 ip)
{
	FOR_UNITS (vcpu, u)
		vmpt_unit_ret(vcpu->unit[u], ip);
	units_rtit_end(vcpu, done, ip);
}

/* A far transfer, event or task switch; vcpu->mode is the mode after it. */
static inline void units_far(struct vcpu *vcpu, const struct vmpt_far *far)
{
	FOR_UNITS (vcpu, u)
		vmpt_unit_far(vcpu->unit[u], far);
	if (rtit_listens(vcpu))
		rtit_far(vcpu, far);
}

#endif
