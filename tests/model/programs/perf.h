/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* Decode a program's trace with perf script, one instruction at a time. */
#ifndef VMPT_MODEL_PROGRAM_PERF_H
#define VMPT_MODEL_PROGRAM_PERF_H

#include <stdio.h>

#include "tests/model/programs/program.h"

#define PERF_PATH 128

struct perf_run {
	FILE *out;
	char dir[96]; /* perf's input; perf_end() removes it, a test that fails leaves it */
	char line[256];
};

/* Whether perf can be run. */
bool perf_available(void);

/* Have perf script list the instructions of the program's user code from @done's trace. */
void perf_start(struct perf_run *run, const struct program *program,
		const struct program_settings *set, const struct execution *done);
/* The next one, or false at the end. An error that perf reports fails the test. */
bool perf_next(struct perf_run *run, u64 *ip);
/* perf's exit status, -1 if it ended otherwise. */
int perf_end(struct perf_run *run);

#endif
