/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The stacks of all tasks of a Linux guest, from the truths of its vCPUs with RSP (truth-sp=1). A
 * frame is known by the place of its return address, so it ends when RSP is above that, whatever
 * the code does. A task is a kernel stack. The only thing known of the kernel is which function
 * switches stacks.
 *
 * vCPUs are followed in the order of their times, and a task that one of them takes over must have
 * been left by the other before.
 */
#ifndef VMPT_TESTS_CALLS_TRUE_STACKS_H
#define VMPT_TESTS_CALLS_TRUE_STACKS_H

#include "tests/calls/symbols.h"
#include "tests/flow/cursor.h"
#include "util/hash.h"

#define TRUE_CPUS 8u

/* A frame with all that is below it. Node 0 has nothing. */
struct true_node {
	u32 parent;
	u8 kind;	/* enum vmpt_call_kind; ROOT: a stack's end. Its callers are not known */
	bool optional;	/* a call to its own function: a frame, or not one */
	u64 start, now; /* function that was entered, that has the code now */
};

struct true_frame {
	u64 sp, ret, start, now;
	u32 node, region;
	u8 kind;
	bool kernel, thunk, optional;
};

struct true_region {
	u64 min, max;
};

#define TRUE_REGIONS 16u

struct true_task {
	u32 id;
	int cpu; /* that runs it; -1: none */
	bool dead;
	struct true_frame *frame;
	size_t frames, room;
	struct true_region region[TRUE_REGIONS];
	u32 regions;
	u64 key;     /* of its kernel stack; 0: not known yet */
	u64 space;   /* page tables of its program; 0: none yet */
	u64 user_sp; /* at the last entry of the kernel */
};

/* From instruction @pos on the vCPU has executed, it runs this. */
struct true_state {
	u64 pos, tsc;
	u32 task, node;
};

enum true_how {
	TRUE_NEXT,
	TRUE_START,
	TRUE_JUMP,
	TRUE_CALL,
	TRUE_RET,
	TRUE_ENTRY,
	TRUE_EXIT,
	TRUE_INT, /* its event follows */
};

struct true_cpu {
	struct truth_reader reader;
	struct cursor cursor;
	unsigned int index;
	bool ended, user; /* a program has run */
	u64 pos, tsc;
	struct true_task *task;
	/* how the block before ended */
	u8 how; /* enum true_how */
	bool loads, kernel;
	const struct symbol *function; /* of it */
	u64 from, last_sp, space;
	/* what is not asked for yet */
	struct true_state *state;
	size_t states, room, head;
};

struct true_block;

struct true_stacks {
	const struct symbols *symbols;
	struct true_cpu cpu[TRUE_CPUS];
	unsigned int cpus;
	struct true_task **task;
	size_t tasks;
	struct true_node *node;
	size_t nodes;
	struct vmpt_hash node_of;
	struct true_block *blocks[TRUE_CPUS];
	size_t block_room[TRUE_CPUS];
	u64 user_tsc; /* of the first program; 0: none yet */
	/* counts: returns by how they fit */
	u64 calls, returns, fit, several, jumps, bottom, elsewhere, switches, fresh, waits, signals,
		sigreturns, execs, restarts, strange;
	u64 show;
	bool error;
};

bool true_open(struct true_stacks *t, const struct symbols *symbols, char **paths,
	       unsigned int count);
void true_close(struct true_stacks *t);
/* Follow until vCPU @cpu has executed more than @pos instructions, or ended. false: an error. */
bool true_until(struct true_stacks *t, unsigned int cpu, u64 pos);

#endif
