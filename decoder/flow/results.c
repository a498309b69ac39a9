// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* What an engine has for its user: batches of units, gaps. */
#include "decoder/flow/engine.h"

void vmpt_flow_close_batch(struct engine *e, u32 keep, u32 last, bool hold)
{
	u32 from = e->result_count ? e->results[e->result_count - 1].log : 0;
	u32 id = e->c.handle >> HANDLE_SHIFT;
	u64 at = e->c.at;

	/* Nothing in a PSB+ is applied before its end, where a gap may have the PSB's offset. */
	if (e->c.pending & PENDING_PSB)
		at = e->c.psb_at - vmpt_pt_table[VMPT_PT_PSB].size;
	if (e->log_count > from)
		e->results[e->result_count++] = (struct result){
			.offset = e->batch_from,
			.end = at,
			.log = e->log_count,
			.node = id ? id : NONE,
			.keep = keep,
			.last = last,
			.kind = VMPT_FLOW_BLOCKS,
		};
	e->batch_from = at;
	if (hold && id)
		vmpt_flow_log(e, id);
}
