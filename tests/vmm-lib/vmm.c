// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* A small VMM on libvmpt, and the bugs that the conformance suite must find in it. */
#include "tests/support/support.h"
#include "tests/vmm-lib/vmm.h"

#define RAM_PAGES 256u

static const struct vmpt_ops vmm_ops;

static int new_vcpu(struct vmm *vmm)
{
	return vmpt_vcpu_init(&vmm->vcpu, &vmm->config, NULL);
}

void vmm_init(struct vmm *vmm, const struct vmpt_caps *host, const struct vmpt_policy *policy)
{
	memset(vmm, 0, sizeof(*vmm));
	guest_init(&vmm->mem, RAM_PAGES);
	vmm->host = *host;
	ck_assert_int_eq(vmpt_caps_offer(host, policy, &vmm->guest, NULL), 0);
	ck_assert_int_eq(vmpt_vmx_plan(&vmm->plan, host,
				       vmm->guest.cpuid.present ? VMPT_USE_GUEST : VMPT_USE_NONE,
				       NULL),
			 0);
	vmm->config = (struct vmpt_config){
		.host = &vmm->host,
		.guest = &vmm->guest,
		.plan = &vmm->plan,
		.ops = &vmm_ops,
		.opaque = vmm,
		.xsave = true,
	};
	ck_assert_int_eq(new_vcpu(vmm), 0);
}

void vmm_free(struct vmm *vmm)
{
	guest_free(&vmm->mem);
}

static int power_on(void *opaque)
{
	struct vmm *vmm = opaque;

	vmm->mem.pmis = 0;
	vmm->cr3 = 0;
	if (vmm->bug != BUG_NOT_RESET)
		vmpt_vcpu_reset(&vmm->vcpu, false);
	else
		vmpt_pt_clear_trace_en(&vmm->vcpu.regs);
	return 0;
}

/* The VMM's own CPUID, before the library changes it: the host's leaves. */
static int cpuid(void *opaque, u32 leaf, u32 subleaf, struct vmpt_cpuid_regs *regs)
{
	struct vmm *vmm = opaque;
	const struct vmpt_pt_cpuid *host = &vmm->host.cpuid;

	memset(regs, 0, sizeof(*regs));
	if (leaf == 0)
		regs->eax = 0x15;
	else if (leaf == 0x80000000)
		regs->eax = 0x80000008;
	else if (leaf == 0x80000008)
		regs->eax = host->maxphyaddr | (u32)host->linear_bits << 8;
	else if (leaf == 0x15)
		*regs = (struct vmpt_cpuid_regs){ host->tsc_denominator, host->tsc_numerator,
						  host->crystal_hz, 0 };
	vmpt_vcpu_cpuid(&vmm->vcpu, leaf, subleaf, regs);
	if (vmm->bug == BUG_FABRIC && leaf == 0x14 && !subleaf)
		regs->ecx |= 8;
	if (vmm->bug == BUG_TRIGGERS && leaf == 0x14 && !subleaf)
		regs->ebx |= 0x200;
	if (vmm->bug == BUG_SUBLEAF && leaf == 0x14 && subleaf > 1)
		vmpt_vcpu_cpuid(&vmm->vcpu, leaf, 1, regs);
	if (vmm->bug == BUG_COMPONENT_8 && leaf == 0xd && subleaf == 8)
		memset(regs, 0, sizeof(*regs));
	return 0;
}

static int rdmsr(void *opaque, u32 msr, u64 *value)
{
	struct vmm *vmm = opaque;
	int ret;

	*value = msr == VMPT_MSR_PLATFORM_INFO ? 0x2a00 : 0;
	ret = vmpt_vcpu_rdmsr(&vmm->vcpu, msr, value);
	if (vmm->bug == BUG_NO_RATIO && msr == VMPT_MSR_PLATFORM_INFO)
		*value = 0;
	if (vmm->bug == BUG_PMI_BIT && msr == VMPT_MSR_PERF_GLOBAL_STATUS)
		*value = 0;
	if (vmm->bug == BUG_LOWER_MASK && msr == VMPT_MSR_RTIT_OUTPUT_MASK_PTRS)
		*value &= ~VMPT_LOWER_MASK;
	if (vmm->bug == BUG_NO_PT_USABLE && ret == VMPT_GP)
		return 0;
	return ret;
}

