/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The host view: a host with PT that traces its guests. Each host CPU has one stream, to which the
 * vCPUs that are assigned to it append their runs; a run is what executes between a VM entry and a
 * VM exit. The flow calls the view through struct host_ops; vcpu->host is private to the view.
 */
#ifndef VMPT_QEMU_PLUGIN_HOST_H
#define VMPT_QEMU_PLUGIN_HOST_H

struct host_ops;
struct plugin;
struct vcpu;

/*
 * Sets plugin->host if the options ask for the view. -1: printed why, QEMU must not start.
 */
int host_view_open(struct plugin *plugin);
/* When QEMU exits and no vCPU runs. Prints what was lost. */
void host_view_close(struct plugin *plugin);

/* A vCPU was added. 0, or -1: printed why. */
int host_vcpu_open(struct vcpu *vcpu);

extern const struct host_ops host_view_ops;

#endif
