/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The flow decoder: from packets and memory images (vmpt-image.h) to what was executed, every block
 * of instructions, in order (docs/flow.md). Pull interface: open one stream, call vmpt_flow_next()
 * until it returns 0, then ask for totals. Counts and the ordered hash cost less than the blocks
 * themselves: without .blocks only gaps are returned.
 */
#ifndef VMPT_FLOW_H
#define VMPT_FLOW_H

#include "decoder/vmpt-image.h"

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

/* How RETs are followed (SDM 3 33.4.2.2). */
enum vmpt_flow_returns {
	/* A RET without a TIP pops a stack of 64 return addresses; each RET pops. The stack is kept
	 * only once the trace has a RET that needs it. */
	VMPT_FLOW_RETURNS_AUTO,
	VMPT_FLOW_RETURNS_FOLLOW, /* the same, with a stack from the start */
	VMPT_FLOW_RETURNS_NONE,	  /* the trace has no compressed RETs: one is impossible */
	VMPT_FLOW_RETURNS_LIBIPT, /* as libipt 2.0.5: only compressed RETs pop. For comparisons */
};

/* Parts of the decoder that change its speed alone; tests switch them off. */
#define VMPT_FLOW_NO_MEMO     0x01 /* runs of TNT packets are walked node by node */
#define VMPT_FLOW_NO_RAW_MEMO 0x02 /* bytes are always parsed */
#define VMPT_FLOW_NO_PSB_MEMO 0x04 /* PSB+ are not compared with the one before */

/* All 0 is the default. */
struct vmpt_flow_options {
	/*
	 * For the VM tracker: headless, guest_only, host_only; progress. threads: of the flow, the
	 * caller's included; they change nothing but the speed. chunk: approximate size of the
	 * segments that threads decode, which begin at PSBs; 0: 256 KiB. The others are ignored.
	 * May be NULL. Read by vmpt_flow_open() only.
	 */
	const struct vmpt_options *trace;
	/*
	 * Bytes for tables, per thread; 0: 64 MiB. Where they are not enough the tables are thrown
	 * away and rebuilt: slower, with the same result. Not in it: images, and what is
	 * returned: some hundred bytes for each block and address space, and each 16 KiB of the
	 * trace; where code changes, the bytes of each block, too.
	 */
	size_t memory;
	u32 no_packet_max; /* instructions in a row without a packet; more is a gap; 0: 65,536 */
	u8 returns;	   /* enum vmpt_flow_returns */
	u8 off;		   /* VMPT_FLOW_NO_* */
	bool blocks;	   /* return blocks */
	bool by_packet;	   /* with .blocks: a batch has one packet's blocks; slow */
	bool hash;	   /* make the ordered hash */
	bool left;	   /* count where blocks were left: vmpt_flow_left() */
	bool no_tnt; /* IA32_RTIT_CTL.DisTNT was 1 (33.3.9): no TNT packets; the flow is known from
			each TIP up to the first conditional branch */
	bool events; /* return VMPT_FLOW_EVENT: costs next to nothing */
	bool switches; /* return VMPT_FLOW_OFF and _ON: each costs some 50 ns, and no memo has them
			*/
	/*
	 * With .blocks: a packet that has a time (TSC, TMA, MTC, CYC) ends a batch, and so does a
	 * PSB. So all blocks of a batch have the time of the last such packet at or before .offset:
	 * none is between .offset and .end. Blocks that ran before such a packet, but are proven
	 * only by one after it, are in the batch after it; at a PSB+, which says how far they ran,
	 * in one before it. Costs little but where most packets are of time.
	 */
	bool times;
};

/* ---- what was executed ---- */

/* How a block ends: what its last instruction is. */
enum vmpt_flow_end {
	VMPT_FLOW_NEXT,	    /* no branch: the next block follows (a page's end), or a gap */
	VMPT_FLOW_COND,	    /* a conditional branch */
	VMPT_FLOW_JMP,	    /* direct */
	VMPT_FLOW_CALL,	    /* direct */
	VMPT_FLOW_JMP_IND,  /* indirect */
	VMPT_FLOW_CALL_IND, /* indirect */
	VMPT_FLOW_RET,	    /* near */
	VMPT_FLOW_FAR,	    /* far branches, INT n, SYSCALL, IRET, VMCALL, VMLAUNCH, ... */
	VMPT_FLOW_MOV_CR3,
};

