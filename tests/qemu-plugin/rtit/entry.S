/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * From 32-bit protected mode to long mode, and the traced code: an application in user mode, a
 * driver in the kernel. The numbers after instructions say how often each is executed; the sums are
 * in test-rtit-bare.sh.
 */
#include "rtit.h"

#define CR4_PAE	 0x20
#define MSR_EFER 0xc0000080
#define MSR_CTL	 0x768
#define APIC	 0xfee00000
#define CODE64	 0x08
#define CODE32	 0x10
#define DATA	 0x18
#define USER_DS	 0x23 /* 20H, RPL 3 */
#define USER_CS	 0x2b
#define TSS	 0x30
#define STACK	 0x380000
#define STACK0	 0x3a0000 /* of events out of user mode */
#define STACK3	 0x3c0000

	.section .entry, "ax"
	.code32
	.globl	entry
entry:
	lgdt	gdt_register
	mov	$DATA, %eax
	mov	%eax, %ds
	mov	%eax, %es
	mov	%eax, %ss
	ljmp	$CODE32, $1f
	/* Identity mapping of 4 GiB in large pages, for user mode too: twice. */
1:	mov	$PML4_A, %edi
	xor	%eax, %eax
	mov	$(9 * 4096 / 4), %ecx
	rep stosl
	movl	$(PML4_A + 0x1007), PML4_A
	movl	$(PML4_A + 0x1007), PML4_B
	mov	$(PML4_A + 0x2007), %eax
	mov	$(PML4_A + 0x1000), %edi
	mov	$4, %ecx
2:	mov	%eax, (%edi)
	add	$0x1000, %eax
	add	$8, %edi
	loop	2b
	mov	$0x87, %eax
	mov	$(PML4_A + 0x2000), %edi
	mov	$2048, %ecx
3:	mov	%eax, (%edi)
	add	$0x200000, %eax
	add	$8, %edi
	loop	3b
	mov	%cr4, %eax
	or	$CR4_PAE, %eax
	mov	%eax, %cr4
	mov	$PML4_A, %eax
	mov	%eax, %cr3
	mov	$MSR_EFER, %ecx
	rdmsr
	or	$0x100, %eax
	wrmsr
	mov	%cr0, %eax
	or	$0x80000001, %eax
	mov	%eax, %cr0
	ljmp	$CODE64, $4f

	.code64
4:	mov	$STACK, %rsp
	movq	$STACK0, tss + 4
	mov	$tss, %eax
	mov	%ax, tss_descriptor + 2
	shr	$16, %eax
	mov	%al, tss_descriptor + 4
	movb	$0x89, tss_descriptor + 5	/* busy after a reset */
	mov	$TSS, %eax
	ltr	%ax
	call	make_idt
	call	rtit_main
5:	hlt
	jmp	5b

	/* IDT: all expected events. */
make_idt:
	mov	$13, %edi
	lea	general_protection(%rip), %rax
	call	gate
	mov	$TIMER, %edi
	lea	timer(%rip), %rax
	call	gate
	mov	$0x80, %edi
	lea	service(%rip), %rax
	call	gate
	movb	$0xee, idt + 0x80 * 16 + 5	/* DPL 3 */
	lidt	idt_register
	ret

gate:
	shl	$4, %edi
	add	$idt, %edi
	mov	%ax, (%rdi)
	movw	$CODE64, 2(%rdi)
	movw	$0x8e00, 4(%rdi)
	shr	$16, %rax
	mov	%ax, 6(%rdi)
	shr	$16, %rax
	mov	%eax, 8(%rdi)
	ret

	/* RDMSR and WRMSR have two bytes each. */
general_protection:
	addq	$2, 8(%rsp)
	add	$8, %rsp
	mov	$1, %r8d
	iretq

timer:
	push	%rax
	mov	$APIC, %eax
	movl	$0, 0xb0(%rax)
	pop	%rax
	iretq

	.text
	.globl	rdmsr, wrmsr, trace_call, run_app, run_driver, run_stopper, run_sleep
rdmsr:
	mov	%edi, %ecx
	xor	%r8d, %r8d
	rdmsr
	shl	$32, %rdx
	or	%rdx, %rax
	test	%r8d, %r8d
	jnz	1f
	mov	%rax, (%rsi)
1:	mov	%r8d, %eax
	ret

