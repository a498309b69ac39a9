/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The guest "script": carries out a list of operations that the VMM wrote into its memory (struct
 * guest_op in ../programs/lib/guest.h), and stores its result in each: a value, or the vector of an
 * exception. Scenarios with model-specific registers are such lists.
 */
#include "guest.inc"

#if BITS == 32
#define SYMBOL(end) guest_script32##end
#else
#define SYMBOL(end) guest_script64##end
#endif

/* struct guest_op */
#define OP_CODE   0
#define OP_ARG    4
#define OP_VALUE  8
#define OP_FAULT  16 /* 1 + vector */
#define OP_DONE   20
#define OP_RESULT 24
#define OP_SIZE   32

	.section .rodata
	.balign	16
	.globl	SYMBOL()
	.globl	SYMBOL(_end)
SYMBOL():
blob:
	.long	A(start)
	.long	A(on_bad), A(on_irq), A(on_ud), A(on_pf), A(on_gp), A(on_bad)
rounds:	.long	0
flags:	.long	0
seed:	.long	0
cr3:	.long	0, 0
spin:	.long	0
bad:	.long	0
irqs:	.long	0

	.fill	0x1000 - (. - blob)

	/* ESI points into the list; the VMM sets it. */
start:
next:
	movl	OP_CODE(REG(si)), %edi
	movl	OP_ARG(REG(si)), %ecx
	movl	OP_VALUE(REG(si)), %eax
	movl	OP_VALUE + 4(REG(si)), %edx
	cmpl	$(table_end - table) / W, %edi
	jae	on_bad
	jmp	*A(table)(,REG(di),W)
done:
	movl	%eax, OP_RESULT(REG(si))
	movl	%edx, OP_RESULT + 4(REG(si))
over:
	incl	OP_DONE(REG(si))
	addl	$OP_SIZE, %esi
	jmp	next

	.balign	8
table:
	WORD	A(op_end), A(op_rdmsr), A(op_wrmsr), A(op_work), A(op_out), A(op_cpuid)
	WORD	A(op_cr3), A(op_read), A(op_write), A(op_halt), A(op_jump)
	WORD	A(op_vmxon), A(op_exits), A(op_irqs), A(op_await)
	WORD	A(op_traps), A(op_mwait)
table_end:

op_end:
	movb	$0, %al
	outb	%al, $PORT_DONE
	jmp	op_end

op_rdmsr:
	rdmsr
	jmp	done
op_wrmsr:
	wrmsr
	jmp	done

	/* ECX times: a call, a branch taken every other time, a compressed return; then a jump. */
op_work:
1:	call	leaf
	decl	%ecx
	jnz	1b
	movl	$A(done), %edi
	jmp	*REG(di)
leaf:
	testl	$1, %ecx
	jz	1f
	nop
1:	ret

op_out:
	outl	%eax, $PORT_RESULT
	jmp	done
op_cpuid:
	push	REG(si)
	movl	%eax, %eax
	cpuid
	pop	REG(si)
	movl	%ebx, %edx
	jmp	done
	/*
	 * If ECX is not 0, KVM's forced emulation prefix makes the emulator execute the next
	 * instruction.
	 */
	.macro	emulated
	jecxz	1f
	.byte	0x0f, 0x0b
	.ascii	"kvm"
1:
	.endm
op_cr3:
	emulated
	mov	REG(ax), %cr3
	jmp	done
op_jump:
	movl	$A(done), %edi
	emulated
	jmp	*REG(di)
op_read:
	movl	(REG(ax)), %eax
	xorl	%edx, %edx
	jmp	done
op_write:
	movl	%ecx, (REG(ax))
	jmp	done
op_halt:
	sti
	hlt
	cli
	jmp	done

	/* C1, until an interrupt. */
op_mwait:
	movl	$A(spin), %eax
	xorl	%ecx, %ecx
	xorl	%edx, %edx
	monitor
	xorl	%eax, %eax
	sti
	mwait
	cli
	jmp	done

	/* EAX: physical address of a VMXON region. RESULT: 0 on success. */
op_vmxon:
	push	REG(dx)
	push	REG(ax)
	vmxon	(SP)
	movl	$0, %eax
	adcl	$0, %eax
	add	$2 * W, SP
	jmp	done

	/* ECX exits, with nothing between them. */
op_exits:
1:	outl	%eax, $PORT_RESULT
	decl	%ecx
	jnz	1b
	jmp	done

	/* ECX exits that KVM handles itself, with a little of op_work between them. */
op_traps:
1:	push	REG(cx)
	call	leaf
	xorl	%eax, %eax
	cpuid
	pop	REG(cx)
	decl	%ecx
	jnz	1b
	jmp	done

op_irqs:
	movl	A(irqs), %eax
	xorl	%edx, %edx
	jmp	done

	/* Wait for an interrupt, at most ECX rounds. RESULT: how many arrived so far. */
op_await:
	sti
1:	cmpl	$0, A(irqs)
	jne	2f
	decl	%ecx
	jnz	1b
2:	cli
	jmp	op_irqs

on_irq:
	incl	A(irqs)
	apic_eoi
	WIRET

	/* An exception ends the operation: its vector is stored, and the next operation begins. */
on_ud:
	movl	$1 + 6, OP_FAULT(REG(si))
	jmp	1f
on_pf:
	movl	$1 + 14, OP_FAULT(REG(si))
	jmp	1f
on_gp:
	movl	$1 + 13, OP_FAULT(REG(si))
1:	movl	A(seed), %edi /* the stack's top */
	mov	REG(di), SP
	jmp	over

on_bad:
	movl	$1, A(bad)
	movb	$1, %al
	outb	%al, $PORT_DONE
	hlt
SYMBOL(_end):

	.section .note.GNU-stack, "", @progbits
