// SPDX-License-Identifier: GPL-2.0-only OR MIT
#include <stdio.h>
#include <string.h>

#include "tests/rtit/flow-walk.h"

/* ---- TNT ---- */

/* @byte as in a packet or RTIT_TNT_BUFF: the highest 1 is a mark. */
static bool bits(struct flow *f, u64 byte)
{
	unsigned int n = VMPT_RTIT_TNT_FULL;

	if (f->state == OFF && byte > 1)
		return rtit_walk_fail(f, "a TNT where packets are disabled");
	while (n && !(byte >> n & 1))
		n--;
	while (n-- && (f->state == ON || f->state == DOUBT)) {
		f->state = ON;
		f->fresh = false;
		f->silent = 0;
		if (!rtit_walk_bit(f, byte >> n & 1))
			return false;
	}
	return true;
}

/* TNT_BUFF as read by software before @offset. */
static bool tnt_buff(struct flow *f, u64 offset)
{
	const struct rtit_flow_options *o = f->options;

	while (f->tnt < o->tnts && o->tnt[f->tnt].offset <= offset) {
		u8 value = o->tnt[f->tnt++].value;

		if ((f->state == ON || f->state == DOUBT) && !bits(f, value))
			return false;
	}
	return true;
}

/* ---- an end without a packet ---- */

/* Packets were disabled without a packet: the first of two walks only probes. */
static bool quiet(struct flow *f)
{
	struct flow saved = *f;
	bool found;

	bool known = f->stopping ? f->options->regs && !f->fresh : true;

	if (f->state != ON) {
		f->stopping = false;
		f->state = OFF;
		return true;
	}
	if (known && !f->options->in_order) {
		f->probe = true;
		found = rtit_walk_to_end(f);
		*f = saved;
		if (found && !rtit_walk_to_end(f))
			return false;
	}
	f->stopping = false;
	f->state = OFF;
	return rtit_walk_report_at(f, RTIT_FLOW_QUIET, f->ip, 0);
}

/* ---- TIP and FUPs ---- */

static bool has_lip(const struct flow *f)
{
	return !(f->pkt.aux & VMPT_RTIT_AUX_NO_LIP);
}

static bool far_target(struct flow *f, u64 lip)
{
	f->far = false;
	f->state = ON;
	rtit_walk_arrive(f, lip, true);
	return rtit_walk_report_at(f, RTIT_FLOW_FAR, f->far_lip, lip);
}

static bool tip(struct flow *f, u64 lip)
{
	if (f->left) {
		f->left = false;
		return rtit_walk_report_at(f, RTIT_FLOW_LEFT, 0, lip);
	}
	if (f->far)
		return far_target(f, lip);
	if (f->state == LOST) {
		f->state = DOUBT;
		rtit_walk_arrive(f, lip, true);
		f->from_unknown = true;
		return true;
	}
	if (f->state == OFF)
		return rtit_walk_fail(f, "a TIP where packets are disabled");
	f->state = ON;
	return rtit_walk_tip(f, lip);
}

static bool far_source(struct flow *f, u64 lip)
{
	char got[64];

	f->far = true;
	f->far_lip = lip;
	if (f->state == LOST)
		return true;
	if (f->state == OFF)
		return rtit_walk_fail(f, "a FUP.FAR where packets are disabled");
	f->state = ON;
	snprintf(got, sizeof(got), "a FUP.FAR of %#llx", (unsigned long long)lip);
	return rtit_walk_to(f, lip, false, got);
}

/*
 * No packet shows that packets are still enabled: tracing may have been switched off silently and
 * on again, which a PSB shows, or FilterEn was 0 after a FUP.BuffOvf.
 */
static bool may_be_off(const struct flow *f)
{
	return f->state == DOUBT || (f->state == ON && (f->psb || f->stopping));
}

/* Whether the code can reach a FUP.PGD with @lip. */
static bool reaches(struct flow *f, u64 lip)
{
	struct flow saved = *f;
	bool found;

	if (f->options->in_order)
		return true;
	f->probe = true;
	found = !f->stopping && rtit_walk_to(f, lip, true, "") && !f->over_wrmsr;
	*f = saved;
	return found;
}

static bool disable(struct flow *f, u64 lip)
{
	enum state was = f->state;
	char got[64];

	snprintf(got, sizeof(got), "a FUP.PGD of %#llx", (unsigned long long)lip);
	if (was == OFF)
		return rtit_walk_erratum(f, 2);
	if (may_be_off(f) && !reaches(f, lip))
		return quiet(f) && rtit_walk_erratum(f, 2);
	f->state = OFF;
	f->left = true;
	if (was == LOST)
		return true;
	if (!rtit_walk_to(f, lip, true, got))
		return false;
	return rtit_walk_report_at(f, RTIT_FLOW_DISABLED, lip, 0);
}

static bool enable(struct flow *f, u64 lip)
{
	if (!quiet(f))
		return false;
	f->state = ON;
	rtit_walk_arrive(f, lip, true);
	f->stop_hit = false;
	return rtit_walk_report_at(f, RTIT_FLOW_ENABLED, 0, lip);
}

/* The packet's LIP is compressed against one before the first PSB. */
static bool no_lip(struct flow *f, unsigned int kind)
{
	if (!f->options->middle)
		return rtit_walk_fail(f, "%s is compressed, but no LIP was before it",
				      vmpt_rtit_name(kind));
	f->far = f->left = false;
	if (kind == VMPT_RTIT_PGD && f->state == LOST)
		return disable(f, 0);
	return rtit_walk_lose(f, true);
}

