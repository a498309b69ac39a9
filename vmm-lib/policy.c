// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* The policy that offers a guest all that the host has and the library virtualizes. */
#include "vmm-lib/caps.h"

const struct vmpt_policy vmpt_policy_all = { .ranges_max = VMPT_PT_RANGES_MAX };
