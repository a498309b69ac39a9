/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The clocks of the chosen streams, with all that is told of guests' TSCs: the side record of
 * vmm-lib and the QEMU plugin (--side-record, a JSON line per vCPU, docs/vmm-lib/tsc.md), what
 * KVM's debugfs said when vmpt record read it, and --vm. Commands with .clock use it.
 */
#ifndef VMPT_CLI_CLOCK_OPEN_H
#define VMPT_CLI_CLOCK_OPEN_H

#include "cli/cli.h"

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
	struct vmpt_told *told; /* of all sources */
	size_t told_count;
};

/*
 * Open them; what was told and is not so is a warning. @more, @count: told by someone else
 * (KVM's), or NULL; copied. 0, or the exit code after a message: close them in either case.
 */
int cli_clocks_open(struct cli *cli, struct cli_clocks *clocks, const struct vmpt_told *more,
		    size_t count);
void cli_clocks_close(struct cli_clocks *clocks);

/* Who @vmcs is at host tick @at by the side record; NULL: it does not say. */
const struct cli_clock_vcpu *cli_clocks_vcpu(const struct cli_clocks *clocks, u64 vmcs, u64 at);

/* Ticks of the host a second, by perf's conversion or 0: not known. */
double cli_clocks_hertz(const struct cli *cli);

/* "record", "kvm", "user", "trace", "none": enum vmpt_map_source. */
const char *cli_clocks_source(unsigned int source);

#endif
