/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The mode of a vCPU: CPL, address size, paging, code segment. QEMU shows CS's selector and
 * not its base, L and D: they are read from the descriptor table, whose base LGDT told.
 */
#ifndef VMPT_QEMU_PLUGIN_MODE_H
#define VMPT_QEMU_PLUGIN_MODE_H

#include "arch/types.h"

struct vcpu;
struct vmpt_mode;

/* After a far transfer or an event: CS may be another. */
void mode_far(struct vcpu *vcpu);
/* After a write to a control register or to EFER. */
void mode_control(struct vcpu *vcpu);
/* LGDT loaded @base. */
void mode_gdt(struct vcpu *vcpu, u64 base);

/* What the mode was where an event interrupted: its CS is @cs, all else is as now. */
void mode_of_cs(struct vcpu *vcpu, u32 cs, struct vmpt_mode *mode);

#endif
