/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * One stream as a perf.data that perf script decodes: the records that perf record would
 * have written if the stream's owner were a machine of its own with one process.
 */
#ifndef VMPT_CLI_PERF_OUT_H
#define VMPT_CLI_PERF_OUT_H

#include "cli/perf-code.h"

/* What stands in a perf.data's trace before the stream: see perf_out_finish(). */
#define PERF_OUT_HEAD 32

/* The process that all code of a stream belongs to, unless the stream is a thread's. */
#define PERF_OUT_PID 1

struct perf_out {
	const struct vmpt_trace_info *info; /* of the trace that the stream is from */
	const struct perf_code *code;	    /* or NULL */
	char comm[24];			    /* the process's name */
	int cpu, tid;			    /* as in struct vmpt_stream */
	bool has_tsc; /* the stream has TSC packets, the first with first_tsc */
	u64 first_tsc;
	u64 aux_at; /* set by perf_out_start() */
};

/* All before the stream's bytes, which then follow. @f is at its start. 0, or -1 by errno. */
int perf_out_start(struct perf_out *out, FILE *f);
/*
 * All behind the @bytes of the stream, and the sizes before them. @f is at its end. A PSB+ with
 * the first TSC, if there is one, is put before the stream: perf (6.1 at least) crashes if it has
 * to follow code before it knows the time, and an owner's stream may well begin without.
 */
int perf_out_finish(const struct perf_out *out, FILE *f, u64 bytes);

#endif
