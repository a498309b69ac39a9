/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * A task switch by a far jump (SDM 3 8.3): 32-bit code with paging, and a TSS that has another CR3.
 * It is only visible by the CR3. Ends QEMU with 33, or with 65 if CR3 is wrong.
 */
	.code16
start:	cli
	lgdtl	%cs:(gdtr - start)
	mov	%cr0, %eax
	or	$1, %al
	mov	%eax, %cr0
	ljmpl	$8, $(0xf0000 + protected - start)

	.balign	8
gdtr:	.word	gdt_end - gdt - 1
	.long	0xf0000 + (gdt - start)
	.balign	8
gdt:	.quad	0
	.quad	0x00cf9b000000ffff
	.quad	0x00cf93000000ffff
	.word	0x67, 0x0000, 0x8901, 0		/* 18H: TSS at 10000H */
	.word	0x67, 0x0100, 0x8901, 0		/* 20H: TSS at 10100H */
gdt_end:

	.code32
protected:
	mov	$0x10, %eax
	mov	%eax, %ds
	mov	%eax, %es
	mov	%eax, %ss
	mov	$0x9000, %esp
	/* Two page directories, both with an identity mapping. */
	mov	$0x83, %eax
	xor	%ecx, %ecx
1:	mov	%eax, 0x20000(,%ecx,4)
	mov	%eax, 0x21000(,%ecx,4)
	add	$0x400000, %eax
	inc	%ecx
	cmp	$1024, %ecx
	jne	1b
	/* The GDT in RAM: a task switch writes to it. */
	mov	$(0xf0000 + gdt - start), %esi
	mov	$0x8000, %edi
	mov	$((gdt_end - gdt) / 4), %ecx
	rep movsl
	movw	$(gdt_end - gdt - 1), 0x7ff0
	movl	$0x8000, 0x7ff2
	lgdt	0x7ff0
	mov	%cr4, %eax
	or	$0x10, %eax
	mov	%eax, %cr4
	mov	$0x20000, %eax
	mov	%eax, %cr3
	mov	%cr0, %eax
	or	$0x80000000, %eax
	mov	%eax, %cr0
	mov	$0x18, %eax
	ltr	%ax
	/* The other task's CR3, EIP, EFLAGS, ESP, ES, CS, SS, DS. */
	movl	$0x21000, 0x1011c
	movl	$(0xf0000 + other - start), 0x10120
	movl	$2, 0x10124
	movl	$0x9000, 0x10138
	movl	$0x10, 0x10148
	movl	$8, 0x1014c
	movl	$0x10, 0x10150
	movl	$0x10, 0x10154
	ljmp	$0x20, $0

other:	mov	%cr3, %eax
	cmp	$0x21000, %eax
	mov	$0x10, %al
	je	2f
	mov	$0x20, %al
2:	mov	$0xf4, %dx
	out	%al, %dx
3:	hlt
	jmp	3b

	.org	0xfff0
	.code16
	ljmp	$0xf000, $0
	.org	0x10000
