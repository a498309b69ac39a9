// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* The model of KVM: model.h. Each rule names the function of Linux 6.12 that has it. */
#include <errno.h>

#include "model.h"

static void put(struct kvm_cpuid2 *cpuid, u32 leaf, u32 subleaf, struct vmpt_cpuid_regs regs)
{
	cpuid->entries[cpuid->nent++] = (struct kvm_cpuid_entry2){
		.function = leaf,
		.index = subleaf,
		.eax = regs.eax,
		.ebx = regs.ebx,
		.ecx = regs.ecx,
		.edx = regs.edx,
	};
}

/* __do_cpuid_func(): leaf 14H as the processor has it. */
static int supported_cpuid(const struct model *m, struct kvm_cpuid2 *cpuid)
{
	const struct vmpt_pt_cpuid *pt = &m->host;

	if (cpuid->nent < 6) {
		errno = E2BIG;
		return -1;
	}
	cpuid->nent = 0;
	put(cpuid, 0, 0, (struct vmpt_cpuid_regs){ .eax = 0x14 });
	put(cpuid, 7, 0, (struct vmpt_cpuid_regs){ .ebx = (u32)pt->present << 25 });
	put(cpuid, 0x14, 0, pt->leaf14[0]);
	put(cpuid, 0x14, 1, pt->leaf14[1]);
	put(cpuid, 0x80000000, 0, (struct vmpt_cpuid_regs){ .eax = 0x80000008 });
	put(cpuid, 0x80000008, 0,
	    (struct vmpt_cpuid_regs){ .eax = (u32)pt->linear_bits << 8 | pt->maxphyaddr });
	return 0;
}

/* update_intel_pt_cfg(): what the vCPU may do follows the CPUID that it was given. */
static int set_cpuid(struct model *m, const struct kvm_cpuid2 *cpuid)
{
	struct vmpt_pt_cpuid pt = { .maxphyaddr = m->host.maxphyaddr,
				    .linear_bits = m->host.linear_bits };
	u32 i;

	for (i = 0; i < cpuid->nent; i++) {
		const struct kvm_cpuid_entry2 *e = &cpuid->entries[i];

		if (e->function == 7 && !e->index)
			pt.present = e->ebx >> 25 & 1;
		if (e->function == 0x14 && e->index < VMPT_PT_SUBLEAVES)
			pt.leaf14[e->index] =
				(struct vmpt_cpuid_regs){ e->eax, e->ebx, e->ecx, e->edx };
	}
	vmpt_pt_rules_init(&m->rules, &pt);
	return 0;
}

/* kvm_probe_msr_to_save(): by the processor, not by the vCPU. */
static int msr_list(const struct model *m, struct kvm_msr_list *list)
{
	struct vmpt_pt_rules rules;
	u32 msr, n = 0, room = list->nmsrs;

	vmpt_pt_rules_init(&rules, &m->host);
	for (msr = VMPT_MSR_RTIT_OUTPUT_BASE; msr <= VMPT_MSR_RTIT_ADDR3_B; msr++) {
		if (!vmpt_pt_is_msr(msr) || !vmpt_pt_msr_exists(&rules, msr))
			continue;
		if (n < room)
			list->indices[n] = msr;
		n++;
	}
	list->nmsrs = n;
	errno = E2BIG;
	return n > room ? -1 : 0;
}

/*
 * vmx_set_msr(): a write of KVM's user is checked like the guest's. pt_can_write_msr(): only CTL
 * can be written while TraceEn is 1; vmx_rtit_ctl_check(): and then only TraceEn may change;
 * MSR_IA32_RTIT_STATUS_MASK: PendPSB and PendTopaPMI are refused.
 */
static bool set_msr(struct model *m, u32 msr, u64 value)
{
	u64 ctl = m->regs.ctl;

	if (msr == VMPT_MSR_RTIT_CTL && ctl & VMPT_CTL_TRACE_EN &&
	    (ctl ^ value) & ~VMPT_CTL_TRACE_EN)
		return false;
	if (msr == VMPT_MSR_RTIT_STATUS && value & (VMPT_STATUS_PEND_PSB | VMPT_STATUS_PEND_PMI))
		return false;
	if (msr == VMPT_MSR_RTIT_STATUS && !(ctl & VMPT_CTL_TRACE_EN))
		return !vmpt_pt_restore_msr(&m->rules, &m->regs, msr, value, NULL);
	return !vmpt_pt_wrmsr(&m->rules, &m->regs, msr, value, NULL);
}

/* msr_io(): the number of MSRs up to the first that is refused. */
static int set_msrs(struct model *m, const struct kvm_msrs *msrs)
{
	u32 i;

	for (i = 0; i < msrs->nmsrs; i++)
		if (!set_msr(m, msrs->entries[i].index, msrs->entries[i].data))
			break;
	return (int)i;
}

static int get_msrs(const struct model *m, struct kvm_msrs *msrs)
{
	u64 value;
	u32 i;

	for (i = 0; i < msrs->nmsrs; i++) {
		if (vmpt_pt_rdmsr(&m->rules, &m->regs, msrs->entries[i].index, &value, NULL))
			break;
		msrs->entries[i].data = value;
	}
	return (int)i;
}

int model_ioctl(void *opaque, unsigned long request, void *arg)
{
	struct model *m = opaque;

	switch (request) {
	case KVM_GET_SUPPORTED_CPUID:
		return supported_cpuid(m, arg);
	case KVM_SET_CPUID2:
		return set_cpuid(m, arg);
	case KVM_GET_MSR_INDEX_LIST:
		return msr_list(m, arg);
	case KVM_SET_MSRS:
		return set_msrs(m, arg);
	case KVM_GET_MSRS:
		return get_msrs(m, arg);
	}
	errno = EINVAL;
	return -1;
}
