/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the flow asks of the views. plugin.c sets the tables; plugin->host and plugin->guest say
 * which view is on.
 */
#ifndef VMPT_QEMU_PLUGIN_FLOW_VIEWS_H
#define VMPT_QEMU_PLUGIN_FLOW_VIEWS_H

#include "arch/types.h"

struct plugin;
struct site;
struct vcpu;

/* Basic exit reasons (SDM 3 appendix C), as far as they are used. */
enum {
	EXIT_EXCEPTION_OR_NMI = 0,
	EXIT_EXTERNAL_INTERRUPT = 1,
	EXIT_HLT = 12,
	EXIT_IO = 30,
	EXIT_PREEMPTION_TIMER = 52,
};

struct host_ops {
	/*
	 * VM entry: a run begins at linear address @ip with vcpu->mode. The view puts its unit into
	 * the flow (flow_unit()) and sets vcpu->running.
	 */
	void (*enter)(struct vcpu *vcpu, u64 ip);
	/*
	 * VM exit at @ip, whose instruction has not retired, with @reason; the unit is taken out.
	 * @qualification: of an I/O instruction, as in SDM 3 table 28-5, else 0.
	 */
	void (*exit)(struct vcpu *vcpu, u64 ip, u32 reason, u64 qualification);
	/*
	 * Time has passed; the next instruction is at @ip. A run whose time slice is over ends here
	 * and the next begins.
	 */
	void (*tick)(struct vcpu *vcpu, u64 ip);
};

struct guest_ops {
	/* While translating: whether instructions of enum insn_hook @hook are stopped at. */
	bool (*hooks)(const struct plugin *plugin, unsigned int hook);
	/* A block at @linear is translated whose code QEMU has at @host; NULL: not in memory. */
	void (*translates)(struct plugin *plugin, u64 linear, const void *host);
	/*
	 * @site is about to execute, at site_ip(). Registers may be read (RIP and EFLAGS are old)
	 * and written; may not return (flow_go_to()).
	 */
	void (*site)(struct vcpu *vcpu, const struct site *site);
	/* An event was delivered; @from has not retired. Before the flow tells the unit. */
	void (*event)(struct vcpu *vcpu, u64 from);
	/*
	 * Where flow_watch() wants it: a block begins and the flow has told all events up to here.
	 * Registers are exact.
	 */
	void (*block)(struct vcpu *vcpu);
	/* Time has passed. */
	void (*tick)(struct vcpu *vcpu);
	/* The CTL of the guest's trace. */
	u64 (*ctl)(const struct vcpu *vcpu);
};

#endif
