// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The plan: where a stream is cut. No state outlives a PSB+ (SDM 3 33.3.7) but what it does not
 * have: it is taken for a cut only if it has what a decoder needs. What may still be different, as
 * after an OVF, is compared once both sides of the cut are decoded.
 */
#include "decoder/flow/flow.h"
#include "decoder/pt/pt.h"

/*
 * Without PIPs in the trace CR3 and owner are not known anywhere. Without a FUP PacketEn is 0, and
 * the mode is that of before, mostly.
 */
static bool says_all(const struct plan *p, const struct vmpt_psb_plus *psb)
{
	return psb->complete && (psb->has_exec || !psb->has_fup) && psb->has_pip == p->pips &&
	       psb->has_vmcs == p->vmcss && (psb->tsc.any || !p->timed);
}

/* The first PSB+ from @at on to cut at: its offset and its end; false if there is none. */
static bool find_cut(const struct plan *p, u64 *at, u64 *end)
{
	struct vmpt_psb_plus psb;

	for (; (*at = vmpt_psb_find(p->data, *at, p->end)) < p->end; (*at)++) {
		vmpt_psb_plus_scan(p->data, *at, p->end, &psb);
		*end = psb.end;
		if (says_all(p, &psb))
			return true;
	}
	return false;
}

/* What a PSB+ of this trace has: as the first one that is complete. */
void vmpt_flow_plan_start(struct plan *p)
{
	struct vmpt_psb_plus psb;
	u64 at = 0;

	for (; (at = vmpt_psb_find(p->data, at, p->end)) < p->end; at++) {
		vmpt_psb_plus_scan(p->data, at, p->end, &psb);
		p->pips |= psb.has_pip;
		p->vmcss |= psb.has_vmcs;
		if (psb.complete)
			break;
	}
}

/*
 * The first segment is short: the others begin with what it shows of the trace. Without cuts there
 * is one, up to the end.
 */
bool vmpt_flow_plan_next(struct plan *p, struct segment *s)
{
	u64 size = p->at ? p->size : p->size / 4, at = p->at, end;

	if (p->done)
		return false;
	*s = (struct segment){ .at = p->at, .entry = p->entry, .end = p->end };
	at = p->end - p->at > size ? p->at + size + 1 : p->end;
	p->done = !p->size || !find_cut(p, &at, &end);
	if (p->done)
		return true;
	s->cut = true;
	s->end = end;
	p->at = at;
	p->entry = end;
	return true;
}
