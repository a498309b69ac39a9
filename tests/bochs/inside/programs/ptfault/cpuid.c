// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Scenarios of CPUIDs that user space sets and how KVM handles them.
 */
#include "faults.h"

#define HOSTILE_RANGES 7
#define LEAF7_PT       (1u << 25)

static const struct {
	u32 leaf14_ebx;
	u64 ctl;
	const char *name;
} offers[] = {
	{ 1u << 6, VMPT_CTL_INJECT, "InjectPsbPmiOnEnable" },
	{ 1u << 7, VMPT_CTL_EVENT_EN, "EventEn" },
	{ 1u << 8, VMPT_CTL_DIS_TNT, "DisTNT" },
};

void fault_d03(struct scene *s)
{
	struct kvm_cpuid_entry2 *leaf;
	u64 ctl = 0;
	int error;

	scene_open(s, false);
	scene_topa(s, 4, 0);
	leaf = scene_leaf(s, 0x14, 1);
	leaf->eax = (leaf->eax & ~7u) | HOSTILE_RANGES;
	error = scene_set_cpuid(s);
	if (error) {
		ok("KVM_SET_CPUID2: %s", strerror(error));
		return;
	}
	scene_op_start(s, CTL_TRACE);
	scene_op(s, OP_WORK, 10, 0);
	scene_load(s);
	scene_run(s);
	if (vcpu_get_msr(&s->vcpu, VMPT_MSR_RTIT_CTL, &ctl) || ctl != CTL_TRACE)
		fault("guest wrote RTIT_CTL %#llx, KVM_GET_MSRS says %#llx: host's registers were "
		      "saved over the guest's; %s",
		      (unsigned long long)CTL_TRACE, (unsigned long long)ctl,
		      scene_said(s, "unchecked MSR access") ? s->line : "no kernel message");
	else
		ok("RTIT_CTL is what the guest wrote");
}

void fault_d09(struct scene *s)
{
	const u64 reserved = 1ull << 63;
	enum scene_end end;
	u32 op;

	scene_open(s, false);
	scene_leaf(s, 7, 0)->ebx &= ~LEAF7_PT;
	if (scene_set_cpuid(s))
		die("CPUID without PT is refused");
	op = scene_op(s, OP_WRMSR, VMPT_MSR_RTIT_CTL, reserved);
	scene_load(s);
	end = scene_run(s);
	if (end == SCENE_DONE && s->ops[op].fault == 1 + 13)
		ok("#GP");
	else
		fault("the write of %#llx was taken; %s %#llx", (unsigned long long)reserved,
		      scene_end_name(end), (unsigned long long)s->reason);
}

void fault_d10(struct scene *s)
{
	char refused[LINE_SIZE] = "", *at = refused;
	u32 ops[VMPT_ARRAY_SIZE(offers)] = { 0 };
	u32 i, n = 0, ebx;
	enum scene_end end;

	scene_open(s, false);
	ebx = scene_leaf(s, 0x14, 0)->ebx;
	for (i = 0; i < VMPT_ARRAY_SIZE(offers); i++) {
		if (!(ebx & offers[i].leaf14_ebx))
			continue;
		ops[i] = scene_op(s, OP_WRMSR, VMPT_MSR_RTIT_CTL, offers[i].ctl);
		scene_op(s, OP_WRMSR, VMPT_MSR_RTIT_CTL, 0);
		n++;
	}
	if (!n) {
		ok("CPUID 14H EBX %#x offers none of the three", ebx);
		return;
	}
	scene_load(s);
	end = scene_run(s);
	for (i = 0; i < VMPT_ARRAY_SIZE(offers); i++) {
		if ((ebx & offers[i].leaf14_ebx) && s->ops[ops[i]].fault) {
			memcpy(at, " ", 1);
			memcpy(at + 1, offers[i].name, strlen(offers[i].name) + 1);
			at += strlen(at);
		}
	}
	if (end != SCENE_DONE)
		fault("%s %#llx", scene_end_name(end), (unsigned long long)s->reason);
	else if (at != refused)
		fault("CPUID 14H EBX %#x offers what gets #GP:%s", ebx, refused);
	else
		ok("all that EBX %#x offers is taken", ebx);
}

