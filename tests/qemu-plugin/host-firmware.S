# SPDX-License-Identifier: GPL-2.0-only OR MIT
#
# In place of a BIOS, 64 KiB at F0000: each vCPU does LOOPS rounds of calls and branches with one
# OUT to port 80h each; then HALTS times HLT until its APIC's timer wakes it, and, if HALTS is not
# 0, one loop until the timer interrupts it. The first vCPU begins with an NMI to itself, resets the
# machine RESETS times, and ends QEMU by port F4h when all are done. It gives the host view a known
# number of VM exits.
#
#	as --32 --defsym LOOPS=n --defsym HALTS=n --defsym RESETS=n
#	ld -m elf_i386 -Ttext 0xf0000 --oformat binary

	.equ	APIC, 0xfee00000
	.equ	DONE, 0x500		# vCPUs that are done
	.equ	RESET, 0x504		# resets so far
	.equ	VECTOR, 0x40

	.code16
	.globl	_start
_start:
	cli
	lgdtl	%cs:gdt_pointer - _start
	mov	%cr0, %eax
	or	$1, %al
	mov	%eax, %cr0
	ljmpl	$8, $first

	.code32
first:
	mov	$0x7000, %esp
	call	segments
	# an NMI to itself
	movl	$0, APIC + 0x310
	movl	$0x4400, APIC + 0x300
	# INIT and start-up of all others, at F1000
	movl	$0xc4500, APIC + 0x300
	movl	$0xc46f1, APIC + 0x300
	call	work
	# CMOS 5Fh: how many others there are
	mov	$0x5f, %al
	out	%al, $0x70
	in	$0x71, %al
	movzbl	%al, %eax
1:	pause
	cmp	%eax, DONE
	jne	1b
	.if	RESETS
	# The keyboard controller resets the machine; RAM stays.
	movl	$0, DONE
	incl	RESET
	cmpl	$RESETS, RESET
	ja	2f
	mov	$0xfe, %al
	out	%al, $0x64
	hlt
2:
	.endif
	mov	$0x10, %al
	mov	$0xf4, %dx
# Here QEMU ends the guest.
last:	out	%al, %dx
	jmp	.

other:
	mov	$0x6000, %esp
	call	segments
	call	work
	lock incl DONE
	cli
	hlt
	jmp	.

segments:
	mov	$0x10, %eax
	mov	%eax, %ds
	mov	%eax, %es
	mov	%eax, %ss
	lidt	idt_pointer
	movl	$0x1ff, APIC + 0xf0
	movl	$0xb, APIC + 0x3e0
	movl	$VECTOR, APIC + 0x320
	ret

work:
	mov	$LOOPS, %ecx
1:	call	turn
	out	%al, $0x80
	loop	1b
	mov	$HALTS, %ecx
	jecxz	4f
2:	movl	$1000000, APIC + 0x380
	sti
	hlt
	cli
	loop	2b
	# and once in the middle of work
	xor	%ebx, %ebx
	movl	$1000000, APIC + 0x380
	sti
3:	test	%ebx, %ebx
	jz	3b
	cli
4:	ret

turn:
	push	%ecx
	mov	$50, %edx
1:	mov	%edx, %eax
	and	$1, %eax
	call	*leaves(, %eax, 4)
	test	$3, %dl
	jz	2f
	call	even
2:	dec	%edx
	jnz	1b
	pop	%ecx
	ret
even:	ret
odd:	xor	%eax, %eax
	ret

timer:
	inc	%ebx
	movl	$0, APIC + 0xb0
nmi:	iret

	.balign	8
gdt:	.quad	0, 0x00cf9b000000ffff, 0x00cf93000000ffff
leaves:	.long	even, odd
gdt_pointer:
	.word	23
	.long	gdt
idt_pointer:
	.word	8 * VECTOR + 7
	.long	idt
	.balign	8
idt:	.fill	2, 8, 0
	.word	nmi - _start, 8, 0x8e00, 0xf
	.fill	VECTOR - 3, 8, 0
	.word	timer - _start, 8, 0x8e00, 0xf

	.org	0x1000
	.code16
	cli
	lgdtl	%cs:1f - _start - 0x1000
	mov	%cr0, %eax
	or	$1, %al
	mov	%eax, %cr0
	ljmpl	$8, $other
1:	.word	23
	.long	gdt

	.org	0xfff0
	ljmp	$0xf000, $0
	.org	0x10000
