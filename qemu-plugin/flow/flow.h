/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * From blocks to events: which branch a vCPU took, which event was delivered, told to the
 * trace units that listen. What QEMU tells and what not is in docs/qemu-plugin.md.
 */
#ifndef VMPT_QEMU_PLUGIN_FLOW_H
#define VMPT_QEMU_PLUGIN_FLOW_H

#include "qemu-plugin/flow/rtit.h"
#include "qemu-plugin/flow/vcpu.h"

/* Callbacks of a block: on every execution; with a truth file. @user: struct block. */
void flow_block(unsigned int index, void *user);
void flow_block_truth(unsigned int index, void *user);
/* Where tracing is off: a block with sites, for which the address must be known. */
void flow_block_sites(unsigned int index, void *user);

/* A discontinuity; @user: struct plugin. */
void flow_event(unsigned int index, u64 from, u64 to, void *user);

/* The vCPU waits (HLT). @user: struct plugin. */
void flow_idle(unsigned int index, void *user);

/* STI, CLI or POPF at @site is about to execute. */
void flow_if(struct vcpu *vcpu, const struct site *site);

/* QEMU drops all blocks: keep what is under way. */
void flow_keep_block(struct vcpu *vcpu);

/*
 * A callback of a vCPU begins and ends. false: QEMU is about to end, do nothing. Whoever ends
 * QEMU may be another vCPU's thread, so flow_stop() waits until no callback is under way.
 */
static inline bool flow_begin(struct vcpu *vcpu)
{
	vcpu->busy = true;
	__asm__ volatile("" ::: "memory"); /* flow_stop() has the other half of the barrier */
	if (!__atomic_load_n(&vcpu->plugin->ending, __ATOMIC_RELAXED))
		return true;
	vcpu->busy = false;
	return false;
}

static inline void flow_done(struct vcpu *vcpu)
{
	__atomic_store_n(&vcpu->busy, false, __ATOMIC_RELEASE);
}

void flow_stop(struct plugin *plugin);

/* ---- translate.c: what is put into translated code ---- */

/* 0, or -1: printed why. */
int translate_open(struct plugin *plugin);
/* QEMU's callback; @user: struct plugin. */
void translate_block(struct qemu_block *qemu, void *user);
/* The numbers of vCPU @index, where they are now. */
struct hot *translate_hot(struct plugin *plugin, unsigned int index);
/* QEMU has dropped all blocks: free ours. */
void translate_free(struct plugin *plugin);

/* ---- for the views ---- */

/* The run-time linear address of @site while its block executes. */
static inline u64 site_ip(const struct vcpu *vcpu, const struct site *site)
{
	return site->vaddr + vcpu->delta;
}

/* RIP of a linear address in the current code segment. */
static inline u64 linear_to_rip(const struct vcpu *vcpu, u64 linear)
{
	return linear - vcpu->cpu.cs_base;
}

/*
 * Trace units of the views: @on, and the flow gives it all events from here on; the next block
 * begins wherever it does, without an event. Only between two events of the flow.
 */
void flow_unit(struct vcpu *vcpu, struct vmpt_unit *unit, bool on);
void flow_rtit(struct vcpu *vcpu, struct vmpt_rtit_unit *unit, bool on);

/* guest_ops.block() at the beginning of each block from here on, or no longer. */
void flow_watch(struct vcpu *vcpu, bool on);

/*
 * Whether the flow can begin at @site. While nothing was ever traced blocks are translated
 * without what it needs, for that costs time: false: QEMU translates all anew, leave with
 * flow_go_to() to the same site and ask again.
 */
bool flow_ready(struct vcpu *vcpu, const struct site *site);

/* Leave a site's callback and go on at linear address @ip, without an event. */
void flow_go_to(struct vcpu *vcpu, u64 ip) __attribute__((noreturn));

#endif
