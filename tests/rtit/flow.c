// SPDX-License-Identifier: GPL-2.0-only OR MIT
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "tests/rtit/flow.h"
#include "tests/rtit/packets.h"

/* More instructions than this without a packet that they need are a loop that never ends. */
#define SILENT_MAX 1000000u

enum state {
	OFF,   /* PacketEn is 0 */
	ON,    /* PacketEn is 1, execution is at ip */
	DOUBT, /* at ip; whether PacketEn is 1 the next packet tells */
	LOST,
};

struct flow {
	const struct rtit_flow_options *options;
	const struct rtit_flow_ops *ops;
	struct rtit_flow_result *result;
	struct rtit_packets packets;
	struct vmpt_packet pkt;
	size_t tnt; /* of the options' that come next */

	enum state state;
	u64 ip;
	struct rtit_insn insn; /* at ip, if fetched */
	u64 silent;	       /* instructions since a packet */
	bool call_valid;
	u64 call_nlip;
	bool branched; /* a near branch led to ip … */
	u64 behind;    /* … which had this NLIP */
	bool stop_hit; /* ip is where TraceStop strikes, as far as it is known */
	bool stopping; /* TraceStop: no more but what TNT_BUFF has */
	bool far;      /* FUP.FAR came, its TIP is next */
	u64 far_lip;
	bool left;		/* FUP.PGD came, a far transfer's TIP may be next */
	bool fresh;		/* FUP.BuffOvf came, and no packet of the flow since */
	bool psb;		/* one came, and no FUP or TIP since */
	bool probe;		/* instructions are not told */
	bool wrmsr, over_wrmsr; /* over one, and further */
	bool ended;		/* by one of ops */
};

/* ---- what is told ---- */