/* Bugs in a WRMSR handler: true if @ret is its result. */
static bool buggy_wrmsr(struct vmm *vmm, u32 msr, u64 value, int *ret)
{
	struct vmpt_pt_regs *regs = &vmm->vcpu.regs;
	u64 *reg = vmpt_pt_reg(regs, msr);
	bool tracing = regs->ctl & VMPT_CTL_TRACE_EN, ctl = msr == VMPT_MSR_RTIT_CTL;

	*ret = 0;
	if (!reg)
		return false;
	switch (vmm->bug) {
	case BUG_RESERVED_BITS:
		if (!ctl || tracing || !(value & (1ULL << 18)))
			return false;
		break;
	case BUG_EVENT_REFUSED:
		*ret = VMPT_GP;
		return ctl && value & VMPT_CTL_EVENT_EN;
	case BUG_NO_PT_USABLE:
		break;
	case BUG_CR3_MATCH:
		if (msr != VMPT_MSR_RTIT_CR3_MATCH || tracing)
			return false;
		break;
	case BUG_MAXPHYADDR:
		if (msr != VMPT_MSR_RTIT_OUTPUT_BASE || tracing || value & 0x7f)
			return false;
		break;
	case BUG_STATUS_PEND:
		*ret = VMPT_GP;
		return msr == VMPT_MSR_RTIT_STATUS && value & (3u << 6);
	case BUG_STOP_AND_CHANGE:
		*ret = VMPT_GP;
		return ctl && tracing && value != (regs->ctl & ~VMPT_CTL_TRACE_EN) &&
		       value != regs->ctl && !(value & VMPT_CTL_TRACE_EN);
	case BUG_WRITES_WHILE_TRACING:
		if (!tracing || ctl)
			return false;
		break;
	case BUG_ENCODINGS:
		if (!ctl || tracing || !(value & VMPT_CTL_MTC_FREQ))
			return false;
		break;
	case BUG_CANONICAL:
		if (msr < VMPT_MSR_RTIT_ADDR0_A || tracing)
			return false;
		break;
	default:
		return false;
	}
	*reg = value;
	return true;
}

/* An enable that handles PendTopaPMI wrongly. */
static int enable_with_bug(struct vmm *vmm, u64 ctl)
{
	struct vmpt_pt_regs *regs = &vmm->vcpu.regs;
	u64 pend = regs->status & VMPT_STATUS_PEND_PMI;
	int ret;

	if (vmm->bug == BUG_PMI_LOST)
		regs->status &= ~VMPT_STATUS_PEND_PMI;
	ret = vmpt_vcpu_wrmsr(&vmm->vcpu, VMPT_MSR_RTIT_CTL, ctl);
	if (vmm->bug == BUG_PMI_LOST)
		regs->status |= pend;
	else if (!ret && pend && ctl & VMPT_CTL_TRACE_EN)
		vmpt_vcpu_pmi(&vmm->vcpu);
	return ret;
}

static int wrmsr(void *opaque, u32 msr, u64 value)
{
	struct vmm *vmm = opaque;
	int ret;

	if (buggy_wrmsr(vmm, msr, value, &ret))
		return ret;
	if ((vmm->bug != BUG_PMI_LOST && vmm->bug != BUG_PMI_ALWAYS) || msr != VMPT_MSR_RTIT_CTL)
		return vmpt_vcpu_wrmsr(&vmm->vcpu, msr, value);
	return enable_with_bug(vmm, value);
}

/* ---- the guest runs: the processor's part ---- */

static int entry_at(void *opaque, u64 pa, u64 *entry)
{
	struct vmm *vmm = opaque;

	if (guest_read(vmm, pa, entry, sizeof(*entry)))
		return VMPT_OUTPUT_FAULT;
	if (vmm->bug == BUG_END_SAME && *entry & VMPT_TOPA_END)
		*entry = vmm->vcpu.regs.output_base | VMPT_TOPA_END;
	return 0;
}

