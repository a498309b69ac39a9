/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The guest view: the guest finds PT in its processor and programs it. vmm-lib decides what
 * the guest sees, a trace unit does what the processor would; this carries out. The flow calls
 * it by struct guest_ops; vcpu->guest is the view's own.
 */
#ifndef VMPT_QEMU_PLUGIN_GUEST_VIEW_H
#define VMPT_QEMU_PLUGIN_GUEST_VIEW_H

struct guest_ops;
struct plugin;
struct vcpu;

/*
 * By plugin->options. 0, and plugin->guest is set if the view is wanted; -1: printed why, QEMU
 * must not start.
 */
int guest_view_open(struct plugin *plugin);
/* A vCPU is there. 0, or -1: printed why. */
int guest_vcpu_open(struct vcpu *vcpu);

extern const struct guest_ops guest_view_ops;

#endif
