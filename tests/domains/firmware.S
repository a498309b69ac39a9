/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * A guest of 64 KiB in place of the BIOS. It says hello on the first serial port, then
 *	ENDS=1	resets the machine, which ends a domain with <on_reboot>destroy</on_reboot>;
 *	ECHO=1	sends back what it receives, and resets at a 'q';
 * else it waits forever. With SLOW=1 the reset comes a second or two later: output right before the
 * guest's end may be lost, since a pty drops unread data when its other side closes.
 */
	.code16
	.text
	.org 0xe000
start:
	mov $0x3f8, %dx
	mov $hello, %bx
next:
	mov %cs:(%bx), %al
	inc %bx
	test %al, %al
	jz said
	out %al, %dx
	jmp next
said:
	.if ENDS
	jmp reset
	.endif
	.if ECHO
receive:
	mov $0x3fd, %dx		/* line status */
	in %dx, %al
	test $1, %al
	jz receive
	mov $0x3f8, %dx
	in %dx, %al
	cmp $'q', %al
	je reset
	out %al, %dx
	jmp receive
	.endif
wait:
	hlt
	jmp wait
reset:
	.if SLOW
	mov $2, %cx		/* until the clock's seconds have changed twice */
second:
	xor %al, %al
	out %al, $0x70
	in $0x71, %al
	mov %al, %ah
same:
	xor %al, %al
	out %al, $0x70
	in $0x71, %al
	cmp %al, %ah
	je same
	loop second
	.endif
	mov $0xfe, %al		/* the keyboard controller's line to the processor */
	out %al, $0x64
	jmp wait
hello:
	.asciz "firmware: hello\r\n"

	.org 0xfff0		/* the reset vector */
	.byte 0xe9
	.word start - . - 2
	.org 0x10000
