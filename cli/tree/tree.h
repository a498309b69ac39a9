/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * vmpt calls: calls and returns by time. walk.c makes lines of them, which lanes.c and lines.c keep
 * until they cannot fold any more; text.c and json.c print them.
 */
#ifndef VMPT_CLI_TREE_H
#define VMPT_CLI_TREE_H

#include "cli/calls/calls.h"
#include "cli/spans/spans.h"

enum tree_what {
	TREE_CALL, /* "f() {" */
	TREE_LEAF, /* "f();": nothing that it called is shown */
	TREE_END,  /* "}" */
	TREE_MORE, /* further calls, equal to the one before with all it called */
	TREE_OUT,  /* the task did not run */
	TREE_RUN,  /* another task runs */
	TREE_GAP,  /* the flow was lost */
};

/* A time, between two host ticks; without times they are instructions. */
struct tree_when {
	u64 from, to;
	bool known;
};

struct tree_length {
	u64 ticks, error;
	bool known;
};

/* Of one call, or of .count equal ones. */
struct tree_line {
	u8 what;      /* enum tree_what */
	u8 kind;      /* enum vmpt_call_kind */
	bool assumed; /* it began before it was seen; END, LEAF: or did not end by a return */
	bool far;     /* END: its CALL is not right above */
	u8 outs;      /* of .out */
	u32 task, stream, depth;
	u32 function;	  /* of the names; OUT, RUN: unused */
	u64 tsc;	  /* it began then, or END: ended; VMPT_TIME_NONE */
	u64 offset;	  /* of the packet before it */
	u64 instructions; /* LEAF, END, MORE: executed in it */
	struct tree_length length;
	u64 count;		       /* LEAF, OUT, GAP, MORE: how many */
	u64 min, max;		       /* of them; .length is the sum */
	u32 out[3];		       /* OUT: processes that ran meanwhile, the first ones */
	const struct spans_span *exit; /* OUT, RUN: the VM exit; NULL: none, or not known */
};

/* ---- lines.c: lines of one CPU or task ---- */

#define TREE_NOWHERE (~0ULL)
#define TREE_NO_TASK (~0u)

/* A frame, or the top of a task: what folding needs of it. */
struct tree_place {
	u64 start;     /* its line: a number that counts all lines of the lane */
	u64 hash;      /* of what it called so far */
	u64 last, end; /* the lines of what it called last: it is whole and may repeat */
	u64 last_hash;
	bool more; /* a TREE_MORE is the last of them */
};

struct tree_lane {
	struct tree_line *line;
	size_t count, room;
	u64 base;    /* the number of line[0] */
	u64 barrier; /* lines before this number stay as they are */
	u32 shown;   /* the task of the last line; ~0: none */
};

void tree_place_init(struct tree_place *place, u64 start);
/* Add a line; its number, or TREE_NOWHERE: no memory. */
u64 tree_lane_add(struct tree_lane *lane, const struct tree_line *line);
/* Whether line number @n may still be changed. */
bool tree_lane_has(const struct tree_lane *lane, u64 n);
struct tree_line *tree_lane_line(struct tree_lane *lane, u64 n);
/* Take back all lines from number @n on. */
void tree_lane_cut(struct tree_lane *lane, u64 n);
/*
 * What @parent called is whole: lines from number @start on, of shape @hash. @one: its time and
 * length, for a TREE_MORE. Fold it if it equals the one before. 0 or a negative error.
 */
int tree_lane_fold(struct tree_lane *lane, struct tree_place *parent, u64 start, u64 hash,
		   const struct tree_line *one);
/* All lines were printed: forget them. */
void tree_lane_clear(struct tree_lane *lane);
u64 tree_hash(u64 hash, u64 value);

/* ---- the command ---- */

/* How many lines wait in all lanes. */
#define TREE_LINES_MAX (256u << 10)

enum tree_per { TREE_PER_CPU, TREE_PER_TASK };

struct tree_frame {
	struct tree_place place; /* .start TREE_NOWHERE: not shown */
	struct tree_when when;
	u32 depth, function;
	u8 kind;
	bool assumed;
};

struct tree_task {
	bool known, wanted;
	u32 vm, process;
	u32 root;		  /* of which .process is: another one after execve() */
	struct tree_frame *frame; /* [0] is no frame but the top */
	size_t frames, room;
	size_t inside; /* --function: its frame; 0: outside of it */
	/* Where it was when it did not run any more. */
	bool out;
	u32 out_stream;
	size_t out_run; /* the first of its spans' runs after that */
	struct tree_when out_when;
	const struct spans_span *exit;
	u64 instructions;
};

static inline struct tree_frame *tree_top(struct tree_task *t)
{
	return &t->frame[t->frames - 1];
}

struct tree {
	struct calls_source source;
	/* Options */
	struct cli_strings function;
	u8 per; /* enum tree_per */
	u64 depth, head;
	const char *min;
	u64 min_ticks;

	struct spans spans;
	bool timed;
	struct tree_task *task;
	size_t tasks;
	struct tree_lane *lane; /* of streams or of tasks */
	size_t lanes, lines;
	u32 *now;	/* by stream: the task that runs; ~0: none yet */
	size_t *passed; /* by stream: of its spans */
	u64 *ran_at;	/* by stream: where the last task began to run */
	u8 *matches;	/* by function: 0 not known yet, 1 no, 2 yes */
	size_t matched;
	u64 printed;
	bool titled;
};

/* Follow the calls to the end, or until --head lines are printed. 0, or an exit code. */
int tree_walk(struct cli *cli);
/* --min: "10us", "1ms", ticks where the TSC's frequency is not known. 0, or an exit code. */
int tree_min(struct cli *cli);
void tree_close(struct tree *d);

/* ---- lanes.c: an item's lines go to the lane of its CPU or task ---- */

/* NULL: no memory. */
struct tree_lane *tree_lane_of(struct tree *d, const struct vmpt_call_item *item);
/* Add @line; its number in *@at (may be NULL). 0 or a negative error. */
int tree_add(struct cli *cli, const struct vmpt_call_item *item, struct tree_line *line, u64 *at);
/* The line at @start, and those after it, are whole; @one: their sum. */
int tree_fold(struct cli *cli, const struct vmpt_call_item *item, u64 start, u64 hash,
	      const struct tree_line *one);
/* Print all if enough lines wait: what is printed cannot fold any more. */
void tree_limit(struct cli *cli);
void tree_print_all(struct cli *cli);

/* ---- text.c, json.c ---- */

void tree_print(struct cli *cli, const struct tree_line *line);
void tree_title(struct cli *cli);
void tree_json(struct cli *cli, const struct tree_line *line);
/* "syscall", "interrupt", ...; "": an ordinary call. */
const char *tree_kind(unsigned int kind);

#endif
