/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* PSBs, kinds of time packets, and units that begin at a packet: PSB+ and groups (units.c). */
#ifndef VMPT_DECODER_PT_UNITS_H
#define VMPT_DECODER_PT_UNITS_H

#include "decoder/isa.h"
#include "decoder/pt/heads.h"
#include "decoder/pt/payload.h"

/* Offset of the first complete PSB in [@from, @end) of @data, or @end. (sync.c) */
u64 vmpt_psb_find(const u8 *data, u64 from, u64 end);

/* ---- time packets ---- */

/*
 * Whether a clock needs items of a kind: packets of these classes, and losses. For loops there is a
 * table of the same, with values 0 and 1.
 */
static inline bool vmpt_time_wanted(unsigned int kind)
{
	return kind < VMPT_PT_KINDS
		       ? vmpt_pt_table[kind].classes & (VMPT_PT_TIMING | VMPT_PT_TIME_BREAK)
		       : kind == VMPT_ITEM_LOSS;
}

extern const u8 vmpt_time_kinds[256];

/* ---- PSB+ and groups ---- */

/* PSB … PSBEND (33.3.7), possibly incomplete. */
struct vmpt_psb_plus {
	u64 end; /* after PSBEND; else at the packet that ended it */
	u64 cr3;
	u64 vmcs;
	struct vmpt_tscs tsc;
	unsigned int tokens; /* of its packets, without the PSB's */
	bool complete;	     /* PSBEND was found */
	bool has_pip, nr, has_vmcs, has_fup, has_exec;
};

void vmpt_psb_plus_scan(const u8 *data, u64 at, u64 end, struct vmpt_psb_plus *psb);

/* The offset after the PADs at @at. */
u64 vmpt_pads_skip(const u8 *data, u64 at, u64 end);

/* PIP, VMCS, MODE.Exec in any order, with timing packets and PADs between (Table 33-14). */
struct vmpt_group {
	u64 end;  /* at the packet that ends it: .last */
	int last; /* its kind, -1 if there is none */
	unsigned int last_size;
	u64 cr3, vmcs;
	u64 first_pip;
	struct vmpt_tscs tsc;
	unsigned int pips;
	bool nr;	  /* of the last PIP */
	bool was_nonroot; /* some PIP had NR = 1 */
	bool has_vmcs;
	bool bound; /* ends with TIP, TIP.PGE or TIP.PGD: its packets are applied together */
};

void vmpt_group_scan(const u8 *data, u64 at, u64 end, struct vmpt_group *group);

#endif
