// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* A guest's RTIT: initialization of a vCPU, RESET, and the guest's RDMSR and WRMSR (3.3). */
#include "vmm-lib/rtit/internal.h"

#define BOUNCE_MIN 128u
#define BOUNCE_MAX 0x400000u

static bool bounce_fits(const struct vmpt_rtit_bounce *bounce)
{
	u32 size = bounce->size;

	return size >= BOUNCE_MIN && size <= BOUNCE_MAX && !(size & (size - 1)) &&
	       !(bounce->hpa & (size - 1)) && bounce->hpa < VMPT_RTIT_PHYS_END;
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

int vmpt_rtit_vcpu_init_abi(struct vmpt_rtit_vcpu *vcpu, const struct vmpt_rtit_config *config,
			    u64 abi)
{
	if (abi != VMPT_RTIT_VCPU_ABI)
		return -VMPT_E_VERSION;
	memset(vcpu, 0, sizeof(*vcpu));
	if (!config || !config_fits(config))
		return -VMPT_E_INVAL;
	vcpu->config = *config;
	/* Even if the processor's OFFSET is wrong, no old host memory is copied to the guest. */
	if (config->bounce.bytes)
		memset(config->bounce.bytes, 0, config->bounce.size);
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
	vcpu->rewrite = (struct vmpt_rtit_rewrite){ 0 };
	vcpu->held = false;
	return 0;
}

/* ---- RDMSR ---- */

/* Read the processor's value of @msr into vcpu->regs. */
static int fetch(struct vmpt_rtit_vcpu *vcpu, u32 msr)
{
	int err = 0;
	u64 value;

	if (msr == VMPT_RTIT_MSR_CTL || msr == VMPT_RTIT_MSR_STATUS)
		err = vmpt_rtit_hw_refresh(vcpu);
	/* The guest must find in its memory all bytes that OFFSET counts. */
	if (msr == VMPT_RTIT_MSR_OFFSET)
		return vmpt_rtit_vcpu_sync(vcpu);
	if (err || !vmpt_rtit_is_live(msr))
		return err;
	err = vmpt_rtit_hw_read(vcpu, msr, &value);
	if (!err)
		*vmpt_rtit_reg(&vcpu->regs, msr) = value;
	return err;
}

static int fault(struct vmpt_rtit_vcpu *vcpu, int err, enum vmpt_gp_reason why)
{
	if (err == VMPT_GP)
		vcpu->gp_why = (u8)why;
	return err;
}

int vmpt_rtit_vcpu_rdmsr(struct vmpt_rtit_vcpu *vcpu, u32 msr, bool context_en, u64 *value)
{
	const struct vmpt_rtit_rules *rules = &vcpu->config.rules;
	enum vmpt_gp_reason why = VMPT_GP_NONE;
	int err;

	/* Once for the rules, then for the value. */
	err = vmpt_rtit_rdmsr(rules, &vcpu->regs, msr, value, &why);
	if (!err && vcpu->loaded) {
		err = fetch(vcpu, msr);
		if (!err)
			err = vmpt_rtit_rdmsr(rules, &vcpu->regs, msr, value, &why);
	}
	if (err)
		return fault(vcpu, err, why);
	if (msr == VMPT_RTIT_MSR_STATUS) {
		*value &= ~VMPT_RTIT_STATUS_CONTEXT_EN;
		if (context_en && !vcpu->held)
			*value |= VMPT_RTIT_STATUS_CONTEXT_EN;
	}
	return 0;
}

/* ---- WRMSR while the MSRs are in the processor ---- */

/* Output moves: TraceActive off, the new place, TraceActive on with a PSB. */
static int move_output(struct vmpt_rtit_vcpu *vcpu, const struct vmpt_rtit_regs *regs,
		       const struct vmpt_rtit_plan *plan)
{
	int err = 0;

	if (vcpu->hw_ctl & VMPT_RTIT_CTL_TRACE_ACTIVE) {
		err = vmpt_rtit_hw_set_ctl(vcpu, vcpu->hw_ctl & ~VMPT_RTIT_CTL_TRACE_ACTIVE);
		/* As at a load: the registers that the PSB clears. */
		if (!err)
			err = vmpt_rtit_hw_forget(vcpu);
	}
	if (err) {
		vmpt_rtit_plan_drop(vcpu, plan);
		return err;
	}
	return vmpt_rtit_plan_apply(vcpu, regs, plan);
}

/* Whether the output for @regs may stay where it is. */
static bool same_place(const struct vmpt_rtit_vcpu *vcpu, const struct vmpt_rtit_regs *regs)
{
	const struct vmpt_rtit_regs *old = &vcpu->regs;

	switch (vcpu->path) {
	case VMPT_RTIT_PATH_BOUNCE:
		/* The copies may go anywhere; a new start may find a direct place. */
		return vcpu->config.output == VMPT_RTIT_BOUNCE || vmpt_rtit_trigger_en(old);
	case VMPT_RTIT_PATH_DIRECT:
		return regs->ctl & VMPT_RTIT_CTL_DEST && regs->base_addr == old->base_addr &&
		       regs->limit_mask == old->limit_mask;
	default:
		return false;
	}
}

/* Set the new CTL: after the write, all that was generated is in the guest's memory (3.3.2). */
static int new_ctl(struct vmpt_rtit_vcpu *vcpu)
{
	int err = vmpt_rtit_hw_set_ctl(vcpu, vmpt_rtit_hw_ctl(vcpu, true)), ret;

	if (err)
		return err;
	ret = vmpt_rtit_collect(vcpu);
	err = vmpt_rtit_thaw(vcpu);
	return err ? err : ret;
}

/* Frozen: set the new place, if the output for @regs cannot stay where it is. */
static int place_output(struct vmpt_rtit_vcpu *vcpu, u32 msr, const struct vmpt_rtit_regs *regs,
			bool moves)
{
	struct vmpt_rtit_plan plan;
	int err;

	if (moves) {
		err = vmpt_rtit_plan_output(vcpu, regs, &plan);
		return err ? err : move_output(vcpu, regs, &plan);
	}
	if (msr == VMPT_RTIT_MSR_OFFSET && vcpu->path == VMPT_RTIT_PATH_DIRECT)
		return vmpt_rtit_hw_write(vcpu, msr, regs->offset);
	return 0;
}

/*
 * CTL, BASE_ADDR, LIMIT_MASK or OFFSET become those of @regs. Output generated before goes where
 * the old ones say.
 */
static int write_control(struct vmpt_rtit_vcpu *vcpu, u32 msr, struct vmpt_rtit_regs *regs)
{
	bool on = vmpt_rtit_trigger_en(regs), same = same_place(vcpu, regs);
	int err;

	/* A guest that sets up its output: the processor does not need it yet. */
	if (!on && vcpu->path == VMPT_RTIT_PATH_NONE && msr != VMPT_RTIT_MSR_CTL) {
		vcpu->regs = *regs;
		return 0;
	}
	err = vmpt_rtit_freeze(vcpu);
	if (err)
		return err;
	err = vmpt_rtit_collect(vcpu);
	if (msr != VMPT_RTIT_MSR_OFFSET)
		regs->offset = vcpu->regs.offset;
	if (!err)
		err = place_output(vcpu, msr, regs, on && !same);
	if (err) {
		vmpt_rtit_thaw(vcpu);
		return err;
	}
	vcpu->regs = *regs;
	err = new_ctl(vcpu);
	/* Stopped: the next start searches for a new place. */
	if (!err && !on && !same && vcpu->path == VMPT_RTIT_PATH_DIRECT)
		vmpt_rtit_output_end(vcpu);
	return err;
}

static bool is_control(u32 msr)
{
	return msr == VMPT_RTIT_MSR_CTL || msr == VMPT_RTIT_MSR_BASE_ADDR ||
	       msr == VMPT_RTIT_MSR_LIMIT_MASK || msr == VMPT_RTIT_MSR_OFFSET;
}

int vmpt_rtit_vcpu_wrmsr(struct vmpt_rtit_vcpu *vcpu, u32 msr, u64 value)
{
	enum vmpt_gp_reason why = VMPT_GP_NONE;
	struct vmpt_rtit_regs regs;
	int err;

	/* A TraceStop may have happened: the guest's write comes after it. */
	if (vcpu->loaded && vmpt_rtit_hw_refresh(vcpu))
		return -VMPT_E_HARDWARE;
	regs = vcpu->regs;
	err = vmpt_rtit_wrmsr(&vcpu->config.rules, &regs, msr, value, &why);
	if (err)
		return fault(vcpu, err, why);
	if (vcpu->loaded && is_control(msr))
		return write_control(vcpu, msr, &regs);
	if (vcpu->loaded)
		err = vmpt_rtit_hw_write(vcpu, msr, vmpt_rtit_hw_value(&regs, msr));
	else if (is_control(msr))
		err = vmpt_rtit_copy_out(vcpu, true);
	if (err)
		return err;
	if (msr != VMPT_RTIT_MSR_OFFSET)
		regs.offset = vcpu->regs.offset;
	vcpu->regs = regs;
	return 0;
}