void fault_d11(struct scene *s)
{
	enum scene_end end;
	u32 op;
	int error;

	scene_open(s, false);
	scene_leaf(s, 0x14, 0)->ecx |= 1u << 3;
	error = scene_set_cpuid(s);
	if (error) {
		ok("KVM_SET_CPUID2: %s", strerror(error));
		return;
	}
	op = scene_op(s, OP_WRMSR, VMPT_MSR_RTIT_CTL, VMPT_CTL_FABRIC_EN);
	scene_load(s);
	end = scene_run(s);
	if (end == SCENE_DONE && s->ops[op].fault)
		ok("#GP");
	else
		fault("FabricEn goes to the VMCS; %s %#llx", scene_end_name(end),
		      (unsigned long long)s->reason);
}

void fault_d12(struct scene *s)
{
	struct kvm_cpuid_entry2 *leaf;
	int error;

	scene_open(s, false);
	leaf = scene_leaf(s, 0x14, 0);
	leaf->ebx = ~0u;
	leaf->ecx = ~0u;
	leaf = scene_leaf(s, 0x14, 1);
	leaf->eax = ~0u;
	leaf->ebx = ~0u;
	error = scene_set_cpuid(s);
	if (error)
		ok("KVM_SET_CPUID2: %s", strerror(error));
	else
		fault("KVM_SET_CPUID2 takes leaf 14H with all bits of EBX and ECX set");
}

void fault_d24(struct scene *s)
{
	u32 info, leaf;
	u64 ratio;

	scene_open(s, false);
	info = scene_op(s, OP_RDMSR, VMPT_MSR_PLATFORM_INFO, 0);
	leaf = scene_op(s, OP_CPUID, 0, 0x15);
	scene_load(s);
	if (scene_run(s) != SCENE_DONE)
		die("the guest did not end");
	ratio = s->ops[info].result >> 8 & 0xff;
	if (!ratio && !(u32)s->ops[leaf].result)
		fault("MSR_PLATFORM_INFO is %#llx (ratio 0), CPUID 15H EAX is 0",
		      (unsigned long long)s->ops[info].result);
	else
		ok("ratio %llu, CPUID 15H EAX %u", (unsigned long long)ratio,
		   (u32)s->ops[leaf].result);
}

void fault_d26(struct scene *s)
{
	struct kvm_cpuid_entry2 *leaf;

	scene_open(s, false);
	leaf = cpuid_find(&s->cpuid, 0xd, 1);
	if (leaf && leaf->ecx & 1u << 8)
		fault("CPUID 0DH.1 ECX is %#x", leaf->ecx);
	else
		ok("CPUID 0DH.1 ECX is %#x", leaf ? leaf->ecx : 0);
}

void fault_d27(struct scene *s)
{
	u32 op;

	scene_open(s, false);
	if ((scene_leaf(s, 0xa, 0)->eax & 0xff) < 2) {
		skip("KVM offers guests no PMU of version 2");
		return;
	}
	scene_leaf(s, 7, 0)->ebx &= ~LEAF7_PT;
	if (scene_set_cpuid(s))
		die("CPUID without PT is refused");
	op = scene_op(s, OP_WRMSR, VMPT_MSR_PERF_GLOBAL_RESET, 1ull << 55);
	scene_load(s);
	if (scene_run(s) != SCENE_DONE)
		die("the guest did not end");
	if (s->ops[op].fault)
		ok("#GP");
	else
		fault("the write is taken");
}

void fault_d28(struct scene *s)
{
	struct kvm_cpuid_entry2 *leaf;
	u32 op;
	int error;

	scene_open(s, false);
	leaf = scene_leaf(s, 0x14, 1);
	if (!(leaf->eax & ~1u << 16 & 0xffff0000)) {
		skip("this processor has only the shortest MTC period");
		return;
	}
	leaf->eax &= ~(1u << 16);
	error = scene_set_cpuid(s);
	if (error)
		die("KVM_SET_CPUID2 refuses fewer MTC periods: %s", strerror(error));
	op = scene_op(s, OP_WRMSR, VMPT_MSR_RTIT_CTL, VMPT_CTL_OS);
	scene_load(s);
	if (scene_run(s) != SCENE_DONE)
		die("the guest did not end");
	if (s->ops[op].fault)
		fault("#GP with MTC periods %#x and MTCEn 0", leaf->eax >> 16);
	else
		ok("taken");
}
