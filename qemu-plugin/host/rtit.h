/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Runs of a host that traces with RTIT. It sets TraceActive before each VM entry and clears it
 * behind the exit, so that each run begins with a PSB and depends on no other: streams have no
 * state but which vCPU ran last.
 */
#ifndef VMPT_QEMU_PLUGIN_HOST_RTIT_H
#define VMPT_QEMU_PLUGIN_HOST_RTIT_H

#include "qemu-plugin/flow/flow.h"

/* Whether @ctl can be the host's RTIT_CTL. 0, or -1: printed why. */
int host_rtit_check(u64 ctl);

/* A unit as it is in the host, in root operation, with all registers but CTL set up. */
void host_rtit_init(struct vmpt_rtit_unit *unit, const struct options *options,
		    const struct vmpt_rtit_sink *sink);
/* TraceActive, VM entry to linear address @ip with the vCPU's mode; an STS, for the time. */
void host_rtit_enter(struct vmpt_rtit_unit *unit, struct vcpu *vcpu, u64 ip);
/* VM exit at @ip; TraceActive off, what waits goes to the sink. */
void host_rtit_exit(struct vmpt_rtit_unit *unit, struct vcpu *vcpu, u64 ip);

/* Of runs that were lost: the first instruction @ip behind the overflow, and a VM exit there. */
void host_rtit_lost(const struct options *options, const struct vmpt_rtit_sink *sink, u64 ip);

/* Ticks of the TSC by which a run has to be moved, at least @gap: MTCs stay whole. */
u64 host_rtit_move_by(u64 ctl, u64 gap);
/* Rewrite STSs and MTCs in @bytes, whole packets. */
void host_rtit_move(u64 ctl, u64 ticks, u8 *bytes, size_t n);

#endif
