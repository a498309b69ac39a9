/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * vmpt hot: where instructions and time went, by function and by stack. tree.c makes a plain tree
 * of the calls of a trace; rows.c sums it by function, diff.c compares two sums; table.c, json.c,
 * folded.c, speedscope.c and pprof.c print them. What prints knows the plain tree only.
 */
#ifndef VMPT_CLI_HOT_H
#define VMPT_CLI_HOT_H

#include "cli/calls/calls.h"

/* What is counted, in the order of --by. */
enum hot_by { HOT_INSTRUCTIONS, HOT_TIME, HOT_BYS };

/* What rows of functions are of, in the order of --per. */
enum hot_per { HOT_PER_PROCESS, HOT_PER_VM, HOT_PER_TRACE };

/* In the order of --sort. */
enum hot_sort { HOT_SORT_SELF, HOT_SORT_TOTAL, HOT_SORT_CALLS, HOT_SORT_NAME };

/* ---- the tree ---- */

struct hot_process {
	const char *vm, *name;		    /* safe */
	const char *comm;		    /* the same without its number: for comparisons */
	u32 vm_number;			    /* the same for all of a VM */
	const struct vmpt_guest_task *task; /* NULL: not known */
};

struct hot_node {
	u32 parent; /* below its own number; 0: a root */
	u32 what;   /* of a root: its process; else its function */
	u64 calls;
	u64 self[HOT_BYS]; /* without what it called; time in ticks of the host's TSC */
};

/* Node 0 is nothing's. Functions, of which number 0 is [unknown], are somebody else's. */
struct hot_tree {
	struct hot_node *node;
	size_t nodes;
	u32 *first, *next; /* of children, by number; 0: none. hot_tree_link() */
	const struct calls_function *function;
	size_t functions;
	struct hot_process *process;
	size_t processes;
	bool timed;   /* .self[HOT_TIME] is known */
	double hertz; /* of the ticks; 0: not known */
};

/* Of what the filters want of @s, at its end. 0, or a negative error; free it in either case. */
int hot_tree_make(struct calls_source *s, struct hot_tree *t);
/* Fill .first and .next. 0 or -VMPT_E_NOMEM. */
int hot_tree_link(struct hot_tree *t);
void hot_tree_free(struct hot_tree *t);

/*
 * A step of a walk in the depth: true: *@i is entered; false: *@i is left, or all is done if *@i is
 * 0. It begins with *@i = 0 and @entered true; later @entered is what the last step returned.
 */
static inline bool hot_step(const struct hot_tree *t, u32 *i, bool entered)
{
	if (entered && !t->first[*i])
		return false;
	if (entered || t->next[*i]) {
		*i = entered ? t->first[*i] : t->next[*i];
		return true;
	}
	*i = t->node[*i].parent;
	return false;
}

/* Ticks in ns where their frequency is known. */
u64 hot_ns(const struct hot_tree *t, u64 ticks);
/* What is counted, in its unit: instructions, ns or ticks. */
u64 hot_value(const struct hot_tree *t, unsigned int by, u64 value);

/* ---- rows ---- */

struct hot_row {
	u32 group; /* a process, the first one of its VM, or 0: enum hot_per */
	u32 function;
	u64 calls;
	u64 self[HOT_BYS],
		total[HOT_BYS]; /* of nested calls of one function the outer one counts */
};

struct hot_rows {
	struct hot_row *row;
	size_t count;
	struct hot_row sum; /* of all */
};

/* 0 or -VMPT_E_NOMEM; free them in either case. */
int hot_rows_make(const struct hot_tree *t, unsigned int per, struct hot_rows *rows);
/* By .self or .total of @by, .calls, or names; then by names. */
void hot_rows_sort(const struct hot_tree *t, const struct hot_rows *rows, unsigned int sort,
		   unsigned int by);
void hot_rows_free(struct hot_rows *rows);

/* ---- comparison ---- */

/* A function in two trees: before, after. */
struct hot_change {
	const struct hot_tree *tree[2];
	struct hot_row *row[2]; /* NULL: it is not in this one */
};

struct hot_diff {
	struct hot_change *change;
	size_t count;
	const struct hot_tree *tree[2];
	u64 sum[2][HOT_BYS];
	bool vms; /* two VMs are compared, not two trees */
};

/*
 * Join the rows of two trees by the names of VM (unless @vms), process without its number, and
 * function. 0 or -VMPT_E_NOMEM; free it in either case.
 */
int hot_diff_make(const struct hot_tree *const tree[2], const struct hot_rows *const rows[2],
		  unsigned int per, bool vms, struct hot_diff *diff);
/* By how much .self or .total of @by changed, largest first; calls likewise; or by names. */
void hot_diff_sort(const struct hot_diff *diff, unsigned int per, unsigned int sort,
		   unsigned int by);
void hot_diff_free(struct hot_diff *diff);
/* What is compared, of tree @side: .self of @by, or what @sort says; in its unit. */
u64 hot_change_value(const struct hot_change *c, unsigned int side, unsigned int sort,
		     unsigned int by);
/* The rows of VM @name only, that become those of a diff. */
void hot_rows_keep_vm(const struct hot_tree *t, struct hot_rows *rows, const char *name);

/* ---- output ---- */

/* How it is shown. */
struct hot_show {
	u8 by, per, sort; /* enum hot_by, hot_per, hot_sort */
	u64 top;	  /* rows; 0: all */
};

void hot_print(struct cli *cli, const struct hot_tree *t, const struct hot_rows *rows,
	       const struct hot_show *show);
void hot_print_diff(struct cli *cli, const struct hot_diff *diff, const struct hot_show *show);
/* Members of the document. */
void hot_json(struct cli *cli, json_t *doc, const struct hot_tree *t, const struct hot_rows *rows,
	      const struct hot_show *show);
void hot_json_diff(struct cli *cli, json_t *doc, const struct hot_diff *diff,
		   const struct hot_show *show);

/* FlameGraph's lines, "web;89 pipes;main;read 1234", of one value of @by. 0, or -VMPT_E_NOMEM. */
int hot_folded(const struct hot_tree *t, unsigned int by, FILE *out);
/* Whether these first bytes of a file are such lines. */
bool hot_is_folded(const char *head, size_t size);
/* speedscope's file format, a profile for each root. */
void hot_speedscope(struct cli *cli, const struct hot_tree *t, unsigned int by, FILE *out);
/* pprof's profile.proto, gzip'd, with instructions and, where known, time. 0 or a negative error.
 */
int hot_pprof(const struct hot_tree *t, unsigned int by, FILE *out);
/* In the first bytes of all of them. */
#define HOT_SPEEDSCOPE_MARK "\"exporter\":\"vmpt "
#define HOT_PPROF_MARK	    "vmpt hot"

#endif
