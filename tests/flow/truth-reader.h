/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Reads a truth file (model/truth-format.h) as a stream: from a file, a FIFO or
 * stdin. Memory grows with the number of blocks that are defined, not with the file.
 */
#ifndef VMPT_TESTS_TRUTH_READER_H
#define VMPT_TESTS_TRUTH_READER_H

#include "arch/types.h"
#include "model/truth-format.h"

/* A block of code at the time of its definition. */
struct truth_block {
	struct truth_block *retired; /* internal to the reader */
	u64 ip;
	u64 retired_at;
	u64 serial; /* no other definition of the file has it; not 0 */
	u64 runs;   /* items that it was in, including this one */
	u32 insns;
	u32 size;
	const u8 *code; /* size bytes */
	u8 lengths[];	/* insns of them, then the code */
};

enum truth_kind {
	TRUTH_NOTHING, /* before the first item */
	TRUTH_RUN_BLOCK,
	TRUTH_RUN_EVENT,
	TRUTH_RUN_BEGIN,
	TRUTH_RUN_END,
	TRUTH_RUN_STATE, /* internal to the reader, not an item … */
	TRUTH_RUN_RANGE, /* … as are these */
	TRUTH_RUN_TIME,
	TRUTH_RUN_SP,
	TRUTH_END_OF_FILE,
};

struct truth_item {
	enum truth_kind kind;
	const struct truth_block *block;
	u32 insns; /* of the block that retired */
	u32 flags; /* of the block: those of truth_now, and its cr3 */
	u64 cr3;
	u64 from, to; /* of an event; BEGIN and END have @from */
	u64 sp;	      /* RSP where the block begins, or before the event, if the file has it: … */
	bool has_sp;  /* … a SP came since the one before. Not with .traced_only */
};

/* The last STATE, or of TIME flags, tsc and cr3. */
struct truth_now {
	u32 flags; /* TRUTH_CPL … */
	u64 ip, ctl, cr3, eptp;
	u64 tsc;
	u64 sp;
	bool has_sp;
};

#define TRUTH_BUFFER 65536 /* words */
#define TRUTH_HELD   4

struct truth_reader {
	int fd;
	u32 *words;	       /* TRUTH_BUFFER */
	size_t at, end, bytes; /* words; bytes: of an incomplete word, after end */
	u64 offset;	       /* of words[0] in the file, bytes */
	u64 items, blocks;     /* read, defined */
	struct truth_block **table;
	size_t table_size;
	struct truth_block *retired;
	struct truth_now now;
	/*
	 * Set after open(): return only code executed while TraceEn is 1, and OS or User for its
	 * CPL, and after branches and events to where the IP filter lets it, until one to a
	 * TraceStop range. Where that begins and ends within a run, BEGIN and END are returned. The
	 * CR3 filter is used only if cr3_match is set. RTIT_CTL has these bits at the places of
	 * IA32_RTIT_CTL, except TraceActive.
	 */
	bool traced_only;
	u64 trace_en;		/* bits of CTL: TraceEn is 1 if all are; 0: IA32_RTIT_CTL's */
	u64 cr3_match;		/* including bits 11:5; 0: ignore the CR3 filter */
	bool is_run, is_traced; /* a run is open; it is traced */
	bool stopped, filtered; /* in a TraceStop range; out of the IP filter */
	u64 was_enabled;	/* TraceEn of the last STATE */
	u64 range[TRUTH_RANGES][2];
	u64 block_ip, follows; /* the last block: its IP; where it leads without a branch, 0: an
				  event came */
	bool has_event;
	struct truth_item event;	    /* not returned yet: what follows decides */
	struct truth_item held[TRUTH_HELD]; /* to be returned next */
	unsigned int holds;
	char error[128]; /* the error in the file, or "" */
};

/* @path: "-" is stdin. False: see error. */
bool truth_reader_open(struct truth_reader *r, const char *path);
/*
 * The next item; the end of the file is one. False: error has the reason and the place. An item's
 * block stays valid until the second call after it.
 */
bool truth_reader_next(struct truth_reader *r, struct truth_item *item);
void truth_reader_close(struct truth_reader *r);

#endif