static int output_at(void *opaque, u64 pa, const u8 *bytes, size_t len)
{
	struct vmm *vmm = opaque;

	if (!guest_write(&vmm->mem, pa, bytes, len))
		return 0;
	if (vmm->bug == BUG_HOLE_TO_RAM) {
		guest_put(&vmm->mem, vmm_conformance_ops.ram_gpa + 64 * 1024, bytes, len);
		return 0;
	}
	/* How the exit handler handles PT's EPT violation without memory. */
	return vmpt_vcpu_ept_violation(&vmm->vcpu, 1u << 16, pa, false) == VMPT_EPT_ERROR
		       ? VMPT_OUTPUT_FAULT
		       : -VMPT_E_GUEST_MEM;
}

static void handle_pmis(struct vmm *vmm, u32 events)
{
	if (!(events & VMPT_OUTPUT_INT) || vmm->bug == BUG_NO_PMI)
		return;
	vmpt_vcpu_pmi(&vmm->vcpu);
	if (vmm->bug == BUG_PMI_TWICE)
		vmm->mem.pmis++;
}

static int run(void *opaque, u32 bytes)
{
	struct vmm *vmm = opaque;
	struct vmpt_output_memory memory = { entry_at, output_at, vmm };
	struct vmpt_pt_regs *regs = &vmm->vcpu.regs, before = *regs;
	struct vmpt_output out;
	u8 tnt[64];
	size_t done;

	memset(tnt, 0x0c, sizeof(tnt)); /* TNT-8 */
	if (vmm->bug == BUG_RANGE_LEFT && !(regs->ctl & VMPT_CTL_TOPA))
		regs->output_mask_ptrs |= 0xffff;
	vmpt_output_init(&out, &vmm->vcpu.rules, regs, &memory);
	for (; vmpt_pt_trigger_en(regs) && bytes; bytes -= bytes < 64 ? bytes : 64) {
		if (vmpt_output_write(&out, tnt, bytes < 64 ? bytes : 64, &done))
			return -VMPT_E_GUEST_MEM;
	}
	handle_pmis(vmm, out.events);
	if (vmm->bug == BUG_NO_ERROR)
		regs->status &= ~VMPT_STATUS_ERROR;
	if (vmm->bug == BUG_RANGE_LEFT && !(regs->ctl & VMPT_CTL_TOPA))
		regs->output_mask_ptrs = before.output_mask_ptrs;
	if (vmm->bug == BUG_OFFSET)
		regs->output_mask_ptrs = before.output_mask_ptrs;
	return 0;
}

/* ---- the host's tracer, on the processor that ran the vCPU ---- */

#define HOST_BUFFER                                                                  \
	0x200000000ULL /* above the guest's RAM, which is at the same addresses here \
			*/
#define HOST_CTL (VMPT_CTL_TRACE_EN | VMPT_CTL_OS | VMPT_CTL_BRANCH_EN)

static int hw_rdmsr(void *opaque, u32 msr, u64 *value)
{
	struct vmm *vmm = opaque;

	if (msr == VMPT_MSR_PERF_GLOBAL_STATUS) {
		*value = 0;
		return 0;
	}
	return vmpt_pt_rdmsr(&vmm->vcpu.host_rules, &vmm->hw, msr, value, NULL);
}

static int hw_wrmsr(void *opaque, u32 msr, u64 value)
{
	struct vmm *vmm = opaque;

	return vmpt_pt_wrmsr(&vmm->vcpu.host_rules, &vmm->hw, msr, value, NULL);
}

static int set_guest_ctl(void *opaque, u64 ctl)
{
	(void)opaque, (void)ctl;
	return 0;
}

