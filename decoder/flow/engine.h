/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Inside the flow decoder: an engine decodes parts of a stream, one after the other, in one thread.
 * docs/flow.md has the terms and the rules. Its files: space.c (address spaces and their code),
 * block.c, node.c (nodes and the table of IPs), walk.c (TNT bits and the memos of them), packets.c
 * (the loop over packets), events.c (packets that the loop leaves out), state.c (entering and
 * leaving a node), results.c, count.c.
 */
#ifndef VMPT_DECODER_FLOW_ENGINE_H
#define VMPT_DECODER_FLOW_ENGINE_H

#include "decoder/flow/insn.h"
#include "decoder/vmpt-flow.h"
#include "util/array.h"
#include "util/hash.h"

#define NONE (~0U)

/* Room for results. */
#define VMPT_FLOW_RESULTS 4096

/* ---- address spaces ---- */

struct space {
	struct vmpt_space id;
	u32 epoch;
	u64 gaps[VMPT_FLOW_REASONS];
};

/* A page of a space's code, in one of its versions, or that there is none. */
struct page {
	u64 linear;
	u32 space;
	u8 nth;
	bool here;
	struct vmpt_page page;
};

/* ---- blocks and nodes ---- */

/* Straight code within a page; its last instruction may reach into the next. */
struct block {
	u64 ip, end_ip, next, target;
	u64 hash;	    /* the ordered hash of its instructions; with options.hash */
	u64 whole, partial; /* how often it ran, and how many instructions besides */
	u32 space;
	u16 insns;
	u8 class; /* of the last instruction: enum vmpt_insn_class */
};

/* How a node ends, besides the classes of branches that wait for a packet. */
enum { END_NO_CODE = VMPT_INSN_CLASSES, END_BAD_CODE, END_ENDLESS };

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
};

/* h' = h * pow + hash is what a stretch of code does to the ordered hash. */
struct hashes {
	u64 hash, pow;
};

struct ip_slot {
	u64 ip;
	u32 space;
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
	u32 flat, flat_count; /* its blocks, in engine.flats; 0: not made yet */
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
	u8 end_pushes; /* of pushes: those of the last node */
};

/* Up to 8 TNT-8 from a node. */
struct memo {
	u64 bytes;
	u32 start, end; /* handles; start 0: free */
	u32 path;
	u32 effect; /* 0: the stack does not matter; else .end and .path are the effect's */
};

/*
 * Up to RAW_BYTES bytes of the trace from a node and Last IP: whole TNT-8, PAD and TIP packets, and
 * a TIP.PGD at their end, for which .end is 0.
 */
#define RAW_BYTES    16
#define RAW_DISABLED 0x80000000u /* instead of a handle: | the space */

struct raw_memo {
	u64 bytes[RAW_BYTES / 8];
	u64 last_ip, next_last_ip;
	u32 start; /* a handle, or RAW_DISABLED | space; 0: free */
	u32 end;   /* a handle; 0: PacketEn is 0 */
	u32 path, effect;
	u8 size;
} __attribute__((aligned(64)));

/* Whether raw memos are worth it: they are for a while, as often as they are hit. */
#define RAW_TRIAL 8192u	     /* lookups, then hits are counted */
#define RAW_PAUSE (1u << 20) /* bytes without them */
#define RAW_SEEN  4096u

/* ---- where the decoder is ---- */

#define DEPTH	    64u
#define STACK_SLOTS 256u /* what a node pushed too much can be taken back */

struct returns_stack {
	u64 slot[STACK_SLOTS];
	u8 top;		   /* the next free slot */
	u16 depth, before; /* entries, and those before the current node's pushes */
};

/* What a path that is recorded does to the stack. */
struct track {
	s32 level, low, peak; /* entries, from where it began */
	u64 guarded;
	u64 guards[DEPTH]; /* by -low */
	bool any, off;	   /* off: more than an effect can say */
	bool clear;	   /* all that was there at the start is gone */
};

/*
 * With code that changes: all code is good from .from to .to, which is known once its pages were
 * asked for. Each epoch has spaces of its own, so that code is decoded again in the next.
 */
struct epoch {
	u64 from, to;
};

