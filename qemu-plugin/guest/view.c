// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The guest view as the flow sees it: which instructions need a callback, what happens there, and
 * RESET.
 */
#include "qemu-plugin/guest/guest.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "qemu-plugin/guest/internal.h"

/* MSRs whose access faults in QEMU: VM_HSAVE_PA with a reserved bit, and no APIC register. */
#define MSR_FAULTS_WRITE 0xc0010117
#define MSR_FAULTS_READ	 0x8ff

/* RFLAGS: #DB after each instruction */
#define EFLAGS_TF 0x100

/* Blocks between two reads of a masked LVT entry for which a PMI is pending */
#define POLL 64

static const struct vmpt_ops ops = {
	.guest_read = guest_read,
	.guest_write = guest_write,
	.inject_pmi = guest_inject_pmi,
};

/* ---- for the other files ---- */

u64 guest_next(const struct guest_vcpu *guest, const struct site *site)
{
	return site_ip(guest->vcpu, site) + site->size;
}

struct guest_result guest_edx_eax(u64 value)
{
	return (struct guest_result){ 2, { QREG_RAX, QREG_RDX }, { LOW32(value), value >> 32 } };
}

static void write_result(struct guest_vcpu *guest, const struct guest_result *result)
{
	for (unsigned int i = 0; i < result->count; i++)
		qemu_write_reg(guest->vcpu->regs, result->reg[i], result->value[i]);
}

void guest_skip(struct guest_vcpu *guest, const struct site *site,
		const struct guest_result *result)
{
	/* QEMU's blocks have one instruction when the guest steps. */
	if (site->block->start == site->block->last &&
	    qemu_read_reg(guest->vcpu->regs, QREG_EFLAGS) & EFLAGS_TF) {
		guest->step.pending = true;
		guest->step.next = guest_next(guest, site);
		guest->step.result = *result;
		return;
	}
	write_result(guest, result);
	flow_go_to(guest->vcpu, guest_next(guest, site));
}

/* The #DB after an instruction that the guest stepped over. */
static void finish_step(struct guest_vcpu *guest, u64 from)
{
	guest->step.pending = false;
	if (from == guest->step.next)
		write_result(guest, &guest->step.result);
}

void guest_fault(struct guest_vcpu *guest, const struct site *site, bool write)
{
	struct qemu_regs *regs = guest->vcpu->regs;

	guest->fault.pending = true;
	guest->fault.ip = site_ip(guest->vcpu, site);
	guest->fault.rax = qemu_read_reg(regs, QREG_RAX);
	guest->fault.rcx = qemu_read_reg(regs, QREG_RCX);
	guest->fault.rdx = qemu_read_reg(regs, QREG_RDX);
	qemu_write_reg(regs, QREG_RCX, write ? MSR_FAULTS_WRITE : MSR_FAULTS_READ);
	qemu_write_reg(regs, QREG_RAX, 1);
	qemu_write_reg(regs, QREG_RDX, 0);
}

static void unfault(struct guest_vcpu *guest)
{
	struct qemu_regs *regs = guest->vcpu->regs;

	guest->fault.pending = false;
	qemu_write_reg(regs, QREG_RAX, guest->fault.rax);
	qemu_write_reg(regs, QREG_RCX, guest->fault.rcx);
	qemu_write_reg(regs, QREG_RDX, guest->fault.rdx);
}

/* ---- open and close ---- */

int guest_view_open(struct plugin *plugin)
{
	struct guest_view *view;

	if (!plugin->options.guest_view)
		return 0;
	view = calloc(1, sizeof(*view));
	if (!view) {
		fputs("vmpt: no memory\n", stderr);
		return -1;
	}
	if (plugin->rtit ? guest_rtit_find(view, &plugin->options)
			 : guest_caps(view, &plugin->options)) {
		free(view);
		return -1;
	}
	plugin->guest = view;
	return 0;
}

static void pmi(void *opaque)
{
	struct guest_vcpu *guest = opaque;

	vmpt_vcpu_pmi(&guest->vmm);
}

int guest_make(struct guest_vcpu *guest)
{
	const struct plugin *plugin = guest->vcpu->plugin;
	const struct guest_view *view = plugin->guest;
	struct vmpt_config config = {
		.host = &view->host,
		.guest = &view->caps,
		.plan = &view->plan,
		.ops = &ops,
		.opaque = guest,
		.tsc_multiplier = plugin->options.tsc_multiplier,
	};
	struct vmpt_unit_config unit = {
		.cpuid = view->caps.cpuid,
		.memory = &guest->memory,
		.pmi = pmi,
		.opaque = guest,
	};
	struct vmpt_refusal why = { .field = "", .rule = "" };

	guest->memory = (struct vmpt_output_memory){ guest_read_entry, guest_write_output, guest };
	if (!vmpt_vcpu_init(&guest->vmm, &config, &why) && !vmpt_unit_init(&guest->unit, &unit))
		return 0;
	fprintf(stderr, "vmpt: guest-view: %s: %s\n", why.field, why.rule);
	return -1;
}

int guest_vcpu_open(struct vcpu *vcpu)
{
	struct guest_vcpu *guest = calloc(1, sizeof(*guest));

	if (!guest) {
		fputs("vmpt: no memory\n", stderr);
		return -1;
	}
	guest->vcpu = vcpu;
	guest->apic.id = vcpu->index;
	guest_pmu_reset(guest);
	vcpu->guest = guest;
	return vcpu->plugin->rtit ? guest_rtit_make(guest) : guest_make(guest);
}

/* ---- RESET ---- */

