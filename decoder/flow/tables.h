/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Inside the flow decoder: what the tables of an engine (engine.h) are made of: address spaces,
 * pages of code, blocks, nodes, and memos of packets with what they lead to. docs/flow.md has the
 * terms.
 */
#ifndef VMPT_DECODER_FLOW_TABLES_H
#define VMPT_DECODER_FLOW_TABLES_H

#include "decoder/flow/insn.h"
#include "decoder/vmpt-flow.h"
#include "util/hash.h"

#define NONE (~0U)

/* ---- address spaces ---- */

struct space {
	struct vmpt_space id;
};

/* A page of a space's code: what vmpt_code_page() has returned for it so far. */
struct page {
	u64 linear;
	u64 from, to; /* the TSCs in which that is so */
	u32 space;
	u32 blocks, nodes;	 /* change.c: made of it; that lack code in it */
	struct vmpt_page first;	 /* version 0 */
	struct vmpt_page *other; /* the later ones; NULL: none was asked for */
	u8 count;		 /* of versions that were asked for and are there */
	u8 prefer;		 /* the version that is read first: choose.c */
	bool complete;		 /* there are no more */
	bool ending;		 /* in engine.ending */
};

/* ---- blocks and nodes ---- */

/* Straight code within a page; its last instruction may reach into the next. */
struct block {
	u64 ip, end_ip, next, target;
	u64 hash;	    /* the ordered hash of its instructions; with options.hash */
	u64 whole, partial; /* how often it ran, and how many instructions besides */
	u32 space;
	u32 code; /* its bytes, in engine.bytes; NONE: in its page, which stays as it is */
	u16 insns;
	u16 size; /* bytes */
	u8 class; /* of the last instruction: enum vmpt_insn_class */
	bool old; /* its space has other code there now */
};

/* How a node ends, besides the classes of branches that wait for a packet. */
enum {
	END_NO_CODE = VMPT_INSN_CLASSES,
	END_BAD_CODE,
	END_LOOP,    /* in one without a packet */
	END_ENDLESS, /* too many instructions without a packet */
};

/* Where a block was left: vmpt_flow_left(). */
struct left_list {
	struct vmpt_flow_left *left;
	size_t count;
	struct vmpt_hash index;
};

/*
 * Blocks that follow each other over direct jumps and calls, up to what waits for a packet. A
 * handle is the node's index << HANDLE_SHIFT with what the loop over packets must know.
 */
#define HANDLE_COND  0x01u /* ends with a conditional branch */
#define HANDLE_TIP   0x02u /* ends with what waits for a TIP */
#define HANDLE_RET   0x04u /* of these: a near RET */
#define HANDLE_PUSH  0x08u /* has calls */
#define HANDLE_MULTI 0x10u /* has more than one block */
#define HANDLE_SHIFT 5
#define NODES_MAX    (1u << 26)

#define NODE_BLOCKS 1024u
#define NODE_PUSHES 192u

struct node {
	u64 ip;
	u64 next_ip; /* after its last instruction: where code is missing, or COND falls through */
	u32 space;
	u32 list;     /* of its blocks, in engine.lists */
	u32 calls;    /* of its return addresses, in engine.returns */
	u32 child[2]; /* COND: handles, 0 unknown: not taken, taken */
	u16 count;    /* of blocks */
	u8 call_count;
	u8 end;	      /* enum vmpt_insn_class or END_* */
	bool mov_cr3; /* has a MOV CR3 */
	bool old;     /* its space has other code there now: only the current node may be such */
};

/* h' = h * pow + hash is what a stretch of code does to the ordered hash. */
struct hashes {
	u64 hash, pow;
};

struct ip_slot {
	u64 ip;
	u32 space;  /* NONE: removed */
	u32 handle; /* 0: free */
};

/* ---- memos ---- */

/*
 * A stretch of packets from one node to another, whose nodes are known: those entered, the last one
 * of which is the node that it leads to. Its hash has the node it begins at, not the last one. A
 * unit of a path is a node's index, or a path's index | UNIT_PATH.
 */
#define UNIT_PATH 0x80000000u

struct path {
	u64 hits;
	struct hashes h;
	u32 list, count;
};

/* What a path does to the stack of return addresses, and from where it does so. */
struct effect {
	u32 next; /* of the same key; 0: none */
	u32 end;  /* the handle that it leads to */
	u32 path;
	u32 values;  /* in engine.values: guards from the top down, then what is pushed */
	u64 guarded; /* bit n: guard n must be equal: a compressed RET popped it */
	u8 pops, pushes, peak;
	bool clear;    /* all is popped */
	u8 compressed; /* RETs */
	u8 end_pushes; /* of pushes: those of the last node */
};

/* Up to 8 TNT-8 from a node. */
struct memo {
	u64 bytes;
	u32 start, end; /* handles; start 0: free, NONE: removed */
	u32 path;
	u32 effect; /* 0: the stack does not matter; else .end and .path are the effect's */
};

/*
 * Up to RAW_BYTES bytes of the trace from a node and Last IP: whole TNT-8, PAD and TIP packets, and
 * a TIP.PGD at their end, for which .end is 0. What came after it is tried first: .pads PADs, then
 * one of the memos .next. So a hit needs no hash, and the next does not wait for this one. The two
 * stay where they are: which of them comes is left to the processor's branch prediction.
 */
#define RAW_BYTES    16
#define RAW_DISABLED 0x80000000u /* instead of a handle: | the space */
#define RAW_EFFECT   0x80000000u /* instead of a path: | an effect */

struct raw_memo {
	u64 bytes[RAW_BYTES / 8];
	u64 last_ip, next_last_ip;
	u64 hits;    /* with an effect: those are of its path */
	u32 start;   /* a handle, or RAW_DISABLED | space; NONE: removed */
	u32 end;     /* a handle; 0: PacketEn is 0 */
	u32 path;    /* or RAW_EFFECT | an effect */
	u32 next[2]; /* 0: none */
	u8 size;
	u8 pads; /* up to 15 */
} __attribute__((aligned(64)));

#endif
