/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* What vmm-lib/rtit*.c use of each other and no VMM calls. */
#ifndef VMPT_VMM_RTIT_INTERNAL_H
#define VMPT_VMM_RTIT_INTERNAL_H

#include "vmm-lib/rtit.h"

#endif
