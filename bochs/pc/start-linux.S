/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * An option ROM that starts the Linux kernel that is already in memory: Bochs put it there
 * (optramimage), with its command line and initrd. The BIOS calls it when the devices are set up;
 * no medium is read. On the second call, after a reset, it ends Bochs: a kernel that panicked
 * resets the PC.
 */
#define CMOS_INDEX 0x70
#define CMOS_DATA  0x71
#define RUNS	   0x7e /* an otherwise unused byte of the CMOS, 0 at power on */
#define SHUTDOWN   0x8900

	.code16
	.globl	rom
rom:	.byte	0x55, 0xaa, 1
	cli
	cld
	mov	$RUNS, %al
	out	%al, $CMOS_INDEX
	in	$CMOS_DATA, %al
	test	%al, %al
	jnz	2f
	inc	%al
	out	%al, $CMOS_DATA
	/* As boot.rst requires for a real-mode kernel header at 90000H. */
	mov	$0x9000, %ax
	mov	%ax, %ds
	mov	%ax, %es
	mov	%ax, %fs
	mov	%ax, %gs
	mov	%ax, %ss
	mov	$0xe000, %sp
	ljmp	$0x9020, $0

2:	mov	$0xd000, %ax
	mov	%ax, %ds
	mov	$(word - rom), %si
	mov	$(end - word), %cx
	mov	$SHUTDOWN, %dx
	rep	outsb
	hlt
word:	.ascii	"Shutdown"
end:
	.org	512
