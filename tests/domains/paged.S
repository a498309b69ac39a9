/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Firmware of 64 KiB for a dump of its memory: with paging on it runs at the linear address 0x400000,
 * the physical page 0x9000, and nowhere else is that code in memory as it runs; 20,000 rounds, then
 * a '.' to the serial line, and it waits. CR3 is 0x1000.
 */
	.code16
	.text
	.org 0xe000
start:
	cli
	cld
	xorw %ax, %ax
	movw %ax, %es
	movl $0x83, %es:0x1000		/* the first 4 MiB to themselves */
	movl $0x2003, %es:0x1004
	movl $0x9003, %es:0x2000
	movw %cs, %ax
	movw %ax, %ds
	movw $code, %si
	movw $0x9000, %di
	movw $(code_end - code), %cx
	rep movsb
	data32 lgdt gdt_pointer
	movl $0x10, %eax		/* PSE */
	movl %eax, %cr4
	movl $0x1000, %eax
	movl %eax, %cr3
	movl %cr0, %eax
	orl $0x80000001, %eax
	movl %eax, %cr0
	data32 ljmp $8, $0x400000

	.code32
code:
	movl $20000, %ecx
1:	testb $3, %cl
	jz 2f
	nop
2:	loop 1b
	movw $0x3f8, %dx
	movb $'.', %al
	outb %al, %dx
3:	hlt
	jmp 3b
code_end:

	.balign 8
gdt:
	.quad 0, 0x00cf9a000000ffff
gdt_pointer:
	.word 15
	.long 0xf0000 + gdt
	.org 0xfff0
	.code16
	ljmp $0xf000, $start
	.org 0xffff
	.byte 0
