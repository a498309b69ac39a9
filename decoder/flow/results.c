// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* What an engine has for its user: batches of units, gaps, events. */
#include "decoder/flow/engine.h"

/* The first unit that no result has closed. */
static u32 open_from(const struct engine *e)
{
	return e->result_count ? e->results[e->result_count - 1].log : 0;
}

void vmpt_flow_close_batch(struct engine *e, u32 keep, u32 last, bool hold)
{
	u32 from = open_from(e);
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

void vmpt_flow_time_mark(struct engine *e, u64 at)
{
	u32 from = open_from(e), id = e->c.handle >> HANDLE_SHIFT;

	if (e->quiet)
		return;
	/* Mostly the current node only, which is returned later. */
	if (e->log_count > from + 1 || (e->log_count > from && (!id || e->log[from] != id))) {
		e->results[e->result_count++] = (struct result){
			.offset = e->batch_from,
			.end = at,
			.log = e->log_count,
			.node = id ? id : NONE,
			.kind = VMPT_FLOW_BLOCKS,
		};
		if (id)
			vmpt_flow_log(e, id);
	}
	e->batch_from = at;
}

void vmpt_flow_mark(struct engine *e, u64 at, enum vmpt_flow_kind kind, bool off, u32 space, u64 ip)
{
	if (e->quiet)
		return;
	if (e->blocks)
		vmpt_flow_close_batch(e, 0, 0, false);
	e->results[e->result_count++] = (struct result){
		.offset = at,
		.end = at,
		.ip = ip,
		.space = space,
		.log = e->log_count,
		.node = NONE,
		.kind = (u8)kind,
		.reason = off,
	};
}