static bool overflow(struct flow *f, u64 lip)
{
	/* FilterEn may be 0, even in a range: 2.1.3 "usually correct". */
	if (f->options->overflow_nlip)
		f->state = LOST;
	else
		f->state = f->options->regs && (f->options->regs->events & 7) == VMPT_RTIT_EVENT_ON
				   ? ON
				   : DOUBT;
	f->call_valid = false;
	f->stopping = false;
	f->far = false;
	rtit_walk_arrive(f, lip, true);
	f->stop_hit = false;
	return rtit_walk_report_at(f, RTIT_FLOW_OVERFLOW, 0, lip);
}

/* ---- the rest ---- */

/* A PIP also comes where FilterEn is 0. */
static bool paging(struct flow *f)
{
	struct rtit_flow_event event = { .kind = RTIT_FLOW_PAGING,
					 .cr3 = f->pkt.payload & 0xffffffffffULL,
					 .paging = f->pkt.payload >> 40 & 1 };
	struct flow saved = *f;
	bool found = true;

	if (f->state == ON && may_be_off(f) && !f->options->in_order) {
		f->probe = true;
		found = !f->stopping && rtit_walk_to_paging(f) && !f->over_wrmsr;
		*f = saved;
	}
	if (!found && !quiet(f))
		return false;
	return (f->state != ON || rtit_walk_to_paging(f)) && rtit_walk_report(f, &event);
}

static bool stop(struct flow *f)
{
	f->stopping |= f->state == ON || f->state == DOUBT;
	return rtit_walk_report_at(f, RTIT_FLOW_STOP, 0, 0);
}

static bool take(struct flow *f, unsigned int kind)
{
	u64 lip = f->pkt.payload;

	if (vmpt_rtit_table[kind].classes & VMPT_RTIT_HAS_LIP && !has_lip(f))
		return no_lip(f, kind);
	switch (kind) {
	case VMPT_RTIT_TNT:
		return bits(f, lip);
	case VMPT_RTIT_TIP:
		return tip(f, lip);
	case VMPT_RTIT_FAR:
		return far_source(f, lip);
	case VMPT_RTIT_PGE:
		return enable(f, lip);
	case VMPT_RTIT_PGD:
		return disable(f, lip);
	case VMPT_RTIT_BUFF_OVF:
		return overflow(f, lip);
	case VMPT_RTIT_TRACESTOP:
		return stop(f);
	default:
		return paging(f);
	}
}

static bool packet(struct flow *f, unsigned int kind)
{
	f->silent = 0;
	f->psb |= kind == VMPT_RTIT_PSB;
	if (f->pkt.aux & VMPT_RTIT_AUX_IGNORE && VMPT_RTIT_AUX_ERRATUM(f->pkt.aux))
		return rtit_walk_erratum(f, VMPT_RTIT_AUX_ERRATUM(f->pkt.aux));
	if (kind == VMPT_RTIT_PSB || kind == VMPT_RTIT_PCC || kind == VMPT_RTIT_MTC ||
	    kind == VMPT_RTIT_STS)
		return true;
	f->result->flows++;
	/* An overflow may have dropped its TIP, and by E4 a TraceSTOP may come in it. */
	if (f->far && kind != VMPT_RTIT_TIP && kind != VMPT_RTIT_BUFF_OVF &&
	    kind != VMPT_RTIT_TRACESTOP)
		return rtit_walk_fail(f, "after a FUP.FAR comes %s, not a TIP",
				      vmpt_rtit_name(kind));
	if (kind != VMPT_RTIT_TIP)
		f->left = false;
	if (!take(f, kind))
		return false;
	f->fresh = kind == VMPT_RTIT_BUFF_OVF || (f->fresh && kind == VMPT_RTIT_TRACESTOP);
	f->psb &= kind == VMPT_RTIT_TNT || kind == VMPT_RTIT_TRACESTOP;
	return true;
}

static bool run(struct flow *f)
{
	int ret;

	while ((ret = rtit_packets_next(&f->packets, &f->pkt)) > 0) {
		f->result->packets++;
		if (f->pkt.kind < VMPT_ITEM_RTIT || f->pkt.kind >= VMPT_ITEM_RTIT_CYC)
			return rtit_walk_fail(f, "bytes that are not a packet");
		if (!tnt_buff(f, f->pkt.offset) || !packet(f, f->pkt.kind - VMPT_ITEM_RTIT))
			return false;
	}
	if (ret < 0) {
		f->pkt.offset += f->pkt.size;
		return rtit_walk_fail(f, "%s", vmpt_strerror(ret));
	}
	return tnt_buff(f, ~0ULL) && (!f->stopping || quiet(f));
}

bool rtit_flow_run(const u8 *trace, size_t size, const struct rtit_flow_options *options,
		   const struct rtit_flow_ops *ops, struct rtit_flow_result *result)
{
	struct flow f = { .options = options, .ops = ops, .result = result };
	bool done;
	int ret;

	memset(result, 0, sizeof(*result));
	f.state = options->middle ? LOST : OFF;
	while (f.tnt < options->tnts && options->tnt[f.tnt].offset <= options->from)
		f.tnt++;
	ret = rtit_packets_open(&f.packets, trace, size, rtit_psb_find(trace, size, options->from),
				options->cycle_acc);
	if (ret < 0)
		return rtit_walk_fail(&f, "%s", vmpt_strerror(ret));
	done = run(&f);
	rtit_packets_close(&f.packets);
	return done;
}
