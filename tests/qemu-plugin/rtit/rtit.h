/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* Shared by the program (rtit.c) and its assembly (entry.S). */
#ifndef VMPT_TESTS_QEMU_RTIT_H
#define VMPT_TESTS_QEMU_RTIT_H

#define PML4_A 0x200000 /* two address spaces with the same mapping */
#define PML4_B 0x208000
#define TIMER  0x40 /* the APIC timer's vector */

#ifndef __ASSEMBLER__

#include "arch/types.h"

/* Addresses of code, for ranges */
extern const char app[], app_end[], driver[], driver_end[], stop_here[];

/* 0, or VMPT_GP */
int rdmsr(u32 msr, u64 *value);
int wrmsr(u32 msr, u64 value);
/* Calls @what() with RTIT_CTL @ctl plus Trace_En and TraceActive. */
void trace_call(u64 ctl, void (*what)(void));
/* runs app in user mode, in an address space */
void run_app(u64 cr3);
void run_driver(void);
void run_stopper(void);
/* HLT until the timer interrupts it. */
void run_sleep(void);

#endif

#endif
