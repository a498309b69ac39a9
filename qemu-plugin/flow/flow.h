/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * From blocks to events: which branch a vCPU took, which event was delivered, told to the
 * trace units that listen. What QEMU tells and what not is in docs/qemu-plugin.md.
 */
#ifndef VMPT_QEMU_PLUGIN_FLOW_H
#define VMPT_QEMU_PLUGIN_FLOW_H

#include "qemu-plugin/flow/vcpu.h"

/* Callbacks of a block: on every execution; with a truth file. @user: struct block. */
void flow_block(unsigned int index, void *user);
void flow_block_truth(unsigned int index, void *user);
/* Where tracing is off: a block with sites, for which the address must be known. */
void flow_block_sites(unsigned int index, void *user);

/* A discontinuity; @user: struct plugin. */
void flow_event(unsigned int index, u64 from, u64 to, void *user);

/* The vCPU waits (HLT), goes on. @user: struct plugin. */
void flow_idle(unsigned int index, void *user);
void flow_resume(unsigned int index, void *user);

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

#endif