static const struct vmpt_ops vmm_ops = {
	.guest_read = guest_read,
	.guest_write = guest_write,
	.guest_map = guest_map,
	.guest_translate = guest_translate,
	.inject_pmi = guest_pmi,
	.hw_rdmsr = hw_rdmsr,
	.hw_wrmsr = hw_wrmsr,
	.set_guest_ctl = set_guest_ctl,
};

static int host_entry(void *opaque, u64 pa, u64 *entry)
{
	return guest_read(opaque, pa, entry, sizeof(*entry)) ? VMPT_OUTPUT_FAULT : 0;
}

static int host_output(void *opaque, u64 pa, const u8 *bytes, size_t len)
{
	if (pa >= HOST_BUFFER)
		return 0;
	return guest_write(opaque, pa, bytes, len) ? VMPT_OUTPUT_FAULT : 0;
}

/* An entry and its exit, then a tracer that sets its own position; or, the bug, CTL only. */
static int host_traces(void *opaque)
{
	struct vmm *vmm = opaque;
	bool believes = vmm->bug == BUG_HOST_BELIEVES;
	struct vmpt_output_memory memory = { host_entry, host_output, vmm };
	u64 ctl = HOST_CTL | (believes ? vmm->vcpu.regs.ctl & VMPT_CTL_TOPA : 0);
	struct vmpt_output out;
	u8 trace[64] = { 0x99 };
	size_t done;
	int i, ret;

	ret = vmpt_vcpu_enter(&vmm->vcpu);
	if (!ret)
		ret = vmpt_vcpu_exit(&vmm->vcpu, VMPT_EXIT_NORMAL);
	if (ret)
		return ret;
	if (!believes && (hw_wrmsr(vmm, VMPT_MSR_RTIT_OUTPUT_BASE, HOST_BUFFER) ||
			  hw_wrmsr(vmm, VMPT_MSR_RTIT_OUTPUT_MASK_PTRS, 0xfff) ||
			  hw_wrmsr(vmm, VMPT_MSR_RTIT_STATUS, 0)))
		return -VMPT_E_HARDWARE;
	if (hw_wrmsr(vmm, VMPT_MSR_RTIT_CTL, ctl))
		return -VMPT_E_HARDWARE;
	vmpt_output_init(&out, &vmm->vcpu.host_rules, &vmm->hw, &memory);
	for (i = 0; i < 100; i++)
		if (vmpt_output_write(&out, trace, sizeof(trace), &done))
			return -VMPT_E_GUEST_MEM;
	return hw_wrmsr(vmm, VMPT_MSR_RTIT_CTL, 0) ? -VMPT_E_HARDWARE : 0;
}

static int mov_cr3(void *opaque, u64 cr3)
{
	struct vmm *vmm = opaque;
	struct vmpt_cr3_write write = { .old_cr3 = vmm->cr3, .new_cr3 = cr3 };
	u64 ctl = vmm->vcpu.regs.ctl;
	int ret, n = vmm->bug == BUG_TWO_PIPS ? 2 : vmm->bug == BUG_NO_PIP ? 0 : 1;

	if (vmm->bug == BUG_FILTER_NO_PIP && ctl & VMPT_CTL_CR3_FILTER)
		n = 0;
	if (vmm->bug == BUG_FILTER_IGNORED)
		vmm->vcpu.regs.ctl &= ~VMPT_CTL_CR3_FILTER;

	vmm->cr3 = cr3;
	if (vmm->bug == BUG_PIP_WITHOUT_OS)
		vmm->vcpu.regs.ctl |= VMPT_CTL_OS;
	for (; n; n--) {
		ret = vmpt_vcpu_cr3_write(&vmm->vcpu, &write);
		if (ret < 0)
			return ret;
	}
	vmm->vcpu.regs.ctl = ctl;
	return 0;
}

static int pmis(void *opaque, u64 *count)
{
	*count = ((struct vmm *)opaque)->mem.pmis;
	return 0;
}

/* ---- events ---- */

static int warm_reset(void *opaque)
{
	vmpt_vcpu_reset(&((struct vmm *)opaque)->vcpu, true);
	return 0;
}

