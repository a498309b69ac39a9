// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A performance monitoring unit of version 2 (SDM 3 19.2) whose counters do not count. Operating
 * systems use the PMI only if there is one.
 */
#include "qemu-plugin/guest/internal.h"

#define MSR_PMC0	  0xc1
#define MSR_PERFEVTSEL0	  0x186
#define MSR_FIXED_CTR0	  0x309
#define MSR_FIXED_CTRL	  0x38d
#define MSR_GLOBAL_STATUS VMPT_MSR_PERF_GLOBAL_STATUS
#define MSR_GLOBAL_CTRL	  0x38f
#define MSR_GLOBAL_RESET  VMPT_MSR_PERF_GLOBAL_RESET

#define WIDTH	     48
#define COUNTER_MASK ((1ULL << WIDTH) - 1)
#define COUNTERS_ALL ((1ULL << PMU_COUNTERS) - 1)
#define FIXED_ALL    (((1ULL << PMU_FIXED) - 1) << 32)
/* Bits of PERFEVTSELn, of FIXED_CTR_CTRL, of GLOBAL_STATUS's reset (figures 19-6 to 19-9) */
#define SELECT_MASK 0xffdfffffULL
#define FIXED_MASK  0xbbbULL
#define RESET_MASK  (COUNTERS_ALL | FIXED_ALL | VMPT_GLOBAL_TOPA_PMI | 3ULL << 62)
#define CR4_PCE	    0x100ULL
#define RDPMC_FIXED 0x40000000U

void guest_pmu_reset(struct guest_pmu *pmu)
{
	*pmu = (struct guest_pmu){ .global_ctrl = COUNTERS_ALL };
}

/* Leaf 0AH: no architectural event is missing. */
void guest_pmu_cpuid(struct vmpt_cpuid_regs *regs)
{
	*regs = (struct vmpt_cpuid_regs){
		.eax = 2 | PMU_COUNTERS << 8 | WIDTH << 16 | 7 << 24,
		.edx = PMU_FIXED | WIDTH << 5,
	};
}

/* The register of @msr, and which of its bits may be 1. */
static u64 *find(struct guest_pmu *pmu, u32 msr, u64 *mask)
{
	*mask = COUNTER_MASK;
	if (msr - MSR_PMC0 < PMU_COUNTERS)
		return &pmu->counter[msr - MSR_PMC0];
	if (msr - MSR_FIXED_CTR0 < PMU_FIXED)
		return &pmu->fixed[msr - MSR_FIXED_CTR0];
	*mask = SELECT_MASK;
	if (msr - MSR_PERFEVTSEL0 < PMU_COUNTERS)
		return &pmu->select[msr - MSR_PERFEVTSEL0];
	switch (msr) {
	case MSR_FIXED_CTRL:
		*mask = FIXED_MASK;
		return &pmu->fixed_ctrl;
	case MSR_GLOBAL_CTRL:
		*mask = COUNTERS_ALL | FIXED_ALL;
		return &pmu->global_ctrl;
	case MSR_GLOBAL_STATUS:
		*mask = 0;
		return &pmu->global_status;
	default:
		return NULL;
	}
}

bool guest_pmu_read(const struct guest_pmu *pmu, u32 msr, u64 *value)
{
	struct guest_pmu copy = *pmu;
	u64 mask, *reg = find(&copy, msr, &mask);

	if (msr == MSR_GLOBAL_RESET)
		*value = 0;
	else if (reg)
		*value = *reg;
	return reg || msr == MSR_GLOBAL_RESET;
}

bool guest_pmu_write(struct guest_pmu *pmu, u32 msr, u64 value, bool *gp)
{
	u64 mask, *reg = find(pmu, msr, &mask);

	*gp = false;
	if (msr == MSR_GLOBAL_RESET) {
		*gp = value & ~RESET_MASK;
		if (!*gp)
			pmu->global_status &= ~value;
		return true;
	}
	if (!reg)
		return false;
	/* Without full-width writes a counter takes 32 bits, sign-extended (19.2.2). */
	if (msr - MSR_PMC0 < PMU_COUNTERS)
		value = (u64)(s64)(s32)value & mask;
	*gp = value & ~mask || msr == MSR_GLOBAL_STATUS;
	if (!*gp)
		*reg = value;
	return true;
}

void guest_rdpmc(struct guest_vcpu *guest, const struct site *site)
{
	struct vcpu *vcpu = guest->vcpu;
	u32 index = (u32)qemu_read_reg(vcpu->regs, QREG_RCX), n = index & ~RDPMC_FIXED;
	bool fixed = index & RDPMC_FIXED;
	u64 value;

	/* QEMU has no RDPMC: let it raise the fault. At CPL 0 it should be #GP, but is #UD. */
	if ((vcpu->mode.cpl && !(vcpu->cpu.cr4 & CR4_PCE)) ||
	    n >= (fixed ? PMU_FIXED : PMU_COUNTERS))
		return;
	value = fixed ? guest->pmu.fixed[n] : guest->pmu.counter[n];
	qemu_write_reg(vcpu->regs, QREG_RAX, LOW32(value));
	qemu_write_reg(vcpu->regs, QREG_RDX, value >> 32);
	/* Even if the guest steps: QEMU would raise #UD. */
	flow_go_to(vcpu, guest_next(guest, site));
}
