/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Interrupts at each instruction of the host in turn: command 10 of the Bochs PC's host
 * port (bochs/instrument/walk.cc).
 */
#ifndef WALK_H
#define WALK_H

#include "arch/types.h"

#define WALK_STOP 0x10000 /* begin: where the host clears TraceEn; else a VM exit's reason */
#define WALK_PMI  1	  /* flags: a region of the host's fills if it traces then */
#define WALK_LATE 2	  /* one filled just before the window, and the interrupt is late */

#define WALK_CPUID 10 /* exit reasons */
#define WALK_IO	   30

/*
 * Processor 0. stride 0: stop. status: bits of IA32_PERF_GLOBAL_STATUS to set with the interrupt.
 */
void walk_set(u32 begin, u32 first, u32 stride, u32 flags, u64 status);

#endif
