// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * RDMSR and WRMSR. For PT's MSRs vmm-lib says what is legal, and the unit does it with the packets
 * that the instruction makes on a processor: there is no VM exit in the guest's trace. The vCPU is
 * never "entered", because the registers that the guest sees are always the unit's.
 */
#include "qemu-plugin/guest/internal.h"

#define MSR_TSC		  0x10
#define MSR_TSC_ADJUST	  0x3b
#define MSR_PLATFORM_INFO VMPT_MSR_PLATFORM_INFO
#define MSR_TSC_AUX	  0xc0000103

/* Maximum non-turbo ratio in units of 100 MHz, in bits 15:8 (SDM 4 table 2-2). */
#define PLATFORM_INFO ((u64)(CLOCK_TSC_KHZ / 100000) << 8)

void guest_sync(struct guest_vcpu *guest)
{
	static const u32 moves[] = { VMPT_MSR_RTIT_STATUS, VMPT_MSR_RTIT_OUTPUT_BASE,
				     VMPT_MSR_RTIT_OUTPUT_MASK_PTRS };

	for (size_t i = 0; i < VMPT_ARRAY_SIZE(moves); i++)
		(void)vmpt_vcpu_set_msr(&guest->vmm, moves[i],
					*vmpt_pt_reg(&guest->unit.regs, moves[i]));
}

void guest_attach(struct guest_vcpu *guest)
{
	flow_unit(guest->vcpu, &guest->unit, guest->unit.trigger_en);
}

static int read_msr(struct guest_vcpu *guest, u32 msr, u64 *value)
{
	if (vmpt_pt_is_msr(msr))
		guest_sync(guest);
	if (msr == MSR_PLATFORM_INFO)
		*value = PLATFORM_INFO;
	return vmpt_vcpu_rdmsr(&guest->vmm, msr, value);
}

/* The processor with RTIT has neither a PMU nor a PMI. */
static bool read_with_rtit(struct guest_vcpu *guest, u32 msr, u64 ip, u64 *value, int *ret)
{
	if (vmpt_rtit_is_msr(msr))
		*ret = guest_rtit_read(guest, msr, ip, value);
	else if (msr == MSR_PLATFORM_INFO)
		*value = PLATFORM_INFO;
	else
		return false;
	return true;
}

static bool read_with_pt(struct guest_vcpu *guest, u32 msr, u64 *value, int *ret)
{
	u64 counters;

	if (guest_pmu_read(guest, msr, &counters)) {
		/* vmm-lib has bit 55 of GLOBAL_STATUS. */
		if (msr == VMPT_MSR_PERF_GLOBAL_STATUS)
			*ret = read_msr(guest, msr, value);
		*value |= counters;
		return true;
	}
	if (vmpt_pt_is_msr(msr) || msr == MSR_PLATFORM_INFO) {
		*ret = read_msr(guest, msr, value);
		return true;
	}
	return guest_apic_read(guest, msr, value);
}

/* Whether the plugin emulates @msr; *ret: 0 or VMPT_GP. */
static bool emulated_read(struct guest_vcpu *guest, u32 msr, u64 ip, u64 *value, int *ret)
{
	const struct plugin *plugin = guest->vcpu->plugin;
	bool tsc = !plugin->options.rdtsc_qemu;

	*ret = 0;
	*value = 0;
	if (tsc && msr == MSR_TSC)
		*value = guest_read_tsc(guest);
	else if (tsc && msr == MSR_TSC_ADJUST)
		*value = guest->tsc_adjust;
	else if (plugin->rtit)
		return read_with_rtit(guest, msr, ip, value, ret);
	else
		return read_with_pt(guest, msr, value, ret);
	return true;
}

void guest_rdmsr(struct guest_vcpu *guest, const struct site *site)
{
	struct vcpu *vcpu = guest->vcpu;
	u32 msr = (u32)qemu_read_reg(vcpu->regs, QREG_RCX);
	struct guest_result result;
	u64 value;
	int ret;

	if (!emulated_read(guest, msr, site_ip(vcpu, site), &value, &ret))
		return;
	if (ret) {
		guest_fault(guest, site, false);
		return;
	}
	result = guest_edx_eax(value);
	guest_skip(guest, site, &result);
}

