/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * One stream as a perf.data that perf script decodes: the records that perf record would
 * have written if the stream's owner were a machine of its own with one process. Or several
 * streams, which perf puts in the order of their times.
 */
#ifndef VMPT_CLI_PERF_OUT_H
#define VMPT_CLI_PERF_OUT_H

#include "cli/split/perf-code.h"
#include "decoder/vmpt-clock.h"

/*
 * Bytes added to the stream's first PSB+, after its PSB: the stream's first TSC, or PADs if it
 * has none. perf (at least 6.1) crashes if it has to follow code before it knows the time, and an
 * owner's stream may begin without it.
 */
#define PERF_OUT_ADDED 8

/* The process that all code of a stream belongs to, unless the stream is a thread's. */
#define PERF_OUT_PID 1

/* Bytes of a name, with the NUL. */
#define PERF_OUT_COMM 192

struct perf_out {
	const struct vmpt_trace_info *info; /* of the trace that the stream is from */
	const struct perf_code *code;	    /* or NULL */
	const char *vm;			    /* whose code; NULL: not known */
	char comm[PERF_OUT_COMM];	    /* the process's name, or the thread's */
	int cpu, tid;			    /* as in struct vmpt_stream */
	u32 thread;   /* of the process PERF_OUT_PID, from 1; 0: the only stream */
	u32 idx;      /* of perf_out_join(): each stream's own */
	bool has_tsc; /* the stream has TSC packets, the first with first_tsc */
	u64 first_tsc;
	/* The rest is set by the functions. */
	u64 aux_at;
	u64 written; /* of the stream */
	u64 size;    /* in the file, with the added bytes */
};

/*
 * Give perf the rates of a trace without them, so that it uses MTCs: if both P and MTCFreq are
 * known, @info becomes as if from a perf.data recorded with mtc=1.
 */
void perf_out_rates(struct vmpt_trace_info *info, const struct vmpt_rates *rates);

/* All before the stream's bytes. @f is at its start. Each 0, or -1 by errno. */
int perf_out_start(struct perf_out *out, FILE *f);
/* The next bytes of the stream, which begins with a PSB as all of vmpt_extract() do. */
int perf_out_write(struct perf_out *out, FILE *f, const u8 *bytes, size_t n);
/* All after the stream, and the sizes before it. @f is at its end. */
int perf_out_finish(struct perf_out *out, FILE *f);

/*
 * One perf.data of @n streams, at least one, of which perf_out_finish() made a perf.data each;
 * those of one .thread follow one another, the first .thread is 1. For each stream @from, called
 * with @opaque and its index, gives its perf.data, which is closed then, or NULL by errno. All
 * have TSC packets, or none has; code and trace are the first's. @f is at its start.
 */
int perf_out_join(struct perf_out *out, size_t n, FILE *f, FILE *(*from)(void *opaque, size_t i),
		  void *opaque);

#endif
