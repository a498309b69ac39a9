/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The flow's events for RTIT's trace units. Unlike those of Intel PT they need the address after an
 * instruction, and a step for each instruction that may enter or leave a filter range.
 */
#ifndef VMPT_QEMU_PLUGIN_FLOW_RTIT_H
#define VMPT_QEMU_PLUGIN_FLOW_RTIT_H

#include "model/vmpt-model.h"
#include "model/vmpt-rtit.h"

/* vcpu->walked: no more steps until the next block begins. */
#define RTIT_WALKED (~0ULL)

struct block;
struct vcpu;

/* The last instruction of @done, of any kind, has executed and led to @ip. */
void rtit_end(struct vcpu *vcpu, const struct block *done, u64 ip);
/* Execution of vcpu->block has reached @ip without a branch. */
void rtit_steps(struct vcpu *vcpu, u64 ip);
/* @far as for a unit of Intel PT; it came from vcpu->block. */
void rtit_far(struct vcpu *vcpu, const struct vmpt_far *far);

/* The vCPU begins to wait; it executes again. The cycle counter stands still between them. */
void rtit_sleeps(struct vcpu *vcpu);
void rtit_wakes(struct vcpu *vcpu);

/* For the views: mode and clocks as the units take them. */
struct vmpt_rtit_mode rtit_mode(const struct vcpu *vcpu);
void rtit_clocks(struct vcpu *vcpu, struct vmpt_rtit_clocks *now);
/*
 * Pass them to @unit. It makes one MTC per period, each with the cycles up to its own tick. If the
 * vCPU slept or its thread did not run for a while, it makes an STS instead.
 */
void rtit_time(struct vmpt_rtit_unit *unit, const struct vmpt_rtit_clocks *now);

/* The TSC's bit that is bit 0 of MTCs (4.2.12). */
static inline unsigned int rtit_mtc_shift(u64 ctl)
{
	return 7 + 2 * (unsigned int)(ctl >> VMPT_RTIT_CTL_MTC_RANGE_SHIFT & 3);
}

#endif
