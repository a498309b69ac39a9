/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The interface between the driver (bare.c) and the vCPU that it drives (entry.S): one command at a
 * time.
 */
#ifndef VMPT_TESTS_BARE_H
#define VMPT_TESTS_BARE_H

#include "tests/support/bare/rom.h"

#define OP_NONE	     0
#define OP_CPUID     1
#define OP_RDMSR     2
#define OP_WRMSR     3
#define OP_MOV_CR3   4
#define OP_RUN	     5 /* RCX rounds of one indirect jump */
#define OP_RDTSC     6
#define OP_RDTSCP    7
#define OP_PTWRITE   8 /* RAX, EAX, RDX, EDX */
#define OP_LVT	     9 /* EAX to the LVT performance counter entry in xAPIC mode */
#define OP_TO_X2APIC 10
#define OP_INIT	     11 /* its own, in x2APIC mode */
#define OP_TIMES     13 /* RCX rounds: PTWRITE of what RDTSC, RDTSCP and RDMSR 10H read */
#define OP_COUNT     14 /* RCX rounds of four instructions, counter 0 enabled for them only */
#define OP_STEP	     12 /* RAX becomes the places where it was stopped, RCX leaf 14H's EAX */

#define TRAMPOLINE 0x8000

/* Interrupts: a PMI; to the driven vCPU, and back */
#define PMI_VECTOR  0x50
#define GO_VECTOR   0x51
#define DONE_VECTOR 0x52

/* Offsets in struct mailbox */
#define BOX_GO	   0
#define BOX_OP	   4
#define BOX_RAX	   8
#define BOX_RBX	   16
#define BOX_RCX	   24
#define BOX_RDX	   32
#define BOX_FAULT  40
#define BOX_PMIS   44
#define BOX_ALIVE  48
#define BOX_LVT	   52 /* value that a PMI's handler writes to the LVT entry; 0: none */
#define BOX_X2APIC 56 /* through MSRs */
#define BOX_AWAKE  60 /* it must not be interrupted: it waits without HLT */
#define BOX_STEPS  64 /* bit n: #DB n bytes after the first instruction of a step */

#endif
