// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Which VMX controls a use of PT needs on a given processor (SDM 3 33.5.1, 33.5.2, Table 33-52),
 * and what replaces missing ones: MSR lists for load and clear (33.5.2.2), a shadow ToPA for
 * guest-physical output.
 */
#include "vmm-lib/vmx.h"
#include "arch/pt-regs.h"
#include "vmm-lib/caps-rules.h"

#define CONCEAL_ALL (VMPT_VMX_CONCEAL_EXEC | VMPT_VMX_CONCEAL_EXIT | VMPT_VMX_CONCEAL_ENTRY)
#define LOAD_CLEAR  (VMPT_VMX_LOAD_CTL | VMPT_VMX_CLEAR_CTL)
#define GPA_NEEDS   (VMPT_VMX_EPT | LOAD_CLEAR)

enum field { SECONDARY, EXIT, ENTRY, FIELDS };

/* The seven controls related to PT: where each one is, and which capability reports it. */
static const struct {
	const char *name;
	u8 field;
	u32 bit, cap;
} controls[] = {
	{ "secondary control 1 (enable EPT)", SECONDARY, VMPT_SECONDARY_EPT, VMPT_VMX_EPT },
	{ "secondary control 19 (conceal VMX from PT)", SECONDARY, VMPT_SECONDARY_CONCEAL,
	  VMPT_VMX_CONCEAL_EXEC },
	{ "secondary control 24 (PT uses guest physical addresses)", SECONDARY,
	  VMPT_SECONDARY_PT_USE_GPA, VMPT_VMX_USE_GPA },
	{ "VM-exit control 24 (conceal VMX from PT)", EXIT, VMPT_EXIT_CONCEAL,
	  VMPT_VMX_CONCEAL_EXIT },
	{ "VM-exit control 25 (clear IA32_RTIT_CTL)", EXIT, VMPT_EXIT_CLEAR_RTIT_CTL,
	  VMPT_VMX_CLEAR_CTL },
	{ "VM-entry control 17 (conceal VMX from PT)", ENTRY, VMPT_ENTRY_CONCEAL,
	  VMPT_VMX_CONCEAL_ENTRY },
	{ "VM-entry control 18 (load IA32_RTIT_CTL)", ENTRY, VMPT_ENTRY_LOAD_RTIT_CTL,
	  VMPT_VMX_LOAD_CTL },
};

/*
 * Which of @host's controls can be used. Everything about PT depends on IA32_VMX_MISC[14] (33.5.1);
 * "PT uses guest physical addresses" depends on EPT, load and clear, which VM entry checks.
 */
static u32 usable(const struct vmpt_caps *host)
{
	u32 vmx = host->vmx;

	if (!host->cpuid.present || !(vmx & VMPT_VMX_PT))
		vmx &= ~(u32)(VMPT_VMX_PT | VMPT_VMX_USE_GPA | LOAD_CLEAR | CONCEAL_ALL);
	if ((vmx & GPA_NEEDS) != GPA_NEEDS)
		vmx &= ~(u32)VMPT_VMX_USE_GPA;
	return vmx;
}

static u32 *value_of(struct vmpt_vmx_plan *plan, enum field field)
{
	if (field == SECONDARY)
		return &plan->secondary.value;
	return field == EXIT ? &plan->exit.value : &plan->entry.value;
}

/* Turn on the controls whose capabilities are in @caps. */
static void turn_on(struct vmpt_vmx_plan *plan, u32 caps)
{
	size_t i;

	for (i = 0; i < VMPT_ARRAY_SIZE(controls); i++)
		if (controls[i].cap & caps)
			*value_of(plan, controls[i].field) |= controls[i].bit;
}

