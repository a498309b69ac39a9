/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The clocks of the selected streams, with all given maps of guests' TSCs: the side record of
 * vmm-lib and the QEMU plugin (a JSON line per vCPU, docs/vmm-lib/tsc.md), that of vmpt record, and
 * --guest-tsc. A side record is --side-record or that of the trace's recording. For commands that
 * list both groups of options.
 */
#ifndef VMPT_CLI_CLOCK_OPEN_H
#define VMPT_CLI_CLOCK_OPEN_H

#include "cli/sideinfo/clock-options.h"
#include "cli/sideinfo/recording.h"
#include "cli/sideinfo/rtit.h"

/* A vCPU in the side record. */
struct cli_clock_vcpu {
	u64 vmcs;
	u64 since; /* host TSC */
	char *vm;  /* its unescaped name: not for a terminal */
	u32 vcpu;
};

struct cli_clocks {
	struct vmpt_clocks *clocks;
	/* from the side record; by VMCS, then .since */
	struct cli_clock_vcpu *vcpu;
	size_t vcpus;
	struct vmpt_given *given; /* of all sources */
	size_t given_count;
	struct cli_recording *rec; /* NULL: none */
	struct vmpt_names *names;  /* by the trace's events and .rec; NULL: none */
};

/*
 * Open them; warn when a given value contradicts the trace. The record of vmpt record is about
 * threads: a first opening joins them with VMCSs. 0, or the exit code after a message: close them
 * in either case.
 */
int cli_clocks_open(struct cli *cli, struct cli_clocks *clocks);
void cli_clocks_close(struct cli_clocks *clocks);

/* Who @vmcs is at host tick @at by the side record or by names. False: unknown. @vm is not for
 * a terminal; @vcpu -1: not known. */
bool cli_clocks_who(const struct cli_clocks *clocks, u64 vmcs, u64 at, const char **vm, s64 *vcpu);

/* Host ticks per second, by perf's conversion, else by @rec (NULL: none); 0: not known. */
double cli_clocks_hertz(const struct cli *cli, const struct cli_recording *rec);

#endif