#define TSC_SIZE 8 /* of a TSC packet */

/* Bits of cursor.pending: what the fast loop leaves to events.c. */
#define PENDING_FUP   0x01 /* an event's FUP, at .fup_ip */
#define PENDING_BOUND 0x02 /* the next FUP belongs to the packet before it */
#define PENDING_EXEC  0x04 /* the same: to a MODE.Exec */
#define PENDING_OVF   0x08 /* after an OVF */
#define PENDING_PSB   0x10 /* in a PSB+ */
#define PENDING_DOUBT 0x20 /* at the IP of a PSB+'s FUP; no packet of the flow came since */
#define PENDING_WEAK  0x40 /* the same, and that PSB+ had no MODE.TSX: BranchEn may be 0 */
#define PENDING_BLOCK 0x80 /* in a packet block */

enum place { LOST, DISABLED, RUNNING };

struct cursor {
	u64 at; /* offset in the stream */
	u64 last_ip;
	u64 cr3;
	u64 fup_ip;
	u32 handle; /* of the node that is executed; 0: not RUNNING */
	u32 space;  /* NONE: not resolved yet */
	u8 place;   /* enum place */
	u8 exec;
	u8 pending;
	bool no_cr3;
	u8 block; /* vmpt_pt_block_after() */
	u32 epoch;
	u64 tsc; /* of the last TSC packet, with engine.timed; else 0 */
	/* A PSB+ so far */
	bool psb_fup, psb_pip, psb_tsx;
	u8 psb_exec; /* 0: none */
	u64 psb_ip, psb_cr3;
};

/* PSB+ are mostly those that came before: what they say, by their bytes. */
#define PSB_MEMOS      8
#define PSB_MEMO_BYTES 112

struct psb_memo {
	u64 ip, cr3, last_ip;
	u8 bytes[PSB_MEMO_BYTES]; /* after the PSB itself */
	u8 size;		  /* 0: free */
	u8 exec;
	bool fup, pip, tsx;
};

/* ---- results ---- */

/* Blocks: units of the log from the end of the result before up to .log. */
struct result {
	u64 offset, end;
	u64 ip;
	u32 space;
	u32 log;
	u32 node; /* the last node of them; NONE: there are none */
	u32 keep; /* its blocks that are returned */
	u32 last; /* instructions of the last of these */
	u8 kind, reason;
};

struct engine {
	/* hot */
	struct cursor c;
	const u8 *data;
	u64 stop;	 /* the loop ends here; packets end at or before it */
	u64 limit;	 /* bytes up to here may be read */
	u64 weight;	 /* 1; while a stack is built again: 0 */
	struct hashes h; /* without the current node */
	struct ip_slot *ips;
	struct memo *memos;
	struct raw_memo *raws;
	struct node *nodes;
	u64 *node_hits;
	struct hashes *node_hashes;
	struct path *paths;
	u32 *log;
	u32 ip_mask, memo_mask, raw_mask;
	u32 raw_lookups, raw_hits; /* since the trial began */
	u64 raw_from;		   /* not before this offset */
	u32 log_count, log_room;
	u64 seed;
	bool hash, blocks,
		stack; /* what the loop does; of the options, and as the trace needs it */

	struct returns_stack s;
	const struct vmpt_stream *stream;
	struct vmpt_code *code;
	struct vmpt_flow_options options;
	struct vmpt_owner owner;
	bool quiet; /* the stack is built again: no results */
	int error;
	/* Where the stack was empty last, after a PSB+ or at a TIP.PGE, and the owners since then.
	 */
	struct cursor psb;
	struct vmpt_owner psb_owner;
	struct owner_change {
		u64 at;
		struct vmpt_owner owner;
	} * owners;
	size_t owner_count;
	struct psb_memo psb_memo[PSB_MEMOS];
	u64 psb_at; /* of the PSB+ that is decoded */
	u32 psb_next;
	u64 batch_from;

