/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * void traced_legacy(u32 ctl, u32 cr4, u32 cr0): leaves long mode; traces the enabling of PAE
 * paging, MOV CR3 and a task switch; and returns. cr4 and cr0: the bits before the trace.
 */
#include "layout.h"

#define CR4_PSE_PAE 0x30
#define CR4_PAE	    0x20
#define CR0_PG	    0x80000000
#define MSR_EFER    0xc0000080
#define RTIT_CTL    0x570

	.text
	.globl	traced_legacy, legacy_on, legacy_jump, legacy_to, legacy_task, legacy_off
	.code64
traced_legacy:
	push	%rbx
	push	%rbp
	mov	%rsp, legacy_rsp
	mov	%edi, %ebx
	mov	%edx, %ebp
	pushq	$SEL_CODE32
	pushq	$1f
	lretq
	.code32
1:	mov	%cr0, %eax
	and	$~CR0_PG, %eax
	mov	%eax, %cr0
	mov	$MSR_EFER, %ecx
	rdmsr
	and	$~0x100, %eax
	wrmsr
	mov	$LEGACY_CR3, %eax
	mov	%eax, %cr3
	mov	%cr4, %eax
	and	$~CR4_PSE_PAE, %eax
	or	%esi, %eax
	mov	%eax, %cr4
	lgdt	legacy_gdt_register
	mov	$SEL_TSS, %eax
	ltr	%ax
	mov	%cr0, %eax
	or	%ebp, %eax
	mov	%eax, %cr0
	mov	$RTIT_CTL, %ecx
	mov	%ebx, %eax
	xor	%edx, %edx
	wrmsr
legacy_on:
	test	%ebp, %ebp
	jnz	2f
	mov	%cr0, %eax
	or	$CR0_PG, %eax
	mov	%eax, %cr0
	jmp	3f
2:	mov	%cr4, %eax
	or	$CR4_PAE, %eax
	mov	%eax, %cr4
3:	mov	$1000, %edi
legacy_jump:
	mov	$legacy_to, %eax
	jmp	*%eax
legacy_to:
	dec	%edi
	jnz	legacy_jump
	mov	$LEGACY_CR3_2, %eax
	mov	%eax, %cr3
	ljmp	$(SEL_TSS + 8), $0
legacy_task:			/* by its TSS */
	mov	$RTIT_CTL, %ecx
	xor	%eax, %eax
	xor	%edx, %edx
legacy_off:
	wrmsr
	clts
	mov	%cr0, %eax
	and	$~CR0_PG, %eax
	mov	%eax, %cr0
	mov	%cr4, %eax
	and	$~CR4_PSE_PAE, %eax
	mov	%eax, %cr4
	call	paging
	lgdt	gdt_register
	ljmp	$SEL_CODE64, $2f
	.code64
2:	mov	legacy_rsp, %rsp
	call	processor_tables
	pop	%rbp
	pop	%rbx
	ret

	/* Labels in expected packets */
	.globl	legacy_cr3, legacy_cr3_2, legacy_cr3_3
	.set	legacy_cr3, LEGACY_CR3
	.set	legacy_cr3_2, LEGACY_CR3_2
	.set	legacy_cr3_3, LEGACY_CR3_3

	.data
	.balign	8
	.globl	legacy_gdt
legacy_gdt:			/* gdt, plus the TSSs of this task and the next, by s-legacy.c */
	.skip	6 * 8
legacy_gdt_register:
	.word	. - legacy_gdt - 1
	.long	legacy_gdt

	.bss
	.balign	8
legacy_rsp:
	.skip	8
	.section .note.GNU-stack, "", @progbits