static bool fail(struct flow *f, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

static bool fail(struct flow *f, const char *fmt, ...)
{
	char *text = f->result->error;
	size_t size = sizeof(f->result->error);
	va_list args;
	int n;

	if (*text || f->probe || f->ended)
		return false;
	n = snprintf(text, size, "offset %#llx, at %#llx: ", (unsigned long long)f->pkt.offset,
		     (unsigned long long)rtit_canonical(f->ip));
	va_start(args, fmt);
	vsnprintf(text + n, size - (size_t)n, fmt, args);
	va_end(args);
	return false;
}

static bool tell(struct flow *f, struct rtit_flow_event *event)
{
	if (f->probe)
		return true;
	event->offset = f->pkt.offset;
	event->from = rtit_canonical(event->from);
	event->to = rtit_canonical(event->to);
	f->result->events[event->kind]++;
	if (!f->ops->event || f->ops->event(f->ops->opaque, event))
		return true;
	f->ended = true;
	return false;
}

static bool tell_at(struct flow *f, unsigned int kind, u64 from, u64 to)
{
	struct rtit_flow_event event = { .kind = (u8)kind, .from = from, .to = to };

	return tell(f, &event);
}

static bool erratum(struct flow *f, unsigned int number)
{
	struct rtit_flow_event event = { .kind = RTIT_FLOW_ERRATUM, .number = number };

	return tell(f, &event);
}

static bool lose(struct flow *f, const char *why)
{
	struct rtit_flow_event event = { .kind = RTIT_FLOW_LOST, .from = f->ip, .why = why };

	f->state = LOST;
	f->call_valid = false;
	return tell(f, &event);
}

/* ---- ranges, as far as the options know them (3.3.5) ---- */

static bool in_event(const struct vmpt_rtit_regs *regs, u64 id, u64 lip)
{
	switch (id) {
	case VMPT_RTIT_EVENT_RANGE0:
	case VMPT_RTIT_EVENT_RANGE1:
		return lip >= regs->lip[id] && lip < regs->lip[id + 2];
	case VMPT_RTIT_EVENT_RANGES:
		return in_event(regs, VMPT_RTIT_EVENT_RANGE0, lip) ||
		       in_event(regs, VMPT_RTIT_EVENT_RANGE1, lip);
	default:
		return id == VMPT_RTIT_EVENT_ON;
	}
}

static bool is_base(const struct vmpt_rtit_regs *regs, u64 id, u64 lip)
{
	return in_event(regs, id, lip) && ((id != VMPT_RTIT_EVENT_RANGE1 && lip == regs->lip[0]) ||
					   (id != VMPT_RTIT_EVENT_RANGE0 && lip == regs->lip[1]));
}

/* Whether a near branch to @lip, from where packets are enabled, leaves the filter's region. */
static bool leaves(const struct flow *f, u64 lip)
{
	const struct vmpt_rtit_regs *regs = f->options->regs;

	return !regs || !in_event(regs, regs->events & 7, lip);
}

/* Execution goes on at @ip; @branch: a taken branch or an event led there. */
static void arrive(struct flow *f, u64 ip, bool branch)
{
	const struct vmpt_rtit_regs *regs = f->options->regs;

	f->ip = ip & VMPT_RTIT_LIP_MASK;
	f->branched = false;
	f->stop_hit = false;
	if (regs) {
		u64 id = regs->events >> VMPT_RTIT_EVENTS_STOP_SHIFT & 7;

		f->stop_hit = branch ? in_event(regs, id, f->ip) : is_base(regs, id, f->ip);
	}
}

/* ---- instructions ---- */

static u64 next_lip(const struct flow *f)
{
	return (f->ip + f->insn.len) & VMPT_RTIT_LIP_MASK;
}

static bool fetch(struct flow *f)
{
	if (f->silent++ > SILENT_MAX)
		return fail(f, "a loop that makes no packet");
	if (f->ops->insn(f->ops->opaque, rtit_canonical(f->ip), &f->insn))
		return true;
	return fail(f, "no code");
}

/* The instruction was executed. */
static bool executed(struct flow *f)
{
	if (f->insn.kind == RTIT_INSN_CALL || f->insn.kind == RTIT_INSN_CALL_INDIRECT) {
		f->call_valid = true;
		f->call_nlip = next_lip(f);
	}
	if (f->probe) {
		f->over_wrmsr |= f->wrmsr;
		f->wrmsr = f->insn.kind == RTIT_INSN_WRMSR;
		return true;
	}
	f->result->insns++;
	if (f->ops->executed(f->ops->opaque, rtit_canonical(f->ip), f->pkt.offset))
		return true;
	f->ended = true;
	return false;
}

static bool branch(struct flow *f, u64 target)
{
	u64 behind = next_lip(f);

	if (!executed(f))
		return false;
	arrive(f, target, true);
	f->branched = true;
	f->behind = behind;
	return true;
}

static bool fall(struct flow *f)
{
	u64 next = next_lip(f);

	if (!executed(f))
		return false;
	arrive(f, next, false);
	return true;
}

/* Over one that needs no packet; @wanted: what came, for the error. */
static bool silent(struct flow *f, const char *wanted)
{
	switch (f->insn.kind) {
	case RTIT_INSN_OTHER:
	case RTIT_INSN_PAGING:
	case RTIT_INSN_WRMSR:
		return fall(f);
	case RTIT_INSN_JMP:
	case RTIT_INSN_CALL:
		return branch(f, f->insn.target);
	case RTIT_INSN_JCC:
		return fail(f, "a Jcc wants a TNT, the trace has %s", wanted);
	case RTIT_INSN_FAR:
		return fail(f, "a far transfer wants a FUP with %#llx, the trace has %s",
			    (unsigned long long)next_lip(f), wanted);
	default:
		return fail(f, "the %s wants a TIP, the trace has %s", rtit_insn_name(f->insn.kind),
			    wanted);
	}
}

/* ---- TNT ---- */

/* A compressed RET: to the NLIP of the last CALL (4.2.3.2). */
static bool compressed(struct flow *f, bool taken)
{
	if (!taken)
		return fail(f, "a RET, the TNT has N");
	if (f->call_valid)
		return branch(f, f->call_nlip);
	if (!f->options->middle)
		return fail(f, "the TNT compresses a RET, and no CALL was before it");
	return executed(f) && lose(f, "a RET to a CALL before the first PSB");
}

static bool bit(struct flow *f, bool taken)
{
	for (;;) {
		if (!fetch(f))
			return false;
		if (f->insn.kind == RTIT_INSN_JCC)
			return taken ? branch(f, f->insn.target) : fall(f);
		if (f->insn.kind == RTIT_INSN_RET)
			return compressed(f, taken);
		if (!silent(f, "a TNT"))
			return false;
	}
}

/* @byte as a packet or RTIT_TNT_BUFF has it: the highest 1 is a mark. */
static bool bits(struct flow *f, u64 byte)
{
	unsigned int n = VMPT_RTIT_TNT_FULL;

	if (f->state == OFF && byte > 1)
		return fail(f, "a TNT where packets are disabled");
	while (n && !(byte >> n & 1))
		n--;
	while (n-- && (f->state == ON || f->state == DOUBT)) {
		f->state = ON;
		f->silent = 0;
		if (!bit(f, byte >> n & 1))
			return false;
	}
	return true;
}

/* What software read of TNT_BUFF before @offset. */
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

/* To where TraceStop struck, or behind the WRMSR that cleared Trace_En or TraceActive (4.2.8). */
static bool walk_to_end(struct flow *f)
{
	bool wrmsr = false;

	f->silent = 0;
	while (!wrmsr && !(f->stopping && f->stop_hit)) {
		if (!fetch(f))
			return false;
		wrmsr = f->insn.kind == RTIT_INSN_WRMSR;
		if (!silent(f, "an end"))
			return false;
	}
	return true;
}

/* Packets were disabled, and none told it: of two walks the first only looks. */
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
		found = walk_to_end(f);
		*f = saved;
		if (found && !walk_to_end(f))
			return false;
	}
	f->stopping = false;
	f->state = OFF;
	return tell_at(f, RTIT_FLOW_QUIET, f->ip, 0);
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
	arrive(f, lip, true);
	return tell_at(f, RTIT_FLOW_FAR, f->far_lip, lip);
}

