// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * A vCPU: its initialization and checks, RESET, and the events that change TraceEn without a write
 * by the guest: SMI and RSM (SDM 3 33.2.9.3), VMXON and VMXOFF on a processor without VMX_MISC[14]
 * (33.2.9.4).
 */
#include "vmm-lib/caps-rules.h"
#include "vmm-lib/internal.h"

static int missing(struct vmpt_refusal *why, const char *field)
{
	return vmpt_refuse(why, VMPT_E_INVAL, field, "missing, but this plan needs it", 0, 0);
}

static int check_mem_policies(const struct vmpt_config *config, struct vmpt_refusal *why)
{
	const char *rule = "not an enum vmpt_mem_policy";

	if (config->on_unbacked > VMPT_ON_MEM_RETRY)
		return vmpt_refuse(why, VMPT_E_INVAL, "on_unbacked", rule, 0, 0);
	if (config->on_mmio > VMPT_ON_MEM_RETRY)
		return vmpt_refuse(why, VMPT_E_INVAL, "on_mmio", rule, 0, 0);
	if (config->on_apic > VMPT_ON_MEM_RETRY)
		return vmpt_refuse(why, VMPT_E_INVAL, "on_apic", rule, 0, 0);
	if (config->on_restricted > VMPT_ON_MEM_RETRY)
		return vmpt_refuse(why, VMPT_E_INVAL, "on_restricted", rule, 0, 0);
	return 0;
}

/* The memory of a shadow: pages that a processor can use as ToPA tables. */
static int check_shadow(const struct vmpt_shadow_memory *memory, struct vmpt_refusal *why)
{
	u32 i;

	if (!memory)
		return missing(why, "shadow");
	if (!memory->pages || memory->pages > VMPT_SHADOW_PAGES_MAX)
		return vmpt_refuse(why, VMPT_E_INVAL, "shadow.pages",
				   "not 1 to VMPT_SHADOW_PAGES_MAX", 0, 0);
	if (!memory->origin)
		return missing(why, "shadow.origin");
	for (i = 0; i < memory->pages; i++) {
		if (!memory->page[i])
			return missing(why, "shadow.page");
		if (memory->page_hpa[i] & ~VMPT_TOPA_BASE)
			return vmpt_refuse(why, VMPT_E_INVAL, "shadow.page_hpa",
					   "not 4-KiB aligned", 0, 0);
	}
	return 0;
}

/* Callbacks of a guest with PT. Those that access the processor are all present or all absent. */
static int check_ops(const struct vmpt_ops *ops, const struct vmpt_vmx_plan *plan,
		     struct vmpt_refusal *why)
{
	/* For a guest with PT they may all be missing: a VMM that is the processor itself. */
	bool hardware = ops->hw_rdmsr || ops->hw_wrmsr || ops->set_guest_ctl ||
			(plan->stop_host && !plan->guest_pt);

	if (plan->guest_pt && !ops->guest_read)
		return missing(why, "ops.guest_read");
	if (plan->guest_pt && !ops->guest_write)
		return missing(why, "ops.guest_write");
	if (plan->guest_pt && !ops->inject_pmi)
		return missing(why, "ops.inject_pmi");
	if (plan->guest_pt && plan->shadow && !ops->guest_translate)
		return missing(why, "ops.guest_translate");
	if (hardware && !ops->hw_rdmsr)
		return missing(why, "ops.hw_rdmsr");
	if (hardware && !ops->hw_wrmsr)
		return missing(why, "ops.hw_wrmsr");
	if (hardware && plan->guest_pt && !ops->set_guest_ctl)
		return missing(why, "ops.set_guest_ctl");
	return 0;
}

/*
 * Whether the plan suits this processor: without the control, addresses that the guest takes for
 * its own would be the host's.
 */
static int check_processor(const struct vmpt_vmx_plan *plan, const struct vmpt_caps *host,
			   struct vmpt_refusal *why)
{
	const char *rule = "the plan needs it, and the processor lacks it";

	if (!plan->guest_pt)
		return 0;
	if (!plan->shadow && !(host->vmx & VMPT_VMX_USE_GPA))
		return vmpt_refuse(why, VMPT_E_CONTROLS,
				   "secondary control 24 (PT uses guest physical addresses)", rule,
				   0, 0);
	if (!plan->lists && !(host->vmx & VMPT_VMX_LOAD_CTL))
		return vmpt_refuse(why, VMPT_E_CONTROLS, "VM-entry control 18 (load IA32_RTIT_CTL)",
				   rule, 0, 0);
	if (!plan->lists && !(host->vmx & VMPT_VMX_CLEAR_CTL))
		return vmpt_refuse(why, VMPT_E_CONTROLS, "VM-exit control 25 (clear IA32_RTIT_CTL)",
				   rule, 0, 0);
	return 0;
}

