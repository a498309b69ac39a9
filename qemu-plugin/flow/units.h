/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Inside the flow: events told to all trace units that listen, of Intel PT and of RTIT. The
 * former's are inline, for there are hundreds of millions of them; the latter's cost them one
 * look at how many there are. @done is the block that ended, vcpu->delta its place, @ip where
 * execution is behind it.
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

/* What ends with @done->kind, as rtit_end() has it. */
static inline void units_rtit_end(struct vcpu *vcpu, const struct block *done, u64 ip)
{
	if (rtit_listens(vcpu))
		rtit_end(vcpu, done, ip);
}

/* No branch: execution has come to @ip in the block, or behind it. */
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

/* A far transfer, event or task switch; vcpu->mode holds behind it. */
static inline void units_far(struct vcpu *vcpu, const struct vmpt_far *far)
{
	FOR_UNITS (vcpu, u)
		vmpt_unit_far(vcpu->unit[u], far);
	if (rtit_listens(vcpu))
		rtit_far(vcpu, far);
}

#endif
