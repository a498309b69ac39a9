/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * vmpt perfetto: a trace for the Perfetto UI as protobuf. Spans (spans.c) and calls (calls.c)
 * become slices of tracks (log.c), which are bounded in number: the shortest are folded into their
 * callers. At the end all are put in order of time and encoded (encode.c, trace.proto).
 */
#ifndef VMPT_CLI_PERFETTO_H
#define VMPT_CLI_PERFETTO_H

#include <stdio.h>

#include "arch/types.h"
#include "util/hash.h"

#define PERFETTO_NONE (~0u)

/* ---- log.c: tracks, and the slices on them ---- */

enum perfetto_track_kind { PERFETTO_PROCESS, PERFETTO_THREAD, PERFETTO_COUNTER };

/* Names of categories are in encode.c. */
enum perfetto_category {
	PERFETTO_CALL, /* a call; has no category in the file */
	PERFETTO_RUN,  /* somebody ran on a CPU */
	PERFETTO_EXIT, /* a vCPU was out of its guest */
	PERFETTO_HALT, /* the same, idle */
	PERFETTO_LOST,
	PERFETTO_SYSTEM, /* from here on as enum vmpt_call_kind */
	PERFETTO_INTERRUPT,
	PERFETTO_SIGNAL,
	PERFETTO_UNKNOWN,
	PERFETTO_CATEGORIES
};

struct perfetto_slice {
	u64 start, end; /* ticks from time 0 */
	u64 value;	/* instructions of a call; the IP of an exit */
	u32 flow;	/* from an exit to the host's code for it; 0: none */
	u32 track, name;
	u32 parent; /* the slice around it; PERFETTO_NONE */
	u32 folded; /* calls in it that were folded */
	u8 category;
	bool has_value;
	bool open;    /* it has not ended */
	bool cut;     /* it began before its start, or ended otherwise than by a return */
	bool dropped; /* folded, and will be gone after the next trim */
};

/* A slice begins or ends; at one time in this order. */
struct perfetto_mark {
	u64 time;
	u32 order;
	u32 slice : 31, end : 1;
};

struct perfetto_track {
	char *name;
	u32 process; /* track of its process; its own if it is one */
	u8 kind;
	u64 last;   /* time of the last mark */
	u32 *stack; /* the slices that are open */
	size_t depth, room;
	u64 over; /* calls that are open and beyond .depth_max, or had no room */
};

struct perfetto_log {
	/* Set by perfetto_log_open() */
	u64 limit; /* of slices */
	u32 depth_max;
	u64 shortest; /* ticks: shorter slices are folded; grows */
	u64 folded;
	u64 gaps;  /* where the flow was lost: for the note */
	u32 flows; /* numbers of flows that were given */

	struct perfetto_slice *slice;
	size_t slices, slice_room;
	struct perfetto_mark *mark;
	size_t marks, mark_room;
	struct perfetto_track *track;
	size_t tracks;
	char **name;
	size_t names;
	struct vmpt_hash name_of;
};

#define PERFETTO_SLICES_MAX (1u << 30)

/* All 0 to start. @limit: 1 to PERFETTO_SLICES_MAX. */
void perfetto_log_open(struct perfetto_log *log, u64 limit, u32 depth_max);
void perfetto_log_close(struct perfetto_log *log);

/* These return a number, or PERFETTO_NONE: no memory. @process: a track; names are copied. */
u32 perfetto_track(struct perfetto_log *log, enum perfetto_track_kind kind, u32 process,
		   const char *name);
/* The track of the process called @name, new or not. */
u32 perfetto_process(struct perfetto_log *log, const char *name);
u32 perfetto_name(struct perfetto_log *log, const char *name);

/*
 * A slice begins on @track, inside of those that are open there. Times of a track that go back are
 * taken as the last one. The slice, until the next call of anything here; NULL with *@err 0: it is
 * beyond the limits, and only counted; with -1: no memory.
 */
struct perfetto_slice *perfetto_begin(struct perfetto_log *log, u32 track, u64 time, u32 name,
				      enum perfetto_category category, int *err);
/* The last one that began on @track and is open ends; none: nothing. The slice if it is kept, until
 * the next call; else NULL. *@err as above. */
struct perfetto_slice *perfetto_end(struct perfetto_log *log, u32 track, u64 time, int *err);
/* How many are open on @track. */
u64 perfetto_depth(const struct perfetto_log *log, u32 track);
/*
 * Nothing more will come: what is open ends at @time, flows of which only one slice is left are
 * taken away, and marks are put in order. 0, or -1.
 */
int perfetto_log_finish(struct perfetto_log *log, u64 time);

/* ---- rates.c: counters ---- */

#define PERFETTO_RATES	 64   /* more are not shown */
#define PERFETTO_BUCKETS 2048 /* at least half of them are used */

/* How often something happened, in buckets of time that get wider as time goes on. */
struct perfetto_rate {
	u32 track;
	double scale; /* of a count per tick */
	u64 bucket[PERFETTO_BUCKETS];
};

struct perfetto_rates {
	struct perfetto_rate *rate;
	size_t count;
	u64 width; /* ticks of a bucket; 0: none so far */
};

/* A counter @name of @process; its number, or PERFETTO_NONE: there are too many, or no memory. */
u32 perfetto_rate(struct perfetto_rates *rates, struct perfetto_log *log, u32 process,
		  const char *name, double scale);
void perfetto_rate_add(struct perfetto_rates *rates, u32 rate, u64 time, u64 count);
void perfetto_rates_close(struct perfetto_rates *rates);

/* ---- encode.c ---- */

/* In the first bytes of each file, among the names that come first. */
#define PERFETTO_MARKS "folded calls"

struct perfetto_facts {
	double hz;    /* ticks per second; 0: a tick is shown as a ns */
	u64 start_ns; /* the time of tick 0 */
	const char *writer;
	FILE *out;
};

/* Write it all; the log is finished. 0, or -1: no memory. Failed writes show in ferror(). */
int perfetto_encode(const struct perfetto_log *log, const struct perfetto_rates *rates,
		    const struct perfetto_facts *facts);

#endif