/* Whether the plan suits this guest (33.5.2.1: no PT in CPUID under system-wide use). */
static int check_plan(const struct vmpt_vmx_plan *plan, const struct vmpt_caps *guest,
		      struct vmpt_refusal *why)
{
	bool for_guest = plan->use == VMPT_USE_GUEST;

	if (plan->use >= VMPT_USES || plan->guest_pt != for_guest)
		return vmpt_refuse(why, VMPT_E_CONTROLS, "plan.use",
				   "not as vmpt_vmx_plan() made it", 0, 0);
	if (guest->cpuid.present && !for_guest)
		return vmpt_refuse(why, VMPT_E_CONTROLS, VMPT_FIELD_PT,
				   "shown to a guest that has none under this use", 0, 0);
	if (!guest->cpuid.present && for_guest)
		return vmpt_refuse(why, VMPT_E_CONTROLS, VMPT_FIELD_PT,
				   "hidden from a guest that has PT under this use", 0, 0);
	return 0;
}

static int check_triggers(const struct vmpt_config *config, struct vmpt_refusal *why)
{
	if (config->triggers > VMPT_TRIGGERS_MAX)
		return vmpt_refuse(why, VMPT_E_INVAL, "triggers", "more than VMPT_TRIGGERS_MAX",
				   config->triggers, VMPT_TRIGGERS_MAX);
	if (config->triggers && !config->trigger_msrs)
		return missing(why, "trigger_msrs");
	return 0;
}

static int check_config(const struct vmpt_config *config, struct vmpt_refusal *why)
{
	int err;

	if (!config->host)
		return missing(why, "host");
	if (!config->guest)
		return missing(why, "guest");
	if (!config->plan)
		return missing(why, "plan");
	if (!config->ops)
		return missing(why, "ops");
	err = check_plan(config->plan, config->guest, why);
	if (!err && config->plan->guest_pt)
		err = vmpt_caps_check(config->host, config->guest, why);
	if (!err)
		err = check_processor(config->plan, config->host, why);
	if (!err)
		err = check_ops(config->ops, config->plan, why);
	if (!err && config->plan->guest_pt && config->plan->shadow)
		err = check_shadow(config->shadow, why);
	if (!err)
		err = check_mem_policies(config, why);
	if (!err)
		err = check_triggers(config, why);
	return err;
}

int vmpt_vcpu_init_abi(struct vmpt_vcpu *vcpu, const struct vmpt_config *config,
		       struct vmpt_refusal *why, u64 abi)
{
	int err;

	if (abi != VMPT_VCPU_ABI)
		return -VMPT_E_VERSION;
	if (!vcpu || !config)
		return vmpt_refuse(why, VMPT_E_INVAL, "config", "missing", 0, 0);
	err = check_config(config, why);
	if (err)
		return err;
	memset(vcpu, 0, sizeof(*vcpu));
	vcpu->ops = config->ops;
	vcpu->opaque = config->opaque;
	vcpu->guest = *config->guest;
	vcpu->guest.vmx = 0; /* PT is not offered to L1's guests */
	vmpt_caps_no_triggers(&vcpu->guest);
	vcpu->plan = *config->plan;
	vcpu->on_mem[VMPT_MEM_UNBACKED] = config->on_unbacked;
	vcpu->on_mem[VMPT_MEM_MMIO] = config->on_mmio;
	vcpu->on_mem[VMPT_MEM_APIC] = config->on_apic;
	vcpu->on_mem[VMPT_MEM_RESTRICTED] = config->on_restricted;
	vcpu->xsave = config->xsave && vcpu->plan.guest_pt;
	vcpu->pip_on_restore = config->pip_on_restore;
	vcpu->restore_host = config->restore_host;
	vcpu->tsc_multiplier = config->tsc_multiplier;
	vcpu->trigger_msrs = config->trigger_msrs;
	vcpu->triggers = config->triggers;
	vcpu->adjust_budget = config->adjust_budget;
	vcpu->adjust_traced = config->adjust_traced;
	/*
	 * The guest's rules are the host's or narrower, because vmpt_caps_check() has passed: what
	 * the guest may write can be written to the processor without a #GP in the host.
	 */
	vmpt_pt_rules_init(&vcpu->rules, &vcpu->guest.cpuid);
	vmpt_pt_rules_init(&vcpu->host_rules, &config->host->cpuid);
	if (vmpt_vcpu_shadowed(vcpu))
		vcpu->shadow.memory = config->shadow;
	vmpt_vcpu_reset(vcpu, false);
	return 0;
}

