/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Writes what was executed (model/truth-format.h), one file per vCPU.
 *
 * BEGIN and END that fall inside a block (I/O) stand before its word. Retired is counted by a
 * store at the start of each instruction: of those that have begun all have retired when
 * something else begins, but for the last one if execution goes on, or an event says, at it again
 * (a string instruction, an access to a device that QEMU starts anew); not so a jump or RET to
 * itself.
 */
#ifndef VMPT_QEMU_PLUGIN_FLOW_TRUTH_H
#define VMPT_QEMU_PLUGIN_FLOW_TRUTH_H

#include "arch/types.h"
#include "model/truth-format.h"

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
/* What holds from the block at @ip on, which was the last one told; written if it has changed. */
struct truth_state {
	u32 flags; /* enum truth_flag */
	u64 ctl, cr3;
};
void truth_state(struct truth *truth, const struct truth_state *state, u64 ip);
void truth_begin(struct truth *truth, u64 ip);
void truth_end(struct truth *truth, u64 ip);
/* Whether the block that began last, and is not written yet, has @code. */
bool truth_holds(const struct truth *truth, const struct block_code *code);
/* No more blocks: of the last one, what stands before @ip has retired. */
void truth_stop(struct truth *truth, u64 ip);

#endif
