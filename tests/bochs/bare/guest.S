/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The guests. Each ends with VMCALL; their labels are the IPs of the expected packets.
 */
#include "layout.h"

	.text
	.globl	guest_branches, guest_branches_to, guest_branches_end
guest_branches:			/* one indirect jump */
	lea	guest_branches_to(%rip), %rax
	jmp	*%rax
	nop
guest_branches_to:
	nop
guest_branches_end:
	vmcall

	.globl	guest_empty
guest_empty:			/* nothing */
	vmcall
	.globl	guest_empty_2
guest_empty_2:
	vmcall

	.globl	guest_cr3, guest_cr3_next, guest_cr3_end
guest_cr3:			/* MOV CR3 */
	mov	$OTHER_CR3, %eax
	mov	%rax, %cr3
guest_cr3_next:
	nop
guest_cr3_end:
	vmcall

	/*
	 * An NMI after the second OUT; an interrupt that is already pending comes before the first.
	 */
	.globl	guest_nmi, guest_nmi_next
guest_nmi:
	mov	$1, %eax
	mov	$0x564, %edx
	out	%eax, %dx
	mov	$8, %eax
	mov	$0x560, %edx
	out	%eax, %dx
guest_nmi_next:
	nop
	vmcall

	/* Sleeps until something comes that ends it. */
	.globl	guest_hlt, guest_hlt_next
guest_hlt:
	hlt
guest_hlt_next:
	vmcall

	/* RCX indirect jumps: three bytes of packets each, by IP compression */
	.globl	guest_fill, guest_fill_to, guest_fill_end
guest_fill:
	lea	guest_fill_to(%rip), %rax
	jmp	*%rax
guest_fill_to:
	dec	%rcx
	jnz	guest_fill
guest_fill_end:
	vmcall

	/* RDMSR and WRMSR of RCX, MOV CR3 from RCX, without a branch. #GP: as in try_rdmsr. */
	.globl	guest_rdmsr, guest_wrmsr, guest_mov_cr3
guest_rdmsr:
	rdmsr
	jmp	faultless
guest_wrmsr:
	wrmsr
	jmp	faultless
guest_mov_cr3:
	mov	%rcx, %cr3
faultless:
	xor	%edi, %edi
	vmcall
	.pushsection .fixups, "a"
	.quad	guest_rdmsr, faulted_guest, guest_wrmsr, faulted_guest
	.popsection
faulted_guest:
	mov	%eax, %edi
	vmcall

	/* Return address of functions called by vm_call(). */
	.globl	guest_call_done
guest_call_done:
	vmcall

	.code32
	.globl	guest_32, guest_32_to, guest_32_end
guest_32:
	mov	$guest_32_to, %eax
	jmp	*%eax
	nop
guest_32_to:
	nop
guest_32_end:
	vmcall

	/* Copied to REAL_CODE; CS = REAL_CODE >> 4 */
	.code16
	.globl	guest_16, guest_16_end
guest_16:
	mov	$(1f - guest_16), %ax
	jmp	*%ax
	nop
1:	nop
2:	vmcall
guest_16_end:
	.globl	real_16, real_16_to, real_16_end
	.set	real_16, REAL_CODE
	.set	real_16_to, REAL_CODE + (1b - guest_16)
	.set	real_16_end, REAL_CODE + (2b - guest_16)

	/* Labels in expected packets */
	.globl	host_cr3, guest_cr3_value, other_cr3_value, vmcs_0, vmcs_1
	.set	host_cr3, PAGE_TABLES
	.set	guest_cr3_value, GUEST_CR3
	.set	other_cr3_value, OTHER_CR3
	.set	vmcs_0, VMX_PAGES + 0x1000
	.set	vmcs_1, VMX_PAGES + 0x2000
	.section .note.GNU-stack, "", @progbits
