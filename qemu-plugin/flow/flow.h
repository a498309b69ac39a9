/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * From blocks to events: the branches that a vCPU took and the events that were delivered to it,
 * reported to the trace units that listen. docs/qemu-plugin.md says what QEMU reports and what it
 * does not. Rooms to the right include this file only.
 */
#ifndef VMPT_QEMU_PLUGIN_FLOW_H
#define VMPT_QEMU_PLUGIN_FLOW_H

#include "qemu-plugin/flow/code.h"
#include "qemu-plugin/flow/file.h"
#include "qemu-plugin/flow/rtit.h"
#include "qemu-plugin/flow/vcpu.h"

/* ---- flow.c: callbacks from QEMU ---- */

/* A block begins; the same with a truth file. @user: struct block. */
void flow_block(unsigned int index, void *user);
void flow_block_truth(unsigned int index, void *user);
/* Tracing is off, and the block has sites, which need its address. */
void flow_block_sites(unsigned int index, void *user);

/* An interrupt or exception was delivered; @user: struct plugin. */
void flow_event(unsigned int index, u64 from, u64 to, void *user);

/* The vCPU begins to wait (HLT). @user: struct plugin. */
void flow_idle(unsigned int index, void *user);

/* STI, CLI or POPF at @site is about to execute. */
void flow_if(struct vcpu *vcpu, const struct site *site);

/* QEMU is about to drop all blocks: keep a copy of the one that executes. */
void flow_keep_block(struct vcpu *vcpu);

/*
 * Around each callback of a vCPU. false: QEMU is exiting, do nothing. The thread that ends QEMU
 * may be another vCPU's, so flow_stop() waits until no callback is active.
 */
static inline bool flow_begin(struct vcpu *vcpu)
{
	vcpu->busy = true;
	__asm__ volatile("" ::: "memory"); /* pairs with the barrier in flow_stop() */
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

/* ---- translate.c: what goes into translated code ---- */

/* 0, or -1: printed why. */
int translate_open(struct plugin *plugin);
/* QEMU's callback; @user: struct plugin. */
void translate_block(struct qemu_block *qemu, void *user);
/* The struct hot of vCPU @index at its current address. */
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
 * Attach (@on) or detach a view's trace unit. An attached unit gets all events from the next block
 * on; the beginning of that block is not an event. Call this between two events only.
 */
void flow_unit(struct vcpu *vcpu, struct vmpt_unit *unit, bool on);
void flow_rtit(struct vcpu *vcpu, struct vmpt_rtit_unit *unit, bool on);

/* Start (@on) or stop calling guest_ops.block() for each block. */
void flow_watch(struct vcpu *vcpu, bool on);

/*
 * Whether tracing can start at @site. Until something is first traced, blocks are translated
 * without what the flow needs, because that is faster. false: QEMU will translate all blocks
 * again; leave with flow_go_to() to the same site and ask again there.
 */
bool flow_ready(struct vcpu *vcpu, const struct site *site);

/* The same for counting: whether the block of @site counts its instructions. */
bool flow_counts(struct vcpu *vcpu, const struct site *site);

/* Leave a site's callback and continue at linear address @ip, without an event. */
void flow_go_to(struct vcpu *vcpu, u64 ip) __attribute__((noreturn));

#endif
