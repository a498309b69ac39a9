/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* vmpt perfetto: what its two walks over the trace share, that of spans and that of calls. */
#ifndef VMPT_CLI_PERFETTO_COMMAND_H
#define VMPT_CLI_PERFETTO_COMMAND_H

#include "cli/calls/calls.h"
#include "cli/perfetto/perfetto.h"
#include "cli/timeline/timeline.h"

/* A VM entry or exit of a stream: what comes after .offset was at or after .time. */
struct perfetto_edge {
	u64 offset;
	u64 time; /* ticks */
	u32 flow; /* of an exit; 0: an entry, or no number was left */
};

struct perfetto_stream {
	u32 cpu;		       /* track of who ran */
	u32 tasks;		       /* track of which task ran; PERFETTO_NONE: none so far */
	u32 task;		       /* that is on it */
	struct perfetto_edge *edge;    /* by offset */
	size_t edges, edge_room, next; /* .next: the first after the last item */
	bool begun, handled; /* the first call after that edge was seen, the handler was */
	/* Items between the same two times, which are not added yet */
	struct vmpt_call_item *item;
	size_t items, item_room;
	u64 from; /* ticks: time of the last that was added */
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
	bool follows;			/* calls, too */
	u64 zero;			/* host TSC of time 0 */
	u64 last;			/* ticks from it */
	double hz;
	u64 start_ns, untimed;

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
