/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Who had each CPU, by place in its stream, with the reasons of exits: what vmpt calls and vmpt
 * latency say of the time in which a task did not run. All spans of the trace are kept, some 40
 * bytes each.
 */
#ifndef VMPT_CLI_SPANS_H
#define VMPT_CLI_SPANS_H

#include "cli/base/base.h"
#include "decoder/vmpt-timeline.h"

/* At most this many spans; the trace after them is without. */
#define SPANS_MAX (1u << 25)

struct spans_span {
	u64 offset; /* of its first byte */
	u64 start;  /* host ticks; 0: not known */
	u64 vmcs;   /* GUEST: 0: not known */
	u32 error;  /* of .start, the larger side; ~0: no bound */
	u16 reason; /* of the exit at its end, or VMPT_REASON_UNKNOWN */
	u8 source;  /* of the reason: enum vmpt_reason_source */
	u8 kind;    /* enum vmpt_span_kind */
	bool exits; /* it ended with an exit */
	bool halted;
};

struct spans {
	struct spans_stream {
		struct spans_span *span; /* by .offset */
		size_t count;
		u64 end; /* ticks at which the last one ends */
	} * stream;
	size_t streams, all;
	bool full; /* SPANS_MAX was reached */

	/* What spans_ran() was given, by stream */
	struct spans_runs {
		struct spans_run {
			u64 tsc, offset;
			u32 task;
		} * run;
		size_t count;
	} * runs;
	size_t ran;
};

/* All 0 to start. Walk the open trace. 0, or an exit code after a message; close in either case. */
int spans_open(struct cli *cli, const struct vmpt_clocks *clocks, struct spans *spans);
void spans_close(struct spans *spans);
/* The number of the span of @stream that has @offset; SPANS_NONE: there is none. */
#define SPANS_NONE (~(size_t)0)
size_t spans_at(const struct spans *spans, u32 stream, u64 offset);
/* The last one that ended with an exit by host tick @tsc, up to the one that has @offset, and is
 * followed by another; NULL: none is near. */
const struct spans_span *spans_exit(const struct spans *spans, u32 stream, u64 offset, u64 tsc);
/* From @offset on, host tick @tsc, @task runs on @stream. 0 or a negative error. */
int spans_ran(struct spans *spans, u32 stream, u64 offset, u64 tsc, u32 task);
/* The number of the first one of @stream after @tsc; all: .runs[stream].count. */
size_t spans_run_after(const struct spans *spans, u32 stream, u64 tsc);
/* When number @i of @stream ends. */
u64 spans_end(const struct spans *spans, u32 stream, size_t i);
/* "EPT violation", "HLT?" where it is a guess, "unknown". */
const char *spans_reason(const struct spans_span *span, char buf[40]);

#endif