wrmsr:
	mov	%edi, %ecx
	mov	%esi, %eax
	mov	%rsi, %rdx
	shr	$32, %rdx
	xor	%r8d, %r8d
	wrmsr
	mov	%r8d, %eax
	ret

	/* Trace_En is set first and cleared last (3.3.2). */
trace_call:
	push	%rbx
	push	%r12
	mov	%rdi, %rbx
	mov	%rsi, %r12
	lea	1(%rbx), %rax
	xor	%edx, %edx
	mov	$MSR_CTL, %ecx
	wrmsr
	lea	0x2001(%rbx), %rax
	wrmsr
	call	*%r12
	lea	1(%rbx), %rax
	xor	%edx, %edx
	mov	$MSR_CTL, %ecx
	wrmsr
	mov	%rbx, %rax
	wrmsr
	pop	%r12
	pop	%rbx
	ret

	/* To user mode; it returns by the service with EAX 0. */
run_app:
	push	%rbx
	push	%rbp
	mov	%rsp, back
	mov	%rdi, %cr3
	pushq	$USER_DS
	pushq	$STACK3
	pushq	$2
	pushq	$USER_CS
	pushq	$app
	iretq

service:
	test	%eax, %eax
	jz	1f
	iretq
1:	mov	back, %rsp
	mov	$PML4_A, %eax
	mov	%rax, %cr3
	pop	%rbp
	pop	%rbx
	ret

run_sleep:
	mov	$APIC, %eax
	movl	$0x1ff, 0xf0(%rax)
	movl	$0xb, 0x3e0(%rax)
	movl	$TIMER, 0x320(%rax)
	mov	$3, %ecx
1:	mov	$APIC, %eax
	movl	$30000000, 0x380(%rax)	/* 30 ms */
	sti
	hlt
	cli
	dec	%ecx
	jnz	1b
	ret

run_driver:
	mov	$10, %ecx
1:	call	driver			/* into it */
	dec	%ecx
	jnz	1b
	mov	$10, %ecx
2:	call	before_driver		/* to before it, and into it sequentially */
	dec	%ecx
	jnz	2b
	ret

before_driver:
	nop
	.globl	driver, driver_end
driver:
	mov	$5, %eax	/* 1 */
1:	dec	%eax		/* 5 */
	jnz	1b		/* 5 */
	nop			/* 1: 12 per call, 20 calls */
driver_end:
	ret

	/* Taken, taken, not taken: TNT_BUFF 1110B */
run_stopper:
	mov	$3, %eax
1:	dec	%eax
	jnz	1b
	jmp	stop_here
	.globl	stop_here
stop_here:
	nop
	ret

	/* ---- in user mode; 805 per run ---- */

helper:
	nop
	ret

	.balign	64
	.globl	app, app_end
app:
	mov	$100, %ecx		/* 1 */
1:	call	leaf			/* 100 */
	test	$1, %cl			/* 100 */
	jz	2f			/* 100 */
	nop				/* 50 */
2:	dec	%ecx			/* 100 */
	jnz	1b			/* 100 */
	lea	helper(%rip), %rbx	/* 1 */
	mov	$10, %ebp		/* 1 */
3:	call	*%rbx			/* 10; its target is not part of the application */
	mov	$1, %eax		/* 10 */
	int	$0x80			/* 10 */
	dec	%ebp			/* 10 */
	jnz	3b			/* 10 */
	xor	%eax, %eax		/* 1 */
	int	$0x80			/* 1 */
leaf:	nop				/* 100 */
	ret				/* 100 */
app_end:

	.data
	.balign	16
gdt:
	.quad	0
	.quad	0x00af9b000000ffff	/* CODE64 */
	.quad	0x00cf9b000000ffff	/* CODE32 */
	.quad	0x00cf93000000ffff	/* DATA */
	.quad	0x00cff3000000ffff	/* USER_DS */
	.quad	0x00affb000000ffff	/* USER_CS */
tss_descriptor:
	.quad	0x0000890000000067, 0	/* its base is filled in */
gdt_register:
	.word	. - gdt - 1
	.long	gdt
idt_register:
	.word	256 * 16 - 1
	.quad	idt
back:
	.quad	0

	.bss
	.balign	16
tss:
	.skip	104
idt:
	.skip	256 * 16

	.section .note.GNU-stack, "", @progbits
