/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* The bare program's own small library, and its functions shared between files. */
#ifndef VMPT_TESTS_BARE_IO_H
#define VMPT_TESTS_BARE_IO_H

#include "arch/types.h"

/* The offsets are in bare.h. */
struct mailbox {
	u32 go, op;
	u64 rax, rbx, rcx, rdx;
	u32 fault;
	volatile u32 pmis;
	u32 alive, lvt, x2apic, awake;
	u64 steps;
};

extern struct mailbox mailbox;

/* ---- bare-io.c ---- */

void out32(u16 port, u32 value);
u32 in32(u16 port);
void print(const char *text);
/* @text, @n in hex, and a newline. */
void print_number(const char *text, u64 n);
/* Ends QEMU with 2 @value + 1. */
void finish_with(u8 value) __attribute__((noreturn));
void make_idt(void);

/* ---- entry.S ---- */

void machine_reset(void);

/* ---- bare.c: the other vCPU executes; 0, VMPT_GP, negative: registers came back changed ---- */

int subject_rdmsr(u32 msr, u64 *value);
int subject_wrmsr(u32 msr, u64 value);
void subject_run(u32 rounds);
u64 subject_tsc(bool p, u32 *aux);
void subject_times(u32 rounds);
void subject_count(u32 rounds);
/* Steps (RFLAGS.TF) through what the plugin emulates; entry.S has the places. */
u64 subject_step(u32 *leaf_14);
int subject_ptwrite(u64 rax, u64 rdx);
void subject_to_x2apic(void);
/* In x2APIC mode: INIT by its own ICR. It is restarted, and no longer sleeps. */
void subject_init_itself(void);
/* Its LVT performance counter entry, and the value that a PMI's handler sets. */
void subject_lvt(u32 lvt);
int power_on(void *opaque);
void driver_main(void);

/* ---- policies.c ---- */

void policies(void);

#endif
