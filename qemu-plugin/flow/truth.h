/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Writes what was executed (model/truth-format.h), one file per vCPU.
 *
 * BEGIN and END inside a block (I/O) come before the block's word. A store at the start of each
 * instruction counts those that have begun. When something else begins, all of them have retired,
 * except the last one if execution, or an event, is at its address again: a string instruction, or
 * an access to a device that QEMU restarts. A jump or RET to itself has retired.
 */
#ifndef VMPT_QEMU_PLUGIN_FLOW_TRUTH_H
#define VMPT_QEMU_PLUGIN_FLOW_TRUTH_H

#include "arch/types.h"
#include "model/truth-format.h"

struct block;
struct block_code;
struct options;
struct truth;

/* Creates the file PREFIX.@index for vCPU @index; a FIFO must have a reader. NULL: printed why. */
struct truth *truth_open(const struct options *options, unsigned int index);
/* Writes what is buffered. Negative errno: of the first write that failed; the file is short. */
int truth_close(struct truth *truth);

/* @block begins at @ip; @progress: how many instructions of the block before it have begun. */
void truth_block(struct truth *truth, const struct block *block, u64 ip, u64 progress);
/* The state from the last reported block on, which is at @ip; written if it has changed. */
struct truth_state {
	u32 flags; /* enum truth_flag */
	u64 ctl, cr3;
	u64 ranges[2 * TRUTH_RANGES]; /* IA32_RTIT_ADDRn_A, _B */
};
void truth_state(struct truth *truth, const struct truth_state *state, u64 ip);
/* The last reported block begins at @tsc; of @state flags and cr3 are used. Written if it is news.
 */
void truth_time(struct truth *truth, const struct truth_state *state, u64 tsc);
/* An event comes at @from; @progress: as above. Then truth_event() has to come. */
void truth_stop_at(struct truth *truth, u64 progress, u64 from);
/* @state: at @from, where no block may have begun since a far transfer; NULL: none is written. */
void truth_event(struct truth *truth, const struct truth_state *state, u64 from, u64 to);
/* RSP where the last reported block, or what follows the last event, begins. */
void truth_sp(struct truth *truth, u64 sp);
void truth_begin(struct truth *truth, u64 ip);
void truth_end(struct truth *truth, u64 ip);
/* Whether the block that began last is not written yet and has @code. */
bool truth_holds(const struct truth *truth, const struct block_code *code);
/* No more blocks: of the last one, the instructions before @ip have retired. */
void truth_stop(struct truth *truth, u64 ip);

#endif
