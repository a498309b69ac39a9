/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Reads a truth file (model/truth-format.h) as a stream: from a file, a FIFO or
 * stdin. Memory grows with the number of blocks that are defined, not with the file.
 */
#ifndef VMPT_TESTS_TRUTH_READER_H
#define VMPT_TESTS_TRUTH_READER_H

#include "arch/types.h"

/* A block of code as it was when it was defined. */
struct truth_block {
	struct truth_block *retired; /* the reader's */
	u64 ip;
	u64 retired_at;
	u64 runs; /* items that it was in, this one too */
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
	TRUTH_RUN_STATE, /* the reader's: it is no item */
	TRUTH_END_OF_FILE,
};

struct truth_item {
	enum truth_kind kind;
	const struct truth_block *block;
	u32 insns;    /* of the block that retired */
	u64 from, to; /* of an event; BEGIN and END have @from */
};

/* What the last STATE said. */
struct truth_now {
	u32 flags; /* TRUTH_CPL … */
	u64 ip, ctl, cr3, eptp;
};

#define TRUTH_BUFFER 65536 /* words */

struct truth_reader {
	int fd;
	u32 *words;	       /* TRUTH_BUFFER */
	size_t at, end, bytes; /* words; bytes: of a word that is not whole yet, behind end */
	u64 offset;	       /* of words[0] in the file, bytes */
	u64 items, blocks;     /* read, defined */
	struct truth_block **table;
	size_t table_size;
	struct truth_block *retired;
	struct truth_now now;
	/*
	 * Set behind open(): only what is executed while TraceEn is 1 and OS or User, whichever it
	 * takes, too. Where that begins and ends within a run, BEGIN and END stand. IP filter is
	 * not looked at, CR3 filter only if cr3_match is set. RTIT_CTL has these bits where
	 * IA32_RTIT_CTL has them, but for TraceActive.
	 */
	bool traced_only;
	u64 trace_en;		/* bits of CTL, all of them 1: TraceEn is; 0: IA32_RTIT_CTL's */
	u64 cr3_match;		/* bits 11:5 too; 0: CR3 filter is not looked at */
	bool is_run, is_traced; /* a run is open; it is traced */
	char error[128];	/* what is wrong with the file, "" */
};

/* @path: "-" is stdin. False: error says why. */
bool truth_reader_open(struct truth_reader *r, const char *path);
/*
 * The next item; the end of the file is one. False: error says why and where. An item's
 * block stays valid until the second call behind it.
 */
bool truth_reader_next(struct truth_reader *r, struct truth_item *item);
void truth_reader_close(struct truth_reader *r);

#endif
