/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * From 32-bit protected mode to the program in 64-bit mode, or, after a reset that it requested,
 * back to where it did; entry to and return from all exceptions and interrupts.
 */
#include "layout.h"

#define CR4_PAE	 0x20
#define MSR_EFER 0xc0000080

	.section .entry, "ax"
	.code32
	.globl	entry
entry:
	lgdt	gdt_register
	mov	$SEL_DATA, %eax
	mov	%eax, %ds
	mov	%eax, %es
	mov	%eax, %ss
	ljmp	$SEL_CODE32, $1f
1:	cmpl	$MAGIC, RESUME
	je	5f
	mov	$bss, %edi
	mov	$bss_end, %ecx
	sub	%edi, %ecx
	xor	%eax, %eax
	rep stosb
	/*
	 * Identity mapping of 4 GiB, accessible to user mode; a few more CR3s for the same mapping.
	 */
	mov	$PAGE_TABLES, %edi
	mov	$(6 * 4096 / 4), %ecx
	rep stosl
	mov	$(PAGE_TABLES + 0x2007), %eax
	mov	$(PAGE_TABLES + 0x1000), %edi
	mov	$4, %ecx
2:	mov	%eax, (%edi)
	add	$0x1000, %eax
	add	$8, %edi
	loop	2b
	mov	$0x87, %eax
	mov	$(PAGE_TABLES + 0x2000), %edi
	mov	$2048, %ecx
3:	mov	%eax, (%edi)
	add	$0x200000, %eax
	add	$8, %edi
	loop	3b
	movl	$(PAGE_TABLES + 0x1007), PAGE_TABLES
	movl	$(PAGE_TABLES + 0x1007), GUEST_CR3
	movl	$0, GUEST_CR3 + 4
	movl	$(PAGE_TABLES + 0x1007), OTHER_CR3
	movl	$0, OTHER_CR3 + 4
5:	mov	$early_stack, %esp
	call	paging
	ljmp	$SEL_CODE64, $driver

	/* Enter long mode, except for the far jump. */
	.globl	paging
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
	and	$~0x60000000, %eax	/* CD, NW */
	mov	%eax, %cr0
	ret

	.code64
driver:
	call	processor_tables
	cmpl	$MAGIC, RESUME
	je	6f
	mov	$stack_top, %rsp
	call	bare_main
7:	hlt
	jmp	7b
6:	movl	$0, RESUME
	mov	saved_rsp, %rsp
	pop	%r15
	pop	%r14
	pop	%r13
	pop	%r12
	pop	%rbp
	pop	%rbx
	ret

/* GDT, TSS, IDT of this processor, and its APIC on. */
	.globl	processor_tables
processor_tables:
	lidt	idt_register
	mov	$tss, %rax
	mov	%ax, gdt + SEL_TSS + 2
	shr	$16, %rax
	mov	%al, gdt + SEL_TSS + 4
	movb	$0x89, gdt + SEL_TSS + 5
	mov	$SEL_TSS, %eax
	ltr	%ax
	mov	$0xfee000f0, %eax
	movl	$0x1ff, (%rax)
	mov	$0x2ff, %ecx		/* IA32_MTRR_DEF_TYPE: write-back, for MONITOR */
	mov	$0x806, %eax
	xor	%edx, %edx
	wrmsr
	ret

/* void machine_reset(void): RESET of all by the PCI bridge; returns after it. */
	.globl	machine_reset, machine_reset_by, reset_here
machine_reset:
	lea	reset_here(%rip), %rdi
/* void machine_reset_by(void (*how)(void)): the same by any way that leads to the reset vector. */
machine_reset_by:
	push	%rbx
	push	%rbp
	push	%r12
	push	%r13
	push	%r14
	push	%r15
	mov	%rsp, saved_rsp
	movl	$MAGIC, RESUME
	call	*%rdi
8:	jmp	8b
reset_here:
	mov	$0xcf9, %edx
	mov	$6, %eax
	out	%al, %dx
	ret

