/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Inside of the calls (docs/calls.md): streams' blocks come in the order of time (feed.c), each
 * moves the stack of the task that its vCPU or CPU runs (arrive.c, stack.c), tasks that were left
 * are found again by what follows (switch.c, exchange.c), and all is counted in one tree (tree.c).
 */
#ifndef VMPT_CALLS_ENGINE_H
#define VMPT_CALLS_ENGINE_H

#include "decoder/vmpt-calls.h"
#include "util/array.h"
#include "util/hash.h"

#define NONE (~0u)

/* ---- blocks ---- */

/* How the flow came to a block from the one before. */
enum how {
	HOW_NEXT,  /* straight on, or by a direct jump */
	HOW_START, /* nothing was known before it */
	HOW_LOST,  /* a gap */
	HOW_JMP,   /* indirect, or far */
	HOW_CALL,
	HOW_RET,
	HOW_ENTRY, /* SYSCALL, INT n: a frame that HOW_EXIT ends */
	HOW_EXIT,  /* IRET, SYSRET */
	HOW_VMX,   /* VM entries, and what makes a VM exit only */
	HOW_EVENT, /* an event, before an instruction */
};

/* A function in an address space, or what is not known there. */
struct zone {
	u64 function; /* its start; 0: not known */
	u32 space;
	u8 role; /* enum vmpt_call_role */
};

/* A block of one stream's flow: what the loop over blocks reads ... */
struct block {
	u32 zone; /* 0: the block was not looked at yet */
	u16 insns;
	u8 how; /* the next one comes: enum how */
};

/* ... and where it is. */
struct place {
	u64 ip, next;
};

/* Code that the flow came to. */
struct code {
	u64 ip;
	u64 function;
	u32 space;
	u8 role;
};

/* ---- streams ---- */

/* A batch of a flow, kept until it was taken. */
struct part {
	u64 offset, end, ip;
	u32 first, count; /* in feed.ids */
	u32 last, space;  /* of the flow */
	u8 kind;
};

/* One stream's flow and times. */
struct feed {
	u32 index;
	struct vmpt_flow *flow;
	struct block *block; /* by number */
	struct place *place;
	size_t block_room, place_room;
	u32 *space; /* the engine's numbers of the flow's spaces */
	size_t space_room, spaces;

	/* What was read ahead. */
	struct part *part;
	size_t parts, part_at;
	u32 *ids;
	size_t id_room, id_count;
	bool ended;

	struct vmpt_timed *timed; /* NULL: no times */
	struct vmpt_timed_batch batch;
	size_t item;
	bool timed_ended, ready;
	struct vmpt_time now;	 /* of the last packet at or before the place asked for */
	struct vmpt_time before; /* of the last packet before .followed */
	u64 followed;		 /* the last end of a part */
	u64 tsc, tsc_end;	 /* of the current part */
	u32 at;			 /* in it: the current block */
	struct context *context; /* which ran last; NULL: none */
};

/* ---- stacks ---- */

struct frame {
	u64 ret;	       /* where it returns to; 0: not known, to anywhere */
	u64 function;	       /* whose code it runs now; 0: not known */
	u64 tsc, instructions; /* when it was entered */
	u32 node;
	u8 kind;     /* enum vmpt_call_kind */
	bool kernel; /* its code is in the upper half */
	bool local;  /* a call into the middle of its own caller */
	bool thunk;  /* nothing but a thunk was called yet: counts for its caller */
	bool assumed;
};

struct stack {
	struct frame *frame;
	size_t room;
	u32 depth;
	u32 over; /* calls for which there was no room */
	u32 task;
	u32 vm;
	u32 root;  /* node */
	u64 cr3;   /* of the space of .root, ~0: the kernel's */
	u32 group; /* of stacks that may be each other; 0: none */
	u64 instructions;
};

