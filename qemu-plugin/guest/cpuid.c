// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * CPUID: some leaves are emulated in place of the instruction. For others QEMU's answer is needed,
 * which is patched after the instruction.
 */
#include <stdio.h>

#include "qemu-plugin/guest/internal.h"

#define LAST_LEAF     0x15U	  /* highest leaf */
#define LAST_RTIT     0x16U	  /* the same with RTIT */
#define INVARIANT_TSC (1U << 8)	  /* 80000007H:EDX */
#define INTEL_EBX     0x756e6547U /* "Genu" */

static void read_regs(const struct vcpu *vcpu, struct vmpt_cpuid_regs *regs)
{
	regs->eax = (u32)qemu_read_reg(vcpu->regs, QREG_RAX);
	regs->ebx = (u32)qemu_read_reg(vcpu->regs, QREG_RBX);
	regs->ecx = (u32)qemu_read_reg(vcpu->regs, QREG_RCX);
	regs->edx = (u32)qemu_read_reg(vcpu->regs, QREG_RDX);
}

/* All 64 bits of each register are written (SDM 2, CPUID). */
static struct guest_result result_of(const struct vmpt_cpuid_regs *regs)
{
	return (struct guest_result){ 4,
				      { QREG_RAX, QREG_RBX, QREG_RCX, QREG_RDX },
				      { regs->eax, regs->ebx, regs->ecx, regs->edx } };
}

static void write_regs(const struct vcpu *vcpu, const struct vmpt_cpuid_regs *regs)
{
	qemu_write_reg(vcpu->regs, QREG_RAX, regs->eax);
	qemu_write_reg(vcpu->regs, QREG_RBX, regs->ebx);
	qemu_write_reg(vcpu->regs, QREG_RCX, regs->ecx);
	qemu_write_reg(vcpu->regs, QREG_RDX, regs->edx);
}

static u32 last_leaf(const struct guest_vcpu *guest)
{
	return guest->vcpu->plugin->rtit ? LAST_RTIT : LAST_LEAF;
}

/* Whether QEMU's answer to @leaf is of no use: beyond its highest leaf it repeats that one. */
static bool is_emulated(const struct guest_vcpu *guest, u32 leaf)
{
	if (guest->max_leaf && leaf > guest->max_leaf && leaf <= last_leaf(guest))
		return true;
	if (guest->vcpu->plugin->rtit)
		return leaf == 0x14 || leaf == 0x16;
	return leaf == 0xa || leaf == 0x14 || leaf == 0x15;
}

/* Whether QEMU's answer to @leaf is changed or at least needed. */
static bool is_patched(u32 leaf)
{
	switch (leaf) {
	case 0:
	case 1:
	case 7:
	case 0xb:
	case 0xd:
	case 0x80000007:
	case 0x80000008:
		return true;
	default:
		return false;
	}
}

void guest_cpuid(struct guest_vcpu *guest, const struct site *site)
{
	struct vcpu *vcpu = guest->vcpu;
	struct vmpt_cpuid_regs regs = { 0 };
	struct guest_result result;
	u32 leaf = (u32)qemu_read_reg(vcpu->regs, QREG_RAX);
	u32 subleaf = (u32)qemu_read_reg(vcpu->regs, QREG_RCX);

	if (is_emulated(guest, leaf)) {
		if (vcpu->plugin->rtit)
			guest_rtit_cpuid(guest, leaf, subleaf, &regs);
		else if (leaf == 0xa)
			guest_pmu_cpuid(guest, &regs);
		else
			vmpt_vcpu_cpuid(&guest->vmm, leaf, subleaf, &regs);
		result = result_of(&regs);
		guest_skip(guest, site, &result);
		return;
	}
	if (!is_patched(leaf))
		return;
	/* At the end of its block: the next instruction is the first of the next block. */
	if (guest_next(guest, site) == site->block->end + vcpu->delta) {
		if (!flow_ready(vcpu, site))
			flow_go_to(vcpu, site_ip(vcpu, site));
		flow_watch(vcpu, true);
	}
	guest->cpuid.pending = true;
	guest->cpuid.leaf = leaf;
	guest->cpuid.subleaf = subleaf;
	guest->cpuid.next = guest_next(guest, site);
}

static void leaf_0(struct guest_vcpu *guest, struct vmpt_cpuid_regs *regs)
{
	struct guest_view *view = guest->vcpu->plugin->guest;

	guest->max_leaf = regs->eax;
	if (regs->eax < last_leaf(guest))
		regs->eax = last_leaf(guest);
	if (regs->ebx == INTEL_EBX || view->not_intel)
		return;
	view->not_intel = true;
	fprintf(stderr,
		"vmpt: guest-view: the processor is not Intel's, but systems look for %s only "
		"there: use -cpu max,vendor=GenuineIntel\n",
		guest->vcpu->plugin->rtit ? "RTIT" : "PT");
}

/*
 * The widths of addresses, by which registers that hold addresses are checked, are known only now.
 * They do not change while tracing, because a guest that traces has asked before.
 */
static void widths(struct guest_vcpu *guest, const struct vmpt_cpuid_regs *regs)
{
	struct guest_view *view = guest->vcpu->plugin->guest;
	struct vmpt_pt_cpuid *cpuid = &view->caps.cpuid;
	u8 physical = regs->eax & 0xff, linear = regs->eax >> 8 & 0xff;

	if (guest->vmm.guest.cpuid.maxphyaddr == physical &&
	    guest->vmm.guest.cpuid.linear_bits == linear)
		return;
	if (guest->unit.regs.ctl & VMPT_CTL_TRACE_EN)
		return;
	view->host.cpuid.maxphyaddr = cpuid->maxphyaddr = physical;
	view->host.cpuid.linear_bits = cpuid->linear_bits = linear;
	(void)guest_make(guest);
}

void guest_cpuid_patch(struct guest_vcpu *guest)
{
	struct vcpu *vcpu = guest->vcpu;
	struct vmpt_cpuid_regs regs;

	guest->cpuid.pending = false;
	read_regs(vcpu, &regs);
	switch (guest->cpuid.leaf) {
	case 0:
		leaf_0(guest, &regs);
		break;
	case 1:
		/* The lower 8 bits of the APIC ID */
		if ((guest->apic.id & 0xff) != regs.ebx >> 24)
			guest->apic.id = regs.ebx >> 24;
		if (vcpu->plugin->rtit)
			guest_rtit_cpuid(guest, 1, 0, &regs);
		break;
	case 0xb:
		guest->apic.id = regs.edx;
		break;
	case 0x80000007:
		if (!vcpu->plugin->options.rdtsc_qemu)
			regs.edx |= INVARIANT_TSC;
		break;
	case 0x80000008:
		if (!vcpu->plugin->rtit)
			widths(guest, &regs);
		break;
	default:
		if (vcpu->plugin->rtit) {
			guest_rtit_cpuid(guest, guest->cpuid.leaf, guest->cpuid.subleaf, &regs);
			break;
		}
		vmpt_vcpu_cpuid(&guest->vmm, guest->cpuid.leaf, guest->cpuid.subleaf, &regs);
		break;
	}
	write_regs(vcpu, &regs);
}
