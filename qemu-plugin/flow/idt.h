/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The vector of an event. QEMU reports only the handler's address: the vector is that of the gate
 * that leads there, in the interrupt descriptor table in guest memory, which is found by the
 * operand of LIDT.
 */
#ifndef VMPT_QEMU_PLUGIN_FLOW_IDT_H
#define VMPT_QEMU_PLUGIN_FLOW_IDT_H

#include "arch/types.h"

#define IDT_VECTORS 256

struct vcpu;

struct idt {
	u64 base;  /* linear, as LIDT last loaded it; 0 after a reset */
	bool read; /* target[] is valid, as of when it was read */
	u64 target[IDT_VECTORS];
};

/* LIDT loaded @base. */
void idt_load(struct vcpu *vcpu, u64 base);

/*
 * The first vector whose gate leads to linear address @to; negative: none does, or the table
 * cannot be read. Reads 4 KiB of guest memory if no cached gate matches.
 */
int idt_vector(struct vcpu *vcpu, u64 to);

#endif
