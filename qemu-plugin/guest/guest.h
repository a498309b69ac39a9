/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The guest view: the guest finds PT in its processor and programs it. vmm-lib decides what the
 * guest sees, a trace unit is the processor, and this connects both with QEMU. The flow calls it
 * through struct guest_ops; vcpu->guest is private to the view.
 */
#ifndef VMPT_QEMU_PLUGIN_GUEST_H
#define VMPT_QEMU_PLUGIN_GUEST_H

struct guest_ops;
struct plugin;
struct vcpu;

/*
 * Sets plugin->guest if the options ask for the view. -1: printed why, QEMU must not start.
 */
int guest_view_open(struct plugin *plugin);
/* A vCPU was added. 0, or -1: printed why. */
int guest_vcpu_open(struct vcpu *vcpu);

extern const struct guest_ops guest_view_ops;

#endif