	/* tables that grow; see vmpt_flow_flush() */
	size_t node_count, node_room, path_count, path_room, ip_count, memo_count, raw_count;
	u16 *raw_seen; /* keys that were looked up once */
	u32 *lists;    /* of nodes' blocks and of paths' units */
	size_t list_count, list_room;
	u32 *flats;
	size_t flat_count, flat_room;
	u64 *returns;
	size_t return_count, return_room;
	struct effect *effects;
	size_t effect_count, effect_room;
	u64 *values;
	size_t value_count, value_room;
	size_t memory; /* all of these */
	bool full;
	u32 trail[RAW_BYTES]; /* units while a path is recorded */
	u32 trail_count;
	bool recording;
	struct track track; /* of the raw path that is recorded */

	/* what stays */
	struct block *block;
	size_t block_count;
	struct vmpt_hash block_index;
	struct space *space;
	size_t space_count;
	struct vmpt_hash space_index;
	struct page *page;
	size_t page_count;
	u32 page_last; /* the one that was asked for last */
	struct vmpt_hash page_index;
	struct epoch *epochs; /* the first is that before the first TSC */
	size_t epoch_count;
	bool timed; /* code changes */
	struct result *results;
	size_t result_count;
	u64 gaps[VMPT_FLOW_REASONS];
};

/* ---- space.c ---- */

/* The index of the current owner's space with @cr3 and @exec as the cursor has them. NONE: error.
 */
u32 vmpt_flow_space_now(struct engine *e);
/*
 * The known bytes of @space at @ip, up to @room of them; a page's later versions where the first
 * does not know the byte at @ip. Returns their number.
 */
size_t vmpt_flow_fetch(struct engine *e, u32 space, u64 ip, u8 *bytes, size_t room);
/* The instruction at @ip: VMPT_INSN_OK, or END_NO_CODE or END_BAD_CODE. */
int vmpt_flow_insn(struct engine *e, u32 space, u64 ip, struct vmpt_insn *insn);

/* ---- block.c ---- */

/* The block at @ip: *@end is 0, or END_NO_CODE or END_BAD_CODE and the result is NONE. */
u32 vmpt_flow_block_at(struct engine *e, u32 space, u64 ip, u8 *end);
/* How many instructions of it are before @ip, -1 if none begins there. */
int vmpt_flow_block_find(struct engine *e, const struct block *b, u64 ip);
/* The hash of its first @insns. */
struct hashes vmpt_flow_block_hash(struct engine *e, const struct block *b, u32 insns);
u64 vmpt_flow_pow(u64 n);

/* ---- node.c ---- */

/* The handle of the node at @ip; 0: out of memory. */
u32 vmpt_flow_node_at(struct engine *e, u32 space, u64 ip);
u32 vmpt_flow_child(struct engine *e, u32 handle, unsigned int taken);
/* Room for @n more words of engine.lists; -VMPT_E_NOMEM. */
int vmpt_flow_lists_room(struct engine *e, size_t n);
/* A table has grown from @from to @to bytes. */
void vmpt_flow_memory(struct engine *e, size_t from, size_t to);
/* Throw all tables away, after their counts were added to those of blocks. */
int vmpt_flow_flush(struct engine *e);
int vmpt_flow_tables_init(struct engine *e);
void vmpt_flow_tables_free(struct engine *e);

static inline u64 vmpt_flow_ip_hash(const struct engine *e, u32 space, u64 ip)
{
	u64 x = (ip ^ (u64)space << 48 ^ (u64)space >> 16 ^ e->seed) * 0x9e3779b97f4a7c15ULL;

	return x ^ x >> 32;
}

static inline u32 vmpt_flow_ip_find(const struct engine *e, u32 space, u64 ip)
{
	u32 i = (u32)vmpt_flow_ip_hash(e, space, ip) & e->ip_mask;

	for (; e->ips[i].handle; i = (i + 1) & e->ip_mask)
		if (e->ips[i].ip == ip && e->ips[i].space == space)
			break;
	return e->ips[i].handle;
}

/* ---- state.c ---- */

/* Execution goes on at @ip, in the cursor's space. 0 or a negative error. */
int vmpt_flow_enter(struct engine *e, u64 ip);
/* The same in @space. */
int vmpt_flow_enter_in(struct engine *e, u32 space, u64 ip);
/* Only @blocks whole blocks of the current node were executed, and @insns instructions of the next.
 */
