/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The clocks of the chosen streams, with all that is told of guests' TSCs: the side record of
 * vmm-lib and the QEMU plugin (--side-record, a JSON line per vCPU, docs/vmm-lib/tsc.md), what
 * vmpt record wrote beside the trace (or --side-record: record.jsonl), and --vm. Commands that
 * list both groups of options use it.
 */
#ifndef VMPT_CLI_CLOCK_OPEN_H
#define VMPT_CLI_CLOCK_OPEN_H

#include "cli/sideinfo/clock-options.h"
#include "cli/sideinfo/recording.h"
#include "cli/sideinfo/rtit.h"

/* A vCPU as the side record has it. */
struct cli_clock_vcpu {
	u64 vmcs;
	u64 since; /* host TSC */
	char *vm;  /* its name as it stands there: not for a terminal */
	u32 vcpu;
};

struct cli_clocks {
	struct vmpt_clocks *clocks;
	/* from the side record; by VMCS, then .since */
	struct cli_clock_vcpu *vcpu;
	size_t vcpus;
	struct vmpt_given *given; /* of all sources */
	size_t given_count;
	struct cli_rec *rec;	  /* what vmpt record wrote; NULL: nothing */
	struct vmpt_names *names; /* by the trace's events and .rec; NULL: none */
};

/*
 * Open them; what was told and is not so is a warning. What vmpt record wrote is of threads: they
 * are joined with VMCSs by a first opening. 0, or the exit code after a message: close them in
 * either case.
 */
int cli_clocks_open(struct cli *cli, struct cli_clocks *clocks);
void cli_clocks_close(struct cli_clocks *clocks);

/* Who @vmcs is at host tick @at by the side record or by names. False: nobody says. @vm is not for
 * a terminal; @vcpu -1: not known. */
bool cli_clocks_who(const struct cli_clocks *clocks, u64 vmcs, u64 at, const char **vm, s64 *vcpu);

/* Ticks of the host a second, by perf's conversion or 0: not known. */
double cli_clocks_hertz(const struct cli *cli);

#endif
