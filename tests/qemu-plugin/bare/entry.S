/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * From 32-bit protected mode to the program: vCPU 0 to driver_main() or, after a reset that it
 * requested, back to where it did; vCPU 1, by SIPI, to the loop that executes the driver's
 * commands. That loop has no call, return or indirect branch of its own: it is traced, and apart
 * from TNTs only the commands may make packets.
 */
#include "bare.h"

#define PAGE_TABLES   0x200000 /* PML4, PDPT, four page directories */
#define PAGES_2M      2048
#define CR4_PAE	      0x20
#define MSR_EFER      0xc0000080
#define DELAY	      50000 /* bytes that one round of waiting reads */
#define CODE64	      8
#define CODE32	      16
#define DATA	      24

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
	/* Identity mapping of 4 GiB; and the same from a few more CR3s. */
1:	mov	$PAGE_TABLES, %edi
	xor	%eax, %eax
	mov	$(6 * 4096 / 4), %ecx
	rep stosl
	movl	$(PAGE_TABLES + 0x1007), PAGE_TABLES
	mov	$(PAGE_TABLES + 0x2007), %eax
	mov	$(PAGE_TABLES + 0x1000), %edi
	mov	$4, %ecx
2:	mov	%eax, (%edi)
	add	$0x1000, %eax
	add	$8, %edi
	loop	2b
	mov	$0x87, %eax
	mov	$(PAGE_TABLES + 0x2000), %edi
	mov	$PAGES_2M, %ecx
3:	mov	%eax, (%edi)
	add	$0x200000, %eax
	add	$8, %edi
	loop	3b
	mov	$0x5a5000, %edi
4:	movl	$(PAGE_TABLES + 0x1007), (%edi)
	movl	$0, 4(%edi)
	add	$0x1000, %edi
	cmp	$0x5a8000, %edi
	jb	4b
	/* The trampoline for vCPU 1 */
	mov	$trampoline, %esi
	mov	$TRAMPOLINE, %edi
	mov	$(trampoline_end - trampoline), %ecx
	rep movsb
	/* Its own stack may hold the state to continue with; vCPU 1 does not run yet. */
	mov	$subject_stack_top, %esp
	call	paging
	ljmp	$CODE64, $driver

	/* Enter long mode, except for the far jump. */
paging:
	mov	%cr4, %eax
	or	$CR4_PAE, %eax
	mov	%eax, %cr4
	mov	$PAGE_TABLES, %eax
	mov	%eax, %cr3
	mov	$MSR_EFER, %ecx
	rdmsr
	or	$0x100, %eax
	wrmsr
	mov	%cr0, %eax
	or	$0x80000000, %eax
	mov	%eax, %cr0
	ret

	.code64
driver:
	lidt	idt_register
	mov	$0xfee000f0, %eax	/* the APIC takes interrupts */
	movl	$0x1ff, (%rax)
	cmpl	$MAGIC, RESUME
	je	5f
	mov	$stack_top, %rsp
	call	driver_main
6:	hlt
	jmp	6b
5:	movl	$0, RESUME
	mov	saved_rsp, %rsp
	pop	%r15
	pop	%r14
	pop	%r13
	pop	%r12
	pop	%rbp
	pop	%rbx
	ret

/* void machine_reset(void): RESET of all; returns after it. */
	.globl	machine_reset
machine_reset:
	push	%rbx
	push	%rbp
	push	%r12
	push	%r13
	push	%r14
	push	%r15
	mov	%rsp, saved_rsp
	movl	$MAGIC, RESUME
	mov	$0xcf9, %edx
	mov	$6, %eax
	out	%al, %dx
7:	hlt
	jmp	7b

/* ---- vCPU 1 ---- */

	.code16
trampoline:
	cli
	xor	%ax, %ax
	mov	%ax, %ds
	lgdtl	(TRAMPOLINE + small_gdt_register - trampoline)
	mov	%cr0, %eax
	or	$1, %al
	mov	%eax, %cr0
	ljmpl	$CODE32, $subject32
small_gdt_register:
	.word	31
	.long	gdt
trampoline_end:

	.code32
subject32:
	mov	$DATA, %eax
	mov	%eax, %ds
	mov	%eax, %es
	mov	%eax, %ss
	mov	$subject_stack_top, %esp
	call	paging
	ljmp	$CODE64, $subject

	.code64
