/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Calls, returns and stacks of everything that ran, from the flow of instructions (vmpt-flow.h) of
 * all CPUs (docs/calls.md): who called whom, for how long, in which task of which VM.
 *
 * PT does not show the stack pointer. A stack here is what calls, returns, entries of the kernel
 * and interrupts since the trace began say it must be, and after a switch of tasks it is the stack,
 * of those left before, that the returns which follow fit. What cannot be known is a frame of kind
 * VMPT_CALL_UNKNOWN, not a guess.
 *
 * Pull interface: vmpt_calls_next() until it returns 0; then ask for the tree. One thread at a time
 * uses a vmpt_calls.
 */
#ifndef VMPT_CALLS_H
#define VMPT_CALLS_H

#include "decoder/vmpt-clock.h"
#include "decoder/vmpt-flow.h"

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

/* ---- what the code is ---- */

/* What a call to a function means for the stack. */
enum vmpt_call_role {
	VMPT_ROLE_PLAIN,
	/* It leads to another function and has no frame: retpolines, return thunks, trampolines */
	VMPT_ROLE_THUNK,
	/* It leaves the stack of one task and returns on that of another: Linux's __switch_to_asm
	 */
	VMPT_ROLE_SWITCH,
};

/* The function that has an address. */
struct vmpt_function {
	u64 start; /* of its first instruction: what calls go to. Parts elsewhere (.cold) have it,
		      too */
	u8 role;   /* enum vmpt_call_role */
};

/* All 0 is the default. */
struct vmpt_calls_options {
	/* Of each stream's flow; .trace.threads are for all. .blocks, .events, .times and
	 * .by_packet are ignored. May be NULL. */
	const struct vmpt_flow_options *flow;
	/*
	 * The function that has @ip; false: not known. Asked once for each block. NULL: none is
	 * known. Then a function is where a call goes.
	 */
	bool (*function)(void *opaque, const struct vmpt_space *space, u64 ip,
			 struct vmpt_function *function);
	/* Which VM a VMCS belongs to, a number of the caller's: they share their tasks. NULL: each
	 * is a VM. */
	u32 (*vm)(void *opaque, const struct vmpt_owner *owner);
	void *opaque;	/* of both */
	u64 from, to;	/* host ticks: count in [from, to) only; 0: all. Needs clocks */
	u32 nodes_max;	/* of the tree; more are counted for their callers; 0: 4 Mi */
	u32 stacks_max; /* that are left and kept for later; 0: 16 Ki */
	bool items;	/* return calls and returns; else only the tree */
};

/* ---- calls and returns ---- */

/* How a frame came to be. */
enum vmpt_call_kind {
	VMPT_CALL_ROOT,	   /* of all stacks of one address space */
	VMPT_CALL_UNKNOWN, /* callers from before the trace, or lost */
	VMPT_CALL_CALL,	   /* a near or far call, or what it jumped to (a tail call) */
	VMPT_CALL_SYSTEM,  /* SYSCALL, SYSENTER, and what else goes to the kernel by a far branch */
	VMPT_CALL_INTERRUPT, /* an interrupt or exception: before an instruction; also INT n, INT3
				and the like whose code is not known */
	VMPT_CALL_SIGNAL,    /* the kernel returned elsewhere than it had come from */
	VMPT_CALL_KINDS,
};

/* What a struct vmpt_call_item says. */
enum vmpt_call_what {
	VMPT_CALL_ENTER, /* a frame begins */
	VMPT_CALL_LEAVE, /* it ends */
	/* From here on the CPU runs this task; .node is where it is. Of the task that ran already:
	 * its .instructions up to here, before another one follows without a call that says so */
	VMPT_CALL_RUN,
	VMPT_CALL_GAP, /* the flow is lost: frames may have begun and ended */
};

/* A call or return, or what else happened to a task. */
struct vmpt_call_item {
	u64 tsc, tsc_end; /* host ticks between which it happened; VMPT_TIME_NONE: not known */
	u64 offset;	  /* of the packet before it, in its stream */
	u64 instructions; /* that the task had executed */
	u32 stream;	  /* index */
	u32 task;	  /* below vmpt_calls_tasks() */
	u32 node;	  /* of the tree */
	u32 depth;	  /* of the frame: 1 is the first in its root */
	u8 what;	  /* enum vmpt_call_what */
	/* LEAVE: it ended with others, by a return over its head, or was lost. ENTER: it began
	 * before, but is seen only now. Times are not those of a call then */
	bool assumed;
	/* LEAVE: those of the frame's ENTER; tsc: the earliest */
	u64 enter_tsc, enter_instructions;
};

