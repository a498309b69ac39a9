/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The host view: a host with PT that traces its guests. Each host CPU has one stream, to which
 * the vCPUs that are assigned to it append their runs; a run is what lies between a VM entry
 * and a VM exit. The flow calls this; vcpu->host is the view's own.
 */
#ifndef VMPT_QEMU_PLUGIN_HOST_VIEW_H
#define VMPT_QEMU_PLUGIN_HOST_VIEW_H

#include "arch/types.h"

struct plugin;
struct vcpu;

/* Basic exit reasons (SDM 3 appendix C), as far as they are used. */
enum {
	EXIT_EXCEPTION_OR_NMI = 0,
	EXIT_EXTERNAL_INTERRUPT = 1,
	EXIT_HLT = 12,
	EXIT_IO = 30,
	EXIT_PREEMPTION_TIMER = 52,
};

/*
 * By plugin->options. 0, and plugin->host is set if the view is wanted; -1: printed why, QEMU
 * must not start.
 */
int host_view_open(struct plugin *plugin);
/* At QEMU's end; no vCPU runs. Prints what was lost. */
void host_view_close(struct plugin *plugin);

/* A vCPU is there. 0, or -1: printed why. */
int host_vcpu_open(struct vcpu *vcpu);

/*
 * VM entry: a run begins at linear address @ip with vcpu->mode. The view puts its unit into
 * the flow (flow_unit()).
 */
void host_enter(struct vcpu *vcpu, u64 ip);
/* Whether a run is open. */
bool host_running(const struct vcpu *vcpu);
/* VM exit at @ip, whose instruction has not retired, with @reason. Takes the unit out. */
void host_exit(struct vcpu *vcpu, u64 ip, u32 reason);
/* The same for an I/O instruction; @qualification as in SDM 3 table 28-5. */
void host_exit_io(struct vcpu *vcpu, u64 ip, u64 qualification);

/*
 * Time has passed; the next instruction is at @ip. A run whose time slice is over ends here and
 * the next begins.
 */
void host_tick(struct vcpu *vcpu, u64 ip);

#endif
