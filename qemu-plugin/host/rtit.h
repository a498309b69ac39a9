/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Runs on a host that traces with RTIT. It sets TraceActive before each VM entry and clears it
 * after the VM exit, so that each run begins with a PSB and does not depend on others: the only
 * state of a stream is which vCPU ran last.
 */
#ifndef VMPT_QEMU_PLUGIN_HOST_RTIT_H
#define VMPT_QEMU_PLUGIN_HOST_RTIT_H

#include "qemu-plugin/flow/flow.h"

/* Check @ctl, the host's RTIT_CTL. 0, or -1: printed why. */
int host_rtit_check(u64 ctl);

/* Set up a unit as it is in the host: in root operation, all registers written, tracing off. */
void host_rtit_init(struct vmpt_rtit_unit *unit, const struct options *options,
		    const struct vmpt_rtit_sink *sink);
/* Set TraceActive, enter the guest at linear address @ip, and make an STS for the time. */
void host_rtit_enter(struct vmpt_rtit_unit *unit, struct vcpu *vcpu, u64 ip);
/* VM exit at @ip; clear TraceActive, and write pending packets to the sink. */
void host_rtit_exit(struct vmpt_rtit_unit *unit, struct vcpu *vcpu, u64 ip);

/* In place of lost runs: an overflow that ends at @ip, and a VM exit there. */
void host_rtit_lost(const struct options *options, const struct vmpt_rtit_sink *sink, u64 ip);

/* Ticks of the TSC by which a run has to be moved: @gap rounded up to whole MTC periods. */
u64 host_rtit_move_by(u64 ctl, u64 gap);
/* Rewrite STSs and MTCs in @bytes, which are whole packets. */
void host_rtit_move(u64 ctl, u64 ticks, u8 *bytes, size_t n);

#endif
