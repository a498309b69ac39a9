/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * A machine of several CPUs made of trace units (model/), for tests of clocks: VMs take turns on
 * them, each with its TSC offset and multiplier. The TSC is the truth; crystal clock and cycles
 * follow from it. All CPUs share one crystal clock.
 */
#ifndef VMPT_TESTS_CLOCK_MACHINE_H
#define VMPT_TESTS_CLOCK_MACHINE_H

#include "decoder/vmpt-clock.h"
#include "tests/decoder/unit-cpu.h"

#define MACHINE_CPUS 4

/* A machine: 100 TSC ticks per crystal tick (CPUID.15H: EBX 200, EAX 2). */
#define MACHINE_P UNIT_CPU_P

struct machine_guest {
	u64 vmcs;
	struct vmpt_tsc_map map;
};

struct machine;

/*
 * @ctl: IA32_RTIT_CTL, in addition to OS, User, BranchEn, DisRETC and TraceEn. @guest_only: TraceEn
 * is loaded at VM entries and cleared at VM exits. @tsc: host ticks at the start.
 */
struct machine *machine_new(unsigned int cpus, u64 ctl, bool guest_only, u64 tsc);
void machine_free(struct machine *m);

/*
 * @guest runs on @cpu: first the host for @host ticks, then a VM entry, @ticks in the guest with
 * @jumps indirect jumps, and a VM exit. Time is that of the machine, common to all CPUs.
 */
void machine_run(struct machine *m, unsigned int cpu, const struct machine_guest *guest, u64 host,
		 u64 ticks, unsigned int jumps);
/* Only the host. */
void machine_host(struct machine *m, unsigned int cpu, u64 ticks, unsigned int jumps);

/* The machine's time: host ticks. */
u64 machine_now(const struct machine *m);
/* The stream of @cpu so far; valid until the next call. */
const struct vmpt_stream *machine_stream(struct machine *m, unsigned int cpu);

/* The rates of the machine's clocks. */
struct vmpt_rates machine_rates(u64 ctl);

#endif
