/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Inside the flow: its events in the words of RTIT's trace units (rtit.c). Other than those
 * of Intel PT they want the address behind an instruction, and steps where a range that filters
 * may be walked into or out of.
 */
#ifndef VMPT_QEMU_PLUGIN_FLOW_RTIT_H
#define VMPT_QEMU_PLUGIN_FLOW_RTIT_H

#include "model/vmpt-model.h"
#include "model/vmpt-rtit.h"

/* Of vcpu->walked: no more steps until another block begins. */
#define RTIT_WALKED (~0ULL)

struct block;
struct vcpu;

/* The block's last instruction has executed, whatever it is, and led to @ip. */
void rtit_end(struct vcpu *vcpu, const struct block *done, u64 ip);
/* Execution of vcpu->block has come to @ip without a branch. */
void rtit_steps(struct vcpu *vcpu, u64 ip);
/* @far in the words of Intel PT; vcpu->block is where it came from. */
void rtit_far(struct vcpu *vcpu, const struct vmpt_far *far);

/* The vCPU begins to wait, and executes again: what it slept through are no cycles. */
void rtit_sleeps(struct vcpu *vcpu);
void rtit_wakes(struct vcpu *vcpu);

/* For the views: mode and clocks as units take them. */
struct vmpt_rtit_mode rtit_mode(const struct vcpu *vcpu);
void rtit_clocks(struct vcpu *vcpu, struct vmpt_rtit_clocks *now);
/*
 * Push them. MTCs come one by one, each with the cycles up to its own tick; if the vCPU slept or
 * its thread did not run for a while, none does, and an STS tells the time.
 */
void rtit_time(struct vmpt_rtit_unit *unit, const struct vmpt_rtit_clocks *now);

/* The TSC's bit that is bit 0 of MTCs (4.2.12). */
static inline unsigned int rtit_mtc_shift(u64 ctl)
{
	return 7 + 2 * (unsigned int)(ctl >> VMPT_RTIT_CTL_MTC_RANGE_SHIFT & 3);
}

#endif