/* QEMU's reset does not stand for power-on: it is a warm one (SDM 3 33.2.8.1). */
static void reset(struct guest_vcpu *guest)
{
	__atomic_store_n(&guest->reset, false, __ATOMIC_RELAXED);
	if (guest->vcpu->plugin->rtit) {
		guest_rtit_reset(guest);
	} else {
		vmpt_vcpu_reset(&guest->vmm, true);
		vmpt_unit_reset(&guest->unit, true);
		guest_attach(guest);
	}
	guest_pmu_reset(guest);
	guest->apic.waiting = false;
	guest->tsc_adjust = 0;
	guest->cpuid.pending = false;
	guest->fault.pending = false;
	guest->step.pending = false;
	guest->probe.pending = false;
	memset(&guest->aux, 0, sizeof(guest->aux));
	flow_watch(guest->vcpu, false);
}

/*
 * vCPU 0 is at the reset vector: all vCPUs were reset, and notice when they execute again. No vCPU
 * runs while QEMU resets, so none notices too early.
 */
static void reset_all(struct plugin *plugin)
{
	for (unsigned int i = 0; i < VCPUS; i++) {
		struct vcpu *vcpu = plugin->vcpu[i];

		if (vcpu && vcpu->guest)
			__atomic_store_n(&vcpu->guest->reset, true, __ATOMIC_RELAXED);
	}
}

static void notice_reset(struct guest_vcpu *guest)
{
	if (__atomic_load_n(&guest->reset, __ATOMIC_RELAXED))
		reset(guest);
}

/* ---- what the flow calls ---- */

static bool hooks(const struct plugin *plugin, unsigned int hook)
{
	switch (hook) {
	case HOOK_CPUID:
	case HOOK_AFTER_CPUID:
	case HOOK_RDMSR:
	case HOOK_WRMSR:
	case HOOK_AFTER_PROBE:
	case HOOK_RESET:
		return true;
	case HOOK_RDPMC:
		return !plugin->rtit;
	case HOOK_RDTSC:
		return !plugin->options.rdtsc_qemu;
	case HOOK_PTWRITE:
		return !plugin->rtit &&
		       vmpt_pt_cap_effective(&plugin->guest->caps.cpuid, VMPT_CAP_PTWRITE);
	default:
		return false;
	}
}

static void site_executes(struct vcpu *vcpu, const struct site *site)
{
	struct guest_vcpu *guest = vcpu->guest;

	if (site->hook == HOOK_RESET && !vcpu->index)
		reset_all(vcpu->plugin);
	notice_reset(guest);
	ram_find(vcpu);
	guest->aux.pending = false;
	if (guest->cpuid.pending)
		guest_cpuid_patch(guest);
	switch (site->hook) {
	case HOOK_CPUID:
		guest_cpuid(guest, site);
		break;
	case HOOK_RDMSR:
		if (!vcpu->mode.cpl)
			guest_rdmsr(guest, site);
		break;
	case HOOK_WRMSR:
		if (!vcpu->mode.cpl)
			guest_wrmsr(guest, site);
		break;
	case HOOK_RDTSC:
		guest_rdtsc(guest, site);
		break;
	case HOOK_RDPMC:
		guest_rdpmc(guest, site);
		break;
	case HOOK_PTWRITE:
		guest_ptwrite(guest, site);
		break;
	case HOOK_AFTER_PROBE:
		guest_probe_passed(guest, site);
		break;
	default:
		break;
	}
}

static u64 event(struct vcpu *vcpu, u64 from)
{
	struct guest_vcpu *guest = vcpu->guest;

	notice_reset(guest);
	if (guest->fault.pending && from == guest->fault.ip)
		unfault(guest);
	if (guest->step.pending)
		finish_step(guest, from);
	if (guest->aux.pending && from == guest->aux.ip)
		guest->aux.now = guest->aux.before;
	guest->aux.pending = false;
	if (guest->cpuid.pending && from == guest->cpuid.next)
		guest_cpuid_patch(guest);
	return guest->probe.pending ? guest_probe_faulted(guest, from) : from;
}

static void watched_block(struct vcpu *vcpu)
{
	struct guest_vcpu *guest = vcpu->guest;

	notice_reset(guest);
	if (guest->cpuid.pending)
		guest_cpuid_patch(guest);
	/* Polling takes a lock of QEMU's. */
	if (guest->apic.waiting && ++guest->apic.polls % POLL == 0)
		guest_apic_poll(guest);
	if (!guest->apic.waiting)
		flow_watch(vcpu, false);
}

static void state(const struct vcpu *vcpu, struct truth_state *state)
{
	const struct vmpt_pt_regs *regs = &vcpu->guest->unit.regs;

	if (vcpu->plugin->rtit) {
		state->ctl = vcpu->guest->rtit.unit.regs.ctl;
		return;
	}
	state->ctl = regs->ctl;
	memcpy(state->ranges, regs->addr, sizeof(state->ranges));
}

static void tick(struct vcpu *vcpu)
{
	struct guest_vcpu *guest = vcpu->guest;
	struct vmpt_now now;

	notice_reset(guest);
	if (vcpu->plugin->rtit) {
		guest_rtit_tick(guest);
		return;
	}
	if (!guest->unit.trigger_en) {
		guest_attach(guest);
		return;
	}
	guest_clocks(guest, &now);
	vmpt_unit_time(&guest->unit, &now);
}

static void counted(struct vcpu *vcpu)
{
	struct guest_vcpu *guest = vcpu->guest;

	notice_reset(guest);
	guest_pmu_count(guest);
}

const struct guest_ops guest_view_ops = {
	.hooks = hooks,
	.probes = guest_probes,
	.site = site_executes,
	.event = event,
	.block = watched_block,
	.tick = tick,
	.counted = counted,
	.state = state,
};