/* Straight code: its instructions follow each other, and only the last may be a branch. */
struct vmpt_flow_block {
	u64 ip;		  /* of the first instruction */
	u64 end_ip;	  /* of the last one */
	u64 next;	  /* the address after it: the return address of a call */
	u64 target;	  /* COND, JMP, CALL: where the branch goes */
	u32 space;	  /* index of its address space */
	u16 instructions; /* how many */
	u8 end;		  /* enum vmpt_flow_end */
};

/* What a batch is. EVENT comes with .events only, OFF and ON with .switches. */
enum vmpt_flow_kind {
	VMPT_FLOW_BLOCKS,
	VMPT_FLOW_GAP,
	/*
	 * An asynchronous event (interrupt, exception, VM exit, SMI, ...) left the flow: a FUP,
	 * then TIP or TIP.PGD. What was executed before it is returned before, its handler after
	 * it. An exception that an instruction caused counts, too: that instruction was not
	 * completed.
	 */
	VMPT_FLOW_EVENT,
	/*
	 * TIP.PGD and TIP.PGE: tracing went off, by a filter or TraceEn, after the block (or event)
	 * before; it began at .ip, which is no target of the block before. A PSB+ may begin the
	 * flow, too, where the trace does or a TIP.PGE was lost. Without .switches a user sees that
	 * a block does not follow from the one before: it is not at .target or .next of a direct
	 * branch, or is at .next of a FAR or CALL_IND. After JMP_IND and RET it cannot be seen.
	 */
	VMPT_FLOW_OFF,
	VMPT_FLOW_ON,
};

/* Why the flow is not known from here on, up to the next packet that gives an IP, or TNT bits that
 * fit one place only (docs/flow.md). */
enum vmpt_flow_reason {
	VMPT_FLOW_NO_CODE,  /* no image has the code at .ip */
	VMPT_FLOW_BAD_CODE, /* the bytes at .ip are no instruction */
	/* The code at .ip does not fit the packet: other code ran, or the trace is damaged */
	VMPT_FLOW_IMPOSSIBLE,
	VMPT_FLOW_ENDLESS,  /* a loop, or over .no_packet_max instructions, without a packet */
	VMPT_FLOW_OVERFLOW, /* an OVF: the processor lost packets (33.4.2.16) */
	VMPT_FLOW_LOSS,	    /* bytes that are no packets, or that the recorder lost */
	VMPT_FLOW_NO_TNT,   /* with .no_tnt: a conditional branch at .ip */
	VMPT_FLOW_REASONS,  /* how many */
};

/* A part of the flow. */
struct vmpt_flow_batch {
	u8 kind;   /* enum vmpt_flow_kind */
	u8 reason; /* GAP: enum vmpt_flow_reason */
	/* EVENT: the packet is a TIP.PGD: the handler is not traced, the next block is where
	 * tracing went on */
	bool off;
	/*
	 * BLOCKS: the packets in [offset, end) of the stream prove them; the time of a block is
	 * between those of these two places. GAP: the packet at which the flow was lost. EVENT,
	 * OFF, ON: the TIP, TIP.PGD or TIP.PGE.
	 */
	u64 offset, end;
	/*
	 * Blocks in the order of their execution, all of their instructions but for the last one's,
	 * of which .last were executed. If that is less than it has, the next block continues there
	 * after a PSB, or an event came. Valid until the next call.
	 */
	const u32 *blocks;
	size_t count; /* of .blocks */
	u32 last;
	/* Index of the address space. GAP: that of the flow; ~0: none. EVENT, OFF: that before; ON:
	 * that after it */
	u32 space;
	/*
	 * GAP: where; 0: none. EVENT: that of the FUP, an instruction that was not executed, or not
	 * completely (a REP). OFF: the packet's, the first address that was not traced; 0: none.
	 * ON: that of the first instruction
	 */
	u64 ip;
};

