/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The second processor. Started at TRAMPOLINE it goes to 64-bit mode and sets TraceEn; INIT finds
 * it in a loop that makes no packets; started at SIPI_CODE it ends the trace. Or it waits for a
 * write by the first processor.
 */
#include "layout.h"

#define CTL_TOPA 0x210c /* OS, User, ToPA, BranchEn */

	/* For WRMSR of MSR \msr: \value, below 4 GiB */
	.macro	load msr, value
	mov	$\msr, %ecx
	mov	$\value, %eax
	xor	%edx, %edx
	.endm

	.section .text
	.code16
	.globl	trampoline, trampoline_end
trampoline:
	cli
	xor	%ax, %ax
	mov	%ax, %ds
	lgdtl	(TRAMPOLINE + small_gdt_register - trampoline)
	mov	%cr0, %eax
	or	$1, %al
	mov	%eax, %cr0
	ljmpl	$SEL_CODE32, $second_32
small_gdt_register:
	.word	47
	.long	gdt
trampoline_end:

	.code32
second_32:
	mov	$SEL_DATA, %eax
	mov	%eax, %ds
	mov	%eax, %ss
	mov	$second_stack, %esp
	call	paging
	ljmp	$SEL_CODE64, $second_64

	.code64
second_64:
	cmpl	$TASK_MONITOR, SECOND_TASK
	je	second_monitor
	load	0x571, 0
	wrmsr
	load	0x560, OUT_TABLE
	wrmsr
	load	0x561, 0x7f
	wrmsr
	load	0x570, (CTL_TOPA | 1)
	wrmsr
	.globl	second_on, second_loop
second_on:
	movl	$1, SECOND_BOX
second_loop:
	jmp	second_loop

	/* Stage 1: the monitor is armed. Stage 2: it has woken. */
second_monitor:
	/*
	 * MONITOR needs write-back memory. IA32_MTRR_DEF_TYPE: enabled, all memory is write-back.
	 */
	load	0x2ff, 0x806
	wrmsr
	mov	%cr3, %rax
	mov	%rax, %cr3
	mov	$OUT, %eax
	xor	%ecx, %ecx
	xor	%edx, %edx
	monitor
	movl	$1, SECOND_BOX
	xor	%eax, %eax
	mwait
	movl	$2, SECOND_BOX
1:	hlt
	jmp	1b

	.code16
	.globl	sipi_code, sipi_code_end, sipi_at, sipi_off
sipi_code:
	load	0x570, CTL_TOPA
2:	wrmsr
	/* How much came out: the high half of OUTPUT_MASK_PTRS */
	mov	$0x561, %ecx
	rdmsr
	xor	%ax, %ax
	mov	%ax, %ds
	mov	%edx, SECOND_BOX + 4
	movl	$2, SECOND_BOX
1:	hlt
	jmp	1b
sipi_code_end:
	.set	sipi_at, SIPI_CODE
	.set	sipi_off, SIPI_CODE + (2b - sipi_code)

	.bss
	.skip	256
second_stack:
	.section .note.GNU-stack, "", @progbits
