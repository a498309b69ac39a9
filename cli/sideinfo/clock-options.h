/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Options of the commands that need the time of packets: rates of the clocks, and maps of guests'
 * TSCs. A command has them if it lists cli_clock_group.
 */
#ifndef VMPT_CLI_CLOCK_OPTIONS_H
#define VMPT_CLI_CLOCK_OPTIONS_H

#include "cli/base/base.h"
#include "decoder/vmpt-clock.h"

#define CLI_CLOCK_VMS 256

/* The values; rates: 0 what was not given. */
struct cli_clock {
	struct vmpt_rates rates;
	u64 tsc_khz; /* 0: not given */
	struct vmpt_given given[CLI_CLOCK_VMS];
	size_t given_count;
};

extern const struct cli_group cli_clock_group;

static inline const struct cli_clock *cli_clock(const struct cli *cli)
{
	return cli_values(cli, &cli_clock_group);
}

/* Whether @arg has the form of --guest-tsc's values. */
bool cli_clock_is_map(const char *arg);

/* Whether any was on the command line. */
bool cli_clock_given(const struct cli *cli);

/*
 * Options to open clocks with, from the command line, else from the trace's file. Rates given by
 * neither are 0; .given is the command line's (VMPT_MAP_USER) and owned by @cli.
 */
void cli_clock_settings(const struct cli *cli, struct vmpt_clocks_options *options);

/*
 * Warn when a given value contradicts the trace: rates, maps, and each --guest-tsc without a TSC
 * packet in the trace.
 */
void cli_clock_warn(const struct cli *cli, const struct vmpt_clocks *clocks);

/*
 * Warn of what the clocks lack (no TSC packets, unknown rates or offsets) and of CPUs on which they
 * contradict each other or step back. One line each, for a few CPUs; none for RTIT.
 */
void cli_clock_doubts(const struct cli *cli, const struct vmpt_clocks *clocks);

/* "record", "kvm", "user", "trace", "none": enum vmpt_map_source. */
const char *cli_clocks_source(unsigned int source);

#endif
