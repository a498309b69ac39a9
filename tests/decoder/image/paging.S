/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Firmware of 64 KiB that turns paging on and waits, for dumps of QEMU (test-qemu.sh). LEVELS: 4, 5,
 * 3 (PAE) or 2 (32-bit). The page at the linear address 0x40000000 is the physical page 0x9000, where
 * it writes TEXT; low memory is mapped as it is, by one large page. CR3 is 0x1000, each level's table
 * the page after the one above.
 */
	.code16
	.text
	.org 0xe000
start:
	cli
	xor %ax, %ax
	mov %ax, %ds
	mov %ax, %es
	movl $0x1000, %edi		/* SeaBIOS is not there: memory is as it was made, 0 */
	movl $0x676e6970, 0x9000	/* "ping" */
	movl $0x0000006f, 0x9ffc
	.if LEVELS == 5
	movl $0x2003, 0x1000
	movl $0x3003, 0x2000
	movl $0x4003, 0x3008		/* PDPTE 1: 1 GiB */
	movl $0x83, 0x3000
	movl $0x5003, 0x4000
	movl $0x9003, 0x5000
	.elseif LEVELS == 4
	movl $0x2003, 0x1000
	movl $0x83, 0x2000
	movl $0x3003, 0x2008
	movl $0x4003, 0x3000
	movl $0x9003, 0x4000
	.elseif LEVELS == 3
	movl $0x2001, 0x1000
	movl $0x3001, 0x1008
	movl $0x83, 0x2000
	movl $0x4003, 0x3000
	movl $0x9003, 0x4000
	.else
	movl $0x83, 0x1000
	movl $0x2003, 0x1400		/* PDE 256: 1 GiB */
	movl $0x9003, 0x2000
	.endif
	.if LEVELS == 5
	movl $0x1020, %eax		/* LA57, PAE */
	.elseif LEVELS > 2
	movl $0x20, %eax
	.else
	movl $0x10, %eax		/* PSE */
	.endif
	movl %eax, %cr4
	movl $0x1000, %eax
	movl %eax, %cr3
	.if LEVELS > 3
	movl $0xc0000080, %ecx		/* EFER.LME */
	rdmsr
	orl $0x100, %eax
	wrmsr
	.endif
	movl %cr0, %eax
	orl $0x80000001, %eax
	movl %eax, %cr0
	/* Done: the code segment is still that of real mode, and mapped as it is. */
	mov $'.', %al
	mov $0x3f8, %dx
	out %al, %dx
wait:
	hlt
	jmp wait
	.org 0xfff0
	ljmp $0xf000, $start
	.org 0xffff
	.byte 0