static int init(void *opaque)
{
	struct vmm *vmm = opaque;

	if (vmm->bug == BUG_INIT_CLEARS)
		vmpt_vcpu_reset(&vmm->vcpu, false);
	return 0;
}

static int smi(void *opaque)
{
	struct vmm *vmm = opaque;
	u64 ctl = vmm->vcpu.regs.ctl;
	int ret = vmpt_vcpu_smi(&vmm->vcpu);

	if (vmm->bug == BUG_SMI_IGNORED)
		vmm->vcpu.regs.ctl = ctl;
	return ret;
}

static int rsm(void *opaque)
{
	struct vmm *vmm = opaque;

	if (vmm->bug == BUG_SMI_IGNORED) {
		vmm->vcpu.in_smm = false;
		return 0;
	}
	return vmpt_vcpu_rsm(&vmm->vcpu);
}

static int vmxon(void *opaque)
{
	struct vmm *vmm = opaque;

	return vmm->bug == BUG_VMXON_IGNORED ? 0 : vmpt_vcpu_vmxon(&vmm->vcpu);
}

static int vmxoff(void *opaque)
{
	return vmpt_vcpu_vmxoff(&((struct vmm *)opaque)->vcpu);
}

static int migrate(void *opaque)
{
	struct vmm *vmm = opaque;
	u8 state[VMPT_STATE_MAX];
	int len = vmpt_vcpu_save(&vmm->vcpu, state, sizeof(state)), ret;

	if (len < 0)
		return len;
	memset(&vmm->vcpu, 0xa5, sizeof(vmm->vcpu));
	ret = new_vcpu(vmm);
	if (!ret)
		ret = vmpt_vcpu_restore(&vmm->vcpu, state, (size_t)len, NULL);
	if (vmm->bug == BUG_MIGRATE_LOSES)
		memset(vmm->vcpu.regs.addr, 0, sizeof(vmm->vcpu.regs.addr));
	return ret;
}

static int set_msr(void *opaque, u32 msr, u64 value)
{
	struct vmm *vmm = opaque;

	return vmm->bug == BUG_RESTORE_ORDER ? vmpt_vcpu_wrmsr(&vmm->vcpu, msr, value)
					     : vmpt_vcpu_set_msr(&vmm->vcpu, msr, value);
}

static int xsaves(void *opaque, u8 area[VMPT_XSAVE_SIZE])
{
	struct vmm *vmm = opaque;
	u64 ctl = vmm->vcpu.regs.ctl;
	int ret = vmpt_vcpu_xsaves(&vmm->vcpu, area);

	if (vmm->bug == BUG_XSAVES_KEEPS)
		vmm->vcpu.regs.ctl = ctl;
	if (vmm->bug == BUG_XSAVES_LAYOUT)
		memmove(area + 8, area, VMPT_XSAVE_SIZE - 8);
	return ret;
}

static int xrstors(void *opaque, const u8 area[VMPT_XSAVE_SIZE])
{
	struct vmm *vmm = opaque;
	int ret = vmm->bug == BUG_XRSTORS_NOTHING ? 0 : vmpt_vcpu_xrstors(&vmm->vcpu, area);

	return vmm->bug == BUG_XRSTORS_TRACING && ret == VMPT_GP ? 0 : ret;
}

const struct vmpt_conformance_ops vmm_conformance_ops = {
	.power_on = power_on,
	.cpuid = cpuid,
	.rdmsr = rdmsr,
	.wrmsr = wrmsr,
	.mem_read = guest_read,
	.mem_write = guest_write,
	.run = run,
	.mov_cr3 = mov_cr3,
	.pmis = pmis,
	.warm_reset = warm_reset,
	.init = init,
	.smi = smi,
	.rsm = rsm,
	.vmxon = vmxon,
	.vmxoff = vmxoff,
	.migrate = migrate,
	.set_msr = set_msr,
	.xsaves = xsaves,
	.xrstors = xrstors,
	.host_traces = host_traces,
	.ram_gpa = 0x10000,
	.ram_size = 0x40000,
	.hole_gpa = (u64)RAM_PAGES * GUEST_PAGE,
};
