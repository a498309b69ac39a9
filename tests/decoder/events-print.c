// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * events-print FILE: the events of a perf.data, a line each, for tests that compare them with what
 * the perf tool says:
 *
 *	KIND CPU PID TID NANOSECONDS [VCPU IP [REASON INFO1 INFO2]]
 */
#include <inttypes.h>
#include <stdio.h>

#include "decoder/vmpt-events.h"

int main(int argc, char **argv)
{
	static const char *const kind[] = { "in",  "out",    "entry", "exit",	  "comm", "fork",
					    "end", "itrace", "lost",  "recorded", "msr",  "gpa" };
	const struct vmpt_event *events;
	struct vmpt_trace *trace;
	struct vmpt_diag diag;
	size_t i, count;

	if (argc != 2 || vmpt_trace_open(&trace, argv[1], -1, &diag)) {
		fprintf(stderr, "events-print: %s\n", argc == 2 ? diag.text : "one FILE is wanted");
		return 1;
	}
	if (vmpt_trace_events(trace, &events, &count))
		return 1;
	for (i = 0; i < count; i++) {
		const struct vmpt_event *e = &events[i];

		printf("%s %d %d %d %" PRIu64, kind[e->kind], e->cpu, e->pid, e->tid, e->time);
		if (e->kind == VMPT_EVENT_KVM_ENTRY || e->kind == VMPT_EVENT_KVM_EXIT)
			printf(" %u 0x%" PRIx64, e->vcpu, e->ip);
		if (e->kind == VMPT_EVENT_KVM_EXIT)
			printf(" %u 0x%" PRIx64 " 0x%" PRIx64, e->reason, e->info1, e->info2);
		putchar('\n');
	}
	vmpt_trace_close(trace);
	return 0;
}
