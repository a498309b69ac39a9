/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The guest "work": in each round it does one of everything that a trace of a virtual machine
 * shows (branches of all kinds, address spaces, interrupts, exceptions, code that changes, all
 * kinds of VM exits), and mixes what it sees into one word, EBX. lib/work.c computes the same word
 * from this description, so a processor or a VMM that gets one of them wrong is detected.
 */
#include "guest.inc"

#if BITS == 16
#define SYMBOL(end) guest_work16##end
#elif BITS == 32
#define SYMBOL(end) guest_work32##end
#else
#define SYMBOL(end) guest_work64##end
#endif

	.section .rodata
	.balign	16
	.globl	SYMBOL()
	.globl	SYMBOL(_end)
SYMBOL():
blob:
	.long	A(start)
	.long	A(on_int), A(on_irq), A(on_ud), A(on_pf), A(on_gp), A(on_bad)
rounds:	.long	0
flags:	.long	0
seed:	.long	0
cr3:	.long	0, 0
spin:	.long	0
bad:	.long	0 /* set by the handler of unexpected events */
irqs:	.long	0

	/*
	 * Written data has a page of its own: a trace is decoded with the original content of the
	 * other pages.
	 */
	.fill	0x1000 - (. - blob)

	/* EBX mixed by eight steps of a CRC: branches that depend on data. */
crc:
	movl	$8, %ecx
1:	shrl	$1, %ebx
	jnc	2f
	xorl	$0xedb88320, %ebx
2:	decl	%ecx
	jnz	1b
	ret

	/* Calls ECX deep. */
deep:
	testl	%ecx, %ecx
	jz	1f
	imull	$0x9e3779b1, %ecx, %eax
	addl	%eax, %ebx
	decl	%ecx
	call	deep
	roll	$3, %ebx
1:	ret

	/* A subroutine that returns to an address without a call. */
astray:
	push	$A(1f)
	ret
	ud2
1:	xorl	$0x5a5a, %ebx
	ret

	.balign	8
table:
	WORD	A(way0), A(way1), A(way2), A(way3)
way0:	addl	$0x11111111, %ebx
	ret
way1:	subl	$0x01020304, %ebx
	ret
way2:	notl	%ebx
	ret
way3:	xorl	%esi, %ebx
	ret

	/* An indirect call and an indirect jump, by two bits of EBX each. */
indirect:
	movl	%ebx, %edi
	andl	$3, %edi
	call	*A(table)(,REG(di),W)
	movl	%ebx, %edi
	shrl	$2, %edi
	andl	$3, %edi
	jmp	*A(table)(,REG(di),W)

	/* A far return, to the same segment. */
far:
#if BITS == 64
	movl	%cs, %eax
	push	%rax
	push	$A(1f)
	lretq
#elif BITS == 32
	pushl	%cs
	push	$A(1f)
	lret
#else
	pushw	%cs
	push	$A(1f)
	lret
#endif
1:	incl	%ebx
	ret

#if BITS != 16
	/* One address with different words in two address spaces, and an unmapped address. */
spaces:
	movl	A(cr3) + 4, %eax
	movl	%eax, %edi
	mov	REG(di), %cr3
	addl	0x300000, %ebx
	movl	A(cr3), %eax
	movl	%eax, %edi
	mov	REG(di), %cr3
	xorl	0x300000, %ebx
	movl	0x3ff000, %eax
	ud2
pf_resume:
	ret
#endif

	/* The next round's constant goes into the instruction that adds it. */
modify:
	imull	$7, %esi, %eax
	movl	%eax, A(patched) + 2
	jmp	1f
1:
patched:
	.byte	0x81, 0xc3, 0, 0, 0, 0 /* add $imm32, %ebx */
	ret

	/* All kinds of exits. The VMM answers the IN and the MMIO read. */
exits:
	inl	$PORT_DATA, %eax
	xorl	%eax, %ebx
	addl	%fs:0x10, %ebx
	movl	%ebx, %fs:0x20
	push	REG(bx)
	push	REG(si)
	movl	$0x40000010, %eax
	cpuid
	pop	REG(si)
	pop	REG(bx)
	xorl	%eax, %ebx
	movl	$0x277, %ecx
	movl	$0x00070406, %eax
	movl	%eax, %edx
	wrmsr
	rdmsr
	addl	%edx, %ebx
	ret

	/* An external interrupt; the processor halts until it arrives. */
await:
	movl	A(irqs), %edi
	movb	$0x40, %al
	outb	%al, $PORT_IRQ
1:	sti
	hlt
	cli
	cmpl	A(irqs), %edi
	je	1b
	ret

	/* Spins, so that the host's timer can interrupt it. */
idle:
	movl	A(spin), %ecx
	jecxz	2f
1:	decl	%ecx
	jnz	1b
2:	ret

start:
	movl	A(seed), %ebx
	xorl	%esi, %esi
round:
	incl	%esi
	call	crc
	movl	$5, %ecx
	call	deep
	call	astray
	call	indirect
	call	far
	int	$0x30
	ud2
	call	idle
#if BITS != 16
	testl	$FLAG_PAGING, A(flags)
	jz	1f
	call	spaces
1:
#endif
	testl	$FLAG_SMC, A(flags)
	jz	1f
	call	modify
1:	testl	$FLAG_QUIET, A(flags)
	jnz	1f
	call	exits
	call	await
1:	movl	%ebx, %eax
	outl	%eax, $PORT_RESULT
	cmpl	A(rounds), %esi
	jb	round
	movl	A(bad), %eax
	outb	%al, $PORT_DONE
	ud2

on_int:
	leal	1(%ebx,%ebx,4), %ebx
	WIRET
on_irq:
	incl	A(irqs)
	xorl	$0x7777, %ebx
	apic_eoi
	WIRET
on_ud:
	addl	$0x101, %ebx
#if BITS == 16
	addw	$2, (%esp)
#elif BITS == 32
	addl	$2, (%esp)
#else
	addq	$2, (%rsp)
#endif
	WIRET
#if BITS != 16
on_pf:
	addl	$0x202, %ebx
	add	$W, SP
#if BITS == 64
	movq	$A(pf_resume), (%rsp)
#else
	movl	$A(pf_resume), (%esp)
#endif
	WIRET
#else
on_pf:
#endif
on_gp:
on_bad:
	movl	$1, A(bad)
	movb	$1, %al
	outb	%al, $PORT_DONE
	hlt
SYMBOL(_end):

	.section .note.GNU-stack, "", @progbits
