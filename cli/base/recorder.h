/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Writes recording.json (docs/record.md) while a recording is made. The file is replaced as a whole
 * each time, so that one that is killed leaves what it had last.
 */
#ifndef VMPT_CLI_RECORDER_H
#define VMPT_CLI_RECORDER_H

#include "cli/base/cli.h"

struct cli_recorder {
	struct cli *cli;
	char *path;
	json_t *doc, *clocks;
	/* The trace's TSC now. @spread: ns between the CPU that is ahead most and the last, or 0.
	 */
	u64 (*tsc)(void *opaque, u64 *spread);
	void *opaque;
	u64 first_tsc, last_tsc;
	u64 first_raw, next; /* CLOCK_MONOTONIC_RAW, ns */
	u64 every;	     /* ns between pairs */
	bool constant;	     /* the TSC's rate is that of the pairs */
	bool failed;
};

/* "cpuN.pt" and the like in the list of traces, cpu -1: none. */
void cli_recorder_trace(struct cli *cli, json_t *doc, const char *file, int cpu);

/*
 * Write FOLDER/recording.json for the first time. .tsc and .opaque are set; @doc has "recorder",
 * "host", "rates", "traces" and "side_record", and is the recorder's now. 0, or an exit code after
 * a message: close it in either case.
 */
int cli_recorder_open(struct cli_recorder *r, struct cli *cli, const char *folder, json_t *doc);
/* To be called often: reads the clocks where it is time to, and writes them. */
void cli_recorder_tick(struct cli_recorder *r);
/* Write what .doc has now. 0, or an exit code after a message. */
int cli_recorder_put(struct cli_recorder *r);
/* The last pair, and @end (taken), how it ended. 0, or an exit code after a message. */
int cli_recorder_close(struct cli_recorder *r, json_t *end);

#endif