subject:
	lidt	idt_register
	mov	$0xfee000f0, %eax
	movl	$0x1ff, (%rax)
	movl	$1, mailbox + BOX_ALIVE
wait:
	/*
	 * Sleeps, to save CPU time; while tracing it waits without any event, and with one branch.
	 */
	cli
	cmpl	$0, mailbox + BOX_GO
	jne	go
	cmpl	$0, mailbox + BOX_AWAKE
	jne	14f
	sti
	hlt
	jmp	wait
14:	sti
	/* A long round: however long the driver takes, there are few branches. */
	mov	$LOAD, %esi
	mov	$DELAY, %ecx
	rep lodsb
	jmp	wait
go:
	sti
	mov	mailbox + BOX_OP, %ebp
	mov	mailbox + BOX_RCX, %rcx
	mov	mailbox + BOX_RAX, %rax
	mov	mailbox + BOX_RDX, %rdx
	cmp	$OP_CPUID, %ebp
	je	do_cpuid
	cmp	$OP_RDMSR, %ebp
	je	do_rdmsr
	cmp	$OP_WRMSR, %ebp
	je	do_wrmsr
	cmp	$OP_MOV_CR3, %ebp
	je	do_mov_cr3
	cmp	$OP_RUN, %ebp
	je	do_run
	cmp	$OP_RDTSC, %ebp
	je	do_rdtsc
	cmp	$OP_RDTSCP, %ebp
	je	do_rdtscp
	cmp	$OP_PTWRITE, %ebp
	je	do_ptwrite
	cmp	$OP_LVT, %ebp
	je	do_lvt
	cmp	$OP_TO_X2APIC, %ebp
	je	do_x2apic
	cmp	$OP_INIT, %ebp
	je	do_init
	cmp	$OP_STEP, %ebp
	je	do_step
	cmp	$OP_TIMES, %ebp
	je	do_times
	cmp	$OP_COUNT, %ebp
	je	do_count
	jmp	done
do_cpuid:
	cpuid
	mov	%rbx, mailbox + BOX_RBX
	jmp	done
do_rdmsr:
	rdmsr
	jmp	done
do_wrmsr:
	wrmsr
	jmp	done
do_mov_cr3:
	mov	%rax, %cr3
	jmp	done
do_run:
	/* A TIP a round */
	lea	8f(%rip), %rbx
	jmp	*%rbx
8:	dec	%rcx
	jnz	do_run
	jmp	done
do_count:
	mov	%rcx, %r8
	mov	$0x38f, %ecx
	mov	$1, %eax
	xor	%edx, %edx
	wrmsr
1:	lea	2f(%rip), %rbx
	jmp	*%rbx
2:	dec	%r8
	jnz	1b
	xor	%eax, %eax
	wrmsr
	jmp	done
do_rdtsc:
	rdtsc
	jmp	done
do_rdtscp:
	rdtscp
	jmp	done
do_times:
	mov	%rcx, %r8
1:	rdtsc
	call	put_time
	rdtscp
	call	put_time
	mov	$0x10, %ecx
	rdmsr
	call	put_time
	dec	%r8
	jnz	1b
	jmp	done
put_time:
	shl	$32, %rdx
	or	%rdx, %rax
	ptwriteq %rax
	mov	$50, %ecx
2:	dec	%ecx
	jnz	2b
	ret
do_lvt:
	mov	$0xfee00340, %ebx
	mov	%eax, (%rbx)
	jmp	done
do_x2apic:
	cli
	mov	$0x1b, %ecx
	rdmsr
	or	$0x400, %eax
	wrmsr
	movl	$1, mailbox + BOX_X2APIC
	sti
	jmp	done
do_step:
	mov	$0x14, %eax
	xor	%ecx, %ecx
	pushfq
	orl	$0x100, (%rsp)
	popfq			/* first #DB after the next one */
step:	cpuid			/* 0 */
	mov	%eax, %r8d	/* 2 */
	mov	$0x570, %ecx	/* 5 */
	rdmsr			/* 10 */
	rdtsc			/* 12 */
	rdtscp			/* 14 */
	mov	$0x570, %ecx	/* 17 */
	xor	%eax, %eax	/* 22 */
	xor	%edx, %edx	/* 24 */
	wrmsr			/* 26 */
	pushfq			/* 28 */
	andl	$~0x100, (%rsp)
	popfq
	mov	mailbox + BOX_STEPS, %rax
	mov	%r8, %rcx
	jmp	done