static bool tip(struct flow *f, u64 lip)
{
	if (f->left) {
		f->left = false;
		return tell_at(f, RTIT_FLOW_LEFT, 0, lip);
	}
	if (f->far)
		return far_target(f, lip);
	if (f->state == LOST) {
		f->state = DOUBT;
		arrive(f, lip, true);
		return true;
	}
	if (f->state == OFF)
		return fail(f, "a TIP where packets are disabled");
	f->state = ON;
	for (;;) {
		if (!fetch(f))
			return false;
		if (f->insn.kind >= RTIT_INSN_JMP_INDIRECT && f->insn.kind <= RTIT_INSN_RET)
			return branch(f, lip);
		if (!silent(f, "a TIP"))
			return false;
	}
}

/* Whether the FUP's @lip is that of the far transfer instruction at ip: NLIP (Table 1), or in it
 * (E1). */
static bool is_far(const struct flow *f, u64 lip)
{
	u64 at = (lip - f->ip) & VMPT_RTIT_LIP_MASK;

	return f->insn.kind == RTIT_INSN_FAR && at && at <= f->insn.len;
}

/*
 * To where the FUP's @lip says: an event before the instruction there, or a far transfer
 * instruction that has it behind itself. @pgd: or a near branch that left the region.
 */
static bool walk_to(struct flow *f, u64 lip, bool pgd, const char *wanted)
{
	for (;;) {
		if (pgd && f->branched && f->behind == lip && leaves(f, f->ip))
			return true;
		if (f->ip == lip)
			return true;
		if (!fetch(f))
			return false;
		if (is_far(f, lip))
			break;
		if (!silent(f, wanted))
			return false;
	}
	if (lip != next_lip(f) && !erratum(f, 1))
		return false;
	return executed(f);
}

static bool far_source(struct flow *f, u64 lip)
{
	char wanted[64];

	f->far = true;
	f->far_lip = lip;
	if (f->state == LOST)
		return true;
	if (f->state == OFF)
		return fail(f, "a FUP.FAR where packets are disabled");
	f->state = ON;
	snprintf(wanted, sizeof(wanted), "a FUP.FAR of %#llx", (unsigned long long)lip);
	return walk_to(f, lip, false, wanted);
}

/*
 * No packet says that packets are still enabled: tracing may have been switched off silently and
 * on again, which a PSB tells, or FilterEn was 0 behind a FUP.BuffOvf.
 */
static bool may_be_off(const struct flow *f)
{
	return f->state == DOUBT || (f->state == ON && (f->psb || f->stopping));
}

/* Whether a FUP.PGD with @lip can be what the code says. */
static bool reaches(struct flow *f, u64 lip)
{
	struct flow saved = *f;
	bool found;

	if (f->options->in_order)
		return true;
	f->probe = true;
	found = !f->stopping && walk_to(f, lip, true, "") && !f->over_wrmsr;
	*f = saved;
	return found;
}

