/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Inside the flow decoder: an engine decodes parts of a stream, one after the other, in one thread.
 * docs/flow.md has the terms and the rules. Its files: space.c (address spaces and their code),
 * block.c, node.c (nodes and the table of IPs), change.c, choose.c (code that changes), walk.c (TNT
 * bits and the memos of them), packets.c (the loop over packets), events.c (packets that the loop
 * leaves out), state.c (entering and leaving a node), results.c, count.c. tables.h has what the
 * tables of an engine are made of, flow.h what is around engines.
 */
#ifndef VMPT_DECODER_FLOW_ENGINE_H
#define VMPT_DECODER_FLOW_ENGINE_H

#include "decoder/flow/tables.h"
#include "decoder/pt/pt.h"
#include "decoder/vmpt-flow.h"
#include "util/array.h"
#include "util/hash.h"

/* Room for results. */
#define VMPT_FLOW_RESULTS 4096

/* Whether raw memos are worth it: they are for a while, as often as they are hit. */
#define RAW_TRIAL 4096u	     /* lookups, then hits are counted */
#define RAW_PAUSE (1u << 15) /* bytes without them, then twice as many, up to 16 times */
#define RAW_SEEN  16384u

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
	u8 compressed;	   /* RETs with a TNT bit: fewer than bits */
};

/* ---- code that changes: change.c ---- */

/* What is made of a block, a node or a path: a list, of which this is an element. */
struct link {
	u32 unit; /* of a block: a node; of a node, or of a path: a path */
	u32 next; /* 0: none */
};

/* Of a block: the lists of its one or two pages, links to its nodes. */
struct block_life {
	u32 next[2];
	u32 nodes;
	bool listed[2];
};

/* Of a path: links to paths that have it, and the memo it is of. */
struct path_life {
	u32 paths;
	u32 key; /* hash of the memo's key */
	bool raw, old;
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

/* Pages of which other versions are chosen. */
#define CHOICES 16
/* After a loss: what is known of where the flow may be. */
enum { REJOIN_NONE, REJOIN_READY, REJOIN_ACTIVE };

/* Where the flow was before a loss. */
struct anchor {
	u64 ip;
	u32 space;
	bool set;
};

#define VMPT_FLOW_ANCHORS 16

struct cursor {
	u64 at; /* offset in the stream */
	u64 last_ip;
	u64 cr3;
	u64 fup_ip;
	u32 fup_space; /* with .events: the space it is in */
	u32 handle;    /* of the node that is executed; 0: not RUNNING */
	u32 space;     /* NONE: not resolved yet */
	u8 place;      /* enum place */
	u8 exec;
	u8 pending;
	bool no_cr3;
	u8 block; /* vmpt_pt_block_after() */
	u64 tsc;  /* of the last TSC packet, with engine.timed; else 0 */
	/* Since the last PSB; for rejoin.c */
	struct anchor anchors[VMPT_FLOW_ANCHORS];
	u32 spent;	    /* steps of searches */
	u64 cut_at, cut_ip; /* where the decoder went on after lost bytes, and Last IP there */
	u8 rejoin;	    /* REJOIN_*, while .place is LOST */
	u32 compressed;	    /* RETs that were */
	u64 psb_at;	    /* after the last PSB */
	/* A PSB+ so far */
	bool psb_fup, psb_pip, psb_tsx;
	u8 psb_exec; /* 0: none */
	u64 psb_ip, psb_cr3, psb_tsc;
	/* Since the PSB */
	struct choice {
		u32 page, version;
	} choice[CHOICES];
	u8 choices;
};

/* Nodes at which the flow may be. */
#define REJOIN_NODES 1024u
/* TNT packets before the loss: places at some of them are where the search begins. */
#define REJOIN_BACK 16u
/* Bytes to the last PSB, at most. */
#define REJOIN_WINDOW (64u << 10)

struct rejoin {
	u32 node[REJOIN_NODES]; /* handles */
	u32 count, space;
	u32 bits, taken;	    /* bits that they followed, and how many were 1 */
	u32 round;		    /* of .seen */
	u64 seen[4 * REJOIN_NODES]; /* a set: round and handle */
};

/* PSB+ are mostly those that came before: what they say, by a hash of their first bytes. */
#define PSB_MEMOS      64
#define PSB_MEMO_BYTES 112

struct psb_memo {
	u64 ip, cr3, last_ip, tsc;
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
	u32 node;	 /* the last node of them; NONE: there are none */
	u32 keep;	 /* its blocks that are returned */
	u32 last;	 /* instructions of the last of these */
	u8 kind, reason; /* EVENT: whether by TIP.PGD */
};

struct engine {
	/* hot */
	struct cursor c;
	const u8 *data;
	u64 stop;      /* the loop ends here; packets end at or before it */
	u64 limit;     /* bytes up to here may be read */
	u64 until;     /* .stop is not after it */
	u64 slice_end; /* of the owner that it is now */
	/* What an execution counts: 1; while a stack is built again: 0; to take back what was
	 * decoded from a wrong start: -1. */
	u64 weight;
	struct hashes h; /* without the current node */
	struct ip_slot *ips;
	struct memo *memos;
	struct raw_memo *raws; /* the first is none */
	u32 *raw_index;	       /* by hash: indices of them; 0: free */
	struct node *nodes;
	u64 *node_hits;
	struct hashes *node_hashes;
	struct path *paths;
	u32 *log;
	u32 ip_mask, memo_mask, raw_mask;
	u32 raw_lookups, raw_hits; /* since the trial began */
	u64 raw_from;		   /* not before this offset */
	u8 raw_pauses;		   /* in a row */
	u32 log_count, log_room;
	u64 seed;
	bool hash, blocks,
		stack; /* what the loop does; of the options, and as the trace needs it */
	bool times;    /* of the options, with .blocks */

