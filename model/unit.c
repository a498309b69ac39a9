// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* Initialization of a trace unit, its MSRs and RESET (SDM 3 33.2.8, Table 33-56 cases 1 to 3). */
#include "model/emit.h"

int vmpt_unit_init_abi(struct vmpt_unit *unit, const struct vmpt_unit_config *config, u64 abi)
{
	if (abi != VMPT_UNIT_ABI)
		return -VMPT_E_VERSION;
	if (!config->sink == !config->memory)
		return -VMPT_E_INVAL;
	memset(unit, 0, sizeof(*unit));
	unit->config = *config;
	unit->vmx.vmcs = VMPT_PT_VMCS_NONE;
	unit->last_exec = 0xff;
	vmpt_pt_rules_init(&unit->rules, &config->cpuid);
	vmpt_pt_reset_cold(&unit->regs);
	return 0;
}

void vmpt_unit_reset(struct vmpt_unit *unit, bool warm)
{
	vmpt_model_disable(unit);
	if (warm)
		vmpt_pt_reset_warm(&unit->rules, &unit->regs);
	else
		vmpt_pt_reset_cold(&unit->regs);
	unit->context_en = false;
	unit->filter_en = false;
	memset(&unit->mode, 0, sizeof(unit->mode));
	memset(&unit->vmx, 0, sizeof(unit->vmx));
	unit->vmx.vmcs = VMPT_PT_VMCS_NONE;
	unit->rules.no_ctl_writes = 0;
	unit->smm_trace_en = false;
	unit->in_tx = false;
	unit->tx_nested = 0;
	vmpt_model_update(unit);
}

int vmpt_unit_rdmsr(struct vmpt_unit *unit, u32 msr, u64 *value)
{
	return vmpt_pt_rdmsr(&unit->rules, &unit->regs, msr, value, NULL);
}

/* TraceEn 1 to 0 by an instruction at @ip: FUP(CLIP), TIP.PGD(). */
static void stop(struct vmpt_unit *unit, u64 ip)
{
	if (unit->packet_en) {
		vmpt_model_emit_ip(unit, VMPT_PT_FUP, ip);
		vmpt_model_emit_no_ip(unit, VMPT_PT_TIP_PGD);
	}
	vmpt_model_disable(unit);
}

int vmpt_unit_wrmsr(struct vmpt_unit *unit, u32 msr, u64 value, u64 ip, u64 next_ip)
{
	struct vmpt_pt_regs regs = unit->regs;
	bool was = regs.ctl & VMPT_CTL_TRACE_EN, is;
	int ret = vmpt_pt_wrmsr(&unit->rules, &regs, msr, value, NULL);

	if (ret)
		return ret;
	is = regs.ctl & VMPT_CTL_TRACE_EN;
	if (was && !is) {
		stop(unit, ip); /* moves the OUTPUT MSRs: only CTL is taken over */
		unit->regs.ctl = regs.ctl;
	} else {
		unit->regs = regs;
		if (!was && is)
			vmpt_model_enable(unit, next_ip, true);
	}
	return 0;
}

/* All MSRs that exist, CTL last; nothing unless all are legal (33.2.8.1, 33.3.5.2). */
int vmpt_unit_xrstors(struct vmpt_unit *unit, const struct vmpt_pt_regs *from, u64 ip, u64 next_ip)
{
	struct vmpt_pt_regs want = *from, regs = unit->regs;
	u32 msr;

	if (regs.ctl & VMPT_CTL_TRACE_EN)
		return VMPT_GP;
	for (msr = VMPT_MSR_RTIT_OUTPUT_BASE; msr <= VMPT_MSR_RTIT_ADDR3_B; msr++) {
		if (msr == VMPT_MSR_RTIT_CTL || !vmpt_pt_msr_exists(&unit->rules, msr))
			continue;
		if (vmpt_pt_wrmsr(&unit->rules, &regs, msr, *vmpt_pt_reg(&want, msr), NULL))
			return VMPT_GP;
	}
	if (vmpt_pt_wrmsr(&unit->rules, &regs, VMPT_MSR_RTIT_CTL, want.ctl, NULL))
		return VMPT_GP;
	want.ctl = regs.ctl;
	regs.ctl = unit->regs.ctl;
	unit->regs = regs;
	return vmpt_unit_wrmsr(unit, VMPT_MSR_RTIT_CTL, want.ctl, ip, next_ip);
}

void vmpt_unit_xsaves(struct vmpt_unit *unit, struct vmpt_pt_regs *regs, u64 ip)
{
	u64 ctl = unit->regs.ctl;

	if (ctl & VMPT_CTL_TRACE_EN)
		stop(unit, ip);
	*regs = unit->regs;
	regs->ctl = ctl;
}
