/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The guest view: the guest finds PT in its processor and programs it. vmm-lib decides what
 * the guest sees, a trace unit does what the processor would; this carries out. The flow and
 * plugin.c call this; vcpu->guest is the view's own.
 */
#ifndef VMPT_QEMU_PLUGIN_GUEST_VIEW_H
#define VMPT_QEMU_PLUGIN_GUEST_VIEW_H

#include "arch/types.h"

struct plugin;
struct site;
struct vcpu;

/* As host_view_open() and its like. */
int guest_view_open(struct plugin *plugin);
void guest_view_close(struct plugin *plugin);
int guest_vcpu_open(struct vcpu *vcpu);

/* While translating: whether instructions of enum insn_hook @hook are stopped at. */
bool guest_hooks(const struct plugin *plugin, unsigned int hook);
/* A block at @linear is translated whose code QEMU has at @host; NULL: not in memory. */
void guest_translates(struct plugin *plugin, u64 linear, const void *host);
/*
 * @site is about to execute, at site_ip(). Registers may be read (RIP and EFLAGS are old) and
 * written; may not return (flow_go_to()).
 */
void guest_site(struct vcpu *vcpu, const struct site *site);

/* An event was delivered: @from has not retired, @to is next. Before the flow tells the unit. */
void guest_event(struct vcpu *vcpu, u64 from, u64 to);

/* A block begins at @ip and the flow has told all events up to here. Registers are exact. */
void guest_block(struct vcpu *vcpu, u64 ip);

/* The CTL of its trace. */
u64 guest_ctl(const struct vcpu *vcpu);

/* Time has passed, as host_tick(). */
void guest_tick(struct vcpu *vcpu, u64 ip);

#endif
