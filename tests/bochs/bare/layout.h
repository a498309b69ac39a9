/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* The layout of the PC's memory, and offsets shared by assembler and C. */
#ifndef VMPT_TESTS_BARE_LAYOUT_H
#define VMPT_TESTS_BARE_LAYOUT_H

#include "tests/support/bare/rom.h"

#define TRAMPOLINE  0x8000  /* the second processor's first instructions */
#define REAL_CODE   0x9000  /* the 16-bit guest's: below 1 MiB */
#define SMM_BOX	    0x7100  /* results of the SMM handler */
#define SECOND_BOX  0x7200  /* results of the second processor */
#define SECOND_TASK 0x7208  /* and its task */
#define SIPI_CODE   0xa000  /* where it restarts */
#define SMM_HANDLER 0x38000 /* at SMBASE + 8000H, as after RESET */

#define PAGE_TABLES 0x200000 /* the host's: PML4, PDPT, four page directories */
/* More CR3s over the same tables; low bits of CR3 are not used. */
#define GUEST_CR3 0x210000
#define OTHER_CR3 0x211000
/* 32-bit page directory, in which is a PDPT; two more PDPTs */
#define LEGACY_CR3   0x212fe0
#define LEGACY_CR3_2 0x213040
#define LEGACY_CR3_3 0x213080
#define VMX_PAGES    0x220000 /* VMXON region, two VMCSs, bitmaps, MSR lists */
#define EPT_PAGES    0x240000 /* PML4, PDPT, PD, 4-KiB tables */
#define TEXT	     0x280000 /* the results */
#define TEXT_SIZE    0x20000
#define GUEST_STACK  0x2f0000 /* its top */
#define OUT_TABLE    0x300000 /* ToPA table */
#define OUT	     0x400000 /* packets */
#define OUT_SIZE     0x200000
#define SUITE_RAM    0x800000 /* the conformance suite's */
#define RAM_END	     0x4000000
#define HOLE	     0x40000000ULL /* no memory */
#define ALIAS	     0x30000000ULL /* the second processor's scenario maps OUT here, too */

#define TASK_TRACE   0 /* SECOND_TASK: trace until INIT and SIPI */
#define TASK_MONITOR 1 /* sleep until OUT is written to */

#define SEL_CODE64 8
#define SEL_CODE32 16
#define SEL_DATA   24
#define SEL_TSS	   32

/* Vectors */
#define PMI_VECTOR 0x50
#define IPI_VECTOR 0x51

/* struct vm_regs; the value to write follows its MSR */
#define REGS_IN_MSR   128
#define REGS_OUT_MSR  144
#define REGS_FLAGS    160
#define REGS_LAUNCHED 168

#endif
