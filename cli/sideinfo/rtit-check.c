// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Detect a side record that does not fit its trace: lines that never took effect, times of another
 * boot. Owners depend on it alone, so a mismatch is reported.
 */
#include "cli/sideinfo/rtit.h"

/*
 * Whether run number @k should have taken effect and did not. One that begins at the end of the
 * stream owns no bytes: the VMM wrote it when it saved the trace.
 */
static bool never_came(const struct cli_runs *runs, size_t k, u64 size)
{
	return runs->report.effects[k].fate == VMPT_RUN_NEVER &&
	       (runs->run[k].by_tsc || runs->run[k].at != size);
}

/* Why it did not. */
static void print_why(const struct cli_runs *runs, size_t k, u64 size, char *buf, size_t len)
{
	unsigned long long at = runs->run[k].at;

	if (runs->run[k].by_tsc)
		snprintf(buf, len, "TSC 0x%llx is never reached", at);
	else if (at > size)
		snprintf(buf, len, "offset 0x%llx is after the end, 0x%llx", at,
			 (unsigned long long)size);
	else
		snprintf(buf, len, "nothing begins at or after offset 0x%llx", at);
}

/* STSs have 40 bits: the upper bits come from the record itself. */
static void tell_of_time(const struct cli *cli, const struct cli_runs *runs)
{
	const struct vmpt_run_report *report = &runs->report;

	if (report->aligned && report->apart > VMPT_RUNS_APART)
		cli_warn(cli,
			 "%s: line %zu: TSC 0x%llx is far from the trace's first TSC, "
			 "taken as 0x%llx: is it from the same recording?",
			 cli_side(cli)->file, runs->line[0], (unsigned long long)runs->run[0].at,
			 (unsigned long long)report->tsc);
}

void cli_side_record_report(struct cli *cli, size_t i)
{
	const struct cli_side_record *r = cli_side(cli)->record;
	const struct cli_runs *runs = r ? r->of_stream[i] : NULL;
	u64 size = cli->stream[i]->size;
	size_t never = 0, first = 0, k;
	char why[96];

	if (!runs)
		return;
	for (k = runs->count; k--;) {
		if (!never_came(runs, k, size))
			continue;
		never++;
		first = k;
	}
	if (never && runs->run[0].by_tsc && !runs->report.aligned) {
		cli_warn(cli,
			 "%s: the time of CPU %u's trace is unknown: none of its lines took effect",
			 cli_side(cli)->file, runs->cpu);
	} else if (never) {
		print_why(runs, first, size, why, sizeof(why));
		cli_warn(cli, "%s: line %zu: %s; %zu of %zu lines of CPU %u took no effect",
			 cli_side(cli)->file, runs->line[first], why, never, runs->count,
			 runs->cpu);
	}
	tell_of_time(cli, runs);
}
