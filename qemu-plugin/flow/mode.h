/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The mode of a vCPU: CPL, address size, paging, code segment. QEMU exposes the selector of CS, but
 * not its base, L and D: they are read from the descriptor table, whose base is known from LGDT.
 */
#ifndef VMPT_QEMU_PLUGIN_FLOW_MODE_H
#define VMPT_QEMU_PLUGIN_FLOW_MODE_H

#include "arch/types.h"

struct vcpu;
struct vmpt_mode;

/* After a far transfer or an event: CS was loaded. Outside long mode CR3 may have changed. */
void mode_far(struct vcpu *vcpu);
/* After a write to a control register or to EFER: CS and its hidden part are unchanged. */
void mode_control(struct vcpu *vcpu);
/* Nothing is known yet; the block at @vaddr begins. */
void mode_all(struct vcpu *vcpu, u64 vaddr);
/* The same, and paging is off: the base of CS follows from the block's address. */
void mode_place(struct vcpu *vcpu, u64 vaddr);

/* Whether paging is on. If not, linear addresses are physical ones. */
bool mode_paged(const struct vcpu *vcpu);
/* EFER.LMA: 64-bit or compatibility mode. */
bool mode_long(const struct vcpu *vcpu);

/* LGDT loaded @base; LLDT loads @selector. */
void mode_gdt(struct vcpu *vcpu, u64 base);
void mode_ldt(struct vcpu *vcpu, u32 selector);

/* The mode where an event interrupted: with CS = @cs, and all else as it is now. */
void mode_of_cs(struct vcpu *vcpu, u32 cs, struct vmpt_mode *mode);

#endif
