/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * A PIP that a VMM writes in the processor's place (SDM 3 33.5.2.3): when one is due, its
 * bytes, and a packet at the output's position. Pure functions: they know registers and an
 * output, and no vCPU.
 */
#ifndef VMPT_VMM_PIP_WRITE_H
#define VMPT_VMM_PIP_WRITE_H

#include "arch/output.h"

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

/* What wrote CR3. */
enum vmpt_cr3_cause {
	VMPT_CR3_MOV,	      /* MOV CR3 that exited, or that the VMM emulated */
	VMPT_CR3_TASK_SWITCH, /* no PIP if CR3 stays as it is (Table 33-24) */
	VMPT_CR3_NESTED,      /* a transition between L1 and L2 that the VMM carries out */
	VMPT_CR3_INIT,	      /* INIT or SIPI that the VMM carries out */
	VMPT_CR3_RESTORE,     /* the VMM sets registers; see config.pip_on_restore */
	VMPT_CR3_SMM,	      /* SMI or RSM: never a PIP (33.2.9.3) */
};

/* A write of CR3. */
struct vmpt_cr3_write {
	u64 old_cr3, new_cr3; /* as the guest believes; bit 63 of a MOV's source is ignored */
	u8 cause;	      /* enum vmpt_cr3_cause */
	u8 cpl_before, cpl_after;
	bool pae_before, pae_after; /* PAE paging: CR3[11:5] count */
};

/* Bytes of a PIP (Table 33-24). */
#define VMPT_PIP_SIZE 8

/*
 * Whether a processor with @regs makes a PIP for @write (Table 33-24): by its cause, and
 * TriggerEn && ContextEn && OS. Under CR3 filtering ContextEn may change with the write; a
 * PIP is due if it is 1 on either side: the one that leaves the filtered process tells the
 * decoder so, the one that enters it is what the trace goes on with.
 */
bool vmpt_pip_due(const struct vmpt_pt_regs *regs, const struct vmpt_cr3_write *write);

/* The PIP of @write; @nr: the NR bit, 1 in VMX non-root operation that is not concealed. */
void vmpt_pip_bytes(const struct vmpt_cr3_write *write, bool nr, u8 pip[VMPT_PIP_SIZE]);

/*
 * Append a packet of @len bytes, all or nothing, at the position in @out's registers, and count
 * it in PacketByteCnt (Table 33-7). 0: done, or lost to STOP or an error: see @out's events, of
 * which an INT is the caller's to deliver. Negative: what a callback returned, and the position
 * is where it was: call again with the same. Reads four ToPA entries at most.
 */
int vmpt_packet_append(struct vmpt_output *out, const u8 *packet, size_t len);

/* The three in one: 1: appended as above, 0: no PIP was due, negative: as above. */
int vmpt_pip_append(struct vmpt_output *out, const struct vmpt_cr3_write *write, bool nr);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#endif