void vmpt_flow_leave(struct engine *e, u32 blocks, u32 insns);
/* All of it. */
void vmpt_flow_leave_whole(struct engine *e);
/* All but the last branch, whose packet is missing. */
void vmpt_flow_leave_open(struct engine *e);
/* Up to @ip, where an event came. False if @ip is not in the node. */
bool vmpt_flow_leave_at(struct engine *e, u64 ip);
/* Nothing of it was executed. */
void vmpt_flow_leave_undone(struct engine *e);
/* The flow is not known any more: leave the node open, and report. */
void vmpt_flow_lose(struct engine *e, u64 offset);
void vmpt_flow_gap(struct engine *e, u64 offset, enum vmpt_flow_reason reason, u64 ip);
/* IP of the instruction that the current node ends with, or where its code is missing. */
u64 vmpt_flow_end_ip(const struct engine *e);
/* A compressed RET is to be followed and no stack was kept: make it from the last PSB on. */
int vmpt_flow_make_stack(struct engine *e, u64 at, unsigned int done);
/* Here the stack has only what the current node pushed. */
void vmpt_flow_stack_from(struct engine *e);

static inline void vmpt_flow_stack_clear(struct returns_stack *s)
{
	s->depth = s->before = 0;
}

/* ---- results.c ---- */

static inline void vmpt_flow_log(struct engine *e, u32 unit)
{
	if (e->log_count < e->log_room)
		e->log[e->log_count++] = unit;
}

/* Close a batch; the current node is returned as far as @keep and @last say, or, with @hold, later.
 */
void vmpt_flow_close_batch(struct engine *e, u32 keep, u32 last, bool hold);

/* ---- walk.c ---- */

/*
 * Walk the TNT-8 packets in @bytes, oldest first and zero padded, from the current node on, and
 * make a memo of them. Returns the number of bits taken: less than all where the walk ended.
 */
unsigned int vmpt_flow_walk(struct engine *e, u64 bytes);
/* The effect of @memo that the stack fits; NULL: none. */
const struct effect *vmpt_flow_effect(const struct engine *e, u32 first);
/* Apply it to the stack. */
void vmpt_flow_apply(struct engine *e, const struct effect *fx);
/* PacketEn was 0: no RET is compressed against a CALL before (33.4.2.2). */
void vmpt_flow_stack_reset(struct engine *e);
/* The RET of the current node got a TIP: pop. */
void vmpt_flow_pop(struct engine *e);
/* An effect of what @track has, which ended at the current node, before @next: its index, 0 if
 * there is no memory. */
u32 vmpt_flow_effect_add(struct engine *e, const struct track *track, u32 path, u32 next);
u32 vmpt_flow_path_add(struct engine *e, struct hashes h, const u32 *units, u32 count);
/* The path that is recorded has what @fx has; a node's @calls calls. */
void vmpt_flow_track_effect(struct engine *e, const struct effect *fx);
void vmpt_flow_track_calls(struct engine *e, u32 calls);
/* Bits of a run of TNT-8 packets. */
unsigned int vmpt_flow_bits(u64 bytes);
/* Take @count bits of the TNT packet at @at, the oldest is the highest, after the first @done. */
int vmpt_flow_tnt(struct engine *e, u64 at, u64 bits, unsigned int count, unsigned int done);

static inline u32 vmpt_flow_memo_hash(u32 start, u64 bytes)
{
	u64 x = (bytes ^ (u64)start << 29) * 0x9e3779b97f4a7c15ULL;

	return (u32)(x >> 32);
}

/* The memo, or the free slot for it. */
static inline struct memo *vmpt_flow_memo(const struct engine *e, u32 start, u64 bytes)
{
	u32 i = vmpt_flow_memo_hash(start, bytes) & e->memo_mask;

	while (e->memos[i].start && (e->memos[i].bytes != bytes || e->memos[i].start != start))
		i = (i + 1) & e->memo_mask;
	return &e->memos[i];
}

/* ---- raw.c ---- */

