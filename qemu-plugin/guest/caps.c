// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The PT that the guest sees: everything that unit and plugin do right, or a baseline of vmm-lib.
 * The "host" for vmm-lib is the trace unit, a processor with all VMX controls.
 */
#include <stdio.h>
#include <string.h>

#include "qemu-plugin/guest/internal.h"

/* CPUID.14H with everything that works; see docs/qemu-plugin/guest-view.md. */
static const enum vmpt_pt_cap all[] = {
	VMPT_CAP_CR3_FILTER, VMPT_CAP_PSB_CYC,	    VMPT_CAP_IP_FILTER,	  VMPT_CAP_MTC,
	VMPT_CAP_PTWRITE,    VMPT_CAP_PRESERVE,	    VMPT_CAP_TNT_DISABLE, VMPT_CAP_TOPA,
	VMPT_CAP_TOPA_MULTI, VMPT_CAP_SINGLE_RANGE,
};

static void full(struct vmpt_pt_cpuid *cpuid)
{
	*cpuid = (struct vmpt_pt_cpuid){ .present = 1, .maxphyaddr = 40, .linear_bits = 57 };
	for (size_t i = 0; i < VMPT_ARRAY_SIZE(all); i++)
		vmpt_pt_cap_set(cpuid, all[i], 1);
	vmpt_pt_cap_set(cpuid, VMPT_CAP_LIP, 1);
	vmpt_pt_cap_set(cpuid, VMPT_CAP_MAX_SUBLEAF, 1);
	vmpt_pt_cap_set(cpuid, VMPT_CAP_RANGES, VMPT_PT_RANGES_MAX);
	vmpt_pt_cap_set(cpuid, VMPT_CAP_MTC_PERIODS, 0xffff);
	vmpt_pt_cap_set(cpuid, VMPT_CAP_CYC_THRESHOLDS, 0xffff);
	vmpt_pt_cap_set(cpuid, VMPT_CAP_PSB_FREQS, 0xffff);
}

static void print_names(void)
{
	const struct vmpt_baseline *baseline;

	fputs("full", stderr);
	for (size_t i = 0; (baseline = vmpt_baseline_builtin(i)); i++)
		fprintf(stderr, ", %s", baseline->name);
	fputc('\n', stderr);
}

int guest_caps(struct guest_view *view, const struct options *options)
{
	const char *name = options->cpu ? options->cpu : "qemu-icelake";
	const struct vmpt_baseline *baseline = vmpt_baseline_find(name);
	struct vmpt_refusal why = { .field = "", .rule = "" };

	full(&view->host.cpuid);
	view->host.vmx = VMPT_VMX_PT | VMPT_VMX_EPT | VMPT_VMX_CONCEAL_EXEC |
			 VMPT_VMX_CONCEAL_EXIT | VMPT_VMX_CONCEAL_ENTRY | VMPT_VMX_USE_GPA |
			 VMPT_VMX_CLEAR_CTL | VMPT_VMX_LOAD_CTL | VMPT_VMX_TSC_SCALING;
	if (baseline)
		view->caps = baseline->guest;
	else
		view->caps.cpuid = view->host.cpuid;
	if (!baseline && strcmp(name, "full")) {
		fprintf(stderr, "vmpt: pt=%s is not known; there are ", name);
		print_names();
		return -1;
	}
	/* IPs are linear addresses with and without LIP: flat segments make no difference. */
	vmpt_pt_cap_set(&view->host.cpuid, VMPT_CAP_LIP,
			vmpt_pt_cap(&view->caps.cpuid, VMPT_CAP_LIP));
	/*
	 * The crystal's frequency is not reported: Linux would use it for the APIC's timer, which
	 * has another frequency in QEMU.
	 */
	view->host.cpuid.tsc_denominator = view->caps.cpuid.tsc_denominator = CLOCK_DENOMINATOR;
	view->host.cpuid.tsc_numerator = view->caps.cpuid.tsc_numerator = CLOCK_NUMERATOR;
	if (vmpt_vmx_plan(&view->plan, &view->host, VMPT_USE_GUEST, &why)) {
		fprintf(stderr, "vmpt: guest-view: %s: %s\n", why.field, why.rule);
		return -1;
	}
	return 0;
}
