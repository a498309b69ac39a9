/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A translated block, as the flow needs it when it executes. Its addresses are those it was
 * translated at: QEMU shares a block among all virtual addresses of the same code, so that it
 * may run elsewhere (struct vcpu's delta).
 */
#ifndef VMPT_QEMU_PLUGIN_FLOW_BLOCK_H
#define VMPT_QEMU_PLUGIN_FLOW_BLOCK_H

#include "qemu-plugin/flow/insn.h"

/* Linear, in the segment that RESET loads (SDM 3 11.1.4). */
#define RESET_VECTOR 0xfffffff0ULL

struct plugin;
struct block;

/* An instruction that a view stops at. */
struct site {
	struct block *block;
	u64 vaddr;
	u8 hook; /* enum insn_hook */
	u8 size;
	u8 bytes[15];
	struct site *next; /* of the same block */
};

/* What truth files say of a block. */
struct block_code {
	u32 count, size;
	u8 *lengths, *bytes;
	struct block_name {
		u32 id; /* 0: not defined yet … */
		u64 ip; /* … or for this address */
	} name[];	/* one per vCPU that there may be */
};

struct block {
	struct plugin *plugin;
	u64 start, end; /* vaddr of its first instruction, behind its last */
	u64 last;	/* vaddr of its last instruction … */
	u64 target;	/* … and where that goes, if it is a direct branch and taken */
	u8 kind;	/* enum insn_kind of it */
	bool halts;	/* it is HLT or MWAIT */
	/*
	 * It is a direct branch out of the block: that it has executed shows in where execution
	 * goes on. Other ends arm themselves.
	 */
	bool shows;
	bool whole; /* it has all that the flow needs; else its sites only */
	struct site *sites;
	struct block_code *code; /* with a truth file */
	struct block *next;	 /* all of a plugin's, to be freed */
};

#endif
