/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* Internal to the RTIT unit: how packets leave it, and functions shared by its files. */
#ifndef VMPT_MODEL_RTIT_EMIT_H
#define VMPT_MODEL_RTIT_EMIT_H

#include "model/vmpt-rtit.h"

static inline bool rtit_erratum(const struct vmpt_rtit_unit *unit, unsigned int n)
{
	return unit->config.options.errata & VMPT_RTIT_ERRATUM(n);
}

static inline bool rtit_in_overflow(const struct vmpt_rtit_unit *unit)
{
	return unit->regs.status & VMPT_RTIT_STATUS_OVERFLOW;
}

/* ---- rtit-emit.c: packets into the buffer, the buffer to the output ---- */

/* TIP and FUPs; pending TNT bits go first. */
void vmpt_model_rtit_lip(struct vmpt_rtit_unit *unit, unsigned int kind, u64 lip);
/* PIP, MTC, STS; only PIP drains TNT_BUFF (4.2.2), or all of them with an option. */
void vmpt_model_rtit_put(struct vmpt_rtit_unit *unit, struct vmpt_rtit_packet *pkt);
/* A TNT bit; send the bits pending in TNT_BUFF, false if they must stay. */
void vmpt_model_rtit_tnt(struct vmpt_rtit_unit *unit, bool taken);
bool vmpt_model_rtit_send_tnt(struct vmpt_rtit_unit *unit);
/* The PSB of TriggerEn, which an overflow does not suppress; without room one begins. */
void vmpt_model_rtit_psb(struct vmpt_rtit_unit *unit);
/* The PSB of Pkt_Mask, if it is due (3.3.9). */
void vmpt_model_rtit_check_psb(struct vmpt_rtit_unit *unit);
/* One TraceSTOP if there is room, even in an overflow. */
void vmpt_model_rtit_put_trace_stop(struct vmpt_rtit_unit *unit);
/* Room for a packet and no overflow; without room one begins. */
bool vmpt_model_rtit_ready(struct vmpt_rtit_unit *unit);

/* ---- rtit-enable.c: 2.1, 2.4, 4.3.2 ---- */

/*
 * The new state of an event's condition, @was before (3.3.5): a branch's target decides;
 * sequential execution changes it at a base or limit only. With ranges each branch calls this.
 */
static inline bool rtit_event(const struct vmpt_rtit_event *e, bool was, bool taken, u64 ip)
{
	bool in, decides;

	if (!e->ranges)
		return e->on;
	ip &= VMPT_RTIT_LIP_MASK;
	/* No jumps here: the address cannot be predicted. */
	in = ((ip >= e->base[0]) & (ip < e->limit[0])) | ((ip >= e->base[1]) & (ip < e->limit[1]));
	decides = taken | (ip == e->base[0]) | (ip == e->limit[0]) | (ip == e->base[1]) |
		  (ip == e->limit[1]);
	return (in & decides) | (was & !decides);
}

/* With ranges: a near branch or a step to @ip changes no enable and stops nothing. */
static inline bool rtit_unchanged(const struct vmpt_rtit_unit *unit, bool taken, u64 ip)
{
	return unit->walk &&
	       rtit_event(&unit->filter, unit->filter_en, taken, ip) == unit->filter_en &&
	       !(unit->trigger_en && rtit_event(&unit->stop, false, taken, ip));
}

/* A FUP.PCC is due and sent in this mode (4.2.6). */
static inline bool rtit_pcc_due(const struct vmpt_rtit_unit *unit)
{
	u64 ctl = unit->regs.ctl;

	return unit->regs.cntp & VMPT_RTIT_CNTP_MSB && ctl & VMPT_RTIT_CTL_CYCLE_ACC &&
	       unit->trigger_en && unit->context_en &&
	       (unit->filter_en || !(ctl & VMPT_RTIT_CTL_LESS_PKTS));
}

/* An instruction begins: send that FUP.PCC. */
static inline void rtit_pcc(struct vmpt_rtit_unit *unit, u64 next_ip)
{
	if (rtit_pcc_due(unit) && !rtit_in_overflow(unit))
		vmpt_model_rtit_lip(unit, VMPT_RTIT_PCC, next_ip);
}

/* The enables before an event, and its effects. */
struct rtit_change {
	bool packet, context, filter; /* before */
	bool enabled;		      /* a WRMSR set TriggerEn */
	bool disabled;		      /* a WRMSR cleared it */
	bool stop;		      /* TraceStop, not in an overflow */
	bool after;		      /* PacketEn after the event */
};

/* All enables and STATUS from the registers, mode and FilterEn. */
void vmpt_model_rtit_update(struct vmpt_rtit_unit *unit);
void vmpt_model_rtit_begin(const struct vmpt_rtit_unit *unit, struct rtit_change *c);
/* The enables after the event; @taken: @ip is the target of a taken branch or event. */
void vmpt_model_rtit_decide(struct vmpt_rtit_unit *unit, struct rtit_change *c, bool taken, u64 ip);
/* The same without checking the filter and TraceStop. */
void vmpt_model_rtit_decide_no_filter(struct vmpt_rtit_unit *unit, struct rtit_change *c);
/* Whether PacketEn 1 to 0 makes a FUP.PGD, which a TraceStop may suppress. */
static inline bool rtit_makes_pgd(const struct vmpt_rtit_unit *unit, const struct rtit_change *c)
{
	return !c->stop || unit->config.options.pgd_at_stop;
}
/* FUP.PGD with @nlip or FUP.PGE with @ip, then TraceStop. */
void vmpt_model_rtit_finish(struct vmpt_rtit_unit *unit, const struct rtit_change *c, u64 nlip,
			    u64 ip);
/* The same, after the packet for PacketEn 1 to 0. */
void vmpt_model_rtit_finish_rest(struct vmpt_rtit_unit *unit, const struct rtit_change *c, u64 nlip,
				 u64 ip);

/* ---- rtit-overflow.c ---- */

/* TraceStop: now, or after the overflow. */
void vmpt_model_rtit_trace_stop(struct vmpt_rtit_unit *unit);
/* In an overflow: a branch that would have made a TIP (E5). */
void vmpt_model_rtit_lost_tip(struct vmpt_rtit_unit *unit, u64 target);
/* WRMSR of STATUS set Buffer_Overflow; or cleared it: its first and its last part. */
void vmpt_model_rtit_overflow_begins(struct vmpt_rtit_unit *unit);
void vmpt_model_rtit_held_psb(struct vmpt_rtit_unit *unit);
void vmpt_model_rtit_held_stop(struct vmpt_rtit_unit *unit);

/* ---- rtit-time.c ---- */

/* An STS if it is sent in this mode (Table 17); that of MOV CR3 after a TNT (Table 19). */
void vmpt_model_rtit_sts(struct vmpt_rtit_unit *unit);
void vmpt_model_rtit_sts_on_cr3(struct vmpt_rtit_unit *unit);
/* MTC counts from here: TriggerEn or the range changed. */
void vmpt_model_rtit_mtc_restart(struct vmpt_rtit_unit *unit);

#endif
