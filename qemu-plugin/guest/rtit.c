// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * RTIT in place of Intel PT: the guest's processor is one of the Atoms of 2013 to 2015, with the
 * MSRs 760H to 77DH. vmm-lib's vCPU says what is legal, the trace unit is the processor. The
 * registers that the guest sees are always the unit's.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "qemu-plugin/guest/internal.h"

/* Base frequency in MHz (SDM 2, CPUID.16H:EAX) */
#define BASE_MHZ (CLOCK_TSC_KHZ / 1000)

static const struct vmpt_rtit_ops ops = {
	.guest_write = guest_write,
};

/* ---- which processor ---- */

static void print_names(void)
{
	const struct vmpt_rtit_signature *all;
	unsigned int n;

	all = vmpt_rtit_signatures(&n);
	for (unsigned int i = 0; i < n; i++)
		fprintf(stderr, "%s%x-%x", i ? ", " : "", all[i].model, all[i].stepping);
	fputc('\n', stderr);
}

int guest_rtit_find(struct guest_view *view, const struct options *options)
{
	const char *name = options->signature ? options->signature : "37-8";
	const struct vmpt_rtit_signature *all;
	char text[16];
	unsigned int n;

	all = vmpt_rtit_signatures(&n);
	for (unsigned int i = 0; i < n; i++) {
		snprintf(text, sizeof(text), "%x-%x", all[i].model, all[i].stepping);
		if (!strcmp(text, name)) {
			view->signature = &all[i];
			return 0;
		}
	}
	fprintf(stderr, "vmpt: rtit=%s is not known; there are ", name);
	print_names();
	return -1;
}

void guest_rtit_cpuid(const struct guest_vcpu *guest, u32 leaf, u32 subleaf,
		      struct vmpt_cpuid_regs *regs)
{
	const struct plugin *plugin = guest->vcpu->plugin;

	vmpt_rtit_cpuid(plugin->guest->signature, leaf, subleaf, regs);
	/*
	 * Unless CPUID has the TSC's frequency, Linux takes it and that of the APIC's timer from
	 * MSRs of these processors, which QEMU does not have.
	 */
	if (leaf == 0x16 && !plugin->options.rdtsc_qemu)
		regs->eax = regs->ebx = BASE_MHZ;
}

/* ---- the unit ---- */

static int take(void *opaque, u64 pa, const u8 *bytes, size_t len)
{
	struct guest_vcpu *guest = opaque;
	struct guest_view *view = guest->vcpu->plugin->guest;
	bool dram = guest->rtit.dram;

	if (dram && !guest_write(guest, pa, bytes, len))
		return 0;
	if (__atomic_exchange_n(dram ? &view->no_ram : &view->no_port, true, __ATOMIC_RELAXED))
		return 0;
	if (dram)
		fprintf(stderr, "vmpt: guest-view: output at 0x%llx, where no RAM is, is dropped\n",
			(unsigned long long)pa);
	else
		fputs("vmpt: guest-view: output to a debug port (RTIT_CTL.Dest = 0) is dropped\n",
		      stderr);
	return 0;
}

int guest_rtit_make(struct guest_vcpu *guest)
{
	const struct plugin *plugin = guest->vcpu->plugin;
	struct guest_rtit *rtit = &guest->rtit;
	const struct vmpt_rtit_config config = { .ops = &ops, .opaque = guest };
	struct vmpt_rtit_unit_config unit = {
		.options.errata = (u32)plugin->options.errata,
		.sink = &rtit->sink,
	};

	rtit->sink = (struct vmpt_rtit_sink){ take, guest };
	if (!vmpt_rtit_vcpu_init(&rtit->vmm, &config) && !vmpt_rtit_unit_init(&rtit->unit, &unit)) {
		rtit->unit.acbr = rtit->unit.ecbr = CLOCK_TSC_KHZ / 100000;
		return 0;
	}
	fputs("vmpt: guest-view: cannot set up RTIT\n", stderr);
	return -1;
}

/* With Trace_En it needs events even if it does not trace, to keep FilterEn right (2.4.3). */
static void attach(struct guest_vcpu *guest)
{
	flow_rtit(guest->vcpu, &guest->rtit.unit,
		  guest->rtit.unit.regs.ctl & VMPT_RTIT_CTL_TRACE_EN);
}

void guest_rtit_reset(struct guest_vcpu *guest)
{
	(void)vmpt_rtit_vcpu_reset(&guest->rtit.vmm);
	vmpt_rtit_unit_reset(&guest->rtit.unit);
	guest->rtit.dram = false;
	attach(guest);
}

void guest_rtit_tick(struct guest_vcpu *guest)
{
	struct vmpt_rtit_clocks now;

	attach(guest);
	if (!guest->rtit.unit.trigger_en)
		return;
	rtit_clocks(guest->vcpu, &now);
	rtit_time(&guest->rtit.unit, &now);
}

/* ---- RDMSR and WRMSR ---- */

/* Before an access at @ip: while the unit is off it does not follow the processor's mode. */
static void bring_up(struct guest_vcpu *guest, u64 ip)
{
	struct vmpt_rtit_unit *unit = &guest->rtit.unit;
	struct vmpt_rtit_far far = { .ip = ip, .target = ip, .mode = rtit_mode(guest->vcpu) };
	struct vmpt_rtit_clocks now;
	bool read = guest->rtit.vmm.regs.ctl_read;

	rtit_clocks(guest->vcpu, &now);
	rtit_time(unit, &now);
	if (!(unit->regs.ctl & VMPT_RTIT_CTL_TRACE_EN))
		vmpt_rtit_unit_far(unit, &far);
	(void)vmpt_rtit_unit_drain(unit);
	guest->rtit.vmm.regs = unit->regs;
	guest->rtit.vmm.regs.ctl_read = read;
}

int guest_rtit_read(struct guest_vcpu *guest, u32 msr, u64 ip, u64 *value)
{
	struct guest_rtit *rtit = &guest->rtit;
	u64 same;
	int ret;

	bring_up(guest, ip);
	ret = vmpt_rtit_vcpu_rdmsr(&rtit->vmm, msr, rtit->unit.context_en, value);
	/* The unit keeps track of whether CTL was read, too. */
	if (!ret)
		(void)vmpt_rtit_unit_rdmsr(&rtit->unit, msr, &same);
	return ret;
}

/*
 * A WRMSR of CTL may change where output goes. Packets that it makes itself go to the old place if
 * it ends tracing, and to the new one if it starts it. What hardware does is not documented.
 */
static int write_unit(struct guest_rtit *rtit, u32 msr, u64 value, u64 next)
{
	bool begins = msr == VMPT_RTIT_MSR_CTL && !rtit->unit.trigger_en &&
		      (value & VMPT_RTIT_CTL_TRIGGER) == VMPT_RTIT_CTL_TRIGGER;
	int ret;

	if (begins)
		rtit->dram = value & VMPT_RTIT_CTL_DEST;
	ret = vmpt_rtit_unit_wrmsr(&rtit->unit, msr, value, next);
	rtit->dram = rtit->unit.regs.ctl & VMPT_RTIT_CTL_DEST;
	return ret;
}

int guest_rtit_write(struct guest_vcpu *guest, u32 msr, u64 value, u64 ip, u64 next)
{
	struct guest_rtit *rtit = &guest->rtit;
	int ret;

	bring_up(guest, ip);
	ret = vmpt_rtit_vcpu_wrmsr(&rtit->vmm, msr, value);
	if (!ret)
		ret = write_unit(rtit, msr, value, next);
	attach(guest);
	return ret;
}
