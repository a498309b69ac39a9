// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * PT in a user-space VMM on KVM: pt.h. What KVM allows is from torvalds/linux 6.12,
 * Documentation/virt/kvm/api.rst (4.3 KVM_GET_MSR_INDEX_LIST, 4.18 KVM_GET_MSRS, 4.19 KVM_SET_MSRS,
 * 4.46 KVM_GET_SUPPORTED_CPUID) and arch/x86/kvm/vmx/vmx.c (vmx_set_msr()). On a real KVM: not
 * tested.
 */
#include <stdio.h>
#include <stdlib.h>

#include <vmpt/arch/pt-regs.h>
#include "pt.h"

/* ---- CPUID ---- */

static struct kvm_cpuid_entry2 *find(struct kvm_cpuid2 *cpuid, u32 leaf, u32 subleaf)
{
	u32 i;

	for (i = 0; i < cpuid->nent; i++)
		if (cpuid->entries[i].function == leaf && cpuid->entries[i].index == subleaf)
			return &cpuid->entries[i];
	return NULL;
}

static int read_leaf(void *opaque, u32 leaf, u32 subleaf, struct vmpt_cpuid_regs *regs)
{
	const struct kvm_cpuid_entry2 *e = find((struct kvm_cpuid2 *)opaque, leaf, subleaf);

	memset(regs, 0, sizeof(*regs));
	if (e) {
		regs->eax = e->eax;
		regs->ebx = e->ebx;
		regs->ecx = e->ecx;
		regs->edx = e->edx;
	}
	return 0;
}

int pt_host(const struct kvm *kvm, struct kvm_cpuid2 *cpuid, struct vmpt_caps *host)
{
	struct vmpt_cpu_reader reader = { .cpuid = read_leaf, .opaque = cpuid };

	cpuid->nent = PT_CPUID_ENTRIES;
	if (kvm->ioctl(kvm->opaque, KVM_GET_SUPPORTED_CPUID, cpuid))
		return -1;
	if (vmpt_caps_read(host, &reader))
		return -1;
	/* The VMX controls are KVM's: it shows PT only where it has those that it needs. */
	host->vmx = host->cpuid.present ? VMPT_VMX_PT : 0;
	return 0;
}

/* KVM takes what it is given (6.12 does not check leaf 14H): check it with vmpt_caps_check(). */
int pt_set_cpuid(struct kvm_cpuid2 *cpuid, const struct vmpt_caps *guest)
{
	const struct vmpt_pt_cpuid *pt = &guest->cpuid;
	struct kvm_cpuid_entry2 *seven = find(cpuid, 7, 0), *e;
	u32 i;

	if (!seven)
		return pt->present ? -1 : 0;
	seven->ebx = (seven->ebx & ~(1u << 25)) | (u32)pt->present << 25;
	for (i = 0; i < VMPT_PT_SUBLEAVES; i++) {
		e = find(cpuid, 0x14, i);
		if (!e && cpuid->nent == PT_CPUID_ENTRIES)
			return -1;
		if (!e)
			e = &cpuid->entries[cpuid->nent++];
		*e = (struct kvm_cpuid_entry2){
			.function = 0x14,
			.index = i,
			.flags = KVM_CPUID_FLAG_SIGNIFCANT_INDEX,
			.eax = pt->leaf14[i].eax,
			.ebx = pt->leaf14[i].ebx,
			.ecx = pt->leaf14[i].ecx,
			.edx = pt->leaf14[i].edx,
		};
	}
	return 0;
}

/* ---- MSRs ---- */

/* Results are the number of MSRs up to the first that KVM refuses. */
static int do_msrs(const struct kvm *vcpu, unsigned long request, struct kvm_msr_entry *msr, u32 n)
{
	struct kvm_msrs *msrs = calloc(1, sizeof(*msrs) + n * sizeof(*msr));
	int done;

	if (!msrs)
		return -1;
	msrs->nmsrs = n;
	memcpy(msrs->entries, msr, n * sizeof(*msr));
	done = vcpu->ioctl(vcpu->opaque, request, msrs);
	memcpy(msr, msrs->entries, n * sizeof(*msr));
	free(msrs);
	return done;
}

