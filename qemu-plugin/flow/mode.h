/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The mode of a vCPU: CPL, address size, paging, code segment. QEMU shows CS's selector and
 * not its base, L and D: they are read from the descriptor table, whose base LGDT told.
 */
#ifndef VMPT_QEMU_PLUGIN_FLOW_MODE_H
#define VMPT_QEMU_PLUGIN_FLOW_MODE_H

#include "arch/types.h"

struct vcpu;
struct vmpt_mode;

/* After a far transfer or an event: CS was loaded. Outside of long mode CR3 may be another. */
void mode_far(struct vcpu *vcpu);
/* After a write to a control register or to EFER: CS, its hidden part too, is what it was. */
void mode_control(struct vcpu *vcpu);
/* Nothing is known, at the beginning of the block at @vaddr. */
void mode_all(struct vcpu *vcpu, u64 vaddr);
/* The same block, and paging is off: where it lies tells CS's base. */
void mode_place(struct vcpu *vcpu, u64 vaddr);

/* Without paging linear addresses are physical ones. */
bool mode_paged(const struct vcpu *vcpu);
/* EFER.LMA: 64-bit and compatibility mode. */
bool mode_long(const struct vcpu *vcpu);

/* LGDT loaded @base; LLDT loads @selector. */
void mode_gdt(struct vcpu *vcpu, u64 base);
void mode_ldt(struct vcpu *vcpu, u32 selector);

/* What the mode was where an event interrupted: its CS is @cs, all else is as now. */
void mode_of_cs(struct vcpu *vcpu, u32 cs, struct vmpt_mode *mode);

#endif
