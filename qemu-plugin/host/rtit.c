// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * What a host CPU's RTIT unit does around a run, and moving a run in time.
 */
#include "qemu-plugin/host/rtit.h"

#include <stdio.h>

#include "vmm-lib/rtit.h"

/* Core/bus, as clock_read() has CBR. */
#define RATIO (CLOCK_TSC_KHZ / 100000)
/* RTIT_EVENTS: filter always on, TraceStop always off */
#define EVENTS (VMPT_RTIT_EVENT_ON | VMPT_RTIT_EVENT_OFF << VMPT_RTIT_EVENTS_STOP_SHIFT)
/* The view sets these; filters need MSRs for which there is no option. */
#define CTL_REFUSED (VMPT_RTIT_CTL_TRIGGER | VMPT_RTIT_CTL_DEST | VMPT_RTIT_CTL_CR3_EN)

int host_rtit_check(u64 ctl)
{
	struct vmpt_rtit_rules rules = { 0 };
	struct vmpt_rtit_regs regs;

	vmpt_rtit_reset(&regs);
	regs.ctl_read = true;
	if (!(ctl & CTL_REFUSED) && !vmpt_rtit_wrmsr(&rules, &regs, VMPT_RTIT_MSR_CTL, ctl, NULL))
		return 0;
	fprintf(stderr, "vmpt: ctl=0x%llx: %s\n", (unsigned long long)ctl,
		ctl & CTL_REFUSED ? "Trace_En, TraceActive, Dest and CR3En cannot be chosen here"
				  : "a processor would refuse it (#GP)");
	return -1;
}

void host_rtit_init(struct vmpt_rtit_unit *unit, const struct options *options,
		    const struct vmpt_rtit_sink *sink)
{
	struct vmpt_rtit_unit_config config = {
		.options.errata = (u32)options->errata,
		.sink = sink,
	};
	u64 ctl;

	vmpt_rtit_unit_init(unit, &config);
	vmpt_rtit_unit_rdmsr(unit, VMPT_RTIT_MSR_CTL, &ctl);
	vmpt_rtit_unit_wrmsr(unit, VMPT_RTIT_MSR_EVENTS, EVENTS, 0);
	vmpt_rtit_unit_wrmsr(unit, VMPT_RTIT_MSR_CTL, options->ctl, 0);
	unit->acbr = unit->ecbr = RATIO;
	vmpt_rtit_unit_vmxon(unit, 0);
}

/* The only legal order (3.3.2): Trace_En is set first and cleared last. */
static void switch_on(struct vmpt_rtit_unit *unit)
{
	u64 ctl = unit->regs.ctl | VMPT_RTIT_CTL_TRACE_EN;

	vmpt_rtit_unit_wrmsr(unit, VMPT_RTIT_MSR_CTL, ctl, 0);
	vmpt_rtit_unit_wrmsr(unit, VMPT_RTIT_MSR_CTL, ctl | VMPT_RTIT_CTL_TRACE_ACTIVE, 0);
}

static void switch_off(struct vmpt_rtit_unit *unit)
{
	u64 ctl = unit->regs.ctl & ~VMPT_RTIT_CTL_TRACE_ACTIVE;

	vmpt_rtit_unit_wrmsr(unit, VMPT_RTIT_MSR_CTL, ctl, 0);
	vmpt_rtit_unit_wrmsr(unit, VMPT_RTIT_MSR_CTL, ctl & ~VMPT_RTIT_CTL_TRACE_EN, 0);
	vmpt_rtit_unit_drain(unit);
}

void host_rtit_enter(struct vmpt_rtit_unit *unit, struct vcpu *vcpu, u64 ip)
{
	struct vmpt_rtit_mode mode = rtit_mode(vcpu);
	struct vmpt_rtit_clocks now;

	rtit_clocks(vcpu, &now);
	vmpt_rtit_unit_time(unit, &now);
	switch_on(unit);
	vmpt_rtit_unit_vmentry(unit, ip, &mode);
	/* As after a sleep of the host: makes an STS, so that each run has its time. */
	vmpt_rtit_unit_wake(unit, &now);
}

void host_rtit_exit(struct vmpt_rtit_unit *unit, struct vcpu *vcpu, u64 ip)
{
	const struct vmpt_rtit_mode host = { .paging = true };
	struct vmpt_rtit_clocks now;

	rtit_clocks(vcpu, &now);
	rtit_time(unit, &now);
	vmpt_rtit_unit_vmexit(unit, ip, &host);
	switch_off(unit);
}

void host_rtit_lost(const struct options *options, const struct vmpt_rtit_sink *sink, u64 ip)
{
	/* Some mode that this CTL traces. */
	struct vmpt_rtit_mode mode = { .paging = true,
				       .cpl = options->ctl & VMPT_RTIT_CTL_OS ? 0 : 3 };
	struct vmpt_rtit_unit unit;

	host_rtit_init(&unit, options, sink);
	switch_on(&unit);
	vmpt_rtit_unit_overflow(&unit);
	vmpt_rtit_unit_vmentry(&unit, ip, &mode);
	vmpt_rtit_unit_overflow_resolve(&unit, ip);
	vmpt_rtit_unit_vmexit(&unit, ip, &mode);
	switch_off(&unit);
}

/* ---- time ---- */

u64 host_rtit_move_by(u64 ctl, u64 gap)
{
	u64 period = 1ULL << rtit_mtc_shift(ctl);

	return (gap + period - 1) / period * period;
}

void host_rtit_move(u64 ctl, u64 ticks, u8 *bytes, size_t n)
{
	struct vmpt_rtit_rewrite state = { 0 };

	(void)vmpt_rtit_clock_rewrite(&state, bytes, n, ctl & VMPT_RTIT_CTL_CYCLE_ACC, ticks);
}