/* Conceal as the use and the way of clearing TraceEn require. */
static int plan_conceal(struct vmpt_vmx_plan *plan, u32 vmx, struct vmpt_refusal *why)
{
	u32 need = plan->conceal ? CONCEAL_ALL : 0;
	size_t i;

	/*
	 * With lists TraceEn is still 1 while the exit is carried out: without this control the
	 * exit's PIP, with the host's CR3, would go to the guest's buffer.
	 */
	if (plan->lists)
		need |= VMPT_VMX_CONCEAL_EXIT;
	for (i = 0; i < VMPT_ARRAY_SIZE(controls); i++)
		if (controls[i].cap & need & ~vmx)
			return vmpt_refuse(
				why, VMPT_E_CONTROLS, controls[i].name,
				plan->conceal
					? "without it the guest sees addresses of VMCSs"
					: "MSR lists need it to keep the host's CR3 to itself",
				1, 0);
	turn_on(plan, need);
	return 0;
}

/* The guest traces itself (33.5.2.2). */
static int plan_guest(struct vmpt_vmx_plan *plan, const struct vmpt_caps *host, u32 vmx,
		      struct vmpt_refusal *why)
{
	plan->guest_pt = true;
	plan->stop_host = true;
	plan->lists = (vmx & LOAD_CLEAR) != LOAD_CLEAR;
	plan->shadow = !(vmx & VMPT_VMX_USE_GPA);
	if (plan->shadow && !vmpt_pt_cap_effective(&host->cpuid, VMPT_CAP_TOPA_MULTI))
		return vmpt_refuse(why, VMPT_E_CONTROLS, "CPUID.14H.0:ECX[1]",
				   "a shadow ToPA needs tables with more than one output entry", 1,
				   0);
	if (!plan->lists)
		turn_on(plan, LOAD_CLEAR);
	if (!plan->shadow) {
		plan->secondary.mask |= VMPT_SECONDARY_EPT;
		turn_on(plan, VMPT_VMX_USE_GPA | VMPT_VMX_EPT);
	}
	return plan_conceal(plan, vmx, why);
}

static int plan_use(struct vmpt_vmx_plan *plan, const struct vmpt_caps *host, u32 vmx,
		    struct vmpt_refusal *why)
{
	/*
	 * LBRs of the guest do not work while PT is enabled. Under USE_HOST it is off in the guest.
	 */
	plan->no_lbr = vmx & VMPT_VMX_NO_LBR &&
		       (plan->use == VMPT_USE_GUEST || plan->use == VMPT_USE_SYSTEM);
	if (plan->use == VMPT_USE_NONE)
		return 0;
	if (!host->cpuid.present)
		return vmpt_refuse(why, VMPT_E_CONTROLS, "CPUID.7.0:EBX[25]", "the host has no PT",
				   1, 0);
	if (plan->use == VMPT_USE_HOST) {
		/* Without IA32_VMX_MISC[14] TraceEn is 0 in VMX operation (33.2.9.4). */
		plan->stop_host = vmx & VMPT_VMX_PT;
		/* With a guest CTL of 0, an entry that would trace the guest fails. */
		if ((vmx & LOAD_CLEAR) == LOAD_CLEAR)
			turn_on(plan, LOAD_CLEAR);
		return 0;
	}
	if (!(vmx & VMPT_VMX_PT))
		return vmpt_refuse(why, VMPT_E_CONTROLS, VMPT_FIELD_VMX_MISC,
				   "PT does not trace in VMX operation", 1, 0);
	return plan->use == VMPT_USE_SYSTEM ? 0 : plan_guest(plan, host, vmx, why);
}

int vmpt_vmx_plan(struct vmpt_vmx_plan *plan, const struct vmpt_caps *host, unsigned int use,
		  struct vmpt_refusal *why)
{
	bool show = use == (VMPT_USE_GUEST | VMPT_USE_SHOW_HOST_VMCS);

	memset(plan, 0, sizeof(*plan));
	if (use >= VMPT_USES && !show)
		return vmpt_refuse(why, VMPT_E_INVAL, "plan.use", "not an enum vmpt_use", use,
				   VMPT_USES - 1);
	plan->use = show ? VMPT_USE_GUEST : (u8)use;
	plan->conceal = use == VMPT_USE_GUEST;
	plan->secondary.mask = VMPT_SECONDARY_CONCEAL | VMPT_SECONDARY_PT_USE_GPA;
	plan->exit.mask = VMPT_EXIT_CONCEAL | VMPT_EXIT_CLEAR_RTIT_CTL;
	plan->entry.mask = VMPT_ENTRY_CONCEAL | VMPT_ENTRY_LOAD_RTIT_CTL;
	return plan_use(plan, host, usable(host), why);
}