do_init:
	/* It will not reach "done", and restarts without this command. */
	movl	$0, mailbox + BOX_GO
	mov	$0x830, %ecx
	mov	$0x4500, %eax
	mov	$1, %edx
	wrmsr
15:	jmp	15b
do_ptwrite:
	ptwriteq %rax
	ptwritel %eax
	ptwriteq mailbox + BOX_RDX
	lea	mailbox, %rbx
	mov	$2, %ecx
	ptwritel (BOX_RDX - 8)(%rbx, %rcx, 4)
done:
	mov	%rax, mailbox + BOX_RAX
	mov	%rcx, mailbox + BOX_RCX
	mov	%rdx, mailbox + BOX_RDX
	movl	$0, mailbox + BOX_GO
	/* The driver sleeps until this interrupt. */
	cmpl	$0, mailbox + BOX_X2APIC
	jne	12f
	mov	$0xfee00300, %ebx
	movl	$0, 0x10(%rbx)
	movl	$DONE_VECTOR, (%rbx)
	jmp	wait
12:	mov	$0x830, %ecx
	mov	$DONE_VECTOR, %eax
	xor	%edx, %edx
	wrmsr
	jmp	wait

/* #DB: where the guest was stopped, as a bit. */
	.globl	on_db
on_db:
	push	%rax
	mov	8(%rsp), %rax
	sub	$step, %rax
	bts	%rax, mailbox + BOX_STEPS
	pop	%rax
	iretq

/* #GP: of RDMSR and WRMSR, two bytes both. */
	.globl	on_gp
on_gp:
	add	$8, %rsp
	movl	$1, mailbox + BOX_FAULT
	addq	$2, (%rsp)
	iretq

/* #UD of a PTWRITE that is not offered: skips the others, too. */
	.globl	on_ud
on_ud:
	movl	$1, mailbox + BOX_FAULT
	movq	$done, (%rsp)
	iretq

/* Only wakes the vCPU. */
	.globl	on_done
on_done:
	push	%rax
	mov	$0xfee000b0, %eax
	movl	$0, (%rax)
	pop	%rax
	iretq

	.globl	on_go
on_go:
	push	%rax
	push	%rcx
	push	%rdx
	xor	%eax, %eax
	xor	%edx, %edx
	mov	$0xfee000b0, %ecx
	cmpl	$0, mailbox + BOX_X2APIC
	jne	13f
	movl	%eax, (%rcx)
	jmp	9f
13:	mov	$0x80b, %ecx
	wrmsr
	jmp	9f

/* A PMI, as NMI or by its vector: count it, and unmask its entry as a handler does. */
	.globl	on_pmi
on_pmi:
	push	%rax
	push	%rcx
	push	%rdx
	incl	mailbox + BOX_PMIS
	mov	mailbox + BOX_LVT, %eax
	xor	%edx, %edx
	cmpl	$0, mailbox + BOX_X2APIC
	jne	10f
	/* EOI for the vector; an NMI needs none, but it does no harm. */
	mov	$0xfee000b0, %ecx
	movl	%edx, (%rcx)
	test	%eax, %eax
	jz	9f
	mov	$0xfee00340, %ecx
	mov	%eax, (%rcx)
	jmp	9f
10:	mov	$0x834, %ecx
	test	%eax, %eax
	jz	11f
	wrmsr
11:	xor	%eax, %eax
	mov	$0x80b, %ecx
	wrmsr
9:	pop	%rdx
	pop	%rcx
	pop	%rax
	iretq

/* Anything else: report it and end. */
	.globl	on_other
on_other:
	mov	$0xf4, %edx
	mov	$0x7f, %eax
	out	%al, %dx
	hlt
	jmp	on_other

	.data
	.align	8
	.globl	gdt
gdt:
	.quad	0
	.quad	0x00af9b000000ffff	/* 8: 64-bit code */
	.quad	0x00cf9b000000ffff	/* 16: 32-bit code */
	.quad	0x00cf93000000ffff	/* 24: data */
gdt_register:
	.word	31
	.long	gdt
	.align	8
idt_register:
	.word	256 * 16 - 1
	.quad	idt
	.align	8
saved_rsp:
	.quad	0
	.bss
	.align	16
	.skip	32768
stack_top:
	.skip	4096
subject_stack_top:
	.section .note.GNU-stack, "", @progbits
