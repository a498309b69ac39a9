/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Firmware of 64 KiB whose code changes: in place, by other page tables, by a reset. It runs twice,
 * with a reset by the keyboard controller in between, ROUNDS rounds each, and ends QEMU
 * (isa-debug-exit at port 0xf4). Code that moves is at these physical pages and linear ones, in
 * address spaces A and B:
 *
 *	50000	A 400000, B 401000	one block at two addresses; patched in each round
 *	51000	B 400000		other code at A's address
 *	52000	A 402000		then 53000 there, then 52000 again
 *	54000	A 403000		an instruction that goes on in …
 *	56000	A 404000		… a page that does not follow physically
 *	57000	A 405000		writes the instruction after the next one
 */
	.equ	AGAIN, 0x6000	/* 0x1234 after the reset */
	.code16
	.text
	.globl	_start
_start:
	cli
	xorw	%ax, %ax
	movw	%ax, %ds
	data32 lgdt %cs:gdt_pointer
	movl	%cr0, %eax
	orb	$1, %al
	movl	%eax, %cr0
	data32 ljmp $8, $code_32 + 0xf0000

	.code32
	.macro	copy from, to
	movl	$\from + 0xf0000, %esi
	movl	$\to, %edi
	movl	$(\from\()_end - \from), %ecx
	rep movsb
	.endm
	/* The tables at PD: the first 4 MiB to themselves, PT for the second. */
	.macro	tables pd, pt
	movl	$\pd, %edi
	movl	$2048, %ecx
	xorl	%eax, %eax
	rep stosl
	movl	$0x83, \pd
	movl	$\pt + 3, \pd + 4
	.endm

code_32:
	movl	$16, %eax
	movl	%eax, %ds
	movl	%eax, %es
	movl	%eax, %ss
	movl	$0x7000, %esp
	cld
	tables	0x20000, 0x21000
	tables	0x30000, 0x31000
	movl	$0x50003, 0x21000
	movl	$0x52003, 0x21008
	movl	$0x54003, 0x2100c
	movl	$0x56003, 0x21010
	movl	$0x57003, 0x21014
	movl	$0x51003, 0x31000
	movl	$0x50003, 0x31004
	copy	one, 0x50000
	copy	two, 0x51000
	copy	one, 0x52000
	copy	two, 0x53000
	copy	self, 0x57000
	/* mov $0x04030201, %eax; ret */
	movl	$0x0201b800, 0x54ffc
	movl	$0x00c30403, 0x56000
	movl	$0x20000, %eax
	movl	%eax, %cr3
	movl	%cr4, %eax
	orb	$0x10, %al
	movl	%eax, %cr4
	movl	%cr0, %eax
	orl	$0x80000000, %eax
	movl	%eax, %cr0

	movl	$ROUNDS, %ebp
round:
	movl	$0x20000, %eax
	movl	%eax, %cr3
	call	call_400000
	call	call_402000
	movl	$0x403ffd, %eax
	call	*%eax
	movl	$0x405000, %eax
	call	*%eax
	movl	$0x30000, %eax
	movl	%eax, %cr3
	call	call_400000
	movl	$0x401000, %eax
	call	*%eax
	/* In the space that is not patched: other bytes, later those of the beginning. */
	xorb	$(0x40 ^ 0x90), 0x50000
	movl	$0x401000, %eax
	call	*%eax
	/* Another page at an address that was executed */
	xorl	$(0x52000 ^ 0x53000), 0x21008
	/* A run ends here in every fourth round. */
	testl	$3, %ebp
	jnz	1f
	xorl	%eax, %eax
	outb	%al, $0x80
1:	decl	%ebp
	jnz	round

	cmpw	$0x1234, AGAIN
	je	2f
	movw	$0x1234, AGAIN
	movb	$0xfe, %al
	outb	%al, $0x64
	jmp	.
2:	movb	$0x10, %al
	movl	$0xf4, %edx
	outb	%al, (%dx)
	jmp	.

call_400000:
	movl	$0x400000, %eax
	call	*%eax
	ret
call_402000:
	movl	$0x402000, %eax
	call	*%eax
	ret

one:
	incl	%eax
	cmpl	$0, %eax
	je	3f
	incl	%ebx
3:	ret
one_end:
two:
	incl	%ebx
	jmp	4f
	ud2
4:	incl	%ebx
	ret
two_end:
/* NOP and INC EBX take turns at the place that is two instructions on. */
self:
	xorb	$(0x90 ^ 0x43), 0x405000 + (5f - self)
	nop
5:	nop
	ret
self_end:

	.balign	8
gdt:
	.quad	0
	.quad	0x00cf9b000000ffff	/* 8: code of 32 bits */
	.quad	0x00cf93000000ffff	/* 16: data */
gdt_pointer:
	.word	23
	.long	gdt + 0xf0000

	.code16
	.org	0xfff0
	ljmp	$0xf000, $_start
	.org	0x10000
