/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * CS's base and mode are those that were loaded, whatever its selector: at the reset vector the
 * base is FFFF0000H and the selector F000H; in protected mode CS is still real mode's until a far
 * jump. CPUID, which the guest view emulates, must work in both. Ends QEMU with 33.
 */
	.code16
start:	cli
	mov	$0x1234, %bx
	mov	$0x14, %eax
	xor	%ecx, %ecx
	cpuid
	ljmp	$0xf000, $(low - start)
low:	lgdtl	%cs:(gdtr - start)
	mov	%cr0, %eax
	or	$1, %al
	mov	%eax, %cr0
	jmp	1f
1:	mov	$0x10, %bx
	mov	%bx, %ds
	mov	$0x14, %eax
	xor	%ecx, %ecx
	cpuid
	mov	%cr0, %eax
	and	$0xfe, %al
	mov	%eax, %cr0
	jmp	2f
2:	xor	%ax, %ax
	jz	3f
	hlt
3:	mov	$0x10, %al
	mov	$0xf4, %dx
	out	%al, %dx
4:	hlt
	jmp	4b

	.balign	8
gdtr:	.word	0x17
	.long	0xf0000 + (gdt - start)
	.balign	8
gdt:	.quad	0
	.quad	0x00cf9b000000ffff
	.quad	0x00cf93000000ffff

/*
 * Far from the vector: libipt, which does not know CS's base, cannot follow a jump that wraps IP.
 */
	.org	0xff00
near:	mov	$0x14, %eax
	xor	%ecx, %ecx
	cpuid
	ljmp	$0xf000, $0
	.org	0xfff0
	jmp	near
	.org	0x10000
