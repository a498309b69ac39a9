/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* Translation of PT's output and table addresses by EPT. */
#ifndef VMPT_BOCHS_EPT_H
#define VMPT_BOCHS_EPT_H

#include "pc.h"

/*
 * Translate guest-physical address @gpa for a read, or for a write with all its effects:
 * accessed and dirty flags, page-modification log. True: *@pa; else *@exit.
 */
bool ept_translate(struct pc_cpu *pc, u64 gpa, bool write, u64 *pa, struct ept_exit *exit);

#endif
