/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A translated block: what the flow needs to know when it executes. The addresses are those at
 * translation. QEMU shares a block among all virtual addresses of the same code, so it may run
 * elsewhere (delta in struct vcpu).
 */
#ifndef VMPT_QEMU_PLUGIN_FLOW_BLOCK_H
#define VMPT_QEMU_PLUGIN_FLOW_BLOCK_H

#include "qemu-plugin/flow/insn.h"

/* Linear address, in the segment that RESET loads (SDM 3 11.1.4). */
#define RESET_VECTOR 0xfffffff0ULL

struct plugin;
struct block;

/* An instruction with a callback of its own. */
struct site {
	struct block *block;
	u64 vaddr;
	u8 hook; /* enum insn_hook */
	u8 size;
	u16 rest; /* instructions after it in the block */
	u8 bytes[15];
	struct site *next; /* of the same block */
};

/* What a truth file needs of a block. */
struct block_code {
	u32 count, size;
	u8 *lengths, *bytes;
	struct block_name {
		u32 id; /* 0: not defined yet … */
		u64 ip; /* … or for this address */
	} name[];	/* one per possible vCPU */
};

/* What the code stream needs of a block: for each page that it is in … */
struct block_part {
	u64 epoch;    /* … the state of that page that had these bytes; 0: none yet */
	u64 physical; /* of the first byte */
	u16 size;     /* 0: there is no such part */
};

struct block {
	struct plugin *plugin;
	u64 start, end; /* vaddr of its first instruction, and after its last */
	u64 last;	/* vaddr of its last instruction … */
	u64 target;	/* … and of its target, if it is a direct branch */
	u8 kind;	/* its enum insn_kind */
	bool halts;	/* it is HLT or MWAIT */
	bool moves_sp;	/* for truth-sp=: after the block RSP is not what its pushes say */
	/*
	 * The last instruction is a direct branch out of the block: the address of the next block
	 * shows that it has executed. Other last instructions set hot.armed.
	 */
	bool shows;
	bool whole;  /* it has everything the flow needs, not just its sites */
	bool counts; /* it counts its instructions and branches … */
	u8 level;    /* … in this element of hot.counts */
	struct site *sites;
	struct block_code *code;   /* with a truth file */
	struct block_part part[2]; /* with a code stream … */
	u8 *bytes;		   /* … and of both parts */
	struct block *next;	   /* in the plugin's list */
};

#endif