static bool disable(struct flow *f, u64 lip)
{
	enum state was = f->state;
	char wanted[64];

	snprintf(wanted, sizeof(wanted), "a FUP.PGD of %#llx", (unsigned long long)lip);
	if (was == OFF)
		return erratum(f, 2);
	if (may_be_off(f) && !reaches(f, lip))
		return quiet(f) && erratum(f, 2);
	f->state = OFF;
	f->left = true;
	if (was == LOST)
		return true;
	if (!walk_to(f, lip, true, wanted))
		return false;
	return tell_at(f, RTIT_FLOW_DISABLED, lip, 0);
}

static bool enable(struct flow *f, u64 lip)
{
	if (!quiet(f))
		return false;
	f->state = ON;
	arrive(f, lip, true);
	f->stop_hit = false;
	return tell_at(f, RTIT_FLOW_ENABLED, 0, lip);
}

/* With LIP compressed against one before the first PSB. */
static bool no_lip(struct flow *f, unsigned int kind)
{
	if (!f->options->middle)
		return fail(f, "%s is compressed, no LIP was before it", vmpt_rtit_name(kind));
	f->far = f->left = false;
	if (kind == VMPT_RTIT_PGD && f->state == LOST)
		return disable(f, 0);
	return lose(f, "a LIP that is compressed against one before the first PSB");
}

static bool overflow(struct flow *f, u64 lip)
{
	/* FilterEn may be 0, and in a range too: 2.1.3 "usually correct". */
	f->state = f->options->regs && (f->options->regs->events & 7) == VMPT_RTIT_EVENT_ON ? ON
											    : DOUBT;
	f->call_valid = false;
	f->stopping = false;
	f->far = false;
	arrive(f, lip, true);
	f->stop_hit = false;
	return tell_at(f, RTIT_FLOW_OVERFLOW, 0, lip);
}

/* ---- the rest ---- */

static bool walk_to_paging(struct flow *f)
{
	bool done = false;

	while (!done) {
		if (!fetch(f))
			return false;
		done = f->insn.kind == RTIT_INSN_PAGING;
		if (!silent(f, "a PIP"))
			return false;
	}
	return true;
}

/* It comes where FilterEn is 0 too. */
static bool paging(struct flow *f)
{
	struct rtit_flow_event event = { .kind = RTIT_FLOW_PAGING,
					 .cr3 = f->pkt.payload & 0xffffffffffULL,
					 .paging = f->pkt.payload >> 40 & 1 };
	struct flow saved = *f;
	bool found = true;

	if (f->state == ON && may_be_off(f) && !f->options->in_order) {
		f->probe = true;
		found = !f->stopping && walk_to_paging(f) && !f->over_wrmsr;
		*f = saved;
	}
	if (!found && !quiet(f))
		return false;
	return (f->state != ON || walk_to_paging(f)) && tell(f, &event);
}

static bool stop(struct flow *f)
{
	f->stopping |= f->state == ON || f->state == DOUBT;
	return tell_at(f, RTIT_FLOW_STOP, 0, 0);
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
		return erratum(f, VMPT_RTIT_AUX_ERRATUM(f->pkt.aux));
	if (kind == VMPT_RTIT_PSB || kind == VMPT_RTIT_PCC || kind == VMPT_RTIT_MTC ||
	    kind == VMPT_RTIT_STS)
		return true;
	if (f->far && kind != VMPT_RTIT_TIP && kind != VMPT_RTIT_BUFF_OVF)
		return fail(f, "behind a FUP.FAR stands %s, not a TIP", vmpt_rtit_name(kind));
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
			return fail(f, "bytes that are no packet");
		if (!tnt_buff(f, f->pkt.offset) || !packet(f, f->pkt.kind - VMPT_ITEM_RTIT))
			return false;
	}
	if (ret < 0) {
		f->pkt.offset += f->pkt.size;
		return fail(f, "%s", vmpt_strerror(ret));
	}
	return tnt_buff(f, ~0ULL) && (!f->stopping || quiet(f));
}

bool rtit_flow_run(const u8 *trace, size_t size, const struct rtit_flow_options *options,
		   const struct rtit_flow_ops *ops, struct rtit_flow_result *result)
{
	struct flow f = { .options = options, .ops = ops, .result = result };
	bool done;

	memset(result, 0, sizeof(*result));
	f.state = options->middle ? LOST : OFF;
	while (f.tnt < options->tnts && options->tnt[f.tnt].offset <= options->from)
		f.tnt++;
	rtit_packets_open(&f.packets, trace, size, rtit_psb_find(trace, size, options->from),
			  options->cycle_acc);
	done = run(&f);
	rtit_packets_close(&f.packets);
	return done;
}