/* vmm-lib checks the write, the unit does it. */
static int write_pt(struct guest_vcpu *guest, u32 msr, u64 value, u64 ip, u64 next)
{
	struct vcpu *vcpu = guest->vcpu;
	struct vmpt_now now;
	int ret;

	guest_clocks(guest, &now);
	vmpt_unit_time(&guest->unit, &now);
	guest_sync(guest);
	ret = vmpt_vcpu_wrmsr(&guest->vmm, msr, value);
	if (ret)
		return ret;
	/* While it does not trace, it does not follow the processor's mode. */
	if (!(guest->unit.regs.ctl & VMPT_CTL_TRACE_EN))
		vmpt_unit_mov_cr3(&guest->unit, next, &vcpu->mode);
	ret = vmpt_unit_wrmsr(&guest->unit, msr, value, ip, next);
	guest_attach(guest);
	return ret;
}

static bool write_with_pt(struct guest_vcpu *guest, u32 msr, u64 value, const struct site *site,
			  int *ret)
{
	bool gp;

	if (guest_pmu_write(guest, msr, value, &gp)) {
		*ret = gp ? VMPT_GP : 0;
		if (!gp && msr == VMPT_MSR_PERF_GLOBAL_RESET)
			*ret = vmpt_vcpu_wrmsr(&guest->vmm, msr, value);
		return true;
	}
	if (vmpt_pt_is_msr(msr)) {
		*ret = write_pt(guest, msr, value, site_ip(guest->vcpu, site),
				guest_next(guest, site));
		return true;
	}
	return false;
}

static bool emulated_write(struct guest_vcpu *guest, u32 msr, u64 value, const struct site *site,
			   int *ret)
{
	const struct plugin *plugin = guest->vcpu->plugin;
	bool tsc = !plugin->options.rdtsc_qemu;

	*ret = 0;
	if (plugin->rtit && vmpt_rtit_is_msr(msr)) {
		*ret = guest_rtit_write(guest, msr, value, site_ip(guest->vcpu, site),
					guest_next(guest, site));
		return true;
	}
	if (!plugin->rtit && write_with_pt(guest, msr, value, site, ret))
		return true;
	if (tsc && msr == MSR_TSC)
		guest_tsc_set(guest, value);
	else if (tsc && msr == MSR_TSC_ADJUST)
		guest->tsc_adjust = value;
	else if (msr == MSR_PLATFORM_INFO)
		*ret = VMPT_GP;
	else
		return false;
	return true;
}

/* Whether writing @value may start a trace. */
static bool may_enable(const struct plugin *plugin, u32 msr, u64 value)
{
	return plugin->rtit ? msr == VMPT_RTIT_MSR_CTL && value & VMPT_RTIT_CTL_TRACE_EN
			    : msr == VMPT_MSR_RTIT_CTL && value & VMPT_CTL_TRACE_EN;
}

void guest_wrmsr(struct guest_vcpu *guest, const struct site *site)
{
	struct vcpu *vcpu = guest->vcpu;
	u32 msr = (u32)qemu_read_reg(vcpu->regs, QREG_RCX);
	u64 value = LOW32(qemu_read_reg(vcpu->regs, QREG_RAX)) | qemu_read_reg(vcpu->regs, QREG_RDX)
									 << 32;
	const struct guest_result nothing = { 0 };
	int ret;

	if (may_enable(vcpu->plugin, msr, value) && !flow_ready(vcpu, site))
		flow_go_to(vcpu, site_ip(vcpu, site));
	if (!vcpu->plugin->rtit && guest_pmu_starts(guest, msr, value) && !flow_counts(vcpu, site))
		flow_go_to(vcpu, site_ip(vcpu, site));
	if (emulated_write(guest, msr, value, site, &ret)) {
		if (ret)
			guest_fault(guest, site, true);
		else
			guest_skip(guest, site, &nothing);
		return;
	}
	/* QEMU does these, but the plugin has to know their values. */
	if (msr == MSR_TSC_AUX) {
		guest->aux.before = guest->aux.now;
		guest->aux.now = (u32)value;
		guest->aux.ip = site_ip(vcpu, site);
		guest->aux.pending = true;
	}
	if (!vcpu->plugin->rtit)
		guest_apic_write(guest, msr, value);
}
