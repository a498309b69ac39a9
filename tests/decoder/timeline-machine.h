/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Machines for tests of the timeline: CPUs that run in parallel, each a trace unit (model/), and
 * vCPUs that migrate between them. What ran when is recorded as it happens: the truth.
 */
#ifndef VMPT_TESTS_TIMELINE_MACHINE_H
#define VMPT_TESTS_TIMELINE_MACHINE_H

#include "decoder/vmpt-timeline.h"
#include "tests/decoder/unit-cpu.h"
#include "tests/support/support.h"

#define TL_CPUS	  4
#define TL_GUESTS 6
#define TL_P	  UNIT_CPU_P /* TSC ticks per crystal tick */
#define TL_FREQ	  3	     /* MTCFreq */
#define TL_START  0x123456789aULL

/* One run of a guest. */
struct tl_run {
	unsigned int cpu, guest;
	u64 entry, exit; /* host TSC when NR changed */
	u64 entry_ip, ip;
	u16 reason;
	bool idle; /* after it the CPU ran another process */
};

struct tl_options {
	unsigned int cpus, guests, runs;
	u64 seed;
	bool cyc, evd;
	bool halts; /* some exits are by HLT, and take long */
};

struct tl_machine;

struct tl_machine *tl_new(const struct tl_options *options);
void tl_free(struct tl_machine *m);

/* All that the options ask for. */
void tl_go(struct tl_machine *m);
/* Turn off tracing on @cpu for @ticks. Returns the times from and to. */
void tl_off(struct tl_machine *m, unsigned int cpu, u64 ticks, u64 *from, u64 *to);

const struct vmpt_stream *tl_stream(struct tl_machine *m, unsigned int cpu);
const struct tl_run *tl_runs(const struct tl_machine *m, size_t *count);
/* Run number @i of CPU @cpu, in order; NULL: no more. */
const struct tl_run *tl_run_of(const struct tl_machine *m, unsigned int cpu, size_t i);
u64 tl_vmcs(unsigned int guest);
struct vmpt_rates tl_rates(void);
/* The guests' TSC maps. */
struct vmpt_given tl_given(const struct tl_machine *m, unsigned int guest);

#endif
