// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* The planner: from a stream's regions to spans that begin at PSBs. */
#include "decoder/parallel/parallel.h"

static u64 next_region_end(const struct vmpt_planner *p)
{
	const struct vmpt_stream *t = p->stream;
	u64 end = t->size;

	if (p->gap < t->gap_count && t->gaps[p->gap].offset < end)
		end = t->gaps[p->gap].offset;
	return end < p->at ? p->at : end;
}

void vmpt_plan_start(struct vmpt_planner *p)
{
	if (p->size < VMPT_SPAN_MIN)
		p->size = VMPT_SPAN_MIN;
	if (p->size > VMPT_SPAN_MAX)
		p->size = VMPT_SPAN_MAX;
	p->region_end = next_region_end(p);
	p->at_head = true;
}

/* Go on to the next region that is not empty. False at the stream's end. */
static bool plan_region(struct vmpt_planner *p)
{
	while (p->at == p->region_end) {
		if (p->region_end >= p->stream->size)
			return false;
		p->gap++;
		p->region_end = next_region_end(p);
		p->at_head = true;
	}
	return true;
}

static void plan_head(struct vmpt_planner *p, struct vmpt_stretch *span)
{
	p->at_head = false;
	p->carry = false;
	p->no_psb = 0;
	span->gap = p->gap != 0;
	span->head = p->at;
	if (!p->headless)
		p->at = p->psb_find(p->stream->data, p->at, p->region_end);
}

/* The end of the span that starts at the planner's place. */
static u64 plan_end(struct vmpt_planner *p)
{
	u64 due, from, to, psb;

	if (p->region_end - p->at <= p->size)
		return p->region_end;
	due = p->at + p->size;
	from = due > p->no_psb ? due : p->no_psb;
	to = p->region_end - due > p->psb_window ? due + p->psb_window : p->region_end;
	psb = p->psb_find(p->stream->data, from, to);
	if (psb < to || to == p->region_end)
		return psb < to ? psb : p->region_end;
	/* One that begins before @to may end after it: it has up to 16 bytes. */
	p->no_psb = to - 15;
	p->open = true;
	return due;
}

bool vmpt_plan_next(struct vmpt_planner *p, struct vmpt_stretch *span)
{
	if (p->open || !plan_region(p))
		return false;
	span->first = p->at_head;
	if (p->at_head)
		plan_head(p, span);
	span->carry = p->carry;
	p->carry = false;
	span->start = p->at;
	span->end = plan_end(p);
	span->region_end = p->region_end;
	p->at = span->end;
	return true;
}

bool vmpt_plan_go_on(struct vmpt_planner *p, u64 at)
{
	if (!p->open)
		return false;
	p->open = false;
	p->carry = true;
	p->at = at;
	return true;
}