	struct returns_stack s;
	const struct vmpt_stream *stream;
	struct vmpt_follow *follow; /* is given packets that may change the owner */
	bool followed;		    /* but not those found among lost bytes */
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
	struct rejoin rejoin;
	u64 batch_from;

	/* tables that grow; see vmpt_flow_flush() */
	size_t node_count, node_room, path_count, path_room, ip_count, memo_count, raw_count,
		raw_room;
	u16 *raw_seen; /* keys that were looked up once */
	u32 *lists;    /* of nodes' blocks and of paths' units */
	size_t list_count, list_room;
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
	size_t block_count, block_room;
	struct vmpt_hash block_index;
	struct space *space;
	size_t space_count;
	struct vmpt_hash space_index;
	struct page *page;
	size_t page_count;
	u32 page_last; /* the one that was asked for last */
	struct vmpt_hash page_index;
	struct left_list left; /* with options.left */
	u8 *bytes;	       /* of blocks */
	size_t byte_count, byte_room;

	/* With code that changes (.timed): all pages are good in [.good_from, .good_to). */
	bool timed;
	bool versions; /* or a page may have several versions at a time: links are made */
	struct choice choice[CHOICES]; /* the cursor's, as pages have them */
	u8 choices;
	u64 good_from, good_to;
	u32 *ending; /* pages whose .to is known */
	size_t ending_count;
	u32 *renewed; /* pages that are being asked for again */
	size_t renewed_count;
	struct block_life *block_life;
	size_t block_life_room;
	u32 *node_paths; /* links, by node */
	size_t node_paths_room;
	struct path_life *path_life;
	size_t path_life_room;
	struct link *links; /* a table */
	size_t link_count, link_room;