/* What runs: a CPU of the host, or a VMCS. */
struct context {
	struct vmpt_owner owner;
	u32 stream; /* of the host's; NONE */
	u32 vm;
	struct stack *stack;
	u8 how;	   /* enum how */
	u64 from;  /* CALL, ENTRY: the address after it; EVENT, VMX: of the instruction */
	u32 space; /* EVENT: its address space, or NONE */
};

/* ---- all ---- */

struct vmpt_calls {
	struct vmpt_calls_options options;
	struct vmpt_flow_options flow;
	struct vmpt_options trace;
	const struct vmpt_clocks *clocks;
	struct vmpt_code *code; /* NULL: none */
	struct feed *feeds;
	size_t feed_count;

	struct vmpt_space *space;
	size_t spaces;
	struct vmpt_hash space_of;
	struct zone *zone; /* 0 is none */
	size_t zones;
	struct vmpt_hash zone_of;

	struct context **context;
	size_t contexts;

	struct vmpt_call_node *node;
	size_t nodes;
	struct vmpt_hash node_of;
	u32 *near; /* CALLS_NEAR nodes, by a plain hash */
	struct root {
		u64 cr3; /* ~0: the kernel's */
		u32 vm, node;
	} * root;
	size_t roots;
	struct vmpt_hash root_of;

	struct vmpt_call_task *task;
	size_t tasks;
	struct stack **parked;
	size_t parks;
	u64 parked_frames;
	u32 groups;

	/* Of the part that is taken: what ran, for the time. */
	struct segment {
		u32 node;
		u64 instructions;
	} * segment;
	size_t segments;
	bool counting; /* the time is wanted */

	struct vmpt_call_item *item;
	size_t items;
	struct vmpt_calls_counts counts;
	int error;
};

static inline struct code code_of(const struct vmpt_calls *e, const struct feed *f, u32 id)
{
	const struct zone *z = &e->zone[f->block[id].zone];

	return (struct code){ f->place[id].ip, z->function, z->space, z->role };
}

/* Linux's upper half, in which 32-bit kernels begin at 3 GiB. */
static inline bool is_kernel(const struct vmpt_space *s, u64 ip)
{
	return s->exec == 64 ? ip >> 63 : false;
}

/*
 * Whether @to handles an event at the instruction at @from of @function. A VM exit is an event,
 * too: then the instruction is repeated, or was emulated, and the VM goes on after it or elsewhere
 * in the function.
 */
static inline bool is_handler(const struct code *to, u64 from, u64 function)
{
	const u64 insn_max = 15, after = to->ip - from + insn_max;

	if (to->ip == from)
		return false;
	if (to->function && to->ip == to->function)
		return true;
	return after > 2 * insn_max && !(to->function && to->function == function);
}

/* A CALL to @to only fills the processor's stack of return addresses: no RET belongs to it. */
static inline bool vmpt_calls_fills(const struct code *to)
{
	return to->role == VMPT_ROLE_SWITCH && to->ip != to->function;
}

/* ---- feed.c ---- */

int vmpt_calls_feed_open(struct vmpt_calls *e, struct feed *f, const struct vmpt_stream *stream,
			 struct vmpt_code *code);
void vmpt_calls_feed_close(struct feed *f);
/* Make part number @n from the current one on known. 1, 0: there is none, or a negative error. */
int vmpt_calls_feed_ahead(struct feed *f, size_t n);
/* The current part is done. */
void vmpt_calls_feed_done(struct feed *f);
/* The times of the current part. */
int vmpt_calls_feed_times(struct feed *f);
/* Room for all blocks of the flow. */
int vmpt_calls_blocks(struct vmpt_calls *e, struct feed *f);
/* Look at block @id for the first time. 0 or a negative error. */
int vmpt_calls_new_block(struct vmpt_calls *e, struct feed *f, u32 id);
/* The engine's number of space @space of the flow, or NONE. */
u32 vmpt_calls_space_of(struct vmpt_calls *e, struct feed *f, u32 space);
/* Code at an address of which no block is known. */
void vmpt_calls_code_at(struct vmpt_calls *e, u32 space, u64 ip, struct code *code);
/*
 * The size of the INT n, INT3, INTO or INT1 at @ip of @space, of which the flow has an event; 0: it
 * is none, or not known.
 */