struct vmpt_flow;

/* The version of this interface, for vmpt_flow_open_abi(). */
#define VMPT_FLOW_ABI                                                                         \
	VMPT_ABI_ADD(VMPT_ABI_ADD(VMPT_ABI4(struct vmpt_flow_options, struct vmpt_flow_block, \
					    struct vmpt_flow_batch, struct vmpt_flow_counts), \
				  struct vmpt_space),                                         \
		     struct vmpt_flow_left)

/*
 * Open the flow of @stream, which is PT's: -VMPT_E_UNSUPPORTED for RTIT. @code may be NULL: nothing
 * is known of the code. @stream and @code must outlive it; @options may be NULL. Returns 0,
 * -VMPT_E_INVAL or -VMPT_E_NOMEM.
 */
int vmpt_flow_open_abi(struct vmpt_flow **flow, const struct vmpt_stream *stream,
		       struct vmpt_code *code, const struct vmpt_flow_options *options, u64 abi);
#define vmpt_flow_open(flow, stream, code, options) \
	vmpt_flow_open_abi(flow, stream, code, options, VMPT_FLOW_ABI)
void vmpt_flow_close(struct vmpt_flow *flow);

/* The next batch. 1: @batch is filled, 0: the end, or a negative error. */
int vmpt_flow_next(struct vmpt_flow *flow, struct vmpt_flow_batch *batch);

/*
 * Block @id, from a batch or below vmpt_flow_blocks(). Where code changes (docs/flow.md) there may
 * be several at one IP of a space, with other bytes.
 */
void vmpt_flow_block(const struct vmpt_flow *flow, u32 id, struct vmpt_flow_block *block);
/*
 * The code of block @id, as it was decoded: its first @size bytes, or all, to @bytes. Returns their
 * number, or a negative error.
 */
int vmpt_flow_code(struct vmpt_flow *flow, u32 id, u8 *bytes, size_t size);

/*
 * ---- totals: of all batches returned so far ----
 *
 * Until the end, counts of instructions may be ahead of them: decoding is. With threads a question
 * waits until those are idle.
 */

/* What was executed, and where the flow was lost. */
struct vmpt_flow_counts {
	u64 instructions;	     /* a REP is one, whatever its count */
	u64 branches;		     /* of them: all but MOV CR3 of enum vmpt_flow_end */
	u64 calls;		     /* of the branches: near calls */
	u64 gaps[VMPT_FLOW_REASONS]; /* by enum vmpt_flow_reason */
};

/* Of the whole stream. @hash (may be NULL): the ordered hash, h * P + mix(ip) for each instruction
 * (docs/flow.md). */
void vmpt_flow_total(struct vmpt_flow *flow, struct vmpt_flow_counts *counts, u64 *hash);

/*
 * Address spaces, each once, in the order in which they were first entered. Their counts are 0
 * where memory ran out for them.
 */
u32 vmpt_flow_spaces(const struct vmpt_flow *flow);
void vmpt_flow_space(struct vmpt_flow *flow, u32 i, struct vmpt_space *space,
		     struct vmpt_flow_counts *counts);

/* Blocks: ids are below this number. */
u32 vmpt_flow_blocks(const struct vmpt_flow *flow);
/* How often block @id ran: completely, and how many instructions of it more. */
void vmpt_flow_executed(struct vmpt_flow *flow, u32 id, u64 *whole, u64 *instructions);

/* How often a block was left early. */
struct vmpt_flow_left {
	u64 count; /* how often; 0: never, after all */
	u32 block;
	u32 instructions; /* that ran: 1 and more */
};
/*
 * With .left: where blocks were left after some of their instructions, but not all: by an event,
 * at a PSB+ or a loss. The sum of .instructions * .count of a block is what vmpt_flow_executed()
 * says of it. Number @i, each block and number of instructions once, in no order; false: there is
 * none.
 */
bool vmpt_flow_left(struct vmpt_flow *flow, u32 i, struct vmpt_flow_left *left);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#endif