	struct result *results;
	size_t result_count;
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
#define VMPT_FLOW_AHEAD 16u
/*
 * The instruction at @ip: VMPT_INSN_OK and its bytes in @bytes, or END_NO_CODE or END_BAD_CODE.
 */
int vmpt_flow_insn(struct engine *e, u32 space, u64 ip, struct vmpt_insn *insn,
		   u8 bytes[VMPT_FLOW_AHEAD]);
/* The bytes of the page at @linear as it is read first; NULL: not all of them are known. */
const u8 *vmpt_flow_page_bytes(struct engine *e, u32 space, u64 linear);
/* The page at @linear, its index; NONE: no memory. */
u32 vmpt_flow_page(struct engine *e, u32 space, u64 linear);
/* Its @nth version; NULL: there is none. */
const struct vmpt_page *vmpt_flow_version(struct engine *e, u32 page, unsigned int nth);

/* ---- change.c ---- */

/* The time for which code is asked: that of the last TSC packet, else the end. */
static inline u64 vmpt_flow_now(const struct engine *e)
{
	return e->c.tsc ? e->c.tsc : ~0ULL - 1;
}

/* The cursor's time has changed: what was made of code that is another one now is not used. */
void vmpt_flow_time_passed(struct engine *e);
static inline void vmpt_flow_time(struct engine *e)
{
	u64 now = vmpt_flow_now(e);

	if (e->timed && (now < e->good_from || now >= e->good_to))
		vmpt_flow_time_passed(e);
}

/* @answer was returned for @page, or that there is none. */
void vmpt_flow_page_answered(struct engine *e, struct page *page, const struct vmpt_page *answer);
/* Note what the new block @id, node @id, path @id is made of. 0, or -VMPT_E_NOMEM. */
int vmpt_flow_link_block(struct engine *e, u32 id);
int vmpt_flow_link_node(struct engine *e, u32 id);
int vmpt_flow_link_path(struct engine *e, u32 id);
/* The path @id is that of a memo with @key as the hash of its key. */
void vmpt_flow_link_memo(struct engine *e, u32 id, u32 key, bool raw);
/* The tables are thrown away. */
void vmpt_flow_links_clear(struct engine *e);
/* @page is read from @version first. */
void vmpt_flow_page_prefer(struct engine *e, u32 page, u8 version);

/* ---- choose.c ---- */

/* What the current node does not have. */
struct need {
	enum { NEED_BITS, NEED_TIP, NEED_IP } kind;
	u64 at;		   /* offset of the packet */
	unsigned int done; /* BITS: of a TNT packet, those that were taken */
	u64 ip;		   /* IP: of an instruction */
};

/* Whether with another version of its code it has, and is entered instead. */
bool vmpt_flow_other_code(struct engine *e, const struct need *need);
/* A PSB: nothing is chosen. */
void vmpt_flow_choices_clear(struct engine *e);
/* The versions of @page are other ones now. */
void vmpt_flow_choice_forget(struct engine *e, u32 page);
/* Go to another place of the trace, with its time and what is chosen there. */
void vmpt_flow_cursor_set(struct engine *e, const struct cursor *c);

/* ---- block.c ---- */

/* The block at @ip: *@end is 0, or END_NO_CODE or END_BAD_CODE and the result is NONE. */
u32 vmpt_flow_block_at(struct engine *e, u32 space, u64 ip, u8 *end);
/* How many instructions of it are before @ip, -1 if none begins there. */
int vmpt_flow_block_find(struct engine *e, const struct block *b, u64 ip);
/* The hash of its first @insns. */
struct hashes vmpt_flow_block_hash(struct engine *e, const struct block *b, u32 insns);
u64 vmpt_flow_pow(u64 n);

/* IPs of 16-bit and 32-bit code are of 32 bits. */
static inline u64 vmpt_flow_wrap(const struct engine *e, u32 space, u64 ip)
{
	return e->space[space].id.exec == 64 ? ip : ip & 0xffffffff;
}

/* Direct CALLs to what follows them push nothing (SDM 3 33.4.2.2). */
static inline bool vmpt_flow_pushes(const struct block *b)
{
	return b->class == VMPT_INSN_CALL_IND ||
	       (b->class == VMPT_INSN_CALL && b->target != b->next);
}

/* ---- node.c ---- */

/* The handle of the node at @ip; 0: out of memory. */
u32 vmpt_flow_node_at(struct engine *e, u32 space, u64 ip);
/* The node after @handle, which ends with a conditional branch. 0: out of memory. */
u32 vmpt_flow_child_new(struct engine *e, u32 handle, unsigned int taken);
static inline u32 vmpt_flow_child(struct engine *e, u32 handle, unsigned int taken)
{
	u32 child = e->nodes[handle >> HANDLE_SHIFT].child[taken];

	if (__builtin_expect(child && !e->nodes[child >> HANDLE_SHIFT].old, 1))
		return child;
	return vmpt_flow_child_new(e, handle, taken);
}
/* Lists are copied in steps of this many words: engine.lists has room for as many more. */
#define LISTS_AHEAD 8u
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

/* The calls of the node that is entered go on the stack. */
void vmpt_flow_push_calls(struct engine *e, const struct node *n);
/* Execution goes on at @ip, in the cursor's space. 0 or a negative error. */
int vmpt_flow_enter(struct engine *e, u64 ip);
/* The same in @space. */
int vmpt_flow_enter_in(struct engine *e, u32 space, u64 ip);
/* Block @id was left after @insns instructions @count times more. 0 or -VMPT_E_NOMEM. */
int vmpt_flow_left_add(struct left_list *list, u64 seed, u32 id, u32 insns, u64 count);
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
/* In the address space @space; NONE: the flow was not known. */
void vmpt_flow_gap(struct engine *e, u64 offset, enum vmpt_flow_reason reason, u32 space, u64 ip);
/* That of the current node, or NONE. */
static inline u32 vmpt_flow_in(const struct engine *e)
{
	return e->c.place == RUNNING && e->c.handle ? e->nodes[e->c.handle >> HANDLE_SHIFT].space
						    : NONE;
}
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
/* With .times: a packet at @at has a time. A batch ends before it, the current node is returned
 * later. */
void vmpt_flow_time_mark(struct engine *e, u64 at);
/* A batch of @kind without blocks; the current node was left. @off: of an EVENT. */
void vmpt_flow_mark(struct engine *e, u64 at, enum vmpt_flow_kind kind, bool off, u32 space,
		    u64 ip);

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
/* Nothing is recorded. Guards are left as they are: those below .low are filled. */
void vmpt_flow_track_begin(struct track *t);
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
/* A TNT packet of @count bits at @at, or the first @count of it; the oldest is the highest. */
int vmpt_flow_bits_at(struct engine *e, u64 at, u64 bits, unsigned int count);
/* RUNNING: take @count bits of the TNT packet at @at, after the first @done. */
int vmpt_flow_tnt(struct engine *e, u64 at, u64 bits, unsigned int count, unsigned int done);
/*
 * Deferred TIPs (33.4.2.3): a TNT packet may have bits for branches after the one that its next TIP
 * is for. Uncompressed RETs are not deferred. Whether there was one; it is taken.
 */
bool vmpt_flow_deferred_tip(struct engine *e);

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

/* Where one that there is not yet is to be. */
static inline struct memo *vmpt_flow_memo_slot(const struct engine *e, u32 start, u64 bytes)
{
	u32 i = vmpt_flow_memo_hash(start, bytes) & e->memo_mask;

	while (e->memos[i].start && e->memos[i].start != NONE)
		i = (i + 1) & e->memo_mask;
	return &e->memos[i];
}

/* ---- raw.c ---- */

/* Begin and end to record a raw memo of the bytes from @at on. */
void vmpt_flow_raw_begin(struct engine *e);
void vmpt_flow_raw_add(struct engine *e, u64 at, u32 size, u32 start, u64 last_ip, u64 hash);
/* Whether @hash was looked up before. */
static inline bool vmpt_flow_raw_seen(struct engine *e, u64 hash)
{
	u16 *seen = &e->raw_seen[hash % RAW_SEEN], tag = (u16)(hash / RAW_SEEN | 1);
	bool before = *seen == tag;

	*seen = tag;
	return before;
}
void vmpt_flow_raw_clear(struct engine *e);
void vmpt_flow_raw_remove(struct engine *e, struct raw_memo *m);
/* Add the hits to those of paths. */
void vmpt_flow_raw_spread(struct engine *e);
/* The table, or twice as much of it: 0, or -VMPT_E_NOMEM. */
int vmpt_flow_raw_grow(struct engine *e);
/* A unit of the path that is recorded. */
static inline void vmpt_flow_trail(struct engine *e, u32 unit)
{
	if (e->trail_count < RAW_BYTES)
		e->trail[e->trail_count++] = unit;
}

/* Both halves of a product: each bit depends on the whole key. */
static inline u64 vmpt_flow_raw_hash(const struct engine *e, u32 start, u64 last_ip, u64 b0, u64 b1)
{
	unsigned __int128 x = b0 ^ last_ip << 24 ^ e->seed;

	x *= b1 ^ start * 0x9e3779b97f4a7c15ULL ^ (e->seed << 32 | e->seed >> 32);
	return (u64)x ^ (u64)(x >> 64);
}

static inline bool vmpt_flow_raw_has(const struct raw_memo *m, u64 b0, u64 b1)
{
	return !((m->bytes[0] ^ b0) | (m->bytes[1] ^ b1));
}

static inline bool vmpt_flow_raw_is(const struct raw_memo *m, u32 start, u64 last_ip, u64 b0,
				    u64 b1)
{
	return vmpt_flow_raw_has(m, b0, b1) && m->last_ip == last_ip && m->start == start;
}

/* The memo's slot in the index, or a free one for it. */
static inline u32 *vmpt_flow_raw_slot(const struct engine *e, u64 hash, u32 start, u64 last_ip,
				      u64 b0, u64 b1)
{
	u32 i = (u32)hash & e->raw_mask;

	while (e->raw_index[i] &&
	       !vmpt_flow_raw_is(&e->raws[e->raw_index[i]], start, last_ip, b0, b1))
		i = (i + 1) & e->raw_mask;
	return &e->raw_index[i];
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

/* The slice is known to end at @end. */
static inline void vmpt_flow_slice_end(struct engine *e, u64 end)
{
	e->slice_end = end;
	e->stop = end < e->until ? end : e->until;
}

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
u64 vmpt_flow_recover(const struct engine *e, u64 *at, u64 end);

/* ---- rejoin.c ---- */

/* The flow is lost in the current node, at a packet or damage at @at. */
void vmpt_flow_anchor(struct engine *e, u64 at);
/* It is about Last IP. */
void vmpt_flow_anchor_last_ip(struct engine *e);
/* Nothing is known of where it is. */
void vmpt_flow_anchors_forget(struct engine *e);
/* TNT bits while the flow is LOST: those after which it is known where it is are taken. */
int vmpt_flow_rejoin(struct engine *e, u64 at, u64 bits, unsigned int count);
/* The tables were thrown away; the nodes were at @ips. */
int vmpt_flow_rejoin_renew(struct engine *e, const u64 *ips);
/* Code changed: places in old nodes are those at the same IPs now. */
void vmpt_flow_rejoin_changed(struct engine *e);

/* ---- count.c ---- */

/* Add the hits of nodes and paths to the blocks. */
void vmpt_flow_spread(struct engine *e);

#endif
