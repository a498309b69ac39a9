/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the flow calls in the views. plugin.c sets the tables; plugin->host and plugin->guest say
 * which views are on.
 */
#ifndef VMPT_QEMU_PLUGIN_FLOW_VIEWS_H
#define VMPT_QEMU_PLUGIN_FLOW_VIEWS_H

#include "arch/types.h"

struct plugin;
struct site;
struct truth_state;
struct vcpu;

/* Basic exit reasons (SDM 3 appendix C) that are used here. */
enum {
	EXIT_EXCEPTION_OR_NMI = 0,
	EXIT_EXTERNAL_INTERRUPT = 1,
	EXIT_HLT = 12,
	EXIT_IO = 30,
	EXIT_PREEMPTION_TIMER = 52,
};

struct host_ops {
	/*
	 * VM entry: a run begins at linear address @ip with vcpu->mode. The view attaches its unit
	 * (flow_unit()) and sets vcpu->running.
	 */
	void (*enter)(struct vcpu *vcpu, u64 ip);
	/*
	 * VM exit with @reason at @ip, whose instruction has not retired. The view detaches its
	 * unit.
	 * @qualification: for an I/O instruction, as in SDM 3 table 28-5, else 0.
	 */
	void (*exit)(struct vcpu *vcpu, u64 ip, u32 reason, u64 qualification);
	/*
	 * Time has passed; the next instruction is at @ip. If the time slice is over, the run ends
	 * here and the next one begins.
	 */
	void (*tick)(struct vcpu *vcpu, u64 ip);
	/*
	 * With a code stream: from the block that begins at @ip on, code is not what it was. The
	 * trace gets the time.
	 */
	void (*code_changed)(struct vcpu *vcpu, u64 ip);
};

struct guest_ops {
	/* While translating: whether instructions of enum insn_hook @hook need a callback. */
	bool (*hooks)(const struct plugin *plugin, unsigned int hook);
	/*
	 * @site is about to execute, at site_ip(). Registers may be read (RIP and EFLAGS are stale)
	 * and written. Need not return (flow_go_to()).
	 */
	void (*site)(struct vcpu *vcpu, const struct site *site);
	/* Whether the second instruction of a block at @linear needs HOOK_AFTER_PROBE. */
	bool (*probes)(const struct plugin *plugin, u64 linear);
	/*
	 * An event was delivered; @from has not retired. Called before the units get it. Returns
	 * where it came from to the guest.
	 */
	u64 (*event)(struct vcpu *vcpu, u64 from);
	/*
	 * If flow_watch() is on: a block begins, and all events up to here are reported. Registers
	 * are exact.
	 */
	void (*block)(struct vcpu *vcpu);
	/* Time has passed. */
	void (*tick)(struct vcpu *vcpu);
	/* A hot_counts.insns has reached COUNTED; between two blocks. */
	void (*counted)(struct vcpu *vcpu);
	/* Sets ctl and ranges of @state as the guest set them. */
	void (*state)(const struct vcpu *vcpu, struct truth_state *state);
};

#endif
