// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* A guest's RTIT: making a vCPU, RESET, and the guest's RDMSR and WRMSR (3.3). */
#include "vmm-lib/rtit-internal.h"

#define BOUNCE_MIN 128u
#define BOUNCE_MAX 0x400000u
/* BASE_ADDR has bits 35:6 (Table 12). */
#define PHYS_END (1ULL << 36)

static bool bounce_fits(const struct vmpt_rtit_bounce *bounce)
{
	u32 size = bounce->size;

	return size >= BOUNCE_MIN && size <= BOUNCE_MAX && !(size & (size - 1)) &&
	       !(bounce->hpa & (size - 1)) && bounce->hpa < PHYS_END;
}

static bool config_fits(const struct vmpt_rtit_config *config)
{
	const struct vmpt_rtit_ops *ops = config->ops;

	if (!ops || !ops->guest_write || !ops->hw_rdmsr != !ops->hw_wrmsr)
		return false;
	if (config->output > VMPT_RTIT_BOUNCE || config->on_unbacked > VMPT_ON_MEM_RETRY ||
	    config->on_mmio > VMPT_ON_MEM_RETRY || config->on_apic > VMPT_ON_MEM_RETRY ||
	    config->on_restricted > VMPT_ON_MEM_RETRY)
		return false;
	if (config->bounce.bytes && !bounce_fits(&config->bounce))
		return false;
	if (!ops->hw_wrmsr)
		return true;
	if (config->output == VMPT_RTIT_BOUNCE)
		return config->bounce.bytes;
	return ops->guest_translate && !config->rewrite_clock;
}

int vmpt_rtit_vcpu_init(struct vmpt_rtit_vcpu *vcpu, const struct vmpt_rtit_config *config)
{
	memset(vcpu, 0, sizeof(*vcpu));
	if (!config || !config_fits(config))
		return -VMPT_E_INVAL;
	vcpu->config = *config;
	vmpt_rtit_reset(&vcpu->regs);
	return 0;
}

int vmpt_rtit_vcpu_reset(struct vmpt_rtit_vcpu *vcpu)
{
	if (vcpu->loaded)
		return -VMPT_E_STATE;
	vmpt_rtit_reset(&vcpu->regs);
	vcpu->path = VMPT_RTIT_PATH_NONE;
	vcpu->used = vcpu->unseen = 0;
	vcpu->sync_lost = false;
	return 0;
}

int vmpt_rtit_vcpu_rdmsr(struct vmpt_rtit_vcpu *vcpu, u32 msr, bool context_en, u64 *value)
{
	enum vmpt_gp_reason why = VMPT_GP_NONE;
	int err;

	err = vmpt_rtit_rdmsr(&vcpu->config.rules, &vcpu->regs, msr, value, &why);
	if (err == VMPT_GP)
		vcpu->gp_why = (u8)why;
	if (err)
		return err;
	if (msr == VMPT_RTIT_MSR_STATUS) {
		*value &= ~VMPT_RTIT_STATUS_CONTEXT_EN;
		if (context_en)
			*value |= VMPT_RTIT_STATUS_CONTEXT_EN;
	}
	return 0;
}

int vmpt_rtit_vcpu_wrmsr(struct vmpt_rtit_vcpu *vcpu, u32 msr, u64 value)
{
	enum vmpt_gp_reason why = VMPT_GP_NONE;
	int err;

	err = vmpt_rtit_wrmsr(&vcpu->config.rules, &vcpu->regs, msr, value, &why);
	if (err == VMPT_GP)
		vcpu->gp_why = (u8)why;
	return err;
}
