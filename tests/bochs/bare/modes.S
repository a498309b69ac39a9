/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Traced instructions, each between the WRMSR that sets TraceEn and the one that clears it, and
 * the SMM handler. The functions may run in a guest.
 */
#include "layout.h"

#define HOST_COMMAND 0x560
#define HOST_DATA    0x564
#define RTIT_CTL     0x570

	/* RDI: IA32_RTIT_CTL, kept in R8 */
	.macro	trace_on
	mov	$RTIT_CTL, %ecx
	mov	%edi, %eax
	mov	%rdi, %rdx
	shr	$32, %rdx
	mov	%rdi, %r8
	wrmsr
	.endm

	.macro	trace_off
	mov	$RTIT_CTL, %ecx
	mov	%r8d, %eax
	and	$~1, %eax
	mov	%r8, %rdx
	shr	$32, %rdx
	.endm

	.text
/* void traced_pulse(u64 ctl, u32 what): an NMI, SMI or INIT after the OUT */
	.globl	traced_pulse, pulse_on, pulse_next, pulse_off
traced_pulse:
	trace_on
pulse_on:
	mov	%esi, %eax
	mov	$HOST_DATA, %edx
	out	%eax, %dx
	mov	$8, %eax
	mov	$HOST_COMMAND, %edx
	out	%eax, %dx
pulse_next:
	nop
	trace_off
pulse_off:
	wrmsr
	ret

/* void traced_ptwrite(u64 ctl, u64 value): 64 and 32 bits */
	.globl	traced_ptwrite, ptwrite_on, ptwrite_2, ptwrite_off
traced_ptwrite:
	trace_on
ptwrite_on:
	ptwriteq %rsi
ptwrite_2:
	ptwritel %esi
	trace_off
ptwrite_off:
	wrmsr
	ret

/* void traced_hlt(u64 ctl): RFLAGS.IF is 1 for the HLT only */
	.globl	traced_hlt, hlt_on, hlt_at, hlt_next, hlt_off
traced_hlt:
	trace_on
hlt_on:
	sti
hlt_at:
	hlt
hlt_next:
	cli
	trace_off
hlt_off:
	wrmsr
	ret

/* void traced_mwait(u64 ctl, u64 hints) */
	.globl	traced_mwait, mwait_on, mwait_at, mwait_next, mwait_off
traced_mwait:
	mov	$TEXT, %eax
	xor	%ecx, %ecx
	xor	%edx, %edx
	monitor
	trace_on
mwait_on:
	mov	%esi, %eax
	xor	%ecx, %ecx
	sti
mwait_at:
	mwait
mwait_next:
	cli
	trace_off
mwait_off:
	wrmsr
	ret

/* void traced_jumps(u64 ctl, u64 rounds): three taken branches, then an indirect jump */
	.globl	traced_jumps, jumps_on, jumps_to, jumps_off
traced_jumps:
	mov	%rsi, %r9
	trace_on
jumps_on:
	lea	jumps_to(%rip), %rax
	jmp	*%rax
jumps_to:
	dec	%r9
	jnz	jumps_on
	trace_off
jumps_off:
	wrmsr
	ret

/* void traced_int(u64 ctl): INT n to the handler of NMIs, which has the fewest branches */
	.globl	traced_int, int_on, int_at, int_next, int_off
traced_int:
	trace_on
int_on:
	nop
int_at:
	int	$2
int_next:
	nop
	trace_off
int_off:
	wrmsr
	ret

/* void traced_if(u64 ctl): RFLAGS.IF becomes 1, 0, 1, 1, 0, 0 */
	.globl	traced_if, if_on, if_sti, if_cli, if_popf, if_sti_2, if_popf_2, if_cli_2, if_off
traced_if:
	pushfq
	mov	(%rsp), %rsi
	or	$0x200, %rsi
	trace_on
if_on:
	nop
if_sti:
	sti
if_cli:
	cli
	push	%rsi
if_popf:
	popfq
if_sti_2:
	sti
if_popf_2:
	popfq
if_cli_2:
	cli
	trace_off
if_off:
	wrmsr
	ret

/* void traced_psb_if(u64 ctl): a jump while RFLAGS.IF is 1, and one while it is 0 */
	.globl	traced_psb_if, psb_if_on, psb_if_at, psb_if_off
traced_psb_if:
	trace_on
psb_if_on:
	sti
	jmp	psb_if_at
psb_if_at:
	cli
	trace_off
psb_if_off:
	wrmsr
	ret

/* void traced_fault(u64 ctl, const void *nothing): #PF */
	.globl	traced_fault, fault_on, fault_at, fault_next, fault_off
traced_fault:
	trace_on
fault_on:
	nop
fault_at:
	testb	$0, (%rsi)
fault_next:
	trace_off
fault_off:
	wrmsr
	ret
	.pushsection .fixups, "a"
	.quad	fault_at, fault_next
	.popsection

	/* SMM: like real mode, at SMBASE + 8000H. Stores CTL and counts the SMIs. */
	.code16
	.globl	smm_handler, smm_handler_end
smm_handler:
	xor	%ax, %ax
	mov	%ax, %ds
	mov	$RTIT_CTL, %ecx
	rdmsr
	mov	%eax, SMM_BOX
	mov	%edx, SMM_BOX + 4
	incl	SMM_BOX + 8
	rsm
smm_handler_end:
	.section .note.GNU-stack, "", @progbits