u64 vmpt_calls_soft_int(const struct vmpt_calls *e, const struct feed *f, u32 space, u64 ip);

/* ---- tree.c ---- */

/* Nodes that are found by one multiplication: .near */
#define CALLS_NEAR 8192u

static inline u32 near_slot(u32 parent, u64 function)
{
	return ((function ^ parent) * 0x9e3779b97f4a7c15ULL >> 40) % CALLS_NEAR;
}

static inline bool is_child(const struct vmpt_call_node *n, u32 parent, u8 kind, u64 function)
{
	return n->parent == parent && n->function == function && n->kind == kind;
}

/* The child of @parent, if it was used a short while ago; else 0. */
static inline u32 child_near(const struct vmpt_calls *e, u32 parent, u8 kind, u64 function)
{
	const u32 id = e->near[near_slot(parent, function)];

	return id && is_child(&e->node[id], parent, kind, function) ? id : 0;
}

int vmpt_calls_tree_open(struct vmpt_calls *e);
/* The child of @parent; it is made if there is none. */
u32 vmpt_calls_child(struct vmpt_calls *e, u32 parent, u8 kind, u64 function, u32 space);
/* The root of @vm's address space with @cr3, or ~0. */
u32 vmpt_calls_root(struct vmpt_calls *e, u32 vm, u64 cr3, u32 space);

/* ---- stack.c ---- */

/* An empty stack, of a new task. NULL: no memory. */
struct stack *vmpt_calls_stack_new(struct vmpt_calls *e, struct context *c, u32 space);
void vmpt_calls_stack_free(struct stack *s);
struct frame *vmpt_calls_top(struct stack *s);
/* Where instructions count. */
u32 vmpt_calls_node_now(const struct stack *s);
void vmpt_calls_push(struct vmpt_calls *e, struct feed *f, struct stack *s, u8 kind,
		     const struct code *to, u64 ret, bool assumed);
/* Frames above @depth end; all but the lowest of them @over its head. */
void vmpt_calls_pop_to(struct vmpt_calls *e, struct feed *f, struct stack *s, u32 depth);
/* The frame becomes one of another function: a tail call, or what a thunk leads to. */
void vmpt_calls_replace(struct vmpt_calls *e, struct feed *f, struct stack *s,
			const struct code *to);
void vmpt_calls_say(struct vmpt_calls *e, struct feed *f, const struct stack *s, u8 what,
		    const struct frame *frame, u32 depth);

/* ---- arrive.c ---- */

/* The flow comes to @to, not straight on. */
void vmpt_calls_arrive(struct vmpt_calls *e, struct feed *f, struct context *c,
		       const struct code *to);

/* ---- switch.c ---- */

/* Another stack is used from here on, @at of the current part's ids. */
void vmpt_calls_switch(struct vmpt_calls *e, struct feed *f, struct context *c, u32 at,
		       const struct code *to);
/* A stack that was left whose top returns to @ip, taken off the list; NULL. */
struct stack *vmpt_calls_parked_at(struct vmpt_calls *e, const struct context *c, u64 cr3, u64 ip);
void vmpt_calls_park(struct vmpt_calls *e, struct context *c);

/* ---- exchange.c ---- */

/* All stacks, by numbers below .parks + .contexts: that were left, and that run; may be NULL. */
struct stack *vmpt_calls_stack_number(const struct vmpt_calls *e, size_t i);
/* Frames of @a below @n change places with those of @b below @m, and so do their tasks. */
void vmpt_calls_exchange_at(struct vmpt_calls *e, struct stack *a, u32 n, struct stack *b, u32 m);
/*
 * Where @s was taken up it could have been another one, left now, whose frame like the top of @s
 * returns to @to: they change places. Then that frame is the top.
 */
bool vmpt_calls_exchange(struct vmpt_calls *e, struct stack *s, const struct code *to);

#endif
