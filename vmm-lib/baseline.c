// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Baselines for pools of hosts between which guests migrate: the largest set that all the given
 * hosts have in common (SDM 3 33.3.1), and named sets that come with the library.
 */
#include "vmm-lib/caps-rules.h"

/*
 * Only sets that could be checked against a public source are listed; none was read from a
 * processor. Address widths are those of a guest: 40 bits are QEMU's default.
 *
 * qemu-icelake: the fixed set of QEMU's target/i386/cpu.c (CPUID leaf 14H constants) for a guest
 * with intel-pt, without LIP. It was chosen from "the Intel PT feature set reported from ICX
 * silicon", and SPR has less in EBX[15:0] of subleaf 1, says "[PATCH v3 5/8] target/i386/intel-pt:
 * Rework/rename the default INTEL-PT feature set", qemu-devel, 2022-12-08. Other versions of QEMU
 * may differ. CR3 filter, PSB and CYC, two address ranges, MTC periods 0, 3, 6, 9, CYC thresholds 0
 * to 12, PSB of 2K to 64K, ToPA of many entries and single range, IPs not LIPs.
 */
static const struct vmpt_baseline builtin[] = {
	{
		.name = "qemu-icelake",
		.guest.cpuid = {
			.present = 1,
			.maxphyaddr = 40,
			.linear_bits = 48,
			.leaf14 = {
				{ .eax = 1, .ebx = 0xf, .ecx = 0x7 },
				{ .eax = 0x0249u << 16 | 2, .ebx = 0x003fu << 16 | 0x1fff },
			},
		},
	},
};

/* Truncate a long name, but not in the middle of a UTF-8 character. */
static void set_name(struct vmpt_baseline *baseline, const char *name)
{
	size_t n = 0;

	memset(baseline->name, 0, sizeof(baseline->name));
	while (n < sizeof(baseline->name) - 1 && name[n]) {
		baseline->name[n] = name[n];
		n++;
	}
	if (!name[n])
		return;
	while (n && ((u8)name[n] & 0xc0) == 0x80)
		n--;
	memset(baseline->name + n, 0, sizeof(baseline->name) - n);
}

static u8 least(u8 a, u8 b)
{
	return a < b ? a : b;
}

/* Reduce @common to what @host's offer has too. Both were offered with PT. */
static int cut(struct vmpt_pt_cpuid *common, const struct vmpt_pt_cpuid *host,
	       struct vmpt_refusal *why)
{
	unsigned int cap;
	u32 lip = vmpt_pt_cap(host, VMPT_CAP_LIP);

	if (lip != vmpt_pt_cap(common, VMPT_CAP_LIP))
		return vmpt_refuse(why, VMPT_E_CAPS, vmpt_cap_field(VMPT_CAP_LIP),
				   "differs within the pool", vmpt_pt_cap(common, VMPT_CAP_LIP),
				   lip);
	for (cap = 0; cap < VMPT_CAPS; cap++) {
		u32 a = vmpt_pt_cap(common, cap), b = vmpt_pt_cap(host, cap);

		if (cap == VMPT_CAP_RANGES || cap == VMPT_CAP_MAX_SUBLEAF)
			vmpt_pt_cap_set(common, cap, a < b ? a : b);
		else
			vmpt_pt_cap_set(common, cap, a & b);
	}
	vmpt_leaf_close(common);
	if (!vmpt_pt_cap(common, VMPT_CAP_TOPA) && !vmpt_pt_cap(common, VMPT_CAP_SINGLE_RANGE))
		return vmpt_refuse(why, VMPT_E_CAPS, VMPT_FIELD_OUTPUT,
				   "no output scheme is common to the pool", 0,
				   host->leaf14[0].ecx & 5);

	common->maxphyaddr = least(common->maxphyaddr, host->maxphyaddr);
	common->linear_bits = least(common->linear_bits, host->linear_bits);
	/* A clock that is not the same on all hosts is not enumerated. */
	if (common->tsc_denominator != host->tsc_denominator ||
	    common->tsc_numerator != host->tsc_numerator || common->crystal_hz != host->crystal_hz)
		common->tsc_denominator = common->tsc_numerator = common->crystal_hz = 0;
	return 0;
}

int vmpt_baseline_make(struct vmpt_baseline *baseline, const char *name,
		       const struct vmpt_caps *hosts, size_t n, const struct vmpt_policy *policy,
		       struct vmpt_refusal *why, size_t *which)
{
	struct vmpt_caps offer;
	size_t i;
	int err = n ? 0 : -VMPT_E_INVAL;

	memset(baseline, 0, sizeof(*baseline));
	set_name(baseline, name);
	for (i = 0; !err && i < n; i++) {
		if (which)
			*which = i;
		err = vmpt_caps_offer(&hosts[i], policy, &offer, why);
		if (!err && !offer.cpuid.present)
			err = vmpt_refuse(why, VMPT_E_CAPS, VMPT_FIELD_PT,
					  hosts[i].cpuid.present ? "hidden by the policy"
								 : "the host has no PT",
					  1, 0);
		if (!err && i)
			err = cut(&baseline->guest.cpuid, &offer.cpuid, why);
		else if (!err)
			baseline->guest = offer;
	}
	/* A feature that one host lacks may be one that another cannot hide. */
	for (i = 0; !err && i < n; i++) {
		if (which)
			*which = i;
		err = vmpt_caps_check(&hosts[i], &baseline->guest, why);
	}
	if (err)
		memset(&baseline->guest, 0, sizeof(baseline->guest));
	return err;
}

const struct vmpt_baseline *vmpt_baseline_builtin(size_t index)
{
	return index < VMPT_ARRAY_SIZE(builtin) ? &builtin[index] : NULL;
}

const struct vmpt_baseline *vmpt_baseline_find(const char *name)
{
	size_t i, at;

	for (i = 0; i < VMPT_ARRAY_SIZE(builtin); i++) {
		for (at = 0; builtin[i].name[at] && builtin[i].name[at] == name[at]; at++)
			;
		if (builtin[i].name[at] == name[at])
			return &builtin[i];
	}
	return NULL;
}
