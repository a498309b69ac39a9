/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* PSB+ (SDM 3 33.3.7), and what they and other packets set. */
#ifndef VMPT_FLOW_PSB_H
#define VMPT_FLOW_PSB_H

#include "decoder/flow/engine.h"

/* CR3 and mode of what follows: its address space. */
static inline void vmpt_flow_set_cr3(struct engine *e, u64 cr3)
{
	if (e->c.no_cr3 || e->c.cr3 != cr3)
		e->c.space = NONE;
	e->c.no_cr3 = false;
	e->c.cr3 = cr3;
}

static inline void vmpt_flow_set_exec(struct engine *e, u8 exec)
{
	if (e->c.exec != exec)
		e->c.space = NONE;
	e->c.exec = exec;
}

/* A TSC packet; code that changes is that of @tsc from here on. */
void vmpt_flow_tsc(struct engine *e, u64 tsc);
/* A PSB begins a PSB+, at its end in the stream. */
void vmpt_flow_psb(struct engine *e);
/* The end of a PSB+; not @complete: its PSBEND is missing. 0 or a negative error. */
int vmpt_flow_psbend(struct engine *e, bool complete);

/* The size of the PSB+ at @at if it is one that came before, which is taken; else 0. */
u32 vmpt_flow_psb_known(struct engine *e, u64 at);
/* Whether such a PSB+ changes nothing: PacketEn is and stays 0. */
bool vmpt_flow_psb_idle(struct engine *e);
/* Skip those that repeat the one at @at, with their PADs. */
void vmpt_flow_psb_skip(struct engine *e, u64 at);
/* Keep the PSB+ that ends at @end for psb_known(). */
void vmpt_flow_psb_keep(struct engine *e, u64 end);

#endif
