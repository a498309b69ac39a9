/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * A PT event of the host's perf on this thread whose whole trace is kept, alone or as the leader of
 * a counter whose overflows copy the end of the trace (AUX samples).
 */
#ifndef TRACE_H
#define TRACE_H

#include "arch/types.h"

struct trace {
	int fd, counter; /* counter: -1 if none */
	void *base;	 /* struct perf_event_mmap_page */
	void *aux;
	size_t aux_size;
};

/* What perf put into its buffer. */
struct trace_records {
	u32 aux, samples, lost;
	u64 flags; /* of all AUX records */
	u64 bytes; /* of the trace, by them */
	bool gap;  /* the records are not contiguous */
};

/* Opens it, disabled. filter: for PERF_EVENT_IOC_SET_FILTER, or NULL. Errors end the program. */
void trace_open(struct trace *trace, size_t aux_pages, bool sample, const char *filter);
void trace_enable(struct trace *trace, bool on);
/* Is perf's buffer full? */
bool trace_full(const struct trace *trace);
/* Discards what was recorded; returns how many bytes it was. */
u64 trace_drain(struct trace *trace);
void trace_read(const struct trace *trace, struct trace_records *records);
/* How many bytes there are from the buffer's start. */
u64 trace_size(const struct trace *trace);

#endif
