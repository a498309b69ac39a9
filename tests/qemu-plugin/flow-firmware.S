/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Firmware of 64 KiB that runs 16-, 32- and 64-bit code with each kind of branch once or several
 * times, then ends QEMU (isa-debug-exit at port 0xf4). The numbers after the instructions say how
 * many of them a trace shows; FIRMWARE_INSNS in test-flow.sh is their sum. A trace shows no INT n,
 * no instruction that faults, and no OUT, before which a run ends.
 */
	.code16
	.text
	.globl	_start
_start:
	cli			/* 1 */
	xorw	%ax, %ax	/* 1 */
	movw	%ax, %ds	/* 1 */
	movw	%ax, %es	/* 1 */
	movw	%ax, %ss	/* 1 */
	movw	$0x7000, %sp	/* 1: 6 so far */

	movw	$1000, %cx	/* 1 */
1:	loop	1b		/* 1000: 1007 */

	movw	$100, %cx	/* 1 */
2:	call	function	/* 100 */
	decw	%cx		/* 100 */
	jnz	2b		/* 100; and function 200: 1508 */

	/* Recursion deeper than a trace unit's stack of return addresses */
	movw	$100, %cx	/* 1 */
	call	deep		/* 1; deep: 100 × 4, minus the last one's call: 1909 */

	movw	$handler, 0x21 * 4	/* 1 */
	movw	$0xf000, 0x21 * 4 + 2	/* 1 */
	int	$0x21			/* 0; handler 1: 1912 */

	movw	$300, %cx	/* 1 */
	xorw	%si, %si	/* 1 */
	movw	$0x8000, %di	/* 1 */
	cld			/* 1 */
	rep movsb		/* 1: 1917 */

	movw	$3f, %bx	/* 1 */
	jmp	*%bx		/* 1: 1919 */
	ud2
3:
	movw	$divide, 0	/* 1 */
	movw	$0xf000, 2	/* 1 */
	xorb	%bl, %bl	/* 1 */
	divb	%bl		/* 0, a fault; divide 3: 1925 */

	/* Code that changes: je or jne over INC, with ZF set */
	movl	$0xcb400174, 0x9000	/* 1 */
	xorw	%bx, %bx		/* 1 */
	lcall	$0, $0x9000		/* 1; je, lret 2: 1930 */
	movb	$0x75, 0x9000		/* 1 */
	xorw	%bx, %bx		/* 1 */
	lcall	$0, $0x9000		/* 1; jne, inc, lret 3: 1936 */

	data32 lgdt %cs:gdt_pointer	/* 1 */
	movl	%cr0, %eax		/* 1 */
	orb	$1, %al			/* 1 */
	movl	%eax, %cr0		/* 1 */
	data32 ljmp $8, $code_32 + 0xf0000 /* 1: 1941 */

function:
	nop
	ret

deep:
	decw	%cx
	jz	4f
	call	deep
4:	ret

handler:
	iret

divide:
	movw	%sp, %bp
	addw	$2, (%bp)
	iret

	.code32
code_32:
	movl	$16, %eax		/* 1 */
	movl	%eax, %ds		/* 1 */
	movl	%eax, %ss		/* 1 */
	movl	$0x7000, %esp		/* 1: 1945 */
	movl	$10, %ecx		/* 1 */
5:	call	function_32		/* 10 */
	loop	5b			/* 10; function_32 20: 1986 */

	/* The first GiB in one page; page tables at 10000H and 11000H */
	movl	$0x11003, 0x10000	/* 1 */
	movl	$0, 0x10004		/* 1 */
	movl	$0x83, 0x11000		/* 1 */
	movl	$0, 0x11004		/* 1 */
	movl	%cr4, %eax		/* 1 */
	orb	$0x20, %al		/* 1 */
	movl	%eax, %cr4		/* 1 */
	movl	$0x10000, %eax		/* 1 */
	movl	%eax, %cr3		/* 1: 1995 */
	movl	$0xc0000080, %ecx	/* 1 */
	rdmsr				/* 1 */
	orl	$0x100, %eax		/* 1 */
	wrmsr				/* 1 */
	movl	%cr0, %eax		/* 1 */
	orl	$0x80000000, %eax	/* 1 */
	movl	%eax, %cr0		/* 1 */
	ljmp	$24, $code_64 + 0xf0000 	/* 1: 2003 */

function_32:
	nop
	ret

	.code64
code_64:
	movl	$0x7000, %esp		/* 1 */
	leaq	function_64(%rip), %rax	/* 1 */
	movl	$50, %ecx		/* 1 */
6:	call	*%rax			/* 50 */
	decl	%ecx			/* 50 */
	jnz	6b			/* 50; function_64 100: 2256 */
	movl	$0xf4, %edx		/* 1 */
	movb	$0x10, %al		/* 1: 2258, and LJMP at the reset vector: 2259 */
	outb	%al, (%dx)		/* 0 */
	cli
	hlt

function_64:
	nop
	ret

	.balign	8
gdt:
	.quad	0
	.quad	0x00cf9b000000ffff	/* 8: code of 32 bits */
	.quad	0x00cf93000000ffff	/* 16: data */
	.quad	0x00af9b000000ffff	/* 24: code of 64 bits */
gdt_pointer:
	.word	31
	.long	gdt + 0xf0000

	.code16
	.org	0xfff0
	ljmp	$0xf000, $_start
	.org	0x10000
