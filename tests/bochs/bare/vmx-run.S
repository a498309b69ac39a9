/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * void vmx_enter(struct vm_regs *regs): WRMSR, the guest's registers, VMLAUNCH or VMRESUME; after
 * the exit or the failure its registers, WRMSR, return. No branch from one WRMSR to the other.
 */
#include "layout.h"

#define F_HOST_RSP 0x6c14

	.macro	load_regs
	mov	0(%rdi), %rax
	mov	8(%rdi), %rcx
	mov	16(%rdi), %rdx
	mov	24(%rdi), %rbx
	mov	32(%rdi), %rbp
	mov	40(%rdi), %rsi
	mov	56(%rdi), %r8
	mov	64(%rdi), %r9
	mov	72(%rdi), %r10
	mov	80(%rdi), %r11
	mov	88(%rdi), %r12
	mov	96(%rdi), %r13
	mov	104(%rdi), %r14
	mov	112(%rdi), %r15
	mov	48(%rdi), %rdi
	.endm

	.macro	load_msr at
	mov	\at(%rdi), %ecx
	mov	\at + 8(%rdi), %eax
	mov	\at + 12(%rdi), %edx
	.endm

	/* @next: the instruction after it, where an entry that fails early continues. */
	.macro	enter how
	load_msr REGS_IN_MSR
	wrmsr
	.globl	\how\()_on, \how\()_at, \how\()_next, \how\()_off
\how\()_on:
	load_regs
\how\()_at:
	\how
\how\()_next:
	mov	(%rsp), %rdi
	pushfq
	popq	REGS_FLAGS(%rdi)
	load_msr REGS_OUT_MSR
\how\()_off:
	wrmsr
	jmp	return
	.endm

	.text
	.globl	vmx_enter, vmexit_at, vmexit_off
vmx_enter:
	push	%rbx
	push	%rbp
	push	%r12
	push	%r13
	push	%r14
	push	%r15
	push	%rdi
	mov	$F_HOST_RSP, %eax
	vmwrite	%rsp, %rax
	cmpq	$0, REGS_LAUNCHED(%rdi)
	jne	1f
	enter	vmlaunch
1:	enter	vmresume
vmexit_at:
	xchg	%rdi, (%rsp)
	mov	%rax, 0(%rdi)
	mov	%rcx, 8(%rdi)
	mov	%rdx, 16(%rdi)
	mov	%rbx, 24(%rdi)
	mov	%rbp, 32(%rdi)
	mov	%rsi, 40(%rdi)
	mov	%r8, 56(%rdi)
	mov	%r9, 64(%rdi)
	mov	%r10, 72(%rdi)
	mov	%r11, 80(%rdi)
	mov	%r12, 88(%rdi)
	mov	%r13, 96(%rdi)
	mov	%r14, 104(%rdi)
	mov	%r15, 112(%rdi)
	mov	(%rsp), %rax
	mov	%rax, 48(%rdi)
	mov	%rdi, (%rsp)
	movq	$0, REGS_FLAGS(%rdi)
	movq	$1, REGS_LAUNCHED(%rdi)
	load_msr REGS_OUT_MSR
vmexit_off:
	wrmsr
return:	pop	%rdi
	pop	%r15
	pop	%r14
	pop	%r13
	pop	%r12
	pop	%rbp
	pop	%rbx
	ret
	.section .note.GNU-stack, "", @progbits
