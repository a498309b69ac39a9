// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* The policy that offers a guest all, and what a policy cannot do (SDM 3 33.3.1). */
#include "vmm-lib/caps.h"

const struct vmpt_policy vmpt_policy_all = { .ranges_max = VMPT_PT_RANGES_MAX };

static const struct {
	u8 cap; /* enum vmpt_pt_cap that the host has */
	bool hidden;
	const char *note;
} notes[] = {
	{ VMPT_CAP_PTWRITE, true,
	  "PTWRITE is hidden, but the guest can execute it: no control makes it #UD" },
	{ VMPT_CAP_POWER, false, "power events show the guest the C-states of the host" },
};

const char *vmpt_policy_note(const struct vmpt_caps *host, const struct vmpt_policy *policy,
			     unsigned int index)
{
	size_t i;

	for (i = 0; host->cpuid.present && i < VMPT_ARRAY_SIZE(notes); i++) {
		bool hidden = policy->no_pt || policy->hide >> notes[i].cap & 1;

		if (hidden == notes[i].hidden &&
		    vmpt_pt_cap_effective(&host->cpuid, (enum vmpt_pt_cap)notes[i].cap) && !index--)
			return notes[i].note;
	}
	return NULL;
}
