/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What was executed, independent of all packets: the file that tests compare a decoded trace
 * with. One file per vCPU, little-endian 32-bit words, to be read as a stream:
 *
 *	"VMPT" "TRU1"			the beginning, 8 bytes
 *	ID (< 0xf0000000)		block ID was executed, all of its instructions retired
 *	DEFINE ID IP.lo IP.hi COUNT SIZE lengths bytes
 *					block ID: COUNT instructions from linear address IP on.
 *					COUNT lengths, a byte each, then the SIZE bytes of their
 *					code; both together padded with 0 to a whole word. An ID
 *					may be defined again: the new meaning holds from there on
 *	PART ID N			of block ID only the first N instructions retired
 *	EVENT FROM.lo FROM.hi TO.lo TO.hi
 *					an interrupt or exception was delivered: the instruction
 *					at linear address FROM has not retired, execution went on
 *					at TO
 *	BEGIN IP.lo IP.hi		a run begins (host view: VM entry)
 *	END IP.lo IP.hi			and ends; the instruction at IP has not retired
 *
 * Each iteration of a REP instruction may come as a block of its own. A block word is written
 * when it is known how far the block came: when the next one begins or an event comes; BEGIN
 * and END that fall inside a block (I/O) stand before its word. Retired is counted by a store at
 * the start of each instruction: of those that have begun all have retired when something else
 * begins, but for the last one if execution goes on, or an event says, at it again (a string
 * instruction, an access to a device that QEMU starts anew); not so a jump or RET to itself.
 * "From", "to" and IP are linear addresses at run time.
 */
#ifndef VMPT_QEMU_PLUGIN_TRUTH_H
#define VMPT_QEMU_PLUGIN_TRUTH_H

#include "arch/types.h"

#define TRUTH_MAGIC "VMPTTRU1"

enum truth_word {
	TRUTH_DEFINE = 0xf0000001,
	TRUTH_PART,
	TRUTH_EVENT,
	TRUTH_BEGIN,
	TRUTH_END,
};

struct block;
struct block_code;
struct truth;

/* Of vCPU @index: file PREFIX.@index. NULL: printed why. */
struct truth *truth_open(const char *prefix, unsigned int index);
/* Writes what is buffered. Negative errno: the first failure of a write; the file is short. */
int truth_close(struct truth *truth);

/* Block @block at @ip begins; @progress: of the block before it, how many instructions began. */
void truth_block(struct truth *truth, const struct block *block, u64 ip, u64 progress);
void truth_event(struct truth *truth, u64 progress, u64 from, u64 to);
void truth_begin(struct truth *truth, u64 ip);
void truth_end(struct truth *truth, u64 ip);
/* Whether the block that began last, and is not written yet, has @code. */
bool truth_holds(const struct truth *truth, const struct block_code *code);
/* No more blocks: of the last one, what stands before @ip has retired. */
void truth_stop(struct truth *truth, u64 ip);

#endif
