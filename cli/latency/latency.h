/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * vmpt latency: how long calls of some functions took, and what of it was spent outside of them.
 * follow.c finds the calls, parts.c splits their time, rows.c sorts and adds up, text.c and json.c
 * print.
 */
#ifndef VMPT_CLI_LATENCY_H
#define VMPT_CLI_LATENCY_H

#include "cli/calls/calls.h"
#include "cli/spans/spans.h"
#include "util/hash.h"

#define LATENCY_NONE (~0u)

/* What the time of a call is spent on. */
enum latency_kind {
	LATENCY_RUN,	  /* its task ran */
	LATENCY_EXIT,	  /* the VM had exited, and the host handled it; .key: the exit's reason */
	LATENCY_HALTED,	  /* ... and the vCPU was idle */
	LATENCY_VM,	  /* ... and another vCPU ran on its CPU; .key: its VM */
	LATENCY_TASK,	  /* ... and the host ran another task; .key: its process */
	LATENCY_GUEST,	  /* of a call of the host: a guest ran; .key: its VM */
	LATENCY_SWITCHED, /* its own system ran other tasks, or it waited for something */
	LATENCY_UNTRACED, /* the CPU was not traced, or its packets were lost */
	LATENCY_KINDS,
};

struct latency_part {
	u64 ticks;
	u32 key;
	u8 kind; /* enum latency_kind */
};

/* At most this many calls are kept; later ones are counted only. */
#define LATENCY_CALLS_MAX (4u << 20)
/* Of one call: different parts, and different callees whose time is kept. */
#define LATENCY_PARTS_MAX  64
#define LATENCY_INSIDE_MAX 64
/* Calls of one task that are open at once, of different functions. */
#define LATENCY_OPEN_MAX 64

/* Time of what a call called: with all that this called. */
struct latency_inside {
	u64 ticks;
	u32 node;
};

struct latency_call {
	u64 ticks; /* or instructions, where there are no times */
	u64 error;
	u64 tsc, offset; /* when it began, and the packet before that */
	u32 row, stream, process;
	u32 node;
	u32 part, parts; /* in .part of all */
};

/* The longest calls of a row, with more of each. */
struct latency_long {
	struct latency_call call;
	struct latency_inside inside[LATENCY_INSIDE_MAX];
	size_t insides;
};

/* A part of a row's calls. */
struct latency_sum {
	struct latency_part part;   /* .ticks: of all calls */
	u64 calls;		    /* that have it */
	u64 slow_calls, slow_ticks; /* of the slowest 1 % */
};

/* A function of a VM. */
struct latency_row {
	u32 vm, function;
	u64 count;
	u64 recursed;		      /* calls from within one, which are in that */
	u64 incomplete;		      /* began or ended out of sight: not counted */
	u64 left_out;		      /* beyond LATENCY_CALLS_MAX */
	u64 sum, error;		      /* the widest error of one call */
	struct latency_long *longest; /* by length */
	size_t longs;
	/* rows.c */
	size_t first; /* of the calls, which are by row and length */
	struct latency_sum *part;
	size_t parts;
	u64 slow; /* p99: calls that took at least that are the slowest 1 % */
	u64 slow_calls, slow_sum;
};

/* A call that has not ended. */
struct latency_open {
	struct latency_call call;
	u64 from, to; /* when it began */
	size_t frame; /* its depth in the task */
	struct latency_part part[LATENCY_PARTS_MAX];
	size_t parts;
	struct latency_inside inside[LATENCY_INSIDE_MAX];
	size_t insides;
};

struct latency_frame {
	u64 from, to;
	u32 node, depth;
	u32 open; /* of .open + 1; 0: none */
};

struct latency_task {
	bool known, wanted, host;
	u32 vm, process;
	u32 root; /* of which .process is: another one after execve() */
	struct latency_frame *frame;
	size_t frames, room;
	struct latency_open *open;
	size_t opens;
	/* Where it is current: its CPU or vCPU runs it when it runs. */
	bool current;
	u32 stream;
	u64 since; /* ticks up to which its time is split */
	u64 vmcs;
	const struct spans_span *exit; /* the last one of its vCPU */
	u32 handler;		       /* the host's task after that; LATENCY_NONE: not known */
};

struct latency {
	struct calls_source source;
	/* Options */
	const char *functions; /* the first argument */
	u64 top;

	struct spans spans;
	bool timed;
	struct latency_task *task;
	size_t tasks;
	struct {
		u64 vmcs;
		u32 task;
	} * vcpu; /* which task each runs */
	size_t vcpus;
	u32 *host_now; /* by stream: the host's task; LATENCY_NONE */
	u32 *row_of;   /* by node: the row + 1; 0: not asked yet, LATENCY_NONE: none */
	size_t nodes;
	struct latency_row *row;
	size_t rows;
	struct vmpt_hash row_by_name;
	struct latency_call *call;
	size_t calls;
	struct latency_part *part;
	size_t parts;
};

/* ---- follow.c ---- */

/* To the end of the trace. 0, or an exit code after a message. */
int latency_follow(struct cli *cli);
void latency_close(struct latency *d);

/* ---- parts.c ---- */

/* @item, VMPT_CALL_RUN at tick @now: its task is what its CPU or vCPU runs. 0 or an error. */
int latency_run(struct latency *d, const struct vmpt_call_item *item, u64 now);
/* Split the time of all open calls of @t up to tick @now. */
void latency_settle(struct latency *d, struct latency_task *t, u64 now);
/* @open is over, after .call.ticks: what is in no part. */
void latency_rest(const struct latency *d, struct latency_open *open);
void latency_part_add(struct latency_part *part, size_t *parts, size_t most, unsigned int kind,
		      u32 key, u64 ticks);

/* ---- rows.c ---- */

/* All calls are known: sort, and add up their parts. 0, or an exit code. */
int latency_sum(struct cli *cli);
/* The length that @permille of the row's calls do not exceed. */
u64 latency_at(const struct latency *d, const struct latency_row *row, unsigned int permille);
/* The next bar: calls of lengths in [*@low, *@high), *@i where to begin, 0 at first. False: end. */
bool latency_bar(const struct latency *d, const struct latency_row *row, size_t *i, u64 *low,
		 u64 *high, u64 *count);
/* The call below @call's @depth-th frame that took most time; NULL: none. */
const struct latency_inside *latency_heaviest(struct latency *d, const struct latency_long *l,
					      u32 parent);

/* ---- text.c, json.c ---- */

void latency_print(struct cli *cli);
void latency_json(struct cli *cli);
/* "VM exit: EPT violation", "waited: db" */
const char *latency_part_name(const struct latency *d, const struct latency_part *part, char *buf,
			      size_t len);

#endif