/* Begin and end to record a raw memo of the bytes from @at on. */
void vmpt_flow_raw_begin(struct engine *e);
void vmpt_flow_raw_add(struct engine *e, u64 at, u32 size, u32 start, u64 last_ip, u64 hash);
/* Whether @hash was looked up before. */
bool vmpt_flow_raw_seen(struct engine *e, u64 hash);
void vmpt_flow_raw_clear(struct engine *e);
/* The table, or twice as much of it: 0, or -VMPT_E_NOMEM. */
int vmpt_flow_raw_grow(struct engine *e);
/* A unit of the path that is recorded. */
static inline void vmpt_flow_trail(struct engine *e, u32 unit)
{
	if (e->trail_count < RAW_BYTES)
		e->trail[e->trail_count++] = unit;
}

static inline u64 vmpt_flow_raw_hash(u32 start, u64 last_ip, u64 b0, u64 b1)
{
	u64 x = (b0 ^ last_ip << 7 ^ start) * 0x9e3779b97f4a7c15ULL;

	x ^= (b1 ^ x >> 29) * 0xbf58476d1ce4e5b9ULL;
	return x ^ x >> 32;
}

/* The memo, or the free slot for it. */
static inline struct raw_memo *vmpt_flow_raw(const struct engine *e, u64 hash, u32 start,
					     u64 last_ip, u64 b0, u64 b1)
{
	u32 i = (u32)hash & e->raw_mask;
	struct raw_memo *m;

	for (;; i = (i + 1) & e->raw_mask) {
		m = &e->raws[i];
		if (!m->start || (m->bytes[0] == b0 && m->bytes[1] == b1 && m->start == start &&
				  m->last_ip == last_ip))
			return m;
	}
}

/* ---- memos that are hit ---- */

/*
 * Take a run of TNT-8 packets from the node @handle on by its memo. Returns the handle that it
 * leads to; 0: there is no memo. The last three are the engine's, for loops that are compiled for
 * them.
 */
static inline __attribute__((always_inline)) u32 vmpt_flow_memo_take(struct engine *e, u32 handle,
								     u64 bytes, bool hash,
								     bool blocks, bool stack,
								     bool record)
{
	const struct memo *m = vmpt_flow_memo(e, handle, bytes);
	const struct effect *fx = NULL;
	u32 end = m->end, id = m->path;
	struct path *path;

	if (__builtin_expect(!m->start, 0))
		return 0;
	if (stack && m->effect) {
		fx = vmpt_flow_effect(e, m->effect);
		if (!fx)
			return 0;
		vmpt_flow_apply(e, fx);
		end = fx->end;
		id = fx->path;
	}
	if (record) {
		vmpt_flow_trail(e, id | UNIT_PATH);
		if (fx)
			vmpt_flow_track_effect(e, fx);
	}
	path = &e->paths[id];
	path->hits += e->weight;
	if (hash) {
		e->h.hash = e->h.hash * path->h.pow + path->h.hash;
		e->h.pow *= path->h.pow;
	}
	if (blocks && !e->quiet)
		vmpt_flow_log(e, id | UNIT_PATH);
	return end;
}

/* ---- packets.c, events.c ---- */

/* Decode up to engine.stop, or until there is enough to return. 0, or a negative error. */
int vmpt_flow_packets(struct engine *e);
/* Decode one packet, plainly. */
int vmpt_flow_event(struct engine *e);
/* TIP.PGD with the cursor's Last IP, or without an IP, and no FUP before it. Whether it was plain:
 * all of the node was executed. */
bool vmpt_flow_pgd(struct engine *e, u64 offset, bool has_ip);
/* The owner changes; @at: a slice begins here. */
void vmpt_flow_owner(struct engine *e, const struct vmpt_owner *owner);
/* The flow ends at @at and nothing is known at @next, where the decoder goes on: bytes are lost
 * between them, or the stream begins or ends. */
void vmpt_flow_cut(struct engine *e, u64 at, u64 next, bool loss);

/* ---- recover.c ---- */

/* Packets after the damaged byte at *@at, in bytes that are lost up to @end: where they end, and
 * *@at where they begin; 0: there are none. */
u64 vmpt_flow_recover(const u8 *data, u64 *at, u64 end);

/* ---- count.c ---- */

/* Add the hits of nodes and paths to the blocks. */
void vmpt_flow_spread(struct engine *e);

#endif
