/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* vmpt perfetto: what its two walks over the trace share, that of spans and that of calls. */
#ifndef VMPT_CLI_PERFETTO_COMMAND_H
#define VMPT_CLI_PERFETTO_COMMAND_H

#include "cli/calls/calls.h"
#include "cli/perfetto/perfetto.h"
#include "cli/timeline/timeline.h"

struct perfetto_stream {
	u32 cpu;   /* track of who ran */
	u32 tasks; /* track of which task ran; PERFETTO_NONE: none so far */
	u32 task;  /* that is on it */
	/* After the last entry or exit: its offset, and whether the first call was seen, the
	 * handler */
	u64 after;
	bool begun, handled;
};

struct perfetto {
	/* Options */
	struct calls_source source; /* its .t.o */
	const char *path;
	u64 slices, depth;
	bool spans_only;

	struct perfetto_log log;
	struct perfetto_rates rates;
	struct perfetto_stream *stream; /* of each of the command's streams */
	struct calls_spread spread;
	bool follows; /* calls, too */
	u64 zero;     /* host TSC of time 0 */
	u64 last;     /* ticks from it */
	double hz;
	u64 start_ns, untimed, edges;

	/* spans.c: tracks, by the time line's numbers */
	u32 host, *vm, *vcpu;
	size_t vms, vm_room, vcpus, vcpu_room;
	struct {
		u32 vm, rate;
		u16 reason;
	} reason[PERFETTO_RATES];
	size_t reasons;

	/* calls.c */
	struct perfetto_task *task;
	size_t tasks;
	struct perfetto_node *node;
	size_t nodes;
	u32 *instructions; /* rates, by VM of .source; + 1, 0: not asked for so far */
	size_t instruction_room;
};

/* The spans of the time line. 0, or an exit code after a message. */
int perfetto_spans(struct cli *cli, struct perfetto *d);
/* The calls: .source is open. 0, or an exit code after a message. */
int perfetto_calls(struct cli *cli, struct perfetto *d);

#endif