/* The rules that hold for every use. */
static int check_controls(const struct vmpt_caps *host, const u32 field[FIELDS],
			  struct vmpt_refusal *why)
{
	bool gpa = field[SECONDARY] & VMPT_SECONDARY_PT_USE_GPA;
	size_t i;

	for (i = 0; i < VMPT_ARRAY_SIZE(controls); i++) {
		if (!(field[controls[i].field] & controls[i].bit))
			continue;
		if (!(host->vmx & controls[i].cap))
			return vmpt_refuse(why, VMPT_E_CONTROLS, controls[i].name,
					   "the processor lacks it", 1, 0);
		if (controls[i].cap & CONCEAL_ALL && !(host->vmx & VMPT_VMX_PT))
			return vmpt_refuse(why, VMPT_E_CONTROLS, controls[i].name,
					   "IA32_VMX_MISC[14] is 0", 1, 0);
	}
	if (gpa && !(field[SECONDARY] & VMPT_SECONDARY_EPT))
		return vmpt_refuse(why, VMPT_E_CONTROLS, controls[0].name,
				   "guest physical addresses need it", 0, 1);
	if (gpa && !(field[ENTRY] & VMPT_ENTRY_LOAD_RTIT_CTL))
		return vmpt_refuse(why, VMPT_E_CONTROLS, controls[6].name,
				   "guest physical addresses need it", 0, 1);
	if (gpa && !(field[EXIT] & VMPT_EXIT_CLEAR_RTIT_CTL))
		return vmpt_refuse(why, VMPT_E_CONTROLS, controls[4].name,
				   "guest physical addresses need it", 0, 1);
	return 0;
}

int vmpt_vmx_check(const struct vmpt_vmx_plan *plan, const struct vmpt_caps *host, u32 secondary,
		   u32 exit, u32 entry, struct vmpt_refusal *why)
{
	const u32 field[FIELDS] = { secondary, exit, entry };
	const struct vmpt_control *want[FIELDS] = { &plan->secondary, &plan->exit, &plan->entry };
	bool load = entry & VMPT_ENTRY_LOAD_RTIT_CTL, clear = exit & VMPT_EXIT_CLEAR_RTIT_CTL;
	int err = check_controls(host, field, why);
	size_t i;

	if (err)
		return err;
	if (plan->guest_pt && load && !clear)
		return vmpt_refuse(why, VMPT_E_CONTROLS, controls[4].name,
				   "load without clear: the host is traced", 0, 1);
	if (plan->guest_pt && clear && !load)
		return vmpt_refuse(why, VMPT_E_CONTROLS, controls[6].name,
				   "clear without load: the guest is not traced", 0, 1);
	for (i = 0; i < VMPT_ARRAY_SIZE(controls); i++) {
		const struct vmpt_control *control = want[controls[i].field];
		u32 bit = controls[i].bit, is = field[controls[i].field];

		if (control->mask & bit && (is ^ control->value) & bit)
			return vmpt_refuse(why, VMPT_E_CONTROLS, controls[i].name,
					   "not what the plan's use needs", !!(is & bit),
					   !!(control->value & bit));
	}
	return 0;
}

void vmpt_vmx_lists(const struct vmpt_vmx_plan *plan, u64 guest_ctl, struct vmpt_msr_lists *lists)
{
	memset(lists, 0, sizeof(*lists));
	if (!plan->lists)
		return;
	/* The other MSRs are written by vmpt_vcpu_enter(): CTL is alone, first and last. */
	lists->entry_load[0].msr = VMPT_MSR_RTIT_CTL;
	lists->entry_load[0].value = guest_ctl;
	lists->entry_loads = 1;
	lists->exit_store[0].msr = VMPT_MSR_RTIT_CTL;
	lists->exit_stores = 1;
	/* Only TraceEn = 0 matters: the other MSRs still hold the guest's values. */
	lists->exit_load[0].msr = VMPT_MSR_RTIT_CTL;
	lists->exit_load[0].value = 0;
	lists->exit_loads = 1;
}