/* Whether KVM can save @msr on this host. */
static bool listed(const struct kvm *kvm, u32 msr)
{
	const u32 room = 2048;
	struct kvm_msr_list *list = calloc(1, sizeof(*list) + room * sizeof(list->indices[0]));
	bool found = false;
	u32 i;

	if (!list)
		return false;
	list->nmsrs = room;
	if (!kvm->ioctl(kvm->opaque, KVM_GET_MSR_INDEX_LIST, list))
		for (i = 0; i < list->nmsrs; i++)
			found |= list->indices[i] == msr;
	free(list);
	return found;
}

/*
 * Bit 55 of 38EH belongs to it: KVM moves it with the other MSRs of the virtual PMU. A guest's
 * buffers are its memory.
 */
int pt_save(const struct kvm *kvm, const struct kvm *vcpu, const struct vmpt_caps *guest,
	    struct pt_state *state)
{
	static const u32 order[PT_MSRS] = { 0x560, 0x561, 0x571, 0x572, 0x580, 0x581, 0x582,
					    0x583, 0x584, 0x585, 0x586, 0x587, 0x570 };
	struct vmpt_pt_rules rules;
	u32 i;

	memset(state, 0, sizeof(*state));
	state->guest = *guest;
	vmpt_pt_rules_init(&rules, &guest->cpuid);
	for (i = 0; i < PT_MSRS; i++) {
		if (!vmpt_pt_msr_exists(&rules, order[i]))
			continue;
		if (!listed(kvm, order[i]))
			return -1; /* the guest has it, and it would be lost */
		state->msr[state->count++].index = order[i];
	}
	if (do_msrs(vcpu, KVM_GET_MSRS, state->msr, state->count) != (int)state->count)
		return -1;
	return 0;
}

/* What comes from another host may be anything: it must be a state that this guest can have. */
static int check(const struct pt_state *state, char why[200])
{
	struct vmpt_pt_regs regs = { 0 };
	struct vmpt_pt_rules rules;
	enum vmpt_gp_reason reason;
	u32 i;

	vmpt_pt_rules_init(&rules, &state->guest.cpuid);
	for (i = 0; i < state->count; i++) {
		const struct kvm_msr_entry *e = &state->msr[i];

		reason = VMPT_GP_ABSENT;
		if (!vmpt_pt_restore_msr(&rules, &regs, e->index, e->data, &reason))
			continue;
		snprintf(why, 200, "MSR %x: %llx: %s", e->index, (unsigned long long)e->data,
			 vmpt_gp_reason(reason));
		return -1;
	}
	return 0;
}

/* While TraceEn is 1, KVM refuses all other PT MSRs, its user's too. */
static int stop(const struct kvm *vcpu)
{
	struct kvm_msr_entry ctl = { .index = VMPT_MSR_RTIT_CTL };

	if (do_msrs(vcpu, KVM_GET_MSRS, &ctl, 1) != 1)
		return -1;
	if (!(ctl.data & VMPT_CTL_TRACE_EN))
		return 0;
	ctl.data &= ~VMPT_CTL_TRACE_EN; /* no other bit may change with it */
	return do_msrs(vcpu, KVM_SET_MSRS, &ctl, 1) == 1 ? 0 : -1;
}

int pt_restore(const struct kvm *vcpu, const struct vmpt_caps *host, const struct pt_state *state,
	       char why[200])
{
	struct kvm_msr_entry msr[PT_MSRS];
	struct vmpt_refusal refusal;
	int done;

	if (vmpt_caps_check(host, &state->guest, &refusal)) {
		snprintf(why, 200, "%s: %s (the guest's %llx, the host's %llx)", refusal.field,
			 refusal.rule, (unsigned long long)refusal.guest,
			 (unsigned long long)refusal.host);
		return -1;
	}
	if (state->count > PT_MSRS || check(state, why))
		return -1;
	if (stop(vcpu)) {
		snprintf(why, 200, "tracing cannot be stopped");
		return -1;
	}
	memcpy(msr, state->msr, sizeof(msr)); /* CTL is the last of them */
	done = do_msrs(vcpu, KVM_SET_MSRS, msr, state->count);
	if (done == (int)state->count)
		return 0;
	snprintf(why, 200, "KVM refuses MSR %x: %llx", msr[done < 0 ? 0 : done].index,
		 (unsigned long long)msr[done < 0 ? 0 : done].data);
	return -1;
}
