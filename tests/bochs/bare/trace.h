/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Traces of the bare program: they go to OUT by a ToPA table in OUT_TABLE, and to the host as files
 * NAME.pt, which the judge compares with the expectations.
 */
#ifndef VMPT_TESTS_BARE_TRACE_H
#define VMPT_TESTS_BARE_TRACE_H

#include "arch/pt-regs.h"
#include "arch/topa.h"
#include "vmx.h"

/* Bits of IA32_RTIT_CTL that most traces have; TraceEn last. */
#define CTL_BASE (VMPT_CTL_OS | VMPT_CTL_USER | VMPT_CTL_BRANCH_EN | VMPT_CTL_TOPA)
#define CTL_ON	 (CTL_BASE | VMPT_CTL_TRACE_EN)

/* Sets all existing PT MSRs to 0, then the output to OUT, which is cleared. */
void trace_prepare(void);
/*
 * Call with TraceEn 0. Returns how many bytes were output; calls wrong(@why) if STATUS has Error.
 */
size_t trace_size(void);
/* NAME.pt with what came out. */
void trace_save(const char *name);
/* Traces the guest with @ctl from the WRMSR before the entry to the one after the exit. */
void trace_around(struct vm *vm, u64 ctl);
/* "NAME-" and letters for the set bits of @flags, for example "conceal" with "sx": conceal-sx. */
const char *trace_name(const char *name, const char *letters, unsigned int flags);

#endif