/* Some of them. */
struct vmpt_call_batch {
	const struct vmpt_call_item *items; /* by time within a stream; until the next call */
	size_t count;
};

/* ---- the tree ---- */

/* A function as called by its parent. Node 0 is nothing's: parent of all roots. */
struct vmpt_call_node {
	u32 parent; /* below its own number */
	u32 space;  /* below vmpt_calls_spaces(): whose address .function is */
	/* Its start, or where the call went. UNKNOWN: 0. ROOT: the CR3; ~0: of threads of the
	 * kernel, which have no address space, and where none is known */
	u64 function;
	u8 kind;   /* enum vmpt_call_kind */
	u64 calls; /* how often it began */
	/* By itself, without what it called */
	u64 instructions;
	u64 time; /* host ticks, shared among the instructions between two times */
};

/* .vm of the host's tasks. options.vm returns numbers below 2^30. */
#define VMPT_CALLS_HOST (~0u)

/* A stack: a thread, or what can be taken for one. */
struct vmpt_call_task {
	u32 vm;	    /* as options.vm has it */
	u32 root;   /* node: the address space; of a thread of the kernel, that has none */
	u32 one_of; /* where it was taken up again it could have been any of this many; 0: never */
	u32 space;  /* in which it was seen first */
	struct vmpt_owner owner; /* on which it was seen first */
};

/* How stacks were followed. */
struct vmpt_calls_counts {
	u64 instructions, gaps, switches;
	u64 resumed;   /* of the switches: to a stack that was left before */
	u64 ambiguous; /* of them: to one of several equal ones */
	u64 unmatched; /* returns to where no frame says */
	u64 folded;    /* calls for which the tree had no room */
};

struct vmpt_calls;

/* The version of this interface, for vmpt_calls_open_abi(). */
#define VMPT_CALLS_ABI                                                                        \
	VMPT_ABI_ADD4(VMPT_ABI4(struct vmpt_calls_options, struct vmpt_function,              \
				struct vmpt_call_item, struct vmpt_call_batch),               \
		      struct vmpt_call_node, struct vmpt_call_task, struct vmpt_calls_counts, \
		      struct vmpt_flow_options)

/*
 * Open the calls of @count @streams of one trace, all PT's. @clocks are theirs, in the same order;
 * NULL: no times, and streams one after the other. @code may be NULL. All must outlive it;
 * @options may be NULL. Returns 0, or -VMPT_E_INVAL, -VMPT_E_UNSUPPORTED, -VMPT_E_NOMEM.
 */
int vmpt_calls_open_abi(struct vmpt_calls **calls, const struct vmpt_stream *const *streams,
			size_t count, const struct vmpt_clocks *clocks, struct vmpt_code *code,
			const struct vmpt_calls_options *options, u64 abi);
#define vmpt_calls_open(calls, streams, count, clocks, code, options) \
	vmpt_calls_open_abi(calls, streams, count, clocks, code, options, VMPT_CALLS_ABI)
void vmpt_calls_close(struct vmpt_calls *calls);

/* Some more of the trace. 1: @batch is filled, without .items it is empty; 0: the end; or a
 * negative error. */
int vmpt_calls_next(struct vmpt_calls *calls, struct vmpt_call_batch *batch);

/* Of what was returned so far. Nodes, spaces and tasks keep their numbers. */
u32 vmpt_calls_nodes(const struct vmpt_calls *calls);
void vmpt_calls_node(const struct vmpt_calls *calls, u32 i, struct vmpt_call_node *node);
u32 vmpt_calls_spaces(const struct vmpt_calls *calls);
void vmpt_calls_space(const struct vmpt_calls *calls, u32 i, struct vmpt_space *space);
u32 vmpt_calls_tasks(const struct vmpt_calls *calls);
void vmpt_calls_task(const struct vmpt_calls *calls, u32 i, struct vmpt_call_task *task);
void vmpt_calls_total(const struct vmpt_calls *calls, struct vmpt_calls_counts *counts);
/* What stream @i, which must be an index, has lost and executed. */
void vmpt_calls_flow(const struct vmpt_calls *calls, size_t i, struct vmpt_flow_counts *counts);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#endif
