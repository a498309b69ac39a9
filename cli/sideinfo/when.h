/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Times in text (docs/filters.md): host TSCs as seconds from the start, perf's time or the wall
 * clock, and back. What is printed can be given again: the TSC found for a text is the first one
 * that is printed so.
 */
#ifndef VMPT_CLI_SIDEINFO_WHEN_H
#define VMPT_CLI_SIDEINFO_WHEN_H

#include "cli/base/base.h"
#include "cli/sideinfo/clock-open.h"

#define CLI_WHEN   48 /* bytes of a time in text */
#define CLI_LENGTH 32 /* of a length */

enum cli_when_clocks {
	CLI_WHEN_START, /* from time 0; ticks if the TSC's frequency is not known */
	CLI_WHEN_PERF,	/* perf's clock, as perf script prints it */
	CLI_WHEN_WALL,	/* CLOCK_REALTIME */
	CLI_WHENS
};

struct cli_times {
	u64 zero;			    /* host TSC of time 0 */
	double hz;			    /* 0: not known */
	const struct vmpt_trace_info *info; /* with perf's conversion; NULL: none */
	/* By .tsc, all with .real_ns; none: the wall clock is not known. */
	const struct cli_clock_pair *pair;
	size_t pairs;
	u8 clock; /* enum cli_when_clocks, of what is printed */
};

/* --time of the commands that print times. */
struct cli_when_given {
	u8 clock;
};

extern const struct cli_group cli_when_group;

/* The clock of --time; CLI_WHEN_START for a command without it. */
static inline unsigned int cli_when_clock(const struct cli *cli)
{
	const struct cli_when_given *given = cli_values(cli, &cli_when_group);

	return given ? given->clock : CLI_WHEN_START;
}

/* "start", "perf", "wall". */
const char *cli_when_name(unsigned int clock);

/*
 * Fill @when for the open trace; its clocks are open. @clock: of what is printed. 0, or an exit
 * code after a message if the trace has no such clock. cli_when_close() frees it.
 */
int cli_when_open(struct cli *cli, const struct cli_clocks *clocks, unsigned int clock,
		  struct cli_times *when);
void cli_when_close(struct cli_times *when);

/*
 * @tsc in ns of @clock: from time 0, perf's, since 1970. @doubt (or NULL): the wall clock was set
 * near that time. False: the trace does not have that clock, or there is no frequency.
 */
bool cli_when_ns(const struct cli_times *when, unsigned int clock, u64 tsc, s64 *ns, bool *doubt);

/* @tsc as .clock has it: "0.001234567", "969349.990000001", "14:03:07.250000000". */
const char *cli_when_text(const struct cli_times *when, u64 tsc, char buf[CLI_WHEN]);
/* The same, complete, to be given to --from: "perf:969349.990000001", RFC 3339. */
const char *cli_when_whole(const struct cli_times *when, u64 tsc, char buf[CLI_WHEN]);
/* The title of a column of such times: "TIME (s)", "TIME (ticks)", "PERF TIME", "TIME (CET)". */
const char *cli_when_title(const struct cli_times *when, char buf[CLI_WHEN]);

/* "12.3 us", "4,711" ticks where the TSC's frequency is not known. */
const char *cli_when_length(const struct cli_times *when, u64 ticks, char buf[CLI_LENGTH]);

/* Warn if times are in ticks. */
void cli_when_tell_ticks(const struct cli *cli, const struct cli_times *when);

/*
 * The first host TSC of the time in @text, of any clock. 0, or -1 with a sentence in @why: bad
 * text, or a clock that the trace does not have.
 */
int cli_when_parse(const struct cli_times *when, const char *text, u64 *tsc, char why[160]);

#endif
