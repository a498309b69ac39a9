/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The firmware: all of what an emulator loads below 4 GiB as its BIOS. At the reset vector it enters
 * protected mode and copies the program to RAM, unless it is already there and requested the reset.
 * PROGRAM: the flat image. The machine has no other firmware: no BIOS clears memory at a reset.
 */
#include "rom.h"

#define ROM_SIZE 0x40000
#define ROM_BASE (0x100000000 - ROM_SIZE)
/* The address of the top 64 KiB; CS's base at the reset vector. */
#define TOP_BASE 0xffff0000

	.section .rom, "ax"
	.globl	_start
_start:
program:
	.incbin	PROGRAM
program_end:

	.org	ROM_SIZE - 0x200
	.code32
protected:
	mov	$16, %eax
	mov	%eax, %ds
	mov	%eax, %es
	mov	%eax, %ss
	cmpl	$MAGIC, RESUME
	je	1f
	mov	$(ROM_BASE & 0xffffffff), %esi
	mov	$LOAD, %edi
	mov	$(program_end - program + 3) / 4, %ecx
	rep movsl
1:	mov	$LOAD, %eax
	jmp	*%eax

	.org	ROM_SIZE - 0x100
	.code16
real:
	cli
	lgdtl	%cs:(gdt_register - _start - (ROM_SIZE - 0x10000))
	mov	%cr0, %eax
	or	$1, %al
	mov	%eax, %cr0
	ljmpl	$8, $(TOP_BASE + (protected - _start - (ROM_SIZE - 0x10000)))

	.align	8
gdt:
	.quad	0
	.quad	0x00cf9b000000ffff	/* 8: 32-bit code */
	.quad	0x00cf93000000ffff	/* 16: data */
gdt_register:
	.word	23
	.long	TOP_BASE + (gdt - _start - (ROM_SIZE - 0x10000))

	.org	ROM_SIZE - 0x10
	jmp	real
	.org	ROM_SIZE