/* ---- exceptions and interrupts ---- */

	.altmacro
	.macro	stub n
	.align	16
	.if	(\n == 8) || ((\n >= 10) && (\n <= 14)) || (\n == 17) || (\n == 21)
	.else
	push	$0
	.endif
	push	$\n
	jmp	trapped
	.endm

	.align	16
	.globl	stubs
stubs:
	.set	n, 0
	.rept	256
	stub	%n
	.set	n, n + 1
	.endr

/* NMIs: with as few packets as possible in a running trace. */
	.globl	on_nmi, nmi_iret
on_nmi:
	push	%rax
	mov	8(%rsp), %rax
	mov	%rax, trap_rip
	incl	trap_count + 4 * 2
	pop	%rax
nmi_iret:
	iretq

trapped:
	push	%r15
	push	%r14
	push	%r13
	push	%r12
	push	%r11
	push	%r10
	push	%r9
	push	%r8
	push	%rdi
	push	%rsi
	push	%rbp
	push	%rbx
	push	%rdx
	push	%rcx
	push	%rax
	cld
	mov	%rsp, %rdi
	mov	%rsp, %rbp
	and	$-16, %rsp
	call	trap
	mov	%rbp, %rsp
	pop	%rax
	pop	%rcx
	pop	%rdx
	pop	%rbx
	pop	%rbp
	pop	%rsi
	pop	%rdi
	pop	%r8
	pop	%r9
	pop	%r10
	pop	%r11
	pop	%r12
	pop	%r13
	pop	%r14
	pop	%r15
	add	$16, %rsp
	iretq

/* ---- instructions that may fault: 0, or 100H + the vector ---- */

	.macro	may_fault at
	.pushsection .fixups, "a"
	.quad	\at, faulted
	.popsection
	.endm

	.text
faulted:	/* trap() has set RAX */
	ret

/* int try_rdmsr(u32 msr, u64 *value) */
	.globl	try_rdmsr, try_rdmsr_at
try_rdmsr:
	mov	%edi, %ecx
try_rdmsr_at:
	rdmsr
	may_fault try_rdmsr_at
	mov	%eax, (%rsi)
	mov	%edx, 4(%rsi)
	xor	%eax, %eax
	ret

/* int try_wrmsr(u32 msr, u64 value) */
	.globl	try_wrmsr, try_wrmsr_at
try_wrmsr:
	mov	%edi, %ecx
	mov	%esi, %eax
	mov	%rsi, %rdx
	shr	$32, %rdx
try_wrmsr_at:
	wrmsr
	may_fault try_wrmsr_at
	xor	%eax, %eax
	ret

/* int try_ptwrite(u64 value) */
	.globl	try_ptwrite, try_ptwrite_at
try_ptwrite:
try_ptwrite_at:
	ptwriteq %rdi
	may_fault try_ptwrite_at
	xor	%eax, %eax
	ret

/* int try_vmxon(u64 *region): faults, or 0, or 1: VMfail */
	.globl	try_vmxon, try_vmxon_at
try_vmxon:
try_vmxon_at:
	vmxon	(%rdi)
	may_fault try_vmxon_at
	setbe	%al
	movzbl	%al, %eax
	ret


/* void jump_about(u64 rounds): each round makes a TIP and a TNT bit */
	.globl	jump_about, jump_target
jump_about:
	lea	jump_target(%rip), %rax
	jmp	*%rax
jump_target:
	dec	%rdi
	jnz	jump_about
	ret

	.data
	.align	16
	.globl	gdt
gdt:	.quad	0
	.quad	0x00af9b000000ffff	/* 64-bit code */
	.quad	0x00cf9b000000ffff	/* 32-bit code */
	.quad	0x00cf93000000ffff	/* data */
	.quad	0x0000890000000067, 0	/* TSS */
	.globl	gdt_register, idt_register
gdt_register:
	.word	. - gdt - 1
	.quad	gdt
idt_register:
	.word	256 * 16 - 1
	.quad	idt

	.bss
	.align	16
	.globl	tss
tss:	.skip	0x70
saved_rsp:
	.skip	8
	.skip	256
early_stack:
	.skip	0x4000
stack_top:
	.section .note.GNU-stack, "", @progbits
