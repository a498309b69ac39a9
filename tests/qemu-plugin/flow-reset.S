/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * A boot sector that resets the machine (port 0xcf9), and ends QEMU (isa-debug-exit at port 0xf4)
 * the second time, which a byte in the CMOS RAM records.
 */
	.code16
	.text
	movb	$0x60, %al
	outb	%al, $0x70
	inb	$0x71, %al
	cmpb	$0x5a, %al
	je	2f
	movb	$0x60, %al
	outb	%al, $0x70
	movb	$0x5a, %al
	outb	%al, $0x71
	movw	$0xcf9, %dx
	movb	$6, %al
	outb	%al, (%dx)
1:	hlt
	jmp	1b
2:	movw	$0xf4, %dx
	movb	$0x10, %al
	outb	%al, (%dx)
	cli
	hlt
	.org	510
	.word	0xaa55