/* Output goes nowhere now: no shadow describes it and no TSC in it is left to adjust. */
static void forget_output(struct vmpt_vcpu *vcpu)
{
	vcpu->shadow.end = VMPT_SHADOW_NONE;
	vcpu->shadow.stale = vmpt_vcpu_shadowed(vcpu);
	memset(&vcpu->scan, 0, sizeof(vcpu->scan));
	vcpu->scan_set = false;
	vcpu->cut_len[0] = 0;
	vcpu->cut_len[1] = 0;
	vcpu->traced = 0;
	vcpu->adjust_more = false;
}

void vmpt_vcpu_reset(struct vmpt_vcpu *vcpu, bool warm)
{
	if (vcpu->entered)
		return;
	if (warm)
		vmpt_pt_reset_warm(&vcpu->rules, &vcpu->regs);
	else
		vmpt_pt_reset_cold(&vcpu->regs);
	vcpu->global_status = false;
	vcpu->held_pend_pmi = false;
	vcpu->pmi_seen = false;
	vcpu->pmi_again = false;
	(void)vmpt_vcpu_vmxoff(vcpu); /* it is not entered */
	vcpu->in_smm = false;
	vcpu->smm_trace_en = false;
	vcpu->ran = false;
	vcpu->force_psb = false;
	vcpu->lost = false;
	forget_output(vcpu);
}

/* The processor flushed its buffers at the exit, so the output is complete. */
void vmpt_vcpu_clear_trace_en(struct vmpt_vcpu *vcpu)
{
	vmpt_pt_clear_trace_en(&vcpu->regs);
	if (vmpt_vcpu_shadowed(vcpu))
		vcpu->shadow.stale = true;
}

int vmpt_vcpu_smi(struct vmpt_vcpu *vcpu)
{
	if (vcpu->entered || vcpu->in_smm)
		return -VMPT_E_STATE;
	vcpu->in_smm = true;
	vcpu->smm_trace_en = vcpu->regs.ctl & VMPT_CTL_TRACE_EN;
	vmpt_vcpu_clear_trace_en(vcpu);
	return 0;
}

/*
 * The other bits of CTL, as SMM left them, may not be legal with TraceEn (ToPA cleared on a
 * processor without single-range output). The manual is silent; such a state must never reach the
 * processor, and RSM to an invalid state is a shutdown.
 */
int vmpt_vcpu_rsm(struct vmpt_vcpu *vcpu)
{
	enum vmpt_gp_reason why;

	if (vcpu->entered || !vcpu->in_smm)
		return -VMPT_E_STATE;
	if (vcpu->regs.ctl & VMPT_CTL_TRACE_EN)
		return VMPT_SHUTDOWN;
	if (vcpu->smm_trace_en && vmpt_pt_wrmsr(&vcpu->rules, &vcpu->regs, VMPT_MSR_RTIT_CTL,
						vcpu->regs.ctl | VMPT_CTL_TRACE_EN, &why))
		return VMPT_SHUTDOWN;
	vcpu->in_smm = false;
	if (vcpu->smm_trace_en)
		vmpt_vcpu_trace_enabled(vcpu);
	vcpu->smm_trace_en = false;
	return 0;
}

int vmpt_vcpu_vmxon(struct vmpt_vcpu *vcpu)
{
	if (vcpu->entered)
		return -VMPT_E_STATE;
	vcpu->vmx_operation = true;
	vcpu->rules.no_ctl_writes = 1;
	/* An RSM in VMX operation cannot set it either. */
	vcpu->smm_trace_en = false;
	if (vcpu->regs.ctl & VMPT_CTL_TRACE_EN)
		vmpt_vcpu_clear_trace_en(vcpu);
	return 0;
}

int vmpt_vcpu_vmxoff(struct vmpt_vcpu *vcpu)
{
	if (vcpu->entered)
		return -VMPT_E_STATE;
	vcpu->vmx_operation = false;
	vcpu->rules.no_ctl_writes = 0;
	return 0;
}
