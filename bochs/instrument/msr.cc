// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The MSRs of PT, the performance monitoring's status in which a ToPA PMI shows (SDM 3
 * 33.2.7.2), and CPUID's leaves on PT and the clocks.
 */
#include "clock.h"

/* Bits of IA32_PERF_GLOBAL_STATUS other than the counters'; CondChgd can only be reset. */
#define TRACE_TOPA_PMI (1ULL << 55)
#define OTHER_BITS     (0x1bULL << 58) /* LBR_Frz, CTR_Frz, Ovf_Uncore, OvfBuf; no ASCI (SGX) */
#define COND_CHANGED   (1ULL << 63)

static bool is_status(u32 index)
{
	return index == VMPT_MSR_PERF_GLOBAL_STATUS || index == VMPT_MSR_PERF_GLOBAL_RESET ||
	       index == VMPT_MSR_PERF_GLOBAL_SET;
}

int vmpt_rdmsr(unsigned int cpu, Bit32u index, Bit64u *value)
{
	struct pc_cpu *pc = pc_of(cpu);
	u64 v;

	pc_msr_count(pc, index, false);
	if (vmpt_pt_is_msr(index)) {
		(void)vmpt_unit_flush(&pc->unit);
		if (vmpt_unit_rdmsr(&pc->unit, index, &v))
			return -1;
		*value = v;
		return 1;
	}
	if (!pc_options.pt)
		return 0;
	if (is_status(index)) {
		*value = index == VMPT_MSR_PERF_GLOBAL_STATUS ? pc->global_status : 0;
		return 1;
	}
	if (index == VMPT_MSR_PLATFORM_INFO) {
		*value = (u64)pc_bus_ratio() << 8;
		return 1;
	}
	return 0;
}

/* MSR lists of VM entries and exits (33.5.2.2): CTL takes effect with the transition. */
static int list_write(struct pc_cpu *pc, u32 index, u64 value)
{
	if (index == VMPT_MSR_RTIT_CTL) {
		if (!vmpt_pt_ctl_valid(pc->id, value))
			return -1;
		pc->list_ctl = true;
		pc->list_ctl_value = value;
		return 1;
	}
	/* An exit that clears TraceEn has done so before its list, as has an entry that failed. */
	if (pc->in_exit && !pc->exit_reported &&
	    (pc->exit.clear_ctl || (pc->exit_late && pc->entry.load_ctl))) {
		pc_mode(pc, &pc->exit.mode);
		pc->exit.target = pc_next(pc);
		pc_exit_report(pc);
	}
	/* So has a list that wrote CTL before. */
	if (pc->list_ctl && !(pc->list_ctl_value & VMPT_CTL_TRACE_EN)) {
		if (vmpt_unit_wrmsr(&pc->unit, VMPT_MSR_RTIT_CTL, pc->list_ctl_value,
				    pc->in_exit ? pc->exit.ip : pc->entry.ip, pc_next(pc)))
			return -1;
		pc->list_ctl = false;
	}
	return vmpt_unit_wrmsr(&pc->unit, index, value, pc_place(pc), pc_next(pc)) ? -1 : 1;
}

static int pt_write(struct pc_cpu *pc, u32 index, u64 value)
{
	u64 ctl = pc->unit.regs.ctl;
	int ret;

	if (pc->in_entry || pc->in_exit)
		return list_write(pc, index, value);
	if (index == VMPT_MSR_RTIT_CTL && !(pc->unit.regs.ctl & VMPT_CTL_TRACE_EN)) {
		/* State that no event reported while nothing was traced. */
		pc_mode(pc, &pc->unit.mode);
	}
	pc_time(pc);
	/* A write that sets an enable of time packets with TraceEn needs the time, too. */
	if (index == VMPT_MSR_RTIT_CTL && value & VMPT_CTL_TRACE_EN)
		pc_time_now(pc);
	ret = vmpt_unit_wrmsr(&pc->unit, index, value, pc_place(pc), pc_next(pc));
	pc_flush(pc);
	pc_truth_ctl(pc, ctl, pc_place(pc), pc_next(pc));
	pc_walk_ctl(pc, ctl);
	pc_watch(pc);
	return ret ? -1 : 1;
}

/* GLOBAL_STATUS_RESET and _SET: which bits exist (SDM 4 table 2-2, by CPUID leaf 0AH). */
static bool status_valid(const struct pc_cpu *pc, u32 index, u64 value)
{
	u64 bits = TRACE_TOPA_PMI | OTHER_BITS;
	struct cpuid_function_t leaf;

	pc->cpu->cpuid->get_cpuid_leaf(10, 0, &leaf);
	bits |= (1ULL << (leaf.eax >> 8 & 0xff)) - 1;
	bits |= ((1ULL << (leaf.edx & 0x1f)) - 1) << 32;
	if (index == VMPT_MSR_PERF_GLOBAL_RESET)
		bits |= COND_CHANGED;
	return !(value & ~bits);
}

int vmpt_wrmsr(unsigned int cpu, Bit32u index, Bit64u value)
{
	struct pc_cpu *pc = pc_of(cpu);

	pc_msr_count(pc, index, true);
	if (vmpt_pt_is_msr(index))
		return pt_write(pc, index, value);
	if (!pc_options.pt)
		return 0;
	switch (index) {
	case VMPT_MSR_PERF_GLOBAL_STATUS:
	case VMPT_MSR_PLATFORM_INFO:
		return -1;
	case VMPT_MSR_PERF_GLOBAL_RESET:
		if (!status_valid(pc, index, value))
			return -1;
		pc->global_status &= ~value;
		return 1;
	case VMPT_MSR_PERF_GLOBAL_SET:
		if (!status_valid(pc, index, value))
			return -1;
		pc->global_status |= value & TRACE_TOPA_PMI;
		return 1;
	default:
		return 0;
	}
}

void pc_pmi(struct pc_cpu *pc)
{
	pc->global_status |= TRACE_TOPA_PMI;
	pc->cpu->lapic->perfmon_interrupt();
}

void vmpt_cpuid(unsigned int cpu, Bit32u leaf, Bit32u subleaf, struct cpuid_function_t *result)
{
	const struct vmpt_cpuid_regs *regs;

	(void)cpu;
	if (!pc_options.pt)
		return;
	switch (leaf) {
	case 0:
		if (result->eax < 0x16)
			result->eax = 0x16;
		break;
	case 7:
		if (!subleaf)
			result->ebx |= 1u << 25;
		break;
	case 0x14:
		*result = {};
		if (subleaf >= VMPT_PT_SUBLEAVES)
			break;
		regs = &pc_options.cpuid.leaf14[subleaf];
		result->eax = regs->eax;
		result->ebx = regs->ebx;
		result->ecx = regs->ecx;
		result->edx = regs->edx;
		break;
	case 0x15:
		result->eax = 1;
		result->ebx = PC_TSC_PER_CRYSTAL;
		result->ecx = (u32)(pc_tsc_hz() / PC_TSC_PER_CRYSTAL);
		result->edx = 0;
		break;
	case 0x16:
		result->eax = result->ebx = (u32)(pc_tsc_hz() / 1000000);
		result->ecx = 100;
		result->edx = 0;
		break;
	default:
		break;
	}
}
